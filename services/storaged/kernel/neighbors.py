"""Neighbors with replacement: the edge type of each draw, its slot, and gathering by slots.

Draws are numbered flat: draw k of the i-th node of a call is number i * count + k. A *slot* is a position in the adjacency
of one edge type at the node's part, -1 for no neighbor. Loops go over blocks of draws, across nodes and parts: one pass
hashes and prefetches, the next reads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.acceptance import accepted
from graphkit.jit import CHECK_MASK, Whole, f32_at, i64_at, inlined, is_set, kernel, prefetch_at, u32_at, u64_at
from graphkit.rng import below, derive, unit, word
from storaged.kernel.table import ask_ends

BLOCK = 128
NODES_AHEAD = 32
AHEAD = 32
_EIGHTS, _FOURS = np.uint64(3), np.uint64(2)
_SIZE, _PART, _START, _PLACE, _FLAT = range(5)
"""Of a run, which is the draws of one node within a block: how many, whose part, the row's first slot, places of the first one."""
_ANOTHERS = np.int64(-2)
"""In place of a column: a draw of another edge type."""


@kernel
def choose_types(keys: NDArray[np.uint64], measures: NDArray[np.float64], count: np.int64, which: NDArray[np.int32], stop: NDArray[np.int64]) -> None:
    """Choose the edge type of every draw, in proportion to what each type weighs at the node.

    Parameters
    ----------
    keys : uint64[m]
        Of the nodes' positions, under ``key_of(seed, rng.NEIGHBOR_TYPE, direction, hop)``.
    measures : float64[types, m]
    count : int64
    which : int32[m * count], out
        Index into the types; -1 where all of them weigh nothing.
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.
    """
    types = measures.shape[0]
    for i in range(keys.shape[0]):
        total = 0.0
        last = -1
        for t in range(types):
            total += measures[t, i]
            if measures[t, i] > 0.0:
                last = t
        for k in range(count):
            if k & CHECK_MASK == CHECK_MASK and is_set(stop):
                return
            chosen = last
            if last >= 0:
                point = unit(word(keys[i], np.uint64(k))) * total
                reached = 0.0
                for t in range(last):
                    reached += measures[t, i]
                    if point < reached:
                        chosen = t
                        break
            which[i * count + k] = chosen


@inlined
def _lead(
    columns: NDArray[np.int64],
    coins: NDArray[np.uint64],
    runs: NDArray[np.int64],
    filled: Whole,
    hot: NDArray[np.uint64],
    cold: NDArray[np.uint64],
    nbr: NDArray[np.uint64],
) -> None:
    """Lead the draws of a block from the columns on which they fell to those that they take, and ask for their neighbors."""
    d = 0
    for r in range(filled):
        part, start = runs[r, _PART], np.uint64(runs[r, _START])
        row_hot, row_cold, row_nbr = hot[part] + (start << _EIGHTS), cold[part] + (start << _FOURS), nbr[part] + (start << _EIGHTS)
        end = d + runs[r, _SIZE]
        if hot[part] == 0:
            d = end
        while d < end:
            if columns[d] >= 0:
                column = np.uint64(columns[d])
                taken = accepted(row_hot, row_cold, column, coins[d])
                # Only columns of a row of sum 0 are never kept and lead to themselves: no need to read its sum.
                if taken == column and u64_at(row_hot, taken) == taken and u32_at(row_cold, taken) == 0:
                    columns[d] = -1
                else:
                    columns[d] = np.int64(taken)
                    prefetch_at(row_nbr + (taken << _EIGHTS))
            d += 1


@inlined
def _put(
    columns: NDArray[np.int64], runs: NDArray[np.int64], filled: Whole, nbr: NDArray[np.uint64], out: NDArray[np.int64], slots: NDArray[np.int64]
) -> None:
    """Put the neighbors that a block's draws took in place."""
    kept = slots.shape[0] > 0
    d = 0
    for r in range(filled):
        to, flat, start = runs[r, _PLACE], runs[r, _FLAT], runs[r, _START]
        row_nbr = nbr[runs[r, _PART]] + (np.uint64(start) << _EIGHTS)
        for j in range(runs[r, _SIZE]):
            taken = columns[d + j]
            if taken >= 0:
                out[to + j] = i64_at(row_nbr, taken)
                if kept:
                    slots[flat + j] = start + taken
            elif taken == -1:
                out[to + j] = -1
                if kept:
                    slots[flat + j] = -1
        d += runs[r, _SIZE]


@kernel
def draw_slots(
    key: np.uint64,
    positions: NDArray[np.int64],
    at: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    count: np.int64,
    which: NDArray[np.int32],
    mine: np.int32,
    indptr: NDArray[np.uint64],
    hot: NDArray[np.uint64],
    cold: NDArray[np.uint64],
    nbr: NDArray[np.uint64],
    out: NDArray[np.int64],
    slots: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Draw neighbors with replacement, and put their ids in place.

    Parameters
    ----------
    key : uint64
        ``key_of(seed, rng.NEIGHBOR, direction, hop)``; draw k of a node takes word k of its position's key under it.
    positions : int64[m]
    at : int64[m]
        Row of each node in the answer; empty: node i has row i.
    parts, rows : int32[m], int64[m]
        As of `storaged.kernel.rows.locate`; a node of row -1 has no neighbors.
    count : int64
    which : int32[m * count]
        Draw only where this is ``mine``; empty: draw all.
    mine : int32
    indptr : uint64[P]
        Addresses of each part's int64[rows + 1].
    hot, cold : uint64[P], uint64[P]
        Addresses of per-row tables, uint64[slots] and uint32[slots]; 0: every column is certain. A row of sum 0 has no neighbors.
    nbr : uint64[P]
        Addresses of int64[slots].
    out : int64[n * count], out
        ``out[at[i] * count + k]``: -1 for no neighbor; what is not drawn here is left as it is.
    slots : int64[m * count], out
        The slots, for `gather_ids` and `gather_weights`; likewise. Empty: not wanted.
    stop : int64[1]
        Not 0 once the call is to end; what it leaves then is incomplete.

    Notes
    -----
    Three blocks are under way: one is hashed while the table rows of the one before it and the neighbors of the one before
    that come from memory.
    """
    m = rows.shape[0]
    columns = np.empty((3, BLOCK), np.int64)
    coins = np.empty((3, BLOCK), np.uint64)
    runs = np.empty((3, BLOCK, 5), np.int64)
    filled = np.zeros(3, np.int64)
    chosen, moved = which.shape[0] > 0, at.shape[0] > 0
    tabled = False
    for p in range(hot.shape[0]):
        tabled |= hot[p] > 0
    node, k = np.int64(-1), count
    own, degree, start = np.uint64(0), np.uint64(0), np.uint64(0)
    part, place = np.int64(0), np.int64(0)
    turn = 0
    idle = 0
    while idle < 2:
        if is_set(stop):
            return
        size = np.int64(0)
        run = 0
        while size < BLOCK:
            if k == count:
                if node + 1 == m:
                    break
                k = np.int64(0)
                node += 1
                ahead = node + NODES_AHEAD
                if ahead < m and rows[ahead] >= 0:
                    ask_ends(indptr[parts[ahead]] + (np.uint64(rows[ahead]) << _EIGHTS))
                part = np.int64(parts[node])
                place = (at[node] if moved else node) * count
                degree = np.uint64(0)
                if rows[node] >= 0:
                    own = derive(key, np.uint64(positions[node]))
                    start = np.uint64(i64_at(indptr[part], rows[node]))
                    degree = np.uint64(i64_at(indptr[part], rows[node] + 1)) - start
            draws = min(count - k, BLOCK - size)
            first = (hot[part] if hot[part] > 0 else nbr[part]) + (start << _EIGHTS)
            for j in range(draws):
                w = word(own, np.uint64(k + j))
                column = below(w, degree)
                columns[turn, size + j] = np.int64(column)
                coins[turn, size + j] = w * degree
                prefetch_at(first + (column << _EIGHTS))
            if degree == np.uint64(0):
                columns[turn, size : size + draws] = -1
            if chosen:
                for j in range(draws):
                    if which[node * count + k + j] != mine:
                        columns[turn, size + j] = _ANOTHERS
            runs[turn, run, _SIZE], runs[turn, run, _PART], runs[turn, run, _START] = draws, part, np.int64(start)
            runs[turn, run, _PLACE], runs[turn, run, _FLAT] = place + k, node * count + k
            run += 1
            size += draws
            k += draws
        filled[turn] = run
        idle = 0 if run > 0 else idle + 1
        turn = (turn + 2) % 3  # the block before this one
        if tabled:
            _lead(columns[turn], coins[turn], runs[turn], filled[turn], hot, cold, nbr)
        turn = (turn + 2) % 3  # and the one before that
        _put(columns[turn], runs[turn], filled[turn], nbr, out, slots)
        filled[turn] = 0


@kernel
def gather_ids(
    slots: NDArray[np.int64],
    at: NDArray[np.int64],
    parts: NDArray[np.int32],
    count: np.int64,
    which: NDArray[np.int32],
    mine: np.int32,
    columns: NDArray[np.uint64],
    out: NDArray[np.int64],
) -> None:
    """Put the number that belongs to each slot in its place.

    Parameters
    ----------
    slots : int64[m * count]
    at, parts : int64[m], int32[m]
        As in `draw_slots`.
    count : int64
    which, mine : int32[m * count], int32
        Take only draws where ``which`` is ``mine``; empty: all.
    columns : uint64[P]
        Addresses of int64[slots].
    out : int64[n * count], out
        ``out[at[i] * count + k]``; what has no slot is left as it is.
    """
    m, lead = parts.shape[0], AHEAD // count + 1
    for i in range(m):
        if i + lead < m:
            ahead = columns[parts[i + lead]]
            for slot in slots[(i + lead) * count : (i + lead + 1) * count]:
                if slot >= 0:
                    prefetch_at(ahead + (np.uint64(slot) << _EIGHTS))
        to = (at[i] if at.shape[0] > 0 else i) * count
        for k in range(count):
            flat = i * count + k
            if slots[flat] >= 0 and (which.shape[0] == 0 or which[flat] == mine):
                out[to + k] = i64_at(columns[parts[i]], slots[flat])


@kernel
def gather_weights(
    slots: NDArray[np.int64],
    at: NDArray[np.int64],
    parts: NDArray[np.int32],
    count: np.int64,
    which: NDArray[np.int32],
    mine: np.int32,
    columns: NDArray[np.uint64],
    out: NDArray[np.float32],
) -> None:
    """Put the weight of each slot in its place; arrays as in `gather_ids`, ``columns`` are of float32[slots], and 0 is weights of 1."""
    m, lead = parts.shape[0], AHEAD // count + 1
    for i in range(m):
        if i + lead < m:
            ahead = columns[parts[i + lead]]
            for slot in slots[(i + lead) * count : (i + lead + 1) * count]:
                if slot >= 0:
                    prefetch_at(ahead + (np.uint64(slot) << _FOURS))
        to = (at[i] if at.shape[0] > 0 else i) * count
        for k in range(count):
            flat = i * count + k
            if slots[flat] >= 0 and (which.shape[0] == 0 or which[flat] == mine):
                out[to + k] = f32_at(columns[parts[i]], slots[flat]) if columns[parts[i]] > 0 else np.float32(1.0)


@kernel
def place_types(
    slots: NDArray[np.int64], at: NDArray[np.int64], count: np.int64, which: NDArray[np.int32], types: NDArray[np.int32], out: NDArray[np.int32]
) -> None:
    """Put the edge type of each draw in its place: ``out[at[i] * count + k] = types[which[...]]``.

    Parameters
    ----------
    slots, at, count : int64[m * count], int64[m], int64
        As in `gather_ids`; what has no slot is left as it is.
    which : int32[m * count]
        Empty: all are of the first type.
    types : int32[types]
    out : int32[n * count], out
    """
    flat = 0
    for i in range(slots.shape[0] // count):
        to = (at[i] if at.shape[0] > 0 else i) * count
        for k in range(count):
            if slots[flat] >= 0:
                out[to + k] = types[which[flat]] if which.shape[0] > 0 else types[0]
            flat += 1
