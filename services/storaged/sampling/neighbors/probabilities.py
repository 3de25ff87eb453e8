"""The probabilities of drawn neighbors, out of what was drawn: draws themselves know nothing of
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from storaged.kernels.neighbors import probabilities as kernel
from storaged.sampling.cancellation import StopFlag


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeSource:
    """The edges of one type that nodes drew from."""

    indptr: NDArray[np.int64]
    """int64[rows + 1]."""
    weights: NDArray[np.float32]
    """float32[slots], what draws go by; empty: all 1, as in uniform draws."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnionDraws:
    """What m nodes of one (type, part) drew from the union of some edge types."""

    count: int
    rows: NDArray[np.int64]
    """int64[m], -1 where the node is unknown."""
    places: NDArray[np.int64]
    """int64[m], their places in the answer."""
    sources: Sequence[EdgeSource]
    """By edge type of the union."""
    totals: NDArray[np.float64]
    """float64[m], the weight of each node's edges of all these types."""
    degrees: NDArray[np.float64]
    """float64[m], their number."""
    type_indices: NDArray[np.int32]
    """int32[m * count], index of each draw's source; empty: there is one only."""
    slots: NDArray[np.int64]
    """int64[m * count], -1 for none."""


def write_probabilities(
    draws: UnionDraws, *, replace: bool, out: NDArray[np.float64], stop: StopFlag
) -> None:
    """Put the probability of each drawn edge in its place.

    Parameters
    ----------
    draws : UnionDraws
    replace : bool
        With replacement it is the edge's share of its node's weight; without, given the node's
        earlier draws, its share of what these left. A node of at most ``count`` edges gives all of
        them whatever the seed: each with probability 1.
    out : float64[n * count], out
        What was not drawn is left as it is.
    stop : StopFlag
        Of the request.
    """
    count = np.int64(draws.count)
    weights = np.zeros(draws.slots.size, np.float64)
    for type_index, source in enumerate(draws.sources):
        kernel.gather_drawn_weights(
            draws.slots, draws.type_indices, np.int32(type_index), source.weights, weights
        )
    if replace:
        kernel.write_shares(weights, draws.totals, draws.places, count, out)
        return
    remaining = np.empty(draws.rows.size, np.float64)
    if kernel.remaining_weights(weights, draws.totals, draws.degrees, count, remaining):
        unknown = as_kernel_array(np.flatnonzero(remaining < 0))
        remaining[unknown] = 0.0
        for type_index, source in enumerate(draws.sources):
            kernel.sum_undrawn(
                unknown,
                draws.rows,
                draws.slots,
                count,
                draws.type_indices,
                np.int32(type_index),
                source.indptr,
                source.weights,
                remaining,
                stop.flag,
            )
            stop.check()
    kernel.write_conditional(weights, remaining, draws.degrees, draws.places, count, out)
