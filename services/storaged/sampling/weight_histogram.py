"""Histogram of weights: rows of positive weight, counted by the logarithm of their weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_model.elements import NODE
from storaged.sampling.version import LocalVersion

BINS_PER_OCTAVE = 4
"""Number of bins between two powers of two."""
BIN_OF_ONE = 149 * BINS_PER_OCTAVE
"""Bin of weights from 1 on; the smallest float32 is 2^-149."""
BINS = BIN_OF_ONE + 128 * BINS_PER_OCTAVE
_RUN = 1 << 18
"""Rows that are counted at a time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightHistogram:
    """A histogram of weights."""

    counts: NDArray[np.int64]
    """Rows per bin: int64, shape (BINS,). Bin b has weights w with floor(4 log2 w) = b - 596."""
    sums: NDArray[np.float64]
    """Sum of the weights of each bin, without compensation: float64, shape (BINS,)."""


def build_histogram(
    version: LocalVersion,
    element: int,
    type_id: int,
    parts: Sequence[int],
    checkpoint: Callable[[], object],
) -> WeightHistogram:
    """Return the histogram of a type's positive weights.

    Parameters
    ----------
    version : LocalVersion
        Version with the weights to count in place of the rows' own.
    element, type_id : int
    parts : sequence of int
        Partitions to read.
    checkpoint : callable
        Called between blocks of rows; may raise.

    Returns
    -------
    WeightHistogram

    Raises
    ------
    InvalidRequest
        There is no such type.
    Unavailable
        A partition is not held here.
    """
    version.type_name(element, type_id)
    histogram = WeightHistogram(counts=np.zeros(BINS, np.int64), sums=np.zeros(BINS, np.float64))
    for part in sorted(set(parts)):
        image = version.image(part)
        if element == NODE:
            node = image.nodes[type_id]
            weights, live, count = node.weights, node.live, node.count
        else:
            adjacency = image.edges[type_id].outgoing
            weights, live, count = adjacency.weights, np.zeros(0, np.uint8), adjacency.nbr.size
        if not weights.size:
            histogram.counts[BIN_OF_ONE] += count
            histogram.sums[BIN_OF_ONE] += count
        for run in _runs(weights, live):
            bins = (
                np.floor(BINS_PER_OCTAVE * np.log2(run, dtype=np.float64)).astype(np.int64)
                + BIN_OF_ONE
            )
            histogram.counts[:] += np.bincount(bins, minlength=BINS)
            histogram.sums[:] += np.bincount(bins, weights=run, minlength=BINS)
            checkpoint()
    return histogram


def _runs(weights: NDArray[np.float32], live: NDArray[np.uint8]) -> Iterator[NDArray[np.float32]]:
    """Yield the positive weights of live rows, in blocks."""
    for low in range(0, weights.size, _RUN):
        run = weights[low : low + _RUN]
        mask = run > 0
        if live.size:
            mask &= live[low : low + _RUN] > 0
        yield np.ascontiguousarray(run[mask])
