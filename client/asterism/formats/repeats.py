"""Repeated pairs among very many: found exactly, in bounded memory, by buckets on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asterism.formats.chunks import Array, Ids

IN_MEMORY = 4_000_000
"""Pairs that are held before they are put aside."""
BUCKETS = 128


def repeated_pairs(pairs: Iterable[tuple[Ids, Ids, Ids]], *, in_memory: int = IN_MEMORY) -> Ids:
    """The places of pairs that repeat an earlier one.

    Parameters
    ----------
    pairs : iterable of (int64[n], int64[n], int64[n])
        Places (rising from chunk to chunk and within), first and second elements.
    in_memory : int
        Pairs that are held at once; more go to a temporary folder, 24 bytes each.

    Returns
    -------
    int64[k]
        Rising.
    """
    with tempfile.TemporaryDirectory(prefix="asterism-pairs-") as folder:
        held: list[Array] = []
        size, spilled = 0, False
        for places, left, right in pairs:
            held.append(np.stack((places, left, right), axis=1))
            size += len(places)
            if size > in_memory:
                _spill(Path(folder), np.concatenate(held))
                held, size, spilled = [], 0, True
        rows = np.concatenate(held) if held else np.zeros((0, 3), np.int64)
        if not spilled:
            return np.sort(_repeated(rows))
        _spill(Path(folder), rows)
        found = [_repeated(np.fromfile(path, np.int64).reshape(-1, 3)) for path in sorted(Path(folder).iterdir())]
    return np.sort(np.concatenate(found))


def _spill(folder: Path, rows: NDArray[np.int64]) -> None:
    """Append rows to the bucket of their pair."""
    mixed = (rows[:, 1].view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ (rows[:, 2].view(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F))
    bucket = (mixed >> np.uint64(32)) % np.uint64(BUCKETS)
    order = np.argsort(bucket, kind="stable")
    edges = np.searchsorted(bucket[order], np.arange(BUCKETS + 1, dtype=np.uint64))
    rows = rows[order]
    for i in np.flatnonzero(np.diff(edges)).tolist():
        with (folder / f"{i:05d}").open("ab") as file:
            rows[edges[i] : edges[i + 1]].tofile(file)


def _repeated(rows: NDArray[np.int64]) -> Ids:
    """Places whose pair stands at an earlier place too; rows of a pair are in the order of their places."""
    order = np.lexsort((rows[:, 2], rows[:, 1]))
    pairs = rows[order, 1:]
    same = np.zeros(len(rows), np.bool_)
    same[1:] = (pairs[1:] == pairs[:-1]).all(axis=1)
    places: Ids = rows[order[same], 0]
    return places
