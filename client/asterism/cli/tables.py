"""Layout of tables as text.

A pipe gets every column and whole cells. A terminal gets lines that fit it: columns of less
importance are left out, long texts are shortened, and if that is not enough each row becomes a
record of one line per column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

_INDENT, _SEPARATOR = " ", "  "
_MIN_TEXT_WIDTH = 20
"""Width below which a text is not shortened; times and most names are narrower."""
_NUMBER = re.compile(r"-|[-+]?[\d.,]+(e[-+]?\d+)?( ?(%|[KMGT]i?B))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """A table of formatted cells, which rich prints at the width of its console."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    optional: tuple[str, ...] = ()
    """Columns that a narrow terminal does not show, least important first."""
    fit_terminal: bool = True
    """False: print whole lines at a terminal too."""

    def lines(self, width: int | None) -> list[str]:
        """Return the lines of the table, without its title.

        Parameters
        ----------
        width : int or None
            Columns of the terminal; None: unlimited.
        """
        cells = [[cell.split("\n") for cell in row] for row in self.rows]
        widths = [
            max([_length(name), *(_length(line) for row in cells for line in row[index])])
            for index, name in enumerate(self.columns)
        ]
        shown = list(range(len(self.columns)))
        for name in self.optional:
            if width is None or _total(widths, shown) <= width:
                break
            shown.remove(self.columns.index(name))
        if width is not None:
            self._shrink_texts(widths, shown, width)
            if _total(widths, shown) > width:
                return list(self._records())
        lines = list(self._grid(cells, widths, shown))
        left_out = [name for i, name in enumerate(self.columns) if i not in shown]
        if left_out:
            lines.append(
                f"{_INDENT}not shown at {width} columns: {', '.join(left_out)}; "
                "a pipe and --json have all"
            )
        return lines

    def _is_numeric(self, index: int) -> bool:
        texts = [row[index] for row in self.rows]
        return any(text != "-" for text in texts) and all(map(_NUMBER.fullmatch, texts))

    def _shrink_texts(self, widths: list[int], shown: Sequence[int], width: int) -> None:
        """Reduce the widths of the longest texts until the table fits, if that is possible."""
        while (excess := _total(widths, shown) - width) > 0:
            widest = max(shown, key=lambda i: widths[i])
            limit = max(_MIN_TEXT_WIDTH, _length(self.columns[widest]))
            if widths[widest] <= limit or self._is_numeric(widest):
                return
            others = [widths[i] for i in shown if i != widest and widths[i] < widths[widest]]
            widths[widest] = max(limit, widths[widest] - excess, max(others, default=0))

    def _grid(
        self, cells: list[list[list[str]]], widths: list[int], shown: Sequence[int]
    ) -> Iterator[str]:
        numeric = {i for i in shown if self._is_numeric(i)}

        def join(texts: Sequence[str]) -> str:
            padded = (
                _pad(text, widths[i], to_right=i in numeric)
                for i, text in zip(shown, texts, strict=True)
            )
            return (_INDENT + _SEPARATOR.join(padded)).rstrip()

        yield join([self.columns[i] for i in shown])
        yield _INDENT + "─" * (_total(widths, shown) - len(_INDENT))
        for row in cells:
            for line in range(max((len(row[i]) for i in shown), default=0)):
                yield join([row[i][line] if line < len(row[i]) else "" for i in shown])

    def _records(self) -> Iterator[str]:
        width = max(map(_length, self.columns))
        for number, row in enumerate(self.rows):
            if number:
                yield ""
            for name, cell in zip(self.columns, row, strict=True):
                text = ", ".join(cell.split("\n"))
                yield f"{_INDENT}{_pad(name, width)}{_SEPARATOR}{text}".rstrip()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        fitted = self.fit_terminal and console.is_terminal
        if self.title:
            yield Text(self.title, style="bold")
        for line in self.lines(options.max_width if fitted else None):
            yield Text(line, style="dim" if line.startswith(_INDENT + "─") else "")


@dataclass(frozen=True, slots=True)
class Sections:
    """Parts of an output: an empty line follows each table that is not the last part.

    A string is printed unchanged, without markup.
    """

    parts: tuple[RenderableType, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        for number, part in enumerate(self.parts, 1):
            yield Text(part) if isinstance(part, str) else part
            if isinstance(part, TextTable) and number < len(self.parts):
                yield ""


def sections(*parts: RenderableType) -> RenderableType:
    """Return an output of several parts: tables and sentences."""
    return Sections(parts)


def _total(widths: Sequence[int], shown: Sequence[int]) -> int:
    return len(_INDENT) + sum(widths[i] for i in shown) + len(_SEPARATOR) * (len(shown) - 1)


def _length(text: str) -> int:
    """Return the columns that a text takes at a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _pad(text: str, width: int, *, to_right: bool = False) -> str:
    """Return a text of exactly `width` columns; a longer one ends with an ellipsis."""
    length = _length(text)
    if length > width:
        from rich.cells import set_cell_size

        return set_cell_size(text, width - 1) + "…"
    return " " * (width - length) + text if to_right else text + " " * (width - length)
