"""Test of link prediction on Facebook pages by PyG's LinkLoader, with weighted negatives.

The graph is served by three storageds.
"""

from __future__ import annotations

from examples import links
from tests.kit.cluster import LocalCluster
from tests.kit.shared import shared_or_skip


def test_weighted_negatives_model_finds_held_out_links(example_cluster: LocalCluster) -> None:
    split = links.split(shared_or_skip("data", "facebook"))
    assert not {tuple(pair) for pair in split.test.sort(1).values.tolist()} & {
        tuple(pair) for pair in split.train.tolist()
    }
    with links.load(example_cluster.client(), split).pin() as graph:
        embeddings = links.train(graph, split, negatives="popular", epochs=1, seed=0)
    areas = [
        links.rank_accuracy(embeddings, split, non_links)
        for non_links in (split.uniform, split.popular)
    ]
    print(areas)
    assert min(areas) > 0.8
