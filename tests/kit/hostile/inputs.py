"""Hostile inputs, from a seed: credentials, bytes of messages, frames of HTTP/2, texts of HTTP."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from asterism_proto.framing import Frame, encode
from asterism_proto.methods import Method
from tests.kit.hostile import http2

_EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, (1 << 63) - 1, 1 << 63)


@dataclass(frozen=True, slots=True)
class Credential:
    """An authorization text, and whether it is that of a principal."""

    text: bytes | None
    is_accepted: bool


class Credentials:
    """Credentials that a caller may send: none, good ones, and damaged ones.

    Parameters
    ----------
    good : str
        A credential that the endpoint accepts.
    others : sequence of str
        Credentials that the endpoint refuses, though they are accepted elsewhere.
    """

    def __init__(self, good: str, others: Sequence[str] = ()) -> None:
        self._good, self._others = good, others

    def pick(self, rng: random.Random) -> Credential:
        """Return a credential; every other one is good."""
        if rng.random() < 0.5:
            return Credential(b"Bearer " + self._good.encode(), True)
        action = rng.randrange(7)
        if action == 0:
            return Credential(None, False)
        if action == 1:
            return Credential(
                rng.choice((b"", b"Bearer", b"Bearer ", b"Basic cm9vdDpyb290")), False
            )
        if action == 2:
            return Credential(self._good.encode(), False)
        if action == 3 and self._others:
            return Credential(b"Bearer " + rng.choice(self._others).encode(), False)
        if action == 4:
            return Credential(b"Bearer " + b"ak_" * rng.choice((10, 1000, 3000)), False)
        return Credential(b"Bearer " + damaged(self._good.encode(), rng), False)


def damaged(credential: bytes, rng: random.Random) -> bytes:
    """Return a credential with a flipped bit, or a part of it."""
    if rng.random() < 0.4:
        return credential[: rng.randrange(len(credential))]
    out = bytearray(credential)
    out[rng.randrange(len(out))] ^= 1 << rng.randrange(7)  # ASCII stays ASCII
    return bytes(byte if 32 < byte < 127 else 33 for byte in out)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with one to three changes."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        action = rng.randrange(8)
        at = rng.randrange(len(out) + 1)
        if action <= 1 and out:
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
        elif action == 2:
            del out[at:]
        elif action == 3:
            out[at:at] = rng.randbytes(rng.randint(1, 16))
        elif action == 4:
            out[at:at] = out[max(at - rng.randint(1, 64), 0) : at]
        elif action == 5:
            value = rng.choice(_EXTREMES)
            packed = struct.pack("<Q", value)[: rng.choice((1, 2, 4, 8))]
            out[at : at + len(packed)] = packed
        elif action == 6:
            out[at : at + rng.randint(1, 32)] = b""
        else:
            out[at:] = rng.randbytes(rng.randint(0, 64))
    return bytes(out)


def fill(message: Message, known: Mapping[str, object], depth: int = 2) -> None:
    """Set the fields of a message that have known values by their names."""
    for field in message.DESCRIPTOR.fields:
        value = known.get(field.name)
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            if depth and not field.is_repeated:
                fill(getattr(message, field.name), known, depth - 1)
        elif value is not None and field.is_repeated and isinstance(value, list):
            getattr(message, field.name).extend(value)
        elif value is not None and not field.is_repeated and not isinstance(value, list):
            setattr(message, field.name, value)


_ARRAYS: Sequence[Mapping[str, np.ndarray]] = (
    {},
    {"ids": np.arange(3)},
    {"nodes": np.arange(3), "types": np.zeros(3, np.int32)},
    {"src": np.arange(3), "dst": np.arange(3), "weight": np.ones(3, np.float32)},
)


def requests(
    method: Method, knowns: Sequence[Mapping[str, object]], *, envelope: bool
) -> list[bytes]:
    """Return some requests of a method as bytes, valid or nearly so."""
    out = []
    for known in ({}, *knowns):
        message = method.request()
        fill(message, known)
        if method.is_framed:
            out += [encode(Frame(message, arrays), envelope=envelope) for arrays in _ARRAYS]
        else:
            out.append(message.SerializeToString())
    return out


TIMEOUTS = (b"5S", b"5S", b"5S", b"50m", b"1n", b"99999999H")
"""Values of the header ``grpc-timeout``."""
_BAD_TIMEOUTS = (b"-1S", b"abc", b"1", b"9" * 400)
"""Values that gRPC itself refuses, with INTERNAL, before any code of a daemon runs."""


HTTP2_KINDS = (
    "noise",
    "mutated opening",
    "HTTP/1.1",
    "random frames",
    "long frame",
    "mutated headers",
    "endless headers",
    "large header",
    "ended calls",
    "control frames",
    "wrong length",
    "number of messages",
    "compressed message",
    "unknown stream",
    "wrong timeout",
    "mutated call",
)
"""Kinds of bytes that are not, or hardly, HTTP/2."""


def http2_bytes(rng: random.Random, kind: str, call: Callable[[], http2.Call]) -> bytes:
    """Return bytes of a kind for a new connection."""
    stream = rng.choice((0, 1, 2, 3, 0x7FFFFFFF))
    if kind == "noise":
        return rng.randbytes(rng.randint(1, 300))
    if kind == "mutated opening":
        return mutated(http2.opening(), rng)
    if kind == "HTTP/1.1":
        return b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    if kind == "random frames":
        return http2.opening() + b"".join(
            http2.frame(
                rng.randrange(12),
                rng.randbytes(rng.choice((0, 1, 4, 5, 8, 40))),
                flags=rng.randrange(256),
                stream=rng.choice((0, 1, 3, stream)),
            )
            for _ in range(rng.randint(1, 6))
        )
    if kind == "long frame":  # the head of a frame that lies about its length
        return http2.opening() + b"\xff\xff\xff" + rng.randbytes(6) + rng.randbytes(20)
    if kind == "mutated headers":  # a broken block of headers
        block = mutated(call().headers, rng)
        return http2.opening() + http2.frame(http2.HEADERS, block, flags=4, stream=1)
    if kind == "endless headers":  # headers that never end
        more = http2.frame(http2.CONTINUATION, http2.encode_headers([(b"x", b"y" * 900)]), stream=1)
        start = http2.frame(http2.HEADERS, call().headers, stream=1)
        return http2.opening() + start + more * rng.choice((3, 30, 100))
    if kind == "large header":  # a header of up to 1 MiB
        block = http2.encode_headers(
            [(b"authorization", b"x" * rng.choice((9000, 70_000, 1 << 20)))]
        )
        pieces = [block[at : at + 16384] for at in range(0, len(block), 16384)]
        return (
            http2.opening()
            + http2.frame(http2.HEADERS, call().headers, stream=1)
            + b"".join(http2.frame(http2.CONTINUATION, piece, stream=1) for piece in pieces[:-1])
            + http2.frame(http2.CONTINUATION, pieces[-1], flags=4, stream=1)
        )
    if kind == "ended calls":  # calls that are ended at once
        return http2.opening() + b"".join(
            http2.frame(http2.HEADERS, call().headers, flags=4, stream=number)
            + http2.frame(http2.RST_STREAM, struct.pack(">I", 8), stream=number)
            for number in range(1, 2 * rng.randint(2, 40), 2)
        )
    if kind == "control frames":
        frame_kind = rng.choice((http2.PING, http2.SETTINGS, http2.PRIORITY, http2.WINDOW_UPDATE))
        payload = rng.randbytes(
            {http2.PING: 8, http2.PRIORITY: 5, http2.WINDOW_UPDATE: 4}.get(frame_kind, 6)
        )
        one = http2.frame(frame_kind, payload, stream=rng.choice((0, 1)))
        return http2.opening() + one * rng.randint(1, 200)
    headers = http2.frame(http2.HEADERS, call().headers, flags=4, stream=1)
    if kind == "wrong length":  # a message that is shorter than its prefix says
        body = http2.message(b"abc", length=rng.choice((2, 4, 1 << 20, 0xFFFFFFFF)))
        return http2.opening() + headers + http2.frame(http2.DATA, body, flags=1, stream=1)
    if kind == "number of messages":  # no message, or several
        body = http2.message(b"") * rng.choice((0, 2, 30))
        return http2.opening() + headers + http2.frame(http2.DATA, body, flags=1, stream=1)
    if kind == "compressed message":  # compressed: nonsense, or a bomb
        encoding = http2.encode_headers(
            [(b"grpc-encoding", rng.choice((b"gzip", b"deflate", b"x")))]
        )
        data = rng.choice((_BOMB, b"nonsense"))
        block = call().headers + encoding
        return (
            http2.opening()
            + http2.frame(http2.HEADERS, block, flags=4, stream=1)
            + http2.frame(http2.DATA, http2.message(data, compressed=True), flags=1, stream=1)
        )
    if kind == "unknown stream":  # data of streams that do not exist
        return http2.opening() + http2.frame(http2.DATA, b"x" * 30, flags=8, stream=stream)
    if kind == "wrong timeout":
        timeout = http2.encode_headers([(b"grpc-timeout", rng.choice(_BAD_TIMEOUTS))])
        block = call().headers + timeout
        return http2.opening() + http2.frame(http2.HEADERS, block, flags=4, stream=1)
    return http2.opening() + mutated(headers + http2.frame(http2.DATA, call().body, stream=1), rng)


_BOMB = gzip.compress(bytes(4 << 20), 9)


def http_bytes(rng: random.Random, authorization: bytes | None) -> bytes:
    """Return bytes that are not, or hardly, a request of HTTP/1.1."""
    action = rng.randrange(14)
    credential = b"" if authorization is None else b"Authorization: " + authorization + b"\r\n"
    host = b"Host: localhost\r\n" + credential
    json_post = b"POST /query HTTP/1.1\r\n" + host + b"Content-Type: application/json\r\n"
    if action == 0:
        return rng.randbytes(rng.randint(1, 400))
    if action == 1:
        return mutated(b"GET /status HTTP/1.1\r\n" + host + b"\r\n", rng)
    if action == 2:  # a header of up to 1 MiB
        value = b"a" * rng.choice((8 << 10, 63 << 10, 65 << 10, 1 << 20))
        return b"GET /status HTTP/1.1\r\n" + host + b"X: " + value + b"\r\n\r\n"
    if action == 3:
        return (
            b"GET /status HTTP/1.1\r\n" + host + b"X: 1\r\n" * rng.choice((100, 20_000)) + b"\r\n"
        )
    if action == 4:
        chunks = rng.choice(
            (b"ZZ\r\n", b"5\r\nab\r\n0\r\n\r\n", b"ffffffffffffffff\r\nx", b"0\r\n\r\n")
        )
        return json_post + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    if action == 5:
        lengths = (b"-1", b"1e3", b"9" * 30, b"0x10", b"\xb2", b"2, 2", b"2097152", b"")
        return json_post + b"Content-Length: " + rng.choice(lengths) + b"\r\n\r\n{}"
    if action == 6:
        return json_post + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"
    if action == 7:
        return json_post + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    if action == 8:  # deep JSON
        body = rng.choice((b"[", b'{"a":')) * rng.choice((100, 5000, 100_000))
        return json_post + b"Content-Length: %d\r\n\r\n" % len(body) + body
    if action == 9:  # a compressed body
        head = json_post + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(_BOMB)
        return head + _BOMB
    if action == 10:
        upgrade = rng.choice((b"websocket", b"h2c", b"TLS/1.3"))
        return (
            b"GET /status HTTP/1.1\r\n"
            + host
            + b"Connection: Upgrade\r\nUpgrade: "
            + upgrade
            + b"\r\n\r\n"
        )
    if action == 11:
        method = rng.choice((b"TRACE", b"CONNECT", b"PRI", b"get", b"X" * 5000))
        target = rng.choice(
            (b"/", b"*", b"http://evil/", b"/%00/../../etc/passwd", b"/" + b"a" * 60_000)
        )
        return method + b" " + target + b" HTTP/1.1\r\n" + host + b"\r\n"
    if action == 12:
        return b"GET /status HTTP/1.1\r\nHost: evil.example\r\n" + credential + b"\r\n"
    many = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * rng.choice((2, 20))
    return many + mutated(b"GET /status HTTP/1.1\r\n" + host + b"\r\n", rng)
