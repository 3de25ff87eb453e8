"""Build the alias rows of nodes, a range of rows at a time.

A row with more edges than fit in memory is built by the sweep of `storaged.build.alias_sweep`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.random.alias_build import LEFTOVER_TOLERANCE, build_rows, row_sums
from asterism_proto.errors import Internal
from storaged.build.alias_sweep import AliasSweep
from storaged.build.alias_table import BlockSums
from storaged.build.block_reader import BuildContext
from storaged.build.build_kernels import threshold_block
from storaged.build.build_steps import StepState
from storaged.store.alias_table_store import SCRATCH_ROWS, Columns

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
ALIAS_BYTES = 40
CHUNK = 1 << 18


class _ThresholdWriter:
    """Sink that packs the thresholds of swept columns and writes them to their positions."""

    def __init__(
        self, alias_threshold: NDArray[np.uint64], alias_fraction: NDArray[np.uint32]
    ) -> None:
        self._threshold, self._fraction = alias_threshold, alias_fraction

    def append(self, *columns: NDArray[Any]) -> None:
        """Write the thresholds of some columns: (position, probability, alias, alias id)."""
        position, prob, alias, _ = columns
        alias_threshold, alias_fraction = (
            np.empty(position.size, np.uint64),
            np.empty(position.size, np.uint32),
        )
        threshold_block(
            np.ascontiguousarray(prob), np.ascontiguousarray(alias), alias_threshold, alias_fraction
        )
        self._threshold[position], self._fraction[position] = alias_threshold, alias_fraction

    def finish(self) -> int:
        """Return the number of columns."""
        return self._threshold.size


def _split_blocks(weights: F32, total: float, *, heavy: bool) -> Iterator[Columns]:
    """Yield (position, position, p) of the light or the heavy slots, block by block.

    The position takes the place of an id.
    """
    for low in range(0, weights.size, SCRATCH_ROWS):
        p = weights[low : low + SCRATCH_ROWS].astype(np.float64) * weights.size / total
        selected = np.flatnonzero((p >= 1.0) == heavy)
        if selected.size:
            yield (selected + low).astype(np.uint32), selected + low, p[selected]


def build_heavy_row(
    weights: F32, alias_threshold: NDArray[np.uint64], alias_fraction: NDArray[np.uint32]
) -> float:
    """Write the thresholds of one row, and return the sum of its weights.

    The bits are those of `asterism_graphkit.random.alias_build.build_rows`.

    Parameters
    ----------
    weights : float32[n]
        May be mapped; read three times, forward.
    alias_threshold, alias_fraction : uint64[n], uint32[n], out
        May be mapped.
    """
    sums = BlockSums()
    for low in range(0, weights.size, SCRATCH_ROWS):
        sums.add(weights[low : low + SCRATCH_ROWS])
    total = sums.total()
    if total == 0:
        for low in range(0, weights.size, SCRATCH_ROWS):
            high = min(low + SCRATCH_ROWS, weights.size)
            alias_threshold[low:high], alias_fraction[low:high] = (
                np.arange(low, high, dtype=np.uint64),
                0,
            )
        return total
    out = _ThresholdWriter(alias_threshold, alias_fraction)
    shortfall = AliasSweep(
        _split_blocks(weights, total, heavy=False),
        _split_blocks(weights, total, heavy=True),
        out,
        out,
    ).run()
    if not shortfall <= LEFTOVER_TOLERANCE * weights.size:
        raise Internal(
            f"alias row of {weights.size} edges: the remainder is short by {shortfall}; the "
            "version is rejected"
        )
    return total


def build_alias_rows(context: BuildContext, prefix: str, indptr: I64, weights: F32) -> StepState:
    """Write the weight sum and the alias table of every row.

    There are no tables if all weights are equal and positive.

    Parameters
    ----------
    context : BuildContext
    prefix : str
        Prefix of the image's files.
    indptr : int64[rows + 1]
    weights : float32[slots]
        Both may be mapped.
    """
    image, limit = context.image, context.task.row_limit(ALIAS_BYTES)
    all_equal = bool(weights.size == 0) or (
        weights[0] > 0
        and all(
            bool((weights[low : low + CHUNK] == weights[0]).all())
            for low in range(0, weights.size, CHUNK)
        )
    )
    rows = indptr.size - 1
    sums = image.create(f"{prefix}.sums", np.float64, (rows,))
    alias_threshold = (
        None if all_equal else image.create(f"{prefix}.hot", np.uint64, (weights.size,))
    )
    alias_fraction = (
        None if all_equal else image.create(f"{prefix}.cold", np.uint32, (weights.size,))
    )
    low = 0
    while low < rows:
        fitting_end = min(
            int(np.searchsorted(indptr, indptr[low] + limit, side="right")) - 1, low + limit, rows
        )
        high = max(fitting_end, low + 1)
        slots = slice(int(indptr[low]), int(indptr[high]))
        if alias_threshold is None or alias_fraction is None:
            row_sums(indptr[low : high + 1] - slots.start, weights[slots], sums[low:high])
        elif fitting_end <= low:
            sums[low] = build_heavy_row(
                weights[slots], alias_threshold[slots], alias_fraction[slots]
            )
        else:
            alias_threshold[slots], alias_fraction[slots], sums[low:high] = build_rows(
                indptr[low : high + 1] - slots.start, weights[slots]
            )
        context.progress.step(slots.stop - slots.start)
        low = high
    return {}
