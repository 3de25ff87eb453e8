"""The comparison that every draw from an alias table comes down to: does it keep its column, or go to the alias?"""

from __future__ import annotations

import numpy as np

from graphkit.jit import inlined, u32_at, u64_at

_S32, _LOW, _SIGN = np.uint64(32), np.uint64(0xFFFFFFFF), np.int64(63)


@inlined
def accepted(hot: np.uint64, cold: np.uint64, column: np.uint64, coin: np.uint64) -> np.uint64:
    """The column that a draw ends at which fell on ``column`` with ``coin``, in the table of
    `graphkit.alias.thresholds` at two addresses."""
    return accepted_of(u64_at(hot, column), cold, column, coin)


@inlined
def led_of(row: np.uint64, column: np.uint64, coin: np.uint64) -> np.uint64:
    """Where the upper half of a coin leads a draw, the column's ``hot`` being ``row``: wrong where it is `undecided`."""
    led = row & _LOW
    # All ones where the coin is below the threshold. A branch would be mispredicted every other time, at the price of several draws.
    kept = np.uint64((np.int64(coin >> _S32) - np.int64(row >> _S32)) >> _SIGN)
    return led ^ ((column ^ led) & kept)


@inlined
def undecided(row: np.uint64, coin: np.uint64) -> bool:
    """Whether the lower half has to be looked at: once in 2^32 draws."""
    return bool(coin >> _S32 == row >> _S32)


@inlined
def accepted_of(row: np.uint64, cold: np.uint64, column: np.uint64, coin: np.uint64) -> np.uint64:
    """As `accepted`, where the column's ``hot`` has been read."""
    taken = led_of(row, column, coin)
    if undecided(row, coin) and (coin & _LOW) < np.uint64(u32_at(cold, column)):
        taken = column
    return taken
