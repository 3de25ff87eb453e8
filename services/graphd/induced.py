"""Induced subgraphs: all edges among given nodes, numbered as they were given, or among those that are sampled around seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as pb
from graphd import layer, read, subgraph
from graphd.sample import Ids, Sampling, Sections, Types
from graphkit.bits import distinct
from graphkit.numbering import Numbering, near_ends

_MOST_GROUPS = (1 << 31) - 1
_NOBODY = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Members:
    """The nodes of one type, by number."""

    ids: Ids
    groups: Types | None
    """int32[n], ascending; None where all are of one."""


def induced(
    sampling: Sampling, what: read.Adjacent, nodes: Ids, node_type: int, types: Types | None, indptr: Ids | None
) -> tuple[Sections, frozenset[str]]:
    """All edges among nodes, or within each group of them: sections as InducedSubgraphReply has them, and which of them the request tells."""
    groups = None if indptr is None else _groups(indptr, len(nodes))
    alone = _only(node_type, types)
    if alone >= 0 and groups is None and distinct(nodes):  # the number of each is its place
        members = {type_id: Members(ids=_NOBODY, groups=None) for type_id in range(len(sampling.space.schema.node_types))}
        members[alone] = Members(ids=nodes, groups=None)
        return _told(members) | among(sampling, what, members), frozenset(f"nodes.{type_id}" for type_id in members)
    kinds = read.node_kinds(sampling, nodes, node_type, types)
    seeds, members = np.full(len(nodes), -1, np.int32), {}
    with Numbering.several(len(sampling.space.schema.node_types)) as numbering:
        for type_id, numbers in enumerate(numbering):
            mine = np.flatnonzero(kinds == type_id)
            if mine.size:
                seeds[mine] = numbers.assign(nodes[mine], None if groups is None else groups[mine])
            members[type_id] = Members(ids=numbers.ids.copy(), groups=None if groups is None else numbers.trees.copy())
    return {"seeds": seeds, **_told(members), **among(sampling, what, members)}, frozenset()


def _only(node_type: int, types: Types | None) -> int:
    """The type of all nodes, -1 where they are of several, or it is not said."""
    if node_type >= 0 or types is None or not len(types):
        return node_type
    return int(types[0]) if bool((types == types[0]).all()) else -1


def ego(sampling: Sampling, how: subgraph.Subgraph, what: read.Adjacent, nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """All edges among nodes that are sampled around seeds: sections as SampleEgoSubgraphsReply has them.

    Notes
    -----
    Where every seed has a component of its own, a component's nodes are side by side, its root first.
    """
    kinds = read.node_kinds(sampling, nodes, node_type, types)
    grown = subgraph.subgraph(sampling, how, nodes, -1, kinds)
    seeds, members = grown["seeds"].copy(), {}
    for type_id in range(len(sampling.space.schema.node_types)):
        ids = grown[f"nodes.{type_id}"]
        if not how.disjoint:
            members[type_id] = Members(ids=ids, groups=None)
            continue
        # Roots were numbered before all others, so that in their tree they stay the first.
        trees = grown[f"trees.{type_id}"]
        order = np.argsort(trees, kind="stable")
        number = np.empty(len(order), np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)
        mine = np.flatnonzero((kinds == type_id) & (seeds >= 0))
        seeds[mine] = number[grown["seeds"][mine]]
        members[type_id] = Members(ids=ids[order], groups=trees[order])
    return {"seeds": seeds, **_told(members), **among(sampling, what, members)}


def _told(members: Mapping[int, Members]) -> Sections:
    """Nodes, and the groups that they are of."""
    out: Sections = {"node_counts": np.array([[len(some.ids)] for some in members.values()], np.int64).reshape(-1, 1)}
    for type_id, some in members.items():
        out[f"nodes.{type_id}"] = some.ids
        if some.groups is not None:
            out[f"trees.{type_id}"] = some.groups
    return out


def among(sampling: Sampling, what: read.Adjacent, members: Mapping[int, Members]) -> Sections:
    """All edges among nodes that have numbers: "counts.e" and "ends.e", or "rows.e" and "cols.e", "weights.e" and "eids.e" of each edge type
    e, and edge_counts."""
    schema = sampling.space.schema
    ends = {}
    for edge_type in what.edge_types:
        edge = schema.edge_types[edge_type]
        src, dst = schema.node_type_id(edge.src_type), schema.node_type_id(edge.dst_type)
        ends[edge_type] = (src, dst) if what.direction == pb.OUT else (dst, src)
    near, far = (_Listed.of(members, {pair[side] for pair in ends.values()}) for side in (0, 1))
    groups = None if near.groups is None or far.groups is None else (near.groups, far.groups)
    sizes, found = layer.between(sampling, what, near.ids, near.type_id, near.types, far.ids, far.types, groups)
    layer.check_between(found, len(near.ids), len(far.ids))
    out: Sections = {"edge_counts": np.zeros((len(what.edge_types), 1), np.int64)}
    rows = None if len(ends) == 1 else np.repeat(np.arange(len(near.ids)), sizes)
    for at, (edge_type, (here, there)) in enumerate(ends.items()):
        first, nodes = near.first[here], len(members[here].ids)
        mine: slice | Ids = slice(None)
        if rows is not None:
            mine = np.flatnonzero(found["types"] == edge_type)
            sizes = np.bincount(rows[mine] - first, minlength=nodes).astype(np.int32)
        others = _numbered(found["cols"][mine], far.first[there])
        if len(others) < nodes:
            listed = near_ends(sizes, 0, len(others)), others
            out[f"rows.{edge_type}"], out[f"cols.{edge_type}"] = listed if what.direction == pb.OUT else listed[::-1]
        else:
            out[f"counts.{edge_type}"], out[f"ends.{edge_type}"] = sizes, others
        out |= {f"{name}.{edge_type}": found[name][mine] for name in ("weights", "eids") if name in found}
        out["edge_counts"][at, 0] = len(others)
    return out


def _numbered(places: Types, first: int) -> Types:
    """The numbers of nodes within their type, by their places among those of all types."""
    return places - np.int32(first) if first else places


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Listed:
    """The nodes of some types, one type after another."""

    ids: Ids
    type_id: int
    """Of all of them; -1 where they are of several types."""
    types: Types | None
    """Of each, where they are of several."""
    groups: Types | None
    first: Mapping[int, int]
    """The place of number 0 of each type."""

    @classmethod
    def of(cls, members: Mapping[int, Members], types: set[int]) -> _Listed:
        """Those of these types."""
        if len(types) == 1:
            (type_id,) = types
            own = members[type_id]
            return cls(ids=own.ids, type_id=type_id, types=None, groups=own.groups, first={type_id: 0})
        listed = sorted(types)
        sizes = [len(members[type_id].ids) for type_id in listed]
        groups = [members[type_id].groups for type_id in listed]
        return cls(
            ids=np.concatenate([members[type_id].ids for type_id in listed]),
            type_id=-1,
            types=np.repeat(np.array(listed, np.int32), sizes),
            groups=None if any(some is None for some in groups) else np.concatenate([some for some in groups if some is not None]),
            first=dict(zip(listed, np.cumsum([0, *sizes]).tolist(), strict=False)),
        )


def _groups(indptr: Ids, nodes: int) -> Types:
    """The group of each node."""
    if not indptr.size or indptr[0] != 0 or indptr[-1] != nodes or bool((np.diff(indptr) < 0).any()):
        raise InvalidRequest(f"indptr of {len(indptr)} entries for {nodes} nodes: it must rise from 0 to {nodes}")
    if len(indptr) - 1 > _MOST_GROUPS:
        raise InvalidRequest(f"{len(indptr) - 1} groups: at most {_MOST_GROUPS} in one call")
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
