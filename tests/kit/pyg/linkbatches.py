"""Tests of epochs of edges with negatives as PyTorch datasets: ranks, workers, resumption."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from asterism import Graph
from asterism.records.samples import LinkSeeds
from asterism.torch import BatchLoader, EdgeBatches, NodeBatches
from asterism_proto.errors import InvalidRequest

CITES = "cites"


def make_link_batch(graph: Graph, links: LinkSeeds, seed: int) -> tuple[LinkSeeds, list[int]]:
    """Return links, and the positions of their ends in a subgraph around them."""
    subgraph = graph.sample_subgraph(
        np.concatenate([links.src, links.dst]), [3], CITES, direction="in", seed=seed
    )
    return links, subgraph.seeds.tolist()


def ids(batches: Any) -> list[int]:
    return [edge for links, _ in batches for edge in links.edge_ids.tolist()]


@pytest.mark.parametrize("workers", [0, 2])
def test_each_edge_comes_once_with_true_negatives(papers: Graph, workers: int) -> None:
    all_edges = papers.edges_at(CITES, np.arange(papers.count_edges(CITES)))
    edge_set = set(zip(all_edges.src.tolist(), all_edges.dst.tolist(), strict=True))
    loaders = [
        BatchLoader(
            EdgeBatches(
                papers,
                CITES,
                700,
                make_link_batch,
                negatives={"amount": 1},
                seed=3,
                rank=rank,
                world=2,
            ),
            workers,
        )
        for rank in range(2)
    ]
    orders = []
    for _ in range(2):
        batches = [batch for loader in loaders for batch in loader]
        for links, local_ids in batches:
            assert len(local_ids) == 2 * len(links) == 4 * links.positives
            negative = set(
                zip(
                    links.src[links.positives :].tolist(),
                    links.dst[links.positives :].tolist(),
                    strict=True,
                )
            )
            assert not negative & edge_set
        orders.append(ids(batches))
        assert Counter(orders[-1]) == Counter(all_edges.edge_ids.tolist())
    assert orders[0] != orders[1]


def test_edge_epochs_resume_exactly_and_over_more_ranks(papers: Graph) -> None:
    def batches(rank: int = 0, world: int = 1) -> EdgeBatches:
        return EdgeBatches(
            papers,
            CITES,
            900,
            make_link_batch,
            negatives={"mode": "triplet", "amount": 2},
            seed=5,
            rank=rank,
            world=world,
        )

    expected = list(batches())
    interrupted = batches()
    first_batches = list(itertools.islice(interrupted, 2))
    state = json.loads(json.dumps(interrupted.state_dict()))
    resumed = batches()
    resumed.load_state_dict(state)
    actual = first_batches + list(resumed)
    assert [links.negatives.tolist() for links, _ in actual] == [
        links.negatives.tolist() for links, _ in expected
    ]
    ranks = [batches(rank, 3) for rank in range(3)]
    for rank_batches in ranks:
        rank_batches.reshard([state])
    assert Counter(
        ids(first_batches) + [edge for rank_batches in ranks for edge in ids(rank_batches)]
    ) == Counter(ids(expected))
    with pytest.raises(InvalidRequest, match=r"state of .* in version"):
        NodeBatches(papers, "paper", 10, seed=1).load_state_dict(state)
    with pytest.raises(InvalidRequest, match="negatives with seed"):
        EdgeBatches(papers, CITES, 10, negatives={"seed": 3}, seed=1)
