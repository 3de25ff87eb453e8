"""Map ids to partitions, choose the (type, partition) of global draws, and group by key.

graphd and storaged compute the same choices from the same numbers, so they need not exchange them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import CHECK_BOUNDS, as_kernel_array, inlined, kernel, register
from asterism_graphkit.random import alias_build
from asterism_graphkit.random.alias_draw import resolve_column
from asterism_graphkit.random.rng import bounded, mix64, word

_FEW = 256
"""Up to this many groups, four sets of counters stay in the cache."""


@kernel
def _parts_mod(ids: NDArray[np.int64], parts: np.int64, out: NDArray[np.int32]) -> None:
    if parts & (parts - 1) == 0:
        for i in range(ids.shape[0]):
            out[i] = ids[i] & (parts - 1)
    else:
        for i in range(ids.shape[0]):
            out[i] = ids[i] % parts


@kernel
def _parts_mix(ids: NDArray[np.int64], parts: np.int64, out: NDArray[np.int32]) -> None:
    n = np.uint64(parts)
    for i in range(ids.shape[0]):
        out[i] = np.int32(mix64(np.uint64(ids[i])) % n)


def part_of(ids: NDArray[np.int64], parts: int, placement: str) -> NDArray[np.int32]:
    """Return the partition of each node id; int32[n].

    Parameters
    ----------
    ids : int64[n]
        Node ids. An id of -1 gets an arbitrary partition.
    parts : int
        P, the number of partitions of the graph space.
    placement : str
        ``mod``: id % P; ``mix64``: splitmix64(id) % P.
    """
    out = np.empty(ids.shape[0], np.int32)
    (_parts_mix if placement == "mix64" else _parts_mod)(as_kernel_array(ids), np.int64(parts), out)
    return out


@kernel
def _group_by_key(
    keys: NDArray[np.int32], offsets: NDArray[np.int64], order: NDArray[np.int64]
) -> None:
    groups = offsets.shape[0] - 1
    for i in range(keys.shape[0]):
        offsets[keys[i] + 1] += 1
    for g in range(groups):
        offsets[g + 1] += offsets[g]
    # offsets[g] is incremented from the start of its group to the end. Afterwards each entry holds
    # the start of the next group.
    for i in range(keys.shape[0]):
        at = offsets[keys[i]]
        order[at] = i
        offsets[keys[i]] = at + 1
    for g in range(groups, 0, -1):
        offsets[g] = offsets[g - 1]
    offsets[0] = 0


@inlined
def _put(
    order: NDArray[np.int64],
    next_positions: NDArray[np.int64],
    keys: NDArray[np.int32],
    i: np.uint64,
) -> None:
    """Write an index to the next position of its group."""
    key = np.uint64(keys[i])
    order[np.uint64(next_positions[key])] = i
    next_positions[key] += 1


@kernel
def _group_by_few_keys(
    keys: NDArray[np.int32], offsets: NDArray[np.int64], order: NDArray[np.int64]
) -> None:
    # An increment has to wait for the previous one of its group. Four ranges of the keys with
    # separate counters are independent of each other.
    groups, quarter, two, three = (
        np.uint64(offsets.shape[0] - 1),
        np.uint64(keys.shape[0] >> 2),
        np.uint64(2),
        np.uint64(3),
    )
    a, b, c, d = np.zeros((4, offsets.shape[0]), np.int64)
    for i in range(quarter):
        a[np.uint64(keys[i])] += 1
        b[np.uint64(keys[quarter + i])] += 1
        c[np.uint64(keys[two * quarter + i])] += 1
        d[np.uint64(keys[three * quarter + i])] += 1
    for i in range(np.uint64(4) * quarter, np.uint64(keys.shape[0])):
        d[np.uint64(keys[i])] += 1
    at = 0
    for g in range(groups):
        offsets[g] = at
        a[g], at = at, at + a[g]
        b[g], at = at, at + b[g]
        c[g], at = at, at + c[g]
        d[g], at = at, at + d[g]
    offsets[groups] = at
    for i in range(quarter):
        _put(order, a, keys, np.uint64(i))
        _put(order, b, keys, quarter + i)
        _put(order, c, keys, two * quarter + i)
        _put(order, d, keys, three * quarter + i)
    for i in range(np.uint64(4) * quarter, np.uint64(keys.shape[0])):
        _put(order, d, keys, np.uint64(i))


def group_by_key(
    keys: NDArray[np.int32], groups: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort positions by key with a stable counting sort.

    Parameters
    ----------
    keys : int32[n]
        In 0 .. groups - 1.
    groups : int
        Number of possible keys.

    Returns
    -------
    order : int64[n]
        Positions by (key, position).
    offsets : int64[groups + 1]
        Group g is ``order[offsets[g]:offsets[g + 1]]``.
    """
    order = np.empty(keys.shape[0], np.int64)
    offsets = np.zeros(groups + 1, np.int64)
    (_group_by_few_keys if groups <= _FEW else _group_by_key)(as_kernel_array(keys), offsets, order)
    return order, offsets


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartShares:
    """Share of each (type, partition) in global draws, with an alias table over these entries."""

    types: NDArray[np.int32]
    """Type of each entry, ascending; int32[k]."""
    parts: NDArray[np.int32]
    """Partition of each entry, ascending within a type; int32[k]."""
    measure: NDArray[np.float64]
    """Weight sum of each entry, or its live count for uniform draws; float64[k]."""
    alias_threshold: NDArray[np.uint64]
    """Thresholds and aliases in the format of a partition image; uint64[k]."""
    alias_fraction: NDArray[np.uint32]
    """Low halves of the thresholds; uint32[k]."""
    total: float
    """Sum of ``measure``; if it is 0, the table must not be sampled."""


def build_shares(
    types: Sequence[int], totals: Mapping[tuple[int, int], float], parts: int
) -> PartShares:
    """Return the shares of all partitions in draws from ``types``.

    Parameters
    ----------
    types : sequence of int
        Type ids to draw from; order and repetition do not matter.
    totals : mapping
        (type, partition) -> weight sum or live count. A missing entry counts as 0.
    parts : int
        P, the number of partitions of the graph space.
    """
    type_ids = sorted(set(types))
    entries = [(type_id, part) for type_id in type_ids for part in range(parts)]
    measure = np.array([totals.get(entry, 0.0) for entry in entries], np.float64)
    alias_threshold, alias_fraction = alias_build.pack_thresholds(*alias_build.build(measure))
    return PartShares(
        types=as_kernel_array(np.array([type_id for type_id, _ in entries], np.int32)),
        parts=as_kernel_array(np.array([part for _, part in entries], np.int32)),
        measure=as_kernel_array(measure),
        alias_threshold=as_kernel_array(alias_threshold),
        alias_fraction=as_kernel_array(alias_fraction),
        total=alias_build.neumaier_sum(measure),
    )


@kernel
def _choose_entries(
    key: np.uint64,
    start: np.uint64,
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint32],
    out: NDArray[np.int32],
) -> None:
    n = np.uint64(alias_threshold.shape[0])
    if CHECK_BOUNDS:
        register(alias_threshold)
        register(alias_fraction)
    threshold_address, fraction_address = (
        np.uint64(alias_threshold.ctypes.data),
        np.uint64(alias_fraction.ctypes.data),
    )
    for i in range(out.shape[0]):
        w = word(key, start + np.uint64(i))
        out[i] = np.int32(resolve_column(threshold_address, fraction_address, bounded(w, n), w * n))


def choose_entries(key: np.uint64, start: int, count: int, shares: PartShares) -> NDArray[np.int32]:
    """Return the entry of ``shares`` for each draw in a range.

    Parameters
    ----------
    key : uint64
        ``key_of(seed, rng.PART, 1)`` for nodes, ``key_of(seed, rng.PART, 2)`` for edges.
    start, count : int
        Draws ``start .. start + count - 1``. Draw i uses word i of the key, independent of the
        requested range.
    shares : PartShares
        With a positive total.

    Returns
    -------
    int32[count]
    """
    out = np.empty(count, np.int32)
    _choose_entries(
        np.uint64(key), np.uint64(start), shares.alias_threshold, shares.alias_fraction, out
    )
    return out


@kernel
def _choose_entries_at(
    key: np.uint64,
    draw_indices: NDArray[np.int64],
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint32],
    out: NDArray[np.int32],
) -> None:
    n = np.uint64(alias_threshold.shape[0])
    if CHECK_BOUNDS:
        register(alias_threshold)
        register(alias_fraction)
    threshold_address, fraction_address = (
        np.uint64(alias_threshold.ctypes.data),
        np.uint64(alias_fraction.ctypes.data),
    )
    for i in range(draw_indices.shape[0]):
        w = word(key, np.uint64(draw_indices[i]))
        out[i] = np.int32(resolve_column(threshold_address, fraction_address, bounded(w, n), w * n))


def choose_entries_at(
    key: np.uint64, draw_indices: NDArray[np.int64], shares: PartShares
) -> NDArray[np.int32]:
    """Return the entry of ``shares`` for each of the given draws; int32[n].

    See `choose_entries`.
    """
    out = np.empty(draw_indices.size, np.int32)
    _choose_entries_at(
        np.uint64(key),
        as_kernel_array(draw_indices),
        shares.alias_threshold,
        shares.alias_fraction,
        out,
    )
    return out
