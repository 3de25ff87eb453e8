"""Tests of the times of metad's maintenance of leases."""

from __future__ import annotations

from tests.kit.metad import InProcessMetad

from asterism_proto.v1 import metad_pb2 as metad_pb


def due_in_s(metad: InProcessMetad) -> float:
    """Return the seconds until an idle metad's next maintenance."""
    return (metad.components.maintenance.next_due_ms() - metad.now_ms) / 1000


def test_idle_metad_looks_at_everything_every_twenty_ticks() -> None:
    metad = InProcessMetad(tick_s=0.25)
    metad.advance_clock(1.0)
    assert due_in_s(metad) == 5.0
    metad.now_ms += 2000
    assert due_in_s(metad) == 3.0


def test_idle_metad_looks_when_the_first_lease_ends() -> None:
    metad = InProcessMetad(tick_s=1.0, lease_s=6.0)
    metad.advance_clock(1.0)
    metad.heartbeat("s1")
    metad.now_ms += 1000
    metad.heartbeat("s2")
    assert due_in_s(metad) == 5.0
    metad.heartbeat("s1")
    assert due_in_s(metad) == 6.0
    metad.advance_clock(6.0)
    assert due_in_s(metad) == 20.0


def test_idle_metad_looks_when_the_first_pin_ends() -> None:
    metad = InProcessMetad(tick_s=1.0, lease_s=60.0)
    metad.heartbeat("s1")
    metad.create()
    metad.load()
    metad.submit()
    metad.build("s1")
    metad.advance_clock(1.0)
    for term_s in (7.0, 3.0):
        metad.ask("pin_version", metad_pb.PinVersionRequest(space="graph", term_s=term_s))
    assert due_in_s(metad) == 3.0
    metad.advance_clock(3.0)
    assert due_in_s(metad) == 4.0
