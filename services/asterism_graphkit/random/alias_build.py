"""Build alias tables by sweeping, and compute the exact distribution a table implies.

The sweep is that of Hübschle-Schneider & Sanders 2019 ("Parallel weighted random sampling", section
4.1): Vose's construction with two forward cursors instead of two stacks, so that it also runs over
files. The residual is kept with compensation. `sweep` is that loop over blocks of two streams with
an explicit state. `build` runs the same arithmetic over an array, with the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array, inlined, kernel
from asterism_proto.errors import Internal

SUM_BLOCK = 65536
"""Values per block of a compensated sum.

Part of the sampling contract: changing it changes results for a given seed.
"""
LEFTOVER_TOLERANCE = 1e-12
"""Maximum shortfall per column of the columns that are left over after a sweep."""

_TWO64 = 18446744073709551616.0
_S32, _LOW, _HIGH = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFF00000000)
_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def _add(high: float, low: float, x: float) -> tuple[float, float]:
    """Return (high, low) + x as an unevaluated pair with the rounded sum as its first number.

    Knuth's TwoSum, applied twice.
    """
    s = high + x
    t = s - high
    e = (high - (s - t)) + (x - t)
    low = low + e
    high = s + low
    return high, low - (high - s)


@inlined
def range_sum(weights: NDArray[Any], start: int, stop: int) -> float:
    """Return Neumaier's sum of the Neumaier sums of blocks of ``SUM_BLOCK`` values."""
    total = 0.0
    total_error = 0.0
    for first in range(start, stop, SUM_BLOCK):
        s = 0.0
        error = 0.0
        for i in range(first, min(first + SUM_BLOCK, stop)):
            x: float = np.float64(weights[i])
            t: float = s + x
            # Weights are not negative: the larger number also has the larger magnitude.
            error += (s - t) + x if s >= x else (x - t) + s
            s = t
        block = s + error
        new_total = total + block
        total_error += (
            (total - new_total) + block if total >= block else (block - new_total) + total
        )
        total = new_total
    return total + total_error


@kernel
def _sum(weights: NDArray[np.float64]) -> float:
    return range_sum(weights, 0, weights.shape[0])


def neumaier_sum(weights: NDArray[Any]) -> float:
    """Return the float64 sum of non-negative weights.

    It is Neumaier's sum over blocks of ``SUM_BLOCK`` values, then over the block sums. A writer
    that reads its weights block by block keeps ``neumaier_sum(block)`` of every ``SUM_BLOCK``
    values in order. ``neumaier_sum`` of these (of at most ``SUM_BLOCK`` of them) has the same bits.
    """
    return float(_sum(as_kernel_array(np.asarray(weights, np.float64))))


@kernel
def sweep(
    light_p: NDArray[np.float64],
    light_alias: NDArray[np.uint32],
    heavy_row: NDArray[np.uint32],
    heavy_p: NDArray[np.float64],
    closed_row: NDArray[np.uint32],
    closed_prob: NDArray[np.float64],
    closed_alias: NDArray[np.uint32],
    cursor: NDArray[np.int64],
    residual: NDArray[np.float64],
) -> int:
    """Sweep one block of light and one block of heavy columns as far as possible; resumable.

    Each light column gets the open heavy column as its alias. Once the residual of the open column
    is below 1, that column is closed with the next heavy column as its alias. The next heavy column
    then becomes the open one.

    Parameters
    ----------
    light_p : float64[a]
        p = w * n / W < 1 of the light columns, ascending by column.
    light_alias : uint32[a], out
        Aliases of the swept light columns. Their acceptance probability is p itself.
    heavy_row, heavy_p : uint32[b], float64[b]
        Column and p >= 1 of the heavy columns, ascending by column.
    closed_row, closed_prob, closed_alias : uint32[b + 1], float64[b + 1], uint32[b + 1], out
        Heavy columns that this call finished.
    cursor : int64[3], inout
        Number of light columns of this block that are swept, number of heavy columns of this block
        that are used, and the open column or -1. Start with (0, 0, -1), and reset a cursor to 0
        when its block is refilled. A checkpoint needs only ``cursor`` and ``residual``.
    residual : float64[2], inout
        Residual of the open column, the sum of the two numbers.

    Returns
    -------
    int
        Number of columns in ``closed_*``. The sweep stops if ``cursor[0] == a`` (it needs a light
        column) or ``cursor[1] == b`` (it needs a heavy one): refill that block and call again. If
        that stream is at its end, the open column and the remaining heavy columns get probability 1
        and are their own aliases. Remaining light columns get the open column as alias, or
        themselves if there is none.
    """
    closed = 0
    i, j, open_row = cursor[0], cursor[1], cursor[2]
    high, low = residual[0], residual[1]
    while True:
        if open_row < 0:
            if j == heavy_p.shape[0]:
                break
            open_row, high, low = np.int64(heavy_row[j]), heavy_p[j], 0.0
            j += 1
        elif high > 1.0 or (high == 1.0 and low >= 0.0):
            if i == light_p.shape[0]:
                break
            light_alias[i] = open_row
            high, low = _add(high, low, light_p[i])
            high, low = _add(high, low, -1.0)
            i += 1
        else:
            if j == heavy_p.shape[0]:
                break
            closed_row[closed] = open_row
            closed_prob[closed] = max(high, 0.0)
            closed_alias[closed] = heavy_row[j]
            closed += 1
            open_row = np.int64(heavy_row[j])
            high, low = _add(high, low, heavy_p[j])
            high, low = _add(high, low, -1.0)
            j += 1
    cursor[0], cursor[1], cursor[2] = i, j, open_row
    residual[0], residual[1] = high, low
    return closed


@inlined
def _sweep_row(
    p: NDArray[np.float64], prob: NDArray[np.float64], alias: NDArray[np.uint32]
) -> float:
    """Sweep all of ``p`` as `sweep` does, and return the shortfall of the leftover columns.

    Two cursors find the light and the heavy columns.
    """
    n = p.shape[0]
    shortfall = 0.0
    i = 0
    j = 0
    while i < n and p[i] >= 1.0:
        i += 1
    while j < n and not p[j] >= 1.0:
        j += 1
    open_row = -1
    high = 0.0
    low = 0.0
    if j < n:
        open_row, high = j, p[j]
        j += 1
        while j < n and not p[j] >= 1.0:
            j += 1
    while open_row >= 0:
        if high > 1.0 or (high == 1.0 and low >= 0.0):
            if i == n:
                break
            prob[i] = p[i]
            alias[i] = open_row
            high, low = _add(high, low, p[i])
            high, low = _add(high, low, -1.0)
            i += 1
            while i < n and p[i] >= 1.0:
                i += 1
        else:
            if j == n:
                shortfall += 1.0 - high
                break
            prob[open_row] = max(high, 0.0)
            alias[open_row] = j
            open_row = j
            high, low = _add(high, low, p[j])
            high, low = _add(high, low, -1.0)
            j += 1
            while j < n and not p[j] >= 1.0:
                j += 1
    if open_row >= 0:
        prob[open_row] = 1.0
        alias[open_row] = open_row
    while j < n:
        if p[j] >= 1.0:
            prob[j] = 1.0
            alias[j] = j
        j += 1
    while i < n:
        if not p[i] >= 1.0:
            prob[i] = p[i]
            alias[i] = open_row if open_row >= 0 else i
            shortfall += 1.0 - p[i]
        i += 1
    return shortfall


@kernel
def _build(
    weights: NDArray[np.float64], total: float, prob: NDArray[np.float64], alias: NDArray[np.uint32]
) -> float:
    n = weights.shape[0]
    p = np.empty(n, np.float64)
    for i in range(n):
        p[i] = weights[i] * n / total if total > 0.0 else 0.0
    return _sweep_row(p, prob, alias)


def build(weights: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.uint32]]:
    """Build the alias table of ``weights``.

    Parameters
    ----------
    weights : float32[n] or float64[n]
        Finite, >= 0. If all are 0, every column has probability 0 and is its own alias, and the
        table must not be sampled.

    Returns
    -------
    prob : float64[n]
        Acceptance probability of each column; 0 for a weight of 0.
    alias : uint32[n]
        Column that is taken if a column is not accepted; it has a positive weight.

    Raises
    ------
    Internal
        If the shortfall of leftover columns exceeds ``LEFTOVER_TOLERANCE`` per column. Weights that
        are finite and >= 0 cannot cause this.
    """
    values = as_kernel_array(np.asarray(weights, np.float64))
    prob = np.empty(values.size, np.float64)
    alias = np.empty(values.size, np.uint32)
    total = neumaier_sum(values)
    shortfall = float(_build(values, total, prob, alias))
    if total > 0 and not shortfall <= LEFTOVER_TOLERANCE * values.size:
        raise Internal(
            f"alias table of {values.size} columns: the leftovers are short of {shortfall}; "
            "are all weights finite and >= 0?"
        )
    return prob, alias


@inlined
def _threshold(prob: float) -> np.uint64:
    """Return round(prob * 2^64), or 2^64 - 1 for a certain column, which is its own alias."""
    scaled = np.rint(prob * _TWO64)
    return _FULL if scaled >= _TWO64 else np.uint64(scaled)


@kernel
def _pack_thresholds(
    prob: NDArray[np.float64],
    alias: NDArray[np.uint32],
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint32],
) -> None:
    for i in range(prob.shape[0]):
        t = _threshold(prob[i])
        target = np.uint64(i) if prob[i] >= 1.0 else np.uint64(alias[i])
        alias_threshold[i] = (t & _HIGH) | target
        alias_fraction[i] = np.uint32(t & _LOW)


def pack_thresholds(
    prob: NDArray[np.float64], alias: NDArray[np.uint32]
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Pack a table for sampling: T = round(prob * 2^64) is split into two halves.

    The high half is stored with the alias, the low half separately.

    Parameters
    ----------
    prob, alias : float64[n], uint32[n]
        Result of `build`.

    Returns
    -------
    alias_threshold : uint64[n]
        (T >> 32) << 32 | alias; a certain column is its own alias.
    alias_fraction : uint32[n]
        T & 0xFFFFFFFF.
    """
    alias_threshold, alias_fraction = np.empty(prob.size, np.uint64), np.empty(prob.size, np.uint32)
    _pack_thresholds(as_kernel_array(prob), as_kernel_array(alias), alias_threshold, alias_fraction)
    return alias_threshold, alias_fraction


@kernel
def _build_rows(
    indptr: NDArray[np.int64],
    weights: NDArray[Any],
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint32],
    sums: NDArray[np.float64],
) -> float:
    rows = indptr.shape[0] - 1
    widest = 0
    for r in range(rows):
        widest = max(widest, indptr[r + 1] - indptr[r])
    p, prob, alias = (
        np.empty(widest, np.float64),
        np.empty(widest, np.float64),
        np.empty(widest, np.uint32),
    )
    max_shortfall = 0.0
    for r in range(rows):
        start, stop = indptr[r], indptr[r + 1]
        n = stop - start
        sums[r] = range_sum(weights, start, stop)
        for k in range(n):
            p[k] = np.float64(weights[start + k]) * n / sums[r] if sums[r] > 0.0 else 0.0
        shortfall = _sweep_row(p[:n], prob[:n], alias[:n])
        if sums[r] > 0.0:
            max_shortfall = max(max_shortfall, shortfall / n)
        for k in range(n):
            t = _threshold(prob[k])
            target = np.uint64(k) if prob[k] >= 1.0 else np.uint64(alias[k])
            alias_threshold[start + k] = (t & _HIGH) | target
            alias_fraction[start + k] = np.uint32(t & _LOW)
    return max_shortfall


def build_rows(
    indptr: NDArray[np.int64], weights: NDArray[Any]
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float64]]:
    """Build an alias table for every row of a CSR matrix, with the same bits as `build`.

    Parameters
    ----------
    indptr : int64[rows + 1]
        Ascending, within ``weights``. It need not start at 0: slots outside stay undefined.
    weights : float32[slots] or float64[slots]
        Finite, >= 0.

    Returns
    -------
    alias_threshold, alias_fraction : uint64[slots], uint32[slots]
        In the format of `pack_thresholds`; aliases count from the first slot of their row.
    sums : float64[rows]
        `neumaier_sum` of each row. A row with the sum 0 must not be sampled by weight.

    Raises
    ------
    Internal
        If the shortfall of a row is too large, as in `build`.
    """
    alias_threshold, alias_fraction = (
        np.empty(weights.size, np.uint64),
        np.empty(weights.size, np.uint32),
    )
    sums = np.empty(indptr.size - 1, np.float64)
    max_shortfall = float(
        _build_rows(
            as_kernel_array(indptr), as_kernel_array(weights), alias_threshold, alias_fraction, sums
        )
    )
    if not max_shortfall <= LEFTOVER_TOLERANCE:
        raise Internal(
            f"alias rows: the leftovers of a row are short of {max_shortfall} a column; are "
            "all weights finite and >= 0?"
        )
    return alias_threshold, alias_fraction, sums


@kernel
def _row_sums(
    indptr: NDArray[np.int64], weights: NDArray[np.float32], sums: NDArray[np.float64]
) -> None:
    for r in range(indptr.shape[0] - 1):
        sums[r] = range_sum(weights, indptr[r], indptr[r + 1])


def row_sums(
    indptr: NDArray[np.int64], weights: NDArray[np.float32], sums: NDArray[np.float64]
) -> None:
    """Compute the sums of `build_rows` without its tables, allocating no memory.

    Parameters
    ----------
    indptr, weights : int64[rows + 1], float32[slots]
        Arguments of `build_rows`; ``weights`` may be memory-mapped.
    sums : float64[rows], out
    """
    _row_sums(as_kernel_array(indptr), as_kernel_array(weights), sums)
