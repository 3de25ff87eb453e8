"""Bloom filter of joined pairs, and other data that node2vec reads before row searches.

The other data are the largest share of each row that leads to one neighbor, and row heads. A filter
(Bloom 1970, *Space/time trade-offs in hash coding with allowable errors*, CACM 13(7)) has one byte
per edge. All bits of a pair are in one word, so a lookup is one random read. Searching a row takes
a read each time its length is halved. A pair that is not in the filter is not joined. A pair that
is in the filter has to be searched.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import IntLike, inlined, kernel, u64_at
from asterism_graphkit.random.rng import GOLDEN, bounded, mix64
from storaged.kernels.adjacency_rows import COLUMNS

BLOOM, BLOOM_WORDS, MAX_SHARES, ROW_HEADS = range(COLUMNS, COLUMNS + 4)
"""Columns that a table of walks has after those of `storaged.kernels.adjacency_rows`.

The address of a filter's words, their number, and the addresses of shares and of row heads.
"""
EDGES_PER_WORD = 8
_ONE, _S6, _LOW6, _EIGHTS, _S32 = (
    np.uint64(1),
    np.uint64(6),
    np.uint64(63),
    np.uint64(3),
    np.uint64(32),
)
_ROUND_UP = 1.0 + 2.0**-22
"""Factor that keeps a share from being rounded down when it is stored in 32 bits.

Part of the sampling contract: changing it changes results for a given seed.
"""


@inlined
def pair_hash(row: IntLike, node: IntLike) -> np.uint64:
    """Return the hash of a pair: high bits select the word, low bits the bits in it."""
    return mix64(np.uint64(node) + np.uint64(row) * GOLDEN)


@inlined
def pair_mask(pair: np.uint64) -> np.uint64:
    """Return the mask of a pair's three bits."""
    return (
        _ONE << (pair & _LOW6)
        | _ONE << (pair >> _S6 & _LOW6)
        | _ONE << (pair >> (_S6 + _S6) & _LOW6)
    )


@inlined
def bloom_word_address(pair: np.uint64, table: NDArray[np.int64], table_row: IntLike) -> np.uint64:
    """Return the address of a pair's word."""
    return np.uint64(table[table_row, BLOOM]) + (
        bounded(pair, np.uint64(table[table_row, BLOOM_WORDS])) << _EIGHTS
    )


@inlined
def may_have_edge(pair: np.uint64, table: NDArray[np.int64], table_row: IntLike) -> bool:
    """Return whether a pair may be joined."""
    bits = pair_mask(pair)
    return u64_at(bloom_word_address(pair, table, table_row), np.uint64(0)) & bits == bits  # type: ignore[no-any-return]


@kernel
def fill_bloom_filter(
    indptr: NDArray[np.int64],
    nbr: NDArray[np.int64],
    first: np.int64,
    end: np.int64,
    words: NDArray[np.uint64],
) -> None:
    """Add the edges of some rows to a Bloom filter.

    Parameters
    ----------
    indptr, nbr : ndarray of int64, shape (rows + 1,), and ndarray of int64, shape (slots,)
    first, end : int64
        Range of rows.
    words : ndarray of uint64, shape (n,), inout
        n >= 1.
    """
    for row in range(first, end):
        for slot in range(indptr[row], indptr[row + 1]):
            pair = pair_hash(row, nbr[slot])
            words[np.int64(bounded(pair, np.uint64(words.shape[0])))] |= pair_mask(pair)


@kernel
def max_neighbor_shares(
    indptr: NDArray[np.int64],
    nbr: NDArray[np.int64],
    weights: NDArray[np.float32],
    sums: NDArray[np.float64],
    first: np.int64,
    end: np.int64,
    out: NDArray[np.float32],
) -> None:
    """Write the largest share of each row's weight that leads to one neighbor.

    All edges to a neighbor count.

    Parameters
    ----------
    indptr, nbr : ndarray of int64, shape (rows + 1,), and ndarray of int64, shape (slots,)
        Neighbors ascend within a row.
    weights, sums : ndarray of float32, shape (slots,), and ndarray of float64, shape (rows,)
        If empty, all edges have the same weight.
    first, end : int64
        Range of rows.
    out : ndarray of float32, shape (rows,), inout
        Never below the exact share, and only slightly above; 0 for a row of weight 0.
    """
    for row in range(first, end):
        total = sums[row] if sums.shape[0] > 0 else np.float64(indptr[row + 1] - indptr[row])
        max_weight, neighbor_weight = 0.0, 0.0
        for slot in range(indptr[row], indptr[row + 1]):
            if slot > indptr[row] and nbr[slot] != nbr[slot - 1]:
                neighbor_weight = 0.0
            neighbor_weight += np.float64(weights[slot]) if weights.shape[0] > 0 else 1.0
            max_weight = max(max_weight, neighbor_weight)
        out[row] = np.float32(max_weight / total * _ROUND_UP) if total > 0.0 else np.float32(0.0)


@kernel
def write_row_heads(
    indptr: NDArray[np.int64], shares: NDArray[np.float32], out: NDArray[np.uint64]
) -> None:
    """Write row heads: the data of a row that a node2vec walk needs, in one read.

    Parameters
    ----------
    indptr : ndarray of int64, shape (rows + 1,)
    shares : ndarray of float32, shape (rows,) or (0,)
        Result of `max_neighbor_shares`. If empty, shares are 0.
    out : ndarray of uint64, shape (2 * rows,), out
        For each row its first slot, then degree << 32 | the bits of its share.
    """
    bits = shares.view(np.uint32)
    for row in range(indptr.shape[0] - 1):
        share = np.uint64(bits[row]) if bits.shape[0] > 0 else np.uint64(0)
        out[2 * row], out[2 * row + 1] = (
            np.uint64(indptr[row]),
            np.uint64(indptr[row + 1] - indptr[row]) << _S32 | share,
        )
