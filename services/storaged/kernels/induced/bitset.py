"""Target nodes as bits of words: building the set, ranks in it, and scans for edges to its members.

The rank of a target is how many others have smaller ids (Jacobson 1989, Space-efficient static
trees and graphs, section 2).
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
"""Neighbors of one vector; bytes of a narrow id and of a pair."""
_LINE, _PREFETCH_BYTES = np.uint64(64), np.uint64(2048)
"""Bytes of a cache line, and the prefetch distance of pairs: the hardware's own is too short."""


class TargetBitset(NamedTuple):
    """A bit for each id from ``base_id`` on, for up to t targets."""

    base_id: np.uint64
    words: NDArray[np.uint64]
    """uint64[w], inout: at least one bit more than the targets' ids need."""
    word_ranks: NDArray[np.int32]
    """int32[w]: the rank of a word's first target, in words that hold one."""
    touched_words: NDArray[np.int32]
    """int32[t]: the words that hold targets."""
    rank_order: NDArray[np.int32]
    """int32[t]: targets by rank, where their ids do not ascend."""


@inlined
def set_target_bits(
    bitset: TargetBitset, ids: NDArray[np.int64], begin: IntLike, end: IntLike
) -> IntLike:
    """Set the bits of targets ``begin`` to ``end``, list the words that were 0 before, and return
    how many these are.
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
    """Set the first ``count`` touched words to 0."""
    for k in range(count):
        bitset.words[bitset.touched_words[k]] = 0


@inlined
def sort_touched_words(bitset: TargetBitset, count: IntLike) -> None:
    """Sort the first ``count`` touched words by Shell's method: NumPy's allocates, which no inlined
    function may.
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
    """Rank targets from ``first`` on, word after word as they are listed; return the rank after the
    last one.
    """
    rank = np.int64(first)
    for k in range(count):
        bitset.word_ranks[bitset.touched_words[k]] = rank
        rank += np.int64(popcount(bitset.words[bitset.touched_words[k]]))
    return rank


@inlined
def is_ascending(ids: NDArray[np.int64], begin: IntLike, end: IntLike) -> bool:
    """Return whether ids ascend: set in this order, their ranks are their positions."""
    ascending = True
    for i in range(begin + 1, end):
        ascending &= ids[i - 1] < ids[i]
    return bool(ascending)


@inlined
def order_by_rank(
    bitset: TargetBitset, ids: NDArray[np.int64], begin: IntLike, end: IntLike
) -> None:
    """Write the positions of targets by their ranks."""
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
        Touched words.
    ids_ascend : bool
        Ranks are positions.
    is_unique : bool
        No target occurs twice.
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
    """Return the position of a target by its rank; no order: it is the rank."""
    return np.uint64(order[rank]) if order.shape[0] > 0 else rank


@inlined
def place_of_rank(
    rank: np.uint64, order: NDArray[np.int32], places: NDArray[np.int32]
) -> np.uint64:
    """Return the place of a target in the request, by its rank."""
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
    """List a value for an edge, and its neighbor's bit, after ``count`` others; return how many
    there are then.

    Branches on whether it leads to a target are mispredicted: each is written, and counts or does
    not."""
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
    """List the edges of a row, or of a block of one, that lead to targets, and their bits.

    Parameters
    ----------
    nbr : int64[n]
    bitset : TargetBitset
    edges, bit_positions : uint32[n + LANES], out
        Offsets of edges, and bits of the targets.

    Returns
    -------
    uint64
        How many there are.
    """
    count = np.uint64(0)
    for edge in range(np.uint64(nbr.shape[0])):
        count = _append_if_member(
            np.uint64(nbr[edge]), np.uint64(edge), bitset, edges, bit_positions, count
        )
    return count


@inlined
def _vectorized_size(size: np.uint64, bitset: TargetBitset) -> np.uint64:
    """Return how many of a row's neighbors are taken sixteen at a time: none where a target may
    have an id that is not narrow, or nothing is won.
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
    """As `scan_wide`, of narrow ids, sixteen at a time; ``nbr`` is uint32[n]."""
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
    """As `scan_narrow`, of neighbors beside the ids of edges, which are listed; ``pairs`` is
    uint64[n].
    """
    if CHECK_BOUNDS:
        register(pairs)
    count, size, address = np.uint64(0), np.uint64(pairs.shape[0]), np.uint64(pairs.ctypes.data)
    vector_size = _vectorized_size(size, bitset)
    for edge in range(np.uint64(0), vector_size, _LANES):  # two lines at a time
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
