"""Clients for event loops: of a running service, and of one inside this process."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar, overload

from asterism.aio.greenlets import GreenletWaiter, await_from_greenlet
from asterism.aio.wrappers import AsyncClient, AsyncGraph, ClosingWrapper
from asterism.graph import Client
from asterism.transport.direct import DirectTransport
from asterism.transport.embedded import start_embedded
from asterism.transport.grpc import ClientTransport, GrpcTransport
from asterism.transport.retry_budget import Traffic
from asterism_proto.methods import Method
from asterism_proto.transport import Content

ClosingClient = TypeVar("ClosingClient", bound=ClosingWrapper[Any])
Value = TypeVar("Value")

GREENLET_WAITER = GreenletWaiter()
_MAX_THREADS = max(os.cpu_count() or 1, 4)


class Opening(Awaitable[ClosingClient], Generic[ClosingClient]):
    """A client that is about to be opened: await it, or enter it as an ``async with`` block, whose
    end closes it.
    """

    def __init__(self, open_it: Callable[[], Awaitable[ClosingClient]]) -> None:
        self._open = open_it
        self._opened: ClosingClient | None = None

    def __await__(self) -> Generator[Any, None, ClosingClient]:
        return self._open().__await__()

    async def __aenter__(self) -> ClosingClient:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._opened is not None:
            await self._opened.close()


class ThreadPoolTransport:
    """Calls of an event loop that this process answers, or asks storageds for: each in a thread, of
    which there are a few.

    Parameters
    ----------
    inner : ClientTransport
        Who carries them.
    """

    def __init__(self, inner: ClientTransport) -> None:
        self._inner = inner
        self.piece_bytes = inner.piece_bytes
        self.addresses: tuple[str, ...] = getattr(inner, "addresses", ())
        self._pool: ThreadPoolExecutor | None = None
        self._pid = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"inner": self._inner}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["inner"])  # type: ignore[misc]  # threads stay behind

    @property
    def traffic(self) -> Traffic:
        """What was asked of graphds by now."""
        return getattr(self._inner, "traffic", Traffic())

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """The reply, within ``timeout_s`` seconds, or an `AsterismError`."""
        return self.run_in_thread(functools.partial(self._inner.call, method, request, timeout_s))

    def close(self) -> None:
        """Let go of what it holds."""
        self.run_in_thread(self._inner.close)

    def run_in_thread(self, function: Callable[[], Value]) -> Value:
        """What ``function`` gives, in a thread where the caller must not be blocked."""
        if not GREENLET_WAITER.in_greenlet():
            return function()
        if self._pool is None or self._pid != os.getpid():
            self._pool, self._pid = (
                ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="asterism"),
                os.getpid(),
            )
        return await_from_greenlet(asyncio.get_running_loop().run_in_executor(self._pool, function))


@overload
def connect(
    addresses: str,
    *,
    space: None = None,
    timeout_s: float = 30.0,
    hedge: float | str | None = None,
    direct: bool = False,
) -> Opening[AsyncClient]: ...


@overload
def connect(
    addresses: str,
    *,
    space: str,
    timeout_s: float = 30.0,
    hedge: float | str | None = None,
    direct: bool = False,
) -> Opening[AsyncGraph]: ...


def connect(
    addresses: str,
    *,
    space: str | None = None,
    timeout_s: float = 30.0,
    hedge: float | str | None = None,
    direct: bool = False,
) -> Opening[AsyncClient] | Opening[AsyncGraph]:
    """Give a client of a running service, or the graph in one of its spaces, whose calls are
    awaited.

    Arguments as of ``asterism.connect``. At most 64 requests of a client are under way at a time;
    further ones wait for their turn.

    Returns
    -------
    Opening
        To await, or to enter: ``async with asterism.aio.connect(...) as client``.

    Examples
    --------
    >>> async with asterism.aio.connect(  # doctest: +SKIP
    ...     "localhost:9669", space="papers"
    ... ) as graph:
    ...     await graph.sample_nodes(8, "paper")
    """

    async def client() -> AsyncClient:
        transport = (
            ThreadPoolTransport(DirectTransport(addresses, hedge=hedge))
            if direct
            else GrpcTransport(addresses, hedge=hedge, waits=GREENLET_WAITER)
        )
        return AsyncClient(Client(transport, timeout_s=timeout_s, waits=GREENLET_WAITER))

    return Opening(client) if space is None else _opening_graph(client, space)


@overload
def open(
    path: str | Path,
    *,
    space: None = None,
    mode: str = "w",
    timeout_s: float = 30.0,
    **settings: Any,
) -> Opening[AsyncClient]: ...


@overload
def open(
    path: str | Path, *, space: str, mode: str = "w", timeout_s: float = 30.0, **settings: Any
) -> Opening[AsyncGraph]: ...


def open(
    path: str | Path,
    *,
    space: str | None = None,
    mode: str = "w",
    timeout_s: float = 30.0,
    **settings: Any,
) -> Opening[AsyncClient] | Opening[AsyncGraph]:
    """Give a client of a service inside this process, whose calls are awaited; they run in threads.
    Arguments as of ``asterism.open``.

    Examples
    --------
    >>> async with asterism.aio.open("/tmp/graphs") as client:  # doctest: +SKIP
    ...     await client.spaces()
    """

    async def client() -> AsyncClient:
        service = await asyncio.to_thread(start_embedded, path, mode, settings)
        transport = ThreadPoolTransport(service.transport)
        stop = functools.partial(transport.run_in_thread, service.stop)
        return AsyncClient(
            Client(transport, timeout_s=timeout_s, on_close=stop, waits=GREENLET_WAITER)
        )

    return Opening(client) if space is None else _opening_graph(client, space)


def _opening_graph(
    open_client: Callable[[], Awaitable[AsyncClient]], space: str
) -> Opening[AsyncGraph]:
    async def graph() -> AsyncGraph:
        client = await open_client()
        try:
            return await client.graph(space)
        except BaseException:
            await client.close()
            raise

    return Opening(graph)
