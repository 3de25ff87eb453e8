"""Address table of a host's adjacencies of one edge type, and lookup of rows in it.

A kernel call has a fixed cost of some microseconds. So one call covers all partitions of a host.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    IntLike,
    i64_at,
    inlined,
    kernel,
    prefetch_at,
    u8_at,
    u32_at,
)
from asterism_graphkit.random.rng import mix64
from asterism_graphkit.relabel.hash_index import FREE

(
    ROWS,
    LIVE,
    INDEX_IDS,
    INDEX_ROWS,
    INDEX_BITS,
    INDPTR,
    SLOTS,
    NBR,
    EID,
    WEIGHTS,
    SUMS,
    ALIAS_THRESHOLD,
    ALIAS_FRACTION,
    NARROW,
    PAIRS,
    PACKED,
    WHEN,
    ORDER,
    TIME_SUMS,
) = range(19)
"""Columns of a table with one row per partition.

They hold counts and addresses of arrays. An address is 0 if there is no such array.
"""
COLUMNS = 19
ABSENT = -1
"""Row count of a partition that this host does not hold."""
_AHEAD = 32
"""Prefetch distance in nodes."""
_S32, _LOW, _EIGHT = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(8)


class RowSpan(NamedTuple):
    """Edges of one node along an edge type.

    They are slots ``start`` to ``start + degree`` of a partition.
    """

    part: np.int64
    start: np.int64
    degree: np.int64


class RowSpans(NamedTuple):
    """Edges of m nodes along an edge type, found by `find_rows`."""

    table: NDArray[np.int64]
    """Address table, int64[parts, COLUMNS]."""
    partitions: NDArray[np.int64]
    """Partition of each node, int64[m]."""
    starts: NDArray[np.int64]
    """Slot of the first edge of each node in its partition, int64[m]."""
    degrees: NDArray[np.int64]
    """Number of edges of each node, int64[m]."""


@inlined
def prefetch_row_bounds(address: np.uint64) -> None:
    """Prefetch the start and the end of a row's edges.

    They are adjacent int64 values. For one of eight rows the second is in the next cache line.
    """
    prefetch_at(address)
    prefetch_at(address + _EIGHT)


@inlined
def unpack_pair(pair: np.uint64) -> tuple[IntLike, IntLike]:
    """Return the edge id and the neighbor of an entry of an image's ``pairs``."""
    return np.int64(pair >> _S32), np.int64(pair & _LOW)


@inlined
def part_of_node(node: np.int64, parts: np.int64, shift: np.int64, mod: bool) -> IntLike:
    """Return the partition of a node id >= 0."""
    if not mod:
        return np.int64(mix64(np.uint64(node)) % np.uint64(parts))
    return node & (parts - np.int64(1)) if shift >= 0 else node % parts


@inlined
def row_of_node(
    node: np.int64, parts: np.int64, shift: np.int64, table: NDArray[np.int64], table_row: IntLike
) -> IntLike:
    """Return the row of a node in a partition, or -1 if it has none.

    ``table_row`` is the partition's row of ``table``, int64[parts, COLUMNS].
    """
    if table[table_row, INDEX_IDS] != 0:
        ids, bits = np.uint64(table[table_row, INDEX_IDS]), table[table_row, INDEX_BITS]
        mask = (np.int64(1) << bits) - np.int64(1)
        bucket = np.int64(mix64(np.uint64(node)) >> np.uint64(np.int64(64) - bits))
        stored_id = i64_at(ids, bucket)
        while stored_id != FREE and stored_id != node:
            bucket = (bucket + 1) & mask
            stored_id = i64_at(ids, bucket)
        return (
            np.int64(u32_at(np.uint64(table[table_row, INDEX_ROWS]), bucket))
            if stored_id == node
            else np.int64(-1)
        )
    row = node >> shift if shift >= 0 else node // parts
    if row >= table[table_row, ROWS] or (
        table[table_row, LIVE] != 0 and u8_at(np.uint64(table[table_row, LIVE]), row) == 0
    ):
        return np.int64(-1)
    return row


@inlined
def find_row(
    node: np.int64, parts: np.int64, shift: np.int64, mod: bool, table: NDArray[np.int64]
) -> tuple[IntLike, IntLike]:
    """Return the partition of a node and its row there.

    The row is -1 if the node has none. The partition is -1 if this host does not hold it. A table
    with one more row than partitions ends with an overlay, which is preferred.
    """
    if node < 0:
        return np.int64(0), np.int64(-1)
    if table.shape[0] > parts:
        overlay_row = row_of_node(node, parts, shift, table, parts)
        if overlay_row >= 0:
            return parts, overlay_row
    part = part_of_node(node, parts, shift, mod)
    if table[part, ROWS] < 0:
        return np.int64(-1), np.int64(-1)
    return part, row_of_node(node, parts, shift, table, part)


@inlined
def parts_shift(parts: np.int64) -> np.int64:
    """Return log2 of the number of partitions, or -1 if it is no power of two."""
    if parts & (parts - np.int64(1)) != 0:
        return np.int64(-1)
    shift = np.int64(0)
    while np.int64(1) << shift < parts:
        shift += np.int64(1)
    return shift


@kernel
def find_rows(
    ids: NDArray[np.int64],
    parts: np.int64,
    mod: bool,
    table: NDArray[np.int64],
    partitions: NDArray[np.int64],
    starts: NDArray[np.int64],
    degrees: NDArray[np.int64],
) -> int:
    """Find the edges of nodes.

    Parameters
    ----------
    ids : int64[m]
        Node ids; -1 for no node.
    parts : int64
        P, the number of partitions.
    mod : bool
        Whether the partition of a node is its id modulo P; otherwise it follows from a hash.
    table : int64[parts, COLUMNS]
    partitions, starts, degrees : int64[m], out
        Partition of each node, slot of its first edge there, and number of its edges.

    Returns
    -------
    int
        Total number of edges, or -1 - i if this host does not hold the partition of ``ids[i]``.
    """
    shift, total, m = parts_shift(parts), np.int64(0), ids.shape[0]
    for ahead in range(m + _AHEAD):
        if ahead < m:
            part, row = find_row(ids[ahead], parts, shift, mod, table)
            if part < 0:
                return -1 - ahead
            partitions[ahead], starts[ahead] = part, row
            if row >= 0:
                prefetch_row_bounds(np.uint64(table[part, INDPTR] + 8 * row))
        i = ahead - _AHEAD
        if i >= 0:
            row, degrees[i] = starts[i], 0
            starts[i] = 0
            if row >= 0:
                indptr_address = np.uint64(table[partitions[i], INDPTR])
                starts[i] = i64_at(indptr_address, row)
                degrees[i] = i64_at(indptr_address, row + 1) - starts[i]
            total += degrees[i]
    return total  # type: ignore[return-value]  # an int64 here and an int to the caller
