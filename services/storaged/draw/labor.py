"""LABOR-0: the edges of nodes that live here, kept by one variate of each neighbor. With importance steps a graphd keeps them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphkit.growth import Met
from graphkit.labor import key_of_variates
from storaged.draw.lookup import Rows, ends, longer
from storaged.draw.version import Version, checked_outputs
from storaged.kernel import labor as kernel

_PIECE = 1 << 24
"""Edges that are looked at between checkpoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variates:
    """Whose variates keep edges."""

    layer_dependency: bool
    """Whether all hops have the same ones."""


def keep_neighbors(
    version: Version,
    variates: Variates,
    *,
    seed: int,
    direction: int,
    uniform: bool,
    want_eids: bool,
    want_weights: bool,
    edge_type: int,
    hop: int,
    count: int,
    ids: NDArray[np.int64],
    checkpoint: Callable[[], object],
) -> Met:
    """Keep ``count`` neighbors of each node along one edge type in expectation, as `graphkit.labor` says without importance steps.

    Parameters
    ----------
    version : Version
    variates : Variates
    seed, direction, uniform, want_eids, want_weights
        As of `storaged.draw.expand.Expansion`; weights are those of means.
    edge_type, hop, count : int
        A count of -1 keeps all neighbors of positive weight.
    ids : int64[m]
        Nodes that live in parts held here; -1 and unknown ids have no neighbors.
    checkpoint : callable
        Called every so many edges; may raise.

    Raises
    ------
    InvalidRequest, Unavailable
        Where there are more neighbors than one answer has, the type or direction is impossible, or a part is not held here.
    """
    _, far = ends(version, edge_type, direction)
    rows = Rows.of(version, edge_type, direction, ids)
    expected = rows.edges if count < 0 else min(rows.edges, ids.size * count)
    # Neighbors that many nodes share are kept by many or by none: there may be any number more than expected.
    room = min(rows.edges, expected + expected // 8) + kernel.BLOCK
    out, eids, weights = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    sizes, state = np.zeros(ids.size, np.int32), np.zeros(2, np.int64)
    key = key_of_variates(seed, far, hop, layer_dependency=variates.layer_dependency)
    while True:
        if room > out.size:
            checked_outputs("neighbors", room - kernel.BLOCK)
            kept = int(state[kernel.TOTAL])
            out = longer(out, kept, room)
            eids = longer(eids, kept, room if want_eids else 0)
            weights = longer(weights, kept, room if want_weights else 0)
        before = int(state[kernel.ROW])
        kernel.keep_expansion(
            key, rows.table, rows.lines, rows.starts, rows.degrees, np.int64(count), uniform, np.int64(_PIECE), state, sizes, out, eids, weights
        )
        row, total = int(state[kernel.ROW]), int(state[kernel.TOTAL])
        if row == ids.size:
            break
        checkpoint()
        if row == before:
            room = min(rows.edges, 2 * room) + kernel.BLOCK
    return Met(sizes=sizes, ids=out[:total], eids=eids[:total] if want_eids else None, weights=weights[:total] if want_weights else None)
