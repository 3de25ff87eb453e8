"""Column index of a partition: rows in value order, with alias tables per block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK_SIZES = (1 << 6, 1 << 12, 1 << 18)
"""Rows of a block, by level.

Part of the sampling contract: changing them changes results for a given seed.
"""
OWN_WEIGHT_NAME = ""
"""Name of a row's own weights."""


def level_block_sizes(rows: int) -> tuple[int, ...]:
    """Return the block sizes of the levels of an index.

    A level is omitted if it would consist of a single block.
    """
    return tuple(step for step in BLOCK_SIZES if step < rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexLevel:
    """Alias tables of all blocks of one size, concatenated."""

    alias_threshold: NDArray[np.uint64]
    """Packed thresholds and aliases: uint64, shape (rows,).

    Aliases count from the first row of their block. Blocks with sum 0 must not be sampled from.
    """
    alias_fraction: NDArray[np.uint32]
    """Low halves of the thresholds: uint32, shape (rows,)."""
    sums: NDArray[np.float64]
    """Neumaier sums of weights: float64, shape (blocks,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTables:
    """The tables of an index for the weights of one name."""

    levels: tuple[IndexLevel, ...]
    """Levels in the order of `level_block_sizes`."""
    positives: NDArray[np.int64]
    """Number of rows of positive weight before each block: int64, shape (blocks + 1,).

    The blocks are those of the smallest size.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedEdges:
    """The edges of each node at one end, in the order of a column."""

    order: NDArray[np.uint32]
    """Slots of each adjacency row by (value, slot): uint32, shape (slots,)."""
    keys: NDArray[np.int64]
    """Values in that order: int64, shape (slots,).

    They are encoded by `asterism_graphkit.arrays.sort_keys.sort_keys`.
    """
    weight_trees: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Trees of weight sums in that order, by weight name: float64, shape (slots,).

    Each row has one tree, laid out by `storaged.build.edge_indexes.fill_weight_trees`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnIndex:
    """The live rows of a node type, or the out-slots of an edge type, in column order."""

    column: str
    """Canonical name of the column, as filters write it."""
    kind: str
    """Kind of the index: ``hash`` or ``range``."""
    rows: NDArray[np.uint32]
    """Rows by (value, row): uint32, shape (n,); NaN is last, strings are by (hash, bytes).
    """
    values: NDArray[Any]
    """Sorted values.

    ``range``: shape (n,), the value of each row. ``hash``: shape (groups,), the value of each
    group; int64 hashes for strings.
    """
    bounds: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Start of each group of equal values, ``hash`` only: int64, shape (groups + 1,)."""
    tables: Mapping[str, IndexTables] = field(default_factory=dict)
    """Tables by weight name; the rows' own weights are under ``OWN_WEIGHT_NAME``.

    A missing name belongs to a type without weights: every row weighs 1.
    """
    outgoing: SortedEdges | None = None
    incoming: SortedEdges | None = None
    """Edges by source and by destination, if the index stores them; edge types only."""

    @property
    def name(self) -> str:
        """Display name of the index."""
        return f"{self.column} ({self.kind})"


def file_prefix(owner: str, kind: str, column_place: str) -> str:
    """Return the common prefix of an index's file names.

    ``column_place`` is the number of a feature, or ``id`` or ``weight``.
    """
    return f"{owner}.x{kind[0]}{column_place}"


def manifest_entry(column: str, kind: str, prefix: str, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the manifest entry of an index.

    ``names`` maps each weight name to the prefix of its file names.
    """
    return {"column": column, "kind": kind, "prefix": prefix, "weights": dict(names)}


def open_indexes(
    entries: list[Mapping[str, Any]], arrays: Mapping[str, NDArray[Any]]
) -> tuple[ColumnIndex, ...]:
    """Return the indexes that a manifest describes."""
    return tuple(_open_index(entry, arrays) for entry in entries)


def _open_index(entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> ColumnIndex:
    prefix = entry["prefix"]
    rows = arrays[f"{prefix}.rows"]

    def levels(weights_prefix: str) -> Iterator[IndexLevel]:
        for i, _ in enumerate(level_block_sizes(rows.size)):
            yield IndexLevel(
                alias_threshold=arrays[f"{weights_prefix}.{i}.hot"],
                alias_fraction=arrays[f"{weights_prefix}.{i}.cold"],
                sums=arrays[f"{weights_prefix}.{i}.sums"],
            )

    def sorted_edges(side: str) -> SortedEdges | None:
        if side not in entry.get("sides", ()):
            return None
        side_prefix = f"{prefix}.{side}"
        trees = {
            name: arrays[f"{side_prefix}{weights_prefix.removeprefix(prefix)}.tree"]
            for name, weights_prefix in entry["weights"].items()
        }
        return SortedEdges(
            order=arrays[f"{side_prefix}.order"],
            keys=arrays[f"{side_prefix}.keys"],
            weight_trees=trees,
        )

    bounds = {"bounds": arrays[f"{prefix}.bounds"]} if f"{prefix}.bounds" in arrays else {}
    return ColumnIndex(
        column=entry["column"],
        kind=entry["kind"],
        rows=rows,
        values=arrays[f"{prefix}.values"],
        **bounds,
        tables={
            name: IndexTables(
                levels=tuple(levels(weights_prefix)),
                positives=arrays[f"{weights_prefix}.positives"],
            )
            for name, weights_prefix in entry["weights"].items()
        },
        outgoing=sorted_edges("out"),
        incoming=sorted_edges("in"),
    )
