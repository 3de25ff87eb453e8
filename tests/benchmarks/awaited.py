"""Cost of awaited calls against blocking ones: 256 draws, one call at a time and many.

``python -m tests.benchmarks.awaited`` prints milliseconds per call, measured in turns, on a cluster
of three storageds and one graphd.
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

ROUNDS, CALLS, DRAWS, CONCURRENCY = 7, 300, 256, 64


def blocking_ms(graph: asterism.Graph) -> float:
    """Return the median milliseconds of a call."""
    times = []
    for seed in range(CALLS):
        started = time.perf_counter()
        graph.sample_nodes(DRAWS, "person", seed=seed)
        times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)


async def sequential_async_ms(address: str) -> float:
    """Return the same for calls that are awaited one after the other."""
    async with asterism.aio.connect(address, space="cases") as graph:
        times = []
        for seed in range(CALLS):
            started = time.perf_counter()
            await graph.sample_nodes(DRAWS, "person", seed=seed)
            times.append(time.perf_counter() - started)
        return 1000 * statistics.median(times)


def threaded_s(graph: asterism.Graph) -> float:
    """Return milliseconds per call of concurrent calls, each in its own thread."""
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        started = time.perf_counter()
        list(pool.map(lambda seed: graph.sample_nodes(DRAWS, "person", seed=seed), range(1000)))
        return time.perf_counter() - started


async def gathered_s(address: str) -> float:
    """Return the same for a thousand concurrent tasks."""
    async with asterism.aio.connect(address, space="cases") as graph:
        started = time.perf_counter()
        await asyncio.gather(
            *(graph.sample_nodes(DRAWS, "person", seed=seed) for seed in range(1000))
        )
        return time.perf_counter() - started


def main() -> None:
    """Measure in turns, and print medians."""
    with LocalCluster(3, fast=False) as cluster, cluster.client() as client:
        graph = cases.load(client, "cases")
        blocking_ms(graph), asyncio.run(sequential_async_ms(cluster.addresses))
        measurements = [
            (
                blocking_ms(graph),
                asyncio.run(sequential_async_ms(cluster.addresses)),
                threaded_s(graph),
                asyncio.run(gathered_s(cluster.addresses)),
            )
            for _ in range(ROUNDS)
        ]
    names = (
        "blocking, ms",
        "awaited, ms",
        f"1000 calls in {CONCURRENCY} threads, ms a call",
        "1000 tasks, ms a call",
    )
    for name, column in zip(names, zip(*measurements, strict=True), strict=True):
        print(
            f"{name:42} {statistics.median(column):6.2f}   of {min(column):.2f} - {max(column):.2f}"
        )


if __name__ == "__main__":
    main()
