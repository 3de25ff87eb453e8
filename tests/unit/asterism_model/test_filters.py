from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from asterism_graphkit.evaluate.filters import ColumnValues, RaggedColumn, evaluate_filter
from asterism_model.elements import EDGE, NODE
from asterism_model.filters.binding import bind
from asterism_model.filters.syntax import (
    COMPARISONS,
    MAX_DEPTH,
    MAX_VALUES,
    ColumnOperand,
    Connective,
    Constant,
    Literal,
    Predicate,
    Term,
    combine,
    iter_terms,
    parse,
)
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound

SCHEMA = Schema(
    node_types=(
        NodeType(
            name="item",
            features=(
                Feature(name="price"),
                Feature(name="v", shape=(2, 2)),
                Feature(name="brand", kind="bytes"),
            ),
        ),
        NodeType(name="user", features=(Feature(name="age", dtype="int64"),)),
    ),
    edge_types=(
        EdgeType(
            src_type="user",
            relation="buys",
            dst_type="item",
            features=(Feature(name="paid"), Feature(name="due")),
        ),
    ),
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("price>3", "price > 3"),
        ("3 < price", "price > 3"),
        ("3 = price", "price == 3"),
        ("price <> 3", "price != 3"),
        ("A = 1 AND b = 2 Or NOT c = 3", "A == 1 and b == 2 or not c == 3"),
        ("(a = 1 or b = 2) and (c = 3 and d = 4)", "(a == 1 or b == 2) and (c == 3 and d == 4)"),
        ("((a = 1))", "a == 1"),
        ("not (not (a = 1))", "a == 1"),
        ("not (a = 1 or b = 2)", "not (a == 1 or b == 2)"),
        ("a not in (1, -2.5, 'x', true)", "not a in (1, -2.5, 'x', true)"),
        ("a not between 1 and 2 and b is not null", "not a between 1 and 2 and not b is null"),
        ('`or`[7] = "it\'s"', "`or`[7] == 'it\\'s'"),
        ("src.age < 3 and dst.`x y` > 1e3", "src.age < 3 and dst.`x y` > 1000.0"),
        ("`src.age` < 3", "`src.age` < 3"),
        ("a > 1 and true", "a > 1"),
        ("a > 1 and false", "false"),
        ("not true or a > 1", "a > 1"),
        ("flag == true", "flag == true"),
        ("true != flag", "flag != true"),
        ("a == 18446744073709551615", "a == 18446744073709551615"),
        ("n-clicks > -3", "n-clicks > -3"),
        ("a < +INF and a > -inf", "a < +inf and a > -inf"),
        ("a < inf", "a < inf"),
        ("a in () or a not in ()", "a in () or not a in ()"),
        (
            f"a in ({', '.join(['7'] * 500)}) and a > 1",
            f"a in ({', '.join(['7'] * 500)}) and a > 1",
        ),
    ],
)
def test_filter_has_one_canonical_text(text: str, canonical: str) -> None:
    parsed = parse(text)
    assert parsed.canonical == canonical
    assert parse(canonical).predicate == parsed.predicate
    assert parse(canonical).canonical == canonical


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a text of 1 to 16384 characters"),
        ("price", "character 6: found the end, expected a comparison"),
        ("price > 3 price", "character 11: found 'price', expected 'and', 'or' or the end"),
        ("(price > 3", r"character 11: found the end, expected 'and', 'or' or '\)'"),
        ("price > 3)", r"character 10: found '\)'"),
        ("and", "character 1: found 'and', expected a test"),
        ("1 < price < 3", "character 11: found '<', expected 'and' between two comparisons"),
        ("1 < 2", "character 1: found 1 < 2, expected a column on at least one side"),
        ("price in (,)", "character 11: found ',', expected a number"),
        ("price > -info", "character 13: found 'o', expected a space or an operator"),
        ("price in (a)", "character 11: found a, expected a number"),
        ("price in 3", r"character 10: found '3', expected '\('"),
        ("price between 3", "character 16: found the end, expected 'and'"),
        ("price is 3", "character 10: found '3', expected 'null' or 'not null'"),
        ("price not 3", "character 11: found '3', expected 'in' or 'between'"),
        ("price[x] > 3", "character 7: found 'x', expected the index of an element"),
        ("price[-1] > 3", "character 7: found '-1', expected the index of an element"),
        ("price > 'a", 'character 9: found "\'"'),
        ("price > 3x", "character 10: found 'x', expected a space or an operator after a number"),
        ("price + 1 > 3", r"character 7: found '\+'"),
        ("f(price) > 3", r"character 2: found '\('"),
        ("price > 1e999", "character 9: found 1e999, expected a number that fits float64"),
        ("price > 18446744073709551616", "expected an integer of 64 bits"),
        ("``> 3", "expected a column's name between backticks"),
        ("src. > 3", "character 6: found '>', expected a column's name"),
        ("price; drop", "character 6: found ';'"),
        (" or ".join(["a > 1"] * 400), "at most 999 names, values and operators"),
        ("(" * (MAX_DEPTH + 1) + "a > 1" + ")" * (MAX_DEPTH + 1), "at most 50 levels of brackets"),
    ],
)
def test_invalid_filter_is_refused_with_position_and_hint(text: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        parse(text)


def test_infinity_is_a_number_with_its_sign_and_a_name_without() -> None:
    for value, text in ((math.inf, "+inf"), (-math.inf, "-inf")):
        assert str(Literal(value=value)) == text
        (term,) = iter_terms(parse(f"a < {text}").predicate)
        assert term.right == (Literal(value=value),)
    (term,) = iter_terms(parse("a < inf").predicate)
    assert term.right == (ColumnOperand(name="inf"),)


def test_lists_of_500_values_of_any_size_fit_a_filter() -> None:
    longest = ", ".join(["-2.2250738585072014e-308"] * MAX_VALUES)
    (term,) = iter_terms(parse(f"a in ({longest}) and b == 1").predicate.operands[0])  # type: ignore[union-attr]
    assert len(term.right) == MAX_VALUES


def test_deepest_allowed_filter_is_parsed() -> None:
    deep = "not (a > 1 and " * MAX_DEPTH + "b > 1" + ")" * MAX_DEPTH
    assert parse(parse(deep).canonical).predicate == parse(deep).predicate
    assert parse("not " * 990 + "a > 1").canonical == "a > 1"


_TOKENS = [
    "a",
    "`b c`",
    "src.x",
    "1",
    "-2.5",
    "'t'",
    "(",
    ")",
    "[",
    "]",
    ",",
    "and",
    "or",
    "not",
    "in",
    "between",
    "is",
    "null",
    "true",
    *COMPARISONS,
]


@given(
    st.one_of(st.text(max_size=60), st.lists(st.sampled_from(_TOKENS), max_size=30).map(" ".join))
)
@example("a" * 10_000)
@example("\x00")
@example("\ud800 > 1")
@example("'\ud800' == a")
def test_parsed_text_contains_only_column_tests(text: str) -> None:
    try:
        parsed = parse(text)
    except InvalidRequest:
        return
    for term in iter_terms(parsed.predicate):
        assert term.operator in (*COMPARISONS, "in", "between", "null")
        assert all(
            isinstance(operand, ColumnOperand)
            or isinstance(operand.value, bool | int | float | str)
            for operand in term.right
        )
    assert parse(parsed.canonical).predicate == parsed.predicate


_LITERALS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)
_COLUMNS = st.sampled_from(["i", "f", "d", "u", "b"]).map(lambda name: ColumnOperand(name=name))
_TERMS = st.one_of(
    st.builds(
        lambda word, left, right: Term(operator=word, left=left, right=(right,)),
        st.sampled_from(COMPARISONS),
        _COLUMNS,
        st.one_of(_COLUMNS, _LITERALS.map(lambda v: Literal(value=v))),
    ),
    st.builds(
        lambda left, values: Term(
            operator="in", left=left, right=tuple(Literal(value=v) for v in values)
        ),
        _COLUMNS,
        st.lists(_LITERALS, min_size=1, max_size=4),
    ),
    st.builds(
        lambda left, a, b: Term(
            operator="between", left=left, right=(Literal(value=a), Literal(value=b))
        ),
        _COLUMNS,
        _LITERALS,
        _LITERALS,
    ),
    st.builds(lambda left: Term(operator="null", left=left), _COLUMNS),
)
_TREES: st.SearchStrategy[Predicate] = st.recursive(
    _TERMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).flatmap(
            lambda of: st.sampled_from(["and", "or"]).map(lambda word: combine(word, of))
        ),
        inner.map(lambda each: combine("not", [each])),
    ),
    max_leaves=6,
)
VALUES: dict[str, np.ndarray] = {
    "i": np.array([-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1]),
    "f": np.array([np.nan, -np.inf, -0.0, 0.1, 1.0, 16777217.0, np.inf], np.float32),
    "d": np.array([np.nan, -1.5, 0.0, 0.1, float(2**53), 1e300, np.inf]),
    "u": np.array([0, 1, 2, 127, 128, 254, 255], np.uint8),
    "b": np.array([True, False, True, True, False, False, True]),
}


def _evaluate_with_numpy(tree: Predicate) -> np.ndarray:
    """Return the result by NumPy, one row after another."""
    if isinstance(tree, Connective):
        results = [_evaluate_with_numpy(operand) for operand in tree.operands]
        return (
            ~results[0]
            if tree.operator == "not"
            else np.logical_and.reduce(results)
            if tree.operator == "and"
            else np.logical_or.reduce(results)
        )
    assert isinstance(tree, Term)
    left = VALUES[tree.left.name]
    if left.dtype == bool:
        left = left.astype(np.int64)  # NumPy compares no boolean with an integer beyond int64
    right = [
        operand.value if isinstance(operand, Literal) else VALUES[operand.name]
        for operand in tree.right
    ]
    match tree.operator:
        case "null":
            return np.isnan(left.astype(np.float64))
        case "between":
            return np.logical_and(left >= right[0], left <= right[1])
        case "in":
            return np.logical_or.reduce([left == value for value in right])
        case operator:
            return np.asarray(eval(f"left {operator} right", {"left": left, "right": right[0]}))


@given(_TREES)
@example(Term(operator="==", left=ColumnOperand(name="f"), right=(Literal(value=0.1),)))
@example(Term(operator=">", left=ColumnOperand(name="i"), right=(Literal(value=2**53),)))
@example(Term(operator=">", left=ColumnOperand(name="i"), right=(Literal(value=float(2**53)),)))
@example(Term(operator="<", left=ColumnOperand(name="u"), right=(Literal(value=300),)))
def test_filters_agree_with_numpy_and_round_trip(tree: Predicate) -> None:
    with np.errstate(all="ignore"):
        expected = _evaluate_with_numpy(tree)
    mask = evaluate_filter(tree, lambda column: VALUES[column.name], 7)
    assert mask.dtype == np.bool_
    assert mask.tolist() == expected.tolist()
    reparsed_mask = evaluate_filter(
        parse(str(tree)).predicate, lambda column: VALUES[column.name], 7
    )
    assert reparsed_mask.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint64", "uint8", "bool", "float64"])
@pytest.mark.parametrize("more", [[], [2.0, 0.5], [-(2**70), 2**63, 2**64 - 1, 300, -1]])
def test_long_lists_of_numbers_match_one_by_one(dtype: str, more: list[float]) -> None:
    column = np.array([0, 1, 2, 3, 100, 120, 127, 127], dtype)
    listed = [127, 3, *range(5, 40), 0, 3, *more]
    term = Term(
        operator="in",
        left=ColumnOperand(name="c"),
        right=tuple(Literal(value=value) for value in listed),
    )
    mask = evaluate_filter(term, lambda _: column, column.size)
    assert mask.tolist() == [any(value == other for other in listed) for value in column.tolist()]


@given(
    st.lists(st.text("ab'\\é", max_size=3), max_size=8),
    st.lists(st.text("ab'\\é", max_size=3), min_size=1, max_size=3),
)
def test_strings_are_compared_in_full_by_bytes(rows: list[str], literals: list[str]) -> None:
    encoded = [row.encode() for row in rows]
    indptr = np.r_[0, np.cumsum([len(value) for value in encoded])].astype(np.int64)
    column = RaggedColumn(indptr=indptr, values=np.frombuffer(b"".join(encoded), np.uint8))

    def evaluate(text: str) -> list[bool]:
        def read(_: ColumnOperand) -> ColumnValues:
            return column

        return evaluate_filter(parse(text).predicate, read, len(rows)).tolist()

    literal_list = ", ".join(str(Literal(value=value)) for value in literals)
    assert evaluate(f"t in ({literal_list})") == [row in literals for row in rows]
    assert evaluate(f"t not in ({literal_list})") == [row not in literals for row in rows]
    assert evaluate(f"t == {Literal(value=literals[0])}") == [row == literals[0] for row in rows]
    assert evaluate(f"t != {Literal(value=literals[0])}") == [row != literals[0] for row in rows]
    assert evaluate("t is null") == [not row for row in rows]


def test_type_tests_are_resolved_while_binding() -> None:
    row_filter = parse("price > 3 and type == 'item' or age < 9 and type == 'user'")
    assert str(bind(row_filter, SCHEMA, NODE, 0)) == "price > 3"
    assert str(bind(row_filter, SCHEMA, NODE, 1)) == "age < 9"
    assert bind(parse("type in ('user') and prize > 3"), SCHEMA, NODE, 0) == Constant(value=False)
    assert (
        str(bind(parse("type != 'buys' or src.type == 'user' and paid > 3"), SCHEMA, EDGE, 0))
        == "paid > 3"
    )
    assert bind(parse("price is null and id is null"), SCHEMA, NODE, 0) == Constant(value=False)
    with pytest.raises(
        NotFound, match="character 1: node type 'item' has no feature 'price'; it has none"
    ):
        bind(row_filter, Schema(node_types=(SCHEMA.node_types[1], NodeType(name="item"))), NODE, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("v > 3", r"expected one of its values, v\[0\] to v\[3\]"),
        ("v[4] > 3", r"expected an element, \[0\] to \[3\]"),
        ("price[0] > 3", r"expected no \[ \]"),
        ("id[0] > 3", r"expected no \[ \]"),
        ("brand < 'a'", "expected ==, != , 'in'|expected ==, !=, 'in' or 'is null'"),
        ("brand == 3", "expected a string instead of 3"),
        ("price == 'a'", "expected a number instead of 'a'"),
        ("price == brand", "expected numbers on both sides"),
        ("price > 3 and type > 'a'", "expected ==, != or 'in' with names"),
        ("type == 'itme'", "no type 'itme'; there are item, user"),
        ("src.price > 3", "a node has no src"),
        ("`id` > 3", "no feature 'id'"),
    ],
)
def test_unsupported_column_tests_are_refused(text: str, said: str) -> None:
    with pytest.raises(AsterismError, match=said):
        bind(parse(text), SCHEMA, NODE, 0)


def test_only_edge_columns_stored_together_are_compared() -> None:
    for text in ("paid > due", "src.age > src.id or id > 3", "src == dst", "weight > id"):
        if "src.age" not in text:
            bind(parse(text), SCHEMA, EDGE, 0)
    for text in ("paid > weight", "paid > dst.price", "src.age > dst.price", "src.age > src.id"):
        with pytest.raises(InvalidRequest, match="two of the same end node"):
            bind(parse(text), SCHEMA, EDGE, 0)
