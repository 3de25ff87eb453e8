"""Bytes of text files, decompressed, with LF line ends and without a byte order mark."""

from __future__ import annotations

import codecs
from pathlib import Path
from types import TracebackType

from asterism.formats.compressed_files import input_position, open_text
from asterism_proto.errors import InvalidRequest

UTF8_NAMES = ("utf-8", "utf-8-sig", "ascii")
"""Names of encodings, as `codecs.lookup` gives them, that are read without conversion."""
MAX_LINE_BYTES = 64 << 20
"""Largest size of a header line."""
_PROBE_BYTES = 1 << 16
"""Bytes from the beginning that decide on the line ends."""


class TextFile:
    """Text file, plain or compressed, open for reading.

    A file that has CR and no LF at its beginning ends its lines with CR, as old programs for the
    Mac wrote them; its bytes are read with LF in place of CR.

    Parameters
    ----------
    path : Path
        The file.
    label : str
        Its name in messages.
    encoding : str, default "utf-8"
        Encoding of the text; only UTF-8 has a byte order mark to skip.

    Raises
    ------
    InvalidRequest
        The file cannot be opened, or it is UTF-16.
    """

    def __init__(self, path: Path, label: str, encoding: str = "utf-8") -> None:
        self._label = label
        self._file = open_text(path, label)
        head = self._file.read(_PROBE_BYTES)
        if head.endswith(b"\r"):
            head += self._file.read(1)
        is_utf8 = codecs.lookup(encoding).name in UTF8_NAMES
        if is_utf8 and head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and 0 in head:
            self._file.close()
            raise InvalidRequest(
                f"{label}: expected text in {encoding}, found UTF-16; convert the file, as with "
                "`iconv -f UTF-16 -t UTF-8`"
            )
        self.mark_bytes = 3 if is_utf8 and head.startswith(codecs.BOM_UTF8) else 0
        """Number of bytes of the byte order mark."""
        self._ahead = head[self.mark_bytes :]
        """Bytes that were read from the file, but not from this object."""
        self._has_cr_ends = b"\r" in head and b"\n" not in head

    def __enter__(self) -> TextFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    @property
    def input_position(self) -> int | None:
        """Number of bytes of a compressed file that were read; None for a plain file."""
        return input_position(self._file)

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most ``size``; none at the end of the file."""
        data, self._ahead = self._ahead[:size], self._ahead[size:]
        if len(data) < size:
            data += self._file.read(size - len(data))
        return data.replace(b"\r", b"\n") if self._has_cr_ends else data

    def read_line(self) -> bytes:
        """Return the next line with its line end; InvalidRequest if it is too long."""
        line_end = b"\r" if self._has_cr_ends else b"\n"
        line, searched = self._ahead, 0
        while not (end := line.find(line_end, searched) + 1) and len(line) <= MAX_LINE_BYTES:
            data = self._file.read(max(_PROBE_BYTES, len(line)))
            if not data:
                self._ahead = b""
                return line
            searched = len(line)
            line += data
        if not 0 < end <= MAX_LINE_BYTES:
            raise InvalidRequest(
                f"{self._label}: expected lines of at most {MAX_LINE_BYTES} bytes; is this a text "
                "file?"
            )
        line, self._ahead = line[:end], line[end:]
        return line.replace(b"\r", b"\n") if self._has_cr_ends else line
