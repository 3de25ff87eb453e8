"""Whole neighborhoods: all edges of many nodes at a time, more than one reply has room for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from asterism_proto.errors import InvalidRequest
from graphd import read, split
from graphd.sample import REPLY_BYTES, Ids, Sampling, Sections, Types

_PIECE_BYTES = REPLY_BYTES // 2
"""Of the edges that are read at a time, where there are too many for one reply."""
_MOST_BYTES = 8 * REPLY_BYTES
"""Of all edges of the nodes."""


def edges(sampling: Sampling, what: read.Adjacent, nodes: Ids, node_type: int, types: Types | None, *, of: str) -> Sections:
    """All edges of the nodes of a layer, or of what ``of`` says: in one reply of their hosts, or, where that is too large, in several."""
    try:
        return read.neighbors(sampling, what, nodes, node_type, types)
    except InvalidRequest:
        degrees = read.degrees(sampling, what.edge_types, what.direction, nodes, node_type, types)["degrees"].sum(axis=1)
    width, ends = 16 + 8 * what.want_edge_ids, np.cumsum(degrees)
    count = int(ends[-1]) if len(ends) else 0
    if (degrees * width > REPLY_BYTES).any():
        at = int(np.argmax(degrees))
        raise InvalidRequest(
            f"nodes[{at}] = {nodes[at]} has {degrees[at]} edges along these types, a node of a {of} at most {REPLY_BYTES // width}; "
            "leave it out, or ask along fewer edge types"
        )
    if count * width > _MOST_BYTES:
        raise InvalidRequest(
            f"the {len(nodes)} nodes of the {of} have {count} edges along these types, a {of} at most {_MOST_BYTES // width}; "
            f"ask for {of}s of fewer nodes, or along fewer edge types"
        )
    # Each piece ends where the next node's edges would be too many; a node by itself is one at least.
    cuts = [0]
    while cuts[-1] < len(nodes):
        before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(max(int(np.searchsorted(ends, before + _PIECE_BYTES // width, side="right")), cuts[-1] + 1))
    pieces = [
        read.neighbors(sampling, what, nodes[a:b], node_type, None if types is None else types[a:b]) for a, b in pairwise([*cuts[:-1], len(nodes)])
    ]
    lengths = np.concatenate([np.diff(piece["indptr"]) for piece in pieces])
    columns = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0] if name != "indptr"}
    return {"indptr": split.indptr_of(lengths), **columns}
