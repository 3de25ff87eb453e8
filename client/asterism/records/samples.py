"""Records of samples: frozen dataclasses of NumPy arrays.

"No node" is -1. A missing neighbor has weight 0, and type and edge id -1. In neighbor records
``types`` are edge type ids; the neighbor's node type follows from the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism.records.arrays import (
    ArrayRecord,
    Features,
    FeatureValue,
    HeteroIds,
    Ids,
    NodeFeatures,
    Probabilities,
    RaggedColumn,
    Types,
    Values,
    Weights,
)
from asterism.records.catalog import Host, Job, SpaceInfo, Task
from asterism.records.explanation import DrawShare, Explanation, StorageRequest
from asterism.records.layers import Adjacency, Layer, LayerSample, LayerStack, MultiHopNeighbors
from asterism.records.links import EdgeRows, LinkSeeds
from asterism.records.query_result import QueryResult, Stage
from asterism.records.rankings import PageRanks, TopNeighbors, VisitSample
from asterism.records.versions import PinInfo, VersionInfo
from asterism_model.partition_stats import PartitionStats
from asterism_model.task_results import ExportedFile, PartUnits, TaskResult, TypeAudit

__all__ = [
    "Adjacency",
    "Cursor",
    "DrawShare",
    "EdgeBatch",
    "EdgeRows",
    "EdgeSample",
    "Explanation",
    "ExportedFile",
    "FanoutHop",
    "FanoutSample",
    "FeatureValue",
    "Features",
    "GraphLabels",
    "GraphNodes",
    "Host",
    "Ids",
    "Job",
    "Layer",
    "LayerSample",
    "LayerStack",
    "LinkSeeds",
    "MultiHopNeighbors",
    "NeighborSample",
    "NodeBatch",
    "NodeFeatures",
    "NodeRows",
    "NodeSample",
    "PageRanks",
    "PairBatch",
    "PartUnits",
    "PartitionStats",
    "PinInfo",
    "Probabilities",
    "QueryResult",
    "RaggedColumn",
    "RaggedNeighbors",
    "SpaceInfo",
    "Stage",
    "StorageRequest",
    "Subgraph",
    "Task",
    "TaskResult",
    "TopNeighbors",
    "TypeAudit",
    "Types",
    "Values",
    "VersionInfo",
    "VisitSample",
    "WalkSample",
    "Weights",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class NodeSample(HeteroIds):
    """Sampled nodes."""

    nodes: Ids
    """ndarray of int64, shape (n,): node ids."""
    types: Types
    """ndarray of int32, shape (n,): node type ids."""
    infer_types: InitVar[bool] = False
    """Compute ``types`` from ``nodes`` on first access."""
    probabilities: Probabilities | None = None
    """ndarray of float64, shape (n,): probability of each draw; None if not requested.

    Without replacement, it is conditional on the earlier draws.
    """
    seed: int
    """Seed that repeats the sample."""
    version: int
    token: str = ""
    """Token of the whole call, for `Graph.replay`."""

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class NodeRows(HeteroIds):
    """Sampled nodes, one row for each node or pair of the request."""

    nodes: Ids
    """ndarray of int64, shape (m, n): node ids, -1 where there is none."""
    types: Types
    """ndarray of int32, shape (m, n): node type ids, -1 where there is none."""
    infer_types: InitVar[bool] = False
    """Compute ``types`` from ``nodes`` on first access."""
    probabilities: Probabilities | None = None
    """ndarray of float64, shape (m, n): probability of each draw, 0 where there is none.

    None if not requested.
    """
    seed: int
    version: int
    token: str = ""

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class EdgeSample(ArrayRecord):
    """Sampled edges."""

    src: Ids
    """ndarray of int64, shape (n,): sources."""
    dst: Ids
    """ndarray of int64, shape (n,): destinations."""
    types: Types
    """ndarray of int32, shape (n,): edge type ids."""
    weights: Weights
    """ndarray of float32, shape (n,): edge weights."""
    edge_ids: Ids
    """ndarray of int64, shape (n,): edge ids."""
    probabilities: Probabilities | None = None
    """ndarray of float64, shape (n,): probability of each draw; None if not requested.

    Without replacement, it is conditional on the earlier draws.
    """
    seed: int
    version: int
    token: str = ""

    def __len__(self) -> int:
        return len(self.src)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class NeighborSample(HeteroIds):
    """Sampled neighbors of m nodes."""

    nodes: Ids
    """ndarray of int64, shape (m, n): neighbor ids, -1 where there is none."""
    types: Types
    """ndarray of int32, shape (m, n): edge type ids, -1 where there is none."""
    infer_types: InitVar[bool] = False
    """Compute ``types`` from ``nodes`` on first access."""
    weights: Weights | None
    """ndarray of float32, shape (m, n): weights, 0 where there is none; None if not requested.
    """
    edge_ids: Ids | None
    """ndarray of int64, shape (m, n): edge ids, -1 where there is none; None if not requested."""
    probabilities: Probabilities | None = None
    """ndarray of float64, shape (m, n): probability of each sampled edge at its node.

    Without replacement, it is conditional on the node's earlier draws. 0 where there is none. None
    if not requested.
    """
    times: Values | None = None
    """ndarray, shape (m, n): time of each edge, 0 where there is none; None if not requested."""
    seed: int
    version: int
    token: str = ""

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """ndarray of bool, shape (m, n): True where there is a neighbor."""
        return np.asarray(self.nodes >= 0)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class FanoutHop(HeteroIds):
    """One hop of a fanout: entry ``i * fanout + k`` is draw k of entry i of the previous hop."""

    nodes: Ids
    """ndarray of int64, shape (m * c0 * .. * ch,): node ids, -1 where there is none."""
    types: Types
    """ndarray of int32: edge type ids, -1 where there is none."""
    infer_types: InitVar[bool] = False
    """Compute ``types`` from ``nodes`` on first access."""
    weights: Weights | None
    edge_ids: Ids | None
    probabilities: Probabilities | None = None
    """ndarray of float64: probability of each edge at its node, as in `NeighborSample`.

    The probability of a path is the product along it.
    """
    times: Values | None = None
    """ndarray of int64 or float64: time of each edge, 0 where there is none.

    None if not requested, or if the edge types of the hop have no times.
    """
    fanout: int
    features: NodeFeatures | None = None
    """Features, one row for each of ``nodes``; None if not requested.

    Rows of nodes of other types are zeros, or empty.
    """

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class FanoutSample(ArrayRecord):
    """Sampled neighbors, hop by hop."""

    seeds: Ids
    """ndarray of int64, shape (m,): start nodes."""
    hops: tuple[FanoutHop, ...]
    features: NodeFeatures | None = None
    """Features of the start nodes; None if not requested."""
    seed: int
    version: int
    token: str = ""

    def __len__(self) -> int:
        return len(self.hops)

    def __getitem__(self, hop: int) -> FanoutHop:
        return self.hops[hop]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class WalkSample(HeteroIds):
    """Random walks, one per row."""

    nodes: Ids
    """ndarray of int64, shape (m, length + 1): nodes, start node first; -1 after a dead end."""
    types: Types
    """ndarray of int32, shape (m, length): edge type of each step.

    -1 for a restart, and where there is no node.
    """
    infer_types: InitVar[bool] = False
    """Compute ``types`` from ``nodes`` on first access."""
    edge_ids: Ids | None
    """ndarray of int64, shape (m, length): edge id of each step; None if not requested."""
    starts: Ids | None = None
    """ndarray of int64, shape (m,), ascending: position of each walk's start in the request.

    None if each start node has one walk.
    """
    seed: int
    version: int
    token: str = ""

    @property
    def _present_ids(self) -> Ids:
        return self.nodes[:, 1:]

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Subgraph(ArrayRecord):
    """Sampled subgraph, by node type and by edge type (triples).

    Nodes are numbered per type, from 0.
    """

    nodes: Mapping[str, Ids]
    """ndarray of int64, shape (n,): id of each node, seeds first."""
    row: Mapping[str, Ids]
    """ndarray of int64, shape (k,): number of each edge's source."""
    col: Mapping[str, Ids]
    """ndarray of int64, shape (k,): number of each edge's destination."""
    edge_ids: Mapping[str, Ids] | None
    """ndarray of int64, shape (k,): edge ids; None if not requested."""
    weights: Mapping[str, Weights] | None
    """ndarray of float32, shape (k,): edge weights; None if not requested."""
    batch: Mapping[str, Ids] | None
    """ndarray of int64, shape (n,): position of the seed of each node's tree.

    None if trees are merged.
    """
    seeds: Ids
    """ndarray of int64, shape (m,): each seed's number among its type's nodes; -1: no node.
    """
    num_sampled_nodes: Mapping[str, tuple[int, ...]]
    """Number of new nodes per hop, seeds first."""
    num_sampled_edges: Mapping[str, tuple[int, ...]]
    """Number of edges per hop."""
    features: NodeFeatures | None = None
    """Features, one row for each of ``nodes``; None if not requested."""
    times: Mapping[str, Values] | None = None
    """ndarray, shape (k,): edge times, for edge types with times; None if not requested."""
    seed: int
    version: int
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PairBatch(ArrayRecord):
    """Skip-gram pairs from a batch of walks, shuffled."""

    pairs: Ids
    """ndarray of int64, shape (k, 2): a node, and a node close to it on its walk."""
    types: Types
    """ndarray of int32, shape (k, 2): node type ids."""
    negatives: Ids | None
    """ndarray of int64, shape (k, n): negatives of the type of each pair's second node.

    They are sampled by weight. None if not requested.
    """
    walks: WalkSample
    """Walks that the pairs come from."""
    metapath: str
    epoch: int
    version: int

    def __len__(self) -> int:
        return len(self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class RaggedNeighbors(ArrayRecord):
    """All neighbors of m nodes; those of node i are at ``indptr[i]:indptr[i + 1]``."""

    indptr: Ids
    """ndarray of int64, shape (m + 1,): offsets."""
    nodes: Ids
    """ndarray of int64, shape (k,): neighbor ids."""
    types: Types
    """ndarray of int32, shape (k,): edge type ids."""
    weights: Weights | None
    edge_ids: Ids | None
    version: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, row: int) -> Ids:
        """Return the neighbors of node ``row`` of the request."""
        row = range(len(self))[row]
        return self.nodes[self.indptr[row] : self.indptr[row + 1]]


class Cursor(NamedTuple):
    """Position of the end of a scan's batch, from which the scan can resume."""

    version: int
    part: int
    row: int
    """Row within the partition, as the service counts; -1: the end of the partition."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class GraphLabels(ArrayRecord):
    """Sampled graph labels."""

    labels: tuple[bytes, ...]
    seed: int
    version: int
    token: str = ""

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class GraphNodes(ArrayRecord):
    """Nodes of labeled graphs; those of label i are at ``indptr[i]:indptr[i + 1]``.

    Nodes of a label are ordered by (type, id).
    """

    indptr: Ids
    """ndarray of int64, shape (m + 1,): offsets."""
    nodes: Ids
    """ndarray of int64, shape (k,): node ids."""
    types: Types
    """ndarray of int32, shape (k,): node type ids."""
    version: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, row: int) -> Ids:
        """Return the nodes of label ``row`` of the request."""
        row = range(len(self))[row]
        return self.nodes[self.indptr[row] : self.indptr[row + 1]]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class NodeBatch(ArrayRecord):
    """Consecutive nodes of one partition, by id."""

    part: int
    ids: Ids
    weights: Weights
    features: Features = field(default_factory=dict)
    version: int
    cursor: Cursor | None = None
    """End of the batch, for ``after`` of a scan; None if no scan returned the batch."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class EdgeBatch(ArrayRecord):
    """Consecutive edges of one partition of sources, in out-adjacency order."""

    part: int
    src: Ids
    dst: Ids
    edge_ids: Ids
    weights: Weights
    features: Features = field(default_factory=dict)
    version: int
    cursor: Cursor | None = None

    def __len__(self) -> int:
        return len(self.src)
