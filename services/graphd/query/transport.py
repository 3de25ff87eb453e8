"""How statements make the client's calls in graphd itself: straight to its handlers, within the
query's own time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from asterism_daemonkit.calls import CallContext, Handler, LocalTransport
from asterism_proto.errors import NotFound
from asterism_proto.framing import Frame
from asterism_proto.methods import GRAPH, Method
from asterism_proto.transport import Content
from asterism_proto.v1 import graphd_pb2 as wire
from graphd.api.explain import EXPLAINABLE_CALLS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedCall:
    """A call that was made."""

    method: Method
    request: Content
    elapsed_s: float
    rows: int
    """Of the first array of its answer; -1: it has none."""


class CallSkipped(Exception):  # nothing went wrong: what was to be learned is learned
    """Ends a statement that is explained, where its first call would be made."""


@dataclass(slots=True, kw_only=True, eq=False)
class QueryTransport:
    """Calls to handlers in this process, under the deadline of the query that they are for.

    Parameters
    ----------
    handlers : mapping
        By method path.
    parent_call : CallContext
        The query's.
    """

    handlers: Mapping[str, Handler]
    parent_call: CallContext
    calls: list[RecordedCall] = field(default_factory=list)
    """Calls, in their order."""
    digest: str = ""
    """Of the version that the last draw was from."""
    explain_only: bool = False
    """Whether calls are noted and not made."""
    piece_bytes: int = LocalTransport.piece_bytes

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """The handler's own reply, or its own error; NotMade where it is only explained."""
        handler = self.handlers.get(method.path)
        if handler is None:
            raise NotFound(f"{method.path}: this service does not answer it")
        self.parent_call.remaining()
        if self.explain_only:
            self.calls.append(RecordedCall(method=method, request=request, elapsed_s=0.0, rows=-1))
            raise CallSkipped
        started = time.perf_counter()
        reply: Any = handler(request, self.parent_call)
        arrays = getattr(reply, "arrays", None)
        rows = -1 if arrays is None else len(next(iter(arrays.values()), ()))
        self.calls.append(
            RecordedCall(
                method=method, request=request, elapsed_s=time.perf_counter() - started, rows=rows
            )
        )
        self.digest = getattr(getattr(reply, "head", None), "digest", "") or self.digest
        return reply  # type: ignore[no-any-return]  # as the handler gave it

    def explain_call(self, call: RecordedCall, version: int) -> wire.ExplainReply | None:
        """What a sampling call takes: who is asked for how much, where its draws fall; None of any
        other call.
        """
        if not isinstance(call.request, Frame) or call.method.python_name not in EXPLAINABLE_CALLS:
            return None
        head: Any = call.request.head
        explain_request = wire.ExplainRequest(
            space=head.space,
            version=version or head.version,
            method=call.method.python_name,
            request=head.SerializeToString(),
        )
        reply: Any = self.handlers[GRAPH["explain"].path](
            Frame(explain_request, call.request.arrays), self.parent_call
        )
        explanation: wire.ExplainReply = reply.head
        return explanation

    def close(self) -> None:
        """Nothing is held."""
