"""The undirected graph that METIS works on: who is next to whom, and how often."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.source import Ids
from asterism_proto.errors import InvalidRequest
from graphkit.jit import kernel, settled

NARROW = 1 << 31
"""Numbers below fit 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adjacency:
    """An undirected graph without loops; parallel edges are one, their number its weight. All int32 where that is enough."""

    indptr: NDArray[Any]
    """int [n + 1]."""
    neighbors: NDArray[Any]
    """int [m]."""
    weights: NDArray[Any]
    """int [m]."""

    def __len__(self) -> int:
        return len(self.indptr) - 1


@kernel
def _fill(pairs: NDArray[Any], at: NDArray[Any], neighbors: NDArray[Any]) -> None:
    for i in range(pairs.shape[0]):
        u, v = pairs[i, 0], pairs[i, 1]
        if u != v:
            neighbors[at[u]] = v
            neighbors[at[v]] = u
            at[u] += 1
            at[v] += 1


@kernel
def _merge(indptr: NDArray[Any], neighbors: NDArray[Any], weights: NDArray[Any]) -> np.int64:
    """Make parallel edges one, in place; give how many are left."""
    n = indptr.shape[0] - 1
    place = np.full(n, -1, np.int64)  # where a neighbor was written last: of this node where it is not before its row
    out = np.int64(0)
    for u in range(n):
        low, high, first = indptr[u], indptr[u + 1], out
        indptr[u] = first
        for i in range(low, high):
            v = neighbors[i]
            if place[v] >= first:
                weights[place[v]] += 1
            else:
                place[v] = out
                neighbors[out] = v
                weights[out] = 1
                out += 1
    indptr[n] = out
    return out


def adjacency(pairs: Iterable[NDArray[Any]], degrees: Ids) -> Adjacency:
    """The adjacency that METIS works on: edges of either direction between two nodes count together.

    Parameters
    ----------
    pairs : iterable of int32 or int64 [k, 2]
        The ends of all edges, a few at a time; loops are left out.
    degrees : int64 [n]
        How many edges there are at each node, loops left out.
    """
    nodes, entries = len(degrees), int(degrees.sum())
    if nodes >= NARROW:
        raise InvalidRequest(f"METIS in one process is for fewer than 2^31 nodes, not {nodes}; use assign='fennel' or a folder of assignments")
    dtype = np.int32 if entries < NARROW else np.int64
    indptr = np.zeros(nodes + 1, dtype)
    np.cumsum(degrees, out=indptr[1:])
    neighbors, at = np.empty(entries, dtype), indptr[:-1].copy()
    for piece in pairs:
        _fill(settled(piece), at, neighbors)
    del at
    weights = np.empty(entries, dtype)
    kept = int(_merge(indptr, neighbors, weights))
    return Adjacency(indptr=indptr, neighbors=neighbors[:kept], weights=weights[:kept])


def need_bytes(nodes: int, edges: int) -> int:
    """How much memory `adjacency` takes, at most: both directions of each edge, with a weight.

    Parameters
    ----------
    nodes, edges : int
        Nodes, and edges (loops left out).
    """
    width = 4 if 2 * edges < NARROW else 8
    return width * (4 * edges + nodes) + 16 * nodes
