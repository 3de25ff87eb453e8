"""Line ends, quotes and blank lines of CSV text, vectorized over the bytes of a block."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from asterism.formats.chunks import Ids

_LF, _CR = 10, 13


def line_ends(data: bytes) -> Ids:
    """Return the offsets of line ends; the last line may end with the data."""
    ends: Ids = np.flatnonzero(np.frombuffer(data, np.uint8) == _LF)
    return ends if data.endswith(b"\n") or not data else np.append(ends, len(data))


def row_ends(data: bytes, quote: str) -> Ids:
    """Return the offsets of row ends: line ends that are not within quotes.

    With an empty quote, every line end is a row end.
    """
    ends = line_ends(data)
    if not quote:
        return ends
    quotes = np.flatnonzero(np.frombuffer(data, np.uint8) == ord(quote))
    outside: Ids = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return outside


def row_lines(data: bytes, ends: Ids) -> Ids:
    """Return the line, from 0, on which each row begins. Blank rows are left out."""
    starts = np.concatenate((np.zeros(min(len(ends), 1), np.int64), ends[:-1] + 1))
    array = np.frombuffer(data, np.uint8)
    lengths = ends - starts
    is_blank = (lengths == 0) | (
        (lengths == 1) & (array[np.minimum(starts, len(array) - 1)] == _CR)
    )
    lines: Ids = np.searchsorted(line_ends(data), starts[~is_blank])
    return lines


def open_quotes(data: bytes, quote: str) -> Ids:
    """Return the lines, from 0, with an odd number of quotes."""
    ends = line_ends(data)
    quotes = np.flatnonzero(np.frombuffer(data, np.uint8) == ord(quote))
    counts = np.diff(np.searchsorted(quotes, ends), prepend=0)
    lines: Ids = np.flatnonzero(counts % 2)
    return lines


def lines_with_returns(data: bytes, quote: str, *, multiline: bool) -> Ids:
    """Return the lines, from 0, that have a CR outside of quotes and before their end.

    ``multiline`` allows quotes to span lines.
    """
    if data.count(b"\r") == data.count(b"\r\n") + data.endswith(b"\r"):
        return np.zeros(0, np.int64)
    array = np.frombuffer(data, np.uint8)
    returns = np.flatnonzero(array[:-1] == _CR)
    following = array[returns + 1]
    returns = returns[(following != _LF) & (following != _CR)]
    lines: Ids = np.searchsorted(line_ends(data), returns)
    if quote:
        quotes = np.flatnonzero(array == ord(quote))
        before = np.searchsorted(quotes, returns)
        if not multiline:
            starts = np.concatenate((np.zeros(1, np.int64), line_ends(data) + 1))
            before = before - np.searchsorted(quotes, starts[lines])
        lines = lines[before % 2 == 0]
    return np.unique(lines)


def replace_lines(data: bytes, lines: Iterable[int], text: bytes) -> tuple[bytes, list[bytes]]:
    """Replace some lines, in ascending order, by a text.

    Returns the new data and the original lines.
    """
    ends = line_ends(data)
    pieces: list[bytes] = []
    originals: list[bytes] = []
    position = 0
    for line in lines:
        start, end = (int(ends[line - 1]) + 1 if line else 0), int(ends[line])
        originals.append(data[start:end].rstrip(b"\r"))
        pieces += [data[position:start], text]
        position = end
    return b"".join([*pieces, data[position:]]), originals
