"""Tests of the notes that a load gives about a new space."""

from __future__ import annotations

from pathlib import Path

import pytest

from asterism.formats.tabular_source import TabularSource
from asterism.ingest.bulk_load import _space_notes
from asterism.records.catalog import SpaceInfo

SPEC = """
nodes: {user: {count: 3}}
edges:
  user:follows:user:
    files: edges.csv
    src: a
    dst: b
    symmetry: true
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "edges.csv").write_text("a,b\n0,1\n")
    return tmp_path


def notes(folder: Path, head: str = "", *, version: int = 0) -> tuple[str, ...]:
    path = folder / "graph.yaml"
    path.write_text(head + SPEC)
    source = TabularSource(path)
    info = SpaceInfo(
        name="g", space_id=1, schema=source.schema, version=version, created_ms=0, hosts=()
    )
    return _space_notes(info, source)


def test_a_new_space_without_in_edges_gets_a_note(folder: Path) -> None:
    (note,) = notes(folder)
    assert note.startswith("space 'g' keeps edges at their sources only (direction: out)")
    assert "even with `symmetry`" in note
    assert "write direction: both" in note


@pytest.mark.parametrize(
    ("head", "version"), [("direction: both\n", 0), ("direction: out\n", 0), ("", 3)]
)
def test_a_declared_direction_or_a_built_space_gets_none(
    folder: Path, head: str, version: int
) -> None:
    assert notes(folder, head, version=version) == ()
