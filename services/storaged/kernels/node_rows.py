"""Rows of node ids, their degrees and weight sums, and the keys of positions in a request."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    f32_at,
    f64_at,
    i64_at,
    kernel,
    prefetch,
    prefetch_at,
    u8_at,
    u32_at,
)
from asterism_graphkit.random.rng import derive, derive_mixed, mix64, mix_key, node_tag
from asterism_graphkit.relabel.hash_index import FREE
from storaged.kernels.adjacency_rows import (
    EID,
    INDEX_BITS,
    INDEX_IDS,
    INDEX_ROWS,
    INDPTR,
    LIVE,
    NBR,
    ROWS,
    SUMS,
    WEIGHTS,
    prefetch_row_bounds,
)

AHEAD = 24
_EIGHTS, _FOURS = np.uint64(3), np.uint64(2)


@kernel
def dense_rows(
    ids: NDArray[np.int64],
    parts: np.int64,
    rows: np.int64,
    live: NDArray[np.uint8],
    out: NDArray[np.int64],
) -> None:
    """Find the rows of ids of a dense type in one partition.

    Parameters
    ----------
    ids : ndarray of int64, shape (n,)
        Ids of this partition; negative for no node.
    parts, rows : int64
        P, and the number of rows in this partition.
    live : ndarray of uint8, shape (rows,)
        0 for a row without a node. If empty, all rows are live.
    out : ndarray of int64, shape (n,), out
        id // parts, or -1 if that is not a live row.
    """
    shift = np.int64(-1)
    if parts & (parts - np.int64(1)) == 0:
        shift = np.int64(0)
        while np.int64(1) << shift < parts:
            shift += np.int64(1)
    for i in range(ids.shape[0]):
        row = ids[i] >> shift if shift >= 0 else ids[i] // parts
        is_live = ids[i] >= 0 and row < rows
        if is_live and live.shape[0] > 0:
            is_live = live[row] != 0
        out[i] = row if is_live else np.int64(-1)


@kernel
def locate_nodes(
    table: NDArray[np.int64],
    mod: bool,
    ids: NDArray[np.int64],
    out_parts: NDArray[np.int32],
    out_rows: NDArray[np.int64],
) -> int:
    """Find the partition and the row of each node of one type.

    Parameters
    ----------
    table : ndarray of int64, shape (P, columns)
        The first columns of `storaged.kernels.adjacency_rows`, up to ``INDEX_BITS``. A partition
        without ``INDEX_IDS`` is dense: its row i has id i * P + part.
    mod : bool
        Whether the partition is the id modulo P; otherwise it follows from mix64.
    ids : ndarray of int64, shape (n,)
        A negative id is no node and gets row -1.
    out_parts, out_rows : ndarray of int32 and of int64, shape (n,), out
        A row is -1 if there is no such node.

    Returns
    -------
    int
        A partition that owns one of the nodes and that this host does not hold, or -1 if there is
        none.
    """
    parts = np.int64(table.shape[0])
    n = ids.shape[0]
    shift = np.int64(-1)
    if parts & (parts - np.int64(1)) == 0:
        shift = np.int64(0)
        while np.int64(1) << shift < parts:
            shift += np.int64(1)
    missing, needs_search = np.int64(-1), False
    for i in range(n):
        part = ids[i] & (parts - np.int64(1))
        if not mod:
            part = np.int64(mix64(np.uint64(ids[i])) % np.uint64(parts))
        elif shift < 0:
            part = ids[i] % parts
        out_parts[i] = part
        row = np.int64(-1)
        if ids[i] >= 0:
            rows, bits = table[part, ROWS], table[part, INDEX_BITS]
            if rows < 0:
                missing = part
            elif table[part, INDEX_IDS] == 0:
                row = ids[i] >> shift if shift >= 0 else ids[i] // parts
                live = np.uint64(table[part, LIVE])
                if row >= rows or (live > 0 and u8_at(live, row) == 0):
                    row = np.int64(-1)
            else:
                # Bucket where the search below starts.
                row = np.int64(mix64(np.uint64(ids[i])) >> np.uint64(np.int64(64) - bits))
                needs_search = True
        out_rows[i] = row
    if needs_search:
        for i in range(n):
            ahead = i + AHEAD
            if ahead < n and out_rows[ahead] >= 0:
                part, slot = np.int64(out_parts[ahead]), np.uint64(out_rows[ahead])
                prefetch_at(np.uint64(table[part, INDEX_IDS]) + (slot << _EIGHTS))
                prefetch_at(np.uint64(table[part, INDEX_ROWS]) + (slot << _FOURS))
            part, bucket = np.int64(out_parts[i]), out_rows[i]
            if bucket < 0 or table[part, INDEX_IDS] == 0:
                continue
            index_ids = np.uint64(table[part, INDEX_IDS])
            mask = (np.int64(1) << table[part, INDEX_BITS]) - np.int64(1)
            stored_id = i64_at(index_ids, bucket)
            while stored_id != FREE and stored_id != ids[i]:
                bucket = (bucket + 1) & mask
                stored_id = i64_at(index_ids, bucket)
            out_rows[i] = (
                np.int64(u32_at(np.uint64(table[part, INDEX_ROWS]), bucket))
                if stored_id == ids[i]
                else np.int64(-1)
            )
    return missing  # type: ignore[return-value]  # an int64 here and an int to the caller


@kernel
def measure_nodes(
    table: NDArray[np.int64],
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Sum the edge weights of located nodes along one edge type.

    Parameters
    ----------
    table : ndarray of int64, shape (P, COLUMNS)
        Address table of `storaged.kernels.adjacency_rows`; without ``SUMS`` the result is the
        degree.
    parts, rows : ndarray of int32 and of int64, shape (m,)
        As in `locate_nodes`.
    out : ndarray of float64, shape (m,), out
        0 for a node of row -1.
    """
    n = rows.shape[0]
    for i in range(n):
        ahead = i + AHEAD
        if ahead < n and rows[ahead] >= 0:
            part, offset = parts[ahead], np.uint64(rows[ahead]) << _EIGHTS
            if table[part, SUMS] > 0:
                prefetch_at(np.uint64(table[part, SUMS]) + offset)
            else:
                prefetch_row_bounds(np.uint64(table[part, INDPTR]) + offset)
        part, row = parts[i], rows[i]
        if row < 0:
            out[i] = 0.0
        elif table[part, SUMS] > 0:
            out[i] = f64_at(np.uint64(table[part, SUMS]), row)
        else:
            indptr = np.uint64(table[part, INDPTR])
            out[i] = np.float64(i64_at(indptr, row + 1) - i64_at(indptr, row))


@kernel
def tag_keys(key: np.uint64, tags: NDArray[np.int64], out: NDArray[np.uint64]) -> None:
    """Derive the key of each tag of `node_tags`: ``out[i] = derive_mixed(key, tags[i])``.

    ``tags`` is int64[n], ``out`` is uint64[n], out.
    """
    for i in range(tags.shape[0]):
        out[i] = derive_mixed(key, np.uint64(tags[i]))


@kernel
def node_tags(
    positions: NDArray[np.int64],
    ids: NDArray[np.int64],
    places: NDArray[np.int64],
    node_type: np.int64,
    out: NDArray[np.int64],
) -> None:
    """Return the tag of each node at its position: ``out[i] = node_tag(position, id, node_type)``.

    Parameters
    ----------
    positions, ids : ndarray of int64, shape (n,)
        Position of each node in the request, and its id.
    places : ndarray of int64, shape (m,) or (0,)
        Index of each tagged node in ``positions`` and ``ids``. If empty, all of them are tagged.
    node_type : int64
    out : ndarray of int64, shape (m,), out
        Tags, any bits, for `asterism_graphkit.random.rng.derive_mixed`.
    """
    has_places = places.shape[0] > 0
    for i in range(out.shape[0]):
        place = places[i] if has_places else i
        out[i] = np.int64(node_tag(np.uint64(positions[place]), ids[place], node_type))


@kernel
def salt_keys(keys: NDArray[np.uint64], out: NDArray[np.uint64]) -> None:
    """Prepare the keys of steps for adding tags: ``out[i] = mix_key(derive(keys[i % s], i))``.

    ``keys`` is uint64[s], the key of each step of a metapath; ``out`` is uint64[n], out.
    """
    for i in range(out.shape[0]):
        out[i] = mix_key(derive(keys[i % keys.shape[0]], np.uint64(i)))


@kernel
def measure_rows(
    rows: NDArray[np.int64],
    indptr: NDArray[np.int64],
    sums: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Return the weight of each row in a union of edge types.

    Parameters
    ----------
    rows : ndarray of int64, shape (m,)
        -1 for no row: its weight is 0.
    indptr : ndarray of int64, shape (rows + 1,)
    sums : ndarray of float64, shape (rows,)
        Weight sums. If empty, the result is the degree.
    out : ndarray of float64, shape (m,), out
    """
    n = rows.shape[0]
    for i in range(n):
        if i + AHEAD < n and rows[i + AHEAD] >= 0:
            if sums.shape[0] > 0:
                prefetch(sums, rows[i + AHEAD])
            else:
                prefetch(indptr, rows[i + AHEAD])
        row = rows[i]
        if row < 0:
            out[i] = 0.0
        elif sums.shape[0] > 0:
            out[i] = sums[row]
        else:
            out[i] = np.float64(indptr[row + 1] - indptr[row])


@kernel
def copy_rows(
    addresses: NDArray[np.int64],
    edge_type: np.int32,
    rows: NDArray[np.int64],
    out_rows: NDArray[np.int64],
    cursor: NDArray[np.int64],
    out_ids: NDArray[np.int64],
    out_types: NDArray[np.int32],
    out_weights: NDArray[np.float32],
    out_eids: NDArray[np.int64],
) -> None:
    """Append whole rows of one partition's adjacency to a ragged result.

    Parameters ---------- addresses : ndarray of int64, shape (COLUMNS,)
        The partition's row of an address table (`storaged.kernels.adjacency_rows`); without
        ``WEIGHTS`` all weights are 1.
    edge_type : int32
    rows, out_rows : ndarray of int64, shape (m,)
        A row (-1: none), and the position of its node in the request.
    cursor : ndarray of int64, shape (n,), inout
        Next output index of each position.
    out_ids, out_types : ndarray of int64 and of int32, shape (k,), out
    out_weights, out_eids : ndarray of float32 and of int64, shape (k,) or (0,), out
        If empty, they are not written.
    """
    indptr, nbr, eid, weights = (
        np.uint64(addresses[INDPTR]),
        np.uint64(addresses[NBR]),
        np.uint64(addresses[EID]),
        np.uint64(addresses[WEIGHTS]),
    )
    for i in range(rows.shape[0]):
        if rows[i] < 0:
            continue
        out_pos = cursor[out_rows[i]]
        for slot in range(i64_at(indptr, rows[i]), i64_at(indptr, rows[i] + 1)):
            out_ids[out_pos] = i64_at(nbr, slot)
            out_types[out_pos] = edge_type
            if out_weights.shape[0] > 0:
                out_weights[out_pos] = f32_at(weights, slot) if weights > 0 else np.float32(1.0)
            if out_eids.shape[0] > 0:
                out_eids[out_pos] = i64_at(eid, slot)
            out_pos += 1
        cursor[out_rows[i]] = out_pos


@kernel
def copy_ragged(
    rows: NDArray[np.int64],
    out_rows: NDArray[np.int64],
    indptr: NDArray[np.int64],
    values: NDArray[np.uint8],
    width: np.int64,
    out_indptr: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Copy the values of rows of a ragged column to their positions, as bytes.

    Parameters
    ----------
    rows, out_rows : ndarray of int64, shape (m,)
        A row (-1: none), and its position.
    indptr : ndarray of int64, shape (rows + 1,)
    values : ndarray of uint8, shape (total * width,)
    width : int64
        Bytes per value.
    out_indptr : ndarray of int64, shape (n + 1,)
        First value of each position, counted in values.
    out : ndarray of uint8, shape (k * width,), out
    """
    for i in range(rows.shape[0]):
        if rows[i] >= 0:
            start, stop = indptr[rows[i]] * width, indptr[rows[i] + 1] * width
            out_pos = out_indptr[out_rows[i]] * width
            for k in range(stop - start):
                out[out_pos + k] = values[start + k]
