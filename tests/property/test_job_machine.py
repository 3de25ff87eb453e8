"""The job machine under any order of events: hypothesis plays people, hosts, a network and time against its invariants."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule
from tests.kit.jobs import A, B, Story, result

from asterism_proto.errors import Conflict, NotFound
from metad.ids import HostId, JobId
from metad.jobs import machine, model
from metad.jobs.model import Job, Rules, State
from metad.store import codec

HOSTS = st.sampled_from([A, B])
SPACES = st.sampled_from([1, 2])
ENDS = (State.FINISHED, State.FAILED, State.STOPPED)


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

    # What may happen.

    @rule(space=SPACES, commits=st.integers(0, 1))
    def submit(self, space: int, commits: int) -> None:
        self.cuts[space] += commits
        before = set(self.story.state.jobs)
        job = self.story.submit(space=space, cut=self.cuts[space])
        assert job.cut == self.cuts[space]
        if job.job_id not in before:
            assert job.job_id not in self.ids
            self.ids.add(job.job_id)

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
                result=result(task.parts) if word is State.FINISHED else None,
            )
            for (_, task), word in named
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

    @rule(seconds=st.sampled_from([0.1, 2.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.story.passes(seconds)

    @rule(space=SPACES)
    @precondition(lambda self: len(self.story.state.jobs) > 4)
    def drop(self, space: int) -> None:
        self.story.drop(space)
        self.published.pop(space, None)
        assert all(job.state in ENDS for job in self.story.state.jobs.values() if job.space_id == space)

    def teardown(self) -> None:
        """With hosts that are there and do their work, every job comes to an end: none runs for ever."""
        for _ in range(4 * len(self.story.state.jobs) + 8):
            for host in (A, B):
                self.story.seen(host, self.incarnations[host])
                reports = [
                    model.Report(task_id=task.task_id, attempt=task.attempt, state=State.FINISHED, result=result(task.parts))
                    for _, task in machine.orders(self.story.state, host)
                ]
                self.story.beat(host, *reports, incarnation=self.incarnations[host])
                self._look()
            self.story.passes(3.0)
            self._look()
            if all(job.state in ENDS for job in self.story.state.jobs.values()):
                return
        raise AssertionError(f"some job does not end: {self.story.state.jobs}")

    @rule()
    def write_down_and_read(self) -> None:
        """What is kept of a job is all of it, but for results, which are kept beside."""
        for job in self.story.state.jobs.values():
            read = codec.job_from(codec.job_to(job))
            assert [(t.task_id, t.attempt, t.state, t.causes) for t in read.tasks] == [(t.task_id, t.attempt, t.state, t.causes) for t in job.tasks]
            assert (read.state, read.ending, read.cut, read.version) == (job.state, job.ending, job.cut, job.version)

    # What always holds.

    @invariant()
    def holds(self) -> None:
        self._look()

    def _look(self) -> None:
        jobs = self.story.state.jobs
        for space in (1, 2):
            assert sum(job.state is State.RUNNING for job in jobs.values() if job.space_id == space) <= 1, "two builds of a space at once"
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
            self.published[space] = (published.version, published.cut)
        self.last, self.recovered = dict(jobs), set()

    def _look_at(self, job: Job) -> None:
        states = [task.state for task in job.tasks]
        if job.state is State.FINISHED:
            assert set(states) == {State.FINISHED}
            assert job.version > 0
        if job.state in ENDS:
            assert all(state in ENDS for state in states)
            assert job.ending is None
            assert job.finished_ms >= job.submitted_ms
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
