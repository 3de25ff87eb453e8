"""Scans: every row once, in canonical order, from one version, resumable at any point."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.cases_clusters import cases_cluster

import asterism
from asterism import Graph
from asterism.records.samples import Cursor, EdgeBatch, NodeBatch

Scan = Callable[..., Iterator[NodeBatch | EdgeBatch]]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("scans"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def graph(client: asterism.Client) -> Graph:
    return client.graph("cases")


def scans(graph: Graph) -> dict[str, Scan]:
    return {
        "nodes": lambda **how: graph.scan_nodes("person", ["name"], rows=13, **how),
        "edges": lambda **how: graph.scan_edges("writes", ["when", "tags"], rows=101, **how),
    }


@pytest.mark.parametrize("kind", ["nodes", "edges"])
def test_scan_resumes_after_any_batch_byte_for_byte(graph: Graph, kind: str) -> None:
    scan = scans(graph)[kind]
    batches = list(scan())
    assert sum(map(len, batches)) == {"nodes": cases.PEOPLE, "edges": cases.WRITES}[kind]
    digests = [cases.digest(batch) for batch in batches]
    for index, batch in enumerate(batches):
        cursor = json.loads(json.dumps(batch.cursor))
        assert [cases.digest(rest) for rest in scan(after=cursor)] == digests[index + 1 :]
    assert list(scan(after=batches[-1].cursor)) == []


def test_rows_are_in_canonical_order_part_after_part(graph: Graph) -> None:
    nodes = list(graph.scan_nodes("person", rows=13))
    assert [batch.part for batch in nodes] == sorted(batch.part for batch in nodes)
    for _, batches in itertools.groupby(nodes, lambda batch: batch.part):
        ids = np.concatenate([batch.ids for batch in batches])
        assert (np.diff(ids) > 0).all()
    for _, group in itertools.groupby(
        graph.scan_edges("writes", rows=101), lambda batch: batch.part
    ):
        part_batches = list(group)
        rows = list(
            zip(
                *(
                    np.concatenate([getattr(batch, name) for batch in part_batches]).tolist()
                    for name in ("src", "dst", "edge_ids")
                ),
                strict=True,
            )
        )
        assert rows == sorted(rows)


def test_readers_share_the_parts_of_a_scan(graph: Graph) -> None:
    shares = [[3, 1], [0, 2, 4, 5, 6, 7, 8, 9]]
    results = [list(graph.scan_nodes("person", rows=17, parts=parts)) for parts in shares]
    assert list(dict.fromkeys(batch.part for batch in results[0])) == [3, 1]
    ids = np.concatenate([batch.ids for batches in results for batch in batches])
    assert sorted(ids.tolist()) == sorted(cases.person_ids().tolist())
    rest = list(graph.scan_nodes("person", rows=17, parts=shares[0], after=results[0][1].cursor))
    assert [cases.digest(batch) for batch in rest] == [
        cases.digest(batch) for batch in results[0][2:]
    ]


def test_a_cursor_stays_with_its_version(client: asterism.Client) -> None:
    client.create_space("moving", {"parts": 2, "nodes": {"n": {}}})
    graph = client.graph("moving")
    graph.upsert_nodes(np.arange(40), "n")
    graph.build()
    first = next(graph.scan_nodes("n", rows=8))
    graph.upsert_nodes(np.arange(40, 80), "n")
    graph.build()
    rest = list(graph.scan_nodes("n", rows=8, after=first.cursor))
    assert {batch.version for batch in rest} == {1}
    assert sorted(np.concatenate([first.ids, *(batch.ids for batch in rest)]).tolist()) == list(
        range(40)
    )
    with pytest.raises(asterism.InvalidRequest, match="expected 1, the version of the cursor"):
        next(graph.scan_nodes("n", version=2, after=first.cursor))
    with pytest.raises(asterism.InvalidRequest, match=r"parts=\[1\]: expected to include 0"):
        next(graph.scan_nodes("n", parts=[1], after=first.cursor))
    with pytest.raises(asterism.InvalidRequest, match="part 7"):
        next(graph.scan_nodes("n", parts=[7]))
    with pytest.raises(asterism.NotFound, match="version 9"):
        next(graph.scan_nodes("n", after=Cursor(9, 0, 0)))


def test_cluster_scan_matches_and_resumes_foreign_cursor(graph: Graph) -> None:
    with cases_cluster(2, 2) as cluster, cluster.client() as client:
        remote = client.graph("cases")
        for kind in ("nodes", "edges"):
            embedded_batches, cluster_batches = (
                list(scans(graph)[kind]()),
                list(scans(remote)[kind]()),
            )
            assert [cases.digest(batch) for batch in embedded_batches] == [
                cases.digest(batch) for batch in cluster_batches
            ]
            rest = list(scans(remote)[kind](after=embedded_batches[3].cursor))
            assert [cases.digest(batch) for batch in rest] == [
                cases.digest(batch) for batch in embedded_batches[4:]
            ]
