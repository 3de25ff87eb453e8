"""Compile the kernels that graphd's handlers call, before graphd reports that it serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from asterism_graphkit.arrays import gather_scatter, kway_merge, ragged_paths, siphash
from asterism_graphkit.arrays.stable_sort import ENTRIES_PER_PIECE
from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.operators import (
    direction_merging,
    graph_labels,
    hgt,
    labor,
    layers,
    pagerank_push,
    visit_counts,
)
from asterism_graphkit.random import partition_choice, rng, successive_probabilities
from asterism_graphkit.random.exclusion import ExcludedIds
from asterism_graphkit.relabel import bitset, relabel
from graphd.routing.split_merge import no_checkpoint

_IDS = np.arange(4, dtype=np.int64)
_TREES = np.zeros(4, np.int32)
_EDGES = np.array([0, 2, 4], np.int64)
"""Offsets of the edges of two nodes."""


def _route() -> None:
    """Compile the kernels that select hosts, and merge their replies."""
    for placement in ("mod", "mix64"):
        for hosts in (2, 1000):  # the two sizes use different counting algorithms
            partition_choice.group_by_key(partition_choice.part_of(_IDS, 2, placement), hosts)
    shares = partition_choice.build_shares([0], {(0, 0): 1.0, (0, 1): 2.0}, 2)
    partition_choice.choose_entries(rng.key_of(1, rng.PART, 1), 0, 4, shares)
    partition_choice.choose_entries_at(rng.key_of(1, rng.PART, 1), _IDS, shares)
    successive_probabilities.conditional_probabilities(shares.measure, 1.0)
    sizes = np.full(2, 2, np.int32)
    relabel.repeat_indices(sizes, 0, 4)
    host_ranks = np.array([0, 1, 1, 0], np.int32)
    merged_sizes = kway_merge.merge_sizes(host_ranks, [sizes, sizes])
    for values in (_IDS, _IDS.astype(np.float32), _IDS.astype(np.float64)):
        kway_merge.merge_runs(host_ranks, merged_sizes, [values, values])
    for piece in (sizes, sizes.astype(np.int64), sizes.astype(np.int8)):
        gather_scatter.scatter_rows(piece.copy(), _IDS[:2], piece)
    for dtype in (np.int64, np.int32):
        paths = np.empty((2, 3), dtype)
        ragged_paths.write_pieces(_EDGES, _IDS.astype(dtype), _IDS[:2], _IDS[:2], paths)
    for replace in (True, False):
        direction_merging.merge_directions(
            rng.key_of(1, rng.BIDIRECTIONAL, 0),
            _IDS[:1],
            np.ones((2, 1, 1)),
            np.ones((2, 1, 1)),
            replace=replace,
        )


def _relabel() -> None:
    """Compile the kernels that number the nodes of subgraphs, and exclude ids."""
    relabel.tree_positions(_TREES, _IDS)
    relabeling = relabel.Relabeling()
    dense = np.arange(20_000, dtype=np.int64)
    for id_array in (_IDS, dense, dense << 40):  # the last is hashed, and grows the table
        relabeling.assign(id_array)
    relabel.Relabeling().assign(_IDS, _TREES)
    ranked = relabel.Relabeling()
    ranked.assign(np.array([1 << 20], np.int64))  # hashed, then ranked together with the rest
    ranked.assign(dense)
    bitset.is_known_distinct(_IDS[::-1])
    excluded_ids = ExcludedIds.from_rows(_EDGES, _IDS, no_checkpoint)
    excluded_ids.excluded_mask(np.zeros(4, np.int64), _IDS, no_checkpoint)
    excluded_ids.excluded_weights(np.ones(4))


def _sample_layers() -> None:
    """Compile the kernels of layers, graph labels, string ids and visit counts."""
    text = np.arange(8, dtype=np.uint8)
    _, starts, _ = graph_labels.group_strings(
        graph_labels.hash_strings(_EDGES, text, 0, 2), np.arange(2, dtype=np.int64), _EDGES, text
    )
    graph_labels.choose_uniform(rng.key_of(1, rng.LABEL), 2, len(starts))
    measures = layers.candidate_measures(_EDGES, _TREES, np.ones(4, np.float32), layers.SUM, 1)
    for replace in (True, False):
        layers.draw(
            rng.key_of(1, rng.LAYER, 0), np.array([0, 1], np.int64), measures, 2, replace=replace
        )
    many = ENTRIES_PER_PIECE + 1  # a layer of as many is sorted
    layers.draw(
        rng.key_of(1, rng.LAYER, 0), np.array([0, many], np.int64), np.ones(many), 1, replace=False
    )
    siphash.compute_string_ids(_EDGES, text, 1)
    siphash.first_mismatch(_EDGES[:1], _EDGES, text, _EDGES, text)
    for kinds in (None, np.zeros((4, 1), np.int32)):
        visit_counts.most_visited(1, 0.5, 0, 2, _IDS[:2], np.zeros((4, 1), np.int64), kinds, 2)


def _solve() -> None:
    """Compile the kernels of PageRank, LABOR and HGT."""
    pairs, begins, ones, no_weights = (
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.ones(1, np.float64),
        np.zeros(0, np.float32),
    )
    flows = pagerank_push.absorb_residuals(pairs, pairs, ones, 0.5, ones.copy(), ones.copy())
    node_edges = pagerank_push.NodeEdges(begins, begins, _TREES[:1], no_weights)
    pagerank_push.spread_mass(node_edges, pairs, flows, _TREES[:1], pairs, 0)
    pagerank_push.add_arrivals(_TREES[:1], flows, ones.copy(), np.zeros(1, np.int32), 1)
    (numbers,), nodes = relabel.relabel([_IDS])
    importances = np.ones(len(nodes), np.float64)
    labor.solve_importances(2, lambda _: importances.copy(), lambda: None)
    labor.scatter_max(as_kernel_array(numbers), as_kernel_array(importances), importances)
    budgets = hgt.BudgetTable(relabel.Relabeling())
    budgets.add_seeds(_IDS[:1])
    for weights in (None, np.ones(4, np.float32)):
        budgets.add_budgets(_IDS, hgt.edge_shares(_EDGES, _TREES, weights))
    budgets.draw(rng.key_of(1, rng.BUDGET, 0, 0), 2)


STEPS: Mapping[str, Callable[[], None]] = {
    "routing": _route,
    "relabeling": _relabel,
    "layers": _sample_layers,
    "importances": _solve,
}
"""Groups of kernels, those that a new graph needs first at the front. Together they are all."""


def compile_kernels() -> None:
    """Run every kernel once, on arrays of the types that requests use."""
    for step in STEPS.values():
        step()
