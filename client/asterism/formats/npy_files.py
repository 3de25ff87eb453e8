"""NumPy files read in windows: rows are mapped only while they are read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, Protocol

import numpy as np
import pyarrow as pa

from asterism.formats.chunks import Array, mismatch_error
from asterism.formats.table_reader import ColumnDescription, RowBatch, missing_column_error, spans
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import DTYPES


class ArrayFile(Protocol):
    """Port of an array in a file, of which rows are read in windows."""

    @property
    def label(self) -> str:
        """Name of the array in messages."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the array."""

    @property
    def fortran(self) -> bool:
        """True if the first axis is contiguous."""

    @property
    def rows(self) -> int:
        """Length of the first axis."""

    @property
    def nbytes(self) -> int:
        """Size of the values in bytes."""

    def read(self, start: int, stop: int) -> Array:
        """Return entries ``start`` to ``stop`` of the first axis, in native byte order.

        Parameters
        ----------
        start, stop : int

        Returns
        -------
        ndarray, shape (stop - start, ...)
        """

    def view(self, shape: tuple[int, ...], offset: int) -> ArrayFile:
        """Return consecutive values as an array of another shape, in C order.

        Parameters
        ----------
        shape : tuple of int
        offset : int
            Number of values before the first.

        Returns
        -------
        ArrayFile
        """


def read_header(file: IO[bytes], label: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Read and validate the header of an array.

    Parameters
    ----------
    file : binary file
        File in the format of ``numpy.save``, at its start.
    label : str
        Name of the file in messages.

    Returns
    -------
    shape : tuple of int
    fortran : bool
        True if the first of several axes is contiguous.
    dtype : numpy.dtype
    size : int
        Size of the header in bytes.

    Raises
    ------
    InvalidRequest
        The file is not a .npy file, holds Python objects, or a single value.
    """
    try:
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(file)
    except (OSError, ValueError, SyntaxError, TokenError) as error:
        raise InvalidRequest(f"{label}: not a .npy file ({error})") from error
    if dtype.hasobject:
        raise InvalidRequest(f"{label}: expected an array of numbers, found Python objects")
    if not shape:
        raise InvalidRequest(
            f"{label}: expected an array with one value for each row, found a single value"
        )
    return shape, fortran and len(shape) > 1, dtype, file.tell()


@dataclass(frozen=True, slots=True, kw_only=True)
class NpyFile:
    """Validated .npy file."""

    path: Path
    label: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    start: int
    """Size of the header in bytes."""

    @classmethod
    def open(cls, path: Path, label: str) -> NpyFile:
        """Read and validate the header of a file.

        Raises
        ------
        InvalidRequest
            The file is not a .npy file, is cut off, or holds Python objects.
        """
        try:
            with path.open("rb") as file:
                shape, fortran, dtype, start = read_header(file, label)
        except FileNotFoundError as error:
            raise InvalidRequest(f"{label}: no such file") from error
        array = cls(path=path, label=label, shape=shape, dtype=dtype, fortran=fortran, start=start)
        actual = path.stat().st_size
        if actual < start + array.nbytes:
            raise mismatch_error(label, start + array.nbytes, actual, "bytes (it is cut off)")
        return array

    @property
    def rows(self) -> int:
        """Length of the first axis."""
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Size of the values in bytes."""
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=object))

    def read(self, start: int, stop: int) -> Array:
        """Return entries ``start`` to ``stop`` of the first axis, in native byte order.

        The result is a mapped window of the file where possible.
        """
        shape = (stop - start, *self.shape[1:])
        if 0 in shape:
            return np.zeros(shape, self.dtype.newbyteorder("="))
        if self.fortran:
            array: Array = np.memmap(self.path, self.dtype, "r", self.start, self.shape, "F")[
                start:stop
            ]
        else:
            row = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=object))
            array = np.memmap(self.path, self.dtype, "r", self.start + start * row, shape)
        # The memmap subclass would otherwise propagate to every slice.
        array = array.view(np.ndarray)
        if not array.flags.aligned:  # Arrays in archives begin at any byte.
            array = array.copy()
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))

    def view(self, shape: tuple[int, ...], offset: int) -> NpyFile:
        """Return consecutive values as an array of another shape; see `ArrayFile.view`."""
        start = self.start + offset * self.dtype.itemsize
        return replace(self, shape=shape, start=start, fortran=False)


def describe_file(file: ArrayFile) -> ColumnDescription:
    """Describe a file's entries as a dense feature; raise InvalidRequest if unsupported."""
    if file.dtype.name not in DTYPES:
        raise InvalidRequest(
            f"{file.label} of {file.dtype}: expected one of {', '.join(sorted(DTYPES))}"
        )
    return ColumnDescription(kind="dense", dtype=file.dtype.name, shape=file.shape[1:])


def edge_columns(file: NpyFile) -> dict[str, NpyFile]:
    """Return the columns of an array of edges, of shape (E, 2) or (2, E).

    The second form applies if the second axis does not have length 2. If the two ends of an edge
    are adjacent in the file, the result is ``{"edges": file}`` with shape (E, 2), otherwise
    ``{"src": file, "dst": file}`` with shape (E,) each.
    """
    if len(file.shape) != 2 or 2 not in file.shape:
        raise mismatch_error(
            file.label, "[E, 2] or [2, E]", list(file.shape), "as the shape of an array of edges"
        )
    by_row = file.shape[1] == 2
    rows = file.shape[0] if by_row else file.shape[1]
    if by_row != file.fortran:
        return {"edges": replace(file, shape=(rows, 2), fortran=False)}
    column = replace(file, shape=(rows,), fortran=False)
    return {"src": column, "dst": replace(column, start=file.start + rows * file.dtype.itemsize)}


_INDEXED = re.compile(r"(.+)\[(?::, *)?([0-9]+)(?:, *:)?\]")
"""Column of a two-dimensional array, or its row if the axes are exchanged."""


class NpyTable:
    """Table with separate .npy files per column, or with structured arrays.

    Parameters
    ----------
    files : mapping
        Files of each column in order, or, under the empty name, files of structured arrays. A
        column of a two-dimensional file is named ``name[i]`` or ``name[:, i]``.
    """

    def __init__(self, files: Mapping[str, Sequence[ArrayFile]]) -> None:
        self._files = {name: list(column_files) for name, column_files in files.items()}
        first_name, first = next(iter(self._files.items()))
        for name, column_files in self._files.items():
            if len(column_files) != len(first):
                raise InvalidRequest(
                    f"column {name!r} with {len(column_files)} files: expected {len(first)}, as "
                    f"many as column "
                    f"{first_name!r} has"
                )
            for file, first_file in zip(column_files, first, strict=True):
                if file.rows != first_file.rows:
                    raise mismatch_error(
                        file.label, f"{first_file.rows} (as {first_file.label})", file.rows, "rows"
                    )

    @property
    def rows(self) -> int | None:
        """Total number of rows."""
        return sum(file.rows for file in next(iter(self._files.values())))

    @property
    def nbytes(self) -> int:
        """Total size in bytes."""
        return sum(file.nbytes for column_files in self._files.values() for file in column_files)

    def has_column(self, column: str) -> bool:
        """Return True if a column has its own files."""
        return column in self._files

    def _find_column(self, column: str) -> tuple[list[ArrayFile], str | int | None]:
        """Return the files of a column, and the field or column index within them."""
        if column in self._files:
            return self._files[column], None
        indexed = _INDEXED.fullmatch(column)
        if indexed and indexed[1] in self._files:
            files, index = self._files[indexed[1]], int(indexed[2])
            for file in files:
                if len(file.shape) != 2 or index >= file.shape[1]:
                    raise InvalidRequest(
                        f"{file.label} of shape {list(file.shape)}: expected a column {index}"
                    )
            return files, index
        if "" in self._files:
            for file in self._files[""]:
                if column not in (file.dtype.names or ()):
                    raise missing_column_error(file.label, column, list(file.dtype.names or ()))
            return self._files[""], column
        raise missing_column_error("files", column, list(self._files))

    def describe(self, column: str) -> ColumnDescription:
        """Return the description of a column; see `TableReader.describe`."""
        files, field = self._find_column(column)
        if field is None:
            kinds = [
                ColumnDescription(kind="bytes")
                if file.dtype.kind in "SU" and len(file.shape) == 1
                else describe_file(file)
                for file in files
            ]
        elif isinstance(field, int):
            kinds = [
                ColumnDescription(kind="dense", dtype=describe_file(file).dtype) for file in files
            ]
        else:
            kinds = []
            for file in files:
                base = file.dtype[field]
                if base.kind in "SU":
                    kinds.append(ColumnDescription(kind="bytes"))
                    continue
                if base.base.name not in DTYPES:
                    raise InvalidRequest(
                        f"{file.label}: field {field!r} of {base}: expected one of "
                        f"{', '.join(sorted(DTYPES))}"
                    )
                kinds.append(
                    ColumnDescription(kind="dense", dtype=base.base.name, shape=base.shape)
                )
        for file, kind in zip(files, kinds, strict=True):
            if kind != kinds[0]:
                raise mismatch_error(
                    file.label,
                    f"{kinds[0].dtype}{list(kinds[0].shape)}",
                    f"{kind.dtype}{list(kind.shape)}",
                    "a row, as in the first file",
                )
        return kinds[0]

    def batches(
        self, column_types: Mapping[str, pa.DataType | None], limit: int
    ) -> Iterator[RowBatch]:
        """Yield batches of rows; see `TableReader.batches`."""
        sources = {column: self._find_column(column) for column in column_types}
        first_files = (
            next(iter(sources.values()))[0] if sources else next(iter(self._files.values()))
        )
        for file_index, first_file in enumerate(first_files):
            for start, stop in spans(first_file.rows, limit):
                if start == stop:
                    continue
                windows = {
                    id(files): files[file_index].read(start, stop) for files, _ in sources.values()
                }
                columns: dict[str, Array] = {}
                for column, (files, field) in sources.items():
                    window = windows[id(files)]
                    columns[column] = (
                        window
                        if field is None
                        else window[:, field]
                        if isinstance(field, int)
                        else window[field]
                    )
                size = stop - start
                nbytes = sum(window.nbytes for window in windows.values())
                yield RowBatch(
                    file=first_file.label,
                    first_row=start,
                    size=size,
                    rows=size,
                    columns=columns,
                    nbytes=nbytes,
                )
