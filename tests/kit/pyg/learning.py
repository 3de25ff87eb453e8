"""GraphSAGE on Cora through PyG's loader, from a cluster of three storageds, beside the same model on the graph in memory."""

from __future__ import annotations

from examples import graphsage
from tests.kit.cluster import LocalCluster
from tests.kit.pyg import in_memory
from tests.kit.shared import shared_or_skip


def test_graphsage_learns_cora_from_a_cluster_as_it_does_in_memory() -> None:
    root = shared_or_skip("data", "cora")
    with LocalCluster(storageds=3) as cluster, graphsage.load(cluster.client(), root).pin() as graph:
        papers = graphsage.splits(graph)
        assert [len(papers[name]) for name in ("train", "val", "test")] == [140, 500, 1000]
        served = graphsage.train(graphsage.loading(graph), papers, seed=1, epochs=20)
    data = in_memory.cora(root, graphsage.WORDS)
    kept = graphsage.train(in_memory.loading(data, graphsage.FANOUTS, graphsage.BATCH), papers, seed=1, epochs=20)
    print(f"served {served}, in memory {kept}")
    assert served.accuracy > 0.76
    assert abs(served.accuracy - kept.accuracy) < 0.04  # three standard errors of 1,000 answers, and what a start of a model makes
