"""Types as Euler names them: by name, by number, by a text that is a number, and -1 for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from asterism.euler.values import framework_named
from asterism.foreign_names import as_name
from asterism.graph import Graph
from asterism.records.arrays import Ids, Types
from asterism_proto.errors import InvalidRequest, NotFound

TypeSelector = Any
"""A name or number, a list or array of them, or -1, "-1" or None for all."""

UNKNOWN = np.int32(np.iinfo(np.int32).min)
"""The type of a node that is not there."""


class TypeIds:
    """The part that knows types, and the graph that is asked.

    A node type's number is its place in the schema. Euler's edge types know no types of their ends:
    an edge type of Euler's is a *relation*, with every triple of that name, and its number is the
    place of the first of them. A triple's name means that one alone."""

    def __init__(self, graph: Graph, *, framework: str = "numpy") -> None:
        schema = graph.schema
        if schema.ids != "global" and len(schema.node_types) > 1:
            raise InvalidRequest(
                f"space {graph.space!r} has ids per type and types "
                f"{', '.join(t.name for t in schema.node_types)}: "
                "Euler names a node by its id alone; load the graph into a space of `ids: global`"
            )
        self.graph = graph
        self._framework = framework_named(framework)
        self._node_types = [t.name for t in schema.node_types]
        self._ntype = self._node_types[0] if len(self._node_types) == 1 else None
        self._triples = [t.name for t in schema.edge_types]
        self._relations = list(dict.fromkeys(t.relation for t in schema.edge_types))
        self._relation_of = np.array(
            [*(self._relations.index(t.relation) for t in schema.edge_types), -1], np.int32
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.graph!r})"

    def get_node_type_id(self, types: TypeSelector) -> Any:
        """The numbers of node types.

        Parameters
        ----------
        types : str, int, or list of these
            Names, or numbers, which are checked. Where the first is -1: all.

        Returns
        -------
        int32[t]

        Raises
        ------
        NotFound
            Where there is no such type.
        """
        return self._framework.dense(np.array(self._node_type_ids(types), np.int32))

    def get_edge_type_id(self, types: TypeSelector) -> Any:
        """The numbers of edge types; as `get_node_type_id`."""
        return self._framework.dense(
            np.array(
                [self._relation_id(selector) for selector in _as_list(types)]
                if not _is_all(types)
                else range(len(self._relations)),
                np.int32,
            )
        )

    def _node_type_ids(self, types: TypeSelector) -> list[int]:
        if _is_all(types):
            return list(range(len(self._node_types)))
        return [
            _type_number("node type", self._node_types, selector) for selector in _as_list(types)
        ]

    def _node_names(self, types: TypeSelector) -> list[str] | None:
        """Node types as a graph takes them."""
        return (
            None
            if _is_all(types)
            else [self._node_types[type_id] for type_id in self._node_type_ids(types)]
        )

    def _relation_id(self, selector: Any) -> int:
        if selector in self._triples:
            relation_id = int(self._relation_of[self._triples.index(selector)])
            if int((self._relation_of == relation_id).sum()) > 1:
                raise InvalidRequest(
                    f"edge type {selector!r} is one of several of "
                    f"{self._relations[relation_id]!r}, and has no number of its own"
                )
            return relation_id
        return _type_number("edge type", self._relations, selector)

    def _edge_names(self, types: TypeSelector) -> list[str] | None:
        """Edge types as a graph takes them: triples, in the order in which they were asked for."""
        if _is_all(types):
            return None
        names: list[str] = []
        for selector in _as_list(types):
            names += (
                [selector]
                if selector in self._triples
                else self._triples_of(_type_number("edge type", self._relations, selector))
            )
        return list(dict.fromkeys(names))

    def _triples_of(self, relation: int) -> list[str]:
        return [
            name
            for name, relation_id in zip(self._triples, self._relation_of, strict=False)
            if relation_id == relation
        ]

    def _path(self, parameter: str, steps: Sequence[TypeSelector]) -> list[list[str] | None]:
        """The edge types of each hop."""
        if isinstance(steps, str):
            raise InvalidRequest(
                f"{parameter} {steps!r}: expected a list with the edge types of each hop"
            )
        return [self._edge_names(step) for step in steps]

    def _pinned_graph(self) -> Graph:
        """The graph at one version, for what takes several calls."""
        return (
            self.graph
            if self.graph.version is not None
            else self.graph.at(self.graph.manifest().version)
        )

    def _relation_numbers(self, edge_types: Types) -> Types:
        """Euler's numbers of edge types; -1 stays."""
        return self._relation_of[edge_types]


def flat_ids(nodes: ArrayLike) -> Ids:
    """Nodes of any shape, laid flat."""
    return np.asarray(nodes).reshape(-1)


def _as_list(types: TypeSelector) -> list[Any]:
    if isinstance(types, str | bytes | int | np.integer):
        types = [types]
    selectors = (
        list(types) if isinstance(types, list | tuple) else np.asarray(types).reshape(-1).tolist()
    )
    return [
        selector.decode() if isinstance(selector, bytes) else selector for selector in selectors
    ]


def _is_all(types: TypeSelector) -> bool:
    return types is None or _as_list(types)[:1] in ([-1], ["-1"])


def _type_number(kind: str, names: Sequence[str], selector: Any) -> int:
    """The place of a type that a name or number means."""
    if isinstance(selector, str):
        for name in (selector, as_name(selector)):
            if name in names:
                return names.index(name)
        selector = int(selector) if selector.isdecimal() else selector
    if (
        isinstance(selector, int | np.integer)
        and not isinstance(selector, bool)
        and 0 <= selector < len(names)
    ):
        return int(selector)
    raise NotFound(
        f"no {kind} {selector!r}; there are "
        f"{', '.join(f'{name} ({number})' for number, name in enumerate(names)) or 'none'}"
    )
