"""Parser of nGQL: text to records. A pure module."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from lark import Token, Transformer

from graphd.query import ast
from graphd.query.ast import (
    ColumnRef,
    DrawStatement,
    FeatureDefinition,
    Identifier,
    Limit,
    OrderBy,
    Statement,
    TypeDefinition,
    TypeName,
    Value,
    WhereClause,
    YieldItem,
)
from graphd.query.grammar import Grammar, parse_number, unescape
from graphd.query.values import (
    LiteralValue,
    build_draw,
    build_type,
    column_from_call,
    column_from_path,
    first_instance,
    flatten_condition,
    identifier_from_token,
    is_token,
    parameter_from_token,
    position_of,
)

_WORDS = {
    "NAME": "a name",
    "QUOTED": "a `name`",
    "TRIPLE": "a triple (a:b:c)",
    "INT": "an integer",
    "SIGNED": "an integer",
    "NUMBER": "a number",
    "TEXT": "a string",
    "PARAMETER": "a $parameter",
    "END": "$$ or $^",
    "INPUT": "$-",
    "COMPARISON": "a comparison",
    "EQUALS": "=",
    "AND": "AND",
    "OR": "OR",
    "NOT": "NOT",
    "STAR": "*",
    "_PIPE": "|",
    "_ARROW": "->",
    "SEMICOLON": ";",
    "COMMA": ",",
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "DOT": ".",
}


class _SyntaxTreeBuilder(Transformer[Any, Any]):
    """Builds records, rule by rule. Keyword tokens are children too, used where they matter."""

    def start(self, found: list[Any]) -> tuple[Statement, ...]:
        return tuple(found)

    def statement(self, found: list[Any]) -> Statement:
        mode = str(found[0]).upper() if isinstance(found[0], Token) else ""
        body = found[-1]
        return Statement(body=body, mode=mode, at=position_of(found[0]))

    def mode(self, found: list[Any]) -> Any:
        return found[0]

    # -- spaces and jobs --

    def use(self, found: list[Any]) -> ast.UseStatement:
        return ast.UseStatement(space=found[1], at=position_of(found[0]))

    def show(self, found: list[Any]) -> ast.ShowStatement:
        return ast.ShowStatement(
            subject=str(found[1]).upper(),
            role=str(found[2]).upper() if len(found) > 2 else "",
            at=position_of(found[0]),
        )

    def show_job(self, found: list[Any]) -> ast.ShowStatement:
        return ast.ShowStatement(subject="JOB", job=found[2], at=position_of(found[0]))

    def show_create(self, found: list[Any]) -> ast.ShowStatement:
        return ast.ShowStatement(subject="CREATE SPACE", space=found[3], at=position_of(found[0]))

    def describe(self, found: list[Any]) -> ast.DescribeStatement:
        return ast.DescribeStatement(
            object_kind=str(found[1]).upper(), name=found[2], at=position_of(found[0])
        )

    def create(self, found: list[Any]) -> ast.CreateSpaceStatement:
        return ast.CreateSpaceStatement(
            name=first_instance(found, Identifier),
            if_not_exists="if_not_exists" in found,
            settings=next((child for child in found if isinstance(child, tuple)), ()),
            owners=tuple(child for child in found if isinstance(child, TypeDefinition)),
            at=position_of(found[0]),
        )

    def if_not_exists(self, found: list[Any]) -> str:
        return "if_not_exists"

    def drop(self, found: list[Any]) -> ast.DropSpaceStatement:
        return ast.DropSpaceStatement(
            name=first_instance(found, Identifier),
            if_exists="if_exists" in found,
            at=position_of(found[0]),
        )

    def if_exists(self, found: list[Any]) -> str:
        return "if_exists"

    def settings(self, found: list[Any]) -> ast.Settings:
        return tuple(found)

    def setting(self, found: list[Any]) -> tuple[Identifier, Value]:
        value = found[-1]
        return found[0], value.text if isinstance(value, Identifier) else value.value

    def key(self, found: list[Any]) -> Identifier:
        return Identifier(text="-".join(found), at=position_of(found[0]))

    def tag(self, found: list[Any]) -> TypeDefinition:
        return build_type(found, {})

    def edge(self, found: list[Any]) -> TypeDefinition:
        src, dst = [child for child in found if isinstance(child, Identifier)][1:]
        return build_type(found, {"src": src, "dst": dst})

    def features(self, found: list[Any]) -> tuple[FeatureDefinition, ...]:
        return tuple(found)

    def dense(self, found: list[Any]) -> FeatureDefinition:
        return FeatureDefinition(
            name=found[0], dtype=str(found[1]), shape=found[2] if len(found) > 2 else ()
        )

    def ragged(self, found: list[Any]) -> FeatureDefinition:
        return FeatureDefinition(name=found[0], dtype=str(found[-1]), ragged=True)

    def shape(self, found: list[Any]) -> tuple[int, ...]:
        return tuple(int(parse_number(token)) for token in found)

    def weighted(self, found: list[Any]) -> tuple[str, Any, int]:
        return "weighted", True, position_of(found[0])

    def weights(self, found: list[Any]) -> tuple[str, Any, int]:
        return "weights", tuple(found[1:]), position_of(found[0])

    def named_weight(self, found: list[Any]) -> tuple[Identifier, str, bool]:
        return found[0], str(found[1]), len(found) > 2

    def label(self, found: list[Any]) -> tuple[str, Any, int]:
        return "label", found[2], position_of(found[0])

    def index(self, found: list[Any]) -> tuple[str, Any, int]:
        return "index", tuple(found[1:]), position_of(found[0])

    def indexed(self, found: list[Any]) -> tuple[Identifier, int | None]:
        return found[0], int(parse_number(found[1])) if len(found) > 1 else None

    def unique(self, found: list[Any]) -> tuple[str, Any, int]:
        return "unique", True, position_of(found[0])

    def missing(self, found: list[Any]) -> tuple[str, Any, int]:
        return "missing", str(found[1]).upper(), position_of(found[0])

    def time(self, found: list[Any]) -> tuple[str, Any, int]:
        return "time", found[1], position_of(found[0])

    def submit(self, found: list[Any]) -> ast.SubmitJobStatement:
        return ast.SubmitJobStatement(
            kind=found[2],
            version=found[4] if len(found) > 4 and is_token(found[3], "VERSION") else None,
            settings=next((child for child in found if isinstance(child, tuple)), ()),
            at=position_of(found[0]),
        )

    def stop(self, found: list[Any]) -> ast.ControlJobStatement:
        return ast.ControlJobStatement(action="STOP", job=found[2], at=position_of(found[0]))

    def recover(self, found: list[Any]) -> ast.ControlJobStatement:
        return ast.ControlJobStatement(
            action="RECOVER", job=found[2] if len(found) > 2 else None, at=position_of(found[0])
        )

    # -- samples and reads --

    def vertices(self, found: list[Any]) -> DrawStatement:
        return build_draw("vertices", found, count=found[1])

    def edges(self, found: list[Any]) -> DrawStatement:
        return build_draw("edges", found, count=found[1])

    def neighbors(self, found: list[Any]) -> DrawStatement:
        return build_draw("neighbors", found, count=found[1])

    def top(self, found: list[Any]) -> DrawStatement:
        return build_draw("top", found, count=found[1])

    def layer(self, found: list[Any]) -> DrawStatement:
        return build_draw("layer", found, count=found[2])

    def layers(self, found: list[Any]) -> DrawStatement:
        return build_draw("layers", found, counts=found[2][1])

    def negatives(self, found: list[Any]) -> DrawStatement:
        return build_draw("negatives", found, count=found[1])

    def walk(self, found: list[Any]) -> DrawStatement:
        return build_draw("walk", found, count=None if isinstance(found[1], dict) else found[1])

    def go(self, found: list[Any]) -> DrawStatement:
        first, last = (
            found[1] if isinstance(found[1], tuple) and found[1][0] != "option" else (None, None)
        )
        return build_draw("go", found, first=first, count=last)

    def fetch(self, found: list[Any]) -> DrawStatement:
        return build_draw("fetch", found, types=(found[3],), **found[4])

    def steps(self, found: list[Any]) -> tuple[Value | None, Value]:
        values = [child for child in found if not isinstance(child, Token)]
        return (values[0], values[1]) if len(values) > 1 else (None, values[0])

    def on(self, found: list[Any]) -> dict[str, Any]:
        return {"types": tuple(found[1:])}

    def like(self, found: list[Any]) -> dict[str, Any]:
        return {"like": True, **found[1], "node_type": found[3] if len(found) > 3 else None}

    def origin(self, found: list[Any]) -> dict[str, Any]:
        return {**found[1], "node_type": found[3] if len(found) > 3 else None}

    def bare_origin(self, found: list[Any]) -> dict[str, Any]:
        return dict(found[1])

    def over(self, found: list[Any]) -> dict[str, Any]:
        return {"hops": tuple(child for child in found if isinstance(child, tuple))}

    def hop(self, found: list[Any]) -> ast.Hop:
        return tuple(child for child in found if isinstance(child, TypeName))

    def ids(self, found: list[Any]) -> dict[str, Any]:
        return {
            "nodes": parameter_from_token(found[0])
            if is_token(found[0], "PARAMETER")
            else tuple(found)
        }

    def id(self, found: list[Any]) -> int | str:
        return str(found[0]) if is_token(found[0], "TEXT") else int(parse_number(found[0]))

    def pairs(self, found: list[Any]) -> dict[str, Any]:
        return {"pairs": tuple(found)}

    def pair(self, found: list[Any]) -> tuple[Any, Any]:
        return found[0], found[1]

    def end(self, found: list[Any]) -> Any:
        return parameter_from_token(found[0]) if is_token(found[0], "PARAMETER") else found[0]

    def counts(self, found: list[Any]) -> tuple[str, Any]:
        return "counts", parameter_from_token(found[0]) if is_token(
            found[0], "PARAMETER"
        ) else tuple(found)

    # -- options: ("option", name, value, position) --

    def where(self, found: list[Any]) -> Any:
        return "option", "where", WhereClause(words=tuple(found[1])), position_of(found[0])

    def weight(self, found: list[Any]) -> Any:
        return (
            "option",
            "weight",
            parameter_from_token(found[1]) if is_token(found[1], "PARAMETER") else found[1],
            position_of(found[0]),
        )

    def seed(self, found: list[Any]) -> Any:
        return "option", "seed", found[1], position_of(found[0])

    def version(self, found: list[Any]) -> Any:
        return "option", "version", found[1], position_of(found[0])

    def yields(self, found: list[Any]) -> Any:
        return (
            "option",
            "unlike" if is_token(found[1], "DISTINCT") else "items",
            tuple(child for child in found if isinstance(child, YieldItem)),
            position_of(found[0]),
        )

    def item(self, found: list[Any]) -> YieldItem:
        return YieldItem(column=found[0], alias=found[2] if len(found) > 2 else None)

    def order(self, found: list[Any]) -> Any:
        return (
            "option",
            "shape",
            OrderBy(keys=tuple(child for child in found if isinstance(child, tuple))),
            position_of(found[0]),
        )

    def key_of_order(self, found: list[Any]) -> tuple[Identifier, bool]:
        return first_instance(found, Identifier), is_token(found[-1], "DESC")

    def limit(self, found: list[Any]) -> Any:
        values = found[1:]
        limit = Limit(count=values[-1], offset=values[0] if len(values) > 1 else 0)
        return "option", "shape", limit, position_of(found[0])

    def limits(self, found: list[Any]) -> Any:
        return "option", "limits", tuple(found[1:]), position_of(found[0])

    def sample(self, found: list[Any]) -> Any:
        return "option", "counts", found[1][1], position_of(found[0])

    def replacement(self, found: list[Any]) -> Any:
        return "option", "replace", is_token(found[0], "WITH"), position_of(found[0])

    def direction(self, found: list[Any]) -> Any:
        return "option", "direction", str(found[0]).upper(), position_of(found[0])

    def flag(self, found: list[Any]) -> Any:
        return "option", str(found[0]).lower(), True, position_of(found[0])

    def measure(self, found: list[Any]) -> Any:
        return "option", "measure", str(found[1]).upper(), position_of(found[0])

    def p(self, found: list[Any]) -> Any:
        return "option", "p", found[1], position_of(found[0])

    def q(self, found: list[Any]) -> Any:
        return "option", "q", found[1], position_of(found[0])

    def restart(self, found: list[Any]) -> Any:
        return "option", "restart", found[1], position_of(found[0])

    def walks(self, found: list[Any]) -> Any:
        return "option", "walks", found[1], position_of(found[0])

    # -- filters: lists of (token, position) --

    def condition(self, found: list[Any]) -> list[Any]:
        return flatten_condition(found)

    conjunction = test = operand = negation = condition

    def bracket(self, found: list[Any]) -> list[Any]:
        return flatten_condition(found)

    def listed(self, found: list[Any]) -> list[Any]:
        if len(found) == 1:
            return flatten_condition(found)
        return [
            ("(", position_of(found[0])),
            *flatten_condition(found[1:-1]),
            (")", position_of(found[-1])),
        ]

    def literal(self, found: list[Any]) -> LiteralValue:
        token = found[0]
        match token.type:
            case "TEXT":
                return LiteralValue(str(token), position_of(token))
            case "TRUE" | "FALSE":
                return LiteralValue(token.type == "TRUE", position_of(token))
            case "PARAMETER":
                return LiteralValue(parameter_from_token(token), position_of(token))
            case _:
                return LiteralValue(parse_number(token), position_of(token))

    def column(self, found: list[Any]) -> ColumnRef:
        column: ColumnRef = found[0]
        return replace(column, element=int(parse_number(found[1]))) if len(found) > 1 else column

    def plain(self, found: list[Any]) -> ColumnRef:
        return column_from_path(found)

    def of_end(self, found: list[Any]) -> ColumnRef:
        return column_from_path(
            found[1:], end="far" if found[0] == "$$" else "near", position=position_of(found[0])
        )

    def called(self, found: list[Any]) -> ColumnRef:
        return column_from_call(found)

    # -- terminals --

    def type(self, found: list[Any]) -> TypeName:
        child = found[0]
        return TypeName(
            text=str(child) if isinstance(child, Token) else child.text, at=position_of(child)
        )

    def name(self, found: list[Any]) -> Identifier:
        return identifier_from_token(found[0])

    word = name

    def value(self, found: list[Any]) -> Value:
        return (
            parameter_from_token(found[0])
            if is_token(found[0], "PARAMETER")
            else parse_number(found[0])
        )

    def text(self, found: list[Any]) -> Token:
        return Token("TEXT", unescape(str(found[0])), found[0].start_pos)


@cache
def ngql_grammar() -> Grammar:
    """Return the grammar of statements; it is built once."""
    return Grammar("ngql.lark", _SyntaxTreeBuilder(), _WORDS)


def build_parser() -> None:
    """Build the parser in advance, so that no query waits for it."""
    ngql_grammar()


def parse(text: str) -> tuple[Statement, ...]:
    """Return the statements of a text; the same records for the same text.

    Raises
    ------
    InvalidRequest
        If the text is invalid, with its line, a caret and the expected tokens.
        `SourceLocation.incomplete` is True if the text is cut short.
    """
    statements: tuple[Statement, ...] = ngql_grammar().parse(text)
    return statements
