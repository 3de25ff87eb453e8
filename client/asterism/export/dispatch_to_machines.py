"""Copying of an export's partitions to machines, and collecting them for reading.

`dispatch` copies each partition to the address of its machine, as DGL's `dispatch_data.py` does. An
address is a template: ``{part}`` stands for the partition number, ``{host}`` for its machine in a
file of machines. Every address gets the configuration and its own partitions at the paths that the
configuration names, so that DGL can load them there; its ``manifest.json`` is written last.
`collect_export` presents a folder, an address or all addresses of a template as one folder.
"""

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

from asterism.export.dgl_tensor_files import read_tensors, row_slices
from asterism.export.export_reader import ExportedGraph
from asterism.export.graph_source import ProgressCallback
from asterism.export.lifecycle import MANIFEST, ExportTarget
from asterism.local_paths import local_path
from asterism_io.remote_storage import RemoteFolder, StoredFile, redact
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound

_FIELDS = ("part", "host")


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationReport:
    """Content of one destination address."""

    address: str
    """Address without secrets."""
    parts: tuple[int, ...]
    """Partitions at the address."""
    files: int
    """Number of files, without the manifest."""
    bytes: int
    """Total size of these files in bytes."""
    copied: bool
    """False if the files were already there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchReport:
    """Result of `dispatch`: the destinations of an export's partitions."""

    places: tuple[DestinationReport, ...]
    """Destinations in the order of their first partition."""
    warnings: tuple[str, ...]
    """Problems that DGL's launcher will have."""


def is_template(out: str | Path) -> bool:
    """Return True if an address has a ``{part}`` or ``{host}`` field."""
    return any(f"{{{name}}}" in str(out) for name in _FIELDS)


def read_hosts(path: str | Path) -> tuple[str, ...]:
    """Read the machines of DGL's ``ip_config.txt``: one per line, optionally with a port.

    Parameters
    ----------
    path : str or Path
        File of machines.

    Returns
    -------
    tuple of str
        Machines in the order of the file, without ports.

    Raises
    ------
    NotFound
        The file does not exist.
    InvalidRequest
        A line is malformed or repeats a machine, or there are no machines.
    """
    try:
        lines = local_path("ip_config", path, kind="file").read_text().splitlines()
    except FileNotFoundError as error:
        raise NotFound(
            f"{path}: no such file; expected one machine on each line, as in DGL's ip_config.txt"
        ) from error
    except (OSError, ValueError) as error:
        raise InvalidRequest(
            f"ip_config={str(path)!r:.200}: expected a readable text file with one machine on each "
            f"line ({error})"
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
                f"{path}, line {line_number}: {fields[0]} is listed twice; expected each "
                "machine once"
            )
        hosts.append(fields[0])
    if not hosts:
        raise InvalidRequest(f"{path}: expected one machine on each line, found none")
    return tuple(hosts)


def part_addresses(template: str, parts: int, hosts: Sequence[str] = ()) -> list[str]:
    """Return the address of each partition.

    Partition p goes to machine p modulo the number of machines, as in DGL's pipeline.

    Raises
    ------
    InvalidRequest
        The template has other fields, or only one of ``{host}`` and machines is given, or the
        partitions cannot be spread evenly over the machines.
    """
    try:
        fields = [
            (name, bool(spec or conversion))
            for _, name, spec, conversion in string.Formatter().parse(template)
            if name is not None
        ]
    except ValueError as error:
        raise InvalidRequest(
            f"address={redact(template)!r}: expected {{part}} and {{host}} in it ({error})"
        ) from error
    if not fields or any(name not in _FIELDS or formatted for name, formatted in fields):
        raise InvalidRequest(
            f"address={redact(template)!r}: expected {{part}} or {{host}} in it, and nothing "
            "else in braces"
        )
    uses_host = any(name == "host" for name, _ in fields)
    if uses_host != bool(hosts):
        requirement = (
            "a file of machines (ip_config) for its {host}"
            if uses_host
            else "{host} in it, for there is a file of machines (ip_config)"
        )
        raise InvalidRequest(f"address={redact(template)!r}: expected {requirement}")
    if hosts and parts % len(hosts):
        raise InvalidRequest(
            f"{parts} parts on {len(hosts)} machines: expected equally many on each"
        )
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
    """Copy each partition of a finished export to its address, and verify every byte read.

    Parameters
    ----------
    source : str or Path
        Folder or address of the export.
    to : str
        Template of an address as fsspec names it, or of a path, with ``{part}``, ``{host}`` or
        both, such as ``"sftp://{host}/data/shop"``.
    ip_config : str or Path, optional
        DGL's file of machines, for ``{host}``.
    overwrite : bool, default False
        Replace another export at an address. Files of the same export are kept in any case, so a
        repeated call continues an interrupted dispatch.
    progress : callable, optional
        Called with (phase, files done, total files).

    Returns
    -------
    DispatchReport

    Raises
    ------
    Conflict
        An address holds another export.
    Corrupt
        A source file does not match the manifest.
    InvalidRequest
        An option is invalid.
    NotFound
        There is no finished export at ``source``.
    Unavailable
        An address cannot be written.

    Examples
    --------
    >>> to = "sftp://{host}/data/shop"  # doctest: +SKIP
    >>> export.dispatch("partitions", to, ip_config="ip_config.txt")  # doctest: +SKIP
    """
    source_folder = RemoteFolder(_absolute_place("source", source), content_name="export")
    try:
        manifest: Mapping[str, Any] = json.loads(source_folder.read(MANIFEST))
    except NotFound as error:
        raise NotFound(
            f"{source_folder.display_address}: no {MANIFEST}; expected a finished export"
        ) from error
    hosts = read_hosts(ip_config) if ip_config is not None else ()
    parts = int(manifest["parts"])
    parts_by_address: dict[str, list[int]] = {}
    for part, address in enumerate(part_addresses(str(to), parts, hosts)):
        parts_by_address.setdefault(address, []).append(part)
    manifests = {
        address: _destination_manifest(manifest, address_parts)
        for address, address_parts in parts_by_address.items()
    }
    total, done, reports = sum(len(content["files"]) for content in manifests.values()), 0, []
    for address, address_parts in parts_by_address.items():
        destination, content = (
            RemoteFolder(_absolute_place("address", address), content_name="export"),
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
    """Provide a folder for an export that is then dispatched, after validating the template.

    On success the folder is removed. On failure it is kept only if ``resume`` is set.
    """
    part_addresses(to, parts, read_hosts(ip_config) if ip_config is not None else ())
    parent = local_path("scratch", tempfile.gettempdir() if scratch is None else scratch)
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


def _absolute_place(argument: str, location: str | Path) -> str:
    text = str(location)
    return text if "://" in text else str(local_path(argument, location).absolute())


def _destination_manifest(manifest: Mapping[str, Any], parts: Sequence[int]) -> dict[str, Any]:
    """Return the manifest of one address: the configuration, and the files of its partitions."""
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
    """Return True if the files still have to be copied to the destination."""
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
            f"address={destination.display_address}: expected a folder without another export; "
            "pass another address, or overwrite=True"
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
            f"{source.display_address}/{name}: expected the file that the manifest describes; "
            "export again"
        ) from error


_FORMAT = 1
_STEP = 1 << 18
_PER_DESTINATION_KEYS = ("dispatched", "files")
"""Keys of the manifest that differ between destinations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedExport:
    """Finished export, presented as one local folder."""

    display_name: str
    folder: Path
    lists_folder: Path
    """Folder with the lists of stored ids, or in which they can be rebuilt."""
    manifest: Mapping[str, Any]
    parts: tuple[int, ...]
    """Partitions that are present."""
    damaged_files: tuple[str, ...]
    """Files that could not be copied, with the reason."""

    @property
    def is_complete(self) -> bool:
        """True if all partitions are present."""
        return len(self.parts) == int(self.manifest["parts"])


@contextmanager
def collect_export(
    out: str | Path, ip_config: str | Path | None = None
) -> Iterator[CollectedExport]:
    """Provide the export at a folder, an address or all addresses of a template.

    Parameters
    ----------
    out : str or Path
        Folder, address or template.
    ip_config : str or Path, optional
        DGL's file of machines, for ``{host}``.

    Yields
    ------
    CollectedExport
        Its folders are valid until the context ends. Remote files are copied to a temporary one.

    Raises
    ------
    InvalidRequest
        An address is invalid.
    NotFound
        There is no export at an address.
    Corrupt
        The addresses hold partitions of different exports.
    """
    if not is_template(out):
        if ip_config is not None:
            raise InvalidRequest(
                f"out={redact(str(out))!r}: expected {{host}} in it, because there is a file of "
                "machines (ip_config)"
            )
        targets = [ExportTarget.parse(out)]
    else:
        hosts = read_hosts(ip_config) if ip_config is not None else ()
        # The number of partitions is in the manifest at the first address.
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
        raise NotFound(f"{target.display_name}: no {MANIFEST}; expected a finished export")
    if manifest.get("format") != _FORMAT or "sums" not in manifest:
        raise NotFound(
            f"{target.display_name}/{MANIFEST}: expected an export for DGL of format {_FORMAT}; "
            "another release of Asterism wrote it, export again"
        )
    return manifest


def _link_files(source: Path, folder: Path) -> list[str]:
    """Link every file of a source into the folder; return files that conflict with others."""
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
    """Copy the files of an address, and return the errors of those that could not be copied."""
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
    """Rebuild the lists of stored ids of all partitions from the lists of each.

    A dispatched export has no machine with the complete lists.
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
