"""Layers: what the edges of a layer's nodes make of their far ends, and draws of nodes by that."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from graphkit import alias
from graphkit.elementary import log
from graphkit.jit import kernel, settled
from graphkit.rng import below, derive, unit, word
from graphkit.successive import plus

SUM, SQRT, SQUARES = 1, 2, 3
"""What a candidate counts, as in `asterism.v1.LayerMeasure`."""
_S32, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@kernel
def _pool(indptr: NDArray[np.int64], numbers: NDArray[np.int32], weights: NDArray[np.float32], measure: np.int64, out: NDArray[np.float64]) -> None:
    n = out.shape[0]
    rounded = np.zeros(n, np.float64)
    squares = measure == SQUARES
    # Of squares: the row whose edges are being summed, and their sum so far.
    row_of = np.full(n if squares else 0, -1, np.int64)
    row_sum = np.zeros(n if squares else 0, np.float64)
    for row in range(indptr.shape[0] - 1):
        for e in range(indptr[row], indptr[row + 1]):
            c = numbers[e]
            weight = np.float64(weights[e]) if weights.shape[0] > 0 else 1.0
            if not squares:
                out[c], rounded[c] = plus(out[c], rounded[c], weight)
                continue
            if row_of[c] != row:
                out[c], rounded[c] = plus(out[c], rounded[c], row_sum[c] * row_sum[c])
                row_of[c], row_sum[c] = row, 0.0
            row_sum[c] += weight
    for c in range(n):
        if squares:
            out[c], rounded[c] = plus(out[c], rounded[c], row_sum[c] * row_sum[c])
        out[c] += rounded[c]
        if measure == SQRT:
            out[c] = math.sqrt(out[c])


def pool(
    indptr: NDArray[np.int64], numbers: NDArray[np.int32], weights: NDArray[np.float32] | None, measure: int, candidates: int
) -> NDArray[np.float64]:
    """What each candidate counts.

    Parameters
    ----------
    indptr : int64[rows + 1]
        The edges of each of a layer's nodes.
    numbers : int32[edges]
        The candidate that each leads to.
    weights : float32[edges] or None
        None: all 1.
    measure : int
        ``SUM``: the sum of the weights of the edges that lead to it; ``SQRT``: its square root; ``SQUARES``: the sum over rows of
        the squared sum of a row's.
    candidates : int

    Returns
    -------
    float64[candidates]
        Neumaier sums in the order of the edges.
    """
    out = np.zeros(candidates, np.float64)
    given = np.zeros(0, np.float32) if weights is None else weights
    _pool(settled(indptr), settled(numbers), settled(given), np.int64(measure), out)
    return out


@kernel
def _draw(
    key: np.uint64,
    starts: NDArray[np.int64],
    hot: NDArray[np.uint64],
    cold: NDArray[np.uint32],
    sums: NDArray[np.float64],
    measures: NDArray[np.float64],
    count: np.int64,
    out: NDArray[np.int64],
    probabilities: NDArray[np.float64],
) -> None:
    for layer in range(sums.shape[0]):
        if not sums[layer] > 0.0:
            continue
        own, start = derive(key, np.uint64(layer)), starts[layer]
        n = np.uint64(starts[layer + 1] - start)
        for k in range(count):
            w = word(own, np.uint64(k))
            column = below(w, n)
            coin = w * n
            row = hot[start + np.int64(column)]
            high = coin >> _S32
            taken = column if high < (row >> _S32) else row & _LOW
            if high == (row >> _S32) and (coin & _LOW) < np.uint64(cold[start + np.int64(column)]):
                taken = column
            chosen = start + np.int64(taken)
            out[layer * count + k] = chosen
            probabilities[layer * count + k] = measures[chosen] / sums[layer]


@kernel
def _race(
    key: np.uint64,
    starts: NDArray[np.int64],
    measures: NDArray[np.float64],
    count: np.int64,
    out: NDArray[np.int64],
    probabilities: NDArray[np.float64],
) -> None:
    for layer in range(starts.shape[0] - 1):
        own, start = derive(key, np.uint64(layer)), starts[layer]
        n = starts[layer + 1] - start
        arrivals = np.empty(n, np.float64)
        positive = np.int64(0)
        for c in range(n):
            arrivals[c] = np.inf
            if measures[start + c] > 0.0:
                arrivals[c] = -log(unit(word(own, np.uint64(c)))) / measures[start + c]
                positive += 1
        order = np.argsort(arrivals, kind="mergesort")
        drawn = positive if positive < count else count
        # What is left is summed from what was not drawn on, backwards over the draws: nothing cancels.
        high, low = 0.0, 0.0
        for c in range(drawn, positive):
            high, low = plus(high, low, measures[start + order[c]])
        for k in range(drawn - 1, -1, -1):
            chosen = start + order[k]
            high, low = plus(high, low, measures[chosen])
            out[layer * count + k] = chosen
            probabilities[layer * count + k] = min(measures[chosen] / (high + low), 1.0)


def draw(
    key: np.uint64, starts: NDArray[np.int64], measures: NDArray[np.float64], count: int, *, replace: bool
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Draw candidates for each layer, by what they count.

    Parameters
    ----------
    key : uint64
        ``key_of(seed, rng.LAYER, hop)``; a layer's is derived from it by its number.
    starts : int64[layers + 1]
        The candidates of layer b are ``starts[b] .. starts[b + 1]``.
    measures : float64[candidates]
    count : int
        Of each layer.
    replace : bool
        Otherwise successive draws, by a race: the first of exponential keys, in their order.

    Returns
    -------
    chosen : int64[layers * count]
        Candidates, -1 where there are none, or no more.
    probabilities : float64[layers * count]
        Of each draw, without replacement given the earlier ones; 0 where there is none.
    """
    layers = starts.size - 1
    chosen, probabilities = np.full(layers * count, -1, np.int64), np.zeros(layers * count, np.float64)
    if replace:
        hot, cold, sums = alias.build_rows(starts, measures)
        tables = (settled(hot), settled(cold), settled(sums))
        _draw(np.uint64(key), settled(starts), *tables, settled(measures), np.int64(count), chosen, probabilities)
    else:
        _race(np.uint64(key), settled(starts), settled(measures), np.int64(count), chosen, probabilities)
    return chosen, probabilities
