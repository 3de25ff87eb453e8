"""The client's classes on an event loop. What they look like to readers and type checkers is in
``wrappers.pyi``, which `make stubs` writes.
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
from asterism.calls.epoch_iterators import ClusterPasses, EdgePasses, NodePasses, PairPasses
from asterism.calls.explain import Explainer
from asterism.calls.loads import Load
from asterism.calls.pins import PinnedVersion
from asterism.graph import Client, Graph
from asterism.records.explanation import Explanation
from asterism.records.samples import EdgeRows, Ids, PairBatch

Inner = TypeVar("Inner")


class ClosingWrapper(AsyncWrapper[Inner], Generic[Inner]):
    """Closed at the end of an ``async with`` block."""

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
    """A connection to a service whose calls are awaited: what ``asterism.aio.connect`` and
    ``asterism.aio.open`` give.

    Every method is that of `Client`. It may be used from several event loops, and by any number of
    tasks at a time. A task that is cancelled cancels its request.

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
    """The graph in a space, whose calls are awaited: what ``await client.graph(name)`` gives. Every
    method is that of `Graph`.
    """

    space: str
    version: int | None
    client: AsyncClient


@wrapper_of(Load)
class AsyncLoad(AsyncWrapper[Load]):
    """A load under way, whose calls are awaited: what ``await client.begin_load(...)`` gives. Every
    method is that of `Load`.
    """

    load_id: int
    space: str
    written: set[int]


@wrapper_of(NodePasses, synchronous=("state_dict", "load_state_dict", "reshard"))
class AsyncNodePasses(AsyncWrapper[NodePasses]):
    """Every node of a type once an epoch: what ``await graph.node_batches(...)`` gives. Go through
    it with ``async for``.
    """

    version: int
    ntype: str
    batch_size: int
    cursor: EpochCursor

    def __aiter__(self) -> AsyncIterator[Ids]:
        return AsyncItemIterator(iter(self._inner))


@wrapper_of(EdgePasses, synchronous=("state_dict", "load_state_dict", "reshard"))
class AsyncEdgePasses(AsyncWrapper[EdgePasses]):
    """Every edge of a type once an epoch: what ``await graph.edge_batches(...)`` gives. Go through
    it with ``async for``.
    """

    version: int
    etype: str
    batch_size: int
    cursor: EpochCursor

    def __aiter__(self) -> AsyncIterator[EdgeRows]:
        return AsyncItemIterator(iter(self._inner))


@wrapper_of(ClusterPasses, synchronous=("state_dict", "load_state_dict", "reshard"))
class AsyncClusterPasses(AsyncWrapper[ClusterPasses]):
    """Every cluster once an epoch: what ``await graph.cluster_batches(...)`` gives. Go through it
    with ``async for``.
    """

    version: int
    batch_size: int
    cursor: EpochCursor

    def __aiter__(self) -> AsyncIterator[ClusterBatch]:
        return AsyncItemIterator(iter(self._inner))


@wrapper_of(PairPasses, synchronous=("state_dict", "load_state_dict", "reshard"))
class AsyncPairPasses(AsyncWrapper[PairPasses]):
    """Skip-gram pairs of walks: what ``await graph.walk_pairs(...)`` gives. Go through it with
    ``async for``.
    """

    seed: int
    version: int | None

    def __aiter__(self) -> AsyncIterator[PairBatch]:
        return AsyncItemIterator(iter(self._inner))


@wrapper_of(PinnedVersion)
class AsyncPinned(AsyncWrapper[PinnedVersion[Graph]]):
    """A version that is held while an ``async with`` block runs: what ``graph.pin()`` gives."""

    async def __aenter__(self) -> AsyncGraph:
        return AsyncGraph(await run_in_greenlet(self._inner.__enter__))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await run_in_greenlet(self._inner.__exit__, kind, error, trace)


@wrapper_of(Explainer)
class AsyncExplainer(AsyncWrapper[Explainer]):
    """The sampling calls of a graph, each of which tells what it takes: ``await
    graph.explain.sample_nodes(...)``.
    """

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Explanation]]:
        if name.startswith("_"):
            raise AttributeError(name)
        return functools.partial(run_in_greenlet, getattr(self._inner, name))
