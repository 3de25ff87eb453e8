"""What storaged is asked for the rarer operators: draws by number, edges between lists of nodes, types and labels of nodes, the spread of weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import storaged_pb2 as pb
from daemonkit.calls import Call
from graphkit.labor import UNTIL_SETTLED
from storaged import draw

Sections = dict[str, NDArray[Any]]

MOST_NEIGHBORS = (60 << 20) // 16
"""That an importance step tells of, so that it fits into a message of 64 MiB."""


def until_of(request: Frame, section: str = "times") -> draw.Until | None:
    """Until when a request's nodes see edges; None where it does not say."""
    head: Any = request.head
    if not head.HasField("until"):
        return None
    times = request.arrays.get(section)
    dtype = "float64" if times is not None and times.dtype.kind == "f" else "int64"
    return draw.Until(times=request.array(section, dtype), strict=head.until.strict, last=head.until.last, want_times=head.until.want_times)


def variates_of(said: pb.Variates) -> draw.Variates:
    """Whose variates keep edges."""
    if said.importance < UNTIL_SETTLED:
        raise InvalidRequest(f"{said.importance} importance steps: expected 0 or more, or {UNTIL_SETTLED}: until they change little")
    return draw.Variates(layer_dependency=said.layer_dependency, importance=said.importance)


def stepped_of(request: Frame, edge_type: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Levels and importances along an edge type, where importance steps were taken before; None where the request has none."""
    names = f"levels.{edge_type}", f"importances.{edge_type}"
    if not any(name in request.arrays for name in names):
        return None
    return request.array(names[0], "float64"), request.array(names[1], "float64")


class Operators(ABC):
    """Handlers of the Store service, one part of them."""

    @abstractmethod
    def _version(self, request: Frame, call: Call, *, globally: int = 0) -> draw.Version:
        """Return the version that a request names, after validation of the request.

        ``globally`` is the element that is drawn, for global draws with replacement alone; 0 otherwise.
        """

    def draw_numbered(self, request: Frame, call: Call) -> Frame:
        """Draws of nodes by their numbers."""
        head: Any = request.head
        drawn = draw.numbered_nodes(
            self._version(request, call, globally=draw.NODE).weighed(head.weight, draw.NODE, head.types),
            types=list(head.types),
            numbers=request.array("numbers", "int64"),
            kinds=request.optional("kinds", "int32"),
            seed=head.seed,
            uniform=head.uniform,
            want_probabilities=head.want_probabilities,
            checkpoint=call.remaining,
        )
        sections = {"ids": drawn.ids, "types": drawn.types, "probabilities": drawn.probabilities}
        return Frame(pb.DrawNumberedReply(), {name: array for name, array in sections.items() if array is not None})

    def read_between(self, request: Frame, call: Call) -> Frame:
        """The edges of nodes that live here to some others."""
        head: Any = request.head
        found = draw.edges_between(
            self._version(request, call).weighed(head.weight, draw.EDGE, head.edge_types),
            edge_types=list(head.edge_types),
            node_type=head.node_type,
            ids=request.array("ids", "int64"),
            types=request.optional("types", "int32"),
            cols=request.array("cols", "int64"),
            col_types=request.optional("col_types", "int32"),
            groups=request.optional("groups", "int32"),
            col_groups=request.optional("col_groups", "int32"),
            direction=head.direction,
            want_weights=head.want_weights,
            want_edge_ids=head.want_edge_ids,
            checkpoint=call.remaining,
        )
        sections: Sections = {"counts": found.counts, "cols": found.cols}
        wanted = {"types": found.types, "weights": found.weights, "eids": found.eids}
        return Frame(pb.ReadBetweenReply(), sections | {name: array for name, array in wanted.items() if array is not None})

    def read_node_types(self, request: Frame, call: Call) -> Frame:
        """The types of nodes that live here."""
        head: Any = request.head
        version, types = self._version(request, call), request.optional("types", "int32")
        return Frame(
            pb.ReadNodeTypesReply(), {"types": draw.node_types(version, head.node_type, request.array("ids", "int64"), types, call.remaining)}
        )

    def read_labels(self, request: Frame, call: Call) -> Frame:
        """A page of the graph labels of parts held here."""
        head: Any = request.head
        sections, cursor = draw.read_labels(self._version(request, call), list(head.parts), head.cursor)
        return Frame(pb.ReadLabelsReply(next_cursor=cursor), sections)

    def read_labelled(self, request: Frame, call: Call) -> Frame:
        """The nodes of graph labels."""
        head: Any = request.head
        sections = draw.read_labelled(
            self._version(request, call), list(head.parts), request.array("indptr", "int64"), request.array("values", "uint8")
        )
        return Frame(pb.ReadLabelledReply(), sections)

    def read_spread(self, request: Frame, call: Call) -> Frame:
        """How the weights of a type are spread over the parts held here."""
        head: Any = request.head
        version = self._version(request, call).weighed(head.weight, head.element, [head.type_id])
        found = draw.weight_spread(version, head.element, head.type_id, list(head.parts), call.remaining)
        return Frame(pb.ReadSpreadReply(), {"counts": found.counts, "sums": found.sums})

    def rank(self, request: Frame, call: Call) -> Frame:
        """The nodes at which walks end most often, where all parts are held here."""
        head: Any = request.head
        found = draw.rank(
            self._version(request, call).weighed(head.weight, draw.EDGE, head.edge_types),
            ids=request.array("ids", "int64"),
            kinds=request.array("types", "int32"),
            edge_types=list(head.edge_types),
            direction=head.direction,
            uniform=head.uniform,
            alpha=head.alpha,
            epsilon=head.epsilon,
            top=head.top,
            checkpoint=call.remaining,
        )
        return Frame(pb.RankReply(), {"ids": found.ids, "kinds": found.kinds, "scores": found.scores, "residuals": found.residuals})

    def raise_importances(self, request: Frame, call: Call) -> Frame:
        """An importance step of LABOR, of nodes that live here."""
        head: Any = request.head
        version = self._version(request, call).weighed(head.weight, draw.EDGE, [along.edge_type for along in head.along])
        sections = Sections()
        for along in head.along:
            near, _ = draw.ends(version, along.edge_type, head.direction)
            levels, importances = stepped_of(request, along.edge_type) or (None, None)
            stepped = draw.Stepped(
                version,
                edge_type=along.edge_type,
                direction=head.direction,
                uniform=head.uniform,
                count=along.count,
                ids=request.array(f"ids.{near}", "int64"),
                levels=levels,
                checkpoint=call.remaining,
            )
            if stepped.neighbors.size > MOST_NEIGHBORS:
                raise InvalidRequest(
                    f"the nodes of the hop that live on one host lead to {stepped.neighbors.size} different ones, with importance steps to "
                    f"{MOST_NEIGHBORS} at most; start from fewer seeds, or ask without importance steps"
                )
            found: Sections = {"largest": stepped.raised(importances), "levels": stepped.levels}
            if importances is None:
                found["neighbors"] = stepped.neighbors
            sections |= {f"{name}.{along.edge_type}": column for name, column in found.items()}
        return Frame(pb.RaiseImportancesReply(), sections)
