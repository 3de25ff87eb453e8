"""Euler's conditions, as ``price gt 3 and brand eq a or stock le 2``, in the words of `asterism_proto.condition`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from asterism.foreign import as_name
from asterism_proto.condition import Literal
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.schema import EdgeType, NodeType, Schema

_SIGNS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!="}
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_OWN = ("id", "weight", "type")

Columns = Callable[[str], tuple[str, bool] | None]
"""How a column is written, and whether it is of texts; None where there is none of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One test of a row, and what joins it with the next one."""

    name: str
    """Of a feature, or ``id``, ``weight``, ``type``; of ``label`` and ``key`` the name of a type, of a feature."""
    sign: str
    """``gt``, ``ge``, ``lt``, ``le``, ``eq``, ``ne``, ``in``, ``not_in``, ``label`` or ``key``."""
    values: tuple[str, ...] = ()
    """As they are written: what is no number is a text."""
    join: str = ""
    """``and``, ``or``; nothing behind the last one."""


def of_nodes(condition: str | Sequence[Test], schema: Schema, names: Iterable[str] | None) -> str:
    """A condition of Euler's on nodes of these types (None: of all) as ours.

    Parameters
    ----------
    condition : str or list of Test
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
    return _of_each(condition, [(kind.name, kind.name, partial(_of, kind, "")) for kind in types])


def of_edges(condition: str | Sequence[Test], schema: Schema, names: Iterable[str] | None, *, end: str = "dst") -> str:
    """A condition on edges, as `of_nodes`: of the edges where they have the feature, otherwise of the nodes at their other ``end``."""
    types = [schema.edge_types[schema.edge_type_id(name)] for name in names] if names is not None else schema.edge_types

    def far(edge: EdgeType) -> str:
        return edge.dst_type if end == "dst" else edge.src_type

    def column(edge: EdgeType, name: str) -> tuple[str, bool] | None:
        return _of(edge, "", name) or _of(schema.node_types[schema.node_type_id(far(edge))], f"{end}.", name)

    return _of_each(condition, [(kind.name, far(kind), partial(column, kind)) for kind in types])


def _of(kind: NodeType | EdgeType, of: str, name: str) -> tuple[str, bool] | None:
    if name in _OWN:
        return f"{of}{name}", name == "type"
    return next(((f"{of}`{name}`", feature.kind == "bytes") for feature in kind.features if feature.name == name), None)


def _of_each(condition: str | Sequence[Test], types: Sequence[tuple[str, str, Columns]]) -> str:
    """A condition as it is of each type: of its name, the label of its nodes, its columns."""
    if not condition:
        return ""
    tests = list(_tests(condition)) if isinstance(condition, str) else condition
    for test in tests:
        if test.sign != "label" and not any(column(test.name) for _, _, column in types):
            said = repr(condition) if isinstance(condition, str) else f"{test.name} {test.sign} {' '.join(test.values)}".rstrip()
            raise NotFound(f"condition {said}: none of {', '.join(kind for kind, _, _ in types)} has a feature {test.name!r}")
    written = {kind: " ".join(_written(column, label, test) for test in tests) for kind, label, column in types}
    if len(set(written.values())) == 1:
        return next(iter(written.values()))
    return " or ".join(f"type == {Literal(value=kind)} and ({text})" for kind, text in written.items())


def _written(column: Columns, label: str, test: Test) -> str:
    own = column(test.name)
    if test.sign == "label":
        said = "true" if label in (test.name, as_name(test.name)) else "false"
    elif own is None:
        said = "false"
    elif test.sign == "key":
        said = f"{own[0]} is not null"
    elif test.sign in ("in", "not_in"):
        said = f"{own[0]} {test.sign.replace('_', ' ')} ({', '.join(_literal(value, text=own[1]) for value in test.values)})"
    else:
        said = f"{own[0]} {_SIGNS[test.sign]} {_literal(test.values[0], text=own[1])}"
    return f"{said} {test.join}".rstrip()


def _literal(value: str, *, text: bool) -> str:
    return value if _NUMBER.fullmatch(value) and not text else str(Literal(value=value.strip("'\"")))


def _tests(condition: str) -> Iterable[Test]:
    """The tests of a text."""
    words = condition.split()
    for at in range(0, len(words), 4):
        test = words[at : at + 4]
        if len(test) < 3 or test[1] not in _SIGNS or (len(test) == 4) != (at + 4 < len(words)) or test[3:] not in ([], ["and"], ["or"]):
            raise InvalidRequest(
                f"condition {condition!r}, word {at + 1}: found {' '.join(test)!r}, expected a name, one of {' '.join(_SIGNS)} and a value, "
                "then 'and' or 'or' and another such test"
            )
        yield Test(name=test[0], sign=test[1], values=(test[2],), join="".join(test[3:]))
