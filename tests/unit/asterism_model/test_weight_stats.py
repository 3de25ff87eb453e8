from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from asterism_model.weight_stats import compute_weight_stats


def part_totals(weights: np.ndarray, **overrides: Any) -> Any:
    """Return the statistics that a build reports for one partition."""
    exact = weights.astype(np.float64)
    figures = {
        "count": exact.size,
        "positive": int((exact > 0).sum()),
        "weight": float(exact.sum()),
        "squares": float((exact**2).sum()),
    }
    largest = float(exact.max(initial=0))
    zeros = dict.fromkeys(("zero", "subnormal", "negative", "nan", "infinite", "underflow"), 0) | {
        "audit_tv": 0.0,
        "audit_rel": 0.0,
    }
    return SimpleNamespace(**{**zeros, **figures, "largest": largest, **overrides})


def test_stats_of_parts_merge_as_of_one_part() -> None:
    rng = np.random.default_rng(1)
    pieces = [rng.pareto(0.8, n) for n in (10, 1000, 3)]
    all_weights = np.concatenate(pieces)
    stats = compute_weight_stats(part_totals(piece, zero=1, nan=2) for piece in pieces)
    assert (stats.count, stats.zero, stats.nan) == (1013, 3, 6)
    assert stats.effective == pytest.approx(
        all_weights.sum() ** 2 / (all_weights**2).sum(), rel=1e-14
    )
    assert stats.largest_share == pytest.approx(all_weights.max() / all_weights.sum(), rel=1e-14)


def test_effective_size_of_equal_and_dominant_weights() -> None:
    assert compute_weight_stats(
        [part_totals(np.full(500, 0.5)), part_totals(np.full(250, 0.5))]
    ).effective == pytest.approx(750)
    dominated = compute_weight_stats([part_totals(np.array([1e30])), part_totals(np.ones(10**6))])
    assert dominated.effective == pytest.approx(1)
    assert dominated.largest_share == pytest.approx(1)


def test_error_bound_weighs_parts_by_their_weight() -> None:
    stats = compute_weight_stats(
        [
            part_totals(np.full(10, 9.0), audit_tv=1e-12),
            part_totals(np.full(10, 1.0), audit_tv=1e-10),
        ]
    )
    assert stats.error_bound == pytest.approx(
        0.9e-12 + 0.1e-10 + 10 * 2.0**-64 + 2 * 2.0**-52, rel=1e-12
    )
    assert stats.audit_tv == 1e-10


def test_empty_or_unknown_weights_have_no_effective_size() -> None:
    assert compute_weight_stats([]).effective is None
    assert compute_weight_stats([part_totals(np.zeros(3))]).largest_share is None
    assert (
        compute_weight_stats([part_totals(np.ones(3), squares=0.0, largest=0.0)]).effective is None
    )
