"""A finished export in one folder, to be read: as it lies there, brought from an address, or put
together from where it was dispatched to.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from asterism.export.dgl_files import read_tensors, row_slices
from asterism.export.dispatch import is_template, part_addresses, read_hosts
from asterism.export.exported_graph import ExportedGraph
from asterism.export.publishing import MANIFEST, ExportTarget
from asterism_io.remote_storage import RemoteFolder, StoredFile, redact
from asterism_proto.errors import Corrupt, InvalidRequest, NotFound

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
