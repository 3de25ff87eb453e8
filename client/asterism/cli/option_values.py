"""Parsing of option values that contain lists or pairs."""

from __future__ import annotations

from collections.abc import Iterable

from asterism_proto.errors import InvalidRequest


def parse_integers(option: str, text: str, *, minimum: int) -> list[int]:
    """Return the integers of ``N[,N...]``."""
    try:
        integers = [int(item) for item in text.split(",")]
    except ValueError:
        integers = []
    if not integers or min(integers) < minimum:
        raise InvalidRequest(
            f"{option}={text!r}: expected integers of at least {minimum}, separated by commas; "
            "for example 10,5"
        )
    return integers


def parse_nodes(field: str, text: str) -> list[str]:
    """Return the nodes of ``NODE[,NODE...]``."""
    nodes = text.split(",")
    if not all(nodes):
        raise InvalidRequest(
            f"{field}={text!r}: expected nodes separated by commas; for example 17,23"
        )
    return nodes


def parse_step(text: str) -> list[str] | None:
    """Return the edge types of ``TYPE[,TYPE...]``, or None for ``*``, which selects all."""
    names = text.split(",")
    if not all(names):
        raise InvalidRequest(
            f"--step={text!r}: expected edge types separated by commas, or * for all; for example "
            "user:buys:item"
        )
    return None if names == ["*"] else names


def parse_assignments(
    option: str,
    texts: Iterable[str] | None,
    *,
    form: str,
    example: str,
    allow_empty: bool = False,
) -> dict[str, str]:
    """Return the names and values of ``NAME=VALUE``; values may be empty if allowed."""
    values = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals and (value or allow_empty)):
            raise InvalidRequest(f"{option}={text!r}: expected {form}; for example {example}")
        values[name] = value
    return values
