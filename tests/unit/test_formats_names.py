"""Files whose ids are strings: what is read, what is refused, and how that is said."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from asterism.fitting import check_fits
from asterism.formats import EdgeChunk, NodeChunk, Source, open_source
from asterism_proto.errors import InvalidRequest
from asterism_proto.names import encoded, id_of, ids_of
from asterism_proto.schema import Schema

NODES = "ids: string\nsalt: 7\nnodes: {port: {files: [ports.csv], id: code, weight: w}}\n"
EDGES = "edges: {port:to:port: {files: [to.csv], src: a, dst: b, missing: create, symmetry: true}}\n"


def source(folder: Path, schema: str, files: Mapping[str, str | bytes] | None = None, **options: int) -> Source:
    for name, content in (files or {}).items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "schema.yaml").write_text(schema)
    return open_source(folder / "schema.yaml", **options)


def texts(column: Any) -> list[str]:
    indptr, data = column
    return [bytes(data[a:b]).decode() for a, b in pairwise(indptr)]


def bad(chunk: NodeChunk | EdgeChunk) -> list[tuple[int, str, str, str]]:
    return [(row.row, row.column, row.value, row.reason) for row in chunk.bad]


def test_ids_of_csv_are_those_of_the_strings_which_come_along(tmp_path: Path) -> None:
    (chunk,) = source(tmp_path, NODES, {"ports.csv": "code,w\nSFO,1\n  x,2\n007,3\nZürich,4\n"}).node_chunks()
    assert texts(chunk.features["id"]) == ["SFO", "  x", "007", "Zürich"], "as they stand: neither trimmed nor numbers"
    assert chunk.ids.tolist() == [id_of(word, 7) for word in ("SFO", "  x", "007", "Zürich")]


def test_bad_strings_are_told_by_row_as_bad_numbers_are(tmp_path: Path) -> None:
    long = "l" * 257
    rows = [b"SFO,1", b",1", b"JFK,-1", long.encode() + b",1", b"\xff\xfe,1", b"LAX,2"]
    (chunk,) = source(tmp_path, NODES, {"ports.csv": b"code,w\n" + b"\n".join(rows) + b"\n"}).node_chunks()
    assert texts(chunk.features["id"]) == ["SFO", "LAX"]
    assert [(row, column, reason) for row, column, _, reason in bad(chunk)] == [
        (3, "code", "the id is missing"),
        (4, "w", "a weight is not negative"),
        (5, "code", "257 bytes; a name has 256 at most in UTF-8"),
        (6, "code", "a name is UTF-8"),
    ]
    nul = source(tmp_path, NODES, {"ports.csv": b"code,w\nS\0O,1\nLAX,2\n"})
    (chunk,) = nul.node_chunks()
    assert [reason for *_, reason in bad(chunk)] == ["a name has no NUL character"]


def test_a_null_is_no_name(tmp_path: Path) -> None:
    (chunk,) = source(tmp_path, NODES + "csv: {nulls: ['\\N']}\n", {"ports.csv": "code,w\n\\N,1\nLAX,2\n"}).node_chunks()
    assert bad(chunk) == [(2, "code", "\\N", "the id is missing")]


def test_edges_bring_the_names_of_ends_that_they_create_both_ways(tmp_path: Path) -> None:
    opened = source(tmp_path, NODES + EDGES, {"ports.csv": "code,w\n", "to.csv": "a,b\nSFO,JFK\nSFO,\nLAX,LAX\n"})
    there, back = opened.edge_chunks()
    assert (texts(there.features["src"]), texts(there.features["dst"])) == (["SFO", "LAX"], ["JFK", "LAX"])
    assert (texts(back.features["src"]), texts(back.features["dst"])) == (["JFK"], ["SFO"])
    for chunk in (there, back):
        for end in ("src", "dst"):
            assert getattr(chunk, end).tolist() == ids_of(*chunk.features[end], 7).tolist()
    assert bad(there) == [(3, "b", "", "the id is missing")]


def test_edges_that_create_nothing_bring_ids_alone(tmp_path: Path) -> None:
    opened = source(tmp_path, NODES + EDGES.replace("create", "reject"), {"ports.csv": "code,w\n", "to.csv": "a,b\nSFO,JFK\nSFO,QQQ\n"})
    known = {id_of(word, 7) for word in ("SFO", "JFK")}
    there, _ = opened.edge_chunks(lambda ntype, ids: np.isin(ids, list(known)))
    assert dict(there.features) == {}
    assert there.dst.tolist() == [id_of("JFK", 7)]
    assert bad(there) == [(3, "b", "QQQ", "there is no such node of type 'port'")]


@pytest.mark.parametrize("column", [pa.array(["SFO", "JFK"]), pa.array(["SFO", "JFK"]).dictionary_encode(), pa.array([b"SFO", b"JFK"])])
def test_parquet_has_strings_in_several_ways(tmp_path: Path, column: pa.Array) -> None:
    parquet.write_table(pa.table({"code": column, "w": [1.0, 2.0]}), tmp_path / "ports.parquet")
    (chunk,) = source(tmp_path, NODES.replace("ports.csv", "ports.parquet")).node_chunks()
    assert (texts(chunk.features["id"]), chunk.ids.tolist()) == (["SFO", "JFK"], [id_of("SFO", 7), id_of("JFK", 7)])


def test_whole_numbers_are_their_text_and_others_are_no_names(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"code": [7, -3], "w": [1.0, 2.0]}), tmp_path / "ports.parquet")
    (chunk,) = source(tmp_path, NODES.replace("ports.csv", "ports.parquet")).node_chunks()
    assert texts(chunk.features["id"]) == ["7", "-3"]
    parquet.write_table(pa.table({"code": [7.5], "w": [1.0]}), tmp_path / "ports.parquet")
    with pytest.raises(InvalidRequest, match=r"ports.parquet: column 'code': a column of double can not be read as names"):
        list(source(tmp_path, NODES.replace("ports.csv", "ports.parquet")).node_chunks())


def test_numpy_has_strings_too(tmp_path: Path) -> None:
    np.save(tmp_path / "ports.npy", np.array([("SFO", 1.0), ("Zürich", 2.0)], [("code", "U9"), ("w", "f4")]))
    (chunk,) = source(tmp_path, NODES.replace("ports.csv", "ports.npy")).node_chunks()
    assert texts(chunk.features["id"]) == ["SFO", "Zürich"]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("ids: string\nnodes: {port: {count: 4}}\n", "give `files` with an `id`"),
        ("ids: string\nnodes: {port: {files: [ports.csv], key: code}}\n", "give `files` with an `id`"),
        ("ids: string\nnodes: {port: {files: [ports.csv], weight: w}}\n", "give `files` with an `id`"),
        ("ids: string\nnodes: {port: {files: [ports.csv], id: code, features: {id: bytes}}}\n", "feature 'id': the name is reserved"),
        (NODES + EDGES.replace("symmetry: true", "aggregate: count"), "`aggregate` makes has none"),
        (NODES + EDGES.replace("symmetry: true", "self_loops: true"), "`self_loops` makes has none"),
        (NODES.replace("ids: string\n", ""), "only `ids: string` has a salt"),
    ],
)
def test_what_gives_nodes_no_names_is_refused(tmp_path: Path, schema: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        source(tmp_path, schema, {"ports.csv": "code,w,id\nSFO,1,x\n", "to.csv": "a,b\n"})


def test_chunks_are_cut_with_their_names(tmp_path: Path) -> None:
    words = [f"port-{i}" for i in range(1000)]
    opened = source(tmp_path, NODES, {"ports.csv": "code,w\n" + "".join(f"{word},1\n" for word in words)}, chunk_rows=64)
    chunks = list(opened.node_chunks())
    assert len(chunks) > 10
    assert [word for chunk in chunks for word in texts(chunk.features["id"])] == words
    assert np.concatenate([chunk.ids for chunk in chunks]).tolist() == ids_of(*encoded("w", words), 7).tolist()


@pytest.mark.parametrize(
    ("ids", "said"), [({"ids": "per_type"}, "ids are string with salt 7 in the source, per_type"), ({"ids": "string", "salt": 8}, "salt 8")]
)
def test_a_space_of_other_ids_does_not_take_them(tmp_path: Path, ids: dict[str, Any], said: str) -> None:
    opened = source(tmp_path, NODES, {"ports.csv": "code,w\n"})
    with pytest.raises(InvalidRequest, match=said):
        check_fits(opened.schema, Schema.from_dict({"nodes": {"port": {"weighted": True}}, **ids}))
