"""The call of a graph that each kind of draw or read stands for, and the rows of its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from asterism.graph import Graph
from asterism_proto.errors import NotFound
from graphd.statements import stepping
from graphd.statements.asked import Asked
from graphd.statements.records import Column, Parameter, Value
from graphd.statements.yielding import EdgeRows, NodeRows, PathRows, Rows, joined, of_edges, taken

Found = TypeVar("Found", NodeRows, EdgeRows)
Call = Callable[[Asked, Graph], tuple[Rows, Any]]
"""Gives rows, and the sample that they are from."""


def _vertices(asked: Asked, graph: Graph) -> tuple[Rows, Any]:
    probabilities = "probability" in asked.wants
    if not asked.draw.like:
        sample: Any = graph.sample_nodes(asked.count, asked.types, replace=asked.replace, probabilities=probabilities, **asked.drawing())
        return _nodes(sample), sample
    if not asked.replace:
        raise asked.refusal("replace", "WITHOUT REPLACEMENT of VERTICES LIKE others", ["WITH REPLACEMENT: each is drawn by itself"])
    nodes = asked.nodes.reshape(-1)
    sample = graph.sample_nodes_like(nodes, asked.count, ntype=asked.node_type, probabilities=probabilities, **asked.drawing())
    rows = np.repeat(np.arange(len(nodes)), asked.count)
    return _nodes(sample, row=rows, like=nodes.astype(np.int64)[rows]), sample


def _edges(asked: Asked, graph: Graph) -> tuple[Rows, Any]:
    probabilities = "probability" in asked.wants
    sample = graph.sample_edges(asked.count, asked.types, replace=asked.replace, probabilities=probabilities, **asked.drawing())
    own: dict[str, NDArray[Any]] = {"weight": sample.weights, "edge_id": sample.edge_ids}
    if sample.probabilities is not None:
        own["probability"] = sample.probabilities
    return EdgeRows(near=sample.src, far=sample.dst, types=sample.types, version=sample.version, own=own), sample


def _negatives(asked: Asked, graph: Graph) -> tuple[Rows, Any]:
    sample = graph.sample_negatives(asked.nodes, asked.count, asked.types, probabilities="probability" in asked.wants, **asked.drawing())
    rows = _nodes(sample, row=np.repeat(np.arange(len(sample.nodes)), sample.nodes.shape[1]))
    return rows if asked.draw.options.padded else _there(rows), sample


def _neighbors(asked: Asked, graph: Graph) -> tuple[Rows, Any]:
    hop, wants = asked.hop(), asked.wants
    if len(asked.ways) > 1:
        rows, made = stepping.drawn(asked, graph, [hop], [asked.count], 1)
        return rows if asked.draw.options.padded else _there(rows), made
    nodes, way = asked.nodes.reshape(-1), asked.ways[0]
    sample = graph.sample_neighbors(
        nodes,
        hop,
        asked.count,
        ntype=asked.node_type,
        replace=asked.replace,
        direction=way,
        weights="weight" in wants,
        edge_ids="edge_id" in wants,
        probabilities="probability" in wants,
        **asked.drawing(way),
    )
    return _at_each(asked, nodes, sample, against=way == "in"), sample


def _top(asked: Asked, graph: Graph) -> tuple[Rows, Any]:
    nodes, way = asked.nodes.reshape(-1), asked.way()
    found = graph.top_k_neighbors(
        nodes, asked.hop(), asked.count, ntype=asked.node_type, direction=way, edge_ids="edge_id" in asked.wants, **asked.reading(way)
    )
    return _at_each(asked, nodes, found, against=way == "in"), None


def _go(asked: Asked, graph: Graph) -> tuple[Rows, Any]:
    """The edges of the last step, or of some steps: drawn ones, or all."""
    draw, options = asked.draw, asked.draw.options
    if options.counts is not None:
        if options.limits is not None:
            raise asked.refusal("limits", "LIMIT [n1, ...] beside SAMPLE [n1, ...]", ["one of them"])
        return _drawn_steps(asked, graph)
    for name, given in (("uniform", options.uniform), ("replace", options.replace is not None), ("padded", options.padded), ("seed", options.seed)):
        if given not in (False, None):
            raise asked.refusal(name, f"{name.upper()} in GO that draws nothing", ["SAMPLE [n] too, or it left out"])
    limits = None if options.limits is None else _numbers(asked, "limits", options.limits)
    steps = asked.count if limits is None or draw.count is not None else len(limits)
    first = _first(asked, steps)
    if limits is not None and len(limits) != steps:
        raise asked.refusal("limits", f"LIMIT of {len(limits)} numbers for {steps} steps", ["a number for each step"])
    if steps == 1 or limits is not None or len(asked.ways) > 1:
        return stepping.followed(asked, graph, asked.path(steps), limits or [None] * steps, first), None
    nodes, way = asked.nodes.reshape(-1), asked.way()
    found = graph.multi_hop_neighbors(
        nodes, asked.path(steps), ntype=asked.node_type, direction=way, edge_ids="edge_id" in asked.wants, **asked.reading(way)
    )
    pieces = []
    for hop in range(first - 1, steps):
        edges = found.adjacencies[hop]
        own = {"step": np.full(len(edges.rows), hop + 1), "weight": edges.weights, "edge_id": edges.edge_ids}
        pieces.append(
            EdgeRows(
                near=found.nodes[hop][edges.rows],
                far=found.nodes[hop + 1][edges.cols],
                types=edges.types,
                against=way == "in",
                version=found.version,
                own={name: array for name, array in own.items() if array is not None},
            )
        )
    return joined(pieces), None


def _first(asked: Asked, last: int) -> int:
    """The first step whose edges are given."""
    first = last if asked.draw.first is None else asked.bindings.whole(asked.draw.first, "a number of steps")
    if not 1 <= first <= last:
        raise asked.refusal("", f"steps {first} to {last}", ["1 <= m <= n steps"])
    return first


def _numbers(asked: Asked, option: str, values: Parameter | tuple[Value, ...]) -> list[int]:
    """A number for each step; InvalidRequest where one is less than nothing."""
    counts = asked.bindings.counts(values, "a number of neighbors")
    if any(count < 0 for count in counts):
        raise asked.refusal(option, str(counts), ["numbers of 0 or more"])
    return counts


def _drawn_steps(asked: Asked, graph: Graph) -> tuple[Rows, Any]:
    """Neighbors of neighbors: a fanout."""
    draw, wants = asked.draw, asked.wants
    assert draw.options.counts is not None
    counts = _numbers(asked, "counts", draw.options.counts)
    steps = len(counts) if draw.count is None else asked.count
    if len(counts) != steps:
        raise asked.refusal("counts", f"SAMPLE of {len(counts)} numbers for {steps} steps", ["a number for each step"])
    first = _first(asked, steps)
    if len(asked.ways) > 1:
        rows, made = stepping.drawn(asked, graph, asked.path(steps), counts, first)
        return rows if draw.options.padded else _there(rows), made
    way = asked.way()
    nodes = asked.nodes.reshape(-1)
    sample = graph.sample_fanout(
        nodes,
        asked.path(steps),
        counts,
        ntype=asked.node_type,
        replace=asked.replace,
        direction=way,
        weights="weight" in wants,
        edge_ids="edge_id" in wants,
        probabilities="probability" in wants,
        **asked.drawing(way),
    )
    pieces, before = [], sample.seeds
    for step, hop in enumerate(sample.hops, 1):
        if step >= first:
            told = np.full(len(hop.nodes), step) if "step" in wants else None
            own = {"step": told, "weight": hop.weights, "edge_id": hop.edge_ids, "probability": hop.probabilities}
            pieces.append(
                EdgeRows(
                    near=np.repeat(before, hop.fanout),
                    far=hop.nodes,
                    types=hop.types,
                    against=way == "in",
                    version=sample.version,
                    own={name: array for name, array in own.items() if array is not None},
                )
            )
        before = hop.nodes
    rows = joined(pieces)
    return rows if draw.options.padded else _there(rows), sample


def _layer(asked: Asked, graph: Graph) -> tuple[Rows, Any]:
    sample = graph.sample_layer(asked.nodes, asked.hop(), asked.count, **_layering(asked))
    return _layers_of(asked, asked.nodes, [sample], sample), sample


def _stack(asked: Asked, graph: Graph) -> tuple[Rows, Any]:
    counts = asked.bindings.counts(asked.draw.counts, "a number of nodes")
    sample = graph.sample_fanout_layerwise(asked.nodes, asked.path(len(counts)), counts, **_layering(asked))
    return _layers_of(asked, asked.nodes, sample.layers, sample), sample


def _layering(asked: Asked) -> dict[str, Any]:
    way = asked.way()
    return {
        "measure": asked.draw.options.measure.lower() or "sum",
        "ntype": asked.node_type,
        "replace": asked.replace,
        "direction": way,
        "edge_ids": of_edges(asked.wants) and "edge_id" in asked.wants,
        **asked.drawing(way),
    }


def _layers_of(asked: Asked, nodes: NDArray[Any], layers: Any, sample: Any) -> Rows:
    """The nodes of layers, or the edges that lead to them."""
    if not of_edges(asked.wants):
        ids = [layer.nodes.reshape(-1) for layer in layers]
        width = [layer.nodes.shape[-1] for layer in layers]
        own = {
            "step": np.repeat(np.arange(1, len(ids) + 1), [len(one) for one in ids]),
            "layer": np.concatenate([np.arange(len(one)) // max(wide, 1) for one, wide in zip(ids, width, strict=True)]),
            "probability": np.concatenate([layer.probabilities.reshape(-1) for layer in layers]),
        }
        types = np.concatenate([layer.types.reshape(-1) for layer in layers])
        return _there(NodeRows(ids=np.concatenate(ids), types=types, version=sample.version, own=own))
    pieces, before = [], nodes.reshape(-1).astype(np.int64)
    for step, layer in enumerate(layers, 1):
        edges, here = layer.adjacency, layer.nodes.reshape(-1)
        own = {"step": np.full(len(edges.rows), step), "row": edges.rows, "col": edges.cols, "weight": edges.weights, "edge_id": edges.edge_ids}
        pieces.append(
            EdgeRows(
                near=before[edges.rows],
                far=here[edges.cols],
                types=edges.types,
                against=asked.way() == "in",
                version=sample.version,
                own={name: array for name, array in own.items() if array is not None},
            )
        )
        before = here
    return joined(pieces)


def _walk(asked: Asked, graph: Graph) -> tuple[Rows, Any]:
    options, bindings, way = asked.draw.options, asked.bindings, asked.way()
    nodes = asked.nodes.reshape(-1)
    hops: Any = None if asked.hops == [None] else asked.hops
    biases: dict[str, Any] = {name: bindings.real(value, name) for name in ("p", "q", "restart") if (value := getattr(options, name)) is not None}
    sample = graph.random_walk(
        nodes,
        hops,
        None if asked.draw.count is None and hops is not None else asked.count,
        ntype=asked.node_type,
        walks=None if options.walks is None else bindings.whole(options.walks, "a number of walks"),
        first_step="distinct" if options.distinct else "independent",
        direction=way,
        edge_ids="edge_id" in asked.wants,
        **biases,
        **asked.drawing(way),
    )
    rows = np.arange(len(sample.nodes)) if sample.starts is None else sample.starts
    own = {"path": sample.nodes, "start": nodes.astype(np.int64)[rows], "row": rows}
    if sample.edge_ids is not None:
        own["edge_ids"] = sample.edge_ids
    return PathRows(version=sample.version, own=own, types=sample.types), sample


def _fetch(asked: Asked, graph: Graph) -> tuple[Rows, Any]:
    """Features by ids: of nodes, or of edges by their own ids."""
    if asked.draw.pairs:
        return _between(asked, graph), None
    ids, name, schema = asked.nodes.reshape(-1).astype(np.int64), asked.draw.types[0].text, graph.schema
    at = next((i for i, kind in enumerate(schema.node_types) if kind.name == name), None)
    if at is not None:
        return NodeRows(ids=ids, types=np.full(len(ids), at, np.int32), version=asked.version or 0), None
    types = np.full(len(ids), schema.edge_type_id(name), np.int32)
    for item in asked.items:
        if _no_edge_id_has(item.column):
            raise NotFound(f"an edge that is fetched by its id has features, id and type; no {item.column}")
    none = np.full(len(ids), -1, np.int64)
    return EdgeRows(near=none, far=none, types=types, version=asked.version or 0, own={"edge_id": ids}), None


def _between(asked: Asked, graph: Graph) -> EdgeRows:
    """All edges of a type between pairs of nodes, pair after pair."""
    schema = graph.schema
    kind = schema.edge_type_id(asked.draw.types[0].text)
    edge, (src, dst) = schema.edge_types[kind], asked.ends
    (rows, row_of), (cols, col_of) = (np.unique(ids, return_inverse=True) for ids in (src, dst))
    found = graph.adjacency(rows, cols, edge.name, row_type=edge.src_type, col_type=edge.dst_type, edge_ids=True, version=asked.version)
    assert found.weights is not None
    assert found.edge_ids is not None
    # Of each pair the run of its entries, by its number among all pairs of these rows and cols; -1 is no node.
    numbers = np.asarray(found.rows) * len(cols) + found.cols
    order = np.argsort(numbers, kind="stable")
    wanted = np.where((src >= 0) & (dst >= 0), row_of.reshape(-1) * len(cols) + col_of.reshape(-1), -1)
    begins, ends = (np.searchsorted(numbers[order], wanted, side=side) for side in ("left", "right"))
    sizes = ends - begins
    pair = np.repeat(np.arange(len(src)), sizes)
    at = order[np.repeat(begins - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())]
    own = {"row": pair, "weight": found.weights[at], "edge_id": found.edge_ids[at]}
    return EdgeRows(near=src[pair], far=dst[pair], types=np.full(len(pair), kind, np.int32), version=found.version, own=own)


def _no_edge_id_has(column: Column) -> bool:
    return bool(column.of) or (not column.quoted and column.name.text in ("src", "dst"))


def _nodes(sample: Any, **own: NDArray[Any]) -> NodeRows:
    """Drawn nodes of any shape, row after row."""
    if sample.probabilities is not None:
        own["probability"] = sample.probabilities.reshape(-1)
    return NodeRows(ids=sample.nodes.reshape(-1), types=sample.types.reshape(-1), version=sample.version, own=own)


def _at_each(asked: Asked, nodes: NDArray[Any], sample: Any, *, against: bool) -> EdgeRows:
    """Neighbors [m, n] of nodes, row after row."""
    rows = np.repeat(np.arange(len(nodes)), sample.nodes.shape[1])
    own = {"row": rows}
    for name, array in (("weight", sample.weights), ("edge_id", sample.edge_ids), ("probability", getattr(sample, "probabilities", None))):
        if array is not None:
            own[name] = array.reshape(-1)
    found = EdgeRows(
        near=nodes.astype(np.int64)[rows],
        far=sample.nodes.reshape(-1),
        types=sample.types.reshape(-1),
        against=against,
        version=sample.version,
        own=own,
    )
    return found if asked.draw.options.padded else _there(found)


def _there(rows: Found) -> Found:
    """Rows without those where there is no node."""
    found = rows.far if isinstance(rows, EdgeRows) else rows.ids
    kept = np.flatnonzero(found >= 0)
    if len(kept) == len(found):
        return rows
    if isinstance(rows, EdgeRows):
        return taken(rows, kept)
    return replace(rows, ids=rows.ids[kept], types=rows.types[kept], own={name: array[kept] for name, array in rows.own.items()})


CALLS: Mapping[str, Call] = {
    "vertices": _vertices,
    "edges": _edges,
    "neighbors": _neighbors,
    "top": _top,
    "layer": _layer,
    "layers": _stack,
    "negatives": _negatives,
    "walk": _walk,
    "go": _go,
    "fetch": _fetch,
}
"""By kind."""
