"""Probabilities of sampled neighbors, computed from the samples.

Sampling itself does not compute them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from storaged.kernels.neighbors import probabilities as kernel
from storaged.sampling.cancellation import StopFlag
from storaged.store.image import EMPTY_F64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeSource:
    """The edges of one type that nodes sample from."""

    indptr: NDArray[np.int64]
    """Row pointers: int64, shape (rows + 1,)."""
    weights: NDArray[np.float32]
    """Weights: float32, shape (slots,); empty if all are 1, as in uniform sampling."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnionDraws:
    """Samples of m nodes of one (type, partition) from a union of edge types."""

    count: int
    rows: NDArray[np.int64]
    """Rows: int64, shape (m,); -1 for an unknown node."""
    places: NDArray[np.int64]
    """Positions in the reply: int64, shape (m,)."""
    sources: Sequence[EdgeSource]
    """Edges by edge type of the union."""
    totals: NDArray[np.float64]
    """Weight of each node's edges of all these types: float64, shape (m,)."""
    degrees: NDArray[np.float64]
    """Number of each node's edges of all these types: float64, shape (m,)."""
    type_indices: NDArray[np.int32]
    """Index of each draw's source: int32, shape (m * count,); empty if there is only one."""
    slots: NDArray[np.int64]
    """Slots: int64, shape (m * count,); -1 for none."""
    excluded_weights: NDArray[np.float64] = field(default_factory=lambda: EMPTY_F64)
    """Weight of the edges of each row that draws reject: float64, shape (m,); empty if none."""


def write_probabilities(
    draws: UnionDraws, *, replace: bool, out: NDArray[np.float64], stop: StopFlag
) -> None:
    """Write the probability of each sampled edge.

    Parameters
    ----------
    draws : UnionDraws
    replace : bool
        With replacement, the probability is the edge's share of its node's weight. Without, it is
        the share of the weight that the node's earlier draws left. A node with at most ``count``
        edges returns all of them for any seed, each with probability 1.
    out : ndarray of float64, shape (n * count,)
        Output. Places without a draw stay as they are.
    stop : StopFlag
        Stop flag of the request.
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
        if draws.excluded_weights.size:
            excess = draws.excluded_weights[unknown]
            remaining[unknown] = np.maximum(remaining[unknown] - excess, 0.0)
    kernel.write_conditional(weights, remaining, draws.degrees, draws.places, count, out)
