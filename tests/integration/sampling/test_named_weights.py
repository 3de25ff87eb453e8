"""Sampling by named weights, end to end: distribution, independence, errors, reports."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency
from tests.kit.bodies import assert_follows_weights
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph
from asterism_standalone.app import Standalone

N, EDGES, HUB = 60, 4000, 7
SCHEMA: dict[str, Any] = {
    "parts": 5,
    "direction": "both",
    "nodes": {
        "item": {
            "weighted": True,
            "features": {"clicks": "int64", "age": "float32"},
            "tables": {"popular": "pow(clicks, 0.75)", "fresh": "weight / (1 + age)"},
        }
    },
    "edges": {
        "item:with:item": {
            "weighted": True,
            "features": {"times": "int32"},
            "tables": {
                "often": "log1p(times)",
                "rare": {"expression": "1 / times", "invalid": "zero"},
            },
        },
        "item:like:item": {},
    },
}


def items() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights, clicks and ages of items."""
    rng = np.random.default_rng(2)
    return (
        rng.integers(0, 4, N).astype(np.float32),
        rng.integers(0, 1000, N),
        rng.integers(0, 9, N).astype(np.float32),
    )


def pairs() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return sources, destinations, weights and times of edges.

    A quarter of the edges start at one hub, and another quarter end there.
    """
    rng = np.random.default_rng(3)
    hub = rng.random(EDGES)
    src = np.where(hub < 0.25, HUB, rng.integers(0, N, EDGES))
    dst = np.where(hub > 0.75, HUB, rng.integers(0, N, EDGES))
    return src, dst, rng.random(EDGES).astype(np.float32), rng.integers(0, 6, EDGES)


def node_weights(name: str) -> np.ndarray:
    weights, clicks, age = items()
    return {"": weights.astype(float), "popular": clicks**0.75, "fresh": weights / (1.0 + age)}[
        name
    ]


def edge_weights(name: str) -> np.ndarray:
    _, _, weights, times = pairs()
    with np.errstate(divide="ignore"):
        return {
            "": weights.astype(float),
            "often": np.log1p(times),
            "rare": np.where(times > 0, 1.0 / times, 0.0),
        }[name]


def built_graph(client: asterism.Client, space: str) -> Graph:
    client.create_space(space, SCHEMA)
    graph = client.graph(space)
    weights, clicks, age = items()
    graph.upsert_nodes(
        np.arange(N), "item", weights=weights, features={"clicks": clicks, "age": age}
    )
    src, dst, weight, times = pairs()
    for rows in (slice(0, 1500), slice(1500, EDGES)):
        graph.upsert_edges(
            src[rows], dst[rows], "with", weights=weight[rows], features={"times": times[rows]}
        )
    graph.build(timeout_s=HANG_S)
    return graph


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with asterism.open(tmp_path_factory.mktemp("named")) as client:
        yield built_graph(client, "shop")


@pytest.mark.parametrize("name", ["", "popular", "fresh"])
def test_nodes_are_sampled_by_named_weights(graph: Graph, name: str) -> None:
    assert_follows_weights(
        graph.sample_nodes(200_000, "item", weight=name, seed=5).nodes, node_weights(name)
    )
    singles = np.array(
        [graph.sample_nodes(1, "item", weight=name, seed=seed).nodes[0] for seed in range(3000)]
    )
    assert_follows_weights(singles % 3, np.bincount(np.arange(N) % 3, node_weights(name)))


@pytest.mark.parametrize("name", ["", "often", "rare"])
def test_edges_are_sampled_by_named_weights_and_carry_them(graph: Graph, name: str) -> None:
    sampled = graph.sample_edges(300_000, "with", weight=name, seed=6)
    groups = np.arange(EDGES) % 50
    assert_follows_weights(sampled.edge_ids % 50, np.bincount(groups, edge_weights(name)))
    assert (edge_weights(name)[sampled.edge_ids] > 0).all()
    assert np.allclose(sampled.weights, edge_weights(name)[sampled.edge_ids], rtol=2**-23)


@pytest.mark.parametrize("name", ["", "often", "rare"])
@pytest.mark.parametrize("direction", ["out", "in"])
def test_neighbors_are_sampled_by_named_weights(graph: Graph, name: str, direction: str) -> None:
    src, dst, _, _ = pairs()
    local, remote = (src, dst) if direction == "out" else (dst, src)
    expected = np.bincount(remote[local == HUB], edge_weights(name)[local == HUB], N)
    sampled = graph.sample_neighbors(
        np.full(500, HUB), "with", 100, weight=name, direction=direction, edge_ids=True, seed=7
    )
    assert_follows_weights(sampled.nodes.reshape(-1), expected)
    assert sampled.weights is not None
    assert sampled.edge_ids is not None
    assert np.allclose(sampled.weights, edge_weights(name)[sampled.edge_ids], rtol=2**-23)
    first = graph.sample_neighbors(
        np.full(20_000, HUB), "with", 1, weight=name, direction=direction, replace=False, seed=8
    )
    assert_follows_weights(first.nodes.reshape(-1), expected)


def test_reads_return_named_weights(graph: Graph) -> None:
    neighbors = graph.neighbors([HUB], "with", weight="often", sort="weight")
    assert neighbors.weights is not None
    assert neighbors.edge_ids is not None
    assert np.allclose(neighbors.weights, edge_weights("often")[neighbors.edge_ids], rtol=2**-23)
    assert (np.diff(neighbors.weights) <= 0).all()
    for batch in graph.scan_nodes("item", weight="popular"):
        assert np.allclose(batch.weights, node_weights("popular")[batch.ids], rtol=2**-23)
    for edges in graph.scan_edges("with", weight="rare"):
        assert np.allclose(edges.weights, edge_weights("rare")[edges.edge_ids], rtol=2**-23)


def test_samples_by_different_weight_names_are_independent(graph: Graph) -> None:
    own, popular, fresh = (
        graph.sample_nodes(60_000, "item", weight=name, seed=9).nodes
        for name in ("", "popular", "fresh")
    )
    assert np.array_equal(own, graph.sample_nodes(60_000, "item", weight="weight", seed=9).nodes)
    assert np.array_equal(own, graph.sample_nodes(60_000, "item", seed=9).nodes)
    for first, second in ((own, popular), (own, fresh), (popular, fresh)):
        table = np.bincount((first // 15) * 4 + second // 15, minlength=16).reshape(4, 4)
        assert chi2_contingency(table).pvalue > 1e-6


def test_unknown_weight_name_is_refused_with_the_valid_ones(graph: Graph) -> None:
    with pytest.raises(
        asterism.NotFound,
        match=(
            "node type 'item' has no weights 'often'; weights: 'popular', 'fresh', and '' for its "
            "own weight"
        ),
    ):
        graph.sample_nodes(1, weight="often")
    for call in (
        lambda: graph.sample_edges(1, weight="often"),
        lambda: graph.sample_neighbors([1], ["with", "like"], 1, weight="often"),
        lambda: graph.sample_fanout([1], ["with", "like"], [1, 1], weight="often"),
        lambda: graph.neighbors([1], "like", weight="often"),
        lambda: list(graph.scan_edges("like", weight="often")),
    ):
        with pytest.raises(
            asterism.NotFound,
            match=("edge type 'item:like:item' has no weights 'often'; weights: no named ones"),
        ):
            call()
    with pytest.raises(
        asterism.NotFound,
        match="'item:with:item' has no weights 'popular'; weights: 'often', 'rare'",
    ):
        graph.sample_edges(1, "with", weight="popular")


def test_manifest_reports_weight_stats(graph: Graph) -> None:
    manifest = graph.client.manifest("shop")
    assert manifest.count("NODE", 0) == N
    for name in ("", "popular", "fresh"):
        assert_weight_stats(manifest.weight_stats("NODE", 0, name), node_weights(name))
    for name in ("", "often", "rare"):
        assert_weight_stats(
            manifest.weight_stats("EDGE", 0, name),
            edge_weights(name),
            infinite=int((pairs()[3] == 0).sum()) if name == "rare" else 0,
        )
    assert manifest.weight_stats("EDGE", 1).effective is None


def assert_weight_stats(stats: Any, weights: np.ndarray, infinite: int = 0) -> None:
    assert (stats.count, stats.positive, stats.infinite) == (
        weights.size,
        np.count_nonzero(weights),
        infinite,
    )
    assert (stats.zero, stats.subnormal, stats.negative, stats.nan) == (
        weights.size - np.count_nonzero(weights) - infinite,
        0,
        0,
        0,
    )
    assert stats.weight == pytest.approx(weights.sum(), rel=1e-6)
    assert stats.effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-6)
    assert stats.largest_share == pytest.approx(weights.max() / weights.sum(), rel=1e-6)
    assert 0 < stats.error_bound < 1e-12
    assert stats.audit_tv < 1e-12


def test_weight_stats_are_shown_over_http(tmp_path: Path) -> None:
    service = Standalone(tmp_path / "served")
    service.start()
    try:
        ports = service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
        with asterism.connect(ports.address, timeout_s=HANG_S) as client:
            built_graph(client, "shop")
            job = client.jobs("shop")[0]
        root = f"http://{ports.http_address}/api/v1"
        with urllib.request.urlopen(
            f"{root}/spaces/shop/versions/1/weight-stats", timeout=HANG_S
        ) as reply:
            shown = json.load(reply)
        assert [(row["type"], row["weight_name"]) for row in shown] == [
            *(("item", name) for name in ("", "fresh", "popular")),
            *(("item:with:item", name) for name in ("", "often", "rare")),
            ("item:like:item", ""),
        ]
        rare = next(row for row in shown if row["weight_name"] == "rare")
        assert rare["expression"] == "1 / times"
        assert rare["infinite"] == (pairs()[3] == 0).sum()
        assert rare["effective"] == pytest.approx(
            edge_weights("rare").sum() ** 2 / (edge_weights("rare") ** 2).sum(), rel=1e-6
        )
        with urllib.request.urlopen(f"{root}/jobs/{job.job_id}", timeout=HANG_S) as reply:
            assert json.load(reply)["weight_stats"] == shown
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{root}/spaces/shop/versions/9/weight-stats", timeout=HANG_S)
    finally:
        service.stop()


def test_build_names_the_row_with_an_invalid_weight(tmp_path: Path) -> None:
    with asterism.open(tmp_path / "bad") as client:
        client.create_space(
            "s",
            {
                "parts": 2,
                "nodes": {"n": {"features": {"x": "float32"}, "tables": {"odd": "log(x)"}}},
            },
        )
        graph = client.graph("s")
        graph.upsert_nodes([4, 5, 6], "n", features={"x": np.array([2.0, 0.5, 1.0], np.float32)})
        with pytest.raises(
            asterism.NotReady,
            match=r"part 1, node type 'n', node 5: weight 'odd' is -0.69\d* \(log\(x\)\)",
        ):
            graph.build(timeout_s=HANG_S)
        graph.upsert_nodes([5], "n", features={"x": np.array([3.0], np.float32)})
        assert graph.build(timeout_s=HANG_S).version == 1
        assert set(graph.sample_nodes(50, weight="odd", seed=1).nodes.tolist()) == {4, 5}


def test_a_space_with_other_expressions_is_another_schema(tmp_path: Path) -> None:
    with asterism.open(tmp_path / "schema") as client:
        schema = {"nodes": {"n": {"features": {"x": "float32"}, "tables": {"t": "x"}}}}
        client.create_space("s", schema)
        client.create_space("s", schema, if_not_exists=True)
        assert client.describe("s").schema.node_types[0].table("t").expression == "x"
        with pytest.raises(asterism.Conflict):
            client.create_space(
                "s",
                {"nodes": {"n": {"features": {"x": "float32"}, "tables": {"t": "2 * x"}}}},
                if_not_exists=True,
            )
        with pytest.raises(asterism.InvalidRequest, match="character 2: found the end"):
            client.create_space("r", {"nodes": {"n": {"tables": {"t": "-"}}}})


def test_audits_and_exports_include_named_weights(graph: Graph) -> None:
    client = graph.client
    audit = client.wait(client.submit_job("shop", "audit").job_id, timeout_s=HANG_S)
    assert audit.state == "FINISHED", audit.cause
    (task,) = audit.tasks
    assert task.result is not None
    assert {(entry.element, entry.type_id): entry.count for entry in task.result.audit} == {
        ("NODE", 0): N,
        ("EDGE", 0): EDGES,
        ("EDGE", 1): 0,
    }
    export = client.wait(
        client.submit_job("shop", "export-tables", options={"format": "csv"}).job_id,
        timeout_s=HANG_S,
    )
    assert export.state == "FINISHED", export.cause
    rows: dict[tuple[str, int, str], int] = {}
    for file in export.tasks[0].result.files if export.tasks[0].result else ():
        key = (file.element, file.type_id, file.weight_name)
        rows[key] = rows.get(key, 0) + file.rows
    assert rows["NODE", 0, "popular"] == np.count_nonzero(node_weights("popular"))
    assert rows["EDGE", 0, "rare"] == np.count_nonzero(edge_weights("rare"))
