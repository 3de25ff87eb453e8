"""Building blocks of the nGQL parser: values, columns, statements, types. A pure module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lark import Token

from asterism_model.filters.syntax import MAX_TOKENS, Literal
from graphd.query.ast import (
    ColumnRef,
    DrawOptions,
    DrawStatement,
    FeatureDefinition,
    Identifier,
    Parameter,
    RowCount,
    TypeDefinition,
    Value,
)
from graphd.query.lark_parser import UnlocatedError

_MAX_COLUMNS = 256
_EACH = frozenset({"where", "seed", "version", "items", "counted"})
_FOLLOWING = _EACH | {"weight", "direction", "excluded"}
"""Options of statements that follow edges."""
ALLOWED_OPTIONS = {
    "vertices": _EACH | {"weight", "uniform", "replace"},
    "edges": _EACH | {"weight", "uniform", "replace"},
    "neighbors": _FOLLOWING | {"uniform", "replace", "padded"},
    "top": (_FOLLOWING - {"seed"}) | {"padded"},
    "layer": _FOLLOWING | {"uniform", "replace", "measure"},
    "layers": _FOLLOWING | {"uniform", "replace", "measure"},
    "negatives": _EACH | {"weight", "uniform", "padded"},
    "walk": _FOLLOWING | {"uniform", "p", "q", "restart", "walks", "distinct"},
    "go": _FOLLOWING | {"uniform", "replace", "padded", "counts", "limits"},
    "fetch": frozenset({"items", "counted", "version"}),
}
"""Allowed options of each statement besides ORDER BY and LIMIT, by field of `DrawOptions`."""
OPTION_KEYWORDS = {
    "excluded": "EXCLUDE",
    "items": "YIELD",
    "counted": "YIELD",
    "replace": "REPLACEMENT",
    "measure": "BY",
    "counts": "SAMPLE",
    "limits": "LIMIT [n1, n2, ...]",
    "direction": "REVERSELY or BIDIRECT",
}
"""Syntax of options that differs from their field name."""


@dataclass(frozen=True, slots=True)
class LiteralValue:
    """Literal value in a filter or setting."""

    value: Value
    at: int

    @property
    def text(self) -> str | Parameter:
        """The value in the filter language."""
        return self.value if isinstance(self.value, Parameter) else str(Literal(value=self.value))


_FILTER_WORDS = {
    "AND": "and",
    "OR": "or",
    "NOT": "not",
    "EQUALS": "==",
    "IN": "in",
    "BETWEEN": "between",
    "IS": "is",
    "NULL": "null",
}
_ENDS = {"$$": "far", "$^": "near", "vertex": "", "edge": ""}
_FUNCTIONS = {
    "id": "id",
    "src": "src",
    "dst": "dst",
    "rank": "edge_id",
    "type": "type",
    "weight": "weight",
    "probability": "probability",
}
_NEBULA = {"_src": "src", "_dst": "dst", "_rank": "edge_id", "_type": "type"}


def flatten_condition(children: Sequence[Any]) -> list[Any]:
    """Return the tokens of a filter, each with its position."""
    words: list[Any] = []
    for child in children:
        if isinstance(child, list):
            words += child
        elif isinstance(child, ColumnRef):
            words.append((child, child.at))
        elif isinstance(child, LiteralValue):
            words.append((child.text, child.at))
        elif is_token(child, "PARAMETER"):
            words.append((parameter_from_token(child), position_of(child)))
        else:
            words.append((_FILTER_WORDS.get(child.type, str(child).lower()), position_of(child)))
    # Check early: nested brackets would copy the tokens at every level.
    if sum(word != "," for word, _ in words) > MAX_TOKENS:
        raise UnlocatedError(
            words[MAX_TOKENS][1],
            f"a filter of more than {MAX_TOKENS} words",
            ["a shorter filter, or a list as a parameter"],
        )
    return words


def position_of(item: Any) -> int:
    """Return the position of a token or record."""
    return (item.start_pos or 0) if isinstance(item, Token) else int(getattr(item, "at", 0))


def is_token(item: Any, kind: str) -> bool:
    """Return True if an item is a token of a kind."""
    return isinstance(item, Token) and item.type == kind


def first_instance(children: Sequence[Any], record_type: type) -> Any:
    """Return the first child of a type."""
    return next(child for child in children if isinstance(child, record_type))


def parameter_from_token(token: Token) -> Parameter:
    """Return the parameter that a token names."""
    return Parameter(name=str(token)[1:], at=position_of(token))


def identifier_from_token(token: Token) -> Identifier:
    """Return the name in a token."""
    quoted = token.type == "QUOTED"
    return Identifier(
        text=str(token)[1:-1] if quoted else str(token), at=position_of(token), quoted=quoted
    )


def column_from_path(
    names: Sequence[Identifier], *, end: str = "", position: int | None = None
) -> ColumnRef:
    """Return the column of a dotted path: the last name, of the end that the first one gives."""
    start = names[0].at if position is None else position
    if len(names) > 3:
        raise UnlocatedError(names[3].at, f"`{names[3].text}`", ["a column of at most three names"])
    first, last = names[0], names[-1]
    if not end and len(names) > 1 and not first.quoted and first.text.lower() in ("src", "dst"):
        end = first.text.lower()
    name = last if last.quoted else Identifier(text=_NEBULA.get(last.text, last.text), at=last.at)
    return ColumnRef(name=name, end=end, quoted=last.quoted, at=start)


def column_from_call(children: Sequence[Any]) -> ColumnRef:
    """Return the column of an nGQL function, such as ``id($$)`` or ``properties($^).age``."""
    function, argument = children[0], children[1]
    end = str(argument) if isinstance(argument, Token) else argument.text.lower()
    if end not in _ENDS:
        raise UnlocatedError(position_of(argument), repr(end), ["vertex", "edge", "$$", "$^"])
    if function.text.lower() in ("properties", "props"):
        if len(children) < 3:
            raise UnlocatedError(
                function.at, "all properties", ["properties(...).NAME, one at a time"]
            )
        return ColumnRef(name=children[2], end=_ENDS[end], quoted=True, at=function.at)
    name = _FUNCTIONS.get(function.text.lower())
    if name is None or len(children) > 2:
        raise UnlocatedError(function.at, repr(function.text), ["properties", *_FUNCTIONS])
    return ColumnRef(name=Identifier(text=name, at=function.at), end=_ENDS[end], at=function.at)


def row_count(children: Sequence[Any]) -> RowCount:
    """Return the row count of ``YIELD count(*)``; no other function takes a star."""
    function, *alias = (child for child in children if isinstance(child, Identifier))
    if function.text.lower() != "count":
        raise UnlocatedError(function.at, f"{function.text}(*)", ["count(*)"])
    return RowCount(alias=alias[0] if alias else None)


def build_draw(kind: str, children: Sequence[Any], **fields: Any) -> DrawStatement:
    """Build a sampling or read statement from its clauses and options."""
    for child in children:
        if isinstance(child, dict):
            fields |= child
    options: dict[str, Any] = {"shape": ()}
    positions: list[tuple[str, int]] = []
    for child in children:
        if not (isinstance(child, tuple) and child and child[0] == "option"):
            continue
        _, name, value, position = child
        if name == "unlike":
            name, options = "items", options | ({"unlike": True} if "items" not in options else {})
        if name == "shape":
            options["shape"] += (value,)
            continue
        if name not in ALLOWED_OPTIONS[kind]:
            allowed = sorted(
                {OPTION_KEYWORDS.get(option, option.upper()) for option in ALLOWED_OPTIONS[kind]}
            )
            raise UnlocatedError(
                position,
                f"{OPTION_KEYWORDS.get(name, name.upper())} in {kind.upper()}",
                [*allowed, "ORDER BY", "LIMIT"],
            )
        if name == "excluded":  # once for each edge type
            options["excluded"] = (*options.get("excluded", ()), value)
            positions.append((name, position))
            continue
        if name == "items" and len(value) > _MAX_COLUMNS:
            raise UnlocatedError(position, f"{len(value)} columns", [f"{_MAX_COLUMNS} at most"])
        if name in options or {name, *options} >= {"items", "counted"}:
            raise UnlocatedError(
                position,
                f"{OPTION_KEYWORDS.get(name, name.upper())} twice",
                ["each option once"],
            )
        options[name] = value
        positions.append((name, position))
    return DrawStatement(
        kind=kind,
        options=DrawOptions(**options, places=tuple(positions)),
        at=position_of(children[0]),
        **fields,
    )


def build_type(children: Sequence[Any], ends: dict[str, Any]) -> TypeDefinition:
    """Build a type definition from its clauses."""
    fields: dict[str, Any] = {}
    features: tuple[FeatureDefinition, ...] = ()
    for child in children[1:]:
        if isinstance(child, tuple) and child and isinstance(child[0], str):
            name, value, position = child
            if name in fields:
                raise UnlocatedError(position, f"{name.upper()} twice", ["each once"])
            if name in (("label",) if ends else ("unique", "missing")):
                raise UnlocatedError(
                    position,
                    f"{name.upper()} of {'an EDGE' if ends else 'a TAG'}",
                    ["WEIGHTED", "WEIGHTS"],
                )
            fields[name] = value
        elif isinstance(child, tuple):
            features = child
    return TypeDefinition(
        name=first_instance(children, Identifier),
        features=features,
        at=position_of(children[0]),
        **ends,
        **fields,
    )
