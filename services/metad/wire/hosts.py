"""Conversion of `metad.model.hosts` records to messages and back.

Called by `metad.heartbeats_api`, `metad.desired_state` and `metad.wire.record_encoding`. Invalid
values in messages are refused here, with the value in the error."""

from __future__ import annotations

from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.model.hosts import (
    CatalogPosition,
    CatalogState,
    DaemonRole,
    Follower,
    HeartbeatReport,
    HighestIds,
    Host,
    HostResources,
    Inventory,
    InventoryBuild,
    InventorySpace,
    UnknownData,
)
from metad.model.ids import HostId, LoadId, SpaceId


def role_from_proto(value: int) -> DaemonRole:
    """Return the role that a daemon reports."""
    try:
        return DaemonRole(value)
    except ValueError as error:
        raise InvalidRequest(f"role {value}: expected STORAGED (1) or GRAPHD (2)") from error


def host_to_proto(host: Host, *, parts: int = 0) -> metad_pb.Host:
    """Return a host as a message."""
    return metad_pb.Host(
        uuid=host.uuid,
        role=host.role.name,
        address=host.address,
        http_address=host.http_address,
        online=host.online,
        last_heartbeat_ms=host.last_heartbeat_ms,
        incarnation=host.incarnation,
        parts=parts,
        free_bytes=host.free_bytes,
        held_bytes=host.held_bytes,
        start_id=host.start_id,
    )


def listed_host_to_proto(host: Host, *, parts: int) -> metad_pb.Host:
    """Return a host with its partitions and its resource use, for a list of hosts."""
    message = host_to_proto(host, parts=parts)
    if host.resources is not None:
        message.resources.CopyFrom(_resources_to_proto(host.resources))
    return message


def _resources_to_proto(resources: HostResources) -> metad_pb.HostResources:
    return metad_pb.HostResources(
        disk_id=resources.disk_id,
        disk_total_bytes=resources.disk_total_bytes,
        cpu_cores=resources.cpu_cores,
        cpu_count=resources.cpu_count,
        memory_bytes=resources.memory_bytes,
        memory_total_bytes=resources.memory_total_bytes,
        started_ms=resources.started_ms,
        spaces=[
            metad_pb.SpaceUsage(space_id=space_id, bytes=used)
            for space_id, used in resources.space_bytes
        ],
    )


def _resources_from_proto(message: metad_pb.HostResources) -> HostResources:
    return HostResources(
        disk_id=message.disk_id,
        disk_total_bytes=message.disk_total_bytes,
        cpu_cores=message.cpu_cores,
        cpu_count=message.cpu_count,
        memory_bytes=message.memory_bytes,
        memory_total_bytes=message.memory_total_bytes,
        started_ms=message.started_ms,
        space_bytes=tuple((SpaceId(usage.space_id), usage.bytes) for usage in message.spaces),
    )


def host_from_proto(message: metad_pb.Host) -> Host:
    """Return the host in a message."""
    return Host(
        uuid=HostId(message.uuid),
        role=role_from_proto(message.role),
        address=message.address,
        http_address=message.http_address,
        online=message.online,
        last_heartbeat_ms=message.last_heartbeat_ms,
        incarnation=message.incarnation,
        free_bytes=message.free_bytes,
        held_bytes=message.held_bytes,
        start_id=message.start_id,
    )


def heartbeat_from_proto(message: metad_pb.HeartbeatRequest) -> HeartbeatReport:
    """Return the heartbeat report in a message."""
    if not message.uuid:
        raise InvalidRequest("uuid='': expected the uuid of the daemon that sends the heartbeat")
    if not message.incarnation:
        raise InvalidRequest(f"heartbeat of {message.uuid}: incarnation=0: expected 1 or more")
    return HeartbeatReport(
        uuid=HostId(message.uuid),
        role=role_from_proto(message.role),
        incarnation=message.incarnation,
        address=message.address,
        http_address=message.http_address,
        held_versions=frozenset(
            (SpaceId(held_version.space_id), held_version.version)
            for held_version in message.held_versions
        ),
        free_bytes=message.free_bytes,
        held_bytes=message.held_bytes,
        start_id=message.start_id,
        dropped_loads=frozenset(LoadId(load) for load in message.dropped_loads),
        resources=_resources_from_proto(message.resources)
        if message.HasField("resources")
        else None,
    )


def position_to_proto(position: CatalogPosition) -> metad_pb.CatalogPosition:
    """Return a position as a message."""
    return metad_pb.CatalogPosition(
        history=position.history, term=position.term, revision=position.revision
    )


def position_from_proto(message: metad_pb.CatalogPosition) -> CatalogPosition | None:
    """Return the position in a message; None if the daemon has followed no catalog yet."""
    if not message.history:
        return None
    return CatalogPosition(history=message.history, term=message.term, revision=message.revision)


def highest_ids_to_proto(highest_ids: HighestIds) -> metad_pb.HighestIds:
    """Return identifiers as a message."""
    return metad_pb.HighestIds(
        space_id=highest_ids.space_id, job_id=highest_ids.job_id, load_id=highest_ids.load_id
    )


def highest_ids_from_proto(message: metad_pb.HighestIds) -> HighestIds:
    """Return the identifiers in a message."""
    return HighestIds(space_id=message.space_id, job_id=message.job_id, load_id=message.load_id)


def follower_from_proto(message: metad_pb.HeartbeatRequest) -> Follower:
    """Return the position of the catalog that the sender of a heartbeat follows."""
    return Follower(
        uuid=HostId(message.uuid),
        role=role_from_proto(message.role),
        cluster=message.cluster,
        position=position_from_proto(message.followed_position),
        highest=highest_ids_from_proto(message.highest_ids),
    )


def reporter_from_proto(message: metad_pb.Inventory) -> Follower:
    """Return the storaged that reports an inventory."""
    return Follower(
        uuid=HostId(message.uuid),
        role=DaemonRole.STORAGED,
        cluster=message.cluster,
        position=position_from_proto(message.followed_position),
        highest=highest_ids_from_proto(message.highest_ids),
    )


def inventory_from_proto(message: metad_pb.Inventory) -> Inventory:
    """Return the inventory in a message."""
    return Inventory(
        spaces=tuple(
            InventorySpace(
                space_id=space.space_id,
                name=space.name,
                bytes=space.bytes,
                builds=tuple(
                    InventoryBuild(job_id=build.job_id, version=build.version)
                    for build in space.builds
                ),
                checkpoints=tuple(space.checkpoints),
                loads=tuple(space.loads),
            )
            for space in message.spaces
        )
    )


def catalog_state_to_proto(state: CatalogState) -> metad_pb.CatalogState:
    """Return a catalog's state as a message."""
    return metad_pb.CatalogState(
        cluster=state.cluster,
        position=position_to_proto(state.position),
        followers_ahead=[
            _follower_to_proto(follower, reported=follower.uuid in state.reported)
            for follower in state.ahead
        ],
        unknown_data=[_unknown_data_to_proto(unknown_data) for unknown_data in state.unknown],
        open_loads=state.open_loads,
        jobs=state.jobs,
        fault=state.fault,
    )


def _follower_to_proto(follower: Follower, *, reported: bool) -> metad_pb.Follower:
    return metad_pb.Follower(
        uuid=follower.uuid,
        role=follower.role.name,
        cluster=follower.cluster,
        followed_position=position_to_proto(follower.position)
        if follower.position is not None
        else None,
        highest_ids=highest_ids_to_proto(follower.highest),
        inventory_reported=reported,
    )


def _unknown_data_to_proto(unknown_data: UnknownData) -> metad_pb.UnknownData:
    return metad_pb.UnknownData(
        host=unknown_data.host,
        space_id=unknown_data.space_id,
        space=unknown_data.space,
        bytes=unknown_data.bytes,
        job_id=unknown_data.build.job_id if unknown_data.build is not None else 0,
        version=unknown_data.build.version if unknown_data.build is not None else 0,
        loads=unknown_data.loads,
    )
