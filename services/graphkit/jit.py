"""Numba's one door: the kernel decorator and the two machine instructions that NumPy has no name for.

Every kernel also runs as plain Python under ``NUMBA_DISABLE_JIT=1``, where the intrinsics are their Python twins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic
from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")

Whole: TypeAlias = "int | np.integer[Any]"
"""A whole number as kernels pass it on: of NumPy's where a type matters, Python's where it does not."""

INTERPRETED = bool(vars(config)["DISABLE_JIT"])
"""Whether kernels run as plain Python: ``NUMBA_DISABLE_JIT=1``."""


def kernel(fn: Callable[P, R]) -> Callable[P, R]:
    """Compile ``fn`` without the GIL, cached on disk; its type stays.

    Compiled code is wrap-around uint64 arithmetic; as plain Python the same overflow would warn, so it is silenced.
    """
    if INTERPRETED:
        return np.errstate(over="ignore")(fn)
    compiled: Callable[P, R] = numba.njit(cache=True, nogil=True, error_model="numpy")(fn)
    return compiled


def inlined(fn: Callable[P, R]) -> Callable[P, R]:
    """As `kernel`, for a small step that other kernels call in their innermost loop."""
    if INTERPRETED:
        return np.errstate(over="ignore")(fn)
    compiled: Callable[P, R] = numba.njit(cache=True, nogil=True, error_model="numpy", inline="never")(fn)
    return compiled


def settled(array: NDArray[Any]) -> NDArray[Any]:
    """``array`` as a contiguous, aligned, read-only plain ndarray: the one type that kernels are compiled for.

    Numba compiles anew for every mix of writable and read-only arguments, and takes long to type a ``np.memmap``.
    """
    plain = np.ascontiguousarray(array).view()
    if not plain.flags.aligned:
        plain = plain.copy()
    plain.flags.writeable = False
    return plain


if INTERPRETED:

    def mulhi(a: np.uint64, b: np.uint64) -> np.uint64:
        """The high 64 bits of the 128-bit product of two uint64."""
        return np.uint64((int(a) * int(b)) >> 64)

    def prefetch(array: Any, index: Any) -> None:
        """Ask for the cache line of ``array[index]``; a hint that plain Python has no use for."""

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
        """Ask for the cache line of ``array[index]`` (one-dimensional, contiguous) before it is read."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array_type = signature.args[0]
            struct = context.make_array(array_type)(context, builder, args[0])
            at = context.cast(builder, args[1], signature.args[1], types.intp)
            pointer = builder.gep(struct.data, [at])
            byte = ir.IntType(8).as_pointer()
            flag = ir.IntType(32)
            fn = builder.module.declare_intrinsic("llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag]))
            builder.call(fn, [builder.bitcast(pointer, byte), ir.Constant(flag, 0), ir.Constant(flag, 3), ir.Constant(flag, 1)])
            return context.get_dummy_value()

        return types.void(array, index), codegen
