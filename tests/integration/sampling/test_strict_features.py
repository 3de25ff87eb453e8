"""Features of unknown edges with ``strict=True``: a typed error instead of zeros."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asterism
import asterism.aio
from asterism import NotFound

EDGES, BARE, DELETED = 40, 5, 41
"""Edges with features; then as many without; the edge without features that is deleted."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(tmp_path_factory.mktemp("strict")) as client:
        yield client


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> asterism.Graph:
    """Return a graph of edges 0 to 44 without edge 41, at version 1."""
    client.create_space(
        "shop",
        {
            "parts": 4,
            "nodes": {"user": {}},
            "edges": {
                "user:pays:user": {"features": {"price": "int64", "note": "bytes"}},
                "user:likes:user": {"weighted": True},
            },
        },
    )
    graph = client.graph("shop")
    ids = np.arange(EDGES)
    graph.upsert_nodes(ids, "user")
    notes = [str(i) for i in ids]
    graph.upsert_edges(ids, ids, "pays", features={"price": ids + 100, "note": notes})
    graph.upsert_edges(ids[:BARE], ids[1 : BARE + 1], "pays")
    graph.delete_edges([DELETED - EDGES], [DELETED - EDGES + 1], "pays")
    graph.upsert_edges(ids, ids, "likes", weights=np.zeros(EDGES))
    graph.build()
    return graph


@pytest.mark.parametrize("piece_bytes", [None, 1, 300], ids=["one reply", "rows", "pieces"])
def test_strict_features_of_known_edges_are_returned(
    client: asterism.Client, graph: asterism.Graph, piece_bytes: int | None
) -> None:
    ids = np.delete(np.arange(-1, EDGES + BARE), DELETED + 1)
    transport: Any = client.session.transport
    default = transport.piece_bytes
    transport.piece_bytes = piece_bytes or default
    try:
        columns = graph.edge_features(ids, ["price", "note"], "pays", strict=True)
        lax = graph.edge_features(ids, ["price", "note"], "pays")
        with pytest.raises(
            NotFound,
            match=r"edge_ids\[3\]=41: expected an edge of type 'user:pays:user' in version 1; "
            "leave such edges out, or pass strict=False to get zeros",
        ):
            graph.edge_features([-1, 3, 44, DELETED, 7, 10**12], "price", "pays", strict=True)
    finally:
        transport.piece_bytes = default
    np.testing.assert_array_equal(
        columns["price"], np.where((ids < 0) | (ids >= EDGES), 0, ids + 100)
    )
    np.testing.assert_array_equal(columns["price"], lax["price"])
    np.testing.assert_array_equal(columns["note"][1], lax["note"][1])


def test_unknown_edges_have_zeros_without_strict(graph: asterism.Graph) -> None:
    prices = graph.edge_features([DELETED, 10**12, 3], "price", "pays")["price"]
    np.testing.assert_array_equal(prices, [0, 0, 103])


def test_strict_takes_no_edges_and_no_names(graph: asterism.Graph) -> None:
    assert len(graph.edge_features([], "price", "pays", strict=True)["price"]) == 0
    assert graph.edge_features([0], [], "pays", strict=True) == {}
    with pytest.raises(NotFound, match=r"edge_ids\[0\]=41"):
        graph.edge_features([DELETED], [], "pays", strict=True)


def test_edges_of_a_type_without_features_are_known(graph: asterism.Graph) -> None:
    assert graph.edge_features([10**6], [], "likes") == {}
    assert graph.edge_features([0, EDGES - 1], [], "likes", strict=True) == {}
    with pytest.raises(NotFound, match=rf"edge_ids\[1\]={EDGES}"):
        graph.edge_features([0, EDGES], [], "likes", strict=True)


def test_many_ids_are_looked_up_in_several_filters(graph: asterism.Graph) -> None:
    ids = np.append(np.tile(np.arange(EDGES), 40), [10**18, *range(10**17, 10**17 + 1500)])
    with pytest.raises(NotFound, match=rf"edge_ids\[{40 * EDGES}\]=1000000000000000000"):
        graph.edge_features(ids, [], "likes", strict=True)


def test_strict_features_are_awaited(tmp_path: Path) -> None:
    async def read() -> None:
        async with asterism.aio.open(tmp_path) as client:
            await client.create_space(
                "s", {"nodes": {"n": {}}, "edges": {"n:e:n": {"features": {"x": "int64"}}}}
            )
            graph = await client.graph("s")
            await graph.upsert_nodes([0], "n")
            await graph.upsert_edges([0], [0], "e", features={"x": [5]})
            await graph.build()
            columns = await graph.edge_features([0], "x", "e", strict=True)
            np.testing.assert_array_equal(columns["x"], [5])
            with pytest.raises(NotFound, match=r"edge_ids\[0\]=1: "):
                await graph.edge_features([1], "x", "e", strict=True)

    asyncio.run(read())
