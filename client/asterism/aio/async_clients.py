"""Asyncio counterparts of the client's classes.

Their signatures for readers and type checkers are in ``async_clients.pyi``, which `make stubs`
writes.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from asterism.aio.async_wrapper import AsyncItemIterator, AsyncWrapper, wrapper_of
from asterism.aio.greenlets import run_in_greenlet
from asterism.calls.clusters import ClusterBatch
from asterism.calls.epoch_cursor import EpochCursor
from asterism.calls.epoch_iterators import ClusterEpochs, EdgeEpochs, NodeEpochs, PairEpochs
from asterism.calls.explain import ExplainCalls
from asterism.calls.loads import Load
from asterism.calls.pins import PinnedVersion
from asterism.graph import Client, Graph
from asterism.records.explanation import Explanation
from asterism.records.samples import EdgeRows, Ids, PairBatch

Inner = TypeVar("Inner")


class ClosingWrapper(AsyncWrapper[Inner], Generic[Inner]):
    """Wrapper that closes its object at the end of an ``async with`` block."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


@wrapper_of(Client)
class AsyncClient(ClosingWrapper[Client]):
    """Asyncio connection to a service, returned by ``asterism.aio.connect`` and ``open``.

    It has the methods of `Client`. Several event loops and any number of concurrent tasks can use
    it. Cancelling a task cancels its request.

    Examples
    --------
    >>> async with asterism.aio.connect("localhost:9669") as client:  # doctest: +SKIP
    ...     graph = await client.graph("papers")
    ...     batches = await asyncio.gather(
    ...         *(graph.sample_nodes(256, "paper", seed=i) for i in range(100))
    ...     )
    """


@wrapper_of(Graph, synchronous=("at", "metapaths", "pin"))
class AsyncGraph(ClosingWrapper[Graph]):
    """Asyncio graph in one graph space, returned by ``await client.graph(name)``.

    It has the methods of `Graph`.
    """

    space: str
    version: int | None
    client: AsyncClient


@wrapper_of(Load)
class AsyncLoad(AsyncWrapper[Load]):
    """Open load with awaited calls, returned by ``await client.begin_load(...)``.

    It has the methods of `Load`.
    """

    load_id: int
    space: str
    written: set[int]


@wrapper_of(NodeEpochs, synchronous=("state_dict", "load_state_dict", "reshard"))
class AsyncNodeEpochs(AsyncWrapper[NodeEpochs]):
    """Asynchronous iterator over all nodes of a type, once per epoch.

    Returned by ``await graph.node_batches(...)``; iterate with ``async for``.
    """

    version: int
    ntype: str
    batch_size: int
    cursor: EpochCursor

    def __aiter__(self) -> AsyncIterator[Ids]:
        return AsyncItemIterator(iter(self._inner))


@wrapper_of(EdgeEpochs, synchronous=("state_dict", "load_state_dict", "reshard"))
class AsyncEdgeEpochs(AsyncWrapper[EdgeEpochs]):
    """Asynchronous iterator over all edges of a type, once per epoch.

    Returned by ``await graph.edge_batches(...)``; iterate with ``async for``.
    """

    version: int
    etype: str
    batch_size: int
    cursor: EpochCursor

    def __aiter__(self) -> AsyncIterator[EdgeRows]:
        return AsyncItemIterator(iter(self._inner))


@wrapper_of(ClusterEpochs, synchronous=("state_dict", "load_state_dict", "reshard"))
class AsyncClusterEpochs(AsyncWrapper[ClusterEpochs]):
    """Asynchronous iterator over all clusters, once per epoch.

    Returned by ``await graph.cluster_batches(...)``; iterate with ``async for``.
    """

    version: int
    batch_size: int
    cursor: EpochCursor

    def __aiter__(self) -> AsyncIterator[ClusterBatch]:
        return AsyncItemIterator(iter(self._inner))


@wrapper_of(PairEpochs, synchronous=("state_dict", "load_state_dict", "reshard"))
class AsyncPairEpochs(AsyncWrapper[PairEpochs]):
    """Asynchronous iterator over skip-gram pairs of walks.

    Returned by ``await graph.walk_pairs(...)``; iterate with ``async for``.
    """

    seed: int
    version: int | None

    def __aiter__(self) -> AsyncIterator[PairBatch]:
        return AsyncItemIterator(iter(self._inner))


@wrapper_of(PinnedVersion)
class AsyncPinned(AsyncWrapper[PinnedVersion[Graph]]):
    """Asynchronous context manager that holds a version, returned by ``graph.pin()``."""

    async def __aenter__(self) -> AsyncGraph:
        return AsyncGraph(await run_in_greenlet(self._inner.__enter__))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await run_in_greenlet(self._inner.__exit__, kind, error, trace)


@wrapper_of(ExplainCalls)
class AsyncExplainCalls(AsyncWrapper[ExplainCalls]):
    """Sampling calls that return their cost: ``await graph.explain.sample_nodes(...)``."""

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Explanation]]:
        if name.startswith("_"):
            raise AttributeError(name)
        return functools.partial(run_in_greenlet, getattr(self._inner, name))
