"""Benchmark of the growth of each operator's cost with request and graph sizes.

Sizes are draws, hops, degree, graph, partitions and storageds.

python -m tests.benchmarks.costs                                        embedded, up to a million
    draws, nodes and neighbors of a node
python -m tests.benchmarks.costs --full                                 ten times that
python -m tests.benchmarks.costs --only degree --hub 10000000           a node with up to ten
    million neighbors
python -m tests.benchmarks.costs --only storageds --nodes 100000        over gRPC, of 1, 2, 3 and 5
    storageds, with the bytes between daemons
python -m tests.benchmarks.costs --only cores                           one storaged with a fifth of
    a core, and two (needs control groups)
python -m tests.benchmarks.costs --storageds                            all but the last

The last column is the growth of the cost relative to the growth of the size: 1 is linear, less is
better, and a row above 1.15 is marked."""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from tests.kit.cluster import LocalCluster
from tests.kit.control_group import core_group

import asterism
from asterism.formats.rmat import rmat
from asterism.graph import Graph

SCHEMA: dict[str, Any] = {
    "nodes": {"n": {"weighted": True, "features": {"x": {"dtype": "float32", "shape": [8]}}}},
    "edges": {"n:to:n": {"weighted": True}},
    "direction": "out",
}
CHUNK = 1 << 20
MARK_ABOVE = 1.15
CORE_SHARE, IN_FLIGHT, ROUND_S = 0.2, 8, 2.0
"""Share of a core for each storaged, concurrent calls, and seconds of a turn.

They apply to the comparison of one and two storageds.
"""
Row = tuple[int, float, float]
"""A measurement: (size, seconds, bytes between daemons)."""


def fill(
    client: asterism.Client, name: str, *, nodes: int, edges: int, parts: int, hub: int = 0
) -> Graph:
    """Create a weighted space of an R-MAT graph, or of one node with ``hub`` neighbors."""
    client.create_space(name, {**SCHEMA, "parts": parts})
    load = client.begin_load(name, source="generated")
    chunk = 0
    for start in range(0, nodes, CHUNK):
        ids = np.arange(start, min(start + CHUNK, nodes))
        rng = np.random.default_rng((1, start))
        load.write_nodes(
            chunk,
            "n",
            ids,
            weights=rng.random(ids.size),
            features={"x": rng.random((ids.size, 8), np.float32)},
        )
        chunk += 1
    for start in range(0, max(edges, hub), CHUNK):
        count = min(CHUNK, max(edges, hub) - start)
        if hub:
            src, dst = np.zeros(count, np.int64), np.arange(start, start + count) % nodes
        else:
            src, dst = rmat(1, 0, start, count, sources=nodes, targets=nodes)
        load.write_edges(
            chunk,
            "to",
            src,
            dst,
            weights=np.random.default_rng((2, start)).lognormal(size=count),
            ends_known=True,
        )
        chunk += 1
    load.commit()
    graph = client.graph(name)
    graph.build(timeout_s=3600)
    return graph


def best_s(call: Callable[[int], object], repeats: int = 5) -> float:
    """Return the seconds of the fastest of some calls, after a warm-up call."""
    call(0)
    times = []
    for i in range(repeats):
        started = time.perf_counter()
        call(i + 1)
        times.append(time.perf_counter() - started)
    return min(times)


def report(label: str, measure: str, rows: Sequence[Row]) -> None:
    """Print the table of one operator."""
    print(f"\n{label}, by {measure}")
    for i, (n, seconds, byte_count) in enumerate(rows):
        growth = ""
        if i:
            previous_n, previous_seconds, previous_bytes = rows[i - 1]
            factor = n / previous_n
            ratios = [seconds / previous_seconds / factor] + (
                [byte_count / previous_bytes / factor] if byte_count and previous_bytes else []
            )
            growth = "  ".join(
                f"{ratio:5.2f}{' !' if ratio > MARK_ABOVE else ''}" for ratio in ratios
            )
        bytes_column = f"{byte_count:14,.0f} bytes" if byte_count else ""
        print(
            f"  {n:>12,}  {seconds * 1e3:10.3f} ms  {seconds / max(n, 1) * 1e9:10.1f} ns "
            f"each{bytes_column}  {growth}"
        )


def operators(graph: Graph, nodes: int) -> dict[str, Callable[[int, int], object]]:
    """Return the operators by name; each takes ``n`` items and a seed."""
    node_ids = np.random.default_rng(3).integers(0, nodes, 1 << 22)
    return {
        "sample_nodes by weight": lambda n, seed: graph.sample_nodes(n, "n", seed=seed),
        "sample_nodes without replacement": lambda n, seed: graph.sample_nodes(
            min(n, nodes // 4), "n", replace=False, seed=seed
        ),
        "sample_edges by weight": lambda n, seed: graph.sample_edges(n, "to", seed=seed),
        "sample_neighbors x 10": lambda n, seed: graph.sample_neighbors(
            node_ids[: n // 10], "to", 10, seed=seed
        ),
        "sample_neighbors x 10 without replacement": lambda n, seed: graph.sample_neighbors(
            node_ids[: n // 10], "to", 10, replace=False, seed=seed
        ),
        "random_walk of 10 steps": lambda n, seed: graph.random_walk(
            node_ids[: n // 10], ["to"], 10, seed=seed
        ),
        "random_walk of 10 steps, p = 0.5, q = 2": lambda n, seed: graph.random_walk(
            node_ids[: n // 10], ["to"], 10, p=0.5, q=2.0, seed=seed
        ),
        "node_features, 8 float32": lambda n, seed: graph.node_features(node_ids[:n], ["x"]),
        "top_k_neighbors, 10": lambda n, seed: graph.top_k_neighbors(node_ids[: n // 10], "to", 10),
    }


def report_by_draws(
    graph: Graph, nodes: int, max_size: int, bytes_so_far: Callable[[], float] = lambda: 0.0
) -> dict[str, Row]:
    """Report each operator by the number of draws; return its last row."""
    last_rows: dict[str, Row] = {}
    sizes = [n for n in (1000, 10_000, 100_000, 1_000_000, 4_000_000) if n <= max_size]
    for name, call in operators(graph, nodes).items():
        rows: list[Row] = []
        for n in sizes:
            bytes_before = bytes_so_far()
            # Both are used in this iteration only.
            seconds = best_s(lambda seed, n=n, call=call: call(n, seed))  # type: ignore[misc]
            rows.append((n, seconds, (bytes_so_far() - bytes_before) / 6))
        report(name, "draws or rows", rows)
        last_rows[name] = rows[-1]
    return last_rows


def report_by_hops(graph: Graph, nodes: int) -> None:
    """Report a subgraph by the number of its edges."""
    seeds = np.random.default_rng(4).integers(0, nodes, 256)
    rows: list[Row] = []
    for hops in (1, 2, 3, 4):
        edges = len(
            graph.sample_subgraph(seeds, [8] * hops, "to", expand="every", seed=1).row["n:to:n"]
        )
        rows.append(
            (
                edges,
                best_s(
                    lambda seed, hops=hops: graph.sample_subgraph(
                        seeds, [8] * hops, "to", expand="every", seed=seed
                    )
                ),
                0.0,
            )
        )  # type: ignore[misc]
    report("sample_subgraph of 256 x [8] * hops", "edges, of 1 to 4 hops", rows)


def report_by_degree(client: asterism.Client, max_degree: int) -> None:
    """Report draws at one node by its degree: their cost must stay constant."""
    rows_by_name: dict[str, list[Row]] = {}
    zeros = np.zeros(1000, np.int64)
    for degree in [n for n in (1000, 10_000, 100_000, 1_000_000, 10_000_000) if n <= max_degree]:
        graph = fill(client, f"hub{degree}", nodes=1000, edges=0, parts=1, hub=degree)
        for name, options in (
            ("by weight", {}),
            ("uniformly", {"weighted": False}),
            ("by weight without replacement", {"replace": False}),
            ("uniformly without replacement", {"weighted": False, "replace": False}),
        ):
            seconds = best_s(
                lambda seed, given=options, graph=graph: graph.sample_neighbors(
                    zeros, "to", 10, seed=seed, **given
                )
            )  # type: ignore[misc]
            rows_by_name.setdefault(name, []).append((degree, seconds, 0.0))
    for name, rows in rows_by_name.items():
        report(f"sample_neighbors, 1000 x 10 of one node {name}", "its degree", rows)


def report_by_graph(client: asterism.Client, max_nodes: int) -> None:
    """Report a hundred thousand draws by the size of the graph, in 8 partitions."""
    rows_by_name: dict[str, list[Row]] = {}
    for nodes in [n for n in (10_000, 100_000, 1_000_000, 10_000_000) if n <= max_nodes]:
        graph = fill(client, f"graph{nodes}", nodes=nodes, edges=8 * nodes, parts=8)
        for name, call in operators(graph, nodes).items():
            rows_by_name.setdefault(name, []).append(
                (nodes, best_s(lambda seed, call=call: call(100_000, seed)), 0.0)
            )  # type: ignore[misc]
    for name, rows in rows_by_name.items():
        report(f"{name}, 100,000", "nodes in the graph (8 edges each)", rows)


def report_by_parts(client: asterism.Client) -> None:
    """Report small and large calls by the number of partitions in one process."""
    rows_by_name: dict[str, list[Row]] = {}
    for parts in (1, 2, 8, 32, 128):
        graph = fill(client, f"parts{parts}", nodes=100_000, edges=800_000, parts=parts)
        for name, call in operators(graph, 100_000).items():
            for n in (1000, 100_000):
                rows_by_name.setdefault(f"{name}, {n:,}", []).append(
                    (parts, best_s(lambda seed, call=call, n=n: call(n, seed)), 0.0)
                )  # type: ignore[misc]
    for name, rows in rows_by_name.items():
        report(name, "parts", rows)


def report_by_storageds(nodes: int) -> None:
    """Report each operator over gRPC on clusters of several sizes.

    Then report the effect of more storageds on the largest calls.
    """
    largest: dict[int, dict[str, Row]] = {}
    for storageds in (1, 2, 3, 5):
        with (
            LocalCluster(storageds, 1, fast=False) as cluster,
            cluster.client(timeout_s=600) as client,
        ):

            def bytes_so_far(cluster: LocalCluster = cluster) -> float:
                with urllib.request.urlopen(
                    f"http://{cluster['graphd-0'].http_address}/metrics", timeout=10
                ) as reply:
                    lines = reply.read().decode().splitlines()
                return sum(
                    float(line.rsplit(" ", 1)[1])
                    for line in lines
                    if line.startswith("asterism_peer_bytes_total")
                )

            print(
                f"\n==== {storageds} storageds over gRPC; bytes are those between graphd and "
                "storageds"
            )
            graph = fill(client, "graph", nodes=nodes, edges=8 * nodes, parts=16)
            largest[storageds] = report_by_draws(graph, nodes, 1_000_000, bytes_so_far)
    print(
        f"\n==== calls of a million, in ms: {', '.join(map(str, largest))} storageds; in "
        "brackets how much faster than one"
    )
    for name, (_, single_s, _) in largest[1].items():
        columns = "".join(
            f"{1e3 * rows[name][1]:10.1f} ({single_s / rows[name][1]:.2f})"
            for rows in largest.values()
        )
        print(f"  {name:<44}{columns}")


def report_by_cores(nodes: int, rounds: int = 3) -> None:
    """Report calls per second of one storaged with a fifth of a core, and of two.

    The remaining processor time belongs to their clients.
    """
    with contextlib.ExitStack() as stack:
        graphs: dict[int, Graph] = {}
        processes: dict[int, list[psutil.Process]] = {}
        for storageds in (1, 2):
            groups = [stack.enter_context(core_group(CORE_SHARE)) for _ in range(storageds)]
            cluster = stack.enter_context(LocalCluster(storageds, 1, fast=False))
            graphs[storageds] = fill(
                cluster.client(timeout_s=600, direct=True),
                "graph",
                nodes=nodes,
                edges=8 * nodes,
                parts=16,
            )
            processes[storageds] = [
                psutil.Process(cluster[f"storaged-{i}"].pid) for i in range(storageds)
            ]
            for group, process in zip(groups, processes[storageds], strict=True):
                (group / "cgroup.procs").write_text(str(process.pid))
        pool = stack.enter_context(ThreadPoolExecutor(IN_FLIGHT))
        print(
            f"\n==== calls of 100,000 a second, {IN_FLIGHT} in flight, of one storaged with "
            f"{CORE_SHARE} of a core, and of two with as much each"
        )
        print(
            "     in brackets how many times as many; then a call's core milliseconds at "
            "each storaged"
        )
        for name in operators(graphs[1], nodes):
            calls = {
                storageds: operators(graph, nodes)[name] for storageds, graph in graphs.items()
            }
            for call in calls.values():
                call(100_000, 0)
            measurements = [
                (storageds, _measure_round(pool, call, round_index, processes[storageds]))
                for round_index in range(rounds)
                for storageds, call in calls.items()
            ]
            single, double = (
                [samples for storageds, samples in measurements if storageds == size]
                for size in (1, 2)
            )
            rates = [statistics.median(rate for rate, _ in samples) for samples in (single, double)]
            cores = [
                np.median([core_ms for _, core_ms in samples], axis=0)
                for samples in (single, double)
            ]
            columns = "   ".join(", ".join(f"{core:.2f}" for core in medians) for medians in cores)
            print(
                (
                    f"  {name:<44}{rates[0]:9.1f}{rates[1]:9.1f}  ({rates[1] / rates[0]:.2f})   "
                    f"{columns}"
                ),
                flush=True,
            )


def _measure_round(
    pool: ThreadPoolExecutor,
    call: Callable[[int, int], object],
    round_index: int,
    storageds: Sequence[psutil.Process],
) -> tuple[float, list[float]]:
    """Return calls of 100,000 draws per second, and core milliseconds per call by storaged.

    There are as many concurrent calls as threads in the pool.
    """
    started, used_before = time.perf_counter(), [_core_s(process) for process in storageds]

    def call_until_end(first: int) -> int:
        calls = 0
        while time.perf_counter() - started < ROUND_S:
            call(100_000, first + calls)
            calls += 1
        return calls

    calls = sum(
        pool.map(call_until_end, [(round_index * IN_FLIGHT + i) << 20 for i in range(IN_FLIGHT)])
    )
    seconds = time.perf_counter() - started
    return calls / seconds, [
        1e3 * (_core_s(process) - used) / calls
        for process, used in zip(storageds, used_before, strict=True)
    ]


def _core_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ("draws", "hops", "degree", "graph", "parts", "storageds", "cores")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--storageds", action="store_true")
    parser.add_argument("--nodes", type=int, help="in the graph; 8 edges each")
    parser.add_argument("--hub", type=int, help="most neighbors of one node")
    parser.add_argument(
        "--only", nargs="*", choices=parts, metavar="PART", help=f"of {', '.join(parts)}"
    )
    args = parser.parse_args()
    selected = args.only or [
        part for part in parts if part != "cores" and (part != "storageds" or args.storageds)
    ]
    nodes = args.nodes or (10_000_000 if args.full else 1_000_000)
    with tempfile.TemporaryDirectory() as folder, asterism.open(Path(folder)) as client:
        if "draws" in selected or "hops" in selected:
            graph = fill(client, "graph", nodes=nodes, edges=8 * nodes, parts=8)
            if "draws" in selected:
                report_by_draws(graph, nodes, 4_000_000 if args.full else 1_000_000)
            if "hops" in selected:
                report_by_hops(graph, nodes)
        if "degree" in selected:
            report_by_degree(client, args.hub or nodes)
        if "graph" in selected:
            report_by_graph(client, nodes)
        if "parts" in selected:
            report_by_parts(client)
    if "storageds" in selected:
        report_by_storageds(args.nodes or 1_000_000)
    if "cores" in selected:
        report_by_cores(args.nodes or 1_000_000)


if __name__ == "__main__":
    main()
