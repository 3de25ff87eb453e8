"""Tests of numbers at the ends of dtypes: a bad row with file, row and column, never infinity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.kit import pglbox_files, schema_folder

from asterism.dtype_ranges import number_fits
from asterism.formats import open_source
from asterism_proto.errors import InvalidRequest

LARGEST = {
    "float16": ("65504", "65520"),
    "float32": ("3.4028235e38", "1e39"),
    "float64": ("1.7e308", "1e309"),
    "int8": ("127", "128"),
    "int16": ("32767", "32768"),
    "int32": ("2147483647", "2147483648"),
    "int64": ("9223372036854775807", "9223372036854775808"),
    "uint8": ("255", "256"),
    "uint16": ("65535", "65536"),
    "uint32": ("4294967295", "4294967296"),
    "uint64": ("18446744073709551615", "18446744073709551616"),
}
"""A number that fits each dtype, and one that does not."""


def feature_schema(feature: str, suffix: str = "csv") -> str:
    return f"nodes:\n  n: {{files: n.{suffix}, id: id, features: {{x: {feature}}}}}\n"


@pytest.mark.parametrize("dtype", list(LARGEST))
def test_a_number_beyond_its_dtype_is_a_bad_row(tmp_path: Path, dtype: str) -> None:
    fits, exceeds = LARGEST[dtype]
    lowest = f"-{exceeds}" if dtype.startswith("float") else "-9223372036854775809"
    text = f"id,x\n1,{fits}\n2,{exceeds}\n3,{lowest}\n"
    chunks = schema_folder.nodes(tmp_path, feature_schema(dtype), {"n.csv": text})
    assert schema_folder.ids_of(chunks) == [1]
    expected = np.array([float(fits) if "e" in fits else int(fits)], dtype).tolist()
    assert schema_folder.values_of(chunks, "x") == expected
    bad = [(row.file, row.row, row.column, row.value) for row in schema_folder.bad_rows(chunks)]
    assert bad == [("n.csv", 3, "x", exceeds), ("n.csv", 4, "x", lowest)]


def test_infinity_and_nan_that_are_written_stay(tmp_path: Path) -> None:
    text = "id,x\n1,inf\n2,-Infinity\n3,nan\n4,1e39\n"
    chunks = schema_folder.nodes(tmp_path, feature_schema("float32"), {"n.csv": text})
    values = schema_folder.values_of(chunks, "x")
    assert values[:2] == [np.inf, -np.inf]
    assert np.isnan(values[2])
    (bad,) = schema_folder.bad_rows(chunks)
    assert str(bad) == (
        "n.csv, row 5, column 'x', value '1e39': expected float32; the number exceeds its range"
    )


@pytest.mark.parametrize(
    "feature",
    [
        "{split: ' ', kind: ragged, dtype: float32}",
        "{split: ' ', shape: 2, dtype: float16}",
        "{split: ' ', shape: 2}",
    ],
)
def test_lists_have_no_numbers_beyond_their_dtype(tmp_path: Path, feature: str) -> None:
    text = "id,x\n1,5 6\n2,5 1e39\n"
    chunks = schema_folder.nodes(tmp_path, feature_schema(feature), {"n.csv": text})
    assert schema_folder.ids_of(chunks) == [1]
    assert [row.value for row in schema_folder.bad_rows(chunks)] == ["5 1e39"]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_typed_files_of_wider_numbers_do_not_overflow(tmp_path: Path, dtype: str) -> None:
    table = pa.table({"id": [1, 2, 3], "x": [1.5, 1e300, np.inf]})
    parquet.write_table(table, tmp_path / "n.parquet")
    chunks = schema_folder.nodes(tmp_path, feature_schema(dtype, "parquet"))
    assert schema_folder.values_of(chunks, "x") == [1.5, np.inf]
    assert [row.value for row in schema_folder.bad_rows(chunks)] == ["1e+300"]
    np.save(tmp_path / "n.npy", np.array([(1, 70000), (2, 5)], [("id", "i8"), ("x", "i8")]))
    chunks = schema_folder.nodes(tmp_path, feature_schema("float16", "npy"))
    assert schema_folder.values_of(chunks, "x") == [5]


@pytest.mark.parametrize(
    ("dtype", "fits", "exceeds"),
    [
        ("int8", [-128.0, 127.0], [-129.0, 128.0, 1.5]),
        ("int64", [-(2.0**63), 2.0**63 - 1024], [-(2.0**63) - 2048, 2.0**63]),
        ("uint64", [0.0, 2.0**64 - 2048], [-1.0, 2.0**64]),
    ],
)
def test_floats_at_the_ends_of_integers_are_exact(
    tmp_path: Path, dtype: str, fits: list[float], exceeds: list[float]
) -> None:
    values = [*fits, *exceeds]
    parquet.write_table(pa.table({"id": range(len(values)), "x": values}), tmp_path / "n.parquet")
    chunks = schema_folder.nodes(tmp_path, feature_schema(dtype, "parquet"))
    assert schema_folder.values_of(chunks, "x") == [int(value) for value in fits]
    assert [float(row.value) for row in schema_folder.bad_rows(chunks)] == exceeds


@pytest.mark.parametrize("text", ["0x1F", "0xFF", "0XFFFFFFFFFFFFFFFF"])
@pytest.mark.parametrize("other", ["7", "x"])
def test_hexadecimal_digits_are_no_number(tmp_path: Path, text: str, other: str) -> None:
    """The parser takes 0xFF for -1 in an int8, but only if no other row is bad."""
    content = f"id,x\n1,{text}\n2,5\n3,{other}\n"
    chunks = schema_folder.nodes(tmp_path, feature_schema("int8"), {"n.csv": content})
    assert schema_folder.values_of(chunks, "x")[0] == 5
    assert schema_folder.bad_rows(chunks)[0].value == text


def test_unsigned_ids_beyond_int64_are_bad_rows(tmp_path: Path) -> None:
    ids = np.array([7, 1 << 63], np.uint64)
    parquet.write_table(pa.table({"id": ids}), tmp_path / "n.parquet")
    np.save(tmp_path / "n.npy", np.array([(i,) for i in ids], [("id", "u8")]))
    for suffix in ("parquet", "npy"):
        chunks = schema_folder.nodes(tmp_path, f"nodes: {{n: {{files: n.{suffix}, id: id}}}}\n")
        assert schema_folder.ids_of(chunks) == [7]
        (bad,) = schema_folder.bad_rows(chunks)
        assert (bad.value, bad.reason) == ("9223372036854775808", "an id is below 2^63")


def test_booleans_are_no_ids(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": [True, False]}), tmp_path / "n.parquet")
    with pytest.raises(InvalidRequest, match=r"n\.parquet: column 'id': column of bool: expected"):
        schema_folder.nodes(tmp_path, "nodes: {n: {files: n.parquet, id: id}}\n")


def test_a_time_that_is_no_number_is_a_bad_row(tmp_path: Path) -> None:
    schema = (
        "nodes:\n  n: {files: n.csv, id: id, time: x, features: {x: float32}}\n"
        "edges:\n  n:e:n: {files: e.csv, src: s, dst: d, time: t, features: {t: float64}}\n"
    )
    files = {"n.csv": "id,x\n1,nan\n2,1e39\n3,5\n", "e.csv": "s,d,t\n3,3,nan\n3,3,7\n"}
    chunks = schema_folder.nodes(tmp_path, schema, files)
    assert schema_folder.ids_of(chunks) == [3]
    assert [(row.row, row.column) for row in schema_folder.bad_rows(chunks)] == [(2, "x"), (3, "x")]
    edges = schema_folder.edges(tmp_path, schema)
    assert [(row.row, row.column) for row in schema_folder.bad_rows(edges)] == [(2, "t")]
    assert "a time is a number" in schema_folder.bad_rows(edges)[0].reason


@pytest.mark.parametrize(
    ("feature", "said"),
    [
        ("{dtype: int8, fill: 300}", "fill=300: expected a value of int8"),
        ("{dtype: int64, fill: 1.5}", "fill=1.5: expected a value of int64"),
        ("{dtype: int64, fill: .nan}", "fill=nan: expected a value of int64"),
        ("{dtype: float32, fill: 1e39}", r"fill=1e\+39: expected a value of float32"),
        ("{dtype: float16, fill: 70000}", "fill=70000: expected a value of float16"),
        ("{dtype: bool, fill: 2}", "fill=2: expected a value of bool"),
        ("{dtype: float64, fill: 1.0e+400}", "the number is too large"),
        ('{dtype: int64, fill: ""}', "fill='': expected a number, the value of nulls"),
        ("{kind: bytes, fill: none}", "fill=.none.: expected a number.* bytes and lists are empty"),
        ("{kind: bytes, fill: 3}", "fill=3: expected none, because missing bytes are empty"),
        ("{kind: bytes, fill: 0}", "fill=0: expected none"),
        ("{kind: bytes, fill: true}", "fill=True: expected none"),
        ("{dtype: int64, fill: true}", "fill=True: expected a value of int64"),
        ("{dtype: float32, fill: false}", "fill=False: expected a value of float32"),
        ("{kind: ragged, split: ';', fill: true}", "fill=True: expected a value of int64"),
    ],
)
def test_a_fill_that_its_dtype_cannot_hold_is_refused(
    tmp_path: Path, feature: str, said: str
) -> None:
    with pytest.raises(InvalidRequest, match=said):
        schema_folder.nodes(tmp_path, feature_schema(feature), {"n.csv": "id,x\n1,\n"})


@pytest.mark.parametrize(
    ("feature", "said"),
    [
        ("{kind: bytes, shape: 3}", "shape=.3.: expected none, because features of kind bytes"),
        ("{kind: ragged, split: ' ', shape: [2]}", "shape=.2.: expected none, .* kind ragged"),
        ("{kind: bytes, split: ' '}", "split=' ': expected none, because bytes are one value"),
    ],
)
def test_settings_without_effect_on_a_kind_are_refused(
    tmp_path: Path, feature: str, said: str
) -> None:
    with pytest.raises(InvalidRequest, match=said):
        schema_folder.nodes(tmp_path, feature_schema(feature), {"n.csv": "id,x\n1,\n"})


def test_an_empty_fill_of_bytes_is_what_a_missing_value_is(tmp_path: Path) -> None:
    files = {"n.csv": "id,x\n1,\n2,word\n"}
    texts = [
        schema_folder.texts_of(schema_folder.nodes(tmp_path, feature_schema(feature), files), "x")
        for feature in ('{kind: bytes, fill: ""}', "{kind: bytes}")
    ]
    assert texts[0] == texts[1] == [b"", b"word"]


def test_a_fill_is_checked_against_the_dtype_of_the_file(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": [1], "x": pa.array([None], pa.int8())}), tmp_path / "n.pq")
    with pytest.raises(InvalidRequest, match="fill=300: expected a value of int8"):
        schema_folder.nodes(tmp_path, feature_schema("{fill: 300}", "pq"))
    assert schema_folder.values_of(
        schema_folder.nodes(tmp_path, feature_schema("{fill: -3}", "pq")), "x"
    ) == [-3]
    parquet.write_table(pa.table({"id": [1], "x": ["word"]}), tmp_path / "n.pq")
    with pytest.raises(InvalidRequest, match="fill=3: expected none, because missing bytes"):
        schema_folder.nodes(tmp_path, feature_schema("{fill: 3}", "pq"))


@pytest.mark.parametrize(
    ("value", "dtype", "fits"),
    [
        (2**63, "int64", False),
        (2**63, "uint64", True),
        (10**400, "float64", False),
        (float("inf"), "float16", True),
        (65519.0, "float16", True),
        (65520.0, "float16", False),
        (1, "bool", True),
        (0.5, "bool", False),
        (-1, "uint8", False),
        (2.0, "int8", True),
    ],
)
def test_a_number_fits_a_dtype_or_not(value: float, dtype: str, fits: bool) -> None:
    assert number_fits(value, dtype) is fits


AGGREGATE = (
    "nodes:\n  n: {count: 3}\n"
    "edges:\n  n:e:n: {files: e.csv, src: s, dst: d, weight: w, aggregate: sum}\n"
)


def test_a_sum_of_weights_beyond_float32_is_a_bad_row(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    text = "s,d,w\n0,1,3e38\n0,1,3e38\n1,2,1\n1,2,2\n"
    chunks = schema_folder.edges(tmp_path, AGGREGATE, {"e.csv": text})
    assert [c.weights.tolist() for c in chunks if c.weights is not None and len(c)] == [[3]]
    (bad,) = schema_folder.bad_rows(chunks)
    assert (bad.file, bad.column) == ("e.csv (aggregated)", "w")
    assert bad.reason.startswith("the sum of the weights from s 0 to d 1: a weight is finite")
    assert not recwarn.list


def test_euler_numbers_beyond_their_dtype_are_bad_rows(tmp_path: Path) -> None:
    def node(number: int, value: str, weight: str = "1") -> str:
        return (
            f'{{"id": {number}, "type": 0, "weight": {weight}, "features": '
            f'[{{"name": "x", "type": "dense", "value": [{value}]}}]}}'
        )

    rows = [
        node(1, "1e400"),
        node(2, "-1e39"),
        node(3, "Infinity"),
        node(4, "5"),
        node(5, "1", "1e400"),
        node(6, "1", "Infinity"),
        node(7, "1", '"2"'),
    ]
    path = tmp_path / "graph.json"
    path.write_text('{"nodes": [' + ",\n".join(rows) + '], "edges": []}')
    chunks = list(open_source(path).node_chunks())
    assert schema_folder.values_of(chunks, "x") == [[np.inf], [5]]
    bad = [(row.row, row.column, row.reason) for row in schema_folder.bad_rows(chunks)]
    assert bad == [
        (1, "x", "expected numbers that fit float32"),
        (2, "x", "expected numbers that fit float32"),
        (5, "weight", "a weight is finite and fits float32"),
        (6, "weight", "a weight is finite and fits float32"),
        (7, "weight", "a weight is a number"),
    ]


def test_pglbox_numbers_beyond_float32_are_bad_rows(tmp_path: Path) -> None:
    path = pglbox_files.write(tmp_path, slots=[], nfeat_info=[["u", "x", "float32", 1]])
    (tmp_path / "data/node_types/part-00000").write_text("u\t1\tx 0.5\nu\t2\tx 1e39\n")
    (tmp_path / "data/node_types/part-00001").write_text("u\t3\n")
    chunks = list(open_source(path).node_chunks())
    assert schema_folder.ids_of(chunks) == [1, 3]
    (bad,) = schema_folder.bad_rows(chunks)
    assert str(bad).startswith("node_types/part-00000, row 2, column 'x', value 'x 1e39'")


def dgl_graph(folder: Path, **metadata: Any) -> Path:
    (folder / "e.txt").write_text("0 1\n1 2\n2 0\n")
    document = {
        "graph_name": "g",
        "node_type": ["a"],
        "num_nodes_per_chunk": [[3]],
        "edge_type": ["a:e:a"],
        "num_edges_per_chunk": [[3]],
        "edges": {"a:e:a": {"format": {"name": "csv", "delimiter": " "}, "data": ["e.txt"]}},
        "node_data": {},
        "edge_data": {},
        **metadata,
    }
    (folder / "metadata.json").write_text(json.dumps(document))
    return folder


def test_dgl_numbers_beyond_float32_are_bad_rows(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("0.5\n1e39\n2\n")
    data = {"x": {"format": {"name": "csv"}, "data": ["x.csv"]}}
    chunks = list(open_source(dgl_graph(tmp_path, edge_data={"a:e:a": data})).edge_chunks())
    assert [c.src.tolist() for c in chunks] == [[0, 2]]
    (bad,) = schema_folder.bad_rows(chunks)
    assert (bad.file, bad.row, bad.value) == ("x.csv", 2, "1e39")
    with pytest.raises(InvalidRequest, match=r"x\.csv, row 2, .*value '1e39'"):
        list(open_source(dgl_graph(tmp_path, node_data={"a": data})).node_chunks())
