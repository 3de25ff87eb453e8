"""Statements over HTTP: ``POST /query``."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Body
from numpy.typing import NDArray
from pydantic import Field

from asterism.calls.query import bind_parameter
from asterism.records.query_result import QueryResult, Value, decode_result
from asterism_daemonkit.http.models import HttpModel, refusals
from asterism_daemonkit.rpc.call_context import CallContext, current_principal
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.http.json_values import plain_values
from graphd.http.timeouts import MAX_TIMEOUT_S
from graphd.query.lark_parser import MAX_LENGTH
from graphd.query.service import QueryService

MAX_ROWS = 100_000
"""Maximum rows of a table over HTTP. Larger tables go over gRPC, as arrays."""


class StatementQuery(HttpModel):
    """Statements to run."""

    statement: str = Field(
        max_length=MAX_LENGTH,
        examples=["SAMPLE 5 VERTICES ON item WHERE price > $least YIELD id, price"],
    )
    """One statement, or several separated by ;. The reply has the table of the last one."""
    parameters: dict[str, Any] = Field(default_factory=dict, examples=[{"least": 3}])
    """Values of the text's $name parameters: numbers, texts, and lists of them."""
    space: str = Field(default="", examples=["shop"])
    """Space that the statements start in; if empty, the text selects one (USE)."""
    language: Literal["ngql", "euler"] = "ngql"
    rows: int = Field(default=1000, ge=0, le=MAX_ROWS)
    """Maximum number of rows in the reply; `truncated` says if there are more."""
    timeout_s: float = Field(default=30.0, gt=0, le=MAX_TIMEOUT_S)
    """Seconds for all statements; `Deadline` after that."""


class ColumnView(HttpModel):
    """Column of a table."""

    name: str
    type: str = Field(examples=["int64"])
    """A dtype, text, bytes, list<int64> or list<float32>; vectors are lists."""


class StageView(HttpModel):
    """Duration and result size of one execution step."""

    name: str
    took_s: float
    rows: int
    """Number of rows that the step produced; -1 if it produces none."""


class QueryResultView(HttpModel):
    """Table of a statement."""

    columns: list[ColumnView]
    rows: list[list[Any]]
    """Values in column order. float32 values have their shortest digits. NaN and infinite
    numbers become null, and bytes become hexadecimal text.
    """
    length: int
    """Total number of rows; `rows` has the first of them."""
    truncated: bool
    """True if the table has more rows than `rows`: request more with the field `rows`."""
    kind: str
    """Kind of the statement."""
    space: str
    """Space that the next statement refers to."""
    version: int
    """Version that was read; 0 if none was."""
    seed: str | None
    """Seed of a statement that samples: an integer below 2^64, as text."""
    token: str
    """Token of a statement that samples; it repeats the same call."""
    plan: str
    stages: list[StageView]
    took_s: float


def query_router(statements: QueryService) -> APIRouter:
    """Return the router of ``POST /query``, which uses the same handler as gRPC."""
    api = APIRouter(tags=["statements"])
    error_responses = {
        400: (
            "The statement is invalid; `line`, `column`, `expected` and `incomplete` say where "
            "and how."
        ),
        404: "A space, type, version, job or column does not exist.",
        409: "Something of that name exists, or nothing has been published yet.",
        415: "The body is not `application/json`.",
        422: "A value is not of its type or out of its range.",
        429: "Too many calls are in progress.",
        503: "A storaged does not respond.",
        504: "The deadline has passed.",
    }

    @api.post("/query", responses=refusals(error_responses))
    def post_query(query: Annotated[StatementQuery, Body()]) -> QueryResultView:
        """Run statements and return the table of the last one."""
        head = graphd_pb.QueryRequest(
            statement=query.statement, space=query.space, language=query.language
        )
        arrays: dict[str, NDArray[Any]] = {}
        for name, value in query.parameters.items():
            bind_parameter(name, value, head, arrays)
        call = CallContext.with_timeout(query.timeout_s, current_principal())
        reply = statements.query(Frame(head, arrays), call)
        result = decode_result(reply)
        rows = _rows(result, query.rows)
        return QueryResultView(
            columns=[
                ColumnView(name=name, type=kind)
                for name, kind in zip(result.columns, result.types, strict=True)
            ],
            rows=rows,
            length=len(result),
            truncated=len(result) > len(rows),
            kind=result.kind,
            space=result.space,
            version=result.version,
            seed=None if result.seed is None else str(result.seed),
            token=result.token,
            plan=result.plan,
            stages=[
                StageView(name=stage.name, took_s=stage.took_s, rows=stage.rows)
                for stage in result.stages
            ],
            took_s=result.took_s,
        )

    return api


def _rows(result: QueryResult, most: int) -> list[list[Any]]:
    """Return the first rows of a table, as JSON has them."""
    columns = [result[name] for name in result.columns]
    if result.length < 0:
        return [[plain_values(np.asarray(column)) for column in columns]][:most]
    cells = [_cells(column, kind, most) for column, kind in zip(columns, result.types, strict=True)]
    return [list(row) for row in zip(*cells, strict=True)]


def _cells(column: Value, kind: str, most: int) -> list[Any]:
    """Return the first cells of a column."""
    if not isinstance(column, tuple):
        return plain_values(column[:most])
    indptr, values = column
    rows = [values[start:stop] for start, stop in pairwise(indptr[: most + 1].tolist())]
    return [row.tobytes().hex() if kind == "bytes" else plain_values(row) for row in rows]
