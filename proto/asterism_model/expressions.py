"""Weight expressions: float64 arithmetic over the columns of a type, read when a schema is made.

    expression = sum of products of powers, as in Python: + - * / ** and parentheses, ** before a
    sign on its left
    operand    = number | column | `column` | function ( expression, ... ) | ( expression )
    function   = min, max (two or more), pow, clip (value, low, high), log, log1p, exp, sqrt, abs

A column whose name has a ``-`` in it, or is a function's, stands between backticks. What is read is
a postfix program of a fixed vocabulary; there is nothing else that a text could become. Precedence
is Python's own: a text that consists of these tokens, in an order that makes sense, goes to
`ast.parse` with its names replaced, and comes back as a tree of which sums, products, powers, signs
and calls are taken. Nothing is ever compiled or run."""

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
    r"(?P<space>[ \t\n]+)"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_.]*)"
    r"|`(?P<quoted>[^`]*)`"
    r"|(?P<operator>\*\*|[-+*/])"
    r"|(?P<mark>[(),])",
    re.ASCII,
)
_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "pow"}
_EXPECTED_OPERAND = "a number, a column, a function or '('"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One step of a postfix program: something is put on a stack, or the last few of it become
    one.
    """

    operation: str
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
    instructions: tuple[Instruction, ...]
    """In the order of evaluation."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, each once, as they come."""
        return tuple(
            dict.fromkeys(step.column for step in self.instructions if step.operation == "column")
        )


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    """``number``, ``column``, ``function``, ``operator``, ``mark``, ``end``."""
    text: str
    position: int


@lru_cache(maxsize=1024)
def parse(text: str) -> Expression:
    """Read an expression.

    Raises
    ------
    InvalidRequest
        Where it is none; the message has the place (characters from 1), what is there and what was
        expected.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_LENGTH:
        raise InvalidRequest(
            f"expression {text!r:.80}: expected a text of 1 to {MAX_LENGTH} characters, as "
            '"pow(clicks, 0.75)"'
        )
    tokens = list(_tokens(text))
    if len(tokens) > MAX_TOKENS:
        raise InvalidRequest(
            f"expression {text!r:.80}: more than {MAX_TOKENS - 1} numbers, names and signs"
        )
    _check_order(text, tokens)
    columns = [token.text for token in tokens if token.kind == "column"]
    placeholders = iter(range(len(columns)))
    source = " ".join(
        f"c{next(placeholders)}" if token.kind == "column" else _python_text(text, token)
        for token in tokens[:-1]
    )
    return Expression(
        text=text, instructions=tuple(_instructions(ast.parse(source, mode="eval").body, columns))
    )


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _syntax_error(
                text,
                position,
                repr(text[position]),
                f"{_EXPECTED_OPERAND}, or one of + - * / ** ( ) ,",
            )
        kind, lexeme = str(match.lastgroup), match[str(match.lastgroup)]
        after = text[match.end() : match.end() + 1]
        if kind == "number" and (
            after == "_" or after == "." or (after.isascii() and after.isalnum())
        ):
            raise _syntax_error(
                text, match.end(), repr(after), "a space or an operator behind a number"
            )
        if kind == "quoted" and not lexeme:
            raise _syntax_error(text, position, "'``'", "a column's name between backticks")
        if kind == "name":
            kind = (
                "function"
                if lexeme in FUNCTIONS and text[match.end() :].lstrip(" \t\n")[:1] == "("
                else "column"
            )
        if kind != "space":
            yield _Token("column" if kind == "quoted" else kind, lexeme, position)
        position = match.end()
    yield _Token("end", "", len(text))


def _check_order(text: str, tokens: list[_Token]) -> None:
    """InvalidRequest where operands and operators do not take turns, or brackets and arguments are
    not as they should.
    """
    expects_operand = True
    open_brackets: list[tuple[_Token, int]] = []
    """Of each open bracket its function (or the bracket), and how many arguments it has so far."""
    for i, token in enumerate(tokens):
        innermost = open_brackets[-1] if open_brackets else None
        if expects_operand:
            if token.kind in ("number", "column"):
                expects_operand = False
            elif token.kind == "mark" and token.text == "(":
                open_brackets.append(
                    (tokens[i - 1] if i and tokens[i - 1].kind == "function" else token, 1)
                )
            elif token.kind != "function" and not (token.kind == "operator" and token.text in "+-"):
                raise _syntax_error(text, token.position, _display_token(token), _EXPECTED_OPERAND)
        elif token.kind == "operator":
            expects_operand = True
        elif token.kind == "mark" and token.text == ")" and innermost is not None:
            _check_arguments(text, *open_brackets.pop())
        elif (
            token.kind == "mark"
            and token.text == ","
            and innermost is not None
            and innermost[0].kind == "function"
        ):
            open_brackets[-1] = (innermost[0], innermost[1] + 1)
            expects_operand = True
        elif token.kind == "end" and innermost is None:
            return
        elif token.text == "(" and tokens[i - 1].kind == "column":
            raise _syntax_error(
                text,
                tokens[i - 1].position,
                f"{tokens[i - 1].text!r} called as a function",
                f"one of {', '.join(FUNCTIONS)}",
            )
        else:
            closing = (
                ""
                if innermost is None
                else " or ')'"
                if innermost[0].kind != "function"
                else ", ',' or ')'"
            )
            raise _syntax_error(
                text,
                token.position,
                _display_token(token),
                f"an operator (+ - * / **){closing or ' or the end'}",
            )


def _check_arguments(text: str, opener: _Token, argument_count: int) -> None:
    if opener.kind == "function":
        min_count, max_count = FUNCTIONS[opener.text]
        if not min_count <= argument_count <= max_count:
            expected = f"{min_count} argument{'s' if min_count > 1 else ''}" + (
                " or more" if max_count > min_count else ""
            )
            raise _syntax_error(
                text, opener.position, f"{opener.text} of {argument_count}", expected
            )


def _python_text(text: str, token: _Token) -> str:
    if token.kind != "number":
        return token.text
    number = float(token.text)
    if isinf(number):
        raise _syntax_error(text, token.position, token.text, "a number that fits float64")
    return repr(number)


def _instructions(node: ast.AST, columns: list[str]) -> Iterator[Instruction]:
    """The postfix program of a tree; anything but arithmetic has no place in it."""
    if isinstance(node, ast.Constant) and type(node.value) is float:
        yield Instruction(operation="number", number=node.value)
    elif isinstance(node, ast.Name):
        yield Instruction(operation="column", column=columns[int(node.id[1:])])
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        yield from _instructions(node.left, columns)
        yield from _instructions(node.right, columns)
        yield Instruction(operation=_BINARY[type(node.op)], arity=2)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        yield from _instructions(node.operand, columns)
        if isinstance(node.op, ast.USub):
            yield Instruction(operation="negative", arity=1)
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in FUNCTIONS
        and not node.keywords
    ):
        for argument in node.args:
            yield from _instructions(argument, columns)
        yield Instruction(operation=node.func.id, arity=len(node.args))
    else:
        raise Internal(
            f"an expression became {type(node).__name__}, which is no arithmetic; its text "
            "passed the checks before"
        )


def _display_token(token: _Token) -> str:
    return "the end" if token.kind == "end" else repr(token.text)


def _syntax_error(text: str, position: int, found: str, expected: str) -> InvalidRequest:
    return InvalidRequest(
        f"expression {text!r}, character {position + 1}: found {found}, expected {expected}"
    )
