"""The bounds-checking build of kernels: a registry of the memory that kernels may read.

Kernels index arrays without bounds checks, and read the arrays of partition images by address
(`asterism_graphkit.compile.jit.u64_at` and similar functions). With ``ASTERISM_CHECK_BOUNDS=1``
every kernel is compiled with Numba's bounds checks. Every read by address must then be inside one
array that was registered here; otherwise it raises IndexError. Checked kernels have a separate
cache and are several times slower: the switch is for tests.

`asterism_graphkit.compile.jit.addresses_of` registers its arrays for as long as they live. A kernel
that takes the address of an array registers it with `asterism_graphkit.compile.jit.register`, under
``if CHECK_BOUNDS:``, which leaves no code in the fast build.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Iterable
from itertools import count
from typing import Any

import numba
import numpy as np
from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

# Read from the environment: kernels are compiled before any settings are loaded.
CHECK_BOUNDS = os.environ.get("ASTERISM_CHECK_BOUNDS", "") == "1"  # noqa: TID251
"""True if kernels check every index and address."""
OUT_OF_BOUNDS = "a kernel read or wrote outside of its array"
"""Message of the IndexError of a checked kernel."""

_RING = 4096
"""Number of arrays most recently registered by kernels that are remembered.

This is for tests only: a check may fail because its entry was overwritten, but it never passes for
that reason.
"""
_KEPT = 256
"""Number of published tables kept alive for kernels that still search an older one."""
_READS, _NOTES = "asterism_extents_contain", "asterism_extents_note"
_I8, _I64 = ir.IntType(8), ir.IntType(64)


class ExtentTable:
    """Memory of live arrays, as a table that compiled code searches.

    Attributes
    ----------
    control : ndarray of uint64, shape (1,)
        Address of the current table: a count n, n starts (ascending) and n ends. Overlapping
        extents are joined.
    ring : ndarray of uint64, shape (1 + 2 * _RING,)
        A count, and the (start, end) pairs of the arrays that kernels registered last.
    """

    def __init__(self) -> None:
        self.control, self.ring = np.zeros(1, np.uint64), np.zeros(1 + 2 * _RING, np.uint64)
        self._lock = threading.RLock()  # a weak reference may die while another array is added
        self._live: dict[tuple[int, int], tuple[int, weakref.ref[Any]]] = {}
        self._tokens = count()
        self._tables: deque[NDArray[np.uint64]] = deque(maxlen=_KEPT)
        self._publish()

    def register(self, arrays: Iterable[NDArray[Any]]) -> None:
        """Register the memory of arrays until their owners are collected."""
        with self._lock:
            for array in arrays:
                if not array.size:
                    continue
                owner: Any = array
                while isinstance(owner.base, np.ndarray):
                    owner = owner.base
                extent = (array.ctypes.data, array.ctypes.data + array.nbytes)
                token = next(self._tokens)
                self._live[extent] = (
                    token,
                    weakref.ref(
                        owner,
                        lambda _, extent=extent, token=token: (  # type: ignore[misc]
                            self._drop(extent, token)
                        ),
                    ),
                )
            self._publish()

    def register_recent(self, start: int, size: int) -> None:
        """Register an array temporarily, as a kernel does."""
        with self._lock:
            slot = int(self.ring[0]) % _RING
            self.ring[1 + 2 * slot : 3 + 2 * slot] = start, start + size
            self.ring[0] += np.uint64(1)

    def contains(self, base: int, offset: int, size: int) -> bool:
        """Return whether ``size`` bytes at ``base + offset`` are in the array that has ``base``."""
        if size == 0:
            return True
        table = self._tables[-1]
        n = int(table[0])
        index = int(np.searchsorted(table[1 : n + 1], np.uint64(base), side="right")) - 1
        if index >= 0 and _inside(
            int(table[1 + index]), int(table[1 + n + index]), base, offset, size
        ):
            return True
        recent = self.ring[1:].reshape(-1, 2)
        matching = recent[(recent[:, 0] <= np.uint64(base)) & (np.uint64(base) < recent[:, 1])]
        return any(_inside(int(start), int(end), base, offset, size) for start, end in matching)

    def _drop(self, extent: tuple[int, int], token: int) -> None:
        with self._lock:
            if self._live.get(extent, (-1, None))[0] == token:
                del self._live[extent]

    def _publish(self) -> None:
        extents = np.array(sorted(self._live), np.uint64).reshape(-1, 2)
        if len(extents):
            max_end = np.maximum.accumulate(extents[:, 1])
            is_first = np.r_[True, extents[1:, 0] >= max_end[:-1]]
            is_last = np.r_[is_first[1:], True]
            extents = np.stack([extents[is_first, 0], max_end[is_last]], axis=1)
        table = np.concatenate([[np.uint64(len(extents))], extents[:, 0], extents[:, 1]]).astype(
            np.uint64
        )
        self._tables.append(table)
        self.control[0] = table.ctypes.data


def _inside(start: int, end: int, base: int, offset: int, size: int) -> bool:
    return start <= base < end and start <= base + offset and base + offset + size <= end


EXTENTS = ExtentTable()
"""Registry of this process; empty in the fast build."""


def emit_bounds_check(context: Any, builder: Any, base: Any, offset: Any, size: Any) -> None:
    """Emit a check that ``size`` bytes at ``base + offset`` are in the array of ``base``.

    The array must be registered.
    """
    function_type = ir.FunctionType(_I8, [_I64, _I64, _I64])
    contain_function = _insert_function(builder, function_type, _READS)
    emit_check(
        context,
        builder,
        builder.icmp_unsigned(
            "!=", builder.call(contain_function, [base, offset, size]), ir.Constant(_I8, 0)
        ),
    )


def _insert_function(builder: Any, function_type: Any, name: str) -> Any:
    """Declare a function of this process in the module that is being built."""
    insert: Any = cgutils.get_or_insert_function
    return insert(builder.module, function_type, name)


def emit_check(context: Any, builder: Any, condition: Any) -> None:
    """Emit code that raises IndexError if a condition is false."""
    with builder.if_then(builder.not_(condition), likely=False):
        context.call_conv.return_user_exc(builder, IndexError, (OUT_OF_BOUNDS,))


def emit_registration(builder: Any, start: Any, size: Any) -> None:
    """Emit the temporary registration of an array."""
    function_type = ir.FunctionType(_I8, [_I64, _I64])
    note_function = _insert_function(builder, function_type, _NOTES)
    builder.call(note_function, [start, size])


if CHECK_BOUNDS and not vars(config)["DISABLE_JIT"]:

    def _pointer(builder: Any, address: Any, index: Any) -> Any:
        return builder.gep(builder.inttoptr(address, _I64.as_pointer()), [index])

    @intrinsic
    def _load(typingctx: Any, address: Any, index: Any) -> Any:
        """Return word ``index`` of an array at an address."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load(_pointer(builder, *args))

        return types.uint64(types.uint64, types.int64), codegen

    @intrinsic
    def _store(typingctx: Any, address: Any, index: Any, value: Any) -> Any:
        """Write word ``index`` of an array at an address."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store(args[2], _pointer(builder, args[0], args[1]))
            return context.get_dummy_value()

        return types.void(types.uint64, types.int64, types.uint64), codegen

    _CONTROL, _LAST = np.uint64(EXTENTS.control.ctypes.data), np.uint64(EXTENTS.ring.ctypes.data)
    _NONE, _ONE, _SLOTS = np.int64(0), np.int64(1), np.int64(_RING)

    @numba.njit
    def _within(start: Any, end: Any, base: Any, offset: Any, size: Any) -> Any:
        first = np.int64(base - start) + offset
        return (
            start <= base
            and base < end
            and first >= 0
            and np.uint64(first) + np.uint64(size) <= end - start
        )

    @numba.cfunc("uint8(uint64, int64, int64)")
    def _contain(base: Any, offset: Any, size: Any) -> Any:
        if size == 0:
            return np.uint8(1)
        if size < 0:
            return np.uint8(0)
        # Numba passes the typing context.
        table = _load(_CONTROL, _NONE)  # type: ignore[call-arg,var-annotated]
        n = np.int64(_load(table, _NONE))
        low, high = np.int64(0), n
        while low < high:
            middle = (low + high) >> 1
            if _load(table, _ONE + middle) <= base:
                low = middle + 1
            else:
                high = middle
        if low > 0 and _within(_load(table, low), _load(table, n + low), base, offset, size):
            return np.uint8(1)
        record_count = np.int64(_load(_LAST, _NONE))
        for age in range(min(record_count, _SLOTS)):
            slot = _ONE + 2 * ((record_count - 1 - age) % _SLOTS)
            if _within(_load(_LAST, slot), _load(_LAST, slot + _ONE), base, offset, size):
                return np.uint8(1)
        return np.uint8(0)

    @numba.cfunc("uint8(uint64, int64)")
    def _note(start: Any, size: Any) -> Any:
        # Kernels of several threads may write the same slot. One registration is then lost, and its
        # check fails. Tests run one at a time.
        record_count = np.int64(_load(_LAST, _NONE))  # type: ignore[call-arg]
        slot = _ONE + 2 * (record_count % _SLOTS)
        if record_count > 0:
            previous = _ONE + 2 * ((record_count - 1) % _SLOTS)
            if _load(_LAST, previous) == start and _load(
                _LAST, previous + _ONE
            ) == start + np.uint64(size):
                return np.uint8(1)
        _store(_LAST, slot, start)
        _store(_LAST, slot + _ONE, start + np.uint64(size))
        _store(_LAST, _NONE, np.uint64(record_count + 1))
        return np.uint8(1)

    binding.add_symbol(_READS, _contain.address)
    binding.add_symbol(_NOTES, _note.address)
