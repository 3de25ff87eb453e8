"""What a write may contain: the sections of each kind, checked against the schema. Every refusal shows the value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto import names, times, validation
from asterism_proto.arrays import Frame
from asterism_proto.errors import Conflict, InvalidRequest, NotFound
from asterism_proto.schema import EdgeType, NodeType, Schema
from asterism_proto.v1 import storaged_pb2 as store
from graphkit.names import ids_of, unlike

Sections = dict[str, NDArray[Any]]

_IDS: dict[int, tuple[str, ...]] = {
    store.NODES: ("ids",),
    store.OUT_EDGES: ("src", "dst"),
    store.NODE_DELETES: ("ids",),
    store.OUT_EDGE_DELETES: ("src", "dst", "eid"),
}
"""The id sections of each kind that a client may write."""


def owner_of(schema: Schema, kind: int, type_id: int) -> NodeType | EdgeType:
    """The type that a write is of; InvalidRequest for a kind that clients do not write, NotFound for an unknown type."""
    if kind not in _IDS:
        words = ", ".join(store.BlockKind.Name(word) for word in _IDS)
        raise InvalidRequest(f"kind {kind}: a client writes {words}")
    types: tuple[NodeType | EdgeType, ...] = schema.node_types if kind in (store.NODES, store.NODE_DELETES) else schema.edge_types
    if type_id >= len(types):
        raise NotFound(f"type {type_id}: the space has types 0 to {len(types) - 1}: {', '.join(t.name for t in types)}")
    return types[type_id]


def checked(schema: Schema, kind: int, type_id: int, frame: Frame) -> int:
    """The number of rows of a write whose sections are complete and right."""
    owner = owner_of(schema, kind, type_id)
    rows = validation.check_ids(_IDS[kind], frame.arrays, deletes=kind == store.OUT_EDGE_DELETES)
    known = set(_IDS[kind])
    if kind in (store.NODES, store.OUT_EDGES):
        known.update(validation.check_weight(owner, frame.arrays, rows))
        for feature in owner.features:
            known |= validation.check_feature(feature, frame.arrays, rows)
        if (time := frame.arrays.get(f"f:{owner.time}")) is not None:
            times.refuse_no_times(f"time {owner.time!r}", time)
    if schema.named:
        known |= _check_names(schema, kind, owner, frame, rows)
    validation.check_known(owner, frame.arrays, known)
    return rows


def _check_names(schema: Schema, kind: int, owner: NodeType | EdgeType, frame: Frame, rows: int) -> set[str]:
    """The sections that have the names of nodes; InvalidRequest where an id is not that of its name, or a name is missing."""
    columns = {"ids": f"f:{names.COLUMN}"} if kind == store.NODES else {}
    if kind == store.OUT_EDGES and isinstance(owner, EdgeType) and owner.missing == "create":
        columns = {"src": "src_names", "dst": "dst_names"}
    for section, stem in columns.items():
        held = frame.array(f"{stem}.indptr", "int64"), frame.array(f"{stem}.values", "uint8")
        validation.check_indptr(stem, held[0], len(held[1]), rows)
        names.refuse(section, held)
        ids = frame.array(section, "int64")
        wrong = np.flatnonzero(ids != ids_of(*held, schema.salt))
        if wrong.size:
            at = int(wrong[0])
            raise InvalidRequest(f"{section}[{at}] = {ids[at]}: that is not the id of {names.shown(held, at)} under the salt {schema.salt}")
        check_distinct(schema, owner.name, ids, held)
    return {f"{stem}.{half}" for stem in columns.values() for half in ("indptr", "values")}


def check_distinct(schema: Schema, owner: str, ids: NDArray[np.int64], held: names.Names) -> None:
    """Conflict where two names have one id."""
    first, inverse = np.unique(ids, return_index=True, return_inverse=True)[1:]
    if len(first) == len(ids):
        return
    wrong = unlike(first[inverse], *held, *held)
    if wrong >= 0:
        both = names.shown(held, int(first[inverse[wrong]])), names.shown(held, wrong)
        raise Conflict(names.collision(repr(owner), *both, int(ids[wrong]), schema.salt))
