"""Graph in memory as tables.

A column is an array or tensor that is not copied; slices of it are converted as they are sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.records.samples import FeatureValue, Ids, Weights
from asterism.training.torch_gather_scatter import is_tensor
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from asterism_proto.errors import InvalidRequest

PIECE_ROWS = 262_144
PIECE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayColumn:
    """Column of a type."""

    dtype: str
    """Name of the NumPy dtype, or ``bytes``."""
    shape: tuple[int, ...] = ()
    """Shape of one row."""
    values: Any
    """Array or tensor, shape (n, *shape); for bytes ``(indptr, uint8 values)``."""

    @property
    def row_bytes(self) -> int:
        """Bytes per row; an estimate for text."""
        return (
            64
            if self.dtype == "bytes"
            else np.dtype(self.dtype).itemsize * int(np.prod(self.shape, dtype=np.int64))
        )

    def feature(self, name: str) -> Feature:
        """Return the column as a feature of a schema."""
        return (
            Feature(name=name, kind="bytes")
            if self.dtype == "bytes"
            else Feature(name=name, dtype=self.dtype, shape=self.shape)
        )

    def slice(self, start: int, stop: int) -> FeatureValue:
        """Return rows ``start`` to ``stop`` - 1."""
        if self.dtype == "bytes":
            indptr, values = self.values
            window = indptr[start : stop + 1]
            return window - window[0], values[window[0] : window[-1]]
        return to_array(self.values[start:stop]).astype(self.dtype, copy=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTable:
    """Nodes of one type."""

    name: str
    count: int
    ids: Ids | None = None
    """Node ids, ndarray of int64, shape (count,); None: 0 .. count - 1."""
    weights: ArrayColumn | None = None
    features: Mapping[str, ArrayColumn] = field(default_factory=dict)

    def schema(self) -> NodeType:
        """Return the node type of a schema."""
        return NodeType(
            name=self.name,
            weighted=self.weights is not None,
            features=tuple(c.feature(name) for name, c in self.features.items()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeTable:
    """Edges of one type."""

    triple: tuple[str, str, str]
    src: Any
    """Sources, integer array or tensor, shape (n,); ``dst`` is alike."""
    dst: Any
    weights: ArrayColumn | None = None
    features: Mapping[str, ArrayColumn] = field(default_factory=dict)
    both_ways: bool = False
    """True for an undirected graph: edges except self-loops are written in both directions."""

    @property
    def name(self) -> str:
        """Name of the edge type, ``src:relation:dst``."""
        return ":".join(self.triple)

    def __len__(self) -> int:
        return len(self.src)

    def schema(self) -> EdgeType:
        """Return the edge type of a schema."""
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
        """Return sources and destinations of rows ``start`` to ``stop`` - 1 as arrays of int64."""
        return (
            self._end_ids("source", self.src, start, stop),
            self._end_ids("destination", self.dst, start, stop),
        )

    def _end_ids(self, end: str, values: Any, start: int, stop: int) -> Ids:
        ids = to_array(values[start:stop])
        if ids.dtype.kind not in "iu":
            raise InvalidRequest(
                f"edge type {self.name!r}: {end}s of {ids.dtype}: expected integers"
            )
        if ids.dtype == np.uint64 and len(ids) and ids.max() > np.iinfo(np.int64).max:
            row = int(np.argmax(ids))
            raise InvalidRequest(
                f"edge type {self.name!r}, row {start + row}, {end} {ids[row]}: expected an id "
                "below 2^63"
            )
        return ids.astype(np.int64, copy=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphTables:
    """Tables of a whole graph."""

    source_name: str
    """Kind of the object, for display."""
    nodes: tuple[NodeTable, ...]
    edges: tuple[EdgeTable, ...]
    names: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Original labels of numbered nodes by node type, if they are not integers."""
    left_out: tuple[str, ...] = ()
    """Names of data of the object that a graph space cannot hold."""
    salt: int | None = None
    """Salt of the string ids; None: ids are integers."""

    def schema(self, *, parts: int, direction: str) -> Schema:
        """Return the schema of a space that can hold the graph."""
        return Schema(
            node_types=tuple(table.schema() for table in self.nodes),
            edge_types=tuple(table.schema() for table in self.edges),
            parts=parts,
            direction=direction,
            ids="per_type" if self.salt is None else "string",
            salt=self.salt or 0,
        )

    def check(self) -> None:
        """Reject invalid weights and ends that are not nodes, before anything is written."""
        counts = {table.name: table.count for table in self.nodes if table.ids is None}
        for table in self.nodes:
            for start, stop in row_spans(table.count, 8):
                _check_weights(f"node type {table.name!r}", table.weights, start, stop)
        for edges in self.edges:
            if len(edges.src) != len(edges.dst):
                raise InvalidRequest(
                    f"edge type {edges.name!r}: expected as many sources as destinations, found "
                    f"{len(edges.src)} and {len(edges.dst)}"
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
    """Return an array, or a tensor on any device, as a NumPy array."""
    if not is_tensor(values):
        return np.asarray(values)
    host_tensor = values.detach().cpu()
    array: NDArray[Any] = (
        host_tensor.float() if str(host_tensor.dtype) == "torch.bfloat16" else host_tensor
    ).numpy()
    return array


def row_spans(count: int, row_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that cover 0 .. count - 1 and bound the size of a piece."""
    step = max(min(PIECE_ROWS, PIECE_BYTES // max(row_bytes, 1)), 1)
    for start in range(0, count, step):
        yield start, min(start + step, count)


def float_weights(column: ArrayColumn, start: int, stop: int) -> Weights:
    """Return rows of a weight column as float32."""
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
            f"{owner}, row {row}, weight {value}: expected a finite float32, 0 or more; repair it "
            "in the object"
        )


def _check_ends(
    owner: str, end: str, ids: Ids, start: int, node_type: str, count: int | None
) -> None:
    bad = np.flatnonzero(ids < 0 if count is None else (ids < 0) | (ids >= count))
    if bad.size:
        expected = "0 or more" if count is None else f"a node of {node_type!r}, 0 to {count - 1}"
        raise InvalidRequest(
            f"{owner}, row {start + int(bad[0])}, {end} {ids[bad[0]]}: expected {expected}"
        )
