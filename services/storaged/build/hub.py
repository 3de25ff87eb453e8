"""The alias rows of nodes: a range of rows at a time, and of one with more edges than fit in memory by the sweep of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Internal
from graphkit.alias import TOLERANCE, build_rows, row_sums
from storaged.build.kernels import threshold_block
from storaged.build.source import Workplace
from storaged.build.steps import State
from storaged.build.sweep import Sweep
from storaged.build.table import BlockSums
from storaged.store.tables import SCRATCH_ROWS, Columns

F32 = NDArray[np.float32]
I64 = NDArray[np.int64]
ALIAS_BYTES = 40
CHUNK = 1 << 18


class _Placed:
    """Takes swept columns and puts their thresholds where they belong."""

    def __init__(self, hot: NDArray[np.uint64], cold: NDArray[np.uint32]) -> None:
        self._hot, self._cold = hot, cold

    def append(self, *columns: NDArray[Any]) -> None:
        position, prob, alias, _ = columns
        hot, cold = np.empty(position.size, np.uint64), np.empty(position.size, np.uint32)
        threshold_block(np.ascontiguousarray(prob), np.ascontiguousarray(alias), hot, cold)
        self._hot[position], self._cold[position] = hot, cold

    def finish(self) -> int:
        return self._hot.size


def _stream(weights: F32, total: float, *, heavy: bool) -> Iterator[Columns]:
    """Position, position again (there are no ids here) and p of the light or the heavy slots, block by block."""
    for low in range(0, weights.size, SCRATCH_ROWS):
        p = weights[low : low + SCRATCH_ROWS].astype(np.float64) * weights.size / total
        mine = np.flatnonzero((p >= 1.0) == heavy)
        if mine.size:
            yield (mine + low).astype(np.uint32), mine + low, p[mine]


def build_hub(weights: F32, hot: NDArray[np.uint64], cold: NDArray[np.uint32]) -> float:
    """Write the thresholds of one row; gives the sum of its weights. The bits are those of `graphkit.alias.build_rows`.

    Parameters
    ----------
    weights : float32[n]
        May be mapped; read three times, forward.
    hot, cold : uint64[n], uint32[n], out
        May be mapped.
    """
    sums = BlockSums()
    for low in range(0, weights.size, SCRATCH_ROWS):
        sums.add(weights[low : low + SCRATCH_ROWS])
    total = sums.total()
    if total == 0:
        for low in range(0, weights.size, SCRATCH_ROWS):
            high = min(low + SCRATCH_ROWS, weights.size)
            hot[low:high], cold[low:high] = np.arange(low, high, dtype=np.uint64), 0
        return total
    out = _Placed(hot, cold)
    short = Sweep(_stream(weights, total, heavy=False), _stream(weights, total, heavy=True), out, out).run()
    if not short <= TOLERANCE * weights.size:
        raise Internal(f"alias row of {weights.size} edges: the leftovers are short of {short}; the version is refused")
    return total


def alias_rows(work: Workplace, prefix: str, indptr: I64, weights: F32) -> State:
    """Write sums of weights and alias tables of every row; no tables where all weights are equal and positive.

    Parameters
    ----------
    prefix : str
        Of the image's files.
    indptr : int64[rows + 1]
    weights : float32[slots]
        Both may be mapped.
    """
    image, limit = work.image, work.task.row_limit(ALIAS_BYTES)
    even = bool(weights.size == 0) or (
        weights[0] > 0 and all(bool((weights[low : low + CHUNK] == weights[0]).all()) for low in range(0, weights.size, CHUNK))
    )
    rows = indptr.size - 1
    sums = image.create(f"{prefix}.sums", np.float64, (rows,))
    hot = None if even else image.create(f"{prefix}.hot", np.uint64, (weights.size,))
    cold = None if even else image.create(f"{prefix}.cold", np.uint32, (weights.size,))
    low = 0
    while low < rows:
        within = min(int(np.searchsorted(indptr, indptr[low] + limit, side="right")) - 1, low + limit, rows)
        high = max(within, low + 1)
        slots = slice(int(indptr[low]), int(indptr[high]))
        if hot is None or cold is None:
            row_sums(indptr[low : high + 1] - slots.start, weights[slots], sums[low:high])
        elif within <= low:
            sums[low] = build_hub(weights[slots], hot[slots], cold[slots])
        else:
            hot[slots], cold[slots], sums[low:high] = build_rows(indptr[low : high + 1] - slots.start, weights[slots])
        work.progress.step(slots.stop - slots.start)
        low = high
    return {}
