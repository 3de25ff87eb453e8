"""Loads that nobody goes on with, loads that were given up, and spaces that are dropped leave nothing behind at metad."""

from __future__ import annotations

import pytest
from tests.kit.metad import Desk, edges, nodes

from asterism_proto.errors import Conflict, NotFound
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from metad.store import keys
from metad.store.port import MetaStore

WEEK_S = 7 * 86_400.0


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.beat("s1")
    desk.beat("s2")
    desk.create()
    return desk


def state(desk: Desk, load: mpb.Load) -> int:
    return int(desk.ask("get_load", mpb.LoadRequest(load_id=load.load_id)).state)


def abandoned(desk: Desk) -> list[int]:
    return list(desk.poll("s1").abandoned_loads)


def names(store: MetaStore) -> set[str]:
    """The kinds of records that a store holds."""
    return {key.decode().split("/")[1] for key, _ in store.range(b"")}


def test_an_open_load_ends_a_week_after_its_client_was_last_heard_of(desk: Desk) -> None:
    silent, resumed, growing = desk.begin(), desk.begin(resume_key="file"), desk.begin()
    desk.register(silent, nodes(0))
    desk.passes(WEEK_S / 2)
    assert desk.begin(resume_key="file").load_id == resumed.load_id
    desk.register(growing, edges(0))
    desk.passes(WEEK_S / 2 + 1)
    assert [state(desk, load) for load in (silent, resumed, growing)] == [mpb.ABANDONED, mpb.OPEN, mpb.OPEN]
    assert abandoned(desk) == [silent.load_id]
    assert desk.store.range(keys.chunks(silent.load_id)) == []
    desk.passes(WEEK_S / 2)
    assert abandoned(desk) == [silent.load_id, resumed.load_id, growing.load_id]


def test_an_acknowledgement_alone_shows_that_a_client_is_there(desk: Desk) -> None:
    load = desk.begin()
    desk.register(load, nodes(0))
    desk.passes(WEEK_S - 1)
    desk.register(load, written=[0])
    desk.passes(WEEK_S - 1)
    assert state(desk, load) == mpb.OPEN


@pytest.mark.parametrize("jump_s", [-86_400.0, 0.0, 86_400.0, 2 * WEEK_S])
def test_a_restart_grants_a_load_a_whole_lease(desk: Desk, jump_s: float) -> None:
    """Its wall clock may have been set since: a jump of weeks abandons nothing."""
    load = desk.begin()
    desk.passes(WEEK_S / 2)
    desk.register(load, nodes(0))
    after = Desk(desk.store, now_ms=desk.now_ms + int(jump_s * 1000))
    after.passes(WEEK_S - 1)
    assert state(after, load) == mpb.OPEN
    after.passes(2 + max(0.0, -jump_s))
    assert state(after, load) == mpb.ABANDONED


def test_an_abandoned_load_is_told_until_every_storaged_of_its_space_holds_nothing_of_it(desk: Desk) -> None:
    load = desk.begin()
    desk.ask("abandon_load", mpb.LoadRequest(load_id=load.load_id))
    desk.beat("s1", dropped_loads=[load.load_id])
    assert abandoned(desk) == [load.load_id], "s2 has not said so yet"
    after = Desk(desk.store, now_ms=desk.now_ms)
    assert abandoned(after) == [load.load_id]
    after.beat("s2", dropped_loads=[load.load_id, 77])
    assert abandoned(after) == [load.load_id], "what was said to an earlier metad is said again, at every beat"
    after.beat("s3", dropped_loads=[load.load_id])  # it holds no part
    after.beat("s1", dropped_loads=[load.load_id])
    assert abandoned(after) == []
    last = Desk(after.store, now_ms=after.now_ms)
    assert abandoned(last) == []
    assert state(last, load) == mpb.ABANDONED, "its client may still ask"


def test_records_of_abandoned_loads_go_too_once_nobody_holds_a_block(desk: Desk) -> None:
    settled, unsettled = desk.begin(), desk.begin()
    for load in (settled, unsettled):
        desk.ask("abandon_load", mpb.LoadRequest(load_id=load.load_id))
    for uuid in ("s1", "s2"):
        desk.beat(uuid, dropped_loads=[settled.load_id])
    desk.passes(WEEK_S + 1)
    with pytest.raises(NotFound, match=f"load {settled.load_id} does not exist"):
        state(desk, settled)
    assert state(desk, unsettled) == mpb.ABANDONED
    assert [keys.last_number(key) for key, _ in desk.store.range(keys.LOADS)] == [unsettled.load_id]


def test_blocks_of_loads_that_are_neither_open_nor_committed_are_dead(desk: Desk) -> None:
    open_, committed, given_up, forgotten = desk.begin(), desk.begin(), desk.begin(), desk.begin()
    desk.commit(committed)
    for load in (given_up, forgotten):
        desk.ask("abandon_load", mpb.LoadRequest(load_id=load.load_id))
    for uuid in ("s1", "s2"):
        desk.beat(uuid, dropped_loads=[forgotten.load_id])
    desk.passes(WEEK_S - 1)
    desk.begin(resume_key="x")
    held = [load.load_id for load in (open_, committed, given_up, forgotten)]
    unheard = forgotten.load_id + 1000
    assert desk.dead("s1", *held, unheard) == [given_up.load_id, forgotten.load_id], "a load of a later catalog than this one is not ours to judge"


def test_a_dropped_space_leaves_no_record_but_that_of_its_jobs(desk: Desk) -> None:
    desk.load()
    desk.submit()
    desk.build("s1", "s2")
    desk.ask("pin_version", mpb.PinVersionRequest(space="graph"))
    for ending in ("abandon_load", "none"):
        load = desk.begin()
        desk.register(load, nodes(0), edges(1))
        if ending != "none":
            desk.ask(ending, mpb.LoadRequest(load_id=load.load_id))
    settled = desk.begin()
    desk.ask("abandon_load", mpb.LoadRequest(load_id=settled.load_id))
    for uuid in ("s1", "s2"):
        desk.beat(uuid, dropped_loads=[settled.load_id])
    desk.load()
    job = desk.submit()
    desk.build("s1")  # one share is done, and its result written down
    always = {"format", "cluster", "folder", "start", "history", "revision", "term", "next", "host"}
    assert names(desk.store) == always | {
        "space",
        "commit",
        "base",
        "load",
        "chunk",
        "version",
        "job",
        "result",
        "pin",
    }
    desk.ask("drop_space", mpb.DropSpaceRequest(space="graph"))
    assert names(desk.store) == always | {"job", "removal"}, "the orders to remove its data stay until they are carried out"
    assert desk.job(job.job_id).state == pb.STOPPED
    with pytest.raises(Conflict, match="was dropped"):
        desk.ask("recover_job", mpb.JobRequest(job_id=job.job_id))
    desk.passes(WEEK_S + 1)
    assert names(desk.store) == always | {"removal"}
    for uuid in ("s1", "s2"):
        desk.beat(uuid, removed=[removal.removal_id for removal in desk.poll(uuid).removals])
    assert names(desk.store) == always


def test_a_dropped_space_holds_nobody_up(desk: Desk) -> None:
    desk.create("other")
    for space in ("graph", "other"):
        desk.load(space)
    first, second = desk.submit(), desk.submit("other")
    desk.load()
    waiting = desk.submit()
    desk.ask("drop_space", mpb.DropSpaceRequest(space="graph"))
    assert {desk.job(job.job_id).state for job in (first, waiting)} == {pb.STOPPED}
    assert [order.job_id for order in desk.poll("s1").orders] == [second.job_id]
    desk.build("s1", "s2")
    assert desk.job(second.job_id).state == pb.FINISHED
    desk.create()
    desk.load()
    desk.submit()
    desk.build("s1", "s2")
    assert [(route.space.name, route.versions[-1].version) for route in desk.poll("s1").spaces] == [("other", 1), ("graph", 1)]
