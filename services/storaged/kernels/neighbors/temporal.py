"""Neighbors that are seen until a time: a beginning of each row's order by time, found by
bisection, and draws from it.

The edges that a node sees along several edge types are numbered one type's after another's, each
type's from the earliest to the latest: a *seen edge* is such a number."""

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
    u32_at,
)
from asterism_graphkit.random.rng import bounded, derive, unit_float, word
from storaged.kernels.adjacency import prefetch_row_bounds
from storaged.kernels.exponential_race import exponential_key, keep_smallest, sort_heap
from storaged.kernels.neighbors.distinct_edges import REJECTIONS
from storaged.kernels.neighbors.fisher_yates import find_hash_slot

UNIFORM, WEIGHTED, LAST = 0, 1, 2
"""How edges are drawn from those seen: alike, by weight, or the latest of them."""
_EIGHTS = np.uint64(3)
_NODES_AHEAD = 16


@inlined
def count_visible(
    start: IntLike, stop: IntLike, limit: np.int64, times: np.uint64, order: np.uint64
) -> IntLike:
    """How many edges of a row have a time of at most ``limit``; ``times`` and ``order`` are
    addresses of int64 and uint32[slots].
    """
    low, high = np.int64(start), np.int64(stop)
    while low < high:
        middle = (low + high) >> 1
        if i64_at(times, u32_at(order, middle)) <= limit:
            low = middle + 1
        else:
            high = middle
    return low - start


@inlined
def _first_beyond(sums: np.uint64, start: IntLike, size: IntLike, point: float) -> IntLike:
    """The first of ``size`` places whose running sum is beyond ``point``; of a point that none is
    beyond the first that has the whole sum.
    """
    total = f64_at(sums, start + size - 1)
    low, high = np.int64(0), np.int64(size) - 1
    while low < high:
        middle = (low + high) >> 1
        running_sum = f64_at(sums, start + middle)
        if running_sum > point or running_sum == total:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def _edge_weight(
    edge_index: IntLike,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    part: IntLike,
    order: NDArray[np.uint64],
    weights: NDArray[np.uint64],
) -> float:
    """The weight of a seen edge."""
    t, offset = np.int64(0), np.int64(edge_index)
    while offset >= sizes[t]:
        offset -= sizes[t]
        t += 1
    if weights[t, part] == 0:
        return 1.0
    return np.float64(f32_at(weights[t, part], u32_at(order[t, part], starts[t] + offset)))


@inlined
def _draw_by_weight(
    point: float,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    masses: NDArray[np.float64],
    part: IntLike,
    sums: NDArray[np.uint64],
) -> IntLike:
    """The seen edge that a point of 0 .. the sum of all masses falls on."""
    base, chosen, offset = np.int64(0), np.int64(-1), np.int64(0)
    remaining, chosen_remaining = point, 0.0
    for t in range(sizes.shape[0]):
        if masses[t] > 0.0:
            chosen, offset, chosen_remaining = np.int64(t), base, remaining
            if remaining < masses[t]:
                break
            remaining -= masses[t]
        base += sizes[t]
    if sums[chosen, part] == 0:
        return np.int64(offset + min(np.int64(chosen_remaining), sizes[chosen] - 1))
    return np.int64(
        offset + _first_beyond(sums[chosen, part], starts[chosen], sizes[chosen], chosen_remaining)
    )


@inlined
def _latest(
    count: IntLike,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    part: IntLike,
    times: NDArray[np.uint64],
    order: NDArray[np.uint64],
    draws: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """The latest ``count`` seen edges, the latest first; of equal times those of a later edge type,
    then of a later slot, come first.

    ``sizes`` are used up.
    """
    num_found = np.int64(0)
    while num_found < count:
        if num_found & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
            break
        latest_type, latest_time = np.int64(-1), np.int64(0)
        for t in range(sizes.shape[0]):
            if sizes[t] > 0:
                time = i64_at(times[t, part], u32_at(order[t, part], starts[t] + sizes[t] - 1))
                if latest_type < 0 or time >= latest_time:
                    latest_type, latest_time = np.int64(t), time
        if latest_type < 0:
            break
        sizes[latest_type] -= 1
        # Numbered by place alone: whose it is goes into the high half, for sizes change.
        draws[num_found] = latest_type << np.int64(32) | sizes[latest_type]
        num_found += 1
    return num_found


@inlined
def shuffle_places(
    key: np.uint64,
    visible_count: IntLike,
    count: IntLike,
    shift: np.uint64,
    hash_keys: NDArray[np.int64],
    values: NDArray[np.int64],
    used_buckets: NDArray[np.int64],
    draws: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """The first ``count`` of a Fisher-Yates shuffle of the seen edges, whose array is kept only
    where it was touched.
    """
    for k in range(count):
        if k & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
            return
        chosen = k + np.int64(bounded(word(key, np.uint64(k)), np.uint64(visible_count - k)))
        k_bucket = np.int64(find_hash_slot(hash_keys, np.int64(k), shift))
        k_value = values[k_bucket] if hash_keys[k_bucket] >= 0 else np.int64(k)
        chosen_bucket = np.int64(find_hash_slot(hash_keys, np.int64(chosen), shift))
        draws[k] = values[chosen_bucket] if hash_keys[chosen_bucket] >= 0 else np.int64(chosen)
        hash_keys[chosen_bucket], values[chosen_bucket] = chosen, k_value
        used_buckets[k] = chosen_bucket
    for k in range(count):
        hash_keys[used_buckets[k]] = -1


@inlined
def _successive(
    key: np.uint64,
    selection_key: np.uint64,
    visible_count: IntLike,
    total: float,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    masses: NDArray[np.float64],
    part: IntLike,
    order: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    sums: NDArray[np.uint64],
    shift: np.uint64,
    hash_keys: NDArray[np.int64],
    used_buckets: NDArray[np.int64],
    heap_keys: NDArray[np.float64],
    heap_tags: NDArray[np.int32],
    draws: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """Different seen edges by weight: draws, repeats rejected, and after too many in a row a race
    among the rest; gives how many there are.
    """
    count = draws.shape[0]
    num_found, rejections, attempt = np.int64(0), 0, np.int64(0)
    while num_found < count and rejections < REJECTIONS:
        chosen = np.int64(
            _draw_by_weight(
                unit_float(word(key, np.uint64(attempt))) * total, starts, sizes, masses, part, sums
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
        for edge_index in range(visible_count):
            if edge_index & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                return num_drawn
            weight = _edge_weight(np.int64(edge_index), starts, sizes, part, order, weights)
            if (
                weight > 0.0
                and hash_keys[find_hash_slot(hash_keys, np.int64(edge_index), shift)] < 0
            ):
                edge_key = exponential_key(word(selection_key, np.uint64(edge_index)), weight)
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
                        np.int64(edge_index),
                        np.int64(edge_index),
                    )
                )
        sort_heap(rest_keys, tags, rest_draws, rest_draws, size, stop)
        num_found = np.int64(num_drawn + size)
    for k in range(num_drawn):
        hash_keys[used_buckets[k]] = -1
    return num_found


@kernel
def draw_temporal(
    key: np.uint64,
    selection_key: np.uint64,
    positions: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    limits: NDArray[np.int64],
    count: np.int64,
    replace: bool,
    strategy: np.int64,
    indptr: NDArray[np.uint64],
    times: NDArray[np.uint64],
    order: NDArray[np.uint64],
    weights: NDArray[np.uint64],
    sums: NDArray[np.uint64],
    type_indices: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Draw from the edges that each node sees.

    Parameters
    ----------
    key, selection_key : uint64
        ``key_of(seed, rng.SEEN, direction, hop, 0)``, and the same with 1; draw k of a node takes
        word k of its position's key under the first.
    positions : int64[m]
    parts, rows : int32[m], int64[m]
        As of `storaged.kernels.node_rows.locate_nodes`; a node of row -1 sees nothing.
    limits : int64[types, m]
        The last time that each node sees along each edge type, as
        `asterism_graphkit.arrays.time_keys.limit_keys` has it.
    count : int64
        At least 1.
    replace : bool
        With replacement; ``LAST`` is without.
    strategy : int64
        ``UNIFORM``, ``WEIGHTED`` or ``LAST``.
    indptr, times, order : uint64[types, P]
        Addresses of int64[rows + 1], int64[slots] and uint32[slots].
    weights, sums : uint64[types, P]
        Addresses of float32[slots] and of the running sums, float64[slots]; 0: every edge weighs 1.
        Read where ``WEIGHTED``.
    type_indices : int32[m * count], out
        Edge types, as places in the union; -1 for none. Empty where there is one type.
    slots : int64[m * count], out
        -1 for none.
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.

    Notes
    -----
    Without replacement nodes that see at most ``count`` edges have all of them (by weight: the
    positive ones) by (edge type, time). By weight a draw is the inverse of the running sums, and
    repeats are rejected; after ``REJECTIONS`` in a row the rest is drawn by exponential keys among
    what was not drawn yet. Beyond that the first m of n draws are the draws of m."""
    types = indptr.shape[0]
    bits = np.uint64(4)
    while np.int64(1) << np.int64(bits) < 4 * count:
        bits += np.uint64(1)
    shift = np.uint64(64) - bits
    hash_keys = np.full(np.int64(1) << np.int64(bits), np.int64(-1), np.int64)
    values, used_buckets = np.empty(hash_keys.shape[0], np.int64), np.empty(count, np.int64)
    heap_keys, heap_tags = np.empty(count, np.float64), np.zeros(count, np.int32)
    starts, sizes, masses = (
        np.empty(types, np.int64),
        np.empty(types, np.int64),
        np.empty(types, np.float64),
    )
    draws = np.empty(count, np.int64)
    for i in range(rows.shape[0]):
        ahead = i + _NODES_AHEAD
        if ahead < rows.shape[0] and rows[ahead] >= 0:
            for t in range(types):
                prefetch_row_bounds(indptr[t, parts[ahead]] + (np.uint64(rows[ahead]) << _EIGHTS))
        part, visible_count, total, num_found = parts[i], np.int64(0), 0.0, np.int64(0)
        if rows[i] >= 0:
            for t in range(types):
                starts[t] = i64_at(indptr[t, part], rows[i])
                sizes[t] = count_visible(
                    starts[t],
                    i64_at(indptr[t, part], rows[i] + 1),
                    limits[t, i],
                    times[t, part],
                    order[t, part],
                )
                masses[t] = np.float64(sizes[t])
                if strategy == WEIGHTED and sizes[t] > 0 and sums[t, part] > 0:
                    masses[t] = f64_at(sums[t, part], starts[t] + sizes[t] - 1)
                visible_count += sizes[t]
                total += masses[t]
        if visible_count > 0 and total > 0.0:
            node_key = derive(key, np.uint64(positions[i]))
            if strategy == LAST:
                num_found = np.int64(_latest(count, starts, sizes, part, times, order, draws, stop))
            elif replace:
                num_found = np.int64(count)
                for k in range(count):
                    if k & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                        return
                    w = word(node_key, np.uint64(k))
                    if strategy == WEIGHTED:
                        draws[k] = _draw_by_weight(
                            unit_float(w) * total, starts, sizes, masses, part, sums
                        )
                    else:
                        draws[k] = np.int64(bounded(w, np.uint64(visible_count)))
            elif visible_count <= count:
                for edge_index in range(visible_count):
                    if edge_index & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                        return
                    if (
                        strategy == UNIFORM
                        or _edge_weight(np.int64(edge_index), starts, sizes, part, order, weights)
                        > 0.0
                    ):
                        draws[num_found] = edge_index
                        num_found += 1
            elif strategy == UNIFORM:
                shuffle_places(
                    node_key,
                    visible_count,
                    count,
                    shift,
                    hash_keys,
                    values,
                    used_buckets,
                    draws,
                    stop,
                )
                num_found = np.int64(count)
            else:
                node_selection_key = derive(selection_key, np.uint64(positions[i]))
                num_found = np.int64(
                    _successive(
                        node_key,
                        node_selection_key,
                        visible_count,
                        total,
                        starts,
                        sizes,
                        masses,
                        part,
                        order,
                        weights,
                        sums,
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
        for k in range(count):
            kind, offset = np.int64(-1), np.int64(-1)
            if k < num_found:
                kind, offset = np.int64(0), np.int64(draws[k])
                if strategy == LAST:
                    kind, offset = (
                        np.int64(offset >> np.int64(32)),
                        np.int64(offset & np.int64(0xFFFFFFFF)),
                    )
                else:
                    while offset >= sizes[kind]:
                        offset -= sizes[kind]
                        kind += 1
                offset = np.int64(u32_at(order[kind, part], starts[kind] + offset))
            slots[i * count + k] = offset
            if type_indices.shape[0] > 0:
                type_indices[i * count + k] = kind


@kernel
def count_visible_edges(
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    limits: NDArray[np.int64],
    indptr: NDArray[np.uint64],
    times: NDArray[np.uint64],
    order: NDArray[np.uint64],
    sizes: NDArray[np.int32],
) -> int:
    """How many edges of one type each node sees; gives the sum. Arrays as of `draw_temporal`, of
    one type: addresses uint64[P].
    """
    total = np.int64(0)
    for i in range(rows.shape[0]):
        sizes[i] = 0
        if rows[i] >= 0:
            part = parts[i]
            start, stop = i64_at(indptr[part], rows[i]), i64_at(indptr[part], rows[i] + 1)
            sizes[i] = count_visible(start, stop, limits[i], times[part], order[part])
        total += np.int64(sizes[i])
    return total  # type: ignore[return-value]  # compiled, it is an int


@kernel
def list_visible_edges(
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    indptr: NDArray[np.uint64],
    order: NDArray[np.uint64],
    sizes: NDArray[np.int32],
    slots: NDArray[np.int64],
) -> None:
    """The slots of all edges that each node sees, the earliest first, one node's after another's:
    ``sizes`` of each, as `count_visible_edges` gives them.
    """
    out_pos = 0
    for i in range(rows.shape[0]):
        if sizes[i] > 0:
            start = i64_at(indptr[parts[i]], rows[i])
            for offset in range(sizes[i]):
                slots[out_pos] = np.int64(u32_at(order[parts[i]], start + offset))
                out_pos += 1


@kernel
def compact_slots(
    padded_slots: NDArray[np.int64],
    count: np.int64,
    sizes: NDArray[np.int32],
    slots: NDArray[np.int64],
) -> int:
    """Put drawn slots, ``count`` of each node and -1 for none, one behind another; gives how many
    there are.

    Parameters
    ----------
    padded_slots : int64[m * count]
    count : int64
    sizes : int32[m], out
        How many each node has.
    slots : int64[m * count], out
    """
    out_pos = np.int64(0)
    for i in range(sizes.shape[0]):
        sizes[i] = 0
        for k in range(count):
            if padded_slots[i * count + k] >= 0:
                slots[out_pos] = padded_slots[i * count + k]
                out_pos += 1
                sizes[i] += 1
    return out_pos  # type: ignore[return-value]


@kernel
def gather_ragged_ids(
    parts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    slots: NDArray[np.int64],
    columns: NDArray[np.uint64],
    out: NDArray[np.int64],
) -> None:
    """The number that belongs to each slot: ``sizes`` slots of each node, ``columns`` are addresses
    of each part's int64[slots].
    """
    pos = 0
    for i in range(sizes.shape[0]):
        for _ in range(sizes[i]):
            out[pos] = i64_at(columns[parts[i]], slots[pos])
            pos += 1


@kernel
def gather_ragged_weights(
    parts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    slots: NDArray[np.int64],
    columns: NDArray[np.uint64],
    out: NDArray[np.float32],
) -> None:
    """The weight of each slot, likewise; an address of 0 is weights of 1."""
    pos = 0
    for i in range(sizes.shape[0]):
        for _ in range(sizes[i]):
            out[pos] = (
                f32_at(columns[parts[i]], slots[pos]) if columns[parts[i]] > 0 else np.float32(1.0)
            )
            pos += 1
