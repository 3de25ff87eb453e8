"""Nodes as people call them: the words of a command as ids, and ids in its answers as names, where ids of a space are strings."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism import Graph

_NODES = frozenset({"nodes", "src", "dst", "seeds", "pairs", "negatives"})
"""Fields of records that hold ids of nodes."""


def starts(graph: Graph, words: Sequence[str]) -> Any:
    """Nodes as a command is told them: names where ids are strings, else whole numbers."""
    return list(words) if graph.schema.named else [_number(word) for word in words]


def _number(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise InvalidRequest(f"node {word!r}: ids of this space are whole numbers, not strings") from None


def called(graph: Graph, record: Any, version: int | None = None) -> Any:
    """A record with names in the place of ids, where ids of the space are strings; and the records in it, or of a list."""
    if not graph.schema.named:
        return record
    if isinstance(record, list | tuple):
        return type(record)(called(graph, each, version) for each in record)
    if not dataclasses.is_dataclass(record) or isinstance(record, type):
        return record
    changed: dict[str, Any] = {}
    version = getattr(record, "version", version)
    by_number = isinstance(getattr(record, "nodes", None), dict)  # a subgraph: what is not in its nodes is a number in it
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.name == "nodes" and by_number:
            changed["nodes"] = {ntype: graph.node_names(ids, ntype, version=version) for ntype, ids in value.items()}
        elif field.name in _NODES and not by_number and isinstance(value, np.ndarray) and value.dtype == np.int64:
            changed[field.name] = graph.node_names(value, version=version)
        elif isinstance(value, tuple) or dataclasses.is_dataclass(value):
            changed[field.name] = called(graph, value, version)
    return dataclasses.replace(record, **changed)


def there(nodes: Any) -> Any:
    """bool: which of some ids, or names, are nodes."""
    return nodes != "" if nodes.dtype.kind == "U" else nodes >= 0
