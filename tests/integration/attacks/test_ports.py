"""Attacks on every port, with and without credentials, against access control.

No input crashes a daemon, raises an unexpected exception, changes anything, or is served without
the right to it; and memory goes back to its level.
"""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from tests.kit.hostile import campaigns, http2
from tests.kit.hostile.campaigns import Outcome
from tests.kit.hostile.target import Addresses, Target, running_target
from tests.kit.waiting import HANG_S, wait_until

from asterism_daemonkit.rpc.connection_limits import raise_file_limit

pytestmark = pytest.mark.timeout(7200)

MEMORY_TOLERANCE = 160 << 20
"""Bytes by which the memory of the process may exceed its level before the inputs.

Caches of credentials, frames, kernels and allocators fill up: about 40 MiB. It does not grow with
the number of inputs."""
WARM_UP = 2_000
"""Inputs before the level of memory is taken, which load kernels and routes."""
SHARES = {
    "binary requests": 0.89,
    "binary greetings": 0.04,
    "gRPC calls": 0.04,
    "HTTP/2 bytes": 0.02,
    "HTTP calls": 0.004,
    "HTTP bytes": 0.006,
}
"""Shares of the inputs, by what they cost of the processor time of the daemons.

An input costs 0.3 ms at the binary endpoint, 1 to 2 ms over gRPC, and 7 ms over HTTP."""


def run(addresses: Addresses, total: int, seed: int) -> dict[str, Outcome]:
    """Return the outcomes of a number of inputs, by kind."""
    counts = {kind: round(total * share) for kind, share in SHARES.items()}

    def of_daemons(campaign: Callable[[Addresses, str, int, int], Outcome], kind: str) -> Outcome:
        joined = Outcome()
        for daemon, share in (("graphd", 0.4), ("metad", 0.2), ("storaged", 0.4)):
            outcome = campaign(addresses, daemon, round(counts[kind] * share), seed)
            joined.counts += outcome.counts
            joined.faults += outcome.faults
        return joined

    return {
        "binary requests": campaigns.binary_requests(addresses, counts["binary requests"], seed),
        "binary greetings": campaigns.binary_greetings(addresses, counts["binary greetings"], seed),
        "gRPC calls": of_daemons(campaigns.grpc_calls, "gRPC calls"),
        "HTTP/2 bytes": campaigns.http2_bytes(addresses, counts["HTTP/2 bytes"], seed),
        "HTTP calls": of_daemons(campaigns.http_calls, "HTTP calls"),
        "HTTP bytes": campaigns.http_bytes(addresses, counts["HTTP bytes"], seed),
    }


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with running_target(tmp_path_factory.mktemp("target")) as target:
        yield target


@pytest.mark.parametrize(
    ("count", "seed"), [(100_000, 1), pytest.param(1_000_000, 2, marks=pytest.mark.slow)]
)
def test_hostile_bytes_are_refused_and_leave_no_trace(
    target: Target, count: int, seed: int
) -> None:
    run(target.addresses, WARM_UP, seed + 100)
    target.assert_serves()
    state, level, files = target.state(), target.resident_bytes, target.open_files
    busy_s = target.busy_s
    outcomes = run(target.addresses, count, seed)
    print(f"{target.busy_s - busy_s:.1f} s of the daemons, {level >> 20} MiB before")
    for kind, outcome in outcomes.items():
        print(f"{kind}: {dict(outcome.counts.most_common())}")
    assert [fault for outcome in outcomes.values() for fault in outcome.faults] == []
    assert sum(outcome.total for outcome in outcomes.values()) >= 0.99 * count
    reached = outcomes["HTTP/2 bytes"].counts
    assert reached["UNAUTHENTICATED!"], "calls arrive at the daemons"
    assert reached["INVALID_ARGUMENT!"], "and, with a credential, at their handlers"
    target.assert_serves()
    assert target.crashes() == []
    assert target.state() == state
    target.wait_settled(level + MEMORY_TOLERANCE)
    assert target.open_files <= files + 64


IDLE = 5000
"""Idle connections to one port."""
IDLE_MEMORY = 400 << 20
"""Bytes that the idle connections may take: about 45 KiB each over gRPC, and less elsewhere."""


def _open_grpc(address: str) -> socket.socket:
    connection = _open(address)
    connection.sendall(http2.opening())
    return connection


def _open(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), HANG_S)


@pytest.mark.parametrize("port", ["gRPC", "HTTP", "binary"])
def test_idle_connections_keep_no_one_from_a_port(target: Target, port: str) -> None:
    assert raise_file_limit() > IDLE + 500, "the target has raised its own limit in the same way"
    addresses = target.addresses
    open_one, address = {
        "gRPC": (_open_grpc, addresses.grpc["graphd"]),
        "HTTP": (_open, addresses.http["graphd"]),
        "binary": (_open, addresses.binary),
    }[port]
    target.assert_serves()
    level, files = target.resident_bytes, target.open_files
    with ExitStack() as stack:
        for _ in range(IDLE):
            stack.enter_context(closing(open_one(address)))
        target.assert_serves()
        assert campaigns.binary_requests(addresses, 16, 1).total == 16
        with urllib.request.urlopen(
            f"http://{addresses.http['graphd']}/healthz", timeout=HANG_S
        ) as reply:
            assert reply.status == 200
        assert target.resident_bytes <= level + IDLE_MEMORY
    wait_until(lambda: target.open_files <= files + 64, "the connections are closed")
    target.assert_serves()
    assert target.crashes() == []
