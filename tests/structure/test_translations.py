"""Tests that a Chinese page has the code, headings, tables and results of the English one."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest
from tests.kit import pages
from tests.kit.pages import BLOCK, Block

TRANSLATIONS = [page for page in pages.all_pages() if pages.is_translation(page)]
CODE = re.compile(r"`[^`\n]+`")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
UNRENDERED_BOLD = re.compile(r"\*\*[^*\n]+[，。：；、！？）]\*\*\w")
"""Bold text that ends with punctuation: CommonMark sees no end if a letter follows."""


@pytest.fixture(params=TRANSLATIONS, ids=lambda page: page.name)
def chinese(request: pytest.FixtureRequest) -> Path:
    page: Path = request.param
    return page


@pytest.fixture
def english(chinese: Path) -> Path:
    return chinese.with_name(chinese.name.replace(".zh.md", ".md"))


def code(block: Block) -> tuple[str, str, str]:
    """Return what a block has in all languages; of a text, the first word of each line."""
    if block.kind == "text":
        words = [line.split(maxsplit=1)[0] for line in block.code.splitlines() if line.strip()]
        return block.kind, block.file, "\n".join(words)
    return block.kind, block.file, block.code


def prose(page: Path) -> str:
    return BLOCK.sub("", page.read_text())


def rows(page: Path) -> list[tuple[list[str], list[str]]]:
    """Return the code and the numbers in each row of each table."""
    lines = [line for line in prose(page).splitlines() if line.startswith("|")]
    return [
        (sorted(CODE.findall(line)), sorted(NUMBER.findall(CODE.sub("", line)))) for line in lines
    ]


def columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)


def test_pages_for_a_first_look_are_translated(root: Path) -> None:
    assert [str(page.relative_to(root)) for page in TRANSLATIONS] == [
        "README.zh.md",
        "docs/euler.zh.md",
        "docs/export.zh.md",
        "docs/pglbox.zh.md",
        "docs/quickstart.zh.md",
    ]


def test_code_is_the_same(chinese: Path, english: Path) -> None:
    assert [code(block) for block in pages.blocks(chinese)] == [
        code(block) for block in pages.blocks(english)
    ]


def test_headings_have_the_same_order(chinese: Path, english: Path) -> None:
    heading = re.compile(r"^(#+) ", re.MULTILINE)
    assert heading.findall(prose(chinese)) == heading.findall(prose(english))


def test_table_rows_have_the_same_code_and_numbers(chinese: Path, english: Path) -> None:
    assert rows(chinese) == rows(english)


def test_every_code_in_the_text_occurs_in_english(chinese: Path, english: Path) -> None:
    assert set(CODE.findall(prose(chinese))) == set(CODE.findall(prose(english)))


def test_pages_link_each_other(chinese: Path, english: Path) -> None:
    assert f"\n[English]({english.name}) | 简体中文\n" in chinese.read_text()
    assert f"\nEnglish | [简体中文]({chinese.name})\n" in english.read_text()


def test_links_lead_to_pages_in_chinese(chinese: Path) -> None:
    targets = re.findall(r"\]\((?!http)([^)#]+)", prose(chinese).split("简体中文", 1)[1])
    translated = [
        target
        for target in targets
        if target.endswith(".md")
        and not target.endswith(".zh.md")
        and (chinese.parent / target).with_suffix(".zh.md").exists()
    ]
    assert translated == []


def test_bold_text_is_rendered(chinese: Path) -> None:
    assert UNRENDERED_BOLD.findall(chinese.read_text()) == []


def test_bold_text_that_is_not_rendered_is_found() -> None:
    assert UNRENDERED_BOLD.search("* **限制：**没有副本。")
    assert not UNRENDERED_BOLD.search("* **限制**：没有副本。")


def test_chinese_letters_count_as_two_columns() -> None:
    assert columns("图 space，") == 10


def test_lines_have_at_most_120_columns(chinese: Path) -> None:
    assert [
        line
        for line in prose(chinese).splitlines()
        if not line.startswith("|") and columns(line) > 120
    ] == []
