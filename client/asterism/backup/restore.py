"""Making a space of a backup: the catalog first, then a job brings the parts back and publishes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path

from google.protobuf.message import DecodeError

from asterism.catalog_client import CatalogClient
from asterism.client_state import seconds_left
from asterism.records.catalog import Job, SpaceInfo
from asterism_io.remote_storage import RemoteFolder, absolute_address
from asterism_model.backup_manifest import CATALOG_FILE, MANIFEST_FILE, BackupManifest
from asterism_proto.errors import Conflict, Corrupt, NotFound, NotReady
from asterism_proto.v1 import metad_pb2 as metad_pb


def restore(
    client: CatalogClient,
    address: str | Path,
    name: str | None = None,
    *,
    timeout_s: float = 24 * 3600.0,
    on_progress: Callable[[Job], None] | None = None,
) -> SpaceInfo:
    """Make a space of a backup: the same version with the same digest and the same draws, on any
    number of storageds.

    Loads, builds and everything else go on from there: commit numbers, edge ids and the keys of
    loads are not used again. A restore that was cut off goes on when it is asked for again (one
    that is done is not done twice); until it is done the space takes no load and no other job.

    Parameters
    ----------
    client : Client
        Of the service that gets the space.
    address : str or Path
        Where the backup is; this process and every storaged must be able to read it, and the
        setting ``allowed_addresses`` of the service must list it.
    name : str, optional
        Of the new space; None: as it was called.
    timeout_s : float
        Seconds to wait at most.
    on_progress : callable, optional
        Called with the job at every look.

    Raises
    ------
    InvalidRequest
        Where the service does not allow the address.
    NotFound
        Where there is no backup, or one that never became whole.
    Conflict
        Where there is a space of this name.
    Corrupt
        Where a file is not what was written; the message names it.
    NotReady
        Where the job failed for another reason or was stopped.
    """
    deadline = time.monotonic() + timeout_s
    folder = RemoteFolder(absolute_address(address), confined=True)
    try:
        content = folder.read(MANIFEST_FILE)
    except NotFound as error:
        raise NotFound(
            f"{folder.display_address}: no {MANIFEST_FILE}: there is no backup, or one that "
            "never became whole; ask for the backup again"
        ) from error
    record = BackupManifest.from_bytes(content)
    entry = metad_pb.SpaceRecord()
    try:
        entry.ParseFromString(folder.read_file(record.find_file(CATALOG_FILE)))
    except DecodeError as error:
        raise Corrupt(
            f"{folder.display_address}/{CATALOG_FILE}: not a record of a space ({error})"
        ) from error
    if entry.manifest.digest != record.digest:
        raise Corrupt(
            f"{folder.display_address}/{CATALOG_FILE}: of version digest "
            f"{entry.manifest.digest}; {MANIFEST_FILE} says {record.digest}"
        )
    space = name or entry.space.name
    options = {"from": absolute_address(address), "sha256": hashlib.sha256(content).hexdigest()}
    try:
        client.session.catalog(
            "import_space",
            metad_pb.ImportSpaceRequest(
                name=space, record=entry, address=absolute_address(address)
            ),
        )
        job = client.submit_job(space, "restore", options=options)
    except Conflict:  # at either call: a restore that is under way already may end between the two
        if not _is_restored(client, space, record):
            raise
        return client.describe(space)
    job = client.wait(job.job_id, timeout_s=seconds_left(deadline), on_progress=on_progress)
    if job.state != "FINISHED":
        message = (
            f"restore of space {space!r}: job {job.job_id} ended as {job.state}: "
            f"{job.cause or 'no cause given'}"
        )
        if "the backup is damaged" in job.cause:
            raise Corrupt(f"{message}; drop the space")
        raise NotReady(
            f"{message}; the same call goes on with it, `asterism space drop {space}` gives it up"
        )
    return client.describe(space)


def _is_restored(client: CatalogClient, space: str, record: BackupManifest) -> bool:
    """Whether a restore of this very backup has made the space: it went on while nobody waited for
    it.
    """
    versions = client.session.catalog("list_versions", metad_pb.SpaceRequest(space=space)).versions
    return any(version.origin_space_id and version.digest == record.digest for version in versions)
