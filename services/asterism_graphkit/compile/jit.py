"""Compile kernels with Numba, and read memory by address.

Every kernel also runs as plain Python under ``NUMBA_DISABLE_JIT=1``, where intrinsics are their
Python twins. `asterism_graphkit.compile.simd` has vector instructions.

A kernel takes ``(tables, params, inputs..., outputs...)``. Tables hold the *addresses* of arrays
(`addresses_of`) where one call goes over all parts of a version: `u64_at` and its like read them,
no bound is checked, and the caller keeps the arrays alive. Scalars are one NamedTuple, and so are
arrays that travel together. A kernel unpacks such a tuple once, or hands it to a step that is
`inlined`, where it costs nothing. Names of these classes are unique: Numba's dispatcher knows them
by the names of class and fields alone.

With ``ASTERISM_CHECK_BOUNDS=1`` kernels are compiled with bounds checks, and reads by address are
checked too (`asterism_graphkit.extents`). That build has files of its own in the caches."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.core.caching import IndexDataCacheFile
from numba.core.cgutils import raw_memcpy
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray

from asterism_graphkit.extents import CHECK_BOUNDS as CHECK_BOUNDS
from asterism_graphkit.extents import EXTENTS, OUT_OF_BOUNDS, emit_bounds_check, emit_registration

P = ParamSpec("P")
R = TypeVar("R")

IntLike: TypeAlias = "int | np.integer[Any]"
"""A whole number as kernels pass it on: of NumPy's where a type matters, Python's where it does
not.
"""

INTERPRETED = bool(vars(config)["DISABLE_JIT"])
"""Whether kernels run as plain Python: ``NUMBA_DISABLE_JIT=1``."""

STOP_CHECK_STEPS = 1 << 12
"""Steps of a loop between two looks at its stop flag: some ten microseconds."""
STOP_CHECK_MASK = STOP_CHECK_STEPS - 1
"""Low bits of a loop's counter that say when it looks at its stop flag."""
_CHECKS: dict[str, Any] = {"boundscheck": True} if CHECK_BOUNDS else {}
_SUFFIX = "-checked" if CHECK_BOUNDS else ""
"""Of the names of cached files: neither build reads, lists or removes those of the other."""
_LOCK_LOOK_S, _LOCK_LOOKS = 0.02, 6000
"""Two minutes: longer than any kernel takes to compile beside others. Then it is compiled twice."""


def kernel(fn: Callable[P, R]) -> Callable[P, R]:
    """Compile ``fn`` without the GIL, cached on disk; its type stays.

    Compiled code is wrap-around uint64 arithmetic; as plain Python the same overflow would warn, so
    it is silenced."""
    if INTERPRETED:
        return np.errstate(over="ignore")(fn)
    return _with_content_key(
        numba.njit(cache=True, nogil=True, error_model="numpy", **_CHECKS)(fn), fn
    )


def kernel_holding_gil(fn: Callable[P, R]) -> Callable[P, R]:
    """As `kernel`, for what takes no longer than to let go of the GIL and to get it back: it holds
    it.
    """
    if INTERPRETED:
        return np.errstate(over="ignore")(fn)
    return _with_content_key(numba.njit(cache=True, error_model="numpy", **_CHECKS)(fn), fn)


def inlined(fn: Callable[P, R]) -> Callable[P, R]:
    """As `kernel`, for a step that other kernels call, in their innermost loop for example; it
    makes no array.

    Steps count no references to the arrays that they are given, by themselves or in tuples: the
    caller holds these. Counting, which LLVM does not always remove, costs some nanoseconds an
    array and call."""
    if INTERPRETED:
        return np.errstate(over="ignore")(fn)
    options: dict[str, Any] = {
        "cache": True,
        "nogil": True,
        "error_model": "numpy",
        "inline": "never",
        "forceinline": True,
        "_nrt": CHECK_BOUNDS,
    }
    return _with_content_key(numba.njit(**options, **_CHECKS)(fn), fn)


def _with_content_key(compiled: Any, fn: Callable[P, R]) -> Callable[P, R]:
    """Key the cached code of a kernel by the content of the sources that it was compiled from.

    Numba keys it by the modification time of the kernel's own file. Steps and constants that are
    compiled in lie elsewhere in that file's subpackage (two levels deep: ``storaged.kernels``), or
    in this package; and by content a copied checkout, or an image that was built elsewhere, can use
    the compiled code as it is."""
    cache = compiled._cache
    path, depth = Path(fn.__code__.co_filename), fn.__module__.count(".")
    stamp = (
        _source_digest(path.parents[depth - 2], "**/*.py")
        if depth > 1
        else _source_digest(path.parent, "*.py")
    )
    files = CompiledFiles(cache.cache_path, cache._impl.filename_base + _SUFFIX, stamp)  # type: ignore[no-untyped-call]
    cache._cache_file = files
    original_compile = compiled.compile

    def compile_once(signature: Any) -> Any:
        with global_compiler_lock:  # no other thread of this process is in `files` meanwhile
            try:
                return original_compile(signature)
            finally:
                files.unlock()

    compiled.compile = compile_once
    dispatcher: Callable[P, R] = compiled
    return dispatcher


class CompiledFiles(IndexDataCacheFile):
    """Cached code of one kernel, shared by processes that may compile it at the same time.

    A process that finds a signature missing locks the kernel until it has compiled and listed it.
    Others that miss one of the same kernel wait, then look again: each signature is compiled by one
    process, and none is lost from the list.

    Numba numbers its files, and lists one before it is written: processes that start together may
    give one number to two signatures, and one may run what a number held before, of other types or
    of older steps. Here a file is named after what it holds, and listed once it is there."""

    _lock: int | None = None
    """Descriptor of the lock file while the lock is held."""

    def load(self, key: Any) -> Any:
        """Return compiled code; None where there is none, and this process is the one to compile
        it.
        """
        data = super().load(key)  # type: ignore[no-untyped-call]
        if data is None and self._lock is None and self._take_lock():
            data = super().load(key)  # type: ignore[no-untyped-call]
        return data

    def unlock(self) -> None:
        """Let other processes look again, where this one holds the lock."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take_lock(self) -> bool:
        """Lock the kernel; False where that is not possible, or another process keeps it for too
        long: it may be stopped.
        """
        try:
            os.makedirs(self._cache_path, exist_ok=True)
            lock = os.open(f"{self._index_path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            return False
        pause = threading.Event()
        for _ in range(_LOCK_LOOKS):
            try:
                fcntl.lockf(
                    lock, fcntl.LOCK_EX | fcntl.LOCK_NB
                )  # unlike flock's, a forked process does not inherit it
            except BlockingIOError:
                pause.wait(_LOCK_LOOK_S)
            except OSError:  # the file system has no locks
                break
            else:
                self._lock = lock
                return True
        os.close(lock)
        return False

    def save(self, key: Any, data: Any) -> None:
        """Write compiled code, then list it; what is listed no more goes."""
        identity = repr((self._version, self._source_stamp, key)).encode()
        digest = hashlib.sha256(identity).hexdigest()[:16]
        name = f"{Path(self._index_path).stem}.{digest}.nbc"
        # Numba's own, as the two below.
        self._save_data(name, data)  # type: ignore[no-untyped-call]
        entries = {**self._load_index(), key: name}  # type: ignore[no-untyped-call]
        self._save_index(entries)  # type: ignore[no-untyped-call]
        for path in Path(self._cache_path).glob(f"{Path(self._index_path).stem}.*.nbc"):
            if path.name not in entries.values():
                path.unlink(missing_ok=True)


@cache
def _source_digest(folder: Path, pattern: str) -> bytes:
    """Return a digest of the sources under a folder that match a pattern, and of this package's."""
    digest = hashlib.sha256()
    for root, glob in ((folder, pattern), (Path(__file__).parents[1], "**/*.py")):
        for path in sorted(root.glob(glob)):
            name = path.relative_to(root).as_posix().encode()
            digest.update(name + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()


def as_kernel_array(array: NDArray[Any]) -> NDArray[Any]:
    """``array`` as a contiguous, aligned, read-only plain ndarray: the one type that kernels are
    compiled for.

    Numba compiles anew for every mix of writable and read-only arguments, and takes long to type a
    ``np.memmap``."""
    plain = np.ascontiguousarray(array).view()
    if not plain.flags.aligned:
        plain = plain.copy()
    plain.flags.writeable = False
    return plain


def addresses_of(arrays: Iterable[NDArray[Any]]) -> NDArray[np.uint64]:
    """uint64[n], read-only: where the values of each array begin; 0 for an empty one."""
    if CHECK_BOUNDS:
        arrays = list(arrays)
        EXTENTS.register(arrays)
    return as_kernel_array(
        np.array([array.ctypes.data if array.size else 0 for array in arrays], np.uint64)
    )


if INTERPRETED:

    def mulhi(a: np.uint64, b: np.uint64) -> np.uint64:
        """The high 64 bits of the 128-bit product of two uint64."""
        return np.uint64((int(a) * int(b)) >> 64)

    def prefetch(array: Any, index: Any) -> None:
        """Ask for the cache line of ``array[index]``; a hint that plain Python has no use for."""

    def view_at(address: Any, size: Any, like: NDArray[Any]) -> NDArray[Any]:
        """The array of ``size`` elements of ``like``'s dtype at an address, read-only; somebody
        must keep it alive.
        """
        if not size:
            return like[:0]
        _require(address, 0, int(size) * like.itemsize)
        raw = (ctypes.c_byte * (int(size) * like.itemsize)).from_address(int(address))
        view = np.frombuffer(memoryview(raw).cast("B"), like.dtype)
        view.flags.writeable = False
        return view

    def prefetch_at(address: Any) -> None:
        """Ask for the cache line at an address; likewise."""

    def copy_at(target: Any, source: Any, size: Any) -> None:
        """Copy ``size`` bytes from an address to another; the two do not overlap."""
        _require(source, 0, size)
        _require(target, 0, size)
        ctypes.memmove(int(target), int(source), int(size))

    def is_set(flag: NDArray[np.int64]) -> bool:
        """Return whether the first value of an array is not 0; another thread may set it at any
        time.
        """
        return bool(flag[0] != 0)

    def register(array: NDArray[Any]) -> None:
        """Register an array whose address a kernel takes itself, where addresses are checked."""
        EXTENTS.register_recent(array.ctypes.data, array.nbytes)

    def register_at(address: Any, size: Any) -> None:
        """Register ``size`` bytes at an address: of a constant array, of which every mention in
        compiled code may be a copy.
        """
        EXTENTS.register_recent(int(address), int(size))

    def _require(base: Any, offset: Any, size: Any) -> None:
        if CHECK_BOUNDS and not EXTENTS.contains(int(base), int(offset), int(size)):
            raise IndexError(OUT_OF_BOUNDS)

    def _reader(kind: Any, ctype: Any, dtype: Any) -> Any:
        width = ctypes.sizeof(ctype)

        def read(address: Any, index: Any) -> Any:
            _require(address, width * int(index), width)
            return dtype(ctype.from_address(int(address) + width * int(index)).value)

        return read

else:

    @intrinsic
    def mulhi(typingctx: Any, a: Any, b: Any) -> Any:
        """The high 64 bits of the 128-bit product of two uint64."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            wide = ir.IntType(128)
            product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
            return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

        return types.uint64(types.uint64, types.uint64), codegen

    @intrinsic
    def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
        """Ask for the cache line of ``array[index]`` (one-dimensional, contiguous) before it is
        read.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array_type = signature.args[0]
            struct = context.make_array(array_type)(context, builder, args[0])
            at = context.cast(builder, args[1], signature.args[1], types.intp)
            pointer = builder.gep(struct.data, [at])
            byte = ir.IntType(8).as_pointer()
            flag = ir.IntType(32)
            fn = builder.module.declare_intrinsic(
                "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
            )
            builder.call(
                fn,
                [
                    builder.bitcast(pointer, byte),
                    ir.Constant(flag, 0),
                    ir.Constant(flag, 3),
                    ir.Constant(flag, 1),
                ],
            )
            return context.get_dummy_value()

        return types.void(array, index), codegen

    @intrinsic
    def view_at(typingctx: Any, address: Any, size: Any, like: Any) -> Any:
        """The array of ``size`` elements of ``like``'s dtype at an address, read-only; somebody
        must keep it alive.
        """
        view_type = types.Array(like.dtype, 1, "C", readonly=True)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(view_type)(context, builder)
            element = context.get_data_type(view_type.dtype)
            width = context.get_constant(types.intp, context.get_abi_sizeof(element))
            at = builder.inttoptr(
                context.cast(builder, args[0], signature.args[0], types.intp), element.as_pointer()
            )
            count = context.cast(builder, args[1], signature.args[1], types.intp)
            if CHECK_BOUNDS:
                base = builder.ptrtoint(at, ir.IntType(64))
                emit_bounds_check(
                    context,
                    builder,
                    base,
                    ir.Constant(ir.IntType(64), 0),
                    builder.mul(count, width),
                )
            populate_array(  # type: ignore[no-untyped-call]
                array, data=at, shape=[count], strides=[width], itemsize=width, meminfo=None
            )
            return array._getvalue()

        return view_type(address, size, like), codegen

    @intrinsic
    def prefetch_at(typingctx: Any, address: Any) -> Any:
        """Ask for the cache line at an address before it is read."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            byte = ir.IntType(8).as_pointer()
            flag = ir.IntType(32)
            fn = builder.module.declare_intrinsic(
                "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
            )
            builder.call(
                fn,
                [
                    builder.inttoptr(args[0], byte),
                    ir.Constant(flag, 0),
                    ir.Constant(flag, 3),
                    ir.Constant(flag, 1),
                ],
            )
            return context.get_dummy_value()

        return types.void(types.uint64), codegen

    @intrinsic
    def copy_at(typingctx: Any, target: Any, source: Any, size: Any) -> Any:
        """Copy ``size`` bytes from an address to another; the two do not overlap."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            byte = ir.IntType(8).as_pointer()
            if CHECK_BOUNDS:
                for address in args[:2]:
                    emit_bounds_check(
                        context, builder, address, ir.Constant(ir.IntType(64), 0), args[2]
                    )
            raw_memcpy(
                builder,
                builder.inttoptr(args[0], byte),
                builder.inttoptr(args[1], byte),
                args[2],
                1,
            )  # type: ignore[no-untyped-call]
            return context.get_dummy_value()

        return types.void(types.uint64, types.uint64, types.int64), codegen

    @intrinsic
    def is_set(typingctx: Any, flag: Any) -> Any:
        """Return whether the first value of an int64 array is not 0, read from memory at each use:
        another thread may set it at any time.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            struct = context.make_array(signature.args[0])(context, builder, args[0])
            return builder.icmp_signed(
                "!=",
                builder.load_atomic(struct.data, "monotonic", 8),
                ir.Constant(ir.IntType(64), 0),
            )

        return types.boolean(flag), codegen

    @intrinsic
    def register(typingctx: Any, array: Any) -> Any:
        """Register a contiguous array whose address a kernel takes itself, where addresses are
        checked.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array_struct = context.make_array(signature.args[0])(context, builder, args[0])
            width, size = ir.IntType(64), array_struct.itemsize
            for extent in cgutils.unpack_tuple(builder, array_struct.shape):  # type: ignore[no-untyped-call]
                size = builder.mul(size, extent)
            emit_registration(builder, builder.ptrtoint(array_struct.data, width), size)
            return context.get_dummy_value()

        return types.void(array), codegen

    @intrinsic
    def register_at(typingctx: Any, address: Any, size: Any) -> Any:
        """Register ``size`` bytes at an address: of a constant array, of which every mention in
        compiled code may be a copy.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            emit_registration(builder, args[0], args[1])
            return context.get_dummy_value()

        return types.void(types.uint64, types.int64), codegen

    def _reader(kind: Any, ctype: Any, dtype: Any) -> Any:
        @intrinsic
        def read(typingctx: Any, address: Any, index: Any) -> Any:
            def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                at = context.cast(builder, args[1], signature.args[1], types.intp)
                if CHECK_BOUNDS:
                    width = ir.Constant(ir.IntType(64), ctypes.sizeof(ctype))
                    emit_bounds_check(context, builder, args[0], builder.mul(at, width), width)
                base = builder.inttoptr(args[0], context.get_data_type(kind).as_pointer())
                return builder.load(builder.gep(base, [at]))

            return kind(types.uint64, index), codegen

        return read


u8_at = _reader(types.uint8, ctypes.c_uint8, np.uint8)
u32_at = _reader(types.uint32, ctypes.c_uint32, np.uint32)
u64_at = _reader(types.uint64, ctypes.c_uint64, np.uint64)
i64_at = _reader(types.int64, ctypes.c_int64, np.int64)
f32_at = _reader(types.float32, ctypes.c_float, np.float32)
f64_at = _reader(types.float64, ctypes.c_double, np.float64)
"""``u8_at(address, index)`` and its like: value ``index`` of the array that begins at an
address.
"""
