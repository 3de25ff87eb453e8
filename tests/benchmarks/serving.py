"""Times a trainer's calls embedded, over gRPC with several storageds, and of these directly, on one generated graph, side by side.

    python -m tests.benchmarks.serving                                      # R-MAT of 1M nodes and 16M edges, three storageds
    python -m tests.benchmarks.serving --folder /var/tmp/serving            # keep the graph there, and take it from there the next time
    python -m tests.benchmarks.serving --only calls flight --rounds 200
    python -m tests.benchmarks.serving --nodes 20000 --edges 200000 --rounds 20 --seconds 1    # small

Beside milliseconds on the clock stand those of processors, which other work on the machine changes less: of the client, of
graphds and of storageds, a call. It asserts nothing.
"""

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
from asterism_proto import arrays
from asterism_proto.methods import GRAPH
from asterism_proto.v1 import graphd_pb2 as wire

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
    """What is generated."""

    nodes: int
    edges: int
    parts: int
    rows: int
    """Nodes with features."""


def fill(client: asterism.Client, sizes: Sizes) -> Graph:
    """The graph of a space that is there, or one with an R-MAT graph of log-normal weights, and rows of features, loaded and built."""
    if SPACE in [space.name for space in client.spaces()]:
        return client.graph(SPACE)
    client.create_space(SPACE, {**SCHEMA, "parts": sizes.parts})
    load = client.begin_load(SPACE, source="generated")
    index = itertools.count()
    for start in range(0, sizes.nodes, CHUNK):
        load.write_nodes(next(index), "n", np.arange(start, min(start + CHUNK, sizes.nodes)))
    for start in range(0, sizes.rows, CHUNK // 16):
        ids = np.arange(start, min(start + CHUNK // 16, sizes.rows))
        load.write_nodes(next(index), "row", ids, features={"x": np.random.default_rng((2, start)).random((len(ids), WIDTH), np.float32)})
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
    """Whose processor time is told: pids by role."""

    pids: dict[str, list[int]]

    @classmethod
    def of(cls, cluster: LocalCluster | None) -> Processes:
        """This process alone, or with the daemons of a cluster."""
        found = {"client": [os.getpid()]}
        for name, daemon in (cluster.daemons if cluster else {}).items():
            found.setdefault(name.split("-")[0], []).append(daemon.pid)
        return cls(found)

    def used_s(self) -> dict[str, float]:
        """Seconds of processors so far, by role."""
        used = {}
        for role, pids in self.pids.items():
            times = [psutil.Process(pid).cpu_times() for pid in pids]
            used[role] = sum(t.user + t.system for t in times)
        return used


@dataclass(frozen=True)
class Timed:
    """What some calls took."""

    ms: Sequence[float]
    core_ms: dict[str, float]
    """Of processors, a call, by role."""
    seconds: float
    """All of them together, on the clock."""

    def __str__(self) -> str:
        cores = ", ".join(f"{role} {ms:.2f}" for role, ms in self.core_ms.items() if role != "metad")
        return f"{np.median(self.ms):8.2f} ({np.percentile(self.ms, 99):6.2f}) ms   {sum(self.core_ms.values()):7.2f} core ms ({cores})"


def timed(call: Callable[[int], object], rounds: int, processes: Processes, flight: int = 1) -> Timed:
    """Times of ``rounds`` calls, ``flight`` at a time, after a few that do not count."""

    def one(round_: int) -> float:
        begun = time.perf_counter()
        call(round_)
        return 1e3 * (time.perf_counter() - begun)

    with ThreadPoolExecutor(flight) as pool:
        list(pool.map(one, range(5 * flight)))
        before, begun = processes.used_s(), time.perf_counter()
        ms = list(pool.map(one, range(5 * flight, 5 * flight + rounds)))
        seconds, after = time.perf_counter() - begun, processes.used_s()
    return Timed(ms, {role: 1e3 * (after[role] - before[role]) / rounds for role in after}, seconds)


def calls_of(nodes: int) -> dict[str, Call]:
    """What a trainer asks for, each under a seed."""
    seeds = np.random.default_rng(0).integers(0, nodes, (256, BATCH))

    def subgraph(graph: Graph, i: int, **how: Any) -> object:
        return graph.sample_subgraph(seeds[i % 256], FANOUTS, "to", edge_ids=False, seed=i, **how)

    def fanout(graph: Graph, i: int, **how: Any) -> object:
        return graph.sample_fanout(seeds[i % 256], ["to", "to"], FANOUTS, weights=False, seed=i, **how)

    return {
        "subgraph 1024 x [15, 10] uniform": lambda graph, i: subgraph(graph, i, weighted=False),
        "subgraph 1024 x [15, 10] by weight": lambda graph, i: subgraph(graph, i),
        "fanout 1024 x [15, 10] uniform": lambda graph, i: fanout(graph, i, weighted=False),
        "fanout 1024 x [15, 10] by weight": lambda graph, i: fanout(graph, i),
        "fanout 1024 x [15, 10] by weight, distinct": lambda graph, i: fanout(graph, i, replace=False),
        "256 nodes by weight": lambda graph, i: graph.sample_nodes(256, "n", seed=i),
        "100,000 edges by weight": lambda graph, i: graph.sample_edges(100_000, "to", seed=i),
    }


WAYS = {"gRPC": False, "direct": True}
"""How a trainer asks: a graphd, or storageds themselves."""
BATCHES = ("subgraph 1024 x [15, 10] uniform", "subgraph 1024 x [15, 10] by weight")


def show_calls(embedded: Graph, far: Mapping[str, Graph], cluster: LocalCluster, args: argparse.Namespace) -> None:
    """One call at a time, embedded and remote."""
    print("\none call at a time, p50 (p99)")
    for name, call in calls_of(args.nodes).items():
        near = timed(lambda i, call=call: call(embedded, i), args.rounds, Processes.of(None))  # type: ignore[misc]  # of this turn
        print(f"  {name:<44} embedded {near}")
        for way, graph in far.items():
            found = timed(lambda i, call=call, graph=graph: call(graph, i), args.rounds, Processes.of(cluster))  # type: ignore[misc]
            print(f"  {'':<44} {way:<8} {found}   x {np.median(found.ms) / np.median(near.ms):.1f}", flush=True)


def show_flight(far: Mapping[str, Graph], cluster: LocalCluster, args: argparse.Namespace) -> None:
    """One trainer with several requests in flight."""
    print("\none trainer, several requests in flight")
    for name, (way, graph), flight in itertools.product(BATCHES, far.items(), (1, 2, 4, 8)):
        call = calls_of(args.nodes)[name]
        found = timed(lambda i, call=call, graph=graph: call(graph, i), args.rounds * 2, Processes.of(cluster), flight)  # type: ignore[misc]
        print(f"  {name:<44} {way:<8} {flight} in flight  {args.rounds * 2 / found.seconds:7.1f} batches/s  {found}", flush=True)


def show_threads(embedded: Graph, args: argparse.Namespace) -> None:
    """Threads of one process over the embedded graph."""
    print("\nembedded, threads of one process")
    for name in BATCHES:
        call, alone = calls_of(args.nodes)[name], 0.0
        for threads in (1, 2):
            rates = []
            for _ in range(3):
                found = timed(lambda i, call=call: call(embedded, i), args.rounds * threads, Processes.of(None), threads)  # type: ignore[misc]
                rates.append(args.rounds * threads / found.seconds)
            rate = max(rates)
            alone = alone or rate
            print(f"  {name:<44} {threads} threads  {rate:7.1f} batches/s  {rate / alone:.2f} x  {found}", flush=True)


def _trainer(addresses: str, direct: bool, name: str, nodes: int, seconds: float, ready: Any, told: Any, number: int) -> None:
    """A process that trains: calls without a pause."""
    call = calls_of(nodes)[name]
    with asterism.connect(addresses, direct=direct) as client:
        graph = client.graph(SPACE)
        for i in range(5):
            call(graph, i)
        ready.wait()
        times, until, i = [], time.perf_counter() + seconds, 1000 * number
        while (begun := time.perf_counter()) < until:
            call(graph, i)
            times.append(1e3 * (time.perf_counter() - begun))
            i += 1
    told.put(times)


def show_trainers(cluster: LocalCluster, args: argparse.Namespace) -> None:
    """Several trainers, each a process with one request at a time."""
    print("\ntrainers at a time, each a process of its own")
    context = multiprocessing.get_context("spawn")
    for name, (way, direct), trainers in itertools.product([*BATCHES, "256 nodes by weight"], WAYS.items(), (1, 4, 16)):
        ready, told = context.Barrier(trainers + 1), context.Queue()
        processes = [
            context.Process(target=_trainer, args=(cluster.addresses, direct, name, args.nodes, args.seconds, ready, told, number))
            for number in range(trainers)
        ]
        for process in processes:
            process.start()
        watched = Processes({role: pids for role, pids in Processes.of(cluster).pids.items() if role != "client"})
        ready.wait()
        before = watched.used_s()
        ms = [value for _ in processes for value in told.get()]
        after = watched.used_s()
        for process in processes:
            process.join()
        found = Timed(ms, {role: 1e3 * (after[role] - before[role]) / len(ms) for role in after}, args.seconds)
        print(f"  {name:<44} {way:<8} {trainers:>2} trainers  {len(ms) / args.seconds:7.1f} calls/s  {found}", flush=True)


def show_decode(remote: Graph, args: argparse.Namespace) -> None:
    """What a client needs to make records of a reply's bytes."""
    print("\ndecoding in the client, bytes of a reply to a record")
    session: Any = remote._session
    transport, kept = session.transport, {}

    def keep(method: Any, data: bytes, deadline: float) -> bytes:
        kept["data"] = send(method, data, deadline)
        return kept["data"]

    send, transport._send = transport._send, keep
    seeds = np.random.default_rng(0).integers(0, args.nodes, BATCH)
    for name, method, ask, ids in (
        ("100,000 nodes", "sample_nodes", lambda: remote.sample_nodes(100_000, "n", seed=1), 100_000),
        ("1024 x 10 neighbors", "sample_neighbors", lambda: remote.sample_neighbors(seeds, "to", 10, weights=False, seed=1), 10 * BATCH),
        (
            "10,000 x 10 neighbors",
            "sample_neighbors",
            lambda: remote.sample_neighbors(np.resize(seeds, 10_000), "to", 10, weights=False, seed=1),
            100_000,
        ),
    ):
        ask()
        data = kept["data"]
        transport._send = lambda method, sent, deadline, data=data: data
        whole = timed(lambda i, ask=ask: ask(), args.rounds, Processes.of(None))  # type: ignore[misc]  # of this turn
        transport._send = keep
        bare = timed(lambda i, data=data, method=method: GRAPH[method].unpack_reply(data), args.rounds, Processes.of(None))  # type: ignore[misc]
        arrays_ns, record_ns = np.median(bare.ms) * 1e6 / ids, np.median(whole.ms) * 1e6 / ids
        print(f"  {name:<44} {arrays_ns:6.2f} ns an id to arrays, {record_ns:6.2f} ns with the call's own request and record", flush=True)
    transport._send = send
    assert isinstance(arrays.decode(kept["data"], wire.SampleNeighborsReply).head.version, int)


@contextlib.contextmanager
def graphs(sizes: Sizes, folder: Path, storageds: int, *, embedded: bool = True) -> Iterator[tuple[Graph | None, Graph, LocalCluster]]:
    """The same graph embedded and in a cluster, both in a folder where they may lie already."""
    with contextlib.ExitStack() as stack:
        near = None
        if embedded:
            near = fill(stack.enter_context(asterism.open(folder / "embedded")), sizes)
        (folder / "cluster").mkdir(parents=True, exist_ok=True)
        cluster = stack.enter_context(LocalCluster(storageds, folder=folder / "cluster", fast=False))
        yield near, fill(stack.enter_context(cluster.client(timeout_s=600)), sizes), cluster


def arguments(description: str | None, parts: Sequence[str]) -> argparse.Namespace:
    """What this program and those like it are told."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=16_000_000)
    parser.add_argument("--rows", type=int, default=1_000_000, help="nodes with 128 float32")
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=100, help="calls of a kind")
    parser.add_argument("--seconds", type=float, default=5.0, help="that trainers train")
    parser.add_argument("--storageds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="keep the graph here, and take it from here where it is already")
    parser.add_argument("--only", nargs="*", default=list(parts), choices=parts, metavar="PART", help=f"of {', '.join(parts)}")
    return parser.parse_args()


def main() -> None:
    """Print the tables."""
    args = arguments(__doc__, ("calls", "flight", "threads", "trainers", "decode"))
    sizes = Sizes(args.nodes, args.edges, args.parts, args.rows)
    with tempfile.TemporaryDirectory() as temporary, graphs(sizes, args.folder or Path(temporary), args.storageds) as (embedded, remote, cluster):
        assert embedded is not None
        print(f"{args.nodes:,} nodes, {args.edges:,} edges, {args.parts} parts, {args.storageds} storageds; load {os.getloadavg()[0]:.1f}")
        far = {way: remote if not direct else cluster.client(direct=True).graph(SPACE) for way, direct in WAYS.items()}
        if "calls" in args.only:
            show_calls(embedded, far, cluster, args)
        if "flight" in args.only:
            show_flight(far, cluster, args)
        if "threads" in args.only:
            show_threads(embedded, args)
        if "trainers" in args.only:
            show_trainers(cluster, args)
        if "decode" in args.only:
            show_decode(remote, args)


if __name__ == "__main__":
    main()
