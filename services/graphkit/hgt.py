"""Budgets: what sampled nodes give to their neighbors, by which whole layers of a heterogeneous graph are drawn.

Hu et al. 2020, *Heterogeneous graph transformer*, WWW, section 3.3, algorithms 1 and 2; PyG's ``HGTLoader``. A node t that is taken gives
each of its edges of one type the share that the edge has of all of them, and a node that is not taken yet has what all edges to it
were given, of every type and in every layer: its budget B. A layer of n nodes of a type is n successive draws without replacement among
those that have a budget, in proportion to its square: the next one is v with probability B_v^2 / (the sum of B^2 over those not yet taken).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit import layers
from graphkit.jit import Whole, inlined, kernel, settled
from graphkit.numbering import Numbering
from graphkit.successive import plus

F64 = NDArray[np.float64]
Ids = NDArray[np.int64]


@inlined
def _weight(weights: NDArray[np.float32], e: Whole) -> float:
    """Of an edge; without weights all are 1."""
    return np.float64(weights[e]) if weights.shape[0] > 0 else 1.0


@kernel
def _shares(indptr: NDArray[np.int64], types: NDArray[np.int32], weights: NDArray[np.float32], out: F64) -> None:
    for row in range(indptr.shape[0] - 1):
        begin, end = indptr[row], indptr[row + 1]
        while begin < end:
            stop, total, rounded = begin, 0.0, 0.0
            while stop < end and types[stop] == types[begin]:
                total, rounded = plus(total, rounded, _weight(weights, stop))
                stop += 1
            total += rounded
            for e in range(begin, stop):
                out[e] = _weight(weights, e) / total if total > 0.0 else 0.0
            begin = stop


def shares(indptr: NDArray[np.int64], types: NDArray[np.int32], weights: NDArray[np.float32] | None) -> F64:
    """The share that each edge has of its node's edges of one type.

    Parameters
    ----------
    indptr : int64[rows + 1]
        The edges of each node.
    types : int32[edges]
        Of the edges; those of a node and type are side by side.
    weights : float32[edges] or None
        None: all 1. Of a node whose edges of a type weigh nothing none has a share.

    Returns
    -------
    float64[edges]
    """
    out = np.zeros(types.size, np.float64)
    _shares(settled(indptr), settled(types), settled(np.zeros(0, np.float32) if weights is None else weights), out)
    return out


@kernel
def _give(numbers: NDArray[np.int32], given: F64, high: F64, low: F64) -> None:
    for e in range(numbers.shape[0]):
        c = numbers[e]
        high[c], low[c] = plus(high[c], low[c], given[e])


class Budgets:
    """The nodes of one type that a sample has met: which are taken, and what the others were given.

    Parameters
    ----------
    numbering : Numbering
        A new one; nodes are numbered as they are met.
    """

    def __init__(self, numbering: Numbering) -> None:
        self._numbering = numbering
        self._high, self._low = np.zeros(0, np.float64), np.zeros(0, np.float64)
        self._free = np.zeros(0, np.bool_)
        self._taken: list[Ids] = []
        """The numbers of nodes, as they were taken."""

    @property
    def taken(self) -> Ids:
        """int64[n]: the ids of the nodes that are taken, in that order."""
        numbers: Ids = np.concatenate([np.zeros(0, np.int64), *self._taken])
        ids: Ids = self._numbering.ids[numbers]
        return ids

    def plant(self, ids: Ids) -> NDArray[np.int32]:
        """Take the seeds, before anything else; gives the place of each among ``taken``, -1 for -1. int32[m]."""
        places = self._numbering.assign(ids)
        self._grow()
        self._take(np.arange(len(self._numbering), dtype=np.int64))
        return places

    def give(self, ids: Ids, given: F64) -> None:
        """Add what edges give to the nodes that they lead to, in the order of the edges.

        Parameters
        ----------
        ids : int64[edges]
            The far end of each.
        given : float64[edges]
            From `shares`.
        """
        numbers = self._numbering.assign(ids)
        self._grow()
        _give(settled(numbers), settled(given), self._high, self._low)

    def measures(self) -> F64:
        """float64[met]: the budget of each node by number; 0 of one that is taken, for it is not drawn again."""
        return np.where(self._free, self._high + self._low, 0.0)

    def draw(self, key: np.uint64, count: int) -> Ids:
        """Take nodes by successive draws in proportion to squared budgets.

        Parameters
        ----------
        key : uint64
            Of this draw alone.
        count : int
            How many; all that have a budget, where they are fewer.

        Returns
        -------
        int64[n]
            Their ids, in the order of the draws: the first m of n are those of a request for m.
        """
        met = len(self._numbering)
        chosen, _ = layers.draw(key, np.array([0, met], np.int64), self.measures() ** 2, min(count, met), replace=False)
        numbers = chosen[chosen >= 0]
        self._take(numbers)
        return self._numbering.ids[numbers]

    def _take(self, numbers: Ids) -> None:
        self._free[numbers] = False
        self._taken.append(numbers)

    def _grow(self) -> None:
        """Room for nodes that were met for the first time."""
        more = len(self._numbering) - self._free.size
        if more:
            self._high, self._low = (np.concatenate([sums, np.zeros(more)]) for sums in (self._high, self._low))
            self._free = np.concatenate([self._free, np.ones(more, np.bool_)])
