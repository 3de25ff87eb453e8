"""Tests of the rule by which columns of Parquet files become features, type by type."""

from __future__ import annotations

import datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from asterism import arrow_types
from asterism.formats import NodeChunk, open_source
from asterism_proto.errors import InvalidRequest

UTC = datetime.UTC
SECOND = 1_704_164_645
"""2024-01-02 03:04:05 UTC."""
MOMENT = datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
DAY = 19_724
"""2024-01-02 in days since 1970."""


def read(folder: Path, column: pa.Array, feature: str = "{}") -> NodeChunk:
    (folder / "schema.yaml").write_text(
        f"nodes: {{n: {{files: n.parquet, features: {{x: {feature}}}}}}}\n"
    )
    parquet.write_table(pa.table({"x": column}), folder / "n.parquet")
    (chunk,) = open_source(folder / "schema.yaml").node_chunks()
    return chunk


def texts(value: Any) -> list[bytes]:
    indptr, data = value
    return [bytes(data[start:stop]) for start, stop in pairwise(indptr)]


def halves() -> pa.Array:
    return pa.array(np.array([1, 0.1], np.float16))


@pytest.mark.parametrize(
    ("column", "dtype", "values"),
    [
        (halves(), "float16", [1.0, 0.0999755859375]),
        (pa.array([True, False]), "bool", [True, False]),
        (pa.array([2**64 - 1, 0], pa.uint64()), "uint64", [2**64 - 1, 0]),
        (pa.array([Decimal(10**17), Decimal(-3)], pa.decimal128(18, 0)), "int64", [10**17, -3]),
        (pa.array([Decimal("0.1"), Decimal("-2.50")], pa.decimal128(9, 2)), "float64", [0.1, -2.5]),
        (pa.array([Decimal(10**20), Decimal(0)], pa.decimal256(40, 0)), "float64", [1e20, 0]),
        (pa.array([1.5, 2.5]).dictionary_encode(), "float64", [1.5, 2.5]),
        (pa.array([MOMENT, MOMENT], pa.timestamp("s")), "int64", [SECOND * 10**6] * 2),
        (
            pa.array([MOMENT, MOMENT], pa.timestamp("ns", "Asia/Tokyo")),
            "int64",
            [SECOND * 10**6] * 2,
        ),
        (pa.array([MOMENT.date()] * 2, pa.date32()), "int64", [DAY * 86_400 * 10**6] * 2),
        (pa.array([MOMENT.date()] * 2, pa.date64()), "int64", [DAY * 86_400 * 10**6] * 2),
        (pa.array([90, -1], pa.duration("s")), "int64", [90_000_000, -1_000_000]),
        (pa.array([1, 3600], pa.time32("s")), "int64", [10**6, 3600 * 10**6]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_typed_columns_become_dense_features(
    tmp_path: Path, column: pa.Array, dtype: str, values: list[Any]
) -> None:
    chunk = read(tmp_path, column)
    value = chunk.features["x"]
    assert isinstance(value, np.ndarray)
    assert (value.dtype.name, value.tolist(), chunk.bad) == (dtype, values, ())


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.large_binary(),
        pa.binary_view(),
        pa.binary(2),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.string_view()),
    ],
    ids=str,
)
def test_strings_of_any_layout_become_bytes(kind: pa.DataType) -> None:
    values = ["ab", None, "cd", "ab"]
    if pa.types.is_dictionary(kind):
        column = pa.DictionaryArray.from_arrays(
            pa.array([0, None, 1, 0], kind.index_type), pa.array(["ab", "cd"], kind.value_type)
        )
    else:
        column = pa.array(
            [v and (v if "string" in str(kind) else v.encode()) for v in values], kind
        )
    from asterism.formats.columns import parse_names, parse_strings

    assert arrow_types.describe_type(kind) == ("bytes", "", ())
    assert texts(parse_strings(column.slice(1), 3)) == [b"", b"cd", b"ab"]
    names, invalid = parse_names(column)
    assert texts(names) == [b"ab", b"", b"cd", b"ab"]
    assert invalid is not None
    assert invalid.tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    "kind", [pa.list_view(pa.int32()), pa.large_list_view(pa.int32())], ids=str
)
def test_list_views_become_ragged_features(kind: pa.DataType) -> None:
    from asterism.formats.columns import parse_lists

    column = pa.array([[1, 2], [], [3]], kind)
    assert arrow_types.describe_type(kind) == ("ragged", "int64", ())
    indptr, values, bad = parse_lists(column, np.dtype(np.int64))
    assert (indptr.tolist(), values.tolist(), bad) == ([0, 2, 2, 3], [1, 2, 3], None)


def test_runs_are_decoded() -> None:
    from asterism.formats.columns import parse_numbers

    column = pa.RunEndEncodedArray.from_arrays([2, 3], [5, 6])
    assert arrow_types.describe_type(column.type) == ("dense", "int64", ())
    assert parse_numbers(column, np.dtype(np.int64))[0].tolist() == [5, 5, 6]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([{"a": 1}]), "nested values are no feature; write each field as a column"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "nested values"),
        (pa.array([[MOMENT]]), r"lists hold numbers, not timestamp\[us"),
        (pa.array([[[1]]]), "lists hold numbers, not list"),
        (pa.array([["a"]]), "lists hold numbers, not string"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_types_without_a_rule_are_refused_with_the_reason(
    tmp_path: Path, column: pa.Array, reason: str
) -> None:
    with pytest.raises(InvalidRequest, match=rf"n\.parquet: column 'x' of .*; {reason}"):
        read(tmp_path, column)


def test_extension_types_are_refused_with_their_storage() -> None:
    with pytest.raises(arrow_types.UnsupportedTypeError, match=r"storage, fixed_size_binary\[16\]"):
        arrow_types.describe_type(pa.uuid())
    with pytest.raises(arrow_types.UnsupportedTypeError, match="months and days differ"):
        arrow_types.describe_type(pa.month_day_nano_interval())


@pytest.mark.parametrize(
    ("unit", "value"),
    [("s", SECOND), ("ms", SECOND * 10**3), ("us", SECOND * 10**6), ("ns", SECOND * 10**9)],
)
@pytest.mark.parametrize("own", ["s", "ms", "us", "ns"])
def test_times_have_the_unit_of_the_schema_file(
    tmp_path: Path, unit: str, value: int, own: str
) -> None:
    column = pa.array([MOMENT, None], pa.timestamp(own, "UTC"))
    chunk = read(tmp_path, column, f"{{unit: {unit}, fill: -1}}")
    assert np.asarray(chunk.features["x"]).tolist() == [value, -1]


def test_days_are_a_unit_for_dates(tmp_path: Path) -> None:
    chunk = read(tmp_path, pa.array([MOMENT.date()]), "{unit: d, dtype: int32}")
    assert np.asarray(chunk.features["x"]).tolist() == [DAY]


def test_times_are_refused_rather_than_rounded(tmp_path: Path) -> None:
    column = pa.array([SECOND * 10**9, SECOND * 10**9 + 7, None], pa.timestamp("ns"))
    chunk = read(tmp_path, column)
    assert [(bad.row, bad.value, bad.reason) for bad in chunk.bad] == [
        (
            1,
            "2024-01-02 03:04:05.000000007",
            "expected int64 in the unit 'us'; choose another `unit`",
        ),
        (2, "", "the value is missing; `fill` says what it is then"),
    ]
    far = pa.array([2**60, -(2**60), 5], pa.timestamp("ms"))
    assert [bad.row for bad in read(tmp_path, far).bad] == [0, 1], "beyond int64"


def test_decimals_with_a_fraction_are_no_integers(tmp_path: Path) -> None:
    column = pa.array([Decimal("3.00"), Decimal("3.10"), Decimal("-1.00")], pa.decimal128(5, 2))
    chunk = read(tmp_path, column, "uint8")
    assert np.asarray(chunk.features["x"]).tolist() == [3]
    assert [(bad.row, bad.value) for bad in chunk.bad] == [(1, "3.10"), (2, "-1.00")]


def test_decimals_at_the_end_of_their_precision_are_read(tmp_path: Path) -> None:
    column = pa.array([Decimal("-999.50"), Decimal("-999.00")], pa.decimal128(5, 2))
    chunk = read(tmp_path, column, "int16")
    assert np.asarray(chunk.features["x"]).tolist() == [-999]
    assert [bad.value for bad in chunk.bad] == ["-999.50"]


def test_decimals_may_be_ids_and_weights(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": pa.array([Decimal(2**62), Decimal(1)], pa.decimal128(38, 0)),
            "w": pa.array([Decimal("0.5"), Decimal("1.5")]),
            "at": pa.array([1, 2], pa.timestamp("us")),
        }
    )
    parquet.write_table(table, tmp_path / "n.parquet")
    schema = "nodes: {n: {files: n.parquet, id: %s, weight: w}}\n"
    (tmp_path / "a.yaml").write_text(schema % "id")
    (chunk,) = open_source(tmp_path / "a.yaml").node_chunks()
    assert chunk.weights is not None
    assert (chunk.ids.tolist(), chunk.weights.tolist()) == ([2**62, 1], [0.5, 1.5])
    (tmp_path / "b.yaml").write_text(schema % "at")
    with pytest.raises(InvalidRequest, match=r"'at': column of timestamp\[us\]: expected numbers"):
        list(open_source(tmp_path / "b.yaml").node_chunks())


def test_timestamps_of_96_bits_keep_distant_years(tmp_path: Path) -> None:
    year_9999 = datetime.datetime(9999, 12, 31)
    table = pa.table({"x": pa.array([year_9999], pa.timestamp("us"))})
    parquet.write_table(table, tmp_path / "n.parquet", use_deprecated_int96_timestamps=True)
    (tmp_path / "s.yaml").write_text("nodes: {n: {files: n.parquet, features: {x: {unit: s}}}}\n")
    (chunk,) = open_source(tmp_path / "s.yaml").node_chunks()
    expected = int(year_9999.replace(tzinfo=UTC).timestamp())
    assert np.asarray(chunk.features["x"]).tolist() == [expected]


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        ("minutes", "unit='minutes': expected one of d, s, ms, us, ns"),
        ("3", "unit=3: expected one"),
    ],
)
def test_unknown_unit_is_refused(tmp_path: Path, unit: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        read(tmp_path, pa.array([MOMENT]), f"{{unit: {unit}}}")


def test_text_has_no_unit(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("x\n1\n")
    (tmp_path / "s.yaml").write_text("nodes: {n: {files: n.csv, features: {x: {unit: s}}}}\n")
    with pytest.raises(InvalidRequest, match="unit='s': expected none, because times of csv files"):
        open_source(tmp_path / "s.yaml")
