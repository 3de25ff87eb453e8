"""What a reader gives: runs of rows of one type as columns, and the rows that could not be
taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest

Array = NDArray[Any]
Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]
Weights = NDArray[np.float32]
FeatureValue = Array | tuple[Ids, Array]
"""``[n, *shape]`` where dense; ``(indptr int64[n + 1], values)`` where ragged or bytes (uint8)."""
Features = Mapping[str, FeatureValue]
ExistsCheck = Callable[[str, Ids], Mask]
"""Which of the ids of a node type are known."""

CHUNK_ROWS = 262_144
CHUNK_BYTES = 16 << 20
"""No chunk is larger (unless one row is): a chunk travels in one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A row that was not taken, and why."""

    file: str
    row: int
    """Counted from 1 in lines of text, from 0 in arrays and tables."""
    column: str
    value: str
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.file}, row {self.row}, column {self.column!r}, value {self.value!r}: "
            f"{self.reason}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChunk:
    """Rows of one node type, in file order. ``ids`` is int64[n] (>= 0), ``weights`` float32[n]."""

    ntype: str
    file: str
    first_row: int
    ids: Ids
    weights: Weights | None = None
    features: Features = field(default_factory=dict)
    bad: tuple[BadRow, ...] = ()
    """Rows of the same place in the file that were left out."""
    nbytes: int = 0
    """Bytes of input that the chunk stands for."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeChunk:
    """Rows of one edge type, in file order. ``src`` and ``dst`` are int64[n] (>= 0), ``weights``
    float32[n].
    """

    etype: str
    file: str
    first_row: int
    src: Ids
    dst: Ids
    weights: Weights | None = None
    features: Features = field(default_factory=dict)
    bad: tuple[BadRow, ...] = ()
    nbytes: int = 0

    def __len__(self) -> int:
        return len(self.src)


class GraphSource(Protocol):
    """A graph in files. Iterating twice gives the same chunks in the same order."""

    @property
    def schema(self) -> Schema:
        """What a space needs in order to hold this graph."""

    @property
    def options(self) -> Mapping[str, Any]:
        """What, besides the files, decides on the chunks: a load with other options is another
        load.
        """

    @property
    def files(self) -> tuple[Path, ...]:
        """What describes the graph, and then all the files that it names."""

    @property
    def total_rows(self) -> int | None:
        """Nodes and edges in all, where the files say so before they are read."""

    @property
    def total_bytes(self) -> int:
        """Bytes of input in all."""

    def node_chunks(self) -> Iterator[NodeChunk]:
        """Every node, type by type, file by file."""

    def edge_chunks(self, exists: ExistsCheck | None = None) -> Iterator[EdgeChunk]:
        """Every edge, type by type, file by file.

        Parameters
        ----------
        exists : ExistsCheck, optional
            Asked about the ends of edge types that reject edges to unknown nodes, once every node
            chunk was taken. Without it the ends of such edges are not checked, except where the
            nodes are known to be 0 .. n - 1.
        """


Chunk = TypeVar("Chunk", NodeChunk, EdgeChunk)


def select_rows(value: FeatureValue, rows: NDArray[Any]) -> FeatureValue:
    """The rows of a feature that a mask or an array of indices names."""
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
    """Rows ``start`` to ``stop`` of a feature, without a copy of its values."""
    if not isinstance(value, tuple):
        return value[start:stop]
    indptr, values = value
    window = indptr[start : stop + 1]
    return window - window[0], values[window[0] : window[-1]]


def filter_chunk(chunk: EdgeChunk, mask: Mask) -> EdgeChunk:
    """The rows of a chunk that a mask keeps."""
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
    """The chunk, or several of at most ``limit`` bytes each (a row is never split); bad rows go
    with the first.
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
    """A file's name for people: as short as it can be said from the folder of its source."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def mismatch_error(file: str, expected: object, actual: object, description: str) -> InvalidRequest:
    """The error for a file that does not hold what was said of it."""
    return InvalidRequest(
        f"{file}: expected {expected} {description}, found {actual}; repair the file or what "
        "describes it"
    )
