"""Tests that statements are parsed into records, printed back, and refused with positions."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len

from asterism_model.filters.syntax import parse
from asterism_proto.errors import InvalidRequest, SourceLocation, from_status
from graphd.query.ast import (
    ColumnRef,
    ControlJobStatement,
    CreateSpaceStatement,
    DescribeStatement,
    DrawStatement,
    DropSpaceStatement,
    GrantRoleStatement,
    Identifier,
    Limit,
    OrderBy,
    Parameter,
    RevokeRoleStatement,
    ShowStatement,
    SubmitJobStatement,
    UseStatement,
)
from graphd.query.errors import located_error
from graphd.query.ngql_parser import parse as parse_statements
from graphd.query.ngql_tree_builder import ALLOWED_OPTIONS
from graphd.query.parameters import ParameterBindings, build_filter_text

STATEMENTS = [
    "USE shop",
    "SHOW SPACES",
    "SHOW HOSTS GRAPH",
    "SHOW JOB 7",
    "SHOW CREATE SPACE shop",
    "DESCRIBE TAG item",
    "CREATE SPACE IF NOT EXISTS s (parts = 2, direction = 'both') TAG u (a float, v float[2, "
    "3], t LIST<int64>) "
    "WEIGHTED WEIGHTS (c = \"w / a\", d = 'w' OR ZERO) "
    "GRAPH LABEL g INDEX (a, v[3], id) TIME r, EDGE e (r int) FROM u TO u INDEX (r) UNIQUE "
    "MISSING CREATE TIME r",
    "DROP SPACE IF EXISTS s",
    "SUBMIT JOB export-tables VERSION 3 WITH (format = 'csv', n = 4)",
    "STOP JOB $j",
    "RECOVER JOB 3",
    "RECOVER JOB",
    "EXPLAIN SAMPLE 5 VERTICES",
    "PROFILE SAMPLE 5 EDGES ON u:e:u WITHOUT REPLACEMENT",
    (
        "SAMPLE $n VERTICES ON a, `b-c` WHERE price > 3 AND NOT (x[1] IN [1, 2] OR y IS NOT "
        "NULL) UNIFORM SEED 7 VERSION 2 YIELD id, price AS p"
    ),
    "SAMPLE 2 VERTICES LIKE [1, 2] ON a WEIGHT popular",
    (
        "SAMPLE 2 NEIGHBORS FROM $ids ON u OVER a, b REVERSELY WEIGHT $w PADDED YIELD src, dst, "
        "$$.price, $^.age, `odd name`[2]"
    ),
    "SAMPLE 2 NEIGHBORS FROM [1] OVER * BIDIRECT",
    "TOP 3 NEIGHBORS FROM 1, 2 OVER a WHERE dst.price BETWEEN 1.5 AND 2e3",
    "SAMPLE LAYER 5 FROM $ids OVER a BY SQUARES",
    "SAMPLE LAYERS [5, $m] FROM $ids OVER a THEN b, c",
    "SAMPLE 5 NEGATIVES FROM $pairs ON item",
    "GO FROM 1 OVER a EXCLUDE 1 -> 2, 'x' -> \"y\" @ 3, $s -> $d @ $e REVERSELY YIELD dst",
    "GO FROM 1 OVER a EXCLUDE ON u:buys:item 1 -> 2 REVERSE `b c` EXCLUDE ON b 3 -> 4 REVERSE r",
    "WALK 8 STEPS FROM $ids OVER a THEN b P 0.5 Q 2 RESTART 0.1 WALKS 10 DISTINCT",
    "GO FROM 1 OVER a YIELD dst | ORDER BY dst DESC, src | LIMIT 2, 3",
    "GO 2 STEPS FROM 1 OVER a SAMPLE [3, 4]",
    "GO 2 STEPS FROM 1 OVER a YIELD DISTINCT dst, $$.age AS age | LIMIT 3",
    "GO 1 TO 3 STEPS FROM 1 OVER a SAMPLE $counts",
    "GO 2 STEPS FROM 1 OVER a BIDIRECT LIMIT [3, $n] | LIMIT 4",
    "GO 0 TO 3 STEPS FROM 1 OVER a YIELD count(*) | LIMIT 1",
    "GO FROM 1 OVER a WHERE w IN [] AND NOT x IN () YIELD COUNT(*) AS n",
    "GO FROM 1 OVER a YIELD DISTINCT dst | YIELD count(*) AS `n m`",
    "FETCH PROP ON item 1, 2 YIELD count(*)",
    "FETCH PROP ON item 1, 2 YIELD price",
    "FETCH PROP ON u:buys:item 1 -> -2, \"a\" -> 'b', $s->$d YIELD rating",
    "DESCRIBE EDGE u:buys:item",
    "GRANT ROLE reader ON shop TO alice",
    'grant role `Admin` on * to "alice@example.com"',
    "GRANT ROLE WRITER ON `a-b` TO $who",
    "REVOKE ROLE ON shop FROM alice",
    "REVOKE ROLE USER ON * FROM 'al`ice'",
    "SHOW ROLES",
    "SHOW ROLES ON shop",
    "SHOW ROLES IN *",
    "SHOW API KEYS",
]


@pytest.mark.parametrize("text", STATEMENTS)
def test_statement_round_trips_through_text(text: str) -> None:
    (parsed,) = parse_statements(text)
    (reparsed,) = parse_statements(str(parsed))
    assert reparsed == parsed
    assert str(reparsed) == str(parsed)
    assert (
        parse_statements(text.replace(" ", "\n") if "'" not in text and "`" not in text else text)[
            0
        ]
        == parsed
    )


def test_each_statement_becomes_the_record_of_its_kind() -> None:
    kinds = [type(parse_statements(text)[0].body) for text in STATEMENTS]
    assert kinds[:12] == [
        UseStatement,
        ShowStatement,
        ShowStatement,
        ShowStatement,
        ShowStatement,
        DescribeStatement,
        CreateSpaceStatement,
        DropSpaceStatement,
        SubmitJobStatement,
        ControlJobStatement,
        ControlJobStatement,
        ControlJobStatement,
    ]
    assert kinds[-9:] == [GrantRoleStatement] * 3 + [RevokeRoleStatement] * 2 + [ShowStatement] * 4
    draws = [parse_statements(text)[0].body for text in STATEMENTS[12:]]
    assert {draw.kind for draw in draws if isinstance(draw, DrawStatement)} == set(ALLOWED_OPTIONS)


def test_keywords_ignore_case_and_may_serve_as_names() -> None:
    assert parse_statements(
        "sample 5 vertices on limit, `seed` where `where` == 1 yield layer as step seed 3"
    )[0].body == DrawStatement(
        kind="vertices",
        count=5,
        types=parse_statements("SAMPLE 1 VERTICES ON limit, seed")[0].body.types,  # type: ignore[union-attr]
        options=parse_statements("SAMPLE 1 VERTICES WHERE `where` == 1 SEED 3 YIELD layer AS step")[
            0
        ].body.options,  # type: ignore[union-attr]
    )


def test_comments_are_skipped_and_semicolons_separate() -> None:
    statements = parse_statements(
        "# first\nUSE shop; // then\n/* several\nlines; */ SHOW\nSPACES;;"
    )
    assert [str(statement) for statement in statements] == ["USE `shop`", "SHOW SPACES"]
    assert parse_statements("  # nothing but this") == ()


@pytest.mark.parametrize(
    ("nebula", "ours"),
    [
        ("id($$)", ColumnRef(name=Identifier(text="id"), end="far")),
        ("src(edge)", ColumnRef(name=Identifier(text="src"))),
        ("rank(edge)", ColumnRef(name=Identifier(text="edge_id"))),
        ("properties($^).age", ColumnRef(name=Identifier(text="age"), end="near", quoted=True)),
        ("properties(vertex).age", ColumnRef(name=Identifier(text="age"), quoted=True)),
        ("$$.item.price", ColumnRef(name=Identifier(text="price"), end="far")),
        ("buys._dst", ColumnRef(name=Identifier(text="dst"))),
        ("buys.rating", ColumnRef(name=Identifier(text="rating"))),
        ("src.age", ColumnRef(name=Identifier(text="age"), end="src")),
    ],
)
def test_columns_are_read_as_nebula_writes_them(nebula: str, ours: ColumnRef) -> None:
    body = parse_statements(f"GO FROM 1 OVER buys YIELD {nebula} AS x")[0].body
    assert isinstance(body, DrawStatement)
    assert body.options.items[0].column == ours


def test_pipe_orders_and_limits_rows() -> None:
    body = parse_statements("GO FROM 1 OVER a YIELD dst | ORDER BY $-.dst DESC | LIMIT 5")[0].body
    assert isinstance(body, DrawStatement)
    assert body.options.shape == (OrderBy(keys=((Identifier(text="dst"), True),)), Limit(count=5))


@pytest.mark.parametrize(
    ("where", "as_sent"),
    [
        (
            "price == 3 AND NOT brand IN ['a', \"b'c\"]",
            r"price == 3 and not brand in ( 'a' , 'b\'c' )",
        ),
        ("price=3 && x || !y IS NULL", "price == 3 and x"),
        ("$$.item.price > $least", "dst.price > 3"),
        ("$^.age > 3 AND id($$) == 4", "src.age > 3 and dst == 4"),
        ("brand IN $brands", "brand in ('a', 'b')"),
        ("`weight` > 1 and weight > 1", "`weight` > 1 and weight > 1"),
        ("rank(edge) == 4", "id == 4"),
        ("price < $most AND price > $lowest", "price < +inf and price > -inf"),
        ("price BETWEEN $lowest AND $most", "price between -inf and +inf"),
        ("price NOT BETWEEN 3 AND $most", "price not between 3 and +inf"),
        ("price IN [$lowest, $most]", "price in ( -inf , +inf )"),
        ("brand == $brand", r"brand == 'inf\\\' or \'1\' == \'1'"),
        ("brand IN $none OR price IN []", "brand in () or price in ( )"),
        ("x < $tiny OR x > $large", "x < 5e-324 or x > 18446744073709551615"),
        ("x == $flag", "x == true"),
    ],
)
def test_where_clause_is_translated_to_filter_text(where: str, as_sent: str) -> None:
    if "||" in where:
        with pytest.raises(InvalidRequest, match="found '\\|\\|'"):
            parse_statements(f"GO FROM 1 OVER a WHERE {where}")
        return
    text = f"GO FROM 1 OVER a WHERE {where}"
    body = parse_statements(text)[0].body
    assert isinstance(body, DrawStatement)
    filter_text = build_filter_text(
        body.options.where,
        ParameterBindings(
            text=text,
            values={
                "least": 3,
                "brands": ("a", "b"),
                "most": math.inf,
                "lowest": np.array(-math.inf),
                "brand": "inf\\' or '1' == '1",
                "none": np.zeros(0, np.int64),
                "tiny": 5e-324,
                "large": np.array(2**64 - 1, np.uint64),
                "flag": True,
            },
        ),
        reverse=False,
    )
    assert filter_text.text == as_sent
    parse(filter_text.text)
    for filter_offset, statement_offset in filter_text.word_positions:
        assert filter_text.statement_position(filter_offset) == statement_offset
        assert text[statement_offset] not in " \n"


def test_remote_end_of_reversed_edges_is_the_source() -> None:
    body = parse_statements("GO FROM 1 OVER a REVERSELY WHERE $$.price > 3 AND $^.age < 4")[0].body
    assert isinstance(body, DrawStatement)
    assert (
        build_filter_text(
            body.options.where, ParameterBindings(text="", values={}), reverse=True
        ).text
        == "src.price > 3 and dst.age < 4"
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "said", "incomplete"),
    [
        ("SAMPLE", 1, 7, "found the end, expected a $parameter", True),
        ("SAMPLE 5 VERTICES WHERE price >", 1, 32, "found the end", True),
        ("USE 'shop", 1, 10, "found the end inside a string, expected the closing '", True),
        ("USE `shop", 1, 10, "found the end inside a name between backticks", True),
        (
            "SHOW SPACES /* so",
            1,
            18,
            "found the end inside a comment, expected the closing */",
            True,
        ),
        ("SAMPLE 5 VERTICES\n  WHERE price >> 3", 2, 16, "found '>'", False),
        ("SELECT 1", 1, 1, "found 'SELECT', expected CREATE, DESC", False),
        ("SAMPLE 5 VERTICES SEED 1 SEED 2", 1, 26, "found SEED twice", False),
        ("SAMPLE 5 VERTICES REVERSELY", 1, 19, "REVERSELY or BIDIRECT in VERTICES", False),
        ("SAMPLE 99999999999999999999 VERTICES", 1, 8, "a 64-bit integer", False),
        ("SAMPLE 5 VERTICES SEED 1e999", 1, 24, "a number that fits float64", False),
        ("GO FROM 1 OVER a YIELD properties($$)", 1, 24, "properties(...).NAME", False),
        ("CREATE SPACE s TAG a UNIQUE", 1, 22, "UNIQUE of a TAG", False),
        ("USE a b", 1, 7, "found 'b', expected ;, the end", False),
        ("USE sh%op", 1, 7, "found '%'", False),
    ],
)
def test_error_shows_its_line_and_a_caret(
    text: str, line: int, column: int, said: str, incomplete: bool
) -> None:
    with pytest.raises(InvalidRequest) as error:
        parse_statements(text)
    location = error.value.place
    assert location is not None
    assert (location.line, location.column, location.incomplete) == (line, column, incomplete)
    assert location.expected
    first, shown, caret = error.value.message.splitlines()
    assert first.startswith(f"line {line}, column {column}: ")
    assert said in first
    assert shown == f"  {text.splitlines()[line - 1]}"
    assert caret.index("^") == column + 1


def test_long_line_is_shown_around_its_error() -> None:
    with pytest.raises(InvalidRequest) as error:
        parse_statements(
            "SAMPLE 5 VERTICES WHERE " + " AND ".join(["price > 3"] * 500) + " AND > 3"
        )
    shown, caret = error.value.message.splitlines()[1:]
    assert len(shown) <= 202
    assert shown[caret.index("^") :] == "> 3"


def test_documented_keywords_are_those_of_the_grammar(root: Path) -> None:
    grammar = (root / "services/graphd/query/ngql.lark").read_text()
    keywords = set(re.findall(r'^[A-Z]+: "([A-Z]+)"i$', grammar, re.MULTILINE)) | {
        "AND",
        "OR",
        "NOT",
    }
    page = (root / "docs/statements.md").read_text()
    documented = set(re.findall(r'"([A-Z]+)"', page[page.index("## The whole grammar") :]))
    assert documented == keywords


def test_length_of_a_text_is_bounded() -> None:
    with pytest.raises(InvalidRequest, match="expected at most 65536"):
        parse_statements("SHOW SPACES" + " " * 70_000)


def test_cache_of_parsed_texts_is_bounded() -> None:
    short, long = "SAMPLE 5 VERTICES", "SAMPLE 5 VERTICES ON " + ", ".join(["item"] * 2000)
    assert parse_statements(short) is parse_statements(short)
    assert parse_statements(long) is not parse_statements(long)
    assert parse_statements(long) == parse_statements(long)


def test_deep_nesting_and_many_columns_are_refused() -> None:
    deep = "(" * 30_000
    with pytest.raises(InvalidRequest, match="a filter of more than 1000 words"):
        parse_statements(f"SAMPLE 1 VERTICES WHERE {deep}a == 1{')' * 30_000}")
    with pytest.raises(InvalidRequest, match="found 257 columns, expected 256 at most"):
        parse_statements(f"SAMPLE 1 VERTICES YIELD {', '.join(['a'] * 257)}")
    with pytest.raises(InvalidRequest) as error:
        parse_statements(f"USE '{'x' * 60_000}'")
    assert len(error.value.message) < 1000


def test_location_of_an_error_survives_the_wire() -> None:
    location = SourceLocation(line=3, column=4, expected=("a name", "„"), incomplete=True)
    assert location.to_json().isascii()
    assert (
        from_status("INVALID_ARGUMENT", "m", "InvalidRequest", location.to_json()).place == location
    )
    for damaged in (
        "",
        "{",
        "[]",
        '{"line": 1}',
        '{"line": "x", "column": 1, "expected": [], "incomplete": false}',
    ):
        assert from_status("INVALID_ARGUMENT", "m", "InvalidRequest", damaged).place is None


def test_parameters_without_a_meaning_in_a_filter_are_refused() -> None:
    text = "GO FROM 1 OVER a WHERE price IN $x"
    body = parse_statements(text)[0].body
    assert isinstance(body, DrawStatement)

    def filter_of(value: Any) -> str:
        bindings = ParameterBindings(text=text, values={"x": value})
        return build_filter_text(body.options.where, bindings, reverse=False).text

    assert filter_of(np.arange(500)).count(",") == 499
    with pytest.raises(InvalidRequest, match="501 values, expected at most 500 values in a filter"):
        filter_of(np.arange(501))
    for value in (math.nan, np.array([1.0, math.nan])):
        with pytest.raises(InvalidRequest, match=r"column 33: found \$x = nan, expected a number"):
            filter_of(value)


def test_ids_beyond_int64_are_refused_and_never_wrapped() -> None:
    bindings = ParameterBindings(
        text="", values={"one": np.array(2**63, np.uint64), "two": np.array([2**64 - 1], np.uint64)}
    )
    for ids in ((1, 2**63), Parameter(name="one"), Parameter(name="two")):
        with pytest.raises(InvalidRequest, match="below 2\\^63"):
            bindings.ids(ids)
    small = ParameterBindings(text="", values={"x": np.array([[1, 2]], np.uint8)})
    assert small.ids(Parameter(name="x")).dtype == np.int64
    assert small.ids(Parameter(name="x")).shape == (1, 2)


def test_missing_parameter_is_named_with_its_location() -> None:
    text = "SAMPLE $n VERTICES"
    body = parse_statements(text)[0].body
    assert isinstance(body, DrawStatement)
    assert body.count == Parameter(name="n")
    with pytest.raises(
        InvalidRequest,
        match=(
            r"(?s)column 8: found \$n, which was not given, expected one of the parameters "
            r"\(\$m\)"
        ),
    ):
        ParameterBindings(text=text, values={"m": 3}).integer(body.count, "a number of rows")
    for value, message in (
        (1.5, "= 1.5, expected an integer"),
        (True, "= True, expected an integer"),
        (("a",), "= a list, expected one value"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            ParameterBindings(text=text, values={"n": value}).integer(
                body.count, "a number of rows"
            )


def test_a_caret_is_below_its_column_after_wide_characters() -> None:
    text = "YIELD '世界', price"
    error = located_error(InvalidRequest, text, text.index("price"), "no column")
    _, excerpt, caret = error.message.split("\n")
    assert cell_len(caret) - 1 == cell_len(excerpt[: excerpt.index("price")])
