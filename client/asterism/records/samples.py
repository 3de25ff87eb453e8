"""What the client gives back: frozen records of numpy arrays and of the catalog.

Shapes are written in brackets. "No node" is -1; a missing neighbor's weight is 0, its type and edge
id -1. In neighbor records ``types`` are edge type ids: the neighbor's node type follows from the
schema."""

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
    """Drawn nodes."""

    nodes: Ids
    """int64 [n]."""
    types: Types
    """int32 [n], node type ids."""
    infer_types: InitVar[bool] = False
    """Whether ``types`` are to be laid along the nodes, when they are first looked at."""
    probabilities: Probabilities | None = None
    """float64 [n], of each draw: without replacement, given the earlier ones; None when not asked
    for.
    """
    seed: int
    """What the draw can be repeated with."""
    version: int
    token: str = ""
    """The whole call, for `Graph.replay`."""

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class NodeRows(HeteroIds):
    """Drawn nodes, a row for each node or pair of a request."""

    nodes: Ids
    """int64 [m, n], -1 where there is none."""
    types: Types
    """int32 [m, n], node type ids, -1 where there is none."""
    infer_types: InitVar[bool] = False
    """Whether ``types`` are to be laid along the nodes, when they are first looked at."""
    probabilities: Probabilities | None = None
    """float64 [m, n], of each draw, 0 where there is none; None when not asked for."""
    seed: int
    version: int
    token: str = ""

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class EdgeSample(ArrayRecord):
    """Drawn edges."""

    src: Ids
    """int64 [n]."""
    dst: Ids
    """int64 [n]."""
    types: Types
    """int32 [n], edge type ids."""
    weights: Weights
    """float32 [n]."""
    edge_ids: Ids
    """int64 [n]."""
    probabilities: Probabilities | None = None
    """float64 [n], of each draw: without replacement, given the earlier ones; None when not asked
    for.
    """
    seed: int
    version: int
    token: str = ""

    def __len__(self) -> int:
        return len(self.src)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class NeighborSample(HeteroIds):
    """Drawn neighbors of m nodes."""

    nodes: Ids
    """int64 [m, n], -1 where there is none."""
    types: Types
    """int32 [m, n], edge type ids, -1 where there is none."""
    infer_types: InitVar[bool] = False
    """Whether ``types`` are to be laid along the nodes, when they are first looked at."""
    weights: Weights | None
    """float32 [m, n], 0 where there is none; None when not asked for."""
    edge_ids: Ids | None
    """int64 [m, n], -1 where there is none; None when not asked for."""
    probabilities: Probabilities | None = None
    """float64 [m, n], of each drawn edge at its node: without replacement, given the node's earlier
    ones. 0 for none; None when not asked for.
    """
    times: Values | None = None
    """[m, n], of each edge, 0 where there is none; None when not asked for."""
    seed: int
    version: int
    token: str = ""

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """bool [m, n]: where there is a neighbor."""
        return np.asarray(self.nodes >= 0)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class FanoutHop(HeteroIds):
    """One hop of a fanout, flat: entry ``i * fanout + k`` is draw k of node i of the hop before."""

    nodes: Ids
    """int64 [m * c0 * .. * ch], -1 where there is none."""
    types: Types
    """int32, edge type ids, -1 where there is none."""
    infer_types: InitVar[bool] = False
    """Whether ``types`` are to be laid along the nodes, when they are first looked at."""
    weights: Weights | None
    edge_ids: Ids | None
    probabilities: Probabilities | None = None
    """float64, of each drawn edge at the node of the hop before, as of `NeighborSample`; a path's
    is the product along it.
    """
    times: Values | None = None
    """int64 or float64, of each drawn edge, 0 where there is none; None where not asked for, or
    none has any.
    """
    fanout: int
    features: NodeFeatures | None = None
    """A row for each of ``nodes``; what is of another type has zeros, or an empty row. None when
    not asked for.
    """

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class FanoutSample(ArrayRecord):
    """Drawn neighbors, hop after hop."""

    seeds: Ids
    """int64 [m]: where it starts."""
    hops: tuple[FanoutHop, ...]
    features: NodeFeatures | None = None
    """Of the seeds; None when not asked for."""
    seed: int
    version: int
    token: str = ""

    def __len__(self) -> int:
        return len(self.hops)

    def __getitem__(self, hop: int) -> FanoutHop:
        return self.hops[hop]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class WalkSample(HeteroIds):
    """Walks, a row each."""

    nodes: Ids
    """int64 [m, length + 1], the start first; -1 behind a dead end."""
    types: Types
    """int32 [m, length], the edge type of each step; -1 for a restart and where there is no
    node.
    """
    infer_types: InitVar[bool] = False
    """Whether ``types`` are to be laid along the nodes, when they are first looked at."""
    edge_ids: Ids | None
    """int64 [m, length], likewise; None where not asked for."""
    starts: Ids | None = None
    """int64 [m], ascending: the place of each walk's start among the nodes asked for; None where
    each has one walk.
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
    """A sampled subgraph; by node type and by edge type (triples). Nodes are numbered per type,
    from 0.
    """

    nodes: Mapping[str, Ids]
    """int64 [n]: the id of each node, seeds first."""
    row: Mapping[str, Ids]
    """int64 [k]: the number of each edge's source."""
    col: Mapping[str, Ids]
    """int64 [k]: the number of each edge's destination."""
    edge_ids: Mapping[str, Ids] | None
    """int64 [k]; None where not asked for."""
    weights: Mapping[str, Weights] | None
    """float32 [k]; None where not asked for."""
    batch: Mapping[str, Ids] | None
    """int64 [n]: the place of the seed whose tree each node is of; None where trees are merged."""
    seeds: Ids
    """int64 [m]: the number of each seed among the nodes of its type; -1 where it is no node."""
    num_sampled_nodes: Mapping[str, tuple[int, ...]]
    """New nodes per hop, the seeds first."""
    num_sampled_edges: Mapping[str, tuple[int, ...]]
    """Edges per hop."""
    features: NodeFeatures | None = None
    """A row for each of ``nodes``; None when not asked for."""
    times: Mapping[str, Values] | None = None
    """[k], of the edge types that have times; None where not asked for."""
    seed: int
    version: int
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PairBatch(ArrayRecord):
    """Skip-gram pairs of a batch of walks, shuffled."""

    pairs: Ids
    """int64 [k, 2]: a node, and one near it on its walk."""
    types: Types
    """int32 [k, 2], node type ids."""
    negatives: Ids | None
    """int64 [k, n]: nodes of the type of each pair's second one, drawn by weight; None where none
    were asked for.
    """
    walks: WalkSample
    """The walks that they are from."""
    metapath: str
    epoch: int
    version: int

    def __len__(self) -> int:
        return len(self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class RaggedNeighbors(ArrayRecord):
    """All neighbors of m nodes: those of node i are at ``indptr[i]:indptr[i + 1]``."""

    indptr: Ids
    """int64 [m + 1]."""
    nodes: Ids
    """int64 [k]."""
    types: Types
    """int32 [k], edge type ids."""
    weights: Weights | None
    edge_ids: Ids | None
    version: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, row: int) -> Ids:
        """The neighbors of node ``row`` of the request."""
        row = range(len(self))[row]
        return self.nodes[self.indptr[row] : self.indptr[row + 1]]


class Cursor(NamedTuple):
    """Where a batch of a scan ends, for the scan to go on from."""

    version: int
    part: int
    row: int
    """As servers count; -1: the part has been read to its end."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class GraphLabels(ArrayRecord):
    """Drawn labels of graphs."""

    labels: tuple[bytes, ...]
    seed: int
    version: int
    token: str = ""

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class GraphNodes(ArrayRecord):
    """The nodes of graphs: those of label i are at ``indptr[i]:indptr[i + 1]``, by (type, id)."""

    indptr: Ids
    """int64 [m + 1]."""
    nodes: Ids
    """int64 [k]."""
    types: Types
    """int32 [k], node type ids."""
    version: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, row: int) -> Ids:
        """The nodes of label ``row`` of the request."""
        row = range(len(self))[row]
        return self.nodes[self.indptr[row] : self.indptr[row + 1]]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class NodeBatch(ArrayRecord):
    """A run of nodes of one part, by id."""

    part: int
    ids: Ids
    weights: Weights
    features: Features = field(default_factory=dict)
    version: int
    cursor: Cursor | None = None
    """Where it ends, ``after`` of a scan that goes on there; None of a batch that no scan gave."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class EdgeBatch(ArrayRecord):
    """A run of edges of their sources' part, in out-adjacency order."""

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
