"""Validation of Store requests.

Compiled kernels have no bounds checks. Every field and section of a request is therefore checked
before a kernel reads it, against the schema and the version that the request names. Error messages
have the form ``field=value: expected ...``. The cost of requests is checked in `storaged.pricing`.

Node and edge ids that do not exist are accepted, negative ones included: they are unknown ids, for
which every call documents its result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged import sampling
from storaged.sampling.version import MAX_OUTPUTS

MAX_ATTEMPT = 1 << 62
"""Largest attempt number of a biased step; later attempts are counted from it in 64 bits."""
_SHOWN = 8
"""Maximum number of list values shown in a message."""
_NODE_SECTIONS = ("types", "positions", "times", "groups")


class VersionFields(Protocol):
    """The fields of every request that names a version."""

    version_ref: storaged_pb.VersionRef


def check_types(name: str, values: Collection[int], type_count: int) -> None:
    """Raise InvalidRequest if a type id is not in the schema."""
    for value in values:
        if not 0 <= value < type_count:
            raise InvalidRequest(
                f"{name}={value}: expected a type id of the schema, 0 to {type_count - 1}"
            )


def check_distinct(name: str, values: Sequence[object]) -> None:
    """Raise InvalidRequest if a value occurs twice."""
    if len(values) > 1 and len(set(values)) != len(values):
        duplicate = next(value for value in values if values.count(value) > 1)
        raise InvalidRequest(
            f"{name}={list(values[:_SHOWN])!r}: expected each value once, found {duplicate!r} "
            f"{values.count(duplicate)} times"
        )


def check_parts(name: str, parts: Sequence[int], version: sampling.LocalVersion) -> None:
    """Raise InvalidRequest for a partition out of range, Unavailable for one not held here."""
    local_parts, part_count = version.parts, version.schema.parts
    for part in parts:
        if not 0 <= part < part_count:
            raise InvalidRequest(
                f"{name}={part}: expected a partition of the space, 0 to {part_count - 1}"
            )
        if part not in local_parts:
            version.image(part)  # Raises Unavailable.


def check_element(name: str, value: int) -> None:
    """Raise InvalidRequest if an element is neither nodes nor edges."""
    if value not in (sampling.NODE, sampling.EDGE):
        raise InvalidRequest(
            f"{name}={value}: expected {sampling.NODE} (nodes) or {sampling.EDGE} (edges)"
        )


def check_range(name: str, value: float, minimum: float, maximum: float) -> None:
    """Raise InvalidRequest if a number is out of range or NaN."""
    if not minimum <= value <= maximum:
        raise InvalidRequest(f"{name}={value}: expected {minimum} to {maximum}")


def check_sections(request: Frame[object], length: int, names: Collection[str]) -> None:
    """Raise InvalidRequest if a section is present and its shape is not ``(length,)``."""
    arrays, expected = request.arrays, (length,)
    for name in names:
        array = arrays.get(name)
        if array is not None and array.shape != expected:
            raise InvalidRequest(
                f"{name}.shape={list(array.shape)}: expected [{length}], one value per id"
            )


def check_kinds(
    request: Frame[object], name: str, type_count: int, *, required: bool = False
) -> None:
    """Raise InvalidRequest if a section has a type id that is neither -1 nor in the schema.

    Parameters
    ----------
    request : Frame
    name : str
        Name of a section of int32.
    type_count : int
        Number of types in the schema.
    required : bool
        Also raise if the section is missing. Default False.
    """
    if not required and name not in request.arrays:
        return
    check_values(name, request.array(name, "int32"), -1, type_count - 1)


def check_values(name: str, values: NDArray[Any] | None, minimum: int, maximum: int) -> None:
    """Raise InvalidRequest if an integer of a section is out of range."""
    if values is None:
        return
    # The bitwise or of nonnegative integers bounds them, so one reduction settles most requests.
    if minimum <= 0 <= np.bitwise_or.reduce(values) <= maximum or not values.size:
        return
    low, high = int(values.min()), int(values.max())
    if low < minimum or high > maximum:
        wrong = low if low < minimum else high
        raise InvalidRequest(
            f"{name}[{int(np.argmax(values == wrong))}]={wrong}: expected {minimum} to {maximum}"
        )


def check_nonnegative(name: str, values: NDArray[Any] | None, *, finite: bool) -> None:
    """Raise InvalidRequest if a float is negative, or, with ``finite``, infinite or NaN."""
    if values is None or not values.size:
        return
    wrong = values < 0
    if finite:
        wrong |= ~np.isfinite(values)
    if wrong.any():
        position = int(np.argmax(wrong))
        raise InvalidRequest(
            f"{name}[{position}]={values[position]}: expected "
            f"{'a finite number, ' if finite else ''}0 or more"
        )


def check_times(name: str, values: NDArray[Any]) -> None:
    """Raise InvalidRequest if a time is NaN, which compares with no other time."""
    if values.dtype.kind == "f" and bool(np.isnan(values).any()):
        position = int(np.argmax(np.isnan(values)))
        raise InvalidRequest(f"{name}[{position}]={values[position]}: expected a time")


# -- requests, by method ---------------------------------------------------------------------------


def _node_types(version: sampling.LocalVersion) -> int:
    return len(version.schema.node_types)


def _edge_types(version: sampling.LocalVersion) -> int:
    return len(version.schema.edge_types)


def _check_node_fields(
    request: Frame[
        storaged_pb.DrawNeighborsRequest
        | storaged_pb.ReadNeighborsRequest
        | storaged_pb.ReadDegreesRequest
        | storaged_pb.ReadInducedEdgesRequest
    ],
    version: sampling.LocalVersion,
) -> None:
    """Check the fields of requests that name nodes and the edge types to follow from them."""
    head = request.head
    node_types = _node_types(version)
    _check_edge_types(head.edge_types[:], version)
    check_range("node_type", head.node_type, -1, node_types - 1)
    ids = request.array("ids", "int64")
    check_sections(request, ids.size, _NODE_SECTIONS)
    check_kinds(request, "types", node_types)


def _check_edge_types(edge_types: list[int], version: sampling.LocalVersion) -> None:
    check_types("edge_types", edge_types, _edge_types(version))
    check_distinct("edge_types", edge_types)


def _check_global(
    request: Frame[storaged_pb.DrawNodesRequest | storaged_pb.DrawEdgesRequest],
    version: sampling.LocalVersion,
    type_count: int,
) -> None:
    head = request.head
    check_types("types", head.types[:], type_count)
    check_parts("parts", head.parts[:], version)
    if head.exponential_keys or head.remaining_weight:
        excluded = request.array("excluded_ids", "int64")
        check_sections(request, excluded.size, ("excluded_types",))
        check_kinds(request, "excluded_types", type_count, required=True)


def _check_draw_nodes(
    request: Frame[storaged_pb.DrawNodesRequest], version: sampling.LocalVersion
) -> None:
    _check_global(request, version, _node_types(version))


def _check_draw_edges(
    request: Frame[storaged_pb.DrawEdgesRequest], version: sampling.LocalVersion
) -> None:
    _check_global(request, version, _edge_types(version))


def _check_draw_by_index(
    request: Frame[storaged_pb.DrawNodesByNumberRequest], version: sampling.LocalVersion
) -> None:
    head = request.head
    check_types("types", head.types, _node_types(version))
    kinds = request.optional_array("kinds", "int32")
    if kinds is not None:
        check_sections(request, request.array("numbers", "int64").size, ("kinds",))
        unknown = np.setdiff1d(kinds, np.array(head.types, np.int64))
        if unknown.size:
            position = int(np.argmax(kinds == unknown[0]))
            raise InvalidRequest(
                f"kinds[{position}]={int(unknown[0])}: expected one of types={head.types[:_SHOWN]}"
            )


def _check_draw_neighbors(
    request: Frame[storaged_pb.DrawNeighborsRequest], version: sampling.LocalVersion
) -> None:
    _check_node_fields(request, version)
    _check_temporal_filter(request, "times")


def _check_temporal_filter(
    request: Frame[
        storaged_pb.DrawNeighborsRequest | storaged_pb.ExpandRequest | storaged_pb.SampleKHopRequest
    ],
    section: str,
) -> None:
    head = request.head
    if section in request.arrays and head.HasField("temporal_filter"):
        check_times(section, request.arrays[section])


def _check_fanouts(
    request: Frame[storaged_pb.ExpandRequest | storaged_pb.UpdateImportanceRequest],
    version: sampling.LocalVersion,
) -> None:
    head = request.head
    edge_types = [fanout.edge_type for fanout in head.fanouts]
    check_types("along.edge_type", edge_types, _edge_types(version))
    check_distinct("along.edge_type", edge_types)
    for fanout in head.fanouts:
        local_type, _ = sampling.end_types(version, fanout.edge_type, head.direction)
        ids = request.array(f"ids.{local_type}", "int64")
        check_sections(
            request,
            ids.size,
            (f"trees.{local_type}", f"times.{local_type}", f"levels.{fanout.edge_type}"),
        )
        # The level of a node without eligible edges is infinite or NaN.
        for name, finite in (("levels", False), ("importances", True)):
            check_nonnegative(
                f"{name}.{fanout.edge_type}",
                request.optional_array(f"{name}.{fanout.edge_type}", "float64"),
                finite=finite,
            )


def _check_expand(
    request: Frame[storaged_pb.ExpandRequest], version: sampling.LocalVersion
) -> None:
    head = request.head
    _check_fanouts(request, version)
    for fanout in head.fanouts:
        local_type, _ = sampling.end_types(version, fanout.edge_type, head.direction)
        _check_temporal_filter(request, f"times.{local_type}")


def _check_sample_k_hop(
    request: Frame[storaged_pb.SampleKHopRequest], version: sampling.LocalVersion
) -> None:
    head = request.head
    edge_types = [fanout.edge_type for fanout in head.fanouts]
    check_types("reach.edge_type", edge_types, _edge_types(version))
    check_distinct("reach.edge_type", edge_types)
    ids = request.array("ids", "int64")
    check_values("ids", ids, -1, np.iinfo(np.int64).max)
    check_sections(request, ids.size, ("types", "times"))
    check_kinds(request, "types", _node_types(version), required=True)
    _check_temporal_filter(request, "times")


def _check_walk(request: Frame[storaged_pb.WalkRequest], version: sampling.LocalVersion) -> None:
    head = request.head
    for step in head.steps:
        check_types("steps.edge_types", step.edge_types, _edge_types(version))
    check_range("length", head.length, 0, MAX_OUTPUTS - 1)
    check_range("node_type", head.node_type, -1, _node_types(version) - 1)
    ids = request.array("ids", "int64")
    types = ("types", "start_types", "before_types")
    check_sections(
        request, ids.size, (*types, "positions", "steps_done", "starts", "before", "attempts")
    )
    for name in types:
        check_kinds(request, name, _node_types(version))
    check_values("attempts", request.optional_array("attempts", "int64"), 0, MAX_ATTEMPT)


def _check_has_edge(
    request: Frame[storaged_pb.HasEdgeRequest], version: sampling.LocalVersion
) -> None:
    head = request.head
    check_types("edge_types", head.edge_types, _edge_types(version))
    ids = request.array("ids", "int64")
    check_sections(request, ids.size, ("types", "targets", "target_types"))
    for name in ("types", "target_types"):
        check_kinds(request, name, _node_types(version))


def _check_read_edges_between(
    request: Frame[storaged_pb.ReadInducedEdgesRequest], version: sampling.LocalVersion
) -> None:
    _check_node_fields(request, version)
    cols = request.array("cols", "int64")
    check_sections(request, cols.size, ("col_types", "col_groups"))
    check_kinds(request, "col_types", _node_types(version))


def _check_read_neighbors(
    request: Frame[storaged_pb.ReadNeighborsRequest], version: sampling.LocalVersion
) -> None:
    _check_node_fields(request, version)
    head = request.head
    check_range("top", head.top, 0, MAX_OUTPUTS)


def _check_read_node_types(
    request: Frame[storaged_pb.ReadNodeTypesRequest], version: sampling.LocalVersion
) -> None:
    head = request.head
    check_range("node_type", head.node_type, -1, _node_types(version) - 1)
    check_sections(request, request.array("ids", "int64").size, ("types",))
    check_kinds(request, "types", _node_types(version))


def _check_read_graph_labels(
    request: Frame[storaged_pb.ReadGraphLabelsRequest], version: sampling.LocalVersion
) -> None:
    head = request.head
    check_parts("parts", head.parts, version)
    check_range("cursor", head.cursor, 0, np.iinfo(np.int64).max)


def _check_read_nodes_by_label(
    request: Frame[storaged_pb.ReadNodesByLabelRequest], version: sampling.LocalVersion
) -> None:
    head = request.head
    check_parts("parts", head.parts, version)


def _check_evaluate_terms(
    request: Frame[storaged_pb.EvaluateTermsRequest | storaged_pb.ReadWeightHistogramRequest],
    version: sampling.LocalVersion,
) -> None:
    head = request.head
    check_element("element", head.element)
    check_types(
        "type_id",
        [head.type_id],
        _node_types(version) if head.element == sampling.NODE else _edge_types(version),
    )
    check_parts("parts", head.parts, version)


def _check_filter_rows(
    request: Frame[storaged_pb.FilterRowsRequest], version: sampling.LocalVersion
) -> None:
    head = request.head
    check_parts("parts", head.parts, version)


def _check_read_weight_histogram(
    request: Frame[storaged_pb.ReadWeightHistogramRequest], version: sampling.LocalVersion
) -> None:
    _check_evaluate_terms(request, version)


def _check_node_type(
    request: Frame[
        storaged_pb.ReadNodeFeaturesRequest
        | storaged_pb.ReadNodesRequest
        | storaged_pb.ReadNodesAtRequest
    ],
    version: sampling.LocalVersion,
) -> None:
    head = request.head
    check_types("type_id", [head.type_id], _node_types(version))


def _check_edge_type(
    request: Frame[
        storaged_pb.ReadEdgeFeaturesRequest
        | storaged_pb.ReadEdgesAtRequest
        | storaged_pb.ReadEdgesRequest
    ],
    version: sampling.LocalVersion,
) -> None:
    head = request.head
    check_types("type_id", [head.type_id], _edge_types(version))


def _check_read_nodes(
    request: Frame[storaged_pb.ReadNodesRequest], version: sampling.LocalVersion
) -> None:
    head = request.head
    _check_node_type(request, version)
    check_parts("part", [head.part], version)


def _check_read_edges(
    request: Frame[storaged_pb.ReadEdgesRequest], version: sampling.LocalVersion
) -> None:
    head = request.head
    _check_edge_type(request, version)
    check_parts("part", [head.part], version)


def _check_places(request: Frame[object], version: sampling.LocalVersion) -> None:
    check_sections(request, request.array("places", "int64").size, ("parts",))
    check_values("parts", request.array("parts", "int32"), 0, version.schema.parts - 1)


def _check_read_nodes_at(
    request: Frame[storaged_pb.ReadNodesAtRequest], version: sampling.LocalVersion
) -> None:
    _check_node_type(request, version)
    _check_places(request, version)


def _check_read_edges_at(
    request: Frame[storaged_pb.ReadEdgesAtRequest], version: sampling.LocalVersion
) -> None:
    _check_edge_type(request, version)
    _check_places(request, version)


def _check_push_pagerank(
    request: Frame[storaged_pb.PushPagerankRequest], version: sampling.LocalVersion
) -> None:
    head = request.head
    check_types("edge_types", head.edge_types, _edge_types(version))
    check_range("top", head.top, 1, MAX_OUTPUTS)
    check_sections(request, request.array("ids", "int64").size, ("types",))
    check_kinds(request, "types", _node_types(version), required=True)


_CHECKS: Mapping[type, Callable[[Frame[Any], sampling.LocalVersion], None]] = {
    storaged_pb.DrawNodesRequest: _check_draw_nodes,
    storaged_pb.DrawNodesByNumberRequest: _check_draw_by_index,
    storaged_pb.DrawEdgesRequest: _check_draw_edges,
    storaged_pb.DrawNeighborsRequest: _check_draw_neighbors,
    storaged_pb.ExpandRequest: _check_expand,
    storaged_pb.SampleKHopRequest: _check_sample_k_hop,
    storaged_pb.ReadNeighborsRequest: _check_read_neighbors,
    storaged_pb.ReadDegreesRequest: _check_node_fields,
    storaged_pb.ReadInducedEdgesRequest: _check_read_edges_between,
    storaged_pb.ReadNodeTypesRequest: _check_read_node_types,
    storaged_pb.ReadGraphLabelsRequest: _check_read_graph_labels,
    storaged_pb.ReadNodesByLabelRequest: _check_read_nodes_by_label,
    storaged_pb.WalkRequest: _check_walk,
    storaged_pb.HasEdgeRequest: _check_has_edge,
    storaged_pb.EvaluateTermsRequest: _check_evaluate_terms,
    storaged_pb.FilterRowsRequest: _check_filter_rows,
    storaged_pb.ReadNodeFeaturesRequest: _check_node_type,
    storaged_pb.ReadEdgeFeaturesRequest: _check_edge_type,
    storaged_pb.ReadNodesRequest: _check_read_nodes,
    storaged_pb.ReadNodesAtRequest: _check_read_nodes_at,
    storaged_pb.ReadEdgesAtRequest: _check_read_edges_at,
    storaged_pb.ReadEdgesRequest: _check_read_edges,
    storaged_pb.ReadWeightHistogramRequest: _check_read_weight_histogram,
    storaged_pb.PushPagerankRequest: _check_push_pagerank,
    storaged_pb.UpdateImportanceRequest: _check_fanouts,
}
"""The check of each request that names a version."""


def validate(request: Frame[VersionFields], version: sampling.LocalVersion) -> None:
    """Check all fields and sections of a request against its version.

    Raises
    ------
    InvalidRequest
        A value is out of range; the message names the field and the value.
    Unavailable
        A partition is not held here.
    """
    _CHECKS[type(request.head)](request, version)
