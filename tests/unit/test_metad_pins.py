"""Pins of versions: leases that keep a version served, their bounds, and what a restart of metad makes of them."""

from __future__ import annotations

from typing import cast

import pytest
from tests.kit.metad import Desk

from asterism_proto.errors import Busy, InvalidRequest, NotFound
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from metad.store import keys


def pin(desk: Desk, version: int = 0, term_s: float = 0, owner: str = "trainer") -> mpb.Pin:
    return cast(mpb.Pin, desk.ask("pin_version", mpb.PinVersionRequest(space="graph", version=version, term_s=term_s, owner=owner)))


def pins(desk: Desk) -> list[int]:
    return [found.pin_id for found in desk.ask("list_pins", mpb.ListPinsRequest(space="graph")).pins]


def served(desk: Desk) -> list[int]:
    return [manifest.version for manifest in desk.poll("s1").spaces[0].versions]


def publish(desk: Desk, times: int = 1) -> None:
    for _ in range(times):
        desk.beat("s1")
        desk.load()
        desk.submit()
        desk.build("s1")


@pytest.fixture
def desk() -> Desk:
    desk = Desk(keep_versions=1, retire_after_s=1, pins_per_space=3, pin_limit_s=600)
    desk.beat("s1")
    desk.create()
    publish(desk)
    return desk


def test_a_pinned_version_stays_until_its_pin_is_released(desk: Desk) -> None:
    held = pin(desk)
    assert (held.version, held.space, held.owner, held.term_s, held.expires_ms - held.created_ms) == (1, "graph", "trainer", 60, 60_000)
    publish(desk, 3)
    desk.passes(2)
    assert served(desk) == [1, 4], "2 and 3 are too many, and nobody pins them"
    before = desk.poll("s1").revision
    desk.ask("release_pin", mpb.PinRequest(pin_id=held.pin_id))
    desk.passes(0)
    assert served(desk) == [4]
    assert desk.poll("s1").revision > before
    desk.ask("release_pin", mpb.PinRequest(pin_id=held.pin_id))  # again, nothing


def test_a_pin_ends_with_its_term_and_each_renewal_grants_a_whole_one(desk: Desk) -> None:
    kept, left = pin(desk, term_s=10), pin(desk, term_s=10)
    publish(desk)
    for _ in range(3):
        desk.passes(9)
        renewed = desk.ask("renew_pin", mpb.PinRequest(pin_id=kept.pin_id))
        assert renewed.expires_ms == desk.now_ms + 10_000
    assert pins(desk) == [kept.pin_id]
    with pytest.raises(NotFound, match=rf"pin {left.pin_id} is not there: .* pin again"):
        desk.ask("renew_pin", mpb.PinRequest(pin_id=left.pin_id))
    assert served(desk) == [1, 2]
    desk.passes(10)
    assert (pins(desk), served(desk)) == ([], [2])
    assert desk.store.range(keys.PINS) == []


def test_a_term_that_is_over_is_not_renewed_though_nobody_has_looked_at_the_clock(desk: Desk) -> None:
    held = pin(desk, term_s=10)
    desk.now_ms += 10_000
    with pytest.raises(NotFound, match="ended without a renewal"):
        desk.ask("renew_pin", mpb.PinRequest(pin_id=held.pin_id))


def test_a_restart_of_metad_grants_every_pin_a_whole_term_again(desk: Desk) -> None:
    held = pin(desk, term_s=100)
    publish(desk)
    after = Desk(desk.store, now_ms=desk.now_ms + 99_000, keep_versions=1, retire_after_s=0)
    after.beat("s1", incarnation=2)
    after.passes(99)
    assert [manifest.version for manifest in after.poll("s1", incarnation=2).spaces[0].versions] == [1, 2]
    assert [(found.pin_id, found.owner) for found in after.ask("list_pins", mpb.ListPinsRequest()).pins] == [(held.pin_id, "trainer")]
    after.passes(1)
    assert [manifest.version for manifest in after.poll("s1", incarnation=2).spaces[0].versions] == [2]
    fresh = after.ask("pin_version", mpb.PinVersionRequest(space="graph"))
    assert fresh.pin_id > held.pin_id, "an id is never given twice"


@pytest.mark.parametrize("term_s", [-1.0, 0.5, 601.0, float("nan"), float("inf")])
def test_a_term_out_of_bounds_is_refused_with_its_value(desk: Desk, term_s: float) -> None:
    with pytest.raises(InvalidRequest, match=rf"{term_s} s: expected 1 to 600 s"):
        pin(desk, term_s=term_s)


def test_a_space_has_only_so_many_pins(desk: Desk) -> None:
    held = [pin(desk) for _ in range(3)]
    with pytest.raises(Busy, match="'graph' has 3 pins, as many as it may"):
        pin(desk)
    desk.ask("release_pin", mpb.PinRequest(pin_id=held[0].pin_id))
    assert pin(desk).pin_id == held[-1].pin_id + 1


def test_only_what_is_served_can_be_pinned(desk: Desk) -> None:
    with pytest.raises(NotFound, match="version 9 of space 'graph' is not there; there are 1"):
        pin(desk, version=9)
    with pytest.raises(InvalidRequest, match="257 characters"):
        pin(desk, owner="x" * 257)
    with pytest.raises(NotFound, match="'nine' does not exist"):
        desk.ask("list_pins", mpb.ListPinsRequest(space="nine"))
    assert desk.store.range(keys.PINS) == []


def test_a_version_that_a_job_reads_stays_until_the_job_is_over(desk: Desk) -> None:
    desk.load()
    build = desk.submit()
    audit = desk.ask("submit_job", mpb.SubmitJobRequest(space="graph", kind="audit", version=1))
    desk.build("s1")
    assert desk.job(build.job_id).state == pb.FINISHED
    for _ in range(3):
        desk.passes(1)
        desk.beat("s1")
    assert served(desk) == [1, 2]
    desk.ask("stop_job", mpb.JobRequest(job_id=audit.job_id))
    desk.beat("s1")
    desk.passes(0)
    assert desk.job(audit.job_id).state == pb.STOPPED
    assert served(desk) == [2]


def test_pins_go_with_their_space(desk: Desk) -> None:
    held = pin(desk)
    desk.ask("drop_space", mpb.DropSpaceRequest(space="graph"))
    assert list(desk.ask("list_pins", mpb.ListPinsRequest()).pins) == []
    assert desk.store.range(keys.PINS) == []
    with pytest.raises(NotFound, match="its space was dropped"):
        desk.ask("renew_pin", mpb.PinRequest(pin_id=held.pin_id))


def test_a_graphd_that_has_not_spoken_since_metad_restarted_may_route_by_anything(desk: Desk) -> None:
    desk.beat("g1", role=mpb.GRAPHD, held=[mpb.HeldVersion(space_id=1, version=1)])
    publish(desk)
    after = Desk(desk.store, now_ms=desk.now_ms + 1000, keep_versions=1, retire_after_s=1)
    after.beat("s1", incarnation=2)
    after.passes(2)
    assert [manifest.version for manifest in after.poll("s1", incarnation=2).spaces[0].versions] == [1, 2]
    after.passes(4)  # its lease is over: it is not there
    assert [manifest.version for manifest in after.poll("s1", incarnation=2).spaces[0].versions] == [2]
