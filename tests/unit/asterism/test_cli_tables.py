"""Tests of tables: whole in pipes, fitted to terminals without breaking words or numbers."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from asterism.cli.output import table
from asterism.cli.tables import TextTable, sections

FINDINGS = table(
    "version 3 of shop",
    ("draws of", "test", "draws", "G", "freedom", "corrected", ""),
    [
        ("nodes user uniformly", "by partition", "100,000", "1,234.5", 63, "0.71", "ok"),
        ("edges buys by weight", "by bucket", "100,000", "12.5", 7, "1", "WRONG"),
    ],
    optional=("G", "freedom"),
)


def test_a_pipe_gets_every_column_and_whole_cells() -> None:
    assert FINDINGS.lines(None) == [
        " draws of              test            draws        G  freedom  corrected",
        " " + "─" * 79,
        " nodes user uniformly  by partition  100,000  1,234.5       63       0.71  ok",
        " edges buys by weight  by bucket     100,000     12.5        7          1  WRONG",
    ]


def test_optional_columns_are_left_out_and_named() -> None:
    lines = FINDINGS.lines(75)
    assert lines[0].split() == ["draws", "of", "test", "draws", "freedom", "corrected"]
    assert lines[-1] == " not shown at 75 columns: G; a pipe and --json have all"


def test_long_texts_are_shortened_but_no_number_or_time() -> None:
    row = ("a" * 50, 12345678901234567890, "2026-11-25 02:58:23")
    lines = table("", ("name", "count", "created (UTC)"), [row]).lines(66)
    assert lines[-1] == f" {'a' * 21}…  12345678901234567890  2026-11-25 02:58:23"
    assert max(map(len, lines)) <= 66


def test_a_narrow_terminal_gets_a_line_per_column() -> None:
    lines = table("", ("job", "submitted (UTC)"), [(7, "2026-11-25 02:58:23"), (8, "-")]).lines(20)
    assert lines == [
        " job              7",
        " submitted (UTC)  2026-11-25 02:58:23",
        "",
        " job              8",
        " submitted (UTC)  -",
    ]


@pytest.mark.parametrize("width", range(44, 110))
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    rows = [("世界" * 30, "x" * 40, 1.5), ("é", "y", 22222.25)]
    lines = table("t", ("first", "second", "third"), rows, optional=("second",)).lines(width)
    shown = [line for line in lines if "not shown" not in line]
    assert max(map(cell_len, shown)) <= width
    assert "22,222.2" in "".join(lines)


def test_lines_of_a_cell_stand_below_each_other() -> None:
    lines = table("", ("version", "pinned by"), [(3, "trainer\nexport")]).lines(None)
    assert lines[2:] == ["       3  trainer", "          export"]


def test_values_are_printed_without_markup() -> None:
    out = io.StringIO()
    parts = sections(table("t", ("a",), [("[red]x[/red]",)]), "in [folder]")
    Console(file=out, width=80).print(parts, soft_wrap=True)
    assert out.getvalue() == "t\n a\n ────────────\n [red]x[/red]\n\nin [folder]\n"


def test_sentences_are_not_wrapped() -> None:
    out = io.StringIO()
    Console(file=out, width=20).print(sections("a " * 40 + "end"), soft_wrap=True)
    assert out.getvalue() == "a " * 40 + "end\n"


@pytest.mark.parametrize(
    ("cells", "aligned_right"),
    [
        (("12", "3"), True),
        (("1,200", "-"), True),
        (("1.5e-07", "12 %"), True),
        (("none yet", "3"), False),
        (("-", "-"), False),
    ],
)
def test_numbers_are_aligned_to_the_right(cells: tuple[str, str], aligned_right: bool) -> None:
    rows = tuple((cell,) for cell in cells)
    lines = TextTable(title="", columns=("a long heading",), rows=rows).lines(None)[2:]
    assert all((len(line) == len(" a long heading")) == aligned_right for line in lines)
