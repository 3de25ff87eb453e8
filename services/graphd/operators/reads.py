"""Reads of types, feature columns and weights of nodes and edges, in request order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from asterism_model.elements import NODE
from asterism_model.schema import EdgeType, Feature, NodeType
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators.request_context import REPLY_BYTES, Ids, RequestContext, Sections, Types
from graphd.routing import split_merge
from graphd.routing.split_merge import Checkpoint

_DEFAULT_ROWS = 65536
_RAGGED_GUESS = 256
"""Assumed bytes of a ragged or bytes value, to size a batch of a scan."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightHistogram:
    """Histogram of the weights of a type's rows on a logarithmic scale."""

    counts: NDArray[np.int64]
    """int64[1108]: element b counts the rows with weight w and floor(4 log2 w) = b - 596."""
    sums: NDArray[np.float64]
    """float64[1108]: sum of their weights."""


def node_types(
    context: RequestContext, nodes: Ids, node_type: int, types: Types | None
) -> Sections:
    """Return the type of each node, -1 if it does not exist: section types int32[m]."""
    return read_rows(
        context,
        "read_node_types",
        storaged_pb.ReadNodeTypesRequest(version_ref=context.version_ref(), node_type=node_type),
        nodes,
        types,
    )


def resolve_node_types(
    context: RequestContext, nodes: Ids, node_type: int, types: Types | None
) -> Types:
    """Return the type of each node as int32[m].

    Types come from the request if it has them. Otherwise ids are global, and the storageds that own
    the nodes supply the types.
    """
    if node_type >= 0:
        return np.full(len(nodes), node_type, np.int32)
    if types is not None:
        return types
    return node_types(context.without_filter(), nodes, -1, None)["types"]


def read_rows(
    context: RequestContext, method: str, head: Message, nodes: Ids, types: Types | None
) -> Sections:
    """Read one row per node from the hosts that own the nodes."""
    plan = split_merge.rows_by_owner(context.space, nodes) or [(0, None)]
    requests = []
    for host, rows in plan:
        sections: Sections = {"ids": split_merge.take_rows(nodes, rows)}
        if types is not None:
            sections["types"] = split_merge.take_rows(types, rows)
        requests.append((host, Frame(head, sections)))
    replies = context.dispatch(method, requests)
    return split_merge.merge_rows(
        len(nodes),
        [(rows, reply.arrays) for (_, rows), reply in zip(plan, replies, strict=True)],
        context.call.remaining,
    )


def node_features(
    context: RequestContext, type_id: int, names: Sequence[str], nodes: Ids
) -> Sections:
    """Return columns of nodes of one type, and a flag per node that it was found."""
    check_columns(context.space.schema.node_types[type_id], names)
    head = storaged_pb.ReadNodeFeaturesRequest(
        version_ref=context.version_ref(), type_id=type_id, names=names
    )
    plan = split_merge.rows_by_owner(context.space, nodes) or [(0, None)]
    requests = [
        (host, Frame(head, {"ids": split_merge.take_rows(nodes, rows)})) for host, rows in plan
    ]
    replies = context.dispatch("read_node_features", requests)
    return merge_columns(len(nodes), [rows for _, rows in plan], replies, context.call.remaining)


def node_weights(
    context: RequestContext, type_id: int, nodes: Ids, *, uniform: bool
) -> NDArray[np.float64]:
    """Return the weights with which nodes of one type are sampled, as float64[m].

    All weights are 1 if ``uniform``. Nodes that do not exist have weight 0.
    """
    head = storaged_pb.ReadNodeFeaturesRequest(
        version_ref=context.version_ref(),
        type_id=type_id,
        names=() if uniform else ("weight",),
        weight=context.weight_name,
    )
    return read_rows(context, "read_node_features", head, nodes, None)[
        "found" if uniform else "f:weight"
    ].astype(np.float64)


def edge_features(
    context: RequestContext, type_id: int, names: Sequence[str], eids: Ids
) -> Sections:
    """Return columns of edges of one type, by edge id."""
    check_columns(context.space.schema.edge_types[type_id], names)
    space = context.space
    head = storaged_pb.ReadEdgeFeaturesRequest(
        version_ref=context.version_ref(), type_id=type_id, names=names
    )
    plan: list[tuple[int, Ids | None]] = [(0, None)]
    if len(space.hosts) > 1:
        plan = [
            *split_merge.rows_by_host(space, (eids % space.schema.parts).astype(np.int32))
        ] or plan
    requests = [
        (host, Frame(head, {"eids": split_merge.take_rows(eids, rows)})) for host, rows in plan
    ]
    replies = context.dispatch("read_edge_features", requests)
    return merge_columns(len(eids), [rows for _, rows in plan], replies, context.call.remaining)


def merge_columns(
    count: int,
    rows: Sequence[Ids | None],
    replies: Sequence[Frame[Message]],
    checkpoint: Checkpoint,
) -> Sections:
    """Merge every host's columns in request order; ragged ones by their row lengths.

    ``checkpoint`` is called between pieces and may raise.
    """
    stems = sorted(
        name[: -len(".indptr")] for name in replies[0].arrays if name.endswith(".indptr")
    )
    delimited = {f"{stem}.{half}" for stem in stems for half in ("indptr", "values")}
    results = list(zip(rows, (reply.arrays for reply in replies), strict=True))
    out = split_merge.merge_rows(
        count,
        [
            (
                host_rows,
                {name: columns for name, columns in arrays.items() if name not in delimited},
            )
            for host_rows, arrays in results
        ],
        checkpoint,
    )
    for stem in stems:
        values = f"{stem}.values"
        out[f"{stem}.indptr"], merged = split_merge.merge_ragged(
            count,
            [
                (host_rows, columns[f"{stem}.indptr"], {values: columns[values]})
                for host_rows, columns in results
            ],
            checkpoint,
        )
        out |= merged
    check_size(out, f"the features of {count} rows")
    return out


def check_columns(schema_type: NodeType | EdgeType, names: Sequence[str]) -> None:
    """Raise NotFound for a name that the type does not have; every node has "weight"."""
    for name in names:
        if not (name == "weight" and isinstance(schema_type, NodeType)):
            schema_type.feature(name)
    if len(set(names)) < len(names):
        raise InvalidRequest(f"features {list(names)}: expected each name once")


def rows_per_reply(
    schema_type: NodeType | EdgeType, names: Sequence[str], limit: int, fixed_bytes: int
) -> int:
    """Return the rows per batch of a scan: the requested number, limited by the reply size."""
    if limit < 0:
        raise InvalidRequest(f"limit {limit}: expected 0 (the server's choice) or more")
    width = fixed_bytes + sum(
        _row_bytes(schema_type.feature(name)) for name in names if name != "weight"
    )
    return max(1, min(limit or _DEFAULT_ROWS, REPLY_BYTES // width))


def _row_bytes(feature: Feature) -> int:
    if feature.kind != "dense":
        return _RAGGED_GUESS
    return int(np.dtype(feature.dtype).itemsize * np.prod(feature.shape, dtype=np.int64))


def check_size(sections: dict[str, NDArray[Any]], subject: str) -> None:
    """Raise InvalidRequest if a result does not fit into a reply."""
    size = sum(array.nbytes for array in sections.values())
    if size > REPLY_BYTES:
        raise InvalidRequest(
            f"{subject} have {size:,} bytes: expected at most {REPLY_BYTES:,} in one reply; "
            "request fewer at a time"
        )


def weight_histogram(context: RequestContext, element: int, type_id: int) -> WeightHistogram:
    """Return the histogram of a type's weights in ``context``, over all partitions."""
    kind = common_pb.NODE if element == NODE else common_pb.EDGE
    requests = []
    for host in range(len(context.space.hosts)):
        parts = context.space.parts_of(host)
        head = storaged_pb.ReadWeightHistogramRequest(
            version_ref=context.version_ref(),
            element=kind,
            type_id=type_id,
            parts=parts,
            weight=context.weight_name,
        )
        requests.append((host, Frame(head)))
    replies = context.dispatch("read_weight_histogram", requests)
    return WeightHistogram(
        counts=np.sum([reply.array("counts", "int64") for reply in replies], axis=0),
        sums=np.sum([reply.array("sums", "float64") for reply in replies], axis=0),
    )
