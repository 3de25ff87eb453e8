"""Replies of the sampling routes: the records of `asterism.records` as JSON.

Every field has the name that it has in the record, and the values that gRPC returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from asterism.records.samples import (
    EdgeSample,
    FanoutHop,
    FanoutSample,
    Layer,
    LayerSample,
    LayerStack,
    NeighborSample,
    NodeRows,
    NodeSample,
    PageRanks,
    Subgraph,
    VisitSample,
    WalkSample,
)
from asterism_daemonkit.http.models import HttpModel
from asterism_proto.errors import InvalidRequest
from graphd.http.json_values import plain_values

MAX_VALUES = 1_000_000
"""Most numbers in a reply. Larger samples go over gRPC, as arrays."""

NodeId = int | str
NodeIds = Annotated[
    list[NodeId],
    Field(
        description=(
            "Ids of nodes, in a space of string ids their names. -1, or an empty name, where "
            "there is no node."
        )
    ),
]
NodeIdRows = Annotated[
    list[list[NodeId]],
    Field(
        description=(
            "Ids of nodes, a row for each of the request; in a space of string ids their names. "
            "-1, or an empty name, where there is no node."
        )
    ),
]
NodeTypes = Annotated[
    list[int], Field(description="Type of each node, its position in the schema; -1: no node.")
]
EdgeTypes = Annotated[
    list[int], Field(description="Type of each edge, its position in the schema; -1: no edge.")
]
NodeTypeRows = Annotated[
    list[list[int]],
    Field(description="Type of each node, its position in the schema; -1: no node."),
]
EdgeTypeRows = Annotated[
    list[list[int]],
    Field(description="Type of each edge, its position in the schema; -1: no edge."),
]
Numbers = list[float | None]
Features = Annotated[
    dict[str, dict[str, list[Any]]] | None,
    Field(
        description=(
            "Features by node type and name, a row for each node; null if not requested. Rows of "
            "bytes are hexadecimal text; NaN and infinite numbers are null."
        )
    ),
]
Seed = Annotated[
    str,
    Field(
        description="Seed that repeats the sample: an integer below 2^64, as text.", examples=["7"]
    ),
]
Version = Annotated[int, Field(description="Version that was read.", examples=[3])]
Token = Annotated[
    str, Field(description="Token of the call; `Graph.replay` of the client repeats it.")
]
Probabilities = Annotated[
    list[float] | None,
    Field(description="Probability of each draw; null if not requested."),
]
ProbabilityRows = Annotated[
    list[list[float]] | None,
    Field(description="Probability of each draw, 0 where there is none; null if not requested."),
]
IdRows = Annotated[
    list[list[int]] | None,
    Field(description="Id of each edge, -1 where there is none; null if not requested."),
]


class NodeSampleView(HttpModel):
    """Sampled nodes."""

    nodes: NodeIds
    types: NodeTypes
    probabilities: Probabilities
    seed: Seed
    version: Version
    token: Token


class NodeRowsView(HttpModel):
    """Sampled nodes, one row for each node or pair of the request."""

    nodes: NodeIdRows
    types: NodeTypeRows
    probabilities: ProbabilityRows
    seed: Seed
    version: Version
    token: Token


class EdgeSampleView(HttpModel):
    """Sampled edges."""

    src: NodeIds
    dst: NodeIds
    types: EdgeTypes
    weights: list[float]
    edge_ids: list[int]
    probabilities: Probabilities
    seed: Seed
    version: Version
    token: Token


class NeighborSampleView(HttpModel):
    """Sampled neighbors, one row for each node of the request."""

    nodes: NodeIdRows
    types: EdgeTypeRows
    weights: list[list[float]] | None
    """Weight of each edge, 0 where there is none; null if not requested."""
    edge_ids: IdRows
    probabilities: ProbabilityRows
    times: list[Numbers] | None
    """Time of each edge, 0 where there is none; null if not requested."""
    seed: Seed
    version: Version
    token: Token


class FanoutHopView(HttpModel):
    """One hop: entry `i * fanout + k` is draw k of entry i of the hop before."""

    nodes: NodeIds
    types: EdgeTypes
    weights: list[float] | None
    edge_ids: list[int] | None
    probabilities: Probabilities
    times: Numbers | None
    fanout: int
    """Neighbors per entry of the hop before."""
    features: Features


class FanoutSampleView(HttpModel):
    """Sampled neighbors, hop by hop."""

    seeds: NodeIds
    hops: list[FanoutHopView]
    features: Features
    seed: Seed
    version: Version
    token: Token


class WalkSampleView(HttpModel):
    """Random walks, one per row."""

    nodes: NodeIdRows
    types: EdgeTypeRows
    edge_ids: IdRows
    starts: list[int] | None
    """Position of each walk's start in the request; null if each start has one walk."""
    seed: Seed
    version: Version
    token: Token


class VisitSampleView(HttpModel):
    """Nodes that walks visited most, one row per start node."""

    nodes: NodeIdRows
    types: NodeTypeRows
    counts: list[list[int]]
    """Number of visits, 0 where there is no node."""
    seed: Seed
    version: Version
    token: Token


class PageRanksView(HttpModel):
    """Nodes of the highest personalized PageRank, one row per start node."""

    nodes: NodeIdRows
    types: NodeTypeRows
    scores: list[list[float]]
    """Score of each node, 0 where there is none."""
    residuals: list[float]
    """Probability that no score of the row holds."""
    version: Version


class AdjacencyView(HttpModel):
    """Edges between two lists of nodes, one entry each."""

    rows: list[int]
    """Position of each edge's end in the first list."""
    cols: list[int]
    """Position of each edge's end in the second list."""
    types: EdgeTypes
    weights: list[float] | None
    edge_ids: list[int] | None
    shape: list[int] = Field(min_length=2, max_length=2)
    """Lengths of the two lists."""
    version: Version


class LayerView(HttpModel):
    """Nodes of a layer, with the edges to the layer before."""

    nodes: NodeIds | NodeIdRows
    types: NodeTypes | NodeTypeRows
    probabilities: list[float] | list[list[float]]
    """Probability of each draw, 0 where there is no node."""
    adjacency: AdjacencyView


class LayerSampleView(LayerView):
    """Sample of one layer."""

    seed: Seed
    version: Version
    token: Token


class LayerStackView(HttpModel):
    """Sample of several layers."""

    seeds: NodeIds | NodeIdRows
    layers: list[LayerView]
    seed: Seed
    version: Version
    token: Token


class SubgraphView(HttpModel):
    """Sampled subgraph. Nodes are numbered per type, from 0, with the seeds first."""

    nodes: dict[str, list[NodeId]]
    """Id of each node, by node type; in a space of string ids its name."""
    row: dict[str, list[int]]
    """Number of each edge's source, by edge type."""
    col: dict[str, list[int]]
    """Number of each edge's destination, by edge type."""
    edge_ids: dict[str, list[int]] | None
    weights: dict[str, list[float]] | None
    batch: dict[str, list[int]] | None
    """Position of the seed of each node's tree; null if trees are merged."""
    seeds: list[int]
    """Number of each seed among the nodes of its type; -1: no node."""
    num_sampled_nodes: dict[str, list[int]]
    """Number of new nodes per hop, seeds first."""
    num_sampled_edges: dict[str, list[int]]
    """Number of edges per hop."""
    features: Features
    times: dict[str, Numbers] | None
    """Time of each edge; null if not requested."""
    seed: Seed
    version: Version
    token: Token


class GraphLabelsView(HttpModel):
    """Sampled graph labels."""

    labels: list[str]
    """Labels as text. Bytes that are not UTF-8 appear as \\xNN."""
    seed: Seed
    version: Version
    token: Token


_NODE_FIELDS: Mapping[type, tuple[str, ...]] = {
    NodeSample: ("nodes",),
    NodeRows: ("nodes",),
    EdgeSample: ("src", "dst"),
    NeighborSample: ("nodes",),
    FanoutHop: ("nodes",),
    FanoutSample: ("seeds",),
    WalkSample: ("nodes",),
    VisitSample: ("nodes",),
    PageRanks: ("nodes",),
    Layer: ("nodes",),
    LayerSample: ("nodes",),
    LayerStack: ("seeds",),
    Subgraph: ("nodes",),
}
"""Fields with ids of nodes, by record."""

NodeNames = Callable[[NDArray[np.int64], str | None], NDArray[Any]]
"""Function (ids, node type) -> names of the same shape. Type None: any."""


def json_record(record: Any, names: NodeNames | None) -> dict[str, Any]:
    """Return a record as a JSON object.

    Parameters
    ----------
    record : dataclass
        Record of a sample.
    names : callable, optional
        Function that returns the names of nodes, for a space of string ids.

    Raises
    ------
    InvalidRequest
        If the record has more than `MAX_VALUES` numbers.
    """
    size = _count_values(record)
    if size > MAX_VALUES:
        raise InvalidRequest(
            f"the sample has {size:,} numbers: expected at most {MAX_VALUES:,} over HTTP; request "
            "less, or use gRPC"
        )
    return _record(record, names)


def _record(record: Any, names: NodeNames | None) -> dict[str, Any]:
    node_fields = _NODE_FIELDS.get(type(record), ())
    content: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if names is not None and field.name in node_fields:
            content[field.name] = (
                {ntype: plain_values(names(ids, ntype)) for ntype, ids in value.items()}
                if isinstance(value, Mapping)
                else plain_values(names(value, None))
            )
        elif field.name == "seed":
            content[field.name] = str(value)
        else:
            content[field.name] = _value(value, names)
    return content


def _value(value: Any, names: NodeNames | None) -> Any:
    if isinstance(value, np.ndarray):
        return plain_values(value)
    if isinstance(value, Mapping):
        return {key: _value(item, names) for key, item in value.items()}
    if isinstance(value, tuple):
        if value and isinstance(value[0], np.ndarray):
            return _ragged_rows(*value)
        return [_value(item, names) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return _record(value, names) if is_dataclass(value) else value


def _ragged_rows(indptr: NDArray[np.int64], values: NDArray[Any]) -> list[Any]:
    """Return the rows of a ragged feature; those of bytes as hexadecimal text."""
    rows = [values[start:stop] for start, stop in pairwise(indptr.tolist())]
    if values.dtype == np.uint8:
        return [row.tobytes().hex() for row in rows]
    return [plain_values(row) for row in rows]


def _count_values(value: Any) -> int:
    """Return the number of values in the arrays of a record."""
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, Mapping):
        return sum(map(_count_values, value.values()))
    if isinstance(value, tuple):
        return sum(map(_count_values, value))
    if isinstance(value, bytes):
        return len(value)
    if is_dataclass(value):
        return sum(_count_values(getattr(value, field.name)) for field in fields(value))
    return 1
