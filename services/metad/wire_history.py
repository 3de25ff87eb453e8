"""Conversion of positions, inventories and removal orders to messages and back."""

from __future__ import annotations

from asterism_proto.v1 import metad_pb2 as mpb
from metad import wire
from metad.catalog.history import Highest, Position
from metad.catalog.removals import Removal
from metad.cluster import Role
from metad.followers import BuildHeld, CatalogState, Follower, Inventory, SpaceHeld, Unknown
from metad.ids import HostId


def position_to(position: Position) -> mpb.CatalogPosition:
    """Return a position as a message."""
    return mpb.CatalogPosition(history=position.history, term=position.term, revision=position.revision)


def position_of(message: mpb.CatalogPosition) -> Position | None:
    """Return the position in a message; None for a daemon that has followed none."""
    if not message.history:
        return None
    return Position(history=message.history, term=message.term, revision=message.revision)


def highest_to(highest: Highest) -> mpb.HighestIds:
    """Return identifiers as a message."""
    return mpb.HighestIds(space_id=highest.space_id, job_id=highest.job_id, load_id=highest.load_id)


def highest_of(message: mpb.HighestIds) -> Highest:
    """Return the identifiers in a message."""
    return Highest(space_id=message.space_id, job_id=message.job_id, load_id=message.load_id)


def follower_of(message: mpb.BeatRequest) -> Follower:
    """Return the position of the catalog that the sender of a heartbeat follows."""
    return Follower(
        uuid=HostId(message.uuid),
        role=wire.role_of(message.role),
        cluster=message.cluster,
        position=position_of(message.followed),
        highest=highest_of(message.highest),
    )


def reporter_of(message: mpb.Inventory) -> Follower:
    """Return the storaged that reports an inventory."""
    return Follower(
        uuid=HostId(message.uuid),
        role=Role.STORAGED,
        cluster=message.cluster,
        position=position_of(message.followed),
        highest=highest_of(message.highest),
    )


def inventory_of(message: mpb.Inventory) -> Inventory:
    """Return the inventory in a message."""
    return Inventory(
        spaces=tuple(
            SpaceHeld(
                space_id=space.space_id,
                name=space.name,
                bytes=space.bytes,
                builds=tuple(BuildHeld(job_id=build.job_id, version=build.version) for build in space.builds),
                checkpoints=tuple(space.checkpoints),
                loads=tuple(space.loads),
            )
            for space in message.spaces
        )
    )


def removal_to(removal: Removal) -> mpb.RemovalOrder:
    """Return a removal order as a message."""
    return mpb.RemovalOrder(
        removal_id=removal.removal_id,
        kind=mpb.RemovalKind.Name(mpb.RemovalKind.ValueType(removal.kind.value)),
        space_id=removal.space_id,
        job_id=removal.job_id,
        loads=removal.loads,
        reason=removal.reason,
    )


def state_to(state: CatalogState) -> mpb.CatalogState:
    """Return a catalog's state as a message."""
    return mpb.CatalogState(
        cluster=state.cluster,
        position=position_to(state.position),
        ahead=[_follower_to(follower, reported=follower.uuid in state.reported) for follower in state.ahead],
        unknown=[_unknown_to(unknown) for unknown in state.unknown],
        open_loads=state.open_loads,
        jobs=state.jobs,
        fault=state.fault,
    )


def _follower_to(follower: Follower, *, reported: bool) -> mpb.Follower:
    return mpb.Follower(
        uuid=follower.uuid,
        role=follower.role.name,
        cluster=follower.cluster,
        followed=position_to(follower.position) if follower.position is not None else None,
        highest=highest_to(follower.highest),
        reported=reported,
    )


def _unknown_to(unknown: Unknown) -> mpb.UnknownData:
    return mpb.UnknownData(
        host=unknown.host,
        space_id=unknown.space_id,
        space=unknown.space,
        bytes=unknown.bytes,
        job_id=unknown.build.job_id if unknown.build is not None else 0,
        version=unknown.build.version if unknown.build is not None else 0,
        loads=unknown.loads,
    )
