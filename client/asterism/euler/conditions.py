"""Euler's conditions, as ``price gt 3 and brand eq a or stock le 2``, in the words of `asterism_proto.condition`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from asterism_proto.condition import Literal
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.schema import EdgeType, NodeType, Schema

_SIGNS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!="}
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_OWN = ("id", "weight", "type")

Columns = Callable[[str], tuple[str, bool] | None]
"""How a column is written, and whether it is of texts; None where there is none of that name."""


def of_nodes(condition: str, schema: Schema, names: Iterable[str] | None) -> str:
    """A condition of Euler's on nodes of these types (None: of all) as ours.

    Parameters
    ----------
    condition : str
        Tests ``name gt|ge|lt|le|eq|ne value``, with ``and`` before ``or`` between them; "" is none. A value that is no number is a text.
    schema : Schema
    names : list of str, optional

    Raises
    ------
    InvalidRequest
        Where it is none.
    NotFound
        Where no type has a column that it names.

    Notes
    -----
    A row of a type without a column does not satisfy a test of it.
    """
    types = [schema.node_types[schema.node_type_id(name)] for name in names] if names is not None else schema.node_types
    return _of_each(condition, [(kind.name, partial(_of, kind, "")) for kind in types])


def of_edges(condition: str, schema: Schema, names: Iterable[str] | None) -> str:
    """A condition on edges, as `of_nodes`: of the edges where they have the feature, otherwise of the nodes that they lead to."""
    types = [schema.edge_types[schema.edge_type_id(name)] for name in names] if names is not None else schema.edge_types

    def column(edge: EdgeType, name: str) -> tuple[str, bool] | None:
        return _of(edge, "", name) or _of(schema.node_types[schema.node_type_id(edge.dst_type)], "dst.", name)

    return _of_each(condition, [(kind.name, partial(column, kind)) for kind in types])


def _of(kind: NodeType | EdgeType, of: str, name: str) -> tuple[str, bool] | None:
    if name in _OWN:
        return f"{of}{name}", name == "type"
    return next(((f"{of}`{name}`", feature.kind == "bytes") for feature in kind.features if feature.name == name), None)


def _of_each(condition: str, types: Sequence[tuple[str, Columns]]) -> str:
    """A condition as it is of each type."""
    if not condition:
        return ""
    tests = list(_tests(condition))
    for name, _, _, _ in tests:
        if not any(column(name) for _, column in types):
            raise NotFound(f"condition {condition!r}: none of {', '.join(kind for kind, _ in types)} has a feature {name!r}")
    written = {kind: " ".join(_written(column, *test) for test in tests) for kind, column in types}
    if len(set(written.values())) == 1:
        return next(iter(written.values()))
    return " or ".join(f"type == {Literal(value=kind)} and ({text})" for kind, text in written.items())


def _written(column: Columns, name: str, sign: str, value: str, join: str) -> str:
    own = column(name)
    if own is None:
        return f"false {join}".rstrip()
    literal = value if _NUMBER.fullmatch(value) and not own[1] else str(Literal(value=value.strip("'\"")))
    return f"{own[0]} {_SIGNS[sign]} {literal} {join}".rstrip()


def _tests(condition: str) -> Iterable[tuple[str, str, str, str]]:
    """Name, sign, value, and what joins each test with the next one."""
    words = condition.split()
    for at in range(0, len(words), 4):
        test = words[at : at + 4]
        if len(test) < 3 or test[1] not in _SIGNS or (len(test) == 4) != (at + 4 < len(words)) or test[3:] not in ([], ["and"], ["or"]):
            raise InvalidRequest(
                f"condition {condition!r}, word {at + 1}: found {' '.join(test)!r}, expected a name, one of {' '.join(_SIGNS)} and a value, "
                "then 'and' or 'or' and another such test"
            )
        yield test[0], test[1], test[2], "".join(test[3:])
