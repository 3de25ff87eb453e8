"""Tests of the METIS assignment, which cuts few edges."""

from __future__ import annotations

import numpy as np
import pytest

from asterism.export.partitioning import metis
from asterism.export.partitioning.metis_graph import MetisGraph
from asterism.export.partitioning.metis_graph import build_metis_graph as made
from asterism_proto.errors import InvalidRequest

ONES = np.ones((2000, 1), np.int64)


def ring(nodes: int = 2000, edges: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Return edges between neighbors on a ring: a good cut severs few."""
    generator = np.random.default_rng(3)
    src = generator.integers(0, nodes, edges)
    return src, (src + generator.integers(1, 20, edges)) % nodes


def adjacency(src: np.ndarray, dst: np.ndarray, nodes: int) -> MetisGraph:
    proper = src != dst
    degrees = np.bincount(src[proper], minlength=nodes) + np.bincount(dst[proper], minlength=nodes)
    return made(np.array_split(np.stack([src, dst], axis=1).astype(np.int32), 3), degrees)


def test_parallel_edges_become_weights_and_loops_are_dropped() -> None:
    graph = adjacency(np.array([0, 1, 0, 2, 3]), np.array([1, 0, 1, 2, 1]), 5)
    assert graph.indptr.tolist() == [0, 1, 3, 3, 4, 4]
    assert sorted(
        zip(
            np.repeat(np.arange(5), np.diff(graph.indptr)).tolist(),
            graph.neighbors.tolist(),
            graph.weights.tolist(),
            strict=True,
        )
    ) == [
        (0, 1, 3),
        (1, 0, 3),
        (1, 3, 1),
        (3, 1, 1),
    ]


@pytest.fixture(params=["32 bits", "64 bits"])
def either_build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with METIS of 32-bit and of 64-bit integers."""
    narrow, wide = metis._metis32(), metis._metis64()
    assert narrow is not None
    assert wide is not None
    assert (narrow.dtype, wide.dtype) == (np.int32, np.int64)
    if request.param == "64 bits":
        monkeypatch.setattr(metis, "_metis32", lambda: None)
    else:
        monkeypatch.setattr(metis, "_metis64", lambda: None)


@pytest.mark.usefixtures("either_build")
@pytest.mark.parametrize("objective", metis.OBJECTIVES)
def test_metis_cuts_far_fewer_edges_than_chance(objective: str) -> None:
    src, dst = ring()
    owners, warnings = metis.partition_graph(
        adjacency(src, dst, 2000), 4, constraints=ONES, seed=1, objective=objective
    )
    assert warnings == []
    assert (owners[src] != owners[dst]).mean() < 0.1
    assert np.bincount(owners, minlength=4).max() < 1.1 * 500


@pytest.mark.usefixtures("either_build")
def test_the_same_seed_gives_the_same_parts() -> None:
    graph = adjacency(*ring(), 2000)
    first, repeated, other = (
        metis.partition_graph(graph, 4, constraints=ONES, seed=seed, objective="cut")[0]
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, repeated)
    assert (first != other).any()


@pytest.mark.usefixtures("either_build")
def test_each_constraint_is_balanced_by_itself() -> None:
    rare = (
        np.arange(2000) < 200
    )  # a segment of the ring, which a single constraint would put into one partition
    constraints = np.stack([rare, ~rare], axis=1).astype(np.int64)
    owners, _ = metis.partition_graph(
        adjacency(*ring(), 2000), 4, constraints=constraints, seed=1, objective="cut"
    )
    assert np.bincount(owners[rare], minlength=4).max() < 1.25 * 50
    assert np.bincount(owners[~rare], minlength=4).max() < 1.1 * 450


def test_pymetis_python_call_is_a_fallback() -> None:
    src, dst = ring()
    owners = metis._by_pymetis(adjacency(src, dst, 2000), 4, ONES, 1)
    assert (owners[src] != owners[dst]).mean() < 0.1


def test_graph_without_more_nodes_than_parts_needs_no_metis() -> None:
    graph = adjacency(np.array([0]), np.array([1]), 3)
    assert metis.partition_graph(graph, 4, constraints=ONES[:3], seed=1, objective="cut")[
        0
    ].tolist() == [0, 1, 2]
    assert metis.partition_graph(graph, 1, constraints=ONES[:3], seed=1, objective="cut")[
        0
    ].tolist() == [0, 0, 0]


def test_an_unknown_objective_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="speed"):
        metis.partition_graph(
            adjacency(*ring(), 2000), 4, constraints=ONES, seed=1, objective="speed"
        )


def test_parts_respect_the_requested_imbalance() -> None:
    graph = adjacency(*ring(), 2000)
    owners, _ = metis.partition_graph(
        graph, 4, constraints=ONES, seed=1, objective="cut", imbalance=0.001
    )
    assert np.bincount(owners, minlength=4).max() <= 502


def test_numbers_beyond_31_bits_go_to_the_wide_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metis, "_metis32", lambda: pytest.fail("these sums do not fit 32 bits"))
    owners, _ = metis.partition_graph(
        adjacency(*ring(), 2000), 4, constraints=ONES * (1 << 30), seed=1, objective="cut"
    )
    assert np.bincount(owners, minlength=4).max() < 1.1 * 500
