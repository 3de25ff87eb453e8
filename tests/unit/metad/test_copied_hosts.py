"""Tests of copied folders: of two processes with one uuid, only one is accepted."""

from __future__ import annotations

import pytest
from tests.kit.metad import InProcessMetad

from asterism_proto.errors import Conflict, Stale
from asterism_proto.v1 import metad_pb2 as metad_pb


def test_first_of_two_processes_with_one_identity_is_accepted() -> None:
    metad = InProcessMetad()
    metad.heartbeat("s1", start_id=11)
    with pytest.raises(Conflict, match="one data folder is a copy of the other"):
        metad.heartbeat("s1", start_id=12)
    with pytest.raises(Conflict, match="s1:9779"):
        metad.poll("s1", start_id=12)
    metad.heartbeat("s1", start_id=11)
    metad.poll("s1", start_id=11)
    # A restarted metad still knows the accepted process.
    with pytest.raises(Conflict):
        InProcessMetad(metad.store, now_ms=metad.now_ms).heartbeat("s1", start_id=12)


def test_later_incarnation_replaces_the_earlier_one() -> None:
    metad = InProcessMetad()
    metad.heartbeat("s1", start_id=11)
    metad.heartbeat("s1", start_id=12, incarnation=2)
    with pytest.raises(Stale):
        metad.heartbeat("s1", start_id=11)


def test_restored_folder_is_accepted_after_the_others_lease() -> None:
    metad = InProcessMetad()
    metad.heartbeat("s1", start_id=11)
    metad.advance_clock(3600)
    metad.heartbeat("s1", start_id=12)
    with pytest.raises(Conflict):
        metad.heartbeat("s1", start_id=11)


def test_graphd_with_clock_set_back_is_accepted_after_lease() -> None:
    """A graphd's incarnation is a time, so a smaller one may be the later start."""
    metad = InProcessMetad()
    metad.heartbeat("g1", role=metad_pb.GRAPHD, start_id=11, incarnation=2_000)
    with pytest.raises(Conflict, match="when the lease of the other has expired"):
        metad.heartbeat("g1", role=metad_pb.GRAPHD, start_id=12, incarnation=1_000)
    metad.advance_clock(3600)
    metad.heartbeat("g1", role=metad_pb.GRAPHD, start_id=12, incarnation=1_000)
    metad.poll("g1", role=metad_pb.GRAPHD, start_id=12, incarnation=1_000)
