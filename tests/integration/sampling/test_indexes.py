"""Indexes, end to end: created by jobs, kept by builds and used by filtered sampling.

Results are the same on any number of hosts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import conditional
from tests.kit.bodies import assert_follows_weights
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S
from typer.testing import CliRunner

import asterism
from asterism import Client, Graph
from asterism.cli.app import app

COLUMNS = conditional.columns()
MATCHING_ITEMS = conditional.item_filters(COLUMNS.item)
INDEXES = [
    ("price", "range"),
    ("stock", "hash"),
    ("brand", "hash"),
    ("weight", "range"),
    ("id", "range"),
    ("size[2]", "range"),
    ("sold", "hash"),
]
INDEXED_FILTERS = {
    "price > 3",
    "not price > 3",
    "3 >= price",
    "price != 0.1",
    "price is null",
    "price is not null and price between 2 and 4.5",
    "stock in (-3, 0, 2)",
    "stock not in (-3, 0, 2)",
    "stock > 9007199254740992",
    "stock > 9007199254740992.0",
    "sold == true",
    "sold = 0",
    "brand == 'a' or brand = 'ü'",
    "brand != 'b'",
    "brand in ('it\\'s', 'b')",
    "brand is null",
    "id between 7 and 90 or id == 399",
    "weight >= 2",
}
ROWS = np.array([0, 3, 7, 399])


def add_indexes(client: Client, space: str, indexes: list[tuple[str, str]]) -> None:
    for column, kind in indexes:
        job = client.wait(
            client.submit_job(
                space, "index", options={"type": "item", "on": column, "kind": kind}
            ).job_id,
            timeout_s=HANG_S,
        )
        assert (job.state, job.options["on"]) == ("FINISHED", column)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("indexes")) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: Client) -> Graph:
    graph = conditional.load(client, "shop")
    add_indexes(client, "shop", INDEXES)
    return graph


@pytest.fixture(scope="module")
def unindexed(client: Client) -> Graph:
    return conditional.load(client, "bare")


def test_indexes_serve_filters_on_one_column(graph: Graph) -> None:
    assert MATCHING_ITEMS.keys() > INDEXED_FILTERS
    for where in MATCHING_ITEMS:
        explanation = graph.explain.sample_nodes(10, "item", where=where, weighted=False, seed=1)
        assert explanation.filter_plan.startswith("index on ") == (where in INDEXED_FILTERS), (
            where,
            explanation.filter_plan,
        )
    explanation = graph.explain.sample_nodes(
        10, "item", where="price > 9 and stock < size[0]", seed=1
    )
    assert explanation.filter_plan == "rows that the index on price (range) leaves, looked at once"
    assert (
        graph.explain.sample_nodes(10, "item", where="price > stock", seed=1).filter_plan
        == "every row looked at once"
    )
    assert graph.explain.sample_nodes(10, "item", seed=1).filter_plan == ""


@pytest.mark.parametrize("where", MATCHING_ITEMS)
def test_filtered_nodes_match_numpy_and_follow_weights(graph: Graph, where: str) -> None:
    matching = np.flatnonzero(MATCHING_ITEMS[where])
    sampled = graph.sample_nodes(
        matching.size, "item", where=where, weighted=False, replace=False, seed=1
    ).nodes
    assert np.array_equal(np.sort(sampled), matching)
    with pytest.raises(
        asterism.errors.InvalidRequest,
        match=f"{matching.size + 1} different nodes were requested; {matching.size} can",
    ):
        graph.sample_nodes(matching.size + 1, "item", where=where, weighted=False, replace=False)
    uniform = graph.sample_nodes(20_000, "item", where=where, weighted=False, seed=2).nodes
    if matching.size > 1:  # with one matching node there is no distribution to test
        assert_follows_weights(uniform, MATCHING_ITEMS[where].astype(np.float64))
    assert set(uniform.tolist()) == set(matching.tolist())
    expected = np.where(MATCHING_ITEMS[where], COLUMNS.item["weight"], 0).astype(np.float64)
    if expected.any():
        sampled = graph.sample_nodes(20_000, "item", where=where, seed=3, probabilities=True)
        if np.count_nonzero(expected) > 1:
            assert_follows_weights(sampled.nodes, expected)
        np.testing.assert_allclose(
            sampled.probabilities, (expected / expected.sum())[sampled.nodes], rtol=1e-6
        )
        assert np.array_equal(
            graph.sample_nodes(40, "item", where=where, seed=3).nodes, sampled.nodes[:40]
        )


def test_an_index_serves_the_weights_of_every_table(graph: Graph) -> None:
    expected = np.where(
        MATCHING_ITEMS["price > 3"] & (COLUMNS.item["stock"] < 5),
        COLUMNS.item["weight"] * np.abs(COLUMNS.item["stock"]),
        0,
    ).astype(np.float64)
    exact_weights = np.where(
        MATCHING_ITEMS["price > 3"],
        COLUMNS.item["weight"].astype(np.float64) * np.abs(COLUMNS.item["stock"]),
        0,
    )
    rounded_weights = exact_weights.astype(np.float32).astype(np.float64)
    sampled = graph.sample_nodes(
        50_000, "item", where="price > 3", weight="dear", seed=3, probabilities=True
    )
    np.testing.assert_allclose(
        sampled.probabilities, (rounded_weights / rounded_weights.sum())[sampled.nodes], rtol=1e-6
    )
    light = graph.sample_nodes(
        50_000,
        "item",
        where="stock in (-3, -2, -1, 0, 1, 2, 3) and price > 3",
        weight="dear",
        seed=3,
    )
    assert_follows_weights(light.nodes, expected)


def test_unindexed_filters_sample_as_without_indexes(graph: Graph, unindexed: Graph) -> None:
    for where in (
        "price > 3 and stock < size[0]",
        "size[2] < size[0]",
        "price > 3 or brand == 'b'",
        "brand == 'a' and price < stock",
    ):
        one, other = (
            source.sample_nodes(500, "item", where=where, seed=5).nodes
            for source in (graph, unindexed)
        )
        assert np.array_equal(one, other)
    one, other = (source.sample_nodes(500, "item", seed=5).nodes for source in (graph, unindexed))
    assert np.array_equal(one, other)


def test_negatives_and_similar_nodes_use_an_index(graph: Graph) -> None:
    pairs = np.stack([np.zeros(200, np.int64), np.arange(200)], axis=1)
    negatives = graph.sample_negatives(pairs, 5, "item", where="price > 3", seed=1)
    assert MATCHING_ITEMS["price > 3"][np.asarray(negatives.nodes)].all()
    similar = graph.sample_nodes_like(
        COLUMNS.item["id"][:50], 5, ntype="item", where="brand == 'a'", seed=1
    )
    assert (COLUMNS.item["brand"][np.asarray(similar.nodes)] == "a").all()


def test_filter_without_matches_is_not_found(graph: Graph) -> None:
    with pytest.raises(asterism.errors.NotFound, match="where price > 100"):
        graph.sample_nodes(1, "item", where="price > 100")
    with pytest.raises(asterism.errors.NotFound, match="where weight == 0 are zero"):
        graph.sample_nodes(1, "item", where="weight == 0")


def test_build_keeps_indexes_and_an_index_can_be_dropped(client: Client, graph: Graph) -> None:
    graph = conditional.load(client, "kept")
    add_indexes(client, "kept", [("price", "range"), ("brand", "hash")])
    assert (
        graph.explain.sample_nodes(1, "item", where="price > 3", seed=1).filter_plan
        == "index on price (range)"
    )  # it is served, so later builds can link it
    job = client.wait(
        client.submit_job(
            "kept", "index", options={"type": "item", "on": "price", "kind": "range", "drop": "yes"}
        ).job_id
    )
    assert [(index.column, index.kind) for index in client.manifest("kept").indexes] == [
        ("brand", "hash")
    ]
    linked = [units.built for task in job.tasks if task.result for units in task.result.units]
    assert not any(linked)
    graph.upsert_nodes(
        np.array([400]),
        "item",
        weights=np.array([3.0]),
        features={"price": np.array([7.5], np.float32)},
    )
    graph.build(timeout_s=HANG_S)
    assert [(index.column, index.kind) for index in client.manifest("kept").indexes] == [
        ("brand", "hash")
    ]
    assert (
        graph.explain.sample_nodes(1, "item", where="brand is null", seed=1).filter_plan
        == "index on brand (hash)"
    )
    sampled = graph.sample_nodes(
        1000, "item", where="brand is null", weighted=False, replace=True, seed=1
    ).nodes
    assert 400 in sampled.tolist()


def test_indexes_survive_restarts_and_serve_readers(tmp_path: Path) -> None:
    with asterism.open(tmp_path / "data") as writer:
        conditional.load(writer, "shop")
        add_indexes(writer, "shop", [("price", "range")])
        expected = writer.graph("shop").sample_nodes(300, "item", where="price > 3", seed=9).nodes
    with asterism.open(tmp_path / "data", mode="r") as reader:
        assert np.array_equal(
            reader.graph("shop").sample_nodes(300, "item", where="price > 3", seed=9).nodes,
            expected,
        )
    with asterism.open(tmp_path / "data") as reopened:
        assert [index.column for index in reopened.manifest("shop").indexes] == ["price"]
        reopened.wait(reopened.submit_job("shop").job_id)
        assert (
            reopened.graph("shop")
            .explain.sample_nodes(1, "item", where="price > 3", seed=1)
            .filter_plan
            == "index on price (range)"
        )
        assert np.array_equal(
            reopened.graph("shop").sample_nodes(300, "item", where="price > 3", seed=9).nodes,
            expected,
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"type": "item", "on": "price"}, "'kind' is missing"),
        ({"type": "thing", "on": "price", "kind": "range"}, "no node type 'thing'"),
        ({"type": "item", "on": "brand", "kind": "range"}, "use kind hash"),
        ({"type": "item", "on": "size", "kind": "range"}, r"shape \[3\]"),
    ],
)
def test_impossible_index_is_refused_before_the_build(
    client: Client, graph: Graph, options: dict[str, str], words: str
) -> None:
    with pytest.raises(asterism.errors.AsterismError, match=words):
        client.submit_job("shop", "index", options=options)


def test_indexes_work_the_same_on_a_cluster(graph: Graph) -> None:
    with LocalCluster(storageds=3) as cluster, cluster.client() as client:
        other = conditional.load(client, "shop")
        runner = CliRunner()
        for column, kind in INDEXES[:3]:
            result = runner.invoke(
                app,
                [
                    "--address",
                    cluster.addresses,
                    "--json",
                    "job",
                    "index",
                    "shop",
                    "item",
                    column,
                    "--kind",
                    kind,
                    "--wait",
                ],
            )
            assert result.exit_code == 0, result.output
        for where in (
            expression
            for expression in INDEXED_FILTERS
            if expression.split()[0] in ("price", "stock", "brand")
        ):
            for weighted in (True, False):
                if weighted and not COLUMNS.item["weight"][MATCHING_ITEMS[where]].any():
                    continue
                one, two = (
                    source.sample_nodes(200, "item", where=where, weighted=weighted, seed=4).nodes
                    for source in (graph, other)
                )
                assert np.array_equal(one, two), where
        view: Any = cluster.get("metad", "/api/v1/spaces/shop/versions")
        assert "range of item on price" in json.dumps(view)
        assert client.wait(client.submit_job("shop", "audit").job_id).state == "FINISHED"
