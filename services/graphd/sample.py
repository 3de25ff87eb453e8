"""Sampling: global draws of nodes and edges, neighbors, fanouts. Each is a pure function of (version, request, seed)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.errors import Internal, InvalidRequest, NotFound
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import storaged_pb2 as store
from daemonkit.calls import Call
from graphd import split
from graphd.conditions import Conditions
from graphd.distinct import FirstSeen, given_earlier, race_winners
from graphd.fanout import Fanout
from graphd.route import Space, Version
from graphd.totals import EDGE, NODE
from graphd.until import Until
from graphkit import rng
from graphkit.alias import neumaier
from graphkit.split import Shares, choose, group

Ids = NDArray[np.int64]
Types = NDArray[np.int32]
Sections = dict[str, NDArray[Any]]

REPLY_BYTES = 60 << 20
"""Of one reply's arrays, so that it fits into a message of 64 MiB."""
_ROW_BYTES = {NODE: 12, EDGE: 32}
_PROBABILITY_BYTES = 8
_WORD = {NODE: "node", EDGE: "edge"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """One request's surroundings: what it draws from, whom it asks, how long it may take."""

    space: Space
    version: Version
    fanout: Fanout
    call: Call
    conditions: Conditions = field(default_factory=Conditions)
    """What is known of conditions by earlier requests."""
    weights: str = ""
    """The name of the weights that it draws by; "" are the rows' own."""
    where: store.Where | None = None
    """Which rows it is about, with their totals; None: all."""
    way: str = ""
    """How these are found, in words."""

    def by(self, weights: str) -> Sampling:
        """The same by the weights of that name."""
        return replace(self, version=replace(self.version, totals=self.version.totals.weighed(weights)), weights=weights)

    def of_all(self) -> Sampling:
        """The same of all rows, where only types are looked up."""
        return replace(self, where=None)

    def at(self) -> store.At:
        """The version, and which of its rows are meant, as a storaged is told."""
        return store.At(space_id=self.space.space_id, version=self.version.version, digest=self.version.digest, where=self.where)

    def ask(self, name: str, requests: Sequence[tuple[int, Frame]]) -> list[Frame]:
        """The hosts' replies, in the order of the requests."""
        return self.fanout.ask(name, self.space, requests, self.call)


@dataclass(frozen=True, slots=True, kw_only=True)
class Global:
    """A draw of nodes or edges from all parts."""

    element: int
    """totals.NODE or totals.EDGE."""
    types: tuple[int, ...]
    seed: int
    count: int
    uniform: bool
    distinct: bool
    want_probabilities: bool

    @property
    def most(self) -> int:
        """How many rows one reply can hold."""
        return REPLY_BYTES // (_ROW_BYTES[self.element] + _PROBABILITY_BYTES * self.want_probabilities)

    @property
    def identity(self) -> str:
        """The section that tells rows of a type apart."""
        return "ids" if self.element == NODE else "eids"

    @property
    def one_type(self) -> bool:
        """Whether all nodes are of a type that the request told."""
        return self.element == NODE and len(self.types) == 1

    @property
    def method(self) -> str:
        """What storageds are asked."""
        return "draw_nodes" if self.element == NODE else "draw_edges"


def draw(sampling: Sampling, what: Global) -> Sections:
    """``what.count`` rows, with or without replacement, in the order of the draws."""
    if not 0 <= what.count <= what.most:
        raise InvalidRequest(f"count {what.count}: expected 0 to {what.most} in one call")
    shares = sampling.version.totals.shares(what.element, what.types, uniform=what.uniform)
    if not shares.total > 0:
        raise NotFound(nothing(sampling, what))
    drawn = _draw_distinct(sampling, what, shares) if what.distinct else _draw_block(sampling, what, shares, 0, what.count)
    if what.one_type:
        drawn.pop("types", None)  # the trainer knows it
    return drawn


def nothing(sampling: Sampling, what: Global) -> str:
    """Why nothing can be drawn, for a message."""
    schema, totals = sampling.space.schema, sampling.version.totals
    of = schema.node_types if what.element == NODE else schema.edge_types
    names = ", ".join(repr(of[type_id].name) for type_id in what.types) or f"no {_WORD[what.element]} type"
    rows = totals.available(what.element, what.types, uniform=True)
    where = f"version {sampling.version.version} of space {sampling.space.name!r}"
    if sampling.where is not None:
        where += f" where {sampling.where.text}"
    if rows:
        which = f" {sampling.weights!r}" if sampling.weights else ""
        return f"nothing to draw from {names}: all {rows} weights{which} in {where} are zero; draw uniformly"
    return f"nothing to draw from {names}: {where} has no such {_WORD[what.element]}"


def _draw_block(sampling: Sampling, what: Global, shares: Shares, start: int, count: int) -> Sections:
    """The draws start .. start + count - 1 of the stream."""
    space = sampling.space
    key = rng.key_of(what.seed, rng.PART, what.element)
    hosts = np.unique(space.host_of_part[shares.parts[shares.measure > 0]])
    if len(hosts) > 1 and count:
        order, offsets = group(space.host_of_part[shares.parts].take(choose(key, start, count, shares)), len(space.hosts))
        rows: list[Ids | None] = [order[offsets[host] : offsets[host + 1]] for host in hosts]
    else:
        rows = [None] * len(hosts)  # all of them, or none
    asked = [(int(host), Frame(_global_head(sampling, what, int(host), start, count))) for host in hosts]
    replies = sampling.ask(what.method, asked)
    for (host, _), reply, own in zip(asked, replies, rows, strict=True):
        given, wanted = len(reply.arrays[what.identity]), count if own is None else len(own)
        if given != wanted:
            raise Internal(f"storaged {space.hosts[host]} gave {given} draws of {wanted} that are its own")
    if len(replies) == 1:
        return dict(replies[0].arrays)
    return split.merged(count, [(own, reply.arrays) for own, reply in zip(rows, replies, strict=True)])


def _global_head(sampling: Sampling, what: Global, host: int, start: int, count: int, *, race: bool = False, rest: bool = False) -> Any:
    kind = store.DrawNodesRequest if what.element == NODE else store.DrawEdgesRequest
    return kind(
        at=sampling.at(),
        types=what.types,
        parts=sampling.space.parts_of(host),
        seed=what.seed,
        start=start,
        count=count,
        uniform=what.uniform,
        race=race,
        want_probabilities=what.want_probabilities,
        rest=rest,
        weight=sampling.weights,
    )


def _draw_distinct(sampling: Sampling, what: Global, shares: Shares) -> Sections:
    """The first distinct draws of the stream, then a race over the rest."""
    available = sampling.version.totals.available(what.element, what.types, uniform=what.uniform)
    if what.count > available:
        how = "uniformly" if what.uniform else "by weight"
        raise InvalidRequest(f"{what.count} different {_WORD[what.element]}s were asked for; {available} can be drawn {how}")
    seen, start = FirstSeen(what.identity), 0
    while not start or (len(seen) < what.count and not seen.given_up):
        block = min(max(2 * (what.count - len(seen)), 64), what.most)
        seen.add(_typed(what, _draw_block(sampling, what, shares, start, block)))
        start += block
    found = seen.first(what.count)
    missing = what.count - len(found["types"])
    if missing:
        won = race_winners([reply.arrays for reply in ask_but(sampling, what, shares, found, missing, race=True)], what.identity, missing)
        found = {name: np.concatenate([array, won[name]]) for name, array in found.items()}
    if what.want_probabilities:
        found["probabilities"] = given_earlier(
            found["probabilities"],
            uniform=what.uniform,
            available=available,
            rest=lambda: weight_but(sampling, what, shares, found) / shares.total,
        )
    return found


def _typed(what: Global, drawn: Sections) -> Sections:
    """Draws with their types."""
    return drawn | {"types": np.full(len(drawn[what.identity]), what.types[0], np.int32)} if "types" not in drawn else drawn


def ask_but(sampling: Sampling, what: Global, shares: Shares, taken: Sections, count: int, *, race: bool = False, rest: bool = False) -> list[Frame]:
    """What the hosts say of all rows but those that are taken."""
    excluded: Sections = {"taken": taken[what.identity], "taken_types": taken["types"]}
    hosts = np.unique(sampling.space.host_of_part[shares.parts[shares.measure > 0]])
    asked = [(int(host), Frame(_global_head(sampling, what, int(host), 0, count, race=race, rest=rest), excluded)) for host in hosts]
    return sampling.ask(what.method, asked)


def weight_but(sampling: Sampling, what: Global, shares: Shares, taken: Sections) -> float:
    """The weight of all rows but those that are taken: the same sum of the same terms, whoever holds them."""
    rests = [reply.array("rest", "float64", 2) for reply in ask_but(sampling, what, shares, taken, 0, rest=True)]
    terms = np.concatenate([rest.reshape(-1) for rest in rests])
    return neumaier(np.sort(terms[terms > 0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbors:
    """How neighbors are drawn."""

    edge_types: tuple[int, ...]
    count: int
    replace: bool
    uniform: bool
    direction: pb.Direction
    seed: int
    hop: int
    want_weights: bool
    want_edge_ids: bool
    want_probabilities: bool
    different: bool = False
    """Different neighbors, not different edges."""
    until: Until | None = None


def neighbors(sampling: Sampling, how: Neighbors, nodes: Ids, node_type: int, types: Types | None, positions: Ids | None = None) -> Sections:
    """``how.count`` neighbors of each node: sections [m, count], as DrawNeighborsReply has them.

    A draw is keyed by the node's position: its place in the request, or as ``positions`` says.
    """
    width = 8 + 4 * (len(how.edge_types) > 1) + 4 * how.want_weights + 8 * how.want_edge_ids + _PROBABILITY_BYTES * how.want_probabilities
    width += 8 * (how.until is not None and how.until.head.want_times)
    if how.count * len(nodes) * width > REPLY_BYTES:
        most = REPLY_BYTES // (width * max(how.count, 1))
        raise InvalidRequest(f"{how.count} neighbors of {len(nodes)} nodes do not fit into one reply; ask for {most} nodes at a time")
    head = store.DrawNeighborsRequest(
        at=sampling.at(),
        edge_types=how.edge_types,
        node_type=node_type,
        count=how.count,
        replace=how.replace,
        uniform=how.uniform,
        direction=how.direction,
        seed=how.seed,
        hop=how.hop,
        want_weights=how.want_weights,
        want_edge_ids=how.want_edge_ids,
        want_probabilities=how.want_probabilities,
        weight=sampling.weights,
        different=how.different,
        until=None if how.until is None else how.until.head,
    )
    plan = split.owners(sampling.space, nodes)
    if not plan:  # no node, so nobody owns one: somebody still knows the shapes
        plan = [(0, None)]
    if positions is None:
        positions = np.arange(len(nodes), dtype=np.int64)
    asked = []
    for host, rows in plan:
        sections: Sections = {"ids": split.taken(nodes, rows), "positions": split.taken(positions, rows)}
        if types is not None:
            sections["types"] = split.taken(types, rows)
        if how.until is not None:
            sections["times"] = how.until.at(rows)
        asked.append((host, Frame(head, sections)))
    replies = sampling.ask("draw_neighbors", asked)
    return split.merged(len(nodes), [(rows, reply.arrays) for (_, rows), reply in zip(plan, replies, strict=True)])


def fanout(sampling: Sampling, hops: Sequence[Neighbors], nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """Hop after hop, each from the flat answer of the one before; sections ``name.hop``.

    Times of every hop are those of the nodes that the first one starts from.
    """
    out: Sections = {}
    paths = 1
    for h, hop in enumerate(hops):
        until = None if hop.until is None else hop.until.spread(paths)
        drawn = neighbors(sampling, replace(hop, until=until), nodes, node_type, types)
        paths *= hop.count
        for name, array in drawn.items():
            out[f"{name}.{h}"] = array.reshape(-1)
        nodes = out[f"ids.{h}"]
        node_type, types = far_types(sampling.space, hop, out.get(f"types.{h}"))
    _check_size(out)
    return out


def far_types(space: Space, hop: Neighbors, edge_types: Types | None) -> tuple[int, Types | None]:
    """The node type of a hop's neighbors: one for all (or -1), and the type of each where they differ."""
    schema = space.schema
    ends = [schema.node_type_id(edge.dst_type if hop.direction == pb.OUT else edge.src_type) for edge in schema.edge_types]
    reached = {ends[edge_type] for edge_type in hop.edge_types}
    if len(reached) == 1 or edge_types is None:
        return reached.pop(), None
    # One entry more: edge type -1, "none", is the last one and leads nowhere.
    return -1, np.array([*ends, -1], np.int32)[edge_types]


def _check_size(sections: Mapping[str, NDArray[Any]]) -> None:
    total = sum(array.nbytes for array in sections.values())
    if total > REPLY_BYTES:
        raise InvalidRequest(f"the fanout has {total} bytes, one reply at most {REPLY_BYTES}; start from fewer nodes at a time")
