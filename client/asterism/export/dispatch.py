"""Bringing each part of a finished export to where its machine finds it, as DGL's
`dispatch_data.py` does.

An address is a template: ``{part}`` stands for a part's number, ``{host}`` for the machine that a
file of machines gives it. Every address gets the configuration and its own parts, in the places
that the configuration names, so that DGL loads them there; its ``manifest.json`` comes last."""

from __future__ import annotations

import hashlib
import json
import shutil
import string
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asterism.export.graph_source import ProgressCallback
from asterism_io.remote_storage import RemoteFolder, StoredFile, redact
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound

_MANIFEST = "manifest.json"
_FIELDS = ("part", "host")


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationReport:
    """What one address holds now."""

    address: str
    """Without secrets."""
    parts: tuple[int, ...]
    files: int
    bytes: int
    copied: bool
    """False where it was there already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchReport:
    """Where the parts of an export are."""

    places: tuple[DestinationReport, ...]
    warnings: tuple[str, ...]


def is_template(out: str | Path) -> bool:
    """Whether an address is one for each part or machine."""
    return any(f"{{{name}}}" in str(out) for name in _FIELDS)


def read_hosts(path: str | Path) -> tuple[str, ...]:
    """The machines of DGL's ``ip_config.txt``: one a line, with or without a port.

    Raises
    ------
    NotFound, InvalidRequest
        Where there is no such file; where a line is not of that kind, or names a machine again.
    """
    try:
        lines = Path(path).read_text().splitlines()
    except FileNotFoundError as error:
        raise NotFound(
            f"{path}: no such file; expected one machine a line, as DGL's ip_config.txt"
        ) from error
    hosts: list[str] = []
    for line_number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) > 2 or (len(fields) == 2 and not fields[1].isdigit()) or "/" in fields[0]:
            raise InvalidRequest(
                f"{path}, line {line_number}: {line.strip()[:60]!r}; expected a machine, and "
                "its port if any"
            )
        if fields[0] in hosts:
            raise InvalidRequest(
                f"{path}, line {line_number}: {fields[0]} is there twice; expected each "
                "machine once"
            )
        hosts.append(fields[0])
    if not hosts:
        raise InvalidRequest(f"{path}: no machines; expected one a line")
    return tuple(hosts)


def part_addresses(template: str, parts: int, hosts: Sequence[str] = ()) -> list[str]:
    """The address of each part: part p is for machine p modulo their number, as DGL's pipeline has
    it.

    Raises
    ------
    InvalidRequest
        Where the template has other fields, or no machines for its ``{host}``, or these can not
        have equally many parts.
    """
    try:
        fields = [
            (name, bool(spec or conversion))
            for _, name, spec, conversion in string.Formatter().parse(template)
            if name is not None
        ]
    except ValueError as error:
        raise InvalidRequest(
            f"address {redact(template)!r}: {error}; expected {{part}} and {{host}} in it"
        ) from error
    if not fields or any(name not in _FIELDS or formatted for name, formatted in fields):
        raise InvalidRequest(
            f"address {redact(template)!r}: expected {{part}} or {{host}} in it, and nothing "
            "else in braces"
        )
    uses_host = any(name == "host" for name, _ in fields)
    if uses_host != bool(hosts):
        requirement = (
            "a file of machines (ip_config) for its {host}"
            if uses_host
            else "{host} in it, for there is a file of machines (ip_config)"
        )
        raise InvalidRequest(f"address {redact(template)!r}: expected {requirement}")
    if hosts and parts % len(hosts):
        raise InvalidRequest(f"{parts} parts on {len(hosts)} machines: expected as many on each")
    return [
        template.format(part=part, host=hosts[part % len(hosts)] if hosts else "")
        for part in range(parts)
    ]


def dispatch(
    source: str | Path,
    to: str,
    *,
    ip_config: str | Path | None = None,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> DispatchReport:
    """Copy each part of a finished export to its address, and look at every byte on the way.

    Parameters
    ----------
    source : str or Path
        The folder or the address of the export.
    to : str
        An address as fsspec names it, or a path, with ``{part}``, ``{host}`` or both:
        ``"sftp://{host}/data/shop"``.
    ip_config : str or Path, optional
        DGL's file of machines, for ``{host}``.
    overwrite : bool
        Replace what another export left at an address. What this one left is kept in any case: said
        again, `dispatch` goes on.
    progress : callable, optional
        Called with (phase, files done, files).

    Returns
    -------
    DispatchReport

    Raises
    ------
    Conflict, Corrupt, InvalidRequest, NotFound, Unavailable
        Another export is at an address; the source is not what its manifest says; an option does
        not fit; there is no finished export; an address can not be written to.
    """
    source_folder = RemoteFolder(_absolute_place(source), content_name="export")
    try:
        manifest: Mapping[str, Any] = json.loads(source_folder.read(_MANIFEST))
    except NotFound as error:
        raise NotFound(
            f"{source_folder.display_address}: no {_MANIFEST}; expected a finished export"
        ) from error
    hosts = read_hosts(ip_config) if ip_config is not None else ()
    parts = int(manifest["parts"])
    parts_by_address: dict[str, list[int]] = {}
    for part, address in enumerate(part_addresses(to, parts, hosts)):
        parts_by_address.setdefault(address, []).append(part)
    manifests = {
        address: _destination_manifest(manifest, address_parts)
        for address, address_parts in parts_by_address.items()
    }
    total, done, reports = sum(len(content["files"]) for content in manifests.values()), 0, []
    for address, address_parts in parts_by_address.items():
        destination, content = (
            RemoteFolder(_absolute_place(address), content_name="export"),
            manifests[address],
        )
        copied = _needs_copy(destination, content, overwrite=overwrite)
        for name, file_record in content["files"].items() if copied else ():
            destination.write(
                name,
                _checked_pieces(source_folder, name, file_record),
                expected=file_record["bytes"],
            )
            done += 1
            if progress is not None:
                progress("files", done, total)
        if copied:
            destination.put(_MANIFEST, json.dumps(content, indent=2).encode() + b"\n")
        size = sum(file_record["bytes"] for file_record in content["files"].values())
        reports.append(
            DestinationReport(
                address=destination.display_address,
                parts=tuple(address_parts),
                files=len(content["files"]),
                bytes=size,
                copied=copied,
            )
        )
    warnings = (
        [f"{parts} parts on {len(hosts)} machines: DGL's launcher wants as many parts as machines"]
        if hosts and parts != len(hosts)
        else []
    )
    return DispatchReport(places=tuple(reports), warnings=tuple(warnings))


@contextmanager
def staging_folder(
    to: str, parts: int, *, ip_config: str | Path | None, scratch: str | Path | None, resume: bool
) -> Iterator[Path]:
    """A folder for the export that is then dispatched, if it can be; where it fails, kept for
    another try if that is to ``resume``.
    """
    part_addresses(to, parts, read_hosts(ip_config) if ip_config is not None else ())
    parent = Path(tempfile.gettempdir() if scratch is None else scratch)
    folder = (
        parent / f"asterism-dispatch-{hashlib.sha256(to.encode()).hexdigest()[:16]}"
    ).absolute()
    try:
        yield folder
    except BaseException:
        if not resume:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder)


def _absolute_place(location: str | Path) -> str:
    return str(location) if "://" in str(location) else str(Path(location).absolute())


def _destination_manifest(manifest: Mapping[str, Any], parts: Sequence[int]) -> dict[str, Any]:
    """The manifest of what goes to one address: the configuration, and the files of its parts."""
    kept_files = {
        name
        for name in manifest["files"]
        if name == manifest["config"] or name.split("/")[0] in {f"part{part}" for part in parts}
    }
    return {
        **manifest,
        "dispatched": list(parts),
        "files": {
            name: file_record
            for name, file_record in manifest["files"].items()
            if name in kept_files
        },
    }


def _needs_copy(destination: RemoteFolder, content: Mapping[str, Any], *, overwrite: bool) -> bool:
    """Whether the files are still to be brought there."""
    try:
        existing = json.loads(destination.read(_MANIFEST))
    except NotFound:
        return True
    except ValueError:
        existing = None
    if existing == content:
        return False
    if not overwrite:
        raise Conflict(
            f"{destination.display_address} holds another export; choose another address, or "
            "say overwrite"
        )
    return True


def _checked_pieces(
    source: RemoteFolder, name: str, file_record: Mapping[str, Any]
) -> Iterator[bytes]:
    try:
        yield from source.read_pieces(
            StoredFile(path=name, bytes=file_record["bytes"], sha256=file_record["sha256"])
        )
    except Corrupt as error:
        raise Corrupt(
            f"{source.display_address}/{name}: not the file that its manifest tells of; "
            "export again"
        ) from error
