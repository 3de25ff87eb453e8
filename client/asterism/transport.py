"""How a client's calls travel: over gRPC to one of several graphds, or by an equal object in this process.

A transport is anything with `Transport`'s two methods. The one over gRPC opens its channels lazily and once per process,
so that a client may cross a fork or be pickled into a data loader's worker.
"""

from __future__ import annotations

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

from asterism_proto.arrays import Frame
from asterism_proto.errors import CALLER_KEY, REASON_KEY, AsterismError, Busy, Deadline, InvalidRequest, Stale, Unavailable, from_status
from asterism_proto.methods import CATALOG, GRAPH, Method

Content = Message | Frame

MESSAGE_LIMIT = 64 << 20
DEFAULT_PORT = 9669
NOT_IDEMPOTENT = frozenset(
    [
        *(CATALOG[name].path for name in ("create_space", "drop_space", "begin_load", "submit_job", "stop_job", "recover_job")),
        GRAPH["write_once"].path,
    ]
)
"""Sent again only when it is certain that the first attempt never arrived."""

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
_REST_S = 2.0
"""How long an address that did not answer is passed over."""


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
    answers, and `Busy` ones, are tried again (another address first) with a jittered back-off within the call's time.

    Parameters
    ----------
    addresses : str or sequence of str
        ``"host:9669,host2:9669"``.
    """

    piece_bytes = 4 << 20
    """Each of a message's several copies stays in memory that was used before; that of larger ones is given back to the system each time."""

    def __init__(self, addresses: str | Sequence[str]) -> None:
        self.addresses = parse(addresses)
        self._lock = threading.Lock()
        self._pid = 0
        self._channels: list[grpc.Channel] = []
        self._stubs: dict[tuple[int, str], Any] = {}
        self._resting: dict[int, float] = {}
        self._turn = 0
        self._closed = False
        self._caller = ((CALLER_KEY, secrets.token_hex(8)),)
        _open.add(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"addresses": self.addresses}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["addresses"])  # type: ignore[misc]  # a copy in another process starts afresh

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """The reply, within ``timeout_s`` seconds, or an `AsterismError`."""
        deadline = time.monotonic() + timeout_s
        data = method.pack(request)
        if len(data) > MESSAGE_LIMIT:
            raise InvalidRequest(f"{method.name}: the request is {len(data)} bytes, a message at most {MESSAGE_LIMIT}; ask in smaller pieces")
        for attempt in range(_ATTEMPTS):
            try:
                return method.unpack_reply(self._send(method, data, deadline))
            except (Unavailable, Stale, Busy) as error:
                again = not isinstance(error, Deadline) and (method.path not in NOT_IDEMPOTENT or getattr(error, "never_arrived", False))
                pause = min(_FIRST_BACKOFF_S * 2**attempt, _LONGEST_BACKOFF_S) * random.uniform(0.5, 1.0)
                if not again or attempt + 1 == _ATTEMPTS or time.monotonic() + pause >= deadline:
                    raise
                time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """Close this process's channels."""
        with self._lock:
            self._closed = True
            if self._pid == os.getpid():
                for channel in self._channels:
                    channel.close()
            self._channels, self._stubs = [], {}

    def _send(self, method: Method, data: bytes, deadline: float) -> bytes:
        at, stub = self._stub(method.path)
        left = deadline - time.monotonic()
        if left <= 0:
            raise Deadline(f"{method.name}: the call's time is up; give it a longer timeout")
        try:
            reply: bytes = stub(data, timeout=left, metadata=self._caller)
        except grpc.RpcError as raised:
            error = _error(raised, self.addresses[at])
            if isinstance(error, Unavailable) and not isinstance(error, Deadline):
                self._resting[at] = time.monotonic() + _REST_S
            raise error from None
        return reply

    def _stub(self, path: str) -> tuple[int, Any]:
        """The next address that is not resting, and what calls ``path`` there."""
        with self._lock:
            if self._closed:
                raise Unavailable("this client is closed; connect again")
            if self._pid != os.getpid():
                # A forked child: its parent's channels have no threads here. They are left alone, not closed.
                self._pid, self._stubs, self._resting = os.getpid(), {}, {}
                self._channels = [grpc.insecure_channel(address, options=_OPTIONS) for address in self.addresses]
                self._turn = random.randrange(len(self.addresses))
            now = time.monotonic()
            order = [(self._turn + i) % len(self.addresses) for i in range(len(self.addresses))]
            at = next((i for i in order if self._resting.get(i, 0.0) <= now), order[0])
            self._turn = (at + 1) % len(self.addresses)
            stub = self._stubs.get((at, path))
            if stub is None:
                stub = self._stubs[at, path] = self._channels[at].unary_unary(path)
            return at, stub


def _error(raised: grpc.RpcError, address: str) -> AsterismError:
    """What a server sent, or that it did not answer."""
    call: Any = raised
    reason = dict(call.trailing_metadata() or ()).get(REASON_KEY)
    code, details = call.code().name, call.details() or ""
    if reason is None and code in ("UNAVAILABLE", "CANCELLED"):
        error = Unavailable(f"no answer from graphd at {address}: {details}; is it running there?")
        error.never_arrived = "failed to connect" in details.lower()  # type: ignore[attr-defined]  # read by the retry rule alone
        return error
    if reason is None and code == "DEADLINE_EXCEEDED":
        return Deadline(f"no answer from graphd at {address} in time; ask for less, or with a longer timeout")
    return from_status(code, details, reason if isinstance(reason, str) else None)
