"""Global draws of edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphkit import rng
from graphkit.jit import settled
from storaged.draw.entries import draw_rows, local_draws, uniform_table
from storaged.draw.race import Race
from storaged.draw.version import EDGE, Version
from storaged.kernel import columns
from storaged.kernel.probability import place_shares
from storaged.store.image import EMPTY_F32, EMPTY_U8, EMPTY_U32, PartImage


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


class _Answer:
    """Columns of an answer that are filled part by part."""

    def __init__(self, version: Version, count: int, *, shares_of: float | None, uniform: bool) -> None:
        """``shares_of``: the total that probabilities are shares of; None: they are not wanted."""
        self._version = version
        self._total, self._uniform = shares_of, uniform
        self.probabilities = None if shares_of is None else np.empty(count, np.float64)
        self.src, self.dst, self.eids = (np.empty(count, np.int64) for _ in range(3))
        self.types, self.weights = np.empty(count, np.int32), np.empty(count, np.float32)

    def fill(self, here: slice, type_id: int, image: PartImage, slots: NDArray[np.int64], places: NDArray[np.uint32]) -> None:
        """Put the edges at ``slots`` in their places, counted from the start of ``here``."""
        edge = image.edges[type_id]
        source = image.nodes[self._version.schema.node_type_id(self._version.schema.edge_types[type_id].src_type)]
        slots = settled(slots)
        columns.place_sources(slots, places, edge.src_row, source.ids, np.int64(image.parts), np.int64(image.part), self.src[here])
        columns.place(slots, places, edge.out.nbr, self.dst[here])
        columns.place(slots, places, edge.out.eid, self.eids[here])
        if edge.out.weights.size:
            columns.place(slots, places, edge.out.weights, self.weights[here])
        else:
            self.weights[here][places] = 1
        if self.probabilities is not None and self._total is not None:
            weights = settled(EMPTY_F32) if self._uniform else edge.out.weights
            place_shares(slots, places, weights, self._total, self.probabilities[here])

    def record(self, held: int) -> EdgeDraws:
        """The answer."""
        own = slice(held)
        return EdgeDraws(
            src=self.src[own],
            dst=self.dst[own],
            eids=self.eids[own],
            types=self.types[own],
            weights=self.weights[own],
            probabilities=None if self.probabilities is None else self.probabilities[own],
        )


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
) -> EdgeDraws:
    """The draws start .. start + count - 1 that fall on ``parts``, in order.

    Parameters
    ----------
    version, types, parts, seed, start, count, uniform, want_probabilities
        As in `storaged.draw.nodes`; types are edge types. An edge is drawn at its source's part.

    Raises
    ------
    InvalidRequest, NotFound, Unavailable
        As there.
    """
    chunks = local_draws(version, EDGE, types=types, parts=parts, seed=seed, start=start, count=count, uniform=uniform)
    key = rng.key_of(seed, rng.EDGE_ROW)
    shares_of = version.shares(EDGE, types, uniform).total if want_probabilities else None
    answer, held = _Answer(version, count, shares_of=shares_of, uniform=uniform), 0
    for chunk in chunks:
        here = slice(held, held + chunk.draws.size)
        answer.types[here] = chunk.types
        for type_id, image, own in chunk.of_parts(version):
            edge = image.edges[type_id]
            slots = np.empty(own.stop - own.start, np.int64)
            draw_rows(key, chunk, own, uniform_table(edge.out.nbr.size, EMPTY_U32) if uniform else edge.table, slots)
            answer.fill(here, type_id, image, slots, chunk.places[own])
        held = here.stop
    return answer.record(held)


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
) -> EdgeRace:
    """The ``count`` edges of ``parts`` with the smallest exponential keys among those not taken.

    Parameters
    ----------
    version, types, parts, seed, count, uniform, want_probabilities
        As in `storaged.draw.race_nodes`.
    taken_ids, taken_types : int64[t], int32[t]
        Edge ids that do not take part, and their types.

    Raises
    ------
    InvalidRequest, Unavailable
        As there.
    """
    race = Race(version, EDGE, types=types, parts=parts, count=count, taken_ids=taken_ids, taken_types=taken_types)
    for type_id, image in race.entries:
        out = image.edges[type_id].out
        if out.nbr.size:
            race.run(seed, type_id, image, rows=out.nbr.size, ids=out.eid, live=settled(EMPTY_U8), weights=out.weights, uniform=uniform)
    race.finish()
    shares_of = version.shares(EDGE, types, uniform).total if want_probabilities else None
    answer = _Answer(version, race.tags.size, shares_of=shares_of, uniform=uniform)
    answer.types[:] = race.tags
    for type_id, image in race.entries:
        slots, places = race.rows_of(type_id, image.part)
        if places.size:
            answer.fill(slice(race.tags.size), type_id, image, slots, places)
    return EdgeRace(edges=answer.record(race.tags.size), keys=race.keys)


def rest_of_edges(
    version: Version, *, types: Sequence[int], parts: Sequence[int], taken_ids: NDArray[np.int64], taken_types: NDArray[np.int32]
) -> NDArray[np.float64]:
    """The weight of the edges that are not taken: float64[types, parts], as `storaged.draw.rest_of_nodes`."""
    race = Race(version, EDGE, types=types, parts=parts, count=0, taken_ids=taken_ids, taken_types=taken_types)
    rests = []
    for type_id, image in race.entries:
        out = image.edges[type_id].out
        rests.append(race.rest(type_id, image, rows=out.nbr.size, ids=out.eid, live=settled(EMPTY_U8), weights=out.weights))
    return np.array(rests, np.float64).reshape(len(set(types)), -1)
