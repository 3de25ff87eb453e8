"""Metrics of access control: refused calls, and records of the audit log."""

from __future__ import annotations

import threading

from prometheus_client import CollectorRegistry, Counter

MAX_PRINCIPALS = 100
"""Principals with a label of their own; the others share `OTHER`."""
OTHER = "other"


class AccessMetrics:
    """Counters of access control in the registry of a daemon.

    Parameters
    ----------
    registry : CollectorRegistry
        Registry of the daemon's `Metrics`.
    daemon : str
        Label of the daemon.
    """

    def __init__(self, registry: CollectorRegistry, daemon: str) -> None:
        self._daemon = daemon
        self._lock = threading.Lock()
        self._principals: set[str] = set()
        """Principals with a label of their own: the first that exceeded a limit."""
        self._exceeded = Counter(
            "asterism_quota_exceeded",
            "Calls refused because a limit of their principal was reached.",
            ["daemon", "principal", "limit"],
            registry=registry,
        )
        self._refused = Counter(
            "asterism_credentials_refused",
            "Calls refused because their credential is missing or not accepted, by reason.",
            ["daemon", "port", "reason"],
            registry=registry,
        )
        self._records = Counter(
            "asterism_audit_records",
            "Records of the audit log: written, or lost because the disk was full or too slow.",
            ["daemon", "outcome"],
            registry=registry,
        )

    def count_quota_exceeded(self, principal: str, limit: str) -> None:
        """Count a refused call; the callback of a `LimitTable`."""
        with self._lock:
            if principal not in self._principals and len(self._principals) < MAX_PRINCIPALS:
                self._principals.add(principal)
            label = principal if principal in self._principals else OTHER
        self._exceeded.labels(self._daemon, label, limit).inc()

    def count_refused_credential(self, port: str, reason: str) -> None:
        """Count a call that was refused for its credential.

        Parameters
        ----------
        port : {"grpc", "http", "stream"}
        reason : str
            `Unauthenticated.reason`.
        """
        self._refused.labels(self._daemon, port, reason).inc()

    def count_audit_record(self, is_written: bool) -> None:
        """Count a record; the callback of an `AuditLog`."""
        self._records.labels(self._daemon, "written" if is_written else "lost").inc()
