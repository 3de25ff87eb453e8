"""Tests that expired or abandoned loads and dropped spaces leave no records at metad."""

from __future__ import annotations

import pytest
from tests.kit.metad import InProcessMetad, edge_chunk, node_chunk

from asterism_proto.errors import Conflict, NotFound
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.store import keys
from metad.store.port import MetaStore

WEEK_S = 7 * 86_400.0


@pytest.fixture
def metad() -> InProcessMetad:
    metad = InProcessMetad()
    metad.heartbeat("s1")
    metad.heartbeat("s2")
    metad.create()
    return metad


def load_state(metad: InProcessMetad, load: metad_pb.Load) -> int:
    return int(metad.ask("get_load", metad_pb.LoadRequest(load_id=load.load_id)).state)


def abandoned_loads(metad: InProcessMetad) -> list[int]:
    return list(metad.poll("s1").abandoned_loads)


def record_kinds(store: MetaStore) -> set[str]:
    """Return the kinds of records in a store."""
    return {key.decode().split("/")[1] for key, _ in store.range(b"")}


def test_open_load_ends_a_week_after_last_client_activity(metad: InProcessMetad) -> None:
    silent, resumed, growing = metad.begin(), metad.begin(resume_key="file"), metad.begin()
    metad.register(silent, node_chunk(0))
    metad.advance_clock(WEEK_S / 2)
    assert metad.begin(resume_key="file").load_id == resumed.load_id
    metad.register(growing, edge_chunk(0))
    metad.advance_clock(WEEK_S / 2 + 1)
    assert [load_state(metad, load) for load in (silent, resumed, growing)] == [
        metad_pb.ABANDONED,
        metad_pb.OPEN,
        metad_pb.OPEN,
    ]
    assert abandoned_loads(metad) == [silent.load_id]
    assert metad.store.range(keys.chunks_prefix(silent.load_id)) == []
    metad.advance_clock(WEEK_S / 2)
    assert abandoned_loads(metad) == [silent.load_id, resumed.load_id, growing.load_id]


def test_acknowledgement_alone_renews_a_load(metad: InProcessMetad) -> None:
    load = metad.begin()
    metad.register(load, node_chunk(0))
    metad.advance_clock(WEEK_S - 1)
    metad.register(load, written=[0])
    metad.advance_clock(WEEK_S - 1)
    assert load_state(metad, load) == metad_pb.OPEN


@pytest.mark.parametrize("jump_s", [-86_400.0, 0.0, 86_400.0, 2 * WEEK_S])
def test_restart_grants_a_load_a_full_lease(metad: InProcessMetad, jump_s: float) -> None:
    """The wall clock may have changed since: a jump of weeks abandons no load."""
    load = metad.begin()
    metad.advance_clock(WEEK_S / 2)
    metad.register(load, node_chunk(0))
    restarted = InProcessMetad(metad.store, now_ms=metad.now_ms + int(jump_s * 1000))
    restarted.advance_clock(WEEK_S - 1)
    assert load_state(restarted, load) == metad_pb.OPEN
    restarted.advance_clock(2 + max(0.0, -jump_s))
    assert load_state(restarted, load) == metad_pb.ABANDONED


def test_abandoned_load_is_announced_until_all_hosts_drop_it(metad: InProcessMetad) -> None:
    load = metad.begin()
    metad.ask("abandon_load", metad_pb.LoadRequest(load_id=load.load_id))
    metad.heartbeat("s1", dropped_loads=[load.load_id])
    assert abandoned_loads(metad) == [load.load_id], "s2 has not said so yet"
    restarted = InProcessMetad(metad.store, now_ms=metad.now_ms)
    assert abandoned_loads(restarted) == [load.load_id]
    restarted.heartbeat("s2", dropped_loads=[load.load_id, 77])
    assert abandoned_loads(restarted) == [load.load_id], (
        "a storaged reports to a new metad again, at every heartbeat"
    )
    restarted.heartbeat("s3", dropped_loads=[load.load_id])  # it holds no partition
    restarted.heartbeat("s1", dropped_loads=[load.load_id])
    assert abandoned_loads(restarted) == []
    restarted_again = InProcessMetad(restarted.store, now_ms=restarted.now_ms)
    assert abandoned_loads(restarted_again) == []
    assert load_state(restarted_again, load) == metad_pb.ABANDONED, "its client may still ask"


def test_records_of_abandoned_loads_go_with_the_last_block(metad: InProcessMetad) -> None:
    settled, unsettled = metad.begin(), metad.begin()
    for load in (settled, unsettled):
        metad.ask("abandon_load", metad_pb.LoadRequest(load_id=load.load_id))
    for uuid in ("s1", "s2"):
        metad.heartbeat(uuid, dropped_loads=[settled.load_id])
    metad.advance_clock(WEEK_S + 1)
    with pytest.raises(NotFound, match=f"load {settled.load_id} does not exist"):
        load_state(metad, settled)
    assert load_state(metad, unsettled) == metad_pb.ABANDONED
    assert [keys.last_number(key) for key, _ in metad.store.range(keys.LOADS)] == [
        unsettled.load_id
    ]


def test_blocks_of_closed_uncommitted_loads_are_dead(metad: InProcessMetad) -> None:
    open_, committed, given_up, forgotten = (
        metad.begin(),
        metad.begin(),
        metad.begin(),
        metad.begin(),
    )
    metad.commit(committed)
    for load in (given_up, forgotten):
        metad.ask("abandon_load", metad_pb.LoadRequest(load_id=load.load_id))
    for uuid in ("s1", "s2"):
        metad.heartbeat(uuid, dropped_loads=[forgotten.load_id])
    metad.advance_clock(WEEK_S - 1)
    metad.begin(resume_key="x")
    load_ids = [load.load_id for load in (open_, committed, given_up, forgotten)]
    unknown_id = forgotten.load_id + 1000
    assert metad.find_dead_loads("s1", *load_ids, unknown_id) == [
        given_up.load_id,
        forgotten.load_id,
    ], "a load of a later catalog than this one is not ours to judge"


def test_dropped_space_leaves_only_job_records(metad: InProcessMetad) -> None:
    metad.load()
    metad.submit()
    metad.build("s1", "s2")
    metad.ask("pin_version", metad_pb.PinVersionRequest(space="graph"))
    for ending in ("abandon_load", "none"):
        load = metad.begin()
        metad.register(load, node_chunk(0), edge_chunk(1))
        if ending != "none":
            metad.ask(ending, metad_pb.LoadRequest(load_id=load.load_id))
    settled = metad.begin()
    metad.ask("abandon_load", metad_pb.LoadRequest(load_id=settled.load_id))
    for uuid in ("s1", "s2"):
        metad.heartbeat(uuid, dropped_loads=[settled.load_id])
    metad.load()
    job = metad.submit()
    metad.build("s1")  # one task is done, and its result is stored
    permanent = {
        "format",
        "cluster",
        "folder",
        "start",
        "history",
        "revision",
        "term",
        "next",
        "host",
    }
    assert record_kinds(metad.store) == permanent | {
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
    metad.ask("drop_space", metad_pb.DropSpaceRequest(space="graph"))
    assert record_kinds(metad.store) == permanent | {"job", "removal"}, (
        "the orders to remove its data stay until they are carried out"
    )
    assert metad.job(job.job_id).state == common_pb.STOPPED
    with pytest.raises(Conflict, match="was dropped"):
        metad.ask("recover_job", metad_pb.JobRequest(job_id=job.job_id))
    metad.advance_clock(WEEK_S + 1)
    assert record_kinds(metad.store) == permanent | {"removal"}
    for uuid in ("s1", "s2"):
        metad.heartbeat(
            uuid, completed_removals=[removal.removal_id for removal in metad.poll(uuid).removals]
        )
    assert record_kinds(metad.store) == permanent


def test_dropped_space_does_not_block_other_jobs(metad: InProcessMetad) -> None:
    metad.create("other")
    for space in ("graph", "other"):
        metad.load(space)
    first, second = metad.submit(), metad.submit("other")
    metad.load()
    waiting = metad.submit()
    metad.ask("drop_space", metad_pb.DropSpaceRequest(space="graph"))
    assert {metad.job(job.job_id).state for job in (first, waiting)} == {common_pb.STOPPED}
    assert [order.job_id for order in metad.poll("s1").task_assignments] == [second.job_id]
    metad.build("s1", "s2")
    assert metad.job(second.job_id).state == common_pb.FINISHED
    metad.create()
    metad.load()
    metad.submit()
    metad.build("s1", "s2")
    assert [
        (route.space.name, route.versions[-1].version) for route in metad.poll("s1").spaces
    ] == [("other", 1), ("graph", 1)]


def test_next_load_is_not_dead_yet(metad: InProcessMetad) -> None:
    """A newer catalog than this one may have assigned it."""
    load = metad.begin()
    metad.ask("abandon_load", metad_pb.LoadRequest(load_id=load.load_id))
    assert metad.find_dead_loads("s1", load.load_id, load.load_id + 1) == [load.load_id]
