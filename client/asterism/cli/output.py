"""What commands print: tables for people or one JSON document on stdout, progress and remarks on stderr."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import RenderableType


class Progressed(Protocol):
    """Whoever is told how far a phase has come."""

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        """`done` of `total` rows of `phase`; None where the total is not known."""


def plain(value: Any) -> Any:
    """`value` as JSON has it: records are objects, arrays lists, enums their words."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value) if not field.name.startswith("_")}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, bytes):
        return list(value)
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class Output:
    """Where a command's words go."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def result(self, value: object, render: Callable[[], RenderableType]) -> None:
        """Print `value` as the command's one JSON document, or what `render` makes of it for people."""
        if self.as_json:
            print(json.dumps(plain(value)))
            return
        from rich.console import Console

        Console(highlight=False).print(render())

    def remark(self, text: str) -> None:
        """Tell people what is going on; not part of the result."""
        if not self.as_json:
            from rich.console import Console

            Console(stderr=True, highlight=False).print(text)

    @contextmanager
    def progress(self) -> Iterator[Progressed]:
        """A bar per phase with rows a second and the time that is left, while the block runs."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        console = Console(stderr=True, highlight=False)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[rows]}", justify="right"),
            TextColumn("{task.fields[rate]}", justify="right"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, disable=self.as_json and not console.is_terminal) as bars:
            phases: dict[str, Any] = {}

            def tell(phase: str, done: int, total: int | None) -> None:
                if phase not in phases:
                    for earlier in phases.values():
                        bars.stop_task(earlier)
                    phases[phase] = bars.add_task(phase, total=total or None, rows="", rate="")
                task = bars.tasks[bars.task_ids.index(phases[phase])]
                rate = done / task.elapsed if task.elapsed else 0.0
                rows = f"{done:,} of {total:,} rows" if total else f"{done:,} rows"
                bars.update(phases[phase], completed=done, total=total or None, rows=rows, rate=f"{rate:,.0f} rows/s")

            yield tell


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> RenderableType:
    """A table of `rows`; columns of numbers stand to the right."""
    from rich import box
    from rich.table import Table

    made = [list(row) for row in rows]
    out = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for i, name in enumerate(columns):
        numeric = bool(made) and all(isinstance(row[i], int | float) for row in made)
        out.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in made:
        out.add_row(*(_word(cell) for cell in row))
    return out


def moment(milliseconds: int) -> str:
    """A moment in UTC, or a dash where there is none."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") if milliseconds else "-"


def _word(cell: object) -> str:
    from rich.markup import escape

    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:,.4g}"
    if isinstance(cell, Enum):
        return cell.name
    return escape(str(cell))
