"""Tests that no text in the repository has a banned word."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.kit import banned_words
from tests.kit.waiting import HANG_S

OWN_FILES = frozenset({"tests/kit/banned_words.py", "tests/structure/test_prose.py"})
"""The list, and the words that this test plants."""
THIRD_PARTY = (
    "services/asterism_daemonkit/http/swagger_ui/swagger-ui",
    "services/graphd/pages/static/vendor/",
)
"""Beginnings of the names of files that other projects wrote."""
BINARY = frozenset({".png"})
CODE_SPANS = frozenset({".md", ".py", ".pyi"})
"""Suffixes of files in which text between backticks is a quotation."""
SEPARATORS = {
    "space": " ",
    "comment": "\n        # ",
    "comment of JavaScript": "\n  // ",
    "block comment": "\n * ",
    "docstring": "\n    ",
    "adjacent strings": ' "\n    f"',
    "quoted paragraph": "\n> ",
}


def text_files(root: Path) -> list[str]:
    """Return the files that a commit would have, without generated and third-party ones."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        check=True,
        timeout=HANG_S,
    ).stdout.decode()
    return [
        name
        for name in listed.split("\0")
        if name
        and name not in OWN_FILES
        and Path(name).suffix not in BINARY
        and Path(name).name != "LICENSE"
        and "_pb2" not in name
        and not name.startswith(THIRD_PARTY)
        and (root / name).is_file()
    ]


def words_in(text: str) -> list[str]:
    return [word for _, word in banned_words.find(text)]


def test_no_text_has_a_banned_word(root: Path) -> None:
    names = text_files(root)
    assert {"README.md", "Makefile", "Dockerfile", "pyproject.toml"} <= set(names)
    found = [
        f"{name}:{line}: {word}"
        for name in names
        for line, word in banned_words.find(
            (root / name).read_text(), code_spans=Path(name).suffix in CODE_SPANS
        )
    ]
    assert found == []


@pytest.mark.parametrize("word", sorted(banned_words.WORDS | banned_words.PHRASES))
def test_a_planted_word_is_found(word: str) -> None:
    assert list(banned_words.find(f"one\n# It is {word}, then.\n")) == [(2, word)]
    assert words_in(f'"{word.upper()}"') == [word]
    assert words_in(f"heart{word}er _{word} {word}_ x{word}") == []


@pytest.mark.parametrize("phrase", sorted(banned_words.PHRASES))
@pytest.mark.parametrize("separator", SEPARATORS.values(), ids=SEPARATORS)
def test_a_phrase_is_found_over_a_line_break(phrase: str, separator: str) -> None:
    first, last = phrase.split()
    assert words_in(f"It is {first}{separator}{last}.") == [f"{first}{separator}{last}"]
    assert words_in(f"It is {first}\n\n{last}.") == []


@pytest.mark.parametrize(
    "text",
    [
        "degrees follow a power law",
        "a power-law graph",
        "two power\n# laws",
        "graphd runs behind a proxy",
        "behind the reverse proxy",
        "behind your load balancer",
        "position = file.tell()",
        "def tell(self) -> int:",
        "the former `Beats.Beat` of metad",
    ],
)
def test_a_technical_sense_is_allowed(text: str) -> None:
    assert words_in(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "the {law} of weights, and a power law",
        "what stands {behind} the id",
        "{behind} the id, before a proxy",
        "say {tell} and call file.tell()",
        "` {beat} and `beat`",
    ],
)
def test_a_rule_allows_nothing_else(text: str) -> None:
    word = text[text.index("{") + 1 : text.index("}")]
    assert words_in(text.format(**{word: word})) == [word]


def test_backticks_quote_nothing_in_javascript() -> None:
    text = "`a {word} of ${{n}}`".format(word="door")
    assert [word for _, word in banned_words.find(text, code_spans=False)] == ["door"]
