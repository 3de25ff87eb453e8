"""Tests of the descriptions of phases."""

from __future__ import annotations

import pytest

from asterism_model.job_phases import describe_phase


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("B2, B3", "alias table: compute thresholds"),
        ("fingerprints of part 7", "fingerprinting partition 7"),
        ("nodes item", "nodes item"),
        ("audits", "audits"),
        ("", ""),
    ],
)
def test_phases_are_described_in_usual_terms(phase: str, expected: str) -> None:
    assert describe_phase(phase) == expected
