"""What a call costs that is awaited, beside one that blocks: 256 draws, one call at a time and many at a time.

``python -m tests.benchmarks.awaited`` prints milliseconds a call, in turns, over a cluster of three storageds and one graphd.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from tests.kit import cases
from tests.kit.cluster import LocalCluster

import asterism
import asterism.aio

ROUNDS, CALLS, DRAWS, AT_ONCE = 7, 300, 256, 64


def blocking(graph: asterism.Graph) -> float:
    """Milliseconds a call, the median."""
    took = []
    for seed in range(CALLS):
        begun = time.perf_counter()
        graph.sample_nodes(DRAWS, "person", seed=seed)
        took.append(time.perf_counter() - begun)
    return 1000 * statistics.median(took)


async def awaited(address: str) -> float:
    """The same, awaited one after the other."""
    async with asterism.aio.connect(address, space="cases") as graph:
        took = []
        for seed in range(CALLS):
            begun = time.perf_counter()
            await graph.sample_nodes(DRAWS, "person", seed=seed)
            took.append(time.perf_counter() - begun)
        return 1000 * statistics.median(took)


def in_threads(graph: asterism.Graph) -> float:
    """Milliseconds a call of many at a time, each in one of so many threads."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        begun = time.perf_counter()
        list(pool.map(lambda seed: graph.sample_nodes(DRAWS, "person", seed=seed), range(1000)))
        return time.perf_counter() - begun


async def gathered(address: str) -> float:
    """The same, a thousand tasks at a time."""
    async with asterism.aio.connect(address, space="cases") as graph:
        begun = time.perf_counter()
        await asyncio.gather(*(graph.sample_nodes(DRAWS, "person", seed=seed) for seed in range(1000)))
        return time.perf_counter() - begun


def main() -> None:
    """Measure in turns, and print medians."""
    with LocalCluster(3, fast=False) as cluster, cluster.client() as client:
        graph = cases.load(client, "cases")
        blocking(graph), asyncio.run(awaited(cluster.addresses))
        turns = [
            (blocking(graph), asyncio.run(awaited(cluster.addresses)), in_threads(graph), asyncio.run(gathered(cluster.addresses)))
            for _ in range(ROUNDS)
        ]
    names = ("blocking, ms", "awaited, ms", f"1000 calls in {AT_ONCE} threads, ms a call", "1000 tasks, ms a call")
    for name, column in zip(names, zip(*turns, strict=True), strict=True):
        print(f"{name:42} {statistics.median(column):6.2f}   of {min(column):.2f} - {max(column):.2f}")


if __name__ == "__main__":
    main()
