"""HGT sampling: sample whole layers of a heterogeneous graph by the budgets of nodes.

Hu et al. 2020, *Heterogeneous graph transformer*, WWW, section 3.3, algorithms 1 and 2; PyG's
``HGTLoader``. A sampled node t distributes, for each edge type, the mass 1 over its edges of that
type, in proportion to their weights. The budget B of a node that is not sampled yet is the sum of
what all edges to it received, over all types and layers. A layer of n nodes of a type is n
successive draws without replacement from the nodes with a budget, in proportion to its square: the
next node is v with probability B_v^2 / (the sum of B^2 over the nodes not yet sampled).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.stable_sort import ENTRIES_PER_PIECE
from asterism_graphkit.compile.jit import IntLike, as_kernel_array, inlined, kernel
from asterism_graphkit.operators import layers
from asterism_graphkit.random.successive_probabilities import neumaier_add
from asterism_graphkit.relabel.relabel import Relabeling

F64 = NDArray[np.float64]
Ids = NDArray[np.int64]


@inlined
def _weight(weights: NDArray[np.float32], e: IntLike) -> float:
    """Return the weight of an edge: 1 if there are no weights."""
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
    """Return the share that each edge has of its node's edges of the same type.

    Parameters
    ----------
    indptr : int64[rows + 1]
        Ranges of the edges of each node.
    types : int32[edges]
        Type of each edge. The edges of one node and type are adjacent.
    weights : float32[edges] or None
        None means that all weights are 1. If all edges of a node and type have weight 0, their
        shares are 0.

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
    """Visited nodes of one type: those already sampled, and the budgets of the rest.

    Parameters
    ----------
    relabeling : Relabeling
        An empty relabeling. Nodes get local ids in the order of their first visit.
    checkpoint : callable, optional
        Called at intervals of some nodes or edges. It may raise to cancel; the table is then
        unusable.
    """

    def __init__(
        self, relabeling: Relabeling, checkpoint: Callable[[], object] = lambda: None
    ) -> None:
        self._relabeling, self._checkpoint = relabeling, checkpoint
        self._high, self._low = np.zeros(0, np.float64), np.zeros(0, np.float64)
        self._free = np.zeros(0, np.bool_)
        self._sampled: list[Ids] = []
        """Local ids of the sampled nodes, in the order of sampling."""

    @property
    def sampled_ids(self) -> Ids:
        """Ids of the sampled nodes in the order of sampling; int64[n]."""
        local_ids: Ids = np.concatenate([np.zeros(0, np.int64), *self._sampled])
        ids: Ids = self._relabeling.ids[local_ids]
        return ids

    def add_seeds(self, ids: Ids) -> NDArray[np.int32]:
        """Mark the seeds as sampled; call this first.

        Returns the position of each seed in ``sampled_ids``, or -1 for an id of -1; int32[m].
        """
        local_ids = self._relabeling.assign(ids, checkpoint=self._checkpoint)
        self._grow()
        self._set_sampled(np.arange(len(self._relabeling), dtype=np.int64))
        return local_ids

    def add_budgets(self, ids: Ids, amounts: F64) -> None:
        """Add the shares of edges to the budgets of their remote ends, in the order of the edges.

        Parameters
        ----------
        ids : int64[edges]
            Remote end of each edge.
        amounts : float64[edges]
            Result of `edge_shares`.
        """
        local_ids = as_kernel_array(self._relabeling.assign(ids, checkpoint=self._checkpoint))
        amounts = as_kernel_array(amounts)
        self._grow()
        for begin in range(0, local_ids.size, ENTRIES_PER_PIECE):
            self._checkpoint()
            piece = slice(begin, begin + ENTRIES_PER_PIECE)
            _add_budgets(local_ids[piece], amounts[piece], self._high, self._low)

    def budgets(self) -> F64:
        """Return the budget of each visited node by local id; float64[visited].

        The budget of a sampled node is 0, so that it is not drawn again.
        """
        return np.where(self._free, self._high + self._low, 0.0)

    def draw(self, key: np.uint64, count: int) -> Ids:
        """Sample nodes by successive draws in proportion to squared budgets.

        Parameters
        ----------
        key : uint64
            A key that no other draw uses.
        count : int
            Number of nodes. Fewer are drawn if fewer nodes have a budget.

        Returns
        -------
        int64[n]
            Node ids in the order of the draws. A request for m < n nodes returns the first m of
            them.
        """
        node_count = len(self._relabeling)
        candidates, _ = layers.draw(
            key,
            np.array([0, node_count], np.int64),
            self.budgets() ** 2,
            min(count, node_count),
            replace=False,
            checkpoint=self._checkpoint,
        )
        local_ids = candidates[candidates >= 0]
        self._set_sampled(local_ids)
        return self._relabeling.ids[local_ids]

    def _set_sampled(self, local_ids: Ids) -> None:
        self._free[local_ids] = False
        self._sampled.append(local_ids)

    def _grow(self) -> None:
        """Extend the arrays for nodes that were visited for the first time."""
        new_count = len(self._relabeling) - self._free.size
        if new_count:
            self._high, self._low = (
                np.concatenate([sums, np.zeros(new_count)]) for sums in (self._high, self._low)
            )
            self._free = np.concatenate([self._free, np.ones(new_count, np.bool_)])
