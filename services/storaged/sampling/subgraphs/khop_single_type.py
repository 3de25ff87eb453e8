"""K-hop subgraphs along one edge type, with all hops in one kernel call.

The result is the same as that of the general expansion.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.operators.khop import KHopParams, hop_stream, reply_too_large
from asterism_graphkit.random import rng
from asterism_graphkit.relabel.bitset import fits_in_cache
from storaged.kernels.adjacency_rows import ROWS
from storaged.kernels.subgraphs import khop_single_type as kernel
from storaged.sampling.cancellation import StopFlag
from storaged.sampling.neighbors.sample_neighbors import NEIGHBOR_ELEMENT
from storaged.sampling.node_lookup import address_table
from storaged.sampling.subgraphs.expand import Expansion
from storaged.sampling.version import LocalVersion

_MAX_EDGES = 1 << 20
"""Largest number of edges that one call may sample."""


def sample_khop_single_type(
    version: LocalVersion,
    expansion: Expansion,
    params: KHopParams,
    seeds: NDArray[np.int64],
    types: NDArray[np.int32],
    stop: StopFlag,
) -> dict[str, NDArray[Any]] | None:
    """Return the sections of a k-hop subgraph; None if only the general expansion applies.

    The sections are those of `asterism_graphkit.operators.khop.sample_khop`.

    Raises
    ------
    InvalidRequest
        The result exceeds ``params.max_bytes``.
    """
    fanout = params.fanouts[0]
    if (
        len(params.fanouts) > 1
        or fanout.local_type != fanout.remote_type
        or params.disjoint
        or expansion.labor is not None
        or min(fanout.counts) < 0
    ):
        return None
    capacity = frontier_size = seeds.size
    for count in fanout.counts:
        frontier_size = (capacity if params.expand_all_hops else frontier_size) * count
        capacity += frontier_size
        if capacity > _MAX_EDGES:
            return None
    parts, mod = version.schema.parts, version.schema.placement != "mix64"
    table = address_table(version, fanout.edge_type, expansion.direction)
    rows = table[:, ROWS]
    if not mod or not seeds.size or int(rows.min()) < 0 or bool((types != fanout.local_type).any()):
        return None
    max_id = max(int(rows.max()) * parts, int(seeds.max()))
    bitset_words = (max_id >> 6) + 2
    if not fits_in_cache(bitset_words, capacity):
        return None
    streams = [hop_stream(hop, fanout.edge_type) for hop in range(params.hop_count)]
    keys = as_kernel_array(
        np.array(
            [
                rng.key_of(expansion.seed, rng.NEIGHBOR, expansion.direction, stream)
                for stream in streams
            ],
            np.uint64,
        )
    )
    selection_keys = as_kernel_array(
        np.array(
            [
                rng.key_of(
                    expansion.seed,
                    rng.EXPONENTIAL_KEY,
                    NEIGHBOR_ELEMENT,
                    expansion.direction,
                    stream,
                    fanout.edge_type,
                )
                for stream in streams
            ],
            np.uint64,
        )
    )
    node_counts, edge_counts = (
        np.zeros((params.node_type_count, params.hop_count + 1), np.int64),
        np.zeros((1, params.hop_count), np.int64),
    )
    subgraph = kernel.SubgraphOutputs(
        seed_indices=np.empty(seeds.size, np.int32),
        nodes=np.empty(capacity + 1, np.int64),
        local_ends=np.empty(capacity + 2, np.int32),
        remote_ends=np.empty(capacity, np.int32),
        eids=np.empty(capacity if expansion.want_eids else 0, np.int64),
        weights=np.empty(capacity if expansion.want_weights else 0, np.float32),
        node_counts=node_counts[fanout.local_type],
        edge_counts=edge_counts[0],
    )
    total = kernel.sample_khop_single_type(
        table,
        kernel.SingleTypeParams(
            np.int64(parts),
            mod,
            expansion.replace,
            expansion.uniform,
            params.expand_all_hops,
            np.int64(params.max_bytes),
        ),
        as_kernel_array(seeds),
        as_kernel_array(np.array(fanout.counts, np.int64)),
        keys,
        selection_keys,
        np.zeros(bitset_words, np.uint64),
        subgraph,
        stop.flag,
    )
    stop.check()
    if total == kernel.TOO_MANY_BYTES:
        raise reply_too_large(params.max_bytes)
    if total < 0:
        return None
    node_total = int(subgraph.node_counts.sum())
    out: dict[str, NDArray[Any]] = {
        "seeds": subgraph.seed_indices,
        "node_counts": node_counts,
        "edge_counts": edge_counts,
    }
    for type_id in range(params.node_type_count):
        size = node_total if type_id == fanout.local_type else 0
        out[f"nodes.{type_id}"] = _trim(subgraph.nodes, size)
    ends = (subgraph.local_ends, subgraph.remote_ends)
    ends = ends if params.outgoing else ends[::-1]
    columns = {
        "rows": ends[0],
        "cols": ends[1],
        "eids": subgraph.eids if expansion.want_eids else None,
        "weights": subgraph.weights if expansion.want_weights else None,
    }
    if edge_counts.any() or (subgraph.node_counts[0] and fanout.counts[0]):
        out |= {
            f"{name}.{fanout.edge_type}": _trim(column, total)
            for name, column in columns.items()
            if column is not None
        }
    return out


def _trim(column: NDArray[Any], size: int) -> NDArray[Any]:
    """Return the first values of a column.

    The result is a copy if the column is at least twice as long, so that the rest can be freed.
    """
    return column[:size] if 2 * size > column.size else column[:size].copy()
