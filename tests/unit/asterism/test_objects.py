"""Tests of objects of other libraries as tables, without a service.

They cover every format of a matrix and all refusals.
"""

from __future__ import annotations

from typing import Any

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from asterism.objects.detection import read_tables
from asterism.objects.read_options import ReadOptions
from asterism_proto.errors import InvalidRequest, NotFound


def edges_of(graph: Any) -> list[tuple[int, int, float]]:
    (table,) = read_tables(graph, ReadOptions()).edges
    assert table.weights is not None
    src, dst = table.ends(0, len(table))
    return list(
        zip(
            src.tolist(),
            dst.tolist(),
            np.asarray(table.weights.slice(0, len(table))).tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["matrix", "array"])
def test_a_sparse_matrix_of_any_format_has_an_edge_per_entry(form: str, kind: str) -> None:
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((40, 40)) < 0.1, rng.integers(1, 9, (40, 40)) / 2, 0.0)
    matrix = getattr(sp, f"{form}_{kind}")(dense)
    before = matrix.copy()
    assert edges_of(matrix) == [
        (i, j, dense[i, j]) for i, j in zip(*(end.tolist() for end in dense.nonzero()), strict=True)
    ]
    assert len(edges_of(matrix)) > 100
    assert (before != matrix).nnz == 0
    assert before.nnz == matrix.nnz, "the caller's matrix is as it was"


def assert_refused(graph: Any, message: str, **options: Any) -> None:
    with pytest.raises((InvalidRequest, NotFound), match=message):
        read_tables(graph, ReadOptions(**options))


def graph_with_attribute(*values: Any) -> nx.Graph:
    graph = nx.empty_graph(len(values))
    nx.set_node_attributes(graph, dict(enumerate(values)), "x")
    return graph


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            ([1, 2], [3]),
            (
                r"attribute 'x': expected rows of one shape, found row 0 of shape \[2\] and row 1 "
                r"of shape \[1\]; pad the rows"
            ),
        ),
        (([[1], [2, 3]], [3]), r"attribute 'x': expected rows of one shape"),
        ((1, object()), r"attribute 'x', row 1, value <object .*: expected values of one type"),
        ((1, "a"), r"attribute 'x', row 1, value 'a': .* found int, str"),
        (({"a": 1}, {"a": 2}), r"attribute 'x', row 0, value .* found dict"),
        (
            (1, None, None),
            (
                r"attribute 'x', row 1: expected a value, found a missing one \(1 more\); pass a "
                r"replacement with `fill`"
            ),
        ),
        ((1 + 2j, 1), r"attribute 'x', row 0, value .* found complex"),
        ((1 << 70, 1), r"attribute 'x': expected integers of 64 bits"),
        (
            (np.datetime64("2020-01-01"), np.datetime64("2020-01-02")),
            r"attribute 'x', row 0, value .* found datetime64",
        ),
    ],
)
def test_invalid_attributes_are_refused_with_row_and_value(
    values: tuple[Any, ...], said: str
) -> None:
    assert_refused(graph_with_attribute(*values), f"type 'node': {said}")


@pytest.mark.parametrize(
    ("weight", "shown"),
    [(float("nan"), "nan"), (-2.0, "-2.0"), (float("inf"), "inf"), (1e300, "1e\\+300")],
)
def test_invalid_weights_are_refused_with_their_row(weight: float, shown: str) -> None:
    ring = nx.cycle_graph(9)
    nx.set_edge_attributes(ring, 1.0, "weight")
    ring.edges[3, 4]["weight"] = weight
    assert_refused(
        ring, rf"edge type 'node:edge:node', row 4, weight {shown}"
    )  # (0, 1), (0, 8), (1, 2), (2, 3), (3, 4)
    matrix = sp.coo_array(([1.0, weight], ([0, 1], [1, 0])), shape=(2, 2))
    assert_refused(matrix, rf", row 1, weight {shown}")
    frame = pd.DataFrame({"src": [0, 1], "dst": [1, 0], "w": [2.0, weight]})
    assert_refused(frame, rf", row 1, weight {shown}", weights="w")
    graph = igraph.Graph(n=2, edges=[(0, 1), (1, 0)])
    graph.vs["weight"] = [1.0, weight]
    assert_refused(graph, rf"node type 'node', row 1, weight {shown}")


def test_frames_are_refused_with_column_row_and_value() -> None:
    edges = pd.DataFrame({"src": [0, 1, 2], "dst": [1, 2, 5]})
    assert_refused(
        edges,
        r"column 'dst', row 2, value 5: expected a node of the frame of 'node'",
        nodes=pd.DataFrame({"id": [0, 1, 2]}),
    )
    assert_refused(
        edges,
        r"expected a column 'from', it has src, dst; name the columns of the ends",
        ends=("from", "to"),
    )
    assert_refused(
        edges,
        r"row 1, id 0: expected a unique id, found a repeated one",
        nodes=pd.DataFrame({"id": [0, 0, 1, 2, 5]}),
    )
    assert_refused(
        pd.DataFrame({"src": [0, -1], "dst": [0, 0]}), r"node -1: expected an id from 0 to"
    )
    assert_refused(
        pd.DataFrame({"src": ["a", None], "dst": ["a", "b"]}),
        r"column 'src', row 1, value (None|nan): expected an id, found a missing value",
    )
    complex_numbers = edges.assign(z=np.ones(3, np.complex128))
    assert_refused(
        complex_numbers,
        r"attribute 'z' of dtype complex128.* convert it, or leave it out with `only`",
    )
    assert read_tables(complex_numbers, ReadOptions(only=frozenset())).edges[0].features == {}


def test_object_that_is_no_graph_is_refused_with_a_list() -> None:
    assert_refused(
        [(0, 1)],
        (
            r"graph of type builtins.list: expected a PyG Data or HeteroData, a DGLGraph, a "
            r"graph of NetworkX or igraph, a SciPy"
        ),
    )
    assert_refused({"a:b:c": 3}, r"graph: expected .* found a mapping to int")
    assert_refused(
        {"a:b": sp.eye_array(3)}, r"edge type 'a:b': expected \('user', 'buys', 'item'\)"
    )
    assert_refused(sp.eye_array(3, 4), r"matrix of shape \[3, 4\]: expected a square one")
    assert_refused(
        {"a:b:a": sp.eye_array(3), "a:c:a": sp.eye_array(4)},
        r"matrix of 'a:c:a' with 4 nodes of type 'a': expected 3, as in the matrix of 'a:b:a'",
    )
    assert_refused(
        nx.path_graph(3),
        r"nodes: expected None, because a Graph has its own nodes",
        nodes=pd.DataFrame(),
    )


def test_options_for_missing_names_are_refused() -> None:
    club = nx.karate_club_graph()
    for option, value in (
        ("rename", {"clob": "c"}),
        ("fill", {"clob": 1}),
        ("only", frozenset({"clob"})),
    ):
        assert_refused(
            club,
            rf"{option} with 'clob': expected an attribute of the object, which has club, weight",
            **{option: value},
        )
    assert_refused(
        club,
        r"weights='cost': expected an attribute of type 'node:edge:node', which has weight",
        weights="cost",
    )
    assert_refused(
        club,
        r"weights with 'nod': expected a type of the object, which has node, node:edge:node",
        weights={"nod": "club"},
    )
    assert_refused(
        nx.relabel_nodes(club, {0: -1}), r"node -1: expected an id from 0 to 2\^63 - 1; relabel"
    )
    named = graph_with_attribute(1, 2)
    nx.set_node_attributes(named, 3, "id")
    assert_refused(
        named,
        (r"feature 'id': .*; rename it with rename=\{'id': \.\.\.\}"),
    )
    assert set(read_tables(named, ReadOptions(rename={"id": "number"})).nodes[0].features) == {
        "x",
        "number",
    }


def test_mixed_labels_are_numbered_in_the_order_of_the_object() -> None:
    graph = nx.Graph([(5, "five"), ("five", (1, 2))])
    tables = read_tables(graph, ReadOptions())
    assert tables.names["node"].tolist() == [5, "five", (1, 2)]
    src, dst = tables.edges[0].ends(0, 2)
    assert (src.tolist(), dst.tolist()) == ([0, 1], [1, 2])
    assert read_tables(nx.path_graph(4), ReadOptions()).names == {}


def test_floats_are_labels_like_any_other() -> None:
    """As in NetworkX, 1.0 and 1 are one node."""
    tables = read_tables(nx.DiGraph([(0.5, 1.0), (1, 2.5)]), ReadOptions())
    assert tables.names["node"].tolist() == [0.5, 1.0, 2.5]
    src, dst = tables.edges[0].ends(0, 2)
    assert (src.tolist(), dst.tolist()) == ([0, 1], [1, 2])
    whole = read_tables(nx.DiGraph([(0.0, 1.0), (1.0, 2.0)]), ReadOptions())
    assert whole.names["node"].tolist() == [0.0, 1.0, 2.0]
