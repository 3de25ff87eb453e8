"""Different neighbors drawn alike: sparse Fisher-Yates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import CHECK_MASK, Whole, inlined, is_set, prefetch_at
from graphkit.rng import GOLDEN, below, below_short, word

DIRECT = 1 << 12
"""Up to this degree what was drawn is noted under its place in the row; in a hash table beyond."""
_EIGHTS = np.uint64(3)


@inlined
def spot(marks: NDArray[np.int64], wanted: Whole, shift: np.uint64) -> Whole:
    """Where ``wanted`` stands in an open-addressing table of keys, or the free place where it would."""
    mask = marks.shape[0] - 1
    at = np.int64((np.uint64(wanted) * GOLDEN) >> shift)
    while marks[at] >= 0 and marks[at] != wanted:
        at = (at + 1) & mask
    return at


@inlined
def shuffle(
    key: np.uint64,
    start: Whole,
    degree: Whole,
    count: Whole,
    base: Whole,
    shift: np.uint64,
    row_nbr: np.uint64,
    touched: NDArray[np.int16],
    marks: NDArray[np.int64],
    values: NDArray[np.int64],
    used: NDArray[np.int64],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """The first ``count`` of a Fisher-Yates shuffle of a row, whose array is kept only where it was touched."""
    if degree <= DIRECT:
        _short(key, start, degree, count, base, touched, used, slots)
    else:
        for k in range(count):
            if k & CHECK_MASK == CHECK_MASK and is_set(stop):
                return
            chosen = k + np.int64(below(word(key, np.uint64(k)), np.uint64(degree - k)))
            there, here = np.int64(spot(marks, chosen, shift)), np.int64(spot(marks, k, shift))
            # Position k is never looked at again: what stood there goes to where the chosen one was.
            drawn = values[there] if marks[there] >= 0 else np.int64(chosen)
            moved = values[here] if marks[here] >= 0 else np.int64(k)
            marks[there] = chosen
            values[there] = moved
            used[k] = there
            slots[base + k] = start + drawn
        for k in range(count):
            marks[used[k]] = -1
    if row_nbr > 0:
        for k in range(count):
            prefetch_at(row_nbr + (np.uint64(slots[base + k] - start) << _EIGHTS))


@inlined
def _short(
    key: np.uint64,
    start: Whole,
    degree: Whole,
    count: Whole,
    base: Whole,
    touched: NDArray[np.int16],
    used: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> None:
    """`shuffle` of a row that ``touched`` has room for: what stands at a place is noted as its difference to the place, 0 where it stands itself.

    Hashing is a loop of its own, which runs over several at once, and what follows it has no branch.
    """
    for k in range(count):
        k_th = np.uint64(k)
        used[k] = np.int64(below_short(word(key, k_th), np.uint64(degree) - k_th) + k_th)
    for k in range(count):
        chosen = used[k]
        slots[base + k] = start + (np.int64(touched[chosen]) ^ chosen)
        touched[chosen] = np.int16(np.int64(touched[k]) ^ k ^ chosen)
    for k in range(count):
        touched[used[k]] = 0
