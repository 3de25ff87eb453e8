from asterism_proto.v1 import common_pb2 as _common_pb2
from asterism_proto.v1 import metad_pb2 as _metad_pb2
from asterism_proto.v1 import storaged_pb2 as _storaged_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LayerMeasure(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LAYER_MEASURE_UNSPECIFIED: _ClassVar[LayerMeasure]
    SUM: _ClassVar[LayerMeasure]
    SQRT: _ClassVar[LayerMeasure]
    SQUARES: _ClassVar[LayerMeasure]
LAYER_MEASURE_UNSPECIFIED: LayerMeasure
SUM: LayerMeasure
SQRT: LayerMeasure
SQUARES: LayerMeasure

class WriteRequest(_message.Message):
    __slots__ = ("space", "load_id", "chunk", "kind", "type_id", "first_edge_id", "ends_known")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    LOAD_ID_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    FIRST_EDGE_ID_FIELD_NUMBER: _ClassVar[int]
    ENDS_KNOWN_FIELD_NUMBER: _ClassVar[int]
    space: str
    load_id: int
    chunk: int
    kind: _storaged_pb2.BlockKind
    type_id: int
    first_edge_id: int
    ends_known: bool
    def __init__(self, space: _Optional[str] = ..., load_id: _Optional[int] = ..., chunk: _Optional[int] = ..., kind: _Optional[_Union[_storaged_pb2.BlockKind, str]] = ..., type_id: _Optional[int] = ..., first_edge_id: _Optional[int] = ..., ends_known: bool = ...) -> None: ...

class WriteReply(_message.Message):
    __slots__ = ("rows",)
    ROWS_FIELD_NUMBER: _ClassVar[int]
    rows: int
    def __init__(self, rows: _Optional[int] = ...) -> None: ...

class WriteOnceRequest(_message.Message):
    __slots__ = ("space", "kind", "type_id")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    space: str
    kind: _storaged_pb2.BlockKind
    type_id: int
    def __init__(self, space: _Optional[str] = ..., kind: _Optional[_Union[_storaged_pb2.BlockKind, str]] = ..., type_id: _Optional[int] = ...) -> None: ...

class WriteOnceReply(_message.Message):
    __slots__ = ("rows", "first_edge_id", "commit")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    FIRST_EDGE_ID_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    rows: int
    first_edge_id: int
    commit: int
    def __init__(self, rows: _Optional[int] = ..., first_edge_id: _Optional[int] = ..., commit: _Optional[int] = ...) -> None: ...

class FindNodesRequest(_message.Message):
    __slots__ = ("space", "type_id", "load_id")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    LOAD_ID_FIELD_NUMBER: _ClassVar[int]
    space: str
    type_id: int
    load_id: int
    def __init__(self, space: _Optional[str] = ..., type_id: _Optional[int] = ..., load_id: _Optional[int] = ...) -> None: ...

class FindNodesReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SampleNodesRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "count", "types", "uniform", "distinct", "want_probabilities", "weight", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DISTINCT_FIELD_NUMBER: _ClassVar[int]
    WANT_PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    count: int
    types: _containers.RepeatedScalarFieldContainer[int]
    uniform: bool
    distinct: bool
    want_probabilities: bool
    weight: str
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., count: _Optional[int] = ..., types: _Optional[_Iterable[int]] = ..., uniform: bool = ..., distinct: bool = ..., want_probabilities: bool = ..., weight: _Optional[str] = ..., where: _Optional[str] = ...) -> None: ...

class SampleNodesReply(_message.Message):
    __slots__ = ("version", "digest", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., key_version: _Optional[int] = ...) -> None: ...

class SampleNodesLikeRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "node_type", "count", "uniform", "allow_unknown", "want_probabilities", "weight", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    ALLOW_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    WANT_PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    node_type: int
    count: int
    uniform: bool
    allow_unknown: bool
    want_probabilities: bool
    weight: str
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., node_type: _Optional[int] = ..., count: _Optional[int] = ..., uniform: bool = ..., allow_unknown: bool = ..., want_probabilities: bool = ..., weight: _Optional[str] = ..., where: _Optional[str] = ...) -> None: ...

class SampleNodesLikeReply(_message.Message):
    __slots__ = ("version", "digest", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., key_version: _Optional[int] = ...) -> None: ...

class SampleNegativesRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "types", "rows", "count", "uniform", "want_probabilities", "weight", "exclude_edge_types", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    WANT_PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    types: _containers.RepeatedScalarFieldContainer[int]
    rows: int
    count: int
    uniform: bool
    want_probabilities: bool
    weight: str
    exclude_edge_types: _containers.RepeatedScalarFieldContainer[int]
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., types: _Optional[_Iterable[int]] = ..., rows: _Optional[int] = ..., count: _Optional[int] = ..., uniform: bool = ..., want_probabilities: bool = ..., weight: _Optional[str] = ..., exclude_edge_types: _Optional[_Iterable[int]] = ..., where: _Optional[str] = ...) -> None: ...

class SampleNegativesReply(_message.Message):
    __slots__ = ("version", "digest", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., key_version: _Optional[int] = ...) -> None: ...

class SampleEdgesRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "count", "types", "uniform", "distinct", "want_probabilities", "weight", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DISTINCT_FIELD_NUMBER: _ClassVar[int]
    WANT_PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    count: int
    types: _containers.RepeatedScalarFieldContainer[int]
    uniform: bool
    distinct: bool
    want_probabilities: bool
    weight: str
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., count: _Optional[int] = ..., types: _Optional[_Iterable[int]] = ..., uniform: bool = ..., distinct: bool = ..., want_probabilities: bool = ..., weight: _Optional[str] = ..., where: _Optional[str] = ...) -> None: ...

class SampleEdgesReply(_message.Message):
    __slots__ = ("version", "digest", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., key_version: _Optional[int] = ...) -> None: ...

class SampleNeighborsRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "edge_types", "node_type", "count", "replace", "uniform", "direction", "want_weights", "want_edge_ids", "want_probabilities", "weight", "temporal_filter", "share", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    WANT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    WANT_PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TEMPORAL_FILTER_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    node_type: int
    count: int
    replace: bool
    uniform: bool
    direction: _common_pb2.Direction
    want_weights: bool
    want_edge_ids: bool
    want_probabilities: bool
    weight: str
    temporal_filter: _common_pb2.TemporalFilter
    share: str
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., edge_types: _Optional[_Iterable[int]] = ..., node_type: _Optional[int] = ..., count: _Optional[int] = ..., replace: bool = ..., uniform: bool = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., want_weights: bool = ..., want_edge_ids: bool = ..., want_probabilities: bool = ..., weight: _Optional[str] = ..., temporal_filter: _Optional[_Union[_common_pb2.TemporalFilter, _Mapping]] = ..., share: _Optional[str] = ..., where: _Optional[str] = ...) -> None: ...

class SampleNeighborsReply(_message.Message):
    __slots__ = ("version", "digest", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., key_version: _Optional[int] = ...) -> None: ...

class Hop(_message.Message):
    __slots__ = ("edge_types", "count", "share")
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    count: int
    share: str
    def __init__(self, edge_types: _Optional[_Iterable[int]] = ..., count: _Optional[int] = ..., share: _Optional[str] = ...) -> None: ...

class NodeColumns(_message.Message):
    __slots__ = ("type_id", "names")
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    type_id: int
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, type_id: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class SampleFanoutRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "hops", "node_type", "replace", "uniform", "direction", "want_weights", "want_edge_ids", "want_probabilities", "weight", "temporal_filter", "node_features", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    HOPS_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    WANT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    WANT_PROBABILITIES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TEMPORAL_FILTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FEATURES_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    hops: _containers.RepeatedCompositeFieldContainer[Hop]
    node_type: int
    replace: bool
    uniform: bool
    direction: _common_pb2.Direction
    want_weights: bool
    want_edge_ids: bool
    want_probabilities: bool
    weight: str
    temporal_filter: _common_pb2.TemporalFilter
    node_features: _containers.RepeatedCompositeFieldContainer[NodeColumns]
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., hops: _Optional[_Iterable[_Union[Hop, _Mapping]]] = ..., node_type: _Optional[int] = ..., replace: bool = ..., uniform: bool = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., want_weights: bool = ..., want_edge_ids: bool = ..., want_probabilities: bool = ..., weight: _Optional[str] = ..., temporal_filter: _Optional[_Union[_common_pb2.TemporalFilter, _Mapping]] = ..., node_features: _Optional[_Iterable[_Union[NodeColumns, _Mapping]]] = ..., where: _Optional[str] = ...) -> None: ...

class SampleFanoutReply(_message.Message):
    __slots__ = ("version", "digest", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., key_version: _Optional[int] = ...) -> None: ...

class SampleLayerRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "edge_types", "count", "node_type", "width", "replace", "uniform", "direction", "measure", "want_edge_ids", "weight", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    MEASURE_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    count: int
    node_type: int
    width: int
    replace: bool
    uniform: bool
    direction: _common_pb2.Direction
    measure: LayerMeasure
    want_edge_ids: bool
    weight: str
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., edge_types: _Optional[_Iterable[int]] = ..., count: _Optional[int] = ..., node_type: _Optional[int] = ..., width: _Optional[int] = ..., replace: bool = ..., uniform: bool = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., measure: _Optional[_Union[LayerMeasure, str]] = ..., want_edge_ids: bool = ..., weight: _Optional[str] = ..., where: _Optional[str] = ...) -> None: ...

class SampleLayerReply(_message.Message):
    __slots__ = ("version", "digest", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., key_version: _Optional[int] = ...) -> None: ...

class SampleLayersRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "hops", "node_type", "width", "replace", "uniform", "direction", "measure", "want_edge_ids", "weight", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    HOPS_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    MEASURE_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    hops: _containers.RepeatedCompositeFieldContainer[Hop]
    node_type: int
    width: int
    replace: bool
    uniform: bool
    direction: _common_pb2.Direction
    measure: LayerMeasure
    want_edge_ids: bool
    weight: str
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., hops: _Optional[_Iterable[_Union[Hop, _Mapping]]] = ..., node_type: _Optional[int] = ..., width: _Optional[int] = ..., replace: bool = ..., uniform: bool = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., measure: _Optional[_Union[LayerMeasure, str]] = ..., want_edge_ids: bool = ..., weight: _Optional[str] = ..., where: _Optional[str] = ...) -> None: ...

class SampleLayersReply(_message.Message):
    __slots__ = ("version", "digest", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., key_version: _Optional[int] = ...) -> None: ...

class EdgeTypeFanouts(_message.Message):
    __slots__ = ("edge_type", "counts")
    EDGE_TYPE_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    edge_type: int
    counts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, edge_type: _Optional[int] = ..., counts: _Optional[_Iterable[int]] = ...) -> None: ...

class SampleSubgraphRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "fanouts", "node_type", "replace", "uniform", "direction", "disjoint", "expand_all_hops", "want_edge_ids", "want_weights", "weight", "temporal_filter", "node_features", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    FANOUTS_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    DISJOINT_FIELD_NUMBER: _ClassVar[int]
    EXPAND_ALL_HOPS_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    WANT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TEMPORAL_FILTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FEATURES_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    fanouts: _containers.RepeatedCompositeFieldContainer[EdgeTypeFanouts]
    node_type: int
    replace: bool
    uniform: bool
    direction: _common_pb2.Direction
    disjoint: bool
    expand_all_hops: bool
    want_edge_ids: bool
    want_weights: bool
    weight: str
    temporal_filter: _common_pb2.TemporalFilter
    node_features: _containers.RepeatedCompositeFieldContainer[NodeColumns]
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., fanouts: _Optional[_Iterable[_Union[EdgeTypeFanouts, _Mapping]]] = ..., node_type: _Optional[int] = ..., replace: bool = ..., uniform: bool = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., disjoint: bool = ..., expand_all_hops: bool = ..., want_edge_ids: bool = ..., want_weights: bool = ..., weight: _Optional[str] = ..., temporal_filter: _Optional[_Union[_common_pb2.TemporalFilter, _Mapping]] = ..., node_features: _Optional[_Iterable[_Union[NodeColumns, _Mapping]]] = ..., where: _Optional[str] = ...) -> None: ...

class SampleSubgraphReply(_message.Message):
    __slots__ = ("version", "digest", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., key_version: _Optional[int] = ...) -> None: ...

class SampleEgoSubgraphsRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "fanouts", "node_type", "replace", "uniform", "direction", "disjoint", "expand_all_hops", "want_edge_ids", "want_weights", "weight", "edge_types", "node_features", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    FANOUTS_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    DISJOINT_FIELD_NUMBER: _ClassVar[int]
    EXPAND_ALL_HOPS_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    WANT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    NODE_FEATURES_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    fanouts: _containers.RepeatedCompositeFieldContainer[EdgeTypeFanouts]
    node_type: int
    replace: bool
    uniform: bool
    direction: _common_pb2.Direction
    disjoint: bool
    expand_all_hops: bool
    want_edge_ids: bool
    want_weights: bool
    weight: str
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    node_features: _containers.RepeatedCompositeFieldContainer[NodeColumns]
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., fanouts: _Optional[_Iterable[_Union[EdgeTypeFanouts, _Mapping]]] = ..., node_type: _Optional[int] = ..., replace: bool = ..., uniform: bool = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., disjoint: bool = ..., expand_all_hops: bool = ..., want_edge_ids: bool = ..., want_weights: bool = ..., weight: _Optional[str] = ..., edge_types: _Optional[_Iterable[int]] = ..., node_features: _Optional[_Iterable[_Union[NodeColumns, _Mapping]]] = ..., where: _Optional[str] = ...) -> None: ...

class SampleEgoSubgraphsReply(_message.Message):
    __slots__ = ("version", "digest", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., key_version: _Optional[int] = ...) -> None: ...

class SampleLaborRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "fanouts", "node_type", "importance_steps", "uniform", "direction", "layer_dependency", "expand_all_hops", "want_edge_ids", "want_weights", "weight", "node_features", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    FANOUTS_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_STEPS_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    LAYER_DEPENDENCY_FIELD_NUMBER: _ClassVar[int]
    EXPAND_ALL_HOPS_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    WANT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NODE_FEATURES_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    fanouts: _containers.RepeatedCompositeFieldContainer[EdgeTypeFanouts]
    node_type: int
    importance_steps: int
    uniform: bool
    direction: _common_pb2.Direction
    layer_dependency: bool
    expand_all_hops: bool
    want_edge_ids: bool
    want_weights: bool
    weight: str
    node_features: _containers.RepeatedCompositeFieldContainer[NodeColumns]
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., fanouts: _Optional[_Iterable[_Union[EdgeTypeFanouts, _Mapping]]] = ..., node_type: _Optional[int] = ..., importance_steps: _Optional[int] = ..., uniform: bool = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., layer_dependency: bool = ..., expand_all_hops: bool = ..., want_edge_ids: bool = ..., want_weights: bool = ..., weight: _Optional[str] = ..., node_features: _Optional[_Iterable[_Union[NodeColumns, _Mapping]]] = ..., where: _Optional[str] = ...) -> None: ...

class SampleLaborReply(_message.Message):
    __slots__ = ("version", "digest", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., key_version: _Optional[int] = ...) -> None: ...

class NodeCounts(_message.Message):
    __slots__ = ("type_id", "counts")
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    type_id: int
    counts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, type_id: _Optional[int] = ..., counts: _Optional[_Iterable[int]] = ...) -> None: ...

class SampleHgtRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "counts", "node_type", "uniform", "direction", "want_edge_ids", "want_weights", "weight", "traversed_edge_types", "edge_types", "node_features", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    WANT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TRAVERSED_EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    NODE_FEATURES_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    counts: _containers.RepeatedCompositeFieldContainer[NodeCounts]
    node_type: int
    uniform: bool
    direction: _common_pb2.Direction
    want_edge_ids: bool
    want_weights: bool
    weight: str
    traversed_edge_types: _containers.RepeatedScalarFieldContainer[int]
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    node_features: _containers.RepeatedCompositeFieldContainer[NodeColumns]
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., counts: _Optional[_Iterable[_Union[NodeCounts, _Mapping]]] = ..., node_type: _Optional[int] = ..., uniform: bool = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., want_edge_ids: bool = ..., want_weights: bool = ..., weight: _Optional[str] = ..., traversed_edge_types: _Optional[_Iterable[int]] = ..., edge_types: _Optional[_Iterable[int]] = ..., node_features: _Optional[_Iterable[_Union[NodeColumns, _Mapping]]] = ..., where: _Optional[str] = ...) -> None: ...

class SampleHgtReply(_message.Message):
    __slots__ = ("version", "digest", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., key_version: _Optional[int] = ...) -> None: ...

class InducedSubgraphRequest(_message.Message):
    __slots__ = ("space", "version", "edge_types", "node_type", "direction", "want_edge_ids", "want_weights", "weight", "node_features", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    WANT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NODE_FEATURES_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    node_type: int
    direction: _common_pb2.Direction
    want_edge_ids: bool
    want_weights: bool
    weight: str
    node_features: _containers.RepeatedCompositeFieldContainer[NodeColumns]
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., edge_types: _Optional[_Iterable[int]] = ..., node_type: _Optional[int] = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., want_edge_ids: bool = ..., want_weights: bool = ..., weight: _Optional[str] = ..., node_features: _Optional[_Iterable[_Union[NodeColumns, _Mapping]]] = ..., where: _Optional[str] = ...) -> None: ...

class InducedSubgraphReply(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class RandomWalkRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "steps", "length", "node_type", "uniform", "direction", "restart", "want_edge_ids", "p", "q", "weight", "walks", "distinct_first_step", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    RESTART_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    P_FIELD_NUMBER: _ClassVar[int]
    Q_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    WALKS_FIELD_NUMBER: _ClassVar[int]
    DISTINCT_FIRST_STEP_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    steps: _containers.RepeatedCompositeFieldContainer[_storaged_pb2.Step]
    length: int
    node_type: int
    uniform: bool
    direction: _common_pb2.Direction
    restart: float
    want_edge_ids: bool
    p: float
    q: float
    weight: str
    walks: int
    distinct_first_step: bool
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., steps: _Optional[_Iterable[_Union[_storaged_pb2.Step, _Mapping]]] = ..., length: _Optional[int] = ..., node_type: _Optional[int] = ..., uniform: bool = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., restart: _Optional[float] = ..., want_edge_ids: bool = ..., p: _Optional[float] = ..., q: _Optional[float] = ..., weight: _Optional[str] = ..., walks: _Optional[int] = ..., distinct_first_step: bool = ..., where: _Optional[str] = ...) -> None: ...

class RandomWalkReply(_message.Message):
    __slots__ = ("version", "digest", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., key_version: _Optional[int] = ...) -> None: ...

class SamplePinsageRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "steps", "traversals", "termination", "walks", "count", "node_type", "uniform", "direction", "weight", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    TRAVERSALS_FIELD_NUMBER: _ClassVar[int]
    TERMINATION_FIELD_NUMBER: _ClassVar[int]
    WALKS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    steps: _containers.RepeatedCompositeFieldContainer[_storaged_pb2.Step]
    traversals: int
    termination: float
    walks: int
    count: int
    node_type: int
    uniform: bool
    direction: _common_pb2.Direction
    weight: str
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., steps: _Optional[_Iterable[_Union[_storaged_pb2.Step, _Mapping]]] = ..., traversals: _Optional[int] = ..., termination: _Optional[float] = ..., walks: _Optional[int] = ..., count: _Optional[int] = ..., node_type: _Optional[int] = ..., uniform: bool = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., weight: _Optional[str] = ..., where: _Optional[str] = ...) -> None: ...

class SamplePinsageReply(_message.Message):
    __slots__ = ("version", "digest", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., key_version: _Optional[int] = ...) -> None: ...

class NeighborsRequest(_message.Message):
    __slots__ = ("space", "version", "edge_types", "node_type", "direction", "want_weights", "want_edge_ids", "sort", "weight", "top", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    WANT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    SORT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    node_type: int
    direction: _common_pb2.Direction
    want_weights: bool
    want_edge_ids: bool
    sort: str
    weight: str
    top: int
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., edge_types: _Optional[_Iterable[int]] = ..., node_type: _Optional[int] = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., want_weights: bool = ..., want_edge_ids: bool = ..., sort: _Optional[str] = ..., weight: _Optional[str] = ..., top: _Optional[int] = ..., where: _Optional[str] = ...) -> None: ...

class NeighborsReply(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class DegreesRequest(_message.Message):
    __slots__ = ("space", "version", "edge_types", "node_type", "direction", "weight", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    node_type: int
    direction: _common_pb2.Direction
    weight: str
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., edge_types: _Optional[_Iterable[int]] = ..., node_type: _Optional[int] = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., weight: _Optional[str] = ..., where: _Optional[str] = ...) -> None: ...

class DegreesReply(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class PersonalizedPagerankRequest(_message.Message):
    __slots__ = ("space", "version", "edge_types", "node_type", "direction", "uniform", "alpha", "epsilon", "top", "weight", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    UNIFORM_FIELD_NUMBER: _ClassVar[int]
    ALPHA_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    node_type: int
    direction: _common_pb2.Direction
    uniform: bool
    alpha: float
    epsilon: float
    top: int
    weight: str
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., edge_types: _Optional[_Iterable[int]] = ..., node_type: _Optional[int] = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., uniform: bool = ..., alpha: _Optional[float] = ..., epsilon: _Optional[float] = ..., top: _Optional[int] = ..., weight: _Optional[str] = ..., where: _Optional[str] = ...) -> None: ...

class PersonalizedPagerankReply(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class SampleGraphLabelsRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "count")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    count: int
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class SampleGraphLabelsReply(_message.Message):
    __slots__ = ("version", "digest", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., key_version: _Optional[int] = ...) -> None: ...

class GraphNodesRequest(_message.Message):
    __slots__ = ("space", "version")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class GraphNodesReply(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class AdjacencyRequest(_message.Message):
    __slots__ = ("space", "version", "edge_types", "node_type", "direction", "want_weights", "want_edge_ids", "weight", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EDGE_TYPES_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    WANT_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WANT_EDGE_IDS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    edge_types: _containers.RepeatedScalarFieldContainer[int]
    node_type: int
    direction: _common_pb2.Direction
    want_weights: bool
    want_edge_ids: bool
    weight: str
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., edge_types: _Optional[_Iterable[int]] = ..., node_type: _Optional[int] = ..., direction: _Optional[_Union[_common_pb2.Direction, str]] = ..., want_weights: bool = ..., want_edge_ids: bool = ..., weight: _Optional[str] = ..., where: _Optional[str] = ...) -> None: ...

class AdjacencyReply(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class NodeTypesRequest(_message.Message):
    __slots__ = ("space", "version", "node_type")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    node_type: int
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., node_type: _Optional[int] = ...) -> None: ...

class NodeTypesReply(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class NodeFeaturesRequest(_message.Message):
    __slots__ = ("space", "version", "type_id", "names")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    type_id: int
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., type_id: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class NodeFeaturesReply(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class EdgeFeaturesRequest(_message.Message):
    __slots__ = ("space", "version", "type_id", "names")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    type_id: int
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., type_id: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class EdgeFeaturesReply(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class ScanNodesRequest(_message.Message):
    __slots__ = ("space", "version", "type_id", "part", "cursor", "limit", "names", "weight")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    type_id: int
    part: int
    cursor: int
    limit: int
    names: _containers.RepeatedScalarFieldContainer[str]
    weight: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., type_id: _Optional[int] = ..., part: _Optional[int] = ..., cursor: _Optional[int] = ..., limit: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ..., weight: _Optional[str] = ...) -> None: ...

class ScanNodesReply(_message.Message):
    __slots__ = ("version", "next_cursor")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    version: int
    next_cursor: int
    def __init__(self, version: _Optional[int] = ..., next_cursor: _Optional[int] = ...) -> None: ...

class ScanEdgesRequest(_message.Message):
    __slots__ = ("space", "version", "type_id", "part", "cursor", "limit", "names", "weight")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    type_id: int
    part: int
    cursor: int
    limit: int
    names: _containers.RepeatedScalarFieldContainer[str]
    weight: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., type_id: _Optional[int] = ..., part: _Optional[int] = ..., cursor: _Optional[int] = ..., limit: _Optional[int] = ..., names: _Optional[_Iterable[str]] = ..., weight: _Optional[str] = ...) -> None: ...

class ScanEdgesReply(_message.Message):
    __slots__ = ("version", "next_cursor")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    version: int
    next_cursor: int
    def __init__(self, version: _Optional[int] = ..., next_cursor: _Optional[int] = ...) -> None: ...

class NodesAtRequest(_message.Message):
    __slots__ = ("space", "version", "type_id")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    type_id: int
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., type_id: _Optional[int] = ...) -> None: ...

class NodesAtReply(_message.Message):
    __slots__ = ("version", "count")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    version: int
    count: int
    def __init__(self, version: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class EdgesAtRequest(_message.Message):
    __slots__ = ("space", "version", "type_id", "weight", "where")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    type_id: int
    weight: str
    where: str
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., type_id: _Optional[int] = ..., weight: _Optional[str] = ..., where: _Optional[str] = ...) -> None: ...

class EdgesAtReply(_message.Message):
    __slots__ = ("version", "count")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    version: int
    count: int
    def __init__(self, version: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("space", "version", "method", "request")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    method: str
    request: bytes
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., method: _Optional[str] = ..., request: _Optional[bytes] = ...) -> None: ...

class StorageRequest(_message.Message):
    __slots__ = ("round", "method", "host", "address", "rows", "bytes_sent", "bytes_received")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BYTES_SENT_FIELD_NUMBER: _ClassVar[int]
    BYTES_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    round: int
    method: str
    host: str
    address: str
    rows: int
    bytes_sent: int
    bytes_received: int
    def __init__(self, round: _Optional[int] = ..., method: _Optional[str] = ..., host: _Optional[str] = ..., address: _Optional[str] = ..., rows: _Optional[int] = ..., bytes_sent: _Optional[int] = ..., bytes_received: _Optional[int] = ...) -> None: ...

class DrawShare(_message.Message):
    __slots__ = ("type_id", "part", "host", "share", "expected", "drawn")
    TYPE_ID_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    DRAWN_FIELD_NUMBER: _ClassVar[int]
    type_id: int
    part: int
    host: str
    share: float
    expected: float
    drawn: int
    def __init__(self, type_id: _Optional[int] = ..., part: _Optional[int] = ..., host: _Optional[str] = ..., share: _Optional[float] = ..., expected: _Optional[float] = ..., drawn: _Optional[int] = ...) -> None: ...

class ExplainReply(_message.Message):
    __slots__ = ("version", "digest", "storage_requests", "shares", "reply_bytes", "filter_plan", "price", "key_version")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    STORAGE_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    REPLY_BYTES_FIELD_NUMBER: _ClassVar[int]
    FILTER_PLAN_FIELD_NUMBER: _ClassVar[int]
    PRICE_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    digest: str
    storage_requests: _containers.RepeatedCompositeFieldContainer[StorageRequest]
    shares: _containers.RepeatedCompositeFieldContainer[DrawShare]
    reply_bytes: int
    filter_plan: str
    price: Price
    key_version: int
    def __init__(self, version: _Optional[int] = ..., digest: _Optional[str] = ..., storage_requests: _Optional[_Iterable[_Union[StorageRequest, _Mapping]]] = ..., shares: _Optional[_Iterable[_Union[DrawShare, _Mapping]]] = ..., reply_bytes: _Optional[int] = ..., filter_plan: _Optional[str] = ..., price: _Optional[_Union[Price, _Mapping]] = ..., key_version: _Optional[int] = ...) -> None: ...

class Price(_message.Message):
    __slots__ = ("formula", "rows", "bytes", "scratch", "steps", "exact", "limits")
    FORMULA_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    SCRATCH_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    formula: str
    rows: int
    bytes: int
    scratch: int
    steps: int
    exact: bool
    limits: _containers.RepeatedCompositeFieldContainer[Limit]
    def __init__(self, formula: _Optional[str] = ..., rows: _Optional[int] = ..., bytes: _Optional[int] = ..., scratch: _Optional[int] = ..., steps: _Optional[int] = ..., exact: bool = ..., limits: _Optional[_Iterable[_Union[Limit, _Mapping]]] = ...) -> None: ...

class Limit(_message.Message):
    __slots__ = ("setting", "value", "limit")
    SETTING_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    setting: str
    value: int
    limit: int
    def __init__(self, setting: _Optional[str] = ..., value: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class Replay(_message.Message):
    __slots__ = ("method", "request", "digest", "node_count", "crc", "key_version")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    CRC_FIELD_NUMBER: _ClassVar[int]
    KEY_VERSION_FIELD_NUMBER: _ClassVar[int]
    method: str
    request: bytes
    digest: str
    node_count: int
    crc: int
    key_version: int
    def __init__(self, method: _Optional[str] = ..., request: _Optional[bytes] = ..., digest: _Optional[str] = ..., node_count: _Optional[int] = ..., crc: _Optional[int] = ..., key_version: _Optional[int] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("integer", "number", "text", "boolean", "texts")
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BOOLEAN_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    integer: int
    number: float
    text: str
    boolean: bool
    texts: Texts
    def __init__(self, integer: _Optional[int] = ..., number: _Optional[float] = ..., text: _Optional[str] = ..., boolean: bool = ..., texts: _Optional[_Union[Texts, _Mapping]] = ...) -> None: ...

class Texts(_message.Message):
    __slots__ = ("texts",)
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, texts: _Optional[_Iterable[str]] = ...) -> None: ...

class QueryRequest(_message.Message):
    __slots__ = ("space", "version", "seed", "statement", "language", "parameters", "seen_versions")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...
    class SeenVersionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    SEEN_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    seed: int
    statement: str
    language: str
    parameters: _containers.MessageMap[str, Value]
    seen_versions: _containers.ScalarMap[str, int]
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., seed: _Optional[int] = ..., statement: _Optional[str] = ..., language: _Optional[str] = ..., parameters: _Optional[_Mapping[str, Value]] = ..., seen_versions: _Optional[_Mapping[str, int]] = ...) -> None: ...

class Column(_message.Message):
    __slots__ = ("name", "type", "dictionary_encoded", "dictionary")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DICTIONARY_ENCODED_FIELD_NUMBER: _ClassVar[int]
    DICTIONARY_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    dictionary_encoded: bool
    dictionary: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., dictionary_encoded: bool = ..., dictionary: _Optional[_Iterable[str]] = ...) -> None: ...

class Stage(_message.Message):
    __slots__ = ("name", "took_s", "rows")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOOK_S_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    name: str
    took_s: float
    rows: int
    def __init__(self, name: _Optional[str] = ..., took_s: _Optional[float] = ..., rows: _Optional[int] = ...) -> None: ...

class QueryReply(_message.Message):
    __slots__ = ("space", "version", "digest", "seed", "token", "columns", "rows", "kind", "took_s", "plan", "stages", "changed_spaces")
    SPACE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TOOK_S_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    CHANGED_SPACES_FIELD_NUMBER: _ClassVar[int]
    space: str
    version: int
    digest: str
    seed: int
    token: str
    columns: _containers.RepeatedCompositeFieldContainer[Column]
    rows: int
    kind: str
    took_s: float
    plan: str
    stages: _containers.RepeatedCompositeFieldContainer[Stage]
    changed_spaces: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, space: _Optional[str] = ..., version: _Optional[int] = ..., digest: _Optional[str] = ..., seed: _Optional[int] = ..., token: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., rows: _Optional[int] = ..., kind: _Optional[str] = ..., took_s: _Optional[float] = ..., plan: _Optional[str] = ..., stages: _Optional[_Iterable[_Union[Stage, _Mapping]]] = ..., changed_spaces: _Optional[_Iterable[str]] = ...) -> None: ...

class GetRoutesRequest(_message.Message):
    __slots__ = ("known_revision",)
    KNOWN_REVISION_FIELD_NUMBER: _ClassVar[int]
    known_revision: int
    def __init__(self, known_revision: _Optional[int] = ...) -> None: ...

class GetRoutesReply(_message.Message):
    __slots__ = ("revision", "desired_state", "limits", "ticket", "ticket_s")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DESIRED_STATE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    TICKET_S_FIELD_NUMBER: _ClassVar[int]
    revision: int
    desired_state: _metad_pb2.PollReply
    limits: RequestLimits
    ticket: str
    ticket_s: float
    def __init__(self, revision: _Optional[int] = ..., desired_state: _Optional[_Union[_metad_pb2.PollReply, _Mapping]] = ..., limits: _Optional[_Union[RequestLimits, _Mapping]] = ..., ticket: _Optional[str] = ..., ticket_s: _Optional[float] = ...) -> None: ...

class RequestLimits(_message.Message):
    __slots__ = ("rows", "memory_bytes", "steps")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    rows: int
    memory_bytes: int
    steps: int
    def __init__(self, rows: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., steps: _Optional[int] = ...) -> None: ...
