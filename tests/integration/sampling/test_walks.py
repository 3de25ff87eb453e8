"""Random walks: step distribution, restarts, dead ends and invalid requests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats
from tests.kit import cases

import asterism
from asterism import Graph

ALPHA = 1e-4


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("walks"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    return client.graph("cases")


@pytest.fixture(scope="module")
def ring(client: asterism.Client) -> Graph:
    """Return a graph with a cycle, a dead end and a node with only zero weight.

    Edges: 0 -> 1 (weight 1), 0 -> 2 (3), 1 -> 0 (1), 2 -> 0 (1), 2 -> 3 (1), 4 -> 4 (0). Node 3 has
    no out-edges.
    """
    client.create_space(
        "ring", {"parts": 3, "nodes": {"n": {}}, "edges": {"n:to:n": {"weighted": True}}}
    )
    graph = client.graph("ring")
    graph.upsert_nodes(np.arange(5), "n")
    graph.upsert_edges([0, 0, 1, 2, 2, 4], [1, 2, 0, 0, 3, 4], "to", weights=[1, 3, 1, 1, 1, 0])
    graph.build()
    return graph


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("direction", ["out", "in"])
def test_a_walk_with_edges_has_the_nodes_of_one_without(
    graph: Graph, weighted: bool, direction: str
) -> None:
    people = np.concatenate([cases.person_ids()[:50], cases.person_ids()[:10], [-1, 12]])
    metapath = (
        ["writes", "cites", ["by", "cites"], "by"]
        if direction == "out"
        else ["by", "cites", ["writes", "cites"], "cites"]
    )
    long, short = (
        graph.random_walk(
            people,
            path,
            ntype="person",
            weighted=weighted,
            direction=direction,
            edge_ids=edge_ids,
            seed=4,
        )
        for path, edge_ids in ((metapath, True), (metapath[:2], False))
    )
    assert long.nodes[:, 0].tolist() == people.tolist()
    assert np.array_equal(long.nodes[:, :3], short.nodes)
    assert long.edge_ids is not None
    assert np.array_equal(long.edge_ids >= 0, long.nodes[:, 1:] >= 0)
    assert np.array_equal(long.types >= 0, long.nodes[:, 1:] >= 0)


def test_every_path_has_the_probability_of_its_steps(ring: Graph) -> None:
    n = 40_000
    for weighted, heavy in ((True, 0.75), (False, 0.5)):
        walks = ring.random_walk(np.zeros(n, np.int64), ["to"], 3, weighted=weighted, seed=11)
        expected = {(0, 1, 0, 1): (1 - heavy) ** 2, (0, 1, 0, 2): (1 - heavy) * heavy}
        expected |= {
            (0, 2, 0, 1): heavy / 2 * (1 - heavy),
            (0, 2, 0, 2): heavy / 2 * heavy,
            (0, 2, 3, -1): heavy / 2,
        }
        paths, counts = np.unique(walks.nodes, axis=0, return_counts=True)
        assert {tuple(path) for path in paths.tolist()} == set(expected)
        shares = np.array([expected[tuple(path)] for path in paths.tolist()])
        assert stats.chisquare(counts, shares * n).pvalue > ALPHA


def test_walks_from_one_node_are_independent(ring: Graph) -> None:
    steps = ring.random_walk(np.zeros(40_000, np.int64), ["to"], 1, seed=12).nodes[:, 1]
    pairs = np.bincount((steps[:-1] - 1) * 2 + (steps[1:] - 1), minlength=4)
    p = np.array([0.25, 0.75])
    assert stats.chisquare(pairs, np.outer(p, p).ravel() * pairs.sum()).pvalue > ALPHA


def test_restart_probability_applies_at_dead_ends_too(ring: Graph) -> None:
    n = 40_000
    walks = ring.random_walk(np.full(n, 2), ["to"], 2, restart=0.25, edge_ids=True, seed=13)
    restarted = walks.types == -1
    assert (walks.nodes[:, 1:][restarted & (walks.nodes[:, 1:] >= 0)] == 2).all()
    assert stats.binomtest(int(np.count_nonzero(restarted[:, 0])), n, 0.25).pvalue > ALPHA
    stuck = walks.nodes[:, 1] == 3
    assert (
        stats.binomtest(
            int(np.count_nonzero(walks.nodes[stuck, 2] == 2)), int(stuck.sum()), 0.25
        ).pvalue
        > ALPHA
    )
    assert set(walks.nodes[stuck, 2].tolist()) == {2, -1}
    assert walks.edge_ids is not None
    assert (walks.edge_ids[restarted] == -1).all()
    always = ring.random_walk([0, 1, 3], ["to"], 5, restart=1.0, seed=1)
    assert always.nodes.tolist() == [[0] * 6, [1] * 6, [3] * 6]


def node2vec(
    edges: dict[int, dict[int, float]], path: tuple[int, ...], p: float, q: float
) -> float:
    """Return the probability of a path by the definition of node2vec."""
    share = 1.0
    for step in range(len(path) - 1):
        current, target = path[step], path[step + 1]
        bias = {x: w for x, w in edges[current].items() if w > 0}
        if step:
            previous = path[step - 1]
            bias = {
                x: w * (1 / p if x == previous else 1.0 if x in edges[previous] else 1 / q)
                for x, w in bias.items()
            }
        share *= bias[target] / sum(bias.values())
    return share


@pytest.fixture(scope="module")
def two_way_graph(client: asterism.Client) -> tuple[Graph, dict[int, dict[int, float]]]:
    """Return a graph of six nodes with edges of unequal weights in both directions."""
    client.create_space(
        "knit",
        {
            "parts": 4,
            "placement": "mix64",
            "nodes": {"n": {}},
            "edges": {"n:to:n": {"weighted": True}},
        },
    )
    graph = client.graph("knit")
    graph.upsert_nodes(np.arange(6), "n")
    pairs = [
        (0, 1, 1.0),
        (0, 2, 3.0),
        (1, 2, 2.0),
        (1, 3, 1.0),
        (2, 3, 1.0),
        (2, 4, 4.0),
        (3, 5, 2.0),
        (4, 5, 1.0),
    ]
    edges: dict[int, dict[int, float]] = {i: {} for i in range(6)}
    for a, b, weight in pairs:
        edges[a][b], edges[b][a] = weight, weight + (a == 2)
    graph.upsert_edges(
        *np.array([(a, b) for a in edges for b in edges[a]]).T,
        "to",
        weights=[w for a in edges for w in edges[a].values()],
    )
    graph.build()
    return graph, edges


@pytest.mark.parametrize(
    ("p", "q"), [(0.25, 4.0), (4.0, 0.25), (1.0, 0.1), (10.0, 1.0), (0.5, 2.0)]
)
@pytest.mark.parametrize("weighted", [True, False])
def test_walks_with_p_and_q_follow_node2vec(
    two_way_graph: tuple[Graph, dict[int, dict[int, float]]], p: float, q: float, weighted: bool
) -> None:
    graph, edges = two_way_graph
    if not weighted:
        edges = {a: dict.fromkeys(neighbors, 1.0) for a, neighbors in edges.items()}
    n = 40_000
    walks = graph.random_walk(np.full(n, 2), ["to"], 3, p=p, q=q, weighted=weighted, seed=21)
    paths, counts = np.unique(walks.nodes, axis=0, return_counts=True)
    observed_counts = dict(zip(map(tuple, paths.tolist()), counts.tolist(), strict=True))
    all_paths = [(2, a, b, c) for a in edges[2] for b in edges[a] for c in edges[b]]
    shares = np.array([node2vec(edges, path, p, q) for path in all_paths])
    assert abs(shares.sum() - 1) < 1e-12
    assert set(observed_counts) <= set(all_paths)
    rare = shares * n < 5
    observed = np.array([observed_counts.get(path, 0) for path in all_paths])
    observed, expected = (
        np.append(observed[~rare], observed[rare].sum()),
        np.append(shares[~rare], shares[rare].sum()) * n,
    )
    if expected[-1] < 5:
        observed, expected = (
            np.append(observed[:-2], observed[-2:].sum()),
            np.append(expected[:-2], expected[-2:].sum()),
        )
    assert stats.chisquare(observed, expected).pvalue > ALPHA


def test_p_and_q_do_not_apply_after_start_or_restart(ring: Graph) -> None:
    n = 20_000
    first = ring.random_walk(np.zeros(n, np.int64), ["to"], 1, p=100.0, q=0.01, seed=5).nodes[:, 1]
    assert stats.binomtest(int((first == 2).sum()), n, 0.75).pvalue > ALPHA
    walks = ring.random_walk(np.full(n, 2), ["to"], 3, p=1000.0, q=1.0, restart=0.3, seed=6)
    after_restart = (walks.types[:, 1] == -1) & (walks.types[:, 2] >= 0)
    assert (
        stats.binomtest(
            int((walks.nodes[after_restart, 3] == 0).sum()), int(after_restart.sum()), 0.5
        ).pvalue
        > ALPHA
    )
    assert ring.random_walk([3], ["to"], 3, p=0.5, q=2.0, seed=1).nodes.tolist() == [
        [3, -1, -1, -1]
    ]


def test_walk_ends_at_dead_ends_and_missing_nodes(ring: Graph) -> None:
    assert ring.random_walk([3, -1, 99, 4], ["to"], 3, seed=1).nodes.tolist() == [
        [3, -1, -1, -1],
        [-1] * 4,
        [99, -1, -1, -1],
        [4, -1, -1, -1],
    ]
    assert ring.random_walk([4], ["to"], 2, weighted=False, seed=1).nodes.tolist() == [[4, 4, 4]]
    assert ring.random_walk([], ["to"], 3).nodes.shape == (0, 4)
    assert ring.random_walk([1, 2], ["to"], 0).nodes.tolist() == [[1], [2]]


def test_metapath_repeats_and_types_name_the_edge_taken(graph: Graph) -> None:
    writes, cites, by = (graph.schema.edge_type_id(name) for name in ("writes", "cites", "by"))
    walks = graph.random_walk(cases.person_ids()[:100], ["writes", "cites", "by"], 7, seed=3)
    assert walks.nodes.shape == (100, 8)
    for step, etype in enumerate([writes, cites, by, writes, cites, by, writes]):
        assert set(walks.types[:, step].tolist()) <= {etype, -1}
        assert ((walks.types[:, step] == -1) == (walks.nodes[:, step + 1] == -1)).all()
    assert (walks.nodes[:, 7] >= 0).sum() > 10


def test_invalid_arguments_are_refused_with_their_value(graph: Graph) -> None:
    for call, error, message in (
        (
            lambda: graph.random_walk([1], None),
            asterism.InvalidRequest,
            "metapath=None, length=None: expected one of them",
        ),
        (lambda: graph.random_walk([1], "cites", 3), asterism.InvalidRequest, "'cites'"),
        (lambda: graph.random_walk([1], ["cites"], -3), asterism.InvalidRequest, "length=-3"),
        (
            lambda: graph.random_walk([1], ["cites"], 3, restart=1.5),
            asterism.InvalidRequest,
            "restart=1.5",
        ),
        (lambda: graph.random_walk([1], ["cites"], 3, p=0.0), asterism.InvalidRequest, "p=0.0"),
        (lambda: graph.random_walk([1], ["cites"], 3, q=1e4), asterism.InvalidRequest, "q=10000.0"),
        (lambda: graph.random_walk([1], ["eats"], 3), asterism.NotFound, "'eats'"),
        (lambda: graph.random_walk([1], [None], 3), asterism.InvalidRequest, "pass ntype"),
        (
            lambda: graph.random_walk(np.zeros(10**5, np.int64), ["cites"], 1000),
            asterism.InvalidRequest,
            "split the request",
        ),
    ):
        with pytest.raises(error, match=message):
            call()  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def multigraph(client: asterism.Client) -> Graph:
    """Return a graph with parallel edges.

    Edges: 0 -> 1 (twice, weights 1 and 2), 0 -> 2 (3), 0 -> 3 (4), 1 -> 2, 1 -> 3, 2 -> 0,
    5 -> 5 (0), 5 -> 0 (1). Nodes 3 and 4 have no out-edges.
    """
    client.create_space(
        "bunch", {"parts": 3, "nodes": {"n": {}}, "edges": {"n:to:n": {"weighted": True}}}
    )
    graph = client.graph("bunch")
    graph.upsert_nodes(np.arange(6), "n")
    graph.upsert_edges(
        [0, 0, 0, 0, 1, 1, 2, 5, 5],
        [1, 1, 2, 3, 2, 3, 0, 5, 0],
        "to",
        weights=[1, 2, 3, 4, 1, 1, 1, 0, 1],
    )
    graph.build()
    return graph


def test_distinct_first_steps_give_one_walk_per_neighbor(multigraph: Graph) -> None:
    starts = [4, 0, 1, -1, 2, 0, 99, 5]
    walks = multigraph.random_walk(
        starts, ["to"], 3, walks=3, first_step="distinct", edge_ids=True, seed=8
    )
    assert walks.starts is not None
    assert walks.starts.tolist() == [1, 1, 1, 2, 2, 4, 5, 5, 5, 7]
    assert walks.nodes[:, 0].tolist() == np.array(starts)[walks.starts].tolist()
    for start_index, neighbors in ((1, [1, 2, 3]), (2, [2, 3]), (4, [0]), (5, [1, 2, 3]), (7, [0])):
        assert sorted(walks.nodes[walks.starts == start_index, 1].tolist()) == neighbors
    ends = np.array([[0, 1], [0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 0], [5, 5], [5, 0]])
    assert walks.edge_ids is not None
    for step in range(3):
        present = walks.nodes[:, step + 1] >= 0
        edge_ends = ends[walks.edge_ids[present, step]]
        assert np.array_equal(edge_ends, walks.nodes[present, step : step + 2])
        assert ((walks.types[:, step] == 0) == present).all()
        assert (present | (walks.edge_ids[:, step] == -1)).all()
    dead_end = walks.nodes[:, 1] == 3
    assert (walks.nodes[dead_end, 2:] == -1).all()
    uniform = multigraph.random_walk(
        [5], ["to"], 1, walks=3, first_step="distinct", weighted=False, seed=8
    )
    assert sorted(uniform.nodes[:, 1].tolist()) == [0, 5]


@pytest.mark.parametrize("weighted", [True, False])
def test_distinct_first_steps_follow_successive_sampling(multigraph: Graph, weighted: bool) -> None:
    n = 30_000
    walks = multigraph.random_walk(
        np.zeros(n, np.int64), ["to"], 2, walks=2, first_step="distinct", weighted=weighted, seed=31
    )
    assert walks.starts is not None
    assert np.array_equal(walks.starts, np.repeat(np.arange(n), 2))
    first = {1: 3.0, 2: 3.0, 3: 4.0} if weighted else {1: 2.0, 2: 1.0, 3: 1.0}
    total = sum(first.values())
    second_step = {1: {2: 0.5, 3: 0.5}, 2: {0: 1.0}, 3: {-1: 1.0}}
    expected = {
        (a, x, b, y): first[a]
        / total
        * first[b]
        / (total - first[a])
        * second_step[a][x]
        * second_step[b][y]
        for a in first
        for b in first
        if a != b
        for x in second_step[a]
        for y in second_step[b]
    }
    assert abs(sum(expected.values()) - 1) < 1e-12
    paths, counts = np.unique(
        walks.nodes.reshape(n, 6)[:, [1, 2, 4, 5]], axis=0, return_counts=True
    )
    assert {tuple(path) for path in paths.tolist()} == set(expected)
    assert (
        stats.chisquare(
            counts, np.array([expected[tuple(path)] for path in paths.tolist()]) * n
        ).pvalue
        > ALPHA
    )


@pytest.mark.parametrize("weighted", [True, False])
def test_distinct_neighbors_pool_weights_over_edge_types(
    client: asterism.Client, weighted: bool
) -> None:
    space = f"union {weighted}".replace(" ", "_")
    types = {"n:a:n": {"weighted": True}, "n:b:n": {"weighted": True}, "n:c:m": {"weighted": True}}
    client.create_space(space, {"parts": 3, "nodes": {"n": {}, "m": {}}, "edges": types})
    graph, n = client.graph(space), 20_000
    graph.upsert_nodes([0, 1, 2], "n")
    graph.upsert_nodes([1, 2], "m")
    for relation, dst, weights in (
        ("a", [1, 1, 2], [1.0, 2.0, 0.0]),
        ("b", [1, 2], [3.0, 2.0]),
        ("c", [1, 2], [4.0, 0.0]),
    ):
        graph.upsert_edges([0] * len(dst), dst, relation, weights=weights)
    graph.build()
    # Neighbor and weight by (edge type, edge id). Node 1 of type n and node 1 of type m are two
    # different neighbors.
    edges = {
        (0, 0): ("n1", 1.0),
        (0, 1): ("n1", 2.0),
        (0, 2): ("n2", 0.0),
        (1, 0): ("n1", 3.0),
        (1, 1): ("n2", 2.0),
        (2, 0): ("m1", 4.0),
    }
    edges[2, 1] = ("m2", 0.0)
    weighted_edges = {
        edge: (to, weight if weighted else 1.0) for edge, (to, weight) in edges.items()
    }
    total = sum(weight for _, weight in weighted_edges.values())
    expected = {}
    for a, (to_a, weight_a) in weighted_edges.items():
        remaining = total - sum(weight for to, weight in weighted_edges.values() if to == to_a)
        expected |= {
            (*a, *b): weight_a / total * weight_b / remaining
            for b, (to_b, weight_b) in weighted_edges.items()
            if to_b != to_a
        }
    expected = {outcome: p for outcome, p in expected.items() if p > 0}
    assert abs(sum(expected.values()) - 1) < 1e-12
    walks = graph.random_walk(
        np.zeros(n, np.int64),
        [["a", "b", "c"]],
        1,
        walks=2,
        ntype="n",
        first_step="distinct",
        weighted=weighted,
        edge_ids=True,
        seed=3,
    )
    assert walks.edge_ids is not None
    sampled = np.stack([walks.types[:, 0], walks.edge_ids[:, 0]], axis=1).reshape(n, 4)
    outcomes, counts = np.unique(sampled, axis=0, return_counts=True)
    assert {tuple(outcome) for outcome in outcomes.tolist()} == set(expected)
    assert (
        stats.chisquare(
            counts, np.array([expected[tuple(outcome)] for outcome in outcomes.tolist()]) * n
        ).pvalue
        > ALPHA
    )
    all_neighbors = graph.random_walk(
        [0], None, 1, walks=9, ntype="n", first_step="distinct", weighted=weighted, seed=3
    )
    assert len(all_neighbors) == len({to for to, weight in weighted_edges.values() if weight > 0})


def test_independent_walks_equal_walks_of_repeated_nodes(graph: Graph) -> None:
    papers = np.array([3, 40, -1, 7, 3])
    several = graph.random_walk(
        papers, ["cites", None], 4, walks=3, restart=0.2, edge_ids=True, seed=6
    )
    repeated = graph.random_walk(
        np.repeat(papers, 3), ["cites", None], 4, restart=0.2, edge_ids=True, seed=6
    )
    assert several.starts is not None
    assert several.starts.tolist() == np.repeat(np.arange(5), 3).tolist()
    assert repeated.starts is None
    for name in ("nodes", "types", "edge_ids"):
        assert np.array_equal(getattr(several, name), getattr(repeated, name))


def test_fewer_distinct_walks_are_a_prefix_of_more(graph: Graph) -> None:
    people = cases.person_ids()[:80]
    more = graph.random_walk(people, ["writes"], 1, walks=9, first_step="distinct", seed=5)
    fewer = graph.random_walk(people, ["writes"], 1, walks=2, first_step="distinct", seed=5)
    assert more.starts is not None
    assert fewer.starts is not None
    order = np.concatenate([np.arange(count) for count in np.bincount(more.starts, minlength=80)])
    assert np.array_equal(more.nodes[order < 2], fewer.nodes)
    neighbors = graph.neighbors(people, "writes")
    for row in range(80):
        # The weights were requested.
        heavy = neighbors.weights[neighbors.indptr[row] : neighbors.indptr[row + 1]] > 0  # type: ignore[index]
        assert (more.starts == row).sum() == min(9, len(np.unique(neighbors[row][heavy])))


def test_a_hub_has_walks_over_many_different_neighbors(client: asterism.Client) -> None:
    client.create_space(
        "hub", {"parts": 2, "nodes": {"n": {}}, "edges": {"n:to:n": {"weighted": True}}}
    )
    graph, size = client.graph("hub"), 20_000
    graph.upsert_nodes(np.arange(size), "n")
    weights = np.ones(size)
    weights[7] = 1e9  # so heavy that nearly every draw selects it again
    graph.upsert_edges(np.zeros(size, np.int64), np.arange(size), "to", weights=weights)
    graph.build()
    walks = graph.random_walk([0], ["to"], 1, walks=1000, first_step="distinct", seed=2)
    assert walks.nodes[0, 1] == 7
    assert len(np.unique(walks.nodes[:, 1])) == len(walks) == 1000


def test_invalid_distinct_walks_are_refused(graph: Graph) -> None:
    for call, message in (
        (
            lambda: graph.random_walk([1], ["cites"], 3, first_step="distinct"),
            "expected the number of walks",
        ),
        (
            lambda: graph.random_walk([1], ["cites"], 3, walks=2, first_step="first"),
            "first_step='first'",
        ),
        (lambda: graph.random_walk([1], ["cites"], 3, walks=0), "walks=0"),
        (lambda: graph.random_walk([1], ["cites"], 0, walks=2, first_step="distinct"), "length=0"),
        (
            lambda: graph.random_walk(np.zeros(10**5, np.int64), ["cites"], 10, walks=100),
            r"walks=10000000 x \(length=10 \+ 1\)",
        ),
        (
            lambda: graph.metapaths("paper2cites2person"),
            r"step 1 \('paper2cites2person', character 1\): expected an edge type",
        ),
    ):
        with pytest.raises(asterism.InvalidRequest, match=message):
            call()


def test_parsed_metapath_can_be_walked(graph: Graph) -> None:
    writes, by = graph.schema.edge_type_id("writes"), graph.schema.edge_type_id("by")
    first, second = graph.metapaths(
        "person2paper-paper2by2person;paper2by2person-person2writes2paper"
    )
    assert (first.start, second.start) == ("person", "paper")
    walks = graph.random_walk(cases.person_ids()[:60], first, 5, seed=2)
    assert [set(column) - {-1} for column in walks.types.T.tolist()] == [
        {writes},
        {by},
        {writes},
        {by},
        {writes},
    ]
    assert graph.random_walk([3, 4], second, seed=2).nodes.shape == (2, 3)
