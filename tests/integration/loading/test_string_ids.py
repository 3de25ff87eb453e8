"""String ids on real services: load, sample, look up, export and back up.

Two different strings are never confused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster

import asterism
from asterism import Client, Graph, aio, backup
from asterism_model.string_ids import hash_string
from asterism_proto.errors import Conflict, InvalidRequest, NotFound, NotReady

COLLIDING_STRINGS = ("Xuw2jYuhNW3", "zhQZUDJ5rO6")
"""Two strings with the same id under salt 0.

The id is 7491370303538657842; a search of 3,742,883,448 steps found them.
"""
SPACE: dict[str, Any] = {
    "ids": "string",
    "salt": 3,
    "parts": 4,
    "direction": "both",
    "nodes": {
        "user": {"weighted": True, "features": {"age": "int32"}},
        "item": {"features": {"price": "float32"}},
    },
    "edges": {"user:buys:item": {"weighted": True}, "user:follows:user": {"missing": "create"}},
}
USERS = [f"user-{i}" for i in range(60)] + ["Zoë", "東京"]
ITEMS = [f"https://shop.example/item/{i}?ref={i * i}" for i in range(40)]


def create_shop(client: Client, space: str) -> Graph:
    client.create_space(space, SPACE)
    graph, rng = client.graph(space), np.random.default_rng(5)
    graph.upsert_nodes(
        USERS,
        "user",
        weights=rng.random(len(USERS)),
        features={"age": np.arange(len(USERS), dtype=np.int32)},
    )
    graph.upsert_nodes(ITEMS, "item", features={"price": np.arange(len(ITEMS), dtype=np.float32)})
    graph.upsert_edges(
        rng.choice(USERS, 500), rng.choice(ITEMS, 500), "buys", weights=rng.random(500)
    )
    graph.upsert_edges(rng.choice(USERS, 200), rng.choice([*USERS, "newcomer"], 200), "follows")
    graph.build()
    return graph


def run_calls(graph: Graph, encode: Callable[[list[str], str], Any]) -> dict[str, Any]:
    """Return the results of many calls, with nodes given in the form that `encode` returns."""
    users, items, seed = (
        encode(["user-3", "Zoë", "unknown", "user-9"], "user"),
        encode(ITEMS[:3], "item"),
        {"seed": 7},
    )
    results = {
        "neighbors": graph.neighbors(users, "buys"),
        "sample_neighbors": graph.sample_neighbors(users, "buys", 5, **seed),
        "top_k": graph.top_k_neighbors(users, "buys", 3),
        "degrees": graph.degrees(users, ["buys", "follows"], ntype="user"),
        "fanout": graph.sample_fanout(users, ["follows", "buys"], [3, 2], **seed),
        "walk": graph.random_walk(users, ["follows", "buys"], 4, **seed),
        "subgraph": graph.sample_subgraph(users, [3, 3], ["follows", "buys"], **seed),
        "layer": graph.sample_layer(users, "buys", 6, **seed),
        "adjacency": graph.adjacency(users, items, "buys"),
        "multi_hop": graph.multi_hop_neighbors(users, ["follows", "buys"]),
        "types": graph.node_types(users, "user"),
        "like": graph.sample_nodes_like(users, 2, ntype="user", unknown="none", **seed),
        "features": graph.node_features(users, ["age", "weight"], "user"),
        "negatives": graph.sample_negatives(
            encode(["user-3", "user-9"], "user"),
            4,
            "item",
            exclude=np.asarray(items[:2]).reshape(2, 1),
            **seed,
        ),
        "no edges": graph.sample_negatives(users, 9, "item", exclude_edges="buys", **seed),
        "no edges of pairs": graph.sample_negatives(
            np.stack([users[:2], items[:2]], axis=1), 9, "item", exclude_edges="buys", **seed
        ),
        "in": graph.neighbors(items, "buys", direction="in"),
        "mixed": graph.sample_neighbors(
            users, ["buys", "follows"], 4, ntype=np.zeros(4, np.int32), **seed
        ),
    }
    return {
        **results,
        "found": graph.find_nodes(users[:2], "user"),
        "replayed": graph.replay(results["walk"].token, users),
        "no edges again": graph.replay(results["no edges"].token, users),
    }


def to_lists(value: Any) -> Any:
    """Convert a record to nested lists, without its token."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {name: to_lists(item) for name, item in value.items() if name != "token"}
    if isinstance(value, list | tuple):
        return [to_lists(item) for item in value]
    fields = getattr(type(value), "__dataclass_fields__", None)
    return (
        value
        if fields is None
        else {name: to_lists(getattr(value, name)) for name in fields if name != "token"}
    )


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with asterism.open(tmp_path_factory.mktemp("embedded")) as client:
        yield client


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(storageds=3, graphds=1, folder=tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def graph(client: Client) -> Graph:
    return create_shop(client, "shop")


@pytest.fixture(scope="module")
def remote(cluster: LocalCluster) -> Graph:
    return create_shop(cluster.client(), "shop")


# -- calls -----------------------------------------------------------------------------------------


def test_every_call_takes_names_and_gives_what_ids_give(graph: Graph) -> None:
    by_name = run_calls(graph, lambda names, ntype: names)
    by_id = run_calls(graph, lambda names, ntype: graph.node_ids(names, ntype, missing="none"))
    assert {name for name in by_name if to_lists(by_name[name]) != to_lists(by_id[name])} == set()
    assert by_name["features"]["age"].tolist() == [3, 60, 0, 9]
    assert by_name["found"].tolist() == [True, True]


def test_ids_are_hashes_and_map_back_to_strings(graph: Graph) -> None:
    ids = graph.node_ids(USERS, "user")
    assert ids.tolist() == [hash_string(name, 3) for name in USERS]
    assert graph.node_names(ids, "user").tolist() == USERS
    assert graph.node_names([[ids[0], -1], [ids[1], ids[0]]]).tolist() == [
        [USERS[0], ""],
        [USERS[1], USERS[0]],
    ]
    assert graph.node_ids([[ITEMS[0], ""]]).tolist() == [[hash_string(ITEMS[0], 3), -1]]
    kinds = np.array([0, 1, -1])
    assert graph.node_names(np.array([ids[0], hash_string(ITEMS[1], 3), -1]), kinds).tolist() == [
        USERS[0],
        ITEMS[1],
        "",
    ]
    assert graph.node_ids([USERS[0], ITEMS[1], ""], kinds).tolist() == [
        ids[0],
        hash_string(ITEMS[1], 3),
        -1,
    ]


def test_unknown_string_is_named_in_the_error(graph: Graph) -> None:
    with pytest.raises(NotFound, match=r"names\[1\]='unknown': expected a node of type 'user'"):
        graph.node_ids(["Zoë", "unknown"], "user")
    with pytest.raises(NotFound, match=ITEMS[0].split("?")[0]):
        graph.node_ids([ITEMS[0]], "user")
    assert graph.node_ids(["unknown", "Zoë"], "user", missing="none").tolist() == [
        -1,
        hash_string("Zoë", 3),
    ]
    with pytest.raises(NotFound, match=r"ids\[1\]=5: expected a node of space"):
        graph.node_names([hash_string("Zoë", 3), 5])
    assert graph.sample_neighbors(["unknown"], "buys", 3).nodes.tolist() == [[-1] * 3]


def test_edges_create_the_nodes_they_name(graph: Graph) -> None:
    (new,) = graph.node_ids(["newcomer"], "user")
    assert graph.node_names(
        graph.neighbors([new], "follows", direction="in").nodes, "user"
    ).tolist()
    assert graph.node_features(["newcomer", USERS[1]], ["age", "id"], "user")["id"][0].tolist() == [
        0,
        8,
        14,
    ]


def test_filters_accept_string_ids(graph: Graph) -> None:
    sample = graph.sample_nodes(200, "user", where="id in ('Zoë', 'user-3')", seed=1)
    assert set(graph.node_names(sample.nodes).tolist()) == {"Zoë", "user-3"}
    assert (
        "Zoë"
        not in graph.node_names(
            graph.sample_nodes(500, "user", where="id != 'Zoë'", seed=1).nodes
        ).tolist()
    )
    assert set(
        graph.node_names(
            graph.sample_nodes(50, "user", where="`id` == 'Zoë'", seed=1).nodes
        ).tolist()
    ) == {"Zoë"}
    edges = graph.sample_edges(50, "buys", where=f"dst.id == '{ITEMS[0]}'", seed=1)
    assert set(graph.node_names(edges.dst, "item").tolist()) == {ITEMS[0]}
    with pytest.raises(NotFound):
        graph.sample_nodes(5, "user", where="id == 'unknown'")


def test_scans_return_string_ids_on_request(graph: Graph) -> None:
    prices = {}
    for batch in graph.scan_nodes("item", ["id", "price"]):
        indptr, values = batch.features["id"]
        prices.update(
            zip(
                (bytes(values[a:b]).decode() for a, b in pairwise(indptr)),
                batch.features["price"].tolist(),
                strict=True,
            )
        )
    assert prices == {name: float(i) for i, name in enumerate(ITEMS)}


def test_long_string_ids_are_kept_whole(graph: Graph) -> None:
    names = [f"https://example.org/{'x' * 4074}/{i}" for i in range(3)]
    assert len(names[0]) == 4096
    graph.client.create_space(
        "long",
        {"ids": "string", "nodes": {"page": {}}, "edges": {"page:links:page": {}}, "parts": 2},
    )
    pages = graph.client.graph("long")
    pages.upsert_nodes([*names, "short"], "page")
    pages.upsert_edges([names[0], names[1], "short"], [names[1], names[2], names[0]], "links")
    pages.build()
    near = pages.sample_neighbors([*names[:2], "short"], "links", 1, seed=1)
    assert pages.node_names(near.nodes, "page").reshape(-1).tolist() == [
        names[1],
        names[2],
        names[0],
    ]
    drawn = pages.sample_nodes(3, "page", where=f"id in ('{names[2]}')")
    assert set(pages.node_names(drawn.nodes).tolist()) == {names[2]}
    with pytest.raises(NotFound, match=r"names\[0\]='https.*\.\.\.x+/7' \(4096 char.*\): expec"):
        pages.node_ids([names[0][:-1] + "7"], "page")


def test_invalid_string_ids_are_refused_with_the_value(graph: Graph) -> None:
    for names, message in (
        (["a", ""], r"ids\[1\] = ''"),
        (["x" * 4097], "at most 4096 bytes in UTF-8, found 4097"),
        (["a\0b"], "NUL"),
        ([1, 2], "expected strings, because a node of this space needs a name"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            graph.upsert_nodes(names, "user")
    with pytest.raises(InvalidRequest, match=r"dst\[1\]='lost': .*'item'"):
        graph.upsert_edges(["Zoë", "Zoë"], [ITEMS[0], "lost"], "buys")
    load = graph.client.begin_load("shop")
    with pytest.raises(InvalidRequest, match=r"dst\[1\]='lost': .*'item'"):
        load.write_edges(0, "buys", ["Zoë", "Zoë"], [ITEMS[0], "lost"])
    load.abandon()
    graph.client.create_space("numbers", {"nodes": {"n": {}}}, if_not_exists=True)
    with pytest.raises(
        InvalidRequest,
        match=r"\[0\]='SFO': expected an integer, because ids of this space are integers",
    ):
        graph.client.graph("numbers").upsert_nodes(["SFO"], "n")
    with pytest.raises(InvalidRequest, match="space='numbers': expected a space with string ids"):
        graph.client.graph("numbers").node_names([1])


def test_async_client_accepts_string_ids(remote: Graph, cluster: LocalCluster) -> None:
    async def query() -> tuple[Any, Any]:
        async with aio.connect(cluster.addresses, space="shop") as shop:
            sample = await shop.sample_neighbors(["Zoë"], "buys", 4, seed=3)
            return await shop.node_ids(["Zoë"], "user"), await shop.node_names(sample.nodes, "item")

    ids, names = asyncio.run(query())
    np.testing.assert_array_equal(
        names, remote.node_names(remote.sample_neighbors(ids, "buys", 4, seed=3).nodes, "item")
    )


# -- reproducible and durable ----------------------------------------------------------------------


def test_one_host_and_three_give_the_same_bytes(graph: Graph, remote: Graph) -> None:
    embedded, clustered = (
        run_calls(source, lambda names, ntype: names) for source in (graph, remote)
    )
    assert {
        name for name in embedded if to_lists(embedded[name]) != to_lists(clustered[name])
    } == set()


def test_deleted_nodes_lose_names_until_written_again(client: Client) -> None:
    graph = create_shop(client, "changing")
    graph.delete_nodes(["Zoë", "user-1"], "user")
    graph.delete_edges(*(graph.node_names(ids) for ids in _first_edge(graph)), "buys")
    graph.build()
    assert graph.node_ids(["Zoë", "user-1", "user-2"], "user", missing="none").tolist() == [
        -1,
        -1,
        hash_string("user-2", 3),
    ]
    graph.upsert_nodes(["Zoë"], "user", weights=[1.0])
    graph.upsert_edges(["Zoë"], [ITEMS[0]], "buys")
    graph.build()
    assert graph.node_names(graph.neighbors(["Zoë"], "buys").nodes, "item").tolist() == [ITEMS[0]]


def _first_edge(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    batch = next(graph.scan_edges("buys"))
    return batch.src[:1], batch.dst[:1]


def test_a_restored_backup_knows_every_name(remote: Graph, client: Client, tmp_path: Path) -> None:
    backup.backup(remote.client, "shop", tmp_path / "kept")
    backup.restore(client, tmp_path / "kept", "restored")
    restored = client.graph("restored")
    assert (restored.schema, restored.node_names(restored.node_ids(USERS, "user")).tolist()) == (
        remote.schema,
        USERS,
    )
    restored.upsert_nodes(["later"], "user", weights=[1.0])
    restored.build()
    assert restored.node_names(restored.node_ids(["later", "Zoë"], "user")).tolist() == [
        "later",
        "Zoë",
    ]


# -- two strings with one id -----------------------------------------------------------------------


def create_empty(client: Client, space: str, **fields: Any) -> Graph:
    client.create_space(
        space,
        {
            "ids": "string",
            "parts": 2,
            "nodes": {"n": {}},
            "edges": {"n:to:n": {"missing": "create"}},
            **fields,
        },
    )
    return client.graph(space)


def test_colliding_strings_in_one_write_are_refused(client: Client) -> None:
    assert hash_string(COLLIDING_STRINGS[0]) == hash_string(COLLIDING_STRINGS[1])
    graph = create_empty(client, "alike-at-once")
    with pytest.raises(
        Conflict,
        match=(
            rf"'{COLLIDING_STRINGS[0]}' and '{COLLIDING_STRINGS[1]}' have the same id, "
            rf"{hash_string(COLLIDING_STRINGS[0])}, under the salt 0 .*salt: 1"
        ),
    ):
        graph.upsert_nodes(["one", *COLLIDING_STRINGS], "n")
    with pytest.raises(Conflict, match=COLLIDING_STRINGS[1]):
        graph.upsert_edges([COLLIDING_STRINGS[0]], [COLLIDING_STRINGS[1]], "to")


@pytest.mark.parametrize("how", ["nodes", "edges"])
def test_colliding_strings_in_two_writes_fail_the_build(client: Client, how: str) -> None:
    graph = create_empty(client, f"alike-{how}")
    graph.upsert_nodes([COLLIDING_STRINGS[0], "one"], "n")
    version = graph.build().version
    if how == "nodes":
        graph.upsert_nodes([COLLIDING_STRINGS[1]], "n")
    else:
        graph.upsert_edges(["one"], [COLLIDING_STRINGS[1]], "to")
    with pytest.raises(
        NotReady,
        match=(
            rf"Conflict: node type 'n': the names '{COLLIDING_STRINGS[1]}' and "
            rf"'{COLLIDING_STRINGS[0]}' have the same id"
        ),
    ):
        graph.build()
    assert graph.manifest().version == version, "what was published before stays"
    assert graph.node_ids([COLLIDING_STRINGS[1]], missing="none").tolist() == [-1], (
        "asked for by name it is not the other one"
    )
    assert graph.sample_neighbors([COLLIDING_STRINGS[1], "one"], "to", 1).nodes.tolist() == [
        [-1],
        [-1],
    ]
    graph.delete_nodes([COLLIDING_STRINGS[0]], "n")
    graph.upsert_nodes([COLLIDING_STRINGS[1]], "n")
    graph.build()
    assert graph.node_names(graph.node_ids([COLLIDING_STRINGS[1], "one"])).tolist() == [
        COLLIDING_STRINGS[1],
        "one",
    ]
    assert graph.node_ids([COLLIDING_STRINGS[0]], missing="none").tolist() == [-1]


def test_another_salt_avoids_the_collision(client: Client) -> None:
    graph = create_empty(client, "salted", salt=1)
    graph.upsert_nodes(list(COLLIDING_STRINGS), "n")
    graph.build()
    assert graph.node_names(graph.node_ids(COLLIDING_STRINGS)).tolist() == list(COLLIDING_STRINGS)


# -- statements ------------------------------------------------------------------------------------


def test_statements_take_and_return_string_ids(graph: Graph) -> None:
    result = graph.query(
        'SAMPLE 3 NEIGHBORS FROM "Zoë", "user-3", "unknown" OVER buys YIELD src, dst SEED 7'
    )
    expected = graph.sample_neighbors(["Zoë", "user-3"], "buys", 3, seed=7)
    assert result["dst"].tolist() == graph.node_names(expected.nodes, "item").reshape(-1).tolist()
    assert result["src"].tolist() == ["Zoë"] * 3 + ["user-3"] * 3
    by_parameter = graph.query(
        "SAMPLE 3 NEIGHBORS FROM $starts OVER buys YIELD src, dst SEED 7",
        {"starts": ["Zoë", "user-3"]},
    )
    assert by_parameter.rows() == result.rows()
    assert (
        graph.query('SAMPLE 5 VERTICES ON user WHERE id == "Zoë" YIELD id')["id"].tolist()
        == ["Zoë"] * 5
    )
    assert graph.query('FETCH PROP ON user "user-9" YIELD id, age').rows() == [("user-9", 9)]
    walk = graph.query('WALK 2 STEPS FROM "Zoë" OVER follows THEN buys YIELD path SEED 3')
    assert (
        walk["path"].tolist()
        == graph.node_names(graph.random_walk(["Zoë"], ["follows", "buys"], seed=3).nodes).tolist()
    )
    with pytest.raises(InvalidRequest, match="expected only integers, or only strings"):
        graph.query('SAMPLE 3 NEIGHBORS FROM "Zoë", 7 OVER buys')
