"""Budgets: what sampled nodes give to their neighbors, by which whole layers of a heterogeneous
graph are drawn.

Hu et al. 2020, *Heterogeneous graph transformer*, WWW, section 3.3, algorithms 1 and 2; PyG's
``HGTLoader``. A node t that is taken gives each of its edges of one type the share that the edge
has of all of them, and a node that is not taken yet has what all edges to it were given, of every
type and in every layer: its budget B. A layer of n nodes of a type is n successive draws without
replacement among those that have a budget, in proportion to its square: the next one is v with
probability B_v^2 / (the sum of B^2 over those not yet taken)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import IntLike, as_kernel_array, inlined, kernel
from asterism_graphkit.operators import layers
from asterism_graphkit.random.successive import neumaier_add
from asterism_graphkit.relabel.relabel import Relabeling

F64 = NDArray[np.float64]
Ids = NDArray[np.int64]


@inlined
def _weight(weights: NDArray[np.float32], e: IntLike) -> float:
    """Of an edge; without weights all are 1."""
    return np.float64(weights[e]) if weights.shape[0] > 0 else 1.0


@kernel
def _edge_shares(
    indptr: NDArray[np.int64], types: NDArray[np.int32], weights: NDArray[np.float32], out: F64
) -> None:
    for row in range(indptr.shape[0] - 1):
        start, end = indptr[row], indptr[row + 1]
        while start < end:
            stop, total, compensation = start, 0.0, 0.0
            while stop < end and types[stop] == types[start]:
                total, compensation = neumaier_add(total, compensation, _weight(weights, stop))
                stop += 1
            total += compensation
            for e in range(start, stop):
                out[e] = _weight(weights, e) / total if total > 0.0 else 0.0
            start = stop


def edge_shares(
    indptr: NDArray[np.int64], types: NDArray[np.int32], weights: NDArray[np.float32] | None
) -> F64:
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
    _edge_shares(
        as_kernel_array(indptr),
        as_kernel_array(types),
        as_kernel_array(np.zeros(0, np.float32) if weights is None else weights),
        out,
    )
    return out


@kernel
def _add_budgets(local_ids: NDArray[np.int32], amounts: F64, high: F64, low: F64) -> None:
    for e in range(local_ids.shape[0]):
        c = local_ids[e]
        high[c], low[c] = neumaier_add(high[c], low[c], amounts[e])


class BudgetTable:
    """The nodes of one type that a sample has met: which are taken, and what the others were given.

    Parameters
    ----------
    relabeling : Relabeling
        A new one; nodes are numbered as they are met.
    """

    def __init__(self, relabeling: Relabeling) -> None:
        self._relabeling = relabeling
        self._high, self._low = np.zeros(0, np.float64), np.zeros(0, np.float64)
        self._free = np.zeros(0, np.bool_)
        self._sampled: list[Ids] = []
        """The numbers of nodes, as they were taken."""

    @property
    def sampled_ids(self) -> Ids:
        """int64[n]: the ids of the nodes that are taken, in that order."""
        local_ids: Ids = np.concatenate([np.zeros(0, np.int64), *self._sampled])
        ids: Ids = self._relabeling.ids[local_ids]
        return ids

    def add_seeds(self, ids: Ids) -> NDArray[np.int32]:
        """Take the seeds, before anything else; gives the place of each among ``sampled_ids``, -1
        for -1. int32[m].
        """
        local_ids = self._relabeling.assign(ids)
        self._grow()
        self._set_sampled(np.arange(len(self._relabeling), dtype=np.int64))
        return local_ids

    def add_budgets(self, ids: Ids, amounts: F64) -> None:
        """Add what edges give to the nodes that they lead to, in the order of the edges.

        Parameters
        ----------
        ids : int64[edges]
            The far end of each.
        amounts : float64[edges]
            From `edge_shares`.
        """
        local_ids = self._relabeling.assign(ids)
        self._grow()
        _add_budgets(as_kernel_array(local_ids), as_kernel_array(amounts), self._high, self._low)

    def budgets(self) -> F64:
        """float64[met]: the budget of each node by number; 0 of one that is taken, for it is not
        drawn again.
        """
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
        node_count = len(self._relabeling)
        candidates, _ = layers.draw(
            key,
            np.array([0, node_count], np.int64),
            self.budgets() ** 2,
            min(count, node_count),
            replace=False,
        )
        local_ids = candidates[candidates >= 0]
        self._set_sampled(local_ids)
        return self._relabeling.ids[local_ids]

    def _set_sampled(self, local_ids: Ids) -> None:
        self._free[local_ids] = False
        self._sampled.append(local_ids)

    def _grow(self) -> None:
        """Room for nodes that were met for the first time."""
        new_count = len(self._relabeling) - self._free.size
        if new_count:
            self._high, self._low = (
                np.concatenate([sums, np.zeros(new_count)]) for sums in (self._high, self._low)
            )
            self._free = np.concatenate([self._free, np.ones(new_count, np.bool_)])
