"""DGL's binary arrays, and its files of named tensors, written as a stream and read as views.

Everything is little endian, without alignment or compression. An array is::

    u64 magic, u64 0, i32 device type 1, i32 device id 0, i32 ndim, u8 code, u8 bits, u16 lanes 1,
    i64 shape[ndim], i64 nbytes, data in C order

and a file of tensors (`save_tensors`: features, original ids) is ``u64 magic, u64 n, u64 n`` and n times a string and
an array. DGL 1.1 to 2.4 write the same bytes. The files of graphs are in `asterism.export.dgl_graphs`.
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
_HEAD = struct.Struct("<QQiiiBBH")
_KINDS = {"i": 0, "u": 1, "f": 2}
_BFLOAT16 = np.dtype("V2")
"""How NumPy keeps a bfloat16: two bytes that it does not interpret."""
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
class Column:
    """An array that is written piece by piece: whole rows, first to last, of ``shape`` altogether."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[Array]]

    @classmethod
    def of(cls, array: Array) -> Column:
        """One array, as a column of one piece."""
        return cls(dtype=array.dtype, shape=array.shape, pieces=lambda: (array,))

    @property
    def nbytes(self) -> int:
        """Bytes of data."""
        size = self.dtype.itemsize
        for extent in self.shape:
            size *= extent
        return size

    def array(self) -> Array:
        """All pieces as one array; without a copy where there is one piece."""
        pieces = list(self.pieces())
        return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty((0, *self.shape[1:]), self.dtype), *pieces])


class Writer:
    """A stream of DGL's primitives into a binary file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def integers(self, layout: str, *values: int) -> None:
        """Numbers, as `struct` packs them."""
        self._file.write(struct.pack("<" + layout, *values))

    def string(self, text: str) -> None:
        """A length and the bytes of ``text``."""
        raw = text.encode()
        self.integers("Q", len(raw))
        self._file.write(raw)

    def strings(self, texts: Iterable[str]) -> None:
        """A vector of strings."""
        listed = list(texts)
        self.integers("Q", len(listed))
        for text in listed:
            self.string(text)

    def array(self, column: Column) -> None:
        """One array, its data in the pieces' order.

        Raises
        ------
        InvalidRequest
            For a dtype that DGL has no code for, or a scalar, which DGL writes but does not read back.
        """
        dtype = column.dtype if column.dtype == _BFLOAT16 else column.dtype.newbyteorder("<")
        if dtype not in _CODES:
            raise InvalidRequest(f"DGL's files do not carry {column.dtype}; convert it to a signed integer or a float first")
        if not column.shape:
            raise InvalidRequest("DGL does not read a tensor without dimensions back; give it the shape [1]")
        code, bits = _CODES[dtype]
        self._file.write(_HEAD.pack(ARRAY_MAGIC, 0, 1, 0, len(column.shape), code, bits, 1))
        self.integers(f"{len(column.shape)}q", *column.shape)
        self.integers("q", column.nbytes)
        written = 0
        for piece in column.pieces():
            raw = np.ascontiguousarray(piece, dtype)
            written += raw.nbytes
            if raw.nbytes:
                self._file.write(raw.reshape(-1).view(np.uint8).data)
        if written != column.nbytes:
            raise Internal(f"a column of shape {list(column.shape)} came with {written} bytes instead of {column.nbytes}")

    def named(self, tensors: Mapping[str, Column]) -> None:
        """A vector of names and arrays."""
        self.integers("Q", len(tensors))
        for name, column in tensors.items():
            self.string(name)
            self.array(column)

    def tell(self) -> int:
        """Where the next byte goes."""
        return self._file.tell()


class Reader:
    """The primitives of a mapped file, one after the other; Corrupt where they do not fit."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.at = 0
        with open(path, "rb") as file:
            # An empty file can not be mapped; it fails at the first number.
            self._view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b"")

    def __len__(self) -> int:
        return len(self._view)

    def corrupt(self, what: str) -> Corrupt:
        """An error that says where."""
        return Corrupt(f"{self._path}, byte {self.at}: {what}")

    def integers(self, layout: str) -> tuple[int, ...]:
        """Numbers, as `struct` unpacks them."""
        size = struct.calcsize("<" + layout)
        if self.at + size > len(self):
            raise self.corrupt(f"the file ends within {size} bytes")
        values = struct.unpack_from("<" + layout, self._view, self.at)
        self.at += size
        return values

    def count(self, least: int) -> int:
        """The length of a vector whose items take at least ``least`` bytes."""
        (count,) = self.integers("Q")
        if count * least > len(self) - self.at:
            raise self.corrupt(f"{count} items do not fit into {len(self) - self.at} bytes")
        return count

    def expect(self, magic: int, what: str) -> None:
        """Pass a magic number."""
        (found,) = self.integers("Q")
        if found != magic:
            raise self.corrupt(f"not {what}: {found:#x} instead of {magic:#x}")

    def string(self) -> str:
        """A string."""
        length = self.count(1)
        self.at += length
        try:
            return str(self._view[self.at - length : self.at], "utf-8")
        except UnicodeDecodeError as error:
            raise self.corrupt(f"a string that is not UTF-8 ({error})") from error

    def strings(self) -> list[str]:
        """A vector of strings."""
        return [self.string() for _ in range(self.count(8))]

    def array(self) -> Array:
        """An array, as a read-only view of the file."""
        magic, _, _, _, ndim, code, bits, lanes = self.integers("QQiiiBBH")
        dtype = _DTYPES.get((code, bits))
        if magic != ARRAY_MAGIC or dtype is None or lanes != 1 or not 0 <= ndim <= 32:
            raise self.corrupt(f"not an array: magic {magic:#x}, type {code} of {bits} bits x {lanes}, {ndim} dimensions")
        shape = self.integers(f"{ndim}q")
        (nbytes,) = self.integers("q")
        size = 1
        for extent in shape:
            size *= extent
        if min(shape, default=0) < 0 or size * dtype.itemsize != nbytes or nbytes > len(self) - self.at:
            raise self.corrupt(f"an array of shape {list(shape)} and {dtype} can not be {nbytes} bytes, of which {len(self) - self.at} are there")
        array = np.frombuffer(self._view, dtype, size, self.at if size else 0).reshape(shape)
        self.at += nbytes
        return array

    def named(self) -> dict[str, Column]:
        """A vector of names and arrays."""
        pairs = [(self.string(), Column.of(self.array())) for _ in range(self.count(48))]
        return dict(pairs)

    def end(self) -> None:
        """Check that nothing follows."""
        if self.at != len(self):
            raise self.corrupt(f"{len(self) - self.at} bytes follow the end")


def write_tensors(file: BinaryIO, tensors: Mapping[str, Column]) -> None:
    """Write what DGL's `load_tensors` reads: features and original ids, in the order given."""
    out = Writer(file)
    out.integers("QQ", TENSORS_MAGIC, len(tensors))
    out.named(tensors)


def read_tensors(path: Path) -> dict[str, Array]:
    """The arrays of a file of tensors, as read-only views of it, in the file's order.

    Raises
    ------
    Corrupt
        Where the bytes are not such a file; the message says at which.
    """
    source = Reader(path)
    source.expect(TENSORS_MAGIC, "a file of tensors")
    (count,) = source.integers("Q")
    tensors = source.named()
    if count != len(tensors):
        raise source.corrupt(f"{count} tensors were promised, {len(tensors)} are there")
    source.end()
    return {name: column.array() for name, column in tensors.items()}


def sliced(array: Array, rows: int) -> Iterator[Array]:
    """Views of at most ``rows`` rows of ``array``, first to last."""
    for at in range(0, len(array), rows):
        yield array[at : at + rows]
