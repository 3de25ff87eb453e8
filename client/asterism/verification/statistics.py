"""The statistics of a self-test: G tests, what they can see, and a verdict over many of them.

Chi-square tails come from the regularised incomplete gamma function, made here of ``math.lgamma``:
a trainer's client has NumPy only, and SciPy would be forty times its weight for this one function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

MIN_EXPECTED = 16.0
"""Of a cell: below it the tail of G is not that of chi-square; cells are taken together until they
have it.
"""
_TINY, _PRECISION, _MAX_STEPS = 1e-300, 1e-15, 200_000


def survival(statistic: float, freedom: float) -> float:
    """The chance of a chi-square above ``statistic``.

    Parameters
    ----------
    statistic : float
        0 or more.
    freedom : float
        Degrees of freedom, above 0.

    Notes
    -----
    Q(a, x) with a = freedom / 2 and x = statistic / 2: by the series of P where x < a + 1, by
    Legendre's continued fraction elsewhere (Abramowitz & Stegun 1964, 6.5.29 and 6.5.31; evaluated
    after Lentz)."""
    a, x = freedom / 2, statistic / 2
    if x <= 0:
        return 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1.0 / a
        for step in range(1, _MAX_STEPS):
            term *= x / (a + step)
            total += term
            if term < total * _PRECISION:
                break
        return min(1.0, max(0.0, 1.0 - total * scale))
    b = x + 1 - a
    c, d = 1 / _TINY, 1 / b
    fraction = d
    for step in range(1, _MAX_STEPS):
        numerator = -step * (step - a)
        b += 2
        d = numerator * d + b
        d = 1 / (d if abs(d) > _TINY else _TINY)
        c = b + numerator / c
        c = c if abs(c) > _TINY else _TINY
        fraction *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return min(1.0, fraction * scale)


def critical_value(alpha: float, freedom: float) -> float:
    """The chi-square that is exceeded with chance ``alpha``."""
    low, high = 0.0, freedom + 10.0
    while survival(high, freedom) > alpha:
        low, high = high, 2 * high
    for _ in range(100):
        midpoint = (low + high) / 2
        low, high = (midpoint, high) if survival(midpoint, freedom) > alpha else (low, midpoint)
    return high


def power_of(noncentrality: float, bound: float, freedom: float) -> float:
    """The chance of a noncentral chi-square above ``bound``: central ones, weighted by a Poisson
    law of half the noncentrality.
    """
    mean, x = noncentrality / 2, bound / 2
    if mean <= 0:
        return survival(bound, freedom)
    first = max(0, int(mean - 12 * math.sqrt(mean) - 12))
    tail = survival(bound, freedom + 2 * first)
    total = 0.0
    for j in range(first, int(mean + 12 * math.sqrt(mean) + 24)):
        total += math.exp(j * math.log(mean) - mean - math.lgamma(j + 1)) * tail
        a = freedom / 2 + j
        tail = min(
            1.0, tail + math.exp(a * math.log(x) - x - math.lgamma(a + 1))
        )  # Q(a + 1, x) from Q(a, x)
    return min(1.0, total)


def detectable_bias(draws: int, freedom: int, alpha: float, power: float) -> float:
    """The total variation from which on a bias is seen with chance ``power`` by a test at
    ``alpha``.

    Notes
    -----
    A bias d of shares p has the noncentrality n sum(d^2 / p), and by Cauchy-Schwarz sum(d^2 / p) >=
    (sum |d|)^2 = 4 TV^2: whatever its form, one of total variation TV has 4 n TV^2 at least. Above
    1: no bias is sure to be seen."""
    bound = critical_value(alpha, freedom)
    low, high = 0.0, 16.0
    while power_of(high, bound, freedom) < power:
        low, high = high, 2 * high
    for _ in range(50):
        midpoint = (low + high) / 2
        low, high = (
            (midpoint, high) if power_of(midpoint, bound, freedom) < power else (low, midpoint)
        )
    return math.sqrt(high / draws) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class GTestResult:
    """One G test."""

    draws: int
    cells: int
    statistic: float
    """G, corrected."""
    freedom: int
    p: float
    impossible: int
    """Draws in cells of share 0."""
    worst: int
    """The input cell with the largest deviation, in standard deviations; -1 where there is none."""
    observed: float
    expected: float
    """Of the worst one."""


def g_test(observed: F64, shares: F64, strata: NDArray[np.int64] | None = None) -> GTestResult:
    """Hold counts against the shares that they should have.

    Parameters
    ----------
    observed : float64[k]
        Counts per cell.
    shares : float64[k]
        What the counts are in proportion to; a share of 0 is a cell that must stay empty.
    strata : int64[k], optional
        Ascending: cells of one stratum share its draws among themselves. Strata are independent and
        their G add up.

    Returns
    -------
    GTestResult
        p is 0 where something impossible was drawn, 1 where there is nothing to compare.

    Notes
    -----
    G = 2 sum o ln(o / e) (Sokal & Rohlf 1981), divided by Williams' q = 1 + sum over strata of (sum
    1/e - 1/n) / (6 freedom) (Williams 1976, *Biometrika* 63, p. 33), which gives it the mean of its
    chi-square also where cells are small. Neighboring cells of a stratum are taken together until
    each expects `MIN_EXPECTED`."""
    strata = np.zeros(len(shares), np.int64) if strata is None else strata
    has_mass = shares > 0
    impossible = int(observed[~has_mass].sum())
    rows = np.flatnonzero(has_mass)
    seen, stratum = observed[rows], strata[rows]
    size = int(stratum.max(initial=-1)) + 1
    draws, mass = np.bincount(stratum, seen, size), np.bincount(stratum, shares[rows], size)
    expected = shares[rows] * draws[stratum] / mass[stratum]
    cells = _merge_cells(expected, stratum)
    o, e = np.bincount(cells, seen), np.bincount(cells, expected)
    cell_stratum = np.zeros(len(o), np.int64)
    cell_stratum[cells] = stratum
    is_tested = (np.bincount(cell_stratum, minlength=size) > 1) & (draws > 0)
    tested_cells = is_tested[cell_stratum] if len(o) else np.zeros(0, bool)
    freedom = int(tested_cells.sum() - is_tested.sum())
    total = int(observed.sum())
    if freedom <= 0:
        return GTestResult(
            draws=total,
            cells=max(int(has_mass.any()), 0),
            statistic=0.0,
            freedom=0,
            p=0.0 if impossible else 1.0,
            impossible=impossible,
            worst=-1,
            observed=0.0,
            expected=0.0,
        )
    o, e = o[tested_cells], e[tested_cells]
    g = 2 * float(np.sum(np.where(o > 0, o * np.log(np.where(o > 0, o, 1.0) / e), 0.0)))
    g /= 1 + float(np.sum(1 / e) - np.sum(1 / draws[is_tested])) / (6 * freedom)
    deviation = np.abs(o - e) / np.sqrt(e)
    worst = int(np.argmax(deviation))
    return GTestResult(
        draws=total,
        cells=len(o),
        statistic=max(g, 0.0),
        freedom=freedom,
        p=0.0 if impossible else survival(max(g, 0.0), freedom),
        impossible=impossible,
        worst=int(rows[np.flatnonzero(cells == np.flatnonzero(tested_cells)[worst])[0]]),
        observed=float(o[worst]),
        expected=float(e[worst]),
    )


def _merge_cells(expected: F64, strata: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[k]: the cell of each input cell. Those that expect enough stand alone; the others of a
    stratum go together in runs.

    Notes
    -----
    A run holds the small cells that begin within 2 `MIN_EXPECTED` of each other, counted over
    small cells; the last one also what is left over. As each is below `MIN_EXPECTED`, every run
    is above it. Too little for a run joins a cell that stands alone."""
    is_small = expected < MIN_EXPECTED
    cumulative = np.cumsum(np.where(is_small, expected, 0.0))
    size = int(strata.max(initial=-1)) + 1
    total = np.bincount(strata[is_small], expected[is_small], size)
    before = np.concatenate(
        [[0.0], np.cumsum(total)[:-1]]
    )  # strata ascend, so what is before one is what is before its first cell
    runs = np.maximum(total // (2 * MIN_EXPECTED), 1).astype(np.int64)
    run = np.clip(
        ((cumulative - expected - before[strata]) // (2 * MIN_EXPECTED)).astype(np.int64),
        0,
        runs[strata] - 1,
    )
    first_run = np.concatenate([[0], np.cumsum(runs)[:-1]]).astype(np.int64)
    cells = np.where(is_small, first_run[strata] + run, int(runs.sum()) + np.arange(len(expected)))
    single_cell = np.full(size, -1, np.int64)
    large_cells = np.flatnonzero(~is_small)
    single_cell[strata[large_cells]] = cells[large_cells]
    joins_single = is_small & (total[strata] < MIN_EXPECTED) & (single_cell[strata] >= 0)
    cells[joins_single] = single_cell[strata[joins_single]]
    merged: NDArray[np.int64] = np.unique(cells, return_inverse=True)[1]
    return merged


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p-values that keep the chance of any false alarm among all tests at the level they
    are held against.

    Notes
    -----
    Holm 1979, *A simple sequentially rejective multiple test procedure*, Scand. J. Statist. 6, p.
    65: the i-th smallest of m is multiplied by m - i, and none is smaller than the one before. It
    asks nothing of how the tests depend on each other."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted = [1.0] * len(p)
    running_max = 0.0
    for rank, i in enumerate(order):
        running_max = max(running_max, min(1.0, p[i] * (len(p) - rank)))
        adjusted[i] = running_max
    return adjusted
