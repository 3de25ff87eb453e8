"""HGT sampling: a number of nodes per type and layer, by budget, and all edges among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from asterism_graphkit.operators import hgt
from asterism_graphkit.random import rng
from asterism_graphkit.relabel.relabel import Relabeling
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import full_neighborhood, induced_subgraphs, neighbor_reads, reads
from graphd.operators.request_context import Ids, RequestContext, Sections, Types


@dataclass(frozen=True, slots=True, kw_only=True)
class HgtParams:
    """Parameters of HGT sampling."""

    edge_types: tuple[int, ...]
    """Edge types along which sampled nodes add to the budgets of their neighbors."""
    counts: Mapping[int, tuple[int, ...]]
    """Nodes to sample per layer, by node type; other types are not sampled."""
    layer_count: int
    uniform: bool
    direction: common_pb.Direction
    seed: int


def sample_hgt(
    context: RequestContext,
    params: HgtParams,
    edge_params: neighbor_reads.EdgeReadParams,
    nodes: Ids,
    node_type: int,
    types: Types | None,
) -> Sections:
    """Sample nodes around seeds by budgets, and read all edges among them.

    The sections are those of SampleHgtReply.

    Notes
    -----
    The nodes of a layer are drawn by the budgets from earlier layers, each type separately. Then
    they add to the budgets of nodes that are not sampled yet. A budget is summed in the order
    (layer, node type, position in it, edge type as requested, neighbor id, edge id), whichever
    hosts hold the edges. The draws of a type in a layer are keyed by (layer, node type), and the
    variate of a node by its index among the visited nodes. Part of the sampling contract: changing
    it changes results for a given seed."""
    schema = context.space.schema
    resolved_types = reads.resolve_node_types(context, nodes, node_type, types)
    seeds = np.full(len(nodes), -1, np.int32)
    with Relabeling.pooled(len(schema.node_types)) as relabelings:
        budgets = [
            hgt.BudgetTable(relabeling, context.call.remaining) for relabeling in relabelings
        ]
        for type_id, budget in enumerate(budgets):
            rows = np.flatnonzero(resolved_types == type_id)
            seeds[rows] = budget.add_seeds(nodes[rows])
        frontier = [budget.sampled_ids for budget in budgets]
        node_counts = [[len(ids) for ids in frontier]]
        for layer in range(params.layer_count):
            _spread_budgets(context, params, budgets, frontier)
            frontier = [
                budget.draw(
                    rng.key_of(params.seed, rng.BUDGET, layer, type_id),
                    params.counts[type_id][layer] if type_id in params.counts else 0,
                )
                for type_id, budget in enumerate(budgets)
            ]
            node_counts.append([len(ids) for ids in frontier])
        nodes_by_type = {
            type_id: induced_subgraphs.SubgraphNodes(ids=budget.sampled_ids, groups=None)
            for type_id, budget in enumerate(budgets)
        }
    out: Sections = {"seeds": seeds, "node_counts": np.array(node_counts, np.int64).T.copy()}
    out |= {f"nodes.{type_id}": type_nodes.ids for type_id, type_nodes in nodes_by_type.items()}
    out |= induced_subgraphs.edges_among(context, edge_params, nodes_by_type)
    reads.check_size(
        out,
        (
            "the subgraph of "
            f"{sum(len(type_nodes.ids) for type_nodes in nodes_by_type.values())} nodes"
        ),
    )
    return out


def _spread_budgets(
    context: RequestContext,
    params: HgtParams,
    budgets: Sequence[hgt.BudgetTable],
    frontier: Sequence[Ids],
) -> None:
    """Add the shares of the last layer's nodes to the budgets of their neighbors."""
    nodes = np.concatenate(frontier)
    if not nodes.size:
        return
    types = np.repeat(np.arange(len(frontier), dtype=np.int32), [len(ids) for ids in frontier])
    edge_params = neighbor_reads.EdgeReadParams(
        edge_types=params.edge_types,
        direction=params.direction,
        want_weights=not params.uniform,
        want_edge_ids=False,
        sort="",
    )
    edges = full_neighborhood.read_edges(context, edge_params, nodes, -1, types, subject="layer")
    edge_shares = hgt.edge_shares(
        edges["indptr"], edges["types"], None if params.uniform else edges["weights"]
    )
    schema = context.space.schema
    ends = [
        edge.dst_type if params.direction == common_pb.OUT else edge.src_type
        for edge in schema.edge_types
    ]
    neighbor_types = np.array([schema.node_type_id(end) for end in ends], np.int32)[edges["types"]]
    for type_id, budget in enumerate(budgets):
        rows = np.flatnonzero(neighbor_types == type_id)
        if rows.size:
            budget.add_budgets(edges["ids"][rows], edge_shares[rows])
