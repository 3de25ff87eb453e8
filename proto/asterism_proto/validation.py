"""Rules for the rows of a write: which sections a block has, and which values they may hold.

graphd applies these rules to what clients send, storaged to every block that enters it, builds to
every block that they read from disk. One module, so that none of them accepts what another one
cannot work with. All checks are vectorised; the placement function is passed in by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto import names, times
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.v1.storaged_pb2 import BlockKind

Arrays = Mapping[str, NDArray[Any]]
Ids = NDArray[np.int64]
Run = tuple[int, int, int]
"""Rows of one partition: (partition, first row, row after the last)."""
PartOf = Callable[[Ids, int, str], NDArray[np.int32]]
"""Returns the partition of each id, given the number of partitions and the placement."""

MAX_ID = (1 << 63) - 2
"""The largest node or edge id: one more must still be an int64."""
NO_EDGE_ID = -1
"""In a delete: every edge between the two nodes."""
PIECES_PER_CHUNK = 256
"""Block chunk number = registered chunk * PIECES_PER_CHUNK + piece: a chunk is sent in pieces."""

_NODES, _OUT, _IN = int(BlockKind.NODES), int(BlockKind.OUT_EDGES), int(BlockKind.IN_EDGES)
_FEATURES, _TIMES = int(BlockKind.EDGE_FEATURES), int(BlockKind.NODE_TIMES)
_OUT_DELETES, _IN_DELETES = int(BlockKind.OUT_EDGE_DELETES), int(BlockKind.IN_EDGE_DELETES)
_EVERYWHERE = (int(BlockKind.NODE_DELETES), int(BlockKind.NODE_BIRTHS), _TIMES)
NODE_KINDS = (_NODES, *_EVERYWHERE)
"""Kinds of blocks whose type is a node type; those of the others is an edge type."""

_IDS: dict[int, tuple[str, ...]] = {
    **dict.fromkeys(NODE_KINDS, ("ids",)),
    **dict.fromkeys((_OUT, _IN, _OUT_DELETES, _IN_DELETES), ("src", "dst", "eid")),
    _FEATURES: ("eid",),
}
_ROUTED_BY = {
    _NODES: "ids",
    _OUT: "src",
    _OUT_DELETES: "src",
    _IN: "dst",
    _IN_DELETES: "dst",
    _FEATURES: "eid",
}
"""The section that a row's partition follows from; kinds that go to every partition have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a block of one kind and type may contain."""

    ids: tuple[str, ...]
    """Sections of int64 ids, all required."""
    routed_by: str
    """The one that the partition follows from; empty where rows go to every partition."""
    owner: NodeType | EdgeType
    weighted: bool
    """Whether a section ``weight`` may be there."""
    near: tuple[Feature, ...]
    """Dense features in sections ``w:NAME``."""
    features: tuple[Feature, ...]
    """Features in sections ``f:NAME``, or ``f:NAME.indptr`` and ``f:NAME.values``."""


def owner_of(schema: Schema, kind: int, type_id: int) -> NodeType | EdgeType:
    """Return the type that a block of this kind is of; InvalidRequest where there is none."""
    if kind not in _IDS:
        known = ", ".join(f"{BlockKind.Name(known)} ({known})" for known in sorted(_IDS))
        raise InvalidRequest(f"kind={kind}: expected one of {known}")
    nodes = kind in NODE_KINDS
    types: tuple[NodeType | EdgeType, ...] = schema.node_types if nodes else schema.edge_types
    if not 0 <= type_id < len(types):
        word = "node" if nodes else "edge"
        raise InvalidRequest(f"{word} type {type_id}: the schema has {len(types)}, numbered from 0")
    return types[type_id]


def layout_of(schema: Schema, kind: int, type_id: int) -> Layout:
    """Return what a block of a kind and type may contain."""
    owner = owner_of(schema, kind, type_id)
    near: tuple[Feature, ...] = ()
    if isinstance(owner, EdgeType) and kind in (_OUT, _IN):
        near = tuple(owner.feature(name) for name in owner.near_columns)
    elif isinstance(owner, NodeType) and kind == _TIMES:
        if not owner.time:
            raise InvalidRequest(f"kind=NODE_TIMES: node type {owner.name!r} was declared without a time")
        near = (owner.feature(owner.time),)
    return Layout(
        ids=_IDS[kind],
        routed_by=_ROUTED_BY.get(kind, ""),
        owner=owner,
        weighted=owner.weighted and kind in (_NODES, _OUT, _IN),
        near=near,
        features=owner.features if kind in (_NODES, _FEATURES) else (),
    )


def check_block(
    schema: Schema,
    kind: int,
    type_id: int,
    arrays: Arrays,
    runs: Sequence[Run],
    part_of: PartOf,
) -> int:
    """Check the rows of a block, of one partition or of several.

    Parameters
    ----------
    schema : Schema
    kind, type_id : int
        A `BlockKind`, and a node or edge type.
    arrays : mapping of str to ndarray
        The sections.
    runs : sequence of (int, int, int)
        (partition, first row, row after the last): which rows were sent to which partition.
    part_of : callable
        Returns the partition of ids.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    InvalidRequest
        Naming the section, the position and the value.
    """
    layout = layout_of(schema, kind, type_id)
    rows = check_ids(layout.ids, arrays, deletes=kind in (_OUT_DELETES, _IN_DELETES))
    if layout.routed_by:
        _check_parts(schema, kind, layout.routed_by, arrays[layout.routed_by], runs, part_of)
    known = {*layout.ids, *check_weight(layout.owner, arrays, rows, allowed=layout.weighted)}
    for feature in layout.near:
        known.add(_check_dense(f"w:{feature.name}", feature, arrays, rows))
        _check_times(layout.owner, feature, arrays.get(f"w:{feature.name}"))
    for feature in layout.features:
        known |= check_feature(feature, arrays, rows)
        _check_times(layout.owner, feature, arrays.get(f"f:{feature.name}"))
    if kind == _TIMES:
        _section(arrays, f"w:{layout.near[0].name}")
    if schema.named and kind == _NODES:
        _check_names(arrays)
    check_known(layout.owner, arrays, known)
    return rows


def check_stored(schema: Schema, kind: int, type_id: int, arrays: Arrays, rows: int, part: int, part_of: PartOf, *, columns: bool) -> None:
    """Check what a value of the graph database holds, before anything is computed from it.

    Parameters
    ----------
    columns : bool
        Whether it holds the features of a block rather than its ids and weights.
    rows, part : int
        As its record and its key say. The other parameters are those of `check_block`.

    Raises
    ------
    InvalidRequest
        Naming the section, the position and the value.
    """
    layout = layout_of(schema, kind, type_id)
    ids = (layout.routed_by or "ids",) if columns else layout.ids
    if kind in (_OUT_DELETES, _IN_DELETES) and "eid" not in arrays:
        ids = ("src", "dst")  # as releases before edge ids in deletes wrote them
    found = check_ids(ids, arrays, deletes=kind in (_OUT_DELETES, _IN_DELETES))
    if found != rows:
        raise InvalidRequest(f"{ids[0]}: {found} rows; its record says {rows}")
    if layout.routed_by:
        _check_parts(schema, kind, layout.routed_by, arrays[layout.routed_by], [(part, 0, rows)], part_of)
    for feature in layout.features if columns else ():
        check_feature(feature, arrays, rows)
    if not columns:
        check_weight(layout.owner, arrays, rows, allowed=True)
        for feature in layout.near:
            _check_dense(f"w:{feature.name}", feature, arrays, rows)


def check_ids(sections: tuple[str, ...], arrays: Arrays, *, deletes: bool = False) -> int:
    """Check sections of ids, which must all be there, and return the number of rows.

    Parameters
    ----------
    deletes : bool
        Whether -1 is an edge id, which stands for every edge between two nodes.
    """
    rows = -1
    for name in sections:
        ids = _section(arrays, name)
        if ids.dtype != np.int64 or ids.ndim != 1:
            raise InvalidRequest(f"{name}: {ids.dtype}{list(ids.shape)}; expected int64 of one dimension")
        rows = len(ids) if rows < 0 else rows
        _check_length(name, ids, rows)
        least = NO_EDGE_ID if deletes and name == "eid" else 0
        # The bits of all ids together are negative, or all set, where one of them may be out of range: one fast pass.
        bits = int(np.bitwise_or.reduce(ids)) if rows else 0
        if not 0 <= bits <= MAX_ID and (ids.min() < least or ids.max() > MAX_ID):
            at = int(np.argmax((ids < least) | (ids > MAX_ID)))
            raise InvalidRequest(f"{name}[{at}] = {ids[at]}: expected {least} to {MAX_ID}")
    return max(rows, 0)


def check_weight(owner: NodeType | EdgeType, arrays: Arrays, rows: int, *, allowed: bool | None = None) -> tuple[str, ...]:
    """Check the section ``weight``, if there is one, and return the names of what may be there."""
    weight = arrays.get("weight")
    if weight is None:
        return ("weight",)
    if not (owner.weighted if allowed is None else allowed):
        raise InvalidRequest(f"section 'weight': {owner.name!r} was declared without weights; leave them out")
    if weight.dtype != np.float32 or weight.ndim != 1:
        raise InvalidRequest(f"weight: {weight.dtype}{list(weight.shape)}; expected float32 of one dimension")
    _check_length("weight", weight, rows)
    # NaN fails both comparisons.
    if rows and not (weight.min() >= 0 and weight.max() < np.inf):
        at = int(np.argmin(np.isfinite(weight) & (weight >= 0)))
        raise InvalidRequest(f"weight[{at}] = {weight[at]}: a weight is finite and not negative")
    return ("weight",)


def check_feature(feature: Feature, arrays: Arrays, rows: int) -> set[str]:
    """Check the sections of a feature, if they are there, and return their names."""
    stem = f"f:{feature.name}"
    if feature.kind == "dense":
        return {_check_dense(stem, feature, arrays, rows)}
    sections = {f"{stem}.indptr", f"{stem}.values"}
    if sections & set(arrays):
        indptr, values = _section(arrays, f"{stem}.indptr"), _section(arrays, f"{stem}.values")
        dtype = "uint8" if feature.kind == "bytes" else feature.dtype
        if values.dtype != np.dtype(dtype) or values.ndim != 1:
            raise InvalidRequest(f"feature {feature.name!r}: values are {values.dtype}{list(values.shape)}; expected {dtype} of one dimension")
        check_indptr(f"feature {feature.name!r}", indptr, len(values), rows)
    return sections


def check_indptr(what: str, indptr: NDArray[Any], values: int, rows: int) -> None:
    """InvalidRequest unless row pointers rise from 0 to the number of values."""
    expected = f"indptr must be int64[{rows + 1}] and rise from 0 to {values}"
    if indptr.dtype != np.int64 or indptr.shape != (rows + 1,):
        raise InvalidRequest(f"{what}: indptr is {indptr.dtype}{list(indptr.shape)}; {expected}")
    if indptr[0] != 0:
        raise InvalidRequest(f"{what}: indptr[0] = {indptr[0]}; {expected}")
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        at = int(np.argmax(falls)) + 1
        raise InvalidRequest(f"{what}: indptr[{at}] = {indptr[at]} after {indptr[at - 1]}; {expected}")
    if indptr[-1] != values:
        raise InvalidRequest(f"{what}: indptr[{rows}] = {indptr[-1]}; {expected}")


def check_known(owner: NodeType | EdgeType, arrays: Arrays, known: set[str]) -> None:
    """InvalidRequest for a section that the type does not declare."""
    for name in arrays:
        if name not in known:
            raise InvalidRequest(f"section {name!r}: a write of {owner.name!r} has {', '.join(sorted(known))}")


def _section(arrays: Arrays, name: str) -> NDArray[Any]:
    found = arrays.get(name)
    if found is None:
        raise InvalidRequest(f"the array {name!r} is missing; there are {', '.join(sorted(arrays)) or 'none'}")
    return found


def _check_length(name: str, array: NDArray[Any], rows: int) -> None:
    if len(array) != rows:
        raise InvalidRequest(f"{name} has {len(array)} entries for {rows} rows")


def _check_dense(section: str, feature: Feature, arrays: Arrays, rows: int) -> str:
    values = arrays.get(section)
    if values is not None:
        if values.dtype != np.dtype(feature.dtype):
            raise InvalidRequest(f"feature {feature.name!r}: {section!r} is {values.dtype}; expected {feature.dtype}")
        if values.shape != (rows, *feature.shape):
            shape = [rows, *feature.shape]
            raise InvalidRequest(f"feature {feature.name!r}: {section!r} has shape {list(values.shape)}; expected {shape}")
        if values.dtype == np.bool_ and values.size and (raw := values.view(np.uint8)).max() > 1:
            at = int(np.argmax(raw.reshape(rows, -1).max(axis=1) > 1))
            raise InvalidRequest(f"feature {feature.name!r}: {section!r}[{at}] holds byte {raw.max()}; expected 0 or 1")
    return section


def _check_times(owner: NodeType | EdgeType, feature: Feature, values: NDArray[Any] | None) -> None:
    if values is not None and feature.name == owner.time:
        times.refuse_no_times(f"time {owner.time!r}", values)


def _check_names(arrays: Arrays) -> None:
    stem = f"f:{names.COLUMN}"
    names.refuse("ids", (_section(arrays, f"{stem}.indptr"), _section(arrays, f"{stem}.values")))


def _check_parts(schema: Schema, kind: int, name: str, ids: Ids, runs: Sequence[Run], part_of: PartOf) -> None:
    """InvalidRequest where a row was sent to a partition that is not the one of its id."""
    placement = "mod" if kind == _FEATURES else schema.placement
    if placement == "mod" and schema.parts & (schema.parts - 1) == 0 and _right_low_bits(ids, runs, schema.parts - 1):
        return
    for part, start, stop in runs:
        wrong = part_of(ids[start:stop], schema.parts, placement) != part
        if wrong.any():
            at = start + int(np.argmax(wrong))
            own = int(part_of(ids[at : at + 1], schema.parts, placement)[0])
            raise InvalidRequest(f"{name}[{at}] = {ids[at]}: it belongs to partition {own}, not to {part}")


def _right_low_bits(ids: Ids, runs: Sequence[Run], mask: int) -> bool:
    """Return whether the low bits of each run's ids are those of its partition.

    They are where the bits that any of them has, and those that all of them have, are the partition's:
    two reductions, several times as fast as a remainder per row.
    """
    return all(
        start == stop or (int(np.bitwise_or.reduce(ids[start:stop])) & mask == part and int(np.bitwise_and.reduce(ids[start:stop])) & mask == part)
        for part, start, stop in runs
    )
