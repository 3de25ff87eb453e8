"""Tests of local operations against loops over single elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import asterism
from asterism import ops
from asterism.records.samples import FanoutHop, FanoutSample, NeighborSample, WalkSample
from asterism_model.schema import EdgeType, NodeType, Schema

WALKS = arrays.arrays(
    np.int64, st.tuples(st.integers(0, 4), st.integers(0, 6)), elements=st.integers(-1, 9)
)


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=12),
    st.lists(st.integers(0, 4), max_size=6),
)
def test_sparse_gather_equals_a_dense_gather(
    scale: int, coordinates: list[tuple[int, int]], rows: list[int]
) -> None:
    indices = np.array(sorted(set(coordinates)), np.int64).reshape(-1, 2)[::-1]
    values = scale * (1 + np.arange(len(indices)))
    full = np.zeros((5, 4), np.int64)
    full[indices[:, 0], indices[:, 1]] = values
    gathered_indices, gathered_values, shape = ops.sparse_gather(rows, indices, values, (5, 4))
    out = np.zeros(shape, np.int64)
    out[gathered_indices[:, 0], gathered_indices[:, 1]] = gathered_values
    assert np.array_equal(out, full[np.array(rows, np.int64)])
    assert (np.diff(gathered_indices[:, 0]) >= 0).all()


@given(WALKS, st.integers(0, 7), st.integers(0, 7))
def test_pairs_lie_within_the_window_and_skip_padding(
    paths: np.ndarray, left: int, right: int
) -> None:
    expected = []
    for walk in paths.tolist():
        for centre in range(len(walk)):
            positions = [centre - d for d in range(1, left + 1)] + [
                centre + d for d in range(1, right + 1)
            ]
            expected += [
                [walk[centre], walk[p]]
                for p in positions
                if 0 <= p < len(walk) and walk[centre] >= 0 and walk[p] >= 0
            ]
    assert ops.walk_pairs(paths, left, right).tolist() == expected


PAIR = st.tuples(st.integers(0, 3), st.integers(0, 3))


@given(WALKS, st.integers(0, 4), st.data())
def test_pairs_of_unwanted_types_are_dropped_in_order(
    paths: np.ndarray, window: int, data: st.DataObject
) -> None:
    types = data.draw(arrays.arrays(np.int32, paths.shape, elements=st.integers(-1, 3)))
    excluded = data.draw(st.lists(PAIR, max_size=3))
    allowed = data.draw(st.none() | st.lists(st.integers(0, 4), max_size=3))
    expected = []
    for walk, kinds in zip(paths.tolist(), types.tolist(), strict=True):
        for centre in range(len(walk)):
            positions = [centre - d for d in range(1, window + 1)] + [
                centre + d for d in range(1, window + 1)
            ]
            for p in positions:
                if (
                    not 0 <= p < len(walk)
                    or walk[centre] < 0
                    or walk[p] < 0
                    or (kinds[centre], kinds[p]) in excluded
                ):
                    continue
                if allowed is None or (kinds[centre] in allowed and kinds[p] in allowed):
                    expected.append([walk[centre], walk[p]])
    assert (
        ops.walk_pairs(
            paths, window, window, types=types, excluded=excluded, within=allowed
        ).tolist()
        == expected
    )


@given(WALKS, st.integers(0, 4), st.integers(0, 2**64 - 1))
def test_shuffled_pairs_are_a_permutation_set_by_the_seed(
    paths: np.ndarray, window: int, seed: int
) -> None:
    ordered, shuffled = (
        ops.walk_pairs(paths, window, window),
        ops.walk_pairs(paths, window, window, seed=seed),
    )
    assert sorted(shuffled.tolist()) == sorted(ordered.tolist())
    assert shuffled.tolist() == ops.walk_pairs(paths, window, window, seed=seed).tolist()
    positions = ops.pair_places(paths, window, window, seed=seed)
    assert paths.reshape(-1)[positions].reshape(-1, 2).tolist() == shuffled.tolist()


def test_pairs_of_a_million_nodes_are_vectorized() -> None:
    walks = np.arange(1_000_000).reshape(40_000, 25)
    pairs = ops.walk_pairs(walks, 3, 3, seed=1)
    assert len(pairs) == 40_000 * (25 * 6 - 2 * (1 + 2 + 3))
    gaps, counts = np.unique(pairs[:, 1] - pairs[:, 0], return_counts=True)
    assert gaps.tolist() == [-3, -2, -1, 1, 2, 3]
    assert counts.tolist() == [
        40_000 * 22,
        40_000 * 23,
        40_000 * 24,
        40_000 * 24,
        40_000 * 23,
        40_000 * 22,
    ]
    assert abs(np.corrcoef(np.arange(len(pairs)), pairs[:, 0])[0, 1]) < 0.01


def test_walk_types_follow_from_edges_or_are_unknown() -> None:
    schema = Schema(
        node_types=(NodeType(name="u"), NodeType(name="i")),
        edge_types=(
            EdgeType(src_type="u", relation="buys", dst_type="i"),
            EdgeType(src_type="i", relation="by", dst_type="u"),
        ),
    )
    nodes = np.array([[7, 5, 7, -1], [5, 5, 7, 5], [9, -1, -1, -1], [8, 8, 8, 8]])
    edges = np.array([[0, 1, -1], [-1, 1, -1], [-1, -1, -1], [-1, -1, -1]], np.int32)
    walks = WalkSample(nodes=nodes, types=edges, edge_ids=None, seed=0, version=1)
    assert ops.walk_types(walks, schema).tolist() == [
        [0, 1, 0, -1],
        [1, 1, 0, 1],
        [-1, -1, -1, -1],
        [-1, -1, -1, -1],
    ]
    assert ops.walk_types(walks, schema, direction="in").tolist()[0] == [1, 0, 1, -1]


@given(st.lists(st.integers(0, 9), max_size=30))
def test_occurrences_of_a_value_keep_their_order(values: list[int]) -> None:
    unique, inverse, counts = np.unique(
        np.array(values, np.int64), return_inverse=True, return_counts=True
    )
    positions = ops.inflate_idx(inverse)
    assert sorted(positions.tolist()) == list(range(len(values)))
    assert np.repeat(unique, counts)[positions].tolist() == values
    for i in range(len(values)):
        for j in range(i):
            assert values[i] != values[j] or positions[j] < positions[i]


@given(st.lists(st.lists(st.integers(0, 99), max_size=3), min_size=1, max_size=6), st.data())
def test_gathered_rows_of_a_ragged_column_are_its_rows(
    rows: list[list[int]], data: st.DataObject
) -> None:
    row_ids = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
    column = (
        np.cumsum([0, *map(len, rows)]).astype(np.int64),
        np.array([value for row in rows for value in row], np.int64),
    )
    indptr, values = ops.ragged_gather(column, row_ids)
    assert [values[indptr[i] : indptr[i + 1]].tolist() for i in range(len(row_ids))] == [
        rows[i] for i in row_ids
    ]


def text_column(*rows: bytes) -> tuple[np.ndarray, np.ndarray]:
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return indptr, np.frombuffer(b"".join(rows), np.uint8)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), max_size=6))
def test_bytes_that_hold_text_become_strings(rows: list[str]) -> None:
    strings = ops.ragged_strings(text_column(*(row.encode() for row in rows)))
    assert strings.tolist() == rows


def test_long_texts_become_strings_too() -> None:
    assert ops.ragged_strings(text_column(b"a" * 300, b"")).tolist() == ["a" * 300, ""]


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-50, 50, width=32)), max_size=20))
def test_scatters_reduce_each_index_as_named(pairs: list[tuple[int, float]]) -> None:
    indices, values = (
        np.array([p for p, _ in pairs], np.int64),
        np.array([v for _, v in pairs], np.float64)[:, None] * np.array([1.0, -2.0]),
    )
    groups = [values[indices == index] for index in range(5)]
    assert np.allclose(ops.scatter_add(values, indices, 5), [g.sum(axis=0) for g in groups])
    assert np.allclose(
        ops.scatter_mean(values, indices, 5),
        [g.mean(axis=0) if len(g) else np.zeros(2) for g in groups],
    )
    assert np.array_equal(
        ops.scatter_max(values, indices, 5),
        [g.max(axis=0) if len(g) else np.full(2, -1e9) for g in groups],
    )
    softmax = ops.scatter_softmax(values, indices, 5)
    for index, group in enumerate(groups):
        if len(group):
            exponentials = np.exp(group - group.max(axis=0))
            assert np.allclose(softmax[indices == index], exponentials / exponentials.sum(axis=0))


def test_the_largest_of_very_small_values_is_found() -> None:
    assert ops.scatter_max(np.array([-1e10]), [0], 2).tolist() == [-1e10, -1e9]
    assert ops.scatter_max(np.array([5, -7], np.int32), [0, 0], 1, empty=-1).tolist() == [5]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ops.walk_pairs([1, 2], 1, 1), r"shape \[2\]"),
        (lambda: ops.walk_pairs([[1]], -1, 1), "left=-1, right=1"),
        (
            lambda: ops.walk_pairs([[1]], 1, 1, excluded=[(0, 1)]),
            "expected the node types of the walks",
        ),
        (
            lambda: ops.walk_pairs([[1]], 1, 1, types=[[1, 2]], within=[1]),
            r"types of shape \[1, 2\]: expected \[1, 1\]",
        ),
        (lambda: ops.gather([1, 2], [0, 2]), r"indices\[1\]=2: expected 0 to 1"),
        (lambda: ops.inflate_idx([0, -4]), r"idx\[1\]=-4"),
        (lambda: ops.scatter_add([1.0], [0, 1], 2), "one index for each update"),
        (lambda: ops.scatter_add([1.0], [3], 2), r"indices\[0\]=3"),
        (lambda: ops.ragged_gather((np.array([0, 1]), np.array([5])), [1]), r"rows\[0\]=1"),
        (lambda: ops.ragged_strings((np.array([0, 1]), np.array([5]))), "with bytes, as uint8"),
        (lambda: ops.ragged_strings(np.array([5])), "expected \\(indptr, values\\)"),
        (lambda: ops.ragged_strings(text_column(b"ok", b"\xff")), "row 1: expected text in UTF-8"),
    ],
)
def test_invalid_arguments_are_refused_with_their_value(
    call: Callable[[], object], said: str
) -> None:
    with pytest.raises(asterism.InvalidRequest, match=said):
        call()


def _neighbors(nodes: list[list[int]]) -> NeighborSample:
    ids = np.array(nodes, np.int64)
    return NeighborSample(
        nodes=ids,
        types=np.where(ids < 0, -1, ids % 3).astype(np.int32),
        weights=np.maximum(ids, 0).astype(np.float32),
        edge_ids=None,
        seed=1,
        version=1,
        token="t",
    )


def test_missing_neighbors_are_filled_by_repetition() -> None:
    sample = _neighbors([[4, 9, -1, -1, -1], [7, -1, -1, -1, -1], [-1] * 5, [1, 2, 3, 4, 5]])
    filled = ops.repeat_padding(sample)
    assert filled.nodes.tolist() == [[4, 9, 4, 9, 4], [7] * 5, [-1] * 5, [1, 2, 3, 4, 5]]
    assert filled.types.tolist() == np.where(filled.nodes < 0, -1, filled.nodes % 3).tolist()
    assert filled.weights is not None
    assert filled.weights.tolist() == np.maximum(filled.nodes, 0).tolist()
    assert (filled.edge_ids, filled.token) == (None, "t")
    assert ops.repeat_padding(_neighbors([[]])).nodes.shape == (1, 0)


def test_repeated_entries_of_a_fanout_have_equal_trees() -> None:
    def hop(nodes: list[int], fanout: int) -> FanoutHop:
        ids = np.array(nodes, np.int64)
        dense, ragged = ids * 10, (np.arange(len(ids) + 1), ids * 100)
        return FanoutHop(
            nodes=ids,
            types=np.where(ids < 0, -1, 0).astype(np.int32),
            weights=None,
            edge_ids=ids + 1000,
            fanout=fanout,
            features={"n": {"dense": dense, "ragged": ragged}},
        )

    sample = FanoutSample(
        seeds=np.array([1, 2]),
        hops=(hop([5, -1, 6, 7], 2), hop([50, 51, -1, -1, 60, -1, -1, -1], 2)),
        seed=1,
        version=1,
    )
    filled = ops.repeat_padding(sample)
    assert filled.hops[0].nodes.tolist() == [5, 5, 6, 7]
    assert filled.hops[1].nodes.tolist() == [50, 51, 50, 51, 60, 60, -1, -1]
    for padded in filled.hops:
        features = padded.features
        assert features is not None
        assert np.array_equal(features["n"]["dense"], padded.nodes * 10)
        assert np.array_equal(features["n"]["ragged"][1], padded.nodes * 100)
        assert np.array_equal(padded.edge_ids, padded.nodes + 1000)
