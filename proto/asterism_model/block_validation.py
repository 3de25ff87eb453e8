"""Rules for the rows of a write: the sections of a block and their valid values.

graphd applies these rules to the writes of clients, storaged to every block that it receives, and
builds to every block that they read from disk. They share one module, so that no service accepts
rows that another one cannot process. All checks are vectorised. The caller passes the placement
function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_model import string_ids
from asterism_model.schema import EdgeType, Feature, NodeType, Schema, time_columns
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1.storaged_pb2 import BlockKind

Arrays = Mapping[str, NDArray[Any]]
Ids = NDArray[np.int64]
PartRun = tuple[int, int, int]
"""Rows of one partition: (partition, first row, row after the last)."""
PartitionFunction = Callable[[Ids, int, str], NDArray[np.int32]]
"""Returns the partition of each id, given the number of partitions and the placement."""

MAX_ID = (1 << 63) - 2
"""The largest node or edge id: one more must still be an int64."""
NO_EDGE_ID = -1
"""Edge id of a delete that stands for every edge between the two nodes."""
PIECES_PER_CHUNK = 256
"""Most pieces in which a chunk is sent.

Chunk number of a block = registered chunk * PIECES_PER_CHUNK + piece.
"""

_INFINITY = np.uint32(0x7F800000)
"""The bits of infinity in float32."""

_NODES, _OUT, _IN = int(BlockKind.NODES), int(BlockKind.OUT_EDGES), int(BlockKind.IN_EDGES)
_FEATURES, _TIMES = int(BlockKind.EDGE_FEATURES), int(BlockKind.NODE_TIMES)
_OUT_DELETES, _IN_DELETES = int(BlockKind.OUT_EDGE_DELETES), int(BlockKind.IN_EDGE_DELETES)
_BROADCAST_KINDS = (int(BlockKind.NODE_DELETES), int(BlockKind.NODE_REVIVALS), _TIMES)
NODE_KINDS = (_NODES, *_BROADCAST_KINDS)
"""Kinds of blocks that belong to a node type; all other kinds belong to an edge type."""

_ID_SECTIONS: dict[int, tuple[str, ...]] = {
    **dict.fromkeys(NODE_KINDS, ("ids",)),
    **dict.fromkeys((_OUT, _IN, _OUT_DELETES, _IN_DELETES), ("src", "dst", "eid")),
    _FEATURES: ("eid",),
}
_ROUTING_SECTION = {
    _NODES: "ids",
    _OUT: "src",
    _OUT_DELETES: "src",
    _IN: "dst",
    _IN_DELETES: "dst",
    _FEATURES: "eid",
}
"""Section that determines the partition of a row; kinds sent to every partition have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLayout:
    """The sections of a block of one kind and type."""

    ids: tuple[str, ...]
    """Sections of int64 ids, all required."""
    routing_section: str
    """The section that determines the partition; empty if rows go to every partition."""
    owner: NodeType | EdgeType
    allows_weight: bool
    """True if a section ``weight`` is allowed."""
    edge_columns: tuple[Feature, ...]
    """Dense features in sections ``w:NAME``."""
    features: tuple[Feature, ...]
    """Features in sections ``f:NAME``, or ``f:NAME.indptr`` and ``f:NAME.values``."""


def block_type(schema: Schema, kind: int, type_id: int) -> NodeType | EdgeType:
    """Return the node or edge type of a block; raise InvalidRequest if there is none."""
    if kind not in _ID_SECTIONS:
        known = ", ".join(f"{BlockKind.Name(known)} ({known})" for known in sorted(_ID_SECTIONS))
        raise InvalidRequest(f"kind={kind}: expected one of {known}")
    nodes = kind in NODE_KINDS
    types: tuple[NodeType | EdgeType, ...] = schema.node_types if nodes else schema.edge_types
    if not 0 <= type_id < len(types):
        element_name = "a node" if nodes else "an edge"
        raise InvalidRequest(
            f"type_id={type_id}: expected {element_name} type of the schema, 0 to {len(types) - 1}"
        )
    return types[type_id]


def block_layout(schema: Schema, kind: int, type_id: int) -> BlockLayout:
    """Return the sections of a block of a kind and type."""
    owner = block_type(schema, kind, type_id)
    edge_columns: tuple[Feature, ...] = ()
    if isinstance(owner, EdgeType) and kind in (_OUT, _IN):
        edge_columns = tuple(owner.feature(name) for name in owner.edge_columns)
    elif isinstance(owner, NodeType) and kind == _TIMES:
        if not owner.time:
            raise InvalidRequest(
                f"kind=NODE_TIMES: expected a node type with a time; {owner.name!r} is "
                "declared without one"
            )
        edge_columns = (owner.feature(owner.time),)
    return BlockLayout(
        ids=_ID_SECTIONS[kind],
        routing_section=_ROUTING_SECTION.get(kind, ""),
        owner=owner,
        allows_weight=owner.weighted and kind in (_NODES, _OUT, _IN),
        edge_columns=edge_columns,
        features=owner.features if kind in (_NODES, _FEATURES) else (),
    )


def check_block(
    schema: Schema,
    kind: int,
    type_id: int,
    arrays: Arrays,
    runs: Sequence[PartRun],
    part_of: PartitionFunction,
    *,
    unchecked: Collection[str] = (),
) -> int:
    """Check the rows of a block, of one partition or of several.

    Parameters
    ----------
    schema : Schema
    kind, type_id : int
        A `BlockKind`, and the id of a node or edge type.
    arrays : mapping of str to ndarray
        The sections.
    runs : sequence of (int, int, int)
        Rows sent to each partition: (partition, first row, row after the last).
    part_of : PartitionFunction
        Returns the partition of each id.
    unchecked : collection of str
        Id sections that the caller checks against narrower bounds.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    InvalidRequest
        For the first invalid value; the message has the section, the position and the value.
    """
    layout = block_layout(schema, kind, type_id)
    unchecked = {
        *unchecked,
        layout.routing_section,
    }  # `_check_parts` checks the range of this section in the same pass as the partitions
    rows = check_ids(
        layout.ids, arrays, deletes=kind in (_OUT_DELETES, _IN_DELETES), unchecked=unchecked
    )
    if layout.routing_section:
        _check_parts(
            schema, kind, layout.routing_section, arrays[layout.routing_section], runs, part_of
        )
    declared = {
        *layout.ids,
        *check_weight(layout.owner, arrays, rows, allowed=layout.allows_weight),
    }
    for feature in layout.edge_columns:
        declared.add(_check_dense(f"w:{feature.name}", feature, arrays, rows))
        _check_times(layout.owner, feature, arrays.get(f"w:{feature.name}"))
    for feature in layout.features:
        declared |= check_feature(feature, arrays, rows)
        _check_times(layout.owner, feature, arrays.get(f"f:{feature.name}"))
    if kind == _TIMES:
        _section(arrays, f"w:{layout.edge_columns[0].name}")
    if schema.has_string_ids and kind == _NODES:
        _check_names(arrays)
    check_sections(layout.owner, arrays, declared)
    return rows


def check_stored(
    schema: Schema,
    kind: int,
    type_id: int,
    arrays: Arrays,
    rows: int,
    part: int,
    part_of: PartitionFunction,
    *,
    columns: bool,
) -> None:
    """Check a value read from the graph database before it is used.

    Parameters
    ----------
    schema, kind, type_id, arrays, part_of
        As for `check_block`.
    rows : int
        Number of rows according to the index record of the value.
    part : int
        Partition according to the key of the value.
    columns : bool
        The value has the features of a block rather than its ids and weights.

    Raises
    ------
    InvalidRequest
        For the first invalid value; the message has the section, the position and the value.
    """
    layout = block_layout(schema, kind, type_id)
    ids = (layout.routing_section or "ids",) if columns else layout.ids
    if kind in (_OUT_DELETES, _IN_DELETES) and "eid" not in arrays:
        ids = ("src", "dst")  # written by releases without edge ids in deletes
    row_count = check_ids(
        ids,
        arrays,
        deletes=kind in (_OUT_DELETES, _IN_DELETES),
        unchecked=(layout.routing_section,),
    )
    if row_count != rows:
        raise InvalidRequest(
            f"{ids[0]}: expected {rows} rows, as in the record of the block, found {row_count}"
        )
    if layout.routing_section:
        _check_parts(
            schema,
            kind,
            layout.routing_section,
            arrays[layout.routing_section],
            [(part, 0, rows)],
            part_of,
        )
    for feature in layout.features if columns else ():
        check_feature(feature, arrays, rows)
    if not columns:
        check_weight(layout.owner, arrays, rows, allowed=True)
        for feature in layout.edge_columns:
            _check_dense(f"w:{feature.name}", feature, arrays, rows)


def check_ids(
    sections: tuple[str, ...],
    arrays: Arrays,
    *,
    deletes: bool = False,
    unchecked: Collection[str] = (),
) -> int:
    """Check sections of ids, all of which are required, and return the number of rows.

    Parameters
    ----------
    sections : tuple of str
    arrays : mapping of str to ndarray
    deletes : bool
        Accept -1 as an edge id: it stands for every edge between two nodes.
    unchecked : collection of str
        Sections of which only the dtype and the length are checked.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    InvalidRequest
        If a section is missing, or has a wrong dtype, length or value.
    """
    rows = -1
    for name in sections:
        ids = _section(arrays, name)
        if ids.dtype != np.int64 or ids.ndim != 1:
            raise InvalidRequest(
                f"{name}: expected int64 of one dimension, found {ids.dtype}{list(ids.shape)}"
            )
        rows = len(ids) if rows < 0 else rows
        _check_length(name, ids, rows)
        if name not in unchecked:
            check_range(name, ids, NO_EDGE_ID if deletes and name == "eid" else 0)
    return max(rows, 0)


def check_range(name: str, ids: Ids, min_id: int = 0) -> None:
    """Raise InvalidRequest if an id is below ``min_id`` (0 or -1) or above `MAX_ID`."""
    # If an id is out of range, the bitwise or is negative or has all bits set: one fast pass
    # clears the common case.
    bits = int(np.bitwise_or.reduce(ids))
    if not 0 <= bits <= MAX_ID and (ids.min() < min_id or ids.max() > MAX_ID):
        index = int(np.argmax((ids < min_id) | (ids > MAX_ID)))
        raise InvalidRequest(f"{name}[{index}] = {ids[index]}: expected {min_id} to {MAX_ID}")


def check_weight(
    owner: NodeType | EdgeType, arrays: Arrays, rows: int, *, allowed: bool | None = None
) -> tuple[str, ...]:
    """Check the section ``weight`` if it is present, and return the names of allowed sections.

    ``allowed`` overrides whether the type is declared with weights.
    """
    weight = arrays.get("weight")
    if weight is None:
        return ("weight",)
    if not (owner.weighted if allowed is None else allowed):
        raise InvalidRequest(
            f"weight: expected no weights, because type {owner.name!r} is declared without "
            "them; remove the weights"
        )
    if weight.dtype != np.float32 or weight.ndim != 1:
        raise InvalidRequest(
            f"weight: expected float32 of one dimension, found {weight.dtype}{list(weight.shape)}"
        )
    _check_length("weight", weight, rows)
    # As unsigned integers, the bits of floats from 0 to infinity are ordered like the floats, and
    # those of NaN and of negative numbers are larger: one pass over the bits clears the common
    # case. It fails for -0.0, which the second test accepts.
    is_valid = not rows or weight.view(np.uint32).max() < _INFINITY
    if not is_valid and not (weight.min() >= 0 and weight.max() < np.inf):
        index = int(np.argmin(np.isfinite(weight) & (weight >= 0)))
        raise InvalidRequest(
            f"weight[{index}] = {weight[index]}: expected a finite number, 0 or more"
        )
    return ("weight",)


def check_feature(feature: Feature, arrays: Arrays, rows: int) -> set[str]:
    """Check the sections of a feature if they are present, and return their names."""
    stem = f"f:{feature.name}"
    if feature.kind == "dense":
        return {_check_dense(stem, feature, arrays, rows)}
    sections = {f"{stem}.indptr", f"{stem}.values"}
    if sections & set(arrays):
        indptr, values = _section(arrays, f"{stem}.indptr"), _section(arrays, f"{stem}.values")
        dtype = "uint8" if feature.kind == "bytes" else feature.dtype
        if values.dtype != np.dtype(dtype) or values.ndim != 1:
            raise InvalidRequest(
                f"feature {feature.name!r}: expected values of {dtype} in one dimension, "
                f"found {values.dtype}{list(values.shape)}"
            )
        check_indptr(f"feature {feature.name!r}", indptr, len(values), rows)
    return sections


def check_indptr(label: str, indptr: NDArray[Any], values: int, rows: int) -> None:
    """Raise InvalidRequest unless row pointers never decrease from 0 to the number of values."""
    expected = f"expected int64[{rows + 1}], which must rise from 0 to {values}"
    if indptr.dtype != np.int64 or indptr.shape != (rows + 1,):
        raise InvalidRequest(f"{label}: indptr of {indptr.dtype}{list(indptr.shape)}: {expected}")
    if indptr[0] != 0:
        raise InvalidRequest(f"{label}: indptr[0] = {indptr[0]}: {expected}")
    decreases = indptr[1:] < indptr[:-1]
    if decreases.any():
        index = int(np.argmax(decreases)) + 1
        raise InvalidRequest(
            f"{label}: indptr[{index}] = {indptr[index]} after {indptr[index - 1]}: {expected}"
        )
    if indptr[-1] != values:
        raise InvalidRequest(f"{label}: indptr[{rows}] = {indptr[-1]}: {expected}")


def check_sections(owner: NodeType | EdgeType, arrays: Arrays, declared: set[str]) -> None:
    """Raise InvalidRequest for a section that the type does not declare."""
    for name in arrays:
        if name not in declared:
            raise InvalidRequest(
                f"section {name!r}: expected one of {', '.join(sorted(declared))} for type "
                f"{owner.name!r}"
            )


def _section(arrays: Arrays, name: str) -> NDArray[Any]:
    section = arrays.get(name)
    if section is None:
        raise InvalidRequest(
            f"the array {name!r} is missing; the arrays of this write are "
            f"{', '.join(sorted(arrays)) or 'none'}"
        )
    return section


def _check_length(name: str, array: NDArray[Any], rows: int) -> None:
    if len(array) != rows:
        raise InvalidRequest(f"{name} has {len(array)} entries: expected {rows}, one per row")


def _check_dense(section: str, feature: Feature, arrays: Arrays, rows: int) -> str:
    values = arrays.get(section)
    if values is not None:
        if values.dtype != np.dtype(feature.dtype):
            raise InvalidRequest(
                f"feature {feature.name!r}: expected {feature.dtype} in {section!r}, found "
                f"{values.dtype}"
            )
        if values.shape != (rows, *feature.shape):
            shape = [rows, *feature.shape]
            raise InvalidRequest(
                f"feature {feature.name!r}: expected shape {shape} of {section!r}, found "
                f"{list(values.shape)}"
            )
        if values.dtype == np.bool_ and values.size and (raw := values.view(np.uint8)).max() > 1:
            index = int(np.argmax(raw.reshape(rows, -1).max(axis=1) > 1))
            raise InvalidRequest(
                f"feature {feature.name!r}: expected bytes 0 or 1 in {section!r}[{index}], "
                f"found {raw.max()}"
            )
    return section


def _check_times(owner: NodeType | EdgeType, feature: Feature, values: NDArray[Any] | None) -> None:
    if values is not None and feature.name == owner.time:
        time_columns.check_time_values(f"time {owner.time!r}", values)


def _check_names(arrays: Arrays) -> None:
    stem = f"f:{string_ids.ID_COLUMN}"
    string_ids.check_strings(
        "ids", (_section(arrays, f"{stem}.indptr"), _section(arrays, f"{stem}.values"))
    )


def _check_parts(
    schema: Schema,
    kind: int,
    name: str,
    ids: Ids,
    runs: Sequence[PartRun],
    part_of: PartitionFunction,
) -> None:
    """Raise InvalidRequest for an id that is out of range or in a run of the wrong partition."""
    placement = "mod" if kind == _FEATURES else schema.placement
    if (
        placement == "mod"
        and schema.parts & (schema.parts - 1) == 0
        and _has_low_bits(ids, runs, schema.parts - 1)
    ):
        return
    check_range(name, ids)
    for part, start, stop in runs:
        misplaced = part_of(ids[start:stop], schema.parts, placement) != part
        if misplaced.any():
            index = start + int(np.argmax(misplaced))
            actual = int(part_of(ids[index : index + 1], schema.parts, placement)[0])
            raise InvalidRequest(
                f"{name}[{index}] = {ids[index]}: expected a row of partition {part}, found "
                f"one of partition {actual}"
            )


def _has_low_bits(ids: Ids, runs: Sequence[PartRun], mask: int) -> bool:
    """Return whether all ids are in range and have the low bits of their run's partition.

    All ids of a run have the same low bits if the bitwise or and the bitwise and of the run agree
    on them. These two reductions are several times as fast as a remainder per row.
    """
    checked = 0
    for part, start, stop in runs:
        run_ids = ids[start:stop]
        bits = int(np.bitwise_or.reduce(run_ids))
        if len(run_ids) and not (
            0 <= bits <= MAX_ID
            and bits & mask == part == int(np.bitwise_and.reduce(run_ids)) & mask
        ):
            return False
        checked += len(run_ids)
    return checked == len(ids)
