"""Records out of replies to sampling calls, for a call as it is made and for one that is made again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism import arguments
from asterism.records import (
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
from asterism_proto.arrays import Frame
from asterism_proto.schema import Schema
from asterism_proto.times import seen_as
from asterism_proto.v1 import common_pb2 as pb

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A sampling call and its reply."""

    asked: Any
    """The request's head."""
    arrays: Arrays
    """Its sections."""
    reply: Frame
    schema: Schema
    token: str

    @property
    def version(self) -> int:
        """The version that the reply was made from."""
        head: Any = self.reply.head
        return int(head.version)


def _only(types: Sequence[int]) -> Types:
    """int32[], the one type that a reply leaves out; -1 where there is none."""
    return np.array(types[0] if types else -1, np.int32)


def node_sample(to: Answered) -> NodeSample:
    """Drawn nodes."""
    asked, reply = to.asked, to.reply
    types = reply.optional("types", "int32")
    return NodeSample(
        nodes=reply.array("ids", "int64"),
        types=_only(asked.types or [0]) if types is None else types,
        lay_types=types is None,
        probabilities=reply.array("probabilities", "float64") if asked.want_probabilities else None,
        seed=asked.seed,
        version=to.version,
        token=to.token,
    )


def nodes_like(to: Answered) -> NodeRows:
    """Nodes of the types of others."""
    drawn: Ids = to.reply.array("ids", "int64", 2)
    return _rows(to, drawn, to.reply.array("types", "int32")[:, None], lay=True)


def negatives(to: Answered) -> NodeRows:
    """Nodes that are not some others."""
    return _rows(to, to.reply.array("ids", "int64", 2), to.reply.array("types", "int32", 2), lay=False)


def _rows(to: Answered, nodes: Ids, types: Types, *, lay: bool) -> NodeRows:
    probabilities = to.reply.array("probabilities", "float64", 2) if to.asked.want_probabilities else None
    return NodeRows(nodes=nodes, types=types, lay_types=lay, probabilities=probabilities, seed=to.asked.seed, version=to.version, token=to.token)


def graph_labels(to: Answered) -> GraphLabels:
    """Drawn labels of graphs."""
    at = to.reply.array("labels.indptr", "int64").tolist()
    text = to.reply.array("labels.values", "uint8").tobytes()
    labels = tuple(text[start:stop] for start, stop in pairwise(at))
    return GraphLabels(labels=labels, seed=to.asked.seed, version=to.version, token=to.token)


def edge_sample(to: Answered) -> EdgeSample:
    """Drawn edges."""
    asked, reply = to.asked, to.reply
    return EdgeSample(
        src=reply.array("src", "int64"),
        dst=reply.array("dst", "int64"),
        types=reply.array("types", "int32"),
        weights=reply.array("weights", "float32"),
        edge_ids=reply.array("eids", "int64"),
        probabilities=reply.array("probabilities", "float64") if asked.want_probabilities else None,
        seed=asked.seed,
        version=to.version,
        token=to.token,
    )


def neighbor_sample(to: Answered) -> NeighborSample:
    """Drawn neighbors."""
    asked, reply = to.asked, to.reply
    types = reply.optional("types", "int32", 2)
    return NeighborSample(
        nodes=reply.array("ids", "int64", 2),
        types=_only(asked.edge_types) if types is None else types,
        lay_types=types is None,
        weights=reply.array("weights", "float32", 2) if asked.want_weights else None,
        edge_ids=reply.array("eids", "int64", 2) if asked.want_edge_ids else None,
        probabilities=reply.array("probabilities", "float64", 2) if asked.want_probabilities else None,
        times=reply.arrays["times"] if asked.until.want_times else None,
        seed=asked.seed,
        version=to.version,
        token=to.token,
    )


def fanout_sample(to: Answered) -> FanoutSample:
    """Drawn neighbors, hop after hop."""
    asked, reply = to.asked, to.reply
    hops = []
    for h, hop in enumerate(asked.hops):
        types = reply.optional(f"types.{h}", "int32")
        hops.append(
            FanoutHop(
                nodes=reply.array(f"ids.{h}", "int64"),
                types=_only(hop.edge_types) if types is None else types,
                lay_types=types is None,
                weights=reply.array(f"weights.{h}", "float32") if asked.want_weights else None,
                edge_ids=reply.array(f"eids.{h}", "int64") if asked.want_edge_ids else None,
                probabilities=reply.array(f"probabilities.{h}", "float64") if asked.want_probabilities else None,
                times=reply.arrays.get(f"times.{h}"),
                fanout=hop.count,
                features=_features(to, str(h)),
            )
        )
    return FanoutSample(
        seeds=to.arrays["nodes"], hops=tuple(hops), features=_features(to, "seeds"), seed=asked.seed, version=to.version, token=to.token
    )


def walk_sample(to: Answered) -> WalkSample:
    """Walks."""
    asked, reply = to.asked, to.reply
    walked = reply.array("nodes", "int64", 2)
    types = reply.optional("types", "int32", 2)
    return WalkSample(
        nodes=walked,
        types=np.resize(np.array([_only(step.edge_types) for step in asked.steps], np.int32), asked.length) if types is None else types,
        lay_types=types is None,
        edge_ids=reply.array("eids", "int64", 2) if asked.want_edge_ids else None,
        starts=reply.array("starts", "int64") if asked.walks else None,
        seed=asked.seed,
        version=to.version,
        token=to.token,
    )


def visit_sample(to: Answered) -> VisitSample:
    """Nodes by visits."""
    asked, reply = to.asked, to.reply
    kinds, last = reply.optional("kinds", "int32", 2), to.schema.edge_types[asked.steps[-1].edge_types[0]]
    only = to.schema.node_type_id(last.src_type if asked.direction == pb.IN else last.dst_type)
    return VisitSample(
        nodes=reply.array("ids", "int64", 2),
        types=_only([only]) if kinds is None else kinds,
        lay_types=kinds is None,
        counts=reply.array("counts", "int64", 2),
        seed=asked.seed,
        version=to.version,
        token=to.token,
    )


def subgraph(to: Answered) -> Subgraph:
    """A sampled subgraph."""
    found = _subgraph(to, [reach.edge_type for reach in to.asked.reach], disjoint=to.asked.disjoint, seed=to.asked.seed)
    return replace(found, times=_times(to)) if to.asked.until.want_times else found


def ego_subgraphs(to: Answered) -> Subgraph:
    """Subgraphs around seeds."""
    return _subgraph(to, list(to.asked.edge_types), disjoint=to.asked.disjoint, seed=to.asked.seed)


def labor(to: Answered) -> Subgraph:
    """A subgraph whose edges were kept by shared variates."""
    return _subgraph(to, [reach.edge_type for reach in to.asked.reach], disjoint=False, seed=to.asked.seed)


def hgt(to: Answered) -> Subgraph:
    """A subgraph of nodes drawn by budgets, with all edges among them."""
    return _subgraph(to, list(to.asked.edge_types), disjoint=False, seed=to.asked.seed)


def induced(to: Answered) -> Subgraph:
    """An induced subgraph: nothing of it is drawn. Nodes may be those of the request, numbered by their places there."""
    given = None if "seeds" in to.reply.arrays else to.arrays["nodes"].copy()
    return _subgraph(to, list(to.asked.edge_types), disjoint="indptr" in to.arrays, seed=0, given=given)


def _subgraph(to: Answered, edge_types: Sequence[int], *, disjoint: bool, seed: int, given: Ids | None = None) -> Subgraph:
    asked, reply, found = to.asked, to.reply, to.reply.arrays
    none, nowhere = np.zeros(0, np.int64), np.zeros(0, np.float32)
    edges = {to.schema.edge_types[edge_type].name: edge_type for edge_type in edge_types}
    ends = {edge_type: _ends(to, edge_type) for edge_type in edge_types}
    types = [(i, t.name) for i, t in enumerate(to.schema.node_types)]
    nodes_of, edges_of = reply.array("node_counts", "int64", 2).tolist(), reply.array("edge_counts", "int64", 2).tolist()
    return Subgraph(
        nodes={name: found.get(f"nodes.{i}", none) if given is None else given if nodes_of[i][0] else none for i, name in types},
        row={name: ends[e][0] for name, e in edges.items()},
        col={name: ends[e][1] for name, e in edges.items()},
        edge_ids={name: found.get(f"eids.{e}", none) for name, e in edges.items()} if asked.want_edge_ids else None,
        weights={name: found.get(f"weights.{e}", nowhere) for name, e in edges.items()} if asked.want_weights else None,
        batch={name: found.get(f"trees.{i}", none).astype(np.int64) for i, name in types} if disjoint else None,
        seeds=reply.array("seeds", "int32").astype(np.int64) if given is None else np.arange(len(given)),
        num_sampled_nodes={name: tuple(nodes_of[i]) for i, name in types},
        num_sampled_edges={name: tuple(edges_of[at]) for at, name in enumerate(edges)},
        features=_features(to, "nodes"),
        seed=seed,
        version=to.version,
        token=to.token,
    )


def _ends(to: Answered, edge_type: int) -> tuple[Ids, Ids]:
    """The numbers of the sources and destinations of edges: told as such, or how many edges each node has, and where these lead."""
    found = to.reply.arrays
    if f"counts.{edge_type}" not in found:
        nowhere = np.zeros(0, np.int32)
        src, dst = (found.get(f"{end}.{edge_type}", nowhere).astype(np.int64) for end in ("rows", "cols"))
        return src, dst
    counts = to.reply.array(f"counts.{edge_type}", "int32")
    near, far = np.repeat(np.arange(len(counts)), counts), to.reply.array(f"ends.{edge_type}", "int32").astype(np.int64)
    return (far, near) if to.asked.direction == pb.IN else (near, far)


def _times(to: Answered) -> dict[str, Values]:
    """The times of edges, of the edge types that have any."""
    out = {}
    for e in (reach.edge_type for reach in to.asked.reach):
        if dtype := seen_as(to.schema, e, incoming=to.asked.direction == pb.IN):
            out[to.schema.edge_types[e].name] = to.reply.arrays.get(f"times.{e}", np.zeros(0, dtype))
    return out


def layer_sample(to: Answered) -> LayerSample:
    """One layer."""
    layer = _layer(to, "", len(to.arrays["nodes"]), to.asked.count)
    return LayerSample(
        nodes=layer.nodes,
        types=layer.types,
        probabilities=layer.probabilities,
        adjacency=layer.adjacency,
        seed=to.asked.seed,
        version=to.version,
        token=to.token,
    )


def layer_stack(to: Answered) -> LayerStack:
    """Layer upon layer."""
    seeds: Ids = to.arrays["nodes"]
    layers: list[Layer] = []
    for h, hop in enumerate(to.asked.hops):
        layers.append(_layer(to, f".{h}", layers[-1].nodes.size if layers else len(seeds), hop.count))
    return LayerStack(seeds=_in_layers(to, seeds), layers=tuple(layers), seed=to.asked.seed, version=to.version, token=to.token)


def _layer(to: Answered, hop: str, rows: int, count: int) -> Layer:
    drawn: Ids = to.reply.array(f"ids{hop}", "int64")
    shape = (len(to.arrays["nodes"]) // to.asked.width, count) if to.asked.width else drawn.shape
    return Layer(
        nodes=drawn.reshape(shape),
        types=to.reply.array(f"kinds{hop}", "int32").reshape(shape),
        probabilities=to.reply.array(f"probabilities{hop}", "float64").reshape(shape),
        adjacency=adjacency(to.reply, hop, (rows, len(drawn)), weights=True, edge_ids=to.asked.want_edge_ids),
    )


def _in_layers(to: Answered, nodes: Ids) -> Ids:
    return nodes.reshape(-1, to.asked.width) if to.asked.width else nodes


def adjacency(reply: Frame, hop: str, shape: tuple[int, int], *, weights: bool, edge_ids: bool) -> Adjacency:
    """Edges between two lists; sections' names end with ``hop``."""
    head: Any = reply.head
    return Adjacency(
        rows=reply.array(f"rows{hop}", "int64"),
        cols=reply.array(f"cols{hop}", "int64"),
        types=reply.array(f"types{hop}", "int32"),
        weights=reply.array(f"weights{hop}", "float32") if weights else None,
        edge_ids=reply.array(f"eids{hop}", "int64") if edge_ids else None,
        shape=shape,
        version=int(head.version),
    )


def _features(to: Answered, of: str) -> NodeFeatures | None:
    """Features that came along for some of the nodes, by node type; types that can not be among them are left out."""
    asked, found = to.asked, {}
    if not asked.node_features:
        return None
    for columns in asked.node_features:
        stem = f"{of}.{columns.type_id}."
        mine = {name[len(stem) :]: array for name, array in to.reply.arrays.items() if name.startswith(f"{stem}f:")}
        if mine:
            found[to.schema.node_types[columns.type_id].name] = arguments.columns(mine, columns.names)
    return found
