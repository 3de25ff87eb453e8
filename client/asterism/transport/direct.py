"""Transport that calls storageds directly, for ``asterism.connect(..., direct=True)``."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from asterism.extras import required
from asterism.transport.credentials import Credentials
from asterism.transport.fork_hooks import FORK_GUARD
from asterism.transport.grpc import ClientClosed, GrpcTransport
from asterism_io.tls_options import TlsOptions
from asterism_proto.errors import Deadline
from asterism_proto.framing import Frame
from asterism_proto.methods import GRAPH, Method
from asterism_proto.transport import Content
from asterism_proto.v1 import graphd_pb2 as graphd_pb

if TYPE_CHECKING:
    from graphd.direct_client import InProcessGraphd


def _import_direct() -> type[InProcessGraphd]:
    """Return the graphd that runs in this process; MissingExtra without the server's packages."""
    with required("server", "asterism.connect(direct=True)"):
        from asterism_standalone.compile_report import install
        from graphd.direct_client import InProcessGraphd

    install()  # the first call on a machine compiles kernels
    return InProcessGraphd


class DirectTransport(GrpcTransport):
    """Transport that sends reads and samples to storageds, and everything else to graphds.

    It needs ``asterism-graph[server]``. A graphd provides the addresses of the storageds and the
    contents of versions. It also serves requests that storageds cannot: while one of them is down
    or unreachable, for a version that is being replaced, or for a space that was just created. The
    arrays are the same.

    Parameters
    ----------
    addresses : str or sequence of str
        Addresses of graphds, as in `GrpcTransport`.
    hedge : float or "p95", optional
        Delay of a second request to a graphd, as in `GrpcTransport`. None: never.
    tls : TlsOptions, optional
        TLS of the connections to graphds and storageds. None: without TLS.
    credentials : Credentials, optional
        Key or token for the graphds. Storageds get tickets that a graphd issues for it.

    Raises
    ------
    MissingExtra
        If the server's packages are not installed.
    """

    def __init__(
        self,
        addresses: str | Sequence[str],
        *,
        hedge: float | str | None = None,
        tls: TlsOptions | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        super().__init__(addresses, hedge=hedge, tls=tls, credentials=credentials)
        _import_direct()
        self._direct: InProcessGraphd | None = None
        self._direct_pid = 0
        """Id of the process that ``_direct`` belongs to."""
        self._parents: list[InProcessGraphd] = []
        """Graphds of the processes that this one was forked from.

        They are kept because closing their channels here may hang.
        """

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        del state["waits"]
        return state

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        """Return the reply within ``timeout_s`` seconds, or raise an `AsterismError`."""
        direct = self._process_local()  # the first call compiles kernels
        context = direct.call_context(timeout_s)
        reply = direct.try_call(method, request, context)
        if reply is not None:
            self._count(calls=1, direct=1)
            return reply
        try:
            remaining_s = context.remaining()
        except Deadline:
            raise Deadline(f"{method.python_name}: timed out; pass a longer timeout_s") from None
        try:
            return super().call(method, request, remaining_s)
        finally:
            if not direct.supports(method):
                direct.invalidate_routes()

    def close(self) -> None:
        """Close this process's connections."""
        with self._lock:
            direct, self._direct = self._direct, None
        if direct is not None and self._direct_pid == os.getpid():
            direct.close()
        elif direct is not None:
            self._parents.append(direct)
        super().close()

    def _process_local(self) -> InProcessGraphd:
        with self._lock:
            if self._closed:
                raise ClientClosed
            if self._direct is None or self._direct_pid != os.getpid():
                if self._direct is not None:
                    self._parents.append(self._direct)
                self._direct, self._direct_pid = (
                    _import_direct()(self._fetch_routes, FORK_GUARD.call_scope, tls=self._tls),
                    os.getpid(),
                )
            return self._direct

    def _fetch_routes(self, known_revision: int, timeout_s: float) -> graphd_pb.GetRoutesReply:
        """Return the routes of a graphd, unless they are known, and its limits."""
        method = GRAPH["get_routes"]
        data = method.pack(Frame(graphd_pb.GetRoutesRequest(known_revision=known_revision)))
        reply = method.unpack_reply(self._send_queued(method, data, time.monotonic() + timeout_s))
        assert isinstance(reply, Frame)
        return reply.with_head(graphd_pb.GetRoutesReply).head
