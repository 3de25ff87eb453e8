"""Edges of a node that satisfy a filter on a column that they are sorted by: runs of that order,
found by bisection, and the weights of runs.

The edges that satisfy the filter along several edge types, each in several runs of the order, are
numbered one run after another, types in the order of the union: a *match index* is such a number.
By weight a run is cut into *pieces*, places of its row's tree of sums; a point of the weight of all
pieces falls on one of them, then goes down from there to an edge. No sum is a difference of others,
so a light run beside heavy ones keeps its distribution."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    IntLike,
    f32_at,
    f64_at,
    i64_at,
    inlined,
    prefetch_at,
    u32_at,
)
from storaged.kernels.adjacency import COLUMNS, INDPTR, ORDER, WEIGHTS, prefetch_row_bounds
from storaged.kernels.neighbors.successive import Runs

KEYS, TREES = range(COLUMNS, COLUMNS + 2)
"""Columns that a table of sorted edges has after those of `storaged.kernels.adjacency`: addresses
of int64[slots], keys in order, and of float64[slots], as
`storaged.store.column_index.SortedEdges` has its trees; 0: every edge weighs 1. Its ``ORDER`` is
that of the index."""
SORTED_COLUMNS = COLUMNS + 2

_EIGHTS, _FOURS = np.uint64(3), np.uint64(2)
_NODES_AHEAD, _EDGES_AHEAD = 24, 12
SMALL_RUN = 16
"""Edges of a run that are read one by one, instead of down a tree. Part of the sampling contract:
changing it changes results for a given seed."""
MAX_PIECES = 64
"""Pieces of a run at most: two of each of the levels that 2^32 edges have."""


@inlined
def _lower_bound(
    keys: np.uint64, start: IntLike, stop: IntLike, bound: np.int64, strict: bool
) -> IntLike:
    """Return the first place of an ascending range with a key of at least ``bound``, or more than
    it if ``strict``; ``keys`` is the address of int64[slots].
    """
    low, high = np.int64(start), np.int64(stop)
    if (
        low < high
    ):  # runs often reach to an end of the row, and a guess of that is cheaper than a bisection's
        key = i64_at(keys, low)
        if key > bound or (key == bound and not strict):
            return low
        key = i64_at(keys, high - 1)
        if key < bound or (strict and key == bound):
            return high
    while low < high:
        middle = (low + high) >> 1
        key = i64_at(keys, middle)
        if key < bound or (strict and key == bound):
            low = middle + 1
        else:
            high = middle
    return low


class RowPieces(NamedTuple):
    """What draws by weight read of a row's runs, cut into pieces.

    Attributes
    ----------
    row_starts, degrees : ndarray of int64, shape (runs,)
        First slot and number of slots of the row, by run.
    run_offsets : ndarray of int64, shape (runs,)
        Match index of the first edge of each run.
    piece_of : ndarray of int64, shape (runs * MAX_PIECES,)
        Run of each piece.
    piece_nodes : ndarray of int64, shape (runs * MAX_PIECES,)
        Place of each piece in its row's tree; -1: the run as a whole, whose edges weigh 1.
    sums : ndarray of float64, shape (runs * MAX_PIECES,)
        Weight of the pieces up to each.
    masses : ndarray of float64, shape (SMALL_RUN,)
        Scratch: weights of a few matches.
    """

    row_starts: NDArray[np.int64]
    degrees: NDArray[np.int64]
    run_offsets: NDArray[np.int64]
    piece_of: NDArray[np.int64]
    piece_nodes: NDArray[np.int64]
    sums: NDArray[np.float64]
    masses: NDArray[np.float64]


@inlined
def prefetch_rows(
    tables: NDArray[np.int64], node: IntLike, parts: NDArray[np.int32], rows: NDArray[np.int64]
) -> None:
    """Prefetch the edges of a node that is some places after ``node``, and the row bounds of one
    further on.
    """
    ahead = node + _NODES_AHEAD
    if ahead < rows.shape[0] and rows[ahead] >= 0:
        for t in range(tables.shape[0]):
            prefetch_row_bounds(
                np.uint64(tables[t, parts[ahead], INDPTR]) + (np.uint64(rows[ahead]) << _EIGHTS)
            )
    ahead = node + _EDGES_AHEAD
    if ahead < rows.shape[0] and rows[ahead] >= 0:
        part = parts[ahead]
        for t in range(tables.shape[0]):
            start = np.uint64(i64_at(np.uint64(tables[t, part, INDPTR]), rows[ahead]))
            prefetch_at(np.uint64(tables[t, part, KEYS]) + (start << _EIGHTS))
            prefetch_at(np.uint64(tables[t, part, ORDER]) + (start << _FOURS))
            if tables[t, part, WEIGHTS] > 0:
                prefetch_at(np.uint64(tables[t, part, WEIGHTS]) + (start << _FOURS))
                prefetch_at(np.uint64(tables[t, part, TREES]) + (start << _EIGHTS))


@inlined
def _tree_weight(
    tree_node: IntLike,
    start: IntLike,
    size: IntLike,
    order: np.uint64,
    weights: np.uint64,
    tree: np.uint64,
) -> float:
    """Return the weight of a node of a row's tree: an edge from ``size`` on, the sum of two further
    nodes before.
    """
    if tree_node >= size:
        return np.float64(f32_at(weights, u32_at(order, start + tree_node - size)))
    return np.float64(f64_at(tree, start + tree_node))


@inlined
def _descend(
    tree_node: IntLike,
    point: float,
    start: IntLike,
    size: IntLike,
    order: np.uint64,
    weights: np.uint64,
    tree: np.uint64,
) -> IntLike:
    """Return the edge, by its place in its row's order, on which a point of a node of the tree
    falls; never one of weight 0.
    """
    node, remaining = np.int64(tree_node), point
    while node < size:
        left_weight = _tree_weight(2 * node, start, size, order, weights, tree)
        node = 2 * node
        if (
            remaining >= left_weight
            and _tree_weight(node + 1, start, size, order, weights, tree) > 0.0
        ):
            remaining -= left_weight
            node += 1
    return np.int64(node - size)


@inlined
def draw_match(
    tables: NDArray[np.int64],
    part: IntLike,
    point: float,
    piece_count: IntLike,
    runs: Runs,
    pieces: RowPieces,
) -> IntLike:
    """Return the match on which a point of 0 .. the weight of all pieces falls."""
    sums = pieces.sums
    chosen = np.int64(0)
    for p in range(
        piece_count - 1
        # all of them: where to stop would be guessed wrongly every other time, at the price of
        # several comparisons
    ):
        chosen += np.int64(point >= sums[p])
    remaining = point - sums[chosen - 1] if chosen > 0 else point
    s, tree_node = pieces.piece_of[chosen], pieces.piece_nodes[chosen]
    t, row_start = runs.types[s], pieces.row_starts[s]
    if tree_node < 0:  # every edge alike
        return np.int64(pieces.run_offsets[s] + min(np.int64(remaining), runs.sizes[s] - 1))
    row_offset = _descend(
        tree_node,
        remaining,
        row_start,
        pieces.degrees[s],
        np.uint64(tables[t, part, ORDER]),
        np.uint64(tables[t, part, WEIGHTS]),
        np.uint64(tables[t, part, TREES]),
    )
    return np.int64(pieces.run_offsets[s] + row_start + row_offset - runs.starts[s])


@inlined
def _cover_run(
    first: IntLike, size: IntLike, degree: IntLike, tree_nodes: NDArray[np.int64], offset: IntLike
) -> IntLike:
    """Append the nodes of a tree that make up a run of its row's order to ``offset`` others; return
    how many there are then.
    """
    count = np.int64(offset)
    low, high = np.int64(first + degree), np.int64(first + size + degree)
    while low < high:
        if low & 1:
            tree_nodes[count] = low
            count += 1
            low += 1
        if high & 1:
            high -= 1
            tree_nodes[count] = high
            count += 1
        low >>= 1
        high >>= 1
    return count


@inlined
def find_runs(
    tables: NDArray[np.int64],
    part: IntLike,
    row: IntLike,
    bounds: NDArray[np.int64],
    runs: Runs,
    pieces: RowPieces,
) -> tuple[int, int, float, bool]:
    """Find the matches of a row.

    Parameters
    ----------
    tables : ndarray of int64, shape (types, P, SORTED_COLUMNS)
    part, row : int64
    bounds : ndarray of int64, shape (3, runs)
        Edge type, least and largest key of each run.
    runs : Runs, out
        Its types are those of ``bounds`` already.
    pieces : RowPieces, out

    Returns
    -------
    match_count, piece_count : int
        Matches, and pieces that weigh something.
    total : float
        Weight of the matches.
    unit_weights : bool
        Whether each weighs 1 by its type.
    """
    types, run_starts, sizes = runs
    starts, degrees, run_offsets, piece_of, piece_nodes, sums, _ = pieces
    match_count, piece_count, total, unit_weights = np.int64(0), np.int64(0), 0.0, True
    for s in range(types.shape[0]):
        t = types[s]
        low, high = bounds[1, s], bounds[2, s]
        indptr, keys = np.uint64(tables[t, part, INDPTR]), np.uint64(tables[t, part, KEYS])
        starts[s] = i64_at(indptr, row)
        stop = i64_at(indptr, row + 1)
        degrees[s] = stop - starts[s]
        run_starts[s] = _lower_bound(keys, starts[s], stop, low, False)
        sizes[s] = _lower_bound(keys, run_starts[s], stop, high, True) - run_starts[s]
        run_offsets[s] = match_count
        match_count += sizes[s]
        if sizes[s] == 0:
            continue
        weights = np.uint64(tables[t, part, WEIGHTS])
        if weights == 0:
            total += np.float64(sizes[s])
            piece_of[piece_count], piece_nodes[piece_count], sums[piece_count] = (
                np.int64(s),
                np.int64(-1),
                total,
            )
            piece_count += 1
            continue
        unit_weights = False
        order, tree = np.uint64(tables[t, part, ORDER]), np.uint64(tables[t, part, TREES])
        end = np.int64(
            _cover_run(run_starts[s] - starts[s], sizes[s], degrees[s], piece_nodes, piece_count)
            if sizes[s] > SMALL_RUN
            else piece_count + sizes[s]
        )
        if sizes[s] <= SMALL_RUN:
            for piece in range(sizes[s]):
                piece_nodes[piece_count + piece] = degrees[s] + run_starts[s] - starts[s] + piece
        for piece in range(piece_count, end):
            tree_node = piece_nodes[piece]
            mass = _tree_weight(tree_node, starts[s], degrees[s], order, weights, tree)
            total += mass
            piece_of[piece_count], piece_nodes[piece_count], sums[piece_count] = (
                np.int64(s),
                tree_node,
                total,
            )
            piece_count += np.int64(mass > 0.0)
    # Compiled, they are ints.
    return match_count, piece_count, total, unit_weights  # type: ignore[return-value]
