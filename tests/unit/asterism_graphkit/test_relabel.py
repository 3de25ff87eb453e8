"""Tests of relabeling by first appearance, against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism_graphkit.relabel import relabel as relabel_module
from asterism_graphkit.relabel.relabel import Relabeling, relabel, tree_positions


@settings(deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(-1, 30), st.integers(0, 2)), max_size=20), max_size=4),
    st.booleans(),
)
def test_nodes_are_numbered_by_first_appearance(
    batches: list[list[tuple[int, int]]], apart: bool
) -> None:
    relabeling, expected = Relabeling(), dict[tuple[int, int], int]()
    for batch in batches:
        ids, trees = (
            np.array([i for i, _ in batch], np.int64),
            np.array([t for _, t in batch], np.int32),
        )
        numbers = relabeling.assign(ids, trees if apart else None)
        assert numbers.tolist() == [
            expected.setdefault((i, t if apart else 0), len(expected)) if i >= 0 else -1
            for i, t in batch
        ]
    assert list(zip(relabeling.ids.tolist(), relabeling.trees.tolist(), strict=True)) == list(
        expected
    )


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([3, 70, 5000, 70_000, 1 << 40]), st.integers(0, 400), st.integers(0, 9)
        ),
        max_size=7,
    )
)
def test_dense_and_sparse_ids_are_numbered_alike(batches: list[tuple[int, int, int]]) -> None:
    """Relabeling by bitset and by hash alternate, over several relabelings that share buffers."""
    for repeat in range(2):
        with Relabeling.pooled(2) as (relabeling, other):
            expected: dict[int, int] = {}
            for width, size, seed in batches:
                ids = np.random.default_rng([seed, repeat]).integers(-1, width, size)
                numbers = relabeling.assign(ids)
                assert numbers.tolist() == [
                    expected.setdefault(i, len(expected)) if i >= 0 else -1 for i in ids.tolist()
                ]
                assert other.assign(ids[:3]).max(initial=-1) < 3 * len(batches)
            assert relabeling.ids.tolist() == list(expected)
            assert relabeling.trees.tolist() == [0] * len(expected)


def test_numbers_stay_the_same_as_the_relabeling_grows() -> None:
    rng = np.random.default_rng(3)
    ids = rng.integers(0, 2**62, 50_000)
    ids = np.concatenate([ids, ids[::-1], np.arange(2000)])
    relabeling = Relabeling()
    numbers = np.concatenate([relabeling.assign(piece) for piece in np.array_split(ids, 7)])
    first, inverse = np.unique(ids, return_index=True)[1], np.unique(ids, return_inverse=True)[1]
    order = np.argsort(np.argsort(first))
    assert np.array_equal(numbers, order[inverse])
    assert np.array_equal(relabeling.ids[numbers], ids)


def test_position_depends_on_tree_and_node_alone() -> None:
    trees, ids = np.repeat(np.arange(300, dtype=np.int32), 300), np.tile(np.arange(300), 300)
    positions = tree_positions(trees, ids)
    assert len(np.unique(positions)) == len(positions)
    assert np.array_equal(tree_positions(trees[::-1], ids[::-1]), positions[::-1])


@pytest.mark.parametrize("largest", [40, 1000, 1 << 62])
def test_array_is_numbered_with_and_without_slots(largest: int) -> None:
    ids = np.random.default_rng(largest).choice([*range(20), largest], 300)
    nodes, first = np.unique(ids, return_index=True)
    numbers, distinct = relabel(np.split(ids, [3, 3, 190]))
    assert distinct.tolist() == nodes[np.argsort(first)].tolist()
    assert [array.size for array in numbers] == [3, 0, 187, 110]
    assert np.array_equal(distinct[np.concatenate(numbers)], ids)
    empty_numbers, no_nodes = relabel([np.zeros(0, np.int64)])
    assert [len(*empty_numbers), len(no_nodes)] == [0, 0]


@pytest.mark.parametrize("spread", [1, 1 << 20])
@pytest.mark.parametrize("per_tree", [False, True])
def test_pieces_are_numbered_as_at_once(
    spread: int, per_tree: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint occurs at least once per piece of ids, and of nodes moved as a table grows."""
    rng = np.random.default_rng(5)
    ids = rng.integers(0, 30_000, 60_000) * spread
    trees = rng.integers(0, 3, ids.size).astype(np.int32) if per_tree else None
    expected = Relabeling()
    at_once = expected.assign(ids, trees)
    expected_numbers, expected_nodes = relabel([ids])
    monkeypatch.setattr(relabel_module, "_PIECE", 1000)
    # Tables start with 1 << 14 slots, and grow when a third of them is used.
    monkeypatch.setattr(relabel_module, "_buffer_pool", relabel_module._BufferPool())
    calls: list[int] = []
    relabeling = Relabeling()
    numbers = relabeling.assign(ids, trees, checkpoint=lambda: calls.append(1))
    assert numbers.tobytes() == at_once.tobytes()
    assert relabeling.ids.tobytes() == expected.ids.tobytes()
    assert relabeling.trees.tobytes() == expected.trees.tobytes()
    moved = 0 if spread == 1 and not per_tree else (1 << 14) // 3 + (1 << 15) // 3
    assert len(calls) >= (ids.size + moved) // 1000 - 1
    calls.clear()
    piecewise_numbers, piecewise_nodes = relabel([ids], lambda: calls.append(1))
    assert piecewise_numbers[0].tobytes() == expected_numbers[0].tobytes()
    assert piecewise_nodes.tobytes() == expected_nodes.tobytes()
    assert len(calls) >= ids.size // 1000
