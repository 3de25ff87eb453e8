"""Routes under ``/ui/api``: the data of the pages, in pages of bounded size.

Only the last routes, those of jobs, change anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query

from asterism_daemonkit.http.job_views import STATES, StateName
from asterism_model.elements import EDGE, NODE
from asterism_model.string_ids import MAX_STRING_BYTES
from asterism_model.weight_names import canonical_weight_name
from asterism_proto.errors import NotFound
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.pages import presenters, views
from graphd.pages.catalog_reader import METAD, PageData, schema_of
from graphd.pages.health import cluster_health, disk_rows, memory_rows, space_usage
from graphd.pages.node_inspector import MAX_OFFSET, NodeReader
from graphd.pages.plot_data import histogram_bars, part_ranges
from graphd.pages.rates import RateMonitor, combine, quantile
from graphd.query.completion import SpaceNames, collect_names, complete

MAX_PAGE_SIZE = 200
MAX_TOTAL_VARIATION = 1e-9
"""Limit that builds enforce: a version beyond it is refused."""
_MINUTE_S = 60.0
_NEWEST = 5
_LARGEST = 10
"""Number of spaces on the overview."""
_FULLEST = 10
"""Number of daemons on the overview, by their use of memory."""
_TREND_INTERVALS = 60
"""Measurements in the sparklines of the overview."""

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, description="How many at most.")]
Offset = Annotated[int, Query(ge=0, description="How many to pass over.")]
SearchText = Annotated[
    str,
    Query(max_length=200, description="Only those with these letters in their name or address."),
]
SortOrder = Annotated[Literal["asc", "desc"], Query(description="Ascending or descending.")]
SpaceName = Annotated[str, Path(description="The space's name.", examples=["papers"])]
VersionNumber = Annotated[
    int, Path(ge=0, lt=1 << 64, description="The version's number; 0: the current one.")
]
JobNumber = Annotated[int, Path(ge=1, lt=1 << 63, description="The job's id.")]
Element = Annotated[Literal["node", "edge"], Query(description="Of nodes or of edges.")]
TypeId = Annotated[int, Query(ge=0, lt=1 << 31, description="Position of the type in the schema.")]
WeightName = Annotated[
    str, Query(max_length=256, description="A table's name; empty: the rows' own weights.")
]

NodeTypeName = Annotated[str, Query(alias="type", max_length=256, description="A node type.")]
NodeIdText = Annotated[
    str,
    Query(
        alias="id",
        max_length=MAX_STRING_BYTES,
        description="Id of the node: digits, or its string id.",
    ),
]


def router(
    page_data: PageData,
    rates: RateMonitor,
    node_reader: NodeReader,
    *,
    daemon: str,
    missing: Callable[[], list[str]],
) -> APIRouter:
    """Return the router of the pages' data.

    Parameters
    ----------
    page_data : PageData
    rates : RateMonitor
    node_reader : NodeReader
    daemon : str
        Name of the daemon that serves the pages: graphd or standalone.
    missing : callable
        Returns the reasons why the daemon cannot serve yet.
    """
    api = APIRouter(prefix="/ui/api", tags=["pages"])
    api.include_router(_nodes(node_reader))
    api.include_router(_cluster(page_data, rates, daemon, missing))
    api.include_router(_spaces(page_data))
    api.include_router(_versions(page_data))
    api.include_router(_statements(page_data))
    api.include_router(_jobs(page_data))
    return api


def _cluster(
    page_data: PageData, rates: RateMonitor, daemon: str, missing: Callable[[], list[str]]
) -> APIRouter:
    api = APIRouter()

    @api.get("/overview")
    def get_overview() -> views.Overview:
        """Return an overview of the cluster."""
        hosts, spaces = page_data.hosts(), page_data.spaces()
        storageds = [host for host in hosts if host.role == metad_pb.STORAGED]
        graphds = [host for host in hosts if host.role == metad_pb.GRAPHD]
        disks = disk_rows(hosts)
        intervals = rates.intervals()
        recent = (
            [
                interval
                for interval in intervals
                if interval.ended_ms > intervals[-1].ended_ms - 1000 * _MINUTE_S
            ]
            if intervals
            else []
        )
        last_minute = combine(
            [stats for interval in recent for stats in interval.by_method.values()]
        )
        pages = {
            state: page_data.jobs(metad_pb.ListJobsRequest(states=[number], limit=_NEWEST))
            for state, number in STATES.items()
        }
        running = [
            presenters.job_row(job) for state in ("RUNNING", "QUEUE") for job in pages[state].jobs
        ]
        missing_reasons = missing()
        return views.Overview(
            daemon=daemon,
            health=cluster_health(
                hosts,
                spaces,
                daemon=daemon,
                missing=missing_reasons,
                catalog_fault=page_data.catalog_fault(),
            ),
            missing=missing_reasons,
            storageds=len(storageds),
            storageds_online=sum(host.online for host in storageds),
            graphds=len(graphds),
            graphds_online=sum(host.online for host in graphds),
            held_bytes=sum(disk.held_bytes for disk in disks),
            free_bytes=sum(disk.free_bytes for disk in disks),
            disks=disks,
            memory=memory_rows(hosts, _FULLEST),
            spaces=len(spaces),
            partitions=sum(len(space.parts) for space in spaces),
            largest=largest_spaces(hosts, spaces),
            jobs={state: page.total for state, page in pages.items()},
            running=running[:_NEWEST],
            failed=[presenters.job_row(job) for job in pages["FAILED"].jobs],
            calls_per_s=last_minute.calls / sum(interval.seconds for interval in recent)
            if recent
            else None,
            p99_s=quantile(last_minute, 0.99),
            trend=presenters.rate_trend(intervals[-_TREND_INTERVALS:]),
            log=[presenters.log_row(record) for record in page_data.log_records("", _NEWEST)]
            if page_data.may_read_logs()
            else [],
        )

    def largest_spaces(
        hosts: Sequence[metad_pb.Host], spaces: Sequence[common_pb.Space]
    ) -> list[views.SpaceUse]:
        used = space_usage(hosts)
        largest = sorted(spaces, key=lambda space: (-used.get(space.space_id, 0), space.name))
        return [
            presenters.space_use(
                space,
                page_data.manifest(space, space.version) if space.version else None,
                used.get(space.space_id),
            )
            for space in largest[:_LARGEST]
        ]

    @api.get("/logs")
    def list_logs(
        daemon_id: Annotated[
            str,
            Query(
                alias="daemon",
                max_length=64,
                description="metad, or the uuid of a storaged; empty: the daemon that serves "
                "these pages.",
            ),
        ] = "",
    ) -> views.LogPage:
        """Return the newest log records of a daemon.

        Daemons keep the last 200 in memory. Fields that may hold a secret are left out.
        """
        choices = [
            views.LogDaemon(id="", label=f"this {daemon}"),
            views.LogDaemon(id=METAD, label=METAD),
        ]
        choices += [
            views.LogDaemon(id=host.uuid, label=f"storaged {host.address}")
            for host in page_data.hosts()
            if host.role == metad_pb.STORAGED and not host.address.endswith(":0")
        ]
        if daemon == "standalone":  # all daemons are in this process and share its log
            choices = choices[:1]
        if daemon_id not in {choice.id for choice in choices}:
            raise NotFound(
                f"daemon={daemon_id!r}: expected metad or the uuid of a storaged; see /ui/hosts"
            )
        return views.LogPage(
            daemon=daemon_id,
            daemons=choices,
            records=[presenters.log_row(record) for record in page_data.log_records(daemon_id)],
        )

    @api.get("/hosts")
    def list_hosts(
        q: SearchText = "",
        sort: Annotated[
            Literal["address", "role", "parts", "held", "free", "heartbeat"],
            Query(description="By what."),
        ] = "role",
        order: SortOrder = "asc",
        offset: Offset = 0,
        limit: Limit = 50,
    ) -> views.HostPage:
        """Return the daemons that send heartbeats, with what they hold."""
        hosts = [host for host in page_data.hosts() if q in host.address or q in host.uuid]
        keys: dict[str, Callable[[metad_pb.Host], object]] = {
            "address": lambda host: host.address,
            "role": lambda host: (host.role, host.address),
            "parts": lambda host: host.parts,
            "held": lambda host: host.held_bytes,
            "free": lambda host: host.free_bytes,
            "heartbeat": lambda host: -host.last_heartbeat_ms,
        }
        # The keys of one sort have one type.
        hosts.sort(key=keys[sort], reverse=order == "desc")  # type: ignore[arg-type]
        spaces = page_data.spaces()
        return views.HostPage(
            hosts=[presenters.host_row(host, spaces) for host in hosts[offset : offset + limit]],
            total=len(hosts),
        )

    @api.get("/rates")
    def get_rates(
        method: Annotated[
            str, Query(max_length=100, description="Of the series; empty: all methods.")
        ] = "",
    ) -> views.RatesView:
        """Return call rates and latencies of this graphd.

        They are measured every few seconds, kept for half an hour, and lost when the process ends.
        """
        intervals = rates.intervals()
        seconds = sum(interval.seconds for interval in intervals)
        rows = []
        for name in sorted({name for interval in intervals for name in interval.by_method}):
            stats = combine(
                [interval.by_method[name] for interval in intervals if name in interval.by_method]
            )
            quantiles = {f"p{share}_s": quantile(stats, share / 100) for share in (50, 95, 99)}
            rows.append(
                views.MethodRow(
                    method=name,
                    calls=stats.calls,
                    errors=stats.errors,
                    per_s=stats.calls / seconds,
                    **quantiles,
                )
            )
        series = [
            combine(
                [
                    method_stats
                    for name, method_stats in interval.by_method.items()
                    if not method or name == method
                ]
            )
            for interval in intervals
        ]
        return views.RatesView(
            step_s=rates.interval_s,
            kept_s=seconds,
            method=method,
            methods=sorted(rows, key=lambda row: -row.calls),
            series=views.RateSeries(
                ended_ms=[interval.ended_ms for interval in intervals],
                per_s=[
                    stats.calls / interval.seconds
                    for stats, interval in zip(series, intervals, strict=True)
                ],
                errors_per_s=[
                    stats.errors / interval.seconds
                    for stats, interval in zip(series, intervals, strict=True)
                ],
                p50_s=[quantile(stats, 0.5) for stats in series],
                p95_s=[quantile(stats, 0.95) for stats in series],
                p99_s=[quantile(stats, 0.99) for stats in series],
            ),
        )

    return api


def _nodes(node_reader: NodeReader) -> APIRouter:
    api = APIRouter()

    @api.get("/spaces/{name}/node-types")
    def list_node_types(name: SpaceName, node_type: NodeTypeName = "") -> views.NodeTypesView:
        """Return the node types of a space, and the ids of some nodes of one."""
        return node_reader.node_types(name, node_type)

    @api.get("/spaces/{name}/node")
    def get_node(
        name: SpaceName,
        node_type: NodeTypeName,
        id_text: NodeIdText,
        edge: Annotated[
            str,
            Query(max_length=800, description="Edge type of the neighbors that start at offset."),
        ] = "",
        direction: Annotated[
            views.DirectionName, Query(description="Direction of that edge type.")
        ] = "out",
        offset: Annotated[
            int, Query(ge=0, le=MAX_OFFSET, description="How many neighbors to pass over.")
        ] = 0,
    ) -> views.NodeDetails:
        """Return a node: its features, and its neighbors by edge type, heaviest first."""
        return node_reader.node(name, node_type, id_text, page=(edge, direction, offset))

    @api.get("/spaces/{name}/neighborhood")
    def get_neighborhood(
        name: SpaceName,
        node_type: NodeTypeName,
        id_text: NodeIdText,
        seed: Annotated[int, Query(ge=0, lt=1 << 53, description="Seed of the sample.")] = 1,
    ) -> views.NeighborhoodView:
        """Return a sampled neighborhood of a node, two hops wide."""
        return node_reader.neighborhood(name, node_type, id_text, seed)

    return api


def _spaces(page_data: PageData) -> APIRouter:
    api = APIRouter()

    def current_manifest(space: common_pb.Space) -> common_pb.Manifest | None:
        return page_data.manifest(space, space.version) if space.version else None

    @api.get("/spaces")
    def list_spaces(
        q: SearchText = "",
        sort: Annotated[
            Literal["name", "created", "parts"], Query(description="By what.")
        ] = "name",
        order: SortOrder = "asc",
        offset: Offset = 0,
        limit: Limit = 50,
    ) -> views.SpacePage:
        """Return the spaces."""
        spaces = [space for space in page_data.spaces() if q in space.name]
        keys: dict[str, Callable[[common_pb.Space], tuple[int, str]]] = {
            "name": lambda space: (0, space.name),
            "created": lambda space: (space.created_ms, space.name),
            "parts": lambda space: (len(space.parts), space.name),
        }
        spaces.sort(key=keys[sort], reverse=order == "desc")
        hosts = {host.uuid: host for host in page_data.hosts()}
        return views.SpacePage(
            spaces=[
                presenters.space_row(space, current_manifest(space), hosts)
                for space in spaces[offset : offset + limit]
            ],
            total=len(spaces),
        )

    @api.get("/spaces/{name}")
    def get_space(name: SpaceName) -> views.SpaceDetails:
        """Return a space: schema, counts, totals, and the holders of its partitions."""
        space = page_data.space(name)
        return presenters.space_details(
            space, current_manifest(space), {host.uuid: host for host in page_data.hosts()}
        )

    @api.get("/spaces/{name}/parts")
    def list_parts(
        name: SpaceName,
        host: Annotated[
            str, Query(max_length=300, description="Only those that this address holds.")
        ] = "",
        sort: Annotated[
            Literal["part", "nodes", "edges", "weight"], Query(description="By what.")
        ] = "part",
        order: SortOrder = "asc",
        offset: Offset = 0,
        limit: Limit = 50,
    ) -> views.PartPage:
        """Return the partitions of a space: their holders, and contents in the current version."""
        space = page_data.space(name)
        rows = presenters.part_rows(
            space, current_manifest(space), {daemon.uuid: daemon for daemon in page_data.hosts()}
        )
        rows = [row for row in rows if not host or host in row.hosts]
        rows.sort(key=lambda row: (getattr(row, sort) or 0, row.part), reverse=order == "desc")
        return views.PartPage(
            parts=rows[offset : offset + limit], total=len(rows), version=space.version
        )

    return api


def _versions(page_data: PageData) -> APIRouter:
    api = APIRouter()

    @api.get("/spaces/{name}/versions")
    def list_versions(name: SpaceName) -> list[views.VersionRow]:
        """Return the served versions with their pins, newest first."""
        space, pins = page_data.space(name), page_data.pins(name)
        return [
            presenters.version_row(space, manifest, pins) for manifest in page_data.versions(name)
        ]

    @api.get("/spaces/{name}/versions/{version}/weights")
    def list_weights(name: SpaceName, version: VersionNumber) -> list[views.WeightsRow]:
        """Return the weight statistics of a version, by type and name."""
        space = page_data.space(name)
        return presenters.weights_rows(schema_of(space), page_data.manifest(space, version).totals)

    @api.get("/spaces/{name}/versions/{version}/audit")
    def get_audit(
        name: SpaceName,
        version: VersionNumber,
        element: Element,
        type_id: TypeId,
        weight: WeightName = "",
    ) -> views.AuditView:
        """Return the deviation of one type's tables from its weights, by partition.

        It was measured when the tables were built.
        """
        space = page_data.space(name)
        manifest = page_data.manifest(space, version)
        element_id = NODE if element == "node" else EDGE
        totals = [
            total
            for total in manifest.totals
            if total.element == element_id
            and total.type_id == type_id
            and canonical_weight_name(total.weight_name) == canonical_weight_name(weight)
        ]
        if not totals:
            raise NotFound(
                f"version {manifest.version} of space {name!r} has no {element} type "
                f"{type_id} with weights {weight or 'of its own'!r}"
            )
        (row,) = presenters.weights_rows(schema_of(space), totals)
        return views.AuditView(
            weights=row,
            runs=[
                views.PartRangeView(**asdict(part_range))
                for part_range in part_ranges(totals, len(space.parts))
            ],
            limit_tv=MAX_TOTAL_VARIATION,
        )

    @api.get("/spaces/{name}/versions/{version}/spread")
    def get_spread(
        name: SpaceName,
        version: VersionNumber,
        element: Element,
        type_id: TypeId,
        weight: WeightName = "",
    ) -> views.HistogramView:
        """Return the histogram of one type's positive weights.

        It is read once from the images of all partitions, then cached.
        """
        space = page_data.space(name)
        element_id = NODE if element == "node" else EDGE
        histogram = page_data.histogram(
            space,
            page_data.manifest(space, version),
            element_id,
            type_id,
            canonical_weight_name(weight),
        )
        return views.HistogramView(
            bars=[views.BarView(**asdict(bar)) for bar in histogram_bars(histogram)],
            rows=int(histogram.counts.sum()),
            weight=float(histogram.sums.sum()),
        )

    return api


def _statements(page_data: PageData) -> APIRouter:
    api = APIRouter()

    def names_of(space: str) -> SpaceNames:
        try:
            return collect_names(schema_of(page_data.space(space))) if space else SpaceNames()
        except NotFound:
            return SpaceNames()

    @api.post("/completions")
    def complete_statement(request: views.CompletionRequest) -> views.CompletionsView:
        """Return the keywords and names that may follow a statement; nothing is run."""
        completions = complete(
            request.statement,
            space=request.space,
            space_names=lambda: (space.name for space in page_data.spaces()),
            names_of=names_of,
            parameters=request.parameters,
            language=request.language,
        )
        return views.CompletionsView(
            prefix_length=completions.prefix_length,
            candidates=[views.CandidateView(**asdict(one)) for one in completions.candidates],
        )

    return api


def _jobs(page_data: PageData) -> APIRouter:
    api = APIRouter()

    def present_job(job: common_pb.Job) -> views.JobDetails:
        return presenters.job_details(job, {host.uuid: host for host in page_data.hosts()})

    @api.get("/jobs")
    def list_jobs(
        space: Annotated[str, Query(max_length=128, description="Only jobs of this space.")] = "",
        state: Annotated[
            list[StateName] | None, Query(description="Only jobs in one of these states.")
        ] = None,
        kind: Annotated[
            list[str] | None, Query(description="Only jobs of one of these kinds.")
        ] = None,
        before: Annotated[
            int,
            Query(ge=0, lt=1 << 63, description="Only jobs with a smaller id; 0: from the newest."),
        ] = 0,
        limit: Limit = 50,
    ) -> views.JobPage:
        """Return jobs, newest first."""
        states = [STATES[name] for name in state or ()]
        page = page_data.jobs(
            metad_pb.ListJobsRequest(
                space=space, states=states, kinds=kind or (), before=before, limit=limit
            )
        )
        return views.JobPage(
            jobs=[presenters.job_row(job) for job in page.jobs],
            total=page.total,
            next_before=page.next_before,
        )

    @api.get("/jobs/{job_id}")
    def get_job(job_id: JobNumber) -> views.JobDetails:
        """Return a job with its tasks, their attempts and the causes of failed attempts."""
        return present_job(page_data.job(job_id))

    @api.post("/jobs", status_code=202)
    def submit_job(new: views.JobSubmission) -> views.JobDetails:
        """Submit a job, or return an identical job that is already in progress."""
        return present_job(
            page_data.submit_job(
                metad_pb.SubmitJobRequest(space=new.space, kind=new.kind, version=new.version)
            )
        )

    @api.post("/jobs/{job_id}/stop", status_code=202)
    def stop_job(job_id: JobNumber) -> views.JobDetails:
        """Stop a job."""
        return present_job(page_data.stop_job(job_id))

    @api.post("/jobs/{job_id}/recover", status_code=202)
    def recover_job(job_id: JobNumber) -> views.JobDetails:
        """Resume a failed or stopped job."""
        return present_job(page_data.recover_job(job_id))

    return api
