"""Console: its state between statements, and its colon commands."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
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
from asterism.cli.console.tokens import tokenize
from asterism_proto.errors import InvalidRequest, SourceLocation

if TYPE_CHECKING:
    from asterism import Client
    from asterism.records.query_result import QueryResult

LANGUAGES = ("ngql", "euler")
HELP: Mapping[str, str] = {
    ":help": "show this list, like help",
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
STATEMENTS: Mapping[str, str] = {
    "SHOW SPACES": "list spaces; also HOSTS, TAGS, EDGES, PARTS, STATS, VERSIONS, PINS, JOBS",
    "USE shop": "use a space for the next statements",
    "DESCRIBE TAG item": "show the columns of a type; also EDGE, SPACE",
    "SAMPLE 5 VERTICES ON item YIELD id, price": "sample nodes; also EDGES, NEIGHBORS, LAYER",
    "TOP 5 NEIGHBORS FROM 17 OVER buys": "the heaviest edges of a node",
    "GO FROM 17 OVER buys YIELD $$.id": "follow edges",
    "WALK 4 STEPS FROM 17 OVER follows": "random walks",
    "FETCH PROP ON item 3 YIELD id, price": "features of nodes or edges",
    "SUBMIT JOB BUILD": "start a job; also SHOW JOB 7, STOP JOB 7, RECOVER JOB 7",
    "CREATE SPACE shop (parts = 4) TAG item": "create a space; DROP SPACE shop drops it",
    "GRANT ROLE reader ON shop TO alice": "grant a role; also REVOKE ROLE, SHOW ROLES",
    "EXPLAIN statement": "show the plan; PROFILE statement runs it and shows its costs",
}
"""Forms of statements that :help lists, with what they do."""
_SCHEMA_STATEMENT = re.compile(r"\s*(use|create|drop)\b", re.IGNORECASE)
_MIN_SIMILARITY = 0.7
"""Similarity of a word to a keyword that was probably meant."""
_MAX_SOURCE_DEPTH = 8
"""Depth of files that source each other."""


class QuitConsole(Exception):
    """Raised to leave the console."""


class StatementDeclined(Exception):
    """Raised if the user does not confirm a statement; the message says what did not happen."""


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
    confirm: Callable[[str], bool] | None = None
    """Asks before a statement that drops a space; None: do not ask."""
    as_json: bool = False
    """True if errors are printed as JSON."""
    depth: int = 0

    def run(self, text: str) -> None:
        """Run a colon command, or a statement and print its result.

        Raises
        ------
        AsterismError
            If it fails; the state of the console is unchanged.
        QuitConsole
            If it is a request to leave.
        Declined
            If the user does not confirm it.
        """
        word = text.strip().lower()
        if text.startswith(":"):
            self._command(text)
        elif word in ("exit", "quit"):
            raise QuitConsole
        elif word == "help":
            self._help("")
        else:
            self._run_statement(text)

    def _run_statement(self, text: str) -> None:
        space = dropped_space(text)
        if space and self.confirm is not None:
            question = f"Drop the space {space!r} with all its data?"
            if not self.confirm(question):
                raise StatementDeclined(f"space {space} is not dropped")
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
        lines = [f"{name:{_HELP_WIDTH}}  {description}" for name, description in HELP.items()]
        statements = [
            f"{form:{_HELP_WIDTH}}  {description}" for form, description in STATEMENTS.items()
        ]
        ending = "A statement ends with ; and may take several lines."
        self.print_note("\n".join([*lines, "", ending, *statements]))

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
            self.run_file(self, Path(os.path.expanduser(rest)))
        finally:
            self.depth -= 1

    def _clear(self, rest: str) -> None:
        if self.for_terminal:
            self.out.write("\x1b[2J\x1b[H")
            self.out.flush()

    def _quit(self, rest: str) -> None:
        raise QuitConsole


_HELP_WIDTH = max(map(len, (*HELP, *STATEMENTS)))


def dropped_space(text: str) -> str:
    """Return the space that a statement drops; empty if it drops none."""
    words = [
        text[token.start : token.end]
        for token in tokenize(text)
        if token.kind not in ("blank", "comment")
    ]
    is_drop = [word.upper() for word in words[:2]] == ["DROP", "SPACE"] and len(words) > 2
    return words[-1].strip("`") if is_drop else ""


def suggestion(text: str, place: SourceLocation | None) -> str:
    """Return the word that was probably meant at the position of a syntax error, or \"\"."""
    if place is None or not place.expected:
        return ""
    lines = text.split("\n")
    line = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
    word = re.match(r"[A-Za-z_]+", line[place.column - 1 :])
    if word is None:
        return ""
    expected = {name.upper() for name in place.expected if name.isalpha()}
    similar = get_close_matches(word[0].upper(), sorted(expected), 1, _MIN_SIMILARITY)
    return similar[0] if similar and similar[0] != word[0].upper() else ""


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
