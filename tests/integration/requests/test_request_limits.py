"""Request limits on a cluster: too large requests fail at once, others at their deadline."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.kit import zygote
from tests.kit.cluster import LocalCluster
from tests.kit.usage import (
    MIB,
    busy_s,
    drain_cpu_s,
    peak_bytes,
    reset_peak,
    resident_bytes,
    wait_idle,
)
from tests.kit.waiting import HANG_S

from asterism import Graph
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.tcp_client import TcpTransport
from asterism_proto.errors import Deadline, InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.methods import STORE
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb

NODES, EDGES, HUB = 100_000, 600_000, 20_000
GUARD_S = HANG_S
DEADLINE_S = 0.2
STOP_S = 1.0
"""CPU time that a daemon may use after a deadline: 0.1 s, times 10 for a slow machine.

It does not grow with other load on the machine.
"""
NOISE_MIB = 160
"""Other memory of a process: spare arrays (64 MiB), thread arenas, the message."""
PEAK_MIB = 1024
"""Peak memory of one request in one daemon: docs/serving.md, "Limits of a request"."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(storageds=1, graphds=1) as running:
        yield running


@pytest.fixture(scope="module")
def graph(cluster: LocalCluster) -> Graph:
    client = cluster.client(timeout_s=GUARD_S)
    client.create_space(
        "g",
        {
            "parts": 2,
            "direction": "both",
            "nodes": {
                "n": {"weighted": True, "features": {"x": {"dtype": "float32", "shape": [16]}}}
            },
            "edges": {"n:to:n": {"weighted": True}, "n:by:n": {}},
        },
    )
    rng = np.random.default_rng(5)
    load = client.begin_load("g", source="generated")
    load.write_nodes(
        0,
        "n",
        np.arange(NODES),
        weights=rng.random(NODES),
        features={"x": rng.random((NODES, 16), np.float32)},
    )
    src = np.r_[np.zeros(HUB, np.int64), rng.integers(0, NODES, EDGES)]
    dst = rng.integers(0, NODES, src.size)
    load.write_edges(1, "to", src, dst, weights=rng.random(src.size), ends_known=True)
    load.write_edges(2, "by", dst, src, ends_known=True)
    load.commit()
    graph = client.graph("g")
    graph.build()
    graph.sample_nodes(1, "n")  # so that the storaged has opened the version
    return graph


@pytest.fixture(scope="module")
def version_ref(graph: Graph) -> storaged_pb.VersionRef:
    manifest = graph._session.catalog("get_manifest", metad_pb.ManifestRequest(space="g"))
    return storaged_pb.VersionRef(
        space_id=manifest.space_id, version=manifest.version, digest=manifest.digest
    )


@pytest.fixture(scope="module", params=["grpc", "stream"])
def storaged(
    cluster: LocalCluster, request: pytest.FixtureRequest
) -> Iterator[RemoteTransport | TcpTransport]:
    remote = RemoteTransport(cluster["storaged-0"].address)
    transport = (
        remote if request.param == "grpc" else TcpTransport(cluster["storaged-0"].address, remote)
    )
    yield transport
    transport.close()


# -- too large requests are refused before they take memory or time --------------------------------

OUT = common_pb.OUT
ONE = {"ids": np.zeros(1, np.int64), "positions": np.zeros(1, np.int64)}
NONE = {"ids": np.zeros(0, np.int64), "positions": np.zeros(0, np.int64)}
STEPS = [storaged_pb.Step(edge_types=[0])]
HUGE = 1 << 26
TYPES = np.zeros(1, np.int32)
NO_EXCLUSIONS: dict[str, NDArray[Any]] = {
    "excluded_ids": np.zeros(0, np.int64),
    "excluded_types": np.zeros(0, np.int32),
}

REFUSED: dict[str, Callable[[storaged_pb.VersionRef], tuple[str, Frame]]] = {
    "neighbors of one node": lambda at: (
        "draw_neighbors",
        Frame(
            storaged_pb.DrawNeighborsRequest(
                version_ref=at, edge_types=[0], count=HUGE, direction=OUT
            ),
            ONE,
        ),
    ),
    "walks of no nodes": lambda at: (
        "walk",
        Frame(
            storaged_pb.WalkRequest(
                version_ref=at, steps=STEPS, length=1 << 27, direction=OUT, paths=True
            ),
            NONE,
        ),
    ),
    "draws of nodes": lambda at: (
        "draw_nodes",
        Frame(storaged_pb.DrawNodesRequest(version_ref=at, types=[0], parts=[0, 1], count=HUGE)),
    ),
    "draws of edges": lambda at: (
        "draw_edges",
        Frame(storaged_pb.DrawEdgesRequest(version_ref=at, types=[0], parts=[0, 1], count=HUGE)),
    ),
    "ranks": lambda at: (
        "push_pagerank",
        Frame(
            storaged_pb.PushPagerankRequest(
                version_ref=at, edge_types=[0], direction=OUT, alpha=0.2, epsilon=1e-3, top=HUGE
            ),
            {"ids": ONE["ids"], "types": TYPES},
        ),
    ),
    "a hop with replacement": lambda at: (
        "expand",
        Frame(
            storaged_pb.ExpandRequest(
                version_ref=at,
                fanouts=[storaged_pb.HopFanout(edge_type=0, count=HUGE)],
                replace=True,
                direction=OUT,
            ),
            {"ids.0": ONE["ids"]},
        ),
    ),
}
ACCEPTED: dict[str, Callable[[storaged_pb.VersionRef], tuple[str, Frame]]] = {
    "heaviest neighbors": lambda at: (
        "read_neighbors",
        Frame(
            storaged_pb.ReadNeighborsRequest(
                version_ref=at, edge_types=[0], direction=OUT, top=HUGE
            ),
            {"ids": ONE["ids"]},
        ),
    ),
    "a race of nodes": lambda at: (
        "draw_nodes",
        Frame(
            storaged_pb.DrawNodesRequest(
                version_ref=at, types=[0], parts=[0, 1], count=HUGE, exponential_keys=True
            ),
            NO_EXCLUSIONS,
        ),
    ),
    "a hop without replacement": lambda at: (
        "expand",
        Frame(
            storaged_pb.ExpandRequest(
                version_ref=at,
                fanouts=[storaged_pb.HopFanout(edge_type=0, count=HUGE)],
                direction=OUT,
            ),
            {"ids.0": ONE["ids"]},
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_storaged_refuses_what_is_too_large(
    case: str,
    cluster: LocalCluster,
    version_ref: storaged_pb.VersionRef,
    storaged: RemoteTransport | TcpTransport,
) -> None:
    """Test gRPC and the binary endpoint: neither memory nor CPU time of the storaged grows."""
    name, request = REFUSED[case](version_ref)
    before, started = reset_peak(cluster, "storaged-0"), busy_s(cluster, "storaged-0")
    with pytest.raises(InvalidRequest, match=r"rows per request|rows in one reply"):
        storaged.call(STORE[name], request, GUARD_S)
    assert peak_bytes(cluster, "storaged-0") - before < 32 * MIB
    assert busy_s(cluster, "storaged-0") - started < STOP_S


@pytest.mark.parametrize("case", ACCEPTED)
def test_counts_beyond_what_exists_take_no_memory(
    case: str,
    cluster: LocalCluster,
    version_ref: storaged_pb.VersionRef,
    storaged: RemoteTransport | TcpTransport,
) -> None:
    name, request = ACCEPTED[case](version_ref)
    before = reset_peak(cluster, "storaged-0")
    reply: Any = storaged.call(STORE[name], request, GUARD_S)
    assert 0 < sum(array.nbytes for array in reply.arrays.values()) < 8 * MIB
    assert peak_bytes(cluster, "storaged-0") - before < 64 * MIB


def test_a_graphd_and_its_statements_refuse_what_is_too_large(
    cluster: LocalCluster, graph: Graph
) -> None:
    """Expect the same error from every endpoint."""
    many = np.zeros(HUB, np.int64)
    for call in (
        lambda: graph.sample_neighbors(many, "to", 1 << 20),
        lambda: graph.random_walk(many, ["to"], 1 << 20),
        lambda: graph.explain.sample_neighbors(many, "to", 1 << 20),
    ):
        before = reset_peak(cluster, "graphd-0")
        with pytest.raises(InvalidRequest, match=r"split the request"):
            call()
        assert peak_bytes(cluster, "graphd-0") - before < 32 * MIB


def test_a_client_spends_no_time_on_a_walk_of_no_nodes(graph: Graph) -> None:
    started = time.thread_time()
    with pytest.raises(InvalidRequest, match="length=134217728"):
        graph.random_walk([], ["to"], 1 << 27)
    assert time.thread_time() - started < STOP_S
    assert graph.random_walk([], ["to"], 1 << 20).nodes.shape == (0, (1 << 20) + 1)
    assert time.thread_time() - started < 2 * STOP_S


def test_explain_shows_the_price_and_the_share_of_each_limit(graph: Graph) -> None:
    explanation = graph.explain.sample_neighbors([1, 2, 3], "to", 5)
    assert explanation.price is not None
    assert (explanation.price.formula, explanation.price.rows, explanation.price.exact) == (
        "count=5 x nodes=3",
        15,
        True,
    )
    assert [limit.setting for limit in explanation.price.limits] == [
        "request_rows_limit",
        "request_memory_limit_mib",
        "request_steps_limit",
    ]
    assert explanation.price.limits[0].share == 15 / (1 << 24)
    assert explanation.price.bytes + explanation.price.scratch == explanation.price.limits[1].value


def test_command_reports_refusal_in_one_line(cluster: LocalCluster, graph: Graph) -> None:
    """Expect exit code 2 for a request that cannot succeed; --explain shows its cost."""
    command = ("asterism.cli", "--address", cluster["graphd-0"].address)
    walk = ["sample", "walk", "g", "1", "--metapath", "n2to2n"]
    process = zygote.run(*command, *walk, "--length", 1 << 27)
    assert (process.returncode, len(process.stderr.splitlines())) == (2, 1), process.stderr
    assert "split the request" in process.stderr
    explained = zygote.run(*command, *walk, "--length", 3, "--explain")
    assert "price: walks=1 x (length=3 + 1): 4 rows" in " ".join(explained.stdout.split())
    assert "request_rows_limit 4 of 16,777,216" in " ".join(explained.stdout.split())


def test_statements_have_the_same_limits(cluster: LocalCluster, graph: Graph) -> None:
    client = cluster.client(timeout_s=GUARD_S)
    with pytest.raises(InvalidRequest, match=r"rows per request|do not fit into one reply"):
        client.query("USE g; SAMPLE 67108864 VERTICES ON n YIELD id")
    plan = client.query("USE g; EXPLAIN SAMPLE 5 VERTICES ON n YIELD id").plan
    assert "price      count=5: 5 rows" in plan
    assert "request_memory_limit_mib" in plan


# -- the largest requests stop, and their memory is bounded ----------------------------------------

HUBS = np.zeros(50_000, np.int64)
ALL = np.arange(NODES)

LARGEST: dict[str, Callable[[Graph], Any]] = {
    "nodes": lambda g: g.sample_nodes(5_000_000, "n", seed=1),
    "nodes with probabilities": lambda g: g.sample_nodes(
        3_100_000, "n", probabilities=True, seed=1
    ),
    "edges": lambda g: g.sample_edges(1_900_000, "to", seed=1),
    "different edges": lambda g: g.sample_edges(600_000, "to", replace=False, seed=1),
    "nodes like others": lambda g: g.sample_nodes_like(np.tile(ALL, 5), 9, ntype="n", seed=1),
    "neighbors": lambda g: g.sample_neighbors(HUBS, "to", 100, seed=1),
    "different neighbors": lambda g: g.sample_neighbors(HUBS, "to", 100, replace=False, seed=1),
    "different neighbors of a union": lambda g: g.sample_neighbors(
        HUBS, ["to", "by"], 75, replace=False, seed=1
    ),
    "fanouts": lambda g: g.sample_fanout(HUBS[:9000], ["to", "to"], [20, 20], seed=1),
    "walks": lambda g: g.random_walk(ALL, ["to"], 70, seed=1),
    "walks by p and q": lambda g: g.random_walk(ALL, ["to"], 70, p=0.25, q=4.0, seed=1),
    "one long walk": lambda g: g.random_walk([1], ["to"], 7_000_000, seed=1),
    "visits": lambda g: g.sample_pinsage(ALL, ["to", "by"], 10, walks=30, traversals=2, seed=1),
    "ranks": lambda g: g.personalized_pagerank(ALL[:300], "to", 100, epsilon=1e-6),
    "heaviest": lambda g: g.top_k_neighbors(HUBS[:20_000], "to", 100),
    "degrees": lambda g: g.degrees(np.tile(ALL, 35), ["to", "by"]),
    "node types": lambda g: g.node_types(np.tile(ALL, 70), ntype="n"),
    "features": lambda g: g.node_features(np.tile(ALL, 8), ["x"], ntype="n"),
    "a subgraph of hubs": lambda g: g.sample_subgraph(ALL, [-1, -1], ["to", "by"], seed=1),
    "edges among nodes": lambda g: g.induced_subgraph(ALL, ["to", "by"]),
    "edges between nodes": lambda g: g.adjacency(np.tile(ALL, 3), ALL, "to"),
    "a layer": lambda g: g.sample_layer(ALL, "to", 50_000, seed=1),
    "by variates": lambda g: g.sample_labor(ALL, [20, 20], "to", importance=5, seed=1),
    "a condition": lambda g: g.sample_edges(
        1000, "to", where="weight > 0.5 and weight < 0.7 or src = 7 and dst < 1000", seed=1
    ),
}


@pytest.mark.parametrize("case", LARGEST)
def test_the_largest_requests_stop_soon_after_their_deadline(
    case: str, cluster: LocalCluster, graph: Graph
) -> None:
    """Measure the CPU time of both daemons after the client has given up."""
    with cluster.client(timeout_s=DEADLINE_S) as client:
        graph_with_deadline = client.graph("g")
        graph_with_deadline._session.store_schema("g", graph.schema)
        with contextlib.suppress(Deadline):
            LARGEST[case](graph_with_deadline)
    overruns = drain_cpu_s(cluster, "storaged-0", "graphd-0")
    print(f"\n{case}: processor time after the deadline {overruns} s")
    assert max(overruns.values()) < STOP_S, overruns


@pytest.mark.slow
@pytest.mark.parametrize("case", LARGEST)
def test_the_largest_requests_keep_to_the_bound_of_memory(
    case: str, cluster: LocalCluster, graph: Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("storaged-0", "graphd-0")
    before, started = {name: reset_peak(cluster, name) for name in names}, time.monotonic()
    LARGEST[case](graph)
    elapsed = time.monotonic() - started
    peaks = {name: (peak_bytes(cluster, name) - before[name]) // MIB for name in names}
    wait_idle(cluster, *names)
    retained = {name: (resident_bytes(cluster, name) - before[name]) // MIB for name in names}
    with capsys.disabled():
        print(f"\n{case}: {elapsed:.1f} s, peak {peaks}, kept {retained} MiB")
    assert max(peaks.values()) < PEAK_MIB
    assert max(retained.values()) < NOISE_MIB
