"""Partition images in memory, from plain arrays: a slow, simple counterpart of a build."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.sort_keys import sort_keys
from asterism_graphkit.arrays.time_keys import encode_times
from asterism_graphkit.operators import graph_labels
from asterism_graphkit.random import alias_build, partition_choice
from asterism_graphkit.relabel import hash_index
from asterism_model.elements import EDGE, NODE
from asterism_model.partition_stats import PartitionTotals, TotalsKey
from asterism_model.schema import EdgeType, Schema
from asterism_model.schema.edge_times import neighbor_time
from storaged.sampling.version import LocalVersion
from storaged.store.column_index import (
    BLOCK_SIZES,
    ColumnIndex,
    IndexLevel,
    IndexTables,
    SortedEdges,
    level_block_sizes,
)
from storaged.store.image import (
    NO_NEIGHBOR,
    AdjacencyImage,
    AliasTable,
    EdgeImage,
    EdgeWeights,
    FeatureColumn,
    NodeImage,
    NodeWeights,
    PartImage,
    RowWeights,
    with_weights,
)

Values = NDArray[Any] | tuple[NDArray[np.int64], NDArray[Any]]
"""Dense values, or (indptr, values) of ragged and bytes features."""


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The nodes of one type.

    ``dense=None`` selects the dense form if the ids are 0 .. n - 1 and the placement is mod.
    """

    ids: NDArray[np.int64]
    weights: NDArray[np.float32] | None = None
    features: Mapping[str, Values] = field(default_factory=dict)
    extra_weights: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    """Weight tables, by name."""
    dense: bool | None = None
    indexes: tuple[tuple[str, str], ...] = ()
    """(column, kind) of each index; a column is a scalar feature, ``id`` or ``weight``."""


@dataclass(frozen=True, kw_only=True)
class Edges:
    """The edges of one type; ``eids=None`` numbers them from 0."""

    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    weights: NDArray[np.float32] | None = None
    eids: NDArray[np.int64] | None = None
    features: Mapping[str, Values] = field(default_factory=dict)
    extra_weights: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    """Weight tables, by name."""
    times: NDArray[Any] | None = None
    indexed: bool = True
    """True to create the indexes that the type declares.

    Indexed features are stored with the edges in any case.
    """

    @property
    def ids(self) -> NDArray[np.int64]:
        return np.arange(self.src.size, dtype=np.int64) if self.eids is None else self.eids


def _column(values: Values, indices: NDArray[np.int64]) -> FeatureColumn:
    """Return rows ``indices`` of a feature; -1 is a hole: zeros or an empty row."""
    if isinstance(values, tuple):
        indptr, flat = values
        lengths = np.where(indices < 0, 0, np.diff(indptr)[indices])
        chunks = [flat[indptr[c] : indptr[c + 1]] for c in indices if c >= 0]
        return FeatureColumn(
            values=np.concatenate([flat[:0], *chunks]),
            indptr=np.r_[0, np.cumsum(lengths)].astype(np.int64),
        )
    rows = values[indices].copy()
    rows[indices < 0] = 0
    return FeatureColumn(values=rows)


def table_of(weights: NDArray[np.float32] | None, rows: NDArray[np.int64], size: int) -> AliasTable:
    """Return the alias table over ``rows`` (ascending) of ``size`` rows; weights align with
    ``rows``.
    """
    values = np.ones(rows.size, np.float32) if weights is None else weights
    positive = values > 0
    positive_rows, values = rows[positive], values[positive]
    row_of = (
        positive_rows.astype(np.uint32) if positive_rows.size < size else np.zeros(0, np.uint32)
    )
    if not values.size or (values == values[0]).all():
        return AliasTable(size=values.size, total=alias_build.neumaier_sum(values), row_of=row_of)
    thresholds, alias_indices = alias_build.pack_thresholds(*alias_build.build(values))
    return AliasTable(
        size=values.size,
        total=alias_build.neumaier_sum(values),
        hot=thresholds,
        cold=alias_indices,
        row_of=row_of,
    )


def with_keyed_columns(table: AliasTable, ids: NDArray[np.int64]) -> AliasTable:
    """Return the table with the row ids of its columns next to its thresholds, if any."""
    column_ids = ids[table.row_of] if table.row_of.size else ids[: table.hot.size]
    return replace(
        table,
        keyed=np.column_stack([table.hot, column_ids.astype(np.uint64)]).reshape(-1)
        if table.hot.size
        else table.keyed,
    )


def _node_image(nodes: Nodes, part: int, schema: Schema, label: str) -> NodeImage:
    parts, mod = schema.parts, schema.placement == "mod"
    order = np.argsort(nodes.ids, kind="stable")
    ids = nodes.ids[order]
    dense = (
        nodes.dense if nodes.dense is not None else mod and bool((ids == np.arange(ids.size)).all())
    )
    part_nodes = order[partition_choice.part_of(ids, parts, schema.placement) == part]
    ids = nodes.ids[part_nodes]
    if dense:
        id_bound = int(nodes.ids.max()) + 1 if nodes.ids.size else 0
        rows = max(0, (id_bound - part + parts - 1) // parts)
        row = ids // parts
    else:
        rows, row = ids.size, np.arange(ids.size)
    node_of_row = np.full(rows, -1, np.int64)
    node_of_row[row] = part_nodes
    has_holes = ids.size < rows
    is_live = (node_of_row >= 0).astype(np.uint8) if has_holes else np.zeros(0, np.uint8)

    def by_row(weights: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.where(node_of_row >= 0, weights[node_of_row] if weights.size else 0, 0).astype(
            np.float32
        )

    def table(weights: NDArray[np.float32] | None) -> AliasTable:
        alias_table = table_of(None if weights is None else weights[part_nodes], row, rows)
        return alias_table if dense else with_keyed_columns(alias_table, ids)

    index_ids, index_rows = (
        (np.zeros(0, np.int64), np.zeros(0, np.uint32)) if dense else hash_index.build_index(ids)
    )
    columns = {name: _column(values, node_of_row) for name, values in nodes.features.items()}
    return NodeImage(
        rows=rows,
        count=ids.size,
        dense=dense,
        ids=np.zeros(0, np.int64) if dense else ids,
        index_ids=index_ids,
        index_rows=index_rows,
        live=is_live,
        live_rows=np.flatnonzero(is_live).astype(np.uint32),
        weights=np.zeros(0, np.float32) if nodes.weights is None else by_row(nodes.weights),
        table=table(nodes.weights),
        extra_weights={
            name: NodeWeights(weights=by_row(values), table=table(values))
            for name, values in nodes.extra_weights.items()
        },
        columns=columns,
        indexes=tuple(_index(nodes, part_nodes, row, name, kind) for name, kind in nodes.indexes),
        **_labels(columns[label], rows) if label else {},
    )


def _index(
    nodes: Nodes, part_nodes: NDArray[np.int64], row: NDArray[np.int64], name: str, kind: str
) -> ColumnIndex:
    """Return an index of nodes with the given rows, by a full sort."""
    builtin_columns = {
        "id": nodes.ids,
        "weight": nodes.weights
        if nodes.weights is not None
        else np.ones(nodes.ids.size, np.float32),
    }
    column = builtin_columns[name] if name in builtin_columns else nodes.features[name]
    values: NDArray[Any]
    if isinstance(column, tuple):
        texts = [column[1][column[0][i] : column[0][i + 1]].tobytes() for i in part_nodes]
        values = np.array(
            [
                graph_labels.hash_strings(
                    np.array([0, len(text)]), np.frombuffer(text, np.uint8), 0, 1
                )[0]
                for text in texts
            ],
            np.int64,
        )
    else:
        values = column[part_nodes]
    order = np.lexsort((row, values))
    sorted_values, extra_fields = values[order], {}
    if kind == "hash":
        starts = np.unique(sorted_values, return_index=True, equal_nan=True)[1]
        sorted_values, extra_fields = (
            sorted_values[starts],
            {"bounds": np.append(starts, order.size)},
        )
    tables = {}
    for weight_name, weights in (("", nodes.weights), *nodes.extra_weights.items()):
        if weights is not None:
            tables[weight_name] = _blocks(weights[part_nodes][order])
    return ColumnIndex(
        column=name,
        kind=kind,
        rows=row[order].astype(np.uint32),
        values=sorted_values,
        tables=tables,
        **extra_fields,
    )


def _blocks(weights: NDArray[np.float32]) -> IndexTables:
    """Return alias tables over the blocks of a sorted order."""
    levels = []
    for step in level_block_sizes(weights.size):
        thresholds, alias_indices, sums = alias_build.build_rows(
            np.append(np.arange(0, weights.size, step), weights.size), weights
        )
        levels.append(
            IndexLevel(alias_threshold=thresholds, alias_fraction=alias_indices, sums=sums)
        )
    before = [
        np.count_nonzero(weights[:end] > 0)
        for end in [*range(0, weights.size, BLOCK_SIZES[0]), weights.size]
    ]
    return IndexTables(levels=tuple(levels), positives=np.array(before, np.int64))


def _labels(column: FeatureColumn, rows: int) -> dict[str, Any]:
    """Return the index of a graph label."""
    assert column.indptr is not None
    labelled = np.flatnonzero(np.diff(column.indptr))
    hashes = graph_labels.hash_strings(column.indptr, column.values, 0, rows)
    grouped_rows, starts, group_hashes = graph_labels.group_strings(
        hashes[labelled], labelled, column.indptr, column.values
    )
    return {
        "label_hash": group_hashes,
        "label_indptr": np.append(starts, labelled.size),
        "label_rows": grouped_rows.astype(np.uint32),
    }


def _rows_at(node: NodeImage, ids: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
    return ids // parts if node.dense else np.searchsorted(node.ids, ids)


def _adjacency(
    node: NodeImage,
    parts: int,
    local: NDArray[np.int64],
    remote: NDArray[np.int64],
    eids: NDArray[np.int64],
    weights: NDArray[np.float32] | None,
    times: NDArray[Any] | None = None,
) -> tuple[AdjacencyImage, NDArray[np.int64], NDArray[np.int64]]:
    rows = _rows_at(node, local, parts)
    order = np.lexsort((eids, remote, rows))
    indptr = np.r_[0, np.cumsum(np.bincount(rows, minlength=node.rows))].astype(np.int64)
    columns: dict[str, Any] = {}
    if weights is not None:
        columns["weights"] = weights[order]
        thresholds, alias_indices, sums = alias_build.build_rows(indptr, columns["weights"])
        columns["sums"] = sums
        if not (weights.size and weights[0] > 0 and (weights == weights[0]).all()):
            columns |= {"hot": thresholds, "cold": alias_indices}
    if times is not None:
        columns["when"] = encode_times(times[order])
        in_time = np.lexsort((columns["when"], rows[order]))
        columns["order"] = in_time.astype(np.uint32)
        if weights is not None:
            sorted_weights = columns["weights"][in_time].astype(np.longdouble)
            spans = itertools.pairwise(indptr)
            columns["time_sums"] = np.concatenate(
                [
                    np.zeros(0),
                    *(np.cumsum(sorted_weights[a:b]).astype(np.float64) for a, b in spans if a < b),
                ]
            )
    side = AdjacencyImage(indptr=indptr, nbr=remote[order], eid=eids[order], **columns)
    return with_packed_columns(side), order, rows[order]


def with_packed_columns(side: AdjacencyImage) -> AdjacencyImage:
    """Return the side with packed ids and columns, as far as ids fit into 32 bits."""
    if (side.nbr >= NO_NEIGHBOR).any():
        return side
    if (side.eid < NO_NEIGHBOR).all():
        side = replace(
            side, pairs=side.eid.astype(np.uint64) << np.uint64(32) | side.nbr.astype(np.uint64)
        )
    narrow_neighbors = side.nbr.astype(np.uint32)
    if not side.hot.size:
        return replace(side, narrow=narrow_neighbors)
    row = np.repeat(np.arange(side.indptr.size - 1), np.diff(side.indptr))
    alias_of = side.indptr[row] + (side.hot & np.uint64(NO_NEIGHBOR)).astype(np.int64)
    pairs = side.nbr[alias_of].astype(np.uint64) << np.uint64(32) | side.nbr.astype(np.uint64)
    pairs[side.sums[row] == 0] = np.uint64((1 << 64) - 1)
    return replace(
        side, narrow=narrow_neighbors, packed=np.column_stack([side.hot, pairs]).reshape(-1)
    )


def without_packed_columns(version: LocalVersion) -> LocalVersion:
    """Return the version without packed copies."""

    def without_copies(side: AdjacencyImage) -> AdjacencyImage:
        return replace(
            side,
            narrow=np.zeros(0, np.uint32),
            pairs=np.zeros(0, np.uint64),
            packed=np.zeros(0, np.uint64),
        )

    def edge_without_copies(edge: EdgeImage) -> EdgeImage:
        return replace(
            edge,
            outgoing=without_copies(edge.outgoing),
            incoming=None if edge.incoming is None else without_copies(edge.incoming),
        )

    def node_without_copies(node: NodeImage) -> NodeImage:
        named = {
            name: replace(
                node_weights, table=replace(node_weights.table, keyed=np.zeros(0, np.uint64))
            )
            for name, node_weights in node.extra_weights.items()
        }
        return replace(
            node, table=replace(node.table, keyed=np.zeros(0, np.uint64)), extra_weights=named
        )

    parts = {
        part: replace(
            image,
            nodes=tuple(map(node_without_copies, image.nodes)),
            edges=tuple(map(edge_without_copies, image.edges)),
        )
        for part, image in version.parts.items()
    }
    return replace(version, parts=parts)


def _edge_times(
    schema: Schema, type_id: int, edges: Edges, nodes: Mapping[str, Nodes], *, incoming: bool
) -> NDArray[Any] | None:
    """Return the time of each edge in this direction: its own, the neighbor's, or the later."""
    remote_time = neighbor_time(schema, type_id, incoming=incoming)
    if remote_time is None:
        return edges.times
    remote_nodes = nodes[schema.node_types[remote_time[0]].name]
    values = remote_nodes.features[remote_time[1].name]
    assert not isinstance(values, tuple)
    time_by_id = dict(zip(remote_nodes.ids.tolist(), values, strict=True))
    times = np.array(
        [time_by_id.get(node, 0) for node in (edges.src if incoming else edges.dst).tolist()],
        values.dtype,
    )
    return times if edges.times is None else np.maximum(edges.times, times)


def _edge_image(
    edges: Edges,
    part: int,
    schema: Schema,
    kind: EdgeType,
    source: NodeImage,
    destination: NodeImage,
    seen: Sequence[NDArray[Any] | None],
) -> EdgeImage:
    parts = schema.parts
    src_in_part = partition_choice.part_of(edges.src, parts, schema.placement) == part
    weights = None if edges.weights is None else edges.weights[src_in_part]
    times = None if seen[0] is None else seen[0][src_in_part]
    out, order, rows = _adjacency(
        source,
        parts,
        edges.src[src_in_part],
        edges.dst[src_in_part],
        edges.ids[src_in_part],
        weights,
        times,
    )
    features = {name: np.asarray(edges.features[name]) for name in kind.indexed}
    out = replace(
        out, edge_columns={name: values[src_in_part][order] for name, values in features.items()}
    )
    into = None
    if schema.has_in:
        dst_in_part = partition_choice.part_of(edges.dst, parts, schema.placement) == part
        in_weights = None if edges.weights is None else edges.weights[dst_in_part]
        in_times = None if seen[1] is None else seen[1][dst_in_part]
        into, in_order, _ = _adjacency(
            destination,
            parts,
            edges.dst[dst_in_part],
            edges.src[dst_in_part],
            edges.ids[dst_in_part],
            in_weights,
            in_times,
        )
        into = replace(
            into,
            edge_columns={name: values[dst_in_part][in_order] for name, values in features.items()},
        )
    extra: dict[str, Any] = {}
    if edges.features:
        feature_rows = np.flatnonzero(edges.ids % parts == part)
        feature_rows = feature_rows[np.argsort(edges.ids[feature_rows])]
        feature_eids = edges.ids[feature_rows]
        has_holes = not np.array_equal(feature_eids // parts, np.arange(feature_eids.size))
        extra = {
            "feature_eids": feature_eids if has_holes else np.zeros(0, np.int64),
            "feature_rows": feature_eids.size,
            "columns": {
                name: _column(values, feature_rows) for name, values in edges.features.items()
            },
        }
    slots = np.arange(order.size)
    table = table_of(None if weights is None else weights[order], slots, order.size)
    named = {}
    for name, values in edges.extra_weights.items():
        out_adjacency, *_ = _adjacency(
            source,
            parts,
            edges.src[src_in_part],
            edges.dst[src_in_part],
            edges.ids[src_in_part],
            values[src_in_part],
        )
        row_weights = RowWeights(
            weights=out_adjacency.weights,
            sums=out_adjacency.sums,
            hot=out_adjacency.hot,
            cold=out_adjacency.cold,
            packed=out_adjacency.packed,
        )
        named[name] = EdgeWeights(
            table=table_of(out_adjacency.weights, slots, order.size),
            outgoing=row_weights,
            incoming=None,
        )
    if edges.indexed:
        extra["indexes"] = tuple(
            _edge_index(
                text,
                out,
                into,
                {name: edge_weights.outgoing.weights for name, edge_weights in named.items()},
            )
            for text in sorted(kind.index)
        )
    return EdgeImage(
        outgoing=out,
        incoming=into,
        src_row=rows.astype(np.uint32),
        table=table,
        extra_weights=named,
        **extra,
    )


def _edge_index(
    column: str,
    out: AdjacencyImage,
    into: AdjacencyImage | None,
    named: Mapping[str, NDArray[np.float32]],
) -> ColumnIndex:
    """Return an index of edges by value, by a full sort.

    Orders at the remote end have the edges' own weights only.
    """
    values, slots = _values_of(column, out), np.arange(out.nbr.size)
    order = np.lexsort((slots, values))
    weights = {
        name: row_weights
        for name, row_weights in (("", out.weights), *named.items())
        if row_weights.size
    }
    return ColumnIndex(
        column=column,
        kind="range",
        rows=slots[order].astype(np.uint32),
        values=values[order],
        tables={name: _blocks(row_weights[order]) for name, row_weights in weights.items()},
        outgoing=_sorted_edges(column, out, weights),
        incoming=None
        if into is None
        else _sorted_edges(column, into, {"": into.weights} if into.weights.size else {}),
    )


def _values_of(column: str, side: AdjacencyImage) -> NDArray[Any]:
    builtin_columns = {
        "id": side.eid,
        "weight": side.weights if side.weights.size else np.ones(side.nbr.size, np.float32),
    }
    return builtin_columns[column] if column in builtin_columns else side.edge_columns[column]


def _sorted_edges(
    column: str, side: AdjacencyImage, weights: Mapping[str, NDArray[np.float32]]
) -> SortedEdges:
    """Return each node's edges in sorted order, with sum trees computed from the leaves."""
    values, rows = (
        _values_of(column, side),
        np.repeat(np.arange(side.indptr.size - 1), np.diff(side.indptr)),
    )
    order = np.lexsort((np.arange(rows.size), values, rows))
    trees = {}
    for name, row_weights in weights.items():
        tree = np.zeros(rows.size)
        for low, high in itertools.pairwise(side.indptr.tolist()):
            size = high - low
            heap = [0.0] * size + row_weights[order[low:high]].astype(np.float64).tolist()
            for position in range(size - 1, 0, -1):
                heap[position] = heap[2 * position] + heap[2 * position + 1]
            tree[low:high] = [heap[1], *heap[1:size]] if size else []
        trees[name] = tree
    return SortedEdges(
        order=order.astype(np.uint32), keys=sort_keys(values[order]), weight_trees=trees
    )


def part_images(
    schema: Schema,
    nodes: Mapping[str, Nodes],
    edges: Mapping[str, Edges],
    parts: Iterable[int] | None = None,
) -> dict[int, PartImage]:
    """Return the images of partitions (None: all) of a graph of plain arrays by type name."""
    images = {}
    seen = {
        t.name: [
            _edge_times(schema, e, edges[t.name], nodes, incoming=incoming)
            for incoming in (False, True)
        ]
        for e, t in enumerate(schema.edge_types)
    }
    for part in range(schema.parts) if parts is None else parts:
        node_images = tuple(
            _node_image(nodes[t.name], part, schema, t.graph_label) for t in schema.node_types
        )
        ends = [
            (
                node_images[schema.node_type_id(t.src_type)],
                node_images[schema.node_type_id(t.dst_type)],
            )
            for t in schema.edge_types
        ]
        edge_images = tuple(
            _edge_image(edges[t.name], part, schema, t, *end, seen[t.name])
            for t, end in zip(schema.edge_types, ends, strict=True)
        )
        images[part] = PartImage(
            part=part,
            parts=schema.parts,
            mod=schema.placement == "mod",
            nodes=node_images,
            edges=edge_images,
        )
    return images


def totals_of(images: Mapping[int, PartImage]) -> dict[TotalsKey, PartitionTotals]:
    """Return the totals that a build of the partitions would report."""
    totals = {}
    for part, image in images.items():
        for type_id, node in enumerate(image.nodes):
            totals[NODE, type_id, part] = PartitionTotals(
                count=node.count, positive=node.table.size, weight=node.table.total
            )
        for type_id, edge in enumerate(image.edges):
            totals[EDGE, type_id, part] = PartitionTotals(
                count=edge.outgoing.nbr.size, positive=edge.table.size, weight=edge.table.total
            )
    return totals


def version_of(
    schema: Schema, nodes: Mapping[str, Nodes], edges: Mapping[str, Edges] | None = None
) -> LocalVersion:
    """Return a version with all partitions of a graph of plain arrays by type name."""
    images = part_images(schema, nodes, edges or {})
    names = {
        name
        for image in images.values()
        for type_image in (*image.nodes, *image.edges)
        for name in type_image.extra_weights
    }
    named = {
        name: totals_of({part: with_weights(image, name) for part, image in images.items()})
        for name in names
    }
    return LocalVersion(
        space_id=1,
        version=1,
        digest="d",
        schema=schema,
        totals=totals_of(images),
        named_totals=named,
        parts=images,
    )


def restrict_to_parts(version: LocalVersion, parts: Iterable[int]) -> LocalVersion:
    """Return the version as seen by a host that holds only ``parts``."""
    return LocalVersion(
        space_id=version.space_id,
        version=version.version,
        digest=version.digest,
        schema=version.schema,
        totals=version.totals,
        parts={part: version.parts[part] for part in parts},
    )
