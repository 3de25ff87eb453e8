"""LABOR sampling: one random variate per visited node, shared by the nodes of a batch.

Balin & Catalyurek 2023, *Layer-neighbor sampling: defusing neighborhood explosion in GNNs*,
NeurIPS; DGL's ``LaborSampler``. Node t has a variate r_t in (0, 1). The edge of weight A_ts from t
to an expanded node s is kept if r_t <= min(1, c_s pi_t). The factor c_s follows from the fanout:
the estimate of the mean over s's neighbors has the same variance as with k uniform draws:

    sum over t of A_ts^2 / min(1, c_s pi_t)  =  A_*s^2 / k - A_*s^2 / d_s + sum over t of A_ts^2,
        k = min(fanout, d_s)

(equation 22 of the paper, where d_s is the number of s's edges with a positive weight). With pi_t =
A_ts this is LABOR-0. One importance step sets pi_t to the largest c_s pi_t of all expanded nodes,
and solves for c_s again. The expected number of distinct nodes falls, and the variances stay the
same.

The *level* in this module is 1 / c_s: an edge is certain to be kept if pi_t >= level. Both sides of
the equation agree to rounding, while DGL's fixed-point iteration stops within 1e-4. An edge of
weight 0 counts as absent.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import STOP_CHECK_STEPS, IntLike, inlined, is_set, kernel
from asterism_graphkit.random.rng import LABOR, key_of

UNTIL_CONVERGED = -1
"""Number of importance steps that means: until the steps change little."""
_CONVERGED = 1e-4
"""Steps end if they lower the expected number of distinct nodes by less than this share.

The same value as in DGL. Part of the sampling contract: changing it changes results for a given
seed.
"""
_MOST = 1e150
"""Upper bound of an importance.

The importance of nodes that are kept with certainty grows with every step. With this bound,
squares of weights divided by it are normal numbers.
"""
_WHOLE = float(1 << 31)
"""Scale of a node's expectation in the integer sum over nodes.

Part of the sampling contract: changing it changes results for a given seed.
"""
_CHECKPOINT_NODES = 1 << 20
"""Nodes updated between two checkpoints: a few milliseconds."""
_ONE, _TWO, _THREE, _FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)

F64 = NDArray[np.float64]


@inlined
def stretch_end(begin: IntLike, size: IntLike) -> np.uint64:
    """Return the end of the block of steps between two checks of the stop flag."""
    return np.uint64(min(np.int64(begin + STOP_CHECK_STEPS), np.int64(size)))


@inlined
def level_from_weights(
    weights: NDArray[np.float32],
    degree: IntLike,
    fanout: np.int64,
    uniform: bool,
    stop: NDArray[np.int64],
) -> float:
    """Return the level of a node if the importances are the weights of its edges.

    This level depends on no other node. Without weights, all weights are 1. If ``uniform`` says so,
    the level is degree / fanout, the exact value of the solution. Without importance steps the
    equation needs fewer iterations, because the sum of A^2 / pi is the sum of A. If ``stop`` is
    set, the result is meaningless.

    ``weights`` is float32[degree] or float32[0]; ``stop`` is int64[1].
    """
    total, squares, max_weight, min_weight, positive = 0.0, 0.0, 0.0, np.inf, np.int64(0)
    if weights.shape[0] > 0:
        for begin in range(0, degree, STOP_CHECK_STEPS):
            if is_set(stop):
                return 0.0
            for e in range(np.uint64(begin), stretch_end(begin, degree)):
                weight = np.float64(weights[e])
                total += weight
                squares += weight * weight
                max_weight = max(max_weight, weight)
                positive += np.int64(weight > 0.0)
    else:
        total, squares, max_weight, positive = (
            np.float64(degree),
            np.float64(degree),
            1.0,
            np.int64(degree),
        )
    # The level if no edge is certain to be kept.
    level = total / np.float64(fanout if fanout >= 0 else max(positive, np.int64(1)))
    if uniform:
        return level
    if fanout < 0 or positive <= fanout:
        size = min(np.int64(weights.shape[0]), np.int64(degree))
        for begin in range(0, size, STOP_CHECK_STEPS):
            if is_set(stop):
                return 0.0
            for e in range(np.uint64(begin), stretch_end(begin, size)):
                if weights[e] > 0.0:
                    min_weight = min(min_weight, np.float64(weights[e]))
        min_weight = min_weight if weights.shape[0] > 0 else 1.0
        return min(level, min_weight) if positive > 0 else level
    # As in `solve_level`; the first Newton step was taken above.
    extra = total * total * (1.0 / np.float64(fanout) - 1.0 / np.float64(positive))
    level, previous_count = (extra + squares) / total, positive
    while max_weight >= level:
        squares, uncertain_sum, uncertain = 0.0, 0.0, np.int64(0)
        for begin in range(0, degree, STOP_CHECK_STEPS):
            if is_set(stop):
                return 0.0
            for e in range(np.uint64(begin), stretch_end(begin, degree)):
                weight = np.float64(weights[e])
                uncertain_weight = weight if weight < level else 0.0
                squares += uncertain_weight * uncertain_weight
                uncertain_sum += uncertain_weight
                uncertain += np.int64(uncertain_weight > 0.0)
        if uncertain == 0 or uncertain >= previous_count:
            break
        level, previous_count = (extra + squares) / uncertain_sum, uncertain
    return level


@inlined
def solve_level(
    weights: NDArray[np.float32],
    importances: F64,
    squares: F64,
    ratios: F64,
    fanout: np.int64,
    previous_level: float,
    stop: NDArray[np.int64],
) -> float:
    """Return the level of a node for the importances of its neighbors.

    Parameters
    ----------
    weights : float32[degree] or float32[0]
        Edge weights; empty if all are 1.
    importances : float64[degree], inout
        Importance of each neighbor. That of an edge of weight 0 is set to infinity, so that the
        edge is never uncertain.
    squares, ratios : float64[degree], out
        Scratch arrays.
    fanout : int64
    previous_level : float
        Level of the previous step.
    stop : int64[1]
        If it is set, the result is meaningless.
    """
    size, degree = importances.shape[0], np.int64(0)
    # The loops over edges have no dependence between iterations, so they are vectorized. The sums
    # use four accumulators, because each addition would otherwise wait for the one before.
    for begin in range(0, size, STOP_CHECK_STEPS):
        if is_set(stop):
            return previous_level
        if weights.shape[0] > 0:
            for e in range(np.uint64(begin), stretch_end(begin, size)):
                weight = np.float64(weights[e])
                squares[e] = weight * weight
                ratios[e] = weight * weight / importances[e] if weight > 0.0 else 0.0
                importances[e] = importances[e] if weight > 0.0 else np.inf
                degree += np.int64(weight > 0.0)
        else:
            for e in range(np.uint64(begin), stretch_end(begin, size)):
                squares[e], ratios[e] = 1.0, 1.0 / importances[e]
    if weights.shape[0] == 0:
        degree = np.int64(size)
    if fanout < 0 or degree <= fanout:
        # All edges are certain at every level up to this one. The previous level stays if it is low
        # enough, as in DGL: a node that keeps all its neighbors gives them a higher importance the
        # fewer it has.
        min_importance = np.inf
        for begin in range(0, size, STOP_CHECK_STEPS):
            if is_set(stop):
                return previous_level
            for e in range(np.uint64(begin), stretch_end(begin, size)):
                min_importance = min(min_importance, importances[e])
        return min(previous_level, min_importance) if degree > 0 else previous_level
    total = _total(weights, size, stop)
    square_sum, ratio_sum = _sums(importances, squares, ratios, np.inf, stop)
    # The sum over edges of A^2 max(1, level / pi) is convex in the level. Newton's steps start
    # where no edge is certain. Each step leaves fewer edges uncertain, and the last one ends at the
    # solution. The first step is taken here. A certain edge adds 0 to the sums, because a branch on
    # it would often be mispredicted.
    extra = total * total * (1.0 / np.float64(fanout) - 1.0 / np.float64(degree))
    level, previous_count = (extra + square_sum) / ratio_sum, degree
    while True:
        uncertain = np.int64(0)
        for begin in range(0, size, STOP_CHECK_STEPS):
            if is_set(stop):
                return previous_level
            for e in range(np.uint64(begin), stretch_end(begin, size)):
                uncertain += np.int64(importances[e] < level)
        if uncertain == 0 or uncertain >= previous_count:
            break
        square_sum, ratio_sum = _sums(importances, squares, ratios, level, stop)
        level, previous_count = (extra + square_sum) / ratio_sum, uncertain
    return level


@inlined
def _total(weights: NDArray[np.float32], size: IntLike, stop: NDArray[np.int64]) -> float:
    """Return the sum of weights with four accumulators; without weights all are 1."""
    if weights.shape[0] == 0:
        return np.float64(size)
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    aligned_size = size & ~np.int64(3)
    for begin in range(0, aligned_size, STOP_CHECK_STEPS):
        if is_set(stop):
            return 0.0
        for e in range(np.uint64(begin), stretch_end(begin, aligned_size), _FOUR):
            a += np.float64(weights[e])
            b += np.float64(weights[e + _ONE])
            c += np.float64(weights[e + _TWO])
            d += np.float64(weights[e + _THREE])
    for e in range(aligned_size, size):
        a += np.float64(weights[e])
    return (a + b) + (c + d)


@inlined
def _sums(
    importances: F64, squares: F64, ratios: F64, level: float, stop: NDArray[np.int64]
) -> tuple[float, float]:
    """Return the sums of squares and ratios over the edges that are uncertain at a level.

    Uses four accumulators for each.
    """
    a, b, c, d, p, q, r, s = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    size = importances.shape[0]
    aligned_size = size & ~np.int64(3)
    for begin in range(0, aligned_size, STOP_CHECK_STEPS):
        if is_set(stop):
            return 0.0, 0.0
        for e in range(np.uint64(begin), stretch_end(begin, aligned_size), _FOUR):
            one, two, three, four = (
                importances[e] < level,
                importances[e + _ONE] < level,
                importances[e + _TWO] < level,
                importances[e + _THREE] < level,
            )
            a += squares[e] if one else 0.0
            b += squares[e + _ONE] if two else 0.0
            c += squares[e + _TWO] if three else 0.0
            d += squares[e + _THREE] if four else 0.0
            p += ratios[e] if one else 0.0
            q += ratios[e + _ONE] if two else 0.0
            r += ratios[e + _TWO] if three else 0.0
            s += ratios[e + _THREE] if four else 0.0
    for e in range(aligned_size, size):
        a += squares[e] if importances[e] < level else 0.0
        p += ratios[e] if importances[e] < level else 0.0
    return (a + b) + (c + d), (p + q) + (r + s)


@kernel
def scatter_max(local_ids: NDArray[np.int32], values: F64, largest: F64) -> None:
    """Raise the value of each node to at least the given values.

    Parameters
    ----------
    local_ids : int32[n]
    values : float64[n]
    largest : float64[nodes], inout
    """
    for i in range(local_ids.shape[0]):
        largest[local_ids[i]] = max(largest[local_ids[i]], values[i])


@kernel
def _update_importances(largest: F64, is_first: bool, importances: F64) -> int:
    expected = np.int64(0)
    for t in range(importances.shape[0]):
        importances[t] = min(largest[t] if is_first else importances[t] * largest[t], _MOST)
        expected += np.int64(min(importances[t], 1.0) * _WHOLE)
    return expected  # type: ignore[return-value]  # an int64 here and an int to the caller


def solve_importances(
    steps: int, raise_levels: Callable[[F64 | None], F64], checkpoint: Callable[[], object]
) -> F64:
    """Return the importances of a hop's neighbors.

    Parameters
    ----------
    steps : int
        Number of importance steps, 1 or more, or `UNTIL_CONVERGED`.
    raise_levels : callable
        Solves for the levels with the importances of the previous step, or None before the first
        one. Returns, for each neighbor, the largest c_s of the nodes that expand to it, times the
        edge's weight in the first step; float64[n].
    checkpoint : callable
        Called after each block of neighbors. It may raise to cancel.

    Returns
    -------
    float64[n]

    Notes
    -----
    The expected number of distinct nodes is summed in integers. The order of the neighbors
    therefore does not affect the number of steps.
    """
    importances, previous_expected, step = None, np.inf, 0
    while True:
        largest = raise_levels(importances)
        is_first = importances is None
        importances = np.empty(largest.size, np.float64) if importances is None else importances
        expected, step = 0, step + 1
        for begin in range(0, largest.size, _CHECKPOINT_NODES):
            block = slice(begin, begin + _CHECKPOINT_NODES)
            expected += _update_importances(largest[block], is_first, importances[block])
            checkpoint()
        if 0 < steps <= step or expected >= (1 - _CONVERGED) * previous_expected:
            return importances
        previous_expected = expected


def variate_key(seed: int, node_type: int, hop: int, *, layer_dependency: bool) -> np.uint64:
    """Return the key of the variates of a node type in a hop.

    The variate of a node is a word of this key by node id. With ``layer_dependency`` all hops share
    the same variates.
    """
    return key_of(seed, LABOR, node_type, 0 if layer_dependency else hop)
