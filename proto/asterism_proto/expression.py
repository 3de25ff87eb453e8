"""Weight expressions: float64 arithmetic over the columns of a type, read when a schema is made.

    expression = sum of products of powers, as in Python: + - * / ** and parentheses, ** before a sign on its left
    operand    = number | column | `column` | function ( expression, ... ) | ( expression )
    function   = min, max (two or more), pow, clip (value, low, high), log, log1p, exp, sqrt, abs

A column whose name has a ``-`` in it, or is a function's, stands between backticks. What is read is a postfix program
of a fixed vocabulary; there is nothing else that a text could become. Precedence is Python's own: a text that consists
of these tokens, in an order that makes sense, goes to `ast.parse` with its names replaced, and comes back as a tree of
which sums, products, powers, signs and calls are taken. Nothing is ever compiled or run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import isinf

from asterism_proto.errors import Internal, InvalidRequest

MAX_LENGTH = 1000
"""Characters of an expression."""
MAX_TOKENS = 200
"""Bounds the depth of what is read, and the work of evaluating it."""

FUNCTIONS: dict[str, tuple[int, int]] = {
    "min": (2, MAX_TOKENS),
    "max": (2, MAX_TOKENS),
    "pow": (2, 2),
    "clip": (3, 3),
    "log": (1, 1),
    "log1p": (1, 1),
    "exp": (1, 1),
    "sqrt": (1, 1),
    "abs": (1, 1),
}
"""Names of functions, with the fewest and the most arguments that they take."""

_TOKEN = re.compile(
    r"(?P<space>[ \t\n]+)|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_.]*)"
    r"|`(?P<quoted>[^`]*)`|(?P<operator>\*\*|[-+*/])|(?P<mark>[(),])",
    re.ASCII,
)
_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "pow"}
_AN_OPERAND = "a number, a column, a function or '('"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a postfix program: something is put on a stack, or the last few of it become one."""

    word: str
    """``number``, ``column``, ``+``, ``-``, ``*``, ``/``, ``negative``, or a function."""
    number: float = 0.0
    """Of a ``number``."""
    column: str = ""
    """Of a ``column``."""
    arity: int = 0
    """How many values it takes from the stack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """What a text means."""

    text: str
    steps: tuple[Step, ...]
    """In the order of evaluation."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, each once, as they come."""
        return tuple(dict.fromkeys(step.column for step in self.steps if step.word == "column"))


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    """``number``, ``column``, ``function``, ``operator``, ``mark``, ``end``."""
    text: str
    at: int


@lru_cache(maxsize=1024)
def parse(text: str) -> Expression:
    """Read an expression.

    Raises
    ------
    InvalidRequest
        Where it is none; the message has the place (characters from 1), what is there and what was expected.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_LENGTH:
        raise InvalidRequest(f'expression {text!r:.80}: expected a text of 1 to {MAX_LENGTH} characters, as "pow(clicks, 0.75)"')
    tokens = list(_tokens(text))
    if len(tokens) > MAX_TOKENS:
        raise InvalidRequest(f"expression {text!r:.80}: more than {MAX_TOKENS - 1} numbers, names and signs")
    _check_order(text, tokens)
    columns = [token.text for token in tokens if token.kind == "column"]
    stand_ins = iter(range(len(columns)))
    plain = " ".join(f"c{next(stand_ins)}" if token.kind == "column" else _plain(text, token) for token in tokens[:-1])
    return Expression(text=text, steps=tuple(_steps(ast.parse(plain, mode="eval").body, columns)))


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _wrong(text, at, repr(text[at]), f"{_AN_OPERAND}, or one of + - * / ** ( ) ,")
        kind, word = str(found.lastgroup), found[str(found.lastgroup)]
        after = text[found.end() : found.end() + 1]
        if kind == "number" and (after == "_" or after == "." or (after.isascii() and after.isalnum())):
            raise _wrong(text, found.end(), repr(after), "a space or an operator behind a number")
        if kind == "quoted" and not word:
            raise _wrong(text, at, "'``'", "a column's name between backticks")
        if kind == "name":
            kind = "function" if word in FUNCTIONS and text[found.end() :].lstrip(" \t\n")[:1] == "(" else "column"
        if kind != "space":
            yield _Token("column" if kind == "quoted" else kind, word, at)
        at = found.end()
    yield _Token("end", "", len(text))


def _check_order(text: str, tokens: list[_Token]) -> None:
    """InvalidRequest where operands and operators do not take turns, or brackets and arguments are not as they should."""
    operand = True
    opened: list[tuple[_Token, int]] = []
    """Of each open bracket its function (or the bracket), and how many arguments it has so far."""
    for i, token in enumerate(tokens):
        inner = opened[-1] if opened else None
        if operand:
            if token.kind in ("number", "column"):
                operand = False
            elif token.kind == "mark" and token.text == "(":
                opened.append((tokens[i - 1] if i and tokens[i - 1].kind == "function" else token, 1))
            elif token.kind != "function" and not (token.kind == "operator" and token.text in "+-"):
                raise _wrong(text, token.at, _shown(token), _AN_OPERAND)
        elif token.kind == "operator":
            operand = True
        elif token.kind == "mark" and token.text == ")" and inner is not None:
            _check_arguments(text, *opened.pop())
        elif token.kind == "mark" and token.text == "," and inner is not None and inner[0].kind == "function":
            opened[-1] = (inner[0], inner[1] + 1)
            operand = True
        elif token.kind == "end" and inner is None:
            return
        elif token.text == "(" and tokens[i - 1].kind == "column":
            raise _wrong(text, tokens[i - 1].at, f"{tokens[i - 1].text!r} called as a function", f"one of {', '.join(FUNCTIONS)}")
        else:
            closing = "" if inner is None else " or ')'" if inner[0].kind != "function" else ", ',' or ')'"
            raise _wrong(text, token.at, _shown(token), f"an operator (+ - * / **){closing or ' or the end'}")


def _check_arguments(text: str, opener: _Token, given: int) -> None:
    if opener.kind == "function":
        fewest, most = FUNCTIONS[opener.text]
        if not fewest <= given <= most:
            wanted = f"{fewest} argument{'s' if fewest > 1 else ''}" + (" or more" if most > fewest else "")
            raise _wrong(text, opener.at, f"{opener.text} of {given}", wanted)


def _plain(text: str, token: _Token) -> str:
    if token.kind != "number":
        return token.text
    number = float(token.text)
    if isinf(number):
        raise _wrong(text, token.at, token.text, "a number that fits float64")
    return repr(number)


def _steps(node: ast.AST, columns: list[str]) -> Iterator[Step]:
    """The postfix program of a tree; anything but arithmetic has no place in it."""
    if isinstance(node, ast.Constant) and type(node.value) is float:
        yield Step(word="number", number=node.value)
    elif isinstance(node, ast.Name):
        yield Step(word="column", column=columns[int(node.id[1:])])
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        yield from _steps(node.left, columns)
        yield from _steps(node.right, columns)
        yield Step(word=_BINARY[type(node.op)], arity=2)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        yield from _steps(node.operand, columns)
        if isinstance(node.op, ast.USub):
            yield Step(word="negative", arity=1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords:
        for argument in node.args:
            yield from _steps(argument, columns)
        yield Step(word=node.func.id, arity=len(node.args))
    else:
        raise Internal(f"an expression became {type(node).__name__}, which is no arithmetic; its text passed the checks before")


def _shown(token: _Token) -> str:
    return "the end" if token.kind == "end" else repr(token.text)


def _wrong(text: str, at: int, found: str, expected: str) -> InvalidRequest:
    return InvalidRequest(f"expression {text!r}, character {at + 1}: found {found}, expected {expected}")
