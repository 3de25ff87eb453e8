from asterism_proto.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BlockKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BLOCK_KIND_UNSPECIFIED: _ClassVar[BlockKind]
    NODES: _ClassVar[BlockKind]
    OUT_EDGES: _ClassVar[BlockKind]
    IN_EDGES: _ClassVar[BlockKind]
    EDGE_FEATURES: _ClassVar[BlockKind]
    NODE_DELETES: _ClassVar[BlockKind]
    OUT_EDGE_DELETES: _ClassVar[BlockKind]
    IN_EDGE_DELETES: _ClassVar[BlockKind]
    NODE_REVIVALS: _ClassVar[BlockKind]
    NODE_TIMES: _ClassVar[BlockKind]
BLOCK_KIND_UNSPECIFIED: BlockKind
NODES: BlockKind
OUT_EDGES: BlockKind
IN_EDGES: BlockKind
EDGE_FEATURES: BlockKind
NODE_DELETES: BlockKind
OUT_EDGE_DELETES: BlockKind
IN_EDGE_DELETES: BlockKind
NODE_REVIVALS: BlockKind
NODE_TIMES: BlockKind

class FindBinaryEndpointRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FindBinaryEndpointReply(_message.Message):
    __slots__ = ("port", "handshake_key", "unix_socket")
    PORT_FIELD_NUMBER: _ClassVar[int]
    HANDSHAKE_KEY_FIELD_NUMBER: _ClassVar[int]
    UNIX_SOCKET_FIELD_NUMBER: _ClassVar[int]
    port: int
    handshake_key: int
    unix_socket: str
    def __init__(self, port: _Optional[int] = ..., handshake_key: _Optional[int] = ..., unix_socket: _Optional[str] = ...) -> None: ...

class VersionRef(_message.Message):
    __slots__ = ("space_id", "version", "digest", "where")
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space_id: int
    version: int
    digest: str
    where: RowFilter
    def __init__(self, space_id: _Optional[int] = ..., version: _Optional[int] = ..., digest: _Optional[str] = ..., where: _Optional[_Union[RowFilter, _Mapping]] = ...) -> None: ...

class RowFilter(_message.Message):
    __slots__ = ("expression", "element", "types", "weight", "both_directions", "counts", "positives", "weights")
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    BOTH_DIRECTIONS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    POSITIVES_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    expression: str
    element: _common_pb2.Element
    types: _containers.RepeatedScalarFieldContainer[int]
    weight: str
    both_directions: bool
    counts: _containers.RepeatedScalarFieldContainer[int]
    positives: _containers.RepeatedScalarFieldContainer[int]
    weights: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, expression: _Optional[str] = ..., element: _Optional[_Union[_common_pb2.Element, str]] = ..., types: _Optional[_Iterable[int]] = ..., weight: _Optional[str] = ..., both_directions: bool = ..., counts: _Optional[_Iterable[int]] = ..., positives: _Optional[_Iterable[int]] = ..., weights: _Optional[_Iterable[float]] = ...) -> None: ...

class EvaluateTermsRequest(_message.Message):
    __slots__ = ("version_ref", "element", "type_id", "parts", "terms")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    element: _common_pb2.Element
    type_id: int
    parts: _containers.RepeatedScalarFieldContainer[int]
    terms: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., element: _Optional[_Union[_common_pb2.Element, str]] = ..., type_id: _Optional[int] = ..., parts: _Optional[_Iterable[int]] = ..., terms: _Optional[_Iterable[str]] = ...) -> None: ...

class EvaluateTermsReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FilterRowsRequest(_message.Message):
    __slots__ = ("version_ref", "parts", "terms")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    parts: _containers.RepeatedScalarFieldContainer[int]
    terms: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., parts: _Optional[_Iterable[int]] = ..., terms: _Optional[_Iterable[str]] = ...) -> None: ...

class FilterRowsReply(_message.Message):
    __slots__ = ("plan",)
    PLAN_FIELD_NUMBER: _ClassVar[int]
    plan: str
    def __init__(self, plan: _Optional[str] = ...) -> None: ...

class WriteBlocksRequest(_message.Message):
    __slots__ = ("space_id", "load_id", "chunk", "kind", "type_id", "parts")
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    LOAD_ID_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    space_id: int
    load_id: int
    chunk: int
    kind: BlockKind
    type_id: int
    parts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, space_id: _Optional[int] = ..., load_id: _Optional[int] = ..., chunk: _Optional[int] = ..., kind: _Optional[_Union[BlockKind, str]] = ..., type_id: _Optional[int] = ..., parts: _Optional[_Iterable[int]] = ...) -> None: ...

class WriteBlocksReply(_message.Message):
    __slots__ = ("bytes",)
    BYTES_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    def __init__(self, bytes: _Optional[int] = ...) -> None: ...

class SealLoadRequest(_message.Message):
    __slots__ = ("space_id", "load_id", "number")
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    LOAD_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    space_id: int
    load_id: int
    number: int
    def __init__(self, space_id: _Optional[int] = ..., load_id: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class SealLoadReply(_message.Message):
    __slots__ = ("number", "parts")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    number: int
    parts: _containers.RepeatedCompositeFieldContainer[_common_pb2.PartFingerprint]
    def __init__(self, number: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[_common_pb2.PartFingerprint, _Mapping]]] = ...) -> None: ...

class ExistsRequest(_message.Message):
    __slots__ = ("space_id", "type_id", "load_id", "as_of", "loads")
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    LOAD_ID_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    LOADS_FIELD_NUMBER: _ClassVar[int]
    space_id: int
    type_id: int
    load_id: int
    as_of: int
    loads: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, space_id: _Optional[int] = ..., type_id: _Optional[int] = ..., load_id: _Optional[int] = ..., as_of: _Optional[int] = ..., loads: _Optional[_Iterable[int]] = ...) -> None: ...

class ExistsReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListRevivalsRequest(_message.Message):
    __slots__ = ("space_id", "load_id", "loads")
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    LOAD_ID_FIELD_NUMBER: _ClassVar[int]
    LOADS_FIELD_NUMBER: _ClassVar[int]
    space_id: int
    load_id: int
    loads: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, space_id: _Optional[int] = ..., load_id: _Optional[int] = ..., loads: _Optional[_Iterable[int]] = ...) -> None: ...

class ListRevivalsReply(_message.Message):
    __slots__ = ("deletes",)
    DELETES_FIELD_NUMBER: _ClassVar[int]
    deletes: bool
    def __init__(self, deletes: bool = ...) -> None: ...

class ReadRevivalsRequest(_message.Message):
    __slots__ = ("space_id", "load_id", "loads", "type_id", "chunk")
    SPACE_ID_FIELD_NUMBER: _ClassVar[int]
    LOAD_ID_FIELD_NUMBER: _ClassVar[int]
    LOADS_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    space_id: int
    load_id: int
    loads: _containers.RepeatedScalarFieldContainer[int]
    type_id: int
    chunk: int
    def __init__(self, space_id: _Optional[int] = ..., load_id: _Optional[int] = ..., loads: _Optional[_Iterable[int]] = ..., type_id: _Optional[int] = ..., chunk: _Optional[int] = ...) -> None: ...

class ReadRevivalsReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DrawNodesRequest(_message.Message):
    __slots__ = ("version_ref", "types", "parts", "seed", "start", "count", "uniform", "exponential_keys", "want_probabilities", "remaining_weight", "weight")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    EXPONENTIAL_KEYS_FIELD_NUMBER: _ClassVar[int]
    WANT_PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    REMAINING_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    types: _containers.RepeatedScalarFieldContainer[int]
    parts: _containers.RepeatedScalarFieldContainer[int]
    seed: int
    start: int
    count: int
    uniform: bool
    exponential_keys: bool
    want_probabilities: bool
    remaining_weight: bool
    weight: str
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., types: _Optional[_Iterable[int]] = ..., parts: _Optional[_Iterable[int]] = ..., seed: _Optional[int] = ..., start: _Optional[int] = ..., count: _Optional[int] = ..., uniform: bool = ..., exponential_keys: bool = ..., want_probabilities: bool = ..., remaining_weight: bool = ..., weight: _Optional[str] = ...) -> None: ...

class DrawNodesReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DrawNodesByNumberRequest(_message.Message):
    __slots__ = ("version_ref", "types", "seed", "uniform", "want_probabilities", "weight")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    WANT_PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    types: _containers.RepeatedScalarFieldContainer[int]
    seed: int
    uniform: bool
    want_probabilities: bool
    weight: str
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., types: _Optional[_Iterable[int]] = ..., seed: _Optional[int] = ..., uniform: bool = ..., want_probabilities: bool = ..., weight: _Optional[str] = ...) -> None: ...

class DrawNodesByNumberReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DrawEdgesRequest(_message.Message):
    __slots__ = ("version_ref", "types", "parts", "seed", "start", "count", "uniform", "exponential_keys", "want_probabilities", "remaining_weight", "weight")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    EXPONENTIAL_KEYS_FIELD_NUMBER: _ClassVar[int]
    WANT_PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    REMAINING_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    types: _containers.RepeatedScalarFieldContainer[int]
    parts: _containers.RepeatedScalarFieldContainer[int]
    seed: int
    start: int
    count: int
    uniform: bool
    exponential_keys: bool
    want_probabilities: bool
    remaining_weight: bool
    weight: str
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., types: _Optional[_Iterable[int]] = ..., parts: _Optional[_Iterable[int]] = ..., seed: _Optional[int] = ..., start: _Optional[int] = ..., count: _Optional[int] = ..., uniform: bool = ..., exponential_keys: bool = ..., want_probabilities: bool = ..., remaining_weight: bool = ..., weight: _Optional[str] = ...) -> None: ...

class DrawEdgesReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DrawNeighborsRequest(_message.Message):
    __slots__ = ("version_ref", "edge_types", "node_type", "count", "replace", "uniform", "direction", "seed", "hop", "want_weights", "want_edge_ids", "want_probabilities", "weight", "distinct_neighbors", "temporal_filter")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    HOP_FIELD_NUMBER: _ClassVar[int]
    WANT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    WANT_PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    DISTINCT_NEIGHBORS_FIELD_NUMBER: _ClassVar[int]
    TEMPORAL_FILTER_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    node_type: int
    count: int
    replace: bool
    uniform: bool
    direction: _common_pb2.Direction
    seed: int
    hop: int
    want_weights: bool
    want_edge_ids: bool
    want_probabilities: bool
    weight: str
    distinct_neighbors: bool
    temporal_filter: _common_pb2.TemporalFilter
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., edge_types: _Optional[_Iterable[int]] = ..., node_type: _Optional[int] = ..., count: _Optional[int] = ..., replace: bool = ..., uniform: bool = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., seed: _Optional[int] = ..., hop: _Optional[int] = ..., want_weights: bool = ..., want_edge_ids: bool = ..., want_probabilities: bool = ..., weight: _Optional[str] = ..., distinct_neighbors: bool = ..., temporal_filter: _Optional[_Union[_common_pb2.TemporalFilter, _Mapping]] = ...) -> None: ...

class DrawNeighborsReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Step(_message.Message):
    __slots__ = ("edge_types",)
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, edge_types: _Optional[_Iterable[int]] = ...) -> None: ...

class WalkRequest(_message.Message):
    __slots__ = ("version_ref", "steps", "length", "node_type", "uniform", "direction", "seed", "restart", "want_edge_ids", "p", "q", "weight", "paths")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    RESTART_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    P_FIELD_NUMBER: _ClassVar[int]
    Q_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PATHS_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    length: int
    node_type: int
    uniform: bool
    direction: _common_pb2.Direction
    seed: int
    restart: float
    want_edge_ids: bool
    p: float
    q: float
    weight: str
    paths: bool
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., length: _Optional[int] = ..., node_type: _Optional[int] = ..., uniform: bool = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., seed: _Optional[int] = ..., restart: _Optional[float] = ..., want_edge_ids: bool = ..., p: _Optional[float] = ..., q: _Optional[float] = ..., weight: _Optional[str] = ..., paths: bool = ...) -> None: ...

class WalkReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HasEdgeRequest(_message.Message):
    __slots__ = ("version_ref", "edge_types", "direction")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    direction: _common_pb2.Direction
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., edge_types: _Optional[_Iterable[int]] = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ...) -> None: ...

class HasEdgeReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HopFanout(_message.Message):
    __slots__ = ("edge_type", "count")
    EDGE_TYPE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    edge_type: int
    count: int
    def __init__(self, edge_type: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class LaborParams(_message.Message):
    __slots__ = ("layer_dependency", "importance_steps")
    LAYER_DEPENDENCY_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_STEPS_FIELD_NUMBER: _ClassVar[int]
    layer_dependency: bool
    importance_steps: int
    def __init__(self, layer_dependency: bool = ..., importance_steps: _Optional[int] = ...) -> None: ...

class ExpandRequest(_message.Message):
    __slots__ = ("version_ref", "hop", "fanouts", "replace", "uniform", "direction", "seed", "want_weights", "want_edge_ids", "weight", "temporal_filter", "labor")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    HOP_FIELD_NUMBER: _ClassVar[int]
    FANOUTS_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    WANT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TEMPORAL_FILTER_FIELD_NUMBER: _ClassVar[int]
    LABOR_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    hop: int
    fanouts: _containers.RepeatedCompositeFieldContainer[HopFanout]
    replace: bool
    uniform: bool
    direction: _common_pb2.Direction
    seed: int
    want_weights: bool
    want_edge_ids: bool
    weight: str
    temporal_filter: _common_pb2.TemporalFilter
    labor: LaborParams
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., hop: _Optional[int] = ..., fanouts: _Optional[_Iterable[_Union[HopFanout, _Mapping]]] = ..., replace: bool = ..., uniform: bool = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., seed: _Optional[int] = ..., want_weights: bool = ..., want_edge_ids: bool = ..., weight: _Optional[str] = ..., temporal_filter: _Optional[_Union[_common_pb2.TemporalFilter, _Mapping]] = ..., labor: _Optional[_Union[LaborParams, _Mapping]] = ...) -> None: ...

class ExpandReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class KHopFanouts(_message.Message):
    __slots__ = ("edge_type", "counts")
    EDGE_TYPE_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    edge_type: int
    counts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, edge_type: _Optional[int] = ..., counts: _Optional[_Iterable[int]] = ...) -> None: ...

class SampleKHopRequest(_message.Message):
    __slots__ = ("version_ref", "fanouts", "disjoint", "expand_all_hops", "max_reply_bytes", "replace", "uniform", "direction", "seed", "want_weights", "want_edge_ids", "weight", "temporal_filter", "labor")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    FANOUTS_FIELD_NUMBER: _ClassVar[int]
    DISJOINT_FIELD_NUMBER: _ClassVar[int]
    EXPAND_ALL_HOPS_FIELD_NUMBER: _ClassVar[int]
    MAX_REPLY_BYTES_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    WANT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TEMPORAL_FILTER_FIELD_NUMBER: _ClassVar[int]
    LABOR_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    fanouts: _containers.RepeatedCompositeFieldContainer[KHopFanouts]
    disjoint: bool
    expand_all_hops: bool
    max_reply_bytes: int
    replace: bool
    uniform: bool
    direction: _common_pb2.Direction
    seed: int
    want_weights: bool
    want_edge_ids: bool
    weight: str
    temporal_filter: _common_pb2.TemporalFilter
    labor: LaborParams
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., fanouts: _Optional[_Iterable[_Union[KHopFanouts, _Mapping]]] = ..., disjoint: bool = ..., expand_all_hops: bool = ..., max_reply_bytes: _Optional[int] = ..., replace: bool = ..., uniform: bool = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., seed: _Optional[int] = ..., want_weights: bool = ..., want_edge_ids: bool = ..., weight: _Optional[str] = ..., temporal_filter: _Optional[_Union[_common_pb2.TemporalFilter, _Mapping]] = ..., labor: _Optional[_Union[LaborParams, _Mapping]] = ...) -> None: ...

class SampleKHopReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadNeighborsRequest(_message.Message):
    __slots__ = ("version_ref", "edge_types", "node_type", "direction", "want_weights", "want_edge_ids", "weight", "top")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    WANT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    node_type: int
    direction: _common_pb2.Direction
    want_weights: bool
    want_edge_ids: bool
    weight: str
    top: int
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., edge_types: _Optional[_Iterable[int]] = ..., node_type: _Optional[int] = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., want_weights: bool = ..., want_edge_ids: bool = ..., weight: _Optional[str] = ..., top: _Optional[int] = ...) -> None: ...

class ReadNeighborsReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadDegreesRequest(_message.Message):
    __slots__ = ("version_ref", "edge_types", "node_type", "direction", "type_weights", "uniform", "weight")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    TYPE_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    node_type: int
    direction: _common_pb2.Direction
    type_weights: bool
    uniform: bool
    weight: str
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., edge_types: _Optional[_Iterable[int]] = ..., node_type: _Optional[int] = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., type_weights: bool = ..., uniform: bool = ..., weight: _Optional[str] = ...) -> None: ...

class ReadDegreesReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadInducedEdgesRequest(_message.Message):
    __slots__ = ("version_ref", "edge_types", "node_type", "direction", "want_weights", "want_edge_ids", "weight")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    WANT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    node_type: int
    direction: _common_pb2.Direction
    want_weights: bool
    want_edge_ids: bool
    weight: str
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., edge_types: _Optional[_Iterable[int]] = ..., node_type: _Optional[int] = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., want_weights: bool = ..., want_edge_ids: bool = ..., weight: _Optional[str] = ...) -> None: ...

class ReadInducedEdgesReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadNodeTypesRequest(_message.Message):
    __slots__ = ("version_ref", "node_type")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    node_type: int
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., node_type: _Optional[int] = ...) -> None: ...

class ReadNodeTypesReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadGraphLabelsRequest(_message.Message):
    __slots__ = ("version_ref", "parts", "cursor")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    parts: _containers.RepeatedScalarFieldContainer[int]
    cursor: int
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., parts: _Optional[_Iterable[int]] = ..., cursor: _Optional[int] = ...) -> None: ...

class ReadGraphLabelsReply(_message.Message):
    __slots__ = ("next_cursor",)
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    next_cursor: int
    def __init__(self, next_cursor: _Optional[int] = ...) -> None: ...

class ReadNodesByLabelRequest(_message.Message):
    __slots__ = ("version_ref", "parts")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    parts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., parts: _Optional[_Iterable[int]] = ...) -> None: ...

class ReadNodesByLabelReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadNodeFeaturesRequest(_message.Message):
    __slots__ = ("version_ref", "type_id", "names", "weight")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    type_id: int
    names: _containers.RepeatedScalarFieldContainer[str]
    weight: str
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., type_id: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ..., weight: _Optional[str] = ...) -> None: ...

class ReadNodeFeaturesReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadEdgeFeaturesRequest(_message.Message):
    __slots__ = ("version_ref", "type_id", "names")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    type_id: int
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., type_id: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class ReadEdgeFeaturesReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadNodesRequest(_message.Message):
    __slots__ = ("version_ref", "type_id", "part", "cursor", "limit", "names", "weight")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    type_id: int
    part: int
    cursor: int
    limit: int
    names: _containers.RepeatedScalarFieldContainer[str]
    weight: str
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., type_id: _Optional[int] = ..., part: _Optional[int] = ..., cursor: _Optional[int] = ..., limit: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ..., weight: _Optional[str] = ...) -> None: ...

class ReadNodesReply(_message.Message):
    __slots__ = ("next_cursor",)
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    next_cursor: int
    def __init__(self, next_cursor: _Optional[int] = ...) -> None: ...

class ReadNodesAtRequest(_message.Message):
    __slots__ = ("version_ref", "type_id")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    type_id: int
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., type_id: _Optional[int] = ...) -> None: ...

class ReadNodesAtReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadEdgesAtRequest(_message.Message):
    __slots__ = ("version_ref", "type_id", "weight")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    type_id: int
    weight: str
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., type_id: _Optional[int] = ..., weight: _Optional[str] = ...) -> None: ...

class ReadEdgesAtReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReadEdgesRequest(_message.Message):
    __slots__ = ("version_ref", "type_id", "part", "cursor", "limit", "weight")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    type_id: int
    part: int
    cursor: int
    limit: int
    weight: str
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., type_id: _Optional[int] = ..., part: _Optional[int] = ..., cursor: _Optional[int] = ..., limit: _Optional[int] = ..., weight: _Optional[str] = ...) -> None: ...

class ReadEdgesReply(_message.Message):
    __slots__ = ("next_cursor",)
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    next_cursor: int
    def __init__(self, next_cursor: _Optional[int] = ...) -> None: ...

class ReadWeightHistogramRequest(_message.Message):
    __slots__ = ("version_ref", "element", "type_id", "parts", "weight")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    element: _common_pb2.Element
    type_id: int
    parts: _containers.RepeatedScalarFieldContainer[int]
    weight: str
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., element: _Optional[_Union[_common_pb2.Element, str]] = ..., type_id: _Optional[int] = ..., parts: _Optional[_Iterable[int]] = ..., weight: _Optional[str] = ...) -> None: ...

class ReadWeightHistogramReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PushPagerankRequest(_message.Message):
    __slots__ = ("version_ref", "edge_types", "direction", "uniform", "alpha", "epsilon", "top", "weight")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    direction: _common_pb2.Direction
    uniform: bool
    alpha: float
    epsilon: float
    top: int
    weight: str
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., edge_types: _Optional[_Iterable[int]] = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., uniform: bool = ..., alpha: _Optional[float] = ..., epsilon: _Optional[float] = ..., top: _Optional[int] = ..., weight: _Optional[str] = ...) -> None: ...

class PushPagerankReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UpdateImportanceRequest(_message.Message):
    __slots__ = ("version_ref", "fanouts", "uniform", "direction", "weight")
    VERSION_REF_FIELD_NUMBER: _ClassVar[int]
    FANOUTS_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    version_ref: VersionRef
    fanouts: _containers.RepeatedCompositeFieldContainer[HopFanout]
    uniform: bool
    direction: _common_pb2.Direction
    weight: str
    def __init__(self, version_ref: _Optional[_Union[VersionRef, _Mapping]] = ..., fanouts: _Optional[_Iterable[_Union[HopFanout, _Mapping]]] = ..., uniform: bool = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., weight: _Optional[str] = ...) -> None: ...

class UpdateImportanceReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
