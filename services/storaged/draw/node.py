"""Global draws of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphkit import rng
from graphkit.jit import settled
from storaged.draw.entries import draw_rows, local_draws, uniform_table
from storaged.draw.race import Race
from storaged.draw.version import NODE, Version
from storaged.kernel import columns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeDraws:
    """Drawn nodes, in order of the draws."""

    ids: NDArray[np.int64]
    """int64[k]."""
    types: NDArray[np.int32]
    """int32[k]."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeRace:
    """The first of a race over nodes, in order of arrival."""

    ids: NDArray[np.int64]
    """int64[k], k less than asked for where there are no more."""
    types: NDArray[np.int32]
    """int32[k]."""
    keys: NDArray[np.float64]
    """float64[k], ascending; races over other parts merge by (key, type, id)."""


def nodes(version: Version, *, types: Sequence[int], parts: Sequence[int], seed: int, start: int, count: int, uniform: bool) -> NodeDraws:
    """The draws start .. start + count - 1 that fall on ``parts``, in order.

    Parameters
    ----------
    version : Version
    types : sequence of int
        Node types to draw from, in proportion to their totals.
    parts : sequence of int
        Parts to answer for.
    seed : int
        64 bits.
    start, count : int
        Numbers of the draws; each is a function of (seed, its number) alone.
    uniform : bool
        Every live node alike, instead of by weight.

    Raises
    ------
    InvalidRequest, NotFound, Unavailable
        Where a number is impossible, there is nothing to draw, or a part is not held here.
    """
    chunks = local_draws(version, NODE, types=types, parts=parts, seed=seed, start=start, count=count, uniform=uniform)
    key = rng.key_of(seed, rng.NODE_ROW)
    ids, of_type, held = np.empty(count, np.int64), np.empty(count, np.int32), 0
    for chunk in chunks:
        here = slice(held, held + chunk.draws.size)
        of_type[here] = chunk.types
        for type_id, image, own in chunk.of_parts(version):
            node = image.nodes[type_id]
            table = uniform_table(node.count, node.live_rows) if uniform else node.table
            if node.dense:
                draw_rows(key, chunk, own, table, ids[here], in_place=True, scale=image.parts, offset=image.part)
            else:
                rows = np.empty(own.stop - own.start, np.int64)
                draw_rows(key, chunk, own, table, rows)
                columns.place(settled(rows), chunk.places[own], node.ids, ids[here])
        held = here.stop
    return NodeDraws(ids=ids[:held], types=of_type[:held])


def race_nodes(
    version: Version,
    *,
    types: Sequence[int],
    parts: Sequence[int],
    seed: int,
    count: int,
    taken_ids: NDArray[np.int64],
    taken_types: NDArray[np.int32],
    uniform: bool = False,
) -> NodeRace:
    """The ``count`` nodes of ``parts`` with the smallest exponential keys among those not taken.

    Parameters
    ----------
    version, types, parts, seed, uniform
        As in `nodes`.
    count : int
        How many at most.
    taken_ids, taken_types : int64[t], int32[t]
        Nodes that do not take part.

    Raises
    ------
    InvalidRequest, Unavailable
        As `nodes`.
    """
    race = Race(version, NODE, types=types, parts=parts, count=count, taken_ids=taken_ids, taken_types=taken_types)
    for type_id, image in race.entries:
        node = image.nodes[type_id]
        race.run(seed, type_id, image, rows=node.rows, ids=node.ids, live=node.live, weights=node.weights, uniform=uniform)
    race.finish()
    return NodeRace(ids=race.items, types=race.tags, keys=race.keys)
