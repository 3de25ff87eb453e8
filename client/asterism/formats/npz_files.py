"""NumPy's .npz archives: arrays that are mapped if stored as they are, otherwise decompressed.

Nothing is unpickled. A compressed array is read from its start to its end, so that memory holds one
window of it only.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from asterism.formats.chunks import Array, mismatch_error
from asterism.formats.npy_files import ArrayFile, NpyFile, read_header
from asterism.formats.table_reader import missing_column_error
from asterism_proto.errors import InvalidRequest

_LOCAL_HEADER_BYTES = 30
_SKIP_BYTES = 1 << 20
_ENCRYPTED = 1
_SUBSCRIPT = re.compile(r"(.+)\[[0-9:,\s]+\]")


@dataclass(slots=True)
class _Stream:
    """Open stream of an array's bytes."""

    file: IO[bytes] | None = None
    position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ZippedArray:
    """Compressed array of an archive; see `NpyFile` for an array that is not compressed."""

    path: Path
    label: str
    member: str
    """Name of the array's file in the archive."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    start: int
    """Size of the header in bytes."""
    _stream: _Stream = field(default_factory=_Stream, compare=False, repr=False)

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

        Windows in ascending order are read in one pass.
        """
        shape = (stop - start, *self.shape[1:])
        if self.fortran:
            raise InvalidRequest(
                f"{self.label}: expected a compressed array in C order, found Fortran order; save "
                "it with numpy.ascontiguousarray, or with numpy.savez"
            )
        row_bytes = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=object))
        data = self._read_bytes(self.start + start * row_bytes, (stop - start) * row_bytes)
        array: Array = np.frombuffer(data, self.dtype).reshape(shape)
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))

    def view(self, shape: tuple[int, ...], offset: int) -> ZippedArray:
        """Return consecutive values as an array of another shape; see `ArrayFile.view`."""
        start = self.start + offset * self.dtype.itemsize
        return replace(self, shape=shape, start=start, fortran=False, _stream=_Stream())

    def _read_bytes(self, offset: int, count: int) -> bytes:
        stream = self._stream
        try:
            if stream.file is None or stream.position > offset:
                if stream.file is not None:
                    stream.file.close()
                with zipfile.ZipFile(self.path) as archive:
                    stream.file, stream.position = archive.open(self.member), 0
            while stream.position < offset:
                skipped = len(stream.file.read(min(offset - stream.position, _SKIP_BYTES)))
                if not skipped:
                    raise EOFError("the data end too early")
                stream.position += skipped
            data = stream.file.read(count)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError) as error:
            raise InvalidRequest(
                f"{self.label}: cannot be decompressed after byte {stream.position} of the array "
                f"({error}); the archive is cut off or damaged: write it again"
            ) from error
        stream.position += len(data)
        if len(data) < count:
            raise mismatch_error(self.label, count, len(data), "bytes (it is cut off)")
        return data


def open_archives(
    files: Sequence[tuple[Path, str]], columns: Iterable[str]
) -> dict[str, list[ArrayFile]]:
    """Open the arrays of archives that columns use.

    Parameters
    ----------
    files : sequence of (Path, str)
        Archives, and their names in messages.
    columns : iterable of str
        Columns: names of arrays, possibly with a subscript such as ``[0]``.

    Returns
    -------
    dict of str to list of ArrayFile
        Files of each array, in the order of the archives.

    Raises
    ------
    InvalidRequest
        An archive cannot be read, or has no such array.
    """
    arrays: dict[str, list[ArrayFile]] = {}
    for path, label in files:
        try:
            with zipfile.ZipFile(path) as archive:
                members = {
                    info.filename.removesuffix(".npy"): info
                    for info in archive.infolist()
                    if info.filename.endswith(".npy")
                }
                names = dict.fromkeys(_array_name(label, column, members) for column in columns)
                for name in names:
                    arrays.setdefault(name, []).append(
                        _open_array(path, f"{label}[{name!r}]", archive, members[name])
                    )
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError) as error:
            raise InvalidRequest(f"{label}: expected a complete .npz file ({error})") from error
    return arrays


def _array_name(label: str, column: str, members: Mapping[str, object]) -> str:
    """Return the name of the array that a column uses."""
    if column in members:
        return column
    subscript = _SUBSCRIPT.fullmatch(column)
    if subscript and subscript[1] in members:
        return subscript[1]
    raise missing_column_error(label, column, list(members))


def _open_array(
    path: Path, label: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> ArrayFile:
    if info.flag_bits & _ENCRYPTED:
        raise InvalidRequest(
            f"{label}: expected an archive without encryption; write it with numpy.savez"
        )
    with archive.open(info) as member:
        shape, fortran, dtype, header_bytes = read_header(member, label)
    array = ZippedArray(
        path=path,
        label=label,
        member=info.filename,
        shape=shape,
        dtype=dtype,
        fortran=fortran,
        start=header_bytes,
    )
    if info.file_size < header_bytes + array.nbytes:
        raise mismatch_error(
            label, header_bytes + array.nbytes, info.file_size, "bytes (it is cut off)"
        )
    if info.compress_type != zipfile.ZIP_STORED:
        return array
    with path.open("rb") as file:
        file.seek(info.header_offset)
        local_header = file.read(_LOCAL_HEADER_BYTES)
    # Lengths of the name and of the extra field, which precede the data.
    skipped = int.from_bytes(local_header[26:28], "little") + int.from_bytes(
        local_header[28:30], "little"
    )
    return NpyFile(
        path=path,
        label=label,
        shape=shape,
        dtype=dtype,
        fortran=fortran,
        start=info.header_offset + _LOCAL_HEADER_BYTES + skipped + header_bytes,
    )
