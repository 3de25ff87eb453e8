"""Personalised PageRank of some starts, where every part is held here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from graphkit.jit import settled
from storaged.draw.lookup import checked_edge_types, ends, table_of
from storaged.draw.version import Version, checked_length, checked_outputs
from storaged.kernel import push as kernel

MOST_NODES = 1 << 22
"""That one start may come to, some 70 bytes each."""
_ROOM = 1 << 13
_PIECE = 1 << 20
"""Edges that are looked at between checkpoints."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranks:
    """The nodes of the highest scores for each start, best first."""

    ids: NDArray[np.int64]
    """int64[m, top], -1 where there are no more."""
    kinds: NDArray[np.int32]
    """int32[m, top]: their types, -1 likewise."""
    scores: NDArray[np.float64]
    """float64[m, top]."""
    residuals: NDArray[np.float64]
    """float64[m]: what is held back of each start's mass."""


def rank(
    version: Version,
    *,
    ids: NDArray[np.int64],
    kinds: NDArray[np.int32],
    edge_types: Sequence[int],
    direction: int,
    uniform: bool,
    alpha: float,
    epsilon: float,
    top: int,
    checkpoint: Callable[[], object],
) -> Ranks:
    """Push the mass of each start until no node of degree d holds back more than ``epsilon * d``.

    Parameters
    ----------
    version : Version
        All of its parts are held here.
    ids, kinds : int64[m], int32[m]
        Starts and their types; type -1 is no node, whose row stays empty.
    edge_types, direction, uniform
        As of `storaged.draw.neighbors`.
    alpha, epsilon, top
        As of `graphd.pagerank.Ranking`.
    checkpoint : callable
        Called every so many edges; may raise.

    Raises
    ------
    InvalidRequest, Unavailable
        Where a type, the direction or a number is impossible, a start comes to more than `MOST_NODES` nodes, or a part is not held here.
    """
    checked_length("types", kinds, ids.size)
    checked_edge_types(version, edge_types, -1, direction)
    if not 0 < alpha <= 1 or not 0 < epsilon < np.inf or top < 1:
        raise InvalidRequest(f"alpha {alpha}, epsilon {epsilon}, top {top}: expected a probability above 0, and numbers above 0")
    checked_outputs("ranks", ids.size, top)
    for part in range(version.schema.parts):
        version.image(part)
    tables = settled(np.stack([table_of(version, edge_type, direction) for edge_type in edge_types]))
    near, far = (settled(np.array(side, np.int32)) for side in zip(*(ends(version, edge_type, direction) for edge_type in edge_types), strict=True))
    found = Ranks(
        ids=np.full((ids.size, top), -1, np.int64),
        kinds=np.full((ids.size, top), -1, np.int32),
        scores=np.zeros((ids.size, top), np.float64),
        residuals=np.zeros(ids.size, np.float64),
    )
    state, heap = np.zeros(kernel.STATE, np.int64), np.empty(top, np.int32)
    ids, kinds = settled(ids), settled(kinds)
    parts, mod = np.int64(version.schema.parts), version.schema.placement != "mix64"
    room = min(_ROOM, MOST_NODES)
    held = _columns(room)
    while True:
        said = kernel.push(
            ids,
            kinds,
            parts,
            mod,
            tables,
            near,
            far,
            uniform,
            float(alpha),
            float(epsilon),
            np.int64(_PIECE),
            state,
            heap,
            found.ids,
            found.kinds,
            found.scores,
            found.residuals,
            *held,
        )
        if said == kernel.DONE:
            return found
        checkpoint()
        if said == kernel.NO_ROOM:
            if room == MOST_NODES:
                at = int(state[kernel.START])
                raise InvalidRequest(
                    f"nodes[{at}] = {ids[at]} comes to more than {MOST_NODES} nodes with epsilon {epsilon:g}, "
                    "the most that is held for one; ask with a larger epsilon"
                )
            before, room = held, min(2 * room, MOST_NODES)
            held = _columns(room)
            for old, new in zip(before, held, strict=True):
                new[: old.size] = old  # slots that are in use are the first of a table


def _columns(room: int) -> list[NDArray[Any]]:
    """What is held of the nodes that a start comes to, after the table of their numbers: as `push` takes them."""
    slots = max(4 * room, kernel.SMALLEST)  # it grows by two where it is half full
    dtypes = (np.int64, np.int32, np.float64, np.float64, np.float64, np.int32, np.int32, np.int32, np.float64)
    return [np.empty(slots, np.int32), *(np.empty(room, dtype) for dtype in dtypes)]
