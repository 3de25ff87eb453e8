"""Order-independent checksums of rows, for comparing a graph with its export.

The id and bytes of each row are mixed into one 64-bit word. The words of a column are added modulo
2^64. A row that is missing, duplicated, changed or stored under another id changes the sum, except
with a probability of about 2^-64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.graph_source import Array, Ids
from asterism_graphkit.compile.jit import as_kernel_array, kernel
from asterism_graphkit.random.rng import mix64

_MASK = (1 << 64) - 1


@kernel
def _sum_rows(ids: NDArray[np.int64], rows: NDArray[np.uint8]) -> np.uint64:
    """Sum the hashes of rows, modulo 2^64.

    ``ids`` is int64, shape (n,); ``rows`` is uint8, shape (n, width).
    """
    width = rows.shape[1]
    total = np.uint64(0)
    for i in range(ids.shape[0]):
        row_hash = mix64(np.uint64(ids[i]) + np.uint64(0x9E3779B97F4A7C15))
        offset = 0
        while offset < width:
            chunk = np.uint64(0)
            for k in range(min(8, width - offset)):
                chunk |= np.uint64(rows[i, offset + k]) << np.uint64(8 * k)
            row_hash = mix64(row_hash ^ mix64(chunk + np.uint64(offset + 1)))
            offset += 8
        total += mix64(row_hash)
    return total


@kernel
def _sum_uint64_rows(ids: NDArray[np.int64], rows: NDArray[np.uint64]) -> np.uint64:
    """Sum rows that consist of whole 64-bit words; see `_sum_rows`."""
    total = np.uint64(0)
    for i in range(ids.shape[0]):
        row_hash = mix64(np.uint64(ids[i]) + np.uint64(0x9E3779B97F4A7C15))
        for k in range(rows.shape[1]):
            row_hash = mix64(row_hash ^ mix64(rows[i, k] + np.uint64(8 * k + 1)))
        total += mix64(row_hash)
    return total


def rows_sum(ids: Ids, values: Array) -> int:
    """Return the checksum of a column, each row mixed with its stored id."""
    raw = np.ascontiguousarray(values)
    width = raw.dtype.itemsize * int(np.prod(raw.shape[1:], dtype=np.int64))
    is_word_aligned = width % 8 == 0
    view = (
        raw.reshape(-1)
        .view(np.uint64 if is_word_aligned else np.uint8)
        .reshape(len(ids), width // 8 if is_word_aligned else width)
    )
    return int(
        (_sum_uint64_rows if is_word_aligned else _sum_rows)(
            as_kernel_array(ids), as_kernel_array(view)
        )
    )


def ids_sum(ids: Ids, *related: Ids) -> int:
    """Return the checksum of ids, each mixed with its row of ``related``."""
    return rows_sum(
        ids, np.stack(related, axis=1) if related else np.zeros((len(ids), 0), np.uint64)
    )


class Checksums:
    """Named checksums, accumulated batch by batch."""

    def __init__(self) -> None:
        self._sums: dict[str, int] = {}

    def add(self, name: str, value: int) -> None:
        """Add ``value`` to the checksum of this name, modulo 2^64."""
        self._sums[name] = (self._sums.get(name, 0) + value) & _MASK

    def to_dict(self) -> dict[str, Any]:
        """Return the checksums as hexadecimal strings by name, as a manifest holds them."""
        return {name: f"{value:016x}" for name, value in sorted(self._sums.items())}
