"""What storageds tell a real metad twice, late, in another order, of an earlier life, or of what is over: a version is published once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.invariants import Witness, edges_of, settled
from tests.kit.metad import SCHEMA, Counter, finished
from tests.kit.waiting import HANG_S

from asterism import Client
from asterism_proto.errors import Stale
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from daemonkit.channels import RemoteTransport

LEASE_S = 4.0
WAIT_S = HANG_S
A, B = "storaged-a", "storaged-b"


class Door(Counter):
    """The doors of a metad process, and two storageds that are nothing but what a test says in their names."""

    def __init__(self, cluster: LocalCluster, client: Client) -> None:
        super().__init__(RemoteTransport(cluster["metad"].address))
        self.cluster, self.client = cluster, client
        self.incarnation = 1
        self.space = ""

    def say(self, *reports: mpb.TaskReport, of: str = A, incarnation: int = 0) -> None:
        """A beat of one of the two, of its present start unless another one is given."""
        self.beat(of, *reports, incarnation=incarnation or self.incarnation)

    def restart(self) -> None:
        """Both begin anew."""
        self.incarnation += 1
        for uuid in (A, B):
            self.say(of=uuid)

    def order(self, of: str = A) -> mpb.TaskOrder:
        """What one of the two should be doing in the space; metad may want to wait a moment first."""
        end = time.monotonic() + WAIT_S
        while True:
            found = [order for order in self.poll(of, incarnation=self.incarnation).orders if order.job_id == self.job_id]
            if found:
                (order,) = found
                return order
            assert time.monotonic() < end, "nothing is ordered"
            self.say(of=A)
            self.say(of=B)
            time.sleep(0.01)

    def next_order(self, before: mpb.TaskOrder) -> mpb.TaskOrder:
        """The next attempt at a task of `A`."""
        end = time.monotonic() + WAIT_S
        while (order := self.order()).attempt == before.attempt:
            assert time.monotonic() < end, "no other attempt is ordered"
            time.sleep(0.01)
        return order

    def begin_job(self) -> None:
        """A job of one more load."""
        self.load(self.space)
        self.job_id = self.submit(self.space).job_id

    @property
    def state(self) -> str:
        """Of the job."""
        return pb.JobState.Name(self.job(self.job_id).state)

    def attempts(self) -> dict[str, int]:
        """The attempts at the job's tasks, by host."""
        return {task.host: task.attempt for task in self.job(self.job_id).tasks}

    def version(self) -> int:
        """The current one of the space."""
        return self.client.describe(self.space).version

    def images(self) -> dict[int, str]:
        """The digests that the current version was sealed with."""
        manifest = self.ask("get_manifest", mpb.ManifestRequest(space=self.space))
        return {image.part: image.digest for image in manifest.images}


def told(order: mpb.TaskOrder, by: str = "") -> mpb.TaskReport:
    """A storaged's word that an order is done, and by whom."""
    report = finished(order)
    for image in report.images:
        image.digest += by
    return report


def word(order: mpb.TaskOrder, state: pb.JobState, **more: object) -> mpb.TaskReport:
    return mpb.TaskReport(task_id=order.task_id, attempt=order.attempt, state=state, **more)  # type: ignore[arg-type]


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
def both(cluster: LocalCluster) -> Door:
    return Door(cluster, cluster.client(timeout_s=10.0))


@pytest.fixture
def door(both: Door) -> Iterator[Door]:
    """A space of its own, dealt to both, with a version and a job under way; afterwards every job is over and all is in order."""
    both.restart()
    both.space = f"s{time.time_ns()}"
    both.create(both.space, SCHEMA)
    for _ in range(2):
        both.begin_job()
        if both.version() == 0:
            for uuid in (A, B):
                both.say(told(both.order(uuid)), of=uuid)
            assert both.state == "FINISHED"
    yield both
    versions = [version.version for version in both.client.versions(both.space)]
    assert versions == list(range(both.version(), 0, -1)), "a number was left out, or given twice"
    made = both.client.describe(both.space).created_ms  # jobs of an earlier space of the name are remembered too
    jobs = [job for job in both.client.jobs(both.space) if job.submitted_ms >= made]
    assert sorted(job.version for job in jobs if job.version) == sorted(versions), "a version is not one job's"
    assert all(job.state == "FINISHED" for job in jobs if job.version)
    settled(both.cluster, both.client, [both.space])
    both.client.drop_space(both.space)


def test_a_report_that_comes_again_and_again_publishes_once(door: Door) -> None:
    a, b = door.order(A), door.order(B)
    for _ in range(3):
        door.say(told(a, "first"))
    door.say(told(a, "second"))  # what was said before counts
    assert (door.state, door.version()) == ("RUNNING", 1)
    for _ in range(3):
        door.say(told(b), of=B)
        door.say(told(a, "third"))
    assert (door.state, door.version()) == ("FINISHED", 2)
    assert {door.images()[part] for part in a.parts} == {f"image-{part}first" for part in a.parts}


def test_reports_in_another_order_than_they_were_made_come_to_the_same(door: Door) -> None:
    a, b = door.order(A), door.order(B)
    door.say(told(a))  # before anybody said that it runs
    door.say(word(a, pb.RUNNING, rows_done=3, rows_total=9))
    door.say(word(a, pb.FAILED, cause="late"))
    door.say(word(a, pb.STOPPED))
    door.say()
    assert [task.state for task in door.job(door.job_id).tasks if task.host == A] == [pb.FINISHED]
    door.say(told(b), of=B)
    assert (door.state, door.version(), door.attempts()) == ("FINISHED", 2, {A: 1, B: 1})


def test_what_an_earlier_attempt_says_after_a_later_one_was_ordered_does_not_count(door: Door) -> None:
    first = door.order()
    door.say(word(first, pb.FAILED, cause="disk"))
    second = door.next_order(first)
    for late in (told(first, "late"), word(first, pb.FAILED, cause="again", permanent=True), word(first, pb.STOPPED), word(first, pb.RUNNING)):
        door.say(late)
        door.say(late, told(first, "late"))
    assert (door.state, door.attempts()[A]) == ("RUNNING", 2)
    assert [list(task.causes) for task in door.job(door.job_id).tasks if task.host == A] == [["attempt 1: disk"]]
    door.say(told(second, "right"))
    door.say(told(first, "late"))
    door.say(told(door.order(B)), of=B)
    assert (door.state, door.version()) == ("FINISHED", 2)
    assert {door.images()[part] for part in second.parts} == {f"image-{part}right" for part in second.parts}


def test_what_is_said_of_attempts_that_were_never_ordered_or_are_anothers_does_not_count(door: Door) -> None:
    a, b = door.order(A), door.order(B)
    early = mpb.TaskOrder()
    early.CopyFrom(a)
    early.attempt = 2
    door.say(told(early), told(b, "not its own"))
    door.say(mpb.TaskReport(task_id=999_999, attempt=1, state=pb.FINISHED))
    assert (door.state, door.version(), door.attempts()) == ("RUNNING", 1, {A: 1, B: 1})
    door.say(told(a))
    door.say(told(b), of=B)
    assert (door.state, door.version()) == ("FINISHED", 2)
    assert {door.images()[part] for part in b.parts} == {f"image-{part}" for part in b.parts}


def test_an_earlier_start_of_a_storaged_is_refused_and_what_it_reports_does_not_count(door: Door) -> None:
    before, started = door.order(), door.incarnation
    door.restart()
    after = door.next_order(before)
    for late in (told(before, "late"), told(after, "late"), word(before, pb.FAILED, cause="late")):
        with pytest.raises(Stale, match=f"incarnation={started}: expected"):
            door.say(late, incarnation=started)
    with pytest.raises(Stale, match=f"incarnation={started}: expected"):
        door.poll(A, incarnation=started)
    door.say(told(before, "late"))  # the new start repeats what it found of the old one
    assert (door.state, door.version(), door.attempts()[A]) == ("RUNNING", 1, 2)
    door.say(told(after, "right"))
    door.say(told(door.order(B)), of=B)
    assert (door.state, door.version()) == ("FINISHED", 2)
    assert door.images()[after.parts[0]].endswith("right")


def test_an_output_that_a_restart_may_have_lost_is_asked_for_anew_however_often_its_report_comes_again(door: Door) -> None:
    before = door.order()
    door.say(told(before, "before"))
    door.restart()
    after = door.next_order(before)
    for _ in range(2):
        door.say(told(before, "before"))
        door.say(told(door.order(B)), of=B)
    assert (door.state, door.version()) == ("RUNNING", 1)
    door.say(told(after, "after"))
    assert (door.state, door.version()) == ("FINISHED", 2)
    assert door.images()[after.parts[0]].endswith("after")


def test_an_end_that_is_reported_of_a_job_that_was_stopped_publishes_nothing_and_a_recovery_does(door: Door) -> None:
    a, b = door.order(A), door.order(B)
    for uuid, order in ((A, a), (B, b)):
        door.say(word(order, pb.RUNNING), of=uuid)
    door.client.stop_job(door.job_id)
    assert door.state == "RUNNING"  # nobody has given a word yet
    door.say(told(a))  # it had ended before it heard of the stop
    door.say(told(a))
    assert door.state == "RUNNING"
    door.say(told(b), of=B)
    assert (door.state, door.version()) == ("STOPPED", 1)
    for _ in range(2):
        door.say(told(a), word(a, pb.RUNNING))
        door.say(told(b), of=B)
    assert (door.state, door.version()) == ("STOPPED", 1)
    door.client.recover_job(door.job_id)
    again = door.next_order(a)
    door.say(told(a, "late"))
    door.say(told(b, "late"), of=B)
    assert (door.state, door.version(), again.attempt) == ("RUNNING", 1, 2)
    door.say(told(again))
    door.say(told(door.order(B)), of=B)
    assert (door.state, door.version()) == ("FINISHED", 2)
    assert all(not digest.endswith("late") for digest in door.images().values())


def test_an_end_that_is_reported_of_a_space_that_was_dropped_does_nothing_to_one_of_its_name(door: Door) -> None:
    a, b = door.order(A), door.order(B)
    door.client.drop_space(door.space)
    for uuid, order in ((A, a), (B, b)):
        door.say(told(order), of=uuid)
    assert door.state == "STOPPED"
    door.create(door.space, SCHEMA)
    for uuid, order in ((A, a), (B, b)):
        door.say(told(order, "late"), of=uuid)
    assert door.version() == 0
    door.begin_job()
    new = door.order()
    assert (new.space_id > a.space_id, new.task_id > a.task_id) == (True, True)
    door.say(told(a, "late"))
    assert (door.state, door.version()) == ("RUNNING", 0)
    door.say(told(new))
    door.say(told(door.order(B)), of=B)
    assert (door.state, door.version()) == ("FINISHED", 1)


def test_reports_that_are_lost_cost_nothing_but_time_and_an_order_stands_until_it_is_answered(door: Door) -> None:
    a = door.order()
    # Neither is heard for longer than a lease: both orders wait for them, as they were.
    end = time.monotonic() + WAIT_S
    while any(host.online for host in door.client.hosts() if host.uuid in (A, B)):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert door.state == "RUNNING"
    door.say(of=A)
    door.say(of=B)
    assert [door.order(uuid).attempt for uuid in (A, B, A, B)] == [1, 1, 1, 1]
    door.say(told(a))
    door.say(told(door.order(B)), of=B)
    assert (door.state, door.version(), door.attempts()) == ("FINISHED", 2, {A: 1, B: 1})


def test_reports_that_come_again_after_metad_was_killed_publish_once(door: Door) -> None:
    a, b = door.order(A), door.order(B)
    door.say(told(a, "first"))
    door.cluster.kill("metad")
    door.cluster.restart("metad")
    door.say(told(a, "again"))
    door.say(told(b), of=B)
    door.cluster.kill("metad")
    door.cluster.restart("metad")
    door.say(told(b, "again"), of=B)
    door.say(told(a, "again"))
    assert (door.state, door.version()) == ("FINISHED", 2)
    assert not [digest for digest in door.images().values() if digest.endswith("again")]


SHAPE = {"parts": 4, "direction": "both", "nodes": {"n": {"weighted": True}}, "edges": {"n:to:n": {"weighted": True}}}
NODES, EDGES = 2_000, 6_000


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def test_builds_over_a_network_that_loses_doubles_and_reorders_beats_publish_what_was_loaded_and_once() -> None:
    with LocalCluster(
        storageds=2, relay=True, flags={"metad": ["--lease-s", "1.5", "--heartbeat-interval-s", "0.2", "--retry-backoff-s", "0.05"]}
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
            load.write_edges(1, "to", rng.integers(0, NODES, EDGES), rng.integers(0, NODES, EDGES), weights=rng.random(EDGES), ends_known=True)
            load.commit()

        fill("g")
        graph.build(timeout_s=WAIT_S)
        with Witness(cluster, "g") as witness:
            relay.wild = True
            for version in range(2, 4):
                fill("g")
                job = client.submit_job("g")
                if version == 2:
                    client.stop_job(job.job_id)
                    until(lambda job=job: client.job(job.job_id).state == "STOPPED", "it does not stop")  # type: ignore[misc]
                    client.recover_job(job.job_id)
                if version == 3:
                    fill("other")
                    client.submit_job("other")
                    client.drop_space("other")
                done = client.wait(job.job_id, timeout_s=WAIT_S)
                assert (done.state, done.version) == ("FINISHED", version), done
            relay.wild = False
        assert witness.answered > 0
        assert relay.again > 10
        assert relay.lost > 0
        edges = len(edges_of(graph, "to"))
        assert edges == 3 * EDGES
        assert [job.version for job in client.jobs("g")] == [3, 2, 1]
        settled(cluster, client, ["g"])
