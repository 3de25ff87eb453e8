"""Order-independent checksums of rows, as read from a graph and as exported.

Each row's identity and bytes are mixed to one 64-bit word; the words of a column are added up,
modulo 2^64. A row that is missing, there twice, changed, or beside the identity of another one
changes the sum, but for a chance of about 2^-64."""

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
    """The same of rows that are whole words."""
    total = np.uint64(0)
    for i in range(ids.shape[0]):
        row_hash = mix64(np.uint64(ids[i]) + np.uint64(0x9E3779B97F4A7C15))
        for k in range(rows.shape[1]):
            row_hash = mix64(row_hash ^ mix64(rows[i, k] + np.uint64(8 * k + 1)))
        total += mix64(row_hash)
    return total


def rows_sum(ids: Ids, values: Array) -> int:
    """The sum of a column's rows, each under its stored id."""
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
    """The sum of identities, with numbers that belong to each."""
    return rows_sum(
        ids, np.stack(related, axis=1) if related else np.zeros((len(ids), 0), np.uint64)
    )


class Checksums:
    """Sums under names, added to batch by batch."""

    def __init__(self) -> None:
        self._sums: dict[str, int] = {}

    def add(self, name: str, value: int) -> None:
        """Add to the sum of that name."""
        self._sums[name] = (self._sums.get(name, 0) + value) & _MASK

    def to_dict(self) -> dict[str, Any]:
        """As a manifest holds them: hexadecimal, by name."""
        return {name: f"{value:016x}" for name, value in sorted(self._sums.items())}
