"""The nodes that edges between lists are to lead to, and two ways to find which edges of some rows do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import settled
from storaged.draw.lookup import Rows
from storaged.kernel.between import SIEVE_BITS, SLOTS_EACH, between, enter
from storaged.kernel.marked import HELD, ascend, between_marked
from storaged.store.image import EMPTY_I64

_FEW_WORDS, _MOST_WORDS = 1 << 10, 1 << 19
"""Words of bits that are cleared in no time, and as many as stay near: 4 MiB."""

_NOWHERE = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Targets:
    """The nodes of one type that edges are to lead to; read-only arrays."""

    ids: NDArray[np.int64]
    places: NDArray[np.int32]
    """In the request; empty: they are all that it has, and in its order."""
    groups: NDArray[np.int64]
    """Ascending; none where all are of one."""

    @classmethod
    def of(cls, cols: NDArray[np.int64], of_type: NDArray[np.bool_] | None, groups: NDArray[np.int32] | None) -> Targets:
        """Those of a request, by group."""
        if of_type is None and groups is None and cols.size and cols.min() >= 0:
            return cls(ids=settled(cols), places=settled(_NOWHERE), groups=settled(EMPTY_I64))
        places = np.flatnonzero(cols >= 0 if of_type is None else (cols >= 0) & of_type)
        if groups is not None and bool((np.diff(groups[places]) < 0).any()):
            places = places[np.argsort(groups[places], kind="stable")]
        return cls(
            ids=settled(cols if places.size == cols.size and groups is None else cols[places]),
            places=settled(places.astype(np.int32)),
            groups=settled(EMPTY_I64 if groups is None else groups[places].astype(np.int64)),
        )


class Search(Protocol):
    """How the edges of rows that lead to targets are found."""

    def find(self, state: NDArray[np.int64], sizes: NDArray[np.int32], out: Outputs) -> bool:
        """Find edges from ``state`` on, of as many rows as ``sizes`` has, until all are found or there is no room.

        False where this is no way to find them.
        """


Outputs = tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]]
"""Room for columns, weights and edge ids."""


class Hashed:
    """By a hash table: for any ids."""

    def __init__(self, rows: Rows, targets: Targets, of: NDArray[np.int32]) -> None:
        keys = (targets.ids, targets.groups) if targets.groups.size else (targets.ids,)
        order = np.lexsort(keys)
        places = targets.places[order] if targets.places.size else order.astype(np.int32)
        self._rows, self._of = rows, of
        self._ids, self._places, self._groups = settled(targets.ids[order]), settled(places), targets.groups
        slots = 1
        while slots < SLOTS_EACH * len(order):
            slots *= 2
        words = 1
        while 64 * words < SIEVE_BITS * len(order):
            words *= 2
        entered, sieve = np.full(slots, -1, np.int32), np.zeros(words, np.uint64)
        self._once = int(enter(self._ids, self._groups, entered, sieve)) == len(order)
        self._entered, self._sieve = settled(entered), settled(sieve)

    def find(self, state: NDArray[np.int64], sizes: NDArray[np.int32], out: Outputs) -> bool:
        """As of `Search`."""
        rows, own = self._rows, slice(0, sizes.size)
        between(
            rows.table,
            rows.lines[own],
            rows.starts[own],
            rows.degrees[own],
            self._ids,
            self._entered,
            self._sieve,
            self._places,
            self._of[own],
            self._groups,
            self._once,
            state,
            sizes,
            *out,
        )
        return True


class Marked:
    """By a bit for each id: for targets that are there once and whose ids lie near each other."""

    def __init__(self, rows: Rows, targets: Targets, of: NDArray[np.int32], least: int, words: int) -> None:
        self._rows, self._targets, self._of, self._least = rows, targets, of, np.int64(least)
        self._words, self._firsts = np.zeros(words, np.uint64), np.empty(words, np.int32)
        self._touched, self._ranked = (np.empty(targets.ids.size, np.int32) for _ in range(2))
        self._slots, self._queue = np.empty(HELD, np.uint64), np.empty(rows.lines.size, np.int32)

    @classmethod
    def fit(cls, rows: Rows, targets: Targets, of: NDArray[np.int32]) -> Marked | None:
        """None where bits take more room, or longer to clear, than they are of use."""
        if not targets.ids.size or not rows.edges:
            return None
        least, most = int(targets.ids.min()), int(targets.ids.max())
        words = (most - least + 1 >> 6) + 1
        if words > min(_FEW_WORDS + rows.edges, _MOST_WORDS) or not ascend(of, rows.degrees):
            return None
        return cls(rows, targets, of, least, words)

    def find(self, state: NDArray[np.int64], sizes: NDArray[np.int32], out: Outputs) -> bool:
        """As of `Search`: False where a target is there twice."""
        rows, targets, own = self._rows, self._targets, slice(0, sizes.size)
        return bool(
            between_marked(
                rows.table,
                rows.lines[own],
                rows.starts[own],
                rows.degrees[own],
                targets.ids,
                targets.places,
                self._of[own],
                targets.groups,
                self._least,
                self._words,
                self._firsts,
                self._touched,
                self._ranked,
                self._slots,
                self._queue,
                state,
                sizes,
                *out,
            )
        )
