"""State shared by all groups of Euler's operators."""

from __future__ import annotations

from numpy.typing import ArrayLike

from asterism.calls import validation
from asterism.euler.frameworks import framework_named
from asterism.euler.type_ids import TypeIds
from asterism.graph import Graph
from asterism.records.arrays import Ids


class EulerCalls:
    """A graph, Euler's numbers of its types, and the framework of results.

    Each group of operators derives from this class alone, and no group imports another.
    `asterism.euler.facade.Euler` combines them.
    """

    def __init__(self, graph: Graph, *, framework: str = "numpy") -> None:
        self._types = TypeIds(graph.schema, graph.space)
        self.graph = graph
        self._framework = framework_named(framework)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.graph!r})"

    def _pinned_graph(self) -> Graph:
        """Return the graph at one version, for operators that take several calls."""
        return (
            self.graph
            if self.graph.version is not None
            else self.graph.at(self.graph.manifest().version)
        )


def flat_ids(nodes: ArrayLike) -> Ids:
    """Return node ids of any shape as one dimension."""
    return validation.as_array("nodes", nodes, "integers").reshape(-1)
