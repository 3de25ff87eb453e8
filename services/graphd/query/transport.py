"""Transport of statements inside graphd: client calls go directly to its handlers.

The deadline of the query applies to every call.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_proto.errors import NotFound
from asterism_proto.framing import Frame
from asterism_proto.methods import GRAPH, SAMPLING_METHODS, Method, SamplingRequest
from asterism_proto.transport import Content
from asterism_proto.v1 import graphd_pb2 as graphd_pb


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedCall:
    """Completed call of a statement."""

    method: Method
    request: Content
    elapsed_s: float
    rows: int
    """Rows of the first array in the reply; -1 if it has none."""


class CallSkipped(Exception):  # not an error: EXPLAIN needs only the request
    """Ends a statement under EXPLAIN at its first call."""


@dataclass(slots=True, kw_only=True, eq=False)
class QueryTransport:
    """Transport to handlers in this process, under the deadline of a query.

    Parameters
    ----------
    handlers : mapping
        Handlers by method path.
    parent_call : CallContext
        Context of the query.
    """

    handlers: Mapping[str, Handler]
    parent_call: CallContext
    calls: list[RecordedCall] = field(default_factory=list)
    """Calls in order."""
    digest: str = ""
    """Digest of the version of the last sample."""
    explain_only: bool = False
    """True if calls are recorded but not made."""
    piece_bytes: int = LocalTransport.piece_bytes
    prices_requests: bool = True  # so that refusals are those of a client over gRPC

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """Return the handler's reply or raise its error; raise CallSkipped under EXPLAIN."""
        handler = self.handlers.get(method.path)
        if handler is None:
            raise NotFound(f"{method.path}: this service does not serve the method")
        self.parent_call.remaining()
        if self.explain_only:
            self.calls.append(RecordedCall(method=method, request=request, elapsed_s=0.0, rows=-1))
            raise CallSkipped
        started = time.perf_counter()
        reply = handler(request, self.parent_call)
        rows = len(next(iter(reply.arrays.values()), ())) if isinstance(reply, Frame) else -1
        self.calls.append(
            RecordedCall(
                method=method, request=request, elapsed_s=time.perf_counter() - started, rows=rows
            )
        )
        if isinstance(reply, Frame):
            self.digest = getattr(reply.head, "digest", "") or self.digest
        return reply

    def explain_call(self, call: RecordedCall, version: int) -> graphd_pb.ExplainReply | None:
        """Explain a sampling call: its requests and shares; None for other calls."""
        if not isinstance(call.request, Frame) or call.method.python_name not in SAMPLING_METHODS:
            return None
        head = cast(SamplingRequest, call.request.head)
        explain_request = graphd_pb.ExplainRequest(
            space=head.space,
            version=version or head.version,
            method=call.method.python_name,
            request=head.SerializeToString(),
        )
        reply = self.handlers[GRAPH["explain"].path](
            Frame(explain_request, call.request.arrays), self.parent_call
        )
        assert isinstance(reply, Frame)
        return reply.with_head(graphd_pb.ExplainReply).head

    def close(self) -> None:
        """Do nothing: local calls own no resources."""
