"""A graph in memory as tables: a column is an array or tensor that nobody copied yet, and is cut
into pieces as it travels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.records.samples import FeatureValue, Ids, Weights
from asterism.training.tensor_ops import is_tensor
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.errors import InvalidRequest

PIECE_ROWS = 262_144
PIECE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayColumn:
    """A column of a type."""

    dtype: str
    """``bytes``, or NumPy's name."""
    shape: tuple[int, ...] = ()
    """Of one row."""
    values: Any
    """Array or tensor [n, *shape]; of bytes ``(indptr int64[n + 1], uint8)``."""

    @property
    def row_bytes(self) -> int:
        """Bytes of a row; of texts a guess."""
        return (
            64
            if self.dtype == "bytes"
            else np.dtype(self.dtype).itemsize * int(np.prod(self.shape, dtype=np.int64))
        )

    def feature(self, name: str) -> Feature:
        """As a schema has it."""
        return (
            Feature(name=name, kind="bytes")
            if self.dtype == "bytes"
            else Feature(name=name, dtype=self.dtype, shape=self.shape)
        )

    def slice(self, start: int, stop: int) -> FeatureValue:
        """Rows ``start`` to ``stop``."""
        if self.dtype == "bytes":
            indptr, values = self.values
            window = indptr[start : stop + 1]
            return window - window[0], values[window[0] : window[-1]]
        return to_array(self.values[start:stop]).astype(self.dtype, copy=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTable:
    """The nodes of one type."""

    name: str
    count: int
    ids: Ids | None = None
    """int64[count]; None: 0 .. count - 1."""
    weights: ArrayColumn | None = None
    features: Mapping[str, ArrayColumn] = field(default_factory=dict)

    def schema(self) -> NodeType:
        """As a space has it."""
        return NodeType(
            name=self.name,
            weighted=self.weights is not None,
            features=tuple(c.feature(name) for name, c in self.features.items()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeTable:
    """The edges of one type."""

    triple: tuple[str, str, str]
    src: Any
    """Whole numbers [n], array or tensor; so is ``dst``."""
    dst: Any
    weights: ArrayColumn | None = None
    features: Mapping[str, ArrayColumn] = field(default_factory=dict)
    both_ways: bool = False
    """Of an undirected graph: every edge but a loop is written the other way round too."""

    @property
    def name(self) -> str:
        """``src:relation:dst``."""
        return ":".join(self.triple)

    def __len__(self) -> int:
        return len(self.src)

    def schema(self) -> EdgeType:
        """As a space has it."""
        src_type, relation, dst_type = self.triple
        features = tuple(column.feature(name) for name, column in self.features.items())
        return EdgeType(
            src_type=src_type,
            relation=relation,
            dst_type=dst_type,
            weighted=self.weights is not None,
            features=features,
        )

    def ends(self, start: int, stop: int) -> tuple[Ids, Ids]:
        """Sources and destinations of rows ``start`` to ``stop``: int64."""
        src, dst = to_array(self.src[start:stop]), to_array(self.dst[start:stop])
        return src.astype(np.int64, copy=False), dst.astype(np.int64, copy=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphTables:
    """A whole graph."""

    source_name: str
    """The object's kind, for people."""
    nodes: tuple[NodeTable, ...]
    edges: tuple[EdgeTable, ...]
    names: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """By node type: what the object calls the nodes 0, 1, 2, ..., where that is no whole number."""
    left_out: tuple[str, ...] = ()
    """What of the object has no place in a graph here."""
    salt: int | None = None
    """What ids are made of names with; None: they are whole numbers."""

    def schema(self, *, parts: int, direction: str) -> Schema:
        """Of a space that can hold it."""
        return Schema(
            node_types=tuple(table.schema() for table in self.nodes),
            edge_types=tuple(table.schema() for table in self.edges),
            parts=parts,
            direction=direction,
            ids="per_type" if self.salt is None else "string",
            salt=self.salt or 0,
        )

    def check(self) -> None:
        """Refuse weights that are none, and ends that are no nodes, before anything is written."""
        counts = {table.name: table.count for table in self.nodes if table.ids is None}
        for table in self.nodes:
            for start, stop in row_spans(table.count, 8):
                _check_weights(f"node type {table.name!r}", table.weights, start, stop)
        for edges in self.edges:
            if len(edges.src) != len(edges.dst):
                raise InvalidRequest(
                    f"edge type {edges.name!r}: {len(edges.src)} sources, {len(edges.dst)} "
                    "destinations"
                )
            for start, stop in row_spans(len(edges), 24):
                ends = edges.ends(start, stop)
                for end, ids, node_type in zip(
                    ("source", "destination"), ends, (edges.triple[0], edges.triple[2]), strict=True
                ):
                    _check_ends(
                        f"edge type {edges.name!r}",
                        end,
                        ids,
                        start,
                        node_type,
                        counts.get(node_type),
                    )
                _check_weights(f"edge type {edges.name!r}", edges.weights, start, stop)


def to_array(values: Any) -> NDArray[Any]:
    """An array, or a tensor wherever it is, as an array."""
    if not is_tensor(values):
        return np.asarray(values)
    host_tensor = values.detach().cpu()
    array: NDArray[Any] = (
        host_tensor.float() if str(host_tensor.dtype) == "torch.bfloat16" else host_tensor
    ).numpy()
    return array


def row_spans(count: int, row_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges that cover 0 .. count - 1, each of so few rows that a piece is bounded."""
    step = max(min(PIECE_ROWS, PIECE_BYTES // max(row_bytes, 1)), 1)
    for start in range(0, count, step):
        yield start, min(start + step, count)


def float_weights(column: ArrayColumn, start: int, stop: int) -> Weights:
    """Weights as they are written: float32."""
    values = column.slice(start, stop)
    assert not isinstance(values, tuple)
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _check_weights(owner: str, column: ArrayColumn | None, start: int, stop: int) -> None:
    if column is None:
        return
    weights = float_weights(column, start, stop)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        row = start + int(bad[0])
        value = to_array(column.values[row : row + 1])[0]
        raise InvalidRequest(
            f"{owner}: the weight of row {row} is {value}; a weight is finite, not negative, "
            "and fits float32: repair it in the object"
        )


def _check_ends(
    owner: str, end: str, ids: Ids, start: int, node_type: str, count: int | None
) -> None:
    bad = np.flatnonzero(ids < 0 if count is None else (ids < 0) | (ids >= count))
    if bad.size:
        expected = "0 or more" if count is None else f"a node of {node_type!r}, 0 to {count - 1}"
        raise InvalidRequest(
            f"{owner}: the {end} of row {start + int(bad[0])} is {ids[bad[0]]}; expected {expected}"
        )
