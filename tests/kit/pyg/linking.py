"""Links of Facebook's pages through PyG's LinkLoader, from a cluster of three storageds, by weighted negatives."""

from __future__ import annotations

from examples import links
from tests.kit.cluster import LocalCluster
from tests.kit.shared import shared_or_skip


def test_a_model_of_triplets_with_weighted_negatives_tells_links_held_back() -> None:
    told = links.split(shared_or_skip("data", "facebook"))
    assert not {tuple(pair) for pair in told.held.sort(1).values.tolist()} & {tuple(pair) for pair in told.train.tolist()}
    with LocalCluster(storageds=3) as cluster, links.load(cluster.client(), told).pin() as graph:
        out = links.train(graph, told, negatives="popular", epochs=1, seed=0)
    found = [links.ranked(out, told, others) for others in (told.uniform, told.popular)]
    print(found)
    assert min(found) > 0.8
