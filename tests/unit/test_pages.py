"""Images in large pages of memory: what is asked of the system, and when."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

import numpy as np
import pytest

from storaged.store import pages
from storaged.store.pages import LARGE, enlarge, fit, settle, settle_all


def resident(path: Path) -> float:
    """The share of a file's pages that are in memory."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE) as content:
        told = (ctypes.c_ubyte * (-(-len(content) // mmap.PAGESIZE)))()
        start = ctypes.c_ubyte.from_buffer(content)
        try:
            found = ctypes.CDLL(None, use_errno=True).mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(len(content)), told)
        finally:
            del start
        assert found == 0
        return sum(entry & 1 for entry in told) / len(told)


def written(folder: Path, name: str, size: int) -> Path:
    path = folder / f"{name}.bin"
    path.write_bytes(np.random.default_rng(size).bytes(size))
    return path


def forgotten(path: Path) -> None:
    """Have the system let go of a file."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_all_of_a_large_file_is_in_memory_once_it_is_settled_and_as_it_was(tmp_path: Path) -> None:
    large, small = written(tmp_path, "large", 3 * LARGE + 1234), written(tmp_path, "small", 1000)
    before = large.read_bytes(), small.read_bytes()
    forgotten(large)
    forgotten(small)
    if resident(large) > 0.5:
        pytest.skip(f"{tmp_path} is in memory alone: the system lets go of nothing there")
    settle(tmp_path)
    assert resident(large) == 1.0
    assert resident(small) == 0.0, "what is small is read when it is needed"
    assert (large.read_bytes(), small.read_bytes()) == before


def test_maps_of_any_size_may_be_enlarged(tmp_path: Path) -> None:
    for size in (1, LARGE - 1, LARGE, 2 * LARGE + 1):
        path = written(tmp_path, str(size), size)
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            enlarge(content)
            assert content[:] == path.read_bytes()


def test_images_fit_where_they_leave_half_of_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [tmp_path / str(part) for part in range(3)]
    for folder in folders[:2]:
        folder.mkdir()
        written(folder, "some", 1000)
    monkeypatch.setattr(pages, "available_bytes", lambda: 4000)
    assert fit(folders)  # the third is not there
    monkeypatch.setattr(pages, "available_bytes", lambda: 3999)
    assert not fit(folders)
    assert fit(folders[:1])
    monkeypatch.setattr(pages, "available_bytes", lambda: None)
    assert not fit(folders)


def test_what_does_not_fit_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settled: list[Path] = []
    monkeypatch.setattr(pages, "settle", settled.append)
    written(tmp_path, "some", 1000)
    monkeypatch.setattr(pages, "available_bytes", lambda: 1999)
    settle_all([tmp_path])
    assert not settled
    monkeypatch.setattr(pages, "available_bytes", lambda: 2000)
    settle_all([tmp_path])
    assert settled == [tmp_path]
