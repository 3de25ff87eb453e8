"""Stable external sort of scratch rows by an integer key, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asterism.export.graph_source import Ids
from asterism.export.run_state import ExportRun
from asterism.export.scratch_files import Spool
from asterism_graphkit.random.partition_choice import group_by_key

_ROW_BYTES = 28
"""Bytes per row while sorting in memory: two copies of the key, and two positions."""
_MAX_BINS = 1 << 16
_MAX_BUCKETS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bucket:
    """Rows with keys ``low .. high - 1``, in their original order."""

    keys: Spool
    positions: Spool | None
    """Original position of each row; None if rows are at their original positions."""
    low: int
    high: int


def sorted_positions(run: ExportRun, keys: Spool, low: int, high: int) -> Ids:
    """Return the positions of all rows in stable order of their keys.

    Parameters
    ----------
    run : ExportRun
        Export that provides memory limit and scratch files.
    keys : Spool
        Keys; int64, shape (n,), each in ``low .. high - 1``.
    low, high : int
        Range of the keys.

    Returns
    -------
    ndarray of int64, shape (n,)
        In memory, or in a file that is removed with the array.
    """
    bucket = _Bucket(keys=keys, positions=None, low=low, high=high)
    if _fits(run, bucket):
        return _sort_in_memory(bucket)
    order = run.allocate(keys.rows, np.int64)
    _place_bucket(run, bucket, order, 0)
    return order


def _fits(run: ExportRun, bucket: _Bucket) -> bool:
    return bucket.keys.rows * _ROW_BYTES + (bucket.high - bucket.low) * 8 <= run.memory // 4


def _sort_in_memory(bucket: _Bucket) -> Ids:
    order, _ = group_by_key(
        (bucket.keys.read() - bucket.low).astype(np.int32), bucket.high - bucket.low
    )
    return order if bucket.positions is None else bucket.positions.read()[order]


def _place_bucket(run: ExportRun, bucket: _Bucket, order: Ids, first: int) -> None:
    """Put the positions of a bucket's rows into ``order``, starting at ``first``."""
    if bucket.high - bucket.low == 1:
        # A single key, as for the edges of a hub: the rows are already in order.
        row = first
        for piece in (
            bucket.keys.pieces() if bucket.positions is None else bucket.positions.pieces()
        ):
            order[row : row + len(piece)] = (
                np.arange(row - first, row - first + len(piece))
                if bucket.positions is None
                else piece
            )
            row += len(piece)
    elif _fits(run, bucket):
        order[first : first + bucket.keys.rows] = _sort_in_memory(bucket)
    else:
        for each in _buckets(run, bucket):
            _place_bucket(run, each, order, first)
            first += each.keys.rows
            each.keys.remove()
            if each.positions is not None:
                each.positions.remove()


def _buckets(run: ExportRun, bucket: _Bucket) -> list[_Bucket]:
    """Distribute rows to buckets of key ranges that fit into memory, as far as possible.

    The keys are counted in at most 65,536 bins, so a bucket may still be too large.
    """
    width = -(-(bucket.high - bucket.low) // _MAX_BINS)
    bins = -(-(bucket.high - bucket.low) // width)
    counts = np.zeros(bins, np.int64)
    for piece in bucket.keys.pieces():
        counts += np.bincount((piece - bucket.low) // width, minlength=bins)
    cost = counts * _ROW_BYTES + width * 8
    max_cost = max(run.memory // 5, int(cost.sum()) // (_MAX_BUCKETS - 1))
    bucket_of, ends, bucket_cost = np.empty(bins, np.int32), [], 0
    for i, bin_cost in enumerate(cost.tolist()):
        # A bin that is too large gets its own bucket, which is split again.
        if i and bucket_cost + bin_cost > max_cost:
            ends.append(i)
            bucket_cost = 0
        bucket_cost += bin_cost
        bucket_of[i] = len(ends)
    ends.append(bins)
    buckets = []
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        spools = [
            Spool(
                path=run.scratch_path(),
                dtype=np.dtype(np.int64),
                piece_bytes=bucket.keys.piece_bytes,
            )
            for _ in range(2)
        ]
        buckets.append(
            _Bucket(
                keys=spools[0],
                positions=spools[1],
                low=bucket.low + begin * width,
                high=min(bucket.high, bucket.low + end * width),
            )
        )
    first = 0
    positions = None if bucket.positions is None else bucket.positions.pieces()
    for piece in bucket.keys.pieces():
        rows = np.arange(first, first + len(piece)) if positions is None else next(positions)
        order, offsets = group_by_key(bucket_of[(piece - bucket.low) // width], len(buckets))
        for target, a, b in zip(buckets, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            if b > a and target.positions is not None:
                target.keys.append(piece[order[a:b]])
                target.positions.append(rows[order[a:b]])
        first += len(piece)
    return buckets
