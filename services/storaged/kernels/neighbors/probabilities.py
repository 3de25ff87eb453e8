"""Probabilities of draws: of each draw with replacement, conditional without replacement.

The arithmetic is that of `asterism_graphkit.random.successive_probabilities`. `remaining_weights`
subtracts the drawn weights from a node's total, `sum_undrawn` sums the rest if too little is left
for a precise difference, and `write_conditional` goes backwards from there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import STOP_CHECK_MASK, is_set, kernel, prefetch
from asterism_graphkit.compile.named_tuple_arguments import kernel_record
from asterism_graphkit.random.successive_probabilities import MIN_REMAINING_SHARE, neumaier_add
from asterism_graphkit.relabel.hash_index import slot_of

AHEAD = 32
_NONE, _ONE = np.uint64(0), np.uint64(1)


@kernel
def gather_drawn_weights(
    slots: NDArray[np.int64],
    type_indices: NDArray[np.int32],
    type_index: np.int32,
    weights: NDArray[np.float32],
    drawn_weights: NDArray[np.float64],
) -> None:
    """Read the weight of each drawn edge of one type.

    Parameters
    ----------
    slots : ndarray of int64, shape (m * count,)
        -1 for no draw.
    type_indices, type_index : ndarray of int32, shape (m * count,), and int32
        Only draws with ``type_indices`` equal to ``type_index`` are read; if empty, all are.
    weights : ndarray of float32, shape (slots,)
        If empty, all weights are 1.
    drawn_weights : ndarray of float64, shape (m * count,), out
        Elements without a slot or of another type are unchanged.
    """
    n = slots.shape[0]
    for k in range(n):
        if weights.shape[0] > 0 and k + AHEAD < n and slots[k + AHEAD] >= 0:
            prefetch(weights, slots[k + AHEAD])
        if slots[k] >= 0 and (type_indices.shape[0] == 0 or type_indices[k] == type_index):
            drawn_weights[k] = np.float64(weights[slots[k]]) if weights.shape[0] > 0 else 1.0


@kernel
def write_shares(
    drawn_weights: NDArray[np.float64],
    totals: NDArray[np.float64],
    out_rows: NDArray[np.int64],
    count: np.int64,
    out: NDArray[np.float64],
) -> None:
    """Write each draw's share of its node's total.

    ``out[out_rows[i] * count + k] = drawn_weights[i * count + k] / totals[i]``.

    Parameters
    ----------
    drawn_weights : ndarray of float64, shape (m * count,)
        Weights; 0 if there is no draw. Such elements of ``out`` are unchanged.
    totals : ndarray of float64, shape (m,)
    out_rows : ndarray of int64, shape (m,)
        Row of each node in the result.
    count : int64
    out : ndarray of float64, shape (n * count,), out
    """
    for i in range(out_rows.shape[0]):
        for k in range(count):
            if drawn_weights[i * count + k] > 0.0:
                out[out_rows[i] * count + k] = drawn_weights[i * count + k] / totals[i]


@kernel
def remaining_weights(
    drawn_weights: NDArray[np.float64],
    totals: NDArray[np.float64],
    degrees: NDArray[np.float64],
    count: np.int64,
    remaining: NDArray[np.float64],
) -> int:
    """Subtract each node's draws from its total if the difference is precise enough.

    Parameters
    ----------
    drawn_weights : ndarray of float64, shape (m * count,)
    totals, degrees : ndarray of float64, shape (m,)
        A node of at most ``count`` edges has all of them drawn: no weight remains.
    count : int64
    remaining : ndarray of float64, shape (m,), out
        -1 if less than ``MIN_REMAINING_SHARE`` of the total remains: use `sum_undrawn`.

    Returns
    -------
    int
        Number of elements that are -1.
    """
    unknown = 0
    for i in range(totals.shape[0]):
        remaining[i] = 0.0
        if degrees[i] <= count or not totals[i] > 0.0:
            continue
        high, low = 0.0, 0.0
        for k in range(i * count, (i + 1) * count):
            high, low = neumaier_add(high, low, drawn_weights[k])
        remaining[i] = (totals[i] - high) - low
        if remaining[i] < MIN_REMAINING_SHARE * totals[i]:
            remaining[i] = -1.0
            unknown += 1
    return unknown


@kernel
def sum_undrawn(
    nodes: NDArray[np.int64],
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    count: np.int64,
    type_indices: NDArray[np.int32],
    type_index: np.int32,
    indptr: NDArray[np.int64],
    weights: NDArray[np.float32],
    remaining: NDArray[np.float64],
    stop: NDArray[np.int64],
) -> None:
    """Sum the weights of the edges of one type that were not drawn.

    Parameters
    ----------
    nodes : ndarray of int64, shape (j,)
        Nodes to process, as indices into the m nodes.
    rows : ndarray of int64, shape (m,)
    slots : ndarray of int64, shape (m * count,)
    count : int64
    type_indices, type_index : ndarray of int32, shape (m * count,), and int32
        As in `gather_drawn_weights`.
    indptr : ndarray of int64, shape (rows + 1,)
    weights : ndarray of float32, shape (slots,)
        If empty, all weights are 1.
    remaining : ndarray of float64, shape (m,), inout
        The sum is added.
    stop : ndarray of int64, shape (1,)
        A nonzero value stops the call; its outputs are then incomplete.
    """
    max_degree = np.int64(0)
    for j in range(nodes.shape[0]):
        max_degree = max(max_degree, indptr[rows[nodes[j]] + 1] - indptr[rows[nodes[j]]])
    drawn_bits = np.zeros((max_degree >> 6) + 1, np.uint64)
    for j in range(nodes.shape[0]):
        i = nodes[j]
        if is_set(stop):
            return
        start, end = indptr[rows[i]], indptr[rows[i] + 1]
        drawn_bits[: ((end - start) >> 6) + 1] = _NONE
        for k in range(i * count, (i + 1) * count):
            if slots[k] >= 0 and (type_indices.shape[0] == 0 or type_indices[k] == type_index):
                offset = slots[k] - start
                drawn_bits[offset >> 6] |= _ONE << np.uint64(offset & 63)
        high, low = remaining[i], 0.0
        for slot in range(start, end):
            offset = slot - start
            if offset & STOP_CHECK_MASK == STOP_CHECK_MASK and is_set(stop):
                return
            if drawn_bits[offset >> 6] >> np.uint64(offset & 63) & _ONE != _NONE:
                continue
            weight = np.float64(weights[slot]) if weights.shape[0] > 0 else 1.0
            high, low = neumaier_add(high, low, weight)
        remaining[i] = high + low


@kernel
def write_conditional(
    drawn_weights: NDArray[np.float64],
    remaining: NDArray[np.float64],
    degrees: NDArray[np.float64],
    out_rows: NDArray[np.int64],
    count: np.int64,
    out: NDArray[np.float64],
) -> None:
    """Write the probability of each draw, given the node's earlier draws.

    Parameters
    ----------
    drawn_weights : ndarray of float64, shape (m * count,)
        Weights in the order of the draws; 0 if there is no draw. Such elements of ``out`` are
        unchanged.
    remaining : ndarray of float64, shape (m,)
        Weight that remains after all draws of each node.
    degrees : ndarray of float64, shape (m,)
        A node of at most ``count`` edges returns all of them, in their stored order: each with
        probability 1.
    out_rows : ndarray of int64, shape (m,)
        Row of each node in the result.
    count : int64
    out : ndarray of float64, shape (n * count,), out

    Notes
    -----
    Successive sampling: the probability of a draw is its weight divided by the weight that was not
    drawn before it, which is its weight, that of the later draws, and the rest.
    """
    for i in range(out_rows.shape[0]):
        high, low = remaining[i], 0.0
        for k in range(count - 1, -1, -1):
            weight = drawn_weights[i * count + k]
            if not weight > 0.0:
                continue
            high, low = neumaier_add(high, low, weight)
            out[out_rows[i] * count + k] = (
                1.0 if degrees[i] <= count else min(weight / (high + low), 1.0)
            )


@kernel
def write_row_shares(
    rows: NDArray[np.int64],
    out_positions: NDArray[np.uint32],
    weights: NDArray[np.float32],
    total: float,
    out: NDArray[np.float64],
) -> None:
    """Write each row's share of a total: ``out[out_positions[k]] = weights[rows[k]] / total``.

    Parameters
    ----------
    rows, out_positions : ndarray of int64 and of uint32, shape (m,)
    weights : ndarray of float32, shape (rows,)
        If empty, all weights are 1.
    total : float64
    out : ndarray of float64, shape (n,), out
    """
    n = rows.shape[0]
    for k in range(n):
        if weights.shape[0] > 0:
            if k + AHEAD < n:
                prefetch(weights, rows[k + AHEAD])
            out[out_positions[k]] = np.float64(weights[rows[k]]) / total
        else:
            out[out_positions[k]] = 1.0 / total


@kernel_record
class RowRange(NamedTuple):
    """Rows of one (type, partition).

    Attributes
    ----------
    first, end : int64
        First row, and the row after the last.
    parts, part : int64
        P, and the partition of the rows.
    excluded_shift : uint64
        64 - k, for an index of 2^k excluded ids.
    """

    first: np.int64
    end: np.int64
    parts: np.int64
    part: np.int64
    excluded_shift: np.uint64


@kernel
def sum_remaining_rows(
    params: RowRange,
    ids: NDArray[np.int64],
    live: NDArray[np.uint8],
    weights: NDArray[np.float32],
    excluded_index: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> None:
    """Sum the weights of the rows of one (type, partition) that were not drawn.

    Parameters
    ----------
    params : RowRange
    ids, live, weights, excluded_index
        As in `storaged.kernels.exponential_keys.select_rows`.
    sums : ndarray of float64, shape (2,), inout
        The sum so far and its compensation.
    """
    first, end, parts, part, excluded_shift = params
    high, low = sums[0], sums[1]
    for row in range(first, end):
        if live.shape[0] > 0 and live[row] == 0:
            continue
        weight = np.float64(weights[row]) if weights.shape[0] > 0 else 1.0
        item = ids[row] if ids.shape[0] > 0 else np.int64(row) * parts + part
        if not weight > 0.0 or slot_of(item, excluded_index, excluded_shift) >= 0:
            continue
        high, low = neumaier_add(high, low, weight)
    sums[0], sums[1] = high, low
