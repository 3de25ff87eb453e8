"""Edges between rows and a list of nodes whose ids lie near each other: a bit for each id says at once whether an edge leads to one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkit.bits import ONE
from graphkit.jit import CHECKED, Whole, copy_at, inlined, kernel, prefetch_at, register, view_at
from graphkit.lanes import LANES, WIDE
from storaged.kernel.between import ROW, TOTAL, first_from, steps_among
from storaged.kernel.marks import enter, rank_all, sort, target_at, told_of
from storaged.kernel.sifting import scan, sift, sift_pairs
from storaged.kernel.table import NARROW, NBR, PAIRS, SLOTS, WEIGHTS
from storaged.kernel.telling import WIDTH, eid_at, eids_of, read, tell, tell_gathered, tell_places

_MANY, _PIECE = 512, 1024
"""Edges that are listed before anything is told of them, and neighbors that are looked at in one go: all of it stays near."""
HELD = _MANY + _PIECE
"""Slots that there is room for: those of one piece more."""
_SHORT = 256
"""Neighbors of a row that is looked at together with others, a piece in all."""
_DENSE = 8
"""Where one edge in so many leads to a target, neighbors are read with the ids of their edges beside them: most lines of ids are needed then."""
_AHEAD, _LINES = 12, 16
"""Rows, and cache lines of each, that are asked for before their turn."""
_LOOKS = 4
"""Neighbors that are looked at in the time that a step of a search takes."""
_I64, _U32, _U64, _F32 = (np.zeros(0, dtype) for dtype in (np.int64, np.uint32, np.uint64, np.float32))


@inlined
def _ask_for(table: NDArray[np.int64], part: np.int64, start: np.int64, degree: np.int64, dense: bool) -> None:
    """Ask for the beginning of a row."""
    narrow = table[part, NARROW]
    width = np.int64(8) if narrow == 0 or dense else np.int64(4)
    at = (table[part, NBR] if narrow == 0 else table[part, PAIRS] if dense else narrow) + width * start
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
    if CHECKED:
        register(gathered)
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
            _ask_for(table, lines[later], starts[later], degrees[later], False)
        begins[count] = filled
        source, near_end = np.uint64(table[part, NARROW] + 4 * start), start + degree + LANES > table[part, SLOTS]
        if near_end:
            copy_at(to + np.uint64(4 * filled), source, 4 * degree)
        for edge in range(0, degree, LANES):
            if not near_end:
                copy_at(to + np.uint64(4 * (filled + edge)), source + np.uint64(4 * edge), np.int64(4 * LANES))
            for lane in range(LANES):
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
def _look_dense(
    pairs: NDArray[np.uint64],
    low: np.uint64,
    words: NDArray[np.uint64],
    firsts: NDArray[np.int32],
    ranked: NDArray[np.int32],
    places: NDArray[np.int32],
    eids: NDArray[np.uint32],
    ats: NDArray[np.uint32],
    ranks: NDArray[np.uint32],
    out_places: NDArray[np.int32],
    out_eids: NDArray[np.int64],
    to: np.uint64,
) -> np.uint64:
    """As `_look`, where many edges lead to targets, of which the ids are wanted and no weights. Where there is no room for a piece, more is said
    to be told than there is room for."""
    piece, room, degree = np.int64(0), np.uint64(out_places.shape[0]), np.int64(pairs.shape[0])
    while piece < degree:
        size = min(degree - piece, np.int64(_PIECE))
        count = sift_pairs(pairs[piece : piece + size], low, words, eids, ats)
        if room - to < count:
            return room + ONE
        tell_places(ats, count, words, firsts, ranks, ranked, places, out_places, to)
        for j in range(count):
            out_eids[to + j] = np.int64(eids[j])
        piece, to = piece + size, to + count
    return to


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
    edges: NDArray[np.uint32],
    ats: NDArray[np.uint32],
    ranks: NDArray[np.uint32],
    slots: NDArray[np.uint64],
    held: np.uint64,
    asked: bool,
    dense: bool,
    out_places: NDArray[np.int32],
    out_weights: NDArray[np.float32],
    out_eids: NDArray[np.int64],
    to: np.uint64,
) -> tuple[np.uint64, np.uint64]:
    """Look at all neighbors of a long row, piece after piece; the edges that all is told of then, and those whose ids are yet to be read.

    Where there is no room for these any more, nothing is told of the last piece, and it ends there.
    """
    if dense and table[part, PAIRS] != 0:
        read(slots, held, out_eids, to)
        pairs = view_at(table[part, PAIRS] + 8 * start, degree, _U64)
        return _look_dense(pairs, low, words, firsts, ranked, places, edges, ats, ranks, out_places, out_eids, to + held), np.uint64(0)
    narrow, piece, room = table[part, NARROW], np.int64(0), np.uint64(out_places.shape[0])
    while piece < degree:
        at, size = start + piece, min(degree - piece, np.int64(_PIECE))
        if narrow != 0:
            count = sift(view_at(narrow + 4 * at, size, _U32), low, words, edges, ats)
        else:
            count = scan(view_at(table[part, NBR] + 8 * at, size, _I64), low, words, edges, ats)
        if room - to < held + count:
            return to, held + count
        tell_places(ats, count, words, firsts, ranks, ranked, places, out_places, to + held)
        weights = view_at(table[part, WEIGHTS] + 4 * at, np.int64(0) if table[part, WEIGHTS] == 0 else size, _F32)
        tell(edges, count, weights, eids_of(table, part, at), slots, held, asked, out_weights, to + held)
        piece, held = piece + size, held + count
        if held > _MANY:
            read(slots, held, out_eids, to)
            to, held = to + held, np.uint64(0)
    return to, held


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
    gathered, edges, ranks, ats = np.zeros((4, _PIECE + LANES), np.uint32)
    owners, begins = np.empty(_PIECE + LANES, np.int32), np.empty(_PIECE, np.int64)
    rich, looked, first = WIDE and asked and out_weights.shape[0] == 0, np.uint64(0), to
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
            found = sift(gathered[:filled], low, words, edges, ats)
            if room - to < kept + found:
                break
            tell_places(ats, found, words, firsts, ranks, order, places, out_places, own)
            tell_gathered(table, lines, starts, queue, turn, owners, begins, edges, found, slots, kept, asked, sizes, out_weights, own)
            kept += found
            turn, own, looked = turn + count, to + kept, looked + np.uint64(filled)
            if kept > _MANY:
                read(slots, kept, out_eids, to)
                to, kept = own, np.uint64(0)
            continue
        dense = bool(rich and _DENSE * (own - first) > looked)
        if turn + _AHEAD < turns:
            later = queue[turn + _AHEAD]
            _ask_for(table, lines[later], starts[later], degrees[later], dense and table[lines[later], PAIRS] != 0)
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
                table, part, starts[i], degree, low, words, firsts, order, places, edges, ats, ranks, slots, kept, asked, dense, out_places,
                out_weights, out_eids, to,
            )  # fmt: skip
        if to > room or room - to < kept:
            break
        sizes[i], turn, own, looked = np.int32(to + kept - own), turn + 1, to + kept, looked + np.uint64(degree)
    kept = own - min(to, own)
    read(slots, kept, out_eids, min(to, own))
    for k in range(marked):
        words[touched[k]] = 0
    state[ROW], state[TOTAL] = queue[turn] if turn < turns else degrees.shape[0], np.int64(own)
    return sound
