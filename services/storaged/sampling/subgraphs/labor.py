"""LABOR: edges of local nodes, kept by one variate per neighbor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.operators import labor
from asterism_graphkit.operators.khop import ALL_NEIGHBORS, Neighbors
from asterism_graphkit.relabel.bitset import list_set_bits, rank_words
from asterism_graphkit.relabel.relabel import Relabeling
from asterism_proto.errors import InvalidRequest
from storaged.kernels.subgraphs import labor as kernel
from storaged.kernels.subgraphs.expand import NeighborOutputs
from storaged.sampling.cancellation import Checkpoint, StopFlag
from storaged.sampling.node_lookup import EdgeSpans, end_types, resized_copy
from storaged.sampling.version import LocalVersion, check_length, check_row_count
from storaged.store.image import EMPTY_F32, EMPTY_I64

MAX_EDGES = 1 << 26
"""Largest number of edges of a hop's local nodes with importance steps, 4 bytes each."""
_CHECKPOINT_EDGES = 1 << 21
"""Number of edges read between two checkpoints."""
_CHECKPOINT_WORDS = 1 << 16
"""Words of a bitset that are ranked or listed between two checkpoints: 4 million bits."""
_DENSE = 4
"""Bytes of bitset per edge up to which neighbors are indexed by a bitset over all ids."""
_NO_F64 = as_kernel_array(np.zeros(0, np.float64))
_NO_STEPS = kernel.ImportanceState(
    as_kernel_array(np.zeros(0, np.int64)),
    as_kernel_array(np.zeros(0, np.int32)),
    _NO_F64,
    _NO_F64,
)

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaborOptions:
    """Options of LABOR sampling."""

    layer_dependency: bool
    """True if all hops use the same variates."""
    importance: int = 0
    """Number of importance steps.

    `asterism_graphkit.operators.labor.UNTIL_CONVERGED` repeats them until they change little.
    """


class ImportanceSteps:
    """Importance steps of LABOR for some local nodes along one edge type.

    Parameters
    ----------
    version : LocalVersion
    edge_type, direction : int
    uniform : bool
        Give all edges the same weight.
    count : int
        Expected number of neighbors per node; -1 for all of positive weight.
    ids : ndarray of int64, shape (m,)
        Nodes in partitions held here; -1 and unknown ids have no neighbors.
    levels : ndarray of float64, shape (m,), optional
        Levels from the previous step; none for the first step.
    checkpoint : callable
        Called periodically, even within the edges of one node; may raise.

    Raises
    ------
    InvalidRequest
        There are more than `MAX_EDGES` edges, or a type or direction is invalid.
    Unavailable
        A partition is not held here.
    """

    def __init__(
        self,
        version: LocalVersion,
        *,
        edge_type: int,
        direction: int,
        uniform: bool,
        count: int,
        ids: NDArray[np.int64],
        levels: F64 | None = None,
        checkpoint: Checkpoint,
    ) -> None:
        end_types(version, edge_type, direction)
        if count < ALL_NEIGHBORS:
            raise InvalidRequest(f"count {count}: expected 0 or more, or -1 for all neighbors")
        self.rows = rows = EdgeSpans.locate(version, edge_type, direction, ids)
        if rows.edges > MAX_EDGES:
            raise InvalidRequest(
                f"the {ids.size} nodes of the hop have {rows.edges} edges of this type: expected "
                f"at most {MAX_EDGES} with importance steps; start from fewer seeds, or use "
                "importance=0"
            )
        self._fanout, self._uniform, self._checkpoint = np.int64(count), uniform, checkpoint
        self.offsets = as_kernel_array(np.concatenate([[0], np.cumsum(rows.degrees)]))
        self.neighbor_indices, self.neighbors = self._index_neighbors()
        if levels is None:
            self.levels = np.empty(ids.size, np.float64)
            with StopFlag(checkpoint) as stop:
                for piece in self._pieces(stop):
                    kernel.initial_levels(
                        rows.spans(piece), self._fanout, uniform, self.levels[piece], stop.flag
                    )
        else:
            check_length("levels", levels, ids.size)
            self.levels = levels.copy()

    def _pieces(self, stop: StopFlag) -> Iterator[slice]:
        """Yield slices of nodes with a limited number of edges.

        A checkpoint follows each slice, and a kernel that was stopped.
        """
        begin, m = 0, self.offsets.size - 1
        while begin < m:
            end = max(
                int(
                    np.searchsorted(
                        self.offsets, self.offsets[begin] + _CHECKPOINT_EDGES, side="right"
                    )
                )
                - 1,
                begin + 1,
            )
            yield slice(begin, end)
            stop.check()
            self._checkpoint()
            begin = end

    def _edges(self, piece: slice) -> slice:
        """Return the slice of all edges that belong to some nodes."""
        return slice(int(self.offsets[piece.start]), int(self.offsets[piece.stop]))

    def _index_neighbors(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the index of each edge's neighbor, and the distinct neighbors by index."""
        rows, neighbor_indices = self.rows, np.empty(self.rows.edges, np.int32)
        size = int(kernel.highest_neighbor(rows.spans())) // 64 + 1
        with StopFlag(self._checkpoint) as stop:
            if 8 * size > _DENSE * rows.edges:
                with Relabeling.pooled(1) as (relabeling,):
                    for piece in self._pieces(stop):
                        neighbors = np.empty(int(rows.degrees[piece].sum()), np.int64)
                        kernel.list_neighbors(rows.spans(piece), neighbors, stop.flag)
                        stop.check()
                        neighbor_indices[self._edges(piece)] = relabeling.assign(
                            neighbors, checkpoint=self._checkpoint
                        )
                    return as_kernel_array(neighbor_indices), relabeling.ids.copy()
            words, word_ranks = np.zeros(size, np.uint64), np.empty(size, np.int32)
            for piece in self._pieces(stop):
                kernel.set_neighbor_bits(rows.spans(piece), words, stop.flag)
            neighbors = self._rank_bits(words, word_ranks)
            for piece in self._pieces(stop):
                kernel.index_neighbors(
                    rows.spans(piece),
                    words,
                    word_ranks,
                    neighbor_indices[self._edges(piece)],
                    stop.flag,
                )
            return as_kernel_array(neighbor_indices), neighbors

    def _rank_bits(
        self, words: NDArray[np.uint64], word_ranks: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Write the number of set bits before each word; return the members of the set."""
        counts = [0]
        pieces = [
            slice(begin, begin + _CHECKPOINT_WORDS)
            for begin in range(0, words.size, _CHECKPOINT_WORDS)
        ]
        for piece in pieces:
            counts.append(rank_words(words[piece], np.int64(counts[-1]), word_ranks[piece]))
            self._checkpoint()
        neighbors = np.empty(counts[-1], np.int64)
        for piece, first, end in zip(pieces, counts[:-1], counts[1:], strict=True):
            list_set_bits(words[piece], np.int64(64 * piece.start), neighbors[first:end])
            self._checkpoint()
        return neighbors

    def update_importances(self, importances: F64 | None) -> F64:
        """Take one step of `asterism_graphkit.operators.labor.solve_importances`.

        Parameters
        ----------
        importances : ndarray of float64, shape (n,), or None
            Current importances of the neighbors; None in the first step.

        Returns
        -------
        ndarray of float64, shape (n,)

        Raises
        ------
        InvalidRequest
            ``importances`` does not have one value per neighbor.
        """
        if importances is not None:
            check_length("importances", importances, self.neighbors.size)
        largest = np.zeros(self.neighbors.size, np.float64)
        with StopFlag(self._checkpoint) as stop:
            for piece in self._pieces(stop):
                spans = self.rows.spans(piece)
                state = kernel.ImportanceState(
                    self.offsets[piece.start : piece.stop + 1],
                    self.neighbor_indices,
                    _NO_F64 if importances is None else as_kernel_array(importances),
                    self.levels[piece],
                )
                if importances is not None:
                    kernel.update_levels(spans, self._fanout, self._uniform, state, stop.flag)
                kernel.update_importances(
                    spans, self._uniform, importances is None, state, largest, stop.flag
                )
        return largest


def keep_neighbors(
    version: LocalVersion,
    labor_options: LaborOptions,
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
    importance_state: tuple[F64, F64] | None = None,
    checkpoint: Checkpoint,
) -> Neighbors:
    """Keep ``count`` neighbors per node in expectation, along one edge type.

    The method is described in `asterism_graphkit.operators.labor`.

    Parameters
    ----------
    version : LocalVersion
    labor_options : LaborOptions
    seed, direction, uniform, want_eids, want_weights
        As in `storaged.sampling.subgraphs.expand.Expansion`; weights are those of a mean estimate.
    edge_type, hop : int
    count : int
        Expected number of neighbors; -1 keeps all neighbors of positive weight.
    ids : ndarray of int64, shape (m,)
        Nodes in partitions held here; -1 and unknown ids have no neighbors.
    importance_state : (ndarray of float64, shape (m,), ndarray of float64, shape (n,)), optional
        Levels of nodes and importances of neighbors, if importance steps were taken over the nodes
        of several hosts. By default, the steps are taken here.
    checkpoint : callable
        Called periodically, even within the edges of one node; may raise.

    Returns
    -------
    Neighbors

    Raises
    ------
    InvalidRequest
        There are more neighbors than a reply can hold, or a type or direction is invalid.
    Unavailable
        A partition is not held here.
    """
    _, remote_type = end_types(version, edge_type, direction)
    steps = _NO_STEPS
    if labor_options.importance:
        arguments: dict[str, Any] = {
            "edge_type": edge_type,
            "direction": direction,
            "uniform": uniform,
            "count": count,
        }
        importance_steps = ImportanceSteps(
            version,
            **arguments,
            ids=ids,
            levels=None if importance_state is None else importance_state[0],
            checkpoint=checkpoint,
        )
        importances = (
            labor.solve_importances(
                labor_options.importance, importance_steps.update_importances, checkpoint
            )
            if importance_state is None
            else importance_state[1]
        )
        check_length("importances", importances, importance_steps.neighbors.size)
        rows = importance_steps.rows
        steps = kernel.ImportanceState(
            importance_steps.offsets,
            importance_steps.neighbor_indices,
            as_kernel_array(importances),
            as_kernel_array(importance_steps.levels),
        )
    else:
        rows = EdgeSpans.locate(version, edge_type, direction, ids)
    expected = rows.edges if count < 0 else min(rows.edges, ids.size * count)
    # The edges to a shared neighbor are kept together, so there may be any number more than
    # expected.
    capacity = min(rows.edges, expected + expected // 8) + kernel.BLOCK
    out = NeighborOutputs(EMPTY_I64, EMPTY_I64, EMPTY_F32)
    sizes, state = np.zeros(ids.size, np.int32), np.zeros(2, np.int64)
    key = labor.variate_key(seed, remote_type, hop, layer_dependency=labor_options.layer_dependency)
    params = kernel.KeepParams(key, np.int64(count), uniform, np.int64(_CHECKPOINT_EDGES))
    spans = rows.spans()
    with StopFlag(checkpoint) as stop:
        while True:
            if capacity > out.ids.size:
                check_row_count("neighbors", capacity - kernel.BLOCK)
                used = int(state[kernel.TOTAL])
                out = NeighborOutputs(
                    resized_copy(out.ids, used, capacity),
                    resized_copy(out.eids, used, capacity if want_eids else 0),
                    resized_copy(out.weights, used, capacity if want_weights else 0),
                )
            previous_row = int(state[kernel.ROW])
            kernel.keep_edges(spans, params, steps, state, sizes, out, stop.flag)
            stop.check()
            row, total = int(state[kernel.ROW]), int(state[kernel.TOTAL])
            if row == ids.size:
                break
            checkpoint()
            if row == previous_row:
                capacity = min(rows.edges, 2 * capacity) + kernel.BLOCK
    return Neighbors(
        sizes=sizes,
        ids=out.ids[:total],
        eids=out.eids[:total] if want_eids else None,
        weights=out.weights[:total] if want_weights else None,
    )
