"""Tests of catalog positions: copies that are restored, continued or adopted.

Identifiers are never assigned twice.
"""

from __future__ import annotations

import pytest
from tests.kit.metad import InProcessMetad

from asterism_proto.errors import AsterismError, Conflict, NotReady
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.catalog.position_history import MAX_TERMS, CatalogHistory, was_given_up
from metad.model.hosts import CatalogPosition, HighestIds
from metad.model.ids import HostId
from metad.store import keys
from metad.store.memory_store import MemoryStore
from metad.store.revisions import RevisionedStore


def copy_of(store: MemoryStore) -> MemoryStore:
    """Return a copy of a store, as a copied folder."""
    copy = MemoryStore()
    copy.write(dict(store.range(b"")))
    return copy


def start_metad(store: MemoryStore) -> tuple[CatalogHistory, RevisionedStore]:
    """Start metad's history and store on a store."""
    revisioned = RevisionedStore(store)
    return CatalogHistory(revisioned), revisioned


def test_each_write_includes_the_next_revision() -> None:
    store = MemoryStore()
    revisioned = RevisionedStore(store)
    for number in (1, 2, 3):
        revisioned.write({b"1/x": b"%d" % number})
        assert store.get(keys.REVISION) == b"%d" % number
    revisioned.write({keys.NEXT_LOAD: b"50"})
    assert revisioned.revision == 50, "never below an identifier that was given out"
    assert RevisionedStore(store).revision == 50


def test_a_catalog_contains_its_own_past_over_restarts() -> None:
    store = MemoryStore()
    history, revisioned = start_metad(store)
    first = history.position
    revisioned.write({b"1/x": b"1"})
    second = history.position
    later, _ = start_metad(store)
    assert all(later.contains(position) for position in (first, second, later.position))
    assert not history.contains(later.position), (
        "the earlier process knows nothing of the later one"
    )
    assert not later.contains(
        CatalogPosition(history=second.history, term=second.term, revision=second.revision + 1)
    )
    assert not later.contains(
        CatalogPosition(history="other", term=second.term, revision=second.revision)
    )


def test_copy_never_contains_later_original_positions() -> None:
    store = MemoryStore()
    _, revisioned = start_metad(store)
    copied_store = copy_of(store)
    revisioned.write({b"1/x": b"1"})
    history, revisioned = start_metad(store)
    revisioned.write({b"1/x": b"2"})
    followed_position = history.position
    copy, writes = start_metad(copied_store)
    assert not copy.contains(followed_position)
    while copy.position.revision <= followed_position.revision + 5:
        writes.write({b"1/y": b"1"})
    assert not copy.contains(followed_position)
    assert not copy.has_given_up(followed_position)


def test_copy_of_running_metad_lacks_later_revisions() -> None:
    store = MemoryStore()
    history, revisioned = start_metad(store)
    copied_store = copy_of(store)
    before = history.position
    revisioned.write({b"1/x": b"1"})
    copy, writes = start_metad(copied_store)
    assert copy.contains(before)
    writes.write({b"1/y": b"1"})
    assert not copy.contains(history.position)


def test_adoption_gives_up_only_older_positions() -> None:
    store = MemoryStore()
    history, revisioned = start_metad(store)
    copied_store = copy_of(store)
    for _ in range(10):
        revisioned.write({b"1/x": b"1"})
    followed_position = history.position
    for _ in range(5):
        revisioned.write({b"1/x": b"1"})
    newest = history.position
    copy, _ = start_metad(copied_store)
    copy.adopt(
        {followed_position.history: followed_position.revision}, highest_id=3, extra_changes={}
    )
    assert copy.has_given_up(followed_position)
    assert not copy.has_given_up(newest), "its contents are not listed"
    assert copy.position.revision > followed_position.revision
    assert copy.contains(copy.position)
    restarted, _ = start_metad(copied_store)
    assert restarted.has_given_up(followed_position), "it is durable"
    assert restarted.highest_ids().load_id >= followed_position.revision
    assert was_given_up(restarted.adoption_records(), "load_id", followed_position.revision)
    assert not was_given_up(
        restarted.adoption_records(), "load_id", restarted.highest_ids().load_id + 1
    )


def test_oldest_terms_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_TERMS >= 1000
    monkeypatch.setattr("metad.catalog.position_history.MAX_TERMS", 3)
    store = MemoryStore()
    positions = [start_metad(store)[0].position for _ in range(5)]
    last, _ = start_metad(store)
    assert [last.contains(position) for position in positions] == [False, False, False, True, True]
    assert len(store.range(keys.TERMS)) == 3


def test_catalog_of_earlier_release_starts_above_its_ids() -> None:
    store = MemoryStore()
    store.write(
        {keys.NEXT_SPACE: b"3", keys.NEXT_LOAD: b"40", keys.FORMAT: b"1", keys.CLUSTER: b"c"}
    )
    history, revisioned = start_metad(store)
    assert revisioned.revision == 41
    assert history.highest_ids() == HighestIds(space_id=2, load_id=39)


def followed_state(metad: InProcessMetad, uuid: str = "s1") -> dict[str, object]:
    """Return the report of a storaged that has followed the newest state."""
    return {"followed_position": metad.poll(uuid).position, "cluster": metad.poll(uuid).cluster}


def catalog_and_older_copy() -> tuple[InProcessMetad, MemoryStore]:
    """Return a catalog with a space, a version and a load, and an earlier copy of its store."""
    store = MemoryStore()
    metad = InProcessMetad(store)
    for uuid in ("s1", "s2"):
        metad.heartbeat(uuid)
    metad.create("old")
    copied_store = copy_of(store)
    metad.create("new")
    metad.load("old")
    metad.submit("old")
    metad.build("s1", "s2")
    return metad, copied_store


def test_daemon_ahead_of_catalog_is_not_served_or_believed() -> None:
    metad, copied_store = catalog_and_older_copy()
    newer_state = followed_state(metad)
    older = InProcessMetad(copied_store, now_ms=metad.now_ms)
    older.load("old")
    older.submit("old")
    order = older.poll("s1").task_assignments[0]
    report = metad_pb.TaskReport(
        task_id=order.task_id, attempt=1, state=common_pb.FAILED, cause="of another catalog's task"
    )
    older.heartbeat(
        "s1",
        report,
        completed_removals=[1],
        held_versions=[metad_pb.HeldVersion(space_id=1, version=9)],
        **newer_state,
    )
    reply = older.poll("s1", **newer_state)
    assert (
        reply.contains_position,
        reply.adopted,
        len(reply.spaces),
        len(reply.task_assignments),
        len(reply.removals),
    ) == (False, False, 0, 0, 0)
    assert not older.job(order.job_id).tasks[0].causes
    assert older.find_dead_loads("s1", 1, 2, 3) == []
    with pytest.raises(NotReady, match="asterism metad adopt"):
        older.begin("old")
    known_revision = older.components.change_feed.revision
    older.advance_clock(365 * 86_400)
    assert older.components.change_feed.revision >= known_revision
    assert older.components.catalog.removals.pending() == [], "it decides about nothing"


def test_a_copy_that_lacks_one_write_is_older() -> None:
    metad = InProcessMetad()
    metad.heartbeat("s1")
    copied_store = copy_of(metad.store)
    metad.components.store.write({b"1/x": b"the only write that the copy lacks"})
    newest = followed_state(metad)
    older = InProcessMetad(copied_store, now_ms=metad.now_ms)
    assert not older.poll("s1", **newest).contains_position
    assert InProcessMetad(metad.store, now_ms=metad.now_ms).poll("s1", **newest).contains_position


def test_ids_beyond_the_catalog_reveal_an_older_copy() -> None:
    metad, copied_store = catalog_and_older_copy()
    older = InProcessMetad(copied_store, now_ms=metad.now_ms)
    for field in ("space_id", "job_id", "load_id"):
        older.heartbeat("s1")
        assert older.components.followers.fault() == ""
        older.heartbeat("s1", highest_ids=metad_pb.HighestIds(**{field: 2}))
        assert "older than" in older.components.followers.fault()
        assert not older.poll("s1").contains_position


def test_adoption_needs_inventories_and_removes_unknown_data() -> None:
    metad, copied_store = catalog_and_older_copy()
    newer_states = {uuid: followed_state(metad, uuid) for uuid in ("s1", "s2", "g1")}
    older = InProcessMetad(copied_store, now_ms=metad.now_ms)
    open_load = older.begin("old")
    older.heartbeat("s1", **newer_states["s1"])
    with pytest.raises(NotReady, match="expected reports of storageds s1"):
        older.ask("adopt_catalog", metad_pb.AdoptCatalogRequest())
    space = metad_pb.InventorySpace(
        space_id=1,
        builds=[metad_pb.InventoryBuild(job_id=1, version=1)],
        checkpoints=[1],
        loads=[1, 2],
    )
    spaces = [space, metad_pb.InventorySpace(space_id=2, name="new", bytes=7)]
    older.report_inventory("s1", spaces, **newer_states["s1"])
    adoption = older.ask("adopt_catalog", metad_pb.AdoptCatalogRequest())
    assert [(u.space_id, u.job_id, list(u.loads)) for u in adoption.unknown_data] == [
        (1, 1, []),
        (1, 0, [2]),
        (2, 0, []),
    ]
    assert list(adoption.open_loads) == [open_load.load_id]
    assert (
        older.ask("get_load", metad_pb.LoadRequest(load_id=open_load.load_id)).state
        == metad_pb.ABANDONED
    )
    reply = older.poll("s1", **newer_states["s1"])
    assert (reply.contains_position, reply.adopted) == (True, True)
    kinds = [(r.kind, r.space_id, r.job_id, list(r.loads)) for r in reply.removals]
    assert kinds == [
        (metad_pb.REMOVE_BUILD, 1, 1, []),
        (metad_pb.REMOVE_LEFTOVERS, 1, 1, []),
        (metad_pb.REMOVE_LOADS, 1, 0, [2]),
        (metad_pb.REMOVE_SPACE, 2, 0, []),
    ]
    older.report_inventory("s1", spaces, **newer_states["s1"])
    assert len(older.poll("s1").removals) == 4, "nothing is ordered twice"
    adopted_state = {"followed_position": reply.position, "cluster": reply.cluster}
    older.heartbeat(
        "s1", completed_removals=[r.removal_id for r in reply.removals], **adopted_state
    )
    assert list(older.poll("s1", **adopted_state).removals) == []
    # A host that was offline reports and gets the same removals, without another adoption.
    older.heartbeat("s2", **newer_states["s2"])
    assert older.components.followers.fault() == ""
    assert older.poll("s2", **newer_states["s2"]).adopted
    older.report_inventory("s2", spaces, **newer_states["s2"])
    assert len(older.poll("s2").removals) == 4
    assert older.find_dead_loads("s2", 2) == [], "not without a copy"
    assert older.create("another").space_id > metad.components.store.revision


def test_loads_before_an_adoption_may_be_dead() -> None:
    """Numbers of loads, jobs and spaces are given up separately."""
    metad, copied_store = catalog_and_older_copy()
    newer_state = followed_state(metad)
    older = InProcessMetad(copied_store, now_ms=metad.now_ms)
    load = older.begin("old")
    older.heartbeat("s1", **newer_state)
    older.report_inventory("s1", [metad_pb.InventorySpace(space_id=1, loads=[2])], **newer_state)
    older.ask("adopt_catalog", metad_pb.AdoptCatalogRequest())
    position = older.poll("s1", **newer_state).position
    older.heartbeat("s1", followed_position=position)
    assert older.find_dead_loads("s1", load.load_id, load.load_id + 1) == [load.load_id]


def test_adopting_from_two_clusters_needs_a_cluster_name() -> None:
    metad = InProcessMetad()
    for uuid, cluster in (("s1", "a"), ("s2", "b")):
        with pytest.raises(Conflict):
            metad.heartbeat(
                uuid,
                cluster=cluster,
                followed_position=metad_pb.CatalogPosition(history=cluster, term="t", revision=5),
            )
        metad.report_inventory(
            uuid,
            [],
            cluster=cluster,
            followed_position=metad_pb.CatalogPosition(history=cluster, term="t", revision=5),
        )
    with pytest.raises(Conflict, match="a and b"):
        metad.ask("adopt_catalog", metad_pb.AdoptCatalogRequest())
    with pytest.raises(Conflict, match="cluster='c'"):
        metad.ask("adopt_catalog", metad_pb.AdoptCatalogRequest(cluster="c"))
    metad.ask("adopt_catalog", metad_pb.AdoptCatalogRequest(cluster="a"))
    metad.heartbeat(
        "s1",
        cluster="a",
        followed_position=metad_pb.CatalogPosition(history="a", term="t", revision=5),
    )
    with pytest.raises(AsterismError):
        metad.heartbeat("s2", cluster="b")


def test_no_ids_are_issued_before_the_catalog_is_confirmed() -> None:
    metad, _ = catalog_and_older_copy()
    restarted = InProcessMetad(
        metad.store, now_ms=metad.now_ms, confirmed=False, lease_s=4.0, heartbeat_interval_s=0.1
    )
    restarted.components.followers.lease_s = -1.0  # avoids the wait
    for change in (
        lambda: restarted.begin("old"),
        lambda: restarted.create("x"),
        lambda: restarted.submit("old"),
    ):
        with pytest.raises(NotReady, match="has just started"):
            change()
    restarted.heartbeat("s1")
    with pytest.raises(NotReady, match="expected storageds s2 to confirm"):
        restarted.begin("old")
    restarted.advance_clock(5)  # the lease of s2 has expired
    restarted.heartbeat("s1")
    restarted.begin("old")


def test_removal_orders_persist_until_every_host_is_done() -> None:
    metad, _ = catalog_and_older_copy()
    metad.ask("drop_space", metad_pb.DropSpaceRequest(space="old"))
    (order,) = metad.poll("s1").removals
    assert (order.kind, order.space_id) == (metad_pb.REMOVE_SPACE, 1)
    metad.heartbeat("s1", completed_removals=[order.removal_id])
    restarted = InProcessMetad(metad.store, now_ms=metad.now_ms)
    assert list(restarted.poll("s1").removals) == []
    assert [r.removal_id for r in restarted.poll("s2").removals] == [order.removal_id]
    restarted.heartbeat("s2", completed_removals=[order.removal_id])
    assert restarted.store.range(keys.REMOVALS) == []


def test_retired_versions_and_ended_jobs_are_removed_by_name() -> None:
    metad, _ = catalog_and_older_copy()
    metad.advance_clock(1.5)
    assert [(r.kind, r.job_id) for r in metad.poll("s1").removals] == [
        (metad_pb.REMOVE_LEFTOVERS, 1)
    ], "not what it published"
    for _ in range(2):
        metad.load("old")
        metad.submit("old")
        metad.build("s1", "s2")
    metad.advance_clock(100)
    assert (metad_pb.REMOVE_BUILD, 1) in [(r.kind, r.job_id) for r in metad.poll("s1").removals]


def test_recovered_job_cancels_its_removal_orders() -> None:
    metad, _ = catalog_and_older_copy()
    metad.load("old")
    job = metad.submit("old")
    metad.ask("stop_job", metad_pb.JobRequest(job_id=job.job_id))
    for uuid in ("s1", "s2"):
        metad.heartbeat(uuid)
    metad.advance_clock(2 * 86_400)
    removal_kinds = [r.kind for r in metad.poll("s1").removals if r.job_id == job.job_id]
    assert removal_kinds == [metad_pb.REMOVE_BUILD, metad_pb.REMOVE_LEFTOVERS]
    metad.ask("recover_job", metad_pb.JobRequest(job_id=job.job_id))
    assert [r for r in metad.poll("s1").removals if r.job_id == job.job_id] == []


def test_removals_are_confirmed_by_their_own_hosts_only() -> None:
    metad, _ = catalog_and_older_copy()
    metad.ask("drop_space", metad_pb.DropSpaceRequest(space="old"))
    (order,) = metad.poll("s1").removals
    removals = metad.components.catalog.removals
    assert removals.acknowledge(HostId("s9"), [order.removal_id]) == []
    assert len(removals.acknowledge(HostId("s1"), [order.removal_id])) == 1
    assert removals.acknowledge(HostId("s1"), [order.removal_id]) == []


def test_leftovers_of_a_recovered_job_are_removed_after_its_end() -> None:
    metad, _ = catalog_and_older_copy()
    metad.load("old")
    job = metad.submit("old")

    def stop_and_wait() -> int:
        metad.ask("stop_job", metad_pb.JobRequest(job_id=job.job_id))
        for uuid in ("s1", "s2"):
            metad.heartbeat(uuid)
        metad.advance_clock(2 * 86_400)
        return len([r for r in metad.poll("s1").removals if r.job_id == job.job_id])

    assert stop_and_wait() == 2
    for uuid in ("s1", "s2"):
        metad.heartbeat(uuid)
    metad.ask("recover_job", metad_pb.JobRequest(job_id=job.job_id))
    assert stop_and_wait() == 2
