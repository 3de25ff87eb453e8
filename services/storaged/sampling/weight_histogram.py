"""How weights are spread: rows of positive weight, counted by the logarithm of what they weigh."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_model.elements import NODE
from storaged.sampling.version import LocalVersion

BINS_PER_OCTAVE = 4
"""Bins between two powers of two."""
BIN_OF_ONE = 149 * BINS_PER_OCTAVE
"""The bin of weights from 1 on: the smallest float32 is 2^-149."""
BINS = BIN_OF_ONE + 128 * BINS_PER_OCTAVE
_RUN = 1 << 18
"""Rows that are counted at a time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightHistogram:
    """How many rows weigh how much."""

    counts: NDArray[np.int64]
    """int64[BINS]; bin b is of the weights w with floor(4 log2 w) = b - 596."""
    sums: NDArray[np.float64]
    """float64[BINS], the sum of the weights of each bin, plainly added."""


def build_histogram(
    version: LocalVersion,
    element: int,
    type_id: int,
    parts: Sequence[int],
    checkpoint: Callable[[], object],
) -> WeightHistogram:
    """Count the rows of positive weight of a type.

    Parameters
    ----------
    version : LocalVersion
        With the weights to look at in the place of the rows' own.
    element, type_id : int
    parts : sequence of int
        Parts to answer for.
    checkpoint : callable
        Called between runs of rows; what it raises ends the count.

    Returns
    -------
    WeightHistogram

    Raises
    ------
    InvalidRequest, Unavailable
        Where there is no such type, or a part is not held here.
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
    """The positive weights of live rows, some at a time."""
    for low in range(0, weights.size, _RUN):
        run = weights[low : low + _RUN]
        mask = run > 0
        if live.size:
            mask &= live[low : low + _RUN] > 0
        yield np.ascontiguousarray(run[mask])
