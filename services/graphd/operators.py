"""What graphd is asked for the rarer operators: nodes like others, negatives, layers, visits, PageRank, edges between lists,
types and labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import Schema
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import graphd_pb2 as wire
from asterism_proto.v1 import metad_pb2 as meta
from daemonkit.calls import Call
from graphd import along, hgt, induced, labels, labor, layer, numbered, pagerank, read, restriction, sample, visits
from graphd.positives import Positives
from graphd.requests import (
    among_of,
    budgeting_of,
    check_types,
    direction_of,
    edge_types_of,
    labor_of,
    ranking_of,
    seed_of,
    starts_of,
    subgraph_of,
    visiting_of,
    weights_of,
)
from graphd.route import Version
from graphd.sample import Ids, Sampling, Sections, Types
from graphd.totals import EDGE, NODE
from graphkit import layers

T = TypeVar("T")

_MEASURES = {wire.LAYER_MEASURE_UNSPECIFIED: layers.SUM, wire.SUM: layers.SUM, wire.SQRT: layers.SQRT, wire.SQUARES: layers.SQUARES}


class Operators(ABC):
    """Handlers of the Graph service, one part of them."""

    def __init__(self) -> None:
        self._labels = labels.Labels()

    @abstractmethod
    def _answered(self, request: Frame, call: Call, run: Callable[[Sampling], T]) -> tuple[T, Version]:
        """Run a request at the version that it names, or at the current one."""

    def sample_nodes_like(self, request: Frame, call: Call) -> Frame:
        """Nodes of the types that others have."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            schema = at.space.schema
            nodes, types = starts_of(request, schema)
            kinds = range(len(schema.node_types)) if head.node_type < 0 else [head.node_type]
            if types is not None:
                kinds = sorted(set(types[types >= 0].tolist()))
            by = restriction.by(at, NODE, kinds, head)
            what = sample.Global(
                element=NODE,
                types=tuple(kinds),
                seed=seed_of(head),
                count=head.count,
                uniform=head.uniform,
                distinct=False,
                want_probabilities=head.want_probabilities,
            )
            return numbered.like(by, numbered.Like(what=what, lenient=head.lenient), nodes, head.node_type, types)

        sections, version = self._answered(request, call, run)
        return Frame(wire.SampleNodesLikeReply(version=version.version, digest=version.digest), sections)

    def sample_negatives(self, request: Frame, call: Call) -> Frame:
        """Nodes that are not some others."""
        head: Any = request.head
        if head.rows < 0 or head.count < 0:
            raise InvalidRequest(f"{head.count} nodes for each of {head.rows} rows: expected 0 or more")

        def run(at: Sampling) -> Sections:
            schema = at.space.schema
            types = sorted(set(head.types)) or range(len(schema.node_types))
            check_types("node", schema, types)
            positives = Positives.of(at, request, types)
            what = sample.Global(
                element=NODE,
                types=tuple(types),
                seed=seed_of(head),
                count=head.count,
                uniform=head.uniform,
                distinct=False,
                want_probabilities=head.want_probabilities,
            )
            return numbered.negatives(restriction.by(at, NODE, what.types, head), what, head.rows, positives)

        sections, version = self._answered(request, call, run)
        return Frame(wire.SampleNegativesReply(version=version.version, digest=version.digest), sections)

    def sample_layer(self, request: Frame, call: Call) -> Frame:
        """Nodes for whole layers."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            nodes, types, count = _layers_of(request, at.space.schema)
            how = _layering_of(at.space.schema, head, head.edge_types, head.count, 0)
            by = restriction.by(at, EDGE, how.edge_types, head)
            return layer.layer(by, how, count, nodes, head.node_type, types)

        sections, version = self._answered(request, call, run)
        return Frame(wire.SampleLayerReply(version=version.version, digest=version.digest), sections)

    def sample_layers(self, request: Frame, call: Call) -> Frame:
        """Layer after layer."""
        head: Any = request.head
        if not head.hops:
            raise InvalidRequest("a stack of layers has one at least; this one has none")

        def run(at: Sampling) -> Sections:
            nodes, types, count = _layers_of(request, at.space.schema)
            hops = [_layering_of(at.space.schema, head, hop.edge_types, hop.count, h) for h, hop in enumerate(head.hops)]
            followed = [edge_type for hop in hops for edge_type in hop.edge_types]
            by = restriction.by(at, EDGE, followed, head)
            return layer.stack(by, hops, count, nodes, head.node_type, types)

        sections, version = self._answered(request, call, run)
        return Frame(wire.SampleLayersReply(version=version.version, digest=version.digest), sections)

    def sample_pinsage(self, request: Frame, call: Call) -> Frame:
        """The nodes most visited by walks over a metapath."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            nodes, types = starts_of(request, at.space.schema)
            how = visiting_of(at.space.schema, head)
            followed = [edge_type for step in how.walking.steps for edge_type in step]
            return visits.visits(restriction.by(at, EDGE, followed, head), how, nodes, head.node_type, types)

        sections, version = self._answered(request, call, run)
        return Frame(wire.SamplePinsageReply(version=version.version, digest=version.digest), sections)

    def personalized_pagerank(self, request: Frame, call: Call) -> Frame:
        """The nodes at which walks from others end most often."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            nodes, types = starts_of(request, at.space.schema)
            how = ranking_of(at.space.schema, head)
            return pagerank.pagerank(restriction.by(at, EDGE, how.edge_types, head), how, nodes, head.node_type, types)

        sections, version = self._answered(request, call, run)
        return Frame(wire.PersonalizedPagerankReply(version=version.version), sections)

    def sample_labor(self, request: Frame, call: Call) -> Frame:
        """Seeds with neighbors kept by one variate for each, numbered."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            nodes, types = starts_of(request, at.space.schema)
            how = labor_of(at.space.schema, head)
            by = restriction.by(at, EDGE, [reach.edge_type for reach in head.reach], head)
            return along.subgraph(at, along.wanted(at.space.schema, head), labor.grown(by, how, nodes, head.node_type, types))

        sections, version = self._answered(request, call, run)
        return Frame(wire.SampleLaborReply(version=version.version, digest=version.digest), sections)

    def adjacency(self, request: Frame, call: Call) -> Frame:
        """Edges between two lists of nodes."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            schema = at.space.schema
            nodes, types = starts_of(request, schema)
            what = among_of(schema, head)
            cols, col_types = request.array("cols", "int64"), request.optional("col_types", "int32")
            _check_cols(schema, what, cols, col_types)
            by = restriction.by(at, EDGE, what.edge_types, head)
            return layer.adjacency(by, what, nodes, head.node_type, types, cols, col_types)

        sections, version = self._answered(request, call, run)
        return Frame(wire.AdjacencyReply(version=version.version), sections)

    def sample_ego_subgraphs(self, request: Frame, call: Call) -> Frame:
        """Nodes around seeds, and all edges among them."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            schema = at.space.schema
            nodes, types = starts_of(request, schema)
            how = replace(subgraph_of(schema, request), want_edge_ids=False, want_weights=False)
            what = among_of(schema, head)
            columns = along.wanted(schema, head)
            by = restriction.by(at, EDGE, [*(reach.edge_type for reach in head.reach), *what.edge_types], head)
            return along.subgraph(at, columns, induced.ego(by, how, what, nodes, head.node_type, types))

        sections, version = self._answered(request, call, run)
        return Frame(wire.SampleEgoSubgraphsReply(version=version.version, digest=version.digest), sections)

    def sample_hgt(self, request: Frame, call: Call) -> Frame:
        """Nodes drawn layer by layer by budgets, and all edges among them."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            schema = at.space.schema
            nodes, types = starts_of(request, schema)
            how, what = budgeting_of(schema, head), among_of(schema, head)
            columns = along.wanted(schema, head)
            by = restriction.by(at, EDGE, [*how.followed, *what.edge_types], head)
            return along.subgraph(at, columns, hgt.sampled(by, how, what, nodes, head.node_type, types))

        sections, version = self._answered(request, call, run)
        return Frame(wire.SampleHgtReply(version=version.version, digest=version.digest), sections)

    def induced_subgraph(self, request: Frame, call: Call) -> Frame:
        """All edges among nodes."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            schema = at.space.schema
            nodes, types = starts_of(request, schema)
            what = among_of(schema, head)
            columns = along.wanted(schema, head)
            by = restriction.by(at, EDGE, what.edge_types, head)
            found, told = induced.induced(by, what, nodes, head.node_type, types, request.optional("indptr", "int64"))
            return {name: array for name, array in along.subgraph(at, columns, found).items() if name not in told}

        sections, version = self._answered(request, call, run)
        return Frame(wire.InducedSubgraphReply(version=version.version), sections)

    def sample_graph_labels(self, request: Frame, call: Call) -> Frame:
        """Labels of graphs."""
        head: Any = request.head
        sections, version = self._answered(request, call, lambda at: labels.sample(at, self._labels, head.seed, head.count))
        return Frame(wire.SampleGraphLabelsReply(version=version.version, digest=version.digest), sections)

    def graph_nodes(self, request: Frame, call: Call) -> Frame:
        """The nodes of graphs."""
        indptr, values = request.array("labels.indptr", "int64"), request.array("labels.values", "uint8")
        sections, version = self._answered(request, call, lambda at: labels.nodes(at, indptr, values))
        return Frame(wire.GraphNodesReply(version=version.version), sections)

    def edges_at(self, request: Frame, call: Call) -> Frame:
        """Edges by their place in a scan."""
        head: Any = request.head

        def run(at: Sampling) -> tuple[Sections, int]:
            check_types("edge", at.space.schema, [head.type_id])
            by = restriction.by(at, EDGE, [head.type_id], head)
            return read.edges_at(by, head.type_id, request.array("places", "int64"))

        (sections, count), version = self._answered(request, call, run)
        return Frame(wire.EdgesAtReply(version=version.version, count=count), sections)

    def node_types(self, request: Frame, call: Call) -> Frame:
        """The types of nodes."""
        head: Any = request.head

        def run(at: Sampling) -> Sections:
            nodes, types = starts_of(request, at.space.schema)
            return read.node_types(at, nodes, head.node_type, types)

        sections, version = self._answered(request, call, run)
        return Frame(wire.NodeTypesReply(version=version.version), sections)

    def weight_spread(self, space: str, version: int, element: int, type_id: int, weight: str, call: Call) -> tuple[read.Spread, Version]:
        """How the positive weights of a type are spread over all parts. No call of the Graph service: graphd's pages ask."""

        def run(at: Sampling) -> read.Spread:
            check_types("node" if element == NODE else "edge", at.space.schema, [type_id])
            return read.weight_spread(at.by(weights_of(element, at.space.schema, [type_id], weight)), element, type_id)

        return self._answered(Frame(meta.ManifestRequest(space=space, version=version)), call, run)


def _layering_of(schema: Schema, head: Any, edge_types: Any, count: int, hop: int) -> layer.Layering:
    """How the nodes of one layer are drawn."""
    if count < 0:
        raise InvalidRequest(f"count {count}: expected 0 or more nodes of a layer")
    if head.measure not in _MEASURES:
        raise InvalidRequest(f"measure {head.measure}: expected SUM, SQRT or SQUARES")
    return layer.Layering(
        edge_types=edge_types_of(schema, edge_types),
        count=count,
        replace=head.replace,
        uniform=head.uniform,
        direction=direction_of(schema, head.direction),
        measure=_MEASURES[head.measure],
        seed=seed_of(head),
        hop=hop,
        want_edge_ids=head.want_edge_ids,
    )


def _layers_of(request: Frame, schema: Schema) -> tuple[Ids, Types | None, int]:
    """A request's nodes, their types, and how many layers they are."""
    head: Any = request.head
    nodes, types = starts_of(request, schema)
    if head.width < 0 or (head.width and len(nodes) % head.width):
        raise InvalidRequest(f"width {head.width} with {len(nodes)} nodes: layers are of equal size")
    return nodes, types, len(nodes) // head.width if head.width else 1


def _check_cols(schema: Schema, what: read.Adjacent, cols: Ids, col_types: Types | None) -> None:
    if col_types is not None:
        if len(col_types) != len(cols):
            raise InvalidRequest(f"col_types has {len(col_types)} entries for {len(cols)} cols")
        return
    far = {schema.edge_types[e].dst_type if what.direction == pb.OUT else schema.edge_types[e].src_type for e in what.edge_types}
    if len(far) > 1 and schema.ids != "global":
        raise InvalidRequest(f"the edge types lead to {', '.join(sorted(far))}: the section col_types must then say each col's, for ids are per type")
