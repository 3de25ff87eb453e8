"""A store that refuses one write of several: what metad has not written it does not believe, and makes up for later."""

from __future__ import annotations

import pytest
from tests.kit.metad import Desk

from asterism_proto.errors import Unavailable
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from metad.store.memory import MemoryStore
from metad.store.port import Changes


class Refusing(MemoryStore):
    """Takes so many more writes, then refuses one."""

    left = -1

    def write(self, changes: Changes) -> None:
        self.left -= 1
        if self.left == -1:
            raise Unavailable("the disk is full")
        super().write(changes)


@pytest.fixture
def store() -> Refusing:
    return Refusing()


@pytest.fixture
def desk(store: Refusing) -> Desk:
    """A build under way."""
    desk = Desk(store)
    desk.beat("s1")
    desk.create()
    desk.load()
    desk.submit()
    return desk


def test_a_restart_of_a_storaged_that_could_be_written_by_half_is_heard_of_at_its_next_beat(desk: Desk, store: Refusing) -> None:
    assert [order.attempt for order in desk.poll("s1").orders] == [1]
    store.left = 1  # the host is written, what follows for its tasks is not
    with pytest.raises(Unavailable):
        desk.beat("s1", incarnation=2)
    desk.beat("s1", incarnation=2)
    assert [order.attempt for order in desk.poll("s1", incarnation=2).orders] == [2]


def test_the_end_of_a_lease_that_could_be_written_by_half_is_made_up_for_at_the_next_tick(desk: Desk, store: Refusing) -> None:
    desk.ask("stop_job", mpb.JobRequest(job_id=1))
    assert desk.job(1).state == pb.RUNNING
    store.left = 1
    with pytest.raises(Unavailable):
        desk.passes(3600)
    desk.passes(0.1)
    assert desk.job(1).state == pb.STOPPED


def test_a_report_whose_publication_could_not_be_written_publishes_when_it_comes_again(desk: Desk, store: Refusing) -> None:
    store.left = 0
    with pytest.raises(Unavailable):
        desk.build("s1")
    assert (desk.job(1).state, desk.ask("describe_space", mpb.SpaceRequest(space="graph")).version) == (pb.RUNNING, 0)
    desk.build("s1")
    assert (desk.job(1).state, desk.ask("describe_space", mpb.SpaceRequest(space="graph")).version) == (pb.FINISHED, 1)
