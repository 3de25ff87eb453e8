"""LABOR's importance steps over edges where they lie: neighbors are numbered, and what each node
asks of them is raised to the largest.

Rows are ascending by neighbor, so that what lies by id is met in order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import kernel, view_at
from asterism_graphkit.operators.labor import F64, level_from_weights, solve_level
from asterism_graphkit.relabel.bitset import BIT_MASK, ONE, WORD_SHIFT, bit_rank, popcount
from storaged.kernels.adjacency import WEIGHTS
from storaged.kernels.subgraphs.labor import (
    BLOCK,
    EMPTY_F32,
    copy_neighbors,
    gather_importances,
    prefetch_row,
    weighted_degree,
)

_AHEAD = 4


@kernel
def highest_neighbor(
    table: NDArray[np.int64],
    partitions: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
) -> int:
    """The highest neighbor of some nodes, -1 where they have none; arguments as of
    `storaged.kernels.subgraphs.labor.keep_edges`.
    """
    max_id, last_neighbor = np.int64(-1), np.empty(1, np.int64)
    for i in range(partitions.shape[0]):
        if degrees[i] > 0:
            copy_neighbors(table, partitions[i], starts[i] + degrees[i] - 1, 1, last_neighbor)
            max_id = max(max_id, last_neighbor[0])
    return max_id  # type: ignore[return-value]  # an int64 here and an int to the caller


@kernel
def set_neighbor_bits(
    table: NDArray[np.int64],
    partitions: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    words: NDArray[np.uint64],
) -> None:
    """Set the bits of the neighbors of some nodes."""
    neighbors, m = np.empty(BLOCK, np.int64), partitions.shape[0]
    for i in range(m):
        ahead = min(i + _AHEAD, m - 1)
        prefetch_row(table, partitions[ahead], starts[ahead], False)
        for begin in range(0, degrees[i], BLOCK):
            size = min(degrees[i] - begin, BLOCK)
            copy_neighbors(table, partitions[i], starts[i] + begin, size, neighbors)
            for e in range(size):
                node = np.uint64(neighbors[e])
                words[node >> WORD_SHIFT] |= ONE << (node & BIT_MASK)


@kernel
def rank_words(words: NDArray[np.uint64], word_ranks: NDArray[np.int32]) -> int:
    """How many bits are set before each word, and in all."""
    count = np.int64(0)
    for w in range(words.shape[0]):
        word_ranks[w] = count
        count += np.int64(popcount(words[w]))
    return count  # type: ignore[return-value]


@kernel
def list_set_bits(words: NDArray[np.uint64], out: NDArray[np.int64]) -> None:
    """The numbers whose bits are set, ascending."""
    count = np.int64(0)
    for w in range(words.shape[0]):
        word = words[w]
        while word != 0:
            lowest_bit = word & (~word + ONE)
            out[count] = (w << np.int64(WORD_SHIFT)) + np.int64(popcount(lowest_bit - ONE))
            count += 1
            word ^= lowest_bit


@kernel
def index_neighbors(
    table: NDArray[np.int64],
    partitions: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    words: NDArray[np.uint64],
    word_ranks: NDArray[np.int32],
    neighbor_indices: NDArray[np.int32],
) -> None:
    """The number of the neighbor that each edge leads to: how many set bits there are before its
    own.
    """
    neighbors, m, pos = np.empty(BLOCK, np.int64), partitions.shape[0], np.int64(0)
    for i in range(m):
        ahead = min(i + _AHEAD, m - 1)
        prefetch_row(table, partitions[ahead], starts[ahead], False)
        for begin in range(0, degrees[i], BLOCK):
            size = min(degrees[i] - begin, BLOCK)
            copy_neighbors(table, partitions[i], starts[i] + begin, size, neighbors)
            for e in range(size):
                node = np.uint64(neighbors[e])
                neighbor_indices[pos + e] = np.int32(bit_rank(node, words, word_ranks))
            pos += size


@kernel
def list_neighbors(
    table: NDArray[np.int64],
    partitions: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """The neighbor that each edge leads to."""
    pos = np.int64(0)
    for i in range(partitions.shape[0]):
        copy_neighbors(table, partitions[i], starts[i], degrees[i], out[pos:])
        pos += degrees[i]


@kernel
def initial_levels(
    table: NDArray[np.int64],
    partitions: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    fanout: np.int64,
    uniform: bool,
    levels: F64,
) -> None:
    """The level of each node where importances are the weights of edges."""
    m = partitions.shape[0]
    for i in range(m):
        ahead = min(i + _AHEAD, m - 1)
        prefetch_row(table, partitions[ahead], starts[ahead], not uniform)
        weights = view_at(
            table[partitions[i], WEIGHTS] + 4 * starts[i],
            weighted_degree(table, partitions[i], degrees[i], uniform),
            EMPTY_F32,
        )
        levels[i] = level_from_weights(weights, degrees[i], fanout, uniform)


@kernel
def update_levels(
    table: NDArray[np.int64],
    partitions: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    fanout: np.int64,
    uniform: bool,
    offsets: NDArray[np.int64],
    neighbor_indices: NDArray[np.int32],
    importances: F64,
    levels: F64,
) -> None:
    """The level of each node by the importances of a step, after those of before."""
    max_degree = np.int64(degrees.max()) if partitions.shape[0] > 0 else np.int64(0)
    row_importances, squares, ratios = (
        np.empty(max_degree, np.float64),
        np.empty(max_degree, np.float64),
        np.empty(max_degree, np.float64),
    )
    for i in range(partitions.shape[0]):
        gather_importances(
            importances, neighbor_indices[offsets[i] : offsets[i + 1]], row_importances
        )
        weights = view_at(
            table[partitions[i], WEIGHTS] + 4 * starts[i],
            weighted_degree(table, partitions[i], degrees[i], uniform),
            EMPTY_F32,
        )
        levels[i] = solve_level(
            weights, row_importances[: degrees[i]], squares, ratios, fanout, levels[i]
        )


@kernel
def raise_importances(
    table: NDArray[np.int64],
    partitions: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
    uniform: bool,
    offsets: NDArray[np.int64],
    neighbor_indices: NDArray[np.int32],
    levels: F64,
    by_weight: bool,
    largest: F64,
) -> None:
    """The largest c_s of the nodes that expand to each neighbor; times the edge's weight where that
    was its importance.
    """
    m = partitions.shape[0]
    for i in range(m):
        ahead = min(i + _AHEAD, m - 1)
        prefetch_row(table, partitions[ahead], starts[ahead], not uniform)
        begin, level = offsets[i], levels[i]
        weights = view_at(
            table[partitions[i], WEIGHTS] + 4 * starts[i],
            weighted_degree(table, partitions[i], degrees[i], uniform),
            EMPTY_F32,
        )
        if weights.shape[0] == 0:
            for e in range(degrees[i]):
                neighbor_index = neighbor_indices[begin + e]
                largest[neighbor_index] = max(largest[neighbor_index], 1.0 / level)
            continue
        # Written whether it is larger or not: which is hard to foretell.
        for e in range(degrees[i]):
            neighbor_index, weight = neighbor_indices[begin + e], np.float64(weights[e])
            importance = (weight if by_weight else 1.0) / level if weight > 0.0 else 0.0
            largest[neighbor_index] = max(largest[neighbor_index], importance)
