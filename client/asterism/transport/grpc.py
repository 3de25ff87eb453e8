"""Client transports: the protocol, and the transport over gRPC to one of several graphds.

A transport is any object that implements `ClientTransport`. The gRPC transport opens its channels
lazily, once per process, so that a client survives a fork and can be pickled into a data loader's
worker. It works on threads and on event loops (`asterism.transport.waiters`).
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

import grpc

from asterism.transport.credentials import Credentials
from asterism.transport.fork_hooks import FORK_GUARD
from asterism.transport.hedging import HedgeDelays, HedgedRequest
from asterism.transport.retry_budget import RetryBudget, Traffic
from asterism.transport.tls import REMEDIES
from asterism.transport.waiters import THREAD_WAITER, FairSemaphore, Waiter
from asterism_io.client_tls import TlsClient, TlsMismatch, tls_mismatch
from asterism_io.tls_options import TlsOptions
from asterism_io.unix_sockets import grpc_target
from asterism_proto.errors import (
    CALLER_KEY,
    AsterismError,
    Busy,
    Deadline,
    InvalidRequest,
    Retry,
    Stale,
    Unavailable,
)
from asterism_proto.grpc_status import error_from_rpc
from asterism_proto.methods import ACCESS, CATALOG, GRAPH, Method
from asterism_proto.transport import MAX_MESSAGE_BYTES, Content, Transport

DEFAULT_PORT = 9669
_URL_SCHEMES = ("http://", "https://", "grpc://")
NON_IDEMPOTENT_METHODS = frozenset(
    [
        *(
            CATALOG[name].path
            for name in (
                "create_space",
                "drop_space",
                "begin_load",
                "submit_job",
                "stop_job",
                "recover_job",
            )
        ),
        *(GRAPH[name].path for name in ("write_once", "query")),
        ACCESS["create_api_key"].path,
    ]
)
"""Methods that are retried only if the first attempt certainly never arrived."""
HEDGED_METHODS = frozenset(
    [
        *(
            method.path
            for name, method in GRAPH.items()
            if name not in ("write", "write_once", "query")
        ),
        *(
            method.path
            for name, method in CATALOG.items()
            if name.startswith(("get_", "list_", "describe_"))
        ),
    ]
)
"""Reads, which may be sent twice: both requests return the same reply and change nothing."""

_OPTIONS = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.enable_retries", 0),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # Two clients in one process must not wait for each other's connection.
    ("grpc.use_local_subchannel_pool", 1),
)
_ATTEMPTS = 6
_FIRST_BACKOFF_S = 0.05
_MAX_BACKOFF_S = 1.0
_TARGET_CHECK_INTERVAL_S = 10.0
"""Seconds between two checks for a shorter route, such as a Unix socket, to an address."""
_COOLDOWN_S = 2.0
"""Seconds for which an address that did not respond is skipped."""
_RETRY_SHARE, _RETRY_BURST, _RETRIES_PER_S = 0.2, 100.0, 10.0
_HEDGE_SHARE, _HEDGE_BURST = 0.1, 10.0
_MAX_CONCURRENT_REQUESTS = 64
"""Maximum concurrent requests of one client on an event loop.

Further requests wait here, because graphd would reject them.
"""


class ClientClosed(Unavailable):
    """The client is closed; make a new one with asterism.connect or asterism.open."""

    retry = Retry.NEVER


class ClientTransport(Transport, Protocol):
    """Transport of a client, which reads large replies in chunks."""

    @property
    def piece_bytes(self) -> int:
        """Bytes per chunk of a chunked read; one and a half chunks must fit into a reply."""

    @property
    def prices_requests(self) -> bool:
        """True if the client prices a request before the call, besides the service.

        That saves sending a request for a reply that cannot fit.
        """


def parse_addresses(addresses: str | Sequence[str]) -> tuple[str, ...]:
    """Parse a comma-separated list of addresses into ``host:port`` strings.

    The default port is 9669.

    Raises
    ------
    InvalidRequest
        If an address is malformed, or there is none.
    """
    parts = addresses.split(",") if isinstance(addresses, str) else list(addresses)
    parsed = []
    for part in (part.strip() for part in parts):
        if not part:
            continue
        if part.startswith(_URL_SCHEMES):
            raise InvalidRequest(
                f"addresses={part!r}: expected host:port of a graphd's gRPC port, "
                f"{DEFAULT_PORT} by default; leave out {part.partition('://')[0]}://"
            )
        host, colon, port = part.rpartition(":")
        if not colon or part.endswith("]"):
            parsed.append(f"{part}:{DEFAULT_PORT}")
        elif host and port.isdigit() and 0 < int(port) < 1 << 16:
            parsed.append(part)
        else:
            raise InvalidRequest(
                f"addresses={part!r}: expected host:port, with a port from 1 to 65535"
            )
    if not parsed:
        raise InvalidRequest(
            f"addresses={addresses!r}: expected host:port, or several separated by commas"
        )
    return tuple(parsed)


class GrpcTransport:
    """Transport over gRPC to one of several graphds.

    Calls rotate over the addresses and skip one that does not respond for a moment. `Unavailable`,
    `Stale` and `Busy` errors are retried (at another address first) with jittered backoff within
    the timeout of the call. A budget limits retries to a fifth of the calls, or ten per second,
    beyond an initial hundred.

    Parameters
    ----------
    addresses : str or sequence of str
        Addresses, such as ``"host:9669,host2:9669"``.
    hedge : float or "p95", optional
        Send a read to a second address if it has no reply after this many seconds, or ("p95") after
        longer than 95 of 100 recent reads of its kind. The first reply counts, and the other
        request is cancelled. Beyond the first ten, at most a tenth of the calls are hedged. None:
        never.
    waits : Waiter
        Implementation of waiting; threads by default.
    tls : TlsOptions, optional
        TLS of the connections. None: without TLS.
    credentials : Credentials, optional
        Key or token that every request carries. None: none.

    Raises
    ------
    InvalidRequest
        If an address, ``hedge`` or a file of ``tls`` is invalid.
    """

    prices_requests = True
    piece_bytes = 4 << 20
    """Bytes per chunk of a chunked read.

    At this size, the copies of a message reuse memory of the process; the memory of larger ones is
    returned to the system each time.
    """

    def __init__(
        self,
        addresses: str | Sequence[str],
        *,
        hedge: float | str | None = None,
        waits: Waiter = THREAD_WAITER,
        tls: TlsOptions | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self.addresses = parse_addresses(addresses)
        self._credentials = credentials
        self._tls = None if tls is None else TlsClient(tls)
        self._hedge, self._waiter = hedge, waits
        self._delays = None if hedge is None else HedgeDelays(hedge)
        self._lock = threading.Lock()
        self._pid = 0
        self._channels: list[grpc.Channel] = []
        self._targets: list[tuple[str, int]] = []
        """Target of each channel: the address, or a shorter route to it. With TLS, also the version
        of the certificates."""
        self._checked_at: list[float] = []
        """Monotonic time of the last check of each target."""
        self._retired_channels: list[grpc.Channel] = []
        """Channels that are no longer called."""
        self._stubs: dict[tuple[int, str], Any] = {}
        self._cooldown_ends: dict[int, float] = {}
        self._next_address = 0
        self._closed = False
        self._caller = ((CALLER_KEY, secrets.token_hex(8)),)
        self._counts: dict[str, int] = {}
        self._retries = RetryBudget(share=_RETRY_SHARE, burst=_RETRY_BURST, per_s=_RETRIES_PER_S)
        self._hedges = RetryBudget(share=_HEDGE_SHARE, burst=_HEDGE_BURST)
        self._slots = FairSemaphore(waits, _MAX_CONCURRENT_REQUESTS)
        FORK_GUARD.add_lock_owner(self)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "addresses": self.addresses,
            "hedge": self._hedge,
            "waits": self._waiter,
            "tls": self._tls and self._tls.options,
            "credentials": self._credentials,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # a copy in another process starts afresh

    def renew_lock(self) -> None:
        """Replace the lock in a forked child."""
        self._lock = threading.Lock()

    @property
    def traffic(self) -> Traffic:
        """Counts of calls, requests, retries and hedges so far."""
        with self._lock:
            return Traffic(**self._counts)

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """Send a request and return the reply.

        Parameters
        ----------
        method : Method
            Method to call.
        request : Message or Frame
            Its request.
        timeout_s : float
            Timeout in seconds, retries included.

        Returns
        -------
        Message or Frame
            The reply.

        Raises
        ------
        InvalidRequest
            If the request exceeds the maximum message size.
        Deadline
            If there is no reply in time.
        AsterismError
            If the service returns an error that is not retried, or retries are exhausted.
        """
        deadline = time.monotonic() + timeout_s
        data = method.pack(request)
        if len(data) > MAX_MESSAGE_BYTES:
            raise InvalidRequest(
                f"request of {len(data)} bytes: expected at most {MAX_MESSAGE_BYTES} bytes in "
                f"{method.python_name}; split it into smaller requests"
            )
        self._count(calls=1)
        for attempt in range(_ATTEMPTS):
            try:
                return method.unpack_reply(self._send_queued(method, data, deadline))
            except (Unavailable, Stale, Busy) as error:
                retryable = not self._is_permanent(error) and (
                    method.path not in NON_IDEMPOTENT_METHODS
                    or (isinstance(error, Unavailable) and error.never_arrived)
                )
                backoff = min(_FIRST_BACKOFF_S * 2**attempt, _MAX_BACKOFF_S)
                pause = max(backoff * random.uniform(0.5, 1.0), error.retry_after_s)
                if (
                    not retryable
                    or attempt + 1 == _ATTEMPTS
                    or not self._may_retry(deadline, pause)
                ):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _is_permanent(self, error: AsterismError) -> bool:
        """Return whether no other attempt can succeed; of several addresses, another one may."""
        return isinstance(error, Deadline | ClientClosed) or (
            isinstance(error, TlsMismatch) and len(self.addresses) == 1
        )

    def _may_retry(self, deadline: float, pause: float) -> bool:
        """Wait for the next attempt; return False if the call would time out before it."""
        remaining = deadline - time.monotonic()
        with self._lock:
            wait = self._retries.reserve(remaining) if pause < remaining else None
        if wait is None:
            return False
        self._count(retries=1)
        self._waiter.sleep(max(pause, wait))
        return True

    def close(self) -> None:
        """Close this process's channels."""
        with self._lock:
            self._closed = True
            if self._pid == os.getpid():
                for channel in [*self._channels, *self._retired_channels]:
                    channel.close()
            self._channels, self._retired_channels, self._stubs = [], [], {}

    def _send_queued(self, method: Method, data: bytes, deadline: float) -> bytes:
        if not self._waiter.in_greenlet():
            return self._send_once(method, data, deadline)
        if not self._slots.acquire(max(deadline - time.monotonic(), 0.0)):
            raise Deadline(
                f"{method.python_name}: timed out before it was sent; pass a longer timeout_s, or "
                "make fewer calls at a time"
            )
        try:
            return self._send_once(method, data, deadline)
        finally:
            self._slots.release()

    def _send_once(self, method: Method, data: bytes, deadline: float) -> bytes:
        """Send the request to the next address, possibly hedged, and return the reply."""
        address_index, stub = self._stub(method.path)
        started_at = time.monotonic()
        if started_at >= deadline:
            raise Deadline(f"{method.python_name}: timed out; pass a longer timeout_s")
        metadata = self._metadata()
        hedged = (
            self._delays is not None and method.path in HEDGED_METHODS and len(self.addresses) > 1
        )
        if hedged or self._waiter.in_greenlet():
            hedged_request = HedgedRequest(self._waiter.event(), data, metadata, deadline)
            try:
                hedged_request.send(address_index, stub)
                return self._first_reply(hedged_request, method, hedged)
            finally:
                hedged_request.cancel()
        self._count(requests=1)
        try:
            with FORK_GUARD.call_scope():
                reply: bytes = stub(data, timeout=deadline - started_at, metadata=metadata)
        except grpc.RpcError as rpc_error:
            raise self._translate_error(rpc_error, address_index) from None
        return reply

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        if self._credentials is None:
            return self._caller
        return self._caller + self._credentials.metadata()

    def _first_reply(self, hedged_request: HedgedRequest, method: Method, hedged: bool) -> bytes:
        """Return the first reply to a sent request, after hedging it if it is slow."""
        self._count(requests=1)
        first = hedged_request.attempts[0]
        delay = self._delays.delay_for(method.path) if hedged and self._delays is not None else None
        if (
            delay is not None
            and not hedged_request.event.wait(delay)
            and (other := self._hedge_target(first.address_index, method.path)) is not None
        ):
            self._count(requests=1, hedges=1)
            hedged_request.send(*other)
        winner = hedged_request.first_response()
        if winner is not first:
            with self._lock:
                self._cooldown_ends[first.address_index] = time.monotonic() + _COOLDOWN_S
            self._count(hedges_won=1)
        try:
            reply: bytes = winner.future.result()
        except grpc.RpcError as rpc_error:
            raise self._translate_error(rpc_error, winner.address_index) from None
        if self._delays is not None:
            self._delays.record(method.path, time.monotonic() - winner.sent_at)
        return reply

    def _hedge_target(self, first: int, path: str) -> tuple[int, Any] | None:
        """Return another address and its stub for ``path``; None if there is none or no budget."""
        now = time.monotonic()
        with self._lock:
            candidates = [(first + i) % len(self.addresses) for i in range(1, len(self.addresses))]
            available = [
                index for index in candidates if self._cooldown_ends.get(index, 0.0) <= now
            ]
            if not available or self._closed or not self._hedges.try_withdraw():
                return None
            return available[0], self._stub_at(available[0], path)

    def _translate_error(self, rpc_error: grpc.RpcError, address_index: int) -> AsterismError:
        """Return the typed error; skip an address that did not respond for a while."""
        address = self.addresses[address_index]
        error = error_from_rpc(rpc_error, f"graphd at {address}")
        if isinstance(error, Unavailable) and not isinstance(error, Deadline):
            with self._lock:
                self._cooldown_ends[address_index] = time.monotonic() + _COOLDOWN_S
                if error.never_arrived:
                    # The daemon may have restarted, and may be reachable by another route.
                    self._checked_at[address_index] = -math.inf
            mismatch = tls_mismatch(
                rpc_error.details() or "",
                peer=f"graphd at {address}",
                address=address,
                tls=self._tls,
                remedies=REMEDIES,
            )
            if mismatch is not None:
                mismatch.never_arrived = True
                return mismatch
        return error

    def _count(self, **increments: int) -> None:
        with self._lock:
            if "calls" in increments:
                self._retries.deposit()
                self._hedges.deposit()
            for name, number in increments.items():
                self._counts[name] = self._counts.get(name, 0) + number

    def _stub(self, path: str) -> tuple[int, Any]:
        """Return the next address that is not skipped, and its stub for ``path``."""
        with self._lock:
            if self._closed:
                raise ClientClosed
            if self._pid != os.getpid():
                # In a forked child, the threads of the parent's channels do not exist. The channels
                # are left alone, not closed.
                self._pid, self._stubs, self._cooldown_ends = os.getpid(), {}, {}
                self._targets = [self._find_target(address) for address in self.addresses]
                self._channels = [self._open_channel(target) for target, _ in self._targets]
                self._checked_at = [time.monotonic()] * len(self.addresses)
                self._next_address = random.randrange(len(self.addresses))
            now = time.monotonic()
            order = [
                (self._next_address + i) % len(self.addresses) for i in range(len(self.addresses))
            ]
            address_index = next(
                (i for i in order if self._cooldown_ends.get(i, 0.0) <= now), order[0]
            )
            self._next_address = (address_index + 1) % len(self.addresses)
            if now - self._checked_at[address_index] > _TARGET_CHECK_INTERVAL_S:
                self._refresh_channel(address_index, now)
            return address_index, self._stub_at(address_index, path)

    def _refresh_channel(self, address_index: int, now: float) -> None:
        """Replace the channel to an address if its best route has changed."""
        self._checked_at[address_index] = now
        target = self._find_target(self.addresses[address_index])
        if target != self._targets[address_index]:
            self._retired_channels.append(
                self._channels[address_index]
            )  # Calls may still be active there.
            self._channels[address_index] = self._open_channel(target[0])
            self._targets[address_index] = target
            self._stubs = {
                key: stub for key, stub in self._stubs.items() if key[0] != address_index
            }

    def _find_target(self, address: str) -> tuple[str, int]:
        # With TLS, a daemon has no Unix sockets.
        return (grpc_target(address), 0) if self._tls is None else (address, self._tls.version())

    def _open_channel(self, target: str) -> grpc.Channel:
        if self._tls is None:
            return grpc.insecure_channel(target, options=_OPTIONS)
        return self._tls.channel(target, _OPTIONS)

    def _stub_at(self, address_index: int, path: str) -> Any:
        stub = self._stubs.get((address_index, path))
        if stub is None:
            stub = self._stubs[address_index, path] = self._channels[address_index].unary_unary(
                path
            )
        return stub
