"""Parser of Euler's GQL: text to records. A pure module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from lark import Token, Transformer

from graphd.query.ast import Parameter
from graphd.query.lark_parser import Grammar, unescape
from graphd.query.ngql_tree_builder import parameter_from_token, position_of

_WORDS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "TEXT": "a string",
    "PARAMETER": "a $parameter",
    "SIGN": "gt, ge, lt, le, eq or ne",
}
_WORDS |= {
    "MEMBER": "in or not_in",
    "UDF": "min, max, mean",
    "DIRECTION": "asc or desc",
    "LIST": "values (a::b)",
}
_WORDS |= {
    "V": "v",
    "E": "e",
    "SAMPLE_N": "sampleN",
    "SAMPLE_N_WITH_TYPES": "sampleNWithTypes",
    "SAMPLE_E": "sampleE",
    "SAMPLE_NB": "sampleNB",
}
_WORDS |= {
    "SAMPLE_LNB": "sampleLNB",
    "OUT_V": "outV",
    "IN_V": "inV",
    "OUT_E": "outE",
    "SELECT": "select",
    "V_SELECT": "v_select",
}
_WORDS |= {
    "VALUES": "values",
    "LABEL": "label",
    "HAS": "has",
    "HAS_LABEL": "hasLabel",
    "HAS_KEY": "hasKey",
}
_WORDS |= {"AS": "as", "AND": "and", "OR": "or", "LIMIT": "limit", "ORDER_BY": "order_by"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextArgument:
    """Argument in source form: the name of an input, a type, a word or a number."""

    text: str
    at: int = field(default=0, compare=False)


Argument = TextArgument | Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class EulerPredicate:
    """Predicate; its values may be passed with the query."""

    name: str
    sign: str
    values: tuple[Argument, ...] = ()
    join: str = ""
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EulerStep:
    """Step of a query."""

    operation: str
    """Name of the grammar rule: ``vertices``, ``sample_n``, ``out_v``, ``values``, ..."""
    arguments: tuple[Argument, ...] = ()
    tests: tuple[EulerPredicate, ...] = ()
    order: tuple[str, bool] | None = None
    """``id`` or ``weight``, and True for descending order."""
    limit: Argument | None = None
    alias: str = ""
    of: str = ""
    """Alias of the nodes to continue from; "" for those of the previous step."""
    reduced: tuple[tuple[str, str], ...] = ()
    """Reductions of ``values``: (feature, function) pairs."""
    at: int = field(default=0, compare=False)


def _step_rule(operation: str) -> Callable[[_EulerTreeBuilder, list[Any]], EulerStep]:
    def step(self: _EulerTreeBuilder, children: list[Any]) -> EulerStep:
        """Return a step with its arguments and modifiers."""
        fields: dict[str, Any] = {}
        for child in children:
            if isinstance(child, tuple):
                fields[child[0]] = (
                    fields.get(child[0], ()) + child[1] if child[0] == "reduced" else child[1]
                )
        arguments = tuple(
            argument for argument in children if isinstance(argument, TextArgument | Parameter)
        )
        position = next(
            (position_of(argument) for argument in children if isinstance(argument, Token)), 0
        )
        return EulerStep(operation=operation, arguments=arguments, at=position, **fields)

    return step


class _EulerTreeBuilder(Transformer[Any, Any]):
    def start(self, children: list[Any]) -> tuple[EulerStep, ...]:
        return tuple(children)

    def select(self, children: list[Any]) -> tuple[str, Any]:
        return "of", children[1].text

    def condition(self, children: list[Any]) -> tuple[str, Any]:
        parts = [list(part) for part in children]
        for part in parts[:-1]:
            part[-1] = replace(part[-1], join="or")
        return "tests", tuple(test for part in parts for test in part)

    def conjunction(self, children: list[Any]) -> list[EulerPredicate]:
        tests = [child for child in children if isinstance(child, EulerPredicate)]
        return [replace(test, join="and") for test in tests[:-1]] + tests[-1:]

    def compared(self, children: list[Any]) -> EulerPredicate:
        return EulerPredicate(
            name=children[0].text, sign=str(children[1]), values=(children[2],), at=children[0].at
        )

    def member(self, children: list[Any]) -> EulerPredicate:
        return EulerPredicate(
            name=children[0].text, sign=str(children[1]), values=children[2], at=children[0].at
        )

    def has_label(self, children: list[Any]) -> EulerPredicate:
        return EulerPredicate(name=children[1].text, sign="label", at=position_of(children[0]))

    def has_key(self, children: list[Any]) -> EulerPredicate:
        return EulerPredicate(name=children[1].text, sign="key", at=position_of(children[0]))

    def several(self, children: list[Any]) -> tuple[Argument, ...]:
        if isinstance(children[0], Token):
            return tuple(
                TextArgument(text=text, at=position_of(children[0]))
                for text in str(children[0]).split("::")
            )
        return tuple(children)

    def order(self, children: list[Any]) -> tuple[str, Any]:
        return "order", (children[0].text, str(children[1]) == "desc")

    def limit(self, children: list[Any]) -> tuple[str, Any]:
        return "limit", children[0]

    def alias(self, children: list[Any]) -> tuple[str, Any]:
        return "alias", children[0].text

    def reduced(self, children: list[Any]) -> tuple[str, Any]:
        return "reduced", tuple((child.text, str(children[0])) for child in children[1:])

    def argument(self, children: list[Any]) -> Argument:
        token = children[0]
        if token.type == "PARAMETER":
            return parameter_from_token(token)
        return TextArgument(
            text=unescape(str(token)) if token.type == "TEXT" else str(token), at=position_of(token)
        )

    value = name = argument

    vertices, edges = _step_rule("vertices"), _step_rule("edges")
    sample_n, sample_n_with_types, sample_e = (
        _step_rule("sample_n"),
        _step_rule("sample_n_with_types"),
        _step_rule("sample_e"),
    )
    out_v, in_v, out_e = _step_rule("out_v"), _step_rule("in_v"), _step_rule("out_e")
    sample_nb, sample_lnb = _step_rule("sample_nb"), _step_rule("sample_lnb")
    selected, values, label = _step_rule("selected"), _step_rule("values"), _step_rule("label")


@cache
def euler_grammar() -> Grammar:
    """Return the grammar of Euler's GQL; it is built once."""
    return Grammar("euler.lark", _EulerTreeBuilder(), _WORDS)


def build_parser() -> None:
    """Build the parser in advance, so that no query waits for it."""
    euler_grammar()


def parse_euler(text: str) -> tuple[EulerStep, ...]:
    """Return the steps of a query in Euler's GQL; errors as `graphd.query.ngql_parser.parse`."""
    steps: tuple[EulerStep, ...] = euler_grammar().parse(text)
    return steps
