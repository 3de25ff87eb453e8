"""Global draws from runs of an index: of each run the blocks that it consists of, then draws of a block and of a row in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.acceptance import accepted
from graphkit.jit import CHECKED, i64_at, kernel, prefetch_at, register, u32_at
from graphkit.rng import below, word

BLOCK = 64
"""Draws that are under way together."""
_EIGHTS, _FOURS = np.uint64(3), np.uint64(2)


@kernel
def decompose(
    low: np.int64,
    high: np.int64,
    rows: np.int64,
    steps: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    levels: NDArray[np.int64],
) -> int:
    """Cut a run of rows into the fewest whole blocks and single rows, in order.

    Parameters
    ----------
    low, high : int64
        The run: low <= i < high.
    rows : int64
        Of the index: its last block of each step ends with it.
    steps : int64[levels]
        Rows of a block, ascending, each a multiple of the one before.
    starts, sizes, levels : int64[n], out
        First row, rows and level of each piece; level -1 is a single row.

    Returns
    -------
    int
        How many pieces there are; nothing is written behind n.
    """
    count = 0
    at = low
    while at < high:
        size, level = np.int64(1), np.int64(-1)
        for k in range(steps.shape[0] - 1, -1, -1):
            if at % steps[k] == 0 and min(at + steps[k], rows) <= high:
                size, level = min(steps[k], rows - at), np.int64(k)
                break
        if count < starts.shape[0]:
            starts[count], sizes[count], levels[count] = at, size, level
        count += 1
        at += size
    return count


@kernel
def draw_covered(
    part_key: np.uint64,
    piece_key: np.uint64,
    row_key: np.uint64,
    start: np.uint64,
    count: np.int64,
    numbers: NDArray[np.int64],
    hot: NDArray[np.uint64],
    cold: NDArray[np.uint32],
    local: NDArray[np.uint8],
    tags: NDArray[np.int32],
    firsts: NDArray[np.int64],
    piece_hot: NDArray[np.uint64],
    piece_cold: NDArray[np.uint32],
    starts: NDArray[np.int64],
    sizes: NDArray[np.uint64],
    hots: NDArray[np.uint64],
    colds: NDArray[np.uint64],
    rows_of: NDArray[np.uint64],
    ids: NDArray[np.uint64],
    scales: NDArray[np.int64],
    offsets: NDArray[np.int64],
    out: NDArray[np.int64],
    out_tags: NDArray[np.int32],
) -> int:
    """Draw an entry, a piece of its cover and a row of that for each of some draws; keep those of local entries, in order.

    Parameters
    ----------
    part_key, row_key, start, count, numbers, hot, cold, local, tags, ids, scales, offsets, out, out_tags
        As of `storaged.kernel.columns.draw_rows`.
    piece_key : uint64
        Draw i takes the word of its number from each of the three keys.
    firsts : int64[k + 1]
        Where each entry's pieces begin.
    piece_hot, piece_cold : uint64[s], uint32[s]
        The tables of every entry's pieces, one behind another.
    starts, sizes : int64[s], uint64[s]
        First row of a piece, in order of the index, and how many.
    hots, colds : uint64[s], uint64[s]
        Addresses of a piece's own table; 0: every row alike.
    rows_of : uint64[k]
        Address of the uint32 rows of each entry's index.

    Returns
    -------
    int
        How many draws are local: what lies behind them in ``out`` means nothing.
    """
    pieces, entries = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    at, coins = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    k = np.uint64(hot.shape[0])
    if CHECKED:
        register(hot)
        register(cold)
        register(piece_hot)
        register(piece_cold)
    hot_at, cold_at = np.uint64(hot.ctypes.data), np.uint64(cold.ctypes.data)
    pieces_hot, pieces_cold = np.uint64(piece_hot.ctypes.data), np.uint64(piece_cold.ctypes.data)
    scattered, tagged = numbers.shape[0] > 0, out_tags.shape[0] > 0
    i, made = np.int64(0), np.int64(0)
    while i < count:
        filled = 0
        for _ in range(min(np.int64(BLOCK), count - i)):
            number = np.uint64(numbers[i]) if scattered else start + np.uint64(i)
            i += 1
            w = word(part_key, number)
            entry = np.int64(accepted(hot_at, cold_at, below(w, k), w * k))
            if local[entry] == 0:
                continue
            first = np.uint64(firsts[entry])
            many = np.uint64(firsts[entry + 1]) - first
            w = word(piece_key, number)
            taken = accepted(pieces_hot + (first << _EIGHTS), pieces_cold + (first << _FOURS), below(w, many), w * many)
            piece = np.int64(first + taken)
            w = word(row_key, number)
            column = below(w, sizes[piece])
            pieces[filled], entries[filled], at[filled], coins[filled] = piece, entry, column, w * sizes[piece]
            if hots[piece] > 0:
                prefetch_at(hots[piece] + (column << _EIGHTS))
            filled += 1
        for j in range(filled):
            piece = pieces[j]
            if hots[piece] > 0:
                at[j] = accepted(hots[piece], colds[piece], at[j], coins[j])
            at[j] += np.uint64(starts[piece])
            prefetch_at(rows_of[entries[j]] + (at[j] << _FOURS))
        for j in range(filled):
            at[j] = np.uint64(u32_at(rows_of[entries[j]], at[j]))
            if ids[entries[j]] > 0:
                prefetch_at(ids[entries[j]] + (at[j] << _EIGHTS))
        for j in range(filled):
            entry, row = entries[j], np.int64(at[j])
            out[made] = i64_at(ids[entry], row) if ids[entry] > 0 else row * scales[entry] + offsets[entry]
            if tagged:
                out_tags[made] = tags[entry]
            made += 1
    return made  # type: ignore[return-value]  # an int64 here and an int to the caller
