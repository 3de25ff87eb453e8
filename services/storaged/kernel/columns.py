"""Global draws: which draws fall on an entry, the rows that a table gives them, and gathering what is asked of rows.

A call's draws are grouped by entry of its `graphkit.split.Shares`; each entry is one kernel call over its own arrays.
Loops hash and prefetch a block before they read it, so that the memory's latency is paid once a block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import kernel, prefetch
from graphkit.rng import below, word

BLOCK = 64
AHEAD = 24
_S32, _LOW, _SIGN = np.uint64(32), np.uint64(0xFFFFFFFF), np.int64(63)


@kernel
def count_local(entries: NDArray[np.int32], local: NDArray[np.uint8], offsets: NDArray[np.int64]) -> int:
    """Count the draws on each entry that is held here.

    Parameters
    ----------
    entries : int32[n]
        From `graphkit.split.choose`.
    local : uint8[k]
        1 for entries that this host answers for.
    offsets : int64[k + 1], out
        Where each local entry's draws begin, in an array of all local draws by entry.

    Returns
    -------
    int
        How many draws are local.
    """
    for e in range(offsets.shape[0]):
        offsets[e] = 0
    for i in range(entries.shape[0]):
        offsets[entries[i] + 1] += 1
    for e in range(local.shape[0]):
        offsets[e + 1] = offsets[e] + (offsets[e + 1] if local[e] else 0)
    return offsets[local.shape[0]]  # type: ignore[return-value]  # an int64 here and an int to the caller


@kernel
def scatter_local(
    entries: NDArray[np.int32],
    local: NDArray[np.uint8],
    entry_types: NDArray[np.int32],
    cursor: NDArray[np.int64],
    draws: NDArray[np.uint32],
    places: NDArray[np.uint32],
    types: NDArray[np.int32],
) -> None:
    """List the local draws by entry, with the place of each in an answer in order of draws.

    Parameters
    ----------
    entries, local : int32[n], uint8[k]
        As in `count_local`.
    entry_types : int32[k]
        The type of each entry.
    cursor : int64[k + 1], in and out
        A copy of ``offsets``; used up.
    draws : uint32[m], out
        Number of each local draw, counted from the first of this call, by (entry, draw).
    places : uint32[m], out
        Its place among local draws.
    types : int32[m], out
        Types, by place.
    """
    place = np.uint32(0)
    one = np.uint32(1)
    for i in range(entries.shape[0]):
        e = entries[i]
        if local[e]:
            at = cursor[e]
            cursor[e] = at + 1
            draws[at] = i
            places[at] = place
            types[place] = entry_types[e]
            place += one


@kernel
def draw_rows(
    key: np.uint64,
    start: np.uint64,
    draws: NDArray[np.uint32],
    size: np.uint64,
    hot: NDArray[np.uint64],
    cold: NDArray[np.uint32],
    row_of: NDArray[np.uint32],
    places: NDArray[np.uint32],
    scale: np.int64,
    offset: np.int64,
    out: NDArray[np.int64],
) -> None:
    """Draw a row for each of some draws from one alias table.

    Parameters
    ----------
    key : uint64
        ``key_of(seed, rng.NODE_ROW)`` or ``key_of(seed, rng.EDGE_ROW)``.
    start : uint64
        Number of the call's first draw; draw ``start + draws[k]`` takes the word of that number.
    draws : uint32[m]
    size : uint64
        Columns of the table, >= 1.
    hot, cold : uint64[size], uint32[size]
        The table; empty: every column is certain.
    row_of : uint32[size]
        Column -> row; empty: column i is row i.
    places : uint32[m]
        Where each draw's answer goes; empty: to ``out[k]``.
    scale, offset : int64
        A row is given as row * scale + offset: (parts, part) makes ids of a dense type, (1, 0) leaves rows.
    out : int64[n], out

    Notes
    -----
    The column is the high half of word * size (Lemire 2019, without its rejection: joint error 2^-64) and its coin the
    low half. While one block is read, the next one is on its way from memory.
    """
    columns = np.empty((2, BLOCK), np.uint64)
    coins = np.empty((2, BLOCK), np.uint64)
    total = draws.shape[0]
    tabled, mapped, placed = hot.shape[0] > 0, row_of.shape[0] > 0, places.shape[0] > 0
    side = 0
    for ahead in range(0, total + BLOCK, BLOCK):
        # All in one loop body: a function of arrays, or a slice of one, would count references at the price of draws.
        for k in range(min(BLOCK, total - ahead)):
            w = word(key, start + np.uint64(draws[ahead + k]))
            column = below(w, size)
            columns[side, k] = column
            coins[side, k] = w * size
            if tabled:
                prefetch(hot, column)
            elif mapped:
                prefetch(row_of, column)
        side = 1 - side
        first = ahead - BLOCK
        if first < 0:
            continue
        count = min(BLOCK, total - first)
        if tabled:
            for k in range(count):
                column, coin = columns[side, k], coins[side, k]
                row = hot[column]
                high, threshold = np.int64(coin >> _S32), np.int64(row >> _S32)
                led = row & _LOW
                # All ones where high < threshold: a branch would be mispredicted every other time.
                kept = np.uint64((high - threshold) >> _SIGN)
                taken = led ^ ((column ^ led) & kept)
                if high == threshold and (coin & _LOW) < np.uint64(cold[column]):
                    taken = column
                columns[side, k] = taken
                if mapped:
                    prefetch(row_of, taken)
        if mapped:
            for k in range(count):
                columns[side, k] = np.uint64(row_of[columns[side, k]])
        if placed:
            for k in range(count):
                out[places[first + k]] = np.int64(columns[side, k]) * scale + offset
        else:
            for k in range(count):
                out[first + k] = np.int64(columns[side, k]) * scale + offset


@kernel
def place(rows: NDArray[np.int64], places: NDArray[np.uint32], values: NDArray[Any], out: NDArray[Any]) -> None:
    """Put the value of each row in its place: ``out[places[k]] = values[rows[k]]``.

    Parameters
    ----------
    rows, places : int64[m], uint32[m]
    values : int64[rows] or float32[rows]
    out : the same dtype[n], out
    """
    n = rows.shape[0]
    for k in range(n):
        if k + AHEAD < n:
            prefetch(values, rows[k + AHEAD])
        out[places[k]] = values[rows[k]]


@kernel
def place_sources(
    slots: NDArray[np.int64],
    places: NDArray[np.uint32],
    src_row: NDArray[np.uint32],
    ids: NDArray[np.int64],
    parts: np.int64,
    part: np.int64,
    out: NDArray[np.int64],
) -> None:
    """Put the source's id of each edge in its place.

    Parameters
    ----------
    slots, places : int64[m], uint32[m]
    src_row : uint32[slots]
        The source's row.
    ids : int64[rows]
        Of a sparse node type; empty for a dense one: the id is then row * parts + part.
    parts, part : int64
    out : int64[n], out
        ``out[places[k]]`` is the source of ``slots[k]``.
    """
    n = slots.shape[0]
    for k in range(n):
        if k + 2 * AHEAD < n:
            prefetch(src_row, slots[k + 2 * AHEAD])
        if ids.shape[0] == 0:
            out[places[k]] = np.int64(src_row[slots[k]]) * parts + part
        else:
            if k + AHEAD < n:
                prefetch(ids, src_row[slots[k + AHEAD]])
            out[places[k]] = ids[src_row[slots[k]]]
