"""Kernels of a build: loops over the rows of blocks and buckets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import inlined, kernel
from asterism_graphkit.random.rng import mix64

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]
U8 = NDArray[np.uint8]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

DELETED = np.float32(-1.0)
"""Weight of a record that deletes an edge; the weights of edges are >= 0."""

_RUN = 16
_TWO64 = 18446744073709551616.0
_HIGH, _LOW, _FULL = (
    np.uint64(0xFFFFFFFF00000000),
    np.uint64(0xFFFFFFFF),
    np.uint64(0xFFFFFFFFFFFFFFFF),
)


@kernel
def scatter_nodes(ids: I64, block_weights: F32, parts: np.int64, live: U8, weights: F32) -> None:
    """Mark ids of a dense type as live at row id // parts, and write their weights.

    Parameters
    ----------
    ids : int64[n]
    block_weights : float32[n] or float32[0]
        Weights of the ids. If empty, a new row gets 1 and an existing one keeps its weight.
    parts : int
    live : uint8[rows], out
    weights : float32[rows] or float32[0], out
        Empty for an unweighted type.
    """
    weighted = weights.shape[0] > 0
    for i in range(ids.shape[0]):
        row = ids[i] // parts
        if weighted:
            if block_weights.shape[0] > 0:
                weights[row] = block_weights[i]
            elif live[row] == 0:
                weights[row] = np.float32(1.0)
        live[row] = np.uint8(1)


@kernel
def fold_nodes(ids: I64, record_weights: F32, order: I64, out_ids: I64, out_weights: F32) -> int:
    """Fold records, stably sorted by id, to one row per id with the last given weight.

    A NaN weight is no weight; an id without any weight gets 1.

    Parameters
    ----------
    ids, record_weights, order : int64[n], float32[n], int64[n]
        Records in write order, and the stable order by id.
    out_ids, out_weights : int64[n], float32[n], out

    Returns
    -------
    int
        Number of rows.
    """
    rows = 0
    for k in range(order.shape[0]):
        i = order[k]
        if rows == 0 or out_ids[rows - 1] != ids[i]:
            out_ids[rows] = ids[i]
            out_weights[rows] = np.float32(1.0)
            rows += 1
        if record_weights[i] == record_weights[i]:
            out_weights[rows - 1] = record_weights[i]
    return rows


@kernel
def audit_nodes(rows: I64, block_weights: F32, image: F32, seen: U8) -> int:
    """Count the rows with a last given weight that differs from the image.

    Blocks must come in reverse write order, so that the first record seen of a row is its last
    write.

    Parameters
    ----------
    rows : int64[n]
        Rows of the block's records; negative ones are skipped.
    block_weights : float32[n]
        Weights of the records.
    image : float32[rows of the type]
    seen : uint8[rows of the type], inout

    Returns
    -------
    int
    """
    wrong = 0
    for i in range(rows.shape[0] - 1, -1, -1):
        row = rows[i]
        if row >= 0 and seen[row] == 0:
            seen[row] = np.uint8(1)
            if image[row] != block_weights[i]:
                wrong += 1
    return wrong


@kernel
def sort_by_row(
    row: U32,
    nbr: I64,
    eid: I64,
    weight: F32,
    low: np.int64,
    indptr: I64,
    out_nbr: I64,
    out_eid: I64,
    out_weight: F32,
) -> None:
    """Sort edge records by row with a stable counting sort.

    Parameters
    ----------
    row, nbr, eid, weight : uint32[n], int64[n], int64[n], float32[n]
        Records in write order; rows in low .. low + len(indptr) - 2.
    low : int
    indptr : int64[rows + 1], inout
        All zero at the start.
    out_nbr, out_eid, out_weight : like the inputs, out
    """
    rows = indptr.shape[0] - 1
    for i in range(row.shape[0]):
        indptr[np.int64(row[i]) - low + 1] += 1
    for r in range(rows):
        indptr[r + 1] += indptr[r]
    for i in range(row.shape[0]):
        local = np.int64(row[i]) - low
        slot = indptr[local]
        indptr[local] = slot + 1
        out_nbr[slot] = nbr[i]
        out_eid[slot] = eid[i]
        out_weight[slot] = weight[i]
    for r in range(rows, 0, -1):
        indptr[r] = indptr[r - 1]
    indptr[0] = 0


@inlined
def _comes_after(nbr_a: int, eid_a: int, nbr_b: int, eid_b: int, by_eid: bool) -> bool:
    return nbr_a > nbr_b or (by_eid and nbr_a == nbr_b and eid_a > eid_b)


@kernel
def sort_rows(
    indptr: I64,
    nbr: I64,
    eid: I64,
    weight: F32,
    by_eid: bool,
    spare_nbr: I64,
    spare_eid: I64,
    spare_weight: F32,
) -> None:
    """Sort each row's records by neighbor and, with ``by_eid``, by edge id; stable.

    Parameters
    ----------
    indptr : int64[rows + 1]
    nbr, eid, weight : int64[n], int64[n], float32[n], inout
    by_eid : bool
    spare_nbr, spare_eid, spare_weight : at least as long as the largest degree
        Scratch arrays for merging.

    Notes
    -----
    Insertion sort of runs of 16, then merges: at worst n log n steps. A row that is already sorted
    is not moved.
    """
    for r in range(indptr.shape[0] - 1):
        start, stop = indptr[r], indptr[r + 1]
        for low in range(start, stop, _RUN):
            for i in range(low + 1, min(low + _RUN, stop)):
                if not _comes_after(nbr[i - 1], eid[i - 1], nbr[i], eid[i], by_eid):
                    continue
                v, e, w = nbr[i], eid[i], weight[i]
                k = i
                while k > low and _comes_after(nbr[k - 1], eid[k - 1], v, e, by_eid):
                    nbr[k], eid[k], weight[k] = nbr[k - 1], eid[k - 1], weight[k - 1]
                    k -= 1
                nbr[k], eid[k], weight[k] = v, e, w
        width = _RUN
        while width < stop - start:
            for low in range(start, stop - width, 2 * width):
                middle, high = low + width, min(low + 2 * width, stop)
                if not _comes_after(
                    nbr[middle - 1], eid[middle - 1], nbr[middle], eid[middle], by_eid
                ):
                    continue
                for k in range(width):
                    spare_nbr[k], spare_eid[k], spare_weight[k] = (
                        nbr[low + k],
                        eid[low + k],
                        weight[low + k],
                    )
                a, b, slot = 0, middle, low
                while a < width:
                    if b < high and _comes_after(
                        spare_nbr[a], spare_eid[a], nbr[b], eid[b], by_eid
                    ):
                        nbr[slot], eid[slot], weight[slot] = nbr[b], eid[b], weight[b]
                        b += 1
                    else:
                        nbr[slot], eid[slot], weight[slot] = (
                            spare_nbr[a],
                            spare_eid[a],
                            spare_weight[a],
                        )
                        a += 1
                    slot += 1
            width *= 2


@kernel
def apply_deletes(indptr: I64, nbr: I64, eid: I64, weight: F32, unique: bool) -> int:
    """Apply deletes and, with ``unique``, replacements; compact the remaining edges in place.

    Parameters
    ----------
    indptr : int64[rows + 1], inout
    nbr, eid, weight : int64[n], int64[n], float32[n], inout
        Ordered by (row, neighbor), then in write order. A record of weight ``DELETED`` deletes
        earlier records between the same nodes: edge ``eid``, or all of them if ``eid`` is -1 or
        edges are unique.
    unique : bool
        Whether (source, destination) identifies an edge.

    Returns
    -------
    int
        Number of remaining edges.
    """
    edge_count = 0
    start = 0
    for r in range(indptr.shape[0] - 1):
        stop = indptr[r + 1]
        low = start
        while low < stop:
            high = low + 1
            while high < stop and nbr[high] == nbr[low]:
                high += 1
            for i in range(low, high):
                if weight[i] < 0 or unique:
                    for k in range(low, i):
                        if unique or eid[i] == -1 or eid[k] == eid[i]:
                            weight[k] = DELETED
            for i in range(low, high):
                if weight[i] >= 0:
                    nbr[edge_count], eid[edge_count], weight[edge_count] = nbr[i], eid[i], weight[i]
                    edge_count += 1
            low = high
        start = stop
        indptr[r + 1] = edge_count
    return edge_count


@inlined
def _edge_mix(eid: int, src: int, dst: int, weight: np.uint32) -> np.uint64:
    mixed = mix64(np.uint64(eid) + np.uint64(0x9E3779B97F4A7C15))
    mixed = mix64(mixed + np.uint64(src))
    mixed = mix64(mixed + np.uint64(dst))
    return mix64(mixed + np.uint64(weight))


@kernel
def mix_records(local_ids: I64, remote_ids: I64, eid: I64, weight_bits: U32, incoming: bool) -> int:
    """Return the sum modulo 2^64 of a hash of each edge, in any order of the edges.

    The hash covers (edge id, source, destination, weight).

    Parameters
    ----------
    local_ids, remote_ids, eid : int64[n]
        Local end, which has the row of the record, remote end, and edge id.
    weight_bits : uint32[n]
        Bits of the float32 weights.
    incoming : bool
        Whether the local end is the destination.
    """
    total = np.uint64(0)
    for i in range(eid.shape[0]):
        total += (
            _edge_mix(eid[i], remote_ids[i], local_ids[i], weight_bits[i])
            if incoming
            else _edge_mix(eid[i], local_ids[i], remote_ids[i], weight_bits[i])
        )
    return total  # type: ignore[return-value]  # compiled, it is an int


@kernel
def copy_lists(
    rows: I64,
    owner: I64,
    first: np.int64,
    indptr: I64,
    values: U8,
    out_indptr: I64,
    width: np.int64,
    out_values: U8,
) -> None:
    """Copy the lists of a block that no later write replaced to their positions.

    Parameters
    ----------
    rows : int64[n]
        Rows of the block's records; negative ones are skipped.
    owner : int64[rows of the type]
        Number of the record that owns each row's list.
    first : int
        Number of the block's first record.
    indptr, values : int64[n + 1], uint8[]
        Lists of the block, as bytes; ``indptr`` counts values of ``width`` bytes.
    out_indptr, width, out_values : int64[rows + 1], int, uint8[], out
    """
    for i in range(rows.shape[0]):
        row = rows[i]
        if row >= 0 and owner[row] == first + i:
            target = out_indptr[row] * width
            for k in range(indptr[i] * width, indptr[i + 1] * width):
                out_values[target] = values[k]
                target += 1


@kernel
def threshold_block(prob: F64, alias: U32, alias_threshold: U64, alias_fraction: U32) -> None:
    """Pack the thresholds of a block of a table.

    Like `asterism_graphkit.random.alias_build.pack_thresholds`, but certain columns must already be
    their own aliases. ``prob``, ``alias`` and the outputs are float64[n], uint32[n], uint64[n] and
    uint32[n].
    """
    for i in range(prob.shape[0]):
        scaled = np.rint(prob[i] * _TWO64)
        t = _FULL if scaled >= _TWO64 else np.uint64(scaled)
        alias_threshold[i] = (t & _HIGH) | np.uint64(alias[i])
        alias_fraction[i] = np.uint32(t & _LOW)


@kernel
def alias_ids(
    alias: U32, rows: U32, ids: I64, open_row: np.int64, open_id: np.int64, out: I64
) -> None:
    """Return the ids of aliases.

    Parameters
    ----------
    alias : uint32[n]
        Not descending.
    rows, ids : uint32[m], int64[m]
        Heavy columns, ascending. Every alias is one of them or ``open_row``.
    open_row, open_id : int
        Column that was open before these; -1 if none was.
    out : int64[n], out
    """
    j = 0
    for i in range(alias.shape[0]):
        if np.int64(alias[i]) == open_row:
            out[i] = open_id
        else:
            while rows[j] < alias[i]:
                j += 1
            out[i] = ids[j]


@kernel
def audit_table(
    alias_threshold: U64, alias_fraction: U32, row_of: U32, weights: F32, total: float, out: F64
) -> None:
    """Compute the exact distribution of a table in an image and compare it with the weights.

    Parameters
    ----------
    alias_threshold, alias_fraction : uint64[n], uint32[n]
        Thresholds of the image.
    row_of : uint32[n] or uint32[0]
        Column -> row.
    weights : float32[rows]
    total : float
        Sum of the columns' weights.
    out : float64[3], out
        Total variation distance, largest relative error of a probability, and number of columns
        with probability 0.

    Notes
    -----
    One pass with three cursors: aliases ascend among light columns, and among heavy ones. So all
    columns that lead to column v are found when v is reached. A table without this property loses
    mass here, and fails the audit.
    """
    n = alias_threshold.shape[0]
    scale = np.float64(n)
    per_column, per_weight = 1.0 / scale, 1.0 / total
    gapped = row_of.shape[0] > 0
    light = 0
    heavy = 0
    distance = 0.0
    worst = 0.0
    empty = 0
    for v in range(n):
        mass_high, mass_low = (
            np.uint64(0),
            (alias_threshold[v] & _HIGH) | np.uint64(alias_fraction[v]),
        )
        if np.int64(alias_threshold[v] & _LOW) == v:
            mass_high, mass_low = np.uint64(1), np.uint64(0)
        for stream in range(2):
            u = light if stream == 0 else heavy
            while u < n:
                alias = np.int64(alias_threshold[u] & _LOW)
                # w * n >= W if and only if the rounded w * n / W is >= 1: no division is needed.
                is_heavy = (
                    np.float64(weights[np.int64(row_of[u]) if gapped else u]) * scale >= total
                )
                if is_heavy == (stream == 1) and alias != u:
                    if alias > v:
                        break
                    if alias == v:
                        remainder = np.uint64(0) - (
                            (alias_threshold[u] & _HIGH) | np.uint64(alias_fraction[u])
                        )
                        mass_low += remainder
                        if remainder == 0 or mass_low < remainder:
                            mass_high += np.uint64(1)
                u += 1
            if stream == 0:
                light = u
            else:
                heavy = u
        q = (np.float64(mass_high) + np.float64(mass_low) / _TWO64) * per_column
        share = np.float64(weights[np.int64(row_of[v]) if gapped else v]) * per_weight
        distance += abs(q - share)
        worst = max(worst, abs(q - share) / share)
        if q == 0.0:
            empty += 1
    out[0], out[1], out[2] = distance / 2.0, worst, np.float64(empty)


def weight_bits(weights: NDArray[Any]) -> U32:
    """Return the bits of float32 weights, for `mix_records`."""
    return np.ascontiguousarray(weights, np.float32).view(np.uint32)
