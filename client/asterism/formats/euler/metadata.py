"""Reader of euler.meta, the types and features of a graph from Euler's converter."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asterism_proto.errors import InvalidRequest

FEATURE_KINDS = ("sparse", "dense", "binary")


@dataclass(frozen=True, slots=True, kw_only=True)
class EulerMeta:
    """Content of an euler.meta."""

    node_types: tuple[str, ...]
    """Names of node types by number."""
    edge_types: tuple[str, ...]
    node_dimensions: Mapping[str, int]
    """Dimensions of dense features."""
    edge_dimensions: Mapping[str, int]


def read_meta(path: Path) -> EulerMeta:
    """Read an euler.meta; raise InvalidRequest if the file is invalid."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{path}: {error}") from error
    cursor = _Cursor(path, data)
    cursor.text()
    cursor.text()
    cursor.numbers("<QQI")
    node_dimensions, edge_dimensions = cursor.dimensions(), cursor.dimensions()
    node_types, edge_types = cursor.types("node"), cursor.types("edge")
    if cursor.offset != len(data):
        raise InvalidRequest(
            f"{path}: expected an euler.meta of version 2.0, found {len(data) - cursor.offset} "
            f"bytes "
            "after its last type"
        )
    return EulerMeta(
        node_types=node_types,
        edge_types=edge_types,
        node_dimensions=node_dimensions,
        edge_dimensions=edge_dimensions,
    )


class _Cursor:
    """Cursor over binary data: little-endian integers, and length-prefixed strings."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path, self.data, self.offset = path, data, 0

    def numbers(self, layout: str) -> tuple[int, ...]:
        size = struct.calcsize(layout)
        if self.offset + size > len(self.data):
            raise InvalidRequest(
                f"{self.path}: expected an euler.meta of version 2.0, it ends at byte {self.offset}"
            )
        values = struct.unpack_from(layout, self.data, self.offset)
        self.offset += size
        return values

    def text(self) -> str:
        (size,) = self.numbers("<I")
        start, stop = self.offset, self.offset + size
        if stop > len(self.data):
            raise InvalidRequest(
                f"{self.path}: expected an euler.meta of version 2.0, it ends at byte {self.offset}"
            )
        self.offset = stop
        try:
            return self.data[start:stop].decode()
        except UnicodeDecodeError as error:
            raise InvalidRequest(
                f"{self.path}: expected an euler.meta of version 2.0, the name at byte {start} is "
                f"not text"
            ) from error

    def dimensions(self) -> dict[str, int]:
        dimensions = {}
        (count,) = self.numbers("<I")
        for _ in range(count):
            name = self.text()
            kind, _, dimension = self.numbers("<iiq")
            if not 0 <= kind < len(FEATURE_KINDS):
                raise InvalidRequest(
                    f"{self.path}: feature {name!r} of kind {kind}: expected 0, 1 or 2"
                )
            if FEATURE_KINDS[kind] == "dense":
                dimensions[name.removeprefix("dense_")] = dimension
        return dimensions

    def types(self, element: str) -> tuple[str, ...]:
        (count,) = self.numbers("<I")
        names: dict[int, str] = {}
        for _ in range(count):
            name = self.text()
            (type_id,) = self.numbers("<I")
            names[type_id] = name
        if sorted(names) != list(range(count)):
            raise InvalidRequest(
                f"{self.path}: expected numbers 0 to {count - 1} of {element} types, found "
                f"{sorted(names)}"
            )
        return tuple(names[type_id] for type_id in range(count))
