"""Subgraphs: seeds, their neighbors, and theirs, hop by hop, with nodes numbered as a model wants them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as pb
from graphd import read, sample
from graphd.sample import REPLY_BYTES, Ids, Neighbors, Sampling, Sections, Types
from graphkit.numbering import Numbering, paths

Numbers = NDArray[np.int32]
ALL = -1
"""As a count: every neighbor."""
_TYPES = 1 << 16
"""More than there are edge types: the hop that a draw is keyed by tells hop and edge type apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How many neighbors along one edge type, hop by hop."""

    edge_type: int
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """How a subgraph grows."""

    reach: tuple[Reach, ...]
    replace: bool
    uniform: bool
    direction: pb.Direction
    seed: int
    disjoint: bool
    every: bool
    want_edge_ids: bool
    want_weights: bool

    @property
    def hops(self) -> int:
        """How many."""
        return len(self.reach[0].counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Met:
    """Edges along one edge type in one hop: numbers of the near ends, far ends by id."""

    near: Numbers
    far: Ids
    eids: Ids | None
    weights: NDArray[np.float32] | None


def subgraph(sampling: Sampling, how: Growing, nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """Grow a subgraph from seeds: sections as SampleSubgraphReply has them.

    Notes
    -----
    The draws of a node are keyed by (hop, edge type, node, k), of disjoint trees by (hop, edge type, seed's place, node, k):
    they do not depend on what else is in the batch, nor on who holds what.
    """
    growth = _Growth(sampling, how)
    seeds = growth.plant(nodes, _seed_types(sampling, nodes, node_type, types))
    for hop in range(how.hops):
        growth.grow(hop)
    return {"seeds": seeds, **growth.sections()}


def _seed_types(sampling: Sampling, nodes: Ids, node_type: int, types: Types | None) -> Types:
    if node_type >= 0:
        return np.full(len(nodes), node_type, np.int32)
    if types is not None:
        return types
    # A space of global ids: whoever has the node knows its type.
    return read.node_types(sampling, nodes, -1, None)["types"]


class _Growth:
    """A subgraph under way."""

    def __init__(self, sampling: Sampling, how: Growing) -> None:
        self._sampling, self._how = sampling, how
        schema = sampling.space.schema
        self._ends = [(schema.node_type_id(edge.src_type), schema.node_type_id(edge.dst_type)) for edge in schema.edge_types]
        self._numbering = [Numbering() for _ in schema.node_types]
        self._edges: list[dict[str, list[NDArray[np.generic]]]] = [{} for _ in how.reach]
        self._node_counts = np.zeros((len(schema.node_types), how.hops + 1), np.int64)
        self._edge_counts = np.zeros((len(how.reach), how.hops), np.int64)
        self._fresh = [0] * len(schema.node_types)
        """Of each type, the number from which on nodes were met in the last hop."""
        self._bytes = 0

    def plant(self, nodes: Ids, types: Types) -> Numbers:
        """Number the seeds; gives each one's number."""
        out = np.full(len(nodes), -1, np.int32)
        places = np.arange(len(nodes), dtype=np.int32)
        for type_id, numbering in enumerate(self._numbering):
            mine = np.flatnonzero(types == type_id)
            out[mine] = numbering.assign(nodes[mine], places[mine] if self._how.disjoint else None)
            self._node_counts[type_id, 0] = len(numbering)
        return out

    def grow(self, hop: int) -> None:
        """One hop along every edge type."""
        how, before = self._how, [len(numbering) for numbering in self._numbering]
        for at, reach in enumerate(how.reach):
            src, dst = self._ends[reach.edge_type]
            near, far = (src, dst) if how.direction == pb.OUT else (dst, src)
            first = 0 if how.every else self._fresh[near]
            frontier = np.arange(first, before[near], dtype=np.int32)
            if not reach.counts[hop] or not frontier.size:
                continue
            met = self._met(reach.edge_type, near, frontier, reach.counts[hop], hop)
            trees = self._numbering[near].trees[met.near] if how.disjoint else None
            numbers = self._numbering[far].assign(met.far, trees)
            rows, cols = (met.near, numbers) if how.direction == pb.OUT else (numbers, met.near)
            self._keep(at, {"rows": rows, "cols": cols, "eids": met.eids, "weights": met.weights})
            self._edge_counts[at, hop] = len(rows)
        for type_id, numbering in enumerate(self._numbering):
            self._node_counts[type_id, hop + 1] = len(numbering) - before[type_id]
        self._fresh = before

    def _met(self, edge_type: int, near: int, frontier: Numbers, count: int, hop: int) -> _Met:
        """The neighbors of the frontier along one edge type."""
        how, numbering = self._how, self._numbering[near]
        ids = numbering.ids[frontier]
        if count == ALL:
            what = read.Adjacent(
                edge_types=(edge_type,), direction=how.direction, want_weights=how.want_weights, want_edge_ids=how.want_edge_ids, sort=""
            )
            found = read.neighbors(self._sampling, what, ids, near, None)
            return _Met(near=np.repeat(frontier, np.diff(found["indptr"])), far=found["ids"], eids=found.get("eids"), weights=found.get("weights"))
        drawn = sample.neighbors(
            self._sampling,
            Neighbors(
                edge_types=(edge_type,),
                count=count,
                replace=how.replace,
                uniform=how.uniform,
                direction=how.direction,
                seed=how.seed,
                hop=(hop + 1) * _TYPES + edge_type + 1,
                want_weights=how.want_weights,
                want_edge_ids=how.want_edge_ids,
                want_probabilities=False,
            ),
            ids,
            near,
            None,
            paths(numbering.trees[frontier], ids) if how.disjoint else ids,
        )
        there = drawn["ids"] >= 0
        return _Met(
            near=np.broadcast_to(frontier[:, None], there.shape)[there],
            far=drawn["ids"][there],
            eids=drawn["eids"][there] if how.want_edge_ids else None,
            weights=drawn["weights"][there] if how.want_weights else None,
        )

    def _keep(self, at: int, columns: dict[str, NDArray[np.generic] | None]) -> None:
        for name, column in columns.items():
            if column is not None:
                self._edges[at].setdefault(name, []).append(column)
                self._bytes += column.nbytes
        if self._bytes + 12 * sum(map(len, self._numbering)) > REPLY_BYTES:
            raise InvalidRequest(
                f"the subgraph has more than the {REPLY_BYTES} bytes of one reply; start from fewer seeds, or sample fewer neighbors"
            )

    def sections(self) -> Sections:
        """The answer."""
        out: Sections = {"node_counts": self._node_counts, "edge_counts": self._edge_counts}
        for type_id, numbering in enumerate(self._numbering):
            out[f"nodes.{type_id}"] = numbering.ids
            if self._how.disjoint:
                out[f"trees.{type_id}"] = numbering.trees
        for reach, edges in zip(self._how.reach, self._edges, strict=True):
            for name, pieces in edges.items():
                out[f"{name}.{reach.edge_type}"] = np.concatenate(pieces)
        return out


def reach_of(edge_types: Sequence[int], counts: Sequence[Sequence[int]]) -> tuple[Reach, ...]:
    """Reaches that fit together.

    Raises
    ------
    InvalidRequest
        Where there is none, an edge type is named twice, the numbers of hops differ, or a count is below -1.
    """
    if not edge_types or not counts[0]:
        raise InvalidRequest("a subgraph needs one edge type and one hop at least; say how many neighbors to sample")
    if len(set(edge_types)) != len(edge_types):
        raise InvalidRequest(f"edge types {list(edge_types)}: one is given twice")
    for edge_type, hops in zip(edge_types, counts, strict=True):
        if len(hops) != len(counts[0]):
            raise InvalidRequest(f"edge type {edge_type} has {len(hops)} hops, the first one {len(counts[0])}; give each as many")
        if min(hops) < ALL:
            raise InvalidRequest(f"count {min(hops)} of edge type {edge_type}: expected 0 or more, or -1 for all neighbors")
    return tuple(Reach(edge_type=edge_type, counts=tuple(hops)) for edge_type, hops in zip(edge_types, counts, strict=True))
