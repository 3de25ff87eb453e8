"""Random walks: each host takes the walks that are with it as far as they stay there; who leaves is handed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import storaged_pb2 as store
from graphd import sample, split
from graphd.sample import REPLY_BYTES, Ids, Neighbors, Sampling, Sections, Types
from graphkit.paths import lay


@dataclass(frozen=True, slots=True, kw_only=True)
class Walking:
    """How walks go."""

    steps: tuple[tuple[int, ...], ...]
    """Edge types; step s follows ``steps[s % len(steps)]``."""
    length: int
    uniform: bool
    direction: pb.Direction
    seed: int
    restart: float
    p: float
    q: float
    want_edge_ids: bool
    walks: int = 0
    """From each node; 0: one, without a word on which node it is of."""
    different_first: bool = False
    """The first step goes to different neighbors, and there are as many walks as it finds."""

    @property
    def want_types(self) -> bool:
        """Whether the types of the edges do not follow from the steps."""
        return self.restart > 0 or any(len(step) > 1 for step in self.steps)

    @property
    def biased(self) -> bool:
        """Whether a step depends on the one before."""
        return (self.p, self.q) != (1.0, 1.0)


def walk(sampling: Sampling, how: Walking, nodes: Ids, node_type: int, types: Types | None, *, first_number: int = 0) -> Sections:
    """One walk from each node: sections as RandomWalkReply has them.

    Notes
    -----
    Step s of walk i is the draw of one neighbor at hop s and position i, as a fanout of one neighbor a hop would draw it:
    which host takes it, and after how many handovers, is not in the answer. Walk j of node i is number i * walks + j;
    ``first_number`` is the first one's, where these are some of more.
    """
    width = 8 + 4 * how.want_types + 8 * how.want_edge_ids
    count = len(nodes) * max(how.walks, 1)
    if count * (how.length + 1) * width > REPLY_BYTES:
        most = REPLY_BYTES // (width * (how.length + 1))
        raise InvalidRequest(f"{count} walks of {how.length} steps do not fit into one reply; ask for {most} at a time")
    first = _first_steps(sampling, how, nodes, node_type, types) if how.different_first else None
    starts = None
    numbers = np.arange(first_number, first_number + count, dtype=np.int64)
    if how.walks:
        numbers = numbers if first is None else np.flatnonzero(first["ids"].reshape(-1) >= 0)
        starts = numbers // how.walks
        nodes, types = nodes[starts], None if types is None else types[starts]
    if first is None and len(sampling.space.hosts) == 1:
        found = _whole(sampling, how, nodes, node_type, types, numbers)
        return found if starts is None else {"starts": starts, **found}
    paths = _Paths(sampling, how, nodes, node_type, types, numbers)
    if first is not None:
        paths.begin({name: array.reshape(-1)[numbers] for name, array in first.items()})
    going = paths.going()
    if not going.size and (first is None or how.length > 1):
        # Nobody goes anywhere; whether the request makes sense is still to be said.
        sampling.ask("walk", [(0, paths.request(going))])
    while going.size:
        plan = [(host, going if rows is None else going[rows]) for host, rows in split.owners(sampling.space, paths.current[going])]
        replies = sampling.ask("walk", [(host, paths.request(rows)) for host, rows in plan])
        hanging = [paths.take(rows, reply) for (_, rows), reply in zip(plan, replies, strict=True)]
        if how.biased:
            paths.judge([one for one in hanging if one is not None and one.rows.size])
        going = going[(paths.current[going] >= 0) & (paths.done[going] < how.length)]
    return paths.sections() if starts is None else {"starts": starts, **paths.sections()}


def _whole(sampling: Sampling, how: Walking, nodes: Ids, node_type: int, types: Types | None, numbers: Ids) -> Sections:
    """Walks where one host has every part: it says them as they are answered."""
    sections: Sections = {"ids": nodes, "positions": numbers}
    if types is not None:
        sections["types"] = types
    head = _head(sampling, how)
    head.node_type, head.paths = node_type, True
    (reply,) = sampling.ask("walk", [(0, Frame(head, sections))])
    found: Sections = {"nodes": reply.array("nodes", "int64", 2)}
    if how.want_types:
        found["types"] = reply.array("types", "int32", 2)
    if how.want_edge_ids:
        found["eids"] = reply.array("eids", "int64", 2)
    return found


def _head(sampling: Sampling, how: Walking) -> Any:
    """What a host is to know of all walks."""
    return store.WalkRequest(
        at=sampling.at(),
        steps=[store.Step(edge_types=step) for step in how.steps],
        length=how.length,
        uniform=how.uniform,
        direction=how.direction,
        seed=how.seed,
        restart=how.restart,
        p=how.p,
        q=how.q,
        want_edge_ids=how.want_edge_ids,
        weight=sampling.weights,
    )


def _first_steps(sampling: Sampling, how: Walking, nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """Different neighbors of each node, [m, walks]: drawn at its own place in the request, not at those of its walks."""
    drawing = Neighbors(
        edge_types=how.steps[0],
        count=how.walks,
        replace=False,
        uniform=how.uniform,
        direction=how.direction,
        seed=how.seed,
        hop=0,
        want_weights=False,
        want_edge_ids=how.want_edge_ids,
        want_probabilities=False,
        different=True,
    )
    return sample.neighbors(sampling, drawing, nodes, node_type, types)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Hanging:
    """Walks whose next step counts depending on an edge that another host holds."""

    rows: Ids
    ids: Ids
    types: Types
    eids: Ids | None
    attempts: Ids

    def those(self, mine: NDArray[Any]) -> _Hanging:
        """Some of them."""
        eids = None if self.eids is None else self.eids[mine]
        return _Hanging(rows=self.rows[mine], ids=self.ids[mine], types=self.types[mine], eids=eids, attempts=self.attempts[mine])


class _Paths:
    """The walks of a request under way."""

    def __init__(self, sampling: Sampling, how: Walking, nodes: Ids, node_type: int, types: Types | None, numbers: Ids) -> None:
        self._sampling, self._how, self._starts, self._start_types = sampling, how, nodes, types
        self._numbers = numbers
        schema = sampling.space.schema
        ends = [(schema.node_type_id(edge.src_type), schema.node_type_id(edge.dst_type)) for edge in schema.edge_types]
        near, far = (0, 1) if how.direction == pb.OUT else (1, 0)
        self._near, self._far = np.array([*(end[near] for end in ends), -1], np.int32), np.array([*(end[far] for end in ends), -1], np.int32)
        self._head = _head(sampling, how)
        self._head.node_type = node_type
        self.current = nodes.copy()
        self.done = np.zeros(len(nodes), np.int64)
        if how.length > 1 and node_type >= 0:
            # Behind the first step, types differ from walk to walk.
            self._start_types = np.full(len(nodes), node_type, np.int32)
            self._head.node_type = -1
        self._kinds = None if self._start_types is None else self._start_types.copy()
        self._attempts = np.zeros(len(nodes), np.int64)
        # Steps are written as they come: first of all those of every walk that takes any, and -1 behind them.
        self._nodes = np.empty((len(nodes), how.length + 1), np.int64)
        self._nodes[:, 0] = nodes
        self._types = np.empty((len(nodes), how.length), np.int32) if how.want_types else None
        self._only = np.array([step[0] for step in how.steps], np.int32)
        self._eids = np.empty((len(nodes), how.length), np.int64) if how.want_edge_ids else None

    def going(self) -> Ids:
        """The walks that have steps to take, before any host was asked; the others have no more."""
        going = np.flatnonzero((self.current >= 0) & (self.done < self._how.length))
        if going.size < len(self.done):
            resting = np.ones(len(self.done), np.bool_)
            resting[going] = False
            behind = int(self.done.max(initial=0))
            for paths, first in ((self._nodes, behind + 1), (self._types, behind), (self._eids, behind)):
                if paths is not None:
                    paths[resting, first:] = -1
        return going

    def begin(self, first: Sections) -> None:
        """Take the first step of every walk as it was drawn elsewhere."""
        rows = np.arange(len(self.done))
        via = first["types"] if "types" in first else np.full(len(rows), self._how.steps[0][0], np.int32)
        self._nodes[:, 1] = first["ids"]
        if self._types is not None:
            self._types[:, 0] = via
        if self._eids is not None:
            self._eids[:, 0] = first["eids"]
        self.done[:] = 1
        self._arrive(rows, first["ids"], via)

    def request(self, rows: Ids) -> Frame:
        """What the host is asked that these walks are with."""
        at = self._places(rows)
        sections: Sections = {"ids": self.current[at], "positions": self._numbers[at], "taken": self.done[at].astype(np.int32)}
        if self._kinds is not None:
            sections["types"] = self._kinds[at]
        if self._how.restart:
            sections["starts"] = self._starts[rows]
            if self._start_types is not None:
                sections["start_types"] = self._start_types[rows]
        if self._how.biased:
            sections["before"], kinds = self._before(rows)
            sections["attempts"] = self._attempts[rows]
            if self._kinds is not None:
                sections["before_types"] = kinds
        return Frame(self._head, sections)

    def _places(self, rows: Ids) -> Ids | slice:
        """These walks as an index that copies no more than it must: they ascend, so that as many as there are walks are all of them."""
        return slice(None) if len(rows) == len(self.done) else rows

    def _before(self, rows: Ids) -> tuple[Ids, Types]:
        """Where walks were a step ago, and its type; -1 at the start and after a restart."""
        if not self._how.length:
            return np.full(len(rows), -1, np.int64), np.full(len(rows), -1, np.int32)
        last = np.maximum(self.done[rows] - 1, 0)
        via = np.where(self.done[rows] > 0, self._via(rows, last), np.int32(-1))
        return np.where(via >= 0, self._nodes[rows, last], -1), self._near[via]

    def _via(self, rows: Ids, steps: Ids) -> Types:
        """The edge types of these steps of walks; what is said of steps that found no edge does not matter where types follow from steps."""
        found: Types = self._only[steps % len(self._only)] if self._types is None else self._types[rows, steps]
        return found

    def take(self, rows: Ids, reply: Frame) -> _Hanging | None:
        """Take over the steps that a host has taken with these walks; gives those that hang."""
        indptr, ids = reply.array("indptr", "int64"), reply.array("ids", "int64")
        at, lengths = self._places(rows), np.diff(indptr)
        done = self.done[at]
        lay(indptr, ids, rows, done + 1, self._nodes)
        if self._types is not None:
            lay(indptr, reply.array("types", "int32"), rows, done, self._types)
        if self._eids is not None:
            lay(indptr, reply.array("eids", "int64"), rows, done, self._eids)
        self.done[at] = done + lengths
        # Where a walk ended that has all of its steps is of no use to anybody.
        moved = np.flatnonzero((lengths > 0) & (self.done[at] < self._how.length))
        those = rows[moved]
        self._arrive(those, ids[indptr[1:][moved] - 1], self._via(those, self.done[those] - 1))
        if not self._how.biased:
            return None
        found = _Hanging(
            rows=rows,
            ids=reply.array("open_ids", "int64"),
            types=reply.array("open_types", "int32"),
            eids=None if self._eids is None else reply.array("open_eids", "int64"),
            attempts=reply.array("attempts", "int64"),
        )
        return found.those(np.flatnonzero(reply.array("open", "uint8")))

    def _arrive(self, rows: Ids, ids: Ids, types: Types) -> None:
        """These walks are somewhere else now."""
        self.current[rows] = ids
        self._attempts[rows] = 0
        if self._kinds is not None:
            kinds = self._far[types]
            if self._how.restart and self._start_types is not None:
                kinds = np.where((types < 0) & (ids >= 0), self._start_types[rows], kinds)
            self._kinds[rows] = kinds

    def judge(self, hanging: list[_Hanging]) -> None:
        """Let the hosts of the nodes before say whether these are joined to the candidates, and take the steps that count."""
        asked: list[tuple[int, Frame]] = []
        waiting: list[_Hanging] = []
        for some in hanging:
            turns = (self.done[some.rows] - 1) % len(self._how.steps)
            for turn in np.unique(turns):
                mine = some.those(np.flatnonzero(turns == turn))
                before, kinds = self._before(mine.rows)
                head = store.JoinRequest(at=self._sampling.at(), edge_types=self._how.steps[turn], direction=self._how.direction)
                for host, rows in split.owners(self._sampling.space, before):
                    own = np.arange(len(mine.rows)) if rows is None else rows
                    sections: Sections = {"ids": before[own], "targets": mine.ids[own]}
                    if self._kinds is not None:
                        sections |= {"types": kinds[own], "target_types": self._far[mine.types[own]]}
                    asked.append((host, Frame(head, sections)))
                    waiting.append(mine.those(own))
        for some, reply in zip(waiting, self._sampling.ask("join", asked) if asked else (), strict=True):
            counts = (reply.array("joined", "uint8") > 0) == (self._how.q > 1.0)
            self._attempts[some.rows] = some.attempts + 1
            taken = some.those(np.flatnonzero(counts))
            at = self.done[taken.rows]
            self._nodes[taken.rows, at + 1] = taken.ids
            if self._types is not None:
                self._types[taken.rows, at] = taken.types
            if self._eids is not None and taken.eids is not None:
                self._eids[taken.rows, at] = taken.eids
            self.done[taken.rows] += 1
            self._arrive(taken.rows, taken.ids, taken.types)

    def sections(self) -> Sections:
        """The answer."""
        out: Sections = {"nodes": self._nodes}
        if self._types is not None:
            out["types"] = self._types
        if self._eids is not None:
            out["eids"] = self._eids
        return out
