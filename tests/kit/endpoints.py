"""A daemon of one method in this process, with gRPC and binary RPC endpoints, and clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.grpc_server import Authenticate, GrpcServer
from asterism_daemonkit.rpc.tcp_client import TcpEndpoint, TcpTransport
from asterism_daemonkit.rpc.tcp_server import TcpServer
from asterism_daemonkit.tls import DaemonTls
from asterism_proto.errors import Internal
from asterism_proto.framing import Frame
from asterism_proto.methods import STORE
from asterism_proto.v1 import storaged_pb2 as storaged_pb

METHOD = STORE["read_degrees"]
Answer = Callable[[Frame, CallContext], Frame]


def request(*values: int) -> Frame:
    return Frame(storaged_pb.ReadDegreesRequest(node_type=7), {"ids": np.array(values, np.int64)})


def echo(frame: Frame, call: CallContext) -> Frame:
    return Frame(storaged_pb.ReadDegreesReply(), frame.arrays)


@dataclass
class Endpoints:
    """A daemon of one method with both endpoints, and clients for it."""

    stream: TcpServer
    grpc: GrpcServer
    transport: TcpTransport
    transports_used: list[str]
    announced: list[TcpEndpoint]
    """Address of the binary RPC endpoint, as announced over gRPC."""

    def ask(self, *values: int, timeout_s: float = 10) -> list[int]:
        reply = self.transport.call(METHOD, request(*values), timeout_s)
        assert isinstance(reply, Frame)
        return [int(value) for value in reply.arrays["ids"]]

    def connections(self) -> int:
        return len(self.stream._connections)


@contextmanager
def endpoints(
    respond: Answer = echo,
    *,
    workers: int = 2,
    queue: int = 8,
    metrics: Metrics | None = None,
    local: bool = False,
    tls: DaemonTls | None = None,
    authenticate: Authenticate | None = None,
    credentials: Callable[[], str] | None = None,
) -> Iterator[Endpoints]:
    transports_used: list[str] = []
    announced: list[TcpEndpoint] = []

    def handler_for(name: str) -> Handler:
        def handle(frame: Frame, call: CallContext) -> Frame:
            transports_used.append(name)
            return respond(frame, call)

        return handle

    def reject(*_: object) -> Frame:
        raise Internal("not asked here")

    handlers: dict[str, Handler] = {method.path: reject for method in STORE.values()}
    handlers[STORE["find_binary_endpoint"].path] = lambda *_: storaged_pb.FindBinaryEndpointReply(
        port=announced[-1].port,
        handshake_key=announced[-1].key,
        unix_socket=announced[-1].socket_name,
    )
    stream = TcpServer(
        address="127.0.0.1:0",
        methods=STORE,
        handlers={**handlers, METHOD.path: handler_for("stream")},
        workers=workers,
        queue=queue,
        metrics=metrics,
        tls=tls,
        authenticate=authenticate,
    )
    grpc = GrpcServer(
        address="127.0.0.1:0",
        services={METHOD.service: (STORE, {**handlers, METHOD.path: handler_for("grpc")})},
        tls=tls,
        authenticate=authenticate,
    )
    announced.append(TcpEndpoint(stream.start(), stream.key, stream.socket_name if local else ""))
    address = f"127.0.0.1:{grpc.start()}"
    client_tls = None if tls is None else tls.client
    transport = TcpTransport(
        address,
        RemoteTransport(address, tls=client_tls, credentials=credentials),
        tls=client_tls,
        credentials=credentials,
    )
    try:
        yield Endpoints(stream, grpc, transport, transports_used, announced)
    finally:
        transport.close()
        stream.stop(0.1)
        grpc.stop(0.1)
