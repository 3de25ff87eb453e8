"""RMAT generator: random edges with the skewed degrees of real graphs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import kernel
from asterism_graphkit.random.rng import derive, key_of, word

# Chakrabarti, Zhan & Faloutsos 2004, "R-MAT: A recursive model for graph mining", with Graph500's
# probabilities 0.57, 0.19, 0.19, 0.05 as bounds of a 16-bit number.
_A, _B, _C = np.uint64(37356), np.uint64(49807), np.uint64(62259)
"""Quadrant bounds.
Part of the sampling contract: changing them changes results for a given seed."""
_SPREAD = 2_654_435_761
"""Prime multiplier, modulo n, that spreads hubs over all ids.
RMAT puts hubs at low ids. Part of the sampling contract: changing it changes results for a given
seed."""


@kernel
def fill_edges(
    key: np.uint64,
    start: np.int64,
    scale: np.int64,
    sources: np.int64,
    targets: np.int64,
    src_step: np.int64,
    dst_step: np.int64,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
) -> None:
    """Fill ``src`` and ``dst`` with edges ``start``, ``start + 1``, ... of an infinite list.

    Parameters
    ----------
    key : uint64
        Key of the list.
    start : int64
        Number of the first edge.
    scale : int64
        Levels of the recursion, at most 32. 2^scale must be at least ``sources`` and ``targets``.
    sources, targets : int64
        Numbers of nodes; ids are 0 .. sources - 1 and 0 .. targets - 1.
    src_step, dst_step : int64
        Multipliers that permute the ids, coprime to ``sources`` and ``targets`` and below them.
    src, dst : ndarray of int64, shape (n,)
        Output.
    """
    for i in range(len(src)):
        edge_key = derive(key, np.uint64(start + i))
        row = np.uint64(0)
        column = np.uint64(0)
        bits = np.uint64(0)
        for level in range(scale):
            if level % 4 == 0:
                bits = word(edge_key, np.uint64(level // 4))
            quadrant = bits & np.uint64(0xFFFF)
            bits = bits >> np.uint64(16)
            row = (row << np.uint64(1)) | np.uint64(quadrant >= _B)
            column = (column << np.uint64(1)) | np.uint64(
                (quadrant >= _A) & (quadrant < _B) | (quadrant >= _C)
            )
        # Both factors are at most 2^32, so the products fit into 64 bits.
        src[i] = (np.int64((row * np.uint64(sources)) >> np.uint64(scale)) * src_step) % sources
        dst[i] = (np.int64((column * np.uint64(targets)) >> np.uint64(scale)) * dst_step) % targets


def rmat(
    seed: int, tag: int, start: int, count: int, *, sources: int, targets: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Generate edges ``start`` to ``start + count - 1`` of the list of a seed and a tag.

    Parameters
    ----------
    seed, tag : int
        Identify the list. The edges do not depend on how they are divided into calls.
    start, count : int
        Range of edges.
    sources, targets : int
        Number of source and destination nodes, 1 to 2^31 - 1.

    Returns
    -------
    src, dst : ndarray of int64, shape (count,)
        Sources and destinations. An edge may appear more than once.
    """
    src, dst = np.empty(count, np.int64), np.empty(count, np.int64)
    scale = max(sources - 1, targets - 1, 1).bit_length()
    fill_edges(
        np.uint64(key_of(seed, tag)),
        np.int64(start),
        np.int64(scale),
        np.int64(sources),
        np.int64(targets),
        np.int64(_permuting_multiplier(sources)),
        np.int64(_permuting_multiplier(targets)),
        src,
        dst,
    )
    return src, dst


def _permuting_multiplier(n: int) -> int:
    """Return a multiplier that permutes 0 .. n - 1."""
    step = _SPREAD % n or 1
    while math.gcd(step, n) != 1:
        step += 1
    return step
