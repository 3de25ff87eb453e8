"""Graph coarsening around METIS: contract pairs of nodes, then refine the result back.

These are the upper levels of METIS's own multilevel scheme (Karypis & Kumar, "Multilevel k-way
partitioning scheme for irregular graphs", J. Parallel Distrib. Comput. 48, 1998). METIS holds all
levels in memory, and a graph without clusters keeps nearly all of its edges on each level. Here,
finer graphs are kept in scratch files until they are refined, so that at most two are in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.partitioning.metis_graph import MAX_INT32_ENTRIES, MetisGraph
from asterism.export.scratch_files import Spool
from asterism_graphkit.compile.jit import IntLike, as_kernel_array, inlined, kernel
from asterism_graphkit.random.rng import bounded, key_of, word

COARSE_NODES = 1 << 17
"""Largest number of nodes passed to METIS.
With far fewer, METIS has too little choice and cuts several percent more edges. Part of the
sampling contract: changing it changes results for a given seed."""
_PURPOSE = 0x434F4152
"""Key of the random words used here.
Part of the sampling contract: changing it changes results for a given seed."""
_PASSES = 10
"""Largest number of refinement passes per level.
Part of the sampling contract: changing it changes results for a given seed."""
_MIN_SHRINKAGE = 0.95
"""Share of remaining nodes above which coarsening stops.
Part of the sampling contract: changing it changes results for a given seed."""


@kernel
def _visits(indptr: NDArray[Any], key: np.uint64) -> NDArray[np.int32]:
    """Return all nodes in random order, sorted roughly by ascending degree.

    Nodes with few neighbors come first because they have the least choice of a mate.

    ``indptr`` is int32 or int64, shape (n + 1,); the result is int32, shape (n,).
    """
    n = indptr.shape[0] - 1
    shuffled = np.empty(n, np.int32)
    for i in range(n):
        j = np.int64(bounded(word(key, np.uint64(i)), np.uint64(i + 1)))
        shuffled[i] = shuffled[j]
        shuffled[j] = i
    max_rank = 1 + 4 * np.int64(indptr[n] // n)
    rank_ends = np.zeros(max_rank + 2, np.int64)
    for v in range(n):
        rank_ends[1 + min(max_rank, np.int64(np.sqrt(1.0 + indptr[v + 1] - indptr[v])))] += 1
    for i in range(max_rank + 1):
        rank_ends[i + 1] += rank_ends[i]
    order = np.empty(n, np.int32)
    for i in range(n):
        v = shuffled[i]
        rank = min(max_rank, np.int64(np.sqrt(1.0 + indptr[v + 1] - indptr[v])))
        order[rank_ends[rank]] = v
        rank_ends[rank] += 1
    return order


@inlined
def _may_merge(
    columns: NDArray[np.int64], u: IntLike, v: IntLike, heaviest: NDArray[np.int64]
) -> bool:
    """Return True if the merged node is at most as heavy as ``heaviest`` in every column."""
    is_light = True
    for x in range(heaviest.shape[0]):
        is_light &= columns[u, x] + columns[v, x] <= heaviest[x]
    return is_light


@kernel
def _match_pairs(
    indptr: NDArray[Any],
    neighbors: NDArray[Any],
    weights: NDArray[Any],
    columns: NDArray[np.int64],
    heaviest: NDArray[np.int64],
    order: NDArray[np.int32],
    coarse_of: NDArray[np.int32],
) -> np.int64:
    """Match pairs of nodes, and return the number of coarse nodes.

    A node is matched with the unmatched neighbor to which it has the most edges. Failing that, it
    is matched with another unmatched node that shares its heaviest neighbor, or it stays single.

    Parameters
    ----------
    indptr, neighbors, weights : ndarray of int32 or int64, shapes (n + 1,), (m,), (m,)
        Adjacency.
    columns : ndarray of int64, shape (n, k)
        Node weights to balance.
    heaviest : ndarray of int64, shape (k,)
        Largest weight of a coarse node, by column.
    order : ndarray of int32, shape (n,)
        Order in which nodes are visited.
    coarse_of : ndarray of int32, shape (n,)
        Output: the coarse node of each node.

    Returns
    -------
    int64
    """
    n = indptr.shape[0] - 1
    mate, unmatched = np.full(n, -1, np.int32), np.full(n + 1, -1, np.int32)
    for i in range(n):
        v = order[i]
        if mate[v] >= 0:
            continue
        best, best_weight, heaviest_neighbor, heaviest_weight = v, 0, n, 0
        for j in range(indptr[v], indptr[v + 1]):
            u = neighbors[j]
            if weights[j] > heaviest_weight:
                heaviest_neighbor, heaviest_weight = u, weights[j]
            if weights[j] > best_weight and mate[u] < 0 and _may_merge(columns, u, v, heaviest):
                best, best_weight = u, weights[j]
        if best == v:
            u = unmatched[heaviest_neighbor]
            if u >= 0 and mate[u] == u and _may_merge(columns, u, v, heaviest):
                best = u
            unmatched[heaviest_neighbor] = v
        mate[v] = best
        mate[best] = v
    count = np.int64(0)
    for v in range(n):
        if mate[v] < v:
            coarse_of[v] = coarse_of[mate[v]]
        else:
            coarse_of[v] = count
            count += 1
    return count


@kernel
def _contract(
    indptr: NDArray[Any],
    neighbors: NDArray[Any],
    weights: NDArray[Any],
    columns: NDArray[np.int64],
    coarse_of: NDArray[np.int32],
    coarse_indptr: NDArray[Any],
    coarse_neighbors: NDArray[Any],
    coarse_weights: NDArray[Any],
    coarse_columns: NDArray[np.int64],
) -> np.int64:
    """Fill the coarse graph and its column sums, and return its number of entries.

    ``coarse_of`` is int32, shape (n,). The outputs are ``coarse_indptr``, ``coarse_neighbors`` and
    ``coarse_weights``, int32 or int64, and ``coarse_columns``, int64, shape (coarse nodes, k),
    which must be zero on entry.
    """
    n, count = indptr.shape[0] - 1, coarse_indptr.shape[0] - 1
    members = np.full((count, 2), -1, np.int32)
    for v in range(n):
        c = coarse_of[v]
        members[c, 0 if members[c, 0] < 0 else 1] = v
        for x in range(columns.shape[1]):
            coarse_columns[c, x] += columns[v, x]
    position = np.full(
        count, -1, np.int64
    )  # last output slot of a neighbor; below the row's start if this row has none
    size = np.int64(0)
    for c in range(count):
        first = size
        coarse_indptr[c] = first
        for side in range(2):
            v = members[c, side]
            if v < 0:
                continue
            for j in range(indptr[v], indptr[v + 1]):
                d = coarse_of[neighbors[j]]
                if d == c:
                    continue
                if position[d] >= first:
                    coarse_weights[position[d]] += weights[j]
                else:
                    position[d] = size
                    coarse_neighbors[size] = d
                    coarse_weights[size] = weights[j]
                    size += 1
    coarse_indptr[count] = size
    return size


@inlined
def _fits_in_part(
    loads: NDArray[np.int64],
    part: IntLike,
    columns: NDArray[np.int64],
    v: IntLike,
    caps: NDArray[np.int64],
) -> bool:
    """Return True if the partition can take the node without exceeding a cap."""
    fits = True
    for x in range(caps.shape[0]):
        fits &= columns[v, x] == 0 or loads[part, x] + columns[v, x] <= caps[x]
    return fits


@inlined
def _improves_balance(
    loads: NDArray[np.int64], a: IntLike, b: IntLike, columns: NDArray[np.int64], v: IntLike
) -> bool:
    """Return True if moving a node from partition ``a`` to ``b`` evens out their loads."""
    improves = True
    for x in range(columns.shape[1]):
        improves &= columns[v, x] == 0 or loads[b, x] + columns[v, x] < loads[a, x]
    return improves


@kernel
def _refine(
    indptr: NDArray[Any],
    neighbors: NDArray[Any],
    weights: NDArray[Any],
    columns: NDArray[np.int64],
    caps: NDArray[np.int64],
    passes: np.int64,
    loads: NDArray[np.int64],
    owners: NDArray[np.int32],
) -> None:
    """Move nodes to the partition of most of their neighbors, until no move gains.

    Moves respect the caps. Nodes also leave partitions that exceed a cap.

    Parameters
    ----------
    indptr, neighbors, weights : ndarray of int32 or int64, shapes (n + 1,), (m,), (m,)
        Adjacency.
    columns : ndarray of int64, shape (n, k)
        Node weights to balance.
    caps : ndarray of int64, shape (k,)
        Largest load of a partition, by column.
    passes : int64
        Largest number of passes over the nodes.
    loads : ndarray of int64, shape (parts, k)
        Zero on entry; holds the final loads on return.
    owners : ndarray of int32, shape (n,)
        Partition of each node, updated in place.
    """
    n, parts, width = indptr.shape[0] - 1, loads.shape[0], caps.shape[0]
    part_weights, neighbor_parts = np.zeros(parts, np.int64), np.empty(parts, np.int64)
    active = np.ones(n, np.bool_)
    for v in range(n):
        for x in range(width):
            loads[owners[v], x] += columns[v, x]
    for _ in range(passes):
        moved = False
        for v in range(n):
            a = np.int64(owners[v])
            overloaded = False
            for x in range(width):
                overloaded |= columns[v, x] > 0 and loads[a, x] > caps[x]
            if not active[v] and not overloaded:
                continue
            active[v] = False
            count = 0
            for j in range(indptr[v], indptr[v + 1]):
                p = owners[neighbors[j]]
                if part_weights[p] == 0:
                    neighbor_parts[count] = p
                    count += 1
                part_weights[p] += weights[j]
            best, gain = a, np.int64(0)
            for i in range(count):
                p = neighbor_parts[i]
                weight_gain = part_weights[p] - part_weights[a]
                if (
                    p == a
                    or (weight_gain < gain and not (overloaded and best == a))
                    or not _fits_in_part(loads, p, columns, v, caps)
                ):
                    continue
                if weight_gain > gain or (
                    best == a and (overloaded or _improves_balance(loads, a, p, columns, v))
                ):
                    best, gain = p, weight_gain
            for i in range(count):
                part_weights[neighbor_parts[i]] = 0
            if overloaded and best == a:
                # No neighbor's partition has capacity left, so take any that has.
                for p in range(parts):
                    if (
                        p != a
                        and _fits_in_part(loads, np.int64(p), columns, v, caps)
                        and _improves_balance(loads, a, np.int64(p), columns, v)
                    ):
                        best = np.int64(p)
                        break
            if best != a:
                moved = True
                owners[v] = best
                for x in range(width):
                    loads[a, x] -= columns[v, x]
                    loads[best, x] += columns[v, x]
                for j in range(indptr[v], indptr[v + 1]):
                    active[neighbors[j]] = True
        if not moved:
            break


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _FinerLevel:
    """Finer graph in scratch files, and the coarse node of each of its nodes."""

    spools: tuple[Spool, Spool, Spool]
    columns: NDArray[np.int64]
    coarse_of: NDArray[np.int32]


class CoarseningLevels:
    """Hierarchy of coarser graphs, built by `coarsen` and undone by `refine`.

    The object owns the graph; the caller must keep no reference, or its memory is not freed.

    Parameters
    ----------
    graph : MetisGraph
        Graph with fewer than 2^31 nodes.
    columns : ndarray of int64, shape (n, k)
        Node weights to balance.
    parts : int
        Number of partitions.
    seed : int
        Seed of the matching.
    scratch : Path
        Folder for the finer graphs: 8 bytes per entry, 16 from 2^31 entries on.
    """

    def __init__(
        self, graph: MetisGraph, columns: NDArray[np.int64], *, parts: int, seed: int, scratch: Path
    ) -> None:
        self.graph, self.columns = graph, columns
        self._parts, self._seed, self._scratch = parts, seed, scratch
        self._finer_levels: list[_FinerLevel] = []
        # METIS needs a minimum number of coarse nodes, which bounds their weight.
        min_coarse_nodes = max(len(graph) / (40 * max(1, parts.bit_length() - 1)), 30 * parts)
        self._heaviest: NDArray[np.int64] = np.maximum(
            1, 1.5 * columns.sum(axis=0) / min_coarse_nodes
        ).astype(np.int64)

    @property
    def depth(self) -> int:
        """Number of finer graphs in scratch files."""
        return len(self._finer_levels)

    def coarsen(self, few_nodes: int) -> None:
        """Contract pairs of nodes until at most ``few_nodes`` are left or shrinking stalls."""
        while len(self.graph) > few_nodes:
            graph, nodes = self.graph, len(self.graph)
            fine_graph = (
                as_kernel_array(graph.indptr),
                as_kernel_array(graph.neighbors),
                as_kernel_array(graph.weights),
                as_kernel_array(self.columns),
            )
            coarse_of = np.empty(nodes, np.int32)
            order = _visits(fine_graph[0], key_of(self._seed, _PURPOSE, len(self._finer_levels)))
            count = int(_match_pairs(*fine_graph, self._heaviest, order, coarse_of))
            if count > _MIN_SHRINKAGE * nodes:
                return
            del order
            entries, dtype = len(graph.neighbors), graph.neighbors.dtype
            # Only the pages that are written take memory.
            coarse_indptr, coarse_neighbors, coarse_weights = (
                np.empty(count + 1, dtype),
                np.empty(entries, dtype),
                np.empty(entries, dtype),
            )
            coarse_columns = np.zeros((count, self.columns.shape[1]), np.int64)
            entry_count = int(
                _contract(
                    *fine_graph,
                    coarse_of,
                    coarse_indptr,
                    coarse_neighbors,
                    coarse_weights,
                    coarse_columns,
                )
            )
            spools = [
                Spool(path=self._scratch / f"finer-{len(self._finer_levels)}-{i}", dtype=dtype)
                for i in range(3)
            ]
            for spool, values in zip(spools, fine_graph[:3], strict=True):
                spool.remove()
                spool.append(values)
            self._finer_levels.append(
                _FinerLevel(
                    spools=(spools[0], spools[1], spools[2]),
                    columns=self.columns,
                    coarse_of=coarse_of,
                )
            )
            self.graph, self.columns = (
                MetisGraph(
                    indptr=coarse_indptr,
                    neighbors=coarse_neighbors[:entry_count],
                    weights=coarse_weights[:entry_count],
                ),
                coarse_columns,
            )
            del graph, fine_graph

    def refine(self, owners: NDArray[np.int32], imbalance: float) -> NDArray[np.int32]:
        """Project an assignment of the coarse graph back to the original nodes, and refine it.

        Parameters
        ----------
        owners : ndarray of int32
            Partition of each node of ``graph``.
        imbalance : float
            A partition gets at most ``ceil((1 + imbalance) * sum / parts)`` of a column, unless it
            had more before.

        Returns
        -------
        ndarray of int32
            Partition of each node of the original graph.
        """
        self.graph = MetisGraph(
            indptr=np.zeros(1, np.int32),
            neighbors=np.zeros(0, np.int32),
            weights=np.zeros(0, np.int32),
        )
        while self._finer_levels:
            finer = self._finer_levels.pop()
            owners = owners[finer.coarse_of]
            caps = np.ceil((1 + imbalance) * finer.columns.sum(axis=0) / self._parts).astype(
                np.int64
            )
            loads = np.zeros((self._parts, len(caps)), np.int64)
            indptr, neighbors, weights = (as_kernel_array(spool.map()) for spool in finer.spools)
            _refine(
                indptr,
                neighbors,
                weights,
                as_kernel_array(finer.columns),
                caps,
                np.int64(_PASSES),
                loads,
                owners,
            )
            for spool in finer.spools:
                spool.remove()
        return owners


def required_bytes(nodes: int, edges: int, constraints: int) -> int:
    """Return the most memory that the first coarsening step takes, in bytes.

    The bound covers the graph and a coarse graph with nearly all of its edges.

    Parameters
    ----------
    nodes, edges, constraints : int
        Number of nodes, of edges without self-loops, and of weight columns.
    """
    width = 4 if 2 * edges < MAX_INT32_ENTRIES else 8
    return width * 2 * 2 * edges * 2 + nodes * (72 + 2 * width + 16 * constraints) + (4 << 20)
