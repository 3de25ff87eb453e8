"""Epochs: every number once, whatever the ranks, however often they stop, and however many go on."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import asterism
from asterism import mixing
from asterism.epochs import EpochCursor
from graphkit import rng


def all_of(cursor: EpochCursor, batch: int = 70) -> list[int]:
    found: list[int] = []
    while cursor.left:
        found += cursor.take(batch).tolist()
    return found


@settings(deadline=None)
@given(st.integers(0, 300), st.integers(0, 2**64 - 1), st.integers(1, 7), st.integers(0, 3))
def test_all_ranks_together_visit_every_number_once_an_epoch(size: int, seed: int, world: int, epoch: int) -> None:
    cursors = [EpochCursor(size, seed=seed, rank=rank, world=world, epoch=epoch) for rank in range(world)]
    shares = [all_of(cursor) for cursor in cursors]
    assert Counter(number for share in shares for number in share) == Counter(range(size))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    for cursor in cursors:
        cursor.next_epoch()
    assert Counter(number for cursor in cursors for number in all_of(cursor)) == Counter(range(size))


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(0, 99), st.integers(1, 5), st.data())
def test_another_number_of_ranks_visits_exactly_what_was_left_again_and_again(size: int, seed: int, world: int, data: st.DataObject) -> None:
    cursors = [EpochCursor(size, seed=seed, rank=rank, world=world) for rank in range(world)]
    visited: list[int] = []
    for _ in range(data.draw(st.integers(0, 3))):
        places = []
        for cursor in cursors:
            if cursor.left:
                places.append(cursor.next_place())
            visited += cursor.take(data.draw(st.integers(0, 20))).tolist()
        assert len(set(places)) == len(places)
        states = [json.loads(json.dumps(cursor.state_dict())) for cursor in cursors]
        world = data.draw(st.integers(1, 5))
        cursors = [EpochCursor.resharded(states[::-1], rank=rank, world=world) for rank in range(world)]
        assert max(cursor.left for cursor in cursors) - min(cursor.left for cursor in cursors) <= 1
    visited += [number for cursor in cursors for number in all_of(cursor)]
    assert Counter(visited) == Counter(range(size))
    for cursor in cursors:
        cursor.next_epoch()
    assert Counter(number for cursor in cursors for number in all_of(cursor)) == Counter(range(size))


def test_a_cursor_goes_on_where_its_state_was_whatever_was_taken_since() -> None:
    cursor = EpochCursor(1000, seed=4, rank=1, world=3)
    cursor.take(100)
    state = json.loads(json.dumps(cursor.state_dict()))
    rest = all_of(cursor)
    again = EpochCursor(1000, seed=0)
    again.load_state_dict(state)
    assert all_of(again, batch=50) == rest
    assert len(rest) == 333 - 100


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    orders = [EpochCursor(500, seed=seed, epoch=epoch).take(500).tolist() for seed in range(3) for epoch in range(3)]
    assert len({tuple(order) for order in orders}) == 9
    assert EpochCursor(500, seed=2, epoch=1).take(500).tolist() == orders[7]


def test_first_places_follow_no_number_and_neighbors_no_neighbors() -> None:
    size, trials = 24, 6000
    orders = np.array([EpochCursor(size, seed=seed).take(size) for seed in range(trials)])
    for place in (0, 1, size - 1):
        assert stats.chisquare(np.bincount(orders[:, place], minlength=size)).pvalue > 1e-4
    steps = (orders[:, 1] - orders[:, 0]) % size
    assert stats.chisquare(np.bincount(steps, minlength=size)[1:]).pvalue > 1e-4


def test_few_numbers_come_in_every_order_alike() -> None:
    orders = Counter(tuple(EpochCursor(4, seed=seed).take(4).tolist()) for seed in range(6000))
    assert len(orders) == 24
    assert stats.chisquare(list(orders.values())).pvalue > 1e-4


def test_many_numbers_come_once_in_another_order_each_epoch() -> None:
    cursors = [EpochCursor(70_001, seed=5, rank=rank, world=2) for rank in range(2)]
    first = np.concatenate([cursor.take(70_001) for cursor in cursors])
    assert np.array_equal(np.sort(first), np.arange(70_001))
    for cursor in cursors:
        cursor.next_epoch()
    second = np.concatenate([all_of(cursor, batch=9000) for cursor in cursors])
    assert np.array_equal(np.sort(second), np.arange(70_001))
    assert (first == second).mean() < 0.01


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(0, 2**64 - 1))
def test_permutations_that_take_no_memory_are_permutations(size: int, key: int) -> None:
    assert sorted(mixing.permuted(np.arange(size), size, key).tolist()) == list(range(size))


def test_a_large_size_takes_no_memory() -> None:
    cursor = EpochCursor(10**13, seed=1, rank=3, world=8)
    assert cursor.left == 10**13 // 8
    some = cursor.take(1000)
    assert len(np.unique(some)) == 1000
    assert 0 <= some.min() <= 10**12 < some.max() < 10**13
    assert len(json.dumps(cursor.state_dict())) < 300


def test_what_makes_no_sense_is_refused() -> None:
    states = [EpochCursor(10, seed=1, rank=rank, world=3).state_dict() for rank in range(3)]
    for wrong, said in (
        (states[:2], r"states of ranks \[0, 1\]: expected one of every rank below 3"),
        ([states[0], states[1], states[1]], r"ranks \[0, 1, 1\]"),
        ([], r"ranks \[\]"),
        ([*states[:2], EpochCursor(10, seed=1, rank=2, world=3, epoch=1).state_dict()], r"different epoch: \[0, 0, 1\]"),
        ([*states[:2], EpochCursor(11, seed=1, rank=2, world=3).state_dict()], "different size"),
    ):
        with pytest.raises(asterism.InvalidRequest, match=said):
            EpochCursor.resharded(wrong, rank=0, world=1)
    with pytest.raises(asterism.InvalidRequest, match="rank 3"):
        EpochCursor(10, seed=1, rank=3, world=3)
    with pytest.raises(asterism.InvalidRequest, match="of 10 places, there are 11"):
        EpochCursor(11, seed=1).load_state_dict(states[0])


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**32), max_size=3))
def test_keys_and_words_are_those_of_the_services(seed: int, tags: list[int]) -> None:
    assert mixing.key_of(seed, *tags) == int(rng.key_of(seed, *tags))
    key = np.uint64(mixing.key_of(seed, *tags))
    assert mixing.words_of(int(key), 3).tolist() == [int(rng.word(key, np.uint64(i))) for i in range(3)]


def test_shuffles_are_permutations_in_every_order_alike() -> None:
    assert sorted(mixing.shuffled(1000, 5).tolist()) == list(range(1000))
    assert mixing.shuffled(0, 5).size == 0
    orders = Counter(tuple(mixing.shuffled(4, seed).tolist()) for seed in range(6000))
    assert len(orders) == 24
    assert stats.chisquare(list(orders.values())).pvalue > 1e-4


def test_a_share_is_split_and_put_together_again_wherever_it_is() -> None:
    share = EpochCursor(101, seed=4, rank=1, world=2, epoch=3)
    rest = EpochCursor(101, seed=4, rank=1, world=2, epoch=3)
    whole = rest.take(rest.left).tolist()
    seen = share.take(7).tolist()
    parts = share.split(3)
    assert sum(part.left for part in parts) == share.left == len(whole) - 7
    seen += [number for part, count in zip(parts, (4, 0, 9), strict=True) for number in part.take(count).tolist()]
    again = EpochCursor.resharded([part.state_dict() for part in parts], rank=0, world=1)
    assert (again.epoch, again.left) == (3, len(whole) - 20)
    for part in again.split(2):
        seen += part.take(part.left).tolist()
    assert sorted(seen) == sorted(whole)
    assert share.left == len(whole) - 7
