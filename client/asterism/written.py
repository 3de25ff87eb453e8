"""What a write brings, checked and laid out as it travels; and writes that need no load of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism import arguments, names
from asterism.records import FeatureValue
from asterism.session import Session
from asterism_proto.errors import Deadline, InvalidRequest, Unavailable
from asterism_proto.names import COLUMN, Names, shown
from asterism_proto.schema import Schema
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import graphd_pb2 as wire
from asterism_proto.v1 import storaged_pb2 as store

Columns = dict[str, FeatureValue]
NO_FEATURES: Mapping[str, Any] = MappingProxyType({})

ONCE_BYTES = 8 << 20
"""Of a write that goes by itself; a larger one is a load."""
_ATTEMPTS = 4
_END = re.compile(r"(?P<end>src|dst)\[(?P<at>\d+)\] = \d+")
"""How an error begins that is about an edge's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of one kind and type."""

    kind: store.BlockKind
    element: pb.Element
    type_id: int
    count: int
    columns: Columns
    """By section; a pair is a list column's ``<name>.indptr`` and ``<name>.values``."""
    repeatable: bool
    """Whether writing them twice is the same as once."""
    called: Mapping[str, Names] = field(default_factory=dict)
    """What nodes were given by, of those sections that had strings: an error can name them."""

    @property
    def small(self) -> bool:
        """Whether they may go by themselves."""
        return sum(array.nbytes for array in sections(self.columns).values()) <= ONCE_BYTES


def nodes(session: Session, space: str, ntype: str, ids: ArrayLike, weights: ArrayLike | None, features: Mapping[str, Any]) -> Rows:
    """Nodes of one type, with weights and features."""
    type_id, owner = session.node_type(space, ntype)
    schema = session.schema(space)
    checked, called = names.written("ids", ids, schema)
    features = _with_names(schema, {COLUMN: ("ids", called)}, features)
    columns: Columns = {"ids": checked}
    count = len(columns["ids"])
    _add_weights(columns, arguments.weights(weights, count, owner))
    columns |= _prefixed(arguments.features(features, count, owner))
    return Rows(kind=store.NODES, element=pb.NODE, type_id=type_id, count=count, columns=columns, repeatable=True)


def edges(session: Session, space: str, etype: str, src: ArrayLike, dst: ArrayLike, weights: ArrayLike | None, features: Mapping[str, Any]) -> Rows:
    """Edges of one type, with weights and features."""
    type_id, owner = session.edge_type(space, etype)
    schema = session.schema(space)
    (sources, src_names), (destinations, dst_names) = names.written("src", src, schema), names.written("dst", dst, schema)
    columns: Columns = {"src": sources, "dst": destinations}
    count = len(sources)
    arguments.same_length("dst", destinations, count)
    if schema.named and owner.missing == "create":  # ends that are not there come into being, and have names then
        features = dict(_with_names(schema, {"src": ("src", src_names), "dst": ("dst", dst_names)}, features))
        columns |= {f"{end}_names": arguments.names_of(end, features.pop(end), count) for end in ("src", "dst")}
    _add_weights(columns, arguments.weights(weights, count, owner))
    columns |= _prefixed(arguments.features(features, count, owner))
    unique = owner.multiplicity == "unique"
    called = {end: held for end, held in (("src", src_names), ("dst", dst_names)) if held is not None}
    return Rows(kind=store.OUT_EDGES, element=pb.EDGE, type_id=type_id, count=count, columns=columns, repeatable=unique, called=called)


def node_deletes(session: Session, space: str, ntype: str, ids: ArrayLike) -> Rows:
    """Nodes to delete."""
    type_id, _ = session.node_type(space, ntype)
    checked, _ = names.written("ids", ids, session.schema(space))
    return Rows(kind=store.NODE_DELETES, element=pb.NODE, type_id=type_id, count=len(checked), columns={"ids": checked}, repeatable=True)


def edge_deletes(session: Session, space: str, etype: str, src: ArrayLike, dst: ArrayLike, eids: ArrayLike | None) -> Rows:
    """Edges to delete: those with the given ids, or (left out, or -1) every one between two nodes."""
    type_id, _ = session.edge_type(space, etype)
    schema = session.schema(space)
    columns: Columns = {"src": names.written("src", src, schema)[0], "dst": names.written("dst", dst, schema)[0]}
    count = len(columns["src"])
    columns["eid"] = np.full(count, -1, np.int64) if eids is None else arguments.ids("edge_ids", eids, least=-1)
    for name in ("dst", "eid"):
        arguments.same_length(name, _plain(columns[name]), count)
    return Rows(kind=store.OUT_EDGE_DELETES, element=pb.EDGE, type_id=type_id, count=count, columns=columns, repeatable=True)


def once(session: Session, space: str, rows: Rows) -> int:
    """Write small rows by themselves; gives the commit number.

    Raises
    ------
    Unavailable
        Where nobody answered. Rows that may be sent again were; of others it is open whether they were written.
    """
    head = wire.WriteOnceRequest(space=space, kind=rows.kind, type_id=rows.type_id)
    arrays = sections(rows.columns)
    for attempt in range(_ATTEMPTS):
        try:
            reply: Any = session.graph("write_once", head, arrays).head
            return int(reply.commit)
        except InvalidRequest as error:
            raise named(error, rows) from error
        except Unavailable as error:
            if not rows.repeatable:
                raise type(error)(
                    f"{error.message}; the edges may have been written all the same: look before you write them again, or use begin_load"
                ) from error
            if isinstance(error, Deadline) or attempt + 1 == _ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def named(error: InvalidRequest, rows: Rows, first: int = 0) -> InvalidRequest:
    """The error of a write of rows from ``first`` on, with the string of the node that it is about, where that is what was given."""
    found = _END.match(error.message)
    if found is None or found["end"] not in rows.called:
        return error
    at = first + int(found["at"])
    return InvalidRequest(f"{found['end']}[{at}] = {shown(rows.called[found['end']], at)}{error.message[found.end() :]}")


def sections(columns: Mapping[str, FeatureValue]) -> dict[str, NDArray[Any]]:
    """Columns as sections: a list column is two of them."""
    flat: dict[str, NDArray[Any]] = {}
    for name, array in columns.items():
        if isinstance(array, tuple):
            flat[f"{name}.indptr"], flat[f"{name}.values"] = array
        else:
            flat[name] = array
    return flat


def _with_names(schema: Schema, given: Mapping[str, tuple[str, Names | None]], features: Mapping[str, Any]) -> Mapping[str, Any]:
    """Features with the names of nodes among them, by the column that each goes to, where ids are strings."""
    if not schema.named:
        return features
    found = dict(features)
    for column, (what, called) in given.items():
        if called is not None and column in found:
            raise InvalidRequest(f"{what}: strings, and names of their own in the column {column!r}; give one of the two")
        if called is None and column not in found:
            raise InvalidRequest(f"{what}: ids of this space are strings; give those, for a node that is written has a name")
        if called is not None:
            found[column] = called
    return found


def _prefixed(columns: Mapping[str, FeatureValue]) -> Columns:
    return {f"f:{name}": column for name, column in columns.items()}


def _add_weights(columns: Columns, weights: NDArray[np.float32] | None) -> None:
    if weights is not None:
        columns["weight"] = weights


def _plain(column: FeatureValue) -> NDArray[Any]:
    return column[1] if isinstance(column, tuple) else column
