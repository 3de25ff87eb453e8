"""Part images in memory, from plain arrays: the slow and plain counterpart of a build, for any number of parts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.schema import EdgeType, Schema
from asterism_proto.times import far_time
from graphkit import alias, index, labels, split
from graphkit.order import sort_keys
from graphkit.times import keys_of
from storaged.draw.version import EDGE, NODE, Share, Version
from storaged.store.image import NOBODY, Adjacency, Column, EdgeImage, EdgeWeights, NodeImage, NodeWeights, PartImage, RowWeights, Table, weighed
from storaged.store.ordered import STEPS, Level, Near, Ordered, Tables, levels_of

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
    indexes: tuple[tuple[str, str], ...] = ()
    """(column, kind) of each: a scalar feature, ``id`` or ``weight``."""


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
    times: NDArray[Any] | None = None
    indexed: bool = True
    """Whether it has the indexes that its type declares; features of these lie beside the edges in any case."""

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


def keyed(table: Table, ids: NDArray[np.int64]) -> Table:
    """With the ids of its columns' rows beside its thresholds, where it has these."""
    of_column = ids[table.row_of] if table.row_of.size else ids[: table.hot.size]
    return replace(table, keyed=np.column_stack([table.hot, of_column.astype(np.uint64)]).reshape(-1) if table.hot.size else table.keyed)


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

    def table(weights: NDArray[np.float32] | None) -> Table:
        made = table_of(None if weights is None else weights[own], row, rows)
        return made if dense else keyed(made, ids)

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
        table=table(nodes.weights),
        named={name: NodeWeights(weights=by_row(values), table=table(values)) for name, values in nodes.named.items()},
        columns=columns,
        indexes=tuple(_index(nodes, own, row, name, kind) for name, kind in nodes.indexes),
        **_labels(columns[label], rows) if label else {},
    )


def _index(nodes: Nodes, own: NDArray[np.int64], row: NDArray[np.int64], name: str, kind: str) -> Ordered:
    """The index of some nodes, which have these rows, by a sort of all of them."""
    plain = {"id": nodes.ids, "weight": nodes.weights if nodes.weights is not None else np.ones(nodes.ids.size, np.float32)}
    column = plain[name] if name in plain else nodes.features[name]
    values: NDArray[Any]
    if isinstance(column, tuple):
        texts = [column[1][column[0][i] : column[0][i + 1]].tobytes() for i in own]
        values = np.array([labels.hashes(np.array([0, len(text)]), np.frombuffer(text, np.uint8), 0, 1)[0] for text in texts], np.int64)
    else:
        values = column[own]
    order = np.lexsort((row, values))
    ordered, more = values[order], {}
    if kind == "hash":
        starts = np.unique(ordered, return_index=True, equal_nan=True)[1]
        ordered, more = ordered[starts], {"bounds": np.append(starts, order.size)}
    tables = {}
    for of, weights in (("", nodes.weights), *nodes.named.items()):
        if weights is not None:
            tables[of] = _blocks(weights[own][order])
    return Ordered(column=name, kind=kind, rows=row[order].astype(np.uint32), values=ordered, tables=tables, **more)


def _blocks(weights: NDArray[np.float32]) -> Tables:
    """Alias tables over blocks of an order."""
    levels = []
    for step in levels_of(weights.size):
        hot, cold, sums = alias.build_rows(np.append(np.arange(0, weights.size, step), weights.size), weights)
        levels.append(Level(hot=hot, cold=cold, sums=sums))
    before = [np.count_nonzero(weights[:end] > 0) for end in [*range(0, weights.size, STEPS[0]), weights.size]]
    return Tables(levels=tuple(levels), positives=np.array(before, np.int64))


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
    node: NodeImage,
    parts: int,
    near: NDArray[np.int64],
    far: NDArray[np.int64],
    eids: NDArray[np.int64],
    weights: NDArray[np.float32] | None,
    times: NDArray[Any] | None = None,
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
    if times is not None:
        columns["when"] = keys_of(times[order])
        in_time = np.lexsort((columns["when"], rows[order]))
        columns["order"] = in_time.astype(np.uint32)
        if weights is not None:
            ordered = columns["weights"][in_time].astype(np.longdouble)
            spans = itertools.pairwise(indptr)
            columns["time_sums"] = np.concatenate([np.zeros(0), *(np.cumsum(ordered[a:b]).astype(np.float64) for a, b in spans if a < b)])
    side = Adjacency(indptr=indptr, nbr=far[order], eid=eids[order], **columns)
    return packed(side), order, rows[order]


def packed(side: Adjacency) -> Adjacency:
    """With its ids, and what its columns decide between, once more; all of it as far as ids fit into 32 bits."""
    if (side.nbr >= NOBODY).any():
        return side
    if (side.eid < NOBODY).all():
        side = replace(side, pairs=side.eid.astype(np.uint64) << np.uint64(32) | side.nbr.astype(np.uint64))
    narrow = side.nbr.astype(np.uint32)
    if not side.hot.size:
        return replace(side, narrow=narrow)
    row = np.repeat(np.arange(side.indptr.size - 1), np.diff(side.indptr))
    alias_of = side.indptr[row] + (side.hot & np.uint64(NOBODY)).astype(np.int64)
    pairs = side.nbr[alias_of].astype(np.uint64) << np.uint64(32) | side.nbr.astype(np.uint64)
    pairs[side.sums[row] == 0] = np.uint64((1 << 64) - 1)
    return replace(side, narrow=narrow, packed=np.column_stack([side.hot, pairs]).reshape(-1))


def apart(version: Version) -> Version:
    """The same version without anything twice over."""

    def bare(side: Adjacency) -> Adjacency:
        return replace(side, narrow=np.zeros(0, np.uint32), pairs=np.zeros(0, np.uint64), packed=np.zeros(0, np.uint64))

    def without(edge: EdgeImage) -> EdgeImage:
        return replace(edge, out=bare(edge.out), into=None if edge.into is None else bare(edge.into))

    def alone(node: NodeImage) -> NodeImage:
        named = {name: replace(of, table=replace(of.table, keyed=np.zeros(0, np.uint64))) for name, of in node.named.items()}
        return replace(node, table=replace(node.table, keyed=np.zeros(0, np.uint64)), named=named)

    parts = {
        part: replace(image, nodes=tuple(map(alone, image.nodes)), edges=tuple(map(without, image.edges))) for part, image in version.parts.items()
    }
    return replace(version, parts=parts)


def _seen_from(schema: Schema, type_id: int, edges: Edges, nodes: Mapping[str, Nodes], *, incoming: bool) -> NDArray[Any] | None:
    """The time of each edge followed this way: its own, its neighbor's, or the later of both."""
    far = far_time(schema, type_id, incoming=incoming)
    if far is None:
        return edges.times
    of = nodes[schema.node_types[far[0]].name]
    values = of.features[far[1].name]
    assert not isinstance(values, tuple)
    known = dict(zip(of.ids.tolist(), values, strict=True))
    times = np.array([known.get(node, 0) for node in (edges.src if incoming else edges.dst).tolist()], values.dtype)
    return times if edges.times is None else np.maximum(edges.times, times)


def _edge_image(
    edges: Edges, part: int, schema: Schema, kind: EdgeType, source: NodeImage, destination: NodeImage, seen: Sequence[NDArray[Any] | None]
) -> EdgeImage:
    parts = schema.parts
    at_source = split.part_of(edges.src, parts, schema.placement) == part
    weights = None if edges.weights is None else edges.weights[at_source]
    times = None if seen[0] is None else seen[0][at_source]
    out, order, rows = _adjacency(source, parts, edges.src[at_source], edges.dst[at_source], edges.ids[at_source], weights, times)
    features = {name: np.asarray(edges.features[name]) for name in kind.indexed}
    out = replace(out, near={name: values[at_source][order] for name, values in features.items()})
    into = None
    if schema.has_in:
        here = split.part_of(edges.dst, parts, schema.placement) == part
        in_weights = None if edges.weights is None else edges.weights[here]
        in_times = None if seen[1] is None else seen[1][here]
        into, in_order, _ = _adjacency(destination, parts, edges.dst[here], edges.src[here], edges.ids[here], in_weights, in_times)
        into = replace(into, near={name: values[here][in_order] for name, values in features.items()})
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
        rows_by = RowWeights(weights=by_source.weights, sums=by_source.sums, hot=by_source.hot, cold=by_source.cold, packed=by_source.packed)
        named[name] = EdgeWeights(table=table_of(by_source.weights, slots, order.size), out=rows_by, into=None)
    if edges.indexed:
        extra["indexes"] = tuple(_edge_index(text, out, into, {name: of.out.weights for name, of in named.items()}) for text in sorted(kind.index))
    return EdgeImage(out=out, into=into, src_row=rows.astype(np.uint32), table=table, named=named, **extra)


def _edge_index(column: str, out: Adjacency, into: Adjacency | None, named: Mapping[str, NDArray[np.float32]]) -> Ordered:
    """The index of some edges by value, by a sort of all of them; orders at the other end have their own weights only."""
    values, slots = _values_of(column, out), np.arange(out.nbr.size)
    order = np.lexsort((slots, values))
    weights = {name: of for name, of in (("", out.weights), *named.items()) if of.size}
    return Ordered(
        column=column,
        kind="range",
        rows=slots[order].astype(np.uint32),
        values=values[order],
        tables={name: _blocks(of[order]) for name, of in weights.items()},
        out=_near(column, out, weights),
        into=None if into is None else _near(column, into, {"": into.weights} if into.weights.size else {}),
    )


def _values_of(column: str, side: Adjacency) -> NDArray[Any]:
    plain = {"id": side.eid, "weight": side.weights if side.weights.size else np.ones(side.nbr.size, np.float32)}
    return plain[column] if column in plain else side.near[column]


def _near(column: str, side: Adjacency, weights: Mapping[str, NDArray[np.float32]]) -> Near:
    """The order of each node's edges, with its trees of sums put together from the leaves."""
    values, rows = _values_of(column, side), np.repeat(np.arange(side.indptr.size - 1), np.diff(side.indptr))
    order = np.lexsort((np.arange(rows.size), values, rows))
    trees = {}
    for name, of in weights.items():
        tree = np.zeros(rows.size)
        for low, high in itertools.pairwise(side.indptr.tolist()):
            size = high - low
            places = [0.0] * size + of[order[low:high]].astype(np.float64).tolist()
            for place in range(size - 1, 0, -1):
                places[place] = places[2 * place] + places[2 * place + 1]
            tree[low:high] = [places[1], *places[1:size]] if size else []
        trees[name] = tree
    return Near(order=order.astype(np.uint32), keys=sort_keys(values[order]), trees=trees)


def part_images(schema: Schema, nodes: Mapping[str, Nodes], edges: Mapping[str, Edges], parts: Iterable[int] | None = None) -> dict[int, PartImage]:
    """The images of some parts (all, when None) of a graph given as plain arrays by type name."""
    images = {}
    seen = {t.name: [_seen_from(schema, e, edges[t.name], nodes, incoming=way) for way in (False, True)] for e, t in enumerate(schema.edge_types)}
    for part in range(schema.parts) if parts is None else parts:
        node_images = tuple(_node_image(nodes[t.name], part, schema, t.graph_label) for t in schema.node_types)
        ends = [(node_images[schema.node_type_id(t.src_type)], node_images[schema.node_type_id(t.dst_type)]) for t in schema.edge_types]
        edge_images = tuple(_edge_image(edges[t.name], part, schema, t, *end, seen[t.name]) for t, end in zip(schema.edge_types, ends, strict=True))
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
