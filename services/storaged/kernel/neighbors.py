"""Neighbors with replacement: the edge type of each draw, its slot, and gathering by slots.

Draws are numbered flat: draw k of the i-th node of a call is number i * count + k. A *slot* is a position in the
part's adjacency of one edge type, -1 for no neighbor. Loops go over blocks of draws, across nodes: one pass hashes and
prefetches, the next reads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import kernel, prefetch
from graphkit.rng import below, unit, word

BLOCK = 128
NODES_AHEAD = 32
AHEAD = 32
_S32, _LOW, _SIGN = np.uint64(32), np.uint64(0xFFFFFFFF), np.int64(63)


@kernel
def choose_types(keys: NDArray[np.uint64], measures: NDArray[np.float64], count: np.int64, which: NDArray[np.int32]) -> None:
    """Choose the edge type of every draw, in proportion to what each type weighs at the node.

    Parameters
    ----------
    keys : uint64[m]
        Of the nodes' positions, under ``key_of(seed, rng.NEIGHBOR_TYPE, direction, hop)``.
    measures : float64[types, m]
    count : int64
    which : int32[m * count], out
        Index into the types; -1 where all of them weigh nothing.
    """
    types = measures.shape[0]
    for i in range(keys.shape[0]):
        total = 0.0
        last = -1
        for t in range(types):
            total += measures[t, i]
            if measures[t, i] > 0.0:
                last = t
        for k in range(count):
            chosen = last
            if last >= 0:
                point = unit(word(keys[i], np.uint64(k))) * total
                reached = 0.0
                for t in range(last):
                    reached += measures[t, i]
                    if point < reached:
                        chosen = t
                        break
            which[i * count + k] = chosen


@kernel
def draw_slots(
    keys: NDArray[np.uint64],
    rows: NDArray[np.int64],
    at: NDArray[np.int64],
    count: np.int64,
    which: NDArray[np.int32],
    mine: np.int32,
    indptr: NDArray[np.int64],
    hot: NDArray[np.uint64],
    cold: NDArray[np.uint32],
    nbr: NDArray[np.int64],
    out: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> None:
    """Draw neighbors with replacement, and put their ids in place.

    Parameters
    ----------
    keys : uint64[m]
        Of the nodes' positions, under ``key_of(seed, rng.NEIGHBOR, direction, hop)``; draw k takes word k.
    rows : int64[m]
        -1: no row.
    at : int64[m]
        Row of each node in the answer.
    count : int64
    which : int32[m * count]
        Draw only where this is ``mine``; empty: draw all.
    mine : int32
    indptr : int64[rows + 1]
    hot, cold : uint64[slots], uint32[slots]
        Per-row tables; empty: every column is certain. A row of sum 0 has no neighbors.
    nbr : int64[slots]
    out : int64[n * count], out
        ``out[at[i] * count + k]``; what has no neighbor, or is not drawn here, is left as it is.
    slots : int64[m * count], out
        The slots, for `gather`; likewise. Empty: not wanted.

    Notes
    -----
    Three blocks are under way: one is hashed while the table rows of the one before it and the neighbors of the one before
    that come from memory.
    """
    m = rows.shape[0]
    total = m * count
    columns = np.empty((3, BLOCK), np.int64)
    bases = np.empty((3, BLOCK), np.int64)
    coins = np.empty((3, BLOCK), np.uint64)
    places = np.empty((3, BLOCK), np.int64)
    flats = np.empty((3, BLOCK), np.int64)
    filled = np.zeros(3, np.int64)
    tabled = hot.shape[0] > 0
    node = np.int64(-1)
    k = count
    key = np.uint64(0)
    start = np.int64(0)
    degree = np.uint64(0)
    place = np.int64(0)
    flat = np.int64(0)
    turn = 0
    idle = 0
    while idle < 2:
        size = 0
        while flat < total and size < BLOCK:
            if k == count:
                k = np.int64(0)
                node += 1
                ahead = node + NODES_AHEAD
                if ahead < m and rows[ahead] >= 0:
                    prefetch(indptr, rows[ahead])
                key = keys[node]
                row = rows[node]
                place = at[node] * count
                degree = np.uint64(0)
                if row >= 0:
                    start = indptr[row]
                    degree = np.uint64(indptr[row + 1] - start)
            if degree > np.uint64(0) and (which.shape[0] == 0 or which[flat] == mine):
                w = word(key, np.uint64(k))
                column = start + np.int64(below(w, degree))
                columns[turn, size] = column
                coins[turn, size] = w * degree
                bases[turn, size] = start
                places[turn, size] = place + k
                flats[turn, size] = flat
                if tabled:
                    prefetch(hot, column)
                else:
                    prefetch(nbr, column)
                size += 1
            flat += 1
            k += 1
        filled[turn] = size
        idle = 0 if size > 0 else idle + 1
        turn = (turn + 2) % 3  # the block before this one
        if tabled:
            for b in range(filled[turn]):
                slot = columns[turn, b]
                entry = hot[slot]
                high, threshold = np.int64(coins[turn, b] >> _S32), np.int64(entry >> _S32)
                led = bases[turn, b] + np.int64(entry & _LOW)
                # All ones where high < threshold. A branch would be mispredicted every other time, at the price of several draws.
                kept = (high - threshold) >> _SIGN
                accepted = led ^ ((slot ^ led) & kept)
                if high == threshold and (coins[turn, b] & _LOW) < np.uint64(cold[slot]):
                    accepted = slot
                # Only columns of a row of sum 0 are never kept and lead to themselves: no need to read its sum.
                if threshold == 0 and led == slot and cold[slot] == 0:
                    accepted = np.int64(-1)
                columns[turn, b] = accepted
                prefetch(nbr, accepted)
        turn = (turn + 2) % 3  # and the one before that
        for b in range(filled[turn]):
            if columns[turn, b] >= 0:
                out[places[turn, b]] = nbr[columns[turn, b]]
            if slots.shape[0] > 0 and columns[turn, b] >= 0:
                slots[flats[turn, b]] = columns[turn, b]
        filled[turn] = 0


@kernel
def gather(
    slots: NDArray[np.int64],
    at: NDArray[np.int64],
    count: np.int64,
    which: NDArray[np.int32],
    mine: np.int32,
    values: NDArray[Any],
    out: NDArray[Any],
) -> None:
    """Put the value of each slot in its place.

    Parameters
    ----------
    slots : int64[m * count]
    at : int64[m]
        Row of each node in the answer.
    count : int64
    which, mine : int32[m * count], int32
        Take only draws where ``which`` is ``mine``; empty: all.
    values : int64[slots] or float32[slots]
    out : the same dtype[n * count], out
        ``out[at[i] * count + k]``; what has no slot is left as it is.
    """
    total = slots.shape[0]
    flat = 0
    for i in range(at.shape[0]):
        to = at[i] * count
        for k in range(count):
            if flat + AHEAD < total and slots[flat + AHEAD] >= 0:
                prefetch(values, slots[flat + AHEAD])
            if slots[flat] >= 0 and (which.shape[0] == 0 or which[flat] == mine):
                out[to + k] = values[slots[flat]]
            flat += 1


@kernel
def place_by_type(
    slots: NDArray[np.int64], at: NDArray[np.int64], count: np.int64, which: NDArray[np.int32], values: NDArray[Any], out: NDArray[Any]
) -> None:
    """Put what belongs to the edge type of each draw in its place: ``out[at[i] * count + k] = values[which[...]]``.

    Parameters
    ----------
    slots, at, count : int64[m * count], int64[m], int64
        As in `gather`; what has no slot is left as it is.
    which : int32[m * count]
        Empty: all are of the first type.
    values : int32[types] or float32[types]
    out : the same dtype[n * count], out
    """
    flat = 0
    for i in range(at.shape[0]):
        for k in range(count):
            if slots[flat] >= 0:
                out[at[i] * count + k] = values[which[flat]] if which.shape[0] > 0 else values[0]
            flat += 1
