"""Compiles what the rooms of graphd call, before it says that it serves."""

from __future__ import annotations

import numpy as np

from graphkit import hgt, labels, labor, layers, merge, numbering, push, rng, rows, sides, split, successive, visits
from graphkit.excluding import ExcludedIds
from graphkit.jit import as_kernel_array


def compile_kernels() -> None:
    """Run every kernel once, on arrays of the types that requests bring."""
    ids = np.arange(4, dtype=np.int64)
    for placement in ("mod", "mix64"):
        for hosts in (2, 1000):  # counted in two ways
            split.group_by_key(split.part_of(ids, 2, placement), hosts)
    shares = split.build_shares([0], {(0, 0): 1.0, (0, 1): 2.0}, 2)
    split.choose_entries(rng.key_of(1, rng.PART, 1), 0, 4, shares)
    split.choose_entries_at(rng.key_of(1, rng.PART, 1), ids, shares)
    successive.conditional_probabilities(shares.measure, 1.0)
    for replace in (True, False):
        sides.merge_directions(rng.key_of(1, rng.BIDIRECTIONAL, 0), np.ones((2, 1, 1)), np.ones((2, 1, 1)), replace=replace)
    trees = np.zeros(4, np.int32)
    numbering.tree_positions(trees, ids)
    sizes = np.full(2, 2, np.int32)
    numbering.repeat_indices(sizes, 0, 4)
    host_ranks = np.array([0, 1, 1, 0], np.int32)
    merged_sizes = merge.merge_sizes(host_ranks, [sizes, sizes])
    for values in (ids, ids.astype(np.float32), ids.astype(np.float64)):
        merge.merge_runs(host_ranks, merged_sizes, [values, values])
    for piece in (sizes, sizes.astype(np.int64), sizes.astype(np.int8)):
        rows.scatter_rows(piece.copy(), ids[:2], piece)
    relabeling = numbering.Relabeling()
    for id_array in (ids, np.arange(20_000, dtype=np.int64)):  # the second makes it grow
        relabeling.assign(id_array)
    numbering.Relabeling().assign(ids, trees)
    edges = np.array([0, 2, 4], np.int64)
    ExcludedIds.from_rows(edges, ids).excluded_mask(np.zeros(4, np.int64), ids)
    text = np.arange(8, dtype=np.uint8)
    _, starts, _ = labels.group_strings(labels.hash_strings(edges, text, 0, 2), np.arange(2, dtype=np.int64), edges, text)
    labels.choose_uniform(rng.key_of(1, rng.LABEL), 2, len(starts))
    measures = layers.candidate_measures(edges, trees, np.ones(4, np.float32), layers.SUM, 1)
    for replace in (True, False):
        layers.draw(rng.key_of(1, rng.LAYER, 0), np.array([0, 1], np.int64), measures, 2, replace=replace)
    for kinds in (None, np.zeros((4, 1), np.int32)):
        visits.most_visited(1, 0.5, 0, 2, np.zeros((4, 1), np.int64), kinds, 2)
    pairs, begins, ones, no_weights = np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1, np.float64), np.zeros(0, np.float32)
    flows = push.absorb_residuals(pairs, pairs, ones, 0.5, ones.copy(), ones.copy())
    push.spread_mass(pairs, flows, trees[:1], pairs, begins, begins, trees[:1], no_weights, 0)
    push.add_arrivals(trees[:1], flows, ones.copy(), np.zeros(1, np.int32), 1)
    numbers, nodes = numbering.relabel(ids)
    importances = np.ones(len(nodes), np.float64)
    labor.solve_importances(2, lambda _: importances.copy())
    labor.scatter_max(as_kernel_array(numbers), as_kernel_array(importances), importances)
    budgets = hgt.BudgetTable(numbering.Relabeling())
    budgets.add_seeds(ids[:1])
    for weights in (None, np.ones(4, np.float32)):
        budgets.add_budgets(ids, hgt.edge_shares(edges, trees, weights))
    budgets.draw(rng.key_of(1, rng.BUDGET, 0, 0), 2)
