from asterism_proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LoadState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOAD_STATE_UNSPECIFIED: _ClassVar[LoadState]
    OPEN: _ClassVar[LoadState]
    COMMITTED: _ClassVar[LoadState]
    ABANDONED: _ClassVar[LoadState]

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    STORAGED: _ClassVar[Role]
    GRAPHD: _ClassVar[Role]

class RemovalKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REMOVAL_KIND_UNSPECIFIED: _ClassVar[RemovalKind]
    REMOVE_SPACE: _ClassVar[RemovalKind]
    REMOVE_BUILD: _ClassVar[RemovalKind]
    REMOVE_LEFTOVERS: _ClassVar[RemovalKind]
    REMOVE_LOADS: _ClassVar[RemovalKind]

class SpaceRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SPACE_ROLE_UNSPECIFIED: _ClassVar[SpaceRole]
    READER: _ClassVar[SpaceRole]
    WRITER: _ClassVar[SpaceRole]
    BUILDER: _ClassVar[SpaceRole]
    ADMIN: _ClassVar[SpaceRole]
LOAD_STATE_UNSPECIFIED: LoadState
OPEN: LoadState
COMMITTED: LoadState
ABANDONED: LoadState
ROLE_UNSPECIFIED: Role
STORAGED: Role
GRAPHD: Role
REMOVAL_KIND_UNSPECIFIED: RemovalKind
REMOVE_SPACE: RemovalKind
REMOVE_BUILD: RemovalKind
REMOVE_LEFTOVERS: RemovalKind
REMOVE_LOADS: RemovalKind
SPACE_ROLE_UNSPECIFIED: SpaceRole
READER: SpaceRole
WRITER: SpaceRole
BUILDER: SpaceRole
ADMIN: SpaceRole

class CreateSpaceRequest(_message.Message):
    __slots__ = ("name", "schema", "if_not_exists")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    IF_NOT_EXISTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    schema: _common_pb2.Schema
    if_not_exists: bool
    def __init__(self, name: _Optional[str] = ..., schema: _Optional[_Union[_common_pb2.Schema, _Mapping]] = ..., if_not_exists: bool = ...) -> None: ...

class SpaceRequest(_message.Message):
    __slots__ = ("space",)
    SPACE_FIELD_NUMBER: _ClassVar[int]
    space: str
    def __init__(self, space: _Optional[str] = ...) -> None: ...

class SpaceList(_message.Message):
    __slots__ = ("spaces",)
    SPACES_FIELD_NUMBER: _ClassVar[int]
    spaces: _containers.RepeatedCompositeFieldContainer[_common_pb2.Space]
    def __init__(self, spaces: _Optional[_Iterable[_Union[_common_pb2.Space, _Mapping]]] = ...) -> None: ...

class DropSpaceRequest(_message.Message):
    __slots__ = ("space", "if_exists")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    IF_EXISTS_FIELD_NUMBER: _ClassVar[int]
    space: str
    if_exists: bool
    def __init__(self, space: _Optional[str] = ..., if_exists: bool = ...) -> None: ...

class BeginLoadRequest(_message.Message):
    __slots__ = ("space", "source", "resume_key", "chunks")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    RESUME_KEY_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    space: str
    source: str
    resume_key: str
    chunks: _containers.RepeatedCompositeFieldContainer[Chunk]
    def __init__(self, space: _Optional[str] = ..., source: _Optional[str] = ..., resume_key: _Optional[str] = ..., chunks: _Optional[_Iterable[_Union[Chunk, _Mapping]]] = ...) -> None: ...

class Load(_message.Message):
    __slots__ = ("load_id", "space_id", "space", "state", "commit", "source", "resume_key", "chunks", "created_ms", "rejected", "deletes", "last_seen_ms", "abandoned_ms", "purged", "fingerprinted", "fingerprint", "unsealed_hosts", "seal_number")
    LOAD_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    RESUME_KEY_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    DELETES_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_MS_FIELD_NUMBER: _ClassVar[int]
    ABANDONED_MS_FIELD_NUMBER: _ClassVar[int]
    PURGED_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINTED_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    UNSEALED_HOSTS_FIELD_NUMBER: _ClassVar[int]
    SEAL_NUMBER_FIELD_NUMBER: _ClassVar[int]
    load_id: int
    space_id: int
    space: str
    state: LoadState
    commit: int
    source: str
    resume_key: str
    chunks: _containers.RepeatedCompositeFieldContainer[Chunk]
    created_ms: int
    rejected: int
    deletes: bool
    last_seen_ms: int
    abandoned_ms: int
    purged: bool
    fingerprinted: bool
    fingerprint: _containers.RepeatedCompositeFieldContainer[_common_pb2.PartFingerprint]
    unsealed_hosts: _containers.RepeatedScalarFieldContainer[str]
    seal_number: int
    def __init__(self, load_id: _Optional[int] = ..., space_id: _Optional[int] = ..., space: _Optional[str] = ..., state: _Optional[_Union[LoadState, str]] = ..., commit: _Optional[int] = ..., source: _Optional[str] = ..., resume_key: _Optional[str] = ..., chunks: _Optional[_Iterable[_Union[Chunk, _Mapping]]] = ..., created_ms: _Optional[int] = ..., rejected: _Optional[int] = ..., deletes: bool = ..., last_seen_ms: _Optional[int] = ..., abandoned_ms: _Optional[int] = ..., purged: bool = ..., fingerprinted: bool = ..., fingerprint: _Optional[_Iterable[_Union[_common_pb2.PartFingerprint, _Mapping]]] = ..., unsealed_hosts: _Optional[_Iterable[str]] = ..., seal_number: _Optional[int] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("index", "element", "type_id", "rows", "digest", "first_edge_id", "written")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    FIRST_EDGE_ID_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    index: int
    element: _common_pb2.Element
    type_id: int
    rows: int
    digest: str
    first_edge_id: int
    written: bool
    def __init__(self, index: _Optional[int] = ..., element: _Optional[_Union[_common_pb2.Element, str]] = ..., type_id: _Optional[int] = ..., rows: _Optional[int] = ..., digest: _Optional[str] = ..., first_edge_id: _Optional[int] = ..., written: bool = ...) -> None: ...

class RegisterChunksRequest(_message.Message):
    __slots__ = ("load_id", "chunks", "written")
    LOAD_ID_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    load_id: int
    chunks: _containers.RepeatedCompositeFieldContainer[Chunk]
    written: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, load_id: _Optional[int] = ..., chunks: _Optional[_Iterable[_Union[Chunk, _Mapping]]] = ..., written: _Optional[_Iterable[int]] = ...) -> None: ...

class RegisterChunksReply(_message.Message):
    __slots__ = ("chunks",)
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    chunks: _containers.RepeatedCompositeFieldContainer[Chunk]
    def __init__(self, chunks: _Optional[_Iterable[_Union[Chunk, _Mapping]]] = ...) -> None: ...

class CommitLoadRequest(_message.Message):
    __slots__ = ("load_id", "rejected", "written", "space", "resolved_commit", "deletes", "seals")
    LOAD_ID_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    SPACE_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_COMMIT_FIELD_NUMBER: _ClassVar[int]
    DELETES_FIELD_NUMBER: _ClassVar[int]
    SEALS_FIELD_NUMBER: _ClassVar[int]
    load_id: int
    rejected: int
    written: _containers.RepeatedScalarFieldContainer[int]
    space: str
    resolved_commit: int
    deletes: bool
    seals: _containers.RepeatedCompositeFieldContainer[HostSeal]
    def __init__(self, load_id: _Optional[int] = ..., rejected: _Optional[int] = ..., written: _Optional[_Iterable[int]] = ..., space: _Optional[str] = ..., resolved_commit: _Optional[int] = ..., deletes: bool = ..., seals: _Optional[_Iterable[_Union[HostSeal, _Mapping]]] = ...) -> None: ...

class HostSeal(_message.Message):
    __slots__ = ("host", "number", "parts")
    HOST_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    host: str
    number: int
    parts: _containers.RepeatedCompositeFieldContainer[_common_pb2.PartFingerprint]
    def __init__(self, host: _Optional[str] = ..., number: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[_common_pb2.PartFingerprint, _Mapping]]] = ...) -> None: ...

class LoadRequest(_message.Message):
    __slots__ = ("load_id",)
    LOAD_ID_FIELD_NUMBER: _ClassVar[int]
    load_id: int
    def __init__(self, load_id: _Optional[int] = ...) -> None: ...

class ListCommitsRequest(_message.Message):
    __slots__ = ("space", "after")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    space: str
    after: int
    def __init__(self, space: _Optional[str] = ..., after: _Optional[int] = ...) -> None: ...

class CommitList(_message.Message):
    __slots__ = ("loads", "commits")
    LOADS_FIELD_NUMBER: _ClassVar[int]
    COMMITS_FIELD_NUMBER: _ClassVar[int]
    loads: _containers.RepeatedScalarFieldContainer[int]
    commits: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, loads: _Optional[_Iterable[int]] = ..., commits: _Optional[_Iterable[int]] = ...) -> None: ...

class SubmitJobRequest(_message.Message):
    __slots__ = ("space", "kind", "options", "version")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SPACE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    space: str
    kind: str
    options: _containers.ScalarMap[str, str]
    version: int
    def __init__(self, space: _Optional[str] = ..., kind: _Optional[str] = ..., options: _Optional[_Mapping[str, str]] = ..., version: _Optional[int] = ...) -> None: ...

class ExportSpaceRequest(_message.Message):
    __slots__ = ("space", "version")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class SpaceRecord(_message.Message):
    __slots__ = ("space", "manifest", "loads", "last_commit", "next_edge_ids")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    LOADS_FIELD_NUMBER: _ClassVar[int]
    LAST_COMMIT_FIELD_NUMBER: _ClassVar[int]
    NEXT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    space: _common_pb2.Space
    manifest: _common_pb2.Manifest
    loads: _containers.RepeatedCompositeFieldContainer[Load]
    last_commit: int
    next_edge_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, space: _Optional[_Union[_common_pb2.Space, _Mapping]] = ..., manifest: _Optional[_Union[_common_pb2.Manifest, _Mapping]] = ..., loads: _Optional[_Iterable[_Union[Load, _Mapping]]] = ..., last_commit: _Optional[int] = ..., next_edge_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class ImportSpaceRequest(_message.Message):
    __slots__ = ("name", "record", "address")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    name: str
    record: SpaceRecord
    address: str
    def __init__(self, name: _Optional[str] = ..., record: _Optional[_Union[SpaceRecord, _Mapping]] = ..., address: _Optional[str] = ...) -> None: ...

class JobRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    def __init__(self, job_id: _Optional[int] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("space", "states", "limit", "before", "kinds")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    space: str
    states: _containers.RepeatedScalarFieldContainer[_common_pb2.JobState]
    limit: int
    before: int
    kinds: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, space: _Optional[str] = ..., states: _Optional[_Iterable[_Union[_common_pb2.JobState, str]]] = ..., limit: _Optional[int] = ..., before: _Optional[int] = ..., kinds: _Optional[_Iterable[str]] = ...) -> None: ...

class JobList(_message.Message):
    __slots__ = ("jobs", "next_before", "total")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    NEXT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[_common_pb2.Job]
    next_before: int
    total: int
    def __init__(self, jobs: _Optional[_Iterable[_Union[_common_pb2.Job, _Mapping]]] = ..., next_before: _Optional[int] = ..., total: _Optional[int] = ...) -> None: ...

class Host(_message.Message):
    __slots__ = ("uuid", "role", "address", "http_address", "online", "last_heartbeat_ms", "incarnation", "parts", "free_bytes", "held_bytes", "start_id", "resources")
    UUID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    HTTP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ONLINE_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARTBEAT_MS_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    HELD_BYTES_FIELD_NUMBER: _ClassVar[int]
    START_ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    role: Role
    address: str
    http_address: str
    online: bool
    last_heartbeat_ms: int
    incarnation: int
    parts: int
    free_bytes: int
    held_bytes: int
    start_id: int
    resources: HostResources
    def __init__(self, uuid: _Optional[str] = ..., role: _Optional[_Union[Role, str]] = ..., address: _Optional[str] = ..., http_address: _Optional[str] = ..., online: bool = ..., last_heartbeat_ms: _Optional[int] = ..., incarnation: _Optional[int] = ..., parts: _Optional[int] = ..., free_bytes: _Optional[int] = ..., held_bytes: _Optional[int] = ..., start_id: _Optional[int] = ..., resources: _Optional[_Union[HostResources, _Mapping]] = ...) -> None: ...

class HostResources(_message.Message):
    __slots__ = ("disk_id", "disk_total_bytes", "cpu_cores", "cpu_count", "memory_bytes", "memory_total_bytes", "started_ms", "spaces")
    DISK_ID_FIELD_NUMBER: _ClassVar[int]
    DISK_TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    CPU_CORES_FIELD_NUMBER: _ClassVar[int]
    CPU_COUNT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    STARTED_MS_FIELD_NUMBER: _ClassVar[int]
    SPACES_FIELD_NUMBER: _ClassVar[int]
    disk_id: str
    disk_total_bytes: int
    cpu_cores: float
    cpu_count: int
    memory_bytes: int
    memory_total_bytes: int
    started_ms: int
    spaces: _containers.RepeatedCompositeFieldContainer[SpaceUsage]
    def __init__(self, disk_id: _Optional[str] = ..., disk_total_bytes: _Optional[int] = ..., cpu_cores: _Optional[float] = ..., cpu_count: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., memory_total_bytes: _Optional[int] = ..., started_ms: _Optional[int] = ..., spaces: _Optional[_Iterable[_Union[SpaceUsage, _Mapping]]] = ...) -> None: ...

class SpaceUsage(_message.Message):
    __slots__ = ("space_id", "bytes")
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    space_id: int
    bytes: int
    def __init__(self, space_id: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class HostList(_message.Message):
    __slots__ = ("hosts",)
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedCompositeFieldContainer[Host]
    def __init__(self, hosts: _Optional[_Iterable[_Union[Host, _Mapping]]] = ...) -> None: ...

class VersionList(_message.Message):
    __slots__ = ("versions",)
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Manifest]
    def __init__(self, versions: _Optional[_Iterable[_Union[_common_pb2.Manifest, _Mapping]]] = ...) -> None: ...

class ManifestRequest(_message.Message):
    __slots__ = ("space", "version")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class Pin(_message.Message):
    __slots__ = ("pin_id", "space_id", "space", "version", "owner", "term_s", "created_ms", "expires_ms", "principal")
    PIN_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    TERM_S_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    pin_id: int
    space_id: int
    space: str
    version: int
    owner: str
    term_s: float
    created_ms: int
    expires_ms: int
    principal: str
    def __init__(self, pin_id: _Optional[int] = ..., space_id: _Optional[int] = ..., space: _Optional[str] = ..., version: _Optional[int] = ..., owner: _Optional[str] = ..., term_s: _Optional[float] = ..., created_ms: _Optional[int] = ..., expires_ms: _Optional[int] = ..., principal: _Optional[str] = ...) -> None: ...

class PinVersionRequest(_message.Message):
    __slots__ = ("space", "version", "term_s", "owner")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TERM_S_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    term_s: float
    owner: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., term_s: _Optional[float] = ..., owner: _Optional[str] = ...) -> None: ...

class PinRequest(_message.Message):
    __slots__ = ("pin_id",)
    PIN_ID_FIELD_NUMBER: _ClassVar[int]
    pin_id: int
    def __init__(self, pin_id: _Optional[int] = ...) -> None: ...

class ListPinsRequest(_message.Message):
    __slots__ = ("space",)
    SPACE_FIELD_NUMBER: _ClassVar[int]
    space: str
    def __init__(self, space: _Optional[str] = ...) -> None: ...

class PinList(_message.Message):
    __slots__ = ("pins",)
    PINS_FIELD_NUMBER: _ClassVar[int]
    pins: _containers.RepeatedCompositeFieldContainer[Pin]
    def __init__(self, pins: _Optional[_Iterable[_Union[Pin, _Mapping]]] = ...) -> None: ...

class TaskReport(_message.Message):
    __slots__ = ("task_id", "attempt", "state", "phase", "rows_done", "rows_total", "cause", "totals", "images", "result", "permanent")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    ROWS_DONE_FIELD_NUMBER: _ClassVar[int]
    ROWS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    TOTALS_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    PERMANENT_FIELD_NUMBER: _ClassVar[int]
    task_id: int
    attempt: int
    state: _common_pb2.JobState
    phase: str
    rows_done: int
    rows_total: int
    cause: str
    totals: _containers.RepeatedCompositeFieldContainer[_common_pb2.PartitionStats]
    images: _containers.RepeatedCompositeFieldContainer[_common_pb2.PartImage]
    result: _common_pb2.TaskResult
    permanent: bool
    def __init__(self, task_id: _Optional[int] = ..., attempt: _Optional[int] = ..., state: _Optional[_Union[_common_pb2.JobState, str]] = ..., phase: _Optional[str] = ..., rows_done: _Optional[int] = ..., rows_total: _Optional[int] = ..., cause: _Optional[str] = ..., totals: _Optional[_Iterable[_Union[_common_pb2.PartitionStats, _Mapping]]] = ..., images: _Optional[_Iterable[_Union[_common_pb2.PartImage, _Mapping]]] = ..., result: _Optional[_Union[_common_pb2.TaskResult, _Mapping]] = ..., permanent: bool = ...) -> None: ...

class HeldVersion(_message.Message):
    __slots__ = ("space_id", "version")
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    space_id: int
    version: int
    def __init__(self, space_id: _Optional[int] = ..., version: _Optional[int] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("role", "uuid", "incarnation", "address", "http_address", "tasks", "held_versions", "free_bytes", "dropped_loads", "cluster", "held_bytes", "start_id", "followed_position", "highest_ids", "completed_removals", "resources")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    HTTP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    HELD_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_LOADS_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    HELD_BYTES_FIELD_NUMBER: _ClassVar[int]
    START_ID_FIELD_NUMBER: _ClassVar[int]
    FOLLOWED_POSITION_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_IDS_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_REMOVALS_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    role: Role
    uuid: str
    incarnation: int
    address: str
    http_address: str
    tasks: _containers.RepeatedCompositeFieldContainer[TaskReport]
    held_versions: _containers.RepeatedCompositeFieldContainer[HeldVersion]
    free_bytes: int
    dropped_loads: _containers.RepeatedScalarFieldContainer[int]
    cluster: str
    held_bytes: int
    start_id: int
    followed_position: CatalogPosition
    highest_ids: HighestIds
    completed_removals: _containers.RepeatedScalarFieldContainer[int]
    resources: HostResources
    def __init__(self, role: _Optional[_Union[Role, str]] = ..., uuid: _Optional[str] = ..., incarnation: _Optional[int] = ..., address: _Optional[str] = ..., http_address: _Optional[str] = ..., tasks: _Optional[_Iterable[_Union[TaskReport, _Mapping]]] = ..., held_versions: _Optional[_Iterable[_Union[HeldVersion, _Mapping]]] = ..., free_bytes: _Optional[int] = ..., dropped_loads: _Optional[_Iterable[int]] = ..., cluster: _Optional[str] = ..., held_bytes: _Optional[int] = ..., start_id: _Optional[int] = ..., followed_position: _Optional[_Union[CatalogPosition, _Mapping]] = ..., highest_ids: _Optional[_Union[HighestIds, _Mapping]] = ..., completed_removals: _Optional[_Iterable[int]] = ..., resources: _Optional[_Union[HostResources, _Mapping]] = ...) -> None: ...

class HeartbeatReply(_message.Message):
    __slots__ = ("revision", "lease_s", "position")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    LEASE_S_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    revision: int
    lease_s: float
    position: CatalogPosition
    def __init__(self, revision: _Optional[int] = ..., lease_s: _Optional[float] = ..., position: _Optional[_Union[CatalogPosition, _Mapping]] = ...) -> None: ...

class PollRequest(_message.Message):
    __slots__ = ("role", "uuid", "incarnation", "known_revision", "wait_s", "cluster", "start_id", "followed_position")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    KNOWN_REVISION_FIELD_NUMBER: _ClassVar[int]
    WAIT_S_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    START_ID_FIELD_NUMBER: _ClassVar[int]
    FOLLOWED_POSITION_FIELD_NUMBER: _ClassVar[int]
    role: Role
    uuid: str
    incarnation: int
    known_revision: int
    wait_s: float
    cluster: str
    start_id: int
    followed_position: CatalogPosition
    def __init__(self, role: _Optional[_Union[Role, str]] = ..., uuid: _Optional[str] = ..., incarnation: _Optional[int] = ..., known_revision: _Optional[int] = ..., wait_s: _Optional[float] = ..., cluster: _Optional[str] = ..., start_id: _Optional[int] = ..., followed_position: _Optional[_Union[CatalogPosition, _Mapping]] = ...) -> None: ...

class CatalogPosition(_message.Message):
    __slots__ = ("history", "term", "revision")
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    history: str
    term: str
    revision: int
    def __init__(self, history: _Optional[str] = ..., term: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class HighestIds(_message.Message):
    __slots__ = ("space_id", "job_id", "load_id")
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LOAD_ID_FIELD_NUMBER: _ClassVar[int]
    space_id: int
    job_id: int
    load_id: int
    def __init__(self, space_id: _Optional[int] = ..., job_id: _Optional[int] = ..., load_id: _Optional[int] = ...) -> None: ...

class RemovalOrder(_message.Message):
    __slots__ = ("removal_id", "kind", "space_id", "job_id", "loads", "reason")
    REMOVAL_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LOADS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    removal_id: int
    kind: RemovalKind
    space_id: int
    job_id: int
    loads: _containers.RepeatedScalarFieldContainer[int]
    reason: str
    def __init__(self, removal_id: _Optional[int] = ..., kind: _Optional[_Union[RemovalKind, str]] = ..., space_id: _Optional[int] = ..., job_id: _Optional[int] = ..., loads: _Optional[_Iterable[int]] = ..., reason: _Optional[str] = ...) -> None: ...

class Inventory(_message.Message):
    __slots__ = ("uuid", "cluster", "followed_position", "highest_ids", "spaces")
    UUID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    FOLLOWED_POSITION_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_IDS_FIELD_NUMBER: _ClassVar[int]
    SPACES_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    cluster: str
    followed_position: CatalogPosition
    highest_ids: HighestIds
    spaces: _containers.RepeatedCompositeFieldContainer[InventorySpace]
    def __init__(self, uuid: _Optional[str] = ..., cluster: _Optional[str] = ..., followed_position: _Optional[_Union[CatalogPosition, _Mapping]] = ..., highest_ids: _Optional[_Union[HighestIds, _Mapping]] = ..., spaces: _Optional[_Iterable[_Union[InventorySpace, _Mapping]]] = ...) -> None: ...

class InventorySpace(_message.Message):
    __slots__ = ("space_id", "name", "bytes", "builds", "checkpoints", "loads")
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    BUILDS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    LOADS_FIELD_NUMBER: _ClassVar[int]
    space_id: int
    name: str
    bytes: int
    builds: _containers.RepeatedCompositeFieldContainer[InventoryBuild]
    checkpoints: _containers.RepeatedScalarFieldContainer[int]
    loads: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, space_id: _Optional[int] = ..., name: _Optional[str] = ..., bytes: _Optional[int] = ..., builds: _Optional[_Iterable[_Union[InventoryBuild, _Mapping]]] = ..., checkpoints: _Optional[_Iterable[int]] = ..., loads: _Optional[_Iterable[int]] = ...) -> None: ...

class InventoryBuild(_message.Message):
    __slots__ = ("job_id", "version")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    job_id: int
    version: int
    def __init__(self, job_id: _Optional[int] = ..., version: _Optional[int] = ...) -> None: ...

class UnknownData(_message.Message):
    __slots__ = ("host", "space_id", "space", "bytes", "job_id", "version", "loads")
    HOST_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    SPACE_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LOADS_FIELD_NUMBER: _ClassVar[int]
    host: str
    space_id: int
    space: str
    bytes: int
    job_id: int
    version: int
    loads: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, host: _Optional[str] = ..., space_id: _Optional[int] = ..., space: _Optional[str] = ..., bytes: _Optional[int] = ..., job_id: _Optional[int] = ..., version: _Optional[int] = ..., loads: _Optional[_Iterable[int]] = ...) -> None: ...

class Follower(_message.Message):
    __slots__ = ("uuid", "role", "cluster", "followed_position", "highest_ids", "inventory_reported")
    UUID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    FOLLOWED_POSITION_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_IDS_FIELD_NUMBER: _ClassVar[int]
    INVENTORY_REPORTED_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    role: Role
    cluster: str
    followed_position: CatalogPosition
    highest_ids: HighestIds
    inventory_reported: bool
    def __init__(self, uuid: _Optional[str] = ..., role: _Optional[_Union[Role, str]] = ..., cluster: _Optional[str] = ..., followed_position: _Optional[_Union[CatalogPosition, _Mapping]] = ..., highest_ids: _Optional[_Union[HighestIds, _Mapping]] = ..., inventory_reported: bool = ...) -> None: ...

class CatalogState(_message.Message):
    __slots__ = ("cluster", "position", "followers_ahead", "unknown_data", "open_loads", "jobs", "fault")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    FOLLOWERS_AHEAD_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_DATA_FIELD_NUMBER: _ClassVar[int]
    OPEN_LOADS_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    position: CatalogPosition
    followers_ahead: _containers.RepeatedCompositeFieldContainer[Follower]
    unknown_data: _containers.RepeatedCompositeFieldContainer[UnknownData]
    open_loads: _containers.RepeatedScalarFieldContainer[int]
    jobs: _containers.RepeatedScalarFieldContainer[int]
    fault: str
    def __init__(self, cluster: _Optional[str] = ..., position: _Optional[_Union[CatalogPosition, _Mapping]] = ..., followers_ahead: _Optional[_Iterable[_Union[Follower, _Mapping]]] = ..., unknown_data: _Optional[_Iterable[_Union[UnknownData, _Mapping]]] = ..., open_loads: _Optional[_Iterable[int]] = ..., jobs: _Optional[_Iterable[int]] = ..., fault: _Optional[str] = ...) -> None: ...

class AdoptCatalogRequest(_message.Message):
    __slots__ = ("cluster",)
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    def __init__(self, cluster: _Optional[str] = ...) -> None: ...

class TaskAssignment(_message.Message):
    __slots__ = ("task_id", "job_id", "attempt", "kind", "space_id", "parts", "watermark", "loads", "commits", "options", "version", "manifest", "indexes")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    LOADS_FIELD_NUMBER: _ClassVar[int]
    COMMITS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    INDEXES_FIELD_NUMBER: _ClassVar[int]
    task_id: int
    job_id: int
    attempt: int
    kind: str
    space_id: int
    parts: _containers.RepeatedScalarFieldContainer[int]
    watermark: int
    loads: _containers.RepeatedScalarFieldContainer[int]
    commits: _containers.RepeatedScalarFieldContainer[int]
    options: _containers.ScalarMap[str, str]
    version: int
    manifest: _common_pb2.Manifest
    indexes: _containers.RepeatedCompositeFieldContainer[_common_pb2.Index]
    def __init__(self, task_id: _Optional[int] = ..., job_id: _Optional[int] = ..., attempt: _Optional[int] = ..., kind: _Optional[str] = ..., space_id: _Optional[int] = ..., parts: _Optional[_Iterable[int]] = ..., watermark: _Optional[int] = ..., loads: _Optional[_Iterable[int]] = ..., commits: _Optional[_Iterable[int]] = ..., options: _Optional[_Mapping[str, str]] = ..., version: _Optional[int] = ..., manifest: _Optional[_Union[_common_pb2.Manifest, _Mapping]] = ..., indexes: _Optional[_Iterable[_Union[_common_pb2.Index, _Mapping]]] = ...) -> None: ...

class RetainedJob(_message.Message):
    __slots__ = ("space_id", "job_id")
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    space_id: int
    job_id: int
    def __init__(self, space_id: _Optional[int] = ..., job_id: _Optional[int] = ...) -> None: ...

class SpaceRoute(_message.Message):
    __slots__ = ("space", "versions")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    space: _common_pb2.Space
    versions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Manifest]
    def __init__(self, space: _Optional[_Union[_common_pb2.Space, _Mapping]] = ..., versions: _Optional[_Iterable[_Union[_common_pb2.Manifest, _Mapping]]] = ...) -> None: ...

class PollReply(_message.Message):
    __slots__ = ("revision", "spaces", "task_assignments", "storaged", "open_loads", "abandoned_loads", "retained_jobs", "cluster", "position", "contains_position", "adopted", "removals", "access", "ended_sessions")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    SPACES_FIELD_NUMBER: _ClassVar[int]
    TASK_ASSIGNMENTS_FIELD_NUMBER: _ClassVar[int]
    STORAGED_FIELD_NUMBER: _ClassVar[int]
    OPEN_LOADS_FIELD_NUMBER: _ClassVar[int]
    ABANDONED_LOADS_FIELD_NUMBER: _ClassVar[int]
    RETAINED_JOBS_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    CONTAINS_POSITION_FIELD_NUMBER: _ClassVar[int]
    ADOPTED_FIELD_NUMBER: _ClassVar[int]
    REMOVALS_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    ENDED_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    revision: int
    spaces: _containers.RepeatedCompositeFieldContainer[SpaceRoute]
    task_assignments: _containers.RepeatedCompositeFieldContainer[TaskAssignment]
    storaged: _containers.RepeatedCompositeFieldContainer[Host]
    open_loads: _containers.RepeatedScalarFieldContainer[int]
    abandoned_loads: _containers.RepeatedScalarFieldContainer[int]
    retained_jobs: _containers.RepeatedCompositeFieldContainer[RetainedJob]
    cluster: str
    position: CatalogPosition
    contains_position: bool
    adopted: bool
    removals: _containers.RepeatedCompositeFieldContainer[RemovalOrder]
    access: AccessState
    ended_sessions: _containers.RepeatedCompositeFieldContainer[EndedSession]
    def __init__(self, revision: _Optional[int] = ..., spaces: _Optional[_Iterable[_Union[SpaceRoute, _Mapping]]] = ..., task_assignments: _Optional[_Iterable[_Union[TaskAssignment, _Mapping]]] = ..., storaged: _Optional[_Iterable[_Union[Host, _Mapping]]] = ..., open_loads: _Optional[_Iterable[int]] = ..., abandoned_loads: _Optional[_Iterable[int]] = ..., retained_jobs: _Optional[_Iterable[_Union[RetainedJob, _Mapping]]] = ..., cluster: _Optional[str] = ..., position: _Optional[_Union[CatalogPosition, _Mapping]] = ..., contains_position: bool = ..., adopted: bool = ..., removals: _Optional[_Iterable[_Union[RemovalOrder, _Mapping]]] = ..., access: _Optional[_Union[AccessState, _Mapping]] = ..., ended_sessions: _Optional[_Iterable[_Union[EndedSession, _Mapping]]] = ...) -> None: ...

class EndedSession(_message.Message):
    __slots__ = ("session_id", "principal", "expires_ms")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    principal: str
    expires_ms: int
    def __init__(self, session_id: _Optional[str] = ..., principal: _Optional[str] = ..., expires_ms: _Optional[int] = ...) -> None: ...

class AccessState(_message.Message):
    __slots__ = ("keys", "grants", "limits")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[ApiKey]
    grants: _containers.RepeatedCompositeFieldContainer[RoleGrant]
    limits: _containers.RepeatedCompositeFieldContainer[AccessLimits]
    def __init__(self, keys: _Optional[_Iterable[_Union[ApiKey, _Mapping]]] = ..., grants: _Optional[_Iterable[_Union[RoleGrant, _Mapping]]] = ..., limits: _Optional[_Iterable[_Union[AccessLimits, _Mapping]]] = ...) -> None: ...

class ApiKey(_message.Message):
    __slots__ = ("key_id", "principal", "secret_hash", "created_ms", "expires_ms", "revoked_ms", "description")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    SECRET_HASH_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    REVOKED_MS_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    principal: str
    secret_hash: bytes
    created_ms: int
    expires_ms: int
    revoked_ms: int
    description: str
    def __init__(self, key_id: _Optional[str] = ..., principal: _Optional[str] = ..., secret_hash: _Optional[bytes] = ..., created_ms: _Optional[int] = ..., expires_ms: _Optional[int] = ..., revoked_ms: _Optional[int] = ..., description: _Optional[str] = ...) -> None: ...

class CreateApiKeyRequest(_message.Message):
    __slots__ = ("principal", "expires_s", "description")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_S_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    principal: str
    expires_s: float
    description: str
    def __init__(self, principal: _Optional[str] = ..., expires_s: _Optional[float] = ..., description: _Optional[str] = ...) -> None: ...

class CreateApiKeyReply(_message.Message):
    __slots__ = ("key", "secret")
    KEY_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    key: ApiKey
    secret: str
    def __init__(self, key: _Optional[_Union[ApiKey, _Mapping]] = ..., secret: _Optional[str] = ...) -> None: ...

class ListApiKeysRequest(_message.Message):
    __slots__ = ("principal",)
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    principal: str
    def __init__(self, principal: _Optional[str] = ...) -> None: ...

class ApiKeyList(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[ApiKey]
    def __init__(self, keys: _Optional[_Iterable[_Union[ApiKey, _Mapping]]] = ...) -> None: ...

class RevokeApiKeyRequest(_message.Message):
    __slots__ = ("key_id",)
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    def __init__(self, key_id: _Optional[str] = ...) -> None: ...

class RoleGrant(_message.Message):
    __slots__ = ("principal", "space", "role")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    SPACE_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    principal: str
    space: str
    role: SpaceRole
    def __init__(self, principal: _Optional[str] = ..., space: _Optional[str] = ..., role: _Optional[_Union[SpaceRole, str]] = ...) -> None: ...

class RevokeRoleRequest(_message.Message):
    __slots__ = ("principal", "space")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    SPACE_FIELD_NUMBER: _ClassVar[int]
    principal: str
    space: str
    def __init__(self, principal: _Optional[str] = ..., space: _Optional[str] = ...) -> None: ...

class RevokeRoleReply(_message.Message):
    __slots__ = ("notice",)
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    notice: str
    def __init__(self, notice: _Optional[str] = ...) -> None: ...

class ListGrantsRequest(_message.Message):
    __slots__ = ("principal", "space")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    SPACE_FIELD_NUMBER: _ClassVar[int]
    principal: str
    space: str
    def __init__(self, principal: _Optional[str] = ..., space: _Optional[str] = ...) -> None: ...

class RoleGrantList(_message.Message):
    __slots__ = ("grants",)
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    grants: _containers.RepeatedCompositeFieldContainer[RoleGrant]
    def __init__(self, grants: _Optional[_Iterable[_Union[RoleGrant, _Mapping]]] = ...) -> None: ...

class AccessLimits(_message.Message):
    __slots__ = ("principal", "space", "calls_per_s", "rows_per_s", "bytes_per_s", "concurrent_calls", "stored_bytes", "pins", "jobs", "share")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    SPACE_FIELD_NUMBER: _ClassVar[int]
    CALLS_PER_S_FIELD_NUMBER: _ClassVar[int]
    ROWS_PER_S_FIELD_NUMBER: _ClassVar[int]
    BYTES_PER_S_FIELD_NUMBER: _ClassVar[int]
    CONCURRENT_CALLS_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    PINS_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    principal: str
    space: str
    calls_per_s: float
    rows_per_s: float
    bytes_per_s: float
    concurrent_calls: int
    stored_bytes: int
    pins: int
    jobs: int
    share: float
    def __init__(self, principal: _Optional[str] = ..., space: _Optional[str] = ..., calls_per_s: _Optional[float] = ..., rows_per_s: _Optional[float] = ..., bytes_per_s: _Optional[float] = ..., concurrent_calls: _Optional[int] = ..., stored_bytes: _Optional[int] = ..., pins: _Optional[int] = ..., jobs: _Optional[int] = ..., share: _Optional[float] = ...) -> None: ...

class AccessLimitsList(_message.Message):
    __slots__ = ("limits",)
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    limits: _containers.RepeatedCompositeFieldContainer[AccessLimits]
    def __init__(self, limits: _Optional[_Iterable[_Union[AccessLimits, _Mapping]]] = ...) -> None: ...

class FindDeadLoadsRequest(_message.Message):
    __slots__ = ("uuid", "space_id", "loads", "cluster")
    UUID_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    LOADS_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    space_id: int
    loads: _containers.RepeatedScalarFieldContainer[int]
    cluster: str
    def __init__(self, uuid: _Optional[str] = ..., space_id: _Optional[int] = ..., loads: _Optional[_Iterable[int]] = ..., cluster: _Optional[str] = ...) -> None: ...

class AdmitLoadRequest(_message.Message):
    __slots__ = ("uuid", "cluster", "space_id", "load_id", "chunk")
    UUID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    LOAD_ID_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    cluster: str
    space_id: int
    load_id: int
    chunk: int
    def __init__(self, uuid: _Optional[str] = ..., cluster: _Optional[str] = ..., space_id: _Optional[int] = ..., load_id: _Optional[int] = ..., chunk: _Optional[int] = ...) -> None: ...

class AdmitLoadReply(_message.Message):
    __slots__ = ("number", "first_admission", "chunk")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    FIRST_ADMISSION_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    number: int
    first_admission: bool
    chunk: Chunk
    def __init__(self, number: _Optional[int] = ..., first_admission: bool = ..., chunk: _Optional[_Union[Chunk, _Mapping]] = ...) -> None: ...

class ListFingerprintsRequest(_message.Message):
    __slots__ = ("uuid", "cluster", "space_id", "after", "watermark", "parts")
    UUID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    cluster: str
    space_id: int
    after: int
    watermark: int
    parts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, uuid: _Optional[str] = ..., cluster: _Optional[str] = ..., space_id: _Optional[int] = ..., after: _Optional[int] = ..., watermark: _Optional[int] = ..., parts: _Optional[_Iterable[int]] = ...) -> None: ...

class LoadFingerprint(_message.Message):
    __slots__ = ("load_id", "commit", "fingerprinted", "parts")
    LOAD_ID_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINTED_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    load_id: int
    commit: int
    fingerprinted: bool
    parts: _containers.RepeatedCompositeFieldContainer[_common_pb2.PartFingerprint]
    def __init__(self, load_id: _Optional[int] = ..., commit: _Optional[int] = ..., fingerprinted: bool = ..., parts: _Optional[_Iterable[_Union[_common_pb2.PartFingerprint, _Mapping]]] = ...) -> None: ...

class FingerprintList(_message.Message):
    __slots__ = ("loads", "next_after")
    LOADS_FIELD_NUMBER: _ClassVar[int]
    NEXT_AFTER_FIELD_NUMBER: _ClassVar[int]
    loads: _containers.RepeatedCompositeFieldContainer[LoadFingerprint]
    next_after: int
    def __init__(self, loads: _Optional[_Iterable[_Union[LoadFingerprint, _Mapping]]] = ..., next_after: _Optional[int] = ...) -> None: ...

class FindDeadLoadsReply(_message.Message):
    __slots__ = ("loads",)
    LOADS_FIELD_NUMBER: _ClassVar[int]
    loads: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, loads: _Optional[_Iterable[int]] = ...) -> None: ...
