"""Combine samples of outgoing and incoming edges into samples from both directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.fdlibm import log
from asterism_graphkit.compile.jit import as_kernel_array, kernel
from asterism_graphkit.random.rng import derive, derive_mixed, node_tag, unit_float, word


@kernel
def _merge_with_replacement(
    key: np.uint64,
    nodes: NDArray[np.int64],
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
        node_key = derive_mixed(key, node_tag(np.uint64(i), nodes[i], np.int64(0)))
        for k in range(count):
            side = 0 if unit_float(word(node_key, np.uint64(k))) < out_share else 1
            picks[i, k] = side * count + k
            out[i, k] = probabilities[side, i, k] * (out_share if side == 0 else 1.0 - out_share)


@kernel
def _merge_without_replacement(
    key: np.uint64,
    nodes: NDArray[np.int64],
    weights: NDArray[np.float64],
    probabilities: NDArray[np.float64],
    picks: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    count = weights.shape[2]
    arrival_times = np.empty((2, count), np.float64)
    order = np.empty((2, count), np.int64)
    # Weight that remains on a side before its k-th arrival.
    remaining = np.zeros((2, count + 1), np.float64)
    sizes = np.zeros(2, np.int64)
    for i in range(weights.shape[1]):
        complete_sides = 0
        node_key = derive_mixed(key, node_tag(np.uint64(i), nodes[i], np.int64(0)))
        for side in range(2):
            sizes[side] = 0
            is_complete = True
            for k in range(count):
                if probabilities[side, i, k] > 0.0:
                    sizes[side] += 1
                    is_complete = is_complete and probabilities[side, i, k] == 1.0
            size = sizes[side]
            side_key = derive(node_key, np.uint64(side))
            remaining[side, size] = 0.0
            if is_complete:
                complete_sides += 1
                # The sample has all edges of this side, in no random order: each edge gets an
                # independent arrival time.
                for k in range(size):
                    arrival_times[side, k] = (
                        -log(unit_float(word(side_key, np.uint64(k)))) / weights[side, i, k]
                    )
                order[side, :size] = np.argsort(arrival_times[side, :size], kind="mergesort")
                arrival_times[side, :size] = arrival_times[side, :size][order[side, :size]]
                for k in range(size - 1, -1, -1):
                    remaining[side, k] = remaining[side, k + 1] + weights[side, i, order[side, k]]
            else:
                # Successive draws: the time between two arrivals is exponential, with the remaining
                # weight as its rate.
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
    nodes: NDArray[np.int64],
    weights: NDArray[np.float64],
    probabilities: NDArray[np.float64],
    *,
    replace: bool,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Merge draws of outgoing and of incoming edges into draws from all edges of a node.

    Parameters
    ----------
    key : uint64
        ``key_of(seed, rng.BIDIRECTIONAL, hop)``.
    nodes : int64[m]
        Nodes that the edges start from.
    weights : float64[2, m, count]
        Weights of the edges drawn along the direction [0] and against it [1]; all 1 for uniform
        sampling.
    probabilities : float64[2, m, count]
        Probabilities of these draws, as `sample_neighbors` returns them; 0 where there is no draw.
    replace : bool
        Whether both samples were drawn with replacement.

    Returns
    -------
    picks : int64[m, count]
        k for draw k along the direction, ``count + k`` for draw k against it, -1 where there are no
        more draws.
    probabilities : float64[m, count]
        Probability of each draw among the edges of both directions. Without replacement it is
        conditional on the earlier draws. If the sample has all edges of a node, it is 1, and the
        edges come in their stored order, those along the direction first.

    Notes
    -----
    The weight of a side, or its weight after the earlier draws, is the weight of a draw divided by
    its probability. With replacement each draw chooses a side by these weights; draw k of node i
    depends on i, its id and k alone. Without replacement, successive draws are the arrivals of
    exponential clocks in their order (Efraimidis & Spirakis 2006). The minimum of the clocks is
    independent of which clock it was. So the times between the draws of a side are drawn
    independently, each with the remaining weight as its rate. The first ``count`` arrivals of both
    sides are successive draws from both.
    """
    _, m, count = weights.shape
    picks, out = np.full((m, count), -1, np.int64), np.zeros((m, count), np.float64)
    if count:
        (_merge_with_replacement if replace else _merge_without_replacement)(
            np.uint64(key),
            as_kernel_array(nodes),
            as_kernel_array(weights),
            as_kernel_array(probabilities),
            picks,
            out,
        )
    return picks, out
