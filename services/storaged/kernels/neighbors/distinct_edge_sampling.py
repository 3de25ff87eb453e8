"""Neighbor sampling without replacement: sparse Fisher-Yates, or rejection sampling.

Rejection has an exact finish by exponential keys.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    STOP_CHECK_MASK,
    IntLike,
    f32_at,
    f64_at,
    i64_at,
    inlined,
    is_set,
    kernel,
    prefetch_at,
)
from asterism_graphkit.compile.named_tuple_arguments import kernel_record
from asterism_graphkit.random.alias_draw import resolve_column
from asterism_graphkit.random.rng import bounded, derive_mixed, word
from storaged.kernels.adjacency_rows import (
    ALIAS_FRACTION,
    ALIAS_THRESHOLD,
    INDPTR,
    NBR,
    SUMS,
    WEIGHTS,
    prefetch_row_bounds,
)
from storaged.kernels.exponential_keys import exponential_key, keep_smallest, sort_heap
from storaged.kernels.neighbors.fisher_yates import (
    MAX_DIRECT_DEGREE,
    DistinctScratch,
    RowDraw,
    find_hash_slot,
    hash_table_bits,
    shuffle,
)

REJECTIONS = 16
"""Consecutive rejections after which a node's draws continue by exponential keys.

It never depends on the count. Part of the sampling contract: changing it changes results for a
given seed.
"""
TILE = 16
"""Nodes that are processed together: their reads are prefetched together."""
NODES_AHEAD = 48
DRAWS_AHEAD = 24
"""Draws of each node that are hashed before any of them is resolved."""
_EIGHTS, _FOURS = np.uint64(3), np.uint64(2)


@kernel_record
class DistinctParams(NamedTuple):
    """Parameters of draws without replacement along one edge type.

    Attributes
    ----------
    key : uint64
        ``key_of(seed, rng.NEIGHBOR, direction, hop)``. Draw k of a node uses word k of the key
        derived from it by the node's tag, `rng.node_tag`.
    selection_key : uint64
        Key of exponential-key selection for this edge type. The word of an edge is that of its
        offset in the row.
    num_draws : int64
        Neighbors per node, at least 1.
    """

    key: np.uint64
    selection_key: np.uint64
    num_draws: np.int64


class _Nodes(NamedTuple):
    """Nodes of a call; see `draw_distinct_edges`."""

    tags: NDArray[np.int64]
    out_rows: NDArray[np.int64]
    parts: NDArray[np.int32]
    rows: NDArray[np.int64]


class _Tile(NamedTuple):
    """Scratch arrays of `TILE` nodes that are processed together.

    Attributes
    ----------
    keys : ndarray of uint64, shape (TILE,)
    starts, degrees : ndarray of int64, shape (TILE,)
    columns, coins : ndarray of uint64, shape (TILE, b)
        Column and coin of the first b draws of each node.
    """

    keys: NDArray[np.uint64]
    starts: NDArray[np.int64]
    degrees: NDArray[np.int64]
    columns: NDArray[np.uint64]
    coins: NDArray[np.uint64]


@inlined
def _draw_with_rejection(
    row: RowDraw,
    shift: np.uint64,
    columns: NDArray[np.uint64],
    coins: NDArray[np.uint64],
    scratch: DistinctScratch,
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """Sample from a row's alias table and reject repeats; return the number of distinct edges.

    Ends with enough edges, or after too many consecutive rejections.
    """
    start, degree, count = row.start, row.degree, row.num_draws
    direct_table, hash_keys, used_buckets = (
        scratch.direct_table,
        scratch.hash_keys,
        scratch.used_buckets,
    )
    direct = degree <= MAX_DIRECT_DEGREE
    num_hashed = columns.shape[0]
    num_found, rejections, attempt = np.int64(0), 0, np.int64(0)
    n = np.uint64(degree)
    while num_found < count and rejections < REJECTIONS:
        if attempt < num_hashed:
            column, coin = columns[attempt], coins[attempt]
        else:
            w = word(row.key, np.uint64(attempt))
            column, coin = bounded(w, n), w * n
        attempt += 1
        if attempt & STOP_CHECK_MASK == 0 and is_set(stop):
            break
        row_offset = np.int64(resolve_column(row.alias_threshold, row.alias_fraction, column, coin))
        bucket = row_offset if direct else np.int64(find_hash_slot(hash_keys, row_offset, shift))
        if direct_table[bucket] != 0 if direct else hash_keys[bucket] >= 0:
            rejections += 1
        else:
            if direct:
                direct_table[bucket] = 1
            else:
                hash_keys[bucket] = row_offset
            used_buckets[num_found] = bucket
            slots[row.base + num_found] = start + row_offset
            if row.nbr > 0:
                prefetch_at(row.nbr + (np.uint64(row_offset) << _EIGHTS))
            num_found += 1
            rejections = 0
    return num_found


@inlined
def _select_rest(
    row: RowDraw,
    shift: np.uint64,
    scratch: DistinctScratch,
    heap_keys: NDArray[np.float64],
    heap_tags: NDArray[np.int32],
    rest_slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """Select by exponential keys among the edges of a row not drawn yet; return their number."""
    key, start = row.selection_key, row.start
    direct_table, hash_keys = scratch.direct_table, scratch.hash_keys
    direct = row.degree <= MAX_DIRECT_DEGREE
    size = np.int64(0)
    for j in range(row.degree):
        if j & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
            return size
        weight = np.float64(f32_at(row.weights, j))
        if weight > 0.0 and (
            direct_table[j] == 0
            if direct
            else hash_keys[find_hash_slot(hash_keys, np.int64(j), shift)] < 0
        ):
            edge_key = exponential_key(word(key, np.uint64(j)), weight)
            if size == rest_slots.shape[0] and edge_key > heap_keys[0]:
                continue
            size = np.int64(
                keep_smallest(
                    heap_keys,
                    heap_tags,
                    rest_slots,
                    rest_slots,
                    size,
                    edge_key,
                    np.int32(0),
                    start + j,
                    start + j,
                )
            )
    sort_heap(heap_keys, heap_tags, rest_slots, rest_slots, size, stop)
    return size


@inlined
def choose_distinct_edges(
    row: RowDraw,
    columns: NDArray[np.uint64],
    coins: NDArray[np.uint64],
    scratch: DistinctScratch,
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """Choose distinct edges of a row of positive weight, or of at most ``num_draws`` edges.

    Parameters
    ----------
    row : RowDraw
    columns, coins : ndarray of uint64, shape (b,)
        The first b draws from the row's alias table if they are known already; b may be 0.
    scratch : DistinctScratch
    slots : ndarray of int64, out
        Written from ``row.base`` on.
    stop : ndarray of int64, shape (1,)
        A nonzero value stops the call; outputs and scratch are then incomplete.

    Returns
    -------
    int
        Number of chosen edges.
    """
    num_found = np.int64(0)
    if row.degree <= row.num_draws:
        for j in range(row.degree):
            if row.weights == 0 or f32_at(row.weights, j) > np.float32(0.0):
                slots[row.base + num_found] = row.start + j
                num_found += 1
        return num_found
    shift = np.uint64(64)
    table_size = scratch.hash_keys.shape[0]
    while table_size > 1:
        table_size //= 2
        shift -= np.uint64(1)
    if row.weights == 0 or row.alias_threshold == 0:
        shuffle(row, shift, scratch, slots, stop)
        return np.int64(row.num_draws)
    count, used_buckets = row.num_draws, scratch.used_buckets
    direct_table, hash_keys = scratch.direct_table, scratch.hash_keys
    num_drawn = _draw_with_rejection(row, shift, columns, coins, scratch, slots, stop)
    num_found = np.int64(num_drawn)
    if num_drawn < count:
        rest_slots, remaining = slots[row.base + num_drawn : row.base + count], count - num_drawn
        num_found += _select_rest(
            row,
            shift,
            scratch,
            scratch.heap_keys[:remaining],
            scratch.heap_tags[:remaining],
            rest_slots,
            stop,
        )
    for k in range(num_drawn):
        if row.degree <= MAX_DIRECT_DEGREE:
            direct_table[used_buckets[k]] = 0
        else:
            hash_keys[used_buckets[k]] = -1
    return num_found


@inlined
def _prepare_tile(
    table: NDArray[np.int64],
    params: DistinctParams,
    nodes: _Nodes,
    first: IntLike,
    tile: _Tile,
) -> None:
    """Find the rows of a tile's nodes, hash their first draws, and prefetch."""
    parts, rows = nodes.parts, nodes.rows
    keys, starts, degrees, columns, coins = tile
    m = rows.shape[0]
    for t in range(min(np.int64(TILE), m - first)):
        i = first + t
        ahead = i + NODES_AHEAD
        if ahead < m and rows[ahead] >= 0:
            prefetch_row_bounds(
                np.uint64(table[parts[ahead], INDPTR]) + (np.uint64(rows[ahead]) << _EIGHTS)
            )
        starts[t], degrees[t] = 0, 0
        if rows[i] < 0:
            continue
        part = parts[i]
        indptr = np.uint64(table[part, INDPTR])
        start = i64_at(indptr, rows[i])
        degree = i64_at(indptr, rows[i] + 1) - start
        starts[t], degrees[t] = start, degree
        if degree > params.num_draws:
            keys[t] = derive_mixed(params.key, np.uint64(nodes.tags[i]))
            if table[part, ALIAS_THRESHOLD] > 0:
                row_thresholds = np.uint64(table[part, ALIAS_THRESHOLD]) + (
                    np.uint64(start) << _EIGHTS
                )
                for k in range(columns.shape[1]):
                    w = word(keys[t], np.uint64(k))
                    column = bounded(w, np.uint64(degree))
                    columns[t, k], coins[t, k] = column, w * np.uint64(degree)
                    prefetch_at(row_thresholds + (column << _EIGHTS))
                prefetch_at(np.uint64(table[part, SUMS]) + (np.uint64(rows[i]) << _EIGHTS))
        else:
            prefetch_at(np.uint64(table[part, NBR]) + (np.uint64(start) << _EIGHTS))
            if table[part, WEIGHTS] > 0:
                prefetch_at(np.uint64(table[part, WEIGHTS]) + (np.uint64(start) << _FOURS))


@inlined
def _draw_tiles(
    table: NDArray[np.int64],
    params: DistinctParams,
    nodes: _Nodes,
    tile: _Tile,
    scratch: DistinctScratch,
    out: NDArray[np.int64],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Run `draw_distinct_edges` with existing scratch arrays."""
    parts, rows, out_rows, count = nodes.parts, nodes.rows, nodes.out_rows, params.num_draws
    m = rows.shape[0]
    ring = slots.shape[0] // count
    for first in range(0, m + TILE, TILE):
        _prepare_tile(table, params, nodes, first, tile)
        for t in range(min(np.int64(TILE), m - first)):
            i = first + t
            part, start, degree = parts[i], tile.starts[t], tile.degrees[t]
            base = (i % ring) * count
            offset8, offset4 = np.uint64(start) << _EIGHTS, np.uint64(start) << _FOURS
            row_weights = (
                np.uint64(table[part, WEIGHTS]) + offset4
                if table[part, WEIGHTS] > 0
                else np.uint64(0)
            )
            row_thresholds = (
                np.uint64(table[part, ALIAS_THRESHOLD]) + offset8
                if table[part, ALIAS_THRESHOLD] > 0
                else np.uint64(0)
            )
            num_found = np.int64(0)
            # If all weights are equal and positive, there is no table, and the sum of the row is
            # not read.
            if (
                degree <= count
                or row_weights == 0
                or row_thresholds == 0
                or f64_at(np.uint64(table[part, SUMS]), rows[i]) > 0.0
            ):
                row = RowDraw(
                    tile.keys[t],
                    derive_mixed(params.selection_key, np.uint64(nodes.tags[i])),
                    start,
                    degree,
                    count,
                    base,
                    row_weights,
                    row_thresholds,
                    np.uint64(table[part, ALIAS_FRACTION]) + offset4,
                    np.uint64(table[part, NBR]) + offset8,
                )
                num_found = np.int64(
                    choose_distinct_edges(row, tile.columns[t], tile.coins[t], scratch, slots, stop)
                )
                if is_set(stop):
                    return
            for k in range(num_found, count):
                slots[base + k] = -1
        # The memory that the previous tile prefetched has arrived by now.
        for i in range(max(first - TILE, 0), min(first, m)):
            base = (i % ring) * count
            out_pos = (out_rows[i] if out_rows.shape[0] > 0 else i) * count
            nbr = np.uint64(table[parts[i], NBR])
            for k in range(count):
                slot = slots[base + k]
                out[out_pos + k] = i64_at(nbr, slot) if slot >= 0 else np.int64(-1)


@kernel
def draw_distinct_edges(
    table: NDArray[np.int64],
    params: DistinctParams,
    tags: NDArray[np.int64],
    out_rows: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    out: NDArray[np.int64],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Sample distinct edges of one edge type, and write the ids of their neighbors.

    The edges are in the order of successive draws.

    Parameters
    ----------
    table : ndarray of int64, shape (P, COLUMNS)
        Address table of `storaged.kernels.adjacency_rows`. Without ``WEIGHTS`` draws are uniform.
        With weights but no ``ALIAS_THRESHOLD`` all weights are equal and positive.
    params : DistinctParams
    tags : ndarray of int64, shape (m,)
        Tags that key the nodes' draws, from `storaged.kernels.node_rows.node_tags`.
    out_rows : ndarray of int64, shape (m,) or (0,)
        Row of each node in the result. If empty, node i has row i.
    parts : ndarray of int32, shape (m,)
    rows : ndarray of int64, shape (m,)
        As in `storaged.kernels.node_rows.locate_nodes`; a node of row -1 has no neighbors.
    out : ndarray of int64, shape (n * count,), out
        Padded with -1. A row of at most ``count`` edges is returned whole, in its stored order (by
        weight: only edges of positive weight).
    slots : ndarray of int64, shape (m * count,), out
        Slots of the edges, padded with -1. If they are not wanted: scratch, with the size of any
        multiple of ``2 * TILE * count``.
    stop : ndarray of int64, shape (1,)
        A nonzero value stops the call; its outputs are then incomplete.

    Notes
    -----
    By weight, repeats are rejected. After ``REJECTIONS`` consecutive rejections the rest is
    selected by exponential keys (Efraimidis & Spirakis 2006) among the edges not drawn yet. The
    earlier draws are kept: starting over would favor sets that are found quickly. Uniform sampling
    is a Fisher-Yates shuffle of the row; only the touched elements of its array are stored. The
    first m of n draws are therefore the draws of a request for m.
    """
    count = params.num_draws
    # State of the touched positions of a row: the shuffled value, or that it was drawn. Empty
    # between two nodes.
    direct_table = np.zeros(MAX_DIRECT_DEGREE, np.int16)
    hash_keys = np.full(np.int64(1) << np.int64(hash_table_bits(count)), np.int64(-1), np.int64)
    scratch = DistinctScratch(
        direct_table,
        hash_keys,
        np.empty(hash_keys.shape[0], np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.float64),
        np.zeros(count, np.int32),
    )
    num_hashed = min(count, np.int64(DRAWS_AHEAD))
    tile = _Tile(
        np.empty(TILE, np.uint64),
        np.empty(TILE, np.int64),
        np.empty(TILE, np.int64),
        np.empty((TILE, num_hashed), np.uint64),
        np.empty((TILE, num_hashed), np.uint64),
    )
    nodes = _Nodes(tags, out_rows, parts, rows)
    _draw_tiles(table, params, nodes, tile, scratch, out, slots, stop)
