"""Taking a backup: a job writes the parts, then the client writes the record that makes them one."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from asterism.backup.address import full
from asterism.catalog import Job
from asterism.session import left
from asterism_proto.backups import CATALOG, RECORD, PartRecord, Record, part_folder
from asterism_proto.errors import Conflict, Corrupt, NotFound, NotReady
from asterism_proto.places import File, Place
from asterism_proto.v1 import metad_pb2 as meta

if TYPE_CHECKING:
    from asterism.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupInfo:
    """A backup that is whole."""

    space: str
    version: int
    digest: str
    address: str
    """Without secrets."""
    sha256: str
    """Of its record."""
    parts: int
    files: int
    bytes: int


def backup(
    client: Client,
    space: str,
    address: str | Path,
    *,
    version: int | None = None,
    timeout_s: float = 24 * 3600.0,
    on_progress: Callable[[Job], None] | None = None,
) -> BackupInfo:
    """Keep a version of a space, with all that is needed to build on from it, at an address.

    Every storaged writes its own parts there. A backup that was cut off goes on when it is asked for again: parts that are
    complete are not written twice. Without its record, ``backup.json``, which is written last, it is none.

    Parameters
    ----------
    client : Client
        Of the service.
    space : str
        The space.
    address : str or Path
        A folder that this process and every storaged can write to, as ``"s3://bucket/folder"``, and that the setting
        ``allowed_addresses`` of the service lists; a path is a folder of this machine's.
    version : int, optional
        None: the current one.
    timeout_s : float
        Seconds to wait at most; the job goes on past them, and another call finds it.
    on_progress : callable, optional
        Called with the job at every look.

    Raises
    ------
    InvalidRequest
        Where the service does not allow the address.
    Conflict
        Where the address holds another backup.
    NotReady
        Where the job failed or was stopped; the message has the cause.
    """
    until = time.monotonic() + timeout_s
    place = Place(full(address), confined=True)
    entry = client.session.catalog("export_space", meta.ExportSpaceRequest(space=space, version=version or 0))
    manifest = entry.manifest
    done = _taken(place)
    if done is not None:
        if done[0].digest == manifest.digest:
            return _info(place, *done)
        raise Conflict(f"{place.shown} holds a backup of version {done[0].version} of {done[0].space!r}; give another address")
    with client.graph(space).pin(manifest.version, owner="backup"):
        job = client.submit_job(space, "backup", options={"to": full(address)}, version=manifest.version)
        job = client.wait(job.job_id, timeout_s=left(until), on_progress=on_progress)
    if job.state != "FINISHED":
        cause = job.cause or "no cause given"
        raise NotReady(f"backup of space {space!r}: job {job.job_id} ended as {job.state}: {cause}; the same call goes on with it")
    files = [place.put(CATALOG, entry.SerializeToString(deterministic=True))]
    images = {image.part: image.digest for image in manifest.images}
    for part in sorted(images):
        files += _part(place, part, images[part])
    record = Record(
        space=space,
        version=manifest.version,
        digest=manifest.digest,
        cut=manifest.cut,
        parts=len(images),
        created_ms=time.time_ns() // 1_000_000,
        files=tuple(files),
    )
    content = record.to_bytes()
    place.put(RECORD, content)
    return _info(place, record, hashlib.sha256(content).hexdigest())


def _taken(place: Place) -> tuple[Record, str] | None:
    """The record at an address with its digest, where there is one."""
    try:
        content = place.read(RECORD)
    except NotFound:
        return None
    return Record.of(content), hashlib.sha256(content).hexdigest()


def _part(place: Place, part: int, image: str) -> list[File]:
    """What a storaged says that it wrote of a part."""
    path = f"{part_folder(part)}/part.json"
    try:
        content = place.read(path)
    except NotFound as error:
        raise NotReady(f"{place.shown}/{path}: not there, though its storaged has written it; can this process see what storageds write?") from error
    record = PartRecord.of(content)
    if (record.part, record.image) != (part, image):
        raise Corrupt(f"{place.shown}/{path}: of part {record.part}, image {record.image}; the version has image {image} of part {part}")
    return [*record.files, File(path=path, bytes=len(content), sha256=hashlib.sha256(content).hexdigest())]


def _info(place: Place, record: Record, sha256: str) -> BackupInfo:
    return BackupInfo(
        space=record.space,
        version=record.version,
        digest=record.digest,
        address=place.shown,
        sha256=sha256,
        parts=record.parts,
        files=len(record.files),
        bytes=sum(file.bytes for file in record.files),
    )
