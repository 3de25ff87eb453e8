"""Coins: which positions of a request an event of a given probability befalls, and positions of further attempts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import kernel
from graphkit.rng import derive, mix64, unit, word


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


@kernel
def toss(key: np.uint64, positions: NDArray[np.int64], out: NDArray[np.float64]) -> None:
    """``out[i]`` in (0, 1), by the first word of position i's key."""
    for i in range(positions.shape[0]):
        out[i] = unit(word(derive(key, np.uint64(positions[i])), np.uint64(0)))


@kernel
def attempt_positions(positions: NDArray[np.int64], attempts: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    """A position of its own for each attempt at a position; any bits."""
    for i in range(positions.shape[0]):
        out[i] = np.int64(derive(mix64(np.uint64(positions[i])), np.uint64(attempts[i])))
