"""The probabilities of draws: each alone where they are with replacement, given the earlier ones where they are not.

The arithmetic is that of `graphkit.successive`: `leave` takes the drawn weights from a node's total, `sum_rest` adds up
what is left where that is too little for a difference, and `condition` goes backwards from there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.index import slot_of
from graphkit.jit import CHECK_MASK, is_set, kernel, prefetch
from graphkit.successive import LEAST, plus

AHEAD = 32
_NONE, _ONE = np.uint64(0), np.uint64(1)


@kernel
def weigh(slots: NDArray[np.int64], which: NDArray[np.int32], mine: np.int32, weights: NDArray[np.float32], drawn: NDArray[np.float64]) -> None:
    """Note the weight of each drawn edge of one type.

    Parameters
    ----------
    slots : int64[m * count]
        -1: no draw.
    which, mine : int32[m * count], int32
        Take only draws where ``which`` is ``mine``; empty: all.
    weights : float32[slots]
        Empty: all 1.
    drawn : float64[m * count], out
        What has no slot, or is of another type, is left as it is.
    """
    n = slots.shape[0]
    for k in range(n):
        if weights.shape[0] > 0 and k + AHEAD < n and slots[k + AHEAD] >= 0:
            prefetch(weights, slots[k + AHEAD])
        if slots[k] >= 0 and (which.shape[0] == 0 or which[k] == mine):
            drawn[k] = np.float64(weights[slots[k]]) if weights.shape[0] > 0 else 1.0


@kernel
def share(drawn: NDArray[np.float64], totals: NDArray[np.float64], at: NDArray[np.int64], count: np.int64, out: NDArray[np.float64]) -> None:
    """Put the share of each draw in its place: ``out[at[i] * count + k] = drawn[i * count + k] / totals[i]``.

    Parameters
    ----------
    drawn : float64[m * count]
        Weights; 0 where there is no draw: that is left as it is.
    totals : float64[m]
    at : int64[m]
        Row of each node in the answer.
    count : int64
    out : float64[n * count], out
    """
    for i in range(at.shape[0]):
        for k in range(count):
            if drawn[i * count + k] > 0.0:
                out[at[i] * count + k] = drawn[i * count + k] / totals[i]


@kernel
def leave(drawn: NDArray[np.float64], totals: NDArray[np.float64], degrees: NDArray[np.float64], count: np.int64, rests: NDArray[np.float64]) -> int:
    """What each node's draws leave of its total, where a subtraction can tell.

    Parameters
    ----------
    drawn : float64[m * count]
    totals, degrees : float64[m]
        A node of at most ``count`` edges has no draws to speak of: all of them are given, and nothing is left.
    count : int64
    rests : float64[m], out
        -1 where less than ``LEAST`` of the total is left: `sum_rest` finds out.

    Returns
    -------
    int
        How many of these there are.
    """
    unknown = 0
    for i in range(totals.shape[0]):
        rests[i] = 0.0
        if degrees[i] <= count or not totals[i] > 0.0:
            continue
        high, low = 0.0, 0.0
        for k in range(i * count, (i + 1) * count):
            high, low = plus(high, low, drawn[k])
        rests[i] = (totals[i] - high) - low
        if rests[i] < LEAST * totals[i]:
            rests[i] = -1.0
            unknown += 1
    return unknown


@kernel
def sum_rest(
    nodes: NDArray[np.int64],
    rows: NDArray[np.int64],
    slots: NDArray[np.int64],
    count: np.int64,
    which: NDArray[np.int32],
    mine: np.int32,
    indptr: NDArray[np.int64],
    weights: NDArray[np.float32],
    rests: NDArray[np.float64],
    stop: NDArray[np.int64],
) -> None:
    """Add up the weights of one edge type that were not drawn.

    Parameters
    ----------
    nodes : int64[j]
        The nodes to do this for, by their numbers among the m.
    rows : int64[m]
    slots : int64[m * count]
    count : int64
    which, mine : int32[m * count], int32
        As in `weigh`.
    indptr : int64[rows + 1]
    weights : float32[slots]
        Empty: all 1.
    rests : float64[m], in and out
        The sum is added.
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.
    """
    longest = np.int64(0)
    for j in range(nodes.shape[0]):
        longest = max(longest, indptr[rows[nodes[j]] + 1] - indptr[rows[nodes[j]]])
    drawn = np.zeros((longest >> 6) + 1, np.uint64)
    for j in range(nodes.shape[0]):
        i = nodes[j]
        if is_set(stop):
            return
        start, end = indptr[rows[i]], indptr[rows[i] + 1]
        drawn[: ((end - start) >> 6) + 1] = _NONE
        for k in range(i * count, (i + 1) * count):
            if slots[k] >= 0 and (which.shape[0] == 0 or which[k] == mine):
                place = slots[k] - start
                drawn[place >> 6] |= _ONE << np.uint64(place & 63)
        high, low = rests[i], 0.0
        for slot in range(start, end):
            place = slot - start
            if place & CHECK_MASK == CHECK_MASK and is_set(stop):
                return
            if drawn[place >> 6] >> np.uint64(place & 63) & _ONE != _NONE:
                continue
            weight = np.float64(weights[slot]) if weights.shape[0] > 0 else 1.0
            high, low = plus(high, low, weight)
        rests[i] = high + low


@kernel
def condition(
    drawn: NDArray[np.float64],
    rests: NDArray[np.float64],
    degrees: NDArray[np.float64],
    at: NDArray[np.int64],
    count: np.int64,
    out: NDArray[np.float64],
) -> None:
    """Put the probability of each draw, given the node's earlier ones, in its place.

    Parameters
    ----------
    drawn : float64[m * count]
        Weights in the order of the draws; 0 where there is none: that is left as it is.
    rests : float64[m]
        The weight of what each node's draws leave.
    degrees : float64[m]
        A node of at most ``count`` edges gives all of them, in their order: each with probability 1.
    at : int64[m]
        Row of each node in the answer.
    count : int64
    out : float64[n * count], out

    Notes
    -----
    The probability of a draw is its weight's share of all that was not drawn before it (successive sampling): its own,
    that of the later draws, and the rest.
    """
    for i in range(at.shape[0]):
        high, low = rests[i], 0.0
        for k in range(count - 1, -1, -1):
            weight = drawn[i * count + k]
            if not weight > 0.0:
                continue
            high, low = plus(high, low, weight)
            out[at[i] * count + k] = 1.0 if degrees[i] <= count else min(weight / (high + low), 1.0)


@kernel
def place_shares(rows: NDArray[np.int64], places: NDArray[np.uint32], weights: NDArray[np.float32], total: float, out: NDArray[np.float64]) -> None:
    """Put the share of each row in its place: ``out[places[k]] = weights[rows[k]] / total``.

    Parameters
    ----------
    rows, places : int64[m], uint32[m]
    weights : float32[rows]
        Empty: all 1.
    total : float64
    out : float64[n], out
    """
    n = rows.shape[0]
    for k in range(n):
        if weights.shape[0] > 0:
            if k + AHEAD < n:
                prefetch(weights, rows[k + AHEAD])
            out[places[k]] = np.float64(weights[rows[k]]) / total
        else:
            out[places[k]] = 1.0 / total


@kernel
def rest_of_rows(
    first: np.int64,
    rows: np.int64,
    ids: NDArray[np.int64],
    parts: np.int64,
    part: np.int64,
    live: NDArray[np.uint8],
    weights: NDArray[np.float32],
    taken: NDArray[np.int64],
    taken_shift: np.uint64,
    sums: NDArray[np.float64],
) -> None:
    """Add up the weight of the rows of one (type, part) that were not drawn; arguments as of `storaged.kernel.race.race_rows`.

    Parameters
    ----------
    sums : float64[2], in and out
        The sum so far, and what it lacks.
    """
    high, low = sums[0], sums[1]
    for row in range(first, rows):
        if live.shape[0] > 0 and live[row] == 0:
            continue
        weight = np.float64(weights[row]) if weights.shape[0] > 0 else 1.0
        item = ids[row] if ids.shape[0] > 0 else np.int64(row) * parts + part
        if not weight > 0.0 or slot_of(item, taken, taken_shift) >= 0:
            continue
        high, low = plus(high, low, weight)
    sums[0], sums[1] = high, low
