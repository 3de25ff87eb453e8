"""The half that global draws of nodes and of edges have in common: which draws are whose, and their
rows.
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
from storaged.kernels.global_draws import rows as columns
from storaged.kernels.global_draws.range_cover import (
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
    """Addresses of each entry's table, as rows of `storaged.kernels.global_draws.rows` have them;
    all uint64[k].
    """

    threshold_addresses: NDArray[np.uint64]
    rows_of: NDArray[np.uint64]
    ids: NDArray[np.uint64]
    shifts: NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawEntries:
    """The (type, part)s that draws fall on, and the table of each of those that are asked for, as
    the kernel reads them.

    Tables are told by address: a record must not outlive the version that made it.
    """

    shares: partition_choice.PartShares
    images: Sequence[tuple[int, PartImage | None]]
    """Type and image of each entry; None where it is not asked for."""
    local: NDArray[np.uint8]
    """uint8[k], 1 where it is."""
    ids: NDArray[np.uint64]
    """uint64[k]: addresses of the ids of sparse node types."""
    scales: NDArray[np.int64]
    offsets: NDArray[np.int64]
    """int64[k]: those of the others are row * scale + offset."""
    id_table: NDArray[np.int64]
    """What draws of ids read, tagged by type: an entry table of
    `storaged.kernels.global_draws.rows`, whose alias tables have ids beside them where there are
    some."""
    row_table: NDArray[np.int64]
    """What draws of rows read, tagged by entry; likewise."""
    is_single_type: bool
    """Whether only one type was asked for, so that draws need not tell theirs."""
    cover_table: RangeCoverTable | None = None
    """In place of tables, where draws take an index."""


def build_entries(
    version: LocalVersion,
    element: int,
    *,
    types: Sequence[int],
    parts: Sequence[int],
    uniform: bool,
) -> DrawEntries:
    """The entries of draws from ``types``, those of ``parts`` to be answered for.

    Raises
    ------
    InvalidRequest, NotFound, Unavailable, Corrupt
        Where a number is impossible, there is nothing to draw, a part is not held here, or the
        totals and the images disagree.
    """
    for part in parts:
        if not 0 <= part < version.schema.parts:
            raise InvalidRequest(f"part {part}: the space has {version.schema.parts}")
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
                "without rows; the totals and the image disagree"
            )
    threshold_addresses = addresses_of(table.hot for table in tables)
    # Draws of others are begun too, before it is known whose they are: let them ask for something
    # that is there.
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
    """Return an entry table, as `storaged.kernels.global_draws.rows` lays it out, or
    `storaged.kernels.global_draws.range_cover` where draws take an index; read-only.
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
    """Thresholds and ids from one array where there is one: a column's id stands behind its
    threshold, whatever its row.
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
    """The table of one entry, or the one that draws every live row alike."""
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
    """The node ids of the draws start .. start + count - 1, or of these ``draw_indices``, that fall
    on local entries, in order.

    And their types, but where ``entries`` are of one type: writing these would take a fifth of the
    time."""
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
    """Their rows and the numbers of their entries."""
    return _draw(
        entries, entries.row_table, part_key, row_key, start, count, draw_indices, want_tags=True
    )


def read_ids(
    entries: DrawEntries, entry_indices: NDArray[np.int32], rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The node id of each row, given the number of its entry."""
    out = np.empty(rows.size, np.int64)
    columns.read_ids(entry_indices, rows, entries.ids, entries.scales, entries.offsets, out)
    return out


def row_shares(
    weight_addresses: NDArray[np.uint64],
    entry_indices: NDArray[np.int32],
    rows: NDArray[np.int64],
    total: float,
) -> NDArray[np.float64]:
    """The share of each row in a total, given the number of its entry and the addresses of weights,
    0 where all are 1.
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
    """Draw from one of the tables of ``entries``."""
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
    """Draw from entries that are chosen by the alias table ``alias_threshold``,
    ``alias_fraction``.
    """
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
    """Draw by an index."""
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
