"""Errors of statements: the line, a caret under the position, and the expected tokens.

A pure module.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar
from unicodedata import east_asian_width

from asterism_proto.errors import AsterismError, InvalidRequest, SourceLocation

_LONGEST_LINE = 200
"""Maximum characters of the line in a message."""
_MAX_WORDS = 12
"""Maximum expected tokens in a message; `SourceLocation.expected` has all."""
Error = TypeVar("Error", bound=AsterismError)


def syntax_error(
    text: str, position: int, found: str, expected: Iterable[str], *, incomplete: bool = False
) -> InvalidRequest:
    """Return the error for the token at a position of a statement."""
    alternatives = tuple(expected)
    listing = ", ".join(alternatives[:_MAX_WORDS]) + (
        ", ..." if len(alternatives) > _MAX_WORDS else ""
    )
    message = f"found {found}, expected {listing}" if alternatives else found
    return located_error(
        InvalidRequest, text, position, message, alternatives, incomplete=incomplete
    )


def _blank(char: str) -> str:
    """Return blanks as wide as a character at a terminal."""
    return "\t" if char == "\t" else "  " if east_asian_width(char) in "WF" else " "


def located_error(
    error_type: type[Error],
    text: str,
    position: int,
    description: str,
    expected: Iterable[str] = (),
    *,
    incomplete: bool = False,
) -> Error:
    """Return an error of a class with a position in a statement."""
    position = min(max(position, 0), len(text))
    line = text.count("\n", 0, position) + 1
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line_text = text[start : end if end >= 0 else len(text)]
    column = position - start
    window_start = max(0, column - _LONGEST_LINE // 2)
    excerpt = line_text[window_start : window_start + _LONGEST_LINE]
    caret = "".join(map(_blank, line_text[window_start:column])) + "^"
    message = f"line {line}, column {column + 1}: {description}\n  {excerpt}\n  {caret}"
    return error_type(
        message,
        SourceLocation(
            line=line, column=column + 1, expected=tuple(expected), incomplete=incomplete
        ),
    )
