"""Streaming partitioners for graphs larger than memory, which place nodes one by one.

A node goes to the partition with most of its neighbors, minus a penalty for how full the partition
is:

* ``ldg``, linear deterministic greedy: ``neighbors * (1 - fill)``, where ``fill`` is the used share
  of the partition's capacity (Stanton & Kliot, "Streaming graph partitioning for large distributed
  graphs", KDD 2012).
* ``fennel``: ``neighbors - 1.5 * edges / nodes * sqrt(load)``, where ``load`` is 1 if the partition
  has its even share (Tsourakakis, Gkantsidis, Radunovic & Vojnovic, "FENNEL: streaming graph
  partitioning for massive scale graphs", WSDM 2014, section 4: gamma = 3/2, alpha = edges *
  sqrt(parts) / nodes^1.5).

Further passes (Nishimura & Ugander, "Restreaming graph partitioning", KDD 2013) start with empty
partitions. For neighbors that the current pass has not reached, they use the partition of the last
pass. The penalty stays the same, because the capacities ensure the balance.

Every class of nodes (a type, or another attribute to balance) has its own loads and capacities. A
capacity is never exceeded. Memory is a few words per node; edges are read from scratch files,
sorted by blocks of the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism.export.graph_source import Ids
from asterism.export.partitioning.edge_list_file import EdgeListFile, node_number_dtype
from asterism.export.scratch_files import Spool
from asterism_graphkit.compile.jit import as_kernel_array, inlined, kernel
from asterism_graphkit.random.rng import bounded, key_of, word

METHODS = ("ldg", "fennel")
BLOCK_ENTRIES = 1 << 24
"""Largest number of edge ends in memory, which sets the length of a block of the stream.
A block has at least one node."""
_PURPOSE = 0x53545245
"""Key of the random words used here.
Part of the sampling contract: changing it changes results for a given seed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BalanceConstraints:
    """Quantities to balance over the partitions."""

    classes: NDArray[np.uint8]
    """Class of each node; ndarray of uint8, shape (n,). Each class is balanced separately."""
    edges: bool
    """Also balance the in-degrees of all nodes."""
    imbalance: float
    """Share by which a partition may exceed its even share."""


@inlined
def _best_part(
    neighbors: NDArray[np.int64],
    sizes: NDArray[np.int64],
    capacity: np.int64,
    even_size: np.float64,
    load: NDArray[np.int64],
    load_capacity: np.int64,
    even_load: np.float64,
    degree: np.int64,
    penalty: np.float64,
    first_part: np.int64,
) -> np.int64:
    """Return the partition or group for a node, or -1 if all are full.

    ``penalty`` is Fennel's factor, or negative for LDG. ``first_part`` breaks ties. ``neighbors``,
    ``sizes`` and ``load`` are int64, shape (parts,): the node's neighbors in each partition, the
    nodes of its class there, and the in-degrees.
    """
    part_count = neighbors.shape[0]
    best, best_score, best_size, best_fits = np.int64(-1), 0.0, np.int64(0), False
    for i in range(part_count):
        part = first_part + i
        if part >= part_count:
            part -= part_count
        if sizes[part] >= capacity:
            continue
        fits = load[part] + degree <= load_capacity
        if penalty < 0:
            score = neighbors[part] * (1.0 - sizes[part] / capacity)
            if load_capacity < 0x7FFFFFFFFFFFFFFF:
                score *= max(0.0, 1.0 - load[part] / load_capacity)
        else:
            score = neighbors[part] - penalty * np.sqrt(sizes[part] / even_size)
            if load_capacity < 0x7FFFFFFFFFFFFFFF:
                score -= penalty * np.sqrt(load[part] / even_load)
        if not fits:
            score = -np.float64(
                load[part]
            )  # nothing fits so far: prefer the smallest load, regardless of neighbors
        is_better = score > best_score or (score == best_score and sizes[part] < best_size)
        if best < 0 or (fits and not best_fits) or (fits == best_fits and is_better):
            best, best_score, best_size, best_fits = np.int64(part), score, sizes[part], fits
    return best


class _PlacementParams(NamedTuple):
    """Scalar parameters of a placement."""

    key: np.uint64
    """Key of the random words that break ties."""
    penalty: np.float64
    """Fennel's penalty factor, or negative for LDG."""
    groups: np.int64
    """Number of groups of partitions. The group is chosen first, then a partition within it."""
    load_capacity: np.int64
    """Largest in-degree sum of a partition; the largest int64 means unbounded."""
    even_load: np.float64
    """Average in-degree sum of a partition."""


class _NodeClasses(NamedTuple):
    """Classes of n nodes, each balanced separately."""

    classes: NDArray[np.uint8]
    """Class of each node; uint8, shape (n,)."""
    capacities: NDArray[np.int64]
    """Largest number of nodes per partition; int64, shape (classes,)."""
    even_sizes: NDArray[np.float64]
    """Average number of nodes per partition; float64, shape (classes,)."""


@kernel
def _place(
    params: _PlacementParams,
    first: np.int64,
    order: NDArray[Any],
    indptr: NDArray[np.int64],
    neighbors: NDArray[Any],
    in_degrees: NDArray[np.int64],
    node_classes: _NodeClasses,
    sizes: NDArray[np.int64],
    load: NDArray[np.int64],
    owners: NDArray[np.int32],
) -> None:
    """Place a block of nodes, based on their neighbors.

    Parameters
    ----------
    params : _PlacementParams
        Scalar parameters.
    first : int64
        Position of the block's first node in ``order``.
    order : ndarray of int32 or int64, shape (n,)
        Nodes in the order of the stream.
    indptr : ndarray of int64, shape (rows + 1,)
        Offsets of the neighbors of the block's nodes.
    neighbors : ndarray of int32 or int64
        Neighbors of the block's nodes.
    in_degrees : ndarray of int64, shape (n,)
        In-degree of each node.
    node_classes : _NodeClasses
        Classes and capacities.
    sizes : ndarray of int64, shape (classes, parts)
        Nodes of each class and partition, updated in place.
    load : ndarray of int64, shape (parts,)
        In-degree sum of each partition, updated in place.
    owners : ndarray of int32, shape (n,)
        Partition of each node, -1 if not placed yet. Updated in place.
    """
    classes, capacities, even_sizes = node_classes
    load_capacity, even_load, penalty = params.load_capacity, params.even_load, params.penalty
    groups, parts = params.groups, load.shape[0]
    parts_per_group = parts // groups
    neighbor_counts, group_neighbor_counts = np.zeros(parts, np.int64), np.zeros(groups, np.int64)
    group_sizes, group_load = (
        np.zeros((sizes.shape[0], groups), np.int64),
        np.zeros(groups, np.int64),
    )
    for c in range(sizes.shape[0]):
        for p in range(parts):
            group_sizes[c, p // parts_per_group] += sizes[c, p]
    for p in range(parts):
        group_load[p // parts_per_group] += load[p]
    unbounded = load_capacity == 0x7FFFFFFFFFFFFFFF
    for i in range(indptr.shape[0] - 1):
        v = order[first + i]
        c, degree = classes[v], in_degrees[v]
        neighbor_counts[:] = 0
        group_neighbor_counts[:] = 0
        for j in range(indptr[i], indptr[i + 1]):
            p = owners[neighbors[j]]
            if p >= 0:
                neighbor_counts[p] += 1
                group_neighbor_counts[p // parts_per_group] += 1
        w = word(params.key, np.uint64(v))
        g = _best_part(
            group_neighbor_counts,
            group_sizes[c],
            capacities[c] * parts_per_group,
            even_sizes[c] * parts_per_group,
            group_load,
            load_capacity if unbounded else load_capacity * parts_per_group,
            even_load * parts_per_group,
            degree,
            penalty,
            np.int64(bounded(w, np.uint64(groups))),
        )
        low, high = g * parts_per_group, (g + 1) * parts_per_group
        best = low
        if parts_per_group > 1:
            best += _best_part(
                neighbor_counts[low:high],
                sizes[c, low:high],
                capacities[c],
                even_sizes[c],
                load[low:high],
                load_capacity,
                even_load,
                degree,
                penalty,
                np.int64(bounded(word(params.key, ~np.uint64(v)), np.uint64(parts_per_group))),
            )
        owners[v] = best
        sizes[c, best] += 1
        load[best] += degree
        group_sizes[c, g] += 1
        group_load[g] += degree


@kernel
def _interleave(sizes: NDArray[np.int64], order: NDArray[Any]) -> None:
    """Write the stream order of nodes to ``order``, int32 or int64, shape (n,).

    Types are interleaved in proportion to their ``sizes``, int64, shape (types,). Nodes of a type
    are in the order of their ranks.
    """
    types = sizes.shape[0]
    placed, firsts = np.zeros(types, np.int64), np.zeros(types, np.int64)
    for t in range(1, types):
        firsts[t] = firsts[t - 1] + sizes[t - 1]
    for i in range(order.shape[0]):
        smallest_share, best = 2.0, 0
        for t in range(types):
            if placed[t] < sizes[t]:
                share = (placed[t] + 0.5) / sizes[t]
                if share < smallest_share:
                    smallest_share, best = share, t
        order[i] = firsts[best] + placed[best]
        placed[best] += 1


@kernel
def _distribute(
    pairs: NDArray[Any],
    position: NDArray[Any],
    block_ends: NDArray[np.int64],
    counts: NDArray[np.int64],
    next_row: NDArray[np.int64],
    rows: NDArray[Any],
) -> None:
    """Group both directions of edges, as rows (position, neighbor), by block of the position.

    ``pairs`` has shape (k, 2), ``position`` shape (n,); ``rows`` is an output of shape (2k, 2), all
    int32 or int64. ``block_ends``, and the outputs ``counts`` and ``next_row``, are int64, shape
    (blocks,). On return, ``next_row`` is the end of each block's rows. ``counts`` must be zero on
    entry.
    """
    block_count = block_ends.shape[0]
    for write in range(2):
        if write:
            before = 0
            for s in range(block_count):
                next_row[s] = before
                before += counts[s]
        for i in range(pairs.shape[0]):
            for side in range(2):
                node_position = position[pairs[i, side]]
                low, high = 0, block_count - 1
                while low < high:
                    middle = (low + high) // 2
                    if node_position < block_ends[middle]:
                        high = middle
                    else:
                        low = middle + 1
                if write:
                    rows[next_row[low], 0], rows[next_row[low], 1] = (
                        node_position,
                        pairs[i, 1 - side],
                    )
                    next_row[low] += 1
                else:
                    counts[low] += 1


@kernel
def _fill(
    rows: NDArray[Any], first: np.int64, next_slot: NDArray[np.int64], neighbors: NDArray[Any]
) -> None:
    """Group the neighbors in ``rows`` by node.

    ``rows`` has shape (k, 2) with (position, neighbor), and ``neighbors`` shape (m,), both int32 or
    int64. ``next_slot`` is int64, shape (nodes,): the next free slot of each node, advanced in
    place.
    """
    for i in range(rows.shape[0]):
        local_row = rows[i, 0] - first
        neighbors[next_slot[local_row]] = rows[i, 1]
        next_slot[local_row] += 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Stream:
    """Order of the nodes, and their neighbors in scratch files."""

    order: NDArray[Any]
    ends: Ids
    """End of each block in ``order``."""
    spools: list[Spool]
    degrees: Ids
    """Degree of each node, by position; ndarray of int64, shape (n,)."""

    def block(self, block: int) -> tuple[int, Ids, NDArray[Any]]:
        """Return the first position of a block, and its neighbors as (indptr, neighbors)."""
        first = int(self.ends[block - 1]) if block else 0
        indptr = np.concatenate(
            [np.zeros(1, np.int64), np.cumsum(self.degrees[first : int(self.ends[block])])]
        )
        neighbors, next_slot = np.empty(int(indptr[-1]), self.order.dtype), indptr[:-1].copy()
        for piece in self.spools[block].pieces():
            _fill(as_kernel_array(piece), np.int64(first), next_slot, neighbors)
        return first, indptr, neighbors


def _write_stream(pairs: EdgeListFile, sizes: Ids, scratch: Path, block_entries: int) -> _Stream:
    order = np.empty(pairs.nodes, node_number_dtype(pairs.nodes))
    _interleave(as_kernel_array(sizes), order)
    position = np.empty_like(order)
    position[order] = np.arange(len(order), dtype=order.dtype)
    degrees = pairs.degrees[order]
    entry_ends = np.cumsum(degrees)
    # A block ends before the node that would exceed the limit, but has at least one node.
    ends: list[int] = []
    while not ends or ends[-1] < len(order):
        first_entry = int(entry_ends[ends[-1] - 1]) if ends else 0
        ends.append(
            max(
                (ends[-1] if ends else 0) + 1,
                int(np.searchsorted(entry_ends, first_entry + block_entries, side="right")),
            )
        )
    del entry_ends
    block_ends = np.array(ends, np.int64)
    spools = [
        Spool(path=scratch / f"stretch-{i}", dtype=order.dtype, shape=(2,))
        for i in range(len(ends))
    ]
    for spool in spools:
        spool.remove()
    for piece in pairs.pieces():
        rows, counts, next_row = (
            np.empty((2 * len(piece), 2), order.dtype),
            np.zeros(len(ends), np.int64),
            np.zeros(len(ends), np.int64),
        )
        _distribute(
            piece, as_kernel_array(position), as_kernel_array(block_ends), counts, next_row, rows
        )
        for i in np.flatnonzero(counts).tolist():
            spools[i].append(rows[next_row[i] - counts[i] : next_row[i]])
    return _Stream(order=order, ends=block_ends, spools=spools, degrees=degrees)


def partition_stream(
    pairs: EdgeListFile,
    sizes: Ids,
    *,
    parts: int,
    groups: int,
    method: str,
    constraints: BalanceConstraints,
    seed: int,
    passes: int,
    scratch: Path,
    on_progress: Callable[[int], None] = lambda rows: None,
    block_entries: int = BLOCK_ENTRIES,
) -> NDArray[np.int32]:
    """Partition a graph by streaming over its nodes.

    The result is deterministic for a given input and seed.

    Parameters
    ----------
    pairs : EdgeListFile
        Edges of the graph.
    sizes : ndarray of int64, shape (types,)
        Number of nodes of each type. Types are interleaved in the stream; nodes of a type are in
        the order of their ids.
    parts : int
        Number of partitions.
    groups : int
        Number of groups of consecutive partitions. The group of a node is chosen first, then the
        partition within it.
    method : {"ldg", "fennel"}
        Scoring function.
    constraints : BalanceConstraints
        Quantities to balance. A partition gets at most ``ceil((1 + imbalance) * n / parts)`` nodes
        of each class. The same bound holds for in-degrees while some partition with capacity for
        the node stays within it; otherwise the partition with the least in-degrees gets the node.
    seed : int
        Seed that breaks ties.
    passes : int
        Number of passes over the nodes.
    scratch : Path
        Folder for the neighbors: four numbers per edge, of four bytes each below 2^31 nodes,
        otherwise eight.
    on_progress : callable
        Called with the number of nodes placed since the last call.
    block_entries : int, default 16777216
        Largest number of neighbors in memory.

    Returns
    -------
    ndarray of int32, shape (n,)
        Partition of each node.
    """
    stream = _write_stream(pairs, sizes, scratch, block_entries)
    counts = np.bincount(constraints.classes, minlength=1)
    even_sizes = counts / parts
    capacities = np.ceil((1 + constraints.imbalance) * even_sizes).astype(np.int64)
    total = int(pairs.in_degrees.sum())
    load_capacity = (
        int(np.ceil((1 + constraints.imbalance) * total / parts))
        if constraints.edges and total
        else 0x7FFFFFFFFFFFFFFF
    )
    owners = np.full(pairs.nodes, -1, np.int32)
    params = _PlacementParams(
        key_of(seed, _PURPOSE),
        np.float64(-1.0 if method == "ldg" else 1.5 * len(pairs) / max(1, pairs.nodes)),
        np.int64(groups),
        np.int64(load_capacity),
        np.float64(max(total / parts, 1e-300)),
    )
    node_classes = _NodeClasses(
        as_kernel_array(constraints.classes),
        as_kernel_array(capacities),
        as_kernel_array(np.maximum(even_sizes, 1e-300)),
    )
    for _ in range(passes):
        loads = np.zeros((len(counts), parts), np.int64), np.zeros(parts, np.int64)
        for block in range(len(stream.ends)):
            first, indptr, neighbors = stream.block(block)
            _place(
                params,
                np.int64(first),
                as_kernel_array(stream.order),
                as_kernel_array(indptr),
                as_kernel_array(neighbors),
                as_kernel_array(pairs.in_degrees),
                node_classes,
                *loads,
                owners,
            )
            on_progress(len(indptr) - 1)
    for spool in stream.spools:
        spool.remove()
    return owners
