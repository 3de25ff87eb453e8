"""The subgraph that walks traverse: adjacencies of the selected edge types, as one table.

For node2vec walks, it also has Bloom filters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import addresses_of, as_kernel_array
from storaged.kernels import adjacency_rows
from storaged.kernels.walks import bloom_filter
from storaged.kernels.walks.state import LOCAL, REJECTED_COUNT, REJECTED_SLOTS, REMOTE
from storaged.sampling.excluded_edge_rejection import RejectedEdges
from storaged.sampling.node_lookup import address_table, end_types
from storaged.sampling.version import LocalVersion
from storaged.sampling.walks.bloom_filters import (
    build_bloom_filter,
    build_max_shares,
    build_row_heads,
)

I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WalkGraph:
    """The subgraph that walks traverse, as `storaged.kernels.walks.generic` takes it.

    It has addresses of arrays, which are valid as long as the version exists.
    """

    table: I64
    ends: I64
    local_parts: NDArray[np.bool_]
    needs_lookup: bool
    rejected_slots: tuple[I64, ...] = ()
    """Slots of the edges that draws reject, by edge type and partition."""

    def is_packed(self, uniform: bool) -> bool:
        """Return whether all arrays that walks read have copies in the packed format.

        `storaged.kernels.neighbors.packed` describes the format.
        """
        addresses = (
            self.table[:, adjacency_rows.NARROW]
            if uniform
            else np.where(
                self.table[:, adjacency_rows.ALIAS_THRESHOLD] > 0,
                self.table[:, adjacency_rows.PACKED],
                self.table[:, adjacency_rows.NARROW],
            )
        )
        return not self.needs_lookup and bool(
            (addresses[self.table[:, adjacency_rows.NBR] > 0] > 0).all()
        )

    def is_homogeneous(self, edge_types: Sequence[int]) -> bool:
        """Return whether each edge type connects nodes of a single type."""
        return all(
            self.ends[LOCAL, edge_type] == self.ends[REMOTE, edge_type] for edge_type in edge_types
        )


def build_walk_graph(version: LocalVersion, edge_types: Sequence[int], direction: int) -> WalkGraph:
    """Return the subgraph of some edge types, by their local end.

    Walks continue only at nodes of local partitions. An overlay is one more of these.
    """
    schema = version.schema
    table_parts = schema.parts + (version.overlay is not None)
    local_parts = np.zeros(table_parts, np.bool_)
    local_parts[list(version.parts)] = True
    local_parts[schema.parts :] = True
    table_rows, types_at_ends = (
        np.zeros((len(schema.edge_types), table_parts, adjacency_rows.COLUMNS), np.int64),
        np.full((2, len(schema.edge_types)), -2, np.int64),
    )
    for edge_type in edge_types:
        table_rows[edge_type] = address_table(version, edge_type, direction)
        types_at_ends[:, edge_type] = end_types(version, edge_type, direction)
    needs_lookup = bool(table_rows[:, :, [adjacency_rows.INDEX_IDS, adjacency_rows.LIVE]].any())
    table_rows = as_kernel_array(table_rows.reshape(-1, adjacency_rows.COLUMNS))
    return WalkGraph(
        table=table_rows,
        ends=as_kernel_array(types_at_ends),
        local_parts=as_kernel_array(local_parts),
        needs_lookup=needs_lookup,
    )


def with_rejected_edges(walk_graph: WalkGraph, rejected: RejectedEdges) -> WalkGraph:
    """Return the subgraph with the edges that draws reject."""
    table_rows = np.zeros((walk_graph.table.shape[0], REJECTED_COUNT + 1), np.int64)
    table_rows[:, : adjacency_rows.COLUMNS] = walk_graph.table
    pieces = []
    for edge_type, edges in rejected.edges.items():
        for part, slots in edges.slots_by_part():
            table_row = table_rows[edge_type * walk_graph.local_parts.size + part]
            table_row[REJECTED_SLOTS], table_row[REJECTED_COUNT] = (
                addresses_of([slots])[0],
                slots.size,
            )
            pieces.append(slots)
    return replace(walk_graph, table=as_kernel_array(table_rows), rejected_slots=tuple(pieces))


def with_bloom_filters(
    version: LocalVersion,
    walk_graph: WalkGraph,
    edge_types: Sequence[int],
    direction: int,
    uniform: bool | None,
    checkpoint: Callable[[], object],
) -> WalkGraph:
    """Return the subgraph with Bloom filters and the largest share of each row.

    ``uniform`` selects uniform or weighted shares; None leaves them out.
    """
    table_parts, table_rows = (
        walk_graph.local_parts.size,
        np.zeros((walk_graph.table.shape[0], bloom_filter.ROW_HEADS + 1), np.int64),
    )
    table_rows[:, : adjacency_rows.COLUMNS] = walk_graph.table
    for edge_type in edge_types:
        for part in np.flatnonzero(walk_graph.local_parts).tolist():
            # The data of a partition stay with the version that has it.
            owner = version.base if version.base is not None and part in version.parts else version
            table_row = table_rows[edge_type * table_parts + part]
            words = build_bloom_filter(owner, part, edge_type, direction, checkpoint)
            table_row[bloom_filter.BLOOM], table_row[bloom_filter.BLOOM_WORDS] = (
                addresses_of([words])[0],
                words.size,
            )
            if uniform is not None:
                table_row[bloom_filter.MAX_SHARES] = addresses_of(
                    [build_max_shares(owner, part, edge_type, direction, uniform, checkpoint)]
                )[0]
            table_row[bloom_filter.ROW_HEADS] = addresses_of(
                [build_row_heads(owner, part, edge_type, direction, uniform, checkpoint)]
            )[0]
    return replace(walk_graph, table=as_kernel_array(table_rows))
