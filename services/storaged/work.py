"""Tasks of jobs: begun on metad's order, watched, ended when the order is withdrawn.

A child process does the work (`storaged.build`, `storaged.reread`), so that its memory and its faults are its own, and
stopping it is killing and reaping it; only a compaction is this process's own, for RocksDB has one writer. `storaged.app`
brings orders in and carries reports out.
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
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from asterism_proto.addresses import Address, AllowedAddresses
from asterism_proto.durable import make_folder
from asterism_proto.errors import AsterismError, Corrupt, InvalidRequest, NotFound
from asterism_proto.fingerprints import FingerprintMismatch, LoadFingerprint
from asterism_proto.places import Place, redacted
from storaged import children
from storaged.archive.transfer import KINDS, Transfer
from storaged.folders import Folders
from storaged.fork_server import ForkServer, TaskProcess
from storaged.orders import FAILED, FINISHED, QUEUED, REMAKE, RUNNING, STOPPED, Order, Progress, Run
from storaged.store.disk import memory_refusal, refusal
from storaged.store.graph import GraphStore

logger = logging.getLogger(__name__)

_BUILDS = ("build", "index", REMAKE)
"""Kinds of orders that a build's child carries out."""
_STDERR_TAIL = 2000
_LOOK_S = 0.2


class _Build:
    """One order being carried out, in a thread that reads its child."""

    def __init__(self, order: Order, work: Work) -> None:
        self.order = order
        self._work = work
        self._child: TaskProcess | None = None
        self._lock = threading.Lock()
        self._cancelled = False
        self.progress = Progress(task_id=order.task_id, attempt=order.attempt, state=QUEUED)
        self.done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"build-{order.job_id}", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def cancel(self) -> None:
        """Kill the child, if there is one; `done` is set once it is reaped."""
        with self._lock:
            self._cancelled = True
            if self._child is not None:
                self._child.send_signal(signal.SIGKILL)

    def hold(self) -> None:
        """Stop the child where it is, or let it go on: as `Work.allowed` says."""
        with self._lock:
            if self._child is not None:
                self._child.send_signal(signal.SIGCONT if self._work.allowed.is_set() else signal.SIGSTOP)

    def _run(self) -> None:
        try:
            self._tell(QUEUED, phase="waits for a slot")
            with self._work.slot(lambda: self._cancelled) as mine:
                while mine and not self._cancelled and not self._work.allowed.wait(_LOOK_S):
                    pass
                if self._cancelled:
                    self._tell(STOPPED)
                elif self.order.kind == "compact":
                    self._compact()
                elif self.order.kind in KINDS:
                    self._transfer()
                else:
                    self._tell(RUNNING, phase="checkpoint" if self.order.kind in _BUILDS else "begin")
                    with tempfile.TemporaryFile("w+", errors="replace") as stderr:
                        self._watch(self._spawn(stderr), stderr)
        except AsterismError as error:
            permanent = isinstance(error, InvalidRequest | NotFound | FingerprintMismatch)
            cause = f"Corrupt: {error.message}" if isinstance(error, FingerprintMismatch) else error.message
            self._tell(STOPPED if self._cancelled else FAILED, cause=cause, permanent=permanent)
        except OSError as error:
            self._tell(STOPPED if self._cancelled else FAILED, cause=refusal(error, self._work.folders.data).message)
        except MemoryError as error:
            self._tell(STOPPED if self._cancelled else FAILED, cause=memory_refusal(error).message)
        except Exception as error:  # whatever it was, metad has to hear of it
            logger.exception("build_crashed", extra={"job": self.order.job_id})
            self._tell(FAILED, cause=redacted(repr(error)))
        finally:
            self.done.set()
            self._work.changed()

    def _tell(self, state: str, **more: Any) -> None:
        self.progress = Progress(task_id=self.order.task_id, attempt=self.order.attempt, state=state, **more)

    def _compact(self) -> None:
        """Compact in this process; a withdrawal is seen between two looks at RocksDB, which ends what it has begun by itself."""
        store = self._work.store(self.order.space_id)
        before = store.size()
        for family in store.families:
            self._tell(RUNNING, phase=f"compact {family}")
            store.compact(family, lambda: self._cancelled)
        if self._cancelled:
            self._tell(STOPPED)
            return
        made = {"bytes_before": before, "bytes_after": store.size()}
        self._tell(FINISHED, phase="finished", result={"made": made})
        logger.info("space_compacted", extra={"space": self.order.space, "job": self.order.job_id, **made})

    def _transfer(self) -> None:
        """Carry out a backup or a restore in this process: the blocks are its own."""
        order, folders, sealed = self.order, self._work.folders, self.order.sealed
        if sealed is None:
            raise NotFound(f"version {order.version} of space {order.space} is not served any more")
        key = "to" if order.kind == "backup" else "from"
        transfer = Transfer(
            kind=order.kind,
            parts=order.parts,
            place=self._opened(self._work.addresses.check(key, order.options[key])),
            sha256=order.options.get("sha256", ""),
            version=order.version,
            cut=sealed.cut,
            digests=sealed.images,
            commits={load: commit for load, commit in zip(order.loads, order.commits, strict=True) if commit <= sealed.cut},
            store=self._work.store(order.space_id),
            images=folders.build(order.space_id, sealed.job_id if order.kind == "backup" else order.job_id) / "parts",
            tell=self._step,
            fingerprints=self._expected(sealed.cut),
        )
        try:
            result = transfer.run()
        except Corrupt as error:
            self._tell(STOPPED if self._cancelled else FAILED, cause=error.message, permanent=True)
            return
        if order.kind == "restore":
            result["totals"] = [asdict(total) for total in sealed.totals if total.part in order.parts]
        done = self.progress
        self._tell(FINISHED, phase="finished", rows_done=done.rows_total, rows_total=done.rows_total, result=result)

    def _opened(self, address: Address) -> Place:
        """Open the folder of a backup as it was checked: with its symbolic links resolved."""
        return Place(str(address.resolved()), shown=address.redacted(), confined=True, timeout_s=self._work.remote_timeout_s)

    def _step(self, phase: str, done: int, total: int) -> None:
        """Tell how far a transfer is; it ends here where it was withdrawn."""
        if self._cancelled:
            raise AsterismError("stopped")
        self._tell(RUNNING, phase=phase, rows_done=done, rows_total=total)

    def _task(self) -> tuple[str, Path]:
        """The module of the child, and the file that says what it is to do."""
        order, folders = self.order, self._work.folders
        if order.kind in ("audit", "export-tables"):
            if order.kind == "audit" and order.sealed is not None:
                self._verify(self._expected(order.sealed.cut))
            return children.reread_task(order, folders, self._work.host, self._work.addresses, self._work.remote_timeout_s)
        if order.kind not in _BUILDS:
            raise InvalidRequest(f"this storaged knows no jobs of kind {order.kind!r}")
        checkpoint = folders.checkpoint(order.space_id, order.job_id)
        make_folder(checkpoint.parent)
        if order.kind == REMAKE:  # an earlier attempt's has the damage that it failed by
            shutil.rmtree(checkpoint, ignore_errors=True)
        self._work.store(order.space_id).checkpoint(checkpoint)
        sources = [job for job in self._work.served(order.space_id) if job in order.beside and order.options.get("link") != "no"]
        return children.build_task(order, folders, self._work.memory_limit_mib, sources, self._expected(order.cut))

    def _expected(self, cut: int) -> Sequence[LoadFingerprint]:
        """Return what loads committed up to a cut wrote to the order's partitions, as the catalog knows."""
        expected = self._work.fingerprints(self.order.space_id, cut, self.order.parts)
        unknown = [load.load_id for load in expected if not load.known]
        if unknown:
            logger.info("fingerprints_unknown", extra={"job": self.order.job_id, "loads": len(unknown), "newest": unknown[-1]})
        return expected

    def _verify(self, expected: Sequence[LoadFingerprint]) -> None:
        """Compare the blocks of the order's partitions with the catalog's fingerprints."""
        store = self._work.store(self.order.space_id)
        for part in self.order.parts:
            if self._cancelled:
                raise AsterismError("stopped before it began")
            self._tell(RUNNING, phase=f"fingerprints of part {part}")
            store.verify(part, expected)

    def _spawn(self, stderr: IO[str]) -> TaskProcess:
        module, task = self._task()
        if self._cancelled:
            raise AsterismError("stopped before it began")
        # Not under the lock, which `hold` takes in the thread of the heartbeats: the server may be importing still.
        child = self._work.fork_server.start_task(module, task, stderr)
        with self._lock:
            self._child = child
            if self._cancelled:
                child.send_signal(signal.SIGKILL)
        self.hold()
        return child

    def _reaped(self, child: TaskProcess) -> int:
        """Return its exit status, once it has ended."""
        status = child.wait()
        with self._lock:
            self._child = None
        return status

    def _watch(self, child: TaskProcess, stderr: IO[str]) -> None:
        last: dict[str, Any] = {}
        kept = 0
        for line in child.stdout:
            try:
                last = json.loads(line)
            except ValueError:
                continue
            if last.get("is") == "kept":
                kept += 1
            elif kept and last.get("is") == "begun":
                logger.info("build_resumed", extra={"job": self.order.job_id, "part": last["part"], "kept": kept, "at": last["step"]})
                kept = 0
            if "phase" in last:
                self._tell(RUNNING, phase=str(last["phase"]), rows_done=int(last["rows_done"]), rows_total=int(last["rows_total"]))
        code = self._reaped(child)
        child.stdout.close()
        stderr.seek(0, os.SEEK_END)
        stderr.seek(max(0, stderr.tell() - _STDERR_TAIL))
        tail = stderr.read().strip()
        if self._cancelled:
            self._clear()
            self._tell(STOPPED)
        elif code == 0 and "finished" in last:
            done = self.progress
            self._tell(FINISHED, phase="finished", rows_done=done.rows_total, rows_total=done.rows_total, result=last["finished"])
            shutil.rmtree(self._work.folders.checkpoint(self.order.space_id, self.order.job_id), ignore_errors=True)
        elif "failed" in last:
            self._clear()
            self._tell(FAILED, cause=str(last["failed"]), permanent=bool(last.get("permanent")))
        else:
            why = _SIGNALS.get(code, "")
            self._tell(FAILED, cause=f"the task's process ended with {code} and no word{why}. {tail[-500:]}")
            logger.error("build_died", extra={"job": self.order.job_id, "code": code, "stderr": tail})

    def _clear(self) -> None:
        """Remove what an export has left half done here. What a build has done stays: another attempt goes on from there."""
        if self.order.kind == "export-tables" and "to" not in self.order.options:
            shutil.rmtree(children.export_folder(self.order, self._work.folders), ignore_errors=True)


_OUT_OF_MEMORY = "; the system or a library ends a process so when memory is short: give it more memory, and recover the job"
_SIGNALS = {
    -signal.SIGBUS: "; a mapped file could not be written: is the disk full?",
    -signal.SIGKILL: _OUT_OF_MEMORY,
    -signal.SIGABRT: _OUT_OF_MEMORY,
}
"""Likely causes of a child that ended by a signal, by exit status."""


class Work:
    """The orders of this storaged and how far they are.

    Parameters
    ----------
    folders : Folders
    store : callable
        The graph store of a space.
    host : str
        uuid of this storaged.
    served : callable
        The jobs whose versions of a space are served, from which a build may link.
    fingerprints : callable
        ``(space id, cut, partitions)``: what loads committed up to a cut wrote, as the catalog knows.
    memory_limit_mib : int
        For each child.
    concurrent : int
        Tasks at a time.
    addresses : AllowedAddresses
        What tasks may open.
    remote_timeout_s : float
        Seconds that the host of an address may be silent.
    changed : callable
        Called when an order ended: there is something to report.
    fork_server : ForkServer
        Starts the children.
    """

    def __init__(
        self,
        *,
        folders: Folders,
        store: Callable[[int], GraphStore],
        host: str,
        served: Callable[[int], Sequence[int]],
        fingerprints: Callable[[int, int, Sequence[int]], Sequence[LoadFingerprint]],
        memory_limit_mib: int,
        concurrent: int,
        addresses: AllowedAddresses,
        remote_timeout_s: float,
        changed: Callable[[], None],
        fork_server: ForkServer,
    ) -> None:
        self.folders, self.store, self.host, self.served = folders, store, host, served
        self.fingerprints, self.fork_server = fingerprints, fork_server
        self.memory_limit_mib, self.changed = memory_limit_mib, changed
        self.addresses, self.remote_timeout_s = addresses, remote_timeout_s
        self._slots = threading.BoundedSemaphore(concurrent)
        self.allowed = threading.Event()
        """Set while metad's orders hold: without a lease they may be somebody else's by now."""
        self._lock = threading.Lock()
        self._builds: dict[tuple[int, int], _Build] = {}
        self._leaving: list[_Build] = []
        self._own: list[_Build] = []
        """What nobody ordered: remakings."""

    @contextlib.contextmanager
    def slot(self, cancelled: Callable[[], bool]) -> Iterator[bool]:
        """One of the places for tasks while the block runs; False where the wait for it was cancelled."""
        while not cancelled():
            if self._slots.acquire(timeout=_LOOK_S):
                try:
                    yield True
                finally:
                    self._slots.release()
                return
        yield False

    def withdraw(self, orders: Sequence[Order]) -> None:
        """Kill what is not among ``orders`` any more."""
        with self._lock:
            wanted = {(order.task_id, order.attempt) for order in orders}
            for key in [key for key in self._builds if key not in wanted]:
                build = self._builds.pop(key)
                if not build.done.is_set():
                    logger.info("build_stopped", extra={"job": build.order.job_id, "attempt": build.order.attempt})
                    build.cancel()
                    self._leaving.append(build)
            self._leaving = [build for build in self._leaving if not build.done.is_set()]

    def apply(self, orders: Sequence[Order]) -> None:
        """Begin what is new among ``orders``.

        A new attempt begins only after the child of the old one is reaped: they share a folder.
        """
        with self._lock:
            leaving = {build.order.job_id: build for build in self._leaving}
            for order in orders:
                key = (order.task_id, order.attempt)
                if key in self._builds:
                    continue
                build = self._builds[key] = _Build(order, self)
                logger.info("build_ordered", extra={"job": order.job_id, "attempt": order.attempt, "parts": len(order.parts)})
                threading.Thread(target=_begin_after, args=(build, leaving.get(order.job_id)), daemon=True).start()

    def begin(self, order: Order) -> Run:
        """Carry an order out that metad did not give, beside its orders and within the same slots; it is not reported."""
        build = _Build(order, self)
        with self._lock:
            self._own = [*(own for own in self._own if not own.done.is_set()), build]
        build.begin()
        return build

    def allow(self, leased: bool) -> None:
        """Let builds go on where the lease holds; else stop them where they are: after a short silence nothing is lost."""
        with self._lock:
            builds = [*self._builds.values(), *self._leaving, *self._own]
            if leased:
                self.allowed.set()
            else:
                self.allowed.clear()
        for build in builds:
            build.hold()

    def progress(self) -> list[Progress]:
        """Every order's progress; one that was withdrawn is still running until its child is reaped."""
        with self._lock:
            leaving = [build.progress for build in self._leaving if not build.done.is_set()]
            return [build.progress for build in self._builds.values()] + leaving

    def busy(self, space_id: int) -> set[int]:
        """The jobs of a space that have an order here, and those whose folders a build that is not over may read."""
        with self._lock:
            leaving = [build for build in self._leaving if not build.done.is_set()]
            mine = [build for build in [*self._builds.values(), *leaving] if build.order.space_id == space_id]
        reading = [build for build in mine if not build.done.is_set()]
        return {build.order.job_id for build in mine} | {job for build in reading for job in build.order.beside}

    def stop(self) -> None:
        """Kill all children and reap them."""
        with self._lock:
            builds = [*self._builds.values(), *self._leaving, *self._own]
        for build in builds:
            build.cancel()
        for build in builds:
            build.done.wait(10)
        self.fork_server.close()


def _begin_after(build: _Build, previous: _Build | None) -> None:
    if previous is not None:
        previous.done.wait()
    build.begin()
