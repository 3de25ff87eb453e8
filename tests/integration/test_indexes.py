"""Indexes, end to end: asked for as jobs, kept by builds, taken by draws under conditions, the same on any number of hosts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import conditional
from tests.kit.bodies import assert_follows
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S
from typer.testing import CliRunner

import asterism
from asterism import Client, Graph
from asterism.cli.app import app

OF = conditional.columns()
ITEMS = conditional.of_items(OF.item)
INDEXES = [("price", "range"), ("stock", "hash"), ("brand", "hash"), ("weight", "range"), ("id", "range"), ("size[2]", "range"), ("sold", "hash")]
BY_INDEX = {
    "price > 3", "not price > 3", "3 >= price", "price != 0.1", "price is null", "price is not null and price between 2 and 4.5",
    "stock in (-3, 0, 2)", "stock not in (-3, 0, 2)", "stock > 9007199254740992", "stock > 9007199254740992.0", "sold == true", "sold = 0",
    "brand == 'a' or brand = 'ü'", "brand != 'b'", "brand in ('it\\'s', 'b')", "brand is null", "id between 7 and 90 or id == 399", "weight >= 2",
}  # fmt: skip
ROWS = np.array([0, 3, 7, 399])


def add(client: Client, space: str, indexes: list[tuple[str, str]]) -> None:
    for on, kind in indexes:
        job = client.wait(client.submit_job(space, "index", options={"type": "item", "on": on, "kind": kind}).job_id, timeout_s=HANG_S)
        assert (job.state, job.options["on"]) == ("FINISHED", on)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("indexes")) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: Client) -> Graph:
    graph = conditional.load(client, "shop")
    add(client, "shop", INDEXES)
    return graph


@pytest.fixture(scope="module")
def bare(client: Client) -> Graph:
    return conditional.load(client, "bare")


def test_every_condition_of_one_column_is_answered_by_its_index_and_others_are_looked_for(graph: Graph) -> None:
    assert ITEMS.keys() > BY_INDEX
    for where in ITEMS:
        told = graph.explain.sample_nodes(10, "item", where=where, weighted=False, seed=1)
        assert told.condition.startswith("index on ") == (where in BY_INDEX), (where, told.condition)
    told = graph.explain.sample_nodes(10, "item", where="price > 9 and stock < size[0]", seed=1)
    assert told.condition == "rows that the index on price (range) leaves, looked at once"
    assert graph.explain.sample_nodes(10, "item", where="price > stock", seed=1).condition == "every row looked at once"
    assert graph.explain.sample_nodes(10, "item", seed=1).condition == ""


@pytest.mark.parametrize("where", ITEMS)
def test_what_satisfies_a_condition_is_what_numpy_says_and_drawn_by_weight(graph: Graph, where: str) -> None:
    satisfied = np.flatnonzero(ITEMS[where])
    drawn = graph.sample_nodes(satisfied.size, "item", where=where, weighted=False, replace=False, seed=1).nodes
    assert np.array_equal(np.sort(drawn), satisfied)
    with pytest.raises(asterism.errors.InvalidRequest, match=f"{satisfied.size + 1} different nodes were asked for; {satisfied.size} can"):
        graph.sample_nodes(satisfied.size + 1, "item", where=where, weighted=False, replace=False)
    uniform = graph.sample_nodes(20_000, "item", where=where, weighted=False, seed=2).nodes
    if satisfied.size > 1:  # of one outcome there is nothing to test but that it came
        assert_follows(uniform, ITEMS[where].astype(np.float64))
    assert set(uniform.tolist()) == set(satisfied.tolist())
    law = np.where(ITEMS[where], OF.item["weight"], 0).astype(np.float64)
    if law.any():
        drawn = graph.sample_nodes(20_000, "item", where=where, seed=3, probabilities=True)
        if np.count_nonzero(law) > 1:
            assert_follows(drawn.nodes, law)
        np.testing.assert_allclose(drawn.probabilities, (law / law.sum())[drawn.nodes], rtol=1e-6)
        assert np.array_equal(graph.sample_nodes(40, "item", where=where, seed=3).nodes, drawn.nodes[:40])


def test_an_index_serves_the_weights_of_every_table(graph: Graph) -> None:
    law = np.where(ITEMS["price > 3"] & (OF.item["stock"] < 5), OF.item["weight"] * np.abs(OF.item["stock"]), 0).astype(np.float64)
    own = np.where(ITEMS["price > 3"], OF.item["weight"].astype(np.float64) * np.abs(OF.item["stock"]), 0)
    heavy = own.astype(np.float32).astype(np.float64)
    drawn = graph.sample_nodes(50_000, "item", where="price > 3", weight="dear", seed=3, probabilities=True)
    np.testing.assert_allclose(drawn.probabilities, (heavy / heavy.sum())[drawn.nodes], rtol=1e-6)
    light = graph.sample_nodes(50_000, "item", where="stock in (-3, -2, -1, 0, 1, 2, 3) and price > 3", weight="dear", seed=3)
    assert_follows(light.nodes, law)


def test_draws_that_no_index_answers_are_byte_for_byte_those_without_any(graph: Graph, bare: Graph) -> None:
    for where in ("price > 3 and stock < size[0]", "size[2] < size[0]", "price > 3 or brand == 'b'", "brand == 'a' and price < stock"):
        one, other = (of.sample_nodes(500, "item", where=where, seed=5).nodes for of in (graph, bare))
        assert np.array_equal(one, other)
    one, other = (of.sample_nodes(500, "item", seed=5).nodes for of in (graph, bare))
    assert np.array_equal(one, other)


def test_negatives_and_nodes_like_others_take_an_index_too(graph: Graph) -> None:
    pairs = np.stack([np.zeros(200, np.int64), np.arange(200)], axis=1)
    found = graph.sample_negatives(pairs, 5, "item", where="price > 3", seed=1)
    assert ITEMS["price > 3"][np.asarray(found.nodes)].all()
    like = graph.sample_nodes_like(OF.item["id"][:50], 5, ntype="item", where="brand == 'a'", seed=1)
    assert (OF.item["brand"][np.asarray(like.nodes)] == "a").all()


def test_what_nothing_satisfies_can_not_be_drawn(graph: Graph) -> None:
    with pytest.raises(asterism.errors.NotFound, match="where price > 100"):
        graph.sample_nodes(1, "item", where="price > 100")
    with pytest.raises(asterism.errors.NotFound, match="where weight == 0 are zero"):
        graph.sample_nodes(1, "item", where="weight == 0")


def test_a_build_keeps_the_indexes_of_the_version_before_and_an_index_can_be_dropped(client: Client, graph: Graph) -> None:
    graph = conditional.load(client, "kept")
    add(client, "kept", [("price", "range"), ("brand", "hash")])
    assert graph.explain.sample_nodes(1, "item", where="price > 3", seed=1).condition == "index on price (range)"  # it is served: what links can
    job = client.wait(client.submit_job("kept", "index", options={"type": "item", "on": "price", "kind": "range", "drop": "yes"}).job_id)
    assert [(index.column, index.kind) for index in client.manifest("kept").indexes] == [("brand", "hash")]
    linked = [units.built for task in job.tasks if task.result for units in task.result.units]
    assert not any(linked)
    graph.upsert_nodes(np.array([400]), "item", weights=np.array([3.0]), features={"price": np.array([7.5], np.float32)})
    graph.build(timeout_s=HANG_S)
    assert [(index.column, index.kind) for index in client.manifest("kept").indexes] == [("brand", "hash")]
    assert graph.explain.sample_nodes(1, "item", where="brand is null", seed=1).condition == "index on brand (hash)"
    drawn = graph.sample_nodes(1000, "item", where="brand is null", weighted=False, replace=True, seed=1).nodes
    assert 400 in drawn.tolist()


def test_a_version_keeps_its_indexes_over_a_restart_and_for_readers(tmp_path: Path) -> None:
    with asterism.open(tmp_path / "data") as writer:
        conditional.load(writer, "shop")
        add(writer, "shop", [("price", "range")])
        expected = writer.graph("shop").sample_nodes(300, "item", where="price > 3", seed=9).nodes
    with asterism.open(tmp_path / "data", mode="r") as reader:
        assert np.array_equal(reader.graph("shop").sample_nodes(300, "item", where="price > 3", seed=9).nodes, expected)
    with asterism.open(tmp_path / "data") as again:
        assert [index.column for index in again.manifest("shop").indexes] == ["price"]
        again.wait(again.submit_job("shop").job_id)
        assert again.graph("shop").explain.sample_nodes(1, "item", where="price > 3", seed=1).condition == "index on price (range)"
        assert np.array_equal(again.graph("shop").sample_nodes(300, "item", where="price > 3", seed=9).nodes, expected)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"type": "item", "on": "price"}, "'kind' is missing"),
        ({"type": "thing", "on": "price", "kind": "range"}, "no node type 'thing'"),
        ({"type": "item", "on": "brand", "kind": "range"}, "make it of kind hash"),
        ({"type": "item", "on": "size", "kind": "range"}, r"shape \[3\]"),
    ],
)
def test_an_index_that_can_not_be_is_refused_before_anything_is_built(client: Client, graph: Graph, options: dict[str, str], words: str) -> None:
    with pytest.raises(asterism.errors.AsterismError, match=words):
        client.submit_job("shop", "index", options=options)


def test_an_index_is_audited_told_and_drawn_from_alike_on_a_cluster(graph: Graph) -> None:
    with LocalCluster(storageds=3) as cluster, cluster.client() as client:
        other = conditional.load(client, "shop")
        runner = CliRunner()
        for on, kind in INDEXES[:3]:
            done = runner.invoke(app, ["--address", cluster.addresses, "--json", "job", "index", "shop", "item", on, "--kind", kind, "--wait"])
            assert done.exit_code == 0, done.output
        for where in (each for each in BY_INDEX if each.split()[0] in ("price", "stock", "brand")):
            for weighted in (True, False):
                if weighted and not OF.item["weight"][ITEMS[where]].any():
                    continue
                one, two = (of.sample_nodes(200, "item", where=where, weighted=weighted, seed=4).nodes for of in (graph, other))
                assert np.array_equal(one, two), where
        view: Any = cluster.get("metad", "/api/v1/spaces/shop/versions")
        assert "range of item on price" in json.dumps(view)
        assert client.wait(client.submit_job("shop", "audit").job_id).state == "FINISHED"
