"""Test of link prediction on Facebook pages, with uniform and weighted negatives.

PyG's LinkLoader reads from a cluster of three storageds.
"""

from __future__ import annotations

import numpy as np
import torch
from examples import links
from tests.kit.cluster import LocalCluster
from tests.kit.shared import shared_or_skip

SEEDS, EPOCHS = 5, 3


def test_weighted_negatives_exceed_uniform_on_popular_pages() -> None:
    split = links.split(shared_or_skip("data", "facebook"))
    with LocalCluster(storageds=3) as cluster, links.load(cluster.client(), split).pin() as graph:
        areas: dict[str | None, list[list[float]]] = {}
        for table in (None, "popular"):
            trained = [
                links.train(graph, split, negatives=table, epochs=EPOCHS, seed=seed)
                for seed in range(SEEDS)
            ]
            areas[table] = [
                [
                    links.rank_accuracy(embeddings, split, non_links)
                    for non_links in (split.uniform, split.popular)
                ]
                for embeddings in trained
            ]
    print(areas)
    uniform, weighted = np.array(areas[None]), np.array(areas["popular"])
    assert min(uniform.min(), weighted.min()) > 0.85
    assert weighted[:, 1].min() > uniform[:, 1].max()
    assert 0.47 < links.rank_accuracy(torch.randn(split.pages, 8), split, split.uniform) < 0.53
