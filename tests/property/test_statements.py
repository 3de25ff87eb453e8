"""Whatever is typed is a statement or a typed error with a place; whatever is written is read back."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from asterism_proto.errors import InvalidRequest
from graphd.statements.pieces import ALLOWED
from graphd.statements.reading import read
from graphd.statements.records import Column, Draw, Item, Limit, Named, Options, Order, Parameter, Statement, TypeName, Where

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
ODD_NAMES = st.text(st.characters(exclude_characters="`\n", exclude_categories=("Cs",)), min_size=1, max_size=6)
TYPED = (
    "SAMPLE VERTICES EDGES NEIGHBORS FROM OVER WHERE AND OR NOT IN BETWEEN IS NULL YIELD AS SEED LIMIT ORDER BY GO STEPS TO THEN WALK USE SHOW "
    "SPACES CREATE SPACE TAG ( ) [ ] , ; . == > = $x $$ $^ $- | * -1 3 4.5 1e9 'a' \"b\" `c` a:b:c name weight /* */ # // ' \" ` % é"
)
WORDS = st.sampled_from(TYPED.split())
whole = st.integers(0, 2**63 - 1)
parameters = NAMES.map(lambda name: Parameter(name=name))
values = whole | st.integers(-(2**63), -1) | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x != int(x)) | parameters
named = (NAMES | ODD_NAMES).map(lambda name: Named(text=name))
types = (NAMES | ODD_NAMES | st.tuples(NAMES, NAMES, NAMES).map(":".join)).map(lambda name: TypeName(text=name))
columns = st.builds(
    Column, name=ODD_NAMES.map(lambda name: Named(text=name)), quoted=st.just(True), of=st.sampled_from(["", "src", "dst", "near", "far"]),
    element=st.none() | st.integers(0, 99),
)  # fmt: skip
items = st.lists(st.builds(Item, column=columns, alias=st.none() | named), min_size=1, max_size=3).map(tuple)
tests = st.tuples(columns, st.sampled_from(["==", "<", "!="]), st.integers(0, 9).map(str) | parameters).map(lambda test: [(word, 0) for word in test])
wheres = st.lists(tests, min_size=1, max_size=3).map(lambda all_: Where(words=tuple(word for test in all_ for word in [*test, ("and", 0)])[:-1]))
CHOICES = {
    "where": wheres,
    "weight": named | parameters,
    "seed": values,
    "version": values,
    "items": items,
    "replace": st.booleans(),
    "direction": st.sampled_from(["REVERSELY", "BIDIRECT"]),
    "uniform": st.just(True),
    "padded": st.just(True),
    "distinct": st.just(True),
    "measure": st.sampled_from(["SUM", "SQRT", "SQUARES"]),
    "p": values,
    "q": values,
    "restart": values,
    "walks": values,
    "counts": parameters | st.lists(whole, min_size=1, max_size=3).map(tuple),
    "limits": st.lists(whole | parameters, min_size=1, max_size=3).map(tuple),
}
shapes = st.lists(
    st.builds(Limit, count=values, offset=values)
    | st.builds(Order, keys=st.lists(st.tuples(named, st.booleans()), min_size=1, max_size=2).map(tuple)),
    max_size=3,
).map(tuple)


def refusal(text: str) -> InvalidRequest | None:
    """Why a text is no statement; None where it is one."""
    try:
        read(text)
    except InvalidRequest as error:
        return error
    return None


@st.composite
def draws(draw: st.DrawFn) -> Draw:
    kind = draw(st.sampled_from(sorted(ALLOWED)))
    chosen = draw(st.lists(st.sampled_from(sorted(ALLOWED[kind])), unique=True, max_size=5))
    options = Options(**{name: draw(CHOICES[name]) for name in chosen}, shape=draw(shapes))
    ids = draw(parameters | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=3).map(tuple))
    several = draw(st.lists(types, min_size=1, max_size=2).map(tuple))
    hops = draw(st.lists(st.lists(types, max_size=2).map(tuple), min_size=1, max_size=3).map(tuple))
    on = draw(st.none() | types)
    count = draw(values)
    match kind:
        case "vertices" if draw(st.booleans()):
            return Draw(kind=kind, count=count, like=True, nodes=ids, node_type=on, options=options)
        case "vertices" | "edges":
            return Draw(kind=kind, count=count, types=several, options=options)
        case "negatives":
            return Draw(kind=kind, count=count, nodes=ids, types=several, options=options)
        case "fetch":
            if draw(st.booleans()):
                end = parameters | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5)
                return Draw(kind=kind, types=several[:1], pairs=tuple(draw(st.lists(st.tuples(end, end), min_size=1, max_size=2))), options=options)
            return Draw(kind=kind, types=several[:1], nodes=ids, options=options)
        case "layers":
            return Draw(kind=kind, counts=draw(CHOICES["counts"]), nodes=ids, node_type=on, hops=hops, options=options)
        case "go":
            first = draw(st.none() | values)
            return Draw(kind=kind, count=count, first=first, nodes=ids, node_type=on, hops=hops, options=options)
        case _:
            return Draw(kind=kind, count=count, nodes=ids, node_type=on, hops=hops, options=options)


@settings(max_examples=80, deadline=None)
@given(draws(), st.sampled_from(["", "EXPLAIN", "PROFILE"]))
def test_whatever_is_written_is_read_back(body: Draw, mode: str) -> None:
    statement = Statement(body=body, mode=mode)
    assert read(str(statement)) == (statement,)


@settings(max_examples=150, deadline=None)
@given(st.lists(WORDS, max_size=12).map(" ".join) | st.text(max_size=40))
def test_whatever_is_typed_is_read_or_refused_at_a_place_in_it(text: str) -> None:
    refused = refusal(text)
    if refused is None:
        assert read("; ".join(map(str, read(text)))) == read(text)
        return
    place, lines = refused.place, text.split("\n")
    assert place is not None
    assert 1 <= place.line <= len(lines)
    assert 1 <= place.column <= len(lines[place.line - 1]) + 1
    assert refused.message.splitlines()[0].startswith(f"line {place.line}, column {place.column}: ")


@settings(max_examples=150, deadline=None)
@given(draws(), st.data())
def test_of_a_statement_cut_short_nothing_is_refused_but_the_word_that_was_cut(body: Draw, data: st.DataObject) -> None:
    text = str(body)
    cut = text[: data.draw(st.integers(0, len(text)))]
    refused = refusal(cut)
    if refused is not None:
        assert refused.place is not None
        assert refused.place.incomplete or len(cut[refused.place.column - 1 :].split()) == 1, refused.message
