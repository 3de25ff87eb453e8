"""Share of one storaged in a backup or a restore, partition by partition.

A partition is either complete or absent. Partitions that an earlier attempt completed are kept; its
unfinished output is overwritten.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asterism_io.durable_files import make_folder, sync_folder, write_durably
from asterism_io.remote_storage import PIECE_BYTES, RemoteFolder, StoredFile
from asterism_model.backup_manifest import MANIFEST_FILE, BackupManifest, PartManifest, part_folder
from asterism_model.load_fingerprints import LoadFingerprint
from asterism_proto.errors import AsterismError, Corrupt, NotFound, Unavailable
from storaged.backup.blocks import decode_stream, encode_stream
from storaged.store.block_store import BlockStore, StoredValue
from storaged.store.checksums import MANIFEST
from storaged.store.huge_pages import reload_images
from storaged.store.image import open_part

TRANSFER_KINDS = ("backup", "restore")

ReportProgress = Callable[[str, int, int], None]
"""Called with (phase, rows done, rows in total); an exception it raises ends the transfer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """One transfer of partitions between this storaged and a backup folder."""

    kind: str
    parts: tuple[int, ...]
    remote: RemoteFolder
    """Folder of the backup."""
    sha256: str
    """sha256 of the backup's manifest that the restore began with."""
    version: int
    watermark: int
    """Commit watermark of the version."""
    digests: Mapping[int, str]
    """Digest of each partition's image, from the sealed manifest."""
    commits: Mapping[int, int]
    """Commit number of each load, up to the version's watermark."""
    store: BlockStore
    images: Path
    """Folder with the images of the version, such as ``p00003`` for partition 3."""
    report_progress: ReportProgress
    fingerprints: Sequence[LoadFingerprint] = ()
    """Fingerprints of the loads, from the catalog.

    Blocks are verified against them before a backup and after a restore.
    """

    def run(self) -> dict[str, Any]:
        """Run the transfer; return the result of the finished task."""
        return self._back_up() if self.kind == "backup" else self._restore()

    # -- backup ------------------------------------------------------------------------------------

    def _back_up(self) -> dict[str, Any]:
        remote = self.remote
        extents = {part: self.store.rows_and_bytes(part, self.commits) for part in self.parts}
        done, total = 0, sum(rows for rows, _ in extents.values())
        for part, (rows, size) in extents.items():
            self.store.verify(part, self.fingerprints)
            if not self._is_complete(remote, part):
                self._upload_part(remote, part, size, done, total)
            done += rows
            self.report_progress(f"part {part} is complete", done, total)
        return {"made": {"folder": remote.display_address}}

    def _is_complete(self, remote: RemoteFolder, part: int) -> bool:
        """Return whether an earlier attempt has completed a partition."""
        try:
            record = PartManifest.from_bytes(remote.read(f"{part_folder(part)}/part.json"))
        except (NotFound, Corrupt):
            return False
        same = (record.part, record.watermark, record.image) == (
            part,
            self.watermark,
            self.digests.get(part),
        )
        return same and all(remote.size(file.path) == file.bytes for file in record.files)

    def _upload_part(
        self, remote: RemoteFolder, part: int, size: int, done: int, total: int
    ) -> None:
        folder, image = part_folder(part), self.images / f"p{part:05d}"
        try:
            digest = hashlib.sha256((image / MANIFEST).read_bytes()).hexdigest()
        except FileNotFoundError as error:
            raise NotFound(
                f"part {part} of version {self.version} no longer exists; back up a newer version"
            ) from error
        if digest != self.digests.get(part):
            published_digest = self.digests.get(part)
            raise Corrupt(
                f"the image of part {part} has digest {digest}: expected {published_digest}, as "
                f"in version {self.version}"
            )
        open_part(image, verify=True)
        files = []
        for path in sorted(image.iterdir()):
            pieces = self._with_progress(_read_chunks(path), f"image of part {part}", done, total)
            files.append(
                remote.write(f"{folder}/image/{path.name}", pieces, expected=path.stat().st_size)
            )

        def stored_values() -> Iterator[StoredValue]:
            rows = done
            for stored in self.store.stored_values(part, self.commits):
                rows += self.store.value_rows(stored)
                self.report_progress(f"blocks of part {part}", rows, total)
                yield stored

        # The doubled size leaves a margin for heads and keys, which ``size`` does not include.
        files.append(
            remote.write(
                f"{folder}/blocks.bin",
                encode_stream(stored_values(), self.commits),
                expected=2 * size,
            )
        )
        record = PartManifest(part=part, watermark=self.watermark, image=digest, files=tuple(files))
        remote.put(f"{folder}/part.json", record.to_bytes())

    def _with_progress(
        self, pieces: Iterator[bytes], phase: str, done: int, total: int
    ) -> Iterator[bytes]:
        """Yield ``pieces`` and report each, so that a transfer may end between any two."""
        for piece in pieces:
            self.report_progress(phase, done, total)
            yield piece

    # -- restore -----------------------------------------------------------------------------------

    def _restore(self) -> dict[str, Any]:
        remote = self.remote
        content = remote.read(MANIFEST_FILE)
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise Corrupt(
                f"{remote.display_address}/{MANIFEST_FILE}: the record has changed since the "
                "restore began; start the restore again"
            )
        record = BackupManifest.from_bytes(content)
        loads = {commit: load for load, commit in self.commits.items()}
        for done, part in enumerate(self.parts):
            self.report_progress(f"image of part {part}", done, len(self.parts))
            self._download_image(remote, record, part, done)
            blocks = record.find_file(f"{part_folder(part)}/blocks.bin")
            pieces = self._with_progress(
                remote.read_pieces(blocks), f"blocks of part {part}", done, len(self.parts)
            )
            self.store.import_values(
                _with_file_name(
                    decode_stream(pieces, loads, part), f"{remote.display_address}/{blocks.path}"
                )
            )
            self.store.verify(part, self.fingerprints)
        reload_images([self.images / f"p{part:05d}" for part in self.parts])
        return {"images": [{"part": part, "digest": self.digests[part]} for part in self.parts]}

    def _download_image(
        self, remote: RemoteFolder, record: BackupManifest, part: int, done: int
    ) -> None:
        """Download the image of a partition, its manifest last; skip an intact one."""
        folder = self.images / f"p{part:05d}"
        try:
            if open_part(folder, verify=True).digest == self.digests[part]:
                return
        except AsterismError:
            pass  # An earlier attempt did not finish.
        if folder.is_symlink():
            raise Corrupt(f"{folder}: expected a folder of this storaged, found a symbolic link")
        make_folder(folder)
        (folder / MANIFEST).unlink(missing_ok=True)
        prefix = f"{part_folder(part)}/image/"
        files = {
            file.path.removeprefix(prefix): file
            for file in record.files_of_part(part)
            if file.path.startswith(prefix)
        }
        if MANIFEST not in files or any("/" in name for name in files):
            raise Corrupt(
                f"{remote.display_address}/{prefix}: the record has no complete image of part "
                f"{part}"
            )
        size, free = sum(file.bytes for file in files.values()), shutil.disk_usage(folder).free
        if size > free:
            raise Unavailable(
                f"{remote.display_address}/{prefix}: {size} bytes are needed, {free} are free "
                "here; free space and try again"
            )
        for name, file in files.items():
            if name != MANIFEST:
                self._download_file(remote, file, folder / name, done)
        sync_folder(folder)
        manifest = remote.read_file(files[MANIFEST])
        if hashlib.sha256(manifest).hexdigest() != self.digests[part]:
            raise Corrupt(
                f"{remote.display_address}/{prefix}{MANIFEST}: does not match the image of "
                f"version {self.version}; the backup is damaged"
            )
        write_durably(folder / MANIFEST, manifest)
        open_part(folder, verify=True)

    def _download_file(self, remote: RemoteFolder, file: StoredFile, path: Path, done: int) -> None:
        path.unlink(missing_ok=True)
        with path.open("xb") as target:  # "x" follows no symbolic link.
            for piece in self._with_progress(
                remote.read_pieces(file), f"image file {path.name}", done, len(self.parts)
            ):
                target.write(piece)
            target.flush()
            os.fsync(target.fileno())


def _with_file_name(values: Iterator[StoredValue], name: str) -> Iterator[StoredValue]:
    """Yield ``values``; add the file name to a Corrupt error."""
    try:
        yield from values
    except Corrupt as error:
        raise (
            error
            if name in error.message
            else Corrupt(f"{name}: {error.message}; the backup is damaged")
        ) from error


def _read_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece
