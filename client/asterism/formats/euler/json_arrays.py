"""JSON files of one object whose arrays are too long for memory: read element by element, each with
its line.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asterism_proto.errors import InvalidRequest

BLOCK_BYTES = 1 << 20
"""Read at a time."""
MAX_ELEMENT = 64 << 20
"""Letters of one element at most."""
_NUMBER_TAIL = 4
"""Letters behind a value that may still belong to it: of 1e+5 the reader takes the 1 where the file
is read up to the +.
"""
_WHITESPACE = " \t\r\n"
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayPosition:
    """Where an array begins, behind its bracket."""

    offset: int
    """In bytes."""
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayElement:
    """One element of an array."""

    array: str
    line: int
    """Of its first letter, from 1."""
    value: Any
    nbytes: int
    """Of the file, with what stands before it."""


class _TextWindow:
    """A file's text from some place on: a window of it, and where the window is."""

    def __init__(self, path: Path, position: ArrayPosition) -> None:
        self.path = path
        self.line = position.line
        self.offset = position.offset
        self._file = path.open("rb")
        self._file.seek(position.offset)
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._buffer = ""
        self._cursor = 0
        self._ended = False

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def error(self, problem: str) -> InvalidRequest:
        """The error for what stands here."""
        return InvalidRequest(f"{self.path}, line {self.line}: {problem}")

    def _read_more(self) -> bool:
        """Read on; False at the end."""
        if self._ended:
            return False
        block = self._file.read(BLOCK_BYTES)
        self._ended = not block
        try:
            text = self._decode(block, final=self._ended)
        except UnicodeDecodeError as error:
            raise self.error(f"the file is not UTF-8 ({error})") from error
        self._buffer, self._cursor = self._buffer[self._cursor :] + text, 0
        return not self._ended

    def _advance(self, stop: int) -> None:
        consumed = self._buffer[self._cursor : stop]
        self.line += consumed.count("\n")
        self.offset += len(consumed) if consumed.isascii() else len(consumed.encode())
        self._cursor = stop

    def peek(self) -> str:
        """The next letter that is no space; "" at the end."""
        while True:
            stop = self._cursor
            while stop < len(self._buffer) and self._buffer[stop] in _WHITESPACE:
                stop += 1
            self._advance(stop)
            if stop < len(self._buffer):
                return self._buffer[stop]
            if not self._read_more():
                return ""

    def expect(self, allowed: str) -> str:
        """Take the next letter, which must be one of these."""
        character = self.peek()
        if not character or character not in allowed:
            raise self.error(
                f"expected {' or '.join(allowed)}, found {character or 'the end of the file'}"
            )
        self._advance(self._cursor + 1)
        return character

    def value(self) -> Any:
        """Take the next value."""
        self.peek()
        while True:
            start = self._cursor  # reading on moves the window
            try:
                value, stop = _DECODER.raw_decode(self._buffer, start)
            except json.JSONDecodeError as error:
                buffered = len(self._buffer) - start
                if buffered <= MAX_ELEMENT and self._read_more():
                    continue
                if buffered > MAX_ELEMENT:
                    raise self.error(
                        f"what begins here has no end within {MAX_ELEMENT:,} letters"
                    ) from error
                self.line += self._buffer.count(
                    "\n", self._cursor, self._cursor + error.pos - start
                )
                raise self.error(f"this is no JSON: {error.msg}") from error
            except ValueError as error:
                raise self.error(f"this can not be read: {error}") from error
            except RecursionError as error:
                raise self.error("brackets are nested too deep") from error
            if len(self._buffer) - stop < _NUMBER_TAIL and self._read_more():
                continue  # a number may go on
            self._advance(self._cursor + stop - start)
            return value


def read_elements(
    path: Path,
    positions: MutableMapping[str, ArrayPosition] | None = None,
    *,
    array: str | None = None,
    position: ArrayPosition | None = None,
) -> Iterator[ArrayElement]:
    """The elements of a file's arrays, in order.

    Parameters
    ----------
    path : Path
    positions : mapping, optional
        Told where each array begins.
    array, position : optional
        Begin in this array, and end with it.

    Raises
    ------
    InvalidRequest
        With file and line, where the text is no such JSON, or is cut off.
    """
    text = _TextWindow(path, position or ArrayPosition(offset=0, line=1))
    try:
        if array is not None:
            yield from _read_array(text, array)
            return
        text.expect("{")
        if text.peek() == "}":
            return
        seen: set[str] = set()
        while True:
            if text.peek() != '"':
                raise text.error(
                    f"expected a name in quotes, found {text.peek() or 'the end of the file'}"
                )
            name = text.value()
            if name in seen:
                raise text.error(f"{name!r} is there twice")
            seen.add(name)
            text.expect(":")
            if text.peek() == "[":
                text.expect("[")
                if positions is not None:
                    positions[name] = ArrayPosition(offset=text.offset, line=text.line)
                yield from _read_array(text, name)
            else:
                text.value()
            if text.expect(",}") == "}":
                return
    finally:
        text.close()


def _read_array(text: _TextWindow, name: str) -> Iterator[ArrayElement]:
    if text.peek() == "]":
        text.expect("]")
        return
    while True:
        before = text.offset
        text.peek()
        line = text.line
        value = text.value()
        yield ArrayElement(array=name, line=line, value=value, nbytes=text.offset - before)
        if text.expect(",]") == "]":
            return


class JsonArrays:
    """A file's arrays: read through once as they come, or again one of them.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, ArrayPosition] = {}

    def has_array(self, array: str) -> bool:
        """Whether an array was met."""
        return array in self._places

    def elements(self) -> Iterator[ArrayElement]:
        """Every element, in the file's order."""
        return read_elements(self._path, self._places)

    def elements_of(self, array: str) -> Iterator[ArrayElement]:
        """The elements of an array that was met; none of another one."""
        return (
            read_elements(self._path, array=array, position=self._places[array])
            if array in self._places
            else iter(())
        )
