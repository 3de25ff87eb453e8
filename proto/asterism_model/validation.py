"""Validation of plain values and message fields: names, mappings, keys, enums.

Every error shows the rejected value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from asterism_proto.errors import InvalidRequest

NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,127}")


def validate_name(kind: str, name: str) -> str:
    """Return a valid name, or raise InvalidRequest; ``kind`` describes the named object."""
    if not isinstance(name, str) or not NAME_PATTERN.fullmatch(name):
        raise InvalidRequest(
            f"{kind} {name!r}: expected a letter or _, then up to 127 letters, digits, _ . or -"
        )
    return name


def check_distinct(label: str, names: list[str]) -> None:
    """Raise InvalidRequest if a name occurs twice."""
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequest(f"{label} {name!r}: expected each name once")


def as_mapping(label: str, value: Any) -> Mapping[str, Any]:
    """Return a mapping unchanged and None as an empty one; raise InvalidRequest otherwise."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{label}: expected a mapping of names, found {type(value).__name__}")
    return value


def check_keys(label: str, data: Mapping[str, Any], allowed: set[str]) -> None:
    """Raise InvalidRequest for an unknown key."""
    for key in data:
        if key not in allowed:
            raise InvalidRequest(
                f"{label}: unknown key {key!r}; expected {', '.join(sorted(allowed))}"
            )


def enum_name(enum: Any, value: int, default: str) -> str:
    """Return the lower-case name of an enum value, or ``default`` for 0.

    Raises
    ------
    InvalidRequest
        If the enum has no such value.
    """
    if value == 0:
        return default
    try:
        return str(enum.Name(value)).lower()
    except ValueError as error:
        raise InvalidRequest(
            f"{enum.DESCRIPTOR.name} {value}: expected a value of this enumeration"
        ) from error
