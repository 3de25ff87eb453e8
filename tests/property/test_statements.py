"""Any text parses to a statement or a typed error with a position; statements round-trip."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from asterism_proto.errors import InvalidRequest
from graphd.query.ast import (
    ColumnRef,
    DrawOptions,
    DrawStatement,
    ExcludedPairs,
    Identifier,
    Limit,
    OrderBy,
    Parameter,
    RowCount,
    Statement,
    TypeName,
    WhereClause,
    YieldItem,
)
from graphd.query.ngql_parser import parse
from graphd.query.ngql_tree_builder import ALLOWED_OPTIONS

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
ODD_NAMES = st.text(
    st.characters(exclude_characters="`\n", exclude_categories=("Cs",)), min_size=1, max_size=6
)
FRAGMENTS = (
    "SAMPLE VERTICES EDGES NEIGHBORS FROM OVER WHERE AND OR NOT IN BETWEEN IS NULL YIELD AS "
    "SEED LIMIT ORDER BY GO STEPS TO THEN WALK USE SHOW "
    "SPACES CREATE SPACE TAG EXCLUDE REVERSE -> @ ( ) [ ] , ; . == > = $x $$ $^ $- | * -1 3 4.5 "
    "1e9 'a' \"b\" `c` a:b:c name weight /* */ # // ' \" ` % é"
)
TOKENS = st.sampled_from(FRAGMENTS.split())
non_negative_integers = st.integers(0, 2**63 - 1)
parameters = NAMES.map(lambda name: Parameter(name=name))
values = (
    non_negative_integers
    | st.integers(-(2**63), -1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x != int(x))
    | parameters
)
identifiers = (NAMES | ODD_NAMES).map(lambda name: Identifier(text=name))
types = (NAMES | ODD_NAMES | st.tuples(NAMES, NAMES, NAMES).map(":".join)).map(
    lambda name: TypeName(text=name)
)
columns = st.builds(
    ColumnRef,
    name=ODD_NAMES.map(lambda name: Identifier(text=name)),
    quoted=st.just(True),
    end=st.sampled_from(["", "src", "dst", "near", "far"]),
    element=st.none() | st.integers(0, 99),
)
items = st.lists(
    st.builds(YieldItem, column=columns, alias=st.none() | identifiers), min_size=1, max_size=3
).map(tuple)
comparisons = st.tuples(
    columns, st.sampled_from(["==", "<", "!="]), st.integers(0, 9).map(str) | parameters
).map(lambda test: [(word, 0) for word in test])
where_clauses = st.lists(comparisons, min_size=1, max_size=3).map(
    lambda all_: WhereClause(
        words=tuple(word for test in all_ for word in [*test, ("and", 0)])[:-1]
    )
)
ends = parameters | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5)
exclusions = st.builds(
    ExcludedPairs,
    pairs=st.lists(
        st.tuples(ends, ends, st.none() | parameters | non_negative_integers),
        min_size=1,
        max_size=3,
    ).map(tuple),
    edge_type=st.none() | types,
    reverse_type=st.none() | types,
)
CHOICES = {
    "excluded": st.lists(exclusions, min_size=1, max_size=2).map(tuple),
    "where": where_clauses,
    "weight": identifiers | parameters,
    "seed": values,
    "version": values,
    "items": items,
    "counted": st.builds(RowCount, alias=st.none() | identifiers),
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
    "counts": parameters | st.lists(non_negative_integers, min_size=1, max_size=3).map(tuple),
    "limits": st.lists(non_negative_integers | parameters, min_size=1, max_size=3).map(tuple),
}
result_shapes = st.lists(
    st.builds(Limit, count=values, offset=values)
    | st.builds(
        OrderBy,
        keys=st.lists(st.tuples(identifiers, st.booleans()), min_size=1, max_size=2).map(tuple),
    ),
    max_size=3,
).map(tuple)


def parse_error(text: str) -> InvalidRequest | None:
    """Return the error that parsing a text raises, or None if the text is a statement."""
    try:
        parse(text)
    except InvalidRequest as error:
        return error
    return None


@st.composite
def draw_statements(draw: st.DrawFn) -> DrawStatement:
    kind = draw(st.sampled_from(sorted(ALLOWED_OPTIONS)))
    option_names = draw(
        st.lists(st.sampled_from(sorted(ALLOWED_OPTIONS[kind])), unique=True, max_size=5)
    )
    if {"counted", "items"} <= set(option_names):  # a statement has one YIELD
        option_names.remove("items")
    options = DrawOptions(
        **{name: draw(CHOICES[name]) for name in option_names}, shape=draw(result_shapes)
    )
    ids = draw(
        parameters | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=3).map(tuple)
    )
    type_list = draw(st.lists(types, min_size=1, max_size=2).map(tuple))
    hops = draw(st.lists(st.lists(types, max_size=2).map(tuple), min_size=1, max_size=3).map(tuple))
    start_type = draw(st.none() | types)
    count = draw(values)
    match kind:
        case "vertices" if draw(st.booleans()):
            return DrawStatement(
                kind=kind, count=count, like=True, nodes=ids, node_type=start_type, options=options
            )
        case "vertices" | "edges":
            return DrawStatement(kind=kind, count=count, types=type_list, options=options)
        case "negatives":
            return DrawStatement(
                kind=kind, count=count, nodes=ids, types=type_list, options=options
            )
        case "fetch":
            if draw(st.booleans()):
                return DrawStatement(
                    kind=kind,
                    types=type_list[:1],
                    pairs=tuple(draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=2))),
                    options=options,
                )
            return DrawStatement(kind=kind, types=type_list[:1], nodes=ids, options=options)
        case "layers":
            return DrawStatement(
                kind=kind,
                counts=draw(CHOICES["counts"]),
                nodes=ids,
                node_type=start_type,
                hops=hops,
                options=options,
            )
        case "go":
            first = draw(st.none() | values)
            return DrawStatement(
                kind=kind,
                count=count,
                first=first,
                nodes=ids,
                node_type=start_type,
                hops=hops,
                options=options,
            )
        case _:
            return DrawStatement(
                kind=kind, count=count, nodes=ids, node_type=start_type, hops=hops, options=options
            )


@settings(max_examples=80, deadline=None)
@given(draw_statements(), st.sampled_from(["", "EXPLAIN", "PROFILE"]))
def test_formatted_statements_parse_to_themselves(body: DrawStatement, mode: str) -> None:
    statement = Statement(body=body, mode=mode)
    assert parse(str(statement)) == (statement,)


@settings(max_examples=150, deadline=None)
@given(st.lists(TOKENS, max_size=12).map(" ".join) | st.text(max_size=40))
def test_any_text_parses_or_fails_at_a_position(text: str) -> None:
    error = parse_error(text)
    if error is None:
        assert parse("; ".join(map(str, parse(text)))) == parse(text)
        return
    position, lines = error.place, text.split("\n")
    assert position is not None
    assert 1 <= position.line <= len(lines)
    assert 1 <= position.column <= len(lines[position.line - 1]) + 1
    assert error.message.splitlines()[0].startswith(
        f"line {position.line}, column {position.column}: "
    )


@settings(max_examples=150, deadline=None)
@given(draw_statements(), st.data())
def test_truncated_statement_fails_only_at_its_last_word(
    body: DrawStatement, data: st.DataObject
) -> None:
    text = str(body)
    cut = text[: data.draw(st.integers(0, len(text)))]
    error = parse_error(cut)
    if error is not None:
        assert error.place is not None
        assert error.place.incomplete or len(cut[error.place.column - 1 :].split()) == 1, (
            error.message
        )
