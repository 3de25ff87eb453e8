"""Tests of the console's statements: confirmation, help, suggestions, tables of results."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

from asterism.cli.console.results import (
    Format,
    build_table,
    plain_rows,
    shorten_vector,
    write_result,
)
from asterism.cli.console.scripts import iter_statements, located_message, run_script
from asterism.cli.console.session import (
    HELP,
    STATEMENTS,
    Console,
    StatementDeclined,
    dropped_space,
    suggestion,
)
from asterism.records.query_result import QueryResult
from asterism_proto.errors import InvalidRequest, NotFound, SourceLocation
from graphd.query.ngql_parser import parse

PRICES = np.array([26.79, 16.1], np.float32)


def result(**columns: Any) -> QueryResult:
    return QueryResult(
        columns=tuple(columns),
        types=tuple("float32" for _ in columns),
        values=columns,
        length=2,
        kind="fetch",
        space="shop",
        version=1,
    )


class Client:
    """A client that records statements and returns an empty result."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def query(self, text: str, parameters: Any, *, space: str | None, language: str) -> QueryResult:
        self.statements.append(text)
        return QueryResult(
            columns=(), types=(), values={}, length=0, kind="drop", space="", version=0
        )


def console(answer: bool | None) -> tuple[Console, Client, list[str]]:
    """Return a console, its client, and the questions that it asks."""
    questions: list[str] = []
    client: Any = Client()

    def confirm(question: str) -> bool:
        questions.append(question)
        return bool(answer)

    made = Console(client=client, out=io.StringIO(), confirm=None if answer is None else confirm)
    return made, client, questions


@pytest.mark.parametrize(
    ("text", "space"),
    [
        ("DROP SPACE big2", "big2"),
        ("drop space if exists `big 2`", "big 2"),
        ("DROP /* all */ SPACE big2 # end", "big2"),
        ("DROP SPACE", ""),
        ("SHOW SPACES", ""),
        ("CREATE SPACE drop (parts = 2)", ""),
    ],
)
def test_a_statement_that_drops_a_space_is_recognized(text: str, space: str) -> None:
    assert dropped_space(text) == space


def test_drop_asks_and_a_no_keeps_the_space() -> None:
    made, client, questions = console(answer=False)
    with pytest.raises(StatementDeclined, match="space big2 is not dropped"):
        made.run("DROP SPACE big2")
    assert client.statements == []
    assert questions == ["Drop the space 'big2' with all its data?"]


def test_drop_runs_after_a_yes_and_in_scripts() -> None:
    for answer in (True, None):
        made, client, _ = console(answer)
        made.run("DROP SPACE big2")
        assert client.statements == ["DROP SPACE big2"]


@pytest.mark.parametrize("text", ["help", "HELP", ":help", ":help;"])
def test_help_lists_commands_and_statements(text: str) -> None:
    made, client, _ = console(None)
    made.run(text)
    shown = made.out.getvalue()  # type: ignore[attr-defined]
    assert client.statements == []
    assert all(name in shown for name in (*HELP, *STATEMENTS))


@pytest.mark.parametrize("form", [form for form in STATEMENTS if form != "EXPLAIN statement"])
def test_statements_of_the_help_are_valid(form: str) -> None:
    parse(form)


@pytest.mark.parametrize(
    ("text", "column", "expected", "meant"),
    [
        ("SAMPL 3 VERTICES ON item", 1, ("SAMPLE", "SHOW", "a name"), "SAMPLE"),
        ("SAMPLE 3 VERTEX ON item", 10, ("VERTICES", "EDGES"), "VERTICES"),
        ("SAMPLE 3 FOO ON item", 10, ("VERTICES", "EDGES"), ""),
        ("SAMPLE 3", 9, ("VERTICES", "EDGES"), ""),
    ],
)
def test_a_misspelled_keyword_has_a_suggestion(
    text: str, column: int, expected: tuple[str, ...], meant: str
) -> None:
    assert suggestion(text, SourceLocation(line=1, column=column, expected=expected)) == meant
    assert suggestion(text, None) == ""


def test_a_script_reports_the_column_of_the_file() -> None:
    lines = ["USE shop; SAMPL\n", "  3;  GO\n", "FROM;\n"]
    statements = list(iter_statements(lines))
    assert [(s.text, s.line, s.column) for s in statements] == [
        ("USE shop", 1, 1),
        ("SAMPL\n  3", 1, 11),
        ("GO\nFROM", 2, 7),
    ]
    place = SourceLocation(line=1, column=1, expected=("SAMPLE",))
    error = InvalidRequest("line 1, column 1: found 'SAMPL'\n  SAMPL\n  ^", place)
    assert located_message(error, "a.ngql", statements[1]) == (
        "a.ngql:1: column 11: found 'SAMPL'; did you mean SAMPLE?\n  SAMPL\n  ^"
    )
    error = InvalidRequest("line 2, column 3: no", SourceLocation(line=2, column=3))
    assert located_message(error, "a.ngql", statements[1]) == "a.ngql:2: column 3: no"


def test_errors_of_a_script_are_json_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    made, client, _ = console(None)
    made.as_json = True

    def fail(*arguments: Any, **options: Any) -> Any:
        raise NotFound("no space", SourceLocation(line=1, column=5))

    client.query = fail  # type: ignore[method-assign]
    run_script(made, ["USE shp;\n"], "-e", keep_going=True)
    shown = json.loads(capsys.readouterr().err)
    assert shown["message"] == "-e:1: column 5: no space"
    assert (shown["error"], shown["exit_code"], shown["column"]) == ("NotFound", 3, 5)


def test_float32_columns_have_shortest_numbers() -> None:
    vectors = np.array([[0.1, 0.2], [1, 2]], np.float32)
    ragged: Any = (np.array([0, 1, 3]), np.array([26.79, 0.3, 0.7], np.float32))
    table = result(price=PRICES, vector=vectors, words=ragged)
    assert list(plain_rows(table)) == [
        (26.79, [0.1, 0.2], [26.79]),
        (16.1, [1.0, 2.0], [0.3, 0.7]),
    ]
    assert list(plain_rows(table, 1)) == [(26.79, [0.1, 0.2], [26.79])]


@pytest.mark.parametrize("form", [Format.CSV, Format.TSV, Format.JSON, Format.TABLE])
def test_no_format_widens_a_float32(form: Format) -> None:
    out = io.StringIO()
    write_result(result(price=PRICES), form, out, for_terminal=False)
    assert "26.79" in out.getvalue()
    assert "26.790" not in out.getvalue()


def test_vectors_are_shortened_at_a_terminal_only() -> None:
    vector = [0.12345678, 1.0, 3.0, 4.0, 5.0]
    assert shorten_vector(vector) == "[0.123457, 1, 3, … 5 values]"
    assert shorten_vector(vector[:4]) == "[0.123457, 1, 3, 4]"
    assert shorten_vector([[1, 2], [3, 4]]) == "[[1, 2], [3, 4]]"
    assert shorten_vector([]) == "[]"
    rows = [(7, vector)]
    assert build_table(("id", "vector"), rows, shorten=True).rows[0][1].endswith("… 5 values]")
    assert build_table(("id", "vector"), rows, shorten=False).rows[0][1] == json.dumps(vector)


def test_times_of_jobs_are_readable_and_features_unchanged() -> None:
    row = (7, 1795576338790, 0)
    columns = ("job", "submitted_ms", "finished_ms")
    jobs = build_table(columns, [row], shorten=True, has_times=True)
    assert jobs.columns == ("job", "submitted (UTC)", "finished (UTC)")
    assert jobs.rows == (("7", "2026-11-25 03:12:18", "-"),)
    assert build_table(columns, [row], shorten=True).rows == (("7", "1795576338790", "0"),)


def test_control_characters_of_data_are_escaped_in_lists_too() -> None:
    table = build_table(("title", "tags"), [("a\x1b[31m", ["\x1b[31m"])], shorten=True)
    assert table.rows == ((r"a\x1b[31m", r"[\x1b[31m]"),)
