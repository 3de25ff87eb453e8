"""Conversion of `metad.model.catalog` records to messages and back.

Called by `metad.catalog_api`, `metad.desired_state` and `metad.wire.record_encoding`. Invalid
values in messages are refused here, with the value in the error."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from dataclasses import replace

from asterism_model.elements import element_from_proto
from asterism_model.indexes import indexes_from_proto, indexes_to_proto
from asterism_model.load_fingerprints import PartFingerprint
from asterism_model.partition_stats import PartitionStats
from asterism_model.schema import Schema
from asterism_proto.errors import Corrupt, InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.model.catalog import (
    Chunk,
    LoadRecord,
    LoadState,
    Manifest,
    NewChunk,
    Pin,
    Seal,
    Space,
    SpaceRecord,
)
from metad.model.ids import HostId, JobId, LoadId, PinId, SpaceId
from metad.model.task_outcomes import PartImageDigest


def space_to_proto(space: Space) -> common_pb.Space:
    """Return a space as a message."""
    return common_pb.Space(
        space_id=space.space_id,
        name=space.name,
        schema=space.schema.to_proto(),
        parts=[common_pb.PartHosts(hosts=hosts) for hosts in space.parts],
        version=space.version,
        created_ms=space.created_ms,
    )


def space_from_proto(message: common_pb.Space) -> Space:
    """Return the space in a message."""
    return Space(
        space_id=SpaceId(message.space_id),
        name=message.name,
        schema=Schema.from_proto(message.schema),
        parts=tuple(tuple(HostId(host) for host in part.hosts) for part in message.parts),
        version=message.version,
        created_ms=message.created_ms,
    )


def load_to_proto(load: LoadRecord, chunks: Iterable[Chunk] = ()) -> metad_pb.Load:
    """Return a load as a message, with its chunks if given."""
    return metad_pb.Load(
        load_id=load.load_id,
        space_id=load.space_id,
        space=load.space,
        state=load.state.name,
        commit=load.commit,
        source=load.source,
        resume_key=load.resume_key,
        chunks=[chunk_to_proto(chunk) for chunk in chunks],
        created_ms=load.created_ms,
        rejected=load.rejected,
        deletes=load.deletes,
        last_seen_ms=load.seen_ms,
        abandoned_ms=load.ended_ms,
        purged=load.is_purged,
        fingerprinted=load.fingerprint is not None,
        fingerprint=[fingerprint.to_proto() for fingerprint in load.fingerprint or ()],
    )


def load_from_proto(message: metad_pb.Load) -> LoadRecord:
    """Return the load in a message, without its chunks."""
    return LoadRecord(
        load_id=LoadId(message.load_id),
        space_id=SpaceId(message.space_id),
        space=message.space,
        state=LoadState(message.state),
        commit=message.commit,
        source=message.source,
        resume_key=message.resume_key,
        created_ms=message.created_ms,
        rejected=message.rejected,
        deletes=message.deletes,
        seen_ms=message.last_seen_ms,
        ended_ms=message.abandoned_ms,
        is_purged=message.purged,
        fingerprint=tuple(map(PartFingerprint.from_proto, message.fingerprint))
        if message.fingerprinted
        else None,
    )


def seal_from_proto(message: metad_pb.HostSeal) -> Seal:
    """Return the host's seal in a message."""
    parts = tuple(map(PartFingerprint.from_proto, message.parts))
    return Seal(host=HostId(message.host), number=message.number, parts=parts)


def fingerprint_to_proto(load: LoadRecord, parts: Container[int]) -> metad_pb.LoadFingerprint:
    """Return a committed load's fingerprints of some partitions as a message."""
    fingerprints = [
        fingerprint.to_proto()
        for fingerprint in load.fingerprint or ()
        if fingerprint.part in parts
    ]
    return metad_pb.LoadFingerprint(
        load_id=load.load_id,
        commit=load.commit,
        fingerprinted=load.fingerprint is not None,
        parts=fingerprints,
    )


def chunk_to_proto(chunk: Chunk) -> metad_pb.Chunk:
    """Return a chunk as a message."""
    return metad_pb.Chunk(
        index=chunk.index,
        element=chunk.element.name,
        type_id=chunk.type_id,
        rows=chunk.rows,
        digest=chunk.digest,
        first_edge_id=chunk.base,
        written=chunk.written,
    )


def chunk_from_proto(message: metad_pb.Chunk) -> Chunk:
    """Return the registered chunk in a message."""
    new_chunk = new_chunk_from_proto(message)
    return Chunk(
        index=new_chunk.index,
        element=new_chunk.element,
        type_id=new_chunk.type_id,
        rows=new_chunk.rows,
        digest=new_chunk.digest,
        base=message.first_edge_id,
        written=message.written,
    )


def new_chunk_from_proto(message: metad_pb.Chunk) -> NewChunk:
    """Return the new chunk in a client's message."""
    return NewChunk(
        index=message.index,
        element=element_from_proto(f"chunk {message.index}", message.element),
        type_id=message.type_id,
        rows=message.rows,
        digest=message.digest,
    )


def image_to_proto(image: PartImageDigest) -> common_pb.PartImage:
    """Return the image digest of a partition as a message."""
    return common_pb.PartImage(part=image.part, digest=image.digest)


def image_from_proto(message: common_pb.PartImage) -> PartImageDigest:
    """Return the image digest in a message."""
    return PartImageDigest(part=message.part, digest=message.digest)


def manifest_to_proto(manifest: Manifest, *, totals: bool = True) -> common_pb.Manifest:
    """Return a manifest as a message."""
    return common_pb.Manifest(
        space_id=manifest.space_id,
        version=manifest.version,
        watermark=manifest.watermark,
        job_id=manifest.job_id,
        created_ms=manifest.created_ms,
        totals=[stats.to_proto() for stats in manifest.totals] if totals else (),
        images=[image_to_proto(image) for image in manifest.images],
        digest=manifest.digest,
        origin_space_id=manifest.origin_space_id,
        origin_job_id=manifest.origin_job_id,
        indexes=indexes_to_proto(manifest.indexes),
    )


def manifest_from_proto(message: common_pb.Manifest) -> Manifest:
    """Return the manifest in a message."""
    return Manifest(
        space_id=SpaceId(message.space_id),
        version=message.version,
        watermark=message.watermark,
        job_id=JobId(message.job_id),
        created_ms=message.created_ms,
        totals=tuple(map(PartitionStats.from_proto, message.totals)),
        images=tuple(image_from_proto(image) for image in message.images),
        digest=message.digest,
        origin_space_id=message.origin_space_id,
        origin_job_id=message.origin_job_id,
        indexes=indexes_from_proto(message.indexes),
    )


def original_manifest(manifest: Manifest) -> Manifest:
    """Return a manifest with the ids of the space and job that built its version."""
    if not manifest.origin_space_id:
        return manifest
    space_id, job_id = SpaceId(manifest.origin_space_id), JobId(manifest.origin_job_id)
    return replace(manifest, space_id=space_id, job_id=job_id, origin_space_id=0, origin_job_id=0)


def with_digest(manifest: Manifest) -> Manifest:
    """Return the manifest with its digest.

    The digest is the sha256 of the deterministic serialization of the original manifest with an
    empty digest."""
    message = manifest_to_proto(replace(original_manifest(manifest), digest=""))
    return replace(
        manifest, digest=hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()
    )


def pin_to_proto(pin: Pin) -> metad_pb.Pin:
    """Return a pin as a message."""
    return metad_pb.Pin(
        pin_id=pin.pin_id,
        space_id=pin.space_id,
        space=pin.space,
        version=pin.version,
        owner=pin.owner,
        term_s=pin.term_ms / 1000,
        created_ms=pin.created_ms,
        expires_ms=pin.expires_ms,
        principal=pin.principal,
    )


def pin_from_proto(message: metad_pb.Pin) -> Pin:
    """Return the pin in a message."""
    return Pin(
        pin_id=PinId(message.pin_id),
        space_id=SpaceId(message.space_id),
        space=message.space,
        version=message.version,
        owner=message.owner,
        term_ms=round(message.term_s * 1000),
        created_ms=message.created_ms,
        expires_ms=message.expires_ms,
        principal=message.principal,
    )


def space_record_to_proto(record: SpaceRecord) -> metad_pb.SpaceRecord:
    """Return a space record as a message, in the form that a backup keeps.

    The manifest of a restored version is converted to the original one."""
    return metad_pb.SpaceRecord(
        space=space_to_proto(record.space),
        manifest=manifest_to_proto(original_manifest(record.manifest)),
        loads=[load_to_proto(load, chunks) for load, chunks in record.loads],
        last_commit=record.last_commit,
        next_edge_ids=record.next_edge_ids,
    )


def space_record_from_proto(message: metad_pb.SpaceRecord) -> SpaceRecord:
    """Return the space record in a message.

    Raises
    ------
    Corrupt
        If the digest of the manifest does not match.
    InvalidRequest
        If the fields of the record are inconsistent.
    """
    manifest = manifest_from_proto(message.manifest)
    if with_digest(manifest).digest != manifest.digest:
        raise Corrupt(
            f"the manifest of version {manifest.version} in the record does not match its digest"
        )
    space = space_from_proto(message.space)
    try:
        loads = tuple(
            (
                load_from_proto(load),
                tuple(chunk_from_proto(chunk) for chunk in load.chunks),
            )
            for load in message.loads
        )
    except ValueError as error:
        raise InvalidRequest(f"the record has a load in an unknown state: {error}") from error
    commits = [load.commit for load, _ in loads]
    if commits != sorted(set(commits)) or any(
        load.state is not LoadState.COMMITTED for load, _ in loads
    ):
        raise InvalidRequest("the loads of the record are not committed loads in commit order")
    if commits and not 0 < commits[0] <= commits[-1] <= manifest.watermark:
        raise InvalidRequest(
            f"the loads of the record have commit numbers up to {commits[-1]}, its version "
            f"contains those up to {manifest.watermark}"
        )
    if manifest.watermark > message.last_commit:
        raise InvalidRequest(
            f"the version of the record contains commit {manifest.watermark}, its last commit is "
            f"{message.last_commit}"
        )
    if (
        len(message.next_edge_ids) != len(space.schema.edge_types)
        or min(message.next_edge_ids, default=0) < 0
    ):
        raise InvalidRequest(
            f"the record has {len(message.next_edge_ids)} next edge ids for "
            f"{len(space.schema.edge_types)} edge types"
        )
    return SpaceRecord(
        space=space,
        manifest=manifest,
        loads=loads,
        last_commit=message.last_commit,
        next_edge_ids=tuple(message.next_edge_ids),
    )
