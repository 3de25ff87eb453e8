"""Text as statements and words: where one ends, and what each sign is part of. What it means is the service's to say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from asterism_proto.errors import InvalidRequest

_WORDS = (
    "AND AS ASC BETWEEN BIDIRECT BY CREATE DESC DESCRIBE DISTINCT DROP EDGE EDGES EXISTS EXPLAIN FALSE FETCH FROM GO GRAPH HOSTS IF IN INDEX IS JOB "
    "JOBS LABEL LAYER LAYERS LIKE LIMIT LIST MISSING NEGATIVES NEIGHBORS NOT NULL ON OR ORDER OVER P PADDED PARTS PINS PROFILE PROP Q RECOVER REJECT "
    "REPLACEMENT RESTART REVERSELY SAMPLE SEED SHOW SPACE SPACES SQRT SQUARES STATS STEP STEPS STOP STORAGE SUBMIT SUM TAG TAGS THEN TIME TO TOP "
    "TRUE UNIFORM UNIQUE USE VERSION VERSIONS VERTICES WALK WALKS WEIGHT WEIGHTED WEIGHTS WHERE WITH WITHOUT YIELD ZERO"
)
KEYWORDS = frozenset(_WORDS.split())
"""The words of statements, as the service's grammar has them."""

MAX_LENGTH = 1 << 20
"""Characters of what is read before a statement ends: the service takes fewer."""
_PIECE = re.compile(
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
class Piece:
    """A part of a text that means one thing."""

    kind: str
    """blank, comment, text, quoted, open (begun and not closed), parameter, number, word, keyword, end or sign."""
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of a text."""

    text: str
    """Without what ends it, from its first word on."""
    line: int
    """Of the text, from 1: where it begins."""


def pieces(text: str) -> Iterator[Piece]:
    """Every sign of a text, as part of something."""
    for found in _PIECE.finditer(text):
        kind = found.lastgroup or "sign"
        if kind == "word" and found[0].upper() in KEYWORDS:
            kind = "keyword"
        yield Piece(kind=kind, start=found.start(), end=found.end())


def split(text: str) -> tuple[list[tuple[int, int]], int]:
    """Where the statements of a text are that are ended, without blanks and comments around them, and where what is left begins."""
    ended: list[tuple[int, int]] = []
    begun: int | None = None
    last = rest = 0
    for piece in pieces(text):
        if piece.kind == "end":
            if begun is not None:
                ended.append((begun, last))
            begun, rest = None, piece.end
        elif piece.kind not in ("blank", "comment"):
            begun = piece.start if begun is None else begun
            last = piece.end
    return ended, rest


def is_blank(text: str) -> bool:
    """Whether a text says nothing."""
    return all(piece.kind in ("blank", "comment") for piece in pieces(text))


class Splitter:
    """Statements and colon commands of lines, as they come."""

    def __init__(self) -> None:
        self._text = ""
        self._line = 1
        """Where what is kept begins."""

    def feed(self, line: str) -> list[Statement]:
        """What a line, with the sign that ends it, ends."""
        if line.lstrip().startswith(":") and is_blank(self._text):
            found = [Statement(text=line.strip(), line=self._line + self._text.count("\n"))]
            self._keep(self._text + line, len(self._text) + len(line))
            return found
        text = self._text + line
        if len(text) > MAX_LENGTH:
            raise InvalidRequest(f"line {self._line}: a statement of more than {MAX_LENGTH} characters; end each with ;")
        ended, rest = split(text)
        found = [self._statement(text, start, end) for start, end in ended]
        self._keep(text, rest)
        return found

    def end(self) -> list[Statement]:
        """What is left: a last statement may stand without what ends it."""
        text = self._text + ";"
        ended, _ = split(text)
        if not ended and not is_blank(self._text):
            ended = [(len(text) - len(text.lstrip()), len(self._text))]  # begun and not closed
        return [self._statement(text, start, end) for start, end in ended]

    def _statement(self, text: str, start: int, end: int) -> Statement:
        return Statement(text=text[start:end], line=self._line + text.count("\n", 0, start))

    def _keep(self, text: str, rest: int) -> None:
        self._line += text.count("\n", 0, rest)
        self._text = text[rest:]
