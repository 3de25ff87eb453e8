"""Forward push: the mass that has come to some nodes and not settled goes on to their neighbors, a
whole round at a time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array, kernel


@kernel
def _absorb_residuals(
    frontier: NDArray[np.int64],
    nodes: NDArray[np.int64],
    masses: NDArray[np.float64],
    alpha: float,
    scores: NDArray[np.float64],
    residuals: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    for i in range(frontier.shape[0]):
        pair = frontier[i]
        mass, amount = masses[nodes[pair]], residuals[pair]
        residuals[pair] = 0.0
        scores[pair] += alpha * amount if mass > 0.0 else amount
        out[i] = (1.0 - alpha) * amount / mass if mass > 0.0 else 0.0


def absorb_residuals(
    frontier: NDArray[np.int64],
    nodes: NDArray[np.int64],
    masses: NDArray[np.float64],
    alpha: float,
    scores: NDArray[np.float64],
    residuals: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Settle a share alpha of what the pairs of a front hold back, and give what each unit of
    weight of their edges carries on.

    Parameters
    ----------
    frontier : int64[f]
        Pairs of a start and a node.
    nodes : int64[pairs]
        The node of each pair, by number.
    masses : float64[nodes]
        What the edges of each node weigh together; nothing leads on from one of 0, where all
        settles.
    alpha : float
    scores, residuals : float64[pairs], inout
        What has settled at each pair, and what has not; the residuals of the front are 0
        afterwards.

    Returns
    -------
    float64[f]
    """
    out = np.empty(len(frontier), np.float64)
    _absorb_residuals(
        as_kernel_array(frontier),
        as_kernel_array(nodes),
        as_kernel_array(masses),
        float(alpha),
        scores,
        residuals,
        out,
    )
    return out


@kernel
def _spread_mass(
    frontier: NDArray[np.int64],
    per_weight: NDArray[np.float64],
    starts: NDArray[np.int32],
    nodes: NDArray[np.int64],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    neighbors: NDArray[np.int32],
    weights: NDArray[np.float32],
    origins: NDArray[np.int32],
    targets: NDArray[np.int64],
    amounts: NDArray[np.float64],
) -> None:
    position, weighted = np.int64(0), weights.shape[0] > 0
    for i in range(frontier.shape[0]):
        node, start = nodes[frontier[i]], starts[frontier[i]]
        for e in range(begins[node], ends[node]):
            origins[position], targets[position] = start, neighbors[e]
            amounts[position] = (
                per_weight[i] * np.float64(weights[e]) if weighted else per_weight[i]
            )
            position += 1


def spread_mass(
    frontier: NDArray[np.int64],
    per_weight: NDArray[np.float64],
    starts: NDArray[np.int32],
    nodes: NDArray[np.int64],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    neighbors: NDArray[np.int32],
    weights: NDArray[np.float32],
    edges: int,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
    """What the edges of a front carry on, edge by edge.

    Parameters
    ----------
    frontier : int64[f]
    per_weight : float64[f]
        From `absorb_residuals`.
    starts, nodes : int32[pairs], int64[pairs]
        The start and the node of each pair.
    begins, ends : int64[nodes]
        Where the neighbors of each node are.
    neighbors, weights : int32[], float32[]
        The number of each neighbor, and the weight of the edge to it; no weights: 1 each.
    edges : int
        Of all nodes of the front together.

    Returns
    -------
    of : int32[edges]
        The start.
    to : int64[edges]
        The node that is reached.
    amounts : float64[edges]
    """
    origins, targets, amounts = (
        np.empty(edges, np.int32),
        np.empty(edges, np.int64),
        np.empty(edges, np.float64),
    )
    _spread_mass(
        as_kernel_array(frontier),
        as_kernel_array(per_weight),
        as_kernel_array(starts),
        as_kernel_array(nodes),
        as_kernel_array(begins),
        as_kernel_array(ends),
        as_kernel_array(neighbors),
        as_kernel_array(weights),
        origins,
        targets,
        amounts,
    )
    return origins, targets, amounts


@kernel
def _add_arrivals(
    pairs: NDArray[np.int32],
    amounts: NDArray[np.float64],
    residuals: NDArray[np.float64],
    rounds: NDArray[np.int32],
    round_number: np.int32,
    reached: NDArray[np.int64],
) -> int:
    count = 0
    for e in range(pairs.shape[0]):
        pair = pairs[e]
        residuals[pair] += amounts[e]
        if rounds[pair] != round_number:
            rounds[pair] = round_number
            reached[count] = pair
            count += 1
    return count


def add_arrivals(
    pairs: NDArray[np.int32],
    amounts: NDArray[np.float64],
    residuals: NDArray[np.float64],
    rounds: NDArray[np.int32],
    round_number: int,
) -> NDArray[np.int64]:
    """Add what arrives at pairs to what they hold back, in the order of the edges.

    Parameters
    ----------
    pairs : int32[edges]
    amounts : float64[edges]
    residuals : float64[pairs], inout
    rounds : int32[pairs], inout
        The last round in which something arrived at each pair.
    round_number : int
        The number of this round.

    Returns
    -------
    int64[]
        The pairs at which something arrives for the first time in this round, in that order.
    """
    reached = np.empty(len(pairs), np.int64)
    count = int(
        _add_arrivals(
            as_kernel_array(pairs),
            as_kernel_array(amounts),
            residuals,
            rounds,
            np.int32(round_number),
            reached,
        )
    )
    return reached[:count].copy()
