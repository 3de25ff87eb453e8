"""Layer-wise sampling: nodes drawn jointly for all nodes of the previous layer.

Also reads the edges between two layers, and between two lists of nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from asterism_graphkit.operators import layers
from asterism_graphkit.random import rng
from asterism_graphkit.random.partition_choice import group_by_key
from asterism_graphkit.relabel.relabel import Relabeling
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators import full_neighborhood, neighbor_reads
from graphd.operators.request_context import REPLY_BYTES, Ids, RequestContext, Sections, Types
from graphd.routing import split_merge

_MAX_TREES = (1 << 31) - 1
"""Maximum of layers times node types: an int32 encodes a candidate's layer and type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerParams:
    """Parameters of one layer."""

    edge_types: tuple[int, ...]
    count: int
    replace: bool
    uniform: bool
    direction: common_pb.Direction
    measure: int
    seed: int
    hop: int
    want_edge_ids: bool


def sample_layer(
    context: RequestContext,
    params: LayerParams,
    count: int,
    nodes: Ids,
    node_type: int,
    types: Types | None,
) -> Sections:
    """Sample ``params.count`` nodes for each of the ``count`` layers in ``nodes``.

    The sections are those of SampleLayerReply.

    Notes
    -----
    Candidates are the distinct neighbors of a layer's nodes, in the order in which edges first lead
    to them: by (node of the layer, edge type as requested, neighbor id, edge id). A node that is in
    a layer twice counts twice. All edges are read, so that a candidate's measure is summed in that
    order, whichever hosts hold the edges. Part of the sampling contract: changing it changes
    results for a given seed."""
    width, type_count = len(nodes) // max(count, 1), len(context.space.schema.node_types)
    if count * max(params.count * 20, 1) > REPLY_BYTES or count * type_count > _MAX_TREES:
        raise InvalidRequest(
            f"{params.count} nodes for each of {count} layers do not fit into one reply; sample "
            "fewer layers at a time"
        )
    edge_params = neighbor_reads.EdgeReadParams(
        edge_types=params.edge_types,
        direction=params.direction,
        want_weights=True,
        want_edge_ids=params.want_edge_ids,
        sort="",
    )
    edges = full_neighborhood.read_edges(
        context, edge_params, nodes, node_type, types, subject="layer"
    )
    indptr, neighbor_types = edges["indptr"], _neighbor_types(context, params)[edges["types"]]
    layer_of_edge = np.repeat(
        np.arange(len(nodes), dtype=np.int64) // max(width, 1), np.diff(indptr)
    )
    relabeling = Relabeling()
    indices = relabeling.assign(
        edges["ids"],
        (layer_of_edge * type_count + neighbor_types).astype(np.int32),
        checkpoint=context.call.remaining,
    )
    # Edges are ordered by layer, and so are their remote ends.
    starts = np.searchsorted(relabeling.trees // type_count, np.arange(count + 1)).astype(np.int64)
    measures = layers.candidate_measures(
        indptr,
        indices,
        None if params.uniform else edges["weights"],
        params.measure,
        len(relabeling),
    )
    chosen, probabilities = layers.draw(
        rng.key_of(params.seed, rng.LAYER, params.hop),
        starts,
        measures,
        params.count,
        replace=params.replace,
        checkpoint=context.call.remaining,
    )
    is_drawn = chosen >= 0
    out: Sections = {
        "ids": np.where(is_drawn, np.append(relabeling.ids, -1)[chosen], -1),
        "kinds": np.where(
            is_drawn, np.append(relabeling.trees % type_count, -1)[chosen], -1
        ).astype(np.int32),
        "probabilities": probabilities,
    }
    return out | _drawn_edges(edges, indices, chosen, len(relabeling))


def _drawn_edges(edges: Sections, indices: Types, chosen: Ids, candidate_count: int) -> Sections:
    """Return the edges to sampled nodes, once per draw of their remote end."""
    draws = np.flatnonzero(chosen >= 0)
    order, offsets = group_by_key(chosen[draws].astype(np.int32), candidate_count)
    columns = {name: edges[name] for name in ("types", "weights", "eids") if name in edges}
    description = (
        "the edges between the layers",
        "sample fewer nodes, fewer layers at a time, or no edge ids",
    )
    width = 8 + 8 + sum(column.itemsize for column in columns.values())
    _check_bytes(int(np.diff(offsets)[indices].sum()) * width, *description)
    indptr, cols = split_merge.gather_ragged(offsets, draws[order], indices.astype(np.int64))
    repeats = np.diff(indptr)
    rows = np.repeat(np.arange(len(edges["indptr"]) - 1, dtype=np.int64), np.diff(edges["indptr"]))
    out: Sections = {
        "rows": np.repeat(rows, repeats),
        "cols": cols,
        **{name: np.repeat(column, repeats) for name, column in columns.items()},
    }
    return out


def sample_layers(
    context: RequestContext,
    hops: Sequence[LayerParams],
    count: int,
    nodes: Ids,
    node_type: int,
    types: Types | None,
) -> Sections:
    """Sample layer after layer; the sections are named ``name.hop``."""
    out: Sections = {}
    for h, params in enumerate(hops):
        sections = sample_layer(context, params, count, nodes, node_type, types)
        out |= {f"{name}.{h}": array for name, array in sections.items()}
        nodes, node_type, types = sections["ids"], -1, sections["kinds"]
    _check_size(out, "the layers", "sample fewer nodes, fewer layers at a time, or hop by hop")
    return out


def _neighbor_types(context: RequestContext, params: LayerParams) -> Types:
    """Return the node type that each edge type of the schema leads to."""
    schema = context.space.schema
    ends = [
        schema.node_type_id(edge.dst_type if params.direction == common_pb.OUT else edge.src_type)
        for edge in schema.edge_types
    ]
    return np.array(ends, np.int32)


def read_adjacency(
    context: RequestContext,
    edge_params: neighbor_reads.EdgeReadParams,
    nodes: Ids,
    node_type: int,
    types: Types | None,
    cols: Ids,
    col_types: Types | None,
) -> Sections:
    """Return the edges from ``nodes`` to ``cols``: sections of AdjacencyReply."""
    sizes, out = edges_between(context, edge_params, nodes, node_type, types, cols, col_types)
    width = 8 + 8 + 4 + 4 * edge_params.want_weights + 8 * edge_params.want_edge_ids
    _check_bytes(len(out["cols"]) * width, *_edges_description(len(nodes), len(cols)))
    out["rows"], out["cols"] = (
        np.repeat(np.arange(len(nodes), dtype=np.int64), sizes),
        out["cols"].astype(np.int64),
    )
    if "types" not in out:
        out["types"] = np.full(len(out["cols"]), edge_params.edge_types[0], np.int32)
    return out


def edges_between(
    context: RequestContext,
    edge_params: neighbor_reads.EdgeReadParams,
    nodes: Ids,
    node_type: int,
    types: Types | None,
    cols: Ids,
    col_types: Types | None,
    groups: tuple[Types, Types] | None = None,
) -> tuple[Types, Sections]:
    """Return how many edges of each node lead to ``cols``, or to those of its group.

    Also returns their sections: int32 cols, and types if several edge types are requested.
    """
    head = storaged_pb.ReadInducedEdgesRequest(
        version_ref=context.version_ref(),
        edge_types=edge_params.edge_types,
        node_type=node_type,
        direction=edge_params.direction,
        want_weights=edge_params.want_weights,
        want_edge_ids=edge_params.want_edge_ids,
        weight=context.weight_name,
    )
    column_sections: Sections = (
        {"cols": cols} if col_types is None else {"cols": cols, "col_types": col_types}
    )
    if groups is not None:
        column_sections["col_groups"] = groups[1]
    plan = split_merge.rows_by_owner(context.space, nodes) or [(0, None)]
    requests = []
    for host, rows in plan:
        sections: Sections = {"ids": split_merge.take_rows(nodes, rows), **column_sections}
        if types is not None:
            sections["types"] = split_merge.take_rows(types, rows)
        if groups is not None:
            sections["groups"] = split_merge.take_rows(groups[0], rows)
        requests.append((host, Frame(head, sections)))
    results = []
    for (_, rows), reply in zip(
        plan, context.dispatch("read_induced_edges", requests), strict=True
    ):
        arrays = dict(reply.arrays)
        results.append((rows, arrays.pop("counts"), arrays))
    return split_merge.merge_counted(len(nodes), results, context.call.remaining)


def check_edges_size(sections: Sections, nodes: int, cols: int) -> None:
    """Raise InvalidRequest if the edges do not fit into a reply."""
    _check_size(sections, *_edges_description(nodes, cols))


def _edges_description(nodes: int, cols: int) -> tuple[str, str]:
    return f"the edges from {nodes} nodes to {cols}", "request fewer rows at a time"


def _check_size(sections: Sections, subject: str, remedy: str) -> None:
    _check_bytes(sum(array.nbytes for array in sections.values()), subject, remedy)


def _check_bytes(size: int, subject: str, remedy: str) -> None:
    if size > REPLY_BYTES:
        raise InvalidRequest(
            f"{subject} have {size:,} bytes: expected at most {REPLY_BYTES:,} in one reply; "
            f"{remedy}"
        )
