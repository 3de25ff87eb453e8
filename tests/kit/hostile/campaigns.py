"""Campaigns of hostile inputs against the ports of a `Target`: outcomes by code, and faults."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
from google.protobuf.message import DecodeError

from asterism_access.requirements import REQUIREMENTS, Scope
from asterism_access.roles import Role
from asterism_daemonkit.rpc.tcp_client import (
    GREETING,
    MAGIC,
    MAX_TICKET_BYTES,
    REFUSED,
    REPLY,
    REQUEST,
    TCP_METHODS,
    method_id,
)
from asterism_proto.errors import AsterismError
from asterism_proto.framing import Frame, decode
from asterism_proto.methods import ACCESS, CATALOG, GRAPH, HEARTBEATS, STORE, Method
from tests.kit.fuzzing import http_requests
from tests.kit.hostile import http2, inputs
from tests.kit.hostile.target import Addresses
from tests.kit.waiting import HANG_S

METHODS: Mapping[str, Sequence[Method]] = {
    "graphd": [*GRAPH.values(), *CATALOG.values(), *ACCESS.values()],
    "metad": [*CATALOG.values(), *ACCESS.values(), *HEARTBEATS.values()],
    "storaged": list(STORE.values()),
}
_FAULTS = ("INTERNAL", "UNKNOWN", "HTTP", "Internal")
_REFUSALS = (
    "UNAUTHENTICATED",
    "DEADLINE_EXCEEDED",
    "RESOURCE_EXHAUSTED",
    "UNIMPLEMENTED",
    "RESET",
    "CLOSED",
)
"""Outcomes of calls without an accepted credential, which may end before it is read."""
_BATCH = 16
_BINARY_BATCH = 48
"""Requests that are sent at once over the binary endpoint, so that neither side waits for each."""
_PROBES = ("/healthz", "/readyz", "/metrics")


@dataclass
class Outcome:
    """Outcomes of the inputs of a campaign."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Number of inputs."""
        return self.counts.total()

    def note(self, outcome: str, description: str, *, is_fault: bool) -> None:
        """Count an outcome, and keep the description of a fault."""
        self.counts[outcome] += 1
        if is_fault and len(self.faults) < 20:
            self.faults.append(f"{outcome}: {description}")


def _knowns(addresses: Addresses) -> list[Mapping[str, object]]:
    """Return known values of fields: of the reader's space, and of the other one."""
    common: Mapping[str, object] = {
        "version": 1,
        "digest": addresses.digest,
        "count": 3,
        "limit": 3,
        "types": [0],
        "parts": [0],
        "job_id": 1,
        "load_id": 1,
        "principal": "rita",
        "role": 5,
        "statement": "SHOW SPACES",
    }
    return [
        {**common, "space": name, "name": name, "space_id": addresses.space_ids[name]}
        for name in ("shop", "bank")
    ]


def _may(method: Method, content: Any, addresses: Addresses) -> bool:
    """Return whether the reader of ``shop`` may make a call."""
    requirement = REQUIREMENTS[method.path]
    head = content.head if isinstance(content, Frame) else content
    match requirement.scope:
        case Scope.SPACE:
            return requirement.role is Role.READER and head.space == "shop"
        case Scope.SPACE_ID:
            named = head.version_ref if hasattr(head, "version_ref") else head
            shop = named.space_id == addresses.space_ids["shop"]
            return requirement.role is Role.READER and shop
        case Scope.CLUSTER | Scope.DAEMON:
            return False
        case _:
            return requirement.role is Role.READER or not requirement.changes


def grpc_calls(addresses: Addresses, daemon: str, count: int, seed: int) -> Outcome:
    """Make calls of every method of a daemon with mutated messages and credentials."""
    rng, outcome = random.Random(seed), Outcome()
    is_storaged = daemon == "storaged"
    good, other = addresses.reader, addresses.ticket
    credentials = inputs.Credentials(*((other, ["ak_x"]) if is_storaged else (good, [other])))
    knowns = _knowns(addresses)
    corpus = {
        method.path: inputs.requests(method, knowns, envelope=True) for method in METHODS[daemon]
    }
    connection = http2.Connection(addresses.grpc[daemon], HANG_S)
    while outcome.total < count:
        if not connection.is_open or outcome.total % (_BATCH * 50) == 0:
            connection.close()
            connection = http2.Connection(addresses.grpc[daemon], HANG_S)
        sent = []
        for _ in range(min(_BATCH, count - outcome.total)):
            method = rng.choice(METHODS[daemon])
            data = rng.choice(corpus[method.path])
            data = data if rng.random() < 0.1 else inputs.mutated(data, rng)
            credential = credentials.pick(rng)
            path = method.path if rng.random() < 0.98 else method.path + rng.choice("/x?\xe9")
            more = [(b"grpc-timeout", rng.choice(inputs.TIMEOUTS))]
            headers = http2.call_headers(path, credential.text, more)
            sent.append((method, data, credential, http2.Call(headers, http2.message(data))))
        for (method, data, credential, _), status in zip(
            sent, connection.statuses([call for *_, call in sent]), strict=True
        ):
            is_fault = status in _FAULTS
            if not credential.is_accepted:
                is_fault |= status not in _REFUSALS
            elif status == "OK":
                is_fault |= not _may(method, method.unpack_request(data), addresses)
            outcome.note(status, f"{daemon} {method.name} {data.hex()}", is_fault=is_fault)
    connection.close()
    return outcome


_CLOSED = frozenset({"CLOSED", "GOAWAY"})
"""Outcomes of bytes that are no HTTP/2, or only manage a connection."""
_ENDED = _CLOSED | {"RESET", "UNAVAILABLE"}
"""Outcomes of a call that ends before it is served: gRPC says UNAVAILABLE for its connection."""
_UNPARSED = _ENDED | {"INTERNAL", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED"}
"""... and of one that gRPC itself refuses; a daemon's own errors have an explanation."""
_SERVED = _UNPARSED | {"UNAUTHENTICATED!", "PERMISSION_DENIED!", "NOT_FOUND!", "INVALID_ARGUMENT!"}
"""... and of one with a damaged message that may reach a handler."""
_HTTP2_OUTCOMES: Mapping[str, frozenset[str]] = {
    "noise": _CLOSED,
    "mutated opening": _ENDED,
    "HTTP/1.1": _CLOSED,
    "random frames": _UNPARSED,
    "long frame": _CLOSED,
    "mutated headers": _UNPARSED | {"UNAUTHENTICATED!"},
    "endless headers": _ENDED | {"RESOURCE_EXHAUSTED"},
    "large header": _UNPARSED | {"UNAUTHENTICATED!"},
    "ended calls": _UNPARSED | {"UNAUTHENTICATED!"},
    "control frames": _ENDED,
    "wrong length": _SERVED,
    "number of messages": _SERVED | {"OK"},
    "compressed message": _SERVED,
    "unknown stream": _ENDED,
    "wrong timeout": _UNPARSED | {"UNAUTHENTICATED!"},
    "mutated call": _SERVED | {"OK"},
}
"""Outcomes that are allowed for each kind of bytes, with an accepted credential."""
_ANSWERED = ("wrong length", "number of messages", "compressed message")
"""Kinds that gRPC or a daemon answers; the connection stays open until then."""


def http2_bytes(addresses: Addresses, count: int, seed: int) -> Outcome:
    """Send bytes that are hardly HTTP/2, each over a connection of its own."""
    rng, outcome = random.Random(seed), Outcome()
    credentials = inputs.Credentials(addresses.reader, [addresses.ticket])
    methods = [GRAPH["sample_nodes"], CATALOG["describe_space"], GRAPH["get_routes"]]
    for _ in range(count):
        used: list[inputs.Credential] = []

        def call(used: list[inputs.Credential] = used) -> http2.Call:
            used.append(credentials.pick(rng))
            headers = http2.call_headers(rng.choice(methods).path, used[-1].text)
            return http2.Call(headers, http2.message(rng.randbytes(9)))

        kind = rng.choice(inputs.HTTP2_KINDS)
        data = inputs.http2_bytes(rng, kind, call)
        daemon = rng.choice(("graphd", "metad", "storaged"))
        is_accepted = daemon != "storaged" and any(entry.is_accepted for entry in used)
        reply = _exchange(addresses.grpc[daemon], data, until_answered=kind in _ANSWERED)
        found = http2.reply_outcomes(reply)
        allowed = _HTTP2_OUTCOMES[kind] if is_accepted else _HTTP2_OUTCOMES[kind] - _WITH_ROLES
        text = f"{daemon} {kind}, {sorted(found)}: {data.hex()[:400]}"
        outcome.note(max(found, key=_http2_rank), text, is_fault=not found <= allowed)
    return outcome


_WITH_ROLES = {"OK", "PERMISSION_DENIED!", "NOT_FOUND!", "INVALID_ARGUMENT!"}
"""Outcomes that need an accepted credential."""


def _http2_rank(name: str) -> tuple[bool, bool, str]:
    """Return the order in which the outcomes of one connection are counted."""
    return name == "OK", name not in _ENDED, name


def _exchange(address: str, data: bytes, *, until_answered: bool = False) -> bytes:
    """Send bytes over a new connection, end it on this side, and return the reply.

    With ``until_answered``, the connection is ended after the answer to the first call.
    """
    out = bytearray()
    with _connect(address) as connection:
        with contextlib.suppress(ConnectionError):
            with contextlib.suppress(OSError):  # the server may have ended it
                connection.sendall(data)
            while until_answered and not http2.is_answered(bytes(out)):
                piece = connection.recv(1 << 16)
                if not piece:
                    break
                out += piece
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(1 << 16):
                out += piece
    return bytes(out)


class _BinaryConnection:
    """Connection to the binary endpoint after its greeting."""

    def __init__(self, addresses: Addresses) -> None:
        self._socket = _connect(addresses.binary)
        self._received = self._socket.makefile("rb")
        ticket = addresses.ticket.encode()
        self._socket.sendall(GREETING.pack(MAGIC, len(ticket), addresses.handshake_key) + ticket)
        magic, refused, _ = GREETING.unpack(_read(self._received, GREETING.size))
        assert (magic, refused) == (MAGIC, 0)
        self.is_open = True

    def replies(self, requests: Sequence[bytes], *, is_last: bool) -> list[str]:
        """Send requests at once; return ``OK`` or the name of an error for each, in order.

        After the last ones, this side of the connection is closed: the server waits for nothing.
        """
        out = []
        with contextlib.suppress(ConnectionError, EOFError):
            self._socket.sendall(b"".join(requests))
            if is_last:
                self._socket.shutdown(socket.SHUT_WR)
            for _ in requests:
                magic, status, length = REPLY.unpack(_read(self._received, REPLY.size))
                assert magic == MAGIC
                text = _read(self._received, length)
                out.append("OK" if status == 0 else text.split(b"\n")[0].decode())
        self.is_open = len(out) == len(requests) and not is_last
        return out + ["CLOSED"] * (len(requests) - len(out))

    def close(self) -> None:
        self._received.close()
        self._socket.close()


def _connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), HANG_S)


def _read(received: BinaryIO, length: int) -> bytes:
    data = received.read(length)
    if len(data) < length:
        raise EOFError
    return data


def binary_requests(addresses: Addresses, count: int, seed: int) -> Outcome:
    """Send mutated requests over greeted connections of the binary endpoint."""
    rng, outcome = random.Random(seed), Outcome()
    methods = [method for method in STORE.values() if method.path in TCP_METHODS]
    knowns = _knowns(addresses)
    corpus = {m.path: inputs.requests(m, knowns, envelope=False) for m in methods}
    connection = _BinaryConnection(addresses)
    while outcome.total < count:
        if not connection.is_open:
            connection.close()
            connection = _BinaryConnection(addresses)
        sent: list[tuple[Method, bytes, bytes]] = []
        for _ in range(min(_BINARY_BATCH, count - outcome.total)):
            method = rng.choice(methods)
            body = rng.choice(corpus[method.path])
            body = body if rng.random() < 0.1 else inputs.mutated(body, rng)
            number = method_id(method.path) if rng.random() < 0.98 else rng.getrandbits(32)
            head = REQUEST.pack(MAGIC, number, rng.choice((5_000_000, 5_000_000, 0)), len(body))
            sent.append((method, body, head + body))
        is_last = rng.random() < 0.9
        if is_last:  # it breaks the connection
            method, body, data = sent[-1]
            bad = struct.pack(
                "<IIQQ", rng.choice((MAGIC, 7)), 1, 1 << 40, rng.choice((1 << 27, 1 << 63))
            )
            sent[-1] = (method, body, rng.choice((inputs.mutated(data[:24], rng)[:24], bad)))
        replies = connection.replies([data for *_, data in sent], is_last=is_last)
        for (method, body, _), name in zip(sent, replies, strict=True):
            is_fault = name in _FAULTS or (
                name == "OK" and not _may(method, _decoded(method, body), addresses)
            )
            outcome.note(name, f"{method.name} {body.hex()}", is_fault=is_fault)
    connection.close()
    return outcome


def _decoded(method: Method, body: bytes) -> Any:
    try:
        return decode(body, method.request, envelope=False)
    except (AsterismError, DecodeError):
        return Frame(method.request())


def binary_greetings(addresses: Addresses, count: int, seed: int) -> Outcome:
    """Send greetings with damaged numbers and tickets to the binary endpoint."""
    rng, outcome = random.Random(seed), Outcome()
    credentials = inputs.Credentials(addresses.ticket)
    for _ in range(count):
        credential = credentials.pick(rng)
        ticket = (credential.text or b"").removeprefix(b"Bearer ")
        is_good = ticket == addresses.ticket.encode()
        greeting = GREETING.pack(MAGIC, len(ticket), addresses.handshake_key)
        if rng.random() < 0.3:
            is_good = False
            greeting = rng.choice(
                (
                    GREETING.pack(7, len(ticket), addresses.handshake_key),
                    GREETING.pack(MAGIC, len(ticket), rng.getrandbits(63)),
                    GREETING.pack(MAGIC, MAX_TICKET_BYTES + 1, addresses.handshake_key),
                    GREETING.pack(MAGIC, (1 << 32) - 1, addresses.handshake_key),
                    rng.randbytes(16),
                )
            )
        reply = _exchange(addresses.binary, greeting + ticket)
        accepted = False
        name = "closed"
        if len(reply) >= GREETING.size:
            _, refused, key = GREETING.unpack(reply[: GREETING.size])
            accepted = refused == 0 and key == addresses.handshake_key
            name = "refused" if refused == REFUSED else "greeted" if accepted else "unknown"
        outcome.note(name, (greeting + ticket).hex(), is_fault=accepted and not is_good)
    return outcome


_HTTP_VALUES = {"name": "shop", "space": "shop", "version": "1", "job_id": "1", "type_id": "0"}
_HTTP_BODIES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "/query": [
        {"statement": text, "parameters": {"a": [1, 2]}, "space": "shop", "timeout_s": 5}
        for text in (
            "SAMPLE 5 VERTICES ON n YIELD id",
            "FETCH PROP ON n $a YIELD weight; SHOW SPACES",
            "DROP SPACE bank",
            "SHOW ROLES",
        )
    ],
    "/ui/api/completions": [{"statement": "SAMPLE 5 ", "space": "shop"}],
    "/api/v1/spaces": [{"name": "new", "schema": {"nodes": {"n": {}}}}],
    "/api/v1/jobs": [{"space": "bank", "kind": "build", "options": {}}],
    "/api/v1/spaces/{space}/sample-nodes": [{"types": ["n"], "count": 3}],
    "/verify": [{"space": "shop", "draws": 10, "timeout_s": 0.1, "seed": 1}],
}


def http_calls(addresses: Addresses, daemon: str, count: int, seed: int) -> Outcome:
    """Send mutated requests with mutated credentials to every route of a daemon."""
    rng, outcome = random.Random(seed), Outcome()
    others = [] if daemon == "storaged" else [addresses.ticket]
    credentials = inputs.Credentials(addresses.reader, others)
    connection = http.client.HTTPConnection(addresses.http[daemon], timeout=HANG_S)
    headers = {"authorization": f"Bearer {addresses.reader}"}
    connection.request("GET", "/openapi.json", headers=headers)
    document = json.load(connection.getresponse())
    bodies = {path: found for path, found in _HTTP_BODIES.items() if path in document["paths"]}
    stream = http_requests.requests(
        document, np.random.default_rng(seed), values=_HTTP_VALUES, bodies=bodies
    )
    while outcome.total < count:
        request = next(stream)
        credential = credentials.pick(rng)
        headers = {"content-type": "application/json"} if request.body else {}
        if credential.text is not None:
            headers["authorization"] = credential.text.decode("latin-1")
        try:
            connection.request(request.method, request.target, request.body or None, headers)
            with connection.getresponse() as reply:
                status, content = reply.status, reply.read()
        except (ConnectionError, http.client.HTTPException) as error:
            connection.close()
            outcome.note("closed", f"{request.description}: {error!r}", is_fault=False)
            continue
        is_open = request.target.partition("?")[0] in _PROBES
        is_fault = status >= 500 and status not in (503, 504)
        is_fault |= status < 400 and not credential.is_accepted and not is_open
        text = f"{daemon} {request.description} {credential}: {content[:200]!r}"
        outcome.note(str(status), text, is_fault=is_fault)
    connection.close()
    return outcome


def http_bytes(addresses: Addresses, count: int, seed: int) -> Outcome:
    """Send bytes that are hardly HTTP/1.1, each over a connection of its own."""
    rng, outcome = random.Random(seed), Outcome()
    credentials = inputs.Credentials(addresses.reader, [addresses.ticket])
    for _ in range(count):
        credential = credentials.pick(rng)
        data = inputs.http_bytes(rng, credential.text)
        reply = _exchange(addresses.http[rng.choice(("graphd", "metad", "storaged"))], data)
        statuses = [part[:3].decode("latin-1") for part in reply.split(b"HTTP/1.1 ")[1:]]
        outcome.note(
            statuses[-1] if statuses else "closed",
            f"{data[:300]!r}: {reply[:300]!r}",
            is_fault=any(status.startswith("5") and status != "503" for status in statuses),
        )
    return outcome
