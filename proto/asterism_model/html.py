"""HTML tables for notebooks: no scripts, external styles or links; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

MAX_CELL_CHARS = 200


def table(
    title: str,
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    separators: bool = True,
) -> str:
    """Return an HTML table.

    Parameters
    ----------
    title : str
        Caption above the table.
    headers : sequence of str
        Column headers.
    rows : iterable of sequence of object
        Cells are shown as text of at most `MAX_CELL_CHARS` characters. Numbers are right-aligned.
    separators : bool, default True
        Write numbers with thousands separators. False: for columns that may hold ids.

    Examples
    --------
    >>> "<script>" in table("a", ["<script>"], [["<script>"]])
    False
    """
    head = "".join(f'<th style="text-align:left">{_text(name)}</th>' for name in headers)
    body = "".join(f"<tr>{''.join(_cell(value, separators) for value in row)}</tr>" for row in rows)
    return (
        f"<table><caption style='text-align:left'><b>{_text(title)}</b></caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cell(value: object, separators: bool) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f'<td style="text-align:left">{_text(value)}</td>'
    precision = "" if isinstance(value, int) else ".6g"
    return f'<td style="text-align:right">{value:{"," if separators else ""}{precision}}</td>'


def _text(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    return escape(text if len(text) <= MAX_CELL_CHARS else f"{text[: MAX_CELL_CHARS - 3]}...")
