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
from storaged.draw.version import Version, checked_length, checked_outputs
from storaged.kernel.coins import flip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Walks:
    """The steps that walks took here: row i of each column is walk i's."""

    indptr: NDArray[np.int64]
    """int64[m + 1]."""
    ids: NDArray[np.int64]
    """int64[k]; -1 as the last one of a walk that found no edge."""
    types: NDArray[np.int32]
    """int32[k], edge types; -1 for a restart and where there is no node."""
    eids: NDArray[np.int64] | None
    """int64[k], likewise; when wanted."""


def walk(
    version: Version,
    *,
    steps: Sequence[Sequence[int]],
    length: int,
    node_type: int,
    ids: NDArray[np.int64],
    types: NDArray[np.int32] | None = None,
    positions: NDArray[np.int64],
    taken: NDArray[np.int32],
    starts: NDArray[np.int64] | None = None,
    start_types: NDArray[np.int32] | None = None,
    uniform: bool,
    direction: int,
    seed: int,
    restart: float,
    want_edge_ids: bool,
) -> Walks:
    """Take walks on, each until it ends or leaves the parts held here.

    Parameters
    ----------
    version : Version
    steps : sequence of sequences of int
        Edge types; step s follows ``steps[s % len(steps)]``.
    length : int
        Steps of a whole walk.
    node_type, types, uniform, direction, seed
        As of `neighbors`.
    ids : int64[m]
        Where each walk is: nodes of parts held here.
    positions : int64[m]
        Each walk's number in the whole request: step s is the draw of one neighbor at hop s under this position, whoever
        takes it.
    taken : int32[m]
        Steps that each walk has behind it.
    starts, start_types : int64[m], int32[m], optional
        Where each walk began; needed where ``restart`` > 0. Without types the starts are of ``node_type``.
    restart : float
        The probability that a step leads back to the start, whatever else is there.

    Raises
    ------
    InvalidRequest, Unavailable
        Where a type, length or probability is impossible, or a part is not held here.
    """
    state = _State(version, length, node_type, ids, types, taken, want_edge_ids=want_edge_ids)
    checked_length("positions", positions, ids.size)
    if not steps:
        raise InvalidRequest("a walk without steps; name the edge types of one at least")
    if not 0 <= restart <= 1:
        raise InvalidRequest(f"restart {restart}: a probability is in 0 .. 1")
    if restart and starts is None:
        raise InvalidRequest("restart without starts: say where each walk began")
    first = int(taken.min(initial=length))
    for step in range(first, length):
        active = state.active(step)
        if active.size == 0:
            continue
        edge_types = steps[step % len(steps)]
        kind, kinds = state.kinds_of(active, checked_edge_types(version, edge_types, -1, direction))
        drawn = neighbors(
            version,
            edge_types=edge_types,
            node_type=kind,
            ids=settled(state.current[active]),
            types=kinds,
            positions=settled(positions[active]),
            count=1,
            replace=True,
            uniform=uniform,
            direction=direction,
            seed=seed,
            hop=step,
            want_weights=False,
            want_edge_ids=want_edge_ids,
        )
        found = drawn.ids[:, 0].copy()
        via = np.where(found >= 0, np.int32(edge_types[0]), np.int32(-1)) if drawn.types is None else drawn.types[:, 0].copy()
        eids = None if drawn.eids is None else drawn.eids[:, 0].copy()
        back = None
        if restart and starts is not None:
            back = np.empty(active.size, np.bool_)
            flip(rng.key_of(seed, rng.RESTART, step), settled(positions[active]), np.float64(restart), back)
            found[back], via[back] = starts[active[back]], -1
            if eids is not None:
                eids[back] = -1
        state.advance(active, step, found, via, eids, direction)
        if back is not None:
            state.recall(active[back], start_types, node_type)
    return state.walks()


class _State:
    """Where walks are, and what they have met."""

    def __init__(
        self,
        version: Version,
        length: int,
        node_type: int,
        ids: NDArray[np.int64],
        types: NDArray[np.int32] | None,
        taken: NDArray[np.int32],
        *,
        want_edge_ids: bool,
    ) -> None:
        checked_length("taken", taken, ids.size)
        if taken.size and not 0 <= int(taken.min()) <= int(taken.max()) <= length:
            raise InvalidRequest(f"taken: found {int(taken.min())} to {int(taken.max())}; a walk of {length} steps has 0 to {length} behind it")
        width = length - int(taken.min(initial=length))
        checked_outputs("walks", ids.size, width)
        self._version = version
        self._taken, self._done = taken, taken.astype(np.int64)
        self._here = ids >= 0
        self.current = ids.copy()
        self._kinds: NDArray[np.int32] | None = None
        if types is not None:
            checked_length("types", types, ids.size)
            self._kinds = types.copy()
        elif node_type >= 0:
            self._kinds = np.full(ids.size, node_type, np.int32)
        self._ids = np.full((ids.size, width), -1, np.int64)
        self._types = np.full((ids.size, width), -1, np.int32)
        self._eids = np.full((ids.size, width), -1, np.int64) if want_edge_ids else None
        self._held = np.zeros(version.schema.parts, np.bool_)
        self._held[list(version.parts)] = True

    def active(self, step: int) -> NDArray[np.int64]:
        """The walks that take this step here."""
        return np.flatnonzero(self._here & (self._done == step))

    def kinds_of(self, active: NDArray[np.int64], near: Sequence[int]) -> tuple[int, NDArray[np.int32] | None]:
        """The node type of all of these, or -1 and each one's; neither where ids are looked up."""
        if self._kinds is None:
            return -1, None
        kinds = self._kinds[active]
        first = int(kinds[0])
        return (first, None) if first in near and bool((kinds == first).all()) else (-1, settled(kinds))

    def advance(
        self,
        active: NDArray[np.int64],
        step: int,
        found: NDArray[np.int64],
        via: NDArray[np.int32],
        eids: NDArray[np.int64] | None,
        direction: int,
    ) -> None:
        """These walks have taken a step."""
        schema = self._version.schema
        column = step - self._taken[active]
        self._ids[active, column], self._types[active, column] = found, via
        if self._eids is not None and eids is not None:
            self._eids[active, column] = eids
        self._done[active] = step + 1
        self.current[active] = found
        if self._kinds is not None:
            ends = [schema.node_type_id(edge.dst_type if direction == OUT else edge.src_type) for edge in schema.edge_types]
            self._kinds[active] = np.array([*ends, -1], np.int32)[via]
        alive = found >= 0
        self._here[active] = alive & self._held[split.part_of(np.where(alive, found, 0), schema.parts, schema.placement)]

    def recall(self, back: NDArray[np.int64], start_types: NDArray[np.int32] | None, node_type: int) -> None:
        """These walks are where they began."""
        if self._kinds is not None:
            self._kinds[back] = node_type if start_types is None else start_types[back]

    def walks(self) -> Walks:
        """What was met."""
        lengths = self._done - self._taken
        indptr = np.zeros(lengths.size + 1, np.int64)
        np.cumsum(lengths, out=indptr[1:])
        met = np.arange(self._ids.shape[1]) < lengths[:, None]
        return Walks(indptr=indptr, ids=self._ids[met], types=self._types[met], eids=None if self._eids is None else self._eids[met])
