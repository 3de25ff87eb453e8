"""A daemon of one method in this process, with a gRPC door and a stream door, and the way to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from asterism_proto.arrays import Frame
from asterism_proto.errors import Internal
from asterism_proto.methods import STORE
from asterism_proto.v1 import storaged_pb2 as pb
from daemonkit.calls import Call, Handler
from daemonkit.channels import RemoteTransport
from daemonkit.metrics import Metrics
from daemonkit.server import GrpcServer
from daemonkit.stream_door import StreamDoor
from daemonkit.streams import Door, StreamTransport

METHOD = STORE["read_degrees"]
Answer = Callable[[Frame, Call], Frame]


def request(*values: int) -> Frame:
    return Frame(pb.ReadDegreesRequest(node_type=7), {"ids": np.array(values, np.int64)})


def echo(asked: Frame, call: Call) -> Frame:
    return Frame(pb.ReadDegreesReply(), asked.arrays)


@dataclass
class Doors:
    """A daemon of one method with both doors, and the way to it."""

    stream: StreamDoor
    grpc: GrpcServer
    transport: StreamTransport
    asked_over: list[str]
    told: list[Door]
    """Where the stream door is, as gRPC tells it."""

    def ask(self, *values: int, timeout_s: float = 10) -> list[int]:
        reply = self.transport.call(METHOD, request(*values), timeout_s)
        assert isinstance(reply, Frame)
        return [int(value) for value in reply.arrays["ids"]]

    def connections(self) -> int:
        return len(self.stream._connections)


@contextmanager
def doors(answer: Answer = echo, *, workers: int = 2, queue: int = 8, metrics: Metrics | None = None, local: bool = False) -> Iterator[Doors]:
    asked_over: list[str] = []
    told: list[Door] = []

    def over(name: str) -> Handler:
        def handle(asked: Frame, call: Call) -> Frame:
            asked_over.append(name)
            return answer(asked, call)

        return handle

    def refuse(*_: object) -> Frame:
        raise Internal("not asked here")

    handlers: dict[str, Handler] = {method.path: refuse for method in STORE.values()}
    handlers[STORE["find_stream"].path] = lambda *_: pb.FindStreamReply(port=told[-1].port, key=told[-1].key, local=told[-1].local)
    stream = StreamDoor(
        address="127.0.0.1:0", methods=STORE, handlers={**handlers, METHOD.path: over("stream")}, workers=workers, queue=queue, metrics=metrics
    )
    grpc = GrpcServer(address="127.0.0.1:0", services={METHOD.service: (STORE, {**handlers, METHOD.path: over("grpc")})})
    told.append(Door(stream.start(), stream.key, stream.local if local else ""))
    address = f"127.0.0.1:{grpc.start()}"
    transport = StreamTransport(address, RemoteTransport(address))
    try:
        yield Doors(stream, grpc, transport, asked_over, told)
    finally:
        transport.close()
        stream.stop(0.1)
        grpc.stop(0.1)
