"""Relabel nodes by first appearance: map sampled ids to the rows of a batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array, inlined, kernel, prefetch
from asterism_graphkit.random.rng import derive, mix64
from asterism_graphkit.relabel import bitset_relabel
from asterism_graphkit.relabel.bitset import fits_in_cache

_SMALLEST = 1 << 14
_AHEAD = 16
_KEPT, _KEPT_SLOTS = 8, 1 << 20
_DENSE = 4
"""Maximum slots per id for direct addressing, where each possible id has a slot."""
_PIECE = 1 << 19
"""Ids that are relabeled between two checkpoints: about ten milliseconds."""
_LAST_TURN = (1 << 12) - 1
_TURN, _HASH, _S32, _LOW, _ONE = (
    np.uint64(52),
    np.uint64(44),
    np.uint64(32),
    np.uint64(0xFFFFFFFF),
    np.uint64(1),
)


def _no_checkpoint() -> None:
    """Do nothing: the checkpoint of work without a deadline."""


def _pieces(size: int) -> Iterator[slice]:
    """Yield slices of ``range(size)`` of about equal size, at most `_PIECE` each."""
    count = -(-size // _PIECE)
    for i in range(count):
        yield slice(size * i // count, size * (i + 1) // count)


@inlined
def _hash(node: np.int64, tree: np.int32, per_tree: bool) -> np.uint64:
    return mix64(np.uint64(node) + mix64(np.uint64(tree))) if per_tree else mix64(np.uint64(node))


@kernel
def _assign(
    ids: NDArray[np.int64],
    trees: NDArray[np.int32],
    start: np.int64,
    generation: np.uint64,
    table: NDArray[np.uint64],
    node_ids: NDArray[np.int64],
    node_trees: NDArray[np.int32],
    count: NDArray[np.int64],
    out: NDArray[np.int32],
) -> int:
    """Assign local ids from position ``start`` on, until a third of the slots is used.

    Returns the position where it stopped. A slot holds a generation, some bits of the hash, and a
    local id. A slot of another generation is free, so that a table need not be cleared for its next
    use.
    """
    mask, n, per_tree = np.uint64(table.shape[0] - 1), ids.shape[0], trees.shape[0] > 0
    filled, capacity = count[0], table.shape[0] // 3
    hashes = np.empty(_AHEAD, np.uint64)
    for i in range(start, min(start + _AHEAD, n)):
        hashes[(i - start) % _AHEAD] = _hash(
            ids[i], trees[i] if per_tree else np.int32(0), per_tree
        )
    for i in range(start, n):
        position = hashes[(i - start) % _AHEAD]
        ahead = i + _AHEAD
        if ahead < n:
            next_hash = _hash(ids[ahead], trees[ahead] if per_tree else np.int32(0), per_tree)
            hashes[(i - start) % _AHEAD] = next_hash
            prefetch(table, np.int64(next_hash & mask))
        node, tree = ids[i], trees[i] if per_tree else np.int32(0)
        if node < 0:
            out[i] = -1
            continue
        if filled >= capacity:
            count[0] = filled
            return int(i)
        tag = generation << _TURN | position >> _HASH << _S32
        position &= mask
        while True:
            slot = table[position]
            is_free, local_id = slot >> _TURN != generation, np.int64(slot & _LOW)
            # A free slot holds a local id of an earlier use. Reading ``node_ids`` there is in
            # bounds.
            is_same = (
                (slot & ~_LOW == tag)
                & (node_ids[local_id] == node)
                & (not per_tree or node_trees[local_id] == tree)
            )
            if is_free | is_same:
                break
            position = (position + _ONE) & mask
        # A branch on whether the id is new would often be mispredicted. So a known id is written
        # again.
        local_id = filled if is_free else local_id
        table[position] = tag | np.uint64(local_id)
        node_ids[local_id], node_trees[local_id] = node, tree
        filled += np.int64(is_free)
        out[i] = local_id
    count[0] = filled
    return int(n)


@kernel
def _refill(
    generation: np.uint64,
    table: NDArray[np.uint64],
    node_ids: NDArray[np.int64],
    node_trees: NDArray[np.int32],
    first: np.int64,
    count: np.int64,
    per_tree: bool,
) -> None:
    mask = np.uint64(table.shape[0] - 1)
    for i in range(first, count):
        position = _hash(node_ids[i], node_trees[i], per_tree)
        tag = generation << _TURN | position >> _HASH << _S32
        position &= mask
        while table[position] >> _TURN == generation:
            position = (position + _ONE) & mask
        table[position] = tag | np.uint64(i)


@kernel
def _number_dense(
    ids: NDArray[np.int64],
    slots: NDArray[np.int32],
    nodes: NDArray[np.int64],
    first: np.int64,
    out: NDArray[np.int32],
) -> int:
    """Assign local ids by direct addressing, and return the number of nodes.

    A slot holds the local id plus 1, or 0. Local ids are assigned from ``first`` on.
    """
    count = first
    for i in range(ids.shape[0]):
        node = ids[i]
        local_id = np.int64(slots[node]) - 1
        if local_id < 0:
            local_id = count
            nodes[count] = node
            count += 1
            slots[node] = count
        out[i] = local_id
    return int(count)


def relabel(
    id_arrays: Sequence[NDArray[np.int64]], checkpoint: Callable[[], object] = _no_checkpoint
) -> tuple[list[NDArray[np.int32]], NDArray[np.int64]]:
    """Relabel nodes by first appearance across several arrays.

    Parameters
    ----------
    id_arrays : sequence of ndarray of int64
        Ids >= 0.
    checkpoint : callable, optional
        Called at intervals of some ids. It may raise to cancel.

    Returns
    -------
    numbers : list of ndarray of int32
        Local ids for each array.
    nodes : ndarray of int64
        Node id of each local id.
    """
    arrays = [as_kernel_array(ids) for ids in id_arrays]
    size = sum(ids.size for ids in arrays)
    slot_count = max((int(ids.max(initial=-1)) + 1 for ids in arrays), default=0)
    numbers = []
    if slot_count > _DENSE * size:
        with Relabeling.pooled(1) as (relabeling,):
            for ids in arrays:
                numbers.append(relabeling.assign(ids, checkpoint=checkpoint))
                checkpoint()
            return numbers, relabeling.ids.copy()
    # Direct addressing: a slot for every possible id, no hash and no comparisons.
    slots, nodes = np.zeros(slot_count, np.int32), np.empty(min(slot_count, size), np.int64)
    count = 0
    for ids in arrays:
        out = np.empty(ids.size, np.int32)
        for piece in _pieces(ids.size):
            count = _number_dense(ids[piece], slots, nodes, np.int64(count), out[piece])
            checkpoint()
        numbers.append(out)
    return numbers, nodes[:count]


@kernel
def _tree_positions(
    trees: NDArray[np.int32], ids: NDArray[np.int64], out: NDArray[np.int64]
) -> None:
    for i in range(ids.shape[0]):
        out[i] = np.int64(derive(mix64(np.uint64(trees[i])), np.uint64(ids[i])))


def tree_positions(trees: NDArray[np.int32], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a position for each (tree, node); int64[n], any bits.

    It keys draws that must not depend on the rest of the request.
    """
    out = np.empty(ids.size, np.int64)
    _tree_positions(as_kernel_array(trees), as_kernel_array(ids), out)
    return out


@kernel
def write_repeated_indices(
    sizes: NDArray[np.int32], first: np.int64, out: NDArray[np.int32]
) -> None:
    """Write ``first + i`` repeated ``sizes[i]`` times for each i.

    Parameters
    ----------
    sizes : int32[n]
    first : int64
    out : int32[sum of sizes + 2], out
        Has two extra elements as scratch space.
    """
    position = np.int64(0)
    for i in range(sizes.shape[0]):
        # A branch on a size of 0 or 1 would be hard to predict. So two values are always written,
        # and the position advances by the size.
        out[position] = out[position + 1] = first + np.int64(i)
        for k in range(2, sizes[i]):
            out[position + k] = first + np.int64(i)
        position += np.int64(sizes[i])


def repeat_indices(sizes: NDArray[np.int32], first: int, total: int) -> NDArray[np.int32]:
    """Return ``first + i`` repeated ``sizes[i]`` times for each i; int32[total]."""
    out = np.empty(total + 2, np.int32)
    write_repeated_indices(as_kernel_array(sizes), np.int64(first), out)
    return out[:total]


class _Buffers:
    """Arrays of a relabeling, reused by later ones.

    Touching new pages costs more than filling old ones.
    """

    def __init__(self, slots: int) -> None:
        self.table = np.zeros(slots, np.uint64)
        self.ids, self.trees = (
            np.zeros(slots // 3 + 1, np.int64),
            np.zeros(slots // 3 + 1, np.int32),
        )
        self.generation = 0
        self.words, self.word_ranks, self.by_rank = (
            np.zeros(0, np.uint64),
            np.zeros(0, np.int32),
            np.zeros(0, np.int32),
        )
        self.used = 0
        """Number of words that may have set bits."""

    @property
    def slots(self) -> int:
        return self.table.size

    def reserve(self, nodes: int, count: int, words: int) -> None:
        """Reserve capacity for ``nodes`` nodes and ``words`` words of bits.

        The first ``count`` nodes are kept.
        """
        if self.ids.size <= nodes:
            ids, trees = np.zeros(2 * nodes, np.int64), np.zeros(2 * nodes, np.int32)
            ids[:count], trees[:count] = self.ids[:count], self.trees[:count]
            self.ids, self.trees = ids, trees
        if self.by_rank.size < nodes:
            self.by_rank = np.zeros(2 * nodes, np.int32)
        if self.words.size < words:
            larger = np.zeros(2 * words, np.uint64)
            larger[: self.used] = self.words[: self.used]
            self.words, self.word_ranks = larger, np.zeros(2 * words, np.int32)
        self.used = max(self.used, words)

    def reset(self) -> None:
        """Discard the content of slots and words."""
        self.words[: self.used] = 0
        self.used = 0
        if self.generation == _LAST_TURN:
            self.table.fill(0)
            self.generation = 0
        self.generation += 1


class _BufferPool(threading.local):
    """Free buffers of this thread."""

    def __init__(self) -> None:
        self._free: list[_Buffers] = []

    def acquire(self) -> _Buffers:
        """Return empty buffers, reused if possible."""
        buffers = self._free.pop() if self._free else _Buffers(_SMALLEST)
        buffers.reset()
        return buffers

    def release(self, buffers: _Buffers) -> None:
        """Return buffers to the pool, unless they are large or the pool is full."""
        if max(buffers.slots, buffers.ids.size) <= _KEPT_SLOTS and len(self._free) < _KEPT:
            self._free.append(buffers)


_buffer_pool = _BufferPool()


class Relabeling:
    """Assigns local ids to nodes, from 0 on, in the order of first appearance.

    A node is an id, or an id in a tree if trees are kept apart: the same id in two trees is two
    nodes.
    """

    def __init__(self) -> None:
        self._buffers = _buffer_pool.acquire()
        self._count = np.zeros(1, np.int64)
        self._apart = False
        self._hashed_count = self._bitset_count = 0  # nodes in the table, and nodes with bits

    @classmethod
    @contextmanager
    def pooled(cls, count: int) -> Iterator[list[Relabeling]]:
        """Yield ``count`` relabelings that return their arrays to a pool after the block.

        Copy the arrays that must outlive the block.
        """
        relabelings = [cls() for _ in range(count)]
        yield relabelings
        # Not after an error: a reference to the arrays may still be in use.
        for relabeling in relabelings:
            _buffer_pool.release(relabeling._buffers)

    def __len__(self) -> int:
        return int(self._count[0])

    @property
    def ids(self) -> NDArray[np.int64]:
        """Node id of each local id; int64[n]."""
        return self._buffers.ids[: len(self)]

    @property
    def trees(self) -> NDArray[np.int32]:
        """Tree of each node; 0 if there are no trees; int32[n]."""
        return self._buffers.trees[: len(self)] if self._apart else np.zeros(len(self), np.int32)

    def assign(
        self,
        ids: NDArray[np.int64],
        trees: NDArray[np.int32] | None = None,
        *,
        checkpoint: Callable[[], object] = _no_checkpoint,
    ) -> NDArray[np.int32]:
        """Return the local id of each node, numbering new nodes in the order in which they come.

        Parameters
        ----------
        ids : int64[n]
            An id of -1 is no node and gets -1.
        trees : int32[n], optional
            Tree of each node. Either all calls pass trees or none does.
        checkpoint : callable, optional
            Called at intervals of some ids. It may raise to cancel; the relabeling is then
            unusable.

        Returns
        -------
        int32[n]
        """
        self._apart = trees is not None
        out, ids = np.empty(ids.size, np.int32), as_kernel_array(ids)
        tree_ids = as_kernel_array(np.zeros(0, np.int32) if trees is None else trees)
        if ids.size <= _PIECE:
            self._assign_piece(ids, tree_ids, out, checkpoint)
            return out
        for piece in _pieces(ids.size):
            checkpoint()
            self._assign_piece(ids[piece], tree_ids[piece], out[piece], checkpoint)
        return out

    def _assign_piece(
        self,
        ids: NDArray[np.int64],
        trees: NDArray[np.int32],
        out: NDArray[np.int32],
        checkpoint: Callable[[], object],
    ) -> None:
        """Assign local ids to at most `_PIECE` ids."""
        if not self._apart and self._assign_by_rank(ids, out):
            return
        while 3 * len(self) >= self._buffers.slots:
            self._grow(checkpoint)
        if self._hashed_count < len(self):
            self._fill(checkpoint)
        position = self._assign_by_hash(ids, trees, 0, out)
        while position < ids.size:
            self._grow(checkpoint)
            position = self._assign_by_hash(ids, trees, position, out)
        self._hashed_count = len(self)

    def _assign_by_rank(self, ids: NDArray[np.int64], out: NDArray[np.int32]) -> bool:
        """Assign local ids by bitset ranks, and return whether that was worthwhile.

        It is if the ids are many compared with the words that the largest id needs.
        """
        buffers, node_count = self._buffers, len(self)
        unmarked_ids = as_kernel_array(buffers.ids[self._bitset_count : node_count])
        word_count = max(
            (max(int(ids.max(initial=0)), int(unmarked_ids.max(initial=0))) >> 6) + 2, buffers.used
        )
        if not fits_in_cache(word_count, ids.size):
            return False
        buffers.reserve(node_count + ids.size, node_count, word_count)
        if unmarked_ids.size:
            bitset_relabel.set_bits(unmarked_ids, buffers.words)
        bitset_relabel.assign(
            ids,
            buffers.words[:word_count],
            buffers.word_ranks,
            buffers.by_rank,
            buffers.ids,
            self._count,
            out,
        )
        self._bitset_count = len(self)
        return True

    def _fill(self, checkpoint: Callable[[], object]) -> None:
        """Insert all nodes that are missing from the table."""
        buffers = self._buffers
        while self._hashed_count < len(self):
            end = min(self._hashed_count + _PIECE, len(self))
            _refill(
                np.uint64(buffers.generation),
                buffers.table,
                buffers.ids,
                buffers.trees,
                np.int64(self._hashed_count),
                np.int64(end),
                self._apart,
            )
            self._hashed_count = end
            if end < len(self):
                checkpoint()

    def _assign_by_hash(
        self, ids: NDArray[np.int64], trees: NDArray[np.int32], start: int, out: NDArray[np.int32]
    ) -> int:
        buffers = self._buffers
        return int(
            _assign(
                ids,
                trees,
                np.int64(start),
                np.uint64(buffers.generation),
                buffers.table,
                buffers.ids,
                buffers.trees,
                self._count,
                out,
            )
        )

    def _grow(self, checkpoint: Callable[[], object]) -> None:
        old_buffers, self._buffers = self._buffers, _Buffers(2 * self._buffers.slots)
        self._buffers.reset()
        self._buffers.reserve(len(self), 0, 0)
        self._buffers.ids[: len(self)], self._buffers.trees[: len(self)] = (
            old_buffers.ids[: len(self)],
            old_buffers.trees[: len(self)],
        )
        self._hashed_count = self._bitset_count = 0
        self._fill(checkpoint)
