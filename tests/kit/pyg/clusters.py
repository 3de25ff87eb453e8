"""Tests of epochs over clusters as a torch dataset on a real graph.

They cover workers, batches created by a function, and resumption.
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asterism import Graph, export
from asterism.calls.clusters import ClusterBatch, Clusters
from asterism.torch import BatchLoader, ClusterBatches
from asterism_proto.errors import InvalidRequest

COUNT = 23


@pytest.fixture
def folder(papers: Graph, tmp_path: Path) -> Path:
    export.assignment(papers, tmp_path / "clusters", parts=COUNT, assign="fennel", seed=1)
    return tmp_path / "clusters"


def sizes(graph: Graph, batch: ClusterBatch, seed: int) -> tuple[list[int], int, int]:
    return batch.clusters.tolist(), len(batch.subgraph.nodes["paper"]), seed


@pytest.mark.parametrize("workers", [0, 2])
def test_each_cluster_comes_once_over_ranks_and_workers(
    papers: Graph, folder: Path, workers: int
) -> None:
    cluster_sizes = np.diff(Clusters.in_folder(folder).offsets["paper"])
    orders = []
    for epoch in range(2):
        seen_clusters: list[int] = []
        for rank in range(2):
            batches = ClusterBatches(papers, folder, 4, sizes, seed=3, rank=rank, world=2)
            batches.set_epoch(epoch)
            for clusters, nodes, _ in BatchLoader(batches, workers):
                assert nodes == cluster_sizes[clusters].sum()
                seen_clusters += clusters
        assert sorted(seen_clusters) == list(range(COUNT))
        orders.append(seen_clusters)
    assert orders[0] != orders[1]


def test_batch_is_subgraph_of_its_clusters(papers: Graph, folder: Path) -> None:
    clusters = Clusters.in_folder(folder)
    read_options: dict[str, Any] = {"etypes": "cites", "node_features": ["label"], "weights": True}
    for batch in ClusterBatches(papers, folder, 5, reading=read_options, seed=1):
        nodes = clusters.nodes(batch.clusters)["paper"]
        expected = papers.induced_subgraph(nodes, **read_options)
        assert np.array_equal(batch.subgraph.nodes["paper"], nodes)
        for name in expected.row:
            assert np.array_equal(batch.subgraph.row[name], expected.row[name])
        assert batch.subgraph.features is not None
        assert np.array_equal(
            batch.subgraph.features["paper"]["label"], papers.node_features(nodes, "label")["label"]
        )


def test_batches_resume_with_more_ranks(papers: Graph, folder: Path) -> None:
    def loader(**options: Any) -> BatchLoader:
        return BatchLoader(ClusterBatches(papers, folder, 2, sizes, **options))

    first = [loader(seed=5, rank=rank, world=2) for rank in range(2)]
    seen = [*islice(first[0], 3), *islice(first[1], 1)]
    states = json.loads(json.dumps([each.state_dict() for each in first]))
    remaining = []
    for rank in range(3):
        resharded = ClusterBatches(papers, folder, 3, sizes, seed=0, rank=rank, world=3)
        resharded.reshard(states)
        remaining += list(BatchLoader(resharded))
    assert sorted(
        cluster for clusters, _, _ in [*seen, *remaining] for cluster in clusters
    ) == list(range(COUNT))
    with pytest.raises(InvalidRequest, match="state of"):
        ClusterBatches(papers, {"paper": ([1, 2], [0, 1])}, 1, seed=1).load_state_dict(states[0])


def test_options_set_by_batches_are_rejected(papers: Graph, folder: Path) -> None:
    with pytest.raises(
        InvalidRequest, match="reading with indptr, version: expected other arguments"
    ):
        ClusterBatches(papers, folder, 1, reading={"version": 3, "indptr": [0]}, seed=1)
    with pytest.raises(InvalidRequest, match=r"use graph.pin"):
        ClusterBatches(papers.client.graph("citations"), folder, 1, seed=1)
