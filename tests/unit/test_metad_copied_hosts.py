"""A copied folder has its daemon's uuid and incarnation: of two processes, only one is accepted."""

from __future__ import annotations

import pytest
from tests.kit.metad import Desk

from asterism_proto.errors import Conflict, Stale
from asterism_proto.v1 import metad_pb2 as mpb


def test_of_two_processes_with_one_identity_the_first_is_heard() -> None:
    desk = Desk()
    desk.beat("s1", start=11)
    with pytest.raises(Conflict, match="one data folder is a copy of the other"):
        desk.beat("s1", start=12)
    with pytest.raises(Conflict, match="s1:9779"):
        desk.poll("s1", start=12)
    desk.beat("s1", start=11)
    desk.poll("s1", start=11)
    # metad reads the catalog again: it still knows which one it was.
    with pytest.raises(Conflict):
        Desk(desk.store, now_ms=desk.now_ms).beat("s1", start=12)


def test_a_later_start_is_heard_and_ends_the_earlier_one() -> None:
    desk = Desk()
    desk.beat("s1", start=11)
    desk.beat("s1", start=12, incarnation=2)
    with pytest.raises(Stale):
        desk.beat("s1", start=11)


def test_a_restored_folder_is_heard_once_the_lease_of_the_other_is_over() -> None:
    desk = Desk()
    desk.beat("s1", start=11)
    desk.passes(3600)
    desk.beat("s1", start=12)
    with pytest.raises(Conflict):
        desk.beat("s1", start=11)


def test_a_graphd_whose_clock_was_set_back_is_heard_once_the_lease_is_over() -> None:
    """Its incarnation is a time: a smaller one may be the later start."""
    desk = Desk()
    desk.beat("g1", role=mpb.GRAPHD, start=11, incarnation=2_000)
    with pytest.raises(Conflict, match="once the lease of the other is over"):
        desk.beat("g1", role=mpb.GRAPHD, start=12, incarnation=1_000)
    desk.passes(3600)
    desk.beat("g1", role=mpb.GRAPHD, start=12, incarnation=1_000)
    desk.poll("g1", role=mpb.GRAPHD, start=12, incarnation=1_000)
