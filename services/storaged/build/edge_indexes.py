"""Build indexes of edge types.

These are indexes of all edges by a column, of each node's edges, and columns stored next to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.sort_keys import sort_keys
from asterism_graphkit.compile.jit import as_kernel_array, kernel
from asterism_model.elements import EDGE
from asterism_model.indexes import RANGE
from asterism_model.schema import EdgeType
from storaged.build.block_reader import BuildContext, Sections
from storaged.build.build_steps import StepState
from storaged.build.indexes import IndexBuild, IndexWeights, build_index, column_place
from storaged.build.node_rows import RowMap
from storaged.build.time_index import sort_row_slots, time_bits
from storaged.build.unit_cache import BuildUnit
from storaged.build.weights import COLUMN_PREFIX
from storaged.store.column_index import OWN_WEIGHT_NAME

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
_CHUNK = 1 << 18


def build_edge_indexes(
    context: BuildContext, type_id: int, sources: RowMap, slots: int, sides: Sequence[str]
) -> list[dict[str, Any]]:
    """Build the indexes of an edge type, in units; return their manifest entries.

    Parameters
    ----------
    context : BuildContext
    type_id : int
    sources : RowMap
        Rows of the type's source nodes.
    slots : int
        Number of slots of the out-adjacency.
    sides : sequence of str
        Digests of the adjacencies: out, and in if the graph space stores it.
    """
    edge_type, entries, name = context.task.schema.edge_types[type_id], [], f"e{type_id}"
    tables = (
        [IndexWeights(OWN_WEIGHT_NAME, "w", f"{name}.out.weights", None)]
        if edge_type.weighted
        else []
    )
    tables += [
        IndexWeights(table.name, f"w{i}", f"{name}.out.w{i}.weights", asdict(table))
        for i, table in enumerate(edge_type.tables)
    ]
    for index in context.task.indexes:
        if (index.element, index.type_id) != (EDGE, type_id):
            continue
        column_key = column_place(context, index)
        index_build = IndexBuild(
            work=context,
            index=index,
            owner=name,
            column_place=column_key,
            count=slots,
            chunks=partial(_slot_chunks, slots),
            read=partial(_read, context, name, column_key, sources),
        )
        entry = build_index(index_build, sides[:1], tables, sides[:1])
        if index.kind == RANGE and column_key not in ("src", "dst"):
            for side, digest in zip(("out", "in"), sides, strict=False):
                _build_sorted_edges(
                    index_build, f"{name}.{side}", f"{index_build.prefix}.{side}", digest, tables
                )
            entry["sides"] = ["out", "in"][: len(sides)]
        entries.append(entry)
    return entries


def _slot_chunks(slots: int) -> Iterator[I64]:
    for low in range(0, slots, _CHUNK):
        yield np.arange(low, min(low + _CHUNK, slots))


def _read(
    context: BuildContext, name: str, column_key: str, sources: RowMap, slots: I64
) -> NDArray[Any]:
    """Return the values of edges at slots of the out-adjacency."""
    if column_key == "src":
        return sources.ids_of(context.image.map(f"{name}.src_row")[slots].astype(np.int64))
    if column_key == "dst":
        nbr: I64 = context.image.map(f"{name}.out.nbr")
        return nbr[slots]
    return (
        _slot_values(context, f"{name}.out", column_key)[slots]
        if slots.size
        else _slot_values(context, f"{name}.out", column_key)[:0]
    )


def _slot_values(context: BuildContext, side: str, column_key: str) -> NDArray[Any]:
    """Return the values at all slots of an adjacency."""
    if column_key == "id":
        return context.image.map(f"{side}.eid")
    if column_key == "weight":
        slots = context.image.map(f"{side}.eid").size
        return (
            context.image.map(f"{side}.weights")
            if f"{side}.weights" in context.image
            else np.broadcast_to(np.float32(1), (slots,))
        )
    return context.image.map(f"{side}.n{column_key}")


def _build_sorted_edges(
    index_build: IndexBuild, side: str, prefix: str, digest: str, tables: Sequence[IndexWeights]
) -> None:
    """Build the order of each node's edges at one end, and trees of the weights of each name.

    The order and each tree are separate units.
    """
    context = index_build.work
    rows = context.image.map(f"{side}.eid").size
    order_unit = BuildUnit(
        name=prefix,
        digest=context.unit_input("neighbors in order", asdict(index_build.index), digest).digest(),
        files=(f"{prefix}.order", f"{prefix}.keys"),
    )
    context.units.make(
        order_unit,
        lambda: context.steps.run(
            prefix, partial(_sort_edges, context, side, prefix, index_build.column_place), rows=rows
        ),
    )
    for table in tables:
        table_prefix = f"{prefix}.{table.suffix}"
        weights = (
            f"{side}.weights" if table.name == OWN_WEIGHT_NAME else f"{side}.{table.suffix}.weights"
        )
        unit = BuildUnit(
            name=table_prefix,
            digest=context.unit_input(
                "trees of neighbors", order_unit.digest, table.digest
            ).digest(),
            files=(f"{table_prefix}.tree",),
        )
        context.units.make(
            unit,
            partial(
                context.steps.run,
                table_prefix,
                partial(_build_weight_trees, context, side, prefix, table_prefix, weights),
                rows=rows,
            ),
        )


def _sort_edges(context: BuildContext, side: str, prefix: str, column_key: str) -> StepState:
    values = _slot_values(context, side, column_key)
    slot_keys = context.scratch.create(f"{prefix}.keys", np.int64, (values.size,))
    for low in range(0, values.size, _CHUNK):
        slot_keys[low : low + _CHUNK] = sort_keys(values[low : low + _CHUNK])
    order = sort_row_slots(
        context, f"{prefix}.order", context.image.map(f"{side}.indptr"), as_kernel_array(slot_keys)
    )
    keys = context.image.create(f"{prefix}.keys", np.int64, (values.size,))
    for low in range(0, values.size, _CHUNK):
        keys[low : low + _CHUNK] = slot_keys[order[low : low + _CHUNK]]
    del slot_keys
    context.scratch.remove(f"{prefix}.keys")
    return {}


def _build_weight_trees(
    context: BuildContext, side: str, prefix: str, table_prefix: str, file: str
) -> StepState:
    image = context.image
    indptr, order, weights = (
        as_kernel_array(image.map(name)) for name in (f"{side}.indptr", f"{prefix}.order", file)
    )
    fill_weight_trees(
        indptr,
        np.int64(0),
        np.int64(indptr.size - 1),
        order,
        weights,
        image.create(f"{table_prefix}.tree", np.float64, (weights.size,)),
    )
    return {}


@kernel
def fill_weight_trees(
    indptr: I64, first: np.int64, end: np.int64, order: U32, weights: F32, out: F64
) -> None:
    """Compute a tree of weight sums for the edges of each row in their order.

    Parameters
    ----------
    indptr : int64[rows + 1]
    first, end : int64
        Range of rows.
    order, weights : uint32[slots], float32[slots]
    out : float64[slots], out

    Notes
    -----
    In a row of d edges, node j of the tree, 1 <= j < d, is the sum of nodes 2 j and 2 j + 1. Nodes
    d to 2 d - 1 are the weights in the order, and are not stored. Node 0 is the total. A range of
    the order is the sum of at most 2 log2 d nodes, and no sum is computed as a difference.
    """
    for row in range(first, end):
        start = indptr[row]
        size = indptr[row + 1] - start
        for node in range(size - 1, 0, -1):
            left, right = 2 * node, 2 * node + 1
            out[start + node] = (
                np.float64(weights[order[start + left - size]])
                if left >= size
                else out[start + left]
            ) + (
                np.float64(weights[order[start + right - size]])
                if right >= size
                else out[start + right]
            )
        if size > 0:
            out[start] = out[start + 1] if size > 1 else np.float64(weights[order[start]])


def edge_column_files(edge_type: EdgeType) -> list[tuple[str, np.dtype[Any]]]:
    """Return file suffix and dtype of each indexed feature that is stored with an adjacency."""
    numbers = [edge_type.features.index(edge_type.feature(name)) for name in edge_type.indexed]
    return [(f"n{number}", np.dtype(edge_type.features[number].dtype)) for number in numbers]


def edge_column_values(
    edge_type: EdgeType, sections: Sections, rows: int
) -> tuple[NDArray[Any], ...]:
    """Return the values of these features for each edge of a block; 0 if not given."""
    columns = (sections.get(f"{COLUMN_PREFIX}{name}") for name in edge_type.indexed)
    return tuple(
        np.zeros(rows, dtype) if values is None else values.astype(dtype, copy=False)
        for values, (_, dtype) in zip(columns, edge_column_files(edge_type), strict=True)
    )


def value_bits(values: NDArray[Any], number: int) -> NDArray[np.uint32]:
    """Return the bits of a feature's values for `storaged.build.build_kernels.mix_records`.

    They depend on the number of the feature, so that the audit detects exchanged columns.
    """
    return time_bits(sort_keys(values) ^ np.int64(number + 1))
