"""Epochs over clusters as a dataset of torch, on a real graph: over workers, made by a function, going on where they stopped."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asterism import Graph, export
from asterism.clusters import ClusterBatch, Clusters
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
def test_every_cluster_comes_once_an_epoch_over_ranks_and_workers(papers: Graph, folder: Path, workers: int) -> None:
    owned = np.diff(Clusters.in_folder(folder).offsets["paper"])
    orders = []
    for epoch in range(2):
        met: list[int] = []
        for rank in range(2):
            batches = ClusterBatches(papers, folder, 4, sizes, seed=3, rank=rank, world=2)
            batches.set_epoch(epoch)
            for clusters, nodes, _ in BatchLoader(batches, workers):
                assert nodes == owned[clusters].sum()
                met += clusters
        assert sorted(met) == list(range(COUNT))
        orders.append(met)
    assert orders[0] != orders[1]


def test_a_batch_is_the_subgraph_of_its_clusters_with_what_was_asked_for(papers: Graph, folder: Path) -> None:
    clusters = Clusters.in_folder(folder)
    reading: dict[str, Any] = {"etypes": "cites", "node_features": ["label"], "weights": True}
    for batch in ClusterBatches(papers, folder, 5, reading=reading, seed=1):
        nodes = clusters.nodes(batch.clusters)["paper"]
        whole = papers.induced_subgraph(nodes, **reading)
        assert np.array_equal(batch.subgraph.nodes["paper"], nodes)
        for name in whole.row:
            assert np.array_equal(batch.subgraph.row[name], whole.row[name])
        assert batch.subgraph.features is not None
        assert np.array_equal(batch.subgraph.features["paper"]["label"], papers.node_features(nodes, "label")["label"])


def test_batches_go_on_where_they_stopped_and_with_more_ranks(papers: Graph, folder: Path) -> None:
    def loader(**how: Any) -> BatchLoader:
        return BatchLoader(ClusterBatches(papers, folder, 2, sizes, **how))

    first = [loader(seed=5, rank=rank, world=2) for rank in range(2)]
    seen = [*islice(first[0], 3), *islice(first[1], 1)]
    states = json.loads(json.dumps([each.state_dict() for each in first]))
    rest = []
    for rank in range(3):
        more = ClusterBatches(papers, folder, 3, sizes, seed=0, rank=rank, world=3)
        more.reshard(states)
        rest += list(BatchLoader(more))
    assert sorted(cluster for clusters, _, _ in [*seen, *rest] for cluster in clusters) == list(range(COUNT))
    with pytest.raises(InvalidRequest, match="the state is of"):
        ClusterBatches(papers, {"paper": ([1, 2], [0, 1])}, 1, seed=1).load_state_dict(states[0])


def test_what_is_the_batches_own_is_refused(papers: Graph, folder: Path) -> None:
    with pytest.raises(InvalidRequest, match="reading with indptr, version: these are the batches' own"):
        ClusterBatches(papers, folder, 1, reading={"version": 3, "indptr": [0]}, seed=1)
    with pytest.raises(InvalidRequest, match="hold one: with"):
        ClusterBatches(papers.client.graph("citations"), folder, 1, seed=1)
