"""LABOR: neighbors by one variate for each node that is met, so that nodes of a batch meet the same ones.

Balin & Catalyurek 2023, *Layer-neighbor sampling: defusing neighborhood explosion in GNNs*, NeurIPS; DGL's ``LaborSampler``.
Node t has a variate r_t in (0, 1). The edge of weight A_ts from t to an expanded node s is kept where r_t <= min(1, c_s pi_t), of
which there are as many as fanout says in that the estimate of the mean over s's neighbors varies as much as with k uniform draws:

    sum over t of A_ts^2 / min(1, c_s pi_t)  =  A_*s^2 / k - A_*s^2 / d_s + sum over t of A_ts^2,    k = min(fanout, d_s)

(the paper's equation 22, d_s of s's edges having a positive weight). With pi_t = A_ts that is LABOR-0; one importance step makes
pi_t the largest c_s pi_t of all expanded nodes, and solves for c_s again: fewer different nodes are expected, at the same variances.

What is called a level here is 1 / c_s: an edge is kept with certainty where pi_t >= level. Both sides are exact to rounding, where
DGL's fixed-point iteration ends within 1e-4. An edge of weight 0 is as if it were not there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, inlined, kernel, settled
from graphkit.rng import LABOR, key_of, unit, word

UNTIL_SETTLED = -1
"""As a number of importance steps: until they change little."""
_SETTLED = 1e-4
"""As in DGL: steps end where fewer different nodes by less than this share of them are to be expected."""
_MOST = 1e150
"""Of an importance, which grows with every step for nodes that are kept with certainty anyhow: squares of weights by it are normal numbers."""

F64 = NDArray[np.float64]


@inlined
def _weight(weights: NDArray[np.float32], e: Whole) -> float:
    """Of an edge; without weights all are 1."""
    return np.float64(weights[e]) if weights.shape[0] > 0 else 1.0


@inlined
def level_of(weights: NDArray[np.float32], degree: Whole, fanout: np.int64, uniform: bool) -> float:
    """The level of a node where importances are the weights of its edges, which depends on no other node.

    Without weights all are 1; where that is said by ``uniform`` the level is degree / fanout, which would be so to rounding anyhow.
    A level without importance steps before it is solved for in fewer passes: the sum of A^2 / pi is that of A.
    """
    total, squares, most, least, positive = 0.0, 0.0, 0.0, np.inf, np.int64(0)
    if weights.shape[0] > 0:
        for e in range(degree):
            weight = np.float64(weights[e])
            total += weight
            squares += weight * weight
            most = max(most, weight)
            positive += np.int64(weight > 0.0)
    else:
        total, squares, most, positive = np.float64(degree), np.float64(degree), 1.0, np.int64(degree)
    # Where no edge is certain.
    level = total / np.float64(fanout if fanout >= 0 else max(positive, np.int64(1)))
    if uniform:
        return level
    if fanout < 0 or positive <= fanout:
        for e in range(min(np.int64(weights.shape[0]), np.int64(degree))):
            if weights[e] > 0.0:
                least = min(least, np.float64(weights[e]))
        least = least if weights.shape[0] > 0 else 1.0
        return min(level, least) if positive > 0 else level
    # As in `_solve`, where the first of Newton's steps was taken above.
    extra = total * total * (1.0 / np.float64(fanout) - 1.0 / np.float64(positive))
    level, before = (extra + squares) / total, positive
    while most >= level:
        squares, shares, uncertain = 0.0, 0.0, np.int64(0)
        for e in range(degree):
            weight = np.float64(weights[e])
            inside = weight if weight < level else 0.0
            squares += inside * inside
            shares += inside
            uncertain += np.int64(inside > 0.0)
        if uncertain == 0 or uncertain >= before:
            break
        level, before = (extra + squares) / shares, uncertain
    return level


@kernel
def _first_levels(indptr: NDArray[np.int64], weights: NDArray[np.float32], fanout: np.int64, levels: F64) -> None:
    uniform = weights.shape[0] == 0
    for row in range(levels.shape[0]):
        begin, end = indptr[row], indptr[row + 1]
        levels[row] = level_of(weights[:0] if uniform else weights[begin:end], end - begin, fanout, uniform)


@inlined
def _solved(weights: NDArray[np.float32], importances: F64, ratios: F64, fanout: np.int64, before: float) -> float:
    """The level of a node by its neighbors' importances, after the one of before; ``ratios`` is room for as many numbers.

    The importance of an edge of weight 0 is made infinite: it is never uncertain.
    """
    size, total, squares, shares, degree, least = importances.shape[0], 0.0, 0.0, 0.0, np.int64(0), np.inf
    for e in range(size):
        weight = _weight(weights, e)
        ratios[e] = weight * weight / importances[e] if weight > 0.0 else 0.0
        importances[e] = importances[e] if weight > 0.0 else np.inf
        total += weight
        squares += weight * weight
        shares += ratios[e]
        degree += np.int64(weight > 0.0)
        least = min(least, importances[e])
    if fanout < 0 or degree <= fanout:
        # All are certain, at every level up to this one. That of before stays where it serves, as in DGL: nodes of which one
        # expands all neighbors are the more important to the others the fewer they are.
        return min(before, least) if degree > 0 else before
    # The sum over edges of A^2 max(1, level / pi) is convex in the level: Newton's steps, from where no edge is certain down, each
    # leave fewer edges uncertain, and end at the level where the sum is what it should be. The first one was taken above. An edge
    # that is certain adds 0 to the sums of the others, for a branch on it would be mispredicted every other time.
    extra = total * total * (1.0 / np.float64(fanout) - 1.0 / np.float64(degree))
    level, rest = (extra + squares) / shares, degree
    while True:
        squares, shares, uncertain = 0.0, 0.0, np.int64(0)
        for e in range(size):
            inside, weight = importances[e] < level, _weight(weights, e)
            squares += weight * weight if inside else 0.0
            shares += ratios[e] if inside else 0.0
            uncertain += np.int64(inside)
        if uncertain == 0 or uncertain >= rest:
            break
        level, rest = (extra + squares) / shares, uncertain
    return level


@inlined
def _share(weights: NDArray[np.float32], importances: F64, level: float, probabilities: F64) -> None:
    """The probability of each edge of a node."""
    for e in range(importances.shape[0]):
        importance = importances[e]
        certain = 1.0 if importance >= level else importance / level
        probabilities[e] = certain if _weight(weights, e) > 0.0 else 0.0


@kernel
def _solve(
    indptr: NDArray[np.int64],
    weights: NDArray[np.float32],
    numbers: NDArray[np.int32],
    importances: F64,
    fanout: np.int64,
    levels: F64,
    probabilities: F64,
) -> None:
    """The level of each node by the importances of a step, and, where they are asked for, the probabilities that come of it."""
    longest = np.int64(0)
    for row in range(levels.shape[0]):
        longest = max(longest, indptr[row + 1] - indptr[row])
    own, ratios = np.empty(longest, np.float64), np.empty(longest, np.float64)
    for row in range(levels.shape[0]):
        begin, end = indptr[row], indptr[row + 1]
        near = weights if weights.shape[0] == 0 else weights[begin:end]
        # Read once, from all over the place, for all of Newton's steps.
        for e in range(begin, end):
            own[e - begin] = importances[numbers[e]]
        levels[row] = _solved(near, own[: end - begin], ratios[: end - begin], fanout, levels[row])
        if probabilities.shape[0] > 0:
            _share(near, own[: end - begin], levels[row], probabilities[begin:end])


@kernel
def _raise(indptr: NDArray[np.int64], weights: NDArray[np.float32], numbers: NDArray[np.int32], levels: F64, by_weight: bool, largest: F64) -> None:
    """The largest c_s of the nodes that expand to each node; times the edge's weight where that was its importance."""
    for row in range(levels.shape[0]):
        for e in range(indptr[row], indptr[row + 1]):
            weight = _weight(weights, e)
            if weight > 0.0:
                asked = (weight if by_weight else 1.0) / levels[row]
                largest[numbers[e]] = max(largest[numbers[e]], asked)


@kernel
def _settle(largest: F64, first: bool, importances: F64) -> float:
    """Take over a step's importances; gives how many different nodes are to be expected of them."""
    expected = 0.0
    for t in range(importances.shape[0]):
        importances[t] = min(largest[t] if first else importances[t] * largest[t], _MOST)
        expected += min(importances[t], 1.0)
    return expected


@kernel
def _first_shares(indptr: NDArray[np.int64], weights: NDArray[np.float32], levels: F64, probabilities: F64) -> None:
    """Probabilities where importances are the weights of edges."""
    for row in range(levels.shape[0]):
        for e in range(indptr[row], indptr[row + 1]):
            weight, level = _weight(weights, e), levels[row]
            certain = 1.0 if weight >= level else weight / level
            probabilities[e] = certain if weight > 0.0 else 0.0


def probabilities(
    indptr: NDArray[np.int64], weights: NDArray[np.float32] | None, numbers: NDArray[np.int32] | None, fanout: int, *, importance: int
) -> F64:
    """The probability of each edge to be kept.

    Parameters
    ----------
    indptr : int64[rows + 1]
        The edges of each node that expands.
    weights : float32[edges] or None
        None: all 1.
    numbers : int32[edges] or None
        The nodes that edges lead to, numbered from 0 on; needed where there are importance steps.
    fanout : int
        Of each row, 1 or more; -1: all edges of positive weight.
    importance : int
        Steps; `UNTIL_SETTLED`: until they change little.

    Returns
    -------
    float64[edges]
    """
    indptr = settled(indptr)
    of = settled(np.zeros(0, np.float32) if weights is None else weights)
    to = settled(np.zeros(0, np.int32) if numbers is None else numbers)
    levels, out = np.zeros(indptr.size - 1, np.float64), np.empty(int(indptr[-1]), np.float64)
    _first_levels(indptr, of, np.int64(fanout), levels)
    if not importance or not to.size:
        _first_shares(indptr, of, levels, out)
        return out
    importances = np.zeros(int(to.max()) + 1, np.float64)
    step, before, last = 0, np.inf, False
    while not last:
        largest = np.zeros(importances.size, np.float64)
        _raise(indptr, of, to, levels, step == 0, largest)
        expected = _settle(largest, step == 0, importances)
        last = 0 < importance <= step + 1 or expected >= (1 - _SETTLED) * before
        _solve(indptr, of, to, importances, np.int64(fanout), levels, out if last else out[:0])
        step, before = step + 1, expected
    return out


@kernel
def _keep(
    key: np.uint64,
    indptr: NDArray[np.int64],
    numbers: NDArray[np.int32],
    ids: NDArray[np.int64],
    weights: NDArray[np.float32],
    probabilities: F64,
    sizes: NDArray[np.int32],
    kept: NDArray[np.int64],
    out: NDArray[np.float32],
    places: NDArray[np.int32],
    met: NDArray[np.int64],
) -> tuple[Whole, Whole]:
    """Keep edges of one node after another; gives how many, and to how many different nodes."""
    variates, seen = np.empty(ids.shape[0], np.float64), np.empty(ids.shape[0], np.int32)
    for t in range(ids.shape[0]):
        variates[t], seen[t] = unit(word(key, np.uint64(ids[t]))), -1
    count, nodes = np.int64(0), np.int64(0)
    for row in range(sizes.shape[0]):
        begin, total = count, 0.0
        for e in range(indptr[row], indptr[row + 1]):
            kept[count] = e
            count += np.int64(variates[numbers[e]] <= probabilities[e])
        sizes[row] = np.int32(count - begin)
        for i in range(begin, count):
            total += _weight(weights, kept[i]) / probabilities[kept[i]]
        for i in range(begin, count):
            inverse = _weight(weights, kept[i]) / probabilities[kept[i]]
            out[i] = np.float32(inverse * (np.float64(count - begin) / total))
            t = numbers[kept[i]]
            if seen[t] < 0:
                seen[t], met[nodes] = nodes, ids[t]
                nodes += 1
            places[i] = seen[t]
    return count, nodes


def key_of_variates(seed: int, node_type: int, hop: int, *, layer_dependency: bool) -> np.uint64:
    """What the variates of a node type in a hop are words of, by node id; with ``layer_dependency`` all hops have the same ones."""
    return key_of(seed, LABOR, node_type, 0 if layer_dependency else hop)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kept:
    """The edges that were kept, those of one row after another's."""

    sizes: NDArray[np.int32]
    """int32[rows]: how many."""
    edges: NDArray[np.int64]
    """int64[k]: which, ascending."""
    weights: NDArray[np.float32]
    """float32[k]: A / probability, times what makes those of a row sum to its size."""
    ids: NDArray[np.int64]
    """int64[n]: the nodes that they lead to, each once, by first appearance."""
    places: NDArray[np.int32]
    """int32[k]: which of these each edge leads to."""


def keep(
    key: np.uint64,
    indptr: NDArray[np.int64],
    numbers: NDArray[np.int32],
    ids: NDArray[np.int64],
    weights: NDArray[np.float32] | None,
    probabilities: F64,
) -> Kept:
    """Which edges the nodes' variates keep.

    Parameters
    ----------
    key : uint64
        The variate of node t is word t of it.
    indptr : int64[rows + 1]
        The edges of each node that expands.
    numbers : int32[edges]
        The nodes that they lead to, numbered from 0 on.
    ids : int64[nodes]
        By number.
    weights : float32[edges] or None
        None: all 1.
    probabilities : float64[edges]
        Of `probabilities`.
    """
    of = settled(np.zeros(0, np.float32) if weights is None else weights)
    # One more than there may be: an edge is put down before it is known whether it is kept.
    kept, out, places = np.empty(numbers.size + 1, np.int64), np.empty(numbers.size, np.float32), np.empty(numbers.size, np.int32)
    sizes, met = np.zeros(indptr.size - 1, np.int32), np.empty(ids.size, np.int64)
    count, nodes = _keep(np.uint64(key), settled(indptr), settled(numbers), settled(ids), of, settled(probabilities), sizes, kept, out, places, met)
    return Kept(sizes=sizes, edges=kept[:count], weights=out[:count], ids=met[:nodes], places=places[:count])
