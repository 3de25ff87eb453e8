"""Random bytes at every framed and plain method of a real gRPC door."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism_proto import arrays
from asterism_proto.arrays import Frame
from asterism_proto.errors import REASON_KEY
from asterism_proto.methods import BEATS, CATALOG, GRAPH, STORE, Method
from daemonkit.calls import Call, Content
from daemonkit.channels import RemoteTransport
from daemonkit.server import GrpcServer

TABLES = (GRAPH, STORE, CATALOG, BEATS)
METHODS = [method for table in TABLES for method in table.values()]


@pytest.fixture(scope="module")
def transport() -> Iterator[RemoteTransport]:
    by_path = {method.path: method for method in METHODS}

    def handler_of(method: Method):  # type: ignore[no-untyped-def]
        def handler(request: Content, call: Call) -> Content:
            return Frame(method.reply()) if method.framed else method.reply()

        return handler

    handlers = {path: handler_of(method) for path, method in by_path.items()}
    services = {next(iter(table.values())).service: (table, handlers) for table in TABLES}
    server = GrpcServer(address="127.0.0.1:0", services=services)
    port = server.start()
    held = RemoteTransport(f"127.0.0.1:{port}")
    yield held
    held.close()
    server.stop(0)


def _frame(body: bytes) -> bytes:
    """Bytes that begin like a frame's envelope, so that what is inside is reached."""
    length, out = len(body), bytearray(b"\x0a")
    while length > 0x7F:
        out.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes(out) + bytes([length]) + body


NOISE = st.one_of(
    st.binary(max_size=64),
    st.binary(max_size=200).map(_frame),
    st.binary(max_size=200).map(lambda tail: _frame(arrays.MAGIC.to_bytes(4, "little") + tail)),
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(method=st.sampled_from(METHODS), data=NOISE)
def test_bytes_that_are_no_request_are_invalid_and_never_a_fault_of_ours(transport: RemoteTransport, method: Method, data: bytes) -> None:
    error = transport._stub(method.path).future(data, timeout=10).exception()
    if error is not None:
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT, (method.name, data, error)
        assert (REASON_KEY, "InvalidRequest") in [(key, value) for key, value in error.trailing_metadata()]
        assert error.details()
