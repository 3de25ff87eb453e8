"""Subgraphs: seeds, their neighbors, and theirs, hop by hop, with nodes numbered as a model wants them.

Whoever can expand nodes grows one: a storaged that has all parts by itself, a graphd by asking several. What is drawn of
a node is keyed by (hop, edge type, node, k), of disjoint trees by (hop, edge type, seed's place, node, k): it does not
depend on what else is in the batch, nor on who holds what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from graphkit.numbering import Numbering, near_ends

ALL = -1
"""As a count: every neighbor."""
_TYPES = 1 << 16
"""More than there are edge types."""

Ids = NDArray[np.int64]
Numbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How many neighbors along one edge type, hop by hop."""

    edge_type: int
    near: int
    """Type of the nodes that are expanded."""
    far: int
    """Type of their neighbors."""
    counts: tuple[int, ...]
    """0: none, -1: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """How a subgraph grows."""

    node_types: int
    """Of the schema."""
    reach: tuple[Reach, ...]
    out: bool
    """Along the edges, instead of against them."""
    disjoint: bool
    every: bool
    """Whether a node expands in every hop from the one on that met it, instead of in the next one only."""
    most_bytes: int
    """Of the answer's arrays."""

    @property
    def hops(self) -> int:
        """How many."""
        return len(self.reach[0].counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """Nodes of one type that are expanded in a hop."""

    ids: Ids
    trees: Numbers | None
    """int32[m], the seed's place; of disjoint trees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """Neighbors along one edge type, those of one node after another's."""

    sizes: Numbers
    """int32[m], how many each node of the front has."""
    ids: Ids
    eids: Ids | None
    weights: NDArray[np.float32] | None
    times: NDArray[np.int64] | NDArray[np.float64] | None = None


class Expander(Protocol):
    """Whoever can expand nodes."""

    def __call__(self, hop: int, along: Sequence[Reach], fronts: Mapping[int, Front]) -> Sequence[Met]:
        """What is met along each edge type, from the front of the node type that it starts at."""


def key_of_hop(hop: int, edge_type: int) -> int:
    """The hop that draws along an edge type are keyed by: each of them has a stream of its own."""
    return (hop + 1) * _TYPES + edge_type + 1


def too_many_bytes(most: int) -> InvalidRequest:
    """Why a subgraph has no answer."""
    return InvalidRequest(f"the subgraph has more than the {most} bytes of one reply; start from fewer seeds, or sample fewer neighbors")


def grow(how: Growing, seeds: Ids, types: Numbers, expand: Expander) -> dict[str, NDArray[Any]]:
    """Grow a subgraph from seeds.

    Parameters
    ----------
    how : Growing
    seeds : int64[m]
        Node ids; -1 is no node.
    types : int32[m]
        Their types; -1 is no node.
    expand : callable

    Returns
    -------
    dict
        Arrays by the names of SampleSubgraphReply's sections.

    Raises
    ------
    InvalidRequest
        Where it has more than ``how.most_bytes``.
    """
    with Numbering.several(how.node_types) as numbering:
        growth = _Growth(how, numbering)
        numbers = growth.plant(seeds, types)
        for hop in range(how.hops):
            growth.grow(hop, expand)
        return {"seeds": numbers, **growth.sections()}


class _Growth:
    """A subgraph under way."""

    def __init__(self, how: Growing, numbering: Sequence[Numbering]) -> None:
        self._how, self._numbering = how, numbering
        self._edges: list[dict[str, list[NDArray[Any]]]] = [{} for _ in how.reach]
        self._node_counts = np.zeros((how.node_types, how.hops + 1), np.int64)
        self._edge_counts = np.zeros((len(how.reach), how.hops), np.int64)
        self._fresh = [0] * how.node_types
        """Of each type, the number from which on nodes were met in the last hop."""
        self._bytes = 0

    def plant(self, nodes: Ids, types: Numbers) -> Numbers:
        """Number the seeds; gives each one's number."""
        out = np.full(len(nodes), -1, np.int32)
        places = np.arange(len(nodes), dtype=np.int32)
        for type_id, numbering in enumerate(self._numbering):
            mine = np.flatnonzero(types == type_id)
            if mine.size:
                out[mine] = numbering.assign(nodes[mine], places[mine] if self._how.disjoint else None)
            self._node_counts[type_id, 0] = len(numbering)
        return out

    def grow(self, hop: int, expand: Expander) -> None:
        """One hop along every edge type."""
        how, before = self._how, [len(numbering) for numbering in self._numbering]
        first = [0] * how.node_types if how.every else self._fresh
        along = [at for at, reach in enumerate(how.reach) if reach.counts[hop] and first[reach.near] < before[reach.near]]
        fronts = {}
        for type_id in {how.reach[at].near for at in along}:
            numbering, own = self._numbering[type_id], slice(first[type_id], before[type_id])
            fronts[type_id] = Front(ids=numbering.ids[own].copy(), trees=numbering.trees[own].copy() if how.disjoint else None)
        if along:
            for at, met in zip(along, expand(hop, [how.reach[at] for at in along], fronts), strict=True):
                self._take(at, met, first[how.reach[at].near], hop)
        for type_id, numbering in enumerate(self._numbering):
            self._node_counts[type_id, hop + 1] = len(numbering) - before[type_id]
        self._fresh = before

    def _take(self, at: int, met: Met, first: int, hop: int) -> None:
        """Number what was met along one edge type, and keep its edges."""
        how, reach = self._how, self._how.reach[at]
        near = near_ends(met.sizes, first, len(met.ids))
        far = self._numbering[reach.far].assign(met.ids, self._numbering[reach.near].trees[near] if how.disjoint else None)
        rows, cols = (near, far) if how.out else (far, near)
        for name, column in (("rows", rows), ("cols", cols), ("eids", met.eids), ("weights", met.weights), ("times", met.times)):
            if column is not None:
                self._edges[at].setdefault(name, []).append(column)
                self._bytes += column.nbytes
        self._edge_counts[at, hop] = len(near)
        if self._bytes + 12 * sum(map(len, self._numbering)) > how.most_bytes:
            raise too_many_bytes(how.most_bytes)

    def sections(self) -> dict[str, NDArray[Any]]:
        """The answer."""
        out: dict[str, NDArray[Any]] = {"node_counts": self._node_counts, "edge_counts": self._edge_counts}
        for type_id, numbering in enumerate(self._numbering):
            out[f"nodes.{type_id}"] = numbering.ids.copy()
            if self._how.disjoint:
                out[f"trees.{type_id}"] = numbering.trees.copy()
        for reach, edges in zip(self._how.reach, self._edges, strict=True):
            for name, pieces in edges.items():
                out[f"{name}.{reach.edge_type}"] = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return out


def reach_of(ends: Callable[[int], tuple[int, int]], edge_types: Sequence[int], counts: Sequence[Sequence[int]]) -> tuple[Reach, ...]:
    """Reaches that fit together.

    Parameters
    ----------
    ends : callable
        Gives the node types at the near and the far end of an edge type.
    edge_types : sequence of int
    counts : sequence of sequences of int
        Of each edge type, hop by hop.

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
    made = []
    for edge_type, hops in zip(edge_types, counts, strict=True):
        near, far = ends(edge_type)
        made.append(Reach(edge_type=edge_type, near=near, far=far, counts=tuple(hops)))
    return tuple(made)
