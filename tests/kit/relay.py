"""A gRPC relay between storageds and metad that loses and repeats heartbeats.

It also delays and reorders them.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import grpc

from asterism_proto.methods import HEARTBEATS
from asterism_proto.v1 import metad_pb2 as metad_pb

LOST = 0.1
"""Share of heartbeats, and of replies, that are lost."""
_MAX_REMEMBERED = 60
"""Number of past heartbeats that may be repeated."""
_WORKERS = 16


class FaultyRelay(grpc.GenericRpcHandler):
    """A port that forwards to a metad.

    Calls pass unchanged except for heartbeats while ``is_faulty`` is set. Then a heartbeat or its
    reply may be lost, it may arrive twice, and any earlier heartbeat of any sender may be repeated
    before or after it. While ``reply_delay_s`` is not 0, replies to heartbeats are that late.

    Parameters
    ----------
    target : str
        host:port of metad.
    seed : int
        Seed of the faults.
    """

    def __init__(self, target: str, seed: int = 0) -> None:
        self.is_faulty = False
        self.reply_delay_s = 0.0
        self.delayed: Counter[str] = Counter()
        """Number of replies to each daemon, by uuid, that were delayed."""
        self.repeated = 0
        """Number of repeated heartbeats."""
        self.lost = 0
        """Number of lost heartbeats and replies."""
        self._random, self._lock = random.Random(seed), threading.Lock()
        self._heartbeats: list[bytes] = []
        self._channel = grpc.insecure_channel(target)
        self._server = grpc.server(ThreadPoolExecutor(_WORKERS), handlers=(self,))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the handler of a call."""
        path: str = handler_call_details.method
        forward = partial(self._call, path)

        def handle(data: bytes, context: grpc.ServicerContext) -> bytes:
            timeout_s = context.time_remaining()
            try:
                return (
                    self._forward_heartbeat(data, timeout_s, forward)
                    if path == HEARTBEATS["heartbeat"].path
                    else forward(data, timeout_s)
                )
            except grpc.RpcError as error:
                context.set_trailing_metadata(error.trailing_metadata() or ())
                context.abort(error.code(), error.details() or "")
                raise AssertionError("abort raises") from error

        return grpc.unary_unary_rpc_method_handler(handle)

    def close(self) -> None:
        """Release the port."""
        self._server.stop(0)
        self._channel.close()

    def _call(self, path: str, data: bytes, timeout_s: float | None) -> bytes:
        reply: bytes = self._channel.unary_unary(path)(
            data, timeout=timeout_s, wait_for_ready=False
        )
        return reply

    def _forward_heartbeat(
        self, data: bytes, timeout_s: float | None, forward: Callable[[bytes, float | None], bytes]
    ) -> bytes:
        with self._lock:
            self._heartbeats = [*self._heartbeats[-_MAX_REMEMBERED:], data]
            chance = self._random.random() if self.is_faulty else 1.0
            before, after = (
                (
                    self._random.choices(self._heartbeats, k=self._random.randrange(3))
                    for _ in range(2)
                )
                if self.is_faulty
                else ([], [])
            )
        if chance < LOST:
            self.lost += 1
            raise _LostError
        self._repeat(before, timeout_s, forward)
        reply = forward(data, timeout_s)
        self._repeat(after, timeout_s, forward)
        if self.reply_delay_s:
            time.sleep(self.reply_delay_s)
            with self._lock:
                self.delayed[metad_pb.HeartbeatRequest.FromString(data).uuid] += 1
        if chance < 2 * LOST:
            self.lost += 1
            raise _LostError
        return reply

    def _repeat(
        self,
        heartbeats: list[bytes],
        timeout_s: float | None,
        forward: Callable[[bytes, float | None], bytes],
    ) -> None:
        for heartbeat in heartbeats:
            with contextlib.suppress(grpc.RpcError):  # of an incarnation that has ended
                forward(heartbeat, timeout_s)
            self.repeated += 1


class _LostError(grpc.RpcError):
    """Error of a call with a lost message."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return "lost on the way"

    def trailing_metadata(self) -> tuple[()]:
        return ()
