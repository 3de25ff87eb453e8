"""Tests of the relabeling of nodes, and of the plan of types and columns."""

from __future__ import annotations

import numpy as np
import pytest

from asterism.export.export_schema import check_name, make_plan
from asterism.export.global_ids import GlobalIdRanges, NodeIdTable
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest

COUNTS = np.array([[2, 0, 1], [0, 0, 0], [1, 3, 0], [0, 1, 0]])


def test_ranges_tile_the_ids_by_part_and_type() -> None:
    ranges = GlobalIdRanges.from_counts(COUNTS)
    assert ranges.total == 8
    assert [ranges.part_range(p) for p in range(4)] == [(0, 3), (3, 3), (3, 7), (7, 8)]
    assert [ranges.type_ranges(t) for t in range(3)] == [
        [[0, 2], [3, 3], [3, 4], [7, 7]],
        [[2, 2], [3, 3], [4, 7], [7, 8]],
        [[2, 3], [3, 3], [7, 7], [8, 8]],
    ]
    np.testing.assert_array_equal(ranges.counts, COUNTS)


def test_owner_and_type_of_an_id_skip_empty_ranges() -> None:
    ranges = GlobalIdRanges.from_counts(COUNTS)
    assert ranges.owners(np.arange(8)).tolist() == [0, 0, 0, 2, 2, 2, 2, 3]
    assert ranges.types(np.arange(8)).tolist() == [0, 0, 2, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    "ids",
    [
        np.arange(6),
        np.array([0, 1, 3, 4, 7]),
        np.array([5, 90, 1 << 40, (1 << 62) + 1]),
        np.array([], np.int64),
    ],
    ids=["dense", "holes", "sparse", "none"],
)
def test_a_table_finds_its_ids_and_no_others(ids: np.ndarray) -> None:
    table = NodeIdTable(ids.astype(np.int64))
    np.testing.assert_array_equal(table.rank(ids.astype(np.int64)), np.arange(len(ids)))
    absent_ids = np.setdiff1d(np.array([-1, 2, 6, 8, 91, 1 << 41, (1 << 63) - 1]), ids)
    assert table.rank(absent_ids).tolist() == [-1] * len(absent_ids)


def test_nodes_are_numbered_by_part_and_then_by_id() -> None:
    table = NodeIdTable(np.array([3, 10, 11, 40, 95]))
    owners = np.array([1, 0, 1, 0, 0], np.int32)
    ranges = GlobalIdRanges.from_counts(np.array([[3], [2]]))
    gids = np.empty(5, np.int64)
    assert [(part, ids.tolist()) for part, ids in table.assign_gids(owners, ranges, 0, gids)] == [
        (0, [10, 40, 95]),
        (1, [3, 11]),
    ]
    assert gids.tolist() == [3, 0, 4, 1, 2]
    assert table.gid(np.array([3, 10, 11, 40, 95, 4])).tolist() == [3, 0, 4, 1, 2, -1]


def test_numbers_of_nodes_do_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asterism.export.global_ids._STEP", 2)
    table = NodeIdTable(np.array([3, 10, 11, 14, 15]))
    ranges = GlobalIdRanges.from_counts(np.array([[3], [2]]))
    gids = np.empty(5, np.int64)
    pieces = table.assign_gids(np.array([1, 0, 1, 0, 0], np.int32), ranges, 0, gids)
    ids: dict[int, list[int]] = {0: [], 1: []}
    for part, part_ids in pieces:
        ids[part] += part_ids.tolist()
    assert ids == {0: [10, 14, 15], 1: [3, 11]}
    assert gids.tolist() == [3, 0, 4, 1, 2]
    assert table.rank(table.ids).tolist() == [0, 1, 2, 3, 4]


def schema(**node_features: object) -> Schema:
    return Schema.from_dict(
        {
            "nodes": {"paper": {"weighted": True, "features": node_features}, "author": {}},
            "edges": {"paper:cites:paper": {}, "author:writes:paper": {"weighted": True}},
        }
    )


def test_types_are_sorted_by_name_as_in_dgl() -> None:
    export_plan = make_plan(schema(), homogeneous=False, weight="w")
    assert [(kind.label, kind.type_id) for kind in export_plan.nodes] == [
        ("author", 1),
        ("paper", 0),
    ]
    assert [(kind.label, kind.type_id, kind.src, kind.dst) for kind in export_plan.edges] == [
        ("author:writes:paper", 1, 0, 1),
        ("paper:cites:paper", 0, 1, 1),
    ]
    assert [column.name for column in export_plan.nodes[1].columns] == ["w"]
    assert export_plan.is_heterogeneous


def test_columns_unsupported_by_dgl_are_dropped_or_widened() -> None:
    export_plan = make_plan(
        schema(a="bool", b="uint16", c={"kind": "ragged", "dtype": "int64"}, d="bytes", e="uint64"),
        homogeneous=False,
        weight=None,
    )
    columns = {column.name: str(column.dtype) for column in export_plan.nodes[1].columns}
    assert columns == {"a": "uint8", "b": "int32", "e": "int64"}
    assert len(export_plan.warnings) == 4
    assert all(any(repr(name) in warning for warning in export_plan.warnings) for name in "bcde")


def test_heterogeneous_graph_needs_type_names() -> None:
    with pytest.raises(InvalidRequest, match="homogeneous=True: expected one node type"):
        make_plan(schema(), homogeneous=True, weight=None)


def test_homogeneous_graph_has_the_names_of_dgl() -> None:
    export_plan = make_plan(
        Schema.from_dict({"nodes": {"user": {}}, "edges": {"user:knows:user": {}}}),
        homogeneous=True,
        weight=None,
    )
    assert (export_plan.nodes[0].label, export_plan.edges[0].label, export_plan.edges[0].name) == (
        "_N",
        "_N:_E:_N",
        "user:knows:user",
    )
    assert not export_plan.is_heterogeneous


def test_schema_without_edge_types_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="expected at least one edge type"):
        make_plan(Schema.from_dict({"nodes": {"user": {}}}), homogeneous=False, weight=None)


def test_weights_do_not_overwrite_a_feature() -> None:
    with pytest.raises(InvalidRequest, match="'w'"):
        make_plan(schema(w="float32"), homogeneous=False, weight="w")


@pytest.mark.parametrize("name", ["a/b", "a:b", "", " ", "..", "a\n"])
def test_names_that_dgl_would_split_are_refused(name: str) -> None:
    with pytest.raises(InvalidRequest):
        check_name("weight", name)
