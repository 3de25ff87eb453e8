"""Parser of nGQL: text to records. A pure module."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

from lark import Token, Transformer

from graphd.query import ast
from graphd.query.ast import (
    ColumnRef,
    DrawStatement,
    ExcludedPairs,
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
from graphd.query.lark_parser import Grammar, parse_number, unescape
from graphd.query.ngql_tree_builder import (
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
    row_count,
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
    "AT": "@",
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

    def start(self, children: list[Any]) -> tuple[Statement, ...]:
        return tuple(children)

    def statement(self, children: list[Any]) -> Statement:
        mode = str(children[0]).upper() if isinstance(children[0], Token) else ""
        body = children[-1]
        return Statement(body=body, mode=mode, at=position_of(children[0]))

    def mode(self, children: list[Any]) -> Any:
        return children[0]

    # -- spaces and jobs --

    def use(self, children: list[Any]) -> ast.UseStatement:
        return ast.UseStatement(space=children[1], at=position_of(children[0]))

    def show(self, children: list[Any]) -> ast.ShowStatement:
        return ast.ShowStatement(
            subject=str(children[1]).upper(),
            role=str(children[2]).upper() if len(children) > 2 else "",
            at=position_of(children[0]),
        )

    def show_job(self, children: list[Any]) -> ast.ShowStatement:
        return ast.ShowStatement(subject="JOB", job=children[2], at=position_of(children[0]))

    def show_create(self, children: list[Any]) -> ast.ShowStatement:
        return ast.ShowStatement(
            subject="CREATE SPACE", space=children[3], at=position_of(children[0])
        )

    def show_roles(self, children: list[Any]) -> ast.ShowStatement:
        return ast.ShowStatement(
            subject="ROLES",
            space=children[3] if len(children) > 3 else None,
            at=position_of(children[0]),
        )

    def show_keys(self, children: list[Any]) -> ast.ShowStatement:
        return ast.ShowStatement(subject="API KEYS", at=position_of(children[0]))

    def describe(self, children: list[Any]) -> ast.DescribeStatement:
        return ast.DescribeStatement(
            object_kind=str(children[1]).upper(), name=children[2], at=position_of(children[0])
        )

    def create(self, children: list[Any]) -> ast.CreateSpaceStatement:
        return ast.CreateSpaceStatement(
            name=first_instance(children, Identifier),
            if_not_exists="if_not_exists" in children,
            settings=next((child for child in children if isinstance(child, tuple)), ()),
            owners=tuple(child for child in children if isinstance(child, TypeDefinition)),
            at=position_of(children[0]),
        )

    def if_not_exists(self, children: list[Any]) -> str:
        return "if_not_exists"

    def drop(self, children: list[Any]) -> ast.DropSpaceStatement:
        return ast.DropSpaceStatement(
            name=first_instance(children, Identifier),
            if_exists="if_exists" in children,
            at=position_of(children[0]),
        )

    def if_exists(self, children: list[Any]) -> str:
        return "if_exists"

    def settings(self, children: list[Any]) -> ast.Settings:
        return tuple(children)

    def setting(self, children: list[Any]) -> tuple[Identifier, Value]:
        value = children[-1]
        return children[0], value.text if isinstance(value, Identifier) else value.value

    def key(self, children: list[Any]) -> Identifier:
        return Identifier(text="-".join(children), at=position_of(children[0]))

    def tag(self, children: list[Any]) -> TypeDefinition:
        return build_type(children, {})

    def edge(self, children: list[Any]) -> TypeDefinition:
        src, dst = [child for child in children if isinstance(child, Identifier)][1:]
        return build_type(children, {"src": src, "dst": dst})

    def features(self, children: list[Any]) -> tuple[FeatureDefinition, ...]:
        return tuple(children)

    def dense(self, children: list[Any]) -> FeatureDefinition:
        return FeatureDefinition(
            name=children[0], dtype=str(children[1]), shape=children[2] if len(children) > 2 else ()
        )

    def ragged(self, children: list[Any]) -> FeatureDefinition:
        return FeatureDefinition(name=children[0], dtype=str(children[-1]), ragged=True)

    def shape(self, children: list[Any]) -> tuple[int, ...]:
        return tuple(int(parse_number(token)) for token in children)

    def weighted(self, children: list[Any]) -> tuple[str, Any, int]:
        return "weighted", True, position_of(children[0])

    def weights(self, children: list[Any]) -> tuple[str, Any, int]:
        return "weights", tuple(children[1:]), position_of(children[0])

    def named_weight(self, children: list[Any]) -> tuple[Identifier, str, bool]:
        return children[0], str(children[1]), len(children) > 2

    def label(self, children: list[Any]) -> tuple[str, Any, int]:
        return "label", children[2], position_of(children[0])

    def index(self, children: list[Any]) -> tuple[str, Any, int]:
        return "index", tuple(children[1:]), position_of(children[0])

    def indexed(self, children: list[Any]) -> tuple[Identifier, int | None]:
        return children[0], int(parse_number(children[1])) if len(children) > 1 else None

    def unique(self, children: list[Any]) -> tuple[str, Any, int]:
        return "unique", True, position_of(children[0])

    def missing(self, children: list[Any]) -> tuple[str, Any, int]:
        return "missing", str(children[1]).upper(), position_of(children[0])

    def time(self, children: list[Any]) -> tuple[str, Any, int]:
        return "time", children[1], position_of(children[0])

    def submit(self, children: list[Any]) -> ast.SubmitJobStatement:
        return ast.SubmitJobStatement(
            kind=children[2],
            version=children[4] if len(children) > 4 and is_token(children[3], "VERSION") else None,
            settings=next((child for child in children if isinstance(child, tuple)), ()),
            at=position_of(children[0]),
        )

    def stop(self, children: list[Any]) -> ast.ControlJobStatement:
        return ast.ControlJobStatement(action="STOP", job=children[2], at=position_of(children[0]))

    def recover(self, children: list[Any]) -> ast.ControlJobStatement:
        return ast.ControlJobStatement(
            action="RECOVER",
            job=children[2] if len(children) > 2 else None,
            at=position_of(children[0]),
        )

    # -- access control --

    def grant(self, children: list[Any]) -> ast.GrantRoleStatement:
        return ast.GrantRoleStatement(
            role=children[2], space=children[4], principal=children[6], at=position_of(children[0])
        )

    def revoke(self, children: list[Any]) -> ast.RevokeRoleStatement:
        return ast.RevokeRoleStatement(
            role=None if isinstance(children[2], Token) else children[2],
            space=children[-3],
            principal=children[-1],
            at=position_of(children[0]),
        )

    def any_space(self, children: list[Any]) -> Identifier:
        child = children[0]
        if isinstance(child, Token):
            return Identifier(text="*", at=position_of(child))
        name: Identifier = child
        return name

    def principal(self, children: list[Any]) -> Identifier | ast.Parameter:
        child = children[0]
        if is_token(child, "PARAMETER"):
            return parameter_from_token(child)
        if isinstance(child, Token):
            return Identifier(text=str(child), at=position_of(child))
        name: Identifier = child
        return name

    # -- samples and reads --

    def vertices(self, children: list[Any]) -> DrawStatement:
        return build_draw("vertices", children, count=children[1])

    def edges(self, children: list[Any]) -> DrawStatement:
        return build_draw("edges", children, count=children[1])

    def neighbors(self, children: list[Any]) -> DrawStatement:
        return build_draw("neighbors", children, count=children[1])

    def top(self, children: list[Any]) -> DrawStatement:
        return build_draw("top", children, count=children[1])

    def layer(self, children: list[Any]) -> DrawStatement:
        return build_draw("layer", children, count=children[2])

    def layers(self, children: list[Any]) -> DrawStatement:
        return build_draw("layers", children, counts=children[2][1])

    def negatives(self, children: list[Any]) -> DrawStatement:
        return build_draw("negatives", children, count=children[1])

    def walk(self, children: list[Any]) -> DrawStatement:
        return build_draw(
            "walk", children, count=None if isinstance(children[1], dict) else children[1]
        )

    def go(self, children: list[Any]) -> DrawStatement:
        first, last = (
            children[1]
            if isinstance(children[1], tuple) and children[1][0] != "option"
            else (None, None)
        )
        return build_draw("go", children, first=first, count=last)

    def fetch(self, children: list[Any]) -> DrawStatement:
        return build_draw("fetch", children, types=(children[3],), **children[4])

    def steps(self, children: list[Any]) -> tuple[Value | None, Value]:
        values = [child for child in children if not isinstance(child, Token)]
        return (values[0], values[1]) if len(values) > 1 else (None, values[0])

    def on(self, children: list[Any]) -> dict[str, Any]:
        return {"types": tuple(children[1:])}

    def like(self, children: list[Any]) -> dict[str, Any]:
        return {
            "like": True,
            **children[1],
            "node_type": children[3] if len(children) > 3 else None,
        }

    def origin(self, children: list[Any]) -> dict[str, Any]:
        return {**children[1], "node_type": children[3] if len(children) > 3 else None}

    def bare_origin(self, children: list[Any]) -> dict[str, Any]:
        return dict(children[1])

    def over(self, children: list[Any]) -> dict[str, Any]:
        return {"hops": tuple(child for child in children if isinstance(child, tuple))}

    def hop(self, children: list[Any]) -> ast.Hop:
        return tuple(child for child in children if isinstance(child, TypeName))

    def ids(self, children: list[Any]) -> dict[str, Any]:
        return {
            "nodes": parameter_from_token(children[0])
            if is_token(children[0], "PARAMETER")
            else tuple(children)
        }

    def id(self, children: list[Any]) -> int | str:
        return str(children[0]) if is_token(children[0], "TEXT") else int(parse_number(children[0]))

    def pairs(self, children: list[Any]) -> dict[str, Any]:
        return {"pairs": tuple(children)}

    def pair(self, children: list[Any]) -> tuple[Any, Any]:
        return children[0], children[1]

    def end(self, children: list[Any]) -> Any:
        return (
            parameter_from_token(children[0]) if is_token(children[0], "PARAMETER") else children[0]
        )

    def counts(self, children: list[Any]) -> tuple[str, Any]:
        return "counts", parameter_from_token(children[0]) if is_token(
            children[0], "PARAMETER"
        ) else tuple(children)

    # -- options: ("option", name, value, position) --

    def where(self, children: list[Any]) -> Any:
        return "option", "where", WhereClause(words=tuple(children[1])), position_of(children[0])

    def weight(self, children: list[Any]) -> Any:
        return (
            "option",
            "weight",
            parameter_from_token(children[1])
            if is_token(children[1], "PARAMETER")
            else children[1],
            position_of(children[0]),
        )

    def seed(self, children: list[Any]) -> Any:
        return "option", "seed", children[1], position_of(children[0])

    def version(self, children: list[Any]) -> Any:
        return "option", "version", children[1], position_of(children[0])

    def exclude(self, children: list[Any]) -> Any:
        types = {
            str(word).upper(): child
            for word, child in pairwise(children)
            if is_token(word, "ON") or is_token(word, "REVERSE")
        }
        clause = ExcludedPairs(
            pairs=tuple(child for child in children if isinstance(child, tuple)),
            edge_type=types.get("ON"),
            reverse_type=types.get("REVERSE"),
            at=position_of(children[0]),
        )
        return "option", "excluded", clause, clause.at

    def excluded_pair(self, children: list[Any]) -> tuple[Any, Any, Any]:
        src, dst, *edge_id = children
        if not edge_id:
            return src, dst, None
        (token,) = edge_id
        is_parameter = is_token(token, "PARAMETER")
        return src, dst, parameter_from_token(token) if is_parameter else parse_number(token)

    def yields(self, children: list[Any]) -> Any:
        return (
            "option",
            "unlike" if is_token(children[1], "DISTINCT") else "items",
            tuple(child for child in children if isinstance(child, YieldItem)),
            position_of(children[0]),
        )

    def item(self, children: list[Any]) -> YieldItem:
        return YieldItem(column=children[0], alias=children[2] if len(children) > 2 else None)

    def counted(self, children: list[Any]) -> Any:
        return "option", "counted", row_count(children), position_of(children[0])

    def piped_count(self, children: list[Any]) -> Any:
        return "option", "shape", row_count(children), position_of(children[0])

    def order(self, children: list[Any]) -> Any:
        return (
            "option",
            "shape",
            OrderBy(keys=tuple(child for child in children if isinstance(child, tuple))),
            position_of(children[0]),
        )

    def key_of_order(self, children: list[Any]) -> tuple[Identifier, bool]:
        return first_instance(children, Identifier), is_token(children[-1], "DESC")

    def limit(self, children: list[Any]) -> Any:
        values = children[1:]
        limit = Limit(count=values[-1], offset=values[0] if len(values) > 1 else 0)
        return "option", "shape", limit, position_of(children[0])

    def limits(self, children: list[Any]) -> Any:
        return "option", "limits", tuple(children[1:]), position_of(children[0])

    def sample(self, children: list[Any]) -> Any:
        return "option", "counts", children[1][1], position_of(children[0])

    def replacement(self, children: list[Any]) -> Any:
        return "option", "replace", is_token(children[0], "WITH"), position_of(children[0])

    def direction(self, children: list[Any]) -> Any:
        return "option", "direction", str(children[0]).upper(), position_of(children[0])

    def flag(self, children: list[Any]) -> Any:
        return "option", str(children[0]).lower(), True, position_of(children[0])

    def measure(self, children: list[Any]) -> Any:
        return "option", "measure", str(children[1]).upper(), position_of(children[0])

    def p(self, children: list[Any]) -> Any:
        return "option", "p", children[1], position_of(children[0])

    def q(self, children: list[Any]) -> Any:
        return "option", "q", children[1], position_of(children[0])

    def restart(self, children: list[Any]) -> Any:
        return "option", "restart", children[1], position_of(children[0])

    def walks(self, children: list[Any]) -> Any:
        return "option", "walks", children[1], position_of(children[0])

    # -- filters: lists of (token, position) --

    def condition(self, children: list[Any]) -> list[Any]:
        return flatten_condition(children)

    conjunction = test = operand = negation = condition

    def bracket(self, children: list[Any]) -> list[Any]:
        return flatten_condition(children)

    def listed(self, children: list[Any]) -> list[Any]:
        if len(children) == 1:
            return flatten_condition(children)
        return [
            ("(", position_of(children[0])),
            *flatten_condition(children[1:-1]),
            (")", position_of(children[-1])),
        ]

    def literal(self, children: list[Any]) -> LiteralValue:
        token = children[0]
        match token.type:
            case "TEXT":
                return LiteralValue(str(token), position_of(token))
            case "TRUE" | "FALSE":
                return LiteralValue(token.type == "TRUE", position_of(token))
            case "PARAMETER":
                return LiteralValue(parameter_from_token(token), position_of(token))
            case _:
                return LiteralValue(parse_number(token), position_of(token))

    def column(self, children: list[Any]) -> ColumnRef:
        column: ColumnRef = children[0]
        return (
            replace(column, element=int(parse_number(children[1]))) if len(children) > 1 else column
        )

    def plain(self, children: list[Any]) -> ColumnRef:
        return column_from_path(children)

    def of_end(self, children: list[Any]) -> ColumnRef:
        return column_from_path(
            children[1:],
            end="far" if children[0] == "$$" else "near",
            position=position_of(children[0]),
        )

    def called(self, children: list[Any]) -> ColumnRef:
        return column_from_call(children)

    # -- terminals --

    def type(self, children: list[Any]) -> TypeName:
        child = children[0]
        return TypeName(
            text=str(child) if isinstance(child, Token) else child.text, at=position_of(child)
        )

    def name(self, children: list[Any]) -> Identifier:
        return identifier_from_token(children[0])

    word = name

    def value(self, children: list[Any]) -> Value:
        return (
            parameter_from_token(children[0])
            if is_token(children[0], "PARAMETER")
            else parse_number(children[0])
        )

    def text(self, children: list[Any]) -> Token:
        return Token("TEXT", unescape(str(children[0])), children[0].start_pos)


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
