"""Checks of sampling from a node's edges of both directions as one population."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from tests.distributions.checks.basis import require, require_counts
from tests.kit.images import Edges, Nodes, version_of

from asterism_graphkit.operators import direction_merging
from asterism_graphkit.random import rng
from asterism_model.schema import EdgeType, NodeType, Schema
from storaged import sampling

STARS: Sequence[tuple[tuple[float, ...], tuple[float, ...], int]] = (
    ((1.0, 2.0, 3.0, 4.0), (0.5, 5.0, 1.0), 2),
    ((1.0, 2.0), (4.0, 1.0, 2.0, 3.0), 3),
    ((1.0, 2.0, 6.0), (2.0, 0.5), 3),
    ((0.0, 1.0, 2.0, 0.0), (0.0, 3.0), 2),
    ((0.9, 0.05, 0.03, 0.02), (), 2),
    ((), (1.0, 3.0), 1),
)
"""Weights of node 0's outgoing and incoming edges, and the number of samples."""


@cache
def _star(out: tuple[float, ...], incoming: tuple[float, ...]) -> sampling.LocalVersion:
    """Return a graph with edges 0, 1, .. from node 0, followed by those to it."""
    src, dst = (
        [0] * len(out) + list(range(1, len(incoming) + 1)),
        list(range(1, len(out) + 1)) + [0] * len(incoming),
    )
    types = (EdgeType(src_type="n", relation="to", dst_type="n", weighted=True),)
    edges = {
        "n:to:n": Edges(
            src=np.array(src), dst=np.array(dst), weights=np.array([*out, *incoming], np.float32)
        )
    }
    return version_of(
        Schema(node_types=(NodeType(name="n"),), edge_types=types, parts=1, direction="both"),
        {"n": Nodes(ids=np.arange(9))},
        edges,
    )


def _sample_both(
    out: tuple[float, ...],
    incoming: tuple[float, ...],
    seed: int,
    positions: int,
    count: int,
    *,
    uniform: bool,
    replace: bool,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return edge ids [positions, count] sampled from node 0, and their probabilities."""
    samples = [
        sampling.sample_neighbors(
            _star(out, incoming),
            edge_types=[0],
            node_type=0,
            ids=np.zeros(positions, np.int64),
            positions=np.arange(positions),
            count=count,
            replace=replace,
            uniform=uniform,
            direction=direction,
            seed=seed,
            hop=0,
            want_weights=True,
            want_edge_ids=True,
            want_probabilities=True,
        )
        for direction in (1, 2)
    ]
    # The request above wants both, so neither is None.
    probabilities = np.stack([side.probabilities for side in samples])  # type: ignore[misc]
    weights = (
        np.ones(probabilities.shape)
        if uniform
        else np.stack([side.weights for side in samples]).astype(np.float64)
    )  # type: ignore[misc]
    picks, merged = direction_merging.merge_directions(
        rng.key_of(seed, rng.BIDIRECTIONAL, 0),
        np.zeros(positions, np.int64),
        weights,
        probabilities,
        replace=replace,
    )
    eids = np.concatenate([side.eids for side in samples], axis=1)  # type: ignore[misc]
    return np.where(picks >= 0, np.take_along_axis(eids, np.maximum(picks, 0), axis=1), -1), merged


def _order_probabilities(weights: Sequence[float], count: int) -> dict[tuple[int, ...], float]:
    """Return the probability of every order of successive draws from all edges."""
    probabilities: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(count):
        extended: dict[tuple[int, ...], float] = {}
        for chosen, p in probabilities.items():
            remaining = [
                edge for edge in range(len(weights)) if edge not in chosen and weights[edge] > 0
            ]
            total = sum(weights[edge] for edge in remaining)
            for edge in remaining:
                extended[(*chosen, edge)] = p * weights[edge] / total
            if not remaining:
                extended[(*chosen, -1)] = p
        probabilities = extended
    return probabilities


def both_sides_without_replacement_are_successive_draws(scale: float) -> None:
    """Every order of edges of both directions has its frequency and its probabilities.

    A node with all edges returned has them in order.
    """
    n = int(max(600, 8_000 * scale))
    for number, (out, incoming, count) in enumerate(STARS):
        for uniform in (False, True):
            weights = [1.0] * (len(out) + len(incoming)) if uniform else [*out, *incoming]
            eids, probabilities = _sample_both(
                out, incoming, 71 + number, n, count, uniform=uniform, replace=False
            )
            expected, observed = (
                _order_probabilities(weights, count),
                Counter(map(tuple, eids.tolist())),
            )
            label = f"{count} of {out} and {incoming}, {'uniformly' if uniform else 'by weight'}"
            require(
                set(observed) <= set(expected),
                f"{label}: {list(set(observed) - set(expected))[:1]} is impossible",
            )
            keys = sorted(expected)
            require_counts(
                [observed[key] for key in keys], [expected[key] * n for key in keys], label
            )
            expected_products = np.array([expected[key] for key in map(tuple, eids.tolist())])
            require(
                bool(
                    np.allclose(
                        np.where(eids >= 0, probabilities, 1.0).prod(axis=1),
                        expected_products,
                        rtol=1e-12,
                    )
                ),
                f"{label}: other probabilities",
            )
    for uniform in (False, True):
        eids, probabilities = _sample_both(
            (0.0, 1.0), (3.0, 2.0), 5, 3, 9, uniform=uniform, replace=False
        )
        all_edges = [0, 1, 2, 3] if uniform else [1, 2, 3]
        require(
            eids.tolist() == [all_edges + [-1] * (9 - len(all_edges))] * 3,
            f"all of both sides: {eids[0].tolist()}",
        )
        require(
            probabilities.tolist() == [[1.0] * len(all_edges) + [0.0] * (9 - len(all_edges))] * 3,
            "probabilities of all that there is",
        )


def both_sides_with_replacement_follow_their_weights(scale: float) -> None:
    """Each draw follows the weights of both directions and reports its probability.

    A request for fewer draws returns a prefix.
    """
    n = int(max(600, 8_000 * scale))
    for number, (out, incoming, _) in enumerate(STARS):
        for uniform in (False, True):
            weights = np.ones(len(out) + len(incoming)) if uniform else np.array([*out, *incoming])
            eids, probabilities = _sample_both(
                out, incoming, 31 + number, n, 3, uniform=uniform, replace=True
            )
            label = f"of {out} and {incoming}, {'uniformly' if uniform else 'by weight'}"
            for k in range(3):
                require_counts(
                    np.bincount(eids[:, k], minlength=len(weights)),
                    weights / weights.sum() * n,
                    f"draw {k} {label}",
                )
            require(
                bool(np.allclose(probabilities, (weights / weights.sum())[eids], rtol=1e-12)),
                f"{label}: other probabilities",
            )
            fewer, _ = _sample_both(
                out, incoming, 31 + number, 60, 2, uniform=uniform, replace=True
            )
            require(
                bool((fewer == eids[:60, :2]).all()), f"{label}: 2 draws are not the first of 3"
            )
