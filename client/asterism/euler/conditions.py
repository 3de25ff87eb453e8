"""Translation of Euler's conditions into filters of this service.

A condition is ``price gt 3 and brand eq a or stock le 2``. The result follows the grammar of
`asterism_model.filters.syntax`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from asterism.name_conversion import as_name
from asterism_model.filters.syntax import Literal
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.errors import InvalidRequest, NotFound

_OPERATORS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!="}
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_ROW_COLUMNS = ("id", "weight", "type")

ColumnLookup = Callable[[str], tuple[str, bool] | None]
"""Lookup of a column by name.

Returns its spelling in a filter, and True if its values are strings; None if there is no column of
that name.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One test of a row, and the connective to the next test."""

    name: str
    """Name of a feature, or ``id``, ``weight`` or ``type``.

    For ``label`` the name of a type, and for ``key`` the name of a feature.
    """
    operator: str
    """One of gt, ge, lt, le, eq, ne, in, not_in, label and key."""
    values: tuple[str | Literal, ...] = ()
    """Values as written in the condition, where all except numbers are strings; or bound values.

    A bound value is a `Literal` and is never read as text.
    """
    connective: str = ""
    """``and`` or ``or``; empty after the last test."""


def node_filter(
    condition: str | Sequence[Comparison], schema: Schema, names: Iterable[str] | None
) -> str:
    """Return Euler's condition on nodes as a filter of this service.

    Parameters
    ----------
    condition : str or list of Comparison
        Tests ``name gt|ge|lt|le|eq|ne value``, joined by ``and`` and ``or``; ``and`` binds more
        tightly. A value that is not a number is a string. "" is no condition.
    schema : Schema
        Schema of the graph space.
    names : iterable of str, optional
        Node types that the condition applies to. None: all.

    Returns
    -------
    str
        Filter; "" if there is no condition.

    Raises
    ------
    InvalidRequest
        If the condition is malformed.
    NotFound
        If none of the types has a column that the condition names.

    Notes
    -----
    A row does not satisfy a test of a column that its type does not have.
    """
    types = (
        [schema.node_types[schema.node_type_id(name)] for name in names]
        if names is not None
        else schema.node_types
    )
    return _filter_per_type(
        condition, [(kind.name, kind.name, partial(_column_reference, kind, "")) for kind in types]
    )


def edge_filter(
    condition: str | Sequence[Comparison],
    schema: Schema,
    names: Iterable[str] | None,
    *,
    end: str = "dst",
) -> str:
    """Return Euler's condition on edges as a filter of this service.

    Parameters
    ----------
    condition : str or list of Comparison
        Condition as for `node_filter`. A test applies to the edge if its type has the column, and
        otherwise to the node at the remote end.
    schema : Schema
        Schema of the graph space.
    names : iterable of str, optional
        Edge types that the condition applies to. None: all.
    end : {"dst", "src"}
        Remote end of the edges.

    Returns
    -------
    str
        Filter; "" if there is no condition.

    Raises
    ------
    InvalidRequest
        If the condition is malformed.
    NotFound
        If no edge type or remote node type has a column that the condition names.
    """
    types = (
        [schema.edge_types[schema.edge_type_id(name)] for name in names]
        if names is not None
        else schema.edge_types
    )

    def remote_type(edge: EdgeType) -> str:
        return edge.dst_type if end == "dst" else edge.src_type

    def column(edge: EdgeType, name: str) -> tuple[str, bool] | None:
        return _column_reference(edge, "", name) or _column_reference(
            schema.node_types[schema.node_type_id(remote_type(edge))], f"{end}.", name
        )

    return _filter_per_type(
        condition, [(kind.name, remote_type(kind), partial(column, kind)) for kind in types]
    )


def _column_reference(kind: NodeType | EdgeType, prefix: str, name: str) -> tuple[str, bool] | None:
    if name in _ROW_COLUMNS:
        return f"{prefix}{name}", name == "type"
    return next(
        (
            (f"{prefix}`{name}`", feature.kind == "bytes")
            for feature in kind.features
            if feature.name == name
        ),
        None,
    )


def _filter_per_type(
    condition: str | Sequence[Comparison], types: Sequence[tuple[str, str, ColumnLookup]]
) -> str:
    """Return the filter of a condition: one for all types if they agree, or one per type.

    Each type is given as its name, the label of its nodes, and the lookup of its columns.
    """
    if not condition:
        return ""
    tests = list(_parse_comparisons(condition)) if isinstance(condition, str) else condition
    for test in tests:
        if test.operator != "label" and not any(column(test.name) for _, _, column in types):
            condition_text = (
                repr(condition)
                if isinstance(condition, str)
                else f"{test.name} {test.operator} {' '.join(map(str, test.values))}".rstrip()
            )
            raise NotFound(
                f"condition={condition_text}: expected features of "
                f"{', '.join(kind for kind, _, _ in types)}, found {test.name!r}"
            )
    filters = {
        kind: " ".join(_format_comparison(column, label, test) for test in tests)
        for kind, label, column in types
    }
    if len(set(filters.values())) == 1:
        return next(iter(filters.values()))
    return " or ".join(
        f"type == {Literal(value=kind)} and ({text})" for kind, text in filters.items()
    )


def _format_comparison(column: ColumnLookup, label: str, test: Comparison) -> str:
    column_info = column(test.name)
    if test.operator == "label":
        comparison = "true" if label in (test.name, as_name(test.name)) else "false"
    elif column_info is None:
        comparison = "false"
    elif test.operator == "key":
        comparison = f"{column_info[0]} is not null"
    elif test.operator in ("in", "not_in"):
        comparison = (
            f"{column_info[0]} {test.operator.replace('_', ' ')} "
            f"({', '.join(_literal(value, text=column_info[1]) for value in test.values)})"
        )
    else:
        comparison = (
            f"{column_info[0]} {_OPERATORS[test.operator]} "
            f"{_literal(test.values[0], text=column_info[1])}"
        )
    return f"{comparison} {test.connective}".rstrip()


def _literal(value: str | Literal, *, text: bool) -> str:
    if isinstance(value, Literal):
        return str(value)
    return (
        value if _NUMBER.fullmatch(value) and not text else str(Literal(value=value.strip("'\"")))
    )


def _parse_comparisons(condition: str) -> Iterable[Comparison]:
    """Yield the tests of a condition; raise InvalidRequest if it is malformed."""
    tokens = condition.split()
    for start in range(0, len(tokens), 4):
        test = tokens[start : start + 4]
        if (
            len(test) < 3
            or test[1] not in _OPERATORS
            or (len(test) == 4) != (start + 4 < len(tokens))
            or test[3:] not in ([], ["and"], ["or"])
        ):
            raise InvalidRequest(
                f"condition={condition!r}, word {start + 1}: expected a name, one of "
                f"{' '.join(_OPERATORS)} and a value, then 'and' or 'or' and another such test; "
                f"found {' '.join(test)!r}"
            )
        yield Comparison(
            name=test[0], operator=test[1], values=(test[2],), connective="".join(test[3:])
        )
