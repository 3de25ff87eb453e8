"""Tests of shares of edges: exact decimals, and refused texts."""

from __future__ import annotations

from fractions import Fraction

import pytest

from asterism_model.fanout_fractions import parse_share, share_count
from asterism_proto.errors import InvalidRequest


@pytest.mark.parametrize(
    ("text", "edges", "count"),
    [
        ("0.1", 10, 1),
        ("0.1", 11, 2),
        ("0.1", 0, 0),
        ("0.07", 100, 7),  # 0.07 * 100 is 7.000000000000001 in floats
        ("0.3333333333333333", 3, 1),
        ("0.3333333333333334", 3, 2),
        ("1.0", 7, 7),
        ("5e-324", 1 << 62, 1),
        ("1e-05", 100_001, 2),
        (".5", 3, 2),
    ],
)
def test_a_share_is_exact_and_rounded_up(text: str, edges: int, count: int) -> None:
    assert share_count(parse_share("n", text), edges) == count


def test_shares_of_large_degrees_do_not_overflow() -> None:
    edges = 1 << 62
    count = -(-1234567890123456 * edges // 10**16)
    assert share_count(Fraction("0.1234567890123456"), edges) == count


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "0.0",
        "1.5",
        "2",
        "-0.1",
        "nan",
        "inf",
        "",
        " 0.1",
        "1/3",
        "٠.١",
        "1e-9999",
        "0." + "1" * 99,
    ],
)
def test_other_numbers_and_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"n=.*: expected a share of each node's edges"):
        parse_share("n", text)
