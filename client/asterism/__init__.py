"""Client of Asterism, which samples from graphs that are larger than memory.
Code that needs more than numpy, grpcio and protobuf belongs to the packages that have extras."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

from asterism_model import unicode_text
from asterism_proto import errors
from asterism_proto.errors import (
    AsterismError,
    Busy,
    Conflict,
    Corrupt,
    Deadline,
    Internal,
    InvalidRequest,
    NotFound,
    NotReady,
    Stale,
    Unavailable,
)

if TYPE_CHECKING:
    from pathlib import Path

    from asterism import euler, ops, records
    from asterism.calls.loads import Load
    from asterism.graph import Client, Graph
    from asterism_model.schema import EdgeType, Feature, NodeType, Schema

__all__ = [
    "AsterismError",
    "Busy",
    "Client",
    "Conflict",
    "Corrupt",
    "Deadline",
    "EdgeType",
    "Feature",
    "Graph",
    "Internal",
    "InvalidRequest",
    "Load",
    "NodeType",
    "NotFound",
    "NotReady",
    "Schema",
    "Stale",
    "Unavailable",
    "__version__",
    "connect",
    "errors",
    "euler",
    "open",
    "ops",
    "pglbox",
    "records",
]

__version__ = "0.1.0"
"""Version of both distributions, `asterism-graph` and `asterism-graph-server`."""

_HOMES = {
    "Client": "asterism.graph",
    "EdgeType": "asterism_model.schema",
    "Feature": "asterism_model.schema",
    "Graph": "asterism.graph",
    "Load": "asterism.calls.loads",
    "NodeType": "asterism_model.schema",
    "Schema": "asterism_model.schema",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name in ("euler", "ops", "pglbox", "records"):
        return import_module(f"asterism.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'asterism' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


@overload
def connect(
    addresses: str,
    *,
    space: None = None,
    timeout_s: float = 30.0,
    hedge: float | str | None = None,
    direct: bool = False,
) -> Client: ...


@overload
def connect(
    addresses: str,
    *,
    space: str,
    timeout_s: float = 30.0,
    hedge: float | str | None = None,
    direct: bool = False,
) -> Graph: ...


def connect(
    addresses: str,
    *,
    space: str | None = None,
    timeout_s: float = 30.0,
    hedge: float | str | None = None,
    direct: bool = False,
) -> Client | Graph:
    """Give a client of a running service, or the graph in one of its spaces.

    Parameters
    ----------
    addresses : str
        ``"host:9669"``, or several graphds with commas between: calls take turns, and pass over one
        that is away.
    space : str, optional
        Give this space's graph; NotFound where there is none.
    timeout_s : float
        Of every call, in seconds, retries included.
    hedge : float or "p95", optional
        A read that was not answered after so many seconds, or for longer than 95 of 100 recent ones
        of its kind, is asked of another graphd too: the first answer counts, the other request is
        cancelled. Same request, same seed, same bytes. At most a tenth of the calls, beyond ten;
        ``client.traffic`` counts them. None: never.
    direct : bool
        Ask storageds from this process, which merges and numbers what a graphd would: faster, and
        trainers share no graphd's cores; the arrays are the same. It needs
        ``asterism-graph[server]`` and a way to the storageds; what these cannot be asked for goes
        through the graphds.

    Examples
    --------
    >>> graph = asterism.connect("localhost:9669", space="papers")  # doctest: +SKIP
    >>> graph.sample_nodes(8, "paper")  # doctest: +SKIP
    """
    from asterism.graph import Client
    from asterism.transport.direct import DirectTransport
    from asterism.transport.grpc import GrpcTransport

    unicode_text.check("addresses", addresses)
    transport = (
        DirectTransport(addresses, hedge=hedge) if direct else GrpcTransport(addresses, hedge=hedge)
    )
    client = Client(transport, timeout_s=timeout_s)
    return client if space is None else client.graph(space)


@overload
def open(
    path: str | Path,
    *,
    space: None = None,
    mode: str = "w",
    timeout_s: float = 30.0,
    **settings: Any,
) -> Client: ...


@overload
def open(
    path: str | Path, *, space: str, mode: str = "w", timeout_s: float = 30.0, **settings: Any
) -> Graph: ...


def open(
    path: str | Path,
    *,
    space: str | None = None,
    mode: str = "w",
    timeout_s: float = 30.0,
    **settings: Any,
) -> Client | Graph:
    """Give a client of a service inside this process, its data in a folder; needs
    ``asterism-graph[server]``.

    Parameters
    ----------
    path : str or Path
        The folder; in mode ``"w"`` made where there is none.
    space : str, optional
        Give this space's graph.
    mode : {"w", "r+", "r"}
        ``"w"``: the folder's one writer. ``"r+"``: the same, of a folder that has graphs. ``"r"``:
        one of many readers of the versions published by now; it neither writes nor builds.
    timeout_s : float
        Of every call, in seconds.
    **settings
        More of ``asterism_standalone.settings.StandaloneSettings``.

    Raises
    ------
    Conflict
        Where another process has the folder open for writing.
    NotFound
        In modes ``"r+"`` and ``"r"``, where there are no graphs in the folder.
    ImportError
        Where the server's packages are not installed.

    Examples
    --------
    >>> with asterism.open("/tmp/graphs") as client:  # doctest: +SKIP
    ...     client.create_space("papers", {"nodes": {"paper": {}}})
    """
    from asterism.graph import Client
    from asterism.transport.embedded import start_embedded

    unicode_text.check("path", str(path))
    unicode_text.check("space", space)
    service = start_embedded(path, mode, settings)
    client = Client(service.transport, timeout_s=timeout_s, on_close=service.stop)
    if space is None:
        return client
    try:
        return client.graph(space)
    except errors.AsterismError:
        client.close()
        raise
