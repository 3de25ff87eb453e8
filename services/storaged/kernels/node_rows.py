"""Rows of node ids, their degrees and measures, and the keys of their positions in a request."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import (
    f64_at,
    i64_at,
    kernel,
    prefetch,
    prefetch_at,
    u8_at,
    u32_at,
)
from asterism_graphkit.random.rng import derive, mix64, mix_key
from asterism_graphkit.relabel.hash_index import FREE
from storaged.kernels.adjacency import prefetch_row_bounds

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
    """The rows of ids of a dense type that are placed in this part.

    Parameters
    ----------
    ids : int64[n]
        Of this part; a negative one is unknown.
    parts, rows : int64
        P, and how many rows there are here.
    live : uint8[rows]
        0 for a hole; empty: there is none.
    out : int64[n], out
        id // parts, or -1 where that is no live row.
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
    ids: NDArray[np.int64],
    parts: np.int64,
    hash_placement: bool,
    rows: NDArray[np.int64],
    dense: NDArray[np.uint8],
    live_addresses: NDArray[np.uint64],
    index_ids: NDArray[np.uint64],
    index_rows: NDArray[np.uint64],
    shifts: NDArray[np.uint64],
    out_parts: NDArray[np.int32],
    out_rows: NDArray[np.int64],
) -> int:
    """The part and the row of each node of one type.

    Parameters
    ----------
    ids : int64[n]
        A negative one is no node: it gets row -1.
    parts : int64
        P.
    hash_placement : bool
        Placement mix64, instead of mod.
    rows : int64[P]
        How many each part has; -1: it is not held here.
    dense : uint8[P]
        1: row i has id i * P + part.
    live_addresses : uint64[P]
        Of dense ones, address of uint8[rows], 0 for a hole; 0: there is none.
    index_ids, index_rows : uint64[P], uint64[P]
        Of others, addresses of an index as of `asterism_graphkit.relabel.hash_index.build_index`;
        0: it is empty.
    shifts : uint64[P]
        64 - k of an index of 2^k slots.
    out_parts, out_rows : int32[n], int64[n], out
        A row is -1 where there is no such node.

    Returns
    -------
    int
        A part that nodes live in and that is not held here; -1 where there is none.
    """
    n = ids.shape[0]
    shift = np.int64(-1)
    if parts & (parts - np.int64(1)) == 0:
        shift = np.int64(0)
        while np.int64(1) << shift < parts:
            shift += np.int64(1)
    missing, needs_search = np.int64(-1), False
    for i in range(n):
        part = ids[i] & (parts - np.int64(1))
        if hash_placement:
            part = np.int64(mix64(np.uint64(ids[i])) % np.uint64(parts))
        elif shift < 0:
            part = ids[i] % parts
        out_parts[i] = part
        row = np.int64(-1)
        if ids[i] >= 0:
            if rows[part] < 0:
                missing = part
            elif dense[part] > 0:
                row = ids[i] >> shift if shift >= 0 else ids[i] // parts
                if row >= rows[part] or (
                    live_addresses[part] > 0 and u8_at(live_addresses[part], row) == 0
                ):
                    row = np.int64(-1)
            elif index_ids[part] > 0:
                row = np.int64(
                    mix64(np.uint64(ids[i])) >> shifts[part]
                )  # where its search begins, below
                needs_search = True
        out_rows[i] = row
    if needs_search:
        for i in range(n):
            ahead = i + AHEAD
            if ahead < n and out_rows[ahead] >= 0:
                part = np.int64(out_parts[ahead])
                prefetch_at(index_ids[part] + (np.uint64(out_rows[ahead]) << _EIGHTS))
                prefetch_at(index_rows[part] + (np.uint64(out_rows[ahead]) << _FOURS))
            part, slot = np.int64(out_parts[i]), out_rows[i]
            if slot < 0 or dense[part] > 0:
                continue
            mask = (np.int64(1) << (np.int64(64) - np.int64(shifts[part]))) - np.int64(1)
            stored_id = i64_at(index_ids[part], slot)
            while stored_id != FREE and stored_id != ids[i]:
                slot = (slot + 1) & mask
                stored_id = i64_at(index_ids[part], slot)
            out_rows[i] = (
                np.int64(u32_at(index_rows[part], slot)) if stored_id == ids[i] else np.int64(-1)
            )
    return missing  # type: ignore[return-value]  # an int64 here and an int to the caller


@kernel
def measure_nodes(
    parts: NDArray[np.int32],
    rows: NDArray[np.int64],
    indptr: NDArray[np.uint64],
    sums: NDArray[np.uint64],
    out: NDArray[np.float64],
) -> None:
    """What each of some located nodes weighs in a union of edge types.

    Parameters
    ----------
    parts, rows : int32[m], int64[m]
        As of `locate_nodes`.
    indptr, sums : uint64[P], uint64[P]
        Addresses of each part's int64[rows + 1], and of float64[rows], weight sums; 0: the degree
        counts.
    out : float64[m], out
    """
    n = rows.shape[0]
    for i in range(n):
        ahead = i + AHEAD
        if ahead < n and rows[ahead] >= 0:
            part = parts[ahead]
            if sums[part] > 0:
                prefetch_at(sums[part] + (np.uint64(rows[ahead]) << _EIGHTS))
            else:
                prefetch_row_bounds(indptr[part] + (np.uint64(rows[ahead]) << _EIGHTS))
        part, row = parts[i], rows[i]
        if row < 0:
            out[i] = 0.0
        elif sums[part] > 0:
            out[i] = f64_at(sums[part], row)
        else:
            out[i] = np.float64(i64_at(indptr[part], row + 1) - i64_at(indptr[part], row))


@kernel
def position_keys(key: np.uint64, positions: NDArray[np.int64], out: NDArray[np.uint64]) -> None:
    """The key of each position of a request: ``out[i] = derive(key, positions[i])``."""
    for i in range(positions.shape[0]):
        out[i] = derive(key, np.uint64(positions[i]))


@kernel
def salt_keys(key: np.uint64, out: NDArray[np.uint64]) -> None:
    """``out[i] = salted(derive(key, i))``: what derives keys of positions from that of step i."""
    for i in range(out.shape[0]):
        out[i] = mix_key(derive(key, np.uint64(i)))


@kernel
def measure_rows(
    rows: NDArray[np.int64],
    indptr: NDArray[np.int64],
    sums: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """What each row weighs in a union of edge types.

    Parameters
    ----------
    rows : int64[m]
        -1 is no row: it weighs nothing.
    indptr : int64[rows + 1]
    sums : float64[rows]
        Weight sums; empty: the degree counts.
    out : float64[m], out
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
    rows: NDArray[np.int64],
    out_rows: NDArray[np.int64],
    cursor: NDArray[np.int64],
    indptr: NDArray[np.int64],
    nbr: NDArray[np.int64],
    eid: NDArray[np.int64],
    weights: NDArray[np.float32],
    edge_type: np.int32,
    out_ids: NDArray[np.int64],
    out_types: NDArray[np.int32],
    out_weights: NDArray[np.float32],
    out_eids: NDArray[np.int64],
) -> None:
    """Append whole rows of an adjacency to a ragged answer.

    Parameters
    ----------
    rows, out_rows : int64[m]
        A row (-1: none), and the place of its node in the request.
    cursor : int64[n], in and out
        Where the next neighbor of each place goes.
    indptr, nbr, eid : int64[rows + 1], int64[slots], int64[slots]
    weights : float32[slots]
        Empty: all 1.
    edge_type : int32
    out_ids, out_types : int64[k], int32[k], out
    out_weights, out_eids : float32[k], int64[k], out
        Empty: not wanted.
    """
    for i in range(rows.shape[0]):
        if rows[i] < 0:
            continue
        out_pos = cursor[out_rows[i]]
        for slot in range(indptr[rows[i]], indptr[rows[i] + 1]):
            out_ids[out_pos] = nbr[slot]
            out_types[out_pos] = edge_type
            if out_weights.shape[0] > 0:
                out_weights[out_pos] = weights[slot] if weights.shape[0] > 0 else np.float32(1.0)
            if out_eids.shape[0] > 0:
                out_eids[out_pos] = eid[slot]
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
    """Copy the values of rows of a ragged column to their places, as bytes.

    Parameters
    ----------
    rows, out_rows : int64[m]
        A row (-1: none), and its place.
    indptr : int64[rows + 1]
    values : uint8[total * width]
    width : int64
        Bytes of a value.
    out_indptr : int64[n + 1]
        Where each place's values begin, counted in values.
    out : uint8[k * width], out
    """
    for i in range(rows.shape[0]):
        if rows[i] >= 0:
            start, stop = indptr[rows[i]] * width, indptr[rows[i] + 1] * width
            out_pos = out_indptr[out_rows[i]] * width
            for k in range(stop - start):
                out[out_pos + k] = values[start + k]
