"""Doors of graphds that answer one call as a test says, over real gRPC, and what they saw."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from asterism_proto.methods import CATALOG, Method
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as meta
from daemonkit.calls import Call
from daemonkit.server import GrpcServer

READ, WRITE = CATALOG["describe_space"], CATALOG["drop_space"]
Answer = Callable[[Call], None]
"""What an answer waits for, or raises."""


@dataclass
class Door:
    """One graphd's."""

    address: str = ""
    asked: list[str] = field(default_factory=list)
    """Names of the calls that came."""
    came: threading.Event = field(default_factory=threading.Event)
    """Set once one did."""
    hung_up: threading.Event = field(default_factory=threading.Event)
    """Set once a caller did."""


def request(method: Method) -> meta.SpaceRequest | meta.DropSpaceRequest:
    """One that the doors answer."""
    return meta.SpaceRequest(space="shop") if method is READ else meta.DropSpaceRequest(space="shop")


def at_once(call: Call) -> None:
    """An answer that waits for nothing."""


def never(door: Door) -> Answer:
    """An answer that does not come before its caller hangs up, which is noted."""

    def wait(call: Call) -> None:
        while call.is_active():
            time.sleep(0.005)
        door.hung_up.set()

    return wait


def slowly(seconds: float) -> Answer:
    """An answer that takes so long."""
    return lambda call: time.sleep(seconds)


def raising(error: Exception) -> Answer:
    """An error."""

    def answer(call: Call) -> None:
        raise error

    return answer


@contextmanager
def door(answer: Callable[[Door], Answer] | None = None, *, workers: int = 16, queue: int = 256) -> Iterator[Door]:
    """A door that answers `READ` and `WRITE`; what ``answer`` gives for it is done before."""
    made = Door()
    do = at_once if answer is None else answer(made)

    def read(asked: meta.SpaceRequest, call: Call) -> pb.Space:
        made.asked.append("read")
        made.came.set()
        do(call)
        return pb.Space(name=asked.space)

    def write(asked: meta.DropSpaceRequest, call: Call) -> pb.Empty:
        made.asked.append("write")
        do(call)
        return pb.Empty()

    methods = {method.python_name: method for method in (READ, WRITE)}
    handlers = {READ.path: read, WRITE.path: write}
    server = GrpcServer(address="127.0.0.1:0", services={READ.service: (methods, handlers)}, workers=workers, queue=queue)
    made.address = f"127.0.0.1:{server.start()}"
    try:
        yield made
    finally:
        server.stop(0.1)
