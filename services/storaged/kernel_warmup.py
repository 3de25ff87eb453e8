"""Kernel compilation: run every kernel once, on a graph of three nodes per type.

The storaged reports that it is ready only afterwards.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from asterism_graphkit.arrays.sort_keys import sort_keys
from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.operators import graph_labels
from asterism_graphkit.random import alias_build, partition_choice
from asterism_graphkit.relabel import hash_index
from asterism_model.excluded_edges import ExcludedEdges
from asterism_model.partition_stats import PartitionTotals
from asterism_model.schema import EdgeType, Feature, NodeType, Schema
from storaged import sampling
from storaged.build.packed_rows import pack_rows
from storaged.sampling.cancellation import no_checkpoint
from storaged.store import block_store
from storaged.store.column_index import OWN_WEIGHT_NAME, ColumnIndex, IndexTables, SortedEdges
from storaged.store.image import (
    AdjacencyImage,
    AliasTable,
    EdgeImage,
    FeatureColumn,
    NodeImage,
    PartImage,
)
from storaged.store.keys import BlockKey
from storaged.store.live_node_ids import LiveIds

_OUT, _IN = 1, 2
_IDS = np.array([3, 5, 9, 4], np.int64)
"""Three nodes of the graph, and an id that it lacks."""
_EDGE_WEIGHTS = (1, 2, 3, 1, 5, 1)
_HEAVY_EDGE_WEIGHTS = (1, 1, 1e6, 1, 5, 1)
"""Weights of which two draws of the first node leave a small share, which is summed exactly."""


def _table(weights: np.ndarray[tuple[int], np.dtype[np.float32]]) -> AliasTable:
    alias_threshold, alias_fraction = alias_build.pack_thresholds(*alias_build.build(weights))
    return AliasTable(
        size=weights.size,
        total=alias_build.neumaier_sum(weights),
        hot=alias_threshold,
        cold=alias_fraction,
    )


def _version(
    edge_weights: Sequence[float] = _EDGE_WEIGHTS, neighbor_shift: int = 0
) -> sampling.LocalVersion:
    """Return the graph; its neighbor ids are shifted to the left by some bits."""
    schema = Schema(
        node_types=(
            NodeType(
                name="n",
                weighted=True,
                features=(Feature(name="of", kind="bytes"),),
                graph_label="of",
            ),
            NodeType(name="m", weighted=True, features=(Feature(name="of", kind="bytes"),)),
        ),
        edge_types=tuple(
            EdgeType(
                src_type=end,
                relation=name,
                dst_type=end,
                weighted=True,
                features=(Feature(name="t", dtype="int64"),),
                time="t",
            )
            for end, name in (("n", "a"), ("n", "b"), ("m", "c"))
        ),
        parts=1,
        direction="both",
    )
    weights = np.array([1, 2, 3], np.float32)
    ids = np.array([3, 5, 9], np.int64)
    index_ids, index_rows = hash_index.build_index(ids)
    label_indptr, text = np.array([0, 2, 4, 6], np.int64), np.arange(6, dtype=np.uint8)
    label_rows, _, label_hash = graph_labels.group_strings(
        graph_labels.hash_strings(label_indptr, text, 0, 3),
        np.arange(3, dtype=np.int64),
        label_indptr,
        text,
    )
    labelled: dict[str, Any] = {
        "label_hash": label_hash,
        "label_indptr": np.arange(4, dtype=np.int64),
        "label_rows": label_rows.astype(np.uint32),
    }
    ordered = ColumnIndex(
        column="weight",
        kind="range",
        rows=np.arange(3, dtype=np.uint32),
        values=weights,
        tables={OWN_WEIGHT_NAME: IndexTables(levels=(), positives=np.array([0, 3], np.int64))},
    )
    shared: dict[str, Any] = {
        "rows": 3,
        "count": 3,
        "weights": weights,
        "table": _table(weights),
        "indexes": (ordered,),
        "columns": {"of": FeatureColumn(values=text, indptr=label_indptr)},
    }
    sparse = NodeImage(
        dense=False, ids=ids, index_ids=index_ids, index_rows=index_rows, **shared, **labelled
    )
    dense = NodeImage(dense=True, **shared)
    indptr = np.array([0, 3, 5, 6], np.int64)
    slot_weights = np.array(edge_weights, np.float32)
    alias_threshold, alias_fraction, sums = alias_build.build_rows(indptr, slot_weights)
    source_rows = np.array([0, 0, 0, 1, 1, 2], np.uint32)
    neighbor_ids = np.array([3, 5, 9, 3, 9, 5], np.int64) << neighbor_shift
    adjacency = AdjacencyImage(
        indptr=indptr,
        nbr=neighbor_ids,
        eid=np.arange(6, dtype=np.int64),
        weights=slot_weights,
        sums=sums,
        hot=alias_threshold,
        cold=alias_fraction,
        when=np.arange(6, dtype=np.int64),
        order=np.arange(6, dtype=np.uint32),
        time_sums=np.array([1, 3, 6, 1, 6, 1], np.float64),
    )
    sorted_edges = SortedEdges(
        order=np.arange(6, dtype=np.uint32),
        keys=sort_keys(slot_weights),
        weight_trees={OWN_WEIGHT_NAME: np.array([6, 6, 5, 6, 6, 1], np.float64)},
    )
    by_weight = ColumnIndex(
        column="weight",
        kind="range",
        rows=np.array([0, 3, 5, 1, 2, 4], np.uint32),
        values=np.sort(slot_weights),
        tables={OWN_WEIGHT_NAME: IndexTables(levels=(), positives=np.array([0, 6], np.int64))},
        outgoing=sorted_edges,
        incoming=sorted_edges,
    )
    edge = EdgeImage(
        outgoing=adjacency,
        incoming=adjacency,
        src_row=source_rows,
        table=_table(slot_weights),
        indexes=(by_weight,),
    )
    narrow, packed = source_rows.copy(), np.empty(12, np.uint64)
    pack_rows(
        as_kernel_array(indptr),
        np.int64(0),
        np.int64(3),
        as_kernel_array(narrow),
        as_kernel_array(sums),
        as_kernel_array(alias_threshold),
        packed,
    )
    packed_adjacency = replace(
        adjacency, nbr=source_rows.astype(np.int64), narrow=narrow, packed=packed
    )
    packed_edge = replace(edge, outgoing=packed_adjacency, incoming=packed_adjacency)
    image = PartImage(
        part=0, parts=1, mod=True, nodes=(sparse, dense), edges=(edge, edge, packed_edge)
    )
    totals = {
        (element, type_id, 0): PartitionTotals(count=3, positive=3, weight=6.0)
        for element in (sampling.NODE, sampling.EDGE)
        for type_id in (0, 1)
    }
    totals[sampling.EDGE, 2, 0] = totals[sampling.EDGE, 0, 0]
    return sampling.LocalVersion(
        space_id=0, version=0, digest="", schema=schema, totals=totals, parts={0: image}
    )


def _sample_packed(version: sampling.LocalVersion, uniform: bool) -> None:
    """Compile the kernels that sample from packed rows."""
    positions = np.arange(4, dtype=np.int64)
    sampling.sample_neighbors(
        version,
        edge_types=[2],
        node_type=1,
        ids=positions,
        positions=positions,
        count=2,
        replace=True,
        uniform=uniform,
        direction=_OUT,
        seed=1,
        hop=0,
        want_weights=True,
        want_edge_ids=False,
    )
    state = sampling.WalkState(
        ids=positions, kinds=np.ones(4, np.int32), positions=positions, taken=np.zeros(4, np.int32)
    )
    sampling.continue_walks(
        version,
        sampling.WalkSpec(steps=[[2]], length=3, uniform=uniform, direction=_OUT, seed=1),
        state,
    )
    biased_spec = sampling.WalkSpec(
        steps=[[2]], length=3, uniform=uniform, direction=_OUT, seed=1, p=0.25, q=0.5
    )
    sampling.sample_paths(
        version,
        biased_spec,
        sampling.WalkState.at_start(positions, np.ones(4, np.int32), positions, biased_spec),
    )


def _sample_temporal(version: sampling.LocalVersion) -> None:
    """Compile the kernels of temporal sampling."""
    temporal_filter = sampling.TemporalFilter(times=_IDS, strict=False, last=False, want_times=True)
    for edge_types in ([0], [0, 1]):
        sampling.sample_temporal_neighbors(
            version,
            edge_types=edge_types,
            node_type=0,
            ids=_IDS,
            positions=_IDS,
            count=2,
            replace=False,
            uniform=False,
            direction=_OUT,
            seed=1,
            hop=0,
            want_weights=True,
            want_edge_ids=True,
            temporal_filter=temporal_filter,
        )
    expansion = sampling.Expansion(
        seed=1, direction=_OUT, replace=False, uniform=False, want_eids=True, want_weights=True
    )
    options = {
        "disjoint": True,
        "expand_all_hops": False,
        "max_reply_bytes": 1 << 20,
        "checkpoint": no_checkpoint,
    }
    sampling.sample_khop(
        version,
        expansion,
        {0: (2, -1)},
        _IDS,
        np.zeros(_IDS.size, np.int32),
        temporal_filter=temporal_filter,
        **options,  # type: ignore[arg-type]
    )


def _sample_filtered(version: sampling.LocalVersion) -> None:
    """Compile the kernels of filters and of sampling from indexes."""
    filter_cache = sampling.FilterCache(1 << 20)
    for text, element in (("id > 3", sampling.NODE), ("weight > 1 and id > 0", sampling.EDGE)):
        filter_cache.filtered_totals(
            version,
            sampling.RowFilter(
                text=text, element=element, types=(0, 1), both_directions=element == sampling.EDGE
            ),
            [0],
            lambda: None,
        )
    heavy_filter = sampling.RowFilter(text="weight > 1", element=sampling.NODE, types=(0, 1))
    covered = filter_cache.filtered_version(
        version,
        heavy_filter,
        filter_cache.filtered_totals(version, heavy_filter, [0], lambda: None),
        lambda: None,
        for_global_draws=True,
    )
    sampling.sample_nodes(covered, types=[0, 1], parts=[0], seed=1, start=0, count=4, uniform=False)
    for types, replacement in itertools.product(([0], [0, 1]), (False, True)):
        sampling.sample_indexed_neighbors(
            version,
            edge_types=types,
            node_type=0,
            ids=_IDS,
            positions=_IDS,
            count=2,
            replace=replacement,
            uniform=False,
            direction=_OUT,
            seed=1,
            hop=0,
            want_weights=True,
            want_edge_ids=True,
            want_probabilities=True,
            weight_name="",
            ranges=filter_cache.index_ranges(
                version, sampling.RowFilter(text="weight > 1", element=sampling.EDGE, types=(0, 1))
            ),
        )


def _sample_subgraphs(version: sampling.LocalVersion, uniform: bool) -> None:
    """Compile the kernels of subgraph sampling, LABOR included."""
    expansion = sampling.Expansion(
        seed=1, direction=_OUT, replace=False, uniform=uniform, want_eids=True, want_weights=True
    )
    for disjoint in (False, True):
        for seed_type, counts in ((0, {0: (2, -1), 1: (1, 1)}), (0, {2: (2, 1)}), (1, {2: (2, 1)})):
            seeds = {
                "seeds": _IDS,
                "types": np.full(4, seed_type, np.int32),
                "disjoint": disjoint,
                "expand_all_hops": False,
            }
            sampling.sample_khop(
                version,
                expansion,
                counts,
                max_reply_bytes=1 << 20,
                checkpoint=no_checkpoint,
                **seeds,  # type: ignore[arg-type]
            )
    far = _version(neighbor_shift=20)  # neighbors of distant ids are numbered in another way
    for graph, importance in ((version, 0), (version, 2), (far, 2)):
        variates = sampling.LaborOptions(layer_dependency=False, importance=importance)
        sampling.expand(
            graph,
            replace(expansion, labor=variates),
            edge_type=0,
            hop=0,
            count=2,
            ids=_IDS,
            trees=None,
        )


def _sample_globally(version: sampling.LocalVersion, uniform: bool) -> None:
    """Compile the kernels of global draws."""
    taken: dict[str, Any] = {
        "taken_ids": np.array([3], np.int64),
        "taken_types": np.array([0], np.int32),
    }
    share: dict[str, Any] = {
        "types": [0, 1],
        "parts": [0],
        "seed": 1,
        "count": 4,
        "uniform": uniform,
        "want_probabilities": True,
    }
    sampling.sample_nodes(version, start=0, **share)
    sampling.sample_edges(version, start=0, **share)
    sampling.sample_distinct_nodes(version, **taken, **share)
    sampling.sample_distinct_edges(version, **taken, **share)
    sampling.remaining_node_weight(version, types=[0, 1], parts=[0], **taken)
    for kinds in (None, np.array([0, 1, 1, 0], np.int32)):
        sampling.sample_nodes_by_index(
            version,
            types=[0, 1],
            draw_indices=np.arange(4, dtype=np.int64),
            kinds=kinds,
            seed=1,
            uniform=uniform,
            want_probabilities=kinds is None,
        )


def _sample_neighbors(version: sampling.LocalVersion, uniform: bool) -> None:
    """Compile the kernels that sample neighbors, one or several edge types at a time."""
    for edge_types in ([0], [0, 1]):
        shared: dict[str, Any] = {
            "edge_types": edge_types,
            "node_type": 0,
            "ids": _IDS,
            "positions": np.arange(4, dtype=np.int64),
            "count": 2,
            "uniform": uniform,
            "direction": _OUT,
            "seed": 1,
            "hop": 0,
            "want_edge_ids": True,
        }
        for replacement in (False, True):
            sampling.sample_neighbors(
                version, replace=replacement, want_weights=True, want_probabilities=True, **shared
            )
        sampling.sample_neighbors(
            version, replace=False, want_weights=False, distinct_neighbors=True, **shared
        )
        sampling.sample_neighbors(
            _version(_HEAVY_EDGE_WEIGHTS),
            replace=False,
            want_weights=False,
            want_probabilities=True,
            **shared,
        )


def _walk(version: sampling.LocalVersion, uniform: bool) -> None:
    """Compile the kernels of walks."""
    for bias in (1.0, 0.5):
        sampling.continue_walks(
            version,
            sampling.WalkSpec(
                steps=[[0]],
                length=3,
                uniform=uniform,
                direction=_OUT,
                seed=1,
                restart=0.5,
                p=bias**2,
                q=bias,
                want_edge_ids=True,
            ),
            sampling.WalkState(
                ids=_IDS,
                kinds=np.zeros(4, np.int32),
                positions=np.arange(4, dtype=np.int64),
                taken=np.zeros(4, np.int32),
                starts=_IDS,
                start_kinds=np.zeros(4, np.int32),
                before=_IDS[::-1].copy(),
                before_kinds=np.zeros(4, np.int32),
            ),
        )


def _rank(version: sampling.LocalVersion, uniform: bool) -> None:
    """Compile the kernels of personalized PageRank."""
    sampling.rank_nodes(
        version,
        ids=_IDS,
        kinds=np.zeros(4, np.int32),
        checkpoint=no_checkpoint,
        edge_types=[0, 1],
        direction=_OUT,
        uniform=uniform,
        alpha=0.5,
        epsilon=0.1,
        top=2,
    )


def _read_edges(version: sampling.LocalVersion) -> None:
    """Compile the kernels that read neighborhoods and look up edges."""
    kinds = np.zeros(4, np.int32)
    for direction in (_OUT, _IN):
        shared: dict[str, Any] = {
            "edge_types": [0, 1],
            "node_type": 0,
            "ids": _IDS,
            "direction": direction,
        }
        sampling.read_neighbors(version, want_weights=True, want_edge_ids=True, **shared)
        sampling.top_neighbors(version, count=2, want_edge_ids=True, **shared)
        sampling.has_edge(
            version,
            edge_types=[0, 1],
            ids=_IDS,
            kinds=kinds,
            targets=_IDS,
            target_kinds=kinds,
            direction=direction,
        )
        sampling.degrees(version, **shared)


def _exclude_edges(version: sampling.LocalVersion) -> None:
    """Compile the kernels that copy the rows of nodes without some edges."""
    src, dst = np.repeat(_IDS, _IDS.size), np.tile(_IDS, _IDS.size)
    excluded = ExcludedEdges(
        types=np.zeros(src.size, np.int32), src=src, dst=dst, eids=np.zeros(src.size, np.int64)
    )
    for direction in (_OUT, _IN):
        for options in (
            {},
            {"alias_tables": False},
            {"rejection": sampling.RejectionParams(uniform=False, above=0)},
        ):
            sampling.exclude_edges(
                version,
                excluded,
                edge_types=[0, 1],
                direction=direction,
                **options,
            )


def _induce(version: sampling.LocalVersion) -> None:
    """Compile the kernels of induced subgraphs."""
    for direction in (_OUT, _IN):
        for columns in (_IDS, _IDS << 40):  # Targets close together, and targets far apart.
            sampling.find_induced_edges(
                version,
                cols=columns,
                want_weights=True,
                want_edge_ids=True,
                edge_types=[0, 1],
                node_type=0,
                ids=_IDS,
                direction=direction,
            )


def _read_rows(version: sampling.LocalVersion) -> None:
    """Compile the kernels that read features, rows and graph labels, and group by host."""
    for buckets in (2, 1000):  # Few and many buckets are counted by different kernels.
        partition_choice.group_by_key(partition_choice.part_of(_IDS, 2, "mix64"), buckets)
    for type_id in (0, 1):
        sampling.node_features(version, type_id, ["weight", "of"], _IDS)
        sampling.read_nodes(version, type_id, 0, 0, 0, [])
    sampling.read_edges(version, 0, 0, 0, 0)
    page, _ = sampling.read_graph_labels(version, [0], 0)
    sampling.read_nodes_by_label(version, [0], page["labels.indptr"], page["labels.values"])


def _check_live_nodes(version: sampling.LocalVersion) -> None:
    """Compile the kernel that merges the ids of nodes that several loads write."""
    live_ids = LiveIds(lambda key: (_IDS[:3], True), block_store.NODES)
    live_ids.add_blocks(
        BlockKey(part=0, kind=block_store.NODES, type_id=0, load_id=load_id, chunk=0, sub=0)
        for load_id in (1, 2)
    )
    live_ids.live_mask(0, _IDS, 3, (1, 2))


def _weighted_and_uniform(
    sample: Callable[[sampling.LocalVersion, bool], None],
) -> Callable[[sampling.LocalVersion], None]:
    """Return a step that samples by weight, then uniformly."""

    def step(version: sampling.LocalVersion) -> None:
        for uniform in (False, True):
            sample(version, uniform)

    return step


STEPS: Mapping[str, Callable[[sampling.LocalVersion], None]] = {
    "reads": _read_rows,
    "global draws": _weighted_and_uniform(_sample_globally),
    "neighbors": _weighted_and_uniform(_sample_neighbors),
    "packed rows": _weighted_and_uniform(_sample_packed),
    "subgraphs": _weighted_and_uniform(_sample_subgraphs),
    "walks": _weighted_and_uniform(_walk),
    "edges": _read_edges,
    "excluded edges": _exclude_edges,
    "induced subgraphs": _induce,
    "times": _sample_temporal,
    "filters": _sample_filtered,
    "live nodes": _check_live_nodes,
    "PageRank": _weighted_and_uniform(_rank),
}
"""Groups of kernels, those that a new graph needs first at the front. Together they are all."""


def compile_step(name: str) -> None:
    """Run the kernels of one of `STEPS`."""
    STEPS[name](_version())


def compile_kernels() -> None:
    """Run every kernel of sampling and reading, on arrays of the dtypes that requests have."""
    version = _version()
    for step in STEPS.values():
        step(version)
