"""Walks by p and q along one edge type, from packed rows: all under way take an attempt together, in stages that ask for what the next one reads.

What `storaged.kernel.walk` takes, to the bit, where nothing but the nodes is wanted of it. An attempt hashes, reads a record, and often
asks whether two nodes are joined; which of these a walk needs is as unforeseeable as a coin. So a stage is a loop over those walks that
need it, which the one before it lists, and what is the same for all is hashed in loops that run over several walks at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, f32_at, f64_at, inlined, kernel, prefetch_at, u32_at, u64_at
from graphkit.rng import below, mix64, salted, tagged, unit, word
from storaged.kernel.lanes import (
    ATTEMPTS,
    BEFORE_KINDS,
    BEFORES,
    DONE,
    HANGING,
    IDS,
    KINDS,
    NEAR,
    OPEN,
    OPEN_ATTEMPT,
    OPEN_ID,
    OPEN_TYPE,
    POSITIONS,
    REFUSED,
    RETURN_KEY,
    SLOT_KEY,
    TAKEN,
    Way,
)
from storaged.kernel.packed import base_of, neighbor_of, record_of
from storaged.kernel.sieve import HEADS, bits_of, hash_of, place_of
from storaged.kernel.table import NARROW, PACKED, ROWS, SUMS, WEIGHTS, part_at

LANES = 64
"""Walks under way at a time."""
WALK, PLACE, STEP, NODE, LINE, ROW, HEAD, BEFORE, BEFORE_LINE, BEFORE_ROW, BEFORE_HEAD, PLAIN, SALT, ATTEMPT = range(14)
FIELDS = 14
"""Rows of ``lanes``, int64[FIELDS, LANES]: of each walk under way which it is (-1: none), where its next node is put, steps behind it; where
it is, by id, line of the table, row there (-1: none) and address of what the row begins with (0: nothing); the same of where it was a step
ago (id -1: nowhere, line -1: not held here); the tag of its position, that position's salt, and the attempt."""
ELSEWHERE = np.int64(np.iinfo(np.int64).max)
"""As the node before: one of another type, which no edge leads to."""
_STARTS, _DEGREES, _STEP_KEYS, _BACK_KEYS, _TAGS, _WORDS, _RECORDS, _COINS, _PAIRS = range(9)
_LOWS, _SIZES, _ENDS, _NBRS, _TARGETS, _FOUND, _FATES = range(7)
_TOSSES, _SHARES = range(2)
_READ, _ASKED, _BACK, _SOUGHT = range(4)
"""Rows of scratch: unsigned, signed, float, and lists of lanes."""
_ZERO, _S32, _ONE = np.uint64(0), np.uint64(32), np.uint64(1)
_UNDECIDED = -1


@inlined
def _arrive(lane: Whole, node: Whole, edge: Whole, lanes: NDArray[np.int64], table: NDArray[np.int64], way: Way) -> None:
    """Find the row of a node that lives in a part held here, and ask for what it begins with."""
    line = edge * way.parts + part_at(np.int64(node), way.parts, way.shift, way.mod)
    row = node >> way.shift if way.shift >= 0 else node // way.parts
    lanes[NODE, lane], lanes[LINE, lane], lanes[ROW, lane], lanes[HEAD, lane] = node, line, -1, 0
    if row < table[line, ROWS]:
        head = table[line, HEADS] + 16 * row
        lanes[ROW, lane], lanes[HEAD, lane] = row, head
        prefetch_at(np.uint64(head))


@inlined
def _load(
    lane: Whole,
    lanes: NDArray[np.int64],
    cursor: NDArray[np.int64],
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    ends: NDArray[np.int64],
    held: NDArray[np.bool_],
    edge: Whole,
    way: Way,
    room: Whole,
) -> bool:
    """Put the next walk that has somewhere to go under way; gives whether there is one."""
    walk, m = cursor[0], walkers.shape[1]
    while walk < m and (walkers[IDS, walk] < 0 or walkers[DONE, walk] >= way.length):
        walk += 1
    cursor[0] = walk + 1
    lanes[WALK, lane] = walk if walk < m else -1
    if walk >= m:
        lanes[HEAD, lane] = 0
        return False
    lanes[STEP, lane], lanes[PLACE, lane], lanes[ATTEMPT, lane] = walkers[DONE, walk], walk * room, walkers[ATTEMPTS, walk]
    position = np.uint64(walkers[POSITIONS, walk])
    lanes[PLAIN, lane], lanes[SALT, lane] = np.int64(tagged(position)), np.int64(salted(mix64(position)))
    lanes[BEFORE, lane] = -1
    before, kind = walkers[BEFORES, walk], walkers[BEFORE_KINDS, walk]
    if before >= 0:
        here = held[part_at(before, way.parts, way.shift, way.mod)]
        _arrive(lane, before, edge, lanes, table, way)
        lanes[BEFORE_LINE, lane], lanes[BEFORE_ROW, lane], lanes[BEFORE_HEAD, lane] = lanes[LINE, lane], lanes[ROW, lane], lanes[HEAD, lane]
        lanes[BEFORE, lane] = before
        if not here:
            lanes[BEFORE_LINE, lane] = -1
        if kind >= 0 and kind != ends[NEAR, edge]:
            lanes[BEFORE, lane], lanes[BEFORE_ROW, lane], lanes[BEFORE_HEAD, lane] = ELSEWHERE, -1, 0
    _arrive(lane, walkers[IDS, walk], edge, lanes, table, way)
    if walkers[KINDS, walk] != ends[NEAR, edge]:
        lanes[ROW, lane], lanes[HEAD, lane] = -1, 0
    return True


@inlined
def _hash(
    plain: NDArray[np.int64],
    salt: NDArray[np.int64],
    attempt: NDArray[np.int64],
    before: NDArray[np.int64],
    step_keys: NDArray[np.uint64],
    back_keys: NDArray[np.uint64],
    shares: NDArray[np.float64],
    fold: float,
    tags: NDArray[np.uint64],
    words: NDArray[np.uint64],
    tosses: NDArray[np.float64],
) -> None:
    """The word and the toss of each walk's draw: an attempt has a position of its own, under the walk's."""
    for i in range(LANES):
        own = tagged(mix64(np.uint64(salt[i]) + tagged(np.uint64(attempt[i]))))
        tags[i] = own if before[i] >= 0 else np.uint64(plain[i])
    for i in range(LANES):
        words[i] = word(mix64(step_keys[i] + tags[i]), _ZERO)
    for i in range(LANES):
        toss = unit(word(mix64(back_keys[i] + tags[i]), _ZERO)) * (1.0 + fold * shares[i])
        tosses[i] = toss if before[i] >= 0 else 0.0


@inlined
def _draw(
    lanes: NDArray[np.int64],
    table: NDArray[np.int64],
    keys: NDArray[np.uint64],
    way: Way,
    bits: NDArray[np.uint64],
    whole: NDArray[np.int64],
    reals: NDArray[np.float64],
    lists: NDArray[np.int64],
) -> tuple[Whole, Whole]:
    """Let each walk's draw fall on a record or on the way back, and ask for what these read; gives how many of both there are."""
    for i in range(LANES):
        head = np.uint64(lanes[HEAD, i])
        bits[_STARTS, i], bits[_DEGREES, i], reals[_SHARES, i] = _ZERO, _ZERO, 0.0
        if head > _ZERO:
            bits[_STARTS, i], bits[_DEGREES, i] = u64_at(head, _ZERO), u64_at(head, _ONE) >> _S32
            reals[_SHARES, i] = np.float64(f32_at(head, np.int64(2)))
        bits[_STEP_KEYS, i], bits[_BACK_KEYS, i] = keys[SLOT_KEY, lanes[STEP, i]], keys[RETURN_KEY, lanes[STEP, i]]
    _hash(
        lanes[PLAIN],
        lanes[SALT],
        lanes[ATTEMPT],
        lanes[BEFORE],
        bits[_STEP_KEYS],
        bits[_BACK_KEYS],
        reals[_SHARES],
        way.fold,
        bits[_TAGS],
        bits[_WORDS],
        reals[_TOSSES],
    )
    read, back = np.int64(0), np.int64(0)
    for i in range(LANES):
        degree, line = bits[_DEGREES, i], lanes[LINE, i]
        whole[_FOUND, i], whole[_FATES, i] = -1, TAKEN
        if degree == _ZERO:
            continue
        if reals[_TOSSES, i] >= 1.0:
            # What steps back are above others has a box of its own behind theirs: most draws fall beside it, and look for no edge back.
            lists[_BACK, back] = i
            back += 1
            bits[_PAIRS, i] = hash_of(lanes[ROW, i], lanes[BEFORE, i])
            prefetch_at(place_of(bits[_PAIRS, i], table, line))
            continue
        w = bits[_WORDS, i]
        base = base_of(np.uint64(table[line, NARROW]), _ZERO if way.uniform else np.uint64(table[line, PACKED]))
        record = record_of(base, bits[_STARTS, i] + below(w, degree))
        prefetch_at(record)
        bits[_RECORDS, i], bits[_COINS, i] = record, w * degree
        lists[_READ, read] = i
        read += 1
    return read, back


@inlined
def _read(
    read: Whole,
    lanes: NDArray[np.int64],
    table: NDArray[np.int64],
    way: Way,
    packed: NDArray[np.uint64],
    cold: NDArray[np.uint64],
    bits: NDArray[np.uint64],
    whole: NDArray[np.int64],
    reals: NDArray[np.float64],
    lists: NDArray[np.int64],
) -> Whole:
    """Read to whom draws lead and say which count; gives how many hang on an edge that is here, whose sieves are asked for."""
    asked = np.int64(0)
    for j in range(read):
        i = lists[_READ, j]
        found = np.int64(neighbor_of(bits[_RECORDS, i], bits[_COINS, i], packed, cold))
        before, toss, line = lanes[BEFORE, i], reals[_TOSSES, i], lanes[BEFORE_LINE, i]
        whole[_FOUND, i] = found
        free = (found < 0) | (before < 0)
        most = way.back if found == before else way.sure
        fate = TAKEN if free | (toss < most) else REFUSED if found == before else HANGING if line < 0 else _UNDECIDED
        whole[_FATES, i] = fate
        if fate == _UNDECIDED:
            pair = hash_of(lanes[BEFORE_ROW, i], found)
            bits[_PAIRS, i] = pair
            prefetch_at(place_of(pair, table, line))
            lists[_ASKED, asked] = i
            asked += 1
    return asked


@inlined
def _seek(
    asked: Whole,
    back: Whole,
    lanes: NDArray[np.int64],
    table: NDArray[np.int64],
    way: Way,
    bits: NDArray[np.uint64],
    whole: NDArray[np.int64],
    lists: NDArray[np.int64],
) -> Whole:
    """Ask sieves; gives how many rows are to be searched, and asks for their middles."""
    sought, alone = np.int64(0), REFUSED if way.counts_joined else TAKEN
    for j in range(asked + back):
        returns = j >= asked
        i = lists[_BACK, j - asked] if returns else lists[_ASKED, j]
        line = lanes[LINE, i] if returns else lanes[BEFORE_LINE, i]
        head = np.uint64(lanes[HEAD, i] if returns else lanes[BEFORE_HEAD, i])
        whole[_FATES, i] = REFUSED if returns else alone
        few, pair = bits_of(bits[_PAIRS, i]), bits[_PAIRS, i]
        if head == _ZERO or u64_at(place_of(pair, table, line), _ZERO) & few != few:
            continue
        low, size = np.int64(u64_at(head, _ZERO)), np.int64(u64_at(head, _ONE) >> _S32)
        whole[_LOWS, i], whole[_SIZES, i], whole[_ENDS, i], whole[_NBRS, i] = low, size, low + size, table[line, NARROW]
        whole[_TARGETS, i] = lanes[BEFORE, i] if returns else whole[_FOUND, i]
        lists[_SOUGHT, sought] = i
        sought += 1
        prefetch_at(np.uint64(table[line, NARROW] + 4 * (low + (size >> 1))))
    return sought


@inlined
def _search(sought: Whole, whole: NDArray[np.int64], lists: NDArray[np.int64]) -> None:
    """Find where the neighbors that are looked for would stand in their rows, side by side."""
    left = sought
    while left > 0:
        left = np.int64(0)
        for j in range(sought):
            i = lists[_SOUGHT, j]
            size, low, nbr = whole[_SIZES, i], whole[_LOWS, i], np.uint64(whole[_NBRS, i])
            if size > 0:
                half = size >> 1
                # All ones where the wanted one is behind: as unpredictable as a coin.
                behind = -np.int64(np.int64(u32_at(nbr, low + half)) < whole[_TARGETS, i])
                low += (half + 1) & behind
                size = half + ((size - half - 1 - half) & behind)
                whole[_SIZES, i], whole[_LOWS, i] = size, low
                if size > 0:
                    prefetch_at(nbr + np.uint64(4 * (low + (size >> 1))))
                    left += 1


@inlined
def _judge(
    sought: Whole,
    lanes: NDArray[np.int64],
    table: NDArray[np.int64],
    way: Way,
    whole: NDArray[np.int64],
    reals: NDArray[np.float64],
    lists: NDArray[np.int64],
) -> None:
    """Say what became of draws whose rows were searched."""
    for j in range(sought):
        i = lists[_SOUGHT, j]
        slot, end, nbr, target = whole[_LOWS, i], whole[_ENDS, i], np.uint64(whole[_NBRS, i]), whole[_TARGETS, i]
        if slot >= end or np.int64(u32_at(nbr, slot)) != target:
            continue
        if reals[_TOSSES, i] < 1.0:
            whole[_FATES, i] = TAKEN if way.counts_joined else REFUSED
            continue
        # A share of what the row weighs falls on an edge back, or behind the last one of these.
        line = lanes[LINE, i]
        heavy, sums = np.uint64(table[line, WEIGHTS]), np.uint64(table[line, SUMS])
        even = way.uniform or heavy == _ZERO
        row_weight = f64_at(sums, lanes[ROW, i]) if not way.uniform and sums != _ZERO else np.float64(u64_at(np.uint64(lanes[HEAD, i]), _ONE) >> _S32)
        left = (reals[_TOSSES, i] - 1.0) / way.fold * row_weight
        while slot < end and np.int64(u32_at(nbr, slot)) == target:
            left -= 1.0 if even else np.float64(f32_at(heavy, slot))
            if left < 0.0:
                whole[_FATES, i], whole[_FOUND, i] = TAKEN, target
                break
            slot += 1


@inlined
def _settle(
    lanes: NDArray[np.int64],
    cursor: NDArray[np.int64],
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    ends: NDArray[np.int64],
    held: NDArray[np.bool_],
    edge: Whole,
    way: Way,
    done: NDArray[np.int64],
    ids: NDArray[np.int64],
    hanging: NDArray[np.int64],
    whole: NDArray[np.int64],
    room: Whole,
) -> None:
    """Do what the fates of draws say; where a walk is through here, another one takes its lane."""
    for i in range(LANES):
        walk, fate = lanes[WALK, i], whole[_FATES, i]
        if walk < 0:
            continue
        if fate == REFUSED:
            lanes[ATTEMPT, i] += 1
            continue
        found, goes = whole[_FOUND, i], False
        if fate == HANGING:
            hanging[OPEN, walk], hanging[OPEN_ID, walk], hanging[OPEN_TYPE, walk] = 1, found, edge
            hanging[OPEN_ATTEMPT, walk] = lanes[ATTEMPT, i]
        else:
            step = lanes[STEP, i] + 1
            ids[lanes[PLACE, i]], done[walk] = found, step
            goes = bool(found >= 0 and step < way.length and held[part_at(found, way.parts, way.shift, way.mod)])
            if goes:
                lanes[STEP, i], lanes[ATTEMPT, i] = step, 0
                lanes[PLACE, i] += 1
                lanes[BEFORE, i], lanes[BEFORE_LINE, i] = lanes[NODE, i], lanes[LINE, i]
                lanes[BEFORE_ROW, i], lanes[BEFORE_HEAD, i] = lanes[ROW, i], lanes[HEAD, i]
                _arrive(i, found, edge, lanes, table, way)
        if not goes and not _load(i, lanes, cursor, walkers, table, ends, held, edge, way, room):
            cursor[1] -= 1


@kernel
def take_biased_walks(
    walkers: NDArray[np.int64],
    table: NDArray[np.int64],
    ends: NDArray[np.int64],
    held: NDArray[np.bool_],
    steps: NDArray[np.int64],
    keys: NDArray[np.uint64],
    way: Way,
    done: NDArray[np.int64],
    ids: NDArray[np.int64],
    room: np.int64,
    hanging: NDArray[np.int64],
    packed: NDArray[np.uint64],
    cold: NDArray[np.uint64],
    lanes: NDArray[np.int64],
    cursor: NDArray[np.int64],
    rounds: np.int64,
) -> None:
    """Take walks on, each until it ends, leaves the parts held here, or hangs on an edge that is elsewhere; where rows follow from ids.

    Parameters
    ----------
    walkers, table, ends, held, keys, way, done, hanging, cursor, rounds
        As of `storaged.kernel.walk.take_walks`; every line of ``table`` that has edges has them packed, and heads.
    steps : int64[1, 1]
        The edge type, which leads to nodes of the type at which it begins.
    ids : int64[k], out
        As there, but flat: walk i's from place i * ``room`` on.
    room : int64
    packed, cold : uint64[E * P]
        Those columns of ``table``.
    lanes : int64[FIELDS, LANES], inout
    """
    edge = steps[0, 0]
    bits, whole = np.zeros((9, LANES), np.uint64), np.zeros((7, LANES), np.int64)
    reals, lists = np.zeros((2, LANES), np.float64), np.zeros((4, LANES), np.int64)
    if cursor[0] == 0:
        for i in range(LANES):
            if _load(i, lanes, cursor, walkers, table, ends, held, edge, way, room):
                cursor[1] += 1
    for _ in range(rounds):
        if cursor[1] == 0:
            break
        read, back = _draw(lanes, table, keys, way, bits, whole, reals, lists)
        asked = _read(read, lanes, table, way, packed, cold, bits, whole, reals, lists)
        sought = _seek(asked, back, lanes, table, way, bits, whole, lists)
        _search(sought, whole, lists)
        _judge(sought, lanes, table, way, whole, reals, lists)
        _settle(lanes, cursor, walkers, table, ends, held, edge, way, done, ids, hanging, whole, room)
