"""Execution of task assignments: start tasks, watch them, and stop withdrawn ones.

A child process does the work (`storaged.build`, `storaged.version_tasks`). Its memory and its
faults are its own, and it is stopped by killing and reaping it. Compactions, backups and restores
run in this process, because RocksDB has a single writer. `storaged.app` delivers assignments and
reports progress to metad.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from asterism_io.durable_files import make_folder
from asterism_io.remote_folder_addresses import Address, AllowedAddresses
from asterism_io.remote_storage import RemoteFolder, redact
from asterism_model.load_fingerprints import FingerprintMismatch, LoadFingerprint
from asterism_proto.errors import AsterismError, Corrupt, InvalidRequest, NotFound
from storaged.backup.transfer import TRANSFER_KINDS, Transfer
from storaged.paths import DataPaths
from storaged.store.block_store import BlockStore
from storaged.store.os_errors import disk_error, memory_error
from storaged.tasks import task_process
from storaged.tasks.fork_server import ForkServer, TaskProcess
from storaged.tasks.task_assignments import (
    FAILED,
    FINISHED,
    QUEUED,
    REPAIR,
    RUNNING,
    STOPPED,
    TaskAssignment,
    TaskHandle,
    TaskProgress,
)

logger = logging.getLogger(__name__)

_BUILD_KINDS = ("build", "index", REPAIR)
"""Kinds of tasks that the child process of a build runs."""
_STDERR_TAIL = 2000
_POLL_S = 0.2


class _RunningTask:
    """One task that runs in a thread, which reads the output of its child process."""

    def __init__(self, assignment: TaskAssignment, runner: TaskRunner) -> None:
        self.assignment = assignment
        self._runner = runner
        self._child: TaskProcess | None = None
        self._lock = threading.Lock()
        self._cancelled = False
        self.progress = TaskProgress(
            task_id=assignment.task_id, attempt=assignment.attempt, state=QUEUED
        )
        self.done = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"build-{assignment.job_id}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def cancel(self) -> None:
        """Kill the child process, if there is one; `done` is set once it is reaped."""
        with self._lock:
            self._cancelled = True
            if self._child is not None:
                self._child.send_signal(signal.SIGKILL)

    def pause_or_resume(self) -> None:
        """Suspend the child process, or resume it, according to `TaskRunner.lease_held`."""
        with self._lock:
            if self._child is not None:
                self._child.send_signal(
                    signal.SIGCONT if self._runner.lease_held.is_set() else signal.SIGSTOP
                )

    def _run(self) -> None:
        try:
            self._set_progress(QUEUED, phase="waits for a slot")
            with self._runner.slot(lambda: self._cancelled) as has_slot:
                while (
                    has_slot and not self._cancelled and not self._runner.lease_held.wait(_POLL_S)
                ):
                    pass
                if self._cancelled:
                    self._set_progress(STOPPED)
                elif self.assignment.kind == "compact":
                    self._compact()
                elif self.assignment.kind in TRANSFER_KINDS:
                    self._transfer()
                else:
                    self._set_progress(
                        RUNNING,
                        phase="checkpoint" if self.assignment.kind in _BUILD_KINDS else "begin",
                    )
                    with tempfile.TemporaryFile("w+", errors="replace") as stderr:
                        self._watch(self._spawn(stderr), stderr)
        except AsterismError as error:
            permanent = isinstance(error, InvalidRequest | NotFound | FingerprintMismatch)
            cause = (
                f"Corrupt: {error.message}"
                if isinstance(error, FingerprintMismatch)
                else error.message
            )
            self._set_progress(
                STOPPED if self._cancelled else FAILED, cause=cause, permanent=permanent
            )
        except OSError as error:
            self._set_progress(
                STOPPED if self._cancelled else FAILED,
                cause=disk_error(error, self._runner.paths.data).message,
            )
        except MemoryError as error:
            self._set_progress(
                STOPPED if self._cancelled else FAILED, cause=memory_error(error).message
            )
        except Exception as error:  # metad must learn of the failure, whatever it is.
            logger.exception("task_crashed", extra={"job": self.assignment.job_id})
            self._set_progress(FAILED, cause=redact(repr(error)))
        finally:
            self.done.set()
            self._runner.on_change()

    def _set_progress(self, state: str, **fields: Any) -> None:
        self.progress = TaskProgress(
            task_id=self.assignment.task_id, attempt=self.assignment.attempt, state=state, **fields
        )

    def _compact(self) -> None:
        """Compact the space's database in this process.

        A withdrawal takes effect between two column families; RocksDB completes a running
        compaction.
        """
        store = self._runner.store(self.assignment.space_id)
        size_before = store.size()
        for family in store.families:
            self._set_progress(RUNNING, phase=f"compact {family}")
            store.compact(family, lambda: self._cancelled)
        if self._cancelled:
            self._set_progress(STOPPED)
            return
        sizes = {"bytes_before": size_before, "bytes_after": store.size()}
        self._set_progress(FINISHED, phase="finished", result={"made": sizes})
        logger.info(
            "space_compacted",
            extra={"space": self.assignment.space, "job": self.assignment.job_id, **sizes},
        )

    def _transfer(self) -> None:
        """Run a backup or a restore in this process, which owns the blocks."""
        assignment, paths, published = (
            self.assignment,
            self._runner.paths,
            self.assignment.published,
        )
        if published is None:
            raise NotFound(
                f"version {assignment.version} of space {assignment.space} is no longer served"
            )
        key = "to" if assignment.kind == "backup" else "from"
        transfer = Transfer(
            kind=assignment.kind,
            parts=assignment.parts,
            remote=self._backup_folder(self._runner.addresses.check(key, assignment.options[key])),
            sha256=assignment.options.get("sha256", ""),
            version=assignment.version,
            watermark=published.watermark,
            digests=published.images,
            commits={
                load: commit
                for load, commit in zip(assignment.loads, assignment.commits, strict=True)
                if commit <= published.watermark
            },
            store=self._runner.store(assignment.space_id),
            images=paths.build(
                assignment.space_id,
                published.job_id if assignment.kind == "backup" else assignment.job_id,
            )
            / "parts",
            report_progress=self._report_transfer,
            fingerprints=self._catalog_fingerprints(published.watermark),
        )
        try:
            result = transfer.run()
        except Corrupt as error:
            self._set_progress(
                STOPPED if self._cancelled else FAILED, cause=error.message, permanent=True
            )
            return
        if assignment.kind == "restore":
            result["totals"] = [
                total.to_dict() for total in published.totals if total.part in assignment.parts
            ]
        progress = self.progress
        self._set_progress(
            FINISHED,
            phase="finished",
            rows_done=progress.rows_total,
            rows_total=progress.rows_total,
            result=result,
        )

    def _backup_folder(self, address: Address) -> RemoteFolder:
        """Open the folder of a backup, with symbolic links resolved as they were when checked."""
        return RemoteFolder(
            str(address.resolved()),
            display_address=address.redacted(),
            confined=True,
            timeout_s=self._runner.remote_timeout_s,
            s3_ca=self._runner.s3_ca,
        )

    def _report_transfer(self, phase: str, done: int, total: int) -> None:
        """Record the progress of a transfer; raise if the task was withdrawn."""
        if self._cancelled:
            raise AsterismError("stopped")
        self._set_progress(RUNNING, phase=phase, rows_done=done, rows_total=total)

    def _subprocess_task(self) -> tuple[str, Path]:
        """Return the package that the child process runs, and its task file."""
        assignment, paths = self.assignment, self._runner.paths
        if assignment.kind in ("audit", "export-tables"):
            if assignment.kind == "audit" and assignment.published is not None:
                self._verify(self._catalog_fingerprints(assignment.published.watermark))
            return task_process.version_task(
                assignment,
                paths,
                self._runner.host,
                self._runner.addresses,
                self._runner.remote_timeout_s,
                self._runner.s3_ca,
            )
        if assignment.kind not in _BUILD_KINDS:
            raise InvalidRequest(
                f"this storaged does not support jobs of kind {assignment.kind!r}; run all daemons "
                "on the same release"
            )
        checkpoint = paths.checkpoint(assignment.space_id, assignment.job_id)
        make_folder(checkpoint.parent)
        # The checkpoint of an earlier attempt contains the damage that made the attempt fail.
        if assignment.kind == REPAIR:
            shutil.rmtree(checkpoint, ignore_errors=True)
        self._runner.store(assignment.space_id).checkpoint(checkpoint)
        sources = [
            job
            for job in self._runner.served_jobs(assignment.space_id)
            if job in assignment.readable_jobs and assignment.options.get("link") != "no"
        ]
        return task_process.build_task(
            assignment,
            paths,
            self._runner.memory_limit_mib,
            sources,
            self._catalog_fingerprints(assignment.watermark),
        )

    def _catalog_fingerprints(self, watermark: int) -> Sequence[LoadFingerprint]:
        """Return the catalog's fingerprints of loads committed up to a watermark.

        They cover the partitions of the task.
        """
        expected = self._runner.fingerprints(
            self.assignment.space_id, watermark, self.assignment.parts
        )
        unknown = [load.load_id for load in expected if not load.is_known]
        if unknown:
            logger.info(
                "load_fingerprints_not_found",
                extra={"job": self.assignment.job_id, "loads": len(unknown), "newest": unknown[-1]},
            )
        return expected

    def _verify(self, expected: Sequence[LoadFingerprint]) -> None:
        """Compare the blocks of the task's partitions with the catalog's fingerprints."""
        store = self._runner.store(self.assignment.space_id)
        for part in self.assignment.parts:
            if self._cancelled:
                raise AsterismError("stopped before it started")
            self._set_progress(RUNNING, phase=f"fingerprints of part {part}")
            store.verify(part, expected)

    def _spawn(self, stderr: IO[str]) -> TaskProcess:
        module, task = self._subprocess_task()
        if self._cancelled:
            raise AsterismError("stopped before it started")
        # Without the lock, which `pause_or_resume` takes in the heartbeat thread: the fork server
        # may still be importing.
        child = self._runner.fork_server.start_task(module, task, stderr)
        with self._lock:
            self._child = child
            if self._cancelled:
                child.send_signal(signal.SIGKILL)
        self.pause_or_resume()
        return child

    def _wait_exit(self, child: TaskProcess) -> int:
        """Wait for the child process to end; return its exit status."""
        status = child.wait()
        with self._lock:
            self._child = None
        return status

    def _watch(self, child: TaskProcess, stderr: IO[str]) -> None:
        last: dict[str, Any] = {}
        kept_steps = 0
        for line in child.stdout:
            try:
                last = json.loads(line)
            except ValueError:
                continue
            if last.get("is") == "kept":
                kept_steps += 1
            elif kept_steps and last.get("is") == "begun":
                logger.info(
                    "task_resumed",
                    extra={
                        "job": self.assignment.job_id,
                        "part": last["part"],
                        "kept": kept_steps,
                        "at": last["step"],
                    },
                )
                kept_steps = 0
            if "phase" in last:
                self._set_progress(
                    RUNNING,
                    phase=str(last["phase"]),
                    rows_done=int(last["rows_done"]),
                    rows_total=int(last["rows_total"]),
                )
        code = self._wait_exit(child)
        child.stdout.close()
        stderr.seek(0, os.SEEK_END)
        stderr.seek(max(0, stderr.tell() - _STDERR_TAIL))
        tail = stderr.read().strip()
        if self._cancelled:
            self._remove_partial_export()
            self._set_progress(STOPPED)
        elif code == 0 and "finished" in last:
            progress = self.progress
            self._set_progress(
                FINISHED,
                phase="finished",
                rows_done=progress.rows_total,
                rows_total=progress.rows_total,
                result=last["finished"],
            )
            shutil.rmtree(
                self._runner.paths.checkpoint(self.assignment.space_id, self.assignment.job_id),
                ignore_errors=True,
            )
        elif "failed" in last:
            self._remove_partial_export()
            self._set_progress(
                FAILED, cause=str(last["failed"]), permanent=bool(last.get("permanent"))
            )
        else:
            reason = _SIGNALS.get(code, "")
            self._set_progress(
                FAILED,
                cause=(
                    f"the process of the task ended with status {code} and without a "
                    f"result{reason}. {tail[-500:]}"
                ),
            )
            logger.error(
                "task_process_died",
                extra={"job": self.assignment.job_id, "code": code, "stderr": tail},
            )

    def _remove_partial_export(self) -> None:
        """Remove the unfinished output of an export to this host.

        The output of a build stays: another attempt resumes from it.
        """
        if self.assignment.kind == "export-tables" and "to" not in self.assignment.options:
            shutil.rmtree(
                task_process.export_folder(self.assignment, self._runner.paths), ignore_errors=True
            )


_OUT_OF_MEMORY = (
    "; the kernel may have killed it because memory is short: give it more memory, and recover "
    "the job"
)
_SIGNALS = {
    -signal.SIGBUS: "; a mapped file could not be written: is the disk full?",
    -signal.SIGKILL: _OUT_OF_MEMORY,
    -signal.SIGABRT: _OUT_OF_MEMORY,
}
"""Likely causes of a child's end by a signal, by exit status."""


class TaskRunner:
    """The tasks of this storaged and their progress. Thread-safe.

    Parameters
    ----------
    paths : DataPaths
    store : callable
        Returns the graph store of a space.
    host : str
        uuid of this storaged.
    served_jobs : callable
        Returns the jobs that built the served versions of a space; a build may link their files.
    fingerprints : callable
        ``(space id, watermark, partitions)``: returns the catalog's fingerprints of the loads
        committed up to the watermark.
    memory_limit_mib : int
        Memory limit of each child process, in MiB.
    concurrent : int
        Number of tasks that run at the same time.
    addresses : AllowedAddresses
        Addresses that tasks may open.
    remote_timeout_s : float
        Seconds that the host of an address may be silent.
    s3_ca : str
        File of the authorities of object stores' certificates; empty: the environment's.
    on_change : callable
        Called when a task has ended and its result can be reported.
    fork_server : ForkServer
        Starts the child processes.
    """

    def __init__(
        self,
        *,
        paths: DataPaths,
        store: Callable[[int], BlockStore],
        host: str,
        served_jobs: Callable[[int], Sequence[int]],
        fingerprints: Callable[[int, int, Sequence[int]], Sequence[LoadFingerprint]],
        memory_limit_mib: int,
        concurrent: int,
        addresses: AllowedAddresses,
        remote_timeout_s: float,
        s3_ca: str = "",
        on_change: Callable[[], None],
        fork_server: ForkServer,
    ) -> None:
        self.paths, self.store, self.host, self.served_jobs = paths, store, host, served_jobs
        self.fingerprints, self.fork_server = fingerprints, fork_server
        self.memory_limit_mib, self.on_change = memory_limit_mib, on_change
        self.addresses, self.remote_timeout_s, self.s3_ca = addresses, remote_timeout_s, s3_ca
        self._slots = threading.BoundedSemaphore(concurrent)
        self.lease_held = threading.Event()
        """Set while the lease holds. Without a lease, metad may have reassigned the tasks."""
        self._lock = threading.Lock()
        self._tasks: dict[tuple[int, int], _RunningTask] = {}
        self._stopping: list[_RunningTask] = []
        self._unassigned: list[_RunningTask] = []
        """Tasks that metad did not assign: image repairs."""

    @contextlib.contextmanager
    def slot(self, cancelled: Callable[[], bool]) -> Iterator[bool]:
        """Hold one of the slots for tasks while the block runs.

        Yields False if the task was cancelled before a slot was free.
        """
        while not cancelled():
            if self._slots.acquire(timeout=_POLL_S):
                try:
                    yield True
                finally:
                    self._slots.release()
                return
        yield False

    def withdraw(self, assignments: Sequence[TaskAssignment]) -> None:
        """Cancel the tasks that are not among ``assignments`` any more."""
        with self._lock:
            assigned = {(assignment.task_id, assignment.attempt) for assignment in assignments}
            for key in [key for key in self._tasks if key not in assigned]:
                task = self._tasks.pop(key)
                if not task.done.is_set():
                    logger.info(
                        "task_stopped",
                        extra={"job": task.assignment.job_id, "attempt": task.assignment.attempt},
                    )
                    task.cancel()
                    self._stopping.append(task)
            self._stopping = [task for task in self._stopping if not task.done.is_set()]

    def apply(self, assignments: Sequence[TaskAssignment]) -> None:
        """Start the tasks among ``assignments`` that are new.

        A new attempt starts only after the child process of the previous one is reaped, because
        both use the same folder.
        """
        with self._lock:
            stopping = {task.assignment.job_id: task for task in self._stopping}
            for assignment in assignments:
                key = (assignment.task_id, assignment.attempt)
                if key in self._tasks:
                    continue
                task = self._tasks[key] = _RunningTask(assignment, self)
                logger.info(
                    "task_assigned",
                    extra={
                        "job": assignment.job_id,
                        "attempt": assignment.attempt,
                        "parts": len(assignment.parts),
                    },
                )
                threading.Thread(
                    target=_start_after, args=(task, stopping.get(assignment.job_id)), daemon=True
                ).start()

    def start_unassigned(self, assignment: TaskAssignment) -> TaskHandle:
        """Run a task that metad did not assign.

        It shares the slots with assigned tasks and is not reported to metad.
        """
        task = _RunningTask(assignment, self)
        with self._lock:
            self._unassigned = [
                *(other for other in self._unassigned if not other.done.is_set()),
                task,
            ]
        task.start()
        return task

    def set_lease(self, leased: bool) -> None:
        """Resume the child processes if the lease holds, else suspend them.

        A short loss of contact to metad therefore loses no work.
        """
        with self._lock:
            tasks = [*self._tasks.values(), *self._stopping, *self._unassigned]
            if leased:
                self.lease_held.set()
            else:
                self.lease_held.clear()
        for task in tasks:
            task.pause_or_resume()

    def progress(self) -> list[TaskProgress]:
        """Return the progress of every task.

        A withdrawn task still counts as running until its child process is reaped.
        """
        with self._lock:
            stopping = [task.progress for task in self._stopping if not task.done.is_set()]
            return [task.progress for task in self._tasks.values()] + stopping

    def busy_jobs(self, space_id: int) -> set[int]:
        """Return the jobs of a space with folders in use.

        These are the jobs with a task here, and the jobs that an unfinished build may read.
        """
        with self._lock:
            stopping = [task for task in self._stopping if not task.done.is_set()]
            assigned = [
                task
                for task in [*self._tasks.values(), *stopping]
                if task.assignment.space_id == space_id
            ]
        reading = [task for task in assigned if not task.done.is_set()]
        return {task.assignment.job_id for task in assigned} | {
            job for task in reading for job in task.assignment.readable_jobs
        }

    def stop(self) -> None:
        """Kill all child processes and reap them."""
        with self._lock:
            tasks = [*self._tasks.values(), *self._stopping, *self._unassigned]
        for task in tasks:
            task.cancel()
        for task in tasks:
            task.done.wait(10)
        self.fork_server.close()


def _start_after(task: _RunningTask, previous: _RunningTask | None) -> None:
    if previous is not None:
        previous.done.wait()
    task.start()
