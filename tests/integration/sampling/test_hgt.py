"""HGT sampling through the client: distribution on several hosts, hubs, errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from tests.distributions.checks import require_counts
from tests.distributions.checks.hgt import EDGES, NODES, outcome_probabilities
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

import asterism
from asterism import Client, Graph

NODE_TYPES = ("a", "b")
COUNTS = {"b": [1, 1], "a": [2, 1]}
LEAVES = 20_000


def load_graphs(client: Client) -> None:
    """Load the graph of the distribution tests, and one with a hub."""
    names = [f"{NODE_TYPES[src]}:e{number}:{NODE_TYPES[dst]}" for number, src, dst in EDGES]
    client.create_space(
        "budgets",
        {
            "parts": 5,
            "direction": "both",
            "nodes": {name: {} for name in NODE_TYPES},
            "edges": {name: {"weighted": True} for name in names},
        },
    )
    graph = client.graph("budgets")
    for name, size in zip(NODE_TYPES, NODES, strict=True):
        graph.upsert_nodes(np.arange(size), name)
    for name, rows in zip(names, EDGES.values(), strict=True):
        src, dst, weights = zip(*rows, strict=True)
        graph.upsert_edges(src, dst, name, weights=weights)
    graph.build(timeout_s=HANG_S)
    client.create_space(
        "hub", {"parts": 5, "direction": "both", "nodes": {"n": {}}, "edges": {"n:to:n": {}}}
    )
    hub = client.graph("hub")
    hub.upsert_nodes(np.arange(LEAVES + 2), "n")
    # Node 0 leads to all leaves, node 1 to leaves 2 and 3. Leaves 2 and 3 thus have a budget
    # slightly above 1/2; the budgets of all other leaves are tiny.
    hub.upsert_edges(
        np.concatenate([np.zeros(LEAVES, np.int64), [1, 1]]),
        np.concatenate([np.arange(2, LEAVES + 2), [2, 3]]),
        "to",
    )
    hub.build(timeout_s=HANG_S)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("hgt")) as opened:
        load_graphs(opened)
        yield opened


@pytest.fixture(scope="module")
def three_storageds() -> Iterator[Client]:
    with LocalCluster(storageds=3) as cluster:
        load_graphs(cluster.client())
        yield cluster.client()


@pytest.fixture(scope="module", params=["embedded", "three_storageds"])
def client(request: pytest.FixtureRequest) -> Client:
    client: Client = request.getfixturevalue(request.param)
    return client


@pytest.fixture
def graph(client: Client) -> Graph:
    return client.graph("budgets")


def outcome(subgraph: asterism.Subgraph) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the nodes sampled by each layer as (type, id), type by type."""
    ends = [np.cumsum(subgraph.num_sampled_nodes[name]) for name in NODE_TYPES]
    return tuple(
        tuple(
            (kind, node)
            for kind in (0, 1)
            for node in subgraph.nodes[NODE_TYPES[kind]][
                ends[kind][layer - 1] : ends[kind][layer]
            ].tolist()
        )
        for layer in (1, 2)
    )


@pytest.mark.parametrize("weighted", [True, False])
def test_layers_follow_their_distribution_through_the_client(
    embedded: Client, weighted: bool
) -> None:
    graph = embedded.graph("budgets")
    probabilities = outcome_probabilities(
        ((0, 0),), [COUNTS["a"], COUNTS["b"]], uniform=not weighted
    )
    counts = Counter(
        outcome(graph.sample_hgt([0], COUNTS, ntype="a", weighted=weighted, seed=seed))
        for seed in range(1500)
    )
    assert set(counts) <= set(probabilities)
    require_counts(
        [counts[key] for key in probabilities],
        np.array(list(probabilities.values())) * 1500,
        f"layers, weighted={weighted}",
    )


@pytest.mark.parametrize("weighted", [True, False])
def test_layers_are_the_same_on_several_hosts(
    embedded: Client, three_storageds: Client, weighted: bool
) -> None:
    """Every outcome depends on the seed alone, so it follows the distribution here too."""
    for seed in range(300):
        on_one_host, on_three = (
            outcome(
                client.graph("budgets").sample_hgt(
                    [0], COUNTS, ntype="a", weighted=weighted, seed=seed
                )
            )
            for client in (embedded, three_storageds)
        )
        assert on_one_host == on_three


def test_edges_are_those_of_the_induced_subgraph(graph: Graph) -> None:
    sample = graph.sample_hgt(
        [0, 0, -1, 4],
        [2, 2],
        ["e1", "e0"],
        among=["e2", "e1", "e0"],
        ntype="a",
        weights=True,
        seed=5,
    )
    assert sample.seeds.tolist() == [0, 0, -1, 1]
    assert {name: counts[0] for name, counts in sample.num_sampled_nodes.items()} == {
        "a": 2,
        "b": 0,
    }
    for name in NODE_TYPES:
        assert (
            sum(sample.num_sampled_nodes[name])
            == len(sample.nodes[name])
            == len(set(sample.nodes[name].tolist()))
        )
    nodes = np.concatenate(list(sample.nodes.values()))
    types = np.repeat([0, 1], [len(sample.nodes[name]) for name in NODE_TYPES])
    induced = graph.induced_subgraph(nodes, ["e2", "e1", "e0"], ntype=types, weights=True)
    assert sample.edge_ids is not None
    assert induced.edge_ids is not None
    assert sample.weights is not None
    assert induced.weights is not None
    for name in induced.row:
        for one, other in (
            (sample.row, induced.row),
            (sample.col, induced.col),
            (sample.edge_ids, induced.edge_ids),
            (sample.weights, induced.weights),
        ):
            assert np.array_equal(one[name], other[name])


def test_filters_act_as_if_other_edges_did_not_exist(graph: Graph) -> None:
    sample = graph.sample_hgt([0], {"a": [9], "b": [9]}, ntype="a", where="weight >= 2", seed=1)
    assert sorted(sample.nodes["a"].tolist()) == [
        0,
        1,
    ]  # through the heavier one of two parallel edges
    assert sample.nodes["b"].tolist() == [0]
    assert (
        sum(len(row) for row in sample.row.values()) == 3
    )  # 0 to 1, its reverse, and 0 of the other type


def test_hub_gives_little_weight_to_each_leaf(client: Client) -> None:
    hub = client.graph("hub")
    firsts = Counter(
        hub.sample_hgt([0, 1], [2], seed=seed).nodes["n"][2:].tolist()[0] for seed in range(200)
    )
    assert set(firsts) <= {2, 3, *range(4, LEAVES + 2)}
    assert (
        firsts[2] + firsts[3] >= 195
    )  # relative to these two, the others have 20,000 / 20,000^2: one in 10,000 together
    all_leaves = hub.sample_hgt([0], [LEAVES + 99], seed=1)
    assert sorted(all_leaves.nodes["n"].tolist()) == [0, *range(2, LEAVES + 2)]
    assert len(all_leaves.row["n:to:n"]) == LEAVES


def test_sample_is_explained_and_replayed(graph: Graph) -> None:
    sample = graph.sample_hgt([0, 1], [2, 1], ntype="a")
    replayed = graph.replay(sample.token, [0, 1])
    assert {name: ids.tolist() for name, ids in replayed.nodes.items()} == {
        name: ids.tolist() for name, ids in sample.nodes.items()
    }
    explanation = graph.explain.sample_hgt([0, 1], [2, 1], ntype="a", seed=3)
    assert {request.method for request in explanation.storage_requests} == {
        "read_neighbors",
        "read_induced_edges",
    }
    assert explanation.rounds == 3


def test_invalid_requests_are_refused_with_the_value(graph: Graph) -> None:
    for message, counts in (
        (r"counts=\{\}", {}),
        ("a count for each layer", [[]][0]),
        ("equally many for each", {"a": [1], "b": [1, 2]}),
    ):
        with pytest.raises(asterism.InvalidRequest, match=message):
            graph.sample_hgt([0], counts, ntype="a")
    with pytest.raises(asterism.InvalidRequest, match=r"counts\[1\]=-3: expected 0"):
        graph.sample_hgt([0], [1, -3], ntype="a")
    with pytest.raises(asterism.NotFound, match="'c'"):
        graph.sample_hgt([0], {"c": [1]}, ntype="a")
    with pytest.raises(asterism.InvalidRequest, match="ntype"):
        graph.sample_hgt([0], [1])
