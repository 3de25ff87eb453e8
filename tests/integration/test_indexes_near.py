"""Indexes of edges, end to end: declared in a schema, in every version, taken by draws of edges and of neighbors, kept by backups and audits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S
from tests.law.checks.basis import require_counts

import asterism
from asterism import Client, Graph
from asterism_proto.errors import AsterismError, InvalidRequest
from asterism_proto.schema import Schema

USERS, ITEMS, EDGES = 60, 90, 4000
BUSY = 3
SCHEMA: dict[str, Any] = {
    "parts": 4,
    "direction": "both",
    "nodes": {"user": {"features": {"age": "uint8", "home": "bytes"}, "index": ["age", "home"]}, "item": {}},
    "edges": {
        "user:buys:item": {
            "weighted": True,
            "features": {"price": "float32", "stars": "int32", "note": "bytes", "size": {"dtype": "float32", "shape": [2]}},
            "tables": {"dear": "price * weight"},
            "index": ["price", "stars", "weight"],
        },
        "item:like:item": {"features": {"stars": "int32"}, "index": "stars"},
    },
}
RNG = np.random.default_rng(6)
SRC, DST = np.where(RNG.random(EDGES) < 0.2, BUSY, RNG.integers(0, USERS, EDGES)), RNG.integers(0, ITEMS, EDGES)
WEIGHT, STARS = RNG.integers(0, 4, EDGES).astype(np.float32), RNG.integers(0, 6, EDGES).astype(np.int32)
PRICE = (RNG.random(EDGES) * 10).astype(np.float32)
ASKED = {
    "price between 2 and 5": (PRICE >= 2) & (PRICE <= 5),
    "stars in (1, 4)": np.isin(STARS, [1, 4]),
    "not stars == 2": STARS != 2,
    "weight > 1": WEIGHT > 1,
    "price < 0.01": PRICE < 0.01,
}


def assert_follows(drawn: np.ndarray, law: np.ndarray) -> None:
    require_counts(np.bincount(drawn, minlength=law.size), law / law.sum() * drawn.size, "edges")


def load(client: Client, space: str, schema: dict[str, Any] = SCHEMA) -> Graph:
    client.create_space(space, schema)
    graph, half = client.graph(space), EDGES // 2
    homes = [b"ab"[i % 2 : i % 2 + 1] for i in range(USERS)]
    graph.upsert_nodes(np.arange(USERS), "user", features={"age": np.arange(USERS).astype(np.uint8), "home": homes})
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
        (1, "age", "range"), (1, "home", "hash"), (2, "price", "range"), (2, "stars", "range"), (2, "weight", "range"), (2, "stars", "range"),
    ]  # fmt: skip
    assert [(index.element, index.column, index.kind) for index in client.manifest("shop").indexes] == expected
    assert Schema.from_dict(graph.schema.to_dict()) == graph.schema == Schema.from_proto(graph.schema.to_proto())
    assert graph.explain.sample_nodes(9, "user", where="home == 'a'", seed=1).condition == "index on home (hash)"
    with pytest.raises(InvalidRequest, match="the schema declares it"):
        client.submit_job("shop", "index", options={"type": "buys", "on": "price", "kind": "range", "drop": "yes"})
    assert client.wait(client.submit_job("shop", "audit").job_id, timeout_s=HANG_S).state == "FINISHED"


@pytest.mark.parametrize("where", ASKED)
def test_edges_are_drawn_from_the_index_by_their_weights(graph: Graph, where: str) -> None:
    assert graph.explain.sample_edges(9, "buys", where=where, seed=1).condition.startswith("index on ")
    for weight, of in (("weight", WEIGHT), ("dear", (PRICE.astype(np.float64) * WEIGHT).astype(np.float32)), ("", np.ones(EDGES, np.float32))):
        law = np.where(ASKED[where], of, 0).astype(np.float64)
        how: dict[str, Any] = {"weight": weight} if weight else {"weighted": False}
        drawn = graph.sample_edges(20_000, "buys", where=where, seed=2, probabilities=True, **how)
        assert_follows(drawn.edge_ids, law)
        np.testing.assert_allclose(drawn.probabilities, (law / law.sum())[drawn.edge_ids], rtol=1e-6)
        assert np.array_equal(np.stack([drawn.src, drawn.dst]), np.stack([SRC, DST])[:, drawn.edge_ids])
    every = graph.sample_edges(int(ASKED[where].sum()), "buys", where=where, weighted=False, replace=False, seed=1)
    assert np.array_equal(np.sort(every.edge_ids), np.flatnonzero(ASKED[where]))


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("where", ASKED)
def test_neighbors_are_drawn_from_the_order_of_each_node(graph: Graph, where: str, direction: str) -> None:
    near, far = (SRC, DST) if direction == "out" else (DST, SRC)
    node = BUSY if direction == "out" else int(np.bincount(DST).argmax())
    for how in ({"weighted": True}, {"weighted": False}, {"weight": "dear"}):
        of = (
            np.ones(EDGES)
            if how.get("weighted") is False
            else WEIGHT
            if "weighted" in how
            else (PRICE.astype(np.float64) * WEIGHT).astype(np.float32)
        )
        law = np.where(ASKED[where] & (near == node), of, 0).astype(np.float64)
        asked: dict[str, Any] = {"where": where, "direction": direction, "edge_ids": True, "probabilities": True, "seed": 4, **how}
        drawn = graph.sample_neighbors(np.full(20_000, node), "buys", 1, **asked)
        if not law.any():
            assert not drawn.mask.any()
            continue
        edges = drawn.edge_ids.ravel()
        if np.count_nonzero(law) > 1:
            assert_follows(edges, law)
        np.testing.assert_allclose(drawn.probabilities.ravel(), (law / law.sum())[edges], rtol=1e-6)
        assert np.array_equal(drawn.nodes.ravel(), far[edges])
    size = USERS if direction == "out" else ITEMS
    every = graph.sample_neighbors(np.arange(size), "buys", 900, where=where, direction=direction, weighted=False, replace=False, edge_ids=True)
    assert np.array_equal(np.sort(every.edge_ids[every.mask]), np.flatnonzero(ASKED[where]))
    assert np.array_equal(np.nonzero(every.mask)[0], near[every.edge_ids[every.mask]])


def test_what_no_order_answers_is_looked_for_and_satisfies_the_same(graph: Graph) -> None:
    plain = {
        "price > 3 and dst.id < 40": (PRICE > 3) & (DST < 40),
        "price < stars": PRICE < STARS,
        "stars > 3 or price > 9": (STARS > 3) | (PRICE > 9),
    }
    for where, satisfied in plain.items():
        assert graph.explain.sample_edges(9, "buys", where=where, seed=1).condition == "every row looked at once"
        every = graph.sample_neighbors(np.arange(USERS), "buys", 900, where=where, weighted=False, replace=False, edge_ids=True)
        assert np.array_equal(np.sort(every.edge_ids[every.mask]), np.flatnonzero(satisfied)), where
    counts = graph.degrees(np.arange(ITEMS), "buys", direction="in", where="price between 2 and 5")
    assert np.array_equal(np.ravel(counts), np.bincount(DST, ASKED["price between 2 and 5"], ITEMS))
    walks = graph.random_walk([BUSY], ["buys"], 1, where="stars == 3", walks=20, first_step="distinct", edge_ids=True)
    assert (STARS[walks.edge_ids] == 3).all()
    assert len(set(walks.nodes[:, 1].tolist())) == 20
    union = graph.sample_neighbors(np.arange(ITEMS), ["like"], 3, where="stars > 3", replace=False, edge_ids=True)
    assert (STARS[union.edge_ids[union.mask]] > 3).all()


def test_jobs_index_what_lies_beside_the_edges_and_nothing_else(client: Client) -> None:
    graph = load(client, "bare", {**SCHEMA, "edges": {name: {**of, "index": []} for name, of in SCHEMA["edges"].items()}})
    options = {"type": "user:buys:item", "kind": "range"}
    with pytest.raises(InvalidRequest, match=r"declare `index: \[price\]`"):
        client.submit_job("bare", "index", options={**options, "on": "price"})
    with pytest.raises(AsterismError, match="column of the edge itself"):
        client.submit_job("bare", "index", options={**options, "on": "dst.id"})
    for on, kind in (("weight", "range"), ("dst", "hash")):
        assert (
            client.wait(client.submit_job("bare", "index", options={**options, "on": on, "kind": kind}).job_id, timeout_s=HANG_S).state == "FINISHED"
        )
    for where, satisfied in (("weight > 1", WEIGHT > 1), ("dst in (3, 5)", np.isin(DST, [3, 5]))):
        assert graph.explain.sample_edges(9, "buys", where=where, seed=1).condition.startswith("index on ")
        assert_follows(graph.sample_edges(20_000, "buys", where=where, weighted=False, seed=2).edge_ids, satisfied.astype(np.float64))
    assert_follows(
        graph.sample_neighbors(np.full(9000, BUSY), "buys", 1, where="weight > 1", seed=2, edge_ids=True).edge_ids.ravel(),
        np.where((SRC == BUSY) & (WEIGHT > 1), WEIGHT, 0).astype(np.float64),
    )
    assert client.wait(client.submit_job("bare", "audit").job_id, timeout_s=HANG_S).state == "FINISHED"


@pytest.mark.parametrize(
    ("owner", "index", "words"),
    [
        ("edges", ["note"], "is bytes; expected a scalar number"),
        ("edges", ["size[1]"], "expected a scalar number"),
        ("edges", ["none"], "no such feature; it has price, stars, note, size"),
        ("edges", ["price", "price"], "named twice"),
        ("edges", ["price > 3"], "the name of one column"),
        ("nodes", ["src"], "no such feature"),
        ("nodes", ["id[0]"], "it is one value"),
        ("nodes", 3, "expected a list of columns"),
    ],
)
def test_a_column_that_can_not_be_indexed_is_refused_with_the_schema(client: Client, owner: str, index: Any, words: str) -> None:
    name = "user" if owner == "nodes" else "user:buys:item"
    schema = {**SCHEMA, owner: {**SCHEMA[owner], name: {**SCHEMA[owner][name], "index": index}}}
    with pytest.raises(InvalidRequest, match=words):
        client.create_space("refused", schema)


def test_a_statement_declares_them_and_shows_them(client: Client) -> None:
    client.query(
        "CREATE SPACE said TAG user (age int16, v float[3]) INDEX (age, v[1]), "
        "EDGE likes (price float) FROM user TO user INDEX (price, id) MISSING CREATE"
    )
    schema = client.describe("said").schema
    assert (schema.node_types[0].index, schema.edge_types[0].index) == (("age", "v[1]"), ("price", "id"))
    shown = client.query("SHOW CREATE SPACE said")["statement"][0]
    assert "INDEX (`age`, `v`[1])" in shown
    client.query("DROP SPACE said")
    client.query(shown)
    assert client.describe("said").schema == schema
    told = client.query("USE said; DESCRIBE TAG user")
    assert ("v[1]", "index") in list(zip(told["name"], told["kind"], strict=True))


def draws(graph: Graph) -> list[bytes]:
    found = []
    for where in ASKED:
        for direction, size in (("out", USERS), ("in", ITEMS)):
            asked: dict[str, Any] = {"where": where, "direction": direction, "edge_ids": True, "seed": 8}
            drawn = [graph.sample_neighbors(np.arange(size), "buys", 4, replace=replace, **asked) for replace in (True, False)]
            found += [each.edge_ids.tobytes() for each in drawn]
        found.append(graph.sample_edges(200, "buys", where=where, weighted=False, seed=8).edge_ids.tobytes())
    return found


def test_they_come_back_from_a_backup_and_are_made_again_where_they_are_damaged(graph: Graph, tmp_path: Path) -> None:
    expected = draws(graph)
    (tmp_path / "cluster").mkdir()
    with LocalCluster(2, 1, folder=tmp_path / "cluster") as cluster, cluster.client() as here:
        other = load(here, "shop")
        assert draws(other) == expected
        sealed = here.manifest("shop")
        here.backup("shop", tmp_path / "shop", timeout_s=HANG_S)
        with asterism.open(tmp_path / "elsewhere") as there:
            there.restore(tmp_path / "shop", timeout_s=HANG_S)
            assert there.manifest("shop").digest == sealed.digest
            assert draws(there.graph("shop")) == expected
            there.graph("shop").build(timeout_s=HANG_S)
            assert there.manifest("shop").indexes == sealed.indexes
            assert there.wait(there.submit_job("shop", "audit").job_id, timeout_s=HANG_S).state == "FINISHED"
        cluster.kill("storaged-0")
        build = cluster.folder_of("storaged-0") / "spaces" / str(sealed.space_id) / "builds" / str(sealed.job_id)
        files = sorted(file for what in ("order", "keys", "tree", "rows") for file in build.glob(f"parts/*/e*.x*.{what}.bin") if file.stat().st_size)
        assert {file.name.split(".")[-2] for file in files} == {"order", "keys", "tree", "rows"}
        before = {file: file.read_bytes() for file in files}
        for file, whole in before.items():
            file.unlink()  # it may be a hard link to another version's
            file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        cluster.restart("storaged-0")
        cluster.wait_ready()
        assert draws(other) == expected
        assert {file: file.read_bytes() for file in files} == before
