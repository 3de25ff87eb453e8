"""Excluded edges that draws pass over, at nodes of many edges that are not copied.

A draw from all edges of a node that falls on an excluded edge is rejected, and the next draw of the
node's stream counts instead. Accepted draws follow the weights of the remaining edges. So do draws
without replacement: the order of all edges, without the excluded ones, is an order of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.relabel import hash_index

REJECTION_MARGIN = 16
"""Draws at a time, beyond twice the requested ones, where draws reject edges."""
_SLOT_BITS = 40


def skipped_draws(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the draws without replacement that are made in addition, for numbers of edges to skip.

    They are powers of two, so that nodes are drawn together, and less than twice the numbers.
    """
    powers: NDArray[np.int64] = 1 << np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64)
    return powers


def slot_keys(parts: NDArray[np.int32], slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one integer for each slot of a partition: int64, with the shape of ``slots``."""
    return np.asarray(parts.astype(np.int64) << _SLOT_BITS | slots)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RejectedTypeEdges:
    """The rejected edges of one type."""

    keys: NDArray[np.int64]
    """`slot_keys` of the edges, ascending: int64, shape (k,)."""
    eids: NDArray[np.int64]
    """Their edge ids, ascending: int64, shape (k,)."""
    counts: NDArray[np.int64]
    """Number of rejected edges of each node: int64, shape (nodes,)."""
    weights: NDArray[np.float64]
    """Their total weight: float64, shape (nodes,)."""

    def slots_by_part(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield each partition with rejected edges, and their slots, ascending."""
        parts = self.keys >> _SLOT_BITS
        for part in np.unique(parts).tolist():
            yield part, as_kernel_array(self.keys[parts == part] & ((1 << _SLOT_BITS) - 1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RejectedEdges:
    """Excluded edges that draws reject, and the nodes that have them."""

    indexes: Mapping[int, tuple[NDArray[np.int64], NDArray[np.uint32]]]
    """Index of the nodes of each node type, from `hash_index.build_index`."""
    edges: Mapping[int, RejectedTypeEdges]
    """Rejected edges, by edge type; the nodes are those of its local end."""

    def find_nodes(self, node_type: int, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of each node among those of its type: int64, -1 for other nodes."""
        index = self.indexes.get(node_type)
        return np.full(ids.size, -1, np.int64) if index is None else hash_index.find(ids, *index)

    def counts(self, edge_types: Sequence[int], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of rejected edges of some nodes over all edge types."""
        out = np.zeros(nodes.size, np.int64)
        for edge_type in edge_types:
            if edge_type in self.edges:
                out += self.edges[edge_type].counts[nodes]
        return out

    def weights(self, edge_types: Sequence[int], nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the total weight of the rejected edges of some nodes over all edge types."""
        out = np.zeros(nodes.size, np.float64)
        for edge_type in edge_types:
            if edge_type in self.edges:
                out += self.edges[edge_type].weights[nodes]
        return out

    def accepted_mask(
        self,
        edge_types: Sequence[int],
        parts: NDArray[np.int32],
        type_indices: NDArray[np.int32],
        slots: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Return which draws do not fall on a rejected edge.

        Parameters
        ----------
        edge_types : sequence of int
        parts : ndarray of int32, shape (m,)
            Partition of each node.
        type_indices : ndarray of int32, shape (m, n) or (0,)
            Position of each draw's edge type in ``edge_types``; empty if there is one.
        slots : ndarray of int64, shape (m, n)
            -1 for no edge, which is accepted.
        """
        accepted = np.ones(slots.shape, np.bool_)
        keys = slot_keys(parts[:, None], slots)
        for type_index, edge_type in enumerate(edge_types):
            rejected = self.edges.get(edge_type)
            if rejected is None or not rejected.keys.size:
                continue
            places = np.minimum(np.searchsorted(rejected.keys, keys), rejected.keys.size - 1)
            is_rejected = (rejected.keys[places] == keys) & (slots >= 0)
            if type_indices.size:
                is_rejected &= type_indices == type_index
            accepted &= ~is_rejected
        return accepted
