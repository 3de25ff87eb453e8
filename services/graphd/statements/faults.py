"""What is wrong with a statement, with its line, a caret under the place, and what was expected. A quiet room."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from asterism_proto.errors import AsterismError, InvalidRequest, Place

_LONGEST_LINE = 200
"""Characters of the line that is shown."""
_MOST_WORDS = 12
"""Of what was expected, in the message; `Place.expected` has all."""
Error = TypeVar("Error", bound=AsterismError)


def wrong(text: str, at: int, found: str, expected: Iterable[str], *, incomplete: bool = False) -> InvalidRequest:
    """The error of what stands at a place of a statement."""
    words = tuple(expected)
    shown = ", ".join(words[:_MOST_WORDS]) + (", ..." if len(words) > _MOST_WORDS else "")
    said = f"found {found}, expected {shown}" if words else found
    return placed(InvalidRequest, text, at, said, words, incomplete=incomplete)


def placed(kind: type[Error], text: str, at: int, said: str, expected: Iterable[str] = (), *, incomplete: bool = False) -> Error:
    """An error of a kind, about a place of a statement."""
    at = min(max(at, 0), len(text))
    line = text.count("\n", 0, at) + 1
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    whole = text[start : end if end >= 0 else len(text)]
    column = at - start
    left = max(0, column - _LONGEST_LINE // 2)
    shown = whole[left : left + _LONGEST_LINE]
    caret = "".join("\t" if sign == "\t" else " " for sign in whole[left:column]) + "^"
    message = f"line {line}, column {column + 1}: {said}\n  {shown}\n  {caret}"
    return kind(message, Place(line=line, column=column + 1, expected=tuple(expected), incomplete=incomplete))
