"""Syntax of row filters such as ``price > 3 and brand in ("a", "b")``, and their parser.

    filter     = and-ed tests, joined by "or"; "not" before a test or a bracket
    test       = operand comparison operand         == (or =) != (or <>) < <= > >=, one side a
                                                    column
               | column [not] in ( literal, ... )                 ( ): no value, never true
               | column [not] between literal and literal       both bounds included
               | column is [not] null
    operand    = column | literal
    column     = name | `name`, then [number] for one value of a vector
    literal    = number | +inf | -inf | 'text' | "text" | true | false

``id``, ``weight`` and ``type`` belong to the row itself. ``src`` and ``dst`` are the ids of the
nodes at the ends of an edge, and ``src.price`` is a column of such a node. A name between backticks
is always a feature. Keywords are case-insensitive. No text is ever compiled or executed.

Messages carry a filter as its canonical text (`Filter.canonical`). The receiver parses it with the
same grammar, and equal filters have equal texts, which serve as cache keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf, isinf

from asterism_proto.errors import InvalidRequest, SourceLocation

MAX_LENGTH = 16_384
"""Most characters of a filter: those of `MAX_VALUES` numbers of any size, and a margin."""
MAX_TOKENS = 1000
"""Most tokens of a filter without commas. Bounds the cost of evaluation."""
MAX_VALUES = 500
"""Most values of a list that is a parameter of a filter."""
MAX_DEPTH = 50
"""Most nested brackets."""

MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
COMPARISONS = tuple(MIRRORED)
_KEYWORDS = frozenset({"and", "or", "not", "in", "between", "is", "null", "true", "false"})

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)"
    r"|(?P<number>[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[-+][iI][nN][fF])"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)"
    r"|`(?P<quoted>[^`]*)`"
    r"|'(?P<single>(?:[^'\\]|\\['\\])*)'"
    r"|\"(?P<double>(?:[^\"\\]|\\[\"\\])*)\""
    r"|(?P<comparison>==|!=|<>|<=|>=|<|>|=)"
    r"|(?P<mark>[(),\[\]])",
    re.ASCII,
)
_EXPECTED_OPERAND = "a column, a number, a string, true or false"
_EXPECTED_TEST = "a test (as price > 3), 'not' or '('"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOperand:
    """A column, or one value of a vector column, that a filter reads from a row."""

    name: str
    endpoint: str = ""
    """End of an edge that has the column, ``src`` or ``dst``; "" for the row itself."""
    element: int | None = None
    """Index of one value of a vector, from 0."""
    quoted: bool = False
    """True if the name is between backticks, which makes it a feature."""
    position: int = field(default=0, compare=False)
    """Offset in the text, in characters from 0."""

    def __str__(self) -> str:
        plain = not self.quoted and _is_plain_name(self.name)
        name = self.name if plain else f"`{self.name}`"
        return f"{self.endpoint}{'.' if self.endpoint else ''}{name}" + (
            "" if self.element is None else f"[{self.element}]"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A constant value in a filter."""

    value: bool | int | float | str

    def __str__(self) -> str:
        if isinstance(self.value, str):
            return "'" + self.value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        # With its sign, infinity cannot be taken for a column of that name.
        return f"{self.value:+}" if self.value == inf else repr(self.value).lower()


Operand = ColumnOperand | Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One test of a column."""

    operator: str
    """A comparison, ``in``, ``between`` or ``null``."""
    left: ColumnOperand
    right: tuple[Operand, ...] = ()
    """Operands to compare with.

    One for a comparison, the list of ``in``, both bounds of ``between``, none for ``null``.
    """

    def __str__(self) -> str:
        match self.operator:
            case "in":
                return f"{self.left} in ({', '.join(map(str, self.right))})"
            case "between":
                return f"{self.left} between {self.right[0]} and {self.right[1]}"
            case "null":
                return f"{self.left} is null"
            case _:
                return f"{self.left} {self.operator} {self.right[0]}"

    @property
    def columns(self) -> tuple[ColumnOperand, ...]:
        """Columns that the test reads."""
        return (
            self.left,
            *(operand for operand in self.right if isinstance(operand, ColumnOperand)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Connective:
    """Predicates combined by a logical operator."""

    operator: str
    """``and``, ``or``, or ``not`` (with one operand)."""
    operands: tuple[Predicate, ...]

    def __str__(self) -> str:
        if self.operator == "not":
            return (
                f"not ({self.operands[0]})"
                if isinstance(self.operands[0], Connective)
                else f"not {self.operands[0]}"
            )
        inner = ("and", "or") if self.operator == "and" else ("or",)
        return f" {self.operator} ".join(
            f"({operand})"
            if isinstance(operand, Connective) and operand.operator in inner
            else str(operand)
            for operand in self.operands
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A predicate with the same result for every row."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


Predicate = Term | Connective | Constant


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A parsed filter."""

    text: str
    predicate: Predicate

    @property
    def canonical(self) -> str:
        """Canonical text: equal for filters that differ only in spelling."""
        return str(self.predicate)


def iter_terms(predicate: Predicate) -> Iterator[Term]:
    """Yield every test of a predicate, from left to right."""
    if isinstance(predicate, Term):
        yield predicate
    elif isinstance(predicate, Connective):
        for operand in predicate.operands:
            yield from iter_terms(operand)


def combine(operator: str, operands: Sequence[Predicate]) -> Predicate:
    """Combine predicates by ``and``, ``or`` or ``not``, and fold constants.

    Parameters
    ----------
    operator : str
    operands : sequence of Predicate
        One operand for ``not``.

    Returns
    -------
    Predicate
        A `Constant` if constants decide the result.
    """
    if operator == "not":
        inner = operands[0]
        if isinstance(inner, Connective) and inner.operator == "not":
            return inner.operands[0]
        return (
            Constant(value=not inner.value)
            if isinstance(inner, Constant)
            else Connective(operator="not", operands=(inner,))
        )
    absorbing = operator == "or"
    if any(isinstance(operand, Constant) and operand.value == absorbing for operand in operands):
        return Constant(value=absorbing)
    remaining = tuple(operand for operand in operands if not isinstance(operand, Constant))
    return (
        remaining[0]
        if len(remaining) == 1
        else Connective(operator=operator, operands=remaining)
        if remaining
        else Constant(value=not absorbing)
    )


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    """``number``, ``name``, ``word``, ``text``, ``comparison``, ``mark``, ``end``."""
    text: str
    position: int
    quoted: bool = False

    @property
    def display(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


@lru_cache(maxsize=1024)
def parse(text: str) -> Filter:
    """Parse a filter.

    Parameters
    ----------
    text : str
        The filter, 1 to `MAX_LENGTH` characters.

    Returns
    -------
    Filter

    Raises
    ------
    InvalidRequest
        If the text is not a filter. The message has the position (characters, from 1), the text
        found there and the text expected.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_LENGTH:
        raise InvalidRequest(
            f'filter {text!r:.80}: expected a text of 1 to {MAX_LENGTH} characters, as "price > 3"'
        )
    tokens = list(_tokens(text))
    if sum((token.kind, token.text) != ("mark", ",") for token in tokens) > MAX_TOKENS:
        raise InvalidRequest(
            f"filter {text!r:.80}: expected at most {MAX_TOKENS - 1} names, values and operators"
        )
    parser = _Parser(text, tokens)
    parsed = Filter(text=text, predicate=parser.parse_all())
    if len(parsed.canonical) > MAX_LENGTH:
        raise InvalidRequest(
            f"filter {text!r:.80}: expected at most {MAX_LENGTH} characters in normal form, "
            f"found {len(parsed.canonical)}"
        )
    return parsed


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        token_match = _TOKEN.match(text, position)
        if token_match is None:
            raise syntax_error(
                text,
                position,
                repr(text[position]),
                f"{_EXPECTED_OPERAND}, a comparison, or one of ( ) , [ ]",
            )
        kind, lexeme = str(token_match.lastgroup), token_match[str(token_match.lastgroup)]
        after = text[token_match.end() : token_match.end() + 1]
        if (
            kind == "number"
            and (after in ("_", ".", "'", '"') or (after.isascii() and after.isalnum()))
            and after
        ):
            raise syntax_error(
                text, token_match.end(), repr(after), "a space or an operator after a number"
            )
        if kind == "quoted" and not lexeme:
            raise syntax_error(text, position, "'``'", "a column's name between backticks")
        match kind:
            case "space":
                pass
            case "quoted":
                yield _Token("name", lexeme, position, quoted=True)
            case "single" | "double":
                yield _Token("text", re.sub(r"\\(.)", r"\1", lexeme), position)
            case "name" if lexeme.lower() in _KEYWORDS:
                yield _Token("word", lexeme.lower(), position)
            case "comparison":
                yield _Token(kind, {"=": "==", "<>": "!="}.get(lexeme, lexeme), position)
            case _:
                yield _Token(kind, lexeme, position)
        position = token_match.end()
    yield _Token("end", "", len(text))


class _Parser:
    """Recursive-descent parser over the tokens of a filter."""

    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text, self._tokens, self._next = text, tokens, 0

    def parse_all(self) -> Predicate:
        predicate = self.predicate(0)
        if self._tokens[self._next].kind != "end":
            raise self._unexpected("'and', 'or' or the end")
        return predicate

    def predicate(self, depth: int) -> Predicate:
        return self._parse_connective(
            "or", lambda: self._parse_connective("and", lambda: self._parse_negation(depth))
        )

    def _parse_connective(self, keyword: str, parse_operand: Callable[[], Predicate]) -> Predicate:
        operands = [parse_operand()]
        while self._accept("word", keyword):
            operands.append(parse_operand())
        return combine(keyword, operands)

    def _parse_negation(self, depth: int) -> Predicate:
        token = self._tokens[self._next]
        if depth > MAX_DEPTH:
            raise syntax_error(
                self._text,
                token.position,
                token.display,
                f"at most {MAX_DEPTH} levels of brackets",
            )
        negated = False
        while self._accept("word", "not"):
            negated = not negated
        operand = self._parse_primary(depth)
        return combine("not", [operand]) if negated else operand

    def _parse_primary(self, depth: int) -> Predicate:
        token = self._tokens[self._next]
        if self._accept("mark", "("):
            inner = self.predicate(depth + 1)
            self._expect(")", "'and', 'or' or ')'")
            return inner
        if (
            token.kind == "word"
            and token.text in ("true", "false")
            and self._tokens[self._next + 1].kind != "comparison"
        ):
            self._next += 1
            return Constant(value=token.text == "true")
        return self._parse_test()

    def _parse_test(self) -> Predicate:
        start = self._tokens[self._next]
        left = self._parse_operand(_EXPECTED_TEST)
        operator = self._tokens[self._next]
        if operator.kind == "comparison":
            self._next += 1
            right = self._parse_operand(_EXPECTED_OPERAND)
            if self._tokens[self._next].kind == "comparison":
                raise self._unexpected("'and' between two comparisons")
            if isinstance(left, ColumnOperand):
                return Term(operator=operator.text, left=left, right=(right,))
            if isinstance(right, ColumnOperand):
                return Term(operator=MIRRORED[operator.text], left=right, right=(left,))
            raise syntax_error(
                self._text,
                start.position,
                f"{left} {operator.text} {right}",
                "a column on at least one side",
            )
        if not isinstance(left, ColumnOperand):
            raise self._unexpected(f"a comparison ({' '.join(COMPARISONS)})")
        return self._parse_keyword_test(left)

    def _parse_keyword_test(self, left: ColumnOperand) -> Predicate:
        """Parse a test written with keywords: ``is``, ``not``, ``in`` or ``between``."""
        is_null_test = self._accept("word", "is")
        negated = self._accept("word", "not")
        expected = "'null'" if is_null_test else "'in' or 'between'"
        if is_null_test and self._accept("word", "null"):
            term = Term(operator="null", left=left)
        elif not is_null_test and self._accept("word", "in"):
            term = Term(operator="in", left=left, right=tuple(self._parse_values()))
        elif not is_null_test and self._accept("word", "between"):
            low = self._parse_literal()
            self._expect("and", "'and'", "word")
            term = Term(operator="between", left=left, right=(low, self._parse_literal()))
        elif negated or is_null_test:
            raise self._unexpected(expected if negated else "'null' or 'not null'")
        else:
            raise self._unexpected(
                f"a comparison ({' '.join(COMPARISONS)}), 'in', 'between' or 'is'"
            )
        return combine("not", [term]) if negated else term

    def _parse_values(self) -> Iterator[Literal]:
        self._expect("(", "'('")
        if self._accept("mark", ")"):
            return
        yield self._parse_literal()
        while self._accept("mark", ","):
            yield self._parse_literal()
        self._expect(")", "',' or ')'")

    def _parse_literal(self) -> Literal:
        operand = self._parse_operand("a number, a string, true or false")
        if isinstance(operand, ColumnOperand):
            raise syntax_error(
                self._text, operand.position, str(operand), "a number, a string, true or false"
            )
        return operand

    def _parse_operand(self, expected: str) -> Operand:
        token = self._tokens[self._next]
        if token.kind == "name":
            self._next += 1
            return self._parse_column(token)
        if token.kind == "number":
            self._next += 1
            return Literal(value=_parse_number(self._text, token))
        if token.kind == "text":
            self._next += 1
            return Literal(value=token.text)
        if token.kind == "word" and token.text in ("true", "false"):
            self._next += 1
            return Literal(value=token.text == "true")
        raise self._unexpected(expected)

    def _parse_column(self, token: _Token) -> ColumnOperand:
        endpoint, name, quoted = "", token.text, token.quoted
        prefix, dot, suffix = token.text.partition(".")
        if not quoted and prefix in ("src", "dst") and dot:
            endpoint, name = prefix, suffix
            if not suffix:  # src.`name`
                next_token = self._tokens[self._next]
                if not next_token.quoted or next_token.position != token.position + len(token.text):
                    raise self._unexpected("a column's name")
                self._next += 1
                name, quoted = next_token.text, True
        if self._accept("mark", "["):
            index_token = self._tokens[self._next]
            if (
                index_token.kind != "number"
                or not index_token.text.isdigit()
                or len(index_token.text) > 9
            ):
                raise self._unexpected("the index of an element, from 0")
            self._next += 1
            self._expect("]", "']'")
            return ColumnOperand(
                name=name,
                endpoint=endpoint,
                element=int(index_token.text),
                quoted=quoted,
                position=token.position,
            )
        return ColumnOperand(name=name, endpoint=endpoint, quoted=quoted, position=token.position)

    def _accept(self, kind: str, text: str) -> bool:
        token = self._tokens[self._next]
        if token.kind == kind and token.text == text and not token.quoted:
            self._next += 1
            return True
        return False

    def _expect(self, text: str, expected: str, kind: str = "mark") -> None:
        if not self._accept(kind, text):
            raise self._unexpected(expected)

    def _unexpected(self, expected: str) -> InvalidRequest:
        token = self._tokens[self._next]
        return syntax_error(self._text, token.position, token.display, expected)


def _parse_number(text: str, token: _Token) -> int | float:
    if token.text.lstrip("+-").isdigit():
        integer = int(token.text)
        if not -(1 << 63) <= integer < 1 << 64:
            raise syntax_error(text, token.position, token.text, "an integer of 64 bits")
        return integer
    number = float(token.text)
    if isinf(number) and not token.text.lower().endswith("inf"):
        raise syntax_error(text, token.position, token.text, "a number that fits float64")
    return number


def _is_plain_name(name: str) -> bool:
    match = _TOKEN.fullmatch(name)
    return match is not None and match.lastgroup == "name" and name.lower() not in _KEYWORDS


def syntax_error(text: str, position: int, found: str, expected: str) -> InvalidRequest:
    """Return the error for unexpected text at a position of a filter (from 0)."""
    location = SourceLocation(
        line=1, column=position + 1, expected=(expected,), incomplete=position >= len(text)
    )
    return InvalidRequest(
        f"filter {text!r}, character {position + 1}: found {found}, expected {expected}",
        location,
    )
