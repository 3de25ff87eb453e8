"""DGL's binary arrays and files of named tensors, streamed on write, viewed on read.

All values are little endian, unaligned and uncompressed. An array is::

    u64 magic, u64 0, i32 device type 1, i32 device id 0, i32 ndim, u8 code, u8 bits, u16 lanes 1,
    i64 shape[ndim], i64 nbytes, data in C order

A file of tensors (`save_tensors`: features, original ids) is ``u64 magic, u64 n, u64 n`` followed
by n pairs of a string and an array. DGL 1.1 to 2.4 write the same bytes.
`asterism.export.dgl_graph_files` handles the files of graphs.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Corrupt, Internal, InvalidRequest

Array = NDArray[Any]

ARRAY_MAGIC = 0xDD5E40F096B4A13F
TENSORS_MAGIC = 0xDD5A9FBE3FA2443F
_ARRAY_HEADER = struct.Struct("<QQiiiBBH")
_KINDS = {"i": 0, "u": 1, "f": 2}
_BFLOAT16 = np.dtype("V2")
"""NumPy stand-in for bfloat16: two uninterpreted bytes."""
_DTYPES: dict[tuple[int, int], np.dtype[Any]] = {
    **{
        (code, 8 * np.dtype(kind + size).itemsize): np.dtype(f"<{kind}{size}")
        for kind, code in _KINDS.items()
        for size in "1248"
        if kind + size != "f1"
    },
    (4, 16): _BFLOAT16,
}
_CODES = {dtype: key for key, dtype in _DTYPES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayStream:
    """Array that is written piece by piece.

    The pieces are whole rows in order, which together have the given shape.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[Array]]

    @classmethod
    def from_array(cls, array: Array) -> ArrayStream:
        """Wrap an array as a stream of one piece."""
        return cls(dtype=array.dtype, shape=array.shape, pieces=lambda: (array,))

    @property
    def nbytes(self) -> int:
        """Size of the data in bytes."""
        size = self.dtype.itemsize
        for dimension in self.shape:
            size *= dimension
        return size

    def array(self) -> Array:
        """Return all pieces as one array, without a copy if there is a single piece."""
        pieces = list(self.pieces())
        return (
            pieces[0]
            if len(pieces) == 1
            else np.concatenate([np.empty((0, *self.shape[1:]), self.dtype), *pieces])
        )


class DglWriter:
    """Writer of DGL's primitive values to a binary file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def integers(self, layout: str, *values: int) -> None:
        """Write integers, packed as `struct` does."""
        self._file.write(struct.pack("<" + layout, *values))

    def string(self, text: str) -> None:
        """Write the length and the UTF-8 bytes of ``text``."""
        raw = text.encode()
        self.integers("Q", len(raw))
        self._file.write(raw)

    def strings(self, texts: Iterable[str]) -> None:
        """Write a vector of strings."""
        items = list(texts)
        self.integers("Q", len(items))
        for text in items:
            self.string(text)

    def array(self, column: ArrayStream) -> None:
        """Write one array, with its data in the order of the pieces.

        Raises
        ------
        InvalidRequest
            DGL has no code for the dtype, or the array is a scalar, which DGL writes but cannot
            read.
        """
        dtype = column.dtype if column.dtype == _BFLOAT16 else column.dtype.newbyteorder("<")
        if dtype not in _CODES:
            raise InvalidRequest(
                f"DGL's files do not carry {column.dtype}; convert it to a signed integer or "
                "a float first"
            )
        if not column.shape:
            raise InvalidRequest(
                "DGL does not read a tensor without dimensions back; give it the shape [1]"
            )
        code, bits = _CODES[dtype]
        self._file.write(_ARRAY_HEADER.pack(ARRAY_MAGIC, 0, 1, 0, len(column.shape), code, bits, 1))
        self.integers(f"{len(column.shape)}q", *column.shape)
        self.integers("q", column.nbytes)
        written_bytes = 0
        for piece in column.pieces():
            raw = np.ascontiguousarray(piece, dtype)
            written_bytes += raw.nbytes
            if raw.nbytes:
                self._file.write(raw.reshape(-1).view(np.uint8).data)
        if written_bytes != column.nbytes:
            raise Internal(
                f"a column of shape {list(column.shape)} came with {written_bytes} bytes "
                f"instead of {column.nbytes}"
            )

    def named_arrays(self, tensors: Mapping[str, ArrayStream]) -> None:
        """Write a vector of names and arrays."""
        self.integers("Q", len(tensors))
        for name, column in tensors.items():
            self.string(name)
            self.array(column)

    def position(self) -> int:
        """Return the offset of the next byte."""
        return self._file.tell()


class DglReader:
    """Reader of DGL's primitive values from a mapped file.

    Every method raises Corrupt if the bytes do not have the expected form.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.offset = 0
        with open(path, "rb") as file:
            # An empty file cannot be mapped; the first read fails instead.
            self._view = memoryview(
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""
            )

    def __len__(self) -> int:
        return len(self._view)

    def corrupt_error(self, problem: str) -> Corrupt:
        """Return an error that names the file and the offset."""
        return Corrupt(f"{self._path}, byte {self.offset}: {problem}")

    def integers(self, layout: str) -> tuple[int, ...]:
        """Read integers, unpacked as `struct` does."""
        size = struct.calcsize("<" + layout)
        if self.offset + size > len(self):
            raise self.corrupt_error(f"the file ends within {size} bytes")
        values = struct.unpack_from("<" + layout, self._view, self.offset)
        self.offset += size
        return values

    def count(self, min_item_bytes: int) -> int:
        """Read the length of a vector with items of at least ``min_item_bytes`` bytes."""
        (count,) = self.integers("Q")
        if count * min_item_bytes > len(self) - self.offset:
            raise self.corrupt_error(
                f"{count} items do not fit into {len(self) - self.offset} bytes"
            )
        return count

    def expect(self, magic: int, description: str) -> None:
        """Read a magic number and check its value."""
        (actual,) = self.integers("Q")
        if actual != magic:
            raise self.corrupt_error(f"not {description}: {actual:#x} instead of {magic:#x}")

    def string(self) -> str:
        """Read a string."""
        length = self.count(1)
        self.offset += length
        try:
            return str(self._view[self.offset - length : self.offset], "utf-8")
        except UnicodeDecodeError as error:
            raise self.corrupt_error(f"a string that is not UTF-8 ({error})") from error

    def strings(self) -> list[str]:
        """Read a vector of strings."""
        return [self.string() for _ in range(self.count(8))]

    def array(self) -> Array:
        """Read an array as a read-only view of the file."""
        magic, _, _, _, ndim, code, bits, lanes = self.integers("QQiiiBBH")
        dtype = _DTYPES.get((code, bits))
        if magic != ARRAY_MAGIC or dtype is None or lanes != 1 or not 0 <= ndim <= 32:
            raise self.corrupt_error(
                f"not an array: magic {magic:#x}, type {code} of {bits} bits x {lanes}, "
                f"{ndim} dimensions"
            )
        shape = self.integers(f"{ndim}q")
        (nbytes,) = self.integers("q")
        size = 1
        for dimension in shape:
            size *= dimension
        if (
            min(shape, default=0) < 0
            or size * dtype.itemsize != nbytes
            or nbytes > len(self) - self.offset
        ):
            raise self.corrupt_error(
                f"an array of shape {list(shape)} and {dtype} cannot be {nbytes} bytes, of "
                f"which {len(self) - self.offset} are there"
            )
        array = np.frombuffer(self._view, dtype, size, self.offset if size else 0).reshape(shape)
        self.offset += nbytes
        return array

    def named_arrays(self) -> dict[str, ArrayStream]:
        """Read a vector of names and arrays."""
        pairs = [
            (self.string(), ArrayStream.from_array(self.array())) for _ in range(self.count(48))
        ]
        return dict(pairs)

    def end(self) -> None:
        """Check that the file ends here."""
        if self.offset != len(self):
            raise self.corrupt_error(f"{len(self) - self.offset} bytes follow the end")


def write_tensors(file: BinaryIO, tensors: Mapping[str, ArrayStream]) -> None:
    """Write a file for DGL's `load_tensors`, with the tensors in the given order."""
    writer = DglWriter(file)
    writer.integers("QQ", TENSORS_MAGIC, len(tensors))
    writer.named_arrays(tensors)


def read_tensors(path: Path) -> dict[str, Array]:
    """Read a file of tensors as read-only views, in the file's order.

    Parameters
    ----------
    path : Path
        File written by `write_tensors` or DGL's `save_tensors`.

    Returns
    -------
    dict of str to ndarray

    Raises
    ------
    Corrupt
        The file is not a file of tensors; the message names the offset.
    """
    source = DglReader(path)
    source.expect(TENSORS_MAGIC, "a file of tensors")
    (count,) = source.integers("Q")
    tensors = source.named_arrays()
    if count != len(tensors):
        raise source.corrupt_error(f"{count} tensors were promised, {len(tensors)} are there")
    source.end()
    return {name: column.array() for name, column in tensors.items()}


def row_slices(array: Array, rows: int) -> Iterator[Array]:
    """Yield consecutive views of ``array`` with at most ``rows`` rows each."""
    for start in range(0, len(array), rows):
        yield array[start : start + rows]
