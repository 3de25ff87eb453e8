"""Draws of neighbors: with or without replacement, by weight or uniformly, of one edge type or a union."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from graphkit import rng
from graphkit.jit import settled
from storaged.draw.lookup import Group, adjacency, checked_edge_types, groups_of
from storaged.draw.probability import Drawn, Source, place_probabilities
from storaged.draw.version import Version, checked_length, checked_outputs
from storaged.kernel import different, distinct
from storaged.kernel import neighbors as kernel
from storaged.kernel.rows import measure_rows, position_keys
from storaged.store import image

NEIGHBORS = 3
"""Beside the elements 1 and 2 under rng.RACE."""
_F32, _F64 = settled(image.EMPTY_F32), settled(image.EMPTY_F64)
_U32, _U64 = settled(image.EMPTY_U32), settled(image.EMPTY_U64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NeighborDraws:
    """Drawn neighbors, a row per node of the request."""

    ids: NDArray[np.int64]
    """int64[m, count], -1 for none."""
    types: NDArray[np.int32] | None
    """int32[m, count], edge types, -1 for none; None where only one was asked for."""
    weights: NDArray[np.float32] | None
    """float32[m, count], 0 for none; when wanted."""
    eids: NDArray[np.int64] | None
    """int64[m, count], -1 for none; when wanted."""
    probabilities: NDArray[np.float64] | None
    """float64[m, count], 0 for none; when wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Law:
    """What decides a draw, beside the node."""

    seed: int
    hop: int
    direction: int
    count: int
    replace: bool
    uniform: bool
    slot_key: np.uint64
    """Of draws within an edge type."""
    type_key: np.uint64
    """Of choices among edge types."""
    different: bool
    """Without replacement of neighbors, not of edges."""

    def race_keys(self, positions: NDArray[np.int64], edge_type: int) -> NDArray[np.uint64]:
        """The keys of positions for races among edges of a type, read-only."""
        return _keys(rng.key_of(self.seed, rng.RACE, NEIGHBORS, self.direction, self.hop, edge_type), positions)


def _keys(key: np.uint64, positions: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The keys of positions under ``key``, read-only."""
    out = np.empty(positions.size, np.uint64)
    position_keys(key, positions, out)
    return settled(out)


def neighbors(
    version: Version,
    *,
    edge_types: Sequence[int],
    node_type: int,
    ids: NDArray[np.int64],
    types: NDArray[np.int32] | None = None,
    positions: NDArray[np.int64],
    count: int,
    replace: bool,
    uniform: bool,
    direction: int,
    seed: int,
    hop: int,
    want_weights: bool,
    want_edge_ids: bool,
    want_probabilities: bool = False,
    different: bool = False,
) -> NeighborDraws:
    """Draw ``count`` neighbors of each node from the union of edge types.

    Parameters
    ----------
    version : Version
    edge_types : sequence of int
        Whose edges make up the union, in the order in which it is taken.
    node_type : int
        Of all ids; -1: see ``types``.
    ids : int64[m]
        Nodes that live in parts held here; -1 and unknown ids have no neighbors.
    types : int32[m], optional
        Node types, where ``node_type`` is -1. In a space of global ids they may be left out.
    positions : int64[m]
        Of each node in the whole request: a draw is a function of (seed, hop, direction, position, its number) and the
        node alone, whoever answers and with whatever else.
    count : int
    replace : bool
        Without, nodes of at most ``count`` edges have all of them, in adjacency order.
    uniform : bool
        Every edge alike, instead of by weight.
    direction : int
        1 out, 2 in.
    seed, hop : int
    want_weights, want_edge_ids, want_probabilities : bool
    different : bool
        ``count`` different neighbors, as far as there are: a neighbor is drawn once, by all edges to it together, and with it
        one of them. Along one edge type, without replacement and probabilities.

    Raises
    ------
    InvalidRequest, Unavailable
        Where a type, count or direction is impossible, or a part is not held here.
    """
    checked_outputs("neighbors", ids.size, count)
    checked_length("positions", positions, ids.size)
    if different and (len(edge_types) != 1 or replace or want_probabilities):
        raise InvalidRequest("different neighbors are drawn along one edge type, without replacement, and without their probabilities")
    near = checked_edge_types(version, edge_types, node_type, direction)
    law = _Law(
        seed=seed,
        hop=hop,
        direction=direction,
        count=count,
        replace=replace,
        uniform=uniform,
        slot_key=rng.key_of(seed, rng.NEIGHBOR, direction, hop),
        type_key=rng.key_of(seed, rng.NEIGHBOR_TYPE, direction, hop),
        different=different,
    )
    size = ids.size * count
    answer = _Answer(
        ids=np.full(size, -1, np.int64),
        types=np.full(size, -1, np.int32) if len(edge_types) > 1 else None,
        weights=np.zeros(size, np.float32) if want_weights else None,
        eids=np.full(size, -1, np.int64) if want_edge_ids else None,
        probabilities=np.zeros(size, np.float64) if want_probabilities else None,
    )
    for group in groups_of(version, node_type, ids, types) if count else ():
        union = [edge_type for edge_type, end in zip(edge_types, near, strict=True) if end == group.type_id]
        if union:
            _draw_group(group, union, positions[group.at], law, answer)
    shape = (ids.size, count)
    return NeighborDraws(
        ids=answer.ids.reshape(shape),
        types=None if answer.types is None else answer.types.reshape(shape),
        weights=None if answer.weights is None else answer.weights.reshape(shape),
        eids=None if answer.eids is None else answer.eids.reshape(shape),
        probabilities=None if answer.probabilities is None else answer.probabilities.reshape(shape),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Answer:
    """Flat columns of the answer, [m * count]."""

    ids: NDArray[np.int64]
    types: NDArray[np.int32] | None
    weights: NDArray[np.float32] | None
    eids: NDArray[np.int64] | None
    probabilities: NDArray[np.float64] | None

    @property
    def only_ids(self) -> bool:
        """Whether slots are of no use once ids are in place."""
        return self.types is None and self.weights is None and self.eids is None and self.probabilities is None


def _draw_group(group: Group, union: list[int], positions: NDArray[np.int64], law: _Law, answer: _Answer) -> None:
    """Draw for the nodes of one (type, part), and put their neighbors in place."""
    positions = settled(positions)
    adjacencies = [adjacency(group.image, edge_type, law.direction) for edge_type in union]
    which = np.empty(group.rows.size * law.count if len(union) > 1 else 0, np.int32)
    if law.replace:
        slots = _draw_with_replacement(group, adjacencies, positions, law, which, answer)
    else:
        slots = np.empty(group.rows.size * law.count, np.int64)
        if len(union) == 1:
            _draw_distinct(group, union[0], adjacencies[0], positions, law, slots)
        else:
            _race(group, union, adjacencies, positions, law, which, slots)
    which, slots = settled(which), settled(slots)
    _gather(group, union, adjacencies, law, which, slots, answer)
    if answer.probabilities is not None:
        drawn = Drawn(
            count=law.count,
            rows=group.rows,
            at=group.at,
            sources=[Source(indptr=near.indptr, weights=_F32 if law.uniform else near.weights) for near in adjacencies],
            totals=settled(_measures(group, adjacencies, law.uniform).sum(axis=0)),
            degrees=settled(_measures(group, adjacencies, uniform=True).sum(axis=0)),
            which=which,
            slots=slots,
        )
        place_probabilities(drawn, replace=law.replace, out=answer.probabilities)


def _draw_with_replacement(
    group: Group,
    adjacencies: list[image.Adjacency],
    positions: NDArray[np.int64],
    law: _Law,
    which: NDArray[np.int32],
    answer: _Answer,
) -> NDArray[np.int64]:
    """Put drawn ids in place, and give the slots where something else of them is wanted."""
    if len(adjacencies) > 1:
        kernel.choose_types(_keys(law.type_key, positions), _measures(group, adjacencies, law.uniform), np.int64(law.count), which)
    slots = np.full(0 if answer.only_ids else group.rows.size * law.count, -1, np.int64)
    keys, which = _keys(law.slot_key, positions), settled(which)
    for mine, near in enumerate(adjacencies):
        hot, cold = (_U64, _U32) if law.uniform else (near.hot, near.cold)
        kernel.draw_slots(keys, group.rows, group.at, np.int64(law.count), which, np.int32(mine), near.indptr, hot, cold, near.nbr, answer.ids, slots)
    return slots


def _draw_distinct(group: Group, edge_type: int, near: image.Adjacency, positions: NDArray[np.int64], law: _Law, slots: NDArray[np.int64]) -> None:
    """Draw without replacement from one edge type."""
    sums, hot, cold = (_F64, _U64, _U32) if law.uniform else (near.sums, near.hot, near.cold)
    weights = _F32 if law.uniform else near.weights
    keys, race_keys = _keys(law.slot_key, positions), law.race_keys(positions, edge_type)
    if law.different:
        different.draw_different(keys, race_keys, group.rows, np.int64(law.count), near.indptr, near.nbr, weights, sums, hot, cold, slots)
        return
    distinct.draw_distinct(keys, race_keys, group.rows, np.int64(law.count), near.indptr, weights, sums, hot, cold, slots)


def _measures(group: Group, adjacencies: list[image.Adjacency], uniform: bool) -> NDArray[np.float64]:
    """float64[types, m]: what each edge type weighs at each node, read-only."""
    out = np.empty((len(adjacencies), group.rows.size), np.float64)
    for t, near in enumerate(adjacencies):
        measure_rows(group.rows, near.indptr, _F64 if uniform else near.sums, out[t])
    return settled(out)


def _race(
    group: Group,
    union: list[int],
    adjacencies: list[image.Adjacency],
    positions: NDArray[np.int64],
    law: _Law,
    which: NDArray[np.int32],
    slots: NDArray[np.int64],
) -> None:
    """Draw without replacement from several edge types: one exponential race over all of their edges."""
    degrees = settled(_measures(group, adjacencies, uniform=True).sum(axis=0))
    sizes, keys = np.zeros(group.rows.size, np.int64), np.empty(slots.size, np.float64)
    for mine, near in enumerate(adjacencies):
        weights = _F32 if law.uniform else near.weights
        race_keys = law.race_keys(positions, union[mine])
        distinct.race_union(race_keys, group.rows, degrees, np.int64(law.count), np.int32(mine), near.indptr, weights, sizes, keys, which, slots)
    distinct.finish_union(degrees, np.int64(law.count), sizes, keys, which, slots)


def _gather(
    group: Group,
    union: list[int],
    adjacencies: list[image.Adjacency],
    law: _Law,
    which: NDArray[np.int32],
    slots: NDArray[np.int64],
    answer: _Answer,
) -> None:
    """Put what is wanted of the drawn slots in place."""
    count = np.int64(law.count)

    def take(mine: int, values: NDArray[Any], out: NDArray[Any]) -> None:
        kernel.gather(slots, group.at, count, which, np.int32(mine), values, out)

    def place(values: NDArray[Any], out: NDArray[Any]) -> None:
        kernel.place_by_type(slots, group.at, count, which, settled(values), out)

    if answer.types is not None:
        place(np.array(union, np.int32), answer.types)
    if answer.weights is not None and not all(near.weights.size for near in adjacencies):
        place(np.ones(len(union), np.float32), answer.weights)  # those of weighted types are written over below
    for mine, near in enumerate(adjacencies):
        if not law.replace:
            take(mine, near.nbr, answer.ids)
        if answer.eids is not None:
            take(mine, near.eid, answer.eids)
        if answer.weights is not None and near.weights.size:
            take(mine, near.weights, answer.weights)
