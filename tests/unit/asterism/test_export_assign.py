"""Tests of the assignment of nodes to partitions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from asterism.export.export_schema import TypePlan
from asterism.export.partitioning import assignment_files, hash_partitioning
from asterism.export.partitioning.empty_parts import fill_nodes
from asterism_graphkit.random.rng import mix64
from asterism_proto.errors import InvalidRequest, NotFound

PAPER = TypePlan(name="paper", label="paper", type_id=0, columns=())


def folder(
    path: Path, lines: str, meta: str = '{"version": "1.0.0", "num_parts": 3, "algo_name": "metis"}'
) -> Path:
    (path / "paper.txt").write_text(lines)
    (path / "partition_meta.json").write_text(meta)
    return path


def test_random_part_depends_only_on_seed_type_and_id() -> None:
    ids = np.arange(1000) * 13
    owners = hash_partitioning.random_owners(ids, parts=5, seed=1, type_id=2)
    np.testing.assert_array_equal(
        hash_partitioning.random_owners(ids[::-3].copy(), parts=5, seed=1, type_id=2), owners[::-3]
    )
    assert (hash_partitioning.random_owners(ids, parts=5, seed=2, type_id=2) != owners).any()
    assert (hash_partitioning.random_owners(ids, parts=5, seed=1, type_id=3) != owners).any()


def test_hashed_part_is_splitmix64_scaled_to_the_parts() -> None:
    ids, parts = np.array([0, 1, 2, 77, (1 << 62) + 5]), 7
    assert hash_partitioning.hashed_owners(ids, parts=parts).tolist() == [
        int(mix64(np.uint64(i))) * parts >> 64 for i in ids
    ]


@pytest.mark.parametrize("stride", [1, 8, 1 << 20])
@pytest.mark.parametrize(
    "method",
    [
        functools.partial(hash_partitioning.random_owners, seed=0, type_id=0),
        hash_partitioning.hashed_owners,
    ],
    ids=["random", "hash"],
)
def test_parts_are_balanced_for_any_stride_of_the_ids(
    stride: int, method: Callable[..., np.ndarray]
) -> None:
    n, parts = 80_000, 8
    counts = np.bincount(method(np.arange(n) * stride, parts=parts), minlength=parts)
    expected = n / parts
    assert (
        (counts - expected) ** 2 / expected
    ).sum() < 30  # chi-square with 7 degrees of freedom: p < 1e-4


def test_empty_part_gets_the_last_node_of_the_fullest() -> None:
    owners = np.array([0, 0, 0, 2, 2, 0], np.int32)
    (warning,) = fill_nodes(owners, parts=4, label="paper")
    assert owners.tolist() == [0, 0, 3, 2, 2, 1]
    assert "paper" in warning
    assert "1, 3" in warning


def test_two_empty_parts_take_nodes_of_two_full_ones() -> None:
    owners = np.array([0, 0, 0, 1, 1, 1], np.int32)
    fill_nodes(owners, parts=4, label="paper")
    assert owners.tolist() == [0, 0, 2, 1, 1, 3]


def test_complete_assignment_is_unchanged() -> None:
    owners = np.array([0, 1, 2, 0], np.int32)
    assert fill_nodes(owners, parts=3, label="paper") == []
    assert owners.tolist() == [0, 1, 2, 0]


def test_too_few_nodes_for_all_parts_are_warned_about() -> None:
    owners = np.array([0, 0], np.int32)
    (warning,) = fill_nodes(owners, parts=3, label="paper")
    assert "2 nodes" in warning
    assert fill_nodes(np.array([], np.int32), parts=3, label="paper") == []


def test_a_folder_gives_the_parts_line_by_line(tmp_path: Path) -> None:
    (owners,), num_parts, method = assignment_files.read_owners(
        folder(tmp_path, "2\n0\n1\n1\n"), [PAPER], [4], parts={3, 6}
    )
    assert num_parts == 3
    assert owners.tolist() == [2, 0, 1, 1]
    assert method == "metis"


@pytest.mark.parametrize(
    ("lines", "count", "words"),
    [
        ("0\n1\n3\n", 3, ["paper.txt", "line 3", "3", "0 to 2"]),
        ("0\n-1\n2\n", 3, ["paper.txt", "line 2", "-1"]),
        ("0\nx7\n2\n", 3, ["paper.txt", "line 2", "x7"]),
        ("0\n\n2\n", 3, ["paper.txt", "line 2"]),
        ("0\n1.5\n2\n", 3, ["paper.txt", "line 2", "1.5"]),
        ("0\n1\n", 3, ["paper.txt", "2 lines", "3 nodes"]),
        ("0\n1\n2\n0\n", 3, ["paper.txt", "4 lines", "3 nodes"]),
        ("", 3, ["paper.txt", "0 lines"]),
    ],
)
def test_a_wrong_line_is_refused_with_file_and_line(
    tmp_path: Path, lines: str, count: int, words: list[str]
) -> None:
    with pytest.raises(InvalidRequest) as excinfo:
        assignment_files.read_owners(folder(tmp_path, lines), [PAPER], [count], parts={3})
    assert [word for word in words if word not in str(excinfo.value)] == []


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ("[]", "num_parts"),
        ("{", "num_parts"),
        ('{"num_parts": 4}', "num_parts=4: expected"),
        ('{"num_parts": "x"}', "num_parts"),
    ],
)
def test_a_wrong_meta_file_is_refused(tmp_path: Path, meta: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        assignment_files.read_owners(folder(tmp_path, "0\n", meta), [PAPER], [1], parts={3})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"partition_meta\.json"):
        assignment_files.read_owners(tmp_path, [PAPER], [1], parts={3})
    other = TypePlan(name="author", label="author", type_id=1, columns=())
    with pytest.raises(NotFound, match=r"author\.txt"):
        assignment_files.read_owners(folder(tmp_path, "0\n"), [PAPER, other], [1, 1], parts={3})
