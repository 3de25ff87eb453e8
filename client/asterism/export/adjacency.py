"""The undirected graph that METIS partitions: the neighbors of each node, and how often."""

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
"""Numbers below fit 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetisGraph:
    """An undirected graph without loops; parallel edges are one, their number its weight. All int32
    where that is enough.
    """

    indptr: NDArray[Any]
    """int [n + 1]."""
    neighbors: NDArray[Any]
    """int [m]."""
    weights: NDArray[Any]
    """int [m]."""

    def __len__(self) -> int:
        return len(self.indptr) - 1


@kernel
def _fill(pairs: NDArray[Any], next_slot: NDArray[Any], neighbors: NDArray[Any]) -> None:
    for i in range(pairs.shape[0]):
        u, v = pairs[i, 0], pairs[i, 1]
        if u != v:
            neighbors[next_slot[u]] = v
            neighbors[next_slot[v]] = u
            next_slot[u] += 1
            next_slot[v] += 1


@kernel
def _merge(indptr: NDArray[Any], neighbors: NDArray[Any], weights: NDArray[Any]) -> np.int64:
    """Make parallel edges one, in place; give how many are left."""
    n = indptr.shape[0] - 1
    position = np.full(
        n, -1, np.int64
    )  # where a neighbor was written last: of this node where it is not before its row
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
    """The adjacency that METIS works on: edges of either direction between two nodes count
    together.

    Parameters
    ----------
    pairs : iterable of int32 or int64 [k, 2]
        The ends of all edges, a few at a time; loops are left out.
    degrees : int64 [n]
        How many edges there are at each node, loops left out.
    """
    nodes, entries = len(degrees), int(degrees.sum())
    if nodes >= MAX_INT32_ENTRIES:
        raise InvalidRequest(
            f"METIS in one process is for fewer than 2^31 nodes, not {nodes}; use "
            "assign='fennel' or a folder of assignments"
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
    """How much memory `build_metis_graph` takes, at most: both directions of each edge, with a
    weight.

    Parameters
    ----------
    nodes, edges : int
        Nodes, and edges (loops left out).
    """
    width = 4 if 2 * edges < MAX_INT32_ENTRIES else 8
    return width * (4 * edges + nodes) + 16 * nodes
