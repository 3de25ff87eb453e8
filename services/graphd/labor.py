"""Subgraphs grown by LABOR: storageds keep the edges of their nodes by one variate for each node that they lead to.

Without importance steps every node stands by itself. With them, storageds tell what their nodes ask of each neighbor, step by step,
and the largest of it goes back to them: neighbors travel, not edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Internal
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import storaged_pb2 as store
from graphd import subgraph
from graphd.sample import Ids, Sampling, Sections, Types
from graphd.spread import Replies, Spread
from graphkit import labor
from graphkit.growth import Front, Met, Reach
from graphkit.jit import settled
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
    that of all nodes of a hop, along one edge type.
    """
    kept = subgraph.Subgraph(
        reach=how.reach,
        replace=False,
        uniform=how.uniform,
        direction=how.direction,
        seed=how.seed,
        disjoint=False,
        every=how.every,
        want_edge_ids=how.want_edge_ids,
        want_weights=how.want_weights,
        variates=store.Variates(layer_dependency=how.layer_dependency, importance=how.importance),
    )
    return subgraph.subgraph(sampling, kept, nodes, node_type, types, partial(_Stepping, how.importance) if how.importance else None)


class _Stepping:
    """Expands nodes with importance steps, by asking whoever owns them."""

    def __init__(self, steps: int, sampling: Sampling, how: subgraph.Subgraph) -> None:
        self._steps, self._sampling, self._how = steps, sampling, how

    def __call__(self, hop: int, along: Sequence[Reach], fronts: Mapping[int, Front]) -> Sequence[Met]:
        spread = Spread(self._sampling.space, fronts)
        return [self._met(hop, reach, spread) for reach in along]

    def _met(self, hop: int, reach: Reach, spread: Spread) -> Met:
        shared = _Shared(self._sampling, self._how, reach.counts[hop], reach, spread)
        importances = labor.importances_of(self._steps, shared.raised)
        replies = spread.ask(
            self._sampling,
            "expand",
            [reach],
            lambda along: subgraph.expand_head(self._sampling, self._how, hop, along),
            lambda host, _: shared.of(host, importances),
        )
        return spread.merged(reach, replies)


class _Shared:
    """The neighbors that the nodes of several hosts share along one edge type, and what they are worth to them."""

    def __init__(self, sampling: Sampling, how: subgraph.Subgraph, count: int, reach: Reach, spread: Spread) -> None:
        self._sampling, self._how, self._count, self._reach, self._spread = sampling, how, count, reach, spread
        self._numbers: dict[int, NDArray[np.int32]] = {}
        """Of the neighbors that each host told of."""
        self._levels: dict[int, NDArray[np.float64]] = {}
        self._nodes = 0

    def raised(self, importances: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """A step of all hosts, as `graphkit.labor.importances_of` asks for it."""
        replies = self._spread.ask(
            self._sampling,
            "raise_importances",
            [self._reach],
            lambda along: store.RaiseImportancesRequest(
                at=self._sampling.at(),
                along=[store.Along(edge_type=reach.edge_type, count=self._count) for reach in along],
                uniform=self._how.uniform,
                direction=self._how.direction,
                weight=self._sampling.weights,
            ),
            lambda host, _: {} if importances is None else self.of(host, importances),
        )
        if importances is None:
            self._number(replies)
        largest = np.zeros(self._nodes, np.float64)
        for host, reply in replies.items():
            self._levels[host] = reply.array(f"levels.{self._reach.edge_type}", "float64")
            asked = settled(reply.array(f"largest.{self._reach.edge_type}", "float64"))
            if len(asked) != len(self._numbers[host]):
                raise Internal(f"a storaged told of {len(asked)} neighbors after {len(self._numbers[host])}, of the same nodes")
            labor.raise_to(self._numbers[host], asked, largest)
        return largest

    def _number(self, replies: Replies) -> None:
        """Number the neighbors that hosts tell of, each once."""
        told = [reply.array(f"neighbors.{self._reach.edge_type}", "int64") for reply in replies.values()]
        numbers, nodes = numbered(np.concatenate(told))
        ends = np.cumsum([0, *map(len, told)])
        self._numbers = {host: settled(numbers[ends[i] : ends[i + 1]]) for i, host in enumerate(replies)}
        self._nodes = len(nodes)

    def of(self, host: int, importances: NDArray[np.float64]) -> Sections:
        """What a host is told of the steps before."""
        edge_type = self._reach.edge_type
        return {f"levels.{edge_type}": self._levels[host], f"importances.{edge_type}": importances[self._numbers[host]]}
