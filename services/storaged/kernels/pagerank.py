"""Personalized PageRank where every part of a version is held: rounds of forward push over edges
where they lie, one start after another.

The sums are those of `asterism_graphkit.operators.pagerank_push`, in the same order and so with the
same bits. One start reaches few nodes, so that its hash table stays in the nearest cache."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    IntLike,
    f64_at,
    i64_at,
    inlined,
    kernel,
    prefetch_at,
    view_at,
)
from asterism_graphkit.random.rng import mix64
from storaged.kernels.adjacency import INDPTR, NBR, SLOTS, SUMS, WEIGHTS, find_row, parts_shift

START, ROUND, FRONTIER, PLACE, TYPE, EDGE, REACHED, PAIRS, WEIGHED, MASK = range(10)
"""Columns of the state of `push_mass`: the start at hand, its round (0: not begun), the size of the
frontier, the position in it, the edge type and the edge that come next, how many nodes were reached
in this round, how many the start has reached, of how many of these the weight sum is known, and the
last slot of the hash table that is in use."""
STATE = 10
DONE, OUT_OF_CAPACITY, UNFINISHED = range(3)
"""Results of `push_mass`: all is done, a start reaches more nodes than fit, or
``max_edges`` were read.
"""
MIN_SLOTS = 1 << 10
"""Slots of the hash table that a start begins with."""
_AHEAD = 12
"""Prefetch distance, in nodes."""
_EIGHTS = np.uint64(3)
_I64, _F32 = np.zeros(0, np.int64), np.zeros(0, np.float32)


class PushParams(NamedTuple):
    """How mass is pushed."""

    parts: np.int64
    mod: bool
    """Whether a node finds its part by remainder, or by hash."""
    uniform: bool
    """Whether every edge weighs 1."""
    alpha: float
    epsilon: float
    """As of `graphd.operators.pagerank.PagerankParams`."""
    max_edges: np.int64
    """Edges to read, up to the end of a node's along a type."""


class PageRankScores(NamedTuple):
    """The nodes of the highest scores for each of m starts, best first."""

    ids: NDArray[np.int64]
    """int64[m, top]; left as it is where there are no more."""
    kinds: NDArray[np.int32]
    """int32[m, top]: their types."""
    scores: NDArray[np.float64]
    """float64[m, top]."""
    residuals: NDArray[np.float64]
    """float64[m]: the mass of each start that is not settled."""


class PushBuffers(NamedTuple):
    """The nodes that a start reaches, by number; c at most."""

    hash_table: NDArray[np.int32]
    """int32[slots]: 1 and the number of a node, 0: none. 4 * c slots, `MIN_SLOTS` at least."""
    ids: NDArray[np.int64]
    """int64[c]."""
    kinds: NDArray[np.int32]
    """int32[c]: their types."""
    scores: NDArray[np.float64]
    """float64[c]: settled mass."""
    residuals: NDArray[np.float64]
    """float64[c]: mass that is not settled."""
    weight_sums: NDArray[np.float64]
    """float64[c]: the weight of all edges of each."""
    rounds: NDArray[np.int32]
    """int32[c]: the last round that reached each."""
    frontier: NDArray[np.int32]
    """int32[c]: the nodes that push mass in this round."""
    reached: NDArray[np.int32]
    """int32[c]: the nodes that were reached in this round."""
    per_weight: NDArray[np.float64]
    """float64[c]: the mass that a unit of weight carries, of each node of the frontier."""


@inlined
def _slot(node: np.int64, kind: np.int32, mask: np.int64) -> IntLike:
    return np.int64(mix64(np.uint64(node) + np.uint64(kind)) & np.uint64(mask))


@inlined
def _rebuild_hash_table(
    hash_table: NDArray[np.int32],
    mask: np.int64,
    ids: NDArray[np.int64],
    kinds: NDArray[np.int32],
    pairs: IntLike,
) -> None:
    """Rebuild a hash table with another number of slots."""
    for i in range(mask + 1):
        hash_table[i] = 0
    for pair in range(pairs):
        slot: IntLike = _slot(ids[pair], kinds[pair], mask)
        while hash_table[slot] != 0:
            slot = (slot + 1) & mask
        hash_table[slot] = np.int32(pair + 1)


@inlined
def _row_weight(table: NDArray[np.int64], part: IntLike, row: IntLike, uniform: bool) -> float:
    """Return the weight of all edges of a row along one edge type."""
    if not uniform and table[part, SUMS] != 0:
        return np.float64(f64_at(np.uint64(table[part, SUMS]), row))
    return np.float64(
        i64_at(np.uint64(table[part, INDPTR]), row + 1)
        - i64_at(np.uint64(table[part, INDPTR]), row)
    )


@inlined
def _precedes(a: IntLike, b: IntLike, ids: NDArray[np.int64], kinds: NDArray[np.int32]) -> bool:
    """Return whether one pair precedes another: by id, then by type."""
    return bool(ids[a] < ids[b] or (ids[a] == ids[b] and kinds[a] < kinds[b]))


@inlined
def _sort(
    frontier: NDArray[np.int32], size: IntLike, ids: NDArray[np.int64], kinds: NDArray[np.int32]
) -> None:
    """Sort a frontier by Shell's method: it has a handful of nodes most of the time."""
    gap = np.int64(1)
    while gap < size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, size):
            pair, pos = frontier[i], np.int64(i)
            while pos >= gap and _precedes(pair, frontier[pos - gap], ids, kinds):
                frontier[pos] = frontier[pos - gap]
                pos -= gap
            frontier[pos] = pair
        gap //= 3


@inlined
def _ranks_before(
    a: IntLike,
    b: IntLike,
    scores: NDArray[np.float64],
    ids: NDArray[np.int64],
    kinds: NDArray[np.int32],
) -> bool:
    """Return whether one pair's score is the higher one; ties by id, then by type."""
    return scores[a] > scores[b] or (scores[a] == scores[b] and _precedes(a, b, ids, kinds))


@inlined
def _sift_down(
    heap: NDArray[np.int32],
    size: IntLike,
    pos: IntLike,
    scores: NDArray[np.float64],
    ids: NDArray[np.int64],
    kinds: NDArray[np.int32],
) -> None:
    """Sift an entry down a heap that has its worst entry on top."""
    pair = heap[pos]
    while 2 * pos + 1 < size:
        child = 2 * pos + 1
        if child + 1 < size and _ranks_before(heap[child], heap[child + 1], scores, ids, kinds):
            child += 1
        if not _ranks_before(pair, heap[child], scores, ids, kinds):
            break
        heap[pos] = heap[child]
        pos = child
    heap[pos] = pair


@inlined
def _select_top(
    pairs: IntLike,
    scores: NDArray[np.float64],
    ids: NDArray[np.int64],
    kinds: NDArray[np.int32],
    top: IntLike,
    heap: NDArray[np.int32],
) -> IntLike:
    """Select the pairs of the highest scores, best first; return how many they are."""
    size = np.int64(0)
    for pair in range(pairs):
        if scores[pair] <= 0.0:
            continue
        if size < top:
            heap[size] = pair
            size += 1
            if size == top:
                for pos in range(size // 2 - 1, -1, -1):
                    _sift_down(heap, size, pos, scores, ids, kinds)
        elif _ranks_before(pair, heap[0], scores, ids, kinds):
            heap[0] = pair
            _sift_down(heap, size, np.int64(0), scores, ids, kinds)
    if size < top:
        for pos in range(size // 2 - 1, -1, -1):
            _sift_down(heap, size, pos, scores, ids, kinds)
    for last in range(size - 1, 0, -1):
        heap[0], heap[last] = heap[last], heap[0]
        _sift_down(heap, last, np.int64(0), scores, ids, kinds)
    return size


@kernel
def _sum_weights(
    tables: NDArray[np.int64],
    params: PushParams,
    local_types: NDArray[np.int32],
    begin: IntLike,
    end: IntLike,
    ids: NDArray[np.int64],
    kinds: NDArray[np.int32],
    weight_sums: NDArray[np.float64],
) -> None:
    """Write the weight of all edges of the nodes ``begin`` to ``end``, type after type."""
    parts, mod, uniform = params.parts, params.mod, params.uniform
    shift = parts_shift(parts)
    for pair in range(begin, end):
        ahead = pair + _AHEAD
        for t in range(local_types.shape[0]):
            if ahead < end and local_types[t] == kinds[ahead]:
                part, row = find_row(ids[ahead], parts, shift, mod, tables[t])
                if row >= 0:
                    sum_address = (
                        tables[t, part, INDPTR]
                        if uniform or tables[t, part, SUMS] == 0
                        else tables[t, part, SUMS]
                    )
                    prefetch_at(np.uint64(sum_address) + (np.uint64(row) << _EIGHTS))
        weight_sum = 0.0
        for t in range(local_types.shape[0]):
            if local_types[t] == kinds[pair]:
                part, row = find_row(ids[pair], parts, shift, mod, tables[t])
                if row >= 0:
                    weight_sum += _row_weight(tables[t], part, row, uniform)
        weight_sums[pair] = weight_sum


@inlined
def _select_frontier(
    reached: NDArray[np.int32],
    count: IntLike,
    epsilon: float,
    weight_sums: NDArray[np.float64],
    residuals: NDArray[np.float64],
    frontier: NDArray[np.int32],
) -> IntLike:
    """Select the nodes with residuals above the bound; return how many they are."""
    size = np.int64(0)
    for i in range(count):
        if residuals[reached[i]] > epsilon * weight_sums[reached[i]]:
            frontier[size] = reached[i]
            size += 1
    return size


@inlined
def _absorb_residuals(
    frontier: NDArray[np.int32],
    size: IntLike,
    alpha: float,
    weight_sums: NDArray[np.float64],
    scores: NDArray[np.float64],
    residuals: NDArray[np.float64],
    per_weight: NDArray[np.float64],
) -> None:
    """As `asterism_graphkit.operators.pagerank_push.absorb_residuals`."""
    for i in range(size):
        pair = frontier[i]
        weight_sum, amount = weight_sums[pair], residuals[pair]
        residuals[pair] = 0.0
        scores[pair] += alpha * amount if weight_sum > 0.0 else amount
        per_weight[i] = (1.0 - alpha) * amount / weight_sum if weight_sum > 0.0 else 0.0


@inlined
def _begin_start(
    node: np.int64, kind: np.int32, state: NDArray[np.int64], buffers: PushBuffers
) -> None:
    """Put all mass on a start, the only pair of its first round."""
    hash_table, ids, kinds, scores, residuals = buffers[:5]
    rounds, frontier = buffers[6], buffers[7]
    state[MASK], state[PAIRS], state[WEIGHED], state[FRONTIER] = MIN_SLOTS - 1, 1, 0, 1
    state[ROUND], state[PLACE], state[TYPE], state[EDGE], state[REACHED] = 1, -1, 0, 0, 0
    ids[0], kinds[0], scores[0], residuals[0], rounds[0], frontier[0] = node, kind, 0.0, 1.0, 0, 0
    _rebuild_hash_table(hash_table, state[MASK], ids, kinds, np.int64(1))


@kernel
def push_mass(
    tables: NDArray[np.int64],
    params: PushParams,
    local_types: NDArray[np.int32],
    remote_types: NDArray[np.int32],
    starts: NDArray[np.int64],
    start_kinds: NDArray[np.int32],
    state: NDArray[np.int64],
    heap: NDArray[np.int32],
    buffers: PushBuffers,
    out: PageRankScores,
) -> int:
    """Push the mass of one start after another, until all are done, ``max_edges`` were read, or
    a start reaches more nodes than fit.

    Parameters
    ----------
    tables : int64[types, parts, COLUMNS]
        Of each edge type; all parts are held.
    params : PushParams
    local_types, remote_types : int32[types]
        The node types at both ends of each.
    starts, start_kinds : int64[m], int32[m]
        Nodes and their types; type -1 is no node: its row is left as it is.
    state : int64[STATE], inout
        Zeros at first: where to go on.
    heap : int32[top]
        Scratch.
    buffers : PushBuffers, inout
    out : PageRankScores

    Returns
    -------
    int
        `DONE`, `OUT_OF_CAPACITY` or `UNFINISHED`.
    """
    parts, mod, uniform, alpha, epsilon, max_edges = params
    hash_table, ids, kinds, scores, residuals = buffers[:5]
    weight_sums, rounds, frontier, reached, per_weight = buffers[5:]
    shift, capacity, num_scanned = parts_shift(parts), ids.shape[0], np.int64(0)
    while state[START] < starts.shape[0]:
        s = state[START]
        if start_kinds[s] < 0:
            state[START] = s + 1
            continue
        if state[ROUND] == 0:
            _begin_start(starts[s], start_kinds[s], state, buffers)
        pairs, mask, count = state[PAIRS], state[MASK], state[REACHED]
        while state[FRONTIER] > 0:
            if state[PLACE] < 0:  # a round begins: its frontier settles before anything arrives
                _sum_weights(
                    tables, params, local_types, state[WEIGHED], pairs, ids, kinds, weight_sums
                )
                state[WEIGHED] = pairs
                if state[ROUND] > 1:
                    size = _select_frontier(
                        reached, count, epsilon, weight_sums, residuals, frontier
                    )
                    _sort(frontier, size, ids, kinds)
                    state[FRONTIER], count = size, 0
                _absorb_residuals(
                    frontier, state[FRONTIER], alpha, weight_sums, scores, residuals, per_weight
                )
                state[PLACE] = 0
            for i in range(state[PLACE], state[FRONTIER]):
                node, kind, mass_per_weight = ids[frontier[i]], kinds[frontier[i]], per_weight[i]
                for t in range(state[TYPE], local_types.shape[0]):
                    if local_types[t] != kind or weight_sums[frontier[i]] == 0.0:
                        continue
                    if num_scanned >= max_edges:
                        state[PLACE], state[TYPE], state[PAIRS], state[MASK], state[REACHED] = (
                            i,
                            t,
                            pairs,
                            mask,
                            count,
                        )
                        return UNFINISHED
                    part, row = find_row(node, parts, shift, mod, tables[t])
                    if row < 0:
                        continue
                    begin = i64_at(np.uint64(tables[t, part, INDPTR]), row)
                    degree = i64_at(np.uint64(tables[t, part, INDPTR]), row + 1) - begin
                    nbr = view_at(tables[t, part, NBR], tables[t, part, SLOTS], _I64)
                    weighted = not uniform and tables[t, part, WEIGHTS] != 0
                    slot_weights = view_at(
                        tables[t, part, WEIGHTS],
                        tables[t, part, SLOTS] if weighted else np.int64(0),
                        _F32,
                    )
                    for e in range(begin + state[EDGE], begin + degree):
                        if weighted and not slot_weights[e] > 0.0:
                            continue
                        neighbor, slot = nbr[e], _slot(nbr[e], remote_types[t], mask)
                        while hash_table[slot] != 0 and not (
                            ids[hash_table[slot] - 1] == neighbor
                            and kinds[hash_table[slot] - 1] == remote_types[t]
                        ):
                            slot = (slot + 1) & mask
                        pair = hash_table[slot] - 1
                        if pair < 0:
                            if pairs == capacity:
                                state[PLACE], state[TYPE], state[EDGE], state[PAIRS] = (
                                    i,
                                    t,
                                    e - begin,
                                    pairs,
                                )
                                state[MASK], state[REACHED] = mask, count
                                return OUT_OF_CAPACITY
                            pair = np.int32(pairs)
                            ids[pair], kinds[pair], scores[pair], residuals[pair], rounds[pair] = (
                                neighbor,
                                remote_types[t],
                                0.0,
                                0.0,
                                0,
                            )
                            hash_table[slot] = np.int32(pairs + 1)
                            pairs += 1
                            if 2 * pairs > mask:
                                mask = 2 * mask + 1
                                _rebuild_hash_table(hash_table, mask, ids, kinds, pairs)
                        residuals[pair] += (
                            mass_per_weight * np.float64(slot_weights[e])
                            if weighted
                            else mass_per_weight
                        )
                        if rounds[pair] != state[ROUND]:
                            rounds[pair] = np.int32(state[ROUND])
                            reached[count] = pair
                            count += 1
                    state[EDGE] = 0
                    num_scanned += degree
                state[TYPE] = 0
            state[PLACE], state[ROUND] = -1, state[ROUND] + 1
        total = 0.0
        for pair in range(pairs):
            total += residuals[pair]
        out.residuals[s] = total
        top_count = _select_top(pairs, scores, ids, kinds, heap.shape[0], heap)
        for i in range(top_count):
            out.ids[s, i], out.kinds[s, i], out.scores[s, i] = (
                ids[heap[i]],
                kinds[heap[i]],
                scores[heap[i]],
            )
        state[START], state[ROUND] = s + 1, 0
    return DONE
