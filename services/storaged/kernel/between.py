"""Edges between rows and a sorted list of nodes: whichever of the two is shorter is gone through, the other is searched."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, inlined, kernel


@inlined
def _first(values: NDArray[np.int64], low: Whole, high: Whole, wanted: np.int64) -> Whole:
    """The first place from ``low`` on whose value is not below ``wanted``; ``high`` where there is none."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _bits(n: Whole) -> Whole:
    """Steps of a search among n."""
    steps = 1
    while n > 1:
        n >>= 1
        steps += 1
    return steps


@kernel
def between(
    rows: NDArray[np.int64],
    at: NDArray[np.int64],
    cursor: NDArray[np.int64],
    indptr: NDArray[np.int64],
    nbr: NDArray[np.int64],
    eid: NDArray[np.int64],
    weights: NDArray[np.float32],
    edge_type: np.int32,
    targets: NDArray[np.int64],
    places: NDArray[np.int64],
    out_places: NDArray[np.int64],
    out_types: NDArray[np.int32],
    out_weights: NDArray[np.float32],
    out_eids: NDArray[np.int64],
) -> None:
    """Count, or append to a ragged answer, the edges of rows of an adjacency that lead to targets.

    Parameters
    ----------
    rows, at : int64[m]
        A row (-1: none), and the place of its node in the request.
    cursor : int64[n], inout
        Where the next edge of each place goes; moved on by as many as there are.
    indptr, nbr, eid : int64[rows + 1], int64[slots], int64[slots]
        Neighbors ascend within a row.
    weights : float32[slots]
        Empty: all 1.
    edge_type : int32
    targets, places : int64[t]
        Ascending ids, one of them several times perhaps, and what is to be told of each.
    out_places : int64[k], out
        Empty: edges are counted only.
    out_types : int32[k], out
    out_weights, out_eids : float32[k], int64[k], out
        Empty: not wanted.

    Notes
    -----
    An edge comes once per target of its neighbor's id: by (neighbor, slot, place among the targets).
    """
    count = targets.shape[0]
    fill = out_places.shape[0] > 0
    for i in range(rows.shape[0]):
        if rows[i] < 0 or count == 0:
            continue
        start, stop = indptr[rows[i]], indptr[rows[i] + 1]
        degree = stop - start
        to = cursor[at[i]]
        by_slot = degree * _bits(count) <= count * _bits(degree)
        slot: Whole = start
        target: Whole = np.int64(0)
        while slot < stop and target < count:
            if by_slot:
                target = _first(targets, target, count, nbr[slot])
            else:
                slot = _first(nbr, slot, stop, targets[target])
            if target == count or slot == stop:
                break
            if targets[target] != nbr[slot]:
                # One of the two has been passed over: go on with the next of what is gone through.
                if by_slot:
                    slot += 1
                else:
                    target += 1
                continue
            last = target
            while last < count and targets[last] == nbr[slot]:
                if fill:
                    out_places[to] = places[last]
                    out_types[to] = edge_type
                    if out_weights.shape[0] > 0:
                        out_weights[to] = weights[slot] if weights.shape[0] > 0 else np.float32(1.0)
                    if out_eids.shape[0] > 0:
                        out_eids[to] = eid[slot]
                to += 1
                last += 1
            slot += 1
            if slot == stop or nbr[slot] != targets[target]:
                target = last
        cursor[at[i]] = to
