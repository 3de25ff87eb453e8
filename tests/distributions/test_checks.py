"""Tests that run every distribution check on the compiled sampler at full size."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.distributions import checks, p_values
from tests.distributions.checks import independence
from tests.distributions.checks.basis import recording
from tests.mutants.catalogue import GROUPS, mutants_of


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__)
def test_check_accepts_the_sampler(check: Callable[[float], None]) -> None:
    check(3.0)


def test_every_check_is_in_the_suite() -> None:
    check_names = {
        name
        for name, value in vars(checks).items()
        if callable(value) and "scale" in getattr(value, "__annotations__", {})
    }
    assert check_names == {check.__name__ for check in checks.CHECKS}


def test_every_check_must_reject_a_mutant() -> None:
    check_names = {mutant.check for group in GROUPS for mutant in mutants_of(group)}
    assert check_names - {""} == {check.__name__ for check in checks.CHECKS}


def test_documentation_states_the_pairs_of_calls(root: Path) -> None:
    calls, single_calls = len(independence.CALLS), len(independence.SINGLE_CALLS)
    text = " ".join((root / "docs/distributions.md").read_text().split())
    assert f"any two of {calls} calls with one seed, {math.comb(calls, 2):,} pairs" in text
    assert f"1,200 seeds, {math.comb(single_calls, 2)} pairs" in text


def test_documentation_has_p_values_of_every_check(root: Path) -> None:
    text = (root / "docs/notes/correctness.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (?:[\d,]+|exact) \|", text, re.MULTILINE)
    names = {check.__name__ for check in checks.CHECKS}
    assert names <= set(rows)
    pairs, single_pairs = (
        f"{math.comb(len(calls), 2):,}" for calls in (independence.CALLS, independence.SINGLE_CALLS)
    )
    assert f"{pairs} chi-square tests" in text
    assert f"{single_pairs} pairs." in text


def test_statistics_are_recorded_within_a_block_only() -> None:
    with recording() as outer:
        with recording() as inner:
            checks.require_counts([510, 490], [500, 500], "fair")
        with pytest.raises(checks.Rejected):
            checks.require_counts([600, 400], [500, 500], "loaded")
    checks.require_counts([510, 490], [500, 500], "fair")
    assert [(test.label, test.samples, test.degrees) for test in outer] == [
        ("fair", 1000, 1),
        ("loaded", 1000, 1),
    ]
    assert inner == outer[:1]
    assert (round(inner[0].value, 3), round(inner[0].p, 3)) == (0.4, 0.527)
    assert p_values.row("some", outer) == "| some | 2 | 2,000 | 1 | 2.5e-10 | 0.26 |"
    assert p_values.row("others", []) == "| others | exact | | | | |"


def test_only_counts_that_are_off_are_rejected() -> None:
    checks.require_counts([510, 490], [500, 500], "fair")
    checks.require_counts([0, 1000], [0, 1000], "certain")
    with pytest.raises(checks.Rejected, match="chi-square"):
        checks.require_counts([600, 400], [500, 500], "loaded")
    with pytest.raises(checks.Rejected, match="impossible"):
        checks.require_counts([1, 999], [0, 1000], "impossible")
    with pytest.raises(checks.Rejected):
        checks.require_independent(np.tile([0, 1], 500), np.tile([1, 0], 500), 2, "alternating")
