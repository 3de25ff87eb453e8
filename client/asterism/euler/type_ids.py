"""Selection of node and edge types in Euler's notation.

A selector is a name, a number, a string of digits, or -1 for all types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from asterism.calls import validation
from asterism.name_conversion import as_name
from asterism.records.arrays import Types
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest, NotFound

TypeSelector = Any
"""A name or number, a list or array of these, or -1, "-1" or None for all."""


class TypeIds:
    """Numbers of a schema's types in Euler, and the types that a selector names.

    The number of a node type is its position in the schema. Euler's edge types do not name the
    types of their ends: an edge type of Euler is a *relation*, which contains every triple of that
    name. Its number is the position of the relation among all relations, in order of first
    appearance. The name of a triple selects that triple alone.

    Parameters
    ----------
    schema : Schema
        Schema of the graph space.
    space : str
        Name of the graph space, for messages.

    Raises
    ------
    InvalidRequest
        If ids are per type and there are several node types.
    """

    def __init__(self, schema: Schema, space: str) -> None:
        if schema.ids != "global" and len(schema.node_types) > 1:
            raise InvalidRequest(
                f"space={space!r}: expected a space with ids: global, because Euler identifies a "
                "node by its id alone, and ids are per type here; load the graph into a space with "
                "ids: global"
            )
        self._node_types = [t.name for t in schema.node_types]
        self.single_node_type = self._node_types[0] if len(self._node_types) == 1 else None
        """Node type of a schema with exactly one; None if there are several."""
        self._triples = [t.name for t in schema.edge_types]
        self._relations = list(dict.fromkeys(t.relation for t in schema.edge_types))
        self._relation_of = np.array(
            [*(self._relations.index(t.relation) for t in schema.edge_types), -1], np.int32
        )

    def node_type_ids(self, types: TypeSelector) -> list[int]:
        """Return the numbers of node types; raise NotFound if a type does not exist."""
        if _is_all(types):
            return list(range(len(self._node_types)))
        return [
            _type_number("node type", self._node_types, selector) for selector in _as_list(types)
        ]

    def node_names(self, types: TypeSelector) -> list[str] | None:
        """Return the names of node types, as a graph accepts them; None for all."""
        return (
            None
            if _is_all(types)
            else [self._node_types[type_id] for type_id in self.node_type_ids(types)]
        )

    def edge_type_ids(self, types: TypeSelector) -> list[int]:
        """Return the numbers of edge types; raise NotFound if a type does not exist."""
        if _is_all(types):
            return list(range(len(self._relations)))
        return [self._relation_id(selector) for selector in _as_list(types)]

    def edge_names(self, types: TypeSelector) -> list[str] | None:
        """Return edge types as a graph accepts them: triples in order of selection.

        None selects all.
        """
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

    def path(self, parameter: str, steps: Sequence[TypeSelector]) -> list[list[str] | None]:
        """Return the edge types of each hop, as a graph accepts them."""
        if isinstance(steps, str):
            raise InvalidRequest(
                f"{parameter}={steps!r}: expected a list with the edge types of each hop"
            )
        return [self.edge_names(step) for step in steps]

    def relation_of(self, triple: str) -> int:
        """Return the number of the relation of a triple."""
        return int(self._relation_of[self._triples.index(triple)])

    def relation_numbers(self, edge_types: Types) -> Types:
        """Return Euler's numbers of edge type ids; -1 stays -1."""
        return self._relation_of[edge_types]

    def _relation_id(self, selector: Any) -> int:
        if selector in self._triples:
            relation_id = self.relation_of(selector)
            if int((self._relation_of == relation_id).sum()) > 1:
                raise InvalidRequest(
                    f"edge type {selector!r}: expected a relation with one edge type, but "
                    f"{self._relations[relation_id]!r} has several, which share a number"
                )
            return relation_id
        return _type_number("edge type", self._relations, selector)

    def _triples_of(self, relation: int) -> list[str]:
        return [
            name
            for name, relation_id in zip(self._triples, self._relation_of, strict=False)
            if relation_id == relation
        ]


def require_same_hops(edge_types: Sequence[TypeSelector], counts: Sequence[int]) -> None:
    """Raise InvalidRequest if the two lists differ in length, or are empty."""
    if len(edge_types) != len(counts) or not len(counts):
        raise InvalidRequest(
            f"edge_types={edge_types!r}, counts={counts!r}: expected two lists of one length, an "
            "entry for each hop"
        )


def _as_list(types: TypeSelector) -> list[Any]:
    if isinstance(types, str | bytes | int | np.integer):
        types = [types]
    selectors = (
        list(types)
        if isinstance(types, list | tuple)
        else validation.as_array("types", types, "types").reshape(-1).tolist()
    )
    return [
        selector.decode() if isinstance(selector, bytes) else selector for selector in selectors
    ]


def _is_all(types: TypeSelector) -> bool:
    return types is None or _as_list(types)[:1] in ([-1], ["-1"])


def _type_number(kind: str, names: Sequence[str], selector: Any) -> int:
    """Return the position of the type that a name or number selects."""
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
        f"{kind} {selector!r}: expected one of "
        f"{', '.join(f'{name} ({number})' for number, name in enumerate(names)) or 'none'}"
    )
