"""Sort many entries by several keys, and number distinct ids, in pieces that can be cancelled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Order = NDArray[np.int64]
ENTRIES_PER_PIECE = 1 << 18
"""Default number of entries per sort: about ten milliseconds of work."""
_SAMPLE = 1024
"""Number of entries from which the splitters are sampled."""
_SPLITTERS = 128


def stable_order(
    keys: Sequence[NDArray[Any]],
    checkpoint: Callable[[], object],
    max_entries: int = ENTRIES_PER_PIECE,
) -> Order:
    """Return the indices that sort entries by ``keys``, the most important key first.

    The order is that of ``numpy.lexsort``: entries with equal keys keep their order. More than
    ``max_entries`` entries are distributed by splitters of the first key (sample sort), and each
    bucket is sorted separately. Entries that equal a splitter are sorted by the next key.

    Parameters
    ----------
    keys : sequence of ndarray, shape (n,)
        At least one key, without NaN.
    checkpoint : callable
        Called at least once for every ``max_entries`` entries that are moved. It may raise to
        cancel the sort.
    max_entries : int, optional
        Number of entries that are sorted in one call of NumPy, at least 2.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    if keys[0].size <= max_entries:
        checkpoint()
        return np.lexsort(list(reversed(keys)))
    order = np.arange(keys[0].size, dtype=np.int64)
    segments = [(0, order.size, 0)]
    while segments:
        begin, end, key_index = segments.pop()
        if end - begin < 2 or key_index == len(keys):
            continue
        checkpoint()
        entries = order[begin:end]
        if end - begin <= max_entries:
            order[begin:end] = entries[
                np.lexsort([key[entries] for key in reversed(keys[key_index:])])
            ]
            continue
        distributed, counts = _distribute(entries, keys[key_index], checkpoint, max_entries)
        for place in range(0, entries.size, max_entries):
            checkpoint()
            entries[place : place + max_entries] = distributed[place : place + max_entries]
        bounds = begin + np.concatenate([[0], np.cumsum(counts)])
        segments += [
            (int(bounds[bucket]), int(bounds[bucket + 1]), key_index + bucket % 2)
            for bucket in range(counts.size)
        ]
    return order


def distinct(
    ids: NDArray[np.int64],
    checkpoint: Callable[[], object],
    max_entries: int = ENTRIES_PER_PIECE,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct ids in ascending order, and the index of each entry among them.

    The result is that of ``numpy.unique(ids, return_inverse=True)``.

    Parameters
    ----------
    ids : ndarray of int64, shape (n,)
    checkpoint : callable
        Called at least once for every ``max_entries`` entries. It may raise to cancel the call.
    max_entries : int, optional
        Number of entries that are processed in one call of NumPy, at least 2.

    Returns
    -------
    distinct_ids : ndarray of int64, shape (k,)
    inverse : ndarray of int64, shape (n,)
        ``ids`` is ``distinct_ids[inverse]``.
    """
    if ids.size <= max_entries:
        checkpoint()
        values, places = np.unique(ids, return_inverse=True)
        return values, places
    order = stable_order([ids], checkpoint, max_entries)
    inverse, pieces, count = np.empty(ids.size, np.int64), [], 0
    for begin in range(0, ids.size, max_entries):
        checkpoint()
        entries = order[begin : begin + max_entries]
        values = ids[entries]
        is_new = np.ones(values.size, np.bool_)
        is_new[1:] = values[1:] != values[:-1]
        is_new[0] = begin == 0 or values[0] != ids[order[begin - 1]]
        inverse[entries] = count - 1 + np.cumsum(is_new)
        pieces.append(values[is_new])
        count += pieces[-1].size
    return np.concatenate(pieces), inverse


def _distribute(
    entries: Order, key: NDArray[Any], checkpoint: Callable[[], object], max_entries: int
) -> tuple[Order, NDArray[np.int64]]:
    """Return the entries grouped by bucket, and the number of entries in each bucket.

    Bucket 2 i holds the entries between splitters i - 1 and i. Bucket 2 i + 1 holds the entries
    that equal splitter i.
    """
    sample = np.unique(key[entries[:: max(1, entries.size // _SAMPLE)]])
    splitters = sample[:: max(1, sample.size // _SPLITTERS)]
    buckets = np.empty(entries.size, np.int16)
    counts = np.zeros(2 * splitters.size + 1, np.int64)
    pieces = [
        slice(begin, min(begin + max_entries, entries.size))
        for begin in range(0, entries.size, max_entries)
    ]
    for piece in pieces:
        checkpoint()
        values = key[entries[piece]]
        buckets[piece] = np.searchsorted(splitters, values, "left")
        buckets[piece] += np.searchsorted(splitters, values, "right").astype(np.int16)
        counts += np.bincount(buckets[piece], minlength=counts.size)
    out = np.empty_like(entries)
    next_places = np.concatenate([[0], np.cumsum(counts)[:-1]])
    for piece in pieces:
        checkpoint()
        by_bucket = np.argsort(buckets[piece], kind="stable")
        piece_counts = np.bincount(buckets[piece], minlength=counts.size)
        first_in_piece = np.cumsum(piece_counts) - piece_counts
        places = np.repeat(next_places - first_in_piece, piece_counts)
        places += np.arange(by_bucket.size)
        out[places] = entries[piece][by_bucket]
        next_places += piece_counts
    return out, counts
