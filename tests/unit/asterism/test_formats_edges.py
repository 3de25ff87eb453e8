"""Tests of edges of tabular files: repeats, self-loops and sums over several chunks and files."""

from __future__ import annotations

from pathlib import Path

from tests.kit import schema_folder

from asterism.formats import open_source

UNIQUE = (
    "nodes: {n: {count: 9}}\nedges: {n:e:n: {files: 'e*.csv', src: s, dst: d, edges: unique}}\n"
)


def test_repeats_are_found_after_misshapen_rows(tmp_path: Path) -> None:
    files = {"e1.csv": "s,d\n1,2\n5\n3,4\n", "e2.csv": "s,d\n1,2\n3,5\n"}
    chunks = schema_folder.edges(tmp_path, UNIQUE, files)
    assert [chunk.dst.tolist() for chunk in chunks] == [[2, 4], [5]]
    bad = schema_folder.bad_rows(chunks)
    assert [(row.file, row.row) for row in bad] == [("e1.csv", 3), ("e2.csv", 2)]


def test_a_rejected_row_does_not_make_another_a_repeat(tmp_path: Path) -> None:
    """An id that cannot be read is 0 in its column."""
    chunks = schema_folder.edges(tmp_path, UNIQUE, {"e.csv": "s,d\nx,5\n0,5\n"})
    assert [(chunk.src.tolist(), chunk.dst.tolist()) for chunk in chunks] == [([0], [5])]
    assert [row.row for row in schema_folder.bad_rows(chunks)] == [2]


def test_self_loops_in_any_order_are_not_repeated(tmp_path: Path) -> None:
    schema = UNIQUE.replace("unique", "unique, self_loops: true")
    chunks = schema_folder.edges(tmp_path, schema, {"e.csv": "s,d\n8,8\n1,1\n5,5\n"})
    assert [chunk.src.tolist() for chunk in chunks] == [[8, 1, 5], [0, 2, 3, 4, 6, 7]]


def test_rejected_sums_are_those_of_their_chunk(tmp_path: Path) -> None:
    schema = UNIQUE.replace("edges: unique", "weight: w, aggregate: sum")
    files = {"e.csv": "s,d,w\n0,1,2\n0,2,3e38\n0,2,3e38\n0,3,4\n"}
    source = open_source(schema_folder.write(tmp_path, schema, files), chunk_rows=1)
    chunks = list(source.edge_chunks())
    assert [chunk.dst.tolist() for chunk in chunks if len(chunk)] == [[1], [3]]
    (bad,) = schema_folder.bad_rows(chunks)
    assert bad.row == 1
    assert "from s 0 to d 2" in bad.reason
