"""Rows of `FETCH` and features with ``strict=True``: exactly the vertices and edges that exist.

The graph has edges with and without features, several between one pair, both directions, and
deleted ones: by their ends, by id, and with a vertex. A scan of the version says which exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.kit.waiting import HANG_S

import asterism
from asterism import Graph, NotFound
from asterism_standalone.app import Standalone

NODES, EDGES = 30, 200
NAMES = np.array([f"node {i}" for i in range(NODES)], object)
STRANGERS = [-1, EDGES, EDGES + 9, 10**12, 2**63 - 2]


def _ends() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    ends = generator.integers(0, NODES, (2, EDGES))
    ends[:, 1], ends[:, 2] = ends[:, 0], ends[::-1, 0]  # edges 0 and 1 are parallel, 2 is reverse
    return ends[0], ends[1]


def _load(client: asterism.Client, space: str, ids: str) -> Graph:
    client.create_space(
        space,
        {
            "parts": 3,
            "ids": ids,
            "direction": "both",
            "nodes": {"n": {"features": {"age": "int64"}}},
            "edges": {"n:to:n": {"features": {"price": "int64", "note": "bytes"}}},
        },
    )
    graph, labels = client.graph(space), NAMES if ids == "string" else np.arange(NODES)
    src, dst = _ends()
    half = EDGES // 2
    graph.upsert_nodes(labels, "n", features={"age": np.arange(NODES)})
    graph.upsert_edges(
        labels[src[:half]],
        labels[dst[:half]],
        "to",
        features={"price": np.arange(half) + 1, "note": [str(i) for i in range(half)]},
    )
    graph.upsert_edges(labels[src[half:]], labels[dst[half:]], "to")
    for edge in (20, half + 20):
        graph.delete_edges(labels[src[[edge]]], labels[dst[[edge]]], "to")
    graph.delete_edges(labels[src[[0]]], labels[dst[[0]]], "to", edge_ids=[0])
    graph.delete_nodes(labels[[NODES - 1]], "n")
    graph.build(timeout_s=HANG_S)
    return graph


class Served:
    """Two graphs of the same edges, one of them with string ids, over gRPC and HTTP."""

    def __init__(self, folder: Path) -> None:
        self.service = Standalone(folder)
        self.service.start()
        endpoints = self.service.open_ports(listen="127.0.0.1:0", http_listen="127.0.0.1:0")
        self.client = asterism.connect(endpoints.address, timeout_s=HANG_S)
        self.http = httpx.Client(base_url=f"http://{endpoints.http_address}", timeout=HANG_S)
        self.graphs = {ids: _load(self.client, ids, ids) for ids in ("global", "string")}

    def close(self) -> None:
        self.http.close()
        self.client.close()
        self.service.stop()

    def rows(self, ids: str, statement: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a statement, which are the same over gRPC and HTTP."""
        found = self.graphs[ids].query(statement, parameters)
        arrays = {name: np.asarray(value).tolist() for name, value in parameters.items()}
        body = {"space": ids, "statement": statement, "parameters": arrays, "rows": 1000}
        reply = self.http.post("/query", json=body)
        assert reply.status_code == 200, reply.text
        rows = found.rows()
        assert [tuple(row) for row in reply.json()["rows"]] == rows
        return rows


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("fetched") / "graphs")
    yield served
    served.close()


@pytest.fixture(scope="module")
def existing(served: Served) -> dict[int, tuple[int, int]]:
    """Return the ends of the edges that a scan of the version finds, by edge id."""
    return {
        edge: (src, dst)
        for batch in served.graphs["global"].scan_edges("to")
        for edge, src, dst in zip(
            batch.edge_ids.tolist(), batch.src.tolist(), batch.dst.tolist(), strict=True
        )
    }


def test_the_graph_has_deleted_edges_of_every_kind(existing: dict[int, tuple[int, int]]) -> None:
    src, dst = _ends()
    gone = set(range(EDGES)) - set(existing)
    with_vertex = set(np.flatnonzero((src == NODES - 1) | (dst == NODES - 1)).tolist())
    assert {0, 20, EDGES // 2 + 20} | with_vertex <= gone
    assert {1, 2} <= set(existing)
    assert min(with_vertex) < EDGES // 2 < max(with_vertex)
    assert len(gone) < EDGES // 4


@pytest.mark.parametrize("ids", ["global", "string"])
def test_edges_by_id_have_a_row_exactly_if_they_exist(
    served: Served, existing: dict[int, tuple[int, int]], ids: str
) -> None:
    asked = [*STRANGERS, *range(EDGES - 1, -1, -1), 1, 0, 1]
    statement = "FETCH PROP ON to $edges YIELD edge_id, price"
    expected = [(edge, edge + 1 if edge < EDGES // 2 else 0) for edge in asked if edge in existing]
    assert served.rows(ids, statement, {"edges": asked}) == expected
    assert served.rows(ids, "FETCH PROP ON to 0, 5000 YIELD price", {}) == []
    count = served.rows(ids, "FETCH PROP ON to 0, 1, 1, 2 YIELD count(*) AS n", {})
    assert count == [(3,)]


@pytest.mark.parametrize("ids", ["global", "string"])
def test_pairs_have_a_row_for_each_edge_that_exists(
    served: Served, existing: dict[int, tuple[int, int]], ids: str
) -> None:
    src, dst = (np.append(column, extra) for column, extra in zip(_ends(), (3, 5), strict=True))
    labels = [*NAMES, "stranger"] if ids == "string" else [*range(NODES), 10**9]
    src, dst = np.append(src, [NODES, 4]), np.append(dst, [4, NODES])
    statement = "FETCH PROP ON to $src -> $dst YIELD src, dst, edge_id, price"
    expected = [
        (labels[u], labels[v], edge, edge + 1 if edge < EDGES // 2 else 0)
        for u, v in zip(src.tolist(), dst.tolist(), strict=True)
        for edge, ends in sorted(existing.items())
        if ends == (u, v)
    ]
    parameters = {"src": [labels[i] for i in src], "dst": [labels[i] for i in dst]}
    assert served.rows(ids, statement, parameters) == expected
    first = (int(src[0]), int(dst[0]))
    assert {edge for edge, ends in existing.items() if ends == first} >= {1}
    assert {edge for edge, ends in existing.items() if ends == first[::-1]} >= {2}


@pytest.mark.parametrize("ids", ["global", "string"])
def test_vertices_have_a_row_exactly_if_they_exist(served: Served, ids: str) -> None:
    labels = [*NAMES, "stranger", "node 3"] if ids == "string" else [*range(NODES), 10**9, -1, 3]
    last = NODES - 1
    kept = [label for i, label in enumerate(labels) if i != last and label not in (10**9, -1)]
    expected = [
        (label, int(str(label).removeprefix("node "))) for label in kept if label != "stranger"
    ]
    assert served.rows(ids, "FETCH PROP ON n $n YIELD id, age", {"n": labels}) == expected


def test_strict_refuses_exactly_what_has_no_row(
    served: Served, existing: dict[int, tuple[int, int]]
) -> None:
    graph = served.graphs["global"]
    asked = np.array([-1, *sorted(existing)])
    strict = graph.edge_features(asked, ["price", "note"], "to", strict=True)
    lax = graph.edge_features(asked, ["price", "note"], "to")
    np.testing.assert_array_equal(strict["price"], lax["price"])
    np.testing.assert_array_equal(strict["note"][1], lax["note"][1])
    for edge in [*STRANGERS[1:], *sorted(set(range(EDGES)) - set(existing))]:
        with pytest.raises(NotFound, match=rf"edge_ids\[2\]={edge}: expected an edge of type"):
            graph.edge_features([-1, 1, edge, 0], "price", "to", strict=True)
    assert graph.edge_features(STRANGERS, "price", "to")["price"].tolist() == [0] * 5
    for label in (NODES - 1, 10**9):
        with pytest.raises(NotFound, match=rf"nodes\[1\]={label}: expected a node of type 'n'"):
            graph.node_features([3, label], "age", "n", strict=True)


def test_many_ids_are_searched_by_ranges(
    served: Served, existing: dict[int, tuple[int, int]]
) -> None:
    asked = np.concatenate([np.arange(3000)[::-1], 10**12 + 5000 * np.arange(900)])
    found = served.graphs["global"].query("FETCH PROP ON to $e YIELD edge_id", {"e": asked})
    assert found["edge_id"].tolist() == sorted(existing, reverse=True)
