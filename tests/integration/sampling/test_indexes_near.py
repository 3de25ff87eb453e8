"""Edge indexes, end to end: declared in a schema and present in every version.

Edge and neighbor sampling use them; backups and audits include them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.distributions.checks.basis import require_counts
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

import asterism
from asterism import Client, Graph
from asterism_model.schema import Schema
from asterism_proto.errors import AsterismError, InvalidRequest

USERS, ITEMS, EDGES = 60, 90, 4000
HUB = 3
SCHEMA: dict[str, Any] = {
    "parts": 4,
    "direction": "both",
    "nodes": {
        "user": {"features": {"age": "uint8", "home": "bytes"}, "index": ["age", "home"]},
        "item": {},
    },
    "edges": {
        "user:buys:item": {
            "weighted": True,
            "features": {
                "price": "float32",
                "stars": "int32",
                "note": "bytes",
                "size": {"dtype": "float32", "shape": [2]},
            },
            "tables": {"dear": "price * weight"},
            "index": ["price", "stars", "weight"],
        },
        "item:like:item": {"features": {"stars": "int32"}, "index": "stars"},
    },
}
RNG = np.random.default_rng(6)
SRC, DST = (
    np.where(RNG.random(EDGES) < 0.2, HUB, RNG.integers(0, USERS, EDGES)),
    RNG.integers(0, ITEMS, EDGES),
)
WEIGHT, STARS = (
    RNG.integers(0, 4, EDGES).astype(np.float32),
    RNG.integers(0, 6, EDGES).astype(np.int32),
)
PRICE = (RNG.random(EDGES) * 10).astype(np.float32)
MATCHING_EDGES = {
    "price between 2 and 5": (PRICE >= 2) & (PRICE <= 5),
    "stars in (1, 4)": np.isin(STARS, [1, 4]),
    "not stars == 2": STARS != 2,
    "weight > 1": WEIGHT > 1,
    "price < 0.01": PRICE < 0.01,
}


def assert_follows(edge_ids: np.ndarray, weights: np.ndarray) -> None:
    require_counts(
        np.bincount(edge_ids, minlength=weights.size),
        weights / weights.sum() * edge_ids.size,
        "edges",
    )


def load(client: Client, space: str, schema: dict[str, Any] = SCHEMA) -> Graph:
    client.create_space(space, schema)
    graph, half = client.graph(space), EDGES // 2
    homes = [b"ab"[i % 2 : i % 2 + 1] for i in range(USERS)]
    graph.upsert_nodes(
        np.arange(USERS), "user", features={"age": np.arange(USERS).astype(np.uint8), "home": homes}
    )
    graph.upsert_nodes(np.arange(ITEMS), "item")
    for rows in (slice(0, half), slice(half, EDGES)):
        features = {"price": PRICE[rows], "stars": STARS[rows]}
        graph.upsert_edges(SRC[rows], DST[rows], "buys", weights=WEIGHT[rows], features=features)
    graph.upsert_edges(DST[:500], DST[500:1000], "like", features={"stars": STARS[:500]})
    graph.build(timeout_s=HANG_S)
    return graph


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("near")) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: Client) -> Graph:
    return load(client, "shop")


def test_every_version_has_what_the_schema_declares(client: Client, graph: Graph) -> None:
    expected = [
        (1, "age", "range"),
        (1, "home", "hash"),
        (2, "price", "range"),
        (2, "stars", "range"),
        (2, "weight", "range"),
        (2, "stars", "range"),
    ]
    assert [
        (index.element, index.column, index.kind) for index in client.manifest("shop").indexes
    ] == expected
    assert (
        Schema.from_dict(graph.schema.to_dict())
        == graph.schema
        == Schema.from_proto(graph.schema.to_proto())
    )
    assert (
        graph.explain.sample_nodes(9, "user", where="home == 'a'", seed=1).filter_plan
        == "index on home (hash)"
    )
    with pytest.raises(InvalidRequest, match="declared in the schema"):
        client.submit_job(
            "shop", "index", options={"type": "buys", "on": "price", "kind": "range", "drop": "yes"}
        )
    assert (
        client.wait(client.submit_job("shop", "audit").job_id, timeout_s=HANG_S).state == "FINISHED"
    )


@pytest.mark.parametrize("where", MATCHING_EDGES)
def test_indexed_edges_are_sampled_by_weight(graph: Graph, where: str) -> None:
    assert graph.explain.sample_edges(9, "buys", where=where, seed=1).filter_plan.startswith(
        "index on "
    )
    for weight, edge_weights in (
        ("weight", WEIGHT),
        ("dear", (PRICE.astype(np.float64) * WEIGHT).astype(np.float32)),
        ("", np.ones(EDGES, np.float32)),
    ):
        expected = np.where(MATCHING_EDGES[where], edge_weights, 0).astype(np.float64)
        options: dict[str, Any] = {"weight": weight} if weight else {"weighted": False}
        sampled = graph.sample_edges(
            20_000, "buys", where=where, seed=2, probabilities=True, **options
        )
        assert_follows(sampled.edge_ids, expected)
        np.testing.assert_allclose(
            sampled.probabilities, (expected / expected.sum())[sampled.edge_ids], rtol=1e-6
        )
        assert np.array_equal(
            np.stack([sampled.src, sampled.dst]), np.stack([SRC, DST])[:, sampled.edge_ids]
        )
    all_matches = graph.sample_edges(
        int(MATCHING_EDGES[where].sum()), "buys", where=where, weighted=False, replace=False, seed=1
    )
    assert np.array_equal(np.sort(all_matches.edge_ids), np.flatnonzero(MATCHING_EDGES[where]))


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("where", MATCHING_EDGES)
def test_indexed_neighbors_are_sampled_by_weight(graph: Graph, where: str, direction: str) -> None:
    local, remote = (SRC, DST) if direction == "out" else (DST, SRC)
    node = HUB if direction == "out" else int(np.bincount(DST).argmax())
    for options in ({"weighted": True}, {"weighted": False}, {"weight": "dear"}):
        edge_weights = (
            np.ones(EDGES)
            if options.get("weighted") is False
            else WEIGHT
            if "weighted" in options
            else (PRICE.astype(np.float64) * WEIGHT).astype(np.float32)
        )
        expected = np.where(MATCHING_EDGES[where] & (local == node), edge_weights, 0).astype(
            np.float64
        )
        arguments: dict[str, Any] = {
            "where": where,
            "direction": direction,
            "edge_ids": True,
            "probabilities": True,
            "seed": 4,
            **options,
        }
        sampled = graph.sample_neighbors(np.full(20_000, node), "buys", 1, **arguments)
        if not expected.any():
            assert not sampled.mask.any()
            continue
        edges = sampled.edge_ids.ravel()
        if np.count_nonzero(expected) > 1:
            assert_follows(edges, expected)
        np.testing.assert_allclose(
            sampled.probabilities.ravel(), (expected / expected.sum())[edges], rtol=1e-6
        )
        assert np.array_equal(sampled.nodes.ravel(), remote[edges])
    size = USERS if direction == "out" else ITEMS
    all_matches = graph.sample_neighbors(
        np.arange(size),
        "buys",
        900,
        where=where,
        direction=direction,
        weighted=False,
        replace=False,
        edge_ids=True,
    )
    assert np.array_equal(
        np.sort(all_matches.edge_ids[all_matches.mask]), np.flatnonzero(MATCHING_EDGES[where])
    )
    assert np.array_equal(
        np.nonzero(all_matches.mask)[0], local[all_matches.edge_ids[all_matches.mask]]
    )


def test_filters_without_an_index_scan_rows(graph: Graph) -> None:
    unindexed = {
        "price > 3 and dst.id < 40": (PRICE > 3) & (DST < 40),
        "price < stars": PRICE < STARS,
        "stars > 3 or price > 9": (STARS > 3) | (PRICE > 9),
    }
    for where, matching in unindexed.items():
        assert (
            graph.explain.sample_edges(9, "buys", where=where, seed=1).filter_plan
            == "every row looked at once"
        )
        all_matches = graph.sample_neighbors(
            np.arange(USERS), "buys", 900, where=where, weighted=False, replace=False, edge_ids=True
        )
        assert np.array_equal(
            np.sort(all_matches.edge_ids[all_matches.mask]), np.flatnonzero(matching)
        ), where
    counts = graph.degrees(np.arange(ITEMS), "buys", direction="in", where="price between 2 and 5")
    assert np.array_equal(
        np.ravel(counts), np.bincount(DST, MATCHING_EDGES["price between 2 and 5"], ITEMS)
    )
    walks = graph.random_walk(
        [HUB], ["buys"], 1, where="stars == 3", walks=20, first_step="distinct", edge_ids=True
    )
    assert (STARS[walks.edge_ids] == 3).all()
    assert len(set(walks.nodes[:, 1].tolist())) == 20
    union = graph.sample_neighbors(
        np.arange(ITEMS), ["like"], 3, where="stars > 3", replace=False, edge_ids=True
    )
    assert (STARS[union.edge_ids[union.mask]] > 3).all()


def test_index_jobs_accept_only_columns_stored_with_edges(client: Client) -> None:
    graph = load(
        client,
        "bare",
        {
            **SCHEMA,
            "edges": {
                name: {**declaration, "index": []} for name, declaration in SCHEMA["edges"].items()
            },
        },
    )
    options = {"type": "user:buys:item", "kind": "range"}
    with pytest.raises(InvalidRequest, match=r"add `index: \[price\]`"):
        client.submit_job("bare", "index", options={**options, "on": "price"})
    with pytest.raises(AsterismError, match="column of the edge itself"):
        client.submit_job("bare", "index", options={**options, "on": "dst.id"})
    for column, kind in (("weight", "range"), ("dst", "hash")):
        assert (
            client.wait(
                client.submit_job(
                    "bare", "index", options={**options, "on": column, "kind": kind}
                ).job_id,
                timeout_s=HANG_S,
            ).state
            == "FINISHED"
        )
    for where, matching in (("weight > 1", WEIGHT > 1), ("dst in (3, 5)", np.isin(DST, [3, 5]))):
        assert graph.explain.sample_edges(9, "buys", where=where, seed=1).filter_plan.startswith(
            "index on "
        )
        assert_follows(
            graph.sample_edges(20_000, "buys", where=where, weighted=False, seed=2).edge_ids,
            matching.astype(np.float64),
        )
    assert_follows(
        graph.sample_neighbors(
            np.full(9000, HUB), "buys", 1, where="weight > 1", seed=2, edge_ids=True
        ).edge_ids.ravel(),
        np.where((SRC == HUB) & (WEIGHT > 1), WEIGHT, 0).astype(np.float64),
    )
    assert (
        client.wait(client.submit_job("bare", "audit").job_id, timeout_s=HANG_S).state == "FINISHED"
    )


@pytest.mark.parametrize(
    ("owner", "index", "words"),
    [
        ("edges", ["note"], "expected a scalar number, found bytes"),
        ("edges", ["size[1]"], "expected a scalar number"),
        ("edges", ["none"], "no such feature; features: price, stars, note, size"),
        ("edges", ["price", "price"], "expected each name once"),
        ("edges", ["price > 3"], "the name of one column"),
        ("nodes", ["src"], "no such feature"),
        ("nodes", ["id[0]"], "the column has one value"),
        ("nodes", 3, "expected a list of columns"),
    ],
)
def test_schema_with_an_unindexable_column_is_refused(
    client: Client, owner: str, index: Any, words: str
) -> None:
    name = "user" if owner == "nodes" else "user:buys:item"
    schema = {**SCHEMA, owner: {**SCHEMA[owner], name: {**SCHEMA[owner][name], "index": index}}}
    with pytest.raises(InvalidRequest, match=words):
        client.create_space("refused", schema)


def test_statements_declare_and_show_indexes(client: Client) -> None:
    client.query(
        "CREATE SPACE said TAG user (age int16, v float[3]) INDEX (age, v[1]), "
        "EDGE likes (price float) FROM user TO user INDEX (price, id) MISSING CREATE"
    )
    schema = client.describe("said").schema
    assert (schema.node_types[0].index, schema.edge_types[0].index) == (
        ("age", "v[1]"),
        ("price", "id"),
    )
    statement = client.query("SHOW CREATE SPACE said")["statement"][0]
    assert "INDEX (`age`, `v`[1])" in statement
    client.query("DROP SPACE said")
    client.query(statement)
    assert client.describe("said").schema == schema
    description = client.query("USE said; DESCRIBE TAG user")
    assert ("v[1]", "index") in list(zip(description["name"], description["kind"], strict=True))


def filtered_samples(graph: Graph) -> list[bytes]:
    samples = []
    for where in MATCHING_EDGES:
        for direction, size in (("out", USERS), ("in", ITEMS)):
            arguments: dict[str, Any] = {
                "where": where,
                "direction": direction,
                "edge_ids": True,
                "seed": 8,
            }
            pair = [
                graph.sample_neighbors(np.arange(size), "buys", 4, replace=replace, **arguments)
                for replace in (True, False)
            ]
            samples += [sample.edge_ids.tobytes() for sample in pair]
        samples.append(
            graph.sample_edges(200, "buys", where=where, weighted=False, seed=8).edge_ids.tobytes()
        )
    return samples


def test_indexes_are_restored_and_repaired(graph: Graph, tmp_path: Path) -> None:
    expected = filtered_samples(graph)
    (tmp_path / "cluster").mkdir()
    with (
        LocalCluster(2, 1, folder=tmp_path / "cluster") as cluster,
        cluster.client() as cluster_client,
    ):
        cluster_graph = load(cluster_client, "shop")
        assert filtered_samples(cluster_graph) == expected
        manifest = cluster_client.manifest("shop")
        cluster_client.backup("shop", tmp_path / "shop", timeout_s=HANG_S)
        with asterism.open(tmp_path / "elsewhere") as restored:
            restored.restore(tmp_path / "shop", timeout_s=HANG_S)
            assert restored.manifest("shop").digest == manifest.digest
            assert filtered_samples(restored.graph("shop")) == expected
            restored.graph("shop").build(timeout_s=HANG_S)
            assert restored.manifest("shop").indexes == manifest.indexes
            assert (
                restored.wait(restored.submit_job("shop", "audit").job_id, timeout_s=HANG_S).state
                == "FINISHED"
            )
        cluster.kill("storaged-0")
        build = (
            cluster.folder_of("storaged-0")
            / "spaces"
            / str(manifest.space_id)
            / "builds"
            / str(manifest.job_id)
        )
        files = sorted(
            file
            for array in ("order", "keys", "tree", "rows")
            for file in build.glob(f"parts/*/e*.x*.{array}.bin")
            if file.stat().st_size
        )
        assert {file.name.split(".")[-2] for file in files} == {"order", "keys", "tree", "rows"}
        contents = {file: file.read_bytes() for file in files}
        for file, content in contents.items():
            file.unlink()  # it may be a hard link to another version's file
            file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        cluster.restart("storaged-0")
        cluster.wait_ready()
        assert filtered_samples(cluster_graph) == expected
        assert {file: file.read_bytes() for file in files} == contents
