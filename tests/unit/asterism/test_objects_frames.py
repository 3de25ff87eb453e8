"""Tests of pandas columns of any dtype, and of objects with numbers at the ends of dtypes."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

from asterism.objects.detection import read_tables
from asterism.objects.graph_tables import EdgeTable, GraphTables
from asterism.objects.read_options import ReadOptions
from asterism_proto.errors import InvalidRequest


def read(graph: Any, **options: Any) -> GraphTables:
    return read_tables(graph, ReadOptions(**options))


def ends(tables: GraphTables) -> list[list[int]]:
    (table,) = tables.edges
    return [end.tolist() for end in table.ends(0, len(table))]


def features(graph: Any, **options: Any) -> dict[str, tuple[str, list[Any]]]:
    (table,) = read(graph, **options).edges
    return {
        name: (column.dtype, np.asarray(column.slice(0, len(table))).tolist())
        for name, column in table.features.items()
    }


INTEGERS = [
    np.array([5, 7, 9], object),
    np.array([5.0, 7.0, 9.0]),
    np.array([np.int8(5), 7, 9.0], object),
    np.array([5, 7, 9], np.uint64),
    np.array([5, 7, 9], np.int16),
    pd.array([5, 7, 9], "Int64"),
    pd.array([5, 7, 9], "UInt8"),
    pd.array([5, 7, 9], "int32[pyarrow]"),
    pd.array([5, 7, 9], "Float64"),
    pd.Categorical([5, 7, 9]),
]
"""The same ids in columns of several dtypes, as merges and concatenations leave them."""


@pytest.mark.parametrize("column", INTEGERS, ids=lambda column: str(column.dtype))
def test_integers_of_any_dtype_are_ids(column: Any) -> None:
    frame = pd.DataFrame({"src": column, "dst": [9, 5, 7]})
    tables = read(frame)
    assert ends(tables) == [[5, 7, 9], [9, 5, 7]]
    assert tables.names == {}
    (nodes,) = tables.nodes
    assert nodes.ids is not None
    assert nodes.ids.tolist() == [5, 7, 9]
    with_nodes = read(frame, nodes=pd.DataFrame({"id": column, "x": [1, 2, 3]}))
    assert ends(with_nodes) == [[5, 7, 9], [9, 5, 7]]
    indexed = pd.DataFrame({"x": [1, 2, 3]}, index=pd.Index(column))
    assert ends(read(frame, nodes=indexed)) == [[5, 7, 9], [9, 5, 7]]


def test_large_ids_keep_every_digit() -> None:
    large = (1 << 62) + 1
    frame = pd.DataFrame({"src": np.array([large], np.uint64), "dst": np.array([5], np.int64)})
    assert ends(read(frame)) == [[large], [5]]


def test_other_labels_are_numbered_as_before() -> None:
    for column in (["a", "b"], [1.5, 2.0], [True, False], [1, "a"], [(1, 2), (3, 4)]):
        tables = read(pd.DataFrame({"src": column, "dst": column}))
        assert ends(tables) == [[0, 1], [0, 1]]
        assert tables.names["node"].tolist() == column


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (np.array([1 << 63], np.uint64), "node 9223372036854775808: expected an id from 0"),
        ([1 << 70], f"node {1 << 70}: expected an id from 0"),
        ([-1.0], "node -1: expected an id from 0"),
        ([2.0**53], r"expected integers, found floats of 2\^53 or more"),
        ([[1, 2]], "expected integers, strings or tuples as ids, found list"),
        (pd.array([None], "Int64"), "row 0, value .*: expected an id, found a missing value"),
    ],
)
def test_labels_that_are_no_ids_are_refused(column: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        read(pd.DataFrame({"src": column, "dst": [5]}))
    with pytest.raises(InvalidRequest):
        read(pd.DataFrame({"src": [5], "dst": [5]}), nodes=pd.DataFrame({"id": column}))


DTYPES = {
    "Int8": "int8",
    "Int16": "int16",
    "Int32": "int32",
    "Int64": "int64",
    "UInt8": "uint8",
    "UInt64": "uint64",
    "Float32": "float32",
    "Float64": "float64",
    "boolean": "bool",
    "int8[pyarrow]": "int8",
    "uint16[pyarrow]": "uint16",
    "halffloat[pyarrow]": "float16",
    "float[pyarrow]": "float32",
    "bool[pyarrow]": "bool",
    "int32": "int32",
    "float16": "float16",
    "Sparse[int16, 0]": "int16",
}
"""Dtypes of columns, and those of the features."""


@pytest.mark.parametrize(("dtype", "kept"), list(DTYPES.items()))
def test_numbers_of_any_dtype_keep_their_width(dtype: str, kept: str) -> None:
    frame = pd.DataFrame({"src": [0, 1], "dst": [1, 0], "x": pd.array([1, 0], dtype)})
    assert features(frame) == {"x": (kept, [1, 0])}


@pytest.mark.parametrize(
    "dtype", ["Int8", "UInt64", "Float32", "boolean", "int8[pyarrow]", "float[pyarrow]"]
)
def test_missing_values_take_the_fill_in_their_dtype(dtype: str) -> None:
    frame = pd.DataFrame({"src": [0, 1], "dst": [1, 0], "x": pd.array([1, None], dtype)})
    assert features(frame, fill={"x": 0}) == {"x": (DTYPES[dtype], [1, 0])}
    with pytest.raises(InvalidRequest, match="attribute 'x', row 1: expected a value, found a"):
        features(frame)
    for odd in ("a", 1e300, 10**400, None):
        with pytest.raises(InvalidRequest, match="attribute 'x'"):
            features(frame, fill={"x": odd})


def test_categories_of_numbers_keep_their_width() -> None:
    column = pd.Series([7, None, 9], dtype="Int8").astype("category")
    frame = pd.DataFrame({"src": [0, 1, 2], "dst": [1, 0, 0], "x": column})
    assert features(frame, fill={"x": -1}) == {"x": ("int8", [7, -1, 9])}
    words = pd.DataFrame({"src": [0, 1], "dst": [1, 0], "x": pd.Categorical(["a", "b"])})
    assert read(words).edges[0].features["x"].dtype == "bytes"


def test_nan_stays_without_a_fill_and_takes_one() -> None:
    frame = pd.DataFrame({"src": [0, 1], "dst": [1, 0], "x": np.array([0.5, np.nan], "f4")})
    assert np.isnan(features(frame)["x"][1][1])
    assert features(frame, fill={"x": 3}) == {"x": ("float32", [0.5, 3.0])}
    weighted = frame.rename(columns={"x": "weight"})
    with pytest.raises(InvalidRequest, match="row 1, weight nan"):
        read(weighted)


def test_missing_weights_of_nullable_columns_are_one() -> None:
    frame = pd.DataFrame({"src": [0, 1], "dst": [1, 0], "weight": pd.array([5, None], "Int16")})
    (table,) = read(frame).edges
    assert table.weights is not None
    assert np.asarray(table.weights.slice(0, 2)).tolist() == [5, 1]


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.list_(pa.int8(), 2)])
def test_arrow_lists_of_one_length_are_vectors(kind: pa.DataType) -> None:
    column = pd.array([[1, 2], [3, 4]], pd.ArrowDtype(kind))
    frame = pd.DataFrame({"src": [0, 1], "dst": [1, 0], "x": column})
    assert features(frame) == {"x": ("int8", [[1, 2], [3, 4]])}


def test_columns_of_one_name_are_refused() -> None:
    frame = pd.DataFrame([[0, 1, 2, 3]], columns=["src", "dst", "x", "x"])
    with pytest.raises(InvalidRequest, match="column 'x': expected different names"):
        read(frame)
    ends_twice = pd.DataFrame([[0, 1, 2]], columns=["src", "dst", "src"])
    with pytest.raises(InvalidRequest, match="column 'src': expected different names"):
        read(ends_twice)


@pytest.mark.parametrize("form", ["coo", "csr", "csc", "bsr"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "uint64", "float32"])
def test_sums_of_duplicate_entries_do_not_wrap(form: str, dtype: str) -> None:
    parts = np.array([100] * 3, dtype)
    matrix = sp.coo_array((parts, ([0, 0, 0], [1, 1, 1])), shape=(2, 2))
    if form != "coo":
        pointers = {"csr": [0, 3, 3], "csc": [0, 0, 3]}.get(form)
        indices = [1, 1, 1] if form == "csr" else [0, 0, 0]
        matrix = (
            sp.bsr_array((parts.reshape(3, 1, 1), [1, 1, 1], [0, 3, 3]), shape=(2, 2))
            if form == "bsr"
            else getattr(sp, f"{form}_array")((parts, indices, pointers), shape=(2, 2))
        )
    (table,) = read(matrix).edges
    assert ends(read(matrix)) == [[0], [1]]
    assert table.weights is not None
    assert np.asarray(table.weights.slice(0, 1)).tolist() == [300]


def test_large_sums_of_integers_stay_positive() -> None:
    matrix = sp.coo_array((np.array([1 << 62] * 4), ([0] * 4, [1] * 4)), shape=(2, 2))
    (table,) = read(matrix).edges
    assert table.weights is not None
    assert np.asarray(table.weights.slice(0, 1)).tolist() == [2.0**64]


def attribute(*values: Any) -> nx.Graph:
    graph = nx.empty_graph(len(values))
    nx.set_node_attributes(graph, dict(enumerate(values)), "x")
    return graph


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((1 << 63, -1), "expected integers of 64 bits, found 9223372036854775808 in row 0"),
        ((0.5, 10**400), "expected integers of 64 bits"),
        (("a", "\ud800"), "row 1, value .*: expected text in Unicode"),
    ],
)
def test_values_that_no_dtype_holds_are_refused(values: tuple[Any, ...], said: str) -> None:
    with pytest.raises(InvalidRequest, match=f"attribute 'x'.*{said}"):
        read(attribute(*values))


def test_unsigned_integers_keep_every_digit() -> None:
    (nodes,) = read(attribute((1 << 64) - 1, 1)).nodes
    assert nodes.features["x"].dtype == "uint64"


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (np.array([0.0, 1.5]), "sources of float64: expected integers"),
        (np.array([True, False]), "sources of bool: expected integers"),
        (np.array([1, 1 << 63], np.uint64), "row 1, source 9223372036854775808: expected an id"),
    ],
)
def test_ends_that_are_no_ids_are_refused(index: Any, said: str) -> None:
    table = EdgeTable(triple=("a", "e", "a"), src=index, dst=np.array([0, 1]))
    with pytest.raises(InvalidRequest, match=said):
        GraphTables(source_name="arrays", nodes=(), edges=(table,)).check()
