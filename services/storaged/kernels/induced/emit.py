"""What is told of edges that lead to targets: whose they are, what they weigh, and their ids, which
are read when they are near.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import f32_at, i64_at, inlined, prefetch_at, u32_at
from asterism_graphkit.compile.simd import LANES, rank_bits
from asterism_graphkit.relabel.bitset import ONE
from storaged.kernels.adjacency import EID, PAIRS, WEIGHTS
from storaged.kernels.induced.bitset import place_of_rank

EID_STRIDE = np.uint64(8)
"""Bytes from one edge's id to the next one's, with its neighbor's in between or by itself."""


@inlined
def eid_address(table: NDArray[np.int64], part: np.int64, slot: np.int64) -> np.uint64:
    """Where an edge's id is. No value is at an odd place: one more tells that ids have 64 bits
    there.
    """
    pairs = table[part, PAIRS]
    return np.uint64(table[part, EID] + 8 * slot + 1 if pairs == 0 else pairs + 8 * slot + 4)


@inlined
def read_eid(address: np.uint64) -> np.int64:
    """The id of the edge of which `eid_address` tells."""
    return i64_at(address - ONE, 0) if address & ONE else np.int64(u32_at(address, 0))


@inlined
def emit_places(
    bit_positions: NDArray[np.uint32],
    count: np.uint64,
    words: NDArray[np.uint64],
    word_ranks: NDArray[np.int32],
    ranks: NDArray[np.uint32],
    rank_order: NDArray[np.int32],
    places: NDArray[np.int32],
    out_places: NDArray[np.int32],
    out_pos: np.uint64,
) -> None:
    """Tell which targets edges lead to, by their bits, behind which others are."""
    for j in range(np.uint64(0), count, np.uint64(LANES)):
        rank_bits(bit_positions, j, words, word_ranks, ranks)
    if rank_order.shape[0] == 0 and places.shape[0] == 0:
        for j in range(count):
            out_places[out_pos + j] = ranks[j]
    else:
        for j in range(count):
            out_places[out_pos + j] = place_of_rank(np.uint64(ranks[j]), rank_order, places)


@inlined
def emit(
    edges: NDArray[np.uint32],
    count: np.uint64,
    weights: NDArray[np.float32],
    eids: np.uint64,
    slots: NDArray[np.uint64],
    num_listed: np.uint64,
    want_eids: bool,
    out_weights: NDArray[np.float32],
    out_pos: np.uint64,
) -> None:
    """Tell what listed edges of a row weigh, and list where their ids are, which are asked for,
    behind those of ``num_listed`` others.
    """
    if out_weights.shape[0] > 0:
        for j in range(count):
            out_weights[out_pos + j] = (
                weights[edges[j]] if weights.shape[0] > 0 else np.float32(1.0)
            )
    if want_eids:
        for j in range(count):
            slots[num_listed + j] = eids + EID_STRIDE * np.uint64(edges[j])
            prefetch_at(slots[num_listed + j])


@inlined
def emit_gathered(
    table: NDArray[np.int64],
    partitions: NDArray[np.int64],
    starts: NDArray[np.int64],
    queue: NDArray[np.int32],
    queue_index: np.int64,
    owners: NDArray[np.int32],
    row_offsets: NDArray[np.int64],
    edges: NDArray[np.uint32],
    count: np.uint64,
    slots: NDArray[np.uint64],
    num_listed: np.uint64,
    want_eids: bool,
    sizes: NDArray[np.int32],
    out_weights: NDArray[np.float32],
    out_pos: np.uint64,
) -> None:
    """As `emit`, for edges of several rows, each of which has so many more."""
    for j in range(count):
        edge = np.uint64(edges[j])
        owner = np.uint64(owners[edge])
        i = np.uint64(queue[np.uint64(queue_index) + owner])
        part, slot = partitions[i], starts[i] + np.int64(edge) - row_offsets[owner]
        sizes[i] += 1
        if out_weights.shape[0] > 0:
            weights_address = np.uint64(table[part, WEIGHTS])
            out_weights[out_pos + j] = (
                f32_at(weights_address, slot) if weights_address != 0 else np.float32(1.0)
            )
        if want_eids:
            slots[num_listed + j] = eid_address(table, part, slot)
            prefetch_at(slots[num_listed + j])


@inlined
def read_eids(
    slots: NDArray[np.uint64],
    num_listed: np.uint64,
    out_eids: NDArray[np.int64],
    out_pos: np.uint64,
) -> None:
    """Read the ids of edges, of which it is known by now where they are."""
    if out_eids.shape[0] > 0:
        for j in range(num_listed):
            out_eids[out_pos + j] = read_eid(slots[j])
