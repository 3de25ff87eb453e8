"""Euler's GQL as records. A quiet room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from lark import Token, Transformer

from graphd.statements.grammar import Grammar, unescaped
from graphd.statements.pieces import parameter_of, place_of
from graphd.statements.records import Parameter

_WORDS = {"NAME": "a name", "NUMBER": "a number", "TEXT": "a text", "PARAMETER": "a $parameter", "SIGN": "gt, ge, lt, le, eq or ne"}
_WORDS |= {"MEMBER": "in or not_in", "UDF": "min, max, mean", "DIRECTION": "asc or desc", "LIST": "values (a::b)"}
_WORDS |= {"V": "v", "E": "e", "SAMPLE_N": "sampleN", "SAMPLE_N_WITH_TYPES": "sampleNWithTypes", "SAMPLE_E": "sampleE", "SAMPLE_NB": "sampleNB"}
_WORDS |= {"SAMPLE_LNB": "sampleLNB", "OUT_V": "outV", "IN_V": "inV", "OUT_E": "outE", "SELECT": "select", "V_SELECT": "v_select"}
_WORDS |= {"VALUES": "values", "LABEL": "label", "HAS": "has", "HAS_LABEL": "hasLabel", "HAS_KEY": "hasKey"}
_WORDS |= {"AS": "as", "AND": "and", "OR": "or", "LIMIT": "limit", "ORDER_BY": "order_by"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """An argument: the name of an input, a type or a word, or a number, as it is written."""

    text: str
    at: int = field(default=0, compare=False)


Argument = Word | Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A test, with values that may come beside the query."""

    name: str
    sign: str
    values: tuple[Argument, ...] = ()
    join: str = ""
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of a query."""

    word: str
    """``vertices``, ``edges``, ``sample_n``, ``out_v``, ``values``, ...: as the grammar calls it."""
    arguments: tuple[Argument, ...] = ()
    tests: tuple[Tested, ...] = ()
    order: tuple[str, bool] | None = None
    """By ``id`` or ``weight``, and whether it falls."""
    limit: Argument | None = None
    alias: str = ""
    of: str = ""
    """The alias whose nodes it goes on from; "": those of the step before."""
    reduced: tuple[tuple[str, str], ...] = ()
    """Of ``values``: features, and what is made of each row of theirs."""
    at: int = field(default=0, compare=False)


def _step_called(word: str) -> Callable[[_Reader, list[Any]], Step]:
    def step(self: _Reader, found: list[Any]) -> Step:
        """A step: its arguments, and what is said of it."""
        said: dict[str, Any] = {}
        for part in found:
            if isinstance(part, tuple):
                said[part[0]] = said.get(part[0], ()) + part[1] if part[0] == "reduced" else part[1]
        arguments = tuple(one for one in found if isinstance(one, Word | Parameter))
        at = next((place_of(one) for one in found if isinstance(one, Token)), 0)
        return Step(word=word, arguments=arguments, at=at, **said)

    return step


class _Reader(Transformer[Any, Any]):
    def start(self, found: list[Any]) -> tuple[Step, ...]:
        return tuple(found)

    def select(self, found: list[Any]) -> tuple[str, Any]:
        return "of", found[1].text

    def condition(self, found: list[Any]) -> tuple[str, Any]:
        parts = [list(part) for part in found]
        for part in parts[:-1]:
            part[-1] = replace(part[-1], join="or")
        return "tests", tuple(test for part in parts for test in part)

    def conjunction(self, found: list[Any]) -> list[Tested]:
        tests = [one for one in found if isinstance(one, Tested)]
        return [replace(test, join="and") for test in tests[:-1]] + tests[-1:]

    def compared(self, found: list[Any]) -> Tested:
        return Tested(name=found[0].text, sign=str(found[1]), values=(found[2],), at=found[0].at)

    def member(self, found: list[Any]) -> Tested:
        return Tested(name=found[0].text, sign=str(found[1]), values=found[2], at=found[0].at)

    def has_label(self, found: list[Any]) -> Tested:
        return Tested(name=found[1].text, sign="label", at=place_of(found[0]))

    def has_key(self, found: list[Any]) -> Tested:
        return Tested(name=found[1].text, sign="key", at=place_of(found[0]))

    def several(self, found: list[Any]) -> tuple[Argument, ...]:
        if isinstance(found[0], Token):
            return tuple(Word(text=text, at=place_of(found[0])) for text in str(found[0]).split("::"))
        return tuple(found)

    def order(self, found: list[Any]) -> tuple[str, Any]:
        return "order", (found[0].text, str(found[1]) == "desc")

    def limit(self, found: list[Any]) -> tuple[str, Any]:
        return "limit", found[0]

    def alias(self, found: list[Any]) -> tuple[str, Any]:
        return "alias", found[0].text

    def reduced(self, found: list[Any]) -> tuple[str, Any]:
        return "reduced", tuple((one.text, str(found[0])) for one in found[1:])

    def argument(self, found: list[Any]) -> Argument:
        token = found[0]
        if token.type == "PARAMETER":
            return parameter_of(token)
        return Word(text=unescaped(str(token)) if token.type == "TEXT" else str(token), at=place_of(token))

    value = name = argument

    vertices, edges = _step_called("vertices"), _step_called("edges")
    sample_n, sample_n_with_types, sample_e = _step_called("sample_n"), _step_called("sample_n_with_types"), _step_called("sample_e")
    out_v, in_v, out_e = _step_called("out_v"), _step_called("in_v"), _step_called("out_e")
    sample_nb, sample_lnb = _step_called("sample_nb"), _step_called("sample_lnb")
    selected, values, label = _step_called("selected"), _step_called("values"), _step_called("label")


@cache
def _grammar() -> Grammar:
    return Grammar("euler.lark", _Reader(), _WORDS)


def prepare() -> None:
    """Make the parser before somebody waits for it."""
    _grammar()


def read(text: str) -> tuple[Step, ...]:
    """The steps of a query in Euler's GQL; errors as of `reading.read`."""
    found: tuple[Step, ...] = _grammar().read(text)
    return found
