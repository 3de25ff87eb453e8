"""Draws from packed rows: one read at random gives the neighbor, where a table and a list of neighbors take two.

What `storaged.kernel.neighbors` and `storaged.kernel.walk` draw, to the bit. A record is told by its address, in bit 0 whether it is
a neighbor alone, as of uniform draws; 0 is none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, i64_at, inlined, is_set, kernel, prefetch_at, u32_at, u64_at
from graphkit.rng import below_short, derive, word
from storaged.kernel.neighbors import NODES_AHEAD
from storaged.kernel.table import ask_ends
from storaged.store.image import NOBODY

STEP, DRAWS = 64, 320
"""Draws of a node, and of several together, that are hashed before those before them are read."""
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
def _ask(
    own: np.uint64,
    begin: Whole,
    start: np.uint64,
    degree: np.uint64,
    base: np.uint64,
    at: np.uint64,
    size: Whole,
    records: NDArray[np.uint64],
    coins: NDArray[np.uint64],
) -> None:
    """Hash draws ``begin`` .. of a row, and ask for their records: a loop that does nothing else runs over several at once."""
    if degree == _NONE:
        for k in range(size):
            records[at + np.uint64(k)] = _NONE
        return
    if base & _ALONE:
        for k in range(size):
            records[at + np.uint64(k)] = base + (start + below_short(word(own, np.uint64(begin + k)), degree) << _FOURS)
    else:
        for k in range(size):
            w = word(own, np.uint64(begin + k))
            records[at + np.uint64(k)] = base + (start + below_short(w, degree) << _SIXTEENTHS)
            coins[at + np.uint64(k)] = w * degree
    for k in range(size):
        prefetch_at(records[at + np.uint64(k)])


@inlined
def _tell(
    at: np.uint64,
    size: Whole,
    to: np.uint64,
    records: NDArray[np.uint64],
    coins: NDArray[np.uint64],
    packed: NDArray[np.uint64],
    cold: NDArray[np.uint64],
    out: NDArray[np.int64],
) -> None:
    """Put the neighbors of so many draws from ``at`` on in place, from ``to`` on."""
    for i in range(size):
        out[to + np.uint64(i)] = neighbor_of(np.uint64(records[at + np.uint64(i)]), np.uint64(coins[at + np.uint64(i)]), packed, cold)


@inlined
def _tell_slots(
    at: np.uint64,
    size: Whole,
    to: np.uint64,
    records: NDArray[np.uint64],
    coins: NDArray[np.uint64],
    starts: NDArray[np.uint64],
    packed: NDArray[np.uint64],
    cold: NDArray[np.uint64],
    slots: NDArray[np.int64],
) -> None:
    """Likewise their slots, which are those of their columns so far."""
    for i in range(size):
        here, coin = np.uint64(records[at + np.uint64(i)]), np.uint64(coins[at + np.uint64(i)])
        if here == _NONE:
            slots[to + np.uint64(i)] = -1
        elif here & _ALONE == _NONE:
            hot = u64_at(here, _NONE)
            if u64_at(here, _ALONE) & _LOW == _NOBODY:
                slots[to + np.uint64(i)] = -1
            elif _kept(here, hot, coin, packed, cold) == _NONE:
                slots[to + np.uint64(i)] = np.int64(starts[at + np.uint64(i)] + (hot & _LOW))


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
    stop: NDArray[np.int64],
) -> None:
    """Draw neighbors with replacement along one edge type, and put their ids in place.

    Parameters
    ----------
    key, positions, at, parts, rows, count, indptr, cold, out, slots, stop
        As of `storaged.kernel.neighbors.draw_slots`.
    narrow, packed : uint64[P], uint64[P]
        Addresses of uint32[slots] and uint64[2 * slots], as of `storaged.store.image.Adjacency`; where there is no ``packed``, every
        column is certain.

    Notes
    -----
    Some nodes are hashed together, and what they ask for is read after the next ones have asked, in one go where it goes to one place:
    a loop over the few draws of a node ends where the processor does not expect it.
    """
    m, moved, kept = rows.shape[0], at.shape[0] > 0, slots.shape[0] > 0
    width = max(min(count, np.int64(STEP)), np.int64(1))
    tile = max(np.int64(DRAWS) // width, np.int64(1))
    rooms, flips, firsts = np.empty((2, tile * width), np.uint64), np.empty((2, tile * width), np.uint64), np.empty((2, tile * width), np.uint64)
    side, asked, since, size, drawn = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for first in range(0, m + tile, tile):
        nodes = max(min(tile, m - first), np.int64(0))
        # The last turn has no nodes: it is there for what was asked for before it.
        for begin in range(0, count if nodes > 0 else min(count, np.int64(1)), width):
            if is_set(stop):
                return
            records, coins, starts, long = rooms[side], flips[side], firsts[side], min(width, count - begin)
            for t in range(nodes):
                node, here = first + t, np.uint64(t * long)
                part, start, degree = np.int64(parts[node]), _NONE, _NONE
                ahead = node + NODES_AHEAD
                if ahead < m and rows[ahead] >= 0:
                    ask_ends(indptr[parts[ahead]] + (np.uint64(rows[ahead]) << _EIGHTS))
                if rows[node] >= 0:
                    start = np.uint64(i64_at(indptr[part], rows[node]))
                    degree = np.uint64(i64_at(indptr[part], rows[node] + 1)) - start
                base = base_of(narrow[part], packed[part])
                _ask(derive(key, np.uint64(positions[node])), begin, start, degree, base, here, long, records, coins)
                if kept:
                    shift, flat = _FOURS if base & _ALONE else _SIXTEENTHS, np.uint64(node * count + begin)
                    for k in range(long):
                        k_th = np.uint64(k)
                        slots[flat + k_th], starts[here + k_th] = np.int64(records[here + k_th] - base >> shift), start
            side = np.int64(1) - side
            records, coins, starts = rooms[side], flips[side], firsts[side]
            # Where a node's draws are all there, all nodes' are in one piece.
            whole = size == count
            for t in range(min(asked, np.int64(1)) if whole else asked):
                own, to, length = np.uint64(t * size), np.uint64((since + t) * count + drawn), asked * size if whole else size
                if kept:
                    _tell_slots(own, length, to, records, coins, starts, packed, cold, slots)
                if not moved:
                    _tell(own, length, to, records, coins, packed, cold, out)
            if moved:
                for t in range(asked):
                    _tell(np.uint64(t * size), size, np.uint64(at[since + t] * count + drawn), records, coins, packed, cold, out)
            asked, since, size, drawn = nodes, np.int64(first), np.int64(long), np.int64(begin)
