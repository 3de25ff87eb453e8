"""Beats and polls: who is there, what they are told, and when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.kit.metad import Desk, edges, finished
from tests.kit.waiting import HANG_S, QUICK_S, wait_until

from asterism_proto.errors import Conflict, Unavailable
from asterism_proto.methods import BEATS
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from daemonkit.calls import Call
from metad.board import Board
from metad.store import keys


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    for uuid in ("s1", "s2"):
        desk.beat(uuid)
    desk.create()
    return desk


def parked(desk: Desk, pool: ThreadPoolExecutor, uuid: str, role: int = mpb.STORAGED):  # type: ignore[no-untyped-def]
    """A poll that waits for news, surely parked: what is there already was taken."""
    known = desk.poll(uuid, role=role).revision
    future = pool.submit(desk.poll, uuid, known=known, wait_s=HANG_S, role=role)
    with pytest.raises(TimeoutError):
        future.result(0.05)
    return future


def test_a_storaged_is_told_its_own_orders_with_the_loads_up_to_the_cut(desk: Desk) -> None:
    for _ in range(3):
        desk.load()
    late = desk.begin()
    job = desk.submit()
    desk.commit(late)
    (order,) = desk.poll("s2").orders
    assert (order.job_id, order.attempt, order.kind, list(order.parts), order.cut) == (job.job_id, 1, "build", [1, 3], 3)
    assert (list(order.loads), list(order.commits)) == ([1, 2, 3], [1, 2, 3])
    assert order.task_id != desk.poll("s1").orders[0].task_id


def test_loads_are_ordered_by_commit_not_by_begin(desk: Desk) -> None:
    first, second = desk.begin(), desk.begin()
    desk.commit(second)
    desk.commit(first)
    desk.submit()
    order = desk.poll("s1").orders[0]
    assert (list(order.loads), list(order.commits)) == ([second.load_id, first.load_id], [1, 2])


def test_an_order_is_repeated_until_its_job_ends(desk: Desk) -> None:
    desk.load()
    desk.submit()
    (order,) = desk.poll("s1").orders
    assert list(desk.poll("s1").orders) == [order]
    desk.beat("s1", finished(order))
    assert list(desk.poll("s1").orders) == [order]
    desk.build("s2")
    assert list(desk.poll("s1").orders) == []


def test_a_storaged_is_told_only_of_spaces_whose_parts_it_holds(desk: Desk) -> None:
    desk.beat("s3")
    assert [route.space.name for route in desk.poll("s1").spaces] == ["graph"]
    assert list(desk.poll("s3").spaces) == []
    assert [route.space.name for route in desk.poll("g1", role=mpb.GRAPHD).spaces] == ["graph"]


def test_a_graphd_is_told_where_storageds_are_and_which_are_there(desk: Desk) -> None:
    desk.passes(3)
    desk.beat("s1")
    desk.passes(3)
    hosts = {host.uuid: (host.address, host.online) for host in desk.poll("g1", role=mpb.GRAPHD).storaged}
    assert hosts == {"s1": ("s1:9779", True), "s2": ("s2:9779", False)}


def test_a_published_version_comes_with_all_its_totals_to_both_roles(desk: Desk) -> None:
    desk.load()
    desk.submit()
    desk.build("s1", "s2")
    for uuid, role in (("s1", mpb.STORAGED), ("g1", mpb.GRAPHD)):
        (route,) = desk.poll(uuid, role=role).spaces
        assert route.space.version == 1
        assert [manifest.version for manifest in route.versions] == [1]
        assert len(route.versions[0].totals) == 16
        assert {total.part for total in route.versions[0].totals} == {0, 1, 2, 3}


def test_every_reply_names_its_cluster() -> None:
    clusters = set()
    for _ in range(2):
        # The same folder's identity, but a catalog that is empty: another cluster.
        desk = Desk(uuid="m1")
        desk.beat("s1")
        desk.beat("g1", role=mpb.GRAPHD)
        assert desk.poll("s1").cluster == desk.poll("g1", role=mpb.GRAPHD).cluster
        clusters.add(desk.poll("s1").cluster)
        assert Desk(desk.store, uuid="m2").poll("s1").cluster in clusters
    assert len(clusters) == 2
    assert "" not in clusters


def test_a_catalog_without_a_name_keeps_the_one_of_its_folder() -> None:
    desk = Desk(uuid="m1")
    desk.store.write({keys.CLUSTER: None})
    assert Desk(desk.store, uuid="m1").poll("s1").cluster == "m1"
    assert Desk(desk.store, uuid="m2").poll("s1").cluster == "m1"


def test_a_daemon_with_another_clusters_data_is_refused_and_not_counted_in(desk: Desk) -> None:
    for call in (lambda: desk.beat("s3", cluster="other"), lambda: desk.poll("s3", cluster="other")):
        with pytest.raises(Conflict, match="host s3 belongs to the cluster other"):
            call()
    assert {host.uuid for host in desk.ask("list_hosts", pb.Empty()).hosts} == {"s1", "s2"}
    desk.beat("s3", cluster=desk.poll("s1").cluster)
    assert {host.uuid for host in desk.ask("list_hosts", pb.Empty()).hosts} == {"s1", "s2", "s3"}


def test_what_a_caller_does_to_a_reply_changes_nothing_for_others(desk: Desk) -> None:
    desk.load()
    desk.submit()
    desk.build("s1", "s2")
    reply = desk.poll("s1")
    reply.spaces[0].versions[0].digest = "spoilt"
    assert desk.poll("s1").spaces[0].versions[0].digest != "spoilt"


def test_a_submit_wakes_the_poll_of_every_storaged_that_has_work(desk: Desk) -> None:
    desk.load()
    with ThreadPoolExecutor(2) as pool:
        waiting = [parked(desk, pool, uuid) for uuid in ("s1", "s2")]
        desk.submit()
        replies = [future.result(QUICK_S) for future in waiting]
    assert all(len(reply.orders) == 1 for reply in replies)


def test_a_publication_and_a_move_of_a_storaged_wake_a_graphd(desk: Desk) -> None:
    desk.load()
    desk.submit()
    with ThreadPoolExecutor(1) as pool:
        waiting = parked(desk, pool, "g1", mpb.GRAPHD)
        desk.build("s1", "s2")
        assert waiting.result(HANG_S).spaces[0].space.version == 1
        waiting = parked(desk, pool, "g1", mpb.GRAPHD)
        desk.beat("s2", incarnation=2)
        assert {host.uuid: host.incarnation for host in waiting.result(HANG_S).storaged} == {"s1": 1, "s2": 2}


def test_progress_beats_begun_loads_and_chunks_wake_nobody(desk: Desk) -> None:
    desk.load()
    desk.submit()
    (order,) = desk.poll("s1").orders
    known = desk.poll("s1").revision
    report = mpb.TaskReport(task_id=order.task_id, attempt=order.attempt, state=pb.RUNNING, phase="sort", rows_done=5, rows_total=9)
    assert desk.beat("s1", report).revision == known
    load = desk.begin()
    desk.register(load, edges(0), written=[0])
    desk.commit(load)
    assert desk.poll("s1").revision == known
    assert desk.job(1).tasks[0].rows_done == 5


def test_a_poll_answers_after_its_wait_and_within_its_callers_time(desk: Desk) -> None:
    known = desk.poll("s1").revision
    begun = time.monotonic()
    assert desk.poll("s1", known=known, wait_s=0.1).revision == known
    handler = desk.rooms.beats_handlers[BEATS["poll"].path]
    request = mpb.PollRequest(role=mpb.STORAGED, uuid="s1", incarnation=1, known_revision=known, wait_s=30.0)
    assert handler(request, Call.within(0.3)).revision == known  # type: ignore[union-attr]
    assert time.monotonic() - begun > 0.1


def test_a_poll_that_knows_the_future_of_another_store_is_answered_at_once(desk: Desk) -> None:
    assert desk.poll("s1", known=1 << 63, wait_s=HANG_S).revision < 1 << 63


def test_a_parked_poll_goes_when_its_caller_hangs_up_or_metad_stops() -> None:
    board = Board(1)
    here = threading.Event()
    ends: list[Callable[[], None]] = []
    with ThreadPoolExecutor(2) as pool:
        gone = pool.submit(board.wait_other, 1, time.monotonic() + HANG_S, lambda: not here.is_set(), ends.append)
        wait_until(lambda: ends, "the poll watches for its call's end")
        here.set()
        ends[0]()
        gone.result(HANG_S)
        stays = pool.submit(board.wait_other, 1, time.monotonic() + HANG_S, lambda: True, ends.append)
        board.close()
        with pytest.raises(Unavailable, match="stopping"):
            stays.result(HANG_S)


def test_a_parked_poll_wakes_for_events_alone() -> None:
    board = Board(1)
    looks: list[float] = []
    ends: list[Callable[[], None]] = []

    def still_there() -> bool:
        looks.append(time.monotonic())
        return True

    with ThreadPoolExecutor(2) as pool:
        parked = pool.submit(board.wait_other, 1, time.monotonic() + HANG_S, still_there, ends.append)
        wait_until(lambda: looks, "the poll is parked")
        board.wait_other(0, time.monotonic() + HANG_S, lambda: True, ends.append)
        ends[-1]()  # a call that ends after its reply
        board.wait_other(1, time.monotonic() + 1.5, lambda: True, lambda _: None)
        assert len(looks) == 1
        board.changed()
        parked.result(HANG_S)


def test_a_lease_that_is_over_takes_a_host_off_and_a_beat_brings_it_back(desk: Desk) -> None:
    def online() -> dict[str, bool]:
        return {host.uuid: host.online for host in desk.ask("list_hosts", pb.Empty()).hosts}

    known = desk.poll("g1", role=mpb.GRAPHD).revision
    desk.passes(4.9)
    assert online() == {"s1": True, "s2": True}
    desk.beat("s1")
    desk.passes(0.2)
    assert online() == {"s1": True, "s2": False}
    lost = desk.poll("g1", known=known, wait_s=5, role=mpb.GRAPHD).revision
    assert lost > known
    desk.beat("s2")
    assert online() == {"s1": True, "s2": True}
    assert desk.poll("g1", known=lost, wait_s=5, role=mpb.GRAPHD).revision > lost


def test_hosts_are_listed_with_the_parts_that_they_hold(desk: Desk) -> None:
    desk.beat("g1", role=mpb.GRAPHD)
    desk.beat("s1", free_bytes=123)
    hosts = desk.ask("list_hosts", pb.Empty()).hosts
    assert [(host.uuid, host.parts, host.free_bytes) for host in hosts] == [
        ("s1", 2, 123),
        ("s2", 2, 0),
        ("g1", 0, 0),
    ]


def test_a_graphd_that_is_long_gone_is_forgotten_and_a_storaged_never(desk: Desk) -> None:
    desk.beat("g1", role=mpb.GRAPHD)
    desk.passes(3_599)
    assert len(desk.ask("list_hosts", pb.Empty()).hosts) == 3
    desk.passes(2)
    assert [host.uuid for host in desk.ask("list_hosts", pb.Empty()).hosts] == ["s1", "s2"]


def test_a_stopped_job_ends_with_the_beat_that_does_not_name_it_any_more(desk: Desk) -> None:
    desk.load()
    job = desk.submit()
    orders = {uuid: desk.poll(uuid).orders[0] for uuid in ("s1", "s2")}
    for uuid, order in orders.items():
        desk.beat(uuid, mpb.TaskReport(task_id=order.task_id, attempt=1, state=pb.RUNNING))
    known = desk.poll("s1").revision
    desk.ask("stop_job", mpb.JobRequest(job_id=job.job_id))
    assert list(desk.poll("s1", known=known, wait_s=5).orders) == []
    desk.beat("s1")
    assert desk.job(job.job_id).state == pb.RUNNING
    desk.passes(5.1)
    stopped = desk.job(job.job_id)
    assert stopped.state == pb.STOPPED
    assert stopped.cause == "stopped on request"
