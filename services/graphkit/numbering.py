"""Numbers for nodes by first appearance: what turns sampled ids into the rows of a batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import inlined, kernel, settled
from graphkit.rng import derive, mix64

_FREE = -1
_SMALLEST = 1024


@inlined
def _hash(node: np.int64, tree: np.int32) -> np.uint64:
    return mix64(np.uint64(node) + mix64(np.uint64(tree)))


@kernel
def _assign(
    ids: NDArray[np.int64],
    trees: NDArray[np.int32],
    start: np.int64,
    slots: NDArray[np.int32],
    node_ids: NDArray[np.int64],
    node_trees: NDArray[np.int32],
    count: NDArray[np.int64],
    out: NDArray[np.int32],
) -> int:
    """Number ids from ``start`` on until all are, or the slots are half taken; gives where it stopped."""
    mask = np.uint64(slots.shape[0] - 1)
    for i in range(start, ids.shape[0]):
        if ids[i] < 0:
            out[i] = -1
            continue
        if 2 * count[0] >= slots.shape[0]:
            return int(i)
        tree = trees[i] if trees.shape[0] > 0 else np.int32(0)
        at = _hash(ids[i], tree) & mask
        while slots[at] != _FREE and (node_ids[slots[at]] != ids[i] or node_trees[slots[at]] != tree):
            at = (at + np.uint64(1)) & mask
        if slots[at] == _FREE:
            slots[at] = count[0]
            node_ids[count[0]], node_trees[count[0]] = ids[i], tree
            count[0] += 1
        out[i] = slots[at]
    return int(ids.shape[0])


@kernel
def _refill(slots: NDArray[np.int32], node_ids: NDArray[np.int64], node_trees: NDArray[np.int32], count: np.int64) -> None:
    mask = np.uint64(slots.shape[0] - 1)
    for i in range(count):
        at = _hash(node_ids[i], node_trees[i]) & mask
        while slots[at] != _FREE:
            at = (at + np.uint64(1)) & mask
        slots[at] = i


@kernel
def _paths(trees: NDArray[np.int32], ids: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    for i in range(ids.shape[0]):
        out[i] = np.int64(derive(mix64(np.uint64(trees[i])), np.uint64(ids[i])))


def paths(trees: NDArray[np.int32], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """A position for each (tree, node), for draws that must not depend on what else is asked; int64[n], any bits."""
    out = np.empty(ids.size, np.int64)
    _paths(settled(trees), settled(ids), out)
    return out


class Numbering:
    """Numbers the nodes that it is shown from 0 on, each once.

    A node is an id, or an id in a tree where trees are kept apart: the same id in two trees is two nodes.
    """

    def __init__(self) -> None:
        self._slots = np.full(_SMALLEST, _FREE, np.int32)
        self._ids, self._trees = np.empty(_SMALLEST // 2 + 1, np.int64), np.empty(_SMALLEST // 2 + 1, np.int32)
        self._count = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return int(self._count[0])

    @property
    def ids(self) -> NDArray[np.int64]:
        """int64[n]: the id of each node, by number."""
        return self._ids[: len(self)]

    @property
    def trees(self) -> NDArray[np.int32]:
        """int32[n]: the tree of each node, 0 where there are no trees."""
        return self._trees[: len(self)]

    def assign(self, ids: NDArray[np.int64], trees: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """The number of each node, new ones in the order in which they come.

        Parameters
        ----------
        ids : int64[n]
            -1 is no node and gets -1.
        trees : int32[n], optional

        Returns
        -------
        int32[n]
        """
        out = np.empty(ids.size, np.int32)
        ids, of = settled(ids), settled(np.zeros(0, np.int32) if trees is None else trees)
        at = int(_assign(ids, of, np.int64(0), self._slots, self._ids, self._trees, self._count, out))
        while at < ids.size:
            self._grow()
            at = int(_assign(ids, of, np.int64(at), self._slots, self._ids, self._trees, self._count, out))
        return out

    def _grow(self) -> None:
        size = 4 * self._slots.size
        self._slots = np.full(size, _FREE, np.int32)
        node_ids, node_trees = np.empty(size // 2 + 1, np.int64), np.empty(size // 2 + 1, np.int32)
        node_ids[: len(self)], node_trees[: len(self)] = self.ids, self.trees
        self._ids, self._trees = node_ids, node_trees
        _refill(self._slots, self._ids, self._trees, np.int64(len(self)))
