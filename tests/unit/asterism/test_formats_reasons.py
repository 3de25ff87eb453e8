"""Tests of the reasons of refusals: what is wrong, and in which file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.kit import schema_folder

from asterism.formats import open_source, row_validation
from asterism_proto.errors import InvalidRequest


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("1_000", "an id is an integer"),
        ("\u0663", "an id is an integer"),
        ("1.5", "an id is an integer"),
        ("--1", "an id is an integer"),
        ("", "the id is missing"),
        ("-7", "an id is not negative"),
        (" 9223372036854775808 ", "an id is below 2^63"),
        ("9" * 5000, "an id is below 2^63"),
    ],
)
def test_reasons_of_ids(tmp_path: Path, value: str, reason: str) -> None:
    assert row_validation.id_error(value) == reason
    schema = "nodes: {n: {files: n.csv, id: id, features: {f: bytes}}}\n"
    chunks = schema_folder.nodes(tmp_path, schema, {"n.csv": f"id,f\n{value},a\n"})
    assert [row.reason for row in schema_folder.bad_rows(chunks)] == [reason]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("1_000", "a weight is a number"),
        ("\u0663", "a weight is a number"),
        ("0x10", "a weight is a number"),
        ("", "the weight is missing"),
        ("-1", "a weight is not negative"),
        ("-inf", "a weight is finite and fits float32"),
        ("1e39", "a weight is finite and fits float32"),
        ("nan", "a weight is finite and fits float32"),
    ],
)
def test_reasons_of_weights(tmp_path: Path, value: str, reason: str) -> None:
    assert row_validation.weight_error(value) == reason
    schema = "nodes: {n: {files: n.csv, id: id, weight: w}}\n"
    chunks = schema_folder.nodes(tmp_path, schema, {"n.csv": f"id,w\n1,{value}\n"})
    assert [row.reason for row in schema_folder.bad_rows(chunks)] == [reason]


def test_reasons_of_vectors_name_missing_values(tmp_path: Path) -> None:
    schema = "nodes: {n: {files: n.csv, id: id, features: {x: {columns: [a, b]}}}}\n"
    chunks = schema_folder.nodes(tmp_path, schema, {"n.csv": "id,a,b\n1,2,\n2,1e39,1\n3,q,1\n"})
    assert [(row.column, row.reason) for row in schema_folder.bad_rows(chunks)] == [
        ("b", "the value is missing; `fill` says what it is then"),
        ("a", "expected float32; the number exceeds its range"),
        ("a", "expected float32"),
    ]


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("id", '"12"', "an id is an integer"),
        ("id", "1.0", "an id is an integer"),
        ("id", "true", "an id is an integer"),
        ("id", "-3", "an id is not negative"),
        ("id", "9223372036854775808", "an id is below 2^63"),
        ("weight", '"2.0"', "a weight is a number"),
        ("weight", "true", "a weight is a number"),
        ("weight", "-1", "a weight is not negative"),
    ],
)
def test_reasons_of_euler_values(tmp_path: Path, column: str, value: str, reason: str) -> None:
    good = '{"id": 5, "type": 0, "weight": 1, "features": []}'
    row = {"id": "1", "type": "0", "weight": "1", "features": "[]", column: value}
    bad = "{" + ", ".join(f'"{name}": {text}' for name, text in row.items()) + "}"
    (tmp_path / "graph.json").write_text('{"nodes": [' + f"{good}, {bad}" + '], "edges": []}')
    chunks = list(open_source(tmp_path).node_chunks())
    assert [(r.column, r.reason) for r in schema_folder.bad_rows(chunks)] == [(column, reason)]


def test_dgl_weights_are_refused_with_their_own_file_and_row(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("0 1\n1 2\n2 0\n0 2\n")
    np.save(tmp_path / "w0.npy", np.array([1.0]))
    np.save(tmp_path / "w1.npy", np.array([1.0, -2.0, 3.0]))
    np.save(tmp_path / "nw.npy", np.array([1.0, 1.0, -5.0]))
    weight = {"format": {"name": "numpy"}, "data": ["w0.npy", "w1.npy"]}
    document = {
        "graph_name": "g",
        "node_type": ["a"],
        "num_nodes_per_chunk": [[3]],
        "edge_type": ["a:e:a"],
        "num_edges_per_chunk": [[4]],
        "edges": {"a:e:a": {"format": {"name": "csv", "delimiter": " "}, "data": ["e.txt"]}},
        "node_data": {},
        "edge_data": {"a:e:a": {"weight": weight}},
    }
    (tmp_path / "metadata.json").write_text(json.dumps(document))
    for chunk_rows in (1, 2, 100):
        chunks = list(open_source(tmp_path, chunk_rows=chunk_rows).edge_chunks())
        assert [str(row) for row in schema_folder.bad_rows(chunks)] == [
            "w1.npy, row 1, column 'weight', value '-2.0': a weight is not negative"
        ]
        assert [s for chunk in chunks for s in chunk.src.tolist()] == [0, 1, 0]
    document["node_data"] = {"a": {"weight": {"format": {"name": "numpy"}, "data": ["nw.npy"]}}}
    (tmp_path / "metadata.json").write_text(json.dumps(document))
    with pytest.raises(InvalidRequest, match=r"row 2, value '-5.0': .*; repair nw\.npy"):
        list(open_source(tmp_path).node_chunks())


def test_euler_edges_that_are_all_bad_are_listed(tmp_path: Path) -> None:
    node = {"id": 1, "type": 0, "weight": 1, "features": []}
    odd = {**node, "id": 2, "features": [{"name": "x", "type": ["dense"], "value": [1]}]}
    edge = {"src": 1, "dst": "x", "type": 0, "weight": 1, "features": []}
    (tmp_path / "graph.json").write_text(json.dumps({"nodes": [node, odd], "edges": [edge]}))
    source = open_source(tmp_path)
    bad_nodes = schema_folder.bad_rows(list(source.node_chunks()))
    assert [row.column for row in bad_nodes] == ["features"]
    assert [row.column for row in schema_folder.bad_rows(list(source.edge_chunks()))] == ["dst"]


@pytest.mark.parametrize("header", [b"{'descr': (", b"\xff{", b"{'a': 1}", b""])
def test_a_broken_header_of_an_array_is_refused(tmp_path: Path, header: bytes) -> None:
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with pytest.raises(InvalidRequest, match=r"n\.npy: not a \.npy file"):
        schema_folder.nodes(tmp_path, "nodes: {n: {files: n.npy, id: id}}\n", {"n.npy": content})


@pytest.mark.parametrize("parts", ["many", "true", "1.5", "[2]"])
def test_a_number_of_parts_that_is_no_integer_is_refused(tmp_path: Path, parts: str) -> None:
    schema = f"parts: {parts}\nnodes: {{n: {{count: 3}}}}\n"
    with pytest.raises(InvalidRequest, match=r"parts .*: expected 1 to"):
        open_source(schema_folder.write(tmp_path, schema))
