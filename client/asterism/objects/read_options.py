"""Options for reading a graph from an object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from asterism.time_units import DEFAULT_UNIT
from asterism_proto.errors import InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options for reading an object."""

    node_type: str = "node"
    """Name of the node type if the object has no types."""
    relation: str = "edge"
    weights: str | Mapping[str, str] | None = None
    """Attribute that holds the weight: of every edge type, or by type."""
    rename: Mapping[str, str] = field(default_factory=dict)
    only: frozenset[str] | None = None
    """Attributes to load; None: all."""
    fill: Mapping[str, Any] = field(default_factory=dict)
    """Replacement for missing values, by attribute."""
    nodes: Any = None
    """Frames of nodes, for frames of edges."""
    ends: tuple[str, str] = ("src", "dst")
    """Columns of a frame of edges that hold source and destination."""

    time_unit: str = DEFAULT_UNIT
    """Unit of times that become integers."""
    string_ids: bool = False
    """True if the space has string ids."""

    @property
    def triple(self) -> tuple[str, str, str]:
        """Edge type if the object has no types."""
        return self.node_type, self.relation, self.node_type


def parse_triple(key: object) -> tuple[str, str, str]:
    """Return ``("user", "buys", "item")`` or ``"user:buys:item"`` as a triple."""
    parts = key.split(":") if isinstance(key, str) else list(key) if isinstance(key, tuple) else []
    if len(parts) != 3 or not all(isinstance(part, str) for part in parts):
        raise InvalidRequest(
            f"edge type {key!r}: expected ('user', 'buys', 'item') or 'user:buys:item'"
        )
    return parts[0], parts[1], parts[2]
