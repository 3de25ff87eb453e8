"""The audit of an index: whether it has every row once, in order, and whether its tables are the law of the weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asterism_proto.declared import column_of
from asterism_proto.errors import Corrupt
from graphkit.jit import settled
from graphkit.order import sort_keys
from storaged.build.edge_indexes import grow_trees
from storaged.build.table import MAX_DISTANCE
from storaged.reread import law
from storaged.store.image import Adjacency, EdgeImage, NodeImage
from storaged.store.ordered import OWN, STEPS, Near, Ordered, levels_of

_CHUNK = STEPS[-1]


def check_index(where: str, index: Ordered, node: NodeImage, live: int, weights: str) -> None:
    """Hold an index against the rows and the weights of its type.

    Parameters
    ----------
    where : str
        The part and the type, in words.
    index : Ordered
    node : NodeImage
        That it is of, with these weights in the place of its own.
    live : int
        Live rows.
    weights : str
        Their name; ``storaged.store.ordered.OWN`` are the rows' own.

    Raises
    ------
    Corrupt
        At the first thing that is wrong.
    """

    _check(where, index, live, node.rows, node.live, node.weights, weights)


def check_edge_index(where: str, index: Ordered, edge: EdgeImage, weights: str) -> None:
    """As `check_index`, of an edge type: what is ordered are the slots of its out-adjacency."""
    slots = edge.out.nbr.size
    _check(where, index, slots, slots, np.zeros(0, np.uint8), edge.out.weights, weights)


def check_near(where: str, index: Ordered, side: Adjacency, near: Near, weights: str, runs: Sequence[tuple[int, int]]) -> None:
    """Hold the order of each node's edges, at one end, against their values, and its sums against their weights.

    Parameters
    ----------
    where, index, weights
        As of `check_index`.
    side : Adjacency
        With these weights in the place of its own.
    near : Near
        Its order.
    runs : sequence of (int, int)
        Of rows, one after another.

    Raises
    ------
    Corrupt
        At the first thing that is wrong.
    """
    values = {**side.near, "id": side.eid, "weight": side.weights}[column_of(index.column).name]
    if near.order.size != side.nbr.size or near.keys.size != side.nbr.size:
        raise _wrong(where, index, f"its nodes have {near.order.size} edges in order, of {side.nbr.size}")
    for low, high in runs:
        first, end = int(side.indptr[low]), int(side.indptr[high])
        at, bounds = f"places {first} to {end - 1} of its nodes' orders", settled(side.indptr[low : high + 1] - first)
        order = near.order[first:end].astype(np.int64) - first
        rows = np.repeat(np.arange(high - low), np.diff(bounds))
        if order.size and not (int(order.min()) >= 0 and int(order.max()) < order.size and np.array_equal(rows[order], rows)):
            raise _wrong(where, index, f"{at} have an edge of another node")
        if weights == OWN:  # the order is the same by every name, and the column of weights is the own one
            keys = sort_keys(values[first:end] if values.size else np.ones(order.size, np.float32))[order]
            if not np.array_equal(near.keys[first:end], keys) or not np.array_equal(np.lexsort((order, keys, rows)), np.arange(order.size)):
                raise _wrong(where, index, f"{at} are not in order")
            if order.size and int(np.bincount(order).max()) > 1:
                raise _wrong(where, index, f"{at} have an edge twice")
        if weights in near.trees:
            sums = np.empty(order.size, np.float64)
            grow_trees(bounds, np.int64(0), np.int64(high - low), settled(order.astype(np.uint32)), settled(side.weights[first:end]), sums)
            if not np.array_equal(sums, near.trees[weights][first:end]):
                raise _wrong(where, index, f"{at} have other sums than those of their weights {weights!r}")


def _wrong(where: str, index: Ordered, what: str) -> Corrupt:
    return Corrupt(f"{where}: the index on {index.name}: {what}; build the version again")


def _check(where: str, index: Ordered, live: int, rows_of: int, alive: NDArray[np.uint8], weighs: NDArray[np.float32], weights: str) -> None:
    """Hold an order of ``live`` of ``rows_of`` rows, and its tables, against which are ``alive`` (empty: all) and what each ``weighs``."""

    def wrong(what: str) -> Corrupt:
        return _wrong(where, index, what)

    if index.rows.size != live:
        raise wrong(f"it has {index.rows.size} rows of {live}")
    seen = np.zeros(rows_of, np.bool_)
    for low in range(0, live, _CHUNK):
        rows = index.rows[low : low + _CHUNK]
        if int(rows.max(initial=0)) >= rows_of or (alive.size and not alive[rows].all()):
            raise wrong(f"among its rows {low} to {low + rows.size - 1} is one that is not there")
        seen[rows] = True
    if int(np.count_nonzero(seen)) != live:
        raise wrong("a row is there twice")
    for low in range(0, index.values.size, _CHUNK):
        keys = sort_keys(index.values[max(low - 1, 0) : low + _CHUNK])
        if (np.diff(keys) < 0).any():
            raise wrong(f"its values {low} to {low + keys.size - 1} are not in order")
    tables = index.tables.get(weights)
    for level, step in zip(tables.levels if tables is not None else (), levels_of(live), strict=tables is not None):
        for low in range(0, live, _CHUNK):
            here = settled(weighs[index.rows[low : low + _CHUNK]])
            bounds = settled(np.append(np.arange(0, here.size, step), here.size))
            found, fault = law.fresh()
            blocks = slice(low // step, low // step + bounds.size - 1)
            hot, cold = settled(level.hot[low : low + here.size]), settled(level.cold[low : low + here.size])
            law.audit_rows(bounds, here, settled(level.sums[blocks]), hot, cold, 0.0, MAX_DISTANCE, found, fault)
            if fault[1]:
                raise wrong(f"the table of rows {low + int(fault[0]) * step} on is not the law of their weights {weights!r}")
