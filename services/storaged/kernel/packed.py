"""Draws from packed rows: one read at random gives the neighbor, where a table and a list of neighbors take two.

What `storaged.kernel.neighbors` and `storaged.kernel.walk` draw, to the bit. A record is told by its address, in bit 0 whether it is
a neighbor alone, as of uniform draws; 0 is none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, i64_at, inlined, kernel, prefetch_at, u32_at, u64_at
from graphkit.rng import below, derive, word
from storaged.kernel.neighbors import NODES_AHEAD
from storaged.store.image import NOBODY

STEP, AHEAD, RING = 16, 48, 128
"""Draws that are hashed at a time; between what is asked for and what is read; under way at most."""
_LAST = np.int64(RING - 1)
_EIGHTS, _FOURS, _SIXTEENTHS = np.uint64(3), np.uint64(2), np.uint64(4)
_NONE, _ALONE = np.uint64(0), np.uint64(1)
_S32, _LOW, _SIGN = np.uint64(32), np.uint64(0xFFFFFFFF), np.int64(63)
_NOBODY = np.uint64(NOBODY)


@inlined
def base_of(narrow: np.uint64, packed: np.uint64) -> np.uint64:
    """The record of slot 0."""
    return packed if packed > 0 else narrow + _ALONE


@inlined
def record_of(base: np.uint64, slot: np.uint64) -> np.uint64:
    """The record of a slot."""
    return base + (slot << (_FOURS if base & _ALONE else _SIXTEENTHS))


@inlined
def _kept(here: np.uint64, hot: np.uint64, coin: np.uint64, packed: NDArray[np.uint64], cold: NDArray[np.uint64]) -> np.uint64:
    """All ones where a draw keeps its column; as of `graphkit.acceptance.accepted`."""
    high, threshold = np.int64(coin >> _S32), np.int64(hot >> _S32)
    kept = np.uint64((high - threshold) >> _SIGN)
    if high == threshold:  # once in 2^32 draws: it is looked for whose record this is
        start, mine = _NONE, np.int64(0)
        for p in range(packed.shape[0]):
            if start < packed[p] and packed[p] <= here:
                start, mine = packed[p], np.int64(p)
        if (coin & _LOW) < np.uint64(u32_at(cold[mine], (here - start) >> _SIXTEENTHS)):
            kept = ~_NONE
    return kept


@inlined
def neighbor_of(here: np.uint64, coin: np.uint64, packed: NDArray[np.uint64], cold: NDArray[np.uint64]) -> Whole:
    """To whom a draw leads; -1 for nobody."""
    if here == _NONE:
        return np.int64(-1)
    if here & _ALONE:
        return np.int64(u32_at(here - _ALONE, _NONE))
    both = u64_at(here, _ALONE)  # the second word
    kept = _kept(here, u64_at(here, _NONE), coin, packed, cold)
    found = ((both & kept) | ((both >> _S32) & ~kept)) & _LOW
    return np.int64(found) if found != _NOBODY else np.int64(-1)


@inlined
def _tell(
    told: Whole,
    end: Whole,
    records: NDArray[np.uint64],
    coins: NDArray[np.uint64],
    places: NDArray[np.int64],
    packed: NDArray[np.uint64],
    cold: NDArray[np.uint64],
    out: NDArray[np.int64],
) -> None:
    """Put the neighbors of some draws in place."""
    for i in range(told, end):
        out[places[i & _LAST]] = neighbor_of(records[i & _LAST], coins[i & _LAST], packed, cold)


@inlined
def _tell_slots(
    told: Whole,
    end: Whole,
    records: NDArray[np.uint64],
    coins: NDArray[np.uint64],
    starts: NDArray[np.int64],
    columns: NDArray[np.int64],
    packed: NDArray[np.uint64],
    cold: NDArray[np.uint64],
    slots: NDArray[np.int64],
) -> None:
    """The slots of some draws."""
    for i in range(told, end):
        here = records[i & _LAST]
        taken = columns[i & _LAST]
        if here == _NONE:
            slots[i] = -1
            continue
        if here & _ALONE == _NONE:
            hot = u64_at(here, _NONE)
            if u64_at(here, _ALONE) & _LOW == _NOBODY:
                slots[i] = -1
                continue
            if _kept(here, hot, coins[i & _LAST], packed, cold) == _NONE:
                taken = np.int64(hot & _LOW)
        slots[i] = starts[i & _LAST] + taken


@kernel
def draw_packed(
    key: np.uint64,
    positions: NDArray[np.int64],
    at: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    count: np.int64,
    indptr: NDArray[np.uint64],
    narrow: NDArray[np.uint64],
    packed: NDArray[np.uint64],
    cold: NDArray[np.uint64],
    out: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> None:
    """Draw neighbors with replacement along one edge type, and put their ids in place.

    Parameters
    ----------
    key, positions, at, parts, rows, count, indptr, cold, out, slots
        As of `storaged.kernel.neighbors.draw_slots`.
    narrow, packed : uint64[P], uint64[P]
        Addresses of uint32[slots] and uint64[2 * slots], as of `storaged.store.image.Adjacency`; where there is no ``packed``, every
        column is certain.
    """
    m, moved, kept = rows.shape[0], at.shape[0] > 0, slots.shape[0] > 0
    records, coins, places = np.empty(RING, np.uint64), np.empty(RING, np.uint64), np.empty(RING, np.int64)
    starts, columns = np.empty(RING, np.int64), np.empty(RING, np.int64)
    made, told = np.int64(0), np.int64(0)
    for node in range(m):
        ahead = node + NODES_AHEAD
        if ahead < m and rows[ahead] >= 0:
            prefetch_at(indptr[parts[ahead]] + (np.uint64(rows[ahead]) << _EIGHTS))
        part = np.int64(parts[node])
        place = (at[node] if moved else node) * count
        own, start, degree = np.uint64(0), np.uint64(0), np.uint64(0)
        if rows[node] >= 0:
            own = derive(key, np.uint64(positions[node]))
            start = np.uint64(i64_at(indptr[part], rows[node]))
            degree = np.uint64(i64_at(indptr[part], rows[node] + 1)) - start
        base = base_of(narrow[part], packed[part])
        for k in range(0, count, STEP):
            size = min(np.int64(STEP), count - k)
            for j in range(size):
                w = word(own, np.uint64(k + j))
                column = below(w, degree)
                ring = (made + j) & _LAST
                records[ring] = record_of(base, start + column) if degree > 0 else _NONE
                prefetch_at(records[ring])
                coins[ring] = w * degree
                places[ring] = place + k + j
                if kept:
                    starts[ring], columns[ring] = np.int64(start), np.int64(column)
            made += size
            if made - AHEAD > told:
                if kept:
                    _tell_slots(told, made - AHEAD, records, coins, starts, columns, packed, cold, slots)
                _tell(told, made - AHEAD, records, coins, places, packed, cold, out)
                told = made - AHEAD
    if kept:
        _tell_slots(told, made, records, coins, starts, columns, packed, cold, slots)
    _tell(told, made, records, coins, places, packed, cold, out)
