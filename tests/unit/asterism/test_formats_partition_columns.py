"""Tests of columns in the names of folders, as Hive and Spark write them."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from asterism.formats import GraphSource, open_source
from asterism.formats.partition_columns import partition_values
from asterism_proto.errors import InvalidRequest

DAYS = ("2024-01-01", "2024-01-31")
formats = pytest.mark.parametrize("suffix", ["parquet", "csv"])


def write(path: Path, columns: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns)
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        csv.write_csv(table, path)


def write_days(folder: Path, suffix: str, **more: Any) -> None:
    """Write two days of two hours, with two people in each."""
    for i, day in enumerate(DAYS):
        for hour in ("07", "12"):
            ids = [10 * i + int(hour), 100 + 10 * i + int(hour)]
            path = folder / f"people/dt={day}/hour={hour}/part-0.{suffix}"
            write(path, {"id": ids, "age": [1, 2], **more})


def source(folder: Path, files: str = "people", features: str = "", **spec: str) -> GraphSource:
    fields = {"files": f"'{files}'", "id": "id", "features": f"{{{features}}}", **spec}
    text = ", ".join(f"{name}: {value}" for name, value in fields.items())
    (folder / "schema.yaml").write_text(f"nodes: {{person: {{{text}}}}}\n")
    return open_source(folder / "schema.yaml")


def rows_of(graph: GraphSource) -> dict[int, dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}
    for chunk in graph.node_chunks():
        assert not chunk.bad
        for row, node in enumerate(chunk.ids.tolist()):
            rows[node] = {
                name: column[1][column[0][row] : column[0][row + 1]].tobytes().decode()
                if isinstance(column, tuple)
                else np.asarray(column)[row].tolist()
                for name, column in chunk.features.items()
            }
    return rows


def microseconds(day: str) -> int:
    date = datetime.date.fromisoformat(day)
    return (date - datetime.date(1970, 1, 1)) // datetime.timedelta(microseconds=1)


@formats
def test_named_columns_are_features_with_their_types(tmp_path: Path, suffix: str) -> None:
    write_days(tmp_path, suffix)
    graph = source(
        tmp_path, features="dt: {}, hour: {}, text: {column: hour, kind: bytes}, age: {dtype: int8}"
    )
    features = {each.name: each for each in graph.schema.node_types[0].features}
    assert (features["hour"].kind, features["hour"].dtype) == ("dense", "int64")
    assert features["text"].kind == "bytes"
    day_kind = ("dense", "int64") if suffix == "parquet" else ("bytes", features["dt"].dtype)
    assert (features["dt"].kind, features["dt"].dtype) == day_kind
    rows = rows_of(graph)
    assert len(rows) == 8
    for i, day in enumerate(DAYS):
        for hour in ("07", "12"):
            for person, age in ((10 * i + int(hour), 1), (100 + 10 * i + int(hour), 2)):
                assert rows[person] == {
                    "dt": microseconds(day) if suffix == "parquet" else day,
                    "hour": int(hour),
                    "text": hour,
                    "age": age,
                }


@formats
@pytest.mark.parametrize(
    "files", ["people", "people/dt=*", "people/**/*", "people/dt=*/hour=*/part-*"]
)
def test_columns_that_are_not_named_are_ignored(tmp_path: Path, suffix: str, files: str) -> None:
    write_days(tmp_path, suffix)
    if files.endswith("**/*"):
        files += f".{suffix}"
    rows = rows_of(source(tmp_path, files, "age: {dtype: int64}"))
    assert sorted(rows) == [7, 12, 17, 22, 107, 112, 117, 122]
    assert rows[7] == {"age": 1}
    hours = rows_of(source(tmp_path, files, "hour: {dtype: float32}"))
    assert {person % 10 for person, row in hours.items() if row == {"hour": 7.0}} == {7}


@formats
def test_a_schema_may_choose_unit_dtype_weight_and_id(tmp_path: Path, suffix: str) -> None:
    write_days(tmp_path, suffix)
    graph = source(tmp_path, features="h: {column: hour, dtype: uint8}", weight="hour")
    (first, *_) = graph.node_chunks()
    assert first.weights is not None
    assert first.weights.tolist() == [7.0, 7.0]
    assert np.asarray(first.features["h"]).dtype == np.uint8
    if suffix == "parquet":
        days = rows_of(source(tmp_path, features="dt: {unit: d}"))
        assert days[7]["dt"] == 19723
    only = source(tmp_path, "people/dt=2024-01-01", id="hour")
    assert [chunk.ids.tolist() for chunk in only.node_chunks()] == [[7, 7], [12, 12]]


@formats
def test_a_column_of_the_file_must_agree_with_its_folder(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / f"people/hour=07/a.{suffix}", {"id": [1, 2], "hour": [7, 7]})
    write(tmp_path / f"people/hour=8/b.{suffix}", {"id": [3, 4]})
    features = "hour: {dtype: int64}"
    assert rows_of(source(tmp_path, features=features)) == {
        1: {"hour": 7},
        2: {"hour": 7},
        3: {"hour": 8},
        4: {"hour": 8},
    }
    write(tmp_path / f"people/hour=8/b.{suffix}", {"id": [3, 4], "hour": [8, 9]})
    row = 2 if suffix == "parquet" else 3
    message = rf"hour=8/b.{suffix}: row {row - (suffix == 'parquet')}: column 'hour': expected 8, "
    with pytest.raises(InvalidRequest, match=message + "as in the name of its folder, found 9"):
        rows_of(source(tmp_path, features=features))
    assert sorted(rows_of(source(tmp_path))) == [1, 2, 3, 4]  # the column is not named
    assert sorted(rows_of(source(tmp_path, "people/hour=07", features))) == [1, 2]


@formats
def test_null_folders_take_fill_and_escapes_are_undone(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / f"people/city=a%3Ab %2F/x.{suffix}", {"id": [1], "v": [5]})
    null = tmp_path / f"people/city=__HIVE_DEFAULT_PARTITION__/y.{suffix}"
    write(null, {"id": [2], "v": [6]})
    rows = rows_of(source(tmp_path, features="city: {kind: bytes}"))
    assert rows == {1: {"city": "a:b /"}, 2: {"city": ""}}
    null.parent.rename(null.parent.with_name("hour=__HIVE_DEFAULT_PARTITION__"))
    (tmp_path / "people/city=a%3Ab %2F").rename(tmp_path / "people/hour=3")
    assert rows_of(source(tmp_path, features="hour: {dtype: int64, fill: -1}")) == {
        1: {"hour": 3},
        2: {"hour": -1},
    }
    (chunk,) = [c for c in source(tmp_path, features="hour: {dtype: int64}").node_chunks() if c.bad]
    assert chunk.bad[0].column == "hour"


def test_rows_with_errors_keep_their_lines_and_columns(tmp_path: Path) -> None:
    path = tmp_path / "people/hour=07/a.csv"
    path.parent.mkdir(parents=True)
    path.write_text("id,age\n1,5\nx,6\n3\n4,8\n")
    graph = source(tmp_path, features="hour: {dtype: int64}, age: {dtype: int8}")
    (chunk,) = graph.node_chunks()
    assert chunk.ids.tolist() == [1, 4]
    assert np.asarray(chunk.features["hour"]).tolist() == [7, 7]
    assert [(bad.row, bad.column) for bad in chunk.bad] == [(3, "id"), (4, "age")]


def test_edges_read_columns_of_folders(tmp_path: Path) -> None:
    for day in (1, 2):
        write(tmp_path / f"calls/day={day}/a.parquet", {"s": [0, 1], "d": [1, 0]})
    (tmp_path / "schema.yaml").write_text(
        "nodes: {p: {count: 2}}\n"
        "edges: {p:calls:p: {files: calls, src: s, dst: d, weight: day, features: {day: {}}}}\n"
    )
    chunks = list(open_source(tmp_path / "schema.yaml").edge_chunks())
    assert [chunk.weights.tolist() for chunk in chunks if chunk.weights is not None] == [
        [1.0, 1.0],
        [2.0, 2.0],
    ]
    assert np.concatenate([chunk.features["day"] for chunk in chunks]).tolist() == [1, 1, 2, 2]


@formats
def test_folders_that_do_not_fit_are_refused(tmp_path: Path, suffix: str) -> None:
    write_days(tmp_path, suffix)
    write(tmp_path / f"people/dt=2024-02-01/b.{suffix}", {"id": [1], "age": [1]})
    message = "expected folders of the same partition columns, found 'dt' and 'dt, hour'"
    with pytest.raises(InvalidRequest, match=message):
        source(tmp_path)
    with pytest.raises(InvalidRequest, match=r"b.*: expected a column 'hour', it has dt, id, age"):
        source(tmp_path, f"people/**/*.{suffix}", "hour: {dtype: int64}")
    with pytest.raises(InvalidRequest, match="expected a column 'hours'"):
        source(tmp_path, "people/dt=2024-01-01", "hours: {dtype: int64}")


def test_values_are_those_of_the_folders_of_a_file() -> None:
    assert partition_values("x/a=1/b=/c.parquet") == {"a": "1", "b": ""}
    assert partition_values("a=1.csv") == {}
    assert partition_values("=1/d=2=3/a.csv") == {"d": "2=3"}
    assert partition_values("a=NA/b.csv", nulls=("NA",)) == {"a": None}
    with pytest.raises(InvalidRequest, match="one folder for the column 'a', it has two"):
        partition_values("a=1/a=2/b.csv")
