"""Tests of files with string ids: content, refusals and messages."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from asterism.calls.schema_compatibility import check_schema_compatible
from asterism.formats import EdgeChunk, GraphSource, NodeChunk, open_source
from asterism_model.schema import Schema
from asterism_model.string_ids import encode_strings, hash_string, hash_strings
from asterism_proto.errors import InvalidRequest

NODES = "ids: string\nsalt: 7\nnodes: {port: {files: [ports.csv], id: code, weight: w}}\n"
EDGES = (
    "edges: {port:to:port: {files: [to.csv], src: a, dst: b, missing: create, symmetry: true}}\n"
)


def source(
    folder: Path, schema: str, files: Mapping[str, str | bytes] | None = None, **options: int
) -> GraphSource:
    for name, content in (files or {}).items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "schema.yaml").write_text(schema)
    return open_source(folder / "schema.yaml", **options)


def decode_column(column: Any) -> list[str]:
    indptr, data = column
    return [bytes(data[a:b]).decode() for a, b in pairwise(indptr)]


def bad_rows(chunk: NodeChunk | EdgeChunk) -> list[tuple[int, str, str, str]]:
    return [(row.row, row.column, row.value, row.reason) for row in chunk.bad]


def test_csv_ids_are_hashes_of_strings_that_are_kept(tmp_path: Path) -> None:
    (chunk,) = source(
        tmp_path, NODES, {"ports.csv": "code,w\nSFO,1\n  x,2\n007,3\nZürich,4\n"}
    ).node_chunks()
    assert decode_column(chunk.features["id"]) == ["SFO", "  x", "007", "Zürich"], (
        "as they stand: neither trimmed nor numbers"
    )
    assert chunk.ids.tolist() == [hash_string(word, 7) for word in ("SFO", "  x", "007", "Zürich")]


def test_bad_strings_are_reported_by_row(tmp_path: Path) -> None:
    long = "l" * 4097
    rows = [b"SFO,1", b",1", b"JFK,-1", long.encode() + b",1", b"\xff\xfe,1", b"LAX,2"]
    (chunk,) = source(
        tmp_path, NODES, {"ports.csv": b"code,w\n" + b"\n".join(rows) + b"\n"}
    ).node_chunks()
    assert decode_column(chunk.features["id"]) == ["SFO", "LAX"]
    assert [(row, column, reason) for row, column, _, reason in bad_rows(chunk)] == [
        (3, "code", "the id is missing"),
        (4, "w", "a weight is not negative"),
        (5, "code", "expected at most 4096 bytes in UTF-8, found 4097"),
        (6, "code", "expected UTF-8"),
    ]
    source_with_nul = source(tmp_path, NODES, {"ports.csv": b"code,w\nS\0O,1\nLAX,2\n"})
    (chunk,) = source_with_nul.node_chunks()
    assert [reason for *_, reason in bad_rows(chunk)] == [
        "expected a string without NUL characters"
    ]


def test_null_is_not_a_string_id(tmp_path: Path) -> None:
    (chunk,) = source(
        tmp_path, NODES + "csv: {nulls: ['\\N']}\n", {"ports.csv": "code,w\n\\N,1\nLAX,2\n"}
    ).node_chunks()
    assert bad_rows(chunk) == [(2, "code", "\\N", "the id is missing")]


def test_edges_bring_string_ids_of_ends_that_they_create(tmp_path: Path) -> None:
    graph_source = source(
        tmp_path,
        NODES + EDGES,
        {"ports.csv": "code,w\n", "to.csv": "a,b\nSFO,JFK\nSFO,\nLAX,LAX\n"},
    )
    forward, backward = graph_source.edge_chunks()
    assert (decode_column(forward.features["src"]), decode_column(forward.features["dst"])) == (
        ["SFO", "LAX"],
        ["JFK", "LAX"],
    )
    assert (decode_column(backward.features["src"]), decode_column(backward.features["dst"])) == (
        ["JFK"],
        ["SFO"],
    )
    for chunk in (forward, backward):
        for end in ("src", "dst"):
            assert getattr(chunk, end).tolist() == hash_strings(*chunk.features[end], 7).tolist()
    assert bad_rows(forward) == [(3, "b", "", "the id is missing")]


def test_edges_that_create_no_ends_bring_only_ids(tmp_path: Path) -> None:
    graph_source = source(
        tmp_path,
        NODES + EDGES.replace("create", "reject"),
        {"ports.csv": "code,w\n", "to.csv": "a,b\nSFO,JFK\nSFO,QQQ\n"},
    )
    known_ids = {hash_string(word, 7) for word in ("SFO", "JFK")}
    forward, _ = graph_source.edge_chunks(lambda ntype, ids: np.isin(ids, list(known_ids)))
    assert dict(forward.features) == {}
    assert forward.dst.tolist() == [hash_string("JFK", 7)]
    assert bad_rows(forward) == [(3, "b", "QQQ", "there is no such node of type 'port'")]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["SFO", "JFK"]),
        pa.array(["SFO", "JFK"]).dictionary_encode(),
        pa.array([b"SFO", b"JFK"]),
    ],
)
def test_parquet_strings_have_several_types(tmp_path: Path, column: pa.Array) -> None:
    parquet.write_table(pa.table({"code": column, "w": [1.0, 2.0]}), tmp_path / "ports.parquet")
    (chunk,) = source(tmp_path, NODES.replace("ports.csv", "ports.parquet")).node_chunks()
    assert (decode_column(chunk.features["id"]), chunk.ids.tolist()) == (
        ["SFO", "JFK"],
        [hash_string("SFO", 7), hash_string("JFK", 7)],
    )


def test_integers_become_string_ids_and_floats_are_refused(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"code": [7, -3], "w": [1.0, 2.0]}), tmp_path / "ports.parquet")
    (chunk,) = source(tmp_path, NODES.replace("ports.csv", "ports.parquet")).node_chunks()
    assert decode_column(chunk.features["id"]) == ["7", "-3"]
    parquet.write_table(pa.table({"code": [7.5], "w": [1.0]}), tmp_path / "ports.parquet")
    with pytest.raises(
        InvalidRequest,
        match=r"ports.parquet: column 'code': column of double: expected text or integers",
    ):
        list(source(tmp_path, NODES.replace("ports.csv", "ports.parquet")).node_chunks())


def test_numpy_strings_are_read(tmp_path: Path) -> None:
    np.save(
        tmp_path / "ports.npy",
        np.array([("SFO", 1.0), ("Zürich", 2.0)], [("code", "U9"), ("w", "f4")]),
    )
    (chunk,) = source(tmp_path, NODES.replace("ports.csv", "ports.npy")).node_chunks()
    assert decode_column(chunk.features["id"]) == ["SFO", "Zürich"]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("ids: string\nnodes: {port: {count: 4}}\n", "expected `files` with an `id`"),
        (
            "ids: string\nnodes: {port: {files: [ports.csv], key: code}}\n",
            "expected `files` with an `id`",
        ),
        (
            "ids: string\nnodes: {port: {files: [ports.csv], weight: w}}\n",
            "expected `files` with an `id`",
        ),
        (
            "ids: string\nnodes: {port: {files: [ports.csv], id: code, features: {id: bytes}}}\n",
            "feature 'id': expected another name",
        ),
        (NODES + EDGES.replace("symmetry: true", "aggregate: count"), "aggregate: expected none"),
        (
            NODES + EDGES.replace("symmetry: true", "self_loops: true"),
            "self_loops: expected none",
        ),
        (NODES.replace("ids: string\n", ""), "expected a salt only with `ids: string`"),
    ],
)
def test_nodes_without_string_ids_are_refused(tmp_path: Path, schema: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        source(tmp_path, schema, {"ports.csv": "code,w,id\nSFO,1,x\n", "to.csv": "a,b\n"})


def test_chunks_are_split_with_their_string_ids(tmp_path: Path) -> None:
    codes = [f"port-{i}" for i in range(1000)]
    graph_source = source(
        tmp_path,
        NODES,
        {"ports.csv": "code,w\n" + "".join(f"{code},1\n" for code in codes)},
        chunk_rows=64,
    )
    chunks = list(graph_source.node_chunks())
    assert len(chunks) > 10
    assert [code for chunk in chunks for code in decode_column(chunk.features["id"])] == codes
    assert (
        np.concatenate([chunk.ids for chunk in chunks]).tolist()
        == hash_strings(*encode_strings("w", codes), 7).tolist()
    )


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ({"ids": "per_type"}, "ids=string with salt 7 in the source: expected per_type"),
        ({"ids": "string", "salt": 8}, "salt 8"),
    ],
)
def test_space_of_another_id_kind_is_refused(
    tmp_path: Path, ids: dict[str, Any], said: str
) -> None:
    graph_source = source(tmp_path, NODES, {"ports.csv": "code,w\n"})
    with pytest.raises(InvalidRequest, match=said):
        check_schema_compatible(
            graph_source.schema, Schema.from_dict({"nodes": {"port": {"weighted": True}}, **ids})
        )
