"""Differences between two schemas, in the words of schema files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from asterism_model.schema import Schema
from asterism_proto.errors import Conflict

_MAX_SHOWN = 5


def schema_differences(existing: Schema, wanted: Schema) -> list[str]:
    """Return a phrase for each difference, such as ``direction is out, not both``."""
    return list(_differences("", existing.to_dict(), wanted.to_dict()))


def _differences(path: str, existing: Any, wanted: Any) -> Iterator[str]:
    if isinstance(existing, Mapping) and isinstance(wanted, Mapping):
        for key in dict.fromkeys([*existing, *wanted]):
            name = f"{path} > {key}" if path else str(key)
            if key not in wanted:
                yield f"{name} is in the space only"
            elif key not in existing:
                yield f"{name} is not in the space"
            else:
                yield from _differences(name, existing[key], wanted[key])
    elif existing != wanted:
        yield f"{path} is {_text(existing)}, not {_text(wanted)}"


def _text(value: Any) -> str:
    return "none" if value is None else str(value)


def another_schema(space: str, existing: Schema, wanted: Schema) -> Conflict:
    """Return the error for a space that exists with another schema."""
    differences = schema_differences(existing, wanted)
    listing = "; ".join(differences[:_MAX_SHOWN])
    if len(differences) > _MAX_SHOWN:
        listing += f"; and {len(differences) - _MAX_SHOWN} more differences"
    return Conflict(
        f"space={space!r}: expected the schema of the file, but the space exists with another one "
        f"({listing}); use another name, or change the file"
    )
