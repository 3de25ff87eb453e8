"""A process of trainers that call continuously and check every result.

    python -m tests.kit.trainer ADDRESSES SPACE SECONDS THREADS SEED EXPECTED.json

Reads digests by the name of each call of `cases.calls`; prints the outcome as one JSON object.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import asterism
from asterism.transport.grpc import ClientTransport
from asterism_proto.methods import Method
from asterism_proto.transport import Content
from tests.kit import cases
from tests.kit.waiting import HANG_S

TIMEOUT_S = 20.0


@dataclass
class ThreadReport:
    """Observations of one thread."""

    calls: int = 0
    wrong: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    """Seconds of each request; a scan is one request per batch."""


def run_calls(
    graph: asterism.Graph, expected: dict[str, str], deadline: float, seed: int, seen: ThreadReport
) -> None:
    """Call until the deadline."""
    calls = cases.calls(graph)
    names = sorted(expected)
    order = np.random.default_rng(seed)
    while time.monotonic() < deadline:
        name = names[int(order.integers(len(names)))]
        started = time.monotonic()
        try:
            digest = cases.digest(calls[name]())
        except asterism.AsterismError as error:
            seen.errors[type(error).__name__] += 1
        else:
            if digest != expected[name]:
                seen.wrong.append(name)
        seen.calls += 1
        seen.seconds.append(time.monotonic() - started)


class TimedTransport:
    """A client's transport that records the seconds of every request."""

    def __init__(self, transport: ClientTransport) -> None:
        self._inner, self.piece_bytes = transport, transport.piece_bytes
        self.prices_requests = transport.prices_requests
        self.seconds: list[float] = []

    def call(self, method: Method, request: Content, timeout_s: float) -> Content:
        started = time.monotonic()
        try:
            return self._inner.call(method, request, timeout_s)
        finally:
            self.seconds.append(time.monotonic() - started)

    def close(self) -> None:
        self._inner.close()


def main(
    addresses: str, space: str, seconds: str, threads: str, seed: str, expected_file: str
) -> None:
    """Run the threads and print the report."""
    expected: dict[str, str] = json.loads(Path(expected_file).read_text())
    all_seen = [ThreadReport() for _ in range(int(threads))]
    with asterism.connect(addresses, timeout_s=TIMEOUT_S) as client:
        client.graph(space).sample_nodes(1)
        requests = client.session.transport = TimedTransport(client.session.transport)
        deadline = time.monotonic() + float(seconds)
        running = [
            threading.Thread(
                target=run_calls,
                args=(client.graph(space), expected, deadline, 1000 * int(seed) + i, seen),
                daemon=True,
            )
            for i, seen in enumerate(all_seen)
        ]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join(float(seconds) + HANG_S / 2)
        hung_threads = sum(thread.is_alive() for thread in running)
    errors: Counter[str] = sum((seen.errors for seen in all_seen), Counter())
    report = {
        "calls": sum(seen.calls for seen in all_seen),
        "fewest": min(seen.calls for seen in all_seen),
        "wrong": [name for seen in all_seen for name in seen.wrong],
        "errors": dict(errors),
        "hung": hung_threads,
        "seconds": [second for seen in all_seen for second in seen.seconds],
        "requests": requests.seconds,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
