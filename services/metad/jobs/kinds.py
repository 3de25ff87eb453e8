"""The kinds of jobs that there are, and what may be asked of each; a quiet room."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from asterism_proto.addresses import parse_address
from asterism_proto.errors import InvalidRequest
from asterism_proto.indexes import KINDS as INDEX_KINDS
from asterism_proto.places import redacted

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
    required: bool = False
    address: bool = False
    """It is a folder's address, which storageds open: `metad.service` holds it against the allow-list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a job of this kind is."""

    name: str
    publishes: bool = False
    """It ends with a new version; its hosts hold their output until then."""
    reads_version: bool = False
    """It is about one published version."""
    restores: bool = False
    """It brings the version back that its space waits for, and no other kind is for such a space."""
    indexes: bool = False
    """It adds an index to what the version before has, or takes one away."""
    covers_parts: bool = False
    """Its tasks report totals and the digest of an image for every part."""
    options: Mapping[str, Option] = field(default_factory=dict)


def _format(value: str) -> str:
    wanted = {word.strip() for word in value.split(",")}
    if not wanted or not wanted <= set(_FORMATS):
        raise InvalidRequest(f"option format={value!r}: expected 'parquet', 'csv' or 'csv,parquet'")
    return ",".join(sorted(wanted))


def _address(key: str, *, required: bool = False) -> Option:
    """Return the option ``key`` for a folder's address, which is kept in canonical form."""
    return Option(settled=lambda value: str(parse_address(value, field=key)), required=required, address=True)


def _sha256(value: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", value):
        raise InvalidRequest(f"option sha256={value[:80]!r}: expected 64 hexadecimal digits")
    return value


def _link(value: str) -> str:
    if value != "no":
        raise InvalidRequest(f"option link={value!r}: expected 'no', or none: units of the same input are linked from versions that are served")
    return value


def _word(value: str) -> str:
    if not value.strip() or len(value) > _LONGEST_VALUE:
        raise InvalidRequest(f"option value {value[:80]!r}: expected a name")
    return value


def _index_kind(value: str) -> str:
    if value not in INDEX_KINDS:
        raise InvalidRequest(f"option kind={value!r}: expected {' or '.join(INDEX_KINDS)}")
    return value


def _drop(value: str) -> str:
    if value != "yes":
        raise InvalidRequest(f"option drop={value!r}: expected 'yes', or none: the index is made")
    return value


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(name="build", publishes=True, covers_parts=True, options={"link": Option(settled=_link)}),
        Kind(
            name="index",
            publishes=True,
            covers_parts=True,
            indexes=True,
            options={
                "type": Option(settled=_word, required=True),
                "on": Option(settled=_word, required=True),
                "kind": Option(settled=_index_kind, required=True),
                "drop": Option(settled=_drop),
                "link": Option(settled=_link),
            },
        ),
        Kind(name="audit", reads_version=True, covers_parts=True),
        Kind(name="export-tables", reads_version=True, options={"format": Option(settled=_format, default="parquet"), "to": _address("to")}),
        Kind(name="compact"),
        Kind(name="backup", reads_version=True, options={"to": _address("to", required=True)}),
        Kind(
            name="restore",
            publishes=True,
            restores=True,
            covers_parts=True,
            options={"from": _address("from", required=True), "sha256": Option(settled=_sha256, required=True)},
        ),
    )
}


def kind_of(name: str) -> Kind:
    """The kind of this name; InvalidRequest says which there are."""
    if name not in KINDS:
        raise InvalidRequest(f"job kind {name!r}: expected {', '.join(list(KINDS)[:-1])} or {list(KINDS)[-1]}")
    return KINDS[name]


def addresses(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a job that are addresses."""
    return {key: options[key] for key, option in kind_of(kind).options.items() if option.address and key in options}


def shown(options: Options) -> dict[str, str]:
    """Options as anybody may see them: without the secrets of addresses."""
    return {key: redacted(value) for key, value in options}


def settled(kind: Kind, options: Mapping[str, str]) -> Options:
    """``options`` as a job of ``kind`` keeps them, defaults filled in; InvalidRequest for a key or value that it does not know."""
    for key in options:
        if key not in kind.options:
            known = f"it knows {', '.join(sorted(kind.options))}" if kind.options else "it takes none"
            raise InvalidRequest(f"option {key!r} of a job of kind {kind.name}: {known}")
    found = {}
    for key, option in sorted(kind.options.items()):
        value = options.get(key, option.default)
        if value is None and option.required:
            raise InvalidRequest(f"option {key!r} is missing: a job of kind {kind.name} needs it")
        if value is not None:
            found[key] = option.settled(value)
    return tuple(found.items())
