"""Neighbors without replacement: sparse Fisher-Yates, and rejection with an exact finish."""

from __future__ import annotations

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
from asterism_graphkit.random.alias_draw import resolve_column
from asterism_graphkit.random.rng import bounded, derive, word
from storaged.kernels.adjacency import prefetch_row_bounds
from storaged.kernels.exponential_race import exponential_key, keep_smallest, sort_heap
from storaged.kernels.neighbors.fisher_yates import MAX_DIRECT_DEGREE, find_hash_slot, shuffle

REJECTIONS = 16
"""Rejections in a row after which a node's draws go on as a race. Part of the law: it never depends
on the count.
"""
TILE = 16
"""Nodes that are worked on at a time: what they read is asked for together."""
NODES_AHEAD = 48
DRAWS_AHEAD = 24
"""Draws of each node that are hashed before any of them is looked at."""
_EIGHTS, _FOURS = np.uint64(3), np.uint64(2)


@inlined
def _draw_with_rejection(
    key: np.uint64,
    start: IntLike,
    degree: IntLike,
    count: IntLike,
    base: IntLike,
    shift: np.uint64,
    row_nbr: np.uint64,
    row_thresholds: np.uint64,
    row_fractions: np.uint64,
    columns: NDArray[np.uint64],
    coins: NDArray[np.uint64],
    t: IntLike,
    direct_table: NDArray[np.int16],
    hash_keys: NDArray[np.int64],
    used_buckets: NDArray[np.int64],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """Successive draws from a row's table, repeats rejected; gives how many were found before too
    many in a row.
    """
    direct = degree <= MAX_DIRECT_DEGREE
    num_hashed = columns.shape[1]
    num_found, rejections, attempt = np.int64(0), 0, np.int64(0)
    n = np.uint64(degree)
    while num_found < count and rejections < REJECTIONS:
        if attempt < num_hashed:
            column, coin = columns[t, attempt], coins[t, attempt]
        else:
            w = word(key, np.uint64(attempt))
            column, coin = bounded(w, n), w * n
        attempt += 1
        if attempt & STOP_CHECK_MASK == 0 and is_set(stop):
            break
        row_offset = np.int64(resolve_column(row_thresholds, row_fractions, column, coin))
        bucket = row_offset if direct else np.int64(find_hash_slot(hash_keys, row_offset, shift))
        if direct_table[bucket] != 0 if direct else hash_keys[bucket] >= 0:
            rejections += 1
        else:
            if direct:
                direct_table[bucket] = 1
            else:
                hash_keys[bucket] = row_offset
            used_buckets[num_found] = bucket
            slots[base + num_found] = start + row_offset
            if row_nbr > 0:
                prefetch_at(row_nbr + (np.uint64(row_offset) << _EIGHTS))
            num_found += 1
            rejections = 0
    return num_found


@inlined
def _select_rest(
    key: np.uint64,
    start: IntLike,
    degree: IntLike,
    shift: np.uint64,
    row_weights: np.uint64,
    direct_table: NDArray[np.int16],
    hash_keys: NDArray[np.int64],
    heap_keys: NDArray[np.float64],
    heap_tags: NDArray[np.int32],
    rest_slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """A race among the edges of a row that were not drawn yet; gives how many came in."""
    direct = degree <= MAX_DIRECT_DEGREE
    size = np.int64(0)
    for j in range(degree):
        if j & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
            return size
        weight = np.float64(f32_at(row_weights, j))
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
    key: np.uint64,
    selection_key: np.uint64,
    start: IntLike,
    degree: IntLike,
    count: IntLike,
    base: IntLike,
    row_weights: np.uint64,
    row_thresholds: np.uint64,
    row_fractions: np.uint64,
    row_nbr: np.uint64,
    columns: NDArray[np.uint64],
    coins: NDArray[np.uint64],
    t: IntLike,
    direct_table: NDArray[np.int16],
    hash_keys: NDArray[np.int64],
    values: NDArray[np.int64],
    used_buckets: NDArray[np.int64],
    heap_keys: NDArray[np.float64],
    heap_tags: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """Different neighbors of one row that weighs something, or of at most ``count`` edges; gives
    how many there are.

    Parameters
    ----------
    key : uint64
        Of the node's position.
    selection_key : uint64
        The same under the race's key.
    start, degree : int64
        The row.
    count, base : int64
        The slots are put into ``slots`` from ``base`` on.
    row_weights, row_thresholds, row_fractions, row_nbr : uint64
        Addresses of the row's part of float32, uint64, uint32 and int64[slots]; weights of 0: draw
        uniformly; a table of 0: all weights are equal and positive.
    columns, coins : uint64[.., b], uint64[.., b]
        In line ``t`` the first b draws from the table, which are known already; b may be 0.
    direct_table, hash_keys, values : int16[DIRECT], int64[2^k], int64[2^k]
        Scratch, the latter at least 4 * count and 16; ``direct_table`` is 0 everywhere and
        ``hash_keys`` -1, before and after.
    used_buckets, heap_keys, heap_tags : int64[count], float64[count], int32[count]
        Scratch; ``heap_tags`` is 0.
    slots : int64[..], out
    stop : int64[1]
        Not 0 once the call is to end; what this leaves then is incomplete, scratch included.
    """
    num_found = np.int64(0)
    if degree <= count:
        for j in range(degree):
            if row_weights == 0 or f32_at(row_weights, j) > np.float32(0.0):
                slots[base + num_found] = start + j
                num_found += 1
        return num_found
    shift = np.uint64(64)
    table_size = hash_keys.shape[0]
    while table_size > 1:
        table_size //= 2
        shift -= np.uint64(1)
    if row_weights == 0 or row_thresholds == 0:
        shuffle(
            key,
            start,
            degree,
            count,
            base,
            shift,
            row_nbr,
            direct_table,
            hash_keys,
            values,
            used_buckets,
            slots,
            stop,
        )
        return np.int64(count)
    num_drawn = _draw_with_rejection(
        key,
        start,
        degree,
        count,
        base,
        shift,
        row_nbr,
        row_thresholds,
        row_fractions,
        columns,
        coins,
        t,
        direct_table,
        hash_keys,
        used_buckets,
        slots,
        stop,
    )
    num_found = np.int64(num_drawn)
    if num_drawn < count:
        rest_slots, remaining = slots[base + num_drawn : base + count], count - num_drawn
        num_found += _select_rest(
            selection_key,
            start,
            degree,
            shift,
            row_weights,
            direct_table,
            hash_keys,
            heap_keys[:remaining],
            heap_tags[:remaining],
            rest_slots,
            stop,
        )
    for k in range(num_drawn):
        if degree <= MAX_DIRECT_DEGREE:
            direct_table[used_buckets[k]] = 0
        else:
            hash_keys[used_buckets[k]] = -1
    return num_found


@inlined
def _prepare_tile(
    key: np.uint64,
    positions: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    count: IntLike,
    first: IntLike,
    indptr: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    sums: NDArray[np.uint64],
    alias_threshold: NDArray[np.uint64],
    nbr: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    columns: NDArray[np.uint64],
    coins: NDArray[np.uint64],
) -> None:
    """Find the rows of a tile's nodes, hash their first draws, and ask for what these will read."""
    m = rows.shape[0]
    for t in range(min(np.int64(TILE), m - first)):
        i = first + t
        ahead = i + NODES_AHEAD
        if ahead < m and rows[ahead] >= 0:
            prefetch_row_bounds(indptr[parts[ahead]] + (np.uint64(rows[ahead]) << _EIGHTS))
        starts[t], degrees[t] = 0, 0
        if rows[i] < 0:
            continue
        part = parts[i]
        start = i64_at(indptr[part], rows[i])
        degree = i64_at(indptr[part], rows[i] + 1) - start
        starts[t], degrees[t] = start, degree
        if degree > count:
            keys[t] = derive(key, np.uint64(positions[i]))
            if alias_threshold[part] > 0:
                row_thresholds = alias_threshold[part] + (np.uint64(start) << _EIGHTS)
                for k in range(columns.shape[1]):
                    w = word(keys[t], np.uint64(k))
                    column = bounded(w, np.uint64(degree))
                    columns[t, k], coins[t, k] = column, w * np.uint64(degree)
                    prefetch_at(row_thresholds + (column << _EIGHTS))
                prefetch_at(sums[part] + (np.uint64(rows[i]) << _EIGHTS))
        else:
            prefetch_at(nbr[part] + (np.uint64(start) << _EIGHTS))
            if weights[part] > 0:
                prefetch_at(weights[part] + (np.uint64(start) << _FOURS))


@kernel
def draw_distinct_edges(
    key: np.uint64,
    selection_key: np.uint64,
    positions: NDArray[np.int64],
    out_rows: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    count: np.int64,
    indptr: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    sums: NDArray[np.uint64],
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint64],
    nbr: NDArray[np.uint64],
    out: NDArray[np.int64],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Draw different neighbors of one edge type, in the order of successive draws, and put their
    ids in place.

    Parameters
    ----------
    key : uint64
        ``key_of(seed, rng.NEIGHBOR, direction, hop)``; draw k of a node takes word k of its
        position's key under it.
    selection_key : uint64
        The same under the race's key of this edge type; an edge's word is that of its place in the
        row.
    positions : int64[m]
    out_rows : int64[m]
        Row of each node in the answer; empty: node i has row i.
    parts, rows : int32[m], int64[m]
        As of `storaged.kernels.node_rows.locate_nodes`; a node of row -1 has no neighbors.
    count : int64
        At least 1.
    indptr : uint64[P]
        Addresses of each part's int64[rows + 1].
    weights : uint64[P]
        Addresses of float32[slots]: draw by these; 0: uniformly.
    sums : uint64[P]
        Addresses of float64[rows], of the weights; read where there is a table.
    alias_threshold, alias_fraction : uint64[P], uint64[P]
        Addresses of per-row tables, uint64[slots] and uint32[slots]; 0: all weights are equal and
        positive.
    nbr : uint64[P]
        Addresses of int64[slots].
    out : int64[n * count], out
        Padded with -1. A row of at most ``count`` edges comes whole, in its own order (by weight:
        its positive ones).
    slots : int64[m * count], out
        The slots, likewise; where they are not wanted, scratch of any multiple of ``2 * TILE *
        count`` values.
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.

    Notes
    -----
    By weight, repeats are rejected; after ``REJECTIONS`` in a row the rest is drawn by exponential
    keys among what was not drawn yet. What came before is kept: beginning anew would favour sets
    that are reached quickly. Uniformly it is a Fisher-Yates shuffle of the row, whose array is kept
    only where it was touched. So the first m of n draws are the draws of m."""
    m = rows.shape[0]
    ring = slots.shape[0] // count
    bits = np.uint64(4)
    while np.int64(1) << np.int64(bits) < 4 * count:
        bits += np.uint64(1)
    # What stands at a touched place of a row, or that it was drawn: nothing elsewhere, and nothing
    # anywhere between two nodes.
    direct_table = np.zeros(MAX_DIRECT_DEGREE, np.int16)
    hash_keys = np.full(np.int64(1) << np.int64(bits), np.int64(-1), np.int64)
    values = np.empty(hash_keys.shape[0], np.int64)
    used_buckets = np.empty(count, np.int64)
    heap_keys, heap_tags = np.empty(count, np.float64), np.zeros(count, np.int32)
    num_hashed = min(count, np.int64(DRAWS_AHEAD))
    columns, coins = (
        np.empty((TILE, num_hashed), np.uint64),
        np.empty((TILE, num_hashed), np.uint64),
    )
    keys = np.empty(TILE, np.uint64)
    starts, degrees = np.empty(TILE, np.int64), np.empty(TILE, np.int64)
    for first in range(0, m + TILE, TILE):
        _prepare_tile(
            key,
            positions,
            parts,
            rows,
            count,
            first,
            indptr,
            weights,
            sums,
            alias_threshold,
            nbr,
            keys,
            starts,
            degrees,
            columns,
            coins,
        )
        for t in range(min(np.int64(TILE), m - first)):
            i = first + t
            part, start, degree = parts[i], starts[t], degrees[t]
            base = (i % ring) * count
            offset8, offset4 = np.uint64(start) << _EIGHTS, np.uint64(start) << _FOURS
            row_weights = weights[part] + offset4 if weights[part] > 0 else np.uint64(0)
            row_thresholds = (
                alias_threshold[part] + offset8 if alias_threshold[part] > 0 else np.uint64(0)
            )
            num_found = np.int64(0)
            # Where weights are all alike and positive there is no table, and what a row weighs is
            # not asked.
            if (
                degree <= count
                or row_weights == 0
                or row_thresholds == 0
                or f64_at(sums[part], rows[i]) > 0.0
            ):
                node_selection_key = derive(selection_key, np.uint64(positions[i]))
                num_found = np.int64(
                    choose_distinct_edges(
                        keys[t],
                        node_selection_key,
                        start,
                        degree,
                        count,
                        base,
                        row_weights,
                        row_thresholds,
                        alias_fraction[part] + offset4,
                        nbr[part] + offset8,
                        columns,
                        coins,
                        t,
                        direct_table,
                        hash_keys,
                        values,
                        used_buckets,
                        heap_keys,
                        heap_tags,
                        slots,
                        stop,
                    )
                )
                if is_set(stop):
                    return
            for k in range(num_found, count):
                slots[base + k] = -1
        # By now what the tile before this one asked for has come.
        for i in range(max(first - TILE, 0), min(first, m)):
            base = (i % ring) * count
            out_pos = (out_rows[i] if out_rows.shape[0] > 0 else i) * count
            for k in range(count):
                slot = slots[base + k]
                out[out_pos + k] = i64_at(nbr[parts[i]], slot) if slot >= 0 else np.int64(-1)
