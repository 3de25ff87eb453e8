"""Subgraphs, grown by asking the storageds of a space: once a hop, or once in all where one of them has every part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from asterism_proto.arrays import Frame
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import storaged_pb2 as store
from graphd import read
from graphd.sample import REPLY_BYTES, Ids, Sampling, Sections, Types
from graphd.spread import Spread
from graphd.until import Until
from graphkit.growth import Expander, Front, Growing, Met, Reach, grow


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgraph:
    """What is grown, and how its edges are drawn."""

    reach: tuple[Reach, ...]
    replace: bool
    uniform: bool
    direction: pb.Direction
    seed: int
    disjoint: bool
    every: bool
    want_edge_ids: bool
    want_weights: bool
    until: Until | None = None
    variates: store.Variates | None = None
    """Whose variates keep edges, instead of drawing them for each node."""


def subgraph(
    sampling: Sampling,
    how: Subgraph,
    nodes: Ids,
    node_type: int,
    types: Types | None,
    expander: Callable[[Sampling, Subgraph], Expander] | None = None,
) -> Sections:
    """Grow a subgraph from seeds: sections as SampleSubgraphReply has them. ``expander`` asks several hosts; None: once a hop."""
    kinds = read.node_kinds(sampling, nodes, node_type, types)
    if len(sampling.space.hosts) == 1:
        return _grown(sampling, how, nodes, kinds)
    growing = Growing(
        node_types=len(sampling.space.schema.node_types),
        reach=how.reach,
        out=how.direction == pb.OUT,
        disjoint=how.disjoint,
        every=how.every,
        most_bytes=REPLY_BYTES,
    )
    return grow(growing, nodes, kinds, (expander or _Asking)(sampling, how))


def _grown(sampling: Sampling, how: Subgraph, nodes: Ids, types: Types) -> Sections:
    """The whole of it, by the one storaged that has every part."""
    head = store.GrowRequest(
        at=sampling.at(),
        reach=[store.Growth(edge_type=reach.edge_type, counts=reach.counts) for reach in how.reach],
        disjoint=how.disjoint,
        every=how.every,
        most_bytes=REPLY_BYTES,
        replace=how.replace,
        uniform=how.uniform,
        direction=how.direction,
        seed=how.seed,
        want_edge_ids=how.want_edge_ids,
        want_weights=how.want_weights,
        weight=sampling.weights,
        until=None if how.until is None else how.until.head,
        variates=how.variates,
    )
    times = {} if how.until is None else {"times": how.until.times}
    (reply,) = sampling.ask("grow", [(0, Frame(head, {"ids": nodes, "types": types, **times}))])
    return dict(reply.arrays)


class _Asking:
    """Expands nodes by asking whoever owns them, about all edge types at a time."""

    def __init__(self, sampling: Sampling, how: Subgraph) -> None:
        self._sampling, self._how = sampling, how

    def __call__(self, hop: int, along: Sequence[Reach], fronts: Mapping[int, Front]) -> Sequence[Met]:
        spread = Spread(self._sampling.space, fronts, self._how.until)
        replies = spread.ask(self._sampling, "expand", along, lambda theirs: expand_head(self._sampling, self._how, hop, theirs))
        return [spread.merged(reach, replies) for reach in along]


def expand_head(sampling: Sampling, how: Subgraph, hop: int, along: Sequence[Reach]) -> store.ExpandRequest:
    """What a storaged is asked of a hop."""
    return store.ExpandRequest(
        at=sampling.at(),
        hop=hop,
        along=[store.Along(edge_type=reach.edge_type, count=reach.counts[hop]) for reach in along],
        replace=how.replace,
        uniform=how.uniform,
        direction=how.direction,
        seed=how.seed,
        want_edge_ids=how.want_edge_ids,
        want_weights=how.want_weights,
        weight=sampling.weights,
        until=None if how.until is None else how.until.head,
        variates=how.variates,
    )
