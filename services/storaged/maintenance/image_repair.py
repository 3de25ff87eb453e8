"""Repair of damaged images of served versions, from the blocks that they were built from.

A version is a function of its loads, which the graph database keeps. A build of the same partitions
at the same commit watermark therefore yields the same bytes, in a separate folder. If its digest is
that of the sealed version, the new image replaces the damaged one. `storaged.version_loader` starts
repairs; metad neither assigns them nor receives reports of them. A repair is visible only in the
reason why a version is not served.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Sequence

from asterism_io.durable_files import make_folder, sync_folder
from asterism_proto.errors import AsterismError
from storaged.build.completion_records import part_folder
from storaged.local_spaces import DesiredSpace, DesiredVersion
from storaged.paths import DataPaths
from storaged.store.os_errors import disk_error
from storaged.tasks.task_assignments import FINISHED, REPAIR, TaskAssignment, TaskHandle

logger = logging.getLogger(__name__)

_POLL_S = 0.2

ListCommits = Callable[[DesiredSpace], Sequence[tuple[int, int]]]
"""Function that returns (commit, load) of all commits of a space, in commit order."""


class ImageRepair:
    """The repair of one version's damaged partitions, which runs in a thread."""

    def __init__(self, space: DesiredSpace, desired: DesiredVersion, parts: Sequence[int]) -> None:
        self.space, self.desired, self.parts = space, desired, tuple(parts)
        self.is_done = False
        self.fault = ""
        """Reason for a failed repair; empty if it succeeded or still runs."""

    def __str__(self) -> str:
        """Return the status of the repair, as shown in the reason why a version is not served."""
        parts_text = (
            f"part {self.parts[0]}"
            if len(self.parts) == 1
            else f"parts {', '.join(map(str, self.parts))}"
        )
        if not self.is_done:
            return (
                f"{parts_text} being rebuilt from the loads up to commit {self.desired.watermark}"
            )
        return (
            f"{parts_text} could not be rebuilt: {self.fault}"
            if self.fault
            else f"{parts_text} rebuilt"
        )


class ImageRepairer:
    """Repairs images.

    Parameters
    ----------
    start_task : callable
        Runs a task that metad did not assign.
    is_desired : callable
        Returns whether a version of a space is still to be served.
    list_commits : callable
        Requests the commits of a space from metad.
    paths : DataPaths
    """

    def __init__(
        self,
        *,
        start_task: Callable[[TaskAssignment], TaskHandle],
        is_desired: Callable[[int, DesiredVersion], bool],
        list_commits: ListCommits,
        paths: DataPaths,
    ) -> None:
        self._start_task, self._is_desired, self._list_commits, self._paths = (
            start_task,
            is_desired,
            list_commits,
            paths,
        )
        self._active: frozenset[tuple[int, int]] = frozenset()
        """(space, job) of the builds under repair."""
        self._lock = threading.Lock()

    def busy_jobs(self, space_id: int) -> set[int]:
        """Return the jobs of a space with folders in use."""
        return {job_id for space, job_id in self._active if space == space_id}

    def start(
        self,
        space: DesiredSpace,
        desired: DesiredVersion,
        parts: Sequence[int],
        on_done: Callable[[], None],
    ) -> ImageRepair:
        """Start the repair of some partitions of a version; call ``on_done`` when it has ended."""
        repair = ImageRepair(space, desired, parts)
        logger.warning(
            "image_repaired",
            extra={"space": space.name, "version": desired.version, "parts": list(parts)},
        )
        threading.Thread(
            target=self._run, args=(repair, on_done), name=f"remake-{desired.job_id}", daemon=True
        ).start()
        return repair

    def _run(self, repair: ImageRepair, on_done: Callable[[], None]) -> None:
        key = repair.space.space_id, repair.desired.job_id
        with self._lock:
            self._active |= {key}
        try:
            repair.fault = self._rebuild(repair)
        except AsterismError as error:
            repair.fault = error.message
        except OSError as error:
            repair.fault = disk_error(error, self._paths.data).message
        except Exception as error:  # The status of the version must show the cause.
            logger.exception("image_repair_crashed")
            repair.fault = repr(error)
        if repair.fault:
            logger.error(
                "image_repair_failed",
                extra={
                    "space": repair.space.name,
                    "version": repair.desired.version,
                    "cause": repair.fault,
                },
            )
            shutil.rmtree(self._paths.checkpoint(*key), ignore_errors=True)
        with self._lock:
            self._active -= {key}
        repair.is_done = True
        on_done()

    def _rebuild(self, repair: ImageRepair) -> str:
        space, desired = repair.space, repair.desired
        committed = [
            (commit, load)
            for commit, load in self._list_commits(space)
            if commit <= desired.watermark
        ]
        handle = self._start_task(
            TaskAssignment(
                task_id=0,
                job_id=desired.job_id,
                attempt=0,
                kind=REPAIR,
                space_id=space.space_id,
                space=space.name,
                schema=space.schema,
                parts=repair.parts,
                watermark=desired.watermark,
                loads=tuple(load for _, load in committed),
                commits=tuple(commit for commit, _ in committed),
                indexes=desired.indexes,
            )
        )
        while not handle.done.wait(_POLL_S):
            if not self._is_desired(space.space_id, desired):
                handle.cancel()
        if handle.progress.state != FINISHED:
            return handle.progress.cause or "it was stopped"
        difference = _digest_mismatch(
            {image["part"]: image["digest"] for image in handle.progress.result["images"]}, desired
        )
        if not difference:
            self._install(repair)
        return difference

    def _install(self, repair: ImageRepair) -> None:
        """Replace the damaged images by the rebuilt ones.

        A crash in between leaves a partition without an image, which is then repaired again.
        """
        space_id, job_id = repair.space.space_id, repair.desired.job_id
        build, rebuilt = (
            self._paths.build(space_id, job_id),
            self._paths.repair_build(space_id, job_id),
        )
        make_folder(build / "parts")
        for part in repair.parts:
            target = part_folder(build, part)
            # Unlinked only: existing mappings stay valid.
            shutil.rmtree(target, ignore_errors=True)
            part_folder(rebuilt, part).rename(target)
        sync_folder(build / "parts")
        shutil.rmtree(rebuilt, ignore_errors=True)


def _digest_mismatch(rebuilt_digests: dict[int, str], desired: DesiredVersion) -> str:
    """Return how rebuilt images differ from those of the sealed version; empty if they do not."""
    for part, digest in sorted(rebuilt_digests.items()):
        if digest != desired.images.get(part):
            return (
                f"rebuilt from the loads up to commit {desired.watermark}, part {part} has digest "
                f"{digest}: expected {desired.images.get(part)}, as in version "
                f"{desired.version}; the loaded data is damaged too, or another release built "
                "the version; restore the space from a backup, or load the data again"
            )
    return ""
