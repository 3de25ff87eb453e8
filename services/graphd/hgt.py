"""Subgraphs of nodes drawn layer by layer, so many of each type, by what those before them gave their neighbors; all edges among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from asterism_proto.v1 import common_pb2 as pb
from graphd import induced, read, whole
from graphd.sample import Ids, Sampling, Sections, Types
from graphkit import hgt, rng
from graphkit.numbering import Numbering


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgeting:
    """How nodes are drawn."""

    followed: tuple[int, ...]
    """The edge types along which nodes give."""
    counts: Mapping[int, tuple[int, ...]]
    """Of a node type, layer by layer; of others none are drawn."""
    layers: int
    uniform: bool
    direction: pb.Direction
    seed: int


def sampled(sampling: Sampling, how: Budgeting, what: read.Adjacent, nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """Nodes drawn around seeds, and all edges among them: sections as SampleHgtReply has them.

    Notes
    -----
    Nodes of all types of a layer are drawn by what the layers before gave, each type by itself; then they give to those that are in none. The
    budget of a node is summed in the order (layer, node type, place in it, edge type as asked for, neighbor id, edge id), whoever
    holds which. A layer's draws of a type are keyed by (layer, node type); a node's variate by its number among those met.
    """
    schema = sampling.space.schema
    kinds = read.node_kinds(sampling, nodes, node_type, types)
    seeds = np.full(len(nodes), -1, np.int32)
    with Numbering.several(len(schema.node_types)) as numberings:
        budgets = [hgt.Budgets(numbering) for numbering in numberings]
        for type_id, budget in enumerate(budgets):
            mine = np.flatnonzero(kinds == type_id)
            seeds[mine] = budget.plant(nodes[mine])
        fresh = [budget.taken for budget in budgets]
        met = [[len(ids) for ids in fresh]]
        for layer in range(how.layers):
            _give(sampling, how, budgets, fresh)
            fresh = [
                budget.draw(rng.key_of(how.seed, rng.BUDGET, layer, type_id), how.counts[type_id][layer] if type_id in how.counts else 0)
                for type_id, budget in enumerate(budgets)
            ]
            met.append([len(ids) for ids in fresh])
        members = {type_id: induced.Members(ids=budget.taken, groups=None) for type_id, budget in enumerate(budgets)}
    out: Sections = {"seeds": seeds, "node_counts": np.array(met, np.int64).T.copy()}
    out |= {f"nodes.{type_id}": some.ids for type_id, some in members.items()}
    out |= induced.among(sampling, what, members)
    read.check_size(out, f"the subgraph of {sum(len(some.ids) for some in members.values())} nodes")
    return out


def _give(sampling: Sampling, how: Budgeting, budgets: Sequence[hgt.Budgets], fresh: Sequence[Ids]) -> None:
    """What the nodes of the last layer give to their neighbors."""
    nodes = np.concatenate(fresh)
    if not nodes.size:
        return
    types = np.repeat(np.arange(len(fresh), dtype=np.int32), [len(ids) for ids in fresh])
    what = read.Adjacent(edge_types=how.followed, direction=how.direction, want_weights=not how.uniform, want_edge_ids=False, sort="")
    found = whole.edges(sampling, what, nodes, -1, types, of="layer")
    given = hgt.shares(found["indptr"], found["types"], None if how.uniform else found["weights"])
    schema = sampling.space.schema
    ends = [edge.dst_type if how.direction == pb.OUT else edge.src_type for edge in schema.edge_types]
    far = np.array([schema.node_type_id(end) for end in ends], np.int32)[found["types"]]
    for type_id, budget in enumerate(budgets):
        mine = np.flatnonzero(far == type_id)
        if mine.size:
            budget.give(found["ids"][mine], given[mine])
