"""Benchmark of calls with excluded edges, by their number and by the size of the graph.

    python -m tests.benchmarks.exclusions                         # 10,000 to 1M nodes of 20 edges
    python -m tests.benchmarks.exclusions --nodes 10000 100000    # smaller

Each figure is the processor time of a call through graphd's operators, embedded, the best of a few.
Excluded edges are drawn from all edges. The ratio is to the same call without them; the cost of an
excluded edge is the difference, divided by their number. It must not grow with the graph.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from tests.distributions.checks.hosts import request_context
from tests.kit.images import Edges, Nodes, version_of

from asterism_model.excluded_edges import ExcludedEdges
from asterism_model.schema import EdgeType, NodeType, Schema
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.api.service import OPERATIONS
from graphd.operators.request_context import RequestContext
from graphd.routing.excluded_edges import RoutedExclusions
from storaged import sampling

DEGREE, PARTS, SEEDS = 20, 4, 4096
EXCLUDED = (64, 1024, 16_384)
Call = Callable[[RequestContext, int], Any]


def graph(nodes: int) -> tuple[sampling.LocalVersion, np.ndarray, np.ndarray]:
    """Return a graph of random weighted edges, with their sources and destinations."""
    rng = np.random.default_rng(1)
    src, dst = rng.integers(0, nodes, nodes * DEGREE), rng.integers(0, nodes, nodes * DEGREE)
    edge_type = EdgeType(src_type="n", relation="e", dst_type="n", weighted=True)
    weights = rng.random(src.size).astype(np.float32)
    version = version_of(
        Schema(node_types=(NodeType(name="n"),), edge_types=(edge_type,), parts=PARTS),
        {"n": Nodes(ids=np.arange(nodes, dtype=np.int64))},
        {"n:e:n": Edges(src=src, dst=dst, weights=weights)},
    )
    return version, src, dst


def calls(nodes: int) -> Mapping[str, Call]:
    """Return the measured calls, by name; each takes a seed."""
    seeds = {"nodes": np.random.default_rng(2).integers(0, nodes, SEEDS)}
    hops = [graphd_pb.Hop(edge_types=[0], count=count) for count in (10, 5)]

    def call(method: str, head: type, **fields: Any) -> Call:
        return lambda context, seed: OPERATIONS[method](
            context, Frame(head(seed=seed, node_type=0, **fields), seeds)
        )

    neighbors = {"edge_types": [0], "count": 10}
    return {
        "10 neighbors": call(
            "sample_neighbors", graphd_pb.SampleNeighborsRequest, **neighbors, replace=True
        ),
        "10 different neighbors": call(
            "sample_neighbors", graphd_pb.SampleNeighborsRequest, **neighbors, replace=False
        ),
        "fanout of 10 and 5": call(
            "sample_fanout", graphd_pb.SampleFanoutRequest, hops=hops, replace=True
        ),
        "walk of 10 steps": call(
            "random_walk",
            graphd_pb.RandomWalkRequest,
            steps=[storaged_pb.Step(edge_types=[0])],
            length=10,
        ),
    }


def best_ms(call: Call, context: RequestContext, repeats: int) -> float:
    """Return milliseconds of processor time of the fastest call after a first one."""
    call(context, 0)
    times = []
    for seed in range(1, repeats + 1):
        start = time.process_time()
        call(context, seed)
        times.append(time.process_time() - start)
    return min(times) * 1e3


def report(nodes: int, repeats: int) -> None:
    """Print the cost of exclusions in a graph."""
    version, src, dst = graph(nodes)
    plain = request_context(version)
    order = np.random.default_rng(3).permutation(src.size)
    print(f"\n{nodes:,} nodes, {src.size:,} edges, {SEEDS:,} seeds")
    print(f"{'call':<26}{'excluded':>9}{'ms':>9}{'ratio':>8}{'µs per edge':>13}")
    for name, call in calls(nodes).items():
        without = best_ms(call, plain, repeats)
        print(f"{name:<26}{'none':>9}{without:>9.2f}{1:>8.2f}", flush=True)
        for count in EXCLUDED:
            chosen = order[:count]
            excluded = ExcludedEdges(
                types=np.zeros(count, np.int32),
                src=src[chosen],
                dst=dst[chosen],
                eids=np.full(count, -1, np.int64),
            )
            exclusions = RoutedExclusions(space=plain.space, excluded=excluded)
            with_them = best_ms(call, replace(plain, exclusions=exclusions), repeats)
            per_edge = (with_them - without) / count * 1e3
            print(
                f"{'':<26}{count:>9,}{with_them:>9.2f}{with_them / without:>8.2f}{per_edge:>13.2f}",
                flush=True,
            )


def main() -> None:
    """Print the cost of exclusions for graphs of several sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    for nodes in options.nodes:
        report(nodes, options.repeats)


if __name__ == "__main__":
    main()
