"""Metrics of access control: use of limits, refused calls, and records of the audit log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from asterism_access.limits import LimitUse

MAX_PRINCIPALS = 100
"""Principals with a label of their own; the others share `OTHER`."""
OTHER = "other"


class _LimitUses(Collector):
    """Gauges of the use of limits, read when metrics are requested."""

    def __init__(self, daemon: str, uses: Callable[[], Sequence[LimitUse]]) -> None:
        self._daemon, self._uses = daemon, uses

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Return the gauges without values, for the registry."""
        yield from self._gauges()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the gauges with the values of at most `MAX_PRINCIPALS` principals."""
        limit, available = self._gauges()
        principals: set[str] = set()
        for use in self._uses():
            if len(principals) < MAX_PRINCIPALS:
                principals.add(use.principal)
            if use.principal in principals:
                labels = [self._daemon, use.principal, use.space, use.limit]
                limit.add_metric(labels, use.value)
                available.add_metric(labels, use.available)
        yield limit
        yield available

    def _gauges(self) -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
        labels = ["daemon", "principal", "space", "limit"]
        return (
            GaugeMetricFamily(
                "asterism_quota_limit",
                "Limit of a principal that has called recently.",
                labels=labels,
            ),
            GaugeMetricFamily(
                "asterism_quota_available",
                "What a principal may still use at once of a limit; negative while it owes.",
                labels=labels,
            ),
        )


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
        self._registry, self._daemon = registry, daemon
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

    def add_limit_uses(self, uses: Callable[[], Sequence[LimitUse]]) -> None:
        """Add gauges of what a function returns, `asterism_access.limits.LimitTable.uses`."""
        self._registry.register(_LimitUses(self._daemon, uses))

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
