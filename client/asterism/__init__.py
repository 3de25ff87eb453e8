"""Client of Asterism, a service that samples from graphs larger than memory.

Code that needs more than numpy, grpcio and protobuf belongs to the packages with extras.
"""

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
    Forbidden,
    Internal,
    InvalidRequest,
    NotFound,
    NotReady,
    QuotaExceeded,
    Stale,
    Unauthenticated,
    Unavailable,
)

if TYPE_CHECKING:
    from pathlib import Path

    from asterism import euler, ops, records
    from asterism.calls.loads import Load
    from asterism.graph import Client, Graph
    from asterism.transport.credentials import Credential
    from asterism.transport.tls import Tls
    from asterism_io.tls_options import TlsOptions
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
    "Forbidden",
    "Graph",
    "Internal",
    "InvalidRequest",
    "Load",
    "NodeType",
    "NotFound",
    "NotReady",
    "QuotaExceeded",
    "Schema",
    "Stale",
    "TlsOptions",
    "Unauthenticated",
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
    "TlsOptions": "asterism_io.tls_options",
}


_OPTIONAL_MODULES = {
    "aio",
    "backup",
    "dgl",
    "export",
    "graphbolt",
    "ingest",
    "pyg",
    "saint",
    "tensorflow",
    "torch",
}
"""Public modules that are attributes once they are imported; most of them need extras."""


def __getattr__(name: str) -> Any:
    """Import a public name on first access."""
    if name in ("euler", "ops", "pglbox", "records"):
        return import_module(f"asterism.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'asterism' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(_OPTIONAL_MODULES & globals().keys())})


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
) -> Client: ...


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
) -> Graph: ...


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
) -> Client | Graph:
    """Connect to a running service and return a client, or the graph in one of its spaces.

    Parameters
    ----------
    addresses : str
        Address of a graphd, ``"host:9669"``, or several separated by commas. Calls rotate over them
        and skip those that are down.
    space : str, optional
        Name of a graph space: return its graph. None: return the client.
    timeout_s : float, default 30
        Timeout of every call in seconds, retries included.
    hedge : float or "p95", optional
        Send a read to a second graphd too if it has no reply after this many seconds, or ("p95")
        after longer than 95 of 100 recent reads of its kind. The first reply counts, and the other
        request is cancelled. Both replies have the same bytes, because request and seed are equal.
        Beyond the first ten, at most a tenth of the calls are hedged; ``client.traffic`` counts
        them. None: never.
    direct : bool, default False
        Send requests to the storageds from this process, which does the merging and numbering of a
        graphd. This is faster, and trainers do not share a graphd's cores; the arrays are the same.
        It needs ``asterism-graph[server]`` and network access to the storageds. Requests that
        storageds do not serve go through the graphds.
    tls : TlsOptions, bool or path, optional
        TLS of the connections: the file of the certificate authorities that sign the service's
        certificates; True for those that this system trusts; or `TlsOptions`, which also name the
        certificate of this client. False: no TLS. None: as the environment says
        (``ASTERISM_TLS_CA``, ``ASTERISM_TLS_CERT``, ``ASTERISM_TLS_KEY``,
        ``ASTERISM_TLS_SERVER_NAME``); without these variables, no TLS. Changed files are used for
        new connections.
    api_key, token : str or callable, optional
        API key, or token of an OpenID Connect issuer, that every request carries: one of the two,
        as text or as a function that returns it. The function is called before each request and
        should return quickly; it may return a new token at any time. None: the environment
        variable ``ASTERISM_API_KEY``, or the file that ``ASTERISM_API_KEY_FILE`` names, which is
        read again when it changes; without these, the client has no credentials.

    Returns
    -------
    Client or Graph
        The client, or the graph if ``space`` is given. Close it, or use it in a ``with`` block.

    Warns
    -----
    UserWarning
        If a key or token is sent without TLS to another host.

    Raises
    ------
    InvalidRequest
        If an argument is invalid.
    Unauthenticated
        If the service does not accept the key or token, when ``space`` is given; otherwise the
        first call raises it.
    NotFound
        If there is no such space.
    ImportError
        If ``direct`` is set and the server's packages are not installed.

    Examples
    --------
    >>> graph = asterism.connect("localhost:9669", space="papers")  # doctest: +SKIP
    >>> graph.sample_nodes(8, "paper")  # doctest: +SKIP
    """
    from asterism.graph import Client
    from asterism.transport.credentials import credentials_of, warn_if_exposed
    from asterism.transport.direct import DirectTransport
    from asterism.transport.grpc import GrpcTransport
    from asterism.transport.tls import tls_options

    unicode_text.check("addresses", addresses)
    transport_class = DirectTransport if direct else GrpcTransport
    options, credentials = tls_options(tls), credentials_of(api_key, token)
    transport = transport_class(addresses, hedge=hedge, tls=options, credentials=credentials)
    warn_if_exposed(credentials, transport.addresses, options)
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
    """Open a service inside this process, with its data in a folder.

    Needs ``asterism-graph[server]``.

    Parameters
    ----------
    path : str or Path
        Data folder; mode ``"w"`` creates it if needed. A leading ``~`` is the user's home folder.
    space : str, optional
        Name of a graph space: return its graph. None: return the client.
    mode : {"w", "r+", "r"}, default "w"
        ``"w"``: open as the only writer of the folder. ``"r+"``: the same, for a folder that
        already has graphs. ``"r"``: open as one of many readers of the versions that are published
        now; readers neither write nor build.
    timeout_s : float, default 30
        Timeout of every call in seconds.
    **settings
        Further fields of ``asterism_standalone.settings.StandaloneSettings``.

    Returns
    -------
    Client or Graph
        The client, or the graph if ``space`` is given. Close it, or use it in a ``with`` block.

    Raises
    ------
    InvalidRequest
        If an argument is invalid.
    Conflict
        If another process has the folder open for writing.
    NotFound
        If the folder has no graphs (in modes ``"r+"`` and ``"r"``), or there is no such space.
    ImportError
        If the server's packages are not installed.

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
