"""Image records: the arrays of one part of one version, as draws see them.

An image is a folder of raw little-endian files, one per array, and a ``manifest.json`` that is written last. These
records are views of mapped files in a running storaged, and plain arrays in a kernel's test: whoever holds one can not
tell. `open_part` maps a folder; `storaged.build` writes one.

Rows. A node row is a position in the type's node list of the part, by id. A *dense* type has id = row * parts + part
and no id array; deleted ids are holes, marked in ``live``. A sparse type has sorted ``ids`` and an open-addressing
index. An edge *slot* is a position in the part's out-adjacency of a type, by (source row, neighbor id, edge id).

Thresholds. A draw takes column r = high half of word * n with the low half as its coin, keeps r when
coin < T and goes to the alias otherwise, where T = acceptance probability * 2^64. ``hot`` holds
(T >> 32) << 32 | alias, ``cold`` holds T & 0xFFFFFFFF, read only where the coin's high half equals T's. A column that
is certain is its own alias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]
U8 = NDArray[np.uint8]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

EMPTY_I64 = np.zeros(0, np.int64)
EMPTY_U64 = np.zeros(0, np.uint64)
EMPTY_U32 = np.zeros(0, np.uint32)
EMPTY_U8 = np.zeros(0, np.uint8)
EMPTY_F32 = np.zeros(0, np.float32)
EMPTY_F64 = np.zeros(0, np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """An alias table over the rows (or slots) of one (part, type, weight name)."""

    size: int
    """Columns: rows of positive weight."""
    total: float
    """float64 Neumaier sum of their weights."""
    hot: U64 = field(default_factory=lambda: EMPTY_U64)
    """uint64[size]; empty when all positive weights are equal: then every column is certain."""
    cold: U32 = field(default_factory=lambda: EMPTY_U32)
    """uint32[size], or empty with ``hot``."""
    row_of: U32 = field(default_factory=lambda: EMPTY_U32)
    """uint32[size], column -> row; empty when column i is row i."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A feature of a type, in row order."""

    values: NDArray[Any]
    """dense: [rows, *shape]; ragged: [total]; bytes: uint8[total]."""
    indptr: I64 | None = None
    """int64[rows + 1] for ragged and bytes; None for dense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeImage:
    """The nodes of one type in one part."""

    rows: int
    """Rows, holes included."""
    count: int
    """Live rows: the measure of uniform draws."""
    dense: bool
    ids: I64 = field(default_factory=lambda: EMPTY_I64)
    """int64[rows] ascending, sparse types only."""
    index_ids: I64 = field(default_factory=lambda: EMPTY_I64)
    """int64[2^k] open addressing, linear probing from mix64(id) >> (64 - k); -1 is free. Sparse types only."""
    index_rows: U32 = field(default_factory=lambda: EMPTY_U32)
    """uint32[2^k]: the row of each id in ``index_ids``."""
    live: U8 = field(default_factory=lambda: EMPTY_U8)
    """uint8[rows], 0 for a hole; empty when there is none."""
    live_rows: U32 = field(default_factory=lambda: EMPTY_U32)
    """uint32[count], the live rows ascending; empty when there is no hole."""
    weights: F32 = field(default_factory=lambda: EMPTY_F32)
    """float32[rows]; empty when the type is unweighted: all 1."""
    table: Table
    columns: Mapping[str, Column] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjacency:
    """The edges of one type at one part, by the row of one end. ``nbr`` is the other end's id."""

    indptr: I64
    """int64[rows + 1] over the rows of the near end's node type in this part."""
    nbr: I64
    """int64[slots], ascending within a row, ties by edge id."""
    eid: I64
    """int64[slots]."""
    weights: F32 = field(default_factory=lambda: EMPTY_F32)
    """float32[slots]; empty when the type is unweighted."""
    sums: F64 = field(default_factory=lambda: EMPTY_F64)
    """float64[rows], each row's Neumaier sum of weights; empty when the type is unweighted (then it is the degree)."""
    hot: U64 = field(default_factory=lambda: EMPTY_U64)
    """uint64[slots], per-row alias tables (aliases count from the row's first slot); empty when unweighted or all
    weights of the array are equal and positive. Zero weights have T = 0 and a positive alias."""
    cold: U32 = field(default_factory=lambda: EMPTY_U32)
    """uint32[slots], or empty with ``hot``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeImage:
    """The edges of one type in one part."""

    out: Adjacency
    """By source. The truth: totals, global draws and scans read it."""
    into: Adjacency | None
    """By destination, where the schema keeps in-copies."""
    src_row: U32
    """uint32[slots of out]: the source's row."""
    table: Table
    """For global draws, over the slots of ``out``."""
    feature_eids: I64 = field(default_factory=lambda: EMPTY_I64)
    """int64[n] ascending edge ids e with e % parts == part, whose features live here; empty when there are no features
    or row = e // parts without holes."""
    feature_rows: int = 0
    """Rows of each column."""
    columns: Mapping[str, Column] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartImage:
    """One part of one version. Type ids index the tuples."""

    part: int
    parts: int
    mod: bool
    """Whether placement is mod (dense types exist only then)."""
    nodes: tuple[NodeImage, ...]
    edges: tuple[EdgeImage, ...]
    digest: str = ""
    """sha256 of the image's manifest."""
