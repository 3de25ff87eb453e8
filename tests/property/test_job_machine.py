"""The job machine under any order of events: hypothesis plays people, hosts, a network and time against its invariants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule
from tests.kit.jobs import A, B, Story, result

from asterism_proto.errors import Conflict, NotFound, NotReady
from metad.ids import HostId, JobId, TaskId
from metad.jobs import machine, model
from metad.jobs.model import Command, Job, Rules, State, Task
from metad.store import codec
from metad.totals import Made, Result

HOSTS = st.sampled_from([A, B])
SPACES = st.sampled_from([1, 2])
KINDS = st.sampled_from(["build", "build", "audit", "export-tables", "compact"])
ENDS = (State.FINISHED, State.FAILED, State.STOPPED)


def made(job: Job, task: Task) -> Result:
    """What a host reports at the end of a task."""
    if job.kind == "compact":
        return Result(made=Made(bytes_before=9, bytes_after=4))
    return result(task.parts) if job.kind in ("build", "audit") else Result(made=Made(folder="exports"))


class JobMachine(RuleBasedStateMachine):
    """What is true after every event, and of every step from one state to the next."""

    sent = Bundle("sent")
    """Beats on their way: they may come late, twice, in any order, or never."""

    def __init__(self) -> None:
        super().__init__()
        self.story = Story(Rules(max_attempts=2, max_losses=3, backoff_ms=1_000, away_limit_ms=30_000, keep_jobs_ms=200_000))
        self.cuts = {1: 1, 2: 1}
        self.incarnations = {A: 1, B: 1}
        self.ids: set[int] = set()
        self.orders: dict[tuple[int, int], tuple[int, int]] = {}
        """What each (task, attempt) was ordered as."""
        self.recovered: set[JobId] = set()
        self.said: list[model.Reported] = []
        self.last: Mapping[JobId, Job] = {}
        self.published: dict[int, tuple[int, int]] = {}
        self.totals: dict[tuple[int, int], Result] = {}
        """What each (space, version) was published with."""
        self.kept: dict[JobId, bytes] = {}
        self.results: dict[tuple[JobId, TaskId], Result] = {}
        """What a metad that restarts would find."""
        self.set_back = False
        self.story.feed = self._watched(self.story.feed)  # type: ignore[method-assign]

    def _watched(self, feed: Callable[[model.Event], list[Command]]) -> Callable[[model.Event], list[Command]]:
        """Carry the commands of every event out, as the driver does."""

        def fed(event: model.Event) -> list[Command]:
            commands = feed(event)
            for command in commands:
                match command:
                    case model.Keep(job=job):
                        self.kept[job.job_id] = codec.job_to(job)
                    case model.KeepResult(job_id=job_id, task_id=task_id, result=made):
                        self.results[job_id, task_id] = codec.result_from(codec.result_to(made))
                    case model.Publish(job=job, result=made):
                        assert (job.space_id, job.version) not in self.totals, "a version was published twice"
                        assert job.kind == "build"
                        self.totals[job.space_id, job.version] = made
                        for task in job.tasks:
                            self.results.pop((job.job_id, task.task_id), None)
                    case model.Forget(job_id=job_id):
                        del self.kept[job_id]
                        self.results = {key: made for key, made in self.results.items() if key[0] != job_id}
            return commands

        return fed

    # What may happen.

    @rule(space=SPACES, commits=st.integers(0, 1), kind=KINDS, options=st.sampled_from([{}, {"format": "csv"}, {"format": "parquet"}]))
    def submit(self, space: int, commits: int, kind: str, options: dict[str, str]) -> None:
        self.cuts[space] += commits
        before = dict(self.story.state.jobs)
        version, _ = self.published.get(space, (0, 0))
        reads = kind in ("audit", "export-tables")
        asked = {"version": version if reads else 0, "options": options if kind == "export-tables" else {}}
        try:
            job = self.story.submit(space=space, cut=self.cuts[space], kind=kind, **asked)  # type: ignore[arg-type]
        except NotReady:
            assert reads
            assert version == 0
            return
        assert (job.cut, job.kind, job.target_version) == (self.cuts[space], kind, asked["version"])
        assert dict(job.options) == ({"format": "parquet", **options} if kind == "export-tables" else {})
        twins = [other for other in before.values() if other.identity == job.identity and other.state not in ENDS and other.ending is None]
        assert len(twins) <= 1, "two jobs in flight do the same"
        assert (job.job_id in before) == bool(twins)
        if job.job_id not in before:
            assert job.job_id not in self.ids
            self.ids.add(job.job_id)

    @rule(seconds=st.sampled_from([0.0, 5.0, -100.0]))
    def metad_restarts(self, seconds: float) -> None:
        """A new process has what was written down and the wall's clock, which somebody may have set back."""
        assert set(self.kept) == set(self.story.state.jobs)
        jobs = {}
        for job_id in sorted(self.kept):
            job = codec.job_from(self.kept[job_id])
            tasks = tuple(replace(t, result=self.results.get((job_id, t.task_id))) if t.state is State.FINISHED else t for t in job.tasks)
            jobs[job_id] = replace(job, tasks=tasks)
        for job_id, job in self.story.state.jobs.items():
            facts = [(t.state, t.attempt, t.incarnation, t.failures, t.losses, t.causes, t.result) for t in job.tasks]
            assert facts == [(t.state, t.attempt, t.incarnation, t.failures, t.losses, t.causes, t.result) for t in jobs[job_id].tasks]
            assert (job.state, job.ending, job.version, job.identity) == (
                jobs[job_id].state,
                jobs[job_id].ending,
                jobs[job_id].version,
                jobs[job_id].identity,
            )
        self.story.state = replace(self.story.state, jobs=jobs)
        self.set_back |= seconds < 0
        self.last = dict(jobs)
        self.story.passes(seconds)

    @rule(data=st.data())
    @precondition(lambda self: bool(self.story.state.jobs))
    def stop(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(list(self.story.state.jobs.values())))
        try:
            self.story.stop(job)
        except Conflict:
            assert job.state in (State.FINISHED, State.FAILED)

    @rule(data=st.data())
    @precondition(lambda self: any(job.state in (State.FAILED, State.STOPPED) for job in self.story.state.jobs.values()))
    def recover(self, data: st.DataObject) -> None:
        over = [job for job in self.story.state.jobs.values() if job.state in (State.FAILED, State.STOPPED)]
        job = data.draw(st.sampled_from(over))
        try:
            self.story.recover(job)
            self.recovered.add(job.job_id)
        except Conflict:
            pass

    @rule(target=sent, host=HOSTS, words=st.lists(st.sampled_from([State.RUNNING, State.FINISHED, State.FAILED, State.STOPPED]), max_size=4))
    def send(self, host: HostId, words: list[State]) -> model.Reported:
        """A host says something of what it is ordered to do, as of now; the beat may travel for long."""
        return self._beat(host, words)

    def _beat(self, host: HostId, words: list[State]) -> model.Reported:
        named = zip(machine.orders(self.story.state, host), words, strict=False)
        reports = tuple(
            model.Report(
                task_id=task.task_id,
                attempt=task.attempt,
                state=word,
                cause="because",
                rows_done=1,
                rows_total=2,
                permanent=word is State.FAILED and task.attempt % 3 == 2,
                result=made(job, task) if word is State.FINISHED else None,
            )
            for (job, task), word in named
        )
        return model.Reported(now_ms=0, host=host, incarnation=self.incarnations[host], reports=reports)

    @rule(host=HOSTS, word=st.sampled_from([State.FINISHED, State.FAILED, State.FAILED]))
    def say_at_once(self, host: HostId, word: State) -> None:
        self._deliver(self._beat(host, [word] * 4))

    @rule(beat=sent)
    def deliver_and_keep(self, beat: model.Reported) -> None:
        self._deliver(beat)

    @rule(beat=consumes(sent))
    def deliver(self, beat: model.Reported) -> None:
        self._deliver(beat)

    def _deliver(self, beat: model.Reported) -> None:
        self.said.append(beat)
        self.story.beat(beat.host, *beat.reports, incarnation=beat.incarnation)

    @rule()
    def everything_that_is_over_comes_again(self) -> None:
        """Late, doubled and foreign reports change nothing."""
        for beat in self.said:
            current = {
                (task.task_id, task.attempt)
                for job in self.story.state.jobs.values()
                for task in job.tasks
                if task.host == beat.host and task.state is State.RUNNING and task.incarnation == beat.incarnation
            }
            over = tuple(report for report in beat.reports if (report.task_id, report.attempt) not in current)
            # A beat also says what does not run, which is a word on jobs that are ending: not what is looked at here.
            if over and all(job.ending is None for job in self.story.state.jobs.values()):
                before = self.story.state.jobs
                self.story.beat(beat.host, *over, incarnation=beat.incarnation)
                assert self.story.state.jobs == before

    @rule(host=HOSTS)
    def lose(self, host: HostId) -> None:
        self.story.lost(host)

    @rule(host=HOSTS)
    def come_back(self, host: HostId) -> None:
        self.story.seen(host, self.incarnations[host])

    @rule(host=HOSTS)
    def restart(self, host: HostId) -> None:
        self.incarnations[host] += 1
        self.story.seen(host, self.incarnations[host])

    @rule(seconds=st.sampled_from([0.1, 2.0, 40.0, 7200.0]))
    def wait(self, seconds: float) -> None:
        self.story.passes(seconds)

    @rule(space=SPACES)
    @precondition(lambda self: len(self.story.state.jobs) > 4)
    def drop(self, space: int) -> None:
        self.story.drop(space)
        self.published.pop(space, None)
        self.totals = {key: made for key, made in self.totals.items() if key[0] != space}
        assert all(job.state in ENDS for job in self.story.state.jobs.values() if job.space_id == space)

    def teardown(self) -> None:
        """With hosts that are there and do their work, every job comes to an end: none runs for ever."""
        for _ in range(4 * len(self.story.state.jobs) + 8):
            for host in (A, B):
                self.story.seen(host, self.incarnations[host])
                reports = [
                    model.Report(task_id=task.task_id, attempt=task.attempt, state=State.FINISHED, result=made(job, task))
                    for job, task in machine.orders(self.story.state, host)
                ]
                self.story.beat(host, *reports, incarnation=self.incarnations[host])
                self._look()
            self.story.passes(3.0)
            self._look()
            if all(job.state in ENDS for job in self.story.state.jobs.values()):
                return
        raise AssertionError(f"some job does not end: {self.story.state.jobs}")

    # What always holds.

    @invariant()
    def holds(self) -> None:
        self._look()

    def _look(self) -> None:
        jobs = self.story.state.jobs
        for space in (1, 2):
            assert sum(job.state is State.RUNNING for job in jobs.values() if job.space_id == space) <= 1, "two jobs of a space at once"
        for job in jobs.values():
            self._look_at(job)
        for job_id, before in self.last.items():
            after = jobs.get(job_id)
            if after is not None and before.state in ENDS and after.state is not before.state:
                assert job_id in self.recovered, f"job {job_id} left {before.state} by itself"
                assert before.state is not State.FINISHED
        for space, published in self.story.state.published.items():
            version, cut = self.published.get(space, (0, 0))
            assert (published.version, published.cut) >= (version, cut), "a version went back"
            assert published.cut >= cut
            assert self.totals[space, published.version].images, "a version without its images"
            self.published[space] = (published.version, published.cut)
        self.last, self.recovered = dict(jobs), set()

    def _look_at(self, job: Job) -> None:
        states = [task.state for task in job.tasks]
        if job.state is State.FINISHED:
            assert set(states) == {State.FINISHED}
            assert (job.version > 0) == (job.kind == "build")
            if job.kind == "compact":
                assert [task.result and task.result.made.bytes_before for task in job.tasks] == [9, 9], "what a task made is forgotten"
        if job.state in ENDS:
            assert all(state in ENDS for state in states)
            assert job.ending is None
            assert job.finished_ms >= job.submitted_ms or self.set_back
        if job.state is State.QUEUE:
            assert set(states) == {State.QUEUE}
            assert any(other.state is State.RUNNING for other in self.story.state.jobs.values() if other.space_id == job.space_id)
        if job.state is State.RUNNING:
            waits = [task for task in job.tasks if task.state in (State.QUEUE, State.RUNNING)]
            assert waits, "a running job with nothing to wait for"
            if job.ending is not None:
                assert any(task.state is State.RUNNING and self.story.state.hosts[task.host].online for task in job.tasks)
        if job.state is State.FAILED:
            assert job.cause
        for task in job.tasks:
            if task.state is State.RUNNING:
                order = (task.incarnation, task.started_ms)
                assert self.orders.setdefault((task.task_id, task.attempt), order) == order, "two orders under one attempt"
                assert task.attempt == max(attempt for task_id, attempt in self.orders if task_id == task.task_id), "an attempt's number went back"
                assert task.incarnation == self.story.state.hosts[task.host].incarnation


JobMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck))
TestJobMachine = JobMachine.TestCase


def test_a_job_that_never_was_is_not_found() -> None:
    story = Story()
    for call in (story.stop, story.recover):
        job = Story().submit()
        try:
            call(job)
        except NotFound:
            continue
        raise AssertionError("found a job that never was")
