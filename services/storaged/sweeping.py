"""Removal of what metad orders away by name: dropped spaces, retired versions, leftovers of jobs, abandoned loads.

What an order names is moved into quarantine (`storaged.quarantine`) by one rename, under the lock
that new desired states are taken over under, so that no build begins in a folder that is about to
go. Blocks of loads lie inside a database and are deleted there. What no order names stays, however
little the desired state knows of it, and is reported as unreferenced. Three things this storaged
removes by itself, for it made them and nothing refers to them: ``checkpoints/<job>.making`` and
``builds/<job>.making`` without a task of that job here, and ``scratch`` in a build that is served.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from asterism_proto.errors import AsterismError
from storaged.folders import Folders, used_bytes
from storaged.holdings import Holdings, WantedSpace
from storaged.quarantine import GONE, Quarantine

logger = logging.getLogger(__name__)

MAKING = ".making"
"""Ends the names of folders that are being made."""
_STOP_S = 5.0
_MEASURED_S = 30.0
"""How old the measure of the folder grows before the next one: it looks at every file."""


class Removal(Enum):
    """What an order names; the numbers are those of the wire."""

    SPACE = 1
    BUILD = 2
    LEFTOVERS = 3
    LOADS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalOrder:
    """An order to remove something."""

    removal_id: int
    kind: Removal
    space_id: int
    job_id: int = 0
    loads: tuple[int, ...] = ()
    reason: str = ""


class Sweeper:
    """Carries out removal orders, in a thread of its own.

    Parameters
    ----------
    holdings : Holdings
        What is wanted.
    folders : Folders
    quarantine : Quarantine
    busy : callable
        The jobs of a space whose folders a build here reads or writes.
    dead_loads : callable
        Which loads of a space, of those given, metad knows to be neither open nor committed.
    follows : callable
        Whether metad's catalog is followed; while it is not, nothing is removed.
    interval_s : float
        How often it looks where nothing else gives a reason.
    changed : callable
        Called when orders were carried out: there is something to report.
    """

    def __init__(
        self,
        holdings: Holdings,
        folders: Folders,
        *,
        quarantine: Quarantine,
        busy: Callable[[int], set[int]],
        dead_loads: Callable[[int, Sequence[int]], Sequence[int]],
        interval_s: float,
        changed: Callable[[], None],
        follows: Callable[[], bool] = lambda: True,
    ) -> None:
        self._holdings, self._folders, self._quarantine = holdings, folders, quarantine
        self._busy, self._dead_loads, self._follows = busy, dead_loads, follows
        self._interval_s, self._changed = interval_s, changed
        self.held_bytes = 0
        """That the folder took of the disk when it was measured last; 0: not yet."""
        self._orders: dict[int, RemovalOrder] = {}
        self._done: frozenset[int] = frozenset()
        """Orders that are carried out."""
        self.unreferenced: tuple[str, ...] = ()
        """Folders that nothing refers to and no order names, relative to the data folder."""
        self._noted: frozenset[str] = frozenset()
        self._stopping = False
        self._heard = False
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweeping", daemon=True)

    def start(self) -> None:
        """Begin to look; nothing goes before metad was heard."""
        self._thread.start()

    def wake(self) -> None:
        """Metad was heard, or a build ended: there may be something to remove."""
        self._heard = True
        self._due.set()

    def nudge(self) -> None:
        """A build ended: its folder may go by metad's last orders, if there were any."""
        self._due.set()

    def stop(self) -> None:
        """End between two folders, without waiting for long."""
        self._stopping = True
        self._due.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)

    def order(self, orders: Sequence[RemovalOrder]) -> None:
        """Replace the orders that are to be carried out. Called under the lock of the holdings."""
        self._orders = {order.removal_id: order for order in orders}
        self._done &= self._orders.keys()

    def removed(self) -> list[int]:
        """Return the orders that are carried out, for as long as metad repeats them."""
        return sorted(self._done)

    def _run(self) -> None:
        looked = swept = measured = -max(self._interval_s, _MEASURED_S)
        woken = True
        while not self._stopping:
            if self._heard and self._follows() and (woken or time.monotonic() - swept >= self._interval_s):
                timed = not woken
                self._guarded(self.drop_loads)
                self._guarded(self.sweep)
                if timed:
                    self._note_unreferenced()
                swept = time.monotonic()
                if swept - looked >= self._interval_s:
                    self._guarded(self.find_dead_loads)
                    looked = time.monotonic()
            self._guarded(self._quarantine.purge)
            if time.monotonic() - measured >= _MEASURED_S:
                self._guarded(self.measure)
                measured = time.monotonic()
            woken = self._due.wait(min(self._interval_s, _MEASURED_S))
            self._due.clear()

    def _guarded(self, chore: Callable[[], object]) -> None:
        """Do a chore; what stands in its way now may not at the next round."""
        try:
            chore()
        except AsterismError as error:
            logger.warning("sweep_failed", extra={"chore": chore.__name__, "cause": error.message})
        except Exception:
            logger.exception("sweep_crashed", extra={"chore": chore.__name__})

    def measure(self) -> None:
        """Look how much of the disk the folder takes."""
        self.held_bytes = used_bytes(self._folders.data)

    # -- folders --------------------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Carry out the removal orders, and remove what this storaged's own tasks left half made."""
        done = set()
        for order in list(self._orders.values()):
            if self._stopping or order.removal_id in self._done:
                continue
            carry_out = self._remove_loads if order.kind is Removal.LOADS else self._quarantined
            if carry_out(order):
                done.add(order.removal_id)
        with self._holdings.lock:
            self._done |= done & self._orders.keys()
            doomed = list(self._temporary())
            self.unreferenced = tuple(sorted(str(path.relative_to(self._folders.data)) for path in self._unreferenced()))
        for path in doomed:
            if self._stopping:
                return
            _remove(path)
            logger.info("leftover_removed", extra={"path": str(path)})
        if done:
            self._changed()

    def _quarantined(self, order: RemovalOrder) -> bool:
        """Move what an order names into quarantine; False where something still needs it."""
        with self._holdings.lock:
            if order.removal_id not in self._orders:
                return False
            busy = self._busy(order.space_id)
            held = {space.space_id: space for space in self._holdings.spaces()}.get(order.space_id)
            served = {want.job_id for want in held.versions} if held is not None else set()
            kept = set(held.kept_jobs) if held is not None else set()
            builds, job = self._folders.builds(order.space_id), str(order.job_id)
            match order.kind:
                case Removal.SPACE:
                    if order.space_id in self._holdings.named or busy:
                        return False
                    paths, readers = [self._folders.space(order.space_id)], _children(builds)
                case Removal.BUILD:
                    if order.job_id in served | kept | busy:
                        return False
                    paths = [builds / job, builds / (job + MAKING)]
                    readers = paths
                case _:
                    if order.job_id in kept | busy:
                        return False
                    checkpoints = self._folders.checkpoints(order.space_id)
                    exports = [path for path in _children(self._folders.exports) if _unfinished_export(path, order.job_id)]
                    paths, readers = [checkpoints / job, checkpoints / (job + MAKING), *exports], []
            with _unread(readers) as free:
                if free:
                    for path in paths:
                        if path.exists():
                            self._quarantine.take(path, order.reason)
                return free

    def _remove_loads(self, order: RemovalOrder) -> bool:
        """Delete the blocks of loads, of which the quarantine keeps a copy (of the whole database, by hard links)."""
        try:
            store = self._holdings.store(order.space_id)
        except AsterismError:
            return False  # its space is not open yet, or not held any more: then the order of its space comes
        if set(store.loads()) & set(order.loads):
            self._quarantine.fill(self._folders.graph(order.space_id), order.reason, store.checkpoint)
        store.drop_loads(order.loads)
        return True

    def _temporary(self) -> Iterator[Path]:
        """What this storaged's own tasks left half made, under names that nobody looks for any more."""
        for folder in _children(self._folders.spaces):
            if folder.name.endswith(GONE):  # by an earlier release, which decided so from the desired state
                yield folder
        for space in self._holdings.spaces():
            busy = self._busy(space.space_id)
            served = {want.job_id for want in space.versions}
            for folder in (self._folders.builds(space.space_id), self._folders.checkpoints(space.space_id)):
                for child in _children(folder):
                    name = child.name.removesuffix(MAKING)
                    if child.name.endswith(GONE):
                        yield child
                    elif child.name != name and name.isdigit() and int(name) not in busy:
                        yield from _aside(child)
            for job_id in served - busy - set(space.kept_jobs):
                # Sealed and idle: what was scratch while it was built can only be what a kill left.
                scratch = self._folders.build(space.space_id, job_id) / "scratch"
                if scratch.is_dir():
                    yield from _aside(scratch)
        for folder in _children(self._folders.exports):
            if folder.name.endswith(GONE):
                yield folder

    def _unreferenced(self) -> Iterator[Path]:
        """What nothing refers to and no order names."""
        held = {space.space_id: space for space in self._holdings.spaces()}
        ordered_spaces = {order.space_id for order in self._orders.values() if order.kind is Removal.SPACE}
        ordered_jobs = {order.job_id for order in self._orders.values() if order.job_id}
        for folder in _children(self._folders.spaces):
            space_id = int(folder.name) if folder.name.isdigit() else -1
            if space_id in held:
                yield from self._unreferenced_of(held[space_id], ordered_jobs)
            elif space_id not in self._holdings.named and space_id not in ordered_spaces and not folder.name.endswith(GONE):
                yield folder

    def _unreferenced_of(self, space: WantedSpace, ordered: set[int]) -> Iterator[Path]:
        wanted = self._busy(space.space_id) | set(space.kept_jobs) | ordered | {want.job_id for want in space.versions}
        for folder in (self._folders.builds(space.space_id), self._folders.checkpoints(space.space_id)):
            for child in _children(folder):
                name = child.name.removesuffix(MAKING)
                if not child.name.endswith(GONE) and not (name.isdigit() and int(name) in wanted):
                    yield child

    def _note_unreferenced(self) -> None:
        """Log what has been unreferenced for a whole interval, once; an order for it may have been under way."""
        now = frozenset(self.unreferenced)
        fresh = sorted(now - self._noted)
        if fresh:
            logger.warning("unreferenced_data_found", extra={"paths": fresh[:20], "count": len(fresh)})
        self._noted = now

    # -- loads ----------------------------------------------------------------------------------------------------

    def drop_loads(self) -> None:
        """Remove the blocks of loads that metad calls abandoned."""
        for space_id, store, loads in self._holdings.undropped():
            if self._stopping:
                return
            store.drop_loads(loads)
            self._holdings.dropped(space_id, loads)
            self._changed()

    def find_dead_loads(self) -> None:
        """Remove the blocks of loads that came to nothing in ways that nobody remembers.

        A block that was under way when its load was abandoned may be written after all others were removed.
        """
        for space in self._holdings.spaces():
            if self._stopping:
                return
            store = self._holdings.store(space.space_id)
            held = store.loads()
            self._holdings.saw_load(max(held, default=0))
            dead = self._dead_loads(space.space_id, held)
            if dead:
                logger.warning("dead_loads_found", extra={"space": space.name, "loads": list(dead)[:20]})
                store.drop_loads(dead)


def _unfinished_export(folder: Path, job_id: int) -> bool:
    """Return whether a folder is an export of a job that is not sealed by its manifest: a sealed one belongs to its user."""
    return folder.name.endswith(f"-job{job_id}") and not any(folder.glob("manifest-*.json"))


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _aside(folder: Path) -> Iterator[Path]:
    """Give the folder under another name."""
    gone = folder.with_name(folder.name + GONE)
    _remove(gone)
    folder.rename(gone)
    yield gone


@contextmanager
def _unread(builds: Sequence[Path]) -> Iterator[bool]:
    """Keep readers of other processes from opening these builds; False where one is being read."""
    locks = []
    try:
        try:
            for build in builds:
                if build.exists():
                    locks.append(os.open(build, os.O_RDONLY | os.O_CLOEXEC))
                    fcntl.flock(locks[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        for lock in locks:
            os.close(lock)
