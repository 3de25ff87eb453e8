"""Which loads of a space are committed: asked of metad anew each time, but only for what came after the last answer."""

from __future__ import annotations

import threading
from typing import cast

from asterism_proto.methods import CATALOG
from asterism_proto.v1 import metad_pb2 as meta
from daemonkit.calls import Call, Transport
from graphd.route import Space


class Commits:
    """The committed loads of every space, in commit order."""

    def __init__(self, metad: Transport) -> None:
        self._metad = metad
        self._lock = threading.Lock()
        self._known: dict[int, tuple[tuple[int, ...], int]] = {}
        """Space id -> its loads, and the number of the last commit."""

    def known(self, space: Space, call: Call) -> tuple[tuple[int, ...], int]:
        """Every load of a space that is committed by now, and the number of the last commit."""
        loads, last = self._known.get(space.space_id, ((), 0))
        request = meta.ListCommitsRequest(space=space.name, after=last)
        fresh = cast(meta.CommitList, self._metad.call(CATALOG["list_commits"], request, call.remaining()))
        if fresh.loads:
            loads, last = loads + tuple(fresh.loads), fresh.commits[-1]
            with self._lock:
                if last > self._known.get(space.space_id, ((), 0))[1]:
                    self._known[space.space_id] = loads, last
        return loads, last
