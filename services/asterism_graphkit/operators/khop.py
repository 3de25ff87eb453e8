"""Sample subgraphs by k-hop expansion, with nodes relabeled for a model.

The expansion needs a callable that samples neighbors. A storaged that holds all partitions does
this locally, and a graphd sends requests to several storageds. The sample of a node is keyed by
(hop, edge type, node, k), or by (hop, edge type, seed's position, node, k) for disjoint trees. It
depends neither on the rest of the batch nor on the placement of partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.relabel.relabel import Relabeling, repeat_indices
from asterism_proto.errors import InvalidRequest

ALL_NEIGHBORS = -1
"""Fanout that selects every neighbor."""
_TYPES = 1 << 16
"""Upper bound of the number of edge types.

Part of the sampling contract: changing it changes results for a given seed.
"""

Ids = NDArray[np.int64]
I32 = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class HopFanout:
    """Number of neighbors to sample along one edge type, for each hop."""

    edge_type: int
    local_type: int
    """Type of the nodes that are expanded."""
    remote_type: int
    """Type of their neighbors."""
    counts: tuple[int, ...]
    """Number of neighbors for each hop: 0 for none, -1 for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KHopParams:
    """Parameters of a k-hop expansion."""

    node_type_count: int
    """Number of node types in the schema."""
    fanouts: tuple[HopFanout, ...]
    outgoing: bool
    """True to follow edges along their direction; false to follow them against it."""
    disjoint: bool
    expand_all_hops: bool
    """True to expand a visited node in all later hops; false for the next hop only."""
    max_bytes: int
    """Maximum bytes of the arrays of the result."""

    @property
    def hop_count(self) -> int:
        """Number of hops."""
        return len(self.fanouts[0].counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """Nodes of one type that are expanded in a hop."""

    ids: Ids
    trees: I32 | None
    """Position of the seed of each node, int32[m]; only for disjoint trees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbors:
    """Neighbors along one edge type, grouped by the node of the frontier."""

    sizes: I32
    """Number of neighbors of each node of the frontier; int32[m]."""
    ids: Ids
    eids: Ids | None
    weights: NDArray[np.float32] | None
    times: NDArray[np.int64] | NDArray[np.float64] | None = None


class Expander(Protocol):
    """Callable that samples the neighbors of a frontier."""

    def __call__(
        self, hop: int, fanouts: Sequence[HopFanout], frontiers: Mapping[int, Frontier]
    ) -> Sequence[Neighbors]:
        """Sample neighbors along each edge type.

        Parameters
        ----------
        hop : int
            Index of the hop, from 0.
        fanouts : sequence of HopFanout
            Edge types to follow in this hop.
        frontiers : mapping of int to Frontier
            Frontier of each local node type.

        Returns
        -------
        sequence of Neighbors
            One for each of ``fanouts``.
        """


def hop_stream(hop: int, edge_type: int) -> int:
    """Return the stream of random numbers for an edge type in a hop."""
    return (hop + 1) * _TYPES + edge_type + 1


def reply_too_large(max_bytes: int) -> InvalidRequest:
    """Return the error for a subgraph that exceeds the bytes of one reply."""
    return InvalidRequest(
        f"the subgraph has more than the {max_bytes} bytes of one reply; start from fewer "
        "seeds, or sample fewer neighbors"
    )


def sample_khop(
    params: KHopParams,
    seeds: Ids,
    types: I32,
    expand: Expander,
    checkpoint: Callable[[], object],
) -> dict[str, NDArray[Any]]:
    """Sample a k-hop subgraph from seeds.

    Parameters
    ----------
    params : KHopParams
    seeds : int64[m]
        Node ids; -1 for no node.
    types : int32[m]
        Node types; -1 for no node.
    expand : callable
        An `Expander`.
    checkpoint : callable
        Called at intervals while ids are relabeled, and between columns. It may raise to cancel.

    Returns
    -------
    dict
        Arrays by the section names of SampleSubgraphReply.

    Raises
    ------
    InvalidRequest
        If the subgraph has more than ``params.max_bytes``.
    """
    with Relabeling.pooled(params.node_type_count) as relabelings:
        state = _KHopState(params, relabelings, checkpoint)
        local_ids = state.add_seeds(seeds, types)
        for hop in range(params.hop_count):
            state.expand_hop(hop, expand)
        return {"seeds": local_ids, **state.sections()}


class _KHopState:
    """State of one k-hop expansion."""

    def __init__(
        self,
        params: KHopParams,
        relabelings: Sequence[Relabeling],
        checkpoint: Callable[[], object],
    ) -> None:
        self._params, self._relabelings = params, relabelings
        self._checkpoint = checkpoint
        self._edges: list[dict[str, list[NDArray[Any]]]] = [{} for _ in params.fanouts]
        self._node_counts = np.zeros((params.node_type_count, params.hop_count + 1), np.int64)
        self._edge_counts = np.zeros((len(params.fanouts), params.hop_count), np.int64)
        self._fresh = [0] * params.node_type_count
        """First node, by local id, that the last hop visited; one for each node type."""
        self._bytes = 0

    def add_seeds(self, nodes: Ids, types: I32) -> I32:
        """Relabel the seeds and return their local ids."""
        out = np.full(len(nodes), -1, np.int32)
        tree_ids = np.arange(len(nodes), dtype=np.int32)
        for type_id, relabeling in enumerate(self._relabelings):
            selected = np.flatnonzero(types == type_id)
            if selected.size:
                out[selected] = relabeling.assign(
                    nodes[selected],
                    tree_ids[selected] if self._params.disjoint else None,
                    checkpoint=self._checkpoint,
                )
            self._node_counts[type_id, 0] = len(relabeling)
        return out

    def expand_hop(self, hop: int, expand: Expander) -> None:
        """Expand one hop along every edge type."""
        params, counts_before = self._params, [len(relabeling) for relabeling in self._relabelings]
        starts = [0] * params.node_type_count if params.expand_all_hops else self._fresh
        active = [
            index
            for index, fanout in enumerate(params.fanouts)
            if fanout.counts[hop] and starts[fanout.local_type] < counts_before[fanout.local_type]
        ]
        frontiers = {}
        for type_id in {params.fanouts[index].local_type for index in active}:
            relabeling, frontier_slice = (
                self._relabelings[type_id],
                slice(starts[type_id], counts_before[type_id]),
            )
            frontiers[type_id] = Frontier(
                ids=relabeling.ids[frontier_slice].copy(),
                trees=relabeling.trees[frontier_slice].copy() if params.disjoint else None,
            )
        if active:
            for index, neighbors in zip(
                active,
                expand(hop, [params.fanouts[index] for index in active], frontiers),
                strict=True,
            ):
                self._add_neighbors(index, neighbors, starts[params.fanouts[index].local_type], hop)
        for type_id, relabeling in enumerate(self._relabelings):
            self._node_counts[type_id, hop + 1] = len(relabeling) - counts_before[type_id]
        self._fresh = counts_before

    def _add_neighbors(self, index: int, neighbors: Neighbors, first: int, hop: int) -> None:
        """Relabel the neighbors along one edge type, and keep its edges."""
        params, fanout = self._params, self._params.fanouts[index]
        local = repeat_indices(neighbors.sizes, first, len(neighbors.ids))
        remote = self._relabelings[fanout.remote_type].assign(
            neighbors.ids,
            self._relabelings[fanout.local_type].trees[local] if params.disjoint else None,
            checkpoint=self._checkpoint,
        )
        rows, cols = (local, remote) if params.outgoing else (remote, local)
        for name, column in (
            ("rows", rows),
            ("cols", cols),
            ("eids", neighbors.eids),
            ("weights", neighbors.weights),
            ("times", neighbors.times),
        ):
            if column is not None:
                self._edges[index].setdefault(name, []).append(column)
                self._bytes += column.nbytes
        self._edge_counts[index, hop] = len(local)
        if self._bytes + 12 * sum(map(len, self._relabelings)) > params.max_bytes:
            raise reply_too_large(params.max_bytes)

    def sections(self) -> dict[str, NDArray[Any]]:
        """Return the sections of the reply."""
        out: dict[str, NDArray[Any]] = {
            "node_counts": self._node_counts,
            "edge_counts": self._edge_counts,
        }
        for type_id, relabeling in enumerate(self._relabelings):
            out[f"nodes.{type_id}"] = relabeling.ids.copy()
            if self._params.disjoint:
                out[f"trees.{type_id}"] = relabeling.trees.copy()
        for fanout, edges in zip(self._params.fanouts, self._edges, strict=True):
            for name, pieces in edges.items():
                out[f"{name}.{fanout.edge_type}"] = (
                    pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
                )
        return out


def build_fanouts(
    ends: Callable[[int], tuple[int, int]],
    edge_types: Sequence[int],
    counts: Sequence[Sequence[int]],
) -> tuple[HopFanout, ...]:
    """Build the fanouts of a request and check that they are consistent.

    Parameters
    ----------
    ends : callable
        Returns the node types at the local and the remote end of an edge type.
    edge_types : sequence of int
    counts : sequence of sequences of int
        Number of neighbors for each edge type and hop.

    Returns
    -------
    tuple of HopFanout

    Raises
    ------
    InvalidRequest
        If there is no edge type or hop, an edge type is given twice, the numbers of hops differ, or
        a count is below -1.
    """
    if not edge_types or not counts[0]:
        raise InvalidRequest(
            "a subgraph needs one edge type and one hop at least; say how many neighbors to sample"
        )
    if len(set(edge_types)) != len(edge_types):
        raise InvalidRequest(f"edge types {list(edge_types)}: one is given twice")
    for edge_type, hops in zip(edge_types, counts, strict=True):
        if len(hops) != len(counts[0]):
            raise InvalidRequest(
                f"edge type {edge_type} has {len(hops)} hops, the first one "
                f"{len(counts[0])}; give each as many"
            )
        if min(hops) < ALL_NEIGHBORS:
            raise InvalidRequest(
                f"count {min(hops)} of edge type {edge_type}: expected 0 or more, or -1 for "
                "all neighbors"
            )
    fanouts = []
    for edge_type, hops in zip(edge_types, counts, strict=True):
        local_type, remote_type = ends(edge_type)
        fanouts.append(
            HopFanout(
                edge_type=edge_type,
                local_type=local_type,
                remote_type=remote_type,
                counts=tuple(hops),
            )
        )
    return tuple(fanouts)
