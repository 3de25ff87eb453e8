"""Targets as bits of words, and by rank: how many others have smaller ids (Jacobson 1989,
Space-efficient static trees and graphs, section 2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import IntLike, inlined
from asterism_graphkit.relabel.bitset import BIT_MASK, ONE, WORD_SHIFT, bit_rank, popcount


@inlined
def set_target_bits(
    ids: NDArray[np.int64],
    begin: IntLike,
    end: IntLike,
    base_id: np.uint64,
    words: NDArray[np.uint64],
    touched_words: NDArray[np.int32],
) -> IntLike:
    """Set the bits of some targets; the words that were 0 before are listed, and how many these are
    is told.
    """
    count = np.int64(0)
    for i in range(begin, end):
        bit = np.uint64(ids[i]) - base_id
        word = words[bit >> WORD_SHIFT]
        touched_words[count] = np.int32(bit >> WORD_SHIFT)
        count += np.int64(word == 0)
        words[bit >> WORD_SHIFT] = word | ONE << (bit & BIT_MASK)
    return count


@inlined
def rank_words(
    words: NDArray[np.uint64],
    touched_words: NDArray[np.int32],
    count: IntLike,
    word_ranks: NDArray[np.int32],
    first: IntLike,
) -> IntLike:
    """Rank targets from ``first`` on, word after word as they are listed; the rank behind the last
    one's.
    """
    rank = np.int64(first)
    for k in range(count):
        word_ranks[touched_words[k]] = rank
        rank += np.int64(popcount(words[touched_words[k]]))
    return rank


@inlined
def is_ascending(ids: NDArray[np.int64], begin: IntLike, end: IntLike) -> bool:
    """Whether ids ascend: as they were marked in this order, ranks are places among them then."""
    ascending = True
    for i in range(begin + 1, end):
        ascending &= ids[i - 1] < ids[i]
    return bool(ascending)


@inlined
def order_by_rank(
    ids: NDArray[np.int64],
    begin: IntLike,
    end: IntLike,
    base_id: np.uint64,
    words: NDArray[np.uint64],
    word_ranks: NDArray[np.int32],
    rank_order: NDArray[np.int32],
) -> None:
    """Have targets, by their places among all, found by rank."""
    for i in range(begin, end):
        rank_order[bit_rank(np.uint64(ids[i]) - base_id, words, word_ranks)] = i


@inlined
def build_ranks(
    ids: NDArray[np.int64],
    begin: IntLike,
    end: IntLike,
    base_id: np.uint64,
    words: NDArray[np.uint64],
    touched_words: NDArray[np.int32],
    word_ranks: NDArray[np.int32],
    rank_order: NDArray[np.int32],
) -> tuple[np.int64, bool, bool]:
    """Mark and rank targets; how many words were touched, whether ranks are places among them, and
    whether none is there twice.
    """
    count, ids_ascend = (
        np.int64(set_target_bits(ids, begin, end, base_id, words, touched_words)),
        is_ascending(ids, begin, end),
    )
    is_unique = np.int64(rank_words(words, touched_words, count, word_ranks, begin)) == end
    if is_unique and not ids_ascend:
        order_by_rank(ids, begin, end, base_id, words, word_ranks, rank_order)
    return count, ids_ascend, bool(is_unique)


@inlined
def target_of_rank(rank: np.uint64, rank_order: NDArray[np.int32]) -> np.uint64:
    """The place of a target among all by its rank; no order: it is its rank."""
    return np.uint64(rank_order[rank]) if rank_order.shape[0] > 0 else rank


@inlined
def place_of_rank(
    rank: np.uint64, rank_order: NDArray[np.int32], places: NDArray[np.int32]
) -> np.uint64:
    """What is to be told of a target by its rank."""
    target = target_of_rank(rank, rank_order)
    return np.uint64(places[target]) if places.shape[0] > 0 else target
