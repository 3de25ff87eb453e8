"""Layer-wise sampling: measure candidates by the edges to them, and sample."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.fdlibm import log
from asterism_graphkit.compile.jit import as_kernel_array, kernel
from asterism_graphkit.random import alias
from asterism_graphkit.random.rng import bounded, derive, unit_float, word
from asterism_graphkit.random.successive import neumaier_add

SUM, SQRT, SQUARES = 1, 2, 3
"""Measures of a candidate, as in `asterism.v1.LayerMeasure`."""
_S32, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@kernel
def _candidate_measures(
    indptr: NDArray[np.int64],
    edge_candidates: NDArray[np.int32],
    weights: NDArray[np.float32],
    measure: np.int64,
    out: NDArray[np.float64],
) -> None:
    n = out.shape[0]
    compensation = np.zeros(n, np.float64)
    squares = measure == SQUARES
    # For SQUARES: the row being summed for each candidate, and its sum so far.
    row_of = np.full(n if squares else 0, -1, np.int64)
    row_sum = np.zeros(n if squares else 0, np.float64)
    for row in range(indptr.shape[0] - 1):
        for e in range(indptr[row], indptr[row + 1]):
            c = edge_candidates[e]
            weight = np.float64(weights[e]) if weights.shape[0] > 0 else 1.0
            if not squares:
                out[c], compensation[c] = neumaier_add(out[c], compensation[c], weight)
                continue
            if row_of[c] != row:
                out[c], compensation[c] = neumaier_add(
                    out[c], compensation[c], row_sum[c] * row_sum[c]
                )
                row_of[c], row_sum[c] = row, 0.0
            row_sum[c] += weight
    for c in range(n):
        if squares:
            out[c], compensation[c] = neumaier_add(out[c], compensation[c], row_sum[c] * row_sum[c])
        out[c] += compensation[c]
        if measure == SQRT:
            out[c] = math.sqrt(out[c])


def candidate_measures(
    indptr: NDArray[np.int64],
    edge_candidates: NDArray[np.int32],
    weights: NDArray[np.float32] | None,
    measure: int,
    candidate_count: int,
) -> NDArray[np.float64]:
    """Return the measure of each candidate.

    Parameters
    ----------
    indptr : int64[rows + 1]
        Ranges of the edges of each node of a layer.
    edge_candidates : int32[edges]
        Candidate that each edge leads to.
    weights : float32[edges] or None
        None means that all weights are 1.
    measure : int
        ``SUM``: the sum of the weights of the edges to a candidate. ``SQRT``: the square root of
        that sum. ``SQUARES``: the sum over rows of the squared weight sum of each row's edges to
        it.
    candidate_count : int

    Returns
    -------
    float64[candidates]
        Neumaier sums in the order of the edges.
    """
    out = np.zeros(candidate_count, np.float64)
    weights_or_empty = np.zeros(0, np.float32) if weights is None else weights
    _candidate_measures(
        as_kernel_array(indptr),
        as_kernel_array(edge_candidates),
        as_kernel_array(weights_or_empty),
        np.int64(measure),
        out,
    )
    return out


@kernel
def _draw_by_alias(
    key: np.uint64,
    starts: NDArray[np.int64],
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint32],
    sums: NDArray[np.float64],
    measures: NDArray[np.float64],
    count: np.int64,
    out: NDArray[np.int64],
    probabilities: NDArray[np.float64],
) -> None:
    for layer in range(sums.shape[0]):
        if not sums[layer] > 0.0:
            continue
        layer_key, start = derive(key, np.uint64(layer)), starts[layer]
        n = np.uint64(starts[layer + 1] - start)
        for k in range(count):
            w = word(layer_key, np.uint64(k))
            column = bounded(w, n)
            coin = w * n
            entry = alias_threshold[start + np.int64(column)]
            high = coin >> _S32
            selected = column if high < (entry >> _S32) else entry & _LOW
            if high == (entry >> _S32) and (coin & _LOW) < np.uint64(
                alias_fraction[start + np.int64(column)]
            ):
                selected = column
            candidate = start + np.int64(selected)
            out[layer * count + k] = candidate
            probabilities[layer * count + k] = measures[candidate] / sums[layer]


@kernel
def _draw_by_exponential_keys(
    key: np.uint64,
    starts: NDArray[np.int64],
    measures: NDArray[np.float64],
    count: np.int64,
    out: NDArray[np.int64],
    probabilities: NDArray[np.float64],
) -> None:
    for layer in range(starts.shape[0] - 1):
        layer_key, start = derive(key, np.uint64(layer)), starts[layer]
        n = starts[layer + 1] - start
        arrivals = np.empty(n, np.float64)
        positive = np.int64(0)
        for c in range(n):
            arrivals[c] = np.inf
            if measures[start + c] > 0.0:
                arrivals[c] = -log(unit_float(word(layer_key, np.uint64(c)))) / measures[start + c]
                positive += 1
        order = np.argsort(arrivals, kind="mergesort")
        draw_count = positive if positive < count else count
        # Sum the remaining weight from the candidates that were not drawn, then backwards over the
        # draws. Nothing is subtracted, so no digits cancel.
        high, low = 0.0, 0.0
        for c in range(draw_count, positive):
            high, low = neumaier_add(high, low, measures[start + order[c]])
        for k in range(draw_count - 1, -1, -1):
            candidate = start + order[k]
            high, low = neumaier_add(high, low, measures[candidate])
            out[layer * count + k] = candidate
            probabilities[layer * count + k] = min(measures[candidate] / (high + low), 1.0)


def draw(
    key: np.uint64,
    starts: NDArray[np.int64],
    measures: NDArray[np.float64],
    count: int,
    *,
    replace: bool,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Sample candidates for each layer in proportion to their measures.

    Parameters
    ----------
    key : uint64
        ``key_of(seed, rng.LAYER, hop)``. The key of a layer is derived from it by the layer's
        index.
    starts : int64[layers + 1]
        The candidates of layer b are ``starts[b] .. starts[b + 1]``.
    measures : float64[candidates]
    count : int
        Number of draws for each layer.
    replace : bool
        Whether to draw with replacement, from alias tables. Otherwise the draws are successive
        draws without replacement, by exponential-key selection (Efraimidis & Spirakis 2006): the
        smallest keys in their order.

    Returns
    -------
    chosen : int64[layers * count]
        Candidates; -1 where there is none.
    probabilities : float64[layers * count]
        Probability of each draw, without replacement conditional on the earlier draws; 0 where
        there is none.
    """
    layer_count = starts.size - 1
    candidates, probabilities = (
        np.full(layer_count * count, -1, np.int64),
        np.zeros(layer_count * count, np.float64),
    )
    if replace:
        alias_threshold, alias_fraction, sums = alias.build_rows(starts, measures)
        tables = (
            as_kernel_array(alias_threshold),
            as_kernel_array(alias_fraction),
            as_kernel_array(sums),
        )
        _draw_by_alias(
            np.uint64(key),
            as_kernel_array(starts),
            *tables,
            as_kernel_array(measures),
            np.int64(count),
            candidates,
            probabilities,
        )
    else:
        _draw_by_exponential_keys(
            np.uint64(key),
            as_kernel_array(starts),
            as_kernel_array(measures),
            np.int64(count),
            candidates,
            probabilities,
        )
    return candidates, probabilities
