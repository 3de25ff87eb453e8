"""Numbers by first appearance, against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkit.numbering import Numbering, numbered, paths


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(-1, 30), st.integers(0, 2)), max_size=20), max_size=4), st.booleans())
def test_nodes_are_numbered_in_the_order_in_which_they_come(batches: list[list[tuple[int, int]]], apart: bool) -> None:
    numbering, known = Numbering(), dict[tuple[int, int], int]()
    for batch in batches:
        ids, trees = np.array([i for i, _ in batch], np.int64), np.array([t for _, t in batch], np.int32)
        found = numbering.assign(ids, trees if apart else None)
        assert found.tolist() == [known.setdefault((i, t if apart else 0), len(known)) if i >= 0 else -1 for i, t in batch]
    assert list(zip(numbering.ids.tolist(), numbering.trees.tolist(), strict=True)) == list(known)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.sampled_from([3, 70, 5000, 70_000, 1 << 40]), st.integers(0, 400), st.integers(0, 9)), max_size=7))
def test_ids_near_each_other_and_far_apart_are_numbered_alike(batches: list[tuple[int, int, int]]) -> None:
    """By bits and by hashes, one after the other in any order, over several numberings that use the same rooms."""
    for turn in range(2):
        with Numbering.several(2) as (numbering, other):
            known: dict[int, int] = {}
            for width, size, seed in batches:
                ids = np.random.default_rng([seed, turn]).integers(-1, width, size)
                found = numbering.assign(ids)
                assert found.tolist() == [known.setdefault(i, len(known)) if i >= 0 else -1 for i in ids.tolist()]
                assert other.assign(ids[:3]).max(initial=-1) < 3 * len(batches)
            assert numbering.ids.tolist() == list(known)
            assert numbering.trees.tolist() == [0] * len(known)


def test_numbering_grows_and_keeps_what_it_gave() -> None:
    rng = np.random.default_rng(3)
    ids = rng.integers(0, 2**62, 50_000)
    ids = np.concatenate([ids, ids[::-1], np.arange(2000)])
    numbering = Numbering()
    found = np.concatenate([numbering.assign(piece) for piece in np.array_split(ids, 7)])
    first, inverse = np.unique(ids, return_index=True)[1], np.unique(ids, return_inverse=True)[1]
    order = np.argsort(np.argsort(first))
    assert np.array_equal(found, order[inverse])
    assert np.array_equal(numbering.ids[found], ids)


def test_a_path_is_a_function_of_tree_and_node_alone() -> None:
    trees, ids = np.repeat(np.arange(300, dtype=np.int32), 300), np.tile(np.arange(300), 300)
    positions = paths(trees, ids)
    assert len(np.unique(positions)) == len(positions)
    assert np.array_equal(paths(trees[::-1], ids[::-1]), positions[::-1])


@pytest.mark.parametrize("largest", [40, 1000, 1 << 62])
def test_ids_of_one_array_are_numbered_with_slots_of_their_own_or_without(largest: int) -> None:
    ids = np.random.default_rng(largest).choice([*range(20), largest], 300)
    nodes, first = np.unique(ids, return_index=True)
    numbers, found = numbered(ids)
    assert found.tolist() == nodes[np.argsort(first)].tolist()
    assert np.array_equal(found[numbers], ids)
    assert [len(part) for part in numbered(np.zeros(0, np.int64))] == [0, 0]
