"""Checks of epochs: in any order, every number once, over any ranks; and of the clusters that are gone through so."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import numpy as np
from tests.law.checks.basis import require, require_counts

from asterism import epochs
from asterism.clusters import Clusters
from asterism.epochs import EpochCursor

MANY = 70_001
"""More than orders are kept of."""


def every_order_of_an_epoch_is_as_likely(scale: float) -> None:
    """Of few numbers each order, whatever the one of the epoch before."""
    each, orders = int(max(100, 1000 * scale)), list(itertools.permutations(range(3)))
    met: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for seed in range(each * len(orders)):
        cursor = EpochCursor(3, seed=seed)
        first = tuple(cursor.take(3).tolist())
        cursor.next_epoch()
        met[first, tuple(cursor.take(3).tolist())] += 1
    pairs = list(itertools.product(orders, repeat=2))
    require_counts([met[pair] for pair in pairs], np.full(len(pairs), each / len(orders)), "orders of two epochs")


def epochs_of_many_visit_each_once(scale: float) -> None:
    """Beyond what orders are kept of: a permutation, that takes a number anywhere, and elsewhere in the next epoch."""
    require(epochs._FEW < MANY, "these are not many")
    cursor, taken = EpochCursor(MANY, seed=3), []
    for _ in range(2):
        taken.append(np.concatenate([cursor.take(30_000) for _ in range(3)]))
        require(bool((np.sort(taken[-1]) == np.arange(MANY)).all()), "not each of many is visited once")
        cursor.next_epoch()
    require(bool((taken[0] != taken[1]).mean() > 0.99), "two epochs of many are in one order")
    buckets, each = 16, int(max(40, 400 * scale))
    begun = [int(EpochCursor(MANY, seed=seed).take(1)[0]) * buckets // MANY for seed in range(buckets * each)]
    require_counts(np.bincount(begun, minlength=buckets), np.full(buckets, each), "where epochs of many begin")


def ranks_share_what_is_left_of_an_epoch(scale: float) -> None:
    """Whatever the ranks, however far each, into however many they change: every number once."""
    generator = np.random.default_rng(7)
    for size in (0, 1, 5, 12, 29):
        for world, anew, last in itertools.product((1, 2, 3), (1, 2, 5), (1, 3)):
            ranks = [EpochCursor(size, seed=size, rank=rank, world=world) for rank in range(world)]
            _even(ranks)
            seen: list[int] = []
            for now in (anew, last):
                for cursor in ranks:
                    seen += cursor.take(int(generator.integers(0, cursor.left + 1))).tolist()
                states = json.loads(json.dumps([cursor.state_dict() for cursor in ranks]))
                left = sum(cursor.left for cursor in ranks)
                ranks = [EpochCursor.resharded(states, rank=rank, world=now) for rank in range(now)]
                require(sum(cursor.left for cursor in ranks) == left, "what is left is not what was")
                _even(ranks)
            seen += [number for cursor in ranks for part in cursor.split(2) for number in part.take(size).tolist()]
            require(sorted(seen) == list(range(size)), f"{size} numbers over {world}, {anew} and {last} ranks: {sorted(seen)} are visited")
            for cursor in ranks:
                cursor.next_epoch()
            require(sorted(n for c in ranks for n in c.take(size).tolist()) == list(range(size)), "not each is visited in the epoch behind")
    del scale


def _even(ranks: list[EpochCursor]) -> None:
    """No rank has more than one number more than another."""
    left = [cursor.left for cursor in ranks]
    require(max(left) - min(left) <= 1, f"shares of {left}: they are not of a size")


def clusters_have_the_nodes_that_were_put_into_them(scale: float) -> None:
    """One cluster after another, as they were asked for; empty ones have none."""
    del scale
    members = {"a": np.array([4, 7, 1, 9, 2]), "b": np.array([3, 8])}
    offsets = {"a": np.array([0, 2, 2, 5]), "b": np.array([0, 0, 1, 2])}
    held = Clusters(space="s", version=1, digest="d", count=3, identity="i", members=members, offsets=offsets)
    for size in range(4):
        for numbers in itertools.permutations(range(3), size):
            for name, nodes in held.nodes(list(numbers)).items():
                expected = [node for c in numbers for node in members[name][offsets[name][c] : offsets[name][c + 1]].tolist()]
                require(nodes.tolist() == expected, f"clusters {numbers} have {nodes.tolist()} of {name}, expected {expected}")
