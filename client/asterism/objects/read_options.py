"""Options of a load from an object: how the object is read, and its edge types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from asterism_proto.errors import InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How an object is read."""

    node_type: str = "node"
    """What the type of nodes is called where the object has no types."""
    relation: str = "edge"
    weights: str | Mapping[str, str] | None = None
    """The attribute that is the weight: of every edge type, or by type."""
    rename: Mapping[str, str] = field(default_factory=dict)
    only: frozenset[str] | None = None
    """The attributes to take; None: all."""
    fill: Mapping[str, Any] = field(default_factory=dict)
    """What a missing value is, by attribute."""
    nodes: Any = None
    """Frames of nodes, beside frames of edges."""
    ends: tuple[str, str] = ("src", "dst")
    """The columns of a frame of edges that name its ends."""

    string_ids: bool = False
    """Whether nodes are called by strings in the space."""

    @property
    def triple(self) -> tuple[str, str, str]:
        """The edge type where the object has no types."""
        return self.node_type, self.relation, self.node_type


def parse_triple(key: object) -> tuple[str, str, str]:
    """``("user", "buys", "item")`` or ``"user:buys:item"`` as a triple."""
    parts = key.split(":") if isinstance(key, str) else list(key) if isinstance(key, tuple) else []
    if len(parts) != 3 or not all(isinstance(part, str) for part in parts):
        raise InvalidRequest(
            f"edge type {key!r}: expected ('user', 'buys', 'item') or 'user:buys:item'"
        )
    return parts[0], parts[1], parts[2]
