"""Test of GraphSAGE on Cora from three storageds, against the graph in memory."""

from __future__ import annotations

from examples import graphsage
from tests.kit.cluster import LocalCluster
from tests.kit.pyg import in_memory
from tests.kit.shared import shared_or_skip


def test_graphsage_on_cluster_matches_in_memory(example_cluster: LocalCluster) -> None:
    root = shared_or_skip("data", "cora")
    with graphsage.load(example_cluster.client(), root).pin() as graph:
        split_nodes = graphsage.splits(graph)
        assert [len(split_nodes[name]) for name in ("train", "val", "test")] == [140, 500, 1000]
        served = graphsage.train(graphsage.loader_factory(graph), split_nodes, seed=1, epochs=20)
    data = in_memory.cora(root, graphsage.WORDS)
    local = graphsage.train(
        in_memory.loader_factory(data, graphsage.FANOUTS, graphsage.BATCH),
        split_nodes,
        seed=1,
        epochs=20,
    )
    print(f"served {served}, in memory {local}")
    assert served.accuracy > 0.76
    assert (
        abs(served.accuracy - local.accuracy) < 0.04
    )  # three standard errors of 1,000 predictions, and the effect of initialization
