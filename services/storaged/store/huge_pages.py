"""Images in huge pages of memory, if the system has them for files and images fit.

Random reads then wait for the data only, and not for the translation of its address.
"""

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
"""Bytes of a huge page, also the smallest file that is advised; and bytes per read."""
_MIN_COPY, _MAX_COPY = 1 << 22, 1 << 25
"""Bytes of small arrays together that are worth a copy, and the largest copy allowed."""
_CACHE_LINE = 64
"""Bytes of a cache line, to which each array is aligned."""
_MEMORY_SHARE = 2
"""Factor by which the available memory must exceed an image for huge pages."""
_POPULATE_READ = 22
"""MADV_POPULATE_READ of Linux 5.14 and later, which Python does not name.

It reads all pages of a mapping now, and reports a failing disk as an error.
"""


def fits_memory(folders: Iterable[Path]) -> bool:
    """Return whether these images take at most half of the available memory.

    Returns False if the available memory is unknown. Images that do not fit are better read in
    small pages.
    """
    return image_bytes(folders) * _MEMORY_SHARE <= (available_bytes() or -1)


def image_bytes(folders: Iterable[Path]) -> int:
    """Return the size of the arrays of these images in bytes."""
    return sum(path.stat().st_size for folder in folders for path in folder.glob("*.bin"))


def advise_huge_pages(content: mmap.mmap) -> None:
    """Advise huge pages for the mapping of a file; ignored by systems without them."""
    if len(content) >= HUGE_PAGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            content.madvise(mmap.MADV_HUGEPAGE)


def copy_together(arrays: Sequence[NDArray[Any]]) -> Sequence[NDArray[Any]]:
    """Copy arrays that are too small for huge pages into one block of memory with huge pages.

    Returns the same arrays if a copy is not worthwhile.
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
    """Read the files of a newly written image, which are in small pages, into huge ones.

    Existing mappings stay as they are. A failure has no effect.
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
                    # The page stays in the page cache, but no longer counts as process memory.
                    content.madvise(mmap.MADV_DONTNEED, *piece)


def reload_images(folders: Sequence[Path]) -> None:
    """Call `reload_into_huge_pages` for newly written images, if they fit into memory."""
    if fits_memory(folders):
        for folder in folders:
            reload_into_huge_pages(folder)
