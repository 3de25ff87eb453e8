"""Excluded edges through the client: every call, replays, names, and a score that leaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit import cases, excluded_cases
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph
from asterism.cli.sample.options import ExclusionOptions
from asterism.training.batches import LinkEpochBatches
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb

USERS, ITEMS, EDGES = 30, 40, 160


def _ends() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return random edges: nothing but an edge itself predicts an edge."""
    generator = np.random.default_rng(2)
    chosen = generator.choice(USERS * ITEMS, EDGES, replace=False)
    return chosen // ITEMS, chosen % ITEMS


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(tmp_path_factory.mktemp("excluded")) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    """Return a graph of two versions; the second lacks every other edge and its reverse."""
    client.create_space(
        "shop",
        {
            "parts": 3,
            "direction": "both",
            "nodes": {"user": {}, "item": {}},
            "edges": {"user:buys:item": {"weighted": True}, "item:bought_by:user": {}},
        },
    )
    opened = client.graph("shop")
    src, dst = _ends()
    opened.upsert_nodes(np.arange(USERS), "user")
    opened.upsert_nodes(np.arange(ITEMS), "item")
    opened.upsert_edges(src, dst, "buys", weights=1 + np.arange(EDGES) % 3)
    opened.upsert_edges(dst, src, "bought_by")
    opened.build(timeout_s=HANG_S)
    opened.delete_edges(src[::2], dst[::2], "buys")
    opened.delete_edges(dst[::2], src[::2], "bought_by")
    opened.build(timeout_s=HANG_S)
    return opened


SEEDS = np.arange(USERS)
FORWARD = {"buys": (_ends()[0][::2], _ends()[1][::2])}
REVERSE = {"buys": "bought_by"}
PATH = ["buys", "bought_by"]
CALLS: dict[str, Callable[..., Any]] = {
    "neighbors": lambda g, **kw: g.sample_neighbors(SEEDS, "buys", 4, seed=1, **kw),
    "fanout": lambda g, **kw: g.sample_fanout(SEEDS, PATH, [3, 2], seed=1, **kw),
    "walk": lambda g, **kw: g.random_walk(SEEDS, PATH, 6, seed=1, **kw),
    "PinSAGE": lambda g, **kw: g.sample_pinsage(SEEDS, PATH, 5, walks=9, seed=1, **kw),
    "layer": lambda g, **kw: g.sample_layer(SEEDS, "buys", 9, seed=1, **kw),
    "layers": lambda g, **kw: g.sample_fanout_layerwise(SEEDS, PATH, [9, 9], seed=1, **kw),
    "subgraph": lambda g, **kw: g.sample_subgraph(SEEDS, [3, 3], ntype="user", seed=1, **kw),
    "ego": lambda g, **kw: g.sample_ego_subgraphs(SEEDS, [3, 3], ntype="user", seed=1, **kw),
    "LABOR": lambda g, **kw: g.sample_labor(SEEDS, [3, 3], ntype="user", seed=1, **kw),
    "HGT": lambda g, **kw: g.sample_hgt(SEEDS[:3], [5, 5], ntype="user", seed=1, **kw),
    "PageRank": lambda g, **kw: g.personalized_pagerank(SEEDS, None, 5, ntype="user", **kw),
    "reads": lambda g, **kw: g.neighbors(SEEDS, "buys", **kw),
    "hops": lambda g, **kw: g.multi_hop_neighbors(SEEDS, PATH, **kw),
    "top k": lambda g, **kw: g.top_k_neighbors(SEEDS, "buys", 3, **kw),
    "degrees": lambda g, **kw: g.degrees(SEEDS, "buys", **kw),
    "adjacency": lambda g, **kw: g.adjacency(SEEDS, np.arange(ITEMS), "buys", **kw),
    "induced": lambda g, **kw: g.induced_subgraph(
        np.arange(USERS), "buys", ntype=np.arange(USERS) % 2, **kw
    ),
}


def assert_same(first: Any, second: Any) -> None:
    if is_dataclass(first):
        for field in fields(first):
            if field.name not in ("token", "version"):
                assert_same(getattr(first, field.name), getattr(second, field.name))
    elif isinstance(first, dict):
        assert set(first) == set(second)
        for name in first:
            assert_same(first[name], second[name])
    elif isinstance(first, tuple | list):
        assert len(first) == len(second)
        for left, right in zip(first, second, strict=True):
            assert_same(left, right)
    elif isinstance(first, np.ndarray):
        np.testing.assert_array_equal(first, second)
    else:
        assert first == second


@pytest.mark.parametrize("name", CALLS)
def test_a_call_reads_a_version_without_the_edges(graph: Graph, name: str) -> None:
    call = CALLS[name]
    expected = call(graph.at(2))
    assert_same(call(graph.at(1), exclude=FORWARD, reverse_types=REVERSE), expected)
    assert_same(call(graph.at(1).without_edges(FORWARD, reverse_types=REVERSE)), expected)
    with pytest.raises(AssertionError):
        assert_same(call(graph.at(1)), expected)


def test_each_compared_case_depends_on_its_exclusions(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Exclusions that had no effect would be equal on any cluster."""
    ends = {name: cases.edges()[name][:2] for name in ("cites", "writes")}

    def digests(graph: Graph, count: int) -> dict[str, str]:
        excluded = {name: (src[:count], dst[:count]) for name, (src, dst) in ends.items()}
        people, papers = cases.person_ids()[:60], np.arange(0, cases.PAPERS, 2)
        calls = excluded_cases.calls(graph, excluded, people, papers, cases.SEED)
        return {name: cases.digest(call()) for name, call in calls.items()}

    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("compared"))) as opened:
        graph = opened.graph("cases").at(1)
        excluded, complete = digests(graph, 300), digests(graph, 0)
    assert {name for name in excluded if excluded[name] == complete[name]} == set()


def test_other_nodes_keep_their_samples(graph: Graph) -> None:
    src, dst = _ends()
    plain = graph.at(1).sample_neighbors(SEEDS, "buys", 40, seed=4)
    excluded = graph.at(1).sample_neighbors(SEEDS, "buys", 40, seed=4, exclude=(src[:3], dst[:3]))
    others = ~np.isin(SEEDS, src[:3])
    np.testing.assert_array_equal(plain.nodes[others], excluded.nodes[others])
    for source, target in zip(src[:3], dst[:3], strict=True):
        assert target in plain.nodes[source]
        assert target not in excluded.nodes[source]


def test_a_graph_without_edges_keeps_them_excluded(graph: Graph) -> None:
    view = graph.without_edges(FORWARD).at(1)
    expected = graph.at(1).degrees(SEEDS, "buys", exclude=FORWARD)
    np.testing.assert_array_equal(view.degrees(SEEDS, "buys"), expected)
    with view.pin() as held:
        np.testing.assert_array_equal(held.degrees(SEEDS, "buys"), expected)
    shares = view.explain.sample_neighbors(SEEDS, ["buys"], 3, seed=1)
    assert shares.shares[0].drawn == 3 * np.count_nonzero(expected)
    assert shares.price is not None
    assert shares.price.formula == f"count=3 x nodes={USERS} + exclude={EDGES // 2}"


def test_replays_take_the_excluded_edges_again(graph: Graph) -> None:
    at_first = graph.at(1)
    sample = at_first.sample_neighbors(SEEDS, "buys", 4, exclude=FORWARD, reverse_types=REVERSE)
    again = at_first.replay(sample.token, SEEDS, exclude=FORWARD, reverse_types=REVERSE)
    np.testing.assert_array_equal(sample.nodes, again.nodes)
    with pytest.raises(InvalidRequest, match="types, times and exclusions"):
        at_first.replay(sample.token, SEEDS)


def test_calls_without_neighbors_refuse_excluded_edges(graph: Graph) -> None:
    sections = graph._exclusion_sections(FORWARD, None, [0], None)
    with pytest.raises(InvalidRequest, match="exclude with SampleNodes: expected a call that"):
        graph._session.read(
            "sample_nodes", graphd_pb.SampleNodesRequest(space="shop", count=1), sections
        )


def _auc(scores: NDArray[Any], labels: NDArray[Any]) -> float:
    """Return the probability that a positive scores above a negative, ties counting half."""
    positives, negatives = scores[labels > 0][:, None], scores[labels == 0][None]
    return float(np.mean((positives > negatives) + 0.5 * (positives == negatives)))


def _score(graph: Graph, *, backward: bool, **options: Any) -> float:
    """Return the AUC of "the target is among the sampled neighbors" over an epoch of links."""

    def make(held: Graph, links: Any, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
        ends = (links.dst, links.src) if backward else (links.src, links.dst)
        sample = held.sample_neighbors(ends[0], "bought_by" if backward else "buys", 8, seed=seed)
        return (sample.nodes == ends[1][:, None]).mean(axis=1), links.labels

    batches = LinkEpochBatches(
        graph, "buys", 40, make, negatives={"amount": 1}, seed=3, ahead=0, **options
    )
    scores, labels = (np.concatenate(column) for column in zip(*batches, strict=True))
    return _auc(scores, labels)


def test_batches_of_links_do_not_leak_their_targets(graph: Graph) -> None:
    at_first = graph.at(1)
    # Edges are random, so an honest score is 0.5.
    assert _score(at_first, backward=False, exclude=False) > 0.85
    assert _score(at_first, backward=False) == 0.5
    assert _score(at_first, backward=True) > 0.85
    assert _score(at_first, backward=True, reverse_types=REVERSE) == 0.5


def test_the_command_takes_edges_as_options(graph: Graph) -> None:
    options = ExclusionOptions(
        exclude_edge=["buys=3,7", "user:buys:item=4,9"], reverse_type=["buys=bought_by"]
    )
    assert options.arguments(graph) == {
        "exclude": {"buys": ([3], [7]), "user:buys:item": ([4], [9])},
        "reverse_types": {"buys": "bought_by"},
    }
    assert ExclusionOptions(exclude_edge=["3,7", "4,9"]).arguments(graph) == {
        "exclude": ([3, 4], [7, 9]),
        "reverse_types": None,
    }
    assert ExclusionOptions().arguments(graph) == {}
    for odd, message in (
        (ExclusionOptions(exclude_edge=["3"]), "--exclude-edge='3': expected"),
        (ExclusionOptions(exclude_edge=["3,7", "buys=3,7"]), "expected a type with every edge"),
        (ExclusionOptions(exclude_edge=["3,x"]), "node='x': expected an integer"),
        (ExclusionOptions(reverse_type=["a=b"]), "--reverse-type: expected --exclude-edge too"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            odd.arguments(graph)


def test_batches_refuse_reverse_types_without_exclusions(graph: Graph) -> None:
    with pytest.raises(InvalidRequest, match="reverse_types with exclude=False"):
        LinkEpochBatches(graph.at(1), "buys", 40, seed=3, exclude=False, reverse_types=REVERSE)
