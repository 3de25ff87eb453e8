from __future__ import annotations

import numpy as np
import pytest

from asterism_proto.errors import Deadline
from asterism_proto.schema import NodeType, Schema
from graphd import split
from graphd.route import Space
from graphkit.split import part_of


def space(hosts: int, parts: int = 7, placement: str = "mix64") -> Space:
    return Space(
        space_id=1,
        name="s",
        schema=Schema(node_types=(NodeType(name="n"),), parts=parts, placement=placement),
        hosts=tuple(f"h{i}" for i in range(hosts)),
        host_of_part=(np.arange(parts) % hosts).astype(np.int32),
    )


@pytest.mark.parametrize("hosts", [2, 3, 7])
def test_every_row_goes_to_the_host_of_its_part_once_and_in_order(hosts: int) -> None:
    where = space(hosts)
    ids = np.random.default_rng(1).integers(-1, 1 << 60, 500)
    plan = split.owners(where, ids)
    expected = where.host_of_part[part_of(ids, 7, "mix64")]
    assert sorted(np.concatenate([rows for _, rows in plan if rows is not None]).tolist()) == list(range(500))
    for host, rows in plan:
        assert rows is not None
        assert (np.diff(rows) > 0).all()
        assert (expected[rows] == host).all()


def test_one_host_gets_the_request_as_it_is() -> None:
    ids = np.arange(9)
    ((host, rows),) = split.owners(space(1), ids)
    assert (host, rows) == (0, None)
    assert split.taken(ids, rows) is ids


@pytest.mark.parametrize("hosts", [1, 2, 5])
def test_rows_that_were_split_and_answered_come_back_in_the_order_of_the_request(hosts: int) -> None:
    ids = np.random.default_rng(2).integers(0, 1000, 300)
    plan = split.owners(space(hosts), ids)
    answers = [(rows, {"square": split.taken(ids, rows) ** 2, "wide": np.stack([split.taken(ids, rows)] * 3, axis=1)}) for _, rows in plan]
    merged = split.merged(len(ids), answers)
    assert (merged["square"] == ids**2).all()
    assert (merged["wide"] == ids[:, None]).all()


@pytest.mark.parametrize("hosts", [1, 2, 5])
def test_ragged_rows_come_back_in_the_order_of_the_request(hosts: int) -> None:
    ids = np.random.default_rng(3).integers(0, 12, 200)
    answers = []
    for _, rows in split.owners(space(hosts), ids):
        mine = split.taken(ids, rows)
        answers.append((rows, split.indptr_of(mine), {"values": np.repeat(mine, mine), "more": np.repeat(-mine, mine)}))
    indptr, out = split.merged_ragged(len(ids), answers)
    assert (indptr == np.concatenate([[0], np.cumsum(ids)])).all()
    assert (out["values"] == np.repeat(ids, ids)).all()
    assert (out["more"] == -out["values"]).all()


def test_merges_and_sorts_in_pieces_give_the_same_bytes_and_may_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint comes before each piece; a row that is longer than a piece is one."""
    ids = np.random.default_rng(4).integers(0, 12, 200)
    answers = []
    for _, rows in split.owners(space(5), ids):
        mine = split.taken(ids, rows)
        answers.append((rows, split.indptr_of(mine), {"values": np.random.default_rng(mine.size).permutation(int(mine.sum()))}))
    indptr, whole = split.merged_ragged(len(ids), answers)
    sorted_whole = split.reordered(indptr, whole, [whole["values"]])
    seen: list[int] = []
    monkeypatch.setattr(split.pieces, "__defaults__", (7,))
    _, found = split.merged_ragged(len(ids), answers, lambda: seen.append(1))
    assert found["values"].tolist() == whole["values"].tolist()
    assert len(seen) > 50
    assert split.reordered(indptr, found, [found["values"]])["values"].tolist() == sorted_whole["values"].tolist()

    def checkpoint() -> None:
        raise Deadline("time is up")

    with pytest.raises(Deadline):
        split.reordered(indptr, found, [found["values"]], checkpoint)


def test_rows_of_a_ragged_column_are_gathered_with_an_indptr_of_their_own() -> None:
    column = np.array([0, 2, 2, 5]), np.array([10, 11, 30, 31, 32])
    indptr, values = split.gathered(*column, np.array([2, 0, 1, 2]))
    assert indptr.tolist() == [0, 3, 5, 5, 8]
    assert values.tolist() == [30, 31, 32, 10, 11, 30, 31, 32]


def test_entries_are_sorted_within_their_row_only_and_ties_keep_their_order() -> None:
    indptr = np.array([0, 4, 4, 6])
    arrays = {"ids": np.array([3, 1, 3, 2, 9, 0]), "eids": np.array([5, 6, 4, 7, 8, 9])}
    by_id = split.reordered(indptr, arrays, [arrays["ids"]])
    assert by_id["ids"].tolist() == [1, 2, 3, 3, 0, 9]
    assert by_id["eids"].tolist() == [6, 7, 5, 4, 9, 8]
    weights = np.array([1.0, 2.0, 1.0, 5.0, 0.0, 0.0], np.float32)
    by_weight = split.reordered(indptr, arrays, [-weights, arrays["ids"]])
    assert by_weight["ids"].tolist() == [2, 1, 3, 3, 0, 9]
