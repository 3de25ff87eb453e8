"""Tests of epochs of GraphSAINT subgraphs as a torch dataset: ranks, workers, resumption."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import numpy as np
import pytest

from asterism import Graph
from asterism.records.samples import Subgraph
from asterism.saint import NodeSampler, RandomWalkSampler
from asterism.torch import BatchLoader, SaintBatches
from asterism_proto.errors import InvalidRequest

COUNT = 12


def nodes(graph: Graph, subgraph: Subgraph, seed: int) -> tuple[int, ...]:
    return tuple(subgraph.nodes["paper"].tolist())


def epochs(graph: Graph, **options: Any) -> SaintBatches:
    return SaintBatches(
        RandomWalkSampler(graph, "cites", 20, 2, seed=1), COUNT, nodes, seed=3, **options
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_epoch_is_equal_over_ranks_without_repeats(papers: Graph, workers: int) -> None:
    batches = epochs(papers)
    single_rank = [sorted(batches) for _ in range(2)]
    shared = sorted(
        batch
        for rank in range(2)
        for batch in BatchLoader(epochs(papers, rank=rank, world=2), workers)
    )
    assert shared == single_rank[0]
    assert len(set(single_rank[0]) | set(single_rank[1])) == 2 * COUNT
    subgraph = next(
        iter(SaintBatches(RandomWalkSampler(papers, "cites", 20, 2, seed=1), COUNT, seed=3))
    )
    assert tuple(subgraph.nodes["paper"].tolist()) in set(single_rank[0])
    assert subgraph.edge_ids is not None


def test_epoch_resumes_exactly(papers: Graph) -> None:
    batches = epochs(papers)
    first_batches = list(islice(batches, 5))
    state = json.loads(json.dumps(batches.state_dict()))
    resumed = epochs(papers)
    resumed.load_state_dict(state)
    assert first_batches + list(resumed) == list(epochs(papers))
    with pytest.raises(InvalidRequest, match="state of 'RandomWalkSampler"):
        SaintBatches(
            NodeSampler(papers, "cites", 20, seed=1), COUNT, nodes, seed=3
        ).load_state_dict(state)


def test_coefficients_come_with_subgraphs(papers: Graph) -> None:
    sampler = NodeSampler(papers, "cites", 400, seed=2)
    norms = sampler.normalize(5)
    for subgraph, node_norms, edge_norms in SaintBatches(
        sampler, 3, lambda graph, found, seed: (found, *norms.of(found)), seed=1
    ):
        assert (len(node_norms), len(edge_norms)) == (
            len(subgraph.nodes["paper"]),
            len(next(iter(subgraph.row.values()))),
        )
        assert np.isfinite(node_norms).all()
