"""Exact search for repeated pairs in bounded memory, with buckets on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asterism.formats.chunks import Array, Ids

MAX_PAIRS_IN_MEMORY = 4_000_000
"""Largest number of pairs in memory before they are written to disk."""
BUCKET_COUNT = 128


def find_repeated_pairs(
    pairs: Iterable[tuple[Ids, Ids, Ids]], *, in_memory: int = MAX_PAIRS_IN_MEMORY
) -> Ids:
    """Return the row numbers of pairs that repeat an earlier pair.

    Parameters
    ----------
    pairs : iterable of (ndarray, ndarray, ndarray)
        Row numbers, first and second elements, each int64, shape (n,). Row numbers ascend within
        and between chunks.
    in_memory : int, default 4000000
        Largest number of pairs in memory. Beyond it, pairs go to a temporary folder, 24 bytes each.

    Returns
    -------
    ndarray of int64, shape (k,)
        Row numbers in ascending order.
    """
    with tempfile.TemporaryDirectory(prefix="asterism-pairs-") as folder:
        blocks: list[Array] = []
        size, spilled = 0, False
        for row_numbers, first_ids, second_ids in pairs:
            blocks.append(np.stack((row_numbers, first_ids, second_ids), axis=1))
            size += len(row_numbers)
            if size > in_memory:
                _append_to_buckets(Path(folder), np.concatenate(blocks))
                blocks, size, spilled = [], 0, True
        rows = np.concatenate(blocks) if blocks else np.zeros((0, 3), np.int64)
        if not spilled:
            return np.sort(_repeats_in_bucket(rows))
        _append_to_buckets(Path(folder), rows)
        repeats = [
            _repeats_in_bucket(np.fromfile(path, np.int64).reshape(-1, 3))
            for path in sorted(Path(folder).iterdir())
        ]
    return np.sort(np.concatenate(repeats))


def _append_to_buckets(folder: Path, rows: NDArray[np.int64]) -> None:
    """Append rows to the bucket of their pair."""
    hashes = (rows[:, 1].view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ (
        rows[:, 2].view(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    )
    bucket = (hashes >> np.uint64(32)) % np.uint64(BUCKET_COUNT)
    order = np.argsort(bucket, kind="stable")
    edges = np.searchsorted(bucket[order], np.arange(BUCKET_COUNT + 1, dtype=np.uint64))
    rows = rows[order]
    for i in np.flatnonzero(np.diff(edges)).tolist():
        with (folder / f"{i:05d}").open("ab") as file:
            rows[edges[i] : edges[i + 1]].tofile(file)


def _repeats_in_bucket(rows: NDArray[np.int64]) -> Ids:
    """Return the row numbers of repeated pairs in a bucket.

    Rows of a pair must be in the order of their row numbers.
    """
    order = np.lexsort((rows[:, 2], rows[:, 1]))
    pairs = rows[order, 1:]
    is_repeat = np.zeros(len(rows), np.bool_)
    is_repeat[1:] = (pairs[1:] == pairs[:-1]).all(axis=1)
    row_numbers: Ids = rows[order[is_repeat], 0]
    return row_numbers
