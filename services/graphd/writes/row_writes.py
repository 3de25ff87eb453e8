"""Write rows as blocks to the partitions that own them; durable when a call returns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_graphkit.random.partition_choice import group_by_key, part_of
from asterism_model import string_ids
from asterism_model.schema import EdgeType
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.routing import split_merge
from graphd.routing.dispatch import Dispatcher
from graphd.routing.routes import SpaceRoute
from graphd.writes.validation import check_distinct_ids

Ids = NDArray[np.int64]
Sections = dict[str, NDArray[Any]]

MESSAGE_BYTES = 40 << 20
"""Maximum bytes of arrays in one WriteBlocks; larger runs of partitions are divided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteContext:
    """Context of one write: routes, dispatch, and the load and chunk that it belongs to."""

    space: SpaceRoute
    dispatcher: Dispatcher
    call: CallContext
    load_id: int
    chunk: int
    committed_loads: Callable[[], Sequence[int]]
    """Returns the committed loads, in commit order."""
    hosts: set[str] = field(default_factory=set)
    """Uuids of the storageds that received blocks."""

    def parts_of_ids(self, ids: Ids) -> NDArray[np.int32]:
        """Return the partition of each node id."""
        return part_of(ids, self.space.schema.parts, self.space.schema.placement)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionedRows:
    """Rows of one kind and type, and the partition of each."""

    kind: storaged_pb.BlockKind
    type_id: int
    parts: NDArray[np.int32]
    sections: Sections


def write_rows(
    context: WriteContext,
    kind: int,
    type_id: int,
    first_edge_id: int,
    arrays: Mapping[str, NDArray[Any]],
    *,
    ends_known: bool,
) -> None:
    """Write one chunk's rows to all partitions that they touch.

    The rows have passed `graphd.writes.validation`.
    """
    sections: Sections = dict(arrays)
    if kind == storaged_pb.NODES:
        write_nodes(context, type_id, sections)
    elif kind == storaged_pb.OUT_EDGES:
        write_edges(context, type_id, first_edge_id, sections, ends_known=ends_known)
    elif kind == storaged_pb.NODE_DELETES:
        delete_nodes(context, type_id, sections)
    else:
        delete_edges(context, type_id, sections)


def write_nodes(context: WriteContext, type_id: int, sections: Sections) -> None:
    """Write nodes with weights and features to their partitions, and times to every one."""
    _check_one_type(context, type_id, sections["ids"])
    time, parts = (
        context.space.schema.node_types[type_id].time,
        context.parts_of_ids(sections["ids"]),
    )
    if time and f"f:{time}" in sections:
        _send_to_all_parts(
            context,
            storaged_pb.NODE_TIMES,
            type_id,
            {"ids": sections["ids"], f"w:{time}": sections[f"f:{time}"]},
        )
    _send(
        context,
        [PartitionedRows(kind=storaged_pb.NODES, type_id=type_id, parts=parts, sections=sections)],
    )


def write_edges(
    context: WriteContext, type_id: int, first_edge_id: int, sections: Sections, *, ends_known: bool
) -> None:
    """Write edges to the partitions of their sources, destinations and edge ids.

    The sources' partitions get the primary copy, the destinations' partitions the in-copies, and
    the partitions of the edge ids the features. Edge ids are ``first_edge_id`` + row. Missing end
    nodes are created if the type declares ``missing: create``. Otherwise their existence is
    checked, unless the client has checked it."""
    schema = context.space.schema
    edge_type = schema.edge_types[type_id]
    eid = first_edge_id + np.arange(len(sections["src"]), dtype=np.int64)
    edge_columns: Sections = {"src": sections["src"], "dst": sections["dst"], "eid": eid}
    if "weight" in sections:
        edge_columns["weight"] = sections["weight"]
    edge_columns |= {
        f"w:{name}": sections[f"f:{name}"]
        for name in edge_type.edge_columns
        if f"f:{name}" in sections
    }
    blocks = [
        PartitionedRows(
            kind=storaged_pb.OUT_EDGES,
            type_id=type_id,
            parts=context.parts_of_ids(edge_columns["src"]),
            sections=edge_columns,
        )
    ]
    if schema.has_in:
        blocks.append(
            PartitionedRows(
                kind=storaged_pb.IN_EDGES,
                type_id=type_id,
                parts=context.parts_of_ids(edge_columns["dst"]),
                sections=edge_columns,
            )
        )
    features = {name: array for name, array in sections.items() if name.startswith("f:")}
    if features:
        feature_parts = (eid % schema.parts).astype(np.int32)
        blocks.append(
            PartitionedRows(
                kind=storaged_pb.EDGE_FEATURES,
                type_id=type_id,
                parts=feature_parts,
                sections={"eid": eid, **features},
            )
        )
    if edge_type.missing == "create":
        blocks += _missing_ends(context, edge_type, sections)
    elif not ends_known:
        check_ends(context, type_id, sections)
    _send(context, blocks)


def delete_nodes(context: WriteContext, type_id: int, sections: Sections) -> None:
    """Write tombstones of nodes to every partition: edges to them may be in any partition."""
    _send_to_all_parts(context, storaged_pb.NODE_DELETES, type_id, {"ids": sections["ids"]})


def resolve_revivals(context: WriteContext, loads: Sequence[int]) -> bool:
    """Send every partition the deleted nodes that the load revives.

    Return True if the load deletes nodes. Deleted means deleted after ``loads``. A partition cannot
    know if the remote end of an edge is alive. It therefore receives all deletes, and so all
    revivals that follow one. Sending a revival twice writes the same entry twice."""
    hosts = range(len(context.space.hosts))
    head = storaged_pb.ListRevivalsRequest(
        space_id=context.space.space_id, load_id=context.load_id, loads=loads
    )
    replies = context.dispatcher.dispatch(
        "list_revivals", context.space, [(host, Frame(head)) for host in hosts], context.call
    )
    revived_chunks = {
        pair
        for reply in replies
        for pair in zip(
            reply.array("types", "int32").tolist(),
            reply.array("chunks", "int64").tolist(),
            strict=True,
        )
    }
    for type_id, chunk in sorted(revived_chunks):
        request = storaged_pb.ReadRevivalsRequest(
            space_id=head.space_id, load_id=head.load_id, loads=loads, type_id=type_id, chunk=chunk
        )
        revivals = context.dispatcher.dispatch(
            "read_revivals", context.space, [(host, Frame(request)) for host in hosts], context.call
        )
        ids = np.unique(np.concatenate([reply.array("ids", "int64") for reply in revivals]))
        _send_to_all_parts(
            replace(context, chunk=chunk), storaged_pb.NODE_REVIVALS, type_id, {"ids": ids}
        )
    return any(reply.with_head(storaged_pb.ListRevivalsReply).head.deletes for reply in replies)


def seal(context: WriteContext, hosts: Collection[str], number: int) -> list[metad_pb.HostSeal]:
    """Seal the load on some hosts; return their fingerprints of the written data."""
    host_indices = [
        context.space.hosts.index(uuid) for uuid in hosts if uuid in context.space.hosts
    ]
    head = storaged_pb.SealLoadRequest(
        space_id=context.space.space_id, load_id=context.load_id, number=number
    )
    replies = context.dispatcher.dispatch(
        "seal_load",
        context.space,
        [(host_index, Frame(head)) for host_index in host_indices],
        context.call,
    )
    seals = []
    for host_index, reply in zip(host_indices, replies, strict=True):
        sealed = reply.with_head(storaged_pb.SealLoadReply).head
        seals.append(
            metad_pb.HostSeal(
                host=context.space.hosts[host_index], number=sealed.number, parts=sealed.parts
            )
        )
    return seals


def delete_edges(context: WriteContext, type_id: int, sections: Sections) -> None:
    """Write tombstones of edges to the sources' partitions, and to those of in-copies."""
    blocks = [
        PartitionedRows(
            kind=storaged_pb.OUT_EDGE_DELETES,
            type_id=type_id,
            parts=context.parts_of_ids(sections["src"]),
            sections=sections,
        )
    ]
    if context.space.schema.has_in:
        blocks.append(
            PartitionedRows(
                kind=storaged_pb.IN_EDGE_DELETES,
                type_id=type_id,
                parts=context.parts_of_ids(sections["dst"]),
                sections=sections,
            )
        )
    _send(context, blocks)


def nodes_exist(context: WriteContext, type_id: int, ids: Ids) -> NDArray[np.uint8]:
    """Return uint8[n]: 1 for each id that is a node, committed or written by this load."""
    head = storaged_pb.ExistsRequest(
        space_id=context.space.space_id,
        type_id=type_id,
        load_id=context.load_id,
        loads=context.committed_loads(),
    )
    plan = split_merge.rows_by_owner(context.space, ids)
    requests = [
        (host, Frame(head, {"ids": split_merge.take_rows(ids, rows)})) for host, rows in plan
    ]
    replies = context.dispatcher.dispatch("exists", context.space, requests, context.call)
    results = [
        (rows, {"exists": reply.array("exists", "uint8")})
        for (_, rows), reply in zip(plan, replies, strict=True)
    ]
    return split_merge.merge_rows(len(ids), results).get("exists", np.zeros(len(ids), np.uint8))


def check_ends(context: WriteContext, type_id: int, sections: Mapping[str, NDArray[Any]]) -> None:
    """Raise InvalidRequest if an end node is missing and the type does not create it."""
    edge_type = context.space.schema.edge_types[type_id]
    if edge_type.missing == "create":
        return
    for name, end in (("src", edge_type.src_type), ("dst", edge_type.dst_type)):
        is_present = nodes_exist(context, context.space.schema.node_type_id(end), sections[name])
        if not is_present.all():
            index = int(np.argmin(is_present))
            raise InvalidRequest(
                f"{name}[{index}] = {sections[name][index]}: there is no {end!r} node with this "
                f"id; write it first, or declare {edge_type.name!r} with `missing: create`"
            )


def _check_one_type(context: WriteContext, type_id: int, ids: Ids) -> None:
    """Raise InvalidRequest if an id is already a node of another type.

    Applies to spaces with global ids.
    """
    schema = context.space.schema
    others = range(len(schema.node_types)) if schema.ids == "global" else ()
    for other in others:
        conflicts = nodes_exist(context, other, ids) if other != type_id else np.zeros(0, np.uint8)
        if conflicts.any():
            index = int(np.argmax(conflicts))
            name = schema.node_types[other].name
            raise InvalidRequest(
                f"ids[{index}] = {ids[index]}: a node of type {name!r} has this id, and ids are "
                "unique over all types here; delete it first"
            )


def _missing_ends(
    context: WriteContext, edge_type: EdgeType, sections: Sections
) -> Iterator[PartitionedRows]:
    """Yield blocks of missing end nodes, with weight 1 and features as if omitted."""
    schema = context.space.schema
    if schema.has_string_ids:
        yield from _named_ends(context, edge_type, sections)
        return
    ends: dict[int, list[Ids]] = {}
    for name, end in (("src", edge_type.src_type), ("dst", edge_type.dst_type)):
        ends.setdefault(schema.node_type_id(end), []).append(sections[name])
    for type_id, ids in ends.items():
        unique = np.unique(np.concatenate(ids))
        new = unique[nodes_exist(context, type_id, unique) == 0]
        if new.size:
            _check_one_type(context, type_id, new)
            yield PartitionedRows(
                kind=storaged_pb.NODES,
                type_id=type_id,
                parts=context.parts_of_ids(new),
                sections={"ids": new},
            )


def _named_ends(
    context: WriteContext, edge_type: EdgeType, sections: Sections
) -> Iterator[PartitionedRows]:
    """Yield blocks of all end nodes with their string ids.

    Existing nodes do not change, and a build detects an id that belongs to another string.
    """
    schema = context.space.schema
    ends: dict[int, list[str]] = {}
    for name, end in (("src", edge_type.src_type), ("dst", edge_type.dst_type)):
        ends.setdefault(schema.node_type_id(end), []).append(name)
    for type_id, end_names in ends.items():
        ids = np.concatenate([sections[end_name] for end_name in end_names])
        name_indptr = split_merge.indptr_of(
            np.concatenate(
                [np.diff(sections[f"{end_name}_names.indptr"]) for end_name in end_names]
            )
        )
        values = np.concatenate([sections[f"{end_name}_names.values"] for end_name in end_names])
        check_distinct_ids(schema, schema.node_types[type_id].name, ids, (name_indptr, values))
        unique, first = np.unique(ids, return_index=True)
        indptr, unique_values = split_merge.gather_ragged(name_indptr, values, first)
        stem = f"f:{string_ids.ID_COLUMN}"
        node_sections: Sections = {
            "ids": unique,
            f"{stem}.indptr": indptr,
            f"{stem}.values": unique_values,
        }
        yield PartitionedRows(
            kind=storaged_pb.NODES,
            type_id=type_id,
            parts=context.parts_of_ids(unique),
            sections=node_sections,
        )


def _send_to_all_parts(
    context: WriteContext, kind: storaged_pb.BlockKind, type_id: int, sections: Sections
) -> None:
    """Send the same rows to every partition, a few at a time to bound the copies."""
    rows = len(sections["ids"])
    step = max(1, MESSAGE_BYTES // max(sum(array.nbytes for array in sections.values()), 1))
    for first in range(0, context.space.schema.parts, step):
        parts = np.arange(first, min(first + step, context.space.schema.parts), dtype=np.int32)
        tiled = {name: np.tile(array, len(parts)) for name, array in sections.items()}
        _send(
            context,
            [
                PartitionedRows(
                    kind=kind, type_id=type_id, parts=np.repeat(parts, rows), sections=tiled
                )
            ],
        )


def _send(context: WriteContext, blocks: Sequence[PartitionedRows]) -> None:
    """Send all hosts their blocks concurrently, and wait until all are durable."""
    requests = [request for block in blocks for request in _requests(context, block)]
    context.hosts.update(context.space.hosts[host] for host, _ in requests)
    context.dispatcher.dispatch("write_blocks", context.space, requests, context.call)


def _requests(
    context: WriteContext, block: PartitionedRows
) -> Iterator[tuple[int, Frame[storaged_pb.WriteBlocksRequest]]]:
    """Yield the WriteBlocks of one kind: per host, runs of partitions that fit a message."""
    space = context.space
    order, offsets = group_by_key(block.parts, space.schema.parts)
    row_bytes = sum(array.nbytes for array in block.sections.values()) / max(len(block.parts), 1)
    for host in range(len(space.hosts)):
        batch: list[int] = []
        size = 0
        for part in space.parts_of(host):
            rows = int(offsets[part + 1] - offsets[part])
            if not rows:
                continue
            if batch and (size + rows) * row_bytes > MESSAGE_BYTES:
                yield host, _frame(context, block, batch, order, offsets)
                batch, size = [], 0
            batch.append(part)
            size += rows
        if batch:
            yield host, _frame(context, block, batch, order, offsets)


def _frame(
    context: WriteContext, block: PartitionedRows, parts: list[int], order: Ids, offsets: Ids
) -> Frame[storaged_pb.WriteBlocksRequest]:
    head = storaged_pb.WriteBlocksRequest(
        space_id=context.space.space_id,
        load_id=context.load_id,
        chunk=context.chunk,
        kind=block.kind,
        type_id=block.type_id,
        parts=parts,
    )
    rows = np.concatenate([order[offsets[part] : offsets[part + 1]] for part in parts])
    lengths = np.array([offsets[part + 1] - offsets[part] for part in parts], np.int64)
    return Frame(
        head, {"offsets": split_merge.indptr_of(lengths), **_take_sections(block.sections, rows)}
    )


def _take_sections(sections: Mapping[str, NDArray[Any]], rows: Ids) -> Sections:
    """Return rows of every section; ragged indptrs are relative to the first row."""
    out: Sections = {}
    for name, array in sections.items():
        if name.endswith(".values") and f"{name[:-7]}.indptr" in sections:
            continue
        if name.endswith(".indptr") and f"{name[:-7]}.values" in sections:
            values = f"{name[:-7]}.values"
            out[name], out[values] = split_merge.gather_ragged(array, sections[values], rows)
        else:
            out[name] = array[rows]
    return out
