"""The half that global draws of nodes and of edges have in common: which draws are whose, and their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Corrupt, InvalidRequest
from graphkit import rng, split
from graphkit.jit import settled
from storaged.draw.version import Version, checked_outputs
from storaged.kernel import columns
from storaged.store.image import EMPTY_U32, EMPTY_U64, PartImage, Table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalDraws:
    """The draws of a range that fall on the parts asked for, by entry."""

    shares: split.Shares
    entries: NDArray[np.int64]
    """int64[e], the entries that some draw falls on."""
    offsets: NDArray[np.int64]
    """int64[k + 1], where each entry's draws begin."""
    draws: NDArray[np.uint32]
    """uint32[m], numbers counted from the range's start, by (entry, draw)."""
    places: NDArray[np.uint32]
    """uint32[m], their places in the answer, which is in order of draws."""
    types: NDArray[np.int32]
    """int32[m], by place."""

    def of_parts(self, version: Version) -> Iterator[tuple[int, PartImage, slice]]:
        """(type, image, slice of ``draws``) of every entry that has any."""
        for entry in self.entries:
            yield (
                int(self.shares.types[entry]),
                version.image(int(self.shares.parts[entry])),
                slice(int(self.offsets[entry]), int(self.offsets[entry + 1])),
            )


def local_draws(
    version: Version, element: int, *, types: Sequence[int], parts: Sequence[int], seed: int, start: int, count: int, uniform: bool
) -> LocalDraws:
    """The draws start .. start + count - 1 that fall on ``parts``.

    Raises
    ------
    InvalidRequest, NotFound, Unavailable
        Where a number is impossible, there is nothing to draw, or a part is not held here.
    """
    checked_outputs("count", count)
    if start < 0 or start + count >= 1 << 63:
        raise InvalidRequest(f"start {start}: expected 0 to 2^63 - 1 - count")
    for part in parts:
        if not 0 <= part < version.schema.parts:
            raise InvalidRequest(f"part {part}: the space has {version.schema.parts}")
        version.image(part)
    shares = version.shares(element, types, uniform)
    chosen = settled(split.choose(rng.key_of(seed, rng.PART, element), start, count, shares))
    local = settled(np.isin(shares.parts, parts).astype(np.uint8))
    offsets = np.empty(local.size + 1, np.int64)
    held = int(columns.count_local(chosen, local, offsets))
    draws, places, place_types = np.empty(held, np.uint32), np.empty(held, np.uint32), np.empty(held, np.int32)
    columns.scatter_local(chosen, local, shares.types, offsets.copy(), draws, places, place_types)
    return LocalDraws(
        shares=shares, entries=np.flatnonzero(np.diff(offsets)), offsets=offsets, draws=settled(draws), places=settled(places), types=place_types
    )


def draw_rows(key: np.uint64, start: int, draws: NDArray[np.uint32], table: Table) -> NDArray[np.uint32]:
    """A row of ``table`` for each draw, read-only."""
    if not table.size:
        raise Corrupt("draws fall on a table without rows: the totals and the image disagree")
    rows = np.empty(draws.size, np.uint32)
    columns.draw_rows(key, np.uint64(start), draws, np.uint64(table.size), table.hot, table.cold, table.row_of, rows)
    return settled(rows)


def uniform_table(count: int, live_rows: NDArray[np.uint32]) -> Table:
    """The table that draws every live row alike."""
    return Table(size=count, total=float(count), hot=settled(EMPTY_U64), cold=settled(EMPTY_U32), row_of=settled(live_rows))
