"""The thin shell around `machine`: it feeds events, writes what the machine commands, then takes the new state on.

One event is one write, so that whatever a crash leaves behind is a state that the machine was in. Called under the
board's lock by `metad.service`, `metad.attendance` and `metad.upkeep`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from asterism_proto.errors import Conflict, InvalidRequest
from asterism_proto.indexes import Index, declared_of, index_asked
from metad.board import Board
from metad.catalog.catalog import Catalog
from metad.catalog.model import Manifest, Space, Step
from metad.catalog.spaces import shares
from metad.clock import Clock
from metad.cluster import Host, Role
from metad.ids import HostId, JobId, SpaceId
from metad.jobs import machine, model
from metad.jobs.kinds import kind_of, settled
from metad.jobs.leftovers import removals_after
from metad.jobs.model import Job, Jobs, Rules, State, Task
from metad.store import codec, keys
from metad.store.port import MetaStore

logger = logging.getLogger(__name__)


class Driver:
    """The jobs of a metad."""

    def __init__(self, *, store: MetaStore, board: Board, catalog: Catalog, hosts: Iterable[Host], rules: Rules, clock: Clock) -> None:
        self._store = store
        self._board = board
        self._catalog = catalog
        self._clock = clock
        self._state = _stored(store, catalog, hosts, rules, clock())

    @property
    def state(self) -> Jobs:
        """The machine's state; it never changes in place."""
        return self._state

    def submit(self, space: Space, kind: str, *, options: Mapping[str, str] | None = None, version: int = 0) -> Job:
        """The job that does this with what is committed, and where it reads a version, published of a space by now."""
        cut = self._catalog.spaces.last_commit(space.space_id)
        index: Index | None = None
        indexes: tuple[Index, ...] = ()
        options = dict(options or {})
        if kind_of(kind).restores:
            awaited = self._restored(space)
            version, cut, indexes = awaited.version, awaited.cut, awaited.indexes
        else:
            self._catalog.restores.check_none(space)
        if kind_of(kind).reads_version:
            version = self._catalog.versions.get(space, version).version if version or space.version else 0
        if kind_of(kind).indexes:
            index = index_asked(space.schema, dict(settled(kind_of(kind), options)))
            if "drop" in options and index in declared_of(space.schema):
                raise InvalidRequest(f"index {index.named(space.schema)}: the schema declares it, so that every version has it")
            options |= {"on": index.column}  # equal wishes are equal options
        answer = self.feed(
            model.Submit(
                now_ms=self._clock(),
                space_id=space.space_id,
                space=space.name,
                kind=kind,
                cut=cut,
                shares=tuple(model.Share(host=host, parts=tuple(parts)) for host, parts in sorted(shares(space).items())),
                paired=tuple(t.name for t in space.schema.edge_types) if space.schema.has_in else (),
                options=options,
                version=version,
                index=index,
                indexes=indexes,
                declared=declared_of(space.schema),
            )
        )
        return self._state.jobs[next(command.job_id for command in answer if isinstance(command, model.Answer))]

    def _restored(self, space: Space) -> Manifest:
        """What a space waits for."""
        manifest = self._catalog.restores.awaited(space.space_id)
        if manifest is None:
            raise Conflict(f"space {space.name!r} waits for no data: a restore makes a space of its own; give it another name")
        return manifest

    def stop(self, job_id: int) -> Job:
        """Order a job's end."""
        self.feed(model.Stop(now_ms=self._clock(), job_id=JobId(job_id)))
        return machine.find(self._state, job_id)

    def recover(self, job_id: int) -> Job:
        """Order a failed or stopped job to go on; Conflict where its space is gone, and with it whoever would do it."""
        job = machine.find(self._state, job_id)
        if self._catalog.spaces.get(job.space_id) is None:
            raise Conflict(f"job {job_id} is of space {job.space!r} (id {job.space_id}), which was dropped: there is nothing to go on with")
        self.feed(model.Recover(now_ms=self._clock(), job_id=JobId(job_id)), also=self._catalog.removals.withdraw_job(job_id))
        return machine.find(self._state, job_id)

    def drop(self, space: Space) -> None:
        """End a space and its jobs, in one write."""
        also = self._catalog.drop(space, now_ms=self._clock())
        for job in self._state.jobs.values():
            if job.space_id == space.space_id:
                also = Step({**also.changes, **_without_results(job)}, also.apply)
        self.feed(model.SpaceDropped(now_ms=self._clock(), space_id=space.space_id), also=also)
        self._board.changed()
        logger.info("space_dropped", extra={"space": space.name, "space_id": space.space_id})

    def skip_ids(self, first: int) -> None:
        """Give out no identifier below ``first`` from now on; the store has it already."""
        self._state = replace(self._state, next_job=max(self._state.next_job, first), next_task=max(self._state.next_task, first))

    def orders(self, host: HostId) -> list[tuple[Job, Task]]:
        """What a storaged should be working on."""
        return machine.orders(self._state, host)

    def feed(self, event: model.Event, *, also: Step | None = None) -> list[model.Command]:
        """Let the machine decide on ``event``, make that durable (with ``also``, in one write), and only then true."""
        state, commands = machine.handle(self._state, event)
        changes: dict[bytes, bytes | None] = dict(also.changes) if also else {}
        applies: list[Callable[[], None]] = [also.apply] if also else []
        for command in commands:
            step = self._step(command)
            changes |= step.changes
            applies.append(step.apply)
        if (state.next_job, state.next_task) != (self._state.next_job, self._state.next_task):
            changes |= {keys.NEXT_JOB: codec.number_to(state.next_job), keys.NEXT_TASK: codec.number_to(state.next_task)}
        if changes:
            self._store.write(changes)
        before, self._state = self._state, state
        for apply in applies:
            apply()
        if any(isinstance(command, model.Tell | model.Publish) for command in commands):
            self._board.changed()
        _log(before, state)
        return commands

    def _step(self, command: model.Command) -> Step:
        match command:
            case model.Keep(job=job):
                return Step({keys.job(job.job_id): codec.job_to(job)})
            case model.KeepResult(job_id=job_id, task_id=task_id, result=result):
                return Step({keys.result(job_id, task_id): codec.result_to(result)})
            case model.Publish(job=job, result=result):
                space = self._catalog.spaces.get(job.space_id)
                assert space is not None  # the jobs of a dropped space are stopped
                step = self._catalog.publish(space, job, result, now_ms=self._clock())
                return Step({**step.changes, **_without_results(job)}, step.apply)
            case model.Forget(job_id=job_id):
                return self._forget(self._state.jobs[job_id])
            case model.Answer() | model.Tell():
                return Step()

    def _forget(self, job: Job) -> Step:
        """The end of a job's record; what it left is ordered away by then."""
        removals = self._catalog.removals
        left = [] if removals.is_cleaned(job.job_id) else removals_after(job, now_ms=self._clock())
        ordered, forgotten = removals.order(left), removals.forget_job(job.job_id)

        def apply() -> None:
            ordered.apply()
            forgotten.apply()

        return Step({keys.job(job.job_id): None, **_without_results(job), **ordered.changes, **forgotten.changes}, apply)


def _without_results(job: Job) -> dict[bytes, bytes | None]:
    return {keys.result(job.job_id, task.task_id): None for task in job.tasks}


def _stored(store: MetaStore, catalog: Catalog, hosts: Iterable[Host], rules: Rules, now_ms: int) -> Jobs:
    """The machine's state as the store has it. Hosts that were there count as there until their lease ends."""
    jobs = {}
    for _, value in store.range(keys.JOBS):
        job = codec.job_from(value)
        jobs[job.job_id] = replace(job, tasks=tuple(_with_result(store, job, task) for task in job.tasks))
    current = {SpaceId(space.space_id): catalog.versions.get(space, space.version) for space in catalog.spaces.all() if space.version}
    published = {
        space_id: model.Published(version=manifest.version, cut=manifest.cut, indexes=manifest.indexes) for space_id, manifest in current.items()
    }
    return Jobs(
        rules=rules,
        jobs=jobs,
        hosts={
            host.uuid: model.HostFact(incarnation=host.incarnation, online=host.online, since_ms=now_ms)
            for host in hosts
            if host.role is Role.STORAGED
        },
        published=published,
        next_job=codec.number_from(store.get(keys.NEXT_JOB), default=1),
        next_task=codec.number_from(store.get(keys.NEXT_TASK), default=1),
    )


def _with_result(store: MetaStore, job: Job, task: Task) -> Task:
    if task.state is not State.FINISHED:
        return task
    value = store.get(keys.result(job.job_id, task.task_id))
    return task if value is None else replace(task, result=codec.result_from(value))


def _log(before: Jobs, after: Jobs) -> None:
    """Say which jobs and tasks have changed their states."""
    if before.jobs is after.jobs:
        return
    for job_id, job in after.jobs.items():
        old = before.jobs.get(job_id)
        if old is job:
            continue
        fields: dict[str, object] = {"job": job_id, "space": job.space, "cut": job.cut}
        if old is None or old.state is not job.state:
            level = logging.ERROR if job.state is State.FAILED else logging.INFO
            logger.log(level, "job_moved", extra={**fields, "state": job.state.name, "version": job.version, "cause": job.cause})
        for task, was in zip(job.tasks, old.tasks if old else (None,) * len(job.tasks), strict=True):
            if was is None or was.attempt == task.attempt == 0:
                continue
            if task.attempt != was.attempt:
                logger.info("attempt_ordered", extra={**fields, "task": task.task_id, "attempt": task.attempt, "host": task.host})
            if len(task.causes) > len(was.causes):
                logger.warning("attempt_failed", extra={**fields, "task": task.task_id, "host": task.host, "cause": task.causes[-1]})
            elif task.state is State.FINISHED and was.state is not State.FINISHED:
                logger.info("task_finished", extra={**fields, "task": task.task_id, "host": task.host})
