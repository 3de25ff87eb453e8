"""Versions with arrays next to a protected page: out-of-bounds reads raise SIGSEGV.

For child processes only: the parent reads the exit status and the request that was stored last.
"""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storaged.sampling.version import LocalVersion

_PROT_NONE, _PROT_READ = 0, 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_MAPPINGS: list[mmap.mmap] = []
"""Mappings, which are never unmapped: reads of reused addresses would pass."""


def guarded_array(array: NDArray[Any], *, before: bool = False) -> NDArray[Any]:
    """Copy an array so that a protected page follows its last byte.

    With ``before``, the page precedes its first byte.

    Parameters
    ----------
    array : ndarray
    before : bool

    Returns
    -------
    ndarray
        Read-only, of the same dtype and shape. The page begins right after the last byte even if
        that is not aligned.
    """
    if not array.nbytes:
        return array
    page = mmap.PAGESIZE
    capacity = -(-array.nbytes // page) * page
    mapping = mmap.mmap(-1, capacity + page)
    _MAPPINGS.append(mapping)
    start = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    data = page if before else capacity - array.nbytes
    mapping[data : data + array.nbytes] = np.ascontiguousarray(array).tobytes()
    guard, pages = (start, start + page) if before else (start + capacity, start)
    for address, size, protection in ((guard, page, _PROT_NONE), (pages, capacity, _PROT_READ)):
        if _LIBC.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), protection):
            raise OSError(ctypes.get_errno(), "mprotect")
    return np.frombuffer(mapping, array.dtype, array.size, data).reshape(array.shape)


def guard_version(version: LocalVersion, *, before: bool = False) -> LocalVersion:
    """Return a version with every array of its images next to a protected page."""
    return replace(
        version, parts={part: _guard_record(image, before) for part, image in version.parts.items()}
    )


def _guard_record(record: Any, before: bool) -> Any:
    if isinstance(record, np.ndarray):
        return guarded_array(record, before=before)
    if isinstance(record, tuple):
        return tuple(_guard_record(item, before) for item in record)
    if isinstance(record, dict):
        return {name: _guard_record(item, before) for name, item in record.items()}
    if is_dataclass(record) and not isinstance(record, type):
        return replace(
            record,
            **{
                f.name: _guard_record(getattr(record, f.name), before)
                for f in fields(record)
                if f.init
            },
        )
    return record
