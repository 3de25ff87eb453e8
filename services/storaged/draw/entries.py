"""The half that global draws of nodes and of edges have in common: which draws are whose, and their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Corrupt, InvalidRequest
from graphkit import rng, split
from graphkit.jit import addresses_of, settled
from storaged.draw.covers import Covered, covered
from storaged.draw.version import NODE, Version, checked_outputs
from storaged.kernel import columns
from storaged.kernel.covered import draw_covered
from storaged.store.image import EMPTY_I32, EMPTY_I64, EMPTY_U32, PartImage, Table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reads:
    """What a draw reads of each entry's table, as `storaged.kernel.columns.draw_rows` takes it; all uint64[k]."""

    hots: NDArray[np.uint64]
    rows_of: NDArray[np.uint64]
    ids: NDArray[np.uint64]
    shifts: NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entries:
    """The (type, part)s that draws fall on, and the table of each of those that are asked for, as the kernel reads them.

    Tables are told by address: a record must not outlive the version that made it.
    """

    shares: split.Shares
    images: Sequence[tuple[int, PartImage | None]]
    """Type and image of each entry; None where it is not asked for."""
    local: NDArray[np.uint8]
    """uint8[k], 1 where it is."""
    sizes: NDArray[np.uint64]
    """uint64[k], columns of each table."""
    hots: NDArray[np.uint64]
    colds: NDArray[np.uint64]
    rows_of: NDArray[np.uint64]
    """uint64[k]: addresses of the tables' arrays."""
    ids: NDArray[np.uint64]
    """uint64[k]: addresses of the ids of sparse node types."""
    keyed: Reads
    """What draws of ids read: tables that have ids beside them where there are some."""
    scales: NDArray[np.int64]
    offsets: NDArray[np.int64]
    """int64[k]: those of the others are row * scale + offset."""
    of_one_type: bool
    """Whether only one type was asked for, so that draws need not tell theirs."""
    covered: Covered | None = None
    """In place of tables, where draws take an index."""


def entries_of(version: Version, element: int, *, types: Sequence[int], parts: Sequence[int], uniform: bool) -> Entries:
    """The entries of draws from ``types``, those of ``parts`` to be answered for.

    Raises
    ------
    InvalidRequest, NotFound, Unavailable, Corrupt
        Where a number is impossible, there is nothing to draw, a part is not held here, or the totals and the images disagree.
    """
    for part in parts:
        if not 0 <= part < version.schema.parts:
            raise InvalidRequest(f"part {part}: the space has {version.schema.parts}")
        version.image(part)
    asked = frozenset(parts)
    only = len(set(types)) == 1
    key = (Entries, element, tuple(sorted(set(types))), asked, uniform)
    return version.once(key, lambda: _entries(version, version.shares(element, types, uniform), element, asked, uniform, only))


def _entries(version: Version, shares: split.Shares, element: int, asked: frozenset[int], uniform: bool, only: bool) -> Entries:
    pairs = list(zip(shares.types.tolist(), shares.parts.tolist(), strict=True))
    images = [(type_id, version.image(part) if part in asked else None) for type_id, part in pairs]
    tables = [_NOTHING if image is None else _table(image, element, type_id, uniform) for type_id, image in images]
    if version.covers:
        covers = [version.covers[pair] if pair[1] in asked else None for pair in pairs]
        tables = [_NOTHING if cover is None else Table(size=cover.share.count, total=cover.share.weight) for cover in covers]
    for (type_id, part), table, measure in zip(pairs, tables, shares.measure, strict=True):
        if measure > 0 and part in asked and not table.size:
            raise Corrupt(
                f"{version.type_name(element, type_id)}, part {part}: draws fall on a table without rows; the totals and the image disagree"
            )
    hots = addresses_of(table.hot for table in tables)
    # Draws of others are begun too, before it is known whose they are: let them ask for something that is there.
    hots = settled(np.where([image is None for _, image in images], hots.max(initial=0), hots))
    ids = addresses_of(EMPTY_I64 if image is None or element != NODE else image.nodes[type_id].ids for type_id, image in images)
    rows_of = addresses_of(table.row_of for table in tables)
    return Entries(
        shares=shares,
        images=images,
        local=settled(np.array([image is not None for _, image in images], np.uint8)),
        sizes=settled(np.array([table.size for table in tables], np.uint64)),
        hots=hots,
        colds=addresses_of(table.cold for table in tables),
        rows_of=rows_of,
        ids=ids,
        keyed=_keyed(addresses_of(table.keyed for table in tables), hots, rows_of, ids),
        scales=settled(np.full(len(pairs), version.schema.parts, np.int64)),
        offsets=settled(np.array([part for _, part in pairs], np.int64)),
        of_one_type=only,
        covered=covered(covers, uniform=uniform) if version.covers else None,
    )


def _keyed(keyed: NDArray[np.uint64], hots: NDArray[np.uint64], rows_of: NDArray[np.uint64], ids: NDArray[np.uint64]) -> Reads:
    """Thresholds and ids from one array where there is one: a column's id stands behind its threshold, whatever its row."""
    has = keyed > 0
    return Reads(
        hots=settled(np.where(has, keyed, hots)),
        rows_of=settled(np.where(has, np.uint64(0), rows_of)),
        ids=settled(np.where(has, keyed + np.uint64(8), ids)),
        shifts=settled(np.where(has, np.uint64(4), np.uint64(3))),
    )


_NOTHING = Table(size=0, total=0.0)


def _table(image: PartImage, element: int, type_id: int, uniform: bool) -> Table:
    """The table of one entry, or the one that draws every live row alike."""
    if element == NODE:
        node = image.nodes[type_id]
        return Table(size=node.count, total=float(node.count), row_of=node.live_rows) if uniform else node.table
    edge = image.edges[type_id]
    return Table(size=edge.out.nbr.size, total=float(edge.out.nbr.size), row_of=EMPTY_U32) if uniform else edge.table


def draw_ids(
    entries: Entries, part_key: np.uint64, row_key: np.uint64, start: int, count: int, numbers: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The node ids of the draws start .. start + count - 1, or of these ``numbers``, that fall on local entries, in order.

    And their types, but where ``entries`` are of one type: writing these would take a fifth of the time.
    """
    tags = settled(EMPTY_I32) if entries.of_one_type else entries.shares.types
    return _draw(entries, part_key, row_key, start, count, numbers, tags, entries.keyed, entries.scales, entries.offsets)


def draw_rows(
    entries: Entries, part_key: np.uint64, row_key: np.uint64, start: int, count: int, numbers: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Their rows and the numbers of their entries."""
    k = entries.local.size
    zeros, ones = settled(np.zeros(k, np.int64)), settled(np.ones(k, np.int64))
    apart = Reads(hots=entries.hots, rows_of=entries.rows_of, ids=settled(np.zeros(k, np.uint64)), shifts=settled(np.full(k, 3, np.uint64)))
    return _draw(entries, part_key, row_key, start, count, numbers, settled(np.arange(k, dtype=np.int32)), apart, ones, zeros)


def read_ids(entries: Entries, numbers: NDArray[np.int32], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The node id of each row, given the number of its entry."""
    out = np.empty(rows.size, np.int64)
    columns.read_ids(numbers, rows, entries.ids, entries.scales, entries.offsets, out)
    return out


def shares_of(columns_of: NDArray[np.uint64], numbers: NDArray[np.int32], rows: NDArray[np.int64], total: float) -> NDArray[np.float64]:
    """The share of each row in a total, given the number of its entry and the addresses of weights, 0 where all are 1."""
    weights = np.empty(rows.size, np.float32)
    columns.read_weights(numbers, rows, columns_of, weights)
    return weights.astype(np.float64) / total


def _draw(
    entries: Entries,
    part_key: np.uint64,
    row_key: np.uint64,
    start: int,
    count: int,
    numbers: NDArray[np.int64] | None,
    tags: NDArray[np.int32],
    reads: Reads,
    scales: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    checked_outputs("count", count)
    if start < 0 or start + count >= 1 << 63:
        raise InvalidRequest(f"start {start}: expected 0 to 2^63 - 1 - count")
    numbers = settled(EMPTY_I64 if numbers is None else numbers)
    if entries.covered is not None:
        return _from_covers(entries, entries.covered, part_key, row_key, start, count, numbers, tags, reads, scales, offsets)
    drawn = partial(_drawn, entries, part_key, row_key, start, count, numbers, tags, reads, scales, offsets)
    return drawn(entries.shares.hot, entries.shares.cold)


def _drawn(
    entries: Entries,
    part_key: np.uint64,
    row_key: np.uint64,
    start: int,
    count: int,
    numbers: NDArray[np.int64],
    tags: NDArray[np.int32],
    reads: Reads,
    scales: NDArray[np.int64],
    offsets: NDArray[np.int64],
    hot: NDArray[np.uint64],
    cold: NDArray[np.uint32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Draws whose entries are chosen by the table ``hot``, ``cold``."""
    out, out_tags = np.empty(count, np.int64), np.empty(count if tags.size else 0, np.int32)
    held = int(
        columns.draw_rows(
            part_key,
            row_key,
            np.uint64(start),
            np.int64(count),
            numbers,
            hot,
            cold,
            entries.local,
            tags,
            entries.sizes,
            reads.hots,
            entries.colds,
            reads.rows_of,
            reads.ids,
            reads.shifts,
            scales,
            offsets,
            out,
            out_tags,
        )
    )
    return settled(out[:held]), settled(out_tags[:held])


def _from_covers(
    entries: Entries,
    cover: Covered,
    part_key: np.uint64,
    row_key: np.uint64,
    start: int,
    count: int,
    numbers: NDArray[np.int64],
    tags: NDArray[np.int32],
    reads: Reads,
    scales: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Draws that take an index."""
    rows, out_tags = np.empty(count, np.int64), np.empty(count if tags.size else 0, np.int32)
    held = int(
        draw_covered(
            part_key,
            rng.key_of(int(row_key), rng.PIECE),
            row_key,
            np.uint64(start),
            np.int64(count),
            numbers,
            entries.shares.hot,
            entries.shares.cold,
            entries.local,
            tags,
            cover.firsts,
            cover.hot,
            cover.cold,
            cover.starts,
            cover.sizes,
            cover.hots,
            cover.colds,
            cover.rows_of,
            reads.ids,
            scales,
            offsets,
            rows,
            out_tags,
        )
    )
    return settled(rows[:held]), settled(out_tags[:held])
