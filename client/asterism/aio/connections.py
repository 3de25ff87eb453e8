"""Asyncio clients of a running service, and of a service inside this process."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar, overload

from asterism.aio.async_clients import AsyncClient, AsyncGraph, ClosingWrapper
from asterism.aio.greenlets import GreenletWaiter, await_from_greenlet
from asterism.graph import Client
from asterism.transport.credentials import Credential, credentials_of, warn_if_exposed
from asterism.transport.direct import DirectTransport
from asterism.transport.embedded import start_embedded
from asterism.transport.grpc import ClientTransport, GrpcTransport
from asterism.transport.retry_budget import Traffic
from asterism.transport.tls import Tls, tls_options
from asterism_proto.methods import Method
from asterism_proto.transport import Content

ClosingClient = TypeVar("ClosingClient", bound=ClosingWrapper[Any])
Value = TypeVar("Value")

GREENLET_WAITER = GreenletWaiter()
_MAX_THREADS = max(os.cpu_count() or 1, 4)


class PendingClient(Awaitable[ClosingClient], Generic[ClosingClient]):
    """Client to be opened: await it, or enter it with ``async with``, which also closes it."""

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
    """Transport that runs the calls of another transport in a few threads.

    Event loops use it for a service in this process, and for direct calls to storageds.

    Parameters
    ----------
    inner : ClientTransport
        Transport that makes the calls.
    """

    def __init__(self, inner: ClientTransport) -> None:
        self._inner = inner
        self.piece_bytes = inner.piece_bytes
        self.prices_requests = inner.prices_requests
        self.addresses: tuple[str, ...] = getattr(inner, "addresses", ())
        self._pool: ThreadPoolExecutor | None = None
        self._pid = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"inner": self._inner}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["inner"])  # type: ignore[misc]  # threads cannot be pickled

    @property
    def traffic(self) -> Traffic:
        """Counts of the requests to graphds so far."""
        return getattr(self._inner, "traffic", Traffic())

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """Return the reply within ``timeout_s`` seconds, or raise an `AsterismError`."""
        return self.run_in_thread(functools.partial(self._inner.call, method, request, timeout_s))

    def close(self) -> None:
        """Close the inner transport."""
        self.run_in_thread(self._inner.close)

    def run_in_thread(self, function: Callable[[], Value]) -> Value:
        """Return the result of ``function``; run it in a thread if the caller must not block."""
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
    tls: Tls = None,
    api_key: Credential = None,
    token: Credential = None,
) -> PendingClient[AsyncClient]: ...


@overload
def connect(
    addresses: str,
    *,
    space: str,
    timeout_s: float = 30.0,
    hedge: float | str | None = None,
    direct: bool = False,
    tls: Tls = None,
    api_key: Credential = None,
    token: Credential = None,
) -> PendingClient[AsyncGraph]: ...


def connect(
    addresses: str,
    *,
    space: str | None = None,
    timeout_s: float = 30.0,
    hedge: float | str | None = None,
    direct: bool = False,
    tls: Tls = None,
    api_key: Credential = None,
    token: Credential = None,
) -> PendingClient[AsyncClient] | PendingClient[AsyncGraph]:
    """Open an asyncio client of a running service, or the graph in one of its spaces.

    At most 64 requests of a client run at a time; further ones wait for their turn.

    Parameters
    ----------
    addresses : str
        Address of a graphd, ``"host:9669"``, or several separated by commas.
    space : str, optional
        Name of a graph space: open its graph. None: open the client.
    timeout_s : float, default 30
        Timeout of every call in seconds, retries included.
    hedge : float or "p95", optional
        Delay of a second request for slow reads, as in ``asterism.connect``. None: never.
    direct : bool, default False
        Send requests to the storageds from this process, as in ``asterism.connect``. Needs
        ``asterism-graph[server]``.
    tls : TlsOptions, bool or path, optional
        TLS of the connections, as in ``asterism.connect``.
    api_key, token : str or callable, optional
        API key or token of every request, as in ``asterism.connect``. A function is called on the
        event loop.

    Returns
    -------
    PendingClient
        Await it, or enter it: ``async with asterism.aio.connect(...) as client``.

    Raises
    ------
    InvalidRequest
        On opening, if an argument is invalid.
    NotFound
        On opening, if there is no such space.

    Examples
    --------
    >>> async with asterism.aio.connect(  # doctest: +SKIP
    ...     "localhost:9669", space="papers"
    ... ) as graph:
    ...     await graph.sample_nodes(8, "paper")
    """

    async def client() -> AsyncClient:
        options, credentials = tls_options(tls), credentials_of(api_key, token)
        transport = (
            ThreadPoolTransport(
                DirectTransport(addresses, hedge=hedge, tls=options, credentials=credentials)
            )
            if direct
            else GrpcTransport(
                addresses,
                hedge=hedge,
                waits=GREENLET_WAITER,
                tls=options,
                credentials=credentials,
            )
        )
        warn_if_exposed(credentials, transport.addresses, options)
        return AsyncClient(Client(transport, timeout_s=timeout_s, waits=GREENLET_WAITER))

    return PendingClient(client) if space is None else _opening_graph(client, space)


@overload
def open(
    path: str | Path,
    *,
    space: None = None,
    mode: str = "w",
    timeout_s: float = 30.0,
    **settings: Any,
) -> PendingClient[AsyncClient]: ...


@overload
def open(
    path: str | Path, *, space: str, mode: str = "w", timeout_s: float = 30.0, **settings: Any
) -> PendingClient[AsyncGraph]: ...


def open(
    path: str | Path,
    *,
    space: str | None = None,
    mode: str = "w",
    timeout_s: float = 30.0,
    **settings: Any,
) -> PendingClient[AsyncClient] | PendingClient[AsyncGraph]:
    """Open a service inside this process, with awaited calls that run in threads.

    Parameters
    ----------
    path : str or Path
        Data folder; mode ``"w"`` creates it if needed. A leading ``~`` is the user's home folder.
    space : str, optional
        Name of a graph space: open its graph. None: open the client.
    mode : {"w", "r+", "r"}, default "w"
        Mode, as in ``asterism.open``.
    timeout_s : float, default 30
        Timeout of every call in seconds.
    **settings
        Further fields of ``asterism_standalone.settings.StandaloneSettings``.

    Returns
    -------
    PendingClient
        Await it, or enter it: ``async with asterism.aio.open(...) as client``.

    Raises
    ------
    Conflict
        On opening, if another process has the folder open for writing.
    NotFound
        On opening, if the folder has no graphs (in modes ``"r+"`` and ``"r"``), or there is no such
        space.
    ImportError
        On opening, if the server's packages are not installed.

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

    return PendingClient(client) if space is None else _opening_graph(client, space)


def _opening_graph(
    open_client: Callable[[], Awaitable[AsyncClient]], space: str
) -> PendingClient[AsyncGraph]:
    async def graph() -> AsyncGraph:
        client = await open_client()
        try:
            return await client.graph(space)
        except BaseException:
            await client.close()
            raise

    return PendingClient(graph)
