"""Stateful test of the job machine: invariants hold under any order of events.

Hypothesis plays users, hosts, the network and the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
)
from tests.kit.jobs import A, B, Scenario, outcome

from asterism_model.task_results import TaskResult
from asterism_proto.errors import Conflict, NotFound, NotReady
from metad.jobs import state_machine
from metad.model import jobs as model
from metad.model.ids import HostId, JobId, TaskId
from metad.model.jobs import Command, Job, JobPolicy, JobState, Task
from metad.model.task_outcomes import TaskOutcome
from metad.wire import record_encoding

HOSTS = st.sampled_from([A, B])
SPACES = st.sampled_from([1, 2])
KINDS = st.sampled_from(["build", "build", "audit", "export-tables", "compact"])
ENDS = (JobState.FINISHED, JobState.FAILED, JobState.STOPPED)


def task_outcome(job: Job, task: Task) -> TaskOutcome:
    """Return the outcome that a host reports for a finished task."""
    if job.kind == "compact":
        return TaskOutcome(result=TaskResult(bytes_before=9, bytes_after=4))
    return (
        outcome(task.parts)
        if job.kind in ("build", "audit")
        else TaskOutcome(result=TaskResult(folder="exports"))
    )


class JobMachine(RuleBasedStateMachine):
    """Rules that feed events to the job machine, and invariants checked after each of them."""

    sent = Bundle("sent")
    """Heartbeats in transit: delivered late, twice, in any order, or never."""

    def __init__(self) -> None:
        super().__init__()
        self.story = Scenario(
            JobPolicy(
                max_attempts=2,
                max_losses=3,
                backoff_ms=1_000,
                away_limit_ms=30_000,
                keep_jobs_ms=200_000,
            )
        )
        self.watermarks = {1: 1, 2: 1}
        self.incarnations = {A: 1, B: 1}
        self.ids: set[int] = set()
        self.assignments: dict[tuple[int, int], tuple[int, int]] = {}
        """Host and incarnation that each (task, attempt) was assigned to."""
        self.recovered: set[JobId] = set()
        self.delivered_reports: list[model.TasksReported] = []
        self.last_jobs: Mapping[JobId, Job] = {}
        self.published: dict[int, tuple[int, int]] = {}
        self.totals: dict[tuple[int, int], TaskOutcome] = {}
        """Outcome that each (space, version) was published with."""
        self.stored_jobs: dict[JobId, bytes] = {}
        self.results: dict[tuple[JobId, TaskId], TaskOutcome] = {}
        """Task outcomes that a restarting metad would find in its store."""
        self.clock_set_back = False
        self.story.feed = self._with_commands_executed(self.story.feed)  # type: ignore[method-assign]

    def _with_commands_executed(
        self, feed: Callable[[model.Event], list[Command]]
    ) -> Callable[[model.Event], list[Command]]:
        """Wrap `feed` so that every command is executed, as the driver does."""

        def feed_and_execute(event: model.Event) -> list[Command]:
            commands = feed(event)
            for command in commands:
                match command:
                    case model.SaveJob(job=job):
                        self.stored_jobs[job.job_id] = record_encoding.encode_job(job)
                    case model.SaveOutcome(job_id=job_id, task_id=task_id, outcome=output):
                        self.results[job_id, task_id] = record_encoding.decode_outcome(
                            record_encoding.encode_outcome(output)
                        )
                    case model.PublishVersion(job=job, outcome=output):
                        assert (job.space_id, job.version) not in self.totals, (
                            "a version was published twice"
                        )
                        assert job.kind == "build"
                        self.totals[job.space_id, job.version] = output
                        for task in job.tasks:
                            self.results.pop((job.job_id, task.task_id), None)
                    case model.DeleteJob(job_id=job_id):
                        del self.stored_jobs[job_id]
                        self.results = {
                            key: output for key, output in self.results.items() if key[0] != job_id
                        }
            return commands

        return feed_and_execute

    # Rules.

    @rule(
        space=SPACES,
        commits=st.integers(0, 1),
        kind=KINDS,
        options=st.sampled_from([{}, {"format": "csv"}, {"format": "parquet"}]),
    )
    def submit(self, space: int, commits: int, kind: str, options: dict[str, str]) -> None:
        self.watermarks[space] += commits
        before = dict(self.story.state.jobs)
        version, _ = self.published.get(space, (0, 0))
        reads = kind in ("audit", "export-tables")
        submission = {
            "version": version if reads else 0,
            "options": options if kind == "export-tables" else {},
        }
        try:
            job = self.story.submit(
                space=space, watermark=self.watermarks[space], kind=kind, **submission
            )  # type: ignore[arg-type]
        except NotReady:
            assert reads
            assert version == 0
            return
        assert (job.watermark, job.kind, job.target_version) == (
            self.watermarks[space],
            kind,
            submission["version"],
        )
        assert dict(job.options) == (
            {"format": "parquet", **options} if kind == "export-tables" else {}
        )
        duplicates = [
            other
            for other in before.values()
            if other.identity == job.identity and other.state not in ENDS and other.ending is None
        ]
        assert len(duplicates) <= 1, "two jobs in flight do the same"
        assert (job.job_id in before) == bool(duplicates)
        if job.job_id not in before:
            assert job.job_id not in self.ids
            self.ids.add(job.job_id)

    @rule(seconds=st.sampled_from([0.0, 5.0, -100.0]))
    def metad_restarts(self, seconds: float) -> None:
        """Restart metad with its stored jobs and the wall clock, which may have been set back."""
        assert set(self.stored_jobs) == set(self.story.state.jobs)
        jobs = {}
        for job_id in sorted(self.stored_jobs):
            job = record_encoding.decode_job(self.stored_jobs[job_id])
            tasks = tuple(
                replace(t, outcome=self.results.get((job_id, t.task_id)))
                if t.state is JobState.FINISHED
                else t
                for t in job.tasks
            )
            jobs[job_id] = replace(job, tasks=tasks)
        for job_id, job in self.story.state.jobs.items():
            facts = [
                (t.state, t.attempt, t.incarnation, t.failures, t.losses, t.causes, t.outcome)
                for t in job.tasks
            ]
            assert facts == [
                (t.state, t.attempt, t.incarnation, t.failures, t.losses, t.causes, t.outcome)
                for t in jobs[job_id].tasks
            ]
            assert (job.state, job.ending, job.version, job.identity) == (
                jobs[job_id].state,
                jobs[job_id].ending,
                jobs[job_id].version,
                jobs[job_id].identity,
            )
        self.story.state = replace(self.story.state, jobs=jobs)
        self.clock_set_back |= seconds < 0
        self.last_jobs = dict(jobs)
        self.story.advance_clock(seconds)

    @rule(data=st.data())
    @precondition(lambda self: bool(self.story.state.jobs))
    def stop(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(list(self.story.state.jobs.values())))
        try:
            self.story.stop(job)
        except Conflict:
            assert job.state in (JobState.FINISHED, JobState.FAILED)

    @rule(data=st.data())
    @precondition(
        lambda self: any(
            job.state in (JobState.FAILED, JobState.STOPPED)
            for job in self.story.state.jobs.values()
        )
    )
    def recover(self, data: st.DataObject) -> None:
        finished_jobs = [
            job
            for job in self.story.state.jobs.values()
            if job.state in (JobState.FAILED, JobState.STOPPED)
        ]
        job = data.draw(st.sampled_from(finished_jobs))
        try:
            self.story.recover(job)
            self.recovered.add(job.job_id)
        except Conflict:
            pass

    @rule(
        target=sent,
        host=HOSTS,
        words=st.lists(
            st.sampled_from(
                [JobState.RUNNING, JobState.FINISHED, JobState.FAILED, JobState.STOPPED]
            ),
            max_size=4,
        ),
    )
    def send(self, host: HostId, words: list[JobState]) -> model.TasksReported:
        """Create a heartbeat about assigned tasks as of now; it may be delivered much later."""
        return self._heartbeat(host, words)

    def _heartbeat(self, host: HostId, states: list[JobState]) -> model.TasksReported:
        reported_tasks = zip(
            state_machine.assigned_tasks(self.story.state, host), states, strict=False
        )
        reports = tuple(
            model.TaskReport(
                task_id=task.task_id,
                attempt=task.attempt,
                state=state,
                cause="because",
                rows_done=1,
                rows_total=2,
                permanent=state is JobState.FAILED and task.attempt % 3 == 2,
                outcome=task_outcome(job, task) if state is JobState.FINISHED else None,
            )
            for (job, task), state in reported_tasks
        )
        return model.TasksReported(
            now_ms=0, host=host, incarnation=self.incarnations[host], reports=reports
        )

    @rule(host=HOSTS, word=st.sampled_from([JobState.FINISHED, JobState.FAILED, JobState.FAILED]))
    def report_at_once(self, host: HostId, word: JobState) -> None:
        self._deliver(self._heartbeat(host, [word] * 4))

    @rule(task_report=sent)
    def deliver_and_keep(self, task_report: model.TasksReported) -> None:
        self._deliver(task_report)

    @rule(task_report=consumes(sent))
    def deliver(self, task_report: model.TasksReported) -> None:
        self._deliver(task_report)

    def _deliver(self, heartbeat: model.TasksReported) -> None:
        self.delivered_reports.append(heartbeat)
        self.story.heartbeat(heartbeat.host, *heartbeat.reports, incarnation=heartbeat.incarnation)

    @rule()
    def repeat_obsolete_reports(self) -> None:
        """Check that late, repeated and foreign reports change nothing."""
        for heartbeat in self.delivered_reports:
            current = {
                (task.task_id, task.attempt)
                for job in self.story.state.jobs.values()
                for task in job.tasks
                if task.host == heartbeat.host
                and task.state is JobState.RUNNING
                and task.incarnation == heartbeat.incarnation
            }
            obsolete = tuple(
                report
                for report in heartbeat.reports
                if (report.task_id, report.attempt) not in current
            )
            # A heartbeat also reports tasks that do not run, which changes jobs that are ending.
            # This rule leaves that case out.
            if obsolete and all(job.ending is None for job in self.story.state.jobs.values()):
                before = self.story.state.jobs
                self.story.heartbeat(heartbeat.host, *obsolete, incarnation=heartbeat.incarnation)
                assert self.story.state.jobs == before

    @rule(host=HOSTS)
    def lose(self, host: HostId) -> None:
        self.story.host_lost(host)

    @rule(host=HOSTS)
    def come_back(self, host: HostId) -> None:
        self.story.host_seen(host, self.incarnations[host])

    @rule(host=HOSTS)
    def restart(self, host: HostId) -> None:
        self.incarnations[host] += 1
        self.story.host_seen(host, self.incarnations[host])

    @rule(seconds=st.sampled_from([0.1, 2.0, 40.0, 7200.0]))
    def wait(self, seconds: float) -> None:
        self.story.advance_clock(seconds)

    @rule(space=SPACES)
    @precondition(lambda self: len(self.story.state.jobs) > 4)
    def drop(self, space: int) -> None:
        self.story.drop_space(space)
        self.published.pop(space, None)
        self.totals = {key: output for key, output in self.totals.items() if key[0] != space}
        assert all(
            job.state in ENDS for job in self.story.state.jobs.values() if job.space_id == space
        )

    def teardown(self) -> None:
        """Check that every job ends once all hosts are present and do their work."""
        for _ in range(4 * len(self.story.state.jobs) + 8):
            for host in (A, B):
                self.story.host_seen(host, self.incarnations[host])
                reports = [
                    model.TaskReport(
                        task_id=task.task_id,
                        attempt=task.attempt,
                        state=JobState.FINISHED,
                        outcome=task_outcome(job, task),
                    )
                    for job, task in state_machine.assigned_tasks(self.story.state, host)
                ]
                self.story.heartbeat(host, *reports, incarnation=self.incarnations[host])
                self._assert_invariants()
            self.story.advance_clock(3.0)
            self._assert_invariants()
            if all(job.state in ENDS for job in self.story.state.jobs.values()):
                return
        raise AssertionError(f"some job does not end: {self.story.state.jobs}")

    # Invariants.

    @invariant()
    def invariants_hold(self) -> None:
        self._assert_invariants()

    def _assert_invariants(self) -> None:
        jobs = self.story.state.jobs
        for space in (1, 2):
            assert (
                sum(job.state is JobState.RUNNING for job in jobs.values() if job.space_id == space)
                <= 1
            ), "two jobs of a space at once"
        for job in jobs.values():
            self._assert_job_invariants(job)
        for job_id, before in self.last_jobs.items():
            after = jobs.get(job_id)
            if after is not None and before.state in ENDS and after.state is not before.state:
                assert job_id in self.recovered, f"job {job_id} left {before.state} by itself"
                assert before.state is not JobState.FINISHED
        for space, published in self.story.state.published.items():
            version, watermark = self.published.get(space, (0, 0))
            assert (published.version, published.watermark) >= (version, watermark), (
                "a version went back"
            )
            assert published.watermark >= watermark
            assert self.totals[space, published.version].images, "a version without its images"
            self.published[space] = (published.version, published.watermark)
        self.last_jobs, self.recovered = dict(jobs), set()

    def _assert_job_invariants(self, job: Job) -> None:
        states = [task.state for task in job.tasks]
        if job.state is JobState.FINISHED:
            assert set(states) == {JobState.FINISHED}
            assert (job.version > 0) == (job.kind == "build")
            if job.kind == "compact":
                outcomes = [task.outcome for task in job.tasks]
                assert [kept and kept.result.bytes_before for kept in outcomes] == [
                    9,
                    9,
                ], "what a task made is forgotten"
        if job.state in ENDS:
            assert all(state in ENDS for state in states)
            assert job.ending is None
            assert job.finished_ms >= job.submitted_ms or self.clock_set_back
        if job.state is JobState.QUEUE:
            assert set(states) == {JobState.QUEUE}
            assert any(
                other.state is JobState.RUNNING
                for other in self.story.state.jobs.values()
                if other.space_id == job.space_id
            )
        if job.state is JobState.RUNNING:
            pending = [
                task for task in job.tasks if task.state in (JobState.QUEUE, JobState.RUNNING)
            ]
            assert pending, "a running job with nothing to wait for"
            if job.ending is not None:
                assert any(
                    task.state is JobState.RUNNING and self.story.state.hosts[task.host].online
                    for task in job.tasks
                )
        if job.state is JobState.FAILED:
            assert job.cause
        for task in job.tasks:
            if task.state is JobState.RUNNING:
                assignment = (task.incarnation, task.started_ms)
                assert (
                    self.assignments.setdefault((task.task_id, task.attempt), assignment)
                    == assignment
                ), "two orders under one attempt"
                assert task.attempt == max(
                    attempt for task_id, attempt in self.assignments if task_id == task.task_id
                ), "an attempt's number went back"
                assert task.incarnation == self.story.state.hosts[task.host].incarnation


JobMachine.TestCase.settings = settings(
    max_examples=200, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
TestJobMachine = JobMachine.TestCase


def test_unknown_job_is_not_found() -> None:
    story = Scenario()
    for call in (story.stop, story.recover):
        job = Scenario().submit()
        try:
            call(job)
        except NotFound:
            continue
        raise AssertionError("found a job that never was")
