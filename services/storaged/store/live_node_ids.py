"""Liveness of the node ids of a type, during loads.

Sorted runs of (id, stamp) are merged as they grow. A run is made from node blocks. A stamp orders
writes; its lowest bit is 1 if the id is alive after the write. The runs of a layer at least halve
in size from old to new, so a small write never rewrites a large run. Large runs are mapped files,
not memory.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import kernel
from storaged.store.keys import BlockKey
from storaged.store.os_errors import allocate, disk_error

I64 = NDArray[np.int64]
MAPPED_BYTES = 32 << 20
"""Size in bytes from which runs are mapped files."""

_IN_FLIGHT_RANK = 0x3FFFFFFF
"""Rank of a load in flight, later than that of every committed load."""


@kernel
def merge_runs(ids_a: I64, stamps_a: I64, ids_b: I64, stamps_b: I64, ids: I64, stamps: I64) -> int:
    """Merge two sorted runs without repeated ids; of an id in both, the larger stamp wins.

    Parameters
    ----------
    ids_a, stamps_a : ndarray of int64, shape (a,)
    ids_b, stamps_b : ndarray of int64, shape (b,)
    ids, stamps : ndarray of int64, shape (>= a + b,)
        Outputs.

    Returns
    -------
    int
        Length of the merged run.
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

    def add(self, ids: I64, stamp: int, allocate_array: Callable[[int], I64]) -> None:
        ids = np.unique(ids)
        self.runs.append((ids, np.full(len(ids), stamp, np.int64)))
        while len(self.runs) > 1 and 2 * len(self.runs[-1][0]) >= len(self.runs[-2][0]):
            (ids_b, stamps_b), (ids_a, stamps_a) = self.runs.pop(), self.runs.pop()
            merged, stamps = (
                allocate_array(len(ids_a) + len(ids_b)),
                allocate_array(len(ids_a) + len(ids_b)),
            )
            n = int(merge_runs(ids_a, stamps_a, ids_b, stamps_b, merged, stamps))
            self.runs.append((merged[:n], stamps[:n]))

    def raise_stamps(self, ids: I64, best: I64) -> None:
        """Raise ``best`` to the stamp of each id if the stamp is larger."""
        for run, stamps in self.runs:
            if len(run) == 0:
                continue
            positions = np.minimum(np.searchsorted(run, ids), len(run) - 1)
            np.maximum(best, np.where(run[positions] == ids, stamps[positions], -1), out=best)


@dataclass(slots=True)
class _TypeBlocks:
    """The state of one type: blocks by load, and the layers made from them."""

    blocks: dict[int, set[BlockKey]] = field(default_factory=dict)
    committed: _Layer = field(default_factory=_Layer)
    applied: tuple[int, ...] = ()
    in_flight: dict[int, tuple[_Layer, set[BlockKey]]] = field(default_factory=dict)


class LiveIds:
    """The live ids of every type, after committed loads and one load in flight.

    Not thread-safe: the owner holds a lock.

    Parameters
    ----------
    read_block : callable
        Returns the ids of a node block, and whether it makes them alive.
    node_kind : int
        Kind of the blocks that make ids alive.
    spill : Path, optional
        Folder for large runs. By default, they stay in memory.
    """

    def __init__(
        self,
        read_block: Callable[[BlockKey], tuple[I64, bool]],
        node_kind: int,
        spill: Path | None = None,
    ) -> None:
        self._read_block, self._node_kind, self._spill = read_block, node_kind, spill
        self._types: dict[int, _TypeBlocks] = {}
        if spill is not None:
            shutil.rmtree(spill, ignore_errors=True)

    def add_blocks(self, blocks: Iterable[BlockKey]) -> None:
        """Add node blocks that were written, or found at the start."""
        for key in blocks:
            type_blocks = self._types.setdefault(key.type_id, _TypeBlocks())
            load_blocks = type_blocks.blocks.setdefault(key.load_id, set())
            # The block was written again, so results derived from its old content are void.
            if key in load_blocks:
                type_blocks.in_flight.pop(key.load_id, None)
            # A query took the load for committed before all of its blocks were here.
            if key.load_id in type_blocks.applied:
                type_blocks.applied, type_blocks.committed = (), _Layer()
            load_blocks.add(key)

    def drop_loads(self, loads: Iterable[int]) -> None:
        """Remove the blocks of loads."""
        for type_blocks in self._types.values():
            for load in loads:
                type_blocks.blocks.pop(load, None)
                type_blocks.in_flight.pop(load, None)
                if load in type_blocks.applied:
                    type_blocks.applied, type_blocks.committed = (), _Layer()

    def live_mask(
        self, type_id: int, ids: I64, load_id: int, loads: Sequence[int]
    ) -> NDArray[np.uint8]:
        """Return 1 for each id that is alive after some loads, else 0.

        Parameters
        ----------
        type_id : int
        ids : ndarray of int64, shape (n,)
        load_id : int
            Load in flight, applied after ``loads``.
        loads : sequence of int
            Committed loads, in commit order.

        Returns
        -------
        ndarray of uint8, shape (n,)
        """
        best = np.full(len(ids), -1, np.int64)
        type_blocks = self._types.get(type_id)
        if type_blocks is None:
            return np.zeros(len(ids), np.uint8)
        self._apply(type_blocks, tuple(loads))
        type_blocks.committed.raise_stamps(ids, best)
        if load_id in type_blocks.blocks and load_id not in type_blocks.applied:
            layer, read_keys = type_blocks.in_flight.setdefault(load_id, (_Layer(), set()))
            new_blocks = type_blocks.blocks[load_id] - read_keys
            self._add(layer, new_blocks, _IN_FLIGHT_RANK)
            read_keys |= new_blocks
            layer.raise_stamps(ids, best)
        mask: NDArray[np.uint8] = ((best >= 0) & (best & 1 == 1)).astype(np.uint8)
        return mask

    def deletes_nodes(self, load_id: int) -> bool:
        """Return whether a load deletes nodes."""
        return any(
            self._deletes_nodes(type_blocks, load_id) for type_blocks in self._types.values()
        )

    def revivals(self, load_id: int, loads: Sequence[int]) -> list[tuple[int, int]]:
        """Return (type, chunk) of blocks with nodes that a load revives, ascending.

        The nodes are deleted by ``loads`` or by the load itself.
        """
        type_chunks = []
        for type_id, type_blocks in self._types.items():
            chunks = {
                key.chunk
                for key in type_blocks.blocks.get(load_id, ())
                if key.kind == self._node_kind
            }
            if chunks and any(self._deletes_nodes(type_blocks, load) for load in (*loads, load_id)):
                type_chunks += [
                    (type_id, chunk)
                    for chunk in chunks
                    if len(self.revived_ids(type_id, chunk, load_id, loads))
                ]
        return sorted(type_chunks)

    def revived_ids(self, type_id: int, chunk: int, load_id: int, loads: Sequence[int]) -> I64:
        """Return the revived nodes of one type and chunk, ascending; int64, shape (n,)."""
        type_blocks = self._types.get(type_id, _TypeBlocks())
        self._apply(type_blocks, tuple(loads))
        id_arrays = [np.zeros(0, np.int64)]
        load_blocks = type_blocks.blocks.get(load_id, set())
        for key in sorted(
            key for key in load_blocks if key.chunk == chunk and key.kind == self._node_kind
        ):
            ids = np.unique(self._read_block(key)[0])
            best = np.full(len(ids), -1, np.int64)
            type_blocks.committed.raise_stamps(ids, best)
            revived = (best >= 0) & (best & 1 == 0)
            for deleted in (key for key in load_blocks if key.kind != self._node_kind):
                revived |= np.isin(ids, self._read_block(deleted)[0])
            id_arrays.append(ids[revived])
        return np.unique(np.concatenate(id_arrays))

    def _deletes_nodes(self, type_blocks: _TypeBlocks, load_id: int) -> bool:
        return any(key.kind != self._node_kind for key in type_blocks.blocks.get(load_id, ()))

    def _apply(self, type_blocks: _TypeBlocks, loads: tuple[int, ...]) -> None:
        if loads[: len(type_blocks.applied)] != type_blocks.applied:
            type_blocks.applied, type_blocks.committed = (), _Layer()
        for rank in range(len(type_blocks.applied), len(loads)):
            self._add(type_blocks.committed, type_blocks.blocks.get(loads[rank], set()), rank)
            type_blocks.in_flight.pop(loads[rank], None)
        type_blocks.applied = loads

    def _add(self, layer: _Layer, blocks: set[BlockKey], rank: int) -> None:
        for key in sorted(blocks):
            ids, is_live = self._read_block(key)
            layer.add(ids, (rank << 32 | key.chunk) << 1 | int(is_live), self._allocate)

    def _allocate(self, n: int) -> I64:
        """Return an array for ``n`` integers, in memory or in a file freed with its last view."""
        if self._spill is None or n * 8 < MAPPED_BYTES:
            return np.empty(n, np.int64)
        self._spill.mkdir(parents=True, exist_ok=True)
        try:
            with tempfile.TemporaryFile(dir=self._spill) as file:
                allocate(file, n * 8)
                return np.memmap(file, np.int64, "r+", shape=(n,)).view(np.ndarray)
        except OSError as error:
            raise disk_error(error, self._spill) from error
