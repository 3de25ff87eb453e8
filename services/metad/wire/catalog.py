"""Our records as messages, and messages as our records: the one place where the two meet.

Called by the doors (`metad.api`, `metad.desired_state`) and by `metad.wire.storage`; jobs are in
`metad.wire.jobs`. What a message can say wrong is refused here, with its value."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from dataclasses import replace

from asterism_model.fingerprints import PartFingerprint
from asterism_model.indexes import indexes_from_proto, indexes_to_proto
from asterism_model.partition_stats import PartitionStats, element_from_proto
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from metad.hosts import HeartbeatReport, Host, Role
from metad.model.catalog import Chunk, LoadRecord, LoadState, Manifest, NewChunk, Pin, Seal, Space
from metad.model.ids import HostId, JobId, LoadId, PinId, SpaceId
from metad.model.task_outcomes import PartImageDigest

# Catalog.


def space_to_proto(space: Space) -> pb.Space:
    """A space as it travels."""
    return pb.Space(
        space_id=space.space_id,
        name=space.name,
        schema=space.schema.to_proto(),
        parts=[pb.PartHosts(hosts=hosts) for hosts in space.parts],
        version=space.version,
        created_ms=space.created_ms,
    )


def space_from_proto(message: pb.Space) -> Space:
    """A space that travelled."""
    return Space(
        space_id=SpaceId(message.space_id),
        name=message.name,
        schema=Schema.from_proto(message.schema),
        parts=tuple(tuple(HostId(host) for host in part.hosts) for part in message.parts),
        version=message.version,
        created_ms=message.created_ms,
    )


def load_to_proto(load: LoadRecord, chunks: Iterable[Chunk] = ()) -> mpb.Load:
    """A load as it travels, with its chunks if given."""
    return mpb.Load(
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
        seen_ms=load.seen_ms,
        ended_ms=load.ended_ms,
        settled=load.is_purged,
        fingerprinted=load.fingerprint is not None,
        fingerprint=[fingerprint.to_proto() for fingerprint in load.fingerprint or ()],
    )


def load_from_proto(message: mpb.Load) -> LoadRecord:
    """A load that travelled, without its chunks."""
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
        seen_ms=message.seen_ms,
        ended_ms=message.ended_ms,
        is_purged=message.settled,
        fingerprint=tuple(map(PartFingerprint.from_proto, message.fingerprint))
        if message.fingerprinted
        else None,
    )


def seal_from_proto(message: mpb.HostSeal) -> Seal:
    """A host's seal that travelled."""
    parts = tuple(map(PartFingerprint.from_proto, message.parts))
    return Seal(host=HostId(message.host), number=message.number, parts=parts)


def fingerprint_to_proto(load: LoadRecord, parts: Container[int]) -> mpb.LoadFingerprint:
    """The fingerprint of a committed load as it travels, of some partitions."""
    fingerprints = [
        fingerprint.to_proto()
        for fingerprint in load.fingerprint or ()
        if fingerprint.part in parts
    ]
    return mpb.LoadFingerprint(
        load_id=load.load_id,
        commit=load.commit,
        fingerprinted=load.fingerprint is not None,
        parts=fingerprints,
    )


def chunk_to_proto(chunk: Chunk) -> mpb.Chunk:
    """A chunk as it travels."""
    return mpb.Chunk(
        index=chunk.index,
        element=chunk.element.name,
        type_id=chunk.type_id,
        rows=chunk.rows,
        digest=chunk.digest,
        base=chunk.base,
        written=chunk.written,
    )


def chunk_from_proto(message: mpb.Chunk) -> Chunk:
    """A registered chunk that travelled."""
    new_chunk = new_chunk_from_proto(message)
    return Chunk(
        index=new_chunk.index,
        element=new_chunk.element,
        type_id=new_chunk.type_id,
        rows=new_chunk.rows,
        digest=new_chunk.digest,
        base=message.base,
        written=message.written,
    )


def new_chunk_from_proto(message: mpb.Chunk) -> NewChunk:
    """A chunk that a client brings."""
    return NewChunk(
        index=message.index,
        element=element_from_proto(f"chunk {message.index}", message.element),
        type_id=message.type_id,
        rows=message.rows,
        digest=message.digest,
    )


def image_to_proto(image: PartImageDigest) -> pb.PartImage:
    """A part's image as it travels."""
    return pb.PartImage(part=image.part, digest=image.digest)


def image_from_proto(message: pb.PartImage) -> PartImageDigest:
    """A part's image that travelled."""
    return PartImageDigest(part=message.part, digest=message.digest)


def manifest_to_proto(manifest: Manifest, *, totals: bool = True) -> pb.Manifest:
    """A manifest as it travels."""
    return pb.Manifest(
        space_id=manifest.space_id,
        version=manifest.version,
        cut=manifest.cut,
        job_id=manifest.job_id,
        created_ms=manifest.created_ms,
        totals=[stats.to_proto() for stats in manifest.totals] if totals else (),
        images=[image_to_proto(image) for image in manifest.images],
        digest=manifest.digest,
        origin_space_id=manifest.origin_space_id,
        origin_job_id=manifest.origin_job_id,
        indexes=indexes_to_proto(manifest.indexes),
    )


def manifest_from_proto(message: pb.Manifest) -> Manifest:
    """A manifest that travelled."""
    return Manifest(
        space_id=SpaceId(message.space_id),
        version=message.version,
        cut=message.cut,
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
    """A manifest as it was where its version was built."""
    if not manifest.origin_space_id:
        return manifest
    space_id, job_id = SpaceId(manifest.origin_space_id), JobId(manifest.origin_job_id)
    return replace(manifest, space_id=space_id, job_id=job_id, origin_space_id=0, origin_job_id=0)


def with_digest(manifest: Manifest) -> Manifest:
    """The manifest with its digest: sha256 of the deterministic serialisation of the original
    without one.
    """
    message = manifest_to_proto(replace(original_manifest(manifest), digest=""))
    return replace(
        manifest, digest=hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()
    )


def pin_to_proto(pin: Pin) -> mpb.Pin:
    """A pin as it travels."""
    return mpb.Pin(
        pin_id=pin.pin_id,
        space_id=pin.space_id,
        space=pin.space,
        version=pin.version,
        owner=pin.owner,
        term_s=pin.term_ms / 1000,
        created_ms=pin.created_ms,
        expires_ms=pin.expires_ms,
    )


def pin_from_proto(message: mpb.Pin) -> Pin:
    """A pin that was kept."""
    return Pin(
        pin_id=PinId(message.pin_id),
        space_id=SpaceId(message.space_id),
        space=message.space,
        version=message.version,
        owner=message.owner,
        term_ms=round(message.term_s * 1000),
        created_ms=message.created_ms,
        expires_ms=message.expires_ms,
    )


# Hosts and beats.


def role_from_proto(value: int) -> Role:
    """The role that a daemon claims."""
    try:
        return Role(value)
    except ValueError as error:
        raise InvalidRequest(f"role {value}: expected STORAGED (1) or GRAPHD (2)") from error


def host_to_proto(host: Host, *, parts: int = 0) -> mpb.Host:
    """A host as it travels."""
    return mpb.Host(
        uuid=host.uuid,
        role=host.role.name,
        address=host.address,
        http_address=host.http_address,
        online=host.online,
        last_beat_ms=host.last_heartbeat_ms,
        incarnation=host.incarnation,
        parts=parts,
        free_bytes=host.free_bytes,
        held_bytes=host.held_bytes,
        start=host.start_id,
    )


def host_from_proto(message: mpb.Host) -> Host:
    """A host that was kept."""
    return Host(
        uuid=HostId(message.uuid),
        role=role_from_proto(message.role),
        address=message.address,
        http_address=message.http_address,
        online=message.online,
        last_heartbeat_ms=message.last_beat_ms,
        incarnation=message.incarnation,
        free_bytes=message.free_bytes,
        held_bytes=message.held_bytes,
        start_id=message.start,
    )


def heartbeat_from_proto(message: mpb.BeatRequest) -> HeartbeatReport:
    """What a beat says of its sender."""
    if not message.uuid:
        raise InvalidRequest("a beat without a uuid: every daemon has one, kept in its folder")
    if not message.incarnation:
        raise InvalidRequest(
            f"a beat of {message.uuid} with incarnation 0: incarnations count starts from 1"
        )
    return HeartbeatReport(
        uuid=HostId(message.uuid),
        role=role_from_proto(message.role),
        incarnation=message.incarnation,
        address=message.address,
        http_address=message.http_address,
        held_versions=frozenset(
            (SpaceId(held_version.space_id), held_version.version) for held_version in message.held
        ),
        free_bytes=message.free_bytes,
        held_bytes=message.held_bytes,
        start_id=message.start,
        dropped_loads=frozenset(LoadId(load) for load in message.dropped_loads),
    )
