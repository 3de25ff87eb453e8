from __future__ import annotations

import numpy as np
import pytest

from graphd.distinct import MAX_REPEATS, FirstSeen, given_earlier, race_winners


def stream(ids: np.ndarray) -> dict[str, np.ndarray]:
    ids = np.asarray(ids, np.int64)
    return {"ids": ids, "types": (ids % 2).astype(np.int32)}


def fed(ids: np.ndarray, block: int) -> FirstSeen:
    seen = FirstSeen("ids")
    for start in range(0, len(ids), block):
        seen.add(stream(ids[start : start + block]))
    return seen


def by_hand(ids: np.ndarray) -> tuple[list[int], bool]:
    found: list[int] = []
    repeats = 0
    for value in ids.tolist():
        if value in found:
            repeats += 1
            if repeats > MAX_REPEATS:
                return found, True
        else:
            found.append(value)
            repeats = 0
    return found, False


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
@pytest.mark.parametrize("skew", [1.0, 4.0, 12.0])
def test_first_appearances_are_those_of_a_plain_loop_whatever_the_blocks(block: int, skew: float) -> None:
    ids = (np.random.default_rng(int(skew)).random(1000) ** skew * 300).astype(np.int64)
    seen = fed(ids, block)
    found, given_up = by_hand(ids)
    assert seen.found["ids"].tolist() == found
    assert (seen.found["types"] == seen.found["ids"] % 2).all()
    assert seen.given_up == given_up


def test_the_stream_is_given_up_after_one_repeat_too_many_and_not_before() -> None:
    enough = np.array([5] + [5] * MAX_REPEATS + [6])
    assert not fed(enough, 8).given_up
    assert fed(enough, 8).found["ids"].tolist() == [5, 6]
    too_many = np.array([5] + [5] * (MAX_REPEATS + 1) + [6])
    assert fed(too_many, 8).given_up
    assert fed(too_many, 8).found["ids"].tolist() == [5]


def test_equal_ids_of_two_types_are_two_draws() -> None:
    seen = FirstSeen("ids")
    seen.add({"ids": np.array([4, 4, 4]), "types": np.array([0, 1, 0], np.int32)})
    assert seen.found["ids"].tolist() == [4, 4]


def test_the_smallest_keys_win_the_race_over_all_hosts_and_ties_go_by_id() -> None:
    one = {"ids": np.array([9, 2]), "types": np.array([0, 0], np.int32), "keys": np.array([0.5, 0.7])}
    two = {"ids": np.array([3, 4]), "types": np.array([0, 0], np.int32), "keys": np.array([0.1, 0.5])}
    won = race_winners([one, two], "ids", 3)
    assert won["ids"].tolist() == [3, 4, 9]
    assert "keys" not in won


def never() -> float:
    raise AssertionError("enough is left to tell by a subtraction")


def test_what_earlier_draws_left_is_asked_for_only_where_little_is_left() -> None:
    shares = np.array([0.5, 0.125, 0.0625])
    expected = [0.5, 0.125 / 0.5, 0.0625 / 0.375]
    np.testing.assert_allclose(given_earlier(shares, uniform=False, available=9, rest=never), expected, rtol=1e-15)
    heavy = np.array([0.75, 0.2])
    assert given_earlier(heavy, uniform=False, available=3, rest=lambda: 0.05).tolist() == [0.75, 0.8]
    asked = []
    given_earlier(heavy, uniform=False, available=3, rest=lambda: asked.append(1) or 0.05)
    assert asked == [1]


def test_the_last_of_all_rows_is_certain_and_nobody_is_asked_what_is_left() -> None:
    shares = np.array([0.9, 1e-9, 0.1, 3e-20])
    given = given_earlier(shares, uniform=False, available=4, rest=never)
    np.testing.assert_allclose(given, [0.9, 1e-8, 1.0, 1.0], rtol=1e-7)
    assert given[3] == 1.0
    assert given_earlier(np.full(3, 1 / 7), uniform=True, available=7, rest=never).tolist() == [1 / 7, 1 / 6, 1 / 5]
    assert given_earlier(np.zeros(0), uniform=False, available=3, rest=never).size == 0
