"""Statements are read into the records that they say, written as they are read, and refused at the place where they are wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from asterism_proto.condition import parse
from asterism_proto.errors import InvalidRequest, Place, from_status
from graphd.statements.binding import Bindings, condition_of
from graphd.statements.pieces import ALLOWED
from graphd.statements.reading import read
from graphd.statements.records import Column, CreateSpace, Describe, Draw, DropSpace, EndJob, Limit, Named, Order, Parameter, Show, SubmitJob, Use

SAID = [
    "USE shop",
    "SHOW SPACES",
    "SHOW HOSTS GRAPH",
    "SHOW JOB 7",
    "SHOW CREATE SPACE shop",
    "DESCRIBE TAG item",
    "CREATE SPACE IF NOT EXISTS s (parts = 2, direction = 'both') TAG u (a float, v float[2, 3], t LIST<int64>) "
    "WEIGHTED WEIGHTS (c = \"w / a\", d = 'w' OR ZERO) "
    "GRAPH LABEL g INDEX (a, v[3], id) TIME r, EDGE e (r int) FROM u TO u INDEX (r) UNIQUE MISSING CREATE TIME r",
    "DROP SPACE IF EXISTS s",
    "SUBMIT JOB export-tables VERSION 3 WITH (format = 'csv', n = 4)",
    "STOP JOB $j",
    "RECOVER JOB 3",
    "RECOVER JOB",
    "EXPLAIN SAMPLE 5 VERTICES",
    "PROFILE SAMPLE 5 EDGES ON u:e:u WITHOUT REPLACEMENT",
    "SAMPLE $n VERTICES ON a, `b-c` WHERE price > 3 AND NOT (x[1] IN [1, 2] OR y IS NOT NULL) UNIFORM SEED 7 VERSION 2 YIELD id, price AS p",
    "SAMPLE 2 VERTICES LIKE [1, 2] ON a WEIGHT popular",
    "SAMPLE 2 NEIGHBORS FROM $ids ON u OVER a, b REVERSELY WEIGHT $w PADDED YIELD src, dst, $$.price, $^.age, `odd name`[2]",
    "SAMPLE 2 NEIGHBORS FROM [1] OVER * BIDIRECT",
    "TOP 3 NEIGHBORS FROM 1, 2 OVER a WHERE dst.price BETWEEN 1.5 AND 2e3",
    "SAMPLE LAYER 5 FROM $ids OVER a BY SQUARES",
    "SAMPLE LAYERS [5, $m] FROM $ids OVER a THEN b, c",
    "SAMPLE 5 NEGATIVES FROM $pairs ON item",
    "WALK 8 STEPS FROM $ids OVER a THEN b P 0.5 Q 2 RESTART 0.1 WALKS 10 DISTINCT",
    "GO FROM 1 OVER a YIELD dst | ORDER BY dst DESC, src | LIMIT 2, 3",
    "GO 2 STEPS FROM 1 OVER a SAMPLE [3, 4]",
    "GO 2 STEPS FROM 1 OVER a YIELD DISTINCT dst, $$.age AS age | LIMIT 3",
    "GO 1 TO 3 STEPS FROM 1 OVER a SAMPLE $counts",
    "GO 2 STEPS FROM 1 OVER a BIDIRECT LIMIT [3, $n] | LIMIT 4",
    "FETCH PROP ON item 1, 2 YIELD price",
    "FETCH PROP ON u:buys:item 1 -> -2, \"a\" -> 'b', $s->$d YIELD rating",
    "DESCRIBE EDGE u:buys:item",
]


@pytest.mark.parametrize("text", SAID)
def test_a_statement_is_written_as_what_it_was_read(text: str) -> None:
    (once,) = read(text)
    (again,) = read(str(once))
    assert again == once
    assert str(again) == str(once)
    assert read(text.replace(" ", "\n") if "'" not in text and "`" not in text else text)[0] == once


def test_each_statement_becomes_the_record_of_its_kind() -> None:
    kinds = [type(read(text)[0].body) for text in SAID]
    assert kinds[:12] == [Use, Show, Show, Show, Show, Describe, CreateSpace, DropSpace, SubmitJob, EndJob, EndJob, EndJob]
    draws = [read(text)[0].body for text in SAID[12:]]
    assert {draw.kind for draw in draws if isinstance(draw, Draw)} == set(ALLOWED)


def test_words_are_in_either_case_and_names_may_be_words_where_none_can_come() -> None:
    assert read("sample 5 vertices on limit, `seed` where `where` == 1 yield layer as step seed 3")[0].body == Draw(
        kind="vertices",
        count=5,
        types=read("SAMPLE 1 VERTICES ON limit, seed")[0].body.types,  # type: ignore[union-attr]
        options=read("SAMPLE 1 VERTICES WHERE `where` == 1 SEED 3 YIELD layer AS step")[0].body.options,  # type: ignore[union-attr]
    )


def test_comments_and_line_breaks_are_nothing_and_statements_are_told_apart_by_semicolons() -> None:
    found = read("# first\nUSE shop; // then\n/* several\nlines; */ SHOW\nSPACES;;")
    assert [str(one) for one in found] == ["USE `shop`", "SHOW SPACES"]
    assert read("  # nothing but this") == ()


@pytest.mark.parametrize(
    ("nebula", "ours"),
    [
        ("id($$)", Column(name=Named(text="id"), of="far")),
        ("src(edge)", Column(name=Named(text="src"))),
        ("rank(edge)", Column(name=Named(text="edge_id"))),
        ("properties($^).age", Column(name=Named(text="age"), of="near", quoted=True)),
        ("properties(vertex).age", Column(name=Named(text="age"), quoted=True)),
        ("$$.item.price", Column(name=Named(text="price"), of="far")),
        ("buys._dst", Column(name=Named(text="dst"))),
        ("buys.rating", Column(name=Named(text="rating"))),
        ("src.age", Column(name=Named(text="age"), of="src")),
    ],
)
def test_columns_are_read_as_nebula_writes_them(nebula: str, ours: Column) -> None:
    body = read(f"GO FROM 1 OVER buys YIELD {nebula} AS x")[0].body
    assert isinstance(body, Draw)
    assert body.options.items[0].column == ours


def test_a_pipe_puts_rows_in_order_and_keeps_some() -> None:
    body = read("GO FROM 1 OVER a YIELD dst | ORDER BY $-.dst DESC | LIMIT 5")[0].body
    assert isinstance(body, Draw)
    assert body.options.shape == (Order(keys=((Named(text="dst"), True),)), Limit(count=5))


@pytest.mark.parametrize(
    ("where", "as_sent"),
    [
        ("price == 3 AND NOT brand IN ['a', \"b'c\"]", r"price == 3 and not brand in ( 'a' , 'b\'c' )"),
        ("price=3 && x || !y IS NULL", "price == 3 and x"),
        ("$$.item.price > $least", "dst.price > 3"),
        ("$^.age > 3 AND id($$) == 4", "src.age > 3 and dst == 4"),
        ("brand IN $brands", "brand in ('a', 'b')"),
        ("`weight` > 1 and weight > 1", "`weight` > 1 and weight > 1"),
        ("rank(edge) == 4", "id == 4"),
    ],
)
def test_a_condition_is_written_in_the_language_of_conditions(where: str, as_sent: str) -> None:
    if "||" in where:
        with pytest.raises(InvalidRequest, match="found '\\|\\|'"):
            read(f"GO FROM 1 OVER a WHERE {where}")
        return
    text = f"GO FROM 1 OVER a WHERE {where}"
    body = read(text)[0].body
    assert isinstance(body, Draw)
    condition = condition_of(body.options.where, Bindings(text=text, values={"least": 3, "brands": ("a", "b")}), reverse=False)
    assert condition.text == as_sent
    parse(condition.text)
    for here, there in condition.starts:
        assert condition.at(here) == there
        assert text[there] not in " \n"


def test_against_the_edges_the_far_end_is_the_source() -> None:
    body = read("GO FROM 1 OVER a REVERSELY WHERE $$.price > 3 AND $^.age < 4")[0].body
    assert isinstance(body, Draw)
    assert condition_of(body.options.where, Bindings(text="", values={}), reverse=True).text == "src.price > 3 and dst.age < 4"


@pytest.mark.parametrize(
    ("text", "line", "column", "said", "incomplete"),
    [
        ("SAMPLE", 1, 7, "found the end, expected a $parameter", True),
        ("SAMPLE 5 VERTICES WHERE price >", 1, 32, "found the end", True),
        ("USE 'shop", 1, 10, "found the end inside of a text, expected the closing '", True),
        ("USE `shop", 1, 10, "found the end inside of a name between backticks", True),
        ("SHOW SPACES /* so", 1, 18, "found the end inside of a comment, expected the closing */", True),
        ("SAMPLE 5 VERTICES\n  WHERE price >> 3", 2, 16, "found '>'", False),
        ("SELECT 1", 1, 1, "found 'SELECT', expected CREATE, DESC", False),
        ("SAMPLE 5 VERTICES SEED 1 SEED 2", 1, 26, "found SEED a second time", False),
        ("SAMPLE 5 VERTICES REVERSELY", 1, 19, "REVERSELY or BIDIRECT in VERTICES", False),
        ("SAMPLE 99999999999999999999 VERTICES", 1, 8, "a whole number of 64 bits", False),
        ("SAMPLE 5 VERTICES SEED 1e999", 1, 24, "a number that fits float64", False),
        ("GO FROM 1 OVER a YIELD properties($$)", 1, 24, "properties(...).NAME", False),
        ("CREATE SPACE s TAG a UNIQUE", 1, 22, "UNIQUE of a TAG", False),
        ("USE a b", 1, 7, "found 'b', expected ;, the end", False),
        ("USE sh%op", 1, 7, "found '%'", False),
    ],
)
def test_what_is_wrong_is_shown_with_its_line_and_a_caret(text: str, line: int, column: int, said: str, incomplete: bool) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read(text)
    place = refused.value.place
    assert place is not None
    assert (place.line, place.column, place.incomplete) == (line, column, incomplete)
    assert place.expected
    first, shown, caret = refused.value.message.splitlines()
    assert first.startswith(f"line {line}, column {column}: ")
    assert said in first
    assert shown == f"  {text.splitlines()[line - 1]}"
    assert caret.index("^") == column + 1


def test_a_long_line_is_shown_around_its_fault() -> None:
    with pytest.raises(InvalidRequest) as refused:
        read("SAMPLE 5 VERTICES WHERE " + " AND ".join(["price > 3"] * 500) + " AND > 3")
    shown, caret = refused.value.message.splitlines()[1:]
    assert len(shown) <= 202
    assert shown[caret.index("^") :] == "> 3"


def test_the_page_has_every_word_of_the_grammar_and_no_other(root: Path) -> None:
    grammar = (root / "services/graphd/statements/ngql.lark").read_text()
    words = set(re.findall(r'^[A-Z]+: "([A-Z]+)"i$', grammar, re.MULTILINE)) | {"AND", "OR", "NOT"}
    page = (root / "docs/statements.md").read_text()
    shown = set(re.findall(r'"([A-Z]+)"', page[page.index("## The whole grammar") :]))
    assert shown == words


def test_a_text_is_bounded() -> None:
    with pytest.raises(InvalidRequest, match="expected 65536 at most"):
        read("SHOW SPACES" + " " * 70_000)


def test_what_is_remembered_of_texts_has_a_bound() -> None:
    short, long = "SAMPLE 5 VERTICES", "SAMPLE 5 VERTICES ON " + ", ".join(["item"] * 2000)
    assert read(short) is read(short)
    assert read(long) is not read(long)
    assert read(long) == read(long)


def test_brackets_around_brackets_and_many_columns_are_refused_soon() -> None:
    deep = "(" * 30_000
    with pytest.raises(InvalidRequest, match="a condition of more than 1000 words"):
        read(f"SAMPLE 1 VERTICES WHERE {deep}a == 1{')' * 30_000}")
    with pytest.raises(InvalidRequest, match="found 257 columns, expected 256 at most"):
        read(f"SAMPLE 1 VERTICES YIELD {', '.join(['a'] * 257)}")
    with pytest.raises(InvalidRequest) as refused:
        read(f"USE '{'x' * 60_000}'")
    assert len(refused.value.message) < 1000


def test_the_place_of_an_error_crosses_the_wire() -> None:
    place = Place(line=3, column=4, expected=("a name", "„"), incomplete=True)
    assert place.to_json().isascii()
    assert from_status("INVALID_ARGUMENT", "m", "InvalidRequest", place.to_json()).place == place
    for damaged in ("", "{", "[]", '{"line": 1}', '{"line": "x", "column": 1, "expected": [], "incomplete": false}'):
        assert from_status("INVALID_ARGUMENT", "m", "InvalidRequest", damaged).place is None


def test_a_parameter_that_was_not_given_is_named_with_its_place() -> None:
    text = "SAMPLE $n VERTICES"
    body = read(text)[0].body
    assert isinstance(body, Draw)
    assert body.count == Parameter(name="n")
    with pytest.raises(InvalidRequest, match=r"(?s)column 8: found \$n, which was not given, expected one of the parameters \(\$m\)"):
        Bindings(text=text, values={"m": 3}).whole(body.count, "a number of rows")
    for value, said in ((1.5, "= 1.5, expected a whole number"), (True, "= True, expected a whole number"), (("a",), "= a list, expected one value")):
        with pytest.raises(InvalidRequest, match=said):
            Bindings(text=text, values={"n": value}).whole(body.count, "a number of rows")
