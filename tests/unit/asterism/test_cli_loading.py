"""Tests of loads that create their space, and of the two kinds of schema files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asterism import ingest
from asterism.cli.load import create_space, drop_space_on_failure
from asterism.cli.schema_difference import schema_differences
from asterism.cli.schema_files import check_source_has_files, read_schema
from asterism_model.schema import Schema
from asterism_proto.errors import AsterismError, Busy, Conflict, InvalidRequest, Unavailable

PLAIN = {"parts": 2, "nodes": {"paper": {"features": {"year": "int64"}}}}
FILES = """\
direction: both
nodes:
  paper: {files: papers.csv, id: id, features: {year: int64}}
edges:
  paper:cites:paper: {files: cites.csv, src: from, dst: to}
"""


class Catalog:
    """A client with spaces in memory."""

    def __init__(self, **schemas: Schema) -> None:
        self.schemas = schemas

    def spaces(self) -> list[Any]:
        return [SimpleNamespace(name=name, schema=schema) for name, schema in self.schemas.items()]

    def create_space(self, name: str, schema: Schema, *, if_not_exists: bool) -> None:
        self.schemas.setdefault(name, schema)

    def drop_space(self, name: str, *, if_exists: bool) -> None:
        del self.schemas[name]


@pytest.fixture
def graph_files(tmp_path: Path) -> Path:
    (tmp_path / "papers.csv").write_text("id,year\n1,1999\n2,2001\n")
    (tmp_path / "cites.csv").write_text("from,to\n1,2\n")
    (tmp_path / "papers.yaml").write_text(FILES)
    return tmp_path / "papers.yaml"


def test_space_create_takes_the_file_of_a_load(graph_files: Path) -> None:
    schema = read_schema(graph_files)
    assert schema == ingest.schema_of(graph_files)
    assert (schema.direction, [t.name for t in schema.edge_types]) == (
        "both",
        ["paper:cites:paper"],
    )


def test_a_load_of_a_schema_alone_names_the_other_command(tmp_path: Path) -> None:
    file = tmp_path / "schema.yaml"
    file.write_text("nodes: {paper: {features: {year: int64}}}\nedges: {'paper:cites:paper': {}}\n")
    assert read_schema(file).node_types[0].name == "paper"
    with pytest.raises(InvalidRequest, match=f"`asterism space create shop {file}` creates"):
        check_source_has_files("shop", file)


def test_graph_files_pass_the_check_of_a_load(graph_files: Path, tmp_path: Path) -> None:
    check_source_has_files("shop", graph_files)
    check_source_has_files("shop", tmp_path)
    (tmp_path / "metadata.json").write_text('{"node_type": ["paper"]}')
    check_source_has_files("shop", tmp_path / "metadata.json")


def test_a_conflict_names_what_differs() -> None:
    wanted = Schema.from_dict(
        {"direction": "both", "nodes": {"paper": {"features": {"year": "int64"}}, "author": {}}}
    )
    assert schema_differences(Schema.from_dict(PLAIN), wanted) == [
        "parts is 2, not 8",
        "direction is out, not both",
        "nodes > author is not in the space",
    ]
    catalog: Any = Catalog(shop=Schema.from_dict(PLAIN))
    with pytest.raises(Conflict, match="direction is out, not both") as raised:
        create_space(catalog, "shop", wanted)
    assert raised.value.message.startswith("space='shop': expected the schema of the file")


def test_create_says_whether_the_space_is_new() -> None:
    catalog: Any = Catalog()
    schema = Schema.from_dict(PLAIN)
    assert create_space(catalog, "shop", schema)
    assert not create_space(catalog, "shop", schema)


@pytest.mark.parametrize("error", [InvalidRequest("row 3"), Conflict("changed"), OSError("gone")])
def test_a_failed_first_load_leaves_no_space(error: Exception) -> None:
    catalog: Any = Catalog()
    created = create_space(catalog, "shop", Schema.from_dict(PLAIN))
    with pytest.raises(type(error)), drop_space_on_failure(catalog, "shop", created=created):
        raise error
    assert catalog.schemas == {}


@pytest.mark.parametrize("error", [Unavailable("away"), Busy("full"), KeyboardInterrupt()])
def test_a_load_that_may_be_resumed_keeps_its_space(error: BaseException) -> None:
    catalog: Any = Catalog()
    created = create_space(catalog, "shop", Schema.from_dict(PLAIN))
    with pytest.raises(type(error)), drop_space_on_failure(catalog, "shop", created=created):
        raise error
    assert list(catalog.schemas) == ["shop"]


def test_a_failed_load_keeps_a_space_that_was_there() -> None:
    catalog: Any = Catalog(shop=Schema.from_dict(PLAIN))
    created = create_space(catalog, "shop", Schema.from_dict(PLAIN))
    with pytest.raises(AsterismError), drop_space_on_failure(catalog, "shop", created=created):
        raise InvalidRequest("row 3")
    assert list(catalog.schemas) == ["shop"]
