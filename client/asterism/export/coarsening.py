"""Coarser graphs, with pairs of nodes as one, until METIS has few of them to work on; and back to the parts of all nodes.

These are the upper levels of the multilevel scheme that METIS is (Karypis & Kumar, "Multilevel k-way partitioning scheme for
irregular graphs", J. Parallel Distrib. Comput. 48, 1998). METIS holds all levels in memory, and a graph without clusters keeps nearly
all of its edges on each; here a finer graph waits in scratch files until its turn comes again, so that there are two in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.adjacency import NARROW, Adjacency
from asterism.export.spool import Spool
from graphkit.jit import Whole, inlined, kernel, settled
from graphkit.rng import below, key_of, word

FEW_NODES = 1 << 17
"""METIS gets no more: with much fewer it has no choice left, and cuts several percent more edges."""
_PURPOSE = 0x434F4152
"""The tag of these random words under a seed."""
_PASSES = 10
_SHRUNK = 0.95


@kernel
def _visits(indptr: NDArray[Any], key: np.uint64) -> NDArray[np.int32]:
    """All nodes at random, but that those with few neighbors, which have the least choice, come first."""
    n = indptr.shape[0] - 1
    shuffled = np.empty(n, np.int32)
    for i in range(n):
        j = np.int64(below(word(key, np.uint64(i)), np.uint64(i + 1)))
        shuffled[i] = shuffled[j]
        shuffled[j] = i
    most = 1 + 4 * np.int64(indptr[n] // n)
    ends = np.zeros(most + 2, np.int64)
    for v in range(n):
        ends[1 + min(most, np.int64(np.sqrt(1.0 + indptr[v + 1] - indptr[v])))] += 1
    for i in range(most + 1):
        ends[i + 1] += ends[i]
    order = np.empty(n, np.int32)
    for i in range(n):
        v = shuffled[i]
        rank = min(most, np.int64(np.sqrt(1.0 + indptr[v + 1] - indptr[v])))
        order[ends[rank]] = v
        ends[rank] += 1
    return order


@inlined
def _light(columns: NDArray[np.int64], u: Whole, v: Whole, heaviest: NDArray[np.int64]) -> bool:
    """Whether two nodes may be one."""
    light = True
    for x in range(heaviest.shape[0]):
        light &= columns[u, x] + columns[v, x] <= heaviest[x]
    return light


@kernel
def _paired(
    indptr: NDArray[Any],
    neighbors: NDArray[Any],
    weights: NDArray[Any],
    columns: NDArray[np.int64],
    heaviest: NDArray[np.int64],
    order: NDArray[np.int32],
    of: NDArray[np.int32],
) -> np.int64:
    """Put into ``of`` which coarse node each node is in; give how many there are.

    A node goes with the neighbor that it has most edges to; else with one that has its heaviest neighbor in common, or is
    alone like itself.
    """
    n = indptr.shape[0] - 1
    mate, waiting = np.full(n, -1, np.int32), np.full(n + 1, -1, np.int32)
    for i in range(n):
        v = order[i]
        if mate[v] >= 0:
            continue
        best, most, heavy, weight = v, 0, n, 0
        for j in range(indptr[v], indptr[v + 1]):
            u = neighbors[j]
            if weights[j] > weight:
                heavy, weight = u, weights[j]
            if weights[j] > most and mate[u] < 0 and _light(columns, u, v, heaviest):
                best, most = u, weights[j]
        if best == v:
            u = waiting[heavy]
            if u >= 0 and mate[u] == u and _light(columns, u, v, heaviest):
                best = u
            waiting[heavy] = v
        mate[v] = best
        mate[best] = v
    count = np.int64(0)
    for v in range(n):
        if mate[v] < v:
            of[v] = of[mate[v]]
        else:
            of[v] = count
            count += 1
    return count


@kernel
def _contracted(
    indptr: NDArray[Any],
    neighbors: NDArray[Any],
    weights: NDArray[Any],
    columns: NDArray[np.int64],
    of: NDArray[np.int32],
    coarse: NDArray[Any],
    found: NDArray[Any],
    heavy: NDArray[Any],
    summed: NDArray[np.int64],
) -> np.int64:
    """Fill the coarse graph (its ``indptr``, neighbors and weights) and the sums of its columns; give how many entries it has."""
    n, count = indptr.shape[0] - 1, coarse.shape[0] - 1
    members = np.full((count, 2), -1, np.int32)
    for v in range(n):
        c = of[v]
        members[c, 0 if members[c, 0] < 0 else 1] = v
        for x in range(columns.shape[1]):
            summed[c, x] += columns[v, x]
    place = np.full(count, -1, np.int64)  # where a neighbor was written last: of this node where it is not before its row
    out = np.int64(0)
    for c in range(count):
        first = out
        coarse[c] = first
        for side in range(2):
            v = members[c, side]
            if v < 0:
                continue
            for j in range(indptr[v], indptr[v + 1]):
                d = of[neighbors[j]]
                if d == c:
                    continue
                if place[d] >= first:
                    heavy[place[d]] += weights[j]
                else:
                    place[d] = out
                    found[out] = d
                    heavy[out] = weights[j]
                    out += 1
    coarse[count] = out
    return out


@inlined
def _room(loads: NDArray[np.int64], part: Whole, columns: NDArray[np.int64], v: Whole, caps: NDArray[np.int64]) -> bool:
    """Whether a part can take a node."""
    room = True
    for x in range(caps.shape[0]):
        room &= columns[v, x] == 0 or loads[part, x] + columns[v, x] <= caps[x]
    return room


@inlined
def _evens(loads: NDArray[np.int64], a: Whole, b: Whole, columns: NDArray[np.int64], v: Whole) -> bool:
    """Whether parts are more even once a node went from ``a`` to ``b``."""
    evens = True
    for x in range(columns.shape[1]):
        evens &= columns[v, x] == 0 or loads[b, x] + columns[v, x] < loads[a, x]
    return evens


@kernel
def _refined(
    indptr: NDArray[Any],
    neighbors: NDArray[Any],
    weights: NDArray[Any],
    columns: NDArray[np.int64],
    caps: NDArray[np.int64],
    passes: np.int64,
    loads: NDArray[np.int64],
    owners: NDArray[np.int32],
) -> None:
    """Move nodes to the part of most of their neighbors, as far as it has room, until none gains; and out of parts that have too much."""
    n, parts, width = indptr.shape[0] - 1, loads.shape[0], caps.shape[0]
    near, met = np.zeros(parts, np.int64), np.empty(parts, np.int64)
    active = np.ones(n, np.bool_)
    for v in range(n):
        for x in range(width):
            loads[owners[v], x] += columns[v, x]
    for _ in range(passes):
        moved = False
        for v in range(n):
            a = np.int64(owners[v])
            over = False
            for x in range(width):
                over |= columns[v, x] > 0 and loads[a, x] > caps[x]
            if not active[v] and not over:
                continue
            active[v] = False
            count = 0
            for j in range(indptr[v], indptr[v + 1]):
                p = owners[neighbors[j]]
                if near[p] == 0:
                    met[count] = p
                    count += 1
                near[p] += weights[j]
            best, gain = a, np.int64(0)
            for i in range(count):
                p = met[i]
                more = near[p] - near[a]
                if p == a or (more < gain and not (over and best == a)) or not _room(loads, p, columns, v, caps):
                    continue
                if more > gain or (best == a and (over or _evens(loads, a, p, columns, v))):
                    best, gain = p, more
            for i in range(count):
                near[met[i]] = 0
            if over and best == a:
                # No part of a neighbor has room: whichever has.
                for p in range(parts):
                    if p != a and _room(loads, np.int64(p), columns, v, caps) and _evens(loads, a, np.int64(p), columns, v):
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
class _Finer:
    """A graph that waits, and which coarse node each of its nodes is in."""

    spools: tuple[Spool, Spool, Spool]
    columns: NDArray[np.int64]
    of: NDArray[np.int32]


class Levels:
    """A graph on its way to fewer nodes and back. It is this object's alone: whoever made it keeps no reference.

    Parameters
    ----------
    graph : Adjacency
        Fewer than 2^31 nodes.
    columns : int64 [n, k]
        What is to be balanced.
    parts, seed : int
    scratch : Path
        For the finer graphs, 8 bytes an entry (16 from 2^31 entries on).
    """

    def __init__(self, graph: Adjacency, columns: NDArray[np.int64], *, parts: int, seed: int, scratch: Path) -> None:
        self.graph, self.columns = graph, columns
        self._parts, self._seed, self._scratch = parts, seed, scratch
        self._finer: list[_Finer] = []
        # No heavier than METIS lets them be: it wants so many nodes at least.
        least = max(len(graph) / (40 * max(1, parts.bit_length() - 1)), 30 * parts)
        self._heaviest: NDArray[np.int64] = np.maximum(1, 1.5 * columns.sum(axis=0) / least).astype(np.int64)

    @property
    def steps(self) -> int:
        """How many graphs wait."""
        return len(self._finer)

    def coarsen(self, few_nodes: int) -> None:
        """Make pairs of nodes one, until they are few, or hardly get fewer."""
        while len(self.graph) > few_nodes:
            graph, nodes = self.graph, len(self.graph)
            fine = settled(graph.indptr), settled(graph.neighbors), settled(graph.weights), settled(self.columns)
            of = np.empty(nodes, np.int32)
            order = _visits(fine[0], key_of(self._seed, _PURPOSE, len(self._finer)))
            count = int(_paired(*fine, self._heaviest, order, of))
            if count > _SHRUNK * nodes:
                return
            del order
            entries, dtype = len(graph.neighbors), graph.neighbors.dtype
            # Of these only what is filled takes memory.
            coarse, found, heavy = np.empty(count + 1, dtype), np.empty(entries, dtype), np.empty(entries, dtype)
            summed = np.zeros((count, self.columns.shape[1]), np.int64)
            kept = int(_contracted(*fine, of, coarse, found, heavy, summed))
            spools = [Spool(path=self._scratch / f"finer-{len(self._finer)}-{i}", dtype=dtype) for i in range(3)]
            for spool, values in zip(spools, fine[:3], strict=True):
                spool.drop()
                spool.append(values)
            self._finer.append(_Finer(spools=(spools[0], spools[1], spools[2]), columns=self.columns, of=of))
            self.graph, self.columns = Adjacency(indptr=coarse, neighbors=found[:kept], weights=heavy[:kept]), summed
            del graph, fine

    def refined(self, owners: NDArray[np.int32], imbalance: float) -> NDArray[np.int32]:
        """The part of each node of the graph as it was, from those of the coarse ones.

        Parameters
        ----------
        owners : int32
            The part of each node of ``graph``.
        imbalance : float
            A part gets at most ``ceil((1 + imbalance) * sum / parts)`` of a column, but where it had more.
        """
        self.graph = Adjacency(indptr=np.zeros(1, np.int32), neighbors=np.zeros(0, np.int32), weights=np.zeros(0, np.int32))
        while self._finer:
            finer = self._finer.pop()
            owners = owners[finer.of]
            caps = np.ceil((1 + imbalance) * finer.columns.sum(axis=0) / self._parts).astype(np.int64)
            loads = np.zeros((self._parts, len(caps)), np.int64)
            indptr, neighbors, weights = (settled(spool.map()) for spool in finer.spools)
            _refined(indptr, neighbors, weights, settled(finer.columns), caps, np.int64(_PASSES), loads, owners)
            for spool in finer.spools:
                spool.drop()
        return owners


def need_bytes(nodes: int, edges: int, constraints: int) -> int:
    """How much memory the first step takes, at most: the graph, and one that has nearly all of its edges.

    Parameters
    ----------
    nodes, edges, constraints : int
        Nodes, edges (loops left out), and columns of weights.
    """
    width = 4 if 2 * edges < NARROW else 8
    return width * 2 * 2 * edges * 2 + nodes * (72 + 2 * width + 16 * constraints) + (4 << 20)
