"""Expansions: a hop of a subgraph, along several edge types, by what each node has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest, Unavailable
from asterism_proto.times import seen_as
from graphkit import rng
from graphkit.growth import ALL, Met, key_of_hop
from graphkit.jit import settled
from graphkit.numbering import paths
from storaged.draw.blocks import Checkpoint, blocks, never, per_node
from storaged.draw.labor import Variates, keep_neighbors
from storaged.draw.lookup import IN, ends, table_of
from storaged.draw.neighbor import NEIGHBORS
from storaged.draw.stops import Stop
from storaged.draw.timed import Until, expand_timed
from storaged.draw.version import Version, checked_found, checked_length
from storaged.kernel import expand as kernel

F64 = NDArray[np.float64]

_COUNTED = 1 << 20
"""Draws from which on it is worth to count first what there is."""


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
    variates: Variates | None = None
    """Whose variates keep edges, instead of drawing them for each node."""


def expand(
    version: Version,
    how: Expansion,
    *,
    edge_type: int,
    hop: int,
    count: int,
    ids: NDArray[np.int64],
    trees: NDArray[np.int32] | None,
    until: Until | None = None,
    stepped: tuple[F64, F64] | None = None,
    checkpoint: Checkpoint = never,
) -> Met:
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
    until : Until, optional
        Of each node: edges after it are not there, along edge types that have times.
    stepped : (float64[m], float64[n]), optional
        Levels of nodes and importances of neighbors, where importance steps were taken before; else they are taken here.
    checkpoint : callable, optional
        Called between blocks of nodes, or every so many edges where they are kept by variates; may raise.

    Raises
    ------
    InvalidRequest, Unavailable
        Where the type, count or direction is impossible, a part is not held here, or nodes of trees or times are to be kept by variates.
    """
    ends(version, edge_type, how.direction)
    if trees is not None:
        checked_length("trees", trees, ids.size)
    if count < ALL:
        raise InvalidRequest(f"count {count}: expected 0 or more, or -1 for all neighbors")
    if how.variates is not None:
        if trees is not None or until is not None:
            raise InvalidRequest("neighbors kept by one variate each are of no tree and of no time: ask without both")
        return _kept(version, how, how.variates, edge_type=edge_type, hop=hop, count=count, ids=ids, stepped=stepped, checkpoint=checkpoint)
    ids = settled(ids)
    if until is not None and seen_as(version.schema, edge_type, incoming=how.direction == IN):
        return expand_timed(
            version,
            seed=how.seed,
            direction=how.direction,
            replace=how.replace,
            uniform=how.uniform,
            want_eids=how.want_eids,
            want_weights=how.want_weights,
            edge_type=edge_type,
            hop=key_of_hop(hop, edge_type),
            count=count,
            ids=ids,
            positions=ids if trees is None else paths(trees, ids),
            until=until,
            checkpoint=checkpoint,
        )
    return _drawn(version, how, edge_type=edge_type, hop=hop, count=count, ids=ids, trees=trees, checkpoint=checkpoint)


def _drawn(
    version: Version,
    how: Expansion,
    *,
    edge_type: int,
    hop: int,
    count: int,
    ids: NDArray[np.int64],
    trees: NDArray[np.int32] | None,
    checkpoint: Checkpoint,
) -> Met:
    """Draw or read the neighbors of nodes along an edge type, block after block."""
    parts, mod = np.int64(version.schema.parts), version.schema.placement != "mix64"
    table = table_of(version, edge_type, how.direction)
    sizes = np.empty(ids.size, np.int32)
    most = ids.size * count
    if count == ALL or (not how.replace and (most > _COUNTED or count > _COUNTED >> 6)):
        existing = _held(int(kernel.count_expansion(ids, parts, mod, table, sizes)), version, ids)
        # Nodes with fewer edges give all of them: room for more than there are is of no use.
        count = ALL if count == ALL else min(count, int(sizes.max(initial=0)))
        most = existing if count == ALL else min(existing, ids.size * count)
    # Of draws this is a bound: nodes may give fewer.
    checked_found("neighbors", most, 8 + 8 * how.want_eids + 4 * how.want_weights if count == ALL else 4)
    out = np.empty(most, np.int64)
    eids, weights = np.empty(most if how.want_eids else 0, np.int64), np.empty(most if how.want_weights else 0, np.float32)
    total = most
    if count == ALL:
        with Stop(checkpoint) as stop:
            kernel.copy_expansion(ids, parts, mod, table, out, eids, weights, stop.flag)
            stop.check()
    else:
        positions = ids if trees is None else settled(paths(trees, ids))
        stream = key_of_hop(hop, edge_type)
        key = rng.key_of(how.seed, rng.NEIGHBOR, how.direction, stream)
        race_key = rng.key_of(how.seed, rng.RACE, NEIGHBORS, how.direction, stream, edge_type)
        total = 0
        with Stop(checkpoint) as stop:
            for block in blocks(ids.size, per_node(count), checkpoint):
                # An empty slice would read as not wanted: where there is no room there is nothing to write.
                room = (out, eids, weights) if not total else (out[total:], eids[total:], weights[total:])
                drawn = kernel.draw_expansion(
                    ids[block],
                    positions[block],
                    key,
                    race_key,
                    parts,
                    mod,
                    table,
                    np.int64(count),
                    how.replace,
                    how.uniform,
                    sizes[block],
                    *room,
                    stop.flag,
                )
                stop.check()
                total += _held(int(drawn), version, ids[block])
    return Met(sizes=sizes, ids=out[:total], eids=eids[:total] if how.want_eids else None, weights=weights[:total] if how.want_weights else None)


def _kept(
    version: Version,
    how: Expansion,
    variates: Variates,
    *,
    edge_type: int,
    hop: int,
    count: int,
    ids: NDArray[np.int64],
    stepped: tuple[F64, F64] | None,
    checkpoint: Checkpoint,
) -> Met:
    return keep_neighbors(
        version,
        variates,
        seed=how.seed,
        direction=how.direction,
        uniform=how.uniform,
        want_eids=how.want_eids,
        want_weights=how.want_weights,
        edge_type=edge_type,
        hop=hop,
        count=count,
        ids=ids,
        stepped=stepped,
        checkpoint=checkpoint,
    )


def _held(total: int, version: Version, ids: NDArray[np.int64]) -> int:
    """A kernel's total; Unavailable where it met a node of a part that is not held here."""
    if total < 0:
        where = f"node {ids[-1 - total]} of space {version.space_id} lives in a part that is not held here"
        raise Unavailable(f"{where}; this host has parts {sorted(version.parts)}")
    return total
