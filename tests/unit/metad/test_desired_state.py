"""Tests of heartbeats and polls: online hosts, their desired state, and timing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.kit.metad import InProcessMetad, edge_chunk, finished_report
from tests.kit.waiting import HANG_S, QUICK_S, wait_until

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.errors import Conflict, Unavailable
from asterism_proto.methods import HEARTBEATS
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.change_feed import ChangeFeed
from metad.store import keys


@pytest.fixture
def metad() -> InProcessMetad:
    metad = InProcessMetad()
    for uuid in ("s1", "s2"):
        metad.heartbeat(uuid)
    metad.create()
    return metad


def parked_poll(
    metad: InProcessMetad, pool: ThreadPoolExecutor, uuid: str, role: int = metad_pb.STORAGED
):  # type: ignore[no-untyped-def]
    """Return a parked poll: the current state was already read."""
    known_revision = metad.poll(uuid, role=role).revision
    future = pool.submit(metad.poll, uuid, known_revision=known_revision, wait_s=HANG_S, role=role)
    with pytest.raises(TimeoutError):
        future.result(0.05)
    return future


def test_storaged_gets_its_own_tasks_and_loads_up_to_commit(metad: InProcessMetad) -> None:
    for _ in range(3):
        metad.load()
    late = metad.begin()
    job = metad.submit()
    metad.commit(late)
    (order,) = metad.poll("s2").task_assignments
    assert (order.job_id, order.attempt, order.kind, list(order.parts), order.watermark) == (
        job.job_id,
        1,
        "build",
        [1, 3],
        3,
    )
    assert (list(order.loads), list(order.commits)) == ([1, 2, 3], [1, 2, 3])
    assert order.task_id != metad.poll("s1").task_assignments[0].task_id


def test_loads_are_ordered_by_commit_not_by_begin(metad: InProcessMetad) -> None:
    first, second = metad.begin(), metad.begin()
    metad.commit(second)
    metad.commit(first)
    metad.submit()
    order = metad.poll("s1").task_assignments[0]
    assert (list(order.loads), list(order.commits)) == ([second.load_id, first.load_id], [1, 2])


def test_task_is_assigned_repeatedly_until_its_job_ends(metad: InProcessMetad) -> None:
    metad.load()
    metad.submit()
    (order,) = metad.poll("s1").task_assignments
    assert list(metad.poll("s1").task_assignments) == [order]
    metad.heartbeat("s1", finished_report(order))
    assert list(metad.poll("s1").task_assignments) == [order]
    metad.build("s2")
    assert list(metad.poll("s1").task_assignments) == []


def test_storaged_gets_only_spaces_of_its_own_parts(metad: InProcessMetad) -> None:
    metad.heartbeat("s3")
    assert [route.space.name for route in metad.poll("s1").spaces] == ["graph"]
    assert list(metad.poll("s3").spaces) == []
    assert [route.space.name for route in metad.poll("g1", role=metad_pb.GRAPHD).spaces] == [
        "graph"
    ]


def test_graphd_gets_addresses_and_states_of_storageds(metad: InProcessMetad) -> None:
    metad.advance_clock(3)
    metad.heartbeat("s1")
    metad.advance_clock(3)
    hosts = {
        host.uuid: (host.address, host.online)
        for host in metad.poll("g1", role=metad_pb.GRAPHD).storaged
    }
    assert hosts == {"s1": ("s1:9779", True), "s2": ("s2:9779", False)}


def test_both_roles_get_a_published_version_with_all_totals(metad: InProcessMetad) -> None:
    metad.load()
    metad.submit()
    metad.build("s1", "s2")
    for uuid, role in (("s1", metad_pb.STORAGED), ("g1", metad_pb.GRAPHD)):
        (route,) = metad.poll(uuid, role=role).spaces
        assert route.space.version == 1
        assert [manifest.version for manifest in route.versions] == [1]
        assert len(route.versions[0].totals) == 16
        assert {total.part for total in route.versions[0].totals} == {0, 1, 2, 3}


def test_every_reply_names_its_cluster() -> None:
    clusters = set()
    for _ in range(2):
        # The same folder's identity, but an empty catalog: another cluster.
        metad = InProcessMetad(uuid="m1")
        metad.heartbeat("s1")
        metad.heartbeat("g1", role=metad_pb.GRAPHD)
        assert metad.poll("s1").cluster == metad.poll("g1", role=metad_pb.GRAPHD).cluster
        clusters.add(metad.poll("s1").cluster)
        assert InProcessMetad(metad.store, uuid="m2").poll("s1").cluster in clusters
    assert len(clusters) == 2
    assert "" not in clusters


def test_catalog_without_cluster_takes_the_folders_uuid() -> None:
    metad = InProcessMetad(uuid="m1")
    metad.store.write({keys.CLUSTER: None})
    assert InProcessMetad(metad.store, uuid="m1").poll("s1").cluster == "m1"
    assert InProcessMetad(metad.store, uuid="m2").poll("s1").cluster == "m1"


def test_daemon_of_another_cluster_is_refused_and_not_listed(metad: InProcessMetad) -> None:
    for call in (
        lambda: metad.heartbeat("s3", cluster="other"),
        lambda: metad.poll("s3", cluster="other"),
    ):
        with pytest.raises(Conflict, match="host s3 belongs to cluster other"):
            call()
    assert {host.uuid for host in metad.ask("list_hosts", common_pb.Empty()).hosts} == {"s1", "s2"}
    metad.heartbeat("s3", cluster=metad.poll("s1").cluster)
    assert {host.uuid for host in metad.ask("list_hosts", common_pb.Empty()).hosts} == {
        "s1",
        "s2",
        "s3",
    }


def test_changing_a_reply_does_not_affect_other_callers(metad: InProcessMetad) -> None:
    metad.load()
    metad.submit()
    metad.build("s1", "s2")
    reply = metad.poll("s1")
    reply.spaces[0].versions[0].digest = "spoilt"
    assert metad.poll("s1").spaces[0].versions[0].digest != "spoilt"


def test_submit_wakes_polls_of_all_storageds_with_work(metad: InProcessMetad) -> None:
    metad.load()
    with ThreadPoolExecutor(2) as pool:
        waiting = [parked_poll(metad, pool, uuid) for uuid in ("s1", "s2")]
        metad.submit()
        replies = [future.result(QUICK_S) for future in waiting]
    assert all(len(reply.task_assignments) == 1 for reply in replies)


def test_publication_and_storaged_restart_wake_a_graphd(metad: InProcessMetad) -> None:
    metad.load()
    metad.submit()
    with ThreadPoolExecutor(1) as pool:
        waiting = parked_poll(metad, pool, "g1", metad_pb.GRAPHD)
        metad.build("s1", "s2")
        assert waiting.result(HANG_S).spaces[0].space.version == 1
        waiting = parked_poll(metad, pool, "g1", metad_pb.GRAPHD)
        metad.heartbeat("s2", incarnation=2)
        assert {host.uuid: host.incarnation for host in waiting.result(HANG_S).storaged} == {
            "s1": 1,
            "s2": 2,
        }


def test_progress_and_open_loads_wake_no_poll(metad: InProcessMetad) -> None:
    metad.load()
    metad.submit()
    (order,) = metad.poll("s1").task_assignments
    known_revision = metad.poll("s1").revision
    report = metad_pb.TaskReport(
        task_id=order.task_id,
        attempt=order.attempt,
        state=common_pb.RUNNING,
        phase="sort",
        rows_done=5,
        rows_total=9,
    )
    assert metad.heartbeat("s1", report).revision == known_revision
    load = metad.begin()
    metad.register(load, edge_chunk(0), written=[0])
    metad.commit(load)
    assert metad.poll("s1").revision == known_revision
    assert metad.job(1).tasks[0].rows_done == 5


def test_poll_returns_after_its_wait_within_the_deadline(metad: InProcessMetad) -> None:
    known_revision = metad.poll("s1").revision
    started = time.monotonic()
    assert metad.poll("s1", known_revision=known_revision, wait_s=0.1).revision == known_revision
    handler = metad.components.heartbeats_handlers[HEARTBEATS["poll"].path]
    request = metad_pb.PollRequest(
        role=metad_pb.STORAGED, uuid="s1", incarnation=1, known_revision=known_revision, wait_s=30.0
    )
    assert handler(request, CallContext.with_timeout(0.3)).revision == known_revision  # type: ignore[union-attr]
    assert time.monotonic() - started > 0.1


def test_poll_with_a_future_revision_returns_at_once(metad: InProcessMetad) -> None:
    assert metad.poll("s1", known_revision=1 << 63, wait_s=HANG_S).revision < 1 << 63


def test_parked_poll_ends_on_hangup_or_when_metad_stops() -> None:
    feed = ChangeFeed(1)
    hung_up = threading.Event()
    end_callbacks: list[Callable[[], None]] = []
    with ThreadPoolExecutor(2) as pool:
        disconnected = pool.submit(
            feed.wait_for_change,
            1,
            time.monotonic() + HANG_S,
            lambda: not hung_up.is_set(),
            end_callbacks.append,
        )
        wait_until(lambda: end_callbacks, "the poll watches for its call's end")
        hung_up.set()
        end_callbacks[0]()
        disconnected.result(HANG_S)
        connected = pool.submit(
            feed.wait_for_change, 1, time.monotonic() + HANG_S, lambda: True, end_callbacks.append
        )
        feed.close()
        with pytest.raises(Unavailable, match="stopping"):
            connected.result(HANG_S)


def test_parked_poll_wakes_only_for_events() -> None:
    feed = ChangeFeed(1)
    checks: list[float] = []
    end_callbacks: list[Callable[[], None]] = []

    def is_connected() -> bool:
        checks.append(time.monotonic())
        return True

    with ThreadPoolExecutor(2) as pool:
        poll = pool.submit(
            feed.wait_for_change, 1, time.monotonic() + HANG_S, is_connected, end_callbacks.append
        )
        wait_until(lambda: checks, "the poll is parked")
        feed.wait_for_change(0, time.monotonic() + HANG_S, lambda: True, end_callbacks.append)
        end_callbacks[-1]()  # a call may end after its reply
        feed.wait_for_change(1, time.monotonic() + 1.5, lambda: True, lambda _: None)
        assert len(checks) == 1
        feed.advance()
        poll.result(HANG_S)


def test_host_goes_offline_with_its_lease_until_a_heartbeat(metad: InProcessMetad) -> None:
    def online() -> dict[str, bool]:
        return {host.uuid: host.online for host in metad.ask("list_hosts", common_pb.Empty()).hosts}

    known_revision = metad.poll("g1", role=metad_pb.GRAPHD).revision
    metad.advance_clock(5.9)
    assert online() == {"s1": True, "s2": True}
    metad.heartbeat("s1")
    metad.advance_clock(0.2)
    assert online() == {"s1": True, "s2": False}
    offline_revision = metad.poll(
        "g1", known_revision=known_revision, wait_s=5, role=metad_pb.GRAPHD
    ).revision
    assert offline_revision > known_revision
    metad.heartbeat("s2")
    assert online() == {"s1": True, "s2": True}
    assert (
        metad.poll("g1", known_revision=offline_revision, wait_s=5, role=metad_pb.GRAPHD).revision
        > offline_revision
    )


def test_hosts_are_listed_with_the_parts_that_they_hold(metad: InProcessMetad) -> None:
    metad.heartbeat("g1", role=metad_pb.GRAPHD)
    metad.heartbeat("s1", free_bytes=123)
    hosts = metad.ask("list_hosts", common_pb.Empty()).hosts
    assert [(host.uuid, host.parts, host.free_bytes) for host in hosts] == [
        ("s1", 2, 123),
        ("s2", 2, 0),
        ("g1", 0, 0),
    ]


def test_the_resource_use_of_a_host_is_listed_and_not_sent_to_others(
    metad: InProcessMetad,
) -> None:
    resources = metad_pb.HostResources(
        disk_id="d",
        disk_total_bytes=1000,
        cpu_cores=0.5,
        cpu_count=4,
        memory_bytes=7,
        memory_total_bytes=70,
        started_ms=12,
        spaces=[metad_pb.SpaceUsage(space_id=1, bytes=5)],
    )
    metad.heartbeat("s1", resources=resources)
    listed = {host.uuid: host for host in metad.ask("list_hosts", common_pb.Empty()).hosts}
    assert listed["s1"].resources == resources
    assert not listed["s2"].HasField("resources")
    polled = metad.poll("g1", role=metad_pb.GRAPHD).storaged
    assert not any(host.HasField("resources") for host in polled)


def test_absent_graphds_are_forgotten_but_storageds_never(metad: InProcessMetad) -> None:
    metad.heartbeat("g1", role=metad_pb.GRAPHD)
    metad.advance_clock(3_599)
    assert len(metad.ask("list_hosts", common_pb.Empty()).hosts) == 3
    metad.advance_clock(2)
    assert [host.uuid for host in metad.ask("list_hosts", common_pb.Empty()).hosts] == ["s1", "s2"]


def test_stopped_job_ends_once_heartbeats_omit_it(metad: InProcessMetad) -> None:
    metad.load()
    job = metad.submit()
    orders = {uuid: metad.poll(uuid).task_assignments[0] for uuid in ("s1", "s2")}
    for uuid, order in orders.items():
        metad.heartbeat(
            uuid, metad_pb.TaskReport(task_id=order.task_id, attempt=1, state=common_pb.RUNNING)
        )
    known_revision = metad.poll("s1").revision
    metad.ask("stop_job", metad_pb.JobRequest(job_id=job.job_id))
    assert list(metad.poll("s1", known_revision=known_revision, wait_s=5).task_assignments) == []
    metad.heartbeat("s1")
    assert metad.job(job.job_id).state == common_pb.RUNNING
    metad.advance_clock(6.1)
    stopped = metad.job(job.job_id)
    assert stopped.state == common_pb.STOPPED
    assert stopped.cause == "stopped on request"


def test_revision_above_the_current_one_is_not_awaited() -> None:
    """It is of a store that is gone, so its holder needs the current state."""
    asked: list[bool] = []

    def is_active() -> bool:
        asked.append(True)
        return False

    ChangeFeed(5).wait_for_change(9, time.monotonic() + HANG_S, is_active, lambda end: None)
    assert asked == []
