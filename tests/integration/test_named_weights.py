"""Draws by the weights of a name, end to end: their law, their independence, what is refused, what is reported."""

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
from tests.kit.bodies import assert_follows
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph
from standalone.app import Standalone

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
            "tables": {"often": "log1p(times)", "rare": {"expression": "1 / times", "invalid": "zero"}},
        },
        "item:like:item": {},
    },
}


def items() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, clicks and ages of items."""
    rng = np.random.default_rng(2)
    return (rng.integers(0, 4, N).astype(np.float32), rng.integers(0, 1000, N), rng.integers(0, 9, N).astype(np.float32))


def pairs() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sources, destinations, weights and times of edges; a quarter are of one hub, at both ends."""
    rng = np.random.default_rng(3)
    hub = rng.random(EDGES)
    src = np.where(hub < 0.25, HUB, rng.integers(0, N, EDGES))
    dst = np.where(hub > 0.75, HUB, rng.integers(0, N, EDGES))
    return src, dst, rng.random(EDGES).astype(np.float32), rng.integers(0, 6, EDGES)


def node_law(name: str) -> np.ndarray:
    weights, clicks, age = items()
    return {"": weights.astype(float), "popular": clicks**0.75, "fresh": weights / (1.0 + age)}[name]


def edge_law(name: str) -> np.ndarray:
    _, _, weights, times = pairs()
    with np.errstate(divide="ignore"):
        return {"": weights.astype(float), "often": np.log1p(times), "rare": np.where(times > 0, 1.0 / times, 0.0)}[name]


def written(client: asterism.Client, space: str) -> Graph:
    client.create_space(space, SCHEMA)
    graph = client.graph(space)
    weights, clicks, age = items()
    graph.upsert_nodes(np.arange(N), "item", weights=weights, features={"clicks": clicks, "age": age})
    src, dst, weight, times = pairs()
    for rows in (slice(0, 1500), slice(1500, EDGES)):
        graph.upsert_edges(src[rows], dst[rows], "with", weights=weight[rows], features={"times": times[rows]})
    graph.build(timeout_s=HANG_S)
    return graph


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with asterism.open(tmp_path_factory.mktemp("named")) as client:
        yield written(client, "shop")


@pytest.mark.parametrize("name", ["", "popular", "fresh"])
def test_nodes_are_drawn_by_the_weights_of_that_name(graph: Graph, name: str) -> None:
    assert_follows(graph.sample_nodes(200_000, "item", weight=name, seed=5).nodes, node_law(name))
    singles = np.array([graph.sample_nodes(1, "item", weight=name, seed=seed).nodes[0] for seed in range(3000)])
    assert_follows(singles % 3, np.bincount(np.arange(N) % 3, node_law(name)))


@pytest.mark.parametrize("name", ["", "often", "rare"])
def test_edges_are_drawn_by_the_weights_of_that_name_and_bear_them(graph: Graph, name: str) -> None:
    drawn = graph.sample_edges(300_000, "with", weight=name, seed=6)
    groups = np.arange(EDGES) % 50
    assert_follows(drawn.edge_ids % 50, np.bincount(groups, edge_law(name)))
    assert (edge_law(name)[drawn.edge_ids] > 0).all()
    assert np.allclose(drawn.weights, edge_law(name)[drawn.edge_ids], rtol=2**-23)


@pytest.mark.parametrize("name", ["", "often", "rare"])
@pytest.mark.parametrize("direction", ["out", "in"])
def test_neighbors_are_drawn_by_the_weights_of_that_name_in_both_directions(graph: Graph, name: str, direction: str) -> None:
    src, dst, _, _ = pairs()
    near, far = (src, dst) if direction == "out" else (dst, src)
    law = np.bincount(far[near == HUB], edge_law(name)[near == HUB], N)
    drawn = graph.sample_neighbors(np.full(500, HUB), "with", 100, weight=name, direction=direction, edge_ids=True, seed=7)
    assert_follows(drawn.nodes.reshape(-1), law)
    assert drawn.weights is not None
    assert drawn.edge_ids is not None
    assert np.allclose(drawn.weights, edge_law(name)[drawn.edge_ids], rtol=2**-23)
    first = graph.sample_neighbors(np.full(20_000, HUB), "with", 1, weight=name, direction=direction, replace=False, seed=8)
    assert_follows(first.nodes.reshape(-1), law)


def test_reads_give_the_weights_of_that_name(graph: Graph) -> None:
    found = graph.neighbors([HUB], "with", weight="often", sort="weight")
    assert found.weights is not None
    assert found.edge_ids is not None
    assert np.allclose(found.weights, edge_law("often")[found.edge_ids], rtol=2**-23)
    assert (np.diff(found.weights) <= 0).all()
    for batch in graph.scan_nodes("item", weight="popular"):
        assert np.allclose(batch.weights, node_law("popular")[batch.ids], rtol=2**-23)
    for edges in graph.scan_edges("with", weight="rare"):
        assert np.allclose(edges.weights, edge_law("rare")[edges.edge_ids], rtol=2**-23)


def test_streams_of_different_names_are_independent_and_the_rows_own_keep_theirs(graph: Graph) -> None:
    own, popular, fresh = (graph.sample_nodes(60_000, "item", weight=name, seed=9).nodes for name in ("", "popular", "fresh"))
    assert np.array_equal(own, graph.sample_nodes(60_000, "item", weight="weight", seed=9).nodes)
    assert np.array_equal(own, graph.sample_nodes(60_000, "item", seed=9).nodes)
    for first, second in ((own, popular), (own, fresh), (popular, fresh)):
        table = np.bincount((first // 15) * 4 + second // 15, minlength=16).reshape(4, 4)
        assert chi2_contingency(table).pvalue > 1e-6


def test_an_unknown_name_is_not_found_and_the_message_says_which_there_are(graph: Graph) -> None:
    with pytest.raises(asterism.NotFound, match="node type 'item' has no weights 'often'; there are 'popular', 'fresh', and its own under ''"):
        graph.sample_nodes(1, weight="often")
    for call in (
        lambda: graph.sample_edges(1, weight="often"),
        lambda: graph.sample_neighbors([1], ["with", "like"], 1, weight="often"),
        lambda: graph.sample_fanout([1], ["with", "like"], [1, 1], weight="often"),
        lambda: graph.neighbors([1], "like", weight="often"),
        lambda: list(graph.scan_edges("like", weight="often")),
    ):
        with pytest.raises(asterism.NotFound, match="edge type 'item:like:item' has no weights 'often'; there are none beside its own"):
            call()
    with pytest.raises(asterism.NotFound, match="'item:with:item' has no weights 'popular'; there are 'often', 'rare'"):
        graph.sample_edges(1, "with", weight="popular")


def test_the_manifest_says_how_even_and_how_odd_the_weights_are(graph: Graph) -> None:
    manifest = graph.client.manifest("shop")
    assert manifest.count("NODE", 0) == N
    for name in ("", "popular", "fresh"):
        check_hygiene(manifest.hygiene("NODE", 0, name), node_law(name))
    for name in ("", "often", "rare"):
        check_hygiene(manifest.hygiene("EDGE", 0, name), edge_law(name), infinite=int((pairs()[3] == 0).sum()) if name == "rare" else 0)
    assert manifest.hygiene("EDGE", 1).effective is None


def check_hygiene(found: Any, law: np.ndarray, infinite: int = 0) -> None:
    assert (found.count, found.positive, found.infinite) == (law.size, np.count_nonzero(law), infinite)
    assert (found.zero, found.subnormal, found.negative, found.nan) == (law.size - np.count_nonzero(law) - infinite, 0, 0, 0)
    assert found.weight == pytest.approx(law.sum(), rel=1e-6)
    assert found.effective == pytest.approx(law.sum() ** 2 / (law**2).sum(), rel=1e-6)
    assert found.largest_share == pytest.approx(law.max() / law.sum(), rel=1e-6)
    assert 0 < found.error_bound < 1e-12
    assert found.audit_tv < 1e-12


def test_hygiene_is_shown_over_http_with_its_version_and_with_its_job(tmp_path: Path) -> None:
    service = Standalone(tmp_path / "served")
    service.start()
    try:
        doors = service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
        with asterism.connect(doors.address) as client:
            written(client, "shop")
            job = client.jobs("shop")[0]
        root = f"http://{doors.http_address}/api/v1"
        with urllib.request.urlopen(f"{root}/spaces/shop/versions/1/hygiene", timeout=HANG_S) as reply:
            shown = json.load(reply)
        assert [(row["type"], row["weight_name"]) for row in shown] == [
            *(("item", name) for name in ("", "fresh", "popular")),
            *(("item:with:item", name) for name in ("", "often", "rare")),
            ("item:like:item", ""),
        ]
        rare = next(row for row in shown if row["weight_name"] == "rare")
        assert rare["expression"] == "1 / times"
        assert rare["infinite"] == (pairs()[3] == 0).sum()
        assert rare["effective"] == pytest.approx(edge_law("rare").sum() ** 2 / (edge_law("rare") ** 2).sum(), rel=1e-6)
        with urllib.request.urlopen(f"{root}/jobs/{job.job_id}", timeout=HANG_S) as reply:
            assert json.load(reply)["hygiene"] == shown
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{root}/spaces/shop/versions/9/hygiene", timeout=HANG_S)
    finally:
        service.stop()


def test_a_build_fails_with_the_row_whose_value_is_no_weight(tmp_path: Path) -> None:
    with asterism.open(tmp_path / "bad") as client:
        client.create_space("s", {"parts": 2, "nodes": {"n": {"features": {"x": "float32"}, "tables": {"odd": "log(x)"}}}})
        graph = client.graph("s")
        graph.upsert_nodes([4, 5, 6], "n", features={"x": np.array([2.0, 0.5, 1.0], np.float32)})
        with pytest.raises(asterism.NotReady, match=r"part 1, node type 'n', node 5: weight 'odd' is -0.69\d* \(log\(x\)\)"):
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
            client.create_space("s", {"nodes": {"n": {"features": {"x": "float32"}, "tables": {"t": "2 * x"}}}}, if_not_exists=True)
        with pytest.raises(asterism.InvalidRequest, match="character 2: found the end"):
            client.create_space("r", {"nodes": {"n": {"tables": {"t": "-"}}}})


def test_audits_and_exports_take_further_weights_in(graph: Graph) -> None:
    client = graph.client
    audit = client.wait(client.submit_job("shop", "audit").job_id, timeout_s=HANG_S)
    assert audit.state == "FINISHED", audit.cause
    (task,) = audit.tasks
    assert task.result is not None
    assert {(found.element, found.type_id): found.count for found in task.result.audit} == {("NODE", 0): N, ("EDGE", 0): EDGES, ("EDGE", 1): 0}
    export = client.wait(client.submit_job("shop", "export-tables", options={"format": "csv"}).job_id, timeout_s=HANG_S)
    assert export.state == "FINISHED", export.cause
    rows: dict[tuple[str, int, str], int] = {}
    for file in export.tasks[0].result.files if export.tasks[0].result else ():
        key = (file.element, file.type_id, file.weight_name)
        rows[key] = rows.get(key, 0) + file.rows
    assert rows["NODE", 0, "popular"] == np.count_nonzero(node_law("popular"))
    assert rows["EDGE", 0, "rare"] == np.count_nonzero(edge_law("rare"))
