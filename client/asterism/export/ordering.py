"""Putting rows of a scratch file in order by a key, in bounded memory: a stable order as positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asterism.export.run import Run
from asterism.export.source import Ids
from asterism.export.spool import Spool
from graphkit.split import group

_ROW_BYTES = 28
"""Of a row while it is sorted in memory: its key twice, its position, its place."""
_MOST_BINS = 1 << 16
_MOST_BUCKETS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bucket:
    """Rows with keys ``low .. high - 1``, in the order in which they came."""

    keys: Spool
    at: Spool | None
    """Where each row came from; None: where it is."""
    low: int
    high: int


def order_by(run: Run, keys: Spool, low: int, high: int) -> Ids:
    """The positions of rows by key, stably.

    Parameters
    ----------
    run : Run
        Whose memory it takes.
    keys : Spool
        int64 [n], each in ``low .. high - 1``.
    low, high : int
        The range of keys.

    Returns
    -------
    int64 [n]
        In memory, or in a file that goes with the array.
    """
    whole = _Bucket(keys=keys, at=None, low=low, high=high)
    if _fits(run, whole):
        return _sorted(whole)
    order = run.blank(keys.rows, np.int64)
    _place(run, whole, order, 0)
    return order


def _fits(run: Run, bucket: _Bucket) -> bool:
    return bucket.keys.rows * _ROW_BYTES + (bucket.high - bucket.low) * 8 <= run.memory // 4


def _sorted(bucket: _Bucket) -> Ids:
    order, _ = group((bucket.keys.read() - bucket.low).astype(np.int32), bucket.high - bucket.low)
    return order if bucket.at is None else bucket.at.read()[order]


def _place(run: Run, bucket: _Bucket, order: Ids, first: int) -> None:
    """Put the positions of a bucket's rows into ``order`` from ``first`` on."""
    if bucket.high - bucket.low == 1:
        # One key: a hub's edges. They are in order as they came.
        at = first
        for piece in bucket.keys.pieces() if bucket.at is None else bucket.at.pieces():
            order[at : at + len(piece)] = np.arange(at - first, at - first + len(piece)) if bucket.at is None else piece
            at += len(piece)
    elif _fits(run, bucket):
        order[first : first + bucket.keys.rows] = _sorted(bucket)
    else:
        for each in _buckets(run, bucket):
            _place(run, each, order, first)
            first += each.keys.rows
            each.keys.drop()
            if each.at is not None:
                each.at.drop()


def _buckets(run: Run, bucket: _Bucket) -> list[_Bucket]:
    """The rows dealt to ranges of keys that hold as many as fit, as far as that can be seen at once."""
    width = -(-(bucket.high - bucket.low) // _MOST_BINS)
    bins = -(-(bucket.high - bucket.low) // width)
    counts = np.zeros(bins, np.int64)
    for piece in bucket.keys.pieces():
        counts += np.bincount((piece - bucket.low) // width, minlength=bins)
    cost = counts * _ROW_BYTES + width * 8
    most = max(run.memory // 5, int(cost.sum()) // (_MOST_BUCKETS - 1))
    bucket_of, ends, held = np.empty(bins, np.int32), [], 0
    for i, each in enumerate(cost.tolist()):
        # A bin that is too large by itself stands alone, and is dealt again.
        if i and held + each > most:
            ends.append(i)
            held = 0
        held += each
        bucket_of[i] = len(ends)
    ends.append(bins)
    made = []
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        spools = [Spool(path=run.making(), dtype=np.dtype(np.int64), piece_bytes=bucket.keys.piece_bytes) for _ in range(2)]
        made.append(_Bucket(keys=spools[0], at=spools[1], low=bucket.low + begin * width, high=min(bucket.high, bucket.low + end * width)))
    first = 0
    positions = None if bucket.at is None else bucket.at.pieces()
    for piece in bucket.keys.pieces():
        at = np.arange(first, first + len(piece)) if positions is None else next(positions)
        order, offsets = group(bucket_of[(piece - bucket.low) // width], len(made))
        for dealt, a, b in zip(made, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            if b > a and dealt.at is not None:
                dealt.keys.append(piece[order[a:b]])
                dealt.at.append(at[order[a:b]])
        first += len(piece)
    return made
