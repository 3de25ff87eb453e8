"""Validation of writes: the sections of each kind, checked against the schema.

Every error message shows the value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from asterism_graphkit.arrays.siphash import compute_string_ids, first_mismatch
from asterism_model import block_validation, string_ids
from asterism_model.schema import EdgeType, NodeType, Schema, time_columns
from asterism_proto.errors import Conflict, InvalidRequest, NotFound
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb

Sections = dict[str, NDArray[Any]]

_IDS: dict[int, tuple[str, ...]] = {
    storaged_pb.NODES: ("ids",),
    storaged_pb.OUT_EDGES: ("src", "dst"),
    storaged_pb.NODE_DELETES: ("ids",),
    storaged_pb.OUT_EDGE_DELETES: ("src", "dst", "eid"),
}
"""Id sections of each kind that a client may write."""


def written_type(schema: Schema, kind: int, type_id: int) -> NodeType | EdgeType:
    """Return the type of the written rows.

    Raises InvalidRequest for a kind that clients do not write, and NotFound for an unknown type.
    """
    if kind not in _IDS:
        kind_names = ", ".join(storaged_pb.BlockKind.Name(writable_kind) for writable_kind in _IDS)
        raise InvalidRequest(f"kind {kind}: expected one of {kind_names}")
    types: tuple[NodeType | EdgeType, ...] = (
        schema.node_types
        if kind in (storaged_pb.NODES, storaged_pb.NODE_DELETES)
        else schema.edge_types
    )
    if type_id >= len(types):
        raise NotFound(
            f"type {type_id}: expected a type of the space, 0 to {len(types) - 1}: "
            f"{', '.join(t.name for t in types)}"
        )
    return types[type_id]


def check_rows(schema: Schema, kind: int, type_id: int, frame: Frame[Message]) -> int:
    """Check that the sections of a write are complete and valid; return its row count."""
    schema_type = written_type(schema, kind, type_id)
    rows = block_validation.check_ids(
        _IDS[kind], frame.arrays, deletes=kind == storaged_pb.OUT_EDGE_DELETES
    )
    known_sections = set(_IDS[kind])
    if kind in (storaged_pb.NODES, storaged_pb.OUT_EDGES):
        known_sections.update(block_validation.check_weight(schema_type, frame.arrays, rows))
        for feature in schema_type.features:
            known_sections |= block_validation.check_feature(feature, frame.arrays, rows)
        if (time := frame.arrays.get(f"f:{schema_type.time}")) is not None:
            time_columns.check_time_values(f"time {schema_type.time!r}", time)
    if schema.has_string_ids:
        known_sections |= _check_names(schema, kind, schema_type, frame, rows)
    block_validation.check_sections(schema_type, frame.arrays, known_sections)
    return rows


def _check_names(
    schema: Schema, kind: int, schema_type: NodeType | EdgeType, frame: Frame[Message], rows: int
) -> set[str]:
    """Return the names of the sections with string ids.

    Raises InvalidRequest if a string id is missing, or if an id is not the hash of its string.
    """
    columns = {"ids": f"f:{string_ids.ID_COLUMN}"} if kind == storaged_pb.NODES else {}
    if (
        kind == storaged_pb.OUT_EDGES
        and isinstance(schema_type, EdgeType)
        and schema_type.missing == "create"
    ):
        columns = {"src": "src_names", "dst": "dst_names"}
    for section, stem in columns.items():
        names_column = (
            frame.array(f"{stem}.indptr", "int64"),
            frame.array(f"{stem}.values", "uint8"),
        )
        block_validation.check_indptr(stem, names_column[0], len(names_column[1]), rows)
        string_ids.check_strings(section, names_column)
        ids = frame.array(section, "int64")
        mismatches = np.flatnonzero(ids != compute_string_ids(*names_column, schema.salt))
        if mismatches.size:
            index = int(mismatches[0])
            raise InvalidRequest(
                f"{section}[{index}] = {ids[index]}: expected the id of "
                f"{string_ids.display_string(names_column, index)} under the salt {schema.salt}"
            )
        check_distinct_ids(schema, schema_type.name, ids, names_column)
    return {f"{stem}.{half}" for stem in columns.values() for half in ("indptr", "values")}


def check_distinct_ids(
    schema: Schema, type_name: str, ids: NDArray[np.int64], names_column: string_ids.StringColumn
) -> None:
    """Raise Conflict if two different strings have the same id."""
    first, inverse = np.unique(ids, return_index=True, return_inverse=True)[1:]
    if len(first) == len(ids):
        return
    mismatch = first_mismatch(first[inverse], *names_column, *names_column)
    if mismatch >= 0:
        colliding = (
            string_ids.display_string(names_column, int(first[inverse[mismatch]])),
            string_ids.display_string(names_column, mismatch),
        )
        raise Conflict(
            string_ids.collision_message(
                repr(type_name), *colliding, int(ids[mismatch]), schema.salt
            )
        )
