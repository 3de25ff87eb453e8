"""Samples under a filter, end to end: their distribution, population and errors."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from tests.kit import conditional
from tests.kit.bodies import assert_follows_weights
from tests.kit.cluster import LocalCluster

import asterism
from asterism import Graph

COLUMNS = conditional.columns()
ITEM_MASKS, BUY_MASKS = (
    conditional.item_filters(COLUMNS.item),
    conditional.purchase_filters(COLUMNS.buys),
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with asterism.open(tmp_path_factory.mktemp("conditions")) as client:
        yield conditional.load(client, "shop")


@pytest.mark.parametrize("where", ITEM_MASKS)
def test_node_filters_match_numpy_masks(graph: Graph, where: str) -> None:
    matching = np.flatnonzero(ITEM_MASKS[where])
    assert matching.size > 0
    samples = graph.sample_nodes(
        matching.size, "item", where=where, weighted=False, replace=False, seed=1
    ).nodes
    assert np.array_equal(np.sort(samples), matching)
    with pytest.raises(
        asterism.errors.InvalidRequest,
        match=f"{matching.size + 1} different nodes were requested; {matching.size} can",
    ):
        graph.sample_nodes(matching.size + 1, "item", where=where, weighted=False, replace=False)


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("where", BUY_MASKS)
def test_edge_filters_match_numpy_masks(graph: Graph, where: str, direction: str) -> None:
    start, end = ("src", "dst") if direction == "out" else ("dst", "src")
    nodes = COLUMNS.user["id"] if direction == "out" else COLUMNS.item["id"]
    matching = np.flatnonzero(BUY_MASKS[where])
    assert 0 < matching.size < conditional.EDGES
    neighbors = graph.neighbors(nodes, "buys", where=where, direction=direction)
    assert neighbors.edge_ids is not None
    assert np.array_equal(np.sort(neighbors.edge_ids), matching)
    assert np.array_equal(neighbors.nodes, COLUMNS.buys[end][neighbors.edge_ids])
    assert np.array_equal(
        np.repeat(nodes, np.diff(neighbors.indptr)), COLUMNS.buys[start][neighbors.edge_ids]
    )
    assert neighbors.weights is not None
    assert np.array_equal(neighbors.weights, COLUMNS.buys["weight"][neighbors.edge_ids])
    degrees = graph.degrees(nodes, "buys", where=where, direction=direction)[:, 0]
    assert np.array_equal(degrees, np.diff(neighbors.indptr))
    sample = graph.sample_edges(
        matching.size, "buys", where=where, weighted=False, replace=False, seed=1
    )
    assert np.array_equal(np.sort(sample.edge_ids), matching)


@pytest.mark.parametrize("weight", ["", "dear"])
@pytest.mark.parametrize("where", ["price > 3", "brand is null", "true"])
def test_filtered_nodes_are_sampled_by_weight(graph: Graph, where: str, weight: str) -> None:
    weights = COLUMNS.item["weight"].astype(np.float64) * (
        np.abs(COLUMNS.item["stock"]) if weight else 1
    )
    expected = np.where(ITEM_MASKS[where], weights.astype(np.float32).astype(np.float64), 0)
    if weight:  # weights of a few rows are 2^53 times the others, which would then never be sampled
        expected[COLUMNS.item["stock"] > 4] = 0
    sample = graph.sample_nodes(
        100_000,
        "item",
        where=f"({where}) and stock < 5" if weight else where,
        weight=weight,
        seed=3,
        probabilities=True,
    )
    assert_follows_weights(sample.nodes, expected)
    assert sample.probabilities is not None
    np.testing.assert_allclose(
        sample.probabilities, (expected / expected.sum())[sample.nodes], rtol=1e-6
    )
    few = np.concatenate(
        [graph.sample_nodes(1, "item", where=where, seed=seed).nodes for seed in range(300)]
    )
    assert ITEM_MASKS[where][few].all()
    assert np.array_equal(
        graph.sample_nodes(40, "item", where=where, seed=9).nodes,
        graph.sample_nodes(90, "item", where=where, seed=9).nodes[:40],
    )


def test_filtered_edges_are_sampled_by_weight(graph: Graph) -> None:
    for weight, expected in (
        ("", COLUMNS.buys["weight"].astype(np.float64)),
        ("rated", 1.0 + COLUMNS.buys["rating"]),
    ):
        where = "dst.price < 5 and rating in (1, 2, 5) and src.age < 12"
        mask = (
            (COLUMNS.buys["dst.price"] < 5)
            & np.isin(COLUMNS.buys["rating"], [1, 2, 5])
            & (COLUMNS.buys["src.age"] < 12)
        )
        sample = graph.sample_edges(
            100_000, "buys", where=where, weight=weight, seed=4, probabilities=True
        )
        expected = np.where(mask, expected, 0)
        assert_follows_weights(sample.edge_ids, expected)
        assert sample.probabilities is not None
        np.testing.assert_allclose(
            sample.probabilities, (expected / expected.sum())[sample.edge_ids], rtol=1e-6
        )


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_filtered_neighbors_are_sampled_by_weight(
    graph: Graph, weighted: bool, replace: bool
) -> None:
    user, n = int(COLUMNS.user["id"][3]), 20_000
    mask = (COLUMNS.buys["src"] == user) & BUY_MASKS["paid < 20 and rating != 0"]
    expected = np.where(mask, COLUMNS.buys["weight"] if weighted else 1.0, 0.0).astype(np.float64)
    sample = graph.sample_neighbors(
        np.full(n, user),
        "buys",
        1 if not replace else 3,
        where="paid < 20 and rating != 0",
        weighted=weighted,
        replace=replace,
        edge_ids=True,
        seed=5,
    )
    assert sample.edge_ids is not None
    assert (sample.edge_ids >= 0).all()
    assert_follows_weights(sample.edge_ids.reshape(-1), expected)


def test_a_node_with_too_few_matching_edges_returns_each_once(graph: Graph) -> None:
    where = "dst.brand = 'b' or dst.size[1] > 0"
    users = COLUMNS.user["id"]
    sample = graph.sample_neighbors(
        users,
        "buys",
        60,
        where=f"({where}) and paid < 30",
        replace=False,
        weighted=False,
        edge_ids=True,
        seed=6,
    )
    mask = BUY_MASKS[where] & (COLUMNS.buys["paid"] < 30)
    assert sample.edge_ids is not None
    for user, row in zip(users, sample.edge_ids, strict=True):
        matching = np.flatnonzero(mask & (COLUMNS.buys["src"] == user))
        returned = row[row >= 0]
        assert len(returned) == min(60, len(matching))
        assert set(returned.tolist()) <= set(matching.tolist())
        assert len(set(returned.tolist())) == len(returned)


def test_every_operator_applies_its_filter(graph: Graph) -> None:
    where, likes = "rating >= 4", COLUMNS.like["rating"] >= 4
    allowed = set(
        zip(COLUMNS.like["src"][likes].tolist(), COLUMNS.like["dst"][likes].tolist(), strict=True)
    )
    items = COLUMNS.item["id"]
    fan = graph.sample_fanout(items[:50], ["like", "like"], [4, 3], where=where, seed=1)
    walks = graph.random_walk(items, ["like"], 5, where=where, p=0.5, q=2.0, seed=2).nodes
    steps = [(int(a), int(b)) for row in walks for a, b in itertools.pairwise(row) if b >= 0]
    assert steps
    assert set(steps) <= allowed
    first = {
        (int(a), int(b))
        for a, row in zip(items[:50], fan.hops[0].nodes.reshape(50, 4), strict=True)
        for b in row
        if b >= 0
    }
    assert first
    assert first <= allowed
    subgraph = graph.sample_subgraph(items[:60], [-1, 3], "like", where=where, seed=3)
    ids = subgraph.edge_ids["item:like:item"] if isinstance(subgraph.edge_ids, dict) else None
    assert ids is not None
    assert len(ids)
    assert likes[ids].all()
    hop = np.flatnonzero(likes & (COLUMNS.like["src"] < 60))
    assert set(hop.tolist()) <= set(ids.tolist())  # all are edges of the seeds
    layer = graph.sample_layer(items[:40], "like", 30, where=where, edge_ids=True, seed=4)
    assert layer.adjacency.edge_ids is not None
    assert len(layer.adjacency.edge_ids)
    assert likes[layer.adjacency.edge_ids].all()
    adjacency = graph.adjacency(items, items, "like", where=where, edge_ids=True)
    assert adjacency.edge_ids is not None
    assert np.array_equal(np.sort(adjacency.edge_ids), np.flatnonzero(likes))
    top = graph.top_k_neighbors(
        COLUMNS.user["id"], "buys", 5, where="paid < 20 and rating != 0", edge_ids=True
    )
    assert top.edge_ids is not None
    mask = BUY_MASKS["paid < 20 and rating != 0"]
    for user, row in zip(COLUMNS.user["id"], top.edge_ids, strict=True):
        matching = np.flatnonzero(mask & (COLUMNS.buys["src"] == user))
        best = matching[
            np.lexsort((matching, COLUMNS.buys["dst"][matching], -COLUMNS.buys["weight"][matching]))
        ][:5]
        assert row[row >= 0].tolist() == best.tolist()


def test_negatives_and_nodes_like_others_satisfy_their_filter(graph: Graph) -> None:
    where, mask = "price > 3", ITEM_MASKS["price > 3"]
    expected = np.where(mask, COLUMNS.item["weight"], 0).astype(np.float64)
    like = graph.sample_nodes_like(COLUMNS.item["id"][:100], 300, ntype="item", where=where, seed=1)
    assert_follows_weights(like.nodes.reshape(-1), expected)
    excluded = np.flatnonzero(expected > 0)[:40]
    exclude = (np.array([0, 60]), np.r_[excluded, np.flatnonzero(~mask)[:20]])
    negatives = graph.sample_negatives(
        np.array([0]), 30_000, "item", exclude=exclude, where=where, seed=2, probabilities=True
    )
    expected_negatives = expected.copy()
    expected_negatives[excluded] = 0
    assert_follows_weights(negatives.nodes.reshape(-1), expected_negatives)
    assert negatives.probabilities is not None
    np.testing.assert_allclose(
        negatives.probabilities.reshape(-1),
        (expected_negatives / expected_negatives.sum())[negatives.nodes.reshape(-1)],
        rtol=1e-5,
    )


def test_a_filter_over_several_types_samples_them_jointly(graph: Graph) -> None:
    where = "type == 'item' and price > 3 or type == 'user' and age < 30"
    sample = graph.sample_nodes(60_000, where=where, seed=7)
    users = np.isin(sample.nodes, COLUMNS.user["id"]) & (sample.types == 0)
    young, dear_weights = (
        COLUMNS.user["id"][COLUMNS.user["age"] < 30],
        np.where(ITEM_MASKS["price > 3"], COLUMNS.item["weight"], 0).astype(np.float64),
    )
    share = len(young) / (len(young) + dear_weights.sum())
    assert abs(users.mean() - share) < 5 * np.sqrt(share * (1 - share) / len(users))
    assert np.isin(sample.nodes[sample.types == 0], young).all()
    assert_follows_weights(sample.nodes[sample.types == 1], dear_weights)


def test_a_filter_without_matches_gives_not_found_or_padding(graph: Graph) -> None:
    for where in ("price > 1000", "false", "type == 'user'"):
        with pytest.raises(asterism.errors.NotFound, match="where"):
            graph.sample_nodes(1, "item", where=where)
    with pytest.raises(asterism.errors.NotFound, match="rating > 9"):
        graph.sample_edges(1, "buys", where="rating > 9")
    assert (
        graph.sample_neighbors(COLUMNS.user["id"], "buys", 3, where="rating > 9").nodes == -1
    ).all()
    assert graph.sample_nodes(0, "item", where="price > 3").nodes.size == 0


@pytest.mark.parametrize(
    ("where", "error", "said"),
    [
        ("price >", "InvalidRequest", "character 8: found the end, expected a column"),
        ("prize > 3", "NotFound", "character 1: node type 'item' has no feature 'prize'"),
        (
            "price > 'a'",
            "InvalidRequest",
            "character 1: found price, numbers, expected a number instead of 'a'",
        ),
        ("brand > 'a'", "InvalidRequest", "found brand, a string column, expected =="),
        (
            "size > 1",
            "InvalidRequest",
            (
                r"found size, a feature of shape \[3\], expected one of its values, size\[0\] to "
                r"size\[2\]"
            ),
        ),
        ("size[3] > 1", "InvalidRequest", r"expected an element, \[0\] to \[2\]"),
        ("price[0] > 1", "InvalidRequest", r"expected no \[ \]"),
        ("tags == 3", "InvalidRequest", "a list for each row, expected 'is null'"),
        ("src.age > 3", "NotFound", "a node has no src"),
        ("type == 'itme'", "NotFound", "no type 'itme'"),
        ("type > 'item'", "InvalidRequest", "expected ==, != or 'in'"),
    ],
)
def test_invalid_filters_are_refused_with_their_position(
    graph: Graph, where: str, error: str, said: str
) -> None:
    with pytest.raises(getattr(asterism.errors, error), match=said):
        graph.sample_nodes(1, "item", where=where)


def test_columns_that_are_stored_apart_are_not_compared(graph: Graph) -> None:
    for where in ("paid > dst.price", "src.age > dst.stock", "rating > weight"):
        with pytest.raises(asterism.errors.InvalidRequest, match="two of the same end node"):
            graph.sample_edges(1, "buys", where=where)
    assert len(graph.sample_edges(9, "like", where="dst.stock > dst.price and src != dst")) == 9


def test_explain_reports_partition_shares_under_a_filter(graph: Graph) -> None:
    explanation = graph.explain.sample_nodes(5000, "item", where="price > 3", seed=1)
    weights = np.where(ITEM_MASKS["price > 3"], COLUMNS.item["weight"], 0).astype(np.float64)
    expected = {
        part: weights[part :: conditional.SCHEMA["parts"]].sum() / weights.sum()
        for part in range(conditional.SCHEMA["parts"])
    }
    assert {share.part: pytest.approx(share.share) for share in explanation.shares} == {
        part: share for part, share in expected.items() if share
    }
    assert sum(share.drawn for share in explanation.shares) == 5000


def test_a_filtered_sample_is_replayed_from_its_token(graph: Graph) -> None:
    first = graph.sample_nodes(50, "item", where="price > 3")
    assert np.array_equal(graph.replay(first.token).nodes, first.nodes)
    other = graph.sample_nodes(50, "item", where="price > 2.5", seed=first.seed)
    assert not np.array_equal(other.nodes, first.nodes)
    same = graph.sample_nodes(50, "item", where="( 3 < price )", seed=first.seed)
    assert np.array_equal(same.nodes, first.nodes)


def test_filters_evicted_by_storageds_are_sent_again(graph: Graph) -> None:
    wheres = [f"paid < {bound} and dst.weight >= 0" for bound in range(91, 97)]
    items = COLUMNS.item["id"]

    def sampled_bytes(target: Graph, where: str) -> bytes:
        sample = target.sample_neighbors(
            items, "buys", 4, where=where, direction="in", edge_ids=True, seed=8
        )
        assert sample.edge_ids is not None
        return sample.edge_ids.tobytes()

    with LocalCluster(2, flags={"storaged": ["--conditions-mib", "1"]}) as cluster:
        small = conditional.load(cluster.client(), "shop")

        def called_methods(where: str) -> set[str]:
            return {
                request.method
                for request in small.explain.sample_neighbors(
                    items, "buys", 4, where=where, direction="in", seed=8
                ).storage_requests
            }

        assert called_methods(wheres[0]) == {"evaluate_terms", "filter_rows", "draw_neighbors"}
        assert called_methods(wheres[0]) == {"draw_neighbors"}
        for _ in range(2):
            assert [sampled_bytes(small, where) for where in wheres] == [
                sampled_bytes(graph, where) for where in wheres
            ]
        assert "filter_rows" in called_methods(wheres[0])  # the other filters evicted it
