"""Validation of plain values and message fields: names, mappings, keys, enums.

Every error shows the rejected value.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from asterism_proto.errors import InvalidRequest

NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,127}")
"""Names of graph spaces, and those of types and features in ASCII."""
MAX_NAME_BYTES = 128
"""Most bytes of a name in UTF-8. Keys of stores have one byte for a length."""


def validate_name(kind: str, name: str) -> str:
    """Return a valid name of a type, feature or table, or raise InvalidRequest.

    Letters and digits are those of any script, as in identifiers of Python, and names of other
    scripts are in Unicode's normalization form C, so that names that look equal are equal.

    Parameters
    ----------
    kind : str
        Description of the named object.
    name : str

    Returns
    -------
    str

    Raises
    ------
    InvalidRequest
        The name is not valid; the message has the normalized form if that is the reason.
    """
    if isinstance(name, str) and (NAME_PATTERN.fullmatch(name) or _is_identifier(name)):
        normalized = normalize_name(name)
        if normalized != name:
            raise InvalidRequest(
                f"{kind} {name!a}: expected Unicode normalization form C; write "
                f"{normalized!a}, as by unicodedata.normalize('NFC', name)"
            )
        return name
    raise InvalidRequest(
        f"{kind} {name!r}: expected a letter or _, then up to 127 letters, digits, _ . or -, and "
        f"at most {MAX_NAME_BYTES} bytes in UTF-8"
    )


def normalize_name(name: str) -> str:
    """Return a name in Unicode's normalization form C, in which all names are stored."""
    if not isinstance(name, str) or name.isascii():
        return name
    return unicodedata.normalize("NFC", name)


def _is_identifier(name: str) -> bool:
    """Return True for an identifier in any script, with . and - after its first character."""
    return (
        not name.startswith((".", "-"))
        and name.replace(".", "_").replace("-", "_").isidentifier()
        and len(name.encode()) <= MAX_NAME_BYTES
    )


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


FLAG_WORDS = {"yes": True, "on": True, "no": False, "off": False}
"""Words of YAML 1.1 for booleans, accepted where only a boolean is possible."""


def as_flag(label: str, value: Any) -> bool:
    """Return a boolean, which may be a word of YAML 1.1; raise InvalidRequest otherwise."""
    flag = FLAG_WORDS.get(value.lower()) if isinstance(value, str) else value
    if flag is None or flag not in (0, 1):
        raise InvalidRequest(f"{label}={value!r}: expected true or false")
    return bool(flag)


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
