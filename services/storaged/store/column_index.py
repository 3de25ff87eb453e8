"""The index of a part's rows by a column, as an image has it: rows in order of their values, alias
tables over blocks of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK_SIZES = (1 << 6, 1 << 12, 1 << 18)
"""Rows of a block, by level. They are part of the law of draws: never change them."""
OWN_WEIGHT_NAME = ""
"""The name of a row's own weights."""


def level_block_sizes(rows: int) -> tuple[int, ...]:
    """The steps of the levels that an index of so many rows has: of a level that had one block
    there is no need.
    """
    return tuple(step for step in BLOCK_SIZES if step < rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexLevel:
    """Alias tables of all blocks of one size, one behind another."""

    alias_threshold: NDArray[np.uint64]
    """uint64[rows]; aliases count from their block's first row. Of a block of sum 0: not to be
    drawn from.
    """
    alias_fraction: NDArray[np.uint32]
    """uint32[rows]."""
    sums: NDArray[np.float64]
    """float64[blocks], Neumaier sums of weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTables:
    """The tables of an index by weights of one name."""

    levels: tuple[IndexLevel, ...]
    """By `level_block_sizes`."""
    positives: NDArray[np.int64]
    """int64[blocks of the first step + 1]: how many rows before each block weigh anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedEdges:
    """The edges of each node, at one end, in order of a column."""

    order: NDArray[np.uint32]
    """uint32[slots], the slots of each row of the adjacency by (value, slot)."""
    keys: NDArray[np.int64]
    """int64[slots], in that order the values as `asterism_graphkit.arrays.sort_keys.sort_keys` has
    them.
    """
    weight_trees: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """float64[slots], by the name of weights: of each row a tree of sums in that order, as
    `storaged.build.edge_indexes.fill_weight_trees` lays it out.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnIndex:
    """The live rows of a node type, or the out-slots of an edge type, in order of a column."""

    column: str
    """As conditions write it, canonical."""
    kind: str
    """``hash`` or ``range``."""
    rows: NDArray[np.uint32]
    """uint32[n], by (value, row); NaN comes last, texts come by (hash, bytes)."""
    values: NDArray[Any]
    """``range``: [n], the value of each row; ``hash``: [groups], that of each group, of texts int64
    hashes.
    """
    bounds: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """``hash`` only: int64[groups + 1], where each group of equal values begins."""
    tables: Mapping[str, IndexTables] = field(default_factory=dict)
    """By the name of weights, the rows' own under ``OWN_WEIGHT_NAME``; a name that is not there is
    of a type without weights: every row weighs 1.
    """
    outgoing: SortedEdges | None = None
    incoming: SortedEdges | None = None
    """Of edges, where they are kept: by source, and by destination."""

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.column} ({self.kind})"


def file_prefix(owner: str, kind: str, column_place: str) -> str:
    """What the names of an index's files begin with: ``column_place`` is the number of a feature,
    or ``id`` or ``weight``.
    """
    return f"{owner}.x{kind[0]}{column_place}"


def manifest_entry(column: str, kind: str, prefix: str, names: Mapping[str, str]) -> dict[str, Any]:
    """What the manifest of an image says of an index: ``names`` of weights -> what the names of
    their files begin with.
    """
    return {"column": column, "kind": kind, "prefix": prefix, "weights": dict(names)}


def open_indexes(
    entries: list[Mapping[str, Any]], arrays: Mapping[str, NDArray[Any]]
) -> tuple[ColumnIndex, ...]:
    """The indexes that a manifest describes, with the files that it names."""
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
