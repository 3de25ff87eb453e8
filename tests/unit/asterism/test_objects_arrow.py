"""Tests of Arrow tables, frames that export them, and columns of times and decimals."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from asterism.objects.columns import make_column
from asterism.objects.detection import read_tables
from asterism.objects.graph_tables import GraphTables
from asterism.objects.read_options import ReadOptions
from asterism_proto.errors import InvalidRequest, NotFound

SECOND = 1_704_164_645
MOMENT = datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
BERLIN = datetime.timezone(datetime.timedelta(hours=1))


class Frame:
    """Frame of a library that exports Arrow's C stream, such as a frame of Polars."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def sales(**columns: Any) -> pa.Table:
    return pa.table(
        {
            "src": pa.chunked_array([pa.array(["ann", "bob"]), pa.array(["ann"])]),
            "dst": pa.array([7, 7, 9], pa.uint8()),
            **columns,
        }
    )


def read(graph: Any, **options: Any) -> GraphTables:
    return read_tables(graph, ReadOptions(**options))


def feature(column: Any, **options: Any) -> np.ndarray[Any, Any]:
    table = read({"u:buys:i": sales(x=column)}, **options).edges[0]
    value = table.features["x"].slice(0, 3)
    assert isinstance(value, np.ndarray)
    return value


def assert_refused(graph: Any, message: str, **options: Any) -> None:
    with pytest.raises((InvalidRequest, NotFound), match=message):
        read(graph, **options)


@pytest.mark.parametrize("wrap", [lambda table: table, Frame], ids=["table", "other frame"])
def test_tables_of_edges_and_nodes_are_read_with_labels(wrap: Any) -> None:
    users = pa.table({"id": pa.array(["bob", "ann"], pa.string_view()), "age": [40, 30]})
    items = pa.table({"id": [9, 7], "name": pa.array(["x", "yz"]).dictionary_encode()})
    tables = read(
        {("u", "buys", "i"): wrap(sales(weight=pa.array([1.0, 2.5, 0.5])))},
        nodes={"u": wrap(users), "i": wrap(items)},
    )
    (edges,) = tables.edges
    assert [end.tolist() for end in edges.ends(0, 3)] == [[1, 0, 1], [7, 7, 9]]
    assert edges.weights is not None
    assert np.asarray(edges.weights.slice(0, 3)).tolist() == [1, 2.5, 0.5]
    user, item = tables.nodes
    assert tables.names["u"].tolist() == ["bob", "ann"]
    assert "i" not in tables.names, "integers are ids"
    assert item.ids is not None
    assert item.ids.tolist() == [9, 7]
    assert np.asarray(user.features["age"].slice(0, 2)).tolist() == [40, 30]
    indptr, data = item.features["name"].slice(0, 2)
    assert (indptr.tolist(), bytes(data)) == ([0, 1, 3], b"xyz")


def test_edge_tables_alone_define_their_nodes() -> None:
    tables = read({"u:buys:i": sales()})
    assert tables.names["u"].tolist() == ["ann", "bob"]
    assert [None if t.ids is None else t.ids.tolist() for t in tables.nodes] == [None, [7, 9]]


def test_node_table_without_ids_is_numbered_by_row() -> None:
    nodes = pa.table({"x": [1.5, 2.5, 3.5]})
    tables = read(pa.table({"src": [0, 1], "dst": [1, 2]}), nodes=nodes)
    assert tables.nodes[0].ids is not None
    assert tables.nodes[0].ids.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("column", "dtype", "values"),
    [
        (pa.array(np.array([1, 2, 3], np.float16)), "float16", [1, 2, 3]),
        (pa.array([True, False, True]), "bool", [True, False, True]),
        (pa.array([Decimal("0.1"), Decimal(2), Decimal(3)]), "float64", [0.1, 2, 3]),
        (pa.array([1, 2, 3], pa.decimal128(5, 0)), "int64", [1, 2, 3]),
        (pa.array([1, 2, 3], pa.timestamp("ms", "Asia/Tokyo")), "int64", [1000, 2000, 3000]),
        (pa.array([[1, 2]] * 3), "int64", [[1, 2]] * 3),
        (pa.array([[1, 2]] * 3, pa.list_(pa.int8(), 2)), "int8", [[1, 2]] * 3),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_columns_become_features_by_their_arrow_type(
    column: pa.Array, dtype: str, values: list[Any]
) -> None:
    value = feature(column)
    assert (value.dtype.name, value.tolist()) == (dtype, values)


def test_missing_values_of_tables_need_fill() -> None:
    column = pa.array([5, None, 6])
    assert feature(column, fill={"x": -1}).tolist() == [5, -1, 6]
    table = {"u:buys:i": sales(x=column)}
    assert_refused(table, r"attribute 'x', row 1: expected a value, found a missing one \(0 more\)")


def test_fill_does_not_round_other_values() -> None:
    column = pa.array([2**64 - 1, None, 1], pa.uint64())
    assert feature(column, fill={"x": 7}).tolist() == [2**64 - 1, 7, 1]
    graph = {"u:buys:i": sales(x=column)}
    assert_refused(graph, "fill=-1: expected a value of uint64, because .*", fill={"x": -1})
    assert_refused(graph, "fill='a': expected a number", fill={"x": "a"})
    assert feature(pa.array([1, None, 2]), fill={"x": 0.5}).tolist() == [1, 0.5, 2]
    assert np.isnan(feature(pa.array([1, None, 2]), fill={"x": np.nan})[1])
    texts = {"u:buys:i": sales(x=pa.array(["a", None, "b"]))}
    assert_refused(texts, "fill=5: expected a string", fill={"x": 5})


def test_record_batches_are_tables_and_other_arrow_data_are_not() -> None:
    batch = pa.record_batch({"src": [0, 1], "dst": [1, 0]})
    assert read(batch).edges[0].ends(0, 2)[0].tolist() == [0, 1]
    assert_refused(pa.chunked_array([[1, 2]]), "expected a table with named columns")
    twice = pa.table([[0], [1], [2], [3]], names=["src", "dst", "x", "x"])
    assert_refused(twice, "column 'x': expected different names")


def test_table_without_rows_has_no_edges() -> None:
    users = pa.table({"id": ["ann"]})
    empty = pa.table({"src": pa.array([], pa.int64()), "dst": pa.array([], pa.int64())})
    assert [len(table) for table in read(empty, nodes=users).edges] == [0]


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (sales(x=pa.array([{"a": 1}] * 3)), "'x' of struct<a: int64>: .*nested values"),
        (sales(x=pa.array([[1], [2, 3], [4]])), "lists of one length, row 0 has 1 values, row 1"),
        (
            sales(x=pa.array([1, 1001, 2], pa.timestamp("ns"))),
            r"row 0, value 1970-01-01 00:00:00.000000001: expected an int64 in the unit 'us'; "
            "choose another with `time_unit`",
        ),
        (pa.table({"src": [1], "dst": [None]}), "column 'dst', row 0: expected an id, found a mis"),
        (pa.table({"src": [1], "dst": [-1]}), "node -1: expected an id from 0"),
        (pa.table({"src": [1], "dst": [1.5]}), "column 'dst' of double: expected integers or str"),
        (pa.table({"src": [1], "dst": ["a"]}), "expected integers or strings as ids, found both"),
        (pa.table({"from": [1], "dst": [1]}), "expected a column 'src', it has from, dst"),
        (
            sales(weight=pa.array([1, 2, 3], pa.timestamp("us"))),
            "weight 'weight': expected numbers, found times",
        ),
    ],
)
def test_tables_without_a_meaning_are_refused(graph: pa.Table, message: str) -> None:
    if "dst" in graph.column_names and graph.column("dst").type == pa.uint8():
        assert_refused({"u:buys:i": graph}, message)
    else:
        assert_refused(graph, message)


def test_ends_and_ids_of_tables_are_checked() -> None:
    nodes = {"u": pa.table({"id": ["ann"]})}
    message = r"column 'src', row 1, value 'bob': expected a node of the table of 'u' \(0 more\)"
    assert_refused({"u:buys:i": sales()}, message, nodes=nodes)
    repeated = {"u": pa.table({"id": ["ann", "bob", "ann"]})}
    assert_refused({"u:buys:i": sales()}, "id 'ann': expected a unique id", nodes=repeated)


TIMES = [
    pd.Series([MOMENT.replace(tzinfo=None)] * 2),
    pd.Series([MOMENT.astimezone(BERLIN)] * 2),
    pd.Series([MOMENT] * 2, dtype="datetime64[ns, UTC]"),
    pd.Series([MOMENT] * 2, dtype=pd.ArrowDtype(pa.timestamp("ms", "UTC"))),
    pd.Series([MOMENT, MOMENT], dtype=object),
]


@pytest.mark.parametrize("column", TIMES, ids=lambda column: str(column.dtype))
@pytest.mark.parametrize(("unit", "per_second"), [("us", 10**6), ("s", 1)])
def test_times_of_pandas_become_integers(column: Any, unit: str, per_second: int) -> None:
    frame = pd.DataFrame({"src": [0, 1], "dst": [1, 0], "at": column})
    (edges,) = read(frame, time_unit=unit).edges
    assert np.asarray(edges.features["at"].slice(0, 2)).tolist() == [SECOND * per_second] * 2


def test_missing_times_of_pandas_use_fill() -> None:
    frame = pd.DataFrame({"src": [0], "dst": [1], "at": pd.to_datetime([None])})
    (edges,) = read(frame, fill={"at": -1}).edges
    assert np.asarray(edges.features["at"].slice(0, 1)).tolist() == [-1]
    assert_refused(frame, "attribute 'at', row 0: expected a value, found a missing one")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([MOMENT, MOMENT.replace(tzinfo=None)], [SECOND * 10**6] * 2),
        ([MOMENT.astimezone(BERLIN)], [SECOND * 10**6]),
        (
            [datetime.date(1970, 1, 2), datetime.date(1969, 12, 31)],
            [86_400_000_000, -86_400_000_000],
        ),
        ([datetime.timedelta(milliseconds=-1)], [-1000]),
        ([pd.Timestamp(SECOND * 10**9 + 1000)], [SECOND * 10**6 + 1]),
        ([Decimal("0.1"), Decimal(7)], [0.1, 7.0]),
        (np.array(["2024-01-02", "NaT"], "datetime64[D]"), [19_724 * 86_400 * 10**6, -1]),
        (np.array([3], "timedelta64[h]"), [3 * 3600 * 10**6]),
    ],
    ids=str,
)
def test_python_and_numpy_times_become_integers(values: Any, expected: list[float]) -> None:
    column = make_column("x", values, len(expected), missing=-1, unit="us")
    assert np.asarray(column.slice(0, len(expected))).tolist() == expected


@pytest.mark.parametrize(
    "values",
    [[pd.Timestamp(1)], [datetime.datetime(1, 1, 1)], np.array([1], "datetime64[ns]")],
    ids=["timestamp", "year 1", "numpy"],
)
def test_times_that_do_not_fit_the_unit_are_refused(values: Any) -> None:
    unit = "ns" if isinstance(values[0], datetime.datetime) and values[0].year == 1 else "us"
    with pytest.raises(
        InvalidRequest, match=rf"x, row 0, value .* expected an int64 in the unit {unit!r}"
    ):
        make_column("x", values, 1, unit=unit)


def test_months_are_no_unit_of_time() -> None:
    with pytest.raises(InvalidRequest, match=r"x: datetime64.M.: expected a unit from weeks to"):
        make_column("x", np.array(["2024-01"], "datetime64[M]"), 1, unit="us")


def test_dates_of_networkx_become_integers() -> None:
    graph = nx.Graph()
    graph.add_edge(0, 1, day=datetime.date(1970, 1, 3))
    (edges,) = read(graph, time_unit="d").edges
    assert np.asarray(edges.features["day"].slice(0, 1)).tolist() == [2]
