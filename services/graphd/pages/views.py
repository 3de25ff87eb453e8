"""What the pages are told, as pydantic models: their docstrings are OpenAPI's descriptions. Times
are milliseconds since 1970, 0 = not yet.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

ElementName = Literal["node", "edge"]
StateName = Literal["QUEUE", "RUNNING", "FINISHED", "FAILED", "STOPPED"]


class PageModel(BaseModel):
    """What all of them have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class HeldSpace(PageModel):
    """A space that a storaged holds parts of."""

    name: str
    parts: int


class HostRow(PageModel):
    """A daemon that beats."""

    uuid: str
    role: Literal["storaged", "graphd"]
    address: str
    online: bool
    last_heartbeat_ms: int
    silent_s: float
    """Seconds since its last beat, by this graphd's clock."""
    incarnation: int
    """Number of its start."""
    parts: int
    held_bytes: int
    """Of its disk; 0: not known."""
    free_bytes: int
    spaces: list[HeldSpace]


class HostPage(PageModel):
    """Some daemons."""

    hosts: list[HostRow]
    total: int


class SpaceRow(PageModel):
    """A space in a list."""

    name: str
    space_id: int
    parts: int
    version: int
    """The current one; 0: none yet."""
    created_ms: int
    nodes: int | None
    """Live rows of the current version; null while there is none."""
    edges: int | None


class SpacePage(PageModel):
    """Some spaces."""

    spaces: list[SpaceRow]
    total: int


class TypeRow(PageModel):
    """A type, with what the current version holds of it."""

    element: ElementName
    type_id: int
    name: str
    weighted: bool
    features: list[str] = Field(examples=[["price: float32", "picture: bytes"]])
    tables: list[str] = Field(examples=[["cheap = weight / price"]])
    count: int | None
    """Live rows; null while nothing was published."""
    positive: int | None
    weight: float | None
    dropped: int | None
    """Edges left out because an end is deleted."""


class PartHolder(PageModel):
    """A storaged that holds parts of a space."""

    uuid: str
    address: str
    online: bool
    parts: int
    which: str = Field(examples=["0-3, 7"])


class SpaceDetails(PageModel):
    """A space."""

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
    schema_: dict[str, Any] = Field(alias="schema")
    """As a schema file has it."""


class PartRow(PageModel):
    """A part."""

    part: int
    hosts: list[str]
    """Addresses, the preferred one first."""
    online: bool
    """Whether one of them is."""
    nodes: int | None
    """Of all types, in the version; null while there is none."""
    edges: int | None
    weight: float | None
    """Of its nodes and edges."""
    digest: str
    """sha256 of its image's manifest; empty while there is none."""


class PartPage(PageModel):
    """Some parts."""

    parts: list[PartRow]
    total: int
    version: int


class PinRow(PageModel):
    """A lease on a version."""

    pin_id: int
    owner: str
    term_s: float
    created_ms: int
    expires_ms: int


class VersionRow(PageModel):
    """A published version that is served."""

    version: int
    current: bool
    cut: int
    """The commit number that it shows."""
    job_id: int
    created_ms: int
    digest: str
    restored: bool
    """Whether it came from a backup."""
    pins: list[PinRow]


class WeightsRow(PageModel):
    """What the weights of one type and name are like, over all parts."""

    element: ElementName
    type_id: int
    type: str
    weight_name: str
    """Empty: the rows' own weights; else a table's name."""
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
    """Neighboring parts: what they weigh, and how exactly their tables are."""

    first: int
    last: int
    count: int
    positive: int
    weight: float
    audit_tv: float
    audit_rel: float
    underflow: int


class AuditView(PageModel):
    """The audit of the tables of one type and name, by part."""

    weights: WeightsRow
    runs: list[PartRangeView]
    limit_tv: float
    """A version whose tables are farther from their weights is not published."""


class BarView(PageModel):
    """Rows whose weight is at least ``low`` and below ``high``."""

    low: float
    high: float
    rows: int
    weight: float


class HistogramView(PageModel):
    """How the positive weights of one type and name are spread."""

    bars: list[BarView]
    """All as wide on a logarithmic axis, the empty ones between too."""
    rows: int
    weight: float


class TaskRow(PageModel):
    """A job's share on one storaged."""

    task_id: int
    host: str
    address: str
    parts: int
    which: str
    attempt: int
    state: StateName
    phase: str
    rows_done: int
    rows_total: int
    rows_per_s: float | None
    eta_s: float | None
    retry_at_ms: int
    causes: list[str]
    """Of every attempt that came to nothing, oldest first."""
    started_ms: int
    finished_ms: int
    made: list[str] = Field(examples=[["12 of 40 units linked (1.2 MB), 28 built (3.4 MB)"]])
    """What it made, in words."""


class JobRow(PageModel):
    """A job in a list."""

    job_id: int
    space: str
    kind: str
    state: StateName
    ending: StateName | None
    """What a RUNNING job is on its way to."""
    version: int
    """That it published, or reads; 0: none."""
    fraction: float | None
    """0 to 1; null while some task has not counted its rows."""
    rows_done: int
    rows_total: int
    rows_per_s: float | None
    eta_s: float | None
    submitted_ms: int
    started_ms: int
    finished_ms: int
    cause: str


class JobPage(PageModel):
    """Some jobs, newest first."""

    jobs: list[JobRow]
    total: int
    next_before: int
    """`before` of the next page; 0: there are no more."""


class JobDetails(PageModel):
    """A job with its tasks."""

    job: JobRow
    options: dict[str, str]
    cut: int
    tasks: list[TaskRow]


class JobSubmission(PageModel):
    """A job to ask for."""

    space: str = Field(min_length=1, max_length=128)
    kind: Literal["build", "audit", "compact"] = "build"
    version: int = Field(default=0, ge=0, lt=1 << 64)
    """For an audit; 0: the current one."""


class MethodRow(PageModel):
    """What was answered of one method in the time that is kept."""

    method: str
    calls: int
    errors: int
    per_s: float
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None


class RateSeries(PageModel):
    """One number per measurement, null where nothing was called."""

    ended_ms: list[int]
    per_s: list[float]
    errors_per_s: list[float]
    p50_s: list[float | None]
    p95_s: list[float | None]
    p99_s: list[float | None]


class RatesView(PageModel):
    """How much this graphd answers, and how fast."""

    step_s: float
    kept_s: float
    """Nothing older than this is known."""
    method: str
    """That the series are of; empty: all."""
    methods: list[MethodRow]
    series: RateSeries


class Overview(PageModel):
    """The cluster at a glance."""

    daemon: str
    missing: list[str]
    """What this graphd lacks before it can answer."""
    storageds: int
    storageds_online: int
    graphds: int
    graphds_online: int
    held_bytes: int
    free_bytes: int
    spaces: int
    jobs: dict[StateName, int]
    running: list[JobRow]
    """The newest jobs that wait or run."""
    failed: list[JobRow]
    """The newest that failed."""
    calls_per_s: float | None
    p99_s: float | None
    """Over the last minute."""
