"""Links of Facebook's pages through PyG's LinkLoader, from a cluster of three storageds, by uniform negatives and by weighted ones."""

from __future__ import annotations

import torch
from examples import links
from tests.kit.cluster import LocalCluster
from tests.kit.shared import shared_or_skip


def test_weighted_negatives_tell_links_from_pairs_with_popular_pages_better_than_uniform_ones_do() -> None:
    told = links.split(shared_or_skip("data", "facebook"))
    assert not {tuple(pair) for pair in told.held.sort(1).values.tolist()} & {tuple(pair) for pair in told.train.tolist()}
    with LocalCluster(storageds=3) as cluster, links.load(cluster.client(), told).pin() as graph:
        found = {}
        for table in (None, "popular"):
            out = links.train(graph, told, negatives=table, epochs=2, seed=0)
            found[table] = [links.ranked(out, told, others) for others in (told.uniform, told.popular)]
    print(found)
    assert min(found[None][0], found["popular"][0]) > 0.8
    assert found["popular"][1] > found[None][1] + 0.01
    assert 0.47 < links.ranked(torch.randn(told.pages, 8), told, told.uniform) < 0.53
