"""Slips of services that are planted in the daemons of a cluster change what its clients see.

One cluster has all of them, another one none. The other mutants of the catalogue are rejected in
the process of their test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S, wait_until
from tests.mutants.catalogue.services import SMALL_MESSAGES

from asterism import AsterismError, Graph
from asterism.calls import write_encoding
from asterism_proto.v1 import graphd_pb2 as graphd_pb

T = TypeVar("T")

SLIPS = {
    "zero weights": "rows of weight 0 as available",
    "columns": "single writes of other columns in one chunk",
    "edge ids": "edge ids counted by writes",
    "births": "births settled by one host",
    "tombstones": "tombstones of the first message only",
    "lease": "a lease from the answer on",
}
"""Name of the mutant that changes each observation."""
PARTS = 8
SCHEMA: Mapping[str, Any] = {
    "parts": PARTS,
    "nodes": {
        "weighed": {"weighted": True},
        "written": {"features": {"a": "int64", "b": "int64"}},
        "reborn": {},
        "gone": {},
    },
    "edges": {
        "written:to:written": {"features": {"number": "int64"}},
        "written:finds:reborn": {},
    },
}
HUB = 0
REBORN = [8, 11, 12, 15]
"""Nodes of partitions of both hosts, also if these have every other partition or half of them."""
WRITERS, ROUNDS = 8, 100
LEASE_S, DELAY_S = 6.0, 1.5
"""metad's default lease, and the delay of replies to heartbeats."""


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """Return what clients observe without a mutant."""
    with cluster_with(tmp_path_factory.mktemp("right")) as cluster:
        yield observe(cluster, late_replies=2)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """Return what clients observe with all mutants."""
    with cluster_with(tmp_path_factory.mktemp("planted"), *SLIPS.values()) as cluster:
        yield observe(cluster, late_replies=100)


def cluster_with(folder: Path, *names: str) -> LocalCluster:
    in_storaged = [name for name in names if name == SLIPS["lease"]]
    in_graphd = [name for name in names if name not in in_storaged]
    mutants = {"graphd": [SMALL_MESSAGES.name, *in_graphd], "storaged": in_storaged}
    return LocalCluster(2, 1, folder=folder, relay=True, mutants=mutants)


def test_clients_observe_what_is_right_without_mutants(right: dict[str, object]) -> None:
    assert right == {
        "zero weights": "7 different nodes were requested; 5 can be drawn by weight",
        "columns": [],
        "edge ids": [],
        "births": REBORN,
        "tombstones": [],
        "lease": "ends before metad ends it",
    }


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_within_a_daemon_is_observed(
    slip: str, right: dict[str, object], planted: dict[str, object]
) -> None:
    assert planted[slip] != right[slip]


def observe(cluster: LocalCluster, *, late_replies: int) -> dict[str, object]:
    """Return what a client of a cluster observes of each slip."""
    client = cluster.client(timeout_s=HANG_S)
    client.create_space("slips", SCHEMA)
    graph = client.graph("slips")
    graph.upsert_nodes(np.arange(7), "weighed", weights=[1, 2, 3, 4, 5, 0, 0])
    graph.upsert_nodes([HUB], "written")
    delete_nodes(graph)
    revive_nodes(graph)
    columns = write_columns(graph)
    edge_ids = write_edges(graph)
    graph.build(timeout_s=HANG_S)
    return {
        "zero weights": outcome(
            lambda: graph.sample_nodes(7, "weighed", replace=False, seed=1).nodes.tolist()
        ),
        "columns": wrong_columns(graph, columns),
        "edge ids": wrong_edge_ids(graph, edge_ids),
        "births": np.sort(graph.neighbors([HUB], "finds").nodes).tolist(),
        "tombstones": [
            node for batch in graph.scan_nodes("gone", []) for node in batch.ids.tolist()
        ],
        "lease": lease_with_late_replies(cluster, late_replies),
    }


def outcome(call: Callable[[], T]) -> T | str:
    """Return a result, or the message of the error in its place."""
    try:
        return call()
    except AsterismError as error:
        return error.message


def delete_nodes(graph: Graph) -> None:
    """Delete nodes by two, so that not all partitions fit into one message."""
    ids = np.arange(PARTS)
    graph.upsert_nodes(ids, "gone")
    for pair in ids.reshape(-1, 2):
        graph.delete_nodes(pair, "gone")


def revive_nodes(graph: Graph) -> None:
    """Delete nodes, write them again, and write edges to them.

    One at a time, so that all partitions fit into one message.
    """
    graph.upsert_nodes(REBORN, "reborn")
    for node in REBORN:
        graph.delete_nodes([node], "reborn")
    for node in REBORN:
        graph.upsert_nodes([node], "reborn")
    graph.upsert_edges([HUB] * len(REBORN), REBORN, "finds")


def write_concurrently(
    write: Callable[[int], T], is_enough: Callable[[Sequence[T]], bool]
) -> list[T]:
    """Write from several threads, round after round, until enough writes shared a commit."""
    results: list[T] = []
    with ThreadPoolExecutor(WRITERS) as pool:
        for first in range(0, ROUNDS * WRITERS, WRITERS):
            results += pool.map(write, range(first, first + WRITERS))
            if is_enough(results):
                return results
    raise AssertionError("no two writes shared a commit")


def write_columns(graph: Graph) -> list[int | str]:
    """Write one column or another, until both were in a commit; return commits or errors."""

    def write(i: int) -> int | str:
        features = {"ab"[i % 2]: [i + 1]}
        return outcome(lambda: graph.upsert_nodes([1000 + i], "written", features=features))

    def is_enough(commits: Sequence[int | str]) -> bool:
        of_a, of_b = set(commits[::2]), set(commits[1::2])
        return bool(of_a & of_b) or any(isinstance(commit, str) for commit in commits)

    return write_concurrently(write, is_enough)


def wrong_columns(graph: Graph, commits: Sequence[int | str]) -> list[object]:
    """Return the errors of writes, and the nodes that do not have what was written."""
    errors: list[object] = [commit for commit in commits if isinstance(commit, str)]
    rows = np.arange(len(commits))
    columns = graph.node_features(1000 + rows, ["a", "b"], "written")
    expected = {"a": np.where(rows % 2, 0, rows + 1), "b": np.where(rows % 2, rows + 1, 0)}
    wrong = np.logical_or.reduce([columns[name] != expected[name] for name in expected])
    return errors or np.flatnonzero(wrong).tolist()


def write_edges(graph: Graph) -> list[tuple[int, int]]:
    """Write three edges at a time, until writes shared a commit; return commits and first ids."""

    def write(i: int) -> tuple[int, int]:
        rows = write_encoding.edge_upserts(
            graph._session, graph.space, "to", [HUB] * 3, [HUB] * 3, None, {"number": [i] * 3}
        )
        head = graphd_pb.WriteOnceRequest(space=graph.space, kind=rows.kind, type_id=rows.type_id)
        sections = write_encoding.column_sections(rows.columns)
        reply = graph._session.graph("write_once", head, sections)
        written = reply.with_head(graphd_pb.WriteOnceReply).head
        return written.commit, written.first_edge_id

    def is_enough(written: Sequence[tuple[int, int]]) -> bool:
        return len({commit for commit, _ in written}) < len(written)

    return write_concurrently(write, is_enough)


def wrong_edge_ids(graph: Graph, written: Sequence[tuple[int, int]]) -> list[int]:
    """Return the writes with edges of other ids than their reply said."""
    batches = list(graph.scan_edges("to", ["number"]))
    edge_ids = np.concatenate([batch.edge_ids for batch in batches])
    numbers = np.concatenate([np.asarray(batch.features["number"]) for batch in batches])
    return [
        i
        for i, (_, first) in enumerate(written)
        if np.sort(edge_ids[numbers == i]).tolist() != [first, first + 1, first + 2]
    ]


def lease_with_late_replies(cluster: LocalCluster, replies: int) -> str:
    """Return when a storaged's lease ends if the replies to heartbeats are late."""
    relay, uuid = cluster.relay, cluster.get("storaged-0", "/status")["uuid"]
    assert relay is not None
    relay.reply_delay_s = DELAY_S
    # The second reply is sent after the first one has been read.
    wait_until(lambda: relay.delayed[uuid] >= 2, "replies to heartbeats are late")
    last = relay.delayed[uuid] + replies
    while relay.delayed[uuid] < last:
        if cluster.get("storaged-0", "/status")["lease_left_s"] > LEASE_S - DELAY_S:
            return "ends after metad ends it"
    return "ends before metad ends it"
