"""Removal of folders and loads at metad's request.

The requests name dropped spaces, retired versions, leftovers of jobs and abandoned loads. Each
folder moves into quarantine (`storaged.quarantine`) by one rename. This happens under the lock
under which new desired states are applied, so no build starts in a folder about to be removed.
Blocks of loads lie inside a database and are deleted there.

Folders that no request names stay, even if the desired state does not mention them, and are
reported as unreferenced. This storaged removes three kinds of folders without a request, because it
created them and nothing refers to them: ``checkpoints/<job>.making`` and ``builds/<job>.making``
without a task of that job here, and ``scratch`` in a build that is served.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from asterism_model.storage_removals import RemovalKind, RemovalRequest
from asterism_proto.errors import AsterismError
from storaged.local_spaces import DesiredSpace, LocalSpaces
from storaged.paths import DataPaths, space_folders, used_bytes
from storaged.quarantine import DELETING_SUFFIX, Quarantine

logger = logging.getLogger(__name__)

BUILDING_SUFFIX = ".making"
"""Suffix of folders under construction."""
_STOP_S = 5.0
_MEASURE_INTERVAL_S = 30.0
"""Seconds between two measurements of the folder's size, each of which visits every file."""


class GarbageCollector:
    """Carries out removal requests, in a separate thread.

    Parameters
    ----------
    local_spaces : LocalSpaces
    paths : DataPaths
    quarantine : Quarantine
    busy_jobs : callable
        Returns the jobs of a space with folders that a build here reads or writes.
    query_dead_loads : callable
        Returns the loads of a space, out of those given, that metad knows to be neither open nor
        committed.
    is_following : callable
        Returns whether metad's catalog is followed; nothing is removed while it is not.
    interval_s : float
        Seconds between two rounds without another trigger.
    on_change : callable
        Called when requests were carried out and can be reported.
    """

    def __init__(
        self,
        local_spaces: LocalSpaces,
        paths: DataPaths,
        *,
        quarantine: Quarantine,
        busy_jobs: Callable[[int], set[int]],
        query_dead_loads: Callable[[int, Sequence[int]], Sequence[int]],
        interval_s: float,
        on_change: Callable[[], None],
        is_following: Callable[[], bool] = lambda: True,
    ) -> None:
        self._local_spaces, self._paths, self._quarantine = local_spaces, paths, quarantine
        self._busy_jobs, self._query_dead_loads, self._is_following = (
            busy_jobs,
            query_dead_loads,
            is_following,
        )
        self._interval_s, self._on_change = interval_s, on_change
        self.held_bytes = 0
        """Disk space of the folder at the last measurement, in bytes; 0 before the first one."""
        self.space_bytes: Mapping[int, int] = {}
        """Disk space of each space's folder at the last measurement, in bytes."""
        self._removals: dict[int, RemovalRequest] = {}
        self._done: frozenset[int] = frozenset()
        """Ids of the requests that were carried out."""
        self.unreferenced: tuple[str, ...] = ()
        """Folders without a reference or a removal request, relative to the data folder."""
        self._logged: frozenset[str] = frozenset()
        self._stopping = False
        self._catalog_seen = False
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._run, name="garbage-collection", daemon=True)

    def start(self) -> None:
        """Start the thread; nothing is removed before the first contact with metad."""
        self._thread.start()

    def wake(self) -> None:
        """Wake the thread after a desired state was applied."""
        self._catalog_seen = True
        self._due.set()

    def recheck(self) -> None:
        """Wake the thread after a task ended, since its folder may be removed now.

        Has no effect before the first contact with metad.
        """
        self._due.set()

    def stop(self) -> None:
        """Stop after the current folder, without waiting for long."""
        self._stopping = True
        self._due.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)

    def set_removals(self, removals: Sequence[RemovalRequest]) -> None:
        """Replace the removal requests. The caller holds the lock of the local spaces."""
        self._removals = {removal.removal_id: removal for removal in removals}
        self._done &= self._removals.keys()

    def removed_ids(self) -> list[int]:
        """Return the ids of completed requests, for as long as metad repeats them."""
        return sorted(self._done)

    def _run(self) -> None:
        searched_at = collected_at = measured_at = -max(self._interval_s, _MEASURE_INTERVAL_S)
        woken = True
        while not self._stopping:
            if (
                self._catalog_seen
                and self._is_following()
                and (woken or time.monotonic() - collected_at >= self._interval_s)
            ):
                is_periodic = not woken
                self._run_chore(self.drop_loads)
                self._run_chore(self.collect)
                if is_periodic:
                    self._log_unreferenced()
                collected_at = time.monotonic()
                if collected_at - searched_at >= self._interval_s:
                    self._run_chore(self.find_dead_loads)
                    searched_at = time.monotonic()
            self._run_chore(self._quarantine.purge)
            if time.monotonic() - measured_at >= _MEASURE_INTERVAL_S:
                self._run_chore(self.measure)
                measured_at = time.monotonic()
            woken = self._due.wait(min(self._interval_s, _MEASURE_INTERVAL_S))
            self._due.clear()

    def _run_chore(self, chore: Callable[[], object]) -> None:
        """Run one step and log its failure; the next round tries again."""
        try:
            chore()
        except AsterismError as error:
            logger.warning(
                "garbage_collection_failed", extra={"chore": chore.__name__, "cause": error.message}
            )
        except Exception:
            logger.exception("garbage_collection_crashed", extra={"chore": chore.__name__})

    def measure(self) -> None:
        """Measure how much disk space the folder occupies, in total and for each space."""
        folders = space_folders(self._paths)
        space_bytes = {int(folder.name): used_bytes(folder) for folder in folders}
        other_bytes = used_bytes(self._paths.data, excluding=folders)
        self.space_bytes = space_bytes
        self.held_bytes = other_bytes + sum(space_bytes.values())

    # -- folders -----------------------------------------------------------------------------------

    def collect(self) -> None:
        """Carry out the removal requests, and remove unfinished output of this storaged's tasks."""
        completed = set()
        for removal in list(self._removals.values()):
            if self._stopping or removal.removal_id in self._done:
                continue
            carry_out = (
                self._remove_loads
                if removal.kind is RemovalKind.LOADS
                else self._quarantine_folders
            )
            if carry_out(removal):
                completed.add(removal.removal_id)
        with self._local_spaces.lock:
            self._done |= completed & self._removals.keys()
            leftovers = list(self._leftovers())
            self.unreferenced = tuple(
                sorted(
                    str(path.relative_to(self._paths.data)) for path in self._find_unreferenced()
                )
            )
        for path in leftovers:
            if self._stopping:
                return
            _remove(path)
            logger.info("unreferenced_folder_removed", extra={"path": str(path)})
        if completed:
            self._on_change()

    def _quarantine_folders(self, removal: RemovalRequest) -> bool:
        """Move the folders of a request into quarantine; return False if one is still in use."""
        with self._local_spaces.lock:
            if removal.removal_id not in self._removals:
                return False
            busy = self._busy_jobs(removal.space_id)
            local_space = {space.space_id: space for space in self._local_spaces.spaces()}.get(
                removal.space_id
            )
            served = (
                {desired.job_id for desired in local_space.versions}
                if local_space is not None
                else set()
            )
            kept_jobs = set(local_space.kept_jobs) if local_space is not None else set()
            builds, job = self._paths.builds(removal.space_id), str(removal.job_id)
            match removal.kind:
                case RemovalKind.SPACE:
                    if removal.space_id in self._local_spaces.desired_space_ids or busy:
                        return False
                    paths, readers = [self._paths.space(removal.space_id)], _children(builds)
                case RemovalKind.BUILD:
                    if removal.job_id in served | kept_jobs | busy:
                        return False
                    paths = [builds / job, builds / (job + BUILDING_SUFFIX)]
                    readers = paths
                case _:
                    if removal.job_id in kept_jobs | busy:
                        return False
                    checkpoints = self._paths.checkpoints(removal.space_id)
                    exports = [
                        path
                        for path in _children(self._paths.exports)
                        if _is_unfinished_export(path, removal.job_id)
                    ]
                    paths, readers = (
                        [checkpoints / job, checkpoints / (job + BUILDING_SUFFIX), *exports],
                        [],
                    )
            with _exclusive_locks(readers) as free:
                if free:
                    for path in paths:
                        if path.exists():
                            self._quarantine.add(path, removal.reason)
                return free

    def _remove_loads(self, removal: RemovalRequest) -> bool:
        """Delete the blocks of loads.

        The quarantine keeps a copy of the whole database, made of hard links.
        """
        try:
            store = self._local_spaces.store(removal.space_id)
        except AsterismError:
            # The space is not open yet, or no longer here; in that case a request for the space
            # follows.
            return False
        if set(store.loads()) & set(removal.loads):
            self._quarantine.add_copy(
                self._paths.graph(removal.space_id), removal.reason, store.checkpoint
            )
        store.drop_loads(removal.loads)
        return True

    def _leftovers(self) -> Iterator[Path]:
        """Yield unfinished output of this storaged's own tasks, under names no longer in use."""
        for folder in _children(self._paths.spaces):
            # From an earlier release, which decided by the desired state.
            if folder.name.endswith(DELETING_SUFFIX):
                yield folder
        for space in self._local_spaces.spaces():
            busy = self._busy_jobs(space.space_id)
            served = {desired.job_id for desired in space.versions}
            for folder in (
                self._paths.builds(space.space_id),
                self._paths.checkpoints(space.space_id),
            ):
                for child in _children(folder):
                    name = child.name.removesuffix(BUILDING_SUFFIX)
                    if child.name.endswith(DELETING_SUFFIX):
                        yield child
                    elif child.name != name and name.isdigit() and int(name) not in busy:
                        yield from _rename_for_deletion(child)
            for job_id in served - busy - set(space.kept_jobs):
                # Sealed and idle: the scratch folder of its build can only be left from a kill.
                scratch = self._paths.build(space.space_id, job_id) / "scratch"
                if scratch.is_dir():
                    yield from _rename_for_deletion(scratch)
        for folder in _children(self._paths.exports):
            if folder.name.endswith(DELETING_SUFFIX):
                yield folder

    def _find_unreferenced(self) -> Iterator[Path]:
        """Yield the folders without a reference or a removal request."""
        local_spaces = {space.space_id: space for space in self._local_spaces.spaces()}
        ordered_spaces = {
            removal.space_id
            for removal in self._removals.values()
            if removal.kind is RemovalKind.SPACE
        }
        ordered_jobs = {removal.job_id for removal in self._removals.values() if removal.job_id}
        for folder in _children(self._paths.spaces):
            space_id = int(folder.name) if folder.name.isdigit() else -1
            if space_id in local_spaces:
                yield from self._unreferenced_in_space(local_spaces[space_id], ordered_jobs)
            elif (
                space_id not in self._local_spaces.desired_space_ids
                and space_id not in ordered_spaces
                and not folder.name.endswith(DELETING_SUFFIX)
            ):
                yield folder

    def _unreferenced_in_space(self, space: DesiredSpace, ordered_jobs: set[int]) -> Iterator[Path]:
        referenced_jobs = (
            self._busy_jobs(space.space_id)
            | set(space.kept_jobs)
            | ordered_jobs
            | {desired.job_id for desired in space.versions}
        )
        for folder in (self._paths.builds(space.space_id), self._paths.checkpoints(space.space_id)):
            for child in _children(folder):
                name = child.name.removesuffix(BUILDING_SUFFIX)
                if not child.name.endswith(DELETING_SUFFIX) and not (
                    name.isdigit() and int(name) in referenced_jobs
                ):
                    yield child

    def _log_unreferenced(self) -> None:
        """Log, once, the paths that have been unreferenced for a whole interval.

        After a shorter time, a removal request may still be on its way.
        """
        unreferenced = frozenset(self.unreferenced)
        new_paths = sorted(unreferenced - self._logged)
        if new_paths:
            logger.warning(
                "unreferenced_data_found", extra={"paths": new_paths[:20], "count": len(new_paths)}
            )
        self._logged = unreferenced

    # -- loads -------------------------------------------------------------------------------------

    def drop_loads(self) -> None:
        """Delete the blocks of loads that metad calls abandoned."""
        for space_id, store, loads in self._local_spaces.loads_to_drop():
            if self._stopping:
                return
            store.drop_loads(loads)
            self._local_spaces.note_dropped(space_id, loads)
            self._on_change()

    def find_dead_loads(self) -> None:
        """Delete the blocks of loads that are neither open nor committed.

        A block that was in flight when its load was abandoned may be written after all other blocks
        of the load were removed.
        """
        for space in self._local_spaces.spaces():
            if self._stopping:
                return
            store = self._local_spaces.store(space.space_id)
            loads = store.loads()
            self._local_spaces.note_load(max(loads, default=0))
            dead = self._query_dead_loads(space.space_id, loads)
            if dead:
                logger.warning(
                    "abandoned_loads_found", extra={"space": space.name, "loads": list(dead)[:20]}
                )
                store.drop_loads(dead)


def _is_unfinished_export(folder: Path, job_id: int) -> bool:
    """Return whether a folder is an export of a job without a manifest.

    An export with a manifest is complete and belongs to its user.
    """
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


def _rename_for_deletion(folder: Path) -> Iterator[Path]:
    """Rename a folder so that nothing opens it, and yield its new path."""
    deleting = folder.with_name(folder.name + DELETING_SUFFIX)
    _remove(deleting)
    folder.rename(deleting)
    yield deleting


@contextmanager
def _exclusive_locks(builds: Sequence[Path]) -> Iterator[bool]:
    """Lock builds against readers in other processes; yield False if one is being read."""
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
