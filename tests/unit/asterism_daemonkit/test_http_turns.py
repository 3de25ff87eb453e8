"""Tests of the turns of HTTP requests, with the application that every daemon serves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Request
from tests.kit.waiting import HANG_S, wait_until

from asterism_access.principals import Principal, PrincipalKind
from asterism_daemonkit.http.allowed_hosts import AllowedHosts
from asterism_daemonkit.http.application import create_app
from asterism_daemonkit.http.turns import HttpTurns
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc.call_context import current_principal, waiting

Send = Callable[..., Awaitable[httpx.Response]]


class Service:
    """A daemon with a route that holds its thread until it may go on."""

    def __init__(self, turns: HttpTurns, *, access_control: bool = True) -> None:
        self.turns, self.metrics = turns, Metrics("toy")
        self.served: list[str] = []
        self.go_on, self.waits, self.computes = (threading.Event() for _ in range(3))
        self.app = self._app(access_control)

    def _app(self, access_control: bool) -> FastAPI:
        api = APIRouter()

        @api.get("/api/v1/hold")
        def hold(request: Request) -> str:
            self.served.append(current_principal().name + request.headers.get("x-name", ""))
            assert self.go_on.wait(HANG_S)
            return "held"

        @api.get("/api/v1/fail")
        def fail() -> str:
            raise RuntimeError("a fault")

        @api.get("/api/v1/wait")
        def wait() -> str:
            with waiting():
                self.waits.set()
                assert self.computes.wait(HANG_S)
            return "waited"

        @api.get("/api/v1/compute")
        def compute() -> str:
            self.computes.set()
            return "computed"

        return create_app(
            daemon="toy",
            status=dict,
            ready=list,
            flags={},
            metrics=self.metrics,
            allowed_hosts=AllowedHosts(),
            routers=[api],
            authenticate=_authenticate if access_control else None,
            turns=self.turns,
        )

    def run(self, scenario: Callable[[Send], Awaitable[None]]) -> None:
        """Run a scenario, which sends requests of principals at the same time."""

        async def main() -> None:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://toy:1", timeout=HANG_S
            ) as client:

                def send(
                    principal: str, path: str = "/api/v1/hold", **headers: str
                ) -> Awaitable[httpx.Response]:
                    return client.get(path, headers={"authorization": principal, **headers})

                await asyncio.wait_for(scenario(send), HANG_S)

        try:
            asyncio.run(main())
        finally:
            self.go_on.set()

    async def until_queued(self, requests: int) -> None:
        """Wait until some requests run or wait."""
        await asyncio.to_thread(
            wait_until, lambda: self.turns.requests >= requests, f"{requests} requests are queued"
        )


def _authenticate(authorization: str) -> Principal:
    return Principal(name=authorization, kind=PrincipalKind.API_KEY)


def test_principals_take_turns_whatever_they_send() -> None:
    service = Service(HttpTurns(running=1, waiting=20))

    async def scenario(send: Send) -> None:
        busy = [asyncio.ensure_future(send("alice")) for _ in range(10)]
        await service.until_queued(10)
        few = [asyncio.ensure_future(send("bob")) for _ in range(2)]
        await service.until_queued(12)
        service.go_on.set()
        assert {reply.status_code for reply in await asyncio.gather(*busy, *few)} == {200}

    service.run(scenario)
    assert sorted(service.served) == ["alice"] * 10 + ["bob"] * 2
    assert service.served[:5].count("bob") == 2
    assert service.turns.requests == 0


def test_turns_follow_the_shares_of_principals() -> None:
    shares = {"alice": 3.0, "bob": 1.0}
    service = Service(HttpTurns(lambda name: shares.get(name, 1.0), running=1, waiting=40))

    async def scenario(send: Send) -> None:
        first = asyncio.ensure_future(send("carol"))
        await service.until_queued(1)
        rest = [asyncio.ensure_future(send(name)) for name in ("bob", "alice") for _ in range(12)]
        await service.until_queued(25)
        service.go_on.set()
        await asyncio.gather(first, *rest)

    service.run(scenario)
    assert 8 <= service.served[1:13].count("alice") <= 10


@pytest.mark.parametrize(
    ("headers", "names"),
    [({"asterism-caller": "trainer"}, "aabaa"), ({}, "aaaab")],
)
def test_callers_are_distinguished_without_access_control(
    headers: dict[str, str], names: str
) -> None:
    service = Service(HttpTurns(running=1, waiting=20), access_control=False)

    async def scenario(send: Send) -> None:
        requests = [asyncio.ensure_future(send("", **{"x-name": "a"})) for _ in range(4)]
        await service.until_queued(4)
        requests.append(asyncio.ensure_future(send("", **{"x-name": "b"}, **headers)))
        await service.until_queued(5)
        service.go_on.set()
        await asyncio.gather(*requests)

    service.run(scenario)
    assert service.served == [f"local{name}" for name in names]


def test_a_request_beyond_the_places_is_refused_with_503() -> None:
    service = Service(HttpTurns(running=1, waiting=1))

    async def scenario(send: Send) -> None:
        held = [asyncio.ensure_future(send("alice")) for _ in range(2)]
        await service.until_queued(2)
        refused = await send("alice")
        assert (refused.status_code, refused.json()["error"]) == (503, "Busy")
        assert "all 2 places for requests over HTTP are taken" in refused.json()["message"]
        assert refused.headers["retry-after"] == "1"
        for path in ("/healthz", "/readyz", "/metrics", "/status", "/flags", "/docs"):
            assert (await send("alice", path)).status_code == 200, path
        other = asyncio.ensure_future(send("bob"))  # below its share: it waits
        await service.until_queued(3)
        service.go_on.set()
        assert {reply.status_code for reply in await asyncio.gather(*held, other)} == {200}

    service.run(scenario)
    assert service.metrics.method_stats()["refused"].errors == 1


def test_a_request_that_waits_lets_another_principal_compute() -> None:
    service = Service(HttpTurns(running=4, waiting=4, cores=1))

    async def scenario(send: Send) -> None:
        first = asyncio.ensure_future(send("alice", "/api/v1/wait"))
        assert await asyncio.to_thread(service.waits.wait, HANG_S)
        # Alice computes nothing now, so a second request of hers may run too.
        replies = await asyncio.gather(
            first, send("bob", "/api/v1/compute"), send("alice", "/api/v1/compute")
        )
        assert {reply.status_code for reply in replies} == {200}

    service.run(scenario)
    assert service.turns.requests == 0


def test_a_request_that_fails_or_is_given_up_frees_its_place() -> None:
    service = Service(HttpTurns(running=1, waiting=4))

    async def scenario(send: Send) -> None:
        assert (await send("alice", "/api/v1/fail")).status_code == 500
        held = asyncio.ensure_future(send("alice"))
        await service.until_queued(1)
        given_up = asyncio.ensure_future(send("bob"))
        await service.until_queued(2)
        given_up.cancel()
        with suppress(asyncio.CancelledError):
            await given_up
        assert service.turns.requests == 1
        service.go_on.set()
        assert (await held).status_code == (await send("carol")).status_code == 200

    service.run(scenario)
    assert (service.served, service.turns.requests) == (["alice", "carol"], 0)
