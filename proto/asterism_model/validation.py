"""What plain values and words of the wire may be: names, mappings, keys, enums. Every refusal shows
the value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from asterism_proto.errors import InvalidRequest

NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,127}")


def validate_name(kind: str, name: str) -> str:
    """``name`` if it is one; ``kind`` says of what."""
    if not isinstance(name, str) or not NAME_PATTERN.fullmatch(name):
        raise InvalidRequest(
            f"{kind} {name!r}: a name is a letter or _, then up to 127 letters, digits, _ . or -"
        )
    return name


def check_distinct(label: str, names: list[str]) -> None:
    """Refuse a name that is there twice."""
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequest(f"{label} {name!r} is named twice")


def as_mapping(label: str, value: Any) -> Mapping[str, Any]:
    """A mapping of names; nothing is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{label}: expected a mapping of names, not {type(value).__name__}")
    return value


def check_keys(label: str, data: Mapping[str, Any], allowed: set[str]) -> None:
    """Refuse a key that means nothing."""
    for key in data:
        if key not in allowed:
            raise InvalidRequest(
                f"{label}: unknown key {key!r}; expected {', '.join(sorted(allowed))}"
            )


def enum_name(enum: Any, value: int, default: str) -> str:
    """The lower-case word of an enum's value; 0 is the default, an unknown number
    InvalidRequest.
    """
    if value == 0:
        return default
    try:
        return str(enum.Name(value)).lower()
    except ValueError as error:
        raise InvalidRequest(f"{enum.DESCRIPTOR.name} {value}: no such value") from error
