"""Numbers for nodes by first appearance: what turns sampled ids into the rows of a batch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import inlined, kernel, prefetch, settled
from graphkit.rng import derive, mix64

_SMALLEST = 1 << 14
_AHEAD = 16
_KEPT, _KEPT_SLOTS = 8, 1 << 20
_LAST_TURN = (1 << 31) - 1
_S32, _LOW = np.int64(32), np.int64(0xFFFFFFFF)


@inlined
def _hash(node: np.int64, tree: np.int32) -> np.uint64:
    return mix64(np.uint64(node) + mix64(np.uint64(tree)))


@kernel
def _assign(
    ids: NDArray[np.int64],
    trees: NDArray[np.int32],
    start: np.int64,
    turn: np.int64,
    table: NDArray[np.int64],
    node_ids: NDArray[np.int64],
    node_trees: NDArray[np.int32],
    count: NDArray[np.int64],
    out: NDArray[np.int32],
) -> int:
    """Number ids from ``start`` on until all are, or the slots are half taken; gives where it stopped.

    A slot is two words beside each other: an id, and turn << 32 | number. One of another turn is free, so that a table
    need not be cleared for its next use.
    """
    slots = table.shape[0] // 2
    mask = np.uint64(slots - 1)
    n = ids.shape[0]
    apart = trees.shape[0] > 0
    filled = count[0]
    for i in range(start, n):
        ahead = i + _AHEAD
        if ahead < n:
            prefetch(table, 2 * np.int64(_hash(ids[ahead], trees[ahead] if apart else np.int32(0)) & mask))
        node = ids[i]
        if node < 0:
            out[i] = -1
            continue
        if 2 * filled >= slots:
            count[0] = filled
            return int(i)
        tree = trees[i] if apart else np.int32(0)
        at = np.int64(_hash(node, tree) & mask)
        number = np.int64(-1)
        while table[2 * at + 1] >> _S32 == turn:
            if table[2 * at] == node:
                there = table[2 * at + 1] & _LOW
                if not apart or node_trees[there] == tree:
                    number = there
                    break
            at = (at + 1) & np.int64(mask)
        if number < 0:
            number = filled
            table[2 * at], table[2 * at + 1] = node, turn << _S32 | number
            node_ids[number], node_trees[number] = node, tree
            filled += 1
        out[i] = number
    count[0] = filled
    return int(n)


@kernel
def _refill(turn: np.int64, table: NDArray[np.int64], node_ids: NDArray[np.int64], node_trees: NDArray[np.int32], count: np.int64) -> None:
    mask = np.int64(table.shape[0] // 2 - 1)
    for i in range(count):
        at = np.int64(_hash(node_ids[i], node_trees[i])) & mask
        while table[2 * at + 1] >> _S32 == turn:
            at = (at + 1) & mask
        table[2 * at], table[2 * at + 1] = node_ids[i], turn << _S32 | np.int64(i)


@kernel
def _paths(trees: NDArray[np.int32], ids: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    for i in range(ids.shape[0]):
        out[i] = np.int64(derive(mix64(np.uint64(trees[i])), np.uint64(ids[i])))


def paths(trees: NDArray[np.int32], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """A position for each (tree, node), for draws that must not depend on what else is asked; int64[n], any bits."""
    out = np.empty(ids.size, np.int64)
    _paths(settled(trees), settled(ids), out)
    return out


@kernel
def _near_ends(sizes: NDArray[np.int32], first: np.int64, out: NDArray[np.int32]) -> None:
    at = np.int64(0)
    for i in range(sizes.shape[0]):
        for _ in range(sizes[i]):
            out[at] = first + np.int64(i)
            at += 1


def near_ends(sizes: NDArray[np.int32], first: int, total: int) -> NDArray[np.int32]:
    """``first + i`` as often as ``sizes[i]`` says, ``total`` in all; int32[total]."""
    out = np.empty(total, np.int32)
    _near_ends(settled(sizes), np.int64(first), out)
    return out


class _Room:
    """The arrays of a numbering, used again by later ones: fresh pages cost more than filling them."""

    def __init__(self, slots: int) -> None:
        self.table = np.zeros(2 * slots, np.int64)
        self.ids, self.trees = np.empty(slots // 2 + 1, np.int64), np.empty(slots // 2 + 1, np.int32)
        self.turn = 0

    @property
    def slots(self) -> int:
        return self.table.size // 2

    def begin(self) -> None:
        """Forget what is in the slots."""
        if self.turn == _LAST_TURN:
            self.table.fill(0)
            self.turn = 0
        self.turn += 1


class _Rooms(threading.local):
    """Rooms of this thread that nobody is in."""

    def __init__(self) -> None:
        self._free: list[_Room] = []

    def take(self) -> _Room:
        room = self._free.pop() if self._free else _Room(_SMALLEST)
        room.begin()
        return room

    def give_back(self, room: _Room) -> None:
        if room.slots <= _KEPT_SLOTS and len(self._free) < _KEPT:
            self._free.append(room)


_rooms = _Rooms()


class Numbering:
    """Numbers the nodes that it is shown from 0 on, each once.

    A node is an id, or an id in a tree where trees are kept apart: the same id in two trees is two nodes.
    """

    def __init__(self) -> None:
        self._room = _rooms.take()
        self._count = np.zeros(1, np.int64)

    @classmethod
    @contextmanager
    def several(cls, count: int) -> Iterator[list[Numbering]]:
        """That many, whose arrays are others' after the block: copy what is to stay."""
        made = [cls() for _ in range(count)]
        yield made
        for numbering in made:  # after an error they are left to the garbage collector: somebody may still look at them
            _rooms.give_back(numbering._room)

    def __len__(self) -> int:
        return int(self._count[0])

    @property
    def ids(self) -> NDArray[np.int64]:
        """int64[n]: the id of each node, by number."""
        return self._room.ids[: len(self)]

    @property
    def trees(self) -> NDArray[np.int32]:
        """int32[n]: the tree of each node, 0 where there are no trees."""
        return self._room.trees[: len(self)]

    def assign(self, ids: NDArray[np.int64], trees: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
        """The number of each node, new ones in the order in which they come.

        Parameters
        ----------
        ids : int64[n]
            -1 is no node and gets -1.
        trees : int32[n], optional
            All calls have them, or none.

        Returns
        -------
        int32[n]
        """
        out = np.empty(ids.size, np.int32)
        ids, of = settled(ids), settled(np.zeros(0, np.int32) if trees is None else trees)
        at = self._go_on(ids, of, 0, out)
        while at < ids.size:
            self._grow()
            at = self._go_on(ids, of, at, out)
        return out

    def _go_on(self, ids: NDArray[np.int64], trees: NDArray[np.int32], at: int, out: NDArray[np.int32]) -> int:
        room = self._room
        return int(_assign(ids, trees, np.int64(at), np.int64(room.turn), room.table, room.ids, room.trees, self._count, out))

    def _grow(self) -> None:
        room = _Room(4 * self._room.slots)
        room.begin()
        room.ids[: len(self)], room.trees[: len(self)] = self.ids, self.trees
        _refill(np.int64(room.turn), room.table, room.ids, room.trees, np.int64(len(self)))
        self._room = room
