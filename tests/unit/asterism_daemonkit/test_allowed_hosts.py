"""Tests that an HTTP endpoint accepts only its own host names (DNS rebinding)."""

from __future__ import annotations

import socket

import pytest

from asterism_daemonkit.http.allowed_hosts import AllowedHosts


@pytest.mark.parametrize(
    "host",
    [
        "",
        "127.0.0.1",
        "127.0.0.1:19669",
        "10.0.0.7:80",
        "[::1]:19669",
        "[::1]",
        "localhost:19669",
        "a.localhost",
        "LOCALHOST.",
        "graphd-0:19669",
        "Graph.Example.com:19669",
        "graph.example.com.",
        "front.corp.example",
        "deep.front.corp.example:1",
        socket.gethostname(),
        "10.example.net:3",
    ],
)
def test_endpoint_accepts_its_own_hostnames(host: str) -> None:
    assert AllowedHosts(["graph.example.com", " .corp.example ", ""], "10.example.net:9669").allows(
        host
    )


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:19669",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "graph.example.com.evil.example",
        "corp.example",
        "xcorp.example",
        "1.2.3.4.5",
        "[evil.example]:1",
        "127.0.0.1.",
        "graph.example.com@evil.example",
    ],
)
def test_endpoint_rejects_other_hostnames(host: str) -> None:
    allowed = AllowedHosts(["graph.example.com", ".corp.example"], "10.example.net:9669")
    assert allowed.allows(host) == (host == "127.0.0.1.")
    assert AllowedHosts(["*"]).allows(host)
