"""Test of next-purchase prediction by PyG's LinkLoader with times, from three storageds.

The shop is synthetic.
"""

from __future__ import annotations

from examples import tastes
from tests.kit.cluster import LocalCluster


def test_recent_purchases_predict_next_and_leaks_inflate_auc(example_cluster: LocalCluster) -> None:
    shop = tastes.make_shop()
    with tastes.load(example_cluster.client(), shop).pin() as graph:
        models = {
            mode: tastes.train(graph, shop, mode, epochs=1, seed=0)
            for mode in tastes.SAMPLING_MODES
        }
        own_scores = {
            mode: tastes.test_auc(graph, shop, model, mode) for mode, model in models.items()
        }
        honest_score = tastes.test_auc(graph, shop, models["whenever"], "until then")
    print(own_scores, honest_score)
    assert own_scores["the last ones"] > 0.7
    assert own_scores["the last ones"] > own_scores["until then"] + 0.1
    assert own_scores["the last ones"] > honest_score + 0.1
    assert own_scores["whenever"] > honest_score + 0.02
