"""What the routes answer with, as pydantic models: their docstrings are OpenAPI's descriptions.
Jobs are in `job_views`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from asterism_model.elements import OWN_WEIGHTS
from asterism_model.partition_stats import Element, PartitionStats
from asterism_model.schema import Schema
from metad.catalog.spaces import parts_by_host
from metad.model.catalog import Manifest, Pin, Space
from metad.model.hosts import Host


class ApiModel(BaseModel):
    """What all of them have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Problem(ApiModel):
    """Why a request was refused."""

    error: str = Field(examples=["NotFound"])
    """Class of the error; `docs` list them."""
    message: str = Field(examples=["job 99 does not exist; the newest is 12"])
    """What was wrong, with the value, and what to do."""


class TypeTotalView(ApiModel):
    """What a version holds of one type, over all parts."""

    element: Literal["node", "edge"]
    type: str = Field(examples=["paper", "author:writes:paper"])
    count: int
    """Live rows."""
    positive: int
    """Rows of positive weight: what weighted draws choose from."""
    weight: float
    """Sum of weights."""
    dropped: int
    """Edges left out because an end is deleted."""
    audit_tv: float
    """Largest total variation, among the parts, between the tables' exact law and the weights."""


class PinView(ApiModel):
    """A lease on a version: while it lasts, the version is served."""

    pin_id: int
    owner: str = Field(examples=["trainer-3 (pid 4711)"])
    """Who asked for it."""
    term_s: float
    """What each renewal grants, in seconds."""
    created_ms: int
    expires_ms: int
    """Unless it is renewed."""


class VersionView(ApiModel):
    """A published version."""

    version: int = Field(examples=[3])
    cut: int
    """The commit number that it shows."""
    job_id: int
    """The build that made it."""
    created_ms: int
    digest: str
    """sha256 of its manifest."""
    current: bool
    pins: list[PinView]
    """Who keeps it from going."""
    totals: list[TypeTotalView]
    indexes: list[str] = Field(examples=[["range of item on price"]])
    """That draws under conditions may take."""


class SpaceView(ApiModel):
    """A graph with its schema and parts."""

    space_id: int
    name: str = Field(examples=["papers"])
    version: int
    """The current published version; 0: none yet."""
    created_ms: int
    schema_: dict[str, Any] = Field(alias="schema")
    """As a schema file has it: parts, ids, placement, direction, nodes, edges."""
    parts: list[list[str]]
    """The storageds (uuids) of each part."""
    parts_by_host: dict[str, list[int]]
    """The parts that each storaged builds."""
    totals: list[TypeTotalView]
    """Of the current version; empty while there is none."""


class NewSpace(ApiModel):
    """A space to make."""

    name: str = Field(max_length=128, examples=["papers"])
    schema_: dict[str, Any] = Field(
        alias="schema",
        examples=[
            {
                "parts": 4,
                "nodes": {"paper": {"features": {"year": "int64"}}},
                "edges": {"paper:cites:paper": {"weighted": True}},
            }
        ],
    )
    """As a schema file has it. Types get their ids in the order that they are named in."""
    if_not_exists: bool = False
    """A space of that name with an equal schema is then no conflict."""


class HostView(ApiModel):
    """A daemon that sends heartbeats to metad."""

    uuid: str
    role: Literal["storaged", "graphd"]
    address: str = Field(examples=["storaged-0:9779"])
    http_address: str
    online: bool
    last_heartbeat_ms: int
    last_beat_ms: int = Field(json_schema_extra={"deprecated": True})
    """Deprecated name of `last_heartbeat_ms`; the next release drops it."""
    incarnation: int
    """Number of its start."""
    parts: int
    """That it holds, over all spaces."""
    free_bytes: int
    held_bytes: int
    """What all that lies in its folder takes of the disk, linked files once; 0: not known."""


def space_view(space: Space, current: Manifest | None) -> SpaceView:
    """A space as it is shown."""
    return SpaceView(
        space_id=space.space_id,
        name=space.name,
        version=space.version,
        created_ms=space.created_ms,
        schema=space.schema.to_dict(),
        parts=[list(hosts) for hosts in space.parts],
        parts_by_host={str(host): parts for host, parts in parts_by_host(space).items()},
        totals=_type_totals(space.schema, current.totals) if current else [],
    )


def version_view(space: Space, manifest: Manifest, pins: Sequence[Pin]) -> VersionView:
    """A version as it is shown."""
    return VersionView(
        version=manifest.version,
        cut=manifest.cut,
        job_id=manifest.job_id,
        created_ms=manifest.created_ms,
        digest=manifest.digest,
        current=manifest.version == space.version,
        pins=[
            PinView(
                pin_id=pin.pin_id,
                owner=pin.owner,
                term_s=pin.term_ms / 1000,
                created_ms=pin.created_ms,
                expires_ms=pin.expires_ms,
            )
            for pin in pins
            if pin.version == manifest.version
        ],
        totals=_type_totals(space.schema, manifest.totals),
        indexes=[index.describe(space.schema) for index in manifest.indexes],
    )


def _type_totals(schema: Schema, totals: Sequence[PartitionStats]) -> list[TypeTotalView]:
    groups: dict[tuple[int, int], list[PartitionStats]] = {}
    for stats in totals:
        if stats.weight_name in OWN_WEIGHTS:
            groups.setdefault((stats.element.number, stats.type_id), []).append(stats)
    views = []
    for (element, type_id), group in sorted(groups.items()):
        is_node = element == Element.NODE.number
        types = schema.node_types if is_node else schema.edge_types
        views.append(
            TypeTotalView(
                element="node" if is_node else "edge",
                type=types[type_id].name if type_id < len(types) else str(type_id),
                count=sum(stats.count for stats in group),
                positive=sum(stats.positive for stats in group),
                weight=sum(stats.weight for stats in group),
                dropped=sum(stats.dropped for stats in group),
                audit_tv=max(stats.audit_tv for stats in group),
            )
        )
    return views


def host_view(host: Host, parts: int) -> HostView:
    """A daemon as it is shown."""
    return HostView(
        uuid=host.uuid,
        role="storaged" if host.role.name == "STORAGED" else "graphd",
        address=host.address,
        http_address=host.http_address,
        online=host.online,
        last_heartbeat_ms=host.last_heartbeat_ms,
        last_beat_ms=host.last_heartbeat_ms,
        incarnation=host.incarnation,
        parts=parts,
        free_bytes=host.free_bytes,
        held_bytes=host.held_bytes,
    )
