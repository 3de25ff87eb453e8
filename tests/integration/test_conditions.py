"""Draws under a condition, end to end: their law, what they are a draw from, and what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from tests.kit import conditional
from tests.kit.bodies import assert_follows
from tests.kit.cluster import LocalCluster

import asterism
from asterism import Graph

OF = conditional.columns()
ITEMS, BUYS = conditional.of_items(OF.item), conditional.of_buys(OF.buys)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with asterism.open(tmp_path_factory.mktemp("conditions")) as client:
        yield conditional.load(client, "shop")


@pytest.mark.parametrize("where", ITEMS)
def test_what_satisfies_a_condition_on_nodes_is_what_numpy_says(graph: Graph, where: str) -> None:
    satisfied = np.flatnonzero(ITEMS[where])
    assert satisfied.size > 0
    drawn = graph.sample_nodes(satisfied.size, "item", where=where, weighted=False, replace=False, seed=1).nodes
    assert np.array_equal(np.sort(drawn), satisfied)
    with pytest.raises(asterism.errors.InvalidRequest, match=f"{satisfied.size + 1} different nodes were asked for; {satisfied.size} can"):
        graph.sample_nodes(satisfied.size + 1, "item", where=where, weighted=False, replace=False)


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("where", BUYS)
def test_what_satisfies_a_condition_on_edges_is_what_numpy_says(graph: Graph, where: str, direction: str) -> None:
    near, far = ("src", "dst") if direction == "out" else ("dst", "src")
    nodes = OF.user["id"] if direction == "out" else OF.item["id"]
    satisfied = np.flatnonzero(BUYS[where])
    assert 0 < satisfied.size < conditional.EDGES
    found = graph.neighbors(nodes, "buys", where=where, direction=direction)
    assert found.edge_ids is not None
    assert np.array_equal(np.sort(found.edge_ids), satisfied)
    assert np.array_equal(found.nodes, OF.buys[far][found.edge_ids])
    assert np.array_equal(np.repeat(nodes, np.diff(found.indptr)), OF.buys[near][found.edge_ids])
    assert found.weights is not None
    assert np.array_equal(found.weights, OF.buys["weight"][found.edge_ids])
    degrees = graph.degrees(nodes, "buys", where=where, direction=direction)[:, 0]
    assert np.array_equal(degrees, np.diff(found.indptr))
    drawn = graph.sample_edges(satisfied.size, "buys", where=where, weighted=False, replace=False, seed=1)
    assert np.array_equal(np.sort(drawn.edge_ids), satisfied)


@pytest.mark.parametrize("weight", ["", "dear"])
@pytest.mark.parametrize("where", ["price > 3", "brand is null", "true"])
def test_nodes_that_satisfy_a_condition_are_drawn_by_their_weights_among_themselves(graph: Graph, where: str, weight: str) -> None:
    own = OF.item["weight"].astype(np.float64) * (np.abs(OF.item["stock"]) if weight else 1)
    law = np.where(ITEMS[where], own.astype(np.float32).astype(np.float64), 0)
    if weight:  # a few weigh 2^53 times as much as others, which no test would ever see
        law[OF.item["stock"] > 4] = 0
    drawn = graph.sample_nodes(100_000, "item", where=f"({where}) and stock < 5" if weight else where, weight=weight, seed=3, probabilities=True)
    assert_follows(drawn.nodes, law)
    assert drawn.probabilities is not None
    np.testing.assert_allclose(drawn.probabilities, (law / law.sum())[drawn.nodes], rtol=1e-6)
    few = np.concatenate([graph.sample_nodes(1, "item", where=where, seed=seed).nodes for seed in range(300)])
    assert ITEMS[where][few].all()
    assert np.array_equal(graph.sample_nodes(40, "item", where=where, seed=9).nodes, graph.sample_nodes(90, "item", where=where, seed=9).nodes[:40])


def test_edges_that_satisfy_a_condition_are_drawn_by_their_weights_among_themselves(graph: Graph) -> None:
    for weight, law in (("", OF.buys["weight"].astype(np.float64)), ("rated", 1.0 + OF.buys["rating"])):
        where = "dst.price < 5 and rating in (1, 2, 5) and src.age < 12"
        mask = (OF.buys["dst.price"] < 5) & np.isin(OF.buys["rating"], [1, 2, 5]) & (OF.buys["src.age"] < 12)
        drawn = graph.sample_edges(100_000, "buys", where=where, weight=weight, seed=4, probabilities=True)
        law = np.where(mask, law, 0)
        assert_follows(drawn.edge_ids, law)
        assert drawn.probabilities is not None
        np.testing.assert_allclose(drawn.probabilities, (law / law.sum())[drawn.edge_ids], rtol=1e-6)


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_neighbors_along_edges_that_satisfy_a_condition_are_drawn_by_weight_among_themselves(graph: Graph, weighted: bool, replace: bool) -> None:
    user, n = int(OF.user["id"][3]), 20_000
    mask = (OF.buys["src"] == user) & BUYS["paid < 20 and rating != 0"]
    law = np.where(mask, OF.buys["weight"] if weighted else 1.0, 0.0).astype(np.float64)
    drawn = graph.sample_neighbors(
        np.full(n, user),
        "buys",
        1 if not replace else 3,
        where="paid < 20 and rating != 0",
        weighted=weighted,
        replace=replace,
        edge_ids=True,
        seed=5,
    )
    assert drawn.edge_ids is not None
    assert (drawn.edge_ids >= 0).all()
    assert_follows(drawn.edge_ids.reshape(-1), law)


def test_a_node_with_fewer_edges_that_satisfy_a_condition_gives_all_of_them_and_none_besides(graph: Graph) -> None:
    where = "dst.brand = 'b' or dst.size[1] > 0"
    users = OF.user["id"]
    drawn = graph.sample_neighbors(users, "buys", 60, where=f"({where}) and paid < 30", replace=False, weighted=False, edge_ids=True, seed=6)
    mask = BUYS[where] & (OF.buys["paid"] < 30)
    assert drawn.edge_ids is not None
    for user, row in zip(users, drawn.edge_ids, strict=True):
        own = np.flatnonzero(mask & (OF.buys["src"] == user))
        found = row[row >= 0]
        assert len(found) == min(60, len(own))
        assert set(found.tolist()) <= set(own.tolist())
        assert len(set(found.tolist())) == len(found)


def test_every_call_is_of_the_edges_that_satisfy_its_condition(graph: Graph) -> None:
    where, likes = "rating >= 4", OF.like["rating"] >= 4
    allowed = set(zip(OF.like["src"][likes].tolist(), OF.like["dst"][likes].tolist(), strict=True))
    items = OF.item["id"]
    fan = graph.sample_fanout(items[:50], ["like", "like"], [4, 3], where=where, seed=1)
    walks = graph.random_walk(items, ["like"], 5, where=where, p=0.5, q=2.0, seed=2).nodes
    steps = [(int(a), int(b)) for row in walks for a, b in itertools.pairwise(row) if b >= 0]
    assert steps
    assert set(steps) <= allowed
    first = {(int(a), int(b)) for a, row in zip(items[:50], fan.hops[0].nodes.reshape(50, 4), strict=True) for b in row if b >= 0}
    assert first
    assert first <= allowed
    grown = graph.sample_subgraph(items[:60], [-1, 3], "like", where=where, seed=3)
    ids = grown.edge_ids["item:like:item"] if isinstance(grown.edge_ids, dict) else None
    assert ids is not None
    assert len(ids)
    assert likes[ids].all()
    hop = np.flatnonzero(likes & (OF.like["src"] < 60))
    assert set(hop.tolist()) <= set(ids.tolist())  # all edges of the seeds, none missing
    layer = graph.sample_layer(items[:40], "like", 30, where=where, edge_ids=True, seed=4)
    assert layer.adjacency.edge_ids is not None
    assert len(layer.adjacency.edge_ids)
    assert likes[layer.adjacency.edge_ids].all()
    joined = graph.adjacency(items, items, "like", where=where, edge_ids=True)
    assert joined.edge_ids is not None
    assert np.array_equal(np.sort(joined.edge_ids), np.flatnonzero(likes))
    top = graph.top_k_neighbors(OF.user["id"], "buys", 5, where="paid < 20 and rating != 0", edge_ids=True)
    assert top.edge_ids is not None
    mask = BUYS["paid < 20 and rating != 0"]
    for user, row in zip(OF.user["id"], top.edge_ids, strict=True):
        own = np.flatnonzero(mask & (OF.buys["src"] == user))
        best = own[np.lexsort((own, OF.buys["dst"][own], -OF.buys["weight"][own]))][:5]
        assert row[row >= 0].tolist() == best.tolist()


def test_negatives_and_nodes_like_others_satisfy_their_condition(graph: Graph) -> None:
    where, mask = "price > 3", ITEMS["price > 3"]
    law = np.where(mask, OF.item["weight"], 0).astype(np.float64)
    like = graph.sample_nodes_like(OF.item["id"][:100], 300, ntype="item", where=where, seed=1)
    assert_follows(like.nodes.reshape(-1), law)
    left_out = np.flatnonzero(law > 0)[:40]
    exclude = (np.array([0, 60]), np.r_[left_out, np.flatnonzero(~mask)[:20]])
    negatives = graph.sample_negatives(np.array([0]), 30_000, "item", exclude=exclude, where=where, seed=2, probabilities=True)
    rest = law.copy()
    rest[left_out] = 0
    assert_follows(negatives.nodes.reshape(-1), rest)
    assert negatives.probabilities is not None
    np.testing.assert_allclose(negatives.probabilities.reshape(-1), (rest / rest.sum())[negatives.nodes.reshape(-1)], rtol=1e-5)


def test_several_types_are_drawn_from_together_by_what_satisfies_the_condition(graph: Graph) -> None:
    where = "type == 'item' and price > 3 or type == 'user' and age < 30"
    drawn = graph.sample_nodes(60_000, where=where, seed=7)
    users = np.isin(drawn.nodes, OF.user["id"]) & (drawn.types == 0)
    young, dear = OF.user["id"][OF.user["age"] < 30], np.where(ITEMS["price > 3"], OF.item["weight"], 0).astype(np.float64)
    share = len(young) / (len(young) + dear.sum())
    assert abs(users.mean() - share) < 5 * np.sqrt(share * (1 - share) / len(users))
    assert np.isin(drawn.nodes[drawn.types == 0], young).all()
    assert_follows(drawn.nodes[drawn.types == 1], dear)


def test_what_nothing_satisfies_is_not_found_and_gives_no_neighbors(graph: Graph) -> None:
    for where in ("price > 1000", "false", "type == 'user'"):
        with pytest.raises(asterism.errors.NotFound, match="where"):
            graph.sample_nodes(1, "item", where=where)
    with pytest.raises(asterism.errors.NotFound, match="rating > 9"):
        graph.sample_edges(1, "buys", where="rating > 9")
    assert (graph.sample_neighbors(OF.user["id"], "buys", 3, where="rating > 9").nodes == -1).all()
    assert graph.sample_nodes(0, "item", where="price > 3").nodes.size == 0


@pytest.mark.parametrize(
    ("where", "error", "said"),
    [
        ("price >", "InvalidRequest", "character 8: found the end, expected a column"),
        ("prize > 3", "NotFound", "character 1: node type 'item' has no feature 'prize'"),
        ("price > 'a'", "InvalidRequest", "character 1: found price, numbers, expected no comparison with 'a'"),
        ("brand > 'a'", "InvalidRequest", "found brand, a text, expected =="),
        ("size > 1", "InvalidRequest", r"found size, a feature of shape \[3\], expected one of its values, size\[0\] to size\[2\]"),
        ("size[3] > 1", "InvalidRequest", r"expected \[0\] to \[2\]"),
        ("price[0] > 1", "InvalidRequest", r"expected no \[ \]"),
        ("tags == 3", "InvalidRequest", "a list for each row, expected 'is null'"),
        ("src.age > 3", "NotFound", "a node has no src"),
        ("type == 'itme'", "NotFound", "no type 'itme'"),
        ("type > 'item'", "InvalidRequest", "expected ==, != or 'in'"),
    ],
)
def test_conditions_that_mean_nothing_are_refused_with_their_place(graph: Graph, where: str, error: str, said: str) -> None:
    with pytest.raises(getattr(asterism.errors, error), match=said):
        graph.sample_nodes(1, "item", where=where)


def test_columns_that_are_kept_apart_are_not_compared(graph: Graph) -> None:
    for where in ("paid > dst.price", "src.age > dst.stock", "rating > weight"):
        with pytest.raises(asterism.errors.InvalidRequest, match="kept apart"):
            graph.sample_edges(1, "buys", where=where)
    assert len(graph.sample_edges(9, "like", where="dst.stock > dst.price and src != dst")) == 9


def test_explaining_tells_the_shares_of_what_satisfies_the_condition(graph: Graph) -> None:
    told = graph.explain.sample_nodes(5000, "item", where="price > 3", seed=1)
    law = np.where(ITEMS["price > 3"], OF.item["weight"], 0).astype(np.float64)
    expected = {part: law[part :: conditional.SCHEMA["parts"]].sum() / law.sum() for part in range(conditional.SCHEMA["parts"])}
    assert {share.part: pytest.approx(share.share) for share in told.shares} == {part: share for part, share in expected.items() if share}
    assert sum(share.drawn for share in told.shares) == 5000


def test_a_sample_under_a_condition_is_made_again_from_its_token(graph: Graph) -> None:
    first = graph.sample_nodes(50, "item", where="price > 3")
    assert np.array_equal(graph.replay(first.token).nodes, first.nodes)
    other = graph.sample_nodes(50, "item", where="price > 2.5", seed=first.seed)
    assert not np.array_equal(other.nodes, first.nodes)
    same = graph.sample_nodes(50, "item", where="( 3 < price )", seed=first.seed)
    assert np.array_equal(same.nodes, first.nodes)


def test_storageds_that_let_go_of_what_they_were_told_are_told_again(graph: Graph) -> None:
    wheres = [f"paid < {bound} and dst.weight >= 0" for bound in range(91, 97)]
    items = OF.item["id"]

    def ask(of: Graph, where: str) -> bytes:
        found = of.sample_neighbors(items, "buys", 4, where=where, direction="in", edge_ids=True, seed=8)
        assert found.edge_ids is not None
        return found.edge_ids.tobytes()

    with LocalCluster(2, flags={"storaged": ["--conditions-mib", "1"]}) as cluster:
        small = conditional.load(cluster.client(), "shop")

        def asked(where: str) -> set[str]:
            return {one.method for one in small.explain.sample_neighbors(items, "buys", 4, where=where, direction="in", seed=8).asked}

        assert asked(wheres[0]) == {"judge", "restrict", "draw_neighbors"}
        assert asked(wheres[0]) == {"draw_neighbors"}
        for _ in range(2):
            assert [ask(small, where) for where in wheres] == [ask(graph, where) for where in wheres]
        assert "restrict" in asked(wheres[0])  # the others took its room
