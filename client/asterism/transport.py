"""How a client's calls travel: over gRPC to one of several graphds, or by an equal object in this process.

A transport is anything with `Transport`'s two methods. The one over gRPC opens its channels lazily and once per process,
so that a client may cross a fork or be pickled into a data loader's worker. It is the same for threads and for event loops
(`asterism.waiting`).
"""

from __future__ import annotations

import math
import os
import random
import secrets
import threading
import time
from collections.abc import Sequence
from typing import Any, Protocol
from weakref import WeakSet

import grpc
from google.protobuf.message import Message

from asterism.budgets import Budget, Delays, Traffic
from asterism.forks import GATE
from asterism.racing import Race
from asterism.waiting import THREADS, Turns, Waits
from asterism_proto.arrays import Frame
from asterism_proto.errors import (
    CALLER_KEY,
    PLACE_KEY,
    REASON_KEY,
    AsterismError,
    Busy,
    Deadline,
    InvalidRequest,
    Stale,
    Unavailable,
    from_status,
)
from asterism_proto.methods import CATALOG, GRAPH, Method
from asterism_proto.near import grpc_target

Content = Message | Frame

MESSAGE_LIMIT = 64 << 20
DEFAULT_PORT = 9669
NOT_IDEMPOTENT = frozenset(
    [
        *(CATALOG[name].path for name in ("create_space", "drop_space", "begin_load", "submit_job", "stop_job", "recover_job")),
        *(GRAPH[name].path for name in ("write_once", "query")),
    ]
)
"""Sent again only when it is certain that the first attempt never arrived."""
HEDGED = frozenset(
    [
        *(method.path for name, method in GRAPH.items() if name not in ("write", "write_once", "query")),
        *(method.path for name, method in CATALOG.items() if name.startswith(("get_", "list_", "describe_"))),
    ]
)
"""Reads: who is asked twice gives the same answer twice, and nothing has changed."""

_OPTIONS = (
    ("grpc.max_send_message_length", MESSAGE_LIMIT),
    ("grpc.max_receive_message_length", MESSAGE_LIMIT),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.enable_retries", 0),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # Two clients in one process do not queue behind each other's connection.
    ("grpc.use_local_subchannel_pool", 1),
)
_ATTEMPTS = 6
_FIRST_BACKOFF_S = 0.05
_LONGEST_BACKOFF_S = 1.0
_LOOK_S = 10.0
"""How often a shorter way to an address is looked for."""
_REST_S = 2.0
"""How long an address that did not answer is passed over."""
_RETRY_SHARE, _RETRY_BURST, _RETRIES_PER_S = 0.2, 100.0, 10.0
_HEDGE_SHARE, _HEDGE_BURST = 0.1, 10.0
_AT_ONCE = 64
"""Requests of one client on an event loop; further ones wait here for their turn, and not at graphd's door, which would refuse them."""


_open: WeakSet[GrpcTransport] = WeakSet()


def _in_child() -> None:
    """A forked child has none of its parent's threads: what they held of locks is free."""
    for transport in list(_open):
        transport._lock = threading.Lock()


os.register_at_fork(after_in_child=_in_child)


class Transport(Protocol):
    """Whoever carries a client's calls."""

    @property
    def piece_bytes(self) -> int:
        """How large a piece of an answer should be that can be asked for in pieces; one and a half fit into a reply."""

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """The reply, within ``timeout_s`` seconds, or an `AsterismError`."""

    def close(self) -> None:
        """Let go of what it holds."""


def parse(addresses: str | Sequence[str]) -> tuple[str, ...]:
    """``host:port`` for each of a comma-separated list; the port may be left out."""
    parts = addresses.split(",") if isinstance(addresses, str) else list(addresses)
    found = []
    for part in (part.strip() for part in parts):
        if not part:
            continue
        host, colon, port = part.rpartition(":")
        if not colon or part.endswith("]"):
            found.append(f"{part}:{DEFAULT_PORT}")
        elif host and port.isdigit() and 0 < int(port) < 1 << 16:
            found.append(part)
        else:
            raise InvalidRequest(f"address {part!r}: expected host:port")
    if not found:
        raise InvalidRequest(f"addresses {addresses!r}: expected host:port, or several of them with commas between")
    return tuple(found)


class GrpcTransport:
    """Calls over gRPC to one of several graphds.

    Calls take turns over the addresses; one that does not answer is passed over for a moment. `Unavailable` and `Stale`
    answers, and `Busy` ones, are tried again (another address first) with a jittered back-off within the call's time, and
    within a budget: retries are at most a fifth of the calls, and ten a second, beyond a hundred.

    Parameters
    ----------
    addresses : str or sequence of str
        ``"host:9669,host2:9669"``.
    hedge : float or "p95", optional
        A read that was not answered after so many seconds, or for longer than 95 of 100 recent ones, is asked of another address too; the first
        answer counts, and the other request is cancelled. At most for a tenth of the calls, beyond ten. None: never.
    waits : Waits
        How to wait for answers.
    """

    piece_bytes = 4 << 20
    """Each of a message's several copies stays in memory that was used before; that of larger ones is given back to the system each time."""

    def __init__(self, addresses: str | Sequence[str], *, hedge: float | str | None = None, waits: Waits = THREADS) -> None:
        self.addresses = parse(addresses)
        self._hedge, self._waits = hedge, waits
        self._delays = None if hedge is None else Delays(hedge)
        self._lock = threading.Lock()
        self._pid = 0
        self._channels: list[grpc.Channel] = []
        self._targets: list[str] = []
        """What each channel is to: the address, or a shorter way there."""
        self._looked: list[float] = []
        """When that was looked for."""
        self._left: list[grpc.Channel] = []
        """Channels that are called no more."""
        self._stubs: dict[tuple[int, str], Any] = {}
        self._resting: dict[int, float] = {}
        self._turn = 0
        self._closed = False
        self._caller = ((CALLER_KEY, secrets.token_hex(8)),)
        self._counts: dict[str, int] = {}
        self._retries = Budget(share=_RETRY_SHARE, burst=_RETRY_BURST, per_s=_RETRIES_PER_S)
        self._hedges = Budget(share=_HEDGE_SHARE, burst=_HEDGE_BURST)
        self._turns = Turns(waits, _AT_ONCE)
        _open.add(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"addresses": self.addresses, "hedge": self._hedge, "waits": self._waits}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # a copy in another process starts afresh

    @property
    def traffic(self) -> Traffic:
        """What was asked so far."""
        with self._lock:
            return Traffic(**self._counts)

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """The reply, within ``timeout_s`` seconds, or an `AsterismError`."""
        deadline = time.monotonic() + timeout_s
        data = method.pack(request)
        if len(data) > MESSAGE_LIMIT:
            raise InvalidRequest(f"{method.name}: the request is {len(data)} bytes, a message at most {MESSAGE_LIMIT}; ask in smaller pieces")
        self._count(calls=1)
        for attempt in range(_ATTEMPTS):
            try:
                return method.unpack_reply(self._send(method, data, deadline))
            except (Unavailable, Stale, Busy) as error:
                again = not isinstance(error, Deadline) and (method.path not in NOT_IDEMPOTENT or getattr(error, "never_arrived", False))
                pause = min(_FIRST_BACKOFF_S * 2**attempt, _LONGEST_BACKOFF_S) * random.uniform(0.5, 1.0)
                if not again or attempt + 1 == _ATTEMPTS or not self._may_retry(deadline, pause):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _may_retry(self, deadline: float, pause: float) -> bool:
        """Wait until the next attempt may go; False where that is not before the call's time is up."""
        left = deadline - time.monotonic()
        with self._lock:
            wait = self._retries.reserve(left) if pause < left else None
        if wait is None:
            return False
        self._count(retries=1)
        self._waits.sleep(max(pause, wait))
        return True

    def close(self) -> None:
        """Close this process's channels."""
        with self._lock:
            self._closed = True
            if self._pid == os.getpid():
                for channel in [*self._channels, *self._left]:
                    channel.close()
            self._channels, self._left, self._stubs = [], [], {}

    def _send(self, method: Method, data: bytes, deadline: float) -> bytes:
        if not self._waits.inside():
            return self._sent(method, data, deadline)
        if not self._turns.take(max(deadline - time.monotonic(), 0.0)):
            raise Deadline(f"{method.name}: the call's time was up before its turn; give it a longer timeout, or make fewer calls at a time")
        try:
            return self._sent(method, data, deadline)
        finally:
            self._turns.give()

    def _sent(self, method: Method, data: bytes, deadline: float) -> bytes:
        """What the next address answers, or, where it takes long, another one."""
        at, stub = self._stub(method.path)
        begun = time.monotonic()
        if begun >= deadline:
            raise Deadline(f"{method.name}: the call's time is up; give it a longer timeout")
        hedged = self._delays is not None and method.path in HEDGED and len(self.addresses) > 1
        if hedged or self._waits.inside():
            race = Race(self._waits.bell(), data, self._caller, deadline)
            try:
                race.begin(at, stub)
                return self._run(race, method, hedged)
            finally:
                race.end()
        self._count(requests=1)
        try:
            with GATE.call():
                reply: bytes = stub(data, timeout=deadline - begun, metadata=self._caller)
        except grpc.RpcError as raised:
            raise self._noted(raised, at) from None
        return reply

    def _run(self, race: Race, method: Method, hedged: bool) -> bytes:
        """The first answer to a request that was begun; where that takes long and it is hedged, of two."""
        self._count(requests=1)
        first = race.runners[0]
        delay = self._delays.of(method.path) if hedged and self._delays is not None else None
        if delay is not None and not race.bell.wait(delay) and (other := self._second(first.at, method.path)) is not None:
            self._count(requests=1, hedges=1)
            race.begin(*other)
        winner = race.won()
        if winner is not first:
            with self._lock:
                self._resting[first.at] = time.monotonic() + _REST_S
            self._count(hedges_won=1)
        try:
            reply: bytes = winner.pending.result()
        except grpc.RpcError as raised:
            raise self._noted(raised, winner.at) from None
        if self._delays is not None:
            self._delays.note(method.path, time.monotonic() - winner.begun)
        return reply

    def _second(self, first: int, path: str) -> tuple[int, Any] | None:
        """Another address than the first, and what calls ``path`` there, where the budget has a request for it."""
        now = time.monotonic()
        with self._lock:
            others = [(first + i) % len(self.addresses) for i in range(1, len(self.addresses))]
            awake = [at for at in others if self._resting.get(at, 0.0) <= now]
            if not awake or self._closed or not self._hedges.spend():
                return None
            return awake[0], self._call_of(awake[0], path)

    def _noted(self, raised: grpc.RpcError, at: int) -> AsterismError:
        """The error that was raised, as ours; an address that did not answer rests."""
        error = _error(raised, self.addresses[at])
        if isinstance(error, Unavailable) and not isinstance(error, Deadline):
            self._resting[at] = time.monotonic() + _REST_S
            if getattr(error, "never_arrived", False):
                self._looked[at] = -math.inf  # it may have been started anew, and be reached in another way than before
        return error

    def _count(self, **more: int) -> None:
        with self._lock:
            if "calls" in more:
                self._retries.earn()
                self._hedges.earn()
            for name, number in more.items():
                self._counts[name] = self._counts.get(name, 0) + number

    def _stub(self, path: str) -> tuple[int, Any]:
        """The next address that is not resting, and what calls ``path`` there."""
        with self._lock:
            if self._closed:
                raise Unavailable("this client is closed; connect again")
            if self._pid != os.getpid():
                # A forked child: its parent's channels have no threads here. They are left alone, not closed.
                self._pid, self._stubs, self._resting = os.getpid(), {}, {}
                self._targets = [grpc_target(address) for address in self.addresses]
                self._channels = [grpc.insecure_channel(target, options=_OPTIONS) for target in self._targets]
                self._looked = [time.monotonic()] * len(self.addresses)
                self._turn = random.randrange(len(self.addresses))
            now = time.monotonic()
            order = [(self._turn + i) % len(self.addresses) for i in range(len(self.addresses))]
            at = next((i for i in order if self._resting.get(i, 0.0) <= now), order[0])
            self._turn = (at + 1) % len(self.addresses)
            if now - self._looked[at] > _LOOK_S:
                self._look_again(at, now)
            return at, self._call_of(at, path)

    def _look_again(self, at: int, now: float) -> None:
        """Call an address in the way that leads there by now: the shorter one where there is one, the longer one where that has gone."""
        self._looked[at], target = now, grpc_target(self.addresses[at])
        if target != self._targets[at]:
            self._left.append(self._channels[at])  # calls may be under way there
            self._channels[at], self._targets[at] = grpc.insecure_channel(target, options=_OPTIONS), target
            self._stubs = {key: stub for key, stub in self._stubs.items() if key[0] != at}

    def _call_of(self, at: int, path: str) -> Any:
        stub = self._stubs.get((at, path))
        if stub is None:
            stub = self._stubs[at, path] = self._channels[at].unary_unary(path)
        return stub


def _error(raised: grpc.RpcError, address: str) -> AsterismError:
    """What a server sent, or that it did not answer."""
    call: Any = raised
    told = dict(call.trailing_metadata() or ())
    reason, place = told.get(REASON_KEY), told.get(PLACE_KEY)
    code, details = call.code().name, call.details() or ""
    if reason is None and code in ("UNAVAILABLE", "CANCELLED"):
        error = Unavailable(f"no answer from graphd at {address}: {details}; is it running there?")
        error.never_arrived = "failed to connect" in details.lower()  # type: ignore[attr-defined]  # read by the retry rule alone
        return error
    if reason is None and code == "DEADLINE_EXCEEDED":
        return Deadline(f"no answer from graphd at {address} in time; ask for less, or with a longer timeout")
    return from_status(code, details, reason if isinstance(reason, str) else None, place if isinstance(place, str) else None)
