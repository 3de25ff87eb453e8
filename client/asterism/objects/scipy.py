"""Reader of SciPy sparse matrices: entry (i, j) is the weight of an edge from i to j."""

from __future__ import annotations

from typing import Any

import numpy as np

from asterism.objects.columns import AttributeReader
from asterism.objects.graph_tables import EdgeTable, GraphTables, NodeTable
from asterism.objects.read_options import ReadOptions, parse_triple
from asterism_proto.errors import InvalidRequest

_PADDED = ("bsr", "dia")
"""Formats that store padding zeros."""


def read(matrices: Any, options: ReadOptions, attributes: AttributeReader) -> GraphTables:
    """Convert a matrix, or matrices by edge type, to tables in row order."""
    if hasattr(matrices, "tocsr"):
        if matrices.ndim != 2 or matrices.shape[0] != matrices.shape[1]:
            raise InvalidRequest(
                f"matrix of shape {list(matrices.shape)}: expected a square one, or a mapping that "
                "names two node types: {('user', 'buys', 'item'): matrix}"
            )
        matrices = {options.triple: matrices}
    sizes: dict[str, tuple[int, str]] = {}
    edges = []
    for key, matrix in matrices.items():
        triple = parse_triple(key)
        name = ":".join(triple)
        if matrix.ndim != 2:
            raise InvalidRequest(
                f"edge type {name!r}: sparse array of {matrix.ndim} dimensions: expected 2"
            )
        for node_type, size in zip((triple[0], triple[2]), matrix.shape, strict=True):
            known_size, first_name = sizes.setdefault(node_type, (int(size), name))
            if known_size != size:
                raise InvalidRequest(
                    f"matrix of {name!r} with {size} nodes of type {node_type!r}: expected "
                    f"{known_size}, as in the matrix of {first_name!r}"
                )
        edges.append(_read_edges(triple, matrix, attributes))
    nodes = tuple(
        NodeTable(
            name=name, count=size, features=attributes.read(name, size, {}, edges=False).features
        )
        for name, (size, _) in sizes.items()
    )
    return GraphTables(source_name="SciPy sparse matrix", nodes=nodes, edges=tuple(edges))


def _widened(matrix: Any) -> Any:
    """Return the matrix with a dtype in which the sums of duplicate entries do not overflow.

    Booleans stay: SciPy adds them with `or`.
    """
    dtype = matrix.dtype
    if dtype.kind in "iu":
        return matrix.astype(np.int64 if dtype.itemsize < 8 else np.float64)
    return matrix


def _read_edges(
    triple: tuple[str, str, str], matrix: Any, attributes: AttributeReader
) -> EdgeTable:
    rows = _widened(matrix).tocsr()
    if matrix.format in _PADDED or not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
        if matrix.format in _PADDED:
            rows.eliminate_zeros()
    src = np.repeat(np.arange(rows.shape[0], dtype=np.int64), np.diff(rows.indptr))
    type_attributes = attributes.read(":".join(triple), len(src), {"weight": rows.data}, edges=True)
    return EdgeTable(triple=triple, src=src, dst=rows.indices, weights=type_attributes.weights)
