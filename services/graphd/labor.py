"""Subgraphs grown by LABOR: edges are kept by one variate for each node that they lead to.

Without importance steps every node stands by itself, and storageds keep the edges of theirs. With them, all edges of a hop's
nodes are read and kept here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import storaged_pb2 as store
from graphd import read, subgraph, whole
from graphd.sample import REPLY_BYTES, Ids, Sampling, Sections, Types
from graphkit import labor
from graphkit.growth import Front, Growing, Met, Reach, grow
from graphkit.numbering import numbered


@dataclass(frozen=True, slots=True, kw_only=True)
class Labor:
    """What is grown, and how its edges are kept."""

    reach: tuple[Reach, ...]
    uniform: bool
    direction: pb.Direction
    seed: int
    importance: int
    """Steps; -1: until they change little."""
    layer_dependency: bool
    """Whether all hops have the same variates."""
    every: bool
    want_edge_ids: bool
    want_weights: bool


def grown(sampling: Sampling, how: Labor, nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """Grow a subgraph from seeds: sections as SampleLaborReply has them.

    Notes
    -----
    The variate of a node is keyed by (hop, its type, its id), with ``layer_dependency`` by type and id alone. A node's importance is
    that of all nodes of a hop, along one edge type: they are solved for here, where all of their edges are at hand.
    """
    if not how.importance:
        by_themselves = subgraph.Subgraph(
            reach=how.reach,
            replace=False,
            uniform=how.uniform,
            direction=how.direction,
            seed=how.seed,
            disjoint=False,
            every=how.every,
            want_edge_ids=how.want_edge_ids,
            want_weights=how.want_weights,
            variates=store.Variates(layer_dependency=how.layer_dependency),
        )
        return subgraph.subgraph(sampling, by_themselves, nodes, node_type, types)
    kinds = read.node_kinds(sampling, nodes, node_type, types)
    growing = Growing(
        node_types=len(sampling.space.schema.node_types),
        reach=how.reach,
        out=how.direction == pb.OUT,
        disjoint=False,
        every=how.every,
        most_bytes=REPLY_BYTES,
    )
    return grow(growing, nodes, kinds, _Keeping(sampling, how))


class _Keeping:
    """Expands nodes with importance steps, by reading all of their edges."""

    def __init__(self, sampling: Sampling, how: Labor) -> None:
        self._sampling, self._how = sampling, how

    def __call__(self, hop: int, along: Sequence[Reach], fronts: Mapping[int, Front]) -> Sequence[Met]:
        return [self._met(hop, reach, fronts[reach.near].ids) for reach in along]

    def _met(self, hop: int, reach: Reach, nodes: Ids) -> Met:
        how = self._how
        what = read.Adjacent(
            edge_types=(reach.edge_type,), direction=how.direction, want_weights=not how.uniform, want_edge_ids=how.want_edge_ids, sort=""
        )
        found = whole.edges(self._sampling, what, nodes, reach.near, None, of="hop")
        numbers, ids = numbered(found["ids"])
        key = labor.key_of_variates(how.seed, reach.far, hop, layer_dependency=how.layer_dependency)
        weights = None if how.uniform else found["weights"]
        shares = labor.probabilities(found["indptr"], weights, numbers, reach.counts[hop], importance=how.importance)
        kept = labor.keep(key, found["indptr"], numbers, ids, weights, shares)
        return Met(
            sizes=kept.sizes,
            ids=kept.ids,
            places=kept.places,
            eids=found["eids"][kept.edges] if how.want_edge_ids else None,
            weights=kept.weights if how.want_weights else None,
        )
