"""LABOR: the edges of nodes that live here, kept by one variate of each neighbor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from graphkit import labor
from graphkit.growth import ALL, Met
from graphkit.jit import settled
from graphkit.numbering import Numbering
from storaged.draw.lookup import Rows, ends, longer
from storaged.draw.version import Version, checked_found, checked_length
from storaged.kernel import importance as steps
from storaged.kernel import labor as kernel

MOST_EDGES = 1 << 26
"""Of the nodes of a hop with importance steps that live here, 4 bytes each."""
_PIECE = 1 << 21
"""Edges that are looked at between checkpoints."""
_DENSE = 4
"""Bytes of bits for an edge up to which neighbors are numbered by a bit for every id there may be."""
_NO_I64, _NO_I32, _NO_F64 = (settled(np.zeros(0, dtype)) for dtype in (np.int64, np.int32, np.float64))

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variates:
    """Whose variates keep edges."""

    layer_dependency: bool
    """Whether all hops have the same ones."""
    importance: int = 0
    """Importance steps before; `graphkit.labor.UNTIL_SETTLED`: until they change little."""


class Stepped:
    """Importance steps of some nodes that live here, along one edge type.

    Parameters
    ----------
    version : Version
    edge_type, direction : int
    uniform : bool
        Whether every edge counts alike.
    count : int
        Neighbors of each node, in expectation; -1: all of positive weight.
    ids : int64[m]
        Nodes that live in parts held here; -1 and unknown ids have no neighbors.
    levels : float64[m], optional
        Of the step before, where this is not the first.
    checkpoint : callable
        Called every so many edges; may raise.

    Raises
    ------
    InvalidRequest, Unavailable
        Where there are more than `MOST_EDGES`, the type or direction is impossible, or a part is not held here.
    """

    def __init__(
        self,
        version: Version,
        *,
        edge_type: int,
        direction: int,
        uniform: bool,
        count: int,
        ids: NDArray[np.int64],
        levels: F64 | None = None,
        checkpoint: Callable[[], object],
    ) -> None:
        ends(version, edge_type, direction)
        if count < ALL:
            raise InvalidRequest(f"count {count}: expected 0 or more, or -1 for all neighbors")
        self.rows = rows = Rows.of(version, edge_type, direction, ids)
        if rows.edges > MOST_EDGES:
            raise InvalidRequest(
                f"the {ids.size} nodes of the hop have {rows.edges} edges along this type, a hop with importance steps at most {MOST_EDGES}; "
                "start from fewer seeds, or ask without importance steps"
            )
        self._fanout, self._uniform, self._checkpoint = np.int64(count), uniform, checkpoint
        self.offsets = settled(np.concatenate([[0], np.cumsum(rows.degrees)]))
        self.numbers, self.neighbors = self._numbered()
        if levels is None:
            self.levels = np.empty(ids.size, np.float64)
            for piece in self._pieces():
                steps.first_levels(*self._of(piece), self._fanout, uniform, self.levels[piece])
        else:
            checked_length("levels", levels, ids.size)
            self.levels = levels.copy()

    def _pieces(self) -> Iterator[slice]:
        """The nodes, as many at a time as have not too many edges, with a checkpoint after each lot."""
        begin, m = 0, self.offsets.size - 1
        while begin < m:
            end = max(int(np.searchsorted(self.offsets, self.offsets[begin] + _PIECE, side="right")) - 1, begin + 1)
            yield slice(begin, end)
            self._checkpoint()
            begin = end

    def _of(self, piece: slice) -> tuple[I64, I64, I64, I64]:
        """Where the edges of a piece's nodes are, as kernels take it."""
        rows = self.rows
        return rows.table, rows.lines[piece], rows.starts[piece], rows.degrees[piece]

    def _edges(self, piece: slice) -> slice:
        """Its edges among all."""
        return slice(int(self.offsets[piece.start]), int(self.offsets[piece.stop]))

    def _numbered(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The number of the neighbor that each edge leads to, and the neighbors by number."""
        rows, numbers = self.rows, np.empty(self.rows.edges, np.int32)
        size = int(steps.highest(rows.table, rows.lines, rows.starts, rows.degrees)) // 64 + 1
        if 8 * size > _DENSE * rows.edges:
            with Numbering.several(1) as (numbering,):
                for piece in self._pieces():
                    near = np.empty(int(rows.degrees[piece].sum()), np.int64)
                    steps.list_near(*self._of(piece), near)
                    numbers[self._edges(piece)] = numbering.assign(near)
                return settled(numbers), numbering.ids.copy()
        words, firsts = np.zeros(size, np.uint64), np.empty(size, np.int32)
        for piece in self._pieces():
            steps.mark_near(*self._of(piece), words)
        near = np.empty(int(steps.count_words(words, firsts)), np.int64)
        steps.list_set(words, near)
        for piece in self._pieces():
            steps.number_near(*self._of(piece), words, firsts, numbers[self._edges(piece)])
        return settled(numbers), near

    def raised(self, importances: F64 | None) -> F64:
        """A step, as `graphkit.labor.importances_of` asks for it; InvalidRequest where importances are not one for each neighbor."""
        if importances is not None:
            checked_length("importances", importances, self.neighbors.size)
        largest = np.zeros(self.neighbors.size, np.float64)
        for piece in self._pieces():
            of, levels, offsets = self._of(piece), self.levels[piece], self.offsets[piece.start : piece.stop + 1]
            if importances is not None:
                steps.later_levels(*of, self._fanout, self._uniform, offsets, self.numbers, settled(importances), levels)
            steps.raise_near(*of, self._uniform, offsets, self.numbers, levels, importances is None, largest)
        return largest


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
    stepped: tuple[F64, F64] | None = None,
    checkpoint: Callable[[], object],
) -> Met:
    """Keep ``count`` neighbors of each node along one edge type in expectation, as `graphkit.labor` says.

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
    stepped : (float64[m], float64[n]), optional
        Levels of nodes and importances of neighbors, where importance steps were taken for the nodes of several hosts; else they are
        taken here.
    checkpoint : callable
        Called every so many edges; may raise.

    Raises
    ------
    InvalidRequest, Unavailable
        Where there are more neighbors than one answer has, the type or direction is impossible, or a part is not held here.
    """
    _, far = ends(version, edge_type, direction)
    steps_of: tuple[I64, NDArray[np.int32], F64, F64] = (_NO_I64, _NO_I32, _NO_F64, _NO_F64)
    if variates.importance:
        along: dict[str, Any] = {"edge_type": edge_type, "direction": direction, "uniform": uniform, "count": count}
        taken = Stepped(version, **along, ids=ids, levels=None if stepped is None else stepped[0], checkpoint=checkpoint)
        importances = labor.importances_of(variates.importance, taken.raised) if stepped is None else stepped[1]
        checked_length("importances", importances, taken.neighbors.size)
        rows, steps_of = taken.rows, (taken.offsets, taken.numbers, settled(importances), settled(taken.levels))
    else:
        rows = Rows.of(version, edge_type, direction, ids)
    expected = rows.edges if count < 0 else min(rows.edges, ids.size * count)
    # Neighbors that many nodes share are kept by many or by none: there may be any number more than expected.
    room = min(rows.edges, expected + expected // 8) + kernel.BLOCK
    out, eids, weights = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    sizes, state = np.zeros(ids.size, np.int32), np.zeros(2, np.int64)
    key = labor.key_of_variates(seed, far, hop, layer_dependency=variates.layer_dependency)
    while True:
        if room > out.size:
            checked_found("neighbors", room - kernel.BLOCK)
            kept = int(state[kernel.TOTAL])
            out = longer(out, kept, room)
            eids = longer(eids, kept, room if want_eids else 0)
            weights = longer(weights, kept, room if want_weights else 0)
        before = int(state[kernel.ROW])
        of = (rows.table, rows.lines, rows.starts, rows.degrees)
        kernel.keep_expansion(key, *of, np.int64(count), uniform, np.int64(_PIECE), *steps_of, state, sizes, out, eids, weights)
        row, total = int(state[kernel.ROW]), int(state[kernel.TOTAL])
        if row == ids.size:
            break
        checkpoint()
        if row == before:
            room = min(rows.edges, 2 * room) + kernel.BLOCK
    return Met(sizes=sizes, ids=out[:total], eids=eids[:total] if want_eids else None, weights=weights[:total] if want_weights else None)
