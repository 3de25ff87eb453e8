"""Full neighborhoods: all edges of many nodes, which may exceed the size of one reply."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from asterism_proto.errors import InvalidRequest
from graphd.operators import neighbor_reads
from graphd.operators.request_context import REPLY_BYTES, Ids, RequestContext, Sections, Types
from graphd.routing import split_merge

_PIECE_BYTES = REPLY_BYTES // 2
"""Bytes of edges per read if one reply cannot hold all."""
_MAX_BYTES = 8 * REPLY_BYTES
"""Maximum bytes of all edges of the nodes."""


def read_edges(
    context: RequestContext,
    edge_params: neighbor_reads.EdgeReadParams,
    nodes: Ids,
    node_type: int,
    types: Types | None,
    *,
    subject: str,
) -> Sections:
    """Return all edges of the nodes of a layer, or of a ``subject``.

    They come in one reply of their hosts if they fit, else in several.
    """
    try:
        return neighbor_reads.neighbors(context, edge_params, nodes, node_type, types)
    except InvalidRequest:
        degrees = neighbor_reads.degrees(
            context, edge_params.edge_types, edge_params.direction, nodes, node_type, types
        )["degrees"].sum(axis=1)
    width, ends = 16 + 8 * edge_params.want_edge_ids, np.cumsum(degrees)
    count = int(ends[-1]) if len(ends) else 0
    if (degrees * width > REPLY_BYTES).any():
        index = int(np.argmax(degrees))
        raise InvalidRequest(
            f"nodes[{index}] = {nodes[index]} has {degrees[index]} edges of these types: "
            f"expected at most {REPLY_BYTES // width} for a node of a {subject}; remove the "
            "node, or use fewer edge types"
        )
    if count * width > _MAX_BYTES:
        raise InvalidRequest(
            f"the {len(nodes)} nodes of the {subject} have {count} edges of these types: "
            f"expected at most {_MAX_BYTES // width}; use {subject}s of fewer nodes, or fewer "
            "edge types"
        )
    # Each piece ends before the node that would exceed the limit, but has at least one node.
    cuts = [0]
    while cuts[-1] < len(nodes):
        edges_before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(
            max(
                int(np.searchsorted(ends, edges_before + _PIECE_BYTES // width, side="right")),
                cuts[-1] + 1,
            )
        )
    pieces = [
        neighbor_reads.neighbors(
            context, edge_params, nodes[a:b], node_type, None if types is None else types[a:b]
        )
        for a, b in pairwise([*cuts[:-1], len(nodes)])
    ]
    lengths = np.concatenate([np.diff(piece["indptr"]) for piece in pieces])
    columns = {
        name: np.concatenate([piece[name] for piece in pieces])
        for name in pieces[0]
        if name != "indptr"
    }
    return {"indptr": split_merge.indptr_of(lengths), **columns}
