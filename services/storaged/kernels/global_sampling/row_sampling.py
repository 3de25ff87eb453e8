"""Global draws: choose a row for each draw, and gather values of the rows.

The entries are those of an `asterism_graphkit.random.partition_choice.PartShares`. Blocks of draws
are hashed and resolved to columns with vector instructions. The memory of a draw is prefetched some
draws ahead, in small steps: prefetching a whole block in one go fills the memory queue and stalls
everything else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    CHECK_BOUNDS,
    f32_at,
    i64_at,
    inlined,
    kernel,
    prefetch_at,
    register,
    register_at,
    u32_at,
    u64_at,
)
from asterism_graphkit.compile.named_tuple_arguments import kernel_record
from asterism_graphkit.random.alias_draw import (
    needs_low_bits,
    resolve_by_high_bits,
    resolve_column,
    resolve_column_from_entry,
)
from asterism_graphkit.random.rng import bounded, bounded_short, word

BLOCK, STEP, AHEAD = 64, 8, 48
"""Draws hashed per block, draws read per step, and the prefetch distance in draws."""
_RING = 4 * BLOCK
"""Maximum number of draws in flight: a block, and the draws between three dependent reads."""
_SLOT = np.uint64(_RING - 1)
_EIGHTS, _FOURS, _ZERO = np.uint64(3), np.uint64(2), np.uint64(0)
"""Shifts from an index to a byte offset, and index 0."""
(
    LOCAL,
    TAG,
    SIZE,
    THRESHOLDS,
    FRACTIONS,
    ROW_MAP,
    IDS,
    SHIFT,
    SCALE,
    OFFSET,
) = range(10)
"""Rows of an entry table, int64[rows, k], with one column per entry.

A row of the table is contiguous, so that reads of one property are close together.

* ``LOCAL``: 1 for entries that this host serves.
* ``TAG``: identifies an entry in the result.
* ``SIZE``: number of columns of the entry's alias table; >= 1 if the entry is local and can be
  drawn.
* ``THRESHOLDS``, ``FRACTIONS``: addresses of that table, uint64[size], 2^``SHIFT`` bytes apart, and
  uint32[size]. 0: every column is certain. For an entry that is not local, any address that may be
  prefetched.
* ``ROW_MAP``: address of uint32[size], column -> row; 0: column i is row i.
* ``IDS``: address of int64[rows], the result for each row, 2^``SHIFT`` bytes apart; 0: the result
  is row * ``SCALE`` + ``OFFSET``.
* ``SHIFT``: log2 of the bytes between two thresholds and between two ids: 3 if each has a separate
  array, 4 if they alternate in one.
* ``SCALE``, ``OFFSET``: (parts, part) gives the ids of a dense type, (1, 0) gives rows.
"""
ENTRY_ROWS = 10
_CERTAIN = np.full(1, 0xFFFFFFFF << 32, np.uint64)
"""Threshold that keeps every coin, for entries without an alias table."""


@kernel_record
class GlobalDrawParams(NamedTuple):
    """Parameters of global draws.

    Attributes
    ----------
    part_key : uint64
        ``key_of(seed, rng.PART, element)``. Draw i uses word i of this key and of ``row_key``.
    row_key : uint64
        ``key_of(seed, rng.NODE_ROW)`` or ``key_of(seed, rng.EDGE_ROW)``.
    start : uint64
        Number of the first draw.
    num_draws : int64
        Number of draws.
    """

    part_key: np.uint64
    row_key: np.uint64
    start: np.uint64
    num_draws: np.int64


@inlined
def _fill_numbers(
    first: np.uint64,
    numbers: NDArray[np.int64],
    i: np.int64,
    size: np.int64,
    draw_numbers: NDArray[np.uint64],
    out_pos: np.uint64,
) -> None:
    """Write the numbers of draws i .. i + size - 1: given ones, or counted from ``first``."""
    if numbers.shape[0] > 0:
        for j in range(np.uint64(size)):
            draw_numbers[out_pos + j] = np.uint64(numbers[np.uint64(i) + j])
    else:
        for j in range(np.uint64(size)):
            draw_numbers[out_pos + j] = first + np.uint64(i) + j


@inlined
def _hash(
    key: np.uint64,
    draw_numbers: NDArray[np.uint64],
    begin: np.uint64,
    size: np.int64,
    words: NDArray[np.uint64],
) -> None:
    """Write the random words of some draws."""
    for j in range(np.uint64(size)):
        words[j] = word(key, draw_numbers[begin + j])


@inlined
def _choose_entries(
    words: NDArray[np.uint64],
    size: np.int64,
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint32],
    chosen_entries: NDArray[np.uint64],
    out_pos: np.uint64,
) -> None:
    """Write the entries that words select."""
    k, unresolved = np.uint64(alias_threshold.shape[0]), np.uint64(0)
    for j in range(np.uint64(size)):
        column, coin = bounded_short(words[j], k), words[j] * k
        chosen_entries[out_pos + j] = resolve_by_high_bits(alias_threshold[column], column, coin)
        unresolved |= np.uint64(needs_low_bits(alias_threshold[column], coin))
    if unresolved > _ZERO:
        if CHECK_BOUNDS:
            register(alias_threshold)
            register(alias_fraction)
        for j in range(np.uint64(size)):
            chosen_entries[out_pos + j] = resolve_column(
                np.uint64(alias_threshold.ctypes.data),
                np.uint64(alias_fraction.ctypes.data),
                bounded(words[j], k),
                words[j] * k,
            )


@inlined
def _keep_local(
    local: NDArray[np.int64],
    block_entries: NDArray[np.uint64],
    block_numbers: NDArray[np.uint64],
    size: np.int64,
    chosen_entries: NDArray[np.uint64],
    draw_numbers: NDArray[np.uint64],
    buffered: np.int64,
) -> np.int64:
    """Append the draws of local entries to the buffer, and return its new size.

    Each draw is written, and the position advances only for local entries. A branch on that would
    be hard to predict.
    """
    out_pos = np.uint64(buffered)
    for j in range(np.uint64(size)):
        entry = block_entries[j]
        chosen_entries[out_pos], draw_numbers[out_pos] = entry, block_numbers[j]
        out_pos += np.uint64(local[entry])
    return np.int64(out_pos)


@inlined
def _draw_columns(
    chosen_entries: NDArray[np.uint64],
    row_words: NDArray[np.uint64],
    size: np.int64,
    table: NDArray[np.int64],
    ring: NDArray[np.uint64],
    num_drawn: np.int64,
) -> None:
    """Write the columns that words select in their entries into the next slots of ``ring``.

    The first free slot is a multiple of `BLOCK`.
    """
    entries, columns, coins, addresses = ring
    sizes, threshold_addresses, shifts = table[SIZE], table[THRESHOLDS], table[SHIFT]
    first, certain_address = np.uint64(num_drawn) & _SLOT, np.uint64(_CERTAIN.ctypes.data)
    if CHECK_BOUNDS:
        register_at(certain_address, 8 * _CERTAIN.size)
    for j in range(np.uint64(size)):
        entry, w = chosen_entries[j], row_words[j]
        column = bounded_short(w, np.uint64(sizes[entry]))
        entries[first + j], columns[first + j] = entry, column
        coins[first + j] = w * np.uint64(sizes[entry])
        addresses[first + j] = (
            np.uint64(threshold_addresses[entry]) + (column << np.uint64(shifts[entry]))
            if threshold_addresses[entry] > 0
            else certain_address
        )


@kernel
def draw_rows(
    table: NDArray[np.int64],
    params: GlobalDrawParams,
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint32],
    numbers: NDArray[np.int64],
    out: NDArray[np.int64],
    out_tags: NDArray[np.int32],
) -> int:
    """Draw an entry and a row of its alias table for each draw; keep local entries.

    The kept draws stay in order.

    Parameters
    ----------
    table : ndarray of int64, shape (ENTRY_ROWS, k)
        The entries.
    params : GlobalDrawParams
    alias_threshold, alias_fraction : ndarray of uint64 and of uint32, shape (k,)
        Alias table of the entries, from `asterism_graphkit.random.partition_choice.PartShares`.
    numbers : ndarray of int64, shape (count,) or (0,)
        Numbers of the draws. If empty, they are start, start + 1 and so on.
    out : ndarray of int64, shape (count,), out
    out_tags : ndarray of int32, shape (count,) or (0,), out
        If empty, tags are not written.

    Returns
    -------
    int
        Number of local draws. The elements of ``out`` after them are undefined.

    Notes
    -----
    The column is the high half of word * size (Lemire 2019, without its rejection: joint error
    2^-64), and the coin is the low half. Memory reads overlap with the hashing of later draws: the
    column of a draw is resolved to its alias `AHEAD` draws after it was chosen, its row is read
    after as many more, and so is its id.
    """
    part_key, row_key, start, count = params
    local, tags, row_maps, ids = table[LOCAL], table[TAG], table[ROW_MAP], table[IDS]
    threshold_addresses, fraction_addresses = table[THRESHOLDS], table[FRACTIONS]
    shifts, scales, offsets = table[SHIFT], table[SCALE], table[OFFSET]
    words, block_entries, block_numbers = (
        np.empty(BLOCK, np.uint64),
        np.empty(BLOCK, np.uint64),
        np.empty(BLOCK, np.uint64),
    )
    chosen_entries, draw_numbers = np.empty(2 * BLOCK, np.uint64), np.empty(2 * BLOCK, np.uint64)
    ring = np.empty((4, _RING), np.uint64)
    entries, columns, coins, addresses = ring
    has_row_map, has_ids, all_local, want_tags = False, False, True, out_tags.shape[0] > 0
    for e in range(alias_threshold.shape[0]):
        has_row_map |= local[e] > 0 and row_maps[e] > 0
        has_ids |= local[e] > 0 and ids[e] > 0
        all_local &= local[e] > 0
    plain = not (has_row_map or has_ids or want_tags)
    i, buffered, num_drawn, num_prefetched, num_resolved, num_mapped, num_written = (
        np.int64(0),
        np.int64(0),
        np.int64(0),
        np.int64(0),
        np.int64(0),
        np.int64(0),
        np.int64(0),
    )
    while i < count or num_written < num_drawn:
        while buffered < BLOCK and i < count:
            size = min(np.int64(BLOCK), count - i)
            if all_local:
                _fill_numbers(start, numbers, i, size, draw_numbers, np.uint64(buffered))
                _hash(part_key, draw_numbers, np.uint64(buffered), size, words)
                _choose_entries(
                    words,
                    size,
                    alias_threshold,
                    alias_fraction,
                    chosen_entries,
                    np.uint64(buffered),
                )
                buffered += size
            else:
                _fill_numbers(start, numbers, i, size, block_numbers, _ZERO)
                _hash(part_key, block_numbers, _ZERO, size, words)
                _choose_entries(words, size, alias_threshold, alias_fraction, block_entries, _ZERO)
                buffered = _keep_local(
                    local,
                    block_entries,
                    block_numbers,
                    size,
                    chosen_entries,
                    draw_numbers,
                    buffered,
                )
            i += size
        size = min(buffered, np.int64(BLOCK))
        _hash(row_key, draw_numbers, _ZERO, size, words)
        _draw_columns(chosen_entries, words, size, table, ring, num_drawn)
        for j in range(np.uint64(size), np.uint64(buffered)):
            chosen_entries[j - np.uint64(size)], draw_numbers[j - np.uint64(size)] = (
                chosen_entries[j],
                draw_numbers[j],
            )
        num_drawn, buffered = num_drawn + size, buffered - size
        is_last = i >= count and buffered == 0
        while num_prefetched < num_drawn or (is_last and num_written < num_drawn):
            end = min(num_prefetched + STEP, num_drawn)
            for j in range(np.uint64(num_prefetched), np.uint64(end)):
                prefetch_at(addresses[j & _SLOT])
            num_prefetched, lag = (
                end,
                np.int64(0) if is_last and end == num_drawn else np.int64(AHEAD),
            )
            end = max(num_resolved, num_prefetched - lag)
            for j in range(np.uint64(num_resolved), np.uint64(end)):
                entry, column, coin, alias_entry = (
                    entries[j & _SLOT],
                    columns[j & _SLOT],
                    coins[j & _SLOT],
                    u64_at(addresses[j & _SLOT], _ZERO),
                )
                row = resolve_by_high_bits(alias_entry, column, coin)
                if needs_low_bits(alias_entry, coin):
                    row = (
                        resolve_column_from_entry(
                            alias_entry, np.uint64(fraction_addresses[entry]), column, coin
                        )
                        if threshold_addresses[entry] > 0
                        else column
                    )
                if plain:
                    out[j] = np.int64(row) * scales[entry] + offsets[entry]
                    continue
                out[j] = np.int64(row)
                if has_row_map:
                    prefetch_at(np.uint64(row_maps[entry]) + (row << _FOURS))
                elif has_ids:
                    prefetch_at(np.uint64(ids[entry]) + (row << np.uint64(shifts[entry])))
            num_resolved = end
            end = max(num_mapped, num_resolved - lag) if has_row_map else num_resolved
            for j in range(np.uint64(num_mapped if has_row_map else end), np.uint64(end)):
                entry = entries[j & _SLOT]
                if row_maps[entry] > 0:
                    out[j] = np.int64(u32_at(np.uint64(row_maps[entry]), out[j]))
                if has_ids:
                    prefetch_at(
                        np.uint64(ids[entry]) + (np.uint64(out[j]) << np.uint64(shifts[entry]))
                    )
            num_mapped = end
            end = max(num_written, num_mapped - lag) if has_ids else num_mapped
            for j in range(np.uint64(end if plain else num_written), np.uint64(end)):
                entry, row = entries[j & _SLOT], np.uint64(out[j])
                entry_has_ids = has_ids and ids[entry] > 0
                out[j] = (
                    i64_at(np.uint64(ids[entry]) + (row << np.uint64(shifts[entry])), _ZERO)
                    if entry_has_ids
                    else out[j] * scales[entry] + offsets[entry]
                )
                if want_tags:
                    out_tags[j] = np.int32(tags[entry])
            num_written = end
    return num_drawn  # type: ignore[return-value]  # an int64 here and an int to the caller


@kernel
def read_ids(
    entries: NDArray[np.int32],
    rows: NDArray[np.int64],
    columns: NDArray[np.uint64],
    scales: NDArray[np.int64],
    offsets: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Read an int64 value of each row: ``out[i]`` for row ``rows[i]`` of entry ``entries[i]``.

    Parameters
    ----------
    entries, rows : ndarray of int32 and of int64, shape (n,)
    columns : ndarray of uint64, shape (k,)
        Address of each entry's int64[rows]; 0: the value is row * scale + offset.
    scales, offsets : ndarray of int64, shape (k,)
    out : ndarray of int64, shape (n,), out
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
def read_source_rows(
    entries: NDArray[np.int32],
    slots: NDArray[np.int64],
    columns: NDArray[np.uint64],
    out: NDArray[np.int64],
) -> None:
    """Read the row of each edge's source.

    Arrays as in `read_ids`; ``columns`` has addresses of uint32[slots].
    """
    n = slots.shape[0]
    for i in range(n):
        if i + AHEAD < n:
            prefetch_at(columns[entries[i + AHEAD]] + (np.uint64(slots[i + AHEAD]) << _FOURS))
        out[i] = np.int64(u32_at(columns[entries[i]], slots[i]))


@kernel
def read_weights(
    entries: NDArray[np.int32],
    rows: NDArray[np.int64],
    columns: NDArray[np.uint64],
    out: NDArray[np.float32],
) -> None:
    """Read the weight of each row.

    Arrays as in `read_ids`; ``columns`` has addresses of float32[rows], and 0 means that all
    weights are 1.
    """
    n = rows.shape[0]
    for i in range(n):
        if i + AHEAD < n:
            prefetch_at(columns[entries[i + AHEAD]] + (np.uint64(rows[i + AHEAD]) << _FOURS))
        out[i] = (
            f32_at(columns[entries[i]], rows[i]) if columns[entries[i]] > 0 else np.float32(1.0)
        )
