"""JSON files of one object whose arrays are too long for memory: read element by element, each with its line."""

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
_OPEN_END = 4
"""Letters behind a value that may still belong to it: of 1e+5 the reader takes the 1 where the file is read up to the +."""
_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an array begins, behind its bracket."""

    offset: int
    """In bytes."""
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One element of an array."""

    array: str
    line: int
    """Of its first letter, from 1."""
    value: Any
    nbytes: int
    """Of the file, with what stands before it."""


class _Text:
    """A file's text from some place on: a window of it, and where the window is."""

    def __init__(self, path: Path, place: Place) -> None:
        self.path = path
        self.line = place.line
        self.offset = place.offset
        self._file = path.open("rb")
        self._file.seek(place.offset)
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._buffer = ""
        self._at = 0
        self._ended = False

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def refuse(self, what: str) -> InvalidRequest:
        """The error for what stands here."""
        return InvalidRequest(f"{self.path}, line {self.line}: {what}")

    def _more(self) -> bool:
        """Read on; False at the end."""
        if self._ended:
            return False
        block = self._file.read(BLOCK_BYTES)
        self._ended = not block
        try:
            text = self._decode(block, final=self._ended)
        except UnicodeDecodeError as error:
            raise self.refuse(f"the file is not UTF-8 ({error})") from error
        self._buffer, self._at = self._buffer[self._at :] + text, 0
        return not self._ended

    def _take(self, stop: int) -> None:
        taken = self._buffer[self._at : stop]
        self.line += taken.count("\n")
        self.offset += len(taken) if taken.isascii() else len(taken.encode())
        self._at = stop

    def peek(self) -> str:
        """The next letter that is no space; "" at the end."""
        while True:
            stop = self._at
            while stop < len(self._buffer) and self._buffer[stop] in _SPACE:
                stop += 1
            self._take(stop)
            if stop < len(self._buffer):
                return self._buffer[stop]
            if not self._more():
                return ""

    def expect(self, letters: str) -> str:
        """Take the next letter, which must be one of these."""
        found = self.peek()
        if not found or found not in letters:
            raise self.refuse(f"expected {' or '.join(letters)}, found {found or 'the end of the file'}")
        self._take(self._at + 1)
        return found

    def value(self) -> Any:
        """Take the next value."""
        self.peek()
        while True:
            start = self._at  # reading on moves the window
            try:
                value, stop = _DECODER.raw_decode(self._buffer, start)
            except json.JSONDecodeError as error:
                held = len(self._buffer) - start
                if held <= MAX_ELEMENT and self._more():
                    continue
                if held > MAX_ELEMENT:
                    raise self.refuse(f"what begins here has no end within {MAX_ELEMENT:,} letters") from error
                self.line += self._buffer.count("\n", self._at, self._at + error.pos - start)
                raise self.refuse(f"this is no JSON: {error.msg}") from error
            except ValueError as error:
                raise self.refuse(f"this can not be read: {error}") from error
            except RecursionError as error:
                raise self.refuse("brackets are nested too deep") from error
            if len(self._buffer) - stop < _OPEN_END and self._more():
                continue  # a number may go on
            self._take(self._at + stop - start)
            return value


def elements(
    path: Path, places: MutableMapping[str, Place] | None = None, *, array: str | None = None, place: Place | None = None
) -> Iterator[Element]:
    """The elements of a file's arrays, in order.

    Parameters
    ----------
    path : Path
    places : mapping, optional
        Told where each array begins.
    array, place : optional
        Begin in this array, and end with it.

    Raises
    ------
    InvalidRequest
        With file and line, where the text is no such JSON, or is cut off.
    """
    text = _Text(path, place or Place(offset=0, line=1))
    try:
        if array is not None:
            yield from _array(text, array)
            return
        text.expect("{")
        if text.peek() == "}":
            return
        seen: set[str] = set()
        while True:
            if text.peek() != '"':
                raise text.refuse(f"expected a name in quotes, found {text.peek() or 'the end of the file'}")
            name = text.value()
            if name in seen:
                raise text.refuse(f"{name!r} is there twice")
            seen.add(name)
            text.expect(":")
            if text.peek() == "[":
                text.expect("[")
                if places is not None:
                    places[name] = Place(offset=text.offset, line=text.line)
                yield from _array(text, name)
            else:
                text.value()
            if text.expect(",}") == "}":
                return
    finally:
        text.close()


def _array(text: _Text, name: str) -> Iterator[Element]:
    if text.peek() == "]":
        text.expect("]")
        return
    while True:
        before = text.offset
        text.peek()
        line = text.line
        value = text.value()
        yield Element(array=name, line=line, value=value, nbytes=text.offset - before)
        if text.expect(",]") == "]":
            return


class Arrays:
    """A file's arrays: read through once as they come, or again one of them.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, Place] = {}

    def holds(self, array: str) -> bool:
        """Whether an array was met."""
        return array in self._places

    def all(self) -> Iterator[Element]:
        """Every element, in the file's order."""
        return elements(self._path, self._places)

    def of(self, array: str) -> Iterator[Element]:
        """The elements of an array that was met; none of another one."""
        return elements(self._path, array=array, place=self._places[array]) if array in self._places else iter(())
