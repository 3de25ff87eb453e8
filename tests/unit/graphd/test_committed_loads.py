"""Tests of the commits of a space, and of committing a load, against a metad in memory."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from tests.kit.waiting import HANG_S

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_model.schema import NodeType, Schema
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.routing.committed_loads import CommitLog
from graphd.routing.routes import SpaceRoute
from graphd.writes.load_commit import LoadCommitter

SPACE = SpaceRoute(
    space_id=1,
    name="s",
    schema=Schema(node_types=(NodeType(name="n"),), parts=1),
    hosts=("h",),
    host_of_part=np.zeros(1, np.int32),
)


class CommitList:
    """A metad that has committed loads 11, 12, ... under 1, 2, ..."""

    def __init__(self) -> None:
        self.count = 0
        self.on_call = lambda: None

    def call(self, method: Any, request: Any, timeout_s: float) -> metad_pb.CommitList:
        numbers = range(request.after + 1, self.count + 1)
        self.on_call()
        return metad_pb.CommitList(loads=[10 + number for number in numbers], commits=numbers)


def call() -> CallContext:
    return CallContext.with_timeout(HANG_S)


def test_commits_are_known_once_each_and_in_order() -> None:
    metad = CommitList()
    log = CommitLog(metad)
    assert log.committed_loads(SPACE, call()) == ((), 0)
    metad.count = 3
    assert log.committed_loads(SPACE, call()) == ((11, 12, 13), 3)
    metad.count = 5
    assert log.committed_loads(SPACE, call()) == ((11, 12, 13, 14, 15), 5)
    assert log.committed_loads(SPACE, call()) == ((11, 12, 13, 14, 15), 5)


def test_late_reply_does_not_replace_newer_commits() -> None:
    metad = CommitList()
    log = CommitLog(metad)

    def overtake() -> None:
        metad.on_call = lambda: None
        metad.count = 4
        log.committed_loads(SPACE, call())

    metad.count, metad.on_call = 2, overtake
    assert log.committed_loads(SPACE, call()) == ((11, 12), 2)
    known_loads, metad.count = [], 4

    def record_request(method: Any, request: Any, timeout_s: float) -> metad_pb.CommitList:
        known_loads.append(request.after)
        return metad_pb.CommitList()

    metad.call = record_request  # type: ignore[method-assign]
    assert log.committed_loads(SPACE, call()) == ((11, 12, 13, 14), 4)
    assert known_loads == [4]


class OpenLoad:
    """A metad that keeps a load open for some replies."""

    def __init__(self, *replies: metad_pb.Load) -> None:
        self._replies = [*replies, metad_pb.Load(state=metad_pb.COMMITTED, commit=7)]
        self.requests: list[metad_pb.CommitLoadRequest] = []

    def call(
        self, method: Any, request: metad_pb.CommitLoadRequest, timeout_s: float
    ) -> metad_pb.Load:
        copy = metad_pb.CommitLoadRequest()
        copy.CopyFrom(request)
        self.requests.append(copy)
        return self._replies.pop(0)


def commit(metad: OpenLoad, hosts: Collection[str] = ()) -> list[int]:
    """Commit a load; return the commits up to which revivals were resolved."""
    resolved: list[int] = []

    def resolve(space: str, load_id: int, call: CallContext) -> tuple[int, bool]:
        resolved.append(len(resolved) + 1)
        return resolved[-1], False

    committer = LoadCommitter(
        metad,  # type: ignore[arg-type]  # only `call` is used
        resolve_revivals=resolve,
        seal=lambda space, load_id, hosts, number, call: [
            metad_pb.HostSeal(host=host, number=number) for host in hosts
        ],
    )
    request = metad_pb.CommitLoadRequest(space="s", load_id=3)
    assert committer.commit(request, call(), revivals_resolved=False, hosts=hosts).commit == 7
    return resolved


def test_revivals_are_resolved_again_after_later_deletes() -> None:
    metad = OpenLoad(metad_pb.Load(state=metad_pb.OPEN), metad_pb.Load(state=metad_pb.OPEN))
    assert commit(metad) == [1, 2, 3]
    assert [request.resolved_commit for request in metad.requests] == [1, 2, 3]


def test_unsealed_hosts_are_sealed_with_those_before_kept() -> None:
    metad = OpenLoad(metad_pb.Load(state=metad_pb.OPEN, unsealed_hosts=["b"], seal_number=5))
    assert commit(metad, ["a"]) == [1]
    assert [[(seal.host, seal.number) for seal in request.seals] for request in metad.requests] == [
        [("a", 0)],
        [("a", 0), ("b", 5)],
    ]
