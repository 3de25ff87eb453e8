"""Reading: all neighbors of nodes, feature columns, scans of a part. Answers come back in the request's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import EdgeType, Feature, NodeType
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import storaged_pb2 as store
from graphd import split
from graphd.sample import REPLY_BYTES, Ids, Sampling, Sections, Types
from graphd.totals import EDGE, NODE

_DEFAULT_ROWS = 65536
_NEIGHBOR_BYTES = 24
"""Of one neighbor in a reply: id, edge type, weight, edge id."""
_RAGGED_GUESS = 256
"""Bytes of a ragged or bytes value, for the size of a batch of a scan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjacent:
    """Which neighbors are read, and how each node's are sorted."""

    edge_types: tuple[int, ...]
    direction: pb.Direction
    want_weights: bool
    want_edge_ids: bool
    sort: str
    """"" (as stored), "id" or "weight"."""
    top: int = 0
    """0: all of them; else the heaviest only."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spread:
    """How many rows of a type weigh how much, by the logarithm of their weight."""

    counts: NDArray[np.int64]
    """int64[1108]: rows of a weight w with floor(4 log2 w) = b - 596."""
    sums: NDArray[np.float64]
    """float64[1108], of their weights."""


def neighbors(sampling: Sampling, what: Adjacent, nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """All neighbors of each node: sections as of ReadNeighborsReply."""
    by_weight = what.sort == "weight"
    head = store.ReadNeighborsRequest(
        at=sampling.at(),
        edge_types=what.edge_types,
        node_type=node_type,
        direction=what.direction,
        want_weights=what.want_weights or by_weight,
        want_edge_ids=what.want_edge_ids,
        top=what.top,
        weight=sampling.weights,
    )
    if what.top * len(nodes) * _NEIGHBOR_BYTES > REPLY_BYTES:
        most = REPLY_BYTES // (_NEIGHBOR_BYTES * what.top)
        raise InvalidRequest(f"{what.top} neighbors of {len(nodes)} nodes may not fit into one reply; ask for {most} nodes at a time")
    plan = split.owners(sampling.space, nodes) or [(0, None)]
    asked = []
    for host, rows in plan:
        sections: Sections = {"ids": split.taken(nodes, rows)}
        if types is not None:
            sections["types"] = split.taken(types, rows)
        asked.append((host, Frame(head, sections)))
    answers = []
    for (_, rows), reply in zip(plan, sampling.ask("read_neighbors", asked), strict=True):
        found = dict(reply.arrays)
        answers.append((rows, found.pop("indptr"), found))
    indptr, out = split.merged_ragged(len(nodes), answers, sampling.call.remaining)
    check_size(out, f"the neighbors of {len(nodes)} nodes")
    if by_weight:
        out = split.reordered(indptr, out, [-out["weights"], out["ids"]], sampling.call.remaining)
    elif what.sort == "id":
        out = split.reordered(indptr, out, [out["ids"]], sampling.call.remaining)
    if not what.want_weights:
        out.pop("weights", None)
    return {"indptr": indptr, **out}


def degrees(sampling: Sampling, edge_types: Sequence[int], direction: pb.Direction, nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """How many edges of each type each node has: section degrees int64[m, types]."""
    head = store.ReadDegreesRequest(at=sampling.at(), edge_types=edge_types, node_type=node_type, direction=direction)
    _check_degrees(nodes, edge_types)
    return _rows_read(sampling, "read_degrees", head, nodes, types)


def _check_degrees(nodes: Ids, edge_types: Sequence[int]) -> None:
    if len(nodes) * len(edge_types) * 8 > REPLY_BYTES:
        raise InvalidRequest(f"the degrees of {len(nodes)} nodes do not fit into one reply; ask for {REPLY_BYTES // (8 * len(edge_types))} at a time")


def measures(
    sampling: Sampling, edge_types: Sequence[int], direction: pb.Direction, uniform: bool, nodes: Ids, node_type: int, types: Types | None
) -> NDArray[np.float64]:
    """What each edge type weighs at each node, in draws by the weights of ``sampling``: float64[m, types]."""
    head = store.ReadDegreesRequest(
        at=sampling.at(),
        edge_types=edge_types,
        node_type=node_type,
        direction=direction,
        measures=True,
        uniform=uniform,
        weight=sampling.weights,
    )
    _check_degrees(nodes, edge_types)
    return _rows_read(sampling, "read_degrees", head, nodes, types)["measures"]


def node_types(sampling: Sampling, nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """The type of each node, -1 where there is no such node: section types int32[m]."""
    return _rows_read(sampling, "read_node_types", store.ReadNodeTypesRequest(at=sampling.at(), node_type=node_type), nodes, types)


def node_kinds(sampling: Sampling, nodes: Ids, node_type: int, types: Types | None) -> Types:
    """The type of each node as the request says it, and, of ids of a whole space, as whoever has the node knows it: int32[m]."""
    if node_type >= 0:
        return np.full(len(nodes), node_type, np.int32)
    if types is not None:
        return types
    return node_types(sampling.of_all(), nodes, -1, None)["types"]


def _rows_read(sampling: Sampling, method: str, head: Message, nodes: Ids, types: Types | None) -> Sections:
    """What the hosts of nodes say of each."""
    plan = split.owners(sampling.space, nodes) or [(0, None)]
    asked = []
    for host, rows in plan:
        sections: Sections = {"ids": split.taken(nodes, rows)}
        if types is not None:
            sections["types"] = split.taken(types, rows)
        asked.append((host, Frame(head, sections)))
    replies = sampling.ask(method, asked)
    return split.merged(len(nodes), [(rows, reply.arrays) for (_, rows), reply in zip(plan, replies, strict=True)])


def node_features(sampling: Sampling, type_id: int, names: Sequence[str], nodes: Ids) -> Sections:
    """Columns of nodes of one type, and which of them were found."""
    check_columns(sampling.space.schema.node_types[type_id], names)
    head = store.ReadNodeFeaturesRequest(at=sampling.at(), type_id=type_id, names=names)
    plan = split.owners(sampling.space, nodes) or [(0, None)]
    asked = [(host, Frame(head, {"ids": split.taken(nodes, rows)})) for host, rows in plan]
    replies = sampling.ask("read_node_features", asked)
    return merged_columns(len(nodes), [rows for _, rows in plan], replies)


def node_weights(sampling: Sampling, type_id: int, nodes: Ids, *, uniform: bool) -> NDArray[np.float64]:
    """What draws from a node type by the weights of ``sampling`` go by, or uniformly: float64[m], 0 where there is no such node."""
    head = store.ReadNodeFeaturesRequest(at=sampling.at(), type_id=type_id, names=() if uniform else ("weight",), weight=sampling.weights)
    return _rows_read(sampling, "read_node_features", head, nodes, None)["found" if uniform else "f:weight"].astype(np.float64)


def edge_features(sampling: Sampling, type_id: int, names: Sequence[str], eids: Ids) -> Sections:
    """Columns of edges of one type, by edge id."""
    check_columns(sampling.space.schema.edge_types[type_id], names)
    space = sampling.space
    head = store.ReadEdgeFeaturesRequest(at=sampling.at(), type_id=type_id, names=names)
    plan: list[tuple[int, Ids | None]] = [(0, None)]
    if len(space.hosts) > 1:
        plan = [*split.by_host(space, (eids % space.schema.parts).astype(np.int32))] or plan
    asked = [(host, Frame(head, {"eids": split.taken(eids, rows)})) for host, rows in plan]
    replies = sampling.ask("read_edge_features", asked)
    return merged_columns(len(eids), [rows for _, rows in plan], replies)


def scan_nodes(sampling: Sampling, type_id: int, part: int, cursor: int, limit: int, names: Sequence[str]) -> tuple[Sections, int]:
    """A run of one part's nodes by id, and where the next one begins (-1: that was all)."""
    owner = sampling.space.schema.node_types[type_id]
    check_columns(owner, names)
    head = store.ReadNodesRequest(
        at=sampling.at(),
        type_id=type_id,
        part=part,
        cursor=cursor,
        limit=_rows(owner, names, limit, 12),
        names=names,
        weight=sampling.weights,
    )
    reply = _ask_part(sampling, "read_nodes", part, head)
    return dict(reply.arrays), _next_cursor(reply)


def nodes_at(sampling: Sampling, type_id: int, places: Ids) -> tuple[Sections, int]:
    """Nodes of a type by their place in a scan of all parts, and how many there are."""
    of = f"nodes of type {sampling.space.schema.node_types[type_id].name!r}"
    head = store.ReadNodesAtRequest(at=sampling.at(), type_id=type_id)
    found, count = _at_places(sampling, NODE, type_id, places, "read_nodes_at", head, of, 8)
    return found or {"ids": np.zeros(0, np.int64)}, count


def edges_at(sampling: Sampling, type_id: int, places: Ids) -> tuple[Sections, int]:
    """Edges of a type by their place in a scan of all parts, and how many there are."""
    of = f"edges of type {sampling.space.schema.edge_types[type_id].name!r}"
    head = store.ReadEdgesAtRequest(at=sampling.at(), type_id=type_id, weight=sampling.weights)
    found, count = _at_places(sampling, EDGE, type_id, places, "read_edges_at", head, of, 28)
    none: Sections = {name: np.zeros(0, np.int64) for name in ("src", "dst", "eids")} | {"weights": np.zeros(0, np.float32)}
    return found or none, count


def _at_places(
    sampling: Sampling, element: int, type_id: int, places: Ids, method: str, head: Message, of: str, row_bytes: int
) -> tuple[Sections, int]:
    """Rows by their place, and how many there are; nothing of no places."""
    ends = np.cumsum(sampling.version.totals.counts(element, type_id))
    count = int(ends[-1])
    if places.size and not 0 <= int(places.min()) <= int(places.max()) < count:
        at = int(np.argmax((places < 0) | (places >= count)))
        raise InvalidRequest(f"places[{at}] = {places[at]}: there are {count} {of}")
    if len(places) * row_bytes > REPLY_BYTES:
        raise InvalidRequest(f"{len(places)} {of} do not fit into one reply; ask for {REPLY_BYTES // row_bytes} at a time")
    if not places.size:
        return {}, count
    part = np.searchsorted(ends, places, side="right").astype(np.int32)
    own = places - np.concatenate([[0], ends])[part]
    plan = split.by_host(sampling.space, part)
    asked = [(host, Frame(head, {"parts": part[rows], "places": own[rows]})) for host, rows in plan]
    replies = sampling.ask(method, asked)
    return split.merged(len(places), [(rows, reply.arrays) for (_, rows), reply in zip(plan, replies, strict=True)]), count


def scan_edges(sampling: Sampling, type_id: int, part: int, cursor: int, limit: int, names: Sequence[str]) -> tuple[Sections, int]:
    """A run of one part's edges in out-adjacency order, its features fetched by edge id, and where the next one begins."""
    owner = sampling.space.schema.edge_types[type_id]
    check_columns(owner, names)
    head = store.ReadEdgesRequest(
        at=sampling.at(), type_id=type_id, part=part, cursor=cursor, limit=_rows(owner, names, limit, 28), weight=sampling.weights
    )
    reply = _ask_part(sampling, "read_edges", part, head)
    sections: Sections = dict(reply.arrays)
    if names:
        columns = edge_features(sampling, type_id, names, sections["eids"])
        sections |= {name: array for name, array in columns.items() if name.startswith("f:")}
    return sections, _next_cursor(reply)


def _ask_part(sampling: Sampling, name: str, part: int, head: Message) -> Frame:
    parts = sampling.space.schema.parts
    if not 0 <= part < parts:
        raise InvalidRequest(f"part {part}: space {sampling.space.name!r} has parts 0 to {parts - 1}")
    return sampling.ask(name, [(int(sampling.space.host_of_part[part]), Frame(head))])[0]


def _next_cursor(reply: Frame) -> int:
    head: Any = reply.head
    return int(head.next_cursor)


def merged_columns(count: int, rows: Sequence[Ids | None], replies: Sequence[Frame]) -> Sections:
    """Columns of every host's rows in the order of the request; ragged ones by their row lengths."""
    stems = sorted(name[: -len(".indptr")] for name in replies[0].arrays if name.endswith(".indptr"))
    delimited = {f"{stem}.{half}" for stem in stems for half in ("indptr", "values")}
    answers = list(zip(rows, (reply.arrays for reply in replies), strict=True))
    out = split.merged(count, [(own, {name: a for name, a in arrays.items() if name not in delimited}) for own, arrays in answers])
    for stem in stems:
        values = f"{stem}.values"
        out[f"{stem}.indptr"], merged = split.merged_ragged(count, [(own, a[f"{stem}.indptr"], {values: a[values]}) for own, a in answers])
        out |= merged
    check_size(out, f"the features of {count} rows")
    return out


def check_columns(owner: NodeType | EdgeType, names: Sequence[str]) -> None:
    """Refuse names that the type has not; "weight" is every node's."""
    for name in names:
        if not (name == "weight" and isinstance(owner, NodeType)):
            owner.feature(name)
    if len(set(names)) < len(names):
        raise InvalidRequest(f"features {list(names)}: a name is there twice")


def _rows(owner: NodeType | EdgeType, names: Sequence[str], limit: int, fixed: int) -> int:
    """How many rows one batch of a scan has: what was asked for, as far as a reply can hold it."""
    if limit < 0:
        raise InvalidRequest(f"limit {limit}: expected 0 (the server's choice) or more")
    width = fixed + sum(_row_bytes(owner.feature(name)) for name in names if name != "weight")
    return max(1, min(limit or _DEFAULT_ROWS, REPLY_BYTES // width))


def _row_bytes(feature: Feature) -> int:
    if feature.kind != "dense":
        return _RAGGED_GUESS
    return int(np.dtype(feature.dtype).itemsize * np.prod(feature.shape, dtype=np.int64))


def check_size(sections: dict[str, NDArray[Any]], what: str) -> None:
    """Refuse an answer that does not fit into a reply."""
    size = sum(array.nbytes for array in sections.values())
    if size > REPLY_BYTES:
        raise InvalidRequest(f"{what} have {size} bytes, one reply at most {REPLY_BYTES}; ask for fewer at a time")


def weight_spread(sampling: Sampling, element: int, type_id: int) -> Spread:
    """How the weights of ``sampling`` are spread over the rows of a type, of all parts together."""
    kind = pb.NODE if element == NODE else pb.EDGE
    asked = []
    for host in range(len(sampling.space.hosts)):
        parts = sampling.space.parts_of(host)
        head = store.ReadSpreadRequest(at=sampling.at(), element=kind, type_id=type_id, parts=parts, weight=sampling.weights)
        asked.append((host, Frame(head)))
    replies = sampling.ask("read_spread", asked)
    return Spread(
        counts=np.sum([reply.array("counts", "int64") for reply in replies], axis=0),
        sums=np.sum([reply.array("sums", "float64") for reply in replies], axis=0),
    )
