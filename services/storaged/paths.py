"""Layout of a storaged's data folder."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection
from pathlib import Path

from asterism_io.durable_files import write_durably


class DataPaths:
    """Paths in a data folder: ``spaces/<space>/{graph, builds/<job>, checkpoints/<job>}``."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.spaces = data / "spaces"
        self.exports = data / "exports"
        """Exported tables, one folder per job; they stay until an operator removes them."""
        self.cluster = data / "cluster"
        """File with the uuid of the folder's cluster, written at the first contact.
        """
        self.position = data / "position"
        """File with the newest position of metad's catalog that was acted on."""
        self.quarantine = data / "quarantine"
        """Folders that were removed at metad's request and are not deleted yet."""
        self.running_time = data / "running"
        """File with the seconds that storageds have run on the folder, over all starts."""
        self.clean_marker = data / "CLEAN"
        """Marker that exists only after a clean stop.

        Without it, images are verified completely before they are served.
        """

    def space(self, space_id: int) -> Path:
        """Return the folder of a space."""
        return self.spaces / str(space_id)

    def graph(self, space_id: int) -> Path:
        """Return the folder of a space's graph database, which stores the loaded blocks."""
        return self.space(space_id) / "graph"

    def builds(self, space_id: int) -> Path:
        """Return the folder of a space's builds, one subfolder per job."""
        return self.space(space_id) / "builds"

    def build(self, space_id: int, job_id: int) -> Path:
        """Return the output folder of a job: its tables and images."""
        return self.builds(space_id) / str(job_id)

    def repair_build(self, space_id: int, job_id: int) -> Path:
        """Return the folder in which damaged images of a job's build are rebuilt."""
        return self.builds(space_id) / f"{job_id}.making"

    def checkpoints(self, space_id: int) -> Path:
        """Return the folder of the checkpoints that a space's jobs read, one subfolder per job."""
        return self.space(space_id) / "checkpoints"

    def checkpoint(self, space_id: int, job_id: int) -> Path:
        """Return the checkpoint that a job reads."""
        return self.checkpoints(space_id) / str(job_id)


SPACE_LABEL = "space.json"


def write_space_label(folder: Path, name: str) -> None:
    """Write the name of a space into its folder, for operators and inventories.

    Both may find the folder without a catalog that knows its id.
    """
    if read_space_label(folder) != name:
        with contextlib.suppress(OSError):  # A full disk: nothing depends on the label.
            write_durably(
                folder / SPACE_LABEL,
                json.dumps({"space_id": int(folder.name), "name": name}).encode(),
            )


def read_space_label(folder: Path) -> str:
    """Return the name stored in a space's folder; empty if it is missing or unreadable."""
    try:
        return str(json.loads((folder / SPACE_LABEL).read_text())["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def space_folders(paths: DataPaths) -> list[Path]:
    """Return the folders of the spaces in a data folder, by space id."""
    try:
        folders = [path for path in paths.spaces.iterdir() if path.name.isdecimal()]
    except OSError:
        return []
    return sorted(folders, key=lambda path: int(path.name))


def used_bytes(folder: Path, *, excluding: Collection[Path] = ()) -> int:
    """Return the disk space that the files below a folder occupy, in bytes.

    Files with several hard links count once. Files deleted during the scan may or may not count.
    Folders in ``excluding`` do not count.
    """
    seen: set[tuple[int, int]] = set()
    excluded = {os.fspath(path) for path in excluding}
    total, pending = 0, [os.fspath(folder)]
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        if entry.path not in excluded:
                            pending.append(entry.path)
                        continue
                    stats = entry.stat(follow_symlinks=False)
                    if stats.st_nlink == 1 or (stats.st_dev, stats.st_ino) not in seen:
                        total += stats.st_blocks * 512
                    if stats.st_nlink > 1:
                        seen.add((stats.st_dev, stats.st_ino))
    return total
