"""Batches of DGL's samplers with odd seeds, and fanouts by layer and edge type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.kit import cases

import asterism
from asterism import Graph
from asterism.records.samples import Subgraph
from asterism.training.link_flow import check_exclusion, exclusion, link_batch
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


def writes(count: int) -> tuple[np.ndarray, np.ndarray]:
    src, dst, _ = cases.edges()["writes"]
    return src[:count], dst[:count]


def test_links_are_pairs_of_positions_among_their_ends(graph: Graph) -> None:
    src, dst = writes(30)
    links = graph.link_seeds(np.stack([src, dst], axis=1), "writes", amount=2, seed=1)
    triplets = graph.link_seeds(
        np.stack([src, dst], axis=1), "writes", mode="triplet", amount=2, seed=1
    )
    rows = graph.edges_at("writes", np.arange(30))
    for given, negative_count in (
        (links, 60),
        ({"writes": links}, 60),
        (triplets, 60),
        ({"writes": rows}, None),
        ({("person", "writes", "paper"): (src, dst), "cites": [[3, 4, 7]]}, None),
    ):
        batch = link_batch(graph, given)
        for pairs in (batch.links, batch.negatives or {}):
            positions = batch.positions(graph.schema, pairs)
            assert set(positions) == {edge_type.name for edge_type in graph.schema.edge_types}
            for name, (row, col) in positions.items():
                src_type, _, dst_type = name.split(":")
                heads, tails = pairs.get(name, ((), ()))
                assert batch.nodes[src_type][row].tolist() == list(heads)
                assert batch.nodes[dst_type][col].tolist() == list(tails)
        if negative_count is None:
            assert batch.negatives is None
        else:
            assert batch.negatives is not None
            assert len(batch.negatives["person:writes:paper"][0]) == negative_count
    assert batch.edge_ids == {"paper:cites:paper": np.array([7])}
    assert {name: len(ids) for name, ids in batch.nodes.items()} == {
        "person": len(np.unique(src)),
        "paper": len(np.unique([*dst, 3, 4])),
    }


def test_no_sample_around_links_contains_them(graph: Graph) -> None:
    flows = sampler(graph, {"writes": [-1], "by": [-1]})
    src, dst = writes(600)
    batch = link_batch(graph, {"writes": (src, dst)})
    by = set(zip(*(ends.tolist() for ends in cases.edges()["by"][:2]), strict=True))
    shown = {}
    for name, (exclude, reverse_types) in {
        "none": exclusion(batch, None, None),
        "self": exclusion(batch, "self", None),
        "reverse_types": exclusion(batch, "reverse_types", {"writes": "by"}),
    }.items():
        found = flows.sample(batch.nodes, 1, exclude, reverse_types)
        shown[name] = [
            sum(pair in targets for pair in pairs)
            for pairs, targets in (
                (pairs_of(found, "person:writes:paper"), set(zip(src, dst, strict=True))),
                (pairs_of(found, "paper:by:person"), set(zip(dst, src, strict=True)) & by),
            )
        ]
    assert shown["none"][0] >= 600
    assert shown["none"][1] > 0
    assert shown["self"] == [0, shown["none"][1]]
    assert shown["reverse_types"] == [0, 0]


def pairs_of(found: Subgraph, name: str) -> list[tuple[int, int]]:
    """Return the edges of a type from a source to a destination; the sample follows them back."""
    src_type, _, dst_type = name.split(":")
    src, dst = found.nodes[src_type][found.row[name]], found.nodes[dst_type][found.col[name]]
    return list(zip(src.tolist(), dst.tolist(), strict=True))


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (([1], [2]), "links without an edge type: expected a dict"),
        ({"writes": ([3, 10], [2])}, "links of length 1: expected 2"),
        ({"writes": ([-1], [2])}, "links"),
        ({"writes": [1, 2]}, r"links of shape \[2\]"),
        ({3: ([1], [2])}, "links with 3: expected the name of an edge type"),
        (None, "links"),
    ],
)
def test_odd_links_are_refused(graph: Graph, links: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        link_batch(graph, links)


def test_links_of_another_type_are_refused(graph: Graph) -> None:
    seeds = graph.link_seeds([[3, 4]], "cites", seed=1)
    with pytest.raises(InvalidRequest, match=r"links\['person:writes:paper'\]: expected links of"):
        link_batch(graph, {"writes": seeds})


@pytest.mark.parametrize(
    ("exclude", "reverse_types", "message"),
    [
        ("all", None, "exclude='all': expected one of 'self', 'reverse_id', 'reverse_types'"),
        (True, None, "exclude=True: expected one of"),
        ("reverse_types", None, "exclude='reverse_types' without reverse_types"),
        (None, {"writes": "by"}, "reverse_types with exclude=None"),
        ("reverse_id", {"writes": "by"}, "reverse_types with exclude='reverse_id'"),
    ],
)
def test_exclusions_that_do_not_fit_are_refused(
    exclude: Any, reverse_types: Any, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        check_exclusion(exclude, reverse_types)
