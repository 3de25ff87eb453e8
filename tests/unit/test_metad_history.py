"""Which positions a catalog contains: copies that are put back, that go on, that are adopted; and identifiers never given twice."""

from __future__ import annotations

import pytest
from tests.kit.metad import Desk

from asterism_proto.errors import AsterismError, Conflict, NotReady
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from metad.catalog.history import TERMS_KEPT, Highest, History, Position, lost
from metad.store import keys
from metad.store.memory import MemoryStore
from metad.store.revised import RevisedStore


def copy_of(store: MemoryStore) -> MemoryStore:
    """A copy of a store, as a folder is copied."""
    copy = MemoryStore()
    copy.write(dict(store.range(b"")))
    return copy


def begun(store: MemoryStore) -> tuple[History, RevisedStore]:
    """A metad that starts on a store."""
    revised = RevisedStore(store)
    return History(revised), revised


def test_every_write_has_the_next_revision_in_the_same_write() -> None:
    store = MemoryStore()
    revised = RevisedStore(store)
    for number in (1, 2, 3):
        revised.write({b"1/x": b"%d" % number})
        assert store.get(keys.REVISION) == b"%d" % number
    revised.write({keys.NEXT_LOAD: b"50"})
    assert revised.revision == 50, "never below an identifier that was given out"
    assert RevisedStore(store).revision == 50


def test_a_catalog_contains_its_own_past_over_restarts() -> None:
    store = MemoryStore()
    history, revised = begun(store)
    first = history.position
    revised.write({b"1/x": b"1"})
    second = history.position
    later, _ = begun(store)
    assert all(later.contains(position) for position in (first, second, later.position))
    assert not history.contains(later.position), "the earlier process knows nothing of the later one"
    assert not later.contains(Position(history=second.history, term=second.term, revision=second.revision + 1))
    assert not later.contains(Position(history="other", term=second.term, revision=second.revision))


def test_a_copy_lacks_what_came_after_it_however_far_it_goes_on() -> None:
    store = MemoryStore()
    _, revised = begun(store)
    copied = copy_of(store)
    revised.write({b"1/x": b"1"})
    history, revised = begun(store)
    revised.write({b"1/x": b"2"})
    followed = history.position
    copy, writes = begun(copied)
    assert not copy.contains(followed)
    while copy.position.revision <= followed.revision + 5:
        writes.write({b"1/y": b"1"})
    assert not copy.contains(followed)
    assert not copy.gave_up(followed)


def test_a_copy_of_a_running_metad_lacks_later_revisions_of_the_same_term() -> None:
    store = MemoryStore()
    history, revised = begun(store)
    copied = copy_of(store)
    before = history.position
    revised.write({b"1/x": b"1"})
    copy, writes = begun(copied)
    assert copy.contains(before)
    writes.write({b"1/y": b"1"})
    assert not copy.contains(history.position)


def test_an_adoption_gives_up_older_positions_of_a_history_only() -> None:
    store = MemoryStore()
    history, revised = begun(store)
    copied = copy_of(store)
    for _ in range(10):
        revised.write({b"1/x": b"1"})
    followed = history.position
    for _ in range(5):
        revised.write({b"1/x": b"1"})
    newest = history.position
    copy, _ = begun(copied)
    copy.adopt({followed.history: followed.revision}, highest=3, also={})
    assert copy.gave_up(followed)
    assert not copy.gave_up(newest), "nobody has listed what it holds"
    assert copy.position.revision > followed.revision
    assert copy.contains(copy.position)
    again, _ = begun(copied)
    assert again.gave_up(followed), "it is durable"
    assert again.highest().load_id >= followed.revision
    assert lost(again.given_up_ids(), "load_id", followed.revision)
    assert not lost(again.given_up_ids(), "load_id", again.highest().load_id + 1)


def test_old_terms_are_forgotten_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert TERMS_KEPT >= 1000
    monkeypatch.setattr("metad.catalog.history.TERMS_KEPT", 3)
    store = MemoryStore()
    positions = [begun(store)[0].position for _ in range(5)]
    last, _ = begun(store)
    assert [last.contains(position) for position in positions] == [False, False, False, True, True]
    assert len(store.range(keys.TERMS)) == 3


def test_a_catalog_of_an_earlier_release_begins_above_its_identifiers() -> None:
    store = MemoryStore()
    store.write({keys.NEXT_SPACE: b"3", keys.NEXT_LOAD: b"40", keys.FORMAT: b"1", keys.CLUSTER: b"c"})
    history, revised = begun(store)
    assert revised.revision == 41
    assert history.highest() == Highest(space_id=2, load_id=39)


def told(desk: Desk, uuid: str = "s1") -> dict[str, object]:
    """What a storaged that has followed the newest state says of it."""
    return {"followed": desk.poll(uuid).position, "cluster": desk.poll(uuid).cluster}


def filled() -> tuple[Desk, MemoryStore]:
    """A catalog with a space, a version and a load, and a copy of its store from before them."""
    store = MemoryStore()
    desk = Desk(store)
    for uuid in ("s1", "s2"):
        desk.beat(uuid)
    desk.create("old")
    copied = copy_of(store)
    desk.create("new")
    desk.load("old")
    desk.submit("old")
    desk.build("s1", "s2")
    return desk, copied


def test_a_daemon_that_is_ahead_is_told_nothing_and_not_believed() -> None:
    desk, copied = filled()
    ahead = told(desk)
    older = Desk(copied, now_ms=desk.now_ms)
    older.load("old")
    older.submit("old")
    order = older.poll("s1").orders[0]
    report = mpb.TaskReport(task_id=order.task_id, attempt=1, state=pb.FAILED, cause="of another catalog's task")
    older.beat("s1", report, removed=[1], held=[mpb.HeldVersion(space_id=1, version=9)], **ahead)
    reply = older.poll("s1", **ahead)
    assert (reply.continues, reply.adopted, len(reply.spaces), len(reply.orders), len(reply.removals)) == (False, False, 0, 0, 0)
    assert not older.job(order.job_id).tasks[0].causes
    assert older.dead("s1", 1, 2, 3) == []
    with pytest.raises(NotReady, match="asterism metad adopt"):
        older.begin("old")
    known = older.rooms.board.revision
    older.passes(365 * 86_400)
    assert older.rooms.board.revision >= known
    assert older.rooms.catalog.removals.pending() == [], "it decides about nothing"


def test_ids_beyond_the_catalog_show_an_older_copy_too() -> None:
    desk, copied = filled()
    older = Desk(copied, now_ms=desk.now_ms)
    for field in ("space_id", "job_id", "load_id"):
        older.beat("s1")
        assert older.rooms.followers.fault() == ""
        older.beat("s1", highest=mpb.HighestIds(**{field: 2}))
        assert "older than" in older.rooms.followers.fault()
        assert not older.poll("s1").continues


def test_adopting_needs_inventories_and_orders_away_what_is_unknown() -> None:
    desk, copied = filled()
    ahead = {uuid: told(desk, uuid) for uuid in ("s1", "s2", "g1")}
    older = Desk(copied, now_ms=desk.now_ms)
    open_load = older.begin("old")
    older.beat("s1", **ahead["s1"])
    with pytest.raises(NotReady, match="expected reports of storageds s1"):
        older.ask("adopt_catalog", mpb.AdoptCatalogRequest())
    space = mpb.InventorySpace(space_id=1, builds=[mpb.InventoryBuild(job_id=1, version=1)], checkpoints=[1], loads=[1, 2])
    spaces = [space, mpb.InventorySpace(space_id=2, name="new", bytes=7)]
    older.take_stock("s1", spaces, **ahead["s1"])
    before = older.ask("adopt_catalog", mpb.AdoptCatalogRequest())
    assert [(u.space_id, u.job_id, list(u.loads)) for u in before.unknown] == [(1, 1, []), (1, 0, [2]), (2, 0, [])]
    assert list(before.open_loads) == [open_load.load_id]
    assert older.ask("get_load", mpb.LoadRequest(load_id=open_load.load_id)).state == mpb.ABANDONED
    reply = older.poll("s1", **ahead["s1"])
    assert (reply.continues, reply.adopted) == (True, True)
    kinds = [(r.kind, r.space_id, r.job_id, list(r.loads)) for r in reply.removals]
    assert kinds == [
        (mpb.REMOVE_BUILD, 1, 1, []),
        (mpb.REMOVE_LEFTOVERS, 1, 1, []),
        (mpb.REMOVE_LOADS, 1, 0, [2]),
        (mpb.REMOVE_SPACE, 2, 0, []),
    ]
    older.take_stock("s1", spaces, **ahead["s1"])
    assert len(older.poll("s1").removals) == 4, "nothing is ordered twice"
    after = {"followed": reply.position, "cluster": reply.cluster}
    older.beat("s1", removed=[r.removal_id for r in reply.removals], **after)
    assert list(older.poll("s1", **after).removals) == []
    # One that was away reports, and is ordered the same, without another adoption.
    older.beat("s2", **ahead["s2"])
    assert older.rooms.followers.fault() == ""
    assert older.poll("s2", **ahead["s2"]).adopted
    older.take_stock("s2", spaces, **ahead["s2"])
    assert len(older.poll("s2").removals) == 4
    assert older.dead("s2", 2) == [], "not without a copy"
    assert older.create("another").space_id > desk.rooms.store.revision


def test_daemons_of_two_other_clusters_are_not_taken_over_unnamed() -> None:
    desk = Desk()
    for uuid, cluster in (("s1", "a"), ("s2", "b")):
        with pytest.raises(Conflict):
            desk.beat(uuid, cluster=cluster, followed=mpb.CatalogPosition(history=cluster, term="t", revision=5))
        desk.take_stock(uuid, [], cluster=cluster, followed=mpb.CatalogPosition(history=cluster, term="t", revision=5))
    with pytest.raises(Conflict, match="a and b"):
        desk.ask("adopt_catalog", mpb.AdoptCatalogRequest())
    with pytest.raises(Conflict, match="cluster='c'"):
        desk.ask("adopt_catalog", mpb.AdoptCatalogRequest(cluster="c"))
    desk.ask("adopt_catalog", mpb.AdoptCatalogRequest(cluster="a"))
    desk.beat("s1", cluster="a", followed=mpb.CatalogPosition(history="a", term="t", revision=5))
    with pytest.raises(AsterismError):
        desk.beat("s2", cluster="b")


def test_nothing_is_given_out_before_storageds_have_confirmed_the_catalog() -> None:
    desk, _ = filled()
    after = Desk(desk.store, now_ms=desk.now_ms, confirmed=False, lease_s=4.0, heartbeat_interval_s=0.1)
    after.rooms.followers.lease_s = -1.0  # do not wait here
    for change in (lambda: after.begin("old"), lambda: after.create("x"), lambda: after.submit("old")):
        with pytest.raises(NotReady, match="has just started"):
            change()
    after.beat("s1")
    with pytest.raises(NotReady, match="expected storageds s2 to confirm"):
        after.begin("old")
    after.passes(5)  # the lease of s2 is over
    after.beat("s1")
    after.begin("old")


def test_removal_orders_outlive_restarts_until_every_host_has_done_them() -> None:
    desk, _ = filled()
    desk.ask("drop_space", mpb.DropSpaceRequest(space="old"))
    (order,) = desk.poll("s1").removals
    assert (order.kind, order.space_id) == (mpb.REMOVE_SPACE, 1)
    desk.beat("s1", removed=[order.removal_id])
    after = Desk(desk.store, now_ms=desk.now_ms)
    assert list(after.poll("s1").removals) == []
    assert [r.removal_id for r in after.poll("s2").removals] == [order.removal_id]
    after.beat("s2", removed=[order.removal_id])
    assert after.store.range(keys.REMOVALS) == []


def test_a_retired_version_and_a_job_that_is_over_are_ordered_away_by_name() -> None:
    desk, _ = filled()
    desk.passes(1.5)
    assert [(r.kind, r.job_id) for r in desk.poll("s1").removals] == [(mpb.REMOVE_LEFTOVERS, 1)], "not what it published"
    for _ in range(2):
        desk.load("old")
        desk.submit("old")
        desk.build("s1", "s2")
    desk.passes(100)
    assert (mpb.REMOVE_BUILD, 1) in [(r.kind, r.job_id) for r in desk.poll("s1").removals]


def test_a_recovered_job_takes_its_removal_orders_back() -> None:
    desk, _ = filled()
    desk.load("old")
    job = desk.submit("old")
    desk.ask("stop_job", mpb.JobRequest(job_id=job.job_id))
    for uuid in ("s1", "s2"):
        desk.beat(uuid)
    desk.passes(2 * 86_400)
    mine = [r.kind for r in desk.poll("s1").removals if r.job_id == job.job_id]
    assert mine == [mpb.REMOVE_BUILD, mpb.REMOVE_LEFTOVERS]
    desk.ask("recover_job", mpb.JobRequest(job_id=job.job_id))
    assert [r for r in desk.poll("s1").removals if r.job_id == job.job_id] == []
