from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class IdScope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ID_SCOPE_UNSPECIFIED: _ClassVar[IdScope]
    PER_TYPE: _ClassVar[IdScope]
    GLOBAL: _ClassVar[IdScope]
    STRING: _ClassVar[IdScope]

class Placement(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLACEMENT_UNSPECIFIED: _ClassVar[Placement]
    MOD: _ClassVar[Placement]
    MIX64: _ClassVar[Placement]

class Direction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DIRECTION_UNSPECIFIED: _ClassVar[Direction]
    OUT: _ClassVar[Direction]
    IN: _ClassVar[Direction]
    BOTH: _ClassVar[Direction]

class Multiplicity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MULTIPLICITY_UNSPECIFIED: _ClassVar[Multiplicity]
    MULTI: _ClassVar[Multiplicity]
    UNIQUE: _ClassVar[Multiplicity]

class Missing(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MISSING_UNSPECIFIED: _ClassVar[Missing]
    REJECT: _ClassVar[Missing]
    CREATE: _ClassVar[Missing]

class FeatureKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FEATURE_KIND_UNSPECIFIED: _ClassVar[FeatureKind]
    DENSE: _ClassVar[FeatureKind]
    RAGGED: _ClassVar[FeatureKind]
    BYTES: _ClassVar[FeatureKind]

class Invalid(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INVALID_UNSPECIFIED: _ClassVar[Invalid]
    FAIL: _ClassVar[Invalid]
    ZERO: _ClassVar[Invalid]

class Element(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ELEMENT_UNSPECIFIED: _ClassVar[Element]
    NODE: _ClassVar[Element]
    EDGE: _ClassVar[Element]

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    QUEUE: _ClassVar[JobState]
    RUNNING: _ClassVar[JobState]
    FINISHED: _ClassVar[JobState]
    FAILED: _ClassVar[JobState]
    STOPPED: _ClassVar[JobState]
ID_SCOPE_UNSPECIFIED: IdScope
PER_TYPE: IdScope
GLOBAL: IdScope
STRING: IdScope
PLACEMENT_UNSPECIFIED: Placement
MOD: Placement
MIX64: Placement
DIRECTION_UNSPECIFIED: Direction
OUT: Direction
IN: Direction
BOTH: Direction
MULTIPLICITY_UNSPECIFIED: Multiplicity
MULTI: Multiplicity
UNIQUE: Multiplicity
MISSING_UNSPECIFIED: Missing
REJECT: Missing
CREATE: Missing
FEATURE_KIND_UNSPECIFIED: FeatureKind
DENSE: FeatureKind
RAGGED: FeatureKind
BYTES: FeatureKind
INVALID_UNSPECIFIED: Invalid
FAIL: Invalid
ZERO: Invalid
ELEMENT_UNSPECIFIED: Element
NODE: Element
EDGE: Element
JOB_STATE_UNSPECIFIED: JobState
QUEUE: JobState
RUNNING: JobState
FINISHED: JobState
FAILED: JobState
STOPPED: JobState

class Empty(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Frame(_message.Message):
    __slots__ = ("body",)
    BODY_FIELD_NUMBER: _ClassVar[int]
    body: bytes
    def __init__(self, body: _Optional[bytes] = ...) -> None: ...

class TemporalFilter(_message.Message):
    __slots__ = ("strict", "last", "want_times")
    STRICT_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    WANT_TIMES_FIELD_NUMBER: _ClassVar[int]
    strict: bool
    last: bool
    want_times: bool
    def __init__(self, strict: bool = ..., last: bool = ..., want_times: bool = ...) -> None: ...

class Feature(_message.Message):
    __slots__ = ("name", "kind", "dtype", "shape")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: FeatureKind
    dtype: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[FeatureKind, str]] = ..., dtype: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ...) -> None: ...

class WeightTable(_message.Message):
    __slots__ = ("name", "expression", "invalid")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    INVALID_FIELD_NUMBER: _ClassVar[int]
    name: str
    expression: str
    invalid: Invalid
    def __init__(self, name: _Optional[str] = ..., expression: _Optional[str] = ..., invalid: _Optional[_Union[Invalid, str]] = ...) -> None: ...

class NodeType(_message.Message):
    __slots__ = ("name", "weighted", "features", "tables", "graph_label", "index", "time")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WEIGHTED_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    GRAPH_LABEL_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    weighted: bool
    features: _containers.RepeatedCompositeFieldContainer[Feature]
    tables: _containers.RepeatedCompositeFieldContainer[WeightTable]
    graph_label: str
    index: _containers.RepeatedScalarFieldContainer[str]
    time: str
    def __init__(self, name: _Optional[str] = ..., weighted: bool = ..., features: _Optional[_Iterable[_Union[Feature, _Mapping]]] = ..., tables: _Optional[_Iterable[_Union[WeightTable, _Mapping]]] = ..., graph_label: _Optional[str] = ..., index: _Optional[_Iterable[str]] = ..., time: _Optional[str] = ...) -> None: ...

class EdgeType(_message.Message):
    __slots__ = ("src_type", "relation", "dst_type", "weighted", "multiplicity", "missing", "features", "tables", "time", "index")
    SRC_TYPE_FIELD_NUMBER: _ClassVar[int]
    RELATION_FIELD_NUMBER: _ClassVar[int]
    DST_TYPE_FIELD_NUMBER: _ClassVar[int]
    WEIGHTED_FIELD_NUMBER: _ClassVar[int]
    MULTIPLICITY_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    src_type: str
    relation: str
    dst_type: str
    weighted: bool
    multiplicity: Multiplicity
    missing: Missing
    features: _containers.RepeatedCompositeFieldContainer[Feature]
    tables: _containers.RepeatedCompositeFieldContainer[WeightTable]
    time: str
    index: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, src_type: _Optional[str] = ..., relation: _Optional[str] = ..., dst_type: _Optional[str] = ..., weighted: bool = ..., multiplicity: _Optional[_Union[Multiplicity, str]] = ..., missing: _Optional[_Union[Missing, str]] = ..., features: _Optional[_Iterable[_Union[Feature, _Mapping]]] = ..., tables: _Optional[_Iterable[_Union[WeightTable, _Mapping]]] = ..., time: _Optional[str] = ..., index: _Optional[_Iterable[str]] = ...) -> None: ...

class Schema(_message.Message):
    __slots__ = ("node_types", "edge_types", "parts", "ids", "placement", "direction", "salt")
    NODE_TYPES_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    node_types: _containers.RepeatedCompositeFieldContainer[NodeType]
    edge_types: _containers.RepeatedCompositeFieldContainer[EdgeType]
    parts: int
    ids: IdScope
    placement: Placement
    direction: Direction
    salt: int
    def __init__(self, node_types: _Optional[_Iterable[_Union[NodeType, _Mapping]]] = ..., edge_types: _Optional[_Iterable[_Union[EdgeType, _Mapping]]] = ..., parts: _Optional[int] = ..., ids: _Optional[_Union[IdScope, str]] = ..., placement: _Optional[_Union[Placement, str]] = ..., direction: _Optional[_Union[Direction, str]] = ..., salt: _Optional[int] = ...) -> None: ...

class PartHosts(_message.Message):
    __slots__ = ("hosts",)
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hosts: _Optional[_Iterable[str]] = ...) -> None: ...

class Space(_message.Message):
    __slots__ = ("space_id", "name", "schema", "parts", "version", "created_ms")
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    space_id: int
    name: str
    schema: Schema
    parts: _containers.RepeatedCompositeFieldContainer[PartHosts]
    version: int
    created_ms: int
    def __init__(self, space_id: _Optional[int] = ..., name: _Optional[str] = ..., schema: _Optional[_Union[Schema, _Mapping]] = ..., parts: _Optional[_Iterable[_Union[PartHosts, _Mapping]]] = ..., version: _Optional[int] = ..., created_ms: _Optional[int] = ...) -> None: ...

class PartitionStats(_message.Message):
    __slots__ = ("part", "element", "type_id", "count", "positive", "weight", "weight_name", "audit_tv", "audit_rel", "mix_out", "mix_in", "count_in", "dropped", "underflow", "zero", "subnormal", "negative", "nan", "infinite", "squares", "largest")
    PART_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    POSITIVE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_NAME_FIELD_NUMBER: _ClassVar[int]
    AUDIT_TV_FIELD_NUMBER: _ClassVar[int]
    AUDIT_REL_FIELD_NUMBER: _ClassVar[int]
    MIX_OUT_FIELD_NUMBER: _ClassVar[int]
    MIX_IN_FIELD_NUMBER: _ClassVar[int]
    COUNT_IN_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    UNDERFLOW_FIELD_NUMBER: _ClassVar[int]
    ZERO_FIELD_NUMBER: _ClassVar[int]
    SUBNORMAL_FIELD_NUMBER: _ClassVar[int]
    NEGATIVE_FIELD_NUMBER: _ClassVar[int]
    NAN_FIELD_NUMBER: _ClassVar[int]
    INFINITE_FIELD_NUMBER: _ClassVar[int]
    SQUARES_FIELD_NUMBER: _ClassVar[int]
    LARGEST_FIELD_NUMBER: _ClassVar[int]
    part: int
    element: Element
    type_id: int
    count: int
    positive: int
    weight: float
    weight_name: str
    audit_tv: float
    audit_rel: float
    mix_out: int
    mix_in: int
    count_in: int
    dropped: int
    underflow: int
    zero: int
    subnormal: int
    negative: int
    nan: int
    infinite: int
    squares: float
    largest: float
    def __init__(self, part: _Optional[int] = ..., element: _Optional[_Union[Element, str]] = ..., type_id: _Optional[int] = ..., count: _Optional[int] = ..., positive: _Optional[int] = ..., weight: _Optional[float] = ..., weight_name: _Optional[str] = ..., audit_tv: _Optional[float] = ..., audit_rel: _Optional[float] = ..., mix_out: _Optional[int] = ..., mix_in: _Optional[int] = ..., count_in: _Optional[int] = ..., dropped: _Optional[int] = ..., underflow: _Optional[int] = ..., zero: _Optional[int] = ..., subnormal: _Optional[int] = ..., negative: _Optional[int] = ..., nan: _Optional[int] = ..., infinite: _Optional[int] = ..., squares: _Optional[float] = ..., largest: _Optional[float] = ...) -> None: ...

class PartImage(_message.Message):
    __slots__ = ("part", "digest")
    PART_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    part: int
    digest: str
    def __init__(self, part: _Optional[int] = ..., digest: _Optional[str] = ...) -> None: ...

class Index(_message.Message):
    __slots__ = ("element", "type_id", "column", "kind")
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    element: Element
    type_id: int
    column: str
    kind: str
    def __init__(self, element: _Optional[_Union[Element, str]] = ..., type_id: _Optional[int] = ..., column: _Optional[str] = ..., kind: _Optional[str] = ...) -> None: ...

class Manifest(_message.Message):
    __slots__ = ("space_id", "version", "watermark", "job_id", "created_ms", "totals", "images", "digest", "origin_space_id", "origin_job_id", "indexes")
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    TOTALS_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    INDEXES_FIELD_NUMBER: _ClassVar[int]
    space_id: int
    version: int
    watermark: int
    job_id: int
    created_ms: int
    totals: _containers.RepeatedCompositeFieldContainer[PartitionStats]
    images: _containers.RepeatedCompositeFieldContainer[PartImage]
    digest: str
    origin_space_id: int
    origin_job_id: int
    indexes: _containers.RepeatedCompositeFieldContainer[Index]
    def __init__(self, space_id: _Optional[int] = ..., version: _Optional[int] = ..., watermark: _Optional[int] = ..., job_id: _Optional[int] = ..., created_ms: _Optional[int] = ..., totals: _Optional[_Iterable[_Union[PartitionStats, _Mapping]]] = ..., images: _Optional[_Iterable[_Union[PartImage, _Mapping]]] = ..., digest: _Optional[str] = ..., origin_space_id: _Optional[int] = ..., origin_job_id: _Optional[int] = ..., indexes: _Optional[_Iterable[_Union[Index, _Mapping]]] = ...) -> None: ...

class TypeAudit(_message.Message):
    __slots__ = ("element", "type_id", "count", "positive", "weight", "table_tv", "table_rel", "alias_rows", "row_tv", "row_rel", "underflow")
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    POSITIVE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TABLE_TV_FIELD_NUMBER: _ClassVar[int]
    TABLE_REL_FIELD_NUMBER: _ClassVar[int]
    ALIAS_ROWS_FIELD_NUMBER: _ClassVar[int]
    ROW_TV_FIELD_NUMBER: _ClassVar[int]
    ROW_REL_FIELD_NUMBER: _ClassVar[int]
    UNDERFLOW_FIELD_NUMBER: _ClassVar[int]
    element: Element
    type_id: int
    count: int
    positive: int
    weight: float
    table_tv: float
    table_rel: float
    alias_rows: int
    row_tv: float
    row_rel: float
    underflow: int
    def __init__(self, element: _Optional[_Union[Element, str]] = ..., type_id: _Optional[int] = ..., count: _Optional[int] = ..., positive: _Optional[int] = ..., weight: _Optional[float] = ..., table_tv: _Optional[float] = ..., table_rel: _Optional[float] = ..., alias_rows: _Optional[int] = ..., row_tv: _Optional[float] = ..., row_rel: _Optional[float] = ..., underflow: _Optional[int] = ...) -> None: ...

class ExportedFile(_message.Message):
    __slots__ = ("path", "part", "element", "type_id", "weight_name", "format", "rows", "bytes", "sha256")
    PATH_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_NAME_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    path: str
    part: int
    element: Element
    type_id: int
    weight_name: str
    format: str
    rows: int
    bytes: int
    sha256: str
    def __init__(self, path: _Optional[str] = ..., part: _Optional[int] = ..., element: _Optional[_Union[Element, str]] = ..., type_id: _Optional[int] = ..., weight_name: _Optional[str] = ..., format: _Optional[str] = ..., rows: _Optional[int] = ..., bytes: _Optional[int] = ..., sha256: _Optional[str] = ...) -> None: ...

class PartUnits(_message.Message):
    __slots__ = ("part", "linked", "built", "bytes_linked", "bytes_built")
    PART_FIELD_NUMBER: _ClassVar[int]
    LINKED_FIELD_NUMBER: _ClassVar[int]
    BUILT_FIELD_NUMBER: _ClassVar[int]
    BYTES_LINKED_FIELD_NUMBER: _ClassVar[int]
    BYTES_BUILT_FIELD_NUMBER: _ClassVar[int]
    part: int
    linked: int
    built: int
    bytes_linked: int
    bytes_built: int
    def __init__(self, part: _Optional[int] = ..., linked: _Optional[int] = ..., built: _Optional[int] = ..., bytes_linked: _Optional[int] = ..., bytes_built: _Optional[int] = ...) -> None: ...

class TaskResult(_message.Message):
    __slots__ = ("audit", "folder", "files", "bytes_before", "bytes_after", "totals", "images", "files_read", "bytes_read", "units")
    AUDIT_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    BYTES_BEFORE_FIELD_NUMBER: _ClassVar[int]
    BYTES_AFTER_FIELD_NUMBER: _ClassVar[int]
    TOTALS_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    FILES_READ_FIELD_NUMBER: _ClassVar[int]
    BYTES_READ_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    audit: _containers.RepeatedCompositeFieldContainer[TypeAudit]
    folder: str
    files: _containers.RepeatedCompositeFieldContainer[ExportedFile]
    bytes_before: int
    bytes_after: int
    totals: _containers.RepeatedCompositeFieldContainer[PartitionStats]
    images: _containers.RepeatedCompositeFieldContainer[PartImage]
    files_read: int
    bytes_read: int
    units: _containers.RepeatedCompositeFieldContainer[PartUnits]
    def __init__(self, audit: _Optional[_Iterable[_Union[TypeAudit, _Mapping]]] = ..., folder: _Optional[str] = ..., files: _Optional[_Iterable[_Union[ExportedFile, _Mapping]]] = ..., bytes_before: _Optional[int] = ..., bytes_after: _Optional[int] = ..., totals: _Optional[_Iterable[_Union[PartitionStats, _Mapping]]] = ..., images: _Optional[_Iterable[_Union[PartImage, _Mapping]]] = ..., files_read: _Optional[int] = ..., bytes_read: _Optional[int] = ..., units: _Optional[_Iterable[_Union[PartUnits, _Mapping]]] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("task_id", "job_id", "host", "attempt", "state", "phase", "rows_done", "rows_total", "causes", "started_ms", "finished_ms", "parts", "rows_per_s", "eta_s", "retry_at_ms", "result")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    ROWS_DONE_FIELD_NUMBER: _ClassVar[int]
    ROWS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    CAUSES_FIELD_NUMBER: _ClassVar[int]
    STARTED_MS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_MS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    ROWS_PER_S_FIELD_NUMBER: _ClassVar[int]
    ETA_S_FIELD_NUMBER: _ClassVar[int]
    RETRY_AT_MS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    task_id: int
    job_id: int
    host: str
    attempt: int
    state: JobState
    phase: str
    rows_done: int
    rows_total: int
    causes: _containers.RepeatedScalarFieldContainer[str]
    started_ms: int
    finished_ms: int
    parts: _containers.RepeatedScalarFieldContainer[int]
    rows_per_s: float
    eta_s: float
    retry_at_ms: int
    result: TaskResult
    def __init__(self, task_id: _Optional[int] = ..., job_id: _Optional[int] = ..., host: _Optional[str] = ..., attempt: _Optional[int] = ..., state: _Optional[_Union[JobState, str]] = ..., phase: _Optional[str] = ..., rows_done: _Optional[int] = ..., rows_total: _Optional[int] = ..., causes: _Optional[_Iterable[str]] = ..., started_ms: _Optional[int] = ..., finished_ms: _Optional[int] = ..., parts: _Optional[_Iterable[int]] = ..., rows_per_s: _Optional[float] = ..., eta_s: _Optional[float] = ..., retry_at_ms: _Optional[int] = ..., result: _Optional[_Union[TaskResult, _Mapping]] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("job_id", "space_id", "space", "kind", "state", "watermark", "version", "submitted_ms", "started_ms", "finished_ms", "cause", "tasks", "options", "target_version", "rows_done", "rows_total", "rows_per_s", "eta_s", "ending")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_MS_FIELD_NUMBER: _ClassVar[int]
    STARTED_MS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_MS_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    TARGET_VERSION_FIELD_NUMBER: _ClassVar[int]
    ROWS_DONE_FIELD_NUMBER: _ClassVar[int]
    ROWS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    ROWS_PER_S_FIELD_NUMBER: _ClassVar[int]
    ETA_S_FIELD_NUMBER: _ClassVar[int]
    ENDING_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    space_id: int
    space: str
    kind: str
    state: JobState
    watermark: int
    version: int
    submitted_ms: int
    started_ms: int
    finished_ms: int
    cause: str
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    options: _containers.ScalarMap[str, str]
    target_version: int
    rows_done: int
    rows_total: int
    rows_per_s: float
    eta_s: float
    ending: JobState
    def __init__(self, job_id: _Optional[int] = ..., space_id: _Optional[int] = ..., space: _Optional[str] = ..., kind: _Optional[str] = ..., state: _Optional[_Union[JobState, str]] = ..., watermark: _Optional[int] = ..., version: _Optional[int] = ..., submitted_ms: _Optional[int] = ..., started_ms: _Optional[int] = ..., finished_ms: _Optional[int] = ..., cause: _Optional[str] = ..., tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ..., options: _Optional[_Mapping[str, str]] = ..., target_version: _Optional[int] = ..., rows_done: _Optional[int] = ..., rows_total: _Optional[int] = ..., rows_per_s: _Optional[float] = ..., eta_s: _Optional[float] = ..., ending: _Optional[_Union[JobState, str]] = ...) -> None: ...

class PartFingerprint(_message.Message):
    __slots__ = ("part", "blocks", "rows", "bytes", "checksum")
    PART_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    part: int
    blocks: int
    rows: int
    bytes: int
    checksum: bytes
    def __init__(self, part: _Optional[int] = ..., blocks: _Optional[int] = ..., rows: _Optional[int] = ..., bytes: _Optional[int] = ..., checksum: _Optional[bytes] = ...) -> None: ...

class ListLogRecordsRequest(_message.Message):
    __slots__ = ("limit",)
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ...) -> None: ...

class LogRecord(_message.Message):
    __slots__ = ("time_ms", "level", "logger", "text")
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    LOGGER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    time_ms: int
    level: str
    logger: str
    text: str
    def __init__(self, time_ms: _Optional[int] = ..., level: _Optional[str] = ..., logger: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class LogRecordList(_message.Message):
    __slots__ = ("records",)
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[LogRecord]
    def __init__(self, records: _Optional[_Iterable[_Union[LogRecord, _Mapping]]] = ...) -> None: ...
