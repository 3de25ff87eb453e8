"""Dispatch of a hop: split its nodes by owning storaged, and merge the replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import Message

from asterism_graphkit.arrays.kway_merge import merge_runs, merge_sizes
from asterism_graphkit.operators.khop import Frontier, HopFanout, Neighbors
from asterism_graphkit.random.partition_choice import part_of
from asterism_proto.errors import Internal
from asterism_proto.framing import Frame
from graphd.operators.request_context import RequestContext, Sections
from graphd.operators.temporal_filters import TemporalFilter
from graphd.routing import split_merge
from graphd.routing.routes import SpaceRoute

Replies = Mapping[int, Frame[Message]]
"""Replies by host."""


class HopDispatch:
    """Assignment of a hop's nodes to hosts.

    Parameters
    ----------
    space : SpaceRoute
    frontiers : mapping
        Frontier of each node type that expands.
    temporal_filter : TemporalFilter, optional
        Filter of the seeds; a node uses the time of its tree's seed.
    """

    def __init__(
        self,
        space: SpaceRoute,
        frontiers: Mapping[int, Frontier],
        temporal_filter: TemporalFilter | None = None,
    ) -> None:
        self._frontiers, self._temporal_filter, self._hosts = (
            frontiers,
            temporal_filter,
            len(space.hosts),
        )
        parts = {
            type_id: part_of(frontier.ids, space.schema.parts, space.schema.placement)
            for type_id, frontier in frontiers.items()
        }
        self._owners = {
            type_id: space.host_of_part[row_parts] for type_id, row_parts in parts.items()
        }
        self._rows = {
            type_id: dict(split_merge.group_by_owner(owners, len(space.hosts)))
            for type_id, owners in self._owners.items()
        }

    def hosts(self, fanouts: Sequence[HopFanout]) -> list[int]:
        """Return the hosts that own nodes at which one of the edge types starts."""
        return sorted({host for fanout in fanouts for host in self._rows[fanout.local_type]})

    def dispatch(
        self,
        context: RequestContext,
        method: str,
        fanouts: Sequence[HopFanout],
        build_request: Callable[[list[HopFanout]], Message],
        extra_sections: Callable[[int, HopFanout], Sections] = lambda host, reach: {},
    ) -> Replies:
        """Send each host its nodes and the edge types that start at any of them.

        ``extra_sections`` returns further sections per host and edge type.
        """
        hosts = self.hosts(fanouts)
        requests = []
        for host in hosts:
            host_fanouts = [fanout for fanout in fanouts if host in self._rows[fanout.local_type]]
            sections: Sections = {}
            for type_id in {fanout.local_type for fanout in host_fanouts}:
                sections |= self._node_sections(host, type_id)
            for fanout in host_fanouts:
                sections |= extra_sections(host, fanout)
            requests.append((host, Frame(build_request(host_fanouts), sections)))
        return dict(zip(hosts, context.dispatch(method, requests), strict=True))

    def _node_sections(self, host: int, type_id: int) -> Sections:
        """Return a host's nodes of a type as sections."""
        frontier, rows = self._frontiers[type_id], self._rows[type_id][host]
        sections: Sections = {f"ids.{type_id}": frontier.ids[rows]}
        if frontier.trees is not None:
            sections[f"trees.{type_id}"] = frontier.trees[rows]
            if self._temporal_filter is not None:
                sections[f"times.{type_id}"] = self._temporal_filter.times_at(frontier.trees[rows])
        return sections

    def merge_neighbors(self, fanout: HopFanout, replies: Replies) -> Neighbors:
        """Merge the hosts' neighbors along one edge type."""
        front_hosts = sorted(self._rows[fanout.local_type])
        host_rank = np.zeros(
            self._hosts, np.int32
        )  # rank of a host among those that own nodes of the frontier
        host_rank[front_hosts] = np.arange(len(front_hosts), dtype=np.int32)
        row_ranks = host_rank[self._owners[fanout.local_type]]
        host_replies = [replies[host] for host in front_hosts]
        sizes = [reply.array(f"sizes.{fanout.edge_type}", "int32") for reply in host_replies]
        if sum(map(len, sizes)) != len(row_ranks):
            raise Internal(
                f"the storageds returned neighbors of {sum(map(len, sizes))} nodes: expected "
                f"{len(row_ranks)}"
            )
        merged_sizes = merge_sizes(row_ranks, sizes) if len(sizes) > 1 else sizes[0]

        def column(name: str) -> Any:
            pieces = [
                reply.arrays[f"{name}.{fanout.edge_type}"]
                for reply in host_replies
                if f"{name}.{fanout.edge_type}" in reply.arrays
            ]
            return (
                None
                if not pieces
                else merge_runs(row_ranks, merged_sizes, pieces)
                if len(pieces) > 1
                else pieces[0]
            )

        return Neighbors(
            sizes=merged_sizes,
            ids=column("ids"),
            eids=column("eids"),
            weights=column("weights"),
            times=column("times"),
        )
