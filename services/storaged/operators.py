"""What storaged is asked for the rarer operators: draws by number, edges between lists of nodes, types and labels of nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.v1 import storaged_pb2 as pb
from daemonkit.calls import Call
from storaged import draw

Sections = dict[str, NDArray[Any]]


class Operators(ABC):
    """Handlers of the Store service, one part of them."""

    @abstractmethod
    def _version(self, at: pb.At, call: Call) -> draw.Version:
        """The version that a request names."""

    def draw_numbered(self, request: Frame, call: Call) -> Frame:
        """Draws of nodes by their numbers."""
        head: Any = request.head
        drawn = draw.numbered_nodes(
            self._version(head.at, call).weighed(head.weight, draw.NODE, head.types),
            types=list(head.types),
            numbers=request.array("numbers", "int64"),
            kinds=request.optional("kinds", "int32"),
            seed=head.seed,
            uniform=head.uniform,
            want_probabilities=head.want_probabilities,
        )
        sections: Sections = {"ids": drawn.ids, "types": drawn.types}
        if drawn.probabilities is not None:
            sections["probabilities"] = drawn.probabilities
        return Frame(pb.DrawNumberedReply(), sections)

    def read_between(self, request: Frame, call: Call) -> Frame:
        """The edges of nodes that live here to some others."""
        head: Any = request.head
        found = draw.edges_between(
            self._version(head.at, call).weighed(head.weight, draw.EDGE, head.edge_types),
            edge_types=list(head.edge_types),
            node_type=head.node_type,
            ids=request.array("ids", "int64"),
            types=request.optional("types", "int32"),
            cols=request.array("cols", "int64"),
            col_types=request.optional("col_types", "int32"),
            direction=head.direction,
            want_weights=head.want_weights,
            want_edge_ids=head.want_edge_ids,
        )
        sections: Sections = {"indptr": found.indptr, "cols": found.cols, "types": found.types}
        wanted = {"weights": found.weights, "eids": found.eids}
        return Frame(pb.ReadBetweenReply(), sections | {name: array for name, array in wanted.items() if array is not None})

    def read_node_types(self, request: Frame, call: Call) -> Frame:
        """The types of nodes that live here."""
        head: Any = request.head
        version, types = self._version(head.at, call), request.optional("types", "int32")
        return Frame(pb.ReadNodeTypesReply(), {"types": draw.node_types(version, head.node_type, request.array("ids", "int64"), types)})

    def read_labels(self, request: Frame, call: Call) -> Frame:
        """A page of the graph labels of parts held here."""
        head: Any = request.head
        sections, cursor = draw.read_labels(self._version(head.at, call), list(head.parts), head.cursor)
        return Frame(pb.ReadLabelsReply(next_cursor=cursor), sections)

    def read_labelled(self, request: Frame, call: Call) -> Frame:
        """The nodes of graph labels."""
        head: Any = request.head
        sections = draw.read_labelled(
            self._version(head.at, call), list(head.parts), request.array("indptr", "int64"), request.array("values", "uint8")
        )
        return Frame(pb.ReadLabelledReply(), sections)
