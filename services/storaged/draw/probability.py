"""The probabilities of drawn neighbors, out of what was drawn: draws themselves know nothing of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import settled
from storaged.draw.stops import Stop
from storaged.kernel import probability as kernel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """The edges of one type that nodes drew from."""

    indptr: NDArray[np.int64]
    """int64[rows + 1]."""
    weights: NDArray[np.float32]
    """float32[slots], what draws go by; empty: all 1, as in uniform draws."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    """What m nodes of one (type, part) drew from the union of some edge types."""

    count: int
    rows: NDArray[np.int64]
    """int64[m], -1 where the node is unknown."""
    at: NDArray[np.int64]
    """int64[m], their places in the answer."""
    sources: Sequence[Source]
    """By edge type of the union."""
    totals: NDArray[np.float64]
    """float64[m], the weight of each node's edges of all these types."""
    degrees: NDArray[np.float64]
    """float64[m], their number."""
    which: NDArray[np.int32]
    """int32[m * count], index of each draw's source; empty: there is one only."""
    slots: NDArray[np.int64]
    """int64[m * count], -1 for none."""


def place_probabilities(drawn: Drawn, *, replace: bool, out: NDArray[np.float64], stop: Stop) -> None:
    """Put the probability of each drawn edge in its place.

    Parameters
    ----------
    drawn : Drawn
    replace : bool
        With replacement it is the edge's share of its node's weight; without, given the node's earlier draws, its share
        of what these left. A node of at most ``count`` edges gives all of them whatever the seed: each with probability 1.
    out : float64[n * count], out
        What was not drawn is left as it is.
    stop : Stop
        Of the request.
    """
    count = np.int64(drawn.count)
    weights = np.zeros(drawn.slots.size, np.float64)
    for mine, source in enumerate(drawn.sources):
        kernel.weigh(drawn.slots, drawn.which, np.int32(mine), source.weights, weights)
    if replace:
        kernel.share(weights, drawn.totals, drawn.at, count, out)
        return
    rests = np.empty(drawn.rows.size, np.float64)
    if kernel.leave(weights, drawn.totals, drawn.degrees, count, rests):
        unknown = settled(np.flatnonzero(rests < 0))
        rests[unknown] = 0.0
        for mine, source in enumerate(drawn.sources):
            kernel.sum_rest(unknown, drawn.rows, drawn.slots, count, drawn.which, np.int32(mine), source.indptr, source.weights, rests, stop.flag)
            stop.check()
    kernel.condition(weights, rests, drawn.degrees, drawn.at, count, out)
