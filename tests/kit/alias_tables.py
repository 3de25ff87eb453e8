"""Probabilities that an alias table implies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def implied_distribution(
    alias_threshold: NDArray[np.uint64], alias_fraction: NDArray[np.uint32]
) -> NDArray[np.float64]:
    """Return the probability of each column of a table with less than 2^21 columns.

    Thresholds and what aliases receive are summed exactly, in halves of 32 bits.

    Parameters
    ----------
    alias_threshold, alias_fraction : uint64[n], uint32[n]
        Result of `alias_build.pack_thresholds`, or the table of a partition image.

    Returns
    -------
    float64[n]
    """
    high, low = alias_threshold >> np.uint64(32), alias_fraction.astype(np.uint64)
    targets = (alias_threshold & np.uint64(0xFFFFFFFF)).astype(np.int64)
    # 2^64 minus the threshold
    rest_high = float(1 << 32) - high - (low > 0)
    rest_low = np.where(low > 0, float(1 << 32) - low, 0.0)
    columns = alias_threshold.size
    high_sums = high + np.bincount(targets, rest_high, columns)
    low_sums = low + np.bincount(targets, rest_low, columns)
    return (high_sums / 2.0**32 + low_sums / 2.0**64) / columns
