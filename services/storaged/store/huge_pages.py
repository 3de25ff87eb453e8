"""Images in large pages of memory, where the system has them for files and all of an image fits:
reads at random then wait for the bytes alone, and not for where these are."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_io.available_memory import available_bytes

HUGE_PAGE_BYTES, _READ_BYTES = 1 << 21, 1 << 26
"""Bytes of a large page, which are also those of the least file that they are asked for; and bytes
that are read in one go.
"""
_MIN_COPY, _MAX_COPY = 1 << 22, 1 << 25
"""Bytes of small arrays together that are worth copying, and that there is room for."""
_CACHE_LINE = 64
"""Bytes of a cache line, where each array begins."""
_MEMORY_SHARE = 2
"""An image is brought into large pages where it has no more than one in so many bytes of memory."""
_POPULATE_READ = 22
"""Of Linux 5.14 and later, where Python has no name for it: read all pages of a map now, and tell
of a disk that fails by an error.
"""


def fits_memory(folders: Iterable[Path]) -> bool:
    """Whether the files of these images leave half of the memory that is to be had to others; False
    where nobody says how much that is.

    Where they do not, what is read is better read in small pages.
    """
    return image_bytes(folders) * _MEMORY_SHARE <= (available_bytes() or -1)


def image_bytes(folders: Iterable[Path]) -> int:
    """Return the bytes of the arrays of these images."""
    return sum(path.stat().st_size for folder in folders for path in folder.glob("*.bin"))


def advise_huge_pages(content: mmap.mmap) -> None:
    """Ask for large pages under a map of a file; a system that has none does not mind."""
    if len(content) >= HUGE_PAGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            content.madvise(mmap.MADV_HUGEPAGE)


def copy_together(arrays: Sequence[NDArray[Any]]) -> Sequence[NDArray[Any]]:
    """Arrays of files that are too small for large pages, copied side by side into memory that has
    them; the same where that is not worth it.
    """
    size = sum(-(-array.nbytes // _CACHE_LINE) * _CACHE_LINE for array in arrays)
    if (
        not hasattr(mmap, "MADV_HUGEPAGE")
        or not _MIN_COPY <= size <= _MAX_COPY
        or any(array.nbytes >= HUGE_PAGE_BYTES for array in arrays)
    ):
        return arrays
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    advise_huge_pages(memory)
    out, offset = [], 0
    for array in arrays:
        copy = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
        copy[...] = array
        out.append(as_kernel_array(copy))
        offset += -(-array.nbytes // _CACHE_LINE) * _CACHE_LINE
    return out


def reload_into_huge_pages(folder: Path) -> None:
    """Have the files of an image that was written just now read into large pages: it is in small
    ones, as it was written.

    What somebody has mapped stays as it is. Nothing else is changed by it, whatever fails.
    """
    if not hasattr(os, "posix_fadvise"):
        return
    for path in sorted(folder.glob("*.bin")):
        with suppress(OSError), path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < HUGE_PAGE_BYTES:
                continue
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                advise_huge_pages(content)
                for start in range(0, len(content), _READ_BYTES):
                    piece = start, min(_READ_BYTES, len(content) - start)
                    content.madvise(_POPULATE_READ, *piece)
                    content.madvise(
                        mmap.MADV_DONTNEED, *piece
                    )  # it stays in memory, and counts as nobody's


def reload_images(folders: Sequence[Path]) -> None:
    """`reload_into_huge_pages` images that were written just now, where they fit."""
    if fits_memory(folders):
        for folder in folders:
            reload_into_huge_pages(folder)
