from __future__ import annotations

import numpy as np
import pytest

from graphd.operators.without_replacement import (
    MAX_REPEATS,
    DistinctDraws,
    conditional_probabilities,
    smallest_key_rows,
)


def stream(ids: np.ndarray) -> dict[str, np.ndarray]:
    ids = np.asarray(ids, np.int64)
    return {"ids": ids, "types": (ids % 2).astype(np.int32)}


def feed_blocks(ids: np.ndarray, block: int) -> DistinctDraws:
    draws = DistinctDraws("ids")
    for start in range(0, len(ids), block):
        draws.add(stream(ids[start : start + block]))
    return draws


def reference_draws(ids: np.ndarray) -> tuple[list[int], bool]:
    distinct: list[int] = []
    repeats = 0
    for value in ids.tolist():
        if value in distinct:
            repeats += 1
            if repeats > MAX_REPEATS:
                return distinct, True
        else:
            distinct.append(value)
            repeats = 0
    return distinct, False


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
@pytest.mark.parametrize("skew", [1.0, 4.0, 12.0])
def test_distinct_draws_equal_a_plain_loop_for_any_block(block: int, skew: float) -> None:
    ids = (np.random.default_rng(int(skew)).random(1000) ** skew * 300).astype(np.int64)
    distinct_draws = feed_blocks(ids, block)
    expected_ids, expected_exhausted = reference_draws(ids)
    assert distinct_draws.draws["ids"].tolist() == expected_ids
    assert (distinct_draws.draws["types"] == distinct_draws.draws["ids"] % 2).all()
    assert distinct_draws.exhausted == expected_exhausted


def test_stream_is_exhausted_after_one_repeat_too_many() -> None:
    enough = np.array([5] + [5] * MAX_REPEATS + [6])
    assert not feed_blocks(enough, 8).exhausted
    assert feed_blocks(enough, 8).draws["ids"].tolist() == [5, 6]
    too_many = np.array([5] + [5] * (MAX_REPEATS + 1) + [6])
    assert feed_blocks(too_many, 8).exhausted
    assert feed_blocks(too_many, 8).draws["ids"].tolist() == [5]


def test_equal_ids_of_two_types_are_two_draws() -> None:
    draws = DistinctDraws("ids")
    draws.add({"ids": np.array([4, 4, 4]), "types": np.array([0, 1, 0], np.int32)})
    assert draws.draws["ids"].tolist() == [4, 4]


def test_smallest_keys_of_all_hosts_win_and_ties_go_by_id() -> None:
    first_host = {
        "ids": np.array([9, 2]),
        "types": np.array([0, 0], np.int32),
        "keys": np.array([0.5, 0.7]),
    }
    second_host = {
        "ids": np.array([3, 4]),
        "types": np.array([0, 0], np.int32),
        "keys": np.array([0.1, 0.5]),
    }
    winners = smallest_key_rows([first_host, second_host], "ids", 3)
    assert winners["ids"].tolist() == [3, 4, 9]
    assert "keys" not in winners


def fail_if_called() -> float:
    raise AssertionError("a subtraction suffices to find what is left")


def test_remaining_weight_is_read_only_where_little_is_left() -> None:
    shares = np.array([0.5, 0.125, 0.0625])
    expected = [0.5, 0.125 / 0.5, 0.0625 / 0.375]
    np.testing.assert_allclose(
        conditional_probabilities(
            shares, uniform=False, available=9, remaining_share=fail_if_called
        ),
        expected,
        rtol=1e-15,
    )
    heavy = np.array([0.75, 0.2])
    assert conditional_probabilities(
        heavy, uniform=False, available=3, remaining_share=lambda: 0.05
    ).tolist() == [0.75, 0.8]
    rest_calls = []
    conditional_probabilities(
        heavy, uniform=False, available=3, remaining_share=lambda: rest_calls.append(1) or 0.05
    )
    assert rest_calls == [1]


def test_last_of_all_rows_is_certain_without_a_request() -> None:
    shares = np.array([0.9, 1e-9, 0.1, 3e-20])
    probabilities = conditional_probabilities(
        shares, uniform=False, available=4, remaining_share=fail_if_called
    )
    np.testing.assert_allclose(probabilities, [0.9, 1e-8, 1.0, 1.0], rtol=1e-7)
    assert probabilities[3] == 1.0
    assert conditional_probabilities(
        np.full(3, 1 / 7), uniform=True, available=7, remaining_share=fail_if_called
    ).tolist() == [1 / 7, 1 / 6, 1 / 5]
    assert (
        conditional_probabilities(
            np.zeros(0), uniform=False, available=3, remaining_share=fail_if_called
        ).size
        == 0
    )
