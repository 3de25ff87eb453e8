"""Subgraphs, grown by asking the storageds of a space: once a hop, or once in all where one of them has every part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from asterism_proto.arrays import Frame
from asterism_proto.errors import Internal
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import storaged_pb2 as store
from graphd import read, split
from graphd.sample import REPLY_BYTES, Ids, Sampling, Sections, Types
from graphd.until import Until
from graphkit.growth import Front, Growing, Met, Reach, grow
from graphkit.merge import merge_runs, merge_sizes
from graphkit.split import part_of


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


def subgraph(sampling: Sampling, how: Subgraph, nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """Grow a subgraph from seeds: sections as SampleSubgraphReply has them."""
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
    return grow(growing, nodes, kinds, _Asking(sampling, how))


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
        space = self._sampling.space
        plans = {}
        owners = {}
        for type_id, front in fronts.items():
            owners[type_id] = space.host_of_part[part_of(front.ids, space.schema.parts, space.schema.placement)]
            plans[type_id] = dict(split.by_owner(owners[type_id], len(space.hosts)))
        hosts = sorted({host for plan in plans.values() for host in plan})
        asked = []
        for host in hosts:
            sections: Sections = {}
            for type_id, front in fronts.items():
                if host in plans[type_id]:
                    rows = plans[type_id][host]
                    sections[f"ids.{type_id}"] = front.ids[rows]
                    if front.trees is not None:
                        sections[f"trees.{type_id}"] = front.trees[rows]
                        if self._how.until is not None:
                            sections[f"times.{type_id}"] = self._how.until.at(front.trees[rows])
            asked.append((host, Frame(self._head(hop, [reach for reach in along if host in plans[reach.near]]), sections)))
        replies = dict(zip(hosts, self._sampling.ask("expand", asked), strict=True))
        place = np.zeros(len(space.hosts), np.int32)  # of a host among those that have any of a front
        met = []
        for reach in along:
            theirs = sorted(plans[reach.near])
            place[theirs] = np.arange(len(theirs), dtype=np.int32)
            met.append(_merged(reach.edge_type, place[owners[reach.near]], [replies[host] for host in theirs]))
        return met

    def _head(self, hop: int, along: Sequence[Reach]) -> store.ExpandRequest:
        how = self._how
        return store.ExpandRequest(
            at=self._sampling.at(),
            hop=hop,
            along=[store.Along(edge_type=reach.edge_type, count=reach.counts[hop]) for reach in along],
            replace=how.replace,
            uniform=how.uniform,
            direction=how.direction,
            seed=how.seed,
            want_edge_ids=how.want_edge_ids,
            want_weights=how.want_weights,
            weight=self._sampling.weights,
            until=None if how.until is None else how.until.head,
            variates=how.variates,
        )


def _merged(edge_type: int, of: Types, replies: Sequence[Frame]) -> Met:
    """One edge type's neighbors, out of what each host said of its own nodes."""
    sizes = [reply.array(f"sizes.{edge_type}", "int32") for reply in replies]
    if sum(map(len, sizes)) != len(of):
        raise Internal(f"the storageds told of {sum(map(len, sizes))} nodes' neighbors; they were asked about {len(of)}")
    whole = merge_sizes(of, sizes) if len(sizes) > 1 else sizes[0]

    def column(name: str) -> Any:
        pieces = [reply.arrays[f"{name}.{edge_type}"] for reply in replies if f"{name}.{edge_type}" in reply.arrays]
        return None if not pieces else merge_runs(of, whole, pieces) if len(pieces) > 1 else pieces[0]

    return Met(sizes=whole, ids=column("ids"), eids=column("eids"), weights=column("weights"), times=column("times"))
