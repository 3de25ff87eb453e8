"""Exponential-key selection: sample rows without replacement by their smallest keys.

Each row has the key -log(u) / w, an exponential variable of rate w. The rows with the smallest
keys, in the order of their keys, are successive draws without replacement (Efraimidis & Spirakis
2006): the smallest key belongs to row i with probability w_i / W. The u of a row depends on the row
only, so the selection can run on pieces of the data and be merged. ``log`` is fdlibm's: the bits of
a key must not depend on the C library.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.fdlibm import log
from asterism_graphkit.compile.jit import STOP_CHECK_MASK, IntLike, inlined, is_set, kernel
from asterism_graphkit.compile.named_tuple_arguments import kernel_record
from asterism_graphkit.random.rng import unit_float, word
from asterism_graphkit.relabel.hash_index import slot_of


@inlined
def exponential_key(w: np.uint64, weight: float) -> float:
    """Return the exponential key of a row of positive weight with the random word ``w``."""
    return -log(unit_float(w)) / weight


@inlined
def _comes_after(
    key: float,
    tag: IntLike,
    item: IntLike,
    other_key: float,
    other_tag: IntLike,
    other_item: IntLike,
) -> bool | np.bool_:
    """Return whether (key, tag, item) is larger than the other triple.

    Ties of the key are broken by the tag, then by the item.
    """
    if key != other_key:
        return key > other_key
    return tag > other_tag or (tag == other_tag and item > other_item)


@inlined
def _sift_down(
    keys: NDArray[np.float64],
    tags: NDArray[np.int32],
    items: NDArray[np.int64],
    payloads: NDArray[np.int64],
    size: IntLike,
    key: float,
    tag: IntLike,
    item: IntLike,
    payload: IntLike,
) -> None:
    """Insert an element at the free root of a heap of ``size`` elements."""
    pos = 0
    while True:
        child = 2 * pos + 1
        if child >= size:
            break
        if child + 1 < size and _comes_after(
            keys[child + 1],
            tags[child + 1],
            items[child + 1],
            keys[child],
            tags[child],
            items[child],
        ):
            child += 1
        if not _comes_after(keys[child], tags[child], items[child], key, tag, item):
            break
        keys[pos], tags[pos], items[pos], payloads[pos] = (
            keys[child],
            tags[child],
            items[child],
            payloads[child],
        )
        pos = child
    keys[pos], tags[pos], items[pos], payloads[pos] = key, tag, item, payload


@inlined
def keep_smallest(
    keys: NDArray[np.float64],
    tags: NDArray[np.int32],
    items: NDArray[np.int64],
    payloads: NDArray[np.int64],
    size: IntLike,
    key: float,
    tag: IntLike,
    item: IntLike,
    payload: IntLike,
) -> IntLike:
    """Keep (key, tag, item, payload) if it is among the smallest; return the heap's new size.

    The four arrays form a max-heap of n elements, n being their length: ``keys`` float64[n],
    ``tags`` int32[n], ``items`` and ``payloads`` int64[n]. ``items`` and ``payloads`` may be the
    same array.
    """
    if size < keys.shape[0]:
        pos = size
        while pos > 0:
            parent = (pos - 1) // 2
            if not _comes_after(key, tag, item, keys[parent], tags[parent], items[parent]):
                break
            keys[pos], tags[pos], items[pos], payloads[pos] = (
                keys[parent],
                tags[parent],
                items[parent],
                payloads[parent],
            )
            pos = parent
        keys[pos], tags[pos], items[pos], payloads[pos] = key, tag, item, payload
        return size + 1
    if size > 0 and _comes_after(keys[0], tags[0], items[0], key, tag, item):
        _sift_down(keys, tags, items, payloads, size, key, tag, item, payload)
    return size


@inlined
def sort_heap(
    keys: NDArray[np.float64],
    tags: NDArray[np.int32],
    items: NDArray[np.int64],
    payloads: NDArray[np.int64],
    size: IntLike,
    stop: NDArray[np.int64],
) -> None:
    """Sort the first ``size`` elements of a heap by key, ascending."""
    for last in range(size - 1, 0, -1):
        if last & STOP_CHECK_MASK == 0 and is_set(stop):
            return
        key, tag, item, payload = keys[last], tags[last], items[last], payloads[last]
        keys[last], tags[last], items[last], payloads[last] = (
            keys[0],
            tags[0],
            items[0],
            payloads[0],
        )
        _sift_down(keys, tags, items, payloads, last, key, tag, item, payload)


@kernel_record
class SelectionParams(NamedTuple):
    """Parameters of `select_rows`.

    Attributes
    ----------
    key : uint64
        ``key_of(seed, rng.EXPONENTIAL_KEY, element, type)``. The random word of a row is the word
        of its id.
    tag : int32
        Type of the rows.
    first, end : int64
        First row, and the row after the last.
    parts, part : int64
        P, and the partition of the rows.
    uniform : bool
        Treat all weights as 1.
    excluded_shift : uint64
        64 - k, for an index of 2^k excluded ids.
    size : int64
        Number of elements in the heap before the call.
    """

    key: np.uint64
    tag: np.int32
    first: np.int64
    end: np.int64
    parts: np.int64
    part: np.int64
    uniform: bool
    excluded_shift: np.uint64
    size: np.int64


@kernel
def select_rows(
    params: SelectionParams,
    ids: NDArray[np.int64],
    live: NDArray[np.uint8],
    weights: NDArray[np.float32],
    excluded_index: NDArray[np.int64],
    keys: NDArray[np.float64],
    tags: NDArray[np.int32],
    items: NDArray[np.int64],
    payloads: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> int:
    """Select rows of one (type, partition) by exponential keys, into a heap.

    Efraimidis & Spirakis 2006, Weighted random sampling with a reservoir.

    Parameters
    ----------
    params : SelectionParams
    ids : ndarray of int64, shape (rows,) or (0,)
        Node ids or edge ids. If empty, the id is row * parts + part.
    live : ndarray of uint8, shape (rows,) or (0,)
        0 for a row that is not live. If empty, all rows are live.
    weights : ndarray of float32, shape (rows,) or (0,)
        If empty, all weights are 1.
    excluded_index : ndarray of int64, shape (2^k,)
        ``build_index`` of the ids that are excluded.
    keys, tags, items, payloads : ndarray of float64, int32, int64 and int64, shape (n,), inout
        Heap: key, type, id, part << 32 | row.
    stop : ndarray of int64, shape (1,)
        A nonzero value stops the call; its outputs are then incomplete.

    Returns
    -------
    int
        Number of elements in the heap afterwards.
    """
    key, tag, first, end, parts, part, uniform, excluded_shift, size = params
    limit = keys.shape[0]
    base = part << np.int64(32)
    filled: IntLike = np.int64(size)
    for row in range(first, end):
        if row & STOP_CHECK_MASK == 0 and is_set(stop):
            break
        if live.shape[0] > 0 and live[row] == 0:
            continue
        weight = 1.0 if uniform or weights.shape[0] == 0 else np.float64(weights[row])
        if not weight > 0.0:
            continue
        item = ids[row] if ids.shape[0] > 0 else np.int64(row) * parts + part
        row_key = exponential_key(word(key, np.uint64(item)), weight)
        if filled == limit and (limit == 0 or row_key > keys[0]):
            continue
        if slot_of(item, excluded_index, excluded_shift) >= 0:
            continue
        filled = keep_smallest(
            keys, tags, items, payloads, filled, row_key, tag, item, base | np.int64(row)
        )
    return filled  # type: ignore[return-value]  # an int64 here and an int to the caller


@kernel
def sort_selection(
    keys: NDArray[np.float64],
    tags: NDArray[np.int32],
    items: NDArray[np.int64],
    payloads: NDArray[np.int64],
    first: np.int64,
    size: np.int64,
    stop: NDArray[np.int64],
) -> None:
    """Sort the last elements of a heap by key, in place; arrays as in `select_rows`.

    Parameters
    ----------
    first : int64
        First element that is sorted. That many elements stay in the heap.
    size : int64
        Number of elements in the heap before the call.
    """
    for last in range(size - 1, max(first, np.int64(1)) - 1, -1):
        if last & STOP_CHECK_MASK == 0 and is_set(stop):
            return
        key, tag, item, payload = keys[last], tags[last], items[last], payloads[last]
        keys[last], tags[last], items[last], payloads[last] = (
            keys[0],
            tags[0],
            items[0],
            payloads[0],
        )
        _sift_down(keys, tags, items, payloads, last, key, tag, item, payload)
