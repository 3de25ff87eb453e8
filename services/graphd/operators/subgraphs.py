"""K-hop subgraphs: one round of requests per hop, or one request if there is one host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from asterism_graphkit.operators.khop import (
    Expander,
    Frontier,
    HopFanout,
    KHopParams,
    Neighbors,
    sample_khop,
)
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators import reads
from graphd.operators.request_context import REPLY_BYTES, Ids, RequestContext, Sections, Types
from graphd.operators.subgraph_hop_dispatch import HopDispatch
from graphd.operators.temporal_filters import TemporalFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class SubgraphParams:
    """Parameters of a k-hop subgraph."""

    fanouts: tuple[HopFanout, ...]
    replace: bool
    uniform: bool
    direction: common_pb.Direction
    seed: int
    disjoint: bool
    expand_all_hops: bool
    want_edge_ids: bool
    want_weights: bool
    temporal_filter: TemporalFilter | None = None
    labor: storaged_pb.LaborParams | None = None
    """LABOR parameters: edges are selected by LABOR's variates instead of drawn per node."""


def sample_subgraph(
    context: RequestContext,
    params: SubgraphParams,
    nodes: Ids,
    node_type: int,
    types: Types | None,
    expander: Callable[[RequestContext, SubgraphParams], Expander] | None = None,
) -> Sections:
    """Sample a k-hop subgraph from seeds: sections of SampleSubgraphReply.

    ``expander`` expands the nodes of several hosts; by default with one request per host and hop.
    """
    resolved_types = reads.resolve_node_types(context, nodes, node_type, types)
    if len(context.space.hosts) == 1:
        return _sample_on_one_host(context, params, nodes, resolved_types)
    khop_params = KHopParams(
        node_type_count=len(context.space.schema.node_types),
        fanouts=params.fanouts,
        outgoing=params.direction == common_pb.OUT,
        disjoint=params.disjoint,
        expand_all_hops=params.expand_all_hops,
        max_bytes=REPLY_BYTES,
    )
    return sample_khop(
        khop_params,
        nodes,
        resolved_types,
        (expander or _StoragedExpander)(context, params),
        context.call.remaining,
    )


def _sample_on_one_host(
    context: RequestContext, params: SubgraphParams, nodes: Ids, types: Types
) -> Sections:
    """Run the whole expansion on the one storaged that has every partition."""
    head = storaged_pb.SampleKHopRequest(
        version_ref=context.version_ref(),
        fanouts=[
            storaged_pb.KHopFanouts(edge_type=fanout.edge_type, counts=fanout.counts)
            for fanout in params.fanouts
        ],
        disjoint=params.disjoint,
        expand_all_hops=params.expand_all_hops,
        max_reply_bytes=REPLY_BYTES,
        replace=params.replace,
        uniform=params.uniform,
        direction=params.direction,
        seed=params.seed,
        want_edge_ids=params.want_edge_ids,
        want_weights=params.want_weights,
        weight=context.weight_name,
        temporal_filter=None if params.temporal_filter is None else params.temporal_filter.head,
        labor=params.labor,
    )
    times = {} if params.temporal_filter is None else {"times": params.temporal_filter.times}
    (reply,) = context.dispatch(
        "sample_k_hop", [(0, Frame(head, {"ids": nodes, "types": types, **times}))]
    )
    return dict(reply.arrays)


class _StoragedExpander:
    """Expands nodes through the hosts that own them, along all edge types at once."""

    def __init__(self, context: RequestContext, params: SubgraphParams) -> None:
        self._context, self._params = context, params

    def __call__(
        self, hop: int, fanouts: Sequence[HopFanout], frontiers: Mapping[int, Frontier]
    ) -> Sequence[Neighbors]:
        dispatch = HopDispatch(self._context.space, frontiers, self._params.temporal_filter)
        replies = dispatch.dispatch(
            self._context,
            "expand",
            fanouts,
            lambda host_fanouts: build_expand_request(
                self._context, self._params, hop, host_fanouts
            ),
        )
        return [dispatch.merge_neighbors(fanout, replies) for fanout in fanouts]


def build_expand_request(
    context: RequestContext, params: SubgraphParams, hop: int, fanouts: Sequence[HopFanout]
) -> storaged_pb.ExpandRequest:
    """Build the request to a storaged for one hop."""
    return storaged_pb.ExpandRequest(
        version_ref=context.version_ref(),
        hop=hop,
        fanouts=[
            storaged_pb.HopFanout(edge_type=fanout.edge_type, count=fanout.counts[hop])
            for fanout in fanouts
        ],
        replace=params.replace,
        uniform=params.uniform,
        direction=params.direction,
        seed=params.seed,
        want_edge_ids=params.want_edge_ids,
        want_weights=params.want_weights,
        weight=context.weight_name,
        temporal_filter=None if params.temporal_filter is None else params.temporal_filter.head,
        labor=params.labor,
    )
