"""Whole subgraphs, where all parts are held here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest
from graphkit.growth import Front, Growing, Met, Reach, reach_of
from graphkit.growth import grow as grown
from storaged.draw.alone import grow_alone
from storaged.draw.expand import Expansion, expand
from storaged.draw.lookup import OUT, ends
from storaged.draw.stops import Stop
from storaged.draw.timed import Until
from storaged.draw.version import Version, checked_length


def grow(
    version: Version,
    how: Expansion,
    counts: Mapping[int, tuple[int, ...]],
    seeds: NDArray[np.int64],
    types: NDArray[np.int32],
    *,
    disjoint: bool,
    every: bool,
    most_bytes: int,
    checkpoint: Callable[[], object],
    until: Until | None = None,
) -> dict[str, NDArray[Any]]:
    """Grow a whole subgraph, where all parts are held here.

    Parameters
    ----------
    version : Version
    how : Expansion
    counts : mapping
        Of each edge type, hop by hop.
    seeds, types : int64[m], int32[m]
        Nodes and their types; -1 is no node.
    disjoint, every, most_bytes
        As of `graphkit.growth.Growing`.
    checkpoint : callable
        Called between expansions; may raise.
    until : Until, optional
        Of each seed, and so of its tree: trees are disjoint then.

    Raises
    ------
    InvalidRequest, Unavailable
        As of `expand`; where it has more than ``most_bytes``, or a type is unknown.
    """
    checked_length("types", types, seeds.size)
    if until is not None:
        checked_length("times", until.times, seeds.size)
        if not disjoint:
            raise InvalidRequest("a subgraph until times has disjoint trees: a seed's time holds for its own")
    reach = reach_of(lambda edge_type: ends(version, edge_type, how.direction), list(counts), list(counts.values()))

    def expander(hop: int, along: Sequence[Reach], fronts: Mapping[int, Front]) -> Sequence[Met]:
        met = []
        for one in along:
            front = fronts[one.near]
            own = None if until is None or front.trees is None else until.at(front.trees)
            along_it: dict[str, Any] = {"edge_type": one.edge_type, "hop": hop, "count": one.counts[hop]}
            met.append(expand(version, how, **along_it, ids=front.ids, trees=front.trees, until=own, checkpoint=checkpoint))
            checkpoint()
        return met

    growing = Growing(
        node_types=len(version.schema.node_types), reach=reach, out=how.direction == OUT, disjoint=disjoint, every=every, most_bytes=most_bytes
    )
    at_once = None
    if until is None:
        with Stop(checkpoint) as stop:
            at_once = grow_alone(version, how, growing, seeds, types, stop)
    return grown(growing, seeds, types, expander) if at_once is None else at_once
