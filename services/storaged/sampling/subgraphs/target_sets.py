"""Target nodes of induced subgraphs, and two ways to join the edges of rows with them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.stable_sort import stable_order
from asterism_graphkit.compile.jit import as_kernel_array
from storaged.kernels.induced.bitset import TargetBitset
from storaged.kernels.induced.bitset_join import groups_ascend, join_by_bitset
from storaged.kernels.induced.hash_join import (
    FILTER_BITS_PER_TARGET,
    SLOTS_PER_TARGET,
    EdgeOutputs,
    TargetNodes,
    build_hash_table,
    join_by_hash,
)
from storaged.sampling.cancellation import Checkpoint, no_checkpoint
from storaged.sampling.node_lookup import EdgeSpans
from storaged.store.image import EMPTY_I64

_MIN_WORDS, _MAX_WORDS = 1 << 10, 1 << 19
"""Bitset words that are cleared in negligible time, and that fit into a cache: 4 MiB."""
_PIECE = 1 << 18
"""Targets that are sorted or hashed between two checkpoints: some ten milliseconds."""

_NO_PLACES = np.zeros(0, np.int32)


def select_targets(
    cols: NDArray[np.int64],
    type_mask: NDArray[np.bool_] | None,
    groups: NDArray[np.int32] | None,
    checkpoint: Checkpoint = no_checkpoint,
) -> TargetNodes:
    """Return the target nodes of a request, by group.

    Parameters
    ----------
    cols : ndarray of int64, shape (c,)
        Node ids; -1 for none.
    type_mask : ndarray of bool, shape (c,), optional
        True for nodes of the type. By default, all are.
    groups : ndarray of int32, shape (c,), optional
        Group of each node. By default, all are in one.
    checkpoint : callable, optional
        Called while many nodes are sorted; may raise.

    Returns
    -------
    TargetNodes
    """
    if type_mask is None and groups is None and cols.size and cols.min() >= 0:
        return TargetNodes(
            as_kernel_array(cols), as_kernel_array(_NO_PLACES), as_kernel_array(EMPTY_I64)
        )
    places = np.flatnonzero(cols >= 0 if type_mask is None else (cols >= 0) & type_mask)
    if groups is not None and bool((np.diff(groups[places]) < 0).any()):
        places = places[stable_order([groups[places]], checkpoint, _PIECE)]
    return TargetNodes(
        ids=as_kernel_array(cols if places.size == cols.size and groups is None else cols[places]),
        places=as_kernel_array(places.astype(np.int32)),
        groups=as_kernel_array(EMPTY_I64 if groups is None else groups[places].astype(np.int64)),
    )


class EdgeSearch(Protocol):
    """Search for the edges of rows that lead to targets."""

    def find(
        self,
        state: NDArray[np.int64],
        sizes: NDArray[np.int32],
        out: EdgeOutputs,
        stop: NDArray[np.int64],
    ) -> bool:
        """Find edges, starting from ``state``.

        Returns when all edges are found, the output is full, or ``stop`` is set.

        Parameters
        ----------
        state : ndarray of int64, shape (2,)
            Input and output: the row to continue with, and the number of edges found.
        sizes : ndarray of int32, shape (rows,)
            Output: number of edges of each row. Its length is the number of rows to search.
        out : EdgeOutputs
            Output: the edges.
        stop : ndarray of int64, shape (1,)
            Stop flag; nonzero ends the search.

        Returns
        -------
        bool
            False if this search does not support the targets.
        """


class HashJoin:
    """Search with a hash table, for any ids."""

    def __init__(
        self,
        rows: EdgeSpans,
        targets: TargetNodes,
        node_groups: NDArray[np.int32],
        checkpoint: Checkpoint = no_checkpoint,
    ) -> None:
        keys = [targets.groups, targets.ids] if targets.groups.size else [targets.ids]
        order = stable_order(keys, checkpoint, _PIECE)
        places = targets.places[order] if targets.places.size else order.astype(np.int32)
        self._rows, self._node_groups = rows, node_groups
        self._targets = TargetNodes(
            as_kernel_array(targets.ids[order]), as_kernel_array(places), targets.groups
        )
        slots = 1
        while slots < SLOTS_PER_TARGET * len(order):
            slots *= 2
        words = 1
        while 64 * words < FILTER_BITS_PER_TARGET * len(order):
            words *= 2
        hash_table, bloom_words = np.empty(slots, np.int32), np.zeros(words, np.uint64)
        for begin in range(0, slots, SLOTS_PER_TARGET * _PIECE):
            hash_table[begin : begin + SLOTS_PER_TARGET * _PIECE] = -1
            checkpoint()
        entered = 0
        for begin in range(0, len(order), _PIECE):
            end = min(begin + _PIECE, len(order))
            entered += build_hash_table(
                self._targets.ids,
                targets.groups,
                np.int64(begin),
                np.int64(end),
                hash_table,
                bloom_words,
            )
            checkpoint()
        self._is_unique = entered == len(order)
        self._hash_table, self._bloom_words = (
            as_kernel_array(hash_table),
            as_kernel_array(bloom_words),
        )

    def find(
        self,
        state: NDArray[np.int64],
        sizes: NDArray[np.int32],
        out: EdgeOutputs,
        stop: NDArray[np.int64],
    ) -> bool:
        """Find edges, as specified by `EdgeSearch.find`; never returns False."""
        block = slice(0, sizes.size)
        join_by_hash(
            self._rows.spans(block),
            self._targets,
            self._node_groups[block],
            self._hash_table,
            self._bloom_words,
            self._is_unique,
            state,
            sizes,
            out,
            stop,
        )
        return True


class BitsetJoin:
    """Search with a bitset, for distinct targets with ids in a narrow range."""

    def __init__(
        self,
        rows: EdgeSpans,
        targets: TargetNodes,
        node_groups: NDArray[np.int32],
        lowest_id: int,
        word_count: int,
    ) -> None:
        self._rows, self._targets, self._node_groups = rows, targets, node_groups
        self._bitset = TargetBitset(
            np.uint64(lowest_id),
            np.zeros(word_count, np.uint64),
            np.empty(word_count, np.int32),
            np.empty(targets.ids.size, np.int32),
            np.empty(targets.ids.size, np.int32),
        )
        self._queue = np.empty(rows.partitions.size, np.int32)

    @classmethod
    def create_if_fits(
        cls, rows: EdgeSpans, targets: TargetNodes, node_groups: NDArray[np.int32]
    ) -> BitsetJoin | None:
        """Return a search, or None if a bitset would cost more memory or time than it saves."""
        if not targets.ids.size or not rows.edges:
            return None
        lowest_id, highest_id = int(targets.ids.min()), int(targets.ids.max())
        word_count = (highest_id - lowest_id + 1 >> 6) + 1
        if word_count > min(_MIN_WORDS + rows.edges, _MAX_WORDS) or not groups_ascend(
            node_groups, rows.degrees
        ):
            return None
        return cls(rows, targets, node_groups, lowest_id, word_count)

    def find(
        self,
        state: NDArray[np.int64],
        sizes: NDArray[np.int32],
        out: EdgeOutputs,
        stop: NDArray[np.int64],
    ) -> bool:
        """Find edges, as specified by `EdgeSearch.find`; return False if a target occurs twice."""
        block = slice(0, sizes.size)
        return bool(
            join_by_bitset(
                self._rows.spans(block),
                self._targets,
                self._node_groups[block],
                self._bitset,
                self._queue,
                state,
                sizes,
                out,
                stop,
            )
        )
