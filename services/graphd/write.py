"""Writing: a chunk's rows to the parts that own them, as blocks; durable everywhere once it returns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto import names
from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import EdgeType
from asterism_proto.v1 import metad_pb2 as meta
from asterism_proto.v1 import storaged_pb2 as store
from daemonkit.calls import Call
from graphd import split
from graphd.fanout import Fanout
from graphd.route import Space
from graphd.rows import check_distinct
from graphkit.split import group, part_of

Ids = NDArray[np.int64]
Sections = dict[str, NDArray[Any]]

MESSAGE_BYTES = 40 << 20
"""Of the arrays of one WriteBlocks; larger runs of parts go in several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """One write's surroundings."""

    space: Space
    fanout: Fanout
    call: Call
    load_id: int
    chunk: int
    committed: Callable[[], Sequence[int]]
    """Gives the loads that count, in commit order."""
    hosts: set[str] = field(default_factory=set)
    """Uuids of the storageds that blocks were sent to."""

    def ids_part(self, ids: Ids) -> NDArray[np.int32]:
        """The part of each node id."""
        return part_of(ids, self.space.schema.parts, self.space.schema.placement)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Rows of one kind and type, and the part of each."""

    kind: store.BlockKind
    type_id: int
    parts: NDArray[np.int32]
    sections: Sections


def rows(writing: Writing, kind: int, type_id: int, base: int, arrays: Mapping[str, NDArray[Any]], *, ends_known: bool) -> None:
    """One chunk's rows, checked before (`graphd.rows`), to all parts that they touch."""
    sections: Sections = dict(arrays)
    if kind == store.NODES:
        nodes(writing, type_id, sections)
    elif kind == store.OUT_EDGES:
        edges(writing, type_id, base, sections, ends_known=ends_known)
    elif kind == store.NODE_DELETES:
        delete_nodes(writing, type_id, sections)
    else:
        delete_edges(writing, type_id, sections)


def nodes(writing: Writing, type_id: int, sections: Sections) -> None:
    """Nodes, with weights and features, at the parts of their ids; their times at every part."""
    _check_one_type(writing, type_id, sections["ids"])
    time, parts = writing.space.schema.node_types[type_id].time, writing.ids_part(sections["ids"])
    if time and f"f:{time}" in sections:
        _everywhere(writing, store.NODE_TIMES, type_id, {"ids": sections["ids"], f"w:{time}": sections[f"f:{time}"]})
    _send(writing, [Blocks(kind=store.NODES, type_id=type_id, parts=parts, sections=sections)])


def edges(writing: Writing, type_id: int, base: int, sections: Sections, *, ends_known: bool) -> None:
    """Edges: the truth at their sources' parts, in-copies at their destinations', features at those of their edge ids.

    Edge ids are ``base`` + row. Where the type says so, ends that do not exist are made; elsewhere they are looked for,
    unless the client did.
    """
    schema = writing.space.schema
    edge_type = schema.edge_types[type_id]
    eid = base + np.arange(len(sections["src"]), dtype=np.int64)
    near: Sections = {"src": sections["src"], "dst": sections["dst"], "eid": eid}
    if "weight" in sections:
        near["weight"] = sections["weight"]
    near |= {f"w:{name}": sections[f"f:{name}"] for name in edge_type.near_columns if f"f:{name}" in sections}
    blocks = [Blocks(kind=store.OUT_EDGES, type_id=type_id, parts=writing.ids_part(near["src"]), sections=near)]
    if schema.has_in:
        blocks.append(Blocks(kind=store.IN_EDGES, type_id=type_id, parts=writing.ids_part(near["dst"]), sections=near))
    features = {name: array for name, array in sections.items() if name.startswith("f:")}
    if features:
        at = (eid % schema.parts).astype(np.int32)
        blocks.append(Blocks(kind=store.EDGE_FEATURES, type_id=type_id, parts=at, sections={"eid": eid, **features}))
    if edge_type.missing == "create":
        blocks += _missing_ends(writing, edge_type, sections)
    elif not ends_known:
        check_ends(writing, type_id, sections)
    _send(writing, blocks)


def delete_nodes(writing: Writing, type_id: int, sections: Sections) -> None:
    """Tombstones of nodes, at every part: edges to them may be anywhere."""
    _everywhere(writing, store.NODE_DELETES, type_id, {"ids": sections["ids"]})


def settle(writing: Writing, loads: Sequence[int]) -> bool:
    """Tell every part which nodes the load brings back that are deleted after ``loads``; gives whether it deletes nodes.

    A part can not tell by itself whether the far end of an edge is alive: it hears of all deletes, and so of all births that
    follow one. What is told twice is written twice the same.
    """
    hosts = range(len(writing.space.hosts))
    head = store.ListBirthsRequest(space_id=writing.space.space_id, load_id=writing.load_id, loads=loads)
    replies = writing.fanout.ask("list_births", writing.space, [(host, Frame(head)) for host in hosts], writing.call)
    found = {pair for reply in replies for pair in zip(reply.array("types", "int32").tolist(), reply.array("chunks", "int64").tolist(), strict=True)}
    for type_id, chunk in sorted(found):
        asked = store.ReadBirthsRequest(space_id=head.space_id, load_id=head.load_id, loads=loads, type_id=type_id, chunk=chunk)
        born = writing.fanout.ask("read_births", writing.space, [(host, Frame(asked)) for host in hosts], writing.call)
        ids = np.unique(np.concatenate([reply.array("ids", "int64") for reply in born]))
        _everywhere(replace(writing, chunk=chunk), store.NODE_BIRTHS, type_id, {"ids": ids})
    return any(reply.head.deletes for reply in replies)  # type: ignore[attr-defined]  # a ListBirthsReply


def seal(writing: Writing, hosts: Collection[str], number: int) -> list[meta.HostSeal]:
    """Seal the load on some hosts, and return their fingerprints of what was written."""
    places = [writing.space.hosts.index(uuid) for uuid in hosts if uuid in writing.space.hosts]
    head = store.SealLoadRequest(space_id=writing.space.space_id, load_id=writing.load_id, number=number)
    replies = writing.fanout.ask("seal_load", writing.space, [(place, Frame(head)) for place in places], writing.call)
    found = []
    for place, reply in zip(places, replies, strict=True):
        sealed: Any = reply.head
        found.append(meta.HostSeal(host=writing.space.hosts[place], number=sealed.number, parts=sealed.parts))
    return found


def delete_edges(writing: Writing, type_id: int, sections: Sections) -> None:
    """Tombstones of edges, at the parts of both ends where in-copies are kept."""
    blocks = [Blocks(kind=store.OUT_EDGE_DELETES, type_id=type_id, parts=writing.ids_part(sections["src"]), sections=sections)]
    if writing.space.schema.has_in:
        blocks.append(Blocks(kind=store.IN_EDGE_DELETES, type_id=type_id, parts=writing.ids_part(sections["dst"]), sections=sections))
    _send(writing, blocks)


def exists(writing: Writing, type_id: int, ids: Ids) -> NDArray[np.uint8]:
    """uint8[n]: which ids are nodes, committed or written by this load."""
    head = store.ExistsRequest(space_id=writing.space.space_id, type_id=type_id, load_id=writing.load_id, loads=writing.committed())
    plan = split.owners(writing.space, ids)
    asked = [(host, Frame(head, {"ids": split.taken(ids, rows)})) for host, rows in plan]
    replies = writing.fanout.ask("exists", writing.space, asked, writing.call)
    answers = [(rows, {"exists": reply.array("exists", "uint8")}) for (_, rows), reply in zip(plan, replies, strict=True)]
    return split.merged(len(ids), answers).get("exists", np.zeros(len(ids), np.uint8))


def check_ends(writing: Writing, type_id: int, sections: Mapping[str, NDArray[Any]]) -> None:
    """InvalidRequest where an end is no node, unless the type says that it is made."""
    edge_type = writing.space.schema.edge_types[type_id]
    if edge_type.missing == "create":
        return
    for name, end in (("src", edge_type.src_type), ("dst", edge_type.dst_type)):
        found = exists(writing, writing.space.schema.node_type_id(end), sections[name])
        if not found.all():
            at = int(np.argmin(found))
            raise InvalidRequest(
                f"{name}[{at}] = {sections[name][at]}: no such {end!r} node; write it first, or declare {edge_type.name!r} missing: create"
            )


def _check_one_type(writing: Writing, type_id: int, ids: Ids) -> None:
    """InvalidRequest where an id is a node of another type already, in a space whose ids are global."""
    schema = writing.space.schema
    others = range(len(schema.node_types)) if schema.ids == "global" else ()
    for other in others:
        taken = exists(writing, other, ids) if other != type_id else np.zeros(0, np.uint8)
        if taken.any():
            at = int(np.argmax(taken))
            name = schema.node_types[other].name
            raise InvalidRequest(f"ids[{at}] = {ids[at]}: a node of type {name!r} has this id, and ids are global here; delete it first")


def _missing_ends(writing: Writing, edge_type: EdgeType, sections: Sections) -> Iterator[Blocks]:
    """Node blocks for ends that are not there yet: with weight 1, and features as if left out."""
    schema = writing.space.schema
    if schema.named:
        yield from _named_ends(writing, edge_type, sections)
        return
    ends: dict[int, list[Ids]] = {}
    for name, end in (("src", edge_type.src_type), ("dst", edge_type.dst_type)):
        ends.setdefault(schema.node_type_id(end), []).append(sections[name])
    for type_id, ids in ends.items():
        unique = np.unique(np.concatenate(ids))
        new = unique[exists(writing, type_id, unique) == 0]
        if new.size:
            _check_one_type(writing, type_id, new)
            yield Blocks(kind=store.NODES, type_id=type_id, parts=writing.ids_part(new), sections={"ids": new})


def _named_ends(writing: Writing, edge_type: EdgeType, sections: Sections) -> Iterator[Blocks]:
    """Node blocks for all ends, with their names: those that are there change nothing, and a build sees whether the id is another one's."""
    schema = writing.space.schema
    ends: dict[int, list[str]] = {}
    for name, end in (("src", edge_type.src_type), ("dst", edge_type.dst_type)):
        ends.setdefault(schema.node_type_id(end), []).append(name)
    for type_id, words in ends.items():
        ids = np.concatenate([sections[word] for word in words])
        held = split.indptr_of(np.concatenate([np.diff(sections[f"{word}_names.indptr"]) for word in words]))
        values = np.concatenate([sections[f"{word}_names.values"] for word in words])
        check_distinct(schema, schema.node_types[type_id].name, ids, (held, values))
        unique, first = np.unique(ids, return_index=True)
        indptr, kept = split.gathered(held, values, first)
        stem = f"f:{names.COLUMN}"
        found: Sections = {"ids": unique, f"{stem}.indptr": indptr, f"{stem}.values": kept}
        yield Blocks(kind=store.NODES, type_id=type_id, parts=writing.ids_part(unique), sections=found)


def _everywhere(writing: Writing, kind: store.BlockKind, type_id: int, sections: Sections) -> None:
    """The same rows at every part. A few parts at a time, so that copies stay bounded."""
    rows = len(sections["ids"])
    step = max(1, MESSAGE_BYTES // max(sum(array.nbytes for array in sections.values()), 1))
    for first in range(0, writing.space.schema.parts, step):
        parts = np.arange(first, min(first + step, writing.space.schema.parts), dtype=np.int32)
        tiled = {name: np.tile(array, len(parts)) for name, array in sections.items()}
        _send(writing, [Blocks(kind=kind, type_id=type_id, parts=np.repeat(parts, rows), sections=tiled)])


def _send(writing: Writing, blocks: Sequence[Blocks]) -> None:
    """Send every host its blocks, all at the same time, and wait until all are durable."""
    requests = [request for block in blocks for request in _requests(writing, block)]
    writing.hosts.update(writing.space.hosts[host] for host, _ in requests)
    writing.fanout.ask("write_blocks", writing.space, requests, writing.call)


def _requests(writing: Writing, block: Blocks) -> Iterator[tuple[int, Frame]]:
    """The WriteBlocks of one kind: per host, runs of its parts that fit into a message."""
    space = writing.space
    order, offsets = group(block.parts, space.schema.parts)
    row_bytes = sum(array.nbytes for array in block.sections.values()) / max(len(block.parts), 1)
    for host in range(len(space.hosts)):
        run: list[int] = []
        size = 0
        for part in space.parts_of(host):
            rows = int(offsets[part + 1] - offsets[part])
            if not rows:
                continue
            if run and (size + rows) * row_bytes > MESSAGE_BYTES:
                yield host, _frame(writing, block, run, order, offsets)
                run, size = [], 0
            run.append(part)
            size += rows
        if run:
            yield host, _frame(writing, block, run, order, offsets)


def _frame(writing: Writing, block: Blocks, parts: list[int], order: Ids, offsets: Ids) -> Frame:
    head = store.WriteBlocksRequest(
        space_id=writing.space.space_id, load_id=writing.load_id, chunk=writing.chunk, kind=block.kind, type_id=block.type_id, parts=parts
    )
    rows = np.concatenate([order[offsets[part] : offsets[part + 1]] for part in parts])
    lengths = np.array([offsets[part + 1] - offsets[part] for part in parts], np.int64)
    return Frame(head, {"offsets": split.indptr_of(lengths), **_picked(block.sections, rows)})


def _picked(sections: Mapping[str, NDArray[Any]], rows: Ids) -> Sections:
    """The given rows of every section; a ragged feature's indptr counts from the first of them."""
    out: Sections = {}
    for name, array in sections.items():
        if name.endswith(".values") and f"{name[:-7]}.indptr" in sections:
            continue
        if name.endswith(".indptr") and f"{name[:-7]}.values" in sections:
            values = f"{name[:-7]}.values"
            out[name], out[values] = split.gathered(array, sections[values], rows)
        else:
            out[name] = array[rows]
    return out
