"""From an object to the reader that knows its library: by what is imported already, never by importing it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from asterism.objects import dgl, igraph, networkx, pandas, pyg, scipy
from asterism.objects.asked import Asked
from asterism.objects.columns import Attributes
from asterism.objects.tables import Tables
from asterism_proto.errors import InvalidRequest

Reader = Callable[[Any, Asked, Attributes], Tables]

EXPECTED = (
    "a PyG Data or HeteroData, a DGLGraph, a graph of NetworkX or igraph, a SciPy sparse matrix or pandas DataFrame of edges, or a mapping of "
    "edge types to these two; files are loaded by asterism.ingest.load"
)


def read_tables(graph: Any, asked: Asked) -> Tables:
    """An object as tables, checked.

    Raises
    ------
    InvalidRequest
        Where nobody knows the object, or it holds what a graph here can not.
    """
    attributes = Attributes(asked)
    reader = _reader(graph)
    if asked.nodes is not None and reader is not pandas.read:
        raise InvalidRequest(f"nodes: frames of nodes go with frames of edges; a {type(graph).__name__} has its own")
    tables = reader(graph, asked, attributes)
    attributes.check()
    tables.check()
    return tables


def _reader(graph: Any) -> Reader:
    if isinstance(graph, Mapping) and not _is_scipy(graph) and len(graph):  # a SciPy matrix can be a dictionary of its entries
        if all(map(_is_scipy, graph.values())):
            return scipy.read
        if all(map(_is_pandas, graph.values())):
            return pandas.read
        raise InvalidRequest(f"the graph is a mapping to {', '.join(sorted({type(held).__name__ for held in graph.values()}))}; expected {EXPECTED}")
    known: list[tuple[Callable[[Any], bool], Reader]] = [
        (lambda one: _is(one, "torch_geometric.data", "Data", "HeteroData"), pyg.read),
        (lambda one: _is(one, "dgl", "DGLGraph"), dgl.read),
        (lambda one: _is(one, "networkx", "Graph"), networkx.read),  # the others are kinds of it
        (lambda one: _is(one, "igraph", "Graph"), igraph.read),
        (_is_scipy, scipy.read),
        (_is_pandas, pandas.read),
    ]
    for is_one, reader in known:
        if is_one(graph):
            return reader
    raise InvalidRequest(f"the graph is a {type(graph).__module__}.{type(graph).__qualname__}; expected {EXPECTED}")


def _is(graph: object, module: str, *names: str) -> bool:
    """Whether it is an instance of a class of a module that somebody has imported."""
    there = sys.modules.get(module)
    kinds = tuple(getattr(there, name) for name in names if hasattr(there, name))
    return bool(kinds) and isinstance(graph, kinds)


def _is_scipy(graph: Any) -> bool:
    there = sys.modules.get("scipy.sparse")
    return there is not None and bool(there.issparse(graph))


def _is_pandas(graph: Any) -> bool:
    return _is(graph, "pandas", "DataFrame")
