"""Which node ids of a type are alive: sorted runs of (id, stamp), merged as they grow, asked by loads in flight.

A run is made from node blocks; a stamp orders writes and says in its lowest bit whether the id lives after it. Runs of
one layer halve in size from old to new, so that a small write never rewrites a large run, and large runs are mapped
files, not memory.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphkit.jit import kernel
from storaged.store.disk import allocate, refusal
from storaged.store.keys import BlockKey

I64 = NDArray[np.int64]
MAPPED_BYTES = 32 << 20
"""Runs from this size on are mapped files."""

_OWN_RANK = 0x3FFFFFFF
"""A load in flight comes after every committed one."""


@kernel
def merge_runs(ids_a: I64, stamps_a: I64, ids_b: I64, stamps_b: I64, ids: I64, stamps: I64) -> int:
    """Merge two sorted runs without repeats; of an id in both, the larger stamp stays. Gives the length.

    All arrays int64; the outputs have room for both runs.
    """
    a = b = n = 0
    while a < len(ids_a) or b < len(ids_b):
        if b == len(ids_b) or (a < len(ids_a) and ids_a[a] < ids_b[b]):
            ids[n], stamps[n] = ids_a[a], stamps_a[a]
            a += 1
        elif a == len(ids_a) or ids_b[b] < ids_a[a]:
            ids[n], stamps[n] = ids_b[b], stamps_b[b]
            b += 1
        else:
            ids[n], stamps[n] = ids_a[a], max(stamps_a[a], stamps_b[b])
            a += 1
            b += 1
        n += 1
    return n


@dataclass(slots=True)
class _Layer:
    """Sorted runs, the oldest and largest first."""

    runs: list[tuple[I64, I64]] = field(default_factory=list)

    def add(self, ids: I64, stamp: int, room: Callable[[int], I64]) -> None:
        ids = np.unique(ids)
        self.runs.append((ids, np.full(len(ids), stamp, np.int64)))
        while len(self.runs) > 1 and 2 * len(self.runs[-1][0]) >= len(self.runs[-2][0]):
            (ids_b, stamps_b), (ids_a, stamps_a) = self.runs.pop(), self.runs.pop()
            merged, stamps = room(len(ids_a) + len(ids_b)), room(len(ids_a) + len(ids_b))
            n = int(merge_runs(ids_a, stamps_a, ids_b, stamps_b, merged, stamps))
            self.runs.append((merged[:n], stamps[:n]))

    def latest(self, ids: I64, best: I64) -> None:
        """Raise ``best`` to the stamp of each id where that is larger."""
        for run, stamps in self.runs:
            if len(run) == 0:
                continue
            at = np.minimum(np.searchsorted(run, ids), len(run) - 1)
            np.maximum(best, np.where(run[at] == ids, stamps[at], -1), out=best)


@dataclass(slots=True)
class _Type:
    """What is known of one type: blocks by load, and the layers made of them."""

    blocks: dict[int, set[BlockKey]] = field(default_factory=dict)
    committed: _Layer = field(default_factory=_Layer)
    applied: tuple[int, ...] = ()
    own: dict[int, tuple[_Layer, set[BlockKey]]] = field(default_factory=dict)


class Members:
    """The living ids of every type, after committed loads and one in flight. Not thread-safe: its owner locks.

    Parameters
    ----------
    read : callable
        Gives a node block's ids, and whether it brings them to life.
    births : int
        The kind of the blocks that do.
    spill : Path, optional
        A folder for large runs.
    """

    def __init__(self, read: Callable[[BlockKey], tuple[I64, bool]], births: int, spill: Path | None = None) -> None:
        self._read, self._births, self._spill = read, births, spill
        self._types: dict[int, _Type] = {}
        if spill is not None:
            shutil.rmtree(spill, ignore_errors=True)

    def note(self, blocks: Iterable[BlockKey]) -> None:
        """These node blocks were written (or found at start)."""
        for key in blocks:
            kept = self._types.setdefault(key.type_id, _Type())
            mine = kept.blocks.setdefault(key.load_id, set())
            if key in mine:  # a replay: whatever was made of the block before is void
                kept.own.pop(key.load_id, None)
            if key.load_id in kept.applied:  # it was asked about as committed before all of it was here
                kept.applied, kept.committed = (), _Layer()
            mine.add(key)

    def forget(self, loads: Iterable[int]) -> None:
        """These loads are gone."""
        for kept in self._types.values():
            for load in loads:
                kept.blocks.pop(load, None)
                kept.own.pop(load, None)
                if load in kept.applied:
                    kept.applied, kept.committed = (), _Layer()

    def alive(self, type_id: int, ids: I64, load_id: int, loads: Sequence[int]) -> NDArray[np.uint8]:
        """1 for each id that lives after ``loads``, in this order, and then load ``load_id``; uint8[n]."""
        best = np.full(len(ids), -1, np.int64)
        kept = self._types.get(type_id)
        if kept is None:
            return np.zeros(len(ids), np.uint8)
        self._apply(kept, tuple(loads))
        kept.committed.latest(ids, best)
        if load_id in kept.blocks and load_id not in kept.applied:
            layer, read = kept.own.setdefault(load_id, (_Layer(), set()))
            fresh = kept.blocks[load_id] - read
            self._add(layer, fresh, _OWN_RANK)
            read |= fresh
            layer.latest(ids, best)
        found: NDArray[np.uint8] = ((best >= 0) & (best & 1 == 1)).astype(np.uint8)
        return found

    def deletes(self, load_id: int) -> bool:
        """Whether a load deletes nodes."""
        return any(self._deleting(kept, load_id) for kept in self._types.values())

    def births(self, load_id: int, loads: Sequence[int]) -> list[tuple[int, int]]:
        """(type, chunk) where load ``load_id`` writes nodes that are deleted after ``loads``, or that it deletes; ascending."""
        found = []
        for type_id, kept in self._types.items():
            chunks = {key.chunk for key in kept.blocks.get(load_id, ()) if key.kind == self._births}
            if chunks and any(self._deleting(kept, load) for load in (*loads, load_id)):
                found += [(type_id, chunk) for chunk in chunks if len(self.born(type_id, chunk, load_id, loads))]
        return sorted(found)

    def born(self, type_id: int, chunk: int, load_id: int, loads: Sequence[int]) -> I64:
        """Those nodes of one type and chunk; int64[n], ascending."""
        kept = self._types.get(type_id, _Type())
        self._apply(kept, tuple(loads))
        found = [np.zeros(0, np.int64)]
        own = kept.blocks.get(load_id, set())
        for key in sorted(key for key in own if key.chunk == chunk and key.kind == self._births):
            ids = np.unique(self._read(key)[0])
            best = np.full(len(ids), -1, np.int64)
            kept.committed.latest(ids, best)
            back = (best >= 0) & (best & 1 == 0)
            for deleted in (key for key in own if key.kind != self._births):
                back |= np.isin(ids, self._read(deleted)[0])
            found.append(ids[back])
        return np.unique(np.concatenate(found))

    def _deleting(self, kept: _Type, load_id: int) -> bool:
        return any(key.kind != self._births for key in kept.blocks.get(load_id, ()))

    def _apply(self, kept: _Type, loads: tuple[int, ...]) -> None:
        if loads[: len(kept.applied)] != kept.applied:
            kept.applied, kept.committed = (), _Layer()
        for rank in range(len(kept.applied), len(loads)):
            self._add(kept.committed, kept.blocks.get(loads[rank], set()), rank)
            kept.own.pop(loads[rank], None)
        kept.applied = loads

    def _add(self, layer: _Layer, blocks: set[BlockKey], rank: int) -> None:
        for key in sorted(blocks):
            ids, born = self._read(key)
            layer.add(ids, (rank << 32 | key.chunk) << 1 | int(born), self._room)

    def _room(self, n: int) -> I64:
        """Space for ``n`` numbers: memory, or a file without a name that goes with its last view."""
        if self._spill is None or n * 8 < MAPPED_BYTES:
            return np.empty(n, np.int64)
        self._spill.mkdir(parents=True, exist_ok=True)
        try:
            with tempfile.TemporaryFile(dir=self._spill) as file:
                allocate(file, n * 8)
                return np.memmap(file, np.int64, "r+", shape=(n,)).view(np.ndarray)
        except OSError as error:
            raise refusal(error, self._spill) from error
