"""The alias row of a node with more edges than fit in memory: the sweep of a table, over mapped files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Internal
from graphkit.alias import TOLERANCE
from storaged.build.kernels import threshold_block
from storaged.build.sweep import Sweep
from storaged.build.table import BlockSums
from storaged.store.tables import SCRATCH_ROWS, Columns

F32 = NDArray[np.float32]


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
