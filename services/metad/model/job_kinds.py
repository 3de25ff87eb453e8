"""Kinds of jobs and their options. Pure module."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from asterism_io.remote_folder_addresses import parse_address
from asterism_io.remote_storage import redact
from asterism_model.indexes import KINDS as INDEX_KINDS
from asterism_proto.errors import InvalidRequest

JobOptions = tuple[tuple[str, str], ...]
"""(key, value) pairs sorted by key, so equal options are equal tuples."""

_FORMATS = ("csv", "parquet")
_MAX_VALUE_CHARS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOption:
    """One option of a job kind."""

    normalize: Callable[[str], str]
    """Function that returns the canonical form of a value; InvalidRequest for an invalid one."""
    default: str | None = None
    """Value if the option is not given; None leaves it out."""
    required: bool = False
    is_address: bool = False
    """True if the value is a folder's address.

    `metad.catalog_service` checks addresses against the allow-list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """Properties of a job kind."""

    name: str
    publishes: bool = False
    """True if the job ends with a new version. Its hosts keep their output until then."""
    reads_version: bool = False
    """True if the job reads one published version."""
    restores: bool = False
    """True if the job restores the version that its space waits for.

    Such a space accepts no other kind of job."""
    changes_indexes: bool = False
    """True if the job adds an index to those of the previous version, or removes one."""
    covers_parts: bool = False
    """True if its tasks report totals and an image digest for every partition."""
    options: Mapping[str, JobOption] = field(default_factory=dict)


def _normalize_format(value: str) -> str:
    formats = {name.strip() for name in value.split(",")}
    if not formats or not formats <= set(_FORMATS):
        raise InvalidRequest(f"option format={value!r}: expected 'parquet', 'csv' or 'csv,parquet'")
    return ",".join(sorted(formats))


def _address_option(key: str, *, required: bool = False) -> JobOption:
    """Return the option ``key`` for a folder's address, normalized to canonical form."""
    return JobOption(
        normalize=lambda value: str(parse_address(value, field=key)),
        required=required,
        is_address=True,
    )


def _normalize_sha256(value: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", value):
        raise InvalidRequest(f"option sha256={value[:80]!r}: expected 64 hexadecimal digits")
    return value


def _normalize_link(value: str) -> str:
    if value != "no":
        raise InvalidRequest(
            f"option link={value!r}: expected 'no', or no option: units with the same input are "
            "linked from served versions"
        )
    return value


def _normalize_name(value: str) -> str:
    if not value.strip() or len(value) > _MAX_VALUE_CHARS:
        raise InvalidRequest(f"option value {value[:80]!r}: expected a name")
    return value


def _normalize_index_kind(value: str) -> str:
    if value not in INDEX_KINDS:
        raise InvalidRequest(f"option kind={value!r}: expected {' or '.join(INDEX_KINDS)}")
    return value


def _normalize_drop(value: str) -> str:
    if value != "yes":
        raise InvalidRequest(
            f"option drop={value!r}: expected 'yes', or no option: the index is created"
        )
    return value


KINDS: Mapping[str, JobKind] = {
    kind.name: kind
    for kind in (
        JobKind(
            name="build",
            publishes=True,
            covers_parts=True,
            options={"link": JobOption(normalize=_normalize_link)},
        ),
        JobKind(
            name="index",
            publishes=True,
            covers_parts=True,
            changes_indexes=True,
            options={
                "type": JobOption(normalize=_normalize_name, required=True),
                "on": JobOption(normalize=_normalize_name, required=True),
                "kind": JobOption(normalize=_normalize_index_kind, required=True),
                "drop": JobOption(normalize=_normalize_drop),
                "link": JobOption(normalize=_normalize_link),
            },
        ),
        JobKind(name="audit", reads_version=True, covers_parts=True),
        JobKind(
            name="export-tables",
            reads_version=True,
            options={
                "format": JobOption(normalize=_normalize_format, default="parquet"),
                "to": _address_option("to"),
            },
        ),
        JobKind(name="compact"),
        JobKind(
            name="backup", reads_version=True, options={"to": _address_option("to", required=True)}
        ),
        JobKind(
            name="restore",
            publishes=True,
            restores=True,
            covers_parts=True,
            options={
                "from": _address_option("from", required=True),
                "sha256": JobOption(normalize=_normalize_sha256, required=True),
            },
        ),
    )
}


def find_kind(name: str) -> JobKind:
    """Return the kind of this name; InvalidRequest lists the existing ones."""
    if name not in KINDS:
        raise InvalidRequest(
            f"job kind {name!r}: expected {', '.join(list(KINDS)[:-1])} or {list(KINDS)[-1]}"
        )
    return KINDS[name]


def address_options(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a job that are addresses."""
    return {
        key: options[key]
        for key, option in find_kind(kind).options.items()
        if option.is_address and key in options
    }


def redacted_options(options: JobOptions) -> dict[str, str]:
    """Return options that are safe to show: without the secrets in addresses."""
    return {key: redact(value) for key, value in options}


def normalize_options(kind: JobKind, options: Mapping[str, str]) -> JobOptions:
    """Return ``options`` in the normalized form of a job, with defaults filled in.

    Raises
    ------
    InvalidRequest
        If a key is unknown, a value is invalid, or a required option is missing.
    """
    for key in options:
        if key not in kind.options:
            expected = (
                f"it accepts {', '.join(sorted(kind.options))}"
                if kind.options
                else "it accepts none"
            )
            raise InvalidRequest(f"option {key!r} of a job of kind {kind.name}: {expected}")
    normalized = {}
    for key, option in sorted(kind.options.items()):
        value = options.get(key, option.default)
        if value is None and option.required:
            raise InvalidRequest(
                f"option {key!r} is missing: a job of kind {kind.name} requires it"
            )
        if value is not None:
            normalized[key] = option.normalize(value)
    return tuple(normalized.items())
