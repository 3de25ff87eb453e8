"""Which edges of a row lead to targets that are kept as bits, sixteen of them looked at at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.bits import LOW, ONE, SHIFT
from graphkit.jit import CHECKED, inlined, prefetch_at, register
from graphkit.lanes import LANES, WIDE, list_pairs, list_set
from storaged.kernel.telling import WIDTH

_S32, _HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_LANES, _NARROW, _LINE, _FAR = np.uint64(LANES), np.uint64(4), np.uint64(64), np.uint64(2048)
"""Bytes of a narrow id and of a cache line, and how far ahead pairs are asked for: the system's own guess is too late for them."""


@inlined
def _note(
    neighbor: np.uint64,
    what: np.uint64,
    low: np.uint64,
    words: NDArray[np.uint64],
    listed: NDArray[np.uint32],
    ats: NDArray[np.uint32],
    count: np.uint64,
) -> np.uint64:
    """List what an edge is known by, and its neighbor's bit, behind ``count`` others; how many there are then.

    Whether it leads to a target is hard to foretell, so that each is written, and counts or does not.
    """
    at = min(neighbor - low, np.uint64(64 * words.shape[0] - 1))
    listed[count], ats[count] = what, at
    found: np.uint64 = count + (words[at >> SHIFT] >> (at & LOW) & ONE)
    return found


@inlined
def scan(nbr: NDArray[np.int64], low: np.uint64, words: NDArray[np.uint64], edges: NDArray[np.uint32], ats: NDArray[np.uint32]) -> np.uint64:
    """List the edges of a row, or of a piece of one, that lead to targets, and these' bits; how many there are."""
    count = np.uint64(0)
    for edge in range(np.uint64(nbr.shape[0])):
        count = _note(np.uint64(nbr[edge]), np.uint64(edge), low, words, edges, ats, count)
    return count


@inlined
def _whole(size: np.uint64, low: np.uint64, words: NDArray[np.uint64]) -> np.uint64:
    """How many of a row's neighbors are taken sixteen at a time: none where a target may have an id that is not narrow, or nothing is won."""
    most = low + np.uint64(64 * words.shape[0])
    whole: np.uint64 = size - size % _LANES if WIDE and most >> _S32 == 0 else np.uint64(0)
    return whole


@inlined
def sift(nbr: NDArray[np.uint32], low: np.uint64, words: NDArray[np.uint64], edges: NDArray[np.uint32], ats: NDArray[np.uint32]) -> np.uint64:
    """As `scan` of narrow ids, sixteen at a time."""
    if CHECKED:
        register(nbr)
    count, size, at = np.uint64(0), np.uint64(nbr.shape[0]), np.uint64(nbr.ctypes.data)
    whole = _whole(size, low, words)
    for edge in range(np.uint64(0), whole, _LANES):
        count += list_set(at + _NARROW * edge, edge, low, words, edges, ats, count)
    for edge in range(whole, size):
        count = _note(np.uint64(nbr[edge]), np.uint64(edge), low, words, edges, ats, count)
    return count


@inlined
def sift_pairs(pairs: NDArray[np.uint64], low: np.uint64, words: NDArray[np.uint64], eids: NDArray[np.uint32], ats: NDArray[np.uint32]) -> np.uint64:
    """As `sift`, of neighbors with the ids of edges beside them: these are listed."""
    if CHECKED:
        register(pairs)
    count, size, at = np.uint64(0), np.uint64(pairs.shape[0]), np.uint64(pairs.ctypes.data)
    whole = _whole(size, low, words)
    for edge in range(np.uint64(0), whole, _LANES):  # two lines at a time
        prefetch_at(at + WIDTH * edge + _FAR)
        prefetch_at(at + WIDTH * edge + _FAR + _LINE)
        count += list_pairs(at + WIDTH * edge, low, words, eids, ats, count)
    for edge in range(whole, size):
        count = _note(pairs[edge] & _HALF, pairs[edge] >> _S32, low, words, eids, ats, count)
    return count
