"""NumPy files by windows: a header, and rows that are mapped only while they are read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from asterism.formats.chunks import Array, refuse
from asterism.formats.tables import Batch, Described, missing_column, spans
from asterism_proto.arrays import DTYPES
from asterism_proto.errors import InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class NpyFile:
    """A checked .npy file."""

    path: Path
    label: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    start: int
    """Bytes of its header."""

    @classmethod
    def open(cls, path: Path, label: str) -> NpyFile:
        """Read the header of a file; InvalidRequest where it is none, cut off, or of Python objects."""
        try:
            with path.open("rb") as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, fortran, dtype = read(file)
                start = file.tell()
        except FileNotFoundError as error:
            raise InvalidRequest(f"{label}: there is no such file") from error
        except ValueError as error:
            raise InvalidRequest(f"{label}: not a .npy file ({error})") from error
        if dtype.hasobject:
            raise InvalidRequest(f"{label}: holds Python objects; write an array of numbers")
        expected = start + dtype.itemsize * int(np.prod(shape, dtype=object))
        found = path.stat().st_size
        if found < expected:
            raise refuse(label, expected, found, "bytes (it is cut off)")
        if not shape:
            raise InvalidRequest(f"{label}: a single value; expected an array with one entry per row")
        return cls(path=path, label=label, shape=shape, dtype=dtype, fortran=fortran and len(shape) > 1, start=start)

    @property
    def rows(self) -> int:
        """Entries of the first axis."""
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes of its values."""
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=object))

    def read(self, start: int, stop: int) -> Array:
        """Entries ``start`` to ``stop`` of the first axis; a mapped window in native byte order."""
        shape = (stop - start, *self.shape[1:])
        if 0 in shape:
            return np.zeros(shape, self.dtype.newbyteorder("="))
        if self.fortran:
            array: Array = np.memmap(self.path, self.dtype, "r", self.start, self.shape, "F")[start:stop]
        else:
            row = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=object))
            array = np.memmap(self.path, self.dtype, "r", self.start + start * row, shape)
        # A memmap's own class would be carried through every slice of it.
        array = array.view(np.ndarray)
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def described(file: NpyFile) -> Described:
    """The dense feature that a file's entries are; InvalidRequest where they are none."""
    if file.dtype.name not in DTYPES:
        raise InvalidRequest(f"{file.label}: holds {file.dtype}; a feature is one of {', '.join(sorted(DTYPES))}")
    return Described(kind="dense", dtype=file.dtype.name, shape=file.shape[1:])


def edge_columns(file: NpyFile) -> dict[str, NpyFile]:
    """The two columns of an array of edges: [E, 2], or [2, E] where the second axis is not 2.

    Either ``{"edges": [E, 2]}`` or ``{"src": [E], "dst": [E]}``, whichever lies in rows.
    """
    if len(file.shape) != 2 or 2 not in file.shape:
        raise refuse(file.label, "[E, 2] or [2, E]", list(file.shape), "as the shape of an array of edges")
    by_row = file.shape[1] == 2
    rows = file.shape[0] if by_row else file.shape[1]
    if by_row != file.fortran:
        return {"edges": replace(file, shape=(rows, 2), fortran=False)}
    column = replace(file, shape=(rows,), fortran=False)
    return {"src": column, "dst": replace(column, start=file.start + rows * file.dtype.itemsize)}


_INDEXED = re.compile(r"(.+)\[(\d+)\]")


class NpyTable:
    """Columns in .npy files of their own, or fields of structured arrays.

    Parameters
    ----------
    files : mapping
        Per column its files in order; or, under the empty name, files of structured arrays. A column of a
        two-dimensional file is called ``name[i]``.
    """

    def __init__(self, files: Mapping[str, Sequence[NpyFile]]) -> None:
        self._files = {name: list(listed) for name, listed in files.items()}
        first_name, first = next(iter(self._files.items()))
        for name, listed in self._files.items():
            if len(listed) != len(first):
                raise InvalidRequest(f"column {name!r} has {len(listed)} files, column {first_name!r} has {len(first)}; expected as many")
            for file, other in zip(listed, first, strict=True):
                if file.rows != other.rows:
                    raise refuse(file.label, f"{other.rows} (as {other.label})", file.rows, "rows")

    @property
    def rows(self) -> int | None:
        """Rows in all."""
        return sum(file.rows for file in next(iter(self._files.values())))

    @property
    def nbytes(self) -> int:
        """Bytes in all."""
        return sum(file.nbytes for listed in self._files.values() for file in listed)

    def has(self, column: str) -> bool:
        """Whether a column has files of its own."""
        return column in self._files

    def _find(self, column: str) -> tuple[list[NpyFile], str | int | None]:
        """The files of a column, and the field or column in them that it is."""
        if column in self._files:
            return self._files[column], None
        indexed = _INDEXED.fullmatch(column)
        if indexed and indexed[1] in self._files:
            files, index = self._files[indexed[1]], int(indexed[2])
            for file in files:
                if len(file.shape) != 2 or index >= file.shape[1]:
                    raise InvalidRequest(f"{file.label}: no column {index} in an array of shape {list(file.shape)}")
            return files, index
        if "" in self._files:
            for file in self._files[""]:
                if column not in (file.dtype.names or ()):
                    raise missing_column(file.label, column, list(file.dtype.names or ()))
            return self._files[""], column
        raise missing_column("files", column, list(self._files))

    def describe(self, column: str) -> Described:
        """As `Table.describe`."""
        files, within = self._find(column)
        if within is None:
            kinds = [Described(kind="bytes") if file.dtype.kind in "SU" and len(file.shape) == 1 else described(file) for file in files]
        elif isinstance(within, int):
            kinds = [Described(kind="dense", dtype=described(file).dtype) for file in files]
        else:
            kinds = []
            for file in files:
                base = file.dtype[within]
                if base.kind in "SU":
                    kinds.append(Described(kind="bytes"))
                    continue
                if base.base.name not in DTYPES:
                    raise InvalidRequest(f"{file.label}: field {within!r} holds {base}; a feature is one of {', '.join(sorted(DTYPES))}")
                kinds.append(Described(kind="dense", dtype=base.base.name, shape=base.shape))
        for file, kind in zip(files, kinds, strict=True):
            if kind != kinds[0]:
                raise refuse(file.label, f"{kinds[0].dtype}{list(kinds[0].shape)}", f"{kind.dtype}{list(kind.shape)}", "a row, as in the first file")
        return kinds[0]

    def batches(self, wanted: Mapping[str, pa.DataType | None], limit: int) -> Iterator[Batch]:
        """As `Table.batches`."""
        found = {column: self._find(column) for column in wanted}
        leading = next(iter(found.values()))[0] if found else next(iter(self._files.values()))
        for at, lead in enumerate(leading):
            for start, stop in spans(lead.rows, limit):
                if start == stop:
                    continue
                windows = {id(files): files[at].read(start, stop) for files, _ in found.values()}
                columns: dict[str, Array] = {}
                for column, (files, within) in found.items():
                    window = windows[id(files)]
                    columns[column] = window if within is None else window[:, within] if isinstance(within, int) else window[within]
                size = stop - start
                nbytes = sum(window.nbytes for window in windows.values())
                yield Batch(file=lead.label, first_row=start, size=size, rows=size, columns=columns, nbytes=nbytes)
