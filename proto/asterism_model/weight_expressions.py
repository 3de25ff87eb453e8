"""Weight expressions: float64 arithmetic over the columns of a type.

Expressions are parsed when the schema is created.

    expression = sum of products of powers, as in Python: + - * / ** and parentheses; ** binds
                 tighter than a sign on its left
    operand    = number | column | `column` | function ( expression, ... ) | ( expression )
    function   = min, max (two or more), pow, clip (value, low, high), log, log1p, exp, sqrt, abs

Backticks quote a column if its name contains ``-`` or equals the name of a function.

`parse` returns a postfix program over a fixed vocabulary of operations. It first checks that the
text consists of these tokens in a valid order. It then replaces the column names and passes the
text to `ast.parse`, so that precedence is exactly Python's. Only sums, products, powers, signs and
calls are accepted from the resulting tree. No text is ever compiled or executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import isinf

from asterism_proto.errors import Internal, InvalidRequest

MAX_LENGTH = 1000
"""Most characters of an expression."""
MAX_TOKENS = 200
"""Most tokens of an expression. Bounds the depth of the tree and the cost of evaluation."""

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
"""Smallest and largest number of arguments of each function."""

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
    """One step of a postfix program.

    It pushes a number or a column onto the stack, or replaces the top ``arity`` values by their
    result.
    """

    operation: str
    """``number``, ``column``, ``+``, ``-``, ``*``, ``/``, ``negative``, or a function."""
    number: float = 0.0
    """Value of a ``number``."""
    column: str = ""
    """Name of a ``column``."""
    arity: int = 0
    """Number of values popped from the stack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A parsed weight expression."""

    text: str
    instructions: tuple[Instruction, ...]
    """Postfix program, in the order of evaluation."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Distinct columns that the expression reads, in order of first use."""
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
    """Parse an expression.

    Parameters
    ----------
    text : str
        The expression, 1 to `MAX_LENGTH` characters.

    Returns
    -------
    Expression

    Raises
    ------
    InvalidRequest
        If the text is not an expression. The message has the position (characters, from 1), the
        text found there and the text expected.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_LENGTH:
        raise InvalidRequest(
            f"expression {text!r:.80}: expected a text of 1 to {MAX_LENGTH} characters, as "
            '"pow(clicks, 0.75)"'
        )
    tokens = list(_tokens(text))
    if len(tokens) > MAX_TOKENS:
        raise InvalidRequest(
            f"expression {text!r:.80}: expected at most {MAX_TOKENS - 1} numbers, names and "
            "operators"
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
                text, match.end(), repr(after), "a space or an operator after a number"
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
    """Check that operands and operators alternate, and that brackets and arguments match.

    Raises
    ------
    InvalidRequest
        At the first token that is out of order.
    """
    expects_operand = True
    open_brackets: list[tuple[_Token, int]] = []
    """For each open bracket: its function (or the bracket itself) and its arguments so far."""
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
    """Yield the postfix program of a tree; raise Internal for a node that is not arithmetic."""
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
            f"an expression was parsed to {type(node).__name__}, which is not arithmetic"
        )


def _display_token(token: _Token) -> str:
    return "the end" if token.kind == "end" else repr(token.text)


def _syntax_error(text: str, position: int, found: str, expected: str) -> InvalidRequest:
    return InvalidRequest(
        f"expression {text!r}, character {position + 1}: found {found}, expected {expected}"
    )
