"""Where things lie in a storaged's data folder."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from asterism_io.durable_files import write_durably


class DataPaths:
    """The paths under a data folder: ``spaces/<space>/{graph, builds/<job>,
    checkpoints/<job>}``.
    """

    def __init__(self, data: Path) -> None:
        self.data = data
        self.spaces = data / "spaces"
        self.exports = data / "exports"
        """Exported tables, a folder for each job: they stay until somebody removes them."""
        self.cluster = data / "cluster"
        """uuid of the metad whose word the folder follows; there from the first word on."""
        self.position = data / "position"
        """The newest position of metad's catalog that was acted on."""
        self.quarantine = data / "quarantine"
        """What was ordered away and is not unlinked yet."""
        self.running_time = data / "running"
        """Seconds that storageds have run on the folder, over all starts."""
        self.clean_marker = data / "CLEAN"
        """There after a clean stop only: without it, images are verified whole before they are
        served.
        """

    def space(self, space_id: int) -> Path:
        """All of a space."""
        return self.spaces / str(space_id)

    def graph(self, space_id: int) -> Path:
        """Its blocks as loaded."""
        return self.space(space_id) / "graph"

    def builds(self, space_id: int) -> Path:
        """Its builds, by job."""
        return self.space(space_id) / "builds"

    def build(self, space_id: int, job_id: int) -> Path:
        """What a job built: tables and images."""
        return self.builds(space_id) / str(job_id)

    def repair_build(self, space_id: int, job_id: int) -> Path:
        """Where damaged parts of what a job built are built again."""
        return self.builds(space_id) / f"{job_id}.making"

    def checkpoints(self, space_id: int) -> Path:
        """What its jobs read, by job."""
        return self.space(space_id) / "checkpoints"

    def checkpoint(self, space_id: int, job_id: int) -> Path:
        """What a job reads."""
        return self.checkpoints(space_id) / str(job_id)


SPACE_LABEL = "space.json"


def write_space_label(folder: Path, name: str) -> None:
    """Write the name of a space into its folder, for people and inventories that find the folder
    alone.
    """
    if read_space_label(folder) != name:
        with contextlib.suppress(OSError):  # a full disk: nothing depends on it
            write_durably(
                folder / SPACE_LABEL,
                json.dumps({"space_id": int(folder.name), "name": name}).encode(),
            )


def read_space_label(folder: Path) -> str:
    """Return the name in a space's folder; empty where there is none that can be read."""
    try:
        return str(json.loads((folder / SPACE_LABEL).read_text())["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def used_bytes(folder: Path) -> int:
    """What all files below a folder take of the disk, linked ones once; those that go meanwhile may
    count or not.
    """
    seen: set[tuple[int, int]] = set()
    total, pending = 0, [os.fspath(folder)]
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                        continue
                    stats = entry.stat(follow_symlinks=False)
                    if stats.st_nlink == 1 or (stats.st_dev, stats.st_ino) not in seen:
                        total += stats.st_blocks * 512
                    if stats.st_nlink > 1:
                        seen.add((stats.st_dev, stats.st_ino))
    return total
