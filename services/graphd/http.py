"""What graphd answers over HTTP beyond every daemon's own: the self-test, which it asks of itself as a trainer would."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Body
from pydantic import BaseModel, ConfigDict, Field

from asterism.client import Client
from asterism.transport import GrpcTransport
from asterism.verification import Report, verify
from asterism_proto.errors import Busy

MOST_DRAWS = 1_000_000
LONGEST_S = 600.0


class _View(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Problem(_View):
    """Why a request was refused."""

    error: str = Field(examples=["Busy"])
    """Class of the error; `docs` list them."""
    message: str
    """What was wrong, with the value, and what to do."""


class SelfTest(_View):
    """Which version to hold against its weights, and how closely."""

    space: str = Field(examples=["shop"])
    """The space's name."""
    version: int | None = Field(default=None, ge=1)
    """A published version; none: the current one."""
    weights: list[str] | None = Field(default=None, examples=[["weight", "popular"]])
    """Names of the weights to look at, `weight` for the rows' own; none: all."""
    draws: int = Field(default=100_000, ge=1000, le=MOST_DRAWS)
    """Of each kind; the smallest bias that is seen falls with the square root."""
    alpha: float = Field(default=1e-3, gt=0, lt=1)
    """The chance of any false alarm in the whole report."""
    power: float = Field(default=0.9, gt=0, lt=1)
    """With which a bias of the size reported as `detectable` would be found."""
    buckets: int = Field(default=64, ge=1, le=4096)
    """Runs of rows of equal mass per type."""
    seed: int | None = Field(default=None, ge=0, lt=1 << 64)
    """Repeats a run; none: a fresh one, which is reported."""
    timeout_s: float = Field(default=60.0, gt=0, le=LONGEST_S)
    """Seconds for all of it; `Deadline` past them."""


class Verdict(_View):
    """How a version's draws stand against its weights."""

    passed: bool
    """Whether nothing was found wrong."""
    failures: list[str]
    """A sentence for everything that was."""
    report: Report


def router(address: Callable[[], str]) -> APIRouter:
    """``POST /verify``.

    Parameters
    ----------
    address : callable
        Gives host:port of the gRPC door: what is verified is what a trainer gets there.
    """
    api = APIRouter(tags=["self-test"])
    alone = threading.Lock()
    refusals = {
        404: "There is no such space, version or name of weights, or nothing to draw.",
        409: "Nothing has been published yet.",
        422: "A value is not of its type or out of its range.",
        429: "Another self-test runs; one at a time.",
        503: "A storaged does not answer.",
        504: "The time is up.",
    }

    @api.post("/verify", responses={status: {"model": Problem, "description": text} for status, text in refusals.items()})
    def post_verify(test: Annotated[SelfTest, Body()]) -> Verdict:
        """Draw nodes, edges and neighbors of every type, and compare with the weights that scans read and the sealed totals."""
        if not alone.acquire(blocking=False):
            raise Busy("a self-test is running; this door runs one at a time, try again when it is over")
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
            alone.release()
        return Verdict(passed=report.passed, failures=report.failures, report=report)

    return api
