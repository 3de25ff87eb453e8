"""Tests of DGL's chunked graph format: equal variants, and refused contradictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from tests.kit.shared import shared_or_skip

from asterism.formats import EdgeChunk, NodeChunk, open_source
from asterism_proto.errors import InvalidRequest

RNG = np.random.default_rng(5)
PAIRS = np.stack((RNG.integers(0, 6, 10), RNG.integers(0, 9, 10)), axis=1)
WEIGHT = RNG.random(10)
TALL = RNG.random(6) < 0.5
VECTOR = RNG.normal(size=(6, 3)).astype(np.float32)


def save(path: Path, values: np.ndarray[Any, Any], kind: str, delimiter: str = ",") -> str:
    if kind == "numpy":
        np.save(path, values)
    elif kind == "csv":
        columns = values.reshape(len(values), -1)
        table = pa.table({f"c{i}": column for i, column in enumerate(columns.T)})
        csv.write_csv(table, path, csv.WriteOptions(include_header=False, delimiter=delimiter))
    else:
        columns = values.reshape(len(values), -1)
        table = pa.table({f"c{i}": column for i, column in enumerate(columns.T)})
        parquet.write_table(table.replace_schema_metadata({"shape": str(values.shape)}), path)
    return path.name


def graph(
    folder: Path, *, kind: str = "numpy", delimiter: str = ",", tables: bool = True, **changes: Any
) -> Path:
    """Write a graph of 6 users and 9 items with 10 edges in two files.

    The files of features have other boundaries.
    """
    suffix = {"numpy": "npy"}.get(kind, kind)
    form = {"name": kind, "delimiter": delimiter} if kind == "csv" else {"name": kind}

    def save_files(name: str, values: np.ndarray[Any, Any], *offsets: int) -> dict[str, Any]:
        parts = np.split(values, offsets)
        return {
            "format": form,
            "data": [
                save(folder / f"{name}-{i}.{suffix}", part, kind, delimiter)
                for i, part in enumerate(parts)
            ],
        }

    metadata: dict[str, Any] = {
        "graph_name": "g",
        "node_type": ["user", "item"],
        "edge_type": ["user:likes:item"],
        "num_nodes_per_chunk": [[2, 4], [9]],
        "num_edges_per_chunk": [[4, 6]],
        "edges": {"user:likes:item": save_files("likes", PAIRS, 4)},
        "node_data": {"user": {"vector": save_files("vector", VECTOR, 1, 2)}},
        "edge_data": {"user:likes:item": {"w": save_files("w", WEIGHT, 7)}},
    }
    if kind == "numpy":
        metadata["node_data"]["user"]["tall"] = save_files("tall", TALL)
    metadata |= changes
    (folder / "metadata.json").write_text(
        json.dumps({key: value for key, value in metadata.items() if value is not None})
    )
    return folder


def concat_edges(chunks: list[EdgeChunk]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    weights = [chunk.weights for chunk in chunks if chunk.weights is not None]
    return np.concatenate(
        [np.stack((chunk.src, chunk.dst), axis=1) for chunk in chunks]
    ), np.concatenate(weights)


@pytest.mark.parametrize("chunk_rows", [1, 3, 1000])
@pytest.mark.parametrize(
    ("kind", "delimiter"),
    [("numpy", ""), ("parquet", ""), ("csv", ","), ("csv", " "), ("csv", "\t"), ("csv", "|")],
)
def test_graph_is_the_same_in_every_format_and_chunking(
    tmp_path: Path, kind: str, delimiter: str, chunk_rows: int
) -> None:
    source = open_source(
        graph(tmp_path, kind=kind, delimiter=delimiter),
        weights={"user:likes:item": "w"},
        chunk_rows=chunk_rows,
    )
    users: list[NodeChunk] = [chunk for chunk in source.node_chunks() if chunk.ntype == "user"]
    assert np.concatenate([chunk.ids for chunk in users]).tolist() == list(range(6))
    vectors = np.concatenate([np.asarray(chunk.features["vector"]) for chunk in users])
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, VECTOR)
    chunks = list(source.edge_chunks())
    pairs, weights = concat_edges(chunks)
    assert np.array_equal(pairs, PAIRS)
    assert np.allclose(weights, WEIGHT, rtol=1e-6)
    assert all(len(chunk) <= chunk_rows for chunk in [*users, *chunks])
    assert source.total_rows == 25


def test_features_keep_dtype_and_shape_weights_included(tmp_path: Path) -> None:
    schema = open_source(graph(tmp_path), weights={"user:likes:item": "w"}).schema
    assert [(f.name, f.dtype, f.shape) for f in schema.node_types[0].features] == [
        ("vector", "float32", (3,)),
        ("tall", "bool", ()),
    ]
    assert [(f.name, f.dtype) for f in schema.edge_types[0].features] == [("w", "float64")]
    assert schema.edge_types[0].weighted
    assert not open_source(tmp_path).schema.edge_types[0].weighted


def test_weight_is_read_by_name_and_eid_must_be_renamed(tmp_path: Path) -> None:
    graph(tmp_path)
    metadata = json.loads((tmp_path / "metadata.json").read_text())
    data = metadata["edge_data"]["user:likes:item"]
    (tmp_path / "metadata.json").write_text(
        json.dumps(metadata | {"edge_data": {"user:likes:item": {"weight": data["w"]}}})
    )
    source = open_source(tmp_path)
    assert source.schema.edge_types[0].weighted
    assert source.schema.edge_types[0].features == ()
    assert np.allclose(concat_edges(list(source.edge_chunks()))[1], WEIGHT, rtol=1e-6)
    (tmp_path / "metadata.json").write_text(
        json.dumps(metadata | {"edge_data": {"user:likes:item": {"eid": data["w"]}}})
    )
    with pytest.raises(InvalidRequest, match=r"feature 'eid' of .* reserved"):
        open_source(tmp_path)
    (chunk, *_) = open_source(tmp_path, rename={"eid": "number"}).edge_chunks()
    assert np.array_equal(np.asarray(chunk.features["number"]), WEIGHT[:4])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("wide", [False, True])
def test_arrays_of_edges_lie_by_rows_or_by_columns(tmp_path: Path, order: Any, wide: bool) -> None:
    graph(tmp_path)
    for i, part in enumerate(np.split(PAIRS, [4])):
        np.save(tmp_path / f"likes-{i}.npy", np.asarray(part.T if wide else part, order=order))
    pairs, _ = concat_edges(
        list(open_source(tmp_path, weights={"user:likes:item": "w"}, chunk_rows=3).edge_chunks())
    )
    assert np.array_equal(pairs, PAIRS)


def test_a_two_by_two_array_holds_an_edge_per_row(tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", np.array([[0, 1], [2, 3]]))
    edge_files = {
        "user:likes:item": {"format": {"name": "numpy"}, "data": [str(tmp_path / "e.npy")]}
    }
    (chunk,) = open_source(
        graph(tmp_path, edges=edge_files, edge_data=None, num_edges_per_chunk=[[2]])
    ).edge_chunks()
    assert (chunk.src.tolist(), chunk.dst.tolist()) == ([0, 2], [1, 3])


@pytest.mark.parametrize(
    "counts",
    [
        {"num_nodes_per_type": [6, 9]},
        {"num_nodes_per_type": [6, 9], "num_nodes_per_chunk": None, "num_edges_per_chunk": None},
        {"num_edges_per_type": [10]},
    ],
)
def test_counts_may_be_per_type_or_per_chunk(tmp_path: Path, counts: dict[str, Any]) -> None:
    source = open_source(graph(tmp_path, **counts))
    assert (sum(map(len, source.node_chunks())), sum(map(len, source.edge_chunks()))) == (15, 10)


@pytest.mark.parametrize("kind", ["numpy", "parquet", "csv"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"num_edges_per_chunk": [[5, 5]]},
            r"likes-0\.\w+: expected 5 edges of 'user:likes:item', found 4",
        ),
        (
            {"num_edges_per_chunk": None, "num_edges_per_type": [11]},
            r"likes-1\.\w+: expected 11 edges of 'user:likes:item' in all its files, found 10",
        ),
        ({"num_nodes_per_chunk": [[7], [9]]}, r"vector-2\.\w+: expected 7"),
        (
            {"num_nodes_per_chunk": [[5], [9]]},
            r"vector-2\.\w+: expected 5 rows of|vector-2\.\w+: expected 5",
        ),
        (
            {"num_nodes_per_type": [5, 9]},
            "num_nodes_per_type says 5, num_nodes_per_chunk adds up to 6",
        ),
        ({"num_nodes_per_chunk": None}, "node type 'user': expected its number of nodes"),
        ({"num_nodes_per_chunk": [[6]]}, "expected one entry for each"),
        ({"edge_type": ["user:likes:dog"]}, "expected ends of node_type .* found 'dog'"),
        ({"edges": {}}, "edges of 'user:likes:item'"),
        ({"node_data": {"dog": {}}}, "found 'dog'"),
    ],
)
def test_contradictions_are_refused_with_expected_and_found(
    tmp_path: Path, kind: str, change: dict[str, Any], said: str
) -> None:
    graph(tmp_path, kind=kind, **change)

    def read_all() -> None:
        source = open_source(tmp_path)
        for chunk in (*source.node_chunks(), *source.edge_chunks()):
            assert not chunk.bad

    with pytest.raises(InvalidRequest, match=said):
        read_all()


def test_missing_truncated_or_misshapen_files_are_refused(tmp_path: Path) -> None:
    graph(tmp_path)
    content = (tmp_path / "w-1.npy").read_bytes()
    (tmp_path / "w-1.npy").write_bytes(content[:-1])
    with pytest.raises(
        InvalidRequest, match=r"w-1\.npy: expected 152 bytes \(it is cut off\), found 151"
    ):
        open_source(tmp_path)
    (tmp_path / "w-1.npy").write_bytes(content[:20])
    with pytest.raises(InvalidRequest, match=r"w-1\.npy: not a \.npy file"):
        open_source(tmp_path)
    (tmp_path / "w-1.npy").unlink()
    with pytest.raises(InvalidRequest, match=r"w-1\.npy: no such file"):
        open_source(tmp_path)
    np.save(tmp_path / "w-1.npy", np.zeros((3, 2)))
    with pytest.raises(
        InvalidRequest,
        match=r"w-1\.npy: expected float64\[\] a row, as in w-0\.npy, found float64\[2\]",
    ):
        open_source(tmp_path)
    np.save(tmp_path / "w-1.npy", np.array(["a", "b", "c"]))
    with pytest.raises(InvalidRequest, match=r"w-1\.npy of <U1: expected"):
        open_source(tmp_path)
    graph(tmp_path)
    np.save(tmp_path / "likes-0.npy", np.zeros((4, 3), np.int64))
    with pytest.raises(InvalidRequest, match=r"likes-0\.npy: expected \[E, 2\] or \[2, E\]"):
        open_source(tmp_path)
    graph(tmp_path, kind="parquet")
    content = (tmp_path / "likes-0.parquet").read_bytes()
    (tmp_path / "likes-0.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(InvalidRequest, match=r"likes-0\.parquet: expected a complete Parquet file"):
        open_source(tmp_path)


def test_bad_edges_are_dropped_with_their_features(tmp_path: Path) -> None:
    graph(tmp_path, kind="csv")
    lines = [f"{a},{b}" for a, b in PAIRS[:4]]
    (tmp_path / "likes-0.csv").write_text("\n".join([lines[0], "1,2,3", "-1,2", lines[3]]) + "\n")
    (tmp_path / "w-0.csv").write_text(
        "".join(f"{w}\n" for w in WEIGHT[:3]) + "-4\n0.5\nmuch\n0.25\n"
    )
    chunks = list(open_source(tmp_path, weights={"user:likes:item": "w"}).edge_chunks())
    pairs, weights = concat_edges(chunks)
    assert np.array_equal(pairs, PAIRS[[0, 4, 6, 7, 8, 9]])
    assert np.allclose(weights, [WEIGHT[0], 0.5, 0.25, *WEIGHT[7:]])
    bad_rows = [(row.file, row.row, row.column, row.value) for chunk in chunks for row in chunk.bad]
    assert bad_rows[:3] == [
        ("likes-0.csv", 2, "", "1,2,3"),
        ("likes-0.csv", 3, "src", "-1"),
        ("w-0.csv", 4, "w", "-4.0"),
    ]
    assert bad_rows[3][:2] == ("w-0.csv", 6)
    assert bad_rows[3][3] == "much"


def test_ends_beyond_the_number_of_nodes_are_bad(tmp_path: Path) -> None:
    graph(tmp_path)
    pairs = PAIRS[:4].copy()
    pairs[2] = 6, 1
    pairs[3] = 5, 9
    np.save(tmp_path / "likes-0.npy", pairs)
    chunk, _ = open_source(tmp_path).edge_chunks()
    assert len(chunk) == 2
    assert [(row.row, row.value, row.reason) for row in chunk.bad] == [
        (2, "6", "'user' has 6 nodes, 0 to 5"),
        (3, "9", "'item' has 9 nodes, 0 to 8"),
    ]


def test_unreadable_node_features_are_an_error(tmp_path: Path) -> None:
    graph(tmp_path, kind="csv")
    (tmp_path / "vector-1.csv").write_text("1,x,3\n")
    with pytest.raises(InvalidRequest, match=r"vector-1\.csv, row 1, .*'x'.*none can be left out"):
        list(open_source(tmp_path).node_chunks())


def test_vectors_in_one_parquet_column_are_dense(tmp_path: Path) -> None:
    graph(tmp_path, kind="parquet")
    for i, part in enumerate(np.split(VECTOR, [1, 2])):
        parquet.write_table(
            pa.table({"v": pa.array(part.tolist(), pa.list_(pa.float32()))}),
            tmp_path / f"vector-{i}.parquet",
        )
    users = [chunk for chunk in open_source(tmp_path).node_chunks() if chunk.ntype == "user"]
    assert np.array_equal(
        np.concatenate([np.asarray(chunk.features["vector"]) for chunk in users]), VECTOR
    )


@pytest.mark.parametrize(
    ("name", "nodes", "edges"), [("chunked_homo", 40, 220), ("chunked_hetero", 92, 430)]
)
def test_graphs_chunked_by_dgls_own_tools_are_read(name: str, nodes: int, edges: int) -> None:
    folder = shared_or_skip("dgl", "truth", "dispatch-2.1.0", name)
    source = open_source(folder, rename={"eid": "number"})
    assert sum(map(len, source.node_chunks())) == nodes
    edge_count = 0
    for chunk in source.edge_chunks():
        expected_pairs = np.loadtxt(folder / chunk.file, dtype=np.int64, ndmin=2)
        assert np.array_equal(np.stack((chunk.src, chunk.dst), axis=1), expected_pairs)
        number = np.load(
            folder / "edge_data" / f"{chunk.etype.replace(':', '_')}-eid-{chunk.file[-5]}.npy"
        )
        assert np.array_equal(np.asarray(chunk.features["number"]), number)
        edge_count += len(chunk)
    assert edge_count == edges
