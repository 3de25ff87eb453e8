"""Global draws: the rows that draws fall on, whatever entry of a `graphkit.split.Shares` they are of, and what is asked of them.

Loops ask for what they read some turns later, a little at a time: a whole block asked for at once fills the queue to the memory, and the
hashing stands still meanwhile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.acceptance import accepted, accepted_of
from graphkit.jit import f32_at, i64_at, kernel, prefetch_at, u32_at, u64_at
from graphkit.rng import below, word

BLOCK, STEP, AHEAD = 64, 8, 24
"""Draws whose words are made at a time, with the widest instructions there are; of which are led on at a time; between what is asked for
and what is read."""
_LAST, _RING = np.int64(BLOCK - 1), np.int64(4 * BLOCK - 1)
_EIGHTS, _FOURS, _ZERO = np.uint64(3), np.uint64(2), np.uint64(0)
"""Shifts that make addresses of indices, and the first index."""


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
    coins = np.empty(_RING + 1, np.uint64)
    entries = np.empty(_RING + 1, np.int64)
    part_words, row_words = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    k = np.uint64(hot.shape[0])
    hot_at, cold_at = np.uint64(hot.ctypes.data), np.uint64(cold.ctypes.data)
    mapped, named, scattered, tagged = False, False, numbers.shape[0] > 0, out_tags.shape[0] > 0
    for e in range(hot.shape[0]):
        mapped |= local[e] > 0 and rows_of[e] > 0
        named |= local[e] > 0 and ids[e] > 0
    i, made, taken, moved, told = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while i < count or told < made:
        if i & _LAST == 0:
            for j in range(min(np.int64(BLOCK), count - i)):
                at = np.uint64(numbers[i + j]) if scattered else start + np.uint64(i + j)
                part_words[j], row_words[j] = word(part_key, at), word(row_key, at)
        end = min(count, i + STEP)
        while i < end:
            w = part_words[i & _LAST]
            entry = np.int64(accepted(hot_at, cold_at, below(w, k), w * k))
            w = row_words[i & _LAST]
            column = below(w, sizes[entry])
            out[made] = np.int64(column)
            coins[made & _RING] = w * sizes[entry]
            entries[made & _RING] = entry
            if hots[entry] > 0:
                prefetch_at(hots[entry] + (column << shifts[entry]))
            made += np.int64(local[entry])
            i += 1
        behind = AHEAD if i < count else np.int64(0)
        to_take = max(taken, made - behind)
        for j in range(taken, to_take):
            entry = entries[j & _RING]
            column = np.uint64(out[j])
            if hots[entry] > 0:
                hot_here = u64_at(hots[entry] + (column << shifts[entry]), _ZERO)
                column = accepted_of(hot_here, colds[entry], column, coins[j & _RING])
            out[j] = np.int64(column)
            if mapped:
                prefetch_at(rows_of[entry] + (column << _FOURS))
            elif named:
                prefetch_at(ids[entry] + (column << shifts[entry]))
        taken = to_take
        if mapped:
            to_move = max(moved, taken - behind)
            for j in range(moved, to_move):
                entry = entries[j & _RING]
                if rows_of[entry] > 0:
                    out[j] = np.int64(u32_at(rows_of[entry], out[j]))
                if named:
                    prefetch_at(ids[entry] + (np.uint64(out[j]) << shifts[entry]))
            moved = to_move
        to_tell = moved if mapped else taken
        if named:
            to_tell = max(told, to_tell - behind)
        for j in range(told, to_tell):
            entry = entries[j & _RING]
            row = out[j]
            named_here = ids[entry] + (np.uint64(row) << shifts[entry])
            out[j] = i64_at(named_here, _ZERO) if ids[entry] > 0 else row * scales[entry] + offsets[entry]
            if tagged:
                out_tags[j] = tags[entry]
        told = to_tell
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
