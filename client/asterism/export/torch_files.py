"""Writer of files for `torch.load`, streamed and without torch: tensors in dictionaries.

Such a file is an uncompressed ZIP archive. ``data.pkl`` describes the content in a few opcodes of
pickle protocol 2, and ``data/<k>`` has the bytes of the k-th tensor. The files load with
``weights_only=True``. This module does not read such files.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from typing import BinaryIO, TypeAlias

import numpy as np

from asterism.export.dgl_tensor_files import ArrayStream
from asterism_proto.errors import InvalidRequest

Content: TypeAlias = (
    "Mapping[Content, Content] | tuple[Content, ...] | ArrayStream | str | int | None"
)

_STORAGES = {
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "bool": "Bool",
}
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Timestamp of all entries, the oldest that ZIP supports, so that output is reproducible."""


def write_torch(file: BinaryIO, content: Content) -> None:
    """Write content for `torch.load`; columns become tensors.

    Parameters
    ----------
    file : BinaryIO
        Seekable output file.
    content : Content
        Nested mappings and tuples of strings, integers, None and columns.

    Raises
    ------
    InvalidRequest
        torch has no tensors of a column's dtype.
    """
    columns: list[ArrayStream] = []
    program = b"\x80\x02" + _program(content, columns) + b"."
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("archive/data.pkl", _EPOCH), program)
        archive.writestr(zipfile.ZipInfo("archive/byteorder", _EPOCH), b"little")
        for i, column in enumerate(columns):
            with archive.open(
                zipfile.ZipInfo(f"archive/data/{i}", _EPOCH), "w", force_zip64=True
            ) as entry:
                for piece in column.pieces():
                    raw = np.ascontiguousarray(piece, column.dtype.newbyteorder("<"))
                    if raw.nbytes:
                        entry.write(raw.reshape(-1).view(np.uint8).data)
        archive.writestr(zipfile.ZipInfo("archive/version", _EPOCH), b"3\n")


def _program(content: Content, columns: list[ArrayStream]) -> bytes:
    """Return the opcodes that push ``content``, and append its columns to ``columns``."""
    if content is None:
        return b"N"
    if isinstance(content, str):
        raw = content.encode()
        return b"X" + struct.pack("<I", len(raw)) + raw
    if isinstance(content, int):
        return (
            b"J" + struct.pack("<i", content)
            if abs(content) < 1 << 31
            else b"\x8a\x08" + struct.pack("<q", content)
        )
    if isinstance(content, tuple):
        return b"(" + b"".join(_program(each, columns) for each in content) + b"t"
    if isinstance(content, Mapping):
        items = b"".join(
            _program(key, columns) + _program(value, columns) for key, value in content.items()
        )
        return b"}(" + items + b"u"
    return _tensor(content, columns)


def _tensor(column: ArrayStream, columns: list[ArrayStream]) -> bytes:
    name = column.dtype.name
    if name not in _STORAGES:
        raise InvalidRequest(
            f"torch has no tensors of {name}; convert it to a signed integer or a float first"
        )
    strides: list[int] = []
    size = 1
    for dimension in reversed(column.shape):
        strides.insert(0, size)
        size *= max(1, dimension)
    count = column.nbytes // column.dtype.itemsize
    storage = b"(" + _program("storage", []) + b"ctorch\n" + f"{_STORAGES[name]}Storage\n".encode()
    storage += _program(str(len(columns)), []) + _program("cpu", []) + _program(count, []) + b"tQ"
    columns.append(column)
    shape, stride = _program(tuple(column.shape), []), _program(tuple(strides), [])
    # Arguments of _rebuild_tensor_v2: storage, offset, shape, strides, requires_grad, and hooks (an
    # empty OrderedDict).
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + storage
        + _program(0, [])
        + shape
        + stride
        + b"\x89"
        + b"ccollections\nOrderedDict\n)R"
        + b"tR"
    )
