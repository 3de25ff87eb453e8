"""Global draws from ranges of a sorted index.

Each range is cut into blocks. A draw chooses a block, then a row in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    CHECK_BOUNDS,
    i64_at,
    kernel,
    prefetch_at,
    register,
    u32_at,
)
from asterism_graphkit.compile.named_tuple_arguments import kernel_record
from asterism_graphkit.random.alias_draw import resolve_column
from asterism_graphkit.random.rng import bounded, word
from storaged.kernels.global_sampling.row_sampling import (
    ENTRY_ROWS,
    IDS,
    LOCAL,
    OFFSET,
    ROW_MAP,
    SCALE,
    TAG,
)

BLOCK = 64
"""Draws in flight together."""
_EIGHTS, _FOURS = np.uint64(3), np.uint64(2)
FIRST_PIECE, PIECE_COUNT = range(ENTRY_ROWS, ENTRY_ROWS + 2)
"""Rows that an entry table has after those of `storaged.kernels.global_sampling.row_sampling`.

They hold the first piece of each entry, and its number of pieces. ``ROW_MAP`` is the address of the
uint32 rows of its index.
"""
COVERED_ENTRY_ROWS = ENTRY_ROWS + 2
START, ROWS, PIECE_THRESHOLDS, PIECE_FRACTIONS = range(4)
"""Rows of a piece table, int64[4, s].

First row of each piece in the order of the index, its number of rows, and the addresses of its
alias table; 0 if all its rows are equally likely.
"""


@kernel_record
class CoveredDrawParams(NamedTuple):
    """Parameters of global draws from pieces of an index.

    Attributes
    ----------
    part_key, piece_key, row_key : uint64
        Draw i uses word i of each of the three keys.
    start : uint64
        Number of the first draw.
    num_draws : int64
        Number of draws.
    """

    part_key: np.uint64
    piece_key: np.uint64
    row_key: np.uint64
    start: np.uint64
    num_draws: np.int64


@kernel
def cover_run(
    low: np.int64,
    high: np.int64,
    rows: np.int64,
    steps: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    levels: NDArray[np.int64],
) -> int:
    """Cut a range of rows into the fewest aligned blocks and single rows, in order.

    Parameters
    ----------
    low, high : int64
        The range: low <= i < high.
    rows : int64
        Number of rows of the index. The last block of each level ends there.
    steps : ndarray of int64, shape (levels,)
        Rows per block of each level, ascending, each a multiple of the previous one.
    starts, sizes, levels : ndarray of int64, shape (n,), out
        First row, number of rows and level of each piece; the level of a single row is -1.

    Returns
    -------
    int
        Number of pieces, which may exceed n; only the first n are written.
    """
    count = 0
    row = low
    while row < high:
        size, level = np.int64(1), np.int64(-1)
        for k in range(steps.shape[0] - 1, -1, -1):
            if row % steps[k] == 0 and min(row + steps[k], rows) <= high:
                size, level = min(steps[k], rows - row), np.int64(k)
                break
        if count < starts.shape[0]:
            starts[count], sizes[count], levels[count] = row, size, level
        count += 1
        row += size
    return count


@kernel
def draw_covered_rows(
    table: NDArray[np.int64],
    piece_table: NDArray[np.int64],
    params: CoveredDrawParams,
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint32],
    piece_thresholds: NDArray[np.uint64],
    piece_fractions: NDArray[np.uint32],
    numbers: NDArray[np.int64],
    out: NDArray[np.int64],
    out_tags: NDArray[np.int32],
) -> int:
    """Draw an entry, a piece of its cover and a row for each draw; keep local entries.

    The kept draws stay in order.

    Parameters
    ----------
    table : ndarray of int64, shape (COVERED_ENTRY_ROWS, k)
        The entries.
    piece_table : ndarray of int64, shape (4, s)
        The pieces of all entries, grouped by entry.
    params : CoveredDrawParams
    alias_threshold, alias_fraction, numbers, out, out_tags
        As in `storaged.kernels.global_sampling.row_sampling.draw_rows`.
    piece_thresholds, piece_fractions : ndarray of uint64 and of uint32, shape (s,)
        Alias table over the pieces of each entry.

    Returns
    -------
    int
        Number of local draws. The elements of ``out`` after them are undefined.
    """
    part_key, piece_key, row_key, start, count = params
    local, tags, row_maps, ids = table[LOCAL], table[TAG], table[ROW_MAP], table[IDS]
    scales, offsets = table[SCALE], table[OFFSET]
    first_pieces, piece_counts = table[FIRST_PIECE], table[PIECE_COUNT]
    starts, sizes = piece_table[START], piece_table[ROWS]
    threshold_addresses, fraction_addresses = (
        piece_table[PIECE_THRESHOLDS],
        piece_table[PIECE_FRACTIONS],
    )
    pieces, entries = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    block_rows, coins = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint64)
    k = np.uint64(alias_threshold.shape[0])
    if CHECK_BOUNDS:
        register(alias_threshold)
        register(alias_fraction)
        register(piece_thresholds)
        register(piece_fractions)
    threshold_base, fraction_base = (
        np.uint64(alias_threshold.ctypes.data),
        np.uint64(alias_fraction.ctypes.data),
    )
    piece_threshold_base, piece_fraction_base = (
        np.uint64(piece_thresholds.ctypes.data),
        np.uint64(piece_fractions.ctypes.data),
    )
    has_numbers, want_tags = numbers.shape[0] > 0, out_tags.shape[0] > 0
    i, num_written = np.int64(0), np.int64(0)
    while i < count:
        filled = 0
        for _ in range(min(np.int64(BLOCK), count - i)):
            number = np.uint64(numbers[i]) if has_numbers else start + np.uint64(i)
            i += 1
            w = word(part_key, number)
            entry = np.int64(resolve_column(threshold_base, fraction_base, bounded(w, k), w * k))
            if local[entry] == 0:
                continue
            first, piece_count = np.uint64(first_pieces[entry]), np.uint64(piece_counts[entry])
            w = word(piece_key, number)
            piece_index = resolve_column(
                piece_threshold_base + (first << _EIGHTS),
                piece_fraction_base + (first << _FOURS),
                bounded(w, piece_count),
                w * piece_count,
            )
            piece = np.int64(first + piece_index)
            w = word(row_key, number)
            piece_rows = np.uint64(sizes[piece])
            column = bounded(w, piece_rows)
            pieces[filled], entries[filled], block_rows[filled], coins[filled] = (
                piece,
                entry,
                column,
                w * piece_rows,
            )
            if threshold_addresses[piece] > 0:
                prefetch_at(np.uint64(threshold_addresses[piece]) + (column << _EIGHTS))
            filled += 1
        for j in range(filled):
            piece = pieces[j]
            if threshold_addresses[piece] > 0:
                block_rows[j] = resolve_column(
                    np.uint64(threshold_addresses[piece]),
                    np.uint64(fraction_addresses[piece]),
                    block_rows[j],
                    coins[j],
                )
            block_rows[j] += np.uint64(starts[piece])
            prefetch_at(np.uint64(row_maps[entries[j]]) + (block_rows[j] << _FOURS))
        for j in range(filled):
            block_rows[j] = np.uint64(u32_at(np.uint64(row_maps[entries[j]]), block_rows[j]))
            if ids[entries[j]] > 0:
                prefetch_at(np.uint64(ids[entries[j]]) + (block_rows[j] << _EIGHTS))
        for j in range(filled):
            entry, row = entries[j], np.int64(block_rows[j])
            out[num_written] = (
                i64_at(np.uint64(ids[entry]), row)
                if ids[entry] > 0
                else row * scales[entry] + offsets[entry]
            )
            if want_tags:
                out_tags[num_written] = np.int32(tags[entry])
            num_written += 1
    return num_written  # type: ignore[return-value]  # an int64 here and an int to the caller
