"""Tests of epochs: every number occurs once, for any ranks, stops and resumptions."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import asterism
from asterism import permutations
from asterism.calls.epoch_cursor import EpochCursor
from asterism_graphkit.random import rng


def take_all(cursor: EpochCursor, batch: int = 70) -> list[int]:
    numbers: list[int] = []
    while cursor.left:
        numbers += cursor.take(batch).tolist()
    return numbers


@settings(deadline=None)
@given(st.integers(0, 300), st.integers(0, 2**64 - 1), st.integers(1, 7), st.integers(0, 3))
def test_all_ranks_together_visit_every_number_once_an_epoch(
    size: int, seed: int, world: int, epoch: int
) -> None:
    cursors = [
        EpochCursor(size, seed=seed, rank=rank, world=world, epoch=epoch) for rank in range(world)
    ]
    shares = [take_all(cursor) for cursor in cursors]
    assert Counter(number for share in shares for number in share) == Counter(range(size))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    for cursor in cursors:
        cursor.next_epoch()
    assert Counter(number for cursor in cursors for number in take_all(cursor)) == Counter(
        range(size)
    )


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(0, 99), st.integers(1, 5), st.data())
def test_resharding_visits_exactly_the_remaining_numbers(
    size: int, seed: int, world: int, data: st.DataObject
) -> None:
    cursors = [EpochCursor(size, seed=seed, rank=rank, world=world) for rank in range(world)]
    visited: list[int] = []
    for _ in range(data.draw(st.integers(0, 3))):
        positions = []
        for cursor in cursors:
            if cursor.left:
                positions.append(cursor.next_place())
            visited += cursor.take(data.draw(st.integers(0, 20))).tolist()
        assert len(set(positions)) == len(positions)
        states = [json.loads(json.dumps(cursor.state_dict())) for cursor in cursors]
        world = data.draw(st.integers(1, 5))
        cursors = [
            EpochCursor.resharded(states[::-1], rank=rank, world=world) for rank in range(world)
        ]
        assert max(cursor.left for cursor in cursors) - min(cursor.left for cursor in cursors) <= 1
    visited += [number for cursor in cursors for number in take_all(cursor)]
    assert Counter(visited) == Counter(range(size))
    for cursor in cursors:
        cursor.next_epoch()
    assert Counter(number for cursor in cursors for number in take_all(cursor)) == Counter(
        range(size)
    )


def test_cursor_resumes_from_its_saved_state() -> None:
    cursor = EpochCursor(1000, seed=4, rank=1, world=3)
    cursor.take(100)
    state = json.loads(json.dumps(cursor.state_dict()))
    remaining = take_all(cursor)
    resumed = EpochCursor(1000, seed=0)
    resumed.load_state_dict(state)
    assert take_all(resumed, batch=50) == remaining
    assert len(remaining) == 333 - 100


def test_orders_differ_by_epoch_and_seed() -> None:
    orders = [
        EpochCursor(500, seed=seed, epoch=epoch).take(500).tolist()
        for seed in range(3)
        for epoch in range(3)
    ]
    assert len({tuple(order) for order in orders}) == 9
    assert EpochCursor(500, seed=2, epoch=1).take(500).tolist() == orders[7]


def test_first_positions_and_steps_are_uniform() -> None:
    size, trials = 24, 6000
    orders = np.array([EpochCursor(size, seed=seed).take(size) for seed in range(trials)])
    for position in (0, 1, size - 1):
        assert stats.chisquare(np.bincount(orders[:, position], minlength=size)).pvalue > 1e-4
    steps = (orders[:, 1] - orders[:, 0]) % size
    assert stats.chisquare(np.bincount(steps, minlength=size)[1:]).pvalue > 1e-4


def test_orders_of_few_numbers_are_uniform() -> None:
    orders = Counter(tuple(EpochCursor(4, seed=seed).take(4).tolist()) for seed in range(6000))
    assert len(orders) == 24
    assert stats.chisquare(list(orders.values())).pvalue > 1e-4


def test_many_numbers_come_once_in_another_order_each_epoch() -> None:
    cursors = [EpochCursor(70_001, seed=5, rank=rank, world=2) for rank in range(2)]
    first = np.concatenate([cursor.take(70_001) for cursor in cursors])
    assert np.array_equal(np.sort(first), np.arange(70_001))
    for cursor in cursors:
        cursor.next_epoch()
    second = np.concatenate([take_all(cursor, batch=9000) for cursor in cursors])
    assert np.array_equal(np.sort(second), np.arange(70_001))
    assert (first == second).mean() < 0.01


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(0, 2**64 - 1))
def test_permute_gives_a_permutation(size: int, key: int) -> None:
    assert sorted(permutations.permute(np.arange(size), size, key).tolist()) == list(range(size))


def test_a_large_size_takes_no_memory() -> None:
    cursor = EpochCursor(10**13, seed=1, rank=3, world=8)
    assert cursor.left == 10**13 // 8
    sample = cursor.take(1000)
    assert len(np.unique(sample)) == 1000
    assert 0 <= sample.min() <= 10**12 < sample.max() < 10**13
    assert len(json.dumps(cursor.state_dict())) < 300


def test_invalid_states_and_ranks_are_refused() -> None:
    states = [EpochCursor(10, seed=1, rank=rank, world=3).state_dict() for rank in range(3)]
    for invalid, message in (
        (states[:2], r"states of ranks \[0, 1\]: expected one state of ranks 0 to 2"),
        ([states[0], states[1], states[1]], r"ranks \[0, 1, 1\]"),
        ([], r"ranks \[\]"),
        (
            [*states[:2], EpochCursor(10, seed=1, rank=2, world=3, epoch=1).state_dict()],
            r"states with epoch=\[0, 0, 1\]",
        ),
        ([*states[:2], EpochCursor(11, seed=1, rank=2, world=3).state_dict()], "states with size="),
    ):
        with pytest.raises(asterism.InvalidRequest, match=message):
            EpochCursor.resharded(invalid, rank=0, world=1)
    with pytest.raises(asterism.InvalidRequest, match="rank=3"):
        EpochCursor(10, seed=1, rank=3, world=3)
    with pytest.raises(
        asterism.InvalidRequest, match="'size': 10}: expected the state of an epoch of 11 rows"
    ):
        EpochCursor(11, seed=1).load_state_dict(states[0])


def test_a_state_of_another_size_is_refused() -> None:
    cursor = EpochCursor(11, seed=1)
    with pytest.raises(asterism.InvalidRequest, match="expected the state of an epoch of 11 rows"):
        cursor.check_size(EpochCursor(10, seed=1).state_dict())
    cursor.check_size(EpochCursor(11, seed=2).state_dict())


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**32), max_size=3))
def test_keys_and_streams_match_those_of_the_services(seed: int, tags: list[int]) -> None:
    assert permutations.key_of(seed, *tags) == int(rng.key_of(seed, *tags))
    key = np.uint64(permutations.key_of(seed, *tags))
    assert permutations.key_stream(int(key), 3).tolist() == [
        int(rng.word(key, np.uint64(i))) for i in range(3)
    ]


def test_shuffles_are_uniform_permutations() -> None:
    assert sorted(permutations.shuffled_range(1000, 5).tolist()) == list(range(1000))
    assert permutations.shuffled_range(0, 5).size == 0
    orders = Counter(tuple(permutations.shuffled_range(4, seed).tolist()) for seed in range(6000))
    assert len(orders) == 24
    assert stats.chisquare(list(orders.values())).pvalue > 1e-4


def test_share_is_split_and_rejoined_at_any_position() -> None:
    share = EpochCursor(101, seed=4, rank=1, world=2, epoch=3)
    reference = EpochCursor(101, seed=4, rank=1, world=2, epoch=3)
    expected = reference.take(reference.left).tolist()
    visited = share.take(7).tolist()
    parts = share.split(3)
    assert sum(part.left for part in parts) == share.left == len(expected) - 7
    visited += [
        number
        for part, count in zip(parts, (4, 0, 9), strict=True)
        for number in part.take(count).tolist()
    ]
    rejoined = EpochCursor.resharded([part.state_dict() for part in parts], rank=0, world=1)
    assert (rejoined.epoch, rejoined.left) == (3, len(expected) - 20)
    for part in rejoined.split(2):
        visited += part.take(part.left).tolist()
    assert sorted(visited) == sorted(expected)
    assert share.left == len(expected) - 7
