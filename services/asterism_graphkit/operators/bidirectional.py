"""A node's edges of both directions as one population: what draws along them and against them, made
apart, are together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.fdlibm import log
from asterism_graphkit.compile.jit import as_kernel_array, kernel
from asterism_graphkit.random.rng import derive, unit_float, word


@kernel
def _merge_with_replacement(
    key: np.uint64,
    weights: NDArray[np.float64],
    probabilities: NDArray[np.float64],
    picks: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    count = weights.shape[2]
    for i in range(weights.shape[1]):
        out_weight, in_weight = 0.0, 0.0
        if probabilities[0, i, 0] > 0.0:
            out_weight = weights[0, i, 0] / probabilities[0, i, 0]
        if probabilities[1, i, 0] > 0.0:
            in_weight = weights[1, i, 0] / probabilities[1, i, 0]
        if not out_weight + in_weight > 0.0:
            continue
        out_share = out_weight / (out_weight + in_weight)
        node_key = derive(key, np.uint64(i))
        for k in range(count):
            side = 0 if unit_float(word(node_key, np.uint64(k))) < out_share else 1
            picks[i, k] = side * count + k
            out[i, k] = probabilities[side, i, k] * (out_share if side == 0 else 1.0 - out_share)


@kernel
def _merge_without_replacement(
    key: np.uint64,
    weights: NDArray[np.float64],
    probabilities: NDArray[np.float64],
    picks: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    count = weights.shape[2]
    arrival_times = np.empty((2, count), np.float64)
    order = np.empty((2, count), np.int64)
    # What is left of a side before its k-th arrival.
    remaining = np.zeros((2, count + 1), np.float64)
    sizes = np.zeros(2, np.int64)
    for i in range(weights.shape[1]):
        complete_sides = 0
        for side in range(2):
            sizes[side] = 0
            is_complete = True
            for k in range(count):
                if probabilities[side, i, k] > 0.0:
                    sizes[side] += 1
                    is_complete = is_complete and probabilities[side, i, k] == 1.0
            size = sizes[side]
            side_key = derive(derive(key, np.uint64(i)), np.uint64(side))
            remaining[side, size] = 0.0
            if is_complete:
                complete_sides += 1
                # All that the side has, in no drawn order: each edge comes at a time of its own.
                for k in range(size):
                    arrival_times[side, k] = (
                        -log(unit_float(word(side_key, np.uint64(k)))) / weights[side, i, k]
                    )
                order[side, :size] = np.argsort(arrival_times[side, :size], kind="mergesort")
                arrival_times[side, :size] = arrival_times[side, :size][order[side, :size]]
                for k in range(size - 1, -1, -1):
                    remaining[side, k] = remaining[side, k + 1] + weights[side, i, order[side, k]]
            else:
                # Successive draws: between two of them passes an exponential time of the rate of
                # what was left.
                elapsed = 0.0
                for k in range(size):
                    remaining[side, k] = weights[side, i, k] / probabilities[side, i, k]
                    elapsed += -log(unit_float(word(side_key, np.uint64(k)))) / remaining[side, k]
                    arrival_times[side, k], order[side, k] = elapsed, k
        if complete_sides == 2 and sizes[0] + sizes[1] <= count:
            for k in range(sizes[0] + sizes[1]):
                picks[i, k] = k if k < sizes[0] else count + k - sizes[0]
                out[i, k] = 1.0
            continue
        a, b = 0, 0
        for k in range(min(count, sizes[0] + sizes[1])):
            remaining_total = remaining[0, a] + remaining[1, b]
            side = (
                0
                if b == sizes[1] or (a < sizes[0] and arrival_times[0, a] <= arrival_times[1, b])
                else 1
            )
            index = order[side, a if side == 0 else b]
            picks[i, k] = side * count + index
            out[i, k] = min(weights[side, i, index] / remaining_total, 1.0)
            if side == 0:
                a += 1
            else:
                b += 1


def merge_directions(
    key: np.uint64,
    weights: NDArray[np.float64],
    probabilities: NDArray[np.float64],
    *,
    replace: bool,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Draws of nodes' edges of both directions, made of draws of each.

    Parameters
    ----------
    key : uint64
        ``key_of(seed, rng.SIDE, hop)``.
    weights : float64[2, m, count]
        Of the edges that were drawn along and against; all 1 of uniform draws.
    probabilities : float64[2, m, count]
        Of these draws, as `sample_neighbors` gives them; 0 where there is none.
    replace : bool
        As both were drawn.

    Returns
    -------
    picks : int64[m, count]
        Draw k along has number k, draw k against ``count + k``; -1 where there are no more.
    probabilities : float64[m, count]
        Of each among the edges of both, without replacement given the earlier ones; all 1 where a
        node gives all that it has, in the order of its edges, those along before those against.

    Notes
    -----
    What a side weighs, or what its earlier draws left of it, is the weight of a draw over its
    probability. With replacement each draw takes a side by that; draw k of node i depends on i and
    k alone. Without, the sides race: successive draws are the arrivals of exponential clocks in
    their order (Efraimidis & Spirakis 2006), and a minimum of clocks does not tell which it was, so
    that times between the draws of a side, each of the rate that was left, are drawn by themselves.
    The ``count`` first of both sides are successive draws from both."""
    _, m, count = weights.shape
    picks, out = np.full((m, count), -1, np.int64), np.zeros((m, count), np.float64)
    if count:
        (_merge_with_replacement if replace else _merge_without_replacement)(
            np.uint64(key), as_kernel_array(weights), as_kernel_array(probabilities), picks, out
        )
    return picks, out
