"""Validation and layout of writes, and small writes that need no load."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import string_id_hashing as names
from asterism.calls import validation
from asterism.client_state import Session
from asterism.records.samples import FeatureValue
from asterism_model.schema import Schema
from asterism_model.string_ids import ID_COLUMN, StringColumn, display_string
from asterism_proto.errors import Deadline, InvalidRequest, Unavailable
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb

Columns = dict[str, FeatureValue]
NO_FEATURES: Mapping[str, Any] = MappingProxyType({})

SMALL_WRITE_BYTES = 8 << 20
"""Maximum bytes of a small write; a larger one is a load."""
_ATTEMPTS = 4
_END = re.compile(r"(?P<end>src|dst)\[(?P<at>\d+)\] ?= ?\d+")
"""Start of an error message that refers to the end of an edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRows:
    """Validated rows of one kind of write and one type."""

    kind: storaged_pb.BlockKind
    element: common_pb.Element
    type_id: int
    count: int
    columns: Columns
    """Columns by section; a list column is a pair of ``indptr`` and ``values``.
    """
    is_idempotent: bool
    """True if writing the rows twice has the same effect as writing them once."""
    string_ids: Mapping[str, StringColumn] = field(default_factory=dict)
    """Strings of the sections that were given as strings, so that errors can name them."""

    @property
    def is_small(self) -> bool:
        """True if the rows fit into a small write."""
        return (
            sum(array.nbytes for array in column_sections(self.columns).values())
            <= SMALL_WRITE_BYTES
        )


def node_upserts(
    session: Session,
    space: str,
    ntype: str,
    ids: ArrayLike,
    weights: ArrayLike | None,
    features: Mapping[str, Any],
) -> WriteRows:
    """Return validated nodes of one type, with weights and features."""
    type_id, owner = session.node_type(space, ntype)
    schema = session.schema(space)
    checked, id_strings = names.ids_and_names("ids", ids, schema)
    features = _add_name_columns(schema, {ID_COLUMN: ("ids", id_strings)}, features)
    columns: Columns = {"ids": checked}
    count = len(columns["ids"])
    _add_weights(columns, validation.weights(weights, count, owner))
    columns |= _prefix_columns(validation.features(features, count, owner))
    return WriteRows(
        kind=storaged_pb.NODES,
        element=common_pb.NODE,
        type_id=type_id,
        count=count,
        columns=columns,
        is_idempotent=True,
    )


def edge_upserts(
    session: Session,
    space: str,
    etype: str,
    src: ArrayLike,
    dst: ArrayLike,
    weights: ArrayLike | None,
    features: Mapping[str, Any],
) -> WriteRows:
    """Return validated edges of one type, with weights and features."""
    type_id, owner = session.edge_type(space, etype)
    schema = session.schema(space)
    (sources, src_names), (destinations, dst_names) = (
        names.ids_and_names("src", src, schema),
        names.ids_and_names("dst", dst, schema),
    )
    columns: Columns = {"src": sources, "dst": destinations}
    count = len(sources)
    validation.require_length("dst", destinations, count)
    if (
        schema.has_string_ids and owner.missing == "create"
    ):  # Missing ends are created, and then need their names.
        features = dict(
            _add_name_columns(
                schema, {"src": ("src", src_names), "dst": ("dst", dst_names)}, features
            )
        )
        columns |= {
            f"{end}_names": validation.name_column(end, features.pop(end), count)
            for end in ("src", "dst")
        }
    _add_weights(columns, validation.weights(weights, count, owner))
    columns |= _prefix_columns(validation.features(features, count, owner))
    unique = owner.multiplicity == "unique"
    id_strings = {
        end: strings
        for end, strings in (("src", src_names), ("dst", dst_names))
        if strings is not None
    }
    return WriteRows(
        kind=storaged_pb.OUT_EDGES,
        element=common_pb.EDGE,
        type_id=type_id,
        count=count,
        columns=columns,
        is_idempotent=unique,
        string_ids=id_strings,
    )


def node_deletes(session: Session, space: str, ntype: str, ids: ArrayLike) -> WriteRows:
    """Return validated nodes to delete."""
    type_id, _ = session.node_type(space, ntype)
    checked, _ = names.ids_and_names("ids", ids, session.schema(space))
    return WriteRows(
        kind=storaged_pb.NODE_DELETES,
        element=common_pb.NODE,
        type_id=type_id,
        count=len(checked),
        columns={"ids": checked},
        is_idempotent=True,
    )


def edge_deletes(
    session: Session, space: str, etype: str, src: ArrayLike, dst: ArrayLike, eids: ArrayLike | None
) -> WriteRows:
    """Return validated edges to delete: by id, or (no id, or -1) all edges between two nodes."""
    type_id, _ = session.edge_type(space, etype)
    schema = session.schema(space)
    columns: Columns = {
        "src": names.ids_and_names("src", src, schema)[0],
        "dst": names.ids_and_names("dst", dst, schema)[0],
    }
    count = len(columns["src"])
    columns["eid"] = (
        np.full(count, -1, np.int64)
        if eids is None
        else validation.ids("edge_ids", eids, minimum=-1)
    )
    for name in ("dst", "eid"):
        validation.require_length(name, _values_of(columns[name]), count)
    return WriteRows(
        kind=storaged_pb.OUT_EDGE_DELETES,
        element=common_pb.EDGE,
        type_id=type_id,
        count=count,
        columns=columns,
        is_idempotent=True,
    )


def write_small(session: Session, space: str, rows: WriteRows) -> int:
    """Write small rows without a load and return the commit number.

    Raises
    ------
    Unavailable
        If there was no reply. Idempotent rows were retried; it is unknown whether other rows were
        written.
    """
    head = graphd_pb.WriteOnceRequest(space=space, kind=rows.kind, type_id=rows.type_id)
    arrays = column_sections(rows.columns)
    for attempt in range(_ATTEMPTS):
        try:
            reply = session.graph("write_once", head, arrays).with_head(graphd_pb.WriteOnceReply)
            return reply.head.commit
        except InvalidRequest as error:
            raise with_string_id(error, rows) from error
        except Unavailable as error:
            if not rows.is_idempotent:
                raise type(error)(
                    f"{error.message}; the edges may have been written: check before you write "
                    "them again, or use begin_load"
                ) from error
            if isinstance(error, Deadline) or attempt + 1 == _ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def with_string_id(error: InvalidRequest, rows: WriteRows, first: int = 0) -> InvalidRequest:
    """Return the error of a write with the string id of the node that it refers to.

    ``first`` is the number of the error's row 0 among ``rows``. Other errors, and those about nodes
    given by integer id, are returned unchanged.
    """
    match = _END.match(error.message)
    if match is None or match["end"] not in rows.string_ids:
        return error
    row = first + int(match["at"])
    return InvalidRequest(
        f"{match['end']}[{row}]="
        f"{display_string(rows.string_ids[match['end']], row)}{error.message[match.end() :]}"
    )


def column_sections(columns: Mapping[str, FeatureValue]) -> dict[str, NDArray[Any]]:
    """Return columns as sections; a list column becomes two of them."""
    flat: dict[str, NDArray[Any]] = {}
    for name, array in columns.items():
        if isinstance(array, tuple):
            flat[f"{name}.indptr"], flat[f"{name}.values"] = array
        else:
            flat[name] = array
    return flat


def _add_name_columns(
    schema: Schema,
    string_columns: Mapping[str, tuple[str, StringColumn | None]],
    features: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Return features plus the name columns of nodes, for spaces with string ids."""
    if not schema.has_string_ids:
        return features
    result = dict(features)
    for column, (argument, strings) in string_columns.items():
        if strings is not None and column in result:
            raise InvalidRequest(
                f"{argument}: expected integers, because the feature {column!r} has the names; "
                "pass strings here or names there, not both"
            )
        if strings is None and column not in result:
            raise InvalidRequest(
                f"{argument}: expected strings, because a node of this space needs a name"
            )
        if strings is not None:
            result[column] = strings
    return result


def _prefix_columns(columns: Mapping[str, FeatureValue]) -> Columns:
    return {f"f:{name}": column for name, column in columns.items()}


def _add_weights(columns: Columns, weights: NDArray[np.float32] | None) -> None:
    if weights is not None:
        columns["weight"] = weights


def _values_of(column: FeatureValue) -> NDArray[Any]:
    return column[1] if isinstance(column, tuple) else column
