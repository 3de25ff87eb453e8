"""Creation of folders and small files that survives power failures."""

from __future__ import annotations

import os
from pathlib import Path


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents, and make their names durable."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    folder = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_durably(path: Path, content: bytes) -> None:
    """Replace a file atomically and durably: after a crash it has the old or the new content."""
    temporary = path.with_name(path.name + ".making")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    sync_folder(path.parent)
