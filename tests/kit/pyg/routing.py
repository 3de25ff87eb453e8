"""Regions of airports by their routes, through PyG's loader, from a cluster of three storageds."""

from __future__ import annotations

from examples import routes
from tests.kit.cluster import LocalCluster
from tests.kit.shared import shared_or_skip


def test_a_model_of_several_types_learns_regions_from_weighted_routes() -> None:
    root = shared_or_skip("data", "openflights")
    with LocalCluster(storageds=3) as cluster, routes.load(cluster.client(), root).pin() as graph:
        of = routes.airports(graph, root)
        assert not set(of.train.tolist()) & set(of.test.tolist())
        found = routes.train(graph, of, weight="weight", seed=0, epochs=4)
    commonest = float((of.region[of.test] == of.region[of.train].mode().values).double().mean())
    print(f"{found} of {len(of.test)}, by the commonest region alone {commonest}")
    assert commonest < 0.4
    assert found > 0.85
