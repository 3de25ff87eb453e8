"""Global draws: the rows that draws fall on, whatever entry of a `graphkit.split.Shares` they are of, and what is asked of them.

Whole blocks of draws are hashed and led to their columns by the widest instructions there are. What is read of them is asked for some draws
before, a little at a time: a whole block asked for at once fills the queue to the memory, and all else stands still meanwhile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.acceptance import accepted, accepted_of, led_of, undecided
from graphkit.jit import CHECKED, f32_at, i64_at, inlined, kernel, prefetch_at, register, register_at, u32_at, u64_at
from graphkit.rng import below, below_short, word

BLOCK, STEP, AHEAD = 64, 8, 48
"""Draws that are hashed at a time; of which are read at a time; between what is asked for and what is read."""
_RING = 4 * BLOCK
"""Draws that are under way at most: a block, and as many as come between three reads one after another."""
_SLOT = np.uint64(_RING - 1)
_EIGHTS, _FOURS, _ZERO = np.uint64(3), np.uint64(2), np.uint64(0)
"""Shifts that make addresses of indices, and the first index."""
_CERTAIN = np.full(1, 0xFFFFFFFF << 32, np.uint64)
"""A threshold that no coin is above, for what has no table."""


@inlined
def _count(first: np.uint64, numbers: NDArray[np.int64], i: np.int64, size: np.int64, drawn: NDArray[np.uint64], to: np.uint64) -> None:
    """The numbers of draws i .. i + size - 1: those that were given, or from ``first`` on."""
    if numbers.shape[0] > 0:
        for j in range(np.uint64(size)):
            drawn[to + j] = np.uint64(numbers[np.uint64(i) + j])
    else:
        for j in range(np.uint64(size)):
            drawn[to + j] = first + np.uint64(i) + j


@inlined
def _hash(key: np.uint64, drawn: NDArray[np.uint64], begin: np.uint64, size: np.int64, words: NDArray[np.uint64]) -> None:
    """The words of some draws."""
    for j in range(np.uint64(size)):
        words[j] = word(key, drawn[begin + j])


@inlined
def _choose(
    words: NDArray[np.uint64], size: np.int64, hot: NDArray[np.uint64], cold: NDArray[np.uint32], chosen: NDArray[np.uint64], to: np.uint64
) -> None:
    """The entries that words draw."""
    k, rest = np.uint64(hot.shape[0]), np.uint64(0)
    for j in range(np.uint64(size)):
        column, coin = below_short(words[j], k), words[j] * k
        chosen[to + j] = led_of(hot[column], column, coin)
        rest |= np.uint64(undecided(hot[column], coin))
    if rest > _ZERO:
        if CHECKED:
            register(hot)
            register(cold)
        for j in range(np.uint64(size)):
            chosen[to + j] = accepted(np.uint64(hot.ctypes.data), np.uint64(cold.ctypes.data), below(words[j], k), words[j] * k)


@inlined
def _keep(
    local: NDArray[np.uint8],
    all_chosen: NDArray[np.uint64],
    all_drawn: NDArray[np.uint64],
    size: np.int64,
    chosen: NDArray[np.uint64],
    drawn: NDArray[np.uint64],
    held: np.int64,
) -> np.int64:
    """Put those of ``size`` draws that are of local entries behind ``held`` others; how many there are then.

    Each is written, and counts or does not: which, nobody can foretell.
    """
    to = np.uint64(held)
    for j in range(np.uint64(size)):
        entry = all_chosen[j]
        chosen[to], drawn[to] = entry, all_drawn[j]
        to += np.uint64(local[entry])
    return np.int64(to)


@inlined
def _fall(
    chosen: NDArray[np.uint64],
    row_words: NDArray[np.uint64],
    size: np.int64,
    sizes: NDArray[np.uint64],
    hots: NDArray[np.uint64],
    shifts: NDArray[np.uint64],
    ring: NDArray[np.uint64],
    made: np.int64,
) -> None:
    """The columns of their entries that words draw, from the first slot of ``ring`` on that is free: a multiple of `BLOCK`."""
    entries, columns, coins, places = ring
    first, certain = np.uint64(made) & _SLOT, np.uint64(_CERTAIN.ctypes.data)
    if CHECKED:
        register_at(certain, 8 * _CERTAIN.size)
    for j in range(np.uint64(size)):
        entry, w = chosen[j], row_words[j]
        column = below_short(w, sizes[entry])
        entries[first + j], columns[first + j], coins[first + j] = entry, column, w * sizes[entry]
        places[first + j] = hots[entry] + (column << shifts[entry]) if hots[entry] > _ZERO else certain


@kernel
def draw_rows(
    part_key: np.uint64,
    row_key: np.uint64,
    start: np.uint64,
    count: np.int64,
    numbers: NDArray[np.int64],
    hot: NDArray[np.uint64],
    cold: NDArray[np.uint32],
    local: NDArray[np.uint8],
    tags: NDArray[np.int32],
    sizes: NDArray[np.uint64],
    hots: NDArray[np.uint64],
    colds: NDArray[np.uint64],
    rows_of: NDArray[np.uint64],
    ids: NDArray[np.uint64],
    shifts: NDArray[np.uint64],
    scales: NDArray[np.int64],
    offsets: NDArray[np.int64],
    out: NDArray[np.int64],
    out_tags: NDArray[np.int32],
) -> int:
    """Draw an entry, and a row of its alias table, for each of some draws; keep those of local entries, in order.

    Parameters
    ----------
    part_key : uint64
        ``key_of(seed, rng.PART, element)``; draw i takes the word of its number, and so it does from the other key.
    row_key : uint64
        ``key_of(seed, rng.NODE_ROW)`` or ``key_of(seed, rng.EDGE_ROW)``.
    start : uint64
        Number of the first draw.
    count : int64
    numbers : int64[count]
        Of the draws; empty: they are start, start + 1 and so on.
    hot, cold : uint64[k], uint32[k]
        The table of the entries, of `graphkit.split.Shares`.
    local : uint8[k]
        1 for entries that this host answers for.
    tags : int32[k]
        What tells an entry in the answer.
    sizes : uint64[k]
        Columns of each entry's table, >= 1 where it is local and can be drawn.
    hots, colds : uint64[k], uint64[k]
        Addresses of its table, uint64[size], ``shifts`` apart, and uint32[size]; 0: every column is certain. Of an entry that is not
        local any address that may be asked for.
    rows_of : uint64[k]
        Address of uint32[size], column -> row; 0: column i is row i.
    ids : uint64[k]
        Address of int64[rows], the answer for each row, ``shifts`` apart; 0: it is row * scale + offset.
    shifts : uint64[k]
        log2 of the bytes from one threshold to the next and from one id to the next: 3 where each of both has an array, 4 where they
        alternate in one.
    scales, offsets : int64[k], int64[k]
        (parts, part) makes ids of a dense type, (1, 0) leaves rows.
    out, out_tags : int64[count], int32[count], out
        No tags are wanted where there is room for none.

    Returns
    -------
    int
        How many draws are local: what lies behind them in ``out`` means nothing.

    Notes
    -----
    The column is the high half of word * size (Lemire 2019, without its rejection: joint error 2^-64) and its coin the
    low half. While some draws are hashed, what those before them read is on its way from memory: a draw's column is drawn,
    led to its alias `AHEAD` draws later, and its row and its id are read after as many again.
    """
    words, all_chosen, all_drawn = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    chosen, drawn = np.empty(2 * BLOCK, np.uint64), np.empty(2 * BLOCK, np.uint64)
    ring = np.empty((4, _RING), np.uint64)
    entries, columns, coins, places = ring
    mapped, named, alone, tagged = False, False, True, out_tags.shape[0] > 0
    for e in range(hot.shape[0]):
        mapped |= local[e] > 0 and rows_of[e] > 0
        named |= local[e] > 0 and ids[e] > 0
        alone &= local[e] > 0
    plain = not (mapped or named or tagged)
    i, held, made, asked, taken, moved, told = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while i < count or told < made:
        while held < BLOCK and i < count:
            size = min(np.int64(BLOCK), count - i)
            if alone:
                _count(start, numbers, i, size, drawn, np.uint64(held))
                _hash(part_key, drawn, np.uint64(held), size, words)
                _choose(words, size, hot, cold, chosen, np.uint64(held))
                held += size
            else:
                _count(start, numbers, i, size, all_drawn, _ZERO)
                _hash(part_key, all_drawn, _ZERO, size, words)
                _choose(words, size, hot, cold, all_chosen, _ZERO)
                held = _keep(local, all_chosen, all_drawn, size, chosen, drawn, held)
            i += size
        size = min(held, np.int64(BLOCK))
        _hash(row_key, drawn, _ZERO, size, words)
        _fall(chosen, words, size, sizes, hots, shifts, ring, made)
        for j in range(np.uint64(size), np.uint64(held)):
            chosen[j - np.uint64(size)], drawn[j - np.uint64(size)] = chosen[j], drawn[j]
        made, held = made + size, held - size
        last = i >= count and held == 0
        while asked < made or (last and told < made):
            end = min(asked + STEP, made)
            for j in range(np.uint64(asked), np.uint64(end)):
                prefetch_at(places[j & _SLOT])
            asked, behind = end, np.int64(0) if last and end == made else np.int64(AHEAD)
            end = max(taken, asked - behind)
            for j in range(np.uint64(taken), np.uint64(end)):
                entry, column, coin, row = entries[j & _SLOT], columns[j & _SLOT], coins[j & _SLOT], u64_at(places[j & _SLOT], _ZERO)
                found = led_of(row, column, coin)
                if undecided(row, coin):
                    found = accepted_of(row, colds[entry], column, coin) if hots[entry] > _ZERO else column
                if plain:
                    out[j] = np.int64(found) * scales[entry] + offsets[entry]
                    continue
                out[j] = np.int64(found)
                if mapped:
                    prefetch_at(rows_of[entry] + (found << _FOURS))
                elif named:
                    prefetch_at(ids[entry] + (found << shifts[entry]))
            taken = end
            end = max(moved, taken - behind) if mapped else taken
            for j in range(np.uint64(moved if mapped else end), np.uint64(end)):
                entry = entries[j & _SLOT]
                if rows_of[entry] > 0:
                    out[j] = np.int64(u32_at(rows_of[entry], out[j]))
                if named:
                    prefetch_at(ids[entry] + (np.uint64(out[j]) << shifts[entry]))
            moved = end
            end = max(told, moved - behind) if named else moved
            for j in range(np.uint64(end if plain else told), np.uint64(end)):
                entry, found = entries[j & _SLOT], np.uint64(out[j])
                named_here = named and ids[entry] > 0
                out[j] = i64_at(ids[entry] + (found << shifts[entry]), _ZERO) if named_here else out[j] * scales[entry] + offsets[entry]
                if tagged:
                    out_tags[j] = tags[entry]
            told = end
    return made  # type: ignore[return-value]  # an int64 here and an int to the caller


@kernel
def read_ids(
    entries: NDArray[np.int32],
    rows: NDArray[np.int64],
    columns: NDArray[np.uint64],
    scales: NDArray[np.int64],
    offsets: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Read a number of each row: ``out[i]`` of row ``rows[i]`` of entry ``entries[i]``.

    Parameters
    ----------
    entries, rows : int32[n], int64[n]
    columns : uint64[k]
        Address of each entry's int64[rows]; 0: what is read is row * scale + offset.
    scales, offsets : int64[k], int64[k]
    out : int64[n], out
    """
    n = rows.shape[0]
    for i in range(n):
        if i + AHEAD < n:
            prefetch_at(columns[entries[i + AHEAD]] + (np.uint64(rows[i + AHEAD]) << _EIGHTS))
        entry = entries[i]
        if columns[entry] > 0:
            out[i] = i64_at(columns[entry], rows[i])
        else:
            out[i] = rows[i] * scales[entry] + offsets[entry]


@kernel
def read_sources(entries: NDArray[np.int32], slots: NDArray[np.int64], columns: NDArray[np.uint64], out: NDArray[np.int64]) -> None:
    """Read the row of each edge's source; arrays as in `read_ids`, ``columns`` are of uint32[slots]."""
    n = slots.shape[0]
    for i in range(n):
        if i + AHEAD < n:
            prefetch_at(columns[entries[i + AHEAD]] + (np.uint64(slots[i + AHEAD]) << _FOURS))
        out[i] = np.int64(u32_at(columns[entries[i]], slots[i]))


@kernel
def read_weights(entries: NDArray[np.int32], rows: NDArray[np.int64], columns: NDArray[np.uint64], out: NDArray[np.float32]) -> None:
    """Read the weight of each row; arrays as in `read_ids`, ``columns`` are of float32[rows], and 1 is read where one is 0."""
    n = rows.shape[0]
    for i in range(n):
        if i + AHEAD < n:
            prefetch_at(columns[entries[i + AHEAD]] + (np.uint64(rows[i + AHEAD]) << _FOURS))
        out[i] = f32_at(columns[entries[i]], rows[i]) if columns[entries[i]] > 0 else np.float32(1.0)
