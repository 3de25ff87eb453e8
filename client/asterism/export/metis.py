"""METIS: an assignment that cuts few edges, by the library inside pymetis.

pymetis's own call takes one constraint and walks over Python objects; the C function beside it (METIS 5.2, 64-bit
integers) takes arrays as they are, several constraints, and lets go of the GIL.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.source import Ids
from asterism_proto.errors import Internal, InvalidRequest, NotReady
from graphkit.jit import kernel, settled

_OPTIONS = 40
_STATUS = {-2: "it refused its input", -3: "it ran out of memory", -4: "it failed"}
OBJECTIVES = ("cut", "vol")
MAX_CONSTRAINTS = 64
"""Columns of weights: METIS works through all of them at every step, and finds no balance of very many."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adjacency:
    """An undirected graph without loops; parallel edges are one, their number its weight."""

    indptr: Ids
    """int64 [n + 1]."""
    neighbors: Ids
    """int64 [m]."""
    weights: Ids
    """int64 [m]."""

    def __len__(self) -> int:
        return len(self.indptr) - 1


@kernel
def _fill(pairs: NDArray[Any], at: NDArray[np.int64], neighbors: NDArray[np.int64]) -> None:
    for i in range(pairs.shape[0]):
        u, v = pairs[i, 0], pairs[i, 1]
        if u != v:
            neighbors[at[u]] = v
            neighbors[at[v]] = u
            at[u] += 1
            at[v] += 1


@kernel
def _merge(indptr: NDArray[np.int64], neighbors: NDArray[np.int64], weights: NDArray[np.int64]) -> np.int64:
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
    if len(degrees) >= 1 << 31:
        raise InvalidRequest(f"METIS in one process is for fewer than 2^31 nodes, not {len(degrees)}; use assign='fennel' or a folder of assignments")
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(degrees, dtype=np.int64)])
    neighbors, at = np.empty(int(indptr[-1]), np.int64), indptr[:-1].copy()
    for piece in pairs:
        _fill(settled(piece), at, neighbors)
    del at
    weights = np.empty(len(neighbors), np.int64)
    kept = int(_merge(indptr, neighbors, weights))
    return Adjacency(indptr=indptr, neighbors=neighbors[:kept], weights=weights[:kept])


def need_bytes(nodes: int, edges: int, constraints: int) -> int:
    """How much memory `adjacency` and `partition` take at their peak, at most: what was measured, and a tenth more.

    Parameters
    ----------
    nodes, edges, constraints : int
        Nodes, edges (loops left out), and columns of weights.
    """
    return edges * 90 + nodes * (120 + 24 * constraints)


def partition(
    graph: Adjacency, parts: int, *, constraints: NDArray[np.int64], seed: int, objective: str, imbalance: float = 0.03
) -> tuple[NDArray[np.int32], list[str]]:
    """A part for each node.

    Parameters
    ----------
    graph : Adjacency
        What to cut.
    parts : int
        How many parts.
    constraints : int64 [n, k]
        Each column is balanced over the parts; a column's sum is positive.
    seed : int
        Of METIS's own generator; its low 31 bits count.
    objective : str
        ``cut`` (edges between parts) or ``vol`` (nodes at borders).
    imbalance : float
        How much more than its share of a column a part may get; METIS tries, and does not promise.

    Returns
    -------
    owners : int32 [n]
    warnings : list of str
        Where only one constraint could be had.
    """
    if objective not in OBJECTIVES:
        raise InvalidRequest(f"objective {objective!r}: expected cut or vol")
    if parts == 1 or len(graph) <= parts:
        return (np.arange(len(graph)) % parts).astype(np.int32), []
    try:
        from pymetis import _internal  # the extra `export` brings it; nothing else needs it
    except ImportError as error:
        raise NotReady(f"assign='metis' needs pymetis: pip install 'asterism[export]' ({error})") from error
    keys: Any = vars(_internal)["options_indices"]  # its stub leaves this one out
    chosen = {
        int(keys.SEED): seed & 0x7FFFFFFF,
        int(keys.OBJTYPE): OBJECTIVES.index(objective),
        int(keys.NUMBERING): 0,
        int(keys.UFACTOR): max(1, round(1000 * imbalance)),
    }
    try:
        library = ctypes.CDLL(_internal.__file__)
        kway = library.METIS_PartGraphKway
    except (OSError, AttributeError):
        return _by_pymetis(graph, parts, constraints, seed), [
            "METIS's C function was not found in pymetis; its Python call knows one constraint (all columns together) and the objective cut only"
        ]
    options = np.full(_OPTIONS, -1, np.int64)
    library.METIS_SetDefaultOptions(_pointer(options))
    for index, value in chosen.items():
        options[index] = value
    found, objective_value = np.zeros(len(graph), np.int64), np.zeros(1, np.int64)
    sizes = [np.array([value], np.int64) for value in (len(graph), constraints.shape[1], parts)]
    weights = np.ascontiguousarray(constraints, np.int64)
    status = kway(
        _pointer(sizes[0]),
        _pointer(sizes[1]),
        _pointer(graph.indptr),
        _pointer(graph.neighbors),
        _pointer(weights),
        None,
        _pointer(graph.weights) if objective == "cut" else None,
        _pointer(sizes[2]),
        None,
        None,
        _pointer(options),
        _pointer(objective_value),
        _pointer(found),
    )
    if status != 1:
        raise Internal(f"METIS ended with status {status}: {_STATUS.get(status, 'unknown')}; use assign='fennel' or a folder of assignments")
    return found.astype(np.int32), []


def _pointer(array: NDArray[np.int64]) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p)


def _by_pymetis(graph: Adjacency, parts: int, constraints: NDArray[np.int64], seed: int) -> NDArray[np.int32]:
    """The same through pymetis's Python call, which knows one constraint."""
    import pymetis

    found = pymetis.part_graph(
        parts,
        pymetis.CSRAdjacency(graph.indptr, graph.neighbors),
        vweights=constraints.sum(axis=1),
        eweights=graph.weights,
        recursive=False,
        options=pymetis.Options(seed=seed & 0x7FFFFFFF),
    )
    return np.asarray(found[1], np.int32)
