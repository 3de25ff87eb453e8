"""Reads of neighbors: lists, degrees and sums of weights, in request order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators.reads import check_size, read_rows
from graphd.operators.request_context import REPLY_BYTES, Ids, RequestContext, Sections, Types
from graphd.routing import split_merge

_NEIGHBOR_BYTES = 24
"""Bytes of one neighbor in a reply: id, edge type, weight, edge id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeReadParams:
    """Parameters for reading neighbors and sorting those of each node."""

    edge_types: tuple[int, ...]
    direction: common_pb.Direction
    want_weights: bool
    want_edge_ids: bool
    sort: str
    """Sort order: "" (as stored), "id" or "weight"."""
    top: int = 0
    """Number of heaviest neighbors to read; 0 for all neighbors."""


def neighbors(
    context: RequestContext,
    edge_params: EdgeReadParams,
    nodes: Ids,
    node_type: int,
    types: Types | None,
) -> Sections:
    """Return all neighbors of each node: sections of ReadNeighborsReply."""
    by_weight = edge_params.sort == "weight"
    head = storaged_pb.ReadNeighborsRequest(
        version_ref=context.version_ref(),
        edge_types=edge_params.edge_types,
        node_type=node_type,
        direction=edge_params.direction,
        want_weights=edge_params.want_weights or by_weight,
        want_edge_ids=edge_params.want_edge_ids,
        top=edge_params.top,
        weight=context.weight_name,
    )
    if edge_params.top * len(nodes) * _NEIGHBOR_BYTES > REPLY_BYTES:
        max_nodes = REPLY_BYTES // (_NEIGHBOR_BYTES * edge_params.top)
        raise InvalidRequest(
            f"{edge_params.top} neighbors of {len(nodes)} nodes may not fit into one reply; "
            f"request {max_nodes} nodes at a time"
        )
    plan = split_merge.rows_by_owner(context.space, nodes) or [(0, None)]
    requests = []
    for host, rows in plan:
        sections: Sections = {"ids": split_merge.take_rows(nodes, rows)}
        if types is not None:
            sections["types"] = split_merge.take_rows(types, rows)
        requests.append((host, Frame(head, sections)))
    results = []
    for (_, rows), reply in zip(plan, context.dispatch("read_neighbors", requests), strict=True):
        arrays = dict(reply.arrays)
        results.append((rows, arrays.pop("indptr"), arrays))
    indptr, out = split_merge.merge_ragged(len(nodes), results, context.call.remaining)
    check_size(out, f"the neighbors of {len(nodes)} nodes")
    if by_weight:
        out = split_merge.sort_ragged(
            indptr, out, [-out["weights"], out["ids"]], context.call.remaining
        )
    elif edge_params.sort == "id":
        out = split_merge.sort_ragged(indptr, out, [out["ids"]], context.call.remaining)
    if not edge_params.want_weights:
        out.pop("weights", None)
    return {"indptr": indptr, **out}


def degrees(
    context: RequestContext,
    edge_types: Sequence[int],
    direction: common_pb.Direction,
    nodes: Ids,
    node_type: int,
    types: Types | None,
) -> Sections:
    """Return the number of edges per node and type: section degrees int64[m, types]."""
    head = storaged_pb.ReadDegreesRequest(
        version_ref=context.version_ref(),
        edge_types=edge_types,
        node_type=node_type,
        direction=direction,
    )
    _check_degrees(nodes, edge_types)
    return read_rows(context, "read_degrees", head, nodes, types)


def _check_degrees(nodes: Ids, edge_types: Sequence[int]) -> None:
    if len(nodes) * len(edge_types) * 8 > REPLY_BYTES:
        raise InvalidRequest(
            f"the degrees of {len(nodes)} nodes do not fit into one reply; request "
            f"{REPLY_BYTES // (8 * len(edge_types))} at a time"
        )


def edge_weight_sums(
    context: RequestContext,
    edge_types: Sequence[int],
    direction: common_pb.Direction,
    uniform: bool,
    nodes: Ids,
    node_type: int,
    types: Types | None,
) -> NDArray[np.float64]:
    """Return the weight of each node's edges per type as float64[m, types].

    Sampling by the weights of ``context`` uses these sums.
    """
    head = storaged_pb.ReadDegreesRequest(
        version_ref=context.version_ref(),
        edge_types=edge_types,
        node_type=node_type,
        direction=direction,
        type_weights=True,
        uniform=uniform,
        weight=context.weight_name,
    )
    _check_degrees(nodes, edge_types)
    return read_rows(context, "read_degrees", head, nodes, types)["type_weights"]
