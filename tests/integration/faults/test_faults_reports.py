"""Repeated, late, reordered and outdated reports of storageds to a real metad.

A version is published only once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.invariants import ConsistencyMonitor, assert_settled, edges_of
from tests.kit.metad import SCHEMA, MetadClient, finished_report
from tests.kit.waiting import HANG_S, wait_until

from asterism import Client
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_proto.errors import Stale
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

LEASE_S = 4.0
WAIT_S = HANG_S
A, B = "storaged-a", "storaged-b"


class FakeStorageds(MetadClient):
    """Two simulated storageds that call the endpoints of a real metad process."""

    def __init__(self, cluster: LocalCluster, client: Client) -> None:
        super().__init__(RemoteTransport(cluster["metad"].address))
        self.cluster, self.client = cluster, client
        self.incarnation = 1
        self.space = ""

    def send_reports(
        self, *reports: metad_pb.TaskReport, uuid: str = A, incarnation: int = 0
    ) -> None:
        """Send a heartbeat of one storaged, with the present incarnation by default."""
        self.heartbeat(uuid, *reports, incarnation=incarnation or self.incarnation)

    def restart(self) -> None:
        """Restart both storageds: raise their incarnation."""
        self.incarnation += 1
        for uuid in (A, B):
            self.send_reports(uuid=uuid)

    def assignment(self, uuid: str = A) -> metad_pb.TaskAssignment:
        """Return the task assignment of a storaged in the space.

        The call waits, because metad may delay the assignment.
        """

        def assignments() -> list[metad_pb.TaskAssignment]:
            found = [
                task
                for task in self.poll(uuid, incarnation=self.incarnation).task_assignments
                if task.job_id == self.job_id
            ]
            if not found:
                self.send_reports(uuid=A)
                self.send_reports(uuid=B)
            return found

        (task,) = wait_until(assignments, "a task is assigned")
        return task

    def next_assignment(self, before: metad_pb.TaskAssignment) -> metad_pb.TaskAssignment:
        """Return the next attempt at the task of `A`."""
        return wait_until(
            lambda: task if (task := self.assignment()).attempt != before.attempt else None,
            "another attempt is assigned",
        )

    def begin_job(self) -> None:
        """Commit one more load and submit a build of it."""
        self.load(self.space)
        self.job_id = self.submit(self.space).job_id

    @property
    def state(self) -> str:
        """Return the state of the job."""
        return common_pb.JobState.Name(self.job(self.job_id).state)

    def attempts(self) -> dict[str, int]:
        """Return the attempts at the job's tasks, by host."""
        return {task.host: task.attempt for task in self.job(self.job_id).tasks}

    def version(self) -> int:
        """Return the current version of the space."""
        return self.client.describe(self.space).version

    def image_digests(self) -> dict[int, str]:
        """Return the image digests in the manifest of the current version."""
        manifest = self.ask("get_manifest", metad_pb.ManifestRequest(space=self.space))
        return {image.part: image.digest for image in manifest.images}


def completion_report(
    assignment: metad_pb.TaskAssignment, digest_suffix: str = ""
) -> metad_pb.TaskReport:
    """Return a report that a task is finished; the digests' suffix identifies it."""
    report = finished_report(assignment)
    for image in report.images:
        image.digest += digest_suffix
    return report


def task_report(
    assignment: metad_pb.TaskAssignment, state: common_pb.JobState, **fields: object
) -> metad_pb.TaskReport:
    return metad_pb.TaskReport(
        task_id=assignment.task_id, attempt=assignment.attempt, state=state, **fields
    )  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    flags = [
        "--lease-s",
        str(LEASE_S),
        "--heartbeat-interval-s",
        "0.2",
        "--retry-backoff-s",
        "0.02",
        "--retry-backoff-limit-s",
        "0.02",
        "--keep-versions",
        "100",
    ]
    with LocalCluster(storageds=0, flags={"metad": flags}) as running:
        yield running


@pytest.fixture(scope="module")
def shared_storageds(cluster: LocalCluster) -> FakeStorageds:
    return FakeStorageds(cluster, cluster.client(timeout_s=10.0))


@pytest.fixture
def storageds(shared_storageds: FakeStorageds) -> Iterator[FakeStorageds]:
    """Yield the storageds with a new space on both, a published version and a running job.

    Afterwards every job has ended and the cluster is consistent.
    """
    shared_storageds.restart()
    shared_storageds.space = f"s{time.time_ns()}"
    shared_storageds.create(shared_storageds.space, SCHEMA)
    for _ in range(2):
        shared_storageds.begin_job()
        if shared_storageds.version() == 0:
            for uuid in (A, B):
                shared_storageds.send_reports(
                    completion_report(shared_storageds.assignment(uuid)), uuid=uuid
                )
            assert shared_storageds.state == "FINISHED"
    yield shared_storageds
    versions = [
        version.version for version in shared_storageds.client.versions(shared_storageds.space)
    ]
    assert versions == list(range(shared_storageds.version(), 0, -1)), (
        "a number was left out, or given twice"
    )
    created_ms = shared_storageds.client.describe(
        shared_storageds.space
    ).created_ms  # jobs of an earlier space with this name are listed too
    jobs = [
        job
        for job in shared_storageds.client.jobs(shared_storageds.space)
        if job.submitted_ms >= created_ms
    ]
    assert sorted(job.version for job in jobs if job.version) == sorted(versions), (
        "a version is not one job's"
    )
    assert all(job.state == "FINISHED" for job in jobs if job.version)
    assert_settled(shared_storageds.cluster, shared_storageds.client, [shared_storageds.space])
    shared_storageds.client.drop_space(shared_storageds.space)


def test_repeated_reports_publish_once(storageds: FakeStorageds) -> None:
    a, b = storageds.assignment(A), storageds.assignment(B)
    for _ in range(3):
        storageds.send_reports(completion_report(a, "first"))
    storageds.send_reports(completion_report(a, "second"))  # the first report counts
    assert (storageds.state, storageds.version()) == ("RUNNING", 1)
    for _ in range(3):
        storageds.send_reports(completion_report(b), uuid=B)
        storageds.send_reports(completion_report(a, "third"))
    assert (storageds.state, storageds.version()) == ("FINISHED", 2)
    assert {storageds.image_digests()[part] for part in a.parts} == {
        f"image-{part}first" for part in a.parts
    }


def test_reordered_reports_give_the_same_version(storageds: FakeStorageds) -> None:
    a, b = storageds.assignment(A), storageds.assignment(B)
    storageds.send_reports(completion_report(a))  # finished before a report that it runs
    storageds.send_reports(task_report(a, common_pb.RUNNING, rows_done=3, rows_total=9))
    storageds.send_reports(task_report(a, common_pb.FAILED, cause="late"))
    storageds.send_reports(task_report(a, common_pb.STOPPED))
    storageds.send_reports()
    assert [task.state for task in storageds.job(storageds.job_id).tasks if task.host == A] == [
        common_pb.FINISHED
    ]
    storageds.send_reports(completion_report(b), uuid=B)
    assert (storageds.state, storageds.version(), storageds.attempts()) == (
        "FINISHED",
        2,
        {A: 1, B: 1},
    )


def test_reports_of_superseded_attempts_are_ignored(storageds: FakeStorageds) -> None:
    first = storageds.assignment()
    storageds.send_reports(task_report(first, common_pb.FAILED, cause="disk"))
    second = storageds.next_assignment(first)
    for late in (
        completion_report(first, "late"),
        task_report(first, common_pb.FAILED, cause="again", permanent=True),
        task_report(first, common_pb.STOPPED),
        task_report(first, common_pb.RUNNING),
    ):
        storageds.send_reports(late)
        storageds.send_reports(late, completion_report(first, "late"))
    assert (storageds.state, storageds.attempts()[A]) == ("RUNNING", 2)
    assert [
        list(task.causes) for task in storageds.job(storageds.job_id).tasks if task.host == A
    ] == [["attempt 1: disk"]]
    storageds.send_reports(completion_report(second, "right"))
    storageds.send_reports(completion_report(first, "late"))
    storageds.send_reports(completion_report(storageds.assignment(B)), uuid=B)
    assert (storageds.state, storageds.version()) == ("FINISHED", 2)
    assert {storageds.image_digests()[part] for part in second.parts} == {
        f"image-{part}right" for part in second.parts
    }


def test_reports_of_unassigned_attempts_are_ignored(storageds: FakeStorageds) -> None:
    a, b = storageds.assignment(A), storageds.assignment(B)
    early = metad_pb.TaskAssignment()
    early.CopyFrom(a)
    early.attempt = 2
    storageds.send_reports(completion_report(early), completion_report(b, "not its own"))
    storageds.send_reports(
        metad_pb.TaskReport(task_id=999_999, attempt=1, state=common_pb.FINISHED)
    )
    assert (storageds.state, storageds.version(), storageds.attempts()) == (
        "RUNNING",
        1,
        {A: 1, B: 1},
    )
    storageds.send_reports(completion_report(a))
    storageds.send_reports(completion_report(b), uuid=B)
    assert (storageds.state, storageds.version()) == ("FINISHED", 2)
    assert {storageds.image_digests()[part] for part in b.parts} == {
        f"image-{part}" for part in b.parts
    }


def test_reports_of_an_earlier_incarnation_are_refused(storageds: FakeStorageds) -> None:
    before, incarnation = storageds.assignment(), storageds.incarnation
    storageds.restart()
    after = storageds.next_assignment(before)
    for late in (
        completion_report(before, "late"),
        completion_report(after, "late"),
        task_report(before, common_pb.FAILED, cause="late"),
    ):
        with pytest.raises(Stale, match=f"incarnation={incarnation}: expected"):
            storageds.send_reports(late, incarnation=incarnation)
    with pytest.raises(Stale, match=f"incarnation={incarnation}: expected"):
        storageds.poll(A, incarnation=incarnation)
    storageds.send_reports(
        completion_report(before, "late")
    )  # the restarted storaged repeats a report of its earlier run
    assert (storageds.state, storageds.version(), storageds.attempts()[A]) == ("RUNNING", 1, 2)
    storageds.send_reports(completion_report(after, "right"))
    storageds.send_reports(completion_report(storageds.assignment(B)), uuid=B)
    assert (storageds.state, storageds.version()) == ("FINISHED", 2)
    assert storageds.image_digests()[after.parts[0]].endswith("right")


def test_restart_reassigns_finished_but_unpublished_output(storageds: FakeStorageds) -> None:
    before = storageds.assignment()
    storageds.send_reports(completion_report(before, "before"))
    storageds.restart()
    after = storageds.next_assignment(before)
    for _ in range(2):
        storageds.send_reports(completion_report(before, "before"))
        storageds.send_reports(completion_report(storageds.assignment(B)), uuid=B)
    assert (storageds.state, storageds.version()) == ("RUNNING", 1)
    storageds.send_reports(completion_report(after, "after"))
    assert (storageds.state, storageds.version()) == ("FINISHED", 2)
    assert storageds.image_digests()[after.parts[0]].endswith("after")


def test_stopped_job_publishes_only_after_its_recovery(storageds: FakeStorageds) -> None:
    a, b = storageds.assignment(A), storageds.assignment(B)
    for uuid, assignment in ((A, a), (B, b)):
        storageds.send_reports(task_report(assignment, common_pb.RUNNING), uuid=uuid)
    storageds.client.stop_job(storageds.job_id)
    assert storageds.state == "RUNNING"  # no storaged has confirmed the stop yet
    storageds.send_reports(completion_report(a))  # finished before the stop arrived
    storageds.send_reports(completion_report(a))
    assert storageds.state == "RUNNING"
    storageds.send_reports(completion_report(b), uuid=B)
    assert (storageds.state, storageds.version()) == ("STOPPED", 1)
    for _ in range(2):
        storageds.send_reports(completion_report(a), task_report(a, common_pb.RUNNING))
        storageds.send_reports(completion_report(b), uuid=B)
    assert (storageds.state, storageds.version()) == ("STOPPED", 1)
    storageds.client.recover_job(storageds.job_id)
    recovered = storageds.next_assignment(a)
    storageds.send_reports(completion_report(a, "late"))
    storageds.send_reports(completion_report(b, "late"), uuid=B)
    assert (storageds.state, storageds.version(), recovered.attempt) == ("RUNNING", 1, 2)
    storageds.send_reports(completion_report(recovered))
    storageds.send_reports(completion_report(storageds.assignment(B)), uuid=B)
    assert (storageds.state, storageds.version()) == ("FINISHED", 2)
    assert all(not digest.endswith("late") for digest in storageds.image_digests().values())


def test_reports_of_a_dropped_space_do_not_reach_its_namesake(storageds: FakeStorageds) -> None:
    a, b = storageds.assignment(A), storageds.assignment(B)
    storageds.client.drop_space(storageds.space)
    for uuid, assignment in ((A, a), (B, b)):
        storageds.send_reports(completion_report(assignment), uuid=uuid)
    assert storageds.state == "STOPPED"
    storageds.create(storageds.space, SCHEMA)
    for uuid, assignment in ((A, a), (B, b)):
        storageds.send_reports(completion_report(assignment, "late"), uuid=uuid)
    assert storageds.version() == 0
    storageds.begin_job()
    new = storageds.assignment()
    assert (new.space_id > a.space_id, new.task_id > a.task_id) == (True, True)
    storageds.send_reports(completion_report(a, "late"))
    assert (storageds.state, storageds.version()) == ("RUNNING", 0)
    storageds.send_reports(completion_report(new))
    storageds.send_reports(completion_report(storageds.assignment(B)), uuid=B)
    assert (storageds.state, storageds.version()) == ("FINISHED", 1)


def test_task_assignments_survive_lost_heartbeats(storageds: FakeStorageds) -> None:
    a = storageds.assignment()
    # Both leases expire. The task assignments stay unchanged for both storageds.
    wait_until(
        lambda: not any(host.online for host in storageds.client.hosts() if host.uuid in (A, B)),
        "both storageds are offline",
    )
    assert storageds.state == "RUNNING"
    storageds.send_reports(uuid=A)
    storageds.send_reports(uuid=B)
    assert [storageds.assignment(uuid).attempt for uuid in (A, B, A, B)] == [1, 1, 1, 1]
    storageds.send_reports(completion_report(a))
    storageds.send_reports(completion_report(storageds.assignment(B)), uuid=B)
    assert (storageds.state, storageds.version(), storageds.attempts()) == (
        "FINISHED",
        2,
        {A: 1, B: 1},
    )


def test_reports_repeated_after_metad_restart_publish_once(storageds: FakeStorageds) -> None:
    a, b = storageds.assignment(A), storageds.assignment(B)
    storageds.send_reports(completion_report(a, "first"))
    storageds.cluster.kill("metad")
    storageds.cluster.restart("metad")
    storageds.send_reports(completion_report(a, "again"))
    storageds.send_reports(completion_report(b), uuid=B)
    storageds.cluster.kill("metad")
    storageds.cluster.restart("metad")
    storageds.send_reports(completion_report(b, "again"), uuid=B)
    storageds.send_reports(completion_report(a, "again"))
    assert (storageds.state, storageds.version()) == ("FINISHED", 2)
    assert not [digest for digest in storageds.image_digests().values() if digest.endswith("again")]


SHAPE = {
    "parts": 4,
    "direction": "both",
    "nodes": {"n": {"weighted": True}},
    "edges": {"n:to:n": {"weighted": True}},
}
NODES, EDGES = 2_000, 6_000


def test_builds_over_an_unreliable_network_publish_once() -> None:
    with LocalCluster(
        storageds=2,
        relay=True,
        flags={
            "metad": [
                "--lease-s",
                "1.5",
                "--heartbeat-interval-s",
                "0.2",
                "--retry-backoff-s",
                "0.05",
            ]
        },
    ) as cluster:
        relay = cluster.relay
        assert relay is not None
        client = cluster.client()
        client.create_space("g", SHAPE)
        graph, rng, edges = client.graph("g"), np.random.default_rng(9), 0
        client.create_space("other", SHAPE)

        def fill(space: str) -> None:
            load = client.begin_load(space)
            load.write_nodes(0, "n", np.arange(NODES), weights=rng.random(NODES))
            load.write_edges(
                1,
                "to",
                rng.integers(0, NODES, EDGES),
                rng.integers(0, NODES, EDGES),
                weights=rng.random(EDGES),
                ends_known=True,
            )
            load.commit()

        fill("g")
        graph.build(timeout_s=WAIT_S)
        with ConsistencyMonitor(cluster, "g") as witness:
            relay.is_faulty = True
            for version in range(2, 4):
                fill("g")
                job = client.submit_job("g")
                if version == 2:
                    client.stop_job(job.job_id)
                    wait_until(
                        lambda job=job: client.job(job.job_id).state == "STOPPED",
                        "the job is stopped",
                    )  # type: ignore[misc]
                    client.recover_job(job.job_id)
                if version == 3:
                    fill("other")
                    client.submit_job("other")
                    client.drop_space("other")
                result = client.wait(job.job_id, timeout_s=WAIT_S)
                assert (result.state, result.version) == ("FINISHED", version), result
            relay.is_faulty = False
        assert witness.answered_count > 0
        assert relay.repeated > 10
        assert relay.lost > 0
        edges = len(edges_of(graph, "to"))
        assert edges == 3 * EDGES
        assert [job.version for job in client.jobs("g")] == [3, 2, 1]
        assert_settled(cluster, client, ["g"])
