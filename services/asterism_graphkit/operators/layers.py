"""Layer-wise sampling: measure candidates by the edges to them, and sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.fdlibm import log
from asterism_graphkit.arrays.stable_sort import ENTRIES_PER_PIECE, stable_order
from asterism_graphkit.compile.jit import IntLike, as_kernel_array, inlined, kernel
from asterism_graphkit.random import alias_build
from asterism_graphkit.random.rng import bounded, derive, unit_float, word
from asterism_graphkit.random.successive_probabilities import neumaier_add

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
    first: np.int64,
    starts: NDArray[np.int64],
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint32],
    sums: NDArray[np.float64],
    measures: NDArray[np.float64],
    count: np.int64,
    out: NDArray[np.int64],
    probabilities: NDArray[np.float64],
) -> None:
    base = starts[0]
    for i in range(sums.shape[0]):
        if not sums[i] > 0.0:
            continue
        layer = first + i
        layer_key, start = derive(key, np.uint64(layer)), starts[i]
        n = np.uint64(starts[i + 1] - start)
        for k in range(count):
            w = word(layer_key, np.uint64(k))
            column = bounded(w, n)
            coin = w * n
            slot = start - base + np.int64(column)
            entry = alias_threshold[slot]
            high = coin >> _S32
            selected = column if high < (entry >> _S32) else entry & _LOW
            if high == (entry >> _S32) and (coin & _LOW) < np.uint64(alias_fraction[slot]):
                selected = column
            candidate = start + np.int64(selected)
            out[layer * count + k] = candidate
            probabilities[layer * count + k] = measures[candidate] / sums[i]


@inlined
def _arrival(layer_key: np.uint64, candidate: IntLike, measure: float) -> float:
    """Return a candidate's exponential key: infinity if its measure is 0."""
    if not measure > 0.0:
        return np.inf
    return -log(unit_float(word(layer_key, np.uint64(candidate)))) / measure


@inlined
def _take_in_order(
    order: NDArray[np.int64],
    measures: NDArray[np.float64],
    start: np.int64,
    positive: np.int64,
    place: np.int64,
    count: np.int64,
    out: NDArray[np.int64],
    probabilities: NDArray[np.float64],
) -> None:
    """Write the first candidates of a layer in the order of their keys, and their probabilities."""
    draw_count = positive if positive < count else count
    # Sum the remaining weight from the candidates that were not drawn, then backwards over the
    # draws. Nothing is subtracted, so no digits cancel.
    high, low = 0.0, 0.0
    for c in range(draw_count, positive):
        high, low = neumaier_add(high, low, measures[start + order[c]])
    for k in range(draw_count - 1, -1, -1):
        candidate = start + order[k]
        high, low = neumaier_add(high, low, measures[candidate])
        out[place + k] = candidate
        probabilities[place + k] = min(measures[candidate] / (high + low), 1.0)


@kernel
def _draw_by_exponential_keys(
    key: np.uint64,
    first: np.int64,
    starts: NDArray[np.int64],
    measures: NDArray[np.float64],
    count: np.int64,
    out: NDArray[np.int64],
    probabilities: NDArray[np.float64],
) -> None:
    for i in range(starts.shape[0] - 1):
        layer_key, start = derive(key, np.uint64(first + i)), starts[i]
        n = starts[i + 1] - start
        arrivals = np.empty(n, np.float64)
        positive = np.int64(0)
        for c in range(n):
            arrivals[c] = _arrival(layer_key, c, measures[start + c])
            positive += measures[start + c] > 0.0
        order = np.argsort(arrivals, kind="mergesort")
        _take_in_order(
            order, measures, start, positive, (first + i) * count, count, out, probabilities
        )


@kernel
def _arrivals(
    key: np.uint64,
    layer: np.int64,
    first: np.int64,
    measures: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    layer_key = derive(key, np.uint64(layer))
    for c in range(measures.shape[0]):
        out[c] = _arrival(layer_key, first + c, measures[c])


@kernel
def _draw_in_order(
    order: NDArray[np.int64],
    measures: NDArray[np.float64],
    start: np.int64,
    positive: np.int64,
    place: np.int64,
    count: np.int64,
    out: NDArray[np.int64],
    probabilities: NDArray[np.float64],
) -> None:
    _take_in_order(order, measures, start, positive, place, count, out, probabilities)


def _batches(starts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield ranges of layers with at most `ENTRIES_PER_PIECE` candidates, or one larger layer."""
    first, layer_count = 0, starts.size - 1
    while first < layer_count:
        limit = starts[first] + ENTRIES_PER_PIECE
        last = max(int(np.searchsorted(starts, limit, side="right")) - 1, first + 1)
        yield first, min(last, layer_count)
        first = last


def draw(
    key: np.uint64,
    starts: NDArray[np.int64],
    measures: NDArray[np.float64],
    count: int,
    *,
    replace: bool,
    checkpoint: Callable[[], object] = lambda: None,
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
    checkpoint : callable, optional
        Called between batches of candidates. It may raise to cancel the call.

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
    measures, outputs = as_kernel_array(measures), (np.int64(count), candidates, probabilities)
    for first, last in _batches(starts):
        checkpoint()
        batch_starts = as_kernel_array(starts[first : last + 1])
        begin, end = int(batch_starts[0]), int(batch_starts[-1])
        if replace:
            alias_threshold, alias_fraction, sums = alias_build.build_rows(
                batch_starts - begin, measures[begin:end]
            )
            _draw_by_alias(
                np.uint64(key),
                np.int64(first),
                batch_starts,
                as_kernel_array(alias_threshold),
                as_kernel_array(alias_fraction),
                as_kernel_array(sums),
                measures,
                *outputs,
            )
        elif end - begin <= ENTRIES_PER_PIECE:
            _draw_by_exponential_keys(
                np.uint64(key), np.int64(first), batch_starts, measures, *outputs
            )
        else:
            arrivals = np.empty(end - begin, np.float64)
            for piece in range(0, arrivals.size, ENTRIES_PER_PIECE):
                checkpoint()
                stop = min(piece + ENTRIES_PER_PIECE, arrivals.size)
                _arrivals(
                    np.uint64(key),
                    np.int64(first),
                    np.int64(piece),
                    measures[begin + piece : begin + stop],
                    arrivals[piece:stop],
                )
            _draw_in_order(
                as_kernel_array(stable_order([arrivals], checkpoint)),
                measures,
                np.int64(begin),
                np.int64(np.count_nonzero(measures[begin:end] > 0.0)),
                np.int64(first * count),
                *outputs,
            )
    return candidates, probabilities
