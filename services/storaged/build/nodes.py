"""Build the nodes of one type in one partition: rows, weights, features and string ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.siphash import first_mismatch
from asterism_graphkit.relabel.hash_index import fill_index, index_slots
from asterism_model import string_ids
from asterism_model.elements import Element
from asterism_model.partition_stats import PartitionStats
from asterism_proto.errors import Conflict, Internal, InvalidRequest
from storaged.build.alias_table import WEIGHT
from storaged.build.block_reader import BuildContext
from storaged.build.build_kernels import audit_nodes, fold_nodes, scatter_nodes
from storaged.build.build_steps import StepState
from storaged.build.external_partitioning import Records, split_into_buckets
from storaged.build.feature_columns import build_columns, read_located
from storaged.build.graph_labels import build_labels
from storaged.build.indexes import build_indexes
from storaged.build.node_rows import RowMap
from storaged.build.unit_cache import BuildUnit, InputDigest
from storaged.build.weights import (
    InvalidWeights,
    WeightResult,
    build_node_weights,
    build_weights,
    manifest_tables,
)
from storaged.store import keys
from storaged.store.block_store import NODES, BlockRef

I64 = NDArray[np.int64]
CHUNK = 1 << 18
"""Rows that a pass over mapped arrays holds in memory."""
MAX_ROWS = (1 << 32) - 1
_NONE = np.zeros(0, np.float32)
_SPARSE_BYTES = 64
"""Bytes per record of a bucket of sparse ids: record, copy, order and row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltNodes:
    """Rows, own weights and input digests of the nodes of one type."""

    rows: RowMap
    own_weights: WeightResult
    weights_digest: str | None
    """Digest of their weights."""
    features_digest: str
    """Digest of the input of their features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesResult:
    """Result of building the nodes of one type."""

    totals: tuple[PartitionStats, ...]
    """Statistics of the nodes' own weights, then of each table."""
    description: dict[str, Any]


def build_nodes(context: BuildContext, type_id: int) -> BuiltNodes:
    """Build the node image of one type, in units: rows, table and features."""
    node_type, name = context.task.schema.node_types[type_id], f"n{type_id}"
    refs = context.reader.refs(type_id, NODES)
    row_count = sum(ref.rows for ref in refs)
    context.progress.phase(f"nodes {node_type.name}")
    state = context.units.make(
        BuildUnit(
            name=name,
            digest=context.node_input(type_id, refs, "nodes", node_type.weighted).digest(),
            files=tuple(
                f"{name}.{file}"
                for file in ("ids", "index_ids", "index_rows", "live", "live_rows", "weights")
            ),
        ),
        lambda: context.steps.run(
            f"{name}.rows", lambda: _make_rows(context, type_id, refs), rows=row_count
        ),
    )
    rows = _load_rows(context, name, state)
    weights = context.image.map(f"{name}.weights") if node_type.weighted else None
    own_weights = WeightResult.from_state(
        context.units.make(
            BuildUnit(
                name=f"{name}.table",
                digest=context.unit_input("node table", rows.digest, state["weights"]).digest(),
                files=(f"{name}.table.*",),
                tables=((keys.B1, type_id, WEIGHT),),
            ),
            lambda: build_weights(
                context,
                InvalidWeights(),
                name=name,
                kind=0,
                type_id=type_id,
                rows=rows.rows,
                count=rows.count,
                weights=weights,
                live=rows.live,
                ids_of=rows.ids_of,
                keyed=not rows.dense,
            ),
        )
    )
    features = _features(context, type_id, rows) if node_type.features else ""
    build_labels(context, type_id, rows.rows, features)
    return BuiltNodes(
        rows=rows,
        own_weights=own_weights,
        weights_digest=state["weights"],
        features_digest=features,
    )


def build_node_tables(context: BuildContext, type_id: int, nodes: BuiltNodes) -> NodesResult:
    """Build further weights with their tables, and indexes, in units.

    The edges of all types must be written.
    """
    node_type, rows, own_weights = (
        context.task.schema.node_types[type_id],
        nodes.rows,
        nodes.own_weights,
    )
    extra_weights = list(
        build_node_weights(
            context, type_id, rows, rows.digest, nodes.weights_digest, nodes.features_digest
        )
    )
    indexes = build_indexes(
        context, type_id, rows, weights=nodes.weights_digest, features=nodes.features_digest
    )
    description = {
        "rows": rows.rows,
        "count": rows.count,
        "dense": rows.dense,
        "table": {"size": own_weights.table.size, "total": own_weights.table.weight},
        "columns": [feature.name for feature in node_type.features],
        **manifest_tables(node_type.tables, extra_weights),
        **({"indexes": indexes} if indexes else {}),
    }
    totals = (
        PartitionStats(
            part=context.part,
            element=Element.NODE,
            type_id=type_id,
            count=rows.count,
            **result.stats_fields(),
        )
        for result in (own_weights, *extra_weights)
    )
    return NodesResult(totals=tuple(totals), description=description)


def _features(context: BuildContext, type_id: int, rows: RowMap) -> str:
    """Build the columns of a type, and return the digest of their unit.

    They depend on the rows of ids, but not on weights.
    """
    node_type, name = context.task.schema.node_types[type_id], f"n{type_id}"
    columns = context.reader.refs(type_id, NODES | keys.COLUMNS)

    def write_features() -> StepState:
        build_columns(
            context,
            prefix=name,
            features=node_type.features,
            refs=columns,
            id_section="ids",
            rows=rows.rows,
            find=rows.find_rows,
            tombstones=context.reader.tombstones(type_id),
        )
        if context.task.schema.has_string_ids:
            check_string_ids(context, type_id, rows, columns)
        return {}

    context.progress.phase(f"features {node_type.name}")
    unit = BuildUnit(
        name=f"{name}.features",
        digest=context.node_input(
            type_id,
            columns,
            "node features",
            [asdict(feature) for feature in node_type.features],
            rows.digest,
        ).digest(),
        files=(f"{name}.c[0-9]*",),
    )
    context.units.make(
        unit,
        lambda: context.steps.run(
            f"{name}.features", write_features, rows=sum(ref.rows for ref in columns)
        ),
    )
    return unit.digest


def _make_rows(context: BuildContext, type_id: int, refs: list[BlockRef]) -> StepState:
    """Write ids or live rows, and weights, and compare the weights with the input."""
    state = (_build_dense if _is_dense_candidate(context, refs) else _build_sparse)(
        context, type_id, refs
    )
    if state["rows"] > MAX_ROWS:
        raise InvalidRequest(
            f"part {context.part} has {state['rows']} rows of one type: expected at most "
            f"{MAX_ROWS}; create the space with more partitions"
        )
    rows, weights = _load_rows(context, f"n{type_id}", state), None
    if context.task.schema.node_types[type_id].weighted:
        weights = context.image.map(f"n{type_id}.weights")
        _audit_weights(context, type_id, refs, rows, weights)
    return {
        **state,
        "digest": InputDigest(rows.rows, rows.count, rows.dense)
        .add_array(rows.live)
        .add_array(rows.ids)
        .digest(),
        "weights": None if weights is None else InputDigest().add_array(weights).digest(),
    }


def _load_rows(context: BuildContext, name: str, state: StepState) -> RowMap:
    """Return the row map of a type with arrays in the image."""
    image = context.image
    return RowMap(
        part=context.part,
        parts=context.task.schema.parts,
        rows=state["rows"],
        count=state["count"],
        dense=state["dense"],
        live=image.map(f"{name}.live") if f"{name}.live" in image else np.zeros(0, np.uint8),
        ids=image.map(f"{name}.ids") if f"{name}.ids" in image else np.zeros(0, np.int64),
        index_ids=image.map(f"{name}.index_ids")
        if f"{name}.index_ids" in image
        else np.zeros(0, np.int64),
        index_rows=image.map(f"{name}.index_rows")
        if f"{name}.index_rows" in image
        else np.zeros(0, np.uint32),
        digest=state.get("digest", ""),
    )


def _live_records(
    context: BuildContext, type_id: int, refs: list[BlockRef]
) -> Iterator[tuple[I64, NDArray[np.float32]]]:
    """Yield the ids and weights of each block, without ids that a later tombstone deletes.

    The weights are empty if the block has none.
    """
    tombstones = context.reader.tombstones(type_id)
    for ref, sections in context.reader.read(refs):
        ids, weights = sections["ids"], sections.get("weight", _NONE)
        deleted = tombstones.deleted_after(ids, ref.stamp)
        if deleted is not None:
            ids, weights = ids[~deleted], weights[~deleted] if weights.size else weights
        yield ids, weights


def _is_dense_candidate(context: BuildContext, refs: list[BlockRef]) -> bool:
    row_count = sum(ref.rows for ref in refs)
    highest = max((ref.highest for ref in refs), default=-1)
    return (
        context.task.schema.placement == "mod"
        and row_count > 0
        and 2 * row_count >= highest // context.task.schema.parts + 1
    )


def _build_dense(context: BuildContext, type_id: int, refs: list[BlockRef]) -> StepState:
    """Build dense rows: the row follows from the id, and a byte per row says if it is live.

    Falls back to sparse rows if fewer than half of the rows are live.
    """
    parts, name = context.task.schema.parts, f"n{type_id}"
    weighted = context.task.schema.node_types[type_id].weighted
    capacity = max(ref.highest for ref in refs) // parts + 1
    live = context.scratch.create("live", np.uint8, (capacity,))
    weights = context.scratch.create("weights", np.float32, (capacity if weighted else 0,))
    for ids, block_weights in _live_records(context, type_id, refs):
        scatter_nodes(ids, block_weights, np.int64(parts), live, weights)
    count, rows = 0, 0
    for low in range(0, capacity, CHUNK):
        live_positions = np.flatnonzero(live[low : low + CHUNK])
        if live_positions.size:
            count, rows = count + live_positions.size, low + int(live_positions[-1]) + 1
    if 2 * count < rows or count == 0:
        _compact_dense(context, name, live, weights)
        context.scratch.remove("live")
        context.scratch.remove("weights")
        return _build_id_index(context, name, count)
    context.scratch.truncate("live", rows)
    if weighted:
        context.scratch.truncate("weights", rows)
        context.image.take_over(context.scratch, "weights", f"{name}.weights")
    else:
        context.scratch.remove("weights")
    if count == rows:
        context.scratch.remove("live")
    else:
        context.image.take_over(context.scratch, "live", f"{name}.live")
        alive = context.image.map(f"{name}.live")
        out = context.image.create_append(f"{name}.live_rows", np.uint32)
        for low in range(0, rows, CHUNK):
            out.append(np.flatnonzero(alive[low : low + CHUNK]) + low)
    return {"rows": rows, "count": count, "dense": True}


def _compact_dense(
    context: BuildContext, name: str, live: NDArray[np.uint8], weights: NDArray[np.float32]
) -> None:
    """Write sorted ids and their weights, from rows that are too sparse for `_build_dense`."""
    ids = context.image.create_append(f"{name}.ids", np.int64)
    out_weights = (
        context.image.create_append(f"{name}.weights", np.float32) if weights.size else None
    )
    for low in range(0, live.size, CHUNK):
        live_rows = np.flatnonzero(live[low : low + CHUNK]) + low
        ids.append(live_rows * context.task.schema.parts + context.part)
        if out_weights is not None:
            out_weights.append(weights[live_rows])


def _build_sparse(context: BuildContext, type_id: int, refs: list[BlockRef]) -> StepState:
    """Build sparse rows: sorted ids.

    Records are split into buckets by id, each bucket is sorted, and the records of an id are folded
    to its row.
    """
    name, weighted = f"n{type_id}", context.task.schema.node_types[type_id].weighted
    low, high = (
        min((ref.lowest for ref in refs if ref.rows), default=0),
        max((ref.highest for ref in refs if ref.rows), default=0),
    )

    def records() -> Iterator[Records]:
        for ids, weights in _live_records(context, type_id, refs):
            yield ids, weights if weights.size else np.full(ids.size, np.nan, np.float32)

    ids = context.image.create_append(f"{name}.ids", np.int64)
    weight_file = context.image.create_append(f"{name}.weights", np.float32) if weighted else None
    row_count, limit = sum(ref.rows for ref in refs), context.task.row_limit(_SPARSE_BYTES)
    for bucket in split_into_buckets(
        records(), row_count, low=low, high=high, limit=limit, folder=context.spool_folder
    ):
        bucket_ids, bucket_weights = bucket.records
        out_ids, out_weights = (
            np.empty(bucket_ids.size, np.int64),
            np.empty(bucket_ids.size, np.float32),
        )
        n = int(
            fold_nodes(
                bucket_ids,
                bucket_weights,
                np.argsort(bucket_ids, kind="stable"),
                out_ids,
                out_weights,
            )
        )
        ids.append(out_ids[:n])
        if weight_file is not None:
            weight_file.append(out_weights[:n])
    return _build_id_index(context, name, ids.rows)


def _build_id_index(context: BuildContext, name: str, rows: int) -> StepState:
    """Build the hash index of a sparse type with ids that are already written."""
    ids = context.image.map(f"{name}.ids")
    if rows > 0:
        slots = index_slots(rows)
        # Mapped: the index is larger than its ids, and unused pages may be written to the disk.
        fill_index(
            ids,
            context.image.create(f"{name}.index_ids", np.int64, (slots,)),
            context.image.create(f"{name}.index_rows", np.uint32, (slots,)),
        )
    return {"rows": rows, "count": rows, "dense": False}


def _audit_weights(
    context: BuildContext,
    type_id: int,
    refs: list[BlockRef],
    rows: RowMap,
    weights: NDArray[np.float32],
) -> None:
    """Read the weights again, in reverse write order, and compare the image with them."""
    tombstones = context.reader.tombstones(type_id)
    seen = context.scratch.create("seen", np.uint8, (rows.rows,))
    wrong = 0
    for ref, sections in context.reader.read(refs[::-1]):
        if "weight" in sections:
            located_rows = rows.find_rows(sections["ids"])
            deleted = tombstones.deleted_after(sections["ids"], ref.stamp)
            if deleted is not None:
                located_rows[deleted] = -1
            wrong += int(audit_nodes(located_rows, sections["weight"], weights, seen))
    context.scratch.remove("seen")
    if wrong:
        raise Internal(
            f"part {context.part}, node type {type_id}: {wrong} weights of the image differ from "
            "those of the graph; the version is rejected"
        )


def check_string_ids(
    context: BuildContext, type_id: int, rows: RowMap, refs: Sequence[BlockRef]
) -> None:
    """Compare every written string id with that of its node in the image.

    Raises
    ------
    Conflict
        If two string ids of the type have one node id. The message has both.
    """
    if sum(ref.rows for ref in refs) == rows.rows:
        return  # as many writes as nodes: no node was written twice
    node_type = context.task.schema.node_types[type_id]
    column = next(
        i for i, feature in enumerate(node_type.features) if feature.name == string_ids.ID_COLUMN
    )
    image_names = (
        context.image.map(f"n{type_id}.c{column}.indptr"),
        context.image.map(f"n{type_id}.c{column}.values"),
    )
    for _, located_rows, sections in read_located(
        context, refs, "ids", rows.find_rows, context.reader.tombstones(type_id)
    ):
        block_names = (
            sections[f"f:{string_ids.ID_COLUMN}.indptr"],
            sections[f"f:{string_ids.ID_COLUMN}.values"],
        )
        mismatch = first_mismatch(located_rows, *block_names, *image_names)
        if mismatch >= 0:
            name_pair = (
                string_ids.display_string(image_names, int(located_rows[mismatch])),
                string_ids.display_string(block_names, mismatch),
            )
            raise Conflict(
                string_ids.collision_message(
                    f"node type {node_type.name!r}",
                    *name_pair,
                    int(sections["ids"][mismatch]),
                    context.task.schema.salt,
                )
            )
