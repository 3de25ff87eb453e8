"""Temporal filters: decode and check the times until which a request's nodes see edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_model.schema import Schema
from asterism_model.schema.edge_times import edge_time_dtype
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import graphd_pb2 as graphd_pb

NeighborRequest = Frame[graphd_pb.SampleNeighborsRequest] | Frame[graphd_pb.SampleFanoutRequest]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TemporalFilter:
    """Times until which edges are visible."""

    times: NDArray[Any]
    """ndarray of int64 or float64, shape (m,): time of each node, or of each seed's tree."""
    head: common_pb.TemporalFilter

    def repeat(self, count: int) -> TemporalFilter:
        """Return the filter of the nodes that result from ``count`` draws per node."""
        return TemporalFilter(times=np.repeat(self.times, count), head=self.head)

    def times_at(self, positions: NDArray[Any] | None) -> NDArray[Any]:
        """Return the times of the nodes at these positions; None for all."""
        return self.times if positions is None else self.times[positions]


def neighbor_filter(
    request: Frame[graphd_pb.SampleNeighborsRequest], schema: Schema, edge_types: Sequence[int]
) -> TemporalFilter | None:
    """Return the temporal filter of neighbors, or None.

    Raises
    ------
    InvalidRequest
        If there is not one time per node, if an edge type has no times, or if another option of
        the request does not support times.
    """
    temporal_filter = _draw_filter(request)
    if temporal_filter is not None:
        _check_union(request, schema, edge_types)
    return temporal_filter


def fanout_filters(
    request: Frame[graphd_pb.SampleFanoutRequest], schema: Schema, hops: Sequence[Sequence[int]]
) -> list[TemporalFilter | None]:
    """Return the temporal filter of each hop; None if none of its edge types has times.

    A node's time applies to everything sampled from it: the times of every hop are those of the
    start nodes. For errors see `neighbor_filter`; here one hop along edge types with times
    suffices."""
    head = request.head
    temporal_filter = _draw_filter(request)
    if temporal_filter is None:
        return [None] * len(hops)
    timed_hops = [
        any(edge_time_dtype(schema, e, incoming=head.direction == common_pb.IN) for e in hop)
        for hop in hops
    ]
    for hop, is_timed in zip(hops, timed_hops, strict=True):
        if is_timed or not any(timed_hops):
            _check_union(request, schema, hop)
    return [temporal_filter if is_timed else None for is_timed in timed_hops]


def _check_union(request: NeighborRequest, schema: Schema, edge_types: Sequence[int]) -> None:
    """Raise InvalidRequest if the edge types cannot share one draw with times."""
    head = request.head
    time_kinds = {
        schema.edge_types[e].name: edge_time_dtype(
            schema, e, incoming=head.direction == common_pb.IN
        )
        for e in edge_types
    }
    missing = [name for name, kind in time_kinds.items() if not kind]
    if missing:
        raise InvalidRequest(
            f"times with edge types {', '.join(missing)}: expected edge types with a time; "
            "declare one of their features as time, or omit these types"
        )
    if len(set(time_kinds.values())) > 1:
        raise InvalidRequest(
            f"times of {', '.join(time_kinds)} are integers and floats; request those of one "
            "kind at a time"
        )


def subgraph_filter(
    request: Frame[graphd_pb.SampleSubgraphRequest], schema: Schema
) -> TemporalFilter | None:
    """Return the temporal filter of the seeds' trees, or None.

    For errors see `neighbor_filter`; here one edge type with times suffices.
    """
    head = request.head
    temporal_filter = _decode_filter(request)
    if temporal_filter is None:
        return None
    if not head.disjoint:
        raise InvalidRequest(
            "times of seeds with merged trees: a node that two seeds reach would have two "
            "times; use disjoint=True"
        )
    types = [fanout.edge_type for fanout in head.fanouts]
    if not any(edge_time_dtype(schema, e, incoming=head.direction == common_pb.IN) for e in types):
        names = ", ".join(schema.edge_types[e].name for e in types)
        raise InvalidRequest(
            f"times with edge types {names}: none of them has times; declare a time for one of "
            "them, or for their nodes"
        )
    return temporal_filter


def _draw_filter(request: NeighborRequest) -> TemporalFilter | None:
    head = request.head
    temporal_filter = _decode_filter(request)
    if temporal_filter is not None and head.want_probabilities:
        raise InvalidRequest(
            "temporal filters do not support probabilities of neighbors; omit one of the two"
        )
    return temporal_filter


def _decode_filter(
    request: NeighborRequest | Frame[graphd_pb.SampleSubgraphRequest],
) -> TemporalFilter | None:
    head = request.head
    if not head.HasField("temporal_filter"):
        return None
    if head.temporal_filter.last and head.replace:
        raise InvalidRequest(
            "the last neighbors with replacement: they are selected, not drawn; use replace=False"
        )
    times = request.arrays.get("times")
    values = request.array(
        "times", "float64" if times is not None and times.dtype.kind == "f" else "int64"
    )
    if len(values) != len(request.arrays["nodes"]):
        raise InvalidRequest(
            f"times has {len(values)} entries: expected {len(request.arrays['nodes'])}, one per "
            "node"
        )
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise InvalidRequest(f"times[{int(np.argmax(np.isnan(values)))}] = nan: expected a number")
    return TemporalFilter(
        times=values,
        head=common_pb.TemporalFilter(
            strict=head.temporal_filter.strict,
            last=head.temporal_filter.last,
            want_times=head.temporal_filter.want_times,
        ),
    )
