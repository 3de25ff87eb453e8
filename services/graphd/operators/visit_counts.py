"""Visits: walks over a metapath again and again, and the nodes at which most of its traversals
end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asterism_graphkit.operators.visit_counts import most_visited
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import walks as walk
from graphd.operators.sampling import REPLY_BYTES, Ids, RequestContext, Sections, Types

_PIECE_BYTES = REPLY_BYTES // 4
"""Of the walks that are under way at a time."""
_ROW_BYTES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitParams:
    """How nodes are visited, and how many are told."""

    walk: walk.RandomWalkParams
    """One walk, all traversals of it."""
    walks: int
    """From each node."""
    termination: float
    count: int


def top_visited(
    context: RequestContext, params: VisitParams, nodes: Ids, node_type: int, types: Types | None
) -> Sections:
    """The nodes most visited from each node: sections as SamplePinsageReply has them.

    Notes
    -----
    Walk j of node i is walk number i * walks + j of RandomWalk, step for step. Whether it ends
    before a traversal is decided apart from its steps, so that all of them can be taken in one go;
    what comes behind its end does not count."""
    if len(nodes) * params.count * _ROW_BYTES > REPLY_BYTES:
        max_nodes = REPLY_BYTES // (_ROW_BYTES * params.count)
        raise InvalidRequest(
            f"{params.count} neighbors of {len(nodes)} nodes do not fit into one reply; ask "
            f"for {max_nodes} nodes at a time"
        )
    bytes_per_node = params.walks * (params.walk.length + 1) * (8 + 4 * params.walk.want_types)
    if bytes_per_node > REPLY_BYTES:
        raise InvalidRequest(
            f"{params.walks} walks of {params.walk.length} steps from each node: expected "
            f"{REPLY_BYTES} bytes of them at most, not {bytes_per_node}; "
            "ask for fewer walks or traversals"
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
    """The node type that each edge type of the schema leads to; -1 behind the last one, for
    none.
    """
    schema = context.space.schema
    ends = [
        schema.node_type_id(edge.dst_type if params.direction == common_pb.OUT else edge.src_type)
        for edge in schema.edge_types
    ]
    return np.array([*ends, -1], np.int32)
