"""Edge cases of every operator: no nodes, unknown nodes, no draws, invalid arguments.

Results are the same embedded and through a served port.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.kit import cases, joint_cases

import asterism
from asterism import Graph
from asterism_daemonkit.rpc.transports import LocalTransport
from asterism_standalone.app import Standalone

NO_NODES = np.zeros(0, np.int64)
UNKNOWN = 12345
"""An id that no paper has."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    started = Standalone(cases.copy_built_graph(tmp_path_factory.mktemp("edges")))
    started.start()
    try:
        with asterism.Client(LocalTransport(started.handlers)) as client:
            joint_cases.load(client, "joint")
            yield started
    finally:
        started.stop()


@pytest.fixture(scope="module", params=["embedded", "remote"])
def client(request: pytest.FixtureRequest, service: Standalone) -> Iterator[asterism.Client]:
    if request.param == "embedded":
        with asterism.Client(LocalTransport(service.handlers)) as inside:
            yield inside
    else:
        with asterism.connect(
            service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0").address
        ) as outside:
            yield outside


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    return client.graph("cases")


@pytest.fixture(scope="module")
def joint(client: asterism.Client) -> Graph:
    return client.graph("joint")


def test_empty_inputs_give_results_without_rows(graph: Graph) -> None:
    assert graph.sample_neighbors(NO_NODES, "cites", 3).nodes.shape == (0, 3)
    assert graph.top_k_neighbors([], "cites", 3, edge_ids=True).nodes.shape == (0, 3)
    assert graph.neighbors([], "cites").indptr.tolist() == [0]
    assert graph.degrees([], ["cites", "by"]).shape == (0, 2)
    fanout = graph.sample_fanout([], ["cites", "by"], [2, 3], node_features=["vec"])
    assert [len(hop) for hop in fanout.hops] == [0, 0]
    assert fanout.features is not None
    # The feature is dense.
    assert fanout.features["paper"]["vec"].shape == (0, 3)  # type: ignore[union-attr]
    assert graph.random_walk([], ["cites"], 4).nodes.shape == (0, 5)
    assert graph.random_walk([], ["cites"], 4, walks=2, first_step="distinct").nodes.shape == (0, 5)
    assert graph.sample_nodes_like([], 3, ntype="paper").nodes.shape == (0, 3)
    assert graph.sample_negatives([], 3, "paper").nodes.shape == (0, 3)
    assert graph.sample_negatives(
        np.zeros((0, 2), np.int64), 3, "paper", exclude=(np.zeros(1, np.int64), NO_NODES)
    ).nodes.shape == (0, 3)
    assert graph.sample_negatives([], 3, "paper", shared=True).nodes.shape == (1, 3)
    assert {
        name: len(ids) for name, ids in graph.sample_subgraph([], [2, 2], "cites").nodes.items()
    } == {"person": 0, "paper": 0}
    assert {
        name: len(ids)
        for name, ids in graph.sample_labor([], [2, 2], "cites", importance=1).nodes.items()
    } == {"person": 0, "paper": 0}
    assert {
        name: len(ids) for name, ids in graph.sample_hgt([], [2, 2], "cites").nodes.items()
    } == {"person": 0, "paper": 0}
    assert graph.adjacency([], [], "cites").shape == (0, 0)
    assert [len(nodes) for nodes in graph.multi_hop_neighbors([], ["cites", "by"]).nodes] == [
        0,
        0,
        0,
    ]
    assert graph.node_types([], "paper").tolist() == []
    assert len(graph.graph_nodes([])) == 0
    features = graph.node_features([], ["vec", "words"])
    # The feature is dense.
    assert (features["vec"].shape, cases.rows_of(features["words"])) == ((0, 3), [])  # type: ignore[union-attr]
    assert len(graph.edge_features([], "when", "writes")["when"]) == 0
    assert graph.nodes_at("paper", []).tolist() == []


def test_a_layer_has_its_shape_even_if_empty(graph: Graph) -> None:
    empty = graph.sample_layer([], "cites", 3)
    assert empty.nodes.tolist() == empty.types.tolist() == [-1, -1, -1]
    assert empty.probabilities.tolist() == [0.0, 0.0, 0.0]
    assert graph.sample_layer(np.zeros((0, 4), np.int64), "cites", 3).nodes.shape == (0, 3)
    assert graph.sample_layer([[3], [4]], "cites", 0).nodes.shape == (2, 0)
    unknown = graph.sample_layer([[UNKNOWN, -1], [3, 4]], "cites", 2)
    assert unknown.nodes[0].tolist() == [-1, -1]
    assert (unknown.nodes[1] >= 0).all()
    stack = graph.sample_fanout_layerwise([[3], [4]], ["cites", "cites", "cites"], [2, 0, 5])
    assert [layer.nodes.shape for layer in stack.layers] == [(2, 2), (2, 0), (2, 5)]
    assert (stack.layers[2].nodes == -1).all()


def test_unknown_nodes_and_minus_one_give_documented_values(graph: Graph, joint: Graph) -> None:
    unknown = [UNKNOWN, -1]
    neighbors = graph.sample_neighbors(unknown, "cites", 2, edge_ids=True, probabilities=True)
    columns = (
        neighbors.nodes,
        neighbors.types,
        neighbors.weights,
        neighbors.edge_ids,
        neighbors.probabilities,
    )
    assert [np.unique(column).tolist() for column in columns if column is not None] == [
        [-1],
        [-1],
        [0],
        [-1],
        [0],
    ]
    assert graph.degrees(unknown, "cites", weight="weight").tolist() == [[0], [0]]
    assert graph.neighbors(unknown, "cites").indptr.tolist() == [0, 0, 0]
    assert graph.random_walk(unknown, ["cites"], 2).nodes.tolist() == [
        [UNKNOWN, -1, -1],
        [-1, -1, -1],
    ]
    features = graph.node_features(unknown, ["vec", "words", "weight"])
    # The feature is dense.
    assert features["vec"].tolist() == [[0, 0, 0], [0, 0, 0]]  # type: ignore[union-attr]
    assert cases.rows_of(features["words"]) == [[], []]
    assert features["weight"].tolist() == [0, 0]  # type: ignore[union-attr]  # dense
    edges = graph.edge_features([10**12, -1], ["when", "tags"], "writes")
    # The feature is dense.
    assert (edges["when"].tolist(), cases.rows_of(edges["tags"])) == ([0, 0], [[], []])  # type: ignore[union-attr]
    assert graph.node_types([3, *unknown], "paper").tolist() == [1, -1, -1]
    assert joint.node_types([3, joint_cases.USERS, 10**12, 7 * 10**12, -1]).tolist() == [
        0,
        1,
        2,
        -1,
        -1,
    ]
    assert joint.node_types([3, joint_cases.USERS], "item").tolist() == [-1, 1]
    with pytest.raises(asterism.NotFound, match=r"nodes\[1\] = 7000000000000"):
        joint.sample_nodes_like([3, 7 * 10**12], 2)
    like = joint.sample_nodes_like([3, 7 * 10**12], 2, unknown="none")
    assert (like.nodes[1].tolist(), like.types[1].tolist()) == ([-1, -1], [-1, -1])
    assert graph.sample_subgraph([3, 3, -1, UNKNOWN], [2], "cites").seeds.tolist() == [0, 0, -1, 1]


def test_zero_requested_draws_give_empty_results(graph: Graph) -> None:
    assert len(graph.sample_nodes(0, "paper")) == len(graph.sample_edges(0)) == 0
    assert graph.sample_neighbors([3], "cites", 0).nodes.shape == (1, 0)
    assert [len(hop) for hop in graph.sample_fanout([3], ["cites", "cites"], [0, 2]).hops] == [0, 0]
    assert graph.sample_negatives([[3, 4]], 0, "paper", probabilities=True).probabilities.shape == (
        1,
        0,
    )  # type: ignore[union-attr]  # requested
    assert graph.random_walk([3], ["cites"], 0).nodes.tolist() == [[3]]
    assert graph.sample_graph_labels(0).labels == ()


def test_ids_may_be_of_any_integer_type(graph: Graph) -> None:
    expected = graph.sample_neighbors([0, 3, 6], "cites", 2, seed=1).nodes.tolist()
    for ids in (np.array([0, 3, 6], np.uint64), np.arange(9, dtype=np.int8)[::3], (0, 3, 6)):
        assert graph.sample_neighbors(ids, "cites", 2, seed=1).nodes.tolist() == expected
    person = int(cases.person_ids()[0])
    mixed = graph.sample_neighbors(
        [3, person, -1], None, 2, ntype=np.array([1, 0, -1], np.int8), seed=1
    )
    assert [set(row) for row in mixed.types.tolist()][2] == {-1}
    assert set(mixed.types[0].tolist()) <= {1, 2}
    assert set(mixed.types[1].tolist()) == {0}


def test_an_empty_weight_name_means_the_edges_weight(graph: Graph) -> None:
    papers = np.arange(30)
    assert np.array_equal(
        graph.degrees(papers, "cites", weight=""), graph.degrees(papers, "cites", weight="weight")
    )
    assert graph.degrees(papers, "cites").dtype == np.int64


def test_unconnected_steps_end_walks_and_fanouts(graph: Graph) -> None:
    people = cases.person_ids()[:20]
    walks = graph.random_walk(people, graph.metapaths("person2writes2paper")[0], 3, seed=1)
    assert (walks.nodes[:, 2:] == -1).all()
    assert (walks.nodes[:, 1] >= 0).any()
    fanout = graph.sample_fanout(
        people, ["writes", "writes", "cites"], [2, 1, 3], node_features=["vec", "age"], seed=1
    )
    first = graph.sample_fanout(people, ["writes"], [2], seed=1)
    assert np.array_equal(fanout.hops[0].nodes, first.hops[0].nodes)
    for hop, entries in zip(fanout.hops[1:], (40, 120), strict=True):
        assert (hop.nodes == -1).all()
        assert (hop.types == -1).all()
        assert hop.weights is not None
        assert (len(hop), hop.weights.max()) == (entries, 0)
        assert hop.features is not None
        assert all(not np.asarray(c).any() for by in hop.features.values() for c in by.values())
    with pytest.raises(
        asterism.InvalidRequest, match="none of person:writes:paper starts at paper"
    ):
        graph.sample_fanout([3], ["writes", "cites"], [1, 1], ntype="paper")


INVALID_CALLS: list[tuple[str, Callable[[Graph], Any]]] = [
    (r"ntype=\[\]: expected at least one type", lambda g: g.sample_nodes(2, [])),
    # Passes a wrong type on purpose.
    ("ntype=1: expected the name", lambda g: g.sample_nodes(2, 1)),  # type: ignore[arg-type]
    (r"etype=\[\]", lambda g: g.sample_edges(2, [])),
    (r"etypes=\[\]", lambda g: g.sample_neighbors([3], [], 2)),
    (r"etypes=\(\)", lambda g: g.neighbors([3], ())),
    (r"etypes=\[\]", lambda g: g.degrees([3], [])),
    (r"etypes=\[\]", lambda g: g.sample_layer([3], [], 2)),
    (r"metapath=\[\]: expected at least one type", lambda g: g.random_walk([3], [[]], 2)),
    (r"metapath=\[\]", lambda g: g.sample_fanout([3], [[]], [2])),
    (r"etypes=\[\]", lambda g: g.sample_subgraph([3], {})),
    # Passes a wrong type on purpose.
    (r"metapath=7: expected the name", lambda g: g.random_walk([3], [7], 2)),  # type: ignore[list-item]
    (r"ntype=\[\]", lambda g: g.sample_negatives([3], 2, [])),
    # Passes a wrong type on purpose.
    (r"labels\[0\]=3: expected bytes or str", lambda g: g.graph_nodes([3])),  # type: ignore[list-item]
    # Passes a wrong type on purpose.
    ("p='x': expected 0.001 to 1000", lambda g: g.random_walk([3], ["cites"], 2, p="x")),  # type: ignore[arg-type]
    ("q=nan: expected", lambda g: g.random_walk([3], ["cites"], 2, q=float("nan"))),
    ("restart=1.5: expected 0 to 1", lambda g: g.random_walk([3], ["cites"], 2, restart=1.5)),
    (r"fanouts\[1\]=-2: expected -1 to", lambda g: g.sample_subgraph([3], [2, -2], "cites")),
    (
        "importance 101: expected 0 to 100 steps, or -1",
        lambda g: g.sample_labor([3], [2], "cites", importance=101),
    ),
    ("importance=-2: expected -1 to", lambda g: g.sample_labor([3], [2], "cites", importance=-2)),
    (
        "importance=0.5: expected an integer",
        lambda g: g.sample_labor([3], [2], "cites", importance=0.5),
    ),  # type: ignore[arg-type]  # on purpose
    (
        "expand='all': expected 'every' or 'first'",
        lambda g: g.sample_labor([3], [2], "cites", expand="all"),
    ),
    (r"fanouts\[1\]=-2: expected -1 to", lambda g: g.sample_labor([3], [2, -2], "cites")),
    (r"counts=\[\]: expected a count for each layer", lambda g: g.sample_hgt([3], [], "cites")),
    (
        r"counts=.*: expected a count for each layer, equally many",
        lambda g: g.sample_hgt([3], {"paper": [2, 2], "person": [1]}, "cites"),
    ),
    (
        r"counts\['paper'\]\[1\]=-1: expected 0 to",
        lambda g: g.sample_hgt([3], {"paper": [2, -1]}, "cites"),
    ),
    (
        r"names=\['nope'\]: expected features that one node type has, found none",
        lambda g: g.node_features([3], "nope"),
    ),
    ("k=0: expected 1 to", lambda g: g.top_k_neighbors([3], "cites", 0)),
    # Passes a wrong type on purpose.
    ("n=2.0: expected an integer", lambda g: g.sample_nodes(2.0)),  # type: ignore[arg-type]
    (r"nodes\[0\]=-5: expected -1 or more", lambda g: g.sample_neighbors([-5], "cites", 2)),
    (
        r"nodes\[0\]=9223372036854775808: expected an id below",
        lambda g: g.sample_neighbors(np.array([2**63], np.uint64), "cites", 2),
    ),
    ("=3.5: expected an integer", lambda g: g.sample_neighbors([3.5], "cites", 2)),
    (
        r"ntype\[0\]=7: expected the id of a node type, 0 to 1",
        lambda g: g.sample_neighbors([3], None, 2, ntype=[7]),
    ),
    ("ntype of length 1: expected 2", lambda g: g.sample_neighbors([3, 4], None, 2, ntype=[1])),
    (
        "none of paper:cites:paper starts at person",
        lambda g: g.sample_neighbors([3], "cites", 2, ntype="person"),
    ),
    (
        "expected one node type, because ids of this space are per type",
        lambda g: g.sample_negatives([[3, 4]], 2),
    ),
]


@pytest.mark.parametrize(("said", "call"), INVALID_CALLS, ids=range(len(INVALID_CALLS)))
def test_invalid_arguments_are_refused_with_their_value(
    graph: Graph, said: str, call: Callable[[Graph], Any]
) -> None:
    with pytest.raises(asterism.InvalidRequest, match=said):
        call(graph)
