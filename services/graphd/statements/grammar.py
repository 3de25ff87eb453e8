"""Grammars, and what they say of a text that does not follow them. A quiet room; lark's one door."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

from asterism_proto.errors import AsterismError, InvalidRequest
from graphd.statements.faults import wrong

MAX_LENGTH = 1 << 16
"""Characters of a text."""
MAX_REMEMBERED = 1 << 12
"""Characters of a text whose records are kept for when it comes again."""
_OPEN = re.compile(r"\"(?:[^\"\\]|\\.)*\\?\Z|'(?:[^'\\]|\\.)*\\?\Z|`[^`\n]*\Z|/\*(?:[^*]|\*(?!/))*\Z", re.DOTALL)
"""What was begun and not closed: a text, a name, a comment."""


class Grammar:
    """A grammar whose texts are read into records while they are parsed.

    Parameters
    ----------
    file : str
        Of this package.
    reader : Transformer
        Makes records of what was parsed.
    words : mapping
        How terminals are called in messages, where not by their own words.
    """

    def __init__(self, file: str, reader: Transformer[Any, Any], words: Mapping[str, str]) -> None:
        source = files(__package__).joinpath(file).read_text()
        self._parser = Lark(source, parser="lalr", lexer="contextual", transformer=reader, maybe_placeholders=False)
        self._words = dict(words)
        for terminal in self._parser.terminals:
            own = terminal.pattern.value if terminal.pattern.type == "str" else terminal.name.lstrip("_")
            self._words.setdefault(terminal.name, own.upper() if own.isalpha() else repr(own))

        self._again = lru_cache(maxsize=512)(self._read)

    def read(self, text: str) -> Any:
        """The records of a text; the same ones for the same text, as long as they are remembered.

        Raises
        ------
        InvalidRequest
            Where it is none: with its line and column, and what was expected there.
        """
        if len(text) > MAX_LENGTH:
            raise InvalidRequest(f"a statement of {len(text)} characters; expected {MAX_LENGTH} at most")
        # Of long ones, which hold their values, few come again; and what is kept has a bound.
        return self._again(text) if len(text) <= MAX_REMEMBERED else self._read(text)

    def _read(self, text: str) -> Any:
        try:
            return self._parser.parse(text)
        except AsterismError as error:
            raise _located(text, error) from None
        except UnexpectedToken as error:
            token: Any = error.token
            if token.type == "$END" or error.token is None:
                raise wrong(text, len(text), "the end", self._called(error.accepts or error.expected), incomplete=True) from None
            raise wrong(text, token.start_pos, f"{str(token)!r:.80}", self._called(error.accepts or error.expected)) from None
        except UnexpectedCharacters as error:
            at = error.pos_in_stream or 0
            cut = _OPEN.match(text, at)
            if cut is not None:
                raise wrong(text, len(text), f"the end inside of {_begun(cut[0])}", [f"the closing {_closing(cut[0])}"], incomplete=True) from None
            raise wrong(text, at, repr(text[at]), self._called(error.allowed or ())) from None
        except UnexpectedEOF as error:
            raise wrong(text, len(text), "the end", self._called(error.expected), incomplete=True) from None

    def _called(self, terminals: Iterable[str]) -> list[str]:
        """Terminals as messages call them: names and values first, then words, then signs."""
        said = {self._words.get(name, name) for name in terminals if name != "$END"}
        if "$END" in terminals:
            said.add("the end")
        return sorted(said, key=lambda word: (not word.startswith("a"), not word.isalpha(), word))


class Unplaced(InvalidRequest):
    """What is wrong at a place, before the text is known around it."""

    def __init__(self, at: int, found: str, expected: Iterable[str] = ()) -> None:
        super().__init__(found)
        self.at, self.found, self.expected = at, found, tuple(expected)


def _located(text: str, error: AsterismError) -> AsterismError:
    return wrong(text, error.at, error.found, error.expected) if isinstance(error, Unplaced) else error


def _begun(cut: str) -> str:
    return {"/": "a comment", "`": "a name between backticks"}.get(cut[0], "a text")


def _closing(cut: str) -> str:
    return "*/" if cut[0] == "/" else cut[0]


def unescaped(raw: str) -> str:
    """A text as it is meant, of how it is written between its marks."""
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t", "r": "\r"}.get(found[1], found[1]), raw[1:-1], flags=re.DOTALL)


def number(token: Token) -> int | float:
    """A number as it is written; Unplaced where it fits no type."""
    try:
        value = int(token)
    except ValueError:
        found = float(token)
        if found in (float("inf"), float("-inf")):
            raise Unplaced(token.start_pos or 0, str(token), ["a number that fits float64"]) from None
        return found
    if not -(1 << 63) <= value < 1 << 64:
        raise Unplaced(token.start_pos or 0, f"{str(token)[:40]}", ["a whole number of 64 bits"])
    return value
