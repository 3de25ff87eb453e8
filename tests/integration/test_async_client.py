"""The asynchronous client gives what the client gives, over the network and inside the process, a thousand calls at a time."""

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
from asterism.aio.strands import awaited, wait_for


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with cases_cluster(2, 2) as running:
        yield running


class Awaiting:
    """A graph whose every call is awaited where it is made: for code that was written for calls that return."""

    def __init__(self, graph: AsyncGraph) -> None:
        self._graph = graph

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._graph, name)
        if not callable(member):
            return member

        def call(*args: Any, **named: Any) -> Any:
            given = member(*args, **named)
            if inspect.isawaitable(given):
                given = wait_for(given)
            return wait_for(listed(given)) if hasattr(given, "__aiter__") else given

        return call


async def listed(items: Any) -> list[Any]:
    return [item async for item in items]


def test_every_call_gives_the_same_awaited(cluster: LocalCluster) -> None:
    async def answers() -> dict[str, str]:
        async with asterism.aio.connect(cluster.addresses, space="cases") as graph:
            awaiting: Any = Awaiting(graph)
            return await awaited(cases.answers, awaiting)

    with cluster.client() as client:
        assert asyncio.run(answers()) == cases.answers(client.graph("cases"))


def test_a_thousand_calls_at_a_time_are_all_answered_as_one_by_one(cluster: LocalCluster) -> None:
    async def run() -> list[np.ndarray]:
        async with asterism.aio.connect(cluster.addresses, space="cases") as graph:
            samples = await asyncio.gather(*(graph.sample_nodes(64, seed=seed) for seed in range(1000)))
            assert (await graph.client.describe("cases")).version == samples[0].version
            return [sample.nodes for sample in samples]

    drawn = asyncio.run(run())
    with cluster.client() as client:
        graph = client.graph("cases")
        for seed in range(0, 1000, 83):
            assert np.array_equal(drawn[seed], graph.sample_nodes(64, seed=seed).nodes)


def test_a_graph_is_made_written_pinned_read_and_dropped_without_a_call_that_blocks(tmp_path: Path) -> None:
    async def run() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1

        async with asterism.aio.open(tmp_path / "graphs") as client:
            clock = asyncio.ensure_future(tick())
            await client.create_space("shop", {"nodes": {"user": {}}, "edges": {"user:knows:user": {}}})
            graph = await client.graph("shop")
            load = await client.begin_load("shop", source="test")
            await load.write_nodes(0, "user", range(100))
            await asyncio.gather(*(load.write_edges(1 + i, "knows", [i], [i + 1]) for i in range(20)))
            assert load.written == set(range(21))
            assert await load.commit() == load.commit_number == 1
            assert (await graph.build()).version == 1
            async with graph.pin() as held:
                assert held.version == 1
                await graph.upsert_nodes([100], "user")
                await graph.build()
                assert (await held.count_nodes("user"), await graph.count_nodes("user")) == (100, 101)
            assert await client.pins("shop") == []
            assert sum([len(batch.ids) async for batch in graph.scan_nodes("user", rows=7)]) == 101
            passes = await graph.node_batches("user", 10, seed=1)
            assert sorted(np.concatenate([nodes async for nodes in passes]).tolist()) == list(range(101))
            assert passes.epoch == 1
            assert (await graph.explain.sample_nodes(5, seed=1)).rounds >= 1
            with pytest.raises(asterism.InvalidRequest, match="n -1"):
                await graph.sample_nodes(-1)
            await client.drop_space("shop")
            with pytest.raises(asterism.NotFound):
                await client.describe("shop")
            clock.cancel()
            assert ticks > 20, "the event loop stood still"

    asyncio.run(run())


def test_a_pin_is_released_where_its_block_is_cancelled(cluster: LocalCluster) -> None:
    async def run() -> None:
        async with asterism.aio.connect(cluster.addresses, space="cases") as graph:

            async def hold() -> None:
                async with graph.pin(owner="cancelled"):
                    held.set()
                    await asyncio.sleep(60)

            held = asyncio.Event()
            task = asyncio.ensure_future(hold())
            await held.wait()
            assert [pin.owner for pin in await graph.client.pins("cases")] == ["cancelled"]
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await graph.client.pins("cases") == []

    asyncio.run(run())


def test_one_client_serves_one_loop_after_the_other(cluster: LocalCluster) -> None:
    async def draw(graph: AsyncGraph) -> list[int]:
        return (await graph.sample_nodes(5, seed=3)).nodes.tolist()

    async def connected() -> AsyncGraph:
        return await asterism.aio.connect(cluster.addresses, space="cases")

    graph = asyncio.run(connected())
    assert asyncio.run(draw(graph)) == asyncio.run(draw(graph))
    asyncio.run(graph.close())


def drawn(graph: AsyncGraph, answer: Connection) -> None:
    async def draw() -> Any:
        return (await graph.sample_edges(50, seed=8)).edge_ids

    answer.send(asyncio.run(draw()))
    answer.close()


def test_an_asynchronous_graph_goes_to_a_spawned_process_and_draws_the_same(cluster: LocalCluster) -> None:
    async def connected() -> tuple[AsyncGraph, Any]:
        graph = await asterism.aio.connect(cluster.addresses, space="cases")
        return pickle.loads(pickle.dumps(graph)), (await graph.sample_edges(50, seed=8)).edge_ids

    graph, expected = asyncio.run(connected())
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    worker = spawn.Process(target=drawn, args=(graph, there))
    worker.start()
    there.close()
    assert here.poll(HANG_S), "the worker gave no answer"
    assert np.array_equal(here.recv(), expected)
    worker.join(HANG_S)
    assert worker.exitcode == 0


def test_an_error_tells_where_in_the_client_it_was_raised(cluster: LocalCluster) -> None:
    async def run() -> None:
        async with asterism.aio.connect(cluster.addresses) as client:
            with pytest.raises(asterism.NotFound, match="nowhere") as raised:
                await client.graph("nowhere")
            assert {"run", "graph", "call"} <= {entry.name for entry in raised.traceback}

    asyncio.run(run())
