"""What a write brings, checked and laid out as it travels; and writes that need no load of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism import arguments
from asterism.records import FeatureValue
from asterism.session import Session
from asterism_proto.errors import Deadline, Unavailable
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import graphd_pb2 as wire
from asterism_proto.v1 import storaged_pb2 as store

Columns = dict[str, FeatureValue]
NO_FEATURES: Mapping[str, Any] = MappingProxyType({})

ONCE_BYTES = 8 << 20
"""Of a write that goes by itself; a larger one is a load."""
_ATTEMPTS = 4


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

    @property
    def small(self) -> bool:
        """Whether they may go by themselves."""
        return sum(array.nbytes for array in sections(self.columns).values()) <= ONCE_BYTES


def nodes(session: Session, space: str, ntype: str, ids: ArrayLike, weights: ArrayLike | None, features: Mapping[str, Any]) -> Rows:
    """Nodes of one type, with weights and features."""
    type_id, owner = session.node_type(space, ntype)
    columns: Columns = {"ids": arguments.ids("ids", ids)}
    count = len(columns["ids"])
    _add_weights(columns, arguments.weights(weights, count, owner))
    columns |= _prefixed(arguments.features(features, count, owner))
    return Rows(kind=store.NODES, element=pb.NODE, type_id=type_id, count=count, columns=columns, repeatable=True)


def edges(session: Session, space: str, etype: str, src: ArrayLike, dst: ArrayLike, weights: ArrayLike | None, features: Mapping[str, Any]) -> Rows:
    """Edges of one type, with weights and features."""
    type_id, owner = session.edge_type(space, etype)
    columns: Columns = {"src": arguments.ids("src", src), "dst": arguments.ids("dst", dst)}
    count = len(columns["src"])
    arguments.same_length("dst", _plain(columns["dst"]), count)
    _add_weights(columns, arguments.weights(weights, count, owner))
    columns |= _prefixed(arguments.features(features, count, owner))
    unique = owner.multiplicity == "unique"
    return Rows(kind=store.OUT_EDGES, element=pb.EDGE, type_id=type_id, count=count, columns=columns, repeatable=unique)


def node_deletes(session: Session, space: str, ntype: str, ids: ArrayLike) -> Rows:
    """Nodes to delete."""
    type_id, _ = session.node_type(space, ntype)
    checked = arguments.ids("ids", ids)
    return Rows(kind=store.NODE_DELETES, element=pb.NODE, type_id=type_id, count=len(checked), columns={"ids": checked}, repeatable=True)


def edge_deletes(session: Session, space: str, etype: str, src: ArrayLike, dst: ArrayLike, eids: ArrayLike | None) -> Rows:
    """Edges to delete: those with the given ids, or (left out, or -1) every one between two nodes."""
    type_id, _ = session.edge_type(space, etype)
    columns: Columns = {"src": arguments.ids("src", src), "dst": arguments.ids("dst", dst)}
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
        except Unavailable as error:
            if not rows.repeatable:
                raise type(error)(
                    f"{error.message}; the edges may have been written all the same: look before you write them again, or use begin_load"
                ) from error
            if isinstance(error, Deadline) or attempt + 1 == _ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def sections(columns: Mapping[str, FeatureValue]) -> dict[str, NDArray[Any]]:
    """Columns as sections: a list column is two of them."""
    flat: dict[str, NDArray[Any]] = {}
    for name, array in columns.items():
        if isinstance(array, tuple):
            flat[f"{name}.indptr"], flat[f"{name}.values"] = array
        else:
            flat[name] = array
    return flat


def _prefixed(columns: Mapping[str, FeatureValue]) -> Columns:
    return {f"f:{name}": column for name, column in columns.items()}


def _add_weights(columns: Columns, weights: NDArray[np.float32] | None) -> None:
    if weights is not None:
        columns["weight"] = weights


def _plain(column: FeatureValue) -> NDArray[Any]:
    return column[1] if isinstance(column, tuple) else column
