"""Random walks: each host takes the walks that are with it as far as they stay there; who leaves is handed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import storaged_pb2 as store
from graphd import split
from graphd.sample import REPLY_BYTES, Ids, Sampling, Sections, Types


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
    want_edge_ids: bool

    @property
    def want_types(self) -> bool:
        """Whether the types of the edges do not follow from the steps."""
        return self.restart > 0 or any(len(step) > 1 for step in self.steps)


def walk(sampling: Sampling, how: Walking, nodes: Ids, node_type: int, types: Types | None) -> Sections:
    """One walk from each node: sections as RandomWalkReply has them.

    Notes
    -----
    Step s of walk i is the draw of one neighbor at hop s and position i, as a fanout of one neighbor a hop would draw it:
    which host takes it, and after how many handovers, is not in the answer.
    """
    width = 8 + 4 * how.want_types + 8 * how.want_edge_ids
    if len(nodes) * (how.length + 1) * width > REPLY_BYTES:
        most = REPLY_BYTES // (width * (how.length + 1))
        raise InvalidRequest(f"{len(nodes)} walks of {how.length} steps do not fit into one reply; ask for {most} at a time")
    paths = _Paths(sampling, how, nodes, node_type, types)
    going = np.flatnonzero(nodes >= 0) if how.length else np.zeros(0, np.int64)
    if not going.size:
        # Nobody goes anywhere; whether the request makes sense is still to be said.
        sampling.ask("walk", [(0, paths.request(going))])
    while going.size:
        plan = [(host, going if rows is None else going[rows]) for host, rows in split.owners(sampling.space, paths.current[going])]
        replies = sampling.ask("walk", [(host, paths.request(rows)) for host, rows in plan])
        for (_, rows), reply in zip(plan, replies, strict=True):
            paths.take(rows, reply)
        going = going[(paths.current[going] >= 0) & (paths.done[going] < how.length)]
    return paths.sections()


class _Paths:
    """The walks of a request under way."""

    def __init__(self, sampling: Sampling, how: Walking, nodes: Ids, node_type: int, types: Types | None) -> None:
        self._how, self._starts, self._start_types = how, nodes, types
        schema = sampling.space.schema
        ends = [schema.node_type_id(edge.dst_type if how.direction == pb.OUT else edge.src_type) for edge in schema.edge_types]
        self._ends = np.array([*ends, -1], np.int32)
        self._head: Any = store.WalkRequest(
            at=sampling.at(),
            steps=[store.Step(edge_types=step) for step in how.steps],
            length=how.length,
            node_type=node_type,
            uniform=how.uniform,
            direction=how.direction,
            seed=how.seed,
            restart=how.restart,
            want_edge_ids=how.want_edge_ids,
        )
        self.current = nodes.copy()
        self.done = np.zeros(len(nodes), np.int64)
        if how.length > 1 and node_type >= 0:
            # Behind the first step, types differ from walk to walk.
            self._start_types = np.full(len(nodes), node_type, np.int32)
            self._head.node_type = -1
        self._kinds = None if self._start_types is None else self._start_types.copy()
        self._nodes = np.full((len(nodes), how.length + 1), -1, np.int64)
        self._nodes[:, 0] = nodes
        self._types = np.full((len(nodes), how.length), -1, np.int32)
        self._eids = np.full((len(nodes), how.length), -1, np.int64) if how.want_edge_ids else None

    def request(self, rows: Ids) -> Frame:
        """What the host is asked that these walks are with."""
        sections: Sections = {"ids": self.current[rows], "positions": rows, "taken": self.done[rows].astype(np.int32)}
        if self._kinds is not None:
            sections["types"] = self._kinds[rows]
        if self._how.restart:
            sections["starts"] = self._starts[rows]
            if self._start_types is not None:
                sections["start_types"] = self._start_types[rows]
        return Frame(self._head, sections)

    def take(self, rows: Ids, reply: Frame) -> None:
        """Take over the steps that a host has taken with these walks."""
        indptr, ids, types = reply.array("indptr", "int64"), reply.array("ids", "int64"), reply.array("types", "int32")
        columns = split.spread(self.done[rows], indptr)
        lengths = np.diff(indptr)
        walks = np.repeat(rows, lengths)
        self._nodes[walks, columns + 1], self._types[walks, columns] = ids, types
        if self._eids is not None:
            self._eids[walks, columns] = reply.array("eids", "int64")
        moved = lengths > 0
        last, mine = indptr[1:][moved] - 1, rows[moved]
        self.done[rows] += lengths
        self.current[mine] = ids[last]
        if self._kinds is not None:
            kinds = self._ends[types[last]]
            if self._how.restart and self._start_types is not None:
                kinds = np.where((types[last] < 0) & (ids[last] >= 0), self._start_types[mine], kinds)
            self._kinds[mine] = kinds

    def sections(self) -> Sections:
        """The answer."""
        out: Sections = {"nodes": self._nodes}
        if self._how.want_types:
            out["types"] = self._types
        if self._eids is not None:
            out["eids"] = self._eids
        return out
