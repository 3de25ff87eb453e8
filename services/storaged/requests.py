"""Validation of Store requests.

Compiled kernels have no bounds checks, so every field and section of a request is proved to be in range before a kernel sees it. The
functions here name what they refuse as ``field=value: expected ...``. They look at a request beside the schema and the version that it
names; they know nothing of what a request costs.

What is not refused: node and edge ids that do not exist, negative ones included. They are unknown, and every call says what it gives for
unknown nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest
from storaged import draw
from storaged.draw.version import MAX_OUTPUTS

MAX_ATTEMPT = 1 << 62
"""Attempts of a biased step: they are counted in 64 bits from the one that a request names."""
_SHOWN = 8


def check_types(name: str, values: Collection[int], known: int) -> None:
    """InvalidRequest where a type id is not in the schema."""
    for value in values:
        if not 0 <= value < known:
            raise InvalidRequest(f"{name}={value}: expected a type id of the schema, 0 to {known - 1}")


def check_distinct(name: str, values: Sequence[object]) -> None:
    """InvalidRequest where a value is given twice."""
    if len(set(values)) != len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise InvalidRequest(f"{name}={list(values[:_SHOWN])!r}: expected each value once, found {twice!r} {values.count(twice)} times")


def check_parts(name: str, parts: Sequence[int], version: draw.Version) -> None:
    """InvalidRequest where a part is not of the space, Unavailable where it is not held here."""
    for part in parts:
        if not 0 <= part < version.schema.parts:
            raise InvalidRequest(f"{name}={part}: expected a part of the space, 0 to {version.schema.parts - 1}")
        version.image(part)


def check_element(name: str, value: int) -> None:
    """InvalidRequest where an element is neither nodes nor edges."""
    if value not in (draw.NODE, draw.EDGE):
        raise InvalidRequest(f"{name}={value}: expected {draw.NODE} (nodes) or {draw.EDGE} (edges)")


def check_number(name: str, value: float, least: float, most: float) -> None:
    """InvalidRequest where a number is out of a range, or NaN."""
    if not least <= value <= most:
        raise InvalidRequest(f"{name}={value}: expected {least} to {most}")


def check_sections(request: Frame, length: int, names: Collection[str]) -> None:
    """InvalidRequest where one of some sections is there and has not ``length`` values in one dimension."""
    for name in names:
        array = request.arrays.get(name)
        if array is not None and array.shape != (length,):
            raise InvalidRequest(f"{name}: found shape {list(array.shape)}; expected [{length}], one value for each id")


def check_kinds(name: str, types: NDArray[Any] | None, known: int) -> None:
    """InvalidRequest where a section of type ids has one that is neither -1 nor in the schema."""
    check_values(name, types, -1, known - 1)


def check_values(name: str, values: NDArray[Any] | None, least: int, most: int) -> None:
    """InvalidRequest where an integer of a section is out of a range."""
    if values is None or not values.size:
        return
    low, high = int(values.min()), int(values.max())
    if low < least or high > most:
        wrong = low if low < least else high
        raise InvalidRequest(f"{name}[{int(np.argmax(values == wrong))}]={wrong}: expected {least} to {most}")


def check_measures(name: str, values: NDArray[Any] | None, *, finite: bool) -> None:
    """InvalidRequest where a float of a section is negative, or, ``finite``, is infinite or NaN."""
    if values is None or not values.size:
        return
    wrong = values < 0
    if finite:
        wrong |= ~np.isfinite(values)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidRequest(f"{name}[{at}]={values[at]}: expected {'a finite number, ' if finite else ''}0 or more")


def check_times(name: str, values: NDArray[Any]) -> None:
    """InvalidRequest where a time is NaN, which is before and after nothing."""
    if values.dtype.kind == "f" and bool(np.isnan(values).any()):
        at = int(np.argmax(np.isnan(values)))
        raise InvalidRequest(f"{name}[{at}]={values[at]}: expected a time; NaN is none")


# -- requests, by method ----------------------------------------------------------------------------------------------


def _node_types(version: draw.Version) -> int:
    return len(version.schema.node_types)


def _edge_types(version: draw.Version) -> int:
    return len(version.schema.edge_types)


def _check_near(request: Frame, version: draw.Version) -> None:
    """Fields of requests that name nodes and the edge types to follow from them."""
    head: Any = request.head
    check_types("edge_types", head.edge_types, _edge_types(version))
    check_distinct("edge_types", list(head.edge_types))
    check_number("node_type", head.node_type, -1, _node_types(version) - 1)
    ids = request.array("ids", "int64")
    check_sections(request, ids.size, ("types", "positions", "times", "groups"))
    check_kinds("types", request.optional("types", "int32"), _node_types(version))


def _check_global(request: Frame, version: draw.Version, known: int) -> None:
    head: Any = request.head
    check_types("types", head.types, known)
    check_parts("parts", head.parts, version)
    if head.race or head.rest:
        taken = request.array("taken", "int64")
        check_sections(request, taken.size, ("taken_types",))
        check_kinds("taken_types", request.array("taken_types", "int32"), known)


def _check_draw_nodes(request: Frame, version: draw.Version) -> None:
    _check_global(request, version, _node_types(version))


def _check_draw_edges(request: Frame, version: draw.Version) -> None:
    _check_global(request, version, _edge_types(version))


def _check_draw_numbered(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    check_types("types", head.types, _node_types(version))
    kinds = request.optional("kinds", "int32")
    if kinds is not None:
        check_sections(request, request.array("numbers", "int64").size, ("kinds",))
        strange = np.setdiff1d(kinds, np.array(head.types, np.int64))
        if strange.size:
            raise InvalidRequest(f"kinds: found {int(strange[0])}; expected one of types={list(head.types[:_SHOWN])}")


def _check_draw_neighbors(request: Frame, version: draw.Version) -> None:
    _check_near(request, version)
    _check_until(request, "times")


def _check_until(request: Frame, section: str) -> None:
    head: Any = request.head
    if head.HasField("until") and section in request.arrays:
        check_times(section, request.arrays[section])


def _check_along(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    edge_types = [along.edge_type for along in head.along]
    check_types("along.edge_type", edge_types, _edge_types(version))
    check_distinct("along.edge_type", edge_types)
    for along in head.along:
        near, _ = draw.ends(version, along.edge_type, head.direction)
        ids = request.array(f"ids.{near}", "int64")
        check_sections(request, ids.size, (f"trees.{near}", f"times.{near}", f"levels.{along.edge_type}"))
        for name, finite in (("levels", False), ("importances", True)):  # the level of a node that expands to nothing is infinite, or no number
            check_measures(f"{name}.{along.edge_type}", request.optional(f"{name}.{along.edge_type}", "float64"), finite=finite)


def _check_expand(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    _check_along(request, version)
    for along in head.along:
        near, _ = draw.ends(version, along.edge_type, head.direction)
        _check_until(request, f"times.{near}")


def _check_grow(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    edge_types = [reach.edge_type for reach in head.reach]
    check_types("reach.edge_type", edge_types, _edge_types(version))
    check_distinct("reach.edge_type", edge_types)
    ids = request.array("ids", "int64")
    check_values("ids", ids, -1, np.iinfo(np.int64).max)
    check_sections(request, ids.size, ("types", "times"))
    check_kinds("types", request.array("types", "int32"), _node_types(version))
    _check_until(request, "times")


def _check_walk(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    for step in head.steps:
        check_types("steps.edge_types", step.edge_types, _edge_types(version))
    check_number("length", head.length, 0, MAX_OUTPUTS - 1)
    check_number("node_type", head.node_type, -1, _node_types(version) - 1)
    ids = request.array("ids", "int64")
    types = ("types", "start_types", "before_types")
    check_sections(request, ids.size, (*types, "positions", "taken", "starts", "before", "attempts"))
    for name in types:
        check_kinds(name, request.optional(name, "int32"), _node_types(version))
    check_values("attempts", request.optional("attempts", "int64"), 0, MAX_ATTEMPT)


def _check_join(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    check_types("edge_types", head.edge_types, _edge_types(version))
    ids = request.array("ids", "int64")
    check_sections(request, ids.size, ("types", "targets", "target_types"))
    for name in ("types", "target_types"):
        check_kinds(name, request.optional(name, "int32"), _node_types(version))


def _check_read_between(request: Frame, version: draw.Version) -> None:
    _check_near(request, version)
    cols = request.array("cols", "int64")
    check_sections(request, cols.size, ("col_types", "col_groups"))
    check_kinds("col_types", request.optional("col_types", "int32"), _node_types(version))


def _check_read_neighbors(request: Frame, version: draw.Version) -> None:
    _check_near(request, version)
    head: Any = request.head
    check_number("top", head.top, 0, MAX_OUTPUTS)


def _check_read_node_types(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    check_number("node_type", head.node_type, -1, _node_types(version) - 1)
    check_sections(request, request.array("ids", "int64").size, ("types",))
    check_kinds("types", request.optional("types", "int32"), _node_types(version))


def _check_read_labels(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    check_parts("parts", head.parts, version)
    check_number("cursor", head.cursor, 0, np.iinfo(np.int64).max)


def _check_read_labelled(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    check_parts("parts", head.parts, version)


def _check_judge(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    check_element("element", head.element)
    check_types("type_id", [head.type_id], _node_types(version) if head.element == draw.NODE else _edge_types(version))
    check_parts("parts", head.parts, version)


def _check_restrict(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    check_parts("parts", head.parts, version)


def _check_read_spread(request: Frame, version: draw.Version) -> None:
    _check_judge(request, version)


def _check_of_node_type(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    check_types("type_id", [head.type_id], _node_types(version))


def _check_of_edge_type(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    check_types("type_id", [head.type_id], _edge_types(version))


def _check_read_nodes(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    _check_of_node_type(request, version)
    check_parts("part", [head.part], version)


def _check_read_edges(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    _check_of_edge_type(request, version)
    check_parts("part", [head.part], version)


def _check_places(request: Frame, version: draw.Version) -> None:
    check_sections(request, request.array("places", "int64").size, ("parts",))
    check_values("parts", request.array("parts", "int32"), 0, version.schema.parts - 1)


def _check_read_nodes_at(request: Frame, version: draw.Version) -> None:
    _check_of_node_type(request, version)
    _check_places(request, version)


def _check_read_edges_at(request: Frame, version: draw.Version) -> None:
    _check_of_edge_type(request, version)
    _check_places(request, version)


def _check_rank(request: Frame, version: draw.Version) -> None:
    head: Any = request.head
    check_types("edge_types", head.edge_types, _edge_types(version))
    check_number("top", head.top, 1, MAX_OUTPUTS)
    check_sections(request, request.array("ids", "int64").size, ("types",))
    check_kinds("types", request.array("types", "int32"), _node_types(version))


_CHECKS: Mapping[str, Callable[[Frame, draw.Version], None]] = {
    "DrawNodesRequest": _check_draw_nodes,
    "DrawNumberedRequest": _check_draw_numbered,
    "DrawEdgesRequest": _check_draw_edges,
    "DrawNeighborsRequest": _check_draw_neighbors,
    "ExpandRequest": _check_expand,
    "GrowRequest": _check_grow,
    "ReadNeighborsRequest": _check_read_neighbors,
    "ReadDegreesRequest": _check_near,
    "ReadBetweenRequest": _check_read_between,
    "ReadNodeTypesRequest": _check_read_node_types,
    "ReadLabelsRequest": _check_read_labels,
    "ReadLabelledRequest": _check_read_labelled,
    "WalkRequest": _check_walk,
    "JoinRequest": _check_join,
    "JudgeRequest": _check_judge,
    "RestrictRequest": _check_restrict,
    "ReadNodeFeaturesRequest": _check_of_node_type,
    "ReadEdgeFeaturesRequest": _check_of_edge_type,
    "ReadNodesRequest": _check_read_nodes,
    "ReadNodesAtRequest": _check_read_nodes_at,
    "ReadEdgesAtRequest": _check_read_edges_at,
    "ReadEdgesRequest": _check_read_edges,
    "ReadSpreadRequest": _check_read_spread,
    "RankRequest": _check_rank,
    "RaiseImportancesRequest": _check_along,
}
"""Of every request that names a version, by the name of its head."""


def validate(request: Frame, version: draw.Version) -> None:
    """Prove a request to be in range of the version that it names.

    Raises
    ------
    InvalidRequest
        Naming the field and the value.
    Unavailable
        Where a part that it names is not held here.
    """
    _CHECKS[request.head.DESCRIPTOR.name](request, version)
