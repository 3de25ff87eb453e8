"""Our records as messages, and messages as our records: the one place where the two meet.

Called by the doors (`metad.api`, `metad.polls`) and by the store's `codec`; jobs are in `metad.wire_jobs`. What a message
can say wrong is refused here, with its value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from dataclasses import replace

from asterism_proto.errors import InvalidRequest
from asterism_proto.fingerprints import PartFingerprint
from asterism_proto.indexes import indexes_from_proto, indexes_to_proto
from asterism_proto.schema import Schema
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from metad.catalog.model import Chunk, Load, LoadState, Manifest, NewChunk, Pin, Seal, Space
from metad.cluster import Host, Role, Word
from metad.ids import HostId, JobId, LoadId, PinId, SpaceId
from metad.totals import Element, PartImage, Total

# Catalog.


def space_to(space: Space) -> pb.Space:
    """A space as it travels."""
    return pb.Space(
        space_id=space.space_id,
        name=space.name,
        schema=space.schema.to_proto(),
        parts=[pb.PartHosts(hosts=hosts) for hosts in space.parts],
        version=space.version,
        created_ms=space.created_ms,
    )


def space_of(message: pb.Space) -> Space:
    """A space that travelled."""
    return Space(
        space_id=SpaceId(message.space_id),
        name=message.name,
        schema=Schema.from_proto(message.schema),
        parts=tuple(tuple(HostId(host) for host in part.hosts) for part in message.parts),
        version=message.version,
        created_ms=message.created_ms,
    )


def load_to(load: Load, chunks: Iterable[Chunk] = ()) -> mpb.Load:
    """A load as it travels, with its chunks if given."""
    return mpb.Load(
        load_id=load.load_id,
        space_id=load.space_id,
        space=load.space,
        state=load.state.name,
        commit=load.commit,
        source=load.source,
        resume_key=load.resume_key,
        chunks=[chunk_to(chunk) for chunk in chunks],
        created_ms=load.created_ms,
        rejected=load.rejected,
        deletes=load.deletes,
        seen_ms=load.seen_ms,
        ended_ms=load.ended_ms,
        settled=load.settled,
        fingerprinted=load.fingerprint is not None,
        fingerprint=[fingerprint.to_proto() for fingerprint in load.fingerprint or ()],
    )


def load_of(message: mpb.Load) -> Load:
    """A load that travelled, without its chunks."""
    return Load(
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
        settled=message.settled,
        fingerprint=tuple(map(PartFingerprint.from_proto, message.fingerprint)) if message.fingerprinted else None,
    )


def seal_of(message: mpb.HostSeal) -> Seal:
    """A host's seal that travelled."""
    parts = tuple(map(PartFingerprint.from_proto, message.parts))
    return Seal(host=HostId(message.host), number=message.number, parts=parts)


def fingerprint_to(load: Load, parts: Container[int]) -> mpb.LoadFingerprint:
    """The fingerprint of a committed load as it travels, of some partitions."""
    found = [fingerprint.to_proto() for fingerprint in load.fingerprint or () if fingerprint.part in parts]
    return mpb.LoadFingerprint(load_id=load.load_id, commit=load.commit, fingerprinted=load.fingerprint is not None, parts=found)


def chunk_to(chunk: Chunk) -> mpb.Chunk:
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


def chunk_of(message: mpb.Chunk) -> Chunk:
    """A registered chunk that travelled."""
    new = new_chunk_of(message)
    return Chunk(
        index=new.index, element=new.element, type_id=new.type_id, rows=new.rows, digest=new.digest, base=message.base, written=message.written
    )


def new_chunk_of(message: mpb.Chunk) -> NewChunk:
    """A chunk that a client brings."""
    return NewChunk(
        index=message.index,
        element=element_of(f"chunk {message.index}", message.element),
        type_id=message.type_id,
        rows=message.rows,
        digest=message.digest,
    )


def element_of(what: str, value: int) -> Element:
    """The element of this number; InvalidRequest says ``what`` had another one."""
    try:
        return Element(value)
    except ValueError as error:
        raise InvalidRequest(f"{what}: element {value}; expected NODE (1) or EDGE (2)") from error


def total_to(total: Total) -> pb.Total:
    """A total as it travels."""
    return pb.Total(
        part=total.part,
        element=total.element.name,
        type_id=total.type_id,
        count=total.count,
        positive=total.positive,
        weight=total.weight,
        weight_name=total.weight_name,
        audit_tv=total.audit_tv,
        audit_rel=total.audit_rel,
        mix_out=total.mix_out,
        mix_in=total.mix_in,
        count_in=total.count_in,
        dropped=total.dropped,
        underflow=total.underflow,
        zero=total.zero,
        subnormal=total.subnormal,
        negative=total.negative,
        nan=total.nan,
        infinite=total.infinite,
        squares=total.squares,
        largest=total.largest,
    )


def total_of(message: pb.Total) -> Total:
    """A total that travelled."""
    return Total(
        part=message.part,
        element=element_of(f"a total of part {message.part}", message.element),
        type_id=message.type_id,
        count=message.count,
        positive=message.positive,
        weight=message.weight,
        weight_name=message.weight_name,
        audit_tv=message.audit_tv,
        audit_rel=message.audit_rel,
        mix_out=message.mix_out,
        mix_in=message.mix_in,
        count_in=message.count_in,
        dropped=message.dropped,
        underflow=message.underflow,
        zero=message.zero,
        subnormal=message.subnormal,
        negative=message.negative,
        nan=message.nan,
        infinite=message.infinite,
        squares=message.squares,
        largest=message.largest,
    )


def image_to(image: PartImage) -> pb.PartImage:
    """A part's image as it travels."""
    return pb.PartImage(part=image.part, digest=image.digest)


def image_of(message: pb.PartImage) -> PartImage:
    """A part's image that travelled."""
    return PartImage(part=message.part, digest=message.digest)


def manifest_to(manifest: Manifest, *, totals: bool = True) -> pb.Manifest:
    """A manifest as it travels."""
    return pb.Manifest(
        space_id=manifest.space_id,
        version=manifest.version,
        cut=manifest.cut,
        job_id=manifest.job_id,
        created_ms=manifest.created_ms,
        totals=[total_to(total) for total in manifest.totals] if totals else (),
        images=[image_to(image) for image in manifest.images],
        digest=manifest.digest,
        origin_space_id=manifest.origin_space_id,
        origin_job_id=manifest.origin_job_id,
        indexes=indexes_to_proto(manifest.indexes),
    )


def manifest_of(message: pb.Manifest) -> Manifest:
    """A manifest that travelled."""
    return Manifest(
        space_id=SpaceId(message.space_id),
        version=message.version,
        cut=message.cut,
        job_id=JobId(message.job_id),
        created_ms=message.created_ms,
        totals=tuple(total_of(total) for total in message.totals),
        images=tuple(image_of(image) for image in message.images),
        digest=message.digest,
        origin_space_id=message.origin_space_id,
        origin_job_id=message.origin_job_id,
        indexes=indexes_from_proto(message.indexes),
    )


def original(manifest: Manifest) -> Manifest:
    """A manifest as it was where its version was built."""
    if not manifest.origin_space_id:
        return manifest
    space_id, job_id = SpaceId(manifest.origin_space_id), JobId(manifest.origin_job_id)
    return replace(manifest, space_id=space_id, job_id=job_id, origin_space_id=0, origin_job_id=0)


def sealed(manifest: Manifest) -> Manifest:
    """The manifest with its digest: sha256 of the deterministic serialisation of the original without one."""
    bare = manifest_to(replace(original(manifest), digest=""))
    return replace(manifest, digest=hashlib.sha256(bare.SerializeToString(deterministic=True)).hexdigest())


def pin_to(pin: Pin) -> mpb.Pin:
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


def pin_of(message: mpb.Pin) -> Pin:
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


def role_of(value: int) -> Role:
    """The role that a daemon claims."""
    try:
        return Role(value)
    except ValueError as error:
        raise InvalidRequest(f"role {value}: expected STORAGED (1) or GRAPHD (2)") from error


def host_to(host: Host, *, parts: int = 0) -> mpb.Host:
    """A host as it travels."""
    return mpb.Host(
        uuid=host.uuid,
        role=host.role.name,
        address=host.address,
        http_address=host.http_address,
        online=host.online,
        last_beat_ms=host.last_beat_ms,
        incarnation=host.incarnation,
        parts=parts,
        free_bytes=host.free_bytes,
        held_bytes=host.held_bytes,
        start=host.start,
    )


def host_of(message: mpb.Host) -> Host:
    """A host that was kept."""
    return Host(
        uuid=HostId(message.uuid),
        role=role_of(message.role),
        address=message.address,
        http_address=message.http_address,
        online=message.online,
        last_beat_ms=message.last_beat_ms,
        incarnation=message.incarnation,
        free_bytes=message.free_bytes,
        held_bytes=message.held_bytes,
        start=message.start,
    )


def word_of(message: mpb.BeatRequest) -> Word:
    """What a beat says of its sender."""
    if not message.uuid:
        raise InvalidRequest("a beat without a uuid: every daemon has one, kept in its folder")
    if not message.incarnation:
        raise InvalidRequest(f"a beat of {message.uuid} with incarnation 0: incarnations count starts from 1")
    return Word(
        uuid=HostId(message.uuid),
        role=role_of(message.role),
        incarnation=message.incarnation,
        address=message.address,
        http_address=message.http_address,
        held=frozenset((SpaceId(held.space_id), held.version) for held in message.held),
        free_bytes=message.free_bytes,
        held_bytes=message.held_bytes,
        start=message.start,
        dropped_loads=frozenset(LoadId(load) for load in message.dropped_loads),
    )
