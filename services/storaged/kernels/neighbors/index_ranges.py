"""Edges of a node that satisfy a condition on a column that they are kept in order of: runs of that
order, found by bisection, and what runs weigh.

What satisfies the condition along several edge types, each in several runs of the order, is
numbered one run after another, types in the order of the union: a *near edge* is such a number. By
weight a run is cut into *pieces*, places of its row's tree of sums; a point of what all pieces
weigh falls on one of them, then goes down from there to an edge. No sum is a difference of others,
so a light run beside heavy ones keeps its law."""

from __future__ import annotations

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
from storaged.kernels.adjacency import prefetch_row_bounds

_EIGHTS, _FOURS = np.uint64(3), np.uint64(2)
_NODES_AHEAD, _EDGES_AHEAD = 24, 12
SMALL_RUN = 16
"""Edges of a run that are looked at one by one, instead of down a tree. Part of the law of
draws.
"""
MAX_PIECES = 64
"""Of a tree, at most: two of each of the levels that 2^32 edges have."""


@inlined
def _lower_bound(
    keys: np.uint64, start: IntLike, stop: IntLike, bound: np.int64, strict: bool
) -> IntLike:
    """The first of some places, whose keys ascend, with a key of at least ``bound``, or more than
    it; ``keys``: address of int64[slots].
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


@inlined
def prefetch_rows(
    node: IntLike,
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    indptr: NDArray[np.uint64],
    order: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    trees: NDArray[np.uint64],
) -> None:
    """Ask for the edges of a node that is some places behind ``node``, and for where those of one
    further behind begin.
    """
    ahead = node + _NODES_AHEAD
    if ahead < rows.shape[0] and rows[ahead] >= 0:
        for t in range(indptr.shape[0]):
            prefetch_row_bounds(indptr[t, parts[ahead]] + (np.uint64(rows[ahead]) << _EIGHTS))
    ahead = node + _EDGES_AHEAD
    if ahead < rows.shape[0] and rows[ahead] >= 0:
        part = parts[ahead]
        for t in range(indptr.shape[0]):
            start = np.uint64(i64_at(indptr[t, part], rows[ahead]))
            prefetch_at(keys[t, part] + (start << _EIGHTS))
            prefetch_at(order[t, part] + (start << _FOURS))
            if weights[t, part] > 0:
                prefetch_at(weights[t, part] + (start << _FOURS))
                prefetch_at(trees[t, part] + (start << _EIGHTS))


@inlined
def _tree_weight(
    tree_node: IntLike,
    start: IntLike,
    size: IntLike,
    order: np.uint64,
    weights: np.uint64,
    tree: np.uint64,
) -> float:
    """What a place of a row's tree weighs: an edge from ``size`` on, the sum of two further places
    before.
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
    """The edge, by its place in its row's order, that a point of a place of the tree falls on;
    never one of weight 0.
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
def match_weight(
    match_index: IntLike,
    run_starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    types: NDArray[np.int64],
    part: IntLike,
    order: NDArray[np.uint64],
    weights: NDArray[np.uint64],
) -> float:
    """The weight of a near edge."""
    s, offset = np.int64(0), np.int64(match_index)
    while offset >= sizes[s]:
        offset -= sizes[s]
        s += 1
    if weights[types[s], part] == 0:
        return 1.0
    return np.float64(
        f32_at(weights[types[s], part], u32_at(order[types[s], part], run_starts[s] + offset))
    )


@inlined
def draw_match(
    point: float,
    piece_count: IntLike,
    piece_of: NDArray[np.int64],
    piece_nodes: NDArray[np.int64],
    sums: NDArray[np.float64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    run_starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    run_offsets: NDArray[np.int64],
    types: NDArray[np.int64],
    part: IntLike,
    order: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    trees: NDArray[np.uint64],
) -> IntLike:
    """The near edge that a point of 0 .. what all pieces weigh falls on."""
    chosen = np.int64(0)
    for p in range(
        piece_count - 1
        # all of them: where to stop would be guessed wrongly every other time, at the price of
        # several comparisons
    ):
        chosen += np.int64(point >= sums[p])
    remaining = point - sums[chosen - 1] if chosen > 0 else point
    s, tree_node = piece_of[chosen], piece_nodes[chosen]
    t = types[s]
    if tree_node < 0:  # every edge alike
        return np.int64(run_offsets[s] + min(np.int64(remaining), sizes[s] - 1))
    row_offset = _descend(
        tree_node,
        remaining,
        starts[s],
        degrees[s],
        order[t, part],
        weights[t, part],
        trees[t, part],
    )
    return np.int64(run_offsets[s] + starts[s] + row_offset - run_starts[s])


@inlined
def _cover_run(
    first: IntLike, size: IntLike, degree: IntLike, tree_nodes: NDArray[np.int64], offset: IntLike
) -> IntLike:
    """The places of a tree that a run of its row's order consists of, put behind ``offset`` others;
    gives how many there are then.
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
    part: IntLike,
    row: IntLike,
    types: NDArray[np.int64],
    lows: NDArray[np.int64],
    highs: NDArray[np.int64],
    indptr: NDArray[np.uint64],
    order: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    trees: NDArray[np.uint64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    run_starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    run_offsets: NDArray[np.int64],
    piece_of: NDArray[np.int64],
    piece_nodes: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> tuple[int, int, float, bool]:
    """Find the near edges of a row: how many there are, in how many pieces that weigh something,
    what they weigh, and whether each weighs 1 by its type. ``sums``: what the pieces up to each
    weigh."""
    match_count, piece_count, total, unit_weights = np.int64(0), np.int64(0), 0.0, True
    for s in range(types.shape[0]):
        t = types[s]
        starts[s] = i64_at(indptr[t, part], row)
        stop = i64_at(indptr[t, part], row + 1)
        degrees[s] = stop - starts[s]
        run_starts[s] = _lower_bound(keys[t, part], starts[s], stop, lows[s], False)
        sizes[s] = _lower_bound(keys[t, part], run_starts[s], stop, highs[s], True) - run_starts[s]
        run_offsets[s] = match_count
        match_count += sizes[s]
        if sizes[s] == 0:
            continue
        if weights[t, part] == 0:
            total += np.float64(sizes[s])
            piece_of[piece_count], piece_nodes[piece_count], sums[piece_count] = (
                np.int64(s),
                np.int64(-1),
                total,
            )
            piece_count += 1
            continue
        unit_weights = False
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
            mass = _tree_weight(
                tree_node, starts[s], degrees[s], order[t, part], weights[t, part], trees[t, part]
            )
            total += mass
            piece_of[piece_count], piece_nodes[piece_count], sums[piece_count] = (
                np.int64(s),
                tree_node,
                total,
            )
            piece_count += np.int64(mass > 0.0)
    # Compiled, they are ints.
    return match_count, piece_count, total, unit_weights  # type: ignore[return-value]
