"""Coins: which positions of a request an event of a given probability befalls."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import kernel
from graphkit.rng import derive, unit, word


@kernel
def flip(key: np.uint64, positions: NDArray[np.int64], probability: np.float64, out: NDArray[np.bool_]) -> None:
    """``out[i]`` is true with ``probability``, by the first word of position i's key.

    Parameters
    ----------
    key : uint64
    positions : int64[n]
    probability : float64
        In [0, 1].
    out : bool[n], out
    """
    for i in range(positions.shape[0]):
        out[i] = unit(word(derive(key, np.uint64(positions[i])), np.uint64(0))) < probability
