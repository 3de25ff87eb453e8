"""Tests of images in huge pages: the requests to the system, and their time."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.images import Edges, Nodes, restrict_to_parts, version_of

from asterism_model.schema import EdgeType, NodeType, Schema
from storaged import sampling
from storaged.kernels import adjacency_rows
from storaged.sampling import node_lookup
from storaged.store import huge_pages
from storaged.store.huge_pages import (
    HUGE_PAGE_BYTES,
    advise_huge_pages,
    copy_together,
    fits_memory,
    reload_images,
    reload_into_huge_pages,
)


def resident_share(path: Path) -> float:
    """Return the share of a file's pages in memory."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE) as content:
        page_flags = (ctypes.c_ubyte * (-(-len(content) // mmap.PAGESIZE)))()
        start = ctypes.c_ubyte.from_buffer(content)
        try:
            status = ctypes.CDLL(None, use_errno=True).mincore(
                ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(len(content)), page_flags
            )
        finally:
            del start
        assert status == 0
        return sum(entry & 1 for entry in page_flags) / len(page_flags)


def write_file(folder: Path, name: str, size: int) -> Path:
    path = folder / f"{name}.bin"
    path.write_bytes(np.random.default_rng(size).bytes(size))
    return path


def evict(path: Path) -> None:
    """Evict a file from the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_reloaded_large_file_is_in_memory_and_unchanged(tmp_path: Path) -> None:
    large, small = (
        write_file(tmp_path, "large", 3 * HUGE_PAGE_BYTES + 1234),
        write_file(tmp_path, "small", 1000),
    )
    before = large.read_bytes(), small.read_bytes()
    evict(large)
    evict(small)
    if resident_share(large) > 0.5:
        pytest.skip(f"{tmp_path} is in memory alone: the system lets go of nothing there")
    reload_into_huge_pages(tmp_path)
    assert resident_share(large) == 1.0
    assert resident_share(small) == 0.0, "what is small is read when it is needed"
    assert (large.read_bytes(), small.read_bytes()) == before


def test_maps_of_any_size_accept_huge_pages(tmp_path: Path) -> None:
    for size in (1, HUGE_PAGE_BYTES - 1, HUGE_PAGE_BYTES, 2 * HUGE_PAGE_BYTES + 1):
        path = write_file(tmp_path, str(size), size)
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            advise_huge_pages(content)
            assert content[:] == path.read_bytes()


def test_images_fit_where_they_leave_half_of_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / str(part) for part in range(3)]
    for folder in folders[:2]:
        folder.mkdir()
        write_file(folder, "some", 1000)
    monkeypatch.setattr(huge_pages, "available_bytes", lambda: 4000)
    assert fits_memory(folders)  # the third folder does not exist
    monkeypatch.setattr(huge_pages, "available_bytes", lambda: 3999)
    assert not fits_memory(folders)
    assert fits_memory(folders[:1])
    monkeypatch.setattr(huge_pages, "available_bytes", lambda: None)
    assert not fits_memory(folders)


def test_images_that_do_not_fit_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reloaded: list[Path] = []
    monkeypatch.setattr(huge_pages, "reload_into_huge_pages", reloaded.append)
    write_file(tmp_path, "some", 1000)
    monkeypatch.setattr(huge_pages, "available_bytes", lambda: 1999)
    reload_images([tmp_path])
    assert not reloaded
    monkeypatch.setattr(huge_pages, "available_bytes", lambda: 2000)
    reload_images([tmp_path])
    assert reloaded == [tmp_path]


@pytest.mark.parametrize("held", [(0, 1, 2), (0, 2)])
def test_draws_do_not_depend_on_where_indptr_is_stored(
    monkeypatch: pytest.MonkeyPatch, held: tuple[int, ...]
) -> None:
    random = np.random.default_rng(1)
    schema = Schema(
        node_types=(NodeType(name="n"),),
        edge_types=tuple(
            EdgeType(src_type="n", relation=name, dst_type="n", weighted=True)
            for name in ("e", "f")
        ),
        parts=3,
        direction="both",
    )
    edges = {
        f"n:{name}:n": Edges(
            src=random.integers(0, 50, 400),
            dst=random.integers(0, 50, 400),
            weights=random.random(400, np.float32),
        )
        for name in ("e", "f")
    }
    full_version = version_of(schema, {"n": Nodes(ids=np.arange(50))}, edges)
    nodes = np.array([node for node in range(60) if node % 3 in held])

    def tables_and_samples(version: sampling.LocalVersion) -> list[np.ndarray[Any, Any]]:
        tables = [
            node_lookup.address_table(version, edge_type, direction)[
                list(held), adjacency_rows.INDPTR
            ]
            for edge_type in (0, 1)
            for direction in (1, 2)
        ]
        options = {
            "edge_types": [0, 1],
            "node_type": 0,
            "ids": nodes,
            "positions": nodes,
            "count": 7,
            "uniform": False,
            "seed": 5,
            "hop": 0,
        }
        flags = {"want_weights": False, "want_edge_ids": False}
        samples = [
            sampling.sample_neighbors(
                version, direction=direction, replace=replace, **options, **flags
            )
            for direction in (1, 2)
            for replace in (False, True)
        ]
        return [np.concatenate(tables), *(sample.ids for sample in samples)]

    mapped = tables_and_samples(restrict_to_parts(full_version, held))
    monkeypatch.setattr(huge_pages, "_MIN_COPY", 1)
    copied = tables_and_samples(restrict_to_parts(full_version, held))
    assert not (mapped[0] == copied[0]).any()
    assert all((one == other).all() for one, other in zip(mapped[1:], copied[1:], strict=True))


def test_small_arrays_are_packed_into_huge_pages() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 99, size) for size in (200_000, 1, 130_001, 220_000)]
    copies = copy_together(arrays)
    assert all(
        (copy == array).all() and copy.dtype == array.dtype
        for copy, array in zip(copies, arrays, strict=True)
    )
    assert not any(
        copy.flags.writeable or np.may_share_memory(copy, array)
        for copy, array in zip(copies, arrays, strict=True)
    )
    addresses = [copy.ctypes.data for copy in copies]
    assert (
        addresses[3] + arrays[3].nbytes - addresses[0]
        < sum(array.nbytes for array in arrays) + 4 * 64
    )
    assert not any(address % 64 for address in addresses)


@pytest.mark.parametrize(
    "sizes",
    [(1000, 2000), (300_000, 300_000), (200_000,) * 30, ()],
    ids=["few", "large ones", "too many", "none"],
)
def test_arrays_stay_in_place_where_nothing_is_gained(sizes: tuple[int, ...]) -> None:
    arrays = [np.zeros(size, np.int64) for size in sizes]
    assert copy_together(arrays) is arrays
