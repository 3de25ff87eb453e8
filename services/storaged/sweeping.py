"""Removing what metad's last word does not name: dropped spaces, retired versions, leftovers of jobs, abandoned loads.

Whatever a crash or a kill left behind is found by looking, not by remembering: at the start, after each of metad's
words, and every so often. What goes is taken out of the way under the lock that new words are taken over under, so that
no build begins in a folder that is about to go; its bytes are removed after that. Files are unlinked, never truncated:
draws under way keep their arrays mapped.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from asterism_proto.errors import AsterismError
from storaged.folders import Folders, used_bytes
from storaged.holdings import Holdings, WantedSpace

logger = logging.getLogger(__name__)

GONE = ".gone"
"""Ends the names of folders that are being removed."""
_STOP_S = 5.0
_MEASURED_S = 30.0
"""How old the measure of the folder grows before the next one: it looks at every file."""


class Sweeper:
    """Removes what is not wanted, in a thread of its own.

    Parameters
    ----------
    holdings : Holdings
        What is wanted.
    folders : Folders
    busy : callable
        The jobs of a space whose folders a build here reads or writes.
    dead_loads : callable
        Which loads of a space, of those given, metad knows to be neither open nor committed.
    interval_s : float
        How often leftovers are looked for where nothing else gives a reason.
    changed : callable
        Called when abandoned loads were dropped: there is something to report.
    """

    def __init__(
        self,
        holdings: Holdings,
        folders: Folders,
        *,
        busy: Callable[[int], set[int]],
        dead_loads: Callable[[int, Sequence[int]], Sequence[int]],
        interval_s: float,
        changed: Callable[[], None],
    ) -> None:
        self._holdings, self._folders = holdings, folders
        self._busy, self._dead_loads = busy, dead_loads
        self._interval_s, self._changed = interval_s, changed
        self.held_bytes = 0
        """That the folder took of the disk when it was measured last; 0: not yet."""
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
        """A build ended: its folder may go by metad's last word, if there was one."""
        self._due.set()

    def stop(self) -> None:
        """End between two folders, without waiting for long."""
        self._stopping = True
        self._due.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)

    def _run(self) -> None:
        looked = swept = measured = -max(self._interval_s, _MEASURED_S)
        woken = True
        while not self._stopping:
            if self._heard and (woken or time.monotonic() - swept >= self._interval_s):
                self._guarded(self.drop_loads)
                self._guarded(self.sweep)
                swept = time.monotonic()
                if swept - looked >= self._interval_s:
                    self._guarded(self.find_dead_loads)
                    looked = time.monotonic()
            if time.monotonic() - measured >= _MEASURED_S:
                self._guarded(self.measure)
                measured = time.monotonic()
            woken = self._due.wait(min(self._interval_s, _MEASURED_S))
            self._due.clear()

    def _guarded(self, chore: Callable[[], None]) -> None:
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
        """Remove the folders that nothing needs."""
        with self._holdings.lock:
            doomed = list(self._doomed())
        for path in doomed:
            if self._stopping:
                return
            _remove(path)
            logger.info("leftover_removed", extra={"path": str(path)})

    def _doomed(self) -> Iterator[Path]:
        """Everything that is to go, under names that nobody looks for any more."""
        held = {space.space_id: space for space in self._holdings.spaces()}
        for folder in _children(self._folders.spaces):
            if folder.name.endswith(GONE):
                yield folder
                continue
            if not folder.name.isdigit():
                continue
            space_id = int(folder.name)
            if space_id in held:
                yield from self._doomed_of(held[space_id])
            elif space_id not in self._holdings.named and not self._busy(space_id):
                yield from _aside(folder, readers_of=_children(self._folders.builds(space_id)))
        yield from self._doomed_exports({job for space in held.values() for job in {*space.kept_jobs, *self._busy(space.space_id)}})

    def _doomed_of(self, space: WantedSpace) -> Iterator[Path]:
        busy = self._busy(space.space_id)
        served = {want.job_id for want in space.versions}
        unfinished = busy | set(space.kept_jobs)
        for folder, wanted in ((self._folders.builds(space.space_id), unfinished | served), (self._folders.checkpoints(space.space_id), unfinished)):
            for child in _children(folder):
                name = child.name.removesuffix(".making")
                if child.name.endswith(GONE):
                    yield child
                elif not (name.isdigit() and int(name) in (wanted if child.name == name else busy)):
                    yield from _aside(child, readers_of=[child])
        for job_id in served - unfinished:
            # Sealed and idle: what was scratch while it was built can only be what a kill left.
            scratch = self._folders.build(space.space_id, job_id) / "scratch"
            if scratch.is_dir():
                yield from _aside(scratch, readers_of=[])

    def _doomed_exports(self, unfinished: set[int]) -> Iterator[Path]:
        """Exports that nobody goes on with. One that is sealed by its manifest is whoever's asked for it."""
        for folder in _children(self._folders.exports):
            job = folder.name.rpartition("-job")[2]
            if folder.name.endswith(GONE):
                yield folder
            elif job.isdigit() and int(job) not in unfinished and not any(folder.glob("manifest-*.json")):
                yield from _aside(folder, readers_of=[])

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
            dead = self._dead_loads(space.space_id, store.loads())
            if dead:
                logger.warning("dead_loads_found", extra={"space": space.name, "loads": list(dead)[:20]})
                store.drop_loads(dead)


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


def _aside(folder: Path, *, readers_of: Sequence[Path]) -> Iterator[Path]:
    """The folder under another name; nothing while another process reads one of the builds ``readers_of``."""
    locks = []
    try:
        for build in readers_of:
            lock = os.open(build, os.O_RDONLY | os.O_CLOEXEC)
            locks.append(lock)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        gone = folder.with_name(folder.name + GONE)
        _remove(gone)
        folder.rename(gone)
    except BlockingIOError:
        return
    finally:
        for lock in locks:
            os.close(lock)
    yield gone
