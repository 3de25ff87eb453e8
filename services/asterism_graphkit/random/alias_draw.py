"""Decide for a draw from an alias table between the column and its alias."""

from __future__ import annotations

import numpy as np

from asterism_graphkit.compile.jit import inlined, u32_at, u64_at

_S32, _LOW, _SIGN = np.uint64(32), np.uint64(0xFFFFFFFF), np.int64(63)


@inlined
def resolve_column(
    threshold_address: np.uint64, fraction_address: np.uint64, column: np.uint64, coin: np.uint64
) -> np.uint64:
    """Return the column of a draw that fell on ``column`` with ``coin``.

    The table is that of `asterism_graphkit.random.alias_build.pack_thresholds`, given by two
    addresses.
    """
    return resolve_column_from_entry(
        u64_at(threshold_address, column), fraction_address, column, coin
    )


@inlined
def resolve_by_high_bits(entry: np.uint64, column: np.uint64, coin: np.uint64) -> np.uint64:
    """Return the column of a draw by the upper half of its coin only.

    ``entry`` is the column's ``alias_threshold``. The result is wrong if `needs_low_bits`.
    """
    alias_column = entry & _LOW
    # All ones if the coin is below the threshold. A branch would often be mispredicted, which costs
    # as much as several draws.
    keep_mask = np.uint64((np.int64(coin >> _S32) - np.int64(entry >> _S32)) >> _SIGN)
    return alias_column ^ ((column ^ alias_column) & keep_mask)


@inlined
def needs_low_bits(entry: np.uint64, coin: np.uint64) -> bool:
    """Return whether the lower half of the coin decides: about once in 2^32 draws."""
    return bool(coin >> _S32 == entry >> _S32)


@inlined
def resolve_column_from_entry(
    entry: np.uint64, fraction_address: np.uint64, column: np.uint64, coin: np.uint64
) -> np.uint64:
    """Return the result of `resolve_column` for an ``alias_threshold`` that was already read."""
    selected = resolve_by_high_bits(entry, column, coin)
    if needs_low_bits(entry, coin) and (coin & _LOW) < np.uint64(u32_at(fraction_address, column)):
        selected = column
    return selected
