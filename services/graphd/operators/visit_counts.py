"""Visit counts (PinSAGE): the nodes at which most traversals of a metapath end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asterism_graphkit.operators.visit_counts import most_visited
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import walks as walk
from graphd.operators.request_context import REPLY_BYTES, Ids, RequestContext, Sections, Types

_PIECE_BYTES = REPLY_BYTES // 4
"""Maximum bytes of the walks in progress."""
_ROW_BYTES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitParams:
    """Parameters of walks, and number of nodes to return."""

    walk: walk.RandomWalkParams
    """One walk, with all its traversals."""
    walks: int
    """Number of walks per node."""
    termination: float
    count: int


def top_visited(
    context: RequestContext, params: VisitParams, nodes: Ids, node_type: int, types: Types | None
) -> Sections:
    """Return the most visited nodes of each node: sections of SamplePinsageReply.

    Notes
    -----
    Walk j of node i is walk ``i * walks + j`` of RandomWalk, step for step. A separate draw decides
    if the walk ends before a traversal. All steps can therefore be taken at once, and steps after
    the end do not count. Part of the sampling contract: changing it changes results for a given
    seed."""
    if len(nodes) * params.count * _ROW_BYTES > REPLY_BYTES:
        max_nodes = REPLY_BYTES // (_ROW_BYTES * params.count)
        raise InvalidRequest(
            f"{params.count} neighbors of {len(nodes)} nodes do not fit into one reply; request "
            f"{max_nodes} nodes at a time"
        )
    bytes_per_node = params.walks * (params.walk.length + 1) * (8 + 4 * params.walk.want_types)
    if bytes_per_node > REPLY_BYTES:
        raise InvalidRequest(
            f"{params.walks} walks of {params.walk.length} steps from each node take "
            f"{bytes_per_node:,} bytes: expected at most {REPLY_BYTES:,}; use fewer walks or "
            "traversals"
        )
    hops, neighbor_types = len(params.walk.steps), _neighbor_types(context, params.walk)
    is_mixed = len({int(neighbor_types[edge_type]) for edge_type in params.walk.steps[-1]}) > 1
    pieces = []
    step = max(_PIECE_BYTES // bytes_per_node, 1)
    for start in range(0, max(len(nodes), 1), step):
        start_nodes = np.repeat(nodes[start : start + step], params.walks)
        type_rows = None if types is None else np.repeat(types[start : start + step], params.walks)
        walk_sections = walk.random_walks(
            context,
            params.walk,
            start_nodes,
            node_type,
            type_rows,
            first_number=start * params.walks,
        )
        ends = np.ascontiguousarray(walk_sections["nodes"][:, hops::hops])
        end_types = (
            neighbor_types[walk_sections["types"][:, hops - 1 :: hops]] if is_mixed else None
        )
        pieces.append(
            most_visited(
                params.walk.seed,
                params.termination,
                start * params.walks,
                params.walks,
                nodes[start : start + step],
                ends,
                end_types,
                params.count,
            )
        )
    out: Sections = {
        "ids": np.concatenate([ids for ids, _, _ in pieces]),
        "counts": np.concatenate([counts for _, _, counts in pieces]),
    }
    if is_mixed:
        out["kinds"] = np.concatenate(
            [type_rows for _, type_rows, _ in pieces if type_rows is not None]
        )
    return out


def _neighbor_types(context: RequestContext, params: walk.RandomWalkParams) -> Types:
    """Return the node type that each edge type leads to, with -1 appended for edge type -1."""
    schema = context.space.schema
    ends = [
        schema.node_type_id(edge.dst_type if params.direction == common_pb.OUT else edge.src_type)
        for edge in schema.edge_types
    ]
    return np.array([*ends, -1], np.int32)
