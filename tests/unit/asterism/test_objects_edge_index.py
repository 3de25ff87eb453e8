"""Tests of arrays of edges of shape (2, E) as graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from asterism.objects.detection import read_tables
from asterism.objects.read_options import ReadOptions
from asterism_proto.errors import InvalidRequest


def read(graph: Any, **options: Any) -> tuple[dict[str, int], dict[str, list[list[int]]]]:
    tables = read_tables(graph, ReadOptions(**options))
    return (
        {table.name: table.count for table in tables.nodes},
        {table.name: [end.tolist() for end in table.ends(0, len(table))] for table in tables.edges},
    )


def test_array_of_edges_has_sources_and_then_destinations() -> None:
    index = np.array([[0, 1, 2], [1, 2, 5]], np.int32)
    edges = {"node:edge:node": [[0, 1, 2], [1, 2, 5]]}
    assert read(index) == ({"node": 6}, edges)
    assert read(index, nodes=9) == ({"node": 9}, edges)
    assert read(np.asfortranarray(index)) == ({"node": 6}, edges)


def test_array_of_two_edges_has_an_edge_per_column() -> None:
    assert read(np.array([[0, 5], [1, 6]])) == ({"node": 7}, {"node:edge:node": [[0, 5], [1, 6]]})


def test_arrays_by_edge_type_join_types_of_several_sizes() -> None:
    counts, edges = read(
        {("u", "buys", "i"): np.array([[0, 3], [8, 8]]), "u:knows:u": np.zeros((2, 0), np.int64)},
        nodes={"i": 20},
    )
    assert counts == {"i": 20, "u": 4}
    assert edges == {"u:buys:i": [[0, 3], [8, 8]], "u:knows:u": [[], []]}


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (np.zeros((3, 2), int), {}, r"shape \[3, 2\]: expected \[2, E\], .*; transpose it with .T"),
        (np.zeros((3, 3), int), {}, r"shape \[3, 3\]: expected \[2, E\], sources and then"),
        (np.zeros(4, int), {}, r"shape \[4\]: expected \[2, E\]"),
        (np.zeros((2, 3)), {}, "array of float64: expected integers, the ids of nodes"),
        (np.zeros((2, 3), bool), {}, "array of bool: expected integers"),
        (np.full((2, 3), -1), {}, "-1"),
        (np.zeros((2, 3), int), {"nodes": 0}, "source of row 0|row 0"),
        (np.zeros((2, 3), int), {"nodes": "3"}, "nodes.'node'. of type str: expected the number"),
        (np.array([[1], [{}]], object), {}, "array of object: expected integers"),
    ],
)
def test_other_arrays_are_refused(graph: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        read(graph, **options)
