"""The probabilities of successive draws without replacement: each given the earlier ones.

Draw k of weights w has the probability w_k / (what the draws before it left). Taking weights from a
total tells what is left as long as there is much of it: below ``MIN_REMAINING_SHARE`` of the total
the difference is too much rounding, and whoever draws adds up the rest itself. From the rest on it
goes backwards by additions, so that nothing cancels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array, inlined, kernel

MIN_REMAINING_SHARE = 0.125
"""Of a total: a difference of at least this much of it has a relative error below 2^-48."""


@inlined
def neumaier_add(high: float, low: float, x: float) -> tuple[float, float]:
    """Neumaier's sum of non-negative numbers, one number on: the sum so far, and what was rounded
    off it.
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
    """The probability of each of some successive draws, given those before it.

    Parameters
    ----------
    shares : float64[n]
        Weights, or shares of one total, in the order of the draws; positive.
    rest : float
        The same of everything that was not drawn; 0 where that is nothing.

    Returns
    -------
    float64[n]
        Their product is the probability of just these draws in just this order.
    """
    out = np.empty(shares.size, np.float64)
    _conditional_probabilities(as_kernel_array(shares), float(rest), out)
    return out
