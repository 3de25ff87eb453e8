"""Random walks: neighbors drawn one after another, for as long as they lead to parts that are held here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from graphkit import rng, split
from graphkit.jit import settled
from graphkit.paths import cut, fill
from storaged.draw.ground import Ground, ground_of, sieved
from storaged.draw.lookup import checked_edge_types, node_types
from storaged.draw.version import Version, checked_length, checked_outputs
from storaged.kernel import biased_walk, table
from storaged.kernel.lanes import (
    ATTEMPTS,
    BEFORE_KINDS,
    BEFORES,
    DONE,
    FIELDS,
    IDS,
    KINDS,
    LANES,
    OPEN,
    OPEN_ATTEMPT,
    OPEN_EID,
    OPEN_ID,
    OPEN_TYPE,
    POSITIONS,
    RESTART_KEY,
    RETURN_KEY,
    SLOT_KEY,
    START_KINDS,
    STARTS,
    TYPE_KEY,
    Way,
)
from storaged.kernel.packed_walk import FIELDS as PACKED_FIELDS
from storaged.kernel.packed_walk import LANES as PACKED_LANES
from storaged.kernel.packed_walk import take_packed_walks
from storaged.kernel.rows import salt_keys
from storaged.kernel.walk import take_walks
from storaged.store.image import EMPTY_I64

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]

_ROUNDS, _PACKED_ROUNDS = 1 << 14, 1 << 12
"""Between looks at the clock: some tens of milliseconds."""

LEAST, MOST = 1e-3, 1e3
"""Of p and q: beyond, a step by acceptance takes too many attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How walks go."""

    steps: Sequence[Sequence[int]]
    """Edge types; step s follows ``steps[s % len(steps)]``."""
    length: int
    """Steps of a whole walk."""
    uniform: bool
    direction: int
    seed: int
    restart: float = 0.0
    """The probability that a step leads back to the start, whatever else is there."""
    p: float = 1.0
    q: float = 1.0
    """1 / p is the bias of a step back to where the walk was, 1 / q that of one away from there; 1 is none."""
    want_edge_ids: bool = False

    def __post_init__(self) -> None:
        if not self.steps:
            raise InvalidRequest("a walk without steps; name the edge types of one at least")
        if not 0 <= self.restart <= 1:
            raise InvalidRequest(f"restart {self.restart}: a probability is in 0 .. 1")
        for name, value in (("p", self.p), ("q", self.q)):
            if not LEAST <= value <= MOST:
                raise InvalidRequest(f"{name} {value}: expected {LEAST} to {MOST:g}")

    @property
    def biased(self) -> bool:
        """Whether a step depends on the one before."""
        return (self.p, self.q) != (1.0, 1.0)

    @property
    def want_types(self) -> bool:
        """Whether the types of the edges do not follow from the steps."""
        return self.restart > 0 or any(len(step) > 1 for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """Where walks are. Types are None where ids are looked up (in a space of global ids)."""

    ids: I64
    """int64[m]: nodes of parts held here."""
    kinds: I32 | None
    """int32[m], their types."""
    positions: I64
    """int64[m]: each walk's number in the whole request, under which its steps are drawn, whoever draws them."""
    taken: I32
    """int32[m]: steps that each walk has behind it."""
    starts: I64 | None = None
    start_kinds: I32 | None = None
    """Where each walk began; needed for restarts."""
    before: I64 | None = None
    before_kinds: I32 | None = None
    """int64[m], int32[m]: where each walk was a step ago, -1 at its start and after a restart; needed where steps are biased."""
    attempts: I64 | None = None
    """int64[m]: the attempt that each walk's next step begins with; 0 where left out."""

    @classmethod
    def begun(cls, ids: I64, kinds: I32 | None, positions: I64, rules: Rules) -> Places:
        """Those of walks that are at their start."""
        taken = np.zeros(ids.size, np.int32)
        before = (np.full(ids.size, -1, np.int64), np.full(ids.size, -1, np.int32)) if rules.biased else (None, None)
        return cls(ids=ids, kinds=kinds, positions=positions, taken=taken, starts=ids, start_kinds=kinds, before=before[0], before_kinds=before[1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Open:
    """Steps that hang on an edge which is not held here: candidates, for somebody else to judge."""

    open: NDArray[np.bool_]
    """bool[m]: of which walks."""
    ids: I64
    types: I32
    """int64[m], int32[m]: the neighbor, and the type of the edge to it."""
    eids: I64 | None
    attempts: I64
    """int64[m]: the number of the attempt that each rests on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Walks:
    """The steps that walks took here: row i of the first columns is walk i's."""

    indptr: I64
    """int64[m + 1]."""
    ids: I64
    """int64[k]; -1 as the last one of a walk that found no edge."""
    types: I32 | None
    """int32[k], edge types; -1 for a restart and where there is no node; None where they follow from the steps."""
    eids: I64 | None
    """int64[k], likewise; when wanted."""
    open: Open | None
    """None where steps are not biased."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paths:
    """Whole walks: row i is walk i's, with -1 behind its end."""

    nodes: I64
    """int64[m, length + 1], from the start on."""
    types: I32 | None
    """int32[m, length], edge types; None where they follow from the steps."""
    eids: I64 | None
    """int64[m, length], likewise; when wanted."""


def paths(version: Version, rules: Rules, places: Places, checkpoint: Callable[[], object] = lambda: None) -> Paths:
    """Take whole walks, from where they begin, as `walk` takes their steps.

    Parameters
    ----------
    version : Version
        Of which all parts are held here.
    rules : Rules
    places : Places
        As `Places.begun` makes them.
    checkpoint : callable
        Called now and then; may raise.

    Raises
    ------
    InvalidRequest, Unavailable
        As of `walk`; also where a part is not held here, whether walks come there or not.
    """
    for part in range(version.schema.parts):
        version.image(part)
    checked_outputs("walks", places.ids.size, rules.length + 1)
    nodes = np.empty((places.ids.size, rules.length + 1), np.int64)
    run = _run(version, rules, places, checkpoint, nodes)
    fill(nodes, run.done + 1)
    for column in (run.types, run.eids):
        fill(column, run.done)
    return Paths(nodes=nodes, types=run.types if rules.want_types else None, eids=run.eids if rules.want_edge_ids else None)


def walk(version: Version, rules: Rules, places: Places, checkpoint: Callable[[], object] = lambda: None) -> Walks:
    """Take walks on, each until it ends, leaves the parts held here, or hangs on an edge that is elsewhere.

    Parameters
    ----------
    version, rules, places
    checkpoint : callable
        Called now and then; may raise.

    Raises
    ------
    InvalidRequest, Unavailable
        Where a type or length is impossible, or a part is not held here.

    Notes
    -----
    A step by p and q is drawn by weight and accepted with its bias over the largest one, again and again: what is accepted is
    drawn in proportion to weight times bias (Yang et al. 2019, *KnightKing*, SOSP, section 4). Where steps back have the largest one, it
    is theirs alone: what they are above all others is folded out of the rest, into a box of its own (section 4.2), as large as the row's
    heaviest neighbor would make it. Attempts are keyed by (seed, step, position, attempt): who makes them does not matter.
    """
    run = _run(version, rules, places, checkpoint, None)
    return _walks(rules, run.done - places.taken, run.ids, run.types, run.eids, run.hanging)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Run:
    """What kernels have made of walks."""

    done: I64
    ids: I64
    types: I32
    eids: I64
    hanging: I64


def _run(version: Version, rules: Rules, places: Places, checkpoint: Callable[[], object], whole: I64 | None) -> _Run:
    """Take steps, into the last columns of ``whole`` where that is given: its first one is for where walks start."""
    if rules.restart and places.starts is None:
        raise InvalidRequest("restart without starts: say where each walk began")
    if rules.biased and places.before is None:
        raise InvalidRequest("p or q without before: say where each walk was")
    m, taken = places.ids.size, places.taken
    for name in ("positions", "taken", "kinds", "starts", "start_kinds", "before", "before_kinds", "attempts"):
        column = getattr(places, name)
        if column is not None:
            checked_length(name, column, m)
    if m and not 0 <= int(taken.min()) <= int(taken.max()) <= rules.length:
        raise InvalidRequest(
            f"taken: found {int(taken.min())} to {int(taken.max())}; a walk of {rules.length} steps has 0 to {rules.length} behind it"
        )
    width = rules.length - int(taken.min(initial=rules.length))
    checked_outputs("walks", m, width)
    for step in rules.steps:
        checked_edge_types(version, step, -1, rules.direction)
    edge_types = tuple(sorted({edge_type for step in rules.steps for edge_type in step}))
    ground = version.once((Ground, edge_types, rules.direction), lambda: ground_of(version, edge_types, rules.direction))
    if rules.biased:
        uniform = rules.uniform if _fold(rules) else None
        of = version, ground, edge_types, rules.direction, uniform, checkpoint
        ground = version.once((sieved, edge_types, rules.direction, uniform), lambda: sieved(*of))
    walkers = _walkers(version, rules, places, ground)
    room = width if whole is None else whole.shape[1]
    done, ids = walkers[DONE].copy(), np.empty((m, width), np.int64) if whole is None else whole
    if not m:  # keys of steps that nobody takes are not made
        none = np.empty((0, width), np.int64)
        return _Run(done=done, ids=ids, types=none.astype(np.int32), eids=none, hanging=np.zeros((5, 0), np.int64))
    types = np.empty((m, width) if rules.want_types else (0, 0), np.int32)
    eids = np.empty((m, width) if rules.want_edge_ids else (0, 0), np.int64)
    hanging = np.zeros((5, m if rules.biased else 0), np.int64)
    steps, keys, way = _steps(rules), _keys(rules), _way(version, rules, ground)
    on = ground.table, ground.ends, ground.held, steps, keys, way, done
    found, flat, cursor, rounds = ids, ids.reshape(-1), np.zeros(4, np.int64), np.int64(_ROUNDS)
    packed = ground.packed(rules.uniform) and not (rules.want_types or rules.want_edge_ids)
    if whole is not None and (rules.biased or not packed):
        whole[:, 0] = places.ids
    if packed and not rules.biased:
        order = settled(EMPTY_I64 if not m or taken.min() == taken.max() else np.argsort(taken, kind="stable"))
        out = flat, np.int64(room), np.int64(room - width)
        going = np.zeros(PACKED_FIELDS * PACKED_LANES, np.uint64)
        advance = partial(take_packed_walks, walkers, *on, order, *out, ground.packs, ground.colds, going, cursor, np.int64(_PACKED_ROUNDS))
    elif packed and len(rules.steps) == 1 and ground.returns(edge_types):
        lanes = np.zeros((biased_walk.FIELDS, biased_walk.LANES), np.int64)
        packs = ground.packs, ground.colds
        advance = partial(biased_walk.take_biased_walks, walkers, *on, flat[room - width :], np.int64(room), hanging, *packs, lanes, cursor, rounds)
    else:
        lanes, found = np.zeros((LANES, FIELDS), np.int64), ids if whole is None else np.empty((m, width), np.int64)
        advance = partial(take_walks, walkers, *on, found, types, eids, hanging, lanes, cursor, rounds)
    while True:
        advance()
        if cursor[1] == 0:
            break
        checkpoint()
    if found is not ids:
        ids[:, room - width :] = found
    return _Run(done=done, ids=ids, types=types, eids=eids, hanging=hanging)


def _steps(rules: Rules) -> I64:
    steps = np.full((len(rules.steps), max(len(step) for step in rules.steps)), -1, np.int64)
    for turn, step in enumerate(rules.steps):
        steps[turn, : len(step)] = step
    return settled(steps)


def _keys(rules: Rules) -> NDArray[np.uint64]:
    keys = np.zeros((4, rules.length), np.uint64)
    for of, wanted, tags in (
        (SLOT_KEY, True, (rng.NEIGHBOR, rules.direction)),
        (TYPE_KEY, any(len(step) > 1 for step in rules.steps), (rng.NEIGHBOR_TYPE, rules.direction)),
        (RESTART_KEY, rules.restart > 0, (rng.RESTART,)),
        (RETURN_KEY, rules.biased, (rng.RETURN,)),
    ):
        if wanted:
            salt_keys(rng.key_of(rules.seed, *tags), keys[of])
    return settled(keys)


def _most(rules: Rules) -> float:
    """The largest bias of a step that is not one back."""
    return max(1.0, 1.0 / rules.q)


def _fold(rules: Rules) -> float:
    """By what of the largest bias of other steps that of a step back is above it."""
    return max((1.0 / rules.p) / _most(rules) - 1.0, 0.0)


def _way(version: Version, rules: Rules, ground: Ground) -> Way:
    most, away = _most(rules), 1.0 / rules.q
    return Way(
        parts=np.int64(version.schema.parts),
        shift=np.int64(table.shift_of_parts(np.int64(version.schema.parts))),
        mod=version.schema.placement != "mix64",
        scattered=ground.scattered,
        length=np.int64(rules.length),
        uniform=bool(rules.uniform),
        restart=np.float64(rules.restart),
        biased=rules.biased,
        fold=np.float64(_fold(rules)),
        back=np.float64(1.0 / rules.p / most),
        sure=np.float64(min(1.0, away) / most),
        counts_joined=rules.q > 1.0,
    )


def _walkers(version: Version, rules: Rules, places: Places, ground: Ground) -> I64:
    schema, m = version.schema, places.ids.size
    if not ground.held.all():
        going = (places.ids >= 0) & (places.taken < rules.length)
        for part in np.flatnonzero(np.bincount(split.part_of(places.ids[going], schema.parts, schema.placement), minlength=schema.parts)):
            version.image(int(part))

    def kinds(ids: I64, types: I32 | None) -> NDArray[np.integer[Any]]:
        if types is not None:
            return types
        # Nodes that live elsewhere are nobody's business here.
        here = (ids >= 0) & ground.held[split.part_of(ids, schema.parts, schema.placement)]
        return node_types(version, -1, np.where(here, ids, -1), None) if here.any() else np.full(m, -1, np.int32)

    walkers = np.empty((BEFORE_KINDS + 1 if rules.restart or rules.biased else ATTEMPTS + 1, m), np.int64)
    walkers[ATTEMPTS + 1 :] = -1
    walkers[IDS], walkers[KINDS], walkers[POSITIONS] = places.ids, kinds(places.ids, places.kinds), places.positions
    walkers[DONE], walkers[ATTEMPTS] = places.taken, 0 if places.attempts is None else places.attempts
    if rules.restart and places.starts is not None:
        walkers[STARTS], walkers[START_KINDS] = places.starts, kinds(places.starts, places.start_kinds)
    if rules.biased and places.before is not None:
        walkers[BEFORES], walkers[BEFORE_KINDS] = places.before, kinds(places.before, places.before_kinds)
    return settled(walkers)


def _walks(rules: Rules, lengths: I64, ids: I64, types: I32, eids: I64, hanging: I64) -> Walks:
    indptr = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    whole = indptr[-1] == ids.size

    def flat(column: NDArray[Any]) -> NDArray[Any]:
        return column.reshape(-1) if whole else cut(column, indptr)

    return Walks(
        indptr=indptr,
        ids=flat(ids),
        types=flat(types) if rules.want_types else None,
        eids=flat(eids) if rules.want_edge_ids else None,
        open=Open(
            open=hanging[OPEN] > 0,
            ids=hanging[OPEN_ID],
            types=hanging[OPEN_TYPE].astype(np.int32),
            eids=hanging[OPEN_EID] if rules.want_edge_ids else None,
            attempts=hanging[OPEN_ATTEMPT],
        )
        if rules.biased
        else None,
    )
