"""Checks of layer-wise sampling: measures of candidates by exact fractions, and draws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from tests.distributions.checks.basis import require, require_counts, require_independent

from asterism_graphkit.operators import layers
from asterism_graphkit.random import rng

# Three nodes of a layer: (candidate, weight) of each edge. Node 1 has two edges to candidate 0, and
# one of weight 0 to candidate 3.
EDGES = (
    ((0, 1.0), (1, 2.0)),
    ((0, 3.0), (0, 2.0), (2, 4.0), (3, 0.0)),
    ((2, 1.0), (4, 7.0), (1, 0.5)),
)
CANDIDATES = 5


def _arrays(copies: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return indptr, numbers, weights and starts of ``copies`` layers of these three nodes."""
    indptr = np.cumsum([0, *([len(row) for row in EDGES] * copies)]).astype(np.int64)
    numbers = [copy * CANDIDATES + c for copy in range(copies) for row in EDGES for c, _ in row]
    weights = [w for row in EDGES for _, w in row] * copies
    return (
        indptr,
        np.array(numbers, np.int32),
        np.array(weights, np.float32),
        np.arange(copies + 1, dtype=np.int64) * CANDIDATES,
    )


def _exact_measures(measure: int, *, uniform: bool) -> list[float]:
    """Return the measure of each candidate, by fractions."""
    out = []
    for candidate in range(CANDIDATES):
        rows = [
            sum((Fraction(1 if uniform else w) for c, w in row if c == candidate), Fraction(0))
            for row in EDGES
        ]
        out.append(
            float(sum(x * x for x in rows)) if measure == layers.SQUARES else float(sum(rows))
        )
    return [math.sqrt(x) for x in out] if measure == layers.SQRT else out


def layer_candidates_have_the_weight_of_their_edges(scale: float) -> None:
    """Measures are exact to the last bit in each of several layers.

    They are the sum, its root, and the sum of squares over the layer's nodes.
    """
    indptr, numbers, weights, starts = _arrays(3)
    for measure, uniform in itertools.product(
        (layers.SUM, layers.SQRT, layers.SQUARES), (False, True)
    ):
        measures = layers.candidate_measures(
            indptr, numbers, None if uniform else weights, measure, int(starts[-1])
        )
        require(
            measures.tolist() == _exact_measures(measure, uniform=uniform) * 3,
            f"measure {measure}, uniform {uniform}: candidates count {measures[:5].tolist()}",
        )
    tiny = np.concatenate([[1.0], np.full(1000, 2.0**-30)]).astype(np.float32)
    measures = layers.candidate_measures(
        np.array([0, 1001], np.int64), np.zeros(1001, np.int32), tiny, layers.SUM, 1
    )
    require(measures[0] == 1.0 + 1000 * 2.0**-30, "small weights after a large one are lost")


def layers_follow_candidate_weights(scale: float) -> None:
    """Draws with replacement follow the measures and report their probabilities.

    Layers of one batch, and hops, are independent.
    """
    n = int(max(600, 20_000 * scale))
    indptr, numbers, weights, starts = _arrays(2)
    for measure in (layers.SUM, layers.SQRT, layers.SQUARES):
        measures = layers.candidate_measures(indptr, numbers, weights, measure, int(starts[-1]))
        shares = np.array(_exact_measures(measure, uniform=False)) / sum(
            _exact_measures(measure, uniform=False)
        )
        chosen, probabilities = layers.draw(
            rng.key_of(7, rng.LAYER, 0), starts, measures, n, replace=True
        )
        chosen_by_layer = chosen.reshape(2, n) - starts[:-1, None]
        for layer in range(2):
            require_counts(
                np.bincount(chosen_by_layer[layer], minlength=CANDIDATES),
                shares * n,
                f"layer {layer} by measure {measure}",
            )
        require(
            bool(np.allclose(probabilities, shares[chosen_by_layer.ravel()], rtol=1e-14, atol=0)),
            "probabilities are not the shares",
        )
        require_independent(chosen_by_layer[0], chosen_by_layer[1], CANDIDATES, "layers of a batch")
        next_hop = (
            layers.draw(rng.key_of(7, rng.LAYER, 1), starts, measures, n, replace=True)[0].reshape(
                2, n
            )
            - starts[:-1, None]
        )
        require_independent(chosen_by_layer[0], next_hop[0], CANDIDATES, "layers of two hops")


def layers_without_replacement_are_successive_draws(scale: float) -> None:
    """Every order of draws has the product of its probabilities.

    All candidates of positive weight occur, and no others.
    """
    trials = int(max(800, 20_000 * scale))
    indptr, numbers, weights, starts = _arrays(1)
    measures = layers.candidate_measures(indptr, numbers, weights, layers.SUM, CANDIDATES)
    samples = [
        layers.draw(rng.key_of(seed, rng.LAYER, 0), starts, measures, 3, replace=False)
        for seed in range(trials)
    ]
    candidates = [c for c in range(CANDIDATES) if measures[c] > 0]
    orders = list(itertools.permutations(candidates, 3))
    expected = []
    for order in orders:
        remaining, share = Fraction(sum(Fraction(measures[c]) for c in candidates)), Fraction(1)
        for c in order:
            share *= Fraction(measures[c]) / remaining
            remaining -= Fraction(measures[c])
        expected.append(float(share))
    order_numbers = {order: number for number, order in enumerate(orders)}
    observed = np.bincount(
        [order_numbers[tuple(chosen.tolist())] for chosen, _ in samples], minlength=len(orders)
    )
    require_counts(observed, np.array(expected) * trials, "orders of a layer without replacement")
    for chosen, probabilities in samples[:50]:
        product = math.prod(probabilities.tolist())
        require(
            abs(product / expected[order_numbers[tuple(chosen.tolist())]] - 1) < 1e-12,
            "the product of probabilities is not the order's",
        )
    chosen, probabilities = layers.draw(
        rng.key_of(1, rng.LAYER, 0), starts, measures, 9, replace=False
    )
    require(
        sorted(chosen[:4].tolist()) == candidates and (chosen[4:] == -1).all(),
        f"a layer of all its candidates is {chosen.tolist()}",
    )
    require(
        probabilities[3] == 1.0 and not probabilities[4:].any(), "the last candidate is not certain"
    )
    first = layers.draw(rng.key_of(1, rng.LAYER, 0), starts, measures, 2, replace=False)[0]
    require(
        first.tolist() == chosen[:2].tolist(), "the first two of many are not the request for two"
    )
