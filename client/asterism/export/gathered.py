"""A finished export in one folder, to be read: as it lies there, brought from an address, or put together from where it was dispatched to."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from asterism.export.dgl_files import read_tensors, sliced
from asterism.export.dispatch import addresses, is_template, read_hosts
from asterism.export.held import Held
from asterism.export.seal import MANIFEST, Target
from asterism_proto.errors import Corrupt, InvalidRequest, NotFound
from asterism_proto.places import File, Place, redacted

_FORMAT = 1
_STEP = 1 << 18
_OF_A_PLACE = ("dispatched", "files")
"""What is another in the manifest of each place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """An export that can be read."""

    shown: str
    folder: Path
    lists: Path
    """Where the lists of stored ids are, or can be made again."""
    manifest: Mapping[str, Any]
    parts: tuple[int, ...]
    """Those that are there."""
    damaged: tuple[str, ...]
    """What could not be brought there."""

    @property
    def whole(self) -> bool:
        """Whether all parts are there."""
        return len(self.parts) == int(self.manifest["parts"])


@contextmanager
def gathered(out: str | Path, ip_config: str | Path | None = None) -> Iterator[Gathered]:
    """What is at a folder or an address, or at those of a template.

    Raises
    ------
    InvalidRequest, NotFound, Corrupt
        An address does not fit; there is no export at one; they hold parts of different ones.
    """
    if not is_template(out):
        if ip_config is not None:
            raise InvalidRequest(f"{redacted(str(out))}: expected {{host}} in it, for there is a file of machines (ip_config)")
        targets = [Target.of(out)]
    else:
        hosts = read_hosts(ip_config) if ip_config is not None else ()
        # How many parts there are is told where the first one is.
        first = Target.of(addresses(str(out), len(hosts) or 1, hosts)[0])
        targets = [Target.of(address) for address in dict.fromkeys(addresses(str(out), int(_manifest(first)["parts"]), hosts))]
    manifests = [_manifest(target) for target in targets]
    for target, manifest in zip(targets, manifests, strict=True):
        other = sorted(key for key in {*manifest, *manifests[0]} - {*_OF_A_PLACE} if manifest.get(key) != manifests[0].get(key))
        if other:
            raise Corrupt(f"{target.shown} and {targets[0].shown} hold parts of different exports ({', '.join(other)}); dispatch one of them again")
    parts = sorted({part for manifest in manifests for part in manifest.get("dispatched", range(manifest["parts"]))})
    whole = {**manifests[0], "files": {path: told for manifest in manifests for path, told in manifest["files"].items()}}
    shown = redacted(str(out)) if is_template(out) else targets[0].shown
    with tempfile.TemporaryDirectory(prefix="asterism-verify-") as temporary:
        folder, lists, damaged = Path(temporary) / "export", Path(temporary) / "lists", []
        if len(targets) == 1 and targets[0].path is not None:
            folder = targets[0].path
        else:
            for target, manifest in zip(targets, manifests, strict=True):
                damaged += _linked(target.path, folder) if target.path is not None else _brought(target, manifest, folder)
        dispatched = any("dispatched" in manifest for manifest in manifests)
        yield Gathered(shown=shown, folder=folder, lists=lists if dispatched else folder, manifest=whole, parts=tuple(parts), damaged=tuple(damaged))


def _manifest(target: Target) -> dict[str, Any]:
    manifest = target.manifest()
    if manifest is None:
        raise NotFound(f"{target.shown}: no {MANIFEST}: there is no export, or one that never became whole")
    if manifest.get("format") != _FORMAT or "sums" not in manifest:
        raise NotFound(f"{target.shown}/{MANIFEST}: not of an export for DGL of format {_FORMAT}; another version of Asterism wrote it, export again")
    return manifest


def _linked(source: Path, folder: Path) -> list[str]:
    """Every file of a place by its name; the configuration of one place is that of all."""
    other = []
    for path in sorted(source.rglob("*")):
        link = folder / path.relative_to(source)
        if not path.is_file():
            continue
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.symlink_to(path.absolute())
        elif link.name != MANIFEST and link.read_bytes() != path.read_bytes():
            other.append(f"{path}: not what is elsewhere under that name")
    return other


def _brought(target: Target, manifest: Mapping[str, Any], folder: Path) -> list[str]:
    """Copy the files of an address; give what could not be."""
    place, damaged = Place(target.address, what="export"), []
    for path, told in manifest["files"].items():
        copy = folder / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            with copy.open("wb") as file:
                file.writelines(place.pieces(File(path=path, **told)))
        except Corrupt as error:
            damaged.append(error.message)
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return damaged


def list_again(held: Held) -> None:
    """Make the lists of stored ids of all parts, which no machine has, from those that each part has."""
    for name, labels in (("n", held.ntypes), ("e", held.etypes)):
        original = [read_tensors(held.folder / f"part{part}/orig_{name}ids.dgl") for part in range(held.parts)]
        for label in labels:
            path = held.lists / f"{'node' if name == 'n' else 'edge'}_ids/{label}.npy"
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = sum(len(each[label]) for each in original)
            with path.open("wb") as file:
                np.lib.format.write_array_header_1_0(file, {"descr": "<i8", "fortran_order": False, "shape": (rows,)})
                for each in original:
                    for piece in sliced(each[label], _STEP):
                        file.write(np.ascontiguousarray(piece).view(np.uint8).data)
