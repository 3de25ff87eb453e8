"""Find the edges of a node that satisfy a filter on an indexed column, and their weights.

Each row's edges are sorted by that column. The matching edges form ranges of this order, called
runs, and are found by bisection.

The matching edges along several edge types, each in several runs, are numbered run by run, with the
types in the order of the union. A *match index* is such a number. By weight, a run is cut into
*pieces*, which are nodes of the row's tree of sums. A point in the total weight of all pieces falls
on one of them, and descends from there to an edge. No sum is computed as a difference of sums, so a
light run next to heavy ones keeps its distribution.
"""

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
from storaged.kernels.adjacency_rows import COLUMNS, INDPTR, ORDER, WEIGHTS, prefetch_row_bounds
from storaged.kernels.neighbors.successive import Runs

KEYS, TREES = range(COLUMNS, COLUMNS + 2)
"""Columns that a table of sorted edges has after those of `storaged.kernels.adjacency_rows`.

Addresses of int64[slots], the keys in order, and of float64[slots], the trees of
`storaged.store.column_index.SortedEdges`; 0: every edge has weight 1. ``ORDER`` is the order of the
index.
"""
SORTED_COLUMNS = COLUMNS + 2

_EIGHTS, _FOURS = np.uint64(3), np.uint64(2)
_NODES_AHEAD, _EDGES_AHEAD = 24, 12
SMALL_RUN = 16
"""Maximum size of a run with edges that are read one at a time, not through the tree.

Part of the sampling contract: changing it changes results for a given seed.
"""
MAX_PIECES = 64
"""Maximum number of pieces of a run: two per level of a tree with 2^32 edges."""


@inlined
def _lower_bound(
    keys: np.uint64, start: IntLike, stop: IntLike, bound: np.int64, strict: bool
) -> IntLike:
    """Return the first position of an ascending range with a key >= ``bound``.

    With ``strict``, the key must be > ``bound``. ``keys`` is the address of int64[slots].
    """
    low, high = np.int64(start), np.int64(stop)
    if low < high:  # a run often reaches an end of the row: cheaper to test than to bisect
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
    """The runs of a row, cut into pieces for draws by weight.

    Attributes
    ----------
    row_starts, degrees : ndarray of int64, shape (runs,)
        First slot and number of slots of the row, for each run.
    run_offsets : ndarray of int64, shape (runs,)
        Match index of the first edge of each run.
    piece_of : ndarray of int64, shape (runs * MAX_PIECES,)
        Run of each piece.
    piece_nodes : ndarray of int64, shape (runs * MAX_PIECES,)
        Node of each piece in its row's tree. -1 for a whole run of edges of weight 1.
    sums : ndarray of float64, shape (runs * MAX_PIECES,)
        Total weight of the pieces up to and including each one.
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
    """Prefetch the edges of a node some positions ahead, and the row bounds of a later node."""
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
    """Return the weight of a node of a row's tree.

    Nodes from ``size`` on are edges; each node before is the sum of its two children.
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
    """Return the edge that a point within a tree node falls on; never an edge of weight 0.

    The result is the edge's position in the order of its row.
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
    """Return the match on which a point in 0 .. the total weight of all pieces falls."""
    sums = pieces.sums
    chosen = np.int64(0)
    for p in range(
        piece_count - 1
        # no early exit: the branch would often be mispredicted, which costs several comparisons
    ):
        chosen += np.int64(point >= sums[p])
    remaining = point - sums[chosen - 1] if chosen > 0 else point
    s, tree_node = pieces.piece_of[chosen], pieces.piece_nodes[chosen]
    t, row_start = runs.types[s], pieces.row_starts[s]
    if tree_node < 0:  # all edges have weight 1
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
    """Append the tree nodes that cover a run to the list; return its new length.

    ``tree_nodes`` is int64[..], written from ``offset`` on.
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
    """Find the matching edges of a row.

    Parameters
    ----------
    tables : ndarray of int64, shape (types, P, SORTED_COLUMNS)
    part, row : int64
    bounds : ndarray of int64, shape (3, runs)
        Edge type, smallest and largest key of each run.
    runs : Runs, out
        Its types are already those of ``bounds``.
    pieces : RowPieces, out

    Returns
    -------
    match_count, piece_count : int
        Number of matches, and of pieces with a positive weight.
    total : float
        Total weight of the matches.
    unit_weights : bool
        Whether all edge types of the matches have unit weights.
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
    # In compiled code these are ints.
    return match_count, piece_count, total, unit_weights  # type: ignore[return-value]
