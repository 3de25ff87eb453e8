"""Relabel nodes with dense ids by ranks in a bitset, without hashing or comparisons."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import kernel
from asterism_graphkit.relabel.bitset import BIT_MASK, ONE, WORD_SHIFT, bit_rank, popcount


@kernel
def set_bits(ids: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
    """Set the bits of ids, all of them >= 0.

    ``ids`` is int64[n]; ``words`` is uint64[w], inout.
    """
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
    """Assign local ids to ids; new ids are numbered in the order in which they come.

    Parameters
    ----------
    ids : int64[n]
        A negative id is no node.
    words : uint64[w], inout
        Bits of the nodes that have local ids. The last word is a sentinel.
    word_ranks : int32[w]
        Scratch array.
    by_rank : int32[count + n]
        Scratch array.
    node_ids : int64[count + n + 1], inout
        Ids of the nodes by local id.
    count : int64[1], inout
        Number of nodes that have a local id.
    out : int32[n], out
        Local id of each node; -1 for no node.

    Notes
    -----
    All arrays stay in a cache if the largest id is at most some millions. Jacobson 1989,
    Space-efficient static trees and graphs, section 2: rank by a directory and a count within the
    word.
    """
    sentinel, node_count = np.uint64(64 * (words.shape[0] - 1)), np.uint64(count[0])
    for i in range(ids.shape[0]):
        # A branch on whether the id is new would be hard to predict. So the id is always written,
        # and the count advances only for new ids.
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
