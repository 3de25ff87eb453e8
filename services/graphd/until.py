"""Until when the nodes of a request see edges: what it says, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import Schema
from asterism_proto.times import seen_as
from asterism_proto.v1 import common_pb2 as pb


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Until:
    """Until when edges are seen."""

    times: NDArray[Any]
    """int64[m] or float64[m], of each node, or of each seed and its tree."""
    head: pb.Until

    def spread(self, count: int) -> Until:
        """The same of the nodes that ``count`` draws of each of these give."""
        return Until(times=np.repeat(self.times, count), head=self.head)

    def at(self, places: NDArray[Any] | None) -> NDArray[Any]:
        """The times of the nodes at these places; None: of all."""
        return self.times if places is None else self.times[places]


def of_neighbors(request: Frame, schema: Schema, edge_types: Sequence[int]) -> Until | None:
    """Until when neighbors are seen; None: always.

    Raises
    ------
    InvalidRequest
        Where there is no time for each node, an edge type has none, or what is asked for beside it is not served with times.
    """
    found = _of_draws(request)
    if found is not None:
        _check_union(request, schema, edge_types)
    return found


def of_fanout(request: Frame, schema: Schema, hops: Sequence[Sequence[int]]) -> list[Until | None]:
    """Until when neighbors are seen of each hop; None: always, as where none of its edge types has times.

    A node's time holds for all that is drawn from it, hop after hop: times of every hop are those of the nodes that the request starts from.
    Errors as of `of_neighbors`; one hop along edge types with times is enough.
    """
    head: Any = request.head
    found = _of_draws(request)
    if found is None:
        return [None] * len(hops)
    timed = [any(seen_as(schema, e, incoming=head.direction == pb.IN) for e in hop) for hop in hops]
    for hop, some in zip(hops, timed, strict=True):
        if some or not any(timed):
            _check_union(request, schema, hop)
    return [found if some else None for some in timed]


def _check_union(request: Frame, schema: Schema, edge_types: Sequence[int]) -> None:
    """InvalidRequest where one draw can not be from these edge types until times."""
    head: Any = request.head
    kinds = {schema.edge_types[e].name: seen_as(schema, e, incoming=head.direction == pb.IN) for e in edge_types}
    without = [name for name, kind in kinds.items() if not kind]
    if without:
        raise InvalidRequest(f"times with edge types {', '.join(without)}, which have none; declare which feature is their time, or leave them out")
    if len(set(kinds.values())) > 1:
        raise InvalidRequest(f"times of {', '.join(kinds)} are whole numbers and floats; ask for those of one kind at a time")


def of_subgraph(request: Frame, schema: Schema) -> Until | None:
    """Until when the trees of seeds see edges; None: always. Errors as of `of_neighbors`; one edge type with times is enough."""
    head: Any = request.head
    found = _of(request)
    if found is None:
        return None
    if not head.disjoint:
        raise InvalidRequest("times of seeds with trees that are merged: a node that two seeds reach would have two times; sample with disjoint=True")
    types = [reach.edge_type for reach in head.reach]
    if not any(seen_as(schema, e, incoming=head.direction == pb.IN) for e in types):
        names = ", ".join(schema.edge_types[e].name for e in types)
        raise InvalidRequest(f"times with edge types {names}: none of them has times; declare which feature is one's time, or their nodes'")
    return found


def _of_draws(request: Frame) -> Until | None:
    head: Any = request.head
    found = _of(request)
    if found is not None and head.want_probabilities:
        raise InvalidRequest("probabilities of neighbors until times are not served; leave one of them out")
    return found


def _of(request: Frame) -> Until | None:
    head: Any = request.head
    if not head.HasField("until"):
        return None
    if head.until.last and head.replace:
        raise InvalidRequest("the last neighbors with replacement: they are taken, not drawn; sample with replace=False")
    times = request.arrays.get("times")
    found = request.array("times", "float64" if times is not None and times.dtype.kind == "f" else "int64")
    if len(found) != len(request.arrays["nodes"]):
        raise InvalidRequest(f"times has {len(found)} entries for {len(request.arrays['nodes'])} nodes")
    if found.dtype.kind == "f" and np.isnan(found).any():
        raise InvalidRequest(f"times[{int(np.argmax(np.isnan(found)))}] = nan: a time is a number")
    return Until(times=found, head=pb.Until(strict=head.until.strict, last=head.until.last, want_times=head.until.want_times))
