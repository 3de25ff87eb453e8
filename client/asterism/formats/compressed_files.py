"""Files, plain or compressed, as streams of bytes that are decompressed as they are read.

The first bytes of a file decide whether it is compressed, and how. Its name decides nothing, except
that a file with the suffix of a compression must be compressed. Memory does not depend on the size
of the text: a file that expands a millionfold is read in blocks like any other.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from asterism_proto.errors import InvalidRequest

COMPRESSION_SUFFIXES = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zstd": "zstd"}
"""Codec by suffix of a file's name."""
_CODECS = (
    (re.compile(rb"\x1f\x8b\x08"), "gzip"),
    # A magic number, then the header of a block or of the end of an empty stream.
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), "bz2"),
    # A frame, or a skippable frame, with which parallel compressors begin.
    (re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), "zstd"),
)
_UNSUPPORTED = (
    (re.compile(rb"\xfd7zXZ\x00"), "xz"),
    (re.compile(rb"PK\x03\x04|PK\x05\x06"), "zip"),
    (re.compile(rb"\x04\x22\x4d\x18"), "lz4"),
    (re.compile(rb"7z\xbc\xaf\x27\x1c"), "7z"),
    (re.compile(rb"\x1f[\x9d\xa0]"), "compress"),
)
_UNSUPPORTED_SUFFIXES = {
    ".xz": "xz", ".zip": "zip", ".lz4": "lz4", ".7z": "7z", ".z": "compress", ".br": "brotli",
    ".sz": "snappy", ".snappy": "snappy",
}  # fmt: skip
_HEAD_BYTES = 16
_BUFFER_BYTES = 1 << 20


def format_suffix(path: Path) -> str:
    """Return the suffix of a file's name that stands for its format, without a compression's."""
    return Path(path.stem).suffix if path.suffix in COMPRESSION_SUFFIXES else path.suffix


def open_text(path: Path, label: str) -> BinaryIO:
    """Open a text file for reading, decompressed if its first bytes say that it is compressed.

    Concatenated streams are read one after the other, as ``gzip``, ``bzip2`` and ``zstd`` do.

    Parameters
    ----------
    path : Path
        Plain file, or one compressed with gzip, bzip2 or Zstandard.
    label : str
        Name of the file in messages.

    Returns
    -------
    BinaryIO
        Text of the file. Reading raises InvalidRequest where the compressed data are damaged or cut
        off.

    Raises
    ------
    InvalidRequest
        The file cannot be opened, is compressed in another way, or is not compressed although its
        name says so.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError as error:
        raise InvalidRequest(f"{label}: no such file") from error
    except OSError as error:
        raise InvalidRequest(f"{label}: cannot be opened ({error.strerror})") from error
    head = file.read(_HEAD_BYTES)
    codec = next((name for pattern, name in _CODECS if pattern.match(head)), None)
    if codec is None:
        try:
            _check_plain(path, label, head)
        except InvalidRequest:
            file.close()
            raise
        file.seek(0)
        return file
    file.close()
    return cast(BinaryIO, io.BufferedReader(_DecompressedFile(path, label, codec), _BUFFER_BYTES))


def _check_plain(path: Path, label: str, head: bytes) -> None:
    """Raise InvalidRequest for a file without a supported compression that should have one."""
    other = next((name for pattern, name in _UNSUPPORTED if pattern.match(head)), None)
    other = other or _UNSUPPORTED_SUFFIXES.get(path.suffix.lower())
    if other is not None:
        raise InvalidRequest(
            f"{label}: compressed with {other}; expected plain text, gzip, bzip2 or zstd: unpack "
            "it, or compress it with one of these"
        )
    if path.suffix in COMPRESSION_SUFFIXES:
        raise InvalidRequest(
            f"{label}: named {path.suffix}, but does not begin like "
            f"{COMPRESSION_SUFFIXES[path.suffix]} data"
            f"{' (it is empty)' if not head else ''}; rename it, or write it again"
        )


def input_position(file: BinaryIO) -> int | None:
    """Return how many bytes of a compressed file were read so far; None for a plain file."""
    raw = getattr(file, "raw", None)
    return raw.input_position if isinstance(raw, _DecompressedFile) else None


class _DecompressedFile(io.RawIOBase):
    """Raw stream of the text of a compressed file.

    Parameters
    ----------
    path : Path
        Compressed file.
    label : str
        Name of the file in messages.
    codec : str
        Name of the codec, as in Arrow.
    """

    def __init__(self, path: Path, label: str, codec: str) -> None:
        self._path = path
        self._label = label
        self._codec = codec
        self._open()

    def _open(self) -> None:
        self._input = pa.OSFile(str(self._path), "r")
        self._stream = pa.CompressedInputStream(self._input, self._codec)
        self._position = 0

    @property
    def input_position(self) -> int:
        """Number of bytes of the compressed file that were read."""
        return int(self._input.tell())

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True, because the stream can be read again from the start."""
        return True

    def tell(self) -> int:
        """Return the number of bytes of text that were read."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Return to the start of the text; the stream has no other positions."""
        if whence == io.SEEK_CUR and offset == 0:
            return self._position
        if whence != io.SEEK_SET or offset != 0:
            raise io.UnsupportedOperation("seek: expected the start of the text")
        self._close_stream()
        self._open()
        return 0

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Read the next bytes of text."""
        try:
            data = self._stream.read(len(buffer))
        except (pa.ArrowException, OSError) as error:
            raise InvalidRequest(
                f"{self._label}: the {self._codec} data cannot be read at or before byte "
                f"{self.input_position} of {self._path.stat().st_size}, after {self._position} "
                f"bytes of text ({error}); the file is cut off or damaged: write it again"
            ) from error
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._close_stream()
        super().close()

    def _close_stream(self) -> None:
        self._stream.close()
        self._input.close()
