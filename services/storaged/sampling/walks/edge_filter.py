"""What walks by p and q look at before they search a row, made of a version's rows once: when the
first of them comes.
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
"""Edges between looks at the clock."""


def build_bloom_filter(
    version: LocalVersion,
    part: int,
    edge_type: int,
    direction: int,
    checkpoint: Callable[[], object],
) -> NDArray[np.uint64]:
    """The words of a sieve of the edges of one type at one part, a byte each; kept with the
    version.

    Parameters
    ----------
    version, part, edge_type, direction
    checkpoint : callable
        Called now and then; may raise. What is made of other parts stays.
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
    """float32[rows]: how much of each row leads to that neighbor to whom most does; arguments as of
    `build_bloom_filter`.
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
    """uint64[2 * rows]: of each row where its edges begin, how many and its share, as
    `storaged.kernels.walks.bloom_filter.write_row_heads` has them.

    Arguments as of `build_max_shares`; ``uniform`` is None where shares are not wanted.
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
    """Rows to go over at a time."""
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
