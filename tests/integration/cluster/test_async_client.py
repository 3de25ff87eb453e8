"""The asynchronous client returns the same results as the synchronous one.

Both run over the network and embedded, with a thousand concurrent calls.
"""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import pickle
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit import cases
from tests.kit.cases_clusters import cases_cluster
from tests.kit.cluster import LocalCluster
from tests.kit.waiting import HANG_S

import asterism
import asterism.aio
from asterism.aio import AsyncGraph
from asterism.aio.greenlets import await_from_greenlet, run_in_greenlet


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with cases_cluster(2, 2, fast=False) as running:
        yield running


class SyncGraph:
    """A graph that awaits every call, for code written for synchronous calls."""

    def __init__(self, graph: AsyncGraph) -> None:
        self._graph = graph

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._graph, name)
        if not callable(member):
            return member

        def call(*args: Any, **kwargs: Any) -> Any:
            result = member(*args, **kwargs)
            if inspect.isawaitable(result):
                result = await_from_greenlet(result)
            if isinstance(result, AsyncGraph):
                return SyncGraph(result)
            return await_from_greenlet(collect(result)) if hasattr(result, "__aiter__") else result

        return call


async def collect(items: Any) -> list[Any]:
    return [item async for item in items]


def test_async_calls_give_the_same_results(cluster: LocalCluster) -> None:
    """Synchronous calls to a cluster equal embedded ones: see `test_cluster_equality`."""

    async def async_answers() -> dict[str, str]:
        async with asterism.aio.connect(cluster.addresses, space="cases") as graph:
            sync_graph: Any = SyncGraph(graph)
            return await run_in_greenlet(cases.call_digests, sync_graph)

    assert asyncio.run(async_answers()) == cases.embedded_digests()


def test_thousand_concurrent_calls_give_the_same_samples(cluster: LocalCluster) -> None:
    async def run() -> list[np.ndarray]:
        async with asterism.aio.connect(cluster.addresses, space="cases") as graph:
            samples = await asyncio.gather(
                *(graph.sample_nodes(64, seed=seed) for seed in range(1000))
            )
            assert (await graph.client.describe("cases")).version == samples[0].version
            return [sample.nodes for sample in samples]

    nodes_by_seed = asyncio.run(run())
    with cluster.client() as client:
        graph = client.graph("cases")
        for seed in range(0, 1000, 83):
            assert np.array_equal(nodes_by_seed[seed], graph.sample_nodes(64, seed=seed).nodes)


def test_graph_lifecycle_never_blocks_the_event_loop(tmp_path: Path) -> None:
    async def run() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1

        async with asterism.aio.open(tmp_path / "graphs") as client:
            clock = asyncio.ensure_future(tick())
            await client.create_space(
                "shop", {"nodes": {"user": {}}, "edges": {"user:knows:user": {}}}
            )
            graph = await client.graph("shop")
            load = await client.begin_load("shop", source="test")
            await load.write_nodes(0, "user", range(100))
            await asyncio.gather(
                *(load.write_edges(1 + i, "knows", [i], [i + 1]) for i in range(20))
            )
            assert load.written == set(range(21))
            assert await load.commit() == load.commit_number == 1
            assert (await graph.build()).version == 1
            async with graph.pin() as pinned:
                assert pinned.version == 1
                await graph.upsert_nodes([100], "user")
                await graph.build()
                assert (await pinned.count_nodes("user"), await graph.count_nodes("user")) == (
                    100,
                    101,
                )
            assert await client.pins("shop") == []
            assert sum([len(batch.ids) async for batch in graph.scan_nodes("user", rows=7)]) == 101
            batches = await graph.node_batches("user", 10, seed=1)
            assert sorted(np.concatenate([nodes async for nodes in batches]).tolist()) == list(
                range(101)
            )
            assert batches.epoch == 1
            assert (await graph.explain.sample_nodes(5, seed=1)).rounds >= 1
            with pytest.raises(asterism.InvalidRequest, match="n=-1"):
                await graph.sample_nodes(-1)
            await client.drop_space("shop")
            with pytest.raises(asterism.NotFound):
                await client.describe("shop")
            clock.cancel()
            assert ticks > 20, "the event loop stood still"

    asyncio.run(run())


def test_a_pin_is_released_when_its_block_is_cancelled(cluster: LocalCluster) -> None:
    async def run() -> None:
        async with asterism.aio.connect(cluster.addresses, space="cases") as graph:

            async def hold_pin() -> None:
                async with graph.pin(owner="cancelled"):
                    pinned.set()
                    await asyncio.sleep(60)

            pinned = asyncio.Event()
            task = asyncio.ensure_future(hold_pin())
            await pinned.wait()
            assert [pin.owner for pin in await graph.client.pins("cases")] == ["cancelled"]
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await graph.client.pins("cases") == []

    asyncio.run(run())


def test_one_client_serves_one_loop_after_the_other(cluster: LocalCluster) -> None:
    async def sample(graph: AsyncGraph) -> list[int]:
        return (await graph.sample_nodes(5, seed=3)).nodes.tolist()

    async def open_graph() -> AsyncGraph:
        return await asterism.aio.connect(cluster.addresses, space="cases")

    graph = asyncio.run(open_graph())
    assert asyncio.run(sample(graph)) == asyncio.run(sample(graph))
    asyncio.run(graph.close())


def send_sample(graph: AsyncGraph, connection: Connection) -> None:
    async def sample() -> Any:
        return (await graph.sample_edges(50, seed=8)).edge_ids

    connection.send(asyncio.run(sample()))
    connection.close()


def test_async_graph_pickles_to_a_spawned_process(cluster: LocalCluster) -> None:
    async def open_and_sample() -> tuple[AsyncGraph, Any]:
        graph = await asterism.aio.connect(cluster.addresses, space="cases")
        return pickle.loads(pickle.dumps(graph)), (await graph.sample_edges(50, seed=8)).edge_ids

    graph, expected = asyncio.run(open_and_sample())
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe()
    worker = spawn.Process(target=send_sample, args=(graph, sender))
    worker.start()
    sender.close()
    assert receiver.poll(HANG_S), "the worker gave no answer"
    assert np.array_equal(receiver.recv(), expected)
    worker.join(HANG_S)
    assert worker.exitcode == 0


def test_error_traceback_includes_client_frames(cluster: LocalCluster) -> None:
    async def run() -> None:
        async with asterism.aio.connect(cluster.addresses) as client:
            with pytest.raises(asterism.NotFound, match="nowhere") as raised:
                await client.graph("nowhere")
            assert {"run", "graph", "call"} <= {entry.name for entry in raised.traceback}

    asyncio.run(run())
