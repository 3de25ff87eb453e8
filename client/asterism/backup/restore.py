"""Restoration of backups: the catalog entry first, then a job that fetches the partitions."""

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
    """Create a space from a backup: same version, digest and samples.

    The number of storageds may differ. Loads and builds continue from the backup: commit numbers,
    edge ids and keys of loads are not reused. An interrupted restore resumes when the call is
    repeated, and a finished one is not repeated. Until it is finished, the space accepts no load
    and no other job.

    Parameters
    ----------
    client : Client
        Client of the service that receives the space.
    address : str or Path
        Folder of the backup. This process and every storaged must be able to read it, and the
        service setting ``allowed_addresses`` must list it.
    name : str, optional
        Name of the new space. None: the name in the backup.
    timeout_s : float, default 86400
        Maximum wait in seconds.
    on_progress : callable, optional
        Called with the job at every poll.

    Returns
    -------
    SpaceInfo
        The restored space.

    Raises
    ------
    InvalidRequest
        If the service does not allow the address.
    NotFound
        If there is no backup, or only an incomplete one.
    Conflict
        If a space of this name exists.
    Corrupt
        If a file differs from what was written; the message names it.
    NotReady
        If the job fails for another reason or is stopped.
    Deadline
        If the job has not ended in time.

    Examples
    --------
    >>> restore(client, "/srv/backups/shop", "copy").version  # doctest: +SKIP
    1
    """
    deadline = time.monotonic() + timeout_s
    folder = RemoteFolder(absolute_address(address), confined=True)
    try:
        content = folder.read(MANIFEST_FILE)
    except NotFound as error:
        raise NotFound(
            f"address={folder.display_address}: expected a finished backup, found no "
            f"{MANIFEST_FILE}; check the address, or repeat the backup"
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
            f"{folder.display_address}/{CATALOG_FILE}: expected version digest {record.digest}, as "
            f"in {MANIFEST_FILE}, found {entry.manifest.digest}"
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
    # Either call may raise it: a restore that is already running can finish between the two.
    except Conflict:
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
            f"{message}; repeat the call to continue it, or drop the space to give it up"
        )
    return client.describe(space)


def _is_restored(client: CatalogClient, space: str, record: BackupManifest) -> bool:
    """Return True if the space was restored from this very backup, by an earlier call."""
    versions = client.session.catalog("list_versions", metad_pb.SpaceRequest(space=space)).versions
    return any(version.origin_space_id and version.digest == record.digest for version in versions)
