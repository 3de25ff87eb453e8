"""The half that global draws of nodes and of edges have in common: which draws are whose, and their
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import addresses_of, as_kernel_array
from asterism_graphkit.random import partition_choice, rng
from asterism_model.elements import NODE
from asterism_proto.errors import Corrupt, InvalidRequest
from storaged.kernels.global_draws import rows as columns
from storaged.kernels.global_draws.range_cover import draw_covered_rows
from storaged.sampling.filters.range_cover import RangeCoverTable, combine_covers
from storaged.sampling.version import LocalVersion, check_output_size
from storaged.store.image import EMPTY_I32, EMPTY_I64, EMPTY_U32, AliasTable, PartImage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EntryAddresses:
    """What a draw reads of each entry's table, as `storaged.kernels.global_draws.rows.draw_rows`
    takes it; all uint64[k].
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
    sizes: NDArray[np.uint64]
    """uint64[k], columns of each table."""
    threshold_addresses: NDArray[np.uint64]
    fraction_addresses: NDArray[np.uint64]
    rows_of: NDArray[np.uint64]
    """uint64[k]: addresses of the tables' arrays."""
    ids: NDArray[np.uint64]
    """uint64[k]: addresses of the ids of sparse node types."""
    keyed_addresses: EntryAddresses
    """What draws of ids read: tables that have ids beside them where there are some."""
    scales: NDArray[np.int64]
    offsets: NDArray[np.int64]
    """int64[k]: those of the others are row * scale + offset."""
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
    return DrawEntries(
        shares=shares,
        images=images,
        local=as_kernel_array(np.array([image is not None for _, image in images], np.uint8)),
        sizes=as_kernel_array(np.array([table.size for table in tables], np.uint64)),
        threshold_addresses=threshold_addresses,
        fraction_addresses=addresses_of(table.cold for table in tables),
        rows_of=rows_of,
        ids=ids,
        keyed_addresses=_keyed_addresses(
            addresses_of(table.keyed for table in tables), threshold_addresses, rows_of, ids
        ),
        scales=as_kernel_array(np.full(len(pairs), version.schema.parts, np.int64)),
        offsets=as_kernel_array(np.array([part for _, part in pairs], np.int64)),
        is_single_type=single_type,
        cover_table=combine_covers(covers, uniform=uniform) if version.range_covers else None,
    )


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
    tags = as_kernel_array(EMPTY_I32) if entries.is_single_type else entries.shares.types
    return _draw(
        entries,
        part_key,
        row_key,
        start,
        count,
        draw_indices,
        tags,
        entries.keyed_addresses,
        entries.scales,
        entries.offsets,
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
    k = entries.local.size
    zeros, ones = as_kernel_array(np.zeros(k, np.int64)), as_kernel_array(np.ones(k, np.int64))
    addresses = EntryAddresses(
        threshold_addresses=entries.threshold_addresses,
        rows_of=entries.rows_of,
        ids=as_kernel_array(np.zeros(k, np.uint64)),
        shifts=as_kernel_array(np.full(k, 3, np.uint64)),
    )
    return _draw(
        entries,
        part_key,
        row_key,
        start,
        count,
        draw_indices,
        as_kernel_array(np.arange(k, dtype=np.int32)),
        addresses,
        ones,
        zeros,
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
    part_key: np.uint64,
    row_key: np.uint64,
    start: int,
    count: int,
    draw_indices: NDArray[np.int64] | None,
    tags: NDArray[np.int32],
    addresses: EntryAddresses,
    scales: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    check_output_size("count", count)
    if start < 0 or start + count >= 1 << 63:
        raise InvalidRequest(f"start {start}: expected 0 to 2^63 - 1 - count")
    draw_indices = as_kernel_array(EMPTY_I64 if draw_indices is None else draw_indices)
    if entries.cover_table is not None:
        return _draw_from_covers(
            entries,
            entries.cover_table,
            part_key,
            row_key,
            start,
            count,
            draw_indices,
            tags,
            addresses,
            scales,
            offsets,
        )
    draw = partial(
        _draw_from_tables,
        entries,
        part_key,
        row_key,
        start,
        count,
        draw_indices,
        tags,
        addresses,
        scales,
        offsets,
    )
    return draw(entries.shares.alias_threshold, entries.shares.alias_fraction)


def _draw_from_tables(
    entries: DrawEntries,
    part_key: np.uint64,
    row_key: np.uint64,
    start: int,
    count: int,
    draw_indices: NDArray[np.int64],
    tags: NDArray[np.int32],
    addresses: EntryAddresses,
    scales: NDArray[np.int64],
    offsets: NDArray[np.int64],
    alias_threshold: NDArray[np.uint64],
    alias_fraction: NDArray[np.uint32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Draws whose entries are chosen by the table ``alias_threshold``, ``alias_fraction``."""
    out, out_tags = np.empty(count, np.int64), np.empty(count if tags.size else 0, np.int32)
    local_count = int(
        columns.draw_rows(
            part_key,
            row_key,
            np.uint64(start),
            np.int64(count),
            draw_indices,
            alias_threshold,
            alias_fraction,
            entries.local,
            tags,
            entries.sizes,
            addresses.threshold_addresses,
            entries.fraction_addresses,
            addresses.rows_of,
            addresses.ids,
            addresses.shifts,
            scales,
            offsets,
            out,
            out_tags,
        )
    )
    return as_kernel_array(out[:local_count]), as_kernel_array(out_tags[:local_count])


def _draw_from_covers(
    entries: DrawEntries,
    cover_table: RangeCoverTable,
    part_key: np.uint64,
    row_key: np.uint64,
    start: int,
    count: int,
    draw_indices: NDArray[np.int64],
    tags: NDArray[np.int32],
    addresses: EntryAddresses,
    scales: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Draws that take an index."""
    rows, out_tags = np.empty(count, np.int64), np.empty(count if tags.size else 0, np.int32)
    local_count = int(
        draw_covered_rows(
            part_key,
            rng.key_of(int(row_key), rng.PIECE),
            row_key,
            np.uint64(start),
            np.int64(count),
            draw_indices,
            entries.shares.alias_threshold,
            entries.shares.alias_fraction,
            entries.local,
            tags,
            cover_table.firsts,
            cover_table.hot,
            cover_table.cold,
            cover_table.starts,
            cover_table.sizes,
            cover_table.hots,
            cover_table.colds,
            cover_table.rows_of,
            addresses.ids,
            scales,
            offsets,
            rows,
            out_tags,
        )
    )
    return as_kernel_array(rows[:local_count]), as_kernel_array(out_tags[:local_count])
