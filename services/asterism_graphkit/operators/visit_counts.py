"""Count the nodes that random walks visit, and select the most visited ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import IntLike, as_kernel_array, inlined, kernel
from asterism_graphkit.random.rng import (
    TERMINATION,
    derive_mixed,
    key_of,
    node_tag,
    unit_float,
    word,
)

_FEW, _FIELD = 64, 8
"""Up to this many visits are compared pairwise instead of sorted; bits of a count."""
_PLACE = (1 << _FIELD) - 1


@inlined
def _gap_of(n: IntLike) -> IntLike:
    """Return the first gap of Shell's sort: the gaps are 1, 4, 13, ...

    Knuth 1998, The Art of Computer Programming 3, section 5.2.1.
    """
    gap = np.int64(1)
    while 3 * gap + 1 < n:
        gap = 3 * gap + 1
    return gap


@inlined
def _sort_nodes(ids: NDArray[np.int64], types: NDArray[np.int32], n: IntLike) -> None:
    """Sort the first n nodes in place by id, then by type.

    Shell's sort needs no memory, which suits many short lists.
    """
    typed, gap = types.shape[0] > 0, _gap_of(n)
    while gap > 0:
        for i in range(gap, n):
            node, node_type, at = ids[i], types[i] if typed else np.int32(0), i
            while at >= gap and (
                ids[at - gap] > node
                or (typed and ids[at - gap] == node and types[at - gap] > node_type)
            ):
                ids[at] = ids[at - gap]
                if typed:
                    types[at] = types[at - gap]
                at -= gap
            ids[at] = node
            if typed:
                types[at] = node_type
        gap //= 3


@inlined
def _rank(counts: NDArray[np.int64], order: NDArray[np.int64], n: IntLike) -> None:
    """Order the first n entries by count, descending, then by index."""
    for i in range(n):
        order[i] = i
    gap = _gap_of(n)
    while gap > 0:
        for i in range(gap, n):
            candidate, at = order[i], i
            while at >= gap:
                other = order[at - gap]
                if counts[other] > counts[candidate] or (
                    counts[other] == counts[candidate] and other < candidate
                ):
                    break
                order[at] = other
                at -= gap
            order[at] = candidate
        gap //= 3


@inlined
def _weigh(
    ids: NDArray[np.int64], types: NDArray[np.int32], n: IntLike, keys: NDArray[np.int64]
) -> None:
    """Compute a key for each of the first n nodes, n at most `_FEW`.

    The key has the number of visits, then a value that is larger for smaller nodes, then the index.
    Every node is compared with every other, without branches on the data.
    """
    typed = types.shape[0] > 0
    for i in range(n):
        node, visits, smaller = ids[i], np.int64(0), np.int64(0)
        if typed:
            for j in range(n):
                same_id = ids[j] == node
                visits += np.int64(same_id & (types[j] == types[i]))
                smaller += np.int64((ids[j] < node) | (same_id & (types[j] < types[i])))
        else:
            for j in range(n):
                visits += np.int64(ids[j] == node)
                smaller += np.int64(ids[j] < node)
        keys[i] = visits << 2 * _FIELD | (_FEW - smaller) << _FIELD | i


@inlined
def _highest(keys: NDArray[np.int64], n: IntLike) -> np.int64:
    """Return the highest of the first n keys, and clear all keys of the same node."""
    highest = np.int64(0)
    for i in range(n):
        highest = max(highest, keys[i])
    for i in range(n):
        keys[i] = np.int64(0) if keys[i] >> _FIELD == highest >> _FIELD else keys[i]
    return highest


@kernel
def _count_visits(
    keys: NDArray[np.uint64],
    termination: float,
    first_walk: np.int64,
    walks: np.int64,
    start_nodes: NDArray[np.int64],
    end_nodes: NDArray[np.int64],
    end_types: NDArray[np.int32],
    ids: NDArray[np.int64],
    types: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    typed, traversals = end_types.shape[0] > 0, end_nodes.shape[1]
    max_visits = walks * traversals
    visited, visited_types = (
        np.empty(max_visits, np.int64),
        np.empty(max_visits if typed else 0, np.int32),
    )
    distinct, distinct_types, frequencies = (
        np.empty(max_visits, np.int64),
        np.empty(max_visits if typed else 0, np.int32),
        np.empty(max_visits, np.int64),
    )
    order = np.empty(max_visits, np.int64)
    for i in range(ids.shape[0]):
        visit_count = 0
        for row in range(i * walks, (i + 1) * walks):
            tag = node_tag(np.uint64(first_walk + row), start_nodes[i], np.int64(0))
            for t in range(traversals):
                if end_nodes[row, t] < 0 or (
                    t > 0
                    and unit_float(word(derive_mixed(keys[t], tag), np.uint64(0))) < termination
                ):
                    break
                visited[visit_count] = end_nodes[row, t]
                if typed:
                    visited_types[visit_count] = end_types[row, t]
                visit_count += 1
        if visit_count <= _FEW:
            _weigh(visited, visited_types, visit_count, distinct)
            for k in range(ids.shape[1]):
                highest = _highest(distinct, visit_count)
                if highest == 0:
                    break
                index = highest & _PLACE
                ids[i, k], counts[i, k] = visited[index], highest >> 2 * _FIELD
                if typed:
                    types[i, k] = visited_types[index]
            continue
        _sort_nodes(visited, visited_types, visit_count)
        distinct_count = 0
        for k in range(visit_count):
            node = visited[k]
            if (
                distinct_count == 0
                or distinct[distinct_count - 1] != node
                or (typed and distinct_types[distinct_count - 1] != visited_types[k])
            ):
                distinct[distinct_count], frequencies[distinct_count] = node, 0
                if typed:
                    distinct_types[distinct_count] = visited_types[k]
                distinct_count += 1
            frequencies[distinct_count - 1] += 1
        _rank(frequencies, order, distinct_count)
        for k in range(min(distinct_count, ids.shape[1])):
            ids[i, k], counts[i, k] = distinct[order[k]], frequencies[order[k]]
            if typed:
                types[i, k] = distinct_types[order[k]]


def most_visited(
    seed: int,
    termination: float,
    first_walk: int,
    walks: int,
    start_nodes: NDArray[np.int64],
    end_nodes: NDArray[np.int64],
    end_types: NDArray[np.int32] | None,
    count: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32] | None, NDArray[np.int64]]:
    """Return the nodes that the walks of each node visited most often.

    This is the neighborhood of PinSage's importance sampling: Ying et al. 2018, *Graph
    convolutional neural networks for web-scale recommender systems*, KDD.

    Parameters
    ----------
    seed : int
    termination : float
        Probability that a walk ends before a traversal other than its first. The key derived from
        ``key_of(seed, TERMINATION, t)`` by walk n and its start decides it for traversal t.
    first_walk : int
        Number of the first of these walks.
    walks : int
        Walks per node: those of node i are rows ``i * walks`` to ``(i + 1) * walks``.
    start_nodes : int64[m]
    end_nodes : int64[m * walks, traversals]
        End of each traversal; -1 from the first dead end on.
    end_types : int32[m * walks, traversals], optional
        Types of these nodes if they differ.
    count : int
        Maximum number of nodes to return for each node.

    Returns
    -------
    ids : int64[m, count]
        By visits, descending, then by id, then by type; padded with -1.
    types : int32[m, count] or None
        Padded with -1.
    counts : int64[m, count]
        Number of visits, padded with 0.
    """
    m = end_nodes.shape[0] // walks
    ids, counts = np.full((m, count), -1, np.int64), np.zeros((m, count), np.int64)
    types = np.full((0 if end_types is None else m, count), -1, np.int32)
    keys = np.array([key_of(seed, TERMINATION, t) for t in range(end_nodes.shape[1])], np.uint64)
    types_or_empty = np.zeros((0, 0), np.int32) if end_types is None else end_types
    _count_visits(
        as_kernel_array(keys),
        float(termination),
        np.int64(first_walk),
        np.int64(walks),
        as_kernel_array(start_nodes),
        as_kernel_array(end_nodes),
        as_kernel_array(types_or_empty),
        ids,
        types,
        counts,
    )
    return ids, None if end_types is None else types, counts
