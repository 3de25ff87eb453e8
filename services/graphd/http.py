"""What graphd answers over HTTP beyond every daemon's own: statements, and the self-test, which it
asks of itself as a trainer would.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import isfinite
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from asterism.calls.query import bind_parameter
from asterism.graph import Client
from asterism.records.query_result import decode_result
from asterism.transport.grpc import GrpcTransport
from asterism.verification import VerificationReport, verify
from asterism_daemonkit.calls import CallContext
from asterism_proto.errors import Busy
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.query.grammar import MAX_LENGTH
from graphd.query.service import QueryService

MAX_DRAWS = 1_000_000
MAX_TIMEOUT_S = 600.0
MAX_ROWS = 100_000
"""Of a table over HTTP: more goes over gRPC, as arrays."""


class _HttpModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Problem(_HttpModel):
    """Why a request was refused."""

    error: str = Field(examples=["Busy"])
    """Class of the error; `docs` list them."""
    message: str
    """What was wrong, with the value, and what to do."""
    line: int | None = None
    """Where in a statement or condition it is, from 1; this and what follows is absent where it is
    in none.
    """
    column: int | None = None
    expected: list[str] | None = None
    """What may stand there."""
    incomplete: bool | None = None
    """Whether more of the text could make it right: it is cut short, not wrong."""


class SelfTestRequest(_HttpModel):
    """Which version to hold against its weights, and how closely."""

    space: str = Field(examples=["shop"])
    """The space's name."""
    version: int | None = Field(default=None, ge=1)
    """A published version; none: the current one."""
    weights: list[str] | None = Field(default=None, examples=[["weight", "popular"]])
    """Names of the weights to look at, `weight` for the rows' own; none: all."""
    draws: int = Field(default=100_000, ge=1000, le=MAX_DRAWS)
    """Of each kind; the smallest bias that is seen falls with the square root."""
    alpha: float = Field(default=1e-3, gt=0, lt=1)
    """The chance of any false alarm in the whole report."""
    power: float = Field(default=0.9, gt=0, lt=1)
    """With which a bias of the size reported as `detectable` would be found."""
    buckets: int = Field(default=64, ge=1, le=4096)
    """Runs of rows of equal mass per type."""
    seed: int | None = Field(default=None, ge=0, lt=1 << 64)
    """Repeats a run; none: a fresh one, which is reported."""
    timeout_s: float = Field(default=60.0, gt=0, le=MAX_TIMEOUT_S)
    """Seconds for all of it; `Deadline` past them."""


class SelfTestResult(_HttpModel):
    """How a version's draws stand against its weights."""

    passed: bool
    """Whether nothing was found wrong."""
    failures: list[str]
    """A sentence for everything that was."""
    report: VerificationReport


class StatementQuery(_HttpModel):
    """Statements to run."""

    statement: str = Field(
        max_length=MAX_LENGTH,
        examples=["SAMPLE 5 VERTICES ON item WHERE price > $least YIELD id, price"],
    )
    """One, or several with ; between: the last one's table is given."""
    parameters: dict[str, Any] = Field(default_factory=dict, examples=[{"least": 3}])
    """What the text calls $name: numbers, texts, and lists of them."""
    space: str = Field(default="", examples=["shop"])
    """Where they begin; empty: they say so themselves (USE)."""
    language: Literal["ngql", "euler"] = "ngql"
    rows: int = Field(default=1000, ge=0, le=MAX_ROWS)
    """That the answer has at most; `length` says how many there are."""
    timeout_s: float = Field(default=30.0, gt=0, le=MAX_TIMEOUT_S)
    """Seconds for all of it; `Deadline` past them."""


class ColumnView(_HttpModel):
    """A column of a table."""

    name: str
    type: str = Field(examples=["int64"])
    """A dtype, text, bytes, list<int64> or list<float32>; vectors are lists."""


class StageView(_HttpModel):
    """What one step took."""

    name: str
    took_s: float
    rows: int
    """That it gave; -1: it gives none."""


class QueryResultView(_HttpModel):
    """The table of a statement."""

    columns: list[ColumnView]
    rows: list[list[Any]]
    """Values in the columns' order; a number that is none (NaN, infinite) is null, bytes are
    hexadecimal.
    """
    length: int
    """Rows that there are; `rows` has the first of them."""
    kind: str
    """What statement it is of."""
    space: str
    """That the next statement is about."""
    version: int
    """That was read; 0: none."""
    seed: str | None
    """Where it drew: a whole number below 2^64, as text."""
    token: str
    """Where it drew: what the call can be made again with."""
    plan: str
    stages: list[StageView]
    took_s: float


def query_router(statements: QueryService) -> APIRouter:
    """``POST /query``: statements, by the same handler as over gRPC."""
    api = APIRouter(tags=["statements"])
    error_responses = {
        400: (
            "It is no statement, or asks for what can not be; `line`, `column`, `expected` "
            "and `incomplete` say where and how."
        ),
        404: "It names a space, type, version, job or column that is not there.",
        409: "Something of that name is there; or nothing has been published yet.",
        422: "A value is not of its type or out of its range.",
        429: "Too much is under way.",
        503: "A storaged does not answer.",
        504: "The time is up.",
    }

    @api.post(
        "/query",
        responses={
            status: {"model": Problem, "description": text}
            for status, text in error_responses.items()
        },
    )
    def post_query(query: Annotated[StatementQuery, Body()]) -> QueryResultView:
        """Run statements, and give the table of the last one."""
        head = graphd_pb.QueryRequest(
            statement=query.statement, space=query.space, language=query.language
        )
        arrays: dict[str, NDArray[Any]] = {}
        for name, value in query.parameters.items():
            bind_parameter(name, value, head, arrays)
        reply = statements.query(Frame(head, arrays), CallContext.with_timeout(query.timeout_s))
        result = decode_result(reply)
        return QueryResultView(
            columns=[
                ColumnView(name=name, type=kind)
                for name, kind in zip(result.columns, result.types, strict=True)
            ],
            rows=[[_plain(cell) for cell in row] for row in result.rows(query.rows)],
            length=len(result),
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


def _plain(cell: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(cell, float):
        return cell if isfinite(cell) else None
    if isinstance(cell, list):
        return [_plain(item) for item in cell]
    return cell.hex() if isinstance(cell, bytes) else cell


def verify_router(address: Callable[[], str]) -> APIRouter:
    """``POST /verify``.

    Parameters
    ----------
    address : callable
        Gives host:port of the gRPC door: what is verified is what a trainer gets there.
    """
    api = APIRouter(tags=["self-test"])
    verify_lock = threading.Lock()
    error_responses = {
        404: "There is no such space, version or name of weights, or nothing to draw.",
        409: "Nothing has been published yet.",
        422: "A value is not of its type or out of its range.",
        429: "Another self-test runs; one at a time.",
        503: "A storaged does not answer.",
        504: "The time is up.",
    }

    @api.post(
        "/verify",
        responses={
            status: {"model": Problem, "description": text}
            for status, text in error_responses.items()
        },
    )
    def post_verify(test: Annotated[SelfTestRequest, Body()]) -> SelfTestResult:
        """Draw nodes, edges and neighbors of every type, and compare with the weights that scans
        read and the sealed totals.
        """
        if not verify_lock.acquire(blocking=False):
            raise Busy(
                "a self-test is running; this door runs one at a time, try again when it is over"
            )
        try:
            with Client(GrpcTransport(address()), timeout_s=min(test.timeout_s, 30.0)) as client:
                report = verify(
                    client,
                    test.space,
                    weights=test.weights,
                    draws=test.draws,
                    alpha=test.alpha,
                    power=test.power,
                    buckets=test.buckets,
                    seed=test.seed,
                    version=test.version,
                    timeout_s=test.timeout_s,
                )
        finally:
            verify_lock.release()
        return SelfTestResult(passed=report.passed, failures=report.failures, report=report)

    return api
