"""Tests of folders that Spark writes as one table."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from asterism.formats import GraphSource, open_source
from asterism_proto.errors import InvalidRequest


def spark_folder(folder: Path) -> Path:
    """Write a folder as Spark does: two files, markers, metadata and checksums."""
    out = folder / "people.parquet"
    out.mkdir()
    for number, ids in enumerate(([1, 2], [3])):
        name = f"part-0000{number}-4f1c.c000.snappy.parquet"
        parquet.write_table(pa.table({"id": ids}), out / name)
        (out / f".{name}.crc").write_bytes(b"crc")
    (out / "_SUCCESS").touch()
    (out / "._SUCCESS.crc").write_bytes(b"crc")
    parquet.write_metadata(pa.schema([("id", pa.int64())]), out / "_metadata")
    (out / "_committed_12").write_text("{}")
    return out


def source(folder: Path, files: str = "people.parquet") -> GraphSource:
    (folder / "schema.yaml").write_text(f"nodes: {{person: {{files: '{files}', id: id}}}}\n")
    return open_source(folder / "schema.yaml")


def ids_of(graph: GraphSource) -> list[list[int]]:
    return [chunk.ids.tolist() for chunk in graph.node_chunks()]


def assert_refused(folder: Path, message: str, files: str = "people.parquet") -> None:
    with pytest.raises(InvalidRequest, match=message):
        source(folder, files)


@pytest.mark.parametrize("files", ["people.parquet", "people.parquet/", "*.parquet"])
def test_folder_is_read_as_one_table_in_order_of_names(tmp_path: Path, files: str) -> None:
    out = spark_folder(tmp_path)
    graph = source(tmp_path, files)
    assert ids_of(graph) == [[1, 2], [3]]
    assert [path.name for path in graph.files] == [
        "schema.yaml",
        *sorted(path.name for path in out.glob("part-*")),
    ]


def test_folder_without_the_marker_of_success_is_read(tmp_path: Path) -> None:
    (spark_folder(tmp_path) / "_SUCCESS").unlink()
    assert ids_of(source(tmp_path)) == [[1, 2], [3]]


def test_empty_text_files_of_a_finished_job_have_no_rows(tmp_path: Path) -> None:
    out = tmp_path / "people"
    out.mkdir()
    (out / "part-00000.csv.gz").write_bytes(gzip.compress(b"id\n5\n"))
    (out / "part-00001.csv.gz").touch()
    assert_refused(tmp_path, r"part-00001.csv.gz: named .gz, but .*\(it is empty\)", "people")
    (out / "_SUCCESS").touch()
    assert ids_of(source(tmp_path, "people")) == [[5]]


def test_unfinished_job_is_refused(tmp_path: Path) -> None:
    (spark_folder(tmp_path) / "_temporary").mkdir()
    assert_refused(
        tmp_path,
        "node type 'person': people.parquet: expected the output of a finished job, found the "
        "folder '_temporary'; let the job finish",
    )


def test_files_beside_partitions_are_refused(tmp_path: Path) -> None:
    out = spark_folder(tmp_path)
    (out / "day=2024-01-01").mkdir()
    (out / "part-00000-4f1c.c000.snappy.parquet").rename(out / "day=2024-01-01/part-0.parquet")
    assert_refused(
        tmp_path,
        "people.parquet: expected folders of the same partition columns, found '' and 'day'; list",
    )
    assert ids_of(source(tmp_path, "people.parquet/day=*/*.parquet")) == [[1, 2]]
    assert ids_of(source(tmp_path, "people.parquet/day=*")) == [[1, 2]]


def test_folders_that_are_no_table_are_refused(tmp_path: Path) -> None:
    out = spark_folder(tmp_path)
    (out / "more").mkdir()
    assert_refused(tmp_path, "found the folder 'more'; list the folders or files of the type")
    (out / "more").rmdir()
    (out / "notes.txt").write_text("x")
    assert_refused(tmp_path, "of one format, found the suffixes .parquet, .txt; name the files")
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "_SUCCESS").touch()
    assert_refused(tmp_path, "empty: expected files with rows, found none", "empty")
