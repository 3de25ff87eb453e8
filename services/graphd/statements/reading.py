"""Statements of nGQL as records. A quiet room."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from lark import Token, Transformer

from graphd.statements import records
from graphd.statements.grammar import Grammar, number, unescaped
from graphd.statements.pieces import Written, called_of, column_of, draw_of, flat, is_a, named_of, one_of, owner_of, parameter_of, place_of
from graphd.statements.records import Column, Draw, Feature, Item, Limit, Named, Order, Owner, Statement, TypeName, Value, Where

_WORDS = {
    "NAME": "a name",
    "QUOTED": "a `name`",
    "TRIPLE": "a triple (a:b:c)",
    "INT": "a whole number",
    "SIGNED": "a whole number",
    "NUMBER": "a number",
    "TEXT": "a text",
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


class _Reader(Transformer[Any, Any]):
    """Makes records, rule by rule; tokens of words come along and are looked at where they say something."""

    def start(self, found: list[Any]) -> tuple[Statement, ...]:
        return tuple(found)

    def statement(self, found: list[Any]) -> Statement:
        mode = str(found[0]).upper() if isinstance(found[0], Token) else ""
        body = found[-1]
        return Statement(body=body, mode=mode, at=place_of(found[0]))

    def mode(self, found: list[Any]) -> Any:
        return found[0]

    # -- spaces and jobs --

    def use(self, found: list[Any]) -> records.Use:
        return records.Use(space=found[1], at=place_of(found[0]))

    def show(self, found: list[Any]) -> records.Show:
        return records.Show(what=str(found[1]).upper(), role=str(found[2]).upper() if len(found) > 2 else "", at=place_of(found[0]))

    def show_job(self, found: list[Any]) -> records.Show:
        return records.Show(what="JOB", job=found[2], at=place_of(found[0]))

    def show_create(self, found: list[Any]) -> records.Show:
        return records.Show(what="CREATE SPACE", space=found[3], at=place_of(found[0]))

    def describe(self, found: list[Any]) -> records.Describe:
        return records.Describe(what=str(found[1]).upper(), name=found[2], at=place_of(found[0]))

    def create(self, found: list[Any]) -> records.CreateSpace:
        return records.CreateSpace(
            name=one_of(found, Named),
            if_not_exists="if_not_exists" in found,
            settings=next((one for one in found if isinstance(one, tuple)), ()),
            owners=tuple(one for one in found if isinstance(one, Owner)),
            at=place_of(found[0]),
        )

    def if_not_exists(self, found: list[Any]) -> str:
        return "if_not_exists"

    def drop(self, found: list[Any]) -> records.DropSpace:
        return records.DropSpace(name=one_of(found, Named), if_exists="if_exists" in found, at=place_of(found[0]))

    def if_exists(self, found: list[Any]) -> str:
        return "if_exists"

    def settings(self, found: list[Any]) -> records.Settings:
        return tuple(found)

    def setting(self, found: list[Any]) -> tuple[Named, Value]:
        value = found[-1]
        return found[0], value.text if isinstance(value, Named) else value.value

    def key(self, found: list[Any]) -> Named:
        return Named(text="-".join(found), at=place_of(found[0]))

    def tag(self, found: list[Any]) -> Owner:
        return owner_of(found, {})

    def edge(self, found: list[Any]) -> Owner:
        src, dst = [one for one in found if isinstance(one, Named)][1:]
        return owner_of(found, {"src": src, "dst": dst})

    def features(self, found: list[Any]) -> tuple[Feature, ...]:
        return tuple(found)

    def dense(self, found: list[Any]) -> Feature:
        return Feature(name=found[0], dtype=str(found[1]), shape=found[2] if len(found) > 2 else ())

    def ragged(self, found: list[Any]) -> Feature:
        return Feature(name=found[0], dtype=str(found[-1]), ragged=True)

    def shape(self, found: list[Any]) -> tuple[int, ...]:
        return tuple(int(number(token)) for token in found)

    def weighted(self, found: list[Any]) -> tuple[str, Any, int]:
        return "weighted", True, place_of(found[0])

    def weights(self, found: list[Any]) -> tuple[str, Any, int]:
        return "weights", tuple(found[1:]), place_of(found[0])

    def named_weight(self, found: list[Any]) -> tuple[Named, str, bool]:
        return found[0], str(found[1]), len(found) > 2

    def label(self, found: list[Any]) -> tuple[str, Any, int]:
        return "label", found[2], place_of(found[0])

    def index(self, found: list[Any]) -> tuple[str, Any, int]:
        return "index", tuple(found[1:]), place_of(found[0])

    def indexed(self, found: list[Any]) -> tuple[Named, int | None]:
        return found[0], int(number(found[1])) if len(found) > 1 else None

    def unique(self, found: list[Any]) -> tuple[str, Any, int]:
        return "unique", True, place_of(found[0])

    def missing(self, found: list[Any]) -> tuple[str, Any, int]:
        return "missing", str(found[1]).upper(), place_of(found[0])

    def time(self, found: list[Any]) -> tuple[str, Any, int]:
        return "time", found[1], place_of(found[0])

    def submit(self, found: list[Any]) -> records.SubmitJob:
        return records.SubmitJob(
            kind=found[2],
            version=found[4] if len(found) > 4 and is_a(found[3], "VERSION") else None,
            settings=next((one for one in found if isinstance(one, tuple)), ()),
            at=place_of(found[0]),
        )

    def stop(self, found: list[Any]) -> records.EndJob:
        return records.EndJob(word="STOP", job=found[2], at=place_of(found[0]))

    def recover(self, found: list[Any]) -> records.EndJob:
        return records.EndJob(word="RECOVER", job=found[2] if len(found) > 2 else None, at=place_of(found[0]))

    # -- samples and reads --

    def vertices(self, found: list[Any]) -> Draw:
        return draw_of("vertices", found, count=found[1])

    def edges(self, found: list[Any]) -> Draw:
        return draw_of("edges", found, count=found[1])

    def neighbors(self, found: list[Any]) -> Draw:
        return draw_of("neighbors", found, count=found[1])

    def top(self, found: list[Any]) -> Draw:
        return draw_of("top", found, count=found[1])

    def layer(self, found: list[Any]) -> Draw:
        return draw_of("layer", found, count=found[2])

    def layers(self, found: list[Any]) -> Draw:
        return draw_of("layers", found, counts=found[2][1])

    def negatives(self, found: list[Any]) -> Draw:
        return draw_of("negatives", found, count=found[1])

    def walk(self, found: list[Any]) -> Draw:
        return draw_of("walk", found, count=None if isinstance(found[1], dict) else found[1])

    def go(self, found: list[Any]) -> Draw:
        first, last = found[1] if isinstance(found[1], tuple) and found[1][0] != "option" else (None, None)
        return draw_of("go", found, first=first, count=last)

    def fetch(self, found: list[Any]) -> Draw:
        return draw_of("fetch", found, types=(found[3],), **found[4])

    def steps(self, found: list[Any]) -> tuple[Value | None, Value]:
        values = [one for one in found if not isinstance(one, Token)]
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
        return {"hops": tuple(one for one in found if isinstance(one, tuple))}

    def hop(self, found: list[Any]) -> records.Hop:
        return tuple(one for one in found if isinstance(one, TypeName))

    def ids(self, found: list[Any]) -> dict[str, Any]:
        return {"nodes": parameter_of(found[0]) if is_a(found[0], "PARAMETER") else tuple(found)}

    def id(self, found: list[Any]) -> int | str:
        return str(found[0]) if is_a(found[0], "TEXT") else int(number(found[0]))

    def pairs(self, found: list[Any]) -> dict[str, Any]:
        return {"pairs": tuple(found)}

    def pair(self, found: list[Any]) -> tuple[Any, Any]:
        return found[0], found[1]

    def end(self, found: list[Any]) -> Any:
        return parameter_of(found[0]) if is_a(found[0], "PARAMETER") else found[0]

    def counts(self, found: list[Any]) -> tuple[str, Any]:
        return "counts", parameter_of(found[0]) if is_a(found[0], "PARAMETER") else tuple(found)

    # -- options: (word, name, value, place) --

    def where(self, found: list[Any]) -> Any:
        return "option", "where", Where(words=tuple(found[1])), place_of(found[0])

    def weight(self, found: list[Any]) -> Any:
        return "option", "weight", parameter_of(found[1]) if is_a(found[1], "PARAMETER") else found[1], place_of(found[0])

    def seed(self, found: list[Any]) -> Any:
        return "option", "seed", found[1], place_of(found[0])

    def version(self, found: list[Any]) -> Any:
        return "option", "version", found[1], place_of(found[0])

    def yields(self, found: list[Any]) -> Any:
        return "option", "unlike" if is_a(found[1], "DISTINCT") else "items", tuple(one for one in found if isinstance(one, Item)), place_of(found[0])

    def item(self, found: list[Any]) -> Item:
        return Item(column=found[0], alias=found[2] if len(found) > 2 else None)

    def order(self, found: list[Any]) -> Any:
        return "option", "shape", Order(keys=tuple(one for one in found if isinstance(one, tuple))), place_of(found[0])

    def key_of_order(self, found: list[Any]) -> tuple[Named, bool]:
        return one_of(found, Named), is_a(found[-1], "DESC")

    def limit(self, found: list[Any]) -> Any:
        values = found[1:]
        kept = Limit(count=values[-1], offset=values[0] if len(values) > 1 else 0)
        return "option", "shape", kept, place_of(found[0])

    def limits(self, found: list[Any]) -> Any:
        return "option", "limits", tuple(found[1:]), place_of(found[0])

    def sample(self, found: list[Any]) -> Any:
        return "option", "counts", found[1][1], place_of(found[0])

    def replacement(self, found: list[Any]) -> Any:
        return "option", "replace", is_a(found[0], "WITH"), place_of(found[0])

    def direction(self, found: list[Any]) -> Any:
        return "option", "direction", str(found[0]).upper(), place_of(found[0])

    def flag(self, found: list[Any]) -> Any:
        return "option", str(found[0]).lower(), True, place_of(found[0])

    def measure(self, found: list[Any]) -> Any:
        return "option", "measure", str(found[1]).upper(), place_of(found[0])

    def p(self, found: list[Any]) -> Any:
        return "option", "p", found[1], place_of(found[0])

    def q(self, found: list[Any]) -> Any:
        return "option", "q", found[1], place_of(found[0])

    def restart(self, found: list[Any]) -> Any:
        return "option", "restart", found[1], place_of(found[0])

    def walks(self, found: list[Any]) -> Any:
        return "option", "walks", found[1], place_of(found[0])

    # -- conditions: lists of (word, place) --

    def condition(self, found: list[Any]) -> list[Any]:
        return flat(found)

    conjunction = test = operand = negation = condition

    def bracket(self, found: list[Any]) -> list[Any]:
        return flat(found)

    def listed(self, found: list[Any]) -> list[Any]:
        if len(found) == 1:
            return flat(found)
        return [("(", place_of(found[0])), *flat(found[1:-1]), (")", place_of(found[-1]))]

    def literal(self, found: list[Any]) -> Written:
        token = found[0]
        match token.type:
            case "TEXT":
                return Written(str(token), place_of(token))
            case "TRUE" | "FALSE":
                return Written(token.type == "TRUE", place_of(token))
            case "PARAMETER":
                return Written(parameter_of(token), place_of(token))
            case _:
                return Written(number(token), place_of(token))

    def column(self, found: list[Any]) -> Column:
        column: Column = found[0]
        return replace(column, element=int(number(found[1]))) if len(found) > 1 else column

    def plain(self, found: list[Any]) -> Column:
        return column_of(found)

    def of_end(self, found: list[Any]) -> Column:
        return column_of(found[1:], of="far" if found[0] == "$$" else "near", at=place_of(found[0]))

    def called(self, found: list[Any]) -> Column:
        return called_of(found)

    # -- the smallest --

    def type(self, found: list[Any]) -> TypeName:
        one = found[0]
        return TypeName(text=str(one) if isinstance(one, Token) else one.text, at=place_of(one))

    def name(self, found: list[Any]) -> Named:
        return named_of(found[0])

    word = name

    def value(self, found: list[Any]) -> Value:
        return parameter_of(found[0]) if is_a(found[0], "PARAMETER") else number(found[0])

    def text(self, found: list[Any]) -> Token:
        return Token("TEXT", unescaped(str(found[0])), found[0].start_pos)


@cache
def _grammar() -> Grammar:
    return Grammar("ngql.lark", _Reader(), _WORDS)


def prepare() -> None:
    """Make the parser, which takes a moment, before somebody waits for it."""
    _grammar()


def read(text: str) -> tuple[Statement, ...]:
    """The statements of a text; the same records for the same text.

    Raises
    ------
    InvalidRequest
        Where it is none: with its line, a caret and what was expected; `Place.incomplete` where it is cut short.
    """
    found: tuple[Statement, ...] = _grammar().read(text)
    return found
