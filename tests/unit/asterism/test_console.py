"""Tests of console input: ends of statements, completion, history, parameters."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit.waiting import HANG_S

from asterism.cli.console import history
from asterism.cli.console import tokens as scanning
from asterism.cli.console.completion import (
    MAX_AGE_S,
    SchemaNameCache,
    SchemaNames,
    candidates,
    collect_names,
)
from asterism.cli.console.prompt import is_complete, split_statements
from asterism.cli.console.scripts import iter_statements
from asterism.cli.console.session import parse_parameter
from asterism.cli.console.tokens import (
    KEYWORDS,
    StatementSplitter,
    is_blank,
    statement_spans,
    tokenize,
)
from asterism.records.catalog import SpaceInfo
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest

SCHEMA = Schema.from_dict(
    {
        "nodes": {
            "user": {"features": {"age": "int64"}},
            "item": {"tables": {"popular": "pow(weight, 2)"}, "weighted": True},
        },
        "edges": {
            "user:buys:item": {"features": {"at": "int64"}},
            "user:likes:user": {},
            "user:likes:item": {},
        },
    }
)
SCHEMA_NAMES = collect_names(SCHEMA, ("shop", "shops", "other"))


def test_keywords_are_those_of_the_grammar(root: Path) -> None:
    grammar = (root / "services/graphd/query/ngql.lark").read_text()
    assert (
        set(re.findall(r'^[A-Z]+: "([A-Z]+)"i$', grammar, re.MULTILINE)) | {"AND", "OR", "NOT"}
        == KEYWORDS
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SHOW SPACES;", [("SHOW SPACES", 1)]),
        ("  a ; b\n;\n\nc", [("a", 1), ("b", 1), ("c", 4)]),
        ('a \'x;y\' "z\\";" `q;q` ; b', [('a \'x;y\' "z\\";" `q;q`', 1), ("b", 1)]),
        ("# one; two\n// three;\n/* four;\n five */ a /* ; */ b;", [("a /* ; */ b", 4)]),
        (";;\n;", []),
        (":use shop\nSHOW SPACES", [(":use shop", 1), ("SHOW SPACES", 2)]),
        ("a\n:use\n;", [("a\n:use", 1)]),
        ("# only this", []),
        ("a 'never closed;\nb;", [("a 'never closed;\nb;", 1)]),
        ("a;\n/* never closed;", [("a", 1), ("/* never closed;", 2)]),
    ],
)
def test_statements_of_a_text_with_their_lines(text: str, found: list[tuple[str, int]]) -> None:
    assert [
        (statement.text, statement.line)
        for statement in iter_statements(text.splitlines(keepends=True))
    ] == found


@given(
    st.lists(
        st.sampled_from(
            [
                "a",
                ";",
                "'",
                '"',
                "`",
                "\n",
                " ",
                "#",
                "//",
                "/*",
                "*/",
                "\\",
                "$x",
                "1.5",
                "a:b:c",
                "ü",
                ":",
            ]
        ),
        max_size=30,
    ).map("".join)
)
def test_tokens_cover_the_text_and_lines_split_alike(text: str) -> None:
    tokens = list(tokenize(text))
    assert "".join(text[token.start : token.end] for token in tokens) == text
    assert all(token.end > token.start for token in tokens)
    if not any(line.lstrip().startswith(":") for line in text.splitlines()):
        spans, _ = statement_spans(text)
        splitter = StatementSplitter()
        by_line = [
            statement.text
            for line in text.splitlines(keepends=True)
            for statement in splitter.feed(line)
        ]
        assert by_line == [text[start:end] for start, end in spans]


def test_endless_statement_is_refused_before_it_is_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scanning, "MAX_LENGTH", 100)
    with pytest.raises(InvalidRequest, match="line 1: a statement of more than 100 characters"):
        list(iter_statements("GO\n" for _ in range(1000)))


@pytest.mark.parametrize(
    ("typed", "language", "whole"),
    [
        ("SHOW", "ngql", False),
        ("SHOW SPACES;", "ngql", True),
        ("SHOW SPACES; # done", "ngql", True),
        ("SHOW ';", "ngql", False),
        ("SHOW\n", "ngql", True),
        (":use x", "ngql", True),
        ("quit", "ngql", True),
        ("help", "ngql", True),
        ("  ", "ngql", True),
        ("v(1).outV(e)", "euler", True),
        ("v('", "euler", False),
    ],
)
def test_enter_runs_complete_input(typed: str, language: str, whole: bool) -> None:
    assert is_complete(typed, language) is whole


def test_typed_text_is_split_into_statements() -> None:
    assert split_statements("a; b ;\n c") == ["a", "b", "c"]
    assert split_statements(" :param x = 'a;b'") == [":param x = 'a;b'"]
    assert is_blank(" # nothing\n")


@pytest.mark.parametrize(
    ("typed", "among", "not_among"),
    [
        ("SAM", {"SAMPLE"}, {"sample"}),
        ("sam", {"sample"}, {"SAMPLE"}),
        ("USE sh", {"shop", "shops"}, {"SHOW"}),
        ("USE ", {"shop", "shops", "other"}, {"SHOW"}),
        ("GO FROM 1 OVER ", {"buys", "user:likes:user", "user:likes:item"}, {"likes", "user"}),
        ("GO FROM 1 OVER buys, user:l", {"user:likes:user", "user:likes:item"}, {"buys"}),
        ("SAMPLE 3 VERTICES ON us", {"user", "user:buys:item"}, {"age"}),
        ("SAMPLE 3 VERTICES ON user WEIGHT po", {"popular"}, set()),
        ("SAMPLE 3 VERTICES ON user YIELD ag", {"age"}, {"user"}),
        ("SAMPLE 3 VERTICES ON user; SHOW SP", {"SPACES", "SPACE"}, {"shop"}),
        ("SHOW SPACES; GRANT ROLE ", {"reader", "admin"}, {"user"}),
        ("GRANT ROLE reader ON sh", {"shop", "shops"}, {"user"}),
        ("SHOW ROLES IN ", {"shop", "other"}, {"user"}),
        ("SHOW ROLES; SAMPLE 3 VERTICES ON us", {"user"}, {"shop"}),
        ("FETCH PROP ON user $", {"$ids", "$names"}, {"USE"}),
        ("FETCH PROP ON user $i", {"$ids"}, {"$names"}),
        ("YIELD 'sam", set(), {"sample"}),
        ("# sam", set(), {"sample"}),
        ("YIELD 12", set(), {"WHERE"}),
        (":u", {":use"}, {":quit"}),
        (":use sh", {"shop", "shops"}, {"other"}),
        (":language ", {"ngql", "euler"}, set()),
        (":export c", {"csv"}, {"json"}),
        (":export csv o", set(), {"other"}),
        ("", set(), {"SAMPLE"}),
    ],
)
def test_completion_candidates(typed: str, among: set[str], not_among: set[str]) -> None:
    completions = list(candidates(typed, SCHEMA_NAMES, ("ids", "names")))
    texts = {completion.text for completion in completions}
    assert among <= texts
    assert not not_among & texts
    for completion in completions:
        prefix = typed[len(typed) - completion.prefix_length :]
        assert completion.text.lower().startswith(prefix.lower())


def test_stale_schema_names_are_fetched_once_in_background() -> None:
    now, fetch_threads, release_reply = [0.0], [], threading.Event()

    class SlowClient:
        def spaces(self) -> list[Any]:
            fetch_threads.append(threading.current_thread())
            release_reply.wait(HANG_S)
            return [
                SpaceInfo(name="shop", space_id=1, schema=SCHEMA, version=1, created_ms=0, hosts=())
            ]

    # The client lists only spaces without a selected one.
    cache = SchemaNameCache(SlowClient(), lambda: "shop", lambda: now[0])  # type: ignore[arg-type]
    assert cache.names() == SchemaNames()
    assert cache.names() == SchemaNames()
    assert len(fetch_threads) == 1
    assert fetch_threads[0] is not threading.current_thread()
    release_reply.set()
    cache.stop()
    assert cache.names() == collect_names(SCHEMA, ("shop",))
    now[0] += MAX_AGE_S
    cache.names()
    cache.stop()
    assert len(fetch_threads) == 1
    now[0] += 0.1
    cache.names()
    cache.stop()
    assert len(fetch_threads) == 2
    cache.invalidate()
    cache.names()
    cache.stop()
    assert len(fetch_threads) == 3


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("SHOW SPACES;", True),
        (" SHOW SPACES;", False),
        (":param Password = 1", False),
        ("WITH (secret-key = 'x')", False),
        ("api_key", False),
        ("\n", False),
    ],
)
def test_which_statements_enter_the_history(typed: str, kept: bool) -> None:
    assert history.may_be_stored(typed) is kept


def test_location_of_the_history_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert history.history_path(None) == tmp_path / ".local/state/asterism/history"
    assert history.history_path(tmp_path / "state") == tmp_path / "state/asterism/history"
    assert history.history_path(Path("relative")) == tmp_path / ".local/state/asterism/history"
    (tmp_path / "file").write_text("")
    assert history.prepare_file(tmp_path / "file/asterism/history") is None


def test_parameters_are_json_and_lists_of_numbers_are_arrays() -> None:
    assert parse_parameter("3") == 3
    assert parse_parameter('"a"') == "a"
    assert parse_parameter("true") is True
    assert parse_parameter('["a", "b"]') == ["a", "b"]
    for text, dtype in (
        ("[1, 2]", np.int64),
        ("[1, 2.5]", np.float64),
        ("[[1, 2], [3, 4]]", np.int64),
        ("[]", np.int64),
    ):
        assert parse_parameter(text).dtype == dtype
    for text in (
        "three",
        "{}",
        '[1, "a"]',
        "[[1], [2, 3]]",
        "[null]",
        "[1e",
        "[99999999999999999999]",
    ):
        with pytest.raises(InvalidRequest, match=re.escape(text)):
            parse_parameter(text)
