"""Steps that depend on the one before, as in node2vec: draws by weight, each accepted with its bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphkit import rng
from graphkit.jit import settled
from storaged.draw.lookup import OUT, adjacency, checked_edge_types, groups_of
from storaged.draw.neighbor import neighbors
from storaged.draw.version import Version, checked_length
from storaged.kernel.coins import attempt_positions, toss
from storaged.kernel.pairs import joined

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Mask = NDArray[np.bool_]

_TOGETHER = 1024
_MOST = 64
"""Attempts of all walks at a time, about, and of one walk at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias:
    """How much likelier than by its weight alone a step is: 1 / p back to where the walk was, 1 to a neighbor of that, 1 / q elsewhere."""

    p: float
    q: float

    @property
    def most(self) -> float:
        """The largest bias: what others are accepted in proportion to."""
        return max(1.0 / self.p, 1.0, 1.0 / self.q)

    @property
    def sure(self) -> float:
        """A toss below this accepts whether or not the two are joined."""
        return min(1.0, 1.0 / self.q) / self.most

    @property
    def hopeless(self) -> float:
        """A toss from this on refuses either way."""
        return max(1.0, 1.0 / self.q) / self.most


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Before:
    """Where walks were a step ago."""

    ids: I64
    """int64[m]."""
    kinds: I32 | None
    """int32[m], node types; None: they are looked up."""
    edge_types: Sequence[int]
    """Those of the step that led away from there."""


@dataclass(slots=True, kw_only=True, eq=False)
class Steps:
    """What became of steps."""

    ids: I64
    """int64[m], -1 for none; of open ones the candidate."""
    types: I32
    """int32[m], edge types, -1 for none."""
    eids: I64 | None
    attempts: I64
    """int64[m]: the number of the attempt that each rests on."""
    open: Mask
    """bool[m]: whether the candidate counts depends on an edge that is not held here."""


def are_joined(
    version: Version, *, edge_types: Sequence[int], ids: I64, kinds: I32 | None, targets: I64, target_kinds: I32 | None, direction: int
) -> Mask:
    """Whether there is an edge from each node to its target, along any of some edge types.

    Parameters
    ----------
    version, edge_types, direction
        As in `storaged.draw.neighbors`.
    ids, targets : int64[m]
        Nodes that live in parts held here, and any nodes.
    kinds, target_kinds : int32[m] or None
        Their types; None where ids are global.

    Returns
    -------
    bool[m]
    """
    checked_length("targets", targets, ids.size)
    schema = version.schema
    near = checked_edge_types(version, edge_types, -1, direction)
    out = np.zeros(ids.size, np.bool_)
    for group in groups_of(version, -1, ids, kinds):
        mine = out[group.at]
        for edge_type, end in zip(edge_types, near, strict=True):
            if end != group.type_id:
                continue
            edge = schema.edge_types[edge_type]
            far = schema.node_type_id(edge.dst_type if direction == OUT else edge.src_type)
            wanted = targets[group.at]
            if target_kinds is not None:
                wanted = np.where(target_kinds[group.at] == far, wanted, -1)
            edges = adjacency(group.image, edge_type, direction)
            joined(group.rows, edges.indptr, edges.nbr, settled(wanted), mine)
        out[group.at] = mine
    return out


def take(
    version: Version,
    *,
    bias: Bias,
    edge_types: Sequence[int],
    ids: I64,
    kinds: I32 | None,
    far_kinds: I32,
    positions: I64,
    attempts: I64,
    before: Before,
    held: Mask,
    uniform: bool,
    direction: int,
    seed: int,
    step: int,
    want_edge_ids: bool,
) -> Steps:
    """Take one step of each walk, by weight times bias.

    A candidate is drawn by weight and accepted with its bias over the largest one, again and again: what is accepted is drawn
    in proportion to weight times bias (Yang et al. 2019, *KnightKing*, SOSP, section 4). Attempts are keyed by
    (seed, step, position, attempt): who makes them, and how many at a time, does not matter.

    Parameters
    ----------
    version, edge_types, uniform, direction, seed, want_edge_ids
        As in `storaged.draw.neighbors`.
    ids, kinds : int64[m], int32[m] or None
        Where walks are: nodes of parts held here.
    far_kinds : int32[edge types of the schema]
        The node type that each edge type leads to.
    positions, attempts : int64[m]
        Each walk's number in the request, and the attempt to begin with.
    before : Before
    held : bool[m]
        Whether the node before lives in a part held here, so that its edges can be asked.
    """
    m = ids.size
    out = Steps(
        ids=np.full(m, -1, np.int64),
        types=np.full(m, -1, np.int32),
        eids=np.full(m, -1, np.int64) if want_edge_ids else None,
        attempts=attempts.copy(),
        open=np.zeros(m, np.bool_),
    )
    going = np.arange(m)
    together = 1
    while going.size:
        walks = np.repeat(going, together)
        numbers = (out.attempts[going][:, None] + np.arange(together)).reshape(-1)
        at = np.empty(walks.size, np.int64)
        attempt_positions(settled(positions[walks]), settled(numbers), at)
        at = settled(at)
        drawn = neighbors(
            version,
            edge_types=edge_types,
            node_type=-1,
            ids=settled(ids[walks]),
            types=None if kinds is None else settled(kinds[walks]),
            positions=at,
            count=1,
            replace=True,
            uniform=uniform,
            direction=direction,
            seed=seed,
            hop=step,
            want_weights=False,
            want_edge_ids=want_edge_ids,
        )
        found = drawn.ids[:, 0]
        via = np.where(found >= 0, np.int32(edge_types[0]), np.int32(-1)) if drawn.types is None else drawn.types[:, 0]
        coins = np.empty(walks.size, np.float64)
        toss(rng.key_of(seed, rng.RETURN, step), at, coins)
        fate = _fates(version, bias, before, walks, found, None if kinds is None else far_kinds[via], coins, held[walks], direction)
        # The first attempt of each walk that is not refused decides.
        fates = fate.reshape(going.size, together)
        decided = (fates != _REFUSED).any(axis=1)
        first = np.where(decided, (fates != _REFUSED).argmax(axis=1), 0)
        picks = (np.arange(going.size) * together + first)[decided]
        mine = going[decided]
        out.ids[mine], out.types[mine] = found[picks], via[picks]
        if out.eids is not None and drawn.eids is not None:
            out.eids[mine] = drawn.eids[:, 0][picks]
        out.attempts[mine] = numbers[picks]
        out.open[mine] = fate[picks] == _OPEN
        going = going[~decided]
        out.attempts[going] += together
        together = min(max(_TOGETHER // max(going.size, 1), 1), _MOST)
    return out


_REFUSED, _ACCEPTED, _OPEN = range(3)


def _fates(
    version: Version,
    bias: Bias,
    before: Before,
    walks: I64,
    found: I64,
    found_kinds: I32 | None,
    coins: NDArray[np.float64],
    held: Mask,
    direction: int,
) -> NDArray[np.int8]:
    """What becomes of each candidate."""
    came, kinds = before.ids[walks], None if before.kinds is None else before.kinds[walks]
    back = found == came
    if kinds is not None and found_kinds is not None:
        back &= found_kinds == kinds
    fate = np.where(coins < bias.sure, _ACCEPTED, np.where(coins < bias.hopeless, _OPEN, _REFUSED)).astype(np.int8)
    fate[back] = np.where(coins[back] * bias.most < 1.0 / bias.p, _ACCEPTED, _REFUSED)
    fate[found < 0] = _ACCEPTED
    asked = np.flatnonzero((fate == _OPEN) & held)
    if asked.size:
        near = are_joined(
            version,
            edge_types=before.edge_types,
            ids=settled(came[asked]),
            kinds=None if kinds is None else settled(kinds[asked]),
            targets=settled(found[asked]),
            target_kinds=None if found_kinds is None else found_kinds[asked],
            direction=direction,
        )
        fate[asked] = np.where(near == (bias.q > 1.0), _ACCEPTED, _REFUSED)
    return fate
