"""Checks of neighbors without excluded edges: of copied nodes, and by rejected draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.distributions.checks.basis import require, require_counts, star_graph
from tests.distributions.checks.neighborhoods import order_probabilities, require_order_counts

from asterism_model.excluded_edges import ExcludedEdges
from storaged import sampling

WEIGHTS = (3.0, 1.0, 2.0, 0.0, 5.0, 1.0, 0.5, 4.0, 1.0, 2.0, 0.0, 3.0)
OTHERS = (2.0, 0.0, 6.0, 1.0, 1.0, 1.0, 8.0, 1.0)
EXCLUDED: tuple[tuple[int, int], ...] = ((0, 4), (0, 1), (1, 2))
"""Edge type and neighbor of the excluded edges."""


def _draw(
    weights_by_type: tuple[tuple[float, ...], ...],
    excluded: Sequence[tuple[int, int]],
    positions: int,
    count: int,
    *,
    reject: bool,
    replace: bool,
    uniform: bool,
) -> sampling.NeighborDraws:
    """Return draws from the edges of node 0 that are not excluded."""
    edge_types = list(range(len(weights_by_type)))
    types, neighbors = np.array(excluded, np.int64).T
    version = sampling.exclude_edges(
        star_graph(weights_by_type),
        ExcludedEdges(
            types=types.astype(np.int32),
            src=np.zeros(types.size, np.int64),
            dst=neighbors.copy(),
            eids=np.full(types.size, -1, np.int64),
        ),
        edge_types=edge_types,
        direction=1,
        rejection=sampling.RejectionParams(
            uniform=uniform, distinct=0 if replace else count, above=0
        )
        if reject
        else None,
    )
    require((version.rejected is not None) == reject, "the node is not handled as requested")
    arguments: dict[str, Any] = {
        "edge_types": edge_types,
        "node_type": 0,
        "ids": np.zeros(positions, np.int64),
        "positions": np.arange(positions),
        "count": count,
        "replace": replace,
        "uniform": uniform,
        "direction": 1,
        "seed": 61,
        "hop": 0,
        "want_weights": True,
        "want_edge_ids": True,
        "want_probabilities": True,
    }
    return sampling.sample_neighbors(version, **arguments)


def _remaining(
    weights_by_type: tuple[tuple[float, ...], ...],
    excluded: Sequence[tuple[int, int]],
    *,
    uniform: bool,
) -> list[list[float]]:
    """Return the weights of all edges, with 0 for the excluded ones."""
    remaining = [[1.0] * len(row) if uniform else list(row) for row in weights_by_type]
    for edge_type, neighbor in excluded:
        remaining[edge_type][neighbor] = 0.0
    return remaining


def excluded_edges_leave_the_other_weights(scale: float) -> None:
    """Neighbors follow the weights of the remaining edges at every position, also in a union.

    So do their reported probabilities.
    """
    n = int(max(150, 6000 * scale))
    for weights_by_type, excluded in (((WEIGHTS,), EXCLUDED[:2]), ((WEIGHTS, OTHERS), EXCLUDED)):
        for uniform in (False, True):
            remaining = _remaining(weights_by_type, excluded, uniform=uniform)
            width = max(map(len, remaining))
            shares = np.zeros((len(remaining), width))
            for edge_type, row in enumerate(remaining):
                shares[edge_type, : len(row)] = row
            shares /= shares.sum()
            for reject in (False, True):
                label = f"uniform={uniform}, reject={reject}, {len(remaining)} types"
                draws = _draw(
                    weights_by_type, excluded, n, 3, reject=reject, replace=True, uniform=uniform
                )
                types = 0 if draws.types is None else draws.types.astype(np.int64)
                cells = types * width + draws.ids
                for k in (0, 2):
                    require_counts(
                        np.bincount(cells[:, k], minlength=shares.size), shares.ravel() * n, label
                    )
                assert draws.probabilities is not None
                require(
                    bool(np.allclose(draws.probabilities, shares.ravel()[cells], rtol=1e-9)),
                    f"{label}: probabilities differ from the shares",
                )


def excluded_edges_leave_successive_draws(scale: float) -> None:
    """Every order of draws without replacement has its probability among the remaining edges."""
    n = int(max(700, 12_000 * scale))
    for count, excluded in ((1, EXCLUDED[:2]), (2, EXCLUDED[:1])):
        for uniform in (False, True):
            (weights,) = _remaining((WEIGHTS,), excluded, uniform=uniform)
            for reject in (False, True):
                draws = _draw(
                    (WEIGHTS,), excluded, n, count, reject=reject, replace=False, uniform=uniform
                )
                require_order_counts(
                    draws.ids,
                    weights,
                    f"{count} distinct, uniform={uniform}, reject={reject}",
                    order_probabilities,
                )
                assert draws.probabilities is not None
                outcomes = order_probabilities(weights, count)
                require(
                    bool(
                        np.allclose(
                            draws.probabilities.prod(axis=1),
                            [outcomes[tuple(row)] for row in draws.ids.tolist()],
                            rtol=1e-9,
                        )
                    ),
                    f"{count} distinct: probabilities differ from those of the orders",
                )
