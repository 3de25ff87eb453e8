"""Tests of odd text: line ends, quotes, headers, byte order marks. Rows are read, or refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.kit import pglbox_files, schema_folder

from asterism.formats import open_source, text_files
from asterism.formats.text_files import TextFile
from asterism.pglbox import read_config
from asterism_proto.errors import InvalidRequest

NAMED = "nodes:\n  n: {files: n.csv, id: id, features: {f: bytes}}\n"
MARK = b"\xef\xbb\xbf"


def schema(**options: object) -> str:
    return f"csv: {json.dumps(options)}\n{NAMED}"


@pytest.mark.parametrize(
    "text",
    [
        "id,f\n1,a\n2,b\n",
        "id,f\r\n1,a\r\n2,b\r\n",
        "id,f\r1,a\r2,b\r",
        "id,f\r1,a\r2,b",
        "id,f\n1,a\n2,b\r",
        "id,f\r\r\n1,a\r\r\n2,b\r\r\n",
        "\ufeffid,f\r1,a\r2,b\r",
        'id,"f"\r1,"a"\r2,"b"\r',
    ],
)
def test_lines_end_with_lf_cr_lf_or_cr(tmp_path: Path, text: str) -> None:
    chunks = schema_folder.nodes(tmp_path, NAMED, {"n.csv": text})
    assert schema_folder.ids_of(chunks) == [1, 2]
    assert schema_folder.texts_of(chunks, "f") == [b"a", b"b"]
    assert schema_folder.bad_rows(chunks) == []
    assert sum(chunk.nbytes for chunk in chunks) == (tmp_path / "n.csv").stat().st_size


def test_lines_with_cr_are_counted_over_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from asterism.formats import csv_files

    monkeypatch.setattr(csv_files.CsvTable.__init__, "__kwdefaults__", {"block_bytes": 64})
    monkeypatch.setattr(text_files, "_PROBE_BYTES", 8)
    rows = "".join(f"{i if i % 10 else f'x{i}'},a\r" for i in range(1, 101))
    chunks = schema_folder.nodes(tmp_path, NAMED, {"n.csv": f"id,f\r{rows}"})
    assert schema_folder.ids_of(chunks) == [i for i in range(1, 101) if i % 10]
    assert [row.row for row in schema_folder.bad_rows(chunks)] == list(range(11, 102, 10))


@pytest.mark.parametrize(
    ("quote", "line"),
    [('"', "1,a\rb"), ("", "1,a\rb"), ("", '1,"a\rb"'), ('"', '1,x"a\rb"'), ('"', '1,"a"\rb')],
)
def test_a_cr_within_a_line_makes_a_bad_row(tmp_path: Path, quote: str, line: str) -> None:
    text = f"id,f\n{line}\n2,c\n3,d\r\n"
    chunks = schema_folder.nodes(tmp_path, schema(quote=quote), {"n.csv": text})
    assert schema_folder.texts_of(chunks, "f") == [b"c", b"d"]
    (bad,) = schema_folder.bad_rows(chunks)
    assert (bad.file, bad.row, bad.value) == ("n.csv", 2, line)
    assert "carriage return" in bad.reason


@pytest.mark.parametrize("multiline", [True, False])
def test_a_cr_within_quotes_is_part_of_the_text(tmp_path: Path, multiline: bool) -> None:
    chunks = schema_folder.nodes(
        tmp_path, schema(multiline=multiline), {"n.csv": 'id,f\n1,"a\rb"\n2,"\r"\n'}
    )
    assert schema_folder.texts_of(chunks, "f") == [b"a\rb", b"\r"]
    with pytest.raises(InvalidRequest, match=r"n\.csv: line 3: a carriage return"):
        schema_folder.nodes(tmp_path, schema(multiline=True), {"n.csv": "id,f\n1,a\n2,b\rc\n"})


def test_without_quotes_every_quote_is_text(tmp_path: Path) -> None:
    for multiline in (True, False):
        chunks = schema_folder.nodes(
            tmp_path, schema(quote="", multiline=multiline), {"n.csv": 'id,f\n1,"a\n2,b"c"\n'}
        )
        assert schema_folder.texts_of(chunks, "f") == [b'"a', b'b"c"']


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,a\rb\n1,2\n", "column name 'a\\\\rb': expected lines that end with LF or CR LF"),
        ("id,f\r1,2\r3,4\n", "expected lines that end with LF or CR LF, found CR within the hea"),
        ('id,"f\n1,2\n', "a quote is left open in the header"),
        ("id,f,f\n1,2,3\n", "'f' is there twice"),
        ("", "expected a header line, found none"),
        ("\n1,2\n", "expected a header line, found none"),
        ("\ufeff", "expected a header line, found none"),
        ("\r", "expected a header line, found none"),
    ],
)
def test_a_header_that_cannot_be_read_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"n\.csv: .*{said}"):
        schema_folder.nodes(tmp_path, NAMED, {"n.csv": text})


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ('"id",f', ["id", "f"]),
        ('id,"a ""b"", c"', ["id", 'a "b", c']),
        ('id,a"b"', ["id", 'a"b"']),
        ('id,"a"b', ["id", "ab"]),
        ("id,", ["id", ""]),
        ('id,"a\rb"', ["id", "a\rb"]),
    ],
)
def test_header_quotes_mean_what_they_do_in_csv(
    tmp_path: Path, header: str, names: list[str]
) -> None:
    if "\r" not in header:
        assert next(csv.reader([header])) == names
    text = json.dumps(names[1])
    chunks = schema_folder.nodes(
        tmp_path,
        f"nodes:\n  n: {{files: n.csv, id: id, features: {{f: {{kind: bytes, column: {text}}}}}}}\n"
        if names[1]
        else "nodes:\n  n: {files: n.csv, id: id}\n",
        {"n.csv": f"{header}\n1,x\n"},
    )
    assert schema_folder.ids_of(chunks) == [1]


@pytest.mark.parametrize("delimiter", [",", "||", "→"])
def test_long_headers_and_fields_are_read(tmp_path: Path, delimiter: str) -> None:
    limit = csv.field_size_limit()
    name, value = "f" * (limit + 9), "v" * (limit + 9)
    text = f'id{delimiter}"{name}"\n1{delimiter}{value}\n2{delimiter}"a{delimiter}b"\n'
    feature = f"{{kind: bytes, column: {name}}}"
    chunks = schema_folder.nodes(
        tmp_path,
        f"csv: {{delimiter: '{delimiter}'}}\n"
        f"nodes:\n  n: {{files: n.csv, id: id, features: {{f: {feature}}}}}\n",
        {"n.csv": text},
    )
    assert schema_folder.texts_of(chunks, "f") == [value.encode(), f"a{delimiter}b".encode()]
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"delimiter": '|"'}, "delimiter="),
        ({"delimiter": "\r"}, "delimiter="),
        ({"quote": "\n"}, "quote="),
        ({"encoding": "a\0b"}, "encoding="),
        ({"encoding": "utf-16"}, "encoding="),
        ({"encoding": "rot13"}, "encoding="),
    ],
)
def test_csv_options_that_make_no_sense_are_refused(
    tmp_path: Path, options: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidRequest, match=said):
        schema_folder.nodes(tmp_path, schema(**options), {"n.csv": "id,f\n1,2\n"})


def test_repeated_names_of_columns_are_refused(tmp_path: Path) -> None:
    text = "nodes:\n  n: {files: n.csv, columns: [id, f, f], id: id}\n"
    with pytest.raises(InvalidRequest, match="expected different names, 'f' is there twice"):
        schema_folder.nodes(tmp_path, text, {"n.csv": "1,2,3\n"})


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_refused_with_the_remedy(tmp_path: Path, encoding: str) -> None:
    text = ("" if encoding == "utf-16" else "\ufeff") + "id,f\n1,a\n"
    with pytest.raises(InvalidRequest, match=r"n\.csv: .*found UTF-16; convert the file, as with"):
        schema_folder.nodes(tmp_path, NAMED, {"n.csv": text.encode(encoding)})


@pytest.mark.parametrize("name", ["schema.yaml", "n.csv"])
def test_a_mark_before_a_schema_file_or_its_data(tmp_path: Path, name: str) -> None:
    path = schema_folder.write(tmp_path, NAMED, {"n.csv": "id,f\n1,a\n"})
    (tmp_path / name).write_bytes(MARK + (tmp_path / name).read_bytes())
    assert schema_folder.ids_of(open_source(path)) == [1]
    path.write_text(NAMED.replace("id: id", "columns: [id, f], csv: {header: false}, id: id"))
    (tmp_path / "n.csv").write_bytes(MARK + b"1,a\n2,b\n")
    assert schema_folder.ids_of(open_source(path)) == [1, 2]


@pytest.mark.parametrize(
    "name", ["config.yaml", "data/node_types/part-00000", "data/u2u.txt", "data/u2buy2i/edges"]
)
def test_a_mark_before_the_files_of_pglbox(tmp_path: Path, name: str) -> None:
    path = pglbox_files.write(tmp_path)
    plain = open_source(path)
    ids = schema_folder.ids_of(plain)
    edges = sum(len(chunk) for chunk in plain.edge_chunks())
    (tmp_path / name).write_bytes(MARK + (tmp_path / name).read_bytes())
    marked = open_source(path)
    assert schema_folder.ids_of(marked) == ids
    assert sum(len(chunk) for chunk in marked.edge_chunks()) == edges
    assert schema_folder.bad_rows(list(marked.node_chunks())) == []


def test_pglbox_files_with_cr_ends_are_read_line_by_line(tmp_path: Path) -> None:
    path = pglbox_files.write(tmp_path)
    plain = open_source(path)
    ids, weights = schema_folder.ids_of(plain), [c.weights is not None for c in plain.edge_chunks()]
    for name in ("data/node_types/part-00000", "data/u2u.txt", "data/u2buy2i/edges"):
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes().replace(b"\n", b"\r"))
    source = open_source(path)
    assert schema_folder.ids_of(source) == ids
    assert [chunk.weights is not None for chunk in source.edge_chunks()] == weights
    assert schema_folder.bad_rows(list(source.edge_chunks())) == []


EULER = '{"nodes": [{"id": 1, "type": 0, "weight": 1, "features": []}], "edges": []}'
BLOCK = '{"node_id": 1, "node_type": 0, "node_weight": 1, "neighbor": {}}\n'


@pytest.mark.parametrize("text", [EULER, BLOCK, BLOCK.replace("node_id", 'edge": [], "node_id')])
def test_a_mark_before_euler_json(tmp_path: Path, text: str) -> None:
    (tmp_path / "graph.json").write_bytes(MARK + text.encode())
    for path in (tmp_path, tmp_path / "graph.json"):
        source = open_source(path)
        assert schema_folder.ids_of(source) == [1]
        assert sum(chunk.nbytes for chunk in source.node_chunks()) <= source.total_bytes
    limits = {f"{end}_type_num": 1 for end in ("node", "edge")}
    limits |= {
        f"{end}_{kind}_feature_num": 0
        for end in ("node", "edge")
        for kind in ("uint64", "float", "binary")
    }
    (tmp_path / "meta.json").write_bytes(MARK + json.dumps(limits).encode())
    assert schema_folder.ids_of(open_source(tmp_path)) == [1]


def test_a_mark_or_cr_ends_before_dgl_files(tmp_path: Path) -> None:
    document = {
        "graph_name": "g",
        "node_type": ["a"],
        "num_nodes_per_chunk": [[3]],
        "edge_type": ["a:e:a"],
        "num_edges_per_chunk": [[2]],
        "edges": {"a:e:a": {"format": {"name": "csv", "delimiter": " "}, "data": ["e.txt"]}},
        "node_data": {},
        "edge_data": {"a:e:a": {"x": {"format": {"name": "csv"}, "data": ["x.csv"]}}},
    }
    (tmp_path / "metadata.json").write_bytes(MARK + json.dumps(document).encode())
    for mark, end in ((MARK, b"\n"), (b"", b"\r"), (MARK, b"\r")):
        (tmp_path / "e.txt").write_bytes(mark + b"0 1" + end + b"1 2" + end)
        (tmp_path / "x.csv").write_bytes(mark + b"5" + end + b"6" + end)
        source = open_source(tmp_path)
        assert source.schema.edge_types[0].features[0].dtype == "int64"
        (chunk,) = source.edge_chunks()
        assert (chunk.src.tolist(), chunk.dst.tolist()) == ([0, 1], [1, 2])
        assert list(chunk.features["x"]) == [5, 6]


def test_a_long_line_or_a_missing_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "MAX_LINE_BYTES", 10)
    for end in (b"\n", b"\r"):
        (tmp_path / "n.csv").write_bytes(b"a" * 50 + end)
        with (
            TextFile(tmp_path / "n.csv", "n.csv") as file,
            pytest.raises(InvalidRequest, match=r"n\.csv: expected lines of at most 10 bytes"),
        ):
            file.read_line()
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(InvalidRequest, match="label: "):
            TextFile(path, "label")
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_config(tmp_path)
