"""Forward push of personalized PageRank, in rounds.

In each round the nodes of the frontier push their residual mass to their neighbors.
"""

from __future__ import annotations

from typing import NamedTuple

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
    """Settle the share alpha of the residuals of a frontier, and return what is left to push.

    Parameters
    ----------
    frontier : int64[f]
        Indices of (start, node) pairs.
    nodes : int64[pairs]
        Node of each pair, by local id.
    masses : float64[nodes]
        Total weight of the edges of each node. At a node with 0 all mass settles.
    alpha : float
        Probability that a walk ends at a node.
    scores, residuals : float64[pairs], inout
        Settled and unsettled mass of each pair. The residuals of the frontier are 0 afterwards.

    Returns
    -------
    float64[f]
        Mass to push per unit of edge weight.
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


class NodeEdges(NamedTuple):
    """Edges of n nodes by local id."""

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    """The edges of node i are ``begins[i]`` to ``ends[i]``; both int64[n]."""
    neighbors: NDArray[np.int32]
    """Local id of each neighbor; int32[e]."""
    weights: NDArray[np.float32]
    """Weight of each edge, float32[e]; float32[0] if all weights are 1."""


@kernel
def _spread_mass(
    edges: NodeEdges,
    frontier: NDArray[np.int64],
    per_weight: NDArray[np.float64],
    starts: NDArray[np.int32],
    nodes: NDArray[np.int64],
    origins: NDArray[np.int32],
    targets: NDArray[np.int64],
    amounts: NDArray[np.float64],
) -> None:
    begins, ends, neighbors, weights = edges
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
    edges: NodeEdges,
    frontier: NDArray[np.int64],
    per_weight: NDArray[np.float64],
    starts: NDArray[np.int32],
    nodes: NDArray[np.int64],
    count: int,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
    """Spread the mass of a frontier over its edges.

    Parameters
    ----------
    edges : NodeEdges
    frontier : int64[f]
        Indices of pairs.
    per_weight : float64[f]
        Result of `absorb_residuals`.
    starts, nodes : int32[pairs], int64[pairs]
        Start and node of each pair.
    count : int
        Total number of edges of the frontier's nodes.

    Returns
    -------
    origins : int32[count]
        Start of the mass on each edge.
    targets : int64[count]
        Node that the edge leads to.
    amounts : float64[count]
        Mass on the edge.
    """
    origins, targets, amounts = (
        np.empty(count, np.int32),
        np.empty(count, np.int64),
        np.empty(count, np.float64),
    )
    _spread_mass(
        NodeEdges(
            as_kernel_array(edges.begins),
            as_kernel_array(edges.ends),
            as_kernel_array(edges.neighbors),
            as_kernel_array(edges.weights),
        ),
        as_kernel_array(frontier),
        as_kernel_array(per_weight),
        as_kernel_array(starts),
        as_kernel_array(nodes),
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
    """Add the mass that arrives at pairs to their residuals, in the order of the edges.

    Parameters
    ----------
    pairs : int32[edges]
        Pair at which the mass of each edge arrives.
    amounts : float64[edges]
    residuals : float64[pairs], inout
    rounds : int32[pairs], inout
        Last round in which mass arrived at each pair.
    round_number : int
        Number of this round.

    Returns
    -------
    int64[]
        Pairs that receive mass in this round, in the order of first arrival.
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
