"""Epochs of edges as PyTorch's datasets, with negatives, over ranks and worker processes, stopped and gone on with."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from asterism import Graph
from asterism.records import LinkSeeds
from asterism.torch import BatchLoader, EdgeBatches, NodeBatches
from asterism_proto.errors import InvalidRequest

CITES = "cites"


def made(graph: Graph, links: LinkSeeds, seed: int) -> tuple[LinkSeeds, list[int]]:
    """Links, and the numbers of their ends in a subgraph around them."""
    sub = graph.sample_subgraph(np.concatenate([links.src, links.dst]), [3], CITES, direction="in", seed=seed)
    return links, sub.seeds.tolist()


def ids(batches: Any) -> list[int]:
    return [edge for links, _ in batches for edge in links.edge_ids.tolist()]


@pytest.mark.parametrize("workers", [0, 2])
def test_every_edge_comes_once_an_epoch_with_negatives_that_are_no_edges(papers: Graph, workers: int) -> None:
    every = papers.edges_at(CITES, np.arange(papers.count_edges(CITES)))
    true = set(zip(every.src.tolist(), every.dst.tolist(), strict=True))
    loaders = [BatchLoader(EdgeBatches(papers, CITES, 700, made, negatives={"amount": 1}, seed=3, rank=rank, world=2), workers) for rank in range(2)]
    orders = []
    for _ in range(2):
        batches = [batch for loader in loaders for batch in loader]
        for links, numbers in batches:
            assert len(numbers) == 2 * len(links) == 4 * links.positives
            negative = set(zip(links.src[links.positives :].tolist(), links.dst[links.positives :].tolist(), strict=True))
            assert not negative & true
        orders.append(ids(batches))
        assert Counter(orders[-1]) == Counter(every.edge_ids.tolist())
    assert orders[0] != orders[1]


def test_epochs_of_edges_go_on_exactly_where_they_stopped_and_over_more_ranks(papers: Graph) -> None:
    def batches(rank: int = 0, world: int = 1) -> EdgeBatches:
        return EdgeBatches(papers, CITES, 900, made, negatives={"mode": "triplet", "amount": 2}, seed=5, rank=rank, world=world)

    whole = list(batches())
    cut = batches()
    begun = list(itertools.islice(cut, 2))
    state = json.loads(json.dumps(cut.state_dict()))
    resumed = batches()
    resumed.load_state_dict(state)
    again = begun + list(resumed)
    assert [links.negatives.tolist() for links, _ in again] == [links.negatives.tolist() for links, _ in whole]
    shares = [batches(rank, 3) for rank in range(3)]
    for share in shares:
        share.reshard([state])
    assert Counter(ids(begun) + [edge for share in shares for edge in ids(share)]) == Counter(ids(whole))
    with pytest.raises(InvalidRequest, match="the state is of something else"):
        NodeBatches(papers, "paper", 10, seed=1).load_state_dict(state)
    with pytest.raises(InvalidRequest, match="negatives of seed"):
        EdgeBatches(papers, CITES, 10, negatives={"seed": 3}, seed=1)
