"""Compile kernels with Numba, and read memory by address.

Every kernel also runs as plain Python under ``NUMBA_DISABLE_JIT=1``. Intrinsics then have Python
implementations. `asterism_graphkit.compile.simd` has vector instructions.

A kernel takes ``(tables, params, inputs..., outputs...)``. Tables hold the *addresses* of arrays
(`addresses_of`) if one call covers all partitions of a version. `u64_at` and the similar functions
read them without bounds checks, and the caller keeps the arrays alive. Scalars are passed as one
NamedTuple, and so are arrays that belong together. A kernel unpacks such a tuple once, or passes it
to an `inlined` function, where it costs nothing. The names of these classes are unique, because
Numba's dispatcher identifies them by class name and field names alone.

With ``ASTERISM_CHECK_BOUNDS=1`` kernels are compiled with bounds checks, and reads by address are
checked too (`asterism_graphkit.compile.bounds_checks`). That build has its own files in the caches.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Iterable
from functools import cache, partial
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
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic
from numpy.typing import NDArray

from asterism_graphkit.compile.activity import ACTIVITY
from asterism_graphkit.compile.bounds_checks import CHECK_BOUNDS as CHECK_BOUNDS
from asterism_graphkit.compile.bounds_checks import (
    EXTENTS,
    OUT_OF_BOUNDS,
    emit_bounds_check,
    emit_registration,
)

P = ParamSpec("P")
R = TypeVar("R")

IntLike: TypeAlias = "int | np.integer[Any]"
"""An integer argument of a kernel: NumPy's if its type matters, else Python's."""

INTERPRETED = bool(vars(config)["DISABLE_JIT"])
"""True if kernels run as plain Python: ``NUMBA_DISABLE_JIT=1``."""

STOP_CHECK_STEPS = 1 << 12
"""Steps of a loop between two checks of its stop flag: about ten microseconds."""
STOP_CHECK_MASK = STOP_CHECK_STEPS - 1
"""Mask for a loop counter: the loop checks its stop flag where these bits are 0."""
_OPTIONS: dict[str, Any] = {
    "cache": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # an entry point for C, which nothing calls
    **({"boundscheck": True} if CHECK_BOUNDS else {}),
}
_SUFFIX = "-checked" if CHECK_BOUNDS else ""
"""Suffix of cached files, so that each build reads, lists and removes only its own files."""
_LOCK_LOOK_S, _LOCK_LOOKS = 0.02, 6000
"""Seconds between attempts to lock a kernel, and number of attempts: two minutes.

No kernel takes longer to compile on a loaded machine. After that time it is compiled twice.
"""


def kernel(fn: Callable[P, R]) -> Callable[P, R]:
    """Compile ``fn`` without the GIL, cached on disk; the static type is unchanged.

    Kernels rely on uint64 arithmetic that wraps around. Plain Python would warn about the overflow,
    so the warning is silenced.
    """
    if INTERPRETED:
        return np.errstate(over="ignore")(fn)
    return _with_content_key(numba.njit(nogil=True, **_OPTIONS)(fn), fn)


def kernel_holding_gil(fn: Callable[P, R]) -> Callable[P, R]:
    """Compile ``fn`` like `kernel`, but keep the GIL.

    For functions that take no longer than releasing and reacquiring the GIL.
    """
    if INTERPRETED:
        return np.errstate(over="ignore")(fn)
    return _with_content_key(numba.njit(**_OPTIONS)(fn), fn)


def inlined(fn: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that other kernels call, for example in their innermost loop.

    The function must not allocate an array. Its array arguments are not reference-counted, whether
    they are passed directly or in tuples: the caller keeps them alive. LLVM does not always remove
    the counting, which costs some nanoseconds per array and call.

    It has no entry point for Python, which would take longer to compile than the function itself:
    its code would be inlined there too, next to the conversion of all arguments. If Python calls
    it, for example in a test, a second build with an entry point is compiled.
    """
    if INTERPRETED:
        return np.errstate(over="ignore")(fn)
    options: dict[str, Any] = {
        "nogil": True,
        "inline": "never",
        "forceinline": True,
        "_nrt": CHECK_BOUNDS,
        **_OPTIONS,
    }
    without_entry: dict[str, Any] = {"no_cpython_wrapper": True, **options}
    step: Any = numba.njit(**without_entry)(fn)

    @cache
    def build_for_python() -> Callable[P, R]:
        return _with_content_key(numba.njit(**options)(fn), fn, "-python")

    def add_overload(result: Any) -> None:
        step.overloads[tuple(result.signature.args)] = result

    # Both are methods that the dispatcher calls: to register an entry point, which is missing here,
    # and to obtain one for a call from Python.
    step.add_overload = add_overload
    step._compile_for_args = lambda *_, **__: build_for_python()
    return _with_content_key(step, fn)


def _with_content_key(compiled: Any, fn: Callable[P, R], suffix: str = "") -> Callable[P, R]:
    """Key the cached code of a kernel by the content of its sources.

    Numba keys it by the modification time of the kernel's own file. But inlined functions and
    constants come from other files of the subpackage (two levels deep: ``storaged.kernels``) and of
    this package. A key by content also lets a copied checkout, or a container image built
    elsewhere, use the compiled code as it is.
    """
    cache = compiled._cache
    path, depth = Path(fn.__code__.co_filename), fn.__module__.count(".")
    stamp = (
        source_digest(path.parents[depth - 2], "**/*.py")
        if depth > 1
        else source_digest(path.parent, "*.py")
    )
    base = cache._impl.filename_base + suffix + _SUFFIX
    files = CompiledFiles(cache.cache_path, base, stamp, f"{fn.__module__}.{fn.__name__}")
    cache._cache_file = files
    cache.load_overload = partial(_load_overload, cache)
    original_compile = compiled.compile

    def compile_once(signature: Any) -> Any:
        with global_compiler_lock:  # keeps other threads of this process out of `files`
            try:
                return original_compile(signature)
            finally:
                files.finish()

    compiled.compile = compile_once
    dispatcher: Callable[P, R] = compiled
    return dispatcher


class CompiledFiles(IndexDataCacheFile):
    """Cached code of one kernel, shared by processes that may compile it concurrently.

    A process that finds a signature missing locks the kernel until it has compiled and listed that
    signature. Other processes that miss a signature of the same kernel wait, then look again. Each
    signature is compiled by one process, and no entry of the list is lost.

    Numba numbers its files, and lists a file before it is written. Processes that start together
    may give the same number to two signatures. A process may then run older content of that file,
    which was compiled for other types or from older sources. Here a file is named after its content
    and is listed once it exists.
    """

    _lock: int | None = None
    """Descriptor of the lock file while the lock is held."""
    _is_missing = False
    """True from the time that a signature is missing until it is compiled or loaded."""

    def __init__(
        self, cache_path: str, filename_base: str, source_stamp: Any, kernel: str = ""
    ) -> None:
        super().__init__(cache_path, filename_base, source_stamp)  # type: ignore[no-untyped-call]
        self._kernel = kernel

    def load(self, key: Any) -> Any:
        """Return compiled code, or None if this process has to compile it."""
        data = super().load(key)  # type: ignore[no-untyped-call]
        if data is None and not self._is_missing:
            self._is_missing = True
            ACTIVITY.begin(self._kernel)
            if self._take_lock():
                data = super().load(key)  # type: ignore[no-untyped-call]
        return data

    def _load_index(self) -> Any:
        """Return the listed files by signature; none if the list cannot be read.

        A list of an earlier release may name classes of modules that exist no longer.
        """
        try:
            return super()._load_index()  # type: ignore[no-untyped-call]
        except Exception:  # unpickling raises errors of any class
            return {}

    def _load_data(self, name: str) -> Any:
        """Return the content of a listed file; OSError, which means none, if it cannot be read."""
        try:
            return super()._load_data(name)  # type: ignore[no-untyped-call]
        except Exception as error:
            raise OSError(f"{name}: not compiled code: {error}") from error

    def finish(self) -> None:
        """Release the lock, if this process holds it, so that other processes look again."""
        if self._is_missing:
            self._is_missing = False
            ACTIVITY.end(self._kernel)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take_lock(self) -> bool:
        """Lock the kernel and return True, or return False if that fails.

        It fails if the file system has no locks or the cache is not writable. It also fails if
        another process holds the lock for too long, since that process may be stopped.
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
        """Write compiled code, list it, and remove files that are no longer listed."""
        identity = repr((self._version, self._source_stamp, key)).encode()
        digest = hashlib.sha256(identity).hexdigest()[:16]
        name = f"{Path(self._index_path).stem}.{digest}.nbc"
        # The ignored calls are untyped functions of Numba.
        self._save_data(name, data)  # type: ignore[no-untyped-call]
        entries = {**self._load_index(), key: name}
        self._save_index(entries)  # type: ignore[no-untyped-call]
        for path in Path(self._cache_path).glob(f"{Path(self._index_path).stem}.*.nbc"):
            if path.name not in entries.values():
                path.unlink(missing_ok=True)


def load_runtime() -> None:
    """Load what compiled kernels call, which takes 0.04 s of a core.

    A process that forks others calls it, so that they do not.
    """
    if not INTERPRETED:
        rtsys.initialize(cpu_target.target_context)


def _load_overload(code_cache: Any, signature: Any, target_context: Any) -> Any:
    """Return compiled code of the cache, or None.

    Numba would first load the registries that a compilation reads, which takes 0.2 s of a core in
    each process. It loads them before it compiles in any case.
    """
    rtsys.initialize(target_context)
    with code_cache._guard_against_spurious_io_errors():
        return code_cache._load_overload(signature, target_context)
    return None  # the block ended with an error of the file


@cache
def source_digest(folder: Path, pattern: str) -> bytes:
    """Return a digest of this package and of the sources in a folder that match a pattern."""
    digest = hashlib.sha256(_file_digests(folder, pattern))
    digest.update(_file_digests(Path(__file__).parents[1], "**/*.py"))
    return digest.digest()


@cache
def _file_digests(root: Path, pattern: str) -> bytes:
    """Return the names and digests of the files below a folder that match a pattern."""
    return b"".join(
        path.relative_to(root).as_posix().encode()
        + b"\0"
        + hashlib.sha256(path.read_bytes()).digest()
        for path in sorted(root.glob(pattern))
    )


def as_kernel_array(array: NDArray[Any]) -> NDArray[Any]:
    """Return ``array`` as a contiguous, aligned, read-only plain ndarray.

    Kernels are compiled for this one type. Numba compiles a kernel again for every combination of
    writable and read-only arguments, and takes long to determine the type of a ``np.memmap``.
    """
    plain = np.ascontiguousarray(array).view()
    if not plain.flags.aligned:
        plain = plain.copy()
    plain.flags.writeable = False
    return plain


def addresses_of(arrays: Iterable[NDArray[Any]]) -> NDArray[np.uint64]:
    """Return the address of the first value of each array, or 0 for an empty array.

    The result is a read-only uint64[n]. The caller keeps the arrays alive.
    """
    if CHECK_BOUNDS:
        arrays = list(arrays)
        EXTENTS.register(arrays)
    return as_kernel_array(
        np.array([array.ctypes.data if array.size else 0 for array in arrays], np.uint64)
    )


if INTERPRETED:

    def mulhi(a: np.uint64, b: np.uint64) -> np.uint64:
        """Return the high 64 bits of the 128-bit product of two uint64."""
        return np.uint64((int(a) * int(b)) >> 64)

    def prefetch(array: Any, index: Any) -> None:
        """Prefetch the cache line of ``array[index]``; does nothing in plain Python."""

    def view_at(address: Any, size: Any, like: NDArray[Any]) -> NDArray[Any]:
        """Return a read-only array of ``size`` elements of ``like``'s dtype at an address.

        The caller keeps the memory alive.
        """
        if not size:
            return like[:0]
        _require(address, 0, int(size) * like.itemsize)
        raw = (ctypes.c_byte * (int(size) * like.itemsize)).from_address(int(address))
        view = np.frombuffer(memoryview(raw).cast("B"), like.dtype)
        view.flags.writeable = False
        return view

    def prefetch_at(address: Any) -> None:
        """Prefetch the cache line at an address; does nothing in plain Python."""

    def copy_at(target: Any, source: Any, size: Any) -> None:
        """Copy ``size`` bytes from ``source`` to ``target``; the two must not overlap."""
        _require(source, 0, size)
        _require(target, 0, size)
        ctypes.memmove(int(target), int(source), int(size))

    def is_set(flag: NDArray[np.int64]) -> bool:
        """Return whether the first value of an array is not 0.

        Another thread may set it at any time.
        """
        return bool(flag[0] != 0)

    def register(array: NDArray[Any]) -> None:
        """Register an array with the bounds checks if a kernel takes its address."""
        EXTENTS.register_recent(array.ctypes.data, array.nbytes)

    def register_at(address: Any, size: Any) -> None:
        """Register ``size`` bytes at an address with the bounds checks.

        For a constant array: each of its uses in compiled code may have a separate copy.
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
        """Return the high 64 bits of the 128-bit product of two uint64."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            wide = ir.IntType(128)
            product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
            return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

        return types.uint64(types.uint64, types.uint64), codegen

    @intrinsic
    def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
        """Prefetch the cache line of ``array[index]``; the array is 1-D and contiguous."""

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
        """Return a read-only array of ``size`` elements of ``like``'s dtype at an address.

        The caller keeps the memory alive.
        """
        view_type = types.Array(like.dtype, 1, "C", readonly=True)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            # Imported here, since only a compilation needs it: it takes 0.04 s of a core.
            from numba.np.arrayobj import populate_array

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
        """Prefetch the cache line at an address."""

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
        """Copy ``size`` bytes from ``source`` to ``target``; the two must not overlap."""

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
        """Return whether the first value of an int64 array is not 0.

        Every use reads it from memory, since another thread may set it at any time.
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
        """Register a contiguous array with the bounds checks if a kernel takes its address."""

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
        """Register ``size`` bytes at an address with the bounds checks.

        For a constant array: each of its uses in compiled code may have a separate copy.
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
"""Read a value by address: ``f64_at(address, index)``; ``u8_at`` and the rest are alike.

``address`` is that of the first value of the array.
"""
