"""Indexes of edge types: all edges in order of a column, and those of each node, at both ends, with trees of what they weigh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.indexes import RANGE
from asterism_proto.meaning import EDGE
from graphkit.jit import kernel, settled
from graphkit.order import sort_keys
from storaged.build.indexes import Ordering, Weights, build_order, place_of
from storaged.build.rows import Rows
from storaged.build.source import Workplace
from storaged.build.steps import State
from storaged.build.timed import order_by
from storaged.build.unit import Unit
from storaged.store.ordered import OWN

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
_CHUNK = 1 << 18


def build_edge_indexes(work: Workplace, type_id: int, sources: Rows, slots: int, sides: Sequence[str]) -> list[dict[str, Any]]:
    """Write the indexes of an edge type, in units. Gives what the manifest says of them.

    Parameters
    ----------
    sources : Rows
        Of the type's source nodes.
    slots : int
        Of the out-adjacency.
    sides : sequence of str
        Digests of the adjacencies: out, and in where it is kept.
    """
    edge_type, entries, name = work.task.schema.edge_types[type_id], [], f"e{type_id}"
    tables = [Weights(OWN, "w", f"{name}.out.weights", None)] if edge_type.weighted else []
    tables += [Weights(table.name, f"w{i}", f"{name}.out.w{i}.weights", asdict(table)) for i, table in enumerate(edge_type.tables)]
    for index in work.task.indexes:
        if (index.element, index.type_id) != (EDGE, type_id):
            continue
        place = place_of(work, index)
        making = Ordering(
            work=work,
            index=index,
            owner=name,
            place=place,
            count=slots,
            chunks=partial(_chunks, slots),
            read=partial(_read, work, name, place, sources),
        )
        entry = build_order(making, sides[:1], tables, sides[:1])
        if index.kind == RANGE and place not in ("src", "dst"):
            for side, digest in zip(("out", "in"), sides, strict=False):
                _near_orders(making, f"{name}.{side}", f"{making.prefix}.{side}", digest, tables)
            entry["sides"] = ["out", "in"][: len(sides)]
        entries.append(entry)
    return entries


def _chunks(slots: int) -> Iterator[I64]:
    for low in range(0, slots, _CHUNK):
        yield np.arange(low, min(low + _CHUNK, slots))


def _read(work: Workplace, name: str, place: str, sources: Rows, slots: I64) -> NDArray[Any]:
    """The values of edges at slots of the out-adjacency."""
    if place == "src":
        return sources.ids_of(work.image.map(f"{name}.src_row")[slots].astype(np.int64))
    if place == "dst":
        nbr: I64 = work.image.map(f"{name}.out.nbr")
        return nbr[slots]
    return _near(work, f"{name}.out", place)[slots] if slots.size else _near(work, f"{name}.out", place)[:0]


def _near(work: Workplace, side: str, place: str) -> NDArray[Any]:
    """The values at every slot of an adjacency."""
    if place == "id":
        return work.image.map(f"{side}.eid")
    if place == "weight":
        slots = work.image.map(f"{side}.eid").size
        return work.image.map(f"{side}.weights") if f"{side}.weights" in work.image else np.broadcast_to(np.float32(1), (slots,))
    return work.image.map(f"{side}.n{place}")


def _near_orders(making: Ordering, side: str, prefix: str, digest: str, tables: Sequence[Weights]) -> None:
    """Write the order of each node's edges at one end, in units: of the order, and of a tree by weights of each name."""
    work = making.work
    rows = work.image.map(f"{side}.eid").size
    order = Unit(
        name=prefix,
        digest=work.input("neighbors in order", asdict(making.index), digest).digest(),
        files=(f"{prefix}.order", f"{prefix}.keys"),
    )
    work.units.make(order, lambda: work.steps.run(prefix, partial(_order, work, side, prefix, making.place), rows=rows))
    for table in tables:
        at = f"{prefix}.{table.at}"
        weights = f"{side}.weights" if table.name == OWN else f"{side}.{table.at}.weights"
        unit = Unit(name=at, digest=work.input("trees of neighbors", order.digest, table.digest).digest(), files=(f"{at}.tree",))
        work.units.make(unit, partial(work.steps.run, at, partial(_trees, work, side, prefix, at, weights), rows=rows))


def _order(work: Workplace, side: str, prefix: str, place: str) -> State:
    values = _near(work, side, place)
    by_slot = work.scratch.create(f"{prefix}.keys", np.int64, (values.size,))
    for low in range(0, values.size, _CHUNK):
        by_slot[low : low + _CHUNK] = sort_keys(values[low : low + _CHUNK])
    order = order_by(work, f"{prefix}.order", work.image.map(f"{side}.indptr"), settled(by_slot))
    keys = work.image.create(f"{prefix}.keys", np.int64, (values.size,))
    for low in range(0, values.size, _CHUNK):
        keys[low : low + _CHUNK] = by_slot[order[low : low + _CHUNK]]
    del by_slot
    work.scratch.remove(f"{prefix}.keys")
    return {}


def _trees(work: Workplace, side: str, prefix: str, at: str, file: str) -> State:
    image = work.image
    indptr, order, weights = (settled(image.map(name)) for name in (f"{side}.indptr", f"{prefix}.order", file))
    grow_trees(indptr, np.int64(0), np.int64(indptr.size - 1), order, weights, image.create(f"{at}.tree", np.float64, (weights.size,)))
    return {}


@kernel
def grow_trees(indptr: I64, first: np.int64, end: np.int64, order: U32, weights: F32, out: F64) -> None:
    """Put what the edges of each row weigh, in their order, as a tree of sums.

    Parameters
    ----------
    indptr : int64[rows + 1]
    first, end : int64
        The rows.
    order, weights : uint32[slots], float32[slots]
    out : float64[slots], out

    Notes
    -----
    Of a row of d edges place j of the tree, 1 <= j < d, is the sum of places 2 j and 2 j + 1; places d to 2 d - 1, which are not written, are the
    weights in the order. Place 0 is the sum of all. A run of the order is so a sum of at most 2 log2 d places, and no sum is a difference.
    """
    for row in range(first, end):
        start = indptr[row]
        size = indptr[row + 1] - start
        for at in range(size - 1, 0, -1):
            left, right = 2 * at, 2 * at + 1
            out[start + at] = (np.float64(weights[order[start + left - size]]) if left >= size else out[start + left]) + (
                np.float64(weights[order[start + right - size]]) if right >= size else out[start + right]
            )
        if size > 0:
            out[start] = out[start + 1] if size > 1 else np.float64(weights[order[start]])
