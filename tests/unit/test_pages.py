"""Images in large pages of memory: what is asked of the system, and when."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.images import Edges, Nodes, hosted, version_of

from asterism_proto.schema import EdgeType, NodeType, Schema
from storaged import draw
from storaged.draw import lookup
from storaged.kernel import table
from storaged.store import pages
from storaged.store.pages import LARGE, enlarge, fit, settle, settle_all, together


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


@pytest.mark.parametrize("held", [(0, 1, 2), (0, 2)])
def test_draws_are_the_same_wherever_it_lies_where_rows_begin(monkeypatch: pytest.MonkeyPatch, held: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    schema = Schema(
        node_types=(NodeType(name="n"),),
        edge_types=tuple(EdgeType(src_type="n", relation=name, dst_type="n", weighted=True) for name in ("e", "f")),
        parts=3,
        direction="both",
    )
    edges = {
        f"n:{name}:n": Edges(src=random.integers(0, 50, 400), dst=random.integers(0, 50, 400), weights=random.random(400, np.float32))
        for name in ("e", "f")
    }
    whole = version_of(schema, {"n": Nodes(ids=np.arange(50))}, edges)
    nodes = np.array([node for node in range(60) if node % 3 in held])

    def told(version: draw.Version) -> list[np.ndarray[Any, Any]]:
        tables = [lookup.table_of(version, edge_type, direction)[list(held), table.INDPTR] for edge_type in (0, 1) for direction in (1, 2)]
        how = {"edge_types": [0, 1], "node_type": 0, "ids": nodes, "positions": nodes, "count": 7, "uniform": False, "seed": 5, "hop": 0}
        more = {"want_weights": False, "want_edge_ids": False}
        drawn = [draw.neighbors(version, direction=direction, replace=replace, **how, **more) for direction in (1, 2) for replace in (False, True)]
        return [np.concatenate(tables), *(found.ids for found in drawn)]

    mapped = told(hosted(whole, held))
    monkeypatch.setattr(pages, "_LEAST", 1)
    beside = told(hosted(whole, held))
    assert not (mapped[0] == beside[0]).any()
    assert all((one == other).all() for one, other in zip(mapped[1:], beside[1:], strict=True))


def test_small_arrays_lie_together_where_that_fills_large_pages() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 99, size) for size in (200_000, 1, 130_001, 220_000)]
    copies = together(arrays)
    assert all((copy == array).all() and copy.dtype == array.dtype for copy, array in zip(copies, arrays, strict=True))
    assert not any(copy.flags.writeable or np.may_share_memory(copy, array) for copy, array in zip(copies, arrays, strict=True))
    places = [copy.ctypes.data for copy in copies]
    assert places[3] + arrays[3].nbytes - places[0] < sum(array.nbytes for array in arrays) + 4 * 64
    assert not any(place % 64 for place in places)


@pytest.mark.parametrize("sizes", [(1000, 2000), (300_000, 300_000), (200_000,) * 30, ()], ids=["few", "large ones", "too many", "none"])
def test_arrays_stay_where_they_are_where_nothing_is_gained(sizes: tuple[int, ...]) -> None:
    arrays = [np.zeros(size, np.int64) for size in sizes]
    assert together(arrays) is arrays
