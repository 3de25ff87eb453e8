"""Node ids of commands.

Arguments become ids. In a space with string ids, ids in results become strings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism import Graph

_NODES = frozenset({"nodes", "src", "dst", "seeds", "pairs", "negatives"})
"""Fields of records that contain node ids."""


def parse_node_ids(graph: Graph, texts: Sequence[str]) -> Any:
    """Return the nodes of an argument: strings in a space with string ids, integers otherwise."""
    return (
        list(texts) if graph.schema.has_string_ids else [_parse_integer_id(text) for text in texts]
    )


def _parse_integer_id(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidRequest(
            f"node={text!r}: expected an integer, because the ids of this space are integers"
        ) from None


def with_string_ids(graph: Graph, record: Any, version: int | None = None) -> Any:
    """Return a record with its ids replaced by strings, if the space has string ids.

    Records in fields and in lists are converted too.
    """
    if not graph.schema.has_string_ids:
        return record
    if isinstance(record, list | tuple):
        return type(record)(with_string_ids(graph, item, version) for item in record)
    if not dataclasses.is_dataclass(record) or isinstance(record, type):
        return record
    replacements: dict[str, Any] = {}
    version = getattr(record, "version", version)
    # In a subgraph only `nodes` contains ids. Its other fields are positions in the subgraph.
    nodes_by_type = isinstance(getattr(record, "nodes", None), dict)
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.name == "nodes" and nodes_by_type:
            replacements["nodes"] = {
                ntype: graph.node_names(ids, ntype, version=version) for ntype, ids in value.items()
            }
        elif (
            field.name in _NODES
            and not nodes_by_type
            and isinstance(value, np.ndarray)
            and value.dtype == np.int64
        ):
            replacements[field.name] = graph.node_names(value, version=version)
        elif isinstance(value, tuple) or dataclasses.is_dataclass(value):
            replacements[field.name] = with_string_ids(graph, value, version)
    return dataclasses.replace(record, **replacements)


def present_nodes(nodes: Any) -> Any:
    """Return a mask of the ids or strings that are nodes; -1 and the empty string are not."""
    return nodes != "" if nodes.dtype.kind == "U" else nodes >= 0
