"""Bloom filters and row summaries that node2vec walks read before they search a row.

They are built from a version's rows when the first such walk arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from storaged.kernels.walks.bloom_filter import (
    EDGES_PER_WORD,
    fill_bloom_filter,
    max_neighbor_shares,
    write_row_heads,
)
from storaged.sampling.node_lookup import select_adjacency
from storaged.sampling.version import LocalVersion
from storaged.store.image import EMPTY_F32, EMPTY_F64, AdjacencyImage

_BLOCK_EDGES = 1 << 22
"""Number of edges between two checkpoints."""


def build_bloom_filter(
    version: LocalVersion,
    part: int,
    edge_type: int,
    direction: int,
    checkpoint: Callable[[], object],
) -> NDArray[np.uint64]:
    """Return the words of a Bloom filter over the edges of one type in one partition.

    It has one byte per edge and is cached with the version.

    Parameters
    ----------
    version : LocalVersion
    part, edge_type, direction : int
    checkpoint : callable
        Called periodically; may raise. Filters of completed partitions are kept.

    Returns
    -------
    ndarray of uint64, shape (words,)
    """

    def make() -> NDArray[np.uint64]:
        edges = select_adjacency(version.image(part), edge_type, direction)
        words = np.zeros(edges.nbr.size // EDGES_PER_WORD + 1, np.uint64)
        for first, end in _pieces(edges, checkpoint):
            fill_bloom_filter(edges.indptr, edges.nbr, first, end, words)
        return words

    return version.cached((build_bloom_filter, part, edge_type, direction), make)


def build_max_shares(
    version: LocalVersion,
    part: int,
    edge_type: int,
    direction: int,
    uniform: bool,
    checkpoint: Callable[[], object],
) -> NDArray[np.float32]:
    """Return the largest share of a single neighbor in each row's weight.

    Parameters are those of `build_bloom_filter`.

    Returns
    -------
    ndarray of float32, shape (rows,)
    """

    def make() -> NDArray[np.float32]:
        edges = select_adjacency(version.image(part), edge_type, direction)
        weights, sums = (EMPTY_F32, EMPTY_F64) if uniform else (edges.weights, edges.sums)
        shares = np.zeros(edges.indptr.size - 1, np.float32)
        for first, end in _pieces(edges, checkpoint):
            max_neighbor_shares(
                edges.indptr,
                edges.nbr,
                as_kernel_array(weights),
                as_kernel_array(sums),
                first,
                end,
                shares,
            )
        return shares

    return version.cached((build_max_shares, part, edge_type, direction, uniform), make)


def build_row_heads(
    version: LocalVersion,
    part: int,
    edge_type: int,
    direction: int,
    uniform: bool | None,
    checkpoint: Callable[[], object],
) -> NDArray[np.uint64]:
    """Return the start, the degree and the largest share of each row, packed.

    `storaged.kernels.walks.bloom_filter.write_row_heads` defines the format. Parameters are those
    of `build_max_shares`; ``uniform`` is None to leave the shares out.

    Returns
    -------
    ndarray of uint64, shape (2 * rows,)
    """

    def make() -> NDArray[np.uint64]:
        indptr = select_adjacency(version.image(part), edge_type, direction).indptr
        shares = (
            EMPTY_F32
            if uniform is None
            else build_max_shares(version, part, edge_type, direction, uniform, checkpoint)
        )
        heads = np.empty(2 * (indptr.size - 1), np.uint64)
        write_row_heads(indptr, as_kernel_array(shares), heads)
        return heads

    return version.cached((build_row_heads, part, edge_type, direction, uniform), make)


def _pieces(
    edges: AdjacencyImage, checkpoint: Callable[[], object]
) -> Iterator[tuple[np.int64, np.int64]]:
    """Yield ranges of rows with a limited number of edges each, with a checkpoint after each."""
    rows, first = edges.indptr.size - 1, 0
    while first < rows:
        end = max(
            int(np.searchsorted(edges.indptr, edges.indptr[first] + _BLOCK_EDGES, side="right"))
            - 1,
            first + 1,
        )
        yield np.int64(first), np.int64(end)
        checkpoint()
        first = end
