"""Draws of neighbors under a condition on a column that each node's edges are kept in order of: nothing is looked at but runs of that order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_proto.condition import Condition
from asterism_proto.meaning import bound
from graphkit import rng
from graphkit.jit import addresses_of, settled
from storaged.draw.blocks import NODES, Checkpoint, blocks, never, per_node
from storaged.draw.intervals import answers, key_runs
from storaged.draw.lookup import OUT, Located, adjacencies, checked_edge_types, located
from storaged.draw.neighbor import NeighborDraws
from storaged.draw.stops import Stop
from storaged.draw.version import EDGE, Version, checked_length, checked_outputs
from storaged.kernel import neighbors as gather
from storaged.kernel import probability
from storaged.kernel import ranged as kernel
from storaged.store.image import EMPTY_I64, EMPTY_U32
from storaged.store.ordered import OWN, Near

_MOST_RUNS = 64
"""Of one edge type: each is looked for at every node, and beyond these what satisfies a condition is looked for once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """What satisfies a condition, as an index of an edge type has it in the order of each node's edges."""

    index: int
    """The place of the index among those of the type."""
    runs: tuple[tuple[int, int], ...]
    """The least and the largest key of each run, ascending."""


def ranges_of(version: Version, condition: Condition, types: Sequence[int]) -> dict[int, Ranges]:
    """What satisfies a condition on edges, by edge type; nothing unless an index of every type tells.

    Raises
    ------
    InvalidRequest, NotFound
        Where a type is unknown, or the condition means nothing to it.
    """
    found: dict[int, Ranges] = {}
    for type_id in types:
        version.type_name(EDGE, type_id)
        tree = bound(condition, version.schema, EDGE, type_id)
        indexes = next((image.edges[type_id].indexes for image in version.parts.values()), ())
        place = next((i for i, index in enumerate(indexes) if index.out is not None and answers(index, tree)), None)
        if place is None:
            return {}
        runs = key_runs(tree, indexes[place].values.dtype)
        if len(runs) > _MOST_RUNS:
            return {}
        found[type_id] = Ranges(index=place, runs=tuple(runs))
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Orders:
    """The order of each node's edges at one end, by part; arrays are told by address, not to outlive the version that they are of."""

    order: NDArray[np.uint64]
    keys: NDArray[np.uint64]
    trees: NDArray[np.uint64]
    """uint64[P]; 0 where there is none, or its part is not held here."""

    @classmethod
    def of(cls, version: Version, edge_type: int, direction: int, index: int, weights: str) -> _Orders:
        """Those of one edge type."""

        def near(part: int) -> Near | None:
            image = version.parts.get(part)
            if image is None:
                return None
            of = image.edges[edge_type].indexes[index]
            return of.out if direction == OUT else of.into

        nears = [near(part) for part in range(version.schema.parts)]
        return cls(
            order=addresses_of(EMPTY_U32 if each is None else each.order for each in nears),
            keys=addresses_of(EMPTY_I64 if each is None else each.keys for each in nears),
            trees=addresses_of(EMPTY_I64 if each is None else each.trees.get(weights, EMPTY_I64) for each in nears),
        )


def ranged_neighbors(
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
    want_probabilities: bool,
    weight: str,
    ranges: Mapping[int, Ranges],
    checkpoint: Checkpoint = never,
) -> NeighborDraws:
    """Draw ``count`` neighbors of each node from those of its edges that satisfy a condition.

    Parameters
    ----------
    weight : str
        The name of the weights that ``version`` has in the place of the edges' own.
    ranges : mapping
        What satisfies it, of every edge type.
    checkpoint : callable
        As of `storaged.draw.neighbor.neighbors`.
    version, edge_types, node_type, ids, types, positions, count, replace, uniform, direction, seed, hop
    want_weights, want_edge_ids, want_probabilities
        As of `storaged.draw.neighbor.neighbors`.

    Raises
    ------
    InvalidRequest, Unavailable
        As there.
    """
    checked_outputs("neighbors", ids.size, count)
    checked_length("positions", positions, ids.size)
    near = checked_edge_types(version, edge_types, node_type, direction)
    size = ids.size * count
    out, kinds = np.full(size, -1, np.int64), np.full(size, -1, np.int32)
    weights, eids = np.zeros(size if want_weights else 0, np.float32), np.full(size if want_edge_ids else 0, -1, np.int64)
    probabilities = np.zeros(size if want_probabilities else 0, np.float64)
    with Stop(checkpoint) as stop:
        for block in blocks(ids.size, min(per_node(count), NODES), checkpoint) if count else ():
            flat, places = slice(block.start * count, block.stop * count), positions[block]
            for nodes in located(version, node_type, ids[block], None if types is None else types[block]):
                union = [edge_type for edge_type, end in zip(edge_types, near, strict=True) if end == nodes.type_id]
                if not union:
                    continue
                drawing = _Drawing(
                    version=version, union=union, direction=direction, count=count, replace=replace, uniform=uniform, want=want_probabilities
                )
                own = settled(places[nodes.at] if nodes.at.size else places)
                drawn = drawing.draw(nodes, own, [ranges[edge_type] for edge_type in union], weight or OWN, seed=seed, hop=hop, stop=stop)
                gather.place_types(drawn.slots, nodes.at, np.int64(count), drawn.which, settled(np.array(union, np.int32)), kinds[flat])
                for mine, edge_type in enumerate(union):
                    side = adjacencies(version, edge_type, direction)
                    asked = drawn.slots, nodes.at, nodes.parts, np.int64(count), drawn.which, np.int32(mine)
                    gather.gather_ids(*asked, side.nbr, out[flat])
                    if want_edge_ids:
                        gather.gather_ids(*asked, side.eid, eids[flat])
                    if want_weights:
                        gather.gather_weights(*asked, side.weights, weights[flat])
                if want_probabilities:
                    drawing.place_probabilities(nodes, drawn, probabilities[flat])
    shape = (ids.size, count)
    return NeighborDraws(
        ids=out.reshape(shape),
        types=kinds.reshape(shape) if len(edge_types) > 1 else None,
        weights=weights.reshape(shape) if want_weights else None,
        eids=eids.reshape(shape) if want_edge_ids else None,
        probabilities=probabilities.reshape(shape) if want_probabilities else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Drawn:
    """What nodes of one type drew, and what they drew from."""

    which: NDArray[np.int32]
    """int32[m * count]; empty of a union of one."""
    slots: NDArray[np.int64]
    totals: NDArray[np.float64]
    counts: NDArray[np.float64]
    rests: NDArray[np.float64]
    """float64[m], as `storaged.kernel.ranged.draw_ranged` gives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawing:
    """How nodes of one type draw."""

    version: Version
    union: Sequence[int]
    direction: int
    count: int
    replace: bool
    uniform: bool
    want: bool

    def draw(self, nodes: Located, positions: NDArray[np.int64], ranges: Sequence[Ranges], weight: str, *, seed: int, hop: int, stop: Stop) -> _Drawn:
        """Draw for them."""
        version, m = self.version, nodes.rows.size
        sides = [adjacencies(version, edge_type, self.direction) for edge_type in self.union]
        orders = []
        for edge_type, each in zip(self.union, ranges, strict=True):
            asked = (edge_type, self.direction, each.index, weight)
            orders.append(version.once((_Orders, *asked), lambda asked=asked: _Orders.of(version, *asked)))  # type: ignore[misc]  # a default binds it
        runs = np.array([(t, low, high) for t, each in enumerate(ranges) for low, high in each.runs], np.int64).reshape(-1, 3).T.copy()
        nothing = settled(np.zeros(version.schema.parts, np.uint64))
        slots = np.empty(m * self.count, np.int64)
        which = np.empty(slots.size if len(self.union) > 1 else 0, np.int32)
        totals, counts, rests = np.empty(m, np.float64), np.empty(m, np.float64), np.empty(m, np.float64)
        kernel.draw_ranged(
            rng.key_of(seed, rng.RANGE, self.direction, hop, 0),
            rng.key_of(seed, rng.RANGE, self.direction, hop, 1),
            positions,
            nodes.parts,
            nodes.rows,
            np.int64(self.count),
            self.replace,
            self.want,
            settled(runs[0]),
            settled(runs[1]),
            settled(runs[2]),
            settled(np.stack([side.indptr for side in sides])),
            settled(np.stack([each.order for each in orders])),
            settled(np.stack([each.keys for each in orders])),
            settled(np.stack([nothing if self.uniform else side.weights for side in sides])),
            settled(np.stack([nothing if self.uniform else each.trees for each in orders])),
            which,
            slots,
            totals,
            counts,
            rests,
            stop.flag,
        )
        stop.check()
        return _Drawn(which=settled(which), slots=settled(slots), totals=settled(totals), counts=settled(counts), rests=settled(rests))

    def place_probabilities(self, nodes: Located, drawn: _Drawn, out: NDArray[np.float64]) -> None:
        """Put the probabilities of draws in place: each alone, or without replacement given the earlier ones."""
        masses = np.zeros((nodes.rows.size, self.count), np.float64)
        for image, mine in nodes.of_parts(self.version):
            own = np.zeros((mine.size, self.count), np.float64)
            slots = settled(drawn.slots.reshape(masses.shape)[mine].reshape(-1))
            which = settled(drawn.which.reshape(masses.shape)[mine].reshape(-1)) if drawn.which.size else drawn.which
            for t, edge_type in enumerate(self.union):
                edge = image.edges[edge_type]
                side = edge.out if self.direction == OUT or edge.into is None else edge.into
                weights = side.weights[:0] if self.uniform else side.weights
                probability.weigh(slots, which, np.int32(t), weights, own.reshape(-1))
            masses[mine] = own
        at, flat = nodes.at if nodes.at.size else np.arange(nodes.rows.size), settled(masses.reshape(-1))
        if self.replace:
            probability.share(flat, drawn.totals, settled(at), np.int64(self.count), out)
        else:
            probability.condition(flat, drawn.rests, drawn.counts, settled(at), np.int64(self.count), out)
