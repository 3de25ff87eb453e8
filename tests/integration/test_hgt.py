"""Layers by budgets through the client: the law, on several hosts; hubs; what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S
from tests.law.checks import require_counts
from tests.law.checks.budgeted import EDGES, NODES, law_of

import asterism
from asterism import Client, Graph

NAMES = ("a", "b")
COUNTS = {"b": [1, 1], "a": [2, 1]}
LEAVES = 20_000


def load(client: Client) -> None:
    """The graph of the law's checks, and one of a hub."""
    names = [f"{NAMES[src]}:e{at}:{NAMES[dst]}" for at, src, dst in EDGES]
    client.create_space(
        "budgets", {"parts": 5, "direction": "both", "nodes": {name: {} for name in NAMES}, "edges": {name: {"weighted": True} for name in names}}
    )
    graph = client.graph("budgets")
    for name, size in zip(NAMES, NODES, strict=True):
        graph.upsert_nodes(np.arange(size), name)
    for name, rows in zip(names, EDGES.values(), strict=True):
        src, dst, weights = zip(*rows, strict=True)
        graph.upsert_edges(src, dst, name, weights=weights)
    graph.build(timeout_s=HANG_S)
    client.create_space("hub", {"parts": 5, "direction": "both", "nodes": {"n": {}}, "edges": {"n:to:n": {}}})
    hub = client.graph("hub")
    hub.upsert_nodes(np.arange(LEAVES + 2), "n")
    # Node 0 leads to all leaves, node 1 to leaf 2 and 3; leaf 2 so has a budget of 1/2 and a little, all others but 3 next to none.
    hub.upsert_edges(np.concatenate([np.zeros(LEAVES, np.int64), [1, 1]]), np.concatenate([np.arange(2, LEAVES + 2), [2, 3]]), "to")
    hub.build(timeout_s=HANG_S)


@pytest.fixture(scope="module", params=["embedded", "three storageds"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    if request.param == "embedded":
        with asterism.open(tmp_path_factory.mktemp("hgt")) as opened:
            load(opened)
            yield opened
        return
    with LocalCluster(storageds=3) as cluster:
        load(cluster.client())
        yield cluster.client()


@pytest.fixture
def graph(client: Client) -> Graph:
    return client.graph("budgets")


def outcome(found: asterism.Subgraph) -> tuple[tuple[tuple[int, int], ...], ...]:
    """What each layer drew, of both types in turn."""
    ends = [np.cumsum(found.num_sampled_nodes[name]) for name in NAMES]
    return tuple(
        tuple((kind, node) for kind in (0, 1) for node in found.nodes[NAMES[kind]][ends[kind][at - 1] : ends[kind][at]].tolist()) for at in (1, 2)
    )


@pytest.mark.parametrize("weighted", [True, False])
def test_layers_follow_their_law_through_the_client(graph: Graph, weighted: bool) -> None:
    law = law_of(((0, 0),), [COUNTS["a"], COUNTS["b"]], uniform=not weighted)
    seen = Counter(outcome(graph.sample_hgt([0], COUNTS, ntype="a", weighted=weighted, seed=seed)) for seed in range(1500))
    assert set(seen) <= set(law)
    require_counts([seen[key] for key in law], np.array(list(law.values())) * 1500, f"layers, weighted={weighted}")


def test_edges_are_those_of_the_induced_subgraph(graph: Graph) -> None:
    found = graph.sample_hgt([0, 0, -1, 4], [2, 2], ["e1", "e0"], among=["e2", "e1", "e0"], ntype="a", weights=True, seed=5)
    assert found.seeds.tolist() == [0, 0, -1, 1]
    assert {name: counts[0] for name, counts in found.num_sampled_nodes.items()} == {"a": 2, "b": 0}
    for name in NAMES:
        assert sum(found.num_sampled_nodes[name]) == len(found.nodes[name]) == len(set(found.nodes[name].tolist()))
    nodes = np.concatenate(list(found.nodes.values()))
    types = np.repeat([0, 1], [len(found.nodes[name]) for name in NAMES])
    whole = graph.induced_subgraph(nodes, ["e2", "e1", "e0"], ntype=types, weights=True)
    assert found.edge_ids is not None
    assert whole.edge_ids is not None
    assert found.weights is not None
    assert whole.weights is not None
    for name in whole.row:
        for one, other in ((found.row, whole.row), (found.col, whole.col), (found.edge_ids, whole.edge_ids), (found.weights, whole.weights)):
            assert np.array_equal(one[name], other[name])


def test_conditions_are_as_if_other_edges_were_not_there(graph: Graph) -> None:
    some = graph.sample_hgt([0], {"a": [9], "b": [9]}, ntype="a", where="weight >= 2", seed=1)
    assert sorted(some.nodes["a"].tolist()) == [0, 1]  # by the heavier one of two parallel edges
    assert some.nodes["b"].tolist() == [0]
    assert sum(len(row) for row in some.row.values()) == 3  # 0 to 1, and back, and 0 of the other type


def test_a_hub_gives_little_to_each_of_many(client: Client) -> None:
    hub = client.graph("hub")
    firsts = Counter(hub.sample_hgt([0, 1], [2], seed=seed).nodes["n"][2:].tolist()[0] for seed in range(200))
    assert set(firsts) <= {2, 3, *range(4, LEAVES + 2)}
    assert firsts[2] + firsts[3] >= 195  # the others have 20,000 / 20,000^2 of what these two have: one in 10,000 together
    everything = hub.sample_hgt([0], [LEAVES + 99], seed=1)
    assert sorted(everything.nodes["n"].tolist()) == [0, *range(2, LEAVES + 2)]
    assert len(everything.row["n:to:n"]) == LEAVES


def test_a_sample_is_explained_and_made_again(graph: Graph) -> None:
    found = graph.sample_hgt([0, 1], [2, 1], ntype="a")
    again = graph.replay(found.token, [0, 1])
    assert {name: ids.tolist() for name, ids in again.nodes.items()} == {name: ids.tolist() for name, ids in found.nodes.items()}
    told = graph.explain.sample_hgt([0, 1], [2, 1], ntype="a", seed=3)
    assert {one.method for one in told.asked} == {"read_neighbors", "read_between"}
    assert told.rounds == 3


def test_what_is_no_request_is_refused_with_its_value(graph: Graph) -> None:
    for said, counts in ((r"counts \{\}", {}), ("one count per layer", [[]][0]), ("as many for every", {"a": [1], "b": [1, 2]})):
        with pytest.raises(asterism.InvalidRequest, match=said):
            graph.sample_hgt([0], counts, ntype="a")
    with pytest.raises(asterism.InvalidRequest, match=r"counts\[1\] -3: expected 0"):
        graph.sample_hgt([0], [1, -3], ntype="a")
    with pytest.raises(asterism.NotFound, match="'c'"):
        graph.sample_hgt([0], {"c": [1]}, ntype="a")
    with pytest.raises(asterism.InvalidRequest, match="ntype"):
        graph.sample_hgt([0], [1])
