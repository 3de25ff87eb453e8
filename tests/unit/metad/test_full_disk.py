"""Tests of a store that refuses one of several writes.

metad does not assume that the refused write happened, and repeats it later.
"""

from __future__ import annotations

import pytest
from tests.kit.metad import InProcessMetad

from asterism_proto.errors import Unavailable
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.store.memory_store import MemoryStore
from metad.store.port import Changes


class FailingStore(MemoryStore):
    """Store that accepts a number of writes, then refuses one."""

    writes_left = -1

    def write(self, changes: Changes) -> None:
        self.writes_left -= 1
        if self.writes_left == -1:
            raise Unavailable("the disk is full")
        super().write(changes)


@pytest.fixture
def store() -> FailingStore:
    return FailingStore()


@pytest.fixture
def metad(store: FailingStore) -> InProcessMetad:
    """Return a metad with a running build."""
    metad = InProcessMetad(store)
    metad.heartbeat("s1")
    metad.create()
    metad.load()
    metad.submit()
    return metad


def test_half_written_storaged_restart_is_redone_at_heartbeat(
    metad: InProcessMetad, store: FailingStore
) -> None:
    assert [order.attempt for order in metad.poll("s1").task_assignments] == [1]
    store.writes_left = 1  # the host's record is written, but not the update of its tasks
    with pytest.raises(Unavailable):
        metad.heartbeat("s1", incarnation=2)
    metad.heartbeat("s1", incarnation=2)
    assert [order.attempt for order in metad.poll("s1", incarnation=2).task_assignments] == [2]


def test_half_written_lease_end_is_redone_at_the_next_tick(
    metad: InProcessMetad, store: FailingStore
) -> None:
    metad.ask("stop_job", metad_pb.JobRequest(job_id=1))
    assert metad.job(1).state == common_pb.RUNNING
    store.writes_left = 1
    with pytest.raises(Unavailable):
        metad.advance_clock(3600)
    metad.advance_clock(0.1)
    assert metad.job(1).state == common_pb.STOPPED


def test_failed_publication_is_redone_with_the_next_report(
    metad: InProcessMetad, store: FailingStore
) -> None:
    store.writes_left = 0
    with pytest.raises(Unavailable):
        metad.build("s1")
    assert (
        metad.job(1).state,
        metad.ask("describe_space", metad_pb.SpaceRequest(space="graph")).version,
    ) == (common_pb.RUNNING, 0)
    metad.build("s1")
    assert (
        metad.job(1).state,
        metad.ask("describe_space", metad_pb.SpaceRequest(space="graph")).version,
    ) == (common_pb.FINISHED, 1)
