"""HTTP endpoints of graphd beyond those of every daemon: statements and the self-test.

The self-test calls graphd's own gRPC port, as a trainer would.
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
"""Maximum rows of a table over HTTP. Larger tables go over gRPC, as arrays."""


class _HttpModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Problem(_HttpModel):
    """Reason for a refused request."""

    error: str = Field(examples=["Busy"])
    """Class of the error, as listed in the documentation."""
    message: str
    """Description of the error, with the value and the remedy."""
    line: int | None = None
    """Line in the statement or filter, from 1. This field and those below are absent if the
    error has no position in a text.
    """
    column: int | None = None
    expected: list[str] | None = None
    """Tokens that are allowed at that position."""
    incomplete: bool | None = None
    """True if the text is cut short, so that more text could make it valid."""


class SelfTestRequest(_HttpModel):
    """Version to compare with its weights, and the precision of the test."""

    space: str = Field(examples=["shop"])
    """Name of the space."""
    version: int | None = Field(default=None, ge=1)
    """Published version; default: the current one."""
    weights: list[str] | None = Field(default=None, examples=[["weight", "popular"]])
    """Names of the weights to test, `weight` for the rows' own weights; default: all."""
    draws: int = Field(default=100_000, ge=1000, le=MAX_DRAWS)
    """Number of draws per kind. The smallest detectable bias falls with its square root."""
    alpha: float = Field(default=1e-3, gt=0, lt=1)
    """Probability of any false alarm in the whole report."""
    power: float = Field(default=0.9, gt=0, lt=1)
    """Probability of finding a bias of the size reported as `detectable`."""
    buckets: int = Field(default=64, ge=1, le=4096)
    """Number of row ranges of equal mass per type."""
    seed: int | None = Field(default=None, ge=0, lt=1 << 64)
    """Seed that repeats a run; default: a fresh one, which the report contains."""
    timeout_s: float = Field(default=60.0, gt=0, le=MAX_TIMEOUT_S)
    """Seconds for the whole test; `Deadline` after that."""


class SelfTestResult(_HttpModel):
    """Comparison of a version's draws with its weights."""

    passed: bool
    """True if no fault was found."""
    failures: list[str]
    """One sentence per fault."""
    report: VerificationReport


class StatementQuery(_HttpModel):
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
    """Maximum number of rows in the reply; `length` has the total number."""
    timeout_s: float = Field(default=30.0, gt=0, le=MAX_TIMEOUT_S)
    """Seconds for all statements; `Deadline` after that."""


class ColumnView(_HttpModel):
    """Column of a table."""

    name: str
    type: str = Field(examples=["int64"])
    """A dtype, text, bytes, list<int64> or list<float32>; vectors are lists."""


class StageView(_HttpModel):
    """Duration and result size of one execution step."""

    name: str
    took_s: float
    rows: int
    """Number of rows that the step produced; -1 if it produces none."""


class QueryResultView(_HttpModel):
    """Table of a statement."""

    columns: list[ColumnView]
    rows: list[list[Any]]
    """Values in column order. NaN and infinite numbers become null, and bytes become
    hexadecimal text.
    """
    length: int
    """Total number of rows; `rows` has the first of them."""
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
            "It is no statement, or asks for what cannot be; `line`, `column`, `expected` "
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
        """Run statements and return the table of the last one."""
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
    """Return a value that JSON can represent."""
    if isinstance(cell, float):
        return cell if isfinite(cell) else None
    if isinstance(cell, list):
        return [_plain(item) for item in cell]
    return cell.hex() if isinstance(cell, bytes) else cell


def verify_router(address: Callable[[], str]) -> APIRouter:
    """Return the router of ``POST /verify``.

    Parameters
    ----------
    address : callable
        Returns host:port of the gRPC port. The test verifies the results that a trainer gets
        there.
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
        """Compare samples of nodes, edges and neighbors of every type with their weights.

        The weights are those that scans read, and the sealed totals.
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
