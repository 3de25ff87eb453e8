"""The parts that statements are read from, and what is made of several of them. A quiet room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lark import Token

from asterism_proto.condition import MAX_TOKENS, Literal
from graphd.statements.grammar import Unplaced
from graphd.statements.records import Column, Draw, Feature, Named, Options, Owner, Parameter, Value

_MOST_COLUMNS = 256
_EACH = frozenset({"where", "seed", "version", "items"})
ALLOWED = {
    "vertices": _EACH | {"weight", "uniform", "replace"},
    "edges": _EACH | {"weight", "uniform", "replace"},
    "neighbors": _EACH | {"weight", "uniform", "replace", "direction", "padded"},
    "top": (_EACH - {"seed"}) | {"weight", "direction", "padded"},
    "layer": _EACH | {"weight", "uniform", "replace", "direction", "measure"},
    "layers": _EACH | {"weight", "uniform", "replace", "direction", "measure"},
    "negatives": _EACH | {"weight", "uniform", "padded"},
    "walk": _EACH | {"weight", "uniform", "direction", "p", "q", "restart", "walks", "distinct"},
    "go": _EACH | {"weight", "uniform", "replace", "direction", "padded", "counts", "limits"},
    "fetch": frozenset({"items", "version"}),
}
"""Which options each statement takes, beside ORDER BY and LIMIT, by their names in `Options`."""
SAID = {
    "items": "YIELD",
    "replace": "REPLACEMENT",
    "measure": "BY",
    "counts": "SAMPLE",
    "limits": "LIMIT [n1, n2, ...]",
    "direction": "REVERSELY or BIDIRECT",
}
"""How options are written, where not by their names here."""


@dataclass(frozen=True, slots=True)
class Written:
    """A value that is written down in a condition or setting."""

    value: Value
    at: int

    @property
    def text(self) -> str | Parameter:
        """As the language of conditions has it."""
        return self.value if isinstance(self.value, Parameter) else str(Literal(value=self.value))


_MEANT = {"AND": "and", "OR": "or", "NOT": "not", "EQUALS": "==", "IN": "in", "BETWEEN": "between", "IS": "is", "NULL": "null"}
_ENDS = {"$$": "far", "$^": "near", "vertex": "", "edge": ""}
_FUNCTIONS = {"id": "id", "src": "src", "dst": "dst", "rank": "edge_id", "type": "type", "weight": "weight", "probability": "probability"}
_NEBULA = {"_src": "src", "_dst": "dst", "_rank": "edge_id", "_type": "type"}


def flat(found: Sequence[Any]) -> list[Any]:
    """The words of a condition, each with its place."""
    words: list[Any] = []
    for one in found:
        if isinstance(one, list):
            words += one
        elif isinstance(one, Column):
            words.append((one, one.at))
        elif isinstance(one, Written):
            words.append((one.text, one.at))
        elif is_a(one, "PARAMETER"):
            words.append((parameter_of(one), place_of(one)))
        else:
            words.append((_MEANT.get(one.type, str(one).lower()), place_of(one)))
    if len(words) > MAX_TOKENS:  # at once, before brackets around brackets copy them again and again
        raise Unplaced(words[MAX_TOKENS][1], f"a condition of more than {MAX_TOKENS} words", ["a shorter one, or a list as a parameter"])
    return words


def place_of(one: Any) -> int:
    """Where a token or record stands."""
    return (one.start_pos or 0) if isinstance(one, Token) else int(getattr(one, "at", 0))


def is_a(one: Any, kind: str) -> bool:
    """Whether something is a token of a kind."""
    return isinstance(one, Token) and one.type == kind


def one_of(found: Sequence[Any], kind: type) -> Any:
    """The first part of a kind."""
    return next(one for one in found if isinstance(one, kind))


def parameter_of(token: Token) -> Parameter:
    """The parameter that a token names."""
    return Parameter(name=str(token)[1:], at=place_of(token))


def named_of(token: Token) -> Named:
    """The name in a token."""
    quoted = token.type == "QUOTED"
    return Named(text=str(token)[1:-1] if quoted else str(token), at=place_of(token), quoted=quoted)


def column_of(names: Sequence[Named], *, of: str = "", at: int | None = None) -> Column:
    """A column of a path of names: the last one, of the end that the first one says."""
    begins = names[0].at if at is None else at
    if len(names) > 3:
        raise Unplaced(names[3].at, f"`{names[3].text}`", ["a column of at most three names"])
    first, last = names[0], names[-1]
    if not of and len(names) > 1 and not first.quoted and first.text.lower() in ("src", "dst"):
        of = first.text.lower()
    name = last if last.quoted else Named(text=_NEBULA.get(last.text, last.text), at=last.at)
    return Column(name=name, of=of, quoted=last.quoted, at=begins)


def called_of(found: Sequence[Any]) -> Column:
    """A column as a function of nGQL says it: ``id($$)``, ``src(edge)``, ``properties($^).age``."""
    function, of = found[0], found[1]
    end = str(of) if isinstance(of, Token) else of.text.lower()
    if end not in _ENDS:
        raise Unplaced(place_of(of), repr(end), ["vertex", "edge", "$$", "$^"])
    if function.text.lower() in ("properties", "props"):
        if len(found) < 3:
            raise Unplaced(function.at, "all properties", ["properties(...).NAME: one at a time"])
        return Column(name=found[2], of=_ENDS[end], quoted=True, at=function.at)
    name = _FUNCTIONS.get(function.text.lower())
    if name is None or len(found) > 2:
        raise Unplaced(function.at, repr(function.text), ["properties", *_FUNCTIONS])
    return Column(name=Named(text=name, at=function.at), of=_ENDS[end], at=function.at)


def draw_of(kind: str, found: Sequence[Any], **told: Any) -> Draw:
    """A sample or read of its parts: what it is about, and its options."""
    for part in found:
        if isinstance(part, dict):
            told |= part
    given: dict[str, Any] = {"shape": ()}
    places: list[tuple[str, int]] = []
    for part in found:
        if not (isinstance(part, tuple) and part and part[0] == "option"):
            continue
        _, name, value, at = part
        if name == "unlike":
            name, given = "items", given | ({"unlike": True} if "items" not in given else {})
        if name == "shape":
            given["shape"] += (value,)
            continue
        if name not in ALLOWED[kind]:
            able = sorted(SAID.get(word, word.upper()) for word in ALLOWED[kind])
            raise Unplaced(at, f"{SAID.get(name, name.upper())} in {kind.upper()}", [*able, "ORDER BY", "LIMIT"])
        if name == "items" and len(value) > _MOST_COLUMNS:
            raise Unplaced(at, f"{len(value)} columns", [f"{_MOST_COLUMNS} at most"])
        if name in given:
            raise Unplaced(at, f"{SAID.get(name, name.upper())} a second time", ["each option once"])
        given[name] = value
        places.append((name, at))
    return Draw(kind=kind, options=Options(**given, places=tuple(places)), at=place_of(found[0]), **told)


def owner_of(found: Sequence[Any], ends: dict[str, Any]) -> Owner:
    """A type of its parts."""
    told: dict[str, Any] = {}
    features: tuple[Feature, ...] = ()
    for part in found[1:]:
        if isinstance(part, tuple) and part and isinstance(part[0], str):
            name, value, at = part
            if name in told:
                raise Unplaced(at, f"{name.upper()} a second time", ["each once"])
            if name in (("label",) if ends else ("unique", "missing")):
                raise Unplaced(at, f"{name.upper()} of {'an EDGE' if ends else 'a TAG'}", ["WEIGHTED", "WEIGHTS"])
            told[name] = value
        elif isinstance(part, tuple):
            features = part
    return Owner(name=one_of(found, Named), features=features, at=place_of(found[0]), **ends, **told)
