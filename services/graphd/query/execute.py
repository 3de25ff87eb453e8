"""Execution of sampling and read statements as calls of a graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asterism.graph import Graph
from asterism_proto.errors import AsterismError
from graphd.query import projection
from graphd.query.ast import DrawStatement, Limit, OrderBy, RowCount
from graphd.query.errors import located_error
from graphd.query.feature_reader import FeatureReader
from graphd.query.parameters import ParameterBindings
from graphd.query.resolve import ResolvedDraw, resolve_draw
from graphd.query.statement_calls import CALL_BY_KIND
from graphd.query.table import ResultTable, array_column, table_from_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementResult:
    """Result of a statement."""

    table: ResultTable
    kind: str
    version: int = 0
    seed: int | None = None
    token: str = ""
    plan: str = ""


def execute_draw(
    draw: DrawStatement,
    graph: Graph,
    bindings: ParameterBindings,
    *,
    seed: int | None,
    version: int | None,
) -> StatementResult:
    """Return the result of a sampling or read statement.

    Parameters
    ----------
    draw : DrawStatement
    graph : Graph
        Graph over this graphd's own handlers.
    bindings : ParameterBindings
    seed, version : int, optional
        Used if the statement names none.

    Raises
    ------
    InvalidRequest, NotFound
        With the position in the statement if its text is the cause.
    """
    request = resolve_draw(draw, graph, bindings, seed=seed, version=version)
    try:
        rows, sample = CALL_BY_KIND[draw.kind](request, graph)
    except AsterismError as error:
        raise _in_statement(error, request) from error
    features = FeatureReader(
        graph=graph,
        version=rows.version,
        items=request.items,
        possible_node_types=request.node_types,
        possible_edge_types=request.edge_types,
    )
    table = projection.project_table(rows, features, bindings)
    if draw.options.unlike:
        table = table.distinct()
    steps: tuple[OrderBy | Limit | RowCount, ...] = draw.options.shape
    if draw.options.counted is not None:
        steps = (draw.options.counted, *steps)
    for step in steps:
        table = apply_step(table, step, bindings)
    return StatementResult(
        table=table,
        kind=draw.kind,
        version=rows.version,
        seed=getattr(sample, "seed", None),
        token=getattr(sample, "token", ""),
    )


def apply_step(
    table: ResultTable, step: OrderBy | Limit | RowCount, bindings: ParameterBindings
) -> ResultTable:
    """Return a table in another order, some of its rows, or their number."""
    if isinstance(step, RowCount):
        return table_from_columns([array_column(step.title, np.array([table.rows], np.int64))])
    if isinstance(step, Limit):
        count, offset = bindings.limit(step)
        return table.take(slice(offset, offset + count))
    return table.sort([(name.text, descending) for name, descending in step.keys])


def _in_statement(error: AsterismError, request: ResolvedDraw) -> AsterismError:
    """Return an error of a call, with its position in the statement if it has one."""
    if error.place is None or "\n" in error.message or not request.draw.options.where:
        return error
    description = error.message.rpartition(f"character {error.place.column}: ")[2]
    filter_text = next(
        (
            candidate
            for candidate in request.filters.values()
            if repr(candidate.text) in error.message
        ),
        request.filters[request.directions[0]],
    )
    return located_error(
        type(error),
        request.bindings.text,
        filter_text.statement_position(error.place.column - 1),
        description,
        error.place.expected,
    )
