"""Personalised PageRank where every part of a version is held: rounds of forward push over edges where they lie, one start after another.

What `graphkit.push` does of edges that were read, by the same sums in the same order and so with the same bits. A start by itself
comes to few nodes, whose table stays in the nearest cache.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, f64_at, i64_at, inlined, kernel, prefetch_at, view_at
from graphkit.rng import mix64
from storaged.kernel.table import INDPTR, NBR, SLOTS, SUMS, WEIGHTS, find_row, shift_of_parts

START, TURN, FRONT, PLACE, TYPE, EDGE, MET, PAIRS, WEIGHED, MASK = range(10)
"""Of the state of `push`: the start at hand, its round (0: it has not begun), how many nodes hand on in it, which of them comes next
and with which edge of which type, how many were met in it, how many the start came to, of how many of them it is known what their
edges weigh, and the last slot of the table that is in use."""
STATE = 10
DONE, NO_ROOM, GO_ON = range(3)
"""What `push` says: all is done, the start comes to more nodes than there is room for, or enough edges were looked at."""
SMALLEST = 1 << 10
"""Slots that a start begins with."""
_AHEAD = 12
_EIGHTS = np.uint64(3)
_I64, _F32 = np.zeros(0, np.int64), np.zeros(0, np.float32)


@inlined
def _slot(node: np.int64, kind: np.int32, mask: np.int64) -> Whole:
    return np.int64(mix64(np.uint64(node) + np.uint64(kind)) & np.uint64(mask))


@inlined
def _put_all(table: NDArray[np.int32], mask: np.int64, ids: NDArray[np.int64], kinds: NDArray[np.int32], pairs: Whole) -> None:
    """Make a table of more slots of what there is."""
    for slot in range(mask + 1):
        table[slot] = 0
    for pair in range(pairs):
        at: Whole = _slot(ids[pair], kinds[pair], mask)
        while table[at] != 0:
            at = (at + 1) & mask
        table[at] = np.int32(pair + 1)


@inlined
def _sum_at(table: NDArray[np.int64], part: Whole, row: Whole, uniform: bool) -> float:
    """What the edges of a row weigh together, along one edge type."""
    if not uniform and table[part, SUMS] != 0:
        return np.float64(f64_at(np.uint64(table[part, SUMS]), row))
    return np.float64(i64_at(np.uint64(table[part, INDPTR]), row + 1) - i64_at(np.uint64(table[part, INDPTR]), row))


@inlined
def _before(a: Whole, b: Whole, ids: NDArray[np.int64], kinds: NDArray[np.int32]) -> bool:
    """Whether one pair goes before another: by id, then by type."""
    return bool(ids[a] < ids[b] or (ids[a] == ids[b] and kinds[a] < kinds[b]))


@inlined
def _sort(front: NDArray[np.int32], size: Whole, ids: NDArray[np.int64], kinds: NDArray[np.int32]) -> None:
    """Shell's sort: a front has a handful of nodes most of the time."""
    gap = np.int64(1)
    while gap < size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, size):
            pair, at = front[i], np.int64(i)
            while at >= gap and _before(pair, front[at - gap], ids, kinds):
                front[at] = front[at - gap]
                at -= gap
            front[at] = pair
        gap //= 3


@inlined
def _better(a: Whole, b: Whole, scores: NDArray[np.float64], ids: NDArray[np.int64], kinds: NDArray[np.int32]) -> bool:
    """Whether one pair's score is the higher one; ties by id, then by type."""
    return scores[a] > scores[b] or (scores[a] == scores[b] and _before(a, b, ids, kinds))


@inlined
def _sink(heap: NDArray[np.int32], size: Whole, at: Whole, scores: NDArray[np.float64], ids: NDArray[np.int64], kinds: NDArray[np.int32]) -> None:
    """Let an entry of a heap, whose worst one is on top, sink to its place."""
    pair = heap[at]
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and _better(heap[below], heap[below + 1], scores, ids, kinds):
            below += 1
        if not _better(pair, heap[below], scores, ids, kinds):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = pair


@inlined
def _best(pairs: Whole, scores: NDArray[np.float64], ids: NDArray[np.int64], kinds: NDArray[np.int32], top: Whole, heap: NDArray[np.int32]) -> Whole:
    """The pairs of the highest scores, best first; gives how many they are."""
    size = np.int64(0)
    for pair in range(pairs):
        if scores[pair] <= 0.0:
            continue
        if size < top:
            heap[size] = pair
            size += 1
            if size == top:
                for at in range(size // 2 - 1, -1, -1):
                    _sink(heap, size, at, scores, ids, kinds)
        elif _better(pair, heap[0], scores, ids, kinds):
            heap[0] = pair
            _sink(heap, size, np.int64(0), scores, ids, kinds)
    if size < top:
        for at in range(size // 2 - 1, -1, -1):
            _sink(heap, size, at, scores, ids, kinds)
    for last in range(size - 1, 0, -1):
        heap[0], heap[last] = heap[last], heap[0]
        _sink(heap, last, np.int64(0), scores, ids, kinds)
    return size


@kernel
def _weigh(
    begin: Whole,
    end: Whole,
    ids: NDArray[np.int64],
    kinds: NDArray[np.int32],
    parts: np.int64,
    mod: bool,
    tables: NDArray[np.int64],
    near: NDArray[np.int32],
    uniform: bool,
    masses: NDArray[np.float64],
) -> None:
    """What the edges of some pairs' nodes weigh, the edge types one after another."""
    shift = shift_of_parts(parts)
    for pair in range(begin, end):
        ahead = pair + _AHEAD
        for t in range(near.shape[0]):
            if ahead < end and near[t] == kinds[ahead]:
                part, row = find_row(ids[ahead], parts, shift, mod, tables[t])
                if row >= 0:
                    of = tables[t, part, INDPTR] if uniform or tables[t, part, SUMS] == 0 else tables[t, part, SUMS]
                    prefetch_at(np.uint64(of) + (np.uint64(row) << _EIGHTS))
        mass = 0.0
        for t in range(near.shape[0]):
            if near[t] == kinds[pair]:
                part, row = find_row(ids[pair], parts, shift, mod, tables[t])
                if row >= 0:
                    mass += _sum_at(tables[t], part, row, uniform)
        masses[pair] = mass


@inlined
def _unsettled(
    met: NDArray[np.int32],
    count: Whole,
    epsilon: float,
    masses: NDArray[np.float64],
    residuals: NDArray[np.float64],
    front: NDArray[np.int32],
) -> Whole:
    """Those that hold back more than they may; gives how many they are."""
    size = np.int64(0)
    for i in range(count):
        if residuals[met[i]] > epsilon * masses[met[i]]:
            front[size] = met[i]
            size += 1
    return size


@inlined
def _settle(
    front: NDArray[np.int32],
    size: Whole,
    alpha: float,
    masses: NDArray[np.float64],
    scores: NDArray[np.float64],
    residuals: NDArray[np.float64],
    per_weight: NDArray[np.float64],
) -> None:
    """As `graphkit.push.settle`."""
    for i in range(size):
        pair = front[i]
        mass, amount = masses[pair], residuals[pair]
        residuals[pair] = 0.0
        scores[pair] += alpha * amount if mass > 0.0 else amount
        per_weight[i] = (1.0 - alpha) * amount / mass if mass > 0.0 else 0.0


@kernel
def push(
    starts: NDArray[np.int64], start_kinds: NDArray[np.int32], parts: np.int64, mod: bool, tables: NDArray[np.int64], near: NDArray[np.int32],
    far: NDArray[np.int32], uniform: bool, alpha: float, epsilon: float, most: np.int64, state: NDArray[np.int64], heap: NDArray[np.int32],
    out_ids: NDArray[np.int64], out_kinds: NDArray[np.int32], out_scores: NDArray[np.float64], out_residuals: NDArray[np.float64],
    table: NDArray[np.int32], ids: NDArray[np.int64], kinds: NDArray[np.int32], scores: NDArray[np.float64], residuals: NDArray[np.float64],
    masses: NDArray[np.float64], rounds: NDArray[np.int32], front: NDArray[np.int32], met: NDArray[np.int32], per_weight: NDArray[np.float64],
) -> int:  # fmt: skip
    """Push the mass of one start after another, until all are done, enough edges were looked at, or there is no room.

    Parameters
    ----------
    starts, start_kinds : int64[m], int32[m]
        Nodes and their types; type -1 is no node, whose row is left as it is.
    parts : int64
    mod : bool
        How a node finds its part: by remainder, or by hash.
    tables : int64[types, parts, COLUMNS]
        Of each edge type; all parts are held.
    near, far : int32[types]
        The node types at both ends of each.
    uniform : bool
        Whether every edge weighs 1.
    alpha, epsilon : float64
        As of `graphd.pagerank.Ranking`.
    most : int64
        Edges to look at, up to the end of a node's along a type.
    state : int64[STATE], inout
        Zeros at first: where to go on.
    heap : int32[top]
    out_ids, out_kinds, out_scores : [m, top], out
    out_residuals : float64[m], out
    table : int32[slots], inout
        Four times as many slots as there is room; SMALLEST at least.
    ids, kinds, scores, residuals, masses, rounds, front, met, per_weight : [room], inout
        Of the nodes that a start comes to, by number.

    Returns
    -------
    int
        DONE, NO_ROOM or GO_ON.
    """
    shift, room, seen = shift_of_parts(parts), ids.shape[0], np.int64(0)
    while state[START] < starts.shape[0]:
        s = state[START]
        if start_kinds[s] < 0:
            state[START] = s + 1
            continue
        if state[TURN] == 0:
            state[MASK], state[PAIRS], state[WEIGHED], state[FRONT], state[TURN] = SMALLEST - 1, 1, 0, 1, 1
            ids[0], kinds[0], scores[0], residuals[0], rounds[0], front[0] = starts[s], start_kinds[s], 0.0, 1.0, 0, 0
            _put_all(table, state[MASK], ids, kinds, np.int64(1))
            state[PLACE], state[TYPE], state[EDGE], state[MET] = -1, 0, 0, 0
        pairs, mask, count = state[PAIRS], state[MASK], state[MET]
        while state[FRONT] > 0:
            if state[PLACE] < 0:  # a round begins: all of its nodes settle before anything arrives
                _weigh(state[WEIGHED], pairs, ids, kinds, parts, mod, tables, near, uniform, masses)
                state[WEIGHED] = pairs
                if state[TURN] > 1:
                    size = _unsettled(met, count, epsilon, masses, residuals, front)
                    _sort(front, size, ids, kinds)
                    state[FRONT], count = size, 0
                _settle(front, state[FRONT], alpha, masses, scores, residuals, per_weight)
                state[PLACE] = 0
            for i in range(state[PLACE], state[FRONT]):
                node, kind, carried = ids[front[i]], kinds[front[i]], per_weight[i]
                for t in range(state[TYPE], near.shape[0]):
                    if near[t] != kind or masses[front[i]] == 0.0:
                        continue
                    if seen >= most:
                        state[PLACE], state[TYPE], state[PAIRS], state[MASK], state[MET] = i, t, pairs, mask, count
                        return GO_ON
                    part, row = find_row(node, parts, shift, mod, tables[t])
                    if row < 0:
                        continue
                    begin = i64_at(np.uint64(tables[t, part, INDPTR]), row)
                    degree = i64_at(np.uint64(tables[t, part, INDPTR]), row + 1) - begin
                    nbr = view_at(tables[t, part, NBR], tables[t, part, SLOTS], _I64)
                    weighted = not uniform and tables[t, part, WEIGHTS] != 0
                    heavy = view_at(tables[t, part, WEIGHTS], tables[t, part, SLOTS] if weighted else np.int64(0), _F32)
                    for e in range(begin + state[EDGE], begin + degree):
                        if weighted and not heavy[e] > 0.0:
                            continue
                        to, at = nbr[e], _slot(nbr[e], far[t], mask)
                        while table[at] != 0 and not (ids[table[at] - 1] == to and kinds[table[at] - 1] == far[t]):
                            at = (at + 1) & mask
                        pair = table[at] - 1
                        if pair < 0:
                            if pairs == room:
                                state[PLACE], state[TYPE], state[EDGE], state[PAIRS] = i, t, e - begin, pairs
                                state[MASK], state[MET] = mask, count
                                return NO_ROOM
                            pair = np.int32(pairs)
                            ids[pair], kinds[pair], scores[pair], residuals[pair], rounds[pair] = to, far[t], 0.0, 0.0, 0
                            table[at] = np.int32(pairs + 1)
                            pairs += 1
                            if 2 * pairs > mask:
                                mask = 2 * mask + 1
                                _put_all(table, mask, ids, kinds, pairs)
                        residuals[pair] += carried * np.float64(heavy[e]) if weighted else carried
                        if rounds[pair] != state[TURN]:
                            rounds[pair] = np.int32(state[TURN])
                            met[count] = pair
                            count += 1
                    state[EDGE] = 0
                    seen += degree
                state[TYPE] = 0
            state[PLACE], state[TURN] = -1, state[TURN] + 1
        total = 0.0
        for pair in range(pairs):
            total += residuals[pair]
        out_residuals[s] = total
        ranked = _best(pairs, scores, ids, kinds, heap.shape[0], heap)
        for i in range(ranked):
            out_ids[s, i], out_kinds[s, i], out_scores[s, i] = ids[heap[i]], kinds[heap[i]], scores[heap[i]]
        state[START], state[TURN] = s + 1, 0
    return DONE
