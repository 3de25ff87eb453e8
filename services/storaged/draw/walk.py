"""Random walks: neighbors drawn one after another, for as long as they lead to parts that are held here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from graphkit import rng, split
from graphkit.jit import settled
from storaged.draw.lookup import OUT, checked_edge_types
from storaged.draw.neighbor import neighbors
from storaged.draw.second import Before, Bias, Steps, take
from storaged.draw.version import Version, checked_length, checked_outputs
from storaged.kernel.coins import flip

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]

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

    def edge_types(self, step: int) -> Sequence[int]:
        """The edge types of a step."""
        return self.steps[step % len(self.steps)]


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Walks:
    """The steps that walks took here: row i of the first columns is walk i's."""

    indptr: I64
    """int64[m + 1]."""
    ids: I64
    """int64[k]; -1 as the last one of a walk that found no edge."""
    types: I32
    """int32[k], edge types; -1 for a restart and where there is no node."""
    eids: I64 | None
    """int64[k], likewise; when wanted."""
    open: Steps | None
    """The next step of walks that hang on an edge which is not held here; None where steps are not biased."""


def walk(version: Version, rules: Rules, places: Places) -> Walks:
    """Take walks on, each until it ends, leaves the parts held here, or hangs on an edge that is elsewhere.

    Raises
    ------
    InvalidRequest, Unavailable
        Where a type or length is impossible, or a part is not held here.
    """
    if rules.restart and places.starts is None:
        raise InvalidRequest("restart without starts: say where each walk began")
    if rules.biased and places.before is None:
        raise InvalidRequest("p or q without before: say where each walk was")
    state = _State(version, rules, places)
    for step in range(int(places.taken.min(initial=rules.length)), rules.length):
        active = state.active(step)
        if not active.size:
            continue
        near = checked_edge_types(version, rules.edge_types(step), -1, rules.direction)
        found, via = np.full(active.size, -1, np.int64), np.full(active.size, -1, np.int32)
        eids = np.full(active.size, -1, np.int64) if rules.want_edge_ids else None
        biased = state.led(active) if rules.biased else np.zeros(active.size, np.bool_)
        settled_here = np.ones(active.size, np.bool_)
        for which, some in ((~biased, False), (biased, True)):
            own = np.flatnonzero(which)
            if not own.size:
                continue
            taken = state.biased(active[own], step) if some else state.plain(active[own], step, near)
            found[own], via[own], settled_here[own] = taken.ids, taken.types, ~taken.open
            if eids is not None and taken.eids is not None:
                eids[own] = taken.eids
        back = np.zeros(active.size, np.bool_)
        if rules.restart and places.starts is not None:
            flip(rng.key_of(rules.seed, rng.RESTART, step), settled(places.positions[active]), np.float64(rules.restart), back)
            found[back], via[back] = places.starts[active[back]], -1
            if eids is not None:
                eids[back] = -1
        state.hold(active[~settled_here & ~back])
        done = settled_here | back
        state.advance(active[done], step, found[done], via[done], None if eids is None else eids[done], back[done])
    return state.walks()


class _State:
    """Where walks are, and what they have met."""

    def __init__(self, version: Version, rules: Rules, places: Places) -> None:
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
        self._version, self._rules, self._places = version, rules, places
        schema = version.schema
        ends = [schema.node_type_id(edge.dst_type if rules.direction == OUT else edge.src_type) for edge in schema.edge_types]
        self._ends = np.array([*ends, -1], np.int32)
        self._done = taken.astype(np.int64)
        self._here = places.ids >= 0
        self._current = places.ids.copy()
        self._kinds = None if places.kinds is None else places.kinds.copy()
        self._before = np.full(m, -1, np.int64) if places.before is None else places.before.copy()
        self._before_kinds = None if places.before_kinds is None else places.before_kinds.copy()
        self._attempts = np.zeros(m, np.int64) if places.attempts is None else places.attempts.copy()
        self._ids = np.full((m, width), -1, np.int64)
        self._types = np.full((m, width), -1, np.int32)
        self._eids = np.full((m, width), -1, np.int64) if rules.want_edge_ids else None
        self._held = np.zeros(schema.parts, np.bool_)
        self._held[list(version.parts)] = True
        self._open: Steps | None = None
        if rules.biased:
            none = np.full(m, -1, np.int64)
            self._open = Steps(
                ids=none,
                types=np.full(m, -1, np.int32),
                eids=none.copy() if rules.want_edge_ids else None,
                attempts=np.zeros(m, np.int64),
                open=np.zeros(m, np.bool_),
            )
        self._candidates: Steps | None = None
        self._candidates_of = np.zeros(0, np.int64)

    def active(self, step: int) -> I64:
        """The walks that take this step here."""
        return np.flatnonzero(self._here & (self._done == step))

    def led(self, active: I64) -> NDArray[np.bool_]:
        """Which of these walks came from a node, so that the next step depends on it."""
        came: NDArray[np.bool_] = self._before[active] >= 0
        return came

    def plain(self, active: I64, step: int, near: Sequence[int]) -> Steps:
        """A step of these walks that depends on where they are only."""
        rules, kind, kinds = self._rules, -1, None
        edge_types = rules.edge_types(step)
        if self._kinds is not None:
            kinds = self._kinds[active]
            if int(kinds[0]) in near and bool((kinds == kinds[0]).all()):
                kind, kinds = int(kinds[0]), None
        drawn = neighbors(
            self._version,
            edge_types=edge_types,
            node_type=kind,
            ids=settled(self._current[active]),
            types=None if kinds is None else settled(kinds),
            positions=settled(self._places.positions[active]),
            count=1,
            replace=True,
            uniform=rules.uniform,
            direction=rules.direction,
            seed=rules.seed,
            hop=step,
            want_weights=False,
            want_edge_ids=rules.want_edge_ids,
        )
        found = drawn.ids[:, 0]
        via = np.where(found >= 0, np.int32(edge_types[0]), np.int32(-1)) if drawn.types is None else drawn.types[:, 0]
        none = np.zeros(active.size, np.bool_)
        return Steps(ids=found, types=via, eids=None if drawn.eids is None else drawn.eids[:, 0], attempts=self._attempts[active], open=none)

    def biased(self, active: I64, step: int) -> Steps:
        """A step of these walks that depends on where they were."""
        rules, schema = self._rules, self._version.schema
        before = self._before[active]
        taken = take(
            self._version,
            bias=Bias(p=rules.p, q=rules.q),
            edge_types=rules.edge_types(step),
            ids=self._current[active],
            kinds=None if self._kinds is None else self._kinds[active],
            far_kinds=self._ends,
            positions=self._places.positions[active],
            attempts=self._attempts[active],
            before=Before(
                ids=before, kinds=None if self._before_kinds is None else self._before_kinds[active], edge_types=rules.edge_types(step - 1)
            ),
            held=self._held[split.part_of(before, schema.parts, schema.placement)],
            uniform=rules.uniform,
            direction=rules.direction,
            seed=rules.seed,
            step=step,
            want_edge_ids=rules.want_edge_ids,
        )
        self._candidates, self._candidates_of = taken, active
        return taken

    def hold(self, walks: I64) -> None:
        """These walks hang on an edge that is elsewhere: their candidates are for somebody else to judge."""
        if not walks.size:
            return
        assert self._open is not None
        assert self._candidates is not None
        at = np.searchsorted(self._candidates_of, walks)
        out, found = self._open, self._candidates
        out.ids[walks], out.types[walks], out.attempts[walks], out.open[walks] = found.ids[at], found.types[at], found.attempts[at], True
        if out.eids is not None and found.eids is not None:
            out.eids[walks] = found.eids[at]
        self._here[walks] = False

    def advance(self, active: I64, step: int, found: I64, via: I32, eids: I64 | None, back: NDArray[np.bool_]) -> None:
        """These walks have taken a step, some of them back to their starts."""
        schema, places = self._version.schema, self._places
        column = step - places.taken[active]
        self._ids[active, column], self._types[active, column] = found, via
        if self._eids is not None and eids is not None:
            self._eids[active, column] = eids
        self._done[active] = step + 1
        self._attempts[active] = 0
        self._before[active] = np.where(back, -1, self._current[active])
        self._current[active] = found
        if self._kinds is not None:
            if self._before_kinds is not None:
                self._before_kinds[active] = self._kinds[active]
            self._kinds[active] = self._ends[via]
            if places.start_kinds is not None:
                self._kinds[active[back]] = places.start_kinds[active[back]]
        alive = found >= 0
        self._here[active] = alive & self._held[split.part_of(np.where(alive, found, 0), schema.parts, schema.placement)]

    def walks(self) -> Walks:
        """What was met."""
        lengths = self._done - self._places.taken
        indptr = np.zeros(lengths.size + 1, np.int64)
        np.cumsum(lengths, out=indptr[1:])
        met = np.arange(self._ids.shape[1]) < lengths[:, None]
        eids = None if self._eids is None else self._eids[met]
        return Walks(indptr=indptr, ids=self._ids[met], types=self._types[met], eids=eids, open=self._open)
