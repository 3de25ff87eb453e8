"""Tests of pins, the leases that keep a version served: bounds, and restarts of metad."""

from __future__ import annotations

from typing import cast

import pytest
from tests.kit.metad import InProcessMetad

from asterism_proto.errors import Busy, InvalidRequest, NotFound
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.store import keys


def pin(
    metad: InProcessMetad, version: int = 0, term_s: float = 0, owner: str = "trainer"
) -> metad_pb.Pin:
    return cast(
        metad_pb.Pin,
        metad.ask(
            "pin_version",
            metad_pb.PinVersionRequest(space="graph", version=version, term_s=term_s, owner=owner),
        ),
    )


def pin_ids(metad: InProcessMetad) -> list[int]:
    return [
        listed.pin_id
        for listed in metad.ask("list_pins", metad_pb.ListPinsRequest(space="graph")).pins
    ]


def served_versions(metad: InProcessMetad) -> list[int]:
    return [manifest.version for manifest in metad.poll("s1").spaces[0].versions]


def publish(metad: InProcessMetad, times: int = 1) -> None:
    for _ in range(times):
        metad.heartbeat("s1")
        metad.load()
        metad.submit()
        metad.build("s1")


@pytest.fixture
def metad() -> InProcessMetad:
    metad = InProcessMetad(keep_versions=1, retire_after_s=1, pins_per_space=3, pin_limit_s=600)
    metad.heartbeat("s1")
    metad.create()
    publish(metad)
    return metad


def test_a_pinned_version_stays_until_its_pin_is_released(metad: InProcessMetad) -> None:
    pinned = pin(metad)
    assert (
        pinned.version,
        pinned.space,
        pinned.owner,
        pinned.term_s,
        pinned.expires_ms - pinned.created_ms,
    ) == (1, "graph", "trainer", 60, 60_000)
    publish(metad, 3)
    metad.advance_clock(2)
    assert served_versions(metad) == [1, 4], "2 and 3 are too many, and have no pin"
    before = metad.poll("s1").revision
    metad.ask("release_pin", metad_pb.PinRequest(pin_id=pinned.pin_id))
    metad.advance_clock(0)
    assert served_versions(metad) == [4]
    assert metad.poll("s1").revision > before
    metad.ask(
        "release_pin", metad_pb.PinRequest(pin_id=pinned.pin_id)
    )  # a repeated release has no effect


def test_pin_ends_with_its_term_and_renewal_grants_a_full_one(metad: InProcessMetad) -> None:
    renewed_pin, expired_pin = pin(metad, term_s=10), pin(metad, term_s=10)
    publish(metad)
    for _ in range(3):
        metad.advance_clock(9)
        reply = metad.ask("renew_pin", metad_pb.PinRequest(pin_id=renewed_pin.pin_id))
        assert reply.expires_ms == metad.now_ms + 10_000
    assert pin_ids(metad) == [renewed_pin.pin_id]
    with pytest.raises(
        NotFound, match=rf"pin {expired_pin.pin_id} does not exist .* pin the version again"
    ):
        metad.ask("renew_pin", metad_pb.PinRequest(pin_id=expired_pin.pin_id))
    assert served_versions(metad) == [1, 2]
    metad.advance_clock(10)
    assert (pin_ids(metad), served_versions(metad)) == ([], [2])
    assert metad.store.range(keys.PINS) == []


def test_expired_pin_is_not_renewed_even_before_a_tick(metad: InProcessMetad) -> None:
    pinned = pin(metad, term_s=10)
    metad.now_ms += 10_000
    with pytest.raises(NotFound, match="ended without a renewal"):
        metad.ask("renew_pin", metad_pb.PinRequest(pin_id=pinned.pin_id))


def test_metad_restart_grants_every_pin_a_full_term(metad: InProcessMetad) -> None:
    pinned = pin(metad, term_s=100)
    publish(metad)
    restarted = InProcessMetad(
        metad.store, now_ms=metad.now_ms + 99_000, keep_versions=1, retire_after_s=0
    )
    restarted.heartbeat("s1", incarnation=2)
    restarted.advance_clock(99)
    assert [
        manifest.version for manifest in restarted.poll("s1", incarnation=2).spaces[0].versions
    ] == [1, 2]
    assert [
        (listed.pin_id, listed.owner)
        for listed in restarted.ask("list_pins", metad_pb.ListPinsRequest()).pins
    ] == [(pinned.pin_id, "trainer")]
    restarted.advance_clock(1)
    assert [
        manifest.version for manifest in restarted.poll("s1", incarnation=2).spaces[0].versions
    ] == [2]
    fresh = restarted.ask("pin_version", metad_pb.PinVersionRequest(space="graph"))
    assert fresh.pin_id > pinned.pin_id, "an id is never given twice"


@pytest.mark.parametrize("term_s", [-1.0, 0.5, 601.0, float("nan"), float("inf")])
def test_a_term_out_of_bounds_is_refused_with_its_value(
    metad: InProcessMetad, term_s: float
) -> None:
    with pytest.raises(InvalidRequest, match=rf"term_s={term_s}: expected 1 to 600 s"):
        pin(metad, term_s=term_s)


def test_pins_per_space_are_limited(metad: InProcessMetad) -> None:
    pinned = [pin(metad) for _ in range(3)]
    with pytest.raises(Busy, match="'graph' has 3 pins, the maximum"):
        pin(metad)
    metad.ask("release_pin", metad_pb.PinRequest(pin_id=pinned[0].pin_id))
    assert pin(metad).pin_id == pinned[-1].pin_id + 1


def test_only_served_versions_can_be_pinned(metad: InProcessMetad) -> None:
    with pytest.raises(NotFound, match="version 9 of space 'graph' does not exist; there are 1"):
        pin(metad, version=9)
    with pytest.raises(InvalidRequest, match="at most 256 characters, found 257"):
        pin(metad, owner="x" * 257)
    with pytest.raises(NotFound, match="'nine' does not exist"):
        metad.ask("list_pins", metad_pb.ListPinsRequest(space="nine"))
    assert metad.store.range(keys.PINS) == []


def test_version_read_by_a_job_stays_until_the_job_ends(metad: InProcessMetad) -> None:
    metad.load()
    build = metad.submit()
    audit = metad.ask(
        "submit_job", metad_pb.SubmitJobRequest(space="graph", kind="audit", version=1)
    )
    metad.build("s1")
    assert metad.job(build.job_id).state == common_pb.FINISHED
    for _ in range(3):
        metad.advance_clock(1)
        metad.heartbeat("s1")
    assert served_versions(metad) == [1, 2]
    metad.ask("stop_job", metad_pb.JobRequest(job_id=audit.job_id))
    metad.heartbeat("s1")
    metad.advance_clock(0)
    assert metad.job(audit.job_id).state == common_pb.STOPPED
    assert served_versions(metad) == [2]


def test_pins_are_removed_with_their_space(metad: InProcessMetad) -> None:
    pinned = pin(metad)
    metad.ask("drop_space", metad_pb.DropSpaceRequest(space="graph"))
    assert list(metad.ask("list_pins", metad_pb.ListPinsRequest()).pins) == []
    assert metad.store.range(keys.PINS) == []
    with pytest.raises(NotFound, match="its space was dropped"):
        metad.ask("renew_pin", metad_pb.PinRequest(pin_id=pinned.pin_id))


def test_silent_graphd_after_a_restart_delays_retirement(metad: InProcessMetad) -> None:
    metad.heartbeat(
        "g1", role=metad_pb.GRAPHD, held_versions=[metad_pb.HeldVersion(space_id=1, version=1)]
    )
    publish(metad)
    restarted = InProcessMetad(
        metad.store, now_ms=metad.now_ms + 1000, keep_versions=1, retire_after_s=1
    )
    restarted.heartbeat("s1", incarnation=2)
    restarted.advance_clock(2)
    assert [
        manifest.version for manifest in restarted.poll("s1", incarnation=2).spaces[0].versions
    ] == [1, 2]
    restarted.advance_clock(4)  # its lease has expired
    assert [
        manifest.version for manifest in restarted.poll("s1", incarnation=2).spaces[0].versions
    ] == [2]


def test_version_that_a_waiting_job_reads_stays(metad: InProcessMetad) -> None:
    metad.load()
    build = metad.submit()
    metad.load()
    next_build = metad.submit()
    request = metad_pb.SubmitJobRequest(space="graph", kind="audit", version=1)
    audit = metad.ask("submit_job", request)
    metad.build("s1")
    assert [metad.job(job.job_id).state for job in (build, next_build, audit)] == [
        common_pb.FINISHED,
        common_pb.RUNNING,
        common_pb.QUEUE,
    ]
    for _ in range(3):
        metad.advance_clock(1)
        metad.heartbeat("s1")
    assert 1 in served_versions(metad)
