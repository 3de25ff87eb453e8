"""Random walks, each continued for as long as it stays in partitions of this host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.ragged_paths import flatten_prefixes, pad_ends
from asterism_graphkit.arrays.stable_sort import stable_order
from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.random import partition_choice, rng
from asterism_proto.errors import InvalidRequest
from storaged.kernels import adjacency_rows
from storaged.kernels.node_rows import salt_keys
from storaged.kernels.walks import node2vec_packed
from storaged.kernels.walks.generic import advance_walks
from storaged.kernels.walks.packed import ACTIVE_WALKS as PACKED_LANES
from storaged.kernels.walks.packed import FIELDS as PACKED_FIELDS
from storaged.kernels.walks.packed import advance_packed_walks
from storaged.kernels.walks.state import (
    ACTIVE_WALKS,
    ATTEMPTS,
    FIELDS,
    IDS,
    IS_PENDING,
    KINDS,
    PENDING_ATTEMPT,
    PENDING_EID,
    PENDING_ID,
    PENDING_TYPE,
    POSITIONS,
    PREVIOUS_IDS,
    PREVIOUS_KINDS,
    RESTART_KEY,
    RETURN_KEY,
    SLOT_KEY,
    START_KINDS,
    STARTS,
    STEPS_DONE,
    TYPE_KEY,
    WalkParams,
    WalkTables,
)
from storaged.sampling.node_lookup import node_types, resolve_local_types
from storaged.sampling.version import LocalVersion, check_length, check_output_size
from storaged.sampling.walks.walk_graph import (
    WalkGraph,
    build_walk_graph,
    with_bloom_filters,
    with_rejected_edges,
)
from storaged.store.image import EMPTY_I64

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]

_ROUNDS, _PACKED_ROUNDS = 1 << 14, 1 << 12
"""Kernel rounds between two checkpoints: some tens of milliseconds."""

MIN_BIAS, MAX_BIAS = 1e-3, 1e3
"""Bounds of p and q: beyond, rejection sampling of a step needs too many attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkSpec:
    """The parameters of walks."""

    steps: Sequence[Sequence[int]]
    """Edge types; step s follows ``steps[s % len(steps)]``."""
    length: int
    """Number of steps of a whole walk."""
    uniform: bool
    direction: int
    seed: int
    restart: float = 0.0
    """Probability that a step returns to the start, regardless of the edges there."""
    p: float = 1.0
    q: float = 1.0
    """node2vec parameters; 1 is no bias.

    1 / p is the bias of a step back to the previous node, 1 / q that of a step away from it.
    """
    want_edge_ids: bool = False

    def __post_init__(self) -> None:
        if not self.steps:
            raise InvalidRequest("edge_types: expected at least one step")
        if not 0 <= self.restart <= 1:
            raise InvalidRequest(f"restart {self.restart}: expected a probability, 0 to 1")
        for name, value in (("p", self.p), ("q", self.q)):
            if not MIN_BIAS <= value <= MAX_BIAS:
                raise InvalidRequest(f"{name} {value}: expected {MIN_BIAS} to {MAX_BIAS:g}")

    @property
    def is_biased(self) -> bool:
        """True if a step depends on the previous one."""
        return (self.p, self.q) != (1.0, 1.0)

    @property
    def want_types(self) -> bool:
        """True if the edge types of a walk do not follow from the steps."""
        return self.restart > 0 or any(len(step) > 1 for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WalkState:
    """The current state of walks.

    Types are None if ids are looked up, in a space of global ids.
    """

    ids: I64
    """Current nodes, in partitions held here: int64, shape (m,)."""
    kinds: I32 | None
    """Types of the current nodes: int32, shape (m,)."""
    positions: I64
    """Index of each walk in the whole request: int64, shape (m,).

    It is part of the random key of each step, so the result does not depend on the host.
    """
    taken: I32
    """Number of steps that each walk has taken: int32, shape (m,)."""
    starts: I64 | None = None
    start_kinds: I32 | None = None
    """Start of each walk; required for restarts."""
    before: I64 | None = None
    before_kinds: I32 | None = None
    """Previous node of each walk and its type: int64, int32, shape (m,).

    They are -1 at the start and after a restart. Required for biased steps.
    """
    attempts: I64 | None = None
    """Attempt number with which each walk's next step begins: int64, shape (m,); default 0."""

    @classmethod
    def at_start(cls, ids: I64, kinds: I32 | None, positions: I64, spec: WalkSpec) -> WalkState:
        """Return the state of walks at their start."""
        taken = np.zeros(ids.size, np.int32)
        before = (
            (np.full(ids.size, -1, np.int64), np.full(ids.size, -1, np.int32))
            if spec.is_biased
            else (None, None)
        )
        return cls(
            ids=ids,
            kinds=kinds,
            positions=positions,
            taken=taken,
            starts=ids,
            start_kinds=kinds,
            before=before[0],
            before_kinds=before[1],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PendingSteps:
    """Steps that depend on an edge that is not held here, with a candidate for another host."""

    is_pending: NDArray[np.bool_]
    """True for walks with a pending step: bool, shape (m,)."""
    ids: I64
    types: I32
    """Candidate neighbors and the types of the edges to them: int64, int32, shape (m,)."""
    eids: I64 | None
    attempts: I64
    """Number of the attempt that proposed each candidate: int64, shape (m,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WalkSteps:
    """The steps that walks took here, as ragged rows: row i belongs to walk i."""

    indptr: I64
    """Row pointers: int64, shape (m + 1,)."""
    ids: I64
    """Node ids: int64, shape (k,); -1 as the last one of a walk that found no edge."""
    types: I32 | None
    """Edge types: int32, shape (k,); -1 for a restart and where there is no node.

    None if they follow from the steps.
    """
    eids: I64 | None
    """Edge ids, if requested: int64, shape (k,); -1 as for ``types``."""
    pending: PendingSteps | None
    """Pending steps; None if steps are not biased."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WalkPaths:
    """Whole walks: row i is walk i, padded with -1."""

    nodes: I64
    """Node ids from the start on: int64, shape (m, length + 1)."""
    types: I32 | None
    """Edge types: int32, shape (m, length); None if they follow from the steps."""
    eids: I64 | None
    """Edge ids, if requested: int64, shape (m, length)."""


def sample_paths(
    version: LocalVersion,
    spec: WalkSpec,
    state: WalkState,
    checkpoint: Callable[[], object] = lambda: None,
) -> WalkPaths:
    """Sample whole walks from their start, with the steps of `continue_walks`.

    Parameters
    ----------
    version : LocalVersion
        Version with all partitions held here.
    spec : WalkSpec
    state : WalkState
        State from `WalkState.at_start`.
    checkpoint : callable
        Called periodically; may raise.

    Returns
    -------
    WalkPaths

    Raises
    ------
    InvalidRequest, Unavailable
        As for `continue_walks`; also if a partition is not held here, even if no walk reaches it.
    """
    for part in range(version.schema.parts):
        version.image(part)
    check_output_size("walks", state.ids.size, spec.length + 1)
    nodes = np.empty((state.ids.size, spec.length + 1), np.int64)
    result = _run_kernels(version, spec, state, checkpoint, nodes)
    pad_ends(nodes, result.done + 1)
    for column in (result.types, result.eids):
        pad_ends(column, result.done)
    return WalkPaths(
        nodes=nodes,
        types=result.types if spec.want_types else None,
        eids=result.eids if spec.want_edge_ids else None,
    )


def continue_walks(
    version: LocalVersion,
    spec: WalkSpec,
    state: WalkState,
    checkpoint: Callable[[], object] = lambda: None,
) -> WalkSteps:
    """Continue walks until each ends, leaves the local partitions, or needs a remote edge.

    Parameters
    ----------
    version : LocalVersion
    spec : WalkSpec
    state : WalkState
    checkpoint : callable
        Called periodically; may raise.

    Returns
    -------
    WalkSteps

    Raises
    ------
    InvalidRequest
        A type or length is invalid.
    Unavailable
        A partition is not held here.

    Notes
    -----
    A step with p and q is sampled by weight and accepted with probability bias / largest bias,
    until it is accepted. The accepted edge has a probability proportional to weight times bias
    (Yang et al. 2019, *KnightKing*, SOSP, section 4). If steps back have the largest bias, their
    excess over all other steps is folded into a separate box (section 4.2). The box is as large as
    the row's heaviest neighbor would need. Steps are keyed by (seed, step and its edge types,
    position, node), and attempts also by their number, so the result does not depend on the host
    that makes them.
    """
    result = _run_kernels(version, spec, state, checkpoint, None)
    return _walk_steps(
        spec, result.done - state.taken, result.ids, result.types, result.eids, result.pending
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _KernelResult:
    """The output of the walk kernels."""

    done: I64
    ids: I64
    types: I32
    eids: I64
    pending: I64


def _run_kernels(
    version: LocalVersion,
    spec: WalkSpec,
    state: WalkState,
    checkpoint: Callable[[], object],
    path_nodes: I64 | None,
) -> _KernelResult:
    """Run the walk kernels.

    With ``path_nodes``, steps are written to its last columns; its first column is for the starts.
    """
    if spec.restart and state.starts is None:
        raise InvalidRequest("starts: required with restart")
    if spec.is_biased and state.before is None:
        raise InvalidRequest("before: required with p or q")
    m, steps_taken = state.ids.size, state.taken
    for name in (
        "positions",
        "taken",
        "kinds",
        "starts",
        "start_kinds",
        "before",
        "before_kinds",
        "attempts",
    ):
        column = getattr(state, name)
        if column is not None:
            check_length(name, column, m)
    if m and not 0 <= int(steps_taken.min()) <= int(steps_taken.max()) <= spec.length:
        raise InvalidRequest(
            f"taken: expected 0 to {spec.length} steps of a walk, found {int(steps_taken.min())} "
            f"to {int(steps_taken.max())}"
        )
    width = spec.length - int(steps_taken.min(initial=spec.length))
    check_output_size("walks", m, width)
    for step in spec.steps:
        resolve_local_types(version, step, -1, spec.direction)
    edge_types = tuple(sorted({edge_type for step in spec.steps for edge_type in step}))
    walk_graph = version.cached(
        (WalkGraph, edge_types, spec.direction),
        lambda: build_walk_graph(version, edge_types, spec.direction),
    )
    if spec.is_biased:
        uniform = spec.uniform if _excess_return(spec) else None
        arguments = version, walk_graph, edge_types, spec.direction, uniform, checkpoint
        walk_graph = version.cached(
            (with_bloom_filters, edge_types, spec.direction, uniform),
            lambda: with_bloom_filters(*arguments),
        )
    if version.rejected is not None:
        walk_graph = with_rejected_edges(walk_graph, version.rejected)
    walkers = _walkers(version, spec, state, walk_graph)
    row_width = width if path_nodes is None else path_nodes.shape[1]
    steps_done, ids = (
        walkers[STEPS_DONE].copy(),
        np.empty((m, width), np.int64) if path_nodes is None else path_nodes,
    )
    if not m:  # No keys are needed for walks that do not exist.
        empty = np.empty((0, width), np.int64)
        return _KernelResult(
            done=steps_done,
            ids=ids,
            types=empty.astype(np.int32),
            eids=empty,
            pending=np.zeros((5, 0), np.int64),
        )
    types = np.empty((m, width) if spec.want_types else (0, 0), np.int32)
    eids = np.empty((m, width) if spec.want_edge_ids else (0, 0), np.int64)
    pending = np.zeros((5, m if spec.is_biased else 0), np.int64)
    tables = WalkTables(
        table=walk_graph.table,
        end_types=walk_graph.ends,
        local_parts=walk_graph.local_parts,
        walkers=walkers,
        steps=_steps(spec),
        keys=_keys(spec),
    )
    step_ids, cursor = ids, np.zeros(4, np.int64)
    packed = (
        walk_graph.is_packed(spec.uniform)
        and version.rejected is None
        and not (spec.want_types or spec.want_edge_ids)
    )
    if path_nodes is not None and (spec.is_biased or not packed):
        path_nodes[:, 0] = state.ids
    params = _walk_params(
        version,
        spec,
        walk_graph,
        row_stride=row_width,
        first_column=row_width - width,
        rounds=_ROUNDS if spec.is_biased or not packed else _PACKED_ROUNDS,
    )
    if packed and not spec.is_biased:
        order = as_kernel_array(
            EMPTY_I64
            if not m or steps_taken.min() == steps_taken.max()
            else stable_order([steps_taken], checkpoint)
        )
        lane_records = np.zeros(PACKED_FIELDS * PACKED_LANES, np.uint64)
        advance = partial(
            advance_packed_walks,
            tables,
            params,
            order,
            steps_done,
            ids.reshape(-1),
            lane_records,
            cursor,
        )
    elif packed and len(spec.steps) == 1 and walk_graph.is_homogeneous(edge_types):
        lanes = np.zeros((node2vec_packed.FIELDS, node2vec_packed.ACTIVE_WALKS), np.int64)
        advance = partial(
            node2vec_packed.advance_node2vec_walks,
            tables,
            params,
            steps_done,
            ids.reshape(-1),
            pending,
            lanes,
            cursor,
        )
    else:
        lanes, step_ids = (
            np.zeros((ACTIVE_WALKS, FIELDS), np.int64),
            ids if path_nodes is None else np.empty((m, width), np.int64),
        )
        advance = partial(
            advance_walks,
            tables,
            params,
            steps_done,
            step_ids,
            types,
            eids,
            pending,
            lanes,
            cursor,
        )
    while True:
        advance()
        if cursor[1] == 0:
            break
        checkpoint()
    if step_ids is not ids:
        ids[:, row_width - width :] = step_ids
    return _KernelResult(done=steps_done, ids=ids, types=types, eids=eids, pending=pending)


def _steps(spec: WalkSpec) -> I64:
    steps = np.full((len(spec.steps), max(len(step) for step in spec.steps)), -1, np.int64)
    for step_row, step in enumerate(spec.steps):
        steps[step_row, : len(step)] = step
    return as_kernel_array(steps)


def step_seed(seed: int, edge_types: Sequence[int]) -> int:
    """Return the seed of the steps along a union of edge types, in any order.

    A step's draws depend on the types of that step only, so fewer steps are a prefix of more. Part
    of the sampling contract: changing it changes results for a given seed.
    """
    return int(rng.key_of(seed, rng.STEP_TYPES, *sorted(edge_types)))


def _keys(spec: WalkSpec) -> NDArray[np.uint64]:
    keys = np.zeros((4, spec.length), np.uint64)
    steps = [tuple(step) for step in spec.steps]
    step_seeds = {step: step_seed(spec.seed, step) for step in set(steps)}
    for key_row, needed, tags in (
        (SLOT_KEY, True, (rng.NEIGHBOR, spec.direction)),
        (TYPE_KEY, any(len(step) > 1 for step in spec.steps), (rng.NEIGHBOR_TYPE, spec.direction)),
        (RESTART_KEY, spec.restart > 0, (rng.RESTART,)),
        (RETURN_KEY, spec.is_biased, (rng.RETURN,)),
    ):
        if needed:
            own_keys = {step: rng.key_of(own_seed, *tags) for step, own_seed in step_seeds.items()}
            step_keys = np.array([own_keys[step] for step in steps], np.uint64)
            salt_keys(as_kernel_array(step_keys), keys[key_row])
    return as_kernel_array(keys)


def _max_forward_bias(spec: WalkSpec) -> float:
    """Return the largest bias of a step that does not go back."""
    return max(1.0, 1.0 / spec.q)


def _excess_return(spec: WalkSpec) -> float:
    """Return the excess bias of a step back over the largest other bias.

    It is (1 / p) / max(1, 1 / q) - 1, and 0 if that is negative.
    """
    return max((1.0 / spec.p) / _max_forward_bias(spec) - 1.0, 0.0)


def _walk_params(
    version: LocalVersion,
    spec: WalkSpec,
    walk_graph: WalkGraph,
    *,
    row_stride: int,
    first_column: int,
    rounds: int,
) -> WalkParams:
    max_bias, away_bias = _max_forward_bias(spec), 1.0 / spec.q
    return WalkParams(
        parts=np.int64(version.schema.parts),
        shift=np.int64(adjacency_rows.parts_shift(np.int64(version.schema.parts))),
        mod=version.schema.placement != "mix64",
        needs_lookup=walk_graph.needs_lookup,
        length=np.int64(spec.length),
        uniform=bool(spec.uniform),
        restart=np.float64(spec.restart),
        biased=spec.is_biased,
        excess_return=np.float64(_excess_return(spec)),
        return_limit=np.float64(1.0 / spec.p / max_bias),
        accept_limit=np.float64(min(1.0, away_bias) / max_bias),
        accept_joined=spec.q > 1.0,
        row_stride=np.int64(row_stride),
        first_column=np.int64(first_column),
        rounds=np.int64(rounds),
        table_parts=np.int64(walk_graph.local_parts.size),
        rejects=walk_graph.rejected_slots != (),
    )


def _walkers(version: LocalVersion, spec: WalkSpec, state: WalkState, walk_graph: WalkGraph) -> I64:
    schema, m = version.schema, state.ids.size
    if not walk_graph.local_parts.all():
        active = (state.ids >= 0) & (state.taken < spec.length)
        for part in np.flatnonzero(
            np.bincount(
                partition_choice.part_of(state.ids[active], schema.parts, schema.placement),
                minlength=schema.parts,
            )
        ):
            version.image(int(part))

    def lookup_kinds(ids: I64, types: I32 | None) -> NDArray[np.integer[Any]]:
        if types is not None:
            return types
        # Nodes of other hosts are not looked up here.
        is_local = (ids >= 0) & walk_graph.local_parts[
            partition_choice.part_of(ids, schema.parts, schema.placement)
        ]
        return (
            node_types(version, -1, np.where(is_local, ids, -1), None)
            if is_local.any()
            else np.full(m, -1, np.int32)
        )

    walkers = np.empty(
        (PREVIOUS_KINDS + 1 if spec.restart or spec.is_biased else ATTEMPTS + 1, m), np.int64
    )
    walkers[ATTEMPTS + 1 :] = -1
    walkers[IDS], walkers[KINDS], walkers[POSITIONS] = (
        state.ids,
        lookup_kinds(state.ids, state.kinds),
        state.positions,
    )
    walkers[STEPS_DONE], walkers[ATTEMPTS] = (
        state.taken,
        0 if state.attempts is None else state.attempts,
    )
    if spec.restart and state.starts is not None:
        walkers[STARTS], walkers[START_KINDS] = (
            state.starts,
            lookup_kinds(state.starts, state.start_kinds),
        )
    if spec.is_biased and state.before is not None:
        walkers[PREVIOUS_IDS], walkers[PREVIOUS_KINDS] = (
            state.before,
            lookup_kinds(state.before, state.before_kinds),
        )
    return as_kernel_array(walkers)


def _walk_steps(
    spec: WalkSpec, lengths: I64, ids: I64, types: I32, eids: I64, pending: I64
) -> WalkSteps:
    indptr = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    is_full = indptr[-1] == ids.size

    def flatten(column: NDArray[Any]) -> NDArray[Any]:
        return column.reshape(-1) if is_full else flatten_prefixes(column, indptr)

    return WalkSteps(
        indptr=indptr,
        ids=flatten(ids),
        types=flatten(types) if spec.want_types else None,
        eids=flatten(eids) if spec.want_edge_ids else None,
        pending=PendingSteps(
            is_pending=pending[IS_PENDING] > 0,
            ids=pending[PENDING_ID],
            types=pending[PENDING_TYPE].astype(np.int32),
            eids=pending[PENDING_EID] if spec.want_edge_ids else None,
            attempts=pending[PENDING_ATTEMPT],
        )
        if spec.is_biased
        else None,
    )
