"""Driver of the job machine: applies events, stores the commands, adopts the state.

One event is one write, so a crash always leaves a state that the machine was in. Called under
the lock of the change feed by `metad.catalog_service`, `metad.host_registry` and
`metad.maintenance`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from asterism_model.indexes import Index, declared_indexes, index_from_options
from asterism_proto.errors import Conflict, InvalidRequest
from metad.catalog.catalog import Catalog
from metad.catalog.spaces import parts_by_host
from metad.change_feed import ChangeFeed
from metad.clock import Clock
from metad.jobs import state_machine
from metad.jobs.build_data_retention import leftover_removals
from metad.model import jobs
from metad.model.catalog import Manifest, PendingWrite, Space
from metad.model.hosts import DaemonRole, Host
from metad.model.ids import HostId, JobId, SpaceId
from metad.model.job_kinds import find_kind, normalize_options
from metad.model.jobs import Job, JobPolicy, JobState, MachineState, Task
from metad.store import keys
from metad.store.port import MetaStore
from metad.wire import record_encoding

logger = logging.getLogger(__name__)


class Driver:
    """Driver of the jobs of a metad."""

    def __init__(
        self,
        *,
        store: MetaStore,
        change_feed: ChangeFeed,
        catalog: Catalog,
        hosts: Iterable[Host],
        policy: JobPolicy,
        clock: Clock,
    ) -> None:
        self._store = store
        self._change_feed = change_feed
        self._catalog = catalog
        self._clock = clock
        self._state = _load_state(store, catalog, hosts, policy, clock())

    @property
    def state(self) -> MachineState:
        """State of the machine; never changed in place."""
        return self._state

    def submit(
        self,
        space: Space,
        kind: str,
        *,
        options: Mapping[str, str] | None = None,
        version: int = 0,
        principal: str = "",
        check_quota: Callable[[], None] = lambda: None,
    ) -> Job:
        """Submit a job on the committed data, or return the identical one in flight.

        A job that reads a version reads ``version``, or the current one if it is 0.
        ``check_quota`` is called before a new job of ``principal`` is stored."""
        watermark = self._catalog.spaces.last_commit(space.space_id)
        index: Index | None = None
        indexes: tuple[Index, ...] = ()
        options = dict(options or {})
        if find_kind(kind).restores:
            manifest = self._awaited_manifest(space)
            version, watermark, indexes = manifest.version, manifest.watermark, manifest.indexes
        else:
            self._catalog.restores.check_not_restoring(space)
        if find_kind(kind).reads_version:
            version = (
                self._catalog.versions.get(space, version).version
                if version or space.version
                else 0
            )
        if find_kind(kind).changes_indexes:
            index = index_from_options(
                space.schema, dict(normalize_options(find_kind(kind), options))
            )
            if "drop" in options and index in declared_indexes(space.schema):
                raise InvalidRequest(
                    f"index {index.describe(space.schema)}: declared in the schema, so every "
                    "version has it already"
                )
            # canonical column, so that equal requests have equal options
            options |= {"on": index.column}
        event = jobs.SubmitJob(
            now_ms=self._clock(),
            space_id=space.space_id,
            space=space.name,
            kind=kind,
            watermark=watermark,
            shares=tuple(
                jobs.HostParts(host=host, parts=tuple(parts))
                for host, parts in sorted(parts_by_host(space).items())
            ),
            paired=tuple(t.name for t in space.schema.edge_types) if space.schema.has_in else (),
            options=options,
            version=version,
            index=index,
            indexes=indexes,
            declared=declared_indexes(space.schema),
            principal=principal,
        )
        if principal:
            _, commands = state_machine.handle(self._state, event)  # a dry run: it changes nothing
            if _returned_job(commands) not in self._state.jobs:
                check_quota()
        job_id = _returned_job(self.apply_event(event))
        return self._state.jobs[job_id]

    def _awaited_manifest(self, space: Space) -> Manifest:
        """Return the manifest that a space waits for; Conflict if it waits for none."""
        manifest = self._catalog.restores.awaited_manifest(space.space_id)
        if manifest is None:
            raise Conflict(
                f"space {space.name!r} is not a new space for a restore; restore under another name"
            )
        return manifest

    def stop(self, job_id: int) -> Job:
        """Request that a job stop."""
        self.apply_event(jobs.StopJob(now_ms=self._clock(), job_id=JobId(job_id)))
        return state_machine.find_job(self._state, job_id)

    def recover(
        self,
        job_id: int,
        *,
        principal: str = "",
        check_quota: Callable[[Job], None] = lambda _: None,
    ) -> Job:
        """Resume a failed or stopped job; Conflict if its space was dropped.

        The job counts as one of ``principal`` from then on; ``check_quota`` is called before."""
        job = state_machine.find_job(self._state, job_id)
        if self._catalog.spaces.get(job.space_id) is None:
            raise Conflict(
                f"job {job_id} belongs to space {job.space!r} (id {job.space_id}), which was "
                "dropped; there is nothing to continue"
            )
        check_quota(job)
        self.apply_event(
            jobs.RecoverJob(now_ms=self._clock(), job_id=JobId(job_id), principal=principal),
            extra_write=self._catalog.removals.cancel_job(job_id),
        )
        return state_machine.find_job(self._state, job_id)

    def drop_space(self, space: Space) -> None:
        """Delete a space and stop its jobs, in one write."""
        pending_write = self._catalog.drop(space, now_ms=self._clock())
        for job in self._state.jobs.values():
            if job.space_id == space.space_id:
                pending_write = PendingWrite(
                    {**pending_write.changes, **_outcome_deletions(job)}, pending_write.apply
                )
        self.apply_event(
            jobs.SpaceDropped(now_ms=self._clock(), space_id=space.space_id),
            extra_write=pending_write,
        )
        self._change_feed.advance()
        logger.info("space_dropped", extra={"space": space.name, "space_id": space.space_id})

    def skip_ids(self, first_id: int) -> None:
        """Assign no identifier below ``first_id`` from now on; the store has it already."""
        self._state = replace(
            self._state,
            next_job=max(self._state.next_job, first_id),
            next_task=max(self._state.next_task, first_id),
        )

    def assigned_tasks(self, host: HostId) -> list[tuple[Job, Task]]:
        """Return the tasks that are assigned to a storaged, each with its job."""
        return state_machine.assigned_tasks(self._state, host)

    def apply_event(
        self, event: jobs.Event, *, extra_write: PendingWrite | None = None
    ) -> list[jobs.Command]:
        """Let the machine handle ``event``, store the changes, then make them visible.

        ``extra_write`` is stored in the same write."""
        state, commands = state_machine.handle(self._state, event)
        changes: dict[bytes, bytes | None] = dict(extra_write.changes) if extra_write else {}
        callbacks: list[Callable[[], None]] = [extra_write.apply] if extra_write else []
        for command in commands:
            pending_write = self._command_write(command)
            changes |= pending_write.changes
            callbacks.append(pending_write.apply)
        if (state.next_job, state.next_task) != (self._state.next_job, self._state.next_task):
            changes |= {
                keys.NEXT_JOB: record_encoding.encode_number(state.next_job),
                keys.NEXT_TASK: record_encoding.encode_number(state.next_task),
            }
        if changes:
            self._store.write(changes)
        state_before, self._state = self._state, state
        for apply in callbacks:
            apply()
        if any(
            isinstance(command, jobs.NotifyStorageds | jobs.PublishVersion) for command in commands
        ):
            self._change_feed.advance()
        _log_changes(state_before, state)
        return commands

    def _command_write(self, command: jobs.Command) -> PendingWrite:
        match command:
            case jobs.SaveJob(job=job):
                return PendingWrite({keys.job_key(job.job_id): record_encoding.encode_job(job)})
            case jobs.SaveOutcome(job_id=job_id, task_id=task_id, outcome=outcome):
                return PendingWrite(
                    {keys.result_key(job_id, task_id): record_encoding.encode_outcome(outcome)}
                )
            case jobs.PublishVersion(job=job, outcome=outcome):
                space = self._catalog.spaces.get(job.space_id)
                assert space is not None  # the jobs of a dropped space are stopped
                pending_write = self._catalog.publish(space, job, outcome, now_ms=self._clock())
                return PendingWrite(
                    {**pending_write.changes, **_outcome_deletions(job)}, pending_write.apply
                )
            case jobs.DeleteJob(job_id=job_id):
                return self._delete_job(self._state.jobs[job_id])
            case jobs.ReturnJob() | jobs.NotifyStorageds():
                return PendingWrite()

    def _delete_job(self, job: Job) -> PendingWrite:
        """Return the write that deletes a job's record.

        It also requests removal of the job's leftovers, unless that was requested before."""
        removals = self._catalog.removals
        leftovers = (
            [] if removals.is_cleaned(job.job_id) else leftover_removals(job, now_ms=self._clock())
        )
        removal_write, mark_write = removals.add(leftovers), removals.clear_cleaned(job.job_id)

        def apply() -> None:
            removal_write.apply()
            mark_write.apply()

        return PendingWrite(
            {
                keys.job_key(job.job_id): None,
                **_outcome_deletions(job),
                **removal_write.changes,
                **mark_write.changes,
            },
            apply,
        )


def _returned_job(commands: Iterable[jobs.Command]) -> JobId:
    return next(command.job_id for command in commands if isinstance(command, jobs.ReturnJob))


def _outcome_deletions(job: Job) -> dict[bytes, bytes | None]:
    return {keys.result_key(job.job_id, task.task_id): None for task in job.tasks}


def _load_state(
    store: MetaStore, catalog: Catalog, hosts: Iterable[Host], policy: JobPolicy, now_ms: int
) -> MachineState:
    """Return the stored state of the machine.

    Hosts that were online count as online until their lease ends."""
    jobs_by_id = {}
    for _, value in store.range(keys.JOBS):
        job = record_encoding.decode_job(value)
        jobs_by_id[job.job_id] = replace(
            job, tasks=tuple(_restore_outcome(store, job, task) for task in job.tasks)
        )
    manifests = {
        SpaceId(space.space_id): catalog.versions.get(space, space.version)
        for space in catalog.spaces.all()
        if space.version
    }
    current_versions = {
        space_id: jobs.CurrentVersion(
            version=manifest.version, watermark=manifest.watermark, indexes=manifest.indexes
        )
        for space_id, manifest in manifests.items()
    }
    return MachineState(
        policy=policy,
        jobs=jobs_by_id,
        hosts={
            host.uuid: jobs.HostStatus(
                incarnation=host.incarnation, online=host.online, since_ms=now_ms
            )
            for host in hosts
            if host.role is DaemonRole.STORAGED
        },
        published=current_versions,
        next_job=record_encoding.decode_number(store.get(keys.NEXT_JOB), default=1),
        next_task=record_encoding.decode_number(store.get(keys.NEXT_TASK), default=1),
    )


def _restore_outcome(store: MetaStore, job: Job, task: Task) -> Task:
    if task.state is not JobState.FINISHED:
        return task
    value = store.get(keys.result_key(job.job_id, task.task_id))
    return task if value is None else replace(task, outcome=record_encoding.decode_outcome(value))


def _log_changes(before: MachineState, after: MachineState) -> None:
    """Log the jobs and tasks that have changed their states."""
    if before.jobs is after.jobs:
        return
    for job_id, job in after.jobs.items():
        old_job = before.jobs.get(job_id)
        if old_job is job:
            continue
        fields: dict[str, object] = {"job": job_id, "space": job.space, "watermark": job.watermark}
        if old_job is None or old_job.state is not job.state:
            level = logging.ERROR if job.state is JobState.FAILED else logging.INFO
            logger.log(
                level,
                "job_state_changed",
                extra={
                    **fields,
                    "state": job.state.name,
                    "version": job.version,
                    "cause": job.cause,
                },
            )
        for task, old_task in zip(
            job.tasks, old_job.tasks if old_job else (None,) * len(job.tasks), strict=True
        ):
            if old_task is None or old_task.attempt == task.attempt == 0:
                continue
            if task.attempt != old_task.attempt:
                logger.info(
                    "attempt_assigned",
                    extra={
                        **fields,
                        "task": task.task_id,
                        "attempt": task.attempt,
                        "host": task.host,
                    },
                )
            if len(task.causes) > len(old_task.causes):
                logger.warning(
                    "attempt_failed",
                    extra={
                        **fields,
                        "task": task.task_id,
                        "host": task.host,
                        "cause": task.causes[-1],
                    },
                )
            elif task.state is JobState.FINISHED and old_task.state is not JobState.FINISHED:
                logger.info(
                    "task_finished", extra={**fields, "task": task.task_id, "host": task.host}
                )
