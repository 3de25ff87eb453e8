"""Column indexes written by builds, compared with an in-memory sort.

The result does not depend on the memory limit. Indexes with unchanged input are linked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.building import Op, run_build
from tests.kit.images import Edges, Nodes, part_images

from asterism_model.elements import NODE
from asterism_model.indexes import Index, declared_indexes
from asterism_model.schema import EdgeType, Feature, NodeType, Schema, WeightTable
from storaged.build.completion_records import CompletedPart
from storaged.store import block_store
from storaged.store.image import NodeImage

SIZE = 40_000
"""Rows per type: in each partition more than the small-memory build can hold at once."""
_FEATURES = (
    Feature(name="x", dtype="float64"),
    Feature(name="k", dtype="int32"),
    Feature(name="s", kind="bytes"),
    Feature(name="v", shape=(2,)),
)
_MORE_TABLE = WeightTable(name="more", expression="weight * 2 + abs(k)")
SCHEMA = Schema(
    node_types=(
        NodeType(name="a", weighted=True, features=_FEATURES, tables=(_MORE_TABLE,)),
        NodeType(name="b"),
    ),
    parts=2,
)
INDEXES = tuple(
    sorted(
        Index(element=NODE, type_id=type_id, column=column, kind=kind)
        for type_id, column, kind in (
            (0, "x", "range"),
            (0, "x", "hash"),
            (0, "k", "hash"),
            (0, "k", "range"),
            (0, "s", "hash"),
            (0, "v[1]", "range"),
            (0, "weight", "range"),
            (0, "id", "range"),
            (1, "id", "hash"),
            (1, "weight", "range"),
        )
    )
)
_RNG = np.random.default_rng(3)
IDS = np.sort(_RNG.choice(2 * SIZE, SIZE, replace=False))


def _string_column() -> tuple[np.ndarray, np.ndarray]:
    texts = [b"" if i < 20 else str(i % 300).encode() for i in _RNG.integers(0, 2000, SIZE)]
    return np.append(0, np.cumsum([len(text) for text in texts])), np.frombuffer(
        b"".join(texts), np.uint8
    )


COLUMNS: dict[str, Any] = {
    "x": np.where(_RNG.random(SIZE) < 0.1, np.nan, np.round(_RNG.normal(size=SIZE), 2)),
    "k": np.where(_RNG.random(SIZE) < 0.7, 0, _RNG.integers(-50, 50, SIZE)).astype(
        np.int32
    ),  # most rows share one value
    "s": _string_column(),
    "v": _RNG.random((SIZE, 2)).astype(np.float32),
}
WEIGHTS = np.where(_RNG.random(SIZE) < 0.2, 0, np.exp(_RNG.normal(size=SIZE) * 3)).astype(
    np.float32
)


def _loads(weights: np.ndarray = WEIGHTS) -> list[list[Op]]:
    features = {f"f:{name}": COLUMNS[name] for name in "xkv"} | {
        "f:s.indptr": COLUMNS["s"][0],
        "f:s.values": COLUMNS["s"][1],
    }
    nodes = Op(
        kind=block_store.NODES, type_id=0, arrays={"ids": IDS, "weight": weights, **features}
    )
    return [[nodes, Op(kind=block_store.NODES, type_id=1, arrays={"ids": np.arange(500)})]]


def _reference() -> dict[int, tuple[NodeImage, ...]]:
    features = COLUMNS | {"v[1]": COLUMNS["v"][:, 1]}
    more = (WEIGHTS.astype(np.float64) * 2 + np.abs(COLUMNS["k"])).astype(np.float32)
    index_columns = [
        [(index.column, index.kind) for index in INDEXES if index.type_id == type_id]
        for type_id in (0, 1)
    ]
    nodes = {
        "a": Nodes(
            ids=IDS,
            weights=WEIGHTS,
            features=features,
            extra_weights={"more": more},
            indexes=tuple(index_columns[0]),
        ),
        "b": Nodes(ids=np.arange(500), indexes=tuple(index_columns[1])),
    }
    return {part: image.nodes for part, image in part_images(SCHEMA, nodes, {}).items()}


@pytest.mark.parametrize("memory_limit_mib", [512, 1])
def test_indexes_equal_an_in_memory_sort_at_any_memory_limit(
    tmp_path: Path, memory_limit_mib: int
) -> None:
    new_build = run_build(
        tmp_path, SCHEMA, _loads(), memory_limit_mib=memory_limit_mib, indexes=INDEXES
    )
    reference = _reference()
    for image in new_build.images:
        for node, expected in zip(image.nodes, reference[image.part], strict=True):
            # Indexes of one type come in the order of the build task.
            assert [(index.column, index.kind) for index in node.indexes] == [
                (index.column, index.kind) for index in expected.indexes
            ]
            rows = np.flatnonzero(node.live) if node.live.size else np.arange(node.rows)
            for index, other in zip(node.indexes, expected.indexes, strict=True):
                assert np.array_equal(rows[np.searchsorted(rows, index.rows)], index.rows)
                assert np.array_equal(
                    _ids(image, node, index.rows), _ids(image, expected, other.rows)
                )
                np.testing.assert_array_equal(index.values, other.values)
                assert np.array_equal(index.bounds, other.bounds)
                assert index.tables.keys() == other.tables.keys()
                for name, tables in index.tables.items():
                    assert np.array_equal(tables.positives, other.tables[name].positives)
                    assert (
                        len(tables.levels)
                        == len(other.tables[name].levels)
                        == (2 if node.count > 4096 else 1)
                    )
                    for level, counterpart in zip(
                        tables.levels, other.tables[name].levels, strict=True
                    ):
                        assert np.array_equal(level.sums, counterpart.sums)
                        assert np.array_equal(level.alias_threshold, counterpart.alias_threshold)
                        assert np.array_equal(level.alias_fraction, counterpart.alias_fraction)


def _ids(image: Any, node: NodeImage, rows: np.ndarray) -> np.ndarray:
    return rows.astype(np.int64) * image.parts + image.part if node.dense else node.ids[rows]


def test_index_is_linked_if_column_and_weights_are_unchanged(tmp_path: Path) -> None:
    loads = [
        *_loads(),
        [
            Op(
                kind=block_store.NODES,
                type_id=0,
                arrays={"ids": IDS, "weight": WEIGHTS[::-1].copy()},
            )
        ],
    ]
    x_index = INDEXES[[(index.column, index.kind) for index in INDEXES].index(("x", "range"))]
    unindexed = run_build(tmp_path, SCHEMA, loads, commit=1, name="bare")
    first = run_build(
        tmp_path, SCHEMA, loads, commit=1, name="first", indexes=[x_index], sources=[unindexed]
    )
    assert _rebuilt_units(first.output) == {
        "n0.xr0",
        "n0.xr0.w",
        "n0.xr0.w0",
    }  # all other units are shared with the version before
    x_indexes = tuple(index for index in INDEXES if index.column == "x")
    second = run_build(
        tmp_path, SCHEMA, loads, commit=1, name="second", indexes=x_indexes, sources=[first]
    )
    assert _rebuilt_units(second.output) == {"n0.xh0", "n0.xh0.w", "n0.xh0.w0"}
    third = run_build(tmp_path, SCHEMA, loads, name="third", indexes=x_indexes, sources=[second])
    assert not _rebuilt_units(third.output) & {
        "n0.xr0",
        "n0.xh0",
        "n0.features",
    }  # the weights changed: the order stays, its weight tables do not
    assert _rebuilt_units(third.output) >= {"n0.xr0.w", "n0.xh0.w0"}
    assert (
        run_build(tmp_path, SCHEMA, loads, commit=1, name="again", sources=[second]).digests
        == unindexed.digests
    )


EDGES = 9000
_EDGE_TYPES = (
    EdgeType(
        src_type="a",
        relation="e",
        dst_type="b",
        weighted=True,
        features=(
            Feature(name="y", dtype="float32"),
            Feature(name="z", dtype="uint64"),
            Feature(name="v", shape=(2,)),
        ),
        tables=(WeightTable(name="more", expression="weight * 2 + y"),),
        index=("z", "y", "id", "weight"),
    ),
    EdgeType(
        src_type="b",
        relation="f",
        dst_type="b",
        features=(Feature(name="k", dtype="bool"),),
        index=("k", "weight"),
    ),
)
EDGE_SCHEMA = Schema(
    node_types=(NodeType(name="a"), NodeType(name="b")),
    edge_types=_EDGE_TYPES,
    parts=2,
    direction="both",
)


def _edges() -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(9)
    ends = {
        "a:e:b": (
            np.where(rng.random(EDGES) < 0.6, 4, rng.integers(0, 50, EDGES)),
            rng.integers(0, 40, EDGES),
        )
    }  # node 4 is a hub
    ends["b:f:b"] = rng.integers(0, 40, 300), rng.integers(0, 40, 300)
    y, z = (
        np.round(rng.random(EDGES) * 9, 1).astype(np.float32),
        rng.integers(0, 1 << 63, EDGES).astype(np.uint64) * np.uint64(2),
    )
    columns = {
        "a:e:b": {
            "weight": rng.integers(0, 4, EDGES).astype(np.float32),
            "f:y": y,
            "f:z": z,
            "f:v": rng.random((EDGES, 2)).astype(np.float32),
        }
    }
    columns["b:f:b"] = {"f:k": rng.random(300) < 0.4}
    return {
        name: {
            "src": ends[name][0],
            "dst": ends[name][1],
            "eid": np.arange(ends[name][0].size),
            **columns[name],
        }
        for name in ends
    }


@pytest.mark.parametrize("memory_limit_mib", [512, 1])
def test_edge_indexes_are_sorted_at_any_memory_limit(tmp_path: Path, memory_limit_mib: int) -> None:
    edges = _edges()
    loads = [
        [
            Op(kind=block_store.NODES, type_id=0, arrays={"ids": np.arange(50)}),
            Op(kind=block_store.NODES, type_id=1, arrays={"ids": np.arange(40)}),
        ]
    ]
    loads += [
        [Op(kind=block_store.OUT_EDGES, type_id=t, arrays=edges[kind.name])]
        for t, kind in enumerate(_EDGE_TYPES)
    ]
    new_build = run_build(
        tmp_path,
        EDGE_SCHEMA,
        loads,
        memory_limit_mib=memory_limit_mib,
        indexes=declared_indexes(EDGE_SCHEMA),
    )
    input_edges = {
        name: Edges(
            src=columns["src"],
            dst=columns["dst"],
            weights=columns.get("weight"),
            features={
                column[2:]: values for column, values in columns.items() if column.startswith("f:")
            },
            extra_weights={"more": columns["weight"] * 2 + columns["f:y"]}
            if "weight" in columns
            else {},
        )
        for name, columns in edges.items()
    }
    reference = part_images(
        EDGE_SCHEMA, {"a": Nodes(ids=np.arange(50)), "b": Nodes(ids=np.arange(40))}, input_edges
    )
    for image in new_build.images:
        for edge, expected in zip(image.edges, reference[image.part].edges, strict=True):
            assert [index.column for index in edge.indexes] == [
                index.column for index in expected.indexes
            ]
            for side, other in (
                (edge.outgoing, expected.outgoing),
                (edge.incoming, expected.incoming),
            ):
                assert side is not None
                assert other is not None
                assert side.edge_columns.keys() == other.edge_columns.keys()
                for name, values in side.edge_columns.items():
                    assert values.dtype == other.edge_columns[name].dtype
                    np.testing.assert_array_equal(values, other.edge_columns[name])
            for index, counterpart in zip(edge.indexes, expected.indexes, strict=True):
                assert np.array_equal(index.rows, counterpart.rows)
                np.testing.assert_array_equal(index.values, counterpart.values)
                assert index.tables.keys() == counterpart.tables.keys()
                for name, tables in index.tables.items():
                    assert np.array_equal(tables.positives, counterpart.tables[name].positives)
                    for level, expected_level in zip(
                        tables.levels, counterpart.tables[name].levels, strict=True
                    ):
                        assert np.array_equal(level.alias_threshold, expected_level.alias_threshold)
                        assert np.array_equal(level.sums, expected_level.sums)
                for row_order, expected_row_order in (
                    (index.outgoing, counterpart.outgoing),
                    (index.incoming, counterpart.incoming),
                ):
                    assert row_order is not None
                    assert expected_row_order is not None
                    assert np.array_equal(row_order.order, expected_row_order.order)
                    assert np.array_equal(row_order.keys, expected_row_order.keys)
                    assert row_order.weight_trees.keys() >= expected_row_order.weight_trees.keys()
                    for name, tree in expected_row_order.weight_trees.items():
                        assert np.array_equal(row_order.weight_trees[name], tree)


def test_edge_orders_are_linked_if_adjacency_is_unchanged(tmp_path: Path) -> None:
    edges = _edges()
    first = [
        [
            Op(kind=block_store.NODES, type_id=0, arrays={"ids": np.arange(50)}),
            Op(kind=block_store.NODES, type_id=1, arrays={"ids": np.arange(40)}),
        ]
    ]
    first += [
        [Op(kind=block_store.OUT_EDGES, type_id=t, arrays=edges[kind.name])]
        for t, kind in enumerate(_EDGE_TYPES)
    ]
    loads = [
        *first,
        [
            Op(
                kind=block_store.OUT_EDGES,
                type_id=1,
                arrays={name: values[:10] for name, values in edges["b:f:b"].items()}
                | {"eid": np.arange(10) + 300},
            )
        ],
    ]
    y_indexes = tuple(
        index
        for index in declared_indexes(EDGE_SCHEMA)
        if (index.type_id, index.column) == (0, "y")
    )
    unindexed = run_build(tmp_path, EDGE_SCHEMA, loads, commit=3, name="bare")
    one = run_build(
        tmp_path, EDGE_SCHEMA, loads, commit=3, name="one", indexes=y_indexes, sources=[unindexed]
    )
    assert _rebuilt_units(one.output) == {
        f"e0.xr0{suffix}"
        for suffix in ("", ".w", ".w0", ".out", ".out.w", ".out.w0", ".in", ".in.w", ".in.w0")
    }
    two = run_build(tmp_path, EDGE_SCHEMA, loads, name="two", indexes=y_indexes, sources=[one])
    assert not any(name.startswith("e0") for name in _rebuilt_units(two.output))
    assert any(name.startswith("e1") for name in _rebuilt_units(two.output))


def _rebuilt_units(output: Path) -> set[str]:
    """Return the names of the units of partition 0 that were built, not linked."""
    completed_part = CompletedPart.read(output, 0)
    assert completed_part is not None
    return {name for name, record in completed_part.units.items() if not record["linked"]}
