"""What is told of edges that lead to targets: whose they are, what they weigh, and their ids, which are read when they are near."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.bits import ONE
from graphkit.jit import f32_at, i64_at, inlined, prefetch_at, u32_at
from graphkit.lanes import LANES, rank
from storaged.kernel.marks import told_of
from storaged.kernel.table import EID, PAIRS, WEIGHTS

WIDTH = np.uint64(8)
"""Bytes from one edge's id to the next one's, with its neighbor's in between or by itself."""


@inlined
def eids_of(table: NDArray[np.int64], part: np.int64, slot: np.int64) -> np.uint64:
    """Where an edge's id is. No value is at an odd place: one more tells that ids have 64 bits there."""
    pairs = table[part, PAIRS]
    return np.uint64(table[part, EID] + 8 * slot + 1 if pairs == 0 else pairs + 8 * slot + 4)


@inlined
def eid_at(eids: np.uint64) -> np.int64:
    """The id of the edge of which `eids_of` tells."""
    return i64_at(eids - ONE, 0) if eids & ONE else np.int64(u32_at(eids, 0))


@inlined
def tell_places(
    ats: NDArray[np.uint32],
    count: np.uint64,
    words: NDArray[np.uint64],
    firsts: NDArray[np.int32],
    ranks: NDArray[np.uint32],
    ranked: NDArray[np.int32],
    places: NDArray[np.int32],
    out_places: NDArray[np.int32],
    to: np.uint64,
) -> None:
    """Tell which targets edges lead to, by their bits, behind which others are."""
    for j in range(np.uint64(0), count, np.uint64(LANES)):
        rank(ats, j, words, firsts, ranks)
    if ranked.shape[0] == 0 and places.shape[0] == 0:
        for j in range(count):
            out_places[to + j] = ranks[j]
    else:
        for j in range(count):
            out_places[to + j] = told_of(np.uint64(ranks[j]), ranked, places)


@inlined
def tell(
    edges: NDArray[np.uint32],
    count: np.uint64,
    weights: NDArray[np.float32],
    eids: np.uint64,
    slots: NDArray[np.uint64],
    held: np.uint64,
    asked: bool,
    out_weights: NDArray[np.float32],
    to: np.uint64,
) -> None:
    """Tell what listed edges of a row weigh, and list where their ids are, which are asked for, behind those of ``held`` others."""
    if out_weights.shape[0] > 0:
        for j in range(count):
            out_weights[to + j] = weights[edges[j]] if weights.shape[0] > 0 else np.float32(1.0)
    if asked:
        for j in range(count):
            slots[held + j] = eids + WIDTH * np.uint64(edges[j])
            prefetch_at(slots[held + j])


@inlined
def tell_gathered(
    table: NDArray[np.int64],
    lines: NDArray[np.int64],
    starts: NDArray[np.int64],
    queue: NDArray[np.int32],
    turn: np.int64,
    owners: NDArray[np.int32],
    begins: NDArray[np.int64],
    edges: NDArray[np.uint32],
    count: np.uint64,
    slots: NDArray[np.uint64],
    held: np.uint64,
    asked: bool,
    sizes: NDArray[np.int32],
    out_weights: NDArray[np.float32],
    to: np.uint64,
) -> None:
    """As `tell`, for edges of several rows, each of which has so many more."""
    for j in range(count):
        edge = np.uint64(edges[j])
        owner = np.uint64(owners[edge])
        i = np.uint64(queue[np.uint64(turn) + owner])
        part, slot = lines[i], starts[i] + np.int64(edge) - begins[owner]
        sizes[i] += 1
        if out_weights.shape[0] > 0:
            heavy = np.uint64(table[part, WEIGHTS])
            out_weights[to + j] = f32_at(heavy, slot) if heavy != 0 else np.float32(1.0)
        if asked:
            slots[held + j] = eids_of(table, part, slot)
            prefetch_at(slots[held + j])


@inlined
def read(slots: NDArray[np.uint64], kept: np.uint64, out_eids: NDArray[np.int64], to: np.uint64) -> None:
    """Read the ids of edges, of which it is known by now where they are."""
    if out_eids.shape[0] > 0:
        for j in range(kept):
            out_eids[to + j] = eid_at(slots[j])
