"""Global draws: which draws fall on an entry, the rows that a table gives them, and gathering what is asked of rows.

A call's draws are grouped by entry of its `graphkit.split.Shares`; each entry is one kernel call over its own arrays.
Loops hash and prefetch a block before they read it, so that the memory's latency is paid once a block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, inlined, kernel, prefetch
from graphkit.rng import below, word

BLOCK = 64
AHEAD = 24
_S32, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


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


@inlined
def _hash_block(
    key: np.uint64,
    start: np.uint64,
    draws: NDArray[np.uint32],
    first: Whole,
    size: np.uint64,
    hot: NDArray[np.uint64],
    row_of: NDArray[np.uint32],
    columns: NDArray[np.uint64],
    coins: NDArray[np.uint64],
) -> None:
    """Columns and coins of the block of draws that begins at ``first``, and a prefetch of what they read first."""
    count = min(BLOCK, draws.shape[0] - first)
    for k in range(count):
        w = word(key, start + np.uint64(draws[first + k]))
        columns[k] = below(w, size)
        coins[k] = w * size
    if hot.shape[0] > 0:
        for k in range(count):
            prefetch(hot, columns[k])
    elif row_of.shape[0] > 0:
        for k in range(count):
            prefetch(row_of, columns[k])


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
    if total > 0:
        _hash_block(key, start, draws, np.int64(0), size, hot, row_of, columns[0], coins[0])
    side = 0
    for first in range(0, total, BLOCK):
        count = min(BLOCK, total - first)
        own, coin = columns[side], coins[side]
        side = 1 - side
        if first + BLOCK < total:
            _hash_block(key, start, draws, first + BLOCK, size, hot, row_of, columns[side], coins[side])
        if hot.shape[0] > 0:
            for k in range(count):
                column = own[k]
                row = hot[column]
                high = coin[k] >> _S32
                taken = column if high < (row >> _S32) else row & _LOW
                if high == (row >> _S32) and (coin[k] & _LOW) < np.uint64(cold[column]):
                    taken = column
                own[k] = taken
            if row_of.shape[0] > 0:
                for k in range(count):
                    prefetch(row_of, own[k])
        if row_of.shape[0] > 0:
            for k in range(count):
                own[k] = np.uint64(row_of[own[k]])
        if places.shape[0] > 0:
            for k in range(count):
                out[places[first + k]] = np.int64(own[k]) * scale + offset
        else:
            for k in range(count):
                out[first + k] = np.int64(own[k]) * scale + offset


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
