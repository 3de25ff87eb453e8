"""Tests of odd Parquet columns: of type null, and several of one name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.kit import schema_folder

from asterism.formats import open_source
from asterism_proto.errors import InvalidRequest


def write(path: Path, **columns: Any) -> None:
    parquet.write_table(pa.table(columns), path)


def schema(feature: str, **keys: str) -> str:
    settings = "".join(f", {key}: {value}" for key, value in keys.items())
    return f"nodes:\n  n: {{files: 'n*.parquet', id: id, features: {{x: {feature}}}{settings}}}\n"


@pytest.mark.parametrize(
    ("dtype", "fill", "filled"),
    [("int8", "-1", -1), ("int64", "7", 7), ("float32", "0.5", 0.5), ("bool", "true", True)],
)
def test_a_column_of_nulls_takes_the_fill(
    tmp_path: Path, dtype: str, fill: str, filled: object
) -> None:
    write(tmp_path / "n1.parquet", id=[1, 2], x=pa.nulls(2))
    source = open_source(schema_folder.write(tmp_path, schema(f"{{dtype: {dtype}, fill: {fill}}}")))
    assert source.schema.node_types[0].features[0].dtype == dtype
    assert schema_folder.values_of(list(source.node_chunks()), "x") == [filled, filled]


def test_a_column_of_nulls_without_fill_is_missing_values(tmp_path: Path) -> None:
    write(tmp_path / "n1.parquet", id=[1], x=pa.nulls(1))
    (bad,) = schema_folder.bad_rows(schema_folder.nodes(tmp_path, schema("int64")))
    assert str(bad) == (
        "n1.parquet, row 0, column 'x', value '': the value is missing; `fill` says what it is then"
    )


@pytest.mark.parametrize("order", [("n1", "n2"), ("n2", "n1")])
def test_files_of_nulls_stand_beside_typed_ones(tmp_path: Path, order: tuple[str, str]) -> None:
    write(tmp_path / f"{order[0]}.parquet", id=[1], x=pa.nulls(1))
    write(tmp_path / f"{order[1]}.parquet", id=[2], x=pa.array([5], pa.int16()))
    source = open_source(schema_folder.write(tmp_path, schema("{fill: 9}")))
    assert source.schema.node_types[0].features[0].dtype == "int16"
    chunks = list(source.node_chunks())
    found = {c.ids.tolist()[0]: np.asarray(c.features["x"]).tolist() for c in chunks}
    assert found == {1: [9], 2: [5]}


def test_files_of_other_columns_are_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path / "n1.parquet", id=[1], x=[5], w=[1.0])
    write(tmp_path / "n2.parquet", id=[2], w=[1.0])
    with pytest.raises(InvalidRequest, match=r"n2\.parquet: expected a column 'x', it has id, w"):
        open_source(schema_folder.write(tmp_path, schema("int64")))
    write(tmp_path / "n2.parquet", id=[2], x=[5])
    with pytest.raises(InvalidRequest, match=r"n2\.parquet: expected a column 'w', it has id, x"):
        open_source(schema_folder.write(tmp_path, schema("int64", weight="w")))
    write(tmp_path / "n2.parquet", x=[5], w=[1.0])
    with pytest.raises(InvalidRequest, match=r"n2\.parquet: expected a column 'id', it has x, w"):
        open_source(schema_folder.write(tmp_path, schema("int64")))


def test_files_of_other_types_are_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path / "n1.parquet", id=[1], x=pa.array([5], pa.int64()))
    write(tmp_path / "n2.parquet", id=[2], x=pa.array([5.5], pa.float32()))
    message = r"n2\.parquet: expected dense int64\[\] as in the first file, found dense float32"
    with pytest.raises(InvalidRequest, match=message):
        open_source(schema_folder.write(tmp_path, schema("")))


def test_nulls_are_empty_texts_and_lists(tmp_path: Path) -> None:
    write(tmp_path / "n1.parquet", id=[1], x=pa.nulls(1))
    write(tmp_path / "n2.parquet", id=[2], x=["a"])
    chunks = schema_folder.nodes(tmp_path, schema("bytes"))
    assert schema_folder.texts_of(chunks, "x") == [b"", b"a"]
    write(tmp_path / "n2.parquet", id=[2], x=pa.array([[]], pa.list_(pa.null())))
    write(tmp_path / "n3.parquet", id=[3], x=pa.array([[5, None]], pa.list_(pa.int64())))
    source = open_source(schema_folder.write(tmp_path, schema("{kind: ragged, fill: 8}")))
    chunks = list(source.node_chunks())
    assert [chunk.features["x"][1].tolist() for chunk in chunks] == [[], [], [5, 8]]


def test_ids_and_weights_of_nulls_are_bad_rows(tmp_path: Path) -> None:
    write(tmp_path / "n1.parquet", id=pa.nulls(1), w=[1.0], x=[1])
    write(tmp_path / "n2.parquet", id=[1], w=pa.nulls(1), x=[1])
    bad = schema_folder.bad_rows(schema_folder.nodes(tmp_path, schema("int64", weight="w")))
    assert [row.reason for row in bad] == ["the id is missing", "the weight is missing"]
    named = "ids: string\nnodes: {n: {files: 'n1.parquet', id: id}}\n"
    (bad_name,) = schema_folder.bad_rows(schema_folder.nodes(tmp_path, named))
    assert bad_name.reason == "the id is missing"
    keyed = "nodes: {n: {files: 'n1.parquet', key: id}}\n"
    (bad_key,) = schema_folder.bad_rows(schema_folder.nodes(tmp_path, keyed))
    assert bad_key.reason == "the name is missing"


def test_a_column_that_is_there_twice_is_refused_if_it_is_read(tmp_path: Path) -> None:
    columns = [pa.array([1]), pa.array([2]), pa.array([3])]
    parquet.write_table(pa.table(columns, ["id", "x", "x"]), tmp_path / "n1.parquet")
    with pytest.raises(InvalidRequest, match=r"n1\.parquet: expected one column 'x', it has 2"):
        schema_folder.nodes(tmp_path, schema("int64"))
    unused = "nodes: {n: {files: 'n1.parquet', id: id}}\n"
    assert schema_folder.ids_of(schema_folder.nodes(tmp_path, unused)) == [1]
    with pytest.raises(InvalidRequest, match=r"expected a column 'y', it has id, x, x"):
        schema_folder.nodes(tmp_path, schema("{column: y}"))
