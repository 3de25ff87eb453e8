"""LABOR-0 at the nodes of any of a host's parts: edges are looked at where they lie, and only those that are kept are given.

What `graphkit.labor.probabilities` and `keep` do of edges that were read, with the same numbers and so the same answers to the last bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, inlined, kernel, prefetch, view_at
from graphkit.labor import level_of
from graphkit.rng import most_within, unit, word
from storaged.kernel.table import EID, NBR, SLOTS, WEIGHTS

ROW, TOTAL = range(2)
"""Of the state of `keep_expansion`: the node that comes next, and how many edges were kept before it."""
BLOCK = 4096
"""Edges that are looked at before room is looked for again."""
_AHEAD = 4
_NEARLY = 1.0 + 1e-12
"""More than what rounding makes of the two sides of an inequality."""
_S12 = np.uint64(12)
_I64, _F32 = np.zeros(0, np.int64), np.zeros(0, np.float32)


@inlined
def _mark(key: np.uint64, level: float, nbr: NDArray[np.int64], weights: NDArray[np.float32], marks: NDArray[np.uint8]) -> None:
    """Mark the edges that their neighbors' variates keep, and by weight some more: a loop by itself runs over several edges at once."""
    if weights.shape[0] == 0:
        most = most_within(1.0 / level)
        for e in range(nbr.shape[0]):
            marks[e] = np.uint8(np.int64(word(key, np.uint64(nbr[e])) >> _S12) <= most)
        return
    # Most edges are far from being kept, which is seen without a division.
    for e in range(nbr.shape[0]):
        marks[e] = np.uint8(unit(word(key, np.uint64(nbr[e]))) * level <= np.float64(weights[e]) * _NEARLY)


@inlined
def _keep(
    key: np.uint64,
    level: float,
    nbr: NDArray[np.int64],
    weights: NDArray[np.float32],
    begin: Whole,
    end: Whole,
    at: Whole,
    marks: NDArray[np.uint8],
    kept: NDArray[np.int64],
) -> Whole:
    """Put those of a node's edges begin .. end - 1 that its neighbors' variates keep from ``at`` on; gives where they end."""
    count = at
    for i in range(end - begin):
        kept[count] = begin + i
        count += np.int64(marks[i])
    if weights.shape[0] == 0:
        return count
    near, count = count, at
    for i in range(at, near):
        e = kept[i]
        weight = np.float64(weights[e])
        kept[count] = e
        count += np.int64(weight > 0.0 and unit(word(key, np.uint64(nbr[e]))) <= weight / level)
    return count


@inlined
def _keep_all(weights: NDArray[np.float32], begin: Whole, end: Whole, at: Whole, kept: NDArray[np.int64]) -> Whole:
    """All of positive weight, likewise."""
    count = at
    for e in range(begin, end):
        kept[count] = e
        count += np.int64(weights.shape[0] == 0 or weights[e] > 0.0)
    return count


@inlined
def _inverse(weights: NDArray[np.float32], e: Whole, level: float) -> float:
    """An edge's weight over its probability."""
    weight = np.float64(weights[e]) if weights.shape[0] > 0 else 1.0
    return weight / (1.0 if weight >= level else weight / level)


@inlined
def _weigh(weights: NDArray[np.float32], level: float, kept: NDArray[np.int64], out: NDArray[np.float32]) -> None:
    """What the kept edges of a node count in a mean: their sum is how many they are."""
    total, count = 0.0, np.float64(kept.shape[0])
    for i in range(kept.shape[0]):
        total += _inverse(weights, kept[i], level)
    for i in range(kept.shape[0]):
        out[i] = np.float32(_inverse(weights, kept[i], level) * (count / total))


@kernel
def keep_expansion(
    key: np.uint64,
    table: NDArray[np.int64],
    lines: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    fanout: np.int64,
    uniform: bool,
    most: np.int64,
    state: NDArray[np.int64],
    sizes: NDArray[np.int32],
    out: NDArray[np.int64],
    eids: NDArray[np.int64],
    weights: NDArray[np.float32],
) -> None:
    """Keep edges of one node after another's, until all are done, enough were looked at, or there is no room.

    Parameters
    ----------
    key : uint64
        The variate of node t is word t of it.
    table : int64[parts, COLUMNS]
    lines, starts, degrees : int64[m]
        From `storaged.kernel.table.find_rows`.
    fanout : int64
        Of each node, in expectation; -1: all of positive weight.
    uniform : bool
        Whether every edge counts alike.
    most : int64
        Edges to look at, up to the end of a node's.
    state : int64[2], inout
        Where to go on, and where that ended.
    sizes : int32[m], out
    out, eids, weights : int64[k], int64[k] or [0], float32[k] or [0], out
        Neighbor ids, edge ids and weights of means; k is BLOCK more than there is certain to be room for.
    """
    m, want_eids, want_weights = lines.shape[0], eids.shape[0] > 0, weights.shape[0] > 0
    seen, marks = np.int64(0), np.empty(BLOCK, np.uint8)
    for i in range(state[ROW], m):
        if seen >= most:
            return
        ahead = min(i + _AHEAD, m - 1)
        slots = table[lines[ahead], SLOTS]
        prefetch(view_at(table[lines[ahead], NBR], slots, _I64), starts[ahead])
        if not uniform and table[lines[ahead], WEIGHTS] != 0:
            prefetch(view_at(table[lines[ahead], WEIGHTS], slots, _F32), starts[ahead])
        part, start, degree, first = lines[i], starts[i], degrees[i], state[TOTAL]
        nbr = view_at(table[part, NBR] + 8 * start, degree, _I64)
        heavy = view_at(table[part, WEIGHTS] + 4 * start, np.int64(0) if uniform or table[part, WEIGHTS] == 0 else degree, _F32)
        level, at = level_of(heavy, degree, fanout, uniform), first
        for begin in range(0, degree, BLOCK):
            end = min(begin + BLOCK, degree)
            if out.shape[0] - at < end - begin:
                return
            if fanout < 0 or degree <= fanout:
                at = _keep_all(heavy, begin, end, at, out)
                continue
            _mark(key, level, nbr[begin:end], heavy[begin:end], marks)
            at = _keep(key, level, nbr, heavy, begin, end, at, marks, out)
        if want_weights:
            _weigh(heavy, level, out[first:at], weights[first:at])
        if want_eids:
            far = view_at(table[part, EID] + 8 * start, degree, _I64)
            for k in range(first, at):
                eids[k] = far[out[k]]
        for k in range(first, at):
            out[k] = nbr[out[k]]
        sizes[i] = np.int32(at - first)
        state[ROW], state[TOTAL] = i + 1, at
        seen += degree + 1
