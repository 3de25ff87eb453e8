"""Global draws of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphkit import rng
from storaged.draw.entries import draw_rows, local_draws, uniform_table
from storaged.draw.race import Race
from storaged.draw.version import NODE, Version
from storaged.kernel import columns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeDraws:
    """Drawn nodes, in order of the draws."""

    ids: NDArray[np.int64]
    """int64[k]."""
    types: NDArray[np.int32]
    """int32[k]."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeRace:
    """The first of a race over nodes, in order of arrival."""

    ids: NDArray[np.int64]
    """int64[k], k less than asked for where there are no more."""
    types: NDArray[np.int32]
    """int32[k]."""
    keys: NDArray[np.float64]
    """float64[k], ascending; races over other parts merge by (key, type, id)."""


def nodes(version: Version, *, types: Sequence[int], parts: Sequence[int], seed: int, start: int, count: int, uniform: bool) -> NodeDraws:
    """The draws start .. start + count - 1 that fall on ``parts``, in order.

    Parameters
    ----------
    version : Version
    types : sequence of int
        Node types to draw from, in proportion to their totals.
    parts : sequence of int
        Parts to answer for.
    seed : int
        64 bits.
    start, count : int
        Numbers of the draws; each is a function of (seed, its number) alone.
    uniform : bool
        Every live node alike, instead of by weight.

    Raises
    ------
    InvalidRequest, NotFound, Unavailable
        Where a number is impossible, there is nothing to draw, or a part is not held here.
    """
    local = local_draws(version, NODE, types=types, parts=parts, seed=seed, start=start, count=count, uniform=uniform)
    key = rng.key_of(seed, rng.NODE_ROW)
    ids = np.empty(local.draws.size, np.int64)
    for type_id, image, own in local.of_parts(version):
        node = image.nodes[type_id]
        rows = draw_rows(key, start, local.draws[own], uniform_table(node.count, node.live_rows) if uniform else node.table)
        columns.place_ids(rows, local.places[own], node.ids, np.int64(image.parts), np.int64(image.part), ids)
    return NodeDraws(ids=ids, types=local.types)


def race_nodes(
    version: Version,
    *,
    types: Sequence[int],
    parts: Sequence[int],
    seed: int,
    count: int,
    taken_ids: NDArray[np.int64],
    taken_types: NDArray[np.int32],
    uniform: bool = False,
) -> NodeRace:
    """The ``count`` nodes of ``parts`` with the smallest exponential keys among those not taken.

    Parameters
    ----------
    version, types, parts, seed, uniform
        As in `nodes`.
    count : int
        How many at most.
    taken_ids, taken_types : int64[t], int32[t]
        Nodes that do not take part.

    Raises
    ------
    InvalidRequest, Unavailable
        As `nodes`.
    """
    race = Race(version, NODE, types=types, parts=parts, count=count, taken_ids=taken_ids, taken_types=taken_types)
    for type_id, image in race.entries:
        node = image.nodes[type_id]
        race.run(seed, type_id, image, rows=node.rows, ids=node.ids, live=node.live, weights=node.weights, uniform=uniform)
    race.finish()
    return NodeRace(ids=race.items, types=race.tags, keys=race.keys)
