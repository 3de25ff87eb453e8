"""One storaged's share of a backup or a restore: its parts one after the other, each complete or not there.

A part that an earlier attempt finished is kept; whatever else that one left is overwritten.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asterism_proto.backups import RECORD, PartRecord, Record, part_folder
from asterism_proto.durable import make_folder, sync_folder, write_durably
from asterism_proto.errors import AsterismError, Corrupt, NotFound, Unavailable
from asterism_proto.fingerprints import LoadFingerprint
from asterism_proto.places import PIECE_BYTES, File, Place
from storaged.archive.blocks import packed, unpacked
from storaged.store.checked import MANIFEST
from storaged.store.graph import GraphStore, Kept
from storaged.store.image import open_part
from storaged.store.pages import settle_all

KINDS = ("backup", "restore")

Told = Callable[[str, int, int], None]
"""Told (phase, rows done, of how many); what it raises ends the transfer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """What is to be moved, and where it lies here."""

    kind: str
    parts: tuple[int, ...]
    place: Place
    """Where the backup lies."""
    sha256: str
    """Of the record that a restore began with."""
    version: int
    cut: int
    """The commit that the version shows."""
    digests: Mapping[int, str]
    """part -> digest of its image, by the sealed manifest."""
    commits: Mapping[int, int]
    """load -> its commit number, up to the version's cut."""
    store: GraphStore
    images: Path
    """The folder with the images of the version, ``p00003`` for part 3."""
    tell: Told
    fingerprints: Sequence[LoadFingerprint] = ()
    """Of the loads, as the catalog knows: nothing else leaves in a backup, nothing else stays of a restore."""

    def run(self) -> dict[str, Any]:
        """Do it; gives what a finished task reports."""
        return self._back_up() if self.kind == "backup" else self._restore()

    # -- out ------------------------------------------------------------------------------------------------------

    def _back_up(self) -> dict[str, Any]:
        place = self.place
        extents = {part: self.store.extent(part, self.commits) for part in self.parts}
        done, total = 0, sum(rows for rows, _ in extents.values())
        for part, (rows, size) in extents.items():
            self.store.verify(part, self.fingerprints)
            if not self._is_there(place, part):
                self._put_part(place, part, size, done, total)
            done += rows
            self.tell(f"part {part} is there", done, total)
        return {"made": {"folder": place.shown}}

    def _is_there(self, place: Place, part: int) -> bool:
        """Whether an earlier attempt has completed a part."""
        try:
            record = PartRecord.of(place.read(f"{part_folder(part)}/part.json"))
        except (NotFound, Corrupt):
            return False
        same = (record.part, record.cut, record.image) == (part, self.cut, self.digests.get(part))
        return same and all(place.size(file.path) == file.bytes for file in record.files)

    def _put_part(self, place: Place, part: int, size: int, done: int, total: int) -> None:
        folder, image = part_folder(part), self.images / f"p{part:05d}"
        try:
            digest = hashlib.sha256((image / MANIFEST).read_bytes()).hexdigest()
        except FileNotFoundError as error:
            raise NotFound(f"part {part} of version {self.version} is not here any more; back up a newer version") from error
        if digest != self.digests.get(part):
            sealed = self.digests.get(part)
            raise Corrupt(f"the image of part {part} has digest {digest}, version {self.version} was sealed with {sealed}")
        open_part(image, verify=True)
        files = []
        for path in sorted(image.iterdir()):
            pieces = self._told(_pieces(path), f"image of part {part}", done, total)
            files.append(place.write(f"{folder}/image/{path.name}", pieces, expected=path.stat().st_size))

        def counted() -> Iterator[Kept]:
            rows = done
            for kept in self.store.kept(part, self.commits):
                rows += self.store.rows_of(kept)
                self.tell(f"blocks of part {part}", rows, total)
                yield kept

        files.append(place.write(f"{folder}/blocks.bin", packed(counted(), self.commits), expected=2 * size))  # heads and keys are not counted
        record = PartRecord(part=part, cut=self.cut, image=digest, files=tuple(files))
        place.put(f"{folder}/part.json", record.to_bytes())

    def _told(self, pieces: Iterator[bytes], phase: str, done: int, total: int) -> Iterator[bytes]:
        """``pieces``; each is told of, so that a transfer may end between any two."""
        for piece in pieces:
            self.tell(phase, done, total)
            yield piece

    # -- in -------------------------------------------------------------------------------------------------------

    def _restore(self) -> dict[str, Any]:
        place = self.place
        content = place.read(RECORD)
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise Corrupt(f"{place.shown}/{RECORD}: it is not the record that the restore began with; restore anew")
        record = Record.of(content)
        loads = {commit: load for load, commit in self.commits.items()}
        for done, part in enumerate(self.parts):
            self.tell(f"image of part {part}", done, len(self.parts))
            self._take_image(place, record, part, done)
            blocks = record.file(f"{part_folder(part)}/blocks.bin")
            pieces = self._told(place.pieces(blocks), f"blocks of part {part}", done, len(self.parts))
            self.store.adopt(_named(unpacked(pieces, loads, part), f"{place.shown}/{blocks.path}"))
            self.store.verify(part, self.fingerprints)
        settle_all([self.images / f"p{part:05d}" for part in self.parts])
        return {"images": [{"part": part, "digest": self.digests[part]} for part in self.parts]}

    def _take_image(self, place: Place, record: Record, part: int, done: int) -> None:
        """Bring a part's image here, its manifest last; one that is here whole already is kept."""
        folder = self.images / f"p{part:05d}"
        try:
            if open_part(folder, verify=True).digest == self.digests[part]:
                return
        except AsterismError:
            pass  # an earlier attempt did not come to its end
        if folder.is_symlink():
            raise Corrupt(f"{folder}: a symbolic link; expected a folder of this storaged's own")
        make_folder(folder)
        (folder / MANIFEST).unlink(missing_ok=True)
        prefix = f"{part_folder(part)}/image/"
        files = {file.path.removeprefix(prefix): file for file in record.of_part(part) if file.path.startswith(prefix)}
        if MANIFEST not in files or any("/" in name for name in files):
            raise Corrupt(f"{place.shown}/{prefix}: the record has no whole image of part {part}")
        size, free = sum(file.bytes for file in files.values()), shutil.disk_usage(folder).free
        if size > free:
            raise Unavailable(f"{place.shown}/{prefix}: {size} bytes by its record, {free} are free here; free space and do it again")
        for name, file in files.items():
            if name != MANIFEST:
                self._take(place, file, folder / name, done)
        sync_folder(folder)
        manifest = place.whole(files[MANIFEST])
        if hashlib.sha256(manifest).hexdigest() != self.digests[part]:
            raise Corrupt(f"{place.shown}/{prefix}{MANIFEST}: not the image that version {self.version} was sealed with")
        write_durably(folder / MANIFEST, manifest)
        open_part(folder, verify=True)

    def _take(self, place: Place, file: File, path: Path, done: int) -> None:
        path.unlink(missing_ok=True)
        with path.open("xb") as target:  # "x" follows no symbolic link
            for piece in self._told(place.pieces(file), f"image file {path.name}", done, len(self.parts)):
                target.write(piece)
            target.flush()
            os.fsync(target.fileno())


def _named(values: Iterator[Kept], name: str) -> Iterator[Kept]:
    """``values``; Corrupt says in which file they are."""
    try:
        yield from values
    except Corrupt as error:
        raise error if name in error.message else Corrupt(f"{name}: {error.message}; the backup is damaged") from error


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece
