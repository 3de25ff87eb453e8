"""An image larger than memory: samples read it from disk and return the same results."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.control_group import memory_group
from tests.kit.waiting import HANG_S

from asterism import Graph

MIB = 1 << 20
LIMIT_MIB = 384
NODES, EDGES = 2_000_000, 12_000_000

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=1, cold=True) as running:
        yield running


@pytest.fixture(scope="module")
def graph(cluster: LocalCluster) -> Graph:
    client = cluster.client(timeout_s=HANG_S)
    client.create_space(
        "g",
        {
            "parts": 2,
            "direction": "out",
            "nodes": {"n": {"weighted": True}},
            "edges": {"n:to:n": {"weighted": True}},
        },
    )
    rng = np.random.default_rng(5)
    load = client.begin_load("g", source="generated")
    load.write_nodes(0, "n", np.arange(NODES), weights=rng.random(NODES))
    for chunk, low in enumerate(range(0, EDGES, 1_000_000), 1):
        n = min(1_000_000, EDGES - low)
        ends = rng.integers(0, NODES, n), rng.integers(0, NODES, n)
        load.write_edges(chunk, "to", *ends, weights=rng.random(n), ends_known=True)
    load.commit()
    graph = client.graph("g")
    graph.build()
    return graph


def sample_arrays(graph: Graph) -> list[np.ndarray]:
    """Sample nodes and edges from all over the image."""
    arrays: list[np.ndarray] = []
    for seed in range(4):
        seeds = np.random.default_rng(seed).integers(0, NODES, 5000)
        neighbors = graph.sample_neighbors(seeds, "to", 10, seed=seed)
        nodes, edges = (
            graph.sample_nodes(20_000, "n", seed=seed),
            graph.sample_edges(20_000, "to", seed=seed),
        )
        arrays += [neighbors.nodes, nodes.nodes, edges.src, edges.dst]
    return arrays


def drop_from_cache(files: list[Path]) -> None:
    """Drop the pages of files from the page cache, where they may count for another cgroup."""
    for file in files:
        with file.open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_image_larger_than_memory_limit_gives_same_samples(
    cluster: LocalCluster, graph: Graph
) -> None:
    expected = sample_arrays(graph)
    storaged = cluster["storaged-0"]
    assert storaged.stop() == 0
    files = list(cluster.folder_of("storaged-0").glob("spaces/*/builds/*/parts/*/*.bin"))
    assert sum(file.stat().st_size for file in files) > 1.5 * LIMIT_MIB * MIB
    drop_from_cache(files)
    try:
        with memory_group(LIMIT_MIB * MIB) as prefix:
            storaged.prefix = prefix
            cluster.restart("storaged-0")
            for _ in range(2):
                assert all(
                    np.array_equal(mine, theirs)
                    for mine, theirs in zip(sample_arrays(graph), expected, strict=True)
                )
            assert storaged.exit_status() is None
            storaged.stop()
    except OSError as error:
        pytest.skip(f"no control group with a limit can be made here: {error}")
    finally:
        storaged.prefix = ()
