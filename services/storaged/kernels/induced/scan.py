"""Which edges of a row lead to targets that are kept as bits, sixteen of them looked at at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import CHECK_BOUNDS, inlined, prefetch_at, register
from asterism_graphkit.compile.simd import LANES, USE_SIMD, compress_members, compress_pairs
from asterism_graphkit.relabel.bitset import BIT_MASK, ONE, WORD_SHIFT
from storaged.kernels.induced.emit import EID_STRIDE

_S32, _HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_LANES, _NARROW, _LINE, _PREFETCH_BYTES = (
    np.uint64(LANES),
    np.uint64(4),
    np.uint64(64),
    np.uint64(2048),
)
"""Bytes of a narrow id and of a cache line, and how far ahead pairs are asked for: the system's own
guess is too late for them.
"""


@inlined
def _append_if_member(
    neighbor: np.uint64,
    value: np.uint64,
    base_id: np.uint64,
    words: NDArray[np.uint64],
    out_values: NDArray[np.uint32],
    bit_positions: NDArray[np.uint32],
    count: np.uint64,
) -> np.uint64:
    """List what an edge is known by, and its neighbor's bit, behind ``count`` others; how many
    there are then.

    Whether it leads to a target is hard to foretell, so that each is written, and counts or does
    not."""
    bit = min(neighbor - base_id, np.uint64(64 * words.shape[0] - 1))
    out_values[count], bit_positions[count] = value, bit
    new_count: np.uint64 = count + (words[bit >> WORD_SHIFT] >> (bit & BIT_MASK) & ONE)
    return new_count


@inlined
def scan_wide(
    nbr: NDArray[np.int64],
    base_id: np.uint64,
    words: NDArray[np.uint64],
    edges: NDArray[np.uint32],
    bit_positions: NDArray[np.uint32],
) -> np.uint64:
    """List the edges of a row, or of a piece of one, that lead to targets, and these' bits; how
    many there are.
    """
    count = np.uint64(0)
    for edge in range(np.uint64(nbr.shape[0])):
        count = _append_if_member(
            np.uint64(nbr[edge]), np.uint64(edge), base_id, words, edges, bit_positions, count
        )
    return count


@inlined
def _vectorized_size(size: np.uint64, base_id: np.uint64, words: NDArray[np.uint64]) -> np.uint64:
    """How many of a row's neighbors are taken sixteen at a time: none where a target may have an id
    that is not narrow, or nothing is won.
    """
    id_limit = base_id + np.uint64(64 * words.shape[0])
    vector_size: np.uint64 = (
        size - size % _LANES if USE_SIMD and id_limit >> _S32 == 0 else np.uint64(0)
    )
    return vector_size


@inlined
def scan_narrow(
    nbr: NDArray[np.uint32],
    base_id: np.uint64,
    words: NDArray[np.uint64],
    edges: NDArray[np.uint32],
    bit_positions: NDArray[np.uint32],
) -> np.uint64:
    """As `scan_wide` of narrow ids, sixteen at a time."""
    if CHECK_BOUNDS:
        register(nbr)
    count, size, address = np.uint64(0), np.uint64(nbr.shape[0]), np.uint64(nbr.ctypes.data)
    vector_size = _vectorized_size(size, base_id, words)
    for edge in range(np.uint64(0), vector_size, _LANES):
        count += compress_members(
            address + _NARROW * edge, edge, base_id, words, edges, bit_positions, count
        )
    for edge in range(vector_size, size):
        count = _append_if_member(
            np.uint64(nbr[edge]), np.uint64(edge), base_id, words, edges, bit_positions, count
        )
    return count


@inlined
def scan_pairs(
    pairs: NDArray[np.uint64],
    base_id: np.uint64,
    words: NDArray[np.uint64],
    eids: NDArray[np.uint32],
    bit_positions: NDArray[np.uint32],
) -> np.uint64:
    """As `scan_narrow`, of neighbors with the ids of edges beside them: these are listed."""
    if CHECK_BOUNDS:
        register(pairs)
    count, size, address = np.uint64(0), np.uint64(pairs.shape[0]), np.uint64(pairs.ctypes.data)
    vector_size = _vectorized_size(size, base_id, words)
    for edge in range(np.uint64(0), vector_size, _LANES):  # two lines at a time
        prefetch_at(address + EID_STRIDE * edge + _PREFETCH_BYTES)
        prefetch_at(address + EID_STRIDE * edge + _PREFETCH_BYTES + _LINE)
        count += compress_pairs(
            address + EID_STRIDE * edge, base_id, words, eids, bit_positions, count
        )
    for edge in range(vector_size, size):
        count = _append_if_member(
            pairs[edge] & _HALF, pairs[edge] >> _S32, base_id, words, eids, bit_positions, count
        )
    return count
