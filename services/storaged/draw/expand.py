"""Expansions: a hop of a subgraph, along several edge types, by what each node has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest, Unavailable
from graphkit import rng
from graphkit.growth import ALL, Front, Growing, Met, Reach, key_of_hop, reach_of
from graphkit.growth import grow as grown
from graphkit.jit import settled
from graphkit.numbering import paths
from storaged.draw.lookup import OUT, ends, table_of
from storaged.draw.neighbor import NEIGHBORS
from storaged.draw.version import Version, checked_length, checked_outputs
from storaged.kernel import expand as kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """How nodes are expanded."""

    seed: int
    direction: int
    """1 out, 2 in."""
    replace: bool
    uniform: bool
    want_eids: bool
    want_weights: bool


def expand(version: Version, how: Expansion, *, edge_type: int, hop: int, count: int, ids: NDArray[np.int64], trees: NDArray[np.int32] | None) -> Met:
    """Draw ``count`` neighbors of each node along one edge type, or read all of them.

    The draws are those of `neighbors` of one edge type at the hop that `key_of_hop` gives, keyed by the node instead of its place in a request.

    Parameters
    ----------
    version : Version
    how : Expansion
    edge_type, hop, count : int
        A count of -1 reads all neighbors, also those of weight 0.
    ids : int64[m]
        Nodes that live in parts held here; -1 and unknown ids have no neighbors.
    trees : int32[m], optional
        Draws are keyed by tree and node, where there are trees.

    Raises
    ------
    InvalidRequest, Unavailable
        Where the type, count or direction is impossible, or a part is not held here.
    """
    ends(version, edge_type, how.direction)
    if trees is not None:
        checked_length("trees", trees, ids.size)
    if count < ALL:
        raise InvalidRequest(f"count {count}: expected 0 or more, or -1 for all neighbors")
    ids = settled(ids)
    parts, mod = np.int64(version.schema.parts), version.schema.placement != "mix64"
    table = table_of(version, edge_type, how.direction)
    sizes = np.empty(ids.size, np.int32)
    if count == ALL:
        most = _held(int(kernel.count_expansion(ids, parts, mod, table, sizes)), version, ids)
        checked_outputs("neighbors", most)
    else:
        checked_outputs("neighbors", ids.size, count)
        most = ids.size * count
    out = np.empty(most, np.int64)
    eids, weights = np.empty(most if how.want_eids else 0, np.int64), np.empty(most if how.want_weights else 0, np.float32)
    total = most
    if count == ALL:
        kernel.copy_expansion(ids, parts, mod, table, out, eids, weights)
    else:
        positions = ids if trees is None else settled(paths(trees, ids))
        stream = key_of_hop(hop, edge_type)
        key = rng.key_of(how.seed, rng.NEIGHBOR, how.direction, stream)
        race_key = rng.key_of(how.seed, rng.RACE, NEIGHBORS, how.direction, stream, edge_type)
        drawn = kernel.draw_expansion(
            ids, positions, key, race_key, parts, mod, table, np.int64(count), how.replace, how.uniform, sizes, out, eids, weights
        )
        total = _held(int(drawn), version, ids)
    return Met(sizes=sizes, ids=out[:total], eids=eids[:total] if how.want_eids else None, weights=weights[:total] if how.want_weights else None)


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

    Raises
    ------
    InvalidRequest, Unavailable
        As of `expand`; where it has more than ``most_bytes``, or a type is unknown.
    """
    checked_length("types", types, seeds.size)
    reach = reach_of(lambda edge_type: ends(version, edge_type, how.direction), list(counts), list(counts.values()))

    def expander(hop: int, along: Sequence[Reach], fronts: Mapping[int, Front]) -> Sequence[Met]:
        met = []
        for one in along:
            front = fronts[one.near]
            met.append(expand(version, how, edge_type=one.edge_type, hop=hop, count=one.counts[hop], ids=front.ids, trees=front.trees))
            checkpoint()
        return met

    growing = Growing(
        node_types=len(version.schema.node_types), reach=reach, out=how.direction == OUT, disjoint=disjoint, every=every, most_bytes=most_bytes
    )
    return grown(growing, seeds, types, expander)


def _held(total: int, version: Version, ids: NDArray[np.int64]) -> int:
    """A kernel's total; Unavailable where it met a node of a part that is not held here."""
    if total < 0:
        where = f"node {ids[-1 - total]} of space {version.space_id} lives in a part that is not held here"
        raise Unavailable(f"{where}; this host has parts {sorted(version.parts)}")
    return total
