"""Target nodes as a bitset: build it, rank its members, and scan for edges to them.

The rank of a target is the number of targets with smaller ids (Jacobson 1989, Space-efficient
static trees and graphs, section 2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import CHECK_BOUNDS, IntLike, inlined, prefetch_at, register
from asterism_graphkit.compile.simd import LANES, USE_SIMD, compress_members, compress_pairs
from asterism_graphkit.relabel.bitset import BIT_MASK, ONE, WORD_SHIFT, bit_rank, popcount

_S32, _HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_LANES, _NARROW, _PAIR = np.uint64(LANES), np.uint64(4), np.uint64(8)
"""Neighbors per vector; bytes of a 32-bit id and of a pair."""
_LINE, _PREFETCH_BYTES = np.uint64(64), np.uint64(2048)
"""Bytes of a cache line, and the prefetch distance for pairs.

The hardware prefetches too short a distance ahead.
"""


class TargetBitset(NamedTuple):
    """A bit for each id from ``base_id`` on, for up to t targets."""

    base_id: np.uint64
    words: NDArray[np.uint64]
    """Bits, uint64[w], inout; at least one bit more than the targets' ids need."""
    word_ranks: NDArray[np.int32]
    """Rank of a word's first target, int32[w]; set only for words that hold a target."""
    touched_words: NDArray[np.int32]
    """Indices of the words that hold targets, int32[t]."""
    rank_order: NDArray[np.int32]
    """Index of the target of each rank, int32[t]; used if the targets' ids do not ascend."""


@inlined
def set_target_bits(
    bitset: TargetBitset, ids: NDArray[np.int64], begin: IntLike, end: IntLike
) -> IntLike:
    """Set the bits of targets ``begin`` to ``end``.

    Lists the words that were 0 before in ``touched_words``, and returns their number.
    """
    count = np.int64(0)
    for i in range(begin, end):
        bit = np.uint64(ids[i]) - bitset.base_id
        word = bitset.words[bit >> WORD_SHIFT]
        bitset.touched_words[count] = np.int32(bit >> WORD_SHIFT)
        count += np.int64(word == 0)
        bitset.words[bit >> WORD_SHIFT] = word | ONE << (bit & BIT_MASK)
    return count


@inlined
def clear_target_bits(bitset: TargetBitset, count: IntLike) -> None:
    """Clear the first ``count`` touched words."""
    for k in range(count):
        bitset.words[bitset.touched_words[k]] = 0


@inlined
def sort_touched_words(bitset: TargetBitset, count: IntLike) -> None:
    """Sort the first ``count`` touched words with Shell's sort.

    NumPy's sort allocates memory, which no inlined function may do.
    """
    words, gap = bitset.touched_words, np.int64(1)
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            word, pos = words[i], np.int64(i)
            while pos >= gap and words[pos - gap] > word:
                words[pos] = words[pos - gap]
                pos -= gap
            words[pos] = word
        gap //= 3


@inlined
def rank_words(bitset: TargetBitset, count: IntLike, first: IntLike) -> IntLike:
    """Assign ranks from ``first`` on to the touched words in their order.

    Returns the rank after the last target.
    """
    rank = np.int64(first)
    for k in range(count):
        bitset.word_ranks[bitset.touched_words[k]] = rank
        rank += np.int64(popcount(bitset.words[bitset.touched_words[k]]))
    return rank


@inlined
def is_ascending(ids: NDArray[np.int64], begin: IntLike, end: IntLike) -> bool:
    """Return whether ids ascend; their ranks are then their positions."""
    ascending = True
    for i in range(begin + 1, end):
        ascending &= ids[i - 1] < ids[i]
    return bool(ascending)


@inlined
def order_by_rank(
    bitset: TargetBitset, ids: NDArray[np.int64], begin: IntLike, end: IntLike
) -> None:
    """Write the index of each target to the position of its rank."""
    for i in range(begin, end):
        bit = np.uint64(ids[i]) - bitset.base_id
        bitset.rank_order[bit_rank(bit, bitset.words, bitset.word_ranks)] = i


@inlined
def build_ranks(
    bitset: TargetBitset, ids: NDArray[np.int64], begin: IntLike, end: IntLike
) -> tuple[np.int64, bool, bool]:
    """Set the bits of targets ``begin`` to ``end``, and rank them.

    Returns
    -------
    count : int64
        Number of touched words.
    ids_ascend : bool
        Whether the ids ascend, so that ranks are positions.
    is_unique : bool
        Whether every target occurs once.
    """
    count, ids_ascend = (
        np.int64(set_target_bits(bitset, ids, begin, end)),
        is_ascending(ids, begin, end),
    )
    is_unique = np.int64(rank_words(bitset, count, begin)) == end
    if is_unique and not ids_ascend:
        order_by_rank(bitset, ids, begin, end)
    return count, ids_ascend, bool(is_unique)


@inlined
def target_of_rank(rank: np.uint64, order: NDArray[np.int32]) -> np.uint64:
    """Return the index of a target by its rank; without ``order`` it is the rank."""
    return np.uint64(order[rank]) if order.shape[0] > 0 else rank


@inlined
def place_of_rank(
    rank: np.uint64, order: NDArray[np.int32], places: NDArray[np.int32]
) -> np.uint64:
    """Return the position of a target in the request by its rank."""
    target = target_of_rank(rank, order)
    return np.uint64(places[target]) if places.shape[0] > 0 else target


@inlined
def _append_if_member(
    neighbor: np.uint64,
    value: np.uint64,
    bitset: TargetBitset,
    out_values: NDArray[np.uint32],
    bit_positions: NDArray[np.uint32],
    count: np.uint64,
) -> np.uint64:
    """Append a value and the bit of its neighbor if the neighbor is a target.

    Returns the new count. A branch on the test would be mispredicted, so the pair is always
    written, and the count advances only for targets.
    """
    bit = min(neighbor - bitset.base_id, np.uint64(64 * bitset.words.shape[0] - 1))
    out_values[count], bit_positions[count] = value, bit
    new_count: np.uint64 = count + (bitset.words[bit >> WORD_SHIFT] >> (bit & BIT_MASK) & ONE)
    return new_count


@inlined
def scan_wide(
    nbr: NDArray[np.int64],
    bitset: TargetBitset,
    edges: NDArray[np.uint32],
    bit_positions: NDArray[np.uint32],
) -> np.uint64:
    """List the edges of a row, or of a block of a row, that lead to targets, and their bits.

    Parameters
    ----------
    nbr : int64[n]
    bitset : TargetBitset
    edges, bit_positions : uint32[n + LANES], out
        Offsets of the edges, and bits of their targets.

    Returns
    -------
    uint64
        Number of edges found.
    """
    count = np.uint64(0)
    for edge in range(np.uint64(nbr.shape[0])):
        count = _append_if_member(
            np.uint64(nbr[edge]), np.uint64(edge), bitset, edges, bit_positions, count
        )
    return count


@inlined
def _vectorized_size(size: np.uint64, bitset: TargetBitset) -> np.uint64:
    """Return how many of a row's neighbors are processed sixteen at a time.

    It is 0 if a target may have an id of more than 32 bits, or without vector instructions.
    """
    id_limit = bitset.base_id + np.uint64(64 * bitset.words.shape[0])
    vector_size: np.uint64 = (
        size - size % _LANES if USE_SIMD and id_limit >> _S32 == 0 else np.uint64(0)
    )
    return vector_size


@inlined
def scan_narrow(
    nbr: NDArray[np.uint32],
    bitset: TargetBitset,
    edges: NDArray[np.uint32],
    bit_positions: NDArray[np.uint32],
) -> np.uint64:
    """List the edges of 32-bit neighbors that lead to targets, sixteen at a time.

    Like `scan_wide`, with ``nbr`` uint32[n].
    """
    if CHECK_BOUNDS:
        register(nbr)
    count, size, address = np.uint64(0), np.uint64(nbr.shape[0]), np.uint64(nbr.ctypes.data)
    vector_size = _vectorized_size(size, bitset)
    for edge in range(np.uint64(0), vector_size, _LANES):
        count += compress_members(
            address + _NARROW * edge,
            edge,
            bitset.base_id,
            bitset.words,
            edges,
            bit_positions,
            count,
        )
    for edge in range(vector_size, size):
        count = _append_if_member(
            np.uint64(nbr[edge]), np.uint64(edge), bitset, edges, bit_positions, count
        )
    return count


@inlined
def scan_pairs(
    pairs: NDArray[np.uint64],
    bitset: TargetBitset,
    eids: NDArray[np.uint32],
    bit_positions: NDArray[np.uint32],
) -> np.uint64:
    """List the ids of the edges that lead to targets, from pairs of edge id and neighbor.

    Like `scan_narrow`, with ``pairs`` uint64[n]; ``eids`` is uint32[n + LANES], out.
    """
    if CHECK_BOUNDS:
        register(pairs)
    count, size, address = np.uint64(0), np.uint64(pairs.shape[0]), np.uint64(pairs.ctypes.data)
    vector_size = _vectorized_size(size, bitset)
    for edge in range(np.uint64(0), vector_size, _LANES):  # two cache lines per step
        prefetch_at(address + _PAIR * edge + _PREFETCH_BYTES)
        prefetch_at(address + _PAIR * edge + _PREFETCH_BYTES + _LINE)
        count += compress_pairs(
            address + _PAIR * edge, bitset.base_id, bitset.words, eids, bit_positions, count
        )
    for edge in range(vector_size, size):
        count = _append_if_member(
            pairs[edge] & _HALF, pairs[edge] >> _S32, bitset, eids, bit_positions, count
        )
    return count
