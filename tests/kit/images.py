"""Part images in memory, from plain arrays: the slow and plain counterpart of a build, for any number of parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.schema import Schema
from graphkit import alias, index, labels, split
from storaged.draw.version import EDGE, NODE, Share, Version
from storaged.store.image import Adjacency, Column, EdgeImage, EdgeWeights, NodeImage, NodeWeights, PartImage, RowWeights, Table, weighed

Values = NDArray[Any] | tuple[NDArray[np.int64], NDArray[Any]]
"""Dense values, or (indptr, values) of ragged and bytes features."""


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The nodes of one type; ``dense=None`` takes the dense form where the ids are 0 .. n - 1 and placement is mod."""

    ids: NDArray[np.int64]
    weights: NDArray[np.float32] | None = None
    features: Mapping[str, Values] = field(default_factory=dict)
    named: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    """Further weights, by name."""
    dense: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Edges:
    """The edges of one type; ``eids=None`` numbers them."""

    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    weights: NDArray[np.float32] | None = None
    eids: NDArray[np.int64] | None = None
    features: Mapping[str, Values] = field(default_factory=dict)
    named: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    """As those of nodes."""

    @property
    def ids(self) -> NDArray[np.int64]:
        return np.arange(self.src.size, dtype=np.int64) if self.eids is None else self.eids


def _column(values: Values, chosen: NDArray[np.int64]) -> Column:
    """Rows ``chosen`` of a feature (-1: a hole, zeros or an empty row)."""
    if isinstance(values, tuple):
        indptr, flat = values
        lengths = np.where(chosen < 0, 0, np.diff(indptr)[chosen])
        pieces = [flat[indptr[c] : indptr[c + 1]] for c in chosen if c >= 0]
        return Column(values=np.concatenate([flat[:0], *pieces]), indptr=np.r_[0, np.cumsum(lengths)].astype(np.int64))
    rows = values[chosen].copy()
    rows[chosen < 0] = 0
    return Column(values=rows)


def table_of(weights: NDArray[np.float32] | None, rows: NDArray[np.int64], size: int) -> Table:
    """The alias table over ``rows`` (ascending) of ``size`` rows in all; weights per row of ``rows``."""
    values = np.ones(rows.size, np.float32) if weights is None else weights
    positive = values > 0
    kept, values = rows[positive], values[positive]
    row_of = kept.astype(np.uint32) if kept.size < size else np.zeros(0, np.uint32)
    if not values.size or (values == values[0]).all():
        return Table(size=values.size, total=alias.neumaier(values), row_of=row_of)
    hot, cold = alias.thresholds(*alias.build(values))
    return Table(size=values.size, total=alias.neumaier(values), hot=hot, cold=cold, row_of=row_of)


def _node_image(nodes: Nodes, part: int, schema: Schema, label: str) -> NodeImage:
    parts, mod = schema.parts, schema.placement == "mod"
    order = np.argsort(nodes.ids, kind="stable")
    ids = nodes.ids[order]
    dense = nodes.dense if nodes.dense is not None else mod and bool((ids == np.arange(ids.size)).all())
    own = order[split.part_of(ids, parts, schema.placement) == part]
    ids = nodes.ids[own]
    if dense:
        top = int(nodes.ids.max()) + 1 if nodes.ids.size else 0
        rows = max(0, (top - part + parts - 1) // parts)
        row = ids // parts
    else:
        rows, row = ids.size, np.arange(ids.size)
    of_row = np.full(rows, -1, np.int64)
    of_row[row] = own
    holes = ids.size < rows
    live = (of_row >= 0).astype(np.uint8) if holes else np.zeros(0, np.uint8)

    def by_row(weights: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.where(of_row >= 0, weights[of_row] if weights.size else 0, 0).astype(np.float32)

    index_ids, index_rows = (np.zeros(0, np.int64), np.zeros(0, np.uint32)) if dense else index.build_index(ids)
    columns = {name: _column(values, of_row) for name, values in nodes.features.items()}
    return NodeImage(
        rows=rows,
        count=ids.size,
        dense=dense,
        ids=np.zeros(0, np.int64) if dense else ids,
        index_ids=index_ids,
        index_rows=index_rows,
        live=live,
        live_rows=np.flatnonzero(live).astype(np.uint32),
        weights=np.zeros(0, np.float32) if nodes.weights is None else by_row(nodes.weights),
        table=table_of(None if nodes.weights is None else nodes.weights[own], row, rows),
        named={name: NodeWeights(weights=by_row(values), table=table_of(values[own], row, rows)) for name, values in nodes.named.items()},
        columns=columns,
        **_labels(columns[label], rows) if label else {},
    )


def _labels(column: Column, rows: int) -> dict[str, Any]:
    """The index of a label."""
    assert column.indptr is not None
    labelled = np.flatnonzero(np.diff(column.indptr))
    hashes = labels.hashes(column.indptr, column.values, 0, rows)
    ordered, starts, found = labels.grouped(hashes[labelled], labelled, column.indptr, column.values)
    return {"label_hash": found, "label_indptr": np.append(starts, labelled.size), "label_rows": ordered.astype(np.uint32)}


def _rows_at(node: NodeImage, ids: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
    return ids // parts if node.dense else np.searchsorted(node.ids, ids)


def _adjacency(
    node: NodeImage, parts: int, near: NDArray[np.int64], far: NDArray[np.int64], eids: NDArray[np.int64], weights: NDArray[np.float32] | None
) -> tuple[Adjacency, NDArray[np.int64], NDArray[np.int64]]:
    rows = _rows_at(node, near, parts)
    order = np.lexsort((eids, far, rows))
    indptr = np.r_[0, np.cumsum(np.bincount(rows, minlength=node.rows))].astype(np.int64)
    columns: dict[str, Any] = {}
    if weights is not None:
        columns["weights"] = weights[order]
        hot, cold, sums = alias.build_rows(indptr, columns["weights"])
        columns["sums"] = sums
        if not (weights.size and weights[0] > 0 and (weights == weights[0]).all()):
            columns |= {"hot": hot, "cold": cold}
    return Adjacency(indptr=indptr, nbr=far[order], eid=eids[order], **columns), order, rows[order]


def _edge_image(edges: Edges, part: int, schema: Schema, source: NodeImage, destination: NodeImage) -> EdgeImage:
    parts = schema.parts
    at_source = split.part_of(edges.src, parts, schema.placement) == part
    weights = None if edges.weights is None else edges.weights[at_source]
    out, order, rows = _adjacency(source, parts, edges.src[at_source], edges.dst[at_source], edges.ids[at_source], weights)
    into = None
    if schema.has_in:
        here = split.part_of(edges.dst, parts, schema.placement) == part
        in_weights = None if edges.weights is None else edges.weights[here]
        into = _adjacency(destination, parts, edges.dst[here], edges.src[here], edges.ids[here], in_weights)[0]
    extra: dict[str, Any] = {}
    if edges.features:
        mine = np.flatnonzero(edges.ids % parts == part)
        mine = mine[np.argsort(edges.ids[mine])]
        own = edges.ids[mine]
        holes = not np.array_equal(own // parts, np.arange(own.size))
        extra = {
            "feature_eids": own if holes else np.zeros(0, np.int64),
            "feature_rows": own.size,
            "columns": {name: _column(values, mine) for name, values in edges.features.items()},
        }
    slots = np.arange(order.size)
    table = table_of(None if weights is None else weights[order], slots, order.size)
    named = {}
    for name, values in edges.named.items():
        by_source, *_ = _adjacency(source, parts, edges.src[at_source], edges.dst[at_source], edges.ids[at_source], values[at_source])
        rows_by = RowWeights(weights=by_source.weights, sums=by_source.sums, hot=by_source.hot, cold=by_source.cold)
        named[name] = EdgeWeights(table=table_of(by_source.weights, slots, order.size), out=rows_by, into=None)
    return EdgeImage(out=out, into=into, src_row=rows.astype(np.uint32), table=table, named=named, **extra)


def part_images(schema: Schema, nodes: Mapping[str, Nodes], edges: Mapping[str, Edges], parts: Iterable[int] | None = None) -> dict[int, PartImage]:
    """The images of some parts (all, when None) of a graph given as plain arrays by type name."""
    images = {}
    for part in range(schema.parts) if parts is None else parts:
        node_images = tuple(_node_image(nodes[t.name], part, schema, t.graph_label) for t in schema.node_types)
        ends = [(node_images[schema.node_type_id(t.src_type)], node_images[schema.node_type_id(t.dst_type)]) for t in schema.edge_types]
        edge_images = tuple(_edge_image(edges[t.name], part, schema, *end) for t, end in zip(schema.edge_types, ends, strict=True))
        images[part] = PartImage(part=part, parts=schema.parts, mod=schema.placement == "mod", nodes=node_images, edges=edge_images)
    return images


def totals_of(images: Mapping[int, PartImage]) -> dict[tuple[int, int, int], Share]:
    """What the parts would have reported."""
    totals = {}
    for part, image in images.items():
        for type_id, node in enumerate(image.nodes):
            totals[NODE, type_id, part] = Share(count=node.count, positive=node.table.size, weight=node.table.total)
        for type_id, edge in enumerate(image.edges):
            totals[EDGE, type_id, part] = Share(count=edge.out.nbr.size, positive=edge.table.size, weight=edge.table.total)
    return totals


def version_of(schema: Schema, nodes: Mapping[str, Nodes], edges: Mapping[str, Edges] | None = None) -> Version:
    """A version that holds all parts of a graph given as plain arrays by type name."""
    images = part_images(schema, nodes, edges or {})
    names = {name for image in images.values() for of_type in (*image.nodes, *image.edges) for name in of_type.named}
    named = {name: totals_of({part: weighed(image, name) for part, image in images.items()}) for name in names}
    return Version(space_id=1, version=1, digest="d", schema=schema, totals=totals_of(images), named=named, parts=images)


def hosted(version: Version, parts: Iterable[int]) -> Version:
    """The same version on a host that holds only ``parts``."""
    return Version(
        space_id=version.space_id,
        version=version.version,
        digest=version.digest,
        schema=version.schema,
        totals=version.totals,
        parts={part: version.parts[part] for part in parts},
    )
