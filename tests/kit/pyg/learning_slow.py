"""GraphSAGE on Cora, five seeds: from a cluster as well as in memory, within noise."""

from __future__ import annotations

import numpy as np
from examples import graphsage
from scipy import stats
from tests.kit.cluster import LocalCluster
from tests.kit.pyg import in_memory
from tests.kit.shared import shared_or_skip

SEEDS, EPOCHS = 5, 40


def test_over_five_seeds_a_cluster_trains_as_well_as_memory_does() -> None:
    root = shared_or_skip("data", "cora")
    with LocalCluster(storageds=3) as cluster, graphsage.load(cluster.client(), root).pin() as graph:
        papers = graphsage.splits(graph)
        data = in_memory.cora(root, graphsage.WORDS)
        loaders = {"served": graphsage.loading(graph), "in memory": in_memory.loading(data, graphsage.FANOUTS, graphsage.BATCH)}
        found = {name: [graphsage.train(made, papers, seed=seed, epochs=EPOCHS) for seed in range(SEEDS)] for name, made in loaders.items()}
    accuracies = {name: np.array([one.accuracy for one in told]) for name, told in found.items()}
    for name, told in found.items():
        spread, epoch_s = accuracies[name].std(ddof=1), float(np.median([one.epoch_s for one in told]))
        print(f"{name}: accuracy {accuracies[name].mean():.4f} +- {spread:.4f}, {epoch_s * 1e3:.1f} ms an epoch")
    assert accuracies["served"].mean() > 0.78
    served, kept = accuracies.values()
    assert stats.ttest_ind(served, kept, equal_var=False).pvalue > 0.01
    assert abs(served.mean() - kept.mean()) < 0.015
