"""Sums that do not depend on order: what holds the rows of a finished export against those that were read for it.

Each row's identity and bytes are mixed to one 64-bit word; the words of a column are added up, modulo 2^64. A row that is missing,
there twice, changed, or beside the identity of another one changes the sum, but for a chance of about 2^-64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.source import Array, Ids
from graphkit.jit import kernel, settled
from graphkit.rng import mix64

_MASK = (1 << 64) - 1


@kernel
def _added(ids: NDArray[np.int64], rows: NDArray[np.uint8]) -> np.uint64:
    width = rows.shape[1]
    total = np.uint64(0)
    for i in range(ids.shape[0]):
        word = mix64(np.uint64(ids[i]) + np.uint64(0x9E3779B97F4A7C15))
        at = 0
        while at < width:
            piece = np.uint64(0)
            for k in range(min(8, width - at)):
                piece |= np.uint64(rows[i, at + k]) << np.uint64(8 * k)
            word = mix64(word ^ mix64(piece + np.uint64(at + 1)))
            at += 8
        total += mix64(word)
    return total


@kernel
def _added_words(ids: NDArray[np.int64], rows: NDArray[np.uint64]) -> np.uint64:
    """The same of rows that are whole words."""
    total = np.uint64(0)
    for i in range(ids.shape[0]):
        word = mix64(np.uint64(ids[i]) + np.uint64(0x9E3779B97F4A7C15))
        for k in range(rows.shape[1]):
            word = mix64(word ^ mix64(rows[i, k] + np.uint64(8 * k + 1)))
        total += mix64(word)
    return total


def rows_sum(ids: Ids, values: Array) -> int:
    """The sum of a column's rows, each under its stored id."""
    raw = np.ascontiguousarray(values)
    width = raw.dtype.itemsize * int(np.prod(raw.shape[1:], dtype=np.int64))
    words = width % 8 == 0
    view = raw.reshape(-1).view(np.uint64 if words else np.uint8).reshape(len(ids), width // 8 if words else width)
    return int((_added_words if words else _added)(settled(ids), settled(view)))


def ids_sum(ids: Ids, *more: Ids) -> int:
    """The sum of identities, with numbers that belong to each."""
    return rows_sum(ids, np.stack(more, axis=1) if more else np.zeros((len(ids), 0), np.uint64))


class Sums:
    """Sums under names, added to batch by batch."""

    def __init__(self) -> None:
        self._sums: dict[str, int] = {}

    def add(self, name: str, value: int) -> None:
        """Add to the sum of that name."""
        self._sums[name] = (self._sums.get(name, 0) + value) & _MASK

    def told(self) -> dict[str, Any]:
        """As a manifest holds them: hexadecimal, by name."""
        return {name: f"{value:016x}" for name, value in sorted(self._sums.items())}
