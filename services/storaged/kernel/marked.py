"""Edges between rows and a list of nodes whose ids lie near each other: a bit for each id says at once whether an edge leads to one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import Whole, inlined, kernel, prefetch_at, view_at
from storaged.kernel.between import ROW, TOTAL, first_from, steps_among
from storaged.kernel.table import EID, NARROW, NARROW_EID, NBR, SLOTS, WEIGHTS

HELD = 512
"""Edges that are found before what is told of them is read: by then it is near."""
_AHEAD, _LINES = 8, 16
"""Rows, and cache lines of each, that are asked for before their turn."""
_LOOKS = 4
"""Neighbors that are looked at in the time that a step of a search takes."""
_ONE, _S1, _S2, _S4, _S6, _S56, _LOW6 = (np.uint64(value) for value in (1, 1, 2, 4, 6, 56, 63))
_TWOS, _FOURS, _EIGHTS, _BYTES = (np.uint64(value) for value in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x0101010101010101))
_I64, _U32, _F32 = np.zeros(0, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.float32)


@inlined
def _ones(word: np.uint64) -> np.uint64:
    """How many bits are set; LLVM knows this form, and has one instruction for it (Warren 2012, Hacker's Delight, section 5-1)."""
    word = word - (word >> _S1 & _TWOS)
    word = (word & _FOURS) + (word >> _S2 & _FOURS)
    return ((word + (word >> _S4)) & _EIGHTS) * _BYTES >> _S56


@inlined
def _mark(ids: NDArray[np.int64], begin: Whole, end: Whole, low: np.uint64, words: NDArray[np.uint64], touched: NDArray[np.int32]) -> Whole:
    """Set the bits of some targets; the words that were 0 before are listed, and how many these are is told."""
    count = np.int64(0)
    for i in range(begin, end):
        at = np.uint64(ids[i]) - low
        before = words[at >> _S6]
        touched[count] = np.int32(at >> _S6)
        count += np.int64(before == 0)
        words[at >> _S6] = before | _ONE << (at & _LOW6)
    return count


@inlined
def _rank(at: np.uint64, words: NDArray[np.uint64], firsts: NDArray[np.int32]) -> np.int64:
    """The rank of a target: those of its word follow each other."""
    word = at >> _S6
    return np.int64(firsts[word]) + np.int64(_ones(words[word] & ((_ONE << (at & _LOW6)) - _ONE)))


@inlined
def _enter(
    ids: NDArray[np.int64],
    begin: Whole,
    end: Whole,
    low: np.uint64,
    words: NDArray[np.uint64],
    touched: NDArray[np.int32],
    count: Whole,
    firsts: NDArray[np.int32],
    ranked: NDArray[np.int32],
    places: NDArray[np.int32],
    told: NDArray[np.int32],
) -> bool:
    """Have targets, and what is told of them, found by rank, word after word as they are listed; whether none is there twice."""
    rank = np.int64(begin)
    for k in range(count):
        firsts[touched[k]] = rank
        rank += np.int64(_ones(words[touched[k]]))
    for i in range(begin, end):
        rank_of = _rank(np.uint64(ids[i]) - low, words, firsts)
        ranked[rank_of], told[rank_of] = i, places[i]
    return bool(rank == end)


@inlined
def _scan(nbr: NDArray[Any], low: np.uint64, words: NDArray[np.uint64], slots: NDArray[np.int64], kept: np.uint64) -> np.uint64:
    """List the slots of a row that lead to targets behind ``kept`` others; how many there are then.

    Whether one does is hard to foretell, so that each is written, and counts or does not.
    """
    last = np.uint64(64 * words.shape[0] - 1)
    for edge in range(nbr.shape[0]):
        at = min(np.uint64(nbr[edge]) - low, last)
        slots[kept] = edge
        kept += words[at >> _S6] >> (at & _LOW6) & _ONE
    return kept


@inlined
def _tell(
    nbr: NDArray[Any],
    low: np.uint64,
    words: NDArray[np.uint64],
    firsts: NDArray[np.int32],
    told: NDArray[np.int32],
    slots: NDArray[np.int64],
    held: np.uint64,
    kept: np.uint64,
    start: np.int64,
    eids: np.int64,
    width: np.int64,
    out: NDArray[np.int32],
    to: np.uint64,
) -> None:
    """Tell the places of the targets that listed slots lead to, ask for the edges' ids, and list where in their part these are."""
    for j in range(held, kept):
        edge = slots[j]
        out[to] = told[_rank(np.uint64(nbr[edge]) - low, words, firsts)]
        to += _ONE
        slots[j] = start + edge
        prefetch_at(np.uint64(eids + width * (start + edge)))


@inlined
def _seek(
    nbr: NDArray[Any],
    ids: NDArray[np.int64],
    ranked: NDArray[np.int32],
    begin: Whole,
    end: Whole,
    told: NDArray[np.int32],
    slots: NDArray[np.int64],
    kept: np.uint64,
    start: np.int64,
    out: NDArray[np.int32],
    to: np.uint64,
) -> np.uint64:
    """`_scan` and `_tell` for few targets, ascending by rank: each is searched for in the row. What there is no room for is counted only."""
    slot, degree, room = np.int64(0), np.int64(nbr.shape[0]), np.uint64(out.shape[0])
    for rank in range(begin, end):
        wanted = ids[ranked[rank]]
        slot = np.int64(first_from(nbr, slot, degree, wanted))
        while slot < degree and np.int64(nbr[slot]) == wanted:
            if to < room:
                out[to] = told[rank]
            slots[kept] = start + slot
            kept += _ONE
            to += _ONE
            slot += 1
    return kept


@inlined
def _read(
    table: NDArray[np.int64],
    lines: NDArray[np.int64],
    sizes: NDArray[np.int64],
    row: np.int64,
    end: np.int64,
    slots: NDArray[np.int64],
    to: np.uint64,
    out_weights: NDArray[np.float32],
    out_eids: NDArray[np.int64],
) -> None:
    """Read the weights and ids of the edges that are held: those of some rows, one after another."""
    if out_weights.shape[0] > 0:
        j = np.uint64(0)
        for i in range(row, end):
            part = lines[i]
            weights = view_at(table[part, WEIGHTS], np.int64(0) if table[part, WEIGHTS] == 0 else table[part, SLOTS], _F32)
            for _ in range(sizes[i]):
                out_weights[to + j] = weights[slots[j]] if weights.shape[0] > 0 else np.float32(1.0)
                j += _ONE
    if out_eids.shape[0] > 0:
        j = np.uint64(0)
        for i in range(row, end):
            part = lines[i]
            short = view_at(table[part, NARROW_EID], np.int64(0) if table[part, NARROW_EID] == 0 else table[part, SLOTS], _U32)
            if short.shape[0] > 0:
                for _ in range(sizes[i]):
                    out_eids[to + j] = short[slots[j]]
                    j += _ONE
                continue
            eids = view_at(table[part, EID], table[part, SLOTS], _I64)
            for _ in range(sizes[i]):
                out_eids[to + j] = eids[slots[j]]
                j += _ONE


@inlined
def _ask_for(table: NDArray[np.int64], part: np.int64, start: np.int64, degree: np.int64) -> None:
    """Ask for the beginning of a row."""
    narrow = table[part, NARROW]
    width = np.int64(8) if narrow == 0 else np.int64(4)
    at = (table[part, NBR] if narrow == 0 else narrow) + width * start
    for line in range(min((degree * width + 63) >> 6, np.int64(_LINES))):
        prefetch_at(np.uint64(at + 64 * line))


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
    told: NDArray[np.int32],
    slots: NDArray[np.int64],
    state: NDArray[np.int64],
    sizes: NDArray[np.int64],
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
        Targets, by group, in any order within one, and what is to be told of each.
    of, groups : int32[m], int64[t]
        As there; nodes that have edges come group after group as well (`ascend`).
    least : int64
        The least of ``ids``.
    words : uint64[words], inout
        A bit for each id from ``least`` on, and at least one more than the targets' ids need; all 0, and so they are left.
    firsts, touched, ranked, told : int32[words], int32[t], int32[t], int32[t]
        Room to work in.
    slots : int64[HELD + the highest degree + 1]
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
    m, low, room, grouped = lines.shape[0], np.uint64(least), np.uint64(out_places.shape[0]), of.shape[0] > 0
    begin, end, marked, group, ascending = np.int64(0), np.int64(0), np.int64(0), np.int64(-1), False
    i, to, row, held, sound = np.int64(state[ROW]), np.uint64(state[TOTAL]), np.int64(state[ROW]), np.uint64(0), True
    if not grouped:
        end = np.int64(ids.shape[0])
        marked = np.int64(_mark(ids, begin, end, low, words, touched))
        sound = _enter(ids, begin, end, low, words, touched, marked, firsts, ranked, places, told)
    while sound and i < m:
        if i + _AHEAD < m:
            _ask_for(table, lines[i + _AHEAD], starts[i + _AHEAD], degrees[i + _AHEAD])
        degree, start, part, kept = degrees[i], starts[i], lines[i], held
        if grouped and degree > 0 and np.int64(of[i]) != group:
            for k in range(marked):
                words[touched[k]] = 0
            group = np.int64(of[i])
            begin = np.int64(first_from(groups, end, np.int64(groups.shape[0]), group))
            end = np.int64(first_from(groups, begin, np.int64(groups.shape[0]), group + 1))
            marked, ascending = np.int64(_mark(ids, begin, end, low, words, touched)), False
            sound = _enter(ids, begin, end, low, words, touched, marked, firsts, ranked, places, told)
        if sound and degree > 0 and begin < end:
            narrow = view_at(table[part, NARROW] + 4 * start, np.int64(0) if table[part, NARROW] == 0 else degree, _U32)
            nbr = view_at(table[part, NBR] + 8 * start, degree, _I64)
            eids, width = (table[part, EID], np.int64(8)) if table[part, NARROW_EID] == 0 else (table[part, NARROW_EID], np.int64(4))
            width *= np.int64(out_eids.shape[0] > 0)
            by_target = degree > _LOOKS * (end - begin) * np.int64(steps_among(degree))
            if by_target and not ascending:
                touched[:marked].sort()
                _enter(ids, begin, end, low, words, touched, marked, firsts, ranked, places, told)
                ascending = True
            if by_target and narrow.shape[0] > 0:
                kept = _seek(narrow, ids, ranked, begin, end, told, slots, held, start, out_places, to)
            elif by_target:
                kept = _seek(nbr, ids, ranked, begin, end, told, slots, held, start, out_places, to)
            elif narrow.shape[0] > 0:
                kept = _scan(narrow, low, words, slots, held)
            else:
                kept = _scan(nbr, low, words, slots, held)
            if room - to < kept - held:
                break
            if not by_target and narrow.shape[0] > 0:
                _tell(narrow, low, words, firsts, told, slots, held, kept, start, eids, width, out_places, to)
            elif not by_target:
                _tell(nbr, low, words, firsts, told, slots, held, kept, start, eids, width, out_places, to)
        sizes[i] = np.int64(kept - held)
        to += kept - held
        held = kept
        i += 1
        if held >= HELD:
            _read(table, lines, sizes, row, i, slots, to - held, out_weights, out_eids)
            held, row = np.uint64(0), i
    _read(table, lines, sizes, row, i, slots, to - held, out_weights, out_eids)
    for k in range(marked):
        words[touched[k]] = 0
    state[ROW], state[TOTAL] = i, np.int64(to)
    return sound
