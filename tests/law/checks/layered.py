"""Checks of layers: what candidates count, against exact fractions, and draws by that."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from tests.law.checks.basis import require, require_counts, require_independent

from graphkit import layers, rng

# Three nodes of a layer: (candidate, weight) of each edge; of node 1 two lead to candidate 0, and one of weight 0 to candidate 3.
EDGES = (((0, 1.0), (1, 2.0)), ((0, 3.0), (0, 2.0), (2, 4.0), (3, 0.0)), ((2, 1.0), (4, 7.0), (1, 0.5)))
CANDIDATES = 5


def _arrays(copies: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """indptr, numbers, weights and starts of that many layers of these three nodes."""
    indptr = np.cumsum([0, *([len(row) for row in EDGES] * copies)]).astype(np.int64)
    numbers = [copy * CANDIDATES + c for copy in range(copies) for row in EDGES for c, _ in row]
    weights = [w for row in EDGES for _, w in row] * copies
    return indptr, np.array(numbers, np.int32), np.array(weights, np.float32), np.arange(copies + 1, dtype=np.int64) * CANDIDATES


def _counted(measure: int, *, uniform: bool) -> list[float]:
    """What each candidate counts, from fractions."""
    out = []
    for candidate in range(CANDIDATES):
        rows = [sum((Fraction(1 if uniform else w) for c, w in row if c == candidate), Fraction(0)) for row in EDGES]
        out.append(float(sum(x * x for x in rows)) if measure == layers.SQUARES else float(sum(rows)))
    return [math.sqrt(x) for x in out] if measure == layers.SQRT else out


def candidates_count_what_their_edges_weigh(scale: float) -> None:
    """The sum, its root, and the sum of the layer's nodes' squares, to the last bit, of each of several layers."""
    indptr, numbers, weights, starts = _arrays(3)
    for measure, uniform in itertools.product((layers.SUM, layers.SQRT, layers.SQUARES), (False, True)):
        found = layers.pool(indptr, numbers, None if uniform else weights, measure, int(starts[-1]))
        require(
            found.tolist() == _counted(measure, uniform=uniform) * 3, f"measure {measure}, uniform {uniform}: candidates count {found[:5].tolist()}"
        )
    tiny = np.concatenate([[1.0], np.full(1000, 2.0**-30)]).astype(np.float32)
    found = layers.pool(np.array([0, 1001], np.int64), np.zeros(1001, np.int32), tiny, layers.SUM, 1)
    require(found[0] == 1.0 + 1000 * 2.0**-30, "small weights behind a large one are lost")


def layers_follow_what_candidates_count(scale: float) -> None:
    """Draws with replacement, with their probabilities; layers of one batch, and hops, are independent."""
    n = int(max(600, 20_000 * scale))
    indptr, numbers, weights, starts = _arrays(2)
    for measure in (layers.SUM, layers.SQRT, layers.SQUARES):
        counted = layers.pool(indptr, numbers, weights, measure, int(starts[-1]))
        shares = np.array(_counted(measure, uniform=False)) / sum(_counted(measure, uniform=False))
        chosen, probabilities = layers.draw(rng.key_of(7, rng.LAYER, 0), starts, counted, n, replace=True)
        both = chosen.reshape(2, n) - starts[:-1, None]
        for layer in range(2):
            require_counts(np.bincount(both[layer], minlength=CANDIDATES), shares * n, f"layer {layer} by measure {measure}")
        require(bool(np.allclose(probabilities, shares[both.ravel()], rtol=1e-14, atol=0)), "probabilities are not the shares")
        require_independent(both[0], both[1], CANDIDATES, "layers of a batch")
        following = layers.draw(rng.key_of(7, rng.LAYER, 1), starts, counted, n, replace=True)[0].reshape(2, n) - starts[:-1, None]
        require_independent(both[0], following[0], CANDIDATES, "layers of two hops")


def layers_without_replacement_are_successive_draws(scale: float) -> None:
    """Every order of draws comes as often as its probabilities multiply to; all candidates of positive weight come, and no other."""
    trials = int(max(800, 20_000 * scale))
    indptr, numbers, weights, starts = _arrays(1)
    counted = layers.pool(indptr, numbers, weights, layers.SUM, CANDIDATES)
    drawn = [layers.draw(rng.key_of(seed, rng.LAYER, 0), starts, counted, 3, replace=False) for seed in range(trials)]
    left = [c for c in range(CANDIDATES) if counted[c] > 0]
    orders = list(itertools.permutations(left, 3))
    expected = []
    for order in orders:
        rest, share = Fraction(sum(Fraction(counted[c]) for c in left)), Fraction(1)
        for c in order:
            share *= Fraction(counted[c]) / rest
            rest -= Fraction(counted[c])
        expected.append(float(share))
    places = {order: at for at, order in enumerate(orders)}
    seen = np.bincount([places[tuple(chosen.tolist())] for chosen, _ in drawn], minlength=len(orders))
    require_counts(seen, np.array(expected) * trials, "orders of a layer without replacement")
    for chosen, probabilities in drawn[:50]:
        product = math.prod(probabilities.tolist())
        require(abs(product / expected[places[tuple(chosen.tolist())]] - 1) < 1e-12, "the product of probabilities is not the order's")
    chosen, probabilities = layers.draw(rng.key_of(1, rng.LAYER, 0), starts, counted, 9, replace=False)
    require(sorted(chosen[:4].tolist()) == left and (chosen[4:] == -1).all(), f"a layer of all its candidates is {chosen.tolist()}")
    require(probabilities[3] == 1.0 and not probabilities[4:].any(), "the last candidate is not certain")
    first = layers.draw(rng.key_of(1, rng.LAYER, 0), starts, counted, 2, replace=False)[0]
    require(first.tolist() == chosen[:2].tolist(), "the first two of many are not the request for two")
