"""Benchmark of a trainer's calls: embedded, over gRPC, and directly from storageds.

All run on one generated graph.

    python -m tests.benchmarks.serving                                      # R-MAT of 1M nodes and
        16M edges, three storageds
    python -m tests.benchmarks.serving --folder /var/tmp/serving            # keep the graph there,
        and take it from there the next time
    python -m tests.benchmarks.serving --only calls flight --rounds 200
    python -m tests.benchmarks.serving --nodes 20000 --edges 200000 --rounds 20 --seconds 1    #
        small

In addition to milliseconds on the clock it prints processor milliseconds per call, of the client,
of graphds and of storageds; other work on the machine affects these less. It asserts nothing."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from tests.kit.cluster import LocalCluster

import asterism
from asterism.formats.rmat import rmat
from asterism.graph import Graph
from asterism_proto import framing
from asterism_proto.methods import GRAPH
from asterism_proto.v1 import graphd_pb2 as graphd_pb

CHUNK = 1 << 20
WIDTH = 128
SPACE = "bench"
SCHEMA = {
    "nodes": {"n": {}, "row": {"features": {"x": {"dtype": "float32", "shape": [WIDTH]}}}},
    "edges": {"n:to:n": {"weighted": True}},
}
FANOUTS = [15, 10]
BATCH = 1024
Call = Callable[[Graph, int], object]


@dataclass(frozen=True)
class Sizes:
    """Sizes of the generated graph."""

    nodes: int
    edges: int
    parts: int
    rows: int
    """Number of nodes with features."""


def fill(client: asterism.Client, sizes: Sizes) -> Graph:
    """Return the graph of an existing space, or create one.

    It has an R-MAT graph of log-normal weights, and rows of features.
    """
    if SPACE in [space.name for space in client.spaces()]:
        return client.graph(SPACE)
    client.create_space(SPACE, {**SCHEMA, "parts": sizes.parts})
    load = client.begin_load(SPACE, source="generated")
    index = itertools.count()
    for start in range(0, sizes.nodes, CHUNK):
        load.write_nodes(next(index), "n", np.arange(start, min(start + CHUNK, sizes.nodes)))
    for start in range(0, sizes.rows, CHUNK // 16):
        ids = np.arange(start, min(start + CHUNK // 16, sizes.rows))
        load.write_nodes(
            next(index),
            "row",
            ids,
            features={"x": np.random.default_rng((2, start)).random((len(ids), WIDTH), np.float32)},
        )
    for start in range(0, sizes.edges, CHUNK):
        count = min(CHUNK, sizes.edges - start)
        src, dst = rmat(1, 0, start, count, sources=sizes.nodes, targets=sizes.nodes)
        weights = np.random.default_rng((1, start)).lognormal(size=count).astype(np.float32)
        load.write_edges(next(index), "to", src, dst, weights=weights, ends_known=True)
    load.commit()
    graph = client.graph(SPACE)
    graph.build()
    return graph


@dataclass(frozen=True)
class Processes:
    """Processes with measured processor time: pids by role."""

    pids: dict[str, list[int]]

    @classmethod
    def of(cls, cluster: LocalCluster | None) -> Processes:
        """Return this process, and the daemons of a cluster if there is one."""
        pids_by_role = {"client": [os.getpid()]}
        for name, daemon in (cluster.daemons if cluster else {}).items():
            pids_by_role.setdefault(name.split("-")[0], []).append(daemon.pid)
        return cls(pids_by_role)

    def used_s(self) -> dict[str, float]:
        """Return the processor seconds so far, by role."""
        used = {}
        for role, pids in self.pids.items():
            times = [psutil.Process(pid).cpu_times() for pid in pids]
            used[role] = sum(t.user + t.system for t in times)
        return used


@dataclass(frozen=True)
class CallTimes:
    """Times of some calls."""

    ms: Sequence[float]
    core_ms: dict[str, float]
    """Processor milliseconds per call, by role."""
    seconds: float
    """Total seconds on the clock."""

    def __str__(self) -> str:
        cores = ", ".join(
            f"{role} {ms:.2f}" for role, ms in self.core_ms.items() if role != "metad"
        )
        return (
            f"{np.median(self.ms):8.2f} ({np.percentile(self.ms, 99):6.2f}) ms   "
            f"{sum(self.core_ms.values()):7.2f} core ms ({cores})"
        )


def time_calls(
    call: Callable[[int], object], rounds: int, processes: Processes, flight: int = 1
) -> CallTimes:
    """Return the times of ``rounds`` calls, ``flight`` at a time, after a warm-up."""

    def timed_call(round_: int) -> float:
        started = time.perf_counter()
        call(round_)
        return 1e3 * (time.perf_counter() - started)

    with ThreadPoolExecutor(flight) as pool:
        list(pool.map(timed_call, range(5 * flight)))
        used_before, started = processes.used_s(), time.perf_counter()
        ms = list(pool.map(timed_call, range(5 * flight, 5 * flight + rounds)))
        seconds, used_after = time.perf_counter() - started, processes.used_s()
    return CallTimes(
        ms,
        {role: 1e3 * (used_after[role] - used_before[role]) / rounds for role in used_after},
        seconds,
    )


def trainer_calls(nodes: int) -> dict[str, Call]:
    """Return the calls of a trainer, by name; each takes a seed."""
    seeds = np.random.default_rng(0).integers(0, nodes, (256, BATCH))

    def subgraph(graph: Graph, i: int, **options: Any) -> object:
        return graph.sample_subgraph(
            seeds[i % 256], FANOUTS, "to", edge_ids=False, seed=i, **options
        )

    def fanout(graph: Graph, i: int, **options: Any) -> object:
        return graph.sample_fanout(
            seeds[i % 256], ["to", "to"], FANOUTS, weights=False, seed=i, **options
        )

    return {
        "subgraph 1024 x [15, 10] uniform": lambda graph, i: subgraph(graph, i, weighted=False),
        "subgraph 1024 x [15, 10] by weight": lambda graph, i: subgraph(graph, i),
        "fanout 1024 x [15, 10] uniform": lambda graph, i: fanout(graph, i, weighted=False),
        "fanout 1024 x [15, 10] by weight": lambda graph, i: fanout(graph, i),
        "fanout 1024 x [15, 10] by weight, distinct": lambda graph, i: fanout(
            graph, i, replace=False
        ),
        "256 nodes by weight": lambda graph, i: graph.sample_nodes(256, "n", seed=i),
        "100,000 edges by weight": lambda graph, i: graph.sample_edges(100_000, "to", seed=i),
    }


DIRECT_BY_NAME = {"gRPC": False, "direct": True}
"""Modes of a trainer's client: through a graphd, or direct to storageds."""
BATCHES = ("subgraph 1024 x [15, 10] uniform", "subgraph 1024 x [15, 10] by weight")


def show_calls(
    embedded: Graph,
    remote_graphs: Mapping[str, Graph],
    cluster: LocalCluster,
    args: argparse.Namespace,
) -> None:
    """Report single calls, embedded and remote."""
    print("\none call at a time, p50 (p99)")
    for name, call in trainer_calls(args.nodes).items():
        embedded_times = time_calls(
            lambda i, call=call: call(embedded, i), args.rounds, Processes.of(None)
        )  # type: ignore[misc]  # of this turn
        print(f"  {name:<44} embedded {embedded_times}")
        for access, graph in remote_graphs.items():
            remote_times = time_calls(
                lambda i, call=call, graph=graph: call(graph, i), args.rounds, Processes.of(cluster)
            )  # type: ignore[misc]
            print(
                (
                    f"  {'':<44} {access:<8} {remote_times}   x "
                    f"{np.median(remote_times.ms) / np.median(embedded_times.ms):.1f}"
                ),
                flush=True,
            )


def show_flight(
    remote_graphs: Mapping[str, Graph], cluster: LocalCluster, args: argparse.Namespace
) -> None:
    """Report one trainer with several requests in flight."""
    print("\none trainer, several requests in flight")
    for name, (access, graph), flight in itertools.product(
        BATCHES, remote_graphs.items(), (1, 2, 4, 8)
    ):
        call = trainer_calls(args.nodes)[name]
        times = time_calls(
            lambda i, call=call, graph=graph: call(graph, i),
            args.rounds * 2,
            Processes.of(cluster),
            flight,
        )  # type: ignore[misc]
        print(
            (
                f"  {name:<44} {access:<8} {flight} in flight  "
                f"{args.rounds * 2 / times.seconds:7.1f} batches/s  {times}"
            ),
            flush=True,
        )


def show_threads(embedded: Graph, args: argparse.Namespace) -> None:
    """Report threads of one process over the embedded graph."""
    print("\nembedded, threads of one process")
    for name in BATCHES:
        call, single_rate = trainer_calls(args.nodes)[name], 0.0
        for threads in (1, 2):
            rates = []
            for _ in range(3):
                times = time_calls(
                    lambda i, call=call: call(embedded, i),
                    args.rounds * threads,
                    Processes.of(None),
                    threads,
                )  # type: ignore[misc]
                rates.append(args.rounds * threads / times.seconds)
            rate = max(rates)
            single_rate = single_rate or rate
            print(
                (
                    f"  {name:<44} {threads} threads  {rate:7.1f} batches/s  "
                    f"{rate / single_rate:.2f} x  {times}"
                ),
                flush=True,
            )


def _trainer(
    addresses: str,
    direct: bool,
    name: str,
    nodes: int,
    seconds: float,
    ready: Any,
    results: Any,
    index: int,
) -> None:
    """Run a training process that calls continuously."""
    call = trainer_calls(nodes)[name]
    with asterism.connect(addresses, direct=direct) as client:
        graph = client.graph(SPACE)
        for i in range(5):
            call(graph, i)
        ready.wait()
        times, deadline, i = [], time.perf_counter() + seconds, 1000 * index
        while (started := time.perf_counter()) < deadline:
            call(graph, i)
            times.append(1e3 * (time.perf_counter() - started))
            i += 1
    results.put(times)


def show_trainers(cluster: LocalCluster, args: argparse.Namespace) -> None:
    """Report several trainers, each a process with one request at a time."""
    print("\ntrainers at a time, each a process of its own")
    context = multiprocessing.get_context("spawn")
    for name, (access, direct), trainers in itertools.product(
        [*BATCHES, "256 nodes by weight"], DIRECT_BY_NAME.items(), (1, 4, 16)
    ):
        ready, results = context.Barrier(trainers + 1), context.Queue()
        processes = [
            context.Process(
                target=_trainer,
                args=(
                    cluster.addresses,
                    direct,
                    name,
                    args.nodes,
                    args.seconds,
                    ready,
                    results,
                    index,
                ),
            )
            for index in range(trainers)
        ]
        for process in processes:
            process.start()
        daemons = Processes(
            {role: pids for role, pids in Processes.of(cluster).pids.items() if role != "client"}
        )
        ready.wait()
        used_before = daemons.used_s()
        ms = [value for _ in processes for value in results.get()]
        used_after = daemons.used_s()
        for process in processes:
            process.join()
        times = CallTimes(
            ms,
            {role: 1e3 * (used_after[role] - used_before[role]) / len(ms) for role in used_after},
            args.seconds,
        )
        print(
            (
                f"  {name:<44} {access:<8} {trainers:>2} trainers  {len(ms) / args.seconds:7.1f} "
                f"calls/s  {times}"
            ),
            flush=True,
        )


def show_decode(remote: Graph, args: argparse.Namespace) -> None:
    """Report the time that a client needs to decode a reply."""
    print("\ndecoding in the client, bytes of a reply to a record")
    session: Any = remote._session
    transport, captured = session.transport, {}

    def capture(method: Any, data: bytes, deadline: float) -> bytes:
        captured["data"] = send(method, data, deadline)
        return captured["data"]

    send, transport._send = transport._send, capture
    seeds = np.random.default_rng(0).integers(0, args.nodes, BATCH)
    for name, method, call, ids in (
        (
            "100,000 nodes",
            "sample_nodes",
            lambda: remote.sample_nodes(100_000, "n", seed=1),
            100_000,
        ),
        (
            "1024 x 10 neighbors",
            "sample_neighbors",
            lambda: remote.sample_neighbors(seeds, "to", 10, weights=False, seed=1),
            10 * BATCH,
        ),
        (
            "10,000 x 10 neighbors",
            "sample_neighbors",
            lambda: remote.sample_neighbors(
                np.resize(seeds, 10_000), "to", 10, weights=False, seed=1
            ),
            100_000,
        ),
    ):
        call()
        data = captured["data"]
        transport._send = lambda method, sent, deadline, data=data: data
        # Used in this iteration only.
        record_times = time_calls(lambda i, ask=call: ask(), args.rounds, Processes.of(None))  # type: ignore[misc]
        transport._send = capture
        decode_times = time_calls(
            lambda i, data=data, method=method: GRAPH[method].unpack_reply(data),
            args.rounds,
            Processes.of(None),
        )  # type: ignore[misc]
        arrays_ns, record_ns = (
            np.median(decode_times.ms) * 1e6 / ids,
            np.median(record_times.ms) * 1e6 / ids,
        )
        print(
            (
                f"  {name:<44} {arrays_ns:6.2f} ns an id to arrays, {record_ns:6.2f} ns with the "
                "call's own request and record"
            ),
            flush=True,
        )
    transport._send = send
    assert isinstance(
        framing.decode(captured["data"], graphd_pb.SampleNeighborsReply).head.version, int
    )


@contextlib.contextmanager
def graphs(
    sizes: Sizes, folder: Path, storageds: int, *, embedded: bool = True
) -> Iterator[tuple[Graph | None, Graph, LocalCluster]]:
    """Yield the same graph embedded and in a cluster; the folder may have them already."""
    with contextlib.ExitStack() as stack:
        embedded_graph = None
        if embedded:
            embedded_graph = fill(stack.enter_context(asterism.open(folder / "embedded")), sizes)
        (folder / "cluster").mkdir(parents=True, exist_ok=True)
        cluster = stack.enter_context(
            LocalCluster(storageds, folder=folder / "cluster", fast=False)
        )
        yield (
            embedded_graph,
            fill(stack.enter_context(cluster.client(timeout_s=600)), sizes),
            cluster,
        )


def parse_arguments(description: str | None, parts: Sequence[str]) -> argparse.Namespace:
    """Return the arguments of this program and similar ones."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=16_000_000)
    parser.add_argument("--rows", type=int, default=1_000_000, help="nodes with 128 float32")
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=100, help="calls of a kind")
    parser.add_argument("--seconds", type=float, default=5.0, help="that trainers train")
    parser.add_argument("--storageds", type=int, default=3)
    parser.add_argument(
        "--folder", type=Path, help="keep the graph here, and take it from here where it is already"
    )
    parser.add_argument(
        "--only",
        nargs="*",
        default=list(parts),
        choices=parts,
        metavar="PART",
        help=f"of {', '.join(parts)}",
    )
    return parser.parse_args()


def main() -> None:
    """Print the tables."""
    args = parse_arguments(__doc__, ("calls", "flight", "threads", "trainers", "decode"))
    sizes = Sizes(args.nodes, args.edges, args.parts, args.rows)
    with (
        tempfile.TemporaryDirectory() as temporary,
        graphs(sizes, args.folder or Path(temporary), args.storageds) as (
            embedded,
            remote,
            cluster,
        ),
    ):
        assert embedded is not None
        print(
            f"{args.nodes:,} nodes, {args.edges:,} edges, {args.parts} parts, "
            f"{args.storageds} storageds; load {os.getloadavg()[0]:.1f}"
        )
        remote_graphs = {
            access: remote if not direct else cluster.client(direct=True).graph(SPACE)
            for access, direct in DIRECT_BY_NAME.items()
        }
        if "calls" in args.only:
            show_calls(embedded, remote_graphs, cluster, args)
        if "flight" in args.only:
            show_flight(remote_graphs, cluster, args)
        if "threads" in args.only:
            show_threads(embedded, args)
        if "trainers" in args.only:
            show_trainers(cluster, args)
        if "decode" in args.only:
            show_decode(remote, args)


if __name__ == "__main__":
    main()
