"""Numbers for nodes by first appearance: what turns sampled ids into the rows of a batch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from graphkit import ranks
from graphkit.bits import stays_near
from graphkit.jit import inlined, kernel, prefetch, settled
from graphkit.rng import derive, mix64

_SMALLEST = 1 << 14
_AHEAD = 16
_KEPT, _KEPT_SLOTS = 8, 1 << 20
_DENSE = 4
"""Slots for each id at most, where ids have slots of their own."""
_LAST_TURN = (1 << 12) - 1
_TURN, _HASH, _S32, _LOW, _ONE = np.uint64(52), np.uint64(44), np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(1)


@inlined
def _hash(node: np.int64, tree: np.int32, apart: bool) -> np.uint64:
    return mix64(np.uint64(node) + mix64(np.uint64(tree))) if apart else mix64(np.uint64(node))


@kernel
def _assign(
    ids: NDArray[np.int64],
    trees: NDArray[np.int32],
    start: np.int64,
    turn: np.uint64,
    table: NDArray[np.uint64],
    node_ids: NDArray[np.int64],
    node_trees: NDArray[np.int32],
    count: NDArray[np.int64],
    out: NDArray[np.int32],
) -> int:
    """Number ids from ``start`` on until all are, or a third of the slots are taken; gives where it stopped.

    A slot is turn, some bits of the hash, and a number. One of another turn is free, so that a table need not be cleared for its next use.
    """
    mask, n, apart = np.uint64(table.shape[0] - 1), ids.shape[0], trees.shape[0] > 0
    filled, most = count[0], table.shape[0] // 3
    hashes = np.empty(_AHEAD, np.uint64)
    for i in range(start, min(start + _AHEAD, n)):
        hashes[(i - start) % _AHEAD] = _hash(ids[i], trees[i] if apart else np.int32(0), apart)
    for i in range(start, n):
        at = hashes[(i - start) % _AHEAD]
        ahead = i + _AHEAD
        if ahead < n:
            coming = _hash(ids[ahead], trees[ahead] if apart else np.int32(0), apart)
            hashes[(i - start) % _AHEAD] = coming
            prefetch(table, np.int64(coming & mask))
        node, tree = ids[i], trees[i] if apart else np.int32(0)
        if node < 0:
            out[i] = -1
            continue
        if filled >= most:
            count[0] = filled
            return int(i)
        mark = turn << _TURN | at >> _HASH << _S32
        at &= mask
        while True:
            slot = table[at]
            free, number = slot >> _TURN != turn, np.int64(slot & _LOW)
            # Of a free slot it is some number of before: there is an id of that number, too.
            same = (slot & ~_LOW == mark) & (node_ids[number] == node) & (not apart or node_trees[number] == tree)
            if free | same:
                break
            at = (at + _ONE) & mask
        # A branch on whether it is new would be mispredicted every other time: what is known is written once more.
        number = filled if free else number
        table[at] = mark | np.uint64(number)
        node_ids[number], node_trees[number] = node, tree
        filled += np.int64(free)
        out[i] = number
    count[0] = filled
    return int(n)


@kernel
def _refill(
    turn: np.uint64,
    table: NDArray[np.uint64],
    node_ids: NDArray[np.int64],
    node_trees: NDArray[np.int32],
    first: np.int64,
    count: np.int64,
    apart: bool,
) -> None:
    mask = np.uint64(table.shape[0] - 1)
    for i in range(first, count):
        at = _hash(node_ids[i], node_trees[i], apart)
        mark = turn << _TURN | at >> _HASH << _S32
        at &= mask
        while table[at] >> _TURN == turn:
            at = (at + _ONE) & mask
        table[at] = mark | np.uint64(i)


@kernel
def _number_dense(ids: NDArray[np.int64], numbers: NDArray[np.int32], nodes: NDArray[np.int64], out: NDArray[np.int32]) -> int:
    count = np.int64(0)
    for i in range(ids.shape[0]):
        node = ids[i]
        number = np.int64(numbers[node])
        if number < 0:
            number = count
            numbers[node], nodes[count] = number, node
            count += 1
        out[i] = number
    return int(count)


def numbered(ids: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Numbers of nodes by first appearance, and the nodes by number: of ids that are no less than 0.

    Returns
    -------
    numbers : int32[n]
    nodes : int64[nodes]
    """
    ids = settled(ids)
    slots = int(ids.max()) + 1 if ids.size else 0
    if slots <= _DENSE * ids.size:  # a slot for every id there may be: no hash, and nothing to compare
        nodes, out = np.empty(min(slots, ids.size), np.int64), np.empty(ids.size, np.int32)
        count = _number_dense(ids, np.full(slots, -1, np.int32), nodes, out)
        return out, nodes[:count]
    with Numbering.several(1) as (numbering,):
        numbers = numbering.assign(ids)
        return numbers, numbering.ids.copy()


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
def put_near_ends(sizes: NDArray[np.int32], first: np.int64, out: NDArray[np.int32]) -> None:
    """``first + i`` as often as ``sizes[i]`` says, one after another; ``out`` has room for two more than there are."""
    at = np.int64(0)
    for i in range(sizes.shape[0]):
        # Whether there is one, or another one, is hard to foretell: both are written, and count or do not.
        out[at] = out[at + 1] = first + np.int64(i)
        for more in range(2, sizes[i]):
            out[at + more] = first + np.int64(i)
        at += np.int64(sizes[i])


def near_ends(sizes: NDArray[np.int32], first: int, total: int) -> NDArray[np.int32]:
    """``first + i`` as often as ``sizes[i]`` says, ``total`` in all; int32[total]."""
    out = np.empty(total + 2, np.int32)
    put_near_ends(settled(sizes), np.int64(first), out)
    return out[:total]


class _Room:
    """The arrays of a numbering, used again by later ones: fresh pages cost more than filling them."""

    def __init__(self, slots: int) -> None:
        self.table = np.zeros(slots, np.uint64)
        self.ids, self.trees = np.zeros(slots // 3 + 1, np.int64), np.zeros(slots // 3 + 1, np.int32)
        self.turn = 0
        self.words, self.firsts, self.by_rank = np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.int32)
        self.used = 0
        """Words that may have bits."""

    @property
    def slots(self) -> int:
        return self.table.size

    def make_room(self, nodes: int, count: int, words: int) -> None:
        """Have room for so many nodes, of which ``count`` are there, and for so many words of bits."""
        if self.ids.size <= nodes:
            ids, trees = np.zeros(2 * nodes, np.int64), np.zeros(2 * nodes, np.int32)
            ids[:count], trees[:count] = self.ids[:count], self.trees[:count]
            self.ids, self.trees = ids, trees
        if self.by_rank.size < nodes:
            self.by_rank = np.zeros(2 * nodes, np.int32)
        if self.words.size < words:
            larger = np.zeros(2 * words, np.uint64)
            larger[: self.used] = self.words[: self.used]
            self.words, self.firsts = larger, np.zeros(2 * words, np.int32)
        self.used = max(self.used, words)

    def begin(self) -> None:
        """Forget what is in the slots and words."""
        self.words[: self.used] = 0
        self.used = 0
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
        if max(room.slots, room.ids.size) <= _KEPT_SLOTS and len(self._free) < _KEPT:
            self._free.append(room)


_rooms = _Rooms()


class Numbering:
    """Numbers the nodes that it is shown from 0 on, each once.

    A node is an id, or an id in a tree where trees are kept apart: the same id in two trees is two nodes.
    """

    def __init__(self) -> None:
        self._room = _rooms.take()
        self._count = np.zeros(1, np.int64)
        self._apart = False
        self._hashed = self._marked = 0  # nodes that are in the table, and that have their bits

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
        return self._room.trees[: len(self)] if self._apart else np.zeros(len(self), np.int32)

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
        self._apart = trees is not None
        out, ids = np.empty(ids.size, np.int32), settled(ids)
        if trees is None and self._by_rank(ids, out):
            return out
        of = settled(np.zeros(0, np.int32) if trees is None else trees)
        while 3 * len(self) >= self._room.slots:
            self._grow()
        if self._hashed < len(self):
            self._fill()
        at = self._go_on(ids, of, 0, out)
        while at < ids.size:
            self._grow()
            at = self._go_on(ids, of, at, out)
        self._hashed = len(self)
        return out

    def _by_rank(self, ids: NDArray[np.int64], out: NDArray[np.int32]) -> bool:
        """Number ids by bits where they are many for what the largest of them takes in words; whether they are."""
        room, known = self._room, len(self)
        others = settled(room.ids[self._marked : known])
        words = max((max(int(ids.max(initial=0)), int(others.max(initial=0))) >> 6) + 2, room.used)
        if not stays_near(words, ids.size):
            return False
        room.make_room(known + ids.size, known, words)
        if others.size:
            ranks.mark(others, room.words)
        ranks.assign(ids, room.words[:words], room.firsts, room.by_rank, room.ids, self._count, out)
        self._marked = len(self)
        return True

    def _fill(self) -> None:
        """Have all nodes in the table."""
        room = self._room
        _refill(np.uint64(room.turn), room.table, room.ids, room.trees, np.int64(self._hashed), np.int64(len(self)), self._apart)
        self._hashed = len(self)

    def _go_on(self, ids: NDArray[np.int64], trees: NDArray[np.int32], at: int, out: NDArray[np.int32]) -> int:
        room = self._room
        return int(_assign(ids, trees, np.int64(at), np.uint64(room.turn), room.table, room.ids, room.trees, self._count, out))

    def _grow(self) -> None:
        old, self._room = self._room, _Room(2 * self._room.slots)
        self._room.begin()
        self._room.make_room(len(self), 0, 0)
        self._room.ids[: len(self)], self._room.trees[: len(self)] = old.ids[: len(self)], old.trees[: len(self)]
        self._hashed = self._marked = 0
        self._fill()
