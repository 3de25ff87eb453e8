"""Tests of new names for the types of an object."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from asterism.objects.detection import read_tables
from asterism.objects.graph_tables import GraphTables
from asterism.objects.read_options import ReadOptions
from asterism.objects.type_renaming import rename_types
from asterism_proto.errors import InvalidRequest, NotFound

EDGES = np.array([[0, 1], [1, 0]])


def tables() -> GraphTables:
    return read_tables(
        {("Author", "has written", "Paper"): EDGES, ("Paper", "cites", "Paper"): EDGES},
        ReadOptions(),
    )


def renamed(types: dict[Any, Any]) -> tuple[list[str], list[str]]:
    result = rename_types(tables(), types)
    return [table.name for table in result.nodes], [table.name for table in result.edges]


@pytest.mark.parametrize(
    "key", [("Author", "has written", "Paper"), "Author:has written:Paper"], ids=["tuple", "text"]
)
def test_node_types_and_relations_get_new_names(key: Any) -> None:
    assert renamed({"Author": "作者", key: "wrote"}) == (
        ["作者", "Paper"],
        ["作者:wrote:Paper", "Paper:cites:Paper"],
    )


def test_names_may_be_exchanged() -> None:
    key = ("Author", "has written", "Paper")
    assert renamed({"Author": "Paper", "Paper": "Author", key: "by"})[1] == [
        "Paper:by:Author",
        "Author:cites:Author",
    ]


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (
            {},
            "relation 'has written': expected a letter or _, .*; rename it with types={...: ...}",
        ),
        ({"Reader": "r"}, "types with 'Reader': expected a type of the object, which has Author"),
        ({("Paper", "cites", "Author"): "r"}, "expected a type of the object, which has Author"),
        ({"Author": "Paper"}, "types with 'Author': .* two node types would be named 'Paper'"),
        ({"Author": "a b"}, "node type 'a b': expected a letter or _"),
        ({"Author": 3}, r"types\['Author'\]=3: expected a string, the new name"),
    ],
)
def test_unknown_types_and_invalid_names_are_refused(types: dict[Any, Any], message: str) -> None:
    with pytest.raises((InvalidRequest, NotFound), match=message):
        renamed(types)
