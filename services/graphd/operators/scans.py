"""Scans of partitions, and rows at positions of a type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from google.protobuf.message import Message

from asterism_model.elements import EDGE, NODE
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators.reads import check_columns, edge_features, rows_per_reply
from graphd.operators.request_context import REPLY_BYTES, Ids, RequestContext, Sections
from graphd.routing import split_merge


def scan_nodes(
    context: RequestContext, type_id: int, part: int, cursor: int, limit: int, names: Sequence[str]
) -> tuple[Sections, int]:
    """Return consecutive nodes of one partition by id, and the next cursor (-1 at the end)."""
    schema_type = context.space.schema.node_types[type_id]
    check_columns(schema_type, names)
    head = storaged_pb.ReadNodesRequest(
        version_ref=context.version_ref(),
        type_id=type_id,
        part=part,
        cursor=cursor,
        limit=rows_per_reply(schema_type, names, limit, 12),
        names=names,
        weight=context.weight_name,
    )
    reply = _call_part(context, "read_nodes", part, head)
    return dict(reply.arrays), reply.with_head(storaged_pb.ReadNodesReply).head.next_cursor


def nodes_at(context: RequestContext, type_id: int, positions: Ids) -> tuple[Sections, int]:
    """Return nodes of a type by position in a scan of all partitions, and the node count."""
    description = f"nodes of type {context.space.schema.node_types[type_id].name!r}"
    head = storaged_pb.ReadNodesAtRequest(version_ref=context.version_ref(), type_id=type_id)
    sections, count = _read_places(
        context, NODE, type_id, positions, "read_nodes_at", head, description, 8
    )
    return sections or {"ids": np.zeros(0, np.int64)}, count


def edges_at(context: RequestContext, type_id: int, positions: Ids) -> tuple[Sections, int]:
    """Return edges of a type by position in a scan of all partitions, and the edge count."""
    description = f"edges of type {context.space.schema.edge_types[type_id].name!r}"
    head = storaged_pb.ReadEdgesAtRequest(
        version_ref=context.version_ref(), type_id=type_id, weight=context.weight_name
    )
    sections, count = _read_places(
        context, EDGE, type_id, positions, "read_edges_at", head, description, 28
    )
    empty: Sections = {name: np.zeros(0, np.int64) for name in ("src", "dst", "eids")} | {
        "weights": np.zeros(0, np.float32)
    }
    return sections or empty, count


def _read_places(
    context: RequestContext,
    element: int,
    type_id: int,
    positions: Ids,
    method: str,
    head: Message,
    description: str,
    row_bytes: int,
) -> tuple[Sections, int]:
    """Return rows by position, and the number of rows; no sections without positions."""
    ends = np.cumsum(context.version.totals.part_counts(element, type_id))
    count = int(ends[-1])
    if positions.size and not 0 <= int(positions.min()) <= int(positions.max()) < count:
        index = int(np.argmax((positions < 0) | (positions >= count)))
        raise InvalidRequest(
            f"places[{index}] = {positions[index]}: there are {count} {description}"
        )
    if len(positions) * row_bytes > REPLY_BYTES:
        raise InvalidRequest(
            f"{len(positions)} {description} do not fit into one reply; request "
            f"{REPLY_BYTES // row_bytes} at a time"
        )
    if not positions.size:
        return {}, count
    part = np.searchsorted(ends, positions, side="right").astype(np.int32)
    positions_in_part = positions - np.concatenate([[0], ends])[part]
    plan = split_merge.rows_by_host(context.space, part)
    requests = [
        (host, Frame(head, {"parts": part[rows], "places": positions_in_part[rows]}))
        for host, rows in plan
    ]
    replies = context.dispatch(method, requests)
    return split_merge.merge_rows(
        len(positions),
        [(rows, reply.arrays) for (_, rows), reply in zip(plan, replies, strict=True)],
        context.call.remaining,
    ), count


def scan_edges(
    context: RequestContext, type_id: int, part: int, cursor: int, limit: int, names: Sequence[str]
) -> tuple[Sections, int]:
    """Return consecutive edges of one partition in out-adjacency order, and the next cursor.

    Features are read by edge id.
    """
    schema_type = context.space.schema.edge_types[type_id]
    check_columns(schema_type, names)
    head = storaged_pb.ReadEdgesRequest(
        version_ref=context.version_ref(),
        type_id=type_id,
        part=part,
        cursor=cursor,
        limit=rows_per_reply(schema_type, names, limit, 28),
        weight=context.weight_name,
    )
    reply = _call_part(context, "read_edges", part, head)
    sections: Sections = dict(reply.arrays)
    if names:
        columns = edge_features(context, type_id, names, sections["eids"])
        sections |= {name: array for name, array in columns.items() if name.startswith("f:")}
    return sections, reply.with_head(storaged_pb.ReadEdgesReply).head.next_cursor


def _call_part(context: RequestContext, name: str, part: int, head: Message) -> Frame[Message]:
    parts = context.space.schema.parts
    if not 0 <= part < parts:
        raise InvalidRequest(
            f"part {part}: space {context.space.name!r} has parts 0 to {parts - 1}"
        )
    return context.dispatch(name, [(int(context.space.host_of_part[part]), Frame(head))])[0]
