"""HTML tables for notebooks: no scripts, external styles or links; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

MAX_CELL_CHARS = 200


def table(title: str, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table.

    Parameters
    ----------
    title : str
        Caption above the table.
    headers : sequence of str
        Column headers.
    rows : iterable of sequence of object
        Cells are shown as text of at most `MAX_CELL_CHARS` characters. Numbers are right-aligned;
        integers have thousands separators.

    Examples
    --------
    >>> "<script>" in table("a", ["<script>"], [["<script>"]])
    False
    """
    head = "".join(f'<th style="text-align:left">{_text(name)}</th>' for name in headers)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f"<table><caption style='text-align:left'><b>{_text(title)}</b></caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cell(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f'<td style="text-align:left">{_text(value)}</td>'
    return (
        f'<td style="text-align:right">{value:,}</td>'
        if isinstance(value, int)
        else f'<td style="text-align:right">{value:,.6g}</td>'
    )


def _text(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    return escape(text if len(text) <= MAX_CELL_CHARS else f"{text[: MAX_CELL_CHARS - 3]}...")
