"""HTTP/2 as bytes: frames and headers that no library would send, and the status of each call."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import grpc

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE = range(9)
CONTINUATION = 9
END_STREAM, END_HEADERS = 0x1, 0x4
_ACK, _PADDED = 0x1, 0x8
_LARGE_WINDOW = (1 << 30) - 1
_CODES = [code.name for code in sorted(grpc.StatusCode, key=lambda code: code.value[0])]
"""Names of the statuses of gRPC, by number."""
_STATIC_NAMES = {8: (":status", "200"), 12: (":status", "400")}

Header = tuple[bytes, bytes]


def frame(kind: int, payload: bytes, *, flags: int = 0, stream: int = 0) -> bytes:
    """Return a frame."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def encode_integer(value: int, prefix_bits: int, first: int = 0) -> bytes:
    """Return an integer of HPACK."""
    limit = (1 << prefix_bits) - 1
    if value < limit:
        return bytes([first | value])
    out, value = bytearray([first | limit]), value - limit
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes([*out, value])


def encode_headers(headers: Iterable[Header]) -> bytes:
    """Return a header block of literals, without compression."""
    return b"".join(
        b"\0" + encode_integer(len(name), 7) + name + encode_integer(len(value), 7) + value
        for name, value in headers
    )


def settings(values: Sequence[tuple[int, int]]) -> bytes:
    """Return the frame of some settings."""
    return frame(SETTINGS, b"".join(struct.pack(">HI", key, value) for key, value in values))


def opening() -> bytes:
    """Return the bytes that open a connection: no table of headers, and large windows."""
    return (
        PREFACE
        + settings([(1, 0), (4, _LARGE_WINDOW)])
        + frame(WINDOW_UPDATE, struct.pack(">I", _LARGE_WINDOW))
    )


def call_headers(path: str, authorization: bytes | None, more: Sequence[Header] = ()) -> bytes:
    """Return the header block of a gRPC call."""
    return encode_headers(
        [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", path.encode()),
            (b":authority", b"localhost"),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
            *(() if authorization is None else ((b"authorization", authorization),)),
            *more,
        ]
    )


def message(data: bytes, *, compressed: bool = False, length: int | None = None) -> bytes:
    """Return a gRPC message with its prefix; ``length`` replaces the true one."""
    return struct.pack(">BI", compressed, len(data) if length is None else length) + data


def _decode_integer(block: bytes, at: int, prefix_bits: int) -> tuple[int, int]:
    limit = (1 << prefix_bits) - 1
    value = block[at] & limit
    at += 1
    if value == limit:
        shift = 0
        while True:
            byte = block[at]
            at += 1
            value += (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
    return value, at


def decode_headers(block: bytes) -> dict[str, str]:
    """Return the headers of a block without a dynamic table; a Huffman code reads as ``?``."""
    headers, at = {}, 0

    def text(at: int) -> tuple[str, int]:
        length, start = _decode_integer(block, at, 7)
        is_huffman = block[at] & 0x80
        raw = "?" if is_huffman else block[start : start + length].decode("latin-1")
        return raw, start + length

    while at < len(block):
        first = block[at]
        if first & 0x80:  # a header of the static table
            index, at = _decode_integer(block, at, 7)
            name, value = _STATIC_NAMES.get(index, (f"#{index}", ""))
        elif first & 0xE0 == 0x20:  # the size of the dynamic table
            _, at = _decode_integer(block, at, 5)
            continue
        else:
            index, at = _decode_integer(block, at, 6 if first & 0x40 else 4)
            name = f"#{index}"
            if not index:
                name, at = text(at)
            value, at = text(at)
        headers[name] = value
    return headers


def _frames(reply: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield kind, flags and payload of the complete frames of a reply."""
    at = 0
    while at + 9 <= len(reply):
        end = at + 9 + int.from_bytes(reply[at : at + 3], "big")
        if end > len(reply):
            return
        yield reply[at + 3], reply[at + 4], reply[at + 9 : end]
        at = end


def is_answered(reply: bytes) -> bool:
    """Return whether a reply has the end of a call or of the connection."""
    return any(
        kind in (RST_STREAM, GOAWAY) or (kind == HEADERS and flags & END_STREAM)
        for kind, flags, _ in _frames(reply)
    )


def reply_outcomes(reply: bytes) -> set[str]:
    """Return what a server sent over a connection, without its own settings.

    Each is the name of a gRPC code, with ``!`` if a daemon explained it; ``HTTP`` for a status of
    HTTP alone, ``RESET`` or ``GOAWAY``. A connection without any of them is ``CLOSED``.
    """
    outcomes = set()
    for kind, flags, payload in _frames(reply):
        if kind == RST_STREAM:
            outcomes.add("RESET")
        elif kind == GOAWAY:
            outcomes.add("GOAWAY")
        elif kind == HEADERS and flags & END_STREAM:
            headers = decode_headers(payload)
            outcomes.add(_code(headers) + "!" * ("asterism-reason" in headers))
    return outcomes or {"CLOSED"}


def _code(headers: dict[str, str]) -> str:
    """Return the name of the gRPC code in some headers; ``HTTP`` without one."""
    status = headers.get("grpc-status", "")
    return _CODES[int(status)] if status.isdigit() and int(status) < len(_CODES) else "HTTP"


@dataclass(frozen=True, slots=True)
class Call:
    """A call to send: its header block and its message with the prefix."""

    headers: bytes
    body: bytes


class Connection:
    """A connection that sends calls and collects the status of each.

    Parameters
    ----------
    address : str
    timeout_s : float
        Seconds that the server may be silent.
    """

    def __init__(self, address: str, timeout_s: float) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()
        self._window = 65535
        self._stream = 1
        self.is_open = True
        self._socket.sendall(opening())

    def close(self) -> None:
        """Close the connection."""
        self.is_open = False
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        try:
            self._socket.sendall(data)
        except OSError:
            self.is_open = False

    def statuses(self, calls: Sequence[Call]) -> list[str]:
        """Send calls at once and return their statuses in order.

        A status is the name of a gRPC code, ``RESET`` for a stream that the server ended, or
        ``CLOSED`` if the connection ended before.
        """
        numbers, out = [], bytearray()
        for call in calls:
            numbers.append(self._stream)
            out += frame(HEADERS, call.headers, flags=END_HEADERS, stream=self._stream)
            out += frame(DATA, call.body, flags=END_STREAM, stream=self._stream)
            self._window -= len(call.body)
            self._stream += 2
        found: dict[int, str] = {}
        while self._window < 0 and self.is_open:
            self._read(found)
        self.send(bytes(out))
        while self.is_open and len(found) < len(numbers):
            self._read(found)
        return [found.get(number, "CLOSED") for number in numbers]

    def _read(self, found: dict[int, str]) -> None:
        try:
            data = self._socket.recv(1 << 18)
        except ConnectionError:
            data = b""
        if not data:
            self.is_open = False
            return
        self._buffer += data
        while len(self._buffer) >= 9:
            length = int.from_bytes(self._buffer[:3], "big")
            if len(self._buffer) < 9 + length:
                return
            kind, flags = self._buffer[3], self._buffer[4]
            stream = int.from_bytes(self._buffer[5:9], "big")
            payload = bytes(self._buffer[9 : 9 + length])
            del self._buffer[: 9 + length]
            self._take(kind, flags, stream, payload, found)

    def _take(
        self, kind: int, flags: int, stream: int, payload: bytes, found: dict[int, str]
    ) -> None:
        if kind == SETTINGS and not flags & _ACK:
            self.send(frame(SETTINGS, b"", flags=_ACK))
        elif kind == PING and not flags & _ACK:
            self.send(frame(PING, payload, flags=_ACK))
        elif kind == WINDOW_UPDATE and stream == 0:
            self._window += int.from_bytes(payload, "big")
        elif kind == RST_STREAM:
            found.setdefault(stream, "RESET")
        elif kind == HEADERS and flags & END_STREAM:
            found[stream] = _code(decode_headers(payload))
