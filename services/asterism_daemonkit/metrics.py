"""Prometheus metrics of one daemon.

Each daemon has a registry of its own, so several daemons may share a process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

LATENCY_BUCKETS_S = (
    0.0002,
    0.0005,
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1,
    2,
    5,
    10,
    30,
    60,
)
"""Upper bounds of the latency histogram in seconds, from a small sample to a long scan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodStats:
    """Statistics of the calls of one method."""

    calls: int
    errors: int
    """Number of calls that did not end with OK."""
    buckets: tuple[int, ...]
    """Calls by duration: up to each bound of `LATENCY_BUCKETS_S`, and beyond the last."""

    def since(self, earlier: MethodStats | None) -> MethodStats:
        """Return the difference to ``earlier``."""
        if earlier is None:
            return self
        buckets = tuple(now - then for now, then in zip(self.buckets, earlier.buckets, strict=True))
        return MethodStats(
            calls=self.calls - earlier.calls, errors=self.errors - earlier.errors, buckets=buckets
        )


class Metrics:
    """Metrics of a daemon: calls, latencies and added gauges."""

    def __init__(self, daemon: str) -> None:
        self.registry = CollectorRegistry()
        labels = {"daemon": daemon}
        self._calls = Counter(
            "asterism_calls",
            "Completed calls, by method and code.",
            ["daemon", "method", "code"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "asterism_call_seconds",
            "Duration of calls.",
            ["daemon", "method"],
            buckets=LATENCY_BUCKETS_S,
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "asterism_calls_in_flight", "Calls in progress.", ["daemon"], registry=self.registry
        ).labels(**labels)
        self._rounds = Counter(
            "asterism_storaged_rounds",
            "Rounds of calls to several storageds at once, by method.",
            ["daemon", "method"],
            registry=self.registry,
        )
        self._bytes = Counter(
            "asterism_peer_bytes",
            "Bytes of calls to other daemons, sent and received.",
            ["daemon", "method", "way"],
            registry=self.registry,
        )
        self.daemon = self._daemon = daemon
        """Label of the daemon."""
        self.calls_counted = 0
        """Number that grows with the counted calls.

        It grows by less than their number if calls are counted concurrently."""

    def count_call(self, method: str, code: str, seconds: float) -> None:
        """Count one call."""
        self._calls.labels(self._daemon, method, code).inc()
        self._seconds.labels(self._daemon, method).observe(seconds)
        self.calls_counted += 1

    def count_round(self, method: str) -> None:
        """Count one round of concurrent calls to other daemons."""
        self._rounds.labels(self._daemon, method).inc()

    def count_traffic(self, method: str, sent: int, received: int) -> None:
        """Count the bytes of one call to another daemon."""
        self._bytes.labels(self._daemon, method, "sent").inc(sent)
        self._bytes.labels(self._daemon, method, "received").inc(received)

    def add_gauge(self, name: str, text: str, get_value: Callable[[], float]) -> None:
        """Add a gauge ``asterism_<name>``; its value is computed when it is read."""
        Gauge(f"asterism_{name}", text, registry=self.registry).set_function(get_value)

    def method_stats(self) -> dict[str, MethodStats]:
        """Return statistics of the calls so far, by method."""
        calls: dict[str, int] = {}
        errors: dict[str, int] = {}
        cumulative_counts: dict[str, list[int]] = {}
        for family in self._calls.collect():
            for sample in family.samples:
                if sample.name.endswith("_total"):
                    method = sample.labels["method"]
                    calls[method] = calls.get(method, 0) + int(sample.value)
                    errors[method] = errors.get(method, 0) + (
                        int(sample.value) if sample.labels["code"] != "OK" else 0
                    )
        for family in self._seconds.collect():
            for sample in family.samples:
                if sample.name.endswith("_bucket"):
                    cumulative_counts.setdefault(sample.labels["method"], [0]).append(
                        int(sample.value)
                    )
        zeros = [0] * (len(LATENCY_BUCKETS_S) + 2)
        return {
            method: MethodStats(
                calls=count,
                errors=errors[method],
                buckets=tuple(b - a for a, b in pairwise(cumulative_counts.get(method, zeros))),
            )
            for method, count in calls.items()
        }

    def render(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self.registry)
