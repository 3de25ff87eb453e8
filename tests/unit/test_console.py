"""The console's text: where statements end, what words may follow, what is remembered, what parameters are."""

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

from asterism.catalog import SpaceInfo
from asterism.cli.console import history, scanning
from asterism.cli.console.completing import MOST_OLD_S, Known, Live, names_of, words
from asterism.cli.console.prompting import is_whole, statements_in
from asterism.cli.console.running import parameter
from asterism.cli.console.scanning import KEYWORDS, Splitter, is_blank, pieces, split
from asterism.cli.console.scripts import statements_of
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "nodes": {"user": {"features": {"age": "int64"}}, "item": {"tables": {"popular": "pow(weight, 2)"}, "weighted": True}},
        "edges": {"user:buys:item": {"features": {"at": "int64"}}, "user:likes:user": {}, "user:likes:item": {}},
    }
)
KNOWN = names_of(SCHEMA, ("shop", "shops", "other"))


def test_its_words_are_those_of_the_grammar(root: Path) -> None:
    grammar = (root / "services/graphd/statements/ngql.lark").read_text()
    assert set(re.findall(r'^[A-Z]+: "([A-Z]+)"i$', grammar, re.MULTILINE)) | {"AND", "OR", "NOT"} == KEYWORDS


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
    assert [(one.text, one.line) for one in statements_of(text.splitlines(keepends=True))] == found


@given(
    st.lists(st.sampled_from(["a", ";", "'", '"', "`", "\n", " ", "#", "//", "/*", "*/", "\\", "$x", "1.5", "a:b:c", "ü", ":"]), max_size=30).map(
        "".join
    )
)
def test_every_sign_is_of_one_piece_and_lines_end_the_statements_that_the_whole_text_has(text: str) -> None:
    found = list(pieces(text))
    assert "".join(text[piece.start : piece.end] for piece in found) == text
    assert all(piece.end > piece.start for piece in found)
    if not any(line.lstrip().startswith(":") for line in text.splitlines()):
        ended, _ = split(text)
        splitter = Splitter()
        by_line = [one.text for line in text.splitlines(keepends=True) for one in splitter.feed(line)]
        assert by_line == [text[start:end] for start, end in ended]


def test_a_statement_that_never_ends_is_refused_before_it_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "MAX_LENGTH", 100)
    with pytest.raises(InvalidRequest, match="line 1: a statement of more than 100 characters"):
        list(statements_of("GO\n" for _ in range(1000)))


@pytest.mark.parametrize(
    ("typed", "language", "whole"),
    [
        ("SHOW", "ngql", False),
        ("SHOW SPACES;", "ngql", True),
        ("SHOW SPACES; # told", "ngql", True),
        ("SHOW ';", "ngql", False),
        ("SHOW\n", "ngql", True),
        (":use x", "ngql", True),
        ("quit", "ngql", True),
        ("  ", "ngql", True),
        ("v(1).outV(e)", "euler", True),
        ("v('", "euler", False),
    ],
)
def test_enter_runs_what_is_whole(typed: str, language: str, whole: bool) -> None:
    assert is_whole(typed, language) is whole


def test_what_is_typed_is_run_statement_by_statement() -> None:
    assert statements_in("a; b ;\n c") == ["a", "b", "c"]
    assert statements_in(" :param x = 'a;b'") == [":param x = 'a;b'"]
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
def test_words_that_may_follow(typed: str, among: set[str], not_among: set[str]) -> None:
    found = list(words(typed, KNOWN, ("ids", "names")))
    texts = {word.text for word in found}
    assert among <= texts
    assert not not_among & texts
    for word in found:
        begun = typed[len(typed) - word.back :]
        assert word.text.lower().startswith(begun.lower())


def test_a_schema_is_asked_for_beside_the_typing_when_it_is_old_and_one_at_a_time() -> None:
    now, asked, answer = [0.0], [], threading.Event()

    class Slow:
        def spaces(self) -> list[Any]:
            asked.append(threading.current_thread())
            answer.wait(HANG_S)
            return [SpaceInfo(name="shop", space_id=1, schema=SCHEMA, version=1, created_ms=0, hosts=())]

    live = Live(Slow(), lambda: "shop", lambda: now[0])  # type: ignore[arg-type]  # of a client it asks for spaces alone
    assert live.known() == Known()
    assert live.known() == Known()
    assert len(asked) == 1
    assert asked[0] is not threading.current_thread()
    answer.set()
    live.stop()
    assert live.known() == names_of(SCHEMA, ("shop",))
    now[0] += MOST_OLD_S
    live.known()
    live.stop()
    assert len(asked) == 1
    now[0] += 0.1
    live.known()
    live.stop()
    assert len(asked) == 2
    live.forget()
    live.known()
    live.stop()
    assert len(asked) == 3


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
def test_what_may_be_remembered(typed: str, kept: bool) -> None:
    assert history.is_kept(typed) is kept


def test_where_it_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert history.file_of(None) == tmp_path / ".local/state/asterism/history"
    assert history.file_of(tmp_path / "state") == tmp_path / "state/asterism/history"
    assert history.file_of(Path("relative")) == tmp_path / ".local/state/asterism/history"
    (tmp_path / "file").write_text("")
    assert history.prepared(tmp_path / "file/asterism/history") is None


def test_parameters_are_json_and_lists_of_numbers_are_arrays() -> None:
    assert parameter("3") == 3
    assert parameter('"a"') == "a"
    assert parameter("true") is True
    assert parameter('["a", "b"]') == ["a", "b"]
    for text, dtype in (("[1, 2]", np.int64), ("[1, 2.5]", np.float64), ("[[1, 2], [3, 4]]", np.int64), ("[]", np.int64)):
        assert parameter(text).dtype == dtype
    for text in ("three", "{}", '[1, "a"]', "[[1], [2, 3]]", "[null]", "[1e", "[99999999999999999999]"):
        with pytest.raises(InvalidRequest, match=re.escape(text)):
            parameter(text)
