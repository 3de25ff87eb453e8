"""Fanouts: neighbors of nodes hop by hop, a number or a share of the edges of each node.

A share of a node's edges is a number of neighbors of its own, which the node's degree determines.
Nodes of one number are sampled together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_model.fanout_fractions import share_count
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import neighbor_reads, neighbor_sampling
from graphd.operators.neighbor_sampling import NeighborParams, neighbor_types
from graphd.operators.request_context import REPLY_BYTES, Ids, RequestContext, Sections, Types
from graphd.routing.routes import SpaceRoute

_PADDING = {"ids": -1, "types": -1, "eids": -1}
"""Values that stand for no neighbor; 0 in other sections."""


def sample_hop(
    context: RequestContext,
    params: NeighborParams,
    nodes: Ids,
    node_type: int,
    types: Types | None,
) -> Sections:
    """Sample a number of neighbors, or a share of the edges, of each node.

    Of a share, each node has the neighbors that a request for its own number of neighbors gives it
    at its position. Sections are those of `neighbor_sampling.sample_neighbors`, as wide as the
    longest row.
    """
    if params.share is None:
        return neighbor_sampling.sample_neighbors(context, params, nodes, node_type, types)
    degrees = neighbor_reads.degrees(
        context, params.edge_types, params.direction, nodes, node_type, types
    )["degrees"].sum(axis=1)
    counts = share_counts(degrees, params.share)
    width = int(counts.max(initial=0))
    neighbor_sampling.check_reply_size(replace(params, count=width), len(nodes))
    order = np.argsort(counts, kind="stable")
    distinct, starts = np.unique(counts[order], return_index=True)
    if len(distinct) < 2:
        return neighbor_sampling.sample_neighbors(
            context, replace(params, count=width), nodes, node_type, types
        )
    sections: Sections = {}
    for count, rows in zip(distinct.tolist(), np.split(order, starts[1:]), strict=True):
        if not count:
            continue
        sampled = neighbor_sampling.sample_neighbors(
            context,
            replace(params, count=count),
            nodes[rows],
            node_type,
            None if types is None else types[rows],
            positions=rows,
        )
        for name, array in sampled.items():
            if name not in sections:
                shape = (len(nodes), width, *array.shape[2:])
                sections[name] = np.full(shape, _PADDING.get(name, 0), array.dtype)
            sections[name][rows, :count] = array
    return sections


def share_counts(degrees: NDArray[np.int64], share: Fraction) -> NDArray[np.int64]:
    """Return the number of edges that a share of each degree amounts to, as int64[m].

    The arithmetic is exact, in integers of any size, once per distinct degree.
    """
    distinct, inverse = np.unique(degrees, return_inverse=True)
    counts = [share_count(share, degree) for degree in distinct.tolist()]
    return np.array(counts, np.int64)[inverse]


def sample_fanout(
    context: RequestContext,
    hops: Sequence[NeighborParams],
    nodes: Ids,
    node_type: int,
    types: Types | None,
) -> Sections:
    """Sample hop after hop from the flattened result of the previous hop.

    Sections are named ``name.hop``. The times of every hop are those of the start nodes. A hop
    after the first one gives no neighbors if its edge types do not start at its nodes.
    """
    out: Sections = {}
    path_count = 1
    for h, hop in enumerate(hops):
        if h and _is_dead_end(context.space, hop, node_type):
            node_type, types = -1, np.full(len(nodes), -1, np.int32)
        temporal_filter = (
            None if hop.temporal_filter is None else hop.temporal_filter.repeat(path_count)
        )
        sections = sample_hop(
            context, replace(hop, temporal_filter=temporal_filter), nodes, node_type, types
        )
        path_count *= sections["ids"].shape[1]
        for name, array in sections.items():
            out[f"{name}.{h}"] = array.reshape(-1)
        nodes = out[f"ids.{h}"]
        node_type, types = neighbor_types(context.space, hop, out.get(f"types.{h}"))
    _check_size(out)
    return out


def _is_dead_end(space: SpaceRoute, hop: NeighborParams, node_type: int) -> bool:
    """Return True if none of a hop's edge types starts at nodes of a type; -1 is any type."""
    schema, out = space.schema, hop.direction == common_pb.OUT
    edges = (schema.edge_types[edge_type] for edge_type in hop.edge_types)
    starts = {schema.node_type_id(edge.src_type if out else edge.dst_type) for edge in edges}
    return node_type >= 0 and node_type not in starts


def _check_size(sections: Mapping[str, NDArray[Any]]) -> None:
    total = sum(array.nbytes for array in sections.values())
    if total > REPLY_BYTES:
        raise InvalidRequest(
            f"the fanout has {total:,} bytes: expected at most {REPLY_BYTES:,} in one reply; "
            "start from fewer nodes at a time"
        )
