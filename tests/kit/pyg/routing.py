"""Test of learning airport regions from routes by PyG's loader, from three storageds."""

from __future__ import annotations

from examples import routes
from tests.kit.cluster import LocalCluster
from tests.kit.shared import shared_or_skip


def test_hetero_model_learns_regions_from_weighted_routes(example_cluster: LocalCluster) -> None:
    root = shared_or_skip("data", "openflights")
    with routes.load(example_cluster.client(), root).pin() as graph:
        airport_data = routes.split_airports(graph, root)
        assert not set(airport_data.train.tolist()) & set(airport_data.test.tolist())
        accuracy = routes.train(graph, airport_data, weight="weight", seed=0, epochs=4)
    majority_share = float(
        (
            airport_data.region[airport_data.test]
            == airport_data.region[airport_data.train].mode().values
        )
        .double()
        .mean()
    )
    print(f"{accuracy} of {len(airport_data.test)}, by the commonest region alone {majority_share}")
    assert majority_share < 0.4
    assert accuracy > 0.85
