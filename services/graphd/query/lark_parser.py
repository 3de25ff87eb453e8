"""Grammars and their error messages. A pure module, the only one that runs lark's parser."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Transformer
from lark.exceptions import (
    UnexpectedCharacters,
    UnexpectedEOF,
    UnexpectedInput,
    UnexpectedToken,
)

from asterism_proto.errors import AsterismError, InvalidRequest
from graphd.query.errors import syntax_error

MAX_LENGTH = 1 << 16
"""Maximum characters of a text."""
MAX_CACHED_LENGTH = 1 << 12
"""Maximum characters of a text for which the parsed records are cached."""
_OPEN = re.compile(
    r"\"(?:[^\"\\]|\\.)*\\?\Z|'(?:[^'\\]|\\.)*\\?\Z|`[^`\n]*\Z|/\*(?:[^*]|\*(?!/))*\Z", re.DOTALL
)
"""Pattern of an unclosed text, name or comment."""
_KEYWORD = re.compile(r"[A-Za-z_]{2,}|v|e")
"""Pattern of keywords among the names of terminals; P and Q are too short to complete."""


class Grammar:
    """Grammar with a transformer that builds records during parsing.

    Parameters
    ----------
    file : str
        Grammar file in this package.
    transformer : Transformer
        Builds records from parsed rules.
    terminal_names : mapping
        Names of terminals in messages, if they differ from their pattern.
    """

    def __init__(
        self, file: str, transformer: Transformer[Any, Any], terminal_names: Mapping[str, str]
    ) -> None:
        source = files(__package__).joinpath(file).read_text()
        self._parser = Lark(
            source,
            parser="lalr",
            lexer="contextual",
            transformer=transformer,
            maybe_placeholders=False,
        )
        self._words = dict(terminal_names)
        for terminal in self._parser.terminals:
            default_name = (
                terminal.pattern.value
                if terminal.pattern.type == "str"
                else terminal.name.lstrip("_")
            )
            self._words.setdefault(
                terminal.name,
                default_name.upper() if default_name.isalpha() else repr(default_name),
            )

        self._parse_cached = lru_cache(maxsize=512)(self._parse)

    def parse(self, text: str) -> Any:
        """Return the records of a text; cached texts return the same records again.

        Raises
        ------
        InvalidRequest
            If the text does not match the grammar, with line, column and expected tokens.
        """
        if len(text) > MAX_LENGTH:
            raise InvalidRequest(
                f"a statement of {len(text)} characters: expected at most {MAX_LENGTH}"
            )
        # Long texts contain their values and rarely repeat. The limit also bounds the cache.
        return self._parse_cached(text) if len(text) <= MAX_CACHED_LENGTH else self._parse(text)

    def accepted(self, text: str) -> tuple[list[Token], set[str]]:
        """Return the tokens of a text, and the terminals that may follow; none if it is invalid."""
        if len(text) > MAX_LENGTH:
            return [], set()
        try:
            state = self._parser.parse_interactive(text)
            tokens = list(state.iter_parse())
            # lark does not annotate this method.
            return tokens, set(state.accepts())  # type: ignore[no-untyped-call]
        except (AsterismError, UnexpectedInput):
            return [], set()

    def keywords(self, terminals: Iterable[str]) -> list[str]:
        """Return the keywords among terminals, in alphabetical order."""
        labels = (self._words.get(name, "") for name in terminals)
        return sorted(label for label in labels if _KEYWORD.fullmatch(label))

    def _parse(self, text: str) -> Any:
        try:
            return self._parser.parse(text)
        except AsterismError as error:
            raise _located(text, error) from None
        except UnexpectedToken as error:
            token: Any = error.token
            if token.type == "$END" or error.token is None:
                raise syntax_error(
                    text,
                    len(text),
                    "the end",
                    self._terminal_names(error.accepts or error.expected),
                    incomplete=True,
                ) from None
            raise syntax_error(
                text,
                token.start_pos,
                f"{str(token)!r:.80}",
                self._terminal_names(error.accepts or error.expected),
            ) from None
        except UnexpectedCharacters as error:
            position = error.pos_in_stream or 0
            unclosed = _OPEN.match(text, position)
            if unclosed is not None:
                raise syntax_error(
                    text,
                    len(text),
                    f"the end inside {_begun(unclosed[0])}",
                    [f"the closing {_closing(unclosed[0])}"],
                    incomplete=True,
                ) from None
            raise syntax_error(
                text, position, repr(text[position]), self._terminal_names(error.allowed or ())
            ) from None
        except UnexpectedEOF as error:
            raise syntax_error(
                text, len(text), "the end", self._terminal_names(error.expected), incomplete=True
            ) from None

    def _terminal_names(self, terminals: Iterable[str]) -> list[str]:
        """Return names of terminals for messages: names and values, then words, then signs."""
        labels = {self._words.get(name, name) for name in terminals if name != "$END"}
        if "$END" in terminals:
            labels.add("the end")
        return sorted(labels, key=lambda word: (not word.startswith("a"), not word.isalpha(), word))


class UnlocatedError(InvalidRequest):
    """Error at a position, raised before the surrounding text is known."""

    def __init__(self, position: int, found: str, expected: Iterable[str] = ()) -> None:
        super().__init__(found)
        self.position, self.found, self.expected = position, found, tuple(expected)


def _located(text: str, error: AsterismError) -> AsterismError:
    return (
        syntax_error(text, error.position, error.found, error.expected)
        if isinstance(error, UnlocatedError)
        else error
    )


def _begun(unclosed: str) -> str:
    return {"/": "a comment", "`": "a name between backticks"}.get(unclosed[0], "a string")


def _closing(unclosed: str) -> str:
    return "*/" if unclosed[0] == "/" else unclosed[0]


def unescape(raw: str) -> str:
    """Return the text of a quoted literal."""
    return re.sub(
        r"\\(.)",
        lambda match: {"n": "\n", "t": "\t", "r": "\r"}.get(match[1], match[1]),
        raw[1:-1],
        flags=re.DOTALL,
    )


def parse_number(token: Token) -> int | float:
    """Return the value of a number; raise UnlocatedError if it fits no type."""
    try:
        value = int(token)
    except ValueError:
        real = float(token)
        if real in (float("inf"), float("-inf")):
            raise UnlocatedError(
                token.start_pos or 0, str(token), ["a number that fits float64"]
            ) from None
        return real
    if not -(1 << 63) <= value < 1 << 64:
        raise UnlocatedError(token.start_pos or 0, f"{str(token)[:40]}", ["a 64-bit integer"])
    return value
