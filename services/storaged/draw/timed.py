"""Draws of neighbors among the edges that are seen until a time, each node's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest, Unavailable
from asterism_proto.times import seen_as
from graphkit import rng
from graphkit.growth import ALL, Met
from graphkit.jit import settled
from graphkit.times import limits_of, times_of
from storaged.draw.blocks import NODES, Checkpoint, blocks, never, per_node
from storaged.draw.lookup import IN, Adjacencies, Located, adjacencies, checked_edge_types, ends, located
from storaged.draw.neighbor import NeighborDraws
from storaged.draw.stops import Stop
from storaged.draw.version import Version, checked_found, checked_length, checked_outputs
from storaged.kernel import neighbors as gather
from storaged.kernel import timed as kernel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Until:
    """Until when edges are seen."""

    times: NDArray[np.int64] | NDArray[np.float64]
    """[m], of each node."""
    strict: bool
    """Edges of that time itself are not."""
    last: bool
    """The latest edges are taken, instead of drawing from all that are seen."""
    want_times: bool

    def of(self, block: slice) -> Until:
        """Return the same of the nodes of a block."""
        return replaced(self, times=self.times[block])

    def at(self, places: NDArray[np.int64] | NDArray[np.int32]) -> Until:
        """The same of the nodes at these places."""
        return replaced(self, times=self.times[places])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Law:
    """What decides a draw, beside the node and its time."""

    seed: int
    hop: int
    direction: int
    count: int
    replace: bool
    how: int

    def key(self, race: int) -> np.uint64:
        """Of draws (0), and of races among what they left (1)."""
        return rng.key_of(self.seed, rng.SEEN, self.direction, self.hop, race)


def timed_neighbors(
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
    until: Until,
    checkpoint: Checkpoint = never,
) -> NeighborDraws:
    """Draw ``count`` neighbors of each node from the edges of a union of edge types that it sees.

    Parameters
    ----------
    until : Until
        Of each node.
    version, edge_types, node_type, ids, types, positions, count, replace, uniform, direction, seed, hop, want_weights, want_edge_ids
        As of `storaged.draw.neighbor.neighbors`.
    checkpoint : callable
        As there.

    Raises
    ------
    InvalidRequest, Unavailable
        As there; where an edge type has no time, or times of the union are whole numbers and floats.
    """
    checked_outputs("neighbors", ids.size, count)
    checked_length("positions", positions, ids.size)
    checked_length("times", until.times, ids.size)
    near = checked_edge_types(version, edge_types, node_type, direction)
    floats = {_floating(version, edge_type, direction) for edge_type in edge_types}
    if len(floats) > 1:
        raise InvalidRequest("times of these edge types are whole numbers and floats; ask for those of one kind at a time")
    law = _law(until, seed=seed, hop=hop, direction=direction, count=count, replace=replace, uniform=uniform)
    size = ids.size * count
    out, kinds = np.full(size, -1, np.int64), np.full(size, -1, np.int32)
    weights, eids = np.zeros(size if want_weights else 0, np.float32), np.full(size if want_edge_ids else 0, -1, np.int64)
    keys = np.zeros(size if until.want_times else 0, np.int64)
    with Stop(checkpoint) as stop:
        for block in blocks(ids.size, min(per_node(count), NODES), checkpoint) if count else ():
            flat = slice(block.start * count, block.stop * count)
            places, seen = positions[block], until if block.stop - block.start == ids.size else until.of(block)
            for nodes in located(version, node_type, ids[block], None if types is None else types[block]):
                union = [edge_type for edge_type, end in zip(edge_types, near, strict=True) if end == nodes.type_id]
                if not union:
                    continue
                own = seen.at(nodes.at) if nodes.at.size else seen
                sides = [_timed(version, edge_type, direction) for edge_type in union]
                which, slots = _draw(version, nodes, union, sides, settled(places[nodes.at] if nodes.at.size else places), law, own, stop)
                gather.place_types(slots, nodes.at, np.int64(count), which, settled(np.array(union, np.int32)), kinds[flat])
                for mine, side in enumerate(sides):
                    asked = slots, nodes.at, nodes.parts, np.int64(count), which, np.int32(mine)
                    gather.gather_ids(*asked, side.nbr, out[flat])
                    if want_edge_ids:
                        gather.gather_ids(*asked, side.eid, eids[flat])
                    if want_weights:
                        gather.gather_weights(*asked, side.weights, weights[flat])
                    if until.want_times:
                        gather.gather_ids(*asked, side.when, keys[flat])
    shape = (ids.size, count)
    return NeighborDraws(
        ids=out.reshape(shape),
        types=kinds.reshape(shape) if len(edge_types) > 1 else None,
        weights=weights.reshape(shape) if want_weights else None,
        eids=eids.reshape(shape) if want_edge_ids else None,
        probabilities=None,
        times=times_of(keys, floating=floats.pop()).reshape(shape) if until.want_times else None,
    )


def expand_timed(
    version: Version,
    *,
    seed: int,
    direction: int,
    replace: bool,
    uniform: bool,
    want_eids: bool,
    want_weights: bool,
    edge_type: int,
    hop: int,
    count: int,
    ids: NDArray[np.int64],
    positions: NDArray[np.int64],
    until: Until,
    checkpoint: Checkpoint = never,
) -> Met:
    """As `storaged.draw.expand.expand` along an edge type that has times: of each node what it sees, -1 all of it, the earliest first.

    Raises
    ------
    InvalidRequest, Unavailable
        As there.
    """
    checked_length("times", until.times, ids.size)
    side, sizes = _timed(version, edge_type, direction), np.zeros(ids.size, np.int32)
    (nodes,) = located(version, ends(version, edge_type, direction)[0], ids, None)
    if count == ALL:
        limits = _limits(version, edge_type, direction, until)
        total = int(kernel.count_seen(nodes.parts, nodes.rows, limits, side.indptr, side.when, side.order, sizes))
        checked_found("neighbors", total)
        slots = np.empty(total, np.int64)
        kernel.list_seen(nodes.parts, nodes.rows, side.indptr, side.order, settled(sizes), slots)
    else:
        checked_found("neighbors", ids.size * count)
        law = _law(until, seed=seed, hop=hop, direction=direction, count=count, replace=replace, uniform=uniform)
        slots, total = np.empty(ids.size * count, np.int64), 0
        with Stop(checkpoint) as stop:
            for block in blocks(ids.size, min(per_node(count), NODES), checkpoint) if count else ():
                some = replaced(nodes, parts=nodes.parts[block], rows=nodes.rows[block])
                _, drawn = _draw(version, some, [edge_type], [side], settled(positions[block]), law, until.of(block), stop)
                total += int(kernel.close_up(drawn, np.int64(count), sizes[block], slots[total:]))
    asked = nodes.parts, settled(sizes), settled(slots[:total])
    out, eids, keys = np.empty(total, np.int64), np.empty(total if want_eids else 0, np.int64), np.empty(total if until.want_times else 0, np.int64)
    weights = np.empty(total if want_weights else 0, np.float32)
    kernel.fetch_ids(*asked, side.nbr, out)
    if want_eids:
        kernel.fetch_ids(*asked, side.eid, eids)
    if want_weights:
        kernel.fetch_weights(*asked, side.weights, weights)
    if until.want_times:
        kernel.fetch_ids(*asked, side.when, keys)
    return Met(
        sizes=sizes,
        ids=out,
        eids=eids if want_eids else None,
        weights=weights if want_weights else None,
        times=times_of(keys, floating=_floating(version, edge_type, direction)) if until.want_times else None,
    )


def _law(until: Until, *, seed: int, hop: int, direction: int, count: int, replace: bool, uniform: bool) -> _Law:
    if until.last and replace:
        raise InvalidRequest("the last neighbors are taken without replacement")
    how = kernel.LAST if until.last else kernel.UNIFORM if uniform else kernel.WEIGHTED
    return _Law(seed=seed, hop=hop, direction=direction, count=count, replace=replace, how=how)


def _floating(version: Version, edge_type: int, direction: int) -> bool:
    """Whether the times that an edge type is seen by are floats; InvalidRequest where there are none."""
    dtype = seen_as(version.schema, edge_type, incoming=direction == IN)
    if not dtype:
        name = version.schema.edge_types[edge_type].name
        raise InvalidRequest(f"edge type {name!r} has no time, and its neighbors have none; declare which feature is one in the schema")
    return dtype == "float64"


def _timed(version: Version, edge_type: int, direction: int) -> Adjacencies:
    """The adjacencies of an edge type, where every one that has edges has their times."""
    side = adjacencies(version, edge_type, direction)
    if bool(((side.nbr > 0) & (side.order == 0)).any()):
        raise Unavailable(
            f"version {version.version}: its image has no times of {version.schema.edge_types[edge_type].name!r}; build the version again"
        )
    return side


def _limits(version: Version, edge_type: int, direction: int, until: Until) -> NDArray[np.int64]:
    """int64[m], read-only."""
    return settled(limits_of(until.times, strict=until.strict, floating=_floating(version, edge_type, direction)))


def _draw(
    version: Version,
    nodes: Located,
    union: Sequence[int],
    sides: Sequence[Adjacencies],
    positions: NDArray[np.int64],
    law: _Law,
    until: Until,
    stop: Stop,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The edge type, as a place in the union, and the slot of each draw; the types are left out of a union of one."""
    slots = np.empty(nodes.rows.size * law.count, np.int64)
    which = np.empty(slots.size if len(union) > 1 else 0, np.int32)
    weighed = law.how == kernel.WEIGHTED
    nothing = np.zeros(sides[0].indptr.size, np.uint64)
    kernel.draw_timed(
        law.key(0),
        law.key(1),
        positions,
        nodes.parts,
        nodes.rows,
        settled(np.stack([_limits(version, edge_type, law.direction, until) for edge_type in union])),
        np.int64(law.count),
        law.replace,
        np.int64(law.how),
        settled(np.stack([side.indptr for side in sides])),
        settled(np.stack([side.when for side in sides])),
        settled(np.stack([side.order for side in sides])),
        settled(np.stack([side.weights if weighed else nothing for side in sides])),
        settled(np.stack([side.time_sums if weighed else nothing for side in sides])),
        which,
        slots,
        stop.flag,
    )
    stop.check()
    return settled(which), settled(slots)
