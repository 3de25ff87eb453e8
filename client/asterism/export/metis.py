"""METIS: an assignment that cuts few edges, by the library inside pymetis.

pymetis's own call takes one constraint and walks over Python objects; the C function beside it (METIS 5.2, 64-bit
integers) takes arrays as they are, several constraints, and lets go of the GIL.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.source import Ids
from asterism_proto.errors import Internal, InvalidRequest, NotReady
from graphkit.split import group

_OPTIONS = 40
_STATUS = {-2: "it refused its input", -3: "it ran out of memory", -4: "it failed"}
OBJECTIVES = ("cut", "vol")


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


def adjacency(src: Ids, dst: Ids, nodes: int) -> Adjacency:
    """The adjacency that METIS works on: edges of either direction between two nodes count together."""
    if nodes >= 1 << 31:
        raise InvalidRequest(f"METIS in one process is for fewer than 2^31 nodes, not {nodes}; use assign='random' or a folder of assignments")
    proper = src != dst
    pairs = np.minimum(src[proper], dst[proper]) * nodes + np.maximum(src[proper], dst[proper])
    pairs, counts = np.unique(pairs, return_counts=True)
    low, high = np.divmod(pairs, max(nodes, 1))
    order, indptr = group(np.concatenate([low, high]).astype(np.int32), nodes)
    return Adjacency(indptr=indptr, neighbors=np.concatenate([high, low])[order], weights=np.concatenate([counts, counts])[order].astype(np.int64))


def partition(graph: Adjacency, parts: int, *, constraints: NDArray[np.int64], seed: int, objective: str) -> tuple[NDArray[np.int32], list[str]]:
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
    chosen = {int(keys.SEED): seed & 0x7FFFFFFF, int(keys.OBJTYPE): OBJECTIVES.index(objective), int(keys.NUMBERING): 0}
    try:
        library = ctypes.CDLL(_internal.__file__)
        kway = library.METIS_PartGraphKway
    except (OSError, AttributeError):
        return _by_pymetis(graph, parts, constraints, seed), [
            "METIS's C function was not found in pymetis: one constraint only, nodes of all types together"
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
        raise Internal(f"METIS ended with status {status}: {_STATUS.get(status, 'unknown')}; use assign='random' or a folder of assignments")
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
