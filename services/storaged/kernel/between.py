"""Edges between rows and a list of nodes: one of the two is gone through, and what it leads to looked up in the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, inlined, kernel, prefetch, view_at
from graphkit.rng import GOLDEN
from storaged.kernel.table import EID, NBR, SLOTS, WEIGHTS

ROW, TOTAL = range(2)
"""Of the state of `between`: the node that comes next, and how many edges were found before it."""
SLOTS_EACH = 8
"""Places of a hash table for each node of a list, at least."""
_AHEAD = 4
SIEVE_BITS = 16
"""Bits of a sieve for each node of a list, at least: one in sixteen nodes that are none of them falls through, and it stays near."""
_S64, _S6, _ONE, _LOW6 = np.uint64(64), np.uint64(6), np.uint64(1), np.uint64(63)
_I64, _F32 = np.zeros(0, np.int64), np.zeros(0, np.float32)


@inlined
def first_from(values: NDArray[Any], low: Whole, high: Whole, wanted: np.int64) -> Whole:
    """The first place from ``low`` on whose value is not below ``wanted``; ``high`` where there is none."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def steps_among(n: Whole) -> Whole:
    """Steps of a search among n."""
    steps = 1
    while n > 1:
        n >>= 1
        steps += 1
    return steps


@inlined
def _hash(node: np.int64, group: np.int64) -> np.uint64:
    """Its first bits say where a node of a group is looked for (multiplicative hashing; Knuth 1998, TAOCP 3, section 6.4)."""
    return (np.uint64(node) * GOLDEN ^ np.uint64(group)) * GOLDEN


@inlined
def _passes(hashed: np.uint64, bits: np.uint64, sieve: NDArray[np.uint64]) -> bool:
    """Whether something of this hash may have been entered."""
    at = hashed >> (_S64 - bits)
    return bool(sieve[np.int64(at >> _S6)] >> (at & _LOW6) & _ONE)


@inlined
def _find(
    hashed: np.uint64,
    node: np.int64,
    group: np.int64,
    bits: np.uint64,
    entered: NDArray[np.int32],
    targets: NDArray[np.int64],
    groups: NDArray[np.int64],
) -> Whole:
    """The first target that is a node of a group, -1 where there is none."""
    at, mask = np.int64(hashed >> (_S64 - bits)), entered.shape[0] - 1
    found = np.int64(entered[at])
    while found >= 0 and (targets[found] != node or (groups.shape[0] > 0 and groups[found] != group)):
        at = (at + 1) & mask
        found = np.int64(entered[at])
    return found


@kernel
def enter(targets: NDArray[np.int64], groups: NDArray[np.int64], table: NDArray[np.int32], sieve: NDArray[np.uint64]) -> int:
    """Enter the first target of each group and id into a hash table and a sieve, and tell how many there are.

    Parameters
    ----------
    targets, groups : int64[t], int64[t] or [0]
        Ids, ascending within their group, and their groups, ascending; no groups: all are of one.
    table : int32[2**bits], inout
        At least twice as many places as targets, all of them -1.
    sieve : uint64[words], inout
        A power of two of them, all 0: a bit for each hash that there is.
    """
    bits, mask, count = np.uint64(steps_among(table.shape[0]) - 1), table.shape[0] - 1, np.int64(0)
    finer = np.uint64(steps_among(64 * sieve.shape[0]) - 1)
    for i in range(targets.shape[0]):
        group = groups[i] if groups.shape[0] > 0 else np.int64(0)
        if i > 0 and targets[i - 1] == targets[i] and (groups.shape[0] == 0 or groups[i - 1] == group):
            continue
        hashed = _hash(targets[i], group)
        bit = hashed >> (_S64 - finer)
        sieve[np.int64(bit >> _S6)] |= _ONE << (bit & _LOW6)
        at = np.int64(hashed >> (_S64 - bits))
        while table[at] >= 0:
            at = (at + 1) & mask
        table[at] = i
        count += 1
    return int(count)


@kernel
def between(
    table: NDArray[np.int64],
    lines: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    targets: NDArray[np.int64],
    entered: NDArray[np.int32],
    sieve: NDArray[np.uint64],
    places: NDArray[np.int32],
    of: NDArray[np.int32],
    groups: NDArray[np.int64],
    once: bool,
    state: NDArray[np.int64],
    sizes: NDArray[np.int32],
    out_places: NDArray[np.int32],
    out_weights: NDArray[np.float32],
    out_eids: NDArray[np.int64],
) -> None:
    """Find the edges of rows of an adjacency that lead to targets, one node's after another's, until all are done or there is no room.

    Parameters
    ----------
    table : int64[parts, COLUMNS]
    lines, starts, degrees : int64[m]
        From `storaged.kernel.table.find_rows`; neighbors ascend within a row.
    targets, places : int64[t], int32[t]
        Ids, ascending within their group, one of them several times perhaps, and what is to be told of each.
    entered, sieve : int32[2**bits], uint64[words]
        From `enter`.
    of, groups : int32[m], int64[t]
        The group of each node, and that of each target, ascending: an edge has both ends in one. Both empty: all are of one group.
    once : bool
        No target is there several times: nodes have room for all of their edges then, or are not begun.
    state : int64[2], inout
        Where to go on, and where that ended.
    sizes : int32[m], out
    out_places, out_weights, out_eids : int32[k], float32[k] or [0], int64[k] or [0], out

    Notes
    -----
    An edge comes once per target of its neighbor's id: by (neighbor, slot, place among the targets).
    """
    m, room, grouped = lines.shape[0], out_places.shape[0], of.shape[0] > 0
    bits, finer = np.uint64(steps_among(entered.shape[0]) - 1), np.uint64(steps_among(64 * sieve.shape[0]) - 1)
    begin, end, group = np.int64(0), np.int64(targets.shape[0]), np.int64(0)
    for i in range(state[ROW], m):
        ahead = min(i + _AHEAD, m - 1)
        prefetch(view_at(table[lines[ahead], NBR], table[lines[ahead], SLOTS], _I64), starts[ahead])
        degree, start, part, to = degrees[i], starts[i], lines[i], state[TOTAL]
        if grouped and (i == state[ROW] or of[i] != group or i == 0):
            group = np.int64(of[i])
            begin = np.int64(first_from(groups, np.int64(0), np.int64(groups.shape[0]), group))
            end = np.int64(first_from(groups, begin, np.int64(groups.shape[0]), group + 1))
        nbr = view_at(table[part, NBR] + 8 * start, degree, _I64)
        heavy = view_at(table[part, WEIGHTS] + 4 * start, np.int64(0) if table[part, WEIGHTS] == 0 else degree, _F32)
        eids = view_at(table[part, EID] + 8 * start, degree if out_eids.shape[0] > 0 else np.int64(0), _I64)
        # A slot is a look into the table, a target a search among slots, each step of which takes half as long.
        by_slot = 2 * degree <= (end - begin) * steps_among(degree)
        if by_slot and once and begin < end:
            if room - to < degree:
                return
            for edge in range(degree):
                hashed = _hash(nbr[edge], group)
                if not _passes(hashed, finer, sieve):
                    continue
                # Whether it leads to one is hard to foretell then: what is known of it is written in any case.
                there = _find(hashed, nbr[edge], group, bits, entered, targets, groups)
                out_places[to] = places[max(there, np.int64(0))]
                if out_weights.shape[0] > 0:
                    out_weights[to] = heavy[edge] if heavy.shape[0] > 0 else np.float32(1.0)
                if out_eids.shape[0] > 0:
                    out_eids[to] = eids[edge]
                to += np.int64(there >= 0)
            sizes[i] = to - state[TOTAL]
            state[ROW], state[TOTAL] = i + 1, to
            continue
        slot, target = np.int64(0), begin
        while slot < degree and target < end:
            if by_slot:
                hashed = _hash(nbr[slot], group)
                found = np.int64(-1)
                if _passes(hashed, finer, sieve):
                    found = np.int64(_find(hashed, nbr[slot], group, bits, entered, targets, groups))
                if found < 0:
                    slot += 1
                    continue
                target = found
            else:
                slot = np.int64(first_from(nbr, slot, degree, targets[target]))
                if slot == degree:
                    break
                if nbr[slot] != targets[target]:
                    target += 1
                    continue
            last = target
            while last < end and targets[last] == nbr[slot]:
                if to == room:
                    return
                out_places[to] = places[last]
                if out_weights.shape[0] > 0:
                    out_weights[to] = heavy[slot] if heavy.shape[0] > 0 else np.float32(1.0)
                if out_eids.shape[0] > 0:
                    out_eids[to] = eids[slot]
                to += 1
                last += 1
            slot += 1
        sizes[i] = to - state[TOTAL]
        state[ROW], state[TOTAL] = i + 1, to
