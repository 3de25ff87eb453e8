"""Dispatch of a finished export's parts to machines, and their collection for reading.

`dispatch` copies each part to the address of its machine, as DGL's `dispatch_data.py` does. An
address is a template: ``{part}`` stands for a part's number, ``{host}`` for the machine that a file
of machines gives it. Every address gets the configuration and its own parts, in the places that the
configuration names, so that DGL loads them there; its ``manifest.json`` comes last.
`collect_export` presents a folder, an address or all addresses of a template as one folder."""

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

import numpy as np

from asterism.export.dgl_files import read_tensors, row_slices
from asterism.export.exported_graph import ExportedGraph
from asterism.export.graph_source import ProgressCallback
from asterism.export.lifecycle import MANIFEST, ExportTarget
from asterism_io.remote_storage import RemoteFolder, StoredFile, redact
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound

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
        manifest: Mapping[str, Any] = json.loads(source_folder.read(MANIFEST))
    except NotFound as error:
        raise NotFound(
            f"{source_folder.display_address}: no {MANIFEST}; expected a finished export"
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
            destination.put(MANIFEST, json.dumps(content, indent=2).encode() + b"\n")
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
        existing = json.loads(destination.read(MANIFEST))
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


_FORMAT = 1
_STEP = 1 << 18
_PER_DESTINATION_KEYS = ("dispatched", "files")
"""What is another in the manifest of each place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedExport:
    """An export that can be read."""

    display_name: str
    folder: Path
    lists_folder: Path
    """Where the lists of stored ids are, or can be made again."""
    manifest: Mapping[str, Any]
    parts: tuple[int, ...]
    """Those that are there."""
    damaged_files: tuple[str, ...]
    """What could not be brought there."""

    @property
    def is_complete(self) -> bool:
        """Whether all parts are there."""
        return len(self.parts) == int(self.manifest["parts"])


@contextmanager
def collect_export(
    out: str | Path, ip_config: str | Path | None = None
) -> Iterator[CollectedExport]:
    """What is at a folder or an address, or at those of a template.

    Raises
    ------
    InvalidRequest, NotFound, Corrupt
        An address does not fit; there is no export at one; they hold parts of different ones.
    """
    if not is_template(out):
        if ip_config is not None:
            raise InvalidRequest(
                f"{redact(str(out))}: expected {{host}} in it, for there is a file of "
                "machines (ip_config)"
            )
        targets = [ExportTarget.parse(out)]
    else:
        hosts = read_hosts(ip_config) if ip_config is not None else ()
        # How many parts there are is told where the first one is.
        first = ExportTarget.parse(part_addresses(str(out), len(hosts) or 1, hosts)[0])
        targets = [
            ExportTarget.parse(address)
            for address in dict.fromkeys(
                part_addresses(str(out), int(_manifest(first)["parts"]), hosts)
            )
        ]
    manifests = [_manifest(target) for target in targets]
    for target, manifest in zip(targets, manifests, strict=True):
        differing_keys = sorted(
            key
            for key in {*manifest, *manifests[0]} - {*_PER_DESTINATION_KEYS}
            if manifest.get(key) != manifests[0].get(key)
        )
        if differing_keys:
            raise Corrupt(
                f"{target.display_name} and {targets[0].display_name} hold parts of "
                f"different exports ({', '.join(differing_keys)}); dispatch one of them again"
            )
    parts = sorted(
        {
            part
            for manifest in manifests
            for part in manifest.get("dispatched", range(manifest["parts"]))
        }
    )
    manifest_of_all = {
        **manifests[0],
        "files": {
            path: file_record
            for manifest in manifests
            for path, file_record in manifest["files"].items()
        },
    }
    display_name = redact(str(out)) if is_template(out) else targets[0].display_name
    with tempfile.TemporaryDirectory(prefix="asterism-verify-") as temporary:
        folder, lists, damaged_files = Path(temporary) / "export", Path(temporary) / "lists", []
        if len(targets) == 1 and targets[0].path is not None:
            folder = targets[0].path
        else:
            for target, manifest in zip(targets, manifests, strict=True):
                damaged_files += (
                    _link_files(target.path, folder)
                    if target.path is not None
                    else _copy_files(target, manifest, folder)
                )
        dispatched = any("dispatched" in manifest for manifest in manifests)
        yield CollectedExport(
            display_name=display_name,
            folder=folder,
            lists_folder=lists if dispatched else folder,
            manifest=manifest_of_all,
            parts=tuple(parts),
            damaged_files=tuple(damaged_files),
        )


def _manifest(target: ExportTarget) -> dict[str, Any]:
    manifest = target.manifest()
    if manifest is None:
        raise NotFound(
            f"{target.display_name}: no {MANIFEST}: there is no export, or one that never "
            "became whole"
        )
    if manifest.get("format") != _FORMAT or "sums" not in manifest:
        raise NotFound(
            f"{target.display_name}/{MANIFEST}: not of an export for DGL of format "
            f"{_FORMAT}; another version of Asterism wrote it, export again"
        )
    return manifest


def _link_files(source: Path, folder: Path) -> list[str]:
    """Every file of a place by its name; the configuration of one place is that of all."""
    conflicts = []
    for path in sorted(source.rglob("*")):
        link = folder / path.relative_to(source)
        if not path.is_file():
            continue
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.symlink_to(path.absolute())
        elif link.name != MANIFEST and link.read_bytes() != path.read_bytes():
            conflicts.append(f"{path}: not what is elsewhere under that name")
    return conflicts


def _copy_files(target: ExportTarget, manifest: Mapping[str, Any], folder: Path) -> list[str]:
    """Copy the files of an address; give what could not be."""
    remote_folder, damaged_files = RemoteFolder(target.address, content_name="export"), []
    for path, file_record in manifest["files"].items():
        copy = folder / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            with copy.open("wb") as file:
                file.writelines(remote_folder.read_pieces(StoredFile(path=path, **file_record)))
        except Corrupt as error:
            damaged_files.append(error.message)
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return damaged_files


def rebuild_id_lists(export: ExportedGraph) -> None:
    """Make the lists of stored ids of all parts, which no machine has, from those that each part
    has.
    """
    for name, labels in (("n", export.ntypes), ("e", export.etypes)):
        original = [
            read_tensors(export.folder / f"part{part}/orig_{name}ids.dgl")
            for part in range(export.parts)
        ]
        for label in labels:
            path = export.lists_folder / f"{'node' if name == 'n' else 'edge'}_ids/{label}.npy"
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = sum(len(each[label]) for each in original)
            with path.open("wb") as file:
                np.lib.format.write_array_header_1_0(
                    file, {"descr": "<i8", "fortran_order": False, "shape": (rows,)}
                )
                for each in original:
                    for piece in row_slices(each[label], _STEP):
                        file.write(np.ascontiguousarray(piece).view(np.uint8).data)
