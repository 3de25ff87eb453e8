"""Checks of neighbor sampling with and without replacement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.distributions.checks.basis import (
    draw_star_neighbors,
    require,
    require_counts,
    weighted_nodes,
)

from storaged import sampling

NEIGHBORHOODS: Mapping[str, tuple[float, ...]] = {
    "halves": (0.6, 0.25, 0.08, 0.04, 0.03),
    "zeros": (0.0, 1.0, 2.0, 0.0, 3.0, 0.0),
    "even": (1.0,) * 5,
    "one": (1.0,),
    "heavy first": (90.0, 5.0, 5.0),
}


def neighbors_follow_their_weights(scale: float) -> None:
    """Neighbors with replacement follow their weights or are uniform, at every position.

    Draws are of one type and of a union.
    """
    n = int(max(150, 8000 * scale))
    for name, weights in NEIGHBORHOODS.items():
        shares = np.array(weights) / sum(weights)
        ids, _ = draw_star_neighbors((weights,), 21, n, 5)
        for k in (0, 4):
            require_counts(
                np.bincount(ids[:, k], minlength=len(weights)),
                shares * n,
                f"neighbor {k} of {name}",
            )
        ids, _ = draw_star_neighbors((weights,), 22, n, 4, uniform=True)
        require_counts(
            np.bincount(ids.ravel(), minlength=len(weights)),
            np.full(len(weights), ids.size / len(weights)),
            f"uniform of {name}",
        )
    weights_by_type = ((1.0, 2.0), (0.0, 0.0), (4.0, 0.0, 5.0))
    for uniform in (False, True):
        ids, types = draw_star_neighbors(weights_by_type, 23, n, 4, uniform=uniform)
        expected = np.zeros((3, 3))
        for t, type_weights in enumerate(weights_by_type):
            expected[t, : len(type_weights)] = 1 if uniform else type_weights
        require_counts(
            np.bincount((types * 3 + ids).ravel(), minlength=9),
            expected.ravel() / expected.sum() * ids.size,
            "a union of types",
        )


def order_probabilities(weights: Sequence[float], count: int) -> dict[tuple[int, ...], float]:
    """Return the probability of every outcome of ``count`` draws without replacement."""
    probabilities: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(count):
        extended: dict[tuple[int, ...], float] = {}
        for chosen, p in probabilities.items():
            remaining = [i for i, w in enumerate(weights) if i not in chosen and w > 0]
            total = sum(weights[i] for i in remaining)
            for i in remaining:
                extended[(*chosen, i)] = p * weights[i] / total
            if not remaining:
                extended[(*chosen, -1)] = p
        probabilities = extended
    return probabilities


def require_order_counts(
    samples: NDArray[np.int64],
    weights: Sequence[float],
    name: str,
    outcomes: Callable[[Sequence[float], int], dict[tuple[int, ...], float]],
) -> None:
    """Require the orders of draws to have the probabilities that ``outcomes`` gives."""
    expected = outcomes(weights, samples.shape[1])
    observed = Counter(map(tuple, samples.tolist()))
    impossible = [outcome for outcome in observed if outcome not in expected]
    require(not impossible, f"{name}: {impossible[:1]} is impossible")
    keys = sorted(expected)
    require_counts(
        [observed[key] for key in keys], [expected[key] * samples.shape[0] for key in keys], name
    )


def distinct_neighbors_are_successive_draws(scale: float) -> None:
    """Every ordered outcome without replacement has the probability of successive draws.

    There are up to 6 neighbors.
    """
    n = int(max(700, 20_000 * scale))
    cases = [
        ((1.0, 2.0, 3.0, 4.0), 2),
        ((1.0, 2.0, 3.0), 2),
        ((0.6, 0.25, 0.08, 0.04, 0.03, 0.0), 3),
        ((1.0,) * 6, 2),
        ((1.0, 0.0, 2.0, 0.0), 3),
    ]
    for weights, count in cases:
        ids, _ = draw_star_neighbors((weights,), 31, n, count, replace=False)
        require_order_counts(ids, weights, f"{count} distinct of {weights}", order_probabilities)
        ids, _ = draw_star_neighbors((weights,), 32, n, count, replace=False, uniform=True)
        require_order_counts(
            ids,
            (1.0,) * len(weights),
            f"{count} distinct of {len(weights)} uniformly",
            order_probabilities,
        )


def too_many_rejections_do_not_bias(scale: float) -> None:
    """Switching to exponential keys after rejections keeps earlier draws and adds no bias.

    The switch is frequent once a very heavy weight has been drawn.
    """
    n = int(max(6000, 30_000 * scale))
    weights = (0.95, 0.02, 0.02, 0.01)
    ids, _ = draw_star_neighbors((weights,), 33, n, 2, replace=False)
    require_order_counts(ids, weights, "2 distinct beside a heavy one", order_probabilities)
    more, _ = draw_star_neighbors((weights,), 33, n // 4, 3, replace=False)
    require_order_counts(more, weights, "3 distinct beside a heavy one", order_probabilities)
    require(
        bool((more[:, :2] == ids[: n // 4]).all()),
        "the first 2 of 3 distinct neighbors are not the request for 2",
    )


def unions_without_replacement_are_successive_draws(scale: float) -> None:
    """Unions of edge types without replacement follow successive draws."""
    n = int(max(400, 20_000 * scale))
    weights_by_type = ((1.0, 2.0), (3.0, 0.0, 4.0))
    all_weights = (1.0, 2.0, 0.0, 3.0, 0.0, 4.0)
    for uniform in (False, True):
        ids, types = draw_star_neighbors(weights_by_type, 34, n, 2, replace=False, uniform=uniform)
        weights = (1.0, 1.0, 0.0, 1.0, 1.0, 1.0) if uniform else all_weights
        require_order_counts(types * 3 + ids, weights, "2 distinct of a union", order_probabilities)


def complete_neighborhoods_are_in_order(scale: float) -> None:
    """A request for all neighbors returns them in adjacency order, then nothing.

    Weighted draws return those of positive weight, uniform draws all.
    """
    del scale
    weights = (0.0, 1.0, 2.0, 0.0, 3.0)
    for count in (5, 8):
        ids, _ = draw_star_neighbors((weights,), 35, 3, count, replace=False)
        require(
            bool((ids == [1, 2, 4] + [-1] * (count - 3)).all()),
            f"all of positive weight are drawn as {ids[0].tolist()}",
        )
        ids, _ = draw_star_neighbors((weights,), 35, 3, count, replace=False, uniform=True)
        require(
            bool((ids == [0, 1, 2, 3, 4] + [-1] * (count - 5)).all()),
            f"all are drawn as {ids[0].tolist()}",
        )
    for replace in (True, False):
        for count in (1, 3):
            ids, _ = draw_star_neighbors(((0.0, 0.0),), 36, 2, count, replace=replace)
            require(
                bool((ids == -1).all()), "a node with weights of only 0 has neighbors by weight"
            )


def exponential_keys_give_successive_draws(scale: float) -> None:
    """Global exponential-key selection equals successive draws without replacement.

    Excluded nodes do not occur.
    """
    trials = int(max(500, 10_000 * scale))
    weights = (1.0, 4.0, 2.0, 0.0, 3.0)
    version = weighted_nodes(weights, 2)
    excluded, types = np.array([1]), np.zeros(1, np.int32)
    request: dict[str, Any] = {
        "types": [0],
        "parts": [0, 1],
        "count": 2,
        "taken_ids": excluded,
        "taken_types": types,
    }
    samples = np.array(
        [
            sampling.sample_distinct_nodes(version, seed=seed, **request).ids
            for seed in range(trials)
        ]
    )
    require_order_counts(
        samples, (1.0, 0.0, 2.0, 0.0, 3.0), "a race over nodes", order_probabilities
    )
