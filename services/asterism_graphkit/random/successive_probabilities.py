"""Conditional probabilities of successive draws without replacement.

Draw k of weights w has the probability w_k / (the weight that remains before it). The remaining
weight can be computed by subtracting from the total while much of it is left. Below
``MIN_REMAINING_SHARE`` of the total the rounding error of the difference is too large, and the
caller sums the rest directly. From the rest the sums go backwards by additions, so that no digits
cancel.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array, inlined, kernel

MIN_REMAINING_SHARE = 0.125
"""Smallest share of a total for which a difference has a relative error below 2^-48."""


@inlined
def neumaier_add(high: float, low: float, x: float) -> tuple[float, float]:
    """Add a number to Neumaier's sum of non-negative numbers.

    Returns the sum so far and its compensation.
    """
    t = high + x
    return t, low + ((high - t) + x if high >= x else (x - t) + high)


@kernel
def _conditional_probabilities(
    shares: NDArray[np.float64], rest: float, out: NDArray[np.float64]
) -> None:
    high, low = rest, 0.0
    for k in range(shares.shape[0] - 1, -1, -1):
        high, low = neumaier_add(high, low, shares[k])
        out[k] = min(shares[k] / (high + low), 1.0)


def conditional_probabilities(shares: NDArray[np.float64], rest: float) -> NDArray[np.float64]:
    """Return the probability of each successive draw, given the draws before it.

    Parameters
    ----------
    shares : float64[n]
        Weights, or shares of one total, in the order of the draws; positive.
    rest : float
        Total weight or share of everything that was not drawn, possibly 0.

    Returns
    -------
    float64[n]
        Their product is the probability of exactly these draws in this order.
    """
    out = np.empty(shares.size, np.float64)
    _conditional_probabilities(as_kernel_array(shares), float(rest), out)
    return out
