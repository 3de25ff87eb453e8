"""Targets as bits of words, and by rank: how many others have smaller ids (Jacobson 1989, Space-efficient static trees and graphs, section 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.bits import LOW, ONE, SHIFT, ones, rank_of
from graphkit.jit import Whole, inlined


@inlined
def mark(ids: NDArray[np.int64], begin: Whole, end: Whole, low: np.uint64, words: NDArray[np.uint64], touched: NDArray[np.int32]) -> Whole:
    """Set the bits of some targets; the words that were 0 before are listed, and how many these are is told."""
    count = np.int64(0)
    for i in range(begin, end):
        at = np.uint64(ids[i]) - low
        before = words[at >> SHIFT]
        touched[count] = np.int32(at >> SHIFT)
        count += np.int64(before == 0)
        words[at >> SHIFT] = before | ONE << (at & LOW)
    return count


@inlined
def enter(words: NDArray[np.uint64], touched: NDArray[np.int32], count: Whole, firsts: NDArray[np.int32], first: Whole) -> Whole:
    """Rank targets from ``first`` on, word after word as they are listed; the rank behind the last one's."""
    rank = np.int64(first)
    for k in range(count):
        firsts[touched[k]] = rank
        rank += np.int64(ones(words[touched[k]]))
    return rank


@inlined
def ascends(ids: NDArray[np.int64], begin: Whole, end: Whole) -> bool:
    """Whether ids ascend: as they were marked in this order, ranks are places among them then."""
    ascending = True
    for i in range(begin + 1, end):
        ascending &= ids[i - 1] < ids[i]
    return bool(ascending)


@inlined
def sort(
    ids: NDArray[np.int64], begin: Whole, end: Whole, low: np.uint64, words: NDArray[np.uint64], firsts: NDArray[np.int32], ranked: NDArray[np.int32]
) -> None:
    """Have targets, by their places among all, found by rank."""
    for i in range(begin, end):
        ranked[rank_of(np.uint64(ids[i]) - low, words, firsts)] = i


@inlined
def rank_all(
    ids: NDArray[np.int64],
    begin: Whole,
    end: Whole,
    low: np.uint64,
    words: NDArray[np.uint64],
    touched: NDArray[np.int32],
    firsts: NDArray[np.int32],
    ranked: NDArray[np.int32],
) -> tuple[np.int64, bool, bool]:
    """Mark and rank targets; how many words were touched, whether ranks are places among them, and whether none is there twice."""
    count, straight = np.int64(mark(ids, begin, end, low, words, touched)), ascends(ids, begin, end)
    sound = np.int64(enter(words, touched, count, firsts, begin)) == end
    if sound and not straight:
        sort(ids, begin, end, low, words, firsts, ranked)
    return count, straight, bool(sound)


@inlined
def target_at(rank: np.uint64, ranked: NDArray[np.int32]) -> np.uint64:
    """The place of a target among all by its rank; no order: it is its rank."""
    return np.uint64(ranked[rank]) if ranked.shape[0] > 0 else rank


@inlined
def told_of(rank: np.uint64, ranked: NDArray[np.int32], places: NDArray[np.int32]) -> np.uint64:
    """What is to be told of a target by its rank."""
    at = target_at(rank, ranked)
    return np.uint64(places[at]) if places.shape[0] > 0 else at
