"""Views of the pages as pydantic models; their docstrings are the descriptions in OpenAPI.

Times are in milliseconds since 1970; 0 means not yet.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from asterism_daemonkit.http.job_views import ElementName, StateName, TaskView
from graphd.query.lark_parser import MAX_LENGTH

HealthLevel = Literal["green", "amber", "red"]
DirectionName = Literal["out", "in"]


class PageModel(BaseModel):
    """Base of all views."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class HeldSpace(PageModel):
    """Space of which a storaged holds partitions."""

    name: str
    parts: int


class HostRow(PageModel):
    """Daemon that sends heartbeats."""

    uuid: str
    role: Literal["storaged", "graphd"]
    address: str
    online: bool
    last_heartbeat_ms: int
    silent_s: float
    """Seconds since its last heartbeat, by this graphd's clock."""
    incarnation: int
    """Number of its start."""
    parts: int
    held_bytes: int
    """Bytes on its disk; 0 if unknown."""
    free_bytes: int
    disk_bytes: int | None
    """Size of its disk. This and the fields below are null if the daemon does not report them."""
    cpu_cores: float | None
    """Processor seconds per second of its process."""
    cpu_count: int | None
    memory_bytes: int | None
    """Resident memory of its process."""
    memory_total_bytes: int | None
    started_ms: int | None
    spaces: list[HeldSpace]


class HostPage(PageModel):
    """Page of daemons."""

    hosts: list[HostRow]
    total: int


class SpaceRow(PageModel):
    """Space in a list."""

    name: str
    space_id: int
    parts: int
    version: int
    """Current version; 0 if there is none yet."""
    created_ms: int
    nodes: int | None
    """Live rows of the current version; null while there is none."""
    edges: int | None
    unavailable_parts: int
    """Partitions that no online host holds."""


class SpacePage(PageModel):
    """Page of spaces."""

    spaces: list[SpaceRow]
    total: int


class TypeRow(PageModel):
    """Type, with its totals in the current version."""

    element: ElementName
    type_id: int
    name: str
    weighted: bool
    features: list[str] = Field(examples=[["price: float32", "picture: bytes"]])
    tables: list[str] = Field(examples=[["cheap = weight / price"]])
    count: int | None
    """Live rows; null while no version is published."""
    positive: int | None
    weight: float | None
    dropped: int | None
    """Edges that are left out because an end node is deleted."""


class PartHolder(PageModel):
    """Storaged that holds partitions of a space."""

    uuid: str
    address: str
    online: bool
    parts: int
    which: str = Field(examples=["0-3, 7"])


class SpaceDetails(PageModel):
    """Space with its types and holders."""

    name: str
    space_id: int
    version: int
    created_ms: int
    parts: int
    ids: str
    placement: str
    direction: str
    types: list[TypeRow]
    holders: list[PartHolder]
    unavailable_parts: int
    """Partitions that no online host holds."""
    schema_: dict[str, Any] = Field(alias="schema")
    """Schema in the format of a schema file."""


class PartRow(PageModel):
    """Partition of a space."""

    part: int
    hosts: list[str]
    """Addresses, the preferred one first."""
    online: bool
    """True if one of the hosts is online."""
    nodes: int | None
    """Nodes of all types in the version; null while there is none."""
    edges: int | None
    weight: float | None
    """Total weight of its nodes and edges."""
    digest: str
    """SHA-256 of the manifest of its image; empty while there is none."""


class PartPage(PageModel):
    """Page of partitions."""

    parts: list[PartRow]
    total: int
    version: int


class PinRow(PageModel):
    """Lease on a version."""

    pin_id: int
    owner: str
    term_s: float
    created_ms: int
    expires_ms: int


class VersionRow(PageModel):
    """Published version that is served."""

    version: int
    current: bool
    watermark: int
    """Commit watermark: number of the last commit that the version contains."""
    job_id: int
    created_ms: int
    digest: str
    restored: bool
    """True if the version was restored from a backup."""
    pins: list[PinRow]


class WeightsRow(PageModel):
    """Weight statistics of one type and weight name, over all partitions."""

    element: ElementName
    type_id: int
    type: str
    weight_name: str
    """Empty for the rows' own weights, else the name of a table."""
    expression: str
    count: int
    positive: int
    zero: int
    subnormal: int
    negative: int
    nan: int
    infinite: int
    weight: float
    effective: float | None
    largest_share: float | None
    audit_tv: float
    audit_rel: float
    underflow: int
    error_bound: float


class PartRangeView(PageModel):
    """Range of neighboring partitions: their weight and the deviation of their tables."""

    first: int
    last: int
    count: int
    positive: int
    weight: float
    audit_tv: float
    audit_rel: float
    underflow: int


class AuditView(PageModel):
    """Audit of the tables of one type and weight name, by partition."""

    weights: WeightsRow
    runs: list[PartRangeView]
    limit_tv: float
    """Limit of total variation: a version with tables beyond it is not published."""


class BarView(PageModel):
    """Rows with weights of at least ``low`` and less than ``high``."""

    low: float
    high: float
    rows: int
    weight: float


class HistogramView(PageModel):
    """Histogram of the positive weights of one type and weight name."""

    bars: list[BarView]
    """Bars of equal width on a logarithmic axis, including empty ones in between."""
    rows: int
    weight: float


class JobRow(PageModel):
    """Job in a list."""

    job_id: int
    space: str
    kind: str
    state: StateName
    ending: StateName | None
    """State that a RUNNING job is about to enter."""
    version: int
    """Version that it published or reads; 0 if none."""
    fraction: float | None
    """Progress from 0 to 1; null while a task has not counted its rows."""
    rows_done: int
    rows_total: int
    rows_per_s: float | None
    eta_s: float | None
    submitted_ms: int
    started_ms: int
    finished_ms: int
    cause: str


class JobPage(PageModel):
    """Page of jobs, newest first."""

    jobs: list[JobRow]
    total: int
    next_before: int
    """`before` of the next page; 0 if there is none."""


class JobDetails(PageModel):
    """Job with its tasks."""

    job: JobRow
    options: dict[str, str]
    watermark: int
    tasks: list[TaskView]
    addresses: dict[str, str]
    """Addresses of the tasks' storageds, by their UUIDs."""


class JobSubmission(PageModel):
    """Job to submit."""

    space: str = Field(min_length=1, max_length=128)
    kind: Literal["build", "audit", "compact"] = "build"
    version: int = Field(default=0, ge=0, lt=1 << 64)
    """Version to audit; 0 for the current one."""


class CompletionRequest(PageModel):
    """Statements up to the cursor."""

    statement: str = Field(max_length=MAX_LENGTH, examples=["SAMPLE 5 VERTICES ON it"])
    space: str = Field(default="", max_length=128)
    """Space that the statements start in."""
    language: Literal["ngql", "euler"] = "ngql"
    parameters: list[str] = Field(default_factory=list, max_length=1000)
    """Names of the parameters, without $."""


class CandidateView(PageModel):
    """Completion of a text."""

    text: str = Field(examples=["item"])
    kind: str = Field(examples=["node type"])


class CompletionsView(PageModel):
    """Completions at the end of a text."""

    prefix_length: int
    """Characters before the cursor that a completion replaces."""
    candidates: list[CandidateView]


class MethodRow(PageModel):
    """Calls of one method in the stored time."""

    method: str
    calls: int
    errors: int
    per_s: float
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None


class RateSeries(PageModel):
    """One number per measurement; null if there was no call."""

    ended_ms: list[int]
    per_s: list[float]
    errors_per_s: list[float]
    p50_s: list[float | None]
    p95_s: list[float | None]
    p99_s: list[float | None]


class RatesView(PageModel):
    """Call rates and latencies of this graphd."""

    step_s: float
    kept_s: float
    """Seconds that the stored measurements cover."""
    method: str
    """Method of the series; empty for all."""
    methods: list[MethodRow]
    series: RateSeries


class OfflinePartitions(PageModel):
    """Partitions of a space that have no host online."""

    space: str
    count: int
    parts: int
    """Number of all partitions of the space."""
    which: str = Field(examples=["0-3, 7"])


class Health(PageModel):
    """Health of the cluster."""

    level: HealthLevel
    """Red: partitions are unavailable. Amber: something else needs attention."""
    sentence: str = Field(examples=["not ready: storaged storaged-1:9779 is offline"])
    offline: list[OfflinePartitions]


class DiskRow(PageModel):
    """Disk of one or more storageds."""

    hosts: list[str]
    """Addresses of the storageds that share it."""
    held_bytes: int
    """Bytes in their folders."""
    free_bytes: int
    total_bytes: int
    """Size of the disk; 0 if not reported."""
    nearly_full: bool
    """True above the share of `graphd.pages.health.NEARLY_FULL_SHARE`."""


class MemoryRow(PageModel):
    """Memory of an online daemon's own process."""

    role: Literal["storaged", "graphd", "all"]
    """``"all"``: the process of an embedded or standalone service has all daemons."""
    address: str
    used_bytes: int
    total_bytes: int
    """Memory of the machine, or the limit of its control group; 0 if not reported."""
    nearly_full: bool
    """True above the share of `graphd.pages.health.NEARLY_FULL_SHARE`."""


class SpaceUse(PageModel):
    """Size of a space."""

    name: str
    parts: int
    version: int
    nodes: int | None
    edges: int | None
    bytes: int | None
    """Disk use over all storageds; null if not measured yet."""


class RateTrend(PageModel):
    """Calls of this graphd over the last minutes, one number per measurement."""

    ended_ms: list[int]
    per_s: list[float]
    p99_s: list[float | None]


class LogRecordView(PageModel):
    """Record of a daemon's log."""

    time_ms: int
    level: str
    logger: str
    text: str


class LogDaemon(PageModel):
    """Daemon that returns its log records."""

    id: str
    """Empty for the daemon that serves the pages."""
    label: str


class LogPage(PageModel):
    """Newest records of a daemon's log, newest first."""

    daemon: str
    daemons: list[LogDaemon]
    records: list[LogRecordView]


class Overview(PageModel):
    """Overview of the cluster."""

    daemon: str
    health: Health
    missing: list[str]
    """Reasons why this graphd cannot serve yet."""
    storageds: int
    storageds_online: int
    graphds: int
    graphds_online: int
    held_bytes: int
    free_bytes: int
    """Free bytes of all disks; a disk that several storageds share counts once."""
    disks: list[DiskRow]
    memory: list[MemoryRow]
    """Daemons that use the largest shares of their memory."""
    spaces: int
    partitions: int
    largest: list[SpaceUse]
    """Largest spaces."""
    jobs: dict[StateName, int]
    running: list[JobRow]
    """Newest jobs that wait or run."""
    failed: list[JobRow]
    """Newest jobs that failed."""
    calls_per_s: float | None
    p99_s: float | None
    """99th percentile of latency over the last minute."""
    trend: RateTrend
    log: list[LogRecordView]
    """Newest log records of this graphd."""


class FeatureView(PageModel):
    """Feature of a node."""

    name: str
    type: str = Field(examples=["float32[16]"])
    values: list[float | int | str | None]
    """First values of a vector; one value, a number or a text, for others. Non-finite numbers are
    null.
    """
    length: int
    """Number of all values, or of the bytes of a text."""
    scalar: bool
    """True if the feature has one value."""


class NeighborRow(PageModel):
    """Neighbor of a node."""

    id: str
    """Id: decimal digits, or the string id."""
    weight: float | None


class NeighborGroup(PageModel):
    """Neighbors of a node along one edge type, heaviest first."""

    edge_type: str
    direction: DirectionName
    neighbor_type: str
    degree: int
    offset: int
    rows: list[NeighborRow]


class NodeDetails(PageModel):
    """Node with its features and neighbors."""

    space: str
    type: str
    id: str
    version: int
    features: list[FeatureView]
    neighbors: list[NeighborGroup]


class PictureNode(PageModel):
    """Node of a sampled neighborhood."""

    type: str
    id: str
    hop: int


class PictureEdge(PageModel):
    """Edge of a sampled neighborhood; its ends are positions in the list of nodes."""

    source: int
    target: int
    type: str
    weight: float | None


class NeighborhoodView(PageModel):
    """Sampled neighborhood of a node; the node itself comes first."""

    version: int
    seed: int
    nodes: list[PictureNode]
    edges: list[PictureEdge]


class NodeTypesView(PageModel):
    """Node types of a space, and example nodes of one."""

    types: list[str]
    type: str
    string_ids: bool
    version: int
    """Current version; 0 if there is none yet."""
    examples: list[str]
    """Ids of some nodes of the type."""


RoleName = Literal["reader", "writer", "builder", "admin"]


class SessionView(PageModel):
    """Caller of the pages."""

    principal: str
    kind: str
    """Kind of its credential, such as api_key."""
    credential_id: str
    """Public part of its credential."""
    is_cluster_admin: bool
    role_everywhere: str
    """Role in every space; empty if it has none."""
    roles: dict[str, str]
    """Roles by space, without that in every space."""
    csrf_token: str
    """Value of the header x-csrf-token of changes; empty for callers without a session."""
    expires_ms: int
    """End of the session; 0 without one."""


class PrincipalRow(PageModel):
    """Principal that has an API key, a role or limits."""

    name: str
    valid_keys: int
    role_everywhere: str
    """Role in every space; empty if it has none."""
    spaces: int
    """Spaces in which it has a role of its own."""


class ApiKeyRow(PageModel):
    """API key, without its secret."""

    key_id: str
    principal: str
    description: str
    created_ms: int
    expires_ms: int
    """0: it never expires."""
    revoked_ms: int
    """0: it is not revoked."""


class GrantRow(PageModel):
    """Role of a principal in a space; the space * is every space."""

    principal: str
    space: str
    role: str


class LimitsRow(PageModel):
    """Limits of a principal in a space, without those that are off."""

    principal: str
    space: str
    limits: dict[str, float]


class AccessView(PageModel):
    """Who may do what, as far as the caller may see it."""

    is_cluster_admin: bool
    """Whether the caller sees everything; others see roles and limits of their spaces."""
    principals: list[PrincipalRow]
    keys: list[ApiKeyRow]
    grants: list[GrantRow]
    limits: list[LimitsRow]
    total: int
    """Rows of the longest list, before it was shortened."""


class NewGrant(PageModel):
    """Role to grant."""

    principal: str = Field(max_length=256)
    space: str = Field(max_length=256)
    role: RoleName


class GrantName(PageModel):
    """Role to revoke."""

    principal: str = Field(max_length=256)
    space: str = Field(max_length=256)


class RevokedGrant(PageModel):
    """Revoked role."""

    notice: str
    """What to do if no administrator is left; empty otherwise."""


_Rate = Annotated[float, Field(ge=0, le=1e15)]
_Count = Annotated[int, Field(ge=0, lt=1 << 53)]


class NewLimits(PageModel):
    """Limits to set, in the place of all limits of the principal in the space; 0: no limit."""

    principal: str = Field(max_length=256)
    space: str = Field(max_length=256)
    calls_per_s: _Rate = 0
    rows_per_s: _Rate = 0
    bytes_per_s: _Rate = 0
    concurrent_calls: _Count = 0
    stored_bytes: _Count = 0
    pins: _Count = 0
    jobs: _Count = 0
    share: _Rate = 0


class NewApiKey(PageModel):
    """API key to create."""

    principal: str = Field(max_length=256)
    description: str = Field(default="", max_length=256)
    expires_days: float = Field(default=0, ge=0, le=36500)
    """Days from now until it expires; 0: never."""


class CreatedApiKey(PageModel):
    """Created API key; no other reply has its secret."""

    key: ApiKeyRow
    secret: str
    """Whole key, as clients send it."""
