from __future__ import annotations

import pytest

from asterism_io.loopback import is_loopback_host


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.0", "127.255.255.255", "::1", "[::1]", "localhost", "LOCALHOST"]
)
def test_addresses_of_this_host_are_loopback(host: str) -> None:
    assert is_loopback_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "::",
        "[::]",
        "::2",
        "::ffff:127.0.0.1",
        "::1%eth0",
        "fe80::1",
        "10.0.0.1",
        "127.1",
        "localhost.example.com",
        "db",
        "",
    ],
)
def test_all_other_hosts_are_not(host: str) -> None:
    assert not is_loopback_host(host)
