"""Self-test over HTTP: ``POST /verify`` compares samples of a version with its weights.

It calls graphd's own gRPC port, as a trainer would.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Body
from pydantic import Field

from asterism.graph import Client
from asterism.transport.grpc import ClientTransport, GrpcTransport
from asterism.verification import VerificationReport, verify
from asterism_daemonkit.http.models import HttpModel, refusals
from asterism_daemonkit.tls import DaemonTls
from asterism_proto.errors import Busy
from graphd.http.timeouts import MAX_TIMEOUT_S

MAX_DRAWS = 1_000_000


class SelfTestRequest(HttpModel):
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


class SelfTestResult(HttpModel):
    """Comparison of a version's draws with its weights."""

    passed: bool
    """True if no fault was found."""
    failures: list[str]
    """One sentence per fault."""
    report: VerificationReport


def verify_router(
    address: Callable[[], str],
    tls: DaemonTls | None = None,
    own_calls: Callable[[], ClientTransport] | None = None,
) -> APIRouter:
    """Return the router of ``POST /verify``.

    Parameters
    ----------
    address : callable
        Returns host:port of the gRPC port. The test verifies the results that a trainer gets
        there.
    tls : DaemonTls, optional
        Certificates of that port.
    own_calls : callable, optional
        Returns a transport with the rights of the route's caller, which the test uses in place of
        the port. Default: the port.
    """
    api = APIRouter(tags=["self-test"])
    verify_lock = threading.Lock()
    error_responses = {
        404: "A space, version or name of weights does not exist, or there is nothing to sample.",
        409: "Nothing has been published yet.",
        422: "A value is not of its type or out of its range.",
        429: "Another self-test is running.",
        503: "A storaged does not respond.",
        504: "The deadline has passed.",
    }

    @api.post("/verify", responses=refusals(error_responses))
    def post_verify(test: Annotated[SelfTestRequest, Body()]) -> SelfTestResult:
        """Compare samples of nodes, edges and neighbors of every type with their weights.

        The weights are those that scans read, and the sealed totals.
        """
        if not verify_lock.acquire(blocking=False):
            raise Busy(
                "a self-test is running, and a graphd runs one at a time; try again when it has "
                "ended"
            )
        try:
            transport = (
                GrpcTransport(address(), tls=None if tls is None else tls.own_options())
                if own_calls is None
                else own_calls()
            )
            with Client(transport, timeout_s=min(test.timeout_s, 30.0)) as client:
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
