"""Versions without the edges that a request excludes.

The rows of the nodes at excluded edges are copied without these edges, into one more partition, the
*overlay*. Lookups of nodes prefer it, so kernels read these rows like any others. Nodes of many
edges are not copied if draws can reject the excluded ones. All other nodes keep their rows, and
therefore their samples. The cost grows with what is excluded, not with the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.time_keys import running_weight_sums
from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.random import alias_build, partition_choice
from asterism_graphkit.relabel.hash_index import build_index
from asterism_model.excluded_edges import ExcludedEdges
from asterism_proto.errors import InvalidRequest
from storaged.kernels import adjacency_rows
from storaged.kernels import excluded_edges as kernel
from storaged.kernels.node_rows import measure_nodes
from storaged.sampling.cancellation import Checkpoint, StopFlag, no_checkpoint
from storaged.sampling.excluded_edge_rejection import RejectedEdges, RejectedTypeEdges, slot_keys
from storaged.sampling.node_lookup import (
    OUT,
    LocatedNodes,
    address_table,
    end_types,
    locate_nodes,
)
from storaged.sampling.version import LocalVersion
from storaged.store.image import (
    EMPTY_I64,
    EMPTY_U32,
    AdjacencyImage,
    AliasTable,
    EdgeImage,
    NodeImage,
    PartImage,
)

MAX_COPIED_EDGES = 1 << 24
"""Largest number of edges that one request copies, some 50 bytes each."""
MAX_COPIED_DEGREE = 256
"""Degree above which draws reject the excluded edges of a node, and its edges are not copied.

Part of the sampling contract: changing it changes results for a given seed.
"""
_NO_TABLE = AliasTable(size=0, total=0.0)
_UNREAD = AdjacencyImage(indptr=EMPTY_I64, nbr=EMPTY_I64, eid=EMPTY_I64)
"""Adjacency of an edge type that the request does not follow."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Entries:
    """Excluded edges of one type that exist, by their local end."""

    local: NDArray[np.int64]
    remote: NDArray[np.int64]
    eids: NDArray[np.int64]

    def at_nodes(self, ids: NDArray[np.int64]) -> _Entries:
        """Return the entries of some nodes, given by ascending ids."""
        kept = np.isin(self.local, ids)
        return _Entries(local=self.local[kept], remote=self.remote[kept], eids=self.eids[kept])


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionParams:
    """Parameters of draws that can reject edges."""

    uniform: bool
    """True if all edges have the same probability."""
    distinct: int = 0
    """Number of edges that are drawn without replacement; 0 if draws are with replacement."""
    above: int = MAX_COPIED_DEGREE
    """Number of edges above which draws reject the excluded edges of a node."""


def exclude_edges(
    version: LocalVersion,
    excluded: ExcludedEdges,
    *,
    edge_types: Sequence[int],
    direction: int,
    rejection: RejectionParams | None = None,
    alias_tables: bool = True,
    checkpoint: Checkpoint = no_checkpoint,
) -> LocalVersion:
    """Return the version without the excluded edges, as one request reads it.

    Parameters
    ----------
    version : LocalVersion
        Version with the weights and the filter of the request.
    excluded : ExcludedEdges
        Entries without an edge here are passed over.
    edge_types : sequence of int
        Edge types that the request follows. The result has no others.
    direction : int
        1 for out-edges, 2 for in-edges.
    rejection : RejectionParams, optional
        If given, nodes of many edges are not copied, and draws must reject their excluded edges
        (`LocalVersion.rejected`). By default, all nodes are copied.
    alias_tables : bool
        Build the alias tables of copied rows, for draws by weight. Default True.
    checkpoint : callable
        Called while rows are copied; may raise.

    Returns
    -------
    LocalVersion
        ``version`` itself if it has none of the edges. Otherwise a version for this request alone,
        with an overlay (`LocalVersion.overlay`) if nodes were copied.

    Raises
    ------
    InvalidRequest
        The rows to copy have more than `MAX_COPIED_EDGES` edges, or a type or direction is invalid.
    """
    followed = list(dict.fromkeys(edge_types))
    entries = {
        edge_type: _existing_entries(version, excluded, edge_type, direction)
        for edge_type in followed
        if (excluded.types == edge_type).any()
    }
    local_types = {edge_type: end_types(version, edge_type, direction)[0] for edge_type in followed}
    ids = {
        local_type: np.unique(
            np.concatenate(
                [
                    found.local
                    for edge_type, found in entries.items()
                    if local_types[edge_type] == local_type
                ]
            )
        )
        for local_type in {local_types[edge_type] for edge_type in entries}
    }
    ids = {local_type: type_ids for local_type, type_ids in ids.items() if type_ids.size}
    if not ids:
        return version
    rejected = None
    if rejection is not None:
        rejected, ids = _split_rejected(version, ids, entries, local_types, direction, rejection)
        if not ids:
            return replace(version, base=version, rejected=rejected)
    budget = MAX_COPIED_EDGES
    sides: dict[int, AdjacencyImage] = {}
    with StopFlag(checkpoint) as stop:
        for edge_type, local_type in local_types.items():
            type_ids = ids.get(local_type, EMPTY_I64)
            found = entries.get(edge_type)
            if found is not None and rejected is not None:
                found = found.at_nodes(type_ids)
            sides[edge_type] = _copy_rows(
                version,
                type_ids,
                found,
                edge_type,
                direction,
                budget,
                stop,
                alias_tables=alias_tables,
            )
            budget -= sides[edge_type].nbr.size
            checkpoint()
    overlay = _overlay_image(version, ids, sides, direction)
    return replace(version, base=version, overlay=overlay, rejected=rejected)


def _existing_entries(
    version: LocalVersion, excluded: ExcludedEdges, edge_type: int, direction: int
) -> _Entries:
    """Return the entries of an edge type for which a node held here has an edge."""
    of_type = excluded.take(excluded.types == edge_type)
    local, remote = (of_type.src, of_type.dst) if direction == OUT else (of_type.dst, of_type.src)
    schema = version.schema
    held = np.zeros(schema.parts, np.bool_)
    held[list(version.parts)] = True
    candidates = np.flatnonzero((local >= 0) & (remote >= 0))
    candidates = candidates[
        held[partition_choice.part_of(local[candidates], schema.parts, schema.placement)]
    ]
    local, remote, eids = (
        as_kernel_array(column[candidates]) for column in (local, remote, of_type.eids)
    )
    (nodes,) = locate_nodes(version, end_types(version, edge_type, direction)[0], local, None)
    exists = np.empty(local.size, np.bool_)
    kernel.mark_existing_edges(
        address_table(version, edge_type, direction),
        nodes.parts,
        nodes.rows,
        remote,
        eids,
        exists,
    )
    return _Entries(local=local[exists], remote=remote[exists], eids=eids[exists])


def _split_rejected(
    version: LocalVersion,
    ids: dict[int, NDArray[np.int64]],
    entries: dict[int, _Entries],
    local_types: dict[int, int],
    direction: int,
    rejection: RejectionParams,
) -> tuple[RejectedEdges | None, dict[int, NDArray[np.int64]]]:
    """Split nodes into those at which draws reject edges, and those to copy.

    Draws reject the edges of a node of more than ``rejection.above`` edges, if along each edge type
    at least half of its weight remains, so that two draws are enough on average, and at most a
    quarter of its edges is excluded or drawn without replacement. The number of draws is rounded up
    to at most twice that quarter: below the degree, from which on a node gives all its edges in
    another order. Whether draws reject depends on the node and the request alone.
    """
    indexes, kept_ids = {}, {}
    edges: dict[int, RejectedTypeEdges] = {}
    for node_type, type_ids in ids.items():
        (nodes,) = locate_nodes(version, node_type, type_ids, None)
        degrees, rejects = np.zeros(type_ids.size, np.int64), np.ones(type_ids.size, np.bool_)
        found: dict[int, _FoundSlots] = {}
        for edge_type, local_type in local_types.items():
            if local_type != node_type:
                continue
            table = address_table(version, edge_type, direction)
            type_degrees = np.empty(type_ids.size, np.int64)
            kernel.row_degrees(table, nodes.parts, nodes.rows, type_degrees)
            degrees += type_degrees
            if edge_type in entries:
                slots = found[edge_type] = _find_slots(table, nodes, type_ids, entries[edge_type])
                totals = type_degrees.astype(np.float64)
                excluded = slots.counts.astype(np.float64)
                rejects &= 4 * (slots.counts + rejection.distinct) <= type_degrees
                if not rejection.uniform:
                    measure_nodes(table, nodes.parts, nodes.rows, totals)
                    excluded = slots.weights
                rejects &= 2 * excluded <= totals
        rejects &= degrees > rejection.above
        if not rejects.all():
            kept_ids[node_type] = type_ids[~rejects]
        if rejects.any():
            indexes[node_type] = build_index(type_ids[rejects])
            edges |= {edge_type: slots.at_nodes(rejects) for edge_type, slots in found.items()}
    return RejectedEdges(indexes=indexes, edges=edges) if indexes else None, kept_ids


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _FoundSlots:
    """Slots of the excluded edges of some nodes along one edge type."""

    nodes: NDArray[np.int64]
    keys: NDArray[np.int64]
    eids: NDArray[np.int64]
    """Position of the node, `slot_keys` and edge id of each excluded edge, by key."""
    counts: NDArray[np.int64]
    weights: NDArray[np.float64]
    """Number and total weight of each node's excluded edges."""

    def at_nodes(self, selected: NDArray[np.bool_]) -> RejectedTypeEdges:
        """Return the edges of the selected nodes."""
        return RejectedTypeEdges(
            keys=self.keys[selected[self.nodes]],
            eids=np.sort(self.eids[selected[self.nodes]]),
            counts=self.counts[selected],
            weights=self.weights[selected],
        )


def _find_slots(
    table: NDArray[np.int64], nodes: LocatedNodes, ids: NDArray[np.int64], entries: _Entries
) -> _FoundSlots:
    """Return the slots of excluded edges of nodes with ascending ids, each once."""
    positions = np.searchsorted(ids, entries.local)
    arguments = (
        table,
        as_kernel_array(nodes.parts[positions]),
        as_kernel_array(nodes.rows[positions]),
        as_kernel_array(entries.remote),
        as_kernel_array(entries.eids),
    )
    indptr = np.empty(positions.size + 1, np.int64)
    kernel.list_existing_slots(*arguments, indptr, np.empty(0, np.int64))
    slots = np.empty(int(indptr[-1]), np.int64)
    kernel.list_existing_slots(*arguments, indptr, slots)
    entry_nodes = np.repeat(positions, np.diff(indptr))
    keys, first = np.unique(slot_keys(nodes.parts[entry_nodes], slots), return_index=True)
    entry_nodes, slots = entry_nodes[first], slots[first]
    weights, eids = np.empty(slots.size, np.float64), np.empty(slots.size, np.int64)
    kernel.gather_slots(
        table, as_kernel_array(nodes.parts[entry_nodes]), as_kernel_array(slots), weights, eids
    )
    return _FoundSlots(
        nodes=entry_nodes,
        keys=keys,
        eids=eids,
        counts=np.bincount(entry_nodes, minlength=ids.size),
        weights=np.bincount(entry_nodes, weights, ids.size).astype(np.float64),
    )


def _copy_rows(
    version: LocalVersion,
    ids: NDArray[np.int64],
    entries: _Entries | None,
    edge_type: int,
    direction: int,
    budget: int,
    stop: StopFlag,
    *,
    alias_tables: bool,
) -> AdjacencyImage:
    """Return the rows of nodes along an edge type, without the excluded edges.

    Raises InvalidRequest if they have more than ``budget`` edges.
    """
    table = address_table(version, edge_type, direction)
    (nodes,) = locate_nodes(version, end_types(version, edge_type, direction)[0], ids, None)
    degrees = np.empty(ids.size, np.int64)
    kernel.row_degrees(table, nodes.parts, nodes.rows, degrees)
    total = int(degrees.sum())
    if total > budget:
        raise InvalidRequest(
            f"exclude: the nodes at the excluded edges have more than {MAX_COPIED_EDGES} edges of "
            "the followed types on one storaged; use smaller batches"
        )
    if entries is None:
        entries = _Entries(local=EMPTY_I64, remote=EMPTY_I64, eids=EMPTY_I64)
    rows = np.searchsorted(ids, entries.local)
    order = np.lexsort((entries.eids, entries.remote, rows))
    rows = rows[order]
    columns = kernel.CopiedRows(
        np.empty(total, np.int64),
        np.empty(total, np.int64),
        np.empty(total if (table[:, adjacency_rows.WEIGHTS] > 0).any() else 0, np.float32),
        np.empty(total if (table[:, adjacency_rows.WHEN] > 0).any() else 0, np.int64),
    )
    indptr = np.empty(ids.size + 1, np.int64)
    kernel.copy_remaining_edges(
        table,
        nodes.parts,
        nodes.rows,
        as_kernel_array(np.searchsorted(rows, np.arange(ids.size + 1))),
        as_kernel_array(entries.remote[order]),
        as_kernel_array(entries.eids[order]),
        indptr,
        columns,
        stop.flag,
    )
    stop.check()
    size = int(indptr[-1])
    return _adjacency(
        indptr,
        columns.nbr[:size],
        columns.eid[:size],
        columns.weights[:size],
        columns.when[:size],
        alias_tables=alias_tables,
    )


def _adjacency(
    indptr: NDArray[np.int64],
    nbr: NDArray[np.int64],
    eid: NDArray[np.int64],
    weights: NDArray[np.float32],
    when: NDArray[np.int64],
    *,
    alias_tables: bool,
) -> AdjacencyImage:
    """Return an adjacency with the tables of its rows.

    A table depends on its row alone, so samples do not depend on the nodes that a host holds.
    """
    side = AdjacencyImage(indptr=indptr, nbr=nbr, eid=eid)
    if weights.size:
        side = replace(side, weights=weights, sums=np.empty(indptr.size - 1, np.float64))
        if alias_tables:
            thresholds, fractions, sums = alias_build.build_rows(indptr, weights)
            side = replace(side, sums=sums, hot=thresholds, cold=fractions)
        else:
            alias_build.row_sums(indptr, weights, side.sums)
    if when.size:
        rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        order = np.lexsort((np.arange(when.size), when, rows)).astype(np.uint32)
        side = replace(side, when=when, order=order)
        if weights.size:
            time_sums = np.empty(when.size, np.float64)
            running_weight_sums(
                as_kernel_array(indptr),
                np.int64(0),
                np.int64(indptr.size - 1),
                as_kernel_array(order),
                as_kernel_array(weights),
                time_sums,
            )
            side = replace(side, time_sums=time_sums)
    return side


def _overlay_image(
    version: LocalVersion,
    ids: dict[int, NDArray[np.int64]],
    sides: dict[int, AdjacencyImage],
    direction: int,
) -> PartImage:
    """Return the overlay: the given nodes, with the given edges in one direction."""
    schema = version.schema

    def edges(edge_type: int) -> EdgeImage:
        side = sides.get(edge_type, _UNREAD)
        return EdgeImage(
            outgoing=side if direction == OUT else _UNREAD,
            incoming=side if direction != OUT else _UNREAD,
            src_row=EMPTY_U32,
            table=_NO_TABLE,
        )

    return PartImage(
        part=schema.parts,
        parts=schema.parts,
        mod=False,
        nodes=tuple(
            _node_image(ids.get(node_type, EMPTY_I64))
            for node_type in range(len(schema.node_types))
        ),
        edges=tuple(edges(edge_type) for edge_type in range(len(schema.edge_types))),
    )


def _node_image(ids: NDArray[np.int64]) -> NodeImage:
    columns: dict[str, Any] = {}
    if ids.size:
        columns["index_ids"], columns["index_rows"] = build_index(ids)
    return NodeImage(
        rows=ids.size, count=ids.size, dense=False, ids=ids, table=_NO_TABLE, **columns
    )
