"""Write the target, weight and id of each matching edge.

Edge ids are prefetched when an edge is found, and read one block later.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import f32_at, i64_at, inlined, prefetch_at, u32_at
from asterism_graphkit.compile.simd import LANES, rank_bits
from asterism_graphkit.relabel.bitset import ONE
from storaged.kernels.adjacency_rows import EID, PAIRS, WEIGHTS, RowSpans
from storaged.kernels.induced.bitset import TargetBitset, place_of_rank
from storaged.kernels.induced.hash_join import EdgeOutputs

EID_STRIDE = np.uint64(8)
"""Bytes between the ids of adjacent edges, with or without the neighbor in between."""


class ScanBuffers(NamedTuple):
    """Scratch arrays for scanning n neighbors and `LANES` more, and for e found edges."""

    neighbors: NDArray[np.uint32]
    """Neighbors of short rows, concatenated; uint32[n + LANES]."""
    owners: NDArray[np.int32]
    """Row of each of these neighbors; int32[n + LANES]."""
    row_offsets: NDArray[np.int64]
    """First neighbor of each of these rows; int64[n]."""
    edges: NDArray[np.uint32]
    """Offsets of matching edges, or their ids if read from pairs; uint32[n + LANES]."""
    bit_positions: NDArray[np.uint32]
    """Bits of their targets; uint32[n + LANES]."""
    ranks: NDArray[np.uint32]
    """Ranks of their targets; uint32[n + LANES]."""
    eid_addresses: NDArray[np.uint64]
    """Results of `eid_address` for edges with unread ids; uint64[e]."""
    stop: NDArray[np.int64]
    """Stop flag of the caller, int64[1]: a nonzero value stops the call."""


@inlined
def eid_address(table: NDArray[np.int64], part: np.int64, slot: np.int64) -> np.uint64:
    """Return the tagged address of an edge's id.

    Bit 0 is set for 64-bit ids: no value has an odd address.
    """
    pairs = table[part, PAIRS]
    return np.uint64(table[part, EID] + 8 * slot + 1 if pairs == 0 else pairs + 8 * slot + 4)


@inlined
def read_eid(address: np.uint64) -> np.int64:
    """Return the edge id at an address returned by `eid_address`."""
    return i64_at(address - ONE, 0) if address & ONE else np.int64(u32_at(address, 0))


@inlined
def emit_places(
    buffers: ScanBuffers,
    count: np.uint64,
    bitset: TargetBitset,
    order: NDArray[np.int32],
    places: NDArray[np.int32],
    out: EdgeOutputs,
    out_pos: np.uint64,
) -> None:
    """Write the request positions of the targets of ``count`` edges from ``out_pos`` on.

    Parameters
    ----------
    order : int32[t] or [0]
        ``bitset.rank_order``; empty if ranks are positions.
    places : int32[t] or [0]
        As in `storaged.kernels.induced.hash_join.TargetNodes`.
    """
    for j in range(np.uint64(0), count, np.uint64(LANES)):
        rank_bits(buffers.bit_positions, j, bitset.words, bitset.word_ranks, buffers.ranks)
    if order.shape[0] == 0 and places.shape[0] == 0:
        for j in range(count):
            out.places[out_pos + j] = buffers.ranks[j]
    else:
        for j in range(count):
            out.places[out_pos + j] = place_of_rank(np.uint64(buffers.ranks[j]), order, places)


@inlined
def emit(
    buffers: ScanBuffers,
    count: np.uint64,
    num_listed: np.uint64,
    weights: NDArray[np.float32],
    eids: np.uint64,
    out: EdgeOutputs,
    out_pos: np.uint64,
) -> None:
    """Write the weights of ``count`` edges of a row, and list the addresses of their ids.

    Parameters
    ----------
    num_listed : uint64
        Number of addresses that are already listed.
    weights : float32[degree] or [0]
        Weights of the row; if empty, all are 1.
    eids : uint64
        The `eid_address` of the row's first edge.
    out_pos : uint64
        Position of the first weight.
    """
    if out.weights.shape[0] > 0:
        for j in range(count):
            out.weights[out_pos + j] = (
                weights[buffers.edges[j]] if weights.shape[0] > 0 else np.float32(1.0)
            )
    if out.eids.shape[0] > 0:
        for j in range(count):
            buffers.eid_addresses[num_listed + j] = eids + EID_STRIDE * np.uint64(buffers.edges[j])
            prefetch_at(buffers.eid_addresses[num_listed + j])


@inlined
def emit_gathered(
    rows: RowSpans,
    row_indices: NDArray[np.int32],
    buffers: ScanBuffers,
    count: np.uint64,
    num_listed: np.uint64,
    sizes: NDArray[np.int32],
    out: EdgeOutputs,
    out_pos: np.uint64,
) -> None:
    """Write weights and list id addresses like `emit`, for edges of several rows.

    Parameters
    ----------
    row_indices : int32[..]
        Row of each index in ``buffers.owners``.
    sizes : int32[m], inout
        Number of edges found in each row; incremented.
    """
    for j in range(count):
        edge = np.uint64(buffers.edges[j])
        owner = np.uint64(buffers.owners[edge])
        i = np.uint64(row_indices[owner])
        part, slot = (
            rows.partitions[i],
            rows.starts[i] + np.int64(edge) - buffers.row_offsets[owner],
        )
        sizes[i] += 1
        if out.weights.shape[0] > 0:
            weights_address = np.uint64(rows.table[part, WEIGHTS])
            out.weights[out_pos + j] = (
                f32_at(weights_address, slot) if weights_address != 0 else np.float32(1.0)
            )
        if out.eids.shape[0] > 0:
            buffers.eid_addresses[num_listed + j] = eid_address(rows.table, part, slot)
            prefetch_at(buffers.eid_addresses[num_listed + j])


@inlined
def read_eids(
    buffers: ScanBuffers, num_listed: np.uint64, out: EdgeOutputs, out_pos: np.uint64
) -> None:
    """Read the ids at the ``num_listed`` listed addresses, if ids are wanted."""
    if out.eids.shape[0] > 0:
        for j in range(num_listed):
            out.eids[out_pos + j] = read_eid(buffers.eid_addresses[j])
