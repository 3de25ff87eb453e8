"""API keys, role grants and access limits, as metad sent them to this daemon last."""

from __future__ import annotations

import threading
from collections.abc import Callable

from asterism_daemonkit.rpc.call_context import waiting
from asterism_proto.v1 import metad_pb2 as metad_pb


class AccessCache:
    """The newest access state. It is replaced as a whole, so it may be read without a lock."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._state: metad_pb.AccessState | None = None

    def state(self) -> metad_pb.AccessState | None:
        """Return the newest state, the same object until there is another; None before any."""
        return self._state

    def missing(self) -> list[str]:
        """Return why callers cannot be authenticated yet; empty if they can."""
        return [] if self._state is not None else ["no roles from metad yet"]

    def follow(self, reply: metad_pb.PollReply) -> None:
        """Take the state of a poll reply; a reply without one changes nothing."""
        if not reply.HasField("access") or reply.access == self._state:
            return
        state = metad_pb.AccessState()
        state.CopyFrom(reply.access)
        with self._changed:
            self._state = state
            self._changed.notify_all()

    def wait_for(self, predicate: Callable[[metad_pb.AccessState], bool], timeout_s: float) -> bool:
        """Wait until the newest state satisfies the predicate; return False on timeout."""
        with waiting(), self._changed:
            return self._changed.wait_for(
                lambda: self._state is not None and predicate(self._state), timeout_s
            )
