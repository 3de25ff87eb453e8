"""What users of a made-up shop buy next, through PyG's LinkLoader with times, from a cluster of three storageds."""

from __future__ import annotations

from examples import tastes
from tests.kit.cluster import LocalCluster


def test_the_last_purchases_tell_the_next_one_and_who_looks_ahead_promises_more_than_it_keeps() -> None:
    shop = tastes.made()
    with LocalCluster(storageds=3) as cluster, tastes.load(cluster.client(), shop).pin() as graph:
        models = {way: tastes.train(graph, shop, way, epochs=1, seed=0) for way in tastes.WAYS}
        own = {way: tastes.asked(graph, shop, model, way) for way, model in models.items()}
        honest = tastes.asked(graph, shop, models["whenever"], "until then")
    print(own, honest)
    assert own["the last ones"] > 0.7
    assert own["the last ones"] > own["until then"] + 0.1
    assert own["the last ones"] > honest + 0.1
    assert own["whenever"] > honest + 0.02
