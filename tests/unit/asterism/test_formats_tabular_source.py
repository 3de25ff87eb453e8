"""Tests of plain files: content, refusals and messages."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from asterism.formats import EdgeChunk, GraphSource, NodeChunk, open_source
from asterism.formats.chunks import Ids, Mask
from asterism_proto.errors import InvalidRequest

PEOPLE = "nodes: {person: {files: people.csv, id: id}}\n"


def source(
    folder: Path, schema: str, files: Mapping[str, str | bytes] | None = None, **options: int
) -> GraphSource:
    for name, content in (files or {}).items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "schema.yaml").write_text(schema)
    return open_source(folder / "schema.yaml", **options)


def nodes(
    folder: Path, schema: str, files: Mapping[str, str | bytes], **options: int
) -> list[NodeChunk]:
    return list(source(folder, schema, files, **options).node_chunks())


def edges(
    folder: Path, schema: str, files: Mapping[str, str | bytes], **options: int
) -> list[EdgeChunk]:
    return list(source(folder, schema, files, **options).edge_chunks())


def bad_rows(chunk: NodeChunk | EdgeChunk) -> list[tuple[int, str, str]]:
    return [(row.row, row.column, row.value) for row in chunk.bad]


def test_every_kind_of_feature_is_read_from_csv(tmp_path: Path) -> None:
    schema = """
nodes:
  person:
    files: people.csv
    id: id
    weight: w
    features:
      age: int8
      tall: bool
      name: bytes
      place: {columns: [x, y], dtype: float64}
      words: {split: " ", kind: ragged}
      vector: {split: "|", shape: 2}
"""
    text = (
        "id,w,age,tall,name,x,y,words,vector\n"
        '7,1.5,30,true,"Ann ""A"", B",0.5,1,3  4 5,1|2\n'
        "2,0,-1,0,Zoë,2,3,,.5|-1e1\n"
    )
    (chunk,) = nodes(tmp_path, schema, {"people.csv": text})
    assert chunk.ids.tolist() == [7, 2]
    assert chunk.weights is not None
    assert chunk.weights.dtype == np.float32
    assert chunk.weights.tolist() == [1.5, 0]
    assert not chunk.bad
    f = chunk.features
    assert {name: getattr(value, "dtype", None) for name, value in f.items()} == {
        "age": np.int8,
        "tall": np.bool_,
        "name": None,
        "place": np.float64,
        "words": None,
        "vector": np.float32,
    }
    assert np.asarray(f["age"]).tolist() == [30, -1]
    assert np.asarray(f["tall"]).tolist() == [True, False]
    assert [a.tolist() for a in f["words"]] == [[0, 3, 3], [3, 4, 5]]
    assert np.asarray(f["place"]).tolist() == [[0.5, 1], [2, 3]]
    assert np.asarray(f["vector"]).tolist() == [[1, 2], [0.5, -10]]
    indptr, data = f["name"]
    assert [bytes(data[a:b]).decode() for a, b in pairwise(indptr)] == ['Ann "A", B', "Zoë"]


@pytest.mark.parametrize(
    ("row", "column", "value", "reason"),
    [
        ("-3,1", "id", "-3", "not negative"),
        (",1", "id", "", "missing"),
        ("x,1", "id", "x", "integer"),
        ("1.0,1", "id", "1.0", "integer"),
        ("9223372036854775808,1", "id", "9223372036854775808", "below 2^63"),
        ("3,nan", "w", "nan", "finite"),
        ("3,-1", "w", "-1", "not negative"),
        ("3,inf", "w", "inf", "finite"),
        ("3,1e39", "w", "1e39", "float32"),
        ("3,", "w", "", "missing"),
        ("3,heavy", "w", "heavy", "a weight is a number"),
        ("3", "w", "3", "expected 2 columns, found 1"),
        ("3,1,5", "", "3,1,5", "expected 2 columns, found 3"),
    ],
)
def test_bad_row_is_reported_by_line_and_others_are_kept(
    tmp_path: Path, row: str, column: str, value: str, reason: str
) -> None:
    schema = "nodes: {person: {files: people.csv, id: id, weight: w}}\n"
    (chunk,) = nodes(tmp_path, schema, {"people.csv": f"id,w\n1,0.5\n\n{row}\r\n2,2\n"})
    assert chunk.ids.tolist() == [1, 2]
    assert chunk.weights is not None
    assert chunk.weights.tolist() == [0.5, 2]
    (bad_row,) = chunk.bad
    assert (bad_row.file, bad_row.row, bad_row.column, bad_row.value) == (
        "people.csv",
        4,
        column,
        value,
    )
    assert reason in bad_row.reason


def test_a_row_is_bad_once_even_if_two_columns_are(tmp_path: Path) -> None:
    (chunk,) = nodes(
        tmp_path,
        "nodes: {person: {files: people.csv, id: id, weight: w}}\n",
        {"people.csv": "id,w\n-1,-1\n-2,1\n3,-3\n4,4\n"},
    )
    assert chunk.ids.tolist() == [4]
    assert bad_rows(chunk) == [(2, "id", "-1"), (3, "id", "-2"), (4, "w", "-3")]


def test_rejects_of_a_later_batch_are_its_own(tmp_path: Path) -> None:
    """The numbers of a block are parsed once, and once more as text for the batch."""
    first, second = nodes(tmp_path, PEOPLE, {"people.csv": "id\n1\n2\n-3\n4\n"}, chunk_rows=2)
    assert (first.ids.tolist(), second.ids.tolist()) == ([1, 2], [4])
    assert (bad_rows(first), bad_rows(second)) == ([], [(4, "id", "-3")])


def test_nodes_without_ids_are_numbered_over_all_files(tmp_path: Path) -> None:
    """A rejected row takes its number."""
    schema = "nodes: {n: {files: 'n*.csv', features: {x: int64, y: int64}}}\n"
    files = {"n1.csv": "x,y\n5,5\n6\n7,7\nx,8\n", "n2.csv": "x,y\n9,9\n10,10\n"}
    chunks = nodes(tmp_path, schema, files)
    assert [chunk.ids.tolist() for chunk in chunks] == [[0, 2], [4, 5]]
    chunks = nodes(tmp_path, schema, files, chunk_rows=2)
    assert [chunk.ids.tolist() for chunk in chunks] == [[0], [2], [4, 5]]


def test_numbers_that_do_not_fit_their_dtype_are_bad(tmp_path: Path) -> None:
    schema = "nodes: {person: {files: people.csv, id: id, features: {age: int8, n: uint64}}}\n"
    (chunk,) = nodes(
        tmp_path,
        schema,
        {
            "people.csv": (
                "id,age,n\n1,127,18446744073709551615\n2,128,0\n3,0,-1\n4,0,18446744073709551616\n"
            )
        },
    )
    assert np.asarray(chunk.features["n"]).tolist() == [2**64 - 1]
    assert bad_rows(chunk) == [(3, "age", "128"), (4, "n", "-1"), (5, "n", "18446744073709551616")]


def test_blocks_and_chunks_end_at_rows_and_count_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from asterism.formats import csv_files

    monkeypatch.setattr(csv_files.CsvTable.__init__, "__kwdefaults__", {"block_bytes": 64})
    lines = ["id,w"] + [f"{i},{i}.5" if i % 10 else f"x{i},1" for i in range(1, 101)]
    chunks = nodes(
        tmp_path,
        "nodes: {person: {files: people.csv, id: id, weight: w}}\n",
        {"people.csv": "\n".join(lines)},
        chunk_rows=5,
    )
    assert all(len(chunk) <= 5 for chunk in chunks)
    assert len(chunks) > 20
    assert np.concatenate([chunk.ids for chunk in chunks]).tolist() == [
        i for i in range(1, 101) if i % 10
    ]
    assert [row for chunk in chunks for row in bad_rows(chunk)] == [
        (i + 1, "id", f"x{i}") for i in range(10, 101, 10)
    ]
    assert sum(chunk.nbytes for chunk in chunks) == (tmp_path / "people.csv").stat().st_size
    assert all(
        chunk.first_row == chunk.ids[0] + 1
        for chunk in chunks
        if len(chunk) and chunk.ids[0] % 10 != 1
    )


@pytest.mark.parametrize("delimiter", [",", "\t", "|", " ", "::", "→"])
def test_any_delimiter_is_read(tmp_path: Path, delimiter: str) -> None:
    schema = (
        f'csv: {{delimiter: "{delimiter}"}}\n{PEOPLE}'
        "edges: {person:knows:person: {files: knows.csv, src: a, dst: b}}\n"
    ).replace("\t", "\\t")
    text = f"a{delimiter}b\n1{delimiter}2\n3{delimiter}1\n3{delimiter}{delimiter}1\n"
    (chunk,) = edges(tmp_path, schema, {"people.csv": "id\n1\n", "knows.csv": text})
    assert (chunk.src.tolist(), chunk.dst.tolist()) == ([1, 3], [2, 1])
    assert chunk.bad[0].value == f"3{delimiter}{delimiter}1"


@pytest.mark.parametrize("name", ["people.tsv", "people.tsv.gz"])
def test_tabs_are_the_default_of_their_suffix(tmp_path: Path, name: str) -> None:
    text = b"id\tname\n1\ta, b\n"
    files = {name: gzip.compress(text) if name.endswith(".gz") else text}
    schema = f"nodes: {{person: {{files: {name}, id: id, features: {{name: bytes}}}}}}\n"
    (chunk,) = nodes(tmp_path, schema, files)
    assert bytes(chunk.features["name"][1]) == b"a, b"
    assert_refused(tmp_path, 'csv: {delimiter: ","}\n' + schema, files, "found 1 of '.t'; set")


def assert_refused(
    folder: Path, schema: str, files: Mapping[str, str | bytes], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        source(folder, schema, files)


@pytest.mark.parametrize(
    ("options", "text", "message"),
    [
        ("", "id;w\n1;2\n", r"delimiter ',' in the first line, found 1 of ';'; set `csv: .*\";\""),
        ("", '"id"|"w"\n1|2\n', r"found 1 of '\|'"),
        ("", "w\tx\tid\n1\t2\t3\n", r"found 2 of '\\t'; set `csv: {delimiter: \"\\t\"}`"),
        (", columns: [id, w], csv: {header: false}", "1 2\n3 4\n", "found 1 of ' '"),
        (", columns: [id, w, x], csv: {header: false}", "1;a b;2\n", "found 2 of ';'"),
        ("", "first name\nx y\n", "expected a column 'id', it has first name"),
    ],
)
def test_header_without_the_delimiter_names_the_likely_one(
    tmp_path: Path, options: str, text: str, message: str
) -> None:
    schema = f"nodes: {{person: {{files: people.csv, id: id{options}}}}}\n"
    assert_refused(tmp_path, schema, {"people.csv": text}, message)


def test_row_without_the_delimiter_is_a_bad_row(tmp_path: Path) -> None:
    schema = "nodes: {person: {files: people.csv, key: a, columns: [a, b], csv: {header: false}}}\n"
    (chunk,) = nodes(tmp_path, schema, {"people.csv": "New York\nx,y\n"})
    assert [bad.value for bad in chunk.bad] == ["New York"]


def test_files_with_and_without_tabs_need_a_delimiter(tmp_path: Path) -> None:
    files = {"a.csv": "id\n1\n", "b.tsv": "id\n2\n"}
    schema = "nodes: {person: {files: [a.csv, b.tsv], id: id}}\n"
    assert_refused(tmp_path, schema, files, "b.tsv and a.csv: expected files with one delimiter")
    chunks = nodes(tmp_path, 'csv: {delimiter: ","}\n' + schema, files)
    assert [chunk.ids.tolist() for chunk in chunks] == [[1], [2]]


def test_quoted_line_ends_are_read_where_the_schema_allows_them(tmp_path: Path) -> None:
    schema = (
        "csv: {multiline: true}\nnodes: {person: {files: people.csv, id: id, features: "
        "{name: bytes}}}\n"
    )
    (chunk,) = nodes(
        tmp_path, schema, {"people.csv": 'id,name\n1,"a\nb"\n-2,"c\n\nd"\n-3,e\n4,f\n'}
    )
    assert chunk.ids.tolist() == [1, 4]
    assert bad_rows(chunk) == [(4, "id", "-2"), (7, "id", "-3")]


def test_encodings_byte_order_marks_and_raw_bytes_are_read(tmp_path: Path) -> None:
    schema = (
        "csv: {encoding: latin-1}\nnodes: {person: {files: people.csv, id: id, features: "
        "{name: bytes}}}\n"
    )
    (chunk,) = nodes(tmp_path, schema, {"people.csv": "id,name\n1,Zoë\n".encode("latin-1")})
    assert bytes(chunk.features["name"][1]).decode() == "Zoë"
    schema = "nodes: {person: {files: people.csv, id: id, features: {name: bytes}}}\n"
    (chunk,) = nodes(
        tmp_path, schema, {"people.csv": b"\xef\xbb\xbfid,name\n1,\xff\xfe\n-1,\xff\n"}
    )
    assert bytes(chunk.features["name"][1]) == b"\xff\xfe"
    assert bad_rows(chunk) == [(3, "id", "-1")]


def test_headerless_files_and_null_markers(tmp_path: Path) -> None:
    schema = """
csv: {header: false, nulls: ['\\N']}
nodes: {person: {files: people.csv, columns: [id, age, name], id: id, \
features: {age: {dtype: int64, fill: -1}, name: bytes}}}
"""
    (chunk,) = nodes(tmp_path, schema, {"people.csv": '1,5,\\N\n2,\\N,"x"\n\\N,3,y\n'})
    assert np.asarray(chunk.features["age"]).tolist() == [5, -1]
    assert chunk.features["name"][0].tolist() == [0, 0, 1]
    assert bad_rows(chunk) == [(3, "id", "\\N")]


def test_weight_tables_apply_to_reverse_edges_too(tmp_path: Path) -> None:
    schema = """
nodes:
  person: {files: people.csv, id: id, features: {clicks: int64}, time: clicks, \
tables: {popular: "pow(clicks, 0.75)"}}
edges:
  person:knows:person:
    files: knows.csv
    src: a
    dst: b
    features: {times: int32}
    time: times
    reverse: known_by
    tables: {often: {expression: log1p(times), invalid: zero}}
"""
    files = {"people.csv": "id,clicks\n1,5\n2,6\n", "knows.csv": "a,b,times\n1,2,7\n"}
    parsed_schema = source(tmp_path, schema, files).schema
    assert parsed_schema.node_types[0].table("popular").expression == "pow(clicks, 0.75)"
    assert [edge.table("often").invalid for edge in parsed_schema.edge_types] == ["zero", "zero"]
    assert [edge.time for edge in parsed_schema.edge_types] == ["times", "times"]
    assert [node.time for node in parsed_schema.node_types] == ["clicks"]
    with pytest.raises(
        InvalidRequest,
        match="node type 'person': table 'popular': expression 'pow': column 'pow' does not exist",
    ):
        # The schema is created on first access.
        source(tmp_path, schema.replace("pow(clicks, 0.75)", "pow"), files).schema  # noqa: B018


def test_names_become_ids_in_the_order_of_their_first_row(tmp_path: Path) -> None:
    schema = """
nodes:
  country: {files: "land-*.csv", key: name}
  city: {files: city.csv, id: id}
edges:
  city:in:country: {files: city.csv, src: id, dst: land, edges: unique, reverse: has}
"""
    files = {
        "land-0.csv": "name\nPeru\nChad\nPeru\n",
        "land-1.csv": "name\nOman\nChad\n",
        "city.csv": "id,land\n10,Oman\n11,Peru\n12,Mars\n10,Oman\n13,\n",
    }
    graph_source = source(tmp_path, schema, files)
    first, second, cities = graph_source.node_chunks()
    assert (first.ids.tolist(), second.ids.tolist()) == ([0, 1], [2])
    assert bad_rows(first) == [(4, "name", "Peru")]
    assert bad_rows(second) == [(3, "name", "Chad")]
    assert len(cities) == 5
    forward, backward = graph_source.edge_chunks()
    assert (forward.src.tolist(), forward.dst.tolist()) == ([10, 11], [2, 0])
    assert (backward.etype, backward.src.tolist(), backward.dst.tolist(), backward.bad) == (
        "country:has:city",
        [2, 0],
        [10, 11],
        (),
    )
    assert [(row.row, row.value, row.reason[:4]) for row in forward.bad] == [
        (4, "Mars", "no n"),
        (5, "", "the "),
        (6, "", "the "),
    ]


def test_equal_rows_become_one_edge_weighted_by_their_count(tmp_path: Path) -> None:
    schema = (
        PEOPLE + "edges: {person:met:person: {files: met.csv, src: a, dst: b, aggregate: count}}\n"
    )
    chunks = edges(
        tmp_path, schema, {"people.csv": "id\n1\n", "met.csv": "a,b\n2,1\n1,2\n2,1\n-1,2\n2,1\n"}
    )
    assert [bad_rows(chunk) for chunk in chunks] == [[(5, "a", "-1")], []]
    assert (chunks[1].src.tolist(), chunks[1].dst.tolist()) == ([1, 2], [2, 1])
    assert chunks[1].weights is not None
    assert chunks[1].weights.tolist() == [1, 3]


def test_weights_of_equal_rows_add_up_and_symmetry_goes_before(tmp_path: Path) -> None:
    schema = PEOPLE + (
        "edges: {person:met:person: {files: met.csv, src: a, dst: b, weight: w, aggregate: "
        "sum, symmetry: true}}\n"
    )
    chunks = [
        chunk
        for chunk in edges(
            tmp_path, schema, {"people.csv": "id\n1\n", "met.csv": "a,b,w\n2,1,0.5\n1,2,2\n3,3,1\n"}
        )
        if len(chunk)
    ]
    assert [
        (c.src.tolist(), c.dst.tolist(), None if c.weights is None else c.weights.tolist())
        for c in chunks
    ] == [
        ([1, 3], [2, 3], [2.5, 1]),
        ([2], [1], [2.5]),
    ]


def test_more_rows_than_can_be_aggregated_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asterism.formats.edges.MAX_AGGREGATED", 2)
    schema = (
        PEOPLE + "edges: {person:met:person: {files: met.csv, src: a, dst: b, aggregate: count}}\n"
    )
    with pytest.raises(InvalidRequest, match="expected at most 2 rows to aggregate"):
        edges(tmp_path, schema, {"people.csv": "id\n1\n", "met.csv": "a,b\n1,1\n1,1\n1,1\n"})


def test_repeats_of_unique_edges_are_bad_across_files(tmp_path: Path) -> None:
    files = {
        "people.csv": "id\n1\n",
        "met-0.csv": "a,b\n1,2\n2,1\n",
        "met-1.csv": "a,b\n1,2\n3,3\n",
    }
    schema = (
        PEOPLE + "edges: {person:met:person: {files: met-*.csv, src: a, dst: b, edges: unique}}\n"
    )
    first, second = edges(tmp_path, schema, files)
    assert (
        first.src.tolist(),
        bad_rows(first),
        second.src.tolist(),
        [row for row, *_ in bad_rows(second)],
    ) == ([1, 2], [], [3], [2])
    schema = PEOPLE + (
        "edges: {person:met:person: {files: met-*.csv, src: a, dst: b, edges: unique, "
        "symmetry: true, self_loops: true}}\n"
    )
    chunks = edges(tmp_path, schema, files)
    pairs = [
        pair
        for chunk in chunks
        for pair in zip(chunk.src.tolist(), chunk.dst.tolist(), strict=True)
    ]
    assert pairs == [(1, 2), (2, 1), (3, 3), (1, 1)]


def test_self_loops_come_once_per_node_with_weight_one(tmp_path: Path) -> None:
    schema = """
nodes: {person: {count: 3}}
edges: {person:met:person: {files: met.csv, src: a, dst: b, weight: w, self_loops: true, \
features: {day: int32}}}
"""
    chunks = edges(tmp_path, schema, {"met.csv": "a,b,w,day\n0,1,5,9\n0,3,5,9\n"})
    assert [(row.row, row.column, row.value) for row in chunks[0].bad] == [(3, "b", "3")]
    assert (chunks[1].src.tolist(), chunks[1].dst.tolist()) == ([0, 1, 2], [0, 1, 2])
    assert chunks[1].weights is not None
    assert chunks[1].weights.tolist() == [1, 1, 1]
    assert np.asarray(chunks[1].features["day"]).tolist() == [0, 0, 0]


def test_ends_are_looked_up_unless_the_type_creates_them(tmp_path: Path) -> None:
    looked_up: list[str] = []

    def exists(ntype: str, ids: Ids) -> Mask:
        looked_up.append(ntype)
        return ids < 3

    files = {"people.csv": "id\n1\n", "met.csv": "a,b\n1,2\n1,3\n4,4\n"}
    schema = (
        PEOPLE + "edges: {person:met:person: {files: met.csv, src: a, dst: b, missing: reject}}\n"
    )
    (chunk,) = source(tmp_path, schema, files).edge_chunks(exists)
    assert chunk.src.tolist() == [1]
    assert bad_rows(chunk) == [(3, "b", "3"), (4, "a", "4")]
    looked_up.clear()
    (chunk,) = source(tmp_path, schema.replace("reject", "create"), files).edge_chunks(exists)
    assert len(chunk) == 3
    assert looked_up == []


def test_parquet_columns_bring_their_own_types(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": pa.array([4, 5, -1, None], pa.int64()),
            "words": pa.array([[1, 2], [], [3], [4]], pa.list_(pa.int64())),
            "vector": pa.array([[1, 2], [3, 4], [5, 6], [7, 8]], pa.list_(pa.float32(), 2)),
            "name": pa.array(["a", None, "c", "d"]),
            "kind": pa.array(["x", "y", "x", "y"]).dictionary_encode(),
            "flag": pa.array([True, False, True, False]),
        }
    )
    parquet.write_table(table, tmp_path / "people.parquet", row_group_size=2)
    schema = (
        "nodes: {person: {files: people.parquet, id: id, features: {words: , vector: , name: "
        ", kind: , flag: }}}\n"
    )
    graph_source = source(tmp_path, schema)
    assert [
        (f.name, f.kind, f.dtype, f.shape) for f in graph_source.schema.node_types[0].features
    ] == [
        ("words", "ragged", "int64", ()),
        ("vector", "dense", "float32", (2,)),
        ("name", "bytes", "float32", ()),
        ("kind", "bytes", "float32", ()),
        ("flag", "dense", "bool", ()),
    ]
    chunks = list(graph_source.node_chunks())
    assert [chunk.ids.tolist() for chunk in chunks] == [[4, 5], []]
    assert [a.tolist() for a in chunks[0].features["words"]] == [[0, 2, 2], [1, 2]]
    assert np.asarray(chunks[0].features["vector"]).tolist() == [[1, 2], [3, 4]]
    assert bad_rows(chunks[1]) == [(2, "id", "-1"), (3, "id", "")]


def test_numpy_columns_are_files_or_fields(tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", np.array([[0, 1], [1, 2]]))
    np.save(tmp_path / "w.npy", np.array([0.5, 1.5]))
    np.save(
        tmp_path / "people.npy",
        np.array([(3, [1, 2]), (4, [5, 6])], [("id", ">i4"), ("v", "f4", 2)]),
    )
    schema = """
nodes: {person: {files: people.npy, id: id, features: {v: }}}
edges: {person:met:person: {format: numpy, files: {e: e.npy, w: w.npy}, src: "e[:,1]", \
dst: "e[:,0]", weight: w}}
"""
    graph_source = source(tmp_path, schema)
    (people,) = graph_source.node_chunks()
    assert people.ids.tolist() == [3, 4]
    assert np.asarray(people.features["v"]).tolist() == [[1, 2], [5, 6]]
    (chunk,) = graph_source.edge_chunks()
    assert (chunk.src.tolist(), chunk.dst.tolist()) == ([1, 2], [0, 1])
    assert chunk.weights is not None
    assert chunk.weights.dtype == np.float32
    assert graph_source.total_rows == 4


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            "nodes: {person: {files: people.csv, id: nr}}",
            "people.csv: expected a column 'nr', it has id, x",
        ),
        ("nodes: {person: {files: other.csv, id: id}}", "other.csv: no such file"),
        ("nodes: {person: {files: 'p*.tsv', id: id}}", r"p\*.tsv: no such file"),
        ("nodes: {person: {files: people.csv, id: id, colour: red}}", "unknown key 'colour'"),
        ("nodes: {person: {files: people.csv, id: id, key: x}}", "not both"),
        ("nodes: {person: {files: people.csv}}", "expected an id, key, weight or feature"),
        ("nodes: {person: {files: people.csv, id: id, features: {x: int7}}}", "dtype 'int7'"),
        (
            "nodes: {person: {files: people.csv, id: id, features: {x: {kind: ragged}}}}",
            "expected `split`",
        ),
        ("nodes: {person: {files: people.csv, id: id, features: {id: int64}}}", "reserved"),
        (
            (
                "nodes: {person: {files: people.csv, id: id}}\nedges: {person:met: {files: "
                "people.csv, src: id, dst: x}}"
            ),
            "source:relation:destination",
        ),
        (
            (
                "nodes: {person: {files: people.csv, id: id}}\nedges: {person:met:dog: {files: "
                "people.csv, src: id, dst: x}}"
            ),
            "'dog'",
        ),
        (
            (
                "nodes: {person: {files: people.csv, id: id}}\nedges: {person:met:person: "
                "{files: people.csv, src: id}}"
            ),
            "expected `dst`",
        ),
        ("nodes: [person]", "expected a mapping"),
        (
            "ids: global\nnodes: {person: {files: people.csv, key: x}, dog: {count: 3}}",
            "expected an `id` column",
        ),
        ("nodes: {a: {b: [}", "cannot be read"),
    ],
)
def test_invalid_schema_is_refused_with_the_reason(tmp_path: Path, schema: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        nodes(tmp_path, schema, {"people.csv": "id,x\n1,2\n"})


def test_folder_without_metadata_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"metadata\.json"):
        open_source(tmp_path)


def test_large_rows_make_smaller_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from asterism.formats import chunks as records

    monkeypatch.setattr(records.split_to_limit, "__defaults__", (1000,))
    rows = "".join(f"{i},{'x' * 200}\n" for i in range(20))
    node_chunks = nodes(
        tmp_path,
        "nodes: {person: {files: people.csv, id: id, features: {name: bytes}}}\n",
        {"people.csv": "id,name\n" + rows},
    )
    assert np.concatenate([chunk.ids for chunk in node_chunks]).tolist() == list(range(20))
    assert max(len(chunk) for chunk in node_chunks) <= 4
    assert sum(chunk.nbytes for chunk in node_chunks) == (tmp_path / "people.csv").stat().st_size


def test_unclosed_quote_swallows_no_rows(tmp_path: Path) -> None:
    schema = "nodes: {person: {files: people.csv, id: id, features: {name: bytes}}}\n"
    text = 'id,name\n1,"Ann"\n2,"Bob\n3,Cy\n4,"5"" tall"\n5,"Di\n6,Ed\n'
    (chunk,) = nodes(tmp_path, schema, {"people.csv": text})
    assert chunk.ids.tolist() == [1, 3, 4, 6]
    assert bad_rows(chunk) == [(3, "", '2,"Bob'), (6, "", '5,"Di')]
    with pytest.raises(InvalidRequest, match="opened at or after line 8 is not closed"):
        nodes(tmp_path, "csv: {multiline: true}\n" + schema, {"people.csv": text + '7,"'})
    (chunk,) = nodes(tmp_path, "csv: {quote: ''}\n" + schema, {"people.csv": text})
    assert chunk.ids.tolist() == [1, 2, 3, 4, 5, 6]


def test_rows_of_wrong_length_are_reported_among_raw_bytes(tmp_path: Path) -> None:
    schema = "nodes: {person: {files: people.csv, id: id, features: {name: bytes}}}\n"
    (chunk,) = nodes(
        tmp_path, schema, {"people.csv": b"id,name\n1,\xff\n\n2,\xfe,3\n4,\xfd\n5\n-6,a\n"}
    )
    assert chunk.ids.tolist() == [1, 4]
    assert bytes(chunk.features["name"][1]) == b"\xff\xfd"
    assert bad_rows(chunk) == [(4, "", "2,\ufffd,3"), (6, "", "5"), (7, "id", "-6")]
