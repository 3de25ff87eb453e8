"""Undirected weighted adjacency: the graph that METIS partitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.graph_source import Ids
from asterism_graphkit.compile.jit import as_kernel_array, kernel
from asterism_proto.errors import InvalidRequest

MAX_INT32_ENTRIES = 1 << 31
"""Smallest number of entries that int32 offsets cannot address."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetisGraph:
    """Undirected graph in CSR form, without self-loops.

    Parallel edges are merged into one entry, weighted by their count. Every edge is stored in both
    directions. All arrays are int32 where that suffices, otherwise int64.
    """

    indptr: NDArray[Any]
    """Offsets of each node's entries; ndarray of int32 or int64, shape (n + 1,)."""
    neighbors: NDArray[Any]
    """Neighbor of each entry; ndarray of int32 or int64, shape (m,)."""
    weights: NDArray[Any]
    """Number of parallel edges of each entry; ndarray of int32 or int64, shape (m,)."""

    def __len__(self) -> int:
        return len(self.indptr) - 1


@kernel
def _fill(pairs: NDArray[Any], next_slot: NDArray[Any], neighbors: NDArray[Any]) -> None:
    """Write both directions of each edge into the rows of its ends, skipping self-loops.

    ``pairs``, shape (k, 2), ``next_slot``, shape (n,), and ``neighbors``, shape (m,), are int32 or
    int64. ``next_slot`` holds the next free position of each row and is advanced.
    """
    for i in range(pairs.shape[0]):
        u, v = pairs[i, 0], pairs[i, 1]
        if u != v:
            neighbors[next_slot[u]] = v
            neighbors[next_slot[v]] = u
            next_slot[u] += 1
            next_slot[v] += 1


@kernel
def _merge(indptr: NDArray[Any], neighbors: NDArray[Any], weights: NDArray[Any]) -> np.int64:
    """Merge parallel edges in place and return the number of remaining entries.

    ``indptr``, shape (n + 1,), ``neighbors`` and ``weights``, both shape (m,), are int32 or int64
    and are overwritten.
    """
    n = indptr.shape[0] - 1
    position = np.full(
        n, -1, np.int64
    )  # last output slot of a neighbor; below the row's start if this row has none
    size = np.int64(0)
    for u in range(n):
        low, high, first = indptr[u], indptr[u + 1], size
        indptr[u] = first
        for i in range(low, high):
            v = neighbors[i]
            if position[v] >= first:
                weights[position[v]] += 1
            else:
                position[v] = size
                neighbors[size] = v
                weights[size] = 1
                size += 1
    indptr[n] = size
    return size


def build_metis_graph(pairs: Iterable[NDArray[Any]], degrees: Ids) -> MetisGraph:
    """Build the undirected adjacency that METIS works on.

    Edges between the same two nodes are counted together, regardless of direction.

    Parameters
    ----------
    pairs : iterable of ndarray of int32 or int64, shape (k, 2)
        Ends of all edges, in batches. Self-loops are ignored.
    degrees : ndarray of int64, shape (n,)
        Number of edges at each node, self-loops excluded.

    Returns
    -------
    MetisGraph

    Raises
    ------
    InvalidRequest
        The graph has 2^31 nodes or more.
    """
    nodes, entries = len(degrees), int(degrees.sum())
    if nodes >= MAX_INT32_ENTRIES:
        raise InvalidRequest(
            f"assign='metis' with {nodes} nodes: expected fewer than 2^31; use assign='fennel' or "
            f"a "
            "folder of assignments"
        )
    dtype = np.int32 if entries < MAX_INT32_ENTRIES else np.int64
    indptr = np.zeros(nodes + 1, dtype)
    np.cumsum(degrees, out=indptr[1:])
    neighbors, next_slot = np.empty(entries, dtype), indptr[:-1].copy()
    for piece in pairs:
        _fill(as_kernel_array(piece), next_slot, neighbors)
    del next_slot
    weights = np.empty(entries, dtype)
    entry_count = int(_merge(indptr, neighbors, weights))
    return MetisGraph(
        indptr=indptr, neighbors=neighbors[:entry_count], weights=weights[:entry_count]
    )


def required_bytes(nodes: int, edges: int) -> int:
    """Return the most memory that `build_metis_graph` takes, in bytes.

    The bound covers both directions of each edge, with a weight for each.

    Parameters
    ----------
    nodes, edges : int
        Number of nodes, and of edges without self-loops.
    """
    width = 4 if 2 * edges < MAX_INT32_ENTRIES else 8
    return width * (4 * edges + nodes) + 16 * nodes
