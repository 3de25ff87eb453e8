"""Common part of global sampling of nodes and edges.

Each draw is assigned to a (type, partition) and to a row in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import addresses_of, as_kernel_array
from asterism_graphkit.random import partition_choice, rng
from asterism_model.elements import NODE
from asterism_proto.errors import Corrupt, InvalidRequest
from storaged.kernels.global_sampling import row_sampling as columns
from storaged.kernels.global_sampling.index_range_sampling import (
    COVERED_ENTRY_ROWS,
    FIRST_PIECE,
    PIECE_COUNT,
    CoveredDrawParams,
    draw_covered_rows,
)
from storaged.sampling.filters.range_cover import RangeCoverTable, combine_covers
from storaged.sampling.version import LocalVersion, check_output_size
from storaged.store.image import EMPTY_I64, EMPTY_U32, AliasTable, PartImage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EntryAddresses:
    """Addresses of each entry's arrays: uint64, shape (k,) each.

    `storaged.kernels.global_sampling.row_sampling` describes the rows of an entry table.
    """

    threshold_addresses: NDArray[np.uint64]
    rows_of: NDArray[np.uint64]
    ids: NDArray[np.uint64]
    shifts: NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawEntries:
    """The (type, partition) entries that draws fall on, and their tables as kernels read them.

    Tables are given by address and are valid as long as the version exists.
    """

    shares: partition_choice.PartShares
    images: Sequence[tuple[int, PartImage | None]]
    """Type and image of each entry; the image is None for an entry that is not requested."""
    local: NDArray[np.uint8]
    """1 for a requested entry, else 0: uint8, shape (k,)."""
    ids: NDArray[np.uint64]
    """Addresses of the ids of sparse node types: uint64, shape (k,)."""
    scales: NDArray[np.int64]
    offsets: NDArray[np.int64]
    """Ids of dense types are row * scale + offset: int64, shape (k,)."""
    id_table: NDArray[np.int64]
    """Entry table for draws of ids, tagged by type.

    The layout is that of `storaged.kernels.global_sampling.row_sampling`. An alias table with
    interleaved ids is read from the interleaved array.
    """
    row_table: NDArray[np.int64]
    """Entry table for draws of rows, tagged by entry, with the same layout."""
    is_single_type: bool
    """True if only one type is sampled, so that draws do not return types."""
    cover_table: RangeCoverTable | None = None
    """Range covers to draw from instead of tables, if an index resolves the filter."""


def build_entries(
    version: LocalVersion,
    element: int,
    *,
    types: Sequence[int],
    parts: Sequence[int],
    uniform: bool,
) -> DrawEntries:
    """Return the entries of draws from some types, cached with the version.

    Parameters
    ----------
    version : LocalVersion
    element : int
        NODE or EDGE.
    types : sequence of int
        Types to sample from.
    parts : sequence of int
        Partitions to return draws for.
    uniform : bool
        Give all live rows the same probability, instead of one by weight.

    Raises
    ------
    InvalidRequest
        An argument is out of range.
    NotFound
        There is nothing to sample.
    Unavailable
        A partition is not held here.
    Corrupt
        The totals and the images disagree.
    """
    for part in parts:
        if not 0 <= part < version.schema.parts:
            raise InvalidRequest(
                f"part {part}: expected a partition of the space, 0 to {version.schema.parts - 1}"
            )
        version.image(part)
    requested_parts = frozenset(parts)
    single_type = len(set(types)) == 1
    key = (DrawEntries, element, tuple(sorted(set(types))), requested_parts, uniform)
    return version.cached(
        key,
        lambda: _build_entries(
            version,
            version.part_shares(element, types, uniform),
            element,
            requested_parts,
            uniform,
            single_type,
        ),
    )


def _build_entries(
    version: LocalVersion,
    shares: partition_choice.PartShares,
    element: int,
    requested_parts: frozenset[int],
    uniform: bool,
    single_type: bool,
) -> DrawEntries:
    pairs = list(zip(shares.types.tolist(), shares.parts.tolist(), strict=True))
    images = [
        (type_id, version.image(part) if part in requested_parts else None)
        for type_id, part in pairs
    ]
    tables = [
        _NOTHING if image is None else _entry_table(image, element, type_id, uniform)
        for type_id, image in images
    ]
    if version.range_covers:
        covers = [
            version.range_covers[pair] if pair[1] in requested_parts else None for pair in pairs
        ]
        tables = [
            _NOTHING
            if cover is None
            else AliasTable(size=cover.totals.count, total=cover.totals.weight)
            for cover in covers
        ]
    for (type_id, part), table, entry_weight in zip(pairs, tables, shares.measure, strict=True):
        if entry_weight > 0 and part in requested_parts and not table.size:
            raise Corrupt(
                f"{version.type_name(element, type_id)}, part {part}: draws fall on a table "
                "without rows; the statistics do not match the image"
            )
    threshold_addresses = addresses_of(table.hot for table in tables)
    # Kernels prefetch for draws of remote entries too, before their owner is known, so their
    # addresses must be valid.
    threshold_addresses = as_kernel_array(
        np.where(
            [image is None for _, image in images],
            threshold_addresses.max(initial=0),
            threshold_addresses,
        )
    )
    ids = addresses_of(
        EMPTY_I64 if image is None or element != NODE else image.nodes[type_id].ids
        for type_id, image in images
    )
    rows_of = addresses_of(table.row_of for table in tables)
    keyed_addresses = _keyed_addresses(
        addresses_of(table.keyed for table in tables), threshold_addresses, rows_of, ids
    )
    row_addresses = EntryAddresses(
        threshold_addresses=threshold_addresses,
        rows_of=rows_of,
        ids=np.zeros_like(ids),
        shifts=np.full_like(ids, 3),
    )
    k = len(pairs)
    local = as_kernel_array(np.array([image is not None for _, image in images], np.uint8))
    scales = as_kernel_array(np.full(k, version.schema.parts, np.int64))
    offsets = as_kernel_array(np.array([part for _, part in pairs], np.int64))
    cover_table = combine_covers(covers, uniform=uniform) if version.range_covers else None
    shared = {
        columns.LOCAL: local,
        columns.SIZE: np.array([table.size for table in tables], np.int64),
        columns.FRACTIONS: addresses_of(table.cold for table in tables),
    }
    id_rows = {columns.TAG: shares.types, columns.SCALE: scales, columns.OFFSET: offsets}
    row_rows = {
        columns.TAG: np.arange(k),
        columns.SCALE: np.ones(k, np.int64),
        columns.OFFSET: np.zeros(k, np.int64),
    }
    return DrawEntries(
        shares=shares,
        images=images,
        local=local,
        ids=ids,
        scales=scales,
        offsets=offsets,
        id_table=_entry_rows(k, shared | id_rows, keyed_addresses, cover_table),
        row_table=_entry_rows(k, shared | row_rows, row_addresses, cover_table),
        is_single_type=single_type,
        cover_table=cover_table,
    )


def _entry_rows(
    k: int,
    rows: Mapping[int, NDArray[np.generic]],
    addresses: EntryAddresses,
    cover_table: RangeCoverTable | None,
) -> NDArray[np.int64]:
    """Return an entry table, read-only.

    The layout is that of `storaged.kernels.global_sampling.row_sampling`, or of
    `storaged.kernels.global_sampling.index_range_sampling` for draws from range covers.
    """
    out = np.zeros((columns.ENTRY_ROWS if cover_table is None else COVERED_ENTRY_ROWS, k), np.int64)
    for row, values in rows.items():
        out[row] = values
    out[columns.THRESHOLDS], out[columns.ROW_MAP] = addresses.threshold_addresses, addresses.rows_of
    out[columns.IDS], out[columns.SHIFT] = addresses.ids, addresses.shifts
    if cover_table is not None:
        out[columns.ROW_MAP] = cover_table.rows_of
        out[FIRST_PIECE], out[PIECE_COUNT] = cover_table.firsts[:-1], np.diff(cover_table.firsts)
    return as_kernel_array(out)


def _keyed_addresses(
    id_table_addresses: NDArray[np.uint64],
    threshold_addresses: NDArray[np.uint64],
    rows_of: NDArray[np.uint64],
    ids: NDArray[np.uint64],
) -> EntryAddresses:
    """Return addresses that read thresholds and ids from one array where possible.

    In the interleaved array, a column's id follows its threshold.
    """
    has_ids = id_table_addresses > 0
    return EntryAddresses(
        threshold_addresses=as_kernel_array(
            np.where(has_ids, id_table_addresses, threshold_addresses)
        ),
        rows_of=as_kernel_array(np.where(has_ids, np.uint64(0), rows_of)),
        ids=as_kernel_array(np.where(has_ids, id_table_addresses + np.uint64(8), ids)),
        shifts=as_kernel_array(np.where(has_ids, np.uint64(4), np.uint64(3))),
    )


_NOTHING = AliasTable(size=0, total=0.0)


def _entry_table(image: PartImage, element: int, type_id: int, uniform: bool) -> AliasTable:
    """Return the alias table of one entry; ``uniform`` gives all live rows the same weight."""
    if element == NODE:
        node = image.nodes[type_id]
        return (
            AliasTable(size=node.count, total=float(node.count), row_of=node.live_rows)
            if uniform
            else node.table
        )
    edge = image.edges[type_id]
    return (
        AliasTable(
            size=edge.outgoing.nbr.size, total=float(edge.outgoing.nbr.size), row_of=EMPTY_U32
        )
        if uniform
        else edge.table
    )


def draw_ids(
    entries: DrawEntries,
    part_key: np.uint64,
    row_key: np.uint64,
    start: int,
    count: int,
    draw_indices: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the node ids of draws that fall on local entries, in order, and their types.

    Parameters
    ----------
    entries : DrawEntries
    part_key, row_key : uint64
        Random keys for the choice of the entry and of the row.
    start, count : int
        Range of draw indices.
    draw_indices : ndarray of int64, shape (count,), optional
        Draw indices to use instead of the range.

    Returns
    -------
    ids : ndarray of int64, shape (n,)
    types : ndarray of int32, shape (n,)
        Empty if all entries are of one type, because writing them would take a fifth of the time.
    """
    return _draw(
        entries,
        entries.id_table,
        part_key,
        row_key,
        start,
        count,
        draw_indices,
        want_tags=not entries.is_single_type,
    )


def draw_rows(
    entries: DrawEntries,
    part_key: np.uint64,
    row_key: np.uint64,
    start: int,
    count: int,
    draw_indices: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the rows of draws that fall on local entries, and the indices of their entries.

    Parameters are those of `draw_ids`.

    Returns
    -------
    rows : ndarray of int64, shape (n,)
    entry_indices : ndarray of int32, shape (n,)
    """
    return _draw(
        entries, entries.row_table, part_key, row_key, start, count, draw_indices, want_tags=True
    )


def read_ids(
    entries: DrawEntries, entry_indices: NDArray[np.int32], rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the node id of each row, given the index of its entry."""
    out = np.empty(rows.size, np.int64)
    columns.read_ids(entry_indices, rows, entries.ids, entries.scales, entries.offsets, out)
    return out


def row_shares(
    weight_addresses: NDArray[np.uint64],
    entry_indices: NDArray[np.int32],
    rows: NDArray[np.int64],
    total: float,
) -> NDArray[np.float64]:
    """Return the share of each row in a total, given the index of its entry.

    ``weight_addresses`` has the address of each entry's weights, 0 if all are 1.
    """
    weights = np.empty(rows.size, np.float32)
    columns.read_weights(entry_indices, rows, weight_addresses, weights)
    return weights.astype(np.float64) / total


def _draw(
    entries: DrawEntries,
    table: NDArray[np.int64],
    part_key: np.uint64,
    row_key: np.uint64,
    start: int,
    count: int,
    draw_indices: NDArray[np.int64] | None,
    *,
    want_tags: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Draw from one of the entry tables of ``entries``."""
    check_output_size("count", count)
    if start < 0 or start + count >= 1 << 63:
        raise InvalidRequest(f"start {start}: expected 0 to 2^63 - 1 - count")
    draw_indices = as_kernel_array(EMPTY_I64 if draw_indices is None else draw_indices)
    if entries.cover_table is not None:
        covered_params = CoveredDrawParams(
            part_key=part_key,
            piece_key=rng.key_of(int(row_key), rng.PIECE),
            row_key=row_key,
            start=np.uint64(start),
            num_draws=np.int64(count),
        )
        return _draw_from_covers(
            entries.shares, entries.cover_table, table, covered_params, draw_indices, want_tags
        )
    params = columns.GlobalDrawParams(part_key, row_key, np.uint64(start), np.int64(count))
    alias_table = entries.shares.alias_threshold, entries.shares.alias_fraction
    return _draw_from_tables(*alias_table, table, params, draw_indices, want_tags)


def _draw_from_tables(
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint32],
    table: NDArray[np.int64],
    params: columns.GlobalDrawParams,
    draw_indices: NDArray[np.int64],
    want_tags: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Draw from alias tables; the given alias table chooses the entry of each draw."""
    out = np.empty(params.num_draws, np.int64)
    out_tags = np.empty(params.num_draws if want_tags else 0, np.int32)
    local_count = int(
        columns.draw_rows(
            table, params, alias_threshold, alias_fraction, draw_indices, out, out_tags
        )
    )
    return as_kernel_array(out[:local_count]), as_kernel_array(out_tags[:local_count])


def _draw_from_covers(
    shares: partition_choice.PartShares,
    cover_table: RangeCoverTable,
    table: NDArray[np.int64],
    params: CoveredDrawParams,
    draw_indices: NDArray[np.int64],
    want_tags: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Draw from range covers."""
    rows = np.empty(params.num_draws, np.int64)
    out_tags = np.empty(params.num_draws if want_tags else 0, np.int32)
    local_count = int(
        draw_covered_rows(
            table,
            cover_table.pieces,
            params,
            shares.alias_threshold,
            shares.alias_fraction,
            cover_table.alias_threshold,
            cover_table.alias_fraction,
            draw_indices,
            rows,
            out_tags,
        )
    )
    return as_kernel_array(rows[:local_count]), as_kernel_array(out_tags[:local_count])
