"""Numbers of nodes whose ids lie near each other: of each id a bit, and by the rank of that its
number. No hash, and nothing to compare.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import kernel
from asterism_graphkit.relabel.bitset import BIT_MASK, ONE, WORD_SHIFT, bit_rank, popcount


@kernel
def set_bits(ids: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
    """Set the bits of ids, all of them 0 or more."""
    for i in range(ids.shape[0]):
        position = np.uint64(ids[i])
        words[position >> WORD_SHIFT] |= ONE << (position & BIT_MASK)


@kernel
def assign(
    ids: NDArray[np.int64],
    words: NDArray[np.uint64],
    word_ranks: NDArray[np.int32],
    by_rank: NDArray[np.int32],
    node_ids: NDArray[np.int64],
    count: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:
    """Number ids, new ones in the order in which they come.

    Parameters
    ----------
    ids : int64[n]
        Below 0: no node.
    words : uint64[w], inout
        The bits of the nodes that have numbers; the last word is nobody's.
    word_ranks : int32[w]
        Room to work in.
    by_rank : int32[count + n]
        Likewise.
    node_ids : int64[count + n + 1], inout
        The nodes by number.
    count : int64[1], inout
        How many have one.
    out : int32[n], out
        The number of each; -1 for no node.

    Notes
    -----
    All of it stays in a cache where the largest id is not above some millions. Jacobson 1989,
    Space-efficient static trees and graphs, section 2: rank by a directory and a count within the
    word."""
    sentinel, node_count = np.uint64(64 * (words.shape[0] - 1)), np.uint64(count[0])
    for i in range(ids.shape[0]):
        # Whether it is new is hard to foretell: it is written in any case, and counts or does not.
        position = np.uint64(ids[i]) if ids[i] >= 0 else sentinel
        word, bit = words[position >> WORD_SHIFT], ONE << (position & BIT_MASK)
        node_ids[node_count] = ids[i]
        node_count += np.uint64((word & bit == 0) & (ids[i] >= 0))
        words[position >> WORD_SHIFT] = word | bit
    rank = np.int64(0)
    for k in range(words.shape[0]):
        word_ranks[k] = rank
        rank += np.int64(popcount(words[k]))
    for local_id in range(node_count):
        by_rank[bit_rank(np.uint64(node_ids[local_id]), words, word_ranks)] = local_id
    for i in range(ids.shape[0]):
        position = np.uint64(ids[i]) if ids[i] >= 0 else sentinel
        assigned = by_rank[
            min(bit_rank(position, words, word_ranks), node_count - np.uint64(node_count > 0))
        ]
        out[i] = assigned if ids[i] >= 0 else np.int32(-1)
    words[words.shape[0] - 1] = 0
    count[0] = node_count
