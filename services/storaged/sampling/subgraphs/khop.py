"""K-hop subgraphs, if all partitions are held here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.operators.khop import (
    Frontier,
    HopFanout,
    KHopParams,
    Neighbors,
    build_fanouts,
)
from asterism_graphkit.operators.khop import sample_khop as grown
from asterism_proto.errors import InvalidRequest
from storaged.sampling.cancellation import StopFlag
from storaged.sampling.neighbors.temporal import TemporalFilter
from storaged.sampling.node_lookup import OUT, end_types
from storaged.sampling.subgraphs.expand import Expansion, expand
from storaged.sampling.subgraphs.khop_single_type import sample_khop_single_type
from storaged.sampling.version import LocalVersion, check_length


def sample_khop(
    version: LocalVersion,
    expansion: Expansion,
    counts: Mapping[int, tuple[int, ...]],
    seeds: NDArray[np.int64],
    types: NDArray[np.int32],
    *,
    disjoint: bool,
    expand_all_hops: bool,
    max_reply_bytes: int,
    checkpoint: Callable[[], object],
    temporal_filter: TemporalFilter | None = None,
    expanded_version: Callable[[int, int], LocalVersion] | None = None,
) -> dict[str, NDArray[Any]]:
    """Sample a k-hop subgraph, if all partitions are held here.

    Parameters
    ----------
    version : LocalVersion
    expansion : Expansion
    counts : mapping
        Number of neighbors per hop, by edge type.
    seeds : ndarray of int64, shape (m,)
        Seed nodes; -1 for none.
    types : ndarray of int32, shape (m,)
        Types of the seeds.
    disjoint, expand_all_hops, max_reply_bytes
        As in `asterism_graphkit.operators.khop.KHopParams`.
    checkpoint : callable
        Called between expansions; may raise.
    temporal_filter : TemporalFilter, optional
        Time limit of each seed and its tree; requires ``disjoint``.
    expanded_version : callable, optional
        Returns the version without excluded edges for an edge type and a count. By default, no
        edges are excluded.

    Returns
    -------
    dict of ndarray
        Sections of the subgraph, as from `asterism_graphkit.operators.khop.sample_khop`.

    Raises
    ------
    InvalidRequest, Unavailable
        As for `expand`; also if the result exceeds ``max_reply_bytes``, or a type is unknown.
    """
    check_length("types", types, seeds.size)
    if temporal_filter is not None:
        check_length("times", temporal_filter.times, seeds.size)
        if not disjoint:
            raise InvalidRequest(
                "temporal filter: expected disjoint=True, because the time of a seed holds for "
                "its own tree only"
            )
    fanouts = build_fanouts(
        lambda edge_type: end_types(version, edge_type, expansion.direction),
        list(counts),
        list(counts.values()),
    )

    versions: dict[tuple[int, int], LocalVersion] = {}

    def version_of(edge_type: int, count: int) -> LocalVersion:
        if expanded_version is None:
            return version
        key = edge_type, count
        if key not in versions:
            versions[key] = expanded_version(edge_type, count)
        return versions[key]

    def expander(
        hop: int, fanouts: Sequence[HopFanout], frontiers: Mapping[int, Frontier]
    ) -> Sequence[Neighbors]:
        neighbors = []
        for fanout in fanouts:
            frontier = frontiers[fanout.local_type]
            tree_filter = (
                None
                if temporal_filter is None or frontier.trees is None
                else temporal_filter.for_places(frontier.trees)
            )
            arguments: dict[str, Any] = {
                "edge_type": fanout.edge_type,
                "hop": hop,
                "count": fanout.counts[hop],
            }
            neighbors.append(
                expand(
                    version_of(fanout.edge_type, fanout.counts[hop]),
                    expansion,
                    **arguments,
                    ids=frontier.ids,
                    trees=frontier.trees,
                    temporal_filter=tree_filter,
                    checkpoint=checkpoint,
                )
            )
            checkpoint()
        return neighbors

    params = KHopParams(
        node_type_count=len(version.schema.node_types),
        fanouts=fanouts,
        outgoing=expansion.direction == OUT,
        disjoint=disjoint,
        expand_all_hops=expand_all_hops,
        max_bytes=max_reply_bytes,
    )
    result = None
    if temporal_filter is None and expanded_version is None:
        with StopFlag(checkpoint) as stop:
            result = sample_khop_single_type(version, expansion, params, seeds, types, stop)
    return grown(params, seeds, types, expander, checkpoint) if result is None else result
