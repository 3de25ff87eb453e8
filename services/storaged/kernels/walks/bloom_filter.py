"""What node2vec walks read before they search a row: a Bloom filter of joined pairs, and the
largest share of a row that leads to one neighbor.

A filter (Bloom 1970, *Space/time trade-offs in hash coding with allowable errors*, CACM 13(7)) has
a byte for each edge. All bits of a pair are in one word, so that a lookup is one read at random,
where a search of a row is a read for each time that its length halves. A pair that is not in the
filter is not joined; one that is, is searched for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import IntLike, inlined, kernel, u64_at
from asterism_graphkit.random.rng import GOLDEN, bounded, mix64
from storaged.kernels.adjacency import COLUMNS

BLOOM, BLOOM_WORDS, MAX_SHARES, ROW_HEADS = range(COLUMNS, COLUMNS + 4)
"""Columns that a table of walks has after those of `storaged.kernels.adjacency`: the address of a
filter's words, how many there are, and the addresses of shares and of heads."""
EDGES_PER_WORD = 8
_ONE, _S6, _LOW6, _EIGHTS, _S32 = (
    np.uint64(1),
    np.uint64(6),
    np.uint64(63),
    np.uint64(3),
    np.uint64(32),
)
_ROUND_UP = 1.0 + 2.0**-22
"""A share is kept in 32 bits and must not be less than it is."""


@inlined
def pair_hash(row: IntLike, node: IntLike) -> np.uint64:
    """The hash of a pair: its high bits say which word, the low ones which bits of it."""
    return mix64(np.uint64(node) + np.uint64(row) * GOLDEN)


@inlined
def pair_mask(pair: np.uint64) -> np.uint64:
    """The three bits of a pair."""
    return (
        _ONE << (pair & _LOW6)
        | _ONE << (pair >> _S6 & _LOW6)
        | _ONE << (pair >> (_S6 + _S6) & _LOW6)
    )


@inlined
def bloom_word_address(pair: np.uint64, table: NDArray[np.int64], table_row: IntLike) -> np.uint64:
    """The address of a pair's word."""
    return np.uint64(table[table_row, BLOOM]) + (
        bounded(pair, np.uint64(table[table_row, BLOOM_WORDS])) << _EIGHTS
    )


@inlined
def may_have_edge(pair: np.uint64, table: NDArray[np.int64], table_row: IntLike) -> bool:
    """Return whether the pair may be joined."""
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
        Rows.
    words : ndarray of uint64, shape (n,), in and out
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
    """Write the largest share of each row that leads to one neighbor, by all edges to it.

    Parameters
    ----------
    indptr, nbr : ndarray of int64, shape (rows + 1,), and ndarray of int64, shape (slots,)
        Neighbors ascend within a row.
    weights, sums : ndarray of float32, shape (slots,), and ndarray of float64, shape (rows,)
        Empty: edges count alike.
    first, end : int64
        Rows.
    out : ndarray of float32, shape (rows,), in and out
        Not less than it is, and hardly more; 0 for a row that weighs nothing.
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
    """Write what a node2vec walk reads of a row when it gets there, for one read.

    Parameters
    ----------
    indptr : ndarray of int64, shape (rows + 1,)
    shares : ndarray of float32, shape (rows,) or (0,)
        As of `max_neighbor_shares`; without shares these are 0.
    out : ndarray of uint64, shape (2 * rows,), out
        Of each row its first slot, then how many it has << 32 | its share's bits.
    """
    bits = shares.view(np.uint32)
    for row in range(indptr.shape[0] - 1):
        share = np.uint64(bits[row]) if bits.shape[0] > 0 else np.uint64(0)
        out[2 * row], out[2 * row + 1] = (
            np.uint64(indptr[row]),
            np.uint64(indptr[row + 1] - indptr[row]) << _S32 | share,
        )
