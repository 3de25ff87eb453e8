"""Range cover of a filter: ranges of an index, split into blocks with alias tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import addresses_of, as_kernel_array
from asterism_graphkit.random import alias_build
from asterism_model.partition_stats import PartitionTotals
from storaged.kernels.global_sampling.index_range_sampling import (
    PIECE_FRACTIONS,
    PIECE_THRESHOLDS,
    ROWS,
    START,
    cover_run,
)
from storaged.sampling.filters.index_ranges import RowRuns
from storaged.store.column_index import BLOCK_SIZES, OWN_WEIGHT_NAME, ColumnIndex, level_block_sizes
from storaged.store.image import AdjacencyImage, NodeImage

_MAX_SMALL_PIECES = 2 * sum(BLOCK_SIZES[0] - 1 for _ in BLOCK_SIZES) + 2
"""Largest number of pieces of a range below the last level."""
_BYTES = 64
"""Memory per piece in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RangeCover:
    """The matching rows of one partition, as pieces of an index.

    Tables are given by address and are valid as long as the image exists.
    """

    index: ColumnIndex
    totals: PartitionTotals
    runs: RowRuns
    starts: NDArray[np.int64]
    """First row of each piece: int64, shape (s,)."""
    sizes: NDArray[np.int64]
    """Number of rows of each piece: int64, shape (s,)."""
    threshold_addresses: NDArray[np.uint64]
    fraction_addresses: NDArray[np.uint64]
    """Addresses of each piece's table: uint64, shape (s,); 0 if all rows are equal."""
    weights: NDArray[np.float64]
    """Weight of each piece: float64, shape (s,)."""

    @property
    def bytes(self) -> int:
        """Approximate memory in bytes."""
        return _BYTES * (self.starts.size + len(self.runs)) + 1024


def build_range_cover(
    index: ColumnIndex, image: NodeImage | AdjacencyImage, runs: RowRuns, weight_name: str
) -> RangeCover:
    """Return the range cover of some ranges of rows, for sampling by weights.

    Parameters
    ----------
    index : ColumnIndex
    image : NodeImage or AdjacencyImage
        The indexed rows or slots, with the sampled weights in place of their own.
    runs : list of (int, int)
        Ranges of the index's rows.
    weight_name : str
        Name of the weights; ``OWN_WEIGHT_NAME`` for the rows' own.
    """
    starts = np.array([low for low, _ in runs], np.int64)
    sizes = np.array([high - low for low, high in runs], np.int64)
    count = int(sizes.sum())
    tables = index.tables.get(weight_name or OWN_WEIGHT_NAME)
    if tables is None:
        no_addresses = np.zeros(starts.size, np.uint64)
        part_totals = PartitionTotals(count=count, positive=count, weight=float(count))
        return RangeCover(
            index=index,
            totals=part_totals,
            runs=runs,
            starts=starts,
            sizes=sizes,
            threshold_addresses=no_addresses,
            fraction_addresses=no_addresses,
            weights=sizes.astype(np.float64),
        )
    steps = level_block_sizes(index.rows.size)
    starts, sizes, levels = _pieces(runs, index.rows.size, steps)
    threshold_addresses, fraction_addresses, piece_weights = (
        np.zeros(starts.size, np.uint64),
        np.zeros(starts.size, np.uint64),
        np.empty(starts.size, np.float64),
    )
    single = levels < 0
    piece_weights[single] = image.weights[index.rows[starts[single]]]
    for level, (step, table) in enumerate(zip(steps, tables.levels, strict=True)):
        at_level = levels == level
        piece_weights[at_level] = table.sums[starts[at_level] // step]
        threshold_base, fraction_base = addresses_of([table.alias_threshold, table.alias_fraction])
        threshold_addresses[at_level] = threshold_base + np.uint64(8) * starts[at_level].astype(
            np.uint64
        )
        fraction_addresses[at_level] = fraction_base + np.uint64(4) * starts[at_level].astype(
            np.uint64
        )
    has_weight = piece_weights > 0
    positive = sum(
        _count_positive(index, image, tables.positives, high)
        - _count_positive(index, image, tables.positives, low)
        for low, high in runs
    )
    return RangeCover(
        index=index,
        totals=PartitionTotals(
            count=count, positive=positive, weight=alias_build.neumaier_sum(piece_weights)
        ),
        runs=runs,
        starts=starts[has_weight],
        sizes=sizes[has_weight],
        threshold_addresses=threshold_addresses[has_weight],
        fraction_addresses=fraction_addresses[has_weight],
        weights=piece_weights[has_weight],
    )


def _pieces(
    runs: RowRuns, row_count: int, steps: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row, the number of rows and the level of every piece of some ranges."""
    pieces: list[NDArray[np.int64]] = []
    for low, high in runs:
        capacity = min(high - low, _MAX_SMALL_PIECES + (high - low) // BLOCK_SIZES[-1])
        out = np.empty((3, capacity), np.int64)
        count = int(
            cover_run(
                np.int64(low),
                np.int64(high),
                np.int64(row_count),
                as_kernel_array(np.array(steps, np.int64)),
                out[0],
                out[1],
                out[2],
            )
        )
        assert count <= capacity
        pieces.append(out[:, :count])
    starts, sizes, levels = np.concatenate([np.empty((3, 0), np.int64), *pieces], axis=1)
    return starts, sizes, levels


def _count_positive(
    index: ColumnIndex,
    image: NodeImage | AdjacencyImage,
    positives: NDArray[np.int64],
    position: int,
) -> int:
    """Return the number of rows of positive weight before a position of the index."""
    block = position // BLOCK_SIZES[0]
    return int(positives[block]) + int(
        np.count_nonzero(image.weights[index.rows[block * BLOCK_SIZES[0] : position]])
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RangeCoverTable:
    """The covers of the entries of a draw, concatenated.

    `storaged.kernels.global_sampling.index_range_sampling.draw_covered_rows` takes this form.
    """

    firsts: NDArray[np.int64]
    """Start of each entry's pieces: int64, shape (k + 1,)."""
    pieces: NDArray[np.int64]
    """Pieces: int64, shape (4, s)."""
    alias_threshold: NDArray[np.uint64]
    alias_fraction: NDArray[np.uint32]
    """Alias table over each entry's pieces: uint64, shape (s,); uint32, shape (s,)."""
    rows_of: NDArray[np.uint64]
    """Addresses of the rows of each entry's index: uint64, shape (k,)."""


def combine_covers(covers: Sequence[RangeCover | None], *, uniform: bool) -> RangeCoverTable:
    """Concatenate the covers of some entries; None for an entry without draws."""
    piece_tables = [_cover_table(cover, uniform) for cover in covers]
    return RangeCoverTable(
        firsts=as_kernel_array(
            np.append(0, np.cumsum([pieces.shape[1] for pieces, *_ in piece_tables])).astype(
                np.int64
            )
        ),
        pieces=as_kernel_array(np.concatenate([pieces for pieces, _, _ in piece_tables], axis=1)),
        alias_threshold=as_kernel_array(
            np.concatenate([thresholds for _, thresholds, _ in piece_tables])
        ),
        alias_fraction=as_kernel_array(
            np.concatenate([fractions for _, _, fractions in piece_tables])
        ),
        rows_of=addresses_of(
            np.zeros(0, np.uint32) if cover is None else cover.index.rows for cover in covers
        ),
    )


def _cover_table(
    cover: RangeCover | None, uniform: bool
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint32]]:
    """Return the pieces of one entry and the alias table over them.

    With ``uniform``, the pieces are whole ranges, because all rows are equal.
    """
    if cover is None:
        return np.zeros((4, 0), np.int64), np.zeros(0, np.uint64), np.zeros(0, np.uint32)
    starts, sizes, threshold_addresses, fraction_addresses, piece_weights = (
        cover.starts,
        cover.sizes,
        cover.threshold_addresses,
        cover.fraction_addresses,
        cover.weights,
    )
    if uniform:
        starts = np.array([low for low, _ in cover.runs], np.int64)
        sizes = np.array([high - low for low, high in cover.runs], np.int64)
        threshold_addresses = fraction_addresses = np.zeros(starts.size, np.uint64)
        piece_weights = sizes.astype(np.float64)
    alias_thresholds, alias_fractions = alias_build.pack_thresholds(
        *alias_build.build(piece_weights)
    )
    pieces = np.empty((4, starts.size), np.int64)
    pieces[START], pieces[ROWS] = starts, sizes
    pieces[PIECE_THRESHOLDS], pieces[PIECE_FRACTIONS] = threshold_addresses, fraction_addresses
    return pieces, alias_thresholds, alias_fractions


RangeCovers = Mapping[tuple[int, int], RangeCover]
"""Range covers by (type, partition)."""
