"""LABOR subgraphs: storageds select edges by one random variate per neighbor.

Without importance steps the nodes are independent. With them, each storaged reports in every step
the largest level of its nodes for each neighbor, and graphd returns the resulting importances. Only
neighbor ids and these values travel, not edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.operators import labor
from asterism_graphkit.operators.khop import Frontier, HopFanout, Neighbors
from asterism_graphkit.relabel.relabel import relabel
from asterism_proto.errors import Internal
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators import subgraphs
from graphd.operators.request_context import Ids, RequestContext, Sections, Types
from graphd.operators.subgraph_hop_dispatch import HopDispatch, Replies


@dataclass(frozen=True, slots=True, kw_only=True)
class LaborParams:
    """Parameters of a LABOR subgraph."""

    fanouts: tuple[HopFanout, ...]
    uniform: bool
    direction: common_pb.Direction
    seed: int
    importance_steps: int
    """Number of steps; -1 runs until they change little."""
    layer_dependency: bool
    """True if all hops use the same variates."""
    expand_all_hops: bool
    want_edge_ids: bool
    want_weights: bool


def sample_labor(
    context: RequestContext, params: LaborParams, nodes: Ids, node_type: int, types: Types | None
) -> Sections:
    """Sample a LABOR subgraph from seeds: sections of SampleLaborReply.

    Notes
    -----
    The variate of a node is keyed by (hop, its type, its id), or with ``layer_dependency`` by type
    and id alone. The importance of a node applies to all nodes of a hop along one edge type. Part
    of the sampling contract: changing it changes results for a given seed."""
    subgraph_params = subgraphs.SubgraphParams(
        fanouts=params.fanouts,
        replace=False,
        uniform=params.uniform,
        direction=params.direction,
        seed=params.seed,
        disjoint=False,
        expand_all_hops=params.expand_all_hops,
        want_edge_ids=params.want_edge_ids,
        want_weights=params.want_weights,
        labor=storaged_pb.LaborParams(
            layer_dependency=params.layer_dependency, importance_steps=params.importance_steps
        ),
    )
    return subgraphs.sample_subgraph(
        context,
        subgraph_params,
        nodes,
        node_type,
        types,
        partial(_ImportanceExpander, params.importance_steps) if params.importance_steps else None,
    )


class _ImportanceExpander:
    """Expands nodes with importance steps, through the hosts that own them."""

    def __init__(
        self, steps: int, context: RequestContext, params: subgraphs.SubgraphParams
    ) -> None:
        self._steps, self._context, self._params = steps, context, params

    def __call__(
        self, hop: int, fanouts: Sequence[HopFanout], frontiers: Mapping[int, Frontier]
    ) -> Sequence[Neighbors]:
        dispatch = HopDispatch(self._context.space, frontiers)
        return [self._expand(hop, fanout, dispatch) for fanout in fanouts]

    def _expand(self, hop: int, fanout: HopFanout, dispatch: HopDispatch) -> Neighbors:
        shared_neighbors = _SharedNeighbors(
            self._context, self._params, fanout.counts[hop], fanout, dispatch
        )
        importances = labor.solve_importances(
            self._steps, shared_neighbors.raise_levels, self._context.call.remaining
        )
        replies = dispatch.dispatch(
            self._context,
            "expand",
            [fanout],
            lambda fanouts: subgraphs.build_expand_request(
                self._context, self._params, hop, fanouts
            ),
            lambda host, _: shared_neighbors.host_sections(host, importances),
        )
        return dispatch.merge_neighbors(fanout, replies)


class _SharedNeighbors:
    """Neighbors that nodes of several hosts share along one edge type, with importances."""

    def __init__(
        self,
        context: RequestContext,
        params: subgraphs.SubgraphParams,
        count: int,
        fanout: HopFanout,
        dispatch: HopDispatch,
    ) -> None:
        self._context, self._params, self._count, self._fanout, self._hop_dispatch = (
            context,
            params,
            count,
            fanout,
            dispatch,
        )
        self._indices: dict[int, NDArray[np.int32]] = {}
        """Indices of the neighbors that each host reported."""
        self._levels: dict[int, NDArray[np.float64]] = {}
        self._nodes = 0

    def raise_levels(self, importances: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Run one importance step on all hosts; return the largest value of each neighbor.

        `asterism_graphkit.operators.labor.solve_importances` calls this method.
        """
        replies = self._hop_dispatch.dispatch(
            self._context,
            "update_importance",
            [self._fanout],
            lambda fanouts: storaged_pb.UpdateImportanceRequest(
                version_ref=self._context.version_ref(),
                fanouts=[
                    storaged_pb.HopFanout(edge_type=reach.edge_type, count=self._count)
                    for reach in fanouts
                ],
                uniform=self._params.uniform,
                direction=self._params.direction,
                weight=self._context.weight_name,
            ),
            lambda host, _: {} if importances is None else self.host_sections(host, importances),
        )
        if importances is None:
            self._index_neighbors(replies)
        largest = np.zeros(self._nodes, np.float64)
        for host, reply in replies.items():
            self._levels[host] = reply.array(f"levels.{self._fanout.edge_type}", "float64")
            host_largest = as_kernel_array(
                reply.array(f"largest.{self._fanout.edge_type}", "float64")
            )
            if len(host_largest) != len(self._indices[host]):
                raise Internal(
                    f"a storaged returned {len(host_largest)} neighbors after "
                    f"{len(self._indices[host])} of the same nodes"
                )
            labor.scatter_max(self._indices[host], host_largest, largest)
            self._context.call.remaining()
        return largest

    def _index_neighbors(self, replies: Replies) -> None:
        """Index the neighbors that hosts reported, each once."""
        neighbor_lists = [
            reply.array(f"neighbors.{self._fanout.edge_type}", "int64")
            for reply in replies.values()
        ]
        indices, nodes = relabel(neighbor_lists, self._context.call.remaining)
        self._indices = dict(zip(replies, map(as_kernel_array, indices), strict=True))
        self._nodes = len(nodes)

    def host_sections(self, host: int, importances: NDArray[np.float64]) -> Sections:
        """Return the results of earlier steps that a host needs, as sections."""
        self._context.call.remaining()
        edge_type = self._fanout.edge_type
        return {
            f"levels.{edge_type}": self._levels[host],
            f"importances.{edge_type}": importances[self._indices[host]],
        }
