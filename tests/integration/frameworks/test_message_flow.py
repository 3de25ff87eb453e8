"""Batches of DGL's samplers with odd seeds, and fanouts by layer and edge type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.kit import cases

import asterism
from asterism import Graph
from asterism.training.message_flow import LaborFlowSampler, MessageFlowSampler
from asterism_proto.errors import InvalidRequest, NotFound


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("flows"))) as client:
        yield client.graph("cases").at(1)


def sampler(graph: Graph, fanouts: Any) -> MessageFlowSampler:
    return MessageFlowSampler(graph, fanouts, replace=False, prob=None, weights=False)


def test_a_batch_without_seeds_has_no_nodes(graph: Graph) -> None:
    labor = LaborFlowSampler(graph, [2], prob=None, importance=0, layer_dependency=False)
    for flows in (sampler(graph, [2, 1]), labor):
        for seeds in ({}, {"paper": []}, {"paper": np.zeros(0, np.int64), "person": []}):
            subgraph = flows.sample(flows.seeds_by_type(seeds), 1)
            assert {len(ids) for ids in subgraph.nodes.values()} == {0}


def test_seeds_that_do_not_exist_are_named(graph: Graph) -> None:
    for fanouts in ([2], [0], {"writes": [2]}):
        flows = sampler(graph, fanouts)
        with pytest.raises(
            NotFound, match="seeds with 500 of 'paper': expected nodes of version 1"
        ):
            flows.sample(flows.seeds_by_type({"paper": [3, 500]}), 1)
        assert flows.sample(flows.seeds_by_type({"paper": [3, 4]}), 1).nodes["paper"][0] == 3
    with pytest.raises(InvalidRequest, match="seeds with 3 of 'paper' twice"):
        flows.sample(flows.seeds_by_type({"paper": [3, 3]}), 1)


@pytest.mark.parametrize("seeds", [[1.5], ["a"], [2**63], [-2], [[1]], None, [None], {"paper": 3}])
def test_seeds_that_are_no_ids_are_refused(graph: Graph, seeds: Any) -> None:
    by_type = seeds if isinstance(seeds, dict) else {"paper": seeds}
    with pytest.raises(InvalidRequest, match="seeds"):
        sampler(graph, [2]).seeds_by_type(by_type)


def test_fanouts_may_differ_by_layer_and_edge_type(graph: Graph) -> None:
    flows = sampler(graph, [{"cites": 2}, {"writes": 3, ("paper", "cites", "paper"): -1}])
    subgraph = flows.sample(flows.seeds_by_type({"paper": np.arange(20)}), 5)
    expected = graph.sample_subgraph(
        np.arange(20),
        {"writes": [3, 0], "cites": [-1, 2]},
        ntype="paper",
        weighted=False,
        direction="in",
        expand="every",
        seed=5,
    )
    assert subgraph.num_sampled_edges == expected.num_sampled_edges
    for name, row in expected.row.items():
        assert np.array_equal(subgraph.row[name], row)
    assert subgraph.num_sampled_edges["person:writes:paper"][1] == 0
    assert "paper:by:person" not in subgraph.num_sampled_edges
