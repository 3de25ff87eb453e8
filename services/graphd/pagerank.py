"""Personalised PageRank by forward push: neighborhoods are read from the storageds as mass comes to them, each once a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import storaged_pb2 as store
from graphd import read
from graphd.sample import REPLY_BYTES, Ids, Sampling, Sections, Types
from graphkit.numbering import Numbering
from graphkit.push import arrive, settle, spread

MOST_EDGES = 1 << 25
"""Held of a request's neighborhoods, 8 bytes each."""
MOST_PAIRS = 1 << 22
"""Of a start and a node that its mass has come to, some 60 bytes each."""
_GROUP = 256
"""Starts whose mass is pushed at a time, unless they come to too many nodes together."""
_PIECE_EDGES = 1 << 22
"""Along which mass goes at a time."""
_ROW_BYTES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What PageRank is of, and how closely."""

    edge_types: tuple[int, ...]
    direction: pb.Direction
    uniform: bool
    alpha: float
    """The probability that a walk ends, at every step."""
    epsilon: float
    """No node of degree d is left with more than ``epsilon * d`` that has not settled."""
    top: int


class _TooMany(Exception):
    """Starts come to more nodes than are held at a time."""


def pagerank(sampling: Sampling, how: Ranking, nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """The nodes of the highest scores for each node: sections as PersonalizedPagerankReply has them.

    Notes
    -----
    Mass is pushed in rounds: all nodes that hold back more than they may at its beginning settle, and what they carry on arrives
    in the order of (start, node id, node type, edge as stored). So what a start comes to depends on nothing but the graph.
    """
    if len(nodes) * how.top * _ROW_BYTES > REPLY_BYTES:
        most = REPLY_BYTES // (_ROW_BYTES * how.top)
        raise InvalidRequest(f"{how.top} nodes for each of {len(nodes)} do not fit into one reply; ask for {most} nodes at a time")
    kinds = read.node_types(sampling.of_all(), nodes, node_type, types)["types"]
    if len(sampling.space.hosts) == 1:
        return _ranked(sampling, how, nodes, kinds)
    there = np.flatnonzero(kinds >= 0)
    out: Sections = {
        "ids": np.full((len(nodes), how.top), -1, np.int64),
        "kinds": np.full((len(nodes), how.top), -1, np.int32),
        "scores": np.zeros((len(nodes), how.top), np.float64),
        "residuals": np.zeros(len(nodes), np.float64),
    }
    with Numbering.several(1) as (numbering,):
        held = _Held(sampling, how, numbering)
        numbers = held.number(nodes[there], kinds[there])
        at, size = 0, _GROUP
        while at < len(there):
            some = slice(at, at + size)
            try:
                _push(sampling, how, held, numbers[some], there[some], out)
            except _TooMany:
                if size == 1:
                    raise InvalidRequest(
                        f"nodes[{there[at]}] = {nodes[there[at]]} comes to more than {MOST_PAIRS} nodes with epsilon {how.epsilon:g}, "
                        "the most that is held for one; ask with a larger epsilon"
                    ) from None
                size = max(min(size, len(there) - at) // 2, 1)
                continue
            at += size
    return out


def _ranked(sampling: Sampling, how: Ranking, nodes: Ids, kinds: Types) -> Sections:
    """The whole of it, by the one storaged that has every part."""
    head = store.RankRequest(
        at=sampling.at(),
        edge_types=how.edge_types,
        direction=how.direction,
        uniform=how.uniform,
        alpha=how.alpha,
        epsilon=how.epsilon,
        top=how.top,
        weight=sampling.weights,
    )
    (reply,) = sampling.ask("rank", [(0, Frame(head, {"ids": nodes, "types": kinds}))])
    return dict(reply.arrays)


def _push(sampling: Sampling, how: Ranking, held: _Held, starts: Ids, rows: Ids, out: Sections) -> None:
    """Push the mass of some starts until no node holds back more than it may, and put the highest scores into their rows."""
    with Numbering.several(1) as (pairs,):
        scores, residuals, rounds = _Column(np.float64), _Column(np.float64), _Column(np.int32)
        front = pairs.assign(starts, np.arange(len(starts), dtype=np.int32)).astype(np.int64)
        for column in (scores, residuals, rounds):
            column.reach(len(pairs))
        residuals.values[front] = 1.0
        held.weigh()
        turn = 0
        while front.size:
            turn += 1
            sampling.call.remaining()
            of = pairs.ids[front]
            front = front[np.lexsort((held.types[of], held.ids[of], pairs.trees[front]))]
            held.read(pairs.ids[front])
            per_weight = settle(front, pairs.ids, held.masses, how.alpha, scores.values, residuals.values)
            edges = np.cumsum(held.ends[pairs.ids[front]] - held.begins[pairs.ids[front]])
            met, begin = [], 0
            while begin < len(front):
                done = int(edges[begin - 1]) if begin else 0
                end = max(int(np.searchsorted(edges, done + _PIECE_EDGES, side="right")), begin + 1)
                own, count = slice(begin, end), int(edges[end - 1]) - done
                carried = spread(front[own], per_weight[own], pairs.trees, pairs.ids, held.begins, held.ends, held.neighbors, held.weights, count)
                reached = pairs.assign(carried[1], carried[0])
                if len(pairs) > MOST_PAIRS:
                    raise _TooMany
                for column in (scores, residuals, rounds):
                    column.reach(len(pairs))
                met.append(arrive(reached, carried[2], residuals.values, rounds.values, turn))
                begin = end
            reached_now = np.concatenate(met)
            held.weigh()
            front = reached_now[residuals.values[reached_now] > how.epsilon * held.masses[pairs.ids[reached_now]]]
        out["residuals"][rows] = np.bincount(pairs.trees, weights=residuals.values, minlength=len(starts))
        _top(held, pairs, scores.values, rows, out)


def _top(held: _Held, pairs: Numbering, scores: NDArray[np.float64], rows: Ids, out: Sections) -> None:
    """The highest scores of each start; ties by id, then by type."""
    some = np.flatnonzero(scores > 0)
    of, starts = pairs.ids[some], pairs.trees[some]
    order = np.lexsort((held.types[of], held.ids[of], -scores[some], starts))
    some, of, starts = some[order], of[order], starts[order]
    place = np.arange(len(some)) - np.searchsorted(starts, starts)
    kept = np.flatnonzero(place < out["ids"].shape[1])
    at = (rows[starts[kept]], place[kept])
    out["ids"][at], out["kinds"][at], out["scores"][at] = held.ids[of[kept]], held.types[of[kept]], scores[some[kept]]


class _Column:
    """An array that grows; what is new in it is a given value."""

    def __init__(self, dtype: Any, fill: float = 0) -> None:
        self._fill, self._size = fill, 0
        self._room: NDArray[Any] = np.full(1024, fill, dtype)

    @property
    def values(self) -> NDArray[Any]:
        """What there is of it."""
        return self._room[: self._size]

    def reach(self, size: int) -> None:
        """Make it that long."""
        if size > len(self._room):
            room = np.full(max(size, 2 * len(self._room)), self._fill, self._room.dtype)
            room[: self._size] = self.values
            self._room = room
        self._size = size

    def append(self, values: NDArray[Any]) -> None:
        """Make it longer by these."""
        before = self._size
        self.reach(before + len(values))
        self._room[before : self._size] = values


class _Held:
    """What a request has read of the graph: nodes by number, what their edges weigh, and the neighbors of some."""

    def __init__(self, sampling: Sampling, how: Ranking, numbering: Numbering) -> None:
        self._sampling, self._how, self._numbering = sampling, how, numbering
        schema, out = sampling.space.schema, how.direction == pb.OUT
        self._far = np.array([schema.node_type_id(edge.dst_type if out else edge.src_type) for edge in schema.edge_types], np.int32)
        self._what = read.Adjacent(edge_types=how.edge_types, direction=how.direction, want_weights=not how.uniform, want_edge_ids=False, sort="")
        self._weighed = 0
        self._masses, self._begins, self._ends = _Column(np.float64, np.nan), _Column(np.int64, -1), _Column(np.int64, -1)
        self._neighbors, self._weights = _Column(np.int32), _Column(np.float32)

    @property
    def ids(self) -> Ids:
        """int64[nodes]."""
        return self._numbering.ids

    @property
    def types(self) -> Types:
        """int32[nodes]."""
        return self._numbering.trees

    @property
    def masses(self) -> NDArray[np.float64]:
        """float64[nodes]: what the edges of each weigh together, NaN where nobody asked."""
        return self._masses.values

    @property
    def begins(self) -> Ids:
        """int64[nodes]: where the neighbors of each begin; -1 where they are not read."""
        return self._begins.values

    @property
    def ends(self) -> Ids:
        """int64[nodes]."""
        return self._ends.values

    @property
    def neighbors(self) -> Types:
        """int32[edges], by number."""
        return self._neighbors.values

    @property
    def weights(self) -> NDArray[np.float32]:
        """float32[edges]; none where every edge weighs 1."""
        return self._weights.values

    def number(self, ids: Ids, types: Types) -> Ids:
        """The number of each node."""
        numbers = self._numbering.assign(ids, types)
        for column in (self._masses, self._begins, self._ends):
            column.reach(len(self._numbering))
        return numbers.astype(np.int64)

    def weigh(self) -> None:
        """Ask what the edges of nodes weigh, of whom nobody asked: those that got numbers since, for mass comes to all of them."""
        begin, end = self._weighed, len(self._numbering)
        step = REPLY_BYTES // (8 * len(self._how.edge_types))
        for at in range(begin, end, step):
            some = slice(at, min(at + step, end))
            how = self._how
            weighed = read.measures(self._sampling, how.edge_types, how.direction, how.uniform, self.ids[some], -1, self.types[some])
            self.masses[some] = weighed.sum(axis=1)
        self._weighed = end

    def read(self, numbers: Ids) -> None:
        """Read the neighbors of nodes, of whom they are not held."""
        unread = np.unique(numbers[self.begins[numbers] < 0])
        dead = unread[self.masses[unread] == 0]
        self.begins[dead] = self.ends[dead] = 0
        self._read(unread[self.masses[unread] > 0])

    def _read(self, numbers: Ids) -> None:
        if not len(numbers):
            return
        ids, types = self.ids[numbers], self.types[numbers]
        try:
            found = read.neighbors(self._sampling, self._what, ids, -1, types)
        except InvalidRequest as error:  # more than one reply holds
            if len(numbers) == 1:
                raise InvalidRequest(f"node {ids[0]} has more edges than can be read at a time: {error.message}") from error
            half = len(numbers) // 2
            self._read(numbers[:half])
            self._read(numbers[half:])
            return
        lengths, first = np.diff(found["indptr"]), len(self.neighbors)
        if not self._how.uniform:
            counts = found["weights"] > 0
            lengths = np.diff(np.concatenate([[0], np.cumsum(counts)])[found["indptr"]])
            found = {name: found[name][counts] for name in ("ids", "types", "weights")}
            self._weights.append(found["weights"])
        if first + len(found["ids"]) > MOST_EDGES:
            raise InvalidRequest(
                f"the nodes that mass comes to have more than {MOST_EDGES} edges, the most that one request reads; "
                "ask with a larger epsilon, or for fewer nodes at a time"
            )
        self._neighbors.append(self.number(found["ids"], self._far[found["types"]]).astype(np.int32))
        ends = first + np.cumsum(lengths)
        self.begins[numbers], self.ends[numbers] = ends - lengths, ends
