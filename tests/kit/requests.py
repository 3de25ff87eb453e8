"""Stub endpoints of graphds over real gRPC: one configurable call, with a record."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_daemonkit.rpc.grpc_server import GrpcServer
from asterism_proto.methods import CATALOG, Method
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from tests.kit.waiting import wait_until

READ, WRITE = CATALOG["describe_space"], CATALOG["drop_space"]
Answer = Callable[[CallContext], None]
"""Function that a handler runs before it replies; it may wait or raise."""


@dataclass
class StubGraphd:
    """Record of one stub graphd."""

    address: str = ""
    calls: list[str] = field(default_factory=list)
    """Names of the received calls."""
    call_arrived: threading.Event = field(default_factory=threading.Event)
    """Set once a call arrived."""
    hung_up: threading.Event = field(default_factory=threading.Event)
    """Set once a caller hung up."""


def request(method: Method) -> metad_pb.SpaceRequest | metad_pb.DropSpaceRequest:
    """Return a request that the stubs answer."""
    return (
        metad_pb.SpaceRequest(space="shop")
        if method is READ
        else metad_pb.DropSpaceRequest(space="shop")
    )


def answer_at_once(call: CallContext) -> None:
    """Reply immediately."""


def answer_never(server: StubGraphd) -> Answer:
    """Return a handler that does not reply until its caller hangs up, and records this."""

    def wait_for_cancel(call: CallContext) -> None:
        wait_until(lambda: not call.is_active(), "the caller has hung up")
        server.hung_up.set()

    return wait_for_cancel


def answer_after(seconds: float) -> Answer:
    """Return a handler that replies after a delay."""
    return lambda call: time.sleep(seconds)


def answer_with_error(error: Exception) -> Answer:
    """Return a handler that raises an error."""

    def raise_error(call: CallContext) -> None:
        raise error

    return raise_error


@contextmanager
def stub_graphd(
    make_handler: Callable[[StubGraphd], Answer] | None = None,
    *,
    workers: int = 16,
    queue: int = 256,
) -> Iterator[StubGraphd]:
    """Serve `READ` and `WRITE`; the result of ``make_handler`` runs before each reply."""
    stub = StubGraphd()
    respond = answer_at_once if make_handler is None else make_handler(stub)

    def read(message: metad_pb.SpaceRequest, call: CallContext) -> common_pb.Space:
        stub.calls.append("read")
        stub.call_arrived.set()
        respond(call)
        return common_pb.Space(name=message.space)

    def write(message: metad_pb.DropSpaceRequest, call: CallContext) -> common_pb.Empty:
        stub.calls.append("write")
        respond(call)
        return common_pb.Empty()

    methods = {method.python_name: method for method in (READ, WRITE)}
    handlers = {READ.path: read, WRITE.path: write}
    server = GrpcServer(
        address="127.0.0.1:0",
        services={READ.service: (methods, handlers)},
        workers=workers,
        queue=queue,
    )
    stub.address = f"127.0.0.1:{server.start()}"
    try:
        yield stub
    finally:
        server.stop(0.1)
