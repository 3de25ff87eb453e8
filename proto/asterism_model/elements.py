"""Elements of a graph: nodes and edges."""

from __future__ import annotations

from enum import StrEnum

from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb

NODE, EDGE = 1, 2
"""Numbers of the elements, equal to those of `asterism.v1.Element`."""


class Element(StrEnum):
    """The element that a type describes, nodes or edges. Compares equal to its name."""

    NODE = "NODE"
    EDGE = "EDGE"

    @property
    def number(self) -> int:
        """Number of the element in messages: 1 for nodes, 2 for edges."""
        return int(common_pb.Element.Value(self.value))

    def __repr__(self) -> str:
        return repr(self.value)


def element_from_proto(label: str, value: int) -> Element:
    """Return the element with a number; raise InvalidRequest with ``label`` if there is none."""
    for element in Element:
        if element.number == value:
            return element
    raise InvalidRequest(f"{label}: element {value}; expected NODE (1) or EDGE (2)")
