"""METIS partitioning through its C library, with several constraints and without the GIL.

The library comes in two builds. cmeel-metis (METIS 5.2) uses 32-bit integers and takes half the
memory. pymetis contains a build with 64-bit integers, for graphs beyond 2^31 entries. Both take the
arrays without conversion. pymetis's own Python function iterates over Python objects and supports
one constraint; it is the fallback if neither build is found.
"""

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

from asterism.export.partitioning.metis_graph import MAX_INT32_ENTRIES, MetisGraph
from asterism_proto.errors import Internal, InvalidRequest, NotReady

_OPTIONS = 40
_STATUS = {-2: "it refused its input", -3: "it ran out of memory", -4: "it failed"}
OBJECTIVES = ("cut", "vol")
_COARSENING_RATIO = 0.55
"""Share of the nodes that remain after one coarsening step, mostly 0.51 to 0.54."""
_FIXED_BYTES = 4 << 20
"""Memory that does not grow with the graph, in bytes."""
MAX_CONSTRAINTS = 64
"""Largest number of weight columns.
METIS processes all columns at every step, and finds no balance for very many."""


def required_bytes(
    nodes: int, entries: int, constraints: int, parts: int, objective: str = "cut"
) -> int:
    """Return the most memory that METIS takes in addition to its input graph, in bytes.

    METIS roughly halves the nodes per step until about n / (40 log2(parts)) are left. It keeps the
    graph of every step, with a weight per entry. The bound assumes random edges, which join the
    most distinct pairs of coarse nodes; a graph with clusters needs less.

    Parameters
    ----------
    nodes, entries, constraints, parts : int
        Number of nodes, adjacency entries (two per edge), weight columns and partitions.
    objective : {"cut", "vol"}
        Quantity to minimize.
    """
    min_coarse_nodes = max(nodes / (40 * max(1, parts.bit_length() - 1)), 30 * parts)
    kept_entries, remaining_nodes = 0.0, float(nodes)
    while remaining_nodes > min_coarse_nodes and remaining_nodes > 1:
        remaining_nodes *= _COARSENING_RATIO
        kept_entries += (
            2 * _expected_pairs(entries, remaining_nodes) + (5 + constraints) * remaining_nodes
        )
    # With "vol", nodes have sizes, and border nodes a record of three numbers per partition.
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
    """Return the expected number of distinct pairs of nodes among ``entries`` random pairs."""
    return float(-np.expm1(-entries / nodes**2) * nodes**2)


def _fits_int32(max_value: int) -> bool:
    """Return True if the 32-bit build is installed and can count to ``max_value``."""
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
    """Partition a graph with METIS.

    Parameters
    ----------
    graph : MetisGraph
        Graph to partition.
    parts : int
        Number of partitions.
    constraints : ndarray of int64, shape (n, k)
        Node weights. Each column is balanced over the partitions and must have a positive sum.
    seed : int
        Seed of METIS's own generator, which uses the low 31 bits.
    objective : {"cut", "vol"}
        Minimize the edges between partitions, or the communication volume.
    imbalance : float, default 0.03
        Share by which a partition may exceed its even share of a column. METIS does not guarantee
        it.

    Returns
    -------
    owners : ndarray of int32, shape (n,)
        Partition of each node.
    warnings : list of str
        Not empty if only one constraint was supported.

    Raises
    ------
    InvalidRequest
        The objective is unknown.
    NotReady
        METIS is not installed.
    Internal
        METIS failed.
    """
    if objective not in OBJECTIVES:
        raise InvalidRequest(f"objective={objective!r}: expected 'cut' or 'vol'")
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
    """One build of METIS."""

    library: Any
    dtype: type[np.signedinteger[Any]]
    """NumPy type of ``idx_t``."""
    indices: Mapping[str, int]
    """Position of each option in the options array."""

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
        """Call `METIS_PartGraphKway`."""
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
    """Return the build with 32-bit integers, or None."""
    try:
        prefix = Path(
            str(importlib.metadata.distribution("cmeel-metis").locate_file("cmeel.prefix"))
        )
        header = (prefix / "include/metis.h").read_text()
        # Some builds have a wrong library path from libmetis to libGKlib, so libGKlib is loaded
        # first. Both are loaded with local symbols, because pymetis has functions of the same
        # names.
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
    """Return the build with 64-bit integers inside pymetis, or None."""
    try:
        from pymetis import _internal  # installed by the extra `export`; nothing else needs it
    except ImportError as error:
        raise NotReady(
            f"assign='metis' needs METIS: pip install 'asterism-graph[export]' ({error})"
        ) from error
    keys: Any = vars(_internal)["options_indices"]  # missing from its stub
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
    """Partition through pymetis's Python function, which supports one constraint."""
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
