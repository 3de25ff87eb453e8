"""Edge types as callers write them."""

from __future__ import annotations

from asterism_proto.errors import InvalidRequest


def parse_triple(key: object) -> tuple[str, str, str]:
    """``("user", "buys", "item")`` or ``"user:buys:item"`` as a triple."""
    parts = key.split(":") if isinstance(key, str) else list(key) if isinstance(key, tuple) else []
    if len(parts) != 3 or not all(isinstance(part, str) for part in parts):
        raise InvalidRequest(
            f"edge type {key!r}: expected ('user', 'buys', 'item') or 'user:buys:item'"
        )
    return parts[0], parts[1], parts[2]
