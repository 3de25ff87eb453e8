"""Tests of Euler's JSON and euler.meta: content, order, memory, and refusals."""

from __future__ import annotations

import bz2
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.kit import euler_graph

from asterism import InvalidRequest
from asterism.formats import EdgeChunk, NodeChunk, open_source
from asterism.formats.euler import json_arrays as reading
from asterism.formats.euler.source import EulerSource
from asterism_model.schema import Schema


def write_graph(folder: Path, document: Any, meta: bytes | None = None, **layout: Any) -> Path:
    (folder / "graph.json").write_text(
        document if isinstance(document, str) else json.dumps(document, **layout)
    )
    if meta is not None:
        (folder / "euler.meta").write_bytes(meta)
    return folder / "graph.json"


def compress(data: bytes, suffix: str) -> bytes:
    if suffix == ".zst":
        return bytes(pa.compress(data, codec="zstd", asbytes=True))
    return bz2.compress(data) if suffix == ".bz2" else gzip.compress(data)


def node(i: int, kind: object = 0, weight: object = 1.0, **features: Any) -> dict[str, Any]:
    return {
        "id": i,
        "type": kind,
        "weight": weight,
        "features": [{"name": n, "type": t, "value": v} for n, (t, v) in features.items()],
    }


def edge(src: int, dst: int, kind: object = 0, weight: object = 1.0) -> dict[str, Any]:
    return {"src": src, "dst": dst, "type": kind, "weight": weight, "features": []}


def read_all(source: Any) -> tuple[list[NodeChunk], list[EdgeChunk]]:
    return list(source.node_chunks()), list(source.edge_chunks())


def test_sample_graph_has_the_handwritten_schema(tmp_path: Path) -> None:
    path = write_graph(tmp_path, euler_graph.as_json(), indent=2)
    source = open_source(tmp_path)
    assert isinstance(source, EulerSource)
    expected = Schema.from_dict({**euler_graph.SCHEMA, "parts": source.schema.parts})
    assert source.schema == expected
    assert source.files == (path,)
    assert source.total_rows == 18
    nodes, edges = read_all(source)
    assert [
        (chunk.ntype, chunk.ids.tolist(), chunk.weights.tolist())
        for chunk in nodes
        if chunk.weights is not None
    ] == [
        ("_1", [1, 3, 5], [1, 3, 5]),
        ("_0", [2, 4, 6], [2, 4, 6]),
    ]
    assert {
        (chunk.etype, s, d)
        for chunk in edges
        for s, d in zip(chunk.src.tolist(), chunk.dst.tolist(), strict=True)
    } == {(f"_{s % 2}:_{d % 2}:_{d % 2}", s, d) for s, d in euler_graph.PAIRS}
    assert 0 < sum(chunk.nbytes for chunk in [*nodes, *edges]) <= source.total_bytes
    assert np.allclose(nodes[0].features["f3"], [[1.1, 1.2], [3.1, 3.2], [5.1, 5.2]])


@pytest.mark.parametrize("edges_first", [False, True])
@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".zst"])
def test_compressed_graph_reads_as_its_text_does(
    tmp_path: Path, suffix: str, edges_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BLOCK_BYTES", 64)
    document = euler_graph.as_json()
    if edges_first:
        document = {name: document[name] for name in reversed(document)}
    path = write_graph(tmp_path, document, indent=2)
    plain = open_source(path)
    (tmp_path / "packed").mkdir()
    packed = tmp_path / "packed" / f"graph.json{suffix}"
    packed.write_bytes(compress(b"\xef\xbb\xbf" + path.read_bytes(), suffix or ".gz"))
    for source in (open_source(packed), open_source(packed.parent)):
        assert isinstance(source, EulerSource)
        assert source.schema == plain.schema
        assert source.total_rows == plain.total_rows
        for _ in range(2):
            rows = repr(read_all(source)).replace(packed.name, path.name)
            assert rows == repr(read_all(plain))
        chunks = [chunk for several in read_all(source) for chunk in several]
        assert 0 < sum(chunk.nbytes for chunk in chunks) <= source.total_bytes


def test_damaged_compressed_graph_is_refused(tmp_path: Path) -> None:
    text = json.dumps({"nodes": [node(i) for i in range(5000)], "edges": []}).encode()
    packed = tmp_path / "graph.json.gz"
    packed.write_bytes(compress(text, ".gz")[:-200])
    with pytest.raises(InvalidRequest, match=r"graph\.json\.gz: the gzip data cannot be read"):
        open_source(packed)
    packed.write_bytes(text)
    with pytest.raises(InvalidRequest, match=r"named \.gz, but does not begin like gzip data"):
        open_source(packed)


def test_meta_file_gives_the_numbers_of_types(tmp_path: Path) -> None:
    document = euler_graph.as_json()
    path = write_graph(
        tmp_path, document, euler_graph.meta(document, ["0", "never", "1"], ["1", "unused", "0"])
    )
    source = open_source(path)
    assert [node_type.name for node_type in source.schema.node_types] == ["_0", "never", "_1"]
    assert [t.relation for t in source.schema.edge_types] == ["_1", "_1", "unused", "_0"]
    assert source.files == (path, tmp_path / "euler.meta")
    assert source.schema.node_types[0].feature("f4").shape == (3,)


@pytest.mark.parametrize("cut", [3, 20, 60, -1])
def test_truncated_or_overlong_meta_is_refused(tmp_path: Path, cut: int) -> None:
    document = euler_graph.as_json()
    meta = euler_graph.meta(document, ["1", "0"], ["0", "1"])
    write_graph(tmp_path, document, meta[:cut] if cut > 0 else meta + b"more")
    with pytest.raises(InvalidRequest, match=r"euler\.meta: .*version 2\.0"):
        open_source(tmp_path)


def test_edges_may_come_before_nodes_and_other_keys_between(tmp_path: Path) -> None:
    document = {
        "name": "g",
        "edges": [edge(1, 2)],
        "about": {"x": [1, {"y": "]"}]},
        "nodes": [node(1, "a"), node(2, "b")],
    }
    nodes, edges = read_all(open_source(write_graph(tmp_path, document)))
    assert [chunk.etype for chunk in edges] == ["a:_0:b"]
    assert [chunk.ntype for chunk in nodes] == ["a", "b"]


def test_chunks_are_bounded_and_reproducible(tmp_path: Path) -> None:
    document = {
        "nodes": [node(i, f"t{i % 2}") for i in range(25)],
        "edges": [edge(i, i + 1) for i in range(24)],
    }
    source = open_source(write_graph(tmp_path, document), chunk_rows=10)
    nodes, edges = read_all(source)
    assert [len(chunk) for chunk in nodes] == [5, 5, 5, 5, 3, 2]
    assert sum(map(len, edges)) == 24
    repeated = read_all(source)
    assert [chunk.ids.tolist() for chunk in nodes] == [chunk.ids.tolist() for chunk in repeated[0]]


def test_long_file_is_read_within_a_small_buffer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BLOCK_BYTES", 64)
    document = {"nodes": [node(i, x=("binary", "é]}," * (i % 7))) for i in range(200)], "edges": []}
    path = write_graph(tmp_path, document, ensure_ascii=False)
    buffer_sizes = []
    text_class = reading._TextWindow
    original: Callable[[Any], bool] = text_class._read_more

    def record_size(self: Any) -> bool:
        result = original(self)
        buffer_sizes.append(len(self._buffer))
        return result

    monkeypatch.setattr(text_class, "_read_more", record_size)
    source = open_source(path)
    (chunk,) = source.node_chunks()
    assert chunk.ids.tolist() == list(range(200))
    assert max(buffer_sizes) < 512 < path.stat().st_size / 20
    indptr, values = chunk.features["x"]
    assert values[indptr[6] : indptr[7]].tobytes().decode() == "é]}," * 6


def test_missing_values_are_zero_or_empty_per_type(tmp_path: Path) -> None:
    document = {
        "nodes": [
            node(1, "a", d=("dense", [1, 2.5]), s=("sparse", [7])),
            node(2, "a"),
            node(3, "b", t=("binary", "x")),
        ],
        "edges": [],
    }
    source = open_source(write_graph(tmp_path, document))
    first, second = source.node_chunks()
    dense, (indptr, values) = first.features["d"], first.features["s"]
    assert np.asarray(dense).tolist() == [[1, 2.5], [0, 0]]
    assert (indptr.tolist(), values.tolist()) == ([0, 1, 1], [7])
    assert list(second.features) == ["t"]
    assert [len(t.features) for t in source.schema.node_types] == [2, 1]


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        ({"type": 0, "weight": 1}, "id", "the id is missing"),
        (node(-1), "id", "an id is not negative"),
        (node(2**63), "id", "an id is below 2^63"),
        ({**node(7), "id": 1.5}, "id", "an id is an integer"),
        ({**node(7), "id": True}, "id", "an id is an integer"),
        ({"id": 7, "weight": 1}, "type", "expected the name of a type"),
        (node(7, weight=-1), "weight", "a weight is not negative"),
        (node(7, weight=1e300), "weight", "finite"),
        (node(7, weight=None), "weight", "a weight is a number"),
        (node(7, d=("dense", [1])), "d", "expected 2 values"),
        (node(7, d=("dense", ["1", "2"])), "d", "expected a list of numbers"),
        (node(7, d=("sparse", [1])), "d", "expected dense, as in an earlier row; it is ragged"),
        (node(7, s=("sparse", [1.5])), "s", "integers"),
        (node(7, s=("sparse", [2**63])), "s", "expected numbers that fit int64"),
        (node(7, d=("dense", [1e300, 1])), "d", "expected numbers that fit float32"),
        (node(7, d=("dense", [1, 10**400])), "d", "expected numbers that fit float32"),
        (node(7, t=("binary", 5)), "t", "expected text"),
        (node(7, t=("binary", "\ud800")), "t", "lone surrogate"),
        (node(7, d=("vague", [1])), "features", "expected name, type"),
        ({**node(7), "features": 5}, "features", "expected a list"),
        ("seven", "", "expected an object"),
    ],
)
def test_bad_row_is_reported_with_its_line_and_skipped(
    tmp_path: Path, row: Any, column: str, reason: str
) -> None:
    good = node(1, d=("dense", [1, 2]), s=("sparse", [3]), t=("binary", "x"))
    rows = ",\n".join(json.dumps(item) for item in (good, row, node(2)))
    (chunk,) = open_source(
        write_graph(tmp_path, f'{{"nodes": [\n{rows}\n], "edges": []}}')
    ).node_chunks()
    assert chunk.ids.tolist() == [1, 2]
    (bad,) = chunk.bad
    assert (bad.file, bad.row, bad.column) == ("graph.json", 3, column)
    assert reason in bad.reason


def test_dangling_edge_is_reported_with_its_line(tmp_path: Path) -> None:
    rows = ",\n".join(json.dumps(item) for item in (edge(1, 2), edge(1, 9), edge(3, 2), edge(2, 1)))
    nodes = [node(1, "a"), node(2, "b"), node(3, "a", weight=-1)]
    source = open_source(
        write_graph(tmp_path, f'{{"nodes": {json.dumps(nodes)}, "edges": [\n{rows}]}}')
    )
    loaded = {("a", 1), ("b", 2)}
    chunks = list(
        source.edge_chunks(
            lambda ntype, ids: np.array([(ntype, i) in loaded for i in ids.tolist()])
        )
    )
    assert [(chunk.etype, chunk.src.tolist(), chunk.dst.tolist()) for chunk in chunks] == [
        ("a:_0:b", [1], [2]),
        ("b:_0:a", [2], [1]),
    ]
    assert [(bad.row, bad.column, bad.value) for chunk in chunks for bad in chunk.bad] == [
        (3, "dst", "9"),
        (4, "src", "3"),
    ]


def test_chunk_of_only_bad_rows_is_reported(tmp_path: Path) -> None:
    source = open_source(
        write_graph(tmp_path, {"nodes": [node(1)], "edges": [edge(1, 9), edge(-1, 1)]})
    )
    (chunk,) = source.edge_chunks()
    assert (len(chunk), len(chunk.bad)) == (0, 2)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ('{"nodes": [\n{"id": 1, "type": 0, "weight": 1},\n{"id": 2, ', "line 3: expected JSON"),
        (
            '{"nodes": [\n{"id": 1, "type": 0, "weight": 1}\n',
            "line 3: expected , or ], found the end",
        ),
        ('{"nodes": [\n{"id": 1, "type": 0, "weight": 1} {}]}', "line 2: expected , or ], found {"),
        ('{"nodes": [{"id": 1,\n"type": oops}]}', "line 2: expected JSON"),
        ('{"nodes": [],\n"nodes": []}', "line 2: 'nodes' is repeated"),
        ('{"nodes": [], "edges": []}', "expected at least one valid node"),
        (
            '{"nodes": [{"id": 1, "type": "a", "weight": 1}, {"id": 1, "type": "b", "weight": 1}]}',
            "node 1: expected one type, found 'a' and 'b'",
        ),
        ('{"nodes": [' + "[" * 100_000, "line 1: "),
        (
            '{"nodes": [\n{"id": ' + "9" * 5000 + "}]}",
            "line 2: not readable: Exceeds the limit",
        ),
    ],
)
def test_malformed_json_is_refused_with_its_line(tmp_path: Path, text: str, refused: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(refused)):
        open_source(write_graph(tmp_path, text))


def test_dgl_metadata_is_not_read_as_euler(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"node_type=0: expected a list"):
        open_source(
            write_graph(tmp_path, {"graph_name": "dgl", "node_type": 0, "edges": {"a:b:c": {}}})
        )


def test_invalid_utf8_is_refused(tmp_path: Path) -> None:
    path = write_graph(tmp_path, "")
    path.write_bytes(b'{"nodes": [\n{"id": 1, "type": "\xff"}]}')
    with pytest.raises(InvalidRequest, match=r"graph\.json, line .*not UTF-8"):
        open_source(path)


def test_reserved_names_need_renaming_and_options_are_checked(tmp_path: Path) -> None:
    row = {
        "id": 1,
        "type": 0,
        "weight": 2,
        "features": [{"name": "id", "type": "sparse", "value": [5]}],
    }
    path = write_graph(tmp_path, {"nodes": [row], "edges": []})
    with pytest.raises(InvalidRequest, match="feature 'id': the name is reserved"):
        open_source(path)
    source = open_source(path, rename={"id": "number"})
    (chunk,) = source.node_chunks()
    assert list(chunk.features) == ["number"]
    with pytest.raises(InvalidRequest, match="no weights and root"):
        open_source(path, weights={"a": "b"})


def test_endless_element_is_refused_before_it_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_ELEMENT", 1000)
    monkeypatch.setattr(reading, "BLOCK_BYTES", 100)
    path = write_graph(
        tmp_path, '{"nodes": [\n{"id": 1, "type": 0, "weight": 1},\n{"id": "' + "x" * 100_000
    )
    with pytest.raises(
        InvalidRequest, match="line 3: expected the end of the element within 1,000 characters"
    ):
        open_source(path)
