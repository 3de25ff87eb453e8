"""The kinds of jobs that there are, and what may be asked of each; a quiet room."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from asterism_proto.errors import InvalidRequest

Options = tuple[tuple[str, str], ...]
"""Keys and values, by key: equal options are equal tuples."""

_FORMATS = ("csv", "parquet")
_LONGEST_VALUE = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One key that a kind understands."""

    settled: Callable[[str], str]
    """The value as it is kept: equal wishes are equal values. InvalidRequest for one that makes no sense."""
    default: str | None = None
    """Where it is not given; None: it is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a job of this kind is."""

    name: str
    publishes: bool = False
    """It ends with a new version; its hosts hold their output until then."""
    reads_version: bool = False
    """It is about one published version."""
    covers_parts: bool = False
    """Its tasks report totals and the digest of an image for every part."""
    options: Mapping[str, Option] = field(default_factory=dict)


def _format(value: str) -> str:
    wanted = {word.strip() for word in value.split(",")}
    if not wanted or not wanted <= set(_FORMATS):
        raise InvalidRequest(f"option format={value!r}: expected 'parquet', 'csv' or 'csv,parquet'")
    return ",".join(sorted(wanted))


def _address(value: str) -> str:
    protocol, separator, path = value.partition("://")
    if not (separator and protocol.replace("+", "").isalnum() and path.strip("/")) or len(value) > _LONGEST_VALUE or not value.isprintable():
        raise InvalidRequest(f"option to={value[:_LONGEST_VALUE]!r}: expected a folder's address with its protocol, as 's3://bucket/folder'")
    return value.rstrip("/")


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(name="build", publishes=True, covers_parts=True),
        Kind(name="audit", reads_version=True, covers_parts=True),
        Kind(
            name="export-tables", reads_version=True, options={"format": Option(settled=_format, default="parquet"), "to": Option(settled=_address)}
        ),
        Kind(name="compact"),
    )
}


def kind_of(name: str) -> Kind:
    """The kind of this name; InvalidRequest says which there are."""
    if name not in KINDS:
        raise InvalidRequest(f"job kind {name!r}: expected {', '.join(list(KINDS)[:-1])} or {list(KINDS)[-1]}")
    return KINDS[name]


def settled(kind: Kind, options: Mapping[str, str]) -> Options:
    """``options`` as a job of ``kind`` keeps them, defaults filled in; InvalidRequest for a key or value that it does not know."""
    for key in options:
        if key not in kind.options:
            known = f"it knows {', '.join(sorted(kind.options))}" if kind.options else "it takes none"
            raise InvalidRequest(f"option {key!r} of a job of kind {kind.name}: {known}")
    found = {}
    for key, option in sorted(kind.options.items()):
        value = options.get(key, option.default)
        if value is not None:
            found[key] = option.settled(value)
    return tuple(found.items())
