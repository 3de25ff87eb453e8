"""Doors of graphds that answer one call as a test says, over real gRPC, and what they saw."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from asterism_daemonkit.calls import CallContext
from asterism_daemonkit.grpc_server import GrpcServer
from asterism_proto.methods import CATALOG, Method
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from tests.kit.waiting import wait_until

READ, WRITE = CATALOG["describe_space"], CATALOG["drop_space"]
Answer = Callable[[CallContext], None]
"""What an answer waits for, or raises."""


@dataclass
class StubGraphd:
    """One graphd's."""

    address: str = ""
    calls: list[str] = field(default_factory=list)
    """Names of the calls that came."""
    call_arrived: threading.Event = field(default_factory=threading.Event)
    """Set once one did."""
    hung_up: threading.Event = field(default_factory=threading.Event)
    """Set once a caller did."""


def request(method: Method) -> metad_pb.SpaceRequest | metad_pb.DropSpaceRequest:
    """One that the doors answer."""
    return (
        metad_pb.SpaceRequest(space="shop")
        if method is READ
        else metad_pb.DropSpaceRequest(space="shop")
    )


def answer_at_once(call: CallContext) -> None:
    """An answer that waits for nothing."""


def answer_never(server: StubGraphd) -> Answer:
    """An answer that does not come before its caller hangs up, which is noted."""

    def wait_for_cancel(call: CallContext) -> None:
        wait_until(lambda: not call.is_active(), "the caller has hung up")
        server.hung_up.set()

    return wait_for_cancel


def answer_after(seconds: float) -> Answer:
    """An answer that takes so long."""
    return lambda call: time.sleep(seconds)


def answer_with_error(error: Exception) -> Answer:
    """An error."""

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
    """A door that answers `READ` and `WRITE`; what ``make_handler`` gives for it is done before."""
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
