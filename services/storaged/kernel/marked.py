"""Edges between rows and a list of nodes whose ids lie near each other: a bit for each id says at once whether an edge leads to one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkit.bits import LOW, ONE, SHIFT
from graphkit.jit import Whole, copy_at, inlined, kernel, prefetch_at, view_at
from storaged.kernel.between import ROW, TOTAL, first_from, steps_among
from storaged.kernel.marks import enter, rank_all, sort, target_at, told_of
from storaged.kernel.table import NARROW, NBR, SLOTS, WEIGHTS
from storaged.kernel.telling import WIDTH, eid_at, eids_of, read, tell, tell_gathered

_MANY, _PIECE = 512, 1024
"""Edges that are listed before anything is told of them, and neighbors that are looked at in one go: all of it stays near."""
HELD = _MANY + _PIECE + 1
"""Slots that there is room for: those of one piece more, and one that does not count."""
_SHORT, _LANES = 256, 16
"""Neighbors of a row that is looked at together with others, a piece in all, and neighbors that are copied in one go."""
_AHEAD, _LINES = 12, 16
"""Rows, and cache lines of each, that are asked for before their turn."""
_LOOKS = 4
"""Neighbors that are looked at in the time that a step of a search takes."""
_I64, _U32, _F32 = np.zeros(0, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.float32)


@inlined
def _scan(nbr: NDArray[Any], low: np.uint64, words: NDArray[np.uint64], slots: NDArray[np.uint64], kept: np.uint64) -> np.uint64:
    """List the slots of a row, or of a piece of one, that lead to targets behind ``kept`` others; how many there are then.

    Whether one does is hard to foretell, so that each is written, and counts or does not.
    """
    last = np.uint64(64 * words.shape[0] - 1)
    for edge in range(nbr.shape[0]):
        at = min(np.uint64(nbr[edge]) - low, last)
        slots[kept] = edge
        kept += words[at >> SHIFT] >> (at & LOW) & ONE
    return kept


@inlined
def _ask_for(table: NDArray[np.int64], part: np.int64, start: np.int64, degree: np.int64) -> None:
    """Ask for the beginning of a row."""
    narrow = table[part, NARROW]
    width = np.int64(8) if narrow == 0 else np.int64(4)
    at = (table[part, NBR] if narrow == 0 else narrow) + width * start
    size = min(degree * width, np.int64(64 * _LINES))
    prefetch_at(np.uint64(at))  # most rows have no more lines than these two: nothing to foretell
    prefetch_at(np.uint64(at + size - 1))
    for line in range(1, size >> 6):
        prefetch_at(np.uint64(at + 64 * line))


@inlined
def _gather(
    table: NDArray[np.int64],
    lines: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    of: NDArray[np.int32],
    group: np.int64,
    most: np.int64,
    queue: NDArray[np.int32],
    turn: np.int64,
    turns: np.int64,
    gathered: NDArray[np.uint32],
    owners: NDArray[np.int32],
    begins: NDArray[np.int64],
) -> tuple[np.int64, np.int64]:
    """Put short rows that follow each other side by side, and say of each neighbor in which of them it is; how many rows, and neighbors.

    They are narrow, of the group, and have ``most`` neighbors at most. How many they have is hard to foretell: so many at a time are copied
    that most are done at once, where there are that many behind them.
    """
    count, filled, to = np.int64(0), np.int64(0), np.uint64(gathered.ctypes.data)
    while turn + count < turns:
        i = np.int64(queue[turn + count])
        degree, start, part = degrees[i], starts[i], lines[i]
        if degree > most or filled + degree > _PIECE or table[part, NARROW] == 0:
            break
        if of.shape[0] > 0 and np.int64(of[i]) != group:
            break
        if turn + count + _AHEAD < turns:
            later = queue[turn + count + _AHEAD]
            _ask_for(table, lines[later], starts[later], degrees[later])
        begins[count] = filled
        source, near_end = np.uint64(table[part, NARROW] + 4 * start), start + degree + _LANES > table[part, SLOTS]
        if near_end:
            copy_at(to + np.uint64(4 * filled), source, 4 * degree)
        for edge in range(0, degree, _LANES):
            if not near_end:
                copy_at(to + np.uint64(4 * (filled + edge)), source + np.uint64(4 * edge), np.int64(4 * _LANES))
            for lane in range(_LANES):
                owners[np.uint64(filled + edge + lane)] = count
        filled, count = filled + degree, count + 1
    return count, filled


@inlined
def _seek(
    nbr: NDArray[Any],
    ids: NDArray[np.int64],
    ranked: NDArray[np.int32],
    begin: Whole,
    end: Whole,
    places: NDArray[np.int32],
    weights: NDArray[np.float32],
    eids: np.uint64,
    out_places: NDArray[np.int32],
    out_weights: NDArray[np.float32],
    out_eids: NDArray[np.int64],
    to: np.uint64,
) -> np.uint64:
    """For few targets, ascending by rank: each is searched for in the row. What there is no room for is counted only."""
    slot, degree, room = np.int64(0), np.int64(nbr.shape[0]), np.uint64(out_places.shape[0])
    for rank in range(begin, end):
        wanted = ids[target_at(np.uint64(rank), ranked)]
        slot = np.int64(first_from(nbr, slot, degree, wanted))
        while slot < degree and np.int64(nbr[slot]) == wanted:
            if to < room:
                out_places[to] = told_of(np.uint64(rank), ranked, places)
                if out_weights.shape[0] > 0:
                    out_weights[to] = weights[slot] if weights.shape[0] > 0 else np.float32(1.0)
                if out_eids.shape[0] > 0:
                    out_eids[to] = eid_at(eids + WIDTH * np.uint64(slot))
            to += ONE
            slot += 1
    return to


@inlined
def _seek_row(
    table: NDArray[np.int64],
    part: np.int64,
    start: np.int64,
    degree: np.int64,
    ids: NDArray[np.int64],
    ranked: NDArray[np.int32],
    begin: Whole,
    end: Whole,
    places: NDArray[np.int32],
    out_places: NDArray[np.int32],
    out_weights: NDArray[np.float32],
    out_eids: NDArray[np.int64],
    to: np.uint64,
) -> np.uint64:
    """`_seek` in a row, whatever it is made of."""
    narrow, eids = table[part, NARROW], eids_of(table, part, start)
    weights = view_at(table[part, WEIGHTS] + 4 * start, np.int64(0) if table[part, WEIGHTS] == 0 else degree, _F32)
    short, wide = view_at(narrow + 4 * start, degree, _U32), view_at(table[part, NBR] + 8 * start, degree, _I64)
    rest = ids, ranked, begin, end, places, weights, eids, out_places, out_weights, out_eids, to
    return _seek(short, *rest) if narrow != 0 else _seek(wide, *rest)


@inlined
def _look(
    table: NDArray[np.int64],
    part: np.int64,
    start: np.int64,
    degree: np.int64,
    low: np.uint64,
    words: NDArray[np.uint64],
    firsts: NDArray[np.int32],
    ranked: NDArray[np.int32],
    places: NDArray[np.int32],
    slots: NDArray[np.uint64],
    kept: np.uint64,
    asked: bool,
    out_places: NDArray[np.int32],
    out_weights: NDArray[np.float32],
    out_eids: NDArray[np.int64],
    to: np.uint64,
) -> tuple[np.uint64, np.uint64]:
    """Look at all neighbors of a long row, piece after piece; the edges that all is told of then, and those that are listed behind them.

    Where there is no room for these any more, nothing is told of the last piece, and it ends there.
    """
    narrow, piece, room = table[part, NARROW], np.int64(0), np.uint64(out_places.shape[0])
    while piece < degree:
        at, size, held = start + piece, min(degree - piece, np.int64(_PIECE)), kept
        short, wide = view_at(narrow + 4 * at, size, _U32), view_at(table[part, NBR] + 8 * at, size, _I64)
        kept = _scan(short, low, words, slots, held) if narrow != 0 else _scan(wide, low, words, slots, held)
        if room - to < kept:
            break
        piece += size
        if kept == held:
            continue
        eids = eids_of(table, part, at)
        weights = view_at(table[part, WEIGHTS] + 4 * at, np.int64(0) if table[part, WEIGHTS] == 0 else size, _F32)
        if narrow != 0:
            tell(short, low, words, firsts, ranked, places, slots, held, kept, weights, eids, asked, out_places, out_weights, to)
        else:
            tell(wide, low, words, firsts, ranked, places, slots, held, kept, weights, eids, asked, out_places, out_weights, to)
        if kept > _MANY:
            read(slots, kept, out_eids, to)
            to, kept = to + kept, np.uint64(0)
    return to, kept


@inlined
def _queue(degrees: NDArray[np.int64], first: Whole, sizes: NDArray[np.int32], queue: NDArray[np.int32]) -> Whole:
    """List the rows from ``first`` on that have edges; how many these are. As to edges that lead to targets, all have none so far.

    Whether a row has any is hard to foretell, so that each is written, and counts or does not.
    """
    count = np.uint64(0)
    for i in range(first, degrees.shape[0]):
        queue[count], sizes[i] = i, 0
        count += np.uint64(degrees[i] > 0)
    return np.int64(count)


@kernel
def ascend(of: NDArray[np.int32], degrees: NDArray[np.int64]) -> bool:
    """Whether nodes that have edges come group after group; int32[m] and int64[m]."""
    last = np.int64(-1)
    for i in range(of.shape[0]):
        if degrees[i] > 0:
            if of[i] < last:
                return False
            last = np.int64(of[i])
    return True


@kernel
def between_marked(
    table: NDArray[np.int64],
    lines: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    ids: NDArray[np.int64],
    places: NDArray[np.int32],
    of: NDArray[np.int32],
    groups: NDArray[np.int64],
    least: np.int64,
    words: NDArray[np.uint64],
    firsts: NDArray[np.int32],
    touched: NDArray[np.int32],
    ranked: NDArray[np.int32],
    slots: NDArray[np.uint64],
    queue: NDArray[np.int32],
    state: NDArray[np.int64],
    sizes: NDArray[np.int32],
    out_places: NDArray[np.int32],
    out_weights: NDArray[np.float32],
    out_eids: NDArray[np.int64],
) -> bool:
    """As `storaged.kernel.between.between`, for targets that are there once each and whose ids lie near each other.

    Parameters
    ----------
    table, lines, starts, degrees, state, sizes, out_places, out_weights, out_eids
        As there.
    ids, places : int64[t], int32[t]
        Targets, by group, in any order within one, and what is to be told of each; no places: its own among them.
    of, groups : int32[m], int64[t]
        As there; nodes that have edges come group after group as well (`ascend`).
    least : int64
        The least of ``ids``.
    words : uint64[words], inout
        A bit for each id from ``least`` on, and at least one more than the targets' ids need; all 0, and so they are left.
    firsts, touched, ranked : int32[words], int32[t], int32[t]
        Room to work in.
    slots, queue : uint64[HELD], int32[m]
        Likewise.

    Returns
    -------
    bool
        False where a target is there twice in a group: nothing of what was found is of use then.

    Notes
    -----
    Words that hold a bit know the rank of their first target, so that no search and no sorting is needed (Jacobson 1989, Space-efficient
    static trees and graphs, section 2: rank by a directory and a count within the word).
    """
    low, room, grouped = np.uint64(least), np.uint64(out_places.shape[0]), of.shape[0] > 0
    begin, end, marked, group, ascending, straight = np.int64(0), np.int64(0), np.int64(0), np.int64(-1), False, False
    # Behind ``to`` edges of which all is told there are ``kept`` that are listed; a row's own begin at ``own``.
    turn, to, kept, own, sound = np.int64(0), np.uint64(state[TOTAL]), np.uint64(0), np.uint64(state[TOTAL]), True
    turns, asked = np.int64(_queue(degrees, np.int64(state[ROW]), sizes, queue)), out_eids.shape[0] > 0
    if not grouped:
        end = np.int64(ids.shape[0])
        marked, straight, sound = rank_all(ids, begin, end, low, words, touched, firsts, ranked)
        ascending = straight
    order = ranked[:0] if straight else ranked
    gathered, owners, begins = np.empty(_PIECE + _LANES, np.uint32), np.empty(_PIECE + _LANES, np.int32), np.empty(_PIECE, np.int64)
    while sound and turn < turns:
        i = np.int64(queue[turn])
        degree, part, own = degrees[i], lines[i], to + kept
        if grouped and np.int64(of[i]) != group:
            for k in range(marked):
                words[touched[k]] = 0
            group = np.int64(of[i])
            begin = np.int64(first_from(groups, end, np.int64(groups.shape[0]), group))
            end = np.int64(first_from(groups, begin, np.int64(groups.shape[0]), group + 1))
            marked, straight, sound = rank_all(ids, begin, end, low, words, touched, firsts, ranked)
            ascending = straight
            order = ranked[:0] if straight else ranked
        few = _LOOKS * (end - begin) if sound else np.int64(0)
        count, filled = _gather(
            table, lines, starts, degrees, of, group, min(few, np.int64(_SHORT)), queue, turn, turns, gathered, owners, begins
        )  # fmt: skip
        if count > 0:
            held = kept
            kept = _scan(gathered[:filled], low, words, slots, held)
            if room - to < kept:
                break
            tell_gathered(
                table, lines, starts, queue, turn, gathered, owners, begins, low, words, firsts, order, places, slots, held, kept, asked, sizes,
                out_places, out_weights, to,
            )  # fmt: skip
            turn, own = turn + count, to + kept
            if kept > _MANY:
                read(slots, kept, out_eids, to)
                to, kept = own, np.uint64(0)
            continue
        if turn + _AHEAD < turns:
            later = queue[turn + _AHEAD]
            _ask_for(table, lines[later], starts[later], degrees[later])
        if few > 0 and degree > few and degree > few * np.int64(steps_among(degree)):
            read(slots, kept, out_eids, to)
            to, kept = own, np.uint64(0)
            if not ascending:
                touched[:marked].sort()
                enter(words, touched, marked, firsts, begin)
                sort(ids, begin, end, low, words, firsts, ranked)
                ascending = True
            to = _seek_row(table, part, starts[i], degree, ids, order, begin, end, places, out_places, out_weights, out_eids, to)
        elif few > 0:
            to, kept = _look(
                table, part, starts[i], degree, low, words, firsts, order, places, slots, kept, asked, out_places, out_weights, out_eids, to
            )  # fmt: skip
        if to > room or room - to < kept:
            break
        sizes[i], turn, own = np.int32(to + kept - own), turn + 1, to + kept
    kept = own - min(to, own)
    read(slots, kept, out_eids, min(to, own))
    for k in range(marked):
        words[touched[k]] = 0
    state[ROW], state[TOTAL] = queue[turn] if turn < turns else degrees.shape[0], np.int64(own)
    return sound
