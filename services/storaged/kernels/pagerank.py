"""Personalized PageRank by forward push on a host that holds all partitions of a version.

Starts are processed one at a time, and edges are read in place. The sums are those of
`asterism_graphkit.operators.pagerank_push`, in the same order and so with the same bits. One start
reaches few nodes, so its hash table stays in the fastest cache.
"""

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
from storaged.kernels.adjacency_rows import INDPTR, NBR, SLOTS, SUMS, WEIGHTS, find_row, parts_shift

START, ROUND, FRONTIER, PLACE, TYPE, EDGE, REACHED, PAIRS, WEIGHED, MASK = range(10)
"""Columns of the state of `push_mass`.

The current start, its round (0: not begun), the size of the frontier, the position in it, the next
edge type and edge, the number of nodes reached in this round, the number of nodes that the start
has reached, how many of these have a known weight sum, and the last slot of the part of the hash
table in use.
"""
STATE = 10
DONE, OUT_OF_CAPACITY, UNFINISHED = range(3)
"""Results of `push_mass`.

All starts are done, a start reaches more nodes than fit, or ``max_edges`` were read.
"""
MIN_SLOTS = 1 << 10
"""Initial number of hash table slots for a start."""
_AHEAD = 12
"""Prefetch distance in nodes."""
_EIGHTS = np.uint64(3)
_I64, _F32 = np.zeros(0, np.int64), np.zeros(0, np.float32)


class PushParams(NamedTuple):
    """Parameters of `push_mass`."""

    parts: np.int64
    mod: bool
    """True if the partition of a node is its id modulo ``parts``; else it follows from a hash."""
    uniform: bool
    """True if every edge counts with weight 1."""
    alpha: float
    epsilon: float
    """Tolerance; ``alpha`` and ``epsilon`` as in `graphd.operators.pagerank.PagerankParams`."""
    max_edges: np.int64
    """Edges to read in one call, rounded up to a node's edges of one type."""


class PageRankScores(NamedTuple):
    """Nodes with the highest scores for each of m starts, best first."""

    ids: NDArray[np.int64]
    """Node ids, int64[m, top]; unchanged where there are no more."""
    kinds: NDArray[np.int32]
    """Node types, int32[m, top]."""
    scores: NDArray[np.float64]
    """Scores, float64[m, top]."""
    residuals: NDArray[np.float64]
    """Unsettled mass of each start, float64[m]."""


class PushBuffers(NamedTuple):
    """Nodes that a start reaches, by local id; at most c."""

    hash_table: NDArray[np.int32]
    """Local id of a node plus 1, or 0, int32[slots].

    There are 4 * c slots, and at least `MIN_SLOTS`.
    """
    ids: NDArray[np.int64]
    """Node ids, int64[c]."""
    kinds: NDArray[np.int32]
    """Node types, int32[c]."""
    scores: NDArray[np.float64]
    """Settled mass, float64[c]."""
    residuals: NDArray[np.float64]
    """Unsettled mass, float64[c]."""
    weight_sums: NDArray[np.float64]
    """Total weight of the edges of each node, float64[c]."""
    rounds: NDArray[np.int32]
    """Last round that reached each node, int32[c]."""
    frontier: NDArray[np.int32]
    """Nodes that push mass in this round, int32[c]."""
    reached: NDArray[np.int32]
    """Nodes that were reached in this round, int32[c]."""
    per_weight: NDArray[np.float64]
    """Mass per unit of edge weight for each node of the frontier, float64[c]."""


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
    """Rebuild a hash table for a new number of slots."""
    for i in range(mask + 1):
        hash_table[i] = 0
    for pair in range(pairs):
        slot: IntLike = _slot(ids[pair], kinds[pair], mask)
        while hash_table[slot] != 0:
            slot = (slot + 1) & mask
        hash_table[slot] = np.int32(pair + 1)


@inlined
def _row_weight(table: NDArray[np.int64], part: IntLike, row: IntLike, uniform: bool) -> float:
    """Return the total weight of a row's edges along one edge type."""
    if not uniform and table[part, SUMS] != 0:
        return np.float64(f64_at(np.uint64(table[part, SUMS]), row))
    return np.float64(
        i64_at(np.uint64(table[part, INDPTR]), row + 1)
        - i64_at(np.uint64(table[part, INDPTR]), row)
    )


@inlined
def _precedes(a: IntLike, b: IntLike, ids: NDArray[np.int64], kinds: NDArray[np.int32]) -> bool:
    """Return whether pair a precedes pair b: by id, then by type."""
    return bool(ids[a] < ids[b] or (ids[a] == ids[b] and kinds[a] < kinds[b]))


@inlined
def _sort(
    frontier: NDArray[np.int32], size: IntLike, ids: NDArray[np.int64], kinds: NDArray[np.int32]
) -> None:
    """Sort a frontier with Shell's sort; it usually has a handful of nodes."""
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
    """Return whether pair a has the higher score; ties are broken by id, then by type."""
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
    """Select the pairs with the highest scores, best first; return their number."""
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
    """Write the total edge weight of nodes ``begin`` to ``end``, summed type by type."""
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
    """Select the nodes with residuals above the bound; return their number."""
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
    """Settle residuals as `asterism_graphkit.operators.pagerank_push.absorb_residuals` does."""
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
    """Initialize a start: it has all mass and is the only pair of the first round."""
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
    """Push the mass of each start until all are done, or a limit is reached.

    A call ends early after ``max_edges`` edges, or if a start reaches more nodes than fit. Forward
    push: Andersen, Chung & Lang 2006, *Local graph partitioning using PageRank vectors*, FOCS.

    Parameters
    ----------
    tables : int64[types, parts, COLUMNS]
        Address table of each edge type. All partitions are held.
    params : PushParams
    local_types, remote_types : int32[types]
        Node types at the local and the remote end of each edge type.
    starts, start_kinds : int64[m], int32[m]
        Nodes and their types. Type -1 is no node: its row of ``out`` is unchanged.
    state : int64[STATE], inout
        Position to resume from; all zero for the first call.
    heap : int32[top]
        Scratch array.
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
            if state[PLACE] < 0:  # a new round: its frontier settles before any mass arrives
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
