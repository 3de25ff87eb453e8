"""Fair turns of HTTP requests, by the same rule as those of calls over gRPC.

Routes run in the threads of the HTTP server, which are few. A request therefore waits for its turn
in the event loop, without a thread, once its body has arrived.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from asterism_access.principals import Principal
from asterism_daemonkit.rpc.call_context import serving_turn
from asterism_daemonkit.rpc.fair_pool import FairSlots, ShareSource, equal_share, turn_of
from asterism_proto.errors import CALLER_KEY, Busy, Deadline

if TYPE_CHECKING:  # imported with the application
    from fastapi import Request

RUNNING = 32
"""Requests that run at a time: fewer than the server's 40 threads, which probes use too."""
WAITING = 256
"""Requests that may wait."""
_WAIT_S = 60.0
"""Most seconds that a request waits."""
_RETRY_S = 1.0
"""Seconds after which a refused request may be sent again."""


class _Waiting:
    """Request that waits in the event loop for its turn."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        self.is_granted = False
        """True once its turn has come."""

    async def wait(self) -> None:
        async with asyncio.timeout(_WAIT_S):
            await self._event.wait()

    def grant(self) -> None:
        """Let the request run; called by any thread."""
        self.is_granted = True
        self._loop.call_soon_threadsafe(self._event.set)


class HttpTurns:
    """Turns of the requests of one HTTP server.

    Parameters
    ----------
    share_of : callable
        Returns the weight of the turns of a principal with some name; by default 1.
    running : int
        Requests that run at a time.
    waiting : int
        Requests that may wait. A further one is refused, unless its principal has less than its
        share.
    cores : int
        Requests that compute at a time while several principals send some; 0: as many as run.
    """

    def __init__(
        self,
        share_of: ShareSource = equal_share,
        *,
        running: int = RUNNING,
        waiting: int = WAITING,
        cores: int = 0,
    ) -> None:
        self._share_of = share_of
        self._slots = FairSlots(running, waiting, cores=cores)

    @property
    def requests(self) -> int:
        """Running and waiting requests."""
        return self._slots.calls

    async def take(self, principal: Principal, request: Request) -> HeldTurn:
        """Wait for the turn of a request after its body has arrived.

        Parameters
        ----------
        principal : Principal
            Caller. Requests of one caller take turns by the name in the header `CALLER_KEY`, or
            else by their address; without access control, these are the principals.
        request : Request

        Returns
        -------
        HeldTurn
            A context manager; the request runs in its body.

        Raises
        ------
        Busy
            If all places and the principal's share of the waiting requests are taken.
        Deadline
            If the turn has not come within a minute, or the caller has hung up meanwhile.
        """
        address = "" if request.client is None else request.client.host
        caller = request.headers.get(CALLER_KEY) or address
        turn = turn_of(principal, self._share_of, [(CALLER_KEY, caller)])
        waiting = _Waiting()
        if not self._slots.join(turn, waiting.grant):
            error = Busy(
                f"all {self._slots.limit} places for requests over HTTP are taken; try again in a "
                "second, or use another daemon"
            )
            error.retry_after_s = _RETRY_S
            raise error
        try:
            if not waiting.is_granted:
                await waiting.wait()
                if await request.is_disconnected():
                    raise Deadline("the caller hung up before the turn of its request")
        except BaseException as fault:
            self._slots.leave(turn, waiting.grant)
            if isinstance(fault, TimeoutError):
                raise Deadline(
                    f"the request waited {_WAIT_S:.0f} s for its turn; send fewer requests at a "
                    "time, or use another daemon"
                ) from None
            raise
        return HeldTurn(self._slots, turn.principal)


class HeldTurn(AbstractContextManager[None]):
    """Turn of a running request. Threads of its route may pause it at the same time.

    A thread may outlast the request, if the caller hangs up."""

    def __init__(self, slots: FairSlots, principal: str) -> None:
        self._slots, self._principal = slots, principal
        self._lock = threading.Lock()
        self._pauses = 0
        self._is_ended = False
        self._serving = serving_turn(self)

    def __enter__(self) -> None:
        self._serving.__enter__()

    def __exit__(self, *exception: Any) -> None:
        self._serving.__exit__(*exception)
        with self._lock:
            if self._pauses:
                self._slots.resume(self._principal)
            self._is_ended = True
            self._slots.end(self._principal)

    def pause(self) -> None:
        """Let another request start, because this one waits."""
        with self._lock:
            self._pauses += 1
            if self._pauses == 1 and not self._is_ended:
                self._slots.pause(self._principal)

    def resume(self) -> None:
        """Count this request as computing again."""
        with self._lock:
            self._pauses -= 1
            if not self._pauses and not self._is_ended:
                self._slots.resume(self._principal)
