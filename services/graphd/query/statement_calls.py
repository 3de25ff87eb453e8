"""Graph call of each kind of sampling or read statement, and the rows of its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from asterism.calls import validation
from asterism.calls.edge_existence import existing_edges
from asterism.graph import Graph
from asterism_proto.errors import NotFound
from graphd.query import go_steps
from graphd.query.ast import ColumnRef, Parameter, Value
from graphd.query.projection import (
    EdgeResultRows,
    NodeResultRows,
    PathResultRows,
    ResultRows,
    concat_rows,
    needs_edges,
    take_rows,
)
from graphd.query.resolve import ResolvedDraw

RowsT = TypeVar("RowsT", NodeResultRows, EdgeResultRows)
DrawCall = Callable[[ResolvedDraw, Graph], tuple[ResultRows, Any]]
"""(draw, graph) -> rows, and the sample that they come from."""


def _vertices(request: ResolvedDraw, graph: Graph) -> tuple[ResultRows, Any]:
    probabilities = "probability" in request.required_columns
    if not request.draw.like:
        sample: Any = graph.sample_nodes(
            request.count,
            request.types,
            replace=request.replace,
            probabilities=probabilities,
            **request.draw_arguments(),
        )
        return _nodes(sample), sample
    if not request.replace:
        raise request.option_error(
            "replace",
            "WITHOUT REPLACEMENT for VERTICES LIKE others",
            ["WITH REPLACEMENT, because each node is drawn independently"],
        )
    nodes = request.nodes.reshape(-1)
    sample = graph.sample_nodes_like(
        nodes,
        request.count,
        ntype=request.node_type,
        probabilities=probabilities,
        **request.draw_arguments(),
    )
    rows = np.repeat(np.arange(len(nodes)), request.count)
    return _nodes(sample, row=rows, like=nodes.astype(np.int64)[rows]), sample


def _edges(request: ResolvedDraw, graph: Graph) -> tuple[ResultRows, Any]:
    probabilities = "probability" in request.required_columns
    sample = graph.sample_edges(
        request.count,
        request.types,
        replace=request.replace,
        probabilities=probabilities,
        **request.draw_arguments(),
    )
    extra_columns: dict[str, NDArray[Any]] = {"weight": sample.weights, "edge_id": sample.edge_ids}
    if sample.probabilities is not None:
        extra_columns["probability"] = sample.probabilities
    return EdgeResultRows(
        local_ids=sample.src,
        remote_ids=sample.dst,
        types=sample.types,
        version=sample.version,
        extra_columns=extra_columns,
    ), sample


def _negatives(request: ResolvedDraw, graph: Graph) -> tuple[ResultRows, Any]:
    sample = graph.sample_negatives(
        request.nodes,
        request.count,
        request.types,
        probabilities="probability" in request.required_columns,
        **request.draw_arguments(),
    )
    rows = _nodes(sample, row=np.repeat(np.arange(len(sample.nodes)), sample.nodes.shape[1]))
    return rows if request.draw.options.padded else _drop_missing(rows), sample


def _neighbors(request: ResolvedDraw, graph: Graph) -> tuple[ResultRows, Any]:
    hop, required = request.single_hop(), request.required_columns
    if len(request.directions) > 1:
        rows, sample_seed = go_steps.sample_steps(request, graph, [hop], [request.count], 1)
        return rows if request.draw.options.padded else _drop_missing(rows), sample_seed
    nodes, direction = request.nodes.reshape(-1), request.directions[0]
    sample = graph.sample_neighbors(
        nodes,
        hop,
        request.count,
        ntype=request.node_type,
        replace=request.replace,
        direction=direction,
        weights="weight" in required,
        edge_ids="edge_id" in required,
        probabilities="probability" in required,
        **request.draw_arguments(direction),
    )
    return _neighbor_rows(request, nodes, sample, is_reversed=direction == "in"), sample


def _top(request: ResolvedDraw, graph: Graph) -> tuple[ResultRows, Any]:
    nodes, direction = request.nodes.reshape(-1), request.single_direction()
    sample = graph.top_k_neighbors(
        nodes,
        request.single_hop(),
        request.count,
        ntype=request.node_type,
        direction=direction,
        edge_ids="edge_id" in request.required_columns,
        **request.read_arguments(direction),
    )
    return _neighbor_rows(request, nodes, sample, is_reversed=direction == "in"), None


def _go(request: ResolvedDraw, graph: Graph) -> tuple[ResultRows, Any]:
    """Return the edges of the last step or of several steps: sampled ones, or all."""
    draw, options = request.draw, request.draw.options
    if _takes_no_step(request):
        return _no_edges(request, graph), None
    if options.counts is not None:
        if options.limits is not None:
            raise request.option_error(
                "limits", "LIMIT [n1, ...] together with SAMPLE [n1, ...]", ["only one of them"]
            )
        return _drawn_steps(request, graph)
    for name, value in (
        ("uniform", options.uniform),
        ("replace", options.replace is not None),
        ("padded", options.padded),
        ("seed", options.seed),
    ):
        if value not in (False, None):
            raise request.option_error(
                name,
                f"{name.upper()} in a GO that does not sample",
                ["SAMPLE [n] too, or no such option"],
            )
    limits = None if options.limits is None else _numbers(request, "limits", options.limits)
    steps = request.count if limits is None or draw.count is not None else len(limits)
    first = _first(request, steps)
    if limits is not None and len(limits) != steps:
        raise request.option_error(
            "limits",
            f"LIMIT of {len(limits)} numbers for {steps} steps",
            ["one number for each step"],
        )
    if steps == 1 or limits is not None or len(request.directions) > 1:
        return go_steps.follow_steps(
            request, graph, request.hop_path(steps), limits or [None] * steps, first
        ), None
    nodes, direction = request.nodes.reshape(-1), request.single_direction()
    sample = graph.multi_hop_neighbors(
        nodes,
        request.hop_path(steps),
        ntype=request.node_type,
        direction=direction,
        edge_ids="edge_id" in request.required_columns,
        **request.read_arguments(direction),
    )
    pieces = []
    for hop in range(first - 1, steps):
        edges = sample.adjacencies[hop]
        extra_columns = {
            "step": np.full(len(edges.rows), hop + 1),
            "weight": edges.weights,
            "edge_id": edges.edge_ids,
        }
        pieces.append(
            EdgeResultRows(
                local_ids=sample.nodes[hop][edges.rows],
                remote_ids=sample.nodes[hop + 1][edges.cols],
                types=edges.types,
                is_reversed=direction == "in",
                version=sample.version,
                extra_columns={
                    name: array for name, array in extra_columns.items() if array is not None
                },
            )
        )
    return concat_rows(pieces), None


def _takes_no_step(request: ResolvedDraw) -> bool:
    """Return True for ``GO 0 STEPS`` and ``GO 0 TO 0 STEPS``, which give no edges."""
    return (
        request.draw.count is not None
        and request.count == 0
        and _first(request, last=0, minimum=0) == 0
    )


def _no_edges(request: ResolvedDraw, graph: Graph) -> EdgeResultRows:
    """Return no rows, with the columns that rows of edges have."""
    start_nodes = request.nodes  # rejects ids that are not valid
    validation.ids("ids", start_nodes.reshape(-1), minimum=-1)
    none = np.zeros(0, np.int64)
    return EdgeResultRows(
        local_ids=none,
        remote_ids=none,
        types=none.astype(np.int32),
        version=request.version or graph.manifest().version,
        extra_columns={
            "step": none,
            "row": none,
            "edge_id": none,
            "weight": none.astype(np.float32),
            "probability": none.astype(np.float64),
        },
    )


def _first(request: ResolvedDraw, last: int, minimum: int = 1) -> int:
    """Return the first step with edges in the result; step 0 has none, as in Nebula."""
    first = (
        last
        if request.draw.first is None
        else request.bindings.integer(request.draw.first, "a number of steps")
    )
    first = minimum if first == 0 else first
    if not minimum <= first <= last:
        raise request.option_error("", f"steps {first} to {last}", ["0 <= m <= n steps"])
    return first


def _numbers(
    request: ResolvedDraw, option: str, values: Parameter | tuple[Value, ...]
) -> list[int]:
    """Return one number per step; raise InvalidRequest if one is negative."""
    counts = request.bindings.integers(values, "a number of neighbors")
    if any(count < 0 for count in counts):
        raise request.option_error(option, str(counts), ["numbers of 0 or more"])
    return counts


def _drawn_steps(request: ResolvedDraw, graph: Graph) -> tuple[ResultRows, Any]:
    """Sample neighbors of neighbors: a fanout."""
    draw, required = request.draw, request.required_columns
    assert draw.options.counts is not None
    counts = _numbers(request, "counts", draw.options.counts)
    steps = len(counts) if draw.count is None else request.count
    if len(counts) != steps:
        raise request.option_error(
            "counts",
            f"SAMPLE of {len(counts)} numbers for {steps} steps",
            ["one number for each step"],
        )
    first = _first(request, steps)
    if len(request.directions) > 1:
        rows, sample_seed = go_steps.sample_steps(
            request, graph, request.hop_path(steps), counts, first
        )
        return rows if draw.options.padded else _drop_missing(rows), sample_seed
    direction = request.single_direction()
    nodes = request.nodes.reshape(-1)
    sample = graph.sample_fanout(
        nodes,
        request.hop_path(steps),
        counts,
        ntype=request.node_type,
        replace=request.replace,
        direction=direction,
        weights="weight" in required,
        edge_ids="edge_id" in required,
        probabilities="probability" in required,
        **request.draw_arguments(direction),
    )
    pieces, sources = [], sample.seeds
    for step, hop in enumerate(sample.hops, 1):
        if step >= first:
            step_column = np.full(len(hop.nodes), step) if "step" in required else None
            extra_columns = {
                "step": step_column,
                "weight": hop.weights,
                "edge_id": hop.edge_ids,
                "probability": hop.probabilities,
            }
            pieces.append(
                EdgeResultRows(
                    local_ids=np.repeat(sources, hop.fanout),
                    remote_ids=hop.nodes,
                    types=hop.types,
                    is_reversed=direction == "in",
                    version=sample.version,
                    extra_columns={
                        name: array for name, array in extra_columns.items() if array is not None
                    },
                )
            )
        sources = hop.nodes
    rows = concat_rows(pieces)
    return rows if draw.options.padded else _drop_missing(rows), sample


def _layer(request: ResolvedDraw, graph: Graph) -> tuple[ResultRows, Any]:
    sample = graph.sample_layer(
        request.nodes, request.single_hop(), request.count, **_layering(request)
    )
    return _layers_of(request, request.nodes, [sample], sample), sample


def _stack(request: ResolvedDraw, graph: Graph) -> tuple[ResultRows, Any]:
    counts = request.bindings.integers(request.draw.counts, "a number of nodes")
    sample = graph.sample_fanout_layerwise(
        request.nodes, request.hop_path(len(counts)), counts, **_layering(request)
    )
    return _layers_of(request, request.nodes, sample.layers, sample), sample


def _layering(request: ResolvedDraw) -> dict[str, Any]:
    direction = request.single_direction()
    return {
        "measure": request.draw.options.measure.lower() or "sum",
        "ntype": request.node_type,
        "replace": request.replace,
        "direction": direction,
        "edge_ids": needs_edges(request.required_columns) and "edge_id" in request.required_columns,
        **request.draw_arguments(direction),
    }


def _layers_of(request: ResolvedDraw, nodes: NDArray[Any], layers: Any, sample: Any) -> ResultRows:
    """Return the nodes of layers, or the edges that lead to them."""
    if not needs_edges(request.required_columns):
        ids = [layer.nodes.reshape(-1) for layer in layers]
        width = [layer.nodes.shape[-1] for layer in layers]
        extra_columns = {
            "step": np.repeat(np.arange(1, len(ids) + 1), [len(layer_ids) for layer_ids in ids]),
            "layer": np.concatenate(
                [
                    np.arange(len(layer_ids)) // max(layer_width, 1)
                    for layer_ids, layer_width in zip(ids, width, strict=True)
                ]
            ),
            "probability": np.concatenate([layer.probabilities.reshape(-1) for layer in layers]),
        }
        types = np.concatenate([layer.types.reshape(-1) for layer in layers])
        return _drop_missing(
            NodeResultRows(
                ids=np.concatenate(ids),
                types=types,
                version=sample.version,
                extra_columns=extra_columns,
            )
        )
    pieces, sources = [], nodes.reshape(-1).astype(np.int64)
    for step, layer in enumerate(layers, 1):
        edges, targets = layer.adjacency, layer.nodes.reshape(-1)
        extra_columns = {
            "step": np.full(len(edges.rows), step),
            "row": edges.rows,
            "col": edges.cols,
            "weight": edges.weights,
            "edge_id": edges.edge_ids,
        }
        pieces.append(
            EdgeResultRows(
                local_ids=sources[edges.rows],
                remote_ids=targets[edges.cols],
                types=edges.types,
                is_reversed=request.single_direction() == "in",
                version=sample.version,
                extra_columns={
                    name: array for name, array in extra_columns.items() if array is not None
                },
            )
        )
        sources = targets
    return concat_rows(pieces)


def _walk(request: ResolvedDraw, graph: Graph) -> tuple[ResultRows, Any]:
    options, bindings, direction = (
        request.draw.options,
        request.bindings,
        request.single_direction(),
    )
    nodes = request.nodes.reshape(-1)
    hops: Any = None if request.hops == [None] else request.hops
    biases: dict[str, Any] = {
        name: bindings.real(value, name)
        for name in ("p", "q", "restart")
        if (value := getattr(options, name)) is not None
    }
    sample = graph.random_walk(
        nodes,
        hops,
        None if request.draw.count is None and hops is not None else request.count,
        ntype=request.node_type,
        walks=None
        if options.walks is None
        else bindings.integer(options.walks, "a number of walks"),
        first_step="distinct" if options.distinct else "independent",
        direction=direction,
        edge_ids="edge_id" in request.required_columns,
        **biases,
        **request.draw_arguments(direction),
    )
    rows = np.arange(len(sample.nodes)) if sample.starts is None else sample.starts
    extra_columns = {"path": sample.nodes, "start": nodes.astype(np.int64)[rows], "row": rows}
    if sample.edge_ids is not None:
        extra_columns["edge_ids"] = sample.edge_ids
    return PathResultRows(
        version=sample.version, extra_columns=extra_columns, types=sample.types
    ), sample


def _fetch(request: ResolvedDraw, graph: Graph) -> tuple[ResultRows, Any]:
    """Return features by ids: of nodes or edges that exist, or of all edges between ends."""
    if request.draw.pairs:
        return _between(request, graph), None
    ids, name, schema = (
        request.nodes.reshape(-1).astype(np.int64),
        request.draw.types[0].text,
        graph.schema,
    )
    type_id = next(
        (i for i, node_type in enumerate(schema.node_types) if node_type.name == name), None
    )
    if type_id is not None:
        ids = ids[graph.node_types(ids, name, version=request.version) >= 0]
        return NodeResultRows(
            ids=ids, types=np.full(len(ids), type_id, np.int32), version=request.version or 0
        ), None
    for item in request.items:
        if _needs_edge_ends(item.column):
            raise NotFound(
                f"an edge that is fetched by its id has features, id and type, but no {item.column}"
            )
    edge_type = schema.edge_type_id(name)
    ids = validation.ids("ids", ids, minimum=-1)
    ids = ids[existing_edges(graph, schema.edge_types[edge_type].name, ids, request.version)]
    missing = np.full(len(ids), -1, np.int64)
    return EdgeResultRows(
        local_ids=missing,
        remote_ids=missing,
        types=np.full(len(ids), edge_type, np.int32),
        version=request.version or 0,
        extra_columns={"edge_id": ids},
    ), None


def _between(request: ResolvedDraw, graph: Graph) -> EdgeResultRows:
    """Return all edges of a type between pairs of nodes, pair by pair."""
    schema = graph.schema
    edge_type = schema.edge_type_id(request.draw.types[0].text)
    edge, (src, dst) = schema.edge_types[edge_type], request.edge_ends
    (rows, row_of), (cols, col_of) = (np.unique(ids, return_inverse=True) for ids in (src, dst))
    adjacency = graph.adjacency(
        rows,
        cols,
        edge.name,
        row_type=edge.src_type,
        col_type=edge.dst_type,
        edge_ids=True,
        version=request.version,
    )
    assert adjacency.weights is not None
    assert adjacency.edge_ids is not None
    # Number each entry and each pair by (row, col). The entries of a pair are then one range of
    # the sorted numbers. -1 stands for a missing node.
    numbers = np.asarray(adjacency.rows) * len(cols) + adjacency.cols
    order = np.argsort(numbers, kind="stable")
    pair_numbers = np.where(
        (src >= 0) & (dst >= 0), row_of.reshape(-1) * len(cols) + col_of.reshape(-1), -1
    )
    begins, ends = (
        np.searchsorted(numbers[order], pair_numbers, side=side) for side in ("left", "right")
    )
    sizes = ends - begins
    pair = np.repeat(np.arange(len(src)), sizes)
    positions = order[np.repeat(begins - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())]
    extra_columns = {
        "row": pair,
        "weight": adjacency.weights[positions],
        "edge_id": adjacency.edge_ids[positions],
    }
    return EdgeResultRows(
        local_ids=src[pair],
        remote_ids=dst[pair],
        types=np.full(len(pair), edge_type, np.int32),
        version=adjacency.version,
        extra_columns=extra_columns,
    )


def _needs_edge_ends(column: ColumnRef) -> bool:
    return bool(column.end) or (not column.quoted and column.name.text in ("src", "dst"))


def _nodes(sample: Any, **extra_columns: NDArray[Any]) -> NodeResultRows:
    """Return sampled nodes of any shape as rows."""
    if sample.probabilities is not None:
        extra_columns["probability"] = sample.probabilities.reshape(-1)
    return NodeResultRows(
        ids=sample.nodes.reshape(-1),
        types=sample.types.reshape(-1),
        version=sample.version,
        extra_columns=extra_columns,
    )


def _neighbor_rows(
    request: ResolvedDraw, nodes: NDArray[Any], sample: Any, *, is_reversed: bool
) -> EdgeResultRows:
    """Return neighbors of shape [m, n] as rows, node by node."""
    rows = np.repeat(np.arange(len(nodes)), sample.nodes.shape[1])
    extra_columns = {"row": rows}
    for name, array in (
        ("weight", sample.weights),
        ("edge_id", sample.edge_ids),
        ("probability", getattr(sample, "probabilities", None)),
    ):
        if array is not None:
            extra_columns[name] = array.reshape(-1)
    edge_rows = EdgeResultRows(
        local_ids=nodes.astype(np.int64)[rows],
        remote_ids=sample.nodes.reshape(-1),
        types=sample.types.reshape(-1),
        is_reversed=is_reversed,
        version=sample.version,
        extra_columns=extra_columns,
    )
    return edge_rows if request.draw.options.padded else _drop_missing(edge_rows)


def _drop_missing(rows: RowsT) -> RowsT:
    """Drop the rows without a node."""
    ids = rows.remote_ids if isinstance(rows, EdgeResultRows) else rows.ids
    present = np.flatnonzero(ids >= 0)
    if len(present) == len(ids):
        return rows
    if isinstance(rows, EdgeResultRows):
        return take_rows(rows, present)
    return replace(
        rows,
        ids=rows.ids[present],
        types=rows.types[present],
        extra_columns={name: array[present] for name, array in rows.extra_columns.items()},
    )


CALL_BY_KIND: Mapping[str, DrawCall] = {
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
"""Calls by kind of statement."""
