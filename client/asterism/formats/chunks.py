"""Chunks, the output of readers: columns for rows of one type, and rejected rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest

Array = NDArray[Any]
Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]
Weights = NDArray[np.float32]
FeatureValue = Array | tuple[Ids, Array]
"""Values of a feature.
A dense feature has an array of shape (n, *shape). A ragged or bytes (uint8) feature has
``(indptr, values)`` with ``indptr`` of int64, shape (n + 1,)."""
Features = Mapping[str, FeatureValue]
ExistsCheck = Callable[[str, Ids], Mask]
"""Function that returns which ids of a node type exist."""

CHUNK_ROWS = 262_144
CHUNK_BYTES = 16 << 20
"""Largest size of a chunk in bytes, except for single rows.
A chunk is sent in one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """Rejected row, and the reason."""

    file: str
    """Name of the file, relative to its source if possible."""
    row: int
    """Row number: from 1 for lines of text, from 0 for arrays and tables."""
    column: str
    """Name of the column, or an empty string for the row as a whole."""
    value: str
    """Rejected value as text."""
    reason: str
    """Reason of the rejection."""

    def __str__(self) -> str:
        return (
            f"{self.file}, row {self.row}, column {self.column!r}, value {self.value!r}: "
            f"{self.reason}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChunk:
    """Rows of one node type, in file order.

    ``ids`` is int64, shape (n,), at least 0; ``weights`` is float32, shape (n,).
    """

    ntype: str
    """Node type."""
    file: str
    """Name of the file."""
    first_row: int
    """Number of the first row in the file."""
    ids: Ids
    """Node ids; ndarray of int64, shape (n,)."""
    weights: Weights | None = None
    """Node weights, ndarray of float32, shape (n,), or None."""
    features: Features = field(default_factory=dict)
    """Values by feature name."""
    bad: tuple[BadRow, ...] = ()
    """Rejected rows from the same section of the file."""
    nbytes: int = 0
    """Bytes of input that the chunk covers."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeChunk:
    """Rows of one edge type, in file order.

    ``src`` and ``dst`` are int64, shape (n,), at least 0; ``weights`` is float32, shape (n,).
    """

    etype: str
    """Edge type as ``src:relation:dst``."""
    file: str
    """Name of the file."""
    first_row: int
    """Number of the first row in the file."""
    src: Ids
    """Source ids; ndarray of int64, shape (n,)."""
    dst: Ids
    """Destination ids; ndarray of int64, shape (n,)."""
    weights: Weights | None = None
    """Edge weights, ndarray of float32, shape (n,), or None."""
    features: Features = field(default_factory=dict)
    """Values by feature name."""
    bad: tuple[BadRow, ...] = ()
    """Rejected rows from the same section of the file."""
    nbytes: int = 0
    """Bytes of input that the chunk covers."""

    def __len__(self) -> int:
        return len(self.src)


Chunk = TypeVar("Chunk", NodeChunk, EdgeChunk)


def select_rows(value: FeatureValue, rows: NDArray[Any]) -> FeatureValue:
    """Return the rows of a feature that a mask or an index array selects."""
    if not isinstance(value, tuple):
        selected: Array = value[rows]
        return selected
    indptr, values = value
    rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
    lengths = (indptr[1:] - indptr[:-1])[rows]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    positions = np.arange(offsets[-1]) + np.repeat(indptr[:-1][rows] - offsets[:-1], lengths)
    return offsets, values[positions]


def slice_rows(value: FeatureValue, start: int, stop: int) -> FeatureValue:
    """Return rows ``start`` to ``stop`` of a feature, without copying its values."""
    if not isinstance(value, tuple):
        return value[start:stop]
    indptr, values = value
    window = indptr[start : stop + 1]
    return window - window[0], values[window[0] : window[-1]]


def filter_chunk(chunk: EdgeChunk, mask: Mask) -> EdgeChunk:
    """Return the rows of a chunk that a mask selects."""
    if mask.all():
        return chunk
    return replace(
        chunk,
        src=chunk.src[mask],
        dst=chunk.dst[mask],
        weights=None if chunk.weights is None else chunk.weights[mask],
        features={name: select_rows(value, mask) for name, value in chunk.features.items()},
    )


def _nbytes(value: FeatureValue | None) -> int:
    return (
        sum(part.nbytes for part in value)
        if isinstance(value, tuple)
        else 0
        if value is None
        else value.nbytes
    )


def _slice_chunk(chunk: Chunk, start: int, stop: int) -> Chunk:
    shared: dict[str, Any] = {
        "weights": None if chunk.weights is None else chunk.weights[start:stop],
        "features": {
            name: slice_rows(value, start, stop) for name, value in chunk.features.items()
        },
        "first_row": chunk.first_row + start,
        "bad": chunk.bad if start == 0 else (),
        "nbytes": chunk.nbytes * stop // len(chunk) - chunk.nbytes * start // len(chunk),
    }
    if isinstance(chunk, NodeChunk):
        return replace(chunk, ids=chunk.ids[start:stop], **shared)
    return replace(chunk, src=chunk.src[start:stop], dst=chunk.dst[start:stop], **shared)


def split_to_limit(chunk: Chunk, limit: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """Yield the chunk, split into chunks of at most ``limit`` bytes if necessary.

    A single row is never split. Bad rows stay with the first chunk.
    """
    id_bytes = chunk.ids.nbytes if isinstance(chunk, NodeChunk) else 2 * chunk.src.nbytes
    size = id_bytes + _nbytes(chunk.weights) + sum(map(_nbytes, chunk.features.values()))
    if size <= limit or len(chunk) <= 1:
        yield chunk
        return
    middle = len(chunk) // 2
    yield from split_to_limit(_slice_chunk(chunk, 0, middle), limit)
    yield from split_to_limit(_slice_chunk(chunk, middle, len(chunk)), limit)


def display_path(path: Path, root: Path) -> str:
    """Return a file's name for messages, relative to the folder of its source if possible."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def mismatch_error(file: str, expected: object, actual: object, description: str) -> InvalidRequest:
    """Return the error for a file that does not match its description."""
    return InvalidRequest(
        f"{file}: expected {expected} {description}, found {actual}; repair the file, or "
        "its description"
    )
