"""Response models of the routes; their docstrings are the descriptions in OpenAPI.

Views of jobs are in `asterism_daemonkit.http.job_views`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from asterism_daemonkit.http.models import HttpModel
from asterism_model.elements import Element
from asterism_model.partition_stats import PartitionStats
from asterism_model.schema import Schema
from asterism_model.weight_names import OWN_WEIGHTS
from metad.catalog.spaces import parts_by_host
from metad.model.catalog import Manifest, Pin, Space
from metad.model.hosts import Host


class TypeTotalView(HttpModel):
    """Totals of one type in a version, over all partitions."""

    element: Literal["node", "edge"]
    type: str = Field(examples=["paper", "author:writes:paper"])
    count: int
    """Number of live rows."""
    positive: int
    """Number of rows with positive weight, which weighted sampling selects from."""
    weight: float
    """Sum of the weights."""
    dropped: int
    """Edges left out because an endpoint is deleted."""
    audit_tv: float
    """Largest total variation between a partition's exact table distribution and its weights."""


class PinView(HttpModel):
    """A lease on a version: while it lasts, the version is served."""

    pin_id: int
    owner: str = Field(examples=["trainer-3 (pid 4711)"])
    """Label of the owner."""
    term_s: float
    """Length of the lease that each renewal grants, in seconds."""
    created_ms: int
    expires_ms: int
    """Time at which the lease ends unless it is renewed."""


class VersionView(HttpModel):
    """A published version."""

    version: int = Field(examples=[3])
    watermark: int
    """Commit watermark of the version: the last commit that it contains."""
    cut: int = Field(deprecated=True)
    """Deprecated name of `watermark`; the next release drops it."""
    job_id: int
    """Build job that made the version."""
    created_ms: int
    digest: str
    """sha256 of the manifest."""
    current: bool
    pins: list[PinView]
    """Pins that keep the version from being retired."""
    totals: list[TypeTotalView]
    indexes: list[str] = Field(examples=[["range of item on price"]])
    """Indexes that filtered sampling can use."""


class SpaceView(HttpModel):
    """A graph space with its schema and partitions."""

    space_id: int
    name: str = Field(examples=["papers"])
    version: int
    """Current published version; 0: none yet."""
    created_ms: int
    schema_: dict[str, Any] = Field(alias="schema")
    """Schema as in a schema file: parts, ids, placement, direction, nodes, edges."""
    parts: list[list[str]]
    """UUIDs of the storageds that hold each partition."""
    parts_by_host: dict[str, list[int]]
    """Partitions that each storaged builds."""
    totals: list[TypeTotalView]
    """Totals of the current version; empty while there is none."""


class NewSpace(HttpModel):
    """A space to create."""

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
    """Schema as in a schema file. Types get their ids in the order in which they are listed."""
    if_not_exists: bool = False
    """If true, an existing space of that name with an equal schema is accepted."""


class HostView(HttpModel):
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
    """Number of the daemon's start."""
    parts: int
    """Number of partitions that it holds, over all spaces."""
    free_bytes: int
    held_bytes: int
    """Disk space that the daemon's folder takes, linked files counted once; 0: not known."""


def space_view(space: Space, current: Manifest | None) -> SpaceView:
    """Return the view of a space."""
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
    """Return the view of a version."""
    return VersionView(
        version=manifest.version,
        watermark=manifest.watermark,
        cut=manifest.watermark,
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
    """Return the view of a daemon."""
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
