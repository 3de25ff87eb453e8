"""Join edges with target nodes by a hash table and a Bloom filter, or by bisection.

These joins work for any ids. `storaged.kernels.induced.bitset_join` is for targets with ids in a
dense range.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    STOP_CHECK_MASK,
    IntLike,
    inlined,
    is_set,
    kernel,
    prefetch,
    view_at,
)
from asterism_graphkit.random.rng import GOLDEN
from storaged.kernels.adjacency_rows import EID, NBR, SLOTS, WEIGHTS, RowSpans

ROW, TOTAL = range(2)
"""Elements of the state of a join: the next row, and the number of edges found before it."""
SLOTS_PER_TARGET = 8
"""Minimum number of hash table buckets per target."""
_AHEAD = 4
"""Prefetch distance, in rows."""
FILTER_BITS_PER_TARGET = 16
"""Minimum number of Bloom filter bits per target.

One in sixteen other nodes passes the filter, and the filter stays in a cache.
"""
_S64, _S6, _ONE, _LOW6 = np.uint64(64), np.uint64(6), np.uint64(1), np.uint64(63)
_I64, _F32 = np.zeros(0, np.int64), np.zeros(0, np.float32)


class TargetNodes(NamedTuple):
    """The t nodes of one type that edges must lead to; read-only arrays."""

    ids: NDArray[np.int64]
    """Node ids by group, int64[t]."""
    places: NDArray[np.int32]
    """Positions in the request, int32[t]; if int32[0], the index in ``ids`` is the position."""
    groups: NDArray[np.int64]
    """Group of each target, ascending, int64[t]; int64[0] if all are in one group."""


class EdgeOutputs(NamedTuple):
    """Output arrays for k edges that lead to targets."""

    places: NDArray[np.int32]
    """Position of the target in the request, int32[k]."""
    weights: NDArray[np.float32]
    """Edge weights, float32[k], or float32[0] if not wanted."""
    eids: NDArray[np.int64]
    """Edge ids, int64[k], or int64[0] if not wanted."""


@inlined
def lower_bound(values: NDArray[Any], low: IntLike, high: IntLike, bound: np.int64) -> IntLike:
    """Return the first index from ``low`` on with a value >= ``bound``, or ``high``."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def bisection_steps(n: IntLike) -> IntLike:
    """Return the number of bisection steps among n values."""
    steps = 1
    while n > 1:
        n >>= 1
        steps += 1
    return steps


@inlined
def _hash(node: np.int64, group: np.int64) -> np.uint64:
    """Return the hash of a node and its group; its high bits are used.

    Multiplicative hashing: Knuth 1998, TAOCP 3, section 6.4.
    """
    return (np.uint64(node) * GOLDEN ^ np.uint64(group)) * GOLDEN


@inlined
def _may_contain(
    hashed: np.uint64, filter_bits: np.uint64, bloom_words: NDArray[np.uint64]
) -> bool:
    """Return whether the Bloom filter may contain a hash."""
    bit = hashed >> (_S64 - filter_bits)
    return bool(bloom_words[np.int64(bit >> _S6)] >> (bit & _LOW6) & _ONE)


@inlined
def _find_target(
    hashed: np.uint64,
    node: np.int64,
    group: np.int64,
    bits: np.uint64,
    hash_table: NDArray[np.int32],
    ids: NDArray[np.int64],
    groups: NDArray[np.int64],
) -> IntLike:
    """Return the index of the first target with this node and group, or -1."""
    bucket, mask = np.int64(hashed >> (_S64 - bits)), hash_table.shape[0] - 1
    target_index = np.int64(hash_table[bucket])
    while target_index >= 0 and (
        ids[target_index] != node or (groups.shape[0] > 0 and groups[target_index] != group)
    ):
        bucket = (bucket + 1) & mask
        target_index = np.int64(hash_table[bucket])
    return target_index


@kernel
def build_hash_table(
    ids: NDArray[np.int64],
    groups: NDArray[np.int64],
    first: np.int64,
    last: np.int64,
    hash_table: NDArray[np.int32],
    bloom_words: NDArray[np.uint64],
) -> int:
    """Insert the first target of each (group, id) into a hash table and a Bloom filter.

    Parameters
    ----------
    ids, groups : int64[t], int64[t] or [0]
        Targets, ascending within their group, and their groups, ascending. If ``groups`` is empty,
        all are in one group.
    first, last : int64
        Targets ``first`` to ``last - 1`` are inserted. Earlier calls inserted those before.
    hash_table : int32[2**bits], inout
        At least twice as many buckets as targets, all -1 before the first call.
    bloom_words : uint64[words], inout
        A power of two of words, all 0 before the first call. Each inserted hash sets one bit.

    Returns
    -------
    int
        Number of inserted targets.
    """
    bits, mask, count = (
        np.uint64(bisection_steps(hash_table.shape[0]) - 1),
        hash_table.shape[0] - 1,
        np.int64(0),
    )
    filter_bits = np.uint64(bisection_steps(64 * bloom_words.shape[0]) - 1)
    for i in range(first, last):
        group = groups[i] if groups.shape[0] > 0 else np.int64(0)
        if i > 0 and ids[i - 1] == ids[i] and (groups.shape[0] == 0 or groups[i - 1] == group):
            continue
        hashed = _hash(ids[i], group)
        bit = hashed >> (_S64 - filter_bits)
        bloom_words[np.int64(bit >> _S6)] |= _ONE << (bit & _LOW6)
        bucket = np.int64(hashed >> (_S64 - bits))
        while hash_table[bucket] >= 0:
            bucket = (bucket + 1) & mask
        hash_table[bucket] = i
        count += 1
    return int(count)


@kernel
def join_by_hash(
    rows: RowSpans,
    targets: TargetNodes,
    row_groups: NDArray[np.int32],
    hash_table: NDArray[np.int32],
    bloom_words: NDArray[np.uint64],
    distinct_targets: bool,
    state: NDArray[np.int64],
    sizes: NDArray[np.int32],
    out: EdgeOutputs,
    stop: NDArray[np.int64],
) -> None:
    """Find the edges of rows that lead to targets, until all rows are done or ``out`` is full.

    Parameters
    ----------
    rows : RowSpans
        Neighbors ascend within a row.
    targets : TargetNodes
        With places. Ids ascend within their group; an id may occur several times.
    row_groups : int32[m] or [0]
        Group of each row. Both ends of an edge must be in the same group. Empty if
        ``targets.groups`` is: all are in one group.
    hash_table, bloom_words : int32[2**bits], uint64[words]
        Results of `build_hash_table`.
    distinct_targets : bool
        Whether every target occurs once. A row is then started only if all of its edges fit.
    state : int64[2], inout
        Position to resume from: `ROW` and `TOTAL`.
    sizes : int32[m], out
        Number of edges found in each row.
    out : EdgeOutputs
    stop : int64[1]
        A nonzero value stops the call; its outputs are then incomplete.

    Notes
    -----
    An edge is reported once for each target with its neighbor's id, ordered by (neighbor, slot,
    index of the target).
    """
    table, partitions, starts, degrees = rows
    ids, places, target_groups = targets
    out_places, out_weights, out_eids = out
    m, capacity, grouped = partitions.shape[0], out_places.shape[0], row_groups.shape[0] > 0
    bits, filter_bits = (
        np.uint64(bisection_steps(hash_table.shape[0]) - 1),
        np.uint64(bisection_steps(64 * bloom_words.shape[0]) - 1),
    )
    begin, end, group = np.int64(0), np.int64(ids.shape[0]), np.int64(0)
    for i in range(state[ROW], m):
        if is_set(stop):
            return
        ahead = min(i + _AHEAD, m - 1)
        prefetch(
            view_at(table[partitions[ahead], NBR], table[partitions[ahead], SLOTS], _I64),
            starts[ahead],
        )
        degree, start, part, out_pos = degrees[i], starts[i], partitions[i], state[TOTAL]
        if grouped and (i == state[ROW] or row_groups[i] != group or i == 0):
            group = np.int64(row_groups[i])
            begin = np.int64(
                lower_bound(target_groups, np.int64(0), np.int64(target_groups.shape[0]), group)
            )
            end = np.int64(
                lower_bound(target_groups, begin, np.int64(target_groups.shape[0]), group + 1)
            )
        nbr = view_at(table[part, NBR] + 8 * start, degree, _I64)
        row_weights = view_at(
            table[part, WEIGHTS] + 4 * start,
            np.int64(0) if table[part, WEIGHTS] == 0 else degree,
            _F32,
        )
        eids = view_at(
            table[part, EID] + 8 * start, degree if out_eids.shape[0] > 0 else np.int64(0), _I64
        )
        # Scanning costs one hash table probe per slot, and bisection one search per target. A
        # search step takes half as long as a probe.
        probe_slots = 2 * degree <= (end - begin) * bisection_steps(degree)
        if probe_slots and distinct_targets and begin < end:
            if capacity - out_pos < degree:
                return
            for edge in range(degree):
                if edge & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                    return
                hashed = _hash(nbr[edge], group)
                if not _may_contain(hashed, filter_bits, bloom_words):
                    continue
                # A branch on whether the edge leads to a target would be mispredicted. So the edge
                # is always written, and the position advances only for targets.
                target_index = _find_target(
                    hashed, nbr[edge], group, bits, hash_table, ids, target_groups
                )
                out_places[out_pos] = places[max(target_index, np.int64(0))]
                if out_weights.shape[0] > 0:
                    out_weights[out_pos] = (
                        row_weights[edge] if row_weights.shape[0] > 0 else np.float32(1.0)
                    )
                if out_eids.shape[0] > 0:
                    out_eids[out_pos] = eids[edge]
                out_pos += np.int64(target_index >= 0)
            sizes[i] = out_pos - state[TOTAL]
            state[ROW], state[TOTAL] = i + 1, out_pos
            continue
        slot, target, step_count = np.int64(0), begin, np.int64(0)
        while slot < degree and target < end:
            step_count += 1
            if step_count & STOP_CHECK_MASK == 0 and is_set(stop):
                return
            if probe_slots:
                hashed = _hash(nbr[slot], group)
                first_target = np.int64(-1)
                if _may_contain(hashed, filter_bits, bloom_words):
                    first_target = np.int64(
                        _find_target(hashed, nbr[slot], group, bits, hash_table, ids, target_groups)
                    )
                if first_target < 0:
                    slot += 1
                    continue
                target = first_target
            else:
                slot = np.int64(lower_bound(nbr, slot, degree, ids[target]))
                if slot == degree:
                    break
                if nbr[slot] != ids[target]:
                    target += 1
                    continue
            last = target
            while last < end and ids[last] == nbr[slot]:
                if out_pos == capacity or (
                    last & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop)
                ):
                    return
                out_places[out_pos] = places[last]
                if out_weights.shape[0] > 0:
                    out_weights[out_pos] = (
                        row_weights[slot] if row_weights.shape[0] > 0 else np.float32(1.0)
                    )
                if out_eids.shape[0] > 0:
                    out_eids[out_pos] = eids[slot]
                out_pos += 1
                last += 1
            slot += 1
        sizes[i] = out_pos - state[TOTAL]
        state[ROW], state[TOTAL] = i + 1, out_pos
