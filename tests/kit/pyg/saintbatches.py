"""Epochs of subgraphs drawn as a whole, as a dataset of torch: over ranks and workers, going on where they stopped."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import numpy as np
import pytest

from asterism import Graph
from asterism.records import Subgraph
from asterism.saint import NodeSampler, RandomWalkSampler
from asterism.torch import BatchLoader, SaintBatches
from asterism_proto.errors import InvalidRequest

COUNT = 12


def nodes(graph: Graph, found: Subgraph, seed: int) -> tuple[int, ...]:
    return tuple(found.nodes["paper"].tolist())


def epochs(graph: Graph, **more: Any) -> SaintBatches:
    return SaintBatches(RandomWalkSampler(graph, "cites", 20, 2, seed=1), COUNT, nodes, seed=3, **more)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_is_the_same_over_ranks_and_workers_and_no_subgraph_comes_twice(papers: Graph, workers: int) -> None:
    batches = epochs(papers)
    alone = [sorted(batches) for _ in range(2)]
    shared = sorted(batch for rank in range(2) for batch in BatchLoader(epochs(papers, rank=rank, world=2), workers))
    assert shared == alone[0]
    assert len(set(alone[0]) | set(alone[1])) == 2 * COUNT
    whole = next(iter(SaintBatches(RandomWalkSampler(papers, "cites", 20, 2, seed=1), COUNT, seed=3)))
    assert tuple(whole.nodes["paper"].tolist()) in set(alone[0])
    assert whole.edge_ids is not None


def test_an_epoch_goes_on_exactly_where_it_stopped(papers: Graph) -> None:
    batches = epochs(papers)
    begun = list(islice(batches, 5))
    state = json.loads(json.dumps(batches.state_dict()))
    going = epochs(papers)
    going.load_state_dict(state)
    assert begun + list(going) == list(epochs(papers))
    with pytest.raises(InvalidRequest, match="the state is of 'RandomWalkSampler"):
        SaintBatches(NodeSampler(papers, "cites", 20, seed=1), COUNT, nodes, seed=3).load_state_dict(state)


def test_coefficients_come_with_subgraphs(papers: Graph) -> None:
    sampler = NodeSampler(papers, "cites", 400, seed=2)
    norms = sampler.normalize(5)
    for found, of_nodes, of_edges in SaintBatches(sampler, 3, lambda graph, found, seed: (found, *norms.of(found)), seed=1):
        assert (len(of_nodes), len(of_edges)) == (len(found.nodes["paper"]), len(next(iter(found.row.values()))))
        assert np.isfinite(of_nodes).all()
