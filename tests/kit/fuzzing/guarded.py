"""Versions whose arrays end, or begin, at a protected page: a kernel that reads outside of one gets SIGSEGV.

For child processes only: the parent reads the exit status and the request that was stored last.
"""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storaged.draw.version import Version

_PROT_NONE, _PROT_READ = 0, 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_KEPT: list[mmap.mmap] = []
"""Mappings are never unmapped: freed addresses could be reused, and reads of them would then pass."""


def guarded_array(array: NDArray[Any], *, before: bool = False) -> NDArray[Any]:
    """Copy an array to where its last byte is followed by a protected page, or, ``before``, its first byte follows one.

    Parameters
    ----------
    array : ndarray
    before : bool

    Returns
    -------
    ndarray
        Read-only, of the same dtype and shape. The page begins right after the last byte even if that is not aligned.
    """
    if not array.nbytes:
        return array
    page = mmap.PAGESIZE
    room = -(-array.nbytes // page) * page
    mapping = mmap.mmap(-1, room + page)
    _KEPT.append(mapping)
    start = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    data = page if before else room - array.nbytes
    mapping[data : data + array.nbytes] = np.ascontiguousarray(array).tobytes()
    guard, pages = (start, start + page) if before else (start + room, start)
    for address, size, protection in ((guard, page, _PROT_NONE), (pages, room, _PROT_READ)):
        if _LIBC.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), protection):
            raise OSError(ctypes.get_errno(), "mprotect")
    return np.frombuffer(mapping, array.dtype, array.size, data).reshape(array.shape)


def guarded(version: Version, *, before: bool = False) -> Version:
    """Return a version with every array of its images at a protected page."""
    return replace(version, parts={part: _guarded(image, before) for part, image in version.parts.items()})


def _guarded(record: Any, before: bool) -> Any:
    if isinstance(record, np.ndarray):
        return guarded_array(record, before=before)
    if isinstance(record, tuple):
        return tuple(_guarded(item, before) for item in record)
    if isinstance(record, dict):
        return {name: _guarded(item, before) for name, item in record.items()}
    if is_dataclass(record) and not isinstance(record, type):
        return replace(record, **{f.name: _guarded(getattr(record, f.name), before) for f in fields(record) if f.init})
    return record
