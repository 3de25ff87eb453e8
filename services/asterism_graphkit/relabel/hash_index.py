"""Hash index with open addressing from sparse ids to rows: build it and look up many ids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array, inlined, kernel, prefetch
from asterism_graphkit.random.rng import mix64

FREE = -1
_AHEAD = 16
_BITS = 64


@kernel
def _fill(
    ids: NDArray[np.int64],
    shift: np.uint64,
    index_ids: NDArray[np.int64],
    index_rows: NDArray[np.uint32],
) -> None:
    mask = index_ids.shape[0] - 1
    n = ids.shape[0]
    for row in range(n):
        if row + _AHEAD < n:
            prefetch(index_ids, np.int64(mix64(np.uint64(ids[row + _AHEAD])) >> shift))
        slot = np.int64(mix64(np.uint64(ids[row])) >> shift)
        while index_ids[slot] != FREE:
            slot = (slot + 1) & mask
        index_ids[slot] = ids[row]
        index_rows[slot] = row


def build_index(ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Build an index of distinct ids.

    It uses open addressing, is at most half full, and is probed linearly from the high bits of the
    hash.

    Parameters
    ----------
    ids : int64[n]
        Distinct, >= 0; at most 2^32 - 1 of them. Ids are inserted in the order of rows, so that
        equal ids give equal bytes.

    Returns
    -------
    index_ids : int64[2^k]
        The smallest k >= 3 with 2^k >= 2 n. Id ``i`` is at or after ``mix64(i) >> (64 - k)``; -1 is
        a free slot.
    index_rows : uint32[2^k]
        Row (position in ``ids``) of each id in ``index_ids``; 0 in a free slot.
    """
    slots = index_slots(ids.size)
    index_ids, index_rows = np.empty(slots, np.int64), np.zeros(slots, np.uint32)
    fill_index(ids, index_ids, index_rows)
    return index_ids, index_rows


def index_slots(n: int) -> int:
    """Return how many slots `build_index` uses for ``n`` ids."""
    return 1 << max(3, (2 * n - 1).bit_length() if n else 0)


def fill_index(
    ids: NDArray[np.int64], index_ids: NDArray[np.int64], index_rows: NDArray[np.uint32]
) -> None:
    """Build the index of `build_index` in place, for memory-mapped arrays.

    Parameters
    ----------
    ids : int64[n]
    index_ids, index_rows : int64[2^k], uint32[2^k], out
        With `index_slots` slots. ``index_rows`` must be all 0; ``index_ids`` may have any content.
    """
    index_ids.fill(FREE)
    _fill(as_kernel_array(ids), shift_of(index_ids), index_ids, index_rows)


@inlined
def slot_of(node_id: np.int64, index_ids: NDArray[np.int64], shift: np.uint64) -> int:
    """Return the slot of an id in ``index_ids``, or -1; for use in other kernels.

    ``index_ids`` is int64[2^k], and ``shift`` is the result of `shift_of`.
    """
    mask = index_ids.shape[0] - 1
    slot = np.int64(mix64(np.uint64(node_id)) >> shift)
    while index_ids[slot] != FREE:
        if index_ids[slot] == node_id:
            return slot  # type: ignore[return-value]  # an int64 here and an int to the caller
        slot = (slot + 1) & mask
    return -1


def shift_of(index_ids: NDArray[np.int64]) -> np.uint64:
    """Return 64 - k for an index of 2^k slots."""
    return np.uint64(_BITS - (index_ids.size.bit_length() - 1))


@kernel
def _find(
    ids: NDArray[np.int64],
    index_ids: NDArray[np.int64],
    index_rows: NDArray[np.uint32],
    shift: np.uint64,
    rows: NDArray[np.int64],
) -> None:
    n = ids.shape[0]
    for i in range(n):
        if i + _AHEAD < n:
            next_slot = np.int64(mix64(np.uint64(ids[i + _AHEAD])) >> shift)
            prefetch(index_ids, next_slot)
            prefetch(index_rows, next_slot)
        rows[i] = -1
        if ids[i] >= 0:
            slot = slot_of(ids[i], index_ids, shift)
            if slot >= 0:
                rows[i] = np.int64(index_rows[slot])


def find(
    ids: NDArray[np.int64], index_ids: NDArray[np.int64], index_rows: NDArray[np.uint32]
) -> NDArray[np.int64]:
    """Return the row of each id, or -1 if there is none.

    Parameters
    ----------
    ids : int64[n]
        Any ids; negative ones are never found.
    index_ids, index_rows : int64[2^k], uint32[2^k]
        Result of `build_index`, or the index of a partition image; empty if there are no ids at
        all.

    Returns
    -------
    int64[n]
    """
    if index_ids.size == 0:
        return np.full(ids.size, -1, np.int64)
    rows = np.empty(ids.size, np.int64)
    _find(
        as_kernel_array(ids),
        as_kernel_array(index_ids),
        as_kernel_array(index_rows),
        shift_of(index_ids),
        rows,
    )
    return rows
