"""Decoding of the fields and sections that several requests share.

This module checks fields and sections against the schema of the space. Fields of only one family
of requests are decoded in the module of that family."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from asterism_graphkit.operators import khop
from asterism_model.filters.syntax import parse
from asterism_model.schema import Schema
from asterism_model.weight_names import canonical_weight_name
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.operators import neighbor_reads
from graphd.operators.call_seeds import Operator, call_seed
from graphd.operators.filters import RowFields
from graphd.operators.request_context import Ids, Types
from graphd.operators.schema_checks import check_types

InducedRequest = (
    graphd_pb.AdjacencyRequest
    | graphd_pb.InducedSubgraphRequest
    | graphd_pb.SampleEgoSubgraphsRequest
    | graphd_pb.SampleHgtRequest
)
"""Requests for edges among nodes."""


class NodeFields(Protocol):
    """Fields of a request with node ids in its section ``nodes``."""

    node_type: int


class SeedFields(RowFields, Protocol):
    """Fields of a request that samples rows."""

    seed: int
    uniform: bool


def decode_seed(
    head: SeedFields,
    operator: Operator,
    *,
    types: Iterable[int] = (),
    direction: common_pb.Direction = common_pb.DIRECTION_UNSPECIFIED,
) -> int:
    """Return the seed of a request's draws, or of those of one hop; see `call_seed`."""
    return call_seed(
        head.seed,
        operator,
        types=types,
        weighted=not head.uniform,
        direction=direction,
        weights=canonical_weight_name(head.weight),
        where=parse(head.where).canonical if head.where else "",
    )


def decode_nodes(request: Frame[NodeFields], schema: Schema) -> tuple[Ids, Types | None]:
    """Return a request's nodes, and their types if each node has its own."""
    head = request.head
    nodes = request.array("nodes", "int64")
    if head.node_type >= 0:
        check_types("node", schema, [head.node_type])
        return nodes, None
    types = request.optional_array("types", "int32")
    if types is None:
        if schema.ids != "global":
            raise InvalidRequest(
                "node type -1: expected a node type for each node in the section `types`, "
                "because ids of this space are per type"
            )
        return nodes, None
    if len(types) != len(nodes):
        raise InvalidRequest(f"types has {len(types)} entries: expected {len(nodes)}, one per node")
    if types.size and (types.min() < -1 or types.max() >= len(schema.node_types)):
        index = int(np.argmax((types < -1) | (types >= len(schema.node_types))))
        raise InvalidRequest(
            f"types[{index}] = {types[index]}: expected a node type of the schema, 0 to "
            f"{len(schema.node_types) - 1}"
        )
    return nodes, types


def decode_edge_types(schema: Schema, types: Sequence[int]) -> tuple[int, ...]:
    """Return the edge types of a request, each once."""
    if not types:
        raise InvalidRequest("edge_types: expected at least one edge type")
    check_types("edge", schema, types)
    return tuple(dict.fromkeys(types))


def decode_direction(schema: Schema, direction: int) -> common_pb.Direction:
    """Return OUT or IN; IN requires that the space keeps in-copies."""
    if direction in (common_pb.DIRECTION_UNSPECIFIED, common_pb.OUT):
        return common_pb.OUT
    if direction != common_pb.IN:
        raise InvalidRequest(f"direction {direction}: expected OUT or IN")
    if not schema.has_in:
        raise InvalidRequest(
            "direction in: the space keeps out-edges only; create it with `direction: both`"
        )
    return common_pb.IN


def decode_fanouts(
    schema: Schema, reach: Sequence[graphd_pb.EdgeTypeFanouts], direction: common_pb.Direction
) -> tuple[khop.HopFanout, ...]:
    """Return how many neighbors to sample per edge type and hop."""
    check_types("edge", schema, [fanout.edge_type for fanout in reach])

    def ends(edge_type: int) -> tuple[int, int]:
        src, dst = schema.edge_ends[edge_type]
        return (src, dst) if direction == common_pb.OUT else (dst, src)

    return khop.build_fanouts(
        ends,
        [fanout.edge_type for fanout in reach],
        [list(fanout.counts) for fanout in reach],
    )


def decode_induced_edges(schema: Schema, head: InducedRequest) -> neighbor_reads.EdgeReadParams:
    """Return the parameters for reading the edges among nodes."""
    return neighbor_reads.EdgeReadParams(
        edge_types=decode_edge_types(schema, head.edge_types),
        direction=decode_direction(schema, head.direction),
        want_weights=head.want_weights,
        want_edge_ids=head.want_edge_ids,
        sort="",
    )


def step_edge_types(steps: Iterable[Iterable[int]]) -> list[int]:
    """Return the edge types of all steps of walks, or of all hops."""
    return [edge_type for step in steps for edge_type in step]
