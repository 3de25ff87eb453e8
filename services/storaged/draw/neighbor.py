"""Draws of neighbors: with or without replacement, by weight or uniformly, of one edge type or a union."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from graphkit import rng
from graphkit.jit import settled
from storaged.draw.blocks import EDGES, Checkpoint, blocks, by_work, never, per_node
from storaged.draw.lookup import Adjacencies, Located, adjacencies, adjacency, checked_edge_types, ends, located
from storaged.draw.probability import Drawn, Source, place_probabilities
from storaged.draw.stops import Stop
from storaged.draw.top import degrees
from storaged.draw.version import Version, checked_length, checked_outputs
from storaged.kernel import different, distinct
from storaged.kernel import neighbors as kernel
from storaged.kernel import packed as packed_kernel
from storaged.kernel import union as union_kernel
from storaged.kernel.rows import measure, measure_rows, position_keys
from storaged.store.image import EMPTY_F32, EMPTY_F64, EMPTY_U32, EMPTY_U64, Adjacency, PartImage

NEIGHBORS = 3
"""Beside the elements 1 and 2 under rng.RACE."""
_FEW = 64
"""Nodes up to which races are not cut into blocks."""
_F32, _F64 = settled(EMPTY_F32), settled(EMPTY_F64)
_U32, _U64 = settled(EMPTY_U32), settled(EMPTY_U64)


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
    times: NDArray[np.int64] | NDArray[np.float64] | None = None
    """[m, count], 0 for none; when wanted."""


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

    def race_key(self, edge_type: int) -> np.uint64:
        """Of races among edges of a type."""
        return rng.key_of(self.seed, rng.RACE, NEIGHBORS, self.direction, self.hop, edge_type)


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
    checkpoint: Checkpoint = never,
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
        one of them. Without replacement and probabilities.
    checkpoint : callable
        Called between blocks of nodes; may raise.

    Raises
    ------
    InvalidRequest, Unavailable
        Where a type, count or direction is impossible, or a part is not held here.
    """
    checked_outputs("neighbors", ids.size, count)
    checked_length("positions", positions, ids.size)
    if different and (replace or want_probabilities):
        raise InvalidRequest("different neighbors are drawn without replacement, and without their probabilities")
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
    answer = _Answer.empty(size, types=len(edge_types) > 1, weights=want_weights, eids=want_edge_ids, probabilities=want_probabilities)
    racing = not replace and (len(edge_types) > 1 or different) and ids.size > _FEW
    cut = blocks(ids.size, per_node(count), checkpoint)
    if racing:  # races look at all edges of a node
        held = degrees(version, edge_types=edge_types, node_type=node_type, ids=ids, types=types, direction=direction, checkpoint=checkpoint)
        cut = by_work(held.sum(axis=1) + count, EDGES, checkpoint)
    with Stop(checkpoint) as stop:
        for block in cut if count else ():
            whole = block.stop - block.start == ids.size
            some, own, part = (ids, positions, answer) if whole else (ids[block], positions[block], answer.cut(block, count))
            for nodes in located(version, node_type, some, types if types is None or whole else types[block]):
                union = [edge_type for edge_type, end in zip(edge_types, near, strict=True) if end == nodes.type_id]
                if union:
                    _draw(version, nodes, union, settled(own[nodes.at] if nodes.at.size else own), law, part, stop)
    return answer.shaped((ids.size, count))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Answer:
    """Flat columns of the answer, [m * count]."""

    ids: NDArray[np.int64]
    types: NDArray[np.int32] | None
    weights: NDArray[np.float32] | None
    eids: NDArray[np.int64] | None
    probabilities: NDArray[np.float64] | None

    @classmethod
    def empty(cls, size: int, *, types: bool, weights: bool, eids: bool, probabilities: bool) -> _Answer:
        """Return an answer without neighbors, of the columns that are wanted."""
        return cls(
            ids=np.full(size, -1, np.int64),
            types=np.full(size, -1, np.int32) if types else None,
            weights=np.zeros(size, np.float32) if weights else None,
            eids=np.full(size, -1, np.int64) if eids else None,
            probabilities=np.zeros(size, np.float64) if probabilities else None,
        )

    def cut(self, block: slice, count: int) -> _Answer:
        """Return the rows of some nodes: views."""
        own = slice(block.start * count, block.stop * count)
        return _Answer(
            ids=self.ids[own],
            types=None if self.types is None else self.types[own],
            weights=None if self.weights is None else self.weights[own],
            eids=None if self.eids is None else self.eids[own],
            probabilities=None if self.probabilities is None else self.probabilities[own],
        )

    def shaped(self, shape: tuple[int, int]) -> NeighborDraws:
        """Return the columns by node."""
        return NeighborDraws(
            ids=self.ids.reshape(shape),
            types=None if self.types is None else self.types.reshape(shape),
            weights=None if self.weights is None else self.weights.reshape(shape),
            eids=None if self.eids is None else self.eids.reshape(shape),
            probabilities=None if self.probabilities is None else self.probabilities.reshape(shape),
        )

    @property
    def only_ids(self) -> bool:
        """Whether slots are of no use once ids are in place."""
        return self.types is None and self.weights is None and self.eids is None and self.probabilities is None


def _draw(version: Version, nodes: Located, union: list[int], positions: NDArray[np.int64], law: _Law, answer: _Answer, stop: Stop) -> None:
    """Draw for the nodes of one type, and put their neighbors in place."""
    sides = [adjacencies(version, edge_type, law.direction, uniform=law.uniform) for edge_type in union]
    which = np.empty(nodes.rows.size * law.count if len(union) > 1 else 0, np.int32)
    if law.replace:
        slots = _draw_with_replacement(nodes, sides, positions, law, which, answer, stop)
    elif law.different and len(union) > 1:
        slots = _race_neighbors(version, nodes, union, sides, positions, law, which, stop)
    elif law.different:
        slots = np.full(nodes.rows.size * law.count, -1, np.int64)
        for image, mine in nodes.of_parts(version):
            _draw_different(image, mine, nodes.rows[mine], union[0], positions[mine], law, slots, stop)
    elif len(union) == 1:
        slots = _draw_distinct(nodes, union[0], sides[0], positions, law, answer, stop)
    else:
        slots = np.full(nodes.rows.size * law.count, -1, np.int64)
        which.fill(-1)
        for image, mine in nodes.of_parts(version):
            _race(image, mine, nodes.rows[mine], union, positions[mine], law, which, slots, stop)
    if answer.only_ids and slots.size == 0:
        return
    which, slots = settled(which), settled(slots)
    _gather(version, nodes, union, law, which, slots, answer)
    if answer.probabilities is not None:
        for image, mine in nodes.of_parts(version):
            _place_probabilities(image, nodes, mine, union, law, which, slots, answer.probabilities, stop)


def _draw_with_replacement(
    nodes: Located,
    sides: list[Adjacencies],
    positions: NDArray[np.int64],
    law: _Law,
    which: NDArray[np.int32],
    answer: _Answer,
    stop: Stop,
) -> NDArray[np.int64]:
    """Put drawn ids in place, and give the slots where something else of them is wanted."""
    if len(sides) > 1:
        kernel.choose_types(_keys(law.type_key, positions), _measures(nodes, sides), np.int64(law.count), which, stop.flag)
        stop.check()
    slots = np.full(0 if answer.only_ids else nodes.rows.size * law.count, -1, np.int64)
    if len(sides) == 1 and sides[0].all_packed:
        (side,) = sides
        own = law.slot_key, positions, nodes.at, nodes.parts, nodes.rows, np.int64(law.count)
        packed_kernel.draw_packed(*own, side.indptr, side.narrow, side.packed, side.cold, answer.ids, slots, stop.flag)
        stop.check()
        return slots
    which = settled(which)
    for mine, side in enumerate(sides):
        kernel.draw_slots(
            law.slot_key,
            positions,
            nodes.at,
            nodes.parts,
            nodes.rows,
            np.int64(law.count),
            which,
            np.int32(mine),
            side.indptr,
            side.hot,
            side.cold,
            side.nbr,
            answer.ids,
            slots,
            stop.flag,
        )
        stop.check()
    return slots


def _draw_distinct(
    nodes: Located, edge_type: int, side: Adjacencies, positions: NDArray[np.int64], law: _Law, answer: _Answer, stop: Stop
) -> NDArray[np.int64]:
    """The same without replacement, from one edge type."""
    kept = 2 * distinct.TILE if answer.only_ids else nodes.rows.size
    slots = np.empty(kept * law.count, np.int64)
    distinct.draw_distinct(
        law.slot_key,
        law.race_key(edge_type),
        positions,
        nodes.at,
        nodes.parts,
        nodes.rows,
        np.int64(law.count),
        side.indptr,
        side.weights,
        side.sums,
        side.hot,
        side.cold,
        side.nbr,
        answer.ids,
        slots,
        stop.flag,
    )
    stop.check()
    return slots[:0] if answer.only_ids else slots


def _draw_different(
    image: PartImage,
    nodes: NDArray[np.int64],
    rows: NDArray[np.int64],
    edge_type: int,
    positions: NDArray[np.int64],
    law: _Law,
    slots: NDArray[np.int64],
    stop: Stop,
) -> None:
    """Draw different neighbors along one edge type, for the nodes of one part."""
    side, own = adjacency(image, edge_type, law.direction), np.empty(rows.size * law.count, np.int64)
    weights, sums, hot, cold = (_F32, _F64, _U64, _U32) if law.uniform else (side.weights, side.sums, side.hot, side.cold)
    keys, race_keys = _keys(law.slot_key, positions), _keys(law.race_key(edge_type), positions)
    different.draw_different(keys, race_keys, settled(rows), np.int64(law.count), side.indptr, side.nbr, weights, sums, hot, cold, own, stop.flag)
    stop.check()
    slots.reshape(-1, law.count)[nodes] = own.reshape(-1, law.count)


def _race_neighbors(
    version: Version,
    nodes: Located,
    union: list[int],
    sides: list[Adjacencies],
    positions: NDArray[np.int64],
    law: _Law,
    which: NDArray[np.int32],
    stop: Stop,
) -> NDArray[np.int64]:
    """Draw different neighbors along several edge types: one exponential race over all of them."""
    slots = np.empty(nodes.rows.size * law.count, np.int64)
    union_kernel.race_neighbors(
        settled(np.stack([_keys(law.race_key(edge_type), positions) for edge_type in union])),
        nodes.parts,
        nodes.rows,
        np.int64(law.count),
        settled(np.array([ends(version, edge_type, law.direction)[1] for edge_type in union], np.int32)),
        settled(np.stack([side.indptr for side in sides])),
        settled(np.stack([side.nbr for side in sides])),
        settled(np.stack([side.weights for side in sides])),
        which,
        slots,
        stop.flag,
    )
    stop.check()
    return slots


def _measures(nodes: Located, sides: list[Adjacencies]) -> NDArray[np.float64]:
    """float64[types, m]: what each edge type weighs at each node, read-only."""
    out = np.empty((len(sides), nodes.rows.size), np.float64)
    for t, side in enumerate(sides):
        measure(nodes.parts, nodes.rows, side.indptr, side.sums, out[t])
    return settled(out)


def _race(
    image: PartImage,
    nodes: NDArray[np.int64],
    rows: NDArray[np.int64],
    union: list[int],
    positions: NDArray[np.int64],
    law: _Law,
    which: NDArray[np.int32],
    slots: NDArray[np.int64],
    stop: Stop,
) -> None:
    """Draw without replacement from several edge types: one exponential race over all of their edges, for the nodes of one part."""
    count, rows = np.int64(law.count), settled(rows)
    sides = [adjacency(image, edge_type, law.direction) for edge_type in union]
    degrees = settled(_sums(rows, sides, uniform=True))
    sizes, keys = np.zeros(rows.size, np.int64), np.empty(rows.size * law.count, np.float64)
    own_which, own_slots = np.empty(keys.size, np.int32), np.empty(keys.size, np.int64)
    for mine, side in enumerate(sides):
        weights = _F32 if law.uniform else side.weights
        race_keys = _keys(law.race_key(union[mine]), positions)
        union_kernel.race_union(race_keys, rows, degrees, count, np.int32(mine), side.indptr, weights, sizes, keys, own_which, own_slots, stop.flag)
    stop.check()
    union_kernel.finish_union(degrees, count, sizes, keys, own_which, own_slots, stop.flag)
    stop.check()
    which.reshape(-1, law.count)[nodes] = own_which.reshape(-1, law.count)
    slots.reshape(-1, law.count)[nodes] = own_slots.reshape(-1, law.count)


def _sums(rows: NDArray[np.int64], sides: list[Adjacency], *, uniform: bool) -> NDArray[np.float64]:
    """float64[m]: what all edge types together weigh at each of one part's rows."""
    out = np.empty((len(sides), rows.size), np.float64)
    for t, side in enumerate(sides):
        measure_rows(rows, side.indptr, _F64 if uniform else side.sums, out[t])
    total: NDArray[np.float64] = out.sum(axis=0)
    return total


def _place_probabilities(
    image: PartImage,
    nodes: Located,
    mine: NDArray[np.int64],
    union: list[int],
    law: _Law,
    which: NDArray[np.int32],
    slots: NDArray[np.int64],
    out: NDArray[np.float64],
    stop: Stop,
) -> None:
    """Put the probabilities of one part's draws in place."""
    sides = [adjacency(image, edge_type, law.direction) for edge_type in union]
    rows = settled(nodes.rows[mine])
    drawn = Drawn(
        count=law.count,
        rows=rows,
        at=settled(nodes.at[mine] if nodes.at.size else mine),
        sources=[Source(indptr=side.indptr, weights=_F32 if law.uniform else side.weights) for side in sides],
        totals=settled(_sums(rows, sides, uniform=law.uniform)),
        degrees=settled(_sums(rows, sides, uniform=True)),
        which=settled(which.reshape(-1, law.count)[mine].reshape(-1)) if which.size else which,
        slots=settled(slots.reshape(-1, law.count)[mine].reshape(-1)),
    )
    place_probabilities(drawn, replace=law.replace, out=out, stop=stop)


def _gather(
    version: Version, nodes: Located, union: list[int], law: _Law, which: NDArray[np.int32], slots: NDArray[np.int64], answer: _Answer
) -> None:
    """Put what is wanted of the drawn slots in place; ids are there unless they were drawn from a union without replacement, or are different."""
    count = np.int64(law.count)
    if answer.types is not None:
        kernel.place_types(slots, nodes.at, count, which, settled(np.array(union, np.int32)), answer.types)
    for mine, edge_type in enumerate(union):
        side, of = adjacencies(version, edge_type, law.direction), np.int32(mine)
        if not law.replace and (len(union) > 1 or law.different):
            kernel.gather_ids(slots, nodes.at, nodes.parts, count, which, of, side.nbr, answer.ids)
        if answer.eids is not None:
            kernel.gather_ids(slots, nodes.at, nodes.parts, count, which, of, side.eid, answer.eids)
        if answer.weights is not None:
            kernel.gather_weights(slots, nodes.at, nodes.parts, count, which, of, side.weights, answer.weights)
