"""Compiles what the rooms of graphd call, before it says that it serves."""

from __future__ import annotations

import numpy as np

from graphkit import hgt, labels, labor, layers, merge, numbering, push, rng, rows, sides, split, successive, visits
from graphkit.excluding import Excluded
from graphkit.jit import settled


def warm() -> None:
    """Run every kernel once, on arrays of the types that requests bring."""
    ids = np.arange(4, dtype=np.int64)
    for placement in ("mod", "mix64"):
        for hosts in (2, 1000):  # counted in two ways
            split.group(split.part_of(ids, 2, placement), hosts)
    shares = split.shares([0], {(0, 0): 1.0, (0, 1): 2.0}, 2)
    split.choose(rng.key_of(1, rng.PART, 1), 0, 4, shares)
    split.choose_at(rng.key_of(1, rng.PART, 1), ids, shares)
    successive.given_earlier(shares.measure, 1.0)
    for replace in (True, False):
        sides.together(rng.key_of(1, rng.SIDE, 0), np.ones((2, 1, 1)), np.ones((2, 1, 1)), replace=replace)
    trees = np.zeros(4, np.int32)
    numbering.paths(trees, ids)
    sizes = np.full(2, 2, np.int32)
    numbering.near_ends(sizes, 0, 4)
    of = np.array([0, 1, 1, 0], np.int32)
    whole = merge.merge_sizes(of, [sizes, sizes])
    for values in (ids, ids.astype(np.float32), ids.astype(np.float64)):
        merge.merge_runs(of, whole, [values, values])
    for piece in (sizes, sizes.astype(np.int64), sizes.astype(np.int8)):
        rows.put_rows(piece.copy(), ids[:2], piece)
    numbered = numbering.Numbering()
    for several in (ids, np.arange(20_000, dtype=np.int64)):  # the second makes it grow
        numbered.assign(several)
    numbering.Numbering().assign(ids, trees)
    edges = np.array([0, 2, 4], np.int64)
    Excluded.of(edges, ids).refused(np.zeros(4, np.int64), ids)
    text = np.arange(8, dtype=np.uint8)
    _, starts, _ = labels.grouped(labels.hashes(edges, text, 0, 2), np.arange(2, dtype=np.int64), edges, text)
    labels.choose(rng.key_of(1, rng.LABEL), 2, len(starts))
    measures = layers.pool(edges, trees, np.ones(4, np.float32), layers.SUM, 1)
    for replace in (True, False):
        layers.draw(rng.key_of(1, rng.LAYER, 0), np.array([0, 1], np.int64), measures, 2, replace=replace)
    for kinds in (None, np.zeros((4, 1), np.int32)):
        visits.most_visited(1, 0.5, 0, 2, np.zeros((4, 1), np.int64), kinds, 2)
    pairs, begins, one, none = np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1, np.float64), np.zeros(0, np.float32)
    carried = push.settle(pairs, pairs, one, 0.5, one.copy(), one.copy())
    push.spread(pairs, carried, trees[:1], pairs, begins, begins, trees[:1], none, 0)
    push.arrive(trees[:1], carried, one.copy(), np.zeros(1, np.int32), 1)
    numbers, nodes = numbering.numbered(ids)
    importances = np.ones(len(nodes), np.float64)
    labor.importances_of(2, lambda _: importances.copy())
    labor.raise_to(settled(numbers), settled(importances), importances)
    budgets = hgt.Budgets(numbering.Numbering())
    budgets.plant(ids[:1])
    for weights in (None, np.ones(4, np.float32)):
        budgets.give(ids, hgt.shares(edges, trees, weights))
    budgets.draw(rng.key_of(1, rng.BUDGET, 0, 0), 2)
