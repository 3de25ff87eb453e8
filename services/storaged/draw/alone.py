"""Whole subgraphs along one edge type, hop by hop in one call, where that gives what growing them does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkit import rng
from graphkit.bits import stays_near
from graphkit.growth import Growing, key_of_hop, too_many_bytes
from graphkit.jit import settled
from storaged.draw.expand import Expansion
from storaged.draw.lookup import table_of
from storaged.draw.neighbor import NEIGHBORS
from storaged.draw.stops import Stop
from storaged.draw.version import Version
from storaged.kernel import alone as kernel
from storaged.kernel.table import ROWS

_MOST_EDGES = 1 << 20
"""That may be drawn in one call."""


def grow_alone(
    version: Version, how: Expansion, growing: Growing, seeds: NDArray[np.int64], types: NDArray[np.int32], stop: Stop
) -> dict[str, NDArray[Any]] | None:
    """The sections of a subgraph, as `graphkit.growth.grow` gives them; None where it has to grow hop by hop.

    Raises
    ------
    InvalidRequest
        Where it has more than ``growing.most_bytes``.
    """
    reach = growing.reach[0]
    if len(growing.reach) > 1 or reach.near != reach.far or growing.disjoint or how.variates is not None or min(reach.counts) < 0:
        return None
    room = front = seeds.size
    for count in reach.counts:
        front = (room if growing.every else front) * count
        room += front
        if room > _MOST_EDGES:
            return None
    parts, mod = version.schema.parts, version.schema.placement != "mix64"
    table = table_of(version, reach.edge_type, how.direction)
    rows = table[:, ROWS]
    if not mod or not seeds.size or int(rows.min()) < 0 or bool((types != reach.near).any()):
        return None
    highest = max(int(rows.max()) * parts, int(seeds.max()))
    words = (highest >> 6) + 2
    if not stays_near(words, room):
        return None
    streams = [key_of_hop(hop, reach.edge_type) for hop in range(growing.hops)]
    keys = settled(np.array([rng.key_of(how.seed, rng.NEIGHBOR, how.direction, stream) for stream in streams], np.uint64))
    races = settled(np.array([rng.key_of(how.seed, rng.RACE, NEIGHBORS, how.direction, stream, reach.edge_type) for stream in streams], np.uint64))
    numbers, nodes, near, far = np.empty(seeds.size, np.int32), np.empty(room + 1, np.int64), np.empty(room + 2, np.int32), np.empty(room, np.int32)
    eids, weights = np.empty(room if how.want_eids else 0, np.int64), np.empty(room if how.want_weights else 0, np.float32)
    node_counts, edge_counts = np.zeros((growing.node_types, growing.hops + 1), np.int64), np.zeros((1, growing.hops), np.int64)
    total = kernel.grow_alone(
        settled(seeds),
        settled(np.array(reach.counts, np.int64)),
        keys,
        races,
        growing.every,
        np.int64(growing.most_bytes),
        np.int64(parts),
        mod,
        table,
        how.replace,
        how.uniform,
        np.zeros(words, np.uint64),
        numbers,
        nodes,
        near,
        far,
        eids,
        weights,
        node_counts[reach.near],
        edge_counts[0],
        stop.flag,
    )
    stop.check()
    if total == kernel.TOO_MANY:
        raise too_many_bytes(growing.most_bytes)
    if total < 0:
        return None
    met = int(node_counts[reach.near].sum())
    out: dict[str, NDArray[Any]] = {"seeds": numbers, "node_counts": node_counts, "edge_counts": edge_counts}
    for type_id in range(growing.node_types):
        out[f"nodes.{type_id}"] = _cut(nodes, met if type_id == reach.near else 0)
    ends = (near, far) if growing.out else (far, near)
    columns = {"rows": ends[0], "cols": ends[1], "eids": eids if how.want_eids else None, "weights": weights if how.want_weights else None}
    if edge_counts.any() or (node_counts[reach.near, 0] and reach.counts[0]):
        out |= {f"{name}.{reach.edge_type}": _cut(column, total) for name, column in columns.items() if column is not None}
    return out


def _cut(column: NDArray[Any], size: int) -> NDArray[Any]:
    """The first values of a column; by themselves where there is room for twice as many, which nobody is to keep."""
    return column[:size] if 2 * size > column.size else column[:size].copy()
