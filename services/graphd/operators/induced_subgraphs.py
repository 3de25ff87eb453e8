"""Induced subgraphs: all edges among given nodes, or among nodes sampled around seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from asterism_graphkit.arrays.stable_sort import stable_order
from asterism_graphkit.relabel.bitset import is_known_distinct
from asterism_graphkit.relabel.relabel import Relabeling, repeat_indices
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from graphd.operators import layers, neighbor_reads, reads, subgraphs
from graphd.operators.request_context import Ids, RequestContext, Sections, Types

_MAX_GROUPS = (1 << 31) - 1
_NO_IDS = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SubgraphNodes:
    """Nodes of one type, by index."""

    ids: Ids
    groups: Types | None
    """ndarray of int32, shape (n,), ascending; None if all nodes are in one group."""


def induced_subgraph(
    context: RequestContext,
    edge_params: neighbor_reads.EdgeReadParams,
    nodes: Ids,
    node_type: int,
    types: Types | None,
    indptr: Ids | None,
) -> tuple[Sections, frozenset[str]]:
    """Return all edges among nodes, or within each group of nodes.

    Returns
    -------
    sections : dict
        Sections of InducedSubgraphReply.
    known_sections : frozenset of str
        Names of the sections that the request already contains.
    """
    groups = None if indptr is None else _groups(indptr, len(nodes))
    single_type = _single_type(node_type, types)
    if (
        single_type >= 0 and groups is None and is_known_distinct(nodes)
    ):  # the index of each node is its position
        nodes_by_type = {
            type_id: SubgraphNodes(ids=_NO_IDS, groups=None)
            for type_id in range(len(context.space.schema.node_types))
        }
        nodes_by_type[single_type] = SubgraphNodes(ids=nodes, groups=None)
        return _node_sections(nodes_by_type) | edges_among(
            context, edge_params, nodes_by_type
        ), frozenset(f"nodes.{type_id}" for type_id in nodes_by_type)
    resolved_types = reads.resolve_node_types(context, nodes, node_type, types)
    seeds, nodes_by_type = np.full(len(nodes), -1, np.int32), {}
    with Relabeling.pooled(len(context.space.schema.node_types)) as relabelings:
        for type_id, relabeling in enumerate(relabelings):
            rows = np.flatnonzero(resolved_types == type_id)
            if rows.size:
                seeds[rows] = relabeling.assign(
                    nodes[rows],
                    None if groups is None else groups[rows],
                    checkpoint=context.call.remaining,
                )
            nodes_by_type[type_id] = SubgraphNodes(
                ids=relabeling.ids.copy(),
                groups=None if groups is None else relabeling.trees.copy(),
            )
    return {
        "seeds": seeds,
        **_node_sections(nodes_by_type),
        **edges_among(context, edge_params, nodes_by_type),
    }, frozenset()


def _single_type(node_type: int, types: Types | None) -> int:
    """Return the type of all nodes; -1 if they have several types or it is unknown."""
    if node_type >= 0 or types is None or not len(types):
        return node_type
    return int(types[0]) if bool((types == types[0]).all()) else -1


def ego_subgraphs(
    context: RequestContext,
    params: subgraphs.SubgraphParams,
    edge_params: neighbor_reads.EdgeReadParams,
    nodes: Ids,
    node_type: int,
    types: Types | None,
) -> Sections:
    """Sample nodes around seeds and read all edges among them.

    The sections are those of SampleEgoSubgraphsReply.

    Notes
    -----
    In disjoint mode the nodes of each component are consecutive, with the root first."""
    resolved_types = reads.resolve_node_types(context, nodes, node_type, types)
    sample = subgraphs.sample_subgraph(context, params, nodes, -1, resolved_types)
    seeds, nodes_by_type = sample["seeds"].copy(), {}
    for type_id in range(len(context.space.schema.node_types)):
        ids = sample[f"nodes.{type_id}"]
        if not params.disjoint:
            nodes_by_type[type_id] = SubgraphNodes(ids=ids, groups=None)
            continue
        # Roots have the smallest indices, so the stable sort keeps each root first in its tree.
        trees = sample[f"trees.{type_id}"]
        order = stable_order([trees], context.call.remaining)
        new_indices = np.empty(len(order), np.int32)
        new_indices[order] = np.arange(len(order), dtype=np.int32)
        rows = np.flatnonzero((resolved_types == type_id) & (seeds >= 0))
        seeds[rows] = new_indices[sample["seeds"][rows]]
        nodes_by_type[type_id] = SubgraphNodes(ids=ids[order], groups=trees[order])
    return {
        "seeds": seeds,
        **_node_sections(nodes_by_type),
        **edges_among(context, edge_params, nodes_by_type),
    }


def _node_sections(nodes_by_type: Mapping[int, SubgraphNodes]) -> Sections:
    """Return sections of nodes and their groups."""
    out: Sections = {
        "node_counts": np.array(
            [[len(type_nodes.ids)] for type_nodes in nodes_by_type.values()], np.int64
        ).reshape(-1, 1)
    }
    for type_id, type_nodes in nodes_by_type.items():
        out[f"nodes.{type_id}"] = type_nodes.ids
        if type_nodes.groups is not None:
            out[f"trees.{type_id}"] = type_nodes.groups
    return out


def edges_among(
    context: RequestContext,
    edge_params: neighbor_reads.EdgeReadParams,
    nodes_by_type: Mapping[int, SubgraphNodes],
) -> Sections:
    """Return all edges among indexed nodes.

    For each edge type e there are "counts.e" and "ends.e", or "rows.e" and "cols.e", and optionally
    "weights.e" and "eids.e". "edge_counts" has the number of edges per type."""
    schema = context.space.schema
    ends = {}
    for edge_type in edge_params.edge_types:
        src, dst = schema.edge_ends[edge_type]
        ends[edge_type] = (src, dst) if edge_params.direction == common_pb.OUT else (dst, src)
    local, remote = (
        _ConcatenatedNodes.concatenate(nodes_by_type, {pair[side] for pair in ends.values()})
        for side in (0, 1)
    )
    groups = (
        None if local.groups is None or remote.groups is None else (local.groups, remote.groups)
    )
    sizes, edges = layers.edges_between(
        context,
        edge_params,
        local.ids,
        local.type_id,
        local.types,
        remote.ids,
        remote.types,
        groups,
    )
    layers.check_edges_size(edges, len(local.ids), len(remote.ids))
    out: Sections = {"edge_counts": np.zeros((len(edge_params.edge_types), 1), np.int64)}
    rows = None if len(ends) == 1 else np.repeat(np.arange(len(local.ids)), sizes)
    for edge_type_index, (edge_type, (local_type, remote_type)) in enumerate(ends.items()):
        local_offset, node_count = local.offsets[local_type], len(nodes_by_type[local_type].ids)
        selected: slice | Ids = slice(None)
        if rows is not None:
            selected = np.flatnonzero(edges["types"] == edge_type)
            sizes = np.bincount(rows[selected] - local_offset, minlength=node_count).astype(
                np.int32
            )
        remote_indices = _indices_in_type(edges["cols"][selected], remote.offsets[remote_type])
        if len(remote_indices) < node_count:
            endpoints = repeat_indices(sizes, 0, len(remote_indices)), remote_indices
            out[f"rows.{edge_type}"], out[f"cols.{edge_type}"] = (
                endpoints if edge_params.direction == common_pb.OUT else endpoints[::-1]
            )
        else:
            out[f"counts.{edge_type}"], out[f"ends.{edge_type}"] = sizes, remote_indices
        out |= {
            f"{name}.{edge_type}": edges[name][selected]
            for name in ("weights", "eids")
            if name in edges
        }
        out["edge_counts"][edge_type_index, 0] = len(remote_indices)
    return out


def _indices_in_type(positions: Types, offset: int) -> Types:
    """Return indices within a type from positions in the concatenation of all types."""
    return positions - np.int32(offset) if offset else positions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ConcatenatedNodes:
    """Nodes of several types, concatenated by type."""

    ids: Ids
    type_id: int
    """Type of all nodes; -1 if they have several types."""
    types: Types | None
    """Type of each node, if they have several."""
    groups: Types | None
    offsets: Mapping[int, int]
    """Position of the first node of each type."""

    @classmethod
    def concatenate(
        cls, nodes_by_type: Mapping[int, SubgraphNodes], types: set[int]
    ) -> _ConcatenatedNodes:
        """Concatenate the nodes of these types."""
        if len(types) == 1:
            (type_id,) = types
            type_nodes = nodes_by_type[type_id]
            return cls(
                ids=type_nodes.ids,
                type_id=type_id,
                types=None,
                groups=type_nodes.groups,
                offsets={type_id: 0},
            )
        type_ids = sorted(types)
        sizes = [len(nodes_by_type[type_id].ids) for type_id in type_ids]
        groups = [nodes_by_type[type_id].groups for type_id in type_ids]
        return cls(
            ids=np.concatenate([nodes_by_type[type_id].ids for type_id in type_ids]),
            type_id=-1,
            types=np.repeat(np.array(type_ids, np.int32), sizes),
            groups=None
            if any(group is None for group in groups)
            else np.concatenate([group for group in groups if group is not None]),
            offsets=dict(zip(type_ids, np.cumsum([0, *sizes]).tolist(), strict=False)),
        )


def _groups(indptr: Ids, node_count: int) -> Types:
    """Return the group of each node."""
    if (
        not indptr.size
        or indptr[0] != 0
        or indptr[-1] != node_count
        or bool((np.diff(indptr) < 0).any())
    ):
        raise InvalidRequest(
            f"indptr has {len(indptr)} entries: expected offsets that ascend from 0 to the "
            f"number of nodes, {node_count}"
        )
    if len(indptr) - 1 > _MAX_GROUPS:
        raise InvalidRequest(
            f"{len(indptr) - 1} groups: expected at most {_MAX_GROUPS} in one call"
        )
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
