"""Coarser graphs, and the way back: what METIS works on where a graph is large."""

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
from tests.unit.test_export_metis import adjacency, ring

from asterism.export import metis
from asterism.export.adjacency import Adjacency
from asterism.export.coarsening import Levels


def levels(graph: Adjacency, folder: Path, columns: np.ndarray, *, parts: int = 4, seed: int = 1) -> Levels:
    return Levels(graph, columns, parts=parts, seed=seed, scratch=folder)


def cut(graph: Adjacency, owners: np.ndarray) -> int:
    """The weight of edges between parts."""
    rows = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    return int(graph.weights[owners[rows] != owners[graph.neighbors]].sum()) // 2


def stars_and_islands() -> tuple[np.ndarray, np.ndarray, int]:
    """Parallel edges, loops, two hubs whose leaves have no other neighbor, and nodes without any."""
    generator = np.random.default_rng(5)
    src = np.concatenate([generator.integers(0, 60, 200), np.zeros(100, np.int64), np.ones(100, np.int64)])
    dst = np.concatenate([generator.integers(0, 60, 200), np.arange(100, 200), np.arange(200, 300)])
    return src, dst, 320


def test_a_coarse_node_is_one_node_or_two_and_its_edges_and_weights_are_theirs(tmp_path: Path) -> None:
    src, dst, nodes = stars_and_islands()
    columns = np.stack([np.arange(nodes) % 3, np.ones(nodes, np.int64)], axis=1)
    found = levels(adjacency(src, dst, nodes), tmp_path, columns, parts=2)
    found.coarsen(few_nodes=nodes - 1)
    of = found._finer[0].of
    assert np.bincount(of).max() == 2
    assert len(found.graph) == of.max() + 1 < 0.56 * nodes  # leaves of a hub, and islands, go together
    wanted = Counter[tuple[int, int]]()
    for u, v in zip(of[src].tolist(), of[dst].tolist(), strict=True):
        if u != v:
            wanted[u, v] += 1
            wanted[v, u] += 1
    rows = np.repeat(np.arange(len(found.graph)), np.diff(found.graph.indptr)).tolist()
    edges = list(zip(rows, found.graph.neighbors.tolist(), strict=True))
    assert len(set(edges)) == len(edges)
    assert dict(zip(edges, found.graph.weights.tolist(), strict=True)) == wanted
    for x in range(2):
        np.testing.assert_array_equal(found.columns[:, x], np.bincount(of, columns[:, x]))


def test_no_two_nodes_become_one_that_is_too_heavy(tmp_path: Path) -> None:
    columns = np.ones((2000, 1), np.int64)
    columns[:50] = 10_000  # of these any two are more than METIS can spread
    found = levels(adjacency(*ring(), 2000), tmp_path, columns)
    found.coarsen(few_nodes=1)
    assert (found.columns > 2 * 10_000).sum() == 0
    assert found.columns.sum() == columns.sum()


@pytest.mark.parametrize("parts", [2, 7])
def test_the_way_back_never_cuts_more_and_fills_no_part_beyond_its_share(tmp_path: Path, parts: int) -> None:
    generator = np.random.default_rng(1)
    src, dst = generator.integers(0, 3000, (2, 15_000))
    graph, rare = adjacency(src, dst, 3000), generator.random(3000) < 0.1
    columns = np.stack([rare, ~rare], axis=1).astype(np.int64)
    found = levels(adjacency(src, dst, 3000), tmp_path, columns, parts=parts)
    found.coarsen(few_nodes=800)
    assert found.steps >= 2
    owners, _ = metis.partition(found.graph, parts, constraints=found.columns, seed=1, objective="cut")
    coarse = cut(found.graph, owners)
    refined = found.refined(owners, 0.03)
    assert cut(graph, refined) < coarse
    for mine in (rare, ~rare):
        assert np.bincount(refined[mine], minlength=parts).max() <= np.ceil(1.03 * mine.sum() / parts) + 1
    assert list(tmp_path.iterdir()) == []


def test_what_a_part_has_too_much_of_leaves_it(tmp_path: Path) -> None:
    graph, columns = adjacency(*ring(), 2000), np.ones((2000, 1), np.int64)
    found = levels(graph, tmp_path, columns)
    found.coarsen(few_nodes=1999)
    owners = found.refined(np.zeros(len(found.graph), np.int32), 0.03)
    assert np.bincount(owners, minlength=4).max() <= 515


def test_the_same_seed_gives_the_same_coarse_graph_and_another_one_another(tmp_path: Path) -> None:
    made = []
    for seed in (1, 1, 2):
        found = levels(adjacency(*ring(), 2000), tmp_path, np.ones((2000, 1), np.int64), seed=seed)
        found.coarsen(few_nodes=300)
        made.append((found.graph.neighbors.tobytes(), found.graph.weights.tobytes()))
    assert made[0] == made[1] != made[2]


def test_a_graph_that_does_not_get_smaller_is_left_as_it_is(tmp_path: Path) -> None:
    columns = np.full((2000, 1), 10, np.int64)
    columns[1999] = 1  # all but this one are as heavy as a coarse node may be
    found = levels(adjacency(*ring(), 2000), tmp_path, columns, parts=1000)
    found.coarsen(few_nodes=10)
    assert (found.steps, len(found.graph)) == (0, 2000)


def random_graph(nodes: int, edges: int) -> tuple[np.ndarray, np.ndarray]:
    src, dst = np.random.default_rng(2).integers(0, nodes, (2, edges))
    return src, dst


def grid(nodes: int, edges: int) -> tuple[np.ndarray, np.ndarray]:
    at = np.arange(nodes).reshape(200, -1)
    return np.concatenate([at[:, 1:].ravel(), at[1:].ravel()]), np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])


SHAPES = {"communities": lambda n, e: communities(n, e, seed=3), "random": random_graph, "grid": grid}


@pytest.mark.parametrize("shape", SHAPES)
def test_hardly_more_edges_are_cut_than_by_metis_on_the_whole(tmp_path: Path, shape: str) -> None:
    nodes, ones = 40_000, np.ones((40_000, 1), np.int64)
    src, dst = SHAPES[shape](nodes, 400_000)
    graph, ours, theirs = adjacency(src, dst, nodes), [], []
    for seed in range(3):
        theirs.append(cut(graph, metis.partition(graph, 4, constraints=ones, seed=seed, objective="cut")[0]))
        found = levels(adjacency(src, dst, nodes), tmp_path, ones, seed=seed)
        found.coarsen(few_nodes=12_000)
        assert found.steps == 2
        owners, _ = metis.partition(found.graph, 4, constraints=found.columns, seed=seed, objective="cut")
        ours.append(cut(graph, found.refined(owners, 0.03)))
    assert np.mean(ours) <= 1.02 * np.mean(theirs), (ours, theirs)


_MEASURED = """
import json, sys, tempfile
from pathlib import Path
import numpy as np
from tests.kit.communities import communities
from asterism.export import adjacency, coarsening, metis

def resident(field):
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field + ":")) * 1024

def taken(nodes, pairs, parts, few, objective):
    degrees, found = np.bincount(pairs.reshape(-1), minlength=nodes), []
    def begin():
        Path("/proc/self/clear_refs").write_text("5")
        return resident("VmRSS")
    with tempfile.TemporaryDirectory() as scratch:
        before = begin()
        columns = np.ones((nodes, 1), np.int64)
        levels = coarsening.Levels(adjacency.adjacency([pairs], degrees), columns, parts=parts, seed=0, scratch=Path(scratch))
        levels.coarsen(few)
        first = coarsening.need_bytes(nodes, len(pairs), 1) if levels.steps else adjacency.need_bytes(nodes, len(pairs))
        found.append((resident("VmHWM") - before, first))
        before = begin()
        metis.partition(levels.graph, parts, constraints=levels.columns, seed=0, objective=objective)
        need = metis.need_bytes(len(levels.graph), len(levels.graph.neighbors), 1, parts, objective)
        found.append((resident("VmHWM") - before, need))
    return found

kind, nodes, edges, parts, few, objective = json.loads(sys.argv[1])
made = np.random.default_rng(1).integers(0, nodes, (2, edges)) if kind == "random" else communities(nodes, edges, seed=1)
pairs = np.stack(made, axis=1).astype(np.int32)
pairs = np.ascontiguousarray(pairs[pairs[:, 0] != pairs[:, 1]])
taken(1000, np.ascontiguousarray(pairs[(pairs < 1000).all(axis=1)]), 2, 100, objective)  # compiled and loaded
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
def test_no_more_memory_is_taken_than_is_stated_and_not_much_less(kind: str, parts: int, few: int, objective: str, most: float) -> None:
    told = json.dumps([kind, 120_000, 900_000, parts, few, objective])
    done = subprocess.run([sys.executable, "-c", _MEASURED, told], capture_output=True, text=True, timeout=HANG_S, check=True)
    for taken, stated in json.loads(done.stdout):
        assert stated / most - (12 << 20) < taken <= stated, (taken >> 20, stated >> 20)
