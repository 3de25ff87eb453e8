"""Global draws of edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphkit import rng
from graphkit.jit import addresses_of, settled
from storaged.draw.blocks import DRAWS, Checkpoint, blocks, never
from storaged.draw.entries import draw_rows, entries_of
from storaged.draw.node import joined
from storaged.draw.race import Race
from storaged.draw.version import EDGE, Version, checked_outputs
from storaged.kernel import columns
from storaged.store.image import EMPTY_F32, EMPTY_I64, EMPTY_U8, EMPTY_U32, PartImage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeDraws:
    """Drawn edges, in order of the draws."""

    src: NDArray[np.int64]
    """int64[k]."""
    dst: NDArray[np.int64]
    """int64[k]."""
    eids: NDArray[np.int64]
    """int64[k]."""
    types: NDArray[np.int32]
    """int32[k]."""
    weights: NDArray[np.float32]
    """float32[k]."""
    probabilities: NDArray[np.float64] | None
    """float64[k], each edge's share of the total of all parts; when wanted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EdgeRace:
    """The first of a race over edges, in order of arrival."""

    edges: EdgeDraws
    """Fewer than asked for where there are no more."""
    keys: NDArray[np.float64]
    """float64[k], ascending; races over other parts merge by (key, type, edge id)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Columns:
    """The columns of the edges of some (type, part)s, by address: not to outlive the version that they are of."""

    src_row: NDArray[np.uint64]
    src_ids: NDArray[np.uint64]
    """uint64[k], of the ids of sparse source types."""
    scales: NDArray[np.int64]
    offsets: NDArray[np.int64]
    """int64[k]: those of the others are row * scale + offset."""
    dst: NDArray[np.uint64]
    eids: NDArray[np.uint64]
    weights: NDArray[np.uint64]

    @classmethod
    def of(cls, version: Version, images: Sequence[tuple[int, PartImage | None]]) -> _Columns:
        """The columns of these types in these images; None is one that nothing is asked of."""
        schema = version.schema
        near = [schema.node_type_id(edge.src_type) for edge in schema.edge_types]
        return cls(
            src_row=addresses_of(EMPTY_U32 if image is None else image.edges[t].src_row for t, image in images),
            src_ids=addresses_of(EMPTY_I64 if image is None else image.nodes[near[t]].ids for t, image in images),
            scales=settled(np.full(len(images), schema.parts, np.int64)),
            offsets=settled(np.array([0 if image is None else image.part for _, image in images], np.int64)),
            dst=addresses_of(EMPTY_I64 if image is None else image.edges[t].out.nbr for t, image in images),
            eids=addresses_of(EMPTY_I64 if image is None else image.edges[t].out.eid for t, image in images),
            weights=addresses_of(EMPTY_F32 if image is None else image.edges[t].out.weights for t, image in images),
        )

    def read(
        self, numbers: NDArray[np.int32], slots: NDArray[np.int64], types: NDArray[np.int32], *, shares_of: float | None, uniform: bool
    ) -> EdgeDraws:
        """The edges at ``slots`` of the entries of these numbers; ``shares_of``: the total that probabilities are shares of, where wanted."""
        rows, src, dst, eids = (np.empty(slots.size, np.int64) for _ in range(4))
        weights = np.empty(slots.size, np.float32)
        columns.read_sources(numbers, slots, self.src_row, rows)
        columns.read_ids(numbers, settled(rows), self.src_ids, self.scales, self.offsets, src)
        columns.read_ids(numbers, slots, self.dst, self.scales, self.offsets, dst)
        columns.read_ids(numbers, slots, self.eids, self.scales, self.offsets, eids)
        columns.read_weights(numbers, slots, self.weights, weights)
        probabilities = None
        if shares_of is not None:
            probabilities = np.ones(slots.size) if uniform else weights.astype(np.float64)
            probabilities /= shares_of
        return EdgeDraws(src=src, dst=dst, eids=eids, types=types, weights=weights, probabilities=probabilities)


def edges(
    version: Version,
    *,
    types: Sequence[int],
    parts: Sequence[int],
    seed: int,
    start: int,
    count: int,
    uniform: bool,
    want_probabilities: bool = False,
    checkpoint: Checkpoint = never,
) -> EdgeDraws:
    """The draws start .. start + count - 1 that fall on ``parts``, in order.

    Parameters
    ----------
    version, types, parts, seed, start, count, uniform, want_probabilities, checkpoint
        As in `storaged.draw.nodes`; types are edge types. An edge is drawn at its source's part.

    Raises
    ------
    InvalidRequest, NotFound, Unavailable
        As there.
    """
    entries = entries_of(version, EDGE, types=types, parts=parts, uniform=uniform)
    keys = rng.key_of(seed, rng.PART, EDGE), rng.key_of(seed, rng.EDGE_ROW)
    read = version.once((_Columns, entries.shares.types.tobytes(), entries.local.tobytes()), lambda: _Columns.of(version, entries.images))
    shares_of = entries.shares.total if want_probabilities else None
    found = []
    checked_outputs("count", count)
    for block in blocks(count, DRAWS, checkpoint):
        slots, numbers = draw_rows(entries, *keys, start + block.start, block.stop - block.start)
        found.append(read.read(numbers, slots, entries.shares.types[numbers], shares_of=shares_of, uniform=uniform))
    if len(found) == 1:
        return found[0]
    return EdgeDraws(
        src=np.concatenate([each.src for each in found]),
        dst=np.concatenate([each.dst for each in found]),
        eids=np.concatenate([each.eids for each in found]),
        types=np.concatenate([each.types for each in found]),
        weights=np.concatenate([each.weights for each in found]),
        probabilities=joined([each.probabilities for each in found]),
    )


def race_edges(
    version: Version,
    *,
    types: Sequence[int],
    parts: Sequence[int],
    seed: int,
    count: int,
    taken_ids: NDArray[np.int64],
    taken_types: NDArray[np.int32],
    uniform: bool = False,
    want_probabilities: bool = False,
    checkpoint: Checkpoint = never,
) -> EdgeRace:
    """The ``count`` edges of ``parts`` with the smallest exponential keys among those not taken.

    Parameters
    ----------
    version, types, parts, seed, count, uniform, want_probabilities, checkpoint
        As in `storaged.draw.race_nodes`.
    taken_ids, taken_types : int64[t], int32[t]
        Edge ids that do not take part, and their types.

    Raises
    ------
    InvalidRequest, Unavailable
        As there.
    """
    race = Race(version, EDGE, types=types, parts=parts, count=count, taken_ids=taken_ids, taken_types=taken_types, checkpoint=checkpoint)
    for type_id, image in race.entries:
        out = image.edges[type_id].out
        if out.nbr.size:
            race.run(seed, type_id, image, rows=out.nbr.size, ids=out.eid, live=settled(EMPTY_U8), weights=out.weights, uniform=uniform)
    race.finish()
    shares_of = version.shares(EDGE, types, uniform).total if want_probabilities else None
    slots, numbers = np.empty(race.tags.size, np.int64), np.empty(race.tags.size, np.int32)
    for number, (type_id, image) in enumerate(race.entries):
        rows, places = race.rows_of(type_id, image.part)
        slots[places], numbers[places] = rows, number
    read = _Columns.of(version, race.entries)
    found = read.read(settled(numbers), settled(slots), race.tags, shares_of=shares_of, uniform=uniform)
    return EdgeRace(edges=found, keys=race.keys)


def rest_of_edges(
    version: Version,
    *,
    types: Sequence[int],
    parts: Sequence[int],
    taken_ids: NDArray[np.int64],
    taken_types: NDArray[np.int32],
    checkpoint: Checkpoint = never,
) -> NDArray[np.float64]:
    """The weight of the edges that are not taken: float64[types, parts], as `storaged.draw.rest_of_nodes`."""
    race = Race(version, EDGE, types=types, parts=parts, count=0, taken_ids=taken_ids, taken_types=taken_types, checkpoint=checkpoint)
    rests = []
    for type_id, image in race.entries:
        out = image.edges[type_id].out
        rests.append(race.rest(type_id, image, rows=out.nbr.size, ids=out.eid, live=settled(EMPTY_U8), weights=out.weights))
    return np.array(rests, np.float64).reshape(len(set(types)), len(set(parts)))
