"""Pins: leases on versions, renewed while a block runs."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

from asterism.client_state import Session
from asterism.records.versions import PinInfo
from asterism_model import unicode_text
from asterism_proto.errors import AsterismError, InvalidRequest, NotFound, Stale
from asterism_proto.methods import CATALOG
from asterism_proto.v1 import metad_pb2 as metad_pb

PinnedGraph = TypeVar("PinnedGraph")
"""Type of the graph that a pin returns: `asterism.graph.Graph`, which imports this module."""

DEFAULT_TERM_S = 60.0
_RELEASE_S = 5.0


class Lease:
    """Pin that a thread renews every third of its term.

    A forked child has neither such a thread nor a lease: it may read as long as its parent holds
    the pin.

    Parameters
    ----------
    session : Session
        Session for the renewals.
    pin : PinInfo
        Pin as granted by metad.
    granted_at : float
        Time of the request on the monotonic clock, in seconds. metad counts from a later time, so
        the lease ends here first.
    """

    def __init__(self, session: Session, pin: PinInfo, granted_at: float) -> None:
        self._session = session
        self.pin = pin
        self._expires_at = granted_at + pin.term_s
        self._pid = os.getpid()
        self._stopped = threading.Event()
        self._lost: AsterismError | None = None
        self._cause = "no answer yet"
        self._thread = threading.Thread(target=self._run, name=f"pin-{pin.pin_id}", daemon=True)
        session.leases.add(self)
        self._thread.start()

    def check(self) -> None:
        """Raise if the lease was lost.

        Raises
        ------
        NotFound
            If metad reports that the pin has ended.
        Stale
            If it could not be renewed for a whole term, so that the version may have been removed.
        """
        if self._pid != os.getpid() or self._stopped.is_set():
            return
        if self._lost is not None:
            raise NotFound(
                f"version {self.pin.version} of space {self.pin.space!r} is no longer pinned: "
                f"{self._lost.message}; leave the block and pin again"
            )
        late = time.monotonic() - self._expires_at
        if late > 0:
            raise Stale(
                f"version {self.pin.version} of space {self.pin.space!r} may be gone: pin "
                f"{self.pin.pin_id} of {self.pin.term_s:g} s expired {late:.1f} s ago without "
                f"renewal ({self._cause}); try again once metad replies, or pin again with a "
                "longer term_s"
            )

    def stop(self) -> None:
        """Stop renewing."""
        self._stopped.set()

    def release(self) -> None:
        """Release the pin, if this process holds it. If metad cannot be reached, it expires."""
        if self._pid != os.getpid():
            return
        self.stop()
        with contextlib.suppress(AsterismError):
            self._session.transport.call(
                CATALOG["release_pin"],
                metad_pb.PinRequest(pin_id=self.pin.pin_id),
                min(_RELEASE_S, self._session.timeout_s),
            )

    def _run(self) -> None:
        pause = self.pin.term_s / 3
        while not self._stopped.wait(pause):
            requested_at = time.monotonic()
            try:
                self._session.transport.call(
                    CATALOG["renew_pin"],
                    metad_pb.PinRequest(pin_id=self.pin.pin_id),
                    min(self.pin.term_s / 3, self._session.timeout_s),
                )
            except NotFound as error:
                self._lost = error
                return
            except AsterismError as error:
                self._cause, pause = error.message, self.pin.term_s / 20
                continue
            self._expires_at, pause = requested_at + self.pin.term_s, self.pin.term_s / 3


class PinnedVersion(Generic[PinnedGraph]):
    """Context manager that holds a version, returned by ``graph.pin()``. It can be used once."""

    def __init__(
        self,
        session: Session,
        space: str,
        make_graph: Callable[[Lease], PinnedGraph],
        *,
        version: int,
        term_s: float,
        owner: str | None,
    ) -> None:
        if not 0 < term_s < float("inf"):
            raise InvalidRequest(f"term_s={term_s!r}: expected a number of seconds above 0")
        unicode_text.check("owner", owner)
        self._session, self._space, self._make_graph = session, space, make_graph
        self._version, self._term_s = version, term_s
        self._owner = f"{socket.gethostname()} pid {os.getpid()}" if owner is None else owner
        self._lease: Lease | None = None

    def __enter__(self) -> PinnedGraph:
        if self._lease is not None:
            raise InvalidRequest(
                "pin: expected a new one, this pin was used already; call graph.pin() again"
            )
        requested_at = time.monotonic()
        request = metad_pb.PinVersionRequest(
            space=self._space, version=self._version, term_s=self._term_s, owner=self._owner
        )
        pin = PinInfo.from_proto(self._session.catalog("pin_version", request))
        self._lease = Lease(self._session, pin, requested_at)
        return self._make_graph(self._lease)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lease is not None:
            self._lease.release()


def pin_version(session: Session, space: str, version: int, *, owner: str) -> PinnedVersion[Lease]:
    """Return a pin that yields its lease, for tools that need no graph."""
    return PinnedVersion(
        session, space, lambda lease: lease, version=version, term_s=DEFAULT_TERM_S, owner=owner
    )
