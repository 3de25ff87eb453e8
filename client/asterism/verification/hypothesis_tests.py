"""Statistics of a self-test: G tests, their power, and correction for multiple tests.

Chi-square tails use the regularized incomplete gamma function, implemented on ``math.lgamma``. A
trainer's client has only NumPy, and SciPy would be forty times its size for this one function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

MIN_EXPECTED = 16.0
"""Smallest expected count of a cell.

With less, the tail of G differs from that of chi-square; smaller cells are merged.
"""
_TINY, _PRECISION, _MAX_STEPS = 1e-300, 1e-15, 200_000


def survival(statistic: float, freedom: float) -> float:
    """Return the probability that a chi-square variable exceeds ``statistic``.

    Parameters
    ----------
    statistic : float
        Statistic, 0 or more.
    freedom : float
        Degrees of freedom, above 0.

    Returns
    -------
    float
        Tail probability.

    Notes
    -----
    Q(a, x) with a = freedom / 2 and x = statistic / 2: by the series of P for x < a + 1, and by
    Legendre's continued fraction elsewhere (Abramowitz & Stegun 1964, 6.5.29 and 6.5.31; evaluated
    by Lentz's method).
    """
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
    """Return the chi-square value that is exceeded with a given probability.

    Parameters
    ----------
    alpha : float
        Probability.
    freedom : float
        Degrees of freedom.

    Returns
    -------
    float
        Critical value, by bisection.
    """
    low, high = 0.0, freedom + 10.0
    while survival(high, freedom) > alpha:
        low, high = high, 2 * high
    for _ in range(100):
        midpoint = (low + high) / 2
        low, high = (midpoint, high) if survival(midpoint, freedom) > alpha else (low, midpoint)
    return high


def power_of(noncentrality: float, bound: float, freedom: float) -> float:
    """Return the probability that a noncentral chi-square variable exceeds ``bound``.

    It is the mean over central ones, weighted by a Poisson distribution with half the noncentrality
    as mean.

    Parameters
    ----------
    noncentrality : float
        Noncentrality, 0 or more.
    bound : float
        Bound.
    freedom : float
        Degrees of freedom.

    Returns
    -------
    float
        Tail probability.
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
        )  # Recurrence from Q(a, x) to Q(a + 1, x).
    return min(1.0, total)


def detectable_bias(draws: int, freedom: int, alpha: float, power: float) -> float:
    """Return the total variation from which a test detects any bias with ``power``.

    Parameters
    ----------
    draws : int
        Number of draws.
    freedom : int
        Degrees of freedom.
    alpha : float
        Level of the test.
    power : float
        Required probability of detection.

    Returns
    -------
    float
        Total variation distance; above 1 if no bias is certain to be detected.

    Notes
    -----
    A bias d of shares p has the noncentrality n sum(d^2 / p). By Cauchy-Schwarz, sum(d^2 / p) >=
    (sum |d|)^2 = 4 TV^2, so a bias of total variation TV has at least 4 n TV^2, whatever its form.
    """
    return math.sqrt(_detectable_noncentrality(freedom, alpha, power) / draws) / 2


@lru_cache(maxsize=4096)
def _detectable_noncentrality(freedom: int, alpha: float, power: float) -> float:
    """Return the noncentrality that a test detects with ``power``, by bisection.

    It takes some ten milliseconds, and the subjects of a self-test have few different sizes.
    """
    bound = critical_value(alpha, freedom)
    low, high = 0.0, 16.0
    while power_of(high, bound, freedom) < power:
        low, high = high, 2 * high
    for _ in range(50):
        midpoint = (low + high) / 2
        low, high = (
            (midpoint, high) if power_of(midpoint, bound, freedom) < power else (low, midpoint)
        )
    return high


@dataclass(frozen=True, slots=True, kw_only=True)
class GTestResult:
    """Result of a G test."""

    draws: int
    cells: int
    statistic: float
    """G with Williams' correction."""
    freedom: int
    p: float
    impossible: int
    """Number of draws in cells of share 0."""
    worst: int
    """Input cell with the largest deviation in standard deviations; -1 if there is none."""
    observed: float
    expected: float
    """Expected count of the worst cell."""


def g_test(observed: F64, shares: F64, strata: NDArray[np.int64] | None = None) -> GTestResult:
    """Compare counts with the shares that they should follow, by a G test.

    Parameters
    ----------
    observed : ndarray of float64, shape (k,)
        Counts per cell.
    shares : ndarray of float64, shape (k,)
        Expected proportions of the counts; a cell of share 0 must stay empty.
    strata : ndarray of int64, shape (k,), optional
        Stratum of each cell, ascending. Each stratum has its own number of draws; strata are
        independent, and their G statistics add up.

    Returns
    -------
    GTestResult
        p is 0 if something impossible was sampled, and 1 if there is nothing to compare.

    Notes
    -----
    G = 2 sum o ln(o / e) (Sokal & Rohlf 1981), divided by Williams' q = 1 + sum over strata of (sum
    1/e - 1/n) / (6 freedom) (Williams 1976, *Biometrika* 63, p. 33), so that its mean is that of
    its chi-square even for small cells. Neighboring cells of a stratum are merged until each
    expects `MIN_EXPECTED`.
    """
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
    """Return the merged cell of each input cell, ndarray of int64, shape (k,).

    Cells that expect enough are kept; the small cells of a stratum are merged in runs.

    Notes
    -----
    A run consists of the small cells that begin within 2 `MIN_EXPECTED` of each other, counted over
    small cells; the last run also takes the remainder. Each cell is below `MIN_EXPECTED`, so every
    run is above it. A remainder too small for a run joins a kept cell.
    """
    is_small = expected < MIN_EXPECTED
    cumulative = np.cumsum(np.where(is_small, expected, 0.0))
    size = int(strata.max(initial=-1)) + 1
    total = np.bincount(strata[is_small], expected[is_small], size)
    before = np.concatenate(
        [[0.0], np.cumsum(total)[:-1]]
    )  # Strata are ascending, so the sum before a stratum is the sum before its first cell.
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
    """Return p-values adjusted for multiple tests by Holm's method.

    Comparing them with a level bounds the probability of any false alarm by that level.

    Parameters
    ----------
    p : sequence of float
        p-values.

    Returns
    -------
    list of float
        Adjusted p-values, in the same order.

    Notes
    -----
    Holm 1979, *A simple sequentially rejective multiple test procedure*, Scand. J. Statist. 6, p.
    65: the i-th smallest of m is multiplied by m - i, and made at least as large as the one before.
    The tests may depend on each other in any way.
    """
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted = [1.0] * len(p)
    running_max = 0.0
    for rank, i in enumerate(order):
        running_max = max(running_max, min(1.0, p[i] * (len(p) - rank)))
        adjusted[i] = running_max
    return adjusted
