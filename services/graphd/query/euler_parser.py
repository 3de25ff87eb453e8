"""Parser of Euler's GQL: text to records. A pure module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from lark import Token, Transformer

from graphd.query.ast import Parameter
from graphd.query.grammar import Grammar, unescape
from graphd.query.values import parameter_from_token, position_of

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
    def step(self: _EulerTreeBuilder, found: list[Any]) -> EulerStep:
        """Return a step with its arguments and modifiers."""
        fields: dict[str, Any] = {}
        for child in found:
            if isinstance(child, tuple):
                fields[child[0]] = (
                    fields.get(child[0], ()) + child[1] if child[0] == "reduced" else child[1]
                )
        arguments = tuple(
            argument for argument in found if isinstance(argument, TextArgument | Parameter)
        )
        position = next(
            (position_of(argument) for argument in found if isinstance(argument, Token)), 0
        )
        return EulerStep(operation=operation, arguments=arguments, at=position, **fields)

    return step


class _EulerTreeBuilder(Transformer[Any, Any]):
    def start(self, found: list[Any]) -> tuple[EulerStep, ...]:
        return tuple(found)

    def select(self, found: list[Any]) -> tuple[str, Any]:
        return "of", found[1].text

    def condition(self, found: list[Any]) -> tuple[str, Any]:
        parts = [list(part) for part in found]
        for part in parts[:-1]:
            part[-1] = replace(part[-1], join="or")
        return "tests", tuple(test for part in parts for test in part)

    def conjunction(self, found: list[Any]) -> list[EulerPredicate]:
        tests = [child for child in found if isinstance(child, EulerPredicate)]
        return [replace(test, join="and") for test in tests[:-1]] + tests[-1:]

    def compared(self, found: list[Any]) -> EulerPredicate:
        return EulerPredicate(
            name=found[0].text, sign=str(found[1]), values=(found[2],), at=found[0].at
        )

    def member(self, found: list[Any]) -> EulerPredicate:
        return EulerPredicate(
            name=found[0].text, sign=str(found[1]), values=found[2], at=found[0].at
        )

    def has_label(self, found: list[Any]) -> EulerPredicate:
        return EulerPredicate(name=found[1].text, sign="label", at=position_of(found[0]))

    def has_key(self, found: list[Any]) -> EulerPredicate:
        return EulerPredicate(name=found[1].text, sign="key", at=position_of(found[0]))

    def several(self, found: list[Any]) -> tuple[Argument, ...]:
        if isinstance(found[0], Token):
            return tuple(
                TextArgument(text=text, at=position_of(found[0]))
                for text in str(found[0]).split("::")
            )
        return tuple(found)

    def order(self, found: list[Any]) -> tuple[str, Any]:
        return "order", (found[0].text, str(found[1]) == "desc")

    def limit(self, found: list[Any]) -> tuple[str, Any]:
        return "limit", found[0]

    def alias(self, found: list[Any]) -> tuple[str, Any]:
        return "alias", found[0].text

    def reduced(self, found: list[Any]) -> tuple[str, Any]:
        return "reduced", tuple((child.text, str(found[0])) for child in found[1:])

    def argument(self, found: list[Any]) -> Argument:
        token = found[0]
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
    """Return the steps of a query in Euler's GQL; for errors see `graphd.query.parser.parse`."""
    steps: tuple[EulerStep, ...] = euler_grammar().parse(text)
    return steps
