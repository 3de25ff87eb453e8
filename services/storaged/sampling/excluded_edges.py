"""Versions without the edges that a request excludes.

The rows of the nodes at excluded edges are copied without these edges, into one more partition, the
*overlay*. Lookups of nodes prefer it, so kernels read these rows like any others. All other nodes
keep their rows, and therefore their samples. The cost grows with the degrees of the nodes at
excluded edges, not with the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.time_keys import running_weight_sums
from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.random import alias, partition_choice
from asterism_graphkit.relabel.hash_index import build_index
from asterism_model.excluded_edges import ExcludedEdges
from asterism_proto.errors import InvalidRequest
from storaged.kernels import adjacency
from storaged.kernels import excluded_edges as kernel
from storaged.sampling.cancellation import Checkpoint, StopFlag, no_checkpoint
from storaged.sampling.node_lookup import OUT, address_table, end_types, locate_nodes
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
_NO_TABLE = AliasTable(size=0, total=0.0)
_UNREAD = AdjacencyImage(indptr=EMPTY_I64, nbr=EMPTY_I64, eid=EMPTY_I64)
"""Adjacency of an edge type that the request does not follow."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Entries:
    """Excluded edges of one type that exist, by their local end."""

    local: NDArray[np.int64]
    remote: NDArray[np.int64]
    eids: NDArray[np.int64]


def exclude_edges(
    version: LocalVersion,
    excluded: ExcludedEdges,
    *,
    edge_types: Sequence[int],
    direction: int,
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
    checkpoint : callable
        Called while rows are copied; may raise.

    Returns
    -------
    LocalVersion
        ``version`` itself if it has none of the edges. Otherwise a version for this request alone,
        with an overlay (`LocalVersion.overlay`).

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
    budget = MAX_COPIED_EDGES
    sides: dict[int, AdjacencyImage] = {}
    with StopFlag(checkpoint) as stop:
        for edge_type, local_type in local_types.items():
            type_ids = ids.get(local_type, EMPTY_I64)
            sides[edge_type] = _copy_rows(
                version, type_ids, entries.get(edge_type), edge_type, direction, budget, stop
            )
            budget -= sides[edge_type].nbr.size
            checkpoint()
    return replace(version, base=version, overlay=_overlay_image(version, ids, sides, direction))


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


def _copy_rows(
    version: LocalVersion,
    ids: NDArray[np.int64],
    entries: _Entries | None,
    edge_type: int,
    direction: int,
    budget: int,
    stop: StopFlag,
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
        np.empty(total if (table[:, adjacency.WEIGHTS] > 0).any() else 0, np.float32),
        np.empty(total if (table[:, adjacency.WHEN] > 0).any() else 0, np.int64),
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
    return _adjacency(indptr, *(column[: indptr[-1]] for column in columns))


def _adjacency(
    indptr: NDArray[np.int64],
    nbr: NDArray[np.int64],
    eid: NDArray[np.int64],
    weights: NDArray[np.float32],
    when: NDArray[np.int64],
) -> AdjacencyImage:
    """Return an adjacency with the tables of its rows.

    A table depends on its row alone, so samples do not depend on the nodes that a host holds.
    """
    side = AdjacencyImage(indptr=indptr, nbr=nbr, eid=eid)
    if weights.size:
        thresholds, fractions, sums = alias.build_rows(indptr, weights)
        side = replace(side, weights=weights, sums=sums, hot=thresholds, cold=fractions)
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
