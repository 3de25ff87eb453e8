"""Refused credentials of the callers of one daemon: counted, and recorded in the audit log.

A caller without credentials may be refused as often as it likes, so records are limited: one a
minute for each address and reason, and `MAX_RECORDS` a minute for the daemon. Counters have all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from asterism_access.audit_log import AuditLog
from asterism_access.failed_sign_ins import network_of
from asterism_access.principals import ANONYMOUS, Principal
from asterism_proto.errors import AsterismError, Unauthenticated

MAX_RECORDS = 20
"""Most records of refused credentials in a minute."""
MISSING = "missing"
"""Reason of a refusal if the caller sent no credential; it is not recorded."""
_PERIOD_S = 60.0
_RECORD_WAIT_S = 1.0
"""Seconds that a refusal may wait for its record."""

Authenticate = Callable[[str], Principal]
"""Function that returns the principal of an authorization text, or raises Unauthenticated."""
Count = Callable[[str, str], None]
"""Function (port, reason) that counts a refusal."""


class RefusedCredentials:
    """Counts and records refused credentials. Threads may share an object.

    Parameters
    ----------
    count : callable
        Counts a refusal, by port and by `Unauthenticated.reason`.
    audit_log : AuditLog or None
        None: refusals are not recorded.
    clock : callable
        Returns seconds.
    """

    def __init__(
        self,
        count: Count,
        audit_log: AuditLog | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._count, self._audit_log, self._clock = count, audit_log, clock
        self._lock = threading.Lock()
        self._period_end_s = clock()
        self._recorded: set[tuple[str, str]] = set()
        """Network and reason of the records of this period."""
        self._omitted = 0
        """Refusals since the last record that have none."""

    def counting(self, port: str, authenticate: Authenticate) -> Authenticate:
        """Return the same function, with its refusals counted."""

        def count_and_authenticate(authorization: str) -> Principal:
            try:
                return authenticate(authorization)
            except Unauthenticated as error:
                self._count(port, error.reason)
                raise

        return count_and_authenticate

    def count(self, port: str, error: Unauthenticated) -> None:
        """Count a refusal that has a record of its own, or needs none."""
        self._count(port, error.reason)

    def refuse_request(self, error: Unauthenticated, method: str, peer: str) -> None:
        """Count and record a refused request over HTTP.

        Parameters
        ----------
        error : Unauthenticated
            Its message has no secret.
        method : str
            Method and path of the request.
        peer : str
            Address of the caller, such as ``ipv4:10.0.0.7:51234``.
        """
        self._count("http", error.reason)
        if self._audit_log is None or error.reason == MISSING:
            return
        omitted = self._admit(_network_of_peer(peer), error.reason)
        if omitted is None:
            return
        more = f"; {omitted} refusals before this one were not recorded" if omitted else ""
        try:
            self._audit_log.record(
                ANONYMOUS,
                method=method,
                outcome=type(error).__name__,
                detail=error.message + more,
                peer=peer,
                deadline=time.monotonic() + _RECORD_WAIT_S,
            )
        except AsterismError:  # the daemon's own log has the record
            return

    def _admit(self, network: str, reason: str) -> int | None:
        """Return the number of omitted records before this one; None if it is omitted too."""
        with self._lock:
            now = self._clock()
            if now >= self._period_end_s:
                self._period_end_s = now + _PERIOD_S
                self._recorded.clear()
            key = (network, reason)
            if key in self._recorded or len(self._recorded) >= MAX_RECORDS:
                self._omitted += 1
                return None
            self._recorded.add(key)
            omitted, self._omitted = self._omitted, 0
            return omitted


def _network_of_peer(peer: str) -> str:
    """Return what counts of the address of a caller, without its port."""
    return network_of(peer.partition(":")[2].rpartition(":")[0].strip("[]"))
