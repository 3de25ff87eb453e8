"""A replay token repeats a sampling call and returns the same record, or gives a reason.

A repeated call reads the same content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.kit import bodies, cases
from tests.kit.cluster import LocalCluster

import asterism
from asterism import Graph
from asterism.calls.replay_tokens import decode_token, encode_token
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.operators.call_seeds import KEY_VERSION

USERS = np.array([5, 1, 5, -1, 299, 10**9])
MIXED = np.array([5, 1, 39, -1])
TYPES = np.array([0, 0, 1, -1])
PAIRS = np.array([[5, 1], [1, 39], [7, 5]])

SampleCall = Callable[[Graph], Any]
CALLS: dict[str, tuple[SampleCall, tuple[np.ndarray, ...]]] = {
    "nodes": (lambda g: g.sample_nodes(50, ["item"], replace=True), ()),
    "distinct nodes with probabilities": (
        lambda g: g.sample_nodes(20, weighted=False, replace=False, probabilities=True),
        (),
    ),
    "edges": (lambda g: g.sample_edges(40, probabilities=True), ()),
    "neighbors": (
        lambda g: g.sample_neighbors(
            USERS, ["buys", "follows"], 4, edge_ids=True, probabilities=True
        ),
        (USERS,),
    ),
    "neighbors of mixed types": (
        lambda g: g.sample_neighbors(MIXED, "buys", 3, ntype=TYPES, direction="in", weights=False),
        (MIXED, TYPES),
    ),
    "fanout": (
        lambda g: g.sample_fanout(USERS, ["follows", ["buys"]], [3, 2], replace=False),
        (USERS,),
    ),
    "fanout with features": (
        lambda g: g.sample_fanout(
            USERS, ["follows", "buys"], [3, 2], node_features=["age", "tags"]
        ),
        (USERS,),
    ),
    "walk": (lambda g: g.random_walk(USERS, ["follows"], 6, restart=0.25, edge_ids=True), (USERS,)),
    "walks over different neighbors": (
        lambda g: g.random_walk(USERS, ["follows"], 3, walks=4, first_step="distinct"),
        (USERS,),
    ),
    "visits": (lambda g: g.sample_pinsage(USERS, ["follows"], 4, walks=9), (USERS,)),
    "subgraph": (
        lambda g: g.sample_subgraph(USERS, [3, 2], ["follows", "buys"], ntype="user", weights=True),
        (USERS,),
    ),
    "LABOR": (
        lambda g: g.sample_labor(USERS, [3, 2], ["follows", "buys"], importance=1, ntype="user"),
        (USERS,),
    ),
    "layers by budgets": (
        lambda g: g.sample_hgt(USERS, {"item": [4, 3], "user": [5, 0]}, ntype="user"),
        (USERS,),
    ),
    "disjoint subgraph, without edge ids": (
        lambda g: g.sample_subgraph(MIXED[:2], [2], "buys", disjoint=True, edge_ids=False),
        (MIXED[:2],),
    ),
    "ego subgraphs": (
        lambda g: g.sample_ego_subgraphs(
            USERS, [3, 2], ["follows", "buys"], ntype="user", weights=True
        ),
        (USERS,),
    ),
    "nodes like others": (
        lambda g: g.sample_nodes_like(MIXED, 3, ntype=TYPES, unknown="none", probabilities=True),
        (MIXED, TYPES),
    ),
    "negatives": (lambda g: g.sample_negatives(USERS, 4, "item", weighted=False), (USERS,)),
    "negatives but positives": (lambda g: g.sample_negatives(PAIRS, 4, "item"), (PAIRS,)),
    "negatives but what edges lead to": (
        lambda g: g.sample_negatives(PAIRS, 4, "item", exclude_edges="buys"),
        (PAIRS,),
    ),
    "negatives of a batch": (lambda g: g.sample_negatives(PAIRS, 9, "item", shared=True), (PAIRS,)),
    "a layer": (
        lambda g: g.sample_layer(USERS, ["buys", "follows"], 7, replace=False, edge_ids=True),
        (USERS,),
    ),
    "layers of a batch": (
        lambda g: g.sample_fanout_layerwise(PAIRS, ["follows", "buys"], [3, 2], measure="sqrt"),
        (PAIRS,),
    ),
    "neighbors of no nodes": (
        lambda g: g.sample_neighbors([], "follows", 2),
        (np.zeros(0, np.int64),),
    ),
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with asterism.open(tmp_path_factory.mktemp("replay")) as client:
        bodies.shop(client, "shop")
        yield client.graph("shop")


@pytest.mark.parametrize("name", CALLS)
def test_a_token_gives_the_same_record_to_the_last_bit(shop: Graph, name: str) -> None:
    call, nodes = CALLS[name]
    first = call(shop)
    for replayed in (
        shop.replay(first.token, *nodes),
        shop.replay(first.token, *(array.tolist() for array in nodes)),
    ):
        assert type(replayed) is type(first)
        assert cases.digest(replayed) == cases.digest(first)
        assert (replayed.seed, replayed.version, replayed.token) == (
            first.seed,
            first.version,
            first.token,
        )


def test_token_is_bound_to_its_version(tmp_path_factory: pytest.TempPathFactory) -> None:
    with asterism.open(tmp_path_factory.mktemp("versions")) as client:
        bodies.shop(client, "shop")
        graph = client.graph("shop")
        first = graph.sample_nodes(30, "item")
        graph.upsert_nodes(np.arange(1000, 1100), "item", weights=np.full(100, 50.0))
        assert graph.build().version == 2
        assert cases.digest(graph.replay(first.token)) == cases.digest(first)
        assert graph.replay(first.token).version == 1
        client.drop_space("shop")
        bodies.shop(client, "shop")
        assert graph.sample_nodes(1).version == 1
        with pytest.raises(asterism.NotFound, match="the version that the token belongs to"):
            graph.replay(first.token)


def test_cluster_replays_token_of_another_client() -> None:
    with LocalCluster(3, graphds=2) as cluster:
        with cluster.client() as client:
            bodies.shop(client, "shop")
            samples = {name: call(client.graph("shop")) for name, (call, _) in CALLS.items()}
        with cluster.client() as client:
            for name, sample in samples.items():
                assert cases.digest(
                    client.graph("shop").replay(sample.token, *CALLS[name][1])
                ) == cases.digest(sample)


def test_replay_with_other_nodes_is_refused(shop: Graph) -> None:
    token = CALLS["neighbors"][0](shop).token
    with pytest.raises(asterism.InvalidRequest, match="nodes of length 0: expected the 6 nodes"):
        shop.replay(token)
    with pytest.raises(asterism.InvalidRequest, match="nodes of length 5: expected"):
        shop.replay(token, USERS[:5])
    for others in (USERS[::-1], USERS + (USERS == 1)):
        with pytest.raises(asterism.InvalidRequest, match="expected those of the call"):
            shop.replay(token, others)
    with pytest.raises(asterism.InvalidRequest, match="expected those of the call"):
        shop.replay(token, USERS, np.zeros(6, np.int64))
    with pytest.raises(asterism.InvalidRequest, match="expected those of the call"):
        shop.replay(CALLS["negatives but positives"][0](shop).token, PAIRS[::-1])
    with pytest.raises(asterism.InvalidRequest, match="nodes of length 1: expected the 0 nodes"):
        shop.replay(CALLS["nodes"][0](shop).token, [1])


@pytest.mark.parametrize(("key_version", "shown"), [(0, 1), (KEY_VERSION + 1, KEY_VERSION + 1)])
def test_tokens_of_other_keys_are_refused_by_name(
    shop: Graph, key_version: int, shown: int
) -> None:
    sample, explained = shop.sample_nodes(30, "item"), shop.explain.sample_nodes(30, "item")
    for token in (sample.token, explained.token):
        replay, _ = decode_token(token)
        assert replay.key_version == KEY_VERSION
        replay.key_version = key_version
        with pytest.raises(
            asterism.InvalidRequest,
            match=f"keys of version {shown}: expected version {KEY_VERSION}.*make the call again",
        ):
            shop.replay(encode_token(replay))


def test_invalid_tokens_are_refused(shop: Graph) -> None:
    token = CALLS["nodes"][0](shop).token
    for broken in (
        "",
        "expected the token of a sample",
        "é",
        token[:-10],
        token[:-1],
        token[:7],
        "A" * 40,
        "AAAA",
        token[:30] + "!" + token[31:],
        "B" + token[1:],
    ):
        with pytest.raises(asterism.InvalidRequest, match="token"):
            shop.replay(broken)
    with pytest.raises(
        asterism.InvalidRequest, match="expected a call that can be repeated, found 'write'"
    ):
        shop.replay(encode_token(graphd_pb.Replay(method="write")))
    with pytest.raises(asterism.InvalidRequest, match="expected the token of a sample"):
        shop.replay(encode_token(graphd_pb.Replay(method="sample_nodes", request=b"\xff")))
    with pytest.raises(asterism.InvalidRequest, match="space 'other'"):
        shop.replay(
            encode_token(
                graphd_pb.Replay(
                    method="sample_nodes",
                    request=graphd_pb.SampleNodesRequest(space="other").SerializeToString(),
                )
            )
        )
