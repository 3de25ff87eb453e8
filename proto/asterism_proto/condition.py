"""Conditions: what rows a draw is from, as ``price > 3 and brand in ("a", "b")``; read into a tree of a fixed vocabulary.

    condition  = and-ed tests, joined by "or"; "not" before a test or a bracket
    test       = operand comparison operand         == (or =) != (or <>) < <= > >=, one side a column
               | column [not] in ( literal, ... )
               | column [not] between literal and literal       both ends belong to it
               | column is [not] null
    operand    = column | literal
    column     = name | `name`, then [number] for one value of a vector
    literal    = number | 'text' | "text" | true | false

``id``, ``weight`` and ``type`` are a row's own, ``src`` and ``dst`` the ids of an edge's ends, and ``src.price`` is a column of an end. A name
between backticks is a feature, whatever else it might be; words may be in capitals. Nothing is ever compiled or run. Trees travel as their canonical
text (`Condition.canonical`): one grammar checks what came, and equal conditions are equal texts, under which results are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isinf

from asterism_proto.errors import InvalidRequest, Place

MAX_LENGTH = 10_000
"""Characters of a condition."""
MAX_TOKENS = 1000
"""Bounds the work of evaluating it."""
MAX_DEPTH = 50
"""Of brackets in one another."""

MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
COMPARISONS = tuple(MIRRORED)
_WORDS = frozenset({"and", "or", "not", "in", "between", "is", "null", "true", "false"})

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)|(?P<number>[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)"
    r"|`(?P<quoted>[^`]*)`|'(?P<single>(?:[^'\\]|\\['\\])*)'|\"(?P<double>(?:[^\"\\]|\\[\"\\])*)\"|(?P<comparison>==|!=|<>|<=|>=|<|>|=)|(?P<mark>[(),\[\]])",
    re.ASCII,
)
_AN_OPERAND = "a column, a number, a text, true or false"
_A_TEST = "a test (as price > 3), 'not' or '('"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What a condition reads of a row."""

    name: str
    of: str = ""
    """Whose: "" is the row's own, ``src`` and ``dst`` are the ends of an edge."""
    element: int | None = None
    """The place of one value of a vector."""
    quoted: bool = False
    """Between backticks: a feature."""
    at: int = field(default=0, compare=False)
    """Its place in the text."""

    def __str__(self) -> str:
        plain = not self.quoted and _plain(self.name)
        name = self.name if plain else f"`{self.name}`"
        return f"{self.of}{'.' if self.of else ''}{name}" + ("" if self.element is None else f"[{self.element}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A value that is written down."""

    value: bool | int | float | str

    def __str__(self) -> str:
        if isinstance(self.value, str):
            return "'" + self.value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return repr(self.value).lower()


Operand = Column | Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One test of a row."""

    word: str
    """A comparison, ``in``, ``between`` or ``null``."""
    left: Column
    right: tuple[Operand, ...] = ()
    """What it is compared with: one operand, the values of a list, both ends of a range, nothing."""

    def __str__(self) -> str:
        match self.word:
            case "in":
                return f"{self.left} in ({', '.join(map(str, self.right))})"
            case "between":
                return f"{self.left} between {self.right[0]} and {self.right[1]}"
            case "null":
                return f"{self.left} is null"
            case _:
                return f"{self.left} {self.word} {self.right[0]}"

    @property
    def columns(self) -> tuple[Column, ...]:
        """What it reads."""
        return (self.left, *(operand for operand in self.right if isinstance(operand, Column)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """Tests together."""

    word: str
    """``and``, ``or``, or ``not`` (of one)."""
    of: tuple[Tree, ...]

    def __str__(self) -> str:
        if self.word == "not":
            return f"not ({self.of[0]})" if isinstance(self.of[0], Combined) else f"not {self.of[0]}"
        inner = ("and", "or") if self.word == "and" else ("or",)
        return f" {self.word} ".join(f"({each})" if isinstance(each, Combined) and each.word in inner else str(each) for each in self.of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Always:
    """What is so for every row alike."""

    holds: bool

    def __str__(self) -> str:
        return "true" if self.holds else "false"


Tree = Term | Combined | Always


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What a text means."""

    text: str
    tree: Tree

    @property
    def canonical(self) -> str:
        """The same, as it is always written."""
        return str(self.tree)


def terms(tree: Tree) -> Iterator[Term]:
    """Every test of a tree, from left to right."""
    if isinstance(tree, Term):
        yield tree
    elif isinstance(tree, Combined):
        for each in tree.of:
            yield from terms(each)


def combined(word: str, of: Sequence[Tree]) -> Tree:
    """Trees together, where what is always or never so is folded in."""
    if word == "not":
        inner = of[0]
        if isinstance(inner, Combined) and inner.word == "not":
            return inner.of[0]
        return Always(holds=not inner.holds) if isinstance(inner, Always) else Combined(word="not", of=(inner,))
    decides = word == "or"
    if any(isinstance(each, Always) and each.holds == decides for each in of):
        return Always(holds=decides)
    left = tuple(each for each in of if not isinstance(each, Always))
    return left[0] if len(left) == 1 else Combined(word=word, of=left) if left else Always(holds=not decides)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    """``number``, ``name``, ``word``, ``text``, ``comparison``, ``mark``, ``end``."""
    text: str
    at: int
    quoted: bool = False

    @property
    def shown(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


@lru_cache(maxsize=1024)
def parse(text: str) -> Condition:
    """Read a condition.

    Raises
    ------
    InvalidRequest
        Where it is none; the message has the place (characters from 1), what is there and what was expected.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_LENGTH:
        raise InvalidRequest(f'condition {text!r:.80}: expected a text of 1 to {MAX_LENGTH} characters, as "price > 3"')
    tokens = list(_tokens(text))
    if len(tokens) > MAX_TOKENS:
        raise InvalidRequest(f"condition {text!r:.80}: more than {MAX_TOKENS - 1} names, values and signs")
    reader = _Reader(text, tokens)
    found = Condition(text=text, tree=reader.whole())
    if len(found.canonical) > MAX_LENGTH:
        raise InvalidRequest(f"condition {text!r:.80}: {len(found.canonical)} characters as it is always written; expected {MAX_LENGTH} at most")
    return found


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise wrong(text, at, repr(text[at]), f"{_AN_OPERAND}, a comparison, or one of ( ) , [ ]")
        kind, word = str(found.lastgroup), found[str(found.lastgroup)]
        after = text[found.end() : found.end() + 1]
        if kind == "number" and (after in ("_", ".", "'", '"') or (after.isascii() and after.isalnum())) and after:
            raise wrong(text, found.end(), repr(after), "a space or a sign behind a number")
        if kind == "quoted" and not word:
            raise wrong(text, at, "'``'", "a column's name between backticks")
        match kind:
            case "space":
                pass
            case "quoted":
                yield _Token("name", word, at, quoted=True)
            case "single" | "double":
                yield _Token("text", re.sub(r"\\(.)", r"\1", word), at)
            case "name" if word.lower() in _WORDS:
                yield _Token("word", word.lower(), at)
            case "comparison":
                yield _Token(kind, {"=": "==", "<>": "!="}.get(word, word), at)
            case _:
                yield _Token(kind, word, at)
        at = found.end()
    yield _Token("end", "", len(text))


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text, self._tokens, self._next = text, tokens, 0

    def whole(self) -> Tree:
        tree = self.condition(0)
        if self._tokens[self._next].kind != "end":
            raise self._unexpected("'and', 'or' or the end")
        return tree

    def condition(self, depth: int) -> Tree:
        return self._joined("or", lambda: self._joined("and", lambda: self._one(depth)))

    def _joined(self, word: str, read: Callable[[], Tree]) -> Tree:
        found = [read()]
        while self._took("word", word):
            found.append(read())
        return combined(word, found)

    def _one(self, depth: int) -> Tree:
        token = self._tokens[self._next]
        if depth > MAX_DEPTH:
            raise wrong(self._text, token.at, token.shown, f"at most {MAX_DEPTH} brackets in one another")
        negated = False
        while self._took("word", "not"):
            negated = not negated
        found = self._bare(depth)
        return combined("not", [found]) if negated else found

    def _bare(self, depth: int) -> Tree:
        token = self._tokens[self._next]
        if self._took("mark", "("):
            inner = self.condition(depth + 1)
            self._must(")", "'and', 'or' or ')'")
            return inner
        if token.kind == "word" and token.text in ("true", "false") and self._tokens[self._next + 1].kind != "comparison":
            self._next += 1
            return Always(holds=token.text == "true")
        return self._test()

    def _test(self) -> Tree:
        start = self._tokens[self._next]
        left = self._operand(_A_TEST)
        sign = self._tokens[self._next]
        if sign.kind == "comparison":
            self._next += 1
            right = self._operand(_AN_OPERAND)
            if self._tokens[self._next].kind == "comparison":
                raise self._unexpected("'and' between two comparisons")
            if isinstance(left, Column):
                return Term(word=sign.text, left=left, right=(right,))
            if isinstance(right, Column):
                return Term(word=MIRRORED[sign.text], left=right, right=(left,))
            raise wrong(self._text, start.at, f"{left} {sign.text} {right}", "a column on one side")
        if not isinstance(left, Column):
            raise self._unexpected(f"a comparison ({' '.join(COMPARISONS)})")
        return self._words(left)

    def _words(self, left: Column) -> Tree:
        """What is said of a column in words."""
        of_null = self._took("word", "is")
        negated = self._took("word", "not")
        expected = "'null'" if of_null else "'in' or 'between'"
        if of_null and self._took("word", "null"):
            found = Term(word="null", left=left)
        elif not of_null and self._took("word", "in"):
            found = Term(word="in", left=left, right=tuple(self._values()))
        elif not of_null and self._took("word", "between"):
            low = self._literal()
            self._must("and", "'and'", "word")
            found = Term(word="between", left=left, right=(low, self._literal()))
        elif negated or of_null:
            raise self._unexpected(expected if negated else "'null' or 'not null'")
        else:
            raise self._unexpected(f"a comparison ({' '.join(COMPARISONS)}), 'in', 'between' or 'is'")
        return combined("not", [found]) if negated else found

    def _values(self) -> Iterator[Literal]:
        self._must("(", "'('")
        yield self._literal()
        while self._took("mark", ","):
            yield self._literal()
        self._must(")", "',' or ')'")

    def _literal(self) -> Literal:
        found = self._operand("a number, a text, true or false")
        if isinstance(found, Column):
            raise wrong(self._text, found.at, str(found), "a number, a text, true or false")
        return found

    def _operand(self, expected: str) -> Operand:
        token = self._tokens[self._next]
        if token.kind == "name":
            self._next += 1
            return self._column(token)
        if token.kind == "number":
            self._next += 1
            return Literal(value=_number(self._text, token))
        if token.kind == "text":
            self._next += 1
            return Literal(value=token.text)
        if token.kind == "word" and token.text in ("true", "false"):
            self._next += 1
            return Literal(value=token.text == "true")
        raise self._unexpected(expected)

    def _column(self, token: _Token) -> Column:
        of, name, quoted = "", token.text, token.quoted
        end, dot, rest = token.text.partition(".")
        if not quoted and end in ("src", "dst") and dot:
            of, name = end, rest
            if not rest:  # src.`name`
                behind = self._tokens[self._next]
                if not behind.quoted or behind.at != token.at + len(token.text):
                    raise self._unexpected("a column's name")
                self._next += 1
                name, quoted = behind.text, True
        if self._took("mark", "["):
            place = self._tokens[self._next]
            if place.kind != "number" or not place.text.isdigit() or len(place.text) > 9:
                raise self._unexpected("the place of a value, from 0")
            self._next += 1
            self._must("]", "']'")
            return Column(name=name, of=of, element=int(place.text), quoted=quoted, at=token.at)
        return Column(name=name, of=of, quoted=quoted, at=token.at)

    def _took(self, kind: str, text: str) -> bool:
        token = self._tokens[self._next]
        if token.kind == kind and token.text == text and not token.quoted:
            self._next += 1
            return True
        return False

    def _must(self, text: str, expected: str, kind: str = "mark") -> None:
        if not self._took(kind, text):
            raise self._unexpected(expected)

    def _unexpected(self, expected: str) -> InvalidRequest:
        token = self._tokens[self._next]
        return wrong(self._text, token.at, token.shown, expected)


def _number(text: str, token: _Token) -> int | float:
    if token.text.lstrip("+-").isdigit():
        whole = int(token.text)
        if not -(1 << 63) <= whole < 1 << 64:
            raise wrong(text, token.at, token.text, "a whole number of 64 bits")
        return whole
    number = float(token.text)
    if isinf(number):
        raise wrong(text, token.at, token.text, "a number that fits float64")
    return number


def _plain(name: str) -> bool:
    found = _TOKEN.fullmatch(name)
    return found is not None and found.lastgroup == "name" and name.lower() not in _WORDS


def wrong(text: str, at: int, found: str, expected: str) -> InvalidRequest:
    """The error of what stands at a place of a condition."""
    place = Place(line=1, column=at + 1, expected=(expected,), incomplete=at >= len(text))
    return InvalidRequest(f"condition {text!r}, character {at + 1}: found {found}, expected {expected}", place)
