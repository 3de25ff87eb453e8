"""Test of GraphSAGE on Cora with five seeds: a cluster equals memory, within noise."""

from __future__ import annotations

import numpy as np
from examples import graphsage
from scipy import stats
from tests.kit.cluster import LocalCluster
from tests.kit.pyg import in_memory
from tests.kit.shared import shared_or_skip

SEEDS, EPOCHS = 5, 40


def test_cluster_trains_as_well_as_memory_over_seeds() -> None:
    root = shared_or_skip("data", "cora")
    with (
        LocalCluster(storageds=3) as cluster,
        graphsage.load(cluster.client(), root).pin() as graph,
    ):
        split_nodes = graphsage.splits(graph)
        data = in_memory.cora(root, graphsage.WORDS)
        loaders = {
            "served": graphsage.loader_factory(graph),
            "in memory": in_memory.loader_factory(data, graphsage.FANOUTS, graphsage.BATCH),
        }
        runs_by_loader = {
            name: [
                graphsage.train(make_loader, split_nodes, seed=seed, epochs=EPOCHS)
                for seed in range(SEEDS)
            ]
            for name, make_loader in loaders.items()
        }
    accuracies = {
        name: np.array([training_run.accuracy for training_run in training_runs])
        for name, training_runs in runs_by_loader.items()
    }
    for name, training_runs in runs_by_loader.items():
        deviation, epoch_s = (
            accuracies[name].std(ddof=1),
            float(np.median([training_run.epoch_s for training_run in training_runs])),
        )
        print(
            f"{name}: accuracy {accuracies[name].mean():.4f} +- {deviation:.4f}, "
            f"{epoch_s * 1e3:.1f} ms an epoch"
        )
    assert accuracies["served"].mean() > 0.78
    served, local = accuracies.values()
    assert stats.ttest_ind(served, local, equal_var=False).pvalue > 0.01
    assert abs(served.mean() - local.mean()) < 0.015
