"""Test of DeepWalk on Facebook pages, with weighted walks from three storageds."""

from __future__ import annotations

import torch
from examples import deepwalk
from tests.kit.cluster import LocalCluster
from tests.kit.shared import shared_or_skip


def test_walk_embeddings_separate_links_from_non_links(example_cluster: LocalCluster) -> None:
    links, test_links, pages = deepwalk.split(shared_or_skip("data", "facebook"))
    assert not {tuple(pair) for pair in test_links.tolist()} & {
        tuple(pair) for pair in links.tolist()
    }
    with deepwalk.load(example_cluster.client(), links, pages).pin() as graph:
        assert sum(len(batch) for batch in graph.scan_edges("likes")) == 2 * len(links)
        embeddings = deepwalk.train(graph, pages, epochs=3, seed=1)
    assert deepwalk.roc_auc(embeddings, test_links, links) >= 0.9
    assert 0.48 < deepwalk.roc_auc(torch.randn(pages, deepwalk.DIM), test_links, links) < 0.52
