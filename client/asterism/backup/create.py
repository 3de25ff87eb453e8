"""Creation of backups: a job writes the partitions, then the client writes the manifest."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from asterism.calls.pins import pin_version
from asterism.catalog_client import CatalogClient
from asterism.client_state import seconds_left
from asterism.records.catalog import Job
from asterism_io.remote_storage import RemoteFolder, StoredFile, absolute_address
from asterism_model.backup_manifest import (
    CATALOG_FILE,
    MANIFEST_FILE,
    BackupManifest,
    PartManifest,
    part_folder,
)
from asterism_proto.errors import Conflict, Corrupt, NotFound, NotReady
from asterism_proto.v1 import metad_pb2 as metad_pb


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupInfo:
    """A complete backup."""

    space: str
    version: int
    digest: str
    address: str
    """Address without secrets."""
    sha256: str
    """SHA-256 of the manifest, in hexadecimal."""
    parts: int
    files: int
    bytes: int


def backup(
    client: CatalogClient,
    space: str,
    address: str | Path,
    *,
    version: int | None = None,
    timeout_s: float = 24 * 3600.0,
    on_progress: Callable[[Job], None] | None = None,
) -> BackupInfo:
    """Write a backup of a version to an address, with everything needed to build on it.

    Every storaged writes its own partitions. An interrupted backup resumes when the call is
    repeated: complete partitions are not written again. The manifest, ``backup.json``, is written
    last; without it, there is no backup.

    Parameters
    ----------
    client : Client
        Client of the service.
    space : str
        Name of the space.
    address : str or Path
        Folder that this process and every storaged can write to, such as ``"s3://bucket/folder"``.
        The service setting ``allowed_addresses`` must list it. A path is a folder on this machine.
    version : int, optional
        Version to back up. None: the current one.
    timeout_s : float, default 86400
        Maximum wait in seconds. The job keeps running after that, and another call finds it.
    on_progress : callable, optional
        Called with the job at every poll.

    Returns
    -------
    BackupInfo
        The complete backup.

    Raises
    ------
    InvalidRequest
        If the service does not allow the address.
    NotFound
        If there is no such space or version.
    Conflict
        If the address holds another backup.
    NotReady
        If the job fails or is stopped; the message has the cause.
    Deadline
        If the job has not ended in time.

    Examples
    --------
    >>> backup(client, "shop", "/srv/backups/shop").files  # doctest: +SKIP
    225
    """
    deadline = time.monotonic() + timeout_s
    folder = RemoteFolder(absolute_address(address), confined=True)
    entry = client.session.catalog(
        "export_space", metad_pb.ExportSpaceRequest(space=space, version=version or 0)
    )
    manifest = entry.manifest
    existing = _existing_record(folder)
    if existing is not None:
        if existing[0].digest == manifest.digest:
            return _backup_info(folder, *existing)
        raise Conflict(
            f"address={folder.display_address}: expected a folder without a backup, it has one of "
            f"version {existing[0].version} of {existing[0].space!r}; pass another address"
        )
    with pin_version(client.session, space, manifest.version, owner="backup"):
        job = client.submit_job(
            space, "backup", options={"to": absolute_address(address)}, version=manifest.version
        )
        job = client.wait(job.job_id, timeout_s=seconds_left(deadline), on_progress=on_progress)
    if job.state != "FINISHED":
        cause = job.cause or "no cause given"
        raise NotReady(
            f"backup of space {space!r}: job {job.job_id} ended as {job.state}: {cause}; repeat "
            "the call to continue it"
        )
    files = [folder.put(CATALOG_FILE, entry.SerializeToString(deterministic=True))]
    images = {image.part: image.digest for image in manifest.images}
    for part in sorted(images):
        files += _part_files(folder, part, images[part])
    record = BackupManifest(
        space=space,
        version=manifest.version,
        digest=manifest.digest,
        watermark=manifest.watermark,
        parts=len(images),
        created_ms=time.time_ns() // 1_000_000,
        files=tuple(files),
    )
    content = record.to_bytes()
    folder.put(MANIFEST_FILE, content)
    return _backup_info(folder, record, hashlib.sha256(content).hexdigest())


def _existing_record(folder: RemoteFolder) -> tuple[BackupManifest, str] | None:
    """Return the manifest at an address and its digest; None if there is none."""
    try:
        content = folder.read(MANIFEST_FILE)
    except NotFound:
        return None
    return BackupManifest.from_bytes(content), hashlib.sha256(content).hexdigest()


def _part_files(folder: RemoteFolder, part: int, image: str) -> list[StoredFile]:
    """Return the files of a partition from the manifest that its storaged wrote."""
    path = f"{part_folder(part)}/part.json"
    try:
        content = folder.read(path)
    except NotFound as error:
        raise NotReady(
            f"{folder.display_address}/{path}: no such file, although a storaged has written it; "
            "pass an address that this process and the storageds share"
        ) from error
    record = PartManifest.from_bytes(content)
    if (record.part, record.image) != (part, image):
        raise Corrupt(
            f"{folder.display_address}/{path}: expected image {image} of partition {part}, found "
            f"image {record.image} of partition {record.part}; repeat the backup at another address"
        )
    return [
        *record.files,
        StoredFile(path=path, bytes=len(content), sha256=hashlib.sha256(content).hexdigest()),
    ]


def _backup_info(folder: RemoteFolder, record: BackupManifest, sha256: str) -> BackupInfo:
    return BackupInfo(
        space=record.space,
        version=record.version,
        digest=record.digest,
        address=folder.display_address,
        sha256=sha256,
        parts=record.parts,
        files=len(record.files),
        bytes=sum(file.bytes for file in record.files),
    )
