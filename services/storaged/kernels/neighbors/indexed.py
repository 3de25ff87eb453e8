"""Neighbors under a condition on a column that each node's edges are kept in order of: draws from
runs of that order, as `storaged.kernels.neighbors.index_ranges` finds them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import STOP_CHECK_MASK, IntLike, inlined, is_set, kernel, u32_at
from asterism_graphkit.random.rng import bounded, derive, unit_float, word
from asterism_graphkit.random.successive import neumaier_add
from storaged.kernels.exponential_race import exponential_key, keep_smallest, sort_heap
from storaged.kernels.neighbors.distinct_edges import REJECTIONS
from storaged.kernels.neighbors.fisher_yates import find_hash_slot
from storaged.kernels.neighbors.index_ranges import (
    MAX_PIECES,
    SMALL_RUN,
    draw_match,
    find_runs,
    match_weight,
    prefetch_rows,
)
from storaged.kernels.neighbors.temporal import shuffle_places

_NONE, _ONE = np.uint64(0), np.uint64(1)


@inlined
def _draw_few(
    key: np.uint64,
    match_count: IntLike,
    run_starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    types: NDArray[np.int64],
    part: IntLike,
    order: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    sums: NDArray[np.float64],
    masses: NDArray[np.float64],
    draws: NDArray[np.int64],
) -> None:
    """Different near edges by weight, of few that all weigh something: what was drawn weighs
    nothing any more, and the rest is summed anew.
    """
    for match_index in range(match_count):
        masses[match_index] = match_weight(
            np.int64(match_index), run_starts, sizes, types, part, order, weights
        )
    for k in range(draws.shape[0]):
        total = 0.0
        for match_index in range(match_count):
            total += masses[match_index]
            sums[match_index] = total
        point = unit_float(word(key, np.uint64(k))) * total
        chosen = np.int64(0)
        for match_index in range(match_count):
            chosen += np.int64(point >= sums[match_index])
        draws[k] = chosen
        masses[chosen] = 0.0


@inlined
def _successive(
    key: np.uint64,
    selection_key: np.uint64,
    match_count: IntLike,
    piece_count: IntLike,
    total: float,
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
    shift: np.uint64,
    hash_keys: NDArray[np.int64],
    used_buckets: NDArray[np.int64],
    heap_keys: NDArray[np.float64],
    heap_tags: NDArray[np.int32],
    draws: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """Different near edges by weight: draws, repeats rejected, and after too many in a row a race
    among the rest; gives how many there are.
    """
    count = draws.shape[0]
    num_found, rejections, attempt = np.int64(0), 0, np.int64(0)
    while num_found < count and rejections < REJECTIONS:
        point = unit_float(word(key, np.uint64(attempt))) * total
        chosen = np.int64(
            draw_match(
                point,
                piece_count,
                piece_of,
                piece_nodes,
                sums,
                starts,
                degrees,
                run_starts,
                sizes,
                run_offsets,
                types,
                part,
                order,
                weights,
                trees,
            )
        )
        attempt += 1
        if attempt & STOP_CHECK_MASK == 0 and is_set(stop):
            return num_found
        bucket = np.int64(find_hash_slot(hash_keys, chosen, shift))
        if hash_keys[bucket] >= 0:
            rejections += 1
        else:
            hash_keys[bucket] = chosen
            used_buckets[num_found] = bucket
            draws[num_found] = chosen
            num_found += 1
            rejections = 0
    num_drawn = num_found
    if num_drawn < count:
        rest_keys, tags, rest_draws = (
            heap_keys[: count - num_drawn],
            heap_tags[: count - num_drawn],
            draws[num_drawn:],
        )
        size = np.int64(0)
        for match_index in range(match_count):
            if match_index & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                return num_drawn
            weight = match_weight(
                np.int64(match_index), run_starts, sizes, types, part, order, weights
            )
            if (
                weight > 0.0
                and hash_keys[find_hash_slot(hash_keys, np.int64(match_index), shift)] < 0
            ):
                edge_key = exponential_key(word(selection_key, np.uint64(match_index)), weight)
                if size == rest_keys.shape[0] and edge_key > rest_keys[0]:
                    continue
                size = np.int64(
                    keep_smallest(
                        rest_keys,
                        tags,
                        rest_draws,
                        rest_draws,
                        size,
                        edge_key,
                        np.int32(0),
                        np.int64(match_index),
                        np.int64(match_index),
                    )
                )
        sort_heap(rest_keys, tags, rest_draws, rest_draws, size, stop)
        num_found = np.int64(num_drawn + size)
    for k in range(num_drawn):
        hash_keys[used_buckets[k]] = -1
    return num_found


@kernel
def _remaining_weight(
    draws: NDArray[np.int64],
    num_found: IntLike,
    match_count: IntLike,
    run_starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    types: NDArray[np.int64],
    part: IntLike,
    order: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    stop: NDArray[np.int64],
) -> float:
    """What the near edges weigh that were not drawn."""
    drawn_bits = np.zeros((match_count >> 6) + 1, np.uint64)
    for k in range(num_found):
        drawn_bits[draws[k] >> 6] |= _ONE << np.uint64(draws[k] & 63)
    high, low = 0.0, 0.0
    for match_index in range(match_count):
        if match_index & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
            break
        if drawn_bits[match_index >> 6] >> np.uint64(match_index & 63) & _ONE == _NONE:
            high, low = neumaier_add(
                high,
                low,
                match_weight(np.int64(match_index), run_starts, sizes, types, part, order, weights),
            )
    return high + low


@kernel
def draw_indexed(
    key: np.uint64,
    selection_key: np.uint64,
    positions: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    count: np.int64,
    replace: bool,
    want_remaining: bool,
    types: NDArray[np.int64],
    lows: NDArray[np.int64],
    highs: NDArray[np.int64],
    indptr: NDArray[np.uint64],
    order: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    trees: NDArray[np.uint64],
    type_indices: NDArray[np.int32],
    slots: NDArray[np.int64],
    totals: NDArray[np.float64],
    counts: NDArray[np.float64],
    remaining: NDArray[np.float64],
    stop: NDArray[np.int64],
) -> None:
    """Draw from the edges of each node whose keys are in some runs.

    Parameters
    ----------
    key, selection_key : uint64
        ``key_of(seed, rng.RANGE, direction, hop, 0)``, and the same with 1; draw k of a node takes
        word k of its position's key under the first.
    positions : int64[m]
    parts, rows : int32[m], int64[m]
        As of `storaged.kernels.node_rows.locate_nodes`; a node of row -1 has no edges.
    count : int64
        At least 1.
    replace : bool
    want_remaining : bool
        Without replacement: whether ``remaining`` are asked for.
    types, lows, highs : int64[runs]
        The edge type of each run, as a place in the union, ascending; its least and its largest
        key. Runs of a type ascend and are apart.
    indptr, order, keys : uint64[types, P]
        Addresses of int64[rows + 1], uint32[slots] and int64[slots].
    weights, trees : uint64[types, P]
        Addresses of float32[slots] and float64[slots], as `storaged.store.column_index.SortedEdges`
        has the latter; 0: every edge weighs 1.
    type_indices : int32[m * count], out
        Edge types, as places in the union; -1 for none. Empty where there is one type.
    slots : int64[m * count], out
        -1 for none.
    totals, counts : float64[m], out
        What the near edges of each node weigh, and how many there are.
    remaining : float64[m], out
        What those of them weigh that were not drawn; 0 where there are at most ``count``.
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.

    Notes
    -----
    Without replacement nodes with at most ``count`` near edges have all of them (by weight: the
    positive ones) by (edge type, value). Of at most ``FEW``, all of them positive, each draw is
    among those that are left. Of others repeats are rejected; after ``REJECTIONS`` in a row the
    rest is drawn by exponential keys among what was not drawn yet. Beyond that the first m of n
    draws are the draws of m."""
    runs = types.shape[0]
    bits = np.uint64(4)
    while np.int64(1) << np.int64(bits) < 4 * count:
        bits += np.uint64(1)
    shift = np.uint64(64) - bits
    hash_keys = np.full(np.int64(1) << np.int64(bits), np.int64(-1), np.int64)
    values, used_buckets = np.empty(hash_keys.shape[0], np.int64), np.empty(count, np.int64)
    heap_keys, heap_tags = np.empty(count, np.float64), np.zeros(count, np.int32)
    starts, degrees, run_starts = (
        np.empty(runs, np.int64),
        np.empty(runs, np.int64),
        np.empty(runs, np.int64),
    )
    sizes, run_offsets = np.empty(runs, np.int64), np.empty(runs, np.int64)
    piece_of, piece_nodes = (
        np.empty(runs * MAX_PIECES, np.int64),
        np.empty(runs * MAX_PIECES, np.int64),
    )
    sums, masses, draws = (
        np.empty(runs * MAX_PIECES, np.float64),
        np.empty(SMALL_RUN, np.float64),
        np.empty(count, np.int64),
    )
    for i in range(rows.shape[0]):
        prefetch_rows(i, parts, rows, indptr, order, keys, weights, trees)
        part, match_count, piece_count, total, unit_weights, num_found = (
            parts[i],
            0,
            0,
            0.0,
            True,
            np.int64(0),
        )
        if rows[i] >= 0:
            match_count, piece_count, total, unit_weights = find_runs(
                part,
                rows[i],
                types,
                lows,
                highs,
                indptr,
                order,
                keys,
                weights,
                trees,
                starts,
                degrees,
                run_starts,
                sizes,
                run_offsets,
                piece_of,
                piece_nodes,
                sums,
            )
        totals[i], counts[i], remaining[i] = total, np.float64(match_count), 0.0
        if match_count > 0 and total > 0.0:
            node_key = derive(key, np.uint64(positions[i]))
            if replace:
                num_found = np.int64(count)
                for k in range(count):
                    if k & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                        return
                    w = word(node_key, np.uint64(k))
                    if unit_weights:
                        draws[k] = np.int64(bounded(w, np.uint64(match_count)))
                    else:
                        draws[k] = draw_match(
                            unit_float(w) * total,
                            piece_count,
                            piece_of,
                            piece_nodes,
                            sums,
                            starts,
                            degrees,
                            run_starts,
                            sizes,
                            run_offsets,
                            types,
                            part,
                            order,
                            weights,
                            trees,
                        )
            elif match_count <= count:
                for match_index in range(match_count):
                    if (
                        unit_weights
                        or match_weight(
                            np.int64(match_index), run_starts, sizes, types, part, order, weights
                        )
                        > 0.0
                    ):
                        draws[num_found] = match_index
                        num_found += 1
            elif unit_weights:
                shuffle_places(
                    node_key,
                    match_count,
                    count,
                    shift,
                    hash_keys,
                    values,
                    used_buckets,
                    draws,
                    stop,
                )
                num_found = np.int64(count)
            elif (
                match_count <= SMALL_RUN and piece_count == match_count
            ):  # each piece is an edge, and none weighs nothing
                _draw_few(
                    node_key,
                    match_count,
                    run_starts,
                    sizes,
                    types,
                    part,
                    order,
                    weights,
                    sums,
                    masses,
                    draws,
                )
                num_found = np.int64(count)
            else:
                num_found = np.int64(
                    _successive(
                        node_key,
                        derive(selection_key, np.uint64(positions[i])),
                        match_count,
                        piece_count,
                        total,
                        piece_of,
                        piece_nodes,
                        sums,
                        starts,
                        degrees,
                        run_starts,
                        sizes,
                        run_offsets,
                        types,
                        part,
                        order,
                        weights,
                        trees,
                        shift,
                        hash_keys,
                        used_buckets,
                        heap_keys,
                        heap_tags,
                        draws,
                        stop,
                    )
                )
            if is_set(stop):
                return
            if want_remaining and not replace and match_count > count:
                remaining[i] = _remaining_weight(
                    draws,
                    num_found,
                    match_count,
                    run_starts,
                    sizes,
                    types,
                    part,
                    order,
                    weights,
                    stop,
                )
        for k in range(count):
            kind, offset = np.int64(-1), np.int64(-1)
            if k < num_found:
                run, offset = np.int64(0), np.int64(draws[k])
                while offset >= sizes[run]:
                    offset -= sizes[run]
                    run += 1
                kind, offset = (
                    types[run],
                    np.int64(u32_at(order[types[run], part], run_starts[run] + offset)),
                )
            slots[i * count + k] = offset
            if type_indices.shape[0] > 0:
                type_indices[i * count + k] = kind
