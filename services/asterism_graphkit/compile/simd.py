"""Process sixteen numbers at a time with vector instructions that LLVM does not generate.

LLVM does not turn an ordinary loop into these instructions. The numbers belong to sets that are
stored as bitsets (`asterism_graphkit.relabel.bitset`), and all of them have at most 32 bits. Plain
Python processes one number after another. On a processor without such instructions an ordinary loop
is faster than these functions (`USE_SIMD`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numpy.typing import NDArray

from asterism_graphkit.compile.bounds_checks import emit_bounds_check, emit_check
from asterism_graphkit.compile.jit import CHECK_BOUNDS, INTERPRETED, u32_at, u64_at
from asterism_graphkit.relabel.bitset import bit_rank

LANES = 16
"""Numbers per step. A step writes this many output slots, however many of them count."""
USE_SIMD = INTERPRETED or "+avx512f" in cpu_target.target_context.codegen().magic_tuple()[2].split(
    ","
)
"""True if `compress_members` and `compress_pairs` use vector instructions here."""

if INTERPRETED:

    def _compress(
        numbers: list[Any],
        payloads: list[Any],
        low: Any,
        words: NDArray[np.uint64],
        out: NDArray[np.uint32],
        bit_indices: Any,
        offset: Any,
    ) -> np.uint64:
        count = np.uint64(0)
        for number, payload in zip(numbers, payloads, strict=True):
            bit = min((int(number) - int(low)) & 0xFFFFFFFF, 64 * words.size - 1)
            out[offset + count], bit_indices[offset + count] = payload, bit
            count += words[bit >> 6] >> np.uint64(bit & 63) & np.uint64(1)
        return count

    def compress_members(
        source: Any, first: Any, low: Any, words: Any, positions: Any, bit_indices: Any, offset: Any
    ) -> np.uint64:
        """List the members of a bitset among sixteen uint32 at an address.

        Writes the position (the first is ``first``) and the bit index of each number with its bit
        set, and returns the count.
        """
        return _compress(
            [u32_at(source, lane) for lane in range(LANES)],
            [first + lane for lane in range(LANES)],
            low,
            words,
            positions,
            bit_indices,
            offset,
        )

    def compress_pairs(
        source: Any, low: Any, words: Any, seconds: Any, bit_indices: Any, offset: Any
    ) -> np.uint64:
        """List the second numbers of sixteen uint32 pairs with the first one in a bitset.

        Writes the second number and the bit index of the first, and returns the count.
        """
        pairs = [int(u64_at(source, lane)) for lane in range(LANES)]
        return _compress(
            [pair & 0xFFFFFFFF for pair in pairs],
            [pair >> 32 for pair in pairs],
            low,
            words,
            seconds,
            bit_indices,
            offset,
        )

    def rank_bits(
        bit_indices: NDArray[np.uint32],
        first: Any,
        words: Any,
        word_ranks: Any,
        ranks: NDArray[np.uint32],
    ) -> None:
        """Compute the ranks of sixteen bit indices, from index ``first`` on.

        See `asterism_graphkit.relabel.bitset.bit_rank`.
        """
        for lane in range(first, first + LANES):
            ranks[lane] = bit_rank(np.uint64(bit_indices[lane]), words, word_ranks)

else:
    _I1, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (1, 16, 32, 64))
    _NARROW, _WIDE = (ir.VectorType(kind, LANES) for kind in (_I32, _I64))

    def _all(vector: Any, value: int) -> Any:
        return ir.Constant(vector, [value] * LANES)

    class _VectorCode:
        """Emitter of the LLVM instructions of these functions."""

        def __init__(self, context: Any, builder: Any, signature: Any) -> None:
            self.context, self.builder, self.types = context, builder, signature.args

        def array(self, k: int, args: Any) -> Any:
            """Return the address of an argument's first value."""
            struct = self.context.make_array(self.types[k])(self.context, self.builder, args[k])
            return self.builder.ptrtoint(struct.data, _I64)

        def size(self, k: int, args: Any) -> Any:
            """Return the number of values of an argument."""
            return self.builder.extract_value(
                self.context.make_array(self.types[k])(self.context, self.builder, args[k]).shape, 0
            )

        def element_address(self, address: Any, index: Any, width: int) -> Any:
            """Return the address of a value."""
            return self.builder.add(address, self.builder.mul(index, ir.Constant(_I64, width)))

        def broadcast(self, value: Any, vector: Any) -> Any:
            """Return a vector with a value in every lane."""
            undefined = ir.Constant(vector, ir.Undefined)
            first = self.builder.insert_element(undefined, value, ir.Constant(_I32, 0))
            return self.builder.shuffle_vector(first, undefined, _all(_NARROW, 0))

        def call(self, name: str, result: Any, *args: Any) -> Any:
            """Call an LLVM intrinsic by its full name."""
            kind = ir.FunctionType(result, [arg.type for arg in args])
            return self.builder.call(self.builder.module.declare_intrinsic(name, (), kind), args)

        def load(self, address: Any, vector: Any) -> Any:
            """Load all lanes from consecutive memory."""
            loaded = self.builder.load(self.builder.inttoptr(address, vector.as_pointer()))
            loaded.align = 4
            return loaded

        def store(self, vector: Any, address: Any) -> None:
            """Store all lanes to consecutive memory."""
            self.builder.store(
                vector, self.builder.inttoptr(address, vector.type.as_pointer())
            ).align = 4

        def gather(self, address: Any, indices: Any, vector: Any) -> Any:
            """Load the values at 32-bit indices."""
            width = vector.element.width // 8
            base = self.builder.inttoptr(address, vector.element.as_pointer())
            pointers = self.builder.gep(base, [indices], source_etype=vector.element)
            pointers.type = ir.VectorType(
                base.type, LANES
            )  # llvmlite types the result of a vector gep as one pointer
            name = f"llvm.masked.gather.v{LANES}i{vector.element.width}.v{LANES}p0"
            all_lanes, undefined = (
                _all(ir.VectorType(_I1, LANES), 1),
                ir.Constant(vector, ir.Undefined),
            )
            return self.call(name, vector, pointers, ir.Constant(_I32, width), all_lanes, undefined)

        def compress(
            self,
            numbers: Any,
            payloads: Any,
            low: Any,
            words: Any,
            size: Any,
            out: Any,
            bit_indices: Any,
            offset: Any,
        ) -> Any:
            """Store the payloads and bit indices of the numbers with their bits set; return the
            count.
            """
            builder = self.builder
            last = builder.trunc(
                builder.sub(builder.shl(size, ir.Constant(_I64, 6)), ir.Constant(_I64, 1)), _I32
            )
            indices = builder.sub(numbers, self.broadcast(builder.trunc(low, _I32), _NARROW))
            indices = self.call(
                f"llvm.umin.v{LANES}i32", _NARROW, indices, self.broadcast(last, _NARROW)
            )
            # A word is read as two 32-bit halves in the order of their bits. Memory is
            # little-endian, as partition images are.
            halves = self.gather(words, builder.lshr(indices, _all(_NARROW, 5)), _NARROW)
            bits = builder.and_(
                builder.lshr(halves, builder.and_(indices, _all(_NARROW, 31))), _all(_NARROW, 1)
            )
            mask = builder.icmp_unsigned("!=", bits, _all(_NARROW, 0))
            for values, address in ((payloads, out), (indices, bit_indices)):
                compressed = self.call(
                    f"llvm.experimental.vector.compress.v{LANES}i32",
                    _NARROW,
                    values,
                    mask,
                    _all(_NARROW, 0),
                )
                self.store(compressed, self.element_address(address, offset, 4))
            return builder.zext(
                self.call("llvm.ctpop.i16", _I16, builder.bitcast(mask, _I16)), _I64
            )

        def bit_ranks(self, bit_indices: Any, words: Any, word_ranks: Any) -> Any:
            """Return how many members of a set are smaller than each of these bits."""
            builder = self.builder
            word = builder.lshr(bit_indices, _all(_NARROW, 6))
            bit = builder.shl(
                _all(_WIDE, 1), builder.zext(builder.and_(bit_indices, _all(_NARROW, 63)), _WIDE)
            )
            below = builder.and_(self.gather(words, word, _WIDE), builder.sub(bit, _all(_WIDE, 1)))
            ones = builder.trunc(self.call(f"llvm.ctpop.v{LANES}i64", _WIDE, below), _NARROW)
            return builder.add(ones, self.gather(word_ranks, word, _NARROW))

        def require_slots(self, arrays: list[int], first: Any, args: Any) -> None:
            """Check that ``LANES`` values from ``first`` on are inside each of these arguments.

            Only in the checking build.
            """
            for k in arrays if CHECK_BOUNDS else []:
                end = self.builder.add(first, ir.Constant(_I64, LANES))
                emit_check(
                    self.context,
                    self.builder,
                    self.builder.icmp_unsigned("<=", end, self.size(k, args)),
                )

        def require_lanes(self, address: Any, width: int) -> None:
            """Check that ``LANES`` values are at an address; only in the checking build."""
            if CHECK_BOUNDS:
                emit_bounds_check(
                    self.context,
                    self.builder,
                    address,
                    ir.Constant(_I64, 0),
                    ir.Constant(_I64, LANES * width),
                )

        def require_some(self, k: int, args: Any) -> None:
            """Check that an argument is not empty; only in the checking build."""
            if CHECK_BOUNDS:
                emit_check(
                    self.context,
                    self.builder,
                    self.builder.icmp_unsigned(">", self.size(k, args), ir.Constant(_I64, 0)),
                )

        def require_words(self, arrays: list[int], first: Any, source: int, args: Any) -> None:
            """Check that the words of ``LANES`` bit indices are inside each of these arguments.

            The bit indices are those of argument ``source`` from position ``first`` on. Only in the
            checking build.
            """
            for k in arrays if CHECK_BOUNDS else []:
                bits = self.load(self.element_address(self.array(source, args), first, 4), _NARROW)
                largest = self.call(f"llvm.vector.reduce.umax.v{LANES}i32", _I32, bits)
                word = self.builder.lshr(self.builder.zext(largest, _I64), ir.Constant(_I64, 6))
                emit_check(
                    self.context,
                    self.builder,
                    self.builder.icmp_unsigned("<", word, self.size(k, args)),
                )

    @intrinsic
    def compress_members(
        typingctx: Any,
        source: Any,
        first: Any,
        low: Any,
        words: Any,
        positions: Any,
        bit_indices: Any,
        offset: Any,
    ) -> Any:
        """List the members of a bitset among sixteen uint32 at an address.

        Writes the position (the first is ``first``) and the bit index of each number with its bit
        set, and returns the count.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            code = _VectorCode(context, builder, signature)
            payloads = builder.add(
                code.broadcast(builder.trunc(args[1], _I32), _NARROW),
                ir.Constant(_NARROW, list(range(LANES))),
            )
            code.require_lanes(args[0], 4)
            code.require_slots([4, 5], args[6], args)
            code.require_some(3, args)
            words, size, positions, bit_indices = (
                code.array(3, args),
                code.size(3, args),
                code.array(4, args),
                code.array(5, args),
            )
            return code.compress(
                code.load(args[0], _NARROW),
                payloads,
                args[2],
                words,
                size,
                positions,
                bit_indices,
                args[6],
            )

        return types.uint64(
            types.uint64, types.uint64, types.uint64, words, positions, bit_indices, types.uint64
        ), codegen

    @intrinsic
    def compress_pairs(
        typingctx: Any,
        source: Any,
        low: Any,
        words: Any,
        seconds: Any,
        bit_indices: Any,
        offset: Any,
    ) -> Any:
        """List the second numbers of sixteen uint32 pairs with the first one in a bitset.

        Writes the second number and the bit index of the first, and returns the count.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            code = _VectorCode(context, builder, signature)
            code.require_lanes(args[0], 8)
            code.require_slots([3, 4], args[5], args)
            code.require_some(2, args)
            pairs = code.load(args[0], _WIDE)
            numbers, payloads = (
                builder.trunc(pairs, _NARROW),
                builder.trunc(builder.lshr(pairs, _all(_WIDE, 32)), _NARROW),
            )
            words, size, seconds, bit_indices = (
                code.array(2, args),
                code.size(2, args),
                code.array(3, args),
                code.array(4, args),
            )
            return code.compress(
                numbers, payloads, args[1], words, size, seconds, bit_indices, args[5]
            )

        return types.uint64(
            types.uint64, types.uint64, words, seconds, bit_indices, types.uint64
        ), codegen

    @intrinsic
    def rank_bits(
        typingctx: Any, bit_indices: Any, first: Any, words: Any, word_ranks: Any, ranks: Any
    ) -> Any:
        """Compute the ranks of sixteen bit indices, from index ``first`` on.

        See `asterism_graphkit.relabel.bitset.bit_rank`.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            code = _VectorCode(context, builder, signature)
            code.require_slots([0, 4], args[1], args)
            code.require_words([2, 3], args[1], 0, args)
            input_address, output_address = (
                code.element_address(code.array(k, args), args[1], 4) for k in (0, 4)
            )
            code.store(
                code.bit_ranks(
                    code.load(input_address, _NARROW), code.array(2, args), code.array(3, args)
                ),
                output_address,
            )
            return context.get_dummy_value()

        return types.void(bit_indices, types.uint64, words, word_ranks, ranks), codegen
