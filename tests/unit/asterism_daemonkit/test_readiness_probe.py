"""Tests of the readiness probe against real ports, with TLS and access control."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.kit.certificates import Authority
from tests.kit.waiting import HANG_S

from asterism_access.principals import Principal
from asterism_daemonkit.http.allowed_hosts import AllowedHosts
from asterism_daemonkit.http.probes import WITHHELD_REASONS
from asterism_daemonkit.http.server import HttpServer
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.readiness_probe import missing, ready_url
from asterism_daemonkit.tls import DaemonTls
from asterism_proto.errors import Unauthenticated


def _refuse(authorization: str) -> Principal:
    raise Unauthenticated("authorization: expected a credential")


@contextmanager
def served(tls: DaemonTls | None, *reasons: str) -> Iterator[str]:
    """Yield the address of an HTTP port with access control."""
    server = HttpServer(
        address="127.0.0.1:0",
        daemon="graphd",
        status=dict,
        ready=lambda: list(reasons),
        flags={},
        metrics=Metrics("graphd"),
        allowed_hosts=AllowedHosts(),
        tls=tls,
        authenticate=_refuse,
    )
    port = server.start()
    try:
        yield f"0.0.0.0:{port}"
    finally:
        server.stop()


def test_a_ready_daemon_is_found_ready_without_a_credential() -> None:
    with served(None) as address:
        assert missing("graphd", {"ASTERISM_GRAPHD_HTTP_LISTEN": address}) == ""
        done = subprocess.run(
            [sys.executable, "-m", "asterism_daemonkit.readiness_probe", "graphd"],
            env={"ASTERISM_GRAPHD_HTTP_LISTEN": address, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_a_daemon_that_is_not_ready_is_reported() -> None:
    with served(None, "kernels are compiled") as address:
        reason = missing("graphd", {"ASTERISM_GRAPHD_HTTP_LISTEN": address})
    assert reason == WITHHELD_REASONS
    assert "refused" in missing("graphd", {"ASTERISM_GRAPHD_HTTP_LISTEN": address})


@pytest.mark.parametrize("client_auth", [False, True])
def test_the_probe_trusts_the_daemons_own_certificate(client_auth: bool, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "own")
    files = authority.issue("graphd", names=["graphd.example.com"])
    other = Authority(tmp_path / "other").issue("graphd", names=["graphd.example.com"])
    tls = DaemonTls(
        cert=str(files.cert), key=str(files.key), ca=str(authority.file), client_auth=client_auth
    )
    with served(tls) as address:
        variables = {"ASTERISM_GRAPHD_HTTP_LISTEN": address}
        own = variables | {
            "ASTERISM_GRAPHD_TLS_CERT": str(files.cert),
            "ASTERISM_GRAPHD_TLS_KEY": str(files.key),
        }
        assert missing("graphd", own) == ""
        wrong = variables | {
            "ASTERISM_GRAPHD_TLS_CERT": str(other.cert),
            "ASTERISM_GRAPHD_TLS_KEY": str(other.key),
        }
        assert "CERTIFICATE_VERIFY_FAILED" in missing("graphd", wrong)
        assert missing("graphd", variables) != ""


@pytest.mark.parametrize(
    ("listen", "url"),
    [
        ("0.0.0.0:19559", "http://127.0.0.1:19559/readyz"),
        ("[::]:19559", "http://[::1]:19559/readyz"),
        ("metad:19559", "http://metad:19559/readyz"),
    ],
)
def test_a_wildcard_is_probed_on_loopback(listen: str, url: str) -> None:
    assert ready_url("metad", {"ASTERISM_METAD_HTTP_LISTEN": listen}) == url


@pytest.mark.parametrize("listen", ["", "host", "127.0.0.1:0"])
def test_an_unknown_port_is_named(listen: str) -> None:
    reason = missing("storaged", {"ASTERISM_STORAGED_HTTP_LISTEN": listen})
    assert reason.startswith(f"ASTERISM_STORAGED_HTTP_LISTEN={listen!r}: expected host:port")
