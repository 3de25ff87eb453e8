"""Tests of the disk usage of a data folder."""

from __future__ import annotations

import os
from pathlib import Path

from storaged.paths import DataPaths, space_folders, used_bytes


def write(path: Path, size: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


def test_the_usage_of_spaces_and_of_the_rest_adds_up(tmp_path: Path) -> None:
    paths = DataPaths(tmp_path)
    block = write(paths.build(1, 4) / "tables", 10_000)
    os.link(block, paths.build(1, 4) / "linked")
    write(paths.graph(12) / "blocks", 50_000)
    write(paths.quarantine / "1" / "old", 20_000)
    (paths.spaces / "README").mkdir()
    folders = space_folders(paths)
    assert [folder.name for folder in folders] == ["1", "12"]
    first, second = (used_bytes(folder) for folder in folders)
    rest = used_bytes(tmp_path, excluding=folders)
    assert first >= 10_000
    assert second >= 50_000
    assert rest >= 20_000
    assert first + second + rest == used_bytes(tmp_path)


def test_a_folder_without_spaces_has_none(tmp_path: Path) -> None:
    assert space_folders(DataPaths(tmp_path)) == []
