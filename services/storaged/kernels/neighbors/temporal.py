"""Sample the neighbors that are visible at a time.

The visible edges of a row are a prefix of its order by time, and are found by bisection. Along
several edge types they are the runs of `storaged.kernels.neighbors.successive`: one per type, each
from the earliest to the latest edge.
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
    u32_at,
)
from asterism_graphkit.compile.named_tuple_arguments import kernel_record
from asterism_graphkit.random.rng import bounded, derive_mixed, unit_float, word
from storaged.kernels.adjacency_rows import (
    INDPTR,
    ORDER,
    TIME_SUMS,
    WEIGHTS,
    WHEN,
    prefetch_row_bounds,
)
from storaged.kernels.neighbors.distinct_edge_sampling import REJECTIONS
from storaged.kernels.neighbors.fisher_yates import hash_table_bits
from storaged.kernels.neighbors.successive import (
    Runs,
    SuccessiveScratch,
    match_weight,
    record_draw,
    select_undrawn,
    shuffle_matches,
)

UNIFORM, WEIGHTED, LAST = 0, 1, 2
"""Strategies of draws from the visible edges: uniform, by weight, or the latest ones."""
_EIGHTS = np.uint64(3)
_NODES_AHEAD = 16


@kernel_record
class TemporalParams(NamedTuple):
    """Parameters of draws from visible edges.

    Attributes
    ----------
    key, selection_key : uint64
        ``key_of(seed, rng.TEMPORAL, direction, hop, 0)``, and the same with 1. Draw k of a node
        uses word k of the key derived from the first by the node's tag.
    num_draws : int64
        Draws per node, at least 1.
    replace : bool
        Whether to draw with replacement; ignored for ``LAST``.
    strategy : int64
        ``UNIFORM``, ``WEIGHTED`` or ``LAST``.
    """

    key: np.uint64
    selection_key: np.uint64
    num_draws: np.int64
    replace: bool
    strategy: np.int64


class _Nodes(NamedTuple):
    """Nodes of a call; see `draw_temporal`."""

    tags: NDArray[np.int64]
    parts: NDArray[np.int32]
    rows: NDArray[np.int64]
    limits: NDArray[np.int64]


@inlined
def count_visible(
    start: IntLike, stop: IntLike, limit: np.int64, times: np.uint64, order: np.uint64
) -> IntLike:
    """Return the number of edges of a row with a time of at most ``limit``.

    ``times`` and ``order`` are the addresses of int64[slots] and uint32[slots].
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
    """Return the first of ``size`` positions with a running sum greater than ``point``.

    If there is none, returns the first position with the total sum. ``sums`` is the address of
    float64[slots].
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
def _draw_by_weight(
    tables: NDArray[np.int64],
    part: IntLike,
    point: float,
    runs: Runs,
    masses: NDArray[np.float64],
) -> IntLike:
    """Return the visible edge that a point in 0 .. the sum of all masses falls on."""
    _, starts, sizes = runs
    base, chosen, offset = np.int64(0), np.int64(-1), np.int64(0)
    remaining, chosen_remaining = point, 0.0
    for t in range(sizes.shape[0]):
        if masses[t] > 0.0:
            chosen, offset, chosen_remaining = np.int64(t), base, remaining
            if remaining < masses[t]:
                break
            remaining -= masses[t]
        base += sizes[t]
    sums = np.uint64(tables[chosen, part, TIME_SUMS])
    if sums == 0:
        return np.int64(offset + min(np.int64(chosen_remaining), sizes[chosen] - 1))
    return np.int64(offset + _first_beyond(sums, starts[chosen], sizes[chosen], chosen_remaining))


@inlined
def _latest(
    tables: NDArray[np.int64],
    part: IntLike,
    runs: Runs,
    draws: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> IntLike:
    """Take the latest visible edges, the latest first; return their number.

    Among equal times, edges of a later edge type come first, then edges of a later slot. The sizes
    of ``runs`` are consumed.
    """
    _, starts, sizes = runs
    num_found = np.int64(0)
    while num_found < draws.shape[0]:
        if num_found & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
            break
        latest_type, latest_time = np.int64(-1), np.int64(0)
        for t in range(sizes.shape[0]):
            if sizes[t] > 0:
                order = np.uint64(tables[t, part, ORDER])
                time = i64_at(
                    np.uint64(tables[t, part, WHEN]), u32_at(order, starts[t] + sizes[t] - 1)
                )
                if latest_type < 0 or time >= latest_time:
                    latest_type, latest_time = np.int64(t), time
        if latest_type < 0:
            break
        sizes[latest_type] -= 1
        # A match index would change with the sizes. So the edge type is stored in the high half.
        draws[num_found] = latest_type << np.int64(32) | sizes[latest_type]
        num_found += 1
    return num_found


@inlined
def _draw_with_rejection(
    tables: NDArray[np.int64],
    part: IntLike,
    key: np.uint64,
    total: float,
    runs: Runs,
    masses: NDArray[np.float64],
    shift: np.uint64,
    scratch: SuccessiveScratch,
    stop: NDArray[np.int64],
) -> IntLike:
    """Sample visible edges by weight and reject repeats; return the number of distinct edges.

    Ends with enough edges, or after too many consecutive rejections.
    """
    count = scratch.draws.shape[0]
    num_found, rejections, attempt = np.int64(0), 0, np.int64(0)
    while num_found < count and rejections < REJECTIONS:
        point = unit_float(word(key, np.uint64(attempt))) * total
        chosen = np.int64(_draw_by_weight(tables, part, point, runs, masses))
        attempt += 1
        if attempt & STOP_CHECK_MASK == 0 and is_set(stop):
            break
        if record_draw(chosen, num_found, shift, scratch):
            num_found += 1
            rejections = 0
        else:
            rejections += 1
    return num_found


@inlined
def _draw_rows(
    tables: NDArray[np.int64],
    params: TemporalParams,
    nodes: _Nodes,
    runs: Runs,
    masses: NDArray[np.float64],
    scratch: SuccessiveScratch,
    type_indices: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Run `draw_temporal` with existing scratch arrays."""
    types, count, strategy, draws = (
        tables.shape[0],
        params.num_draws,
        params.strategy,
        scratch.draws,
    )
    tags, parts, rows, limits = nodes
    run_types, starts, sizes = runs
    shift = np.uint64(64) - hash_table_bits(count)
    for t in range(types):
        run_types[t] = t
    for i in range(rows.shape[0]):
        ahead = i + _NODES_AHEAD
        if ahead < rows.shape[0] and rows[ahead] >= 0:
            for t in range(types):
                prefetch_row_bounds(
                    np.uint64(tables[t, parts[ahead], INDPTR]) + (np.uint64(rows[ahead]) << _EIGHTS)
                )
        part, visible_count, total, num_found = parts[i], np.int64(0), 0.0, np.int64(0)
        if rows[i] >= 0:
            for t in range(types):
                indptr, sums = (
                    np.uint64(tables[t, part, INDPTR]),
                    np.uint64(tables[t, part, TIME_SUMS]),
                )
                starts[t] = i64_at(indptr, rows[i])
                sizes[t] = count_visible(
                    starts[t],
                    i64_at(indptr, rows[i] + 1),
                    limits[t, i],
                    np.uint64(tables[t, part, WHEN]),
                    np.uint64(tables[t, part, ORDER]),
                )
                masses[t] = np.float64(sizes[t])
                if strategy == WEIGHTED and sizes[t] > 0 and sums > 0:
                    masses[t] = f64_at(sums, starts[t] + sizes[t] - 1)
                visible_count += sizes[t]
                total += masses[t]
        if visible_count > 0 and total > 0.0:
            node_key = derive_mixed(params.key, np.uint64(tags[i]))
            if strategy == LAST:
                num_found = np.int64(_latest(tables, part, runs, draws, stop))
            elif params.replace:
                num_found = np.int64(count)
                for k in range(count):
                    if k & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                        return
                    w = word(node_key, np.uint64(k))
                    if strategy == WEIGHTED:
                        draws[k] = _draw_by_weight(
                            tables, part, unit_float(w) * total, runs, masses
                        )
                    else:
                        draws[k] = np.int64(bounded(w, np.uint64(visible_count)))
            elif visible_count <= count:
                for edge_index in range(visible_count):
                    if edge_index & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                        return
                    if (
                        strategy == UNIFORM
                        or match_weight(tables, part, np.int64(edge_index), runs) > 0.0
                    ):
                        draws[num_found] = edge_index
                        num_found += 1
            elif strategy == UNIFORM:
                shuffle_matches(node_key, visible_count, shift, scratch, stop)
                num_found = np.int64(count)
            else:
                num_drawn = np.int64(
                    _draw_with_rejection(
                        tables, part, node_key, total, runs, masses, shift, scratch, stop
                    )
                )
                selection_key = derive_mixed(params.selection_key, np.uint64(tags[i]))
                num_found = np.int64(
                    select_undrawn(
                        tables,
                        part,
                        selection_key,
                        visible_count,
                        num_drawn,
                        runs,
                        shift,
                        scratch,
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
                order = np.uint64(tables[kind, part, ORDER])
                offset = np.int64(u32_at(order, starts[kind] + offset))
            slots[i * count + k] = offset
            if type_indices.shape[0] > 0:
                type_indices[i * count + k] = kind


@kernel
def draw_temporal(
    tables: NDArray[np.int64],
    params: TemporalParams,
    tags: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    limits: NDArray[np.int64],
    type_indices: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Sample from the edges that are visible to each node.

    Parameters
    ----------
    tables : ndarray of int64, shape (types, P, COLUMNS)
        Address table of `storaged.kernels.adjacency_rows` for each edge type. ``WHEN`` and
        ``ORDER`` are the addresses of int64[slots] and uint32[slots]. With ``WEIGHTED``,
        ``WEIGHTS`` and the running sums ``TIME_SUMS`` are read; 0: every edge has weight 1.
    params : TemporalParams
    tags : ndarray of int64, shape (m,)
        Tags that key the nodes' draws, from `storaged.kernels.node_rows.node_tags`.
    parts : ndarray of int32, shape (m,)
    rows : ndarray of int64, shape (m,)
        As in `storaged.kernels.node_rows.locate_nodes`; a node of row -1 has no visible edges.
    limits : ndarray of int64, shape (types, m)
        Largest visible time key of each node and edge type, from
        `asterism_graphkit.arrays.time_keys.limit_keys`.
    type_indices : ndarray of int32, shape (m * count,) or (0,), out
        Edge types, as indices into the union; -1 for none. Empty if there is one type.
    slots : ndarray of int64, shape (m * count,), out
        -1 for none.
    stop : ndarray of int64, shape (1,)
        A nonzero value stops the call; its outputs are then incomplete.

    Notes
    -----
    Without replacement, a node with at most ``count`` visible edges gets all of them (by weight:
    those of positive weight), by (edge type, time). By weight, a draw inverts the running sums, and
    repeats are rejected. After ``REJECTIONS`` consecutive rejections the rest is selected by
    exponential keys (Efraimidis & Spirakis 2006) among the edges not drawn yet. If a node has more
    visible edges than draws, the first m of n draws are the draws of a request for m.
    """
    types, count = tables.shape[0], params.num_draws
    hash_keys = np.full(np.int64(1) << np.int64(hash_table_bits(count)), np.int64(-1), np.int64)
    scratch = SuccessiveScratch(
        hash_keys,
        np.empty(hash_keys.shape[0], np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.float64),
        np.zeros(count, np.int32),
        np.empty(count, np.int64),
    )
    runs = Runs(np.empty(types, np.int64), np.empty(types, np.int64), np.empty(types, np.int64))
    masses = np.empty(types, np.float64)
    nodes = _Nodes(tags, parts, rows, limits)
    _draw_rows(tables, params, nodes, runs, masses, scratch, type_indices, slots, stop)


@kernel
def count_visible_edges(
    table: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    limits: NDArray[np.int64],
    sizes: NDArray[np.int32],
) -> int:
    """Count the edges of one type that are visible to each node; return the sum.

    Parameters
    ----------
    table : ndarray of int64, shape (P, COLUMNS)
        Address table of `storaged.kernels.adjacency_rows`.
    parts, rows, limits : ndarray of int32, int64 and int64, shape (m,)
        As in `draw_temporal`.
    sizes : ndarray of int32, shape (m,), out
        Number of visible edges of each node.
    """
    total = np.int64(0)
    for i in range(rows.shape[0]):
        sizes[i] = 0
        if rows[i] >= 0:
            part = parts[i]
            indptr = np.uint64(table[part, INDPTR])
            start, stop = i64_at(indptr, rows[i]), i64_at(indptr, rows[i] + 1)
            times, order = np.uint64(table[part, WHEN]), np.uint64(table[part, ORDER])
            sizes[i] = count_visible(start, stop, limits[i], times, order)
        total += np.int64(sizes[i])
    return total  # type: ignore[return-value]  # compiled, it is an int


@kernel
def list_visible_edges(
    table: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    sizes: NDArray[np.int32],
    slots: NDArray[np.int64],
) -> None:
    """List the slots of all visible edges of each node, the earliest first, node by node.

    Parameters
    ----------
    table, parts, rows, sizes
        As in `count_visible_edges`.
    slots : ndarray of int64, shape (sum of sizes,), out
    """
    out_pos = 0
    for i in range(rows.shape[0]):
        if sizes[i] > 0:
            start = i64_at(np.uint64(table[parts[i], INDPTR]), rows[i])
            order = np.uint64(table[parts[i], ORDER])
            for offset in range(sizes[i]):
                slots[out_pos] = np.int64(u32_at(order, start + offset))
                out_pos += 1


@kernel
def compact_slots(
    padded_slots: NDArray[np.int64],
    count: np.int64,
    sizes: NDArray[np.int32],
    slots: NDArray[np.int64],
) -> int:
    """Remove the padding from drawn slots; return their number.

    Parameters
    ----------
    padded_slots : ndarray of int64, shape (m * count,)
        ``count`` slots per node; -1 for none.
    count : int64
    sizes : ndarray of int32, shape (m,), out
        Number of slots of each node.
    slots : ndarray of int64, shape (m * count,), out
        The slots without gaps.
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
    table: NDArray[np.int64],
    column: np.int64,
    parts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    slots: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Gather an int64 value of each slot.

    Parameters
    ----------
    table : ndarray of int64, shape (P, COLUMNS)
        Address table of `storaged.kernels.adjacency_rows`.
    column : int64
        Column of the table that is read.
    parts, sizes : ndarray of int32, shape (m,)
        Partition of each node, and the number of its slots.
    slots : ndarray of int64, shape (k,)
    out : ndarray of int64, shape (k,), out
    """
    pos = 0
    for i in range(sizes.shape[0]):
        values = np.uint64(table[parts[i], column])
        for _ in range(sizes[i]):
            out[pos] = i64_at(values, slots[pos])
            pos += 1


@kernel
def gather_ragged_weights(
    table: NDArray[np.int64],
    parts: NDArray[np.int32],
    sizes: NDArray[np.int32],
    slots: NDArray[np.int64],
    out: NDArray[np.float32],
) -> None:
    """Gather the weight of each slot.

    ``out`` is float32[k], out. All other arrays are as in `gather_ragged_ids`; without ``WEIGHTS``
    every edge has weight 1.
    """
    pos = 0
    for i in range(sizes.shape[0]):
        weights = np.uint64(table[parts[i], WEIGHTS])
        for _ in range(sizes[i]):
            out[pos] = f32_at(weights, slots[pos]) if weights > 0 else np.float32(1.0)
            pos += 1
