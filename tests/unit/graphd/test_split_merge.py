from __future__ import annotations

import numpy as np
import pytest

from asterism_graphkit.random.partition_choice import part_of
from asterism_io import buffer_pool
from asterism_model.schema import NodeType, Schema
from asterism_proto.errors import Deadline
from graphd.routing import split_merge
from graphd.routing.routes import SpaceRoute


def space_route(hosts: int, parts: int = 7, placement: str = "mix64") -> SpaceRoute:
    return SpaceRoute(
        space_id=1,
        name="s",
        schema=Schema(node_types=(NodeType(name="n"),), parts=parts, placement=placement),
        hosts=tuple(f"h{i}" for i in range(hosts)),
        host_of_part=(np.arange(parts) % hosts).astype(np.int32),
    )


@pytest.mark.parametrize("hosts", [2, 3, 7])
def test_each_row_goes_once_to_host_of_its_part_in_order(hosts: int) -> None:
    route = space_route(hosts)
    ids = np.random.default_rng(1).integers(-1, 1 << 60, 500)
    plan = split_merge.rows_by_owner(route, ids)
    expected = route.host_of_part[part_of(ids, 7, "mix64")]
    assert sorted(np.concatenate([rows for _, rows in plan if rows is not None]).tolist()) == list(
        range(500)
    )
    for host, rows in plan:
        assert rows is not None
        assert (np.diff(rows) > 0).all()
        assert (expected[rows] == host).all()


def test_single_host_gets_the_request_unchanged() -> None:
    ids = np.arange(9)
    ((host, rows),) = split_merge.rows_by_owner(space_route(1), ids)
    assert (host, rows) == (0, None)
    assert split_merge.take_rows(ids, rows) is ids


@pytest.mark.parametrize("hosts", [1, 2, 5])
def test_merged_rows_are_in_request_order(hosts: int) -> None:
    ids = np.random.default_rng(2).integers(0, 1000, 300)
    plan = split_merge.rows_by_owner(space_route(hosts), ids)
    answers = [
        (
            rows,
            {
                "square": split_merge.take_rows(ids, rows) ** 2,
                "wide": np.stack([split_merge.take_rows(ids, rows)] * 3, axis=1),
            },
        )
        for _, rows in plan
    ]
    merged = split_merge.merge_rows(len(ids), answers)
    assert (merged["square"] == ids**2).all()
    assert (merged["wide"] == ids[:, None]).all()


def test_rows_that_no_host_answered_are_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool's memory has old content."""
    monkeypatch.setattr(buffer_pool, "empty", lambda shape, dtype: np.full(shape, 7, dtype))
    answers = [(np.array([rows]), {"x": np.array([[rows, 1]])}) for rows in (3, 0)]
    merged = split_merge.merge_rows(5, answers)
    assert merged["x"].tolist() == [[0, 1], [0, 0], [0, 0], [3, 1], [0, 0]]


@pytest.mark.parametrize("is_complete", [True, False])
def test_large_rows_are_merged_in_pieces(
    is_complete: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_merge, "_PIECE_BYTES", 100)
    rows = np.arange(50)[::-1] if is_complete else np.arange(0, 50, 2)
    values = np.arange(3 * len(rows)).reshape(-1, 3)
    expected = np.zeros((50, 3), np.int64)
    expected[rows] = values
    checkpoints: list[int] = []
    merged = split_merge.merge_rows(50, [(rows, {"x": values})], lambda: checkpoints.append(1))
    assert (merged["x"] == expected).all()
    assert len(checkpoints) == -(-len(rows) // 4)  # a row has 24 bytes

    def checkpoint() -> None:
        raise Deadline("time is up")

    with pytest.raises(Deadline):
        split_merge.merge_rows(50, [(rows, {"x": values})], checkpoint)


@pytest.mark.parametrize("hosts", [1, 2, 5])
def test_merged_ragged_rows_are_in_request_order(hosts: int) -> None:
    ids = np.random.default_rng(3).integers(0, 12, 200)
    answers = []
    for _, rows in split_merge.rows_by_owner(space_route(hosts), ids):
        host_ids = split_merge.take_rows(ids, rows)
        answers.append(
            (
                rows,
                split_merge.indptr_of(host_ids),
                {"values": np.repeat(host_ids, host_ids), "more": np.repeat(-host_ids, host_ids)},
            )
        )
    indptr, out = split_merge.merge_ragged(len(ids), answers)
    assert (indptr == np.concatenate([[0], np.cumsum(ids)])).all()
    assert (out["values"] == np.repeat(ids, ids)).all()
    assert (out["more"] == -out["values"]).all()


def test_chunked_merge_and_sort_match_and_can_be_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint precedes each piece; a row longer than a piece is one piece."""
    ids = np.random.default_rng(4).integers(0, 12, 200)
    answers = []
    for _, rows in split_merge.rows_by_owner(space_route(5), ids):
        host_ids = split_merge.take_rows(ids, rows)
        answers.append(
            (
                rows,
                split_merge.indptr_of(host_ids),
                {"values": np.random.default_rng(host_ids.size).permutation(int(host_ids.sum()))},
            )
        )
    indptr, merged = split_merge.merge_ragged(len(ids), answers)
    sorted_merged = split_merge.sort_ragged(indptr, merged, [merged["values"]])
    checkpoints: list[int] = []
    monkeypatch.setattr(split_merge.ragged_slices, "__defaults__", (7,))
    _, chunked = split_merge.merge_ragged(len(ids), answers, lambda: checkpoints.append(1))
    assert chunked["values"].tolist() == merged["values"].tolist()
    assert len(checkpoints) > 50
    assert (
        split_merge.sort_ragged(indptr, chunked, [chunked["values"]])["values"].tolist()
        == sorted_merged["values"].tolist()
    )

    def checkpoint() -> None:
        raise Deadline("time is up")

    with pytest.raises(Deadline):
        split_merge.sort_ragged(indptr, chunked, [chunked["values"]], checkpoint)


def test_ragged_rows_are_gathered_with_their_own_indptr() -> None:
    column = np.array([0, 2, 2, 5]), np.array([10, 11, 30, 31, 32])
    indptr, values = split_merge.gather_ragged(*column, np.array([2, 0, 1, 2]))
    assert indptr.tolist() == [0, 3, 5, 5, 8]
    assert values.tolist() == [30, 31, 32, 10, 11, 30, 31, 32]


def test_entries_are_sorted_stably_within_rows() -> None:
    indptr = np.array([0, 4, 4, 6])
    arrays = {"ids": np.array([3, 1, 3, 2, 9, 0]), "eids": np.array([5, 6, 4, 7, 8, 9])}
    by_id = split_merge.sort_ragged(indptr, arrays, [arrays["ids"]])
    assert by_id["ids"].tolist() == [1, 2, 3, 3, 0, 9]
    assert by_id["eids"].tolist() == [6, 7, 5, 4, 9, 8]
    weights = np.array([1.0, 2.0, 1.0, 5.0, 0.0, 0.0], np.float32)
    by_weight = split_merge.sort_ragged(indptr, arrays, [-weights, arrays["ids"]])
    assert by_weight["ids"].tolist() == [2, 1, 3, 3, 0, 9]
