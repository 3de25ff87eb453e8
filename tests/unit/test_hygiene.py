from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from asterism_proto.hygiene import hygiene


def part(weights: np.ndarray, **more: Any) -> Any:
    """What a build reports of one part."""
    exact = weights.astype(np.float64)
    figures = {"count": exact.size, "positive": int((exact > 0).sum()), "weight": float(exact.sum()), "squares": float((exact**2).sum())}
    largest = float(exact.max(initial=0))
    zeros = dict.fromkeys(("zero", "subnormal", "negative", "nan", "infinite", "underflow"), 0) | {"audit_tv": 0.0, "audit_rel": 0.0}
    return SimpleNamespace(**{**zeros, **figures, "largest": largest, **more})


def test_parts_come_together_as_if_they_were_one() -> None:
    rng = np.random.default_rng(1)
    pieces = [rng.pareto(0.8, n) for n in (10, 1000, 3)]
    whole = np.concatenate(pieces)
    found = hygiene(part(piece, zero=1, nan=2) for piece in pieces)
    assert (found.count, found.zero, found.nan) == (1013, 3, 6)
    assert found.effective == pytest.approx(whole.sum() ** 2 / (whole**2).sum(), rel=1e-14)
    assert found.largest_share == pytest.approx(whole.max() / whole.sum(), rel=1e-14)


def test_equal_weights_are_as_many_as_they_are_and_one_giant_is_one() -> None:
    assert hygiene([part(np.full(500, 0.5)), part(np.full(250, 0.5))]).effective == pytest.approx(750)
    giant = hygiene([part(np.array([1e30])), part(np.ones(10**6))])
    assert giant.effective == pytest.approx(1)
    assert giant.largest_share == pytest.approx(1)


def test_the_error_bound_weighs_parts_by_what_they_hold() -> None:
    found = hygiene([part(np.full(10, 9.0), audit_tv=1e-12), part(np.full(10, 1.0), audit_tv=1e-10)])
    assert found.error_bound == pytest.approx(0.9e-12 + 0.1e-10 + 10 * 2.0**-64 + 2 * 2.0**-52, rel=1e-12)
    assert found.audit_tv == 1e-10


def test_what_holds_nothing_or_was_never_told_has_no_effective_size() -> None:
    assert hygiene([]).effective is None
    assert hygiene([part(np.zeros(3))]).largest_share is None
    assert hygiene([part(np.ones(3), squares=0.0, largest=0.0)]).effective is None
