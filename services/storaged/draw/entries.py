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

CHUNK = 1 << 17
"""Draws at a time: what is kept of them stays in a core's cache, and the answer does not depend on it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalDraws:
    """The draws of a chunk that fall on the parts asked for, by entry."""

    shares: split.Shares
    start: int
    """Number of the chunk's first draw."""
    offsets: NDArray[np.int64]
    """int64[k + 1], where each entry's draws begin."""
    draws: NDArray[np.uint32]
    """uint32[m], numbers counted from ``start``, by (entry, draw)."""
    places: NDArray[np.uint32]
    """uint32[m], their places in the chunk's answer, which is in order of draws."""
    types: NDArray[np.int32]
    """int32[m], by place."""

    def of_parts(self, version: Version) -> Iterator[tuple[int, PartImage, slice]]:
        """(type, image, slice of ``draws``) of every entry that has any."""
        for entry in np.flatnonzero(np.diff(self.offsets)):
            yield (
                int(self.shares.types[entry]),
                version.image(int(self.shares.parts[entry])),
                slice(int(self.offsets[entry]), int(self.offsets[entry + 1])),
            )


def local_draws(
    version: Version, element: int, *, types: Sequence[int], parts: Sequence[int], seed: int, start: int, count: int, uniform: bool
) -> Iterator[LocalDraws]:
    """The draws start .. start + count - 1 that fall on ``parts``, chunk by chunk.

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
    local = settled(np.isin(shares.parts, parts).astype(np.uint8))
    return _chunks(rng.key_of(seed, rng.PART, element), shares, local, start, count)


def _chunks(key: np.uint64, shares: split.Shares, local: NDArray[np.uint8], start: int, count: int) -> Iterator[LocalDraws]:
    for first in range(start, start + count, CHUNK):
        chosen = settled(split.choose(key, first, min(CHUNK, start + count - first), shares))
        offsets = np.empty(local.size + 1, np.int64)
        held = int(columns.count_local(chosen, local, offsets))
        draws, places, place_types = np.empty(held, np.uint32), np.empty(held, np.uint32), np.empty(held, np.int32)
        columns.scatter_local(chosen, local, shares.types, offsets.copy(), draws, places, place_types)
        yield LocalDraws(shares=shares, start=first, offsets=offsets, draws=settled(draws), places=settled(places), types=place_types)


_IN_ORDER = settled(np.zeros(0, np.uint32))


def draw_rows(
    key: np.uint64,
    chunk: LocalDraws,
    own: slice,
    table: Table,
    out: NDArray[np.int64],
    *,
    in_place: bool = False,
    scale: int = 1,
    offset: int = 0,
) -> None:
    """Put row * scale + offset of each of a chunk's ``own`` draws into ``out``, in their order or in their places."""
    if not table.size:
        raise Corrupt("draws fall on a table without rows: the totals and the image disagree")
    places = chunk.places[own] if in_place else _IN_ORDER
    start, size = np.uint64(chunk.start), np.uint64(table.size)
    columns.draw_rows(key, start, chunk.draws[own], size, table.hot, table.cold, table.row_of, places, np.int64(scale), np.int64(offset), out)


def uniform_table(count: int, live_rows: NDArray[np.uint32]) -> Table:
    """The table that draws every live row alike."""
    return Table(size=count, total=float(count), hot=settled(EMPTY_U64), cold=settled(EMPTY_U32), row_of=settled(live_rows))
