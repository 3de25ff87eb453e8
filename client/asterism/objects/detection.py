"""Detection of an object's library among the imported modules, without importing any."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from asterism.objects import arrow, dgl, edge_index, igraph, networkx, pandas, pyg, scipy
from asterism.objects.columns import AttributeReader
from asterism.objects.graph_tables import GraphTables
from asterism.objects.read_options import ReadOptions
from asterism.training.torch_gather_scatter import is_tensor
from asterism_proto.errors import InvalidRequest

ObjectReader = Callable[[Any, ReadOptions, AttributeReader], GraphTables]

EXPECTED_OBJECTS = (
    "a PyG Data or HeteroData, a DGLGraph, a graph of NetworkX or igraph, a SciPy sparse "
    "matrix, pandas DataFrame, Arrow table, Polars frame or [2, E] array of edges, or a mapping of "
    "edge types to one kind of these; files are loaded by asterism.ingest.load"
)


def read_tables(graph: Any, options: ReadOptions) -> GraphTables:
    """Convert an object to validated tables.

    Parameters
    ----------
    graph : object
        Graph of a supported library.
    options : ReadOptions
        Options of the conversion.

    Returns
    -------
    GraphTables
        Tables of its nodes and edges.

    Raises
    ------
    InvalidRequest
        If the kind of object is unknown, or it holds data that a graph space cannot.
    """
    attributes = AttributeReader(options)
    reader = _reader_for(graph)
    if options.nodes is not None and reader not in (pandas.read, arrow.read, edge_index.read):
        raise InvalidRequest(
            f"nodes: expected None, because a {type(graph).__name__} has its own nodes; pass nodes "
            "with data frames, Arrow tables or arrays of edges only"
        )
    tables = reader(graph, options, attributes)
    attributes.check()
    tables.check()
    return tables


def _reader_for(graph: Any) -> ObjectReader:
    if (
        isinstance(graph, Mapping) and not _is_scipy(graph) and len(graph)
    ):  # A SciPy matrix can be a dict of its entries.
        if all(map(_is_scipy, graph.values())):
            return scipy.read
        if all(map(_is_pandas, graph.values())):
            return pandas.read
        if all(map(_is_arrow, graph.values())):
            return arrow.read
        if all(map(_is_array, graph.values())):
            return edge_index.read
        raise InvalidRequest(
            "graph: expected "
            f"{EXPECTED_OBJECTS}; found a mapping to "
            f"{', '.join(sorted({type(value).__name__ for value in graph.values()}))}"
        )
    readers: list[tuple[Callable[[Any], bool], ObjectReader]] = [
        (
            lambda candidate: _is_instance(candidate, "torch_geometric.data", "Data", "HeteroData"),
            pyg.read,
        ),
        (lambda candidate: _is_instance(candidate, "dgl", "DGLGraph"), dgl.read),
        (
            lambda candidate: _is_instance(candidate, "networkx", "Graph"),
            networkx.read,
        ),  # The directed and multigraph classes are subclasses of it.
        (lambda candidate: _is_instance(candidate, "igraph", "Graph"), igraph.read),
        (_is_scipy, scipy.read),
        (_is_pandas, pandas.read),
        (_is_arrow, arrow.read),
        (_is_array, edge_index.read),
    ]
    for matches, reader in readers:
        if matches(graph):
            return reader
    raise InvalidRequest(
        f"graph of type {type(graph).__module__}.{type(graph).__qualname__}: expected "
        f"{EXPECTED_OBJECTS}"
    )


def _is_instance(graph: object, module: str, *names: str) -> bool:
    """Return True if an object is an instance of a class of an imported module."""
    loaded = sys.modules.get(module)
    kinds = tuple(getattr(loaded, name) for name in names if hasattr(loaded, name))
    return bool(kinds) and isinstance(graph, kinds)


def _is_scipy(graph: Any) -> bool:
    loaded = sys.modules.get("scipy.sparse")
    return loaded is not None and bool(loaded.issparse(graph))


def _is_pandas(graph: Any) -> bool:
    return _is_instance(graph, "pandas", "DataFrame")


def _is_arrow(graph: Any) -> bool:
    """Return True for Arrow tables, and frames of Polars and others that export such tables."""
    return hasattr(type(graph), "__arrow_c_stream__") and not _is_pandas(graph)


def _is_array(graph: Any) -> bool:
    return is_tensor(graph) or isinstance(graph, np.ndarray)
