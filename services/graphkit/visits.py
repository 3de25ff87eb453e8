"""Visits: what walks from a node come to, counted, and the nodes to which most of them came."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, inlined, kernel, settled
from graphkit.rng import TERMINATION, key_of, unit, word

_FEW, _FIELD = 64, 8
"""Visits that are compared with each other, not sorted, and bits of a number of them."""
_PLACE = (1 << _FIELD) - 1


@inlined
def _gap_of(n: Whole) -> Whole:
    """The first of the gaps of Shell's sort that are 1, 4, 13, ... (Knuth 1998, The Art of Computer Programming 3, section 5.2.1)."""
    gap = np.int64(1)
    while 3 * gap + 1 < n:
        gap = 3 * gap + 1
    return gap


@inlined
def _sort_nodes(ids: NDArray[np.int64], kinds: NDArray[np.int32], n: Whole) -> None:
    """Sort the first n nodes by id, then by type; in place, for there are many short lists of them."""
    typed, gap = kinds.shape[0] > 0, _gap_of(n)
    while gap > 0:
        for i in range(gap, n):
            node, kind, at = ids[i], kinds[i] if typed else np.int32(0), i
            while at >= gap and (ids[at - gap] > node or (typed and ids[at - gap] == node and kinds[at - gap] > kind)):
                ids[at] = ids[at - gap]
                if typed:
                    kinds[at] = kinds[at - gap]
                at -= gap
            ids[at] = node
            if typed:
                kinds[at] = kind
        gap //= 3


@inlined
def _rank(times: NDArray[np.int64], ranked: NDArray[np.int64], n: Whole) -> None:
    """The first n places by times, most first, then by place."""
    for i in range(n):
        ranked[i] = i
    gap = _gap_of(n)
    while gap > 0:
        for i in range(gap, n):
            place, at = ranked[i], i
            while at >= gap:
                other = ranked[at - gap]
                if times[other] > times[place] or (times[other] == times[place] and other < place):
                    break
                ranked[at] = other
                at -= gap
            ranked[at] = place
        gap //= 3


@inlined
def _weigh(ids: NDArray[np.int64], kinds: NDArray[np.int32], n: Whole, keys: NDArray[np.int64]) -> None:
    """A key for each of the first n nodes, n at most `_FEW`: its visits, then how few nodes come before it, then its place.

    Each is compared with each: no step hangs on what was found.
    """
    typed = kinds.shape[0] > 0
    for i in range(n):
        node, same, earlier = ids[i], np.int64(0), np.int64(0)
        if typed:
            for j in range(n):
                alike = ids[j] == node
                same += np.int64(alike & (kinds[j] == kinds[i]))
                earlier += np.int64((ids[j] < node) | (alike & (kinds[j] < kinds[i])))
        else:
            for j in range(n):
                same += np.int64(ids[j] == node)
                earlier += np.int64(ids[j] < node)
        keys[i] = same << 2 * _FIELD | (_FEW - earlier) << _FIELD | i


@inlined
def _highest(keys: NDArray[np.int64], n: Whole) -> np.int64:
    """The highest of the first n keys, which is taken away with all of its node's."""
    highest = np.int64(0)
    for i in range(n):
        highest = max(highest, keys[i])
    for i in range(n):
        keys[i] = np.int64(0) if keys[i] >> _FIELD == highest >> _FIELD else keys[i]
    return highest


@kernel
def _tally(
    keys: NDArray[np.uint64],
    termination: float,
    first: np.int64,
    walks: np.int64,
    ends: NDArray[np.int64],
    kinds: NDArray[np.int32],
    ids: NDArray[np.int64],
    types: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    typed, traversals = kinds.shape[0] > 0, ends.shape[1]
    most = walks * traversals
    met, met_kinds = np.empty(most, np.int64), np.empty(most if typed else 0, np.int32)
    known, known_kinds, times = np.empty(most, np.int64), np.empty(most if typed else 0, np.int32), np.empty(most, np.int64)
    ranked = np.empty(most, np.int64)
    for i in range(ids.shape[0]):
        found = 0
        for row in range(i * walks, (i + 1) * walks):
            for t in range(traversals):
                if ends[row, t] < 0 or (t > 0 and unit(word(keys[t], np.uint64(first + row))) < termination):
                    break
                met[found] = ends[row, t]
                if typed:
                    met_kinds[found] = kinds[row, t]
                found += 1
        if found <= _FEW:
            _weigh(met, met_kinds, found, known)
            for k in range(ids.shape[1]):
                highest = _highest(known, found)
                if highest == 0:
                    break
                place = highest & _PLACE
                ids[i, k], counts[i, k] = met[place], highest >> 2 * _FIELD
                if typed:
                    types[i, k] = met_kinds[place]
            continue
        _sort_nodes(met, met_kinds, found)
        several = 0
        for k in range(found):
            node = met[k]
            if several == 0 or known[several - 1] != node or (typed and known_kinds[several - 1] != met_kinds[k]):
                known[several], times[several] = node, 0
                if typed:
                    known_kinds[several] = met_kinds[k]
                several += 1
            times[several - 1] += 1
        _rank(times, ranked, several)
        for k in range(min(several, ids.shape[1])):
            ids[i, k], counts[i, k] = known[ranked[k]], times[ranked[k]]
            if typed:
                types[i, k] = known_kinds[ranked[k]]


def most_visited(
    seed: int, termination: float, first: int, walks: int, ends: NDArray[np.int64], kinds: NDArray[np.int32] | None, count: int
) -> tuple[NDArray[np.int64], NDArray[np.int32] | None, NDArray[np.int64]]:
    """The nodes that the walks of each node came to most often.

    Parameters
    ----------
    seed : int
    termination : float
        The probability that a walk ends before a traversal, any but its first: decided for traversal t of walk n by word n of
        ``key_of(seed, TERMINATION, t)``.
    first : int
        The number of the first of these walks.
    walks : int
        Of each node: those of node i are rows ``i * walks`` to ``(i + 1) * walks``.
    ends : int64[m * walks, traversals]
        Where each traversal ended; -1 from the one on that came to a dead end.
    kinds : int32[m * walks, traversals], optional
        The types of these nodes, where they differ.
    count : int
        Nodes to give.

    Returns
    -------
    ids : int64[m, count]
        By visits, most first, then by id, then by type; padded with -1.
    types : int32[m, count] or None
        Padded with -1.
    counts : int64[m, count]
        Visits, padded with 0.
    """
    m = ends.shape[0] // walks
    ids, counts = np.full((m, count), -1, np.int64), np.zeros((m, count), np.int64)
    types = np.full((0 if kinds is None else m, count), -1, np.int32)
    keys = np.array([key_of(seed, TERMINATION, t) for t in range(ends.shape[1])], np.uint64)
    given = np.zeros((0, 0), np.int32) if kinds is None else kinds
    _tally(settled(keys), float(termination), np.int64(first), np.int64(walks), settled(ends), settled(given), ids, types, counts)
    return ids, None if kinds is None else types, counts
