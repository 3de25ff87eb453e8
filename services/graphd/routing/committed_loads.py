"""Committed loads of a space.

Every lookup calls metad, but requests only the commits since the last reply.
"""

from __future__ import annotations

import threading
from typing import cast

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.methods import CATALOG
from asterism_proto.transport import Transport
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.routing.routes import SpaceRoute


class CommitLog:
    """Committed loads of every space, in commit order."""

    def __init__(self, metad: Transport) -> None:
        self._metad = metad
        self._lock = threading.Lock()
        self._known: dict[int, tuple[tuple[int, ...], int]] = {}
        """Space id -> (its loads, number of the last commit)."""

    def clear(self) -> None:
        """Drop all known commits: a metad that was just started may have another catalog."""
        with self._lock:
            self._known = {}

    def committed_loads(self, space: SpaceRoute, call: CallContext) -> tuple[tuple[int, ...], int]:
        """Return the committed loads of a space and the number of the last commit."""
        loads, last_commit = self._known.get(space.space_id, ((), 0))
        request = metad_pb.ListCommitsRequest(space=space.name, after=last_commit)
        reply = cast(
            metad_pb.CommitList,
            self._metad.call(CATALOG["list_commits"], request, call.remaining()),
        )
        if reply.loads:
            loads, last_commit = loads + tuple(reply.loads), reply.commits[-1]
            with self._lock:
                if last_commit > self._known.get(space.space_id, ((), 0))[1]:
                    self._known[space.space_id] = loads, last_commit
        return loads, last_commit
