from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from asterism_proto.condition import COMPARISONS, MAX_DEPTH, Always, Column, Combined, Literal, Term, Tree, combined, parse, terms
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound
from asterism_proto.meaning import EDGE, NODE, bound
from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from graphkit.condition import Lists, Values, satisfied

SCHEMA = Schema(
    node_types=(
        NodeType(name="item", features=(Feature(name="price"), Feature(name="v", shape=(2, 2)), Feature(name="brand", kind="bytes"))),
        NodeType(name="user", features=(Feature(name="age", dtype="int64"),)),
    ),
    edge_types=(EdgeType(src_type="user", relation="buys", dst_type="item", features=(Feature(name="paid"), Feature(name="due"))),),
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
    ],
)
def test_a_condition_has_one_canonical_text(text: str, canonical: str) -> None:
    found = parse(text)
    assert found.canonical == canonical
    assert parse(canonical).tree == found.tree
    assert parse(canonical).canonical == canonical


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a text of 1 to 10000 characters"),
        ("price", "character 6: found the end, expected a comparison"),
        ("price > 3 price", "character 11: found 'price', expected 'and', 'or' or the end"),
        ("(price > 3", r"character 11: found the end, expected 'and', 'or' or '\)'"),
        ("price > 3)", r"character 10: found '\)'"),
        ("and", "character 1: found 'and', expected a test"),
        ("1 < price < 3", "character 11: found '<', expected 'and' between two comparisons"),
        ("1 < 2", "character 1: found 1 < 2, expected a column on one side"),
        ("price in ()", r"character 11: found '\)', expected a number"),
        ("price in (a)", "character 11: found a, expected a number"),
        ("price in 3", r"character 10: found '3', expected '\('"),
        ("price between 3", "character 16: found the end, expected 'and'"),
        ("price is 3", "character 10: found '3', expected 'null' or 'not null'"),
        ("price not 3", "character 11: found '3', expected 'in' or 'between'"),
        ("price[x] > 3", "character 7: found 'x', expected the place of a value"),
        ("price[-1] > 3", "character 7: found '-1', expected the place of a value"),
        ("price > 'a", 'character 9: found "\'"'),
        ("price > 3x", "character 10: found 'x', expected a space or a sign behind a number"),
        ("price + 1 > 3", r"character 7: found '\+'"),
        ("f(price) > 3", r"character 2: found '\('"),
        ("price > 1e999", "character 9: found 1e999, expected a number that fits float64"),
        ("price > 18446744073709551616", "expected a whole number of 64 bits"),
        ("``> 3", "expected a column's name between backticks"),
        ("src. > 3", "character 6: found '>', expected a column's name"),
        ("price; drop", "character 6: found ';'"),
        (" or ".join(["a > 1"] * 400), "more than 999 names, values and signs"),
        ("(" * (MAX_DEPTH + 1) + "a > 1" + ")" * (MAX_DEPTH + 1), "at most 50 brackets"),
    ],
)
def test_what_is_no_condition_is_refused_with_its_place_and_what_was_expected(text: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        parse(text)


def test_the_deepest_condition_that_is_allowed_is_read() -> None:
    deep = "not (a > 1 and " * MAX_DEPTH + "b > 1" + ")" * MAX_DEPTH
    assert parse(parse(deep).canonical).tree == parse(deep).tree
    assert parse("not " * 990 + "a > 1").canonical == "a > 1"


_WORDS = ["a", "`b c`", "src.x", "1", "-2.5", "'t'", "(", ")", "[", "]", ",", "and", "or", "not", "in", "between", "is", "null", "true", *COMPARISONS]


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(_WORDS), max_size=30).map(" ".join)))
@example("a" * 10_000)
@example("\x00")
@example("\ud800 > 1")
@example("'\ud800' == a")
def test_no_text_becomes_anything_but_tests_of_columns(text: str) -> None:
    try:
        found = parse(text)
    except InvalidRequest:
        return
    for term in terms(found.tree):
        assert term.word in (*COMPARISONS, "in", "between", "null")
        assert all(isinstance(each, Column) or isinstance(each.value, bool | int | float | str) for each in term.right)
    assert parse(found.canonical).tree == found.tree


_LITERALS = st.one_of(st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False))
_COLUMNS = st.sampled_from(["i", "f", "d", "u", "b"]).map(lambda name: Column(name=name))
_TERMS = st.one_of(
    st.builds(
        lambda word, left, right: Term(word=word, left=left, right=(right,)),
        st.sampled_from(COMPARISONS),
        _COLUMNS,
        st.one_of(_COLUMNS, _LITERALS.map(lambda v: Literal(value=v))),
    ),
    st.builds(
        lambda left, values: Term(word="in", left=left, right=tuple(Literal(value=v) for v in values)),
        _COLUMNS,
        st.lists(_LITERALS, min_size=1, max_size=4),
    ),
    st.builds(lambda left, a, b: Term(word="between", left=left, right=(Literal(value=a), Literal(value=b))), _COLUMNS, _LITERALS, _LITERALS),
    st.builds(lambda left: Term(word="null", left=left), _COLUMNS),
)
_TREES: st.SearchStrategy[Tree] = st.recursive(
    _TERMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).flatmap(lambda of: st.sampled_from(["and", "or"]).map(lambda word: combined(word, of))),
        inner.map(lambda each: combined("not", [each])),
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


def _numpy(tree: Tree) -> np.ndarray:
    """What NumPy says, one row after another."""
    if isinstance(tree, Combined):
        found = [_numpy(each) for each in tree.of]
        return ~found[0] if tree.word == "not" else np.logical_and.reduce(found) if tree.word == "and" else np.logical_or.reduce(found)
    assert isinstance(tree, Term)
    left = VALUES[tree.left.name]
    right = [each.value if isinstance(each, Literal) else VALUES[each.name] for each in tree.right]
    match tree.word:
        case "null":
            return np.isnan(left.astype(np.float64))
        case "between":
            return np.logical_and(left >= right[0], left <= right[1])
        case "in":
            return np.logical_or.reduce([left == value for value in right])
        case word:
            return np.asarray(eval(f"left {word} right", {"left": left, "right": right[0]}))


@given(_TREES)
@example(Term(word="==", left=Column(name="f"), right=(Literal(value=0.1),)))
@example(Term(word=">", left=Column(name="i"), right=(Literal(value=2**53),)))
@example(Term(word=">", left=Column(name="i"), right=(Literal(value=float(2**53)),)))
@example(Term(word="<", left=Column(name="u"), right=(Literal(value=300),)))
def test_any_condition_is_what_numpy_says_and_survives_being_written_down(tree: Tree) -> None:
    with np.errstate(all="ignore"):
        expected = _numpy(tree)
    found = satisfied(tree, lambda column: VALUES[column.name], 7)
    assert found.dtype == np.bool_
    assert found.tolist() == expected.tolist()
    again = satisfied(parse(str(tree)).tree, lambda column: VALUES[column.name], 7)
    assert again.tolist() == expected.tolist()


@given(st.lists(st.text("ab'\\é", max_size=3), max_size=8), st.lists(st.text("ab'\\é", max_size=3), min_size=1, max_size=3))
def test_texts_are_compared_whole_byte_by_byte(rows: list[str], wanted: list[str]) -> None:
    encoded = [row.encode() for row in rows]
    indptr = np.r_[0, np.cumsum([len(each) for each in encoded])].astype(np.int64)
    column = Lists(indptr=indptr, values=np.frombuffer(b"".join(encoded), np.uint8))

    def of(text: str) -> list[bool]:
        def read(_: Column) -> Values:
            return column

        return satisfied(parse(text).tree, read, len(rows)).tolist()

    listed = ", ".join(str(Literal(value=each)) for each in wanted)
    assert of(f"t in ({listed})") == [row in wanted for row in rows]
    assert of(f"t not in ({listed})") == [row not in wanted for row in rows]
    assert of(f"t == {Literal(value=wanted[0])}") == [row == wanted[0] for row in rows]
    assert of(f"t != {Literal(value=wanted[0])}") == [row != wanted[0] for row in rows]
    assert of("t is null") == [not row for row in rows]


def test_tests_of_the_type_are_folded_in_and_decide_what_is_asked_of_it() -> None:
    condition = parse("price > 3 and type == 'item' or age < 9 and type == 'user'")
    assert str(bound(condition, SCHEMA, NODE, 0)) == "price > 3"
    assert str(bound(condition, SCHEMA, NODE, 1)) == "age < 9"
    assert bound(parse("type in ('user') and prize > 3"), SCHEMA, NODE, 0) == Always(holds=False)
    assert str(bound(parse("type != 'buys' or src.type == 'user' and paid > 3"), SCHEMA, EDGE, 0)) == "paid > 3"
    assert bound(parse("price is null and id is null"), SCHEMA, NODE, 0) == Always(holds=False)
    with pytest.raises(NotFound, match="character 1: node type 'item' has no feature 'price'; it has none"):
        bound(condition, Schema(node_types=(SCHEMA.node_types[1], NodeType(name="item"))), NODE, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("v > 3", r"expected one of its values, v\[0\] to v\[3\]"),
        ("v[4] > 3", r"expected \[0\] to \[3\]"),
        ("price[0] > 3", r"expected no \[ \]"),
        ("id[0] > 3", r"expected no \[ \]"),
        ("brand < 'a'", "expected ==, != , 'in'|expected ==, !=, 'in' or 'is null'"),
        ("brand == 3", "expected no comparison with 3"),
        ("price == 'a'", "expected no comparison with 'a'"),
        ("price == brand", "expected numbers on both sides"),
        ("price > 3 and type > 'a'", "expected ==, != or 'in', with names"),
        ("type == 'itme'", "no type 'itme'; there are item, user"),
        ("src.price > 3", "a node has no src"),
        ("`id` > 3", "no feature 'id'"),
    ],
)
def test_what_can_not_be_asked_of_a_column_is_refused(text: str, said: str) -> None:
    with pytest.raises(AsterismError, match=said):
        bound(parse(text), SCHEMA, NODE, 0)


def test_columns_of_an_edge_are_compared_where_they_are_kept_together() -> None:
    for text in ("paid > due", "src.age > src.id or id > 3", "src == dst", "weight > id"):
        if "src.age" not in text:
            bound(parse(text), SCHEMA, EDGE, 0)
    for text in ("paid > weight", "paid > dst.price", "src.age > dst.price", "src.age > src.id"):
        with pytest.raises(InvalidRequest, match="kept apart"):
            bound(parse(text), SCHEMA, EDGE, 0)
