"""Conversion of positions, inventories and removal orders to messages and back."""

from __future__ import annotations

from asterism_proto.v1 import metad_pb2 as mpb
from metad.catalog.history import CatalogPosition, HighestIds
from metad.catalog_followers import (
    CatalogState,
    Follower,
    Inventory,
    InventoryBuild,
    InventorySpace,
    UnknownData,
)
from metad.hosts import Role
from metad.model.ids import HostId
from metad.wire import catalog


def position_to_proto(position: CatalogPosition) -> mpb.CatalogPosition:
    """Return a position as a message."""
    return mpb.CatalogPosition(
        history=position.history, term=position.term, revision=position.revision
    )


def position_from_proto(message: mpb.CatalogPosition) -> CatalogPosition | None:
    """Return the position in a message; None for a daemon that has followed none."""
    if not message.history:
        return None
    return CatalogPosition(history=message.history, term=message.term, revision=message.revision)


def highest_ids_to_proto(highest_ids: HighestIds) -> mpb.HighestIds:
    """Return identifiers as a message."""
    return mpb.HighestIds(
        space_id=highest_ids.space_id, job_id=highest_ids.job_id, load_id=highest_ids.load_id
    )


def highest_ids_from_proto(message: mpb.HighestIds) -> HighestIds:
    """Return the identifiers in a message."""
    return HighestIds(space_id=message.space_id, job_id=message.job_id, load_id=message.load_id)


def follower_from_proto(message: mpb.BeatRequest) -> Follower:
    """Return the position of the catalog that the sender of a heartbeat follows."""
    return Follower(
        uuid=HostId(message.uuid),
        role=catalog.role_from_proto(message.role),
        cluster=message.cluster,
        position=position_from_proto(message.followed),
        highest=highest_ids_from_proto(message.highest),
    )


def reporter_from_proto(message: mpb.Inventory) -> Follower:
    """Return the storaged that reports an inventory."""
    return Follower(
        uuid=HostId(message.uuid),
        role=Role.STORAGED,
        cluster=message.cluster,
        position=position_from_proto(message.followed),
        highest=highest_ids_from_proto(message.highest),
    )


def inventory_from_proto(message: mpb.Inventory) -> Inventory:
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


def catalog_state_to_proto(state: CatalogState) -> mpb.CatalogState:
    """Return a catalog's state as a message."""
    return mpb.CatalogState(
        cluster=state.cluster,
        position=position_to_proto(state.position),
        ahead=[
            _follower_to_proto(follower, reported=follower.uuid in state.reported)
            for follower in state.ahead
        ],
        unknown=[_unknown_data_to_proto(unknown_data) for unknown_data in state.unknown],
        open_loads=state.open_loads,
        jobs=state.jobs,
        fault=state.fault,
    )


def _follower_to_proto(follower: Follower, *, reported: bool) -> mpb.Follower:
    return mpb.Follower(
        uuid=follower.uuid,
        role=follower.role.name,
        cluster=follower.cluster,
        followed=position_to_proto(follower.position) if follower.position is not None else None,
        highest=highest_ids_to_proto(follower.highest),
        reported=reported,
    )


def _unknown_data_to_proto(unknown_data: UnknownData) -> mpb.UnknownData:
    return mpb.UnknownData(
        host=unknown_data.host,
        space_id=unknown_data.space_id,
        space=unknown_data.space,
        bytes=unknown_data.bytes,
        job_id=unknown_data.build.job_id if unknown_data.build is not None else 0,
        version=unknown_data.build.version if unknown_data.build is not None else 0,
        loads=unknown_data.loads,
    )
