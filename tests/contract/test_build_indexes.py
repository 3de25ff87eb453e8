"""Indexes as builds write them: those of a sort in memory, whatever the memory; linked where their input is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.building import Op, built
from tests.kit.images import Edges, Nodes, part_images

from asterism_proto.indexes import Index, declared_of
from asterism_proto.meaning import NODE
from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.tables import WeightTable
from storaged.build.marks import Mark
from storaged.store import graph
from storaged.store.image import NodeImage

SIZE = 40_000
"""More than fit in the memory of the smaller build at once, in each part."""
_FEATURES = (
    Feature(name="x", dtype="float64"),
    Feature(name="k", dtype="int32"),
    Feature(name="s", kind="bytes"),
    Feature(name="v", shape=(2,)),
)
_MORE = WeightTable(name="more", expression="weight * 2 + abs(k)")
SCHEMA = Schema(node_types=(NodeType(name="a", weighted=True, features=_FEATURES, tables=(_MORE,)), NodeType(name="b")), parts=2)
INDEXES = tuple(
    sorted(
        Index(element=NODE, type_id=type_id, column=column, kind=kind)
        for type_id, column, kind in (
            (0, "x", "range"), (0, "x", "hash"), (0, "k", "hash"), (0, "k", "range"), (0, "s", "hash"), (0, "v[1]", "range"), (0, "weight", "range"),
            (0, "id", "range"), (1, "id", "hash"), (1, "weight", "range"),
        )
    )
)  # fmt: skip
_RNG = np.random.default_rng(3)
IDS = np.sort(_RNG.choice(2 * SIZE, SIZE, replace=False))


def _texts() -> tuple[np.ndarray, np.ndarray]:
    texts = [b"" if i < 20 else str(i % 300).encode() for i in _RNG.integers(0, 2000, SIZE)]
    return np.append(0, np.cumsum([len(text) for text in texts])), np.frombuffer(b"".join(texts), np.uint8)


COLUMNS: dict[str, Any] = {
    "x": np.where(_RNG.random(SIZE) < 0.1, np.nan, np.round(_RNG.normal(size=SIZE), 2)),
    "k": np.where(_RNG.random(SIZE) < 0.7, 0, _RNG.integers(-50, 50, SIZE)).astype(np.int32),  # most of them share one value
    "s": _texts(),
    "v": _RNG.random((SIZE, 2)).astype(np.float32),
}
WEIGHTS = np.where(_RNG.random(SIZE) < 0.2, 0, np.exp(_RNG.normal(size=SIZE) * 3)).astype(np.float32)


def _loads(weights: np.ndarray = WEIGHTS) -> list[list[Op]]:
    features = {f"f:{name}": COLUMNS[name] for name in "xkv"} | {"f:s.indptr": COLUMNS["s"][0], "f:s.values": COLUMNS["s"][1]}
    nodes = Op(kind=graph.NODES, type_id=0, arrays={"ids": IDS, "weight": weights, **features})
    return [[nodes, Op(kind=graph.NODES, type_id=1, arrays={"ids": np.arange(500)})]]


def _reference() -> dict[int, tuple[NodeImage, ...]]:
    features = COLUMNS | {"v[1]": COLUMNS["v"][:, 1]}
    more = (WEIGHTS.astype(np.float64) * 2 + np.abs(COLUMNS["k"])).astype(np.float32)
    of = [[(index.column, index.kind) for index in INDEXES if index.type_id == type_id] for type_id in (0, 1)]
    nodes = {
        "a": Nodes(ids=IDS, weights=WEIGHTS, features=features, named={"more": more}, indexes=tuple(of[0])),
        "b": Nodes(ids=np.arange(500), indexes=tuple(of[1])),
    }
    return {part: image.nodes for part, image in part_images(SCHEMA, nodes, {}).items()}


@pytest.mark.parametrize("memory_limit_mib", [512, 1])
def test_a_build_writes_the_indexes_of_a_sort_in_memory_whatever_its_memory(tmp_path: Path, memory_limit_mib: int) -> None:
    made = built(tmp_path, SCHEMA, _loads(), memory_limit_mib=memory_limit_mib, indexes=INDEXES)
    reference = _reference()
    for image in made.images:
        for node, expected in zip(image.nodes, reference[image.part], strict=True):
            # Kinds of one column and of one type, in the order of the task.
            assert [(index.column, index.kind) for index in node.indexes] == [(index.column, index.kind) for index in expected.indexes]
            rows = np.flatnonzero(node.live) if node.live.size else np.arange(node.rows)
            for index, other in zip(node.indexes, expected.indexes, strict=True):
                assert np.array_equal(rows[np.searchsorted(rows, index.rows)], index.rows)
                assert np.array_equal(_ids(image, node, index.rows), _ids(image, expected, other.rows))
                np.testing.assert_array_equal(index.values, other.values)
                assert np.array_equal(index.bounds, other.bounds)
                assert index.tables.keys() == other.tables.keys()
                for name, tables in index.tables.items():
                    assert np.array_equal(tables.positives, other.tables[name].positives)
                    assert len(tables.levels) == len(other.tables[name].levels) == (2 if node.count > 4096 else 1)
                    for level, counterpart in zip(tables.levels, other.tables[name].levels, strict=True):
                        assert np.array_equal(level.sums, counterpart.sums)
                        assert np.array_equal(level.hot, counterpart.hot)
                        assert np.array_equal(level.cold, counterpart.cold)


def _ids(image: Any, node: NodeImage, rows: np.ndarray) -> np.ndarray:
    return rows.astype(np.int64) * image.parts + image.part if node.dense else node.ids[rows]


def test_an_index_is_linked_while_its_column_and_the_weights_are_what_they_were(tmp_path: Path) -> None:
    loads = [*_loads(), [Op(kind=graph.NODES, type_id=0, arrays={"ids": IDS, "weight": WEIGHTS[::-1].copy()})]]
    x = INDEXES[[(index.column, index.kind) for index in INDEXES].index(("x", "range"))]
    bare = built(tmp_path, SCHEMA, loads, upto=1, name="bare")
    first = built(tmp_path, SCHEMA, loads, upto=1, name="first", indexes=[x], sources=[bare])
    assert _made(first.output) == {"n0.xr0", "n0.xr0.w", "n0.xr0.w0"}  # all else is shared with the version before
    two = tuple(index for index in INDEXES if index.column == "x")
    second = built(tmp_path, SCHEMA, loads, upto=1, name="second", indexes=two, sources=[first])
    assert _made(second.output) == {"n0.xh0", "n0.xh0.w", "n0.xh0.w0"}
    third = built(tmp_path, SCHEMA, loads, name="third", indexes=two, sources=[second])
    assert not _made(third.output) & {"n0.xr0", "n0.xh0", "n0.features"}  # other weights: the order stays, its tables do not
    assert _made(third.output) >= {"n0.xr0.w", "n0.xh0.w0"}
    assert built(tmp_path, SCHEMA, loads, upto=1, name="again", sources=[second]).digests == bare.digests


EDGES = 9000
_KINDS = (
    EdgeType(
        src_type="a",
        relation="e",
        dst_type="b",
        weighted=True,
        features=(Feature(name="y", dtype="float32"), Feature(name="z", dtype="uint64"), Feature(name="v", shape=(2,))),
        tables=(WeightTable(name="more", expression="weight * 2 + y"),),
        index=("z", "y", "id", "weight"),
    ),
    EdgeType(src_type="b", relation="f", dst_type="b", features=(Feature(name="k", dtype="bool"),), index=("k", "weight")),
)
OF_EDGES = Schema(node_types=(NodeType(name="a"), NodeType(name="b")), edge_types=_KINDS, parts=2, direction="both")


def _edges() -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(9)
    ends = {"a:e:b": (np.where(rng.random(EDGES) < 0.6, 4, rng.integers(0, 50, EDGES)), rng.integers(0, 40, EDGES))}  # 4 is a hub
    ends["b:f:b"] = rng.integers(0, 40, 300), rng.integers(0, 40, 300)
    y, z = np.round(rng.random(EDGES) * 9, 1).astype(np.float32), rng.integers(0, 1 << 63, EDGES).astype(np.uint64) * np.uint64(2)
    of = {"a:e:b": {"weight": rng.integers(0, 4, EDGES).astype(np.float32), "f:y": y, "f:z": z, "f:v": rng.random((EDGES, 2)).astype(np.float32)}}
    of["b:f:b"] = {"f:k": rng.random(300) < 0.4}
    return {name: {"src": ends[name][0], "dst": ends[name][1], "eid": np.arange(ends[name][0].size), **of[name]} for name in ends}


@pytest.mark.parametrize("memory_limit_mib", [512, 1])
def test_a_build_keeps_edges_and_those_of_each_node_in_order_whatever_its_memory(tmp_path: Path, memory_limit_mib: int) -> None:
    edges = _edges()
    loads = [[Op(kind=graph.NODES, type_id=0, arrays={"ids": np.arange(50)}), Op(kind=graph.NODES, type_id=1, arrays={"ids": np.arange(40)})]]
    loads += [[Op(kind=graph.OUT_EDGES, type_id=t, arrays=edges[kind.name])] for t, kind in enumerate(_KINDS)]
    made = built(tmp_path, OF_EDGES, loads, memory_limit_mib=memory_limit_mib, indexes=declared_of(OF_EDGES))
    known = {
        name: Edges(
            src=of["src"],
            dst=of["dst"],
            weights=of.get("weight"),
            features={column[2:]: values for column, values in of.items() if column.startswith("f:")},
            named={"more": of["weight"] * 2 + of["f:y"]} if "weight" in of else {},
        )
        for name, of in edges.items()
    }
    reference = part_images(OF_EDGES, {"a": Nodes(ids=np.arange(50)), "b": Nodes(ids=np.arange(40))}, known)
    for image in made.images:
        for edge, expected in zip(image.edges, reference[image.part].edges, strict=True):
            assert [index.column for index in edge.indexes] == [index.column for index in expected.indexes]
            for side, other in ((edge.out, expected.out), (edge.into, expected.into)):
                assert side is not None
                assert other is not None
                assert side.near.keys() == other.near.keys()
                for name, values in side.near.items():
                    assert values.dtype == other.near[name].dtype
                    np.testing.assert_array_equal(values, other.near[name])
            for index, counterpart in zip(edge.indexes, expected.indexes, strict=True):
                assert np.array_equal(index.rows, counterpart.rows)
                np.testing.assert_array_equal(index.values, counterpart.values)
                assert index.tables.keys() == counterpart.tables.keys()
                for name, tables in index.tables.items():
                    assert np.array_equal(tables.positives, counterpart.tables[name].positives)
                    for level, its in zip(tables.levels, counterpart.tables[name].levels, strict=True):
                        assert np.array_equal(level.hot, its.hot)
                        assert np.array_equal(level.sums, its.sums)
                for near, its_near in ((index.out, counterpart.out), (index.into, counterpart.into)):
                    assert near is not None
                    assert its_near is not None
                    assert np.array_equal(near.order, its_near.order)
                    assert np.array_equal(near.keys, its_near.keys)
                    assert near.trees.keys() >= its_near.trees.keys()
                    for name, tree in its_near.trees.items():
                        assert np.array_equal(near.trees[name], tree)


def test_orders_of_edges_are_linked_while_nothing_of_their_adjacency_changes(tmp_path: Path) -> None:
    edges = _edges()
    first = [[Op(kind=graph.NODES, type_id=0, arrays={"ids": np.arange(50)}), Op(kind=graph.NODES, type_id=1, arrays={"ids": np.arange(40)})]]
    first += [[Op(kind=graph.OUT_EDGES, type_id=t, arrays=edges[kind.name])] for t, kind in enumerate(_KINDS)]
    loads = [
        *first,
        [Op(kind=graph.OUT_EDGES, type_id=1, arrays={name: values[:10] for name, values in edges["b:f:b"].items()} | {"eid": np.arange(10) + 300})],
    ]
    of_y = tuple(index for index in declared_of(OF_EDGES) if (index.type_id, index.column) == (0, "y"))
    bare = built(tmp_path, OF_EDGES, loads, upto=3, name="bare")
    one = built(tmp_path, OF_EDGES, loads, upto=3, name="one", indexes=of_y, sources=[bare])
    assert _made(one.output) == {f"e0.xr0{rest}" for rest in ("", ".w", ".w0", ".out", ".out.w", ".out.w0", ".in", ".in.w", ".in.w0")}
    two = built(tmp_path, OF_EDGES, loads, name="two", indexes=of_y, sources=[one])
    assert not any(name.startswith("e0") for name in _made(two.output))
    assert any(name.startswith("e1") for name in _made(two.output))


def _made(output: Path) -> set[str]:
    """The units of part 0 that were not linked."""
    mark = Mark.read(output, 0)
    assert mark is not None
    return {name for name, record in mark.units.items() if not record["linked"]}
