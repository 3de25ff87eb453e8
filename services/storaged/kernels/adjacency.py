"""A host's adjacencies of one edge type as a table of addresses, and where a node stands in it.

One call of a kernel costs some microseconds whatever it does, so one call goes over all parts of a
host."""

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
"""Columns of a table, which has a line per part: counts, and addresses of arrays, 0 where there is
none.
"""
COLUMNS = 19
ABSENT = -1
"""As a count of rows: the part is not held here."""
_AHEAD = 32
"""Nodes whose rows are asked for before they are read."""
_S32, _LOW, _EIGHT = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(8)


class RowSpan(NamedTuple):
    """The edges of one node along an edge type: slots ``start`` to ``start + degree`` of a part."""

    part: np.int64
    start: np.int64
    degree: np.int64


class RowSpans(NamedTuple):
    """The edges of m nodes along an edge type, as `find_rows` finds them."""

    table: NDArray[np.int64]
    """int64[parts, COLUMNS]."""
    partitions: NDArray[np.int64]
    """int64[m]: the part of each node."""
    starts: NDArray[np.int64]
    """int64[m]: the slot of its first edge there."""
    degrees: NDArray[np.int64]
    """int64[m]: how many edges it has."""


@inlined
def prefetch_row_bounds(address: np.uint64) -> None:
    """Ask for where a row's edges begin and end, which is told at an address and behind it: for one
    of eight rows in the next cache line.
    """
    prefetch_at(address)
    prefetch_at(address + _EIGHT)


@inlined
def unpack_pair(pair: np.uint64) -> tuple[IntLike, IntLike]:
    """The ids of an edge and of the neighbor to which it leads, as ``pairs`` of an image has
    them.
    """
    return np.int64(pair >> _S32), np.int64(pair & _LOW)


@inlined
def part_of_node(node: np.int64, parts: np.int64, shift: np.int64, mod: bool) -> IntLike:
    """The part of a node, >= 0."""
    if not mod:
        return np.int64(mix64(np.uint64(node)) % np.uint64(parts))
    return node & (parts - np.int64(1)) if shift >= 0 else node % parts


@inlined
def row_of_node(
    node: np.int64, parts: np.int64, shift: np.int64, table: NDArray[np.int64], table_row: IntLike
) -> IntLike:
    """The row of a node that lives in the part of a line, -1 where it has none."""
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
    """The part of a node and its row there, -1 where it has none; part -1 where that is not
    held.
    """
    if node < 0:
        return np.int64(0), np.int64(-1)
    part = part_of_node(node, parts, shift, mod)
    if table[part, ROWS] < 0:
        return np.int64(-1), np.int64(-1)
    return part, row_of_node(node, parts, shift, table, part)


@inlined
def parts_shift(parts: np.int64) -> np.int64:
    """log2 of the number of parts, -1 where that is no whole number."""
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
    """Where the edges of nodes are.

    Parameters
    ----------
    ids : int64[m]
        Nodes, -1 for none.
    parts : int64
    mod : bool
        How a node finds its part: by remainder, or by hash.
    table : int64[parts, COLUMNS]
    partitions, starts, degrees : int64[m], out
        The part of each node, the slot of its first edge there, and how many it has.

    Returns
    -------
    int
        How many edges there are in all; -1 - i where the part of ``ids[i]`` is not held here.
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
