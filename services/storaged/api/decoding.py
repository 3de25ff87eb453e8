"""Decoding of fields and sections that several requests share, and of optional sections."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged import sampling

Sections = dict[str, NDArray[Any]]

NeighborRequest = (
    storaged_pb.DrawNeighborsRequest
    | storaged_pb.ReadNeighborsRequest
    | storaged_pb.ReadDegreesRequest
    | storaged_pb.ReadInducedEdgesRequest
)


def decode_temporal_filter(
    request: Frame[
        storaged_pb.DrawNeighborsRequest | storaged_pb.ExpandRequest | storaged_pb.SampleKHopRequest
    ],
    section: str = "times",
) -> sampling.TemporalFilter | None:
    """Return the temporal filter of a request; None if it has none."""
    head = request.head
    if not head.HasField("temporal_filter"):
        return None
    times = request.arrays.get(section)
    dtype = "float64" if times is not None and times.dtype.kind == "f" else "int64"
    return sampling.TemporalFilter(
        times=request.array(section, dtype),
        strict=head.temporal_filter.strict,
        last=head.temporal_filter.last,
        want_times=head.temporal_filter.want_times,
    )


def node_arguments(request: Frame[NeighborRequest]) -> dict[str, Any]:
    """Return the arguments that select nodes and the edges to follow."""
    head = request.head
    return {
        "edge_types": list(head.edge_types),
        "node_type": head.node_type,
        "ids": request.array("ids", "int64"),
        "types": request.optional_array("types", "int32"),
        "direction": head.direction,
    }


def present_sections(**sections: NDArray[Any] | None) -> Sections:
    """Return the sections of a reply without those that are None."""
    return {name: array for name, array in sections.items() if array is not None}
