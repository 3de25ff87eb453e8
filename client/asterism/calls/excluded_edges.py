"""Edges that calls exclude: the accepted forms, and their form in a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asterism.calls import validation
from asterism.records.samples import EdgeRows, EdgeSample, Ids, LinkSeeds
from asterism_model.excluded_edges import ANY_EDGE_ID, ExcludedEdges, check_entry_count
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest

EdgesOfType = EdgeRows | tuple[ArrayLike, ...] | ArrayLike
"""Edges of one type: a record, ``(src, dst)``, ``(src, dst, edge_ids)``, or rows of these."""
EdgeExclusion = LinkSeeds | EdgeSample | EdgesOfType | Mapping[str, EdgesOfType] | None
"""Edges that a call excludes; without an edge type, they are of the only type it follows."""
ReverseTypes = Mapping[str, str] | None
"""Edge type of the reverse edges of each edge type."""
NodeIds = Callable[[ArrayLike, str], Ids]
"""Function that returns the ids of nodes of a type, of which some may be given by name."""


def excluded_edges(
    schema: Schema,
    exclude: EdgeExclusion,
    reverse_types: ReverseTypes,
    edge_types: Sequence[int],
    node_ids: NodeIds,
) -> ExcludedEdges | None:
    """Return the edges that a call excludes; None for none.

    Parameters
    ----------
    schema : Schema
    exclude, reverse_types
        Arguments of the call.
    edge_types : sequence of int
        Edge types that the call follows.
    node_ids : callable
        Returns the ids of nodes of a type.

    Raises
    ------
    InvalidRequest
        If the edges have no edge type although the call follows several, arrays differ in length,
        or a reverse type does not join the same node types.
    NotFound
        If there is no such edge type.
    """
    reverse = _reverse_ids(schema, reverse_types)
    if exclude is None:
        if reverse:
            raise InvalidRequest(
                f"reverse_types={dict(reverse_types or {})} with exclude=None: expected edges to "
                "exclude; pass exclude, or leave reverse_types out"
            )
        return None
    pieces = []
    for edge_type, edges in edges_by_type(schema, exclude, edge_types):
        ends = schema.edge_types[edge_type]
        src, dst, eids = edge_columns(edges)
        src_ids, dst_ids = node_ids(src, ends.src_type), node_ids(dst, ends.dst_type)
        validation.require_length("exclude", dst_ids, len(src_ids))
        if eids is not None:
            eids = validation.ids("exclude", eids, minimum=ANY_EDGE_ID)
            validation.require_length("exclude", eids, len(src_ids))
        pieces.append(_entries(edge_type, src_ids, dst_ids, eids))
        if edge_type in reverse:
            pieces.append(_entries(reverse[edge_type], dst_ids, src_ids, None))
    if not pieces:
        return None
    excluded = ExcludedEdges.concatenate(pieces)
    check_entry_count(len(excluded))
    return excluded if len(excluded) else None


def excluded_by_name(
    schema: Schema, excluded: ExcludedEdges | None
) -> dict[str, EdgesOfType] | None:
    """Return resolved exclusions in the form that calls accept, by name of the edge type."""
    if excluded is None:
        return None
    rows = {int(type_id): excluded.types == type_id for type_id in np.unique(excluded.types)}
    return {
        schema.edge_types[type_id].name: (excluded.src[of], excluded.dst[of], excluded.eids[of])
        for type_id, of in rows.items()
    }


def _entries(edge_type: int, src: Ids, dst: Ids, eids: Ids | None) -> ExcludedEdges:
    return ExcludedEdges(
        types=np.full(len(src), edge_type, np.int32),
        src=src,
        dst=dst,
        eids=np.full(len(src), ANY_EDGE_ID, np.int64) if eids is None else eids,
    )


def _reverse_ids(schema: Schema, reverse_types: ReverseTypes) -> dict[int, int]:
    """Return the reverse edge type of each edge type, by id."""
    if reverse_types is None:
        return {}
    if not isinstance(reverse_types, Mapping):
        raise InvalidRequest(
            f"reverse_types={reverse_types!r}: expected a dict of edge type to edge type"
        )
    result = {}
    for name, reverse_name in reverse_types.items():
        forward, backward = _edge_type_id(schema, name), _edge_type_id(schema, reverse_name)
        ends, reverse_ends = schema.edge_types[forward], schema.edge_types[backward]
        if (ends.src_type, ends.dst_type) != (reverse_ends.dst_type, reverse_ends.src_type):
            raise InvalidRequest(
                f"reverse_types[{name!r}]={reverse_name!r}: expected an edge type from "
                f"{ends.dst_type!r} to {ends.src_type!r}"
            )
        result[forward] = backward
    return result


def _edge_type_id(schema: Schema, name: Any, argument: str = "exclude") -> int:
    if isinstance(name, tuple) and len(name) == 3:
        name = ":".join(map(str, name))
    if not isinstance(name, str):
        raise InvalidRequest(f"{argument} with {name!r}: expected the name of an edge type")
    return schema.edge_type_id(name)


def edges_by_type(
    schema: Schema, edges: Any, edge_types: Sequence[int], *, argument: str = "exclude"
) -> list[tuple[int, EdgesOfType]]:
    """Return edges in any accepted form, by the id of their edge type.

    Raise InvalidRequest if they have no edge type and ``edge_types`` are several, and NotFound if
    there is no such edge type. Of `LinkSeeds`, the positives are the edges.
    """
    if isinstance(edges, LinkSeeds):
        positives = slice(edges.positives)
        columns = [edges.src[positives], edges.dst[positives]]
        columns += [] if edges.edge_ids is None else [edges.edge_ids]
        return [(schema.edge_type_id(edges.etype), tuple(columns))]
    if isinstance(edges, EdgeSample):
        columns = [edges.src, edges.dst, edges.edge_ids]
        return [
            (int(edge_type), tuple(column[edges.types == edge_type] for column in columns))
            for edge_type in np.unique(edges.types)
        ]
    if isinstance(edges, Mapping):
        return [(_edge_type_id(schema, name, argument), of) for name, of in edges.items()]
    candidates = list(dict.fromkeys(edge_types)) or list(range(len(schema.edge_types)))
    if len(candidates) != 1:
        names = ", ".join(schema.edge_types[edge_type].name for edge_type in candidates)
        raise InvalidRequest(
            f"{argument} without an edge type: expected a dict of edge type to edges, because the "
            f"call follows {names}"
        )
    return [(candidates[0], edges)]


def edge_columns(
    edges: Any, *, argument: str = "exclude"
) -> tuple[ArrayLike, ArrayLike, ArrayLike | None]:
    """Return sources, destinations and edge ids of edges of one type.

    Raise InvalidRequest if they have none of the accepted forms.
    """
    if isinstance(edges, EdgeRows):
        return edges.src, edges.dst, edges.edge_ids
    if isinstance(edges, tuple):
        if len(edges) not in (2, 3):
            raise InvalidRequest(
                f"{argument} with a tuple of {len(edges)} arrays: expected (src, dst) or (src, "
                "dst, edge_ids)"
            )
        return edges[0], edges[1], edges[2] if len(edges) == 3 else None
    rows = validation.as_array(argument, edges, "ids")
    if not rows.size:
        rows = rows.reshape(0, 2)
    if rows.ndim != 2 or rows.shape[1] not in (2, 3):
        raise InvalidRequest(
            f"{argument} of shape {list(rows.shape)}: expected a tuple (src, dst), or rows of "
            "source and destination, [m, 2]"
        )
    return rows[:, 0], rows[:, 1], rows[:, 2] if rows.shape[1] == 3 else None
