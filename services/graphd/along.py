"""Features that come along with a sample: those of all of its nodes, asked for in one round once they are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import Schema
from asterism_proto.v1 import storaged_pb2 as store
from graphd import read, split
from graphd.requests import check_types
from graphd.sample import Ids, Neighbors, Sampling, Sections, Types, far_types


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Features of one node type."""

    type_id: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Place:
    """Some of a sample's nodes, and what they are called in the answer."""

    name: str
    ids: Ids
    node_type: int
    """Of all of them; -1: see ``types``."""
    types: Types | None = None
    """None where nobody has said: whoever has the node knows."""

    def of(self, type_id: int) -> Ids | None:
        """These nodes, -1 for those of another type; None where none can be of it."""
        if self.node_type >= 0:
            return self.ids if self.node_type == type_id else None
        return self.ids if self.types is None else np.where(self.types == type_id, self.ids, -1)


def wanted(schema: Schema, head: Any) -> tuple[Columns, ...]:
    """The features that a request wants along; NotFound where a type has none of that name."""
    found = tuple(Columns(type_id=columns.type_id, names=tuple(columns.names)) for columns in head.node_features)
    check_types("node", schema, [columns.type_id for columns in found])
    for columns in found:
        read.check_columns(schema.node_types[columns.type_id], columns.names)
    if len({columns.type_id for columns in found}) < len(found):
        raise InvalidRequest(f"node_features of types {[columns.type_id for columns in found]}: one is given twice")
    return found


def fanout(
    sampling: Sampling, columns: Sequence[Columns], hops: Sequence[Neighbors], nodes: Ids, node_type: int, types: Types | None, drawn: Sections
) -> Sections:
    """A fanout's sections, and the features of its nodes, hop by hop."""
    places = [_Place(name="seeds", ids=nodes, node_type=node_type, types=types)]
    for h, hop in enumerate(hops):
        far, kinds = far_types(sampling.space, hop, drawn.get(f"types.{h}"))
        places.append(_Place(name=str(h), ids=drawn[f"ids.{h}"], node_type=far, types=kinds))
    return _with(sampling, columns, places, drawn, "the fanout and its features")


def subgraph(sampling: Sampling, columns: Sequence[Columns], drawn: Sections) -> Sections:
    """A subgraph's sections, and the features of its nodes."""
    types = range(len(sampling.space.schema.node_types))
    places = [_Place(name="nodes", ids=drawn[f"nodes.{type_id}"], node_type=type_id) for type_id in types if f"nodes.{type_id}" in drawn]
    return _with(sampling, columns, places, drawn, "the subgraph and its features")


def _with(sampling: Sampling, columns: Sequence[Columns], places: Sequence[_Place], drawn: Sections, what: str) -> Sections:
    if not columns:
        return drawn
    out = dict(drawn)
    asked: list[tuple[int, Frame]] = []
    waiting: list[tuple[Columns, list[tuple[str, Ids]], list[Ids | None]]] = []
    for wants in columns:
        mine = [(place.name, ids) for place in places if (ids := place.of(wants.type_id)) is not None]
        if not mine or not wants.names:
            continue
        ids = np.concatenate([some for _, some in mine])
        head = store.ReadNodeFeaturesRequest(at=sampling.at(), type_id=wants.type_id, names=wants.names)
        plan = split.owners(sampling.space, ids) or [(0, None)]
        asked += [(host, Frame(head, {"ids": split.taken(ids, rows)})) for host, rows in plan]
        waiting.append((wants, mine, [rows for _, rows in plan]))
    replies = iter(sampling.ask("read_node_features", asked) if asked else ())
    for wants, mine, rows in waiting:
        found = read.merged_columns(sum(len(ids) for _, ids in mine), rows, [next(replies) for _ in rows])
        start = 0
        for name, ids in mine:
            for column in wants.names:
                out |= {f"{name}.{wants.type_id}.{half}": array for half, array in _cut(found, f"f:{column}", start, start + len(ids)).items()}
            start += len(ids)
    read.check_size(out, what)
    return out


def _cut(columns: Sections, name: str, start: int, stop: int) -> Sections:
    """The rows start .. stop - 1 of one feature."""
    if name in columns:
        return {name: columns[name][start:stop]}
    indptr = columns[f"{name}.indptr"][start : stop + 1]
    return {f"{name}.indptr": indptr - indptr[0], f"{name}.values": columns[f"{name}.values"][indptr[0] : indptr[-1]]}
