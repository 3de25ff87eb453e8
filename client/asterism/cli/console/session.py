"""Console: its state between statements, and its colon commands."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from asterism.cli.console.results import (
    EXPORT_FORMATS,
    Format,
    export_result,
    format_value,
    write_result,
)
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism import Client
    from asterism.records.query_result import QueryResult

LANGUAGES = ("ngql", "euler")
HELP: Mapping[str, str] = {
    ":help": "show this list",
    ":use SPACE": "use a graph space for the next statements, like USE",
    ":param NAME = VALUE": (
        "set $NAME to a JSON value; numbers in brackets are an array; null removes it"
    ),
    ":params": "list the parameters",
    f":export {'|'.join(EXPORT_FORMATS)} FILE": "write the last result to a file",
    ":timing on|off": "print rows, time, version and seed after each result",
    f":language {'|'.join(LANGUAGES)}": (
        "set the language: statements in the style of nGQL, or Euler's GQL"
    ),
    ":source FILE": "run the statements of a file",
    ":clear": "clear the screen",
    ":quit": "exit, like Ctrl-D, exit and quit",
}
_SCHEMA_STATEMENT = re.compile(r"\s*(use|create|drop)\b", re.IGNORECASE)
_MAX_SOURCE_DEPTH = 8
"""Depth of files that source each other."""


class QuitConsole(Exception):
    """Raised to leave the console."""


@dataclass(slots=True, kw_only=True)
class Console:
    """Runs statements in order, and prints their results."""

    client: Client
    out: IO[str]
    result_format: Format = Format.TABLE
    for_terminal: bool = False
    """True if results are printed at a terminal."""
    timing: bool = False
    space: str = ""
    language: str = LANGUAGES[0]
    parameters: dict[str, Any] = field(default_factory=dict)
    last_result: QueryResult | None = None
    on_schema_change: Callable[[], None] = lambda: None
    """Called after a statement that may have changed the spaces or a schema."""
    run_file: Callable[[Console, Path], None] | None = None
    """Runs the statements of a file."""
    depth: int = 0

    def run(self, text: str) -> None:
        """Run a colon command, or a statement and print its result.

        Raises
        ------
        AsterismError
            If it fails; the state of the console is unchanged.
        QuitConsole
            If it is a request to leave.
        """
        if text.startswith(":"):
            self._command(text)
        elif text.strip().lower() in ("exit", "quit"):
            raise QuitConsole
        else:
            self._run_statement(text)

    def _run_statement(self, text: str) -> None:
        started = time.perf_counter()
        result = self.client.query(
            text, self.parameters or None, space=self.space or None, language=self.language
        )
        elapsed_s = time.perf_counter() - started
        self.last_result = result
        self.space = result.space or self.space
        if _SCHEMA_STATEMENT.match(text):
            self.on_schema_change()
        write_result(result, self.result_format, self.out, for_terminal=self.for_terminal)
        if self.timing:
            self.print_note(result_summary(result, elapsed_s))
        self.out.flush()

    def print_note(self, text: str) -> None:
        """Print a note: to standard output in table format, otherwise to standard error."""
        print(text, file=self.out if self.result_format is Format.TABLE else sys.stderr)

    def _command(self, text: str) -> None:
        name, _, rest = text.partition(" ")
        do = {
            ":help": self._help,
            ":use": self._use,
            ":param": self._param,
            ":params": self._params,
            ":export": self._export,
            ":timing": self._timing,
            ":language": self._language,
            ":source": self._source,
            ":clear": self._clear,
            ":quit": self._quit,
        }.get(name.rstrip(";"))
        if do is None:
            raise InvalidRequest(f"{name}: there is no such command; :help has all of them")
        do(rest.strip().rstrip(";").rstrip())

    def _help(self, rest: str) -> None:
        width = max(map(len, HELP))
        self.print_note(
            "\n".join(
                [
                    *(f"{name:{width}}  {description}" for name, description in HELP.items()),
                    "",
                    "A statement ends with ; and may take several lines.",
                ]
            )
        )

    def _use(self, rest: str) -> None:
        self.space = self.client.describe(rest.strip("`")).name if rest else ""
        self.on_schema_change()

    def _param(self, rest: str) -> None:
        name, equals, value_text = (part.strip() for part in rest.partition("="))
        name = name.removeprefix("$")
        if not name.isidentifier() or not name.isascii():
            raise InvalidRequest(
                f":param {rest}: expected NAME = VALUE, as in :param ids = [1, 2, 3]"
            )
        if not equals:
            self.print_note(self._format_parameter(name))
        elif value_text == "null":
            self.parameters.pop(name, None)
        else:
            self.parameters[name] = parse_parameter(value_text)

    def _params(self, rest: str) -> None:
        self.print_note(
            "\n".join(map(self._format_parameter, self.parameters))
            or "no parameters; :param ids = [1, 2, 3] makes $ids"
        )

    def _format_parameter(self, name: str) -> str:
        if name not in self.parameters:
            raise InvalidRequest(f"${name} is not set; :param {name} = VALUE sets it")
        value = self.parameters[name]
        value_text = format_value(
            value.tolist() if isinstance(value, np.ndarray) else value, "null"
        )
        return f"${name} = {value_text if len(value_text) < 200 else value_text[:199] + '…'}"

    def _export(self, rest: str) -> None:
        form, _, path = rest.partition(" ")
        if not path.strip():
            raise InvalidRequest(
                f":export {rest}: expected {', '.join(EXPORT_FORMATS)}, and a file"
            )
        if self.last_result is None:
            raise InvalidRequest(":export writes the last result, and there was none yet")
        file = Path(path.strip())
        rows = export_result(self.last_result, form, file)
        self.print_note(f"{rows:,} rows in {file}")

    def _timing(self, rest: str) -> None:
        if rest not in ("on", "off"):
            raise InvalidRequest(f":timing {rest}: expected on or off")
        self.timing = rest == "on"

    def _language(self, rest: str) -> None:
        if rest not in LANGUAGES:
            raise InvalidRequest(f":language {rest}: expected {' or '.join(LANGUAGES)}")
        self.language = rest

    def _source(self, rest: str) -> None:
        if not rest or self.run_file is None:
            raise InvalidRequest(":source: expected a file")
        if self.depth == _MAX_SOURCE_DEPTH:
            raise InvalidRequest(
                f":source {rest}: {_MAX_SOURCE_DEPTH} files source each other; does one "
                "source itself?"
            )
        self.depth += 1
        try:
            self.run_file(self, Path(rest).expanduser())
        finally:
            self.depth -= 1

    def _clear(self, rest: str) -> None:
        if self.for_terminal:
            self.out.write("\x1b[2J\x1b[H")
            self.out.flush()

    def _quit(self, rest: str) -> None:
        raise QuitConsole


def parse_parameter(text: str) -> Any:
    """Return the value of a parameter from its JSON; a list of numbers becomes an array."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            f"{text}: not a JSON value ({error.msg}); a text stands between double quotes"
        ) from error
    if not isinstance(value, list) or (value and all(isinstance(item, str) for item in value)):
        if isinstance(value, dict):
            raise InvalidRequest(
                f"{text}: expected a number, a text, true, false, or a list of these"
            )
        return value
    try:
        array = np.array(value, np.int64 if not value else None)
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"{text}: no array: {error}") from error
    if array.dtype.kind not in "iuf":
        raise InvalidRequest(f"{text}: expected a list of numbers, or one of texts")
    return array


def result_summary(result: QueryResult, elapsed_s: float) -> str:
    """Return the line after a result: rows, time, version and seed."""
    phrases = [
        f"{len(result):,} row{'' if len(result) == 1 else 's'}" if result.columns else "done"
    ]
    phrases.append(f"{elapsed_s * 1e3:,.1f} ms ({result.took_s * 1e3:,.1f} ms in the service)")
    if result.version:
        phrases.append(f"version {result.version}")
    if result.seed is not None:
        phrases.append(f"seed {result.seed}")
    return ", ".join(phrases)
