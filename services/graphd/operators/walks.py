"""Random walks: each host advances its walks until they move on to another host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.message import Message
from numpy.typing import NDArray

from asterism_graphkit.arrays.ragged_paths import write_pieces
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators import neighbor_sampling
from graphd.operators.call_seeds import first_step_seed
from graphd.operators.neighbor_sampling import NeighborParams
from graphd.operators.request_context import REPLY_BYTES, Ids, RequestContext, Sections, Types
from graphd.routing import split_merge


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomWalkParams:
    """Parameters of random walks."""

    steps: tuple[tuple[int, ...], ...]
    """Edge types; step s follows ``steps[s % len(steps)]``."""
    length: int
    uniform: bool
    direction: common_pb.Direction
    seed: int
    restart: float
    p: float
    q: float
    want_edge_ids: bool
    walks: int = 0
    """Number of walks per node; 0 for one walk, without a section of starts."""
    distinct_first_step: bool = False
    """Take distinct first steps from a node, with one walk per neighbor found."""

    @property
    def want_types(self) -> bool:
        """True if the types of the edges do not follow from the steps."""
        return self.restart > 0 or any(len(step) > 1 for step in self.steps)

    @property
    def is_biased(self) -> bool:
        """True if a step depends on the previous one (node2vec's p and q)."""
        return (self.p, self.q) != (1.0, 1.0)


def random_walks(
    context: RequestContext,
    params: RandomWalkParams,
    nodes: Ids,
    node_type: int,
    types: Types | None,
    *,
    first_number: int = 0,
) -> Sections:
    """Walk from each node: sections of RandomWalkReply.

    Notes
    -----
    Step s of walk i is keyed by the edge types of that step, s, i and the node that the walk is at.
    The result does not depend on the hosts that take the step or on the number of handovers. Walk j
    of node i has number ``i * walks + j``. ``first_number`` is the number of the first walk, for a
    piece of a larger request. Part of the sampling contract: changing it changes results for a
    given seed."""
    width = 8 + 4 * params.want_types + 8 * params.want_edge_ids
    count = len(nodes) * max(params.walks, 1)
    if count * (params.length + 1) * width > REPLY_BYTES:
        max_walks = REPLY_BYTES // (width * (params.length + 1))
        raise InvalidRequest(
            f"{count} walks of {params.length} steps do not fit into one reply; request "
            f"{max_walks} at a time"
        )
    first_steps = (
        _first_steps(context, params, nodes, node_type, types)
        if params.distinct_first_step
        else None
    )
    starts = None
    numbers = np.arange(first_number, first_number + count, dtype=np.int64)
    if params.walks:
        numbers = (
            numbers if first_steps is None else np.flatnonzero(first_steps["ids"].reshape(-1) >= 0)
        )
        starts = numbers // params.walks
        nodes, types = nodes[starts], None if types is None else types[starts]
    if first_steps is None and len(context.space.hosts) == 1:
        sections = _walk_on_one_host(context, params, nodes, node_type, types, numbers)
        return sections if starts is None else {"starts": starts, **sections}
    state = _WalkState(context, params, nodes, node_type, types, numbers)
    if first_steps is not None:
        state.apply_first_steps(
            {name: array.reshape(-1)[numbers] for name, array in first_steps.items()}
        )
    active = state.active_walks()
    if not active.size and (first_steps is None or params.length > 1):
        # No walk can move, but a host must still validate the request.
        context.dispatch("walk", [(0, state.request(active))])
    while active.size:
        plan = [
            (host, active if rows is None else active[rows])
            for host, rows in split_merge.rows_by_owner(context.space, state.current[active])
        ]
        replies = context.dispatch("walk", [(host, state.request(rows)) for host, rows in plan])
        pending = [
            state.apply_steps(rows, reply) for (_, rows), reply in zip(plan, replies, strict=True)
        ]
        if params.is_biased:
            state.resolve_pending(
                [steps for steps in pending if steps is not None and steps.rows.size]
            )
        active = active[(state.current[active] >= 0) & (state.steps_done[active] < params.length)]
    return state.sections() if starts is None else {"starts": starts, **state.sections()}


def _walk_on_one_host(
    context: RequestContext,
    params: RandomWalkParams,
    nodes: Ids,
    node_type: int,
    types: Types | None,
    numbers: Ids,
) -> Sections:
    """Run walks on the one host that has every partition; it returns whole paths."""
    sections: Sections = {"ids": nodes, "positions": numbers}
    if types is not None:
        sections["types"] = types
    head = _walk_request(context, params)
    head.node_type, head.paths = node_type, True
    (reply,) = context.dispatch("walk", [(0, Frame(head, sections))])
    result: Sections = {"nodes": reply.array("nodes", "int64", 2)}
    if params.want_types:
        result["types"] = reply.array("types", "int32", 2)
    if params.want_edge_ids:
        result["eids"] = reply.array("eids", "int64", 2)
    return result


def _walk_request(context: RequestContext, params: RandomWalkParams) -> storaged_pb.WalkRequest:
    """Build the request fields that are common to all walks."""
    return storaged_pb.WalkRequest(
        version_ref=context.version_ref(),
        steps=[storaged_pb.Step(edge_types=step) for step in params.steps],
        length=params.length,
        uniform=params.uniform,
        direction=params.direction,
        seed=params.seed,
        restart=params.restart,
        p=params.p,
        q=params.q,
        want_edge_ids=params.want_edge_ids,
        weight=context.weight_name,
    )


def _first_steps(
    context: RequestContext,
    params: RandomWalkParams,
    nodes: Ids,
    node_type: int,
    types: Types | None,
) -> Sections:
    """Return distinct neighbors of each node, [m, walks].

    Their draws are keyed by the node and its position in the request, not by those of its walks.
    """
    neighbor_params = NeighborParams(
        edge_types=params.steps[0],
        count=params.walks,
        replace=False,
        uniform=params.uniform,
        direction=params.direction,
        seed=first_step_seed(params.seed, params.steps[0]),
        hop=0,
        want_weights=False,
        want_edge_ids=params.want_edge_ids,
        want_probabilities=False,
        distinct_nodes=True,
    )
    return neighbor_sampling.sample_neighbors(context, neighbor_params, nodes, node_type, types)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PendingSteps:
    """Walks with a candidate step that depends on an edge on another host."""

    rows: Ids
    ids: Ids
    types: Types
    eids: Ids | None
    attempts: Ids

    def select(self, selected: NDArray[Any]) -> _PendingSteps:
        """Return a selection of these walks."""
        eids = None if self.eids is None else self.eids[selected]
        return _PendingSteps(
            rows=self.rows[selected],
            ids=self.ids[selected],
            types=self.types[selected],
            eids=eids,
            attempts=self.attempts[selected],
        )


class _WalkState:
    """State of a request's walks."""

    def __init__(
        self,
        context: RequestContext,
        params: RandomWalkParams,
        nodes: Ids,
        node_type: int,
        types: Types | None,
        numbers: Ids,
    ) -> None:
        self._context, self._params, self._starts, self._start_types = context, params, nodes, types
        self._numbers = numbers
        schema = context.space.schema
        ends = [
            (schema.node_type_id(edge.src_type), schema.node_type_id(edge.dst_type))
            for edge in schema.edge_types
        ]
        source_end, target_end = (0, 1) if params.direction == common_pb.OUT else (1, 0)
        self._source_types, self._target_types = (
            np.array([*(end[source_end] for end in ends), -1], np.int32),
            np.array([*(end[target_end] for end in ends), -1], np.int32),
        )
        self._head = _walk_request(context, params)
        self._head.node_type = node_type
        self.current = nodes.copy()
        self.steps_done = np.zeros(len(nodes), np.int64)
        if params.length > 1 and node_type >= 0:
            # After the first step, types differ between walks.
            self._start_types = np.full(len(nodes), node_type, np.int32)
            self._head.node_type = -1
        self._kinds = None if self._start_types is None else self._start_types.copy()
        self._attempts = np.zeros(len(nodes), np.int64)
        # Every step that a walk takes is written, with -1 after the end, so np.empty suffices.
        self._nodes = np.empty((len(nodes), params.length + 1), np.int64)
        self._nodes[:, 0] = nodes
        self._types = np.empty((len(nodes), params.length), np.int32) if params.want_types else None
        self._only = np.array([step[0] for step in params.steps], np.int32)
        self._eids = (
            np.empty((len(nodes), params.length), np.int64) if params.want_edge_ids else None
        )

    def active_walks(self) -> Ids:
        """Return the walks with steps to take at the start; end the remaining ones with -1."""
        active = np.flatnonzero((self.current >= 0) & (self.steps_done < self._params.length))
        if active.size < len(self.steps_done):
            finished = np.ones(len(self.steps_done), np.bool_)
            finished[active] = False
            next_step = int(self.steps_done.max(initial=0))
            for array, start in (
                (self._nodes, next_step + 1),
                (self._types, next_step),
                (self._eids, next_step),
            ):
                if array is not None:
                    array[finished, start:] = -1
        return active

    def apply_first_steps(self, steps: Sections) -> None:
        """Apply first steps that were sampled separately."""
        rows = np.arange(len(self.steps_done))
        edge_types = (
            steps["types"]
            if "types" in steps
            else np.full(len(rows), self._params.steps[0][0], np.int32)
        )
        self._nodes[:, 1] = steps["ids"]
        if self._types is not None:
            self._types[:, 0] = edge_types
        if self._eids is not None:
            self._eids[:, 0] = steps["eids"]
        self.steps_done[:] = 1
        self._arrive(rows, steps["ids"], edge_types)

    def request(self, rows: Ids) -> Frame[storaged_pb.WalkRequest]:
        """Build the request to the host at which these walks are."""
        selection = self._places(rows)
        sections: Sections = {
            "ids": self.current[selection],
            "positions": self._numbers[selection],
            "steps_done": self.steps_done[selection].astype(np.int32),
        }
        if self._kinds is not None:
            sections["types"] = self._kinds[selection]
        if self._params.restart:
            sections["starts"] = self._starts[rows]
            if self._start_types is not None:
                sections["start_types"] = self._start_types[rows]
        if self._params.is_biased:
            sections["before"], previous_types = self._previous_nodes(rows)
            sections["attempts"] = self._attempts[rows]
            if self._kinds is not None:
                sections["before_types"] = previous_types
        return Frame(self._head, sections)

    def _places(self, rows: Ids) -> Ids | slice:
        """Return an index of these walks that avoids a copy if it covers all walks.

        Rows ascend without repeats, so an index as long as the walks covers all of them.
        """
        return slice(None) if len(rows) == len(self.steps_done) else rows

    def _previous_nodes(self, rows: Ids) -> tuple[Ids, Types]:
        """Return the node and type one step back; -1 at the start and after a restart."""
        if not self._params.length:
            return np.full(len(rows), -1, np.int64), np.full(len(rows), -1, np.int32)
        last_step = np.maximum(self.steps_done[rows] - 1, 0)
        edge_types = np.where(self.steps_done[rows] > 0, self._via(rows, last_step), np.int32(-1))
        return np.where(edge_types >= 0, self._nodes[rows, last_step], -1), self._source_types[
            edge_types
        ]

    def _via(self, rows: Ids, steps: Ids) -> Types:
        """Return the edge types of these steps of walks.

        If types follow from the steps, the values for steps without an edge are arbitrary.
        """
        edge_types: Types = (
            self._only[steps % len(self._only)] if self._types is None else self._types[rows, steps]
        )
        return edge_types

    def apply_steps(self, rows: Ids, reply: Frame[Message]) -> _PendingSteps | None:
        """Apply the steps that a host has taken with these walks; return its pending steps."""
        indptr, ids = reply.array("indptr", "int64"), reply.array("ids", "int64")
        selection, lengths = self._places(rows), np.diff(indptr)
        steps_before = self.steps_done[selection]
        write_pieces(indptr, ids, rows, steps_before + 1, self._nodes)
        if self._types is not None:
            write_pieces(indptr, reply.array("types", "int32"), rows, steps_before, self._types)
        if self._eids is not None:
            write_pieces(indptr, reply.array("eids", "int64"), rows, steps_before, self._eids)
        self.steps_done[selection] = steps_before + lengths
        # The final position of a complete walk is not needed.
        moved = np.flatnonzero((lengths > 0) & (self.steps_done[selection] < self._params.length))
        moved_rows = rows[moved]
        self._arrive(
            moved_rows,
            ids[indptr[1:][moved] - 1],
            self._via(moved_rows, self.steps_done[moved_rows] - 1),
        )
        if not self._params.is_biased:
            return None
        pending = _PendingSteps(
            rows=rows,
            ids=reply.array("open_ids", "int64"),
            types=reply.array("open_types", "int32"),
            eids=None if self._eids is None else reply.array("open_eids", "int64"),
            attempts=reply.array("attempts", "int64"),
        )
        return pending.select(np.flatnonzero(reply.array("open", "uint8")))

    def _arrive(self, rows: Ids, ids: Ids, types: Types) -> None:
        """Move these walks to new nodes."""
        self.current[rows] = ids
        self._attempts[rows] = 0
        if self._kinds is not None:
            node_types = self._target_types[types]
            if self._params.restart and self._start_types is not None:
                node_types = np.where((types < 0) & (ids >= 0), self._start_types[rows], node_types)
            self._kinds[rows] = node_types

    def resolve_pending(self, pending: list[_PendingSteps]) -> None:
        """Check if candidates are adjacent to the previous nodes, and take the accepted steps.

        The hosts of the previous nodes check the edges.
        """
        requests: list[tuple[int, Frame[Message]]] = []
        batches: list[_PendingSteps] = []
        for steps in pending:
            cycle_steps = (self.steps_done[steps.rows] - 1) % len(self._params.steps)
            for cycle_step in np.unique(cycle_steps):
                batch = steps.select(np.flatnonzero(cycle_steps == cycle_step))
                previous, previous_types = self._previous_nodes(batch.rows)
                head = storaged_pb.HasEdgeRequest(
                    version_ref=self._context.version_ref(),
                    edge_types=self._params.steps[cycle_step],
                    direction=self._params.direction,
                )
                for host, rows in split_merge.rows_by_owner(self._context.space, previous):
                    selected = np.arange(len(batch.rows)) if rows is None else rows
                    sections: Sections = {"ids": previous[selected], "targets": batch.ids[selected]}
                    if self._kinds is not None:
                        sections |= {
                            "types": previous_types[selected],
                            "target_types": self._target_types[batch.types[selected]],
                        }
                    requests.append((host, Frame(head, sections)))
                    batches.append(batch.select(selected))
        for steps, reply in zip(
            batches, self._context.dispatch("has_edge", requests) if requests else (), strict=True
        ):
            is_accepted = (reply.array("joined", "uint8") > 0) == (self._params.q > 1.0)
            self._attempts[steps.rows] = steps.attempts + 1
            accepted = steps.select(np.flatnonzero(is_accepted))
            step = self.steps_done[accepted.rows]
            self._nodes[accepted.rows, step + 1] = accepted.ids
            if self._types is not None:
                self._types[accepted.rows, step] = accepted.types
            if self._eids is not None and accepted.eids is not None:
                self._eids[accepted.rows, step] = accepted.eids
            self.steps_done[accepted.rows] += 1
            self._arrive(accepted.rows, accepted.ids, accepted.types)

    def sections(self) -> Sections:
        """Return the sections of the result."""
        out: Sections = {"nodes": self._nodes}
        if self._types is not None:
            out["types"] = self._types
        if self._eids is not None:
            out["eids"] = self._eids
        return out
