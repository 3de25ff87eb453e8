"""Tests of coarse graphs, on which METIS works, and of the projection back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.kit.communities import communities
from tests.kit.waiting import HANG_S
from tests.unit.asterism.test_export_metis import adjacency, ring

from asterism.export.partitioning import metis
from asterism.export.partitioning.coarsening import CoarseningLevels
from asterism.export.partitioning.metis_graph import MetisGraph


def make_levels(
    graph: MetisGraph, folder: Path, columns: np.ndarray, *, parts: int = 4, seed: int = 1
) -> CoarseningLevels:
    return CoarseningLevels(graph, columns, parts=parts, seed=seed, scratch=folder)


def cut_weight(graph: MetisGraph, owners: np.ndarray) -> int:
    """Return the weight of edges between partitions."""
    rows = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    return int(graph.weights[owners[rows] != owners[graph.neighbors]].sum()) // 2


def stars_and_islands() -> tuple[np.ndarray, np.ndarray, int]:
    """Return parallel edges, loops, two hubs with leaves, and nodes without edges.

    The leaves have no other neighbor.
    """
    generator = np.random.default_rng(5)
    src = np.concatenate(
        [generator.integers(0, 60, 200), np.zeros(100, np.int64), np.ones(100, np.int64)]
    )
    dst = np.concatenate([generator.integers(0, 60, 200), np.arange(100, 200), np.arange(200, 300)])
    return src, dst, 320


def test_coarse_nodes_merge_at_most_two_and_sum_weights(tmp_path: Path) -> None:
    src, dst, nodes = stars_and_islands()
    columns = np.stack([np.arange(nodes) % 3, np.ones(nodes, np.int64)], axis=1)
    hierarchy = make_levels(adjacency(src, dst, nodes), tmp_path, columns, parts=2)
    hierarchy.coarsen(few_nodes=nodes - 1)
    coarse_of = hierarchy._finer_levels[0].coarse_of
    assert np.bincount(coarse_of).max() == 2
    assert (
        len(hierarchy.graph) == coarse_of.max() + 1 < 0.56 * nodes
    )  # leaves of a hub, and isolated nodes, are merged
    expected = Counter[tuple[int, int]]()
    for u, v in zip(coarse_of[src].tolist(), coarse_of[dst].tolist(), strict=True):
        if u != v:
            expected[u, v] += 1
            expected[v, u] += 1
    rows = np.repeat(np.arange(len(hierarchy.graph)), np.diff(hierarchy.graph.indptr)).tolist()
    edges = list(zip(rows, hierarchy.graph.neighbors.tolist(), strict=True))
    assert len(set(edges)) == len(edges)
    assert dict(zip(edges, hierarchy.graph.weights.tolist(), strict=True)) == expected
    for x in range(2):
        np.testing.assert_array_equal(
            hierarchy.columns[:, x], np.bincount(coarse_of, columns[:, x])
        )


def test_no_coarse_node_is_too_heavy(tmp_path: Path) -> None:
    columns = np.ones((2000, 1), np.int64)
    columns[:50] = 10_000  # two of these exceed what METIS can balance
    hierarchy = make_levels(adjacency(*ring(), 2000), tmp_path, columns)
    hierarchy.coarsen(few_nodes=1)
    assert (hierarchy.columns > 2 * 10_000).sum() == 0
    assert hierarchy.columns.sum() == columns.sum()


@pytest.mark.parametrize("parts", [2, 7])
def test_refinement_reduces_the_cut_and_keeps_balance(tmp_path: Path, parts: int) -> None:
    generator = np.random.default_rng(1)
    src, dst = generator.integers(0, 3000, (2, 15_000))
    graph, rare = adjacency(src, dst, 3000), generator.random(3000) < 0.1
    columns = np.stack([rare, ~rare], axis=1).astype(np.int64)
    hierarchy = make_levels(adjacency(src, dst, 3000), tmp_path, columns, parts=parts)
    hierarchy.coarsen(few_nodes=800)
    assert hierarchy.depth >= 2
    owners, _ = metis.partition_graph(
        hierarchy.graph, parts, constraints=hierarchy.columns, seed=1, objective="cut"
    )
    coarse_cut = cut_weight(hierarchy.graph, owners)
    refined = hierarchy.refine(owners, 0.03)
    assert cut_weight(graph, refined) < coarse_cut
    for mask in (rare, ~rare):
        assert (
            np.bincount(refined[mask], minlength=parts).max()
            <= np.ceil(1.03 * mask.sum() / parts) + 1
        )
    assert list(tmp_path.iterdir()) == []


def test_refinement_moves_nodes_out_of_a_full_part(tmp_path: Path) -> None:
    graph, columns = adjacency(*ring(), 2000), np.ones((2000, 1), np.int64)
    hierarchy = make_levels(graph, tmp_path, columns)
    hierarchy.coarsen(few_nodes=1999)
    owners = hierarchy.refine(np.zeros(len(hierarchy.graph), np.int32), 0.03)
    assert np.bincount(owners, minlength=4).max() <= 515


def test_coarse_graph_is_set_by_the_seed(tmp_path: Path) -> None:
    coarse_graphs = []
    for seed in (1, 1, 2):
        hierarchy = make_levels(
            adjacency(*ring(), 2000), tmp_path, np.ones((2000, 1), np.int64), seed=seed
        )
        hierarchy.coarsen(few_nodes=300)
        coarse_graphs.append(
            (hierarchy.graph.neighbors.tobytes(), hierarchy.graph.weights.tobytes())
        )
    assert coarse_graphs[0] == coarse_graphs[1] != coarse_graphs[2]


def test_graph_that_does_not_shrink_is_unchanged(tmp_path: Path) -> None:
    columns = np.full((2000, 1), 10, np.int64)
    columns[1999] = 1  # all others are as heavy as a coarse node may be
    hierarchy = make_levels(adjacency(*ring(), 2000), tmp_path, columns, parts=1000)
    hierarchy.coarsen(few_nodes=10)
    assert (hierarchy.depth, len(hierarchy.graph)) == (0, 2000)


def random_graph(nodes: int, edges: int) -> tuple[np.ndarray, np.ndarray]:
    src, dst = np.random.default_rng(2).integers(0, nodes, (2, edges))
    return src, dst


def grid(nodes: int, edges: int) -> tuple[np.ndarray, np.ndarray]:
    node_grid = np.arange(nodes).reshape(200, -1)
    return np.concatenate([node_grid[:, 1:].ravel(), node_grid[1:].ravel()]), np.concatenate(
        [node_grid[:, :-1].ravel(), node_grid[:-1].ravel()]
    )


SHAPES = {
    "communities": lambda n, e: communities(n, e, seed=3),
    "random": random_graph,
    "grid": grid,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_coarsening_cuts_hardly_more_than_direct_metis(tmp_path: Path, shape: str) -> None:
    nodes, ones = 40_000, np.ones((40_000, 1), np.int64)
    src, dst = SHAPES[shape](nodes, 400_000)
    graph, coarsened_cuts, direct_cuts = adjacency(src, dst, nodes), [], []
    for seed in range(3):
        direct_cuts.append(
            cut_weight(
                graph,
                metis.partition_graph(graph, 4, constraints=ones, seed=seed, objective="cut")[0],
            )
        )
        hierarchy = make_levels(adjacency(src, dst, nodes), tmp_path, ones, seed=seed)
        hierarchy.coarsen(few_nodes=12_000)
        assert hierarchy.depth == 2
        owners, _ = metis.partition_graph(
            hierarchy.graph, 4, constraints=hierarchy.columns, seed=seed, objective="cut"
        )
        coarsened_cuts.append(cut_weight(graph, hierarchy.refine(owners, 0.03)))
    assert np.mean(coarsened_cuts) <= 1.02 * np.mean(direct_cuts), (coarsened_cuts, direct_cuts)


_NOISE_BYTES = 512 << 10
"""Noise of peaks in bytes: Linux counts resident pages in batches per thread.

A peak includes those of the interpreter.
"""
_MEASURING_PROGRAM = """
import json, sys, tempfile
from pathlib import Path
import numpy as np
from tests.kit.communities import communities
from asterism.export.partitioning import coarsening, metis, metis_graph

def resident(field):
    return next(
        int(line.split()[1])
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith(field + ":")
    ) * 1024

def taken(nodes, pairs, parts, few, objective):
    degrees, found = np.bincount(pairs.reshape(-1), minlength=nodes), []
    def begin():
        Path("/proc/self/clear_refs").write_text("5")
        return resident("VmRSS")
    with tempfile.TemporaryDirectory() as scratch:
        before = begin()
        columns = np.ones((nodes, 1), np.int64)
        levels = coarsening.CoarseningLevels(
            metis_graph.build_metis_graph([pairs], degrees),
            columns,
            parts=parts,
            seed=0,
            scratch=Path(scratch),
        )
        levels.coarsen(few)
        first = (
            coarsening.required_bytes(nodes, len(pairs), 1)
            if levels.depth
            else metis_graph.required_bytes(nodes, len(pairs))
        )
        found.append((resident("VmHWM") - before, first))
        before = begin()
        metis.partition_graph(
            levels.graph, parts, constraints=levels.columns, seed=0, objective=objective
        )
        need = metis.required_bytes(
            len(levels.graph), len(levels.graph.neighbors), 1, parts, objective
        )
        found.append((resident("VmHWM") - before, need))
    return found

kind, nodes, edges, parts, few, objective = json.loads(sys.argv[1])
made = (
    np.random.default_rng(1).integers(0, nodes, (2, edges))
    if kind == "random"
    else communities(nodes, edges, seed=1)
)
pairs = np.stack(made, axis=1).astype(np.int32)
pairs = np.ascontiguousarray(pairs[pairs[:, 0] != pairs[:, 1]])
# Once on few nodes, so that everything is compiled and loaded.
taken(1000, np.ascontiguousarray(pairs[(pairs < 1000).all(axis=1)]), 2, 100, objective)
print(json.dumps(taken(nodes, pairs, parts, few, objective)))
"""


@pytest.mark.parametrize(
    ("kind", "parts", "few", "objective", "most"),
    [
        ("random", 4, 200_000, "cut", 1.7),
        ("random", 16, 60_000, "cut", 2.2),
        ("random", 4, 200_000, "vol", 2.2),
        ("communities", 4, 60_000, "cut", 3.5),
    ],
)
def test_memory_use_is_at_most_the_stated_need(
    kind: str, parts: int, few: int, objective: str, most: float
) -> None:
    arguments = json.dumps([kind, 120_000, 900_000, parts, few, objective])
    completed = subprocess.run(
        [sys.executable, "-c", _MEASURING_PROGRAM, arguments],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=True,
    )
    for used, stated_need in json.loads(completed.stdout):
        assert stated_need / most - (12 << 20) < used <= stated_need + _NOISE_BYTES, (
            used >> 20,
            stated_need >> 20,
        )
