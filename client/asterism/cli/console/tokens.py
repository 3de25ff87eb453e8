"""Split text into tokens and statements.

Only their boundaries are found here. The service parses their meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from asterism_proto.errors import InvalidRequest

_KEYWORD_LIST = (
    "AND API AS ASC BETWEEN BIDIRECT BY CREATE DESC DESCRIBE DISTINCT DROP EDGE EDGES EXCLUDE "
    "EXISTS EXPLAIN FALSE FETCH FROM GO GRANT GRAPH HOSTS IF IN INDEX IS JOB JOBS KEYS LABEL "
    "LAYER LAYERS LIKE LIMIT LIST MISSING NEGATIVES NEIGHBORS NOT NULL ON OR ORDER OVER P PADDED "
    "PARTS PINS PROFILE PROP Q RECOVER REJECT REPLACEMENT RESTART REVERSE REVERSELY REVOKE ROLE "
    "ROLES SAMPLE SEED SHOW SPACE SPACES SQRT SQUARES STATS STEP STEPS STOP STORAGE SUBMIT SUM "
    "TAG TAGS THEN TIME TO TOP TRUE UNIFORM UNIQUE USE VERSION VERSIONS VERTICES WALK WALKS "
    "WEIGHT WEIGHTED WEIGHTS WHERE WITH WITHOUT YIELD ZERO"
)
KEYWORDS = frozenset(_KEYWORD_LIST.split())
"""Keywords of the grammar of the service."""

MAX_LENGTH = 1 << 20
"""Maximum characters of a statement; the service accepts fewer."""
_TOKEN = re.compile(
    r"""
    (?P<blank>\s+)
    | (?P<comment>\#[^\n]* | //[^\n]* | /\*(?:[^*]|\*(?!/))*\*/)
    | (?P<text>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*')
    | (?P<quoted>`[^`\n]+`)
    | (?P<open>"(?:[^"\\]|\\.)*\\?\Z | '(?:[^'\\]|\\.)*\\?\Z | /\*(?:[^*]|\*(?!/))*\*?\Z)
    | (?P<parameter>\$[A-Za-z_]\w* | \$\$ | \$\^ | \$-)
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<word>[A-Za-z_]\w*(?::[A-Za-z_]\w*)*)
    | (?P<end>;)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token of a text."""

    kind: str
    """Kind of the token.

    One of blank, comment, text, quoted, open (an unclosed text or comment), parameter, number,
    word, keyword, end or sign.
    """
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptStatement:
    """One statement of a text."""

    text: str
    """Text from its first word on, without the semicolon."""
    line: int
    """Line of the text where it starts, from 1."""
    column: int = 1
    """Column of that line where it starts, from 1."""


def tokenize(text: str) -> Iterator[Token]:
    """Yield the tokens of a text; every character belongs to a token."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "sign"
        if kind == "word" and match[0].upper() in KEYWORDS:
            kind = "keyword"
        yield Token(kind=kind, start=match.start(), end=match.end())


def statement_spans(text: str) -> tuple[list[tuple[int, int]], int]:
    """Return the spans of the complete statements, and the start of the remaining text.

    A span excludes blanks and comments around its statement.
    """
    spans: list[tuple[int, int]] = []
    start: int | None = None
    end = rest = 0
    for token in tokenize(text):
        if token.kind == "end":
            if start is not None:
                spans.append((start, end))
            start, rest = None, token.end
        elif token.kind not in ("blank", "comment"):
            start = token.start if start is None else start
            end = token.end
    return spans, rest


def is_blank(text: str) -> bool:
    """Return whether a text contains only blanks and comments."""
    return all(token.kind in ("blank", "comment") for token in tokenize(text))


class StatementSplitter:
    """Splits lines into statements and colon commands, as they arrive."""

    def __init__(self) -> None:
        self._text = ""
        self._line = 1
        """Line where the pending text starts."""
        self._column = 1
        """Column where it starts."""

    def feed(self, line: str) -> list[ScriptStatement]:
        """Return the statements that a line completes; the line includes its line ending."""
        if line.lstrip().startswith(":") and is_blank(self._text):
            statements = [
                ScriptStatement(text=line.strip(), line=self._line + self._text.count("\n"))
            ]
            self._discard_before(self._text + line, len(self._text) + len(line))
            return statements
        text = self._text + line
        if len(text) > MAX_LENGTH:
            raise InvalidRequest(
                f"line {self._line}: a statement of more than {MAX_LENGTH} characters; end "
                "each with ;"
            )
        spans, rest = statement_spans(text)
        statements = [self._statement(text, start, end) for start, end in spans]
        self._discard_before(text, rest)
        return statements

    def finish(self) -> list[ScriptStatement]:
        """Return the last statement, which may lack its semicolon."""
        text = self._text + ";"
        spans, _ = statement_spans(text)
        if not spans and not is_blank(self._text):
            # The text ends within a string or a comment.
            spans = [(len(text) - len(text.lstrip()), len(self._text))]
        return [self._statement(text, start, end) for start, end in spans]

    def _statement(self, text: str, start: int, end: int) -> ScriptStatement:
        column = start - (text.rfind("\n", 0, start) + 1) + 1
        if "\n" not in text[:start]:
            column += self._column - 1
        return ScriptStatement(
            text=text[start:end], line=self._line + text.count("\n", 0, start), column=column
        )

    def _discard_before(self, text: str, rest: int) -> None:
        self._line += text.count("\n", 0, rest)
        line_start = text.rfind("\n", 0, rest) + 1
        self._column = rest - line_start + 1 + (self._column - 1 if line_start == 0 else 0)
        self._text = text[rest:]
