"""The nodes of a hop, spread over the storageds that own them: what each is asked about, and its answers put together again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import Message

from asterism_proto.arrays import Frame
from asterism_proto.errors import Internal
from graphd import split
from graphd.route import Space
from graphd.sample import Sampling, Sections
from graphd.until import Until
from graphkit.growth import Front, Met, Reach
from graphkit.merge import merge_runs, merge_sizes
from graphkit.split import part_of

Replies = Mapping[int, Frame]
"""By host."""


class Spread:
    """Who owns which nodes of a hop.

    Parameters
    ----------
    space : Space
    fronts : mapping
        Of each node type that expands.
    until : Until, optional
        Of the seeds, in whose trees nodes are.
    """

    def __init__(self, space: Space, fronts: Mapping[int, Front], until: Until | None = None) -> None:
        self._fronts, self._until, self._hosts = fronts, until, len(space.hosts)
        parts = {type_id: part_of(front.ids, space.schema.parts, space.schema.placement) for type_id, front in fronts.items()}
        self._owners = {type_id: space.host_of_part[of] for type_id, of in parts.items()}
        self._rows = {type_id: dict(split.by_owner(owners, len(space.hosts))) for type_id, owners in self._owners.items()}

    def hosts(self, along: Sequence[Reach]) -> list[int]:
        """Those that own nodes that an edge type starts at."""
        return sorted({host for reach in along for host in self._rows[reach.near]})

    def ask(
        self,
        sampling: Sampling,
        method: str,
        along: Sequence[Reach],
        head: Callable[[list[Reach]], Message],
        more: Callable[[int, Reach], Sections] = lambda host, reach: {},
    ) -> Replies:
        """Ask each host about its nodes, along the edge types that start at any of them; with ``more`` sections of each edge type."""
        hosts = self.hosts(along)
        requests = []
        for host in hosts:
            theirs = [reach for reach in along if host in self._rows[reach.near]]
            sections: Sections = {}
            for type_id in {reach.near for reach in theirs}:
                sections |= self._of(host, type_id)
            for reach in theirs:
                sections |= more(host, reach)
            requests.append((host, Frame(head(theirs), sections)))
        return dict(zip(hosts, sampling.ask(method, requests), strict=True))

    def _of(self, host: int, type_id: int) -> Sections:
        """A host's nodes of a type."""
        front, rows = self._fronts[type_id], self._rows[type_id][host]
        sections: Sections = {f"ids.{type_id}": front.ids[rows]}
        if front.trees is not None:
            sections[f"trees.{type_id}"] = front.trees[rows]
            if self._until is not None:
                sections[f"times.{type_id}"] = self._until.at(front.trees[rows])
        return sections

    def merged(self, reach: Reach, replies: Replies) -> Met:
        """One edge type's neighbors, out of what each host said of its own nodes."""
        theirs = sorted(self._rows[reach.near])
        place = np.zeros(self._hosts, np.int32)  # of a host among those that have any of the front
        place[theirs] = np.arange(len(theirs), dtype=np.int32)
        of = place[self._owners[reach.near]]
        said = [replies[host] for host in theirs]
        sizes = [reply.array(f"sizes.{reach.edge_type}", "int32") for reply in said]
        if sum(map(len, sizes)) != len(of):
            raise Internal(f"the storageds told of {sum(map(len, sizes))} nodes' neighbors; they were asked about {len(of)}")
        whole = merge_sizes(of, sizes) if len(sizes) > 1 else sizes[0]

        def column(name: str) -> Any:
            pieces = [reply.arrays[f"{name}.{reach.edge_type}"] for reply in said if f"{name}.{reach.edge_type}" in reply.arrays]
            return None if not pieces else merge_runs(of, whole, pieces) if len(pieces) > 1 else pieces[0]

        return Met(sizes=whole, ids=column("ids"), eids=column("eids"), weights=column("weights"), times=column("times"))
