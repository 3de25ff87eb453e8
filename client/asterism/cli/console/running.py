"""One console: what it remembers from statement to statement, and what its colon commands do."""

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

from asterism.cli.console.rendering import EXPORTS, Format, export, word, write
from asterism_proto.errors import InvalidRequest

if TYPE_CHECKING:
    from asterism import Client
    from asterism.querying import Result

LANGUAGES = ("ngql", "euler")
HELP: Mapping[str, str] = {
    ":help": "this",
    ":use SPACE": "what the next statements are about, as USE does",
    ":param NAME = VALUE": "what $NAME stands for: a JSON value; numbers in brackets are an array; null removes it",
    ":params": "the parameters",
    f":export {'|'.join(EXPORTS)} FILE": "write the last result to a file",
    ":timing on|off": "whether rows, time, version and seed are told after each result",
    f":language {'|'.join(LANGUAGES)}": "what is typed: statements in the style of nGQL, or Euler's GQL",
    ":source FILE": "run a file's statements here",
    ":clear": "clear the screen",
    ":quit": "end; so do Ctrl-D, exit and quit",
}
_CHANGES = re.compile(r"\s*(use|create|drop)\b", re.IGNORECASE)
_MOST_DEEP = 8
"""Files that source each other."""


class Quit(Exception):
    """Somebody has said that it is enough."""


@dataclass(slots=True, kw_only=True)
class Console:
    """Runs statements one after the other, and prints what they give."""

    client: Client
    out: IO[str]
    form: Format = Format.TABLE
    people: bool = False
    """Whether somebody looks on at a terminal."""
    timing: bool = False
    space: str = ""
    language: str = LANGUAGES[0]
    parameters: dict[str, Any] = field(default_factory=dict)
    last: Result | None = None
    changed: Callable[[], None] = lambda: None
    """Called where a statement may have changed which spaces and types there are."""
    read: Callable[[Console, Path], None] | None = None
    """What runs a file's statements."""
    depth: int = 0

    def run(self, text: str) -> None:
        """Do what a colon command says, or print what a statement gives.

        Raises
        ------
        AsterismError
            Where it fails; the console goes on from where it was.
        Quit
            Where it says so.
        """
        if text.startswith(":"):
            self._command(text)
        elif text.strip().lower() in ("exit", "quit"):
            raise Quit
        else:
            self._ask(text)

    def _ask(self, text: str) -> None:
        begun = time.perf_counter()
        result = self.client.query(text, self.parameters or None, space=self.space or None, language=self.language)
        took_s = time.perf_counter() - begun
        self.last = result
        self.space = result.space or self.space
        if _CHANGES.match(text):
            self.changed()
        write(result, self.form, self.out, people=self.people)
        if self.timing:
            self.tell(told(result, took_s))
        self.out.flush()

    def tell(self, text: str) -> None:
        """Say something that is no result: beside a table, else where it is in nobody's way."""
        print(text, file=self.out if self.form is Format.TABLE else sys.stderr)

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
        self.tell("\n".join([*(f"{name:{width}}  {said}" for name, said in HELP.items()), "", "A statement ends with ; and may take several lines."]))

    def _use(self, rest: str) -> None:
        self.space = self.client.describe(rest.strip("`")).name if rest else ""
        self.changed()

    def _param(self, rest: str) -> None:
        name, equals, given = (part.strip() for part in rest.partition("="))
        name = name.removeprefix("$")
        if not name.isidentifier() or not name.isascii():
            raise InvalidRequest(f":param {rest}: expected NAME = VALUE, as in :param ids = [1, 2, 3]")
        if not equals:
            self.tell(self._shown(name))
        elif given == "null":
            self.parameters.pop(name, None)
        else:
            self.parameters[name] = parameter(given)

    def _params(self, rest: str) -> None:
        self.tell("\n".join(map(self._shown, self.parameters)) or "no parameters; :param ids = [1, 2, 3] makes $ids")

    def _shown(self, name: str) -> str:
        if name not in self.parameters:
            raise InvalidRequest(f"${name} is not set; :param {name} = VALUE sets it")
        value = self.parameters[name]
        said = word(value.tolist() if isinstance(value, np.ndarray) else value, "null")
        return f"${name} = {said if len(said) < 200 else said[:199] + '…'}"

    def _export(self, rest: str) -> None:
        form, _, path = rest.partition(" ")
        if not path.strip():
            raise InvalidRequest(f":export {rest}: expected {', '.join(EXPORTS)}, and a file")
        if self.last is None:
            raise InvalidRequest(":export writes the last result, and there was none yet")
        file = Path(path.strip())
        rows = export(self.last, form, file)
        self.tell(f"{rows:,} rows in {file}")

    def _timing(self, rest: str) -> None:
        if rest not in ("on", "off"):
            raise InvalidRequest(f":timing {rest}: expected on or off")
        self.timing = rest == "on"

    def _language(self, rest: str) -> None:
        if rest not in LANGUAGES:
            raise InvalidRequest(f":language {rest}: expected {' or '.join(LANGUAGES)}")
        self.language = rest

    def _source(self, rest: str) -> None:
        if not rest or self.read is None:
            raise InvalidRequest(":source: expected a file")
        if self.depth == _MOST_DEEP:
            raise InvalidRequest(f":source {rest}: {_MOST_DEEP} files source each other; does one source itself?")
        self.depth += 1
        try:
            self.read(self, Path(rest).expanduser())
        finally:
            self.depth -= 1

    def _clear(self, rest: str) -> None:
        if self.people:
            self.out.write("\x1b[2J\x1b[H")
            self.out.flush()

    def _quit(self, rest: str) -> None:
        raise Quit


def parameter(text: str) -> Any:
    """The value of a parameter, of its JSON: numbers in brackets are an array."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"{text}: not a JSON value ({error.msg}); a text stands between double quotes") from error
    if not isinstance(value, list) or (value and all(isinstance(one, str) for one in value)):
        if isinstance(value, dict):
            raise InvalidRequest(f"{text}: expected a number, a text, true, false, or a list of these")
        return value
    try:
        array = np.array(value, np.int64 if not value else None)
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"{text}: no array: {error}") from error
    if array.dtype.kind not in "iuf":
        raise InvalidRequest(f"{text}: expected a list of numbers, or one of texts")
    return array


def told(result: Result, took_s: float) -> str:
    """What is said after a result: rows, time, version and seed."""
    said = [f"{len(result):,} row{'' if len(result) == 1 else 's'}" if result.columns else "done"]
    said.append(f"{took_s * 1e3:,.1f} ms ({result.took_s * 1e3:,.1f} ms in the service)")
    if result.version:
        said.append(f"version {result.version}")
    if result.seed is not None:
        said.append(f"seed {result.seed}")
    return ", ".join(said)
