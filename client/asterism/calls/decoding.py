"""Decoding of replies to sampling calls, original or replayed, into records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from asterism.calls import validation
from asterism.client_state import VersionReply
from asterism.records.samples import (
    Adjacency,
    EdgeSample,
    FanoutHop,
    FanoutSample,
    GraphLabels,
    Ids,
    Layer,
    LayerSample,
    LayerStack,
    NeighborSample,
    NodeFeatures,
    NodeRows,
    NodeSample,
    Subgraph,
    Types,
    Values,
    VisitSample,
    WalkSample,
)
from asterism_model.schema import Schema
from asterism_model.schema.edge_times import edge_time_dtype
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb

Arrays = Mapping[str, NDArray[Any]]
Request_co = TypeVar("Request_co", covariant=True)
SubgraphRequest = (
    graphd_pb.SampleSubgraphRequest
    | graphd_pb.SampleEgoSubgraphsRequest
    | graphd_pb.SampleLaborRequest
    | graphd_pb.SampleHgtRequest
    | graphd_pb.InducedSubgraphRequest
)


class SamplingReply(VersionReply, Protocol):
    """Fields that the reply to every sampling call has."""

    digest: str
    key_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingCall(Generic[Request_co]):
    """A sampling call with its reply."""

    request: Request_co
    """Head of the request."""
    arrays: Arrays
    """Sections of the request."""
    reply: Frame[VersionReply]
    schema: Schema
    token: str

    @property
    def version(self) -> int:
        """Version that the reply was read from."""
        return self.reply.head.version


def _single_type(types: Sequence[int]) -> Types:
    """Return the type that a reply leaves out, as a 0-d array of int32; -1 if there is none."""
    return np.array(types[0] if types else -1, np.int32)


def node_sample(call: SamplingCall[graphd_pb.SampleNodesRequest]) -> NodeSample:
    """Decode sampled nodes."""
    request, reply = call.request, call.reply
    types = reply.optional_array("types", "int32")
    return NodeSample(
        nodes=reply.array("ids", "int64"),
        types=_single_type(request.types or [0]) if types is None else types,
        infer_types=types is None,
        probabilities=reply.array("probabilities", "float64")
        if request.want_probabilities
        else None,
        seed=request.seed,
        version=call.version,
        token=call.token,
    )


def nodes_like(call: SamplingCall[graphd_pb.SampleNodesLikeRequest]) -> NodeRows:
    """Decode nodes sampled by the types of other nodes."""
    nodes: Ids = call.reply.array("ids", "int64", 2)
    return _rows(call, nodes, call.reply.array("types", "int32")[:, None], infer_types=True)


def negatives(call: SamplingCall[graphd_pb.SampleNegativesRequest]) -> NodeRows:
    """Decode negative nodes."""
    return _rows(
        call,
        call.reply.array("ids", "int64", 2),
        call.reply.array("types", "int32", 2),
        infer_types=False,
    )


def _rows(
    call: SamplingCall[graphd_pb.SampleNodesLikeRequest | graphd_pb.SampleNegativesRequest],
    nodes: Ids,
    types: Types,
    *,
    infer_types: bool,
) -> NodeRows:
    probabilities = (
        call.reply.array("probabilities", "float64", 2) if call.request.want_probabilities else None
    )
    return NodeRows(
        nodes=nodes,
        types=types,
        infer_types=infer_types,
        probabilities=probabilities,
        seed=call.request.seed,
        version=call.version,
        token=call.token,
    )


def graph_labels(call: SamplingCall[graphd_pb.SampleGraphLabelsRequest]) -> GraphLabels:
    """Decode sampled graph labels."""
    indptr = call.reply.array("labels.indptr", "int64").tolist()
    text = call.reply.array("labels.values", "uint8").tobytes()
    labels = tuple(text[start:stop] for start, stop in pairwise(indptr))
    return GraphLabels(
        labels=labels, seed=call.request.seed, version=call.version, token=call.token
    )


def edge_sample(call: SamplingCall[graphd_pb.SampleEdgesRequest]) -> EdgeSample:
    """Decode sampled edges."""
    request, reply = call.request, call.reply
    return EdgeSample(
        src=reply.array("src", "int64"),
        dst=reply.array("dst", "int64"),
        types=reply.array("types", "int32"),
        weights=reply.array("weights", "float32"),
        edge_ids=reply.array("eids", "int64"),
        probabilities=reply.array("probabilities", "float64")
        if request.want_probabilities
        else None,
        seed=request.seed,
        version=call.version,
        token=call.token,
    )


def neighbor_sample(call: SamplingCall[graphd_pb.SampleNeighborsRequest]) -> NeighborSample:
    """Decode sampled neighbors."""
    request, reply = call.request, call.reply
    types = reply.optional_array("types", "int32", 2)
    return NeighborSample(
        nodes=reply.array("ids", "int64", 2),
        types=_single_type(request.edge_types) if types is None else types,
        infer_types=types is None,
        weights=reply.array("weights", "float32", 2) if request.want_weights else None,
        edge_ids=reply.array("eids", "int64", 2) if request.want_edge_ids else None,
        probabilities=reply.array("probabilities", "float64", 2)
        if request.want_probabilities
        else None,
        times=reply.arrays["times"] if request.temporal_filter.want_times else None,
        seed=request.seed,
        version=call.version,
        token=call.token,
    )


def fanout_sample(call: SamplingCall[graphd_pb.SampleFanoutRequest]) -> FanoutSample:
    """Decode neighbors sampled hop by hop."""
    request, reply = call.request, call.reply
    hops = []
    entries = len(call.arrays["nodes"])
    for h, hop in enumerate(request.hops):
        types = reply.optional_array(f"types.{h}", "int32")
        paths, entries = entries, len(reply.array(f"ids.{h}", "int64"))
        hops.append(
            FanoutHop(
                nodes=reply.array(f"ids.{h}", "int64"),
                types=_single_type(hop.edge_types) if types is None else types,
                infer_types=types is None,
                weights=reply.array(f"weights.{h}", "float32") if request.want_weights else None,
                edge_ids=reply.array(f"eids.{h}", "int64") if request.want_edge_ids else None,
                probabilities=reply.array(f"probabilities.{h}", "float64")
                if request.want_probabilities
                else None,
                times=reply.arrays.get(f"times.{h}"),
                fanout=entries // max(paths, 1) if hop.share else hop.count,
                features=_features(call, str(h)),
            )
        )
    return FanoutSample(
        seeds=call.arrays["nodes"],
        hops=tuple(hops),
        features=_features(call, "seeds"),
        seed=request.seed,
        version=call.version,
        token=call.token,
    )


def walk_sample(call: SamplingCall[graphd_pb.RandomWalkRequest]) -> WalkSample:
    """Decode random walks."""
    request, reply = call.request, call.reply
    nodes = reply.array("nodes", "int64", 2)
    types = reply.optional_array("types", "int32", 2)
    return WalkSample(
        nodes=nodes,
        types=np.resize(
            np.array([_single_type(step.edge_types) for step in request.steps], np.int32),
            request.length,
        )
        if types is None
        else types,
        infer_types=types is None,
        edge_ids=reply.array("eids", "int64", 2) if request.want_edge_ids else None,
        starts=reply.array("starts", "int64") if request.walks else None,
        seed=request.seed,
        version=call.version,
        token=call.token,
    )


def visit_sample(call: SamplingCall[graphd_pb.SamplePinsageRequest]) -> VisitSample:
    """Decode nodes ranked by visits."""
    request, reply = call.request, call.reply
    node_types, last_edge_type = (
        reply.optional_array("kinds", "int32", 2),
        call.schema.edge_types[request.steps[-1].edge_types[0]],
    )
    node_type = call.schema.node_type_id(
        last_edge_type.src_type if request.direction == common_pb.IN else last_edge_type.dst_type
    )
    return VisitSample(
        nodes=reply.array("ids", "int64", 2),
        types=_single_type([node_type]) if node_types is None else node_types,
        infer_types=node_types is None,
        counts=reply.array("counts", "int64", 2),
        seed=request.seed,
        version=call.version,
        token=call.token,
    )


def subgraph(call: SamplingCall[graphd_pb.SampleSubgraphRequest]) -> Subgraph:
    """Decode a sampled subgraph."""
    result = _subgraph(
        call,
        [hop_fanout.edge_type for hop_fanout in call.request.fanouts],
        disjoint=call.request.disjoint,
        seed=call.request.seed,
    )
    return (
        replace(result, times=_times(call)) if call.request.temporal_filter.want_times else result
    )


def ego_subgraphs(call: SamplingCall[graphd_pb.SampleEgoSubgraphsRequest]) -> Subgraph:
    """Decode subgraphs around seeds."""
    return _subgraph(
        call, list(call.request.edge_types), disjoint=call.request.disjoint, seed=call.request.seed
    )


def labor_subgraph(call: SamplingCall[graphd_pb.SampleLaborRequest]) -> Subgraph:
    """Decode a subgraph sampled by LABOR."""
    return _subgraph(
        call,
        [hop_fanout.edge_type for hop_fanout in call.request.fanouts],
        disjoint=False,
        seed=call.request.seed,
    )


def hgt_subgraph(call: SamplingCall[graphd_pb.SampleHgtRequest]) -> Subgraph:
    """Decode a subgraph sampled by HGT, with all edges among its nodes."""
    return _subgraph(call, list(call.request.edge_types), disjoint=False, seed=call.request.seed)


def induced_subgraph(call: SamplingCall[graphd_pb.InducedSubgraphRequest]) -> Subgraph:
    """Decode an induced subgraph.

    Nothing is sampled. If the reply has no seeds, the nodes are those of the request, numbered by
    position.
    """
    request_nodes = None if "seeds" in call.reply.arrays else call.arrays["nodes"].copy()
    return _subgraph(
        call,
        list(call.request.edge_types),
        disjoint="indptr" in call.arrays,
        seed=0,
        request_nodes=request_nodes,
    )


def _subgraph(
    call: SamplingCall[SubgraphRequest],
    edge_types: Sequence[int],
    *,
    disjoint: bool,
    seed: int,
    request_nodes: Ids | None = None,
) -> Subgraph:
    request, reply, arrays = call.request, call.reply, call.reply.arrays
    empty_ids, empty_weights = np.zeros(0, np.int64), np.zeros(0, np.float32)
    edges = {call.schema.edge_types[edge_type].name: edge_type for edge_type in edge_types}
    ends = {edge_type: _ends(call, edge_type) for edge_type in edge_types}
    types = [(i, t.name) for i, t in enumerate(call.schema.node_types)]
    node_counts, edge_counts = (
        reply.array("node_counts", "int64", 2).tolist(),
        reply.array("edge_counts", "int64", 2).tolist(),
    )
    return Subgraph(
        nodes={
            name: arrays.get(f"nodes.{i}", empty_ids)
            if request_nodes is None
            else request_nodes
            if node_counts[i][0]
            else empty_ids
            for i, name in types
        },
        row={name: ends[e][0] for name, e in edges.items()},
        col={name: ends[e][1] for name, e in edges.items()},
        edge_ids={name: arrays.get(f"eids.{e}", empty_ids) for name, e in edges.items()}
        if request.want_edge_ids
        else None,
        weights={name: arrays.get(f"weights.{e}", empty_weights) for name, e in edges.items()}
        if request.want_weights
        else None,
        batch={name: arrays.get(f"trees.{i}", empty_ids).astype(np.int64) for i, name in types}
        if disjoint
        else None,
        seeds=reply.array("seeds", "int32").astype(np.int64)
        if request_nodes is None
        else np.arange(len(request_nodes)),
        num_sampled_nodes={name: tuple(node_counts[i]) for i, name in types},
        num_sampled_edges={
            name: tuple(edge_counts[position]) for position, name in enumerate(edges)
        },
        features=_features(call, "nodes"),
        seed=seed,
        version=call.version,
        token=call.token,
    )


def _ends(call: SamplingCall[SubgraphRequest], edge_type: int) -> tuple[Ids, Ids]:
    """Return the source and destination numbers of the edges of a type.

    The reply has either both numbers of each edge, or the number of edges of each node and the
    numbers of the remote ends.
    """
    arrays = call.reply.arrays
    if f"counts.{edge_type}" not in arrays:
        empty = np.zeros(0, np.int32)
        src, dst = (
            arrays.get(f"{end}.{edge_type}", empty).astype(np.int64) for end in ("rows", "cols")
        )
        return src, dst
    counts = call.reply.array(f"counts.{edge_type}", "int32")
    local_ends, remote_ends = (
        np.repeat(np.arange(len(counts)), counts),
        call.reply.array(f"ends.{edge_type}", "int32").astype(np.int64),
    )
    return (
        (remote_ends, local_ends)
        if call.request.direction == common_pb.IN
        else (local_ends, remote_ends)
    )


def _times(call: SamplingCall[graphd_pb.SampleSubgraphRequest]) -> dict[str, Values]:
    """Return the edge times by edge type, for the types that have times."""
    out = {}
    for e in (hop_fanout.edge_type for hop_fanout in call.request.fanouts):
        if dtype := edge_time_dtype(
            call.schema, e, incoming=call.request.direction == common_pb.IN
        ):
            out[call.schema.edge_types[e].name] = call.reply.arrays.get(
                f"times.{e}", np.zeros(0, dtype)
            )
    return out


def layer_sample(call: SamplingCall[graphd_pb.SampleLayerRequest]) -> LayerSample:
    """Decode one layer."""
    layer = _layer(call, "", len(call.arrays["nodes"]), call.request.count)
    return LayerSample(
        nodes=layer.nodes,
        types=layer.types,
        probabilities=layer.probabilities,
        adjacency=layer.adjacency,
        seed=call.request.seed,
        version=call.version,
        token=call.token,
    )


def layer_stack(call: SamplingCall[graphd_pb.SampleLayersRequest]) -> LayerStack:
    """Decode a stack of layers."""
    seeds: Ids = call.arrays["nodes"]
    layers: list[Layer] = []
    for h, hop in enumerate(call.request.hops):
        layers.append(
            _layer(call, f".{h}", layers[-1].nodes.size if layers else len(seeds), hop.count)
        )
    return LayerStack(
        seeds=_reshape_to_layers(call, seeds),
        layers=tuple(layers),
        seed=call.request.seed,
        version=call.version,
        token=call.token,
    )


def _layer(
    call: SamplingCall[graphd_pb.SampleLayerRequest | graphd_pb.SampleLayersRequest],
    hop: str,
    rows: int,
    count: int,
) -> Layer:
    nodes: Ids = call.reply.array(f"ids{hop}", "int64")
    shape = (
        (len(call.arrays["nodes"]) // call.request.width, count)
        if call.request.width
        else nodes.shape
    )
    return Layer(
        nodes=nodes.reshape(shape),
        types=call.reply.array(f"kinds{hop}", "int32").reshape(shape),
        probabilities=call.reply.array(f"probabilities{hop}", "float64").reshape(shape),
        adjacency=adjacency(
            call.reply, hop, (rows, len(nodes)), weights=True, edge_ids=call.request.want_edge_ids
        ),
    )


def _reshape_to_layers(call: SamplingCall[graphd_pb.SampleLayersRequest], nodes: Ids) -> Ids:
    return nodes.reshape(-1, call.request.width) if call.request.width else nodes


def adjacency(
    reply: Frame[VersionReply], hop: str, shape: tuple[int, int], *, weights: bool, edge_ids: bool
) -> Adjacency:
    """Decode the edges between two lists of nodes; names of sections end with ``hop``."""
    return Adjacency(
        rows=reply.array(f"rows{hop}", "int64"),
        cols=reply.array(f"cols{hop}", "int64"),
        types=reply.array(f"types{hop}", "int32"),
        weights=reply.array(f"weights{hop}", "float32") if weights else None,
        edge_ids=reply.array(f"eids{hop}", "int64") if edge_ids else None,
        shape=shape,
        version=reply.head.version,
    )


def _features(
    call: SamplingCall[SubgraphRequest | graphd_pb.SampleFanoutRequest], prefix: str
) -> NodeFeatures | None:
    """Return the features returned with some of the nodes, by node type.

    Types that cannot occur among the nodes are left out.
    """
    request = call.request
    features = {}
    if not request.node_features:
        return None
    for columns in request.node_features:
        stem = f"{prefix}.{columns.type_id}."
        sections = {
            name[len(stem) :]: array
            for name, array in call.reply.arrays.items()
            if name.startswith(f"{stem}f:")
        }
        if sections:
            features[call.schema.node_types[columns.type_id].name] = validation.decode_columns(
                sections, columns.names
            )
    return features
