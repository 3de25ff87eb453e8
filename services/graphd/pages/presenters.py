"""Conversion of catalog messages to views: hosts, spaces, versions, weights and jobs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from asterism_daemonkit.http.job_views import STATE_NAMES, task_view
from asterism_model.elements import EDGE, NODE
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_model.weight_names import OWN_WEIGHTS, canonical_weight_name
from asterism_model.weight_stats import compute_weight_stats
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.pages import views
from graphd.pages.plot_data import format_ranges
from graphd.pages.rates import RateInterval, combine, quantile

_MAX_CAUSE_CHARS = 2000
"""Maximum characters of a cause in a list."""


def host_row(host: metad_pb.Host, spaces: Sequence[common_pb.Space]) -> views.HostRow:
    """Return a daemon, with the number of partitions that it holds of each space."""
    part_counts = (
        (space.name, sum(host.uuid in part.hosts for part in space.parts)) for space in spaces
    )
    resources = host.resources if host.HasField("resources") else None
    return views.HostRow(
        uuid=host.uuid,
        role="storaged" if host.role == metad_pb.STORAGED else "graphd",
        address=host.address,
        online=host.online,
        last_heartbeat_ms=host.last_heartbeat_ms,
        silent_s=max(0.0, time.time() - host.last_heartbeat_ms / 1000)
        if host.last_heartbeat_ms
        else 0.0,
        incarnation=host.incarnation,
        parts=host.parts,
        held_bytes=host.held_bytes,
        free_bytes=host.free_bytes,
        disk_bytes=(resources.disk_total_bytes or None) if resources else None,
        cpu_cores=resources.cpu_cores if resources else None,
        cpu_count=resources.cpu_count if resources else None,
        memory_bytes=resources.memory_bytes if resources else None,
        memory_total_bytes=(resources.memory_total_bytes or None) if resources else None,
        started_ms=resources.started_ms if resources else None,
        spaces=[views.HeldSpace(name=name, parts=parts) for name, parts in part_counts if parts],
    )


def space_row(
    space: common_pb.Space, manifest: common_pb.Manifest | None, hosts: Mapping[str, metad_pb.Host]
) -> views.SpaceRow:
    """Return a space in a list, with the row counts of its current version."""
    counts = count_rows(manifest.totals) if manifest else None
    return views.SpaceRow(
        name=space.name,
        space_id=space.space_id,
        parts=len(space.parts),
        version=space.version,
        created_ms=space.created_ms,
        nodes=counts[NODE] if counts else None,
        edges=counts[EDGE] if counts else None,
        unavailable_parts=_unavailable_parts(space, hosts),
    )


def _unavailable_parts(space: common_pb.Space, hosts: Mapping[str, metad_pb.Host]) -> int:
    """Return the number of partitions that no online host holds."""
    return sum(not _is_online(part, hosts) for part in space.parts)


def _is_online(part: common_pb.PartHosts, hosts: Mapping[str, metad_pb.Host]) -> bool:
    return any(uuid in hosts and hosts[uuid].online for uuid in part.hosts)


def count_rows(totals: Sequence[common_pb.PartitionStats]) -> dict[int, int]:
    """Return the number of live rows by element."""
    counts = {NODE: 0, EDGE: 0}
    for total in totals:
        if total.weight_name in OWN_WEIGHTS:
            counts[int(total.element)] += total.count
    return counts


def space_details(
    space: common_pb.Space, manifest: common_pb.Manifest | None, hosts: Mapping[str, metad_pb.Host]
) -> views.SpaceDetails:
    """Return a space: its types with their totals, and the holders of its partitions."""
    schema = Schema.from_proto(space.schema)
    parts_of: dict[str, list[int]] = {}
    for part, part_info in enumerate(space.parts):
        for uuid in part_info.hosts:
            parts_of.setdefault(uuid, []).append(part)
    schema_types = [(NODE, i, node) for i, node in enumerate(schema.node_types)] + [
        (EDGE, i, edge) for i, edge in enumerate(schema.edge_types)
    ]
    totals = list(manifest.totals) if manifest else None
    return views.SpaceDetails(
        name=space.name,
        space_id=space.space_id,
        version=space.version,
        created_ms=space.created_ms,
        parts=len(space.parts),
        ids=schema.ids,
        placement=schema.placement,
        direction=schema.direction,
        types=[
            _type_row(element, type_id, schema_type, totals)
            for element, type_id, schema_type in schema_types
        ],
        holders=[
            views.PartHolder(
                uuid=uuid,
                address=_address(uuid, hosts),
                online=uuid in hosts and hosts[uuid].online,
                parts=len(parts),
                which=format_ranges(parts),
            )
            for uuid, parts in sorted(
                parts_of.items(), key=lambda item: (_address(item[0], hosts), item[0])
            )
        ],
        unavailable_parts=_unavailable_parts(space, hosts),
        schema=schema.to_dict(),
    )


def _type_row(
    element: int,
    type_id: int,
    schema_type: NodeType | EdgeType,
    totals: Sequence[common_pb.PartitionStats] | None,
) -> views.TypeRow:
    own_totals = [
        t
        for t in totals or ()
        if t.element == element and t.type_id == type_id and t.weight_name in OWN_WEIGHTS
    ]
    has_totals = totals is not None
    return views.TypeRow(
        element="node" if element == NODE else "edge",
        type_id=type_id,
        name=schema_type.name,
        weighted=schema_type.weighted,
        features=[_feature(feature) for feature in schema_type.features],
        tables=[f"{table.name} = {table.expression}" for table in schema_type.tables],
        count=sum(t.count for t in own_totals) if has_totals else None,
        positive=sum(t.positive for t in own_totals) if has_totals else None,
        weight=sum(t.weight for t in own_totals) if has_totals else None,
        dropped=sum(t.dropped for t in own_totals) if has_totals else None,
    )


def _feature(feature: Feature) -> str:
    shape = f" [{', '.join(map(str, feature.shape))}]" if feature.shape else ""
    kind = "" if feature.kind in ("dense", "bytes") else f"{feature.kind} "
    return f"{feature.name}: {kind}{feature.dtype or feature.kind}{shape}"


def _address(uuid: str, hosts: Mapping[str, metad_pb.Host]) -> str:
    return hosts[uuid].address if uuid in hosts else uuid


def part_rows(
    space: common_pb.Space, manifest: common_pb.Manifest | None, hosts: Mapping[str, metad_pb.Host]
) -> list[views.PartRow]:
    """Return the partitions of a space, ascending, with their contents in a version."""
    sums: dict[int, list[float]] = {}
    for total in manifest.totals if manifest else ():
        if total.weight_name in OWN_WEIGHTS:
            part_sums = sums.setdefault(total.part, [0, 0, 0.0])
            part_sums[0 if total.element == common_pb.NODE else 1] += total.count
            part_sums[2] += total.weight
    digests = {image.part: image.digest for image in manifest.images} if manifest else {}
    rows = []
    for part, part_info in enumerate(space.parts):
        part_sums = sums.get(part, [0, 0, 0.0])
        rows.append(
            views.PartRow(
                part=part,
                hosts=[_address(uuid, hosts) for uuid in part_info.hosts],
                online=_is_online(part_info, hosts),
                nodes=int(part_sums[0]) if manifest else None,
                edges=int(part_sums[1]) if manifest else None,
                weight=part_sums[2] if manifest else None,
                digest=digests.get(part, ""),
            )
        )
    return rows


def version_row(
    space: common_pb.Space, manifest: common_pb.Manifest, pins: Sequence[metad_pb.Pin]
) -> views.VersionRow:
    """Return a version with its pins."""
    return views.VersionRow(
        version=manifest.version,
        current=manifest.version == space.version,
        watermark=manifest.watermark,
        job_id=manifest.job_id,
        created_ms=manifest.created_ms,
        digest=manifest.digest,
        restored=bool(manifest.origin_space_id),
        pins=[
            views.PinRow(
                pin_id=pin.pin_id,
                owner=pin.owner,
                term_s=pin.term_s,
                created_ms=pin.created_ms,
                expires_ms=pin.expires_ms,
            )
            for pin in pins
            if pin.version == manifest.version
        ],
    )


def weights_rows(
    schema: Schema, totals: Sequence[common_pb.PartitionStats]
) -> list[views.WeightsRow]:
    """Return the weight statistics of a version.

    Nodes come first, then edges; for each type its own weights, then its tables by name.
    """
    groups: dict[tuple[int, int, str], list[common_pb.PartitionStats]] = {}
    for total in totals:
        name = canonical_weight_name(total.weight_name)
        groups.setdefault((int(total.element), total.type_id, name), []).append(total)
    rows = []
    for (element, type_id, name), group in sorted(groups.items()):
        schema_type = (schema.node_types if element == NODE else schema.edge_types)[type_id]
        rows.append(
            views.WeightsRow(
                element="node" if element == NODE else "edge",
                type_id=type_id,
                type=schema_type.name,
                weight_name=name,
                expression=schema_type.table(name).expression if name else "",
                **asdict(compute_weight_stats(group)),
            )
        )
    return rows


def job_row(job: common_pb.Job) -> views.JobRow:
    """Return a job in a list."""
    all_counted = all(task.rows_total or task.state == common_pb.FINISHED for task in job.tasks)
    return views.JobRow(
        job_id=job.job_id,
        space=job.space,
        kind=job.kind,
        state=STATE_NAMES[job.state],
        ending=STATE_NAMES.get(job.ending),
        version=job.version or job.target_version,
        fraction=min(job.rows_done / job.rows_total, 1.0)
        if job.tasks and all_counted and job.rows_total
        else None,
        rows_done=job.rows_done,
        rows_total=job.rows_total,
        rows_per_s=job.rows_per_s or None,
        eta_s=job.eta_s or None,
        submitted_ms=job.submitted_ms,
        started_ms=job.started_ms,
        finished_ms=job.finished_ms,
        cause=job.cause
        if len(job.cause) <= _MAX_CAUSE_CHARS
        else job.cause[:_MAX_CAUSE_CHARS] + " ...",
    )


def job_details(job: common_pb.Job, hosts: Mapping[str, metad_pb.Host]) -> views.JobDetails:
    """Return a job with its tasks, without the lists of files and units in their results."""
    return views.JobDetails(
        job=job_row(job),
        options=dict(job.options),
        watermark=job.watermark,
        tasks=[task_view(task, with_lists=False) for task in job.tasks],
        addresses={task.host: _address(task.host, hosts) for task in job.tasks},
    )


def space_use(
    space: common_pb.Space, manifest: common_pb.Manifest | None, used_bytes: int | None
) -> views.SpaceUse:
    """Return the size of a space."""
    counts = count_rows(manifest.totals) if manifest else None
    return views.SpaceUse(
        name=space.name,
        parts=len(space.parts),
        version=space.version,
        nodes=counts[NODE] if counts else None,
        edges=counts[EDGE] if counts else None,
        bytes=used_bytes,
    )


def log_row(record: common_pb.LogRecord) -> views.LogRecordView:
    """Return a record of a log."""
    return views.LogRecordView(
        time_ms=record.time_ms, level=record.level, logger=record.logger, text=record.text
    )


def rate_trend(intervals: Sequence[RateInterval]) -> views.RateTrend:
    """Return call rates and latencies over some measurements."""
    totals = [combine(list(interval.by_method.values())) for interval in intervals]
    return views.RateTrend(
        ended_ms=[interval.ended_ms for interval in intervals],
        per_s=[
            total.calls / interval.seconds
            for total, interval in zip(totals, intervals, strict=True)
        ],
        p99_s=[quantile(total, 0.99) for total in totals],
    )
