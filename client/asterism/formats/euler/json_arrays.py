"""Streaming reader of JSON objects with large arrays, element by element with lines."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asterism.formats.compressed_files import input_position, open_text
from asterism.json_objects import parse_constant, unique_object
from asterism_proto.errors import InvalidRequest

BLOCK_BYTES = 1 << 20
"""Number of bytes to read at a time."""
MAX_ELEMENT = 64 << 20
"""Largest length of one element, in characters."""
_NUMBER_TAIL = 4
"""Number of characters after a value that may still belong to it.
If the buffer ends within 1e+5, for example before the +, the decoder takes only the 1."""
_WHITESPACE = " \t\r\n"
_DECODER = json.JSONDecoder(object_pairs_hook=unique_object, parse_constant=parse_constant)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayPosition:
    """Position of an array's first element, after the bracket."""

    offset: int
    """Offset in bytes of the text, which is not that of a compressed file."""
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayElement:
    """One element of an array."""

    array: str
    line: int
    """Line of the first character, from 1."""
    value: Any
    nbytes: int
    """Size in bytes, including the text before the element."""


class _TextWindow:
    """Text of a file from some position on, with a buffered window."""

    def __init__(self, path: Path, position: ArrayPosition) -> None:
        self.path = path
        self.line = position.line
        self.offset = position.offset
        self._file = open_text(path, str(path))
        self._ahead = b""
        if position.offset:
            self._skip(position.offset)
        elif (head := self._file.read(len(codecs.BOM_UTF8))) == codecs.BOM_UTF8:
            self.offset += len(head)
        else:
            self._ahead = head
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._buffer = ""
        self._cursor = 0
        self._ended = False

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _skip(self, size: int) -> None:
        """Skip the first bytes of the text; those of a compressed file must be read."""
        if input_position(self._file) is None:
            self._file.seek(size)
            return
        while size and (block := self._file.read(min(size, BLOCK_BYTES))):
            size -= len(block)

    def error(self, problem: str) -> InvalidRequest:
        """Return an error that names the file and the current line."""
        return InvalidRequest(f"{self.path}, line {self.line}: {problem}")

    def _read_more(self) -> bool:
        """Read more text into the buffer; return False at the end of the file."""
        if self._ended:
            return False
        block, self._ahead = self._ahead + self._file.read(BLOCK_BYTES), b""
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
        """Return the next character that is not whitespace, or "" at the end."""
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
        """Consume the next character, which must be one of ``allowed``."""
        character = self.peek()
        if not character or character not in allowed:
            raise self.error(
                f"expected {' or '.join(allowed)}, found {character or 'the end of the file'}"
            )
        self._advance(self._cursor + 1)
        return character

    def value(self) -> Any:
        """Consume and return the next value."""
        self.peek()
        while True:
            start = self._cursor  # _read_more moves the window
            try:
                value, stop = _DECODER.raw_decode(self._buffer, start)
            except json.JSONDecodeError as error:
                buffered = len(self._buffer) - start
                if buffered <= MAX_ELEMENT and self._read_more():
                    continue
                if buffered > MAX_ELEMENT:
                    raise self.error(
                        f"expected the end of the element within {MAX_ELEMENT:,} characters"
                    ) from error
                self.line += self._buffer.count(
                    "\n", self._cursor, self._cursor + error.pos - start
                )
                raise self.error(f"expected JSON: {error.msg}") from error
            except ValueError as error:
                raise self.error(f"not readable: {error}") from error
            except RecursionError as error:
                raise self.error("expected fewer levels of brackets") from error
            if len(self._buffer) - stop < _NUMBER_TAIL and self._read_more():
                continue  # a number may continue
            self._advance(self._cursor + stop - start)
            return value


def read_elements(
    path: Path,
    positions: MutableMapping[str, ArrayPosition] | None = None,
    *,
    array: str | None = None,
    position: ArrayPosition | None = None,
) -> Iterator[ArrayElement]:
    """Yield the elements of a file's arrays, in order.

    Parameters
    ----------
    path : Path
        JSON file of one object, plain or compressed.
    positions : mapping, optional
        Output: the position of each array.
    array, position : optional
        Name and position of the only array to read.

    Yields
    ------
    ArrayElement

    Raises
    ------
    InvalidRequest
        The text is not such JSON, or is cut off. The message names file and line.
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
                raise text.error(f"{name!r} is repeated; expected each name once")
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
    """Arrays of a file: read all once in order, or one of them again.

    Parameters
    ----------
    path : Path
        JSON file of one object.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, ArrayPosition] = {}

    def has_array(self, array: str) -> bool:
        """Return True if an array was found so far."""
        return array in self._places

    def elements(self) -> Iterator[ArrayElement]:
        """Yield every element, in the order of the file."""
        return read_elements(self._path, self._places)

    def elements_of(self, array: str) -> Iterator[ArrayElement]:
        """Yield the elements of an array that was found before; nothing for another one."""
        return (
            read_elements(self._path, array=array, position=self._places[array])
            if array in self._places
            else iter(())
        )
