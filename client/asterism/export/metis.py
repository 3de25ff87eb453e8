"""METIS: an assignment that cuts few edges, by its C library, which takes several constraints and
lets go of the GIL.

The library comes in two builds: of 32-bit integers (cmeel-metis, METIS 5.2), which takes half the
memory, and of 64-bit ones inside pymetis, for graphs beyond 2^31. Either takes arrays as they are.
pymetis's own call, which walks over Python objects and takes one constraint, is left for where
neither is found."""

from __future__ import annotations

import ctypes
import importlib.metadata
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.adjacency import MAX_INT32_ENTRIES, MetisGraph
from asterism_proto.errors import Internal, InvalidRequest, NotReady

_OPTIONS = 40
_STATUS = {-2: "it refused its input", -3: "it ran out of memory", -4: "it failed"}
OBJECTIVES = ("cut", "vol")
_COARSENING_RATIO = 0.55
"""What is left of the nodes after a step: mostly 0.51 to 0.54."""
_FIXED_BYTES = 4 << 20
"""What does not grow with the graph."""
MAX_CONSTRAINTS = 64
"""Columns of weights: METIS works through all of them at every step, and finds no balance of very
many.
"""


def required_bytes(
    nodes: int, entries: int, constraints: int, parts: int, objective: str = "cut"
) -> int:
    """How much memory METIS takes beside the graph that it is given, at most.

    METIS about halves the nodes until some 40 log2(parts) times fewer are left, and keeps the graph
    of every step, with a weight for each entry. Edges at random join as many different pairs of
    coarse nodes as they would at random; those of a graph with clusters fewer.

    Parameters
    ----------
    nodes, entries, constraints, parts, objective
        Nodes, entries of the adjacency (two an edge), columns of weights, parts, and what is to be
        least.
    """
    min_coarse_nodes = max(nodes / (40 * max(1, parts.bit_length() - 1)), 30 * parts)
    kept_entries, remaining_nodes = 0.0, float(nodes)
    while remaining_nodes > min_coarse_nodes and remaining_nodes > 1:
        remaining_nodes *= _COARSENING_RATIO
        kept_entries += (
            2 * _expected_pairs(entries, remaining_nodes) + (5 + constraints) * remaining_nodes
        )
    # Volumes have weights of their own, and a record of three numbers for each part next to a node.
    volume_entries = entries + 3 * min(entries, nodes * parts) if objective == "vol" else 0
    width = 4 if _fits_int32(entries) else 8
    return (
        int(
            width
            * (
                kept_entries
                + 4 * _expected_pairs(entries, remaining_nodes)
                + volume_entries
                + nodes * (20 + 2 * constraints)
            )
        )
        + _FIXED_BYTES
    )


def _expected_pairs(entries: int, nodes: float) -> float:
    """How many different pairs of so many nodes there are in so many draws."""
    return float(-np.expm1(-entries / nodes**2) * nodes**2)


def _fits_int32(max_value: int) -> bool:
    """Whether the build of 32 bits is there, and counts as far."""
    return max_value < MAX_INT32_ENTRIES and _metis32() is not None


def partition_graph(
    graph: MetisGraph,
    parts: int,
    *,
    constraints: NDArray[np.int64],
    seed: int,
    objective: str,
    imbalance: float = 0.03,
) -> tuple[NDArray[np.int32], list[str]]:
    """A part for each node.

    Parameters
    ----------
    graph : MetisGraph
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
    needs_int64 = (
        max(len(graph.neighbors), int(graph.weights.sum()), int(constraints.sum(axis=0).max()))
        >= MAX_INT32_ENTRIES
    )
    library = (None if needs_int64 else _metis32()) or _metis64()
    if library is None:
        return _by_pymetis(graph, parts, constraints, seed), [
            (
                "METIS's C function was not found; pymetis's Python call knows one constraint "
                "(all columns together) and the objective cut only"
            )
        ]
    return library.kway(
        graph, parts, constraints, seed=seed, objective=objective, imbalance=imbalance
    ), []


@dataclass(frozen=True, slots=True, kw_only=True)
class _Library:
    """A build of METIS."""

    library: Any
    dtype: type[np.signedinteger[Any]]
    """Its ``idx_t``."""
    indices: Mapping[str, int]
    """Where each of its options is."""

    def kway(
        self,
        graph: MetisGraph,
        parts: int,
        constraints: NDArray[np.int64],
        *,
        seed: int,
        objective: str,
        imbalance: float,
    ) -> NDArray[np.int32]:
        """`METIS_PartGraphKway`."""
        options = np.full(_OPTIONS, -1, self.dtype)
        self.library.METIS_SetDefaultOptions(_pointer(options))
        option_values = {
            "SEED": seed & 0x7FFFFFFF,
            "OBJTYPE": OBJECTIVES.index(objective),
            "NUMBERING": 0,
            "UFACTOR": max(1, round(1000 * imbalance)),
        }
        for name, value in option_values.items():
            options[self.indices[name]] = value
        owners, edge_cut = np.zeros(len(graph), self.dtype), np.zeros(1, self.dtype)
        sizes = [
            np.array([value], self.dtype) for value in (len(graph), constraints.shape[1], parts)
        ]
        indptr, neighbors, weights, columns = (
            np.ascontiguousarray(array, self.dtype)
            for array in (graph.indptr, graph.neighbors, graph.weights, constraints)
        )
        status = self.library.METIS_PartGraphKway(
            _pointer(sizes[0]),
            _pointer(sizes[1]),
            _pointer(indptr),
            _pointer(neighbors),
            _pointer(columns),
            None,
            _pointer(weights) if objective == "cut" else None,
            _pointer(sizes[2]),
            None,
            None,
            _pointer(options),
            _pointer(edge_cut),
            _pointer(owners),
        )
        if status != 1:
            raise Internal(
                f"METIS ended with status {status}: {_STATUS.get(status, 'unknown')}; use "
                "assign='fennel' or a folder of assignments"
            )
        return owners.astype(np.int32, copy=False)


def _metis32() -> _Library | None:
    """METIS of 32-bit integers."""
    try:
        prefix = Path(
            str(importlib.metadata.distribution("cmeel-metis").locate_file("cmeel.prefix"))
        )
        header = (prefix / "include/metis.h").read_text()
        # The path from one to the other is written wrongly in some builds; what is loaded already
        # is found by its name. Both stay local: pymetis has functions of the same names.
        for name in ("libGKlib", "libmetis"):
            library = ctypes.CDLL(str(next((prefix / "lib").glob(f"{name}.*"))))
    except (importlib.metadata.PackageNotFoundError, OSError, StopIteration):
        return None
    width = re.search(r"^#define IDXTYPEWIDTH +(\d+)", header, re.MULTILINE)
    names = re.findall(r"^ *METIS_OPTION_(\w+),", header, re.MULTILINE)
    if width is None or width[1] != "32" or not hasattr(library, "METIS_PartGraphKway"):
        return None
    return _Library(
        library=library, dtype=np.int32, indices={name: i for i, name in enumerate(names)}
    )


def _metis64() -> _Library | None:
    """METIS of 64-bit integers, inside pymetis."""
    try:
        from pymetis import _internal  # the extra `export` brings it; nothing else needs it
    except ImportError as error:
        raise NotReady(
            f"assign='metis' needs METIS: pip install 'asterism-graph[export]' ({error})"
        ) from error
    keys: Any = vars(_internal)["options_indices"]  # its stub leaves this one out
    try:
        library = ctypes.CDLL(_internal.__file__)
        library.METIS_PartGraphKway  # noqa: B018  # its address is looked up here
    except (OSError, AttributeError):
        return None
    return _Library(
        library=library,
        dtype=np.int64,
        indices={
            name: int(getattr(keys, name)) for name in ("SEED", "OBJTYPE", "NUMBERING", "UFACTOR")
        },
    )


def _pointer(array: NDArray[Any]) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p)


def _by_pymetis(
    graph: MetisGraph, parts: int, constraints: NDArray[np.int64], seed: int
) -> NDArray[np.int32]:
    """The same through pymetis's Python call, which knows one constraint."""
    import pymetis

    result = pymetis.part_graph(
        parts,
        pymetis.CSRAdjacency(graph.indptr.astype(np.int64), graph.neighbors.astype(np.int64)),
        vweights=constraints.sum(axis=1),
        eweights=graph.weights,
        recursive=False,
        options=pymetis.Options(seed=seed & 0x7FFFFFFF),
    )
    return np.asarray(result[1], np.int32)
