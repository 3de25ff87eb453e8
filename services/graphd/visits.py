"""Visits: walks over a metapath again and again, and the nodes at which most of its traversals end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as pb
from graphd import walk
from graphd.sample import REPLY_BYTES, Ids, Sampling, Sections, Types
from graphkit.visits import most_visited

_PIECE_BYTES = REPLY_BYTES // 4
"""Of the walks that are under way at a time."""
_ROW_BYTES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Visiting:
    """How nodes are visited, and how many are told."""

    walking: walk.Walking
    """One walk, all traversals of it."""
    walks: int
    """From each node."""
    termination: float
    count: int


def visits(sampling: Sampling, how: Visiting, nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """The nodes most visited from each node: sections as SamplePinsageReply has them.

    Notes
    -----
    Walk j of node i is walk number i * walks + j of RandomWalk, step for step. Whether it ends before a traversal is decided
    apart from its steps, so that all of them can be taken in one go; what comes behind its end does not count.
    """
    if len(nodes) * how.count * _ROW_BYTES > REPLY_BYTES:
        most = REPLY_BYTES // (_ROW_BYTES * how.count)
        raise InvalidRequest(f"{how.count} neighbors of {len(nodes)} nodes do not fit into one reply; ask for {most} nodes at a time")
    each = how.walks * (how.walking.length + 1) * (8 + 4 * how.walking.want_types)
    if each > REPLY_BYTES:
        raise InvalidRequest(
            f"{how.walks} walks of {how.walking.length} steps from each node: expected {REPLY_BYTES} bytes of them at most, not {each}; "
            "ask for fewer walks or traversals"
        )
    hops, far = len(how.walking.steps), _far(sampling, how.walking)
    mixed = len({int(far[edge_type]) for edge_type in how.walking.steps[-1]}) > 1
    pieces = []
    step = max(_PIECE_BYTES // each, 1)
    for at in range(0, max(len(nodes), 1), step):
        own = np.repeat(nodes[at : at + step], how.walks)
        kinds = None if types is None else np.repeat(types[at : at + step], how.walks)
        walked = walk.walk(sampling, how.walking, own, node_type, kinds, first_number=at * how.walks)
        ends = np.ascontiguousarray(walked["nodes"][:, hops::hops])
        via = far[walked["types"][:, hops - 1 :: hops]] if mixed else None
        pieces.append(most_visited(how.walking.seed, how.termination, at * how.walks, how.walks, ends, via, how.count))
    out: Sections = {"ids": np.concatenate([ids for ids, _, _ in pieces]), "counts": np.concatenate([counts for _, _, counts in pieces])}
    if mixed:
        out["kinds"] = np.concatenate([kinds for _, kinds, _ in pieces if kinds is not None])
    return out


def _far(sampling: Sampling, how: walk.Walking) -> Types:
    """The node type that each edge type of the schema leads to; -1 behind the last one, for none."""
    schema = sampling.space.schema
    ends = [schema.node_type_id(edge.dst_type if how.direction == pb.OUT else edge.src_type) for edge in schema.edge_types]
    return np.array([*ends, -1], np.int32)
