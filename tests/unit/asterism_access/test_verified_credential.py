"""Tests of what credentials have in common: names of principals, and times in messages."""

from __future__ import annotations

import math

import pytest

from asterism_access.credentials.verified_credential import is_principal_name, utc_text


@pytest.mark.parametrize("name", ["a", "alice@example.com", "Ana María", "商店", "x" * 256, "**"])
def test_printable_names_are_names_of_principals(name: str) -> None:
    assert is_principal_name(name)


@pytest.mark.parametrize("name", ["", "*", " a", "a ", "a\nb", "a\0", "\u202e", "x" * 257])
def test_other_names_are_not(name: str) -> None:
    assert not is_principal_name(name)


def test_times_are_written_in_utc_whatever_they_are() -> None:
    assert utc_text(1_800_000_000.9) == "2027-01-15T08:00:00Z"
    assert utc_text(-5) == "1970-01-01T00:00:00Z"
    assert utc_text(math.inf) == utc_text(1e300) == "9999-12-31T23:59:59Z"
