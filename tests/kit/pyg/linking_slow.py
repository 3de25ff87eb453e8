"""Links of Facebook's pages through PyG's LinkLoader, from a cluster of three storageds, by uniform negatives beside weighted ones."""

from __future__ import annotations

import numpy as np
import torch
from examples import links
from tests.kit.cluster import LocalCluster
from tests.kit.shared import shared_or_skip

SEEDS, EPOCHS = 5, 3


def test_weighted_negatives_tell_links_from_pairs_with_popular_pages_better_than_uniform_ones_do() -> None:
    told = links.split(shared_or_skip("data", "facebook"))
    with LocalCluster(storageds=3) as cluster, links.load(cluster.client(), told).pin() as graph:
        found: dict[str | None, list[list[float]]] = {}
        for table in (None, "popular"):
            outs = [links.train(graph, told, negatives=table, epochs=EPOCHS, seed=seed) for seed in range(SEEDS)]
            found[table] = [[links.ranked(out, told, others) for others in (told.uniform, told.popular)] for out in outs]
    print(found)
    uniform, weighted = np.array(found[None]), np.array(found["popular"])
    assert min(uniform.min(), weighted.min()) > 0.85
    assert weighted[:, 1].min() > uniform[:, 1].max()
    assert 0.47 < links.ranked(torch.randn(told.pages, 8), told, told.uniform) < 0.53
